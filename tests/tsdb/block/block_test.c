/* Blocks: what was written is what is read, selecting against labels one by one, and verifying. */
#include "tests/check.h"

#include "tests/tsdb/block/block_world.h"

#define ALL_LEVELS ((1u << ROLLUP_LEVELS) - 1)

static const struct world_options whole = { &fs_posix, ALL_LEVELS, true };

static bool setup(struct world *w, uint64_t seed, const struct world_options *o, struct block **b)
{
	struct block_meta meta;
	struct err err = { 0 }, damaged;

	if (!world_open(w, seed, WORLD_PARTITIONS, 6)) {
		CHECK_FAIL("no directory");
		return false;
	}
	CHECK_OK(world_write(w, o, &meta, &err), &err);
	CHECK_OK(block_open(w->block, NULL, NULL, b, &damaged, &err), &err);
	CHECK_INT(damaged.code, ERR_OK);
	return err.msg[0] == '\0';
}

static void finding(void *ctx, const char *what)
{
	CHECK_FAIL("finding: %s", what);
}

TEST(ulids_ascend_and_parse)
{
	struct ulid before = ulid_new(5), now, again;

	CHECK_INT(strlen(before.text), ULID_LEN);
	for (int i = 0; i < 2000; i++) {
		now = ulid_new(i % 3 ? i * INT64_C(1000000) : 0); /* the clock goes back */
		CHECK(strcmp(before.text, now.text) < 0);
		CHECK(ulid_parse(str_of(now.text), &again));
		CHECK_STR(str_of(again.text), now.text);
		before = now;
	}
	CHECK(!ulid_parse(STR("01ARZ3NDEKTSV4RRFFQ69G5FA"), &again));
	CHECK(!ulid_parse(STR("01ARZ3NDEKTSV4RRFFQ69G5FAU"), &again)); /* no U in the alphabet */
	CHECK(!ulid_parse(STR("81ARZ3NDEKTSV4RRFFQ69G5FAV"), &again)); /* over 128 bits */
	CHECK(ulid_parse(STR("01ARZ3NDEKTSV4RRFFQ69G5FAV"), &again));
}

/* ---- reading back ---- */

static void check_record(const struct world *w, struct block *b, uint32_t i)
{
	const struct world_series *want = &w->series[i];
	struct block_series s;
	uint64_t rows = 0, samples = 0;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	CHECK_OK(block_series(b, i, &a, &s, &err), &err);
	CHECK(labels_eq(s.labels, want->labels));
	CHECK_INT(s.slot, want->slot);
	CHECK_INT(s.group, want->group);
	for (uint32_t k = 0; k < want->chunks_n; k++) {
		rows += want->chunks[k].rows_n;
		samples += want->chunks[k].samples;
	}
	CHECK_INT(s.rows, rows);
	CHECK_INT(s.samples, samples);
	CHECK_INT(s.first_ns, want->chunks[0].first_ns);
	CHECK_INT(s.last_ns, want->chunks[want->chunks_n - 1].last_ns);
	CHECK_INT(s.headers_n, want->headers_n);
	for (uint32_t k = 0; k < s.headers_n && k < want->headers_n; k++)
		CHECK_INT(s.headers[k], want->headers[k]);
	arena_release(&a);
}

TEST(series_and_groups_read_back)
{
	for (uint64_t seed = 1; seed <= 10; seed += CHECK_STEP) {
		struct block *b = NULL;
		struct world w;
		uint32_t first, n;
		struct err err;

		if (!setup(&w, seed, &whole, &b))
			return;
		CHECK_INT(block_meta(b)->series, w.series_n);
		CHECK_INT(block_meta(b)->groups, w.series[w.series_n - 1].group + 1);
		CHECK_INT(block_meta(b)->heads_n, 2);
		CHECK_INT(block_meta(b)->heads[1], WORLD_START_NS);
		CHECK_INT(block_levels(b), ALL_LEVELS);
		CHECK(block_has_raw(b));
		for (uint32_t i = 0; i < w.series_n; i++) {
			check_record(&w, b, i);
			CHECK_OK(block_group(b, w.series[i].group, &first, &n, &err), &err);
			CHECK(i >= first && i < first + n);
			CHECK(w.series[first].group == w.series[i].group);
			CHECK(first + n == w.series_n || w.series[first + n].group != w.series[i].group);
		}
		for (uint32_t i = 0; i < WORLD_PARTITIONS; i++) {
			CHECK(str_eq(block_partition(b, i)->name, w.partitions[i]->name));
			CHECK_INT(block_partition(b, i)->id, w.partitions[i]->id);
		}
		CHECK_ERR(block_group(b, 9999, &first, &n, &err), &err, ERR_NOT_FOUND,
			arena_printf(&w.arena, "block %s has no group 9999", w.block));
		block_close(b);
		world_close(&w);
	}
}

