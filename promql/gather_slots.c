/* Slots: rows that are read from the database together. Slots are read side by side. */
#include "promql/gather.h"

#include <assert.h>

#include "promql/workers.h"

#define SLOT_SERIES_MIN 4u
#define PIECES_MAX 64u /* of all slots that are summed together */

/* Doubles an array of the arena. */
static enum err_code gather_slots_grow(
	struct gathering *g, void *array, size_t item, size_t *cap, struct err *err)
{
	void **at = array, *grown;
	size_t n = *cap ? *cap * 2 : SLOT_SERIES_MIN;

	if (!(grown = arena_calloc(g->work->arena, n, item)))
		return work_nomem(g->work, err);
	if (*cap)
		memcpy(grown, *at, *cap * item);
	*at = grown;
	*cap = n;
	return ERR_OK;
}

static bool gather_slots_fits(const struct slot *slot, const struct chosen *c)
{
	return slot->at_ns == c->at_ns && slot->min_ns == c->min_ns &&
		slot->window_ns == c->window_ns && slot->partition == c->series->partition &&
		slot->deferred == c->deferred && slot->by_labels == c->by_labels &&
		slot->asked == c->asked && slot->takes_empty == c->takes_empty && slot->none == c->none &&
		profile_type_eq(slot->type, &c->type);
}

bool slots_fit(const struct slot *a, const struct slot *b)
{
	return a->at_ns == b->at_ns && a->partition == b->partition && a->deferred == b->deferred &&
		a->by_labels == b->by_labels && a->asked == b->asked && a->takes_empty == b->takes_empty &&
		a->none == b->none && profile_type_eq(a->type, b->type);
}

static bool factor_fits(const struct slot *slot, const struct factor *f)
{
	return !f || (slot->factor.multiplier == f->multiplier && slot->factor.divisor == f->divisor);
}

#define SLOTS_LOOKED_AT 64u /* neighbours are of one job: the last one fits, mostly */

static enum err_code gather_slots_find_slot(struct gathering *g, const struct chosen *c,
	const struct factor *f, struct slot **out, struct err *err)
{
	size_t end = g->from;
	enum err_code rc;

	if (f && g->slots_n > end + SLOTS_LOOKED_AT) /* factors_join finds the others */
		end = g->slots_n - SLOTS_LOOKED_AT;
	for (size_t i = g->slots_n; i-- > end && (f || !g->fraction);)
		if (gather_slots_fits(&g->slots[i], c) && factor_fits(&g->slots[i], f)) {
			*out = &g->slots[i];
			return ERR_OK;
		}
	if (g->slots_n == g->slots_cap &&
		(rc = gather_slots_grow(g, &g->slots, sizeof(*g->slots), &g->slots_cap, err)))
		return rc;
	*out = &g->slots[g->slots_n++];
	**out = (struct slot){ .partition = c->series->partition,
		.type = &c->type,
		.fit = c->fit,
		.deferred = c->deferred,
		.asked = c->asked,
		.takes_empty = c->takes_empty,
		.none = c->none,
		.by_labels = c->by_labels,
		.at_ns = c->at_ns,
		.min_ns = c->min_ns,
		.window_ns = c->window_ns };
	if (f) {
		(*out)->factor = *f;
		(*out)->has_factor = true;
	}
	return ERR_OK;
}

enum err_code slots_add(
	struct gathering *g, const struct chosen *c, const struct factor *f, struct err *err)
{
	struct slot *slot = NULL;
	enum err_code rc;

	assert(g->from <= g->slots_n);
	if ((rc = gather_slots_find_slot(g, c, f, &slot, err)))
		return rc;
	if (slot->series_n == slot->series_cap &&
		(rc = gather_slots_grow(g, &slot->series, sizeof(*slot->series), &slot->series_cap, err)))
		return rc;
	slot->series[slot->series_n++] = c->series;
	return ERR_OK;
}

