/*
 * format=text of filtered profiles, compared with `go tool pprof -top` with the same filters over
 * the unfiltered pprof: header, totals, order and marks. Values have both signs, and stacks that
 * filters make equal cancel out. The tool answers all cases of a file in one run.
 */
#include "promql/profiles/filter.h"
#include "promql/profiles/profiles.h"
#include "promql/syntax/check.h"
#include "tests/oracle.h"
#include "tests/promql/expressions.h"
#include "tests/values.h"
#include "web/render/render.h"

#define CASES_MAX 64

struct text_case {
	size_t rows;
	struct filter_chain filters;
};

struct corpus {
	struct values values;
	struct pprof *p; /* the expressions use its names */
	struct value v; /* not filtered */
	struct text_case cases[CASES_MAX];
	size_t n;
	struct draw draw;
};

static size_t compared;

static void draw_cases(struct corpus *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct text_case *k = &c->cases[c->n++];
		size_t option = i % FILTER_OPTIONS, want = 1 + draw(&c->draw, FILTERS_MAX);

		*k = (struct text_case){ .rows = draw(&c->draw, 3) * 4 };
		while (k->filters.n < want && option < FILTER_OPTIONS) {
			struct str text = filter_expression(&c->values.arena, c->p, &c->draw, option);
			bool is_tag = is_tag_filter(option);

			if (is_tag && means_base(text))
				text = STR("id=20:");
			text = text.len ? text : STR("main");
			/* An expression that the header cuts. */
			if (!is_tag && !is_noinlines(option) && draw(&c->draw, 8) == 0)
				text = str_of(arena_printf(&c->values.arena, STR_FMT "|%*s", STR_ARG(text),
					50 + (int)draw(&c->draw, 40), "x"));
			chain_add(&k->filters, option, text);
			option += 1 + draw(&c->draw, 3);
		}
	}
}

static bool ask_tool(const struct corpus *c)
{
	struct buf script = { 0 }, out = { 0 };
	bool ok;

	buf_add_cstr(&script, "compact_labels=false\nnodefraction=0\n");
	for (size_t i = 0; i < c->n; i++) {
		const struct text_case *k = &c->cases[i];

		chain_set(&script, &k->filters);
		buf_printf(&script, "nodecount=%zu\ntop >%s/case%zu\n", k->rows, oracle_dir(), i);
		chain_unset(&script, &k->filters);
	}
	ok = oracle_write(buf_str(&script), oracle_dir(), "script") &&
		oracle_run(&out,
			"cd '%s' && rm -f case* && TZ=UTC PPROF_TMPDIR='%s' %s "
			"-symbolize=remote all.pb.gz <script 2>tool.err || { cat tool.err; false; }",
			oracle_dir(), oracle_dir(), oracle_tool());
	buf_release(&script);
	buf_release(&out);
	return ok;
}

static void compare_case(struct corpus *c, const char *what, size_t i)
{
	const struct text_case *k = &c->cases[i];
	struct buf text = { 0 }, want = { 0 }, got = { 0 };
	struct profile_value p = c->v.profiles[0];
	struct value v = { .type = VALUE_PROFILES, .n = 1, .profiles = &p };
	struct parsed *query = NULL;
	char name[32], label[1024];
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	chain_query(&text, &k->filters);
	snprintf(name, sizeof(name), "case%zu", i);
	snprintf(
		label, sizeof(label), "%s, %zu rows of " STR_FMT, what, k->rows, STR_ARG(buf_str(&text)));
	if (!oracle_read(&want, oracle_dir(), name)) {
		CHECK_FAIL("%s: the tool says nothing", label);
	} else if (parse_query(&a, buf_str(&text), &query, NULL, &err) ||
		check_query(query, NULL, &err)) {
		CHECK_FAIL("%s: %s", label, err.msg);
	} else {
		struct work work = { .arena = &a, .query = query };
		struct result r = { .type = RESULT_PROFILES, .n = 1 };
		struct render_options o = { .arena = &a, .rows_max = k->rows };

		CHECK_OK(filters_apply(&work, query->root, &v, &err), &err);
		r.profiles = v.profiles;
		CHECK_OK(render_text(&r, &o, &got, &err), &err);
		oracle_check_text(label, buf_str(&got), buf_str(&want));
		compared++;
	}
	parsed_release(query);
	arena_release(&a);
	buf_release(&text);
	buf_release(&want);
	buf_release(&got);
}

