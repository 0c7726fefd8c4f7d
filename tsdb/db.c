#include "tsdb/db.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "tsdb/catalog/ids.h"
#include "tsdb/catalog/inventory_sync.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/catalog/room.h"
#include "tsdb/compact/compaction.h"
#include "tsdb/head/commit.h"
#include "tsdb/head/epochs.h"
#include "tsdb/head/head.h"
#include "tsdb/head/ship.h"
#include "tsdb/lists/versions.h"
#include "tsdb/status.h"
#include "tsdb/store/mirror.h"
#include "tsdb/symbols/stored.h"

#define MAINTAIN_EVERY_NS NS_PER_S /* free space */
#define MAINTAIN_NICE 10
#define RETENTION_EVERY_NS (60 * NS_PER_S)

void db_options_default(struct db_options *o)
{
	*o = (struct db_options){
		.dir = "data/",
		.window_ns = 2 * NS_PER_HOUR,
		.retention_ns = 15 * NS_PER_DAY,
		.free_bytes_reserve = UINT64_C(256) << 20,
		.too_old_ns = NS_PER_HOUR,
		.series_max = 1000000,
		.job_series_max = 500000,
		.nodes_max = 4u << 20,
		.strings_max = 1u << 20,
		.label_sets_max = 65536,
		.partition_bytes_max = UINT64_C(512) << 20,
		.symbols_bytes = UINT64_C(128) << 20,
		.cache_bytes = UINT64_C(16) << 20,
		.segments_bytes = UINT64_C(1) << 30,
	};
}

/* ---- state ---- */

static void db_leave_shadows(struct db *db)
{
	struct disk_room room;
	bool any;

	mutex_lock(&db->lock);
	any = windows_have_shadow_locked(db);
	mutex_unlock(&db->lock);
	if (any && !room_look(db, &room, NULL) && !room_lacks(db, &room, true, NULL))
		head_leave_shadows(db);
}

/* ---- retention ---- */

/* A window that takes no more rows needs no note of its stored symbols. */
static void db_drop_stored(struct db *db)
{
	int64_t from = db_accepts_from_ns(db);
	struct partition *p;
	uint32_t at = 0;

	while ((p = partition_next(db, &at))) {
		mutex_lock(&p->lock);
		for (struct stored_symbols *s = p->stored, *next; s; s = next) {
			next = s->next;
			/* A window of another length may reach further; its stored symbols are then found
			 * again. */
			if (s->window_ns + db->o.window_ns < from)
				stored_drop(p, s->window_ns);
		}
		mutex_unlock(&p->lock);
		partition_unpin(db, p);
	}
}

void db_maintain(struct db *db, bool retention)
{
	struct err err;

	if (db->is_union)
		return;
	if (db->o.follower) { /* what it has comes and goes with segments */
		partitions_evict(db);
		return;
	}
	db_leave_shadows(db);
	db_check_room(db);
	partitions_bound(db);
	if (!db->o.no_compaction)
		compaction_round(db);
	if (!retention)
		return;
	blocks_retry(db);
	if (compaction_begin(db, false)) {
		retention_apply(db);
		compaction_end(db);
	}
	db_drop_stored(db);
	db_retire_series(db);
	partitions_evict(db);
	if (losses_save(db->losses, &err))
		log_warn("tsdb", "list of losses not written", LOG_E(&err));
	if (inventory_save(db->inventory, &err))
		log_warn("tsdb", "inventory not written", LOG_E(&err));
}

static int64_t db_clock_free_from(void *ctx, int64_t ts_ns)
{
	return db_free_from(ctx, ts_ns);
}

static void db_maintenance(void *ctx)
{
	struct db *db = ctx;
	int64_t next = clock_running_ns(), until;
	bool retention;

	/* On Linux this is the priority of this thread alone: ingest and queries go first. */
	(void)!setpriority(PRIO_PROCESS, 0, MAINTAIN_NICE);
	mutex_lock(&db->lock);
	for (;;) { /* a round a second, until closing */
		until = clock_monotonic_ns() + MAINTAIN_EVERY_NS;
		if (cond_wait_flag(&db->wake, &db->lock, &db->closing, until))
			break;
		retention = db->retention_due || clock_running_ns() >= next;
		if (retention) {
			db->retention_due = false;
			next = clock_running_ns() + RETENTION_EVERY_NS;
		}
		mutex_unlock(&db->lock);
		clock_look(db_clock_free_from, db);
		db_maintain(db, retention);
		mutex_lock(&db->lock);
	}
	mutex_unlock(&db->lock);
}