/* ---- one slot ---- */

static void gather_slots_close_sums(struct gathering *g, struct sums *s)
{
	if (g->work->budget)
		budget_give(g->work->budget, s->charged);
	accum_close(s->acc);
	function_sums_close(s->functions);
	*s = (struct sums){ 0 };
}

void slots_close(struct gathering *g)
{
	for (size_t i = 0; i < g->slots_n; i++)
		gather_slots_close_sums(g, &g->slots[i].sums);
	g->slots_n = g->from = 0;
}

static enum sum_wish gather_slots_wish_of(const struct gathering *g, const struct slot *slot)
{
	if (g->s->totals_only || slot->none)
		return SUM_TOTALS;
	return g->s->by_name && !slot->by_labels && slot->type->delta && !g->s->window.latest ?
		SUM_FUNCTIONS :
		SUM_CELLS;
}

/* (min, max] of a slot. */
static void gather_slots_window_of(
	const struct gathering *g, const struct slot *slot, int64_t *min_ns, int64_t *max_ns)
{
	*min_ns = slot->at_ns ? slot->at_ns - 1 : slot->min_ns ? slot->min_ns : g->s->window.min_ns;
	*max_ns = slot->at_ns ? slot->at_ns : g->s->window.max_ns;
}

/* Memory of sums counts as the query's. */
static enum err_code gather_slots_charge(struct gathering *g, struct sums *s, struct err *err)
{
	struct budget *b = g->work->budget;
	size_t bytes = (s->acc ? accum_bytes(s->acc) : 0) +
		(s->functions ? function_sums_bytes(s->functions) : 0);

	if (!b || bytes <= s->charged)
		return ERR_OK;
	if (!budget_take(b, bytes - s->charged))
		return budget_fail(b, "query", err);
	s->charged = bytes;
	return ERR_OK;
}

static enum err_code gather_slots_sum_rows(struct gathering *g, const struct slot *slot,
	int64_t min_ns, int64_t max_ns, struct db_querier *q, struct arena *a, struct sums *out,
	struct err *err)
{
	struct sum_part_of part = { .min_ns = min_ns, .max_ns = max_ns };
	enum sum_pick pick = gather_pick(g, slot->at_ns);

	if (pick != SUM_WINDOW)
		return db_sum(q, slot->series, slot->series_n, slot->type, min_ns, max_ns, pick, out->acc,
			a, &out->stats, err);
	gather_slots_window_of(g, slot, &part.of_min_ns, &part.of_max_ns);
	return db_sum_part(
		q, slot->series, slot->series_n, slot->type, part, out->acc, a, &out->stats, err);
}

static enum err_code gather_slots_open_sums(
	struct gathering *g, const struct slot *slot, struct sums *out, struct err *err)
{
	unsigned flags = (slot->by_labels ? ACCUM_BY_LABELS : 0) |
		(slot->type->delta ? 0 : ACCUM_WEIGHTED);
	enum sum_wish wish = gather_slots_wish_of(g, slot);
	enum err_code rc = ERR_OK;

	if (wish != SUM_TOTALS)
		rc = accum_open(slot->partition, flags, &out->acc, err);
	if (!rc && wish == SUM_FUNCTIONS)
		rc = function_sums_open(&out->functions, err);
	return rc;
}

/* All series of a slot at once: sums of whole groups of series are read as such. */
static enum err_code gather_slots_sum_window(struct gathering *g, const struct slot *slot,
	int64_t min_ns, int64_t max_ns, struct db_querier *q, struct arena *a, struct sums *out,
	struct err *err)
{
	enum err_code rc = work_check(g->work, err);

	if (rc || (rc = gather_slots_open_sums(g, slot, out, err)))
		return rc;
	if (out->functions) {
		rc = db_sum_functions(q, slot->series, slot->series_n, slot->type, min_ns, max_ns,
			out->functions, out->acc, a, &out->stats, err);
	} else {
		rc = gather_slots_sum_rows(g, slot, min_ns, max_ns, q, a, out, err);
	}
	return rc ? rc : gather_slots_charge(g, out, err);
}

