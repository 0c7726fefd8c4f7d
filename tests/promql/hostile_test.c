/*
 * Hostile queries: each is refused before it costs much, by an error that names the limit. The
 * tests measure reads and memory, not time.
 */
#include "base/metrics.h"
#include "promql/engine/engine_internal.h"
#include "tests/promql/world.h"
#include "tests/wait.h"

struct hostile {
	const char *what;
	const char *head, *middle, *tail; /* head, so many times middle, "cpu[1m]" or `core`, tails */
	const char *core;
	int times, tails;
	int64_t span_s, step_s; /* a range where step_s is not 0 */
	const char *want;
};

#define REPLACE ",\"job\",\"$1$1\",\"job\",\"(.*)\")"
#define PAIRS "\"c\",\"d\",\"c\",\"d\",\"c\",\"d\",\"c\",\"d\""

static const struct hostile cases[] = {
	{ "deep parentheses", "", "(", ")", "1", 101, 101, 0, 0,
		"limit exceeded: 1:203: query nests deeper than 100" },
	{ "a chain of operators", "", "1+", "", "1", 101, 0, 0, 0,
		"limit exceeded: 1:202: query nests deeper than 100" },
	{ "a chain of calls", "", "abs(", ")", "cpu", 101, 101, 0, 0,
		"limit exceeded: 1:508: query nests deeper than 100" },
	{ "long text", "", "         ", "", "1", 8000, 0, 0, 0,
		"limit exceeded: query is 72001 bytes long, limit 65536" },
	{ "matchers", "cpu{", "a=\"b\",", "}", "c=\"d\"", 64, 1, 0, 0,
		"limit exceeded: 1:389: more than 64 matchers" },
	{ "arguments", "label_join(cpu,\"a\"", "," PAIRS, ")", "", 2, 1, 0, 0,
		"limit exceeded: 1:76: more than 16 arguments" },
	{ "regular expressions", "", "cpu{a=~\"b.*\"}+", "", "1", 65, 0, 0, 0,
		"limit exceeded: 1:904: more than 64 regular expressions" },
	{ "a long pattern", "cpu{a=~\"", "x", "\"}", "", 65527, 1, 0, 0,
		"limit exceeded: query is 65537 bytes long, limit 65536" },
	{ "repetitions within each other", "cpu{a=~\"", "(", "){100}", "x\"}", 3, 0, 0, 0,
		"invalid input: 1:8: error parsing regexp: missing ): (((x" },
	{ "a pattern with a large program", "cpu{a=~\"", "\\\\pL{1000}", "\"}", "", 50, 1, 0, 0,
		"limit exceeded: 1:8: regular expression needs more than its limit of 8388608 bytes of "
		"memory" },
	{ "ten years by the second", "", "", "", "cpu", 0, 0, 315360000, 1,
		"limit exceeded: exceeded maximum resolution of 11000 points per timeseries. Try "
		"decreasing the query resolution (?step=XX)" },
	{ "windows of ten years by the second", "flat(", "", ")", "cpu:samples[10y]", 0, 1, 10999, 1,
		"limit exceeded: the query would read about 33,000 series in its steps, counted as "
		"3,300,000 samples, limit 20,000 (--query.max-samples)" },
	{ "series in steps", "", "", "", "cpu:samples", 0, 0, 10999, 1,
		"limit exceeded: the query would read about 33,000 series in its steps, counted as "
		"3,300,000 samples, limit 20,000 (--query.max-samples)" },
	{ "a label that doubles", "", "label_replace(", REPLACE, "total(cpu:samples[10m])", 40, 40, 0,
		0, "limit exceeded: 1:323: label_replace() makes a label longer than 65536 bytes" },
};

static void ask_hostile(struct world *w, const struct hostile *h)
{
	struct query_options o = { .t_ns = w->t0 + 60 * NS_PER_S };
	struct buf text = { 0 };

	buf_add_cstr(&text, h->head);
	for (int i = 0; i < h->times; i++)
		buf_add_cstr(&text, h->middle);
	buf_add_cstr(&text, h->core);
	for (int i = 0; i < h->tails; i++)
		buf_add_cstr(&text, h->tail);
	buf_add_char(&text, '\0');
	if (h->step_s) {
		o.step_ns = h->step_s * NS_PER_S;
		o.start_ns = o.t_ns - h->span_s * NS_PER_S;
		o.end_ns = w->t0 + NS_PER_MIN;
	}
	ask(w, o, text.ptr, h->want);
	buf_release(&text);
}

