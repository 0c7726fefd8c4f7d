#include "tests/tsdb/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/metrics.h"

/* ---- rows ---- */

static void stack_text(const struct partition *p, uint32_t node, struct buf *out)
{
	struct sym_node n = sym_node(p, node);
	struct sym_location l;

	if (!node)
		return;
	if (n.parent) {
		stack_text(p, n.parent, out);
		buf_add_char(out, ';');
	}
	l = sym_location(p, n.location);
	for (uint32_t i = l.lines_n; i-- > 0;) {
		buf_add_str(out, sym_string(p, sym_function(p, l.lines[i].function)->name));
		if (i)
			buf_add_char(out, ';');
	}
}

static int text_cmp(const void *a, const void *b);

/* Takes the lines' memory over. */
static void print_sorted(struct str *lines, size_t n, struct buf *out)
{
	if (n)
		qsort(lines, n, sizeof(*lines), text_cmp);
	for (size_t i = 0; i < n; i++) {
		buf_add_str(out, lines[i]);
		buf_add_char(out, '\n');
		free((void *)(uintptr_t)lines[i].ptr);
	}
	free(lines);
}

static void profile_stack_text(const struct pprof *p, const struct pprof_sample *s, struct buf *out)
{
	for (uint32_t k = s->location_n; k-- > 0;) {
		const struct pprof_location *l = &p->locations[p->location_ids[s->location_first + k]];

		buf_add_str(out, p->strings[p->functions[p->lines[l->line_first].function].name]);
		if (k)
			buf_add_char(out, ';');
	}
}

/* A sample or an entry, less its values. */
struct line {
	struct buf text;
	int64_t values[8];
};

/* Equal lines after each other are added up if `merge`; into texts. */
static void print_lines(struct line *v, size_t n, uint32_t types_n, bool merge, struct buf *out)
{
	struct str *lines = calloc(n + 1, sizeof(*lines));
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = merge ? 0 : kept;

		while (k < kept && !str_eq(buf_str(&v[k].text), buf_str(&v[i].text)))
			k++;
		for (uint32_t c = 0; c < types_n && k < kept; c++)
			v[k].values[c] += v[i].values[c];
		if (k < kept)
			buf_release(&v[i].text);
		else
			v[kept++] = v[i];
	}
	for (size_t i = 0; i < kept; i++) {
		for (uint32_t c = 0; c < types_n; c++) {
			buf_add_char(&v[i].text, ' ');
			buf_add_i64(&v[i].text, v[i].values[c]);
		}
		lines[i] = buf_str(&v[i].text);
	}
	free(v);
	print_sorted(lines, kept, out);
}

static void add_hex(struct buf *out, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buf_add_char(out, "0123456789abcdef"[p[i] >> 4]);
		buf_add_char(out, "0123456789abcdef"[p[i] & 15]);
	}
	buf_add_char(out, ' ');
}

static void add_span(const struct pprof_link *l, struct buf *out)
{
	buf_add_cstr(out, "span ");
	add_hex(out, l->trace_id, sizeof(l->trace_id));
	add_hex(out, l->span_id, sizeof(l->span_id));
}

static void add_label(struct buf *out, struct str key, struct str value)
{
	buf_add_char(out, ' ');
	buf_add_str(out, key);
	buf_add_char(out, '=');
	buf_add_str(out, value);
}

static void add_sample(const struct pprof *p, const struct pprof_sample *s, struct buf *out)
{
	profile_stack_text(p, s, out);
	for (uint32_t k = 0; k < s->label_n; k++) {
		const struct pprof_label *l = &p->labels[s->label_first + k];

		add_label(out, p->strings[l->key], p->strings[l->str]);
	}
}

static bool is_linked(const struct pprof *p, uint32_t i)
{
	static const struct pprof_link none;

	return p->sample_links && memcmp(&p->links[p->sample_links[i]], &none, sizeof(none)) != 0;
}

