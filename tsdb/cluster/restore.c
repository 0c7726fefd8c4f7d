#include "tsdb/cluster/restore.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/self/starting.h"
#include "tsdb/block/block.h"
#include "tsdb/catalog/deleted.h"
#include "tsdb/catalog/remote.h"
#include "tsdb/catalog/state.h"
#include "tsdb/cluster/publisher_internal.h"
#include "tsdb/head/follow.h"
#include "tsdb/lists/inventory.h"
#include "tsdb/lists/losses.h"

/*
 * The order: data that is there is set aside (aside.c). The marker is written, then all files, each
 * synced; then the marker says that the directory is whole. It is removed once the manifest says
 * that the shard takes profiles. So a crash before that loses nothing: the manifest is still
 * `complete`, or the directory is whole. The publisher keeps in the manifest what the directory
 * lacks (publisher.h), so nothing leaves the bucket because it could not be restored.
 */

#define META_BYTES_MAX (64u << 20)

struct restore {
	const struct restore_options *o;
	struct fs *fs;
	struct str shard;
	struct arena a;
	struct losses *losses;
	bool *windows_hidden, *blocks_hidden; /* of the manifest */
	struct inventory_entry *entries;
	size_t entries_n;
	struct restore_done *done;
};

static char *restore_in_dir(struct restore *r, const char *name)
{
	return path_join(&r->a, str_of(r->o->dir), str_of(name));
}

/* ---- is there data? ---- */

static bool cluster_restore_has(struct arena *a, const char *dir, const char *name)
{
	char *path = path_join(a, str_of(dir), str_of(name));

	return path && fs_exists(path);
}

static bool cluster_restore_has_in(struct arena *a, const char *dir, const char *name)
{
	char *path = path_join(a, str_of(dir), str_of(name));
	struct str *names;
	size_t n = 0;

	return path && !fs_list(path, a, &names, &n, NULL) && n;
}

bool restore_has_marker(const char *dir)
{
	struct arena a;
	bool has;

	arena_init(&a, 0);
	has = cluster_restore_has(&a, dir, RESTORE_MARKER);
	arena_release(&a);
	return has;
}

static bool restore_has_data(const char *dir)
{
	struct arena a;
	bool has;

	arena_init(&a, 0);
	has = cluster_restore_has(&a, dir, "inventory") ||
		cluster_restore_has(&a, dir, "inventory.copy") || cluster_restore_has_in(&a, dir, "head") ||
		cluster_restore_has_in(&a, dir, "blocks");
	arena_release(&a);
	return has;
}

/* What the marker says. A directory with any other text is not whole. */
#define NOT_WHOLE "The directory is not whole.\n"
#define WHOLE "The directory is whole, and took no profiles yet.\n"

static bool restore_says_whole(const char *dir)
{
	struct buf text = { 0 };
	struct arena a;
	char *marker;
	bool whole;

	arena_init(&a, 0);
	marker = path_join(&a, str_of(dir), STR(RESTORE_MARKER));
	whole = marker && !fs_read_file(marker, sizeof(WHOLE), &text, NULL) &&
		str_is(buf_str(&text), WHOLE);
	buf_release(&text);
	arena_release(&a);
	return whole;
}

bool restore_is_due(const char *dir)
{
	return restore_has_marker(dir) ? !restore_says_whole(dir) : !restore_has_data(dir);
}

bool restore_is_idle(const char *dir)
{
	return restore_has_marker(dir) || !restore_has_data(dir);
}

/* ---- beginning and end ---- */

/* Data without a marker was acknowledged by the directory, or may have been. */
static enum err_code restore_set_aside(struct restore *r, const char *marker, struct err *err)
{
	char name[ASIDE_NAME_BYTES];
	enum err_code rc;

	if (!fs_exists(marker)) {
		if (!restore_has_data(r->o->dir))
			return ERR_OK;
		if ((rc = aside_begin(r->fs, r->o->dir, marker, name, err)))
			return rc;
	} else if (!aside_is_under_way(marker, name)) {
		return ERR_OK;
	}
	return aside_move(r->fs, r->o->dir, name, err);
}

