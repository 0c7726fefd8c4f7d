#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "tsdb/catalog/remote.h"
#include "tsdb/cluster/follower_internal.h"
#include "tsdb/db.h"
#include "tsdb/head/follow.h"

/*
 * A round takes the manifest over in this order: blocks together with the windows that they
 * replace, in one step, then segments of windows. What it could not take over is tried again in the
 * next round, also if the manifest stayed the same.
 *
 * What is hidden (manifest_hidden) is only told. Numbers of an earlier data directory that were
 * learned here stay: where the shard goes on in another one, all is read anew by another follower.
 */
#define SEGMENT_BYTES_MAX ((size_t)1 << 30)
#define LOSSES_BYTES_MAX (8u << 20)
#define DELETED_BYTES_MAX (64u << 20)

/* ---- objects ---- */

static void follower_round_put_off(struct follow_round *r, const struct err *why)
{
	if (!r->again)
		r->first = *why;
	if (r->first.code == ERR_EXISTS) /* numbers of a window that is still there */
		r->first.code = ERR_UNAVAILABLE;
	r->again = true;
}

static void follower_round_add_missing(
	struct follow_round *r, struct buf *text, int64_t min_ns, int64_t max_ns, bool hidden)
{
	struct err err;

	buf_add_char(text, '\0');
	if (buf_failed(text) || !array_room(&r->missing, r->missing_n, 1, &r->missing_cap)) {
		buf_release(text);
		(void)err_nomem(&err, "missing objects");
		follower_round_put_off(r, &err);
		return;
	}
	r->missing[r->missing_n++] = (struct missing){ text->ptr, min_ns, max_ns, hidden };
}

static void follower_round_note_missing(struct follow_round *r, const struct manifest_key *key,
	int64_t min_ns, int64_t max_ns, const char *why)
{
	struct buf text = { 0 };

	buf_printf(&text, "shard %s: %s, which its manifest names, %s", r->f->name, key->text, why);
	follower_round_add_missing(r, &text, min_ns, max_ns, false);
	log_error("cluster", "object is missing or damaged", LOG_S("shard", r->f->name),
		LOG_S("key", key->text), LOG_S("why", why));
}

/* ERR_NOT_FOUND, ERR_CORRUPT: the object is not what the manifest says. */
static enum err_code follower_round_get(struct follower *f, const struct manifest_key *key,
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
static bool follower_round_is_gone(struct follow_round *r, const struct manifest_key *key,
	int64_t min_ns, int64_t max_ns, enum err_code rc)
{
	if (rc != ERR_NOT_FOUND && rc != ERR_CORRUPT)
		return false;
	follower_round_note_missing(
		r, key, min_ns, max_ns, rc == ERR_NOT_FOUND ? "is missing" : "is damaged");
	return true;
}

/* ---- windows ---- */

/* Of a window of this start, which is to be seen. */
static bool follower_round_is_seen(const struct follow_round *r, int64_t start_ns)
{
	for (uint32_t i = 0; i < r->m.windows_n; i++)
		if (r->m.windows[i].start_ns == start_ns && !r->windows_hidden[i])
			return true;
	return false;
}

/* Empty where there are none, or those that are known. False: they cannot be had now. */
static bool follower_round_get_deleted(
	struct follow_round *r, const struct manifest_window *w, bool fresh, struct buf *out)
{
	const struct manifest_window *was = manifest_find_window(&r->f->m, w->start_ns, w->identity);
	struct manifest_key key;
	enum err_code rc;
	struct err err;

	if (!w->deleted.bytes || (!fresh && was && was->deleted.hash == w->deleted.hash))
		return true;
	key = manifest_key_window_deleted(str_of(r->f->name), w);
	rc = follower_round_get(r->f, &key, &w->deleted, DELETED_BYTES_MAX, out, &err);
	if (!rc)
		return true;
	/* Rows that were deleted must not be seen: the window waits. */
	if (!follower_round_is_gone(r, &key, w->start_ns, w->end_ns, rc))
		follower_round_put_off(r, &err);
	return false;
}

static enum err_code follower_round_follow_segment(struct follow_round *r,
	const struct manifest_window *w, const struct manifest_segment *s, struct str deleted,
	struct err *err)
{
	struct manifest_key key = manifest_key_segment(str_of(r->f->name), w, s);
	const struct segment of = { w->start_ns, w->end_ns, w->identity, s->first, s->last, true };
	struct buf bytes = { 0 };
	enum err_code rc = follower_round_get(r->f, &key, &s->object, SEGMENT_BYTES_MAX, &bytes, err);

	if (!rc)
		rc = head_follow(r->f->db, &of, buf_str(&bytes), deleted, err);
	buf_release(&bytes);
	if (follower_round_is_gone(r, &key, w->start_ns, w->end_ns, rc))
		rc = ERR_NOT_FOUND;
	return rc;
}

/* The rest of a window whose segment is missing has nothing to build upon. */
static void follower_round_follow_window(struct follow_round *r, struct manifest_window *w)
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
	if (!follower_round_get_deleted(r, w, fresh, &deleted)) {
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
		rc = follower_round_follow_segment(r, w, s, fresh ? buf_str(&deleted) : STR(""), &err);
		fresh = false;
	}
	if (rc && rc != ERR_NOT_FOUND)
		follower_round_put_off(r, &err);
out:
	buf_release(&deleted);
}

