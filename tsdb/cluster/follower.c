#include "tsdb/cluster/follower.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/thread.h"
#include "tsdb/catalog/losses.h"
#include "tsdb/catalog/remote.h"
#include "tsdb/db.h"
#include "tsdb/head/follow.h"

/*
 * A round takes the manifest over in this order: blocks together with the windows that they
 * replace, in one step, then segments of windows. What it could not take over is tried again in the
 * next round, also if the manifest stayed the same.
 */
#define SEGMENT_BYTES_MAX ((size_t)1 << 30)
#define LOSSES_BYTES_MAX (8u << 20)
#define DELETED_BYTES_MAX (64u << 20)

/* An object that the manifest names and that is not there, or is another one. */
struct missing {
	char *text;
	int64_t min_ns, max_ns;
};

struct follower {
	struct follower_options o;
	char *name, *dir;
	struct db *db;
	struct manifest_key key;

	/* The thread's of a round. */
	struct arena arena; /* of the manifest */
	struct manifest m; /* that was taken over last, whole or not */
	char etag[BUCKET_ETAG_BYTES_MAX]; /* "": none was read */
	bool whole; /* all of it was taken over */
	uint64_t losses_hash;

	struct mutex lock; /* guards the rest */
	struct follower_status is;
	bool in_part; /* its manifest was not taken over whole */
	int64_t changed_ns, looked_ns; /* monotonic: the manifest changed; it could be looked at */
	struct missing *missing;
	size_t missing_n;
	struct arena losses_arena;
	struct loss *losses;
	size_t losses_n;
};

/* ---- objects ---- */

/* A round under way: what it finds missing takes the place of what the one before found. */
struct round {
	struct follower *f;
	struct manifest m;
	struct arena arena;
	struct missing *missing;
	size_t missing_n, missing_cap;
	bool again; /* something was not taken over */
	struct err first; /* why */
};

static void put_off(struct round *r, const struct err *why)
{
	if (!r->again)
		r->first = *why;
	r->again = true;
}

static void note_missing(struct round *r, const struct manifest_key *key, int64_t min_ns,
	int64_t max_ns, const char *why)
{
	struct buf text = { 0 };

	buf_printf(&text, "shard %s: %s, which its manifest names, %s", r->f->name, key->text, why);
	buf_add_char(&text, '\0');
	if (buf_failed(&text) || !array_room(&r->missing, r->missing_n, 1, &r->missing_cap)) {
		struct err err;

		buf_release(&text);
		(void)err_nomem(&err, "missing objects");
		put_off(r, &err);
		return;
	}
	log_error("cluster", "object is missing or damaged", LOG_S("shard", r->f->name),
		LOG_S("key", key->text), LOG_S("why", why));
	r->missing[r->missing_n++] = (struct missing){ text.ptr, min_ns, max_ns };
}

/* ERR_NOT_FOUND, ERR_CORRUPT: the object is not what the manifest says. */
static enum err_code get(struct follower *f, const struct manifest_key *key,
	const struct manifest_file *want, size_t max, struct buf *out, struct err *err)
{
	struct str k = manifest_key_str(key);
	enum err_code rc;

	if (want->bytes > max)
		return err_set(err, ERR_CORRUPT, "%s has %" PRIu64 " bytes", key->text, want->bytes);
	if ((rc = bucket_get(f->o.bucket, k, 0, BUCKET_TO_END, out, NULL, err)))
		return rc;
	if (out->len != want->bytes || hash_bytes(out->ptr, out->len, 0) != want->hash)
		return err_set(err, ERR_CORRUPT, "%s has other bytes", key->text);
	return ERR_OK;
}

/* True: it was told, and is no error of the round. */
static bool is_gone(struct round *r, const struct manifest_key *key, int64_t min_ns, int64_t max_ns,
	enum err_code rc)
{
	if (rc != ERR_NOT_FOUND && rc != ERR_CORRUPT)
		return false;
	note_missing(r, key, min_ns, max_ns, rc == ERR_NOT_FOUND ? "is missing" : "is damaged");
	return true;
}

/* ---- windows ---- */

static const struct manifest_window *find_window(
	const struct manifest *m, int64_t start_ns, uint64_t identity)
{
	for (uint32_t i = 0; i < m->windows_n; i++)
		if (m->windows[i].start_ns == start_ns && (!identity || m->windows[i].identity == identity))
			return &m->windows[i];
	return NULL;
}

/* Empty where there are none, or those that are known. False: they cannot be had now. */
static bool get_deleted(
	struct round *r, const struct manifest_window *w, bool fresh, struct buf *out)
{
	const struct manifest_window *was = find_window(&r->f->m, w->start_ns, w->identity);
	struct manifest_key key;
	enum err_code rc;
	struct err err;

