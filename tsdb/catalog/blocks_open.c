#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "tsdb/block/block.h"
#include "tsdb/catalog/loss_report.h"
#include "tsdb/catalog/state.h"

/* Opens the blocks of a data directory at start, and cleans up after a crash (blocks.h). */

#define DROPPED ".dropped"

struct blocks_open_opening {
	struct db *db;
	struct arena a;
	struct db_block **v;
	size_t n;
	bool synced; /* the directory of blocks was synced by this start */
};

static void blocks_open_remove_tree(struct db *db, const char *path)
{
	struct err err;

	if (fs_remove_tree(db->o.fs, path, &err))
		log_warn("tsdb", "leftover not removed", LOG_S("path", path), LOG_E(&err));
	else
		log_info("tsdb", "leftover removed", LOG_S("path", path));
}

/* A half-removed directory must never be found under its name, not even after a power cut. */
static void blocks_open_remove_block(struct db *db, struct db_block *b)
{
	char *dir = strdup(blocks_local_dir(b)), *gone = NULL;
	struct err err;

	blocks_free(b);
	if (!dir || asprintf(&gone, "%s" BLOCK_GONE, dir) < 0)
		gone = NULL;
	if (gone && !db->o.read_only) {
		if (db->o.fs->ops->rename(db->o.fs, dir, gone, &err) ||
			db->o.fs->ops->sync_dir(db->o.fs, db->blocks_dir, &err))
			log_warn("tsdb", "leftover not removed", LOG_S("path", dir), LOG_E(&err));
		else
			blocks_open_remove_tree(db, gone);
	}
	free(gone);
	free(dir);
}

/* The range of a block that does not open: from the inventory, else from its meta.json. Stays 0 if
 * neither has it. */
static void blocks_open_known_range(
	struct db *db, const char *dir, struct str name, int64_t *min_ns, int64_t *max_ns)
{
	struct inventory_entry e = { 0 };
	struct block_meta meta;
	struct arena a;

	if (ulid_parse(name, &e.ulid) && inventory_find(db->inventory, &e, &e)) {
		*min_ns = e.min_ns;
		*max_ns = e.max_ns;
		return;
	}
	arena_init(&a, 0);
	if (!block_read_meta(dir, &a, &meta, NULL)) {
		*min_ns = meta.min_ns;
		*max_ns = meta.max_ns;
	}
	arena_release(&a);
}

static enum err_code blocks_open_note_unreadable(
	struct db *db, const char *dir, const struct err *why, struct err *err)
{
	const char *name = strrchr(dir, '/') + 1;
	char where[sizeof("blocks/") + ULID_LEN];
	struct unreadable *u;
	char *copy = strdup(dir);

	if (!copy || !array_room(&db->unreadable, db->unreadable_n, 1, &db->unreadable_cap)) {
		free(copy);
		return err_nomem(err, "blocks");
	}
	u = &db->unreadable[db->unreadable_n++];
	*u = (struct unreadable){ .dir = copy };
	blocks_open_known_range(db, dir, str_of(name), &u->min_ns, &u->max_ns);
	if (range_unreachable(why->code)) { /* the bucket does not answer: that is no loss */
		u->remote = u->again = true;
		u->why = *why;
		log_warn(
			"tsdb", "block in the bucket cannot be read now", LOG_S("block", name), LOG_E(why));
		return ERR_OK;
	}
	snprintf(where, sizeof(where), "blocks/%s", name);
	(void)!db_lost(db, LOSS_BLOCK, where, u->min_ns, u->max_ns ? u->max_ns : LOSS_END, 0, why);
	return ERR_OK;
}

static enum err_code blocks_open_one(
	struct blocks_open_opening *o, struct str name, struct err *err)
{
	char *dir = path_join(&o->a, str_of(o->db->blocks_dir), name);
	enum err_code rc;
	struct err why;

