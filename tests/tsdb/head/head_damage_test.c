/*
 * Every file of the head is damaged, in turn: bits flipped, bytes zeroed, cut short, removed,
 * exchanged for another one's. Whatever is then asked of a window is as it was, or the answer says
 * in its warnings that something is missing: at each of three starts, after the window took further
 * rows, until the loss is accepted. epitool's way of looking, which writes nothing, finds the same
 * before any of them.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "tests/check.h"
#include "tests/tsdb/fixture.h"
#include "tests/tsdb/kept.h"
#include "tests/wait.h"
#include "tsdb/catalog/state.h"
#include "tsdb/db.h"
#include "tsdb/store/store.h"

#define WINDOW_S 1000
#define WINDOWS 2
#define SERIES 4
#define SESSIONS 3 /* each leaves a table behind */
#define ROWS 12 /* of a series in a session */

struct world {
	struct fixture f;
	struct kept k;
	struct buf want[WINDOWS];
	uint64_t random;
	size_t trials, felt; /* felt: some answer was not what it had been */
	char what[400];
};

static uint64_t draw(struct world *w, uint64_t n)
{
	w->random = w->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (w->random >> 33) % n;
}

/* ---- what is there ---- */

static struct labels labels_at(struct world *w, int i)
{
	static const char *const jobs[] = { "a", "b" }, *const instances[] = { "1", "2" };

	return labels_of(&w->f.arena, "p", jobs[i / 2], instances[i % 2]);
}

static void ignore(void *ctx, enum err_code rc, const struct err *err)
{
	(void)ctx;
	(void)err;
	CHECK_INT(rc, ERR_OK);
}

static void append_at(struct world *w, int series, int64_t ts_s)
{
	struct arena a;

	arena_init(&a, 0);
	CHECK_OK(
		append_wait(w->f.db, labels_at(w, series), ts_s * SEC, SEC,
			profile_random(&a, (uint64_t)(ts_s * SERIES + series)), NULL, false, NULL, &w->f.err),
		&w->f.err);
	arena_release(&a);
}

static void append_number(struct world *w, int64_t ts_s)
{
	struct db_number v = { labels_of(&w->f.arena, "up", "a", "1"), ts_s * SEC, (double)ts_s };

	CHECK_OK(db_append_numbers(w->f.db, &v, 1, ignore, NULL, &w->f.err), &w->f.err);
}

static bool add_row(void *ctx, const struct db_series *s, const struct db_row *row)
{
	struct buf *out = ctx, one = { 0 };

	if (str_is(labels_get(s->labels, STR("job")), "c")) /* of later */
		return true;
	buf_printf(&one, STR_FMT "/" STR_FMT " ",
		STR_ARG(labels_get(s->labels, STR("job"))),
			STR_ARG(labels_get(s->labels, STR("instance"))));
	row_text(s, row, &one);
	buf_add_str(out, buf_str(&one));
	buf_release(&one);
	return true;
}

static bool add_value(void *ctx, const struct db_series *s, int64_t ts_ns, double value)
{
	(void)s;
	buf_printf(ctx, "%" PRId64 " %g\n", ts_ns, value);
	return true;
}

/* All of a window, and whether an answer about it has a warning. */
static void ask(struct world *w, int window, struct buf *out, bool *warned)
{
	int64_t min = window * WINDOW_S * SEC, max = (window + 1) * WINDOW_S * SEC;
	size_t warnings = 0;

	buf_clear(out);
	CHECK(rows_each(w->f.db, min, max, add_row, out, &warnings, &w->f.err));
	CHECK(numbers_each(w->f.db, min, max, add_value, out, &warnings, &w->f.err));
	*warned = warnings > 0;
}

