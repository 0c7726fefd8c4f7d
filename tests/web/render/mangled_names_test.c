/*
 * Names of C++ and Rust as compilers mangle them: reports show them as `go tool pprof` does,
 * filters match the shown names, and expressions for mangled names still match.
 */
#include "promql/profiles/filter.h"
#include "promql/profiles/flat.h"
#include "promql/profiles/profiles.h"
#include "promql/syntax/check.h"
#include "tests/draw.h"
#include "tests/oracle.h"
#include "tests/values.h"
#include "web/render/render.h"

/*
 * Overloads, instances of one template, a lambda; Rust old and new; C; Go; already demangled
 * ones.
 */
static const struct {
	const char *name, *system_name;
} symbols[] = {
	{ "main", "main" },
	{ "_ZN3app3runEi", "_ZN3app3runEi" },
	{ "_ZN3app3runEd", "_ZN3app3runEd" },
	{ "_ZNSt6vectorIiSaIiEE9push_backERKi", "_ZNSt6vectorIiSaIiEE9push_backERKi" },
	{ "_ZNSt6vectorIdSaIdEE9push_backERKd", "_ZNSt6vectorIdSaIdEE9push_backERKd" },
	{ "_ZZN3app3runEiENKUliE_clEi", "_ZZN3app3runEiENKUliE_clEi" },
	{ "_ZN5alloc3vec12Vec$LT$T$GT$4push17h0123456789abcdefE",
		"_ZN5alloc3vec12Vec$LT$T$GT$4push17h0123456789abcdefE" },
	{ "_RINvNtCs1234_7mycrate3foo3barNtB4_3BazE", "_RINvNtCs1234_7mycrate3foo3barNtB4_3BazE" },
	{ "app::run", "_ZN3app3runEv" },
	{ "_ZN3app5notmeEv", "" },
	{ "main.(*T[...]).Do", "main.(*T[...]).Do" },
	{ "std::map<int, long>::find(int const&)", "std::map<int, long>::find(int const&)" },
	{ "", "_ZN3app7namelesEv" },
	{ "app_run", "app_run" },
};
#define FUNCTIONS (sizeof(symbols) / sizeof(symbols[0]))

static struct pprof *make(struct arena *a, struct draw *d)
{
	uint32_t f[FUNCTIONS], location[32], stack[6], n;
	struct pprof_line lines[2];
	struct pprof_builder *b;
	struct pprof *p;
	struct err err;

	if (pprof_builder_open(a, &b, &err))
		return NULL;
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	for (size_t i = 0; i < FUNCTIONS; i++)
		f[i] = pprof_builder_function(b,
			&(struct pprof_function){ .name = pprof_builder_string(b, str_of(symbols[i].name)),
				.system_name = pprof_builder_string(b, str_of(symbols[i].system_name)) });
	for (uint32_t i = 0; i < 32; i++) {
		n = 1 + draw(d, 2);
		for (uint32_t k = 0; k < n; k++)
			lines[k] = (struct pprof_line){ f[k ? draw(d, FUNCTIONS) : i % FUNCTIONS],
				1 + draw(d, 50), 0 };
		location[i] = pprof_builder_location(
			b, (struct pprof_location){ .address = i + 1, .mapping = PPROF_NONE }, lines, n);
	}
	for (uint32_t i = 0; i < 120; i++) {
		n = 1 + draw(d, 6);
		for (uint32_t k = 0; k < n; k++)
			stack[k] = location[draw(d, 32)];
		pprof_builder_sample(b, stack, n, NULL, 0, (int64_t[]){ 1 + draw(d, 100000) });
	}
	pprof_builder_profile(b)->drop_frames = pprof_builder_string(b, STR("mycrate::.*"));
	return pprof_builder_finish(b, &p, &err) ? NULL : p;
}

struct world {
	struct values values;
	struct profile_value *v;
};

