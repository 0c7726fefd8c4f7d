/*
 * flat is an addition per cell. cum is one backward pass over a partition's nodes, which turns
 * costs of stacks into costs of subtrees, and then an addition per node and group. A node adds its
 * subtree to a group unless an ancestor belongs to that group too, so each stack counts once, at
 * the group's outermost frame. For almost all nodes the symbols already mark recursion, by
 * function. Ancestors are looked at only if several functions share a name, or if groups are not
 * functions.
 */
#include "promql/profiles/frames_internal.h"

#include <stdlib.h>

#include "proto/report/frame_text.h"
#include "tsdb/symbols/shown.h"

static bool frames_sum_grow(void *array, size_t item, size_t n)
{
	void **at = array, *p = realloc(*at, n * item);

	if (p)
		*at = p;
	return p != NULL;
}

static enum err_code frames_sum_charge(struct frames *f, size_t bytes, struct err *err)
{
	struct budget *b = f->work->budget;

	if (b && !budget_take(b, bytes))
		return budget_fail(b, "query", err);
	if (b)
		f->charged += bytes;
	return ERR_OK;
}

static enum err_code frames_sum_touch_first(struct frames *f, uint32_t group, struct err *err)
{
	size_t n = f->groups_cap > 256 ? f->groups_cap : 256;
	size_t item = sizeof(*f->flat) + sizeof(*f->cum) + sizeof(*f->touched) + 1;
	enum err_code rc;

	if (group >= f->sums_cap) {
		if ((rc = frames_sum_charge(f, (n - f->sums_cap) * item, err)))
			return rc;
		if (!frames_sum_grow(&f->flat, sizeof(*f->flat), n) ||
			!frames_sum_grow(&f->cum, sizeof(*f->cum), n) ||
			!frames_sum_grow(&f->touched, sizeof(*f->touched), n) ||
			!frames_sum_grow(&f->is_touched, 1, n))
			return work_nomem(f->work, err);
		memset(f->is_touched + f->sums_cap, 0, n - f->sums_cap);
		f->sums_cap = n;
	}
	f->is_touched[group] = 1;
	f->flat[group] = f->cum[group] = 0;
	f->touched[f->touched_n++] = group;
	return ERR_OK;
}

static inline enum err_code frames_sum_touch(struct frames *f, uint32_t group, struct err *err)
{
	return group < f->sums_cap && f->is_touched[group] ? ERR_OK :
														 frames_sum_touch_first(f, group, err);
}

static bool frames_sum_has_group(const uint32_t *groups, uint32_t n, uint32_t group)
{
	for (uint32_t i = 0; i < n; i++)
		if (groups[i] == group)
			return true;
	return false;
}

/* An ancestor of the node has a frame of this group. */
static enum err_code frames_sum_above(struct frames *f, struct frames_of *o, uint32_t node,
	uint32_t group, bool *out, struct err *err)
{
	struct sym_node at = sym_node(o->partition, node);
	const uint32_t *groups;
	enum err_code rc;
	uint32_t n;
	bool plain;

	*out = false;
	while (at.parent != 0) {
		at = sym_node(o->partition, at.parent);
		if ((rc = frames_groups(f, o, at.location, &groups, &n, &plain, err)))
			return rc;
		if (frames_sum_has_group(groups, n, group)) {
			*out = true;
			return ERR_OK;
		}
	}
	return ERR_OK;
}

/*
 * Ancestors are looked at only if a function of the node recurs, or shares its name with another
 * function: else no ancestor can be in the same group. If the node's only function recurs, one is.
 */
static enum err_code frames_sum_add_cum(struct frames *f, struct frames_of *o, uint32_t node,
	uint32_t location, bool recursive, int64_t value, struct err *err)
{
	bool plain, repeated = false;
	const uint32_t *groups;
	uint32_t n, group;
	enum err_code rc;

	if ((rc = frames_groups(f, o, location, &groups, &n, &plain, err)))
		return rc;
	if (recursive && plain && n == 1 && !o->pruned.active)
		return ERR_OK;
	for (uint32_t i = 0; i < n; i++) {
		group = groups[i];
		if (group == GROUP_NONE || frames_sum_has_group(groups, i, group))
			continue;
		if (!plain || recursive) {
			if ((rc = frames_sum_above(f, o, node, group, &repeated, err)))
				return rc;
			if (repeated)
				continue;
		}
		if ((rc = frames_sum_touch(f, group, err)))
			return rc;
		f->cum[group] += value;
	}
	return ERR_OK;
}