static bool begin(struct world *w)
{
	struct matcher m;

	*w = (struct world){ .random = 1 };
	if (!fixture_open(&w->f))
		return false;
	w->f.o.window_ns = WINDOW_S * SEC;
	w->f.o.retention_ns = 0;
	w->f.o.no_compaction = true;
	w->f.o.too_old_ns = WINDOWS * WINDOW_S * SEC;
	for (int session = 0; session < SESSIONS; session++) {
		if (!fixture_reopen(&w->f))
			return false;
		for (int i = 0; i < ROWS; i++)
			for (int k = 0; k < WINDOWS; k++) {
				int64_t ts = k * WINDOW_S + session * 200 + i * 10 + 10;

				for (int s = 0; s < SERIES; s++)
					append_at(w, s, ts + s);
				append_number(w, ts);
			}
	}
	if (matcher_init(&m, MATCH_EQ,
			STR("job"), STR("b"), &w->f.err) ||
				db_delete_series(w->f.db, &m, 1, 30 * SEC, 1300 * SEC, &w->f.err))
		return false;
	matcher_release(&m);
	if (!fixture_reopen(&w->f)) /* numbers are there once they were acknowledged */
		return false;
	for (int i = 0; i < WINDOWS; i++) {
		bool warned;

		ask(w, i, &w->want[i], &warned);
		CHECK(!warned && w->want[i].len > 1000);
	}
	db_close(w->f.db);
	w->f.db = NULL;
	kept_read(&w->k, w->f.dir);
	return true;
}

static void end(struct world *w)
{
	printf("  %zu trials, %zu felt\n", w->trials, w->felt);
	CHECK(w->felt);
	for (int i = 0; i < WINDOWS; i++)
		buf_release(&w->want[i]);
	kept_release(&w->k);
	fixture_close(&w->f);
}

/* ---- one damage ---- */

static bool opens(struct world *w, bool read_only)
{
	db_close(w->f.db);
	w->f.db = NULL;
	w->f.o.read_only = read_only;
	if (!db_open(&w->f.o, &w->f.db, &w->f.err))
		return true;
	CHECK_FAIL("%s: %s", w->what, w->f.err.msg);
	return false;
}

/* wrong: by window, where the answer is not what it was. */
static void check_said(struct world *w, const char *when, bool wrong[WINDOWS])
{
	struct buf got = { 0 };

	for (int i = 0; i < WINDOWS; i++) {
		bool warned;

		ask(w, i, &got, &warned);
		wrong[i] = !str_eq(buf_str(&got), buf_str(&w->want[i]));
		if (wrong[i] && !warned)
			CHECK_FAIL("%s, %s: window %d is not what it was (%d bytes of %d), and"
					   " nothing says so",
				w->what, when, i, (int)got.len, (int)w->want[i].len);
	}
	buf_release(&got);
}

static bool any(const bool v[WINDOWS])
{
	return v[0] || v[1];
}

static void check_found(struct world *w, bool wrong)
{
	CHECK_OK(db_verify_head(w->f.db, &w->f.err), &w->f.err);
	if (wrong && !losses_open_n(w->f.db->losses))
		CHECK_FAIL("%s: not found by verifying", w->what);
}

/* Until a person accepts it; what is on the disk then is what there is. */
static void check_damaged(struct world *w)
{
	bool wrong[WINDOWS];
	struct arena a;
	struct err err;

	if (!opens(w, true))
		return;
	check_said(w, "read only", wrong);
	check_found(w, any(wrong));
	w->trials++;
	w->felt += any(wrong);
	for (int i = 0; i < 3; i++) {
		if (!opens(w, false))
			return;
		check_said(w, i ? "later start" : "first start", wrong);
		/* Marks and counts go on; times that nobody asked for. A window that lost series
		 * takes no more. */
		arena_init(&a, 0);
		for (int k = 0; k < WINDOWS && !i; k++)
			(void)!append_wait(w->f.db, labels_of(&a, "later", "c", "3"),
				(k * WINDOW_S + 900) * SEC, SEC, profile_random(&a, 1), NULL, false, NULL, &err);
		arena_release(&a);
	}
	if (!opens(w, true))
		return;
	check_found(w, any(wrong));
}

/* The part of a path that says which kind of file it is. */
static struct str kind_of(const char *path)
{
	const char *name = strrchr(path, '/') + 1, *dot = strrchr(name, '.');

	return dot ? str_of(dot) : (struct str){ name, strcspn(name, "0123456789") };
}

static bool is_asked(const struct kept_file *f)
{
	return !f->is_dir && str_has_prefix(str_of(f->path), STR("/head/"));
}

/* How many files of the same kind come before the ith. */
static size_t before_of_kind(const struct kept *k, size_t i)
{
	struct str kind = kind_of(k->v[i].path);
	size_t n = 0;

	for (size_t at = 0; at < i; at++)
		n += is_asked(&k->v[at]) && str_eq(kind_of(k->v[at].path), kind);
	return n;
}

