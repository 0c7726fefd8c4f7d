/* The list of what must be there: its files, and what is said when something is missing. */
#include <fcntl.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/tsdb/town.h"

/* ---- the files ---- */

static struct inventory_entry window_at(int64_t start_s, bool deleted)
{
	return (struct inventory_entry){
		.min_ns = start_s * SEC, .max_ns = (start_s + 10) * SEC, .deleted = deleted
	};
}

static struct inventory_entry block_at(const char *ulid, int64_t start_s)
{
	struct inventory_entry e = {
		.min_ns = start_s * SEC, .max_ns = (start_s + 10) * SEC, .raw = true
	};

	CHECK(ulid_parse(str_of(ulid), &e.ulid));
	return e;
}

static void print_list(struct inventory *v, struct buf *out)
{
	struct inventory_entry *e;
	struct arena a;
	struct err err;
	size_t n;

	arena_init(&a, 0);
	buf_clear(out);
	CHECK_OK(inventory_list(v, &a, &e, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s%s%d-%d%s%s", i ? " " : "",
			e[i].ulid.text[0] ? e[i].ulid.text + ULID_LEN - 1 : "", (int)(e[i].min_ns / SEC),
			(int)(e[i].max_ns / SEC), e[i].raw ? "r" : "", e[i].deleted ? "d" : "");
	arena_release(&a);
}

#define A "01M0000000000000000000000A"
#define B "01M0000000000000000000000B"

struct bed {
	struct fixture f;
	struct disk *disk;
	struct inventory *v;
	enum inventory_found found;
};

static bool bed_open(struct bed *t)
{
	*t = (struct bed){ 0 };
	if (!fixture_open(&t->f))
		return false;
	db_close(t->f.db);
	t->f.db = NULL;
	unlink(arena_printf(&t->f.arena, "%s/inventory", t->f.dir));
	unlink(arena_printf(&t->f.arena, "%s/inventory.copy", t->f.dir));
	t->disk = disk_open(t->f.dir);
	return true;
}

static void bed_close(struct bed *t)
{
	inventory_close(t->v);
	disk_close(t->disk);
	fixture_close(&t->f);
}

static void reopen(struct bed *t)
{
	inventory_close(t->v);
	t->v = NULL;
	CHECK_OK(
		inventory_open(disk_fs(t->disk), t->f.dir, false, &t->v, &t->found, &t->f.err), &t->f.err);
}

static enum err_code change(
	struct bed *t, const struct inventory_entry *out, const struct inventory_entry *in)
{
	const struct inventory_change c = { out, in, out != NULL, in != NULL };

	return inventory_change(t->v, &c, &t->f.err);
}

static void damage(struct bed *t, const char *name, off_t at)
{
	const char *path = arena_printf(&t->f.arena, "%s/%s", t->f.dir, name);
	int fd = open(path, O_RDWR);
	char byte;

	CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1);
	byte ^= 1;
	CHECK(pwrite(fd, &byte, 1, at) == 1);
	close(fd);
}

#define CHECK_LIST(t, want) \
	do { \
		struct buf list_ = { 0 }; \
		print_list((t)->v, &list_); \
		CHECK_STR(buf_str(&list_), want); \
		buf_release(&list_); \
	} while (0)

TEST(what_comes_and_goes_is_there_after_a_start)
{
	const struct inventory_entry w = window_at(20, false), wd = window_at(20, true),
								 older = window_at(10, false), a = block_at(A, 10),
								 b = block_at(B, 0);
	struct bed t;

	REQUIRE(bed_open(&t));
	reopen(&t);
	CHECK_INT(t.found, INVENTORY_NONE);
	CHECK_OK(change(&t, NULL, &w), &t.f.err);
	CHECK_OK(change(&t, NULL, &older), &t.f.err);
	CHECK_OK(change(&t, NULL, &b), &t.f.err);
	CHECK_OK(change(&t, &older, &a), &t.f.err);
	CHECK_OK(change(&t, NULL, &wd), &t.f.err);
	CHECK_LIST(&t, "20-30d A10-20r B0-10r");
	reopen(&t);
	CHECK_INT(t.found, INVENTORY_READ);
	CHECK_LIST(&t, "20-30d A10-20r B0-10r");
	CHECK_OK(change(&t, &b, NULL), &t.f.err);
	CHECK_OK(change(&t, &b, NULL), &t.f.err); /* is gone already */
	reopen(&t);
	CHECK_LIST(&t, "20-30d A10-20r");
	bed_close(&t);
}