TEST(chunks_of_any_window)
{
	for (uint64_t seed = 1; seed <= 6; seed += CHECK_STEP) {
		struct block_chunks *it = NULL;
		struct block *b = NULL;
		struct world w;
		struct str bytes;
		int64_t first;
		struct err err;

		if (!setup(&w, seed, &whole, &b))
			return;
		REQUIRE_OK(block_chunks_open(b, seed & 1, &it, &err), &err);
		for (int round = 0; round < 500; round++) {
			const struct world_series *s = &w.series[world_draw(&w, w.series_n)];
			const struct world_chunk *c = &s->chunks[world_draw(&w, s->chunks_n)];
			/* around the ends of a chunk, where a mistake by one shows */
			int64_t min = world_draw(&w, 2) ? c->last_ns : c->first_ns, max;

			min += (int64_t)world_draw(&w, 3) - 1;
			max = world_draw(&w, 2) ? c->first_ns + (int64_t)world_draw(&w, 3) - 1 :
									  min + (int64_t)world_draw(&w, 1 << 30) * 4000;
			if (world_draw(&w, 10) == 0)
				min = INT64_MIN;
			if (world_draw(&w, 10) == 0)
				max = INT64_MAX;
			block_chunks_seek(it, (uint32_t)(s - w.series), min, max);
			for (uint32_t k = 0; k < s->chunks_n; k++) {
				c = &s->chunks[k];
				if (min >= max || c->last_ns <= min || c->first_ns > max)
					continue;
				REQUIRE_OK(block_chunks_next(it, &bytes, &first, &err), &err);
				CHECK(str_eq(bytes, c->bytes));
				CHECK_INT(first, c->first_ns);
			}
			CHECK(block_chunks_next(it, &bytes, &first, &err) == ERR_NOT_FOUND);
			CHECK(block_chunks_next(it, &bytes, &first, &err) == ERR_NOT_FOUND);
		}
		block_chunks_close(it);
		block_close(b);
		world_close(&w);
	}
}

static void check_steps(struct world *w, struct block_rollups *it, enum rollup_kind kind,
	uint32_t id, uint32_t first, uint32_t n)
{
	struct buf want = { 0 };
	struct str bytes;
	int64_t step_ns;
	struct err err;

	for (uint32_t level = 0; level < ROLLUP_LEVELS; level++) {
		int64_t step = rollup_step_ns[level], at = WORLD_MIN_NS / step * step;
		int64_t from = at + (int64_t)world_draw(w, 4) * step, to = WORLD_START_NS + 2 * step;

		block_rollups_seek(it, kind, id, level, from, to);
		for (; at < WORLD_MAX_NS; at += step) {
			CHECK_OK(
				world_rollup(w, first, n, level, at, kind == ROLLUP_FUNCTIONS, &want, &err), &err);
			if (!want.len || at < from || at >= to)
				continue;
			REQUIRE_OK(block_rollups_next(it, &bytes, &step_ns, &err), &err);
			CHECK_INT(step_ns, at);
			CHECK(str_eq(bytes, buf_str(&want)));
		}
		CHECK(block_rollups_next(it, &bytes, &step_ns, &err) == ERR_NOT_FOUND);
	}
	buf_release(&want);
}

TEST(rollups_read_back)
{
	struct block_rollups *it = NULL;
	struct block *b = NULL;
	struct world w;
	struct err err;

	if (!setup(&w, 3, &whole, &b))
		return;
	REQUIRE_OK(block_rollups_open(b, false, &it, &err), &err);
	for (uint32_t i = 0, n; i < w.series_n; i += n) {
		for (n = 0; i + n < w.series_n && w.series[i + n].group == w.series[i].group; n++)
			check_steps(&w, it, ROLLUP_SERIES, i + n, i + n, 1);
		check_steps(&w, it, ROLLUP_GROUP, w.series[i].group, i, n);
		check_steps(&w, it, ROLLUP_FUNCTIONS, w.series[i].group, i, n);
	}
	block_rollups_close(it);
	block_close(b);
	world_close(&w);
}

