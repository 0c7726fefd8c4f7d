#include <jansson.h>

#include "tsdb/block/block_internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"

/*
 * meta.json: one JSON object on one line, whose last field is the checksum: XXH3 of all bytes
 * before its name's quote, as 16 hexadecimal digits. The same text without the files' sizes and
 * hashes is the meta record of rollups.ldb, and with them (but for its own) that of `spare`.
 */

struct block_number {
	const char *name;
	size_t offset;
	bool is_signed; /* int64_t; else uint64_t that fits one */
	bool optional; /* left out where 0 */
};

/* clang-format off */
static const struct block_number numbers[] = {
	{ "min_ns",     offsetof(struct block_meta, min_ns),     true },
	{ "max_ns",     offsetof(struct block_meta, max_ns),     true },
	{ "first_ns",   offsetof(struct block_meta, first_ns),   true },
	{ "last_ns",    offsetof(struct block_meta, last_ns),    true },
	{ "series",     offsetof(struct block_meta, series),     false },
	{ "groups",     offsetof(struct block_meta, groups),     false },
	{ "partitions", offsetof(struct block_meta, partitions), false },
	{ "rows",       offsetof(struct block_meta, rows),       false },
	{ "samples",    offsetof(struct block_meta, samples),    false },
	{ "chunks",     offsetof(struct block_meta, chunks),     false },
	{ "nodes",      offsetof(struct block_meta, nodes),      false },
	{ "strings",    offsetof(struct block_meta, strings),    false },
	{ "number_series", offsetof(struct block_meta, number_series), false, true },
	{ "numbers",    offsetof(struct block_meta, numbers),    false, true },
	{ "links",      offsetof(struct block_meta, links),      false, true },
};

static const struct {
	const char *name;
	size_t offset;
} files[] = {
	{ "rows.ldb",    offsetof(struct block_meta, rows_file) },
	{ "rollups.ldb", offsetof(struct block_meta, rollups_file) },
	{ "spare",       offsetof(struct block_meta, spare_file) },
};
/* clang-format on */

#define NUMBERS_N (sizeof(numbers) / sizeof(numbers[0]))
#define FILES_N (sizeof(files) / sizeof(files[0]))

static void block_print_files(struct json *j, const struct block_meta *m)
{
	char hash[17];

	json_key(j, "files");
	json_object(j);
	for (size_t i = 0; i < FILES_N; i++) {
		const struct block_file *f = (const void *)((const char *)m + files[i].offset);

		if (!f->bytes)
			continue;
		snprintf(hash, sizeof(hash), "%016" PRIx64, f->hash);
		json_key(j, files[i].name);
		json_object(j);
		json_key(j, "bytes");
		json_u64(j, f->bytes);
		json_key(j, "xxh3");
		json_cstr(j, hash);
		json_object_end(j);
	}
	json_object_end(j);
}

void block_meta_print(struct buf *out, const struct block_meta *m, bool with_files)
{
	size_t start = out->len;
	struct json j;
	int64_t v;

	json_init(&j, out);
	json_object(&j);
	json_key(&j, "version");
	json_i64(&j,
		m->unnamed     ? BLOCK_VERSION_UNNAMED :
			m->streams ? BLOCK_VERSION_STREAMS :
			m->links   ? BLOCK_VERSION_LINKS :
						 BLOCK_VERSION);
	json_key(&j, "ulid");
	json_cstr(&j, m->ulid.text);
	json_key(&j, "level");
	json_u64(&j, m->level);
	json_key(&j, "levels");
	json_u64(&j, m->levels);
	json_key(&j, "raw");
	json_bool(&j, m->raw);
	for (size_t i = 0; i < NUMBERS_N; i++) {
		memcpy(&v, (const char *)m + numbers[i].offset, sizeof(v));
		if (numbers[i].optional && !v)
			continue;
		json_key(&j, numbers[i].name);
		json_i64(&j, v);
	}
	json_key(&j, "sources");
	json_array(&j);
	for (uint32_t i = 0; i < m->sources_n; i++)
		json_cstr(&j, m->sources[i].text);
	json_array_end(&j);
	json_key(&j, "heads");
	json_array(&j);
	for (uint32_t i = 0; i < m->heads_n; i++)
		json_i64(&j, m->heads[i]);
	json_array_end(&j);
	if (with_files)
		block_print_files(&j, m);
	json_object_end(&j);
	if (buf_failed(out))
		return;
	out->ptr[out->len - 1] = ','; /* the checksum goes in front of the last brace */
	buf_printf(out, "\"checksum\":\"%016" PRIx64 "\"}\n",
		hash_bytes(out->ptr + start, out->len - start, 0));
}

