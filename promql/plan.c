#include "promql/plan.h"

#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "promql/eval.h"
#include "promql/gather.h"
#include "promql/numeric.h"
#include "promql/over_time.h"

#define STEPS_LOOKED_AT 4u /* of a range: the others are taken to be like them */

/* ---- finding again ---- */

static bool plan_names_eq(struct name_list a, struct name_list b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (!str_eq(a.v[i], b.v[i]))
			return false;
	return true;
}

static bool plan_groups_alike(const struct merging *a, const struct merging *b)
{
	return a->each == b->each && a->any_unit == b->any_unit && a->grouping == b->grouping &&
		plan_names_eq(a->labels, b->labels);
}

static bool plan_selects_alike(const struct selector *a, const struct selector *b)
{
	if (!str_eq(a->name, b->name) || a->matchers_n != b->matchers_n)
		return false;
	for (size_t i = 0; i < a->matchers_n; i++)
		if (a->matchers[i].op != b->matchers[i].op ||
			!str_eq(a->matchers[i].name, b->matchers[i].name) ||
			!str_eq(a->matchers[i].value, b->matchers[i].value))
			return false;
	return true;
}

static enum err_code plan_nomem(struct eval *ev, struct err *err)
{
	return arena_fail(ev->work.whole, "query", err);
}

static enum err_code plan_find_set(struct eval *ev, const struct expr *e, const struct merging *m,
	const struct chosen_set **out, struct err *err)
{
	struct query_plan *p = ev->plan;
	struct chosen_set *set = p->sets;
	struct merging *kept;
	enum err_code rc;

	while (set &&
		!(plan_selects_alike(set->selector, &e->selector) && plan_groups_alike(set->merging, m)))
		set = set->next;
	if (!set) {
		set = arena_new(ev->work.whole, struct chosen_set);
		kept = arena_new(ev->work.whole, struct merging);
		if (!set || !kept)
			return plan_nomem(ev, err);
		*kept = *m;
		set->selector = &e->selector;
		set->merging = kept;
		if ((rc = choose_set(ev, e, m, set, err)))
			return rc;
		set->next = p->sets;
		p->sets = set;
	}
	*out = set;
	return ERR_OK;
}

static struct plan_read *plan_look_up(
	const struct eval *ev, const struct expr *e, const struct merging *m, bool numbers)
{
	for (struct plan_read *r = ev->plan->reads; r; r = r->next)
		if (!r->set == numbers && r->scope == ev->times.scope && expr_eq(r->expr, e) &&
			(numbers ||
				(plan_groups_alike(&r->merging, m) && r->merging.over == m->over &&
					r->merging.totals_only == m->totals_only && r->merging.by_name == m->by_name)))
			return r;
	return NULL;
}

/* It is read in one window at every step. */
static bool plan_is_pinned(const struct eval *ev, const struct expr *e)
{
	return ev->times.mode != EVAL_RANGE || e->selector.shift.at != AT_NONE;
}

static uint64_t plan_steps_of(const struct eval *ev, const struct expr *e)
{
	assert(ev->times.mode != EVAL_RANGE ||
		(ev->times.step_ns > 0 && ev->times.first_ns <= ev->times.last_ns));
	return plan_is_pinned(ev, e) ? 1 : ev->work.steps;
}

static enum err_code plan_add_read(
	struct eval *ev, const struct expr *e, struct plan_read **out, struct err *err)
{
	struct plan_read **end = &ev->plan->reads;
	struct plan_read *r = arena_new(ev->work.whole, struct plan_read);

	if (!r)
		return plan_nomem(ev, err);
	r->expr = e;
	r->scope = ev->times.scope;
	r->pinned = plan_is_pinned(ev, e);
	r->steps = plan_steps_of(ev, e);
	while (*end)
		end = &(*end)->next;
	*out = *end = r;
	return ERR_OK;
}

enum err_code plan_find_read(struct eval *ev, const struct expr *e, const struct merging *m,
	struct plan_read **out, struct err *err)
{
	const struct chosen_set *set;
	struct plan_read *r = plan_look_up(ev, e, m, false);
	enum err_code rc;

