#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "tsdb/catalog/loss_report.h"
#include "tsdb/catalog/remote.h"
#include "tsdb/catalog/state.h"

/* Blocks in a bucket that a list names, and those that could not be opened. */

#define DELETED_BYTES_MAX (256u << 20)
#define OPENERS 8u /* threads that open blocks */

void unreadable_free(struct unreadable *u)
{
	free(u->dir);
	free(u->of);
	*u = (struct unreadable){ 0 };
}

static bool remote_follow_same_file(const struct block_file *a, const struct block_file *b)
{
	return a->bytes == b->bytes && a->hash == b->hash;
}

static void remote_follow_raise_newest(struct db *db, int64_t last_ns)
{
	int64_t was = atomic_load(&db->max_ts_ns);

	while (was < last_ns && !atomic_compare_exchange_weak(&db->max_ts_ns, &was, last_ns))
		;
}

/* ---- one block of a list ---- */

static void remote_follow_know(
	struct db *db, const char *key, const char *name, struct block_file f)
{
	char *path = NULL;

	if (f.bytes && asprintf(&path, "%s/%s", key, name) >= 0)
		range_know(db->o.remote, path, f.bytes, f.hash);
	free(path);
}

static void remote_follow_know_all(struct db *db, const struct remote_block *r)
{
	char meta[sizeof("meta.json-") + 16];

	snprintf(
		meta, sizeof(meta), r->meta_changed ? "meta.json-%016" PRIx64 : "meta.json", r->meta.hash);
	remote_follow_know(db, r->key, "rows.ldb", r->rows);
	remote_follow_know(db, r->key, "rollups.ldb", r->rollups);
	remote_follow_know(db, r->key, "spare", r->spare);
	remote_follow_know(db, r->key, meta, r->meta);
}

/* Reads the deleted ranges from the object that the list names; without one there are none. */
static enum err_code remote_follow_get_deleted(
	struct db *db, const struct remote_block *r, struct deleted *out, struct err *err)
{
	struct buf bytes = { 0 };
	char name[sizeof("deleted-") + 16], *path = NULL;
	enum err_code rc;

	*out = (struct deleted){ 0 };
	if (!r->deleted.bytes)
		return ERR_OK;
	snprintf(name, sizeof(name), "deleted-%016" PRIx64, r->deleted.hash);
	remote_follow_know(db, r->key, name, r->deleted);
	if (asprintf(&path, "%s/%s", r->key, name) < 0)
		return err_nomem(err, "block");
	if (!(rc = range_read_all(db->o.remote, path, DELETED_BYTES_MAX, &bytes, err)))
		rc = deleted_decode(buf_str(&bytes), path, str_of(r->ulid.text), out, err);
	buf_release(&bytes);
	free(path);
	return rc;
}

static enum err_code remote_follow_open_listed(
	struct db *db, const struct remote_block *r, struct db_block **out, struct err *err)
{
	struct db_block *b = NULL;
	struct deleted d;
	enum err_code rc;

	if (!db->o.remote)
		return err_set(err, ERR_UNSUPPORTED, "no bucket is configured");
	remote_follow_know_all(db, r);
	if ((rc = remote_open_block(db, r->key, NULL, r, &b, err)))
		return rc;
	if ((rc = remote_follow_get_deleted(db, r, &d, err)) || (rc = blocks_know_jobs(db, b, err))) {
		if (!rc)
			deleted_release(d.v);
		blocks_free(b);
		return rc;
	}
	b->deleted = d.v;
	b->deleted_n = d.n;
	b->of_deleted = r->deleted;
	b->of_meta = r->meta;
	*out = b;
	return ERR_OK;
}

