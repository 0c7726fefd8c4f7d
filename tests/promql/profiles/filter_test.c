#include "promql/profiles/filter.h"

#include "promql/syntax/check.h"
#include "tests/promql/world.h"
#include "tests/values.h"

/* ---- through queries ---- */

static void fill_calls(struct world *w)
{
	store(w, "__name__=process_cpu,job=a,pod=p", 20, 10,
		"main;f;g 3|main;g;f;g;h 4|main;h 5|init 1|main;f{handler=/x,bytes=#2048} 10|"
		"main;f{handler=/y,bytes=#100} 20");
	store(w, "__name__=process_cpu,job=a,pod=q", 20, 10, "main;f;g 30|main;k 2");
	store(w, "__name__=process_cpu,job=b,pod=r", 20, 10, "main;h 7");
}

TEST(filters_of_stacks)
{
	static const char *const rows[][2] = {
		{ "focus(P, '^g$')", "main;f;g 3, main;g;f;g;h 4" },
		{ "ignore(P, '^g$')", "main;f 30, main;h 5, init 1" },
		{ "hide(P, '^[fg]$')", "main 33, main;h 9, init 1" },
		{ "show(P, '^[gh]$')", "g 3, g;g;h 4, h 5" },
		{ "show_from(P, '^g$')", "g 3, g;f;g;h 4" },
		{ "prune_from(P, '^g$')", "main;f 30, main;f;g 3, main;g;f;g 4, main;h 5, init 1" },
		{ "callees(P, '^g$')", "g 3, g;f;g;h 4" },
		{ "callers(P, '^g$')", "main;f;g 3, main;g 4" },
		{ "callees(P, 'g|init')", "g 3, g;f;g;h 4, init 1" },
		{ "callers(P, 'f|init')", "main;f 33, main;g;f 4, init 1" },
		/* nothing asked, nothing found */
		{ "focus(P, '')", "main;f 30, main;f;g 3, main;g;f;g;h 4, main;h 5, init 1" },
		{ "hide(P, '')", "main;f 30, main;f;g 3, main;g;f;g;h 4, main;h 5, init 1" },
		{ "focus(P, 'none')", "" },
		{ "ignore(P, '.')", "" },
		{ "hide(P, '.')", "" },
		{ "show(P, 'none')", "" },
		{ "show_from(P, 'none')", "" },
		{ "prune_from(P, 'none')", "main;f 30, main;f;g 3, main;g;f;g;h 4, main;h 5, init 1" },
		{ "callers(P, 'none')", "" },
		{ "callees(P, 'none')", "" },
		/* innermost first */
		{ "focus(hide(P, '^g$'), '^g$')", "" },
		{ "hide(focus(P, '^g$'), '^g$')", "main;f 3, main;f;h 4" },
		{ "callers(callees(P, '^f$'), '^g$')", "f;g 7" },
		{ "show(hide(focus(P, 'main'), 'main'), 'h')", "h 9" },
	};
	struct world w;
	char query[256], want[256];

	if (!world_open(&w, NULL))
		return;
	fill_calls(&w);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *p = strchr(rows[i][0], 'P');
		long long sum = 0;

		for (const char *s = rows[i][1]; (s = strchr(s, ' ')); s++)
			if (s[1] >= '0' && s[1] <= '9')
				sum += atoll(s + 1);
		snprintf(query, sizeof(query), "%.*scpu:samples{pod='p'}%s", (int)(p - rows[i][0]),
			rows[i][0], p + 1);
		snprintf(want, sizeof(want), "process_cpu{job=\"a\", pod=\"p\"} count %lld of 1:%s%s", sum,
			rows[i][1][0] ? " " : "", rows[i][1]);
		at(&w, 20, query, want);
	}
	world_close(&w);
}

