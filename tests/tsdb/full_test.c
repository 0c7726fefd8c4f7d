/*
 * A disk that fills up under the database: below the reserve rows are refused and queries go on;
 * without a reserve the puts themselves fail, anywhere. Rows are taken again by itself once there
 * is room, and nothing acknowledged is lost, also not to a power cut right after (LevelDB alone
 * says OK to puts after a full disk and loses them).
 */
#include <unistd.h>

#include "tests/check.h"
#include "tests/tsdb/disk.h"
#include "tests/tsdb/model.h"
#include "tests/wait.h"

#define OPENED 5 /* disks that are full when the database is opened */
#define SIZES 24 /* of a disk, from no room at all to what the work needs */

struct full {
	struct model m;
	struct disk *d;
};

static bool begin(struct full *f, uint64_t reserve)
{
	*f = (struct full){ 0 };
	if (!model_init(&f->m, model_seed()))
		return false;
	f->d = disk_open(f->m.f.dir);
	f->m.f.o.fs = disk_fs(f->d);
	f->m.f.o.store = disk_store(f->d);
	f->m.f.o.free_bytes_reserve = reserve;
	return true;
}

static void end(struct full *f)
{
	model_release(&f->m);
	disk_close(f->d);
}

static bool wait_ready(struct full *f)
{
	return WAIT_FOR(db_state(f->m.f.db, NULL) == DB_READY);
}

static void check(struct full *f, const char *when, int which, bool settled)
{
	if (!model_check(&f->m, settled))
		CHECK_FAIL("%s, %d:\n%s", when, which, f->m.wrong.ptr);
}

/* Rows that are acknowledged now are as durable as others. */
static void goes_on(struct full *f, int which)
{
	size_t acked = f->m.acked;
	struct err err;

	f->m.now_s += MODEL_WINDOW_S;
	for (int i = 0; i < 20; i++)
		model_append(&f->m);
	model_wait(&f->m);
	CHECK(f->m.acked > acked + 10);
	check(f, "with room again", which, false);
	disk_power_cut(f->d);
	model_close(&f->m);
	disk_restore(f->d, (uint64_t)which);
	REQUIRE_OK(model_open(&f->m, &err), &err);
	check(f, "after a cut", which, true);
}

TEST(below_the_reserve_rows_are_refused_and_queries_go_on)
{
	struct full f;
	struct err err;
	size_t refused;
	char want[300];

	REQUIRE(begin(&f, 10000));
	REQUIRE_OK(model_open(&f.m, &err), &err);
	model_work(&f.m, 50, NULL, NULL);
	model_wait(&f.m);
	disk_full(f.d, 9999);
	fixture_maintain(&f.m.f);
	CHECK_INT(db_state(f.m.f.db, &err), DB_FULL);
	snprintf(want, sizeof(want),
		"disk is full: 9.76KiB free in %s, reserve 9.77KiB (--storage.tsdb.free-reserve)",
		f.m.f.dir);
	CHECK_STR(str_of(err.msg), want);
	refused = f.m.refused;
	for (int i = 0; i < 10; i++)
		CHECK(!model_append(&f.m));
	CHECK_INT(f.m.refused, refused + 10);
	CHECK_STR(str_of(f.m.f.err.msg), want);
	check(&f, "full", 0, false);
	/* Nobody asks for it: the database looks by itself. */
	disk_full(f.d, UINT64_MAX);
	CHECK(wait_ready(&f));
	goes_on(&f, 0);
	end(&f);
}

/* The first row that finds no room is refused as all that follow, though nobody knew it before. */
TEST(a_put_without_room_may_come_again)
{
	static const char *const types[] = { "samples/count", NULL };
	static const char *const lines[] = { "main 1", NULL };
	int64_t t = 1001 * SEC;
	const struct pprof *p;
	struct full f;
	struct err err;
	char want[300];

	REQUIRE(begin(&f, 0));
	REQUIRE_OK(model_open(&f.m, &err), &err);
	p = profile_of(&f.m.f.arena, types, lines);
	disk_full(f.d, 0);
	CHECK_INT(db_state(f.m.f.db, &err), DB_READY);
	snprintf(want, sizeof(want), "disk is full: 0B free in %s: ", f.m.f.dir);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(append_wait(f.m.f.db, labels_of(&f.m.f.arena, "cpu", "a", "1"), t, SEC, p, NULL,
					  false, NULL, &err),
			ERR_UNAVAILABLE);
		if (strncmp(err.msg, want, strlen(want)) != 0)
			CHECK_FAIL("%d: %s", i, err.msg);
	}
	disk_full(f.d, UINT64_MAX);
	CHECK(wait_ready(&f));
	CHECK_OK(append_wait(f.m.f.db, labels_of(&f.m.f.arena, "cpu", "a", "1"), t, SEC, p, NULL, false,
				 NULL, &err),
		&err);
	/* The same in the middle of a window. */
	disk_full(f.d, 0);
	CHECK_INT(append_wait(f.m.f.db, labels_of(&f.m.f.arena, "cpu", "a", "1"), t + SEC, SEC, p, NULL,
				  false, NULL, &err),
		ERR_UNAVAILABLE);
	if (strncmp(err.msg, want, strlen(want)) != 0)
		CHECK_FAIL("%s", err.msg);
	end(&f);
}

