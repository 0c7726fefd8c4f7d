#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/catalog/loss_report.h"
#include "tsdb/catalog/window_epochs.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/head/numbers.h"
#include "tsdb/lists/versions.h"
#include "tsdb/symbols/partition.h"

/*
 * Stores that another version of this program made or set aside. All of this reads them through a
 * shadow: a store that is only looked at stays as it is, to the byte.
 *
 * A newer version's window. The start is refused, before any store is opened for writing.
 *
 * A window that an older version set aside because it could not read it. The program that can read
 * it takes it back under its name. But a store may be aside for a good reason too: its ids mean
 * something else here, its time has other rows by now, it cannot be read. So it is compared with
 * all that was opened before anything is changed. If it cannot come back, and is whole or a newer
 * version's, it becomes a loss: answers that touch its time say so.
 *
 * Taking back is one rename, synced. If the process is killed before, the next start does the same;
 * if it is killed after, the next start finds an ordinary window.
 */
#define LOSSES_TOLD_MAX 16u

/* ---- the versions of all windows ---- */

/* What the second copy says; only that of a store that cannot be read is asked for. */
static enum err_code aside_check_copy(struct db *db, int64_t start_s, struct err *err)
{
	struct window *w = window_new(db, start_s * NS_PER_S, 0);
	struct window_opening o = { 0 };
	struct window_meta m;
	enum err_code rc;
	struct err why;

	if (!w)
		return err_nomem(err, "window");
	if (!(rc = head_names_read(w, &o.names, err)) &&
		head_open_spare_meta(w, &o, &m, &why) == ERR_UNSUPPORTED)
		rc = err_copy(err, &why);
	head_names_release(&o.names);
	window_free(db, w);
	return rc;
}

/* dir: the store, perhaps a copy; shown: its path in the data directory. */
static enum err_code aside_check_store(
	struct db *db, const char *dir, const char *shown, int64_t start_s, struct err *err)
{
	struct key key = key_of('m');
	struct buf value = { 0 };
	struct store *s = NULL;
	struct window_meta m;
	enum err_code rc;
	struct err why;

	if (!(rc = store_open_shadow(dir, db->cache, db->o.store, &s, &why)) &&
		!(rc = store_get(s, key_str(&key), &value, &why)))
		rc = head_parse_meta(buf_str(&value), shown, &m, &why);
	buf_release(&value);
	store_close(s);
	if (rc == ERR_UNSUPPORTED || rc == ERR_NOMEM)
		return err_copy(err, &why);
	return rc ? aside_check_copy(db, start_s, err) : ERR_OK;
}

enum err_code head_check_versions(struct db *db, struct err *err)
{
	enum err_code rc;
	struct str *names;
	struct arena a;
	int64_t start;
	size_t n = 0;

	arena_init(&a, 0);
	rc = fs_list(db->head_dir, &a, &names, &n, err);
	for (size_t i = 0; i < n && !rc; i++) {
		char *dir = path_join(&a, str_of(db->head_dir), names[i]),
			 *shown = arena_printf(&a, "%s/head/" STR_FMT, db->dir, STR_ARG(names[i]));

		if (!dir || !shown)
			rc = arena_fail(&a, "window", err);
		else if (str_to_i64(names[i], &start) && start >= 0 && start <= INT64_MAX / NS_PER_S)
			rc = aside_check_store(db, dir, shown, start, err);
	}
	arena_release(&a);
	return rc;
}

/* ---- one that was set aside ---- */

struct aside {
	struct db *db;
	struct arena a;
	struct str name; /* <start>.<ns>.damaged */
	char *path;
	struct window *w; /* what it would be; its store is the shadow */
};

/* The times of the store, if it is whole as far as that goes. ERR_UNSUPPORTED: a newer version's.
 */
static enum err_code aside_open_store(struct aside *one, struct err *err)
{
	struct window *w = one->w;
	struct window_meta m;
	enum err_code rc;