/* ---- blocks ---- */

static struct block_file follower_round_file_of(const struct manifest_file *f)
{
	return (struct block_file){ f->bytes, f->hash };
}

static enum err_code follower_round_list_blocks(
	struct follow_round *r, struct remote_block **out, size_t *n, struct err *err)
{
	struct remote_block *v = arena_array(&r->arena, struct remote_block, r->m.blocks_n + 1);

	*n = 0;
	for (uint32_t i = 0; i < r->m.blocks_n && v; i++) {
		const struct manifest_block *b = &r->m.blocks[i];

		if (r->blocks_hidden[i])
			continue;
		v[(*n)++] = (struct remote_block){
			.key = arena_printf(&r->arena, "shards/%s/blocks/%s", r->f->name, b->ulid.text),
			.ulid = b->ulid,
			.min_ns = b->min_ns,
			.max_ns = b->max_ns,
			.rows = b->raw ? follower_round_file_of(&b->rows) : (struct block_file){ 0 },
			.rollups = follower_round_file_of(&b->rollups),
			.spare = follower_round_file_of(&b->spare),
			.meta = follower_round_file_of(&b->meta),
			.meta_changed = b->meta_changed,
			.deleted = follower_round_file_of(&b->deleted),
		};
		if (!v[*n - 1].key)
			v = NULL;
	}
	*out = v;
	return v ? ERR_OK : arena_fail(&r->arena, "blocks", err);
}

/* Windows that are here and not in the manifest: blocks have their rows, or they went. */
static enum err_code follower_round_list_dropped(
	struct follow_round *r, int64_t **out, size_t *n, struct err *err)
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
		if (!v[i].ulid[0] && !follower_round_is_seen(r, v[i].min_ns))
			(*out)[(*n)++] = v[i].min_ns;
	return ERR_OK;
}

static enum err_code follower_round_follow_blocks(struct follow_round *r, struct err *err)
{
	struct remote_block *blocks;
	int64_t *dropped;
	enum err_code rc;
	size_t n, blocks_n;

	if ((rc = follower_round_list_blocks(r, &blocks, &blocks_n, err)) ||
		(rc = follower_round_list_dropped(r, &dropped, &n, err)))
		return rc;
	return blocks_follow(r->f->db, blocks, blocks_n, dropped, n, err);
}

/* ---- what is hidden ---- */

/* Spans that touch become one; they come ascending by their begin. */
static void follower_round_note_hidden(
	struct follow_round *r, int64_t min_ns, int64_t max_ns, struct missing *span)
{
	struct buf text = { 0 };

