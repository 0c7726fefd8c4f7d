/*
 * Filters against `go tool pprof`: real and drawn profiles, alone and as differences, each filter
 * with expressions of the profile's own names, combinations of them, at each granularity. The tool
 * answers all of a file's cases in one run.
 */
#include "base/gzip/gzip.h"
#include "promql/profiles/filter.h"
#include "promql/profiles/flat.h"
#include "promql/profiles/profiles.h"
#include "promql/profiles/tag_frames.h"
#include "promql/syntax/check.h"
#include "tests/oracle.h"
#include "tests/promql/expressions.h"
#include "tests/promql/top_rows.h"
#include "tests/values.h"

#define CASES_MAX 512

static const char *const granularities[] = { "functions", "lines", "addresses", "files" };

struct oracle_case {
	uint32_t type;
	unsigned granularity;
	struct filter_chain filters;
	char tagroot[64], tagleaf[64]; /* "": none */
};

struct corpus {
	struct values values;
	struct buf bodies[2];
	struct pprof *p, *base; /* base may be NULL */
	const char *flags; /* -diff_base, -base, or "" */
	bool normalize;
	char file[64], base_file[64];
	struct oracle_case cases[CASES_MAX];
	size_t n;
	struct draw draw;
};

static size_t compared;

/* ---- cases ---- */

/* Keys by comma, of labels that the profile has and that are shown alike in every unit. */
static void draw_keys(struct corpus *c, char out[64])
{
	struct str key = STR("nowhere");

	for (int n = 1 + (int)draw(&c->draw, 2); n > 0; n--) {
		const struct pprof_label *l = c->p->labels_n ?
			&c->p->labels[draw(&c->draw, c->p->labels_n)] :
			NULL;

		if (l && !l->num_unit && c->p->strings[l->key].len < 24)
			key = c->p->strings[l->key];
		snprintf(
			out + strlen(out), 64 - strlen(out), "%s" STR_FMT, out[0] ? "," : "", STR_ARG(key));
	}
}

static void add_case(struct corpus *c, unsigned granularity, size_t n, size_t first)
{
	struct oracle_case *k = &c->cases[c->n];
	size_t option = first;

	if (c->n == CASES_MAX)
		return;
	*k = (struct oracle_case){ .type = draw(&c->draw, c->p->types_n), .granularity = granularity };
	while (k->filters.n < n && option < FILTER_OPTIONS) {
		struct str text = filter_expression(&c->values.arena, c->p, &c->draw, option);

		if (is_tag_filter(option) && c->base && means_base(text))
			text = STR("handler:");
		chain_add(&k->filters, option, text.len ? text : STR("main"));
		option += 1 + draw(&c->draw, 3);
	}
	if (draw(&c->draw, 5) == 0)
		draw_keys(c, k->tagroot);
	if (draw(&c->draw, 5) == 0)
		draw_keys(c, k->tagleaf);
	c->n++;
}

static void draw_cases(struct corpus *c, size_t each, size_t chains)
{
	unsigned granularity = 0;

	for (size_t option = 0; option < FILTER_OPTIONS; option++)
		for (size_t i = 0; i < each; i += CHECK_STEP)
			add_case(c, granularity++ % 3, 1, option);
	for (size_t i = 0; i < chains; i += CHECK_STEP)
		add_case(c, granularity++ % 3, 2 + i % 2, draw(&c->draw, FILTER_OPTIONS - 1));
}

/* ---- the tool's answers ---- */

static struct oracle_rows answer;

