/*
 * fuzz: tsdb/cluster
 * A shard's manifest as it is, and with the checksum that its bytes would have, so that what is
 * behind it is read too. What is read prints to a text that reads as the same again.
 */
#include <inttypes.h>

#include "base/map.h"
#include "tests/fuzz/fuzz.h"
#include "tsdb/cluster/manifest.h"

static bool check_key(void *ctx, const struct manifest_key *key, const struct manifest_file *f)
{
	require(strlen(key->text) < MANIFEST_KEY_BYTES_MAX - 1);
	return f->bytes > 0;
}

static void try(struct str text)
{
	struct buf again = { 0 }, twice = { 0 };
	struct manifest m, n;
	struct arena a;
	struct err err;

	arena_init(&a, 64 << 20);
	if (manifest_parse(text, &a, &m, &err)) {
		require(err.code == ERR_CORRUPT || err.code == ERR_UNSUPPORTED || err.code == ERR_LIMIT);
	} else {
		manifest_each_key(&m, check_key, NULL);
		manifest_print(&again, &m);
		require(!manifest_parse(buf_str(&again), &a, &n, &err));
		manifest_print(&twice, &n);
		require(str_eq(buf_str(&again), buf_str(&twice)));
	}
	buf_release(&again);
	buf_release(&twice);
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf b = { 0 };

	try((struct str){ (const char *)data, size });
	buf_add(&b, data, size);
	buf_printf(&b, "\"checksum\":\"%016" PRIx64 "\"}\n", hash_bytes(data, size, 0));
	try(buf_str(&b));
	buf_release(&b);
	return 0;
}
