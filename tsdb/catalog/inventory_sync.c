#include "tsdb/catalog/inventory_sync.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "tsdb/catalog/loss_report.h"
#include "tsdb/catalog/state.h"

/*
 * The inventory (inventory.h) as a database uses it: kept up as windows and blocks come and go, and
 * compared with the directory at the start. If the directory lacks an entry, that is a loss. The
 * entry is removed from the inventory once the list of losses is durable.
 */

/* ---- what comes and goes ---- */

static struct inventory_entry inventory_sync_of_window(const struct window *w)
{
	return (struct inventory_entry){
		.min_ns = w->start_ns, .max_ns = w->end_ns, .deleted = w->deleted_n > 0
	};
}

static struct inventory_entry inventory_sync_of_block(const struct db_block *b)
{
	return inventory_of_block(block_meta(b->block), b->deleted_n > 0);
}

static enum err_code inventory_sync_put(struct db *db, struct inventory_entry e, struct err *err)
{
	return inventory_change(db->inventory, &(struct inventory_change){ .in = &e, .in_n = 1 }, err);
}

static enum err_code inventory_sync_drop(struct db *db, struct inventory_entry e, struct err *err)
{
	return inventory_change(
		db->inventory, &(struct inventory_change){ .out = &e, .out_n = 1 }, err);
}

enum err_code inventory_sync_add_window(struct db *db, const struct window *w, struct err *err)
{
	return inventory_sync_put(db, inventory_sync_of_window(w), err);
}

enum err_code inventory_sync_drop_unread(struct db *db, int64_t start_ns, struct err *err)
{
	return inventory_sync_drop(db, (struct inventory_entry){ .min_ns = start_ns }, err);
}

enum err_code inventory_sync_drop_window(struct db *db, int64_t start_ns, struct err *err)
{
	mutex_assert_held(&db->blocks_files);
	return inventory_sync_drop_unread(db, start_ns, err);
}

enum err_code inventory_sync_drop_block(struct db *db, const struct ulid *ulid, struct err *err)
{
	mutex_assert_held(&db->blocks_files);
	return inventory_sync_drop(db, (struct inventory_entry){ .ulid = *ulid }, err);
}

enum err_code inventory_sync_drop_raw(struct db *db, const struct db_block *b, struct err *err)
{
	struct inventory_entry e = inventory_sync_of_block(b);

	mutex_assert_held(&db->blocks_files);
	e.raw = false;
	return inventory_sync_put(db, e, err);
}

void inventory_sync_note_deleted(struct db *db, const struct db_block *b, const struct window *w)
{
	struct inventory_entry e = b ? inventory_sync_of_block(b) : inventory_sync_of_window(w), is;
	struct err err;

	mutex_assert_held(&db->blocks_files);
	/* If the inventory says that raw rows are dropped, it stays so, even if the disk still has
	 * them. */
	if (inventory_find(db->inventory, &e, &is))
		e.raw &= is.raw;
	if (inventory_sync_put(db, e, &err))
		log_warn("tsdb", "inventory not written", LOG_E(&err));
	blocks_tell(db, b ? DB_BLOCK_DELETED : DB_WINDOW_DELETED,
		b ? &block_meta(b->block)->ulid : NULL, b ? 0 : w->start_ns);
}

enum err_code inventory_sync_swap(struct db *db, struct db_block *const *olds, size_t n,
	const struct window *w, const struct db_block *by, struct err *err)
{
	struct inventory_entry *out = calloc(n + 1, sizeof(*out)), in;
	struct inventory_change c = { .out = out, .out_n = n, .in = &in };
	enum err_code rc;

	mutex_assert_held(&db->blocks_files);
	if (!out)
		return err_nomem(err, "inventory");
	for (size_t i = 0; i < n; i++)
		out[i] = inventory_sync_of_block(olds[i]);
	if (w)
		out[c.out_n++] = inventory_sync_of_window(w);
	if (by) {
		in = inventory_sync_of_block(by);
		c.in_n = 1;
	}
	rc = inventory_change(db->inventory, &c, err);
	free(out);
	if (!rc || !by)
		return rc;
	log_warn("tsdb", "inventory not written", LOG_E(err));
	return ERR_OK; /* not lost: the block's meta.json names what it replaced */
}

/* ---- at the start ---- */

struct inventory_sync_taking {
	struct db *db;
	struct arena a;
	struct inventory_entry *out, *in; /* entries to remove and to put */
	size_t out_n, in_n;
	/* if read only: the inventory, read once more after windows and blocks */
	struct inventory *later;
};

enum err_code inventory_sync_open(struct db *db, struct err *err)
{
	return inventory_open(
		db->o.fs, db->dir, db->o.read_only, &db->inventory, &db->inventory_found, err);
}

