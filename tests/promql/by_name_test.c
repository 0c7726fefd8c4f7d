/*
 * Costs by the names of functions come from totals of functions where there are some, else from
 * stacks. Both ways are asked the same, over blocks, head, deleted ranges, restarts and epochs, of
 * profiles with all that the format has.
 */
#include <stdlib.h>

#include "tests/draw.h"
#include "tests/promql/world.h"
#include "tests/wait.h"

#define HOURS 6
#define EVERY_S 600
#define PODS 3

enum mode {
	LESS = 1, /* some costs are negative */
	DROP = 2, /* some profiles drop frames */
	EPOCHS = 4,
	NAMELESS = 8, /* functions without a name that have a first line */
	NAMED = 16, /* each frame has a name: stacks at the edges become costs by name, too */
	SHOWN = 32, /* names are shown differently, some of them as one */
	LIKE_FILES = 64, /* and one as frames of a file without names are */
	TWOFOLD = 128, /* functions of one name are shown differently */
};

struct town {
	struct world w;
	struct db_options o;
	struct draw d;
	unsigned mode;
	size_t by_name; /* answers that totals of functions were in */
	unsigned turn; /* of windows */
	size_t no_stacks; /* of windows that begin within an hour: parts without stacks */
};

/* ---- rows ---- */

static void name_all(struct pprof *p)
{
	for (uint32_t i = 0; i < p->functions_n; i++)
		if (!p->functions[i].name)
			p->functions[i].name = p->types[0].unit;
	for (uint32_t i = 0; i < p->locations_n; i++)
		if (!p->locations[i].line_n && p->lines_n)
			p->locations[i].line_n = 1, p->locations[i].line_first = i % p->lines_n;
}

static const char *const shown_names[] = { "_ZN1a1bEi", "_ZN1a1bEj", "_ZN1a1bEv", "_ZN1a1cEv",
	"a::b", "a::c(int)", "main.F[interface { X() }]", "main.F[interface { X(int) }]", "main.a",
	"main.b", "[demo](int)" };
#define SHOWN_N (sizeof(shown_names) / sizeof(shown_names[0]))

static void name_shown(struct town *t, struct pprof *p)
{
	uint32_t n = p->strings_n, names = SHOWN_N - !(t->mode & LIKE_FILES);
	struct str *strings = arena_array(&t->w.arena, struct str, n + SHOWN_N + 1);

	if (!strings) {
		CHECK_FAIL("out of memory");
		return;
	}
	memcpy(strings, p->strings, n * sizeof(*strings));
	for (uint32_t i = 0; i < SHOWN_N; i++)
		strings[n + i] = str_of(shown_names[i]);
	strings[n + SHOWN_N] = STR("other");
	p->strings = strings;
	p->strings_n = n + SHOWN_N + 1;
	for (uint32_t i = 0; i < p->functions_n; i++) {
		struct pprof_function *f = &p->functions[i];

		if (!f->name || draw(&t->d, 3) == 0)
			continue;
		f->name = f->system_name = n + draw(&t->d, names);
		if (t->mode & TWOFOLD && draw(&t->d, 8) == 0)
			f->system_name = n + SHOWN_N;
	}
}

static struct pprof *draw_one(struct town *t)
{
	struct err err;
	struct pprof *p = draw_profile(&t->w.arena, &t->d, &err);

	if (!p) {
		CHECK_FAIL("%s", err.msg);
		return NULL;
	}
	p->strings[p->types[0].unit] = STR("nanoseconds");
	p->duration_nanos = 0;
	if (!(t->mode & DROP) || draw(&t->d, 4))
		p->drop_frames = p->keep_frames = 0;
	for (uint32_t i = 0; i < p->samples_n; i++)
		if (p->values[i] < 0 && (!(t->mode & LESS) || draw(&t->d, 8)))
			p->values[i] = -p->values[i];
	for (uint32_t i = 0; i < p->functions_n; i++)
		if (!p->functions[i].name)
			p->functions[i].start_line = t->mode & NAMELESS ? 3 : 0;
	if (t->mode & SHOWN)
		name_shown(t, p);
	if (t->mode & NAMED)
		name_all(p);
	return p;
}

static void put(struct town *t, const char *labels, int64_t at_s)
{
	const enum value_kind kinds[] = { KIND_DELTA };
	struct db_append a = { .labels = labels_of(&t->w.arena, labels),
		.ts_ns = t->w.t0 + at_s * NS_PER_S,
		.interval_ns = EVERY_S * NS_PER_S,
		.profile = draw_one(t),
		.kinds = kinds };
	struct db_append_stats stats;
	struct err err;

	CHECK_OK(db_append(t->w.db, &a, &stats, on_acked, NULL, &err), &err);
}

