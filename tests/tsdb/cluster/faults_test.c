/* A store that is busy, full, away or slow to say so; what is said; the threads. */
#include "base/log.h"
#include "base/thread.h"
#include "tests/check.h"
#include "tests/tsdb/cluster/scene.h"
#include "tsdb/catalog/state.h"
#include "tsdb/lists/losses.h"

static struct scene s;

static void fill(int from_s, int to_s)
{
	town_fill(&s.town, 1, 1, T0 + from_s, T0 + to_s, 5);
}

static void status(int code, const char *name, const char *line, unsigned times)
{
	fake_fault(&s.fake,
		(struct fake_fault){
			.kind = FAULT_STATUS, .line = line, .times = times, .status = code, .code = name });
}

static void fault(enum fake_fault_kind kind, const char *line, unsigned times)
{
	fake_fault(&s.fake, (struct fake_fault){ .kind = kind, .line = line, .times = times });
}

static const char *state(void)
{
	struct publisher_status now;

	publisher_status(s.p, &now);
	return publisher_state_name(now.state);
}

TEST(a_store_that_is_away_and_comes_back)
{
	struct publisher_status now;
	int64_t through;

	REQUIRE(scene_open(&s));
	fill(0, 20);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	REQUIRE(scene_look(&s));
	CHECK((through = s.m.through_ns) > 0);
	for (unsigned i = 0; i < 3; i++) {
		fake_forget_faults(&s.fake);
		status(503, "SlowDown", "/b", 1000);
		fill(20 + (int)i * 10, 30 + (int)i * 10);
		CHECK_INT(publisher_round(s.p, &s.err), ERR_UNAVAILABLE);
		CHECK_STR(str_of(state()), "away");
	}
	town_compact(&s.town);
	CHECK_INT(publisher_round(s.p, &s.err), ERR_UNAVAILABLE);
	CHECK_INT(publisher_work(s.p, &s.err), ERR_UNAVAILABLE);
	publisher_status(s.p, &now);
	CHECK(now.waiting_bytes > 0);
	CHECK(str_has_suffix(str_of(now.last.msg), STR("manifest: the store is busy (SlowDown)")));
	CHECK_INT(now.through_ns, through); /* nothing is claimed */
	CHECK(now.lag_ns > 0);
	fake_forget_faults(&s.fake);
	scene_settle(&s);
	CHECK_STR(str_of(state()), "running");
	publisher_status(s.p, &now);
	CHECK_INT(now.last.code, ERR_OK);
	CHECK_INT(now.waiting_bytes, 0);
	CHECK(now.through_ns > through);
	scene_check_objects(&s, "back", true);
	scene_check_rows(&s, "back");
	SCENE_END(&s);
}

/* Only the manifest can be written: it says no more than what is there. */
TEST(a_store_that_is_full)
{
	struct publisher_status now;
	int64_t through;

	REQUIRE(scene_open(&s));
	fill(0, 20);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	REQUIRE(scene_look(&s));
	through = s.m.through_ns;
	fill(20, 60);
	town_compact(&s.town);
	status(403, "QuotaExceeded", "PUT /b/p/q/shards/a/head", 1000);
	status(403, "QuotaExceeded", "PUT /b/p/q/shards/a/blocks", 1000);
	CHECK_INT(publisher_round(s.p, &s.err), ERR_LIMIT);
	CHECK(str_has_suffix(str_of(s.err.msg), STR("the bucket is full: a quota is exceeded")));
	CHECK_INT(publisher_work(s.p, &s.err), ERR_LIMIT);
	publisher_status(s.p, &now);
	REQUIRE(scene_look(&s));
	CHECK_INT(s.m.through_ns, through);
	CHECK_INT(s.m.generation, now.generation); /* the lease is kept all the same */
	scene_check_objects(&s, "full", false);
	fake_forget_faults(&s.fake);
	scene_settle(&s);
	scene_check_objects(&s, "room again", true);
	scene_check_rows(&s, "room again");
	SCENE_END(&s);
}

/* A block is not named before its deleted ranges are there. */
TEST(deleted_ranges_that_cannot_be_put)
{
	REQUIRE(scene_open(&s));
	fill(0, 40);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	town_compact(&s.town);
	CHECK_OK(publisher_round(s.p, &s.err), &s.err);
	CHECK_OK(publisher_work(s.p, &s.err), &s.err);
	town_delete(&s.town, "job0", "i0", T0, T0 + 6);
	status(403, "AccessDenied", "/deleted-", 1000);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_INT(publisher_round(s.p, &s.err), ERR_UNAVAILABLE);
		CHECK_OK(publisher_work(s.p, &s.err), &s.err);
		CHECK_SCENE(&s, "0: 1-2; 10: 1-2; 20: 1-2; 30: 1-2");
	}
	fake_forget_faults(&s.fake);
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1 deleted; 10: 1-2; 20: 1-2; 30: 1-2");
	scene_check_objects(&s, "deleted", true);
	scene_check_rows(&s, "deleted");
	SCENE_END(&s);
}