static bool inventory_sync_in_sources(const struct db *db, const struct ulid *u)
{
	for (size_t i = 0; i < db->blocks_n; i++)
		if (block_names_source(block_meta(db->blocks[i]->block), u))
			return true;
	return false;
}

static struct db_block *inventory_sync_find_block(const struct db *db, const struct ulid *u)
{
	for (size_t i = 0; i < db->blocks_n; i++)
		if (ulid_eq(&block_meta(db->blocks[i]->block)->ulid, u))
			return db->blocks[i];
	return NULL;
}

static bool inventory_sync_is_unreadable(const struct db *db, const struct ulid *u)
{
	for (size_t i = 0; i < db->unreadable_n; i++)
		if (str_has_suffix(str_of(db->unreadable[i].dir), str_of(u->text)))
			return true;
	return false;
}

static char *inventory_sync_place(struct inventory_sync_taking *t, const struct inventory_entry *e)
{
	return e->ulid.text[0] ? arena_printf(&t->a, "blocks/%s", e->ulid.text) :
							 arena_printf(&t->a, "head/%" PRId64, e->min_ns / NS_PER_S);
}

/* If the database is read only, a server may be using the directory, and may have made or dropped
 * the entry while we looked. */
static bool inventory_sync_changed_meanwhile(
	struct inventory_sync_taking *t, const struct inventory_entry *e, const char *where)
{
	struct inventory_entry now;

	if (!t->db->o.read_only)
		return false;
	return !inventory_find(t->later, e, &now) ||
		fs_exists(arena_printf(&t->a, "%s/%s", t->db->dir, where));
}

struct inventory_sync_looking {
	struct str where;
	bool found;
};

static bool inventory_sync_look_for(void *ctx, const struct loss *l)
{
	struct inventory_sync_looking *t = ctx;

	t->found = l->what == LOSS_WINDOW && !l->accepted && str_eq(l->where, t->where);
	return !t->found;
}

/* True if opening the windows noted this loss already, from files beside their directories. */
static bool inventory_sync_is_told(struct inventory_sync_taking *t, const char *where)
{
	struct inventory_sync_looking l = { str_of(where), false };

	losses_each(t->db->losses, 0, LOSS_END, inventory_sync_look_for, &l);
	return l.found;
}

/* The entry's directory is missing, and no block replaced it: notes the loss. */
static void inventory_sync_missing(
	struct inventory_sync_taking *t, const struct inventory_entry *e, const char *where)
{
	enum loss_what what = e->ulid.text[0] ? LOSS_BLOCK : LOSS_WINDOW;
	/* The generation makes the text unique: the directory may be put back one day and be lost
	 * again. */
	char *once = arena_printf(
		&t->a, "%s of inventory %" PRIu64, where, inventory_generation(t->db->inventory));
	struct err why;

	if (!once || inventory_sync_changed_meanwhile(t, e, where))
		return;
	err_set(&why, ERR_NOT_FOUND, "its directory is missing or empty");
	if (inventory_sync_is_told(t, where) ||
		db_lost(t->db, what, once, e->min_ns, e->max_ns, 0, &why))
		t->out[t->out_n++] = *e;
}

/* Deleted rows must stay deleted, so their file must be there. */
static void inventory_sync_check_deleted(struct inventory_sync_taking *t,
	const struct inventory_entry *e, const char *where, const char *suffix)
{
	char *path = arena_printf(&t->a, "%s%s", where, suffix), *full, *copy;
	struct err why;

	full = path ? arena_printf(&t->a, "%s/%s", t->db->dir, path) : NULL;
	copy = full ? arena_printf(&t->a, "%s.copy", full) : NULL;
	if (!e->deleted || !copy || fs_exists(full) || fs_exists(copy) ||
		inventory_sync_changed_meanwhile(t, e, path))
		return;
	err_set(&why, ERR_NOT_FOUND, "the file is missing: deleted rows appear again");
	(void)!db_lost(t->db, LOSS_DELETED, path, e->min_ns, e->max_ns, 0, &why);
}

static void inventory_sync_check_raw(
	struct inventory_sync_taking *t, const struct inventory_entry *e, const struct db_block *b)
{
	const struct block_meta *m = block_meta(b->block);
	char *path = arena_printf(&t->a, "blocks/%s/rows.ldb", m->ulid.text);
	struct err why;

	if (!path || block_has_raw(b->block) || (!m->raw && !(e && e->raw)))
		return;
	if (b->why.code)
		why = b->why;
	else
		err_set(&why, ERR_NOT_FOUND, "meta.json says that it is gone");
	(void)!db_lost(t->db, LOSS_PROFILES, path, m->min_ns, m->max_ns, m->rows, &why);
}