/* Over all queries so far. */
static double samples_read(void)
{
	static const char name[] = "epimetheus_query_samples_total ";
	struct buf text = { 0 };
	const char *at;
	double n = 0;

	metrics_print(&text);
	buf_add_char(&text, '\0');
	if ((at = strstr(text.ptr, name)) && (at == text.ptr || at[-1] == '\n'))
		n = strtod(at + strlen(name), NULL);
	buf_release(&text);
	return n;
}

TEST(hostile_queries_are_refused_before_they_read)
{
	struct engine_options limits = { .samples_max = 20000, .memory_bytes_max = 16u << 20 };
	struct world w;
	double before;

	if (!world_open(&w, &limits))
		return;
	fill(&w);
	before = samples_read();
	for (size_t i = 0; i + 1 < sizeof(cases) / sizeof(cases[0]); i++)
		ask_hostile(&w, &cases[i]);
	CHECK(samples_read() == before);
	ask_hostile(&w, &cases[sizeof(cases) / sizeof(cases[0]) - 1]);
	/* what only looks so is answered */
	at(&w, 20, "top(1e9, merge(cpu:samples[10m]))", "{} of 143: f 137 137 h 5 5 g 1 1 main 0 143");
	at(&w, 20, "topk(1e9, total(cpu:samples{pod=\"p\"}[10m]))", "{job=\"a\", pod=\"p\"} 8");
	world_close(&w);
}

/* ---- many series ---- */

#define MANY 20000

static void store_many(struct world *w, const char *job, int64_t at_s)
{
	struct db_number *v = arena_array(&w->arena, struct db_number, MANY);
	struct err err;
	char labels[64];

	for (size_t i = 0; i < MANY; i++) {
		snprintf(labels, sizeof(labels), "__name__=up,instance=%zu,job=%s", i, job);
		v[i] = (struct db_number){ labels_of(
									   &w->arena, arena_strndup(&w->arena, labels, strlen(labels))),
			w->t0 + at_s * NS_PER_S, 1 };
	}
	atomic_store(&acked, 0);
	REQUIRE_OK(db_append_numbers(w->db, v, MANY, on_acked, NULL, &err), &err);
	CHECK(WAIT_FOR(atomic_load(&acked)));
}

TEST(what_matches_everything_is_bounded)
{
	struct engine_options limits = { .samples_max = 5000000, .memory_bytes_max = 64u << 20 };
	struct engine_options little = { .samples_max = 5000000, .memory_bytes_max = 2u << 20 };
	struct engine_options enough = { .samples_max = 5000000, .memory_bytes_max = 9u << 20 };
	struct query_options steps = { .step_ns = NS_PER_S };
	const char *const ended[] = { "b", "c", "d", "e", NULL };
	struct world w;
	struct err err;

	if (!world_open(&w, &limits))
		return;
	store_many(&w, "a", 10);
	steps.start_ns = w.t0;
	steps.end_ns = w.t0 + 1000 * NS_PER_S;
	at(&w, 20, "count({__name__=~\".+\"})", "{} 20000");
	at(&w, 20, "count(count_values(\"v\", up + on (instance) up))", "{} 1");
	ask(&w, steps, "up",
		"limit exceeded: the query would read about 20,020,000 series in its steps, counted as "
		"100,100,000 samples, limit 5,000,000 (--query.max-samples)");
	engine_close(w.engine);
	little.db = w.db;
	REQUIRE_OK(engine_open(&little, &w.engine, &err), &err);
	at(&w, 20, "{__name__=~\".+\"}",
		"limit exceeded: the query selects about 20,000 series and would need at least 2,564,112 "
		"bytes of memory, limit 2,097,152 (--query.max-memory)");
	engine_close(w.engine);
	/* Series that ended before are of the same window: they do not count. */
	for (const char *const *job = ended; *job; job++)
		store_many(&w, *job, -1200);
	enough.db = w.db;
	REQUIRE_OK(engine_open(&enough, &w.engine, &err), &err);
	at(&w, 20, "count(up)", "{} 20000");
	at(&w, 20, "count(last_over_time(up[30m]))",
		"limit exceeded: the query selects about 100,000 series and would need at least 12,804,112 "
		"bytes of memory, limit 9,437,184 (--query.max-memory)");
	world_close(&w);
}
