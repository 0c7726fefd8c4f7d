#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "tsdb/block/block.h"
#include "tsdb/cluster/inspect/inspect.h"
#include "tsdb/segments/segments.h"

/*
 * Makes a manifest of the objects that are there. Objects are taken that describe themselves:
 * blocks by their meta.json, which is put last; segments by their heads and the hash in their keys.
 * Objects that were to be removed are there too: of blocks that were joined, of windows that were
 * cut. The heads in a block's meta.json name all windows in it, also after joining: so they tell
 * which blocks and windows it has replaced.
 */

#define SMALL_BYTES_MAX (256u << 20)
#define NOT_A_KEY "not a key of a shard's object"

struct head_of { /* a window that a block has */
	int64_t start_ns;
	uint32_t block;
};

struct inspect_rebuild {
	struct inspect *x;
	struct str shard;
	struct arena *a;
	struct manifest *m;
	struct shard_object *objects;
	size_t objects_n;
	struct block_meta *metas; /* of m->blocks */
	struct head_of *heads; /* ascending by start */
	size_t heads_n;
	size_t blocks_cap, windows_cap, metas_cap;
};

static void inspect_rebuild_leave(struct inspect_rebuild *r, struct str rest, const char *why)
{
	inspect_note(r->x, "shards/" STR_FMT "/" STR_FMT ": not taken: %s", STR_ARG(r->shard),
		STR_ARG(rest), why);
}

/* False: the object is not what it should be, and a note says so; or *rc is another error. */
static bool inspect_rebuild_is_fine(
	struct inspect_rebuild *r, struct str rest, enum err_code *rc, const struct err *why)
{
	if (!*rc)
		return true;
	if (*rc == ERR_CORRUPT || *rc == ERR_NOT_FOUND || *rc == ERR_LIMIT || *rc == ERR_UNSUPPORTED ||
		*rc == ERR_INVALID) {
		inspect_rebuild_leave(r, rest, why->msg);
		*rc = ERR_OK;
	}
	return false;
}

static enum err_code inspect_rebuild_read_small(
	struct inspect_rebuild *r, const struct shard_object *o, struct buf *out, struct err *err)
{
	char key[BUCKET_KEY_BYTES_MAX + MANIFEST_KEY_BYTES_MAX];

	if (o->bytes > SMALL_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "%" PRIu64 " bytes, limit %u", o->bytes, SMALL_BYTES_MAX);
	snprintf(key, sizeof(key), "shards/" STR_FMT "/" STR_FMT, STR_ARG(r->shard), STR_ARG(o->rest));
	return bucket_get(r->x->bucket, str_of(key), 0, BUCKET_TO_END, out, NULL, err);
}

/* ---- parts of keys ---- */

/* Takes text up to a character off *s. */
static bool inspect_rebuild_take_until(struct str *s, char c, struct str *out)
{
	const char *at = s->len ? memchr(s->ptr, c, s->len) : NULL;

	if (!at)
		return false;
	*out = (struct str){ s->ptr, (size_t)(at - s->ptr) };
	s->len -= out->len + 1;
	s->ptr = at + 1;
	return true;
}

static bool inspect_rebuild_read_hex(struct str s, uint64_t *out)
{
	*out = 0;
	for (size_t i = 0; i < s.len; i++) {
		const char *digits = "0123456789abcdef", *at = s.ptr[i] ? strchr(digits, s.ptr[i]) : NULL;

		if (!at)
			return false;
		*out = *out << 4 | (uint64_t)(at - digits);
	}
	return s.len == 16;
}

/* "deleted-HASH" and the like. */
static bool inspect_rebuild_read_hashed(struct str name, struct str before, uint64_t *hash)
{
	if (!str_has_prefix(name, before))
		return false;
	return inspect_rebuild_read_hex(
		(struct str){ name.ptr + before.len, name.len - before.len }, hash);
}

