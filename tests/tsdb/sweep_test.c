/*
 * Each operation on the disk fails once, or from then on until it is mended, or is done by half:
 * the error is reported, nothing acknowledged is lost, and the database takes rows again by itself,
 * at the latest after it was opened again.
 */
#include <unistd.h>

#include "tests/check.h"
#include "tests/tsdb/disk.h"
#include "tests/tsdb/model.h"
#include "tests/wait.h"

#define TESTS_PER_KIND 12 /* of the operations of a kind so many are made to fail, one per run */

struct sweep {
	struct model m;
	struct disk *d;
	const char *what;
	uint64_t nth;
	bool open_failed;
};

static void open_again(struct sweep *s)
{
	struct err err;

	if (!model_open(&s->m, &err))
		return;
	s->open_failed = true;
	if (!disk_failed(s->d))
		CHECK_FAIL("%s %d: %s", s->what, (int)s->nth, err.msg);
	disk_fail(s->d, 0, DISK_OPEN, DISK_ONCE);
	if (model_open(&s->m, &err))
		CHECK_FAIL("%s %d, mended: %s", s->what, (int)s->nth, err.msg);
}

static void wait_ready(struct sweep *s)
{
	struct err why;

	if (!WAIT_FOR(db_state(s->m.f.db, &why) == DB_READY))
		CHECK_FAIL("%s %d: is not ready again: %s", s->what, (int)s->nth, why.msg);
}

static void check(struct sweep *s, const char *when, bool settled)
{
	if (!model_check(&s->m, settled))
		CHECK_FAIL("%s %d, %s:\n%s", s->what, (int)s->nth, when, s->m.wrong.ptr);
}

/* It is ready, and takes a row within a while: a window may just be reopened or dropped. */
static void takes_rows(struct sweep *s)
{
	int64_t until_ns = 0;
	size_t acked;

	wait_ready(s);
	model_wait(&s->m);
	acked = s->m.acked;
	do {
		s->m.now_s++;
		model_append(&s->m);
		model_wait(&s->m);
	} while (s->m.acked == acked && wait_more(&until_ns));
	if (s->m.acked == acked)
		CHECK_FAIL("%s %d: takes no rows: %s", s->what, (int)s->nth, s->m.f.err.msg);
}

/* The same work for each fault. */
static void work(struct sweep *s)
{
	struct err err;

	open_again(s);
	for (int part = 0; part < 2 && s->m.f.db; part++) {
		model_work(&s->m, 45, NULL, NULL);
		(void)!db_compact(s->m.f.db, &err);
		model_close(&s->m);
		open_again(s);
	}
	if (!s->m.f.db)
		return;
	model_work(&s->m, 20, NULL, NULL);
	(void)!db_compact(s->m.f.db, &err); /* the fault may be in it */
}

static void begin(struct sweep *s)
{
	REQUIRE(model_init(&s->m, model_seed()));
	s->d = disk_open(s->m.f.dir);
	s->m.f.o.fs = disk_fs(s->d);
	s->m.f.o.store = disk_store(s->d);
}

static void one(enum disk_kind kind, unsigned how, const char *what, uint64_t nth)
{
	struct sweep s = { .what = what, .nth = nth };
	struct err err;
	uint64_t failed;

	begin(&s);
	disk_fail(s.d, nth, kind, how);
	work(&s);
	failed = disk_failed(s.d);
	disk_fail(s.d, 0, kind, DISK_ONCE);
	if (!s.m.f.db)
		goto out;
	takes_rows(&s);
	if (db_compact(s.m.f.db, &err))
		CHECK_FAIL("%s %d, mended, blocks: %s", what, (int)nth, err.msg);
	check(&s, "going on", false);
	if (!failed && (s.m.refused > 10 || s.open_failed))
		CHECK_FAIL("%s %d: %zu appends refused without a fault", what, (int)nth, s.m.refused);
	/* Acknowledged rows are durable, whether the database can close or not. */
	if (nth % 2)
		disk_power_cut(s.d);
	model_close(&s.m);
	disk_power_cut(s.d);
	disk_restore(s.d, nth);
	if (model_open(&s.m, &err)) {
		CHECK_FAIL("%s %d, after a cut: %s", what, (int)nth, err.msg);
		goto out;
	}
	check(&s, "after a cut", true);
	takes_rows(&s);
out:
	model_release(&s.m);
	disk_close(s.d);
}

static void sweep(enum disk_kind kind, unsigned how, const char *what)
{
	struct sweep s = { .what = what };
	uint64_t n, step, rounds = model_rounds(TESTS_PER_KIND / CHECK_STEP);

	begin(&s);
	work(&s);
	check(&s, "without a fault", false);
	CHECK(s.m.level >= 2); /* a join is among what fails below */
	model_close(&s.m);
	n = disk_done(s.d, kind);
	model_release(&s.m);
	disk_close(s.d);
	step = n / rounds + 1;
	for (uint64_t nth = 1 + model_seed() % step; nth <= n; nth += step)
		one(kind, how, what, nth);
}

TEST(each_operation_fails_once)
{
	for (int k = 0; k < DISK_KINDS; k++)
		sweep((enum disk_kind)k, DISK_ONCE, disk_kind_names[k]);
}

TEST(each_operation_fails_from_then_on)
{
	for (int k = 0; k < DISK_KINDS; k++)
		sweep((enum disk_kind)k, DISK_FROM_THEN_ON, disk_kind_names[k]);
}

TEST(each_write_is_done_by_half)
{
	sweep(DISK_WRITE, DISK_TORN, "torn write");
	sweep(DISK_WRITE, DISK_TORN | DISK_FROM_THEN_ON, "torn writes");
}