TEST(filters_of_labels)
{
	static const char *const rows[][2] = {
		{ "tagfocus(P, 'handler=x')", "10" },
		{ "tagfocus(P, 'handler=/x,/y')", "30" },
		{ "tagfocus(P, 'handler=none')", "0" },
		{ "tagfocus(P, 'x')", "10" },
		{ "tagfocus(P, '^handler:')", "30" },
		{ "tagfocus(P, 'handler,y')", "20" },
		{ "tagfocus(P, 'none=.')", "0" },
		{ "tagfocus(P, 'pod=p')", "0" }, /* the series', not the samples' */
		{ "tagignore(P, 'handler=x')", "33" },
		{ "tagignore(P, '.')", "13" },
		{ "tagfocus(P, 'bytes=2kb')", "10" },
		{ "tagfocus(P, 'bytes=:2kb')", "30" },
		{ "tagfocus(P, 'bytes=1kb:1mb')", "10" },
		{ "tagfocus(P, 'bytes=101b:')", "10" },
		{ "tagfocus(P, '100b')", "20" },
		{ "tagfocus(P, 'bytes=100')", "0" }, /* no bytes: a number without unit */
		{ "tagignore(P, 'bytes=1kb:')", "33" },
		{ "tagfocus(P, '')", "43" },
		{ "tagfocus(hide(P, 'main'), 'handler=x')", "10" },
		{ "merge(tagfocus(P, 'handler=x'))", "10" },
		{ "tagfocus(merge(P), 'handler=x')", "10" },
	};
	struct world w;
	char query[256], want[256];

	if (!world_open(&w, NULL))
		return;
	fill_calls(&w);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *p = strchr(rows[i][0], 'P');

		snprintf(query, sizeof(query), "total(%.*scpu:samples{pod='p'}%s)", (int)(p - rows[i][0]),
			rows[i][0], p + 1);
		snprintf(want, sizeof(want), "{%s} %s",
			strstr(rows[i][0], "merge") ? "" : "job=\"a\", pod=\"p\"", rows[i][1]);
		at(&w, 20, query, want);
	}
	/* A profile that a filter empties has no labels of samples. */
	at(&w, 20, "merge by (handler) (tagfocus(cpu:samples{pod='p'}, 'handler=x'))",
		"{handler=\"/x\"} count 10 of 1: main;f 10");
	at(&w, 20, "merge by (pod) (focus(cpu:samples{job='a'}, 'k'))",
		"{pod=\"p\"} count 0 of 1:\n{pod=\"q\"} count 2 of 1: main;k 2");
	world_close(&w);
}

TEST(totals_are_of_all)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	fill_calls(&w);
	at(&w, 20, "top(9, focus(cpu:samples{pod='p'}, '^h$'))",
		"process_cpu{job=\"a\", pod=\"p\"} of 43: h 9 9 f 0 4 g 0 4 main 0 9");
	at(&w, 20, "flat_share(merge(hide(focus(cpu:samples{job='a'}, '^k$'), 'main')))",
		"{function=\"k\"} 0.02666666666666667");
	at(&w, 20, "cum_share by (job) (focus(cpu:samples, '^[gh]$'), {function='g'})",
		"{job=\"a\"} 0.49333333333333335");
	at(&w, 20, "flat_share(2 * focus(cpu:samples{pod='q'}, '^k$'))",
		"{function=\"k\", job=\"a\", pod=\"q\"} 0.0625");
	/* differences: the base's */
	at(&w, 20, "top(9, focus(diff on (job) (cpu:samples{pod='q'}, cpu:samples{pod='p'}), '^h$'))",
		"{job=\"a\"} of 43: h -9 -9 f 0 -4 g 0 -4 main 0 -9");
	at(&w, 20,
		"top(9, diff on (job) (focus(cpu:samples{pod='q'}, '^g$'), "
		"focus(cpu:samples{pod='p'}, '^g$')))",
		"{job=\"a\"} of 43: g 27 23 h -4 -4 f 0 23 main 0 23");
	at(&w, 20, "hide(diff on (job) (cpu:samples{pod='q'}, cpu:samples{pod='p'}), '^[fgh]$')",
		"{job=\"a\"} count -11 of 2: main 30-42, init 0-1, main;k 2-0");
	at(&w, 20, "callers(diff on () (cpu:samples{pod='q'}, cpu:samples{pod='r'}), '^[fgh]$')",
		"{} count 23 of 2: main;f 30-0, main;h 0-7");
	/* halves of the sandwich weigh what the frames do */
	at(&w, 20,
		"total(callers(cpu:samples{pod='p'}, '^g$')) + total(callees(cpu:samples{pod='p'}, '^g$'))",
		"{job=\"a\", pod=\"p\"} 14");
	at(&w, 20, "cum(cpu:samples{pod='p'}, {function='g'})",
		"{function=\"g\", job=\"a\", pod=\"p\"} 7");
	/* costs are no profiles */
	at(&w, 20, "focus(total(cpu), 'x')", "invalid input: 1:7: focus() needs profiles, got costs");
	world_close(&w);
}

