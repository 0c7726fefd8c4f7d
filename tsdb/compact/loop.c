#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/self/heap.h"
#include "tsdb/catalog/members.h"
#include "tsdb/catalog/room.h"
#include "tsdb/compact/admin.h"
#include "tsdb/compact/compaction.h"

/*
 * One worker at a time. Failed work is given up as a whole, the old blocks and windows stay in use,
 * and it is tried again after a growing pause. Ingest never waits for it.
 */
#define RETRY_FIRST_NS NS_PER_S
#define RETRY_MAX_NS (600 * NS_PER_S)

METRIC_COUNTER(work_failures, "epimetheus_tsdb_compaction_failures_total",
	"Times that cutting a window or joining blocks failed.", "what");
METRIC_COUNTER(work_postponed, "epimetheus_tsdb_compactions_postponed_total",
	"Times that cutting or joining had to wait because the disk had no room for it.", NULL);

enum err_code compaction_open(struct db *db, struct err *err)
{
	db->compaction = calloc(1, sizeof(*db->compaction));
	return db->compaction ? ERR_OK : err_nomem(err, "database");
}

void compaction_close(struct db *db)
{
	free(db->compaction);
	db->compaction = NULL;
}

bool compaction_begin(struct db *db, bool wait)
{
	bool begun = false;

	mutex_lock(&db->lock);
	while (wait && db->compaction->busy && !db->closing)
		cond_wait(&db->changed, &db->lock);
	if (!db->compaction->busy && !db->closing)
		begun = db->compaction->busy = true;
	mutex_unlock(&db->lock);
	return begun;
}

void compaction_end(struct db *db)
{
	mutex_lock(&db->lock);
	assert(db->compaction->busy);
	db->compaction->busy = false;
	cond_broadcast(&db->changed);
	mutex_unlock(&db->lock);
}

enum err_code compaction_pause(struct db *db, struct err *err)
{
	int64_t now = clock_monotonic_ns();
	bool closing;

	mutex_lock(&db->lock);
	closing = db->closing;
	mutex_unlock(&db->lock);
	if (closing)
		return err_set(err, ERR_CANCELED, "the database is closing");
	if (now - db->compaction->room_at_ns < NS_PER_S)
		return ERR_OK;
	db->compaction->room_at_ns = now;
	db_check_room(db);
	return compaction_room(db, 0, err);
}

enum err_code compaction_room(struct db *db, uint64_t bytes, struct err *err)
{
	struct disk_room room;

	if (room_look(db, &room, NULL))
		return ERR_OK;
	if (room.bytes >= db->o.free_bytes_reserve && room_lacks(db, &room, false, err)) {
		metric_add(&work_postponed, NULL, 1);
		return ERR_UNAVAILABLE; /* inodes */
	}
	if (room.bytes >= db->o.free_bytes_reserve && room.bytes - db->o.free_bytes_reserve >= bytes)
		return ERR_OK;
	metric_add(&work_postponed, NULL, 1);
	return err_set(err, ERR_UNAVAILABLE,
		"%s free in %s, %s needed above the reserve of %s (--storage.tsdb.free-reserve)",
		str_size_of(room.bytes).text, db->dir, str_size_of(bytes).text,
		str_size_of(db->o.free_bytes_reserve).text);
}

typedef enum err_code (*step_fn)(struct db *db, bool *did, struct err *err);

static enum err_code compact_loop_to_the_end(
	struct db *db, step_fn fn, const char *what, struct err *err)
{
	enum err_code rc;
	bool did;

	do { /* each turn leaves a window or a block less, or a place where blocks stay apart */
		rc = fn(db, &did, err);
		/* It took pieces of all sizes; ingest between them keeps half of what it freed in use. */
		if (did)
			heap_trim();
	} while (!rc && did);
	if (rc && rc != ERR_CANCELED) {
		metric_add(&work_failures, what, 1);
		log_error("tsdb", "work on blocks failed", LOG_S("what", what), LOG_E(err));
	}
	return rc;
}

/* Joining goes on if cutting fails: the reason may not concern it. */
static enum err_code compact_loop_do_all(struct db *db, struct err *err)
{
	struct err second;
	enum err_code cut = compact_loop_to_the_end(db, cut_oldest, "cut", err),
				  join = compact_loop_to_the_end(db, compact_some, "join", cut ? &second : err);

	return cut ? cut : join;
}

void compaction_round(struct db *db)
{
	struct compaction *k = db->compaction;
	enum err_code rc;
	struct err err;
	int64_t pause;

	if (!compaction_begin(db, false))
		return;
	if (clock_monotonic_ns() >= k->retry_at_ns) {
		rc = compact_loop_do_all(db, &err);
		k->failures = rc ? k->failures + 1 : 0;
		pause = k->failures > 10 ? RETRY_MAX_NS : RETRY_FIRST_NS << k->failures;
		if (pause > RETRY_MAX_NS)
			pause = RETRY_MAX_NS;
		k->retry_at_ns = rc ? clock_monotonic_ns() + pause : 0;
	}
	compaction_end(db);
}

enum err_code db_compact(struct db *db, struct err *err)
{
	enum err_code rc;
	struct err here;

	err = err ? err : &here;
	if ((rc = members_refuse(db, "compact", err)))
		return rc;
	if (db->o.read_only)
		return err_set(err, ERR_UNAVAILABLE, "the database is open for reading only");
	if (!compaction_begin(db, true))
		return err_set(err, ERR_UNAVAILABLE, "the database is closing");
	rc = compact_loop_do_all(db, err);
	retention_apply(db);
	compaction_end(db);
	return rc;
}
