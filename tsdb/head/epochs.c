#include "tsdb/head/epochs.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/catalog/ids.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/catalog/window_epochs.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/symbols/stored.h"

/*
 * The epochs of jobs, and loading their symbols.
 *
 * Why epochs: a job's tables only grow, while its code changes: releases, pods, names made up per
 * request. A new epoch begins, empty, with a new window if the tables are mostly stale, too large,
 * or near a limit, and at any time if memory is short (evict.c). The old tables are freed as soon
 * as no query and no delta base needs them, and are loaded again from windows and blocks for
 * queries that reach so far back.
 */
#define STALE_NODES 65536u /* smaller tables are not worth a new epoch */

METRIC_COUNTER(epochs_begun, "epimetheus_tsdb_epochs_begun_total",
	"Times a job began a new table of symbols.", "reason");

/* ---- loading; p->lock is held ---- */

static enum err_code head_epochs_answer(const struct partition_source *s, struct err *err)
{
	if (!s->why)
		return ERR_OK;
	return err_copy(err, s->why);
}

/* Keeps the error: it is returned each time. */
static enum err_code head_epochs_remember(
	struct partition_source *s, const struct err *why, struct err *err)
{
	if (!s->why && (s->why = malloc(sizeof(*s->why))))
		*s->why = *why;
	return err_copy(err, why);
}

static struct store *head_epochs_store_of(struct db *db, const struct window *w, bool *damaged)
{
	struct store *s;

	mutex_lock(&db->lock);
	s = w->store;
	*damaged = w->damaged;
	mutex_unlock(&db->lock);
	return s;
}

/* The window's symbols were loaded, all that it has now. A follower's window gets more; their
 * records have numbers above those of the earlier ones. */
static enum err_code head_epochs_note_loaded(struct partition *p, const struct window *w,
	uint32_t next, uint64_t followed, struct partition_source **out, struct err *err)
{
	struct partition_source *s = partition_source_of(p, w->number);

	if (!s && !(s = partition_source_add(p, w->number)))
		return err_nomem(err, "symbols");
	s->stage = BLOCK_STACKS;
	s->next = next;
	s->followed = followed;
	*out = s;
	return ERR_OK;
}

static enum err_code head_epochs_need_window(
	struct db *db, struct partition *p, struct window *w, struct err *err)
{
	uint64_t followed = atomic_load(&w->followed); /* before its symbols are read */
	struct partition_source *s = partition_source_of(p, w->number);
	uint32_t next = s ? s->next : 0;
	enum err_code rc;
	struct err why, failed;
	bool damaged;

	mutex_assert_held(&p->lock);
	if (s && s->followed == followed)
		return head_epochs_answer(s, err);
	if (!head_epochs_store_of(db, w, &damaged))
		return err_set(err, ERR_UNAVAILABLE, "store %s is being reopened", w->dir);
	rc = head_load_symbols(db, w, p, &next, &why);
	if (rc && rc != ERR_CORRUPT && rc != ERR_EXISTS)
		return err_copy(err, &why);
	if (rc)
		db_damage(db, w, "lost symbols", &why);
	/* A repaired store may lack records without a trace. */
	if (rc || damaged) {
		atomic_store(&p->damaged, true);
		if (p->lookup && head_reserve_ids(db, w, p, &failed))
			log_warn("tsdb", "ids of a damaged store are not known", LOG_E(&failed));
	}
	if (head_epochs_note_loaded(p, w, next, followed, &s, err))
		return ERR_NOMEM;
	return rc ? head_epochs_remember(s, &why, err) : head_epochs_answer(s, err);
}

enum err_code partition_need_window(
	struct db *db, struct partition *p, struct window *w, struct err *err)
{
	enum err_code rc;

	mutex_lock(&p->lock);
	rc = head_epochs_need_window(db, p, w, err);
	mutex_unlock(&p->lock);
	return rc;
}

/* Pins the windows that have p; malloc'ed. */
static struct window **head_epochs_windows_of(struct db *db, const struct partition *p, size_t *n)
{
	struct window **v;

	*n = 0;
	mutex_lock(&db->lock);
	if ((v = malloc((db->windows_n + 1) * sizeof(struct window *))))
		for (size_t i = 0; i < db->windows_n; i++)
			if (window_epoch_locked(db->windows[i], resident_of(p)->job, p->epoch)) {
				db->windows[i]->pins++;
				v[(*n)++] = db->windows[i];
			}
	mutex_unlock(&db->lock);
	return v;
}

