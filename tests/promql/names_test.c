/*
 * The same profiles twice: once with bare addresses whose names are in an index, once with these
 * names as their sender could have given them. Both are asked the same, over head and blocks, with
 * one thread and several, and the answers are equal.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "tests/promql/world.h"
#include "tests/scratch.h"
#include "tsdb/debuginfo/index/format.h"
#include "tsdb/debuginfo/names/naming.h"

#define FUNCTIONS 40u /* of a binary; each has 64 bytes of code */
#define CODE 0x2000u /* where they begin, in the file and in memory */
#define BINARIES 2u
#define HOLE 7u /* every seventh function is in no index */
#define MAPPING_BYTES 0x1000u
#define DEPTH_MAX 12u
#define STACKS 120u

static uint64_t draw_number(uint64_t *state, uint64_t below)
{
	*state = map_hash_u64(*state + UINT64_C(0x9e3779b97f4a7c15));
	return *state % below;
}

static const char *const paths[BINARIES] = { "/usr/bin/shop", "/usr/lib/libcart.so" };
static const char *const build_ids[BINARIES] = { "aa11", "bb22" };

/* ---- names: function n, and every third has two calls inlined in its second half ---- */

struct names {
	char name[3][32], raw[3][32], file[3][32];
	uint32_t line[3], start_line[3];
	unsigned n;
};

static void names_of(unsigned binary, unsigned at, struct names *out)
{
	unsigned f = at / 64, half = at % 64 / 32;

	*out = (struct names){ .n = f % HOLE ? f % 3 == 0 && half ? 3 : 1 : 0 };
	for (unsigned i = 0; i < out->n; i++) {
		unsigned inner = out->n - 1 - i; /* 0: the function itself */
		unsigned who = inner ? (f + inner * 5) % 11 : f;

		/* Some names are in both binaries, and in the profile itself. */
		snprintf(out->name[i], sizeof(out->name[i]), "%s%u", who % 4 ? "work" : "same", who);
		memcpy(out->raw[i], out->name[i], sizeof(out->raw[i]));
		snprintf(out->file[i], sizeof(out->file[i]), "%u/%u.c", binary, who % 6);
		out->line[i] = 10 * f + half + i + 1;
		out->start_line[i] = who + 1;
	}
}

static struct str index_of(struct arena *a, unsigned binary)
{
	struct symindex_builder *b;
	struct buf out = { 0 };
	struct err err;
	struct str copy;

	if (symindex_builder_open(&symindex_limits_default, &b, &err))
		return STR("");
	CHECK_OK(symindex_load(b,
				 &(struct symindex_load){ .offset = CODE - MAPPING_BYTES,
					 .bytes = 2 * MAPPING_BYTES,
					 .address = CODE - MAPPING_BYTES,
					 .executable = true },
				 &err),
		&err);
	for (unsigned at = 0; at < FUNCTIONS * 64; at += 32) {
		uint32_t frame = SYMINDEX_NONE, function, file;
		struct names names;

		names_of(binary, at, &names);
		for (unsigned i = names.n; i-- > 0;) {
			CHECK_OK(symindex_file(b, str_of(names.file[i]), &file, &err), &err);
			CHECK_OK(symindex_function(
						 b, str_of(names.raw[i]), file, names.start_line[i], &function, &err),
				&err);
			CHECK_OK(symindex_frame(b, frame, function, file, names.line[i], &frame, &err), &err);
		}
		if (names.n)
			CHECK_OK(symindex_add(b, CODE + at, CODE + at + 32, frame, SYMINDEX_DWARF, &err), &err);
	}
	CHECK_OK(symindex_finish(b, str_of(build_ids[binary]), &out, &err), &err);
	symindex_builder_close(b);
	copy = str_dup(a, buf_str(&out));
	buf_release(&out);
	return copy;
}

static void publish(struct debuginfo_store *s, struct arena *a, unsigned binary)
{
	struct str bytes = index_of(a, binary);
	struct debuginfo_id id;
	struct debuginfo_job *j;
	struct err err;
	FILE *empty = tmpfile();

	REQUIRE(empty);
	CHECK_OK(debuginfo_id_init(&id, DEBUGINFO_GNU, str_of(build_ids[binary]), &err), &err);
	REQUIRE_OK(
		debuginfo_job_begin(s, &id,
			&(struct debuginfo_offer){
				.kind = DEBUGINFO_FULL, .origin = DEBUGINFO_UPLOAD, .path = str_of(paths[binary]) },
			dup(fileno(empty)), &j, &err),
		&err);
	CHECK_INT(write(j->out_fd, bytes.ptr, bytes.len), (ssize_t)bytes.len);
	CHECK_OK(
		debuginfo_job_publish(j, &(struct debuginfo_found){ .quality = DEBUGINFO_DWARF }, &err),
		&err);
	fclose(empty);
}

