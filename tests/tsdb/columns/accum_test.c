#include "base/map.h"
#include "tests/check.h"
#include "tsdb/columns/accum.h"
#include "tsdb/symbols/partition.h"

static struct partition *open_partition(void)
{
	const struct symbol_limits limits = { 1000, 1000, 1000, 1 << 20 };
	struct partition *p = NULL;
	struct err err;

	CHECK_OK(partition_open(STR("job"), 0, 0, &limits, &p, &err), &err);
	return p;
}

TEST(cells_come_out_in_order)
{
	static const uint32_t stacks[] = { 3, 3, 5000, 70000, 70000, 70001 },
						  sets[] = { 0, 2, 0, 1, 9, 0 };
	static const int64_t values[] = { 1, 2, 3, 4, 5, -6 };
	static const struct accum_cell by_labels[] = { { 3, 0, 2 }, { 3, 2, 4 }, { 5000, 0, 6 },
		{ 70000, 1, 8 }, { 70000, 9, 10 }, { 70001, 0, -12 } };
	static const struct accum_cell plain[] = { { 3, 0, 6 }, { 5000, 0, 6 }, { 70000, 0, 18 },
		{ 70001, 0, -12 } };
	struct partition *p = open_partition();
	struct err err;

	for (unsigned flags = 0; flags < 4; flags++) {
		const struct accum_cell *want = flags & ACCUM_BY_LABELS ? by_labels : plain;
		size_t want_n = flags & ACCUM_BY_LABELS ? 6 : 4, at = 0, i = 0;
		int64_t weight = flags & ACCUM_WEIGHTED ? 10 : 1;
		struct accum *a, *b;
		struct accum_cell cell;

		REQUIRE_OK(accum_open(p, flags, &a, &err), &err);
		REQUIRE_OK(accum_open(p, flags, &b, &err), &err);
		CHECK_OK(accum_add(a, stacks, sets, values, 6, weight, &err), &err);
		CHECK_OK(accum_add(b, stacks, sets, values, 6, weight, &err), &err);
		/* A value and its opposite leave no cell. */
		CHECK_OK(
			accum_add(b, (const uint32_t[]){ 8, 8 }, NULL, (const int64_t[]){ 7, -7 }, 2, 1, &err),
			&err);
		CHECK_OK(accum_merge(a, b, &err), &err);
		CHECK_OK(accum_seal(a, &err), &err);
		CHECK_INT(accum_cells_n(a), want_n);
		for (; accum_next(a, &at, &cell); i++) {
			REQUIRE(i < want_n);
			CHECK_INT(cell.stack, want[i].stack);
			CHECK_INT(cell.label_set, want[i].label_set);
			CHECK_INT(cell.value, want[i].value * weight);
		}
		CHECK_INT(i, want_n);
		CHECK(accum_bytes(a) > 0);
		accum_close(a);
		accum_close(b);
	}
	partition_close(p);
}

TEST(overflow_is_an_error)
{
	struct partition *p = open_partition();
	const uint32_t stack = 4, set = 3;
	const int64_t most = INT64_MAX, one = 1;
	struct accum *a;
	struct accum_cell cell;
	struct err err;
	size_t at = 0;

	for (int labels = 0; labels < 2; labels++) {
		REQUIRE_OK(accum_open(p, labels ? ACCUM_BY_LABELS : 0, &a, &err), &err);
		CHECK_OK(accum_add(a, &stack, labels ? &set : NULL, &most, 1, 1, &err), &err);
		CHECK_ERR(accum_add(a, &stack, labels ? &set : NULL, &one, 1, 1, &err), &err, ERR_LIMIT,
			"sum exceeds 64 bits");
		accum_close(a);
	}
	REQUIRE_OK(accum_open(p, ACCUM_WEIGHTED, &a, &err), &err);
	CHECK_OK(accum_add(a, &stack, NULL, &most, 1, INT64_MAX, &err), &err);
	CHECK_OK(accum_add(a, &stack, NULL, &one, 1, 1, &err), &err);
	CHECK_OK(accum_seal(a, &err), &err);
	REQUIRE(accum_next(a, &at, &cell));
	CHECK(cell.value == (__int128)INT64_MAX * INT64_MAX + 1);
	CHECK_OK(accum_add(a, &stack, NULL, &most, 1, INT64_MAX, &err), &err);
	CHECK_ERR(accum_add(a, &stack, NULL, &most, 1, INT64_MAX, &err), &err, ERR_LIMIT,
		"sum exceeds 128 bits");
	accum_close(a);
	partition_close(p);
}

TEST(many_label_sets)
{
	enum { N = 50000 };
	struct partition *p = open_partition();
	struct accum *a;
	struct accum_cell cell;
	struct err err;
	size_t at = 0, n = 0;
	int64_t total = 0;

	REQUIRE_OK(accum_open(p, ACCUM_BY_LABELS, &a, &err), &err);
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < N; i++) {
			uint32_t stack = (uint32_t)hash_u64(i) % 1000, set = i % 321;
			int64_t v = i;

			CHECK_OK(accum_add(a, &stack, &set, &v, 1, 1, &err), &err);
		}
	CHECK_OK(accum_seal(a, &err), &err);
	for (uint64_t before = 0; accum_next(a, &at, &cell); n++) {
		uint64_t key = (uint64_t)cell.stack << 32 | cell.label_set;

		CHECK(n == 0 || key > before);
		before = key;
		total += (int64_t)cell.value;
	}
	CHECK_INT(n, accum_cells_n(a));
	CHECK_INT(total, (int64_t)N * (N - 1));
	accum_close(a);
	partition_close(p);
}

TEST(pages_show_cells_as_they_lie)
{
	const uint32_t stacks[] = { 3, 3, 5000, 5001 };
	const int64_t values[] = { 1, 2, 4, -4 };
	struct accum_cell cell;
	struct accum *a;
	struct err err;
	size_t at = 0;

	REQUIRE_OK(accum_open(NULL, 0, &a, &err), &err);
	CHECK_INT(accum_pages_n(a), 0);
	CHECK(!accum_page(a, 0));
	CHECK_OK(accum_add(a, stacks, NULL, values, 4, 1, &err), &err);
	CHECK(accum_pages_n(a) > 5000 / ACCUM_PAGE);
	REQUIRE(accum_page(a, 0) && accum_page(a, 5000 / ACCUM_PAGE));
	CHECK_INT(accum_page(a, 0)[3], 3);
	CHECK_INT(accum_page(a, 5000 / ACCUM_PAGE)[5001 % ACCUM_PAGE], -4);
	CHECK(!accum_page(a, 1) && !accum_page(a, 100000));
	REQUIRE(accum_page_make(a, 1));
	CHECK(accum_page(a, 1) == accum_page_make(a, 1));
	CHECK_INT(accum_page(a, 1)[0], 0);
	accum_clear(a);
	CHECK_INT(accum_pages_n(a), 0);
	CHECK(!accum_has_negative(a));
	CHECK_OK(accum_add(a, stacks, NULL, values, 1, 1, &err), &err);
	CHECK_OK(accum_seal(a, &err), &err);
	CHECK(accum_next(a, &at, &cell) && cell.stack == 3 && cell.value == 1);
	CHECK(!accum_next(a, &at, &cell));
	accum_close(a);
}