	if (!w->deleted.bytes || (!fresh && was && was->deleted.hash == w->deleted.hash))
		return true;
	key = manifest_key_window_deleted(str_of(r->f->name), w);
	rc = get(r->f, &key, &w->deleted, DELETED_BYTES_MAX, out, &err);
	if (!rc)
		return true;
	/* Rows that were deleted must not be seen: the window waits. */
	if (!is_gone(r, &key, w->start_ns, w->end_ns, rc))
		put_off(r, &err);
	return false;
}

static enum err_code follow_segment(struct round *r, const struct manifest_window *w,
	const struct manifest_segment *s, struct str deleted, struct err *err)
{
	struct manifest_key key = manifest_key_segment(str_of(r->f->name), w, s);
	const struct segment of = { w->start_ns, w->end_ns, w->identity, s->first, s->last, true };
	struct buf bytes = { 0 };
	enum err_code rc = get(r->f, &key, &s->object, SEGMENT_BYTES_MAX, &bytes, err);

	if (!rc)
		rc = head_follow(r->f->db, &of, buf_str(&bytes), deleted, err);
	buf_release(&bytes);
	if (is_gone(r, &key, w->start_ns, w->end_ns, rc))
		rc = ERR_NOT_FOUND;
	return rc;
}

/* The rest of a window whose segment is missing has nothing to build upon. */
static void follow_window(struct round *r, struct manifest_window *w)
{
	uint64_t at = head_followed(r->f->db, w->start_ns, w->identity);
	struct buf deleted = { 0 };
	enum err_code rc = ERR_OK;
	bool fresh;
	struct err err;

	/* The bucket has an older window than it had: its shard's disk was lost. */
	if (w->segments_n && at > w->segments[w->segments_n - 1].last) {
		head_follow_drop(r->f->db, w->start_ns, w->identity);
		at = 0;
	}
	fresh = at == 0;
	if (!get_deleted(r, w, fresh, &deleted)) {
		w->deleted.hash = 0; /* the next round asks again */
		goto out;
	}
	if (!fresh && deleted.len &&
		(rc = head_follow_deleted(r->f->db, w->start_ns, w->identity, buf_str(&deleted), &err)))
		w->deleted.hash = 0;
	for (uint32_t i = 0; i < w->segments_n && !rc; i++) {
		const struct manifest_segment *s = &w->segments[i];

		if (s->last <= at)
			continue;
		rc = follow_segment(r, w, s, fresh ? buf_str(&deleted) : STR(""), &err);
		fresh = false;
	}
	if (rc && rc != ERR_NOT_FOUND)
		put_off(r, &err);
out:
	buf_release(&deleted);
}

/* ---- blocks ---- */

static struct block_file file_of(const struct manifest_file *f)
{
	return (struct block_file){ f->bytes, f->hash };
}

static enum err_code list_blocks(struct round *r, struct remote_block **out, struct err *err)
{
	struct remote_block *v = arena_array(&r->arena, struct remote_block, r->m.blocks_n + 1);

	for (uint32_t i = 0; i < r->m.blocks_n && v; i++) {
		const struct manifest_block *b = &r->m.blocks[i];

		v[i] = (struct remote_block){
			.key = arena_printf(&r->arena, "shards/%s/blocks/%s", r->f->name, b->ulid.text),
			.ulid = b->ulid,
			.min_ns = b->min_ns,
			.max_ns = b->max_ns,
			.rows = b->raw ? file_of(&b->rows) : (struct block_file){ 0 },
			.rollups = file_of(&b->rollups),
			.spare = file_of(&b->spare),
			.meta = file_of(&b->meta),
			.meta_changed = b->meta_changed,
			.deleted = file_of(&b->deleted),
		};
		if (!v[i].key)
			v = NULL;
	}
	*out = v;
	return v ? ERR_OK : arena_fail(&r->arena, "blocks", err);
}

/* Windows that are here and not in the manifest: blocks have their rows, or they went. */
static enum err_code list_dropped(struct round *r, int64_t **out, size_t *n, struct err *err)
{
	struct db_block_status *v;
	enum err_code rc;
	size_t all;

	*n = 0;
	if ((rc = db_list(r->f->db, &r->arena, &v, &all, err)))
		return rc;
	if (!(*out = arena_array(&r->arena, int64_t, all + 1)))
		return arena_fail(&r->arena, "windows", err);
	for (size_t i = 0; i < all; i++)
		if (!v[i].ulid[0] && !find_window(&r->m, v[i].min_ns, 0))
			(*out)[(*n)++] = v[i].min_ns;
	return ERR_OK;
}

static enum err_code follow_blocks(struct round *r, struct err *err)
{
	struct remote_block *blocks;
	int64_t *dropped;
	enum err_code rc;
	size_t n;

