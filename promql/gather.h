/*
 * Adding up a selection, the inside: what reading the database (gather_slots.c) and reading out
 * cells (gather.c) share.
 *
 * Slots of several groups are summed side by side where there is enough to read, and a slot of a
 * long window in pieces of time. What comes out is what one after the other gives: sums are exact,
 * pieces are put together in their order, and where a piece fails or warns of damage all of it is
 * done again by one thread, so that errors and warnings are the same each time.
 *
 * Errors, Threads: as eval.h.
 */
#ifndef PROMQL_GATHER_H
#define PROMQL_GATHER_H

#include "promql/choose.h"
#include "promql/supply.h"

/* The database adds to these. */
struct sums {
	struct accum *acc; /* NULL for totals */
	struct function_sums *functions; /* NULL: cells only */
	struct sum_stats stats;
	size_t charged; /* bytes of the two, taken from the query's budget */
};

/* Rows of one group, partition and type that are asked the same of their samples. */
struct slot {
	const struct db_series **series;
	size_t series_n, series_cap;
	struct partition *partition;
	const struct profile_type *type;
	const struct fit *fit; /* as in struct chosen */
	uint64_t deferred;
	bool asked, takes_empty, none, by_labels;
	int64_t at_ns, min_ns, window_ns; /* as in struct chosen */
	struct factor factor; /* of fractions */
	bool has_factor; /* known before it is read: of several series */
	struct sums sums;
};

struct gathering {
	struct work *work;
	struct supply *supply;
	const struct selection *s;
	struct slot *slots; /* of the groups in work */
	size_t slots_n, slots_cap;
	size_t from; /* the first of the group in work */
	struct slot *of; /* slots of a group that is read out */
	size_t of_n;
	struct cover counted; /* of levels: by all groups so far */
	bool weighted; /* gauges over a window */
	bool fraction; /* costs are multiplied by a factor for each series */
	bool wide; /* one of the two */
	bool cancels; /* samples that differ in their labels alone may have cancelled out */
	bool negative; /* some cost that was read is below zero */
};

/* A cost in the selection's unit; false: beyond 128 bits. */
static inline bool slot_convert(const struct slot *slot, __int128 cost, __int128 *out)
{
	*out = cost;
	return !slot->fit || !__builtin_mul_overflow(cost, (__int128)slot->fit->scale, out);
}

/* Something of it is in the answer. */
static inline bool slot_is_read(const struct slot *slot)
{
	return slot->sums.stats.rows && !slot->none;
}

/* Of which rows sums are wanted. at_ns: of the one scrape, or 0. */
static inline enum sum_pick gather_pick(const struct gathering *g, int64_t at_ns)
{
	if (at_ns || g->s->window.latest)
		return SUM_LAST;
	return g->s->over == OVER_SUM ? SUM_EACH : SUM_WINDOW;
}

/* ---- gather.c ---- */

/* Reads and adds up a selection: one element per group. */
MUST_CHECK enum err_code gather_selection(struct work *work, struct supply *supply,
	const struct selection *s, struct value *out, struct err *err);

/* ERR_LIMIT: a cost passes 64 bits. */
enum err_code gather_too_large(const struct gathering *g, struct err *err);

/* ---- gather_slots.c ---- */

/* Adds what reading the selection once costs. */
MUST_CHECK enum err_code estimate_selection(struct work *work, struct supply *supply,
	const struct selection *s, struct sum_estimate *out, struct err *err);

/* Samples from which on help is worth asking for: half a millisecond. */
#define GATHER_WORTH_DEFAULT 200000u

/* Helping threads have ended; the arena gets what they read. failed: forget what they read, and
 * their warnings. */
void forks_end(struct supply *supply, struct arena *arena, bool failed);

/* The next slots are of another group. */
static inline void slots_next_group(struct gathering *g)
{
	g->from = g->slots_n;
}
/* f: the factor if it is known, else NULL. */
MUST_CHECK enum err_code slots_add(
	struct gathering *g, const struct chosen *c, const struct factor *f, struct err *err);
/* Asked the same, of the same partition and type. */
bool slots_fit(const struct slot *a, const struct slot *b);
/* Adds the sums of `from` to those of `to`. */
MUST_CHECK enum err_code slots_merge(
	struct gathering *g, struct slot *to, struct slot *from, struct err *err);
/* The number of slots that are worth summing together. */
size_t slots_wanted(const struct gathering *g);
/*
 * The least memory that a group of one series takes, summed among so many samples. The series, what
 * was chosen of it, and what is made of the profile afterwards take more.
 */
uint64_t gather_group_bytes(const struct supply *supply, uint64_t samples, bool cells);
MUST_CHECK enum err_code slots_sum(struct gathering *g, struct err *err);
void slots_close(struct gathering *g);

/* ---- gather_siblings.c ---- */

/* Multiplies what was read of each slot (parts, by slot) by the slot's factor. */
MUST_CHECK enum err_code siblings_widen(struct gathering *g, struct part *parts, struct err *err);
/* The same of totals: adds them to *total. */
MUST_CHECK enum err_code siblings_total(struct gathering *g, __int128 *total, struct err *err);

/* ---- gather_names.c ---- */

/* Gives addresses names; parts keep their cells. The answer's infos say what has no name. */
MUST_CHECK enum err_code gather_names(
	struct work *work, struct supply *supply, struct value *v, struct err *err);
/* Sums by name are not what stacks would give: addresses among them have names now. */
MUST_CHECK enum err_code gather_names_may_differ(
	struct supply *supply, const struct part *part, bool *yes, struct err *err);

/* ---- gather_factors.c ---- */

/* Series of one group whose costs are multiplied by factors: these may be equal, so that sums over
 * many series can be read. */
bool factors_come_first(const struct gathering *g, const struct chosen *c, size_t n);
/* Reads totals, and adds slots by factor; none if it does not pay. */
MUST_CHECK enum err_code factors_add(
	struct gathering *g, const struct chosen *c, size_t n, struct err *err);
/* Finds the factors of summed slots; slots with equal factors become one. */
MUST_CHECK enum err_code factors_join(struct gathering *g, struct err *err);

#endif
