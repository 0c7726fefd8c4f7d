/* Rollups of levels count missed scrapes where windows are of whole hours: when windows are cut,
 * when blocks are joined, and when rollups are made anew. */
#include <stdlib.h>

#include "tests/check.h"
#include "tests/tsdb/town.h"
#include "tsdb/block/block.h"

#define HOUR_S 3600
#define EVERY_S 60
#define START_S (T0 + 4 * HOUR_S) /* four windows of 2 h from here on are joined */
#define END_S (START_S + 8 * HOUR_S)
#define ROWS_MAX (14 * HOUR_S / EVERY_S)

static const char *const types[] = { "bytes/count", NULL };
static const char *const lines[] = { "main;work 1", NULL };

struct bed {
	struct town w;
	int64_t ts_s[ROWS_MAX]; /* rows up to END_S */
	size_t n;
};

static bool bed_set_window(struct bed *b, int64_t window_s)
{
	b->w.f.o.window_ns = window_s * SEC;
	b->w.f.o.too_old_ns = 0;
	b->w.f.o.block_max_ns = 8 * HOUR_S * SEC;
	return fixture_reopen(&b->w.f);
}

static bool bed_open(struct bed *b, int64_t window_s)
{
	*b = (struct bed){ 0 };
	return town_open(&b->w) && bed_set_window(b, window_s);
}

static bool bed_append(struct bed *b, int64_t ts_s)
{
	static const enum value_kind kind = KIND_GAUGE;
	struct arena a;
	enum err_code rc;

	arena_init(&a, 0);
	rc = append_wait(b->w.f.db, labels_of(&a, "p", "job", "i"), ts_s * SEC, EVERY_S * SEC,
		profile_of(&a, types, lines), &kind, false, NULL, &b->w.f.err);
	arena_release(&a);
	if (ts_s <= END_S)
		b->ts_s[b->n++] = ts_s;
	return rc == ERR_OK;
}

/* Rows in (from, to]; each 13th is missing, and now and then the one behind it too. `without`: one
 * more that is missing. */
static bool bed_fill(struct bed *b, int64_t from_s, int64_t to_s, int64_t without_s)
{
	for (int64_t ts = from_s + EVERY_S; ts <= to_s; ts += EVERY_S) {
		int64_t i = (ts - START_S) / EVERY_S;

		if (i % 13 == 7 || i % 65 == 8 || ts == without_s)
			continue;
		if (!bed_append(b, ts))
			return false;
	}
	return true;
}

/* What rows in (from, to] count, if no others are known. */
static int64_t bed_want_s(const struct bed *b, int64_t from_s, int64_t to_s, bool missed)
{
	int64_t sum = 0, before = 0, gap;
	int gaps = 0, in_time = 0;

	for (size_t i = 0; i < b->n; i++) {
		int64_t ts = b->ts_s[i];

		if (ts <= from_s || ts > to_s)
			continue;
		sum += EVERY_S;
		gap = ts - before;
		if (!before || (ts - 1) / HOUR_S != (before - 1) / HOUR_S) {
			gaps = in_time = 0;
		} else {
			if (missed && gap == 2 * EVERY_S && gaps >= 2 && 4 * in_time >= 3 * gaps)
				sum += EVERY_S;
			gaps++;
			in_time += gap == EVERY_S;
		}
		before = ts;
	}
	return sum;
}

static void finding(void *ctx, const char *what)
{
	CHECK_FAIL("finding: %s", what);
}

struct counted {
	size_t blocks, missed, plain; /* records of the finest level */
	int64_t spans_s;
};

/* Rollups of all blocks up to END_S, which verify. Of the series and its group: they are alike. */
static struct counted bed_count(struct bed *b)
{
	struct rollup_view *v = rollup_view_open();
	struct counted out = { 0 };
	struct block_rollups *it;
	int64_t step_ns;
	struct str bytes;
	struct err err;

	for (size_t i = 0; v && i < b->w.f.db->blocks_n; i++) {
		struct block *block = b->w.f.db->blocks[i]->block;

		if (block_meta(block)->min_ns >= END_S * SEC)
			break;
		out.blocks++;
		CHECK_OK(block_verify(block, finding, NULL, &err), &err);
		CHECK_OK(block_rollups_open(block, true, &it, &err), &err);
		block_rollups_seek(it, ROLLUP_SERIES, 0, 0, 0, INT64_MAX);
		while (!block_rollups_next(it, &bytes, &step_ns, &err)) {
			CHECK_OK(rollup_parse(v, bytes, &err), &err);
			out.missed += rollup_counts_missed(v);
			out.plain += !rollup_counts_missed(v);
			CHECK_INT(rollup_columns_n(v), 1);
			CHECK(rollup_column(v, 0)->total == rollup_column(v, 0)->elapsed_ns);
			out.spans_s += (int64_t)(rollup_column(v, 0)->elapsed_ns / SEC);
		}
		block_rollups_close(it);
	}
	rollup_view_close(v);
	return out;
}

