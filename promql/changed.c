/*
 * changed() and changed_interval(): read both windows slice by slice, each series by itself, and
 * hand the flat costs of its functions to the statistic. A slice is read like a selector with that
 * window, so matchers, limits and rounding are those of every other query;
 * series are selected once. changed_words.c adds the infos: which data the answer is based on.
 */
#include "promql/changed.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "promql/changed_words.h"
#include "promql/eval.h"
#include "promql/gather.h"
#include "promql/numeric.h"
#include "promql/plan.h"

#define SLICE_MIN_NS (5 * NS_PER_S)
#define SLICE_MAX_NS NS_PER_MIN /* unless a window would have more than SLICES_MAX */
#define SLICES_WANTED 10 /* of the shorter window */
#define SLICES_MAX 1440
#define DEFAULT_P 0.01

static const struct merging each_series = { .each = true, .in_slices = true };

struct observations {
	struct change_observation *v;
	size_t n, cap;
	struct time_window window;
	uint32_t slices_n;
};

struct changed_comparison {
	struct eval *ev;
	const struct expr *call;
	struct work slice; /* reads one slice in an arena of its own */
	struct arena arena; /* of it */
	struct infos dropped; /* on single slices */
	struct frames *frames;
	struct observations side[2];
	int64_t slice_ns;
	struct map map; /* of series */
	struct labels *series;
	uint32_t series_n, series_cap;
	struct labels *alone; /* of the series of each change that is in one series alone */
	uint32_t functions_n;
	int64_t period; /* cost of a sample, if the profiles say it */
	bool has_period;
};

/* ---- slices ---- */

static void changed_comparison_find_slices(struct changed_comparison *c, const struct expr *e)
{
	int64_t shortest = INT64_MAX, longest = 0;

	for (size_t k = 0; k < 2; k++) {
		const struct expr *arg = expr_strip(e->call.args[k]);
		int64_t width = arg->selector.window_ns;

		c->side[k].window = selector_window(&c->ev->times, &arg->selector, c->ev->work.t_ns);
		shortest = width < shortest ? width : shortest;
		longest = width > longest ? width : longest;
	}
	c->slice_ns = shortest / SLICES_WANTED;
	if (c->slice_ns > SLICE_MAX_NS)
		c->slice_ns = SLICE_MAX_NS;
	if (c->slice_ns < SLICE_MIN_NS)
		c->slice_ns = SLICE_MIN_NS;
	if (c->slice_ns < longest / SLICES_MAX)
		c->slice_ns = longest / SLICES_MAX + 1;
	for (size_t k = 0; k < 2; k++)
		c->side[k].slices_n =
			(uint32_t)((expr_strip(e->call.args[k])->selector.window_ns - 1) / c->slice_ns + 1);
}

static bool changed_series_eq(const void *ctx, const void *key, uint32_t id)
{
	return labels_eq(
		*(const struct labels *)key, ((const struct changed_comparison *)ctx)->series[id]);
}

static enum err_code changed_comparison_find_series(
	struct changed_comparison *c, struct labels metric, uint32_t *out, struct err *err)
{
	uint64_t hash = labels_hash(metric);
	struct labels *at;

	*out = map_find(&c->map, hash, changed_series_eq, c, &metric);
	if (*out != MAP_NONE)
		return ERR_OK;
	if (!arena_array_room(c->ev->work.arena, &c->series, c->series_n, 1, &c->series_cap))
		return work_nomem(&c->ev->work, err);
	at = &c->series[c->series_n];
	*at = labels_dup(c->ev->work.arena, metric); /* the slice's arena goes */
	if ((metric.n > 0 && !at->v) || !map_add(&c->map, hash, c->series_n))
		return work_nomem(&c->ev->work, err);
	*out = c->series_n++;
	return ERR_OK;
}

/* The cost of one sample, if types and periods say it. */
static void changed_comparison_add_period(
	struct changed_comparison *c, const struct profile_value *p)
{
	const struct profile_type *t = &p->type;
	int64_t period = 0;