/* One rounding, behind all merges, whatever side of them the filter is written on. */
TEST(gauges_are_rounded_once)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	for (int pod = 0; pod < 4; pod++) {
		char labels[64];

		snprintf(labels, sizeof(labels), "__name__=goroutine,job=a,pod=%d", pod);
		store(&w, labels, 10, 10, "main;g 2|main;f 1");
		store(&w, labels, 20, 10, "main;g 2");
		store(&w, labels, 30, 10, "main;g 2");
	}
	at(&w, 30, "merge(goroutine[1m])", "{} count 9 of 12: main;g 8, main;f 1");
	at(&w, 30, "hide(merge(goroutine[1m]), 'main')", "{} count 9 of 12: g 8, f 1");
	at(&w, 30, "merge(hide(goroutine[1m], 'main'))", "{} count 9 of 12: g 8, f 1");
	at(&w, 30, "merge(focus(merge by (pod) (goroutine[1m]), 'f'))", "{} count 1 of 12: main;f 1");
	at(&w, 30, "flat by (function) (callees(goroutine[1m], 'f|g'))",
		"{function=\"f\"} 1\n{function=\"g\"} 8");
	at(&w, 30, "total(merge(ignore(goroutine[1m], 'g')))", "{} 1");
	world_close(&w);
}

TEST(queries_over_time)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	store(&w, "__name__=process_cpu,job=a,pod=p", 10, 10, "main;f 3|main;g 1");
	store(&w, "__name__=process_cpu,job=a,pod=p", 20, 10, "main;f 4");
	ask(&w,
		(struct query_options){ .has_span = true,
			.start_ns = w.t0 + 10 * NS_PER_S,
			.end_ns = w.t0 + 20 * NS_PER_S,
			.step_ns = 10 * NS_PER_S },
		"total(focus(cpu:samples, '^f$'))", "{job=\"a\", pod=\"p\"} 10=3 20=4");
	world_close(&w);
}

/* ---- what text cannot say: inlining, binaries, units, dropped frames, epochs ---- */

struct made {
	struct values values;
	struct pprof_builder *b;
	uint32_t mapping[2];
};

static bool made_init(struct made *m, const char *job)
{
	struct err err;

	if (!values_init(&m->values, job) || pprof_builder_open(&m->values.arena, &m->b, &err))
		return false;
	pprof_builder_type(m->b, STR("cost"), STR("count"));
	for (uint32_t i = 0; i < 2; i++)
		m->mapping[i] = pprof_builder_mapping(m->b,
			&(struct pprof_mapping){ .start = (i + 1) << 20,
				.limit = (i + 2) << 20,
				.has_functions = true,
				.filename = pprof_builder_string(
					m->b, i ? STR("/lib/libx.so") : STR("/bin/demo")) });
	return true;
}