	if ((rc = list_blocks(r, &blocks, err)) || (rc = list_dropped(r, &dropped, &n, err)))
		return rc;
	return blocks_follow(r->f->db, blocks, r->m.blocks_n, dropped, n, err);
}

/* ---- losses of the shard itself ---- */

static void take_losses(struct round *r)
{
	struct follower *f = r->f;
	uint64_t generation, next;
	struct manifest_key key;
	struct buf bytes = { 0 };
	struct arena a;
	struct loss *v = NULL;
	enum err_code rc = ERR_OK;
	struct err err;
	size_t n = 0;

	if (r->m.losses.hash == f->losses_hash)
		return;
	arena_init(&a, 0);
	key = manifest_key_small(str_of(f->name), "losses", &r->m.losses);
	if (r->m.losses.bytes && !(rc = get(f, &key, &r->m.losses, LOSSES_BYTES_MAX, &bytes, &err)))
		rc = losses_decode(buf_str(&bytes), key.text, &a, &generation, &next, &v, &n, &err);
	buf_release(&bytes);
	if (rc) {
		if (!is_gone(r, &key, 0, INT64_MAX, rc))
			put_off(r, &err);
		arena_release(&a);
		return;
	}
	mutex_lock(&f->lock);
	arena_release(&f->losses_arena);
	f->losses_arena = a;
	f->losses = v;
	f->losses_n = n;
	mutex_unlock(&f->lock);
	f->losses_hash = r->m.losses.hash;
}

/* ---- rounds ---- */

static void missing_free(struct missing *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].text);
	free(v);
}

static void count(struct follower *f, const struct manifest *m)
{
	struct follower_status *is = &f->is;

	is->generation = m->generation;
	if (!f->in_part || m->through_ns < is->through_ns)
		is->through_ns = m->through_ns;
	is->written_ns = m->written_ns;
	is->interval_ns = m->interval_ns;
	is->stopped = m->stopped;
	is->windows = m->windows_n;
	is->blocks = m->blocks_n;
	is->bytes = manifest_bytes(m);
	is->segments = 0;
	for (uint32_t i = 0; i < m->windows_n; i++)
		is->segments += m->windows[i].segments_n;
	snprintf(is->host, sizeof(is->host), STR_FMT, STR_ARG(m->host));
}

/* r's manifest and findings become the follower's. */
static void keep(struct round *r)
{
	struct follower *f = r->f;

	mutex_lock(&f->lock);
	missing_free(f->missing, f->missing_n);
	f->missing = r->missing;
	f->missing_n = r->missing_n;
	if ((f->in_part = r->again))
		f->is.failed = r->first;
	count(f, &r->m);
	mutex_unlock(&f->lock);
	arena_release(&f->arena);
	f->arena = r->arena;
	f->m = r->m;
	f->whole = !r->again;
}

static enum err_code take_over(struct round *r, struct err *err)
{
	enum err_code rc;

	if ((rc = follow_blocks(r, err)))
		put_off(r, err);
	for (uint32_t i = 0; i < r->m.windows_n; i++)
		follow_window(r, &r->m.windows[i]);
	take_losses(r);
	head_follow_sweep(r->f->db);
	if (!r->again)
		return ERR_OK;
	return err_copy(err, &r->first);
}

static enum err_code take_manifest(struct follower *f, struct err *err)
{
	struct round r = { .f = f };
	char etag[BUCKET_ETAG_BYTES_MAX];
	enum err_code rc;

	arena_init(&r.arena, 0);
	if ((rc = manifest_get(f->o.bucket, manifest_key_str(&f->key), &r.arena, &r.m, etag, err))) {
		arena_release(&r.arena);
		return rc;
	}
	mutex_lock(&f->lock);
	if (strcmp(f->etag, etag) != 0) {
		f->changed_ns = clock_monotonic_ns();
		f->is.changed_ns = clock_now_ns();
	}
	f->looked_ns = clock_monotonic_ns();
	mutex_unlock(&f->lock);
	rc = take_over(&r, err);
	memcpy(f->etag, etag, sizeof(etag));
	keep(&r);
	return rc;
}

static enum err_code look(struct follower *f, struct err *err)
{
	struct bucket_info info;
	enum err_code rc;

	if ((rc = bucket_head(f->o.bucket, manifest_key_str(&f->key), &info, err)))
		return rc;
	if (f->whole && f->etag[0] && strcmp(info.etag, f->etag) == 0) {
		mutex_lock(&f->lock);
		f->looked_ns = clock_monotonic_ns();
		mutex_unlock(&f->lock);
		return ERR_OK;
	}
	return take_manifest(f, err);
}

enum err_code follower_round(struct follower *f, struct err *err)
{
	enum err_code rc;
	struct db_status s;
	bool was;

