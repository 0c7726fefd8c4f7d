/* A real block read in the bucket: the same answers as from the disk, and how many requests that
 * takes. */
#include <stdlib.h>
#include <xxhash.h>

#include "tests/tsdb/town.h"
#include "tsdb/block/block.h"
#include "tsdb/store/table.h"

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

/* ---- opened by what is known of its files ---- */

/* As a manifest says it of the files on the disk. */
static bool know_block(struct town *w, const char *name, struct block_known *out)
{
	const char *const of[] = { "spare", "meta.json" };
	struct block_file *to[] = { &out->spare, &out->meta };
	struct buf bytes = { 0 };
	bool ok = true;

	*out = (struct block_known){ 0 };
	for (size_t i = 0; i < 2 && ok; i++) {
		buf_clear(&bytes);
		ok = fs_read_file(arena_printf(&w->f.arena, "%s/%s/%s", w->f.dir, name, of[i]), 64 << 20,
				 &bytes, &err) == ERR_OK;
		*to[i] = (struct block_file){ bytes.len, XXH3_64bits(bytes.ptr, bytes.len) };
	}
	buf_release(&bytes);
	return ok;
}

/* One byte of an object is another, its size is not. */
static void change_object(const char *key, size_t at, char flip)
{
	struct buf bytes = { 0 };

	REQUIRE_OK(range_read_all(remote_source(remote), key, 64 << 20, &bytes, &err), &err);
	REQUIRE(at < bytes.len);
	bytes.ptr[at] ^= flip;
	put_object(key, &bytes);
	buf_release(&bytes);
}

static void check_same(struct block *far, struct block *near)
{
	struct buf here = { 0 }, there = { 0 };

	read_block(near, &here);
	read_block(far, &there);
	CHECK(here.len > 1000);
	CHECK(str_eq(buf_str(&here), buf_str(&there)));
	buf_release(&here);
	buf_release(&there);
}

static void check_known(struct town *w, const char *name)
{
	char *dir = arena_printf(&w->f.arena, "%s/%s", w->f.dir, name), *key = NULL;
	struct block *near = NULL, *far = NULL;
	struct block_series a, c;
	struct block_known known;
	struct err damaged;
	unsigned before;

	REQUIRE(upload(w, name, &key) && know_block(w, name, &known));
	REQUIRE_OK(block_open(dir, NULL, NULL, &near, &damaged, &err), &err);
	before = atomic_load(&fake.requests);
	REQUIRE_OK(
		block_open_known(key, remote_source(remote), &known, NULL, &far, &damaged, &err), &err);
	CHECK_INT(damaged.code, ERR_OK);
	CHECK_INT(block_partitions_n(far), block_partitions_n(near));
	for (uint32_t id = 0; id < block_meta(near)->series; id++) {
		CHECK_OK(block_series(near, id, &w->f.arena, &a, &err), &err);
		CHECK_OK(block_series(far, id, &w->f.arena, &c, &err), &err);
		CHECK(labels_eq(a.labels, c.labels) && a.rows == c.rows && a.slot == c.slot);
	}
	CHECK_INT(atomic_load(&fake.requests) - before, 1); /* opened, and all series looked at */
	CHECK_INT(block_disk_bytes(far), block_disk_bytes(near));
	check_same(far, near);
	CHECK_INT(atomic_load(&fake.requests) - before, 3); /* and each table, as it is small */
	CHECK_OK(block_verify(far, finding, NULL, &err), &err);
	block_close(far);
	block_close(near);
}

TEST(a_block_is_opened_by_one_request)
{
	struct town w;

	REQUIRE(remote_world(1000));
	REQUIRE(town_open(&w));
	town_fill(&w, 3, 4, T0, T0 + 60, 1);
	town_compact(&w);
	for (size_t i = 0; i < 3; i++)
		check_known(&w, town_block(&w, i));
	TOWN_END(&w);
	remote_world_stop();
}