	if (span->max_ns && min_ns <= span->max_ns) {
		span->max_ns = span->max_ns > max_ns ? span->max_ns : max_ns;
		return;
	}
	if (span->max_ns) {
		buf_printf(&text, "shard %s: profiles between ", r->f->name);
		time_print_rfc3339(&text, span->min_ns);
		buf_add_cstr(&text, " and ");
		time_print_rfc3339(&text, span->max_ns);
		buf_add_cstr(&text, " of an earlier data directory are in the bucket and not shown");
		follower_round_add_missing(r, &text, span->min_ns, span->max_ns, true);
	}
	*span = (struct missing){ .min_ns = min_ns, .max_ns = max_ns };
}

static enum err_code follower_round_hide(struct follow_round *r, struct err *err)
{
	struct missing span = { 0 };

	r->windows_hidden = arena_array(&r->arena, bool, r->m.windows_n + 1);
	r->blocks_hidden = arena_array(&r->arena, bool, r->m.blocks_n + 1);
	if (!r->windows_hidden || !r->blocks_hidden)
		return arena_fail(&r->arena, "manifest", err);
	manifest_hidden(&r->m, r->windows_hidden, r->blocks_hidden);
	for (uint32_t i = 0; i < r->m.blocks_n; i++)
		if (r->blocks_hidden[i])
			follower_round_note_hidden(r, r->m.blocks[i].min_ns, r->m.blocks[i].max_ns, &span);
	follower_round_note_hidden(r, INT64_MAX, INT64_MAX, &span);
	span = (struct missing){ 0 };
	for (uint32_t i = 0; i < r->m.windows_n; i++)
		if (r->windows_hidden[i])
			follower_round_note_hidden(r, r->m.windows[i].start_ns, r->m.windows[i].end_ns, &span);
	follower_round_note_hidden(r, INT64_MAX, INT64_MAX, &span);
	return ERR_OK;
}

/* It has learned numbers that mean something else now. */
static bool follower_round_is_another_life(const struct follow_round *r)
{
	const struct manifest *was = &r->f->m;

	return (was->windows_n || was->blocks_n) && was->lives != r->m.lives;
}

/* ---- losses of the shard itself ---- */

static void follower_round_take_losses(struct follow_round *r)
{
	struct follower *f = r->f;
	uint64_t generation, next;
	struct manifest_key key;
	struct buf bytes = { 0 };
	struct arena a;
	struct loss *v = NULL;
	struct str text;
	enum err_code rc = ERR_OK;
	struct err err;
	size_t n = 0;

	if (r->m.losses.hash == f->losses_hash)
		return;
	arena_init(&a, 0);
	key = manifest_key_small(str_of(f->name), "losses", &r->m.losses);
	if (r->m.losses.bytes &&
		!(rc = follower_round_get(f, &key, &r->m.losses, LOSSES_BYTES_MAX, &bytes, &err)))
		rc = (text = str_dup(&a, buf_str(&bytes))).ptr ? /* entries point into it */
			losses_decode(text, key.text, &a, &generation, &next, &v, &n, &err) :
			arena_fail(&a, "losses", &err);
	buf_release(&bytes);
	if (rc) {
		if (!follower_round_is_gone(r, &key, 0, INT64_MAX, rc))
			follower_round_put_off(r, &err);
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

/* ---- the whole ---- */

static enum err_code follower_round_take_over(struct follow_round *r, struct err *err)
{
	enum err_code rc;

	if ((rc = follower_round_follow_blocks(r, err)))
		follower_round_put_off(r, err);
	for (uint32_t i = 0; i < r->m.windows_n; i++)
		if (!r->windows_hidden[i])
			follower_round_follow_window(r, &r->m.windows[i]);
	follower_round_take_losses(r);
	head_follow_sweep(r->f->db);
	if (!r->again)
		return ERR_OK;
	return err_copy(err, &r->first);
}

enum err_code follow_manifest(struct follow_round *r, struct err *err)
{
	enum err_code rc;

	if (follower_round_is_another_life(r))
		return err_set(err, ERR_EXISTS, "shard %s goes on in another data directory", r->f->name);
	if ((rc = follower_round_hide(r, err))) {
		follower_round_put_off(r, err);
		return rc;
	}
	return follower_round_take_over(r, err);
}

void follow_missing_free(struct missing *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(m[i].text);
	free(m);
}
