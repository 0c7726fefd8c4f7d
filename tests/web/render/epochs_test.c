/*
 * Queries over series whose job changed epochs: the same rows in one epoch and in several give
 * the same answers.
 */
#include <stdlib.h>

#include "tests/draw.h"
#include "tests/promql/world.h"
#include "web/render/render.h"

#define WINDOWS 6
#define WINDOW_S 60

/* ---- answers in an order that does not depend on ids ---- */

struct lines {
	char *v[4096];
	size_t n;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds up lines "text\tnumber\tnumber" of equal text. */
static void print_lines(struct buf *out, struct lines *l)
{
	long long sum[2] = { 0 };

	qsort(l->v, l->n, sizeof(l->v[0]), by_text);
	for (size_t i = 0; i < l->n; i++) {
		size_t len = strcspn(l->v[i], "\t");
		char *end;

		sum[0] += strtoll(l->v[i] + len, &end, 10);
		sum[1] += strtoll(end, NULL, 10);
		if (i + 1 < l->n && strcspn(l->v[i + 1], "\t") == len && !memcmp(l->v[i], l->v[i + 1], len))
			continue;
		buf_printf(out, "\n\t%.*s %lld %lld", (int)len, l->v[i], sum[0], sum[1]);
		sum[0] = sum[1] = 0;
	}
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	l->n = 0;
}

static void lines_take(struct lines *l, struct buf *b)
{
	if (l->n < sizeof(l->v) / sizeof(l->v[0]) && (l->v[l->n] = strndup(b->ptr, b->len)))
		l->n++;
	buf_clear(b);
}

static struct lines lines;

static void print_in_order(struct buf *out, const struct profile_value *v)
{
	struct buf b = { 0 };

	labels_print(out, v->metric);
	buf_printf(out,
		" " STR_FMT ":" STR_FMT " %" PRId64 " %" PRId64 " of %" PRId64 ", %" PRIu64
		" profiles, %" PRId64 " ns, period %" PRId64,
		STR_ARG(v->type.sample_type), STR_ARG(v->type.sample_unit), v->value_total, v->base_total,
		v->total, v->profiles, v->duration_nanos, v->period);
	for (size_t i = 0; i < v->parts_n; i++)
		for (size_t k = 0; k < v->parts[i].n; k++) {
			const struct partition *p = v->parts[i].partition;
			const struct cell *c = &v->parts[i].cells[k];
			struct sym_label_set set = sym_label_set(p, c->label_set);

			print_stack(&b, p, c->stack);
			for (uint32_t x = 0; x < set.n; x++)
				buf_printf(&b, "{" STR_FMT "=" STR_FMT "}", STR_ARG(sym_string(p, set.v[x].key)),
					STR_ARG(sym_string(p, set.v[x].str)));
			buf_printf(&b, "\t%" PRId64 "\t%" PRId64, c->value, c->base);
			lines_take(&lines, &b);
		}
	print_lines(out, &lines);
	buf_add_char(out, '\n');
	buf_release(&b);
}

/* Elements sorted by their text. */
static void print_elements(struct buf *out, const struct result *r)
{
	struct lines elements = { .n = 0 };
	struct buf b = { 0 };

	for (size_t i = 0; i < r->n; i++) {
		print_in_order(&b, &r->profiles[i]);
		lines_take(&elements, &b);
	}
	qsort(elements.v, elements.n, sizeof(elements.v[0]), by_text);
	for (size_t i = 0; i < elements.n; i++) {
		buf_add_cstr(out, elements.v[i]);
		free(elements.v[i]);
	}
	buf_release(&b);
}

static void print_pprof(struct buf *out, const struct pprof *p)
{
	struct buf b = { 0 };

	buf_printf(out, "%u functions, %u locations, time %" PRId64 ", duration %" PRId64,
		p->functions_n, p->locations_n, p->time_nanos / NS_PER_HOUR, p->duration_nanos);
	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *s = &p->samples[i];

		for (uint32_t k = s->location_n; k-- > 0;) {
			const struct pprof_location *l = &p->locations[p->location_ids[s->location_first + k]];

			buf_printf(&b, ";" STR_FMT,
				STR_ARG(p->strings[p->functions[p->lines[l->line_first].function].name]));
		}
		for (uint32_t k = 0; k < s->label_n; k++)
			buf_printf(&b, "{" STR_FMT "}", STR_ARG(p->strings[p->labels[s->label_first + k].str]));
		buf_printf(&b, "\t%" PRId64, p->values[i * p->types_n]);
		lines_take(&lines, &b);
	}
	print_lines(out, &lines);
	buf_release(&b);
}