static void bed_close(struct bed *b)
{
	CHECK_INT(town_failures, 0);
	town_close(&b->w);
}

TEST(windows_of_whole_hours_count_missed_scrapes)
{
	static const struct {
		int64_t window_s;
		bool missed;
	} cases[] = { { 2 * HOUR_S, true }, { HOUR_S, true }, { HOUR_S / 2, false },
		{ HOUR_S * 3 / 2, false } };
	struct counted got;
	struct bed b;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		REQUIRE(bed_open(&b, cases[i].window_s));
		REQUIRE(bed_fill(&b, START_S, END_S + 2 * cases[i].window_s + 2 * EVERY_S, 0));
		town_compact(&b.w);
		got = bed_count(&b);
		CHECK_INT(got.missed > 0, cases[i].missed);
		CHECK_INT(got.plain > 0, !cases[i].missed);
		CHECK_INT(got.spans_s, bed_want_s(&b, 0, END_S, cases[i].missed));
		bed_close(&b);
	}
}

/* Windows had another length before, and so two blocks share an hour: what is missing between them
 * is not in the rollups of either, and is in that of both. */
TEST(blocks_that_share_an_hour)
{
	const int64_t middle_s = START_S + HOUR_S / 2;
	struct counted got;
	struct bed b;

	REQUIRE(bed_open(&b, HOUR_S / 2));
	REQUIRE(bed_fill(&b, START_S, middle_s, middle_s));
	REQUIRE(bed_set_window(&b, 2 * HOUR_S));
	REQUIRE(bed_fill(&b, middle_s, START_S + 4 * HOUR_S + 2 * EVERY_S, 0));
	town_compact(&b.w);
	got = bed_count(&b);
	CHECK_INT(got.blocks, 3);
	CHECK_INT(got.missed, 5);
	CHECK_INT(got.spans_s,
		bed_want_s(&b, START_S, middle_s, true) +
			bed_want_s(&b, middle_s, START_S + 4 * HOUR_S, true));
	CHECK(got.spans_s < bed_want_s(&b, START_S, START_S + 4 * HOUR_S, true));
	REQUIRE(bed_fill(&b, START_S + 4 * HOUR_S + 2 * EVERY_S, END_S + 2 * HOUR_S + 2 * EVERY_S, 0));
	town_compact(&b.w);
	got = bed_count(&b);
	CHECK_INT(got.blocks, 1);
	CHECK_INT(got.missed, 8);
	CHECK_INT(got.spans_s, bed_want_s(&b, START_S, END_S, true));
	bed_close(&b);
}

/* The row behind a deleted one counts as if that had never been there. Whether missed scrapes count
 * is as it was in the rollup before, not as windows are now. */
TEST(rollups_made_anew_count_missed_scrapes_as_before)
{
	const int64_t gone_s = START_S + HOUR_S / 2;
	struct counted got;
	struct bed b;

	for (int missed = 0; missed < 2; missed++) {
		struct matcher m;

		REQUIRE(bed_open(&b, missed ? 2 * HOUR_S : HOUR_S / 2));
		REQUIRE(bed_fill(&b, START_S, START_S + 4 * HOUR_S + 2 * EVERY_S, 0));
		town_compact(&b.w);
		REQUIRE(bed_set_window(&b, missed ? HOUR_S / 2 : 2 * HOUR_S));
		REQUIRE_OK(matcher_init(&m, MATCH_EQ, STR("job"), STR("job"), &b.w.f.err), &b.w.f.err);
		CHECK_OK(
			db_delete_series(b.w.f.db, &m, 1, (gone_s - EVERY_S) * SEC, gone_s * SEC, &b.w.f.err),
			&b.w.f.err);
		for (size_t i = 0; i < b.n; i++)
			if (b.ts_s[i] == gone_s) {
				memmove(&b.ts_s[i], &b.ts_s[i + 1], (b.n - i - 1) * sizeof(b.ts_s[0]));
				b.n--;
			}
		REQUIRE(bed_fill(&b, START_S + 4 * HOUR_S + 2 * EVERY_S, END_S + 4 * HOUR_S, 0));
		town_compact(&b.w);
		got = bed_count(&b);
		CHECK(got.missed && got.plain);
		CHECK_INT(got.spans_s,
			bed_want_s(&b, START_S, START_S + 4 * HOUR_S, missed) +
				bed_want_s(&b, START_S + 4 * HOUR_S, END_S, !missed));
		bed_close(&b);
	}
}
