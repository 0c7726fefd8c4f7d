/* Blocks whose tables are in a bucket, in a data directory: all that blocks go through. */
#include "tests/check.h"
#include "tests/tsdb/catalog/far.h"

static struct far far;

/* The first n blocks are read in the bucket from now on. */
static void swap_all(struct town *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *key = far_upload(w, i);
		struct ulid u = far_ulid(key);

		CHECK_OK(blocks_swap_remote(w->f.db, &u, key, &w->f.err), &w->f.err);
	}
}

static char *path_of(struct town *w, const char *name, const char *file)
{
	return arena_printf(&w->f.arena, "%s/%s/%s", w->f.dir, name, file);
}

static bool is_stub(struct town *w, const char *name)
{
	return !fs_exists(path_of(w, name, "rows.ldb")) &&
		!fs_exists(path_of(w, name, "rollups.ldb")) && !fs_exists(path_of(w, name, "spare")) &&
		fs_exists(path_of(w, name, "meta.json")) && fs_exists(path_of(w, name, "remote"));
}

static size_t losses(struct town *w)
{
	struct db_status s;

	db_status(w->f.db, &s);
	return s.losses;
}

/* Three blocks with rows until T0 + 30, windows until T0 + 60. */
static bool start(struct town *w, size_t remote)
{
	if (!town_open(w) || !far_start(&far, w))
		return false;
	town_fill(w, 2, 3, T0, T0 + 60, 1);
	town_compact(w);
	swap_all(w, remote);
	return true;
}

TEST(a_block_in_the_bucket_gives_the_same_answers)
{
	struct db_block **pinned;
	struct db_status before, after;
	const char *name;
	struct town w;
	struct ulid u;
	size_t n;

	REQUIRE(start(&w, 0));
	db_status(w.f.db, &before);
	REQUIRE_OK(blocks_pin_all(w.f.db, &pinned, &n, &w.f.err), &w.f.err);
	name = town_block(&w, 0);
	swap_all(&w, 3);
	/* Who reads the old ones goes on: their tables stay until then. */
	CHECK(!is_stub(&w, name));
	CHECK_OK(block_verify(pinned[0]->block, NULL, NULL, &w.f.err), &w.f.err);
	blocks_unpin_all(w.f.db, pinned, n);
	CHECK(is_stub(&w, name));
	CHECK_LAYOUT(&w, "1 1 1 head head head");
	TOWN_CHECK(&w, "swapped");
	db_status(w.f.db, &after);
	CHECK_INT(after.blocks, 3);
	CHECK_INT(after.remote_blocks, 3);
	CHECK_INT(before.disk_bytes - after.disk_bytes, after.remote_bytes);
	u = far_ulid(name);
	CHECK_INT(blocks_swap_remote(w.f.db, &u, "s/x", &w.f.err), ERR_NOT_FOUND);
	for (int turn = 0; turn < 2; turn++) {
		REQUIRE(fixture_reopen(&w.f));
		CHECK_LAYOUT(&w, "1 1 1 head head head");
		TOWN_CHECK(&w, "reopened");
		CHECK_INT(losses(&w), 0);
	}
	CHECK(atomic_load(&far.known) >= 9);
	TOWN_END(&w);
}

TEST(what_is_not_whole_in_the_bucket_stays_on_the_disk)
{
	const char *key, *name;
	struct town w;
	struct ulid u;

	REQUIRE(start(&w, 0));
	name = town_block(&w, 0);
	u = far_ulid(name);
	CHECK_INT(blocks_swap_remote(w.f.db, &u, "s/none", &w.f.err), ERR_CORRUPT);
	key = far_upload(&w, 0);
	atomic_store(&far.down, true);
	CHECK_INT(blocks_swap_remote(w.f.db, &u, key, &w.f.err), ERR_UNAVAILABLE);
	atomic_store(&far.down, false);
	REQUIRE(unlink(arena_printf(&w.f.arena, "%s/%s/rows.ldb", far.dir, key)) == 0);
	CHECK_INT(blocks_swap_remote(w.f.db, &u, key, &w.f.err), ERR_NOT_FOUND);
	CHECK(!fs_exists(path_of(&w, name, "remote")));
	key = far_upload(&w, 1); /* another block's files */
	CHECK_INT(blocks_swap_remote(w.f.db, &u, key, &w.f.err), ERR_CORRUPT);
	CHECK_LAYOUT(&w, "1 1 1 head head head");
	TOWN_CHECK(&w, "on the disk");
	w.f.o.remote = NULL;
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "reopened");
	CHECK_ERR(blocks_swap_remote(w.f.db, &u, key, &w.f.err), &w.f.err, ERR_UNSUPPORTED,
		"no bucket is configured");
	TOWN_END(&w);
}

