/* Old blocks and windows go by time and by size, raw rows earlier than rollups. */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/tsdb/town.h"

TEST(blocks_go_by_time_and_the_newest_stays)
{
	struct town w;

	REQUIRE(town_open(&w));
	town_fill(&w, 1, 2, T0, T0 + 150, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "3 head head head");
	town_fill(&w, 1, 2, T0 + 150, T0 + 180, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "3 1 1 1 head head head");
	db_set_retention(w.f.db, 55 * SEC, 0, 0);
	town_compact(&w);
	CHECK_LAYOUT(&w, "1 1 1 head head head");
	town_forget_until(&w, T0 + 120);
	TOWN_CHECK(&w, "dropped");
	db_set_retention(w.f.db, 1, 0, 0);
	town_compact(&w);
	CHECK_LAYOUT(&w, "head");
	town_forget_until(&w, T0 + 170);
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "reopened");
	TOWN_END(&w);
}

TEST(blocks_go_by_size_the_oldest_first)
{
	struct db_block_status *v;
	struct town w;
	uint64_t bytes = 0;
	size_t n;

	REQUIRE(town_open(&w));
	town_fill(&w, 1, 2, T0, T0 + 60, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "1 1 1 head head head");
	REQUIRE_OK(db_list(w.f.db, &w.f.arena, &v, &n, &w.f.err), &w.f.err);
	for (size_t i = 0; i < n; i++)
		bytes += v[i].bytes;
	db_set_retention(w.f.db, 0, bytes - v[0].bytes - 1, 0);
	town_compact(&w);
	CHECK_LAYOUT(&w, "1 head head head");
	town_forget_until(&w, T0 + 20);
	TOWN_CHECK(&w, "dropped");
	db_set_retention(w.f.db, 0, 1, 0);
	town_compact(&w);
	CHECK_LAYOUT(&w, "head");
	town_forget_until(&w, T0 + 50);
	TOWN_CHECK(&w, "all but the newest");
	TOWN_END(&w);
}

static uint32_t rows_of(struct town *w, struct block *b)
{
	struct block_chunks *it;
	struct chunk *c = chunk_open();
	struct str bytes;
	uint32_t n = 0;
	int64_t first;

	if (!c || block_chunks_open(b, false, &it, &w->f.err))
		abort();
	for (uint32_t id = 0; id < block_meta(b)->series; id++) {
		block_chunks_seek(it, id, 0, INT64_MAX);
		while (!block_chunks_next(it, &bytes, &first, &w->f.err)) {
			if (chunk_parse(c, bytes, &w->f.err))
				abort();
			n += chunk_rows_n(c);
		}
	}
	block_chunks_close(it);
	chunk_close(c);
	return n;
}

TEST(raw_rows_go_earlier_and_rollups_stay)
{
	struct db_block_status *v;
	struct db_block **blocks;
	struct town w;
	size_t n;
	char *path, *name;

	REQUIRE(town_open(&w));
	town_fill(&w, 2, 2, T0, T0 + 60, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "1 1 1 head head head");
	REQUIRE_OK(blocks_pin_all(w.f.db, &blocks, &n, &w.f.err), &w.f.err);
	db_set_retention(w.f.db, 0, 0, 35 * SEC);
	town_compact(&w);
	/* Its readers go on. */
	CHECK(block_has_raw(blocks[0]->block));
	CHECK_INT(rows_of(&w, blocks[0]->block), 40);
	blocks_unpin_all(w.f.db, blocks, n);
	name = arena_printf(&w.f.arena, "%s/rows.ldb", town_block(&w, 0));
	path = arena_printf(&w.f.arena, "%s/%s", w.f.dir, name);
	CHECK(!fs_exists(path));
	for (int turn = 0; turn < 2; turn++) {
		CHECK_LAYOUT(&w, "1 1 1 head head head");
		REQUIRE_OK(db_list(w.f.db, &w.f.arena, &v, &n, &w.f.err), &w.f.err);
		CHECK(!v[0].raw && !v[1].raw && v[2].raw);
		CHECK_INT(v[0].rows, 40);
		CHECK(!v[0].damaged);
		town_copy(&w, "ids", name); /* as if the crash had come before the last step */
		REQUIRE(fixture_reopen(&w.f));
		CHECK(!fs_exists(path));
	}
	/* Blocks without rows are joined only with each other. */
	town_fill(&w, 2, 2, T0 + 60, T0 + 150, 1);
	town_compact(&w);
	REQUIRE_OK(db_list(w.f.db, &w.f.arena, &v, &n, &w.f.err), &w.f.err);
	CHECK(!v[0].raw);
	town_forget_until(&w, v[0].max_ns / SEC);
	TOWN_CHECK(&w, "joined");
	TOWN_END(&w);
}