/* Each byte of the spare that is another is seen by its hash; the block is opened without it. */
TEST(a_spare_that_is_not_the_one_that_was_put)
{
	struct block *near, *far;
	struct block_known known;
	struct err damaged;
	struct town w;
	char *key, *spare, *dir, *want;

	REQUIRE(remote_world(1000));
	options.cache_dir = NULL;
	REQUIRE(town_open(&w));
	town_fill(&w, 2, 2, T0, T0 + 60, 1);
	town_compact(&w);
	dir = arena_printf(&w.f.arena, "%s/%s", w.f.dir, town_block(&w, 0));
	REQUIRE_OK(block_open(dir, NULL, NULL, &near, &damaged, &err), &err);
	REQUIRE(know_block(&w, town_block(&w, 0), &known));
	for (size_t i = 0; i < 8; i++) {
		REQUIRE(remote_again() && upload(&w, town_block(&w, 0), &key));
		spare = arena_printf(&w.f.arena, "%s/spare", key);
		change_object(spare, (size_t)known.spare.bytes * i / 8, 1);
		REQUIRE(remote_again());
		REQUIRE_OK(
			block_open_known(key, remote_source(remote), &known, NULL, &far, &damaged, &err), &err);
		CHECK_INT(damaged.code, ERR_CORRUPT);
		want = arena_printf(&w.f.arena, "%s: its hash is ", spare);
		CHECK(str_has_prefix(str_of(damaged.msg), str_of(want)));
		check_same(far, near);
		block_close(far);
	}
	known.spare.bytes++; /* another size */
	REQUIRE(remote_again());
	REQUIRE_OK(
		block_open_known(key, remote_source(remote), &known, NULL, &far, &damaged, &err), &err);
	want = arena_printf(&w.f.arena, "%s has %" PRIu64 " bytes, not %" PRIu64, spare,
		known.spare.bytes - 1, known.spare.bytes);
	CHECK_STR(str_of(damaged.msg), want);
	check_same(far, near);
	block_close(far);
	known.spare.bytes--;
	REQUIRE_OK(bucket_delete(b, str_of(spare), &err), &err);
	REQUIRE(remote_again());
	REQUIRE_OK(
		block_open_known(key, remote_source(remote), &known, NULL, &far, &damaged, &err), &err);
	CHECK_INT(damaged.code, ERR_NOT_FOUND);
	check_same(far, near);
	block_close(far);
	fake_fault(&fake,
		(struct fake_fault){ .kind = FAULT_STATUS,
			.line = "/spare",
			.times = 1,
			.status = 503,
			.code = "SlowDown" });
	options.retry_ns = 1;
	REQUIRE(remote_again() && upload(&w, town_block(&w, 0), &key));
	CHECK_INT(block_open_known(key, remote_source(remote), &known, NULL, &far, &damaged, &err),
		ERR_UNAVAILABLE);
	block_close(near);
	TOWN_END(&w);
	remote_world_stop();
}

/* The table with another block's name in it, and else the same: all its pages are where they were,
 * and right. */
static void make_stranger(const char *path, const char *to)
{
	static const char other[] = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
	struct table_writer *out;
	struct table_written written;
	struct range_reader *r;
	struct buf spare = { 0 };
	struct table_iter *it;
	struct table *t;

	REQUIRE_OK(range_open_file(path, &r, &err), &err);
	REQUIRE_OK(table_open(r, STR(""), NULL, &t, NULL, &err), &err);
	REQUIRE_OK(table_writer_open(&fs_posix, to, &out, &err), &err);
	REQUIRE((it = table_iter_open(t, true)));
	for (table_iter_seek(it, STR("")); table_iter_valid(it); table_iter_next(it)) {
		struct str key = table_iter_key(it);
		bool whose = str_is(key, "A"), which = key.ptr[0] == 'A' && !whose;

		REQUIRE_OK(
			table_writer_put(out, key, whose ? str_of(other) : table_iter_value(it), &err), &err);
		if (which)
			table_writer_end_page(out);
	}
	CHECK_OK(table_iter_status(it, &err), &err);
	REQUIRE_OK(table_writer_finish(out, &written, &spare, &err), &err);
	CHECK_INT(written.bytes, r->bytes);
	table_writer_close(out);
	table_iter_close(it);
	table_close(t);
	buf_release(&spare);
}

