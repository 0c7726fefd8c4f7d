#include "tests/check.h"
#include "tests/tsdb/fixture.h"
#include "tsdb/symbols/partition.h"
#include "tsdb/symbols/stored.h"

static struct partition *open_partition(uint32_t nodes, uint32_t strings, uint32_t sets)
{
	const struct symbol_limits limits = { nodes, strings, sets, 64 << 20 };
	struct partition *p = NULL;
	struct err err;

	CHECK_OK(partition_open(STR("api"), 7, 0, &limits, &p, &err), &err);
	return p;
}

static const char *const types[] = { "samples/count", NULL };
static const enum value_kind kinds[] = { KIND_GAUGE, KIND_DELTA, KIND_DELTA, KIND_DELTA };

static enum err_code intern(struct partition *p, struct arena *a, const char *const *lines,
	struct interned *out, struct err *err)
{
	return sym_intern_profile(p, profile_of(a, types, lines), kinds, a, out, err);
}

TEST(equal_things_have_one_id)
{
	struct partition *p = open_partition(1000, 1000, 1000);
	struct interned in, again;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(intern(p, &a,
				   (const char *const[]){ "main;work;leaf 1", "main;work 2", "main;zero 0",
					   "main;work user=x 3", NULL },
				   &in, &err),
		&err);
	CHECK_INT(in.n, 3);
	CHECK_INT(sym_nodes_n(p), 4); /* the empty stack, main, work, leaf */
	CHECK_INT(sym_functions_n(p), 3);
	CHECK_INT(sym_locations_n(p), 3);
	CHECK_INT(sym_label_sets_n(p), 2);
	CHECK(sym_has_label_key(p, STR("user")));
	CHECK(!sym_has_label_key(p, STR("x")));
	REQUIRE_OK(
		intern(p, &a, (const char *const[]){ "main;work user=x 3", "main;work;leaf 9", NULL },
			&again, &err),
		&err);
	CHECK_INT(again.header, in.header);
	CHECK_INT(again.n, 2);
	CHECK(again.keys[0] == in.keys[1] && again.keys[1] == in.keys[2]);
	CHECK_INT(again.samples[0], 0);
	CHECK_INT(sym_nodes_n(p), 4);
	for (uint32_t i = 1; i < sym_nodes_n(p); i++)
		CHECK(sym_node(p, i).parent < i);
	CHECK_INT(sym_node(p, 0).location, SYM_NONE);
	partition_close(p);
	arena_release(&a);
}

/* Stacks that begin alike, end alike, are one another's beginning, in whatever order. */
TEST(stacks_are_found_again)
{
	static const char *const stacks[] = { "a;b;c 1", "a;b 1", "a;b;c;d 1", "c;b;a 1", "b;c 1",
		"a;b;d 1", "a 1", "a;a;a 1", "a;b;c 2", "c;b;d 1" };
	enum { N = sizeof(stacks) / sizeof(stacks[0]) };
	struct partition *p = open_partition(1000, 1000, 1000);
	uint32_t known[N] = { 0 };
	const char *lines[N + 1];
	struct interned in;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	for (uint32_t step = 1; step < N * 4; step++) {
		uint32_t n = 0, at[N];

		/* Every so many-th: all of them in another order, or some. */
		for (uint32_t i = 0; i < N && (i == 0 || i * step % N != 0); i++) {
			at[n] = (i * step + step / N) % N;
			lines[n] = stacks[at[n]];
			n++;
		}
		lines[n] = NULL;
		REQUIRE_OK(intern(p, &a, lines, &in, &err), &err);
		CHECK_INT(in.n, n);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t id = (uint32_t)(in.keys[i] >> 32), stack = at[in.samples[i]];

			CHECK(known[stack] == 0 || known[stack] == id);
			known[stack] = id;
		}
	}
	CHECK_INT(known[0], known[8]);
	CHECK_INT(sym_node(p, known[0]).parent, known[1]);
	CHECK_INT(sym_node(p, known[2]).parent, known[0]);
	CHECK_INT(sym_node(p, known[1]).parent, known[6]);
	CHECK_INT(sym_nodes_n(p), 14); /* the empty one too */
	partition_close(p);
	arena_release(&a);
}