/* Of each kind of file each CHECK_STEPth one; in short one of three damages to it. */
TEST(every_file_of_the_head_is_damaged)
{
	static struct world w;
	size_t turn = 0;

	REQUIRE(begin(&w));
	for (size_t i = 0; i < w.k.n && check_failures < 10; i++) {
		const struct kept_file *f = &w.k.v[i];

		if (!is_asked(f) || before_of_kind(&w.k, i) % CHECK_STEP)
			continue;
		for (int kind = 0; kind < KEPT_DAMAGES; kind++)
			for (int k = 0; k < (kind == KEPT_REMOVE ? 1 : 3); k++) {
				uint64_t n = f->bytes.len, end = n < 100 ? n : 100, at = 0;

				if ((!n && kind != KEPT_REMOVE) || (check_is_short() && turn++ % 3))
					continue;
				/* Near the beginning, near the end, and somewhere. */
				if (n)
					at = k == 0 ? draw(&w, end) : k == 1 ? n - 1 - draw(&w, end) : draw(&w, n);
				snprintf(w.what, sizeof(w.what), "%s, %s at %d of %d", f->path,
					kept_damage_names[kind], (int)at, (int)n);
				kept_put_back(&w.k);
				kept_damage(&w.k, f, (enum kept_damage)kind, at, 1 + draw(&w, 100));
				check_damaged(&w);
			}
	}
	end(&w);
}

TEST(files_of_the_head_change_places)
{
	static struct world w;

	REQUIRE(begin(&w));
	for (size_t i = 0; i < w.k.n && check_failures < 10; i++)
		for (size_t k = i + 1; k < w.k.n && check_failures < 10; k += CHECK_STEP) {
			const struct kept_file *a = &w.k.v[i], *b = &w.k.v[k];

			if (!is_asked(a) || !is_asked(b) || !str_eq(kind_of(a->path), kind_of(b->path)))
				continue;
			snprintf(w.what, sizeof(w.what), "%s exchanged with %s", a->path, b->path);
			kept_put_back(&w.k);
			kept_exchange(&w.k, a, b);
			check_damaged(&w);
		}
	end(&w);
}

TEST(directories_of_windows_are_removed)
{
	static struct world w;

	REQUIRE(begin(&w));
	for (size_t i = 0; i < w.k.n; i++) {
		const struct kept_file *f = &w.k.v[i];
		char path[400];

		if (!f->is_dir || !str_has_prefix(str_of(f->path), STR("/head/")))
			continue;
		snprintf(w.what, sizeof(w.what), "%s removed", f->path);
		snprintf(path, sizeof(path), "%s%s", w.f.dir, f->path);
		kept_put_back(&w.k);
		REQUIRE_OK(fs_remove_tree(&fs_posix, path, &w.f.err), &w.f.err);
		check_damaged(&w);
	}
	end(&w);
}

/* ---- damage that is met while the database is open ---- */

static bool put_of(struct fixture *f, int64_t ts_s, int64_t seed)
{
	struct arena a;
	enum err_code rc;

	arena_init(&a, 0);
	rc = append_wait(f->db, labels_of(&a, "p", "a", "1"), ts_s * SEC, SEC,
		profile_random(&a, (uint64_t)seed), NULL, false, NULL, &f->err);
	arena_release(&a);
	return rc == ERR_OK;
}

static bool put(struct fixture *f, int64_t ts_s)
{
	return put_of(f, ts_s, ts_s);
}

static size_t rows_between(struct fixture *f, int64_t from_s, int64_t to_s, bool *warned)
{
	struct buf text = { 0 };
	size_t n = 0;

	CHECK(rows_text(
		f->db, labels_of(&f->arena, "p", "a", "1"), from_s * SEC, to_s * SEC, &text, &f->err));
	for (size_t i = 0; i < text.len; i++)
		n += text.ptr[i] == '@';
	*warned = str_find(buf_str(&text), STR("warning: loss ")) >= 0;
	buf_release(&text);
	return n;
}

static size_t rows_of(struct fixture *f, bool *warned)
{
	return rows_between(f, 0, 7200, warned);
}

