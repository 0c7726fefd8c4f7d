/* Head windows become blocks; blocks are found at start, and what a crash left is put in order. */

#include "tests/check.h"
#include "tests/tsdb/town.h"
#include "tests/wait.h"
#include "tsdb/catalog/state.h"
#include "tsdb/compact/compaction.h"

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
	TOWN_END(&w);
}

TEST(what_a_crash_leaves_is_removed_at_start)
{
	struct town w;
	const char *source;
	char *window, *copy;

	REQUIRE(town_open(&w));
	town_fill(&w, 2, 3, T0, T0 + 60, 1);
	window = arena_printf(&w.f.arena, "head/%d", T0);
	db_close(w.f.db);
	w.f.db = NULL;
	town_copy(&w, window, "window");
	REQUIRE(fixture_reopen(&w.f));
	town_compact(&w);
	source = town_block(&w, 0);
	town_copy(&w, source, "source");
	town_copy(&w, source, "blocks/01M00000000000000000000000.tmp");
	town_copy(&w, source, "blocks/01M00000000000000000000001.gone");
	town_fill(&w, 2, 3, T0 + 60, T0 + 80, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "2 1 head head head");
	db_close(w.f.db);
	w.f.db = NULL;
	town_move(&w, "source", source);
	town_move(&w, "window", window);
	REQUIRE(fixture_reopen(&w.f));
	CHECK_LAYOUT(&w, "2 1 head head head");
	TOWN_CHECK(&w, "reopened");
	copy = arena_printf(&w.f.arena, "%s/%s", w.f.dir, source);
	CHECK(!fs_exists(copy));
	copy = arena_printf(&w.f.arena, "%s/%s", w.f.dir, window);
	CHECK(!fs_exists(copy));
	CHECK(
		!fs_exists(arena_printf(&w.f.arena, "%s/blocks/01M00000000000000000000000.tmp", w.f.dir)));
	CHECK(
		!fs_exists(arena_printf(&w.f.arena, "%s/blocks/01M00000000000000000000001.gone", w.f.dir)));
	TOWN_END(&w);
}

TEST(an_empty_window_goes_without_a_block)
{
	struct town w;

	REQUIRE(town_open(&w));
	town_fill(&w, 1, 1, T0, T0 + 10, 1);
	town_delete(&w, "job0", NULL, T0, T0 + 10);
	town_append(&w, town_labels(&w, "job0", "i0"), T0 + 100);
	town_compact(&w);
	CHECK_LAYOUT(&w, "head");
	TOWN_CHECK(&w, "cut");
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "reopened");
	TOWN_END(&w);
}

TEST(rows_of_a_block_s_time_are_refused)
{
	struct town w;

	REQUIRE(town_open(&w));
	town_fill(&w, 1, 1, T0, T0 + 50, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "1 1 head head head");
	w.f.o.too_old_ns = 3600 * SEC;
	REQUIRE(fixture_reopen(&w.f));
	CHECK(append_wait(w.f.db, town_labels(&w, "job0", "i0"), (T0 + 5) * SEC, SEC,
			  profile_random(&w.f.arena, 1), NULL, false, NULL, &w.f.err) == ERR_INVALID);
	TOWN_CHECK(&w, "refused");
	town_append(&w, town_labels(&w, "job0", "i0"), T0 - 5);
	TOWN_CHECK(&w, "before the block");
	TOWN_END(&w);
}

static bool has_layout(struct town *w, const char *want)
{
	struct buf layout = { 0 };
	bool has;

	town_layout(w, &layout);
	has = str_is(buf_str(&layout), want);
	buf_release(&layout);
	return has;
}

TEST(it_goes_by_itself)
{
	struct town w;

	REQUIRE(town_open(&w));
	w.f.o.no_compaction = false;
	REQUIRE(fixture_reopen(&w.f));
	town_fill(&w, 1, 2, T0, T0 + 75, 1);
	/* two blocks are also there for a moment before the third */
	CHECK(WAIT_FOR(has_layout(&w, "2 1 head head head")));
	mutex_lock(&w.f.db->lock);
	while (w.f.db->compaction->busy)
		cond_wait(&w.f.db->changed, &w.f.db->lock);
	mutex_unlock(&w.f.db->lock);
	CHECK_LAYOUT(&w, "2 1 head head head");
	TOWN_CHECK(&w, "then");
	TOWN_END(&w);
}

/* ---- faults ---- */

TEST(without_room_nothing_is_begun)
{
	struct town w;

	REQUIRE(town_open_on(&w, true));
	w.f.o.free_bytes_reserve = 100000;
	REQUIRE(fixture_reopen(&w.f));
	town_fill(&w, 1, 2, T0, T0 + 50, 1);
	disk_full(w.disk, 100100);
	CHECK(db_compact(w.f.db, &w.f.err) == ERR_UNAVAILABLE);
	CHECK_LAYOUT(&w, "head head head head head");
	TOWN_CHECK(&w, "put off");
	/* Retention needs none. */
	db_set_retention(w.f.db, 30 * SEC, 0, 0);
	CHECK(db_compact(w.f.db, &w.f.err) == ERR_UNAVAILABLE);
	CHECK_LAYOUT(&w, "head head head");
	town_forget_until(&w, T0 + 20);
	TOWN_CHECK(&w, "dropped");
	disk_full(w.disk, UINT64_MAX);
	town_fill(&w, 1, 2, T0 + 50, T0 + 60, 1);
	db_set_retention(w.f.db, 0, 0, 0);
	town_compact(&w);
	CHECK_LAYOUT(&w, "1 head head head");
	TOWN_CHECK(&w, "done later");
	TOWN_END(&w);
}

TEST(the_power_goes_at_each_operation_and_nothing_is_lost)
{
	bool cut = true;

	for (uint64_t nth = 1; cut; nth += CHECK_STEP + nth / 16) {
		struct town w;

		REQUIRE(town_open_on(&w, true));
		town_fill(&w, 1, 2, T0, T0 + 90, 5);
		disk_power_cut_at(w.disk, nth);
		(void)!db_compact(w.f.db, &w.f.err);
		cut = disk_is_cut(w.disk);
		disk_power_cut(w.disk);
		db_close(w.f.db);
		w.f.db = NULL;
		disk_restore(w.disk, nth);
		REQUIRE(fixture_reopen(&w.f));
		town_check(&w, "after a power cut", (int)nth);
		town_compact(&w);
		CHECK_LAYOUT(&w, "2 1 1 head head head");
		town_check(&w, "and done again", (int)nth);
		TOWN_END(&w);
	}
}
