#include <jansson.h>

#include "tsdb/cluster/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"

/*
 * Reading a manifest. Nothing of it is used before its checksum was compared; then everything that
 * readers rely on is checked: ranges of numbers, order, no name twice, no gap between segments.
 */

/* ---- members ---- */

static enum err_code manifest_read_wrong(const char *what, const char *member, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "%s: member \"%s\" is missing or wrong", what, member);
}

#define CHECKSUM_BYTES 31u /* "checksum":"0123456789abcdef"} and the line's end */

static enum err_code manifest_read_check_sum(struct str text, struct err *err)
{
	char want[CHECKSUM_BYTES + 1];
	size_t n;

	if (text.len > MANIFEST_BYTES_MAX)
		return err_set(
			err, ERR_LIMIT, "%zu bytes, limit %u", text.len, (unsigned)MANIFEST_BYTES_MAX);
	if (text.len < CHECKSUM_BYTES)
		return err_set(err, ERR_CORRUPT, "only %zu bytes", text.len);
	n = text.len - CHECKSUM_BYTES;
	snprintf(want, sizeof(want), "\"checksum\":\"%016" PRIx64 "\"}\n", hash_bytes(text.ptr, n, 0));
	if (memcmp(text.ptr + n, want, CHECKSUM_BYTES) != 0)
		return err_set(err, ERR_CORRUPT, "its checksum is wrong");
	return ERR_OK;
}

static bool manifest_read_get_int(
	const json_t *object, const char *name, int64_t min, int64_t max, int64_t *out)
{
	const json_t *v = json_object_get(object, name);

	if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
		return false;
	*out = json_integer_value(v);
	return true;
}

static bool manifest_read_get_count(
	const json_t *object, const char *name, uint64_t min, uint64_t *out)
{
	int64_t v;

	if (!manifest_read_get_int(object, name, (int64_t)min, INT64_MAX, &v))
		return false;
	*out = (uint64_t)v;
	return true;
}

static bool manifest_read_get_str(const json_t *object, const char *name, struct str *out)
{
	const json_t *v = json_object_get(object, name);

	if (!json_is_string(v))
		return false;
	*out = (struct str){ json_string_value(v), json_string_length(v) };
	return true;
}

/* false where there is none */
static bool manifest_read_get_flag(const json_t *object, const char *name, bool *out)
{
	const json_t *v = json_object_get(object, name);

	*out = json_is_true(v);
	return !v || json_is_boolean(v);
}

static bool manifest_read_is_hex(struct str s, size_t len)
{
	for (size_t i = 0; i < s.len; i++)
		if (!strchr("0123456789abcdef", s.ptr[i]) || !s.ptr[i])
			return false;
	return s.len == len;
}

static bool manifest_read_get_hash(const json_t *object, const char *name, uint64_t *out)
{
	struct str s;

	if (!manifest_read_get_str(object, name, &s) || !manifest_read_is_hex(s, 16))
		return false;
	*out = strtoull(s.ptr, NULL, 16);
	return true;
}

static bool manifest_read_get_bytes(const json_t *object, struct manifest_file *f)
{
	return manifest_read_get_count(object, "bytes", 1, &f->bytes) &&
		manifest_read_get_hash(object, "xxh3", &f->hash);
}

/* Not there is fine. */
static bool manifest_read_get_file(const json_t *object, const char *name, struct manifest_file *f)
{
	const json_t *v = json_object_get(object, name);

	return !v || manifest_read_get_bytes(v, f);
}

/* An array's elements within a limit. */
static enum err_code manifest_read_get_array(const json_t *object, const char *what,
	const char *name, size_t max, const json_t **out, uint32_t *n, struct err *err)
{
	*out = json_object_get(object, name);
	if (!json_is_array(*out))
		return manifest_read_wrong(what, name, err);
	if (json_array_size(*out) > max)
		return err_set(
			err, ERR_LIMIT, "%s: %zu %s, limit %zu", what, json_array_size(*out), name, max);
	*n = (uint32_t)json_array_size(*out);
	return ERR_OK;
}

/* ---- windows ---- */