/* spans: those that are linked, by span. True if some are. */
static bool samples_text(const struct pprof *p, bool spans, bool merge, struct buf *out)
{
	struct line *v = calloc(p->samples_n + 1, sizeof(*v));
	size_t n = 0, linked = 0;

	for (uint32_t i = 0; i < p->samples_n; i++) {
		const int64_t *values = p->values + (size_t)i * p->types_n;
		bool any = false;

		for (uint32_t c = 0; c < p->types_n; c++)
			any |= values[c] != 0;
		linked += any && is_linked(p, i);
		if (!any || (spans && !is_linked(p, i)))
			continue;
		if (spans)
			add_span(&p->links[p->sample_links[i]], &v[n].text);
		add_sample(p, &p->samples[i], &v[n].text);
		memcpy(v[n++].values, values, p->types_n * sizeof(*values));
	}
	print_lines(v, n, p->types_n, merge, out);
	return linked;
}

void profile_bare_text(const struct pprof *p, struct buf *out)
{
	struct buf no = { 0 };
	bool linked = samples_text(p, true, true, &no);

	buf_release(&no);
	samples_text(p, false, linked, out);
}

void profile_samples_text(const struct pprof *p, struct buf *out)
{
	profile_bare_text(p, out);
	samples_text(p, true, true, out);
}

/* Links of the row that rows_each is at. */
static _Thread_local struct buf row_links;

