/*
 * A graph takes two passes over the samples. The first adds flat and cum per node. Then the caller
 * chooses which nodes are kept. The second pass adds the edges between those.
 */
#include "proto/report/pprof_graph.h"

#include <assert.h>

#include "base/array.h"
#include "base/integer.h"
#include "proto/report/frame_text.h"
#include "proto/report/pprof_tags.h"
#include "proto/report/prune_pprof.h"

#define NO_NODE UINT32_MAX
#define UNCHECKED 4096u /* samples between checks for cancellation */

struct pprof_graph_edge {
	uint32_t from, to;
	uint32_t seen;
	int64_t weight;
	bool is_inline;
};

/* ---- nodes ---- */

static bool pprof_graph_node_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct pprof_graph_node *a = key, *b = &((const struct pprof_graph *)ctx)->nodes[id];

	return str_eq(a->name, b->name) && str_eq(a->file, b->file) && str_eq(a->objfile, b->objfile) &&
		a->start_line == b->start_line && a->address == b->address && a->line == b->line &&
		a->column == b->column;
}

static uint64_t pprof_graph_node_hash(const struct pprof_graph_node *n)
{
	uint64_t hash = hash_bytes(n->objfile.ptr, n->objfile.len, (uint64_t)n->start_line);

	if (n->file.len)
		hash = hash_bytes(n->file.ptr, n->file.len, hash);
	if (n->address || n->line || n->column)
		hash = map_hash_u64(hash ^ n->address ^ (uint64_t)n->line << 20 ^ (uint64_t)n->column);
	return hash_bytes(n->name.ptr, n->name.len, hash);
}

/* What the tool prints of a node: address, name, file and line; else its binary. */
static struct str pprof_graph_node_text(const struct pprof_graph_node *n, struct arena *a)
{
	struct buf text = { 0 };
	struct str out = { 0 };

	if (n->name.len && !n->address && !n->line && !n->file.len)
		return n->name;
	if (n->address)
		buf_printf(&text, "%016" PRIx64 " ", n->address);
	if (n->name.len)
		buf_printf(&text, STR_FMT " ", STR_ARG(n->name));
	if (n->line) {
		buf_printf(&text, STR_FMT ":%" PRId64, STR_ARG(n->file), n->line);
		if (n->column)
			buf_printf(&text, ":%" PRId64, n->column);
	} else if (n->file.len) {
		buf_add_str(&text, n->file);
	} else if (n->name.len) {
		text.len--; /* nothing follows the blank */
	} else {
		struct str binary = frame_binary_name(a, n->objfile);

		if (!binary.ptr)
			goto out;
		buf_add_str(&text, binary);
	}
	if (!buf_failed(&text))
		out = str_dup(a, buf_str(&text));
out:
	buf_release(&text);
	return out;
}

enum err_code pprof_graph_find_node(struct pprof_graph *g, const struct pprof_graph_node *key,
	bool copy, uint32_t *out, struct err *err)
{
	uint64_t hash = pprof_graph_node_hash(key);
	struct pprof_graph_node node = *key;

	*out = map_find(&g->node_map, hash, pprof_graph_node_eq, g, key);
	if (*out != MAP_NONE)
		return ERR_OK;
	if (!arena_array_room(g->arena, &g->nodes, g->nodes_n, 1, &g->nodes_cap))
		return arena_fail(g->arena, "report", err);
	if (!map_add(&g->node_map, hash, (uint32_t)g->nodes_n))
		return err_nomem(err, "report");
	if (copy)
		node.name = str_dup(g->arena, key->name);
	if (!node.name.ptr)
		node.name = STR("");
	node.text = pprof_graph_node_text(&node, g->arena);
	if (!node.text.ptr || node.name.len != key->name.len)
		return arena_fail(g->arena, "report", err);
	*out = (uint32_t)g->nodes_n;
	g->nodes[g->nodes_n++] = node;
	return ERR_OK;
}

/* The parts of a frame that the granularity has. */
struct pprof_graph_node pprof_graph_frame(
	const struct pprof_graph *g, struct str name, struct str file)
{
	struct pprof_graph_node n = { .name = name, .file = file };

	if (g->o->granularity == PPROF_FILES)
		n.name = STR("");
	else if (g->o->granularity == PPROF_FUNCTIONS)
		n.file = STR("");
	return n;
}