/* *epochs: the highest number of partitions of one element of the answer. */
static void answer(struct world *w, const struct query_options *o, bool as_pprof, size_t *epochs)
{
	struct render_options r = { 0 };
	const struct result *result;
	struct pprof *p;
	struct query *q;
	struct err err;

	buf_clear(&w->text);
	if (query_run(w->engine, o, &q, &err)) {
		buf_printf(&w->text, "%s: %s", err_code_name(err.code), err.msg);
		return;
	}
	result = query_result(q);
	r.arena = query_arena(q);
	for (size_t i = 0; result->type == RESULT_PROFILES && i < result->n; i++)
		if (result->profiles[i].parts_n > *epochs)
			*epochs = result->profiles[i].parts_n;
	if (result->type == RESULT_SCRAPE)
		print_pprof(&w->text, result->scrape);
	else if (as_pprof && render_pprof(result, &r, &p, &err))
		buf_printf(&w->text, "pprof: %s", err.msg);
	else if (as_pprof)
		print_pprof(&w->text, p);
	else if (result->type == RESULT_PROFILES)
		print_elements(&w->text, result);
	else
		print_result(w, result);
	query_close(q);
}

/* ---- the same rows twice ---- */

struct pair {
	struct world one, many;
	size_t epochs; /* of all answers */
};

static bool pair_open(struct pair *t)
{
	struct db_options o;

	*t = (struct pair){ 0 };
	db_options_default(&o);
	o.window_ns = WINDOW_S * NS_PER_S;
	o.too_old_ns = WINDOW_S * NS_PER_S;
	o.no_compaction = true;
	if (!world_open_over(&t->one, o, NULL))
		return false;
	o.nodes_max = 16; /* more than half of it is used in each window */
	if (!world_open_over(&t->many, o, NULL))
		return false;
	t->one.t0 = t->many.t0;
	return true;
}

static void pair_close(struct pair *t)
{
	world_close(&t->one);
	world_close(&t->many);
}

static void pair_store(
	struct pair *t, const char *labels, int at_s, int interval_s, const char *stacks)
{
	store(&t->one, labels, at_s, interval_s, stacks);
	store(&t->many, labels, at_s, interval_s, stacks);
}

/* Functions come and go between windows; one pod ends, one starts; labels start. */
static void pair_fill(struct pair *t)
{
	struct draw d = { 7 };
	char stacks[512], labels[128];

	for (int w = 0; w < WINDOWS; w++)
		for (int at = 10; at <= WINDOW_S; at += 10)
			for (int pod = 0; pod < 3; pod++) {
				unsigned a = draw(&d, 90) + 1, b = draw(&d, 90) + 1;

				if ((pod == 1 && w > 2) || (pod == 2 && w < 2))
					continue;
				snprintf(stacks, sizeof(stacks),
					"main;run;f%d%s %u|main;run;f%d;leaf %u|main;run;f%d;run;"
					"leaf %u|main;g%d %u",
					w, w > 2 ? "{handler=/x}" : "", a, w + 1, b, w, a + b, w / 2, b);
				for (int k = 0; k < 3; k++) {
					static const char *const names[] = { "process_cpu", "goroutine", "odd" };

					snprintf(
						labels, sizeof(labels), "__name__=%s,job=a,pod=%c", names[k], 'p' + pod);
					pair_store(t, labels, w * WINDOW_S + at, 10, stacks);
				}
			}
}

static void check_answer(struct pair *t, struct query_options o, const char *query, bool as_pprof)
{
	size_t one = 0;

	o.text = str_of(query);
	answer(&t->one, &o, as_pprof, &one);
	answer(&t->many, &o, as_pprof, &t->epochs);
	CHECK(one <= 1);
	if (t->one.text.len == 0)
		CHECK_FAIL("%s: nothing", query);
	if (!str_eq(buf_str(&t->one.text), buf_str(&t->many.text)))
		CHECK_FAIL("%s\n    in one epoch " STR_FMT "\n    in several   " STR_FMT, query,
			STR_ARG(buf_str(&t->one.text)), STR_ARG(buf_str(&t->many.text)));
}

