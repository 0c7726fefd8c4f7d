/*
 * fuzz: tsdb/debuginfo/extract
 * A whole ELF file, with small limits. What was read makes an index that is sound.
 */
#include "tests/fuzz/fuzz.h"
#include "tsdb/debuginfo/extract/extract.h"

static const struct symindex_limits limits = {
	.strings_bytes_max = 1u << 20,
	.segments_max = 20000,
	.frames_max = 20000,
	.functions_max = 5000,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symindex_location v[4];
	struct buf out = { 0 };
	struct err err = { 0 };
	struct symindex *x;
	uint64_t address;

	if (debuginfo_extract_limited((struct str){ (const char *)data, size }, &limits, &out, &err)) {
		require(err.msg[0] && !out.len);
	} else {
		require(!symindex_open(buf_str(&out), &x, &err));
		require(symindex_best(x) && symindex_loads(x) <= SYMINDEX_LOADS_MAX);
		if (symindex_address(x, 0x1000, 0x10, &address))
			symindex_find(x, address, v, 4);
		require(!symindex_damaged(x, &err));
		symindex_close(x);
	}
	buf_release(&out);
	return 0;
}
