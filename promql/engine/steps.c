/*
 * Evaluation step by step, into a matrix.
 *
 * If there is much to do, neighbouring steps are evaluated side by side, in waves of pieces. A
 * piece has several steps, so that what one reads at the end of its window serves the next
 * (db_querier_in_steps). A piece has its own evaluation: arenas, plan, notes. Its results are added
 * to the query's in the order of pieces, so answers equal those of one thread to the last bit.
 *
 * The first step is evaluated alone. It finds what is the same in all steps (series, windows pinned
 * by `@`), and the others only look at it. If anything goes wrong in a wave (an error, damage, a
 * limit), its results are thrown away, and one thread does it and all later steps. So errors and
 * warnings are those of one thread.
 */
#include <stdlib.h>

#include "base/array.h"

#include "base/map.h"
#include "promql/engine/engine_internal.h"
#include "promql/eval.h"
#include "promql/gather.h"
#include "promql/numeric.h"
#include "promql/unit.h"
#include "promql/workers.h"
#include <assert.h>

/* ---- the matrix ---- */

struct matrix {
	struct arena *arena;
	struct cost_series *series;
	size_t *caps;
	size_t n, cap;
	struct map map;
};

static bool steps_series_eq(const void *ctx, const void *key, uint32_t id)
{
	return labels_eq(*(const struct labels *)key, ((const struct matrix *)ctx)->series[id].metric);
}

static enum err_code matrix_add_series(
	struct matrix *m, struct labels metric, uint64_t hash, uint32_t *out, struct err *err)
{
	struct arena *a = m->arena;
	struct cost_series *series;
	size_t *caps;

	if (m->n == m->cap) {
		m->cap = m->cap ? m->cap * 2 : 16;
		series = arena_array(a, struct cost_series, m->cap);
		caps = arena_array(a, size_t, m->cap);
		if (!series || !caps)
			return arena_fail(a, "query", err);
		if (m->n) {
			memcpy(series, m->series, m->n * sizeof(*series));
			memcpy(caps, m->caps, m->n * sizeof(*caps));
		}
		m->series = series;
		m->caps = caps;
	}
	*out = (uint32_t)m->n;
	m->series[m->n] = (struct cost_series){ .metric = labels_dup(a, metric) };
	if (metric.n > 0 && !m->series[m->n].metric.v)
		return arena_fail(a, "query", err);
	if (!map_add(&m->map, hash, *out))
		return err_nomem(err, "query");
	m->n++;
	return ERR_OK;
}

/* Room for n more. */
static enum err_code matrix_reserve_points(struct matrix *m, uint32_t id, size_t n, struct err *err)
{
	struct cost_series *s = &m->series[id];

	if (!arena_array_room(m->arena, &s->points, s->n, n, &m->caps[id]))
		return arena_fail(m->arena, "query", err);
	return ERR_OK;
}

static enum err_code matrix_add_point(
	struct matrix *m, struct labels metric, struct point point, struct err *err)
{
	uint64_t hash = labels_hash(metric);
	uint32_t id = map_find(&m->map, hash, steps_series_eq, m, &metric);
	struct cost_series *s;
	enum err_code rc;

	if (id == MAP_NONE && (rc = matrix_add_series(m, metric, hash, &id, err)))
		return rc;
	s = &m->series[id];
	if (s->n > 0 && s->points[s->n - 1].t_ns == point.t_ns)
		return err_set(err, ERR_INVALID, "vector cannot contain metrics with the same labelset");
	if ((rc = matrix_reserve_points(m, id, 1, err)))
		return rc;
	s->points[s->n++] = point;
	return ERR_OK;
}

/* Evaluates the step at ev->work.t_ns. */
static enum err_code matrix_add_step(struct matrix *m, struct eval *ev, struct err *err)
{
	struct value v;
	enum err_code rc;