static bool open_world(struct world *w, uint64_t seed)
{
	struct draw d = { seed };
	struct buf wire = { 0 };
	struct pprof *p;
	struct err err;
	bool ok;

	if (!oracle_dir() || !values_init(&w->values, "test"))
		return false;
	p = make(&w->values.arena, &d);
	ok = p && !pprof_encode(p, &wire, &err) &&
		oracle_write(buf_str(&wire), oracle_dir(), "mangled.pb") &&
		(w->v = values_add(&w->values, p, 0, true));
	buf_release(&wire);
	return ok;
}

/* The answer of a query for x, the profile. */
static bool apply(struct world *w, const char *query, struct value *out)
{
	struct arena *a = &w->values.arena;
	struct profile_value *copy = arena_new(a, struct profile_value);
	struct work work = { .arena = a };
	struct parsed *parsed = NULL;
	struct err err;
	bool ok;

	*copy = *w->v;
	*out = (struct value){ .type = VALUE_PROFILES, .n = 1, .profiles = copy };
	ok = !parse_query(a, str_of(query), &parsed, NULL, &err) && !check_query(parsed, NULL, &err);
	work.query = parsed;
	ok = ok && !filters_apply(&work, parsed->root, out, &err);
	if (!ok)
		CHECK_FAIL("%s: %s", query, err.msg);
	parsed_release(parsed);
	return ok;
}

static void text_of(struct world *w, const char *query, struct buf *out)
{
	struct render_options o = { .arena = &w->values.arena };
	struct result r = { .type = RESULT_PROFILES, .n = 1 };
	struct value v;
	struct err err;

	if (!apply(w, query, &v))
		return;
	r.profiles = v.profiles;
	CHECK_OK(render_text(&r, &o, out, &err), &err);
}

TEST(reports_are_the_tools)
{
	static const struct {
		const char *query, *flags;
	} cases[] = {
		{ "x", "" },
		{ "focus(x, 'app::run$')", "-focus=app::run$" },
		{ "ignore(x, 'vector|Vec')", "-ignore='vector|Vec'" },
		{ "hide(x, 'lambda')", "-hide=lambda" },
		{ "show(x, '::')", "-show=::" },
		{ "show_from(x, '^std::')", "-show_from=^std::" },
		{ "focus(x, 'St')", "-focus=St" },
	};
	struct buf want = { 0 }, got = { 0 };
	char flags[128];

	for (uint64_t seed = 0; seed < 4; seed++) {
		struct world w;

		REQUIRE(open_world(&w, 99 + seed * UINT64_C(0x9e3779b97f4a7c15)));
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			snprintf(
				flags, sizeof(flags), "-symbolize=remote -top -nodefraction=0 %s", cases[i].flags);
			buf_clear(&got);
			CHECK(oracle_pprof(&want, flags, oracle_dir(), "mangled.pb"));
			text_of(&w, cases[i].query, &got);
			oracle_check_text(cases[i].query, buf_str(&got), buf_str(&want));
		}
		values_release(&w.values);
	}
	buf_release(&want);
	buf_release(&got);
}

/* top() and cum() add up all functions of one shown name, once per stack, as the report does. */
TEST(tables_are_the_reports)
{
	static struct oracle_rows rows;
	struct buf want = { 0 };
	struct world w;
	struct value in = { .type = VALUE_PROFILES, .n = 1 }, out;
	struct err err;

	REQUIRE(open_world(&w, 4711));
	CHECK(oracle_pprof(&want, "-symbolize=remote -top -nodefraction=0 -unit=nanoseconds",
		oracle_dir(), "mangled.pb"));
	REQUIRE(oracle_read_top(buf_str(&want), &rows));
	in.profiles = w.v;
	struct work work = { .arena = &w.values.arena };

	CHECK_OK(profiles_top(&work, &in, 1e6, &out, &err), &err);
	CHECK_INT(out.tops[0].n, rows.n);
	for (size_t i = 0; i < rows.n && i < out.tops[0].n; i++) {
		CHECK_STR(out.tops[0].rows[i].function,
			arena_printf(&w.values.arena, STR_FMT, STR_ARG(rows.v[i].name)));
		CHECK_INT(out.tops[0].rows[i].flat, rows.v[i].flat);
		CHECK_INT(out.tops[0].rows[i].cum, rows.v[i].cum);
	}
	values_release(&w.values);
	buf_release(&want);
}

