#include "base/metrics.h"
#include "tsdb/db_internal.h"

/*
 * Letting go of symbols: partitions that no window, query or delta base needs, once all of them are
 * larger than the budget. They come back from blocks and windows (partitions.c).
 */
METRIC_COUNTER(evicted, "epimetheus_tsdb_partitions_evicted_total",
	"Tables of symbols that were let go from memory.", NULL);

struct partition *partition_next(struct db *db, uint32_t *at)
{
	struct partition *p = NULL;

	mutex_lock(&db->lock);
	while (*at < db->partitions_n && !p)
		p = db->partitions[(*at)++];
	if (p)
		p->pins++;
	mutex_unlock(&db->lock);
	return p;
}

static bool in_head(const struct db *db, const struct partition *p)
{
	for (size_t i = 0; i < db->windows_n; i++)
		if (window_partition_locked(db->windows[i], p->job) == p)
			return true;
	return false;
}

/* The longest unused of those that nobody needs; a live one that no window has any more counts as
 * unused since ever: its job's next row begins an epoch. db->lock is held. */
static struct partition *idle(struct db *db)
{
	struct partition *oldest = NULL;

	for (uint32_t i = 0; i < db->partitions_n; i++) {
		struct partition *p = db->partitions[i];

		if (!p || atomic_load(&p->bases))
			continue;
		if (p->pins == 1 && p->job->live == p && !in_head(db, p)) {
			p->job->live = NULL;
			p->job->live_epoch = SYM_NONE;
			p->pins = 0;
			return p;
		}
		if (!p->pins && (!oldest || p->used_at < oldest->used_at))
			oldest = p;
	}
	return oldest;
}

static void forget(struct db *db, struct partition *p)
{
	struct partition **at = &p->job->partitions;

	while (*at != p)
		at = &(*at)->next_of_job;
	*at = p->next_of_job;
	db->partitions[p->index] = NULL;
	job_know_ids(p->job, p->epoch, p->next);
}

void partitions_evict(struct db *db)
{
	struct partition *gone = NULL, *p;
	uint64_t bytes = 0;

	mutex_lock(&db->lock);
	for (uint32_t i = 0; i < db->partitions_n; i++)
		if (db->partitions[i])
			bytes += atomic_load(&db->partitions[i]->bytes);
	while (bytes > db->o.symbols_bytes && (p = idle(db))) {
		forget(db, p);
		bytes -= atomic_load(&p->bytes);
		p->next_of_job = gone;
		gone = p;
	}
	atomic_store(&db->symbol_bytes, bytes);
	mutex_unlock(&db->lock);
	while ((p = gone)) {
		gone = p->next_of_job;
		partition_close(p);
		metric_add(&evicted, NULL, 1);
	}
}