static enum err_code remote_follow_make_unreadable(
	const struct remote_block *r, const struct err *why, struct unreadable *out, struct err *err)
{
	size_t len = strlen(r->key) + 1;
	struct remote_block *of = malloc(sizeof(*of) + len);

	*out = (struct unreadable){ .dir = strdup(r->key), .of = of };
	if (!of || !out->dir) {
		unreadable_free(out);
		return err_nomem(err, "blocks");
	}
	*of = *r;
	of->key = memcpy(of + 1, r->key, len);
	out->min_ns = r->min_ns;
	out->max_ns = r->max_ns;
	out->remote = true;
	out->again = range_unreachable(why->code);
	out->why = *why;
	return ERR_OK;
}

/* ---- a list ---- */

struct remote_follow_listed {
	struct db_block *old; /* the block of this name in the database's list; NULL: none */
	struct db_block *fresh; /* replaces `old`, or is new; NULL: `old` stays */
	struct unreadable bad; /* if the block cannot be opened; dir NULL: it can */
	bool ranges; /* its deleted ranges change */
	enum err_code rc; /* result of remote_follow_prepare */
	struct err *why; /* if rc; NULL: no memory for it */
	struct deleted deleted;
};

struct remote_follow_following {
	struct db *db;
	const struct remote_block *v;
	size_t n;
	struct remote_follow_listed *of; /* of v */
	struct db_block **blocks, **gone; /* the new list; the blocks that leave it */
	bool *replaced; /* for each of `gone`: the list still has the block, opened again */
	struct unreadable *unreadable; /* the new list */
	size_t blocks_n, gone_n, unreadable_n;
	atomic_size_t next; /* index into v: next to be prepared */
};

static struct db_block *remote_follow_find_listed(struct db *db, const struct ulid *u)
{
	struct db_block *b = NULL;

	mutex_lock(&db->lock);
	for (size_t i = 0; i < db->blocks_n && !b; i++)
		if (db->blocks[i]->remote && !db->blocks[i]->stub &&
			ulid_eq(&block_meta(db->blocks[i]->block)->ulid, u))
			b = db->blocks[i];
	mutex_unlock(&db->lock);
	return b;
}

/* Makes an array of ranges that is linked to the block's current one, which queriers still use. */
static enum err_code remote_follow_link_deleted(
	const struct db_block *b, struct deleted d, struct deleted *out, struct err *err)
{
	struct deleted_range *v = malloc((d.n + 1) * sizeof(*v));
	enum err_code rc;

	if (!v)
		return err_nomem(err, "deleted ranges");
	if (d.n)
		memcpy(v, d.v, d.n * sizeof(*v));
	rc = deleted_make(v, d.n, (struct deleted){ b->deleted, b->deleted_n }, out, err);
	free(v);
	return rc;
}

static enum err_code remote_follow_prepare(
	struct remote_follow_following *f, size_t i, struct err *why)
{
	const struct remote_block *r = &f->v[i];
	struct remote_follow_listed *l = &f->of[i];
	struct deleted d;
	enum err_code rc;

	if (i && f->v[i - 1].max_ns > r->min_ns)
		return err_set(
			why, ERR_CORRUPT, "its time overlaps that of block %s", f->v[i - 1].ulid.text);
	if (!l->old || !remote_follow_same_file(&l->old->of_meta, &r->meta) ||
		strcmp(block_dir(l->old->block), r->key) != 0)
		return remote_follow_open_listed(f->db, r, &l->fresh, why);
	if (remote_follow_same_file(&l->old->of_deleted, &r->deleted))
		return ERR_OK;
	if ((rc = remote_follow_get_deleted(f->db, r, &d, why)))
		return rc;
	rc = remote_follow_link_deleted(l->old, d, &l->deleted, why);
	deleted_release(d.v);
	l->ranges = !rc;
	return rc;
}

static void remote_follow_prepare_next(void *ctx)
{
	struct remote_follow_following *f = ctx;
	size_t i;

	while ((i = atomic_fetch_add(&f->next, 1)) < f->n) { /* several threads: each takes the next */
		struct remote_follow_listed *l = &f->of[i];
		struct err why;

		if ((l->rc = remote_follow_prepare(f, i, &why)) && (l->why = malloc(sizeof(*l->why))))
			*l->why = why;
	}
}