/* ---- open, close ---- */

static enum err_code db_check_options(const struct db_options *o, struct err *err)
{
	if (o->window_ns < NS_PER_S || o->window_ns % NS_PER_S)
		return err_set(err, ERR_INVALID, "a window is a whole number of seconds");
	if (o->retention_ns < 0 || o->too_old_ns < 0)
		return err_set(err, ERR_INVALID, "retention and age limit cannot be negative");
	return ERR_OK;
}

static enum err_code db_open_dirs(struct db *db, struct err *err)
{
	enum err_code rc;
	char *lock = NULL;

	if (asprintf(&db->head_dir, "%s/head", db->dir) < 0 ||
		asprintf(&db->ids_path, "%s/ids", db->dir) < 0 ||
		asprintf(&db->blocks_dir, "%s/blocks", db->dir) < 0 ||
		asprintf(&db->snapshots_dir, "%s/snapshots", db->dir) < 0 ||
		asprintf(&lock, "%s/lock", db->dir) < 0)
		return err_nomem(err, "database");
	if (db->o.follower) {
		free(lock);
		return (rc = fs_remove_tree(db->o.fs, db->head_dir, err)) ?
			rc :
			fs_mkdir_all(db->o.fs, db->head_dir, err);
	}
	if (db->o.read_only) {
		free(lock);
		return mirror_open(&db->head_dir, &db->mirror, err);
	}
	if (!(rc = fs_mkdir_all(db->o.fs, db->head_dir, err)))
		rc = fs_lock(lock, &db->lock_fd, err);
	if (rc == ERR_UNAVAILABLE)
		rc = err_set(
			err, ERR_UNAVAILABLE, "data directory %s is locked by another process", db->o.dir);
	free(lock);
	return rc;
}

/* Epochs that only blocks have are not begun again. */
static enum err_code db_know_jobs_of_blocks(struct db *db, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < db->blocks_n && !rc; i++)
		rc = blocks_know_jobs(db, db->blocks[i], err);
	return rc;
}

static enum err_code db_open_rest(struct db *db, struct err *err)
{
	enum err_code rc;

	if ((rc = db_check_options(&db->o, err)) ||
		(rc = versions_check(db->dir, !db->o.follower, err)) || (rc = db_open_dirs(db, err)) ||
		(rc = head_check_versions(db, err)) ||
		(rc = losses_open(db->o.fs, db->dir, db->o.read_only, &db->losses, err)) ||
		(rc = inventory_sync_open(db, err)) ||
		(rc = series_index_open(db->o.series_max, db->o.job_series_max, &db->series, err)) ||
		(rc = compaction_open(db, err)) || (rc = blocks_open_all(db, err)) ||
		(rc = head_open_all(db, err)) || (rc = deleted_load_windows(db, err)) ||
		(rc = inventory_sync_take(db, err)) || (rc = db_know_jobs_of_blocks(db, err)) ||
		(rc = ids_load(db, err)))
		return rc;
	db->found_max_ns = atomic_load(&db->max_ts_ns);
	if (db->o.read_only)
		return ERR_OK;
	clock_look(db_clock_free_from, db);
	db_drop_stored(db);
	db_check_room(db);
	if ((rc = ship_open(db, err)) || (rc = commit_open(db, err)))
		return rc;
	return thread_start(&db->maintenance, "tsdb-maintain", db_maintenance, db, err);
}

static struct db *db_new(void)
{
	struct db *db = calloc(1, sizeof(*db));

	if (!db)
		return NULL;
	mutex_init(&db->lock);
	mutex_init(&db->ids_lock);
	mutex_init(&db->numbers_lock);
	mutex_init(&db->blocks_files);
	map_init(&db->jobs_by_name);
	map_init(&db->jobs_by_id);
	arena_init(&db->job_labels_arena, 0);
	cond_init(&db->changed);
	cond_init(&db->wake);
	db->lock_fd = -1;
	return db;
}