TEST(recursion_is_seen)
{
	struct partition *p = open_partition(1000, 1000, 1000);
	struct interned in;
	struct arena a;
	struct err err;
	uint32_t at;

	arena_init(&a, 0);
	REQUIRE_OK(intern(p, &a, (const char *const[]){ "main;f;g;f;h 1", NULL }, &in, &err), &err);
	at = (uint32_t)(in.keys[0] >> 32);
	CHECK(!sym_node_recursive(p, at)); /* h */
	at = sym_node(p, at).parent;
	CHECK(sym_node_recursive(p, at)); /* f below f */
	at = sym_node(p, at).parent;
	CHECK(!sym_node_recursive(p, at));
	partition_close(p);
	arena_release(&a);
}

TEST(limits_name_themselves)
{
	struct partition *p = open_partition(3, 1000, 1000);
	struct interned in;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	CHECK_OK(intern(p, &a, (const char *const[]){ "a;b 1", NULL }, &in, &err), &err);
	CHECK_ERR(intern(p, &a, (const char *const[]){ "a;c;b 1", NULL }, &in, &err), &err, ERR_LIMIT,
		"job \"api\" has 3 stack nodes, limit 3");
	CHECK_OK(intern(p, &a, (const char *const[]){ "a;b 1", NULL }, &in, &err), &err);
	partition_close(p);
	p = open_partition(1000, 6, 1000);
	CHECK_ERR(intern(p, &a, (const char *const[]){ "a;b;c;d;e;f;g 1", NULL }, &in, &err), &err,
		ERR_LIMIT, "job \"api\" has 6 strings, limit 6");
	partition_close(p);
	arena_release(&a);
}

static void check_overflow(struct partition *p, struct interned *in, size_t entry)
{
	struct buf b = { 0 };

	sym_label_value(p, (uint32_t)in->keys[entry], STR("__overflow__"), &b);
	CHECK_STR(buf_str(&b), "true");
	buf_release(&b);
}

