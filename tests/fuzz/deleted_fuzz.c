/*
 * fuzz: tsdb
 * Lists of deleted ranges as a damaged disk could hand them out: with their own checksum, and with
 * a right one, so that what stands before it is read too. Ranges come out sorted and apart.
 */
#include "base/map.h"
#include "tests/fuzz/fuzz.h"
#include "tsdb/catalog/deleted.h"
#include "tsdb/series/series.h"

static void try(struct str bytes)
{
	const struct deleted_range *v;
	struct deleted d = { 0 };
	struct err err;
	size_t n = 0;

	if (deleted_decode(bytes, "deleted", (struct str){ 0 }, &d, &err)) {
		require(err.code == ERR_CORRUPT || err.code == ERR_NOMEM);
		return;
	}
	for (size_t i = 1; i < d.n; i++)
		require(d.v[i - 1].series < d.v[i].series ||
			(d.v[i - 1].series == d.v[i].series && d.v[i - 1].max_ns < d.v[i].min_ns));
	for (size_t i = 0; i < d.n; i += n) {
		n = deleted_of(d, d.v[i].series, &v);
		require(n && v == &d.v[i]);
		(void)!deleted_has(v, n, d.v[i].max_ns);
	}
	deleted_release(d.v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf b = { 0 };

	try((struct str){ (const char *)data, size });
	for (int old = 0; old < 2; old++) {
		buf_clear(&b);
		buf_add(&b, data, size);
		buf_add_u64be(&b, hash_bytes(data, size, old ? 0 : hash_bytes("", 0, 0)));
		try(buf_str(&b));
	}
	buf_release(&b);
	return 0;
}
