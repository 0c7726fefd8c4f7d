#include "promql/eval.h"

#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "promql/choose.h"
#include "promql/costs/costs.h"
#include "promql/files/files.h"
#include "promql/numeric.h"
#include "promql/over_time.h"
#include "promql/plan.h"
#include "promql/profiles/filter.h"
#include "promql/profiles/flat.h"
#include "promql/profiles/profiles.h"
#include "promql/profiles/tag_frames.h"
#include "promql/reader.h"
#include "promql/syntax/check.h"
#include "promql/unit.h"

/* The value must be one of `types`; an empty selector may be any of its own. */
static enum err_code eval_require(struct eval *ev, const struct expr *call, const struct expr *arg,
	struct value *v, unsigned types, struct err *err)
{
	struct buf want = { 0 }, got = { 0 };
	enum err_code rc;

	if (v->type & types) {
		v->type = types;
		return ERR_OK;
	}
	if (call->kind == EXPR_CALL && types == VALUE_COSTS && v->type == VALUE_PROFILES) {
		check_print_numbers(&want, call->call.fn, arg);
		rc = work_fault(&ev->work, arg, err, ERR_INVALID, STR_FMT, STR_ARG(buf_str(&want)));
		buf_release(&want);
		return rc;
	}
	value_types_print(&want, types);
	value_types_print(&got, v->type);
	rc = work_fault(&ev->work, arg, err, ERR_INVALID, "%s%s needs " STR_FMT ", got " STR_FMT,
		call->kind == EXPR_CALL ? call->call.fn->name : "the sign",
		call->kind == EXPR_CALL ? "()" : "", STR_ARG(buf_str(&want)), STR_ARG(buf_str(&got)));
	buf_release(&want);
	buf_release(&got);
	return rc;
}

static enum err_code eval_arg(struct eval *ev, const struct expr *e, size_t i, unsigned types,
	struct value *out, struct err *err)
{
	enum err_code rc = eval_exact(ev, e->call.args[i], out, err);

	return rc ? rc : eval_require(ev, e, e->call.args[i], out, types, err);
}

/* ---- profiles ---- */

/* The part of profiles that is wanted. */
enum want { WANT_CELLS, WANT_TOTALS, WANT_NAMES };

static enum err_code eval_select_noted(struct eval *ev, const struct expr *e,
	const struct merging *m, struct value *out, struct err *err)
{
	enum err_code rc = choose_profiles(ev, e, m, out, err);

	return rc ? rc : unit_note(ev, e, out, err);
}

/*
 * Selectors and merges of them. Gauges come out unrounded, so that rounding happens once. Filters
 * below merges are left out here: filters_apply applies them later, and they need cells.
 */
static enum err_code eval_merging(
	struct eval *ev, const struct expr *e, enum want want, struct value *out, struct err *err)
{
	struct merging m = { .each = true };
	const struct expr *arg, *call;
	enum err_code rc;

	e = expr_strip(e);
	if (filters_wait(e))
		want = WANT_CELLS;
	m.totals_only = want == WANT_TOTALS;
	m.by_name = want == WANT_NAMES;
	if (e->kind == EXPR_SELECTOR)
		return eval_select_noted(ev, e, &m, out, err);
	if (over_is(e))
		return eval_over(ev, e, &m, out, err);
	if (filter_is(e)) {
		arg = e->call.args[0];
		rc = eval_merging(ev, arg, WANT_CELLS, out, err);
		return rc ? rc : eval_require(ev, e, arg, out, VALUE_PROFILES, err);
	}
	if (e->kind != EXPR_CALL || e->call.fn->id != FN_MERGE)
		return eval_exact(ev, e, out, err);
	call = e;
	arg = expr_strip(e->call.args[0]);
	while (filter_is(arg)) {
		call = arg;
		arg = expr_strip(arg->call.args[0]);
	}
	if (arg->kind == EXPR_SELECTOR || over_is(arg)) {
		m.each = false;
		m.grouping = e->call.grouping;
		m.labels = e->call.labels;
		rc = over_is(arg) ? eval_over(ev, arg, &m, out, err) :
							eval_select_noted(ev, arg, &m, out, err);
		if (rc || (rc = eval_require(ev, call, arg, out, VALUE_PROFILES, err)))
			return rc;
		if (e->call.grouping != GROUPING_BY || !profiles_need_split(out, e->call.labels))
			return ERR_OK;
	} else if ((rc = eval_merging(ev, arg, want, out, err)) ||
		(rc = eval_require(ev, call, arg, out, VALUE_PROFILES, err))) {
		return rc;
	}
	return profiles_merge(&ev->work, out, e->call.grouping, e->call.labels, out, err);
}