static void check_stranger(struct town *w, const char *file)
{
	const char *name = town_block(w, 0);
	char *path = arena_printf(&w->f.arena, "%s/%s/%s", w->f.dir, name, file),
		 *to = arena_printf(&w->f.arena, "%s/stranger", w->f.dir), *key, *want;
	bool rows = file[1] == 'o' && file[2] == 'w';
	struct block_rollups *rollups;
	struct block_chunks *chunks;
	struct block_known known;
	struct buf bytes = { 0 };
	struct err damaged;
	struct block *v;
	struct str got;
	int64_t at;

	REQUIRE(upload(w, name, &key) && know_block(w, name, &known));
	make_stranger(path, to);
	REQUIRE_OK(fs_read_file(to, 64 << 20, &bytes, &err), &err);
	put_object(arena_printf(&w->f.arena, "%s/%s", key, file), &bytes);
	REQUIRE_OK(
		block_open_known(key, remote_source(remote), &known, NULL, &v, &damaged, &err), &err);
	CHECK_INT(damaged.code, ERR_OK);
	want = arena_printf(
		&w->f.arena, "%s/%s is a file of block 01ARZ3NDEKTSV4RRFFQ69G5FAV", key, file);
	REQUIRE_OK(block_chunks_open(v, false, &chunks, &err), &err);
	REQUIRE_OK(block_rollups_open(v, false, &rollups, &err), &err);
	for (uint32_t id = 0; id < block_meta(v)->series; id++) {
		block_chunks_seek(chunks, id, 0, INT64_MAX);
		CHECK_INT(block_chunks_next(chunks, &got, &at, &err), rows ? ERR_CORRUPT : ERR_OK);
		if (rows)
			CHECK(strstr(err.msg, want));
		block_rollups_seek(rollups, ROLLUP_SERIES, id, 0, 0, INT64_MAX);
		CHECK_INT(block_rollups_next(rollups, &got, &at, &err), rows ? ERR_OK : ERR_CORRUPT);
		if (!rows)
			CHECK(strstr(err.msg, want));
	}
	block_chunks_close(chunks);
	block_rollups_close(rollups);
	block_close(v);
	buf_release(&bytes);
}

TEST(a_table_of_another_block_gives_nothing)
{
	struct town w;

	REQUIRE(remote_world(1000));
	options.cache_dir = NULL; /* objects change here */
	REQUIRE(remote_again());
	REQUIRE(town_open(&w));
	town_fill(&w, 2, 2, T0, T0 + 60, 1);
	town_compact(&w);
	check_stranger(&w, "rows.ldb");
	REQUIRE(remote_again());
	check_stranger(&w, "rollups.ldb");
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

/* ---- a query node ---- */

static const struct profile_type cpu = {
	STR("p"), STR("cpu"), STR("nanoseconds"), STR(""), STR(""), true };

/* Costs by name of the series v[0, n), all of one job; of stacks where names would tell less. */
static void print_sums(struct db_querier *q, const struct db_series *const *v, size_t n,
	int64_t min_ns, int64_t max_ns, struct arena *a, struct buf *out)
{
	const struct function_sum *list;
	struct sum_stats stats = { 0 };
	struct accum_cell cell;
	struct function_sums *f;
	struct accum *acc;
	int64_t total;
	size_t k, at = 0;

	REQUIRE_OK(function_sums_open(&f, &err), &err);
	REQUIRE_OK(accum_open(v[0]->partition, 0, &acc, &err), &err);
	REQUIRE_OK(db_sum_functions(q, v, n, &cpu, min_ns, max_ns, f, acc, a, &stats, &err), &err);
	REQUIRE_OK(function_sums_list(f, a, &list, &k, &total, &err), &err);
	buf_printf(out, STR_FMT " rows %" PRIu64 " total %" PRId64 " of %" PRId64 "\n",
		STR_ARG(v[0]->partition->name), stats.rows, total, (int64_t)stats.total);
	/* One window is within a block: it has no whole step. */
	CHECK(k > 0 || !str_eq(v[0]->partition->name, STR("named")) || max_ns - min_ns == SEC);
	for (size_t i = 0; i < k; i++)
		buf_printf(out, STR_FMT " %" PRId64 " %" PRId64 "\n",
			STR_ARG(sym_string(v[0]->partition, list[i].name)), list[i].flat, list[i].cum);
	REQUIRE_OK(accum_seal(acc, &err), &err);
	while (accum_next(acc, &at, &cell))
		buf_printf(out, "%" PRIu32 " %" PRId64 "\n", cell.stack, (int64_t)cell.value);
	accum_close(acc);
	function_sums_close(f);
}

static int by_job(const void *a, const void *b_)
{
	const struct db_series *const *x = a, *const *y = b_;
	int cmp = str_cmp((*x)->partition->name, (*y)->partition->name);

	return cmp ? cmp : *x < *y ? -1 : *x > *y;
}

/* Of all jobs; blocks are told first what is coming where `tell` is set. */
static void read_sums(struct db *db, int64_t min_ns, int64_t max_ns, bool tell, struct buf *out)
{
	const struct db_series **v;
	struct db_series *all;
	struct db_querier *q;
	struct arena a;
	size_t n, warnings;

	arena_init(&a, 0);
	REQUIRE_OK(db_querier_open(db, min_ns, max_ns, NULL, &q, &err), &err);
	CHECK_INT(db_querier_is_far(q), tell);
	REQUIRE_OK(db_select_kinds(q, DB_PROFILES, NULL, 0, &a, &all, &n, &err), &err);
	REQUIRE(n > 0 && (v = arena_array(&a, const struct db_series *, n)));
	for (size_t i = 0; i < n; i++)
		v[i] = &all[i];
	qsort(v, n, sizeof(*v), by_job);
	for (int part = SUM_NO_PART + 1; part < SUM_PARTS && tell; part++)
		for (size_t i = 0; i < n; i++)
			for (enum sum_wish wish = SUM_CELLS; wish <= SUM_FUNCTIONS; wish++)
				db_sum_expect(q, v + i, 1, &cpu, min_ns, max_ns, wish, (enum sum_part)part);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && v[end]->partition == v[i]->partition; end++)
			;
		for (int part = SUM_NO_PART + 1; part < SUM_PARTS && tell; part++)
			db_sum_expect(
				q, v + i, end - i, &cpu, min_ns, max_ns, SUM_FUNCTIONS, (enum sum_part)part);
		print_sums(q, v + i, end - i, min_ns, max_ns, &a, out);
	}
	(void)db_querier_warnings(q, &warnings);
	CHECK_INT(warnings, 0);
	db_querier_close(q);
	arena_release(&a);
}