/* Opens blocks with several threads, as opening one waits for the bucket a few times. */
static enum err_code remote_follow_prepare_all(struct remote_follow_following *f, struct err *err)
{
	struct thread threads[OPENERS] = { 0 };
	enum err_code rc = ERR_OK;
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		f->of[i].old = remote_follow_find_listed(f->db, &f->v[i].ulid);
	while (n < OPENERS && n + 1 < f->n &&
		!thread_start(&threads[n], "bucket-open", remote_follow_prepare_next, f, NULL))
		n++;
	remote_follow_prepare_next(f);
	while (n)
		thread_join(&threads[--n]);
	for (size_t i = 0; i < f->n && !rc; i++) {
		struct remote_follow_listed *l = &f->of[i];

		if (l->rc && !l->why) {
			rc = err_nomem(err, "blocks");
		} else if (l->rc == ERR_NOMEM || l->rc == ERR_UNSUPPORTED) {
			rc = err_copy(err, l->why);
		} else if (l->rc) {
			log_warn("tsdb", "block in the bucket cannot be read", LOG_S("block", f->v[i].key),
				LOG_E(l->why));
			rc = remote_follow_make_unreadable(&f->v[i], l->why, &l->bad, err);
		}
	}
	return rc;
}

static const struct remote_follow_listed *remote_follow_listed_of(
	const struct remote_follow_following *f, const struct db_block *b)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->of[i].old == b)
			return &f->of[i];
	return NULL;
}

/* db->lock is held. The arrays have room. */
static void remote_follow_build(struct remote_follow_following *f)
{
	struct db *db = f->db;

	for (size_t i = 0; i < db->blocks_n; i++) {
		struct db_block *b = db->blocks[i];
		const struct remote_follow_listed *l = remote_follow_listed_of(f, b);
		bool listed = b->remote && !b->stub;

		if (listed && (!l || l->fresh || l->bad.dir)) {
			f->replaced[f->gone_n] = l && l->fresh;
			f->gone[f->gone_n++] = b;
		} else {
			f->blocks[f->blocks_n++] = b;
		}
	}
	for (size_t i = 0; i < db->unreadable_n; i++) {
		if (db->unreadable[i].of)
			unreadable_free(&db->unreadable[i]);
		else
			f->unreadable[f->unreadable_n++] = db->unreadable[i];
	}
}

/* Swaps the lists in one step. db->lock is held. */
static void remote_follow_put_in_place(
	struct remote_follow_following *f, const int64_t *windows, size_t windows_n, size_t cap)
{
	struct db *db = f->db;

	mutex_assert_held(&db->lock);
	remote_follow_build(f);
	free(db->blocks);
	free(db->unreadable);
	db->blocks = f->blocks;
	db->blocks_n = f->blocks_n;
	db->blocks_cap = cap;
	db->unreadable = f->unreadable;
	f->blocks = NULL;
	f->unreadable = NULL;
	for (size_t i = 0; i < f->n; i++) {
		struct remote_follow_listed *l = &f->of[i];

		if (l->bad.dir) {
			db->unreadable[f->unreadable_n++] = l->bad;
			l->bad = (struct unreadable){ 0 };
		} else if (l->fresh) {
			if (l->old)
				l->fresh->number = l->old->number; /* its symbols are the same */
			blocks_insert_locked(db, l->fresh);
			remote_follow_raise_newest(db, block_meta(l->fresh->block)->last_ns);
			l->fresh = NULL;
		} else if (l->ranges) {
			l->old->deleted = l->deleted.v;
			l->old->deleted_n = l->deleted.n;
			l->old->of_deleted = f->v[i].deleted;
			l->ranges = false;
		}
	}
	db->unreadable_n = f->unreadable_n;
	db->unreadable_cap = cap;
	for (size_t i = 0; i < windows_n; i++) {
		struct window *w = windows_find(db, windows[i]);

		if (w)
			windows_take_locked(db, w);
	}
}

