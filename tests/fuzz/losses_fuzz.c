/*
 * fuzz: tsdb
 * Lists of losses as a damaged disk could hand them out: with their own checksum, and with a right
 * one, so that what stands before it is read too. Entries come out in order, and can be printed.
 */
#include "base/map.h"
#include "tests/fuzz/fuzz.h"
#include "tsdb/lists/losses.h"

static void try(struct str bytes)
{
	uint64_t generation, next, last = 0;
	struct loss *v = NULL;
	struct buf text = { 0 };
	struct arena a;
	struct err err;
	size_t n = 0;

	arena_init(&a, 0);
	if (losses_decode(bytes, "losses", &a, &generation, &next, &v, &n, &err)) {
		require(err.code == ERR_CORRUPT || err.code == ERR_UNSUPPORTED);
		n = 0;
	}
	for (size_t i = 0; i < n; last = v[i++].number) {
		require(v[i].number > last && v[i].number < next && v[i].what < LOSS_KINDS);
		require(v[i].min_ns >= 0 && v[i].min_ns <= v[i].max_ns);
		loss_print(&v[i], &text);
	}
	buf_release(&text);
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf b = { 0 };

	try((struct str){ (const char *)data, size });
	buf_add(&b, data, size);
	buf_add_u64be(&b, hash_bytes(data, size, 0));
	try(buf_str(&b));
	buf_release(&b);
	return 0;
}