/* Columns of lines: what fits is kept, what does not is refused, with the profile. */
TEST(wide_columns_are_refused)
{
	static const struct {
		int64_t column;
		const char *message; /* NULL: it is kept */
	} cases[] = {
		{ 0, NULL },
		{ INT32_MAX, NULL },
		{ INT32_MIN, NULL },
		{ INT64_C(2147483648), "a line's column is 2147483648, limit 2147483647" },
		{ INT64_C(-2147483649), "a line's column is -2147483649, limit 2147483647" },
		{ INT64_MIN, "a line's column is -9223372036854775808, limit 2147483647" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct partition *p = open_partition(1000, 1000, 1000);
		struct interned in;
		struct pprof *f;
		struct arena a;
		enum err_code rc;
		struct err err;

		arena_init(&a, 0);
		f = profile_of(&a, types, (const char *const[]){ "main 1", NULL });
		((struct pprof_line *)(uintptr_t)f->lines)->column = cases[i].column;
		rc = sym_intern_profile(p, f, kinds, &a, &in, &err);
		if (cases[i].message) {
			CHECK_ERR(rc, &err, ERR_LIMIT, cases[i].message);
		} else {
			CHECK_OK(rc, &err);
			CHECK_INT(sym_location(p, 0).lines->column, cases[i].column);
		}
		partition_close(p);
		arena_release(&a);
	}
}

TEST(too_many_label_sets_fold)
{
	struct partition *p = open_partition(1000, 1000, 2);
	struct interned in;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(intern(p, &a, (const char *const[]){ "a k=1 1", "a k=2 1", NULL }, &in, &err), &err);
	CHECK(!in.overflow);
	REQUIRE_OK(
		intern(p, &a, (const char *const[]){ "a k=1 1", "b k=3 1", "b k=4 1", NULL }, &in, &err),
		&err);
	CHECK(in.overflow);
	CHECK_INT(in.n, 3);
	check_overflow(p, &in, 1);
	check_overflow(p, &in, 2);
	CHECK_INT(sym_label_sets_n(p), 4);
	partition_close(p);
	arena_release(&a);
}

/* Two mappings of one file, loaded at other addresses by the next process: its locations are the
 * same. */
static struct pprof *mapped(struct arena *a, uint64_t base)
{
	const struct pprof_mapping m = {
		.start = base, .limit = base + 0x1000, .offset = 64, .has_functions = true
	};
	struct pprof_builder *b;
	struct pprof *out = NULL;
	const int64_t one = 1;
	uint32_t ids[3];
	struct err err;

	CHECK_OK(pprof_builder_open(a, &b, &err), &err);
	pprof_builder_type(b, STR("samples"), STR("count"));
	pprof_builder_mapping(b, &m);
	pprof_builder_mapping(b, &m);
	ids[0] = pprof_builder_location(
		b, (struct pprof_location){ .address = base + 5, .mapping = 0 }, NULL, 0);
	ids[1] = pprof_builder_location(
		b, (struct pprof_location){ .address = base + 5, .mapping = 1 }, NULL, 0);
	ids[2] = pprof_builder_location(
		b, (struct pprof_location){ .address = base + 5, .mapping = PPROF_NONE }, NULL, 0);
	pprof_builder_sample(b, ids, 3, NULL, 0, &one);
	CHECK_OK(pprof_builder_finish(b, &out, &err), &err);
	return out;
}

TEST(mappings_may_move)
{
	struct partition *p = open_partition(1000, 1000, 2);
	struct interned first, second;
	struct arena a;
	struct err err;
	struct sym_node n;

	arena_init(&a, 0);
	REQUIRE_OK(sym_intern_profile(p, mapped(&a, 0x10000), kinds, &a, &first, &err), &err);
	REQUIRE_OK(sym_intern_profile(p, mapped(&a, 0x50000), kinds, &a, &second, &err), &err);
	CHECK(first.header != second.header);
	CHECK_INT(sym_locations_n(p), 4); /* the one without a mapping has another address */
	n = sym_node(p, (uint32_t)(second.keys[0] >> 32));
	CHECK_INT(sym_location(p, n.location).address, 5);
	CHECK_INT(sym_mapping(p, sym_location(p, n.location).mapping)->ordinal, 0);
	n = sym_node(p, n.parent);
	CHECK_INT(sym_mapping(p, sym_location(p, n.location).mapping)->ordinal, 1);
	CHECK_INT(sym_header(p, first.header)->mapping_start[1], 0x10000);
	CHECK_INT(sym_header(p, second.header)->mapping_start[1], 0x50000);
	CHECK_INT(sym_header_typeset(p, first.header), sym_header_typeset(p, second.header));
	partition_close(p);
	arena_release(&a);
}

/* A stack of two: at the mapping's first byte, and somewhere in it. */
static struct pprof *unplaced(struct arena *a, struct pprof_mapping m)
{
	struct pprof_builder *b;
	struct pprof *out = NULL;
	const int64_t one = 1;
	uint32_t ids[2];
	struct err err;

	CHECK_OK(pprof_builder_open(a, &b, &err), &err);
	pprof_builder_type(b, STR("samples"), STR("count"));
	pprof_builder_mapping(b, &m);
	ids[0] = pprof_builder_location(
		b, (struct pprof_location){ .address = m.start, .mapping = 0 }, NULL, 0);
	ids[1] = pprof_builder_location(b, (struct pprof_location){ .mapping = 0 }, NULL, 0);
	pprof_builder_sample(b, ids, 2, NULL, 0, &one);
	CHECK_OK(pprof_builder_finish(b, &out, &err), &err);
	return out;
}

TEST(a_mapping_has_a_first_byte)
{
	static const struct {
		struct pprof_mapping m;
		bool has_first;
	} cases[] = {
		{ { .start = 0x10000, .limit = 0x11000, .offset = 64 }, true },
		{ { .start = 0x50000, .limit = 0x51000, .offset = 64 }, true }, /* the same, moved */
		{ { .start = 0x10000, .limit = 0, .offset = 0 }, true },
		{ { .start = UINT64_C(0xffffffff81000000), .limit = UINT64_MAX, .offset = 64 }, true },
		/* From 0 on: the first byte's address says that there is none. */
		{ { .start = 0, .limit = 0x1000, .offset = 64 }, false },
		{ { .start = 0, .limit = 0, .offset = 0 }, false },
	};
	struct partition *p = open_partition(1000, 1000, 2);
	struct interned in;
	struct sym_location l;
	struct sym_node n;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		REQUIRE_OK(sym_intern_profile(p, unplaced(&a, cases[i].m), kinds, &a, &in, &err), &err);
		n = sym_node(p, (uint32_t)(in.keys[0] >> 32));
		l = sym_location(p, n.location);
		CHECK_INT(sym_has_address(p, &l), cases[i].has_first);
		if (cases[i].has_first)
			CHECK_INT(sym_location(p, n.location).address, 0);
		n = sym_node(p, n.parent);
		l = sym_location(p, n.location);
		CHECK(!sym_has_address(p, &l));
		if (i == 1)
			CHECK_INT(sym_locations_n(p), 2);
	}
	CHECK(!sym_has_address(p, &(struct sym_location){ .mapping = SYM_NONE }));
	CHECK(sym_has_address(p, &(struct sym_location){ .mapping = SYM_NONE, .address = 1 }));
	partition_close(p);
	arena_release(&a);
}

