/* A real block read in the bucket: the same answers as from the disk, and how many requests that
 * takes. */
#include "tests/tsdb/town.h"
#include "tsdb/block/block.h"

#include "tests/tsdb/remote/world.h" /* its names come after theirs */

#define DIR "shards/a/blocks/"

static const char *const files[] = { "rows.ldb", "rollups.ldb", "spare", "meta.json" };

/* The files of a block as objects that something is known of; *key in the arena. */
static bool upload(struct town *w, const char *name, char **key)
{
	struct buf bytes = { 0 };
	bool ok = true;

	*key = arena_printf(&w->f.arena, DIR "%s", name + strlen("blocks/"));
	for (size_t i = 0; i < 4 && ok; i++) {
		char *from = arena_printf(&w->f.arena, "%s/%s/%s", w->f.dir, name, files[i]),
			 *to = arena_printf(&w->f.arena, "%s/%s", *key, files[i]);

		buf_clear(&bytes);
		ok = from && to && fs_read_file(from, 64 << 20, &bytes, &err) == ERR_OK;
		if (ok) {
			put_object(to, &bytes);
			range_know(remote_source(remote), to, bytes.len, 1);
		}
	}
	buf_release(&bytes);
	return ok;
}

static void finding(void *ctx, const char *what)
{
	CHECK_FAIL("finding: %s", what);
}

/* All chunks and rollups of a block, in one. */
static void read_block(struct block *v, struct buf *out)
{
	struct block_chunks *chunks;
	struct block_rollups *rollups;
	struct str bytes;
	int64_t at;

	REQUIRE_OK(block_chunks_open(v, false, &chunks, &err), &err);
	REQUIRE_OK(block_rollups_open(v, false, &rollups, &err), &err);
	block_chunks_expect(v, 0, (uint32_t)block_meta(v)->series, 0, INT64_MAX - 1);
	for (uint32_t id = 0; id < block_meta(v)->series; id++) {
		block_chunks_seek(chunks, id, 0, INT64_MAX);
		while (!block_chunks_next(chunks, &bytes, &at, &err))
			buf_add_str(out, bytes);
		for (uint32_t level = 0; level < ROLLUP_LEVELS; level++) {
			block_rollups_seek(rollups, ROLLUP_SERIES, id, level, 0, INT64_MAX);
			while (!block_rollups_next(rollups, &bytes, &at, &err))
				buf_add_str(out, bytes);
		}
	}
	block_chunks_close(chunks);
	block_rollups_close(rollups);
}

static void check_block(struct town *w, const char *name)
{
	char *dir = arena_printf(&w->f.arena, "%s/%s", w->f.dir, name), *key = NULL;
	struct buf here = { 0 }, there = { 0 };
	struct block *near = NULL, *far = NULL;
	unsigned before;
	struct err damaged;

	REQUIRE(upload(w, name, &key));
	before = atomic_load(&fake.requests);
	REQUIRE_OK(block_open(key, remote_source(remote), NULL, &far, &damaged, &err), &err);
	CHECK_INT(damaged.code, ERR_OK);
	/* meta.json, and each table whole: they are small. */
	CHECK_INT(atomic_load(&fake.requests) - before, 3);
	REQUIRE_OK(block_open(dir, NULL, NULL, &near, &damaged, &err), &err);
	CHECK_STR(str_of(block_dir(far)), key);
	CHECK_INT(block_disk_bytes(far), block_disk_bytes(near));
	read_block(near, &here);
	read_block(far, &there);
	CHECK(here.len > 10000 && str_eq(buf_str(&here), buf_str(&there)));
	CHECK_INT(atomic_load(&fake.requests) - before, 3);
	CHECK_OK(block_verify(far, finding, NULL, &err), &err);
	CHECK_INT(atomic_load(&fake.requests) - before, 4); /* the spare */
	block_close(near);
	block_close(far);
	buf_release(&here);
	buf_release(&there);
}

