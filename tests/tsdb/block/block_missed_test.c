/* Verifying blocks whose rollups count missed scrapes, and some whose hours do and do not. */
#include "tests/check.h"

#include "tests/tsdb/block/block_world.h"

#define HOUR (INT64_C(3600) * 1000000000)
#define INTERVAL (INT64_C(600) * 1000000000) /* of all rows */

static void finding(void *ctx, const char *what)
{
	CHECK_FAIL("finding: %s", what);
}

struct kinds {
	unsigned plain, missed; /* records */
	unsigned spans; /* columns in which a missed scrape counts */
};

static void count_kinds(struct block *b, uint32_t series_n, uint32_t level, struct kinds *out)
{
	struct rollup_view *v = rollup_view_open();
	struct block_rollups *it;
	struct str bytes;
	int64_t step_ns;
	struct err err;

	*out = (struct kinds){ 0 };
	REQUIRE(v);
	REQUIRE_OK(block_rollups_open(b, true, &it, &err), &err);
	for (uint32_t id = 0; id < series_n; id++) {
		block_rollups_seek(it, ROLLUP_SERIES, id, level, 0, INT64_MAX);
		while (!block_rollups_next(it, &bytes, &step_ns, &err)) {
			REQUIRE_OK(rollup_parse(v, bytes, &err), &err);
			out->missed += rollup_counts_missed(v);
			out->plain += !rollup_counts_missed(v);
			for (uint32_t i = 0; i < rollup_columns_n(v); i++)
				out->spans += rollup_column(v, i)->elapsed_ns >
					(__int128)rollup_column(v, i)->rows * INTERVAL;
		}
	}
	block_rollups_close(it);
	rollup_view_close(v);
}

static void check_block(int64_t missed_from_ns, unsigned levels, bool raw, struct kinds *out)
{
	const struct world_options o = { &fs_posix, levels, raw };
	struct err err, damaged;
	struct block_meta meta;
	struct block *b = NULL;
	struct world w;

	REQUIRE(world_open(&w, 11, 2, 6));
	w.missed_from_ns = missed_from_ns;
	REQUIRE_OK(world_write(&w, &o, &meta, &err), &err);
	REQUIRE_OK(block_open(w.block, NULL, NULL, &b, &damaged, &err), &err);
	CHECK_INT(damaged.code, ERR_OK);
	CHECK_OK(block_verify(b, finding, NULL, &err), &err);
	for (uint32_t level = 0; level < ROLLUP_LEVELS; level++)
		count_kinds(b, w.series_n, level, &out[level]);
	block_close(b);
	world_close(&w);
}

TEST(blocks_of_both_kinds_of_rollups_verify)
{
	static const struct {
		int64_t missed_from_ns;
		bool plain, missed;
	} cases[] = {
		{ INT64_MAX, true, false }, { WORLD_MIN_NS, false, true },
		{ WORLD_START_NS, true, true }, /* another day */
		{ WORLD_MIN_NS + 2 * HOUR, true, true }, /* within a day */
	};
	struct kinds got[ROLLUP_LEVELS];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (unsigned k = 0; k < 4; k++) {
			unsigned levels = k & 1 ? 3 : 1;

			check_block(cases[i].missed_from_ns, levels, k & 2, got);
			/* Some have no gauge, and are as if nothing was missed. */
			CHECK(got[0].plain && (got[0].plain > got[0].missed) == cases[i].plain);
			CHECK_INT(got[0].missed > 0, cases[i].missed);
			CHECK_INT(got[0].spans > 0, cases[i].missed);
			CHECK_INT(got[1].missed > 0, cases[i].missed && levels == 3);
			CHECK_INT(got[1].spans > 0, cases[i].missed && levels == 3);
		}
}