/* ---- reading ---- */

static enum err_code block_wrong(const char *field, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "field \"%s\" is missing or wrong", field);
}

#define CHECKSUM_BYTES 31u /* "checksum":"0123456789abcdef"} and the line's end */

static enum err_code block_check_sum(struct str text, struct err *err)
{
	char want[CHECKSUM_BYTES + 1];
	size_t n;

	if (text.len < CHECKSUM_BYTES)
		return err_set(err, ERR_CORRUPT, "only %zu bytes", text.len);
	n = text.len - CHECKSUM_BYTES;
	snprintf(want, sizeof(want), "\"checksum\":\"%016" PRIx64 "\"}\n", hash_bytes(text.ptr, n, 0));
	if (text.len - n != strlen(want) || memcmp(text.ptr + n, want, strlen(want)) != 0)
		return err_set(err, ERR_CORRUPT, "its checksum is wrong");
	return ERR_OK;
}

static bool block_get_int(
	const json_t *object, const char *name, int64_t min, int64_t max, int64_t *out)
{
	const json_t *v = json_object_get(object, name);

	if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
		return false;
	*out = json_integer_value(v);
	return true;
}

static bool block_get_str(const json_t *object, const char *name, struct str *out)
{
	const json_t *v = json_object_get(object, name);

	if (!json_is_string(v))
		return false;
	*out = (struct str){ json_string_value(v), json_string_length(v) };
	return true;
}

static enum err_code block_read_arrays(
	const json_t *object, struct arena *a, struct block_meta *m, struct err *err)
{
	const json_t *sources = json_object_get(object, "sources"),
				 *heads = json_object_get(object, "heads");
	size_t i, n = json_array_size(sources), heads_n = json_array_size(heads);

	if (!json_is_array(sources) || n > BLOCK_SOURCES_MAX)
		return block_wrong("sources", err);
	if (!json_is_array(heads) || heads_n > BLOCK_HEADS_MAX)
		return block_wrong("heads", err);
	m->sources = arena_array(a, struct ulid, n + 1);
	m->heads = arena_array(a, int64_t, heads_n + 1);
	if (!m->sources || !m->heads)
		return arena_fail(a, "meta.json", err);
	for (i = 0; i < n; i++) {
		const json_t *v = json_array_get(sources, i);

		if (!json_is_string(v) ||
			!ulid_parse(
				(struct str){ json_string_value(v), json_string_length(v) }, &m->sources[i]))
			return block_wrong("sources", err);
	}
	for (i = 0; i < heads_n; i++) {
		const json_t *v = json_array_get(heads, i);

		if (!json_is_integer(v))
			return block_wrong("heads", err);
		m->heads[i] = json_integer_value(v);
	}
	m->sources_n = (uint32_t)n;
	m->heads_n = (uint32_t)heads_n;
	return ERR_OK;
}

static enum err_code block_read_files(const json_t *object, struct block_meta *m, struct err *err)
{
	const json_t *all = json_object_get(object, "files");
	struct str hash;
	int64_t bytes;
	char *end;

	for (size_t i = 0; i < FILES_N; i++) {
		struct block_file *f = (void *)((char *)m + files[i].offset);
		const json_t *v = json_object_get(all, files[i].name);

		if (!v)
			continue;
		if (!block_get_int(v, "bytes", 1, INT64_MAX, &bytes) || !block_get_str(v, "xxh3", &hash) ||
			hash.len != 16)
			return block_wrong(files[i].name, err);
		f->bytes = (uint64_t)bytes;
		f->hash = strtoull(hash.ptr, &end, 16);
		if (*end)
			return block_wrong(files[i].name, err);
	}
	return ERR_OK;
}