static enum err_code gather_slots_count(
	struct gathering *g, const struct slot *slot, struct err *err)
{
	struct supply *supply = g->supply;

	supply->samples += slot->sums.stats.read;
	if (supply->samples <= supply->samples_max)
		return ERR_OK;
	return work_fault(g->work, g->s->expr, err, ERR_LIMIT,
		"the query reads more than %llu samples (--query.max-samples)",
		(unsigned long long)supply->samples_max);
}

/* ---- many slots ---- */

#define BUNDLE_MAX 32u /* slots: their sums are in memory before they are counted */

struct gather_slots_piece {
	const struct slot *slot;
	int64_t min_ns, max_ns;
	struct sums sums;
};

static bool gather_slots_are_amounts(const struct gathering *g)
{
	bool all = g->slots_n > 1;

	for (size_t i = 0; i < g->slots_n && all; i++)
		all = g->slots[i].type->delta && gather_pick(g, g->slots[i].at_ns) == SUM_WINDOW;
	return all;
}

/* A bundle: head windows are read once for all of it. */
static enum err_code gather_slots_sum_bundle(struct gathering *g, struct gather_slots_piece *pieces,
	size_t n, struct db_querier *q, struct arena *a, struct err *err)
{
	struct db_sum_of of[BUNDLE_MAX];
	enum err_code rc = work_check(g->work, err);

	assert(n <= BUNDLE_MAX);
	for (size_t i = 0; i < n && !rc; i++) {
		rc = gather_slots_open_sums(g, pieces[i].slot, &pieces[i].sums, err);
		of[i] = (struct db_sum_of){ pieces[i].slot->series, pieces[i].slot->series_n,
			pieces[i].slot->type, pieces[i].min_ns, pieces[i].max_ns, pieces[i].sums.functions,
			pieces[i].sums.acc, &pieces[i].sums.stats };
	}
	if (!rc)
		rc = db_sum_together(q, of, n, a, err);
	for (size_t i = 0; i < n && !rc; i++)
		rc = gather_slots_charge(g, &pieces[i].sums, err);
	return rc;
}

/* Sums the slots from *at on; *at is behind them, or the same: one of them fails. */
static enum err_code gather_slots_sum_some(struct gathering *g, size_t *at, struct err *err)
{
	struct gather_slots_piece v[BUNDLE_MAX] = { 0 };
	size_t n = g->slots_n - *at < BUNDLE_MAX ? g->slots_n - *at : BUNDLE_MAX;
	enum err_code rc;

	for (size_t i = 0; i < n; i++) {
		v[i].slot = &g->slots[*at + i];
		gather_slots_window_of(g, v[i].slot, &v[i].min_ns, &v[i].max_ns);
	}
	if (gather_slots_sum_bundle(g, v, n, g->supply->querier, g->work->arena, NULL)) {
		for (size_t i = 0; i < n; i++)
			gather_slots_close_sums(g, &v[i].sums);
		return work_check(g->work, err);
	}
	for (size_t i = 0; i < n; i++)
		g->slots[*at + i].sums = v[i].sums;
	for (size_t end = *at + n; *at < end; ++*at)
		if ((rc = gather_slots_count(g, &g->slots[*at], err)))
			return rc;
	return ERR_OK;
}

/* If a bundle fails, its slots and the later ones are read one by one, to find the error. */
static enum err_code gather_slots_sum_one_by_one(struct gathering *g, struct err *err)
{
	int64_t min_ns, max_ns;
	size_t at = 0, before = SIZE_MAX;
	enum err_code rc = ERR_OK;