/* Each symbol of a window is recorded once; a partition made of the records is the same. */
TEST(records_make_the_same_tables)
{
	struct partition *p = open_partition(1000, 1000, 1000), *q = open_partition(1000, 1000, 1000);
	struct new_symbols new = { 0 };
	struct stored_symbols *m, *mq;
	struct interned in;
	struct buf first = { 0 }, second = { 0 };
	struct arena a, scratch;
	uint64_t lost = 0;
	struct err err;

	arena_init(&a, 0);
	arena_init(&scratch, 0);
	/* Ids of other windows, so that there are holes. */
	REQUIRE_OK(intern(p, &a, (const char *const[]){ "x;y;z 1", NULL }, &in, &err), &err);
	REQUIRE_OK(stored_open(p, 100, &m, &err), &err);
	REQUIRE_OK(
		intern(p, &a, (const char *const[]){ "a;b user=u 1", "x;c 1", NULL }, &in, &err), &err);
	REQUIRE_OK(stored_add(p, m, in.header, in.keys, in.n, &new, &err), &err);
	CHECK_INT(new.n[SYM_NODE], 4);
	symbols_encode(p, &new, &first);
	REQUIRE_OK(stored_add(p, m, in.header, in.keys, in.n, &new, &err), &err);
	CHECK(!new_symbols_any(&new));
	REQUIRE_OK(intern(p, &a, (const char *const[]){ "a;b;d 1", NULL }, &in, &err), &err);
	REQUIRE_OK(stored_add(p, m, in.header, in.keys, in.n, &new, &err), &err);
	CHECK_INT(new.n[SYM_NODE], 1);
	/* Taken back, it is new again. */
	stored_rollback(m, &new);
	REQUIRE_OK(stored_add(p, m, in.header, in.keys, in.n, &new, &err), &err);
	CHECK_INT(new.n[SYM_NODE], 1);
	symbols_encode(p, &new, &second);

	REQUIRE_OK(stored_open(q, 100, &mq, &err), &err);
	CHECK_OK(symbols_load_record(q, mq, buf_str(&second), &scratch, &lost, &err), &err);
	CHECK_INT(lost, 1); /* the node: its parent is not there yet */
	lost = 0;
	CHECK_OK(symbols_load_record(q, mq, buf_str(&first), &scratch, &lost, &err), &err);
	CHECK_OK(symbols_load_record(q, mq, buf_str(&second), &scratch, &lost, &err), &err);
	CHECK_INT(lost, 0);
	for (int k = 1; k < SYM_KINDS; k++)
		CHECK_INT(segvec_n(&q->vec[k]), segvec_n(&p->vec[k]));
	for (uint32_t i = 0; i < sym_nodes_n(p); i++)
		if (sym_exists(q, SYM_NODE, i))
			CHECK(sym_node(p, i).parent == sym_node(q, i).parent &&
				sym_node(p, i).location == sym_node(q, i).location);
	CHECK(!sym_exists(q, SYM_NODE, 2)); /* y below x: no row of the window uses it */
	REQUIRE_OK(stored_add(q, mq, in.header, in.keys, in.n, &new, &err), &err);
	CHECK(!new_symbols_any(&new));
	/* New ids start above all that are known. */
	REQUIRE_OK(intern(q, &a, (const char *const[]){ "x;y 1", NULL }, &in, &err), &err);
	CHECK_INT(in.keys[0] >> 32, sym_nodes_n(p));

	/* Another meaning for an id is refused. */
	lost = 0;
	CHECK_ERR(symbols_load_record(q, mq, STR("\x01\x01\x01\x03xyz"), &scratch, &lost, &err), &err,
		ERR_EXISTS, "strings of job \"api\": 1 has two meanings");
	CHECK_ERR(symbols_load_record(q, mq, STR("\x01\x01\x01\x7fxyz"), &scratch, &lost, &err), &err,
		ERR_CORRUPT, "symbols of job \"api\": a record cannot be read past byte 7");
	buf_release(&first);
	buf_release(&second);
	new_symbols_release(&new);
	partition_close(p);
	partition_close(q);
	arena_release(&a);
	arena_release(&scratch);
}