TEST(either_file_will_do)
{
	static const char *const names[] = { "inventory", "inventory.copy" };
	const struct inventory_entry w = window_at(20, false), a = block_at(A, 10);
	struct bed t;

	REQUIRE(bed_open(&t));
	reopen(&t);
	CHECK_OK(change(&t, NULL, &w), &t.f.err);
	CHECK_OK(change(&t, NULL, &a), &t.f.err);
	for (int i = 0; i < 4; i++) {
		if (i & 1)
			unlink(arena_printf(&t.f.arena, "%s/%s", t.f.dir, names[i / 2]));
		else
			damage(&t, names[i / 2], 20);
		reopen(&t);
		CHECK_INT(t.found, INVENTORY_READ);
		CHECK_LIST(&t, "20-30 A10-20r");
		/* And is made anew of the other. */
		CHECK_OK(inventory_save(t.v, &t.f.err), &t.f.err);
	}
	damage(&t, names[0], 20);
	damage(&t, names[1], 3);
	reopen(&t);
	CHECK_INT(t.found, INVENTORY_LOST);
	CHECK_LIST(&t, "");
	bed_close(&t);
}

/* Old or new, whatever becomes of what was not synced; and a change that was made stays made. */
TEST(power_may_go_at_any_operation)
{
	const struct inventory_entry w = window_at(20, false), a = block_at(A, 10);
	bool cut = true;
	struct bed t;

	for (uint64_t nth = 1; cut; nth++)
		for (uint64_t seed = 0; seed < 8; seed++) {
			struct buf list = { 0 };
			enum err_code rc;

			REQUIRE(bed_open(&t));
			reopen(&t);
			CHECK_OK(change(&t, NULL, &w), &t.f.err);
			disk_power_cut_at(t.disk, nth);
			rc = change(&t, &w, &a);
			cut = disk_is_cut(t.disk);
			disk_power_cut(t.disk);
			disk_restore(t.disk, seed);
			reopen(&t);
			CHECK_INT(t.found, INVENTORY_READ);
			print_list(t.v, &list);
			if (rc)
				CHECK(str_is(buf_str(&list), "20-30") || str_is(buf_str(&list), "A10-20r"));
			else
				CHECK_STR(buf_str(&list), "A10-20r");
			buf_release(&list);
			bed_close(&t);
		}
}

/* Each call fails once: it is told, what holds in memory is written by the next change. */
TEST(each_operation_fails_once)
{
	const struct inventory_entry w = window_at(20, false), a = block_at(A, 10), b = block_at(B, 0);

	for (enum disk_kind kind = 0; kind < DISK_KINDS; kind++)
		for (uint64_t nth = 1;; nth++) {
			uint64_t failed;
			struct bed t;

			REQUIRE(bed_open(&t));
			reopen(&t);
			CHECK_OK(change(&t, NULL, &w), &t.f.err);
			disk_fail(t.disk, nth, kind, DISK_ONCE | DISK_TORN);
			CHECK_INT(change(&t, &w, &a) != ERR_OK, disk_failed(t.disk) != 0);
			failed = disk_failed(t.disk);
			disk_fail(t.disk, 0, kind, DISK_ONCE);
			CHECK_LIST(&t, "A10-20r");
			CHECK_OK(change(&t, NULL, &b), &t.f.err);
			disk_power_cut(t.disk);
			disk_restore(t.disk, nth);
			reopen(&t);
			CHECK_INT(t.found, INVENTORY_READ);
			CHECK_LIST(&t, "A10-20r B0-10r");
			bed_close(&t);
			if (!failed)
				break;
		}
}

