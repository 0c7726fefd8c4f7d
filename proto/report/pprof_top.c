/*
 * A report takes two passes over the samples. The first adds flat and cum per node: a node is a
 * function name, of any file or binary, or a binary for frames without a name. Then the rows to
 * show are chosen. The second pass adds edges between the chosen nodes. They are needed only for
 * the mark "(inline)", which depends on the callers that are shown.
 */
#include "proto/report/pprof_top.h"

#include <assert.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/integer.h"
#include "base/map.h"
#include "base/quote.h"
#include "proto/report/frame_text.h"
#include "proto/report/pprof_unit.h"
#include "proto/report/prune_pprof.h"
#include "proto/report/top_rows.h"

#define EDGE_FRACTION 0.001 /* of the total: lighter edges give no mark */
#define FILTER_BYTES_MAX 80u /* of what is printed of one */
#define NO_NODE UINT32_MAX
#define UNCHECKED 4096u /* samples between checks for cancellation */

struct pprof_top_node {
	struct str name; /* empty: the binary is shown */
	struct str objfile; /* only of nodes without a name */
	int64_t start_line; /* the same */
	struct str text; /* as printed */
	int64_t flat, cum;
	uint32_t seen; /* sample + 1 that added to cum last */
	bool kept;
	bool inlined, called; /* some edge into it is inline; some is not */
};

struct pprof_top_edge {
	uint32_t from, to;
	uint32_t seen;
	int64_t weight;
	bool is_inline;
};

struct pprof_top_report {
	const struct pprof *p;
	const struct pprof_top_options *o;
	uint32_t type;
	struct arena *arena;
	struct prune prune;
	uint32_t *line_node; /* node of each line of the profile */
	uint32_t *bare_node; /* of each location without lines */
	struct pprof_top_node *nodes;
	uint32_t nodes_n;
	struct map node_map;
	uint32_t *rows; /* nodes with a cost, sorted */
	uint32_t rows_n, shown_n;
	struct pprof_top_edge *edges;
	size_t edges_n, edges_cap;
	struct map edge_map;
	int64_t total;
	struct str unit, output_unit;
};

/* ---- nodes ---- */

static bool pprof_top_node_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct pprof_top_node *a = key, *b = &((const struct pprof_top_report *)ctx)->nodes[id];

	return str_eq(a->name, b->name) && str_eq(a->objfile, b->objfile) &&
		a->start_line == b->start_line;
}

static enum err_code pprof_top_report_add_node(
	struct pprof_top_report *r, struct pprof_top_node key, uint32_t *out, struct err *err)
{
	uint64_t hash = hash_bytes(key.name.ptr, key.name.len,
		hash_bytes(key.objfile.ptr, key.objfile.len, (uint64_t)key.start_line));
	uint32_t id = map_find(&r->node_map, hash, pprof_top_node_eq, r, &key);

	if (id == MAP_NONE) {
		id = r->nodes_n;
		if (!map_add(&r->node_map, hash, id))
			return err_nomem(err, "report");
		key.text = key.name.len ? key.name : frame_binary_name(r->arena, key.objfile);
		if (!key.text.ptr)
			return arena_fail(r->arena, "report", err);
		r->nodes[r->nodes_n++] = key;
	}
	*out = id;
	return ERR_OK;
}

static enum err_code pprof_top_report_make_nodes(struct pprof_top_report *r, struct err *err)
{
	const struct pprof *p = r->p;
	enum err_code rc;

	r->line_node = arena_array(r->arena, uint32_t, p->lines_n);
	r->bare_node = arena_array(r->arena, uint32_t, p->locations_n);
	r->nodes = arena_array(r->arena, struct pprof_top_node, (size_t)p->lines_n + p->locations_n);
	if (!r->line_node || !r->bare_node || !r->nodes)
		return arena_fail(r->arena, "report", err);
	for (uint32_t i = 0; i < p->locations_n; i++) {
		const struct pprof_location *l = &p->locations[i];
		struct str objfile = { 0 };

		if (l->mapping != PPROF_NONE)
			objfile = p->strings[p->mappings[l->mapping].filename];
		if (l->line_n == 0) {
			if ((rc = pprof_top_report_add_node(
					 r, (struct pprof_top_node){ .objfile = objfile }, &r->bare_node[i], err)))
				return rc;
			continue;
		}
		for (uint32_t k = l->line_first; k < l->line_first + l->line_n; k++) {
			const struct pprof_function *f = &p->functions[p->lines[k].function];
			struct pprof_top_node key = { .name = p->strings[f->name] };

			if (key.name.len == 0) {
				key.objfile = objfile;
				key.start_line = f->start_line;
			}
			if ((rc = pprof_top_report_add_node(r, key, &r->line_node[k], err)))
				return rc;
		}
	}
	return ERR_OK;
}