static bool ask_tool(struct corpus *c)
{
	struct buf script = { 0 }, out = { 0 };
	bool ok;

	buf_add_cstr(&script, "nodefraction=0\nedgefraction=0\nnodecount=100000\n");
	for (size_t i = 0; i < c->n; i++) {
		const struct oracle_case *k = &c->cases[i];
		const struct pprof_type *t = &c->p->types[k->type];

		buf_printf(&script, "sample_index=" STR_FMT "\nunit=" STR_FMT "\ngranularity=%s\n",
			STR_ARG(c->p->strings[t->type]), STR_ARG(c->p->strings[t->unit]),
			granularities[k->granularity]);
		buf_printf(&script, "tagroot=%s\ntagleaf=%s\n", k->tagroot, k->tagleaf);
		chain_set(&script, &k->filters);
		buf_printf(&script, "top >%s/case%zu\n", oracle_dir(), i);
		chain_unset(&script, &k->filters);
	}
	ok = oracle_write(buf_str(&script), oracle_dir(), "script") &&
		oracle_run(&out,
			"cd '%s' && rm -f case* && TZ=UTC PPROF_TMPDIR='%s' %s "
			"-symbolize=remote %s %s %s %s <script 2>tool.err || { cat tool.err; false; }",
			oracle_dir(), oracle_dir(), oracle_tool(), c->normalize ? "-normalize" : "", c->flags,
			c->base ? c->base_file : "", c->file);
	buf_release(&script);
	buf_release(&out);
	return ok;
}

/* ---- our answers ---- */

static void compare_top(
	struct corpus *c, struct work *work, const struct value *v, const char *what)
{
	struct value out;
	struct err err;

	CHECK_OK(profiles_top(work, v, 1e6, &out, &err), &err);
	compared += answer.n;
	/* -base has another total: that of what does not cancel out. */
	check_top_rows(what, &out.tops[0], &answer, strcmp(c->flags, "-base") != 0);
}

static uint64_t start_of(const struct pprof *p, struct str file)
{
	for (uint32_t i = 0; i < p->mappings_n; i++)
		if (str_eq(p->strings[p->mappings[i].filename], file))
			return p->mappings[i].start;
	return 0;
}

/* A cost's labels as the tool writes them: of what has no name the line, else the binary. */
static struct str name_of(
	struct arena *a, const struct corpus *c, struct labels m, unsigned granularity)
{
	struct str function = labels_get(m, STR("function")),
				   file = labels_get(m, STR("filename")),
					   line = labels_get(m, STR("line")), address = labels_get(m, STR("address"));
	bool named = function.len && function.ptr[0] != '[' && function.ptr[0] != '<';
	uint64_t at = strtoull(arena_printf(a, STR_FMT, STR_ARG(address)), NULL, 16);
	struct buf b = { 0 };
	struct str out;

	if (granularity == 3)
		return file;
	at += start_of(c->p, labels_get(m, STR("mapping")));
	if (granularity == 2 && at)
		buf_printf(&b, "%016llx ", (unsigned long long)at);
	if (named || (!line.len && !file.len))
		buf_printf(&b, STR_FMT " ", STR_ARG(function));
	if (line.len)
		buf_printf(&b, STR_FMT ":" STR_FMT, STR_ARG(file), STR_ARG(line));
	else
		buf_add_str(&b, file);
	out = str_dup(a, str_trim(buf_str(&b)));
	buf_release(&b);
	return out;
}

