/*
 * The same series and time twice: the first acknowledged row stays and the second is refused,
 * whether the first waits for its sync, is stored, or was stored before a restart.
 */
#include "base/thread.h"
#include "tests/check.h"
#include "tests/tsdb/check_rows.h"
#include "tests/tsdb/disk.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/head/epochs.h"

static const char *const one_type[] = { "samples/count", NULL };

static struct pprof *profile(struct fixture *f, const char *line)
{
	return profile_of(&f->arena, one_type, (const char *const[]){ line, NULL });
}

static enum err_code push(struct fixture *f, struct labels l, int64_t ts_s, const char *line)
{
	return append_wait(
		f->db, l, ts_s * SEC, 10 * SEC, profile(f, line), NULL, false, NULL, &f->err);
}

static enum err_code scrape(struct fixture *f, struct labels l, int64_t ts_s, const char *line)
{
	return append_wait(f->db, l, ts_s * SEC, 10 * SEC, profile(f, line), NULL, true, NULL, &f->err);
}

static const char *const refused =
	"another profile of 1970-01-01T00:16:40.000Z of series p{instance=\"i\", job=\"j\"} is "
	"stored already";

TEST(the_second_of_two_is_refused)
{
	struct fixture f;
	struct labels l;

	REQUIRE(fixture_open(&f));
	l = labels_of(&f.arena, "p", "j", "i");
	CHECK_OK(push(&f, l, 1000, "main;a 1"), &f.err);
	CHECK_OK(push(&f, l, 1010, "main;b 2"), &f.err);
	for (int start = 0; start < 3; start++) {
		CHECK_ERR(push(&f, l, 1000, "main;a 2"), &f.err, ERR_EXISTS, refused);
		CHECK_ERR(push(&f, l, 1000, "main;c 1"), &f.err, ERR_EXISTS, refused);
		CHECK_ERR(scrape(&f, l, 1000, "main;a 1"), &f.err, ERR_EXISTS, refused);
		/* The same row is there: that is all that was asked. */
		CHECK_OK(push(&f, l, 1000, "main;a 1"), &f.err);
		check_rows(&f, l, "@1000\nmain;a 1\n@1010\nmain;b 2\n");
		REQUIRE(fixture_reopen(&f));
	}
	/* Late is not again, nor is another series. */
	CHECK_OK(push(&f, l, 1005, "main;c 3"), &f.err);
	CHECK_OK(push(&f, labels_of(&f.arena, "p", "j", "k"), 1000, "main;c 3"), &f.err);
	check_rows(&f, l, "@1000\nmain;a 1\n@1005\nmain;c 3\n@1010\nmain;b 2\n");
	fixture_close(&f);
}

static enum err_code push_lines(
	struct fixture *f, struct labels l, int64_t ts_s, const char *const *lines)
{
	return append_wait(f->db, l, ts_s * SEC, 10 * SEC, profile_of(&f->arena, one_type, lines), NULL,
		false, NULL, &f->err);
}

static void end_epoch(struct fixture *f, const char *name)
{
	struct job *job;

	REQUIRE_OK(db_job(f->db, str_of(name), SYM_NONE, SYM_NONE, &job, &f->err), &f->err);
	mutex_lock(&job->lock);
	epoch_end(f->db, job);
	mutex_unlock(&job->lock);
}

/* Its content has other ids by now, in another order. */
TEST(the_same_row_is_known_after_the_end_of_its_epoch)
{
	static const char *const lines[] = { "main;a 1", "main;a;b 2", "main;c 3", NULL },
							 *const other[] = { "main;a 1", "main;a;b 2", "main;c 4", NULL },
							 *const fewer[] = { "main;a 1", "main;a;b 2", NULL },
							 *const reverse[] = { "main;c 9", "main;a;b 9", "main;a 9", NULL };
	struct fixture f;
	struct labels l;

	REQUIRE(fixture_open(&f));
	l = labels_of(&f.arena, "p", "j", "i");
	CHECK_OK(push_lines(&f, l, 1000, lines), &f.err);
	for (int start = 0; start < 3; start++) {
		end_epoch(&f, "j");
		CHECK_OK(push_lines(&f, l, 1010 + start, reverse), &f.err);
		CHECK_OK(push_lines(&f, l, 1000, lines), &f.err);
		CHECK_ERR(push_lines(&f, l, 1000, other), &f.err, ERR_EXISTS, refused);
		CHECK_ERR(push_lines(&f, l, 1000, fewer), &f.err, ERR_EXISTS, refused);
		CHECK_OK(push_lines(&f, l, 1000, lines), &f.err);
		REQUIRE(fixture_reopen(&f));
	}
	fixture_close(&f);
}