	if (!dir)
		return arena_fail(&o->a, "blocks", err);
	if (!(rc = blocks_open(o->db, dir, &o->v[o->n], &why))) {
		/* Finishes what retention began: meta.json has no raw rows. */
		if (!block_meta(o->v[o->n]->block)->raw && !o->db->o.read_only &&
			blocks_unlink_raw(o->db, dir, &why))
			log_warn("tsdb", "leftover not removed", LOG_E(&why));
		if (o->v[o->n]->remote && !o->db->o.read_only)
			remote_unlink_tables(o->db, dir);
		o->n++;
		return ERR_OK;
	}
	/* A block of another version is whole: it is not a loss, and the server must not write beside
	 * it. */
	return rc == ERR_NOMEM || rc == ERR_UNSUPPORTED ?
		err_set(err, rc, "%s", why.msg) :
		blocks_open_note_unreadable(o->db, dir, &why, err);
}

/* Perhaps the rename before a removal was not synced. Syncs it before the first removal, so that
 * half a block cannot come back. */
static void blocks_open_remove_renamed(struct blocks_open_opening *o, const char *path)
{
	struct fs *fs = o->db->o.fs;
	struct err err;

	if (!o->synced && fs->ops->sync_dir(fs, o->db->blocks_dir, &err)) {
		log_warn("tsdb", "leftover not removed", LOG_S("path", path), LOG_E(&err));
		return;
	}
	o->synced = true;
	blocks_open_remove_tree(o->db, path);
}

static enum err_code open_each(struct blocks_open_opening *o, struct err *err)
{
	struct db *db = o->db;
	enum err_code rc;
	struct str *names;
	struct ulid ulid;
	size_t n;

	if ((rc = fs_list(db->blocks_dir, &o->a, &names, &n, err)))
		return rc == ERR_NOT_FOUND ? ERR_OK : rc;
	if (!(o->v = calloc(n + 1, sizeof(struct db_block *))))
		return err_nomem(err, "blocks");
	for (size_t i = 0; i < n && !rc; i++) {
		if (ulid_parse(names[i], &ulid)) {
			rc = blocks_open_one(o, names[i], err);
		} else if (!db->o.read_only &&
			(str_has_suffix(names[i], STR(BLOCK_TMP)) ||
				str_has_suffix(names[i], STR(BLOCK_GONE)))) {
			char *path = path_join(&o->a, str_of(db->blocks_dir), names[i]);

			if (path)
				blocks_open_remove_renamed(o, path);
		}
	}
	return rc;
}

/* ---- windows and blocks that a block replaced ---- */

bool block_names_source(const struct block_meta *m, const struct ulid *u)
{
	for (uint32_t i = 0; i < m->sources_n; i++)
		if (strcmp(m->sources[i].text, u->text) == 0)
			return true;
	return false;
}

static void blocks_open_remove_superseded(struct blocks_open_opening *o)
{
	bool *superseded = calloc(o->n + 1, sizeof(bool));
	size_t kept = 0;

	for (size_t i = 0; i < o->n && superseded; i++)
		for (size_t k = 0; k < o->n && !superseded[i]; k++)
			superseded[i] = k != i &&
				block_names_source(block_meta(o->v[k]->block), &block_meta(o->v[i]->block)->ulid);
	for (size_t i = 0; i < o->n && superseded; i++) {
		if (superseded[i])
			blocks_open_remove_block(o->db, o->v[i]);
		else
			o->v[kept++] = o->v[i];
	}
	if (superseded)
		o->n = kept;
	free(superseded);
}

static int blocks_open_block_cmp(const void *a, const void *b)
{
	const struct block_meta *x = block_meta((*(struct db_block *const *)a)->block),
							*y = block_meta((*(struct db_block *const *)b)->block);

	if (x->min_ns != y->min_ns)
		return x->min_ns < y->min_ns ? -1 : 1;
	return x->level < y->level ? 1 : x->level > y->level ? -1 : ulid_cmp(&x->ulid, &y->ulid);
}

/*
 * Blocks that overlap would count rows twice. A crash alone cannot cause this. It happens if a
 * source could not be renamed away, its successor was joined further, and then came a restart. The
 * block of the higher level has the rows of the other, so it is kept.
 */
static enum err_code blocks_open_hide_overlapping(struct blocks_open_opening *o, struct err *err)
{
	size_t kept = 0;
	enum err_code rc = ERR_OK;
	struct err why;