static void compare_costs(struct corpus *c, struct work *work, const struct value *v, bool cum,
	unsigned granularity, const char *what)
{
	struct str lines[] = { STR("function"), STR("filename"), STR("line") };
	struct str addresses[] = {
		STR("function"), STR("filename"), STR("line"), STR("address"), STR("mapping") };
	struct str files[] = { STR("filename") };
	struct flat_options o = { .cum = cum, .grouping = GROUPING_BY };
	size_t k;
	struct str *names;
	struct value out;
	struct err err;

	o.labels = granularity == 1 ? (struct name_list){ lines, 3 } :
		granularity == 2        ? (struct name_list){ addresses, 5 } :
								  (struct name_list){ files, 1 };
	CHECK_OK(profiles_flat(work, v, &o, &out, &err), &err);
	names = arena_array(work->arena, struct str, out.n + 1);
	for (k = 0; k < out.n; k++)
		names[k] = name_of(work->arena, c, out.costs[k].metric, granularity);
	/* The tool tells some apart that it writes alike: binaries in two folders. */
	for (size_t i = 0; i < answer.n; i++) {
		const struct oracle_row *row = &answer.v[i];
		int64_t want = 0, got = 0;
		bool first = true, any = false;

		for (k = 0; k < answer.n; k++)
			if (str_eq(row->name, answer.v[k].name)) {
				first &= k >= i;
				want += cum ? answer.v[k].cum : answer.v[k].flat;
			}
		if (!first)
			continue;
		for (k = 0; k < out.n; k++)
			if (str_eq(row->name, names[k])) {
				got += (int64_t)out.costs[k].value;
				names[k] = (struct str){ 0 };
				any = true;
			}
		compared++;
		if (got != want || (!any && want != 0))
			CHECK_FAIL("%s: " STR_FMT " is %lld, want %lld", what, STR_ARG(row->name),
				(long long)got, (long long)want);
	}
	for (k = 0; k < out.n; k++)
		if (names[k].ptr)
			CHECK_FAIL("%s: a cost more: " STR_FMT, what, STR_ARG(names[k]));
}

static bool value_of(struct corpus *c, struct work *work, uint32_t type, struct value *v)
{
	struct value sides[2] = { { .type = VALUE_PROFILES, .n = 1 },
		{ .type = VALUE_PROFILES, .n = 1 } };
	struct err err;

	if (!(sides[0].profiles = values_add(&c->values, c->p, type, true)))
		return false;
	*v = sides[0];
	if (!c->base)
		return true;
	if (!(sides[1].profiles = values_add(&c->values, c->base, type, true)))
		return false;
	CHECK_OK(profiles_diff(work, work->query->root, &sides[0], &sides[1], GROUPING_NONE,
				 (struct name_list){ 0 }, c->normalize, v, &err),
		&err);
	return v->n == 1;
}

static void compare_case(struct corpus *c, size_t i)
{
	const struct oracle_case *k = &c->cases[i];
	struct buf text = { 0 }, got = { 0 };
	struct parsed *query = NULL;
	struct work work = { 0 };
	struct value v = { 0 };
	struct arena a;
	struct err err;
	char name[32], what[1024];

	arena_init(&a, 0);
	chain_query(&text, &k->filters);
	snprintf(what, sizeof(what), "%s %s %s tagroot=%s tagleaf=%s " STR_FMT, c->file, c->flags,
		granularities[k->granularity], k->tagroot, k->tagleaf, STR_ARG(buf_str(&text)));
	snprintf(name, sizeof(name), "case%zu", i);
	if (!oracle_read(&got, oracle_dir(), name) || !oracle_read_top(buf_str(&got), &answer)) {
		CHECK_FAIL("%s: the tool says nothing", what);
	} else if (parse_query(&a, buf_str(&text), &query, NULL, &err) ||
		check_query(query, NULL, &err)) {
		CHECK_FAIL("%s: %s", what, err.msg);
	} else {
		work.arena = &a;
		work.query = query;
		if (value_of(c, &work, k->type, &v)) {
			CHECK_OK(tag_frames_add(&work, &v, str_of(k->tagroot), false, &err), &err);
			CHECK_OK(tag_frames_add(&work, &v, str_of(k->tagleaf), true, &err), &err);
			CHECK_OK(filters_apply(&work, query->root, &v, &err), &err);
			if (strcmp(c->flags, "-base") && v.profiles[0].total != answer.total)
				CHECK_FAIL("%s: total %lld, want %lld", what, (long long)v.profiles[0].total,
					(long long)answer.total);
			if (k->granularity == 0)
				compare_top(c, &work, &v, what);
			else {
				compare_costs(c, &work, &v, false, k->granularity, what);
				compare_costs(c, &work, &v, true, k->granularity, what);
			}
		} else {
			CHECK_FAIL("%s: no value", what);
		}
	}
	parsed_release(query);
	arena_release(&a);
	buf_release(&text);
	buf_release(&got);
}