TEST(scrapes_of_one_nanosecond_are_told)
{
	struct fixture f;
	struct labels l;

	REQUIRE(fixture_open(&f));
	l = labels_of(&f.arena, "p", "j", "i");
	CHECK_OK(scrape(&f, l, 1000, "main;a 1"), &f.err);
	CHECK_ERR(scrape(&f, l, 1000, "main;a 1"), &f.err, ERR_EXISTS, refused);
	CHECK_OK(scrape(&f, l, 1010, "main;a 4"), &f.err);
	check_rows(&f, l, "@1000\nmain;a 1\n@1010\nmain;a 4\n");
	fixture_close(&f);
}

/* ---- before the first is stored ---- */

#define PUSHERS 4
#define ROUNDS 50

struct pusher {
	struct fixture f; /* its own arena; the database is shared */
	struct labels labels;
	const char *line;
	struct thread thread;
	int64_t ts_s;
	enum err_code rc;
};

static void push_one(void *ctx)
{
	struct pusher *p = ctx;

	p->rc = push(&p->f, p->labels, p->ts_s, p->line);
}

/* One of those that come at once is stored, and it is the one that is acknowledged. */
TEST(of_several_at_once_one_is_stored)
{
	static const char *const lines[PUSHERS] = { "main;a 1", "main;b 2", "main;c 3", "main;d 4" };
	struct pusher p[PUSHERS];
	struct buf want = { 0 };
	struct fixture f;

	REQUIRE(fixture_open(&f));
	for (int round = 1; round <= ROUNDS; round++) {
		int stored = 0;

		for (int i = 0; i < PUSHERS; i++) {
			p[i] = (struct pusher){ .ts_s = round, .line = lines[i] };
			p[i].f.db = f.db;
			arena_init(&p[i].f.arena, 0);
			p[i].labels = labels_of(&p[i].f.arena, "p", "j", "i");
			REQUIRE_OK(thread_start(&p[i].thread, "push", push_one, &p[i], &f.err), &f.err);
		}
		for (int i = 0; i < PUSHERS; i++) {
			thread_join(&p[i].thread);
			if (p[i].rc == ERR_OK) {
				buf_printf(&want, "@%d\n%s\n", round, lines[i]);
				stored++;
			} else {
				CHECK_INT(p[i].rc, ERR_EXISTS);
			}
			arena_release(&p[i].f.arena);
		}
		CHECK_INT(stored, 1);
	}
	buf_add_char(&want, '\0');
	check_rows(&f, labels_of(&f.arena, "p", "j", "i"), want.ptr);
	buf_release(&want);
	fixture_close(&f);
}

struct answers {
	struct mutex lock;
	struct cond changed;
	int n, ok;
};

static void answered(void *ctx, enum err_code rc, const struct err *err)
{
	struct answers *a = ctx;

	(void)err;
	mutex_lock(&a->lock);
	a->n++;
	a->ok += rc == ERR_OK;
	cond_broadcast(&a->changed);
	mutex_unlock(&a->lock);
}