	if ((rc = eval_totals(ev, ev->work.query->root, &v, err)))
		return rc;
	if (v.type == VALUE_SCALAR)
		return matrix_add_point(
			m, (struct labels){ 0 }, (struct point){ ev->work.t_ns, v.scalar }, err);
	for (size_t i = 0; i < v.n; i++)
		if ((rc = matrix_add_point(
				 m, v.costs[i].metric, (struct point){ ev->work.t_ns, v.costs[i].value }, err)))
			return rc;
	return ERR_OK;
}

static int steps_by_metric(const void *a, const void *b)
{
	return labels_cmp(
		((const struct cost_series *)a)->metric, ((const struct cost_series *)b)->metric);
}

/* Points of later steps. */
static enum err_code matrix_join_series(
	struct matrix *m, const struct cost_series *from, struct err *err)
{
	uint64_t hash = labels_hash(from->metric);
	uint32_t id = map_find(&m->map, hash, steps_series_eq, m, &from->metric);
	struct cost_series *s;
	enum err_code rc;

	assert(from->n > 0);
	if (id == MAP_NONE && (rc = matrix_add_series(m, from->metric, hash, &id, err)))
		return rc;
	s = &m->series[id];
	if ((rc = matrix_reserve_points(m, id, from->n, err)))
		return rc;
	memcpy(s->points + s->n, from->points, from->n * sizeof(*s->points));
	s->n += from->n;
	return ERR_OK;
}

/* ---- one by one ---- */

struct stepping {
	struct eval *ev;
	struct matrix m;
	struct arena step; /* of the one that is evaluated */
	uint64_t n, at; /* steps, and how many are done */
};

static int64_t steps_time_of(const struct eval *ev, uint64_t step)
{
	return ev->times.start_ns + (int64_t)step * ev->times.step_ns;
}

static enum err_code steps_do(struct stepping *s, uint64_t end, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (; s->at < end && !rc; s->at++) {
		s->ev->work.t_ns = steps_time_of(s->ev, s->at);
		rc = matrix_add_step(&s->m, s->ev, err);
		arena_reset(&s->step);
	}
	return rc;
}

/* ---- side by side ---- */

#define PIECE_STEPS_MAX 32u
#define STEPS_MIN 4u /* fewer are not worth it */

/* Steps that one thread evaluates, in order. */
struct steps_piece {
	uint64_t first, end;
	struct arena arena; /* of the matrix and the infos */
	struct matrix m;
	uint64_t samples;
	struct infos infos;
};

/* The evaluation of a thread; it is kept from wave to wave. */
struct step_thread {
	struct eval ev;
	struct supply supply;
	struct arena step, whole;
	struct query_plan plan;
	bool is_open;
};

struct wave {
	struct stepping *x;
	struct step_thread *threads;
	unsigned threads_n;
	struct steps_piece *v;
	size_t n;
	uint64_t samples; /* of the query before it */
	atomic_uint_fast64_t read; /* in it */
	atomic_bool failed;
};

static enum err_code wave_open_thread(struct wave *w, unsigned i)
{
	struct step_thread *t = &w->threads[i];
	struct eval *ev = w->x->ev;
	enum err_code rc;

	if (!ev->supply->forks[i].querier &&
		(rc = db_querier_fork(ev->supply->querier, &ev->supply->forks[i].querier, NULL)))
		return rc;
	if (t->is_open)
		return ERR_OK;
	t->ev = *ev;
	t->supply = *ev->supply;
	t->ev.supply = &t->supply;
	t->supply.querier = ev->supply->forks[i].querier;
	t->ev.work.arena = &t->step;
	t->ev.work.whole = &t->whole;
	t->ev.plan = &t->plan;
	t->ev.units = NULL;
	t->supply.workers = NULL;
	t->supply.forks = NULL;
	t->supply.naming = NULL;
	if (ev->supply->naming &&
		(rc = naming_again(ev->supply->naming, &t->whole, &t->supply.naming, NULL)))
		return rc;
	if ((rc = plan_fork(ev->plan, &t->whole, &t->plan)))
		return rc;
	t->is_open = true;
	return ERR_OK;
}