static enum err_code restore_begin(struct restore *r, struct err *err)
{
	char *marker = restore_in_dir(r, RESTORE_MARKER), *path;
	bool again;
	enum err_code rc;

	if (!marker)
		return arena_fail(&r->a, "restore", err);
	again = fs_exists(marker);
	if ((rc = fs_mkdir_all(r->fs, r->o->dir, err)) || (rc = restore_set_aside(r, marker, err)) ||
		(rc = fs_write_file(r->fs, marker, STR(NOT_WHOLE), err)) || !again)
		return rc;
	log_warn("cluster", "a restore did not end, and begins again", LOG_S("dir", r->o->dir));
	for (size_t i = 0; restore_made[i]; i++) {
		if (!(path = restore_in_dir(r, restore_made[i])))
			return arena_fail(&r->a, "restore", err);
		if ((rc = fs_remove_tree(r->fs, path, err)))
			return rc;
	}
	return r->fs->ops->sync_dir(r->fs, r->o->dir, err);
}

static enum err_code restore_mark_whole(struct restore *r, struct err *err)
{
	char *marker = restore_in_dir(r, RESTORE_MARKER);
	enum err_code rc;

	if (!marker)
		return arena_fail(&r->a, "restore", err);
	if ((rc = inventory_write(r->fs, r->o->dir, r->entries, r->entries_n, err)) ||
		(rc = r->fs->ops->sync_dir(r->fs, r->o->dir, err)))
		return rc;
	return fs_write_file(r->fs, marker, STR(WHOLE), err);
}

enum err_code restore_end(struct fs *fs, const char *dir, struct err *err)
{
	struct arena a;
	char *marker;
	enum err_code rc;

	arena_init(&a, 0);
	if (!(marker = path_join(&a, str_of(dir), STR(RESTORE_MARKER))))
		rc = arena_fail(&a, "restore", err);
	else if (!(rc = fs->ops->unlink(fs, marker, err)))
		rc = fs->ops->sync_dir(fs, dir, err);
	arena_release(&a);
	return rc;
}

/* ---- objects ---- */

/* The object, compared with what the manifest says of it. */
static enum err_code restore_fetch(struct restore *r, const struct manifest_key *key,
	const struct manifest_file *f, struct buf *out, struct err *err)
{
	enum err_code rc;

	if (r->o->canceled && atomic_load(r->o->canceled))
		return err_set(err, ERR_CANCELED, "the restore was canceled");
	buf_clear(out);
	rc = bucket_get(r->o->bucket, manifest_key_str(key), 0, BUCKET_TO_END, out, NULL, err);
	if (rc)
		return err_wrap(err, rc, "%s", key->text);
	r->done->bytes += out->len;
	if (out->len != f->bytes || hash_bytes(out->ptr, out->len, 0) != f->hash)
		return err_set(
			err, ERR_CORRUPT, "%s: it is not the object that the manifest names", key->text);
	return ERR_OK;
}

/* An error of the object, which would be the same one at each further attempt. */
static bool cluster_restore_is_loss(enum err_code rc)
{
	return rc == ERR_NOT_FOUND || rc == ERR_CORRUPT || rc == ERR_LIMIT;
}

/* Notes a loss and gives ERR_OK where rc is one; else rc. */
static enum err_code restore_lost(struct restore *r, enum err_code rc, enum loss_what what,
	const char *where, int64_t min_ns, int64_t max_ns, struct err *err)
{
	struct loss l = { .what = what, .min_ns = min_ns, .max_ns = max_ns };

	if (!cluster_restore_is_loss(rc))
		return rc;
	if (!where)
		return arena_fail(&r->a, "restore", err);
	l.where = str_of(where);
	l.text = str_of(err->msg);
	r->done->lost++;
	log_error("cluster", "not restored", LOG_S("what", where), LOG_E(err));
	return losses_add(r->losses, &l, NULL, err);
}