	assert(e->kind == EXPR_SELECTOR);
	if (!r) {
		if ((rc = plan_find_set(ev, e, m, &set, err)))
			return rc;
		if ((m->over == OVER_RATE || m->over == OVER_MEAN_RATE) && set->n > 0 &&
			!set->v[0].type.delta)
			return over_refuse_levels(ev, e, m->over, &set->v[0].type, err);
		if ((rc = plan_add_read(ev, e, &r, err)))
			return rc;
		r->merging = *m;
		r->set = set;
		r->series_n = set->series_n;
		r->elements = set->groups_n;
	}
	for (size_t i = 0; i < r->set->infos_n; i++)
		if ((rc = work_info(&ev->work, err, STR_FMT, STR_ARG(r->set->infos[i]))))
			return rc;
	*out = r;
	return ERR_OK;
}

enum err_code plan_note_read(struct eval *ev, const struct expr *e, const struct merging *m,
	struct plan_read **out, struct err *err)
{
	enum err_code rc = plan_find_read(ev, e, m, out, err);

	if (!rc)
		(*out)->places++;
	return rc;
}

/* ---- estimates ---- */

static int64_t plan_time_of_step(const struct eval *ev, const struct plan_read *r, uint64_t i)
{
	if (ev->times.mode != EVAL_RANGE || r->pinned)
		return ev->work.t_ns;
	if (r->steps < 2)
		return ev->times.first_ns;
	/* The query's own steps are that far apart; those of a subquery may have gaps. */
	return ev->times.first_ns +
		(int64_t)((__int128)(ev->times.last_ns - ev->times.first_ns) * (__int128)i /
			(__int128)(r->steps - 1));
}

static void plan_scale(struct sum_estimate *e, uint64_t n, uint64_t of)
{
	uint64_t *v = (uint64_t *)e;

	_Static_assert(sizeof(*e) % sizeof(*v) == 0, "only counts");
	for (size_t i = 0; i < sizeof(*e) / sizeof(*v); i++)
		v[i] = (uint64_t)((double)v[i] / (double)of * (double)n + 0.5);
}

static void plan_add(struct sum_estimate *to, const struct sum_estimate *from)
{
	uint64_t *a = (uint64_t *)to;
	const uint64_t *b = (const uint64_t *)from;

	for (size_t i = 0; i < sizeof(*to) / sizeof(*a); i++)
		a[i] += b[i];
}

/* The cost of one step of a read, in samples. */
static uint64_t plan_read_cost_of(const struct plan_read *r)
{
	const struct sum_estimate *e = &r->estimate;
	uint64_t pieces = e->head_rows + e->chunks;

	for (unsigned i = 0; i < DB_STEPS; i++)
		pieces += e->series_sums[i] + e->group_sums[i] + e->function_sums[i];
	return (e->samples + pieces * PLAN_PIECE_SAMPLES) / r->steps;
}

static struct selection selection_of(const struct plan_read *r, const struct time_window *window)
{
	enum over_time over = r->merging.over;

	return (struct selection){ .selector = &r->expr->selector,
		.expr = r->expr,
		.window = { window->min_ns, window->max_ns, window->latest || over == OVER_LAST },
		.over = over,
		.v = r->set->v,
		.n = r->set->n,
		.groups_n = r->set->groups_n,
		.totals_only = r->merging.totals_only && !r->set->by_labels,
		.by_name = r->merging.by_name && (over == OVER_NONE || over == OVER_SUM),
		.cost = plan_read_cost_of(r) };
}

/*
 * The least number of elements of a step: the samples of one row each, unless all are thrown away.
 */
static uint64_t plan_memory_of(const struct eval *ev, const struct plan_read *r)
{
	const struct sum_estimate *e = &r->estimate;
	uint64_t each = r->merging.in_slices ?
		sizeof(struct profile_value) + sizeof(struct part) :
		gather_group_bytes(ev->supply, plan_read_cost_of(r), false);
	uint64_t cells = 0;

	if (ev->times.mode == EVAL_RANGE &&
		!r->pinned) /* which of them live in one step is not known */
		return 0;
	if (!r->merging.totals_only && !r->merging.by_name && !r->set->by_labels && e->rows)
		cells = e->samples / e->rows;
	if (r->elements && cells > e->samples / r->elements)
		cells = e->samples / r->elements;
	return r->elements * (each + cells * sizeof(struct cell));
}

/* Steps and series are each far below 2^32. */
static void query_plan_visit(struct query_plan *p, uint64_t n, uint64_t each)
{
	p->series_steps += n;
	if (__builtin_add_overflow(p->visits, n * each, &p->visits))
		p->visits = UINT64_MAX;
}

