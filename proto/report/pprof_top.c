/*
 * Rows are chosen in the steps of the tool: those with a cost, without those below nodefraction,
 * then the first nodecount of them. If a step leaves out nothing, the tool does not build its graph
 * again, and nodes without a row still count as callers.
 */
#include "proto/report/pprof_top.h"

#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/quote.h"
#include "proto/report/frame_text.h"
#include "proto/report/pprof_graph.h"
#include "proto/report/pprof_unit.h"
#include "proto/report/top_rows.h"

#define FILTER_BYTES_MAX 80u /* of what is printed of one */

struct pprof_top_report {
	const struct pprof *p;
	const struct pprof_top_options *o;
	struct pprof_options options;
	struct pprof_graph graph;
	struct arena *arena;
	uint32_t *rows; /* nodes, sorted */
	uint32_t rows_n, shown_n;
	uint32_t dropped_n; /* by nodefraction */
	int64_t total;
	struct str unit, output_unit;
};

/* ---- choosing rows ---- */

static struct top_key pprof_top_key_of(const void *nodes, uint32_t id)
{
	const struct pprof_graph_node *n = (const struct pprof_graph_node *)nodes + id;

	return (struct top_key){ n->flat, n->cum, n->text, n->objfile, n->start_line };
}

static bool pprof_top_is_negative(const struct pprof_graph_node *n)
{
	return n->flat < 0 || (n->flat == 0 && n->cum < 0);
}

/* A share of a sum, cut to a whole number. */
static uint64_t pprof_top_part(int64_t sum, double share)
{
	double part = fabs((double)sum * share);

	return part < 0x1p63 ? (uint64_t)part : UINT64_C(1) << 63;
}

static enum err_code pprof_top_report_choose_rows(struct pprof_top_report *r, struct err *err)
{
	struct pprof_graph *g = &r->graph;
	uint32_t nodes_n = (uint32_t)g->nodes_n, n = 0;
	uint64_t cutoff, edge_cutoff;
	int64_t sum = 0;
	bool all;

	r->rows = arena_array(r->arena, uint32_t, (size_t)nodes_n + 1);
	if (!r->rows)
		return arena_fail(r->arena, "report", err);
	for (uint32_t i = 0; i < nodes_n; i++)
		if (!r->options.drop_negative || !pprof_top_is_negative(&g->nodes[i]))
			r->rows[n++] = i;
	n = (uint32_t)top_rows(r->rows, n, pprof_top_key_of, g->nodes, r->options.sort);
	for (uint32_t i = 0; i < n; i++)
		sum += g->nodes[r->rows[i]].flat;
	cutoff = pprof_top_part(sum, r->options.nodefraction);
	edge_cutoff = pprof_top_part(sum, r->options.edgefraction);
	for (uint32_t i = 0; i < n; i++)
		if (integer_magnitude64(g->nodes[r->rows[i]].cum) >= cutoff)
			r->rows[r->rows_n++] = r->rows[i];
	r->dropped_n = n - r->rows_n;
	r->shown_n = r->rows_n;
	if (r->options.nodecount > 0 && r->options.nodecount < r->rows_n)
		r->shown_n = (uint32_t)r->options.nodecount;
	all = r->shown_n == n;
	for (uint32_t i = 0; i < nodes_n; i++)
		g->nodes[i].kept = all;
	for (uint32_t i = 0; i < r->shown_n; i++)
		g->nodes[r->rows[i]].kept = true;
	return pprof_graph_add_edges(g, edge_cutoff, err);
}

int64_t pprof_top_total(const struct pprof *p, uint32_t type)
{
	uint64_t all = 0, base = 0, v;

	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *s = &p->samples[i];

		v = integer_magnitude64(p->values[(size_t)i * p->types_n + type]);
		all += v;
		for (uint32_t k = s->label_first; k < s->label_first + s->label_n; k++)
			if (str_is(p->strings[p->labels[k].key], "pprof::base") &&
				str_is(p->strings[p->labels[k].str], "true"))
				base += v;
	}
	return (int64_t)((int64_t)base > 0 ? base : all);
}

enum err_code pprof_top_check_sums(const struct pprof *p, uint32_t type, struct err *err)
{
	int64_t sum = 0, v;

	assert(type < p->types_n);
	for (uint32_t i = 0; i < p->samples_n; i++) {
		v = p->values[(size_t)i * p->types_n + type];
		if (v == INT64_MIN || __builtin_add_overflow(sum, v < 0 ? -v : v, &sum))
			return err_set(err, ERR_LIMIT, "the sum of all costs exceeds 64 bits");
	}
	return ERR_OK;
}

/* ---- printing ---- */

