#include "tsdb/columns/coding.h"

#include "tests/tsdb/columns/chunk_rows.h"

/* Together they have each coding. */
static const struct shape shapes[] = {
	{ "one empty row", 1, 0, 0, 0, false, false, 1, { LEVEL } },
	{ "one row", 1, 40, 0, 50, false, false, 2, { SMALL, LEVEL } },
	{ "two rows", 2, 40, 0, 50, false, false, 2, { LEVEL, SMALL } },
	{ "cpu", 60, 50, 0, 20, false, false, 3, { SMALL, TIMES, ZEROS } },
	{ "levels", 80, 40, 0, 95, true, true, 4, { SPARSE, WILD, LEVEL, LEVEL } },
	{ "labels", 40, 30, 5, 60, false, true, 3, { LEVEL, SIGNED, SMALL } },
	{ "go heap", 90, 20, 7, 40, false, false, 4,
		{ NEW_BYTES, NEW_OBJECTS, LIVE_BYTES, LIVE_OBJECTS } },
	{ "anew", 90, 8, 7, 60, false, false, 4, { NEW_BYTES, NEW_OBJECTS, LIVE_BYTES, LIVE_OBJECTS },
		30 },
	{ "extremes", 17, 9, 2, 70, true, false, 2, { EXTREME, EXTREME } },
	{ "more keys than a batch", 4, 1100, 1, 70, false, true, 2, { LEVEL, SIGNED } },
	{ "longest", 1024, 6, 0, 70, false, false, 2, { SMALL, LEVEL } },
};

static int64_t ends[ROWS_MAX + 1];

/* Weights as of scrapes, a few missing; none; or as long as 64 bits take. */
static void make_ends(unsigned how)
{
	ends[0] = how == 2 ? INT64_MIN : (int64_t)(draw() % 1000);
	for (uint32_t r = 0; r < w.rows_n; r++) {
		const int64_t weight[] = { 10000000000 << (draw() % 8 == 0), (int64_t)(draw() % 2),
			INT64_MAX / w.rows_n };

		ends[r + 1] = ends[r] + weight[how];
	}
}

static bool coding_seen[CODINGS_N];

static void note_codings(const struct chunk *c)
{
	for (uint32_t k = 0; k < c->columns_n; k++)
		for (unsigned i = 0; i < CODINGS_N; i++)
			coding_seen[i] |= c->columns[k].coding == codings[i];
}

static void check_spans(const char *name, struct chunk *c, struct partition *p, uint32_t column,
	uint32_t from, uint32_t to, unsigned flags)
{
	struct accum *spans, *rows;
	struct err err;

	REQUIRE_OK(accum_open(p, flags | ACCUM_WEIGHTED, &spans, &err), &err);
	REQUIRE_OK(accum_open(p, flags | ACCUM_WEIGHTED, &rows, &err), &err);
	for (uint32_t r = from; r < to; r++)
		CHECK_OK(chunk_add(c, column, r, r + 1, ends[r + 1] - ends[r], rows, &err), &err);
	CHECK_OK(chunk_add_spans(c, column, from, to, ends, spans, &err), &err);
	check_same_sums(name, spans, rows);
	accum_close(spans);
	accum_close(rows);
}

static void parse_world(const struct shape *s, struct chunk *c, struct buf *b)
{
	struct err err;

	make_world(s);
	buf_clear(b);
	REQUIRE_OK(chunk_encode(w.ts, w.rows, w.rows_n, w.kinds, b, &err), &err);
	REQUIRE_OK(chunk_parse(c, buf_str(b), &err), &err);
	note_codings(c);
}