/* ---- walking samples ---- */

struct pprof_top_walk {
	uint32_t sample;
	int64_t value;
	uint32_t parent; /* the shown node above, or NO_NODE */
};

typedef enum err_code (*visit_fn)(struct pprof_top_report *r, struct pprof_top_walk *w,
	uint32_t node, bool is_inline, struct err *err);

static enum err_code pprof_top_options_check_wanted(
	const struct pprof_top_options *o, struct err *err)
{
	return o->canceled && atomic_load_explicit(o->canceled, memory_order_relaxed) ?
		err_set(err, ERR_CANCELED, "the client is gone") :
		ERR_OK;
}

/* Calls visit for every frame of a sample, root first. */
static enum err_code pprof_top_report_walk_sample(
	struct pprof_top_report *r, struct pprof_top_walk *w, visit_fn visit, struct err *err)
{
	const struct pprof *p = r->p;
	const struct pprof_sample *s = &p->samples[w->sample];
	uint32_t first = prune_pprof_first(&r->prune, p, s), id, skip;
	const struct pprof_location *l;
	enum err_code rc;

	for (uint32_t i = s->location_n; i-- > first;) {
		id = p->location_ids[s->location_first + i];
		l = &p->locations[id];
		if (l->line_n == 0) {
			if ((rc = visit(r, w, r->bare_node[id], false, err)))
				return rc;
			continue;
		}
		skip = prune_pprof_skip(&r->prune, id);
		for (uint32_t k = l->line_n; k-- > skip;)
			if ((rc = visit(r, w, r->line_node[l->line_first + k], k + 1 != l->line_n, err)))
				return rc;
	}
	return ERR_OK;
}

static enum err_code pprof_top_report_visit_cum(struct pprof_top_report *r,
	struct pprof_top_walk *w, uint32_t node, bool is_inline, struct err *err)
{
	struct pprof_top_node *n = &r->nodes[node];

	if (n->seen != w->sample + 1) {
		n->seen = w->sample + 1;
		n->cum += w->value;
	}
	w->parent = node;
	return ERR_OK;
}

static bool pprof_top_edge_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct pprof_top_edge *a = key, *b = &((const struct pprof_top_report *)ctx)->edges[id];

	return a->from == b->from && a->to == b->to;
}

static enum err_code pprof_top_report_find_edge(struct pprof_top_report *r, uint32_t from,
	uint32_t to, struct pprof_top_edge **out, struct err *err)
{
	struct pprof_top_edge key = { .from = from, .to = to, .is_inline = true };
	uint64_t hash = map_hash_u64((uint64_t)from << 32 | to);
	uint32_t id = map_find(&r->edge_map, hash, pprof_top_edge_eq, r, &key);

	if (id == MAP_NONE) {
		if (!arena_array_room(r->arena, &r->edges, r->edges_n, 1, &r->edges_cap))
			return arena_fail(r->arena, "report", err);
		id = (uint32_t)r->edges_n;
		if (!map_add(&r->edge_map, hash, id))
			return err_nomem(err, "report");
		r->edges[r->edges_n++] = key;
	}
	*out = &r->edges[id];
	return ERR_OK;
}

static enum err_code pprof_top_report_visit_edge(struct pprof_top_report *r,
	struct pprof_top_walk *w, uint32_t node, bool is_inline, struct err *err)
{
	enum err_code rc;
	struct pprof_top_edge *e;

	if (!r->nodes[node].kept)
		return ERR_OK;
	if (w->parent != NO_NODE && w->parent != node) {
		if ((rc = pprof_top_report_find_edge(r, w->parent, node, &e, err)))
			return rc;
		if (e->seen != w->sample + 1) {
			e->seen = w->sample + 1;
			e->weight += w->value;
			e->is_inline = e->is_inline && is_inline;
		}
	}
	w->parent = node;
	return ERR_OK;
}