/* ---- small files ---- */

/* Written if the object is lost. db_open cannot read it; no file would mean: no ids were given. */
#define UNKNOWN_IDS "lost\n"

static enum err_code restore_ids(struct restore *r, struct buf *bytes, struct err *err)
{
	const struct manifest_file *f = &r->o->manifest->ids;
	struct manifest_key key = manifest_key_small(r->shard, "ids", f);
	char *path = restore_in_dir(r, "ids");
	enum err_code rc;

	if (!path)
		return arena_fail(&r->a, "restore", err);
	if (!f->bytes)
		return ERR_OK;
	if ((rc = restore_fetch(r, &key, f, bytes, err))) {
		if (!cluster_restore_is_loss(rc))
			return rc;
		/* No row is lost: db_open skips numbers if it cannot read the file. */
		r->done->lost++;
		log_error("cluster", "the file of ids is lost: new ids begin behind all that may be in use",
			LOG_E(err));
		return fs_write_file(r->fs, path, STR(UNKNOWN_IDS), err);
	}
	return fs_write_file(r->fs, path, buf_str(bytes), err);
}

static enum err_code restore_losses(struct restore *r, struct buf *bytes, struct err *err)
{
	const struct manifest_file *f = &r->o->manifest->losses;
	struct manifest_key key = manifest_key_small(r->shard, "losses", f);
	char *path = restore_in_dir(r, "losses");
	enum err_code rc, fetched = f->bytes ? restore_fetch(r, &key, f, bytes, err) : ERR_OK;
	struct err why = { 0 };

	if (!path)
		return arena_fail(&r->a, "restore", err);
	if (fetched && !cluster_restore_is_loss(fetched))
		return fetched;
	if (fetched)
		why = *err;
	else if (f->bytes && (rc = fs_write_file(r->fs, path, buf_str(bytes), err)))
		return rc;
	if ((rc = losses_open(r->fs, r->o->dir, false, &r->losses, err)))
		return rc;
	if (!fetched)
		return ERR_OK;
	err_copy(err, &why);
	return restore_lost(r, fetched, LOSS_LEDGER, "losses", 0, LOSS_END, err);
}

/* ---- windows ---- */

/* Segments up to the first that cannot be had; *last: the batch that it reaches. */
static enum err_code restore_add_segments(struct restore *r, const struct manifest_window *w,
	struct head_restore **out, uint64_t *last, struct buf *bytes, struct err *err)
{
	struct segment of = { w->start_ns, w->end_ns, w->identity, 0, 0, true };
	enum err_code rc;

	for (uint32_t i = 0; i < w->segments_n; i++) {
		const struct manifest_segment *s = &w->segments[i];
		struct manifest_key key = manifest_key_segment(r->shard, w, s);

		of.first = s->first;
		of.last = s->last;
		if ((rc = restore_fetch(r, &key, &s->object, bytes, err)))
			return rc;
		if (!*out && (rc = head_restore_open(r->fs, r->o->store, r->o->dir, &of, out, err)))
			return rc;
		if ((rc = head_restore_add(*out, &of, buf_str(bytes), err)))
			return err_wrap(err, rc, "%s", key.text);
		*last = s->last;
		r->done->segments++;
	}
	return ERR_OK;
}

/*
 * A window that lacks segments does not use the numbers of their batches again: the manifest names
 * them, and new batches must not be taken for them.
 */
static enum err_code restore_end_window(struct restore *r, const struct manifest_window *w,
	struct head_restore *h, uint64_t last, struct err *err)
{
	uint64_t named = w->segments[w->segments_n - 1].last;
	enum err_code rc;

	if (last < named && (rc = head_restore_pass(h, named, err))) {
		head_restore_close(h);
		return rc;
	}
	return head_restore_end(h, err);
}