/* Bytes that the work writes in all: smaller disks fill up during it. */
static uint64_t bytes_needed(void)
{
	struct full f;
	struct err err;
	uint64_t bytes = 0;

	if (!begin(&f, 0))
		return 0;
	disk_full(f.d, 1 << 30);
	if (!model_open(&f.m, &err)) {
		model_work(&f.m, 60, NULL, NULL);
		model_wait(&f.m);
		f.m.f.o.fs->ops->free_bytes(f.m.f.o.fs, f.m.f.dir, &bytes, NULL);
		bytes = (1 << 30) - bytes;
	}
	end(&f);
	return bytes;
}

TEST(no_room_in_the_middle_of_a_put)
{
	uint64_t needed = bytes_needed(), n = model_rounds(SIZES / CHECK_STEP);
	struct full f;
	struct err err;

	REQUIRE(needed > 1000);
	for (uint64_t i = 0; i < n && !check_failures; i++) {
		REQUIRE(begin(&f, 0));
		disk_full(f.d, needed * i / n);
		if (model_open(&f.m, &err)) {
			CHECK_INT(i, 0);
			disk_full(f.d, UINT64_MAX);
			REQUIRE_OK(model_open(&f.m, &err), &err);
		}
		model_work(&f.m, 60, NULL, NULL);
		disk_full(f.d, UINT64_MAX);
		if (!wait_ready(&f))
			CHECK_FAIL("size %d: not ready again", (int)i);
		else
			goes_on(&f, (int)i);
		end(&f);
	}
}

/* As after a restart by somebody who hopes that it helps. */
TEST(opened_on_a_full_disk_nothing_is_given_up)
{
	uint64_t n = model_rounds(SIZES / CHECK_STEP);
	struct full f;
	struct err err;

	for (uint64_t i = 0; i < n && !check_failures; i++) {
		REQUIRE(begin(&f, 0));
		REQUIRE_OK(model_open(&f.m, &err), &err);
		model_work(&f.m, 40, NULL, NULL);
		model_close(&f.m);
		disk_full(f.d, 300 * i);
		if (!model_open(&f.m, &err))
			model_work(&f.m, 20, NULL, NULL);
		model_close(&f.m);
		disk_full(f.d, UINT64_MAX);
		REQUIRE_OK(model_open(&f.m, &err), &err);
		check(&f, "opened again", (int)i, false);
		goes_on(&f, (int)i);
		end(&f);
	}
}

/*
 * The disk is full when the database is opened, as after a kill: it opens, everything is read,
 * nothing is taken and nothing written; with room again rows are taken, without a restart.
 */
TEST(a_database_opens_on_a_full_disk)
{
	uint64_t needed = bytes_needed();

	REQUIRE(needed > 0);
	for (int i = 0; i < OPENED; i++) {
		struct full f;
		struct err err;
		uint64_t left = needed * (uint64_t)i / 40;

		REQUIRE(begin(&f, 0));
		REQUIRE_OK(model_open(&f.m, &err), &err);
		model_work(&f.m, 60, NULL, NULL);
		model_wait(&f.m);
		disk_power_cut(f.d);
		model_close(&f.m);
		disk_restore(f.d, (uint64_t)i);
		for (int start = 0; start < 3; start++) {
			disk_full(f.d, left);
			if (model_open(&f.m, &err)) {
				CHECK_FAIL("%d bytes left, start %d: %s", (int)left, start, err.msg);
				break;
			}
			check(&f, "full", i, start == 0);
			CHECK_INT(f.m.warnings, 0);
			if (left == 0) {
				CHECK_INT(db_state(f.m.f.db, &err), DB_FULL);
				CHECK(!model_append(&f.m));
			}
			if (start == 1) { /* as if nothing had happened */
				disk_power_cut(f.d);
				model_close(&f.m);
				disk_restore(f.d, (uint64_t)i + 1);
			}
		}
		disk_full(f.d, UINT64_MAX);
		CHECK(wait_ready(&f));
		check(&f, "with room", i, false);
		goes_on(&f, i);
		end(&f);
	}
}