static void head_epochs_reserve_known(struct db *db, struct partition *p)
{
	mutex_assert_held(&p->lock);
	mutex_lock(&db->lock);
	for (uint32_t i = 0; i < resident_of(p)->job->known_n; i++) {
		const struct known_ids *known = &resident_of(p)->job->known[i];

		for (int k = 1; k < SYM_KINDS && known->epoch == p->epoch; k++)
			if (known->next[k])
				sym_reserve(p, k, known->next[k] - 1);
	}
	mutex_unlock(&db->lock);
}

/* The result of block_load_symbols; lost symbols are an error here. */
static enum err_code head_epochs_load_stage(
	struct db_block *b, uint32_t slot, struct partition *p, enum block_stage stage, struct err *err)
{
	uint64_t lost = 0;
	enum err_code rc = block_load_symbols(b->block, slot, p, stage, &lost, err);

	if (rc || !lost)
		return rc;
	if (err)
		err->code = ERR_CORRUPT; /* what is remembered says it to all who ask later */
	return ERR_CORRUPT;
}

static enum err_code head_epochs_need_block(
	struct partition *p, struct db_block *b, uint32_t slot, enum block_stage stage, struct err *err)
{
	struct partition_source *s = partition_source_of(p, b->number);
	uint32_t from = s ? s->stage + 1 : BLOCK_NAMES;
	enum err_code rc = ERR_OK, one;
	struct err why, now;

	mutex_assert_held(&p->lock);
	if (s && s->stage >= (uint32_t)stage)
		return head_epochs_answer(s, err);
	if (!s && resident_of(p)->complete) /* the block was made of what is in memory */
		return ERR_OK;
	for (uint32_t at = from; at <= (uint32_t)stage; at++) {
		one = head_epochs_load_stage(b, slot, p, (enum block_stage)at, &now);
		if (one && one != ERR_CORRUPT && one != ERR_EXISTS)
			return err_copy(err, &now);
		if (one && !rc)
			why = now;
		rc = rc == ERR_EXISTS || !one ? rc : one;
	}
	if (!s && !(s = partition_source_add(p, b->number)))
		return err_nomem(err, "symbols");
	s->stage = stage;
	if (rc) {
		atomic_store(&p->damaged, true);
		return head_epochs_remember(s, &why, err);
	}
	return head_epochs_answer(s, err);
}

enum err_code partition_need_block(struct db *db, struct partition *p, struct db_block *b,
	uint32_t slot, enum block_stage stage, struct err *err)
{
	enum err_code rc;

	mutex_lock(&p->lock);
	rc = head_epochs_need_block(p, b, slot, stage, err);
	mutex_unlock(&p->lock);
	return rc;
}

bool partition_has_block(struct partition *p, const struct db_block *b, enum block_stage stage)
{
	const struct partition_source *s;
	bool has;

	mutex_lock(&p->lock);
	s = partition_source_of(p, b->number);
	has = s ? s->stage >= (uint32_t)stage : resident_of(p)->complete;
	mutex_unlock(&p->lock);
	return has;
}

struct completing {
	struct db *db;
	struct partition *p;
};

static enum err_code head_epochs_complete_from_block(
	void *ctx, struct db_block *b, uint32_t slot, struct err *err)
{
	const struct completing *c = ctx;
	enum err_code rc = partition_need_block(c->db, c->p, b, slot, BLOCK_STACKS, err);

	return rc == ERR_CORRUPT || rc == ERR_EXISTS ? ERR_OK : rc;
}

/* New content gets an id only after all symbols of the epoch are loaded, as it may be there
 * already. job->lock is held, and no partition's lock: blocks that go meanwhile notify all
 * partitions. */
static enum err_code head_epochs_complete(struct db *db, struct partition *p, struct err *err)
{
	struct completing c = { db, p };
	struct window **windows;
	enum err_code rc = ERR_OK;
	bool done;
	size_t n;

