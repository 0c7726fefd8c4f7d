/* Head windows become blocks, blocks are found at start, and what a crash leaves is put in order. */
#include "tests/tsdb/town.h"

#include "tests/check.h"

#define END_TEST(w) \
	do { \
		CHECK_INT(town_failures, 0); \
		town_failures = 0; \
		town_close(w); \
	} while (0)

#define T0 TOWN_START_S

TEST(windows_that_take_no_more_rows_become_blocks)
{
	struct town w;

	REQUIRE(town_open(&w));
	town_fill(&w, 2, 3, T0, T0 + 60, 1);
	TOWN_CHECK(&w, "in the head");
	CHECK_LAYOUT(&w, "head head head head head head");
	town_compact(&w);
	CHECK_LAYOUT(&w, "1 1 1 head head head");
	TOWN_CHECK(&w, "cut");
	REQUIRE(fixture_reopen(&w.f));
	CHECK_LAYOUT(&w, "1 1 1 head head head");
	TOWN_CHECK(&w, "reopened");
	END_TEST(&w);
}
