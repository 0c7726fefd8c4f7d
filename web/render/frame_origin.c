#include "web/render/frame_origin.h"

#include <math.h>

#include "promql/profiles/frame.h"
#include "web/render/render.h"

#define UNCHECKED 4096u /* nodes between checks for cancellation */

/* Counts a frame as often as it is in a stack. Doubles do not overflow by that. */
static enum err_code frame_origin_sum_functions(const struct frame_tree *t,
	const struct profile_value *profile, const struct part *part, double *functions,
	struct err *err)
{
	const struct partition *p = part->partition;
	uint32_t n = part->cells[part->n - 1].stack + 1;
	double *nodes = arena_array(t->arena, double, n);
	struct pruned pruned;
	enum err_code rc;

	if (!nodes)
		return arena_fail(t->arena, "origins of frames", err);
	if ((rc = pruned_init(&pruned, profile, part, t->arena, err)))
		return rc;
	for (size_t i = 0; i < part->n; i++) {
		const struct cell *c = &part->cells[i];

		nodes[pruned_stack(&pruned, c->stack)] += fabs((double)c->value) + fabs((double)c->base);
	}
	for (uint32_t i = n; i-- > 1;) {
		struct sym_location l;
		struct sym_node node;

		if (i % UNCHECKED == 0 && (rc = render_wanted(t->canceled, err)))
			return rc;
		if (nodes[i] == 0)
			continue;
		node = sym_node(p, i);
		l = sym_location(p, node.location);
		for (uint32_t k = pruned_line(&pruned, node.location); k < l.lines_n; k++)
			functions[l.lines[k].function] += nodes[i];
		nodes[node.parent] += nodes[i];
	}
	return ERR_OK;
}

static bool frame_origin_counts_before(const struct frame_origin *a, const struct frame_origin *b)
{
	int order;

	if (a->cost != b->cost)
		return a->cost > b->cost;
	order = str_cmp(a->file, b->file);
	return order ? order < 0 : a->line < b->line;
}

static enum err_code frame_origin_add_part(const struct frame_tree *t,
	const struct profile_value *profile, const struct part *part, struct frame_origin *out,
	struct err *err)
{
	const struct partition *p = part->partition;
	uint32_t n = sym_functions_n(p), name;
	double *functions = arena_array(t->arena, double, (size_t)n + 1);
	enum err_code rc;

	if (!functions)
		return arena_fail(t->arena, "origins of frames", err);
	if ((rc = frame_origin_sum_functions(t, profile, part, functions, err)))
		return rc;
	for (uint32_t i = 0; i < n; i++) {
		const struct sym_function *f;
		struct frame_origin origin;

		if (functions[i] == 0)
			continue;
		f = sym_function(p, i);
		if (!f->filename || !sym_function_name(p, f).len)
			continue;
		name = frame_tree_name(t, sym_function_name(p, f));
		origin = (struct frame_origin){ sym_string(p, f->filename), f->start_line, functions[i] };
		if (name != MAP_NONE && frame_origin_counts_before(&origin, &out[name]))
			out[name] = origin;
	}
	return ERR_OK;
}

enum err_code frame_origins(const struct frame_tree *t, const struct profile_value *p,
	struct frame_origin **out, struct err *err)
{
	struct frame_origin *v = arena_array(t->arena, struct frame_origin, (size_t)t->names_n + 1);
	enum err_code rc = ERR_OK;

	if (!v)
		return arena_fail(t->arena, "origins of frames", err);
	for (size_t i = 0; i < p->parts_n && !rc; i++)
		if (p->parts[i].n > 0)
			rc = frame_origin_add_part(t, p, &p->parts[i], v, err);
	*out = v;
	return rc;
}