enum err_code plan_note_values(
	struct eval *ev, struct plan_read *r, struct value *out, struct err *err)
{
	uint64_t n = r->steps < STEPS_LOOKED_AT ? r->steps : STEPS_LOOKED_AT;
	struct query_plan *p = ev->plan;
	struct selection s;
	struct time_window w;
	enum err_code rc = ERR_OK;

	assert(r->set && r->places > 0);
	if (r->places > 1)
		return ERR_OK;
	r->first = selector_window(&ev->times, &r->expr->selector, plan_time_of_step(ev, r, 0));
	r->last = selector_window(
		&ev->times, &r->expr->selector, plan_time_of_step(ev, r, r->steps - 1));
	for (uint64_t i = 0; i < n && !rc; i++) {
		w = selector_window(&ev->times, &r->expr->selector,
			plan_time_of_step(ev, r, n > 1 ? i * (r->steps - 1) / (n - 1) : 0));
		s = selection_of(r, &w);
		if (s.over == OVER_MIN || s.over == OVER_MAX) /* then one scrape each */
			s.totals_only = !r->set->by_labels;
		rc = estimate_selection(&ev->work, ev->supply, &s, &r->estimate, err);
	}
	plan_scale(&r->estimate, r->steps, n);
	plan_add(&p->all, &r->estimate);
	query_plan_visit(p, r->set->n * r->steps, PLAN_SERIES_SAMPLES);
	p->memory_bytes += plan_memory_of(ev, r);
	return rc;
}

enum err_code plan_numbers(struct eval *ev, const struct expr *e, const struct db_series *series,
	size_t n, struct err *err)
{
	struct plan_read *r = plan_look_up(ev, e, NULL, true);
	const struct db_series **all;
	enum err_code rc;

	if (r) {
		r->places++;
		return ERR_OK;
	}
	if (!(all = arena_calloc(ev->work.arena, n + 1, sizeof(*all))))
		return plan_nomem(ev, err);
	for (size_t i = 0; i < n; i++)
		all[i] = &series[i];
	if ((rc = plan_add_read(ev, e, &r, err)))
		return rc;
	r->places = 1;
	r->series_n = r->elements = n;
	r->first = numeric_window(&ev->times, &e->selector, plan_time_of_step(ev, r, 0));
	r->last = numeric_window(&ev->times, &e->selector, plan_time_of_step(ev, r, r->steps - 1));
	/* Read in slices: each value about once. */
	rc = db_estimate(ev->supply->querier, all, n, NULL, r->first.min_ns, r->last.max_ns, SUM_WINDOW,
		SUM_CELLS, &r->estimate, err);
	plan_add(&ev->plan->all, &r->estimate);
	query_plan_visit(ev->plan, n * r->steps, PLAN_NUMBERS_SAMPLES);
	return rc;
}

void plan_count_numbers(struct eval *ev, const struct expr *e, uint64_t values, int64_t took_ns)
{
	struct plan_read *r = ev->plan ? plan_look_up(ev, e, NULL, true) : NULL;

	if (!r)
		return;
	r->reads++;
	r->samples += values;
	r->profiles += values;
	r->took_ns += took_ns;
}

/* ---- values ---- */

static bool plan_copy_array(struct arena *a, void *array, size_t n, size_t item)
{
	void **at = array, *copy;

	if (!*at)
		return true;
	if (!(copy = arena_alloc_raw(a, n + 1, item)))
		return false;
	if (n)
		memcpy(copy, *at, n * item);
	*at = copy;
	return true;
}

/* Whoever gets a value may round it in place, so each place has its own. */
static bool plan_copy_value(struct arena *a, const struct value *from, struct value *out)
{
	*out = *from;
	if (!plan_copy_array(a, &out->profiles, from->n, sizeof(*out->profiles)))
		return false;
	for (size_t i = 0; i < out->n && out->profiles; i++) {
		struct profile_value *p = &out->profiles[i];

		if (!plan_copy_array(a, &p->parts, p->parts_n, sizeof(*p->parts)))
			return false;
		for (size_t k = 0; k < p->parts_n; k++)
			if (!plan_copy_array(
					a, &p->parts[k].cells, p->parts[k].n, sizeof(*p->parts[k].cells)) ||
				!plan_copy_array(a, &p->parts[k].wide, p->parts[k].n, sizeof(*p->parts[k].wide)))
				return false;
	}
	return true;
}