/* An object that no manifest named was removed; it is put again before one names it. */
TEST(what_was_put_too_early_is_put_again)
{
	REQUIRE(scene_open(&s));
	s.o.delete_delay_ns = 1;
	s.o.orphans_every_ns = 1;
	town_fill(&s.town, 2, 1, T0, T0 + 20, 5);
	town_delete(&s.town, "job0", "i0", T0, T0 + 6);
	REQUIRE(scene_start(&s));
	status(403, "AccessDenied", "/0000000000", 1000); /* segments */
	for (unsigned i = 0; i < 5; i++) {
		CHECK_INT(publisher_round(s.p, &s.err), ERR_UNAVAILABLE);
		CHECK_OK(publisher_work(s.p, &s.err), &s.err);
	}
	fake_forget_faults(&s.fake);
	scene_settle(&s);
	CHECK_SCENE(&s, "0: 1-4 deleted; 10: 1-4");
	scene_check_objects(&s, "put again", true);
	scene_check_rows(&s, "put again");
	SCENE_END(&s);
}

TEST(answers_that_are_lost_here_and_there)
{
	static const enum fake_fault_kind kinds[] = { FAULT_RESET, FAULT_RESET_LATER, FAULT_CUT };
	static const char *const lines[] = { "PUT /b/p/q/shards/a/manifest", "PUT /b/p/q/shards/a/head",
		"PUT /b/p/q/shards/a/blocks", "PUT /b/p/q/shards/a/files", "DELETE", "GET /b?",
		"GET /b/p" };
	int at = 60;

	REQUIRE(scene_open(&s));
	s.o.delete_delay_ns = 1;
	fill(0, 60);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
			fill(at, at + 10);
			at += 10;
			town_compact(&s.town);
			fault(kinds[k], lines[i], 3);
			for (unsigned n = 0; n < 3; n++) {
				(void)!publisher_round(s.p, &s.err);
				(void)!publisher_work(s.p, &s.err);
			}
			scene_check_objects(&s, lines[i], false);
		}
	fake_forget_faults(&s.fake);
	scene_settle(&s);
	scene_check_objects(&s, "in the end", false);
	scene_crash(&s);
	REQUIRE(scene_start(&s)); /* which looks for objects without a name */
	scene_settle(&s);
	scene_check_objects(&s, "in the end", true);
	scene_check_rows(&s, "in the end");
	SCENE_END(&s);
}

/* A clock that is 20 minutes off is refused by the store; nothing is lost meanwhile. */
TEST(a_clock_that_goes_wrong)
{
	REQUIRE(scene_open(&s));
	fill(0, 20);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	s.fake.ahead_s = 20 * 60;
	fill(20, 40);
	CHECK_INT(publisher_round(s.p, &s.err), ERR_UNAVAILABLE);
	CHECK(str_find(str_of(s.err.msg), STR("clock")) >= 0);
	s.fake.ahead_s = 0;
	scene_settle(&s);
	scene_check_objects(&s, "clock", true);
	scene_check_rows(&s, "clock");
	SCENE_END(&s);
}

/* Files that were dropped, as a full disk does: a snapshot of the window takes their place. */
TEST(a_snapshot_where_files_are_missing)
{
	struct str *names;
	char path[256];
	size_t n;

	REQUIRE(scene_open(&s));
	fill(0, 15);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	fill(15, 30);
	snprintf(path, sizeof(path), "%s/head", s.town.f.dir);
	scene_crash(&s);
	db_close(s.town.f.db);
	s.town.f.db = NULL;
	REQUIRE_OK(fs_list(path, &s.town.f.arena, &names, &n, &s.err), &s.err);
	for (size_t i = 0; i < n; i++)
		if (str_find(names[i], STR(".segment.")) >= 0) {
			snprintf(path, sizeof(path), "%s/head/" STR_FMT, s.town.f.dir, STR_ARG(names[i]));
			REQUIRE_OK(fs_posix.ops->unlink(&fs_posix, path, &s.err), &s.err);
		}
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	CHECK_SCENE(&s, "0: 1-2; 10: 1-2; 20: 1-2");
	scene_check_objects(&s, "snapshot", true);
	scene_check_rows(&s, "snapshot");
	fill(30, 35);
	town_append(&s.town, town_labels(&s.town, "late", "i"), T0 + 12);
	scene_settle(&s);
	CHECK_SCENE(&s, "0: 1-2; 10: 1-2 3-3; 20: 1-2; 30: 1-1");
	scene_check_rows(&s, "after the snapshot");
	SCENE_END(&s);
}

/*
 * A machine lost its power, and its disk had not kept what it said was synced: the window goes on
 * with other batches of the numbers that the bucket has. A snapshot takes the place of all.
 */