static enum err_code pprof_graph_find_line(struct pprof_graph *g, const struct pprof_location *l,
	const struct pprof_line *line, struct str objfile, uint32_t *out, struct err *err)
{
	const struct pprof_function *f = &g->p->functions[line->function];
	struct pprof_graph_node key = pprof_graph_frame(
		g, g->p->strings[f->name], g->files[line->function]);
	bool addresses = g->o->granularity == PPROF_ADDRESSES;

	if (addresses || g->o->granularity == PPROF_LINES) {
		key.line = line->line;
		/* Addresses with inlined frames are not aggregated at all. */
		if (g->o->showcolumns || (addresses && !g->o->noinlines))
			key.column = line->column;
	}
	if (addresses)
		key.address = l->address;
	if (key.name.len == 0) {
		key.objfile = objfile;
		key.start_line = f->start_line;
	}
	return pprof_graph_find_node(g, &key, false, out, err);
}

static enum err_code pprof_graph_find_files(struct pprof_graph *g, struct err *err)
{
	const struct pprof *p = g->p;

	if (!(g->files = arena_array(g->arena, struct str, (size_t)p->functions_n + 1)))
		return arena_fail(g->arena, "report", err);
	for (uint32_t i = 0; i < p->functions_n; i++) {
		struct str path = p->strings[p->functions[i].filename];

		path = frame_file_cut(path, g->o->trim_path, g->o->source_path);
		if (!frame_file_clean(g->arena, path, &g->files[i]))
			return arena_fail(g->arena, "report", err);
	}
	return ERR_OK;
}

static enum err_code pprof_graph_find_nodes(struct pprof_graph *g, struct err *err)
{
	const struct pprof *p = g->p;
	enum err_code rc = ERR_OK;

	g->line_node = arena_array(g->arena, uint32_t, (size_t)p->lines_n + 1);
	g->bare_node = arena_array(g->arena, uint32_t, (size_t)p->locations_n + 1);
	if (!g->line_node || !g->bare_node)
		return arena_fail(g->arena, "report", err);
	for (uint32_t i = 0; i < p->locations_n && !rc; i++) {
		const struct pprof_location *l = &p->locations[i];
		struct str objfile = { 0 };

		if (l->mapping != PPROF_NONE)
			objfile = p->strings[p->mappings[l->mapping].filename];
		if (l->line_n == 0) {
			struct pprof_graph_node key = { .objfile = objfile };

			if (g->o->granularity == PPROF_ADDRESSES)
				key.address = l->address;
			rc = pprof_graph_find_node(g, &key, false, &g->bare_node[i], err);
		}
		for (uint32_t k = l->line_first; k < l->line_first + l->line_n && !rc; k++)
			rc = pprof_graph_find_line(g, l, &p->lines[k], objfile, &g->line_node[k], err);
	}
	return rc;
}

/* ---- walking samples ---- */

struct pprof_graph_walk {
	uint32_t sample;
	int64_t value;
	uint32_t parent; /* the kept node above, or NO_NODE */
};

typedef enum err_code (*pprof_graph_visit_fn)(struct pprof_graph *g, struct pprof_graph_walk *w,
	uint32_t node, bool is_inline, struct err *err);

static enum err_code pprof_graph_walk_frames(
	struct pprof_graph *g, struct pprof_graph_walk *w, pprof_graph_visit_fn visit, struct err *err)
{
	const struct pprof *p = g->p;
	const struct pprof_sample *s = &p->samples[w->sample];
	uint32_t first = prune_pprof_first(&g->prune, p, s), id, skip;
	const struct pprof_location *l;
	enum err_code rc;

	for (uint32_t i = s->location_n; i-- > first;) {
		id = p->location_ids[s->location_first + i];
		l = &p->locations[id];
		if (l->line_n == 0) {
			if ((rc = visit(g, w, g->bare_node[id], false, err)))
				return rc;
			continue;
		}
		skip = prune_pprof_skip(&g->prune, id);
		if (g->o->noinlines && skip < l->line_n)
			skip = l->line_n - 1;
		for (uint32_t k = l->line_n; k-- > skip;)
			if ((rc = visit(g, w, g->line_node[l->line_first + k], k + 1 != l->line_n, err)))
				return rc;
	}
	return ERR_OK;
}

/* Calls visit for every frame of a sample, root first. */
static enum err_code pprof_graph_walk_sample(
	struct pprof_graph *g, struct pprof_graph_walk *w, pprof_graph_visit_fn visit, struct err *err)
{
	uint32_t tags_n = g->roots_n + g->leaves_n;
	const uint32_t *tags = tags_n ? g->tag_nodes + (size_t)w->sample * tags_n : NULL;
	enum err_code rc = ERR_OK;

	for (uint32_t i = 0; i < g->roots_n && !rc; i++)
		rc = visit(g, w, tags[i], false, err);
	if (!rc)
		rc = pprof_graph_walk_frames(g, w, visit, err);
	for (uint32_t i = g->roots_n; i < tags_n && !rc; i++)
		rc = visit(g, w, tags[i], false, err);
	return rc;
}

