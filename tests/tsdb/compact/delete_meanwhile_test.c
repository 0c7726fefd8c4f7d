/* Rows are deleted while their block or window goes: what goes is not missed later. */
#include <fcntl.h>
#include <unistd.h>

#include "base/thread.h"
#include "tests/check.h"
#include "tests/tsdb/town.h"
#include "tsdb/lists/losses.h"

/* How long a deletion gets to come between two steps of the other thread. If it has to wait for
 * that thread, as it should, the time passes for nothing. */
#define MEANWHILE_MS 200

/* The next time the inventory is written, rows are deleted in a second thread, whose own write of
 * the inventory then waits for this one. */
struct meanwhile {
	struct fs fs; /* first: the calls get it */
	struct town *w;
	struct thread thread;
	_Atomic bool armed, deletes;
};

static void delete_rows(void *ctx)
{
	struct meanwhile *t = ctx;
	struct matcher m;
	struct err err;

	if (matcher_init(&m, MATCH_EQ,
			STR("job"), STR("job0"), &err) ||
				db_delete_series(t->w->f.db, &m, 1, T0 * SEC, (T0 + 5) * SEC, &err))
		town_failed("delete: %s", err.msg);
}

static enum err_code open_file(
	struct fs *fs, const char *path, int flags, int mode, int *fd, struct err *err)
{
	struct meanwhile *t = (struct meanwhile *)fs;

	if (strstr(path, "deleted"))
		atomic_store(&t->deletes, true);
	if (strstr(path, "/inventory") && atomic_exchange(&t->armed, false)) {
		if (thread_start(&t->thread, "delete", delete_rows, t, err))
			town_failed("delete: %s", err->msg);
		for (int ms = 0; ms < MEANWHILE_MS && !atomic_load(&t->deletes); ms++)
			usleep(1000);
	}
	return fs_posix.ops->open(fs, path, flags, mode, fd, err);
}

static void goes(void (*away)(struct town *w), bool cut_first, bool deleted_first)
{
	struct fs_ops ops = *fs_posix.ops;
	struct town w;
	struct meanwhile t = { { &ops }, .w = &w };

	REQUIRE(town_open(&w));
	ops.open = open_file;
	w.f.o.fs = &t.fs;
	REQUIRE(fixture_reopen(&w.f));
	town_fill(&w, 1, 2, T0, T0 + 60, 1);
	if (cut_first)
		town_compact(&w);
	if (deleted_first)
		town_delete(&w, "job0", NULL, T0, T0 + 10);
	atomic_store(&t.deletes, false);
	atomic_store(&t.armed, true);
	away(&w);
	CHECK(!atomic_load(&t.armed));
	thread_join(&t.thread);
	w.f.o.fs = NULL;
	REQUIRE(fixture_reopen(&w.f));
	CHECK_INT(losses_open_n(w.f.db->losses), 0);
	town_forget_until(&w, T0 + 10);
	TOWN_CHECK(&w, "without it");
	TOWN_END(&w);
}

static void retention(struct town *w)
{
	db_set_retention(w->f.db, 45 * SEC, 0, 0);
	db_maintain(w->f.db, true);
}

TEST(a_block_that_retention_takes_is_not_missed)
{
	goes(retention, true, false);
}

TEST(a_window_that_retention_takes_is_not_missed)
{
	goes(retention, false, false);
}

TEST(a_window_of_which_all_was_deleted_is_not_missed)
{
	goes(town_compact, false, true);
}
