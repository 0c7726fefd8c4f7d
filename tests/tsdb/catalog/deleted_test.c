/* Deleted rows stay unseen, also after cuts, joins and restarts; snapshots. */
#include <unistd.h>

#include "tests/check.h"
#include "tests/tsdb/town.h"
#include "tsdb/db.h"

TEST(a_deletion_needs_a_matcher_that_picks)
{
	static const struct {
		enum match_op op;
		const char *name, *value;
	} t[] = { { MATCH_EQ, "job", "" }, { MATCH_NE, "job", "x" }, { MATCH_RE, "job", ".*" },
		{ MATCH_NRE, "job", "x" } };
	struct matcher m;
	struct town w;

	REQUIRE(town_open(&w));
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		REQUIRE_OK(
			matcher_init(&m, t[i].op, str_of(t[i].name), str_of(t[i].value), &w.f.err), &w.f.err);
		CHECK_ERR(db_delete_series(w.f.db, &m, 1, 0, INT64_MAX, &w.f.err), &w.f.err, ERR_INVALID,
			"at least one matcher must not accept the empty string");
		matcher_release(&m);
	}
	CHECK_ERR(db_delete_series(w.f.db, NULL, 0, 0, INT64_MAX, &w.f.err), &w.f.err, ERR_INVALID,
		"at least one matcher must not accept the empty string");
	TOWN_END(&w);
}

TEST(labels_of_samples_do_not_pick_series)
{
	struct matcher m;
	struct town w;

	/* Samples of the random profiles have handler; no series has. */
	REQUIRE(town_open(&w));
	town_fill(&w, 1, 1, T0, T0 + 50, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "1 1 head head head");
	REQUIRE_OK(matcher_init(&m, MATCH_EQ, STR("handler"), STR("/h1"), &w.f.err), &w.f.err);
	REQUIRE_OK(db_delete_series(w.f.db, &m, 1, 0, INT64_MAX, &w.f.err), &w.f.err);
	TOWN_CHECK(&w, "nothing deleted");
	TOWN_END(&w);
}

TEST(an_older_list_put_back_brings_nothing_back)
{
	char path[60];
	struct town w;

	REQUIRE(town_open(&w));
	town_fill(&w, 1, 1, T0, T0 + 15, 1);
	snprintf(path, sizeof(path), "head/%d.deleted", T0);
	town_delete(&w, "job0", "i0", T0 + 2, T0 + 4);
	town_copy(&w, path, "older");
	town_delete(&w, "job0", "i0", T0 + 6, T0 + 8);
	town_copy(&w, "older", path);
	for (int start = 0; start < 2; start++) {
		REQUIRE(fixture_reopen(&w.f));
		TOWN_CHECK(&w, "older list");
	}
	TOWN_END(&w);
}

TEST(deletions_overlap_and_add_up)
{
	struct town w;

	REQUIRE(town_open(&w));
	town_fill(&w, 1, 3, T0, T0 + 75, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "2 1 head head head");
	town_delete(&w, "job0", "i0", T0 + 5, T0 + 15);
	town_delete(&w, "job0", "i0", T0 + 12, T0 + 30);
	town_delete(&w, "job0", "i0", T0 + 35, T0 + 36);
	town_delete(&w, "job0", NULL, T0 + 38, T0 + 43);
	TOWN_CHECK(&w, "deleted");
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "reopened");
	town_fill(&w, 1, 3, T0 + 75, T0 + 150, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "3 head head head");
	TOWN_CHECK(&w, "joined");
	CHECK_INT(w.f.db->blocks[0]->deleted_n, 0);
	TOWN_END(&w);
}

TEST(deletions_in_the_head_end_with_the_newest_row)
{
	struct town w;

	REQUIRE(town_open(&w));
	town_fill(&w, 1, 2, T0, T0 + 15, 1);
	town_delete(&w, "job0", "i0", T0 + 3, T0 + 1000);
	town_fill(&w, 1, 2, T0 + 15, T0 + 60, 1);
	for (size_t i = 0; i < w.n; i++)
		w.rows[i].deleted &= w.rows[i].ts_s <= T0 + 15;
	REQUIRE(fixture_reopen(&w.f));
	town_compact(&w);
	CHECK_LAYOUT(&w, "1 1 1 head head head");
	TOWN_CHECK(&w, "cut");
	TOWN_END(&w);
}

