/* Deletions where only sums of steps are kept. */
#include "tests/check.h"
#include "tests/tsdb/town.h"

#define HOUR 3600
#define LEFT_OUT \
	"some profiles stored only in rollups of 1h steps were deleted: the answer " \
	"lacks their steps"

static const struct profile_type cpu = { { "p", 1 }, { "cpu", 3 }, { "nanoseconds", 11 }, { "", 0 },
	{ "", 0 }, true };

/* "rows infos..." over (from, to] of the instance, NULL: of both. */
static void check_rows(
	struct town *w, const char *instance, int64_t from_s, int64_t to_s, int rows, const char *info)
{
	const struct db_series *some[4];
	struct sum_stats stats = { 0 };
	struct db_querier *q;
	struct db_series *v;
	const struct str *infos;
	size_t n = 0, k = 0;
	struct err err;

	REQUIRE_OK(db_querier_open(w->f.db, from_s * SEC, to_s * SEC, NULL, &q, &err), &err);
	CHECK_OK(db_select(q, NULL, 0, &w->f.arena, &v, &n, &err), &err);
	for (size_t i = 0; i < n && k < 4; i++)
		if (!instance || str_is(labels_get(v[i].labels, STR("instance")), instance))
			some[k++] = &v[i];
	CHECK_OK(db_sum(q, some, k, &cpu, from_s * SEC, to_s * SEC, SUM_WINDOW, NULL, &w->f.arena,
				 &stats, &err),
		&err);
	CHECK_INT(stats.rows, rows);
	infos = db_querier_infos(q, &n);
	CHECK_INT(n, info != NULL);
	if (n && info)
		CHECK_STR(infos[0], info);
	db_querier_close(q);
}

/* Four hours of a row each ten minutes; raw rows of the first three are gone. */
static bool hours_without_rows(struct town *w)
{
	if (!town_open(w))
		return false;
	w->f.o.window_ns = HOUR * SEC;
	w->f.o.too_old_ns = 0;
	if (!fixture_reopen(&w->f))
		return false;
	town_fill(w, 1, 2, T0, T0 + 4 * HOUR, 600);
	db_set_retention(w->f.db, 0, 0, SEC);
	town_compact(w);
	town_compact(w);
	return w->f.db->blocks_n > 0 && !block_has_raw(w->f.db->blocks[0]->block);
}

TEST(a_step_that_is_deleted_in_part_is_left_out_and_told)
{
	const int64_t end = T0 + 3 * HOUR;
	struct town w;

	REQUIRE(hours_without_rows(&w));
	check_rows(&w, NULL, T0, end, 36, NULL);
	town_delete(&w, "job0", "i0", T0 + 500, T0 + 1300);
	for (int turn = 0; turn < 2; turn++) { /* the second time after a restart */
		check_rows(&w, "i0", T0, end, 12, LEFT_OUT);
		check_rows(&w, NULL, T0, end, 30, LEFT_OUT);
		check_rows(&w, "i1", T0, end, 18, NULL);
		check_rows(&w, "i0", T0 + HOUR, end, 12, NULL);
		REQUIRE(fixture_reopen(&w.f));
	}
	CHECK_INT(town_failures, 0);
	town_close(&w);
}

TEST(a_step_that_is_deleted_as_a_whole_is_gone)
{
	struct town w;

	REQUIRE(hours_without_rows(&w));
	town_delete(&w, "job0", "i0", T0 + HOUR, T0 + 2 * HOUR);
	check_rows(&w, NULL, T0, T0 + 3 * HOUR, 30, NULL);
	check_rows(&w, "i0", T0, T0 + 3 * HOUR, 12, NULL);
	CHECK_INT(town_failures, 0);
	town_close(&w);
}

TEST(a_step_none_of_whose_rows_is_deleted_stays)
{
	struct town w;

	REQUIRE(hours_without_rows(&w));
	town_delete(&w, "job0", "i0", T0 + HOUR, T0 + HOUR + 598);
	check_rows(&w, "i0", T0, T0 + 3 * HOUR, 18, NULL);
	check_rows(&w, NULL, T0, T0 + 3 * HOUR, 36, NULL);
	CHECK_INT(town_failures, 0);
	town_close(&w);
}

/* Joining blocks drops and keeps the same steps. */
TEST(joining_changes_nothing)
{
	struct town w;

	REQUIRE(hours_without_rows(&w));
	town_delete(&w, "job0", "i0", T0 + 500, T0 + 1300);
	town_delete(&w, "job0", "i0", T0 + HOUR, T0 + HOUR + 598);
	town_delete(&w, "job0", "i1", T0 + 2 * HOUR, T0 + 3 * HOUR);
	check_rows(&w, NULL, T0, T0 + 3 * HOUR, 24, LEFT_OUT);
	town_fill(&w, 1, 2, T0 + 4 * HOUR, T0 + 13 * HOUR, 600);
	town_compact(&w);
	CHECK(w.f.db->blocks[0]->deleted_n == 0);
	check_rows(&w, NULL, T0, T0 + 3 * HOUR, 24, NULL);
	CHECK_INT(town_failures, 0);
	town_close(&w);
}

/* A window that retention took, but the disk did not let go, comes back at the next start. */
TEST(what_was_deleted_of_a_window_stays_so_as_long_as_its_files)
{
	struct town w;

	REQUIRE(town_open_on(&w, true));
	town_fill(&w, 1, 2, T0, T0 + 60, 5);
	town_delete(&w, "job0", "i0", T0 + 2, T0 + 8);
	TOWN_CHECK(&w, "deleted");
	db_set_retention(w.f.db, 45 * SEC, 0, 0);
	w.f.o.retention_ns = 0;
	disk_fail(w.disk, 2, DISK_RENAME, DISK_ONCE); /* behind that of the file of ids */
	db_maintain(w.f.db, true);
	CHECK_INT(disk_failed(w.disk), 1);
	disk_fail(w.disk, 0, DISK_RENAME, DISK_ONCE);
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "back again");
	CHECK_INT(town_failures, 0);
	town_close(&w);
}

/* A block that retention took, and a power cut brings back, has its deletions still. */
TEST(what_was_deleted_of_a_block_stays_so_when_it_comes_back)
{
	for (uint64_t seed = 1; seed <= 24; seed++) {
		struct buf got = { 0 };
		struct town w;

		REQUIRE(town_open_on(&w, true));
		town_fill(&w, 1, 2, T0, T0 + 60, 5);
		town_compact(&w);
		town_delete(&w, "job0", "i0", T0 + 2, T0 + 8);
		db_set_retention(w.f.db, 45 * SEC, 0, 0);
		w.f.o.retention_ns = 0;
		db_maintain(w.f.db, true);
		disk_power_cut(w.disk);
		db_close(w.f.db);
		w.f.db = NULL;
		disk_restore(w.disk, seed);
		REQUIRE(fixture_reopen(&w.f));
		CHECK(rows_text(
			w.f.db, town_labels(&w, "job0", "i0"), (T0 + 2) * SEC, (T0 + 8) * SEC, &got, &w.f.err));
		CHECK_STR(buf_str(&got), "");
		buf_release(&got);
		CHECK_INT(town_failures, 0);
		town_close(&w);
	}
}