/* Equal in all that a profile says of them but the function. */
TEST(locations_alike_are_told_apart)
{
	enum { N = 300 };
	struct partition *p = open_partition(10000, 10000, 1000);
	uint32_t functions[N], ids[N], id;
	struct err err;
	char name[16];

	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < N; i++) {
			struct sym_function f = { 0 };
			struct sym_line line = { 0, 7, -1 };
			struct sym_location l = { .mapping = SYM_NONE, .lines_n = 1 };

			snprintf(name, sizeof(name), "f%u", i);
			REQUIRE_OK(sym_intern_string(p, str_of(name), &f.name, &err), &err);
			REQUIRE_OK(sym_intern_function(p, &f, &functions[i], &err), &err);
			line.function = functions[i];
			l.lines = &line;
			REQUIRE_OK(sym_intern_location(p, &l, round ? &id : &ids[i], &err), &err);
			CHECK_INT(round ? id : ids[i], ids[i]);
			CHECK_INT(sym_location(p, ids[i]).lines[0].function, functions[i]);
			CHECK_INT(sym_location(p, ids[i]).lines[0].column, -1);
		}
	CHECK_INT(sym_locations_n(p), N);
	partition_close(p);
}

/* Behind their parent or anywhere: found again, and with the parent they were given. */
TEST(nodes_keep_their_parents)
{
	enum { N = 5000 };
	static struct sym_node given[N];
	struct partition *p = open_partition(10000, 10000, 1000);
	const struct sym_location l[2] = { { .address = 1, .mapping = SYM_NONE },
		{ .address = 2, .mapping = SYM_NONE } };
	uint32_t locations[2], id, n = 1, seed = 1;
	struct err err;

	for (int i = 0; i < 2; i++)
		REQUIRE_OK(sym_intern_location(p, &l[i], &locations[i], &err), &err);
	while (n < N) {
		uint32_t parent, location;

		seed = seed * 1664525 + 1013904223;
		parent = seed >> 31 ? n - 1 : (seed >> 8) % n;
		location = locations[seed >> 30 & 1];
		REQUIRE_OK(sym_intern_node(p, parent, location, &id, &err), &err);
		if (id == n)
			given[n++] = (struct sym_node){ parent, location };
		CHECK(given[id].parent == parent && given[id].location == location);
	}
	for (uint32_t i = 1; i < N; i++) {
		struct sym_node is = sym_node(p, i);

		CHECK(is.parent == given[i].parent && is.location == given[i].location);
		REQUIRE_OK(sym_intern_node(p, is.parent, is.location, &id, &err), &err);
		CHECK_INT(id, i);
	}
	CHECK_INT(sym_nodes_n(p), N);
	partition_close(p);
}

TEST(keys_are_sorted_and_stay_in_order)
{
	enum { N = 2000 };
	static uint64_t keys[N], tmp[N];
	static uint32_t v[N], vtmp[N];

	for (uint32_t i = 0; i < N; i++) {
		keys[i] = (map_hash_u64(i) % 300) << 30 | map_hash_u64(i + N) % 3;
		v[i] = i;
	}
	keys_sort(keys, v, N, tmp, vtmp);
	for (uint32_t i = 1; i < N; i++)
		CHECK(keys[i - 1] < keys[i] || (keys[i - 1] == keys[i] && v[i - 1] < v[i]));
	for (uint32_t i = 0; i < N; i++)
		CHECK(keys[i] == ((map_hash_u64(v[i]) % 300) << 30 | map_hash_u64(v[i] + N) % 3));
}

/* ---- many nodes at once ---- */

static struct partition *with_locations(uint32_t n)
{
	struct partition *p = open_partition(100000, 1000, 1000);
	struct err err;

	p->lookup = false;
	for (uint32_t i = 0; i < n; i++)
		CHECK_OK(sym_load(p, SYM_LOCATION, i,
					 &(union sym_content){ .location = { .address = i, .mapping = SYM_NONE } },
					 false, &err),
			&err);
	return p;
}

