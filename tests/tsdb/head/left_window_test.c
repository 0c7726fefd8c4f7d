/*
 * A window that went into a block, or was dropped, and of which the disk did not let all go: what
 * is left is read again at the next start, where it says of series what the newer windows say, and
 * is no loss once the block has gone, too. What was deleted meanwhile does not come back with it.
 */
#include "tests/check.h"
#include "tests/tsdb/disk.h"
#include "tests/tsdb/fixture.h"
#include "tsdb/catalog/state.h"
#include "tsdb/db.h"

#define WINDOW_S 10

struct left {
	struct fixture f;
	struct disk *d;
};

static const char *const types[] = { "samples/count", NULL };

static void append(struct left *t, const char *instance, int64_t ts_s)
{
	CHECK_OK(append_wait(t->f.db, labels_of(&t->f.arena, "p", "j", instance), ts_s * SEC, SEC,
				 profile_of(&t->f.arena, types, (const char *const[]){ "a;b 1", NULL }), NULL,
				 false, NULL, &t->f.err),
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
static bool work(struct left *t, enum disk_kind kind, uint64_t n, int64_t retention_ns)
{
	struct err err;
	bool hit;

	append(t, "rare", 5);
	for (int64_t s = 6; s < 60; s += 9)
		append(t, "often", s);
	disk_fail(t->d, n, kind, DISK_ONCE);
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

	CHECK(rows_text(
		t->f.db, labels_of(&t->f.arena, "p", "j", instance), 55 * SEC, 100 * SEC, &got, &t->f.err));
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
}

static void check_both(struct left *t)
{
	check_series(t, "rare", "@60\na;b 1\n");
	check_series(t, "often", "@61\na;b 1\n");
}

/* False: there are no n operations of this kind. */
static bool fails(enum disk_kind kind, uint64_t n, int64_t retention_ns)
{
	double damage = metric_value("epimetheus_tsdb_damage_total");
	struct left t = { 0 };
	bool hit;

	if (!is_opened(&t)) {
		CHECK_FAIL("%s", t.f.err.msg);
		return false;
	}
	hit = work(&t, kind, n, retention_ns);
	for (int start = 0; start < 2 && fixture_reopen(&t.f); start++) {
		check_both(&t);
		db_set_retention(t.f.db, 20 * SEC, 0, 0); /* what stands for it goes, too */
		fixture_maintain(&t.f);
		check_both(&t);
	}
	CHECK_INT(metric_value("epimetheus_tsdb_damage_total"), damage);
	if (check_failures)
		CHECK_FAIL("%s %d", disk_kind_names[kind], (int)n);
	fixture_close(&t.f);
	disk_close(t.d);
	return hit;
}

/* In short, one operation of so many fails. */
static uint64_t step(void)
{
	return check_is_short() ? 5 : 1;
}

static const enum disk_kind kinds[] = { DISK_RENAME, DISK_UNLINK, DISK_RMDIR, DISK_SYNC_DIR };

static void each_fails(int64_t retention_ns)
{
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		uint64_t n = 1;

		while (fails(kinds[k], n, retention_ns) && !check_failures)
			n += step();
		CHECK(n > 3);
	}
}

TEST(a_window_that_is_in_a_block)
{
	each_fails(0);
}

TEST(a_window_that_is_too_old)
{
	each_fails(20 * SEC);
}

/* ---- deleted meanwhile ---- */

static void delete_rare(struct left *t, int64_t max_ns)
{
	struct matcher m;

	REQUIRE_OK(matcher_init(&m, MATCH_EQ, STR("instance"), STR("rare"), &t->f.err), &t->f.err);
	CHECK_OK(db_delete_series(t->f.db, &m, 1, 0, max_ns, &t->f.err), &t->f.err);
	matcher_release(&m);
}

static void check_rare(struct left *t, const char *want)
{
	struct buf got = { 0 };

	CHECK(rows_text(
		t->f.db, labels_of(&t->f.arena, "p", "j", "rare"), 0, 100 * SEC, &got, &t->f.err));
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
}

/* The nth rename fails while the first window goes, into a block or dropped; later what has its
 * rows goes, too. False: there are no n. */
static bool is_gone(uint64_t n, bool dropped, bool before)
{
	struct left t = { 0 };
	bool hit;

	if (!is_opened(&t)) {
		CHECK_FAIL("%s", t.f.err.msg);
		return false;
	}
	append(&t, "rare", 5);
	for (int64_t s = 6; s < 60; s += 9)
		append(&t, "often", s);
	if (before)
		delete_rare(&t, 50 * SEC);
	disk_fail(t.d, n, DISK_RENAME, DISK_ONCE);
	db_set_retention(t.f.db, dropped ? 20 * SEC : 0, 0, 0);
	if (!dropped)
		(void)!db_compact(t.f.db, &t.f.err);
	fixture_maintain(&t.f);
	hit = disk_failed(t.d);
	disk_fail(t.d, 0, DISK_RENAME, DISK_ONCE);
	if (!before)
		delete_rare(&t, 50 * SEC);
	db_set_retention(t.f.db, 5 * SEC, 0, 0);
	fixture_maintain(&t.f);
	for (int start = 0; start < 2 && fixture_reopen(&t.f); start++)
		check_rare(&t, "");
	if (check_failures)
		CHECK_FAIL("rename %d, %s, deleted %s", (int)n, dropped ? "dropped" : "in a block",
			before ? "before" : "after");
	fixture_close(&t.f);
	disk_close(t.d);
	return hit;
}

TEST(what_was_deleted_does_not_come_back_with_it)
{
	for (int i = 0; i < 4; i++) {
		uint64_t n = 1;

		while (is_gone(n, i & 1, i & 2) && !check_failures)
			n += step();
		CHECK(n > 3);
	}
}

/* ---- nor can the next start remove it ---- */

static void start_fails(uint64_t at_work, uint64_t at_start)
{
	struct left t = { 0 };

	REQUIRE(is_opened(&t));
	append(&t, "rare", 5);
	for (int64_t s = 6; s < 60; s += 9)
		append(&t, "often", s);
	disk_fail(t.d, at_work, DISK_RENAME, DISK_ONCE);
	(void)!db_compact(t.f.db, &t.f.err);
	db_close(t.f.db);
	t.f.db = NULL;
	disk_fail(t.d, at_start, DISK_RENAME, DISK_ONCE);
	if (!db_open(&t.f.o, &t.f.db, &t.f.err)) /* else it is told */
		check_rare(&t, "@5\na;b 1\n");
	fixture_close(&t.f);
	disk_close(t.d);
}

TEST(rows_of_a_window_that_stays_are_there_once)
{
	for (uint64_t at_work = 1; at_work <= 11; at_work++)
		for (uint64_t at_start = 1; at_start <= 3; at_start++)
			start_fails(at_work, at_start);
}

/* ---- blocks ---- */

static size_t names_in_blocks(struct left *t)
{
	struct str *names;
	struct err err;
	size_t n;

	return fs_list(
		path_join(&t->f.arena, str_of(t->f.dir), STR("blocks")), &t->f.arena, &names, &n, &err) ?
		0 :
		n;
}

struct trial {
	bool hit; /* there is such a rename */
	bool left; /* a directory stands beside the blocks */
	bool cut; /* there is such an operation */
};

/* Windows are cut and joined, the nth rename fails; closed. */
static void join(struct left *t, uint64_t n, struct trial *out)
{
	struct err err;

	for (int64_t s = 6; s < 60; s += 9)
		append(t, "often", s);
	disk_fail(t->d, n, DISK_RENAME, DISK_ONCE);
	(void)!db_compact(t->f.db, &err);
	out->hit = disk_failed(t->d) > 0;
	out->left = names_in_blocks(t) > t->f.db->blocks_n;
	disk_fail(t->d, 0, DISK_RENAME, DISK_ONCE);
	db_close(t->f.db);
	t->f.db = NULL;
}

/* The next start removes what was left, and the power goes at its nth operation. */
static struct trial cut_at_start(uint64_t rename, uint64_t n)
{
	double damage = metric_value("epimetheus_tsdb_damage_total");
	struct trial trial = { 0 };
	struct left t = { 0 };
	struct err err;

	if (!is_opened(&t)) {
		CHECK_FAIL("%s", t.f.err.msg);
		return trial;
	}
	join(&t, rename, &trial);
	if (trial.left) {
		disk_power_cut_at(t.d, n);
		if (!db_open(&t.f.o, &t.f.db, &err))
			db_close(t.f.db);
		t.f.db = NULL;
		trial.cut = disk_is_cut(t.d);
		disk_power_cut(t.d);
		disk_restore(t.d, n);
	}
	CHECK(fixture_reopen(&t.f));
	CHECK_INT(metric_value("epimetheus_tsdb_damage_total"), damage);
	if (check_failures)
		CHECK_FAIL("rename %d, power at %d", (int)rename, (int)n);
	fixture_close(&t.f);
	disk_close(t.d);
	return trial;
}

TEST(a_block_that_is_left_goes_whole_or_not_at_all)
{
	struct trial trial = { .hit = true };
	size_t left = 0;

	for (uint64_t rename = 1; trial.hit && !check_failures; rename++) {
		uint64_t n = 1;

		for (; (trial = cut_at_start(rename, n)).cut && !check_failures; n += step())
			;
		left += trial.left;
	}
	CHECK(left >= 4); /* each of those that are joined */
}
