/*
 * fuzz: base/gzip
 * zstd of any bytes, inflated within a limit. libzstd in one piece says whether what comes out is
 * right.
 */
#include <stdlib.h>
#include <zstd.h>

#include "base/gzip/zstd.h"
#include "tests/fuzz/fuzz.h"

#define RAW_BYTES_MAX (256u << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *whole = malloc(RAW_BYTES_MAX);
	struct arena a;
	struct str raw;
	struct err err;
	size_t n;

	require(whole);
	arena_init(&a, 0);
	if (zstd_inflate(
			&a, (struct str){ (const char *)data, size }, "body", RAW_BYTES_MAX, &raw, &err)) {
		require(err.msg[0] != '\0');
	} else {
		require(raw.len <= RAW_BYTES_MAX);
		n = ZSTD_decompress(whole, RAW_BYTES_MAX, data, size);
		require(ZSTD_isError(n) || (n == raw.len && !memcmp(whole, raw.ptr, n)));
	}
	arena_release(&a);
	free(whole);
	return 0;
}
