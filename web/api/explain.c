/*
 * GET|POST /api/v1/explain_query: how a query would be evaluated, or was. It takes the parameters
 * of query, or with a step those of query_range. format=text is for people.
 */
#include "promql/engine/engine.h"
#include "web/api/handlers.h"
#include "web/api/times.h"
#include "web/render/notices.h"
#include "web/router/envelope.h"

static enum err_code api_read_options(
	const struct http_in *in, struct query_options *q, struct err *err)
{
	struct str analyze = http_param(in, "analyze");
	enum err_code rc = api_read_query(in, q, err);

	if (rc)
		return rc;
	q->explain = true;
	q->rows_only = true;
	q->analyze = str_is(analyze, "1") || str_is(analyze, "true");
	if (analyze.len && !q->analyze && !str_is(analyze, "0") && !str_is(analyze, "false"))
		return err_set(err, ERR_INVALID, "invalid parameter \"analyze\": must be 1 or 0");
	return http_param(in, "step").len ? api_read_range(in, q, err) : api_read_instant(in, q, err);
}

void api_explain_query(struct web *w, struct http_in *in, struct http_out *out)
{
	struct query_options o = { 0 };
	const struct result *r;
	struct query *q = NULL;
	struct notices notices;
	struct err err;
	struct json j;
	enum err_code rc = api_read_options(in, &o, &err);

	o.limits = in->user.limits;
	if (!rc)
		rc = query_run_cancelable(w->o.engine, &o, &in->canceled, &q, &err);
	if (!rc) {
		notices = notices_of(query_result(q));
		rc = notices_add_header(&notices, &in->arena, out, &err);
	}
	if (rc) {
		api_fail(out, rc, &err);
		query_close(q);
		return;
	}
	r = query_result(q);
	if (str_is(http_param(in, "format"), "text")) {
		out->content_type = "text/plain; charset=utf-8";
		query_explain_print(q, &out->body);
	} else {
		api_begin(out, &j);
		query_explain_json(q, &j);
		api_end(&j, r->warnings, r->warnings_n, r->infos, r->infos_n);
	}
	query_close(q);
}
