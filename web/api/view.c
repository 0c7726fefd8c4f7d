#include "web/api/view.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "web/router/envelope.h"

#define DAMAGE_SHOWN 16u
#define TRUNCATED "results truncated due to limit"

enum err_code view_read_matches(struct view *v, struct err *err)
{
	struct str match;
	size_t at = 0;
	enum err_code rc;

	while (http_next_param(v->in, "match[]", &at, &match)) {
		if (v->matches_n == VIEW_MATCHES_MAX)
			return err_set(err, ERR_INVALID, "more than %u match[] parameters", VIEW_MATCHES_MAX);
		rc = parse_selector(&v->in->arena, match, &v->matches[v->matches_n], NULL, err);
		if (rc)
			return err_wrap(err, rc, "invalid parameter \"match[]\"");
		v->matches_n++;
	}
	return ERR_OK;
}

static bool view_has(const struct view *v, const char *name)
{
	return operation_has_param(v->in->route->op, str_of(name));
}

enum err_code view_open_at(struct view *v, struct web *w, struct http_in *in, int64_t min_ns,
	int64_t max_ns, struct err *err)
{
	enum err_code rc;

	*v = (struct view){ .in = in };
	if (view_has(v, "limit") && (rc = api_uint(in, "limit", &v->limit, err)))
		return rc;
	if (view_has(v, "match[]") && (rc = view_read_matches(v, err)))
		return rc;
	return db_querier_open_limited(
		w->o.db, in->user.limits, min_ns, max_ns, &in->canceled, &v->q, err);
}

enum err_code view_open(struct view *v, struct web *w, struct http_in *in, struct err *err)
{
	int64_t start_ns = -TIME_MAX_NS, end_ns = TIME_MAX_NS;
	enum err_code rc;

	*v = (struct view){ .in = in };
	if ((rc = api_time(in, "start", &start_ns, NULL, err)))
		return rc;
	if ((rc = api_time(in, "end", &end_ns, NULL, err)))
		return rc;
	if (end_ns < start_ns)
		return err_set(err, ERR_INVALID,
			"invalid parameter \"end\": end timestamp must not be before start time");
	return view_open_at(v, w, in, start_ns - 1, end_ns, err);
}

void view_close(struct view *v)
{
	if (v->q)
		db_querier_close(v->q);
	for (size_t i = 0; i < v->matches_n; i++)
		parsed_release(v->matches[i]);
	for (struct view_regex *r = v->regexes; r; r = r->next)
		regex_free(r->re);
}

static enum err_code api_say_how_to_ask_for_less(struct err *err)
{
	struct err why = *err;

	return err_set(err, ERR_LIMIT, "%s: set `limit` or `match[]`", why.msg);
}

void view_answer(struct web *w, struct http_in *in, struct http_out *out, void *ctx,
	enum err_code (*write)(struct view *v, struct http_out *out, void *ctx, struct err *err))
{
	struct view v;
	struct err err;
	enum err_code rc = view_open(&v, w, in, &err);

	if (!rc && (rc = write(&v, out, ctx, &err)) == ERR_LIMIT)
		rc = api_say_how_to_ask_for_less(&err);
	if (rc)
		api_fail(out, rc, &err);
	view_close(&v);
}

/* A matcher that takes some names and no other. */
static enum err_code api_match_names(
	struct view *v, const struct str *names, size_t n, struct matcher *out, struct err *err)
{
	struct arena *a = &v->in->arena;
	struct view_regex *kept = arena_new(a, struct view_regex);
	struct buf text = { 0 };
	struct str pattern;
	enum err_code rc;

	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_add_char(&text, '|');
		for (size_t k = 0; k < names[i].len; k++) {
			if (strchr("\\.+*?()|[]{}^$", names[i].ptr[k]))
				buf_add_char(&text, '\\');
			buf_add_char(&text, names[i].ptr[k]);
		}
	}
	pattern = str_dup(a, buf_str(&text));
	buf_release(&text);
	if (!kept || !pattern.ptr)
		return arena_fail(a, "matchers", err);
	if ((rc = matcher_init(out, MATCH_RE, STR(LABEL_NAME), pattern, err)))
		return rc;
	*kept = (struct view_regex){ v->regexes, out->re };
	v->regexes = kept;
	return ERR_OK;
}

enum err_code view_resolve(struct view *v, const struct selector *s, struct matcher **m, size_t *n,
	struct type_pattern *pattern, struct err *err)
{
	struct str names[TYPE_PATTERN_NAMES_MAX] = { s->name };
	size_t names_n = 1;
	enum err_code rc;

	*pattern = (struct type_pattern){ 0 };
	*n = 0;
	if (!(*m = arena_array(&v->in->arena, struct matcher, s->matchers_n + 1)))
		return arena_fail(&v->in->arena, "matchers", err);
	if (s->name.len && type_pattern_parse(s->name, pattern))
		names_n = type_pattern_names(pattern, names);
	if (names_n > 1 && (rc = api_match_names(v, names, names_n, *m, err)))
		return rc;
	if (names_n == 1 && s->name.len)
		**m = (struct matcher){ .op = MATCH_EQ, .name = STR(LABEL_NAME), .value = names[0] };
	*n = s->name.len > 0;
	for (size_t i = 0; i < s->matchers_n; i++)
		(*m)[(*n)++] = s->matchers[i];
	return ERR_OK;
}

enum err_code view_has_type(struct view *v, const struct db_series *s, const struct type_pattern *p,
	struct arena *scratch, bool *has, struct err *err)
{
	struct str name = labels_get(s->labels, STR(LABEL_NAME));
	struct profile_type *types;
	size_t n = 0;
	enum err_code rc = ERR_OK;

	*has = p->parts > 1 ? type_pattern_is_whole(p, name) : !type_pattern_is_elsewhere(p, name);
	if (*has || (rc = db_series_types(v->q, s, scratch, &types, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !*has; i++)
		*has = type_pattern_match(p, &types[i]);
	return ERR_OK;
}

void view_warn(struct view *v, const char *fmt, ...)
{
	char text[256];
	va_list args;
	char *own;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	own = arena_strndup(&v->in->arena, text, strlen(text));
	if (own && v->said_n < VIEW_WARNINGS_MAX)
		v->said[v->said_n++] = str_of(own);
}

void view_end(struct json *j, const struct view *v, size_t n)
{
	struct str warnings[DAMAGE_SHOWN + VIEW_WARNINGS_MAX + 1];
	size_t total, infos_n, k = 0;
	const struct str *damage = db_querier_warnings(v->q, &total);
	const struct str *infos = db_querier_infos(v->q, &infos_n);

	while (k < total && k < DAMAGE_SHOWN) {
		warnings[k] = damage[k];
		k++;
	}
	for (size_t i = 0; i < v->said_n; i++)
		warnings[k++] = v->said[i];
	if (v->limit && n > v->limit)
		warnings[k++] = STR(TRUNCATED);
	api_end(j, warnings, k, infos, infos_n);
}

void view_strings_write(struct http_out *out, const struct view *v, const struct router_strings *s)
{
	struct json j;

	api_begin(out, &j);
	json_array(&j);
	for (size_t i = 0; i < s->n && (!v->limit || i < v->limit); i++)
		json_str(&j, s->v[i]);
	json_array_end(&j);
	view_end(&j, v, s->n);
}
