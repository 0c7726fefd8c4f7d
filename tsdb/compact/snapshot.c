#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "tsdb/catalog/ids.h"
#include "tsdb/catalog/members.h"
#include "tsdb/compact/admin.h"
#include "tsdb/compact/compact_internal.h"
#include "tsdb/head/head.h"

/*
 * A snapshot: another data directory with the same content, made while rows keep coming. Of blocks
 * in a bucket it has the stubs: it is whole as long as the bucket has their tables.
 *
 * Files that never change are hard links. db->blocks_files is held meanwhile, so no block comes or
 * goes and no small file is replaced. A head window is a LevelDB in use: its tables are linked, and
 * MANIFEST, CURRENT and the logs copied. What makes that consistent:
 *
 *     MANIFEST says which tables and logs count. It is copied first; when it and the list of files
 *     are the same after all else was copied, nothing came or went in between. Else it is tried
 *     again.
 *     A log may grow meanwhile. What was copied is a beginning of it, as a crash would leave, and
 *     LevelDB drops a batch that is cut short as a whole. The mark of what was acknowledged is
 *     copied before the log, so it claims no more than the log has.
 *     ids are saved before, so none that was given is free in the copy.
 */
#define COPY_BYTES_MAX (1u << 30) /* of one file that is copied */
#define TRIES 50
#define RETRY_NS (20 * NS_PER_MS)

struct shot {
	struct db *db;
	struct arena a;
	const char *dir; /* the snapshot's */
	struct fs *fs;
	struct inventory_entry *taken; /* what is in it */
	size_t taken_n, taken_cap;
};

static enum err_code compact_snapshot_link_file(const char *from, const char *to, struct err *err)
{
	if (link(from, to) == 0)
		return ERR_OK;
	return err_errno(err, errno, "link %s to %s", from, to);
}

/* Copies and syncs a file. A missing file is left out. */
static enum err_code shot_copy_file(
	struct shot *s, const char *from, const char *to, struct buf *content, struct err *err)
{
	enum err_code rc;

	buf_clear(content);
	rc = fs_read_file(from, COPY_BYTES_MAX, content, err);
	if (rc)
		return rc == ERR_NOT_FOUND ? ERR_OK : rc;
	return fs_write_file(s->fs, to, buf_str(content), err);
}

static enum err_code shot_note_taken(struct shot *s, struct inventory_entry e, struct err *err)
{
	struct inventory_entry *v;

	if (s->taken_n == s->taken_cap) {
		s->taken_cap = s->taken_cap ? s->taken_cap * 2 : 64;
		if (!(v = arena_array(&s->a, struct inventory_entry, s->taken_cap)))
			return err_nomem(err, "snapshot");
		if (s->taken_n)
			memcpy(v, s->taken, s->taken_n * sizeof(*v));
		s->taken = v;
	}
	s->taken[s->taken_n++] = e;
	return ERR_OK;
}

/* ---- a head window ---- */

static bool compact_snapshot_is_copied(struct str name)
{
	return str_has_prefix(name, STR("MANIFEST-")) || str_is(name, "CURRENT");
}

static bool compact_snapshot_is_table(struct str name)
{
	return str_has_suffix(name, STR(".ldb")) || str_has_suffix(name, STR(".sst"));
}

/* Names of tables and logs, and MANIFEST's bytes: they differ if LevelDB changed something. */
static enum err_code shot_fingerprint(
	struct shot *s, const char *from, struct buf *out, struct err *err)
{
	struct str *names;
	enum err_code rc;
	char *path;
	size_t n;

	buf_clear(out);
	if ((rc = fs_list(from, &s->a, &names, &n, err)))
		return rc;
	for (size_t i = 0; i < n; i++) {
		if (str_is(names[i], "LOCK") || str_has_prefix(names[i], STR("LOG")))
			continue;
		buf_add_lenstr(out, names[i]);
		if (!compact_snapshot_is_copied(names[i]))
			continue;
		if (!(path = path_join(&s->a, str_of(from), names[i])))
			return err_nomem(err, "snapshot");
		rc = fs_read_file(path, COPY_BYTES_MAX, out, err);
		if (rc && rc != ERR_NOT_FOUND)
			return rc;
	}
	return buf_failed(out) ? err_nomem(err, "snapshot") : ERR_OK;
}

/* Takes the files of one turn: first small copied ones, then tables, then logs. */
static enum err_code shot_take_files(
	struct shot *s, const char *from, const char *to, int turn, struct err *err)
{
	struct buf content = { 0 };
	enum err_code rc;
	struct str *names;
	size_t n;