static const char *const queries[] = {
	"merge(cpu:samples{job=\"a\"}[6m])",
	"merge by (pod) (cpu:samples{job=\"a\"}[6m])",
	"cpu:samples{job=\"a\"}[6m]",
	"cpu:samples{job=\"a\"}[130s] offset 100s",
	"{__name__=\"process_cpu\",__type__=~\".+s\"}[6m]",
	"cpu{job=\"a\"}",
	"cpu:samples{job=\"a\"} offset 3m", /* the latest of a pod is in an older epoch */
	"goroutine{job=\"a\"}[6m]",
	"goroutine{job=\"a\"}",
	"merge(goroutine{job=\"a\"}[6m])",
	"merge by (pod) (goroutine{job=\"a\"}[150s])",
	"odd{job=\"a\"}[6m]",
	"cpu:samples{job=\"a\",handler=\"/x\"}[2m]",
	"merge by (handler) (cpu:samples{job=\"a\"}[6m])",
	"top(100, merge(cpu:samples{job=\"a\"}[6m]))",
	"top(3, cpu:samples{job=\"a\"}[6m])",
	"sort_desc(flat(merge(cpu:samples{job=\"a\"}[6m])))",
	"sort_desc(cum(merge(cpu:samples{job=\"a\"}[6m])))",
	"cum(merge(goroutine{job=\"a\"}[6m]), {function=\"run\"})",
	"topk(2, cum(cpu:samples{pod=\"p\"}[6m]))",
	"cpu:samples{pod=\"p\"}[3m] - cpu:samples{pod=\"p\"}[3m] offset 3m",
	"merge(cpu:samples{job=\"a\"}[3m]) - merge(cpu:samples{job=\"a\"}[3m] offset 3m)",
	"top(100, cpu:samples{pod=\"p\"}[90s] - cpu:samples{pod=\"p\"}[90s] offset 100s)",
	"cpu:samples{pod=\"p\"}[6m] / 7",
	"merge(goroutine{job=\"a\"}[6m]) * 0.3",
	"diff_normalized(cpu:samples{pod=\"p\"}[4m], cpu:samples{pod=\"p\"}[5m] offset 1m)",
	"count(total(cpu:samples{job=\"a\"}[6m]))",
	"total(cpu:samples{job=\"a\"}[6m])",
	"sum by (pod) (total(goroutine{job=\"a\"}[6m]))",
	"sort_desc(flat(merge(focus(cpu:samples{job=\"a\"}[6m], \"leaf\"))))",
	"sort_desc(cum(merge(hide(cpu:samples{job=\"a\"}[6m], \"run\"))))",
	"top(100, merge(hide(goroutine{job=\"a\"}[6m], \"run\")))",
	"total(callers(goroutine{job=\"a\"}[6m], \"leaf\"))",
	"top(100, callees(goroutine{job=\"a\"}[6m], \"run\") / 3)",
	"merge(show(goroutine{job=\"a\"}[6m], \"leaf\"))",
	"total(tagfocus(cpu:samples{job=\"a\"}[6m], \"handler=x\"))",
	"top(9, prune_from(cpu:samples{pod=\"p\"}[3m] - cpu:samples{pod=\"p\"}[3m] offset 3m, \"r\"))",
};

static void check_all(struct pair *t)
{
	struct query_options o = { .t_ns = t->one.t0 + WINDOWS * WINDOW_S * NS_PER_S };
	struct query_options span = { .has_span = true,
		.start_ns = t->one.t0 + 45 * NS_PER_S,
		.end_ns = t->one.t0 + 290 * NS_PER_S };
	struct query_options range = span, scrape = o;

	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
		check_answer(t, o, queries[i], false);
	check_answer(t, span, "merge(cpu:samples{job=\"a\"})", false);
	check_answer(t, span, "cpu:samples{job=\"a\"}", false);
	range.step_ns = 70 * NS_PER_S;
	check_answer(t, range, "total(cpu:samples{job=\"a\"})", false);
	check_answer(t, range, "sum by (pod) (total(goroutine{job=\"a\"}))", false);
	check_answer(t, range, "cum(cpu:samples{job=\"a\"}, {function=\"leaf\"})", false);
	o.keep_sample_labels = true;
	check_answer(t, o, "merge(cpu:samples{job=\"a\"}[6m])", false);
	check_answer(t, o, "merge(cpu:samples{job=\"a\"}[6m])", true);
	check_answer(t, o, "cpu:samples{job=\"a\"}[6m]", true);
	check_answer(t, o, "goroutine{job=\"a\"}[3m] offset 1m", true);
	scrape.whole_scrape = true;
	check_answer(t, scrape, "cpu{pod=\"p\"}[6m]", false);
	check_answer(t, scrape, "cpu{pod=\"q\"}[6m]", false);
	CHECK(t->epochs >= WINDOWS / 2);
}

TEST(answers_do_not_depend_on_epochs)
{
	struct pair t;

	if (pair_open(&t)) {
		pair_fill(&t);
		check_all(&t);
	}
	pair_close(&t);
}
