/* The list of losses: kept twice, written whole, one entry per loss, until it is accepted. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/check.h"
#include "tests/scratch.h"
#include "tests/tsdb/disk.h"
#include "tests/tsdb/fixture.h"
#include "tsdb/db.h"
#include "tsdb/read/querier_internal.h"

struct world {
	char dir[64];
	struct fs *fs;
	struct losses *l;
	struct err err;
};

static bool opens(struct world *w)
{
	losses_close(w->l);
	w->l = NULL;
	return !losses_open(w->fs, w->dir, false, &w->l, &w->err);
}

static bool begin(struct world *w)
{
	*w = (struct world){ .fs = &fs_posix };
	snprintf(w->dir, sizeof(w->dir), SCRATCH "epi-losses-XXXXXX");
	return scratch_dir(w->dir) && opens(w);
}

static void end(struct world *w)
{
	losses_close(w->l);
	CHECK_OK(fs_remove_tree(&fs_posix, w->dir, &w->err), &w->err);
}

static enum err_code add(struct world *w, enum loss_what what, const char *where, int64_t min_s,
	int64_t max_s, uint64_t count, bool *fresh)
{
	struct loss l = { .what = what,
		.where = str_of(where),
		.text = STR("why"), .min_ns = min_s * NS_PER_S, .max_ns = max_s * NS_PER_S,
			.count = count };

	return losses_add(w->l, &l, fresh, &w->err);
}

static bool print_one(void *ctx, const struct loss *l)
{
	struct buf *out = ctx;

	loss_print(l, out);
	buf_add_cstr(out, l->accepted ? " (accepted)\n" : "\n");
	return true;
}

static void check_list(struct world *w, int64_t min_ns, int64_t max_ns, const char *want)
{
	struct buf got = { 0 };

	losses_each(w->l, min_ns, max_ns, print_one, &got);
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
}

TEST(what_was_added_is_there_after_a_restart)
{
	struct world w;
	bool fresh;

	REQUIRE(begin(&w));
	CHECK_OK(add(&w, LOSS_PROFILES, "head/100", 100, 200, 7, &fresh), &w.err);
	CHECK(fresh);
	CHECK_OK(add(&w, LOSS_DELETED, "head/100.deleted", 100, 200, 0, NULL), &w.err);
	CHECK_OK(add(&w, LOSS_BLOCK, "blocks/01AB", 0, 50, 0, NULL), &w.err);
	REQUIRE(opens(&w));
	check_list(&w, 0, LOSS_END,
		"loss 1: profiles are lost between 1970-01-01T00:01:40.000Z and 1970-01-01T00:03:20.000Z"
		" (head/100, 7): why\n"
		"loss 2: deleted profiles may appear again between 1970-01-01T00:01:40.000Z"
		" and 1970-01-01T00:03:20.000Z (head/100.deleted): why\n"
		"loss 3: all profiles of a block are lost before 1970-01-01T00:00:50.000Z"
		" (blocks/01AB): why\n");
	check_list(&w, 200 * NS_PER_S, LOSS_END, "");
	check_list(&w, 50 * NS_PER_S, 100 * NS_PER_S, "");
	check_list(&w, 0, 50 * NS_PER_S,
		"loss 3: all profiles of a block are lost before 1970-01-01T00:00:50.000Z"
		" (blocks/01AB): why\n");
	CHECK(losses_has(w.l, STR("head/100")));
	CHECK(!losses_has(w.l, STR("head/10")));
	CHECK(losses_has(w.l, STR("blocks")));
	end(&w);
}

TEST(the_same_loss_is_one_entry)
{
	struct world w;
	bool fresh;

	REQUIRE(begin(&w));
	CHECK_OK(add(&w, LOSS_PROFILES, "a", 100, 200, 7, NULL), &w.err);
	REQUIRE(opens(&w));
	CHECK_OK(add(&w, LOSS_PROFILES, "a", 100, 200, 7, &fresh), &w.err);
	CHECK(!fresh);
	CHECK_INT(losses_open_n(w.l), 1);
	CHECK_OK(add(&w, LOSS_PROFILES, "a", 90, 150, 9, &fresh), &w.err);
	CHECK(fresh);
	REQUIRE(opens(&w));
	check_list(&w, 0, LOSS_END,
		"loss 1: profiles are lost between 1970-01-01T00:01:30.000Z and 1970-01-01T00:03:20.000Z"
		" (a, 9): why\n");
	end(&w);
}

TEST(accepted_until_it_is_found_to_be_larger)
{
	uint64_t number = 2, missing[] = { 1, 3 };
	struct world w;
	size_t n;
	bool fresh;

	REQUIRE(begin(&w));
	CHECK_OK(add(&w, LOSS_PROFILES, "a", 100, 200, 7, NULL), &w.err);
	CHECK_OK(add(&w, LOSS_SYMBOLS, "a", 100, 200, 7, NULL), &w.err);
	CHECK_ERR(losses_accept(w.l, missing, 2, &n, &w.err), &w.err, ERR_NOT_FOUND, "no loss 3");
	CHECK_INT(losses_open_n(w.l), 2);
	CHECK_OK(losses_accept(w.l, &number, 1, &n, &w.err), &w.err);
	CHECK_INT(n, 1);
	REQUIRE(opens(&w));
	CHECK_INT(losses_open_n(w.l), 1);
	CHECK_OK(add(&w, LOSS_SYMBOLS, "a", 100, 200, 7, &fresh), &w.err);
	CHECK(!fresh);
	CHECK_OK(losses_accept(w.l, NULL, 0, &n, &w.err), &w.err);
	CHECK_INT(n, 1);
	CHECK_INT(losses_open_n(w.l), 0);
	CHECK_OK(add(&w, LOSS_SYMBOLS, "a", 100, 200, 8, &fresh), &w.err);
	CHECK(fresh);
	REQUIRE(opens(&w));
	CHECK_INT(losses_open_n(w.l), 1);
	CHECK_OK(losses_forget(w.l, 200 * NS_PER_S, &w.err), &w.err);
	REQUIRE(opens(&w));
	check_list(&w, 0, LOSS_END, "");
	/* A number is never given again. */
	CHECK_OK(add(&w, LOSS_SUMS, "b", 1, 2, 0, NULL), &w.err);
	check_list(&w, 0, LOSS_END,
		"loss 3: stored sums are lost between 1970-01-01T00:00:01.000Z and"
		" 1970-01-01T00:00:02.000Z (b): why\n");
	end(&w);
}

