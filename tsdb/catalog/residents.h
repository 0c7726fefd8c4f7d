/*
 * Residents: the epochs whose symbols are in memory, and what keeps each there.
 *
 * A pin keeps an epoch in memory; so does a delta base whose ids are of that epoch. Each job pins
 * its live epoch. Others are freed when symbols exceed their budget (tsdb/head/evict.c), and are
 * loaded again from blocks and windows.
 *
 * Threads: as each field says; functions named _locked want db->lock.
 */
#ifndef TSDB_CATALOG_RESIDENTS_H
#define TSDB_CATALOG_RESIDENTS_H

#include "tsdb/catalog/jobs.h"
#include "tsdb/symbols/partition.h"

/* A block or window whose symbols were loaded, up to a stage; why: not NULL if some were lost. */
struct partition_source {
	uint32_t number, stage;
	uint32_t next; /* of a window: the number of the next record of symbols */
	uint64_t followed; /* of a window: window->followed when it was loaded */
	struct err *why;
};

struct resident {
	struct partition table; /* first: every partition of a database is in one of these */
	struct db *db;
	uint32_t slot; /* in db->partitions */
	struct job *job;
	struct partition *next_of_job; /* db->lock */
	unsigned pins; /* db->lock */
	uint64_t used_at; /* db->lock: when it was last unpinned, by db->unpins */
	_Atomic uint32_t bases; /* delta bases whose ids are of this epoch */
	struct partition_source *sources; /* table.lock */
	uint32_t sources_n, sources_cap;
	bool
		complete; /* table.lock: all symbols that blocks and windows have of the epoch are loaded */
	int64_t first_ns; /* table.lock: time of the first row that this process added */
	_Atomic size_t settled_bytes; /* when each target had come about twice; 0: not yet */
};

static inline struct resident *resident_of(const struct partition *p)
{
	return (struct resident *)((uintptr_t)p - offsetof(struct resident, table));
}

/* Pins the partition of an epoch, or makes it; its symbols are not loaded yet. */
MUST_CHECK enum err_code partition_pin(struct db *db, struct str job, uint32_t job_id,
	uint32_t epoch, struct partition **out, struct err *err);
void partition_unpin(struct db *db, struct partition *p);
/* The same for a known job; lookup: new content will be added to it. */
MUST_CHECK enum err_code partition_pin_locked(struct db *db, struct job *job, uint32_t epoch,
	bool lookup, struct partition **out, struct err *err);
void partition_unpin_locked(struct db *db, struct partition *p); /* NULL is fine */
/* The next partition in memory from *at on, pinned; *at is moved behind it. NULL: no more. */
struct partition *partition_next(struct db *db, uint32_t *at);
void resident_close(struct partition *p);

/* ---- sources whose symbols were loaded; p->lock is held ---- */

struct partition_source *partition_source_of(struct partition *p, uint32_t number); /* or NULL */
struct partition_source *partition_source_add(
	struct partition *p, uint32_t number); /* NULL: no memory */
/* Call when the block or window was dropped. */
void partition_forget_source(struct partition *p, uint32_t number);

#endif
