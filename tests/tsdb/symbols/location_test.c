#include <string.h>

#include "tests/check.h"
#include "tsdb/symbols/partition.h"

/* Whatever a sender says comes back, also what the short form has no room for. */
TEST(every_location_comes_back)
{
	static const uint64_t addresses[] = { 0, 1, 0x7fffffffffff, 0x800000000000, 0xffffffff81000000,
		UINT64_C(1) << 47, UINT64_C(1) << 63, SYM_NO_ADDRESS - 1, SYM_NO_ADDRESS };
	static const uint32_t mappings[] = { 0, LOCATION_MAPPING_NONE - 1, LOCATION_MAPPING_NONE,
		LOCATION_MAPPING_NONE + 1, SYM_MAPPINGS_MAX - 1, SYM_NONE };
	static const struct sym_line lines[] = { { 1, INT64_MIN, INT32_MIN },
		{ 2, INT64_MAX, INT32_MAX }, { 0, 0, 0 } };
	static const struct symbol_limits limits = { 10000, 10000, 1000, 1 << 30 };
	struct partition *p;
	struct err err;
	const size_t cases = 9 * 6 * 4 * 2;

	REQUIRE_OK(partition_open(STR("job"), 1, 0, &limits, &p, &err), &err);
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < cases; i++) {
			const struct sym_location l = { .address = addresses[i % 9],
				.mapping = mappings[i / 9 % 6],
				.lines_n = i / 54 % 4,
				.is_folded = i / 216,
				.lines = lines };
			union sym_content c = { .location = l };
			struct sym_location got;

			if (!round)
				REQUIRE(sym_put_location(p, i, &l));
			got = sym_location(p, i);
			CHECK(sym_content_same(p, SYM_LOCATION, i, &c));
			CHECK_INT(got.mapping, l.mapping);
			CHECK_INT(got.lines_n, l.lines_n);
			CHECK(got.address == l.address && got.is_folded == l.is_folded);
			CHECK(!memcmp(got.lines, lines, l.lines_n * sizeof(*lines)));
		}
	CHECK_INT(sym_location(p, cases).lines_n, 0); /* a hole */
	partition_close(p);
}