enum err_code eval_totals(struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	bool waiting = filters_wait(e);
	struct value v;
	enum err_code rc;

	if ((rc = eval_merging(ev, e, WANT_TOTALS, &v, err)) ||
		(waiting &&
			((rc = profiles_settle(&ev->work, &v, err)) ||
				(rc = filters_apply(&ev->work, e, &v, err)))))
		return rc;
	if (!(v.type & VALUE_PROFILES)) {
		*out = v;
		return ERR_OK;
	}
	*out = (struct value){ .type = VALUE_COSTS };
	if (!(out->costs = arena_array(ev->work.arena, struct cost, v.n + 1)))
		return work_nomem(&ev->work, err);
	for (size_t i = 0; i < v.n; i++)
		out->costs[out->n++] = (struct cost){ .metric = v.profiles[i].metric,
			.value = profile_total_cost(&v.profiles[i]),
			.t_ns = ev->work.t_ns };
	return ERR_OK;
}

static bool promql_eval_is_merging(const struct expr *e)
{
	e = expr_strip(e);
	return e->kind == EXPR_SELECTOR || (e->kind == EXPR_CALL && e->call.fn->id == FN_MERGE);
}

static enum err_code eval_call_merging(
	struct eval *ev, const struct expr *e, enum want want, struct value *out, struct err *err)
{
	enum err_code rc;

	if ((rc = eval_merging(ev, e, want, out, err)) || !(out->type & VALUE_PROFILES) ||
		(rc = profiles_settle(&ev->work, out, err)))
		return rc;
	return filters_apply(&ev->work, e, out, err);
}

/* Merges, filters, and functions over windows that give profiles. */
static enum err_code eval_call_merge(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	return eval_call_merging(ev, e, WANT_CELLS, out, err);
}

static enum err_code eval_call_diff(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	struct value l, r;
	enum err_code rc;

	if ((rc = eval_arg(ev, e, 0, VALUE_PROFILES, &l, err)) ||
		(rc = eval_arg(ev, e, 1, VALUE_PROFILES, &r, err)))
		return rc;
	return profiles_diff(&ev->work, e, &l, &r, e->call.grouping, e->call.labels,
		e->call.fn->id == FN_DIFF_NORMALIZED, out, err);
}

static enum err_code eval_call_top(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	struct value k, p;
	enum err_code rc;

	if ((rc = eval_arg(ev, e, 0, VALUE_SCALAR, &k, err)))
		return rc;
	if (ev->rows_only && promql_eval_is_merging(e->call.args[1]))
		rc = eval_call_merging(ev, e->call.args[1], WANT_NAMES, &p, err);
	else
		rc = eval_exact(ev, e->call.args[1], &p, err);
	if (rc || (rc = eval_require(ev, e, e->call.args[1], &p, VALUE_PROFILES, err)))
		return rc;
	return profiles_top(&ev->work, &p, k.scalar, out, err);
}

static enum err_code eval_call_flat(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	enum function_id fn = e->call.fn->id;
	struct flat_options o = { .cum = fn == FN_CUM || fn == FN_CUM_SHARE,
		.share = fn == FN_FLAT_SHARE || fn == FN_CUM_SHARE,
		.grouping = e->call.grouping,
		.labels = e->call.labels,
		.filters = e->call.args[0] };
	struct value p;
	enum err_code rc;

	if (e->call.args_n > 1) {
		o.matchers = e->call.args[1]->selector.matchers;
		o.matchers_n = e->call.args[1]->selector.matchers_n;
	}
	/* Not rounded yet: sums over `by` are rounded at the end. */
	if ((rc = eval_merging(
			 ev, e->call.args[0], flat_by_name(&o) ? WANT_NAMES : WANT_CELLS, &p, err)) ||
		(rc = eval_require(ev, e, e->call.args[0], &p, VALUE_PROFILES, err)))
		return rc;
	return profiles_flat(&ev->work, &p, &o, out, err);
}

static enum err_code eval_call_total(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	enum err_code rc = eval_totals(ev, e->call.args[0], out, err);

	if (rc)
		return rc;
	if ((rc = eval_require(ev, e, e->call.args[0], out, VALUE_COSTS, err)))
		return rc;
	for (size_t i = 0; i < out->n && !rc; i++)
		rc = labels_without_name(&ev->work, out->costs[i].metric, &out->costs[i].metric, err);
	return rc;
}