static int64_t left_of(struct world *w, const char *query)
{
	struct value v;

	return apply(w, query, &v) ? v.profiles[0].value_total : -1;
}

TEST(expressions_about_symbols_find_them)
{
	struct world w;
	int64_t all;

	REQUIRE(open_world(&w, 815));
	all = left_of(&w, "x");
	CHECK(left_of(&w, "focus(x, '_ZN3app3runEi')") > 0);
	CHECK(left_of(&w, "focus(x, '_ZN3app3runEi')") < left_of(&w, "focus(x, '^app::run$')"));
	CHECK_INT(left_of(&w, "focus(x, '^_ZN3app3runE|(_RINv)')") +
			left_of(&w, "ignore(x, '^_ZN3app3runE|(_RINv)')"),
		all);
	/* An expression for names does not match symbols: "St" is in every second one. */
	CHECK_INT(left_of(&w, "focus(x, 'runEi')"), 0);
	CHECK_INT(left_of(&w, "focus(x, 'my_ZN')"), 0);
	values_release(&w.values);
}

static double cost(struct world *w, enum match_op op, const char *value)
{
	struct work work = { .arena = &w->values.arena };
	struct value in = { .type = VALUE_PROFILES, .n = 1, .profiles = w->v }, out;
	struct matcher m;
	struct flat_options o = { .matchers = &m, .matchers_n = 1 };
	struct err err;
	double sum = 0;

	CHECK_OK(matcher_init(&m, op, STR("function"), str_of(value), &err), &err);
	CHECK_OK(profiles_flat(&work, &in, &o, &out, &err), &err);
	for (size_t i = 0; i < out.n; i++)
		sum += out.costs[i].value;
	matcher_release(&m);
	return sum;
}

TEST(matchers_about_symbols_find_them)
{
	struct world w;
	double all, one, both;

	REQUIRE(open_world(&w, 42));
	all = cost(&w, MATCH_RE, ".*");
	one = cost(&w, MATCH_EQ, "_ZN3app3runEi");
	both = cost(&w, MATCH_EQ, "app::run");
	CHECK(one > 0 && one < both && both < all);
	CHECK_INT((int64_t)cost(&w, MATCH_NE, "_ZN3app3runEi"), (int64_t)(all - one));
	CHECK_INT((int64_t)cost(&w, MATCH_RE, "_ZN3app3run.*"),
		(int64_t)one + (int64_t)cost(&w, MATCH_EQ, "_ZN3app3runEd"));
	CHECK_INT((int64_t)cost(&w, MATCH_NRE, "_ZN3app3run.*|app::run"), (int64_t)(all - both));
	values_release(&w.values);
}

/* The shown name is sent, with the symbol beside it. */
TEST(pprof_keeps_symbols)
{
	struct render_options o = { 0 };
	struct result r = { .type = RESULT_PROFILES, .n = 1 };
	struct pprof *p;
	struct world w;
	struct err err;
	size_t found = 0;

	REQUIRE(open_world(&w, 7));
	o.arena = &w.values.arena;
	r.profiles = w.v;
	REQUIRE_OK(render_pprof(&r, &o, &p, &err), &err);
	for (uint32_t i = 0; i < p->functions_n; i++)
		if (str_is(p->strings[p->functions[i].system_name], "_ZN3app3runEd")) {
			CHECK_STR(p->strings[p->functions[i].name], "app::run");
			found++;
		}
	CHECK_INT(found, 1);
	values_release(&w.values);
}