static void fill_town(struct town *t, int from_s, int to_s)
{
	char labels[128];
	int n = 0;

	atomic_store(&acked, 0);
	for (int at = from_s + EVERY_S; at <= to_s; at += EVERY_S) {
		put(t, "__name__=wall,job=b", at);
		n++;
		for (int pod = 0; pod < PODS; pod++) {
			snprintf(labels, sizeof(labels), "__name__=wall,job=a,pod=%d", pod);
			put(t, labels, at);
			n++;
		}
	}
	CHECK(WAIT_FOR(atomic_load(&acked) >= n));
	CHECK_INT(atomic_load(&acked), n);
}

static bool reopen(struct town *t)
{
	struct engine_options e = { 0 };
	struct err err;

	engine_close(t->w.engine);
	db_close(t->w.db);
	t->w.engine = NULL;
	t->w.db = NULL;
	t->o.dir = t->w.dir;
	t->o.free_bytes_reserve = 1;
	if (db_open(&t->o, &t->w.db, &err)) {
		CHECK_FAIL("%s", err.msg);
		return false;
	}
	e.db = t->w.db;
	CHECK_OK(engine_open(&e, &t->w.engine, &err), &err);
	return true;
}

static void compact(struct town *t)
{
	struct err err;

	CHECK_OK(db_compact(t->w.db, &err), &err);
}

static void delete_some(struct town *t)
{
	struct matcher m[] = { { .op = MATCH_EQ, .name = STR("pod"), .value = STR("1") } };
	struct err err;

	CHECK_OK(
		db_delete_series(t->w.db, m, 1, t->w.t0 + 4000 * NS_PER_S, t->w.t0 + 9000 * NS_PER_S, &err),
		&err);
}

/* ---- both ways ---- */

static int line_cmp(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of w->text in an order of their own. */
static char *sorted(struct world *w)
{
	char *lines[8192], *text = strndup(w->text.ptr ? w->text.ptr : "", w->text.len), *save;
	struct buf out = { 0 };
	size_t n = 0;

	for (char *at = strtok_r(text, "\n", &save); at && n < 8192; at = strtok_r(NULL, "\n", &save))
		lines[n++] = at;
	if (n)
		qsort(lines, n, sizeof(lines[0]), line_cmp);
	for (size_t i = 0; i < n; i++)
		buf_printf(&out, "%s\n", lines[i]);
	free(text);
	text = strndup(out.ptr ? out.ptr : "", out.len);
	buf_release(&out);
	return text;
}

static char *answer(struct town *t, struct query_options o, const char *text, bool *by_name)
{
	const struct result *r;
	struct query *q;
	struct err err;

	o.text = str_of(text);
	buf_clear(&t->w.text);
	*by_name = false;
	if (query_run(t->w.engine, &o, &q, &err)) {
		buf_printf(&t->w.text, "%s: %s", err_code_name(err.code), err.msg);
		return sorted(&t->w);
	}
	r = query_result(q);
	print_result(&t->w, r);
	for (size_t i = 0; i < r->n && r->type == RESULT_TOP; i++) {
		buf_printf(&t->w.text, "\n%zu %" PRIu64 " %" PRId64, r->tops[i].functions_n,
			r->tops[i].profiles, r->tops[i].duration_nanos);
		for (size_t k = 0; k < r->tops[i].source->parts_n; k++) {
			const struct part *part = &r->tops[i].source->parts[k];

			*by_name |= part->names_n > 0;
			t->no_stacks += part->names_n && !part->n && o.start_ns % NS_PER_HOUR;
		}
	}
	query_close(q);
	return sorted(&t->w);
}

static void same(struct town *t, struct query_options o, const char *query, const char *slowly)
{
	bool by_name, slow_by_name;
	char *fast, *slow;

	o.rows_only = true;
	fast = answer(t, o, query, &by_name);
	o.rows_only = false;
	slow = answer(t, o, slowly, &slow_by_name);
	CHECK(!slow_by_name);
	t->by_name += by_name;
	if (strcmp(fast, slow) || (strlen(slow) == 0 && !strstr(query, "pod")))
		CHECK_FAIL("mode %u, %s, (%lld, %lld]\n    by name   %s\n    by stacks %s", t->mode, query,
			(long long)((o.start_ns - t->w.t0) / NS_PER_S),
			(long long)((o.end_ns - t->w.t0) / NS_PER_S), fast, slow);
	free(fast);
	free(slow);
}

/* With "* 1" the value is made of stacks. */
static const char *const pairs[][2] = {
	{ "top(10000, merge(wall))", "top(10000, merge(wall))" },
	{ "top(7, merge by (job) (wall))", "top(7, merge by (job) (wall))" },
	{ "top(5, wall{pod=\"1\"})", "top(5, wall{pod=\"1\"})" },
#define TOPS 3 /* so many are above, and below: */
#define OTHERS 9
	{ "flat(merge(wall))", "flat(merge(wall) * 1)" },
	{ "cum(merge by (job) (wall))", "cum(merge by (job) (wall) * 1)" },
	{ "cum_share(merge(wall))", "cum_share(merge(wall) * 1)" },
	{ "flat by (job, function) (wall)", "flat by (job, function) (wall * 1)" },
	{ "cum(wall{job=\"a\"}, {function=~\"main.*\"})",
		"cum(wall{job=\"a\"} * 1, {function=~\"main.*\"})" },
	{ "cum(merge(wall{job=\"b\"}), {function!=\"main.a\"})",
		"cum(merge(wall{job=\"b\"}) * 1, {function!=\"main.a\"})" },
	{ "cum(merge(wall), {function!=\"a::b\"})", "cum(merge(wall) * 1, {function!=\"a::b\"})" },
	{ "cum(wall{job=\"a\"}, {function!=\"_ZN1a1bEi\"})",
		"cum(wall{job=\"a\"} * 1, {function!=\"_ZN1a1bEi\"})" },
	{ "flat by (function, line) (merge(wall))", "flat by (function, line) (merge(wall) * 1)" },
};

static void check_windows(struct town *t)
{
	struct query_options o = { .has_span = true };
	uint32_t end = HOURS * 3600 / EVERY_S;

	t->turn++;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		/* In short, those that are counted, and of the others one each time. */
		if (check_is_short() && i >= TOPS && i - TOPS != (t->turn + t->mode) % OTHERS)
			continue;
		/* Scaling joins a stack's epochs first, and what it is a share of is of magnitudes. */
		if ((t->mode & LESS) && (t->mode & EPOCHS) && strstr(pairs[i][0], "share"))
			continue;
		/* All, whole hours, and any. */
		for (uint32_t k = 0; k < 4; k++) {
			uint32_t from = k == 0 ? 0 : draw(&t->d, end - 6), to = end;

			if (k)
				to = from + 6 + draw(&t->d, end - from - 5);
			if (k == 1) {
				from = from / 6 * 6;
				to = to / 6 * 6;
			}
			o.start_ns = t->w.t0 + (int64_t)from * EVERY_S * NS_PER_S;
			o.end_ns = t->w.t0 + (int64_t)to * EVERY_S * NS_PER_S;
			if (k == 3)
				o.start_ns += NS_PER_MIN;
			same(t, o, pairs[i][0], pairs[i][1]);
		}
	}
	o.start_ns = t->w.t0 + NS_PER_HOUR;
	o.end_ns = t->w.t0 + HOURS * NS_PER_HOUR;
	o.step_ns = NS_PER_HOUR;
	same(t, o, "flat(merge(wall), {function=\"main.b\"})",
		"flat(merge(wall) * 1, {function=\"main.b\"})");
	o.start_ns += 700 * NS_PER_S;
	same(t, o, "cum(merge by (job) (wall))", "cum(merge by (job) (wall) * 1)");
}

