/*
 * A window that went into a block, or was dropped, and whose directory the disk did not let go: it
 * is opened again at the next start, so what it says of series is still what the newer windows say.
 */
#include "tests/check.h"
#include "tests/tsdb/disk.h"
#include "tests/tsdb/fixture.h"

#define WINDOW_S 10

struct left {
	struct fixture f;
	struct disk *d;
};

static const char *const types[] = { "samples/count", NULL };

static void append(struct left *t, const char *instance, int64_t ts_s)
{
	CHECK_OK(append_wait(t->f.db, labels_of(&t->f.arena, "p", "j", instance), ts_s * SEC, SEC,
			 profile_of(&t->f.arena, types, (const char *const[]){ "a;b 1", NULL }),
			 NULL, false, NULL, &t->f.err),
		&t->f.err);
}

static bool is_opened(struct left *t)
{
	if (!fixture_open(&t->f))
		return false;
	db_close(t->f.db);
	t->f.db = NULL;
	t->d = disk_open(t->f.dir);
	t->f.o.fs = disk_fs(t->d);
	t->f.o.store = disk_store(t->d);
	t->f.o.window_ns = WINDOW_S * SEC;
	t->f.o.too_old_ns = 0;
	t->f.o.retention_ns = 0;
	t->f.o.free_bytes_reserve = 0;
	t->f.o.no_compaction = true;
	return fixture_reopen(&t->f);
}

/* One series comes again long after its only window, the other is always there. */
static bool work(struct left *t, uint64_t n, int64_t retention_ns)
{
	struct err err;
	bool hit;

	append(t, "rare", 5);
	for (int64_t s = 6; s < 60; s += 9)
		append(t, "often", s);
	disk_fail(t->d, n, DISK_RENAME, DISK_ONCE);
	db_set_retention(t->f.db, retention_ns, 0, 0);
	if (!retention_ns)
		(void)!db_compact(t->f.db, &err);
	fixture_maintain(&t->f);
	hit = disk_failed(t->d);
	disk_fail(t->d, 0, DISK_RENAME, DISK_ONCE);
	append(t, "rare", 60);
	append(t, "often", 61);
	return hit;
}

static void check_series(struct left *t, const char *instance, const char *want)
{
	struct buf got = { 0 };

	CHECK(rows_text(t->f.db, labels_of(&t->f.arena, "p", "j", instance), 55 * SEC, 100 * SEC,
		&got, &t->f.err));
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
}

/* False: there are no n renames. */
static bool rename_fails(uint64_t n, int64_t retention_ns)
{
	double damage = metric_value("epimetheus_tsdb_damage_total");
	struct left t = { 0 };
	bool hit;

	if (!is_opened(&t)) {
		CHECK_FAIL("%s", t.f.err.msg);
		return false;
	}
	hit = work(&t, n, retention_ns);
	if (fixture_reopen(&t.f)) {
		check_series(&t, "rare", "@60\na;b 1\n");
		check_series(&t, "often", "@61\na;b 1\n");
		CHECK_INT(metric_value("epimetheus_tsdb_damage_total"), damage);
	} else {
		CHECK_FAIL("%s", t.f.err.msg);
	}
	if (check_failures)
		CHECK_FAIL("rename %d", (int)n);
	fixture_close(&t.f);
	disk_close(t.d);
	return hit;
}

TEST(a_window_that_is_in_a_block)
{
	uint64_t n = 1;

	while (rename_fails(n, 0) && !check_failures)
		n++;
	CHECK(n > 10);
}

TEST(a_window_that_is_too_old)
{
	uint64_t n = 1;

	while (rename_fails(n, 20 * SEC) && !check_failures)
		n++;
	CHECK(n > 3);
}