	if (str_eq(t->sample_type, t->period_type) && str_eq(t->sample_unit, t->period_unit))
		period = p->period;
	else if (str_is(t->sample_type, "samples") && str_is(t->sample_unit, "count"))
		period = 1;
	c->has_period &= period > 0;
	if (period > c->period)
		c->period = period;
}

static enum err_code changed_comparison_add_observation(struct changed_comparison *c,
	struct observations *o, uint32_t slice, const struct profile_value *p, struct err *err)
{
	struct change_observation *at;
	struct change_cell *cells;
	struct frame_sums sums;
	enum err_code rc;

	if (p->total <= 0)
		return ERR_OK;
	if (!arena_array_room(c->ev->work.arena, &o->v, o->n, 1, &o->cap))
		return work_nomem(&c->ev->work, err);
	at = &o->v[o->n];
	*at = (struct change_observation){ .slice = slice, .total = (double)p->total };
	if ((rc = changed_comparison_find_series(c, p->metric, &at->series, err)) ||
		(rc = frames_sum(c->frames, p, false, &sums, err)))
		return rc;
	if (!(cells = arena_alloc_raw(c->ev->work.arena, sums.n + 1, sizeof(*cells))))
		return work_nomem(&c->ev->work, err);
	at->cells = cells;
	for (size_t i = 0; i < sums.n; i++) {
		uint32_t f = sums.groups[i];

		if (sums.flat[f] <= 0)
			continue;
		cells[at->n++] = (struct change_cell){ f, (double)sums.flat[f] };
		c->functions_n = f >= c->functions_n ? f + 1 : c->functions_n;
	}
	changed_comparison_add_period(c, p);
	o->n++;
	return ERR_OK;
}

static enum err_code changed_comparison_read_slices(struct changed_comparison *c,
	const struct plan_read *read, struct observations *o, struct err *err)
{
	struct selection s = { .selector = &read->expr->selector,
		.expr = read->expr,
		.v = read->set->v,
		.n = read->set->n,
		.groups_n = read->set->groups_n };
	struct value v;
	enum err_code rc = ERR_OK;

	for (uint32_t i = 0; i < o->slices_n && !rc; i++) {
		s.window.max_ns = o->window.max_ns - (int64_t)(o->slices_n - 1 - i) * c->slice_ns;
		s.window.min_ns = s.window.max_ns - c->slice_ns;
		if (s.window.min_ns < o->window.min_ns)
			s.window.min_ns = o->window.min_ns;
		v = (struct value){ .type = VALUE_PROFILES };
		if ((rc = work_check(&c->slice, err)) ||
			(rc = gather_selection(&c->slice, c->ev->supply, &s, &v, err)) ||
			(rc = profiles_round(&c->slice, &v, err)))
			break;
		for (size_t k = 0; k < v.n && !rc; k++)
			rc = changed_comparison_add_observation(c, o, i, &v.profiles[k], err);
		arena_reset(&c->arena);
	}
	return rc;
}

static enum err_code changed_comparison_read_side(
	struct changed_comparison *c, const struct expr *arg, struct observations *o, struct err *err)
{
	int64_t start = clock_monotonic_ns();
	uint64_t samples = c->ev->supply->samples;
	struct plan_read *read;
	enum err_code rc;

	arg = expr_strip(arg);
	if ((rc = plan_find_read(c->ev, arg, &each_series, &read, err)))
		return rc;
	if (read->series_n == 0)
		return numeric_refuse_window(c->ev, arg, err);
	if (read->set->n > 0)
		rc = changed_comparison_read_slices(c, read, o, err);
	read->reads++;
	read->samples += c->ev->supply->samples - samples;
	read->took_ns += clock_monotonic_ns() - start;
	return rc;
}

/* ---- the call ---- */

/* The labels by which a series differs from any other of them. */
static enum err_code changed_comparison_find_own_labels(
	struct changed_comparison *c, uint32_t series, struct labels *out, struct err *err)
{
	struct labels metric = c->series[series];
	struct labels_builder b;

