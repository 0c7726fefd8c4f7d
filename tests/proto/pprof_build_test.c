#include <stdlib.h>

#include "base/gzip/gzip.h"
#include "proto/pprof.h"
#include "tests/check.h"

static struct pprof *small_profile(struct arena *a, struct err *err)
{
	struct pprof_builder *b;
	struct pprof *p = NULL;
	struct pprof_line lines[2];
	struct pprof_label label;
	uint32_t mapping, location[2], f, g;
	int64_t values[2] = { 3, -30000000 };

	if (pprof_builder_open(a, &b, err))
		return NULL;
	pprof_builder_type(b, STR("samples"), STR("count"));
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	mapping = pprof_builder_mapping(b,
		&(struct pprof_mapping){ .start = 0x400000,
			.limit = 0x500000,
			.offset = 0x1000,
			.filename = pprof_builder_string(b, STR("/bin/demo")),
				.build_id = pprof_builder_string(b, STR("abc")), .has_functions = true });
	f = pprof_builder_function(b,
		&(struct pprof_function){
			.name = pprof_builder_string(b, STR("main.f")),
				.system_name = pprof_builder_string(b, STR("main.f")),
					.filename = pprof_builder_string(b, STR("main.go")), .start_line = 10 });
	g = pprof_builder_function(
		b, &(struct pprof_function){ .name = pprof_builder_string(b, STR("main.g")) });
	lines[0] = (struct pprof_line){ f, 12, 5 };
	lines[1] = (struct pprof_line){ g, 22, 0 };
	location[0] = pprof_builder_location(
		b, (struct pprof_location){ .address = 0x400010, .mapping = mapping }, lines, 2);
	location[1] = pprof_builder_location(b,
		(struct pprof_location){ .address = 7, .mapping = PPROF_NONE, .is_folded = true }, NULL, 0);
	label = (struct pprof_label){ .key = pprof_builder_string(b, STR("handler")),
									  .str = pprof_builder_string(b, STR("/cart")) };
	pprof_builder_sample(b, location, 2, &label, 1, values);
	pprof_builder_comment(b, STR("built"));
	pprof_builder_profile(b)->time_nanos = 1700000000000000000;
	pprof_builder_profile(b)->default_sample_type = pprof_builder_string(b, STR("cpu"));
	pprof_builder_profile(b)->period_type.type = pprof_builder_string(b, STR("cpu"));
	if (pprof_builder_finish(b, &p, err))
		return NULL;
	return p;
}

/* A profile that is built, encoded, compressed, inflated and decoded has the same columns. */
TEST(built_profile_comes_back)
{
	struct pprof *p, *q = NULL;
	struct buf wire = { 0 }, gz = { 0 };
	struct arena a;
	struct err err;
	struct str raw;

	arena_init(&a, 0);
	p = small_profile(&a, &err);
	REQUIRE(p);
	CHECK_OK(pprof_encode(p, &wire, &err), &err);
	CHECK_OK(gzip_compress(buf_str(&wire), 6, &gz, &err), &err);
	CHECK_OK(pprof_inflate(&a, buf_str(&gz), &pprof_limits_default, &raw, &err), &err);
	CHECK(str_eq(raw, buf_str(&wire)));
	CHECK_OK(pprof_decode(&a, raw, &pprof_limits_default, &q, &err), &err);
	REQUIRE(q);
	CHECK_INT(q->strings_n, p->strings_n);
	for (uint32_t i = 0; i < p->strings_n; i++)
		CHECK(str_eq(q->strings[i], p->strings[i]));
	CHECK_INT(q->types_n, 2);
	CHECK(!memcmp(q->types, p->types, 2 * sizeof(*p->types)));
	CHECK_INT(q->mappings_n, 1);
	CHECK_STR(q->strings[q->mappings[0].filename], "/bin/demo");
	CHECK_STR(q->strings[q->mappings[0].build_id], "abc");
	CHECK_INT(q->mappings[0].start, 0x400000);
	CHECK_INT(q->mappings[0].limit, 0x500000);
	CHECK_INT(q->mappings[0].offset, 0x1000);
	CHECK(q->mappings[0].has_functions && !q->mappings[0].has_filenames);
	CHECK_INT(q->functions_n, 2);
	CHECK_STR(q->strings[q->functions[0].name], "main.f");
	CHECK_INT(q->functions[0].start_line, 10);
	CHECK_INT(q->locations_n, 2);
	CHECK_INT(q->locations[0].line_n, 2);
	CHECK_INT(q->locations[1].line_n, 0);
	CHECK_INT(q->locations[0].mapping, 0);
	CHECK_INT(q->locations[1].mapping, PPROF_NONE);
	CHECK(!q->locations[0].is_folded && q->locations[1].is_folded);
	CHECK_INT(q->lines_n, 2);
	CHECK_INT(q->lines[0].column, 5);
	CHECK_INT(q->lines[1].function, 1);
	CHECK_INT(q->samples_n, 1);
	CHECK_INT(q->samples[0].location_n, 2);
	CHECK_INT(q->location_ids[1], 1);
	CHECK_INT(q->values[0], 3);
	CHECK_INT(q->values[1], -30000000);
	CHECK_INT(q->labels_n, 1);
	CHECK_STR(q->strings[q->labels[0].key], "handler");
	CHECK_STR(q->strings[q->labels[0].str], "/cart");
	CHECK_INT(q->comments_n, 1);
	CHECK_STR(q->strings[q->comments[0]], "built");
	CHECK_INT(q->time_nanos, 1700000000000000000);
	CHECK_STR(q->strings[q->default_sample_type], "cpu");
	CHECK_STR(q->strings[q->period_type.type], "cpu");
	CHECK_INT(q->period_type.unit, 0);
	buf_release(&wire);
	buf_release(&gz);
	arena_release(&a);
}