static enum err_code plan_read_now(
	struct eval *ev, struct plan_read *r, struct value *out, struct err *err)
{
	struct time_window w = selector_window(&ev->times, &r->expr->selector, ev->work.t_ns);
	struct selection s = selection_of(r, &w);
	int64_t start = clock_monotonic_ns();
	uint64_t samples = ev->supply->samples;
	enum err_code rc;

	if (!(rc = over_choose(&ev->work, ev->supply, &s, err)) &&
		!(rc = rate_windows(&ev->work, ev->supply, &s, err)) && s.n > 0)
		rc = gather_selection(&ev->work, ev->supply, &s, out, err);
	r->reads++;
	r->samples += ev->supply->samples - samples;
	r->took_ns += clock_monotonic_ns() - start;
	for (size_t i = 0; !rc && i < out->n; i++)
		r->profiles += out->profiles[i].profiles;
	return rc;
}

enum err_code plan_read_values(
	struct eval *ev, struct plan_read *r, struct value *out, struct err *err)
{
	bool stays = r->pinned && ev->times.mode == EVAL_RANGE;
	struct eval in = *ev;
	enum err_code rc;

	assert(r->set && r->set->n > 0);
	if (r->places < 2 && !stays)
		return plan_read_now(ev, r, out, err);
	if (!r->has_kept || (!stays && r->kept_ns != ev->work.t_ns)) {
		r->has_kept = false;
		r->kept = *out;
		if (stays)
			in.work.arena = ev->work.whole;
		rc = plan_read_now(&in, r, &r->kept, err);
		if (rc)
			return rc;
		r->has_kept = true;
		r->kept_ns = ev->work.t_ns;
	}
	return plan_copy_value(ev->work.arena, &r->kept, out) ? ERR_OK : work_nomem(&ev->work, err);
}

void plan_forget_kept(struct eval *ev, const struct expr *scope)
{
	for (struct plan_read *r = ev->plan ? ev->plan->reads : NULL; r; r = r->next)
		if (r->scope == scope && !r->pinned)
			r->has_kept = false;
}

static void plan_note_times(struct eval *ev, const struct expr *e, uint64_t times, int64_t took_ns)
{
	struct plan_node *n = ev->plan->nodes;

	while (n && n->expr != e)
		n = n->next;
	if (!n) {
		if (!(n = arena_new(ev->work.whole, struct plan_node)))
			return; /* a time less */
		n->expr = e;
		n->next = ev->plan->nodes;
		ev->plan->nodes = n;
	}
	n->n += times;
	n->took_ns += took_ns;
}

void plan_note_time(struct eval *ev, const struct expr *e, int64_t took_ns)
{
	plan_note_times(ev, e, 1, took_ns);
}

/* ---- side by side ---- */

static void plan_read_forget_counts(struct plan_read *r)
{
	r->reads = r->samples = r->profiles = 0;
	r->took_ns = 0;
}

enum err_code plan_fork(const struct query_plan *p, struct arena *a, struct query_plan *out)
{
	struct plan_read **end = &out->reads;

	*out = *p;
	out->reads = NULL;
	out->nodes = NULL;
	for (const struct plan_read *r = p->reads; r; r = r->next) {
		struct plan_read *copy = arena_new(a, struct plan_read);

		if (!copy)
			return ERR_NOMEM;
		*copy = *r;
		copy->next = NULL;
		copy->has_kept = r->has_kept && r->pinned;
		plan_read_forget_counts(copy);
		*end = copy;
		end = &copy->next;
	}
	return ERR_OK;
}

void plan_add_counts(struct eval *ev, struct query_plan *from)
{
	struct plan_read *to = ev->plan->reads;

	for (struct plan_read *r = from->reads; r && to; r = r->next, to = to->next) {
		to->reads += r->reads;
		to->samples += r->samples;
		to->profiles += r->profiles;
		to->took_ns += r->took_ns;
		plan_read_forget_counts(r);
	}
	for (struct plan_node *n = from->nodes; n; n = n->next) {
		plan_note_times(ev, n->expr, n->n, n->took_ns);
		n->n = 0;
		n->took_ns = 0;
	}
}

/* ---- the whole query ---- */