/* ---- profiles ---- */

static uint32_t add_place(
	struct pprof_builder *b, const uint32_t *mappings, uint64_t *state, bool with_names)
{
	unsigned binary = (unsigned)draw_number(state, BINARIES + 1), at;
	struct pprof_location l = { .mapping = PPROF_NONE };
	struct pprof_line lines[3];
	struct names names;

	at = (unsigned)draw_number(state, FUNCTIONS * 16) * 4;
	names_of(binary, at, &names);
	if (binary == BINARIES) { /* the sender knows its names */
		names.n = 1;
		snprintf(names.name[0], sizeof(names.name[0]), "%s%u", at % 8 ? "go" : "same", at % 12);
		memcpy(names.raw[0], names.name[0], sizeof(names.raw[0]));
		snprintf(names.file[0], sizeof(names.file[0]), "main.go");
		names.line[0] = at;
		with_names = true;
		l.address = 0x900000 + at;
	} else {
		l.mapping = mappings[binary];
		l.address = pprof_builder_profile(b)->mappings[l.mapping].start + CODE - MAPPING_BYTES + at;
	}
	for (unsigned i = 0; i < names.n; i++)
		lines[i] = (struct pprof_line){ .line = names.line[i],
			.function = pprof_builder_function(b,
				&(struct pprof_function){ .name = pprof_builder_string(b, str_of(names.name[i])),
					.system_name = pprof_builder_string(b, str_of(names.raw[i])),
					.filename = pprof_builder_string(b, str_of(names.file[i])),
					.start_line = names.start_line[i] }) };
	return pprof_builder_location(b, l, lines, with_names ? names.n : 0);
}

static struct pprof *make(struct arena *a, uint64_t seed, bool with_names)
{
	uint32_t mappings[BINARIES], stack[DEPTH_MAX];
	uint64_t state = seed;
	struct pprof_builder *b;
	struct pprof *p = NULL;
	struct err err;

	if (pprof_builder_open(a, &b, &err))
		return NULL;
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	pprof_builder_profile(b)->duration_nanos = 9 * NS_PER_S;
	for (unsigned i = 0; i < BINARIES; i++)
		mappings[i] = pprof_builder_mapping(b,
			&(struct pprof_mapping){ .start = 0x400000 + (seed % 5 + i * 16) * 0x10000,
				.limit = 0x400000 + (seed % 5 + i * 16) * 0x10000 + 2 * MAPPING_BYTES,
				.offset = MAPPING_BYTES,
				.filename = pprof_builder_string(b, str_of(paths[i])),
				.build_id = pprof_builder_string(b, str_of(build_ids[i])) });
	for (unsigned i = 0; i < STACKS; i++) {
		uint32_t depth = 1 + (uint32_t)draw_number(&state, DEPTH_MAX - 1);
		int64_t value = 1 + (int64_t)draw_number(&state, 1000);
		uint64_t places = draw_number(&state, 30); /* few, so that they recur */

		for (uint32_t k = 0; k < depth; k++) {
			uint64_t place = places + draw_number(&state, 8);

			stack[k] = add_place(b, mappings, &place, with_names);
		}
		pprof_builder_sample(b, stack, depth, NULL, 0, &value);
	}
	CHECK_OK(pprof_builder_finish(b, &p, &err), &err);
	return p;
}

static void put(struct world *w, const char *labels, int at_s, uint64_t seed, bool with_names)
{
	const enum value_kind kinds[] = { KIND_DELTA };
	struct db_append a = { .labels = labels_of(&w->arena, labels),
		.ts_ns = w->t0 + at_s * NS_PER_S,
		.interval_ns = 600 * NS_PER_S,
		.profile = make(&w->arena, seed, with_names),
		.kinds = kinds };
	struct db_append_stats stats;
	struct err err;

	REQUIRE(a.profile);
	atomic_store(&acked, 0);
	CHECK_OK(db_append(w->db, &a, &stats, on_acked, NULL, &err), &err);
	CHECK(WAIT_FOR(atomic_load(&acked)));
}

static void fill_pods(struct world *w, bool with_names)
{
	char labels[64];

	for (int at = 600, seed = 1; at <= 5 * 3600; at += 600)
		for (int pod = 0; pod < 2; pod++) {
			snprintf(labels, sizeof(labels), "__name__=wall,job=a,pod=%d", pod);
			put(w, labels, at, (uint64_t)seed++, with_names);
		}
}