static enum err_code pprof_graph_walk_all(
	struct pprof_graph *g, pprof_graph_visit_fn visit, bool add_flat, struct err *err)
{
	struct pprof_graph_walk w;
	enum err_code rc;

	for (uint32_t i = 0; i < g->p->samples_n; i++) {
		w = (struct pprof_graph_walk){ .sample = i,
			.parent = NO_NODE,
			.value = g->p->values[(size_t)i * g->p->types_n + g->type] };
		if (i % UNCHECKED == 0 && g->canceled &&
			atomic_load_explicit(g->canceled, memory_order_relaxed))
			return err_set(err, ERR_CANCELED, "the client is gone");
		if (w.value == 0)
			continue;
		if ((rc = pprof_graph_walk_sample(g, &w, visit, err)))
			return rc;
		if (add_flat && w.parent != NO_NODE)
			g->nodes[w.parent].flat += w.value;
	}
	return ERR_OK;
}

static enum err_code pprof_graph_visit_cum(struct pprof_graph *g, struct pprof_graph_walk *w,
	uint32_t node, bool is_inline, struct err *err)
{
	struct pprof_graph_node *n = &g->nodes[node];

	if (n->seen != w->sample + 1) {
		n->seen = w->sample + 1;
		n->cum += w->value;
	}
	w->parent = node;
	return ERR_OK;
}

/* ---- edges ---- */

static bool pprof_graph_edge_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct pprof_graph_edge *a = key, *b = &((const struct pprof_graph *)ctx)->edges[id];

	return a->from == b->from && a->to == b->to;
}

static enum err_code pprof_graph_find_edge(struct pprof_graph *g, uint32_t from, uint32_t to,
	struct pprof_graph_edge **out, struct err *err)
{
	struct pprof_graph_edge key = { .from = from, .to = to, .is_inline = true };
	uint64_t hash = map_hash_u64((uint64_t)from << 32 | to);
	uint32_t id = map_find(&g->edge_map, hash, pprof_graph_edge_eq, g, &key);

	if (id == MAP_NONE) {
		if (!arena_array_room(g->arena, &g->edges, g->edges_n, 1, &g->edges_cap))
			return arena_fail(g->arena, "report", err);
		id = (uint32_t)g->edges_n;
		if (!map_add(&g->edge_map, hash, id))
			return err_nomem(err, "report");
		g->edges[g->edges_n++] = key;
	}
	*out = &g->edges[id];
	return ERR_OK;
}

static enum err_code pprof_graph_visit_edge(struct pprof_graph *g, struct pprof_graph_walk *w,
	uint32_t node, bool is_inline, struct err *err)
{
	struct pprof_graph_edge *e;
	enum err_code rc;

	if (!g->nodes[node].kept)
		return ERR_OK;
	if (w->parent != NO_NODE && w->parent != node) {
		if ((rc = pprof_graph_find_edge(g, w->parent, node, &e, err)))
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

enum err_code pprof_graph_add_edges(struct pprof_graph *g, uint64_t cutoff, struct err *err)
{
	enum err_code rc = pprof_graph_walk_all(g, pprof_graph_visit_edge, false, err);

	for (size_t i = 0; i < g->edges_n && !rc; i++) {
		const struct pprof_graph_edge *e = &g->edges[i];

		if (integer_magnitude64(e->weight) < cutoff)
			continue;
		if (e->is_inline)
			g->nodes[e->to].inlined = true;
		else
			g->nodes[e->to].called = true;
	}
	return rc;
}

/* ---- all of it ---- */

enum err_code pprof_graph_init(struct pprof_graph *g, const struct pprof *p, uint32_t type,
	const struct pprof_options *o, const atomic_bool *canceled, struct arena *a, struct err *err)
{
	enum err_code rc;

	assert(type < p->types_n);
	*g = (struct pprof_graph){ .p = p, .o = o, .canceled = canceled, .type = type, .arena = a };
	map_init(&g->node_map);
	map_init(&g->edge_map);
	if ((rc = prune_pprof_init(&g->prune, p, a, err)) || (rc = pprof_graph_find_files(g, err)) ||
		(rc = pprof_graph_find_nodes(g, err)) || (rc = pprof_graph_add_tags(g, err)))
		return rc;
	return pprof_graph_walk_all(g, pprof_graph_visit_cum, true, err);
}

void pprof_graph_release(struct pprof_graph *g)
{
	prune_release(&g->prune);
	map_release(&g->node_map);
	map_release(&g->edge_map);
}