	if ((rc = fs_list(from, &s->a, &names, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !rc; i++) {
		bool log = str_has_suffix(names[i], STR(".log"));
		int kind = compact_snapshot_is_copied(names[i]) ? 0 :
			compact_snapshot_is_table(names[i])         ? 1 :
			log                                         ? 2 :
														  3;
		char *source = path_join(&s->a, str_of(from), names[i]),
			 *target = path_join(&s->a, str_of(to), names[i]);

		if (!source || !target)
			rc = err_nomem(err, "snapshot");
		else if (kind == turn && kind == 1)
			rc = compact_snapshot_link_file(source, target, err);
		else if (kind == turn)
			rc = shot_copy_file(s, source, target, &content, err);
		if (rc == ERR_NOT_FOUND)
			rc = ERR_OK; /* gone meanwhile; the comparison finds out if that matters */
	}
	buf_release(&content);
	return rc;
}

static enum err_code shot_take_store(
	struct shot *s, const char *from, const char *to, struct err *err)
{
	const struct timespec nap = { .tv_nsec = RETRY_NS };
	struct buf before = { 0 }, after = { 0 };
	enum err_code rc = ERR_OK;
	bool same = false;

	for (int i = 0; i < TRIES && !rc && !same; i++) {
		if (i)
			nanosleep(&nap, NULL);
		if ((rc = fs_remove_tree(s->fs, to, err)) || (rc = fs_mkdir_all(s->fs, to, err)) ||
			(rc = shot_fingerprint(s, from, &before, err)))
			break;
		for (int turn = 0; turn < 3 && !rc; turn++)
			rc = shot_take_files(s, from, to, turn, err);
		if (!rc && !(rc = shot_fingerprint(s, from, &after, err)))
			same = str_eq(buf_str(&before), buf_str(&after));
	}
	if (!rc && !same)
		rc = err_set(err, ERR_UNAVAILABLE, "%s does not stand still long enough", from);
	if (!rc)
		rc = s->fs->ops->sync_dir(s->fs, to, err);
	buf_release(&before);
	buf_release(&after);
	return rc;
}

static enum err_code shot_take_window(struct shot *s, struct window *w, struct err *err)
{
	int64_t start = w->start_ns / NS_PER_S;
	char *to = arena_printf(&s->a, "%s/head/%" PRId64, s->dir, start),
		 *mark = arena_printf(&s->a, "%s.acked", to ? to : ""),
		 *names = arena_printf(&s->a, "%s.names", to ? to : ""),
		 *deleted = arena_printf(&s->a, "%s.deleted", to ? to : ""),
		 *from_deleted = window_deleted_path(s->db, w->start_ns);
	struct buf content = { 0 };
	enum err_code rc;

	if (!to || !mark || !names || !deleted || !from_deleted)
		rc = err_nomem(err, "snapshot");
	else if (!(rc = shot_copy_file(s, w->mark_path, mark, &content, err)) &&
		!(rc = shot_copy_file(s, w->names_path, names, &content, err)) &&
		!(rc = shot_copy_file(s, from_deleted, deleted, &content, err)) &&
		!(rc = shot_take_store(s, w->dir, to, err)))
		rc = shot_note_taken(s,
			(struct inventory_entry){
				.min_ns = w->start_ns, .max_ns = w->end_ns, .deleted = fs_exists(deleted) },
			err);
	free(from_deleted);
	buf_release(&content);
	return rc;
}

static enum err_code shot_take_windows(struct shot *s, struct err *err)
{
	struct db *db = s->db;
	enum err_code rc = ERR_OK;
	struct window *w;

	for (size_t i = 0; !rc; i++) {
		mutex_lock(&db->lock);
		w = i < db->windows_n ? db->windows[i] : NULL;
		if (w && !window_is_open_locked(w))
			rc = err_set(err, ERR_UNAVAILABLE, "store %s is being reopened", w->dir);
		else if (w)
			w->pins++;
		mutex_unlock(&db->lock);
		if (!w || rc)
			break;
		rc = shot_take_window(s, w, err);
		head_unpin(db, w);
	}
	return rc;
}

/* ---- blocks ---- */

/* Raw rows that could not be unlinked are linked here, but meta.json says that they are gone. */
static enum err_code shot_note_block(struct shot *s, const struct db_block *b, struct err *err)
{
	struct inventory_entry e = inventory_of_block(block_meta(b->block), b->deleted_n > 0), is;

	if (inventory_find(s->db->inventory, &e, &is))
		e.raw &= is.raw;
	return shot_note_taken(s, e, err);
}

static enum err_code shot_take_block(struct shot *s, const struct db_block *b, struct err *err)
{
	const char *from = blocks_local_dir(b);
	char *to = arena_printf(&s->a, "%s/blocks/%s", s->dir, block_meta(b->block)->ulid.text);
	struct str *names;
	enum err_code rc;
	size_t n;

	if (!to)
		return err_nomem(err, "snapshot");
	if ((rc = s->fs->ops->mkdir(s->fs, to, err)) || (rc = fs_list(from, &s->a, &names, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !rc; i++) {
		char *source = path_join(&s->a, str_of(from), names[i]),
			 *target = path_join(&s->a, str_of(to), names[i]);

		if (!source || !target)
			return err_nomem(err, "snapshot");
		/* Small files are replaced, never written into: a link keeps what it was. */
		if (!str_has_suffix(names[i], STR(".tmp")))
			rc = compact_snapshot_link_file(source, target, err);
	}
	if (rc || (rc = s->fs->ops->sync_dir(s->fs, to, err)))
		return rc;
	return shot_note_block(s, b, err);
}

static enum err_code shot_take_blocks(struct shot *s, struct err *err)
{
	struct db_block **v;
	enum err_code rc;
	size_t n;

	if ((rc = blocks_pin_all(s->db, &v, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !rc; i++)
		rc = shot_take_block(s, v[i], err);
	blocks_unpin_all(s->db, v, n);
	return rc;
}

/* ---- all of it ---- */

static enum err_code shot_take_all(struct shot *s, struct err *err)
{
	char *blocks = arena_printf(&s->a, "%s/blocks", s->dir),
		 *head = arena_printf(&s->a, "%s/head", s->dir),
		 *ids = arena_printf(&s->a, "%s/ids", s->dir),
		 *losses = arena_printf(&s->a, "%s/losses", s->dir),
		 *from_losses = arena_printf(&s->a, "%s/losses", s->db->dir);
	struct buf content = { 0 };
	enum err_code rc;

	if (!blocks || !head || !ids || !losses || !from_losses)
		return err_nomem(err, "snapshot");
	if ((rc = ids_save(s->db, err)) || (rc = fs_mkdir_all(s->fs, blocks, err)) ||
		(rc = fs_mkdir_all(s->fs, head, err)) || (rc = shot_take_blocks(s, err)) ||
		(rc = shot_take_windows(s, err)) ||
		(rc = shot_copy_file(s, s->db->ids_path, ids, &content, err)) ||
		(rc = shot_copy_file(s, from_losses, losses, &content, err)) ||
		(rc = inventory_write(s->fs, s->dir, s->taken, s->taken_n, err)) ||
		(rc = s->fs->ops->sync_dir(s->fs, blocks, err)) ||
		(rc = s->fs->ops->sync_dir(s->fs, head, err)))
		goto out;
	rc = s->fs->ops->sync_dir(s->fs, s->dir, err);
out:
	buf_release(&content);
	return rc;
}

/* 20261121T045110Z-1a2b3c4d: in the order of time, and never twice. */
static char *compact_snapshot_name_of(struct arena *a)
{
	int64_t now = clock_now_ns();
	time_t seconds = (time_t)(now / NS_PER_S);
	struct tm tm;
	char text[20];

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &tm);
	return arena_printf(a, "%s-%08" PRIx32, text, (uint32_t)map_hash_u64((uint64_t)now));
}

enum err_code db_snapshot(struct db *db, struct arena *a, struct str *name, struct err *err)
{
	struct shot s = { .db = db, .fs = db->o.fs };
	char *own = compact_snapshot_name_of(a), *to;
	enum err_code rc = members_refuse(db, "snapshot", err);

	if (rc)
		return rc;
	if (!own)
		return arena_fail(a, "snapshot", err);
	if (db->o.read_only)
		return err_set(err, ERR_UNAVAILABLE, "the database is open for reading only");
	arena_init(&s.a, 0);
	to = arena_printf(&s.a, "%s/%s", db->snapshots_dir, own);
	s.dir = arena_printf(&s.a, "%s" BLOCK_TMP, to ? to : "");
	if (!to || !s.dir) {
		rc = err_nomem(err, "snapshot");
		goto out;
	}
	mutex_lock(&db->blocks_files);
	if (!(rc = fs_mkdir_all(s.fs, s.dir, err)) && !(rc = shot_take_all(&s, err)) &&
		!(rc = s.fs->ops->rename(s.fs, s.dir, to, err)))
		rc = s.fs->ops->sync_dir(s.fs, db->snapshots_dir, err);
	if (rc && fs_exists(s.dir) && fs_remove_tree(s.fs, s.dir, NULL))
		log_warn("tsdb", "unfinished snapshot not removed", LOG_S("path", s.dir));
	mutex_unlock(&db->blocks_files);
	if (!rc) {
		*name = str_of(own);
		log_info("tsdb", "snapshot taken", LOG_S("path", to));
	}
out:
	arena_release(&s.a);
	return rc ? err_wrap(err, rc, "snapshot") : ERR_OK;
}
