#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/catalog/inventory_sync.h"
#include "tsdb/catalog/losses.h"
#include "tsdb/compact/admin.h"
#include "tsdb/compact/compaction.h"
#include "tsdb/head/head.h"

/*
 * Retention: whole blocks and windows, the oldest first, never the newest. Raw rows may go earlier
 * than what was summed of them: meta.json says so first, then rows.ldb is unlinked; readers that
 * have it open go on with it, and a start in between finishes the job.
 */
METRIC_COUNTER(dropped_blocks, "epimetheus_tsdb_dropped_blocks_total",
	"Blocks dropped by retention.", "reason");

void db_set_retention(
	struct db *db, int64_t retention_ns, uint64_t retention_bytes, int64_t raw_retention_ns)
{
	mutex_lock(&db->lock);
	db->o.retention_ns = retention_ns;
	db->o.retention_bytes = retention_bytes;
	db->o.raw_retention_ns = raw_retention_ns;
	db->retention_due = true;
	mutex_unlock(&db->lock);
}

/* Bytes of the head windows. Their files are measured without the lock. */
static uint64_t retention_head_bytes(struct db *db)
{
	uint64_t bytes = 0;
	struct window *w;

	for (size_t i = 0;; i++) {
		mutex_lock(&db->lock);
		if ((w = i < db->windows_n ? db->windows[i] : NULL))
			w->pins++;
		mutex_unlock(&db->lock);
		if (!w)
			return bytes;
		bytes += head_disk_bytes(db, w);
		head_unpin(db, w);
	}
}

struct oldest {
	struct db_block *block; /* NULL: the oldest is a window */
	const char *why; /* NULL: nothing has to go */
};

/* The oldest block or window, and why it must go. */
static struct oldest retention_look(struct db *db, uint64_t in_head)
{
	struct oldest o = { 0 };
	uint64_t bytes = in_head;
	int64_t end;

	mutex_lock(&db->lock);
	if (db->blocks_n + db->windows_n <= 1 || db->closing)
		goto out;
	if (db->blocks_n &&
		(!db->windows_n || block_meta(db->blocks[0]->block)->min_ns < db->windows[0]->start_ns))
		o.block = db->blocks[0];
	end = o.block ? block_meta(o.block->block)->max_ns : db->windows[0]->end_ns;
	for (size_t i = 0; i < db->blocks_n; i++)
		bytes += block_disk_bytes(db->blocks[i]->block);
	if (db->o.retention_ns && end <= atomic_load(&db->max_ts_ns) - db->o.retention_ns)
		o.why = "time";
	else if (db->o.retention_bytes && bytes > db->o.retention_bytes)
		o.why = "size";
	if (o.block && o.why)
		o.block->at_work = true;
out:
	mutex_unlock(&db->lock);
	return o;
}

/* False: it cannot go now. It must leave the inventory before its files go. */
static bool retention_off_inventory(enum err_code rc, const char *what, const struct err *why)
{
	if (rc)
		log_error("tsdb", "retention failed", LOG_S("what", what), LOG_E(why));
	return !rc;
}

static bool retention_drop_block(struct db *db, struct db_block *b, const char *why)
{
	char name[ULID_LEN + 1];
	struct err err;
	bool gone;

	memcpy(name, block_meta(b->block)->ulid.text, sizeof(name));
	mutex_lock(&db->blocks_files);
	gone = retention_off_inventory(
			   inventory_sync_drop_block(db, &block_meta(b->block)->ulid, &err), name, &err) &&
		blocks_hide(db, b);
	if (gone) {
		mutex_lock(&db->lock);
		blocks_swap_locked(db, &b, 1, NULL, NULL);
		mutex_unlock(&db->lock);
		blocks_retire(db, b, false);
	}
	mutex_unlock(&db->blocks_files);
	if (!gone) {
		blocks_end_work(db, b);
		return false;
	}
	metric_add(&dropped_blocks, why, 1);
	log_info("tsdb", "block dropped", LOG_S("block", name), LOG_S("reason", why));
	return true;
}

