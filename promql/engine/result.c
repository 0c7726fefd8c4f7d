/*
 * Evaluation of a whole query, and the shape its answer takes.
 */
#include <stdlib.h>

#include "base/metrics.h"
#include "promql/costs/costs.h"
#include "promql/engine/engine_internal.h"
#include "promql/eval.h"
#include "promql/numeric.h"
#include "promql/over_time.h"
#include "promql/subquery.h"
#include "promql/unit.h"

METRIC_COUNTER(samples_total, "epimetheus_query_samples_total", "Samples read by queries.", NULL);

/* ---- the span of the query ---- */

struct span_walk {
	struct time_window all;
	bool any; /* selector was met */
};

static void span_walk_add_window(struct span_walk *w, struct eval *ev, const struct selector *s)
{
	bool steps = ev->times.mode == EVAL_RANGE;
	struct time_window a = selector_window(
		&ev->times, s, steps ? ev->times.first_ns : ev->work.t_ns);
	struct time_window b = selector_window(
		&ev->times, s, steps ? ev->times.last_ns : ev->work.t_ns);
	struct time_window first = numeric_window(
		&ev->times, s, steps ? ev->times.first_ns : ev->work.t_ns);
	struct time_window last = numeric_window_read(
		&ev->times, s, steps ? ev->times.last_ns : ev->work.t_ns);

	rate_span(s, &a, &b);
	a.min_ns = first.min_ns < a.min_ns ? first.min_ns : a.min_ns;
	b.max_ns = last.max_ns > b.max_ns ? last.max_ns : b.max_ns;
	if (!w->any || a.min_ns < w->all.min_ns)
		w->all.min_ns = a.min_ns;
	if (!w->any || b.max_ns > w->all.max_ns)
		w->all.max_ns = b.max_ns;
	w->any = true;
}

/* Adds the windows of the selectors of e, evaluated at all steps of ev. */
static enum err_code span_walk_add_windows(
	struct span_walk *w, struct eval *ev, const struct expr *e, struct err *err)
{
	enum err_code rc = ERR_OK;
	struct eval in;

	switch (e->kind) {
	case EXPR_SELECTOR:
		if (e->types != VALUE_FRAMES)
			span_walk_add_window(w, ev, &e->selector);
		return ERR_OK;
	case EXPR_SUBQUERY:
		if ((rc = subquery_scope(ev, e, &in, err)))
			return rc;
		return span_walk_add_windows(w, &in, e->subquery.arg, err);
	case EXPR_PAREN:
		return span_walk_add_windows(w, ev, e->paren, err);
	case EXPR_UNARY:
		return span_walk_add_windows(w, ev, e->unary.arg, err);
	case EXPR_BINARY:
		rc = span_walk_add_windows(w, ev, e->binary.lhs, err);
		return rc ? rc : span_walk_add_windows(w, ev, e->binary.rhs, err);
	case EXPR_CALL:
		for (size_t i = 0; i < e->call.args_n && !rc; i++)
			rc = span_walk_add_windows(w, ev, e->call.args[i], err);
		return rc;
	case EXPR_NUMBER:
	case EXPR_STRING:
		break;
	}
	return ERR_OK;
}

/* ---- one time ---- */

static void result_truncate(struct query *q, size_t limit)
{
	static const struct str warning = STR("results truncated due to limit");

	if (limit == 0 || q->result.n <= limit)
		return;
	q->result.n = limit;
	q->result.warnings = &warning;
	q->result.warnings_n = 1;
}

/* Samples of a pprof profile are each there once, whichever epochs have them. */
static enum err_code result_join_epochs(struct query *q, struct eval *ev, struct err *err)
{
	struct result *r = &q->result;
	struct profile_value *joined = arena_array(&q->arena, struct profile_value, r->n + 1);
	enum err_code rc = ERR_OK;

	if (!joined)
		return arena_fail(&q->arena, "query", err);
	for (size_t i = 0; i < r->n && !rc; i++)
		rc = profile_joined(&ev->work, &r->profiles[i], &joined[i], err);
	r->profiles = joined;
	return rc;
}

static enum err_code result_evaluate_once(struct query *q, struct eval *ev, struct err *err)
{
	struct result *r = &q->result;
	struct value v;
	struct pprof *scrape;
	enum err_code rc;

