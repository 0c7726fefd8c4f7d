#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/map.h"
#include "tsdb/catalog/remote.h"
#include "tsdb/cluster/cluster_internal.h"
#include "tsdb/db.h"
#include "tsdb/head/follow.h"

/*
 * A look takes the manifest over in this order: blocks together with the windows that they
 * replace, in one step, then a few segments of windows that lack no more. What it could not take
 * over is tried again by the next look, also if the manifest stayed the same.
 *
 * A window that lacks more segments becomes unread: they are read afterwards, which may take hours.
 * Blocks, and new segments of other windows, do not wait for it. Answers name its time until it has
 * all that the manifest names by then. An unread window is known by its start: the manifest may
 * change, and the window's identity with it.
 *
 * Hidden entries (manifest_hidden) are not read; answers warn of them.
 */
/*
 * Limits of what a look reads of a window: more would hold up other shards. A shard with 10,000
 * large targets puts 134 MB with each segment, which take 4 s.
 */
#define LOOK_SEGMENTS_MAX 8u
#define LOOK_BYTES_MAX (UINT64_C(1) << 30)
#define LOSSES_BYTES_MAX (8u << 20)
#define DELETED_BYTES_MAX (64u << 20)

/* ---- objects ---- */

static void follower_round_put_off(struct follow_round *r, const struct err *why)
{
	if (!r->again)
		r->first = *why;
	if (r->first.code == ERR_EXISTS) /* a series has another id in a window that is still here */
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

enum err_code follow_check(const struct manifest_key *key, const struct manifest_file *want,
	const struct buf *is, struct err *err)
{
	if (is->len != want->bytes || hash_bytes(is->ptr, is->len, 0) != want->hash)
		return err_set(err, ERR_CORRUPT, "%s has other bytes", key->text);
	return ERR_OK;
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
	return follow_check(key, want, out, err);
}

bool follow_is_gone(struct follow_round *r, const struct manifest_key *key, int64_t min_ns,
	int64_t max_ns, enum err_code rc)
{
	if (rc != ERR_NOT_FOUND && rc != ERR_CORRUPT)
		return false;
	follower_round_note_missing(
		r, key, min_ns, max_ns, rc == ERR_NOT_FOUND ? "is missing" : "is damaged");
	return true;
}

/* ---- windows ---- */

/* The manifest has a window of this start that is not hidden. */
static bool follower_round_is_seen(const struct follow_round *r, int64_t start_ns)
{
	for (uint32_t i = 0; i < r->m.windows_n; i++)
		if (r->m.windows[i].start_ns == start_ns && !r->windows_hidden[i])
			return true;
	return false;
}

bool follow_get_deleted(
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
	if (!follow_is_gone(r, &key, w->start_ns, w->end_ns, rc))
		follower_round_put_off(r, &err);
	return false;
}

/* The window has batches that the bucket lacks: the shard's disk lost them, and a snapshot without
 * them replaced the segments. */
static bool follower_round_is_ahead(const struct manifest_window *w, uint64_t at)
{
	return w->segments_n && at > w->segments[w->segments_n - 1].last;
}

uint64_t follow_batches(struct follower *f, const struct manifest_window *w)
{
	uint64_t at = head_followed(f->db, w->start_ns, w->identity);

	return follower_round_is_ahead(w, at) ? 0 : at;
}

uint32_t follow_next_segment(const struct manifest_window *w, uint64_t at)
{
	uint32_t i = w->segments_n;

	while (i && w->segments[i - 1].last > at)
		i--;
	return i;
}

enum err_code follow_put_segment(struct follow_round *r, const struct manifest_window *w,
	const struct manifest_segment *s, const struct buf *bytes, struct str deleted, struct err *err)
{
	const struct segment of = { w->start_ns, w->end_ns, w->identity, s->first, s->last, true };
	struct follower *f = r->f;

	if (follower_round_is_ahead(w, head_followed(f->db, w->start_ns, w->identity)))
		head_follow_drop(f->db, w->start_ns, w->identity);
	return head_follow(f->db, &of, buf_str(bytes), deleted, err);
}

bool follow_is_too_large(
	struct follow_round *r, const struct manifest_window *w, const struct manifest_segment *s)
{
	struct manifest_key key = manifest_key_segment(str_of(r->f->name), w, s);

	if (s->object.bytes <= FOLLOW_SEGMENT_BYTES_MAX)
		return false;
	follower_round_note_missing(r, &key, w->start_ns, w->end_ns,
		"has more than 1 GiB, which query nodes do not read: its window waits for its block");
	return true;
}

static enum err_code follower_round_follow_segment(struct follow_round *r,
	const struct manifest_window *w, const struct manifest_segment *s, struct str deleted,
	struct err *err)
{
	struct manifest_key key = manifest_key_segment(str_of(r->f->name), w, s);
	struct buf bytes = { 0 };
	enum err_code rc;

	if (follow_is_too_large(r, w, s))
		return ERR_NOT_FOUND;
	if (!(rc = follower_round_get(r->f, &key, &s->object, FOLLOW_SEGMENT_BYTES_MAX, &bytes, err)))
		rc = follow_put_segment(r, w, s, &bytes, deleted, err);
	buf_release(&bytes);
	if (follow_is_gone(r, &key, w->start_ns, w->end_ns, rc))
		rc = ERR_NOT_FOUND;
	return rc;
}

/* ---- unread windows ---- */

struct unread_window *follow_find_unread(const struct follower *f, int64_t start_ns)
{
	for (size_t i = 0; i < f->unread_n; i++)
		if (f->unread[i].start_ns == start_ns)
			return &f->unread[i];
	return NULL;
}

static void follower_round_add_unread(struct follow_round *r, const struct manifest_window *w)
{
	r->unread[r->unread_n++] = (struct unread_window){
		.start_ns = w->start_ns, .end_ns = w->end_ns, .window = (uint32_t)(w - r->m.windows)
	};
}

/* The last look could not put all segments of the window, and said why: this look tries again. */
static bool follower_round_is_stuck(const struct follow_round *r, const struct manifest_window *w)
{
	const struct manifest_window *was = manifest_find_window(&r->f->m, w->start_ns, w->identity);

	return was && was->segments_n &&
		head_followed(r->f->db, w->start_ns, w->identity) < was->segments[was->segments_n - 1].last;
}

/* The window replaces one that is queried now: its rows vanish with the first new segment, and all
 * are back only with the last one. */
static bool follower_round_is_replaced(
	const struct follow_round *r, const struct manifest_window *w, uint64_t at)
{
	const struct manifest *was = &r->f->m;

	for (uint32_t i = 0; i < was->windows_n && !at; i++)
		if (was->windows[i].start_ns == w->start_ns)
			return w->segments_n > 1;
	return false;
}

static bool follower_round_is_unread(
	const struct follow_round *r, const struct manifest_window *w, uint64_t at)
{
	uint32_t next = follow_next_segment(w, at);
	uint64_t bytes = 0;

	if (next == w->segments_n)
		return false;
	if (follow_find_unread(r->f, w->start_ns))
		return true;
	if (follower_round_is_stuck(r, w))
		return false;
	for (uint32_t i = next; i < w->segments_n; i++)
		bytes += w->segments[i].object.bytes;
	return !r->f->etag[0] /* the first look */ || w->segments_n - next > LOOK_SEGMENTS_MAX ||
		bytes > LOOK_BYTES_MAX || follower_round_is_replaced(r, w, at);
}

/* If a segment is missing, later ones of its window cannot be put. */
static void follower_round_look_at_window(struct follow_round *r, struct manifest_window *w)
{
	uint64_t at = follow_batches(r->f, w);
	bool unread = follower_round_is_unread(r, w, at), fresh = at == 0;
	uint32_t next = follow_next_segment(w, at), until = next + LOOK_SEGMENTS_MAX;
	struct buf deleted = { 0 };
	enum err_code rc = ERR_OK;
	struct err err;

	if (unread && fresh) {
		follower_round_add_unread(r, w); /* ranges come with its first segment */
		return;
	}
	if (!follow_get_deleted(r, w, fresh, &deleted)) {
		w->deleted.hash = 0; /* the next look asks again */
		goto out;
	}
	if (!fresh && deleted.len &&
		(rc = head_follow_deleted(r->f->db, w->start_ns, w->identity, buf_str(&deleted), &err)))
		w->deleted.hash = 0;
	for (; next < w->segments_n && next < until && !unread && !rc; next++) {
		rc = follower_round_follow_segment(
			r, w, &w->segments[next], fresh ? buf_str(&deleted) : STR(""), &err);
		fresh = false;
	}
	if (!rc && next < w->segments_n)
		follower_round_add_unread(r, w);
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

/* Windows that are here and not in the manifest: blocks have their rows, or they were dropped. */
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

/* Joins spans that touch; the calls are ascending by min_ns. */
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
		buf_add_cstr(&text,
			" that the shard lost or that another data directory had are in the "
			"bucket and not shown");
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

/*
 * Ids that this follower has learned mean something else now. The shard lost a window on its
 * disk, and gave the ids again in another window of that time. Or an older program went on in
 * another directory (`lives`).
 */
static bool follower_round_has_learned_wrong(const struct follow_round *r)
{
	const struct manifest *was = &r->f->m, *is = &r->m;

	for (uint32_t i = 0; i < is->windows_n; i++)
		if (r->windows_hidden[i] &&
			head_followed(r->f->db, is->windows[i].start_ns, is->windows[i].identity))
			return true;
	return (was->windows_n || was->blocks_n) && was->lives != is->lives;
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
		if (!follow_is_gone(r, &key, 0, INT64_MAX, rc))
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

	if (!(r->unread = arena_array(&r->arena, struct unread_window, r->m.windows_n + 1))) {
		rc = arena_fail(&r->arena, "windows", err);
		follower_round_put_off(r, err);
		return rc;
	}
	if ((rc = follower_round_follow_blocks(r, err)))
		follower_round_put_off(r, err);
	for (uint32_t i = 0; i < r->m.windows_n; i++)
		if (!r->windows_hidden[i])
			follower_round_look_at_window(r, &r->m.windows[i]);
	follower_round_take_losses(r);
	head_follow_sweep(r->f->db);
	if (!r->again)
		return ERR_OK;
	return err_copy(err, &r->first);
}

enum err_code follow_manifest(struct follow_round *r, struct err *err)
{
	enum err_code rc;

	if ((rc = follower_round_hide(r, err))) {
		follower_round_put_off(r, err);
		return rc;
	}
	if (follower_round_has_learned_wrong(r)) {
		follow_missing_free(r->missing, r->missing_n);
		r->missing = NULL;
		r->missing_n = r->missing_cap = 0;
		return err_set(err, ERR_EXISTS,
			"shard %s published ids that were read before with another meaning", r->f->name);
	}
	return follower_round_take_over(r, err);
}

void follow_missing_free(struct missing *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(m[i].text);
	free(m);
}