/* A crash between the stub's file and the removal of the tables; damaged copies of that file. */
TEST(a_crash_while_tables_go)
{
	const char *name;
	struct town w;

	REQUIRE(start(&w, 0));
	name = town_block(&w, 0);
	town_copy(&w, name, "older");
	swap_all(&w, 3);
	db_close(w.f.db);
	w.f.db = NULL;
	town_copy(&w, "older/rows.ldb", arena_printf(&w.f.arena, "%s/rows.ldb", name));
	town_copy(&w, "older/spare", arena_printf(&w.f.arena, "%s/spare", name));
	town_copy(&w, "older/meta.json", arena_printf(&w.f.arena, "%s/remote", name));
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "the copy says it");
	CHECK(is_stub(&w, name));
	CHECK_INT(losses(&w), 0);
	/* Neither can be read: a loss. */
	town_copy(&w, "older/meta.json", arena_printf(&w.f.arena, "%s/remote.copy", name));
	REQUIRE(fixture_reopen(&w.f));
	CHECK_LAYOUT(&w, "1 1 head head head");
	CHECK_INT(losses(&w), 1);
	TOWN_END(&w);
}

/* ---- a bucket that does not answer ---- */

static size_t warnings_of(struct town *w, int64_t min_s, int64_t max_s, char *first)
{
	struct db_querier *q;
	const struct str *v;
	size_t n;

	first[0] = '\0';
	if (db_querier_open(w->f.db, min_s * SEC, max_s * SEC, NULL, &q, &w->f.err))
		abort();
	v = db_querier_warnings(q, &n);
	if (n)
		snprintf(first, 1024, STR_FMT, STR_ARG(v[0]));
	db_querier_close(q);
	return n;
}

static bool any(void *ctx, const struct db_series *s, const struct db_row *row)
{
	(void)s;
	(void)row;
	++*(size_t *)ctx;
	return true;
}

static size_t rows_in(struct town *w, int64_t min_s, int64_t max_s)
{
	size_t n = 0, warnings = 0;

	if (!rows_each(w->f.db, min_s * SEC, max_s * SEC, any, &n, &warnings, &w->f.err))
		printf("  %s\n", w->f.err.msg);
	return n;
}

TEST(a_bucket_that_does_not_answer)
{
	char text[1024], want[400];
	struct db_status s;
	const char *name;
	struct town w;

	REQUIRE(start(&w, 2));
	name = town_block(&w, 0);
	atomic_store(&far.down, true);
	REQUIRE(fixture_reopen(&w.f));
	CHECK_LAYOUT(&w, "1 head head head");
	db_status(w.f.db, &s);
	CHECK_INT(s.unreachable, 2);
	CHECK_INT(s.losses, 0);
	CHECK_INT(warnings_of(&w, T0, T0 + 60, text), 2);
	CHECK_INT(warnings_of(&w, T0 + 20, T0 + 60, text), 0);
	CHECK_INT(warnings_of(&w, T0, T0 + 10, text), 1);
	snprintf(want, sizeof(want),
		"profiles are missing between 1970-01-13T12:00:00.000Z and 1970-01-13T12:00:10.000Z: block "
		"%s is "
		"in "
		"a bucket that does not answer: open block: s/%s/rollups.ldb: nobody answers",
		name + strlen("blocks/"), name);
	CHECK_STR(str_of(text), want);
	CHECK_INT(rows_in(&w, T0, T0 + 60), 6 * 40);
	/* Nothing is joined over them, and no late row makes a window in their time. */
	town_fill(&w, 2, 3, T0 + 60, T0 + 100, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "2 1 1 1 head head head");
	blocks_retry(w.f.db);
	CHECK_INT(warnings_of(&w, T0, T0 + 60, text), 2);
	atomic_store(&far.down, false);
	blocks_retry(w.f.db);
	CHECK_INT(warnings_of(&w, T0, T0 + 60, text), 0);
	CHECK_LAYOUT(&w, "1 1 2 1 1 1 head head head");
	TOWN_CHECK(&w, "again");
	db_status(w.f.db, &s);
	CHECK_INT(s.unreachable, 0);
	CHECK_INT(s.losses, 0);
	/* No bucket is configured: said, and nothing is lost by it. */
	w.f.o.remote = NULL;
	REQUIRE(fixture_reopen(&w.f));
	CHECK_INT(warnings_of(&w, T0, T0 + 10, text), 1);
	CHECK(str_has_suffix(str_of(text), STR("is in a bucket, and none is configured")));
	CHECK_INT(losses(&w), 0);
	w.f.o.remote = &far.source;
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "configured");
	TOWN_END(&w);
}

