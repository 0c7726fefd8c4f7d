/*
 * fuzz: tsdb/debuginfo/extract
 * A whole ELF file, or a bundle of one and the files of its debug data, with small limits. What was
 * read makes an index that is sound, and adds nothing to itself.
 */
#include "tests/fuzz/fuzz.h"
#include "tsdb/debuginfo/extract/extract.h"

static const struct symindex_limits limits = {
	.strings_bytes_max = 1u << 20,
	.segments_max = 20000,
	.frames_max = 20000,
	.functions_max = 5000,
};

static void read_again(struct str input, struct str index)
{
	struct buf out = { 0 };
	struct err err = { 0 };

	if (debuginfo_extract_limited(input, index, &limits, &out, &err))
		require(err.code == ERR_LIMIT && !out.len);
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str input = { (const char *)data, size };
	struct symindex_location v[4];
	struct buf out = { 0 };
	struct err err = { 0 };
	struct symindex *x;
	uint64_t address;

	if (debuginfo_extract_limited(input, STR(""), &limits, &out, &err)) {
		require(err.msg[0] && !out.len);
	} else {
		require(!symindex_open(buf_str(&out), &x, &err));
		require(symindex_best(x) && symindex_loads(x) <= SYMINDEX_LOADS_MAX);
		if (symindex_address(x, 0x1000, 0x10, &address))
			symindex_find(x, address, v, 4);
		require(!symindex_damaged(x, &err));
		symindex_close(x);
		read_again(input, buf_str(&out));
	}
	buf_release(&out);
	return 0;
}
