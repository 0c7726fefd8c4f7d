/*
 * fuzz: tsdb
 * Links of a row as a damaged disk could hand them out: decoding stays within the bytes and within
 * the arrays, and what decodes encodes again to links that say the same. The checksum is set
 * right, so that the fuzzer gets behind it.
 */
#include <stdlib.h>

#include "base/map.h"
#include "tests/fuzz/fuzz.h"
#include "tsdb/columns/links.h"

#define TS 1000
#define HEAD_BYTES 5u

static bool ascends(const struct row *r)
{
	for (uint32_t i = 1; i < r->n; i++)
		if (r->stacks[i] == r->stacks[i - 1] && r->label_sets[i] < r->label_sets[i - 1])
			return false;
	return true;
}

static void check_again(const struct links_unpacked *u)
{
	struct links_unpacked again = { 0 };
	const struct row *a = &u->row, *b = &again.row;
	struct buf bytes = { 0 };

	if (links_encode(&u->links, a, TS, &bytes, NULL)) { /* a total exceeds 64 bits */
		buf_release(&bytes);
		return;
	}
	require(!links_unpack(&again, buf_str(&bytes), TS, NULL));
	require(again.links.dropped == u->links.dropped && again.links.spans_n == u->links.spans_n);
	require(!memcmp(again.links.spans, u->links.spans, u->links.spans_n * sizeof(*u->links.spans)));
	require(a->n == b->n && a->columns_n == b->columns_n && a->header == b->header);
	require(!memcmp(a->stacks, b->stacks, a->n * sizeof(*a->stacks)));
	require(!memcmp(a->label_sets, b->label_sets, a->n * sizeof(*a->label_sets)));
	require(!memcmp(u->links.of, again.links.of, a->n * sizeof(*u->links.of)));
	require(!memcmp(a->values, b->values, (size_t)a->n * a->columns_n * sizeof(*a->values)));
	links_unpacked_release(&again);
	buf_release(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct links_unpacked u = { 0 };
	unsigned char *bytes = malloc(size + 1);
	uint32_t sum;

	require(bytes);
	if (size)
		memcpy(bytes, data, size);
	if (size >= HEAD_BYTES) {
		sum = (uint32_t)hash_bytes(bytes + HEAD_BYTES, size - HEAD_BYTES, 0);
		for (int i = 0; i < 4; i++)
			bytes[1 + i] = (unsigned char)(sum >> (24 - 8 * i));
	}
	if (!links_unpack(&u, (struct str){ (const char *)bytes, size }, TS, NULL)) {
		require(u.row.n <= LINKS_ROW_MAX && u.row.n <= size);
		for (uint32_t i = 0; i < u.row.n; i++)
			require(u.links.of[i] < u.links.spans_n);
		if (ascends(&u.row))
			check_again(&u);
	}
	links_unpacked_release(&u);
	free(bytes);
	return 0;
}