	if (q->o.whole_scrape) {
		if ((rc = eval_scrape(ev, q->parsed->root, &scrape, err)))
			return rc;
		r->type = RESULT_SCRAPE;
		r->scrape = scrape;
		return ERR_OK;
	}
	rc = q->o.totals ? eval_totals(ev, q->parsed->root, &v, err) : eval_root(ev, &v, err);
	if (rc)
		return rc;
	r->n = v.n;
	if (v.type == VALUE_SCALAR) {
		r->type = RESULT_SCALAR;
		r->scalar = v.scalar;
	} else if (v.type == VALUE_STRING) {
		r->type = RESULT_STRING;
		r->string = v.string;
	} else if (v.type == VALUE_TABLE) {
		r->type = RESULT_TOP;
		r->tops = v.tops;
	} else if (v.type == VALUE_RANGE) {
		r->type = RESULT_MATRIX;
		r->matrix = v.series;
		result_truncate(q, q->o.limit);
	} else if (v.type & VALUE_PROFILES) {
		r->type = RESULT_PROFILES;
		r->profiles = v.profiles;
		r->tops = ev->tables;
		if (q->o.keep_sample_labels && (rc = result_join_epochs(q, ev, err)))
			return rc;
	} else {
		r->type = RESULT_VECTOR;
		r->vector = v.costs;
		if ((rc = costs_distinct(v.costs, v.n, err)))
			return rc;
		result_truncate(q, q->o.limit);
	}
	return ERR_OK;
}

/* ---- all of it ---- */

static enum err_code result_append(struct query *q, const struct str **to, size_t *to_n,
	const struct str *from, size_t n, struct err *err)
{
	struct str *all;

	if (n == 0)
		return ERR_OK;
	if (!(all = arena_array(&q->arena, struct str, *to_n + n)))
		return arena_fail(&q->arena, "query", err);
	if (*to_n)
		memcpy(all, *to, *to_n * sizeof(*all));
	memcpy(all + *to_n, from, n * sizeof(*all));
	*to = all;
	*to_n += n;
	return ERR_OK;
}

static int result_by_text(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* A slow answer may be quick alone. So it says what it waited for, and which flag limits that. */
static enum err_code result_add_waits(struct query *q, struct err *err)
{
	const struct engine_options *o = &q->engine->o;
	int64_t starved = query_starved_ns(q);
	struct result *r = &q->result;
	struct str text[2];
	size_t n = 0;

	if (q->in_line_ns >= o->wait_told_ns)
		text[n++] = str_of(arena_printf(&q->arena,
			"waited %.1f s for a turn: %u queries run at once (--query.max-concurrency)",
			(double)q->in_line_ns / 1e9, o->concurrency_max));
	if (starved >= o->wait_told_ns)
		text[n++] = str_of(arena_printf(&q->arena,
			"waited %.1f s for memory that other queries had (--query.max-memory-total)",
			(double)starved / 1e9));
	for (size_t i = 0; i < n; i++)
		if (!text[i].ptr)
			return arena_fail(&q->arena, "query", err);
	return n ? result_append(q, &r->infos, &r->infos_n, text, n, err) : ERR_OK;
}

/* Adds the database's warnings about damage and its infos to ours. */
static enum err_code result_add_notices(struct query *q, struct eval *ev, struct err *err)
{
	struct result *r = &q->result;
	bool is_list = r->type != RESULT_SCALAR && r->type != RESULT_STRING && r->type != RESULT_SCRAPE;
	struct str *sorted;
	const struct str *v;
	enum err_code rc;
	size_t n;

	if (q->o.hints && is_list && r->n == 0 && (rc = hints_add(q, ev, err)))
		return rc;
	if ((rc = result_append(q, &r->infos, &r->infos_n, q->infos.v, q->infos.n, err)) ||
		(rc = result_add_waits(q, err)) || !q->querier)
		return rc;
	v = db_querier_warnings(q->querier, &n);
	if ((rc = result_append(q, &r->warnings, &r->warnings_n, v, n, err)))
		return rc;
	v = naming_warnings(q->naming, &n);
	if ((rc = result_append(q, &r->warnings, &r->warnings_n, v, n, err)))
		return rc;
	v = db_querier_infos(q->querier, &n);
	if (n == 0)
		return ERR_OK;
	if (!(sorted = arena_array(&q->arena, struct str, n)))
		return arena_fail(&q->arena, "query", err);
	memcpy(sorted, v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*sorted), result_by_text); /* threads do not meet them in an order */
	return result_append(q, &r->infos, &r->infos_n, sorted, n, err);
}

static enum err_code result_open_forks(struct query *q, struct eval *ev, struct err *err)
{
	unsigned n = workers_threads(q->engine->workers);

	if (n < 2 || !ev->supply->querier)
		return ERR_OK;
	if (!(ev->supply->forks = arena_array(&q->arena, struct supply_fork, n)))
		return arena_fail(&q->arena, "query", err);
	for (unsigned i = 0; i < n; i++)
		arena_init_shared(&ev->supply->forks[i].arena, &q->memory);
	ev->supply->workers = q->engine->workers;
	ev->supply->parallel_samples = q->engine->o.parallel_samples;
	return ERR_OK;
}

static void result_close_forks(struct eval *ev)
{
	for (unsigned i = 0; ev->supply->forks && i < workers_threads(ev->supply->workers); i++) {
		struct supply_fork *f = &ev->supply->forks[i];

		if (f->querier)
			db_querier_join(ev->supply->querier, f->querier);
		db_querier_close(f->querier);
		arena_release(&f->arena);
	}
}

