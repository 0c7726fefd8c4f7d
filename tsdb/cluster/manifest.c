#include "tsdb/cluster/manifest.h"

#include <assert.h>
#include <inttypes.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/map.h"

const char *const manifest_block_file_names[MANIFEST_BLOCK_FILES] = { "rows.ldb", "rollups.ldb",
	"spare", "meta.json", "deleted" };

const struct manifest_file *manifest_block_file(
	const struct manifest_block *b, enum manifest_block_file which)
{
	const struct manifest_file *files[MANIFEST_BLOCK_FILES] = { &b->rows, &b->rollups, &b->spare,
		&b->meta, &b->deleted };

	return files[which];
}

enum err_code manifest_check_shard(struct str name, struct err *err)
{
	if (!name.len || name.len > MANIFEST_SHARD_BYTES_MAX)
		return err_set(err, ERR_INVALID,
			"a shard's name has 1 to %u bytes, \"" STR_FMT "\" has %zu", MANIFEST_SHARD_BYTES_MAX,
			(int)(name.len < 80 ? name.len : 80), name.ptr, name.len);
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			c == '-' || c == '_' || (c == '.' && i))
			continue;
		return err_set(err, ERR_INVALID,
			"a shard's name has letters, digits, \"-\", \"_\" and \".\", which is not the first: "
			"\"" STR_FMT "\"",
			STR_ARG(name));
	}
	return ERR_OK;
}

/* ---- order ---- */

static int manifest_window_cmp(const void *a, const void *b)
{
	const struct manifest_window *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->identity < y->identity ? -1 : x->identity > y->identity;
}

static int manifest_block_cmp(const void *a, const void *b)
{
	const struct manifest_block *x = a, *y = b;

	if (x->min_ns != y->min_ns)
		return x->min_ns < y->min_ns ? -1 : 1;
	return ulid_cmp(&x->ulid, &y->ulid);
}

static int manifest_gone_cmp(const void *a, const void *b)
{
	const struct manifest_gone *x = a, *y = b;

	return str_cmp(x->key, y->key);
}

static void cluster_manifest_sort(
	void *value, size_t n, size_t size, int (*cmp)(const void *, const void *))
{
	if (n)
		qsort(value, n, size, cmp);
}

void manifest_sort(struct manifest *m)
{
	cluster_manifest_sort(m->windows, m->windows_n, sizeof(*m->windows), manifest_window_cmp);
	cluster_manifest_sort(m->blocks, m->blocks_n, sizeof(*m->blocks), manifest_block_cmp);
	cluster_manifest_sort(m->gone, m->gone_n, sizeof(*m->gone), manifest_gone_cmp);
}

/* ---- printing ---- */

static void manifest_add_hash(struct json *j, const char *name, uint64_t hash)
{
	char text[17];

	snprintf(text, sizeof(text), "%016" PRIx64, hash);
	json_key(j, name);
	json_cstr(j, text);
}

static void manifest_add_number(struct json *j, const char *name, int64_t value)
{
	json_key(j, name);
	json_i64(j, value);
}

static void manifest_add_bytes(struct json *j, const struct manifest_file *f)
{
	json_key(j, "bytes");
	json_u64(j, f->bytes);
	manifest_add_hash(j, "xxh3", f->hash);
}

static void manifest_add_file(struct json *j, const char *name, const struct manifest_file *f)
{
	if (!f->bytes)
		return;
	json_key(j, name);
	json_object(j);
	manifest_add_bytes(j, f);
	json_object_end(j);
}

static void manifest_add_flag(struct json *j, const char *name, bool value)
{
	if (!value)
		return;
	json_key(j, name);
	json_bool(j, value);
}

static void manifest_add_windows(struct json *j, const struct manifest *m)
{
	json_key(j, "windows");
	json_array(j);
	for (uint32_t i = 0; i < m->windows_n; i++) {
		const struct manifest_window *w = &m->windows[i];

		json_object(j);
		manifest_add_number(j, "start_ns", w->start_ns);
		manifest_add_number(j, "end_ns", w->end_ns);
		manifest_add_hash(j, "identity", w->identity);
		json_key(j, "segments");
		json_array(j);
		for (uint32_t k = 0; k < w->segments_n; k++) {
			json_object(j);
			manifest_add_number(j, "first", (int64_t)w->segments[k].first);
			manifest_add_number(j, "last", (int64_t)w->segments[k].last);
			manifest_add_bytes(j, &w->segments[k].object);
			json_object_end(j);
		}
		json_array_end(j);
		manifest_add_file(j, "deleted", &w->deleted);
		manifest_add_flag(j, "kept", w->kept);
		manifest_add_flag(j, "apart", w->apart);
		json_object_end(j);
	}
	json_array_end(j);
}