/* ---- symbols ---- */

static void check_symbols(struct world *w, struct block *b, uint32_t slot)
{
	static const struct symbol_limits limits = { 1 << 20, 1 << 20, 1 << 20, 1 << 28 };
	struct partition *from = w->partitions[slot], *to;
	uint64_t lost = 0, n = 0;
	struct err err;

	CHECK_OK(partition_open(from->name, from->id, 0, &limits, &to, &err), &err);
	mutex_lock(&to->lock);
	for (int again = 0; again < 2; again++) { /* the second time all is there */
		CHECK_OK(block_load_symbols(b, slot, to, BLOCK_NAMES, &lost, &err), &err);
		CHECK_INT(lost, 0);
		CHECK_OK(block_load_symbols(b, slot, to, BLOCK_STACKS, &lost, &err), &err);
		CHECK_INT(lost, 0);
	}
	mutex_unlock(&to->lock);
	CHECK(!atomic_load(&to->damaged));
	for (int kind = 1; kind < SYM_KINDS; kind++)
		for (uint32_t id = 0; id < segvec_n(&to->vec[kind]); id++) {
			union sym_content c = { 0 };

			if (!sym_exists(to, kind, id))
				continue;
			n++;
			switch ((enum sym_kind)kind) {
			case SYM_STRING:
				c.string = sym_string(to, id);
				break;
			case SYM_MAPPING:
				c.mapping = *sym_mapping(to, id);
				break;
			case SYM_FUNCTION:
				c.function = *sym_function(to, id);
				break;
			case SYM_LOCATION:
				c.location = sym_location(to, id);
				break;
			case SYM_NODE:
				c.node = sym_node(to, id);
				CHECK(sym_node_recursive(to, id) == sym_node_recursive(from, id));
				break;
			case SYM_LABEL_SET:
				c.label_set = sym_label_set(to, id);
				break;
			case SYM_HEADER:
				c.header = *sym_header(to, id);
				break;
			case SYM_KINDS:
				break;
			}
			CHECK(sym_exists(from, kind, id));
			CHECK((kind == SYM_NODE && id == 0) || sym_content_same(from, kind, id, &c));
		}
	CHECK(n > 100);
	partition_close(to);
}

TEST(symbols_read_back)
{
	for (uint64_t seed = 1; seed <= 6; seed += CHECK_STEP) {
		struct block *b = NULL;
		struct world w;
		const struct str *keys;
		struct err err;
		size_t n;

		if (!setup(&w, seed, &whole, &b))
			return;
		for (uint32_t slot = 0; slot < WORLD_PARTITIONS; slot++) {
			check_symbols(&w, b, slot);
			CHECK_OK(block_sample_keys(b, slot, &keys, &n, &err), &err);
			CHECK(n > 0);
			for (size_t i = 0; i < n; i++) {
				CHECK(sym_has_label_key(w.partitions[slot], keys[i]));
				CHECK(i == 0 || str_cmp(keys[i - 1], keys[i]) < 0);
			}
		}
		block_close(b);
		world_close(&w);
	}
}

/* ---- selecting ---- */

struct keys {
	const char *of[WORLD_PARTITIONS][3];
};

static bool has_key(void *ctx, uint32_t slot, struct str key)
{
	const struct keys *k = ctx;

	for (int i = 0; i < 3; i++)
		if (k->of[slot][i] && str_is(key, k->of[slot][i]))
			return true;
	return false;
}

/* As the contract says it, series by series. */
static bool matches(struct world_series *s, const struct matcher *m, struct keys *k)
{
	struct str inner = { m->name.ptr + 7, m->name.len - 7 };

	if (labels_has(s->labels, m->name))
		return matcher_test(m, labels_get(s->labels, m->name));
	if (has_key(k, s->slot, m->name))
		return true;
	if (str_has_prefix(m->name, STR("sample_")) && labels_has(s->labels, inner) &&
			has_key(k, s->slot, inner))
		return true;
	return matcher_test(m, STR(""));
}