TEST(strings_are_interned_and_copied)
{
	struct pprof_builder *b;
	struct arena a;
	struct err err;
	char text[16];

	arena_init(&a, 0);
	REQUIRE_OK(pprof_builder_open(&a, &b, &err), &err);
	CHECK_INT(pprof_builder_string(b, STR("")), 0);
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 1000; i++) {
			snprintf(text, sizeof(text), "f%u", i);
			CHECK_INT(pprof_builder_string(b, str_of(text)), i + 1);
		}
	CHECK_INT(pprof_builder_profile(b)->strings_n, 1001);
	CHECK_STR(pprof_builder_profile(b)->strings[1000], "f999");
	CHECK_INT(pprof_builder_string(b, (struct str){ "a\0b", 3 }), 1001);
	CHECK_INT(pprof_builder_string(b, STR("a")), 1002);
	arena_release(&a);
}

/* A location is found again, and one that differs in any field is not it. */
TEST(location_key)
{
	struct pprof_line lines[2] = { { 0, 12, 5 }, { 1, 22, 0 } };
	struct pprof_location_key key = { .l = { .address = 0x400010, .mapping = 0, .line_n = 2 },
		.lines = lines };
	struct pprof_location_key other = key;
	const struct pprof *p;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	p = small_profile(&a, &err);
	REQUIRE(p);
	CHECK(pprof_location_eq(p, &key, 0));
	CHECK(!pprof_location_eq(p, &key, 1));
	other.l.line_first = 7;
	CHECK(pprof_location_eq(p, &other, 0));
	CHECK(pprof_location_hash(&other) == pprof_location_hash(&key));
	other.l.address++;
	CHECK(!pprof_location_eq(p, &other, 0));
	CHECK(pprof_location_hash(&other) != pprof_location_hash(&key));
	other = key;
	other.l.mapping = PPROF_NONE;
	CHECK(!pprof_location_eq(p, &other, 0));
	other = key;
	other.l.is_folded = true;
	CHECK(!pprof_location_eq(p, &other, 0));
	other = key;
	other.l.line_n = 1;
	CHECK(!pprof_location_eq(p, &other, 0));
	lines[1].function = 0;
	CHECK(!pprof_location_eq(p, &key, 0));
	lines[1] = (struct pprof_line){ 1, 23, 0 };
	CHECK(!pprof_location_eq(p, &key, 0));
	lines[1] = (struct pprof_line){ 1, 22, 1 };
	CHECK(!pprof_location_eq(p, &key, 0));
	lines[1].column = 0;
	CHECK(pprof_location_eq(p, &key, 0));
	arena_release(&a);
}

/* With too small an arena the builder fails at its end, wherever memory ran out. */
TEST(memory_runs_out)
{
	struct arena a;
	struct err err;
	size_t budget;

	for (budget = 1; budget < 4000; budget += 16) {
		struct pprof *p;

		arena_init(&a, budget);
		err.msg[0] = '\0';
		p = small_profile(&a, &err);
		if (!p) {
			char want[96];

			snprintf(want, sizeof(want), "profile needs more memory than its limit of %zu bytes",
				budget);
			CHECK_INT(err.code, ERR_LIMIT);
			CHECK_STR(str_of(err.msg), want);
		}
		arena_release(&a);
	}
	arena_init(&a, budget * 4);
	CHECK(small_profile(&a, &err));
	arena_release(&a);
}

static void print_samples(const struct pprof *p, struct buf *out)
{
	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *s = &p->samples[i];

		for (uint32_t k = s->location_n; k-- > 0;) {
			const struct pprof_location *l = &p->locations[p->location_ids[s->location_first + k]];

			for (uint32_t n = l->line_n; n-- > 0;)
				buf_printf(out, STR_FMT ";",
					STR_ARG(p->strings[p->functions[p->lines[l->line_first + n].function].name]));
		}
		for (uint32_t k = 0; k < s->label_n; k++)
			buf_printf(out, " " STR_FMT "=" STR_FMT,
				STR_ARG(p->strings[p->labels[s->label_first + k].key]),
				STR_ARG(p->strings[p->labels[s->label_first + k].str]));
		buf_printf(out, " %d\n", (int)p->values[i]);
	}
}