static void remote_follow_release(struct remote_follow_following *f)
{
	for (size_t i = 0; i < f->n && f->of; i++) {
		blocks_free(f->of[i].fresh);
		free(f->of[i].why);
		unreadable_free(&f->of[i].bad);
		if (f->of[i].ranges)
			deleted_give_up(f->of[i].deleted);
	}
	free(f->of);
	free(f->blocks);
	free(f->gone);
	free(f->replaced);
	free(f->unreadable);
}

enum err_code blocks_follow(struct db *db, const struct remote_block *r, size_t n,
	const int64_t *windows, size_t windows_n, struct err *err)
{
	struct remote_follow_following f = { .db = db, .v = r, .n = n, .next = 0 };
	enum err_code rc;
	size_t cap;

	f.of = calloc(n + 1, sizeof(*f.of));
	if (!f.of)
		return err_nomem(err, "blocks");
	if ((rc = remote_follow_prepare_all(&f, err)))
		goto out;
	mutex_lock(&db->blocks_files);
	mutex_lock(&db->lock);
	cap = n + db->blocks_n + db->unreadable_n + 1;
	f.blocks = calloc(cap, sizeof(*f.blocks));
	f.gone = calloc(cap, sizeof(*f.gone));
	f.replaced = calloc(cap, sizeof(*f.replaced));
	f.unreadable = calloc(cap, sizeof(*f.unreadable));
	if (f.blocks && f.gone && f.replaced && f.unreadable)
		remote_follow_put_in_place(&f, windows, windows_n, cap);
	else
		rc = err_nomem(err, "blocks");
	mutex_unlock(&db->lock);
	for (size_t i = 0; i < f.gone_n; i++)
		blocks_retire(db, f.gone[i], f.replaced[i]);
	mutex_unlock(&db->blocks_files);
out:
	remote_follow_release(&f);
	return rc;
}

/* ---- tried again ---- */

/* Copies the i-th block that is to be tried again; false: there is none. */
static bool remote_follow_next_again(struct db *db, size_t i, struct unreadable *out)
{
	bool found = false;
	struct err err;

	mutex_lock(&db->lock);
	for (size_t k = 0; k < db->unreadable_n && !found; k++) {
		const struct unreadable *u = &db->unreadable[k];

		if (!u->again || i--)
			continue;
		if (u->of)
			found = remote_follow_make_unreadable(u->of, &u->why, out, &err) == ERR_OK;
		else
			found = (*out = (struct unreadable){ .dir = strdup(u->dir) }).dir != NULL;
		break;
	}
	mutex_unlock(&db->lock);
	return found;
}

static struct unreadable *remote_follow_find_unreadable(struct db *db, const char *dir)
{
	mutex_assert_held(&db->lock);
	for (size_t i = 0; i < db->unreadable_n; i++)
		if (strcmp(db->unreadable[i].dir, dir) == 0)
			return &db->unreadable[i];
	return NULL;
}

static bool remote_follow_overlaps(const struct db *db, const struct block_meta *m)
{
	bool is = false;

	for (size_t i = 0; i < db->blocks_n; i++) {
		const struct block_meta *o = block_meta(db->blocks[i]->block);

		is |= o->min_ns < m->max_ns && m->min_ns < o->max_ns;
	}
	for (size_t i = 0; i < db->windows_n; i++)
		is |= db->windows[i]->start_ns < m->max_ns && m->min_ns < db->windows[i]->end_ns;
	return is;
}

/* The block opened: moves it to the list of blocks, unless it left the list of unreadable ones
 * meanwhile. */