static enum err_code read_segments(
	const json_t *object, struct arena *a, struct manifest_window *w, struct err *err)
{
	const json_t *all;
	uint64_t next = 1;
	enum err_code rc;

	if ((rc = manifest_read_get_array(
			 object, "window", "segments", MANIFEST_SEGMENTS_MAX, &all, &w->segments_n, err)))
		return rc;
	if (!(w->segments = arena_array(a, struct manifest_segment, w->segments_n + 1)))
		return arena_fail(a, "manifest", err);
	for (uint32_t i = 0; i < w->segments_n; i++) {
		const json_t *v = json_array_get(all, i);
		struct manifest_segment *s = &w->segments[i];

		if (!manifest_read_get_count(v, "first", 1, &s->first) ||
			!manifest_read_get_count(v, "last", 1, &s->last) ||
			!manifest_read_get_bytes(v, &s->object) || s->last < s->first)
			return manifest_read_wrong("window", "segments", err);
		if (s->first != next)
			return err_set(err, ERR_CORRUPT,
				"window: a segment begins with batch %" PRIu64 ", not %" PRIu64, s->first, next);
		next = s->last + 1;
	}
	return ERR_OK;
}

static enum err_code manifest_read_window(
	const json_t *object, struct arena *a, struct manifest_window *w, struct err *err)
{
	if (!manifest_read_get_int(object, "start_ns", 0, TIME_MAX_NS, &w->start_ns))
		return manifest_read_wrong("window", "start_ns", err);
	if (!manifest_read_get_int(object, "end_ns", w->start_ns + 1, TIME_MAX_NS, &w->end_ns))
		return manifest_read_wrong("window", "end_ns", err);
	if (!manifest_read_get_hash(object, "identity", &w->identity))
		return manifest_read_wrong("window", "identity", err);
	if (!manifest_read_get_file(object, "deleted", &w->deleted))
		return manifest_read_wrong("window", "deleted", err);
	if (!manifest_read_get_flag(object, "kept", &w->kept))
		return manifest_read_wrong("window", "kept", err);
	if (!manifest_read_get_flag(object, "apart", &w->apart))
		return manifest_read_wrong("window", "apart", err);
	return read_segments(object, a, w, err);
}

static enum err_code read_windows(
	const json_t *object, struct arena *a, struct manifest *m, struct err *err)
{
	const json_t *all;
	enum err_code rc;

	if ((rc = manifest_read_get_array(
			 object, "manifest", "windows", MANIFEST_WINDOWS_MAX, &all, &m->windows_n, err)))
		return rc;
	if (!(m->windows = arena_array(a, struct manifest_window, m->windows_n + 1)))
		return arena_fail(a, "manifest", err);
	for (uint32_t i = 0; i < m->windows_n; i++) {
		struct manifest_window *w = &m->windows[i];

		if ((rc = manifest_read_window(json_array_get(all, i), a, w, err)))
			return rc;
		if (i &&
			(w[-1].start_ns > w->start_ns ||
				(w[-1].start_ns == w->start_ns && w[-1].identity >= w->identity)))
			return err_set(err, ERR_CORRUPT, "windows are not in order");
	}
	return ERR_OK;
}

/* ---- blocks ---- */

static enum err_code manifest_read_block(
	const json_t *object, struct manifest_block *b, struct err *err)
{
	const json_t *files = json_object_get(object, "files"), *raw = json_object_get(object, "raw");
	struct str ulid;
	int64_t level;

	if (!manifest_read_get_str(object, "ulid", &ulid) || !ulid_parse(ulid, &b->ulid))
		return manifest_read_wrong("block", "ulid", err);
	if (!manifest_read_get_int(object, "min_ns", -TIME_MAX_NS, TIME_MAX_NS, &b->min_ns))
		return manifest_read_wrong("block", "min_ns", err);
	if (!manifest_read_get_int(object, "max_ns", b->min_ns, TIME_MAX_NS, &b->max_ns))
		return manifest_read_wrong("block", "max_ns", err);
	if (!manifest_read_get_int(object, "level", 0, UINT32_MAX, &level))
		return manifest_read_wrong("block", "level", err);
	b->level = (uint32_t)level;
	if (!json_is_boolean(raw))
		return manifest_read_wrong("block", "raw", err);
	b->raw = json_is_true(raw);
	if (!manifest_read_get_file(files, "rows.ldb", &b->rows) ||
		!manifest_read_get_file(files, "rollups.ldb", &b->rollups) ||
		!manifest_read_get_file(files, "spare", &b->spare) ||
		!manifest_read_get_file(files, "meta.json", &b->meta) || !b->meta.bytes ||
		!b->rollups.bytes || b->raw != (b->rows.bytes > 0))
		return manifest_read_wrong("block", "files", err);
	if (!manifest_read_get_file(object, "deleted", &b->deleted))
		return manifest_read_wrong("block", "deleted", err);
	if (!manifest_read_get_flag(object, "meta_changed", &b->meta_changed))
		return manifest_read_wrong("block", "meta_changed", err);
	if (!manifest_read_get_flag(object, "kept", &b->kept))
		return manifest_read_wrong("block", "kept", err);
	return manifest_read_get_flag(object, "apart", &b->apart) ?
		ERR_OK :
		manifest_read_wrong("block", "apart", err);
}