/* outer;leaf with a label, and leaf alone, inlined into `outer`. */
static struct pprof *two_samples(
	struct arena *a, const char *outer, const char *leaf, int64_t value)
{
	struct pprof_builder *b;
	struct pprof_function f = { 0 };
	struct pprof_line lines[2] = { 0 };
	struct pprof_label label = { 0 };
	struct pprof_mapping m = { .start = 4096 };
	uint32_t at[2];
	struct pprof *p = NULL;
	struct err err;

	if (pprof_builder_open(a, &b, &err))
		abort();
	pprof_builder_type(b, STR("samples"), STR("count"));
	m.filename = pprof_builder_string(b, str_of(outer));
	f.name = pprof_builder_string(b, str_of(leaf));
	lines[0].function = pprof_builder_function(b, &f);
	f.name = pprof_builder_string(b, str_of(outer));
	lines[1].function = pprof_builder_function(b, &f);
	label.key = pprof_builder_string(b, STR("k"));
	label.str = pprof_builder_string(b, str_of(outer));
	at[0] = pprof_builder_location(
		b, (struct pprof_location){ .mapping = pprof_builder_mapping(b, &m) }, lines, 1);
	at[1] = pprof_builder_location(
		b, (struct pprof_location){ .mapping = PPROF_NONE }, lines + 1, 1);
	pprof_builder_sample(b, at, 2, &label, 1, &value);
	at[0] = pprof_builder_location(b, (struct pprof_location){ .mapping = 0 }, lines, 2);
	value *= 2;
	pprof_builder_sample(b, at, 1, NULL, 0, &value);
	pprof_builder_profile(b)->time_nanos = value;
	pprof_builder_profile(b)->duration_nanos = 100 - value;
	CHECK_OK(pprof_builder_finish(b, &p, &err), &err);
	return p;
}

TEST(samples_of_several_profiles_in_one)
{
	const struct pprof *v[2];
	struct pprof *all;
	struct buf got = { 0 };
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	v[0] = two_samples(&a, "main", "work", 7);
	v[1] = two_samples(&a, "start", "work", 3);
	REQUIRE_OK(pprof_concat(&a, v, 2, &all, &err), &err);
	print_samples(all, &got);
	CHECK_STR(buf_str(&got),
		"main;work; k=main 7\nmain;work; 14\nstart;work; k=start 3\nstart;work; 6\n");
	CHECK_INT(all->types_n, 1);
	CHECK_INT(all->mappings_n, 2);
	CHECK_STR(all->strings[all->mappings[all->locations[3].mapping].filename], "start");
	CHECK_INT(all->time_nanos, 6);
	CHECK_INT(all->duration_nanos, 94);
	buf_release(&got);
	arena_release(&a);
}

/* Columns of one of two types, and of the other. */
TEST(profiles_of_other_types_have_their_own_columns)
{
	const struct pprof *v[3];
	struct pprof *all;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	v[0] = v[2] = two_samples(&a, "main", "work", 7);
	v[1] = two_samples(&a, "main", "work", 3);
	((struct pprof *)(uintptr_t)v[1])->strings[v[1]->types[0].type] = STR("objects");
	REQUIRE_OK(pprof_concat(&a, v, 3, &all, &err), &err);
	REQUIRE(all->types_n == 2 && all->samples_n == 6);
	CHECK_STR(all->strings[all->types[1].type], "objects");
	for (uint32_t i = 0; i < 6; i++) {
		CHECK_INT(all->values[2 * i], i / 2 == 1 ? 0 : i % 2 ? 14 : 7);
		CHECK_INT(all->values[2 * i + 1], i / 2 != 1 ? 0 : i % 2 ? 6 : 3);
	}
	arena_release(&a);
}

/* Samples keep their links; a profile without any has none in the whole. */
TEST(concat_keeps_links)
{
	static const struct pprof_link links[] = { { { 0 }, { 0 } }, { { 1 }, { 2 } } };
	static const uint32_t of[2][1] = { { 1 }, { 0 } };
	const struct pprof *v[3];
	struct pprof *p, *q;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	for (int i = 0; i < 3; i++) {
		p = small_profile(&a, &err);
		REQUIRE(p);
		if (i != 1) {
			p->links = links;
			p->links_n = 2;
			p->sample_links = of[i / 2];
		}
		v[i] = p;
	}
	REQUIRE_OK(pprof_concat(&a, v, 3, &q, &err), &err);
	CHECK_INT(q->samples_n, 3);
	REQUIRE(q->sample_links);
	CHECK_INT(q->sample_links[0], 1);
	CHECK_INT(q->sample_links[1], 0);
	CHECK_INT(q->sample_links[2], 0);
	CHECK_INT(q->links_n, 2);
	REQUIRE_OK(pprof_concat(&a, v + 1, 1, &q, &err), &err);
	CHECK(!q->links && !q->sample_links);
	arena_release(&a);
}
