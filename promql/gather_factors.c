/*
 * Factors: costs of rates and means are multiplied by a factor of each series.
 *
 * Per factor, a group's costs are the sum of whole numbers over all series that have it, multiplied
 * once. So the result is the same whether series are read one by one or as sums over many series.
 * Sums are much less to read, but the factors must be known before. The totals of a series tell its
 * factor, and cost only the heads of its records.
 */
#include "promql/gather.h"

#include "base/clock.h"
#include "base/map.h"

#define GROUPS_DEFAULT_NS NS_PER_HOUR /* shorter windows have no sums of whole steps */

static void gather_factors_add_stats(struct sum_stats *to, const struct sum_stats *from)
{
	to->rows += from->rows;
	to->elapsed_ns += from->elapsed_ns;
	to->profiled_ns += from->profiled_ns;
}

/*
 * window_ns: of the series; 0: the selector's. The window of a mean rate is not known yet: costs
 * are those of a second until gather_factors_divide divides them.
 */
static struct factor gather_factors_of(const struct gathering *g, const struct profile_type *type,
	const struct sum_stats *all, int64_t window_ns)
{
	if (g->s->over == OVER_MEAN_RATE)
		window_ns = NS_PER_S;
	return fraction_factor(
		g->s->over, type, all, window_ns ? window_ns : g->s->selector->window_ns);
}

/*
 * The window of a group's mean rate: that of the selection, which begins no earlier than the first
 * profile of the group. One that is shorter than the mean interval of the profiles is as long as
 * that, as in rate_window.c.
 */
static int64_t gather_factors_window(const struct gathering *g)
{
	const struct time_window *w = &g->s->window;
	int64_t first_ns = w->max_ns - 1, window_ns;
	struct sum_stats all = { 0 };

	for (size_t i = 0; i < g->of_n; i++) {
		const struct sum_stats *stats = &g->of[i].sums.stats;

		if (stats->rows && stats->start_ns < first_ns)
			first_ns = stats->start_ns;
		gather_factors_add_stats(&all, stats);
	}
	window_ns = w->max_ns - (first_ns > w->min_ns ? first_ns : w->min_ns);
	if (all.rows && all.elapsed_ns / all.rows > window_ns && all.elapsed_ns / all.rows < INT64_MAX)
		window_ns = (int64_t)(all.elapsed_ns / all.rows);
	return window_ns > 0 ? window_ns : 1;
}

/* One divisor for the whole group, so slots that had equal factors still do. */
static void gather_factors_divide(struct gathering *g)
{
	long double seconds = (long double)gather_factors_window(g) / (long double)NS_PER_S;

	for (size_t i = 0; i < g->of_n; i++)
		g->of[i].factor.divisor *= seconds;
}

static uint64_t gather_factors_hash_of(const struct slot *slot)
{
	const double f[] = { (double)slot->factor.multiplier, (double)slot->factor.divisor };

	return hash_bytes(f, sizeof(f), (uintptr_t)slot->partition);
}

/* ---- before reading ---- */

bool factors_come_first(const struct gathering *g, const struct chosen *c, size_t n)
{
	const struct time_window *w = &g->s->window;
	int64_t least = g->supply->rate_groups_ns ? g->supply->rate_groups_ns : GROUPS_DEFAULT_NS;

	return g->fraction && !g->s->totals_only && w->max_ns - w->min_ns >= least && n > 1 &&
		!choose_is_same_series(c[0].series, &c[0].type, c[n - 1].series, &c[n - 1].type);
}

static enum err_code gather_factors_read_totals(
	struct gathering *g, const struct chosen *c, struct sum_stats *all, struct err *err)
{
	int64_t min_ns = c->min_ns ? c->min_ns : g->s->window.min_ns;
	struct sum_stats stats = { 0 };
	enum err_code rc = work_check(g->work, err);

	if (rc)
		return rc;
	rc = db_sum(g->supply->querier, &c->series, 1, &c->type, min_ns, g->s->window.max_ns,
		gather_pick(g, 0), NULL, g->work->arena, &stats, err);
	gather_factors_add_stats(all, &stats);
	return rc;
}

enum err_code factors_add(struct gathering *g, const struct chosen *c, size_t n, struct err *err)
{
	enum err_code rc = ERR_OK;
	size_t end;

	for (size_t i = 0; i < n && !rc; i = end) {
		struct sum_stats all = { 0 };
		struct factor f;

		for (end = i; end < n && !rc &&
			 choose_is_same_series(c[end].series, &c[end].type, c[i].series, &c[i].type);
			 end++)
			rc = gather_factors_read_totals(g, &c[end], &all, err);
		if (rc || !all.rows)
			continue;
		f = gather_factors_of(g, &c[i].type, &all, c[i].window_ns);
		for (size_t k = i; k < end && !rc; k++)
			rc = slots_add(g, &c[k], &f, err);
	}
	return rc;
}

/* ---- after it ---- */

static void gather_factors_find(struct gathering *g)
{
	size_t end;

	for (size_t i = 0; i < g->of_n; i = end) {
		const struct slot *first = &g->of[i];
		struct sum_stats all = { 0 };

		end = i + 1;
		if (first->has_factor)
			continue;
		/* Slots of one series are its epochs, and neighbours. */
		for (end = i; end < g->of_n &&
			 choose_is_same_series(
				 g->of[end].series[0], g->of[end].type, first->series[0], first->type);
			 end++)
			gather_factors_add_stats(&all, &g->of[end].sums.stats);
		for (size_t k = i; k < end; k++)
			g->of[k].factor = gather_factors_of(g, first->type, &all, first->window_ns);
	}
}

static bool slot_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct slot *a = key, *b = &((const struct gathering *)ctx)->of[id];

	return a->factor.multiplier == b->factor.multiplier && a->factor.divisor == b->factor.divisor &&
		slots_fit(a, b);
}

enum err_code factors_join(struct gathering *g, struct err *err)
{
	enum err_code rc = ERR_OK;
	struct map map;

	gather_factors_find(g);
	if (g->s->over == OVER_MEAN_RATE)
		gather_factors_divide(g);
	map_init(&map);
	for (size_t i = 0; i < g->of_n && !rc; i++) {
		struct slot *slot = &g->of[i];
		uint64_t hash = gather_factors_hash_of(slot);
		uint32_t at;

		if (!slot->sums.stats.rows)
			continue;
		if ((at = map_find(&map, hash, slot_eq, g, slot)) != MAP_NONE)
			rc = slots_merge(g, &g->of[at], slot, err);
		else if (!map_add(&map, hash, (uint32_t)i))
			rc = work_nomem(g->work, err);
	}
	map_release(&map);
	return rc;
}