static enum err_code wave_do_piece(struct wave *w, struct step_thread *t, struct steps_piece *p)
{
	struct eval *ev = &t->ev;
	enum err_code rc = ERR_OK;
	uint64_t before, read;
	size_t n, damages = 0;

	ev->supply->samples = w->samples;
	ev->work.infos = &p->infos;
	for (uint64_t i = p->first; i < p->end && !rc; i++) {
		if (atomic_load_explicit(&w->failed, memory_order_relaxed))
			return ERR_CANCELED;
		before = ev->supply->samples;
		ev->work.t_ns = steps_time_of(ev, i);
		rc = matrix_add_step(&p->m, ev, NULL);
		arena_reset(&t->step);
		read = ev->supply->samples - before;
		read += atomic_fetch_add_explicit(&w->read, read, memory_order_relaxed);
		if (!rc && read > ev->supply->samples_max - w->samples)
			rc = ERR_LIMIT;
	}
	p->samples = ev->supply->samples - w->samples;
	(void)db_querier_warnings(ev->supply->querier, &n);
	if (ev->supply->naming)
		(void)naming_warnings(ev->supply->naming, &damages);
	/* If infos are full the first ones count, and their order is not known here. */
	return rc ? rc : n || damages || p->infos.n == INFOS_MAX ? ERR_CORRUPT : ERR_OK;
}

static void steps_do_any_piece(void *ctx, unsigned thread, size_t i)
{
	struct wave *w = ctx;

	if (atomic_load_explicit(&w->failed, memory_order_relaxed))
		return;
	if (wave_open_thread(w, thread) || wave_do_piece(w, &w->threads[thread], &w->v[i]))
		atomic_store_explicit(&w->failed, true, memory_order_relaxed);
}

static void wave_close_thread(struct wave *w, struct step_thread *t)
{
	numeric_release_until(&t->ev, w->x->ev->numbers);
	naming_close(t->supply.naming);
	arena_release(&t->step);
	arena_release(&t->whole);
	t->is_open = false;
}

/* Adds the results of the pieces to the query's evaluation. */
static enum err_code wave_join(struct wave *w, struct err *err)
{
	struct eval *ev = w->x->ev;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < w->n && !rc; i++) {
		const struct steps_piece *p = &w->v[i];

		ev->supply->samples += p->samples;
		for (size_t k = 0; k < p->m.n && !rc; k++)
			rc = matrix_join_series(&w->x->m, &p->m.series[k], err);
		for (size_t k = 0; k < p->infos.n && !rc; k++)
			rc = work_info(&ev->work, err, STR_FMT, STR_ARG(p->infos.v[k]));
	}
	for (unsigned i = 0; i < w->threads_n; i++) {
		if (!w->threads[i].is_open)
			continue;
		plan_add_counts(ev, &w->threads[i].plan);
		if (!rc)
			rc = unit_join(ev, w->threads[i].ev.units, err);
	}
	return rc;
}

/* The next pieces, as many as there is work for. *done false: something is wrong with one. */
static enum err_code wave_do(struct wave *w, uint64_t piece_steps, bool *done, struct err *err)
{
	struct stepping *x = w->x;
	uint64_t at = x->at;
	enum err_code rc = ERR_OK;

	for (w->n = 0; w->n < 4 * (size_t)w->threads_n && at < x->n; w->n++) {
		struct steps_piece *p = &w->v[w->n];
		uint64_t end = at + piece_steps < x->n ? at + piece_steps : x->n;

		*p = (struct steps_piece){ .first = at, .end = end };
		arena_init_shared(&p->arena, x->ev->work.budget);
		p->m.arena = &p->arena;
		map_init(&p->m.map);
		at = end;
	}
	w->samples = x->ev->supply->samples;
	atomic_init(&w->read, 0);
	atomic_init(&w->failed, false);
	workers_run(x->ev->supply->workers, w->n, steps_do_any_piece, w);
	*done = !atomic_load(&w->failed);
	if (*done && !(rc = wave_join(w, err)))
		x->at = at;
	for (size_t i = 0; i < w->n; i++) {
		map_release(&w->v[i].m.map);
		arena_release(&w->v[i].arena);
	}
	return rc;
}