enum err_code db_open(const struct db_options *o, struct db **out, struct err *err)
{
	struct db *db = db_new();
	int64_t start = clock_monotonic_ns();
	enum err_code rc;

	if (!db)
		return err_nomem(err, "database");
	db->o = *o;
	db->o.read_only |= db->o.follower;
	if (!db->o.fs)
		db->o.fs = &fs_posix;
	db->dir = strdup(o->dir);
	db->cache = store_cache_open(db->o.cache_bytes ? db->o.cache_bytes : DB_CACHE_BYTES);
	if (!db->dir || !db->cache) {
		rc = err_nomem(err, "database");
		goto fail;
	}
	while (strlen(db->dir) > 1 && db->dir[strlen(db->dir) - 1] == '/')
		db->dir[strlen(db->dir) - 1] = '\0';
	if ((rc = db_open_rest(db, err)))
		goto fail;
	if (!db->o.follower) /* one of several: who has them all says what they have */
		db_gauges_begin(db);
	db_log_losses(db);
	log_info("tsdb", "database open", LOG_S("dir", db->dir), LOG_I("windows", db->windows_n),
		LOG_I("series", series_n(db->series)), LOG_D("elapsed", clock_monotonic_ns() - start));
	*out = db;
	return ERR_OK;
fail:
	if (db->dir)
		rc = room_explain(db, rc, err);
	db_close(db);
	return err_wrap(err, rc, "open database %s", o->dir);
}

enum err_code db_union_open(struct db **out, struct err *err)
{
	struct db *u = db_new();

	if (!u)
		return err_nomem(err, "union");
	u->is_union = true;
	db_options_default(&u->o);
	u->o.fs = &fs_posix;
	u->o.read_only = true;
	db_gauges_begin(u);
	*out = u;
	return ERR_OK;
}

void db_union_tell(struct db *d, db_member_fn tell, void *ctx)
{
	d->union_tell = tell;
	d->union_tell_ctx = ctx;
}

void db_union_set_records(struct db *d, const char *name)
{
	d->union_records = name;
}

static void db_free_memory(struct db *db)
{
	struct series *s;

	while ((s = db->retired)) {
		db->retired = s->next_retired;
		base_release(db, &s->base);
		series_free(s);
	}
	scratch_free_all(db);
	jobs_release(db); /* with their translations, which must end before their partitions */
	for (uint32_t i = 0; i < db->partitions_n; i++)
		if (db->partitions[i])
			resident_close(db->partitions[i]);
	free(db->partitions);
	arena_release(&db->job_labels_arena);
	free(db->windows);
	free(db->members);
	free(db->head_dir);
	free(db->ids_path);
	free(db->blocks_dir);
	free(db->snapshots_dir);
	free(db->dir);
}

void db_close(struct db *db)
{
	if (!db)
		return;
	assert(!db->members_n);
	db_gauges_end(db);
	commit_close(db);
	ship_close(db);
	while (db->left)
		left_window_remove(db, db->left->start_ns, db->left->identity);
	mutex_lock(&db->lock);
	db->closing = true;
	cond_broadcast(&db->changed);
	cond_broadcast(&db->wake);
	mutex_unlock(&db->lock);
	thread_join(&db->maintenance);
	for (size_t i = 0; i < db->windows_n; i++)
		window_free(db, db->windows[i]);
	for (struct window *w = db->dropping, *next; w; w = next) {
		next = w->next_dropping;
		window_free(db, w);
	}
	blocks_close_all(db);
	compaction_close(db);
	mirror_close(db->mirror);
	series_index_close(db->series);
	losses_close(db->losses);
	inventory_close(db->inventory);
	db_free_memory(db);
	store_cache_close(db->cache);
	if (db->lock_fd >= 0)
		fs_unlock(db->lock_fd);
	cond_destroy(&db->changed);
	cond_destroy(&db->wake);
	mutex_destroy(&db->numbers_lock);
	mutex_destroy(&db->blocks_files);
	mutex_destroy(&db->ids_lock);
	mutex_destroy(&db->lock);
	free(db);
}