/* The first name with the suffix; NULL: there is none. */
static char *first_in(struct fixture *f, const char *below, const char *suffix)
{
	char *dir = arena_printf(&f->arena, "%s/%s", f->dir, below);
	struct str *names;
	size_t n = 0;

	CHECK_OK(fs_list(dir, &f->arena, &names, &n, &f->err), &f->err);
	for (size_t i = 0; i < n; i++)
		if (str_has_suffix(names[i], str_of(suffix)))
			return path_join(&f->arena, str_of(dir), names[i]);
	return NULL;
}

/* The page in the middle of the window's first table. */
static void damage_first_table(struct fixture *f)
{
	char *path = first_in(f, "head/0", ".ldb");
	struct buf b = { 0 };

	REQUIRE(path != NULL);
	REQUIRE_OK(fs_read_file(path, 1 << 26, &b, &f->err), &f->err);
	REQUIRE(b.len > 40000);
	b.ptr[b.len / 2] ^= 1;
	REQUIRE_OK(fs_write_file(&fs_posix, path, buf_str(&b), &f->err), &f->err);
	buf_release(&b);
}

#define TABLES_JOINED 4 /* LevelDB's number of new tables */
#define ROWS_A_TABLE 300

/* LevelDB joins tables by itself, meets the page, and takes no more: the store is repaired, takes
 * rows again, and what the page had is lost. */
TEST(a_damaged_page_does_not_keep_a_window_from_taking_rows)
{
	struct fixture f;
	size_t n, taken = 0;
	bool warned;
	int64_t ts = 0, until_ns = 0;

	REQUIRE(fixture_open(&f));
	f.o.no_compaction = true;
	for (int t = 0; t < TABLES_JOINED; t++) {
		for (int i = 0; i < ROWS_A_TABLE; i++)
			REQUIRE(put(&f, ++ts));
		if (t < TABLES_JOINED - 1)
			REQUIRE(fixture_reopen(&f));
	}
	db_close(f.db);
	f.db = NULL;
	damage_first_table(&f);
	REQUIRE_OK(db_open(&f.o, &f.db, &f.err), &f.err);
	/* Some are refused meanwhile, and not one that was taken is gone. */
	do
		taken += put(&f, ++ts);
	while ((taken < 20 || !losses_open_n(f.db->losses)) && wait_more(&until_ns));
	CHECK(taken >= 20);
	for (int i = 0; i < 3; i++) {
		n = rows_of(&f, &warned);
		CHECK(n < TABLES_JOINED * ROWS_A_TABLE + taken && n > taken + ROWS_A_TABLE);
		CHECK(warned);
		REQUIRE(fixture_reopen(&f));
	}
	fixture_close(&f);
}

/* A block's table is whole, and its keys mean nothing to LevelDB, which aborts at them: it is moved
 * away before the store is repaired. What the window's own table had is lost. */
TEST(a_table_of_a_block_in_a_windows_place)
{
	static const char *const tables[] = { "rows.ldb", "rollups.ldb", "spare" };
	const int64_t from_s = 4 * 3600;
	struct fixture f;
	bool warned;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		char *table, *block;
		struct buf bytes = { 0 };

		REQUIRE(fixture_open(&f));
		f.o.retention_ns = 0;
		REQUIRE(put(&f, 1) && put(&f, from_s + 1)); /* the first window takes no more */
		REQUIRE_OK(db_compact(f.db, &f.err), &f.err);
		for (int ts = 2; ts <= ROWS_A_TABLE; ts++)
			REQUIRE(put(&f, from_s + ts));
		REQUIRE(fixture_reopen(&f)); /* the log becomes a table */
		REQUIRE(put(&f, from_s + ROWS_A_TABLE + 1)); /* in the log */
		db_close(f.db);
		f.db = NULL;
		REQUIRE(
			(table = first_in(&f, "head/14400", ".ldb")) && (block = first_in(&f, "blocks", "")));
		block = arena_printf(&f.arena, "%s/%s", block, tables[i]);
		REQUIRE_OK(fs_read_file(block, 1 << 26, &bytes, &f.err), &f.err);
		REQUIRE_OK(fs_write_file(&fs_posix, table, buf_str(&bytes), &f.err), &f.err);
		for (int start = 0; start < 2; start++) {
			REQUIRE(fixture_reopen(&f));
			/* The last row is there, but for its symbols, which were in the table. */
			CHECK_INT(rows_between(&f, from_s, from_s + 7200, &warned), 0);
			CHECK(warned);
		}
		CHECK(fs_exists(arena_printf(&f.arena, "%.*s/lost%s", (int)(strrchr(table, '/') - table),
			table, strrchr(table, '/'))));
		CHECK(put(&f, from_s + ROWS_A_TABLE + 2));
		CHECK_INT(rows_between(&f, 0, 7200, &warned), 1);
		CHECK(!warned);
		buf_release(&bytes);
		fixture_close(&f);
	}
}