	labels_builder_init(&b, c->ev->work.arena, (struct labels){ 0 });
	for (size_t i = 0; i < metric.n; i++) {
		bool differs = false;

		for (uint32_t k = 0; k < c->series_n && !differs; k++)
			differs = !str_eq(labels_get(c->series[k], metric.v[i].name), metric.v[i].value);
		if (differs)
			labels_builder_set(&b, metric.v[i].name, metric.v[i].value);
	}
	return labels_builder_build(&b, out, err);
}

static enum err_code changed_comparison_find_alone(
	struct changed_comparison *c, const struct change_output *found, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (!(c->alone = arena_array(c->ev->work.arena, struct labels, found->alone_n + 1)))
		return work_nomem(&c->ev->work, err);
	for (size_t i = 0; i < found->alone_n && !rc; i++)
		rc = changed_comparison_find_own_labels(c, found->alone[i].series, &c->alone[i], err);
	return rc;
}

static enum err_code changed_comparison_add_cost(struct changed_comparison *comparison,
	struct labels_builder *b, double value, struct value *out, struct err *err)
{
	struct cost *c = &out->costs[out->n++];

	c->t_ns = comparison->ev->work.t_ns;
	c->value = value;
	return labels_builder_build(b, &c->metric, err);
}

static enum err_code changed_comparison_report(struct changed_comparison *c,
	const struct change_output *found, struct value *out, struct err *err)
{
	struct labels_builder b;
	enum err_code rc = ERR_OK;

	if (!(out->costs = arena_array(
			  c->ev->work.arena, struct cost, found->changed_n + found->alone_n + 1)))
		return work_nomem(&c->ev->work, err);
	for (size_t i = 0; i < found->changed_n + found->alone_n && !rc; i++) {
		size_t at = i - found->changed_n;
		bool is_alone = i >= found->changed_n;
		const struct change *v = is_alone ? &found->alone[at].change : &found->v[i];

		labels_builder_init(&b, c->ev->work.arena, is_alone ? c->alone[at] : (struct labels){ 0 });
		labels_builder_set(
			&b, str_of(frame_field_name(FRAME_FUNCTION)), changed_function_name(c->frames, v));
		rc = changed_comparison_add_cost(c, &b, v->difference, out, err);
	}
	return rc;
}

static enum err_code changed_comparison_report_bound(struct changed_comparison *comparison,
	const struct change *c, struct labels of, bool is_high, struct value *out, struct err *err)
{
	struct labels_builder b;

	labels_builder_init(&b, comparison->ev->work.arena, of);
	labels_builder_set(&b, STR("bound"), is_high ? STR("high") : STR("low"));
	labels_builder_set(&b, STR("verdict"), str_of(change_word_name(c->word)));
	if (c->function != UINT32_MAX)
		labels_builder_set(&b, str_of(frame_field_name(FRAME_FUNCTION)),
			changed_function_name(comparison->frames, c));
	return changed_comparison_add_cost(comparison, &b, is_high ? c->high : c->low, out, err);
}

/*
 * Writes both bounds of each function. If nothing can be said of any function, it writes -1 and 1
 * once for all of them.
 */
static enum err_code changed_comparison_report_intervals(struct changed_comparison *c,
	const struct change_output *found, struct value *out, struct err *err)
{
	static const struct change anything = { UINT32_MAX, CHANGE_UNKNOWN, 0, -1, 1 };
	const struct change *v = found->verdict == CHANGE_JUDGED ? found->v : &anything;
	size_t n = found->verdict == CHANGE_JUDGED ? found->n : 1;
	enum err_code rc = ERR_OK;

	if (!(out->costs = arena_array(c->ev->work.arena, struct cost, 2 * (n + found->alone_n) + 1)))
		return work_nomem(&c->ev->work, err);
	for (size_t i = 0; i < 2 * n && !rc; i++)
		rc = changed_comparison_report_bound(c, &v[i / 2], (struct labels){ 0 }, i % 2, out, err);
	for (size_t i = 0; i < 2 * found->alone_n && !rc; i++)
		rc = changed_comparison_report_bound(
			c, &found->alone[i / 2].change, c->alone[i / 2], i % 2, out, err);
	return rc;
}

