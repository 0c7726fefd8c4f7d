/*
 * Ingest: stores a profile of any format that files have (proto/any), with the labels in its
 * address, and answers once it is durable. A recording of Java brings several, and their names.
 */
#include "base/clock.h"
#include "base/quote.h"
#include "promql/syntax/type_names.h"
#include "proto/any/any.h"
#include "scrape/body.h"
#include "scrape/receive/receive.h"
#include "web/api/handlers.h"
#include "web/push/push.h"
#include "web/router/envelope.h"

#define API_WARNINGS_MAX (4u + ANY_NOTES_MAX)

/* ---- what is pushed ---- */

static bool api_is_reserved(struct str name)
{
	return str_is(name, "name") || str_is(name, "time") || str_is(name, "interval") ||
		str_is(name, "cumulative");
}

/*
 * Resolves aliases of the language, so that a profile pushed as name=cpu is found as cpu. Empty: it
 * is left out.
 */
static enum err_code api_read_name(const struct http_in *in, struct str *out, struct err *err)
{
	struct str name = http_param(in, "name");
	struct type_pattern pattern;

	*out = name;
	if (!name.len)
		return ERR_OK;
	if (!label_name_valid(name) || name.len > RECEIVE_NAME_BYTES_MAX)
		return err_set(err, ERR_INVALID, "invalid parameter \"name\": %s", QUOTED(name));
	if (type_pattern_parse(name, &pattern))
		*out = pattern.name;
	return ERR_OK;
}

static enum err_code api_read_labels(
	struct http_in *in, struct str name, struct received *out, struct err *err)
{
	struct labels_builder b;

	labels_builder_init(&b, &in->arena, (struct labels){ 0 });
	for (size_t i = 0; i < in->params_n; i++) {
		const struct http_param *p = &in->params[i];

		if (api_is_reserved(p->name))
			continue;
		if (!label_name_valid(p->name) || str_has_prefix(p->name, STR("__")))
			return err_set(err, ERR_INVALID, "%s is not a label name", QUOTED(p->name));
		if (labels_builder_get(&b, p->name).len)
			return err_set(err, ERR_INVALID, "label " STR_FMT " is set twice", STR_ARG(p->name));
		labels_builder_set(&b, p->name, p->value);
	}
	labels_builder_set(&b, STR(LABEL_NAME), name);
	return labels_builder_build(&b, &out->labels, err);
}

static enum err_code api_read_times(const struct http_in *in, struct received *out, struct err *err)
{
	struct str cumulative = http_param(in, "cumulative");
	bool has_interval;
	enum err_code rc;

	out->convert = str_is(cumulative, "true");
	if (cumulative.len && !out->convert && !str_is(cumulative, "false"))
		return err_set(err, ERR_INVALID,
			"invalid parameter \"cumulative\": %s is not true or false", QUOTED(cumulative));

	if ((rc = api_time(in, "time", &out->ts_ns, NULL, err)) ||
		(rc = api_duration(in, "interval", &out->interval_ns, &has_interval, err)))
		return rc;
	if (has_interval && (out->interval_ns <= 0 || out->interval_ns > RECEIVE_INTERVAL_MAX_NS))
		return err_set(err, ERR_INVALID,
			"invalid parameter \"interval\": must be more than 0 and at most a day");
	return ERR_OK;
}

/* What one request stores: of a recording of Java several profiles, else one. */
struct api_pushed {
	struct received *v;
	size_t n;
	struct any_file file;
	struct buf left_out; /* names of profiles of the recording that `name` does not choose */
};

static void api_print_names(const struct any_file *f, struct buf *out)
{
	for (uint32_t i = 0; i < f->n; i++)
		buf_printf(out, "%s" STR_FMT, i ? ", " : "", STR_ARG(f->v[i].name));
}

/* The one called so, where the file has several; all without a name. */
static bool api_is_chosen(const struct any_file *f, uint32_t i, struct str name)
{
	return f->n == 1 || !name.len || str_eq(f->v[i].name, name);
}

static enum err_code api_add_profile(struct http_in *in, struct str name,
	const struct any_profile *from, struct api_pushed *p, struct err *err)
{
	struct received *to = &p->v[p->n];
	enum err_code rc;

	*to = (struct received){ .profile = from->pprof,
		.kinds = from->has_kinds ? from->kinds : NULL };
	if ((rc = api_read_labels(in, name.len ? name : from->name, to, err)) ||
		(rc = api_read_times(in, to, err)))
		return rc;
	p->n++;
	return ERR_OK;
}

static enum err_code api_add_profiles(
	struct http_in *in, struct arena *a, struct str name, struct api_pushed *p, struct err *err)
{
	const struct any_file *f = &p->file;
	struct buf names = { 0 };
	enum err_code rc = ERR_OK;