/* As it is shown: divided, and cut to a whole number. */
static int64_t pprof_top_report_divided(const struct pprof_top_report *r, int64_t value)
{
	double v = (double)value * (1 / r->options.divide_by);

	if (r->options.divide_by == 1)
		return value;
	return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

static void pprof_top_report_add_cost(
	const struct pprof_top_report *r, int64_t value, struct buf *out)
{
	pprof_unit_print(out, pprof_top_report_divided(r, value), r->unit, r->output_unit);
}

/* The unit that shows the smallest cost, unless the largest is far above it. */
static void pprof_top_report_choose_unit(struct pprof_top_report *r)
{
	struct str min_unit, max_unit, unit;
	uint64_t min = 0, v;
	int64_t total;

	if (!str_is(r->output_unit, "minimum") || r->shown_n == 0)
		return;
	for (uint32_t i = 0; i < r->shown_n; i++) {
		const struct pprof_graph_node *n = &r->graph.nodes[r->rows[i]];

		v = integer_magnitude64(n->flat ? n->flat : n->cum);
		if (v > 0 && (min == 0 || v < min))
			min = v;
	}
	if (min == 0)
		min = (uint64_t)r->total;
	min = (uint64_t)pprof_top_report_divided(r, (int64_t)min);
	total = pprof_top_report_divided(r, r->total);
	pprof_unit_scale((int64_t)min, r->unit, STR("minimum"), &min_unit);
	pprof_unit_scale(total, r->unit, STR("minimum"), &max_unit);
	unit = min_unit;
	if (!str_eq(min_unit, max_unit) && (int64_t)(min * 100) < total)
		pprof_unit_scale((int64_t)(100 * min), r->unit, STR("minimum"), &unit);
	r->output_unit = unit.len > 0 ? unit : r->unit;
}

static void pprof_top_add_time(struct buf *out, int64_t ns)
{
	struct buf text = { 0 };

	time_print_rfc3339(&text, ns / NS_PER_S * NS_PER_S); /* 2006-01-02T15:04:05Z */
	if (text.len >= 19) {
		buf_add(out, text.ptr, 10);
		buf_add_char(out, ' ');
		buf_add(out, text.ptr + 11, 8);
		buf_add_cstr(out, " UTC");
	}
	buf_release(&text);
}

static void pprof_top_report_print_duration(const struct pprof_top_report *r, struct buf *out)
{
	struct str unit;
	double ns = pprof_unit_scale(r->total, r->unit, STR("nanoseconds"), &unit);

	buf_add_cstr(out, "Duration: ");
	pprof_unit_print(out, r->p->duration_nanos, STR("nanoseconds"), STR("auto"));
	buf_add_cstr(out, ", Total samples = ");
	pprof_top_report_add_cost(r, r->total, out);
	buf_add_char(out, ' ');
	if (str_is(unit, "ns") && ns != 0) {
		buf_add_char(out, '(');
		pprof_percent_print(out, (int64_t)ns, r->p->duration_nanos);
		buf_add_char(out, ')');
	}
	buf_add_char(out, '\n');
}

/* Long expressions are cut before a character of UTF-8. */
static void pprof_top_options_print_filters(const struct pprof_top_options *o, struct buf *out)
{
	struct buf line = { 0 };
	size_t n;

	if (o->filters_n)
		buf_add_cstr(out, "Active filters:\n");
	for (size_t i = 0; i < o->filters_n; i++) {
		buf_clear(&line);
		buf_printf(&line, "%s=" STR_FMT, o->filters[i].name, STR_ARG(o->filters[i].text));
		n = line.len;
		if (n > FILTER_BYTES_MAX)
			for (n = FILTER_BYTES_MAX; (line.ptr[n] & 0xc0) == 0x80; n--)
				;
		buf_add_cstr(out, "   ");
		buf_add_printable(out, (struct str){ line.ptr, n });
		buf_add_cstr(out, n < line.len ? "\xe2\x80\xa6\n" : "\n");
	}
	buf_release(&line);
}

/* Prints a text from outside, which may hold any byte. */
static void pprof_top_add_line(struct buf *out, const char *what, struct str text)
{
	buf_add_cstr(out, what);
	buf_add_printable(out, text);
	buf_add_char(out, '\n');
}

static void pprof_top_report_print_header(const struct pprof_top_report *r, struct buf *out)
{
	const struct pprof *p = r->p;

	if (p->mappings_n > 0) {
		struct str file = p->strings[p->mappings[0].filename];
		struct str build_id = p->strings[p->mappings[0].build_id];

		if (file.len > 0)
			pprof_top_add_line(out, "File: ", frame_path_base(file));
		if (build_id.len > 0)
			pprof_top_add_line(out, "Build ID: ", build_id);
	}
	for (uint32_t i = 0; i < p->comments_n; i++) {
		struct str c = p->strings[p->comments[i]];

		if (c.len == 0 || c.ptr[0] != '#')
			pprof_top_add_line(out, "", c);
	}
	if (p->strings[p->types[r->o->type].type].len > 0)
		pprof_top_add_line(out, "Type: ", p->strings[p->types[r->o->type].type]);
	if (p->doc_url != 0)
		pprof_top_add_line(out, "Doc: ", p->strings[p->doc_url]);
	if (p->time_nanos != 0) {
		buf_add_cstr(out, "Time: ");
		pprof_top_add_time(out, p->time_nanos);
		buf_add_char(out, '\n');
	}
	if (p->duration_nanos != 0)
		pprof_top_report_print_duration(r, out);
}

static void pprof_top_report_print_shown(const struct pprof_top_report *r, struct buf *out)
{
	struct buf percent = { 0 };
	int64_t shown = 0;

	for (uint32_t i = 0; i < r->shown_n; i++)
		shown += r->graph.nodes[r->rows[i]].flat;
	pprof_percent_print(&percent, shown, r->total);
	buf_add_cstr(out, "Showing nodes accounting for ");
	pprof_top_report_add_cost(r, shown, out);
	buf_printf(out, ", " STR_FMT " of ", STR_ARG(str_trim(buf_str(&percent))));
	pprof_top_report_add_cost(r, r->total, out);
	buf_add_cstr(out, " total\n");
	buf_release(&percent);
	if (r->total == 0)
		return;
	if (r->dropped_n > 0) {
		buf_printf(out, "Dropped %u node%s (cum <= ", r->dropped_n, r->dropped_n > 1 ? "s" : "");
		pprof_top_report_add_cost(
			r, (int64_t)pprof_top_part(r->total, r->options.nodefraction), out);
		buf_add_cstr(out, ")\n");
	}
	if (r->shown_n > 0 && r->shown_n < r->rows_n)
		buf_printf(out, "Showing top %u nodes out of %u\n", r->shown_n, r->rows_n);
}

static void pprof_top_add_right(
	struct buf *out, struct buf *scratch, int64_t value, const struct pprof_top_report *r)
{
	buf_clear(scratch);
	pprof_top_report_add_cost(r, value, scratch);
	buf_printf(out, "%10.*s ", (int)scratch->len, scratch->len ? scratch->ptr : "");
}

static void pprof_top_report_print_rows(const struct pprof_top_report *r, struct buf *out)
{
	struct buf scratch = { 0 };
	int64_t sum = 0;

	buf_printf(out, "%10s %5s%% %5s%% %10s %5s%%\n", "flat", "flat", "sum", "cum", "cum");
	for (uint32_t i = 0; i < r->shown_n; i++) {
		const struct pprof_graph_node *n = &r->graph.nodes[r->rows[i]];

		sum += n->flat;
		pprof_top_add_right(out, &scratch, n->flat, r);
		pprof_percent_print(out, n->flat, r->total);
		buf_add_char(out, ' ');
		pprof_percent_print(out, sum, r->total);
		buf_add_char(out, ' ');
		pprof_top_add_right(out, &scratch, n->cum, r);
		pprof_percent_print(out, n->cum, r->total);
		buf_add_cstr(out, "  ");
		buf_add_printable(out, n->text);
		buf_add_cstr(out, !n->inlined ? "\n" : n->called ? " (partial-inline)\n" : " (inline)\n");
	}
	buf_release(&scratch);
}

/* trim=false switches off all that leaves out rows or calls. */
static struct pprof_options pprof_top_effective(const struct pprof_top_options *o)
{
	struct pprof_options options = o->options ? *o->options : pprof_options_default;

	if (!options.trim) {
		options.nodecount = 0;
		options.nodefraction = options.edgefraction = 0;
	}
	return options;
}

enum err_code pprof_top_print(const struct pprof *p, const struct pprof_top_options *o,
	struct arena *a, struct buf *out, struct err *err)
{
	struct pprof_top_report r = { .p = p, .o = o, .options = pprof_top_effective(o), .arena = a };
	enum err_code rc;

	assert(o->type < p->types_n && (o->filters || !o->filters_n));
	r.unit = str_printable(a, p->strings[p->types[o->type].unit]);
	r.output_unit = r.options.unit = str_printable(a, r.options.unit);
	if (!r.unit.ptr || !r.output_unit.ptr)
		return arena_fail(a, "report", err);
	if ((rc = pprof_top_check_sums(p, o->type, err)))
		return rc;
	r.total = o->filtered && !r.options.relative_percentages ? o->total :
															   pprof_top_total(p, o->type);
	if ((rc = pprof_graph_init(&r.graph, p, o->type, &r.options, o->canceled, a, err)) ||
		(rc = pprof_top_report_choose_rows(&r, err)))
		goto out;
	assert(r.shown_n <= r.rows_n && r.rows_n <= r.graph.nodes_n);
	pprof_top_report_choose_unit(&r);
	if (!r.options.compact_labels)
		pprof_top_report_print_header(&r, out);
	pprof_top_options_print_filters(o, out);
	pprof_top_report_print_shown(&r, out);
	pprof_top_report_print_rows(&r, out);
	if (buf_failed(out))
		rc = err_nomem(err, "report");
out:
	pprof_graph_release(&r.graph);
	return rc;
}