static bool frames_sum_is_preempt(const struct frames *f, uint32_t group)
{
	return f->o.no_preempts && group != GROUP_NONE &&
		str_is(f->groups[group].v[FRAME_FUNCTION], "runtime.asyncPreempt");
}

/* The group of a stack's innermost frame. */
static enum err_code frames_sum_find_leaf(
	struct frames *f, struct frames_of *o, uint32_t stack, uint32_t *out, struct err *err)
{
	struct sym_node at;
	const uint32_t *groups;
	enum err_code rc;
	uint32_t n;
	bool plain;

	do {
		at = sym_node(o->partition, stack);
		if ((rc = frames_groups(f, o, at.location, &groups, &n, &plain, err)))
			return rc;
		*out = groups[0];
		stack = at.parent;
	} while (stack != 0 && frames_sum_is_preempt(f, *out));
	return ERR_OK;
}

static enum err_code frames_sum_add_flat(
	struct frames *f, struct frames_of *o, const struct part *part, struct err *err)
{
	enum err_code rc;
	uint32_t group;

	for (size_t i = 0; i < part->n; i++) {
		const struct cell *c = &part->cells[i];
		uint32_t stack = pruned_stack(&o->pruned, c->stack);

		if (stack == 0) /* an empty stack is nobody's */
			continue;
		if ((rc = frames_sum_find_leaf(f, o, stack, &group, err)))
			return rc;
		if (group == GROUP_NONE)
			continue;
		if ((rc = frames_sum_touch(f, group, err)))
			return rc;
		f->flat[group] += c->value - c->base;
	}
	return ERR_OK;
}

/* Costs that are known by name only; the query asks for names alone. */
static enum err_code frames_sum_add_names(
	struct frames *f, const struct part *part, struct err *err)
{
	for (size_t i = 0; i < part->names_n; i++) {
		const struct function_sum *sum = &part->names[i];
		struct str name = sum->unnamed ? sym_string(part->partition, sum->name) :
										 sym_shown_string(part->partition, sum->name);
		struct frame_group key = { 0 };
		bool keep = true;
		uint32_t group;
		enum err_code rc;

		key.v[FRAME_FUNCTION] = sum->unnamed ? frame_binary_name(f->work->arena, name) : name;
		if (f->o.as_pprof && sum->unnamed)
			key.objfile = name;
		for (size_t k = 0; k < f->o.matchers_n && keep; k++)
			keep = matcher_test(&f->o.matchers[k], key.v[FRAME_FUNCTION]);
		if (!keep)
			continue;
		if ((rc = frames_intern(f, &key, &group, err)) || (rc = frames_sum_touch(f, group, err)))
			return rc;
		f->flat[group] += sum->flat;
		f->cum[group] += sum->cum;
	}
	return ERR_OK;
}

/* Zeroed; the old content is lost. */
static enum err_code frames_sum_nodes_room(struct frames *f, size_t n, struct err *err)
{
	enum err_code rc;

	if (n <= f->nodes_cap)
		return ERR_OK;
	if ((rc = frames_sum_charge(f,
			 (n - f->nodes_cap) * sizeof(*f->nodes) +
				 (n - f->nodes_cap + 63) / 64 * sizeof(*f->met),
			 err)))
		return rc;
	free(f->nodes);
	free(f->met);
	f->nodes_cap = 0;
	f->nodes = calloc(n, sizeof(*f->nodes));
	f->met = calloc(n / 64 + 1, sizeof(*f->met));
	if (!f->nodes || !f->met)
		return work_nomem(f->work, err);
	f->nodes_cap = n;
	return ERR_OK;
}

static inline void frames_sum_add_node(struct frames *f, uint32_t node, int64_t value)
{
	f->nodes[node] += value;
	f->met[node / 64] |= UINT64_C(1) << (node & 63);
}

/* Nodes that were met, from the last: parents are below their children. */
static enum err_code frames_sum_add_subtrees(
	struct frames *f, struct frames_of *o, size_t nodes, struct err *err)
{
	enum err_code rc;