/* Each ULID once. */
static enum err_code manifest_read_check_ulids(
	const struct manifest *m, struct arena *a, struct err *err)
{
	struct ulid *v = arena_array(a, struct ulid, m->blocks_n + 1);

	if (!v)
		return arena_fail(a, "manifest", err);
	for (uint32_t i = 0; i < m->blocks_n; i++)
		v[i] = m->blocks[i].ulid;
	qsort(v, m->blocks_n, sizeof(*v), ulid_cmp);
	for (uint32_t i = 1; i < m->blocks_n; i++)
		if (ulid_eq(&v[i - 1], &v[i]))
			return err_set(err, ERR_CORRUPT, "block %s is there twice", v[i].text);
	return ERR_OK;
}

static enum err_code read_blocks(
	const json_t *object, struct arena *a, struct manifest *m, struct err *err)
{
	const json_t *all;
	enum err_code rc;

	if ((rc = manifest_read_get_array(
			 object, "manifest", "blocks", MANIFEST_BLOCKS_MAX, &all, &m->blocks_n, err)))
		return rc;
	if (!(m->blocks = arena_array(a, struct manifest_block, m->blocks_n + 1)))
		return arena_fail(a, "manifest", err);
	for (uint32_t i = 0; i < m->blocks_n; i++) {
		struct manifest_block *b = &m->blocks[i];

		if ((rc = manifest_read_block(json_array_get(all, i), b, err)))
			return rc;
		if (i && b[-1].min_ns > b->min_ns)
			return err_set(err, ERR_CORRUPT, "blocks are not in order");
	}
	return manifest_read_check_ulids(m, a, err);
}

/* ---- the rest ---- */

static enum err_code read_gone(
	const json_t *object, struct arena *a, struct manifest *m, struct err *err)
{
	const json_t *all;
	enum err_code rc;
	struct str key;

	if ((rc = manifest_read_get_array(
			 object, "manifest", "gone", MANIFEST_GONE_MAX, &all, &m->gone_n, err)))
		return rc;
	if (!(m->gone = arena_array(a, struct manifest_gone, m->gone_n + 1)))
		return arena_fail(a, "manifest", err);
	for (uint32_t i = 0; i < m->gone_n; i++) {
		const json_t *v = json_array_get(all, i);
		struct manifest_gone *g = &m->gone[i];

		if (!manifest_read_get_str(v, "key", &key) || !key.len || key.len >= BUCKET_KEY_BYTES_MAX ||
			str_is(key, "manifest") ||
			!manifest_read_get_int(v, "at_ns", -TIME_MAX_NS, TIME_MAX_NS, &g->at_ns))
			return manifest_read_wrong("manifest", "gone", err);
		g->key = str_dup(a, key);
		if (!g->key.ptr)
			return arena_fail(a, "manifest", err);
		if (i && str_cmp(g[-1].key, g->key) >= 0)
			return err_set(err, ERR_CORRUPT, "objects that are gone are not in order");
	}
	return ERR_OK;
}