/* The first object whose key is not before this one. */
static size_t inspect_rebuild_first_at(const struct inspect_rebuild *r, struct str rest)
{
	size_t low = 0, high = r->objects_n;

	while (low < high) { /* a binary search */
		size_t middle = low + (high - low) / 2;

		if (str_cmp(r->objects[middle].rest, rest) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Of objects PREFIX-HASH the newest whose bytes have that hash; of several of one time the largest,
 * as ranges are added far more often than taken away. bytes 0: there is none.
 */
static enum err_code inspect_rebuild_newest_hashed(
	struct inspect_rebuild *r, struct str before, struct manifest_file *out, struct err *err)
{
	const struct shard_object *best = NULL;
	struct buf bytes = { 0 };
	enum err_code rc = ERR_OK;
	uint64_t hash;
	struct err why;

	*out = (struct manifest_file){ 0 };
	for (size_t i = inspect_rebuild_first_at(r, before); i < r->objects_n && !rc; i++) {
		const struct shard_object *o = &r->objects[i];

		if (!str_has_prefix(o->rest, before))
			break;
		if (!inspect_rebuild_read_hashed(o->rest, before, &hash))
			continue;
		buf_clear(&bytes);
		rc = inspect_rebuild_read_small(r, o, &bytes, &why);
		if (!rc && (!bytes.len || hash_bytes(bytes.ptr, bytes.len, 0) != hash))
			rc = err_set(&why, ERR_CORRUPT, "its hash is another one");
		if (!inspect_rebuild_is_fine(r, o->rest, &rc, &why))
			continue;
		if (best &&
			(best->modified_ns > o->modified_ns ||
				(best->modified_ns == o->modified_ns && best->bytes >= o->bytes))) {
			inspect_rebuild_leave(r, o->rest, "there is a newer one");
			continue;
		}
		if (best)
			inspect_rebuild_leave(r, best->rest, "there is a newer one");
		best = o;
		*out = (struct manifest_file){ bytes.len, hash };
	}
	buf_release(&bytes);
	return rc ? err_copy(err, &why) : ERR_OK;
}

/* ---- blocks ---- */

static enum err_code inspect_rebuild_take_table(const struct inspect_rebuild *r,
	const struct manifest_block *b, enum manifest_block_file which, const struct block_file *f,
	struct manifest_file *out, struct err *err)
{
	struct manifest_key key = manifest_key_block(r->shard, b, which);
	const struct shard_object *o = shard_find_object(
		r->objects, r->objects_n, manifest_key_rest(&key, r->shard));

	*out = (struct manifest_file){ f->bytes, f->hash };
	if (!f->bytes)
		return ERR_OK;
	if (!o)
		return err_set(err, ERR_NOT_FOUND, "%s is not there", manifest_block_file_names[which]);
	if (o->bytes != f->bytes)
		return err_set(err, ERR_CORRUPT, "%s has %" PRIu64 " bytes, not %" PRIu64,
			manifest_block_file_names[which], o->bytes, f->bytes);
	return ERR_OK;
}

/* name: "meta.json", or with a hash: as it is since the raw rows were dropped. */
static enum err_code inspect_rebuild_take_block(struct inspect_rebuild *r,
	const struct shard_object *o, struct str ulid, struct str name, struct manifest_block *b,
	struct block_meta *meta, struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc;

	*b = (struct manifest_block){ .meta_changed = !str_is(name, "meta.json") };
	if (!(rc = inspect_rebuild_read_small(r, o, &text, err)))
		rc = block_meta_parse(buf_str(&text), r->a, meta, err);
	if (!rc) {
		b->meta = (struct manifest_file){ text.len, hash_bytes(text.ptr, text.len, 0) };
		if (!str_is(ulid, meta->ulid.text))
			rc = err_set(err, ERR_CORRUPT, "it is of block %s", meta->ulid.text);
		else if (b->meta_changed &&
			!inspect_rebuild_read_hashed(name, STR("meta.json-"), &(uint64_t){ 0 }))
			rc = err_set(err, ERR_INVALID, NOT_A_KEY);
	}
	buf_release(&text);
	if (rc)
		return rc;
	b->ulid = meta->ulid;
	b->min_ns = meta->min_ns;
	b->max_ns = meta->max_ns;
	b->level = meta->level;
	b->raw = meta->raw;
	if (meta->raw &&
		(rc = inspect_rebuild_take_table(r, b, MANIFEST_ROWS, &meta->rows_file, &b->rows, err)))
		return rc;
	if ((rc = inspect_rebuild_take_table(
			 r, b, MANIFEST_ROLLUPS, &meta->rollups_file, &b->rollups, err)))
		return rc;
	return inspect_rebuild_take_table(r, b, MANIFEST_SPARE, &meta->spare_file, &b->spare, err);
}

static enum err_code inspect_rebuild_add_block(struct inspect_rebuild *r,
	const struct manifest_block *b, const struct block_meta *meta, struct err *err)
{
	struct manifest *m = r->m;

	/* The same block, without raw rows: that is the later one. */
	if (m->blocks_n && ulid_eq(&m->blocks[m->blocks_n - 1].ulid, &b->ulid)) {
		if (b->meta_changed)
			m->blocks[m->blocks_n - 1] = *b;
		return ERR_OK;
	}
	if (m->blocks_n == MANIFEST_BLOCKS_MAX)
		return err_set(err, ERR_LIMIT, "more than %u blocks", MANIFEST_BLOCKS_MAX);
	if (!arena_array_room(r->a, &m->blocks, m->blocks_n, 1, &r->blocks_cap) ||
		!arena_array_room(r->a, &r->metas, m->blocks_n, 1, &r->metas_cap))
		return arena_fail(r->a, "repair", err);
	r->metas[m->blocks_n] = *meta;
	m->blocks[m->blocks_n++] = *b;
	return ERR_OK;
}

static enum err_code inspect_rebuild_find_blocks(struct inspect_rebuild *r, struct err *err)
{
	struct manifest_block b;
	struct block_meta meta;
	enum err_code rc = ERR_OK;
	struct err why;

	for (size_t i = 0; i < r->objects_n && !rc; i++) { /* by key: blocks one after the other */
		struct str rest = r->objects[i].rest, blocks, ulid;

		if (!inspect_rebuild_take_until(&rest, '/', &blocks) || !str_is(blocks, "blocks") ||
			!inspect_rebuild_take_until(&rest, '/', &ulid) ||
			!str_has_prefix(rest, STR("meta.json")))
			continue;
		if ((rc = inspect_check_stop(r->x, err)))
			return rc;
		rc = inspect_rebuild_take_block(r, &r->objects[i], ulid, rest, &b, &meta, &why);
		if (!inspect_rebuild_is_fine(r, r->objects[i].rest, &rc, &why)) {
			if (rc)
				return err_copy(err, &why);
			continue;
		}
		rc = inspect_rebuild_add_block(r, &b, &meta, err);
	}
	return rc;
}

static int inspect_rebuild_head_cmp(const void *a, const void *b)
{
	const struct head_of *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->block < y->block ? -1 : x->block > y->block;
}

static enum err_code inspect_rebuild_find_heads(struct inspect_rebuild *r, struct err *err)
{
	size_t n = 0;

	for (uint32_t i = 0; i < r->m->blocks_n; i++)
		n += r->metas[i].heads_n;
	r->heads_n = 0;
	if (!(r->heads = arena_array(r->a, struct head_of, n + 1)))
		return arena_fail(r->a, "repair", err);
	for (uint32_t i = 0; i < r->m->blocks_n; i++)
		for (uint32_t k = 0; k < r->metas[i].heads_n; k++)
			r->heads[r->heads_n++] = (struct head_of){ r->metas[i].heads[k], i };
	if (n)
		qsort(r->heads, n, sizeof(*r->heads), inspect_rebuild_head_cmp);
	return ERR_OK;
}

/* The first of the blocks that have this window; heads_n: none has. */
static size_t inspect_rebuild_first_with(const struct inspect_rebuild *r, int64_t start_ns)
{
	size_t low = 0, high = r->heads_n;

	while (low < high) { /* a binary search */
		size_t middle = low + (high - low) / 2;

		if (r->heads[middle].start_ns < start_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < r->heads_n && r->heads[low].start_ns == start_ns ? low : r->heads_n;
}

/* The best block that has this window: joined more often, or made later. */
static uint32_t inspect_rebuild_best_with(const struct inspect_rebuild *r, int64_t start_ns)
{
	size_t i = inspect_rebuild_first_with(r, start_ns);
	uint32_t best = UINT32_MAX;

	for (; i < r->heads_n && r->heads[i].start_ns == start_ns; i++) {
		const struct manifest_block *is = &r->m->blocks[r->heads[i].block],
									*so_far = best == UINT32_MAX ? NULL : &r->m->blocks[best];

		if (!so_far || is->level > so_far->level ||
			(is->level == so_far->level && ulid_cmp(&is->ulid, &so_far->ulid) > 0))
			best = r->heads[i].block;
	}
	return best;
}

static enum err_code inspect_rebuild_drop_replaced(struct inspect_rebuild *r, struct err *err)
{
	bool *replaced = arena_array(r->a, bool, r->m->blocks_n + 1u);
	uint32_t kept = 0, by;
	char line[64], rest[64];

	if (!replaced)
		return arena_fail(r->a, "repair", err);
	for (uint32_t i = 0; i < r->m->blocks_n; i++) {
		by = r->metas[i].heads_n ? inspect_rebuild_best_with(r, r->metas[i].heads[0]) : i;
		if (!(replaced[i] = by != i))
			continue;
		snprintf(rest, sizeof(rest), "blocks/%s", r->m->blocks[i].ulid.text);
		snprintf(line, sizeof(line), "%s has replaced it", r->m->blocks[by].ulid.text);
		inspect_rebuild_leave(r, str_of(rest), line);
	}
	for (uint32_t i = 0; i < r->m->blocks_n; i++) {
		if (replaced[i])
			continue;
		r->metas[kept] = r->metas[i];
		r->m->blocks[kept++] = r->m->blocks[i];
	}
	r->m->blocks_n = kept;
	return inspect_rebuild_find_heads(r, err);
}

static enum err_code inspect_rebuild_find_deleted_of_blocks(
	struct inspect_rebuild *r, struct err *err)
{
	enum err_code rc = ERR_OK;
	char before[64];

	for (uint32_t i = 0; i < r->m->blocks_n && !rc; i++) {
		snprintf(before, sizeof(before), "blocks/%s/deleted-", r->m->blocks[i].ulid.text);
		rc = inspect_rebuild_newest_hashed(r, str_of(before), &r->m->blocks[i].deleted, err);
	}
	return rc;
}

/* ---- windows ---- */

/* One segment of a window: its head and bytes are what its key says. */
static enum err_code inspect_rebuild_read_segment(struct inspect_rebuild *r,
	const struct shard_object *o, struct str name, struct segment *head,
	struct manifest_segment *out, struct err *err)
{
	struct buf bytes = { 0 };
	struct str last;
	enum err_code rc;
	uint64_t n, hash;

	if (!inspect_rebuild_take_until(&name, '-', &last) || !str_to_u64(last, &n) ||
		!inspect_rebuild_read_hex(name, &hash))
		return err_set(err, ERR_INVALID, NOT_A_KEY);
	if (!(rc = inspect_rebuild_read_small(r, o, &bytes, err)) &&
		(!bytes.len || hash_bytes(bytes.ptr, bytes.len, 0) != hash))
		rc = err_set(err, ERR_CORRUPT, "its hash is another one");
	if (!rc && !(rc = segment_parse_head(buf_str(&bytes), head, err)) &&
		(!head->packed || head->last != n))
		rc = err_set(err, ERR_CORRUPT, "its head is of another segment");
	if (!rc)
		*out = (struct manifest_segment){ head->first, head->last, { bytes.len, hash } };
	buf_release(&bytes);
	return rc;
}

struct found_segment {
	struct manifest_segment s;
	struct str rest;
	bool taken;
};

static int segment_cmp(const void *a, const void *b)
{
	const struct found_segment *x = a, *y = b;

	if (x->s.first != y->s.first)
		return x->s.first < y->s.first ? -1 : 1;
	return x->s.last < y->s.last ? 1 : x->s.last > y->s.last ? -1 : 0;
}

/* From batch 1 on without a gap, by the longest segment each time. */
static enum err_code inspect_rebuild_chain(struct inspect_rebuild *r, struct manifest_window *w,
	struct found_segment *f, size_t n, struct err *err)
{
	uint64_t last = 0;

	if (!(w->segments = arena_array(r->a, struct manifest_segment, n + 1)))
		return arena_fail(r->a, "repair", err);
	if (n)
		qsort(f, n, sizeof(*f), segment_cmp);
	for (size_t i = 0; i < n && w->segments_n < MANIFEST_SEGMENTS_MAX; i++) {
		if (f[i].s.first != last + 1)
			continue;
		w->segments[w->segments_n++] = f[i].s;
		last = f[i].s.last;
		f[i].taken = true;
	}
	for (size_t i = 0; i < n; i++)
		if (!f[i].taken)
			inspect_rebuild_leave(r, f[i].rest,
				f[i].s.first > last ? "batches before it are missing" :
									  "another segment has its batches");
	return ERR_OK;
}

static bool inspect_rebuild_is_of_window(struct str rest, struct str dir, struct str *name)
{
	if (!str_has_prefix(rest, dir))
		return false;
	*name = (struct str){ rest.ptr + dir.len, rest.len - dir.len };
	return !str_has_prefix(*name, STR("deleted-"));
}

/* dir: "head/START-IDENTITY/"; its objects are [from, to). */
static enum err_code inspect_rebuild_take_window(struct inspect_rebuild *r, struct str dir,
	size_t from, size_t to, struct manifest_window *w, struct err *err)
{
	struct found_segment *v = arena_array(r->a, struct found_segment, to - from + 1);
	enum err_code rc = ERR_OK;
	struct segment head;
	struct str name;
	char before[128], path[128];
	struct err why;
	size_t n = 0;

	if (!v)
		return arena_fail(r->a, "repair", err);
	for (size_t i = from; i < to && !rc; i++) {
		if (!inspect_rebuild_is_of_window(r->objects[i].rest, dir, &name))
			continue;
		if ((rc = inspect_check_stop(r->x, err)))
			return rc;
		rc = inspect_rebuild_read_segment(r, &r->objects[i], name, &head, &v[n].s, &why);
		snprintf(path, sizeof(path), "head/%" PRId64 "-%016" PRIx64 "/", head.start_ns / NS_PER_S,
			head.identity);
		if (!rc && (!str_is(dir, path) || (n && head.end_ns != w->end_ns)))
			rc = err_set(&why, ERR_CORRUPT, "its head is of another window");
		if (!inspect_rebuild_is_fine(r, r->objects[i].rest, &rc, &why))
			continue;
		*w = (struct manifest_window){ head.start_ns, head.end_ns, head.identity };
		v[n++].rest = r->objects[i].rest;
	}
	if (rc)
		return err_copy(err, &why);
	if (!n)
		return ERR_OK;
	if (inspect_rebuild_first_with(r, w->start_ns) < r->heads_n) {
		inspect_rebuild_leave(r, dir, "a block has this window");
		return ERR_OK;
	}
	snprintf(before, sizeof(before), STR_FMT "deleted-", STR_ARG(dir));
	if ((rc = inspect_rebuild_chain(r, w, v, n, err)) || !w->segments_n)
		return rc;
	return inspect_rebuild_newest_hashed(r, str_of(before), &w->deleted, err);
}

static enum err_code inspect_rebuild_find_windows(struct inspect_rebuild *r, struct err *err)
{
	enum err_code rc;
	size_t to;

	for (size_t i = 0; i < r->objects_n; i = to) { /* a window's objects are neighbours */
		struct str rest = r->objects[i].rest, head, of, dir = rest;
		struct manifest_window w = { 0 };

		to = i + 1;
		if (!inspect_rebuild_take_until(&rest, '/', &head) || !str_is(head, "head") ||
			!inspect_rebuild_take_until(&rest, '/', &of))
			continue;
		dir.len = (size_t)(rest.ptr - dir.ptr);
		if (dir.len >= 100) {
			inspect_rebuild_leave(r, r->objects[i].rest, NOT_A_KEY);
			continue;
		}
		while (to < r->objects_n && str_has_prefix(r->objects[to].rest, dir))
			to++;
		if ((rc = inspect_rebuild_take_window(r, dir, i, to, &w, err)))
			return rc;
		if (!w.segments_n)
			continue;
		if (r->m->windows_n == MANIFEST_WINDOWS_MAX)
			return err_set(err, ERR_LIMIT, "more than %u windows", MANIFEST_WINDOWS_MAX);
		if (!arena_array_room(r->a, &r->m->windows, r->m->windows_n, 1, &r->windows_cap))
			return arena_fail(r->a, "repair", err);
		r->m->windows[r->m->windows_n++] = w;
	}
	return ERR_OK;
}

/* ---- the whole ---- */

static bool inspect_rebuild_count_object(
	void *ctx, const struct manifest_key *key, const struct manifest_file *f)
{
	struct inspect *x = ctx;

	x->objects++;
	x->bytes += f->bytes;
	return true;
}

/* Notes objects of a kind that we do not know. */
static void inspect_rebuild_name_strangers(struct inspect_rebuild *r)
{
	static const struct str known[] = {
		STR("blocks/"), STR("head/"), STR("files/ids-"), STR("files/losses-") };

	for (size_t i = 0; i < r->objects_n; i++) {
		bool is = str_is(r->objects[i].rest, "manifest");

		for (size_t k = 0; k < sizeof(known) / sizeof(known[0]) && !is; k++)
			is = str_has_prefix(r->objects[i].rest, known[k]);
		if (!is)
			inspect_rebuild_leave(r, r->objects[i].rest, NOT_A_KEY);
	}
}

/* Notes blocks without a meta.json: it is put last, so these are not whole. */
static void inspect_rebuild_name_halves(struct inspect_rebuild *r)
{
	struct str before = STR("");

	for (size_t i = 0; i < r->objects_n; i++) {
		struct str rest = r->objects[i].rest, blocks, ulid, dir = rest;
		bool has = false;

		if (!inspect_rebuild_take_until(&rest, '/', &blocks) || !str_is(blocks, "blocks") ||
			!inspect_rebuild_take_until(&rest, '/', &ulid) || str_eq(ulid, before))
			continue;
		before = ulid;
		dir.len = (size_t)(rest.ptr - dir.ptr);
		for (size_t k = i; k < r->objects_n && str_has_prefix(r->objects[k].rest, dir); k++)
			has |= str_has_prefix(
				(struct str){ r->objects[k].rest.ptr + dir.len, r->objects[k].rest.len - dir.len },
				STR("meta.json"));
		if (!has)
			inspect_rebuild_leave(r, (struct str){ dir.ptr, dir.len - 1 }, "it has no meta.json");
	}
}

enum err_code inspect_rebuild(struct inspect *inspect, struct str shard, struct arena *a,
	struct manifest *out, struct err *err)
{
	struct inspect_rebuild r = { .x = inspect, .shard = shard, .a = a, .m = out };
	enum err_code rc;

	*out = (struct manifest){ .shard = shard };
	if ((rc = manifest_check_shard(shard, err)) ||
		(rc = shard_list_objects(inspect->bucket, shard, a, &r.objects, &r.objects_n, err)))
		return rc;
	inspect_rebuild_name_strangers(&r);
	inspect_rebuild_name_halves(&r);
	if ((rc = inspect_rebuild_find_blocks(&r, err)) || (rc = inspect_rebuild_find_heads(&r, err)) ||
		(rc = inspect_rebuild_drop_replaced(&r, err)) ||
		(rc = inspect_rebuild_find_deleted_of_blocks(&r, err)) ||
		(rc = inspect_rebuild_find_windows(&r, err)) ||
		(rc = inspect_rebuild_newest_hashed(&r, STR("files/ids-"), &out->ids, err)) ||
			(rc = inspect_rebuild_newest_hashed(&r, STR("files/losses-"), &out->losses, err)))
		return rc;
	manifest_sort(out);
	manifest_each_key(out, inspect_rebuild_count_object, inspect);
	inspect->blocks += out->blocks_n;
	return ERR_OK;
}
