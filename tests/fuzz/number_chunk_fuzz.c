/*
 * fuzz: tsdb
 * Chunks of numeric series as a damaged disk could hand them out. What is taken has ascending
 * times, and comes back the same when it is encoded again.
 */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tsdb/columns/number_chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct number_chunk c, again;
	struct buf b = { 0 };
	struct err err;

	if (number_chunk_decode((struct str){ (const char *)data, size }, &c, &err)) {
		require(err.code == ERR_CORRUPT);
		return 0;
	}
	require(c.n && c.n <= NUMBER_CHUNK_MAX);
	for (uint32_t i = 1; i < c.n; i++)
		require(c.ts[i] > c.ts[i - 1]);
	require(!number_chunk_encode(&c, &b, &err));
	require(!number_chunk_decode(buf_str(&b), &again, &err));
	require(again.n == c.n && !memcmp(again.ts, c.ts, c.n * sizeof(*c.ts)) &&
		!memcmp(again.values, c.values, c.n * sizeof(*c.values)));
	buf_release(&b);
	return 0;
}