TEST(a_block_in_the_bucket_is_that_on_disk)
{
	struct town w;

	REQUIRE(remote_world(1000));
	REQUIRE(town_open(&w));
	town_fill(&w, 3, 4, T0, T0 + 60, 1);
	town_compact(&w);
	for (size_t i = 0; i < 3; i++)
		check_block(&w, town_block(&w, i));
	TOWN_END(&w);
	remote_world_stop();
}

/* Damage is that of the block; a bucket that does not answer is none. */
TEST(what_a_block_says_of_its_objects)
{
	struct err damaged;
	struct block *v;
	struct town w;
	char *key, *rollups, *rows, *want;

	REQUIRE(remote_world(1000));
	options.retry_ns = 1;
	options.cache_dir = NULL;
	REQUIRE(remote_again());
	REQUIRE(town_open(&w));
	town_fill(&w, 2, 2, T0, T0 + 60, 1);
	town_compact(&w);
	REQUIRE(upload(&w, town_block(&w, 0), &key));
	rollups = arena_printf(&w.f.arena, "GET /b/p/q/%s/rollups.ldb", key);
	rows = arena_printf(&w.f.arena, "%s/rows.ldb", key);
	for (size_t i = 0; i < 3; i++) { /* rows, rollups, meta.json */
		const char *const lines[] = { rows, rollups + strlen("GET /b/p/q/"), "meta.json" };

		fake_fault(&fake,
			(struct fake_fault){ .kind = FAULT_STATUS,
				.line = lines[i],
				.times = 1,
				.status = 503,
				.code = "SlowDown" });
		REQUIRE(remote_again());
		CHECK_INT(
			block_open(key, remote_source(remote), NULL, &v, &damaged, &err), ERR_UNAVAILABLE);
		CHECK_INT(damaged.code, ERR_OK);
		fake_forget_faults(&fake);
	}
	REQUIRE(remote_again());
	REQUIRE_OK(block_open(key, remote_source(remote), NULL, &v, &damaged, &err), &err);
	block_close(v);
	REQUIRE_OK(bucket_delete(b, str_of(rows), &err), &err);
	REQUIRE(remote_again());
	REQUIRE_OK(block_open(key, remote_source(remote), NULL, &v, &damaged, &err), &err);
	want = arena_printf(&w.f.arena, "%s: bucket b: head p/q/%s: no such object", rows, rows);
	CHECK_STR(str_of(damaged.msg), want);
	CHECK(!block_has_raw(v));
	block_close(v);
	TOWN_END(&w);
	remote_world_stop();
}

/* ---- a database whose blocks are in the bucket ---- */

/* The same queries are answered, and a second time without a request. */
TEST(a_database_reads_its_blocks_in_the_bucket)
{
	struct remote_status before, after;
	struct town w;
	struct ulid u;
	char *key;

	REQUIRE(remote_world(1000));
	REQUIRE(town_open(&w));
	w.f.o.remote = remote_source(remote);
	REQUIRE(fixture_reopen(&w.f));
	town_fill(&w, 3, 4, T0, T0 + 60, 1);
	town_compact(&w);
	for (size_t i = 0; i < 3; i++) {
		const char *name = town_block(&w, i);

		REQUIRE(upload(&w, name, &key));
		REQUIRE(ulid_parse(str_base_name(str_of(name)), &u));
		CHECK_OK(blocks_swap_remote(w.f.db, &u, key, &err), &err);
	}
	remote_status(remote, &before);
	CHECK_INT(before.requests, 3 * 2); /* meta.json is in the stub */
	TOWN_CHECK(&w, "in the bucket");
	remote_status(remote, &after);
	CHECK_INT(after.requests, 3 * 3); /* the spares, to be verified */
	/* The server and its memory are new, the disk is not. */
	db_close(w.f.db);
	w.f.db = NULL;
	REQUIRE(remote_again());
	w.f.o.remote = remote_source(remote);
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "after a restart");
	CHECK_INT(requests(), 0);
	town_fill(&w, 3, 4, T0 + 60, T0 + 80, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "2 1 head head head");
	TOWN_CHECK(&w, "joined");
	CHECK_INT(requests(), 0);
	db_close(w.f.db);
	w.f.db = NULL;
	TOWN_END(&w);
	remote_world_stop();
}