	if (!name.len && f->format != ANY_JFR)
		return err_set(err, ERR_INVALID,
			"invalid parameter \"name\": missing; use the profile's name, such as process_cpu or "
			"memory");
	if (!(p->v = arena_array(a, struct received, f->n)))
		return arena_fail(a, "profile", err);
	for (uint32_t i = 0; i < f->n && !rc; i++) {
		if (api_is_chosen(f, i, name))
			rc = api_add_profile(in, name, &f->v[i], p, err);
		else
			buf_printf(
				&p->left_out, "%s" STR_FMT, p->left_out.len ? ", " : "", STR_ARG(f->v[i].name));
	}
	if (rc || p->n)
		return rc;
	api_print_names(f, &names);
	err_set(err, ERR_INVALID,
		"invalid parameter \"name\": the recording has no %s; it has " STR_FMT, QUOTED(name),
		STR_ARG(buf_str(&names)));
	buf_release(&names);
	return ERR_INVALID;
}

static enum err_code api_decode(
	struct http_in *in, struct receive_turn *t, struct api_pushed *p, struct err *err)
{
	struct arena *a = &t->arena;
	struct received first = { 0 };
	struct str body = in->body, name;
	enum err_code rc;

	if ((rc = api_read_name(in, &name, err)) || (rc = api_read_labels(in, name, &first, err)))
		return rc;
	receive_tell_labels(t, first.labels);
	if (!body.len)
		return err_set(err, ERR_INVALID, "the body is empty; send a profile");
	if ((rc = body_undo_transport(a, in->content_encoding, &pprof_limits_default, &body, err)) ||
		(rc = any_decode(a, body, STR(""), &p->file, err)))
		return rc;
	return api_add_profiles(in, a, name, p, err);
}

static void api_write_stored_time(struct json *j, int64_t ns)
{
	struct buf at = { 0 };

	time_print_rfc3339(&at, ns);
	json_key(j, "time");
	json_str(j, buf_str(&at));
	buf_release(&at);
}

static void api_write_profiles(struct json *j, const struct api_pushed *p)
{
	json_key(j, "profiles");
	json_array(j);
	for (size_t i = 0; i < p->n; i++) {
		json_object(j);
		json_key(j, "name");
		json_str(j, labels_get(p->v[i].labels, STR(LABEL_NAME)));
		json_key(j, "samples");
		json_u64(j, p->v[i].samples);
		api_write_stored_time(j, p->v[i].ts_ns);
		json_object_end(j);
	}
	json_array_end(j);
}

/* At most API_WARNINGS_MAX; each is given once, of however many profiles. */
static size_t api_find_warnings(struct api_pushed *p, struct str *warnings)
{
	bool dropped = false, overflow = false, doubted = false;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		dropped |= p->v[i].dropped;
		overflow |= p->v[i].overflow;
		doubted |= p->v[i].doubted;
	}
	if (dropped)
		warnings[n++] = STR("relabel_configs of push_config drop this profile");
	if (overflow)
		warnings[n++] = STR("sample labels were folded into __overflow__");
	if (doubted)
		warnings[n++] = STR("stored as amounts that add up; for counters since the process "
			"began, push with cumulative=true");
	for (uint32_t i = 0; i < p->file.notes_n; i++)
		warnings[n++] = p->file.notes[i];
	if (p->left_out.len) {
		buf_add_cstr(&p->left_out, " of the recording: not stored, since name chooses another");
		warnings[n++] = buf_str(&p->left_out);
	}
	return n;
}

static void api_write_stored(struct http_out *out, struct api_pushed *p)
{
	struct str warnings[API_WARNINGS_MAX];
	size_t n = api_find_warnings(p, warnings);
	uint64_t samples = 0;
	struct json j;

	for (size_t i = 0; i < p->n; i++)
		samples += p->v[i].samples;
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "samples");
	json_u64(&j, samples);
	api_write_stored_time(&j, p->v[0].ts_ns);
	api_write_profiles(&j, p);
	json_object_end(&j);
	api_end(&j, warnings, n, NULL, 0);
}

void api_ingest(struct web *w, struct http_in *in, struct http_out *out)
{
	struct api_pushed p = { 0 };
	const struct received *failed;
	struct receive_turn turn;
	struct err err;
	enum err_code rc;

	if (push_begin(w, in, out, &turn, &err)) {
		api_error(out, out->status, out->status == 429 ? "too_many_requests" : "unavailable", "%s",
			err.msg);
		return;
	}
	if ((rc = api_decode(in, &turn, &p, &err))) {
		receive_refuse(&turn, 1, &err);
	} else {
		receive_store(&turn, p.v, p.n);
		if ((failed = push_failed(p.v, p.n))) {
			rc = failed->rc;
			err_copy(&err, &failed->err);
		}
	}
	if (rc == ERR_IO || rc == ERR_NOMEM) /* a commit failed: the same may come again */
		api_error(out, 503, "unavailable", "%s", err.msg);
	else if (rc)
		api_fail(out, rc, &err);
	else
		api_write_stored(out, &p);
	push_add_retry(out);
	buf_release(&p.left_out);
	receive_end(&turn);
}
