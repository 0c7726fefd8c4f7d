/* A database that has no blocks of its own: a list says which there are in the bucket. */
#include <string.h>
#include <xxhash.h>

#include "base/thread.h"
#include "tests/check.h"
#include "tests/tsdb/catalog/far.h"

static struct far far;

#define BLOCKS 8

struct follower {
	struct town w; /* its database has no rows of its own; w.rows: what it must show */
	struct remote_block v[BLOCKS];
	size_t n;
};

static struct block_file file_of(const char *path)
{
	struct buf bytes = { 0 };
	struct block_file f = { 0 };

	if (!fs_read_file(path, 64 << 20, &bytes, NULL))
		f = (struct block_file){ bytes.len, XXH3_64bits(bytes.ptr, bytes.len) };
	buf_release(&bytes);
	return f;
}

/* The blocks of the town, put as a publisher does, and the list of them. */
static void list(struct town *t, struct follower *f)
{
	struct db_block_status *v;
	size_t n;

	f->n = 0;
	if (db_list(t->f.db, &t->f.arena, &v, &n, &t->f.err))
		abort();
	for (size_t i = 0; i < n && v[i].ulid[0] && f->n < BLOCKS; i++) {
		const char *key = far_upload(t, i), *dir = arena_printf(&t->f.arena, "%s/%s", far.dir, key);
		struct remote_block *r = &f->v[f->n++];
		char *deleted = arena_printf(&t->f.arena, "%s/deleted", dir);

		*r = (struct remote_block){ .key = key,
			.ulid = far_ulid(key),
			.min_ns = v[i].min_ns,
			.max_ns = v[i].max_ns,
			.rows = file_of(arena_printf(&t->f.arena, "%s/rows.ldb", dir)),
			.rollups = file_of(arena_printf(&t->f.arena, "%s/rollups.ldb", dir)),
			.spare = file_of(arena_printf(&t->f.arena, "%s/spare", dir)),
			.meta = file_of(arena_printf(&t->f.arena, "%s/meta.json", dir)),
			.deleted = file_of(deleted) };
		if (r->deleted.bytes)
			town_move(t, arena_printf(&t->f.arena, "far/%s/deleted", key),
				arena_printf(&t->f.arena, "far/%s/deleted-%016" PRIx64, key, r->deleted.hash));
	}
}

/* The follower must show the rows up to here. */
static void expect_until(struct town *t, struct follower *f, int64_t until_s)
{
	free(f->w.rows);
	f->w.rows = malloc((t->n + 1) * sizeof(*t->rows));
	f->w.n = f->w.cap = t->n;
	if (!f->w.rows)
		abort();
	memcpy(f->w.rows, t->rows, t->n * sizeof(*t->rows));
	for (size_t i = 0; i < f->w.n; i++)
		f->w.rows[i].deleted |= f->w.rows[i].ts_s > until_s;
}

static bool start(struct town *t, struct follower *f)
{
	memset(f, 0, sizeof(*f));
	if (!town_open(t) || !far_start(&far, t) || !town_open(&f->w))
		return false;
	f->w.f.o.remote = &far.source;
	if (!fixture_reopen(&f->w.f))
		return false;
	town_fill(t, 2, 3, T0, T0 + 60, 1);
	town_compact(t);
	list(t, f);
	return true;
}

static void follow(struct follower *f)
{
	struct err err;

	CHECK_OK(blocks_follow(f->w.f.db, f->v, f->n, NULL, 0, &err), &err);
}

#define END(t, f) \
	do { \
		CHECK_INT(town_failures, 0); \
		town_failures = 0; \
		town_close(&(f)->w); \
		town_close(t); \
	} while (0)