/* ---- profiles ---- */

/* Filters make stacks equal, so that costs of both signs meet in one. */
static void mix(struct pprof *p, struct draw *d)
{
	for (uint32_t i = 0; i < p->samples_n; i++) {
		if (draw(d, 3) == 0)
			p->values[i] = -p->values[i];
		if (draw(d, 2))
			p->samples[i].label_n = 0;
	}
	for (uint32_t i = 0; i + 1 < p->samples_n; i++)
		if (draw(d, 4) == 0) {
			p->samples[i + 1] = p->samples[i];
			p->values[i + 1] = -p->values[i] / (1 + draw(d, 2));
		}
}

static bool open_corpus(struct corpus *c, uint64_t seed, bool is_diff)
{
	struct value sides[2] = { { .type = VALUE_PROFILES, .n = 1 },
		{ .type = VALUE_PROFILES, .n = 1 } };
	struct parsed *query = NULL;
	struct arena *a = &c->values.arena;
	struct work work = { .arena = a };
	struct err err;

	*c = (struct corpus){ .draw = { seed } };
	if (!values_init(&c->values, "test"))
		return false;
	for (int side = 0; side < 1 + is_diff; side++) {
		if (!(c->p = draw_profile(a, &c->draw, &err)))
			return false;
		if (is_diff)
			c->p->strings[c->p->types[0].unit] = STR("nanoseconds");
		mix(c->p, &c->draw);
		sides[side].profiles = values_add(&c->values, c->p, 0, true);
	}
	c->v = sides[0];
	if (!is_diff)
		return sides[0].profiles;
	CHECK_OK(parse_query(a, STR("x - y"), &query, NULL, &err), &err);
	work.query = query;
	CHECK_OK(profiles_diff(&work, query->root, &sides[0], &sides[1], GROUPING_NONE,
				 (struct name_list){ 0 }, false, &c->v, &err),
		&err);
	parsed_release(query);
	return c->v.n == 1;
}

static void compare_corpus(struct corpus *c, const char *what)
{
	struct render_options o = { .arena = &c->values.arena };
	struct result r = { .type = RESULT_PROFILES, .n = 1, .profiles = c->v.profiles };
	struct buf gz = { 0 };
	struct err err;

	CHECK_OK(render_pprof_gz(&r, &o, &gz, &err), &err);
	CHECK(oracle_write(buf_str(&gz), oracle_dir(), "all.pb.gz"));
	buf_release(&gz);
	CHECK(ask_tool(c));
	for (size_t i = 0; i < c->n; i++)
		compare_case(c, what, i);
}

static uint64_t seeds(void)
{
	const char *n = getenv("EPI_TEXT_SEEDS"); /* set it higher by hand */

	return n ? strtoull(n, NULL, 10) : 3;
}

TEST(filtered_profiles_print_as_the_tool_does)
{
	REQUIRE(oracle_dir());
	for (uint64_t i = 0; i < seeds(); i++)
		for (int is_diff = 0; is_diff < 2; is_diff++) {
			struct corpus c;
			char what[64];

			snprintf(
				what, sizeof(what), "%s %llu", is_diff ? "diff" : "profile", (unsigned long long)i);
			REQUIRE(open_corpus(&c, 77 + i * UINT64_C(0x9e3779b97f4a7c15), is_diff));
			draw_cases(&c, 40);
			compare_corpus(&c, what);
			values_release(&c.values);
		}
	printf("  %zu reports compared\n", compared);
}