	for (; gather_slots_are_amounts(g) && at < g->slots_n && at != before && !rc;) {
		before = at;
		rc = gather_slots_sum_some(g, &at, err);
	}
	for (size_t i = at; i < g->slots_n && !rc; i++) {
		gather_slots_window_of(g, &g->slots[i], &min_ns, &max_ns);
		rc = gather_slots_sum_window(g, &g->slots[i], min_ns, max_ns, g->supply->querier,
			g->work->arena, &g->slots[i].sums, err);
		if (!rc)
			rc = gather_slots_count(g, &g->slots[i], err);
	}
	return rc;
}

/* ---- side by side ---- */

struct gather_slots_running {
	struct gathering *x;
	struct gather_slots_piece *v;
	size_t n, bundle; /* pieces; so many at once */
	atomic_bool failed;
};

static enum err_code gather_slots_sum_pieces_of(
	struct gather_slots_running *r, unsigned thread, struct gather_slots_piece *p, size_t pieces_n)
{
	struct supply *supply = r->x->supply;
	struct supply_fork *f = &supply->forks[thread];
	enum err_code rc;
	size_t n;

	if (!f->querier && (rc = db_querier_fork(supply->querier, &f->querier, NULL)))
		return rc;
	rc = r->bundle > 1 ? gather_slots_sum_bundle(r->x, p, pieces_n, f->querier, &f->arena, NULL) :
						 gather_slots_sum_window(r->x, p->slot, p->min_ns, p->max_ns, f->querier,
							 &f->arena, &p->sums, NULL);
	(void)db_querier_warnings(f->querier, &n);
	return rc ? rc : n ? ERR_CORRUPT : ERR_OK;
}

static void gather_slots_sum_pieces(void *ctx, unsigned thread, size_t i)
{
	struct gather_slots_running *r = ctx;
	size_t at = i * r->bundle, n = r->n - at < r->bundle ? r->n - at : r->bundle;

	if (atomic_load_explicit(&r->failed, memory_order_relaxed))
		return;
	if (gather_slots_sum_pieces_of(r, thread, &r->v[at], n))
		atomic_store_explicit(&r->failed, true, memory_order_relaxed);
}

static enum err_code gather_slots_merge_sums(
	struct gathering *g, struct sums *to, struct sums *from, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (to->acc)
		rc = accum_merge(to->acc, from->acc, err);
	if (!rc && to->functions)
		rc = function_sums_merge(to->functions, from->functions, err);
	if (!rc)
		rc = sum_stats_merge(&to->stats, &from->stats, g->work->arena, err);
	gather_slots_close_sums(g, from);
	return rc ? rc : gather_slots_charge(g, to, err);
}

enum err_code slots_merge(struct gathering *g, struct slot *to, struct slot *from, struct err *err)
{
	return gather_slots_merge_sums(g, &to->sums, &from->sums, err);
}

static enum err_code gather_slots_put_together(
	struct gathering *g, struct slot *slot, struct gather_slots_piece *s, size_t n, struct err *err)
{
	enum err_code rc = ERR_OK;

	slot->sums = s[0].sums;
	s[0].sums = (struct sums){ 0 };
	for (size_t i = 1; i < n && !rc; i++)
		rc = gather_slots_merge_sums(g, &slot->sums, &s[i].sums, err);
	return rc;
}

/*
 * Each slot is a piece. If there are few slots, each becomes several pieces, cut where blocks end.
 */
static enum err_code gather_slots_cut_pieces(
	struct gathering *g, struct gather_slots_running *r, struct err *err)
{
	const struct time_window *w = &g->s->window;
	enum sum_pick pick = gather_pick(g, g->slots[0].at_ns);
	bool levels = pick == SUM_WINDOW && !g->slots[0].type->delta;
	size_t each = pick == SUM_LAST ? 1 : 2 * workers_threads(g->supply->workers) / g->slots_n, n;
	int64_t cuts[PIECES_MAX], from, end;

