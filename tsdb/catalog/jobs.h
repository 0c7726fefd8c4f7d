/*
 * Jobs of a database: by name for new rows, by id for stored ones. They are few and never removed.
 *
 * Errors:  ERR_LIMIT (DB_JOBS_MAX), ERR_EXISTS (one id, two names).
 * Threads: job->lock is the first of all locks; the rest is db->lock's.
 */
#ifndef TSDB_CATALOG_JOBS_H
#define TSDB_CATALOG_JOBS_H

#include "base/thread.h"
#include "tsdb/symbols/symbols.h"

struct db;

#define DB_JOBS_MAX 16384u

/* The ids that an epoch used, for epochs that are not in memory. */
struct known_ids {
	uint32_t epoch, next[SYM_KINDS];
};

#define JOB_EPOCHS_KNOWN_MAX 64u /* the newest ones */

struct job {
	uint32_t index; /* in db->jobs; never changes */
	uint32_t id; /* on disk */
	struct str name;
	struct mutex lock; /* first of all locks */
	struct translation *carry; /* lock: translates delta bases into the live epoch */
	/* The rest is db->lock's. */
	bool superseded; /* a later job has the same name: this one takes no rows */
	struct partition *partitions; /* the epochs in memory */
	struct partition *live; /* pinned; NULL: not there yet */
	uint32_t live_epoch; /* SYM_NONE: the next row begins one */
	uint32_t next_epoch, epochs_saved; /* epochs below it are marked as used in the file of ids */
	struct known_ids *known;
	uint32_t known_n;
};

/* id SYM_NONE: finds the job by name, or makes it. Else finds it by id, or makes it with that id.
 * The epoch (SYM_NONE: none) is marked as used. */
MUST_CHECK enum err_code db_job(
	struct db *db, struct str name, uint32_t id, uint32_t epoch, struct job **out, struct err *err);
struct job *db_job_by_id(struct db *db, uint32_t id);
struct job *db_job_at(struct db *db, uint32_t i); /* the i-th; NULL behind the last */
/* Notes that the epoch has used ids below next[kind]. db->lock is held. */
void job_know_ids(struct job *job, uint32_t epoch, const uint32_t *next);
void jobs_release(struct db *db);

#endif