/* 1234567 as 1,234,567. */
static const char *plan_with_commas(char *out, size_t size, uint64_t value)
{
	char plain[24];
	int n = snprintf(plain, sizeof(plain), "%llu", (unsigned long long)value), at = 0;

	for (int i = 0; i < n && at + 2 < (int)size; i++) {
		if (i && (n - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = plain[i];
	}
	out[at] = '\0';
	return out;
}

enum err_code plan_check(const struct query_plan *p, struct err *err)
{
	char a[40], b[40], c[40];

	if (p->all.samples > p->samples_max)
		return err_set(err, ERR_LIMIT,
			"the query would read about %s samples, limit %s (--query.max-samples)",
			plan_with_commas(a, sizeof(a), p->all.samples),
			plan_with_commas(b, sizeof(b), p->samples_max));
	if (p->visits > p->samples_max)
		return err_set(err, ERR_LIMIT,
			"the query would read about %s series in its steps, counted as %s samples, limit "
			"%s (--query.max-samples)",
			plan_with_commas(a, sizeof(a), p->series_steps),
			plan_with_commas(b, sizeof(b), p->visits),
			plan_with_commas(c, sizeof(c), p->samples_max));
	if (p->memory_bytes_max && p->held_bytes + p->memory_bytes > p->memory_bytes_max)
		return err_set(err, ERR_LIMIT,
			"the query would need about %s bytes of memory, limit %s "
			"(--query.max-memory)",
			plan_with_commas(a, sizeof(a), p->held_bytes + p->memory_bytes),
			plan_with_commas(b, sizeof(b), p->memory_bytes_max));
	return ERR_OK;
}

/* ---- series, before they are held ---- */

static size_t plan_used_of(const struct budget *b)
{
	return __atomic_load_n(&b->used_bytes, __ATOMIC_RELAXED);
}

static size_t plan_left_of(const struct budget *b)
{
	size_t used = plan_used_of(b);

	return used < b->max_bytes ? b->max_bytes - used : 0;
}

size_t plan_series_max(const struct eval *ev, const struct expr *e, struct series_cost each)
{
	uint64_t max = ev->work.budget ? plan_left_of(ev->work.budget) / each.bytes : UINT64_MAX,
			 looked;

	assert(each.bytes > 0);
	if (ev->plan && ev->plan->checked && each.samples) {
		looked = ev->plan->samples_max / (each.samples * plan_steps_of(ev, e));
		max = looked < max ? looked : max;
	}
	/* 0 would mean no limit. A limit of 1 refuses the series as well. */
	return max == UINT64_MAX ? 0 : max ? (size_t)max : 1;
}

enum err_code plan_refuse_series(const struct eval *ev, const struct expr *e,
	struct series_cost each, uint64_t about, struct err *err)
{
	struct query_plan p = { .samples_max = UINT64_MAX };
	char a[40], b[40], c[40];
	enum err_code rc;

	if (ev->plan && ev->plan->checked)
		p.samples_max = ev->plan->samples_max;
	query_plan_visit(&p, about * plan_steps_of(ev, e), each.samples);
	if ((rc = plan_check(&p, err)))
		return rc;
	return err_set(err, ERR_LIMIT,
		"the query selects about %s series and would need at least %s bytes of memory, limit "
		"%s (--query.max-memory)",
		plan_with_commas(a, sizeof(a), about),
		plan_with_commas(b, sizeof(b),
			ev->work.budget->max_bytes - plan_left_of(ev->work.budget) + about * each.bytes),
		plan_with_commas(c, sizeof(c), ev->work.budget->max_bytes));
}

enum err_code plan_query(struct eval *ev, struct err *err)
{
	struct eval over_nothing = *ev;
	struct infos dropped = { .n = 0 }; /* the evaluation finds them again */
	struct query_plan *p = ev->plan;
	struct arena scratch;
	struct value v;
	struct err why;
	enum err_code rc;

	arena_init_shared(&scratch, ev->work.budget);
	over_nothing.work.arena = &scratch;
	over_nothing.work.infos = &dropped;
	over_nothing.reader = &reader_notes;
	over_nothing.timed = false;
	rc = ev->times.mode == EVAL_RANGE ? eval_totals(&over_nothing, ev->work.query->root, &v, &why) :
										eval_root(&over_nothing, &v, &why);
	ev->numbers = over_nothing.numbers;
	ev->subqueries = over_nothing.subqueries;
	arena_release(&scratch);
	if (ev->work.budget)
		p->held_bytes = plan_used_of(ev->work.budget);
	/* The evaluation finds the same error, or none if the data does not lead to it. */
	if (rc == ERR_INVALID) {
		p->partial = true;
		rc = ERR_OK;
	}
	if (rc)
		err_copy(err, &why);
	return rc;
}
