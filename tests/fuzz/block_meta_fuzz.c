/*
 * fuzz: tsdb
 * meta.json with a checksum that is made right, so that what is behind it is reached; what is read
 * prints to a text that reads as the same again. And the small records of a block's index.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/fuzz/fuzz.h"
#include "tsdb/block/block_internal.h"

static void try_meta(struct str text)
{
	struct buf whole = { 0 }, again = { 0 }, twice = { 0 };
	struct block_meta m, n;
	struct arena a;

	arena_init(&a, 64 << 20);
	(void)!block_meta_parse(text, &a, &m, NULL);
	buf_add_str(&whole, text);
	buf_printf(&whole, "\"checksum\":\"%016" PRIx64 "\"}\n", hash_bytes(text.ptr, text.len, 0));
	require(!buf_failed(&whole));
	if (!block_meta_parse(buf_str(&whole), &a, &m, NULL)) {
		block_meta_print(&again, &m, true);
		require(!block_meta_parse(buf_str(&again), &a, &n, NULL));
		block_meta_print(&twice, &n, true);
		require(str_eq(buf_str(&again), buf_str(&twice)));
	}
	buf_release(&whole);
	buf_release(&again);
	buf_release(&twice);
	arena_release(&a);
}

static void try_records(struct str bytes)
{
	struct block_series series = { 0 };
	struct block_slot slot = { 0 };
	struct posting_reader r;
	uint32_t first, n, end = 0;
	struct buf again = { 0 };
	struct arena a;

	arena_init(&a, 64 << 20);
	if (!block_slot_decode(bytes, &a, &slot, NULL))
		block_slot_encode(&again, &slot);
	buf_clear(&again);
	if (!block_series_decode(bytes, &a, &series, NULL)) {
		struct block_series twice = { 0 };

		block_series_encode(&again, &series);
		require(!block_series_decode(buf_str(&again), &a, &twice, NULL));
		require(labels_eq(series.labels, twice.labels) && series.rows == twice.rows);
	}
	if (!posting_open(&r, bytes, 100000, NULL))
		while (posting_next(&r, &first, &n)) {
			require(n > 0 && first >= end && first + n <= 100000);
			end = first + n;
		}
	buf_release(&again);
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = { (const char *)data, size };

	if (size && data[0] == '{')
		try_meta(bytes);
	else
		try_records(bytes);
	return 0;
}
