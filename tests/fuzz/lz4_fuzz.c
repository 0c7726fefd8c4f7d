/*
 * fuzz: base/gzip
 * lz4 of any bytes, inflated within a limit. liblz4 that gets one byte after the other says whether
 * what comes out is right.
 */
#include <lz4frame.h>
#include <stdlib.h>

#include "base/gzip/lz4.h"
#include "tests/fuzz/fuzz.h"

#define RAW_BYTES_MAX (256u << 10)

static void check_by_bytes(const uint8_t *data, size_t size, struct str raw)
{
	char *whole = malloc(RAW_BYTES_MAX);
	LZ4F_dctx *z = NULL;
	size_t out = 0, in, room;

	require(whole && !LZ4F_isError(LZ4F_createDecompressionContext(&z, LZ4F_VERSION)));
	for (size_t at = 0; at < size; at += in) {
		in = 1;
		room = RAW_BYTES_MAX - out;
		require(!LZ4F_isError(LZ4F_decompress(z, whole + out, &room, data + at, &in, NULL)));
		require(in || room);
		out += room;
	}
	require(out == raw.len && !memcmp(whole, raw.ptr, out));
	LZ4F_freeDecompressionContext(z);
	free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct str raw;
	struct err err;

	arena_init(&a, 0);
	if (lz4_inflate(
			&a, (struct str){ (const char *)data, size }, "body", RAW_BYTES_MAX, &raw, &err)) {
		require(err.msg[0] != '\0');
	} else {
		require(raw.len <= RAW_BYTES_MAX);
		check_by_bytes(data, size, raw);
	}
	arena_release(&a);
	return 0;
}