	mutex_assert_held(&resident_of(p)->job->lock);
	mutex_lock(&p->lock);
	done = resident_of(p)->complete;
	mutex_unlock(&p->lock);
	if (done)
		return ERR_OK;
	if (!(windows = head_epochs_windows_of(db, p, &n)))
		return err_nomem(err, "symbols");
	for (size_t i = 0; i < n; i++) {
		/* Damage was logged and counted; new content is compared with the rest. */
		if (!rc && (rc = partition_need_window(db, p, windows[i], err)) &&
			(rc == ERR_CORRUPT || rc == ERR_EXISTS))
			rc = ERR_OK;
		head_unpin(db, windows[i]);
	}
	free(windows);
	if (rc ||
		(rc = blocks_visit_epoch(db, p->id, p->epoch, head_epochs_complete_from_block, &c, err)))
		return rc;
	mutex_lock(&p->lock);
	head_epochs_reserve_known(db, p);
	resident_of(p)->complete = true;
	mutex_unlock(&p->lock);
	return ERR_OK;
}

/* ---- epochs ---- */

static enum err_code head_epochs_new_epoch(
	struct db *db, struct job *job, struct partition **out, struct err *err)
{
	enum err_code rc = ERR_OK;
	bool saved;

	mutex_assert_held(&job->lock);
	mutex_lock(&db->lock);
	saved = job->next_epoch < job->epochs_saved;
	mutex_unlock(&db->lock);
	if (!saved && (rc = ids_save(db, err)))
		return rc;
	mutex_lock(&db->lock);
	if (!(rc = partition_pin_locked(db, job, job->next_epoch, true, out, err))) {
		job->next_epoch++;
		resident_of(*out)->complete = true;
	}
	mutex_unlock(&db->lock);
	return rc;
}

enum err_code partition_new_epoch(
	struct db *db, const struct partition *like, struct partition **out, struct err *err)
{
	struct job *job = resident_of(like)->job;
	enum err_code rc;

	mutex_lock(&job->lock);
	rc = head_epochs_new_epoch(db, job, out, err);
	mutex_unlock(&job->lock);
	return rc;
}

/* The reason for a new window to begin an epoch; NULL: there is none. before: the window that had p
 * last, or NULL. */
static const char *head_epochs_why_new(
	struct db *db, struct partition *p, const struct window *before)
{
	const char *why = NULL;
	const struct stored_symbols *m;
	uint64_t nodes, used;

	mutex_lock(&p->lock);
	nodes = p->vec[SYM_NODE].used;
	m = before ? stored_find(p, before->start_ns) : NULL;
	used = m ? m->nodes : nodes;
	if (sym_near_limit(p))
		why = "limit";
	else if (nodes > STALE_NODES && used < nodes / 3)
		why = "stale";
	else if (atomic_load(&db->symbol_bytes) > db->o.symbols_bytes && used < nodes / 2)
		why = "memory";
	else if (atomic_load(&p->damaged))
		why = "damage";
	mutex_unlock(&p->lock);
	return why;
}

/* The live partition, pinned by the job and once more for the caller; begun or loaded if there is
 * none. */
static enum err_code head_epochs_live_of(
	struct db *db, struct job *job, struct partition **out, struct err *err)
{
	struct partition *p = NULL;
	enum err_code rc = ERR_OK;

	mutex_assert_held(&job->lock);
	mutex_lock(&db->lock);
	if (!job->live && job->live_epoch != SYM_NONE)
		rc = partition_pin_locked(db, job, job->live_epoch, true, &job->live, err);
	if ((p = job->live))
		resident_of(p)->pins++;
	mutex_unlock(&db->lock);
	if (!p && !rc && !(rc = head_epochs_new_epoch(db, job, &p, err))) {
		mutex_lock(&db->lock);
		job->live = p;
		job->live_epoch = p->epoch;
		resident_of(p)->pins++;
		mutex_unlock(&db->lock);
	}
	*out = p;
	return rc;
}

/*
 * The same, but not one whose symbols would have to be read in a bucket before it gets new content:
 * rows are taken whether the bucket answers or not. That happens once after a start.
 */
static enum err_code head_epochs_live_here(
	struct db *db, struct job *job, struct partition **out, struct err *err)
{
	enum err_code rc = head_epochs_live_of(db, job, out, err);
	bool done;