TEST(a_list_of_blocks_is_followed)
{
	struct db_status s;
	struct follower f;
	struct town t;
	unsigned opens;

	REQUIRE(start(&t, &f));
	CHECK_INT(f.n, 3);
	follow(&f);
	expect_until(&t, &f, T0 + 30);
	CHECK_LAYOUT(&f.w, "1 1 1");
	TOWN_CHECK(&f.w, "three blocks");
	opens = atomic_load(&far.opens);
	follow(&f); /* the same list opens nothing */
	CHECK_INT(atomic_load(&far.opens), opens);
	/* One by one out of three, which go. */
	town_fill(&t, 2, 3, T0 + 60, T0 + 80, 1);
	town_compact(&t);
	CHECK_LAYOUT(&t, "2 1 head head head");
	list(&t, &f);
	CHECK_INT(f.n, 2);
	follow(&f);
	expect_until(&t, &f, T0 + 50);
	CHECK_LAYOUT(&f.w, "2 1");
	TOWN_CHECK(&f.w, "joined");
	db_status(f.w.f.db, &s);
	CHECK_INT(s.remote_blocks, 2);
	CHECK_INT(s.losses, 0);
	CHECK(s.disk_bytes == 0);
	f.n = 0;
	follow(&f);
	CHECK_LAYOUT(&f.w, "");
	expect_until(&t, &f, 0);
	TOWN_CHECK(&f.w, "none");
	END(&t, &f);
}

TEST(deleted_ranges_and_raw_rows_are_followed)
{
	struct db_block_status *v;
	struct db_querier *q;
	struct follower f;
	struct town t;
	char *from, *to;
	size_t n;

	REQUIRE(start(&t, &f));
	follow(&f);
	/* A querier of before goes on with the old ranges. */
	REQUIRE_OK(db_querier_open(f.w.f.db, 0, INT64_MAX - 1, NULL, &q, &f.w.f.err), &f.w.f.err);
	town_delete(&t, "job0", "i1", T0 + 5, T0 + 15);
	list(&t, &f);
	CHECK(f.v[0].deleted.bytes && f.v[1].deleted.bytes && !f.v[2].deleted.bytes);
	follow(&f);
	expect_until(&t, &f, T0 + 30);
	TOWN_CHECK(&f.w, "deleted");
	town_delete(&t, "job1", "i2", T0 + 1, T0 + 12);
	list(&t, &f);
	follow(&f);
	expect_until(&t, &f, T0 + 30);
	TOWN_CHECK(&f.w, "deleted more");
	db_querier_close(q);
	/* Opened anew with the ranges that are there. */
	REQUIRE(fixture_reopen(&f.w.f));
	CHECK_LAYOUT(&f.w, "");
	follow(&f);
	TOWN_CHECK(&f.w, "anew");
	/* The raw rows of the first go: another meta.json under another name. */
	db_set_retention(t.f.db, 0, 0, 45 * SEC);
	town_compact(&t);
	REQUIRE_OK(db_list(t.f.db, &t.f.arena, &v, &n, &t.f.err), &t.f.err);
	REQUIRE(!v[0].raw && v[1].raw);
	list(&t, &f);
	f.v[0].meta_changed = true;
	from = arena_printf(&t.f.arena, "far/%s/meta.json", f.v[0].key);
	to = arena_printf(&t.f.arena, "%s-%016" PRIx64, from, f.v[0].meta.hash);
	town_move(&t, from, to);
	REQUIRE(unlink(arena_printf(&t.f.arena, "%s/%s/rows.ldb", far.dir, f.v[0].key)) == 0);
	follow(&f);
	REQUIRE_OK(db_list(f.w.f.db, &f.w.f.arena, &v, &n, &f.w.f.err), &f.w.f.err);
	CHECK_INT(n, 3);
	CHECK(!v[0].raw && !v[0].damaged && v[1].raw);
	END(&t, &f);
}

static size_t warnings(struct follower *f, char *first)
{
	struct db_querier *q;
	const struct str *v;
	size_t n;

	first[0] = '\0';
	if (db_querier_open(f->w.f.db, 0, INT64_MAX - 1, NULL, &q, &f->w.f.err))
		abort();
	v = db_querier_warnings(q, &n);
	if (n)
		snprintf(first, 1024, STR_FMT, STR_ARG(v[0]));
	db_querier_close(q);
	return n;
}