/* The second file by half, then whichever is written next: one of them is whole all the time. */
TEST(two_writes_one_after_the_other_fail_by_half)
{
	const struct inventory_entry w = window_at(20, false), a = block_at(A, 10);

	for (uint64_t first = 1; first <= 2; first++)
		for (uint64_t second = 1; second <= 2; second++) {
			struct bed t;

			REQUIRE(bed_open(&t));
			reopen(&t);
			CHECK_OK(change(&t, NULL, &w), &t.f.err);
			disk_fail(t.disk, first, DISK_WRITE, DISK_ONCE | DISK_TORN);
			CHECK_INT(change(&t, NULL, &a), ERR_IO);
			disk_fail(t.disk, second, DISK_WRITE, DISK_ONCE | DISK_TORN);
			CHECK_INT(change(&t, &a, NULL), ERR_IO);
			disk_fail(t.disk, 0, DISK_WRITE, DISK_ONCE);
			reopen(&t);
			CHECK_INT(t.found, INVENTORY_READ);
			bed_close(&t);
		}
}

/* What a failed sync was to write can be read until the power goes. A start that reads it must not
 * take it for whole, and write over the other file. */
TEST(power_may_go_after_a_sync_that_failed_before_the_start)
{
	const struct inventory_entry w = window_at(20, false), a = block_at(A, 10);
	bool cut = true;
	struct bed t;

	for (uint64_t nth = 1; cut; nth++)
		for (uint64_t turn = 0; turn < 64; turn++) {
			REQUIRE(bed_open(&t));
			reopen(&t);
			for (uint64_t i = 0; i < 150 + turn % 2; i++) { /* the one written first changes */
				struct inventory_entry more = window_at(100 + 10 * (int64_t)i, false);

				CHECK_OK(change(&t, NULL, &more), &t.f.err); /* more than a sector */
			}
			CHECK_OK(change(&t, NULL, &w), &t.f.err);
			disk_fail(t.disk, 1 + turn / 2 % 2, DISK_SYNC, DISK_ONCE);
			CHECK_INT(change(&t, &w, &a), ERR_IO);
			disk_fail(t.disk, 0, DISK_SYNC, DISK_ONCE);
			reopen(&t);
			if (turn / 4 % 2) /* the files are written in place */
				disk_full(t.disk, 0);
			disk_power_cut_at(t.disk, nth);
			(void)!change(&t, NULL, &w);
			cut = disk_is_cut(t.disk);
			disk_power_cut(t.disk);
			disk_full(t.disk, UINT64_MAX);
			disk_restore(t.disk, turn / 8);
			reopen(&t);
			CHECK_INT(t.found, INVENTORY_READ);
			bed_close(&t);
		}
}

TEST(something_can_go_where_the_disk_has_no_room)
{
	struct inventory_entry w[100];
	struct bed t;

	REQUIRE(bed_open(&t));
	reopen(&t);
	for (int i = 0; i < 100; i++) {
		w[i] = window_at(10 * i, false);
		CHECK_OK(change(&t, NULL, &w[i]), &t.f.err);
	}
	disk_full(t.disk, 0);
	for (int i = 0; i < 99; i++) {
		CHECK_OK(change(&t, &w[i], NULL), &t.f.err);
		if (i == 50)
			reopen(&t);
	}
	reopen(&t);
	CHECK_LIST(&t, "990-1000");
	bed_close(&t);
}

/* ---- what is missing ---- */

/* Three blocks, some of whose rows are deleted, and three windows. */
static bool full_town(struct town *w)
{
	if (!town_open(w))
		return false;
	town_fill(w, 2, 2, T0, T0 + 60, 1);
	town_delete(w, "job1", NULL, T0 + 4, T0 + 6);
	town_compact(w);
	town_delete(w, "job0", "i1", T0 + 12, T0 + 14);
	town_delete(w, "job0", "i1", T0 + 52, T0 + 54);
	CHECK_LAYOUT(w, "1 1 1 head head head");
	TOWN_CHECK(w, "before");
	return true;
}