	if ((rc = store_open_shadow(one->path, one->db->cache, one->db->o.store, &w->store, err)) ||
		(rc = store_check_tables(w->store, err)) || (rc = head_read_meta(w->store, &m, err)))
		return rc;
	if (m.start_ns != w->start_ns)
		return err_set(err, ERR_CORRUPT, "%s holds another window", one->path);
	w->end_ns = m.end_ns;
	w->identity = m.identity;
	w->links = m.links;
	store_set_identity(w->store, w->identity);
	return head_read_count(w, &w->count, err);
}

/* ---- whether it fits ---- */

#define ASIDE_CONFLICT(err, ...) err_set(err, ERR_EXISTS, __VA_ARGS__)

static enum err_code aside_check_time(struct aside *one, struct err *err)
{
	const struct window *w = one->w;
	struct db *db = one->db;

	for (size_t i = 0; i < db->windows_n; i++)
		if (db->windows[i]->start_ns < w->end_ns && db->windows[i]->end_ns > w->start_ns)
			return ASIDE_CONFLICT(err, "its time is also that of window %" PRId64,
				db->windows[i]->start_ns / NS_PER_S);
	for (size_t i = 0; i < db->blocks_n; i++) {
		const struct block_meta *m = block_meta(db->blocks[i]->block);

		if (m->min_ns < w->end_ns && m->max_ns > w->start_ns)
			return ASIDE_CONFLICT(err, "its time is also that of block %s", m->ulid.text);
	}
	return fs_exists(w->dir) ? ASIDE_CONFLICT(err, "%s is there", w->dir) : ERR_OK;
}

/* The files beside the place may be another window's. */
static enum err_code aside_check_beside(struct aside *one, struct err *err)
{
	struct names_file names = { 0 };
	struct head_mark mark;
	enum err_code rc;
	bool others;

	head_read_mark(one->w, &mark);
	if ((rc = head_names_read(one->w, &names, err)))
		return rc;
	others = (mark.whole && !mark.rows_only && mark.identity != one->w->identity) ||
		(names.identity && names.identity != one->w->identity);
	head_names_release(&names);
	return others ? ASIDE_CONFLICT(err, "the files beside it are another window's") : ERR_OK;
}

/* Symbols of everything that has the epoch, then the store's: no id may have two meanings. What
 * cannot be read elsewhere is no reason. */
static enum err_code aside_load_epoch(
	struct aside *one, struct partition *p, const struct job *job, struct err *err)
{
	struct db *db = one->db;
	enum err_code rc = ERR_OK;
	uint64_t lost;
	uint32_t next;
	bool has;

	for (size_t i = 0; i < db->windows_n && job && rc != ERR_NOMEM; i++) {
		mutex_lock(&db->lock);
		has = window_epoch_locked(db->windows[i], job, p->epoch) != NULL;
		mutex_unlock(&db->lock);
		next = 0;
		if (has)
			rc = head_load_symbols(db, db->windows[i], p, &next, err);
	}
	for (size_t i = 0; i < db->blocks_n && rc != ERR_NOMEM; i++) {
		struct block *b = db->blocks[i]->block;

		for (uint32_t slot = 0; slot < block_partitions_n(b); slot++) {
			const struct block_partition *of = block_partition(b, slot);

			if (of->id != p->id || of->epoch != p->epoch)
				continue;
			for (int stage = BLOCK_NAMES; stage <= BLOCK_STACKS && rc != ERR_NOMEM; stage++)
				if (range_unreachable(rc = block_load_symbols(b, slot, p, stage, &lost, err)))
					return rc;
		}
	}
	next = 0;
	return rc == ERR_NOMEM ? rc : head_load_symbols(db, one->w, p, &next, err);
}

static enum err_code aside_check_job(
	struct aside *one, uint32_t id, uint32_t epoch, struct str name, struct err *err)
{
	static const struct symbol_limits all = { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX };
	struct job *job = db_job_by_id(one->db, id);
	struct partition *p;
	enum err_code rc;

