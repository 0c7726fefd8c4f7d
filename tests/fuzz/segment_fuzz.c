/*
 * fuzz: tsdb/segments
 * Segments as a damaged disk or a bucket could return them: the bytes as they are; behind a right
 * head; and as records of a frame with a right checksum, packed and not. Frames follow each other,
 * their records can be read, and no more memory is taken than bytes are there.
 */
#include <zstd.h>

#include "tests/fuzz/fuzz.h"
#include "tsdb/segments/segments_internal.h"

static void try(struct str bytes)
{
	struct segment_reader *r;
	struct segment_frame f;
	struct str key, record;
	uint64_t last = 0;
	struct err err;
	enum err_code rc;

	if (segment_reader_open(bytes, &r, &err))
		return;
	while (!(rc = segment_reader_next(r, &f, &err))) {
		require(f.first && f.first <= f.last && f.last >= last);
		last = f.last;
		while (segment_record_next(&f.records, &key, &record))
			require(key.len && key.len <= SEGMENT_KEY_MAX);
		require(!f.records.len);
	}
	require(rc == ERR_NOT_FOUND || rc == ERR_CORRUPT || rc == ERR_NOMEM);
	segment_reader_close(r);
}

static void add_packed(struct str raw, struct buf *out)
{
	size_t bound = ZSTD_compressBound(raw.len), n;

	require(buf_reserve(out, bound));
	n = ZSTD_compress(out->ptr + out->len, bound, raw.ptr, raw.len, 1);
	require(!ZSTD_isError(n));
	out->len += n;
}

/* One frame with these records, whatever they are. */
static void add_frame(struct str records, struct buf *out)
{
	struct segment_batch b;

	segment_batch_begin(&b, out, 1, 9);
	buf_add_str(out, records);
	segment_batch_end(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = { (const char *)data, size };
	struct segment s = { 1, 2, 3, 1, 9, false };
	struct buf b = { 0 }, frame = { 0 };

	try(bytes);
	add_frame(bytes, &frame);
	for (int packed = 0; packed < 2; packed++) {
		s.packed = packed;
		buf_clear(&b);
		segment_encode_head(&s, &b);
		buf_add_str(&b, bytes);
		try(buf_str(&b));
		b.len = SEGMENT_HEAD_BYTES;
		if (packed)
			add_packed(buf_str(&frame), &b);
		else
			buf_add_str(&b, buf_str(&frame));
		try(buf_str(&b));
		if (!packed)
			continue;
		b.len = SEGMENT_HEAD_BYTES;
		add_packed(bytes, &b);
		try(buf_str(&b));
	}
	buf_release(&b);
	buf_release(&frame);
	return 0;
}