static enum err_code pprof_top_report_walk_all(
	struct pprof_top_report *r, visit_fn visit, bool add_flat, struct err *err)
{
	struct pprof_top_walk w;
	enum err_code rc;

	for (uint32_t i = 0; i < r->p->samples_n; i++) {
		w = (struct pprof_top_walk){ .sample = i,
			.parent = NO_NODE,
			.value = r->p->values[(size_t)i * r->p->types_n + r->type] };
		if (i % UNCHECKED == 0 && (rc = pprof_top_options_check_wanted(r->o, err)))
			return rc;
		if (w.value == 0)
			continue;
		if ((rc = pprof_top_report_walk_sample(r, &w, visit, err)))
			return rc;
		if (add_flat && w.parent != NO_NODE)
			r->nodes[w.parent].flat += w.value;
	}
	return ERR_OK;
}

/* ---- choosing rows ---- */

static struct top_key pprof_top_key_of(const void *nodes, uint32_t id)
{
	const struct pprof_top_node *n = (const struct pprof_top_node *)nodes + id;

	return (struct top_key){ n->flat, n->cum, n->text, n->objfile, n->start_line };
}

static enum err_code pprof_top_report_choose_rows(
	struct pprof_top_report *r, size_t rows_max, struct err *err)
{
	bool all;

	r->rows = arena_array(r->arena, uint32_t, r->nodes_n);
	if (!r->rows)
		return arena_fail(r->arena, "report", err);
	for (uint32_t i = 0; i < r->nodes_n; i++)
		r->rows[i] = i;
	r->rows_n = (uint32_t)top_rows(r->rows, r->nodes_n, pprof_top_key_of, r->nodes);
	r->shown_n = r->rows_n;
	if (rows_max > 0 && rows_max < r->rows_n)
		r->shown_n = (uint32_t)rows_max;
	/*
	 * If no row is left out, the tool does not build the graph again, and hidden nodes count as
	 * callers.
	 */
	all = r->shown_n == r->rows_n;
	for (uint32_t i = 0; i < r->nodes_n; i++)
		r->nodes[i].kept = all;
	for (uint32_t i = 0; i < r->shown_n; i++)
		r->nodes[r->rows[i]].kept = true;
	return ERR_OK;
}

static void pprof_top_report_mark_inlined(struct pprof_top_report *r)
{
	int64_t sum = 0;
	uint64_t cutoff;

	for (uint32_t i = 0; i < r->rows_n; i++)
		sum += r->nodes[r->rows[i]].flat;
	cutoff = integer_magnitude64((int64_t)((double)sum * EDGE_FRACTION));
	for (size_t i = 0; i < r->edges_n; i++) {
		const struct pprof_top_edge *e = &r->edges[i];

		if (integer_magnitude64(e->weight) < cutoff)
			continue;
		if (e->is_inline)
			r->nodes[e->to].inlined = true;
		else
			r->nodes[e->to].called = true;
	}
}

/* As the tool: the sum of magnitudes; of a diff that of the base, if it has any. */
static int64_t report_total(const struct pprof *p, uint32_t type)
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

/* ---- printing ---- */

/* The unit that shows the smallest cost, unless the largest is far above it. */
static void pprof_top_report_choose_unit(struct pprof_top_report *r)
{
	struct str min_unit, max_unit, unit;
	uint64_t min = 0, v;

	r->output_unit = STR("minimum");
	if (r->shown_n == 0)
		return;
	for (uint32_t i = 0; i < r->shown_n; i++) {
		const struct pprof_top_node *n = &r->nodes[r->rows[i]];

		v = integer_magnitude64(n->flat ? n->flat : n->cum);
		if (v > 0 && (min == 0 || v < min))
			min = v;
	}
	if (min == 0)
		min = (uint64_t)r->total;
	pprof_unit_scale((int64_t)min, r->unit, STR("minimum"), &min_unit);
	pprof_unit_scale(r->total, r->unit, STR("minimum"), &max_unit);
	unit = min_unit;
	if (!str_eq(min_unit, max_unit) && (int64_t)(min * 100) < r->total)
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
	pprof_unit_print(out, r->total, r->unit, r->output_unit);
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
	if (p->strings[p->types[r->type].type].len > 0)
		pprof_top_add_line(out, "Type: ", p->strings[p->types[r->type].type]);
	if (p->doc_url != 0)
		pprof_top_add_line(out, "Doc: ", p->strings[p->doc_url]);
	if (p->time_nanos != 0) {
		buf_add_cstr(out, "Time: ");
		pprof_top_add_time(out, p->time_nanos);
		buf_add_char(out, '\n');
	}
	if (p->duration_nanos != 0)
		pprof_top_report_print_duration(r, out);
	pprof_top_options_print_filters(r->o, out);
}