static void manifest_add_blocks(struct json *j, const struct manifest *m)
{
	json_key(j, "blocks");
	json_array(j);
	for (uint32_t i = 0; i < m->blocks_n; i++) {
		const struct manifest_block *b = &m->blocks[i];

		json_object(j);
		json_key(j, "ulid");
		json_cstr(j, b->ulid.text);
		manifest_add_number(j, "min_ns", b->min_ns);
		manifest_add_number(j, "max_ns", b->max_ns);
		manifest_add_number(j, "level", b->level);
		json_key(j, "raw");
		json_bool(j, b->raw);
		json_key(j, "files");
		json_object(j);
		for (unsigned k = 0; k < MANIFEST_BLOCK_DELETED; k++)
			manifest_add_file(j, manifest_block_file_names[k], manifest_block_file(b, k));
		json_object_end(j);
		manifest_add_file(j, "deleted", &b->deleted);
		manifest_add_flag(j, "meta_changed", b->meta_changed);
		manifest_add_flag(j, "kept", b->kept);
		manifest_add_flag(j, "apart", b->apart);
		json_object_end(j);
	}
	json_array_end(j);
}

static void manifest_add_gone(struct json *j, const struct manifest *m)
{
	json_key(j, "gone");
	json_array(j);
	for (uint32_t i = 0; i < m->gone_n; i++) {
		json_object(j);
		json_key(j, "key");
		json_str(j, m->gone[i].key);
		manifest_add_number(j, "at_ns", m->gone[i].at_ns);
		json_object_end(j);
	}
	json_array_end(j);
}

static void manifest_add_str(struct json *j, const char *name, struct str s)
{
	json_key(j, name);
	json_str(j, s);
}

void manifest_print(struct buf *out, const struct manifest *m)
{
	size_t start = out->len;
	struct json j;

	json_init(&j, out);
	json_object(&j);
	manifest_add_number(&j, "version", MANIFEST_VERSION);
	manifest_add_str(&j, "shard", m->shard);
	manifest_add_str(&j, "owner", m->owner);
	manifest_add_str(&j, "session", m->session);
	manifest_add_str(&j, "host", m->host);
	manifest_add_number(&j, "generation", (int64_t)m->generation);
	manifest_add_number(&j, "since_ns", m->since_ns);
	manifest_add_number(&j, "written_ns", m->written_ns);
	manifest_add_number(&j, "through_ns", m->through_ns);
	manifest_add_number(&j, "interval_ns", m->interval_ns);
	if (m->lease_ns)
		manifest_add_number(&j, "lease_ns", m->lease_ns);
	if (m->clock_ns)
		manifest_add_number(&j, "clock_ns", m->clock_ns);
	if (m->confirmed_ns)
		manifest_add_number(&j, "confirmed_ns", m->confirmed_ns);
	if (m->dropped_ns)
		manifest_add_number(&j, "dropped_ns", m->dropped_ns);
	if (m->dropped_size_ns)
		manifest_add_number(&j, "dropped_size_ns", m->dropped_size_ns);
	json_key(&j, "stopped");
	json_bool(&j, m->stopped);
	if (m->complete != m->stopped) {
		json_key(&j, "complete");
		json_bool(&j, m->complete);
	}
	manifest_add_flag(&j, "loss_due", m->loss_due);
	if (m->taker.len) {
		manifest_add_str(&j, "taker", m->taker);
		manifest_add_number(&j, "taker_generation", (int64_t)m->taker_generation);
	}
	if (m->assignment)
		manifest_add_number(&j, "assignment", (int64_t)m->assignment);
	if (m->address.len)
		manifest_add_str(&j, "address", m->address);
	json_key(&j, "files");
	json_object(&j);
	manifest_add_file(&j, "ids", &m->ids);
	manifest_add_file(&j, "losses", &m->losses);
	json_object_end(&j);
	manifest_add_windows(&j, m);
	manifest_add_blocks(&j, m);
	manifest_add_gone(&j, m);
	json_object_end(&j);
	if (buf_failed(out))
		return;
	out->ptr[out->len - 1] = ','; /* the checksum goes in front of the last brace */
	buf_printf(out, "\"checksum\":\"%016" PRIx64 "\"}\n",
		hash_bytes(out->ptr + start, out->len - start, 0));
}