static enum err_code block_read_object(
	const json_t *object, struct arena *a, struct block_meta *m, struct err *err)
{
	const json_t *raw = json_object_get(object, "raw");
	struct str ulid;
	int64_t v;
	enum err_code rc;

	if (!block_get_int(object, "version", 0, INT64_MAX, &v))
		return block_wrong("version", err);
	if (v > BLOCK_VERSION_STREAMS)
		return err_set(err, ERR_UNSUPPORTED,
			"version %" PRId64 " was written by a newer program; this one reads versions 1 to %d",
			v, BLOCK_VERSION_STREAMS);
	if (v < BLOCK_VERSION_UNNAMED)
		return block_wrong("version", err);
	m->unnamed = v == BLOCK_VERSION_UNNAMED;
	m->streams = v == BLOCK_VERSION_STREAMS;
	if (!block_get_str(object, "ulid", &ulid) || !ulid_parse(ulid, &m->ulid))
		return block_wrong("ulid", err);
	if (!block_get_int(object, "level", 0, UINT32_MAX, &v))
		return block_wrong("level", err);
	m->level = (uint32_t)v;
	if (!block_get_int(object, "levels", 0, (1 << ROLLUP_LEVELS) - 1, &v))
		return block_wrong("levels", err);
	m->levels = (unsigned)v;
	if (!json_is_boolean(raw))
		return block_wrong("raw", err);
	m->raw = json_is_true(raw);
	for (size_t i = 0; i < NUMBERS_N; i++) {
		v = 0;
		if (numbers[i].optional && !json_object_get(object, numbers[i].name))
			continue;
		if (!block_get_int(
				object, numbers[i].name, numbers[i].is_signed ? INT64_MIN : 0, INT64_MAX, &v))
			return block_wrong(numbers[i].name, err);
		memcpy((char *)m + numbers[i].offset, &v, sizeof(v));
	}
	if (m->min_ns > m->max_ns)
		return block_wrong("max_ns", err);
	if (m->series >= SYM_NONE || m->number_series > m->series ||
		m->groups > m->series - m->number_series)
		return block_wrong("series", err);
	if ((rc = block_read_arrays(object, a, m, err)) || (rc = block_read_files(object, m, err)))
		return rc;
	return ERR_OK;
}

enum err_code block_meta_parse(
	struct str text, struct arena *a, struct block_meta *out, struct err *err)
{
	json_error_t why;
	enum err_code rc;
	json_t *o;

	*out = (struct block_meta){ 0 };
	if ((rc = block_check_sum(text, err)))
		return rc;
	if (!(o = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &why)))
		return err_set(err, ERR_CORRUPT, "%d:%d: %s", why.line, why.column, why.text);
	rc = json_is_object(o) ? block_read_object(o, a, out, err) :
							 err_set(err, ERR_CORRUPT, "no JSON object");
	json_decref(o);
	return rc;
}

char *block_path(struct arena *a, const char *dir, const char *name)
{
	return path_join(a, str_of(dir), str_of(name));
}

enum err_code block_write_meta(
	struct fs *fs, const char *dir, const struct block_meta *meta, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc;
	struct arena a;
	char *path;

	arena_init(&a, 0);
	path = block_path(&a, dir, "meta.json");
	block_meta_print(&b, meta, true);
	if (!path || buf_failed(&b))
		rc = err_nomem(err, "meta.json");
	else
		rc = fs_write_file(fs, path, buf_str(&b), err);
	buf_release(&b);
	arena_release(&a);
	return rc;
}

enum err_code block_read_meta(
	const char *dir, struct arena *a, struct block_meta *out, struct err *err)
{
	char *path = block_path(a, dir, "meta.json");
	struct buf text = { 0 };
	enum err_code rc;

	if (!path)
		return arena_fail(a, "meta.json", err);
	if (!(rc = fs_read_file(path, BLOCK_META_BYTES_MAX, &text, err)) &&
		(rc = block_meta_parse(buf_str(&text), a, out, err)))
		rc = err_wrap(err, rc, "%s", path);
	buf_release(&text);
	return rc;
}