	for (size_t w = nodes / 64 + 1; w-- > 0;) {
		if (w % 1024 == 0 && (rc = work_check(f->work, err)))
			return rc;
		while (f->met[w]) {
			unsigned bit = 63 - (unsigned)__builtin_clzll(f->met[w]);
			uint32_t id = (uint32_t)(w * 64 + bit);
			int64_t v = f->nodes[id];
			struct sym_node node;
			bool recursive;

			f->met[w] ^= UINT64_C(1) << bit;
			f->nodes[id] = 0;
			if (v == 0 || id == 0)
				continue;
			node = sym_node_marked(o->partition, id, &recursive);
			frames_sum_add_node(f, node.parent, v);
			if ((rc = frames_sum_add_cum(f, o, id, node.location, recursive, v, err)))
				return rc;
		}
	}
	return ERR_OK;
}

/* ---- groups that several functions may be in ---- */

struct frames_sum_walk {
	const struct frames_step *v;
	uint32_t *on_way; /* per group: frames of it on the way to the node in work */
};

static void frames_sum_walk_count(
	struct frames_sum_walk *w, const uint32_t *groups, uint32_t n, uint32_t by)
{
	for (uint32_t i = 0; i < n; i++)
		if (groups[i] != GROUP_NONE)
			w->on_way[groups[i]] += by;
}

static enum err_code frames_sum_enter(struct frames *f, struct frames_of *o,
	struct frames_sum_walk *w, const struct frames_step *at, struct err *err)
{
	const uint32_t *groups;
	enum err_code rc;
	uint32_t n;
	bool plain;

	if ((rc = frames_groups(f, o, at->location, &groups, &n, &plain, err)))
		return rc;
	for (uint32_t i = 0; i < n && at->v; i++) {
		if (groups[i] == GROUP_NONE || w->on_way[groups[i]] ||
			frames_sum_has_group(groups, i, groups[i]))
			continue;
		if ((rc = frames_sum_touch(f, groups[i], err)))
			return rc;
		f->cum[groups[i]] += at->v;
	}
	frames_sum_walk_count(w, groups, n, 1);
	return ERR_OK;
}

static enum err_code frames_sum_leave(struct frames *f, struct frames_of *o,
	struct frames_sum_walk *w, const struct frames_step *at, struct err *err)
{
	const uint32_t *groups;
	enum err_code rc;
	uint32_t n;
	bool plain;

	if ((rc = frames_groups(f, o, at->location, &groups, &n, &plain, err)))
		return rc;
	frames_sum_walk_count(w, groups, n, UINT32_MAX); /* one less */
	return ERR_OK;
}

static enum err_code frames_sum_walk_tree(struct frames *f, struct frames_of *o,
	struct frames_sum_walk *w, uint32_t root, struct err *err)
{
	enum err_code rc;
	size_t steps = 0;

	for (uint32_t at = root; at;) {
		const struct frames_step *s = &w->v[at - 1];

		if (steps++ % 65536 == 0 && (rc = work_check(f->work, err)))
			return rc;
		if ((rc = frames_sum_enter(f, o, w, s, err)))
			return rc;
		if (s->child) {
			at = s->child;
			continue;
		}
		for (;;) {
			if ((rc = frames_sum_leave(f, o, w, s, err)))
				return rc;
			if ((at = s->sibling) || !s->parent)
				break;
			s = &w->v[s->parent - 1];
		}
	}
	return ERR_OK;
}

static enum err_code frames_sum_steps_room(struct frames *f, size_t n, struct err *err)
{
	size_t cap = f->steps_cap ? 2 * f->steps_cap : 1024;
	enum err_code rc;

	if (n <= f->steps_cap)
		return ERR_OK;
	if ((rc = frames_sum_charge(f, (cap - f->steps_cap) * sizeof(*f->steps), err)))
		return rc;
	if (!frames_sum_grow(&f->steps, sizeof(*f->steps), cap))
		return work_nomem(f->work, err);
	f->steps_cap = cap;
	return ERR_OK;
}

/*
 * Takes the nodes that were met, from the last, with their subtrees' costs. f->nodes has a node's
 * number in the walk then.
 */
static enum err_code frames_sum_take_nodes(
	struct frames *f, struct frames_of *o, size_t nodes, uint32_t *n, struct err *err)
{
	const uint32_t *groups;
	enum err_code rc;
	uint32_t groups_n;
	bool plain;