/* While a query is planned, files give no elements, as selectors do. */
static enum err_code eval_call_file(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	struct value name, type = { 0 };
	enum err_code rc;

	if ((rc = eval_expr(ev, e->call.args[0], &name, err)) ||
		(e->call.args_n > 1 && (rc = eval_expr(ev, e->call.args[1], &type, err))))
		return rc;
	if (ev->reader == &reader_notes) {
		*out = (struct value){ .type = VALUE_PROFILES };
		return ERR_OK;
	}
	rc = files_value(&ev->work, ev->files, e, name.string, type.string, out, err);
	return rc ? rc : unit_note(ev, e, out, err);
}

/* Where it is written, not after merges as filters: labels of elements count too. */
static enum err_code eval_call_tag_frames(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	struct value keys;
	enum err_code rc;

	if ((rc = eval_arg(ev, e, 0, VALUE_PROFILES, out, err)) ||
		(rc = eval_expr(ev, e->call.args[1], &keys, err)))
		return rc;
	return tag_frames_add(&ev->work, out, keys.string, e->call.fn->id == FN_TAGLEAF, err);
}

/* ---- costs ---- */

static enum err_code eval_call_aggregate(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	struct value arg = { 0 }, costs;
	size_t last = e->call.args_n - 1;
	enum err_code rc;

	if (last > 0 && (rc = eval_expr(ev, e->call.args[0], &arg, err)))
		return rc;
	if ((rc = eval_arg(ev, e, last, VALUE_COSTS, &costs, err)))
		return rc;
	return costs_aggregate(&ev->work, e, &arg, &costs, out, err);
}

static enum err_code eval_call_scalar(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	struct value v;
	enum err_code rc = eval_arg(ev, e, 0, VALUE_COSTS, &v, err);

	if (!rc)
		*out = (struct value){ .type = VALUE_SCALAR, .scalar = ev->reader->scalar(&v) };
	return rc;
}

static enum err_code eval_one_cost(
	struct eval *ev, double value, struct value *out, struct err *err)
{
	*out = (struct value){ .type = VALUE_COSTS, .n = 1 };
	if (!(out->costs = arena_new(ev->work.arena, struct cost)))
		return work_nomem(&ev->work, err);
	*out->costs = (struct cost){ .value = value, .t_ns = ev->work.t_ns };
	return ERR_OK;
}

static enum err_code eval_call_vector(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	struct value v;
	enum err_code rc = eval_arg(ev, e, 0, VALUE_SCALAR, &v, err);

	return rc ? rc : eval_one_cost(ev, v.scalar, out, err);
}

/* Prometheus's times are of milliseconds. */
static double promql_eval_seconds_of(int64_t ns)
{
	return (double)(ns / NS_PER_MS) / 1e3;
}

static double eval_time_now(const struct eval *ev)
{
	return promql_eval_seconds_of(ev->work.t_ns);
}

/* Times of the query, and functions of scalars. */
static enum err_code eval_call_scalars(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	struct value v[2] = { 0 };
	double *to = &out->scalar;
	enum err_code rc;

	for (size_t i = 0; i < e->call.args_n && i < 2; i++)
		if ((rc = eval_arg(ev, e, i, VALUE_SCALAR, &v[i], err)))
			return rc;
	*out = (struct value){ .type = VALUE_SCALAR };
	switch (e->call.fn->id) {
	case FN_PI:
		*to = M_PI;
		break;
	case FN_START:
		*to = promql_eval_seconds_of(ev->times.start_ns);
		break;
	case FN_END:
		*to = promql_eval_seconds_of(ev->times.end_ns);
		break;
	case FN_STEP:
		*to = promql_eval_seconds_of(ev->times.query_step_ns);
		break;
	case FN_RANGE:
		*to = promql_eval_seconds_of(ev->times.end_ns - ev->times.start_ns);
		break;
	case FN_MIN_OF:
		*to = smaller_of(v[0].scalar, v[1].scalar);
		break;
	case FN_MAX_OF:
		*to = greater_of(v[0].scalar, v[1].scalar);
		break;
	default:
		*to = eval_time_now(ev);
	}
	return ERR_OK;
}

/* Of what was calculated, the time of the evaluation. */
static enum err_code eval_call_timestamp(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	const struct expr *arg = expr_strip(e->call.args[0]);
	bool found = false;
	enum err_code rc = ERR_OK;

	if (arg->kind == EXPR_SELECTOR && arg->selector.name.len)
		rc = numeric_times(ev, arg, out, &found, err);
	if (!rc && !found && !(rc = eval_arg(ev, e, 0, VALUE_COSTS, out, err)))
		for (size_t i = 0; i < out->n; i++)
			out->costs[i].value = eval_time_now(ev);
	for (size_t i = 0; i < out->n && !rc; i++)
		rc = labels_without_name(&ev->work, out->costs[i].metric, &out->costs[i].metric, err);
	return rc ? rc : costs_distinct(out->costs, out->n, err);
}

