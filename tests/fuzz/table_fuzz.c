/*
 * fuzz: tsdb
 * A table as a damaged disk, or somebody with bad intent, could hand it out: opening, stepping and
 * looking up stay within the bytes, and nothing is allocated that the file does not have.
 *
 * The first byte says how the rest is taken: 1: checksums of the end's pages are made right, 2: the
 * end is given as the spare, and cut off the file. A checksum found by chance would be rare.
 */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tests/tsdb/store/memory_range.h"
#include "tests/tsdb/store/page_crc.h"
#include "tsdb/store/table.h"
#include "tsdb/store/table_end.h"

#define STEPS_MAX 10000

/* The four bytes behind a page and its type. */
static void seal(char *bytes, size_t n, uint64_t offset, uint64_t size)
{
	uint32_t crc;

	if (offset > n || size > n - offset || n - offset - size < TABLE_TRAILER_BYTES)
		return;
	crc = page_crc(bytes + offset, size + 1);
	for (int i = 0; i < 4; i++, crc >>= 8)
		bytes[offset + size + 1 + (size_t)i] = (char)crc;
}

/* All pages that the index names, where it can be understood, and the index; returns its offset. */
static size_t seal_all(char *bytes, size_t n)
{
	struct table_handle meta, index;
	struct cursor c;

	if (n < TABLE_FOOTER_BYTES ||
		table_read_footer(bytes + n - TABLE_FOOTER_BYTES, n, &meta, &index, "f", NULL))
		return n;
	c = cursor_of((struct str){ bytes, index.offset + index.size });
	c.at += index.offset;
	while (cursor_left(&c)) {
		uint32_t shared = cursor_u32(&c), key = cursor_u32(&c), value = cursor_u32(&c);
		struct cursor v;
		uint64_t offset;

		(void)shared;
		cursor_bytes(&c, key);
		v = cursor_of(cursor_bytes(&c, value));
		offset = cursor_varint(&v);
		seal(bytes, (size_t)index.offset, offset, cursor_varint(&v));
	}
	seal(bytes, n, index.offset, index.size);
	return (size_t)index.offset;
}

static void step(struct table_iter *it)
{
	for (int i = 0; i < STEPS_MAX && table_iter_valid(it); i++) {
		struct str k = table_iter_key(it), v = table_iter_value(it);

		/* Each byte is looked at, so that a sanitizer sees where it is. */
		require(str_cmp(k, k) == 0 && str_cmp(v, v) == 0);
		table_iter_next(it);
	}
}

static void use(struct table *t, struct str key)
{
	struct table_iter *it = table_iter_open(t, true);
	struct buf b = { 0 };
	struct err err;

	require(it);
	table_iter_seek(it, STR(""));
	step(it);
	table_iter_seek(it, key);
	step(it);
	if (table_iter_status(it, &err))
		require(err.code == ERR_CORRUPT && str_has_prefix(str_of(err.msg), STR("t.ldb: ")));
	table_iter_close(it);
	(void)!table_get(t, key, &b, &err);
	(void)table_offset(t, key);
	buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf spare = { 0 };
	struct err err, damaged;
	struct table *t;
	struct memory m;
	size_t n = size - 1, at;
	char *bytes;

	if (size < 1)
		return 0;
	bytes = malloc(n + 1);
	require(bytes);
	memcpy(bytes, data + 1, n);
	at = data[0] & 1 ? seal_all(bytes, n) : n;
	if (data[0] & 2) {
		table_spare_make((struct str){ bytes + at, n - at }, n, &spare);
		n = at;
	}
	m = memory_of(bytes, n);
	if (!table_open(&m.r, buf_str(&spare), NULL, &t, &damaged, &err)) {
		use(t, (struct str){ bytes, n < 5 ? n : 5 });
		use(t, n > 8 ? (struct str){ bytes + 3, 5 } : STR("key1"));
		table_close(t);
	} else {
		require(err.code == ERR_CORRUPT && str_has_prefix(str_of(err.msg), STR("t.ldb: ")));
	}
	require(m.closed == 1);
	buf_release(&spare);
	free(bytes);
	return 0;
}