static enum err_code steps_do_waves(struct stepping *s, struct err *err)
{
	struct wave w = { .x = s, .threads_n = workers_threads(s->ev->supply->workers) };
	uint64_t piece = (s->n - s->at) / (2 * w.threads_n);
	enum err_code rc = ERR_OK;
	bool done = true;

	piece = piece > PIECE_STEPS_MAX ? PIECE_STEPS_MAX : piece ? piece : 1;
	/*
	 * They are few and not counted in the query's memory: one thread's memory is enough for them.
	 */
	w.threads = calloc(w.threads_n, sizeof(*w.threads));
	w.v = calloc(4 * (size_t)w.threads_n, sizeof(*w.v));
	if (!w.threads || !w.v) {
		free(w.threads);
		free(w.v);
		return err_nomem(err, "query");
	}
	for (unsigned i = 0; i < w.threads_n; i++) {
		arena_init_shared(&w.threads[i].step, s->ev->work.budget);
		arena_init_shared(&w.threads[i].whole, s->ev->work.budget);
	}
	while (s->at < s->n && done && !rc)
		if (!(rc = work_check(&s->ev->work, err)))
			rc = wave_do(&w, piece, &done, err);
	for (unsigned i = 0; i < w.threads_n; i++)
		wave_close_thread(&w, &w.threads[i]);
	forks_end(s->ev->supply, s->ev->work.arena, !done);
	free(w.threads);
	free(w.v);
	return rc;
}

/* Numbers are kept in slices of time, answers of subqueries too: their steps are done in order. */
static bool steps_is_worth_it(const struct stepping *s)
{
	const struct eval *ev = s->ev;
	uint64_t worth = ev->supply->parallel_samples ? ev->supply->parallel_samples :
													GATHER_WORTH_DEFAULT;

	return ev->supply->forks && workers_threads(ev->supply->workers) > 1 &&
		s->n - s->at >= STEPS_MIN && !ev->plan->partial && !numeric_any(ev) && !ev->subqueries &&
		(ev->plan->all.samples >= worth || ev->plan->visits >= worth);
}

/* ---- all of it ---- */

/* Windows begin where earlier ones end. */
static bool steps_adjoin(const struct eval *ev)
{
	for (const struct expr *e = ev->work.query->selectors; e; e = e->selector.next)
		if (e->types != VALUE_FRAMES && e->selector.window_ns % ev->times.step_ns == 0)
			return true;
	return false;
}

enum err_code steps_evaluate(struct eval *ev, struct cost_series **out, size_t *n, struct err *err)
{
	struct stepping x = { .ev = ev, .m.arena = ev->work.whole };
	enum err_code rc;

	assert(ev->times.mode == EVAL_RANGE && ev->times.step_ns > 0 &&
		ev->times.start_ns <= ev->times.end_ns);
	x.n = (uint64_t)((ev->times.end_ns - ev->times.start_ns) / ev->times.step_ns) + 1;
	if (ev->supply->querier && x.n > 1)
		db_querier_in_steps(ev->supply->querier, steps_adjoin(ev));
	map_init(&x.m.map);
	arena_init_shared(&x.step, ev->work.budget);
	ev->work.arena = &x.step;
	rc = steps_do(&x, 1, err);
	if (!rc && steps_is_worth_it(&x))
		rc = steps_do_waves(&x, err);
	if (!rc)
		rc = steps_do(&x, x.n, err);
	arena_release(&x.step);
	map_release(&x.m.map);
	if (x.m.n > 0)
		qsort(x.m.series, x.m.n, sizeof(*x.m.series), steps_by_metric);
	*out = x.m.series;
	*n = x.m.n;
	return rc;
}