/* Costs first, then scalars or strings, with the position for the error that labels are no longer
 * unique. */
static enum err_code eval_call_on_costs(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	enum function_id fn = e->call.fn->id;
	struct value *args = arena_array(ev->work.arena, struct value, e->call.args_n + 1);
	enum err_code rc;

	if (!args)
		return work_nomem(&ev->work, err);
	/* Without an argument parts of a date are those of the time of evaluation. */
	rc = e->call.args_n ? eval_arg(ev, e, 0, VALUE_COSTS, &args[0], err) :
						  eval_one_cost(ev, eval_time_now(ev), &args[0], err);
	if (rc)
		return rc;
	for (size_t i = 1; i < e->call.args_n; i++)
		if ((rc = eval_expr(ev, e->call.args[i], &args[i], err)))
			return rc;
	if (fn == FN_SORT || fn == FN_SORT_DESC)
		return costs_sorted(&ev->work, &args[0], fn == FN_SORT_DESC, out, err);
	if (fn == FN_SORT_BY_LABEL || fn == FN_SORT_BY_LABEL_DESC)
		return costs_sorted_by_label(&ev->work, e, args, out, err);
	if (fn == FN_LABEL_REPLACE || fn == FN_LABEL_JOIN)
		return costs_label_function(&ev->work, e, args, out, err);
	return costs_math(&ev->work, e, args, out, err);
}

static enum err_code eval_call_absent(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	const struct expr *arg = expr_strip(e->call.args[0]);
	struct labels metric = { 0 };
	struct value v;
	enum err_code rc;

	if ((rc = eval_totals(ev, arg, &v, err)))
		return rc;
	if (arg->kind == EXPR_SELECTOR && (rc = absent_labels(&ev->work, &arg->selector, &metric, err)))
		return rc;
	*out = (struct value){ .type = VALUE_COSTS };
	if (!(out->costs = arena_new(ev->work.arena, struct cost)))
		return work_nomem(&ev->work, err);
	*out->costs = (struct cost){ .metric = metric, .value = 1, .t_ns = ev->work.t_ns };
	out->n = v.n == 0;
	return ERR_OK;
}

static enum err_code eval_call_changed(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	return ev->reader->changed(ev, e, out, err);
}

typedef enum err_code (*call_fn)(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);

/* clang-format off */
static const call_fn calls[FUNCTIONS] = {
	[FN_MERGE] = eval_call_merge,
	[FN_DIFF ... FN_DIFF_NORMALIZED] = eval_call_diff,
	[FN_TOP] = eval_call_top,
	[FN_FLAT ... FN_CUM_SHARE] = eval_call_flat,
	[FN_TOTAL] = eval_call_total,
	[FN_RATE ... FN_MEAN_RATE] = eval_call_merge,
	[FN_FILE] = eval_call_file,
	[FN_TAGROOT ... FN_TAGLEAF] = eval_call_tag_frames,
	[FN_FOCUS ... FN_CALLEES] = eval_call_merge,
	[FN_TOPK ... FN_LIMIT_RATIO] = eval_call_aggregate,
	[FN_SCALAR] = eval_call_scalar,
	[FN_VECTOR] = eval_call_vector,
	[FN_TIME ... FN_MAX_OF] = eval_call_scalars,
	[FN_TIMESTAMP] = eval_call_timestamp,
	[FN_ABS ... FN_LABEL_JOIN] = eval_call_on_costs,
	[FN_ABSENT] = eval_call_absent,
	[FN_SUM_OVER_TIME ... FN_LAST_OVER_TIME] = eval_call_merge,
	[FN_COUNT_OVER_TIME ... FN_ABSENT_OVER_TIME] = call_count_over,
	[FN_STDDEV_OVER_TIME ... FN_INTEGRAL] = call_over_time,
	[FN_CHANGED ... FN_CHANGED_INTERVAL] = eval_call_changed,
};
/* clang-format on */

/* ---- operators ---- */

static enum err_code eval_unary(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	enum err_code rc = eval_expr(ev, e->unary.arg, out, err);

	if (rc)
		return rc;
	if (out->type == VALUE_SCALAR) {
		out->scalar = e->unary.negative ? -out->scalar : out->scalar;
		return ERR_OK;
	}
	if ((rc = eval_require(ev, e, e->unary.arg, out, VALUE_COSTS, err)))
		return rc;
	return e->unary.negative ? costs_negated(&ev->work, out, out, err) : ERR_OK;
}