static enum err_code result_evaluate_range(struct query *q, struct eval *ev, struct err *err)
{
	struct result *r = &q->result;
	enum err_code rc;

	if (q->parsed->root->types & (VALUE_STRING | VALUE_TABLE | VALUE_RANGE))
		return err_set(err, ERR_INVALID,
			"invalid expression type \"%s\" for range query, must be "
			"scalar, costs or profiles",
			q->parsed->root->types & VALUE_STRING    ? "string" :
				q->parsed->root->types & VALUE_TABLE ? "table" :
													   "range of costs");
	r->type = RESULT_MATRIX;
	rc = steps_evaluate(ev, &r->matrix, &r->n, err);
	result_truncate(q, q->o.limit);
	return rc;
}

static enum err_code result_plan_and_evaluate(struct query *q, struct eval *ev, struct err *err)
{
	const struct query_options *o = &q->o;
	enum err_code rc = ERR_OK;

	if (!o->whole_scrape && ev->supply->querier) {
		if (ev->times.mode == EVAL_RANGE)
			ev->work.t_ns = ev->times.start_ns;
		if ((rc = plan_query(ev, err)))
			return rc;
	}
	if (o->explain && !o->analyze)
		return ERR_OK;
	if ((rc = plan_check(&q->plan, err)))
		return rc;
	return ev->times.mode == EVAL_RANGE ? result_evaluate_range(q, ev, err) :
										  result_evaluate_once(q, ev, err);
}

enum err_code query_evaluate(struct query *q, struct err *err)
{
	const struct query_options *o = &q->o;
	const struct engine_options *limits = &q->engine->o;
	struct span_walk span = { 0 };
	struct supply supply = {
		.samples_max = limits->samples_max,
		.rate_groups_ns = limits->rate_groups_ns,
	};
	struct eval ev = {
		.work = { .query = q->parsed,
			.arena = &q->arena,
			.whole = &q->arena,
			.budget = &q->memory,
			.infos = &q->infos,
			.stop = &q->stop,
			.t_ns = o->has_span ? o->end_ns : o->t_ns },
		.times = { .mode = o->step_ns > 0 ? EVAL_RANGE :
				o->has_span               ? EVAL_SPAN :
											EVAL_INSTANT,
			.start_ns = o->t_ns,
			.end_ns = o->t_ns,
			.step_ns = o->step_ns,
			.query_step_ns = o->step_ns,
			.subquery_step_ns = engine_subquery_step(q->engine),
			.lookback_ns = limits->lookback_ns },
		.supply = &supply,
		.plan = &q->plan,
		.reader = &reader_reads,
		.timed = o->analyze,
		.all_sample_labels = o->keep_sample_labels,
		.rows_only = o->rows_only,
		.with_tables = o->tables,
	};
	enum err_code rc;

	q->infos.n = 0; /* it may be a second attempt */
	if (ev.times.mode != EVAL_INSTANT) {
		ev.times.start_ns = o->start_ns;
		ev.times.end_ns = o->end_ns;
	}
	if (ev.times.mode == EVAL_RANGE) {
		ev.work.steps = (uint64_t)((ev.times.end_ns - ev.times.start_ns) / ev.times.step_ns) + 1;
		ev.times.first_ns = ev.times.start_ns;
		ev.times.last_ns = ev.times.start_ns + (int64_t)(ev.work.steps - 1) * ev.times.step_ns;
	}
	if ((rc = span_walk_add_windows(&span, &ev, q->parsed->root, err)) ||
		(span.any &&
			(rc = db_querier_open_limited(limits->db, o->limits, span.all.min_ns, span.all.max_ns,
				 &q->stop, &q->querier, err))))
		return rc;
	supply.querier = q->querier;
	if ((rc = naming_open(limits->indexes, &q->arena, &q->naming, err)))
		return rc;
	supply.naming = q->naming;
	if (o->files && (rc = file_set_open(o->files, &q->memory, &q->files, err)))
		return rc;
	ev.files = q->files;
	if ((rc = eval_prepare(&ev, err)))
		return rc;
	q->result.t_ns = ev.work.t_ns;
	q->plan.samples_max = limits->samples_max;
	q->plan.memory_bytes_max = limits->memory_bytes_max;
	q->plan.analyze = o->analyze;
	q->plan.checked = !o->explain || o->analyze;
	if (!(rc = result_open_forks(q, &ev, err)))
		rc = result_plan_and_evaluate(q, &ev, err);
	result_close_forks(&ev);
	numeric_release(&ev);
	subquery_release(&ev);
	metric_add(&samples_total, NULL, (double)supply.samples);
	if (!rc &&
		(q->result.type == RESULT_VECTOR || q->result.type == RESULT_MATRIX ||
			q->result.type == RESULT_SCALAR))
		q->result.unit = unit_of_query(&ev);
	return rc ? rc : result_add_notices(q, &ev, err);
}