TEST(a_damaged_list_is_said)
{
	struct town w;
	char *path, *copy;
	size_t n;

	REQUIRE(town_open(&w));
	town_fill(&w, 1, 2, T0, T0 + 50, 1);
	town_compact(&w);
	town_delete(&w, "job0", "i0", T0, T0 + 5);
	TOWN_CHECK(&w, "deleted");
	path = arena_printf(&w.f.arena, "%s/%s/deleted", w.f.dir, town_block(&w, 0));
	copy = arena_printf(&w.f.arena, "%s.copy", path);
	for (int i = 0; i < 4; i++) {
		const char *damaged = i % 2 ? path : copy;

		if (i < 2)
			REQUIRE_OK(
				fs_write_file(&fs_posix, damaged, STR("junk junk junk junk"), &w.f.err), &w.f.err);
		else
			REQUIRE(unlink(damaged) == 0);
		REQUIRE(fixture_reopen(&w.f));
		TOWN_CHECK(&w, "one copy is enough");
		CHECK_INT(losses_open_n(w.f.db->losses), 0);
	}
	REQUIRE_OK(fs_write_file(&fs_posix, path, STR("junk junk junk junk"), &w.f.err), &w.f.err);
	REQUIRE_OK(fs_write_file(&fs_posix, copy, STR("junk junk junk junk"), &w.f.err), &w.f.err);
	REQUIRE(fixture_reopen(&w.f));
	CHECK(w.f.db->blocks[0]->damaged);
	CHECK_INT(losses_open_n(w.f.db->losses), 1);
	REQUIRE_OK(db_accept_losses(w.f.db, NULL, 0, &n, &w.f.err), &w.f.err); /* not said any more */
	for (size_t i = 0; i < w.n; i++)
		w.rows[i].deleted = false;
	TOWN_CHECK(&w, "seen again");
	TOWN_END(&w);
}

/* ---- snapshots ---- */

struct appender {
	struct town *w;
	struct thread thread;
	atomic_bool stop;
	struct labels labels;
	int64_t last_s;
};

static void append_on(void *ctx)
{
	struct appender *p = ctx;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	while (!atomic_load(&p->stop)) {
		arena_reset(&a);
		p->last_s++;
		if (!append_wait(p->w->f.db, p->labels, p->last_s * SEC, SEC,
				profile_random(&a, (uint64_t)p->last_s), NULL, false, NULL, &err))
			continue;
		town_failed("append: %s", err.msg);
		break;
	}
	arena_release(&a);
}

TEST(a_snapshot_is_a_data_directory_while_rows_come)
{
	struct appender p = { 0 };
	struct town w, copy;
	struct str name;

	REQUIRE(town_open(&w));
	w.f.o.window_ns = 1000 * SEC;
	w.f.o.too_old_ns = 0;
	REQUIRE(fixture_reopen(&w.f));
	town_fill(&w, 2, 2, T0, T0 + 3200, 100);
	town_compact(&w);
	town_delete(&w, "job0", "i0", T0 + 150, T0 + 350);
	town_delete(&w, "job1", "i0", T0 + 3050, T0 + 3150);
	p.w = &w;
	p.labels = town_labels(&w, "other", "x");
	p.last_s = T0 + 3200;
	REQUIRE_OK(thread_start(&p.thread, "append", append_on, &p, &w.f.err), &w.f.err);
	for (int i = 0; i < 5; i++) {
		REQUIRE_OK(db_snapshot(w.f.db, &w.f.arena, &name, &w.f.err), &w.f.err);
		copy = w;
		copy.f.db = NULL;
		copy.f.o.dir = arena_printf(&w.f.arena, "%s/snapshots/" STR_FMT, w.f.dir, STR_ARG(name));
		REQUIRE_OK(db_open(&copy.f.o, &copy.f.db, &w.f.err), &w.f.err);
		TOWN_CHECK(&copy, "snapshot");
		db_close(copy.f.db);
	}
	atomic_store(&p.stop, true);
	thread_join(&p.thread);
	TOWN_CHECK(&w, "the original");
	TOWN_END(&w);
}
