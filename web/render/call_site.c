#include "web/render/call_site.h"

#include <assert.h>

#include "promql/profiles/frame.h"
#include "web/render/frame_tree.h"

#define OFF UINT32_MAX

struct site {
	const struct str *path;
	uint32_t n;
	struct arena *arena;
	const struct partition *p;
	struct pruned pruned;
	/* Per stack node: how many frames of the path it has so far, n: all; OFF: it left the path. */
	uint32_t *depth;
};

/* Names are made only for locations of stacks that are still on the path, which are few. */
static enum err_code site_walk_location(
	struct site *s, uint32_t id, uint32_t *depth, struct err *err)
{
	const struct sym_location l = sym_location(s->p, id);
	uint32_t lines = l.lines_n ? l.lines_n : 1;

	for (uint32_t i = lines; i-- > pruned_line(&s->pruned, id) && *depth < s->n;) {
		struct str name = frame_address_name(s->arena, s->p, &l, l.lines_n ? &l.lines[i] : NULL);

		if (!name.ptr)
			return arena_fail(s->arena, "call_site", err);
		*depth = str_eq(name, s->path[*depth]) ? *depth + 1 : OFF;
	}
	return ERR_OK;
}

static enum err_code site_walk_nodes(struct site *s, uint32_t nodes, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (!(s->depth = arena_array(s->arena, uint32_t, nodes)))
		return arena_fail(s->arena, "call_site", err);
	for (uint32_t i = 1; i < nodes && !rc; i++) {
		struct sym_node node = sym_node(s->p, i);

		s->depth[i] = s->depth[node.parent];
		if (s->depth[i] < s->n)
			rc = site_walk_location(s, node.location, &s->depth[i], err);
	}
	return rc;
}

static bool site_begins_so(const struct site *s, uint32_t stack)
{
	stack = pruned_stack(&s->pruned, stack);
	if (stack == 0)
		return s->n == 0 || (s->n == 1 && str_eq(s->path[0], NO_STACK));
	return s->depth[stack] == s->n;
}

static enum err_code site_keep_cells(
	struct site *s, const struct profile_value *p, struct part *part, struct err *err)
{
	const struct cell *from = part->cells;
	size_t n = part->n;
	enum err_code rc;

	if (n == 0)
		return ERR_OK;
	s->p = part->partition;
	if ((rc = pruned_init(&s->pruned, p, part, s->arena, err)) ||
		(rc = site_walk_nodes(s, from[n - 1].stack + 1, err)))
		return rc;
	if (!(part->cells = arena_array(s->arena, struct cell, n)))
		return arena_fail(s->arena, "call_site", err);
	part->n = 0;
	for (size_t i = 0; i < n; i++)
		if (site_begins_so(s, from[i].stack))
			part->cells[part->n++] = from[i];
	return ERR_OK;
}

/* The sum of some cells may overflow where that of all does not, if there are both signs. */
static enum err_code call_site_sum_cells(struct profile_value *p, size_t *n, struct err *err)
{
	bool over = false;

	p->value_total = p->base_total = 0;
	for (size_t i = 0; i < p->parts_n; i++)
		for (size_t k = 0; k < p->parts[i].n; k++) {
			const struct cell *c = &p->parts[i].cells[k];

			over |= __builtin_add_overflow(p->value_total, c->value, &p->value_total);
			over |= __builtin_add_overflow(p->base_total, c->base, &p->base_total);
			*n = 1;
		}
	return over ? err_set(err, ERR_LIMIT, "call_site: sum exceeds 64 bits") : ERR_OK;
}

enum err_code call_site_keep(const struct profile_value *p, const struct str *path, size_t path_n,
	struct arena *a, struct profile_value *out, size_t *n, struct err *err)
{
	struct site s = { .path = path, .n = (uint32_t)path_n, .arena = a };
	struct part *parts = arena_array(a, struct part, p->parts_n + 1);
	enum err_code rc = ERR_OK;

	assert((path || !path_n) && path_n < OFF);
	if (!parts)
		return arena_fail(a, "call_site", err);
	*out = *p;
	*n = 0;
	out->parts = parts;
	for (size_t i = 0; i < p->parts_n && !rc; i++) {
		parts[i] = p->parts[i];
		rc = site_keep_cells(&s, p, &parts[i], err);
	}
	return rc ? rc : call_site_sum_cells(out, n, err);
}
