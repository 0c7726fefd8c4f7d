/*
 * fuzz: tsdb
 * An inventory as a damaged disk could hand it out: as it is, and with the checksum that its bytes
 * would have, so that what stands before it is read too. What is read is in order, each entry
 * once, and is written as it was read.
 */
#include "base/map.h"
#include "tests/fuzz/fuzz.h"
#include "tsdb/lists/inventory.h"

static void try(struct str bytes)
{
	struct inventory_entry *v, *again;
	uint64_t generation, same;
	struct buf out = { 0 };
	struct arena a;
	struct err err;
	size_t n, m;

	arena_init(&a, 0);
	if (inventory_decode(bytes, "inventory", &a, &generation, &v, &n, &err)) {
		require(err.code == ERR_CORRUPT || err.code == ERR_UNSUPPORTED);
	} else {
		for (size_t i = 0; i < n; i++)
			require(v[i].min_ns >= 0 && v[i].max_ns >= v[i].min_ns);
		inventory_encode(generation, v, n, &out);
		require(!inventory_decode(buf_str(&out), "inventory", &a, &same, &again, &m, &err));
		require(m == n && same == generation);
		for (size_t i = 0; i < n; i++)
			require(memcmp(&v[i], &again[i], sizeof(v[i])) == 0);
	}
	buf_release(&out);
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf b = { 0 };

	try((struct str){ (const char *)data, size });
	buf_add_char(&b, 1);
	buf_add_u32be(&b, (uint32_t)size);
	buf_add(&b, data, size);
	buf_add_u64be(&b, hash_bytes(b.ptr, b.len, 0));
	try(buf_str(&b));
	buf_release(&b);
	return 0;
}