	if (job && !str_eq(job->name, name))
		return ASIDE_CONFLICT(err, "job %" PRIu32 " has two names", id);
	for (size_t i = 0; i < one->db->blocks_n; i++)
		for (uint32_t k = 0; k < block_partitions_n(one->db->blocks[i]->block); k++) {
			const struct block_partition *of = block_partition(one->db->blocks[i]->block, k);

			if (of->id == id && !str_eq(of->name, name))
				return ASIDE_CONFLICT(err, "job %" PRIu32 " has two names", id);
		}
	if ((rc = partition_open(name, id, 0, &all, &p, err)))
		return rc;
	p->epoch = epoch;
	p->lookup = false;
	mutex_lock(&p->lock);
	rc = aside_load_epoch(one, p, job, err);
	mutex_unlock(&p->lock);
	partition_close(p);
	return rc;
}

static enum err_code aside_check_series(
	struct aside *one, uint32_t id, struct labels labels, bool numeric, struct err *err)
{
	struct series *same = series_find(one->db->series, labels), *is;
	bool differs;

	series_lock_read(one->db->series);
	is = series_by_id_locked(one->db->series, id);
	differs = (is && (!labels_eq(is->labels, labels) || !is->job != numeric)) ||
		(same && same->id != id);
	series_unlock(one->db->series);
	if (same)
		series_release(same);
	return differs ? ASIDE_CONFLICT(err, "series %" PRIu32 " has two meanings", id) : ERR_OK;
}

static enum err_code aside_check_record(
	struct aside *one, struct arena *a, struct str key, struct str value, struct err *err)
{
	struct cursor k = cursor_of((struct str){ key.ptr + 1, key.len - 1 }), in = cursor_of(value);
	uint32_t id = cursor_u32be(&k), epoch;
	struct labels labels;
	struct str name;

	if (key.ptr[0] == 'p') {
		epoch = cursor_u32be(&k);
		name = cursor_lenstr(&in);
		return k.bad || in.bad ? err_set(err, ERR_CORRUPT, "%s: bad job", one->path) :
								 aside_check_job(one, id, epoch, name, err);
	}
	if (key.ptr[0] == 's')
		(void)!cursor_u32(&in); /* its job */
	if (k.bad || in.bad || labels_decode(a, &in, &labels, NULL))
		return err_set(err, ERR_CORRUPT, "%s: bad series", one->path);
	return aside_check_series(one, id, labels, key.ptr[0] == KEY_NUMBER_SERIES, err);
}

static enum err_code aside_check_kind(struct aside *one, char kind, struct err *err)
{
	struct store_iter *it = store_iter_open(one->w->store, NULL);
	struct key from = key_of(kind);
	enum err_code rc = ERR_OK;
	struct str key, value;
	struct arena a;

	if (!it)
		return err_nomem(err, "window");
	arena_init(&a, 0);
	for (store_iter_seek(it, key_str(&from)); store_iter_valid(it) && !rc; store_iter_next(it)) {
		key = store_iter_key(it);
		if (!key.len || key.ptr[0] != kind)
			break;
		arena_reset(&a);
		if (!(rc = store_iter_value(it, &value, err)))
			rc = aside_check_record(one, &a, key, value, err);
	}
	if (!rc)
		rc = store_iter_status(it, err);
	arena_release(&a);
	store_iter_close(it);
	return rc;
}

/* ERR_EXISTS: why it cannot be a window of this directory now. */
static enum err_code aside_check(struct aside *one, struct err *err)
{
	enum err_code rc;

	if ((rc = aside_check_time(one, err)) || (rc = aside_check_beside(one, err)) ||
		(rc = aside_check_kind(one, 's', err)) ||
		(rc = aside_check_kind(one, KEY_NUMBER_SERIES, err)))
		return rc;
	return aside_check_kind(one, 'p', err); /* last: it loads symbols */
}

/* ---- what becomes of it ---- */

struct aside_told {
	struct str window, itself; /* head/<start>, head/<start>.<ns>.damaged */
	uint64_t numbers[LOSSES_TOLD_MAX];
	size_t n;
	bool by_window;
};

static bool aside_look_at_loss(void *ctx, const struct loss *l)
{
	struct aside_told *t = ctx;
	struct str of = l->where;
	bool window;

	if (l->what != LOSS_WINDOW)
		return true;
	if (str_has_prefix(of, t->window) && of.len > t->window.len && of.ptr[t->window.len] == ' ')
		of.len = t->window.len; /* "... of inventory N" */
	window = str_eq(of, t->window);
	t->by_window |= window;
	if ((window || str_eq(of, t->itself)) && t->n < LOSSES_TOLD_MAX)
		t->numbers[t->n++] = l->number;
	return true;
}