static void check_mode(unsigned mode)
{
	struct town t = { .d = { mode * 977 + 5 }, .mode = mode };

	db_options_default(&t.o);
	t.o.window_ns = 30 * NS_PER_MIN;
	t.o.too_old_ns = 30 * NS_PER_MIN;
	t.o.no_compaction = true;
	if (mode & EPOCHS)
		t.o.nodes_max = 9000;
	if (!world_open_over(&t.w, t.o, NULL))
		return;
	/* Hours are whole ones. */
	t.w.t0 = (t.w.t0 / NS_PER_HOUR - HOURS - 1) * NS_PER_HOUR;
	fill_town(&t, 0, 2 * 3600);
	compact(&t);
	fill_town(&t, 2 * 3600, 5 * 3600);
	compact(&t);
	check_windows(&t);
	fill_town(&t, 5 * 3600, HOURS * 3600);
	delete_some(&t);
	check_windows(&t);
	if (reopen(&t))
		check_windows(&t);
	if (!(mode & (LESS | DROP | NAMELESS | TWOFOLD | LIKE_FILES)) && t.by_name < 10)
		CHECK_FAIL("mode %u: %zu by name", mode, t.by_name);
	if ((mode == NAMED || mode == (NAMED | SHOWN)) && t.no_stacks < 5)
		CHECK_FAIL("%zu parts without stacks", t.no_stacks);
	if (mode & NAMELESS && t.by_name > 0)
		CHECK_FAIL("mode %u: %zu by name", mode, t.by_name);
	world_close(&t.w);
}

TEST(totals_of_functions_give_what_stacks_give)
{
	static const unsigned modes[] = { 0, LESS, DROP, EPOCHS, NAMELESS, EPOCHS | DROP,
		LESS | DROP | EPOCHS | NAMELESS, NAMED | LESS, NAMED | DROP | EPOCHS, NAMED, SHOWN,
		SHOWN | NAMED, SHOWN | LIKE_FILES, SHOWN | EPOCHS, SHOWN | TWOFOLD,
		SHOWN | TWOFOLD | NAMED | EPOCHS, SHOWN | LESS | DROP };
	const size_t step = CHECK_STEP == 1 ? 1 : 3;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i += step)
		check_mode(modes[i]);
}