/* A start that was killed when LevelDB had repaired the store, before the loss was on the list: the
 * repaired store opens, its last batch is there, and so are all symbols. The next start finds the
 * rows that are missing. */
TEST(a_start_is_killed_between_repair_and_loss)
{
	struct fixture f;
	char *dir, *table = NULL;
	struct str *names;
	bool warned;
	size_t n;

	REQUIRE(fixture_open(&f));
	f.o.retention_ns = 0;
	for (int ts = 1; ts <= 20; ts++) { /* two tables; the second has no symbols */
		REQUIRE(put_of(&f, ts, ts % 10));
		REQUIRE(ts % 10 || fixture_reopen(&f));
	}
	REQUIRE(put_of(&f, 21, 1)); /* in the log */
	db_close(f.db);
	f.db = NULL;
	dir = arena_printf(&f.arena, "%s/head/0", f.dir);
	REQUIRE_OK(fs_list(dir, &f.arena, &names, &n, &f.err), &f.err);
	for (size_t i = 0; i < n; i++)
		if (str_has_suffix(names[i], STR(".ldb")))
			table = path_join(&f.arena, str_of(dir), names[i]);
	REQUIRE(table && unlink(table) == 0);
	REQUIRE_OK(store_repair(dir, &f.err), &f.err);
	for (int start = 0; start < 3; start++) {
		REQUIRE(fixture_reopen(&f));
		CHECK_INT(rows_of(&f, &warned), 11);
		CHECK(warned);
		CHECK_INT(losses_open_n(f.db->losses), 1);
	}
	fixture_close(&f);
}

/* LevelDB numbers its files from 1, and aborts at this name. */
TEST(a_log_that_was_renamed_to_number_0)
{
	struct fixture f;
	char *log, *to;
	bool warned;

	REQUIRE(fixture_open(&f));
	for (int ts = 1; ts <= 10; ts++)
		REQUIRE(put(&f, ts));
	db_close(f.db);
	f.db = NULL;
	REQUIRE((log = first_in(&f, "head/0", ".log")));
	to = arena_printf(&f.arena, "%.*s/000000.log", (int)(strrchr(log, '/') - log), log);
	REQUIRE(rename(log, to) == 0);
	for (int start = 0; start < 2; start++) {
		REQUIRE(fixture_reopen(&f));
		CHECK_INT(rows_of(&f, &warned), 0);
		CHECK(warned);
	}
	CHECK(put(&f, 11));
	fixture_close(&f);
}

/* What cannot be read is not in the block: nothing else would tell that it was there. */
TEST(rows_that_a_block_lacks_are_said)
{
	struct fixture f;
	bool warned;
	size_t n;

	REQUIRE(fixture_open(&f));
	f.o.retention_ns = 0;
	for (int i = 1; i <= 300; i++)
		REQUIRE(put(&f, i));
	REQUIRE(fixture_reopen(&f)); /* the log becomes a table */
	REQUIRE(fixture_reopen(&f));
	db_close(f.db);
	f.db = NULL;
	damage_first_table(&f);
	REQUIRE_OK(db_open(&f.o, &f.db, &f.err), &f.err);
	CHECK(put(&f, 5 * 3600)); /* the first window takes no more */
	REQUIRE_OK(db_compact(f.db, &f.err), &f.err);
	CHECK_INT(f.db->blocks_n, 1);
	for (int i = 0; i < 3; i++) {
		n = rows_of(&f, &warned);
		CHECK(n > 100 && n < 300);
		CHECK(warned);
		REQUIRE(fixture_reopen(&f));
	}
	fixture_close(&f);
}