/* It answers again, and the block is gone: that is a loss. */
TEST(a_block_that_is_gone_from_the_bucket)
{
	char text[1024];
	struct town w;

	REQUIRE(start(&w, 1));
	atomic_store(&far.down, true);
	REQUIRE(fixture_reopen(&w.f));
	atomic_store(&far.down, false);
	REQUIRE_OK(fs_remove_tree(&fs_posix, far.dir, &w.f.err), &w.f.err);
	blocks_retry(w.f.db);
	CHECK_INT(losses(&w), 1);
	CHECK_INT(warnings_of(&w, T0, T0 + 60, text), 1);
	REQUIRE(fixture_reopen(&w.f));
	CHECK_INT(losses(&w), 1);
	CHECK_INT(warnings_of(&w, T0, T0 + 60, text), 1);
	TOWN_END(&w);
}

/* ---- what changes ---- */

struct heard {
	struct db *db;
	unsigned n[DB_WINDOW_DELETED + 1];
	struct ulid last;
};

static void hear(void *ctx, enum db_change what, const struct ulid *block, int64_t window_ns)
{
	struct heard *h = ctx;

	h->n[what]++;
	if (block)
		h->last = *block;
}

static struct heard heard;
static const struct db_published published = { hear, &heard };

static void check_heard(const char *want, int line)
{
	char got[64];

	snprintf(got, sizeof(got), "%u %u %u %u %u %u", heard.n[0], heard.n[1], heard.n[2], heard.n[3],
		heard.n[4], heard.n[5]);
	if (strcmp(got, want) != 0)
		CHECK_FAIL("line %d: heard %s, want %s", line, got, want);
	memset(&heard, 0, sizeof(heard));
}
#define CHECK_HEARD(want) check_heard(want, __LINE__)

static bool start_heard(struct town *w, size_t remote)
{
	memset(&heard, 0, sizeof(heard));
	if (!town_open(w))
		return false;
	w->f.o.published = &published;
	if (!far_start(&far, w))
		return false;
	town_fill(w, 2, 3, T0, T0 + 60, 1);
	town_compact(w);
	swap_all(w, remote);
	return true;
}

TEST(blocks_in_the_bucket_are_joined_into_one_on_the_disk)
{
	const char *first;
	struct town w;
	struct db_status s;

	REQUIRE(start_heard(&w, 3));
	CHECK_HEARD("3 0 0 0 3 0");
	first = town_block(&w, 0);
	town_fill(&w, 2, 3, T0 + 60, T0 + 80, 1);
	town_delete(&w, "job0", "i1", T0 + 5, T0 + 15);
	CHECK_HEARD("0 0 2 0 0 0");
	TOWN_CHECK(&w, "deleted");
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "deleted, reopened");
	swap_all(&w, 0);
	town_compact(&w);
	CHECK_LAYOUT(&w, "2 1 head head head");
	CHECK_HEARD("3 4 0 0 2 0");
	db_status(w.f.db, &s);
	CHECK_INT(s.remote_blocks, 0);
	CHECK(!fs_exists(path_of(&w, first, "meta.json")));
	CHECK(atomic_load(&far.forgotten) >= 9);
	TOWN_CHECK(&w, "joined");
	swap_all(&w, 1);
	REQUIRE(fixture_reopen(&w.f));
	CHECK_LAYOUT(&w, "2 1 head head head");
	TOWN_CHECK(&w, "joined, reopened");
	CHECK_INT(losses(&w), 0);
	TOWN_END(&w);
}