/* "a b c" is a location with b inlined into c and a into b; "" has no lines. */
static uint32_t location(struct made *m, uint32_t mapping, uint64_t address, const char *names)
{
	struct pprof_line lines[4];
	uint32_t n = 0;

	while (*names) {
		size_t len = strcspn(names, " ");
		struct str name = { names, len };
		struct str file = str_of(arena_printf(&m->values.arena, STR_FMT ".c", STR_ARG(name)));

		lines[n++] = (struct pprof_line){ .function = pprof_builder_function(m->b,
											  &(struct pprof_function){
												  .name = pprof_builder_string(m->b, name),
												  .filename = pprof_builder_string(m->b, file) }),
			.line = 1 };
		names += len + (names[len] == ' ');
	}
	return pprof_builder_location(m->b,
		(struct pprof_location){
			.address = ((mapping + 1) << 20) + address, .mapping = m->mapping[mapping] },
		lines, n);
}

static void sample(struct made *m, const uint32_t *stack, uint32_t n, int64_t v)
{
	pprof_builder_sample(m->b, stack, n, NULL, 0, &v);
}

static struct profile_value *made_finish(struct made *m)
{
	struct pprof *p;
	struct err err;

	if (pprof_builder_finish(m->b, &p, &err)) {
		CHECK_FAIL("%s", err.msg);
		return NULL;
	}
	return values_add(&m->values, p, 0, true);
}

static void print_frames(struct buf *out, const struct partition *p, uint32_t node)
{
	struct sym_node at = sym_node(p, node);
	struct sym_location l;

	if (node == 0)
		return;
	print_frames(out, p, at.parent);
	l = sym_location(p, at.location);
	buf_add_char(out, ';');
	if (l.lines_n == 0)
		buf_add_cstr(out, "-");
	for (uint32_t i = l.lines_n; i-- > 0;) {
		buf_add_str(out, sym_string(p, sym_function(p, l.lines[i].function)->name));
		buf_add_cstr(out, i ? "~" : sym_node_recursive(p, node) ? "*" : "");
	}
}

/* Each filter of the text applied to p: stacks as they are, ~ is inlining, * recursion. */
static void check_filters(
	struct arena *a, const struct profile_value *p, const char *query, const char *want)
{
	struct value v = { .type = VALUE_PROFILES, .n = 1 };
	struct parsed *parsed = NULL;
	struct work work = { .arena = a };
	struct profile_value copy = *p;
	struct buf got = { 0 };
	struct err err;

	v.profiles = &copy;
	CHECK_OK(parse_query(a, str_of(query), &parsed, NULL, &err), &err);
	CHECK_OK(check_query(parsed, NULL, &err), &err);
	work.query = parsed;
	CHECK_OK(filters_apply(&work, parsed->root, &v, &err), &err);
	for (size_t i = 0; i < v.profiles->parts_n; i++)
		for (size_t k = 0; k < v.profiles->parts[i].n; k++) {
			const struct part *part = &v.profiles->parts[i];

			buf_add_cstr(&got, got.len ? " " : "");
			print_frames(&got, part->partition, part->cells[k].stack);
			buf_printf(&got, " %lld", (long long)part->cells[k].value);
		}
	if (!str_is(buf_str(&got), want))
		CHECK_FAIL("%s\n    is   " STR_FMT "\n    want %s", query, STR_ARG(buf_str(&got)), want);
	parsed_release(parsed);
	buf_release(&got);
}