/* Copies a string into the arena. */
static enum err_code manifest_read_copy(
	const json_t *object, const char *name, struct arena *a, struct str *out, struct err *err)
{
	struct str s;

	if (!manifest_read_get_str(object, name, &s))
		return manifest_read_wrong("manifest", name, err);
	*out = str_dup(a, s);
	return out->ptr ? ERR_OK : arena_fail(a, "manifest", err);
}

static enum err_code read_owner(
	const json_t *object, struct arena *a, struct manifest *m, struct err *err)
{
	enum err_code rc;

	if ((rc = manifest_read_copy(object, "shard", a, &m->shard, err)) ||
		(rc = manifest_read_copy(object, "owner", a, &m->owner, err)) ||
		(rc = manifest_read_copy(object, "session", a, &m->session, err)) ||
		(rc = manifest_read_copy(object, "host", a, &m->host, err)))
		return rc;
	if (manifest_check_shard(m->shard, NULL))
		return manifest_read_wrong("manifest", "shard", err);
	if (!manifest_read_is_hex(m->owner, MANIFEST_TOKEN_LEN))
		return manifest_read_wrong("manifest", "owner", err);
	if (!manifest_read_is_hex(m->session, MANIFEST_TOKEN_LEN))
		return manifest_read_wrong("manifest", "session", err);
	return m->host.len <= MANIFEST_HOST_BYTES_MAX ? ERR_OK :
													manifest_read_wrong("manifest", "host", err);
}

/*
 * Older programs that went on in another directory wrote `uncompared` until they had compared that
 * directory with the manifest. Such a manifest belongs to no directory.
 */
static enum err_code manifest_read_uncompared(
	const json_t *object, struct manifest *m, struct err *err)
{
	bool is;

	if (!manifest_read_get_flag(object, "uncompared", &is))
		return manifest_read_wrong("manifest", "uncompared", err);
	if (is) {
		m->owner = STR("00000000000000000000000000000000");
		m->taker = STR("");
	}
	return ERR_OK;
}

static enum err_code manifest_read_taker(
	const json_t *object, struct arena *a, struct manifest *m, struct err *err)
{
	enum err_code rc;

	if (!json_object_get(object, "taker"))
		return ERR_OK;
	if ((rc = manifest_read_copy(object, "taker", a, &m->taker, err)))
		return rc;
	if (!manifest_read_is_hex(m->taker, MANIFEST_TOKEN_LEN))
		return manifest_read_wrong("manifest", "taker", err);
	return manifest_read_get_count(object, "taker_generation", 0, &m->taker_generation) ?
		ERR_OK :
		manifest_read_wrong("manifest", "taker_generation", err);
}

static enum err_code manifest_read_follows(
	const json_t *object, struct arena *a, struct manifest *m, struct err *err)
{
	enum err_code rc;

	if (json_object_get(object, "assignment") &&
		!manifest_read_get_count(object, "assignment", 1, &m->assignment))
		return manifest_read_wrong("manifest", "assignment", err);
	if (!json_object_get(object, "address"))
		return ERR_OK;
	if ((rc = manifest_read_copy(object, "address", a, &m->address, err)))
		return rc;
	return m->address.len <= MANIFEST_ADDRESS_BYTES_MAX ?
		ERR_OK :
		manifest_read_wrong("manifest", "address", err);
}

