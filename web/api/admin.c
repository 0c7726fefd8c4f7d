/*
 * Administration: deletes series, takes snapshots, accepts losses. Needs --web.enable-admin-api.
 */
#include "base/clock.h"
#include "base/quote.h"
#include "promql/syntax/parse.h"
#include "promql/syntax/type_names.h"
#include "tsdb/db.h"
#include "web/api/handlers.h"
#include "web/router/envelope.h"

#define MATCHES_MAX 64u
#define ACCEPTED_MAX 256u

/*
 * A row has all types of a scrape, so the name must be a series'. A name of one type within a
 * profile would delete its other types too.
 */
static enum err_code selector_matchers(
	struct arena *a, const struct selector *s, struct matcher **out, size_t *n, struct err *err)
{
	struct matcher *m = arena_array(a, struct matcher, s->matchers_n + 1);
	struct type_pattern pattern;
	size_t k = 0;

	if (!m)
		return arena_fail(a, "matchers", err);
	if (s->name.len && type_pattern_parse(s->name, &pattern) && !str_eq(pattern.name, s->name))
		return err_set(err, ERR_INVALID,
			"%s names a profile type: profiles are deleted whole, name them %s", QUOTED(s->name),
			QUOTED(pattern.name));
	if (s->name.len)
		m[k++] = (struct matcher){ .op = MATCH_EQ, .name = STR(LABEL_NAME), .value = s->name };
	for (size_t i = 0; i < s->matchers_n; i++)
		m[k++] = s->matchers[i];
	*out = m;
	*n = k;
	return ERR_OK;
}

static enum err_code api_delete_match(struct web *w, struct http_in *in, struct str match,
	int64_t min_ns, int64_t max_ns, struct err *err)
{
	struct parsed *parsed = NULL;
	struct matcher *m;
	enum err_code rc;
	size_t n;

	if ((rc = parse_selector(&in->arena, match, &parsed, NULL, err)))
		return err_wrap(err, rc, "invalid parameter \"match[]\"");
	if (!(rc = selector_matchers(&in->arena, &parsed->root->selector, &m, &n, err)))
		rc = db_delete_series(w->o.db, m, n, min_ns, max_ns, err);
	parsed_release(parsed);
	return rc;
}

static enum err_code api_delete_all(struct web *w, struct http_in *in, struct err *err)
{
	int64_t start_ns = 0, end_ns = TIME_MAX_NS;
	size_t matches = 0, at = 0;
	struct str match;
	enum err_code rc;

	if ((rc = api_time(in, "start", &start_ns, NULL, err)) ||
		(rc = api_time(in, "end", &end_ns, NULL, err)))
		return rc;
	if (end_ns < start_ns)
		return err_set(err, ERR_INVALID,
			"invalid parameter \"end\": end timestamp must not be before start time");
	while (http_next_param(in, "match[]", &at, &match)) {
		if (matches++ == MATCHES_MAX)
			return err_set(err, ERR_INVALID, "more than %u match[] parameters", MATCHES_MAX);
		rc = api_delete_match(w, in, match, start_ns - 1, end_ns, err);
		if (rc)
			return rc;
	}
	if (!matches)
		return err_set(err, ERR_INVALID, "no match[] parameter provided");
	return ERR_OK;
}

void api_delete_series(struct web *w, struct http_in *in, struct http_out *out)
{
	enum err_code rc;
	struct err err;

	if ((rc = api_delete_all(w, in, &err)))
		api_fail(out, rc, &err);
	else
		out->status = 204;
}

void api_snapshot(struct web *w, struct http_in *in, struct http_out *out)
{
	struct str name;
	enum err_code rc;
	struct err err;
	struct json j;

	if ((rc = db_snapshot(w->o.db, &in->arena, &name, &err))) {
		api_fail(out, rc, &err);
		return;
	}
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "name");
	json_str(&j, name);
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}

/* loss=N, again and again; none: all. */
static enum err_code api_accept(
	struct web *w, struct http_in *in, size_t *accepted, struct err *err)
{
	uint64_t numbers[ACCEPTED_MAX];
	struct str v;
	size_t n = 0, at = 0;

	while (http_next_param(in, "loss", &at, &v)) {
		if (n == ACCEPTED_MAX)
			return err_set(err, ERR_INVALID, "more than %u loss parameters", ACCEPTED_MAX);
		if (!str_to_u64(v, &numbers[n++]))
			return err_set(
				err, ERR_INVALID, "invalid parameter \"loss\": %s is not a number", QUOTED(v));
	}
	return db_accept_losses(w->o.db, numbers, n, accepted, err);
}

void api_accept_losses(struct web *w, struct http_in *in, struct http_out *out)
{
	enum err_code rc;
	size_t accepted;
	struct err err;
	struct json j;

	if ((rc = api_accept(w, in, &accepted, &err))) {
		api_fail(out, rc, &err);
		return;
	}
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "accepted");
	json_u64(&j, accepted);
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}
