#include "cmd/epitool/local.h"

#include "base/clock.h"
#include "cmd/epitool/progress.h"
#include "promql/engine/engine.h"
#include "tsdb/db.h"
#include "web/render/render.h"
#include "web/router/envelope.h"

static enum err_code local_write_json(
	struct buf *out, const struct query *q, const struct render_options *o, struct err *err)
{
	const struct result *r = query_result(q);
	enum err_code rc = ERR_OK;
	struct json j;

	json_init(&j, out);
	json_object(&j);
	json_key(&j, "status");
	json_cstr(&j, "success");
	json_key(&j, "data");
	if (o)
		rc = render_json(&j, r, o, err);
	else
		query_explain_json(q, &j);
	if (!rc)
		api_end(&j, r->warnings, r->warnings_n, r->infos, r->infos_n);
	return rc;
}

static enum err_code local_render(const struct question *question, struct query *q,
	const struct render_base *base, struct buf *out, struct err *err)
{
	const struct render_format *f = render_format_find(str_of(question->format));
	struct render_options o = {
		.arena = query_arena(q), .rows_max = question->limit, .max_nodes = question->max_nodes
	};

	if (question->report) {
		o.report = &question->report->options;
		o.base = base->p ? base : NULL;
	}
	return f && f != RENDER_JSON ? f->write(query_result(q), &o, out, err) :
								   local_write_json(out, q, &o, err);
}

static void local_set_options(const struct question *q, const char *text, struct query_options *o)
{
	const struct render_format *f = render_format_find(str_of(q->format));

	*o = (struct query_options){
		.text = str_of(text),
		.t_ns = q->has_span ? q->end_ns :
			q->has_time     ? q->time_ns :
							  clock_now_ns(),
		.has_span = q->has_span && !q->step_ns,
		.start_ns = q->start_ns,
		.end_ns = q->end_ns,
		.step_ns = q->step_ns,
		.limit = q->limit,
		.keep_sample_labels = f && f->sample_labels,
		.rows_only = f == RENDER_JSON,
		.explain = q->explain,
		.analyze = q->analyze,
	};
}

static void local_add_notices(struct buf *said, const struct result *r)
{
	for (size_t i = 0; i < r->warnings_n; i++)
		ask_add_notice(said, false, r->warnings[i]);
	for (size_t i = 0; i < r->infos_n; i++)
		ask_add_notice(said, true, r->infos[i]);
}

/* Without a base nothing. */
static enum err_code local_evaluate_base(const struct question *q, struct engine *e,
	struct buf *said, struct arena *a, struct render_base *base, struct err *err)
{
	const struct question_report *r = q->report;
	struct render_options render = { 0 };
	struct query_options o;
	struct query *query = NULL;
	bool is_diff = r && r->diff_base && r->diff_base[0];
	enum err_code rc;

	if (!r || (!is_diff && !(r->base && r->base[0])))
		return ERR_OK;
	base->options = (struct pprof_base_options){ is_diff, r->normalize };
	local_set_options(q, is_diff ? r->diff_base : r->base, &o);
	if (!(rc = query_run_cancelable(e, &o, &interrupted, &query, err))) {
		local_add_notices(said, query_result(query));
		render.arena = query_arena(query);
		rc = render_text_keep_base(query_result(query), &render, a, base, err);
		query_close(query);
	}
	return rc ? err_wrap(err, rc, is_diff ? "diff_base" : "base") : ERR_OK;
}

static enum err_code local_evaluate(const struct question *q, struct engine *e, const char *text,
	struct arena *a, struct buf *answer, struct buf *said, struct err *err)
{
	struct render_base base = { 0 };
	struct query_options o;
	struct query *query = NULL;
	enum err_code rc;

	if ((rc = local_evaluate_base(q, e, said, a, &base, err)))
		return rc;
	local_set_options(q, text, &o);
	if (q->explain) {
		o.keep_sample_labels = false;
		o.rows_only = true;
	}
	if ((rc = query_run_cancelable(e, &o, &interrupted, &query, err)))
		return rc;
	local_add_notices(said, query_result(query));
	if (!q->explain)
		rc = local_render(q, query, &base, answer, err);
	else if (!strcmp(q->format, "text"))
		query_explain_print(query, answer);
	else
		rc = local_write_json(answer, query, NULL, err);
	if (!rc && buf_failed(answer))
		rc = err_nomem(err, "answer");
	query_close(query);
	return rc;
}

enum err_code local_ask(const struct question *q, const char *text, struct buf *answer,
	struct buf *said, struct err *err)
{
	struct db_options d;
	struct engine_options eo = { .timeout_ns = q->client.timeout_ns };
	struct engine *e = NULL;
	struct arena base;
	struct db *db = NULL;
	enum err_code rc;

	db_options_default(&d);
	d.dir = q->data;
	d.read_only = true;
	if ((rc = db_open(&d, &db, err)))
		return rc;
	eo.db = db;
	arena_init(&base, 0);
	if (!(rc = engine_open(&eo, &e, err)))
		rc = local_evaluate(q, e, text, &base, answer, said, err);
	arena_release(&base);
	engine_close(e);
	db_close(db);
	return rc;
}