static enum err_code manifest_read_object(
	const json_t *object, struct arena *a, struct manifest *m, struct err *err)
{
	static const struct {
		const char *name;
		size_t offset;
	} times[] = { { "since_ns", offsetof(struct manifest, since_ns) },
		{ "written_ns", offsetof(struct manifest, written_ns) },
		{ "through_ns", offsetof(struct manifest, through_ns) },
		{ "interval_ns", offsetof(struct manifest, interval_ns) } },
	  perhaps[] = { { "lease_ns", offsetof(struct manifest, lease_ns) },
		  { "clock_ns", offsetof(struct manifest, clock_ns) },
		  { "confirmed_ns", offsetof(struct manifest, confirmed_ns) },
		  { "dropped_ns", offsetof(struct manifest, dropped_ns) },
		  { "dropped_size_ns", offsetof(struct manifest, dropped_size_ns) } };
	const json_t *files = json_object_get(object, "files");
	enum err_code rc;
	int64_t v;

	if (!manifest_read_get_int(object, "version", 0, INT64_MAX, &v))
		return manifest_read_wrong("manifest", "version", err);
	if (v != MANIFEST_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			"version %" PRId64 " was written by another program; this one reads version %d", v,
			MANIFEST_VERSION);
	if ((rc = read_owner(object, a, m, err)))
		return rc;
	if (!manifest_read_get_count(object, "generation", 0, &m->generation))
		return manifest_read_wrong("manifest", "generation", err);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (!manifest_read_get_int(object, times[i].name, 0, TIME_MAX_NS, &v))
			return manifest_read_wrong("manifest", times[i].name, err);
		memcpy((char *)m + times[i].offset, &v, sizeof(v));
	}
	for (size_t i = 0; i < sizeof(perhaps) / sizeof(perhaps[0]); i++) {
		if (!json_object_get(object, perhaps[i].name))
			continue;
		if (!manifest_read_get_int(object, perhaps[i].name, 0, TIME_MAX_NS, &v))
			return manifest_read_wrong("manifest", perhaps[i].name, err);
		memcpy((char *)m + perhaps[i].offset, &v, sizeof(v));
	}
	if (json_object_get(object, "lives") && !manifest_read_get_count(object, "lives", 0, &m->lives))
		return manifest_read_wrong("manifest", "lives", err);
	if (!manifest_read_get_flag(object, "stopped", &m->stopped))
		return manifest_read_wrong("manifest", "stopped", err);
	m->complete = m->stopped;
	if (json_object_get(object, "complete") &&
		!manifest_read_get_flag(object, "complete", &m->complete))
		return manifest_read_wrong("manifest", "complete", err);
	if (!manifest_read_get_flag(object, "loss_due", &m->loss_due))
		return manifest_read_wrong("manifest", "loss_due", err);
	if ((rc = manifest_read_taker(object, a, m, err)) ||
		(rc = manifest_read_uncompared(object, m, err)) ||
		(rc = manifest_read_follows(object, a, m, err)))
		return rc;
	if (!manifest_read_get_file(files, "ids", &m->ids) ||
		!manifest_read_get_file(files, "losses", &m->losses))
		return manifest_read_wrong("manifest", "files", err);
	if ((rc = read_windows(object, a, m, err)) || (rc = read_blocks(object, a, m, err)))
		return rc;
	return read_gone(object, a, m, err);
}

enum err_code manifest_parse(
	struct str text, struct arena *a, struct manifest *out, struct err *err)
{
	json_error_t why;
	enum err_code rc;
	json_t *o;

	*out = (struct manifest){ 0 };
	if ((rc = manifest_read_check_sum(text, err)))
		return rc;
	if (!(o = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &why)))
		return err_set(err, ERR_CORRUPT, "%d:%d: %s", why.line, why.column, why.text);
	rc = json_is_object(o) ? manifest_read_object(o, a, out, err) :
							 err_set(err, ERR_CORRUPT, "no JSON object");
	json_decref(o);
	return rc;
}

/* A copy of another shard's manifest has a right checksum, but names objects of that shard. */
static enum err_code manifest_read_check_place(
	const struct manifest *m, struct str key, struct err *err)
{
	struct manifest_key own = manifest_key_of(m->shard);

	if (!str_has_prefix(key, STR("shards/")) || str_eq(key, manifest_key_str(&own)))
		return ERR_OK;
	return err_set(err, ERR_CORRUPT, "it is the manifest of shard " STR_FMT, STR_ARG(m->shard));
}

enum err_code manifest_get(struct bucket *b, struct str key, struct arena *a, struct manifest *out,
	char *etag, struct err *err)
{
	struct buf text = { 0 };
	struct bucket_info info;
	enum err_code rc;

	if (!(rc = bucket_get(b, key, 0, BUCKET_TO_END, &text, &info, err)) &&
		((rc = manifest_parse(buf_str(&text), a, out, err)) ||
			(rc = manifest_read_check_place(out, key, err))))
		err_wrap(err, rc, "bucket " STR_FMT ": " STR_FMT, STR_ARG(bucket_name(b)), STR_ARG(key));
	buf_release(&text);
	if (!rc && etag)
		memcpy(etag, info.etag, sizeof(info.etag));
	return rc;
}
