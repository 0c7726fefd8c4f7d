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
			uint32_t stack = (uint32_t)map_hash_u64(i) % 1000, set = i % 321;
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

/* ---- bytes times a factor ---- */

static uint64_t state = 3;

static uint64_t draw(uint64_t below)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return map_hash_u64(state) % below;
}

static void check_same(struct accum *a, struct accum *b)
{
	struct accum_cell x, y;
	size_t at = 0, other = 0, n = 0;
	struct err err;
	bool more;

	CHECK_OK(accum_seal(a, &err), &err);
	CHECK_OK(accum_seal(b, &err), &err);
	while ((more = accum_next(a, &at, &x)) == accum_next(b, &other, &y) && more) {
		CHECK(x.stack == y.stack && x.label_set == y.label_set && x.value == y.value);
		n++;
	}
	CHECK(!more);
	CHECK_INT(accum_cells_n(a), n);
	CHECK_INT(accum_cells_n(b), n);
	CHECK_INT(accum_has_negative(a), accum_has_negative(b));
}

TEST(bytes_are_added_as_values_are)
{
	enum { MOST = 700 };
	static const uint64_t factors[] = { 1, 10000000, 0, UINT64_C(1) << 40 };
	struct partition *p = open_partition();
	static uint32_t stacks[MOST], sets[MOST];
	static unsigned char bytes[MOST];
	static int64_t values[MOST];
	struct accum *a, *b;
	struct err err;

	for (unsigned round = 0; round < 400; round++) {
		unsigned flags = round % 4;

		REQUIRE_OK(accum_open(p, flags, &a, &err), &err);
		REQUIRE_OK(accum_open(p, flags, &b, &err), &err);
		for (unsigned row = 0; row < 6; row++) {
			uint32_t n = (uint32_t)draw(MOST + 1), stack = (uint32_t)draw(5000);
			uint64_t factor = factors[draw(4)];
			int64_t weight = flags & ACCUM_WEIGHTED ? (int64_t)draw(1000) - 500 : 1;
			bool labels = draw(2);

			for (uint32_t i = 0; i < n; i++) {
				stack += (uint32_t)draw(draw(50) ? 8 : 9000);
				stacks[i] = stack;
				sets[i] = draw(3) ? 0 : (uint32_t)draw(5);
				bytes[i] = (unsigned char)draw(128);
				values[i] = (int64_t)(bytes[i] * factor);
			}
			CHECK_OK(
				accum_add_bytes(a, stacks, labels ? sets : NULL, bytes, factor, n, weight, &err),
				&err);
			CHECK_OK(accum_add(b, stacks, labels ? sets : NULL, values, n, weight, &err), &err);
			if (row == 3 && n) { /* from here on there is a value below 0 */
				values[0] = -values[0] - 1;
				CHECK_OK(accum_add(a, stacks, NULL, values, 1, 1, &err), &err);
				CHECK_OK(accum_add(b, stacks, NULL, values, 1, 1, &err), &err);
			}
		}
		check_same(a, b);
		accum_close(a);
		accum_close(b);
	}
	partition_close(p);
}

TEST(overflow_by_bytes)
{
	struct partition *p = open_partition();
	const uint32_t stacks[3] = { 4, 5, 6 };
	const unsigned char bytes[3] = { 0, 127, 1 }, one[3] = { 0, 1, 0 };
	const uint64_t factor = UINT64_C(1) << 56;
	struct accum *a;
	struct err err;

	for (int64_t before = -1; before <= 1; before++) {
		/* 127 x 2^56 + 2^56 - 1 is the most that there is. */
		const int64_t values[3] = { before, (INT64_C(1) << 56) - 1, 0 };

		REQUIRE_OK(accum_open(p, 0, &a, &err), &err);
		CHECK_OK(accum_add_bytes(a, stacks, NULL, bytes, factor, 3, 1, &err), &err);
		CHECK_OK(accum_add(a, stacks, NULL, values, 3, 1, &err), &err);
		CHECK_ERR(accum_add_bytes(a, stacks, NULL, one, 1, 3, 1, &err), &err, ERR_LIMIT,
			"sum exceeds 64 bits");
		/* And it stays so. */
		CHECK_ERR(accum_add_bytes(a, stacks, NULL, one, 0, 3, 1, &err), &err, ERR_LIMIT,
			"sum exceeds 64 bits");
		accum_close(a);
	}
	partition_close(p);
}

