#include "tsdb/debuginfo/elf/bundle.h"

#include <endian.h>

#define MAGIC "epibndl1"
#define MAGIC_BYTES 8u
#define END_BYTES (8u + MAGIC_BYTES)
#define ENTRY_BYTES 24u
#define ALIGN 8u

static uint64_t bundle_number(struct str bytes, size_t at)
{
	uint64_t v;

	memcpy(&v, bytes.ptr + at, sizeof(v));
	return le64toh(v);
}

static size_t bundle_padding(uint64_t at)
{
	return (size_t)(-at & (ALIGN - 1));
}

/* The files follow each other without gaps, from the binary's end to the table. */
static enum err_code bundle_check(struct bundle *b, uint64_t table_at, struct err *err)
{
	uint64_t end = b->files_n ? bundle_number(b->table, 8) : table_at;

	if (end > table_at)
		return err_set(err, ERR_INVALID, "bundle: its first file begins behind its table");
	b->binary = (struct str){ b->bytes.ptr, (size_t)end };
	for (size_t i = 0; i < b->files_n; i++) {
		size_t entry = i * ENTRY_BYTES;
		uint64_t kind = bundle_number(b->table, entry), at = bundle_number(b->table, entry + 8),
				 bytes = bundle_number(b->table, entry + 16);

		if (kind >= BUNDLE_KINDS)
			return err_set(err, ERR_INVALID, "bundle: file %zu is of an unknown kind, %llu", i + 1,
				(unsigned long long)kind);
		if (at < end || at - end >= ALIGN || at % ALIGN || at > table_at || bytes > table_at - at)
			return err_set(err, ERR_INVALID,
				"bundle: file %zu (offset %llu, %llu bytes) does not lie behind the one before it",
				i + 1, (unsigned long long)at, (unsigned long long)bytes);
		end = at + bytes;
	}
	return ERR_OK;
}

enum err_code bundle_open(struct str bytes, struct bundle *out, struct err *err)
{
	uint64_t n, before;

	*out = (struct bundle){ .binary = bytes, .bytes = bytes };
	if (bytes.len < END_BYTES ||
		memcmp(bytes.ptr + bytes.len - MAGIC_BYTES, MAGIC, MAGIC_BYTES) != 0)
		return ERR_OK;
	before = bytes.len - END_BYTES;
	n = bundle_number(bytes, before);
	if (n > BUNDLE_FILES_MAX)
		return err_set(err, ERR_LIMIT, "bundle: %llu files, limit %u", (unsigned long long)n,
			BUNDLE_FILES_MAX);
	if (n * ENTRY_BYTES > before)
		return err_set(err, ERR_INVALID, "bundle: its table of %llu files is longer than it is",
			(unsigned long long)n);
	out->files_n = (size_t)n;
	out->table = (struct str){ bytes.ptr + before - n * ENTRY_BYTES, n * ENTRY_BYTES };
	return bundle_check(out, before - n * ENTRY_BYTES, err);
}

struct str bundle_file(const struct bundle *b, size_t i, enum bundle_kind *kind)
{
	size_t entry = i * ENTRY_BYTES;

	*kind = (enum bundle_kind)bundle_number(b->table, entry);
	return (struct str){ b->bytes.ptr + bundle_number(b->table, entry + 8),
		(size_t)bundle_number(b->table, entry + 16) };
}

static void bundle_add(struct buf *b, uint64_t value)
{
	value = htole64(value);
	buf_add(b, &value, sizeof(value));
}

void bundle_begin(struct bundle_writer *w, uint64_t binary_bytes)
{
	*w = (struct bundle_writer){ .at = binary_bytes };
}

enum err_code bundle_next(struct bundle_writer *w, enum bundle_kind kind, uint64_t bytes,
	size_t *padding, struct err *err)
{
	if (w->files_n == BUNDLE_FILES_MAX)
		return err_set(err, ERR_LIMIT, "more than %u files beside a binary", BUNDLE_FILES_MAX);
	*padding = bundle_padding(w->at);
	w->at += *padding;
	bundle_add(&w->table, kind);
	bundle_add(&w->table, w->at);
	bundle_add(&w->table, bytes);
	w->at += bytes;
	w->files_n++;
	return ERR_OK;
}

enum err_code bundle_end(struct bundle_writer *w, struct buf *out, struct err *err)
{
	static const char zeros[ALIGN] = { 0 };
	bool failed = buf_failed(&w->table);

	if (w->files_n && !failed) {
		buf_add(out, zeros, bundle_padding(w->at));
		buf_add_str(out, buf_str(&w->table));
		bundle_add(out, w->files_n);
		buf_add(out, MAGIC, MAGIC_BYTES);
	}
	bundle_release(w);
	return failed || buf_failed(out) ? err_nomem(err, "bundle") : ERR_OK;
}

void bundle_release(struct bundle_writer *w)
{
	buf_release(&w->table);
	*w = (struct bundle_writer){ 0 };
}