/* ---- both ways ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The answer's lines in order; they belong to the arena. */
static struct str sorted(struct arena *a, struct str text)
{
	size_t n = 0, cap = 1;
	struct buf out = { 0 };
	char *copy = arena_printf(a, STR_FMT, STR_ARG(text)), **v, *save = NULL;
	struct str all;

	for (size_t i = 0; i < text.len; i++)
		cap += text.ptr[i] == '\n';
	v = arena_array(a, char *, cap);
	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		v[n++] = line;
	qsort(v, n, sizeof(*v), by_text);
	for (size_t i = 0; i < n; i++)
		buf_printf(&out, "%s\n", v[i]);
	all = str_dup(a, buf_str(&out));
	buf_release(&out);
	return all;
}

/* clang-format off */
static const char *const queries[] = {
	"flat(merge(wall[5h]))", "cum(merge(wall[5h]))", "flat(merge by (pod) (wall[5h]))",
	"flat by (function, filename, line) (wall[5h])", "cum by (filename) (wall[5h])",
	"cum by (function, system_name, mapping, build_id, address) (wall[5h])",
	"flat(merge(wall[5h]), {function=~\"same.*\"})", "cum(wall[100m], {filename=\"1/3.c\"})",
	"top(1000, merge(wall[5h]))", "top(5, merge(wall[3h]))", "top(1000, wall[1h])",
	"flat(focus(merge(wall[5h]), \"work1\"))", "cum(ignore(merge(wall[5h]), \"same\"))",
	"cum(hide(merge(wall[5h]), \"go|work\"))", "cum(show(merge(wall[5h]), \"same|libcart\"))",
	"cum(callers(merge(wall[5h]), \"same4\"))", "cum(callees(merge(wall[5h]), \"same4\"))",
	"cum(show_from(merge(wall[5h]), \"work2\"))", "cum(prune_from(merge(wall[5h]), \"same\"))",
	"cum(merge(wall[1h]) - merge(wall[1h] offset 2h))", "total(focus(wall[5h], \"work\"))",
	"topk(3, flat(merge(wall[5h])))", "sum by (function) (cum(wall[5h]))",
	"cum_share(merge(wall[4h]), {function=\"same0\"})", "flat(rate(wall[2h]))",
};
/* clang-format on */

struct pair {
	struct world bare, named;
	struct debuginfo_store *store;
	struct index_cache *indexes;
	char dir[64];
};

static struct str answer(struct world *w, struct query_options o, const char *query)
{
	o.text = str_of(query);
	world_answer(w, o);
	return sorted(&w->arena, buf_str(&w->text));
}

static void compare_one(struct pair *p, struct query_options o, const char *query)
{
	struct str is = answer(&p->bare, o, query), want = answer(&p->named, o, query);

	CHECK(want.len > 0);
	if (!str_eq(is, want))
		CHECK_FAIL("%s\n  is\n%.*s\n  want\n%.*s", query, (int)(is.len < 1500 ? is.len : 1500),
			is.ptr, (int)(want.len < 1500 ? want.len : 1500), want.ptr);
}

/* In short, each of the two or four times a part of the queries: in which part one is, is another
 * one in each test. */
static void compare(struct pair *p, unsigned part)
{
	const unsigned parts = check_is_short() ? 4 : 1;
	struct query_options at = { .t_ns = p->bare.t0 + 5 * 3600 * NS_PER_S },
						 range = { .start_ns = p->bare.t0 + 3600 * NS_PER_S,
							 .end_ns = p->bare.t0 + 5 * 3600 * NS_PER_S,
							 .step_ns = 900 * NS_PER_S };

	for (size_t i = part % parts; i < sizeof(queries) / sizeof(queries[0]); i += parts) {
		compare_one(p, at, queries[i]);
		if (strncmp(queries[i], "top(", 4))
			compare_one(p, range, queries[i]);
	}
}

static bool open_pair(struct pair *p, unsigned threads)
{
	struct engine_options limits = { .threads_max = threads, .parallel_samples = 100 };
	struct debuginfo_options o = { 0 };
	struct err err;

	*p = (struct pair){ .dir = SCRATCH "epi-names-XXXXXX" };
	if (!scratch_dir(p->dir) || debuginfo_store_open(&fs_posix, p->dir, &o, &p->store, &err) ||
		index_cache_open(p->store, NULL, NULL, &p->indexes, &err) ||
		!world_open(&p->named, &limits))
		return false;
	limits.indexes = p->indexes;
	return world_open(&p->bare, &limits);
}