	if (rc)
		return rc;
	mutex_lock(&(*out)->lock);
	done = resident_of(*out)->complete;
	mutex_unlock(&(*out)->lock);
	if (done || !blocks_have_remote_epoch(db, (*out)->id, (*out)->epoch))
		return ERR_OK;
	partition_unpin(db, *out);
	epoch_end(db, job);
	if ((rc = head_epochs_live_of(db, job, out, err)))
		return rc;
	metric_add(&epochs_begun, "bucket", 1);
	log_info("tsdb", "epoch begun", LOG_STR("job", job->name), LOG_I("epoch", (*out)->epoch),
		LOG_S("reason", "bucket"));
	return ERR_OK;
}

/* The latest window before w that has rows of the job, pinned; *newest: none after w has. */
static struct window *window_before(
	struct db *db, const struct window *w, const struct job *job, bool *newest)
{
	struct window *before = NULL;

	*newest = true;
	mutex_lock(&db->lock);
	for (size_t i = 0; i < db->windows_n; i++) {
		struct window *at = db->windows[i];

		if (!window_has_job_locked(at, job))
			continue;
		if (at->start_ns > w->start_ns)
			*newest = false;
		else if (at->start_ns < w->start_ns)
			before = at;
	}
	if (before)
		before->pins++;
	mutex_unlock(&db->lock);
	return before;
}

/* The live partition for a row in this window, pinned; first: the window has none of the job. */
static enum err_code head_epochs_choose(struct db *db, struct window *w, struct job *job,
	bool first, struct partition **out, struct err *err)
{
	struct partition *p, *next;
	struct window *before;
	const char *why = NULL;
	enum err_code rc;
	struct err failed;
	bool newest;

	mutex_assert_held(&job->lock);
	if ((rc = head_epochs_live_here(db, job, &p, err)))
		return rc;
	*out = p;
	if (!first)
		return ERR_OK;
	before = window_before(db, w, job, &newest);
	/* A late row in an old window does not end the epoch that newer ones are in. After a
	 * restart what is used is known once it is loaded. */
	if (newest && !(rc = head_epochs_complete(db, p, err)))
		why = head_epochs_why_new(db, p, before);
	if (before)
		head_unpin(db, before);
	if (rc) {
		partition_unpin(db, p);
		return rc;
	}
	if (why && head_epochs_new_epoch(db, job, &next, &failed)) {
		log_warn("tsdb", "no new epoch of ids can begin", LOG_S("reason", why), LOG_E(&failed));
		why = NULL;
	}
	if (!why)
		return ERR_OK;
	epoch_end(db, job);
	mutex_lock(&db->lock);
	job->live = next;
	job->live_epoch = next->epoch;
	resident_of(next)->pins++;
	partition_unpin_locked(db, p);
	mutex_unlock(&db->lock);
	metric_add(&epochs_begun, why, 1);
	log_info("tsdb", "epoch begun", LOG_STR("job", job->name), LOG_I("epoch", next->epoch),
		LOG_S("reason", why));
	*out = next;
	return ERR_OK;
}

/* The window is empty, so the table lacks none of its symbols. */
static enum err_code head_epochs_note_fresh(
	struct partition *p, const struct window *w, struct err *err)
{
	struct partition_source *s;
	enum err_code rc = ERR_OK;

	mutex_lock(&p->lock);
	if (!partition_source_of(p, w->number)) {
		if ((s = partition_source_add(p, w->number)))
			s->stage = BLOCK_STACKS;
		else
			rc = err_nomem(err, "symbols");
	}
	mutex_unlock(&p->lock);
	return rc;
}

enum err_code window_partition_take(struct db *db, struct window *w, struct job *job, int64_t ts_ns,
	struct partition **out, struct err *err)
{
	bool fresh = false, first;
	enum err_code rc;
	struct partition *p;
	struct window_epoch *e;

	mutex_assert_held(&job->lock);
	mutex_lock(&db->lock);
	first = !window_has_job_locked(w, job);
	mutex_unlock(&db->lock);
	if ((rc = head_epochs_choose(db, w, job, first, &p, err)))
		return rc;
	/* The live one has a separate pin, and the window keeps it from ending. */
	mutex_lock(&db->lock);
	e = window_epoch_take_locked(w, job, p->epoch, ts_ns, &fresh);
	partition_unpin_locked(db, p);
	mutex_unlock(&db->lock);
	if (!e)
		return err_nomem(err, "window");
	*out = p;
	if (fresh && (rc = head_epochs_note_fresh(p, w, err)))
		return rc;
	return head_epochs_complete(db, p, err);
}