static bool aside_find_told(struct aside *one, struct aside_told *out)
{
	*out = (struct aside_told){ 0 };
	out->window = str_of(arena_printf(&one->a, "head/%" PRId64, one->w->start_ns / NS_PER_S));
	out->itself = str_of(arena_printf(&one->a, "head/" STR_FMT, STR_ARG(one->name)));
	if (!out->window.ptr || !out->itself.ptr)
		return false;
	losses_each(one->db->losses, 0, LOSS_END, aside_look_at_loss, out);
	return true;
}

/* The store stays aside: notes a loss, unless the program that set it aside has noted it. */
static void aside_tell(struct aside *one, const struct err *why)
{
	struct window *w = one->w;
	struct aside_told told;

	if (!aside_find_told(one, &told) || told.by_window)
		return;
	if (!w->end_ns)
		w->end_ns = w->start_ns + one->db->o.window_ns;
	(void)!db_lost(
		one->db, LOSS_WINDOW, told.itself.ptr, w->start_ns, w->end_ns, w->count.rows, why);
}

/* The loss that was noted for the store is over. It may be noted again later. */
static void aside_settle(struct aside *one)
{
	struct aside_told told;
	struct err err;

	if (aside_find_told(one, &told) && losses_settle(one->db->losses, told.numbers, told.n, &err))
		log_warn("tsdb", "list of losses not written", LOG_E(&err));
}

static enum err_code aside_take(struct aside *one, struct err *err)
{
	struct fs *fs = one->db->o.fs;
	enum err_code rc;

	store_close(one->w->store);
	one->w->store = NULL;
	if ((rc = fs->ops->rename(fs, one->path, one->w->dir, err))) {
		log_warn("tsdb", "window stays set aside", LOG_S("store", one->path), LOG_E(err));
		aside_tell(one, err);
		return ERR_OK; /* as without it; the next start tries again */
	}
	if ((rc = fs->ops->sync_dir(fs, one->db->head_dir, err)))
		return rc;
	log_warn("tsdb", "window that was set aside is served again", LOG_S("store", one->w->dir),
		LOG_S("was", one->path));
	aside_settle(one);
	return head_open_window(one->db, one->w->start_ns / NS_PER_S, err);
}

static enum err_code aside_take_back(struct aside *one, struct err *err)
{
	enum err_code rc;
	struct err why;

	if (blocks_have_window(one->db, one->w->start_ns)) /* a copy of it */
		return ERR_OK;
	rc = aside_open_store(one, &why);
	if (rc && rc != ERR_UNSUPPORTED && rc != ERR_NOMEM) /* it was damaged, and is a loss already */
		return ERR_OK;
	if (!rc)
		rc = aside_check(one, &why);
	if (rc == ERR_NOMEM)
		return err_copy(err, &why);
	if (!rc)
		return aside_take(one, err);
	log_warn("tsdb", "window stays set aside", LOG_S("store", one->path), LOG_E(&why));
	aside_tell(one, &why);
	return ERR_OK;
}

enum err_code head_take_back(struct db *db, struct err *err)
{
	struct aside one = { .db = db };
	enum err_code rc;
	struct str *names;
	int64_t start;
	size_t n = 0;

	arena_init(&one.a, 0);
	rc = fs_list(db->head_dir, &one.a, &names, &n, err);
	for (size_t i = 0; i < n && !rc; i++) {
		if (!window_aside_start(names[i], &start))
			continue;
		one.name = names[i];
		one.path = path_join(&one.a, str_of(db->head_dir), names[i]);
		if (!one.path || !(one.w = window_new(db, start * NS_PER_S, 0))) {
			rc = err_nomem(err, "window");
			break;
		}
		rc = aside_take_back(&one, err);
		window_free(db, one.w);
	}
	arena_release(&one.a);
	return rc;
}