TEST(a_window_that_lost_batches)
{
	char was[128], owner[128];
	struct buf token = { 0 };

	REQUIRE(scene_open(&s));
	snprintf(was, sizeof(was), "../%s.was", strrchr(s.town.f.dir, '/') + 1);
	snprintf(owner, sizeof(owner), "%s/" LEASE_OWNER_FILE, s.town.f.dir);
	town_fill(&s.town, 2, 2, T0, T0 + 2, 1);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	scene_crash(&s);
	db_close(s.town.f.db);
	s.town.f.db = NULL;
	town_copy(&s.town, ".", was);
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	town_fill(&s.town, 2, 2, T0 + 2, T0 + 5, 1);
	scene_settle(&s);
	scene_crash(&s);
	db_close(s.town.f.db);
	s.town.f.db = NULL;
	REQUIRE_OK(fs_read_file(owner, 256, &token, &s.err), &s.err);
	REQUIRE_OK(fs_remove_tree(&fs_posix, s.town.f.dir, &s.err), &s.err);
	REQUIRE_OK(fs_mkdir_all(&fs_posix, s.town.f.dir, &s.err), &s.err);
	town_copy(&s.town, was, ".");
	REQUIRE_OK(fs_write_file(&fs_posix, owner, buf_str(&token), &s.err), &s.err);
	snprintf(was, sizeof(was), "%s.was", s.town.f.dir);
	REQUIRE_OK(fs_remove_tree(&fs_posix, was, &s.err), &s.err);
	for (size_t i = 0; i < s.town.n; i++)
		s.town.rows[i].deleted |= s.town.rows[i].ts_s > T0 + 2;
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	CHECK(losses_has(s.town.f.db->losses, STR("head/1080000 after batch 8")));
	for (int at = 5; at < 10; at++) { /* the first round has fewer, then as many, then more */
		town_fill(&s.town, 2, 2, T0 + at, T0 + at + 1, 1);
		scene_settle(&s);
		scene_check_objects(&s, "lost batches", false);
		scene_check_rows_alone(&s, "lost batches");
	}
	buf_release(&token);
	SCENE_END(&s);
}

/* ---- the threads ---- */

TEST(threads_beside_appends_and_compaction)
{
	REQUIRE(scene_open(&s));
	s.o.no_threads = false;
	s.o.interval_ns = 10 * NS_PER_MS;
	s.o.delete_delay_ns = 20 * NS_PER_MS;
	REQUIRE(scene_start(&s));
	for (int i = 0; i < 20; i++) {
		fill(i * 10, i * 10 + 10);
		if (i % 2)
			town_compact(&s.town);
		if (i % 5 == 3)
			town_delete(&s.town, "job0", "i0", T0 + i * 10 - 20, T0 + i * 10 - 12);
		if (i % 7 == 4)
			status(503, "SlowDown", "PUT", 3);
		publisher_wake(s.p);
	}
	scene_stop(&s);
	fake_forget_faults(&s.fake);
	scene_check_objects(&s, "stopped", false);
	s.o.no_threads = true;
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	scene_check_objects(&s, "settled", true);
	scene_check_rows(&s, "settled");
	SCENE_END(&s);
}

/* A put that never ends does not keep the server from ending in order. */
TEST(an_end_while_a_block_is_put)
{
	bool stalled = false;

	REQUIRE(scene_open(&s));
	fill(0, 60);
	town_compact(&s.town);
	fault(FAULT_STALL, "PUT /b/p/q/shards/a/blocks", 1000);
	s.o.no_threads = false;
	s.o.interval_ns = 5 * NS_PER_MS;
	REQUIRE(scene_start(&s));
	while (!stalled) {
		sleep_ms(1);
		mutex_lock(&s.fake.lock);
		stalled = s.fake.faults[0].times < 1000;
		mutex_unlock(&s.fake.lock);
	}
	fill(60, 70);
	scene_stop(&s);
	REQUIRE(scene_look(&s));
	CHECK(s.m.stopped);
	CHECK_INT(s.m.blocks_n, 0);
	scene_check_rows_alone(&s, "stopped");
	fake_forget_faults(&s.fake);
	s.o.no_threads = true;
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	scene_check_objects(&s, "again", true);
	scene_check_rows(&s, "again");
	SCENE_END(&s);
}

/* Until an attach the manifest is written as it was. */
TEST(the_lease_is_kept_before_the_database_is_open)
{
	struct publisher_status now = { 0 };

	REQUIRE(scene_open(&s));
	fill(0, 60);
	town_compact(&s.town);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	scene_stop(&s);
	s.o.no_threads = false;
	s.o.interval_ns = 5 * NS_PER_MS;
	REQUIRE_OK(publisher_open(&s.o, &s.p, &s.err), &s.err);
	REQUIRE_OK(publisher_take(s.p, false, &s.err), &s.err);
	CHECK_INT(publisher_taken(s.p)->blocks_n, 3);
	publisher_status(s.p, &now);
	for (uint64_t from = now.generation; now.generation < from + 3;) {
		sleep_ms(5);
		publisher_status(s.p, &now);
	}
	CHECK_SCENE(&s, "block 1; block 1; block 1; 30: 1-2; 40: 1-2; 50: 1-2");
	REQUIRE_OK(publisher_attach(s.p, s.town.f.db, &s.err), &s.err);
	scene_stop(&s);
	scene_check_objects(&s, "stopped", false);
	scene_check_rows(&s, "stopped");
	SCENE_END(&s);
}