TEST(matching_is_as_labels_say)
{
	static const char *const names[] = { "job", "handler", "service_name", "instance", "pod",
		LABEL_NAME, "none", "sample_instance", "sample_service_name", "sample_", "key1",
		LABEL_SERVICE, LABEL_SERVICE };
	static const char *const values[] = { "", "v0", "v1", "v2", "v.*", ".*", ".+",
		"v[12]|\xc3\xa9"
		"4",
		"nothing", "v1|", "v2|v0|v22", "nothing|v1|z", "()", "a|b" };
	struct keys keys = { { { "key1", "service_name" }, { "instance", "none" }, { NULL } } };

	for (uint64_t seed = 1; seed <= 8; seed += CHECK_STEP) {
		struct block *b = NULL;
		struct bits out = { 0 };
		struct world w;
		struct err err;

		if (!setup(&w, seed, &whole, &b))
			return;
		for (int round = 0; round < 400; round++) {
			struct matcher m[3];
			size_t n = world_draw(&w, 4);
			bool any_keys = world_draw(&w, 2);
			static struct keys no_keys;

			for (size_t i = 0; i < n; i++)
				REQUIRE_OK(
					matcher_init(&m[i], (enum match_op)world_draw(&w, 4),
						str_of(names[world_draw(&w, sizeof(names) / sizeof(names[0]))]),
						str_of(values[world_draw(&w, sizeof(values) / sizeof(values[0]))]), &err),
					&err);
			CHECK_OK(block_match(b, m, n, any_keys ? has_key : NULL, &keys, &out, &err), &err);
			for (uint32_t s = 0; s < out.words * 64; s++) {
				bool want = s < w.series_n;

				for (size_t i = 0; i < n && want; i++)
					want = matches(&w.series[s], &m[i], any_keys ? &keys : &no_keys);
				if (want != bits_get(&out, s))
					CHECK_FAIL("series %u of seed %d, round %d", s, (int)seed, round);
			}
			for (size_t i = 0; i < n; i++)
				matcher_release(&m[i]);
		}
		bits_release(&out);
		block_close(b);
		world_close(&w);
	}
}

struct names {
	struct buf text;
	int left;
};

static bool add_name(void *ctx, struct str name, uint32_t series_n)
{
	struct names *n = ctx;

	buf_add_str(&n->text, name);
	buf_printf(&n->text, ":%u ", series_n);
	return --n->left != 0;
}

TEST(names_and_values)
{
	static const struct {
		struct str name, value;
	} odd[] = { { { "a\0b", 3 }, { "x\0y", 3 } }, { { "a", 1 }, { "\0", 1 } },
		{ { "a", 1 }, { "\xff\xff", 2 } }, { { "a\0", 2 }, { "z", 1 } } };
	struct block_write_options options = { .fs = &fs_posix, .max_ns = 1000 };
	struct block_writer *to = NULL;
	struct block_meta meta = { 0 };
	struct names n = { .left = -1 };
	struct block *b = NULL;
	uint32_t slot, id, group;
	struct world w;
	struct err err, damaged;

	REQUIRE(world_open(&w, 1, 1, 0));
	options.dir = w.block;
	options.ulid = ulid_new(1);
	REQUIRE_OK(block_writer_open(&options, &to, &err), &err);
	CHECK_OK(block_writer_partition(to, w.partitions[0], &slot, &err), &err);
	for (uint32_t i = 0; i < 4; i++) {
		struct label v[] = { { STR("0"), { "1234" + i, 1 } }, { odd[i].name, odd[i].value } };

		CHECK_OK(block_writer_series(
					 to, slot, (struct labels){ v, 2 }, (struct labels){ v, 1 }, &id, &group, &err),
			&err);
	}
	CHECK_OK(block_writer_finish(to, &meta, &err), &err);
	block_writer_close(to);
	REQUIRE_OK(block_open(w.block, NULL, NULL, &b, &damaged, &err), &err);
	CHECK_OK(block_label_names(b, add_name, &n, &err), &err);
	CHECK(str_eq(buf_str(&n.text), (struct str){ "0:4 a:2 a\0:1 a\0b:1 ", 19 }));
	buf_clear(&n.text);
	CHECK_OK(block_label_values(b, STR("a"), add_name, &n, &err), &err);
	CHECK(str_eq(buf_str(&n.text), (struct str){ "\0:1 \xff\xff:1 ", 9 }));
	buf_clear(&n.text);
	CHECK_OK(block_label_values(b, (struct str){ "a\0b", 3 }, add_name, &n, &err), &err);
	CHECK(str_eq(buf_str(&n.text), (struct str){ "x\0y:1 ", 6 }));
	buf_clear(&n.text);
	n.left = 2;
	CHECK_OK(block_label_values(b, STR("0"), add_name, &n, &err), &err);
	CHECK_STR(buf_str(&n.text), "1:1 2:1 ");
	buf_release(&n.text);
	CHECK_OK(block_verify(b, finding, NULL, &err), &err);
	block_close(b);
	world_close(&w);
}