/* ---- corpora ---- */

static struct corpus *corpus_open(
	const char *file, const char *base, const char *flags, bool normalize, uint64_t seed)
{
	struct corpus *c = calloc(1, sizeof(*c));

	if (!c || !values_init(&c->values, "test")) {
		free(c);
		return NULL;
	}
	c->draw.state = seed;
	c->flags = flags;
	c->normalize = normalize;
	snprintf(c->file, sizeof(c->file), "%s", file);
	snprintf(c->base_file, sizeof(c->base_file), "%s", base ? base : "");
	CHECK(oracle_read(&c->bodies[0], oracle_dir(), file));
	c->p = values_decode(&c->values, buf_str(&c->bodies[0]));
	if (base) {
		CHECK(oracle_read(&c->bodies[1], oracle_dir(), base));
		c->base = values_decode(&c->values, buf_str(&c->bodies[1]));
	}
	return c;
}

static void corpus_compare(struct corpus *c)
{
	CHECK(ask_tool(c));
	for (size_t i = 0; i < c->n; i++)
		compare_case(c, i);
	values_release(&c->values);
	buf_release(&c->bodies[0]);
	buf_release(&c->bodies[1]);
	free(c);
}

/* A profile's file written again as another, with what `change` makes of it. */
static void rewrite(const char *from, const char *to, void (*change)(struct pprof *p))
{
	struct buf body = { 0 }, wire = { 0 }, gz = { 0 };
	struct values v;
	struct pprof *p;
	struct err err;

	REQUIRE(values_init(&v, "test"));
	CHECK(oracle_read(&body, oracle_dir(), from));
	if ((p = values_decode(&v, buf_str(&body)))) {
		change(p);
		CHECK_OK(pprof_encode(p, &wire, &err), &err);
		CHECK_OK(gzip_compress(buf_str(&wire), 1, &gz, &err), &err);
		CHECK(oracle_write(buf_str(&gz), oracle_dir(), to));
	}
	values_release(&v);
	buf_release(&body);
	buf_release(&wire);
	buf_release(&gz);
}

/* Another time of the same program's life: half of the samples' values, some gone. */
static void halve(struct pprof *p)
{
	for (uint32_t i = 0; i < p->samples_n * p->types_n; i++)
		p->values[i] = i / p->types_n % 5 == 3 ? 0 : p->values[i] / 2 + i % 7;
}

/*
 * The same where it is to be normalized with: the values twice, of other stacks, so that what is
 * scaled needs no rounding; the tool rounds samples before it adds up those of equal stacks.
 */
static void rotate_twice(struct pprof *p)
{
	uint32_t n = p->samples_n * p->types_n;
	int64_t first[8];

	memcpy(first, p->values, p->types_n * sizeof(*first));
	for (uint32_t i = 0; i < n; i++)
		p->values[i] = 2 * (i + p->types_n < n ? p->values[i + p->types_n] : first[i % p->types_n]);
}

/*
 * Without functions' first lines, by which the tool tells apart rows of one file, and with paths
 * that it cleans.
 */
static void soil_files(struct pprof *p)
{
	static const char *const before[] = { "", "/proc/self/cwd/", "/proc/self/cwd/.//", "/x/..",
		"/.//" };
	static struct str strings[1 << 16];
	static char paths[1 << 13][320];

	REQUIRE(p->functions_n <= 1 << 13 && p->strings_n + p->functions_n <= 1 << 16);
	memcpy(strings, p->strings, p->strings_n * sizeof(*strings));
	for (uint32_t i = 0; i < p->functions_n; i++) {
		struct pprof_function *f = &p->functions[i];
		struct str file = p->strings[f->filename];

		snprintf(paths[i], sizeof(paths[i]), "%s%.*s", file.len ? before[i % 5] : "",
			(int)(file.len < 300 ? file.len : 300), file.len ? file.ptr : "");
		f->start_line = 0;
		f->filename = p->strings_n + i;
		strings[f->filename] = str_of(paths[i]);
	}
	p->strings = strings;
	p->strings_n += p->functions_n;
}