TEST(a_full_list_says_that_there_is_more)
{
	struct world w;
	struct disk *d;
	char where[40];

	REQUIRE(begin(&w));
	REQUIRE((d = disk_open(w.dir)) != NULL); /* where nothing waits for a sync */
	w.fs = disk_fs(d);
	REQUIRE(opens(&w));
	/* Each would write the list, of which most are held back by a disk that takes nothing. */
	disk_fail(d, 1, DISK_OPEN, DISK_FROM_THEN_ON);
	for (int i = 0; i < (int)LOSSES_MAX + 2; i++) {
		if (i == (int)LOSSES_MAX - 100)
			disk_fail(d, 0, DISK_OPEN, DISK_ONCE);
		snprintf(where, sizeof(where), "head/%d", i);
		CHECK_INT(add(&w, LOSS_PROFILES, where, i, i + 1, 1, NULL),
			i < (int)LOSSES_MAX - 100 ? ERR_IO : ERR_OK);
	}
	REQUIRE(opens(&w));
	CHECK_INT(losses_open_n(w.l), LOSSES_MAX);
	check_list(&w, (LOSSES_MAX + 1) * NS_PER_S, LOSS_END,
		"loss 4096: more losses than the list can hold between 1970-01-01T01:08:15.000Z and"
		" 1970-01-01T01:08:18.000Z (losses): the list is full\n");
	end(&w);
	disk_close(d);
}

/* ---- damage ---- */

static void damage(struct world *w, const char *name, size_t at, bool cut)
{
	struct buf b = { 0 }, path = { 0 };
	struct err err;

	buf_printf(&path, "%s/%s", w->dir, name);
	buf_add_char(&path, '\0');
	REQUIRE_OK(fs_read_file(path.ptr, 1 << 20, &b, &err), &err);
	REQUIRE(at < b.len);
	if (cut)
		b.len = at;
	else
		b.ptr[at] ^= 1;
	REQUIRE_OK(fs_write_file(&fs_posix, path.ptr, buf_str(&b), &err), &err);
	buf_release(&b);
	buf_release(&path);
}

TEST(either_copy_is_enough_and_none_is_a_loss_itself)
{
	static const char one[] = "loss 1: profiles are lost between 1970-01-01T00:01:40.000Z and"
							  " 1970-01-01T00:03:20.000Z (a, 7): why\n";
	static const char *const names[] = { "losses", "losses.copy" };
	struct buf got = { 0 };
	struct world w;

	REQUIRE(begin(&w));
	CHECK_OK(add(&w, LOSS_PROFILES, "a", 100, 200, 7, NULL), &w.err);
	for (size_t at = 0; at < 53; at++)
		for (size_t i = 0; i < 4; i++) {
			damage(&w, names[i % 2], at, i >= 2);
			REQUIRE(opens(&w));
			check_list(&w, 0, LOSS_END, one);
		}
	damage(&w, "losses", 20, false);
	damage(&w, "losses.copy", 0, true);
	REQUIRE(opens(&w));
	REQUIRE(opens(&w)); /* it stays */
	losses_each(w.l, 1, 2, print_one, &got);
	CHECK(str_has_prefix(buf_str(&got), STR("loss 1: earlier losses are unknown (losses): ")));
	CHECK(str_has_suffix(buf_str(&got), STR("/losses: bad checksum\n")));
	buf_release(&got);
	end(&w);
}

/* ---- faults ---- */