static void check_sums(struct db *near, struct db *far, int64_t min_s, int64_t max_s)
{
	struct buf here = { 0 }, there = { 0 };

	read_sums(near, min_s * SEC, max_s * SEC, false, &here);
	read_sums(far, min_s * SEC, max_s * SEC, true, &there);
	CHECK(here.len > 200);
	CHECK(str_eq(buf_str(&here), buf_str(&there)));
	buf_release(&here);
	buf_release(&there);
}

/* Rows of job0, whose costs have both signs, and of "named", whose costs are told by name. */
static void fill(struct town *w)
{
	static const char *const types[] = { "samples/count", "cpu/nanoseconds", NULL };
	static const char *const lines[] = { "main;work;leaf 3 30", "main;work 1 7",
		"main;rest;leaf 2 5", NULL };
	static const char *const instances[] = { "i0", "i1", "i2" };

	for (int64_t s = T0 + 1; s <= T0 + 60; s++)
		for (size_t i = 0; i < 3; i++) {
			struct labels of = town_labels(w, "named", instances[i]);

			town_append(w, town_labels(w, "job0", instances[i]), s);
			REQUIRE_OK(
				append_wait(w->f.db, of, s * SEC, SEC,
					profile_of(&w->f.arena, types, lines + (i == 2)), NULL, false, NULL, &err),
				&err);
		}
}

/* Opening is one request a block; answers are those of the blocks on the disk. */
TEST(a_query_node_gives_the_same_answers)
{
	struct remote_block v[3] = { 0 };
	struct block_known known;
	struct town w, node;
	char *key;

	REQUIRE(remote_world(1000));
	REQUIRE(town_open(&w) && town_open(&node));
	node.f.o.remote = remote_source(remote);
	REQUIRE(fixture_reopen(&node.f));
	fill(&w);
	town_compact(&w);
	for (size_t i = 0; i < 3; i++) {
		const char *name = town_block(&w, i);
		const struct block_meta *m = block_meta(w.f.db->blocks[i]->block);

		REQUIRE(upload(&w, name, &key) && know_block(&w, name, &known));
		v[i] = (struct remote_block){ .key = key,
			.ulid = m->ulid,
			.min_ns = m->min_ns,
			.max_ns = m->max_ns,
			.rows = m->rows_file,
			.rollups = m->rollups_file,
			.spare = known.spare,
			.meta = known.meta };
	}
	REQUIRE_OK(blocks_follow(node.f.db, v, 3, NULL, 0, &err), &err);
	CHECK_INT(requests(), 3);
	check_sums(w.f.db, node.f.db, T0, T0 + 30);
	CHECK_INT(requests(), 3 * 2); /* rollups.ldb */
	check_sums(w.f.db, node.f.db, T0 + 3, T0 + 27);
	CHECK_INT(requests(), 3 * 2 + 2); /* rows.ldb of the first and the last */
	check_sums(w.f.db, node.f.db, T0 + 13, T0 + 14);
	CHECK_INT(requests(), 3 * 3);
	db_close(node.f.db);
	node.f.db = NULL;
	town_close(&node);
	TOWN_END(&w);
	remote_world_stop();
}