static size_t warnings_in(struct town *w, int64_t from_s, int64_t to_s)
{
	struct db_querier *q;
	size_t n;

	if (db_querier_open(w->f.db, from_s * SEC, to_s * SEC, NULL, &q, &w->f.err))
		return SIZE_MAX;
	db_querier_warnings(q, &n);
	db_querier_close(q);
	return n;
}

static void close_db(struct town *w)
{
	db_close(w->f.db);
	w->f.db = NULL;
}

static char *in_town(struct town *w, const char *name)
{
	return arena_printf(&w->f.arena, "%s/%s", w->f.dir, name);
}

static void empty(struct town *w, const char *dir)
{
	CHECK_OK(fs_remove_tree(&fs_posix, in_town(w, dir), &w->f.err), &w->f.err);
	CHECK_OK(fs_mkdir_all(&fs_posix, in_town(w, dir), &w->f.err), &w->f.err);
}

/* Queries of [from, to) say so after each start until it is accepted, others do not. */
static void check_told(struct town *w, int64_t from_s, int64_t to_s, const char *what)
{
	size_t accepted, n;

	for (int start = 0; start < 3; start++) {
		REQUIRE(fixture_reopen(&w->f));
		n = warnings_in(w, from_s, to_s);
		if (n < 1 || n > 2) /* of a window that is empty: profiles and names */
			CHECK_FAIL("%s, start %d: not told", what, start);
		if ((from_s > T0 && warnings_in(w, T0, from_s)) ||
			(to_s < T0 + 60 && warnings_in(w, to_s, T0 + 60)))
			CHECK_FAIL("%s, start %d: told where nothing is missing", what, start);
	}
	CHECK_OK(db_accept_losses(w->f.db, NULL, 0, &accepted, &w->f.err), &w->f.err);
	CHECK(accepted > 0);
	for (int start = 0; start < 2; start++) {
		CHECK_INT(warnings_in(w, T0, T0 + 60), 0);
		REQUIRE(fixture_reopen(&w->f));
	}
}

TEST(what_somebody_removed_is_told_until_it_is_accepted)
{
	for (int i = 0; i < 9; i++) {
		const char *window = "head/1080050", *what = "";
		int64_t at = T0 + 50;
		struct town w;

		REQUIRE(full_town(&w));
		close_db(&w);
		REQUIRE(fixture_reopen(&w.f));
		what = town_block(&w, 1);
		close_db(&w);
		if (i > 6) { /* nothing beside it speaks for it */
			CHECK(!unlink(in_town(&w, "head/1080050.acked")));
			CHECK(!unlink(in_town(&w, "head/1080050.names")));
		}
		switch (i) {
		case 0:
		case 7:
			CHECK_OK(fs_remove_tree(&fs_posix, in_town(&w, window), &w.f.err), &w.f.err);
			break;
		case 1:
		case 8:
			empty(&w, window);
			break;
		case 2:
			CHECK_OK(fs_remove_tree(&fs_posix, in_town(&w, what), &w.f.err), &w.f.err);
			at = T0 + 10;
			break;
		case 3:
			empty(&w, what);
			at = T0 + 10;
			break;
		case 4:
			CHECK(!unlink(in_town(&w, arena_printf(&w.f.arena, "%s/rows.ldb", what))));
			at = T0 + 10;
			break;
		case 5:
			CHECK(!unlink(in_town(&w, arena_printf(&w.f.arena, "%s/deleted", what))));
			CHECK(!unlink(in_town(&w, arena_printf(&w.f.arena, "%s/deleted.copy", what))));
			at = T0 + 10;
			break;
		case 6:
			CHECK(!unlink(in_town(&w, "head/1080050.deleted")));
			CHECK(!unlink(in_town(&w, "head/1080050.deleted.copy")));
			break;
		}
		check_told(&w, at, at + 10, arena_printf(&w.f.arena, "case %d", i));
		town_close(&w);
	}
}

