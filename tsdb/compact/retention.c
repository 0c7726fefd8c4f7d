#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/catalog/inventory_sync.h"
#include "tsdb/compact/admin.h"
#include "tsdb/compact/compaction.h"
#include "tsdb/head/head.h"
#include "tsdb/lists/losses.h"

/*
 * Retention: whole blocks and windows, the oldest first, never the newest. Raw rows may go earlier
 * than what was summed of them: meta.json says so first, then rows.ldb is unlinked; readers that
 * have it open go on with it, and a start in between finishes the job.
 *
 * Retention by time waits with what is overdue, but not where retention became shorter.
 */

METRIC_GAUGE(held_gauge, "epimetheus_tsdb_retention_held",
	"1: retention by time waits, because a large part became too old at once.", NULL);
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
	if (db->o.retention_ns && !overdue_waits(&db->retention_wait) &&
		end <= db_reached_ns(db) - db->o.retention_ns)
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
	for (size_t i = 0; i < db->blocks_n && db->o.raw_retention_ns &&
		 !overdue_waits(&db->retention_wait) && !b && !db->closing;
		 i++) {
		const struct block_meta *m = block_meta(db->blocks[i]->block);

		if (m->raw && !db->blocks[i]->raw_failed &&
			m->max_ns <= db_reached_ns(db) - db->o.raw_retention_ns)
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

/* Takes the first unreadable block that is too old; false: there is none. */
static bool retention_take_unreadable(struct db *db, struct unreadable *out)
{
	bool found = false;
	size_t kept = 0;

	mutex_lock(&db->lock);
	for (size_t i = 0; i < db->unreadable_n; i++) {
		const struct unreadable *u = &db->unreadable[i];

		/* What a list says is there is the list's (blocks_follow). */
		if (!found && !u->of && u->max_ns && db->o.retention_ns &&
			!overdue_waits(&db->retention_wait) &&
			u->max_ns <= db_reached_ns(db) - db->o.retention_ns) {
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
	int64_t reached = db_reached_ns(db);
	struct err err;

	if (db->o.retention_ns && !overdue_waits(&db->retention_wait) && reached > db->o.retention_ns &&
		losses_forget(db->losses, reached - db->o.retention_ns, &err))
		log_warn("tsdb", "list of losses not written", LOG_E(&err));
}

/* ---- what is overdue ---- */

struct overdue_search {
	int64_t reached_ns;
	/* The entry after this one: when its rows begin, and when the rows end that follow them without
	 * a gap. */
	int64_t next_first_ns, run_last_ns;
	struct overdue found;
};

/*
 * From the newest to the oldest. What is due by rows that follow it without a gap is due because
 * retention became shorter: a stop, and a step of the clock, leave a gap.
 */
static void retention_search_add(
	struct overdue_search *s, int64_t keep_ns, int64_t first_ns, int64_t last_ns, int64_t end_ns)
{
	if (s->next_first_ns - last_ns > OVERDUE_NS)
		s->run_last_ns = last_ns;
	s->next_first_ns = first_ns;
	if (keep_ns && overdue_is(end_ns, s->reached_ns - keep_ns) && end_ns > s->run_last_ns - keep_ns)
		overdue_add(&s->found, last_ns);
}

static void retention_search_add_window(
	struct overdue_search *s, int64_t keep_ns, const struct window *w)
{
	const struct window_count *count = &w->count;
	bool any = count->max_ns != 0;

	retention_search_add(s, keep_ns, any ? count->min_ns : w->start_ns,
		any ? count->max_ns : w->start_ns, w->end_ns);
}

static struct overdue retention_overdue_locked(const struct db *db)
{
	struct overdue_search s = { .reached_ns = db_reached_ns(db), .next_first_ns = INT64_MAX };
	int64_t keep = db->o.retention_ns, raw_keep = db->o.raw_retention_ns;
	size_t at = db->windows_n;

	for (size_t i = 0; i < db->unreadable_n; i++) {
		const struct unreadable *u = &db->unreadable[i];

		if (!u->of && u->max_ns && keep && overdue_is(u->max_ns, s.reached_ns - keep))
			overdue_add(&s.found, u->max_ns);
	}
	if (db->blocks_n + db->windows_n <= 1)
		return s.found;
	for (size_t i = db->blocks_n; i-- > 0;) {
		const struct block_meta *m = block_meta(db->blocks[i]->block);
		bool raw_first = m->raw && raw_keep && (!keep || raw_keep < keep);

		for (; at > 0 && db->windows[at - 1]->start_ns >= m->max_ns; at--)
			retention_search_add_window(&s, keep, db->windows[at - 1]);
		retention_search_add(&s, raw_first ? raw_keep : keep, m->first_ns, m->last_ns, m->max_ns);
	}
	for (; at > 0; at--)
		retention_search_add_window(&s, keep, db->windows[at - 1]);
	return s.found;
}

static void retention_hold(struct db *db)
{
	struct overdue found;
	bool begins;

	mutex_lock(&db->lock);
	found = retention_overdue_locked(db);
	begins = overdue_hold(&db->retention_wait, &found);
	metric_set(&held_gauge, NULL, overdue_waits(&db->retention_wait));
	mutex_unlock(&db->lock);
	if (begins)
		overdue_tell("tsdb", &found);
}

bool db_retention_is_held(struct db *db, int64_t *until_ns, int64_t *since_ns)
{
	bool held;

	mutex_lock(&db->lock);
	if ((held = overdue_waits(&db->retention_wait))) {
		*until_ns = retention_overdue_locked(db).until_ns;
		*since_ns = overdue_since_ns(&db->retention_wait);
	}
	mutex_unlock(&db->lock);
	return held;
}

void retention_apply(struct db *db)
{
	struct oldest o;

	retention_hold(db);
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