static int text_cmp(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void entries_text(const struct db_series *s, const struct db_row *row, struct buf *out)
{
	uint32_t columns = sym_header(s->partition, row->header)->types_n;
	struct line *v = calloc(row->n + 1, sizeof(*v));

	for (size_t i = 0; i < row->n; i++) {
		struct sym_label_set set = sym_label_set(s->partition, row->label_sets[i]);

		if (row->spans)
			add_span(&row->spans[row->span_of[i]], &v[i].text);
		stack_text(s->partition, row->stacks[i], &v[i].text);
		for (uint32_t k = 0; k < set.n; k++)
			add_label(&v[i].text, sym_string(s->partition, set.v[k].key),
				sym_string(s->partition, set.v[k].str));
		for (uint32_t c = 0; c < columns; c++)
			v[i].values[c] = row->values[c * row->n + i];
	}
	print_lines(v, row->n, columns, false, out);
}

void row_text(const struct db_series *s, const struct db_row *row, struct buf *out)
{
	entries_text(s, row, out);
	buf_add_str(out, buf_str(&row_links));
}

/* The links of the row at ts_ns, if there are any, from the iterator beside the rows'. */
static enum err_code take_links(struct db_rows *links, const struct db_series *s, int64_t ts_ns,
	const struct db_row **at, struct err *err)
{
	enum err_code rc = ERR_OK;

	buf_clear(&row_links);
	while (!rc && (!*at || (*at)->ts_ns < ts_ns))
		rc = db_rows_next(links, at, err);
	if (!rc && (*at)->ts_ns == ts_ns)
		entries_text(s, *at, &row_links);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static enum err_code series_rows(struct db_querier *q, const struct db_series *s, int64_t min_ns,
	int64_t max_ns, row_fn fn, void *ctx, struct err *err)
{
	const struct db_row *row, *linked = NULL;
	struct db_rows *rows, *links;
	enum err_code rc;

	if ((rc = db_rows_open(q, s, min_ns, max_ns, &rows, err)))
		return rc;
	if ((rc = db_links_open(q, s, min_ns, max_ns, UINT64_MAX, &links, err))) {
		db_rows_close(rows);
		return rc;
	}
	while (!(rc = db_rows_next(rows, &row, err))) {
		if ((rc = take_links(links, s, row->ts_ns, &linked, err)))
			break;
		if (!fn(ctx, s, row)) {
			rc = err_set(err, ERR_CANCELED, "the rows are not wanted any more");
			break;
		}
	}
	buf_release(&row_links);
	db_rows_close(rows);
	db_rows_close(links);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static bool each(struct db *db, const struct labels *of, int64_t min_ns, int64_t max_ns, row_fn fn,
	void *ctx, struct buf *said, size_t *warnings, struct err *err)
{
	struct db_querier *q;
	struct db_series *series;
	struct arena a;
	enum err_code rc;
	const struct str *w;
	size_t n;

	if (db_querier_open(db, min_ns, max_ns, NULL, &q, err))
		return false;
	arena_init(&a, 0);
	if (!(rc = db_select_kinds(q, DB_PROFILES, NULL, 0, &a, &series, &n, err)))
		for (size_t i = 0; i < n && !rc; i++)
			if (!of || labels_eq(series[i].labels, *of))
				rc = series_rows(q, &series[i], min_ns, max_ns, fn, ctx, err);
	w = db_querier_warnings(q, &n);
	if (warnings)
		*warnings += n;
	for (size_t i = 0; i < n && said; i++)
		buf_printf(said, "warning: " STR_FMT "\n", STR_ARG(w[i]));
	arena_release(&a);
	db_querier_close(q);
	return rc == ERR_OK;
}

bool rows_each(struct db *db, int64_t min_ns, int64_t max_ns, row_fn fn, void *ctx,
	size_t *warnings, struct err *err)
{
	return each(db, NULL, min_ns, max_ns, fn, ctx, NULL, warnings, err);
}

bool numbers_each(struct db *db, int64_t min_ns, int64_t max_ns, number_fn fn, void *ctx,
	size_t *warnings, struct err *err)
{
	struct db_querier *q;
	struct db_series *series;
	struct arena a;
	double *values;
	int64_t *ts;
	enum err_code rc;
	size_t n, got;

	if (db_querier_open(db, min_ns, max_ns, NULL, &q, err))
		return false;
	arena_init(&a, 0);
	rc = db_select_kinds(q, DB_NUMBERS, NULL, 0, &a, &series, &n, err);
	for (size_t i = 0; !rc && i < n; i++) {
		rc = db_numbers(q, &series[i], min_ns, max_ns, &a, &ts, &values, &got, err);
		for (size_t k = 0; !rc && k < got; k++)
			if (!fn(ctx, &series[i], ts[k], values[k]))
				rc = err_set(err, ERR_CANCELED, "the rest is not wanted");
	}
	(void)db_querier_warnings(q, &n);
	if (warnings)
		*warnings += n;
	arena_release(&a);
	db_querier_close(q);
	return rc == ERR_OK;
}

struct texts {
	struct text {
		int64_t ts_ns;
		struct buf lines;
	} * v;
	size_t n;
};

static bool take_text(void *ctx, const struct db_series *s, const struct db_row *row)
{
	struct texts *t = ctx;

	if (!(t->v = realloc(t->v, (t->n + 1) * sizeof(*t->v))))
		abort();
	t->v[t->n] = (struct text){ row->ts_ns, { 0 } };
	row_text(s, row, &t->v[t->n++].lines);
	return true;
}

static int by_time(const void *a, const void *b)
{
	const struct text *x = a, *y = b;

	return (x->ts_ns > y->ts_ns) - (x->ts_ns < y->ts_ns);
}

bool rows_text(struct db *db, struct labels labels, int64_t min_ns, int64_t max_ns, struct buf *out,
	struct err *err)
{
	struct texts t = { 0 };
	struct buf said = { 0 };
	bool ok = each(db, &labels, min_ns, max_ns, take_text, &t, &said, NULL, err);

	if (t.n)
		qsort(t.v, t.n, sizeof(*t.v), by_time);
	for (size_t i = 0; i < t.n; i++) {
		buf_printf(out, "@%lld\n", (long long)(t.v[i].ts_ns / SEC));
		buf_add_str(out, buf_str(&t.v[i].lines));
		buf_release(&t.v[i].lines);
	}
	buf_add_str(out, buf_str(&said));
	buf_release(&said);
	free(t.v);
	return ok;
}

/* ---- sums ---- */

static void sums_add(struct sums *s, struct buf *stack, __int128 value)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 64;
		if (!(s->lines = realloc(s->lines, s->cap * sizeof(*s->lines))))
			abort();
	}
	buf_add_char(stack, '\0');
	s->lines[s->n++] = (struct sums_line){ stack->ptr, value };
	*stack = (struct buf){ 0 };
}

static int by_stack(const void *a, const void *b)
{
	return strcmp(((const struct sums_line *)a)->stack, ((const struct sums_line *)b)->stack);
}

void sums_print(struct sums *s, struct buf *out)
{
	buf_printf(out, "rows %llu total %lld\n", (unsigned long long)s->rows, (long long)s->total);
	if (s->n)
		qsort(s->lines, s->n, sizeof(*s->lines), by_stack);
	for (size_t i = 0, to; i < s->n; i = to) {
		__int128 value = 0;

		for (to = i; to < s->n && !strcmp(s->lines[i].stack, s->lines[to].stack); to++)
			value += s->lines[to].value;
		if (value)
			buf_printf(out, "%s %lld\n", s->lines[i].stack, (long long)value);
	}
	for (size_t i = 0; i < s->n; i++)
		free(s->lines[i].stack);
	free(s->lines);
	*s = (struct sums){ 0 };
}

void sums_add_profile(struct sums *s, const struct pprof *p)
{
	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *sample = &p->samples[i];
		struct buf stack = { 0 };

		profile_stack_text(p, sample, &stack);
		s->total += p->values[(size_t)i * p->types_n + 1];
		sums_add(s, &stack, p->values[(size_t)i * p->types_n + 1]);
	}
	s->rows++;
}