	*n = 0;
	for (size_t w = nodes / 64 + 1; w-- > 0;) {
		if (w % 1024 == 0 && (rc = work_check(f->work, err)))
			return rc;
		while (f->met[w]) {
			unsigned bit = 63 - (unsigned)__builtin_clzll(f->met[w]);
			uint32_t id = (uint32_t)(w * 64 + bit);
			struct sym_node node;

			f->met[w] ^= UINT64_C(1) << bit;
			if (id == 0) {
				f->nodes[0] = 0;
				continue;
			}
			node = sym_node(o->partition, id);
			if ((rc = frames_sum_steps_room(f, *n + (size_t)1, err)) ||
				(rc = frames_groups(f, o, node.location, &groups, &groups_n, &plain, err)))
				return rc;
			f->steps[*n] = (struct frames_step){
				.v = f->nodes[id], .node = id, .location = node.location, .parent = node.parent
			};
			frames_sum_add_node(f, node.parent, f->nodes[id]);
			f->nodes[id] = ++*n;
		}
	}
	return ERR_OK;
}

/* Parents, still ids, become numbers; gives the first child of the root. f->nodes is all 0 again.
 */
static uint32_t frames_sum_link_nodes(struct frames *f, uint32_t n)
{
	uint32_t root = 0;

	for (uint32_t i = n; i-- > 0;) {
		struct frames_step *s = &f->steps[i];
		uint32_t *first = &root;

		s->parent = s->parent ? (uint32_t)f->nodes[s->parent] : 0;
		if (s->parent)
			first = &f->steps[s->parent - 1].child;
		s->sibling = *first;
		*first = i + 1;
	}
	for (uint32_t i = 0; i < n; i++)
		f->nodes[f->steps[i].node] = 0;
	return root;
}

static enum err_code frames_sum_walk_subtrees(
	struct frames *f, struct frames_of *o, size_t nodes, struct err *err)
{
	struct frames_sum_walk w = { 0 };
	uint32_t n, root;
	enum err_code rc;

	if ((rc = frames_sum_take_nodes(f, o, nodes, &n, err)))
		return rc;
	root = frames_sum_link_nodes(f, n);
	if (!(w.on_way = calloc(f->groups_n + 1, sizeof(*w.on_way))))
		return work_nomem(f->work, err);
	w.v = f->steps;
	rc = frames_sum_walk_tree(f, o, &w, root, err);
	free(w.on_way);
	return rc;
}

static enum err_code frames_sum_add_part(struct frames *f, const struct profile_value *p,
	const struct part *part, bool want_cum, struct err *err)
{
	struct frames_of *t = NULL;
	size_t nodes;
	enum err_code rc;

	if ((rc = frames_sum_add_names(f, part, err)) || part->n == 0)
		return rc;
	nodes = (size_t)part->cells[part->n - 1].stack + 1;
	if ((rc = frames_partition(f, part->partition, &t, err)) ||
		(rc = pruned_init(&t->pruned, p, part, f->work->arena, err)) ||
		(rc = frames_sum_add_flat(f, t, part, err)) || !want_cum ||
		(rc = frames_sum_nodes_room(f, nodes, err)))
		return rc;
	for (size_t i = 0; i < part->n; i++)
		frames_sum_add_node(f, pruned_stack(&t->pruned, part->cells[i].stack),
			part->cells[i].value - part->cells[i].base);
	rc = t->shown ? frames_sum_add_subtrees(f, t, nodes, err) :
					frames_sum_walk_subtrees(f, t, nodes, err);
	if (rc)
		f->nodes_cap = 0; /* not all are 0 again */
	return rc;
}

enum err_code frames_sum(struct frames *f, const struct profile_value *p, bool want_cum,
	struct frame_sums *out, struct err *err)
{
	enum err_code rc = work_check(f->work, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < f->touched_n; i++)
		f->is_touched[f->touched[i]] = 0;
	f->touched_n = 0;
	for (size_t i = 0; i < p->parts_n; i++)
		if ((rc = frames_sum_add_part(f, p, &p->parts[i], want_cum, err)))
			return rc;
	*out = (struct frame_sums){ f->touched, f->touched_n, f->flat, f->cum };
	return ERR_OK;
}