/* The check let this pass because the name could have meant something else. */
static enum err_code eval_no_operator(
	struct eval *ev, const struct binary *b, unsigned lhs, unsigned rhs, struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc;

	binary_fault_print(&text, b, lhs, rhs);
	rc = query_error_at(
		ev->work.query->text, b->op_at, NULL, err, ERR_INVALID, STR_FMT, STR_ARG(buf_str(&text)));
	buf_release(&text);
	return rc;
}

static enum err_code eval_binary(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	const struct binary *b = &e->binary;
	struct value l, r;
	enum err_code rc;

	if ((rc = eval_exact(ev, b->lhs, &l, err)) || (rc = eval_exact(ev, b->rhs, &r, err)))
		return rc;
	if ((e->types & VALUE_PROFILES) && (l.type & VALUE_PROFILES) && (r.type & VALUE_PROFILES) &&
		b->op == OP_SUB)
		return profiles_diff(&ev->work, e, &l, &r, b->matching, b->labels, false, out, err);
	if ((e->types & VALUE_PROFILES) && (l.type & VALUE_PROFILES) && r.type == VALUE_SCALAR)
		return profiles_scale(&ev->work, e, &l, r.scalar, b->op == OP_DIV, out, err);
	if ((e->types & VALUE_PROFILES) && l.type == VALUE_SCALAR && (r.type & VALUE_PROFILES))
		return profiles_scale(&ev->work, e, &r, l.scalar, false, out, err);
	if (!(l.type & (VALUE_SCALAR | VALUE_COSTS)) || !(r.type & (VALUE_SCALAR | VALUE_COSTS)))
		return eval_no_operator(ev, b, l.type, r.type, err);
	l.type &= VALUE_SCALAR | VALUE_COSTS;
	r.type &= VALUE_SCALAR | VALUE_COSTS;
	return costs_binary(&ev->work, e, &l, &r, out, err);
}

static enum err_code eval_kind(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	switch (e->kind) {
	case EXPR_NUMBER:
		*out = (struct value){ .type = VALUE_SCALAR, .scalar = e->number };
		return ERR_OK;
	case EXPR_STRING:
		*out = (struct value){ .type = VALUE_STRING, .string = e->string };
		return ERR_OK;
	case EXPR_SELECTOR:
		return eval_call_merging(ev, e, WANT_CELLS, out, err);
	case EXPR_UNARY:
		return eval_unary(ev, e, out, err);
	case EXPR_BINARY:
		return eval_binary(ev, e, out, err);
	case EXPR_CALL:
		return calls[e->call.fn->id](ev, e, out, err);
	case EXPR_SUBQUERY: /* functions over a window read it by themselves */
		return work_fault(&ev->work, e, err, ERR_INVALID,
			"a subquery is a whole query, or the argument of a function over a window");
	case EXPR_PAREN:
		break; /* stripped */
	}
	return err_set(err, ERR_INVALID, "an expression of an unknown kind");
}

enum err_code eval_exact(struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	int64_t start = ev->timed ? clock_monotonic_ns() : 0;
	enum err_code rc;

	assert(e->types && e->types != VALUE_FRAMES);
	if ((rc = work_check(&ev->work, err)))
		return rc;
	e = expr_strip(e);
	rc = eval_kind(ev, e, out, err);
	if (ev->timed)
		plan_note_time(ev, e, clock_monotonic_ns() - start);
	return rc;
}

/* Before fractions are rounded, as top() has it. */
static enum err_code eval_tables(struct eval *ev, const struct value *of, struct err *err)
{
	struct value tables;
	enum err_code rc = profiles_top(&ev->work, of, INFINITY, &tables, err);

	ev->tables = rc ? NULL : tables.tops;
	return rc;
}

enum err_code eval_root(struct eval *ev, struct value *out, struct err *err)
{
	const struct expr *e = expr_strip(ev->work.query->root);
	bool found = false;
	enum err_code rc = ERR_OK;

	if (e->kind == EXPR_SUBQUERY || (e->kind == EXPR_SELECTOR && e->selector.window_ns))
		rc = over_numbers(ev, e, &found, err);
	if (!rc && found)
		rc = numeric_series(ev, e, out, &found, err);
	if (rc || found || (rc = eval_exact(ev, e, out, err)))
		return rc;
	if (ev->with_tables && (out->type & VALUE_PROFILES) && (rc = eval_tables(ev, out, err)))
		return rc;
	return profiles_whole(&ev->work, e, out, err);
}

enum err_code eval_expr(struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	enum err_code rc = eval_exact(ev, e, out, err);

	return rc ? rc : profiles_whole(&ev->work, e, out, err);
}