TEST(inlined_frames_and_binaries)
{
	/* clang-format off */
	static const char *const rows[][2] = {
		{ "focus(x, '^b$')", ";main;c~b~a 1 ;main;c~b~a;lib;c~b~a* -2" },
		{ "hide(x, '^b$')", ";main;c~a 1 ;main;c~a;lib;c~a* -2 ;main;- 4 ;main;lib 8" },
		{ "hide(x, 'b[.]c')", ";main 8 ;main;c~a 1 ;main;c~a;c~a* -2 ;main;- 4" } /* also lib.c */,
		{ "hide(x, 'libx')", ";main 12 ;main;c~b~a 1 ;main;c~b~a;c~b~a* -2" },
		{ "show(x, '^[bc]$')", ";c~b 1 ;c~b;c~b* -2" },
		{ "show(x, 'libx')", ";lib 6" },
		{ "show_from(x, '^b$')", ";b~a 1 ;b~a;lib;b~a* -2" },
		{ "callees(x, '^b$')", ";b~a 1 ;b~a;lib;c~b~a* -2" },
		{ "callees(x, 'libx')", ";lib 8 ;lib;c~b~a -2 ;- 4" },
		{ "callers(x, '^b$')", ";main;c~b -1" },
		{ "callers(x, 'libx')", ";main;c~b~a;lib -2 ;main;- 4 ;main;lib 8" },
		{ "prune_from(x, '^b$')", ";main;c~b 1 ;main;c~b;lib;c~b* -2 ;main;- 4 ;main;lib 8" },
		{ "prune_from(x, 'b.c')",
			";main;c~b~a 1 ;main;c~b~a;lib;c~b~a* -2 ;main;- 4 ;main;lib 8" },
		{ "show(hide(x, 'main'), '^[ab]$')", ";b~a 1 ;b~a;b~a* -2" },
		{ "hide(x, '^[abc]$')", ";main 1 ;main;lib 6 ;main;- 4" },
	};
	/* clang-format on */
	struct profile_value *p;
	struct made m;
	uint32_t root, inlined, lib, bare;

	REQUIRE(made_init(&m, "test"));
	root = location(&m, 0, 1, "main");
	inlined = location(&m, 0, 2, "a b c");
	lib = location(&m, 1, 3, "lib");
	bare = location(&m, 1, 4, "");
	sample(&m, (uint32_t[]){ inlined, root }, 2, 1);
	sample(&m, (uint32_t[]){ inlined, lib, inlined, root }, 4, -2);
	sample(&m, (uint32_t[]){ bare, root }, 2, 4);
	sample(&m, (uint32_t[]){ lib, root }, 2, 8);
	REQUIRE((p = made_finish(&m)));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_filters(&m.values.arena, p, rows[i][0], rows[i][1]);
	values_release(&m.values);
}

TEST(dropped_frames_are_gone_before)
{
	static const char *const rows[][2] = {
		{ "focus(x, '^rt.keep')", ";rt.start;main;rt.keep 2" },
		{ "focus(x, 'alloc')", "" },
		{ "hide(x, '^main$')", ";rt.start 1 ;rt.start;rt.keep 2" },
		{ "callees(x, '^main$')", ";main 1 ;main;rt.keep 2" },
		{ "hide(x, 'none')", ";rt.start;main 1 ;rt.start;main;rt.keep 2" },
		{ "prune_from(x, '^main$')", ";rt.start;main 3" },
	};
	struct profile_value *p;
	uint32_t start, user, alloc, keep;
	struct made m;

	REQUIRE(made_init(&m, "test"));
	start = location(&m, 0, 1, "rt.start");
	user = location(&m, 0, 2, "main");
	alloc = location(&m, 0, 3, "rt.alloc");
	keep = location(&m, 0, 4, "rt.keep");
	pprof_builder_profile(m.b)->drop_frames = pprof_builder_string(m.b, STR("rt\\..*"));
	pprof_builder_profile(m.b)->keep_frames = pprof_builder_string(m.b, STR("rt\\.keep"));
	sample(&m, (uint32_t[]){ keep, alloc, user, start }, 4, 1);
	sample(&m, (uint32_t[]){ keep, user, start }, 3, 2);
	REQUIRE((p = made_finish(&m)));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_filters(&m.values.arena, p, rows[i][0], rows[i][1]);
	values_release(&m.values);
}