TEST(retention_of_blocks_in_the_bucket)
{
	struct db_block_status *v;
	const char *names[3];
	struct town w;
	size_t n;

	REQUIRE(start_heard(&w, 3));
	for (size_t i = 0; i < 3; i++)
		names[i] = town_block(&w, i);
	CHECK_HEARD("3 0 0 0 3 0");
	db_set_retention(w.f.db, 0, 0, 45 * SEC);
	town_compact(&w);
	CHECK_HEARD("0 0 0 1 0 0");
	for (int turn = 0; turn < 2; turn++) {
		REQUIRE_OK(db_list(w.f.db, &w.f.arena, &v, &n, &w.f.err), &w.f.err);
		CHECK(!v[0].raw && v[0].remote && !v[0].damaged && v[1].raw);
		CHECK_INT(v[0].rows, 60);
		CHECK(!fs_exists(path_of(&w, names[0], "rows.ldb")));
		REQUIRE(fixture_reopen(&w.f));
	}
	CHECK_INT(losses(&w), 0);
	/* A block that cannot be reached goes too when its time comes. */
	atomic_store(&far.down, true);
	REQUIRE(fixture_reopen(&w.f));
	db_set_retention(w.f.db, 45 * SEC, 0, 0);
	town_compact(&w);
	CHECK_HEARD("0 1 0 0 0 0");
	CHECK(!fs_exists(path_of(&w, names[0], "meta.json")));
	atomic_store(&far.down, false);
	blocks_retry(w.f.db);
	db_set_retention(w.f.db, 35 * SEC, 0, 0);
	town_compact(&w);
	CHECK_HEARD("0 1 0 0 0 0");
	CHECK(!fs_exists(path_of(&w, names[1], "meta.json")));
	CHECK(fs_exists(path_of(&w, names[2], "meta.json")));
	town_forget_until(&w, T0 + 20);
	TOWN_CHECK(&w, "dropped");
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "dropped, reopened");
	CHECK_INT(losses(&w), 0);
	TOWN_END(&w);
}

/* Windows that retention drops are told, too. */
TEST(windows_are_told)
{
	struct town w;

	REQUIRE(start_heard(&w, 0));
	CHECK_HEARD("3 0 0 0 3 0");
	town_delete(&w, "job0", "i1", T0 + 45, T0 + 55);
	CHECK_HEARD("0 0 0 0 0 2");
	db_set_retention(w.f.db, 1, 0, 0);
	town_compact(&w);
	CHECK_HEARD("0 3 0 0 2 0");
	TOWN_END(&w);
}

/* ---- a directory that was lost ---- */

TEST(stubs_make_a_directory)
{
	struct buf meta = { 0 }, deleted = { 0 };
	const char *names[3];
	struct town w;
	char *blocks;

	REQUIRE(start(&w, 0));
	town_delete(&w, "job0", "i1", T0 + 5, T0 + 15);
	town_forget_until(&w, T0);
	for (size_t i = 0; i < 3; i++) {
		names[i] = town_block(&w, i);
		(void)far_upload(&w, i);
	}
	db_close(w.f.db);
	w.f.db = NULL;
	blocks = arena_printf(&w.f.arena, "%s/blocks", w.f.dir);
	REQUIRE_OK(fs_remove_tree(&fs_posix, blocks, &w.f.err), &w.f.err);
	for (size_t i = 0; i < 3; i++) {
		const char *key = arena_printf(&w.f.arena, "s/%s", names[i]),
				   *far_dir = arena_printf(&w.f.arena, "%s/%s", far.dir, key);
		struct ulid u = far_ulid(key);

		buf_clear(&meta);
		buf_clear(&deleted);
		REQUIRE_OK(fs_read_file(
					   arena_printf(&w.f.arena, "%s/meta.json", far_dir), 1 << 20, &meta, &w.f.err),
			&w.f.err);
		(void)!fs_read_file(
			arena_printf(&w.f.arena, "%s/deleted", far_dir), 1 << 20, &deleted, &w.f.err);
		CHECK_INT(deleted.len > 0, i < 2);
		REQUIRE_OK(remote_write_stub(
					   &fs_posix, blocks, &u, key, buf_str(&meta), buf_str(&deleted), &w.f.err),
			&w.f.err);
	}
	REQUIRE(fixture_reopen(&w.f));
	CHECK_LAYOUT(&w, "1 1 1 head head head");
	TOWN_CHECK(&w, "out of the bucket");
	CHECK_INT(losses(&w), 0);
	buf_release(&meta);
	buf_release(&deleted);
	TOWN_END(&w);
}