TEST(weights_of_rows_of_each_coding)
{
	struct partition *p = open_partition();
	struct chunk *c = chunk_open();
	struct buf b = { 0 };

	REQUIRE(c && p);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		parse_world(&shapes[i], c, &b);
		for (uint32_t k = 0; k < w.columns_n; k++)
			for (unsigned how = 0; how < 3; how++) {
				uint32_t from = (uint32_t)(draw() % (w.rows_n + 1));
				uint32_t to = from + (uint32_t)(draw() % (w.rows_n - from + 1));

				make_ends(how);
				check_spans(shapes[i].name, c, p, k, 0, w.rows_n, how % 2 ? 0 : ACCUM_BY_LABELS);
				check_spans(shapes[i].name, c, p, k, from, to, how % 2 ? ACCUM_BY_LABELS : 0);
			}
	}
	for (unsigned i = 0; i < CODINGS_N; i++)
		if (!coding_seen[i])
			CHECK_FAIL("no column is %s", codings[i]->name);
	buf_release(&b);
	drop_world();
	chunk_close(c);
	partition_close(p);
}

TEST(weights_of_every_range)
{
	static const struct shape ranges[] = {
		{ "ranges", 19, 30, 1, 40, true, true, 4, { SMALL, WILD, SIGNED, LEVEL } },
		{ "ranges, anew", 24, 8, 7, 80, false, false, 4,
			{ NEW_BYTES, NEW_OBJECTS, LIVE_BYTES, LIVE_OBJECTS }, 11 },
	};
	struct partition *p = open_partition();
	struct chunk *c = chunk_open();
	struct buf b = { 0 };

	REQUIRE(c && p);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		parse_world(&ranges[i], c, &b);
		make_ends(0);
		for (uint32_t from = 0; from <= w.rows_n; from++)
			for (uint32_t to = from; to <= w.rows_n; to++)
				for (uint32_t k = 0; k < w.columns_n; k++)
					check_spans(ranges[i].name, c, p, k, from, to, ACCUM_BY_LABELS);
	}
	buf_release(&b);
	drop_world();
	chunk_close(c);
	partition_close(p);
}

/* One level per row, whose differences wrap; the sum of weighted ones takes 127 bits. */
TEST(weights_of_levels_of_64_bits)
{
	static const int64_t levels[][3] = {
		{ INT64_MIN, INT64_MAX, INT64_MIN },
		{ INT64_MAX, INT64_MIN, INT64_MAX },
		{ INT64_MAX, INT64_MAX, INT64_MAX },
		{ INT64_MIN, 0, INT64_MIN },
	};
	static const int64_t weights[] = { 0, 5, 5 + INT64_MAX / 2, INT64_MAX };
	const enum value_kind kind = KIND_GAUGE;
	const uint32_t stack = 7;
	struct partition *p = open_partition();
	struct chunk *c = chunk_open();
	struct buf b = { 0 };
	struct err err;

	REQUIRE(c && p);
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		struct row rows[3];
		struct accum_cell cell = { 0 };
		__int128 want = 0;
		struct accum *a;
		size_t at = 0;

		for (int r = 0; r < 3; r++) {
			rows[r] = (struct row){
				.interval_ns = 1, .n = 1, .columns_n = 1, .stacks = &stack, .values = &levels[i][r]
			};
			want += (__int128)levels[i][r] * (weights[r + 1] - weights[r]);
		}
		buf_clear(&b);
		REQUIRE_OK(chunk_encode((const int64_t[]){ 1, 2, 3 }, rows, 3, &kind, &b, &err), &err);
		REQUIRE_OK(chunk_parse(c, buf_str(&b), &err), &err);
		REQUIRE_OK(accum_open(p, ACCUM_WEIGHTED, &a, &err), &err);
		CHECK_OK(chunk_add_spans(c, 0, 0, 3, weights, a, &err), &err);
		CHECK_OK(accum_seal(a, &err), &err);
		CHECK(accum_next(a, &at, &cell) && cell.stack == stack && cell.value == want);
		CHECK_INT(accum_has_negative(a), want < 0);
		accum_close(a);
	}
	buf_release(&b);
	chunk_close(c);
	partition_close(p);
}