TEST(what_cannot_be_opened_is_said)
{
	struct remote_block right;
	struct follower f;
	char text[1024];
	struct town t;

	REQUIRE(start(&t, &f));
	atomic_store(&far.down, true);
	follow(&f);
	CHECK_LAYOUT(&f.w, "");
	CHECK_INT(warnings(&f, text), 3);
	CHECK(strstr(text, "is in a bucket that does not answer") != NULL);
	blocks_retry(f.w.f.db);
	CHECK_INT(warnings(&f, text), 3);
	atomic_store(&far.down, false);
	blocks_retry(f.w.f.db);
	CHECK_INT(warnings(&f, text), 0);
	expect_until(&t, &f, T0 + 30);
	TOWN_CHECK(&f.w, "again");
	/* What is wrong with one of them is said, the others are served. */
	right = f.v[1];
	f.v[1].key = f.v[0].key;
	follow(&f);
	CHECK_LAYOUT(&f.w, "1 1");
	CHECK_INT(warnings(&f, text), 1);
	CHECK(strstr(text, "its meta.json is not that of the block in the list") != NULL);
	blocks_retry(f.w.f.db); /* the bucket answered: it is not tried again */
	CHECK_INT(warnings(&f, text), 1);
	f.v[1] = right;
	f.v[1].min_ns = f.v[0].min_ns;
	follow(&f);
	CHECK_INT(warnings(&f, text), 1);
	CHECK(strstr(text, "its time overlaps that of block") != NULL);
	f.v[1] = right;
	f.v[1].deleted = (struct block_file){ 10,
		99 }; /* ranges that are not there: not without them */
	follow(&f);
	CHECK_LAYOUT(&f.w, "1 1");
	CHECK_INT(warnings(&f, text), 1);
	CHECK(strstr(text, "deleted-0000000000000063: No such file") != NULL);
	f.v[1] = right;
	follow(&f);
	CHECK_INT(warnings(&f, text), 0);
	TOWN_CHECK(&f.w, "right");
	f.v[2].key = "s/none";
	follow(&f);
	CHECK_INT(warnings(&f, text), 1);
	f.n = 2;
	follow(&f);
	CHECK_INT(warnings(&f, text), 0);
	expect_until(&t, &f, T0 + 20);
	TOWN_CHECK(&f.w, "two");
	END(&t, &f);
}

/* ---- queries meanwhile ---- */

struct querying {
	struct follower *f;
	atomic_bool stop;
	atomic_uint turns;
	unsigned wrong;
};

static bool count(void *ctx, const struct db_series *s, const struct db_row *row)
{
	(void)s;
	(void)row;
	++*(size_t *)ctx;
	return true;
}

/* 3 blocks of 60 rows, wherever they are. */
static void query(void *ctx)
{
	struct querying *t = ctx;
	struct err err;

	while (!atomic_load(&t->stop)) {
		size_t n = 0, missing = 0;

		if (!rows_each(t->f->w.f.db, 0, INT64_MAX - 1, count, &n, &missing, &err) || n != 180 ||
			missing)
			t->wrong++;
		atomic_fetch_add(&t->turns, 1);
	}
}

TEST(queries_see_one_list_or_the_other)
{
	struct remote_block lists[2][BLOCKS];
	struct querying q = { 0 };
	struct thread threads[2] = { 0 };
	struct follower f;
	struct town t;
	size_t n[2];

	REQUIRE(start(&t, &f));
	memcpy(lists[0], f.v, sizeof(f.v));
	n[0] = f.n;
	follow(&f);
	memcpy(lists[1], f.v, sizeof(f.v));
	n[1] = f.n;
	/* The same block at another key is another one. */
	town_copy(&t, arena_printf(&t.f.arena, "far/%s", lists[0][1].key), "far/other");
	town_move(
		&t, "far/other", arena_printf(&t.f.arena, "far/%s", strrchr(lists[0][1].key, '/') + 1));
	lists[1][1].key = strrchr(lists[0][1].key, '/') + 1;
	q.f = &f;
	for (int i = 0; i < 2; i++)
		CHECK_OK(thread_start(&threads[i], "query", query, &q, &f.w.f.err), &f.w.f.err);
	for (unsigned turn = 0; atomic_load(&q.turns) < 100u / CHECK_STEP; turn++) {
		memcpy(f.v, lists[turn & 1], sizeof(f.v));
		f.n = n[turn & 1];
		follow(&f);
	}
	atomic_store(&q.stop, true);
	for (int i = 0; i < 2; i++)
		thread_join(&threads[i]);
	CHECK_INT(q.wrong, 0);
	END(&t, &f);
}
