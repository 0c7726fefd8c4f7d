#include "base/metrics.h"
#include "base/self/heap.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/catalog/state.h"
#include "tsdb/catalog/window_epochs.h"
#include "tsdb/head/epochs.h"
#include "tsdb/symbols/stored.h"

/*
 * Eviction of symbols when all of them exceed the budget. First go partitions that take no rows and
 * that no query and no delta base needs; epochs.c loads them again from blocks and windows.
 *
 * If that is not enough live epochs end, first those that grew most since each of their targets was
 * scraped about twice: later growth is mostly stacks that never come again. The job's next row
 * begins an epoch, which gets only the symbols still in use. The ended one stays in memory until
 * its delta bases were carried over, a scrape later; then only its window's store has it.
 *
 * A new epoch writes its live symbols again. So a table must first have grown by a third (or by the
 * whole budget), which bounds the extra work to four times what is written anyway. Only a part of
 * the budget may wait for its bases at once: tables end one after the other, and the sum stays
 * flat.
 */
#define GROWN 3u /* by such a part of what lives */
#define WAITING 8u /* such a part of the budget */
#define ENDS_MAX 64u /* in one round */
#define WORTH_PART 2048u /* less of the budget is not worth it */

METRIC_COUNTER(evicted, "epimetheus_tsdb_partitions_evicted_total",
	"Tables of symbols dropped from memory.", NULL);

METRIC_COUNTER(ended, "epimetheus_tsdb_epochs_ended_total",
	"Times a job's table of symbols was ended to free memory.", NULL);

static bool evict_in_head(const struct db *db, const struct partition *p)
{
	mutex_assert_held(&db->lock);
	for (size_t i = 0; i < db->windows_n; i++)
		if (window_epoch_locked(db->windows[i], resident_of(p)->job, p->epoch))
			return true;
	return false;
}

/* The partition that was unused for the longest time, among those that are not needed. A live one
 * that no window has comes first: its job's next row begins an epoch. db->lock is held. */
static struct partition *evict_idle(struct db *db)
{
	struct partition *oldest = NULL;

	mutex_assert_held(&db->lock);
	for (uint32_t i = 0; i < db->partitions_n; i++) {
		struct partition *p = db->partitions[i];

		if (!p || atomic_load(&resident_of(p)->bases))
			continue;
		if (resident_of(p)->pins == 1 && resident_of(p)->job->live == p && !evict_in_head(db, p)) {
			resident_of(p)->job->live = NULL;
			resident_of(p)->job->live_epoch = SYM_NONE;
			resident_of(p)->pins = 0;
			return p;
		}
		if (!resident_of(p)->pins &&
			(!oldest || resident_of(p)->used_at < resident_of(oldest)->used_at))
			oldest = p;
	}
	return oldest;
}

static void evict_forget(struct db *db, struct partition *p)
{
	struct partition **at = &resident_of(p)->job->partitions;

	mutex_assert_held(&db->lock);
	while (*at != p)
		at = &resident_of(*at)->next_of_job;
	*at = resident_of(p)->next_of_job;
	db->partitions[resident_of(p)->slot] = NULL;
	job_know_ids(resident_of(p)->job, p->epoch, p->next);
}

static bool evict_is_used(const struct partition *p)
{
	return resident_of(p)->pins || atomic_load(&resident_of(p)->bases);
}

/* Frees partitions and returns how many. */
static unsigned evict_some(struct db *db)
{
	struct partition *gone = NULL, *p;
	uint64_t bytes = 0, used = 0;
	unsigned n = 0;

	mutex_lock(&db->lock);
	for (uint32_t i = 0; i < db->partitions_n; i++) {
		if (!(p = db->partitions[i]))
			continue;
		bytes += partition_bytes(p);
		used += evict_is_used(p) ? partition_bytes(p) : 0;
	}
	atomic_store(&db->symbol_used_bytes, used);
	while (bytes > db->o.symbols_bytes && (p = evict_idle(db))) {
		evict_forget(db, p);
		bytes -= partition_bytes(p);
		resident_of(p)->next_of_job = gone;
		gone = p;
	}
	atomic_store(&db->symbol_bytes, bytes);
	mutex_unlock(&db->lock);
	while ((p = gone)) {
		gone = resident_of(p)->next_of_job;
		resident_close(p);
		metric_add(&evicted, NULL, 1);
		n++;
	}
	return n;
}