static enum err_code restore_rows(struct restore *r, const struct manifest_window *w, bool *there,
	struct buf *bytes, struct err *err)
{
	char *where = arena_printf(&r->a, "head/%" PRId64, w->start_ns / NS_PER_S);
	struct head_restore *h = NULL;
	enum err_code rc, failed;
	uint64_t last = 0;

	*there = false;
	if (!w->segments_n) /* its first segment was not put yet */
		return ERR_OK;
	failed = restore_add_segments(r, w, &h, &last, bytes, err);
	if (failed == ERR_EXISTS) { /* it stays in the bucket, and in the manifest */
		failed = err_set(err, ERR_CORRUPT,
			"another window of this time is there, and window %016" PRIx64 " stays in the bucket",
			w->identity);
		where = arena_printf(&r->a, "%s of %016" PRIx64, where, w->identity);
	} else if (failed && last) {
		where = arena_printf(&r->a, "%s" RESTORE_LACKS " after batch %" PRIu64, where, last);
	}
	if (failed &&
		(rc = restore_lost(
			 r, failed, last ? LOSS_PROFILES : LOSS_WINDOW, where, w->start_ns, w->end_ns, err))) {
		head_restore_close(h);
		return rc;
	}
	if (!last) {
		head_restore_close(h);
		return ERR_OK;
	}
	*there = true;
	r->done->windows++;
	return restore_end_window(r, w, h, last, err);
}

static enum err_code restore_window(
	struct restore *r, const struct manifest_window *w, struct buf *bytes, struct err *err)
{
	struct manifest_key key = manifest_key_window_deleted(r->shard, w);
	char *where = arena_printf(&r->a, "head/%" PRId64 ".deleted", w->start_ns / NS_PER_S),
		 *path = where ? restore_in_dir(r, where) : NULL,
		 *copy = path ? arena_printf(&r->a, "%s" DELETED_COPY, path) : NULL;
	enum err_code rc;
	bool there;

	if (!copy)
		return arena_fail(&r->a, "restore", err);
	if ((rc = restore_rows(r, w, &there, bytes, err)) || !there)
		return rc;
	r->entries[r->entries_n++] = (struct inventory_entry){
		.min_ns = w->start_ns, .max_ns = w->end_ns, .deleted = w->deleted.bytes > 0
	};
	if (!w->deleted.bytes)
		return ERR_OK;
	if ((rc = restore_fetch(r, &key, &w->deleted, bytes, err)))
		return restore_lost(r, rc, LOSS_DELETED, where, w->start_ns, w->end_ns, err);
	if ((rc = fs_write_file(r->fs, path, buf_str(bytes), err)))
		return rc;
	return fs_write_file(r->fs, copy, buf_str(bytes), err);
}

/* ---- blocks ---- */

static enum err_code restore_block(struct restore *r, const struct manifest_block *b,
	struct buf *meta, struct buf *deleted, struct err *err)
{
	struct manifest_key meta_key = manifest_key_block(r->shard, b, MANIFEST_META),
						deleted_key = manifest_key_block(r->shard, b, MANIFEST_BLOCK_DELETED);
	char *where = arena_printf(&r->a, "blocks/%s", b->ulid.text),
		 *key = arena_printf(&r->a, "shards/%s/blocks/%s", r->o->shard, b->ulid.text),
		 *blocks = restore_in_dir(r, "blocks");
	enum err_code rc;

	if (!where || !key || !blocks)
		return arena_fail(&r->a, "restore", err);
	if ((rc = restore_fetch(r, &meta_key, &b->meta, meta, err)))
		return restore_lost(r, rc, LOSS_BLOCK, where, b->min_ns, b->max_ns, err);
	buf_clear(deleted);
	if (b->deleted.bytes && (rc = restore_fetch(r, &deleted_key, &b->deleted, deleted, err))) {
		buf_clear(deleted);
		rc = restore_lost(r, rc, LOSS_DELETED, arena_printf(&r->a, "%s/deleted", where), b->min_ns,
			b->max_ns, err);
		if (rc)
			return rc;
	}
	if ((rc = remote_write_stub(
			 r->fs, blocks, &b->ulid, key, buf_str(meta), buf_str(deleted), err)))
		return rc;
	r->done->blocks++;
	r->entries[r->entries_n++] = (struct inventory_entry){ b->ulid, b->min_ns, b->max_ns, b->raw,
		b->deleted.bytes > 0 };
	return ERR_OK;
}