	n = db_querier_cuts(g->supply->querier, w->min_ns, w->max_ns, levels, cuts, PIECES_MAX);
	if (each > n + 1)
		each = n + 1;
	if (each < 1)
		each = 1;
	if (!(r->v = arena_array(g->work->arena, struct gather_slots_piece, each * g->slots_n)))
		return work_nomem(g->work, err);
	for (size_t i = 0; i < g->slots_n; i++) {
		gather_slots_window_of(g, &g->slots[i], &from, &end);
		for (size_t k = 0; k < each; k++) {
			int64_t to = k + 1 == each ? end : cuts[(k + 1) * (n + 1) / each - 1];

			if (to < from) /* a slot's window may begin later than the selection's */
				to = from;
			r->v[r->n++] = (struct gather_slots_piece){
				.slot = &g->slots[i], .min_ns = from, .max_ns = to
			};
			from = to;
		}
	}
	return ERR_OK;
}

void forks_end(struct supply *supply, struct arena *arena, bool failed)
{
	for (unsigned i = 0; i < workers_threads(supply->workers); i++) {
		struct supply_fork *f = &supply->forks[i];

		assert(supply->forks);
		if (!failed)
			arena_adopt(arena, &f->arena);
		arena_release(&f->arena);
		if (!failed || !f->querier)
			continue;
		db_querier_join(supply->querier, f->querier);
		db_querier_close(f->querier); /* its warnings go too: the second attempt repeats them */
		f->querier = NULL;
	}
}

/* *done false: something is wrong. Then slots are read one by one to find the error. */
static enum err_code gather_slots_sum_side_by_side(struct gathering *g, bool *done, struct err *err)
{
	struct gather_slots_running r = { .x = g };
	enum err_code rc;
	size_t each;

	assert(g->slots_n > 0 && g->supply->forks);
	*done = false;
	atomic_init(&r.failed, false);
	if ((rc = gather_slots_cut_pieces(g, &r, err)))
		return rc;
	each = r.n / g->slots_n;
	r.bundle = each == 1 && gather_slots_are_amounts(g) ?
		r.n / (2 * (size_t)workers_threads(g->supply->workers)) :
		1;
	r.bundle = r.bundle > BUNDLE_MAX ? BUNDLE_MAX : r.bundle ? r.bundle : 1;
	workers_run(g->supply->workers, (r.n + r.bundle - 1) / r.bundle, gather_slots_sum_pieces, &r);
	*done = !atomic_load(&r.failed);
	forks_end(g->supply, g->work->arena, !*done);
	for (size_t i = 0; i < g->slots_n && *done && !rc; i++) {
		rc = gather_slots_put_together(g, &g->slots[i], &r.v[i * each], each, err);
		if (rc == ERR_LIMIT) { /* perhaps of a part alone */
			*done = false;
			rc = ERR_OK;
		}
	}
	for (size_t i = 0; i < r.n; i++)
		gather_slots_close_sums(g, &r.v[i].sums);
	for (size_t i = 0; i < g->slots_n && !*done; i++)
		gather_slots_close_sums(g, &g->slots[i].sums);
	for (size_t i = 0; i < g->slots_n && *done && !rc; i++)
		rc = gather_slots_count(g, &g->slots[i], err);
	return rc;
}

static bool gather_slots_is_worth(const struct supply *supply, uint64_t samples)
{
	uint64_t worth = supply->parallel_samples ? supply->parallel_samples : GATHER_WORTH_DEFAULT;

	return supply->forks && workers_threads(supply->workers) > 1 && samples >= worth;
}

static bool gather_slots_is_worth_it(const struct gathering *g)
{
	return gather_slots_is_worth(g->supply, g->s->cost);
}

static size_t gather_slots_wanted_by(const struct supply *supply)
{
	return 4 * (size_t)workers_threads(supply->workers);
}

size_t slots_wanted(const struct gathering *g)
{
	return gather_slots_is_worth_it(g) ? gather_slots_wanted_by(g->supply) : 1;
}