static void remote_follow_take_back(struct db *db, const char *dir, struct db_block *b)
{
	const struct block_meta *m = block_meta(b->block);
	struct unreadable *u;

	mutex_lock(&db->blocks_files);
	mutex_lock(&db->lock);
	u = remote_follow_find_unreadable(db, dir);
	if (u && remote_follow_overlaps(db, m)) {
		err_set(&u->why, ERR_CORRUPT, "%s: its time overlaps that of others", dir);
		u->again = false;
	} else if (u && array_room(&db->blocks, db->blocks_n, 1, &db->blocks_cap)) {
		unreadable_free(u);
		*u = db->unreadable[--db->unreadable_n];
		blocks_insert_locked(db, b);
		remote_follow_raise_newest(db, m->last_ns);
		b = NULL;
	}
	mutex_unlock(&db->lock);
	mutex_unlock(&db->blocks_files);
	if (!b)
		log_info("tsdb", "block in the bucket can be read again", LOG_S("block", dir));
	blocks_free(b);
}

/* Notes why the block still cannot be opened. If the bucket answered, a stub's block is lost. */
static void remote_follow_still_unreadable(struct db *db, const char *dir, const struct err *why)
{
	bool again = range_unreachable(why->code) || why->code == ERR_NOMEM, stub = false;
	int64_t min_ns = 0, max_ns = 0;
	char where[sizeof("blocks/") + ULID_LEN];
	struct unreadable *u;

	mutex_lock(&db->lock);
	if ((u = remote_follow_find_unreadable(db, dir))) {
		u->why = *why;
		u->again = again;
		stub = !u->of;
		min_ns = u->min_ns;
		max_ns = u->max_ns ? u->max_ns : LOSS_END;
		u->remote = again || !stub; /* else the list of losses has it */
	}
	mutex_unlock(&db->lock);
	if (!stub || again)
		return;
	snprintf(where, sizeof(where), "blocks/%s", strrchr(dir, '/') + 1);
	(void)!db_lost(db, LOSS_BLOCK, where, min_ns, max_ns, 0, why);
}

void blocks_retry(struct db *db)
{
	struct unreadable u;
	struct db_block *b;
	enum err_code rc;
	struct err why;
	size_t failed = 0;

	while (remote_follow_next_again(
		db, failed, &u)) { /* each turn removes one from the list, or counts one that failed */
		b = NULL;
		if (u.of)
			rc = remote_follow_open_listed(db, u.of, &b, &why);
		else if (!(rc = blocks_open(db, u.dir, &b, &why)))
			rc = blocks_know_jobs(db, b, &why);
		if (rc) {
			blocks_free(b);
			remote_follow_still_unreadable(db, u.dir, &why);
			failed += range_unreachable(rc) || rc == ERR_NOMEM;
		} else {
			remote_follow_take_back(db, u.dir, b);
		}
		unreadable_free(&u);
	}
}

/* ---- what answers say ---- */

void blocks_tell_unreadable_locked(
	const struct db *db, int64_t min_ns, int64_t max_ns, blocks_tell_fn fn, void *ctx)
{
	struct buf text = { 0 };

	mutex_assert_held(&db->lock);
	for (size_t i = 0; i < db->unreadable_n; i++) {
		const struct unreadable *u = &db->unreadable[i];

		if (!u->remote || (u->max_ns && (u->min_ns >= max_ns || u->max_ns <= min_ns)))
			continue;
		buf_clear(&text);
		buf_add_cstr(&text, "profiles are missing");
		if (u->max_ns) {
			buf_add_cstr(&text, " between ");
			time_print_rfc3339(&text, u->min_ns);
			buf_add_cstr(&text, " and ");
			time_print_rfc3339(&text, u->max_ns);
		}
		buf_printf(&text, ": block " STR_FMT " %s: %s", STR_ARG(str_base_name(str_of(u->dir))),
			u->again ? "is in a bucket that does not answer" : "cannot be read", u->why.msg);
		buf_add_char(&text, '\0');
		fn(ctx, buf_failed(&text) ? NULL : text.ptr);
	}
	buf_release(&text);
}
