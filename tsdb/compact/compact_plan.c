#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tsdb/compact/compact_internal.h"

/*
 * Plans which blocks are joined. Lengths grow from a window by four, then by threes: with windows
 * of 2h that is 8h, 1d, 3d, 9d, 27d; up to block_max_ns. Ranges of a length are aligned to
 * multiples of it. The blocks inside one range are joined once no window can be cut into it any
 * more. Their number varies: gaps leave fewer blocks, shorter windows leave more.
 *
 * These are not joined: blocks around a gap that a clock may have made which was ahead, as its time
 * is wanted once the clock is right; blocks with raw rows and blocks without; damaged blocks, as
 * the damage would be copied and no longer be known; blocks whose epochs together pass a limit of
 * symbols, which a failed join shows: it is halved until the rest fits; blocks without rows in
 * which a job has different epochs, as ids in rollups are not translated.
 */
#define BLOCK_MAX_DEFAULT_NS (31 * NS_PER_DAY)
#define GAP_SETTLED_WINDOWS 12 /* a clock that is ahead is set right within a day */

static int64_t compact_plan_longest(const struct db *db)
{
	int64_t max = db->o.retention_ns / 10;

	if (db->o.block_max_ns)
		return db->o.block_max_ns;
	return max && max < BLOCK_MAX_DEFAULT_NS ? max : BLOCK_MAX_DEFAULT_NS;
}

/* No new block will begin before this time. db->lock is held. */
static int64_t compact_plan_settled_until(const struct db *db)
{
	int64_t until = db_accepts_from_ns(db);

	mutex_assert_held(&db->lock);
	for (size_t i = 0; i < db->windows_n; i++)
		if (db->windows[i]->start_ns < until)
			until = db->windows[i]->start_ns;
	return until;
}

static bool compact_plan_epochs_agree(const struct block *a, const struct block *b)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < block_partitions_n(a); i++) {
		const struct block_partition *p = block_partition(a, i);

		while (k < block_partitions_n(b) && block_partition(b, k)->id < p->id)
			k++;
		if (k < block_partitions_n(b) && block_partition(b, k)->id == p->id &&
			block_partition(b, k)->epoch != p->epoch)
			return false;
	}
	return true;
}

/* True between blocks that are a window and more apart, and of which the later one is new. */
static bool compact_plan_gap_is_new(
	const struct db *db, const struct db_block *a, const struct db_block *b)
{
	int64_t from = block_meta(a->block)->max_ns, to = block_meta(b->block)->min_ns;

	return to - from >= db->o.window_ns &&
		to > db_reached_ns(db) - GAP_SETTLED_WINDOWS * db->o.window_ns;
}

/* True if b may be joined with the blocks chosen so far. */
static bool compact_plan_fits(const struct db *db, const struct plan *p, const struct db_block *b)
{
	if (b->damaged || (p->n && b->apart))
		return false;
	if (p->n && compact_plan_gap_is_new(db, p->v[p->n - 1], b))
		return false;
	/* True if the new block would overlap one that cannot be opened now. */
	if (p->n &&
		blocks_unreadable_locked(
			db, block_meta(p->v[p->n - 1]->block)->max_ns, block_meta(b->block)->min_ns))
		return false;
	for (size_t i = 0; i < p->n; i++) {
		const struct db_block *o = p->v[i];

		if (block_meta(o->block)->raw != block_meta(b->block)->raw ||
			(!block_meta(b->block)->raw && !compact_plan_epochs_agree(o->block, b->block)))
			return false;
	}
	return true;
}

/* The first run of two and more in [from, to) that may be joined. */
static bool compact_plan_choose(const struct db *db, size_t from, size_t to, struct plan *out)
{
	out->n = 0;
	for (size_t i = from; i < to && out->n < JOIN_MAX; i++) {
		struct db_block *b = db->blocks[i];

		if (!compact_plan_fits(db, out, b)) {
			if (out->n >= 2)
				break;
			out->n = 0;
			if (!compact_plan_fits(db, out, b))
				continue;
		}
		out->v[out->n++] = b;
	}
	return out->n >= 2;
}

static bool plan_range(const struct db *db, int64_t range_ns, int64_t until, struct plan *out)
{
	for (size_t i = 0, next; i < db->blocks_n; i = next) {
		int64_t start = block_meta(db->blocks[i]->block)->min_ns / range_ns * range_ns,
				end = start + range_ns;

		next = i;
		while (next < db->blocks_n && block_meta(db->blocks[next]->block)->min_ns < end &&
			block_meta(db->blocks[next]->block)->max_ns <= end)
			next++;
		if (end <= until && next - i >= 2 && compact_plan_choose(db, i, next, out))
			return true;
		next = next > i ? next : i + 1;
	}
	return false;
}

void plan_join(struct db *db, struct plan *out)
{
	int64_t until, max, range;
	bool found = false;

	mutex_lock(&db->lock);
	until = compact_plan_settled_until(db);
	max = compact_plan_longest(db);
	for (range = 4 * db->o.window_ns; range <= max && !found; range *= 3) {
		out->range_ns = range;
		found = plan_range(db, range, until, out);
	}
	if (!found)
		out->n = 0;
	assert(!out->n || (out->n >= 2 && out->n <= JOIN_MAX));
	for (size_t i = 0; i < out->n; i++) {
		out->v[i]->pins++;
		out->v[i]->at_work = true;
	}
	mutex_unlock(&db->lock);
}