/* ---- keys ---- */

#define SHARD_KEY "shards/" STR_FMT "/"

struct manifest_key manifest_key_of(struct str shard)
{
	struct manifest_key k;

	snprintf(k.text, sizeof(k.text), SHARD_KEY "manifest", STR_ARG(shard));
	return k;
}

struct manifest_key manifest_key_senders(struct str shard)
{
	struct manifest_key k;

	snprintf(k.text, sizeof(k.text), "senders/" STR_FMT, STR_ARG(shard));
	return k;
}

struct manifest_key manifest_key_evaluated(struct str shard)
{
	struct manifest_key k;

	snprintf(k.text, sizeof(k.text), "evaluated/" STR_FMT, STR_ARG(shard));
	return k;
}

struct manifest_key manifest_key_targets(struct str shard)
{
	struct manifest_key k;

	snprintf(k.text, sizeof(k.text), "targets/" STR_FMT, STR_ARG(shard));
	return k;
}

struct manifest_key manifest_key_block(
	struct str shard, const struct manifest_block *b, enum manifest_block_file which)
{
	const struct manifest_file *f = manifest_block_file(b, which);
	bool hashed = which == MANIFEST_BLOCK_DELETED || (which == MANIFEST_META && b->meta_changed);
	struct manifest_key k;
	int n;

	assert(which < MANIFEST_BLOCK_FILES && shard.len <= MANIFEST_SHARD_BYTES_MAX);
	n = snprintf(k.text, sizeof(k.text), SHARD_KEY "blocks/%s/%s", STR_ARG(shard), b->ulid.text,
		manifest_block_file_names[which]);
	if (hashed)
		snprintf(k.text + n, sizeof(k.text) - (size_t)n, "-%016" PRIx64, f->hash);
	return k;
}

static int manifest_key_window(
	struct manifest_key *k, struct str shard, const struct manifest_window *w)
{
	assert(shard.len <= MANIFEST_SHARD_BYTES_MAX);
	return snprintf(k->text, sizeof(k->text), SHARD_KEY "head/%" PRId64 "-%016" PRIx64 "/",
		STR_ARG(shard), w->start_ns / NS_PER_S, w->identity);
}

struct manifest_key manifest_key_segment(
	struct str shard, const struct manifest_window *w, const struct manifest_segment *s)
{
	struct manifest_key k;
	int n = manifest_key_window(&k, shard, w);

	snprintf(k.text + n, sizeof(k.text) - (size_t)n, "%020" PRIu64 "-%016" PRIx64, s->last,
		s->object.hash);
	return k;
}

struct manifest_key manifest_key_window_deleted(struct str shard, const struct manifest_window *w)
{
	struct manifest_key k;
	int n = manifest_key_window(&k, shard, w);

	snprintf(k.text + n, sizeof(k.text) - (size_t)n, "deleted-%016" PRIx64, w->deleted.hash);
	return k;
}

struct manifest_key manifest_key_small(
	struct str shard, const char *name, const struct manifest_file *f)
{
	struct manifest_key k;

	assert(shard.len <= MANIFEST_SHARD_BYTES_MAX);
	snprintf(
		k.text, sizeof(k.text), SHARD_KEY "files/%s-%016" PRIx64, STR_ARG(shard), name, f->hash);
	return k;
}

static bool manifest_show(
	manifest_key_fn fn, void *ctx, struct manifest_key key, struct manifest_file f)
{
	return !f.bytes || fn(ctx, &key, &f);
}