static void pprof_top_report_print_shown(const struct pprof_top_report *r, struct buf *out)
{
	struct buf percent = { 0 };
	int64_t shown = 0;

	for (uint32_t i = 0; i < r->shown_n; i++)
		shown += r->nodes[r->rows[i]].flat;
	pprof_percent_print(&percent, shown, r->total);
	buf_add_cstr(out, "Showing nodes accounting for ");
	pprof_unit_print(out, shown, r->unit, r->output_unit);
	buf_printf(out, ", " STR_FMT " of ", STR_ARG(str_trim(buf_str(&percent))));
	pprof_unit_print(out, r->total, r->unit, r->output_unit);
	buf_add_cstr(out, " total\n");
	if (r->total != 0 && r->shown_n > 0 && r->shown_n < r->rows_n)
		buf_printf(out, "Showing top %u nodes out of %u\n", r->shown_n, r->rows_n);
	buf_release(&percent);
}

static void pprof_top_add_right(
	struct buf *out, struct buf *scratch, int64_t value, const struct pprof_top_report *r)
{
	buf_clear(scratch);
	pprof_unit_print(scratch, value, r->unit, r->output_unit);
	buf_printf(out, "%10.*s ", (int)scratch->len, scratch->len ? scratch->ptr : "");
}

static void pprof_top_report_print_rows(const struct pprof_top_report *r, struct buf *out)
{
	struct buf scratch = { 0 };
	int64_t sum = 0;

	buf_printf(out, "%10s %5s%% %5s%% %10s %5s%%\n", "flat", "flat", "sum", "cum", "cum");
	for (uint32_t i = 0; i < r->shown_n; i++) {
		const struct pprof_top_node *n = &r->nodes[r->rows[i]];

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

enum err_code pprof_top_print(const struct pprof *p, const struct pprof_top_options *o,
	struct arena *a, struct buf *out, struct err *err)
{
	struct pprof_top_report r = { .p = p, .o = o, .type = o->type, .arena = a };
	enum err_code rc;

	assert(o->type < p->types_n && (o->filters || !o->filters_n));
	map_init(&r.node_map);
	map_init(&r.edge_map);
	r.unit = str_printable(a, p->strings[p->types[o->type].unit]);
	if (!r.unit.ptr) {
		rc = arena_fail(a, "report", err);
		goto out;
	}
	r.total = o->filtered ? o->total : report_total(p, o->type);
	if ((rc = prune_pprof_init(&r.prune, p, a, err)))
		goto out;
	if ((rc = pprof_top_report_make_nodes(&r, err)))
		goto out;
	if ((rc = pprof_top_report_walk_all(&r, pprof_top_report_visit_cum, true, err)))
		goto out;
	if ((rc = pprof_top_report_choose_rows(&r, o->rows_max, err)))
		goto out;
	if ((rc = pprof_top_report_walk_all(&r, pprof_top_report_visit_edge, false, err)))
		goto out;
	assert(r.shown_n <= r.rows_n && r.rows_n <= r.nodes_n);
	pprof_top_report_mark_inlined(&r);
	pprof_top_report_choose_unit(&r);
	pprof_top_report_print_header(&r, out);
	pprof_top_report_print_shown(&r, out);
	pprof_top_report_print_rows(&r, out);
	if (buf_failed(out))
		rc = err_nomem(err, "report");
out:
	prune_release(&r.prune);
	map_release(&r.node_map);
	map_release(&r.edge_map);
	return rc;
}