static void inventory_sync_look_at(struct inventory_sync_taking *t, const struct inventory_entry *e)
{
	const char *where = inventory_sync_place(t, e);
	struct db_block *b;

	if (!where)
		return;
	if (!e->ulid.text[0]) {
		if (windows_find(t->db, e->min_ns))
			inventory_sync_check_deleted(t, e, where, ".deleted");
		else if (blocks_have_window(t->db, e->min_ns))
			t->out[t->out_n++] = *e;
		else
			inventory_sync_missing(t, e, where);
		return;
	}
	if ((b = inventory_sync_find_block(t->db, &e->ulid))) {
		inventory_sync_check_deleted(t, e, where, "/deleted");
		inventory_sync_check_raw(t, e, b);
		/* Somebody restored an older directory: it may have rows that were deleted since. */
		if (!e->raw && block_has_raw(b->block) && !t->db->o.read_only)
			blocks_drop_raw(t->db, b);
	} else if (inventory_sync_in_sources(t->db, &e->ulid)) {
		t->out[t->out_n++] = *e;
	} else if (!inventory_sync_is_unreadable(t->db, &e->ulid)) { /* that is a loss already */
		inventory_sync_missing(t, e, where);
	}
}

/* Adds the entry to those to put, unless the inventory has the same. */
static void inventory_sync_take_in(struct inventory_sync_taking *t, struct inventory_entry e)
{
	struct inventory_entry was;

	if (!inventory_find(t->db->inventory, &e, &was) || was.max_ns != e.max_ns || was.raw != e.raw ||
		(e.deleted && !was.deleted))
		t->in[t->in_n++] = e;
}

static void inventory_sync_take_all_in(struct inventory_sync_taking *t)
{
	struct db *db = t->db;

	for (size_t i = 0; i < db->windows_n; i++)
		inventory_sync_take_in(t, inventory_sync_of_window(db->windows[i]));
	for (size_t i = 0; i < db->blocks_n; i++) {
		struct inventory_entry was, e = inventory_sync_of_block(db->blocks[i]);

		if (!inventory_find(db->inventory, &e, &was))
			inventory_sync_check_raw(t, NULL, db->blocks[i]);
		inventory_sync_take_in(t, e);
	}
}

/* Versions without an inventory made windows without identity and blocks of version 1; later
 * versions make neither. So if there is nothing else, there never was an inventory. */
static bool inventory_sync_was_none(const struct db *db)
{
	for (size_t i = 0; i < db->windows_n; i++)
		if (db->windows[i]->identity)
			return false;
	for (size_t i = 0; i < db->blocks_n; i++)
		if (!block_meta(db->blocks[i]->block)->unnamed)
			return false;
	return !db->unreadable_n;
}

/* Notes a loss if there was an inventory and it cannot be read: then nobody knows what should be
 * there. */
static void inventory_sync_not_known(struct inventory_sync_taking *t)
{
	const struct db *db = t->db;
	struct err why;

	if (db->inventory_found == INVENTORY_READ ||
		(db->inventory_found == INVENTORY_NONE && inventory_sync_was_none(db)))
		return;
	err_set(&why, ERR_CORRUPT, "inventory and inventory.copy %s",
		db->inventory_found == INVENTORY_NONE ? "are missing" : "cannot be read");
	(void)!db_lost(t->db, LOSS_LEDGER, "inventory", 0, LOSS_END, 0, &why);
}

static enum err_code inventory_sync_compare(struct inventory_sync_taking *t, struct err *err)
{
	struct db *db = t->db;
	enum inventory_found found;
	struct inventory_entry *v;
	enum err_code rc;
	size_t n;

	if (db->o.read_only && (rc = inventory_open(db->o.fs, db->dir, true, &t->later, &found, err)))
		return rc;
	if ((rc = inventory_list(db->inventory, &t->a, &v, &n, err)))
		return rc;
	t->out = arena_array(&t->a, struct inventory_entry, n + 1);
	t->in = arena_array(&t->a, struct inventory_entry, db->windows_n + db->blocks_n + 1);
	if (!t->out || !t->in)
		return arena_fail(&t->a, "inventory", err);
	inventory_sync_not_known(t);
	for (size_t i = 0; i < n; i++)
		inventory_sync_look_at(t, &v[i]);
	inventory_sync_take_all_in(t);
	return ERR_OK;
}

enum err_code inventory_sync_take(struct db *db, struct err *err)
{
	struct inventory_sync_taking t = { .db = db };
	struct inventory_change c;
	enum err_code rc;
	struct err why;

	arena_init(&t.a, 0);
	if (!(rc = inventory_sync_compare(&t, err))) {
		c = (struct inventory_change){ t.out, t.in, t.out_n, t.in_n };
		/* A disk that is full must not keep us from starting. */
		if (inventory_change(db->inventory, &c, &why))
			log_warn("tsdb", "inventory not written", LOG_E(&why));
	}
	inventory_close(t.later);
	arena_release(&t.a);
	return rc;
}