/* In one group commit: nobody waits for an answer in between. */
TEST(the_second_of_a_group_is_refused)
{
	static const enum value_kind delta = KIND_DELTA;
	struct db_append a = { .interval_ns = SEC, .kinds = &delta };
	struct answers got = { 0 };
	struct fixture f;

	REQUIRE(fixture_open(&f));
	mutex_init(&got.lock);
	cond_init(&got.changed);
	a.labels = labels_of(&f.arena, "p", "j", "i");
	for (int i = 0; i < ROUNDS; i++) {
		a.ts_ns = (1000 + i) * SEC;
		a.profile = profile(&f, "main;a 1");
		CHECK_OK(db_append(f.db, &a, NULL, answered, &got, &f.err), &f.err);
		a.profile = profile(&f, "main;b 2");
		CHECK_INT(db_append(f.db, &a, NULL, answered, &got, &f.err), ERR_EXISTS);
		a.profile = profile(&f, "main;a 1");
		CHECK_OK(db_append(f.db, &a, NULL, answered, &got, &f.err), &f.err);
	}
	mutex_lock(&got.lock);
	while (got.n < 2 * ROUNDS)
		cond_wait(&got.changed, &got.lock);
	mutex_unlock(&got.lock);
	CHECK_INT(got.ok, 2 * ROUNDS);
	cond_destroy(&got.changed);
	mutex_destroy(&got.lock);
	fixture_close(&f);
}

/* One that was not stored is not in the way of the one that comes after it. */
TEST(what_was_refused_can_come_again)
{
	struct disk *d;
	struct fixture f;
	struct labels l;
	enum err_code rc;

	REQUIRE(fixture_open(&f));
	db_close(f.db);
	f.db = NULL;
	d = disk_open(f.dir);
	f.o.fs = disk_fs(d);
	f.o.store = disk_store(d);
	f.o.free_bytes_reserve = 0;
	REQUIRE(fixture_reopen(&f));
	l = labels_of(&f.arena, "p", "j", "i");
	CHECK_OK(push(&f, l, 1000, "main;a 1"), &f.err);
	disk_fail(d, 1, DISK_WRITE, DISK_ONCE);
	CHECK(push(&f, l, 1010, "main;b 2") != ERR_OK);
	disk_fail(d, 0, DISK_WRITE, DISK_ONCE);
	while ((rc = push(&f, l, 1010, "main;c 3")) == ERR_UNAVAILABLE)
		; /* being reopened */
	CHECK_OK(rc, &f.err);
	CHECK_INT(push(&f, l, 1010, "main;d 3"), ERR_EXISTS);
	check_rows(&f, l, "@1000\nmain;a 1\n@1010\nmain;c 3\n");
	fixture_close(&f);
	disk_close(d);
}

/* ---- where nothing can be added ---- */

TEST(windows_that_became_blocks_take_nothing_again)
{
	struct fixture f;
	struct labels l;

	REQUIRE(fixture_open(&f));
	f.o.window_ns = 10 * SEC;
	f.o.too_old_ns = 20 * SEC;
	f.o.retention_ns = 0;
	f.o.no_compaction = true;
	REQUIRE(fixture_reopen(&f));
	l = labels_of(&f.arena, "p", "j", "i");
	CHECK_OK(push(&f, l, 1005, "main;a 1"), &f.err);
	CHECK_OK(push(&f, l, 1055, "main;b 2"), &f.err);
	CHECK_OK(db_compact(f.db, &f.err), &f.err);
	f.o.too_old_ns = 1000 * SEC;
	for (int start = 0; start < 2; start++) {
		CHECK_INT(push(&f, l, 1005, "main;c 3"), ERR_INVALID);
		CHECK_INT(push(&f, l, 1005, "main;a 1"), ERR_INVALID);
		check_rows(&f, l, "@1005\nmain;a 1\n@1055\nmain;b 2\n");
		REQUIRE(fixture_reopen(&f));
	}
	fixture_close(&f);
}