static void close_pair(struct pair *p)
{
	char command[128];
	FILE *f;

	world_close(&p->bare);
	world_close(&p->named);
	index_cache_close(p->indexes);
	debuginfo_store_close(p->store);
	snprintf(command, sizeof(command), "rm -rf '%s'", p->dir);
	if ((f = popen(command, "r")))
		pclose(f);
}

static void as_if_the_sender_had_named_them(unsigned threads)
{
	struct pair p;
	struct err err;

	REQUIRE(open_pair(&p, threads));
	fill_pods(&p.bare, false);
	fill_pods(&p.named, true);
	for (unsigned i = 0; i < BINARIES; i++)
		publish(p.store, &p.bare.arena, i);
	compare(&p, threads);
	CHECK_OK(db_compact(p.bare.db, &err), &err);
	CHECK_OK(db_compact(p.named.db, &err), &err);
	compare(&p, threads + 1);
	close_pair(&p);
}

TEST(one_thread)
{
	as_if_the_sender_had_named_them(1);
}

TEST(threads)
{
	as_if_the_sender_had_named_them(3);
}

/* ---- what is told ---- */

static void check_infos(struct world *w, const char *query, const char *want)
{
	struct query_options o = { .t_ns = w->t0 + 3600 * NS_PER_S, .text = str_of(query) };
	struct buf text = { 0 };
	struct query *q;
	struct err err;

	REQUIRE_OK(query_run(w->engine, &o, &q, &err), &err);
	for (size_t i = 0; i < query_result(q)->infos_n; i++)
		buf_printf(&text, "%s" STR_FMT, i ? "\n" : "", STR_ARG(query_result(q)->infos[i]));
	query_close(q);
	CHECK_STR(buf_str(&text), want);
	buf_release(&text);
}

/* One stack of 3 in the first binary, one of 1 in the second's hole, called from the first. */
static void put_two(struct world *w)
{
	const enum value_kind kinds[] = { KIND_DELTA };
	struct db_append a = { .labels = labels_of(&w->arena, "__name__=wall,job=a"),
		.ts_ns = w->t0 + 3000 * NS_PER_S,
		.interval_ns = 600 * NS_PER_S,
		.kinds = kinds };
	uint32_t mapping[BINARIES], stack[2];
	struct db_append_stats stats;
	struct pprof_builder *b;
	struct pprof *profile;
	struct err err;
	int64_t value = 3;

	REQUIRE_OK(pprof_builder_open(&w->arena, &b, &err), &err);
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	for (unsigned i = 0; i < BINARIES; i++)
		mapping[i] = pprof_builder_mapping(b,
			&(struct pprof_mapping){ .start = 0x400000 + i * 0x100000,
				.limit = 0x402000 + i * 0x100000,
				.offset = MAPPING_BYTES,
				.filename = pprof_builder_string(b, str_of(paths[i])),
				.build_id = pprof_builder_string(b, str_of(i ? build_ids[i] : "")) });
	stack[1] = pprof_builder_location(
		b, (struct pprof_location){ .address = 0x401040, .mapping = mapping[0] }, NULL, 0);
	pprof_builder_sample(b, &stack[1], 1, NULL, 0, &value);
	stack[0] = pprof_builder_location(
		b, (struct pprof_location){ .address = 0x501000, .mapping = mapping[1] }, NULL, 0);
	value = 1;
	pprof_builder_sample(b, stack, 2, NULL, 0, &value);
	REQUIRE_OK(pprof_builder_finish(b, &profile, &err), &err);
	a.profile = profile;
	atomic_store(&acked, 0);
	CHECK_OK(db_append(w->db, &a, &stats, on_acked, NULL, &err), &err);
	CHECK(WAIT_FOR(atomic_load(&acked)));
}

#define BY_PATH \
	"names of /usr/bin/shop are from the only file with this name: the profiles have no build " \
	"id"

TEST(what_has_no_name_is_told)
{
	struct pair p;

	REQUIRE(open_pair(&p, 1));
	put_two(&p.bare);
	check_infos(&p.bare, "flat(merge(wall[1h]), {function=~\".+\"})",
		"100% of the cost is in addresses without names: 75% in /usr/bin/shop, 25% in "
		"/usr/lib/libcart.so (build id bb22)");
	publish(p.store, &p.bare.arena, 1);
	publish(p.store, &p.bare.arena, 0); /* found by its path */
	check_infos(&p.bare, "flat(merge(wall[1h]), {function=~\".+\"})",
		BY_PATH
		"\n25% of the cost is in addresses without names: 25% in /usr/lib/libcart.so (build "
		"id bb22)");
	at(&p.bare, 3600, "flat(merge(wall[1h]))",
		"{function=\"[libcart.so]\"} 1\n{function=\"work1\"} 3");
	close_pair(&p);
}