/* The sum of one partition's series. */
static enum err_code sum_of(struct db_querier *q, const struct db_series *const *series, size_t n,
	int64_t min_ns, int64_t max_ns, struct arena *a, struct sums *out, struct err *err)
{
	static const struct profile_type cpu = {
		STR("p"), STR("cpu"), STR("nanoseconds"), STR(""), STR(""), true };
	struct partition *p = series[0]->partition;
	struct sum_stats stats = { 0 };
	struct accum *acc;
	struct accum_cell cell;
	enum err_code rc;
	size_t at = 0;

	if ((rc = accum_open(p, 0, &acc, err)))
		return rc;
	rc = db_sum(q, series, n, &cpu, min_ns, max_ns, SUM_WINDOW, acc, a, &stats, err);
	if (!rc && !(rc = accum_seal(acc, err)))
		while (accum_next(acc, &at, &cell)) {
			struct buf stack = { 0 };

			stack_text(p, cell.stack, &stack);
			sums_add(out, &stack, cell.value);
		}
	out->rows += stats.rows;
	out->total += stats.total;
	accum_close(acc);
	return rc;
}

static int by_partition(const void *a, const void *b)
{
	const struct db_series *const *x = a, *const *y = b;

	return ((*x)->partition > (*y)->partition) - ((*x)->partition < (*y)->partition);
}

static enum err_code sum_partitions(struct db_querier *q, const struct labels *of, int64_t min_ns,
	int64_t max_ns, struct arena *a, struct sums *out, struct err *err)
{
	struct db_series *series;
	const struct db_series **some;
	enum err_code rc;
	size_t n, some_n = 0;

	if ((rc = db_select_kinds(q, DB_PROFILES, NULL, 0, a, &series, &n, err)) || !n)
		return rc;
	some = arena_alloc_raw(a, n, sizeof(*some));
	if (!some)
		return arena_fail(a, "sum", err);
	for (size_t i = 0; i < n; i++)
		if (!of || labels_eq(series[i].labels, *of))
			some[some_n++] = &series[i];
	if (some_n)
		qsort(some, some_n, sizeof(*some), by_partition);
	for (size_t from = 0, to; from < some_n && !rc; from = to) {
		for (to = from; to < some_n && some[to]->partition == some[from]->partition; to++)
			;
		rc = sum_of(q, some + from, to - from, min_ns, max_ns, a, out, err);
	}
	return rc;
}

bool sum_text(struct db *db, const struct labels *of, int64_t min_ns, int64_t max_ns,
	struct buf *out, size_t *warnings, struct err *err)
{
	struct sums s = { 0 };
	struct db_querier *q;
	struct arena a;
	enum err_code rc;
	size_t n;

	if (db_querier_open(db, min_ns, max_ns, NULL, &q, err))
		return false;
	arena_init(&a, 0);
	rc = sum_partitions(q, of, min_ns, max_ns, &a, &s, err);
	sums_print(&s, out);
	db_querier_warnings(q, &n);
	if (warnings)
		*warnings += n;
	arena_release(&a);
	db_querier_close(q);
	return rc == ERR_OK;
}

/* ---- metrics ---- */

double metric_value(const char *name)
{
	struct buf text = { 0 }, line = { 0 };
	ptrdiff_t at;
	double v = 0;

	buf_add_char(&text, '\n');
	metrics_print(&text);
	buf_printf(&line, "\n%s ", name);
	at = str_find(buf_str(&text), buf_str(&line));
	buf_add_char(&text, '\0');
	if (at >= 0)
		v = strtod(text.ptr + at + line.len, NULL);
	buf_release(&text);
	buf_release(&line);
	return v;
}