TEST(what_would_not_be_seen_is_refused)
{
	struct matcher m;
	struct fixture f;
	struct labels l;

	REQUIRE(fixture_open(&f));
	l = labels_of(&f.arena, "p", "j", "i");
	CHECK_OK(push(&f, l, 1000, "main;a 1"), &f.err);
	CHECK_OK(push(&f, l, 1010, "main;b 2"), &f.err);
	CHECK_OK(matcher_init(&m, MATCH_EQ, STR("job"), STR("j"), &f.err), &f.err);
	CHECK_OK(db_delete_series(f.db, &m, 1, 0, 1005 * SEC, &f.err), &f.err);
	matcher_release(&m);
	for (int start = 0; start < 2; start++) {
		CHECK_ERR(push(&f, l, 1000, "main;a 1"), &f.err, ERR_INVALID,
			"profiles of 1970-01-01T00:16:40.000Z of series p{instance=\"i\", job=\"j\"} "
			"were deleted");
		CHECK_INT(push(&f, l, 1002, "main;a 1"), ERR_INVALID);
		check_rows(&f, l, "@1010\nmain;b 2\n");
		REQUIRE(fixture_reopen(&f));
	}
	CHECK_OK(push(&f, l, 1006, "main;c 1"), &f.err);
	fixture_close(&f);
}

/* ---- numbers ---- */

static enum err_code put(struct fixture *f, const struct db_number *v, size_t n)
{
	struct answers got = { 0 };
	enum err_code rc;

	mutex_init(&got.lock);
	cond_init(&got.changed);
	if (!(rc = db_append_numbers(f->db, v, n, answered, &got, &f->err))) {
		mutex_lock(&got.lock);
		while (!got.n)
			cond_wait(&got.changed, &got.lock);
		mutex_unlock(&got.lock);
		rc = got.ok ? ERR_OK : ERR_IO;
	}
	cond_destroy(&got.changed);
	mutex_destroy(&got.lock);
	return rc;
}

struct seen {
	struct buf text;
};

static bool see(void *ctx, const struct db_series *s, int64_t ts_ns, double value)
{
	struct seen *seen = ctx;

	buf_printf(&seen->text, "%s" STR_FMT "@%d=%g", seen->text.len ? " " : "",
		STR_ARG(labels_get(s->labels, STR("instance"))), (int)(ts_ns / SEC), value);
	return true;
}

static void check_numbers(struct fixture *f, const char *want)
{
	struct seen seen = { { 0 } };
	size_t warnings = 0;

	CHECK(numbers_each(f->db, 0, INT64_MAX - 1, see, &seen, &warnings, &f->err));
	CHECK_STR(buf_str(&seen.text), want);
	buf_release(&seen.text);
}

TEST(another_value_of_the_same_time_is_refused)
{
	struct db_number v[4];
	struct fixture f;

	REQUIRE(fixture_open(&f));
	v[0] = (struct db_number){ labels_of(&f.arena, "up", "j", "a"), 1000 * SEC, 1 };
	v[1] = (struct db_number){ labels_of(&f.arena, "up", "j", "b"), 1000 * SEC, 2 };
	v[2] = v[0];
	CHECK_OK(put(&f, v, 3), &f.err);
	check_numbers(&f, "a@1000=1 b@1000=2");
	for (int start = 0; start < 2; start++) {
		CHECK_OK(put(&f, v, 3), &f.err);
		v[1].value = 3;
		CHECK_ERR(put(&f, v, 2), &f.err, ERR_EXISTS,
			"another value of 1970-01-01T00:16:40.000Z of series up{instance=\"b\", "
			"job=\"j\"} is stored already");
		/* All or nothing. */
		v[3] = (struct db_number){ v[0].labels, (1010 + start) * SEC, 5 };
		CHECK_INT(put(&f, v + 1, 3), ERR_EXISTS);
		v[1].value = 2;
		check_numbers(&f, "a@1000=1 b@1000=2");
		REQUIRE(fixture_reopen(&f));
	}
	/* In one batch. */
	v[0].ts_ns = v[2].ts_ns = 1020 * SEC;
	v[2].value = 7;
	CHECK_INT(put(&f, v, 3), ERR_EXISTS);
	CHECK_OK(put(&f, v, 2), &f.err);
	check_numbers(&f, "a@1000=1 a@1020=1 b@1000=2");
	fixture_close(&f);
}
