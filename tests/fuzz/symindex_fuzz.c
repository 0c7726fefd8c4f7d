/*
 * fuzz: tsdb/debuginfo/index
 * An index as somebody could make one up, under right checksums: look-ups stay within its bytes.
 * One whose checksums are wrong gives no name.
 */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tsdb/debuginfo/index/format.h"

static void read_all(const struct symindex *x, const struct header *h)
{
	struct symindex_location v[8];
	struct symindex_load load;
	uint64_t sum = 0, step = (h->end - h->base) / 64 + 1, at = h->base;

	for (unsigned i = 0; i < 192; i++, at += i < 128 ? 1 : step) {
		size_t n = symindex_find(x, at, v, 8);

		require(n <= SYMINDEX_DEPTH_MAX);
		for (size_t k = 0; k < n && k < 8; k++) {
			struct str s[] = { v[k].name, v[k].raw, v[k].file };

			for (unsigned j = 0; j < 3; j++)
				for (size_t c = 0; c < s[j].len; c++)
					sum += (unsigned char)s[j].ptr[c];
		}
	}
	for (uint32_t i = 0; i < symindex_loads(x); i++)
		if (symindex_load_at(x, i, &load))
			symindex_address(x, load.offset & ~UINT64_C(4095), load.offset & 4095, &at);
	require(symindex_loads(x) <= SYMINDEX_LOADS_MAX && !symindex_load_at(x, UINT32_MAX, &load));
	symindex_find(x, 0, v, 8);
	symindex_find(x, UINT64_MAX, v, 8);
	require(sum != 1); /* so that the bytes are read */
}

/* The whole of it goes into a builder, or is refused. */
static void merge_all(const struct symindex *x)
{
	static const struct symindex_limits limits = { 1u << 20, 20000, 20000, 20000 };
	struct symindex_builder *b;
	struct buf out = { 0 };
	struct symindex *merged;
	struct err err;

	require(!symindex_builder_open(&limits, &b, &err));
	if (!symindex_add_index(b, x, &err)) {
		require(!symindex_finish(b, STR(""), &out, &err));
		require(!symindex_open(buf_str(&out), &merged, &err));
		symindex_close(merged);
	}
	symindex_builder_close(b);
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symindex *x;
	struct header h;
	struct err err;
	char *copy = malloc(size + 1);

	require(copy);
	memcpy(copy, data, size);
	if (size > FORMAT_HEADER_BYTES && size > FORMAT_HEADER_BYTES + pages_of_total(size) * 8)
		format_seal((unsigned char *)copy, size);
	if (!symindex_open((struct str){ copy, size }, &x, &err)) {
		require(!header_read((struct str){ copy, size }, &h, &err));
		read_all(x, &h);
		merge_all(x);
		symindex_close(x);
	}
	free(copy);
	return 0;
}