/* Found, accepted, put back, and removed again. */
TEST(what_is_lost_again_is_told_again)
{
	struct town w;
	const char *name;

	REQUIRE(full_town(&w));
	name = town_block(&w, 1);
	close_db(&w);
	town_copy(&w, name, "kept");
	CHECK_OK(fs_remove_tree(&fs_posix, in_town(&w, name), &w.f.err), &w.f.err);
	check_told(&w, T0 + 10, T0 + 20, "first");
	close_db(&w);
	town_copy(&w, "kept", name);
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "put back");
	close_db(&w);
	CHECK_OK(fs_remove_tree(&fs_posix, in_town(&w, name), &w.f.err), &w.f.err);
	check_told(&w, T0 + 10, T0 + 20, "second");
	TOWN_END(&w);
}

TEST(without_an_inventory_nothing_is_known)
{
	struct town w;

	REQUIRE(full_town(&w));
	close_db(&w);
	CHECK(!unlink(in_town(&w, "inventory")));
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "one is left");
	close_db(&w);
	CHECK(!unlink(in_town(&w, "inventory")));
	CHECK(!unlink(in_town(&w, "inventory.copy")));
	check_told(&w, T0, T0 + 60, "none");
	close_db(&w);
	/* What was there then is known again. */
	CHECK_OK(fs_remove_tree(&fs_posix, in_town(&w, "head/1080050"), &w.f.err), &w.f.err);
	check_told(&w, T0 + 50, T0 + 60, "later");
	town_failures = 0;
	town_close(&w);
}

TEST(a_reader_beside_the_server_tells_nothing_that_is_not_so)
{
	struct db_options o;
	struct db *reader;
	struct town w;

	REQUIRE(full_town(&w));
	o = w.f.o;
	o.read_only = true;
	REQUIRE_OK(db_open(&o, &reader, &w.f.err), &w.f.err);
	CHECK_INT(losses_open_n(reader->losses), 0);
	db_close(reader);
	/* And what is missing, without writing it down. */
	close_db(&w);
	CHECK_OK(fs_remove_tree(&fs_posix, in_town(&w, "head/1080050"), &w.f.err), &w.f.err);
	for (int i = 0; i < 2; i++) {
		REQUIRE_OK(db_open(&o, &reader, &w.f.err), &w.f.err);
		CHECK_INT(losses_open_n(reader->losses), 1);
		db_close(reader);
	}
	CHECK(!fs_exists(in_town(&w, "losses")));
	check_told(&w, T0 + 50, T0 + 60, "server");
	town_failures = 0;
	town_close(&w);
}

TEST(no_window_begins_before_1970)
{
	const struct inventory_entry far = { .min_ns = INT64_MIN, .max_ns = 0 };
	struct inventory_entry *v;
	uint64_t generation;
	struct buf b = { 0 };
	struct arena a;
	struct err err;
	size_t n;

	arena_init(&a, 0);
	inventory_encode(1, &far, 1, &b);
	CHECK_INT(
		inventory_decode(buf_str(&b), "inventory", &a, &generation, &v, &n, &err), ERR_CORRUPT);
	buf_release(&b);
	arena_release(&a);
}

TEST(snapshots_have_an_inventory_of_their_own)
{
	struct town w;
	struct arena a;
	struct str name;

	REQUIRE(full_town(&w));
	arena_init(&a, 0);
	REQUIRE_OK(db_snapshot(w.f.db, &a, &name, &w.f.err), &w.f.err);
	close_db(&w);
	w.f.o.dir = arena_printf(&a, "%s/snapshots/" STR_FMT, w.f.dir, STR_ARG(name));
	REQUIRE_OK(db_open(&w.f.o, &w.f.db, &w.f.err), &w.f.err);
	TOWN_CHECK(&w, "snapshot");
	close_db(&w);
	CHECK_OK(fs_remove_tree(&fs_posix, arena_printf(&a, "%s/head/1080050", w.f.o.dir), &w.f.err),
		&w.f.err);
	REQUIRE_OK(db_open(&w.f.o, &w.f.db, &w.f.err), &w.f.err);
	CHECK_INT(warnings_in(&w, T0 + 50, T0 + 60), 1);
	CHECK_INT(warnings_in(&w, T0, T0 + 50), 0);
	arena_release(&a);
	TOWN_END(&w);
}
