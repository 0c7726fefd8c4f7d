/*
 * What was acknowledged reaches a follower, whenever the writer was killed or lost its power, and
 * while many append. After kill -9 no snapshot is ever needed.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "tests/tsdb/disk.h"
#include "tests/tsdb/head/follow_world.h"

/* ---- kill -9 ---- */

/* Appends for ever; a byte into the pipe for each acknowledgement. */
static void append_until_killed(struct follow_world *w, int from, int to_parent)
{
	for (int s = from;; s++) {
		put_profile(w, s % 3, s % 4, s);
		put_value(w, s % 5, s);
		if (write(to_parent, "x", 1) != 1)
			_exit(1);
	}
}

/* Kills the writer after so many acknowledgements; false: it could not be started. */
static bool round_of_killing(struct follow_world *w, int from, int acks)
{
	int fds[2], status;
	pid_t pid;
	char c;

	if (pipe(fds) || (pid = fork()) < 0)
		return false;
	if (!pid) {
		close(fds[0]);
		if (db_open(&w->f.o, &w->f.db, &w->err))
			_exit(1);
		ship_again(w);
		append_until_killed(w, from, fds[1]);
	}
	close(fds[1]);
	for (int i = 0; i < acks && read(fds[0], &c, 1) == 1; i++)
		;
	kill(pid, SIGKILL);
	close(fds[0]);
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
}

TEST(a_killed_writer_needs_no_snapshot)
{
	struct follow_world w = { 0 };
	int from = 1;

	REQUIRE(world_open(&w, NULL));
	for (int i = 0; i < 12; i++) {
		/* Threads do not survive a fork: nothing is open meanwhile. */
		db_close(w.f.db);
		w.f.db = NULL;
		db_close(w.follower);
		w.follower = NULL;
		REQUIRE(round_of_killing(&w, from, 3 + i * 5));
		from += 1000;
		REQUIRE(fixture_reopen(&w.f) && follower_open(&w));
		ship_again(&w);
		CHECK_INT(ship(&w), 0);
		follow(&w);
		same_answers(w.f.db, w.follower);
	}
	world_close(&w);
}

/* ---- power ---- */

TEST(after_a_power_cut_all_that_was_acknowledged_is_followed)
{
	for (uint64_t nth = 1; nth < 70; nth += 3 * CHECK_STEP) {
		struct follow_world w = { 0 };
		struct disk *d;
		struct err err;

		REQUIRE(world_open(&w, NULL));
		db_close(w.f.db);
		w.f.db = NULL;
		d = disk_open(w.f.dir);
		w.f.o.fs = disk_fs(d);
		w.f.o.store = disk_store(d);
		REQUIRE(fixture_reopen(&w.f));
		work(&w, 1, 1, 4);
		ship(&w);
		disk_power_cut_at(d, nth);
		for (int s = 4; s < 40 && !disk_is_cut(d); s++) {
			struct arena a;

			arena_init(&a, 0);
			(void)!append_wait(w.f.db, labels_of(&a, "p", "job0", "pod"), s * SEC, SEC,
				profile_random(&a, (uint64_t)s), NULL, false, NULL, &err);
			arena_release(&a);
		}
		db_close(w.f.db);
		w.f.db = NULL;
		disk_restore(d, nth);
		REQUIRE(fixture_reopen(&w.f));
		ship_again(&w);
		ship(&w);
		follow(&w);
		same_answers(w.f.db, w.follower);
		work(&w, 1, 50, 53);
		CHECK_INT(ship(&w), 0);
		follow(&w);
		same_answers(w.f.db, w.follower);
		world_close(&w);
		disk_close(d);
	}
}

/* ---- many appends ---- */

struct appending {
	struct follow_world *w;
	int number;
	atomic_bool ended;
};

static void append_many(void *ctx)
{
	struct appending *t = ctx;

	for (int s = 1; s < 150; s++) {
		put_profile(t->w, t->number % 2, t->number, s);
		if (s % 4 == 0)
			put_value(t->w, t->number, s);
	}
	atomic_store(&t->ended, true);
}

TEST(segments_are_ended_while_many_append)
{
	struct follow_world w = { 0 };
	struct appending t[4];
	struct thread threads[4];
	bool ended = false;

	REQUIRE(world_open(&w, NULL));
	for (int i = 0; i < 4; i++) {
		t[i] = (struct appending){ .w = &w, .number = i };
		CHECK_OK(thread_start(&threads[i], "append", append_many, &t[i], &w.err), &w.err);
	}
	while (!ended) {
		ended = true;
		for (int i = 0; i < 4; i++)
			ended &= atomic_load(&t[i].ended);
		CHECK_INT(ship(&w), 0);
		follow(&w);
	}
	for (int i = 0; i < 4; i++)
		thread_join(&threads[i]);
	CHECK_INT(ship(&w), 0);
	follow(&w);
	same_answers(w.f.db, w.follower);
	world_close(&w);
}