uint64_t gather_group_bytes(const struct supply *supply, uint64_t samples, bool cells)
{
	uint64_t bytes = sizeof(struct profile_value) + sizeof(struct part) +
		SLOT_SERIES_MIN * sizeof(const struct db_series *);

	if (cells)
		bytes += 2 * sizeof(struct cell);
	if (gather_slots_is_worth(
			supply, samples)) /* headers are in the arena of a thread, a new one for each batch */
		bytes += sizeof(struct gather_slots_piece) +
			ARENA_BLOCK_FIRST / gather_slots_wanted_by(supply);
	return bytes;
}

/* Blocks in a bucket begin to read what all slots need. */
static void gather_slots_tell_what_comes(struct gathering *g)
{
	struct db_querier *q = g->supply->querier;
	int64_t min_ns, max_ns;

	for (int part = SUM_NO_PART + 1; part < SUM_PARTS && db_querier_is_far(q); part++)
		for (size_t i = 0; i < g->slots_n; i++) {
			const struct slot *slot = &g->slots[i];

			if (gather_pick(g, slot->at_ns) == SUM_LAST)
				continue;
			gather_slots_window_of(g, slot, &min_ns, &max_ns);
			db_sum_expect(q, slot->series, slot->series_n, slot->type, min_ns, max_ns,
				gather_slots_wish_of(g, slot), (enum sum_part)part);
		}
}

enum err_code slots_sum(struct gathering *g, struct err *err)
{
	enum err_code rc;
	bool done;

	gather_slots_tell_what_comes(g);
	if (gather_slots_is_worth_it(g) && g->slots_n) {
		if ((rc = gather_slots_sum_side_by_side(g, &done, err)) || done)
			return rc;
		if ((rc = work_check(g->work, err)))
			return rc;
	}
	return gather_slots_sum_one_by_one(g, err);
}

/* ---- estimates ---- */

#define GROUPS_LOOKED_AT 64u

static enum err_code gather_slots_estimate_group(struct gathering *g, const struct chosen *c,
	size_t n, struct sum_estimate *out, struct err *err)
{
	int64_t min_ns, max_ns;
	enum err_code rc = work_check(g->work, err);

	g->slots_n = g->from = 0;
	for (size_t i = 0; i < n && !rc; i++)
		rc = slots_add(g, &c[i], NULL, err);
	for (size_t i = 0; i < g->slots_n && !rc; i++) {
		const struct slot *slot = &g->slots[i];

		gather_slots_window_of(g, slot, &min_ns, &max_ns);
		rc = db_estimate(g->supply->querier, slot->series, slot->series_n, slot->type, min_ns,
			max_ns, gather_pick(g, slot->at_ns), gather_slots_wish_of(g, slot), out, err);
	}
	return rc;
}

enum err_code estimate_selection(struct work *work, struct supply *supply,
	const struct selection *s, struct sum_estimate *out, struct err *err)
{
	struct gathering x = { .work = work,
		.supply = supply,
		.s = s,
		.fraction = s->n > 0 && fraction_has_factor(s->over, &s->v[0].type) };
	struct sum_estimate some = { 0 };
	uint64_t *to = (uint64_t *)out, *from = (uint64_t *)&some;
	size_t looked = 0, group = 0, end;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < s->n && !rc; i = end, group++) {
		for (end = i + 1; end < s->n && s->v[end].group == s->v[i].group; end++)
			;
		if (group < looked * s->groups_n / GROUPS_LOOKED_AT)
			continue; /* the others are assumed to be like the ones looked at */
		rc = gather_slots_estimate_group(&x, &s->v[i], end - i, &some, err);
		looked++;
	}
	for (size_t i = 0; i < sizeof(some) / sizeof(*to) && looked; i++)
		to[i] += (uint64_t)((double)from[i] * s->groups_n / (double)looked + 0.5);
	return rc;
}