/* The first n nodes of both are the same; all that can be wrong with one is wrong with some. */
TEST(nodes_are_loaded_together_as_one_by_one)
{
	struct partition *one = with_locations(50), *all = with_locations(50);
	struct sym_stored_node v[3000];
	uint64_t state = 1, loaded = 0, loaded_all = 0;
	enum err_code rc, lost = ERR_OK, lost_all = ERR_OK;
	struct err err, err_all;
	uint32_t id = 0;

	for (uint32_t i = 0; i < 3000; i++) {
		state = map_hash_u64(state + i);
		id += 1 + (state % 7 == 0);
		v[i] = (struct sym_stored_node){ id, 0, (uint32_t)(state >> 40) % 50, state >> 60 & 1 };
		if (i)
			v[i].parent = v[state >> 8 & 3 ? i - 1 : (uint32_t)(state >> 16) % i].id;
		if (i > 2000 && state % 300 == 0)
			v[i].location = 50; /* there is none; nor is then what is above it */
		if (i > 2900 && i % 9 == 0)
			v[i].id = i % 2 ? 0 : SYM_NONE;
		if (i > 2900 && i % 9 == 1)
			v[i].parent = v[i].id;
	}
	for (int round = 0; round < 2; round++) { /* again: all are known */
		for (uint32_t i = 0; i < 3000; i++) {
			rc = sym_load(one, SYM_NODE, v[i].id,
				&(union sym_content){ .node = { v[i].parent, v[i].location } }, v[i].recursive,
				&err);
			lost = rc ? rc : lost;
			loaded += !rc;
		}
		for (uint32_t i = 0; i < 3000; i += 250) {
			rc = sym_load_nodes(all, v + i, 250, &loaded_all, &err_all);
			lost_all = rc ? rc : lost_all;
		}
		CHECK_INT(lost, ERR_CORRUPT);
		CHECK_INT(lost_all, lost);
		CHECK_STR(str_of(err_all.msg), err.msg);
		CHECK_INT(loaded_all, loaded);
		CHECK_INT(sym_nodes_n(all), sym_nodes_n(one));
		CHECK_INT(all->bytes, one->bytes);
		CHECK_INT(all->next[SYM_NODE], one->next[SYM_NODE]);
		for (uint32_t i = 0; i < sym_nodes_n(one); i++) {
			CHECK_INT(sym_exists(all, SYM_NODE, i), sym_exists(one, SYM_NODE, i));
			CHECK_INT(sym_node(all, i).parent, sym_node(one, i).parent);
			CHECK_INT(sym_node(all, i).location, sym_node(one, i).location);
			CHECK_INT(sym_node_recursive(all, i), sym_node_recursive(one, i));
		}
	}
	CHECK(loaded > 4000);
	for (uint32_t i = 0; i < 3000 && sym_exists(all, SYM_NODE, v[i].id); i++)
		id = i;
	v[id].location = (v[id].location + 1) % 50;
	CHECK_ERR(sym_load_nodes(all, v, 3000, &loaded_all, &err), &err, ERR_EXISTS,
		sym_load(one, SYM_NODE, v[id].id,
			&(union sym_content){ .node = { v[id].parent, v[id].location } }, false,
			&err_all) == ERR_EXISTS ?
			err_all.msg :
			"");
	partition_close(one);
	partition_close(all);
}

/* A walk finds what is there, in order, wherever chunks and words of bits end. */
TEST(a_walk_finds_ids_that_are_far_apart)
{
	static const uint32_t ids[] = { 0, 1, 62, 63, 64, 65, 127, 128, 255, 256, 1000, 4095, 4096,
		70000, 70063, 70064, 1048575, 1048576, 9000000 };
	struct segvec v;
	uint32_t at = 0;

	segvec_init(&v, sizeof(uint32_t));
	CHECK_INT(segvec_next(&v, 0), UINT32_MAX);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		CHECK(segvec_put(&v, ids[i], &ids[i]));
		CHECK_INT(segvec_next(&v, ids[i]), ids[i]);
		CHECK_INT(segvec_next(&v, ids[i] + 1), UINT32_MAX);
	}
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++, at++) {
		at = segvec_next(&v, at);
		CHECK_INT(at, ids[i]);
	}
	segvec_release(&v);
}