/* ---- what is passed over ---- */

/* Notes an entry that stays in the bucket and is in no answer. */
static enum err_code restore_pass_over(struct restore *r, enum loss_what what, const char *where,
	int64_t min_ns, int64_t max_ns, struct err *err)
{
	err_set(err, ERR_CORRUPT,
		"other data of this time is in its place, or its numbers mean something else; it stays in "
		"the bucket");
	return restore_lost(r, ERR_CORRUPT, what, where, min_ns, max_ns, err);
}

static enum err_code restore_pass_over_all(struct restore *r, struct err *err)
{
	const struct manifest *m = r->o->manifest;
	enum err_code rc = ERR_OK;

	r->windows_hidden = arena_array(&r->a, bool, m->windows_n + 1u);
	r->blocks_hidden = arena_array(&r->a, bool, m->blocks_n + 1u);
	if (!r->windows_hidden || !r->blocks_hidden)
		return arena_fail(&r->a, "restore", err);
	manifest_hidden(m, r->windows_hidden, r->blocks_hidden);
	for (uint32_t i = 0; i < m->windows_n && !rc; i++)
		if (r->windows_hidden[i])
			rc = restore_pass_over(r, LOSS_WINDOW,
				arena_printf(&r->a, "head/%" PRId64 " of %016" PRIx64,
					m->windows[i].start_ns / NS_PER_S, m->windows[i].identity),
				m->windows[i].start_ns, m->windows[i].end_ns, err);
	for (uint32_t i = 0; i < m->blocks_n && !rc; i++)
		if (r->blocks_hidden[i])
			rc = restore_pass_over(r, LOSS_BLOCK,
				arena_printf(&r->a, "blocks/%s", m->blocks[i].ulid.text), m->blocks[i].min_ns,
				m->blocks[i].max_ns, err);
	return rc;
}

/* ---- the whole ---- */

static enum err_code cluster_restore_run(
	struct restore *r, struct buf *bytes, struct buf *more, struct err *err)
{
	const struct manifest *m = r->o->manifest;
	enum err_code rc;

	r->entries = arena_array(&r->a, struct inventory_entry, (size_t)m->windows_n + m->blocks_n + 1);
	if (!r->entries)
		return arena_fail(&r->a, "restore", err);
	if ((rc = restore_begin(r, err)) || (rc = restore_ids(r, bytes, err)) ||
		(rc = restore_losses(r, bytes, err)) || (rc = restore_pass_over_all(r, err)))
		return rc;
	for (uint32_t i = 0; i < m->windows_n && !rc; i++) {
		starting_say(
			r->o->waiting, "restores window %u of %u from the bucket", i + 1, m->windows_n);
		if (!r->windows_hidden[i])
			rc = restore_window(r, &m->windows[i], bytes, err);
	}
	for (uint32_t i = 0; i < m->blocks_n && !rc; i++) {
		starting_say(r->o->waiting, "restores block %u of %u from the bucket", i + 1, m->blocks_n);
		if (!r->blocks_hidden[i])
			rc = restore_block(r, &m->blocks[i], bytes, more, err);
	}
	return rc ? rc : restore_mark_whole(r, err);
}