/* ---- values that are weighted already ---- */

TEST(wide_values_are_added_as_weighted_ones_are)
{
	enum { MOST = 700 };
	static uint32_t stacks[MOST], sets[MOST];
	static int64_t values[MOST];
	static __int128 wide[MOST];
	struct partition *p = open_partition();
	struct accum *a, *b;
	struct err err;

	for (unsigned round = 0; round < 200; round++) {
		unsigned flags = ACCUM_WEIGHTED | (round % 2 ? ACCUM_BY_LABELS : 0);

		REQUIRE_OK(accum_open(p, flags, &a, &err), &err);
		REQUIRE_OK(accum_open(p, flags, &b, &err), &err);
		for (unsigned row = 0; row < 6; row++) {
			uint32_t n = (uint32_t)draw(MOST + 1), stack = (uint32_t)draw(5000);
			int64_t weight = (int64_t)draw(INT64_C(1) << 50);
			bool labels = draw(2);

			for (uint32_t i = 0; i < n; i++) {
				stack += (uint32_t)draw(draw(50) ? 8 : 9000);
				stacks[i] = stack;
				sets[i] = draw(3) ? 0 : (uint32_t)draw(5);
				values[i] = draw(4) ? (int64_t)draw(INT64_MAX) : 0;
				values[i] = row == 5 && draw(2) ? -values[i] : values[i];
				wide[i] = (__int128)values[i] * weight;
			}
			CHECK_OK(accum_add_wide(a, stacks, labels ? sets : NULL, wide, n, &err), &err);
			CHECK_OK(accum_add(b, stacks, labels ? sets : NULL, values, n, weight, &err), &err);
			if (row >= 4)
				check_same(a, b);
		}
		accum_close(a);
		accum_close(b);
	}
	partition_close(p);
}

TEST(overflow_by_wide_values)
{
	const __int128 most = (__int128)(~(unsigned __int128)0 >> 1), one = 1;
	const uint32_t stack = 4, set = 3;
	struct accum_cell cell;
	struct accum *a;
	struct err err;

	for (int labels = 0; labels < 2; labels++) {
		const uint32_t *sets = labels ? &set : NULL;
		size_t at = 0;

		REQUIRE_OK(accum_open(NULL, ACCUM_WEIGHTED | ACCUM_BY_LABELS, &a, &err), &err);
		CHECK_OK(accum_add_wide(a, &stack, sets, &most, 1, &err), &err);
		CHECK_OK(accum_seal(a, &err), &err);
		CHECK(accum_next(a, &at, &cell) && cell.value == most);
		CHECK_ERR(accum_add_wide(a, &stack, sets, &one, 1, &err), &err, ERR_LIMIT,
			"sum exceeds 128 bits");
		accum_close(a);
	}
}

/* Cells at both ends of chunks and words; sums of 128 bits whose low or high half alone is 0.
 * Sealed again after more was added. */
TEST(cells_at_the_ends)
{
	static const uint32_t stacks[] = { 0, 63, 64, 2047, 2048, 2111, 6143, 6144, 1u << 20 };
	enum { N = sizeof(stacks) / sizeof(stacks[0]) };
	static const int64_t values[N] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	struct partition *p = open_partition();
	struct accum *a;
	struct accum_cell cell;
	struct err err;

	for (unsigned flags = 0; flags < 4; flags++) {
		const int64_t weight = flags & ACCUM_WEIGHTED ? INT64_MAX / 2 + 1 : 1;

		REQUIRE_OK(accum_open(p, flags, &a, &err), &err);
		for (int times = 1; times <= 4; times++) {
			size_t at = 0, i = 0;

			CHECK_OK(accum_add(a, stacks, NULL, values, N, weight, &err), &err);
			CHECK_OK(accum_seal(a, &err), &err);
			CHECK_INT(accum_cells_n(a), N);
			for (; i < N && accum_next(a, &at, &cell); i++)
				CHECK(cell.stack == stacks[i] && cell.label_set == 0 &&
					cell.value == (__int128)times * weight);
			CHECK_INT(i, N);
			CHECK(!accum_next(a, &at, &cell));
			CHECK(!accum_next(a, &at, &cell));
		}
		accum_close(a);
	}
	partition_close(p);
}