TEST(raw_rows_that_are_put_back_go_again)
{
	struct db_block_status *v;
	const char *block, *path;
	struct town w;
	size_t n;

	REQUIRE(town_open(&w));
	town_fill(&w, 1, 1, T0, T0 + 60, 1);
	town_compact(&w);
	block = town_block(&w, 0);
	path = arena_printf(&w.f.arena, "%s/%s", w.f.dir, block);
	town_copy(&w, block, "older");
	db_set_retention(w.f.db, 0, 0, 35 * SEC);
	town_compact(&w);
	REQUIRE_OK(fs_remove_tree(&fs_posix, path, &w.f.err), &w.f.err);
	town_move(&w, "older", block);
	REQUIRE(fixture_reopen(&w.f));
	CHECK(!fs_exists(arena_printf(&w.f.arena, "%s/rows.ldb", path)));
	REQUIRE_OK(db_list(w.f.db, &w.f.arena, &v, &n, &w.f.err), &w.f.err);
	CHECK(!v[0].raw && !v[0].damaged);
	TOWN_END(&w);
}

TEST(a_block_that_cannot_be_opened_stays_until_its_time_is_over)
{
	struct town w;
	struct db_block_status *v;
	const char *name;
	char *path;
	size_t n;

	REQUIRE(town_open(&w));
	town_fill(&w, 1, 2, T0, T0 + 60, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "1 1 1 head head head");
	name = town_block(&w, 0);
	db_close(w.f.db);
	w.f.db = NULL;
	path = arena_printf(&w.f.arena, "%s/%s/rollups.ldb", w.f.dir, name);
	REQUIRE(truncate(path, 10) == 0);
	REQUIRE(truncate(arena_printf(&w.f.arena, "%s/%s/spare", w.f.dir, name), 10) == 0);
	REQUIRE(fixture_reopen(&w.f));
	CHECK_LAYOUT(&w, "1 1 head head head");
	CHECK_INT(w.f.db->unreadable_n, 1);
	CHECK_INT(w.f.db->unreadable[0].max_ns, (T0 + 10) * SEC);
	CHECK(fs_exists(path));
	/* Nothing is joined across it, and rows of its time are refused. */
	town_fill(&w, 1, 2, T0 + 60, T0 + 75, 1);
	town_compact(&w);
	REQUIRE_OK(db_list(w.f.db, &w.f.arena, &v, &n, &w.f.err), &w.f.err);
	town_forget_until(&w, T0 + 10);
	w.warning = arena_printf(&w.f.arena,
		"loss 1: all profiles of a block are lost between 1970-01-13T12:00:00.000Z and "
		"1970-01-13T12:00:10.000Z (%s): open block: %s/%s/rollups.ldb: footer: the file has 10 "
		"bytes",
		name, w.f.dir, name);
	TOWN_CHECK(&w, "without it");
	CHECK(fs_exists(path));
	db_set_retention(w.f.db, 40 * SEC, 0, 0);
	town_compact(&w);
	CHECK(!fs_exists(path));
	TOWN_END(&w);
}