	if (o->n)
		qsort(o->v, o->n, sizeof(struct db_block *), blocks_open_block_cmp);
	for (size_t i = 0; i < o->n && !rc; i++) {
		struct db_block *last = kept ? o->v[kept - 1] : NULL, *b = o->v[i], *hidden = b;

		if (!last || block_meta(last->block)->max_ns <= block_meta(b->block)->min_ns) {
			o->v[i] = NULL;
			o->v[kept++] = b;
			continue;
		}
		o->v[i] = NULL;
		if (block_meta(b->block)->level > block_meta(last->block)->level) {
			hidden = last;
			o->v[kept - 1] = b;
		}
		err_set(&why, ERR_CORRUPT, "its time overlaps that of block %s",
			block_meta(o->v[kept - 1]->block)->ulid.text);
		rc = blocks_open_note_unreadable(o->db, blocks_local_dir(hidden), &why, err);
		blocks_free(hidden);
	}
	o->n = rc ? o->n : kept;
	return rc;
}

/* Removes windows whose rows are in a block. */
static void blocks_open_remove_windows(struct blocks_open_opening *o)
{
	struct db *db = o->db;

	for (size_t i = 0; i < o->n; i++) {
		const struct block_meta *m = block_meta(o->v[i]->block);

		for (uint32_t k = 0; k < m->heads_n; k++)
			(void)!window_remove_leftover(db, m->heads[k]);
	}
}

/* Removes files of deleted ranges whose window is gone. If a store of the window was set aside, the
 * file stays: the store may be put back. */
static void blocks_open_remove_orphans(struct blocks_open_opening *o)
{
	struct db *db = o->db;
	struct str *names;
	int64_t start_s;
	size_t n;

	if (db->o.read_only || fs_list(db->head_dir, &o->a, &names, &n, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		struct str stem = names[i];
		char *path, *dir;

		if (str_has_suffix(stem, STR(DELETED_COPY)))
			stem.len -= strlen(DELETED_COPY);
		if (!str_has_suffix(stem, STR(".deleted")))
			continue;
		stem.len -= strlen(".deleted");
		path = path_join(&o->a, str_of(db->head_dir), names[i]);
		dir = path_join(&o->a, str_of(db->head_dir), str_dup(&o->a, stem));
		if (path && dir && !fs_exists(dir) &&
			!(str_to_i64(stem, &start_s) && window_is_aside(db, start_s * NS_PER_S)))
			(void)!db->o.fs->ops->unlink(db->o.fs, path, NULL);
	}
}

/* Removes unfinished snapshots. */
static void blocks_open_remove_snapshots(struct blocks_open_opening *o)
{
	struct db *db = o->db;
	struct str *names;
	size_t n;

	if (db->o.read_only || fs_list(db->snapshots_dir, &o->a, &names, &n, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		char *path = path_join(&o->a, str_of(db->snapshots_dir), names[i]);

		if (path && str_has_suffix(names[i], STR(BLOCK_TMP)))
			blocks_open_remove_tree(db, path);
	}
}

enum err_code blocks_open_all(struct db *db, struct err *err)
{
	struct blocks_open_opening o = { .db = db };
	enum err_code rc;

	arena_init(&o.a, 0);
	if (!db->o.read_only && (rc = fs_mkdir_all(db->o.fs, db->blocks_dir, err)))
		goto out;
	if ((rc = open_each(&o, err)))
		goto out;
	blocks_open_remove_superseded(&o);
	if ((rc = blocks_open_hide_overlapping(&o, err)))
		goto out;
	blocks_open_remove_windows(&o);
	blocks_open_remove_orphans(&o);
	blocks_open_remove_snapshots(&o);
	db->blocks = o.v;
	db->blocks_n = db->blocks_cap = o.n;
	for (size_t i = 0; i < o.n; i++)
		if (block_meta(o.v[i]->block)->last_ns > atomic_load(&db->max_ts_ns))
			atomic_store(&db->max_ts_ns, block_meta(o.v[i]->block)->last_ns);
	o.v = NULL;
out:
	for (size_t i = 0; i < o.n && o.v; i++)
		blocks_free(o.v[i]);
	free(o.v);
	arena_release(&o.a);
	return rc;
}