	mutex_lock(&f->lock);
	was = f->is.failed.code != ERR_OK;
	mutex_unlock(&f->lock);
	rc = look(f, err);
	blocks_retry(f->db);
	db_status(f->db, &s);
	mutex_lock(&f->lock);
	f->is.failed = rc ? *err : (struct err){ 0 };
	f->is.missing = f->missing_n + s.unreachable;
	mutex_unlock(&f->lock);
	if (rc && !was)
		log_warn("cluster", "shard cannot be followed now", LOG_S("shard", f->name), LOG_E(err));
	else if (!rc && was)
		log_info("cluster", "shard is followed again", LOG_S("shard", f->name));
	return rc;
}

/* ---- what is told ---- */

/* An interval passes between two manifests; a third one has not come. */
static bool is_late(const struct follower *f)
{
	int64_t now = clock_monotonic_ns(), most = 2 * f->is.interval_ns;

	mutex_assert_held(&f->lock);
	if (!f->is.generation || f->in_part)
		return true;
	if (now - f->looked_ns > most + NS_PER_S)
		return true;
	if (f->is.stopped)
		return false;
	return now - f->changed_ns > most + NS_PER_S || f->is.written_ns - f->is.through_ns > most;
}

static void tell_late(struct follower *f, struct buf *text)
{
	buf_clear(text);
	if (!f->is.generation) {
		buf_printf(text, "shard %s is missing: ", f->name);
		buf_add_str(text, f->is.failed.code ? str_of(f->is.failed.msg) : STR("not read yet"));
	} else if (f->in_part) {
		buf_printf(text, "shard %s was not read whole, profiles may be missing: %s", f->name,
			f->is.failed.msg);
	} else {
		buf_printf(text, "shard %s is late: its profiles after ", f->name);
		time_print_rfc3339(text, f->is.through_ns);
		buf_add_str(text, STR(" may be missing"));
		if (f->is.failed.code)
			buf_printf(text, ": %s", f->is.failed.msg);
	}
	buf_add_char(text, '\0');
}

void follower_tell(void *ctx, int64_t min_ns, int64_t max_ns, db_warn_fn warn, void *to)
{
	struct follower *f = ctx;
	struct buf text = { 0 };

	mutex_lock(&f->lock);
	if (is_late(f) && (f->in_part || max_ns > f->is.through_ns)) {
		tell_late(f, &text);
		warn(to, buf_failed(&text) ? "a shard is late" : text.ptr);
	}
	for (size_t i = 0; i < f->missing_n; i++)
		if (f->missing[i].min_ns < max_ns && f->missing[i].max_ns > min_ns)
			warn(to, f->missing[i].text);
	for (size_t i = 0; i < f->losses_n; i++) {
		const struct loss *l = &f->losses[i];

		if (l->accepted || l->min_ns >= max_ns || l->max_ns <= min_ns)
			continue;
		buf_clear(&text);
		buf_printf(&text, "shard %s: ", f->name);
		loss_print(l, &text);
		buf_add_char(&text, '\0');
		warn(to, buf_failed(&text) ? "a shard has losses" : text.ptr);
	}
	mutex_unlock(&f->lock);
	buf_release(&text);
}

void follower_status(struct follower *f, struct follower_status *out)
{
	mutex_lock(&f->lock);
	*out = f->is;
	out->late = is_late(f);
	mutex_unlock(&f->lock);
}

/* ---- open, close ---- */

enum err_code follower_open(
	const struct follower_options *o, struct follower **out, struct err *err)
{
	struct follower *f = calloc(1, sizeof(*f));
	enum err_code rc;

	if (!f)
		return err_nomem(err, "shard");
	mutex_init(&f->lock);
	arena_init(&f->arena, 0);
	arena_init(&f->losses_arena, 0);
	f->o = *o;
	f->looked_ns = f->changed_ns = clock_monotonic_ns();
	f->name = strdup(o->shard);
	f->dir = strdup(o->dir);
	if (!f->name || !f->dir) {
		rc = err_nomem(err, "shard");
		goto fail;
	}
	f->key = manifest_key_of(str_of(f->name));
	f->o.db.dir = f->dir;
	f->o.db.follower = true;
	f->o.db.remote = o->remote;
	if ((rc = db_open(&f->o.db, &f->db, err)))
		goto fail;
	*out = f;
	return ERR_OK;
fail:
	follower_close(f);
	return rc;
}

void follower_close(struct follower *f)
{
	if (!f)
		return;
	db_close(f->db);
	missing_free(f->missing, f->missing_n);
	arena_release(&f->arena);
	arena_release(&f->losses_arena);
	mutex_destroy(&f->lock);
	free(f->name);
	free(f->dir);
	free(f);
}

struct db *follower_db(struct follower *f)
{
	return f->db;
}