/* A sample of each value at a mapping's first byte, and one somewhere in it. */
static void put_first_bytes(struct world *w)
{
	static const struct pprof_mapping mappings[] = {
		{ .start = 0x700000, .limit = 0x701000, .offset = CODE + 64 },
		{ .start = 0, .limit = 0x1000, .offset = CODE + 64 }, /* its first byte has no address */
	};
	const enum value_kind kinds[] = { KIND_DELTA };
	struct db_append a = { .labels = labels_of(&w->arena, "__name__=wall,job=a"),
		.ts_ns = w->t0 + 3000 * NS_PER_S,
		.interval_ns = 600 * NS_PER_S,
		.kinds = kinds };
	struct db_append_stats stats;
	struct pprof_builder *b;
	struct pprof *profile;
	struct err err;
	int64_t value = 1;

	REQUIRE_OK(pprof_builder_open(&w->arena, &b, &err), &err);
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	for (unsigned i = 0; i < 2; i++) {
		struct pprof_mapping m = mappings[i];

		m.filename = pprof_builder_string(b, str_of(paths[0]));
		m.build_id = pprof_builder_string(b, str_of(build_ids[0]));
		pprof_builder_mapping(b, &m);
		for (unsigned somewhere = 0; somewhere < 2; somewhere++, value *= 10) {
			uint32_t id = pprof_builder_location(b,
				(struct pprof_location){ .address = somewhere ? 0 : m.start, .mapping = i }, NULL,
				0);

			pprof_builder_sample(b, &id, 1, NULL, 0, &value);
		}
	}
	REQUIRE_OK(pprof_builder_finish(b, &profile, &err), &err);
	a.profile = profile;
	atomic_store(&acked, 0);
	CHECK_OK(db_append(w->db, &a, &stats, on_acked, NULL, &err), &err);
	CHECK(WAIT_FOR(atomic_load(&acked)));
}

TEST(the_first_byte_of_a_mapping_has_a_name)
{
	struct pair p;

	REQUIRE(open_pair(&p, 1));
	put_first_bytes(&p.bare);
	check_infos(&p.bare, "flat(merge(wall[1h]), {function=~\".+\"})",
		"0.09% of the cost is in addresses without names: 0.09% in /usr/bin/shop (build id aa11)");
	at(&p.bare, 3600, "flat by (function, address) (merge(wall[1h]))",
		"{address=\"0x0\", function=\"[shop]\"} 1\n{function=\"[shop]\"} 1110");
	publish(p.store, &p.bare.arena, 0);
	check_infos(&p.bare, "flat(merge(wall[1h]), {function=~\".+\"})", "");
	at(&p.bare, 3600, "flat by (function, address) (merge(wall[1h]))",
		"{address=\"0x0\", function=\"work1\"} 1\n{function=\"[shop]\"} 1110");
	at(&p.bare, 3600, "flat(focus(merge(wall[1h]), \"[+]0x\"))", "");
	close_pair(&p);
}

/* Changes a byte of the first page of data, which holds segments. */
static void spoil_index(const char *dir, const char *name)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/gnu-%s.idx", dir, name);
	REQUIRE(f = fopen(path, "r+"));
	CHECK_INT(fseek(f, FORMAT_HEADER_BYTES + 8, SEEK_SET), 0);
	CHECK(fputc(0xa5, f) != EOF);
	fclose(f);
}

TEST(damaged_names_are_a_warning)
{
	struct pair p;

	REQUIRE(open_pair(&p, 1));
	put_two(&p.bare);
	publish(p.store, &p.bare.arena, 0);
	spoil_index(p.dir, build_ids[0]);
	at(&p.bare, 3600, "flat(merge(wall[1h]))",
		"{function=\"[libcart.so]\"} 1\n{function=\"[shop]\"} 3\n"
		"warning: names of /usr/bin/shop are damaged and removed: symbol index: 1 of 1 "
		"pages are damaged; debug data is needed again");
	at(&p.bare, 3600, "flat(merge(wall[1h]))",
		"{function=\"[libcart.so]\"} 1\n{function=\"[shop]\"} 3");
	close_pair(&p);
}
