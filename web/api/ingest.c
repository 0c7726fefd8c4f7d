/*
 * Ingest: stores a body of pprof, or of a format before it, with the labels in its address, and
 * answers once it is durable.
 */
#include "base/clock.h"
#include "base/quote.h"
#include "promql/syntax/type_names.h"
#include "scrape/body.h"
#include "scrape/receive/receive.h"
#include "web/api/handlers.h"
#include "web/push/push.h"
#include "web/router/envelope.h"

/* ---- what is pushed ---- */

static bool api_is_reserved(struct str name)
{
	return str_is(name, "name") || str_is(name, "time") || str_is(name, "interval") ||
		str_is(name, "cumulative");
}

/* Resolves aliases of the language, so that a profile pushed as name=cpu is found as cpu. */
static enum err_code api_read_name(const struct http_in *in, struct str *out, struct err *err)
{
	struct str name = http_param(in, "name");
	struct type_pattern pattern;

	if (!name.len)
		return err_set(err, ERR_INVALID,
			"invalid parameter \"name\": it is missing; say which profile it is, such "
			"as "
			"process_cpu or memory");
	if (!label_name_valid(name) || name.len > RECEIVE_NAME_BYTES_MAX)
		return err_set(err, ERR_INVALID, "invalid parameter \"name\": %s", QUOTED(name));
	*out = type_pattern_parse(name, &pattern) ? pattern.name : name;
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
			return err_set(err, ERR_INVALID, "%s cannot be the name of a label", QUOTED(p->name));
		if (labels_builder_get(&b, p->name).len)
			return err_set(err, ERR_INVALID, "label " STR_FMT " is given twice", STR_ARG(p->name));
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

static enum err_code api_decode(
	struct http_in *in, struct receive_turn *t, struct received *out, struct err *err)
{
	struct body body;
	struct str name;
	enum err_code rc;

	if ((rc = api_read_name(in, &name, err)) || (rc = api_read_labels(in, name, out, err)))
		return rc;
	receive_tell_labels(t, out->labels);
	if (!in->body.len)
		return err_set(err, ERR_INVALID, "the body is empty; send a profile");
	if ((rc = body_decode(&t->arena, in->body, in->content_type, in->content_encoding,
			 &pprof_limits_default, &body, err)))
		return rc;
	out->profile = body.any.profile;
	out->kinds = body.any.kinds;
	return api_read_times(in, out, err);
}

static void api_write_stored(struct http_out *out, const struct received *r)
{
	struct str warnings[3];
	struct buf at = { 0 };
	struct json j;
	size_t n = 0;

	if (r->dropped)
		warnings[n++] = STR("relabel_configs of push_config drop this profile");
	if (r->overflow)
		warnings[n++] = STR("sample labels were folded into __overflow__");
	if (r->doubted)
		warnings[n++] = STR("stored as amounts that add up; if it counts since its process began, "
							"push it with cumulative=true");

	time_print_rfc3339(&at, r->ts_ns);
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "samples");
	json_u64(&j, r->samples);
	json_key(&j, "time");
	json_str(&j, buf_str(&at));
	json_object_end(&j);
	api_end(&j, warnings, n, NULL, 0);
	buf_release(&at);
}

void api_ingest(struct web *w, struct http_in *in, struct http_out *out)
{
	struct received p = { 0 };
	struct receive_turn turn;
	struct err err;
	enum err_code rc;

	if (push_begin(w, in, out, &turn, &err)) {
		api_error(out, out->status, out->status == 429 ? "too_many_requests" : "unavailable", "%s",
			err.msg);
		return;
	}
	if (!(rc = api_decode(in, &turn, &p, &err))) {
		receive_store(&turn, &p, 1);
		rc = p.rc;
	} else {
		receive_refuse(&turn, 1, &err);
		err_copy(&p.err, &err);
	}
	if (rc == ERR_IO || rc == ERR_NOMEM) /* a commit failed: the same may come again */
		api_error(out, 503, "unavailable", "%s", p.err.msg);
	else if (rc)
		api_fail(out, rc, &p.err);
	else
		api_write_stored(out, &p);
	push_add_retry(out);
	receive_end(&turn);
}