/* ---- variants ---- */

TEST(every_kind_of_block_verifies)
{
	for (unsigned levels = 0; levels <= ALL_LEVELS; levels++)
		for (int raw = 0; raw < 2; raw++) {
			const struct world_options o = { &fs_posix, levels, raw };
			struct block_chunks *it;
			struct block_sizes sizes;
			struct block *b = NULL;
			struct world w;
			struct err err;
			char want[200];

			if (!setup(&w, levels + 5, &o, &b))
				return;
			CHECK_INT(block_has_raw(b), raw);
			CHECK_INT(block_levels(b), levels);
			CHECK_OK(block_verify(b, finding, NULL, &err), &err);
			CHECK_OK(block_measure(b, &sizes, &err), &err);
			CHECK_INT(sizes.chunks.rows, raw ? block_meta(b)->rows : 0);
			CHECK(sizes.symbols[SYM_NODE] > 0 || (!raw && !levels));
			CHECK(sizes.overhead > 0);
			if (!raw) {
				snprintf(want, sizeof(want), "block %s has no raw rows", w.block);
				CHECK_ERR(block_chunks_open(b, true, &it, &err), &err, ERR_NOT_FOUND, want);
			}
			block_close(b);
			world_close(&w);
		}
}

/* Files whole, hashes right, and yet wrong: a rollup that is another series'. */
static void count(void *ctx, const char *what)
{
	struct buf *all = ctx;

	buf_printf(all, "%s\n", what);
}

TEST(verify_finds_what_does_not_add_up)
{
	struct block_write_options o = {
		.fs = &fs_posix, .min_ns = WORLD_MIN_NS, .max_ns = WORLD_MAX_NS, .levels = 1, .raw = true
	};
	struct block_meta meta = { 0 };
	int64_t step_ns = WORLD_START_NS - 2 * rollup_step_ns[0];
	struct buf rollup = { 0 }, all = { 0 };
	struct block_writer *to = NULL;
	struct block *b = NULL;
	uint32_t slot, id, group;
	struct err err, damaged;
	char want[200];
	struct world w;

	REQUIRE(world_open(&w, 2, 1, 1));
	o.dir = w.block;
	o.ulid = ulid_new(1);
	REQUIRE_OK(block_writer_open(&o, &to, &err), &err);
	CHECK_OK(block_writer_partition(to, w.partitions[0], &slot, &err), &err);
	CHECK_OK(block_writer_series(
				 to, slot, w.series[0].labels, w.series[0].group_labels, &id, &group, &err),
		&err);
	CHECK_OK(block_writer_chunk(to, w.series[0].chunks[0].bytes, &err), &err);
	CHECK_OK(world_rollup(&w, 0, 1, 0, WORLD_MIN_NS, false, &rollup, &err), &err);
	REQUIRE(rollup.len > 0);
	CHECK_OK(block_writer_rollup(to, 0, step_ns, buf_str(&rollup), &err), &err);
	CHECK_OK(block_writer_finish(to, &meta, &err), &err);
	block_writer_close(to);
	REQUIRE_OK(block_open(w.block, NULL, NULL, &b, &damaged, &err), &err);
	snprintf(want, sizeof(want), "block %s: 2 findings", w.block);
	CHECK_ERR(block_verify(b, count, &all, &err), &err, ERR_CORRUPT, want);
	CHECK_STR(buf_str(&all),
		"series 0, level 0: a rollup is not the sum of what it is about\n"
		"series 0, level 0: its rollups are not about all rows\n");
	buf_release(&rollup);
	buf_release(&all);
	block_close(b);
	world_close(&w);
}