/* Numbers of one key in several units are all taken to be in the first one. */
TEST(units_of_numbers)
{
	static const char *const rows[][2] = {
		{ "tagfocus(x, 'size=4kb')", ";main 1" },
		{ "tagfocus(x, 'size=4096')", "" },
		{ "tagfocus(x, 'request=1kb:')", ";main 4" },
		{ "tagfocus(x, 'wait=2ms')", ";main 2" },
		{ "tagfocus(x, 'wait=:1s')", ";main 2" },
		{ "tagfocus(x, 'wait=1us:3ms')", ";main 2" },
		{ "tagfocus(x, 'depth=3')", ";main 8" },
		{ "tagfocus(x, 'depth=3depth')", ";main 8" },
		{ "tagfocus(x, 'depth=-4depth:+3depth')", ";main 8" },
		{ "tagfocus(x, 'depth=3:5kb')", "" }, /* units differ: an expression */
		{ "tagignore(x, ':1hour')", ";main 16 ;main 1 ;main 4 ;main 8" },
	};
	static const struct {
		const char *key, *unit;
		int64_t num;
	} labels[] = { { "size", "bytes", 4096 }, { "wait", "nanoseconds", 2000000 },
		{ "request", "", 2048 }, { "depth", "", 3 } };
	struct profile_value *p;
	struct made m;
	uint32_t root;
	int64_t v = 1;

	REQUIRE(made_init(&m, "test"));
	root = location(&m, 0, 1, "main");
	for (size_t i = 0; i < 4; i++, v *= 2)
		pprof_builder_sample(m.b, &root, 1,
			&(struct pprof_label){ .key = pprof_builder_string(m.b, str_of(labels[i].key)),
				.num = labels[i].num,
				.num_unit = pprof_builder_string(m.b, str_of(labels[i].unit)) },
			1, &v);
	sample(&m, &root, 1, 16);
	REQUIRE((p = made_finish(&m)));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_filters(&m.values.arena, p, rows[i][0], rows[i][1]);
	values_release(&m.values);
}

TEST(several_epochs)
{
	struct made m[2];
	struct profile_value *p[2], both;
	struct part parts[2];

	for (uint32_t i = 0; i < 2; i++) {
		uint32_t root, f, g;

		REQUIRE(made_init(&m[i], "job"));
		g = location(&m[i], 0, 9, i ? "g" : "other");
		root = location(&m[i], 0, 1, "main");
		f = location(&m[i], 0, 2, "f");
		sample(&m[i], (uint32_t[]){ f, root }, 2, 1 + i);
		sample(&m[i], (uint32_t[]){ g, f, root }, 3, 10 * (1 + i));
		REQUIRE((p[i] = made_finish(&m[i])));
		parts[i] = p[i]->parts[0];
	}
	both = *p[0];
	both.parts = parts;
	both.parts_n = 2;
	check_filters(&m[0].values.arena, &both, "hide(x, 'main')", ";f 1 ;f;other 10 ;f 2 ;f;g 20");
	check_filters(&m[0].values.arena, &both, "callees(focus(x, 'g'), '^f')", ";f;g 20");
	check_filters(&m[0].values.arena, &both, "callers(x, '^f')", ";main;f 11 ;main;f 22");
	for (uint32_t i = 0; i < 2; i++)
		values_release(&m[i].values);
}

TEST(a_budget_ends_it)
{
	struct value v = { .type = VALUE_PROFILES, .n = 1 };
	struct parsed *parsed = NULL;
	struct work work = { 0 };
	struct made m;
	struct arena a, small;
	struct err err;
	uint32_t root;

	arena_init(&a, 0);
	arena_init(&small, 512);
	REQUIRE(made_init(&m, "test"));
	root = location(&m, 0, 1, "main");
	sample(&m, &root, 1, 16);
	REQUIRE((v.profiles = made_finish(&m)));
	CHECK_OK(parse_query(&a, STR("hide(x, 'y')"), &parsed, NULL, &err), &err);
	CHECK_OK(check_query(parsed, NULL, &err), &err);
	work.query = parsed;
	work.arena = &small;
	CHECK_INT(filters_apply(&work, parsed->root, &v, &err), ERR_LIMIT);
	parsed_release(parsed);
	arena_release(&small);
	arena_release(&a);
	values_release(&m.values);
}