static const char *const kinds[] = { "cpu", "heap", "allocs", "block", "mutex", "goroutine" };

TEST(real_profiles_filter_as_the_tool_does)
{
	char file[64];

	REQUIRE(oracle_profiles());
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct corpus *c;

		snprintf(file, sizeof(file), "%s.pb.gz", kinds[i]);
		REQUIRE((c = corpus_open(file, NULL, "", false, 4711 + i)));
		draw_cases(c, 9, 40);
		corpus_compare(c);
	}
	printf("  %zu rows compared\n", compared);
}

/* No filter, then one: functions, lines, addresses and files. */
TEST(granularities_are_the_tools)
{
	char from[64], file[64];

	REQUIRE(oracle_profiles());
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct corpus *c;

		snprintf(from, sizeof(from), "%s.pb.gz", kinds[i]);
		snprintf(file, sizeof(file), "%s-bare.pb.gz", kinds[i]);
		rewrite(from, file, soil_files);
		REQUIRE((c = corpus_open(file, NULL, "", false, 11 + i)));
		for (unsigned k = 0; k < 32; k++)
			add_case(c, k % 4, k / 4 % 3, draw(&c->draw, FILTER_OPTIONS - 1));
		corpus_compare(c);
	}
	printf("  %zu rows compared\n", compared);
}

TEST(differences_filter_as_the_tool_does)
{
	static const struct {
		const char *flags;
		bool normalize;
	} ways[] = { { "-diff_base", false }, { "-diff_base", true }, { "-base", false } };
	char file[64], base[64];

	REQUIRE(oracle_profiles());
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(file, sizeof(file), "%s.pb.gz", kinds[i]);
		snprintf(base, sizeof(base), "%s-before.pb.gz", kinds[i]);
		for (size_t w = 0; w < 3; w++) {
			rewrite(file, base, ways[w].normalize ? rotate_twice : halve);
			struct corpus *c = corpus_open(
				file, base, ways[w].flags, ways[w].normalize, 99 + i * 3 + w);

			REQUIRE(c);
			draw_cases(c, 3, 12);
			corpus_compare(c);
		}
	}
	printf("  %zu rows compared\n", compared);
}

/* Inlining, recursion, binaries without names, drop_frames, negative values. */
TEST(drawn_profiles_filter_as_the_tool_does)
{
	struct buf wire = { 0 }, gz = { 0 };
	struct arena a;
	struct pprof *p;
	struct err err;
	char name[64];

	REQUIRE(oracle_dir());
	for (uint32_t i = 0; i < 12; i += CHECK_STEP) {
		struct draw d = { 31337 + i * UINT64_C(0x9e3779b97f4a7c15) };
		struct corpus *c;

		arena_init(&a, 0);
		buf_clear(&wire);
		buf_clear(&gz);
		snprintf(name, sizeof(name), "drawn%u.pb.gz", i);
		REQUIRE((p = draw_profile(&a, &d, &err)));
		CHECK_OK(pprof_encode(p, &wire, &err), &err);
		CHECK_OK(gzip_compress(buf_str(&wire), 1, &gz, &err), &err);
		CHECK(oracle_write(buf_str(&gz), oracle_dir(), name));
		arena_release(&a);
		REQUIRE((c = corpus_open(name, NULL, "", false, i)));
		draw_cases(c, 6, 30);
		corpus_compare(c);
	}
	buf_release(&wire);
	buf_release(&gz);
	printf("  %zu rows compared\n", compared);
}