void partitions_evict(struct db *db)
{
	evict_some(db);
}

/* ---- ending epochs ---- */

/* No new content will be made in it, so the maps that find content are freed. */
static void evict_freeze(struct partition *p)
{
	size_t bytes = leafcache_bytes(&p->leaves);

	mutex_assert_held(&p->lock);
	for (int k = 1; k < SYM_KINDS; k++) {
		bytes += idtable_bytes(&p->table[k]);
		idtable_release(&p->table[k]);
	}
	leafcache_release(&p->leaves);
	stored_release_all(p);
	p->lookup = false;
	atomic_fetch_sub(&p->bytes, bytes);
}

void epoch_end(struct db *db, struct job *job)
{
	struct partition *p;

	mutex_assert_held(&job->lock);
	mutex_lock(&db->lock);
	p = job->live;
	job->live = NULL;
	job->live_epoch = SYM_NONE;
	mutex_unlock(&db->lock);
	if (!p)
		return;
	mutex_lock(&p->lock);
	evict_freeze(p);
	mutex_unlock(&p->lock);
	partition_unpin(db, p);
}

void partition_note_row(struct partition *p, int64_t ts_ns, int64_t interval_ns)
{
	mutex_assert_held(&p->lock);
	if (!resident_of(p)->first_ns)
		resident_of(p)->first_ns = ts_ns;
	if (!resident_of(p)->settled_bytes && (ts_ns - resident_of(p)->first_ns) / 2 >= interval_ns)
		atomic_store(&resident_of(p)->settled_bytes, atomic_load(&p->bytes));
}

/* The bytes that ending the partition's epoch would free; 0: not worth it. */
static size_t evict_worth(const struct db *db, const struct partition *p)
{
	size_t settled = atomic_load(&resident_of(p)->settled_bytes), bytes = atomic_load(&p->bytes),
		   grown = bytes > settled ? bytes - settled : 0;

	if (!settled)
		return 0;
	if (db->o.symbols_bytes < sizeof(*p)) /* no table fits at all */
		return bytes;
	return (grown > settled / GROWN || grown > db->o.symbols_bytes) &&
			grown > db->o.symbols_bytes / WORTH_PART ?
		grown :
		0;
}

static struct job *evict_worth_most(struct db *db)
{
	const struct partition *best = NULL, *p;
	uint64_t live = 0, waiting = 0;
	size_t most = 0, this;

	mutex_lock(&db->lock);
	/* Symbols that queries hold go when the queries end, so they are no reason. */
	for (uint32_t i = 0; i < db->partitions_n; i++) {
		if (!(p = db->partitions[i]))
			continue;
		if (resident_of(p)->job->live != p) {
			waiting += atomic_load(&resident_of(p)->bases) ? atomic_load(&p->bytes) : 0;
			continue;
		}
		live += atomic_load(&p->bytes);
		if ((this = evict_worth(db, p)) > most) {
			most = this;
			best = p;
		}
	}
	if (live <= db->o.symbols_bytes || waiting > db->o.symbols_bytes / WAITING)
		best = NULL;
	mutex_unlock(&db->lock);
	return best ? resident_of(best)->job : NULL;
}

void partitions_bound(struct db *db)
{
	struct job *job;
	unsigned gone = evict_some(db);

	for (unsigned n = 0; n < ENDS_MAX && (job = evict_worth_most(db)); n++) {
		mutex_lock(&job->lock);
		epoch_end(db, job);
		mutex_unlock(&job->lock);
		metric_add(&ended, NULL, 1);
	}
	/* Tables lie between others, so malloc keeps their pages. Measured with 500 targets: a
	 * millisecond, and a fifteenth of all memory. */
	if (gone + evict_some(db))
		heap_trim();
}