TEST(each_write_may_fail)
{
	for (int kind = 0; kind < DISK_KINDS; kind++)
		for (uint64_t nth = 1; nth < 20; nth++) {
			struct world w;
			struct disk *d;
			enum err_code rc;
			bool failed;

			REQUIRE(begin(&w));
			CHECK_OK(add(&w, LOSS_PROFILES, "a", 100, 200, 7, NULL), &w.err);
			REQUIRE((d = disk_open(w.dir)) != NULL);
			w.fs = disk_fs(d);
			REQUIRE(opens(&w));
			disk_fail(d, nth, kind, DISK_ONCE);
			rc = add(&w, LOSS_SYMBOLS, "b", 300, 400, 0, NULL);
			failed = disk_failed(d) != 0;
			CHECK((rc != ERR_OK) == failed);
			CHECK_INT(losses_open_n(w.l), 2);
			disk_fail(d, 0, kind, DISK_ONCE);
			CHECK_OK(losses_save(w.l, &w.err), &w.err);
			REQUIRE(opens(&w));
			CHECK_INT(losses_open_n(w.l), 2);
			end(&w);
			disk_close(d);
			if (!failed)
				break;
		}
}

TEST(the_power_may_go_at_each_step)
{
	for (uint64_t nth = 1; nth < 30; nth++) {
		struct world w;
		struct disk *d;
		enum err_code rc;
		bool cut;

		REQUIRE(begin(&w));
		CHECK_OK(add(&w, LOSS_PROFILES, "a", 100, 200, 7, NULL), &w.err);
		REQUIRE((d = disk_open(w.dir)) != NULL);
		w.fs = disk_fs(d);
		REQUIRE(opens(&w));
		disk_power_cut_at(d, nth);
		rc = add(&w, LOSS_SYMBOLS, "b", 300, 400, 0, NULL);
		cut = disk_is_cut(d);
		losses_close(w.l);
		w.l = NULL;
		disk_power_cut(d);
		disk_restore(d, nth);
		REQUIRE(opens(&w));
		CHECK(losses_open_n(w.l) >= (rc ? 1 : 2));
		CHECK(!losses_has(w.l, STR("losses")));
		end(&w);
		disk_close(d);
		if (!cut)
			break;
	}
}

/* ---- a database ---- */

static void check_warnings(struct fixture *f, int64_t min_s, int64_t max_s, const char *want)
{
	struct db_querier *q;
	struct buf got = { 0 };
	const struct str *v;
	size_t n;

	REQUIRE_OK(db_querier_open(f->db, min_s * SEC, max_s * SEC, NULL, &q, &f->err), &f->err);
	v = db_querier_warnings(q, &n);
	for (size_t i = 0; i < n; i++)
		buf_printf(&got, STR_FMT "\n", STR_ARG(v[i]));
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
	db_querier_close(q);
}

TEST(queries_that_touch_a_loss_say_so_until_it_is_accepted)
{
	static const char text[] = "loss 1: profiles are lost between 1970-01-01T00:16:40.000Z and"
							   " 1970-01-01T00:33:20.000Z (head/1000, 3): cut\n";
	struct fixture f;
	struct db_status s;
	struct loss *v;
	struct err why;
	size_t n;

	REQUIRE(fixture_open(&f));
	err_set(&why, ERR_CORRUPT, "cut");
	CHECK(db_lost(f.db, LOSS_PROFILES, "head/1000", 1000 * SEC, 2000 * SEC, 3, &why));
	for (int i = 0; i < 3; i++) {
		check_warnings(&f, 1999, 3000, text);
		check_warnings(&f, 2000, 3000, "");
		REQUIRE(fixture_reopen(&f));
	}
	db_status(f.db, &s);
	CHECK_INT(s.losses, 1);
	CHECK_OK(db_losses(f.db, &f.arena, &v, &n, &f.err), &f.err);
	REQUIRE(n == 1);
	CHECK_STR(v[0].where, "head/1000");
	CHECK_OK(db_accept_losses(f.db, NULL, 0, &n, &f.err), &f.err);
	CHECK_INT(n, 1);
	for (int i = 0; i < 2; i++) {
		check_warnings(&f, 0, 3000, "");
		REQUIRE(fixture_reopen(&f));
	}
	db_status(f.db, &s);
	CHECK_INT(s.losses, 0);
	fixture_close(&f);
}

TEST(many_losses_are_counted)
{
	struct db_querier *q;
	const struct str *v;
	struct fixture f;
	struct err why;
	char where[40];
	size_t n;

	REQUIRE(fixture_open(&f));
	err_set(&why, ERR_CORRUPT, "cut");
	for (int i = 0; i < 15; i++) {
		snprintf(where, sizeof(where), "head/%d", i);
		CHECK(db_lost(f.db, LOSS_PROFILES, where, 0, SEC, 0, &why));
	}
	REQUIRE_OK(db_querier_open(f.db, 0, SEC, NULL, &q, &f.err), &f.err);
	v = db_querier_warnings(q, &n);
	REQUIRE(n == 11);
	CHECK_STR(v[10], "and 5 more losses");
	db_querier_close(q);
	fixture_close(&f);
}