TEST(raw_rows_can_be_dropped)
{
	struct block *b = NULL;
	struct block_meta meta;
	struct world w;
	struct err err, damaged;
	char path[128];

	if (!setup(&w, 4, &whole, &b))
		return;
	meta = *block_meta(b);
	meta.raw = false;
	meta.rows_file = (struct block_file){ 0 };
	CHECK_OK(block_write_meta(&fs_posix, w.block, &meta, &err), &err);
	block_close(b);
	snprintf(path, sizeof(path), "%s/rows.ldb", w.block);
	CHECK_OK(fs_posix.ops->unlink(&fs_posix, path, &err), &err);
	REQUIRE_OK(block_open(w.block, NULL, NULL, &b, &damaged, &err), &err);
	CHECK_INT(damaged.code, ERR_OK);
	CHECK(!block_has_raw(b));
	CHECK_OK(block_verify(b, finding, NULL, &err), &err);
	block_close(b);
	world_close(&w);
}

TEST(what_comes_out_of_order_is_refused)
{
	struct block_write_options o = {
		.fs = &fs_posix, .min_ns = WORLD_MIN_NS, .max_ns = WORLD_MAX_NS, .levels = 1, .raw = true
	};
	struct block_writer *to = NULL;
	uint32_t slot, id, group;
	struct buf rollup = { 0 };
	struct world_series *s;
	struct world w;
	struct err err;

	REQUIRE(world_open(&w, 2, 2, 4));
	s = &w.series[1];
	o.dir = w.block;
	o.ulid = ulid_new(1);
	REQUIRE_OK(block_writer_open(&o, &to, &err), &err);
	CHECK_ERR(block_writer_chunk(to, s->chunks[0].bytes, &err), &err, ERR_INVALID,
		"write block: a chunk without series");
	CHECK_OK(block_writer_partition(to, w.partitions[1], &slot, &err), &err);
	CHECK_ERR(block_writer_partition(to, w.partitions[0], &slot, &err), &err, ERR_INVALID,
		"write block: partition 1 comes after 8");
	CHECK_OK(block_writer_series(to, slot, s->labels, s->group_labels, &id, &group, &err), &err);
	CHECK_ERR(block_writer_series(to, slot, s->labels, s->group_labels, &id, &group, &err), &err,
		ERR_INVALID, "write block: a series comes out of order");
	CHECK_OK(block_writer_chunk(to, s->chunks[0].bytes, &err), &err);
	CHECK_ERR(block_writer_chunk(to, s->chunks[0].bytes, &err), &err, ERR_INVALID,
		"write block: a chunk comes out of order");
	CHECK_OK(
		world_rollup(&w, 1, 1, 1, WORLD_START_NS - rollup_step_ns[1], false, &rollup, &err), &err);
	CHECK_ERR(block_writer_rollup(to, 1, WORLD_START_NS, buf_str(&rollup), &err), &err, ERR_INVALID,
		"write block: a rollup of level 1, which it does not have");
	CHECK_ERR(block_writer_rollup(to, 0, WORLD_MAX_NS, buf_str(&rollup), &err), &err, ERR_INVALID,
		"write block: a rollup outside of the block's time");
	CHECK_ERR(
		block_writer_group_rollup(to, ROLLUP_GROUP, 0, 0, WORLD_START_NS, buf_str(&rollup), &err),
		&err, ERR_INVALID, "write block: a group of one series is that series");
	buf_release(&rollup);
	block_writer_close(to);
	world_close(&w);
}

/* 200 blocks: 15 days of head windows that were never joined. */
TEST(many_blocks_open_at_once)
{
	struct block *b[200] = { NULL };
	struct store_cache *cache = store_cache_open(1 << 20);
	struct block_meta meta;
	struct world w;
	struct err err, damaged;
	clock_t began;

	REQUIRE(world_open(&w, 9, 3, 6));
	REQUIRE_OK(world_write(&w, &whole, &meta, &err), &err);
	began = clock();
	for (int i = 0; i < 200; i++)
		CHECK_OK(block_open(w.block, NULL, cache, &b[i], &damaged, &err), &err);
	CHECK(clock() - began < 10 * CLOCKS_PER_SEC); /* of the processor */
	printf("  200 blocks open in %d ms\n", (int)((clock() - began) * 1000 / CLOCKS_PER_SEC));
	for (int i = 0; i < 200; i++)
		block_close(b[i]);
	store_cache_close(cache);
	world_close(&w);
}