static bool manifest_show_window(
	const struct manifest *m, const struct manifest_window *w, manifest_key_fn fn, void *ctx)
{
	for (uint32_t k = 0; k < w->segments_n; k++)
		if (!manifest_show(
				fn, ctx, manifest_key_segment(m->shard, w, &w->segments[k]), w->segments[k].object))
			return false;
	return manifest_show(fn, ctx, manifest_key_window_deleted(m->shard, w), w->deleted);
}

void manifest_each_key(const struct manifest *m, manifest_key_fn fn, void *ctx)
{
	if (!manifest_show(fn, ctx, manifest_key_small(m->shard, "ids", &m->ids), m->ids) ||
		!manifest_show(fn, ctx, manifest_key_small(m->shard, "losses", &m->losses), m->losses))
		return;
	for (uint32_t i = 0; i < m->windows_n; i++)
		if (!manifest_show_window(m, &m->windows[i], fn, ctx))
			return;
	for (uint32_t i = 0; i < m->blocks_n; i++)
		for (unsigned k = 0; k < MANIFEST_BLOCK_FILES; k++)
			if (!manifest_show(fn, ctx, manifest_key_block(m->shard, &m->blocks[i], k),
					*manifest_block_file(&m->blocks[i], k)))
				return;
}

static bool manifest_add_up(
	void *ctx, const struct manifest_key *key, const struct manifest_file *f)
{
	*(uint64_t *)ctx += f->bytes;
	return true;
}

uint64_t manifest_bytes(const struct manifest *m)
{
	uint64_t bytes = 0;

	manifest_each_key(m, manifest_add_up, &bytes);
	return bytes;
}

/* ---- what is passed over ---- */

/* An entry that is shown overlaps this time. Entries are ascending by their begin. */
static bool manifest_meets_shown(const struct manifest *m, int64_t min_ns, int64_t max_ns,
	const bool *windows, const bool *blocks)
{
	for (uint32_t i = 0; i < m->blocks_n && m->blocks[i].min_ns < max_ns; i++)
		if (!blocks[i] && m->blocks[i].max_ns > min_ns)
			return true;
	for (uint32_t i = 0; i < m->windows_n && m->windows[i].start_ns < max_ns; i++)
		if (!windows[i] && m->windows[i].end_ns > min_ns)
			return true;
	return false;
}

void manifest_hidden(const struct manifest *m, bool *windows, bool *blocks)
{
	for (uint32_t i = 0; i < m->windows_n; i++)
		windows[i] = m->windows[i].kept;
	for (uint32_t i = 0; i < m->blocks_n; i++)
		blocks[i] = m->blocks[i].kept;
	for (uint32_t i = 0; i < m->blocks_n; i++) {
		const struct manifest_block *b = &m->blocks[i];

		if (blocks[i] && !b->apart)
			blocks[i] = manifest_meets_shown(m, b->min_ns, b->max_ns, windows, blocks);
	}
	for (uint32_t i = 0; i < m->windows_n; i++) {
		const struct manifest_window *w = &m->windows[i];

		if (windows[i] && !w->apart)
			windows[i] = manifest_meets_shown(m, w->start_ns, w->end_ns, windows, blocks);
	}
}

void manifest_new_token(char out[MANIFEST_TOKEN_LEN + 1])
{
	unsigned char bytes[MANIFEST_TOKEN_LEN / 2] = { 0 };

	RAND_bytes(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

int64_t manifest_newest_ns(const struct manifest *m)
{
	int64_t newest = INT64_MIN;

	for (uint32_t i = 0; i < m->blocks_n; i++)
		newest = m->blocks[i].max_ns > newest ? m->blocks[i].max_ns : newest;
	for (uint32_t i = 0; i < m->windows_n; i++)
		newest = m->windows[i].start_ns > newest ? m->windows[i].start_ns : newest;
	return newest;
}

struct manifest_window *manifest_find_window(
	const struct manifest *m, int64_t start_ns, uint64_t identity)
{
	for (uint32_t i = 0; i < m->windows_n; i++)
		if (m->windows[i].start_ns == start_ns && m->windows[i].identity == identity)
			return &m->windows[i];
	return NULL;
}

struct manifest_block *manifest_find_block(const struct manifest *m, const struct ulid *u)
{
	for (uint32_t i = 0; i < m->blocks_n; i++)
		if (ulid_eq(&m->blocks[i].ulid, u))
			return &m->blocks[i];
	return NULL;
}