static bool retention_drop_window(struct db *db, const char *why)
{
	struct err err;

	return retention_off_inventory(head_drop_oldest(db, why, &err), "window", &err);
}

/* ---- raw rows ---- */

/* Takes a pin; NULL: none has to lose them. */
static struct db_block *retention_raw_due(struct db *db)
{
	struct db_block *b = NULL;

	mutex_lock(&db->lock);
	for (size_t i = 0; i < db->blocks_n && db->o.raw_retention_ns && !b && !db->closing; i++) {
		const struct block_meta *m = block_meta(db->blocks[i]->block);

		if (m->raw && !db->blocks[i]->raw_failed &&
			m->max_ns <= atomic_load(&db->max_ts_ns) - db->o.raw_retention_ns)
			(b = db->blocks[i])->pins++;
	}
	if (b)
		b->at_work = true;
	mutex_unlock(&db->lock);
	return b;
}

static void retention_drop_all_raw(struct db *db)
{
	struct db_block *b;

	mutex_lock(&db->lock);
	for (size_t i = 0; i < db->blocks_n; i++)
		db->blocks[i]->raw_failed = false; /* another try */
	mutex_unlock(&db->lock);
	while ((b = retention_raw_due(db))) /* each turn has one less, or one that failed */
		blocks_drop_raw_of(db, b);
}

/* ---- blocks that cannot be opened ---- */

/* The first one that is over; false: none is. */
static bool retention_take_unreadable(struct db *db, struct unreadable *out)
{
	bool found = false;
	size_t kept = 0;

	mutex_lock(&db->lock);
	for (size_t i = 0; i < db->unreadable_n; i++) {
		const struct unreadable *u = &db->unreadable[i];

		/* What a list says is there is the list's (blocks_follow). */
		if (!found && !u->of && u->max_ns && db->o.retention_ns &&
			u->max_ns <= atomic_load(&db->max_ts_ns) - db->o.retention_ns) {
			found = true;
			*out = *u;
		} else {
			db->unreadable[kept++] = *u;
		}
	}
	db->unreadable_n = kept;
	mutex_unlock(&db->lock);
	return found;
}

static void retention_drop_unreadable(struct db *db)
{
	struct unreadable u;
	struct ulid ulid;
	enum err_code rc;
	struct err err;

	while (retention_take_unreadable(db, &u)) { /* each turn has one less */
		mutex_lock(&db->blocks_files);
		rc = ulid_parse(str_of(strrchr(u.dir, '/') + 1), &ulid) ?
			inventory_sync_drop_block(db, &ulid, &err) :
			ERR_OK;
		if (!rc && u.remote)
			blocks_tell(db, DB_BLOCK_DROPPED, &ulid, 0);
		mutex_unlock(&db->blocks_files);
		if (rc)
			log_warn("tsdb", "block not removed", LOG_S("block", u.dir), LOG_E(&err));
		else if (fs_remove_tree(db->o.fs, u.dir, &err))
			log_warn("tsdb", "block not removed", LOG_S("block", u.dir), LOG_E(&err));
		else
			log_info("tsdb", "block dropped", LOG_S("block", u.dir), LOG_S("reason", "time"));
		metric_add(&dropped_blocks, "time", 1);
		unreadable_free(&u);
	}
}

/* Forgets losses of times older than the retention. */
static void retention_forget_losses(struct db *db)
{
	int64_t newest = atomic_load(&db->max_ts_ns);
	struct err err;

	if (db->o.retention_ns && newest > db->o.retention_ns &&
		losses_forget(db->losses, newest - db->o.retention_ns, &err))
		log_warn("tsdb", "list of losses not written", LOG_E(&err));
}

void retention_apply(struct db *db)
{
	struct oldest o;

	while ((o = retention_look(db, db->o.retention_bytes ? retention_head_bytes(db) : 0)).why) {
		/* each turn takes a block or a window */
		if (!(o.block ? retention_drop_block(db, o.block, o.why) :
						retention_drop_window(db, o.why)))
			break; /* until the next round */
	}
	retention_drop_all_raw(db);
	retention_drop_unreadable(db);
	retention_forget_losses(db);
}