/* Counts a side's slices with costs; its observations are in order of time. */
static struct changed_slices observations_count_slices(const struct observations *o)
{
	struct changed_slices s = { .all = o->slices_n };

	for (size_t i = 0; i < o->n; i++) {
		bool is_next = i == 0 || o->v[i].slice != o->v[i - 1].slice;

		s.present += is_next;
		s.first = i == 0 ? o->v[i].slice : s.first;
	}
	return s;
}

static enum err_code changed_comparison_explain(
	struct changed_comparison *c, const struct change_output *found, struct err *err)
{
	struct changed_words w = { .work = &c->ev->work,
		.name = c->call->call.fn->name,
		.slice_ns = c->slice_ns,
		.found = found,
		.frames = c->frames,
		.alone = c->alone };

	for (unsigned k = 0; k < 2; k++)
		w.side[k] = observations_count_slices(&c->side[k]);
	return changed_explain(&w, err);
}

static enum err_code changed_comparison_judge(
	struct changed_comparison *c, double p, struct value *out, struct err *err)
{
	struct change_input in = { .functions_n = c->functions_n,
		.series_n = c->series_n,
		.p = p,
		.ahead = (double)(c->side[0].window.max_ns - c->side[1].window.max_ns) /
			(double)c->slice_ns,
		.quantum = c->has_period ? (double)c->period : 0,
		.stop = c->ev->work.stop };
	struct change_output found;
	enum err_code rc;

	for (unsigned k = 0; k < 2; k++)
		in.side[k] = (struct change_side){
			.v = c->side[k].v, .n = c->side[k].n, .slices_n = c->side[k].slices_n
		};
	if ((rc = changed_judge(c->ev->work.arena, &in, &found, err)) ||
		(rc = changed_comparison_find_alone(c, &found, err)) ||
		(rc = changed_comparison_explain(c, &found, err)))
		return rc;
	if (c->call->call.fn->id == FN_CHANGED_INTERVAL)
		return changed_comparison_report_intervals(c, &found, out, err);
	return changed_comparison_report(c, &found, out, err);
}

/* Both windows are read, once. */
enum err_code changed_plan(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t k = 0; k < e->call.args_n && !rc; k++)
		rc = k < 2 ? choose_profiles(ev, expr_strip(e->call.args[k]), &each_series, out, err) :
					 eval_expr(ev, e->call.args[k], out, err);
	*out = (struct value){ .type = VALUE_COSTS };
	return rc;
}

enum err_code changed_eval(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	const struct frames_options by_function = { .fields = FRAME_BIT(FRAME_FUNCTION),
		.no_preempts = true };
	struct changed_comparison g = { .ev = ev, .call = e, .slice = ev->work, .has_period = true };
	struct value p = { .scalar = DEFAULT_P };
	enum err_code rc;

	if (e->call.args_n > 2 && (rc = eval_expr(ev, e->call.args[2], &p, err)))
		return rc;
	if (!(p.scalar > 0 && p.scalar < 1))
		return work_fault(&ev->work, e->call.args[2], err, ERR_INVALID,
			"%s() needs a probability between 0 and 1, got %g", e->call.fn->name, p.scalar);
	*out = (struct value){ .type = VALUE_COSTS };
	if ((rc = frames_open(&ev->work, &by_function, &g.frames, err)))
		return rc;
	map_init(&g.map);
	arena_init_shared(&g.arena, ev->work.budget);
	g.slice.arena = &g.arena;
	g.slice.infos = &g.dropped;
	changed_comparison_find_slices(&g, e);
	for (size_t k = 0; k < 2 && !rc; k++)
		rc = changed_comparison_read_side(&g, e->call.args[k], &g.side[k], err);
	if (!rc)
		rc = changed_comparison_judge(&g, p.scalar, out, err);
	arena_release(&g.arena);
	map_release(&g.map);
	frames_close(g.frames);
	return rc;
}