enum err_code restore_run(
	const struct restore_options *o, struct restore_done *done, struct err *err)
{
	struct restore r = {
		.o = o, .fs = o->fs ? o->fs : &fs_posix, .shard = str_of(o->shard), .done = done
	};
	int64_t began = clock_monotonic_ns();
	struct buf bytes = { 0 }, more = { 0 };
	enum err_code rc;
	struct err why;

	*done = (struct restore_done){ 0 };
	arena_init(&r.a, 0);
	if (o->manifest->generation) /* else the shard is new */
		log_info("cluster", "data directory is restored from the bucket", LOG_S("dir", o->dir),
			LOG_I("windows", o->manifest->windows_n), LOG_I("blocks", o->manifest->blocks_n));
	rc = cluster_restore_run(&r, &bytes, &more, &why);
	losses_close(r.losses);
	arena_release(&r.a);
	buf_release(&bytes);
	buf_release(&more);
	if (rc) {
		err_copy(err, &why);
		return err_wrap(err, rc, "restore of %s", o->dir);
	}
	if (o->manifest->generation)
		log_info("cluster", "data directory restored", LOG_D("after", clock_monotonic_ns() - began),
			LOG_I("windows", done->windows), LOG_I("segments", done->segments),
			LOG_I("blocks", done->blocks), LOG_I("bytes", done->bytes), LOG_I("lost", done->lost));
	return ERR_OK;
}

/* ---- blocks that were dropped meanwhile ---- */

/* The directory is a stub of a dropped block; *out: its meta.json. False for a stub that cannot be
 * read: the database says what is wrong with it. */
static bool cluster_restore_was_dropped(
	const char *dir, const struct manifest *m, struct arena *a, struct block_meta *out)
{
	int64_t until = m->dropped_ns > m->dropped_size_ns ? m->dropped_ns : m->dropped_size_ns;
	char key[REMOTE_KEY_BYTES_MAX + 1] = "", *path = path_join(a, str_of(dir), STR("meta.json"));
	struct buf text = { 0 };
	struct err why;
	bool is;

	if (!path || remote_read_key(dir, key, &why) || !key[0])
		return false;
	is = !fs_read_file(path, META_BYTES_MAX, &text, &why) &&
		!block_meta_parse(buf_str(&text), a, out, &why) && out->max_ns <= until &&
		!manifest_find_block(m, &out->ulid);
	buf_release(&text);
	return is;
}

static enum err_code cluster_restore_forget(struct fs *fs, struct inventory *inventory,
	const char *dir, const struct block_meta *meta, struct err *err)
{
	const struct inventory_entry out = inventory_of_block(meta, false);
	const struct inventory_change change = { .out = &out, .out_n = 1 };
	enum err_code rc;

	if ((rc = inventory_change(inventory, &change, err)))
		return rc;
	return fs_remove_tree(fs, dir, err);
}

enum err_code forget_dropped(
	struct fs *fs, const char *dir, const struct manifest *m, size_t *n, struct err *err)
{
	enum inventory_found found;
	struct inventory *v = NULL;
	struct block_meta meta;
	struct str *names;
	struct ulid u;
	struct arena a;
	enum err_code rc = ERR_OK;
	char *blocks, *path;
	size_t names_n = 0;

	*n = 0;
	arena_init(&a, 0);
	if (!(blocks = path_join(&a, str_of(dir), STR("blocks"))))
		rc = arena_fail(&a, "forget", err);
	else if ((m->dropped_ns || m->dropped_size_ns) && fs_exists(blocks) &&
		!(rc = fs_list(blocks, &a, &names, &names_n, err)))
		rc = inventory_open(fs, dir, false, &v, &found, err);
	for (size_t i = 0; i < names_n && !rc; i++) {
		if (!ulid_parse(names[i], &u) || !(path = path_join(&a, str_of(blocks), names[i])) ||
			!cluster_restore_was_dropped(path, m, &a, &meta))
			continue;
		if (!(rc = cluster_restore_forget(fs, v, path, &meta, err)))
			(*n)++;
	}
	inventory_close(v);
	if (*n)
		log_info("cluster", "blocks were dropped while the shard was gone", LOG_I("blocks", *n));
	arena_release(&a);
	return rc;
}
