/*
 * A new tree is made level by level. On each level the wanted sets of groups look for themselves
 * among the old nodes of that level. Those that are not found become new nodes, and what they are
 * made of is wanted on the next level; likewise the old nodes that nobody wanted are opened. So
 * nodes that stay are never opened, and what is opened is what changed.
 */
#include "scrape/targets/target_tree.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"

struct target_tree_want {
	struct groups *groups;
	struct target_node **at; /* where its node goes */
};

struct level {
	struct target_tree_want *wants;
	size_t wants_n, wants_cap;
	struct target_node **old;
	size_t old_n, old_cap;
	uint32_t *slots; /* of old, by groups: index + 1; 0: free */
	size_t mask;
};

struct target_tree_making {
	const struct target_part_options *o;
	uint64_t number;
	struct target_tree *tree;
	struct level now, next;
	struct target_node **made; /* parents first */
	size_t made_n, made_cap;
	size_t dropped, elsewhere; /* so far */
};

static enum err_code target_tree_no_memory(struct err *err)
{
	return err_nomem(err, "targets");
}

/* ---- nodes ---- */

static struct target_node *target_tree_node_new(struct groups *groups)
{
	struct target_node *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	if (groups->parts_n && !(n->children = calloc(groups->parts_n, sizeof(*n->children)))) {
		free(n);
		return NULL;
	}
	atomic_init(&n->refs, 1);
	n->groups = groups_ref(groups);
	n->n = groups->parts_n;
	return n;
}

struct target_node *target_node_ref(struct target_node *n)
{
	unsigned before = atomic_fetch_add(&n->refs, 1);

	assert(before > 0);
	return n;
}

void target_node_unref(struct target_node *n)
{
	if (!n || atomic_fetch_sub(&n->refs, 1) != 1)
		return;
	for (size_t i = 0; i < n->n; i++)
		target_node_unref(n->children[i]);
	target_part_unref(n->sum.part);
	groups_unref(n->groups);
	free(n->children);
	free(n);
}

void target_node_each_part(
	const struct target_node *n, void (*fn)(void *ctx, struct target_part *p), void *ctx)
{
	if (n->sum.part)
		fn(ctx, n->sum.part);
	for (size_t i = 0; i < n->n; i++)
		target_node_each_part(n->children[i], fn, ctx);
}

/* ---- levels ---- */

static size_t level_slot_of(const struct level *l, const struct groups *groups)
{
	return map_hash_u64((uint64_t)(uintptr_t)groups) & l->mask;
}

static enum err_code level_index_old(struct level *l, struct err *err)
{
	size_t n = 16, at;

	while (n < 2 * l->old_n)
		n *= 2;
	if (!(l->slots = calloc(n, sizeof(*l->slots))))
		return target_tree_no_memory(err);
	l->mask = n - 1;
	for (size_t i = 0; i < l->old_n; i++) {
		for (at = level_slot_of(l, l->old[i]->groups); l->slots[at]; at = (at + 1) & l->mask)
			;
		l->slots[at] = (uint32_t)i + 1;
	}
	return ERR_OK;
}

/* The same groups may be there twice: each node is taken once. */
static struct target_node *target_tree_find_old(
	const struct target_tree_making *m, const struct groups *groups)
{
	const struct level *l = &m->now;
	struct target_node *n;

	for (size_t at = level_slot_of(l, groups); l->slots[at]; at = (at + 1) & l->mask) {
		n = l->old[l->slots[at] - 1];
		if (n->groups == groups && n->taken != m->number)
			return n;
	}
	return NULL;
}

static bool level_push_want(struct level *l, struct groups *groups, struct target_node **at)
{
	if (!array_room(&l->wants, l->wants_n, 1, &l->wants_cap))
		return false;
	l->wants[l->wants_n++] = (struct target_tree_want){ groups, at };
	return true;
}

static bool level_push_old(struct level *l, struct target_node *n)
{
	if (!array_room(&l->old, l->old_n, 1, &l->old_cap))
		return false;
	l->old[l->old_n++] = n;
	return true;
}

static void level_release(struct level *l)
{
	free(l->wants);
	free(l->old);
	free(l->slots);
	*l = (struct level){ 0 };
}

/* ---- growing ---- */

static enum err_code target_tree_satisfy(
	struct target_tree_making *m, const struct target_tree_want *w, struct err *err)
{
	struct target_node *n = target_tree_find_old(m, w->groups);

	if (n) {
		n->taken = m->number;
		*w->at = target_node_ref(n);
		m->dropped += n->dropped_kept;
		m->elsewhere += n->sum.elsewhere;
		return ERR_OK;
	}
	if (!(n = target_tree_node_new(w->groups)))
		return target_tree_no_memory(err);
	*w->at = n;
	if (!array_room(&m->made, m->made_n, 1, &m->made_cap))
		return target_tree_no_memory(err);
	m->made[m->made_n++] = n;
	for (size_t i = 0; i < n->n; i++)
		if (!level_push_want(&m->next, w->groups->parts[i], &n->children[i]))
			return target_tree_no_memory(err);
	return ERR_OK;
}

/* Nobody wanted it. */
static enum err_code target_tree_open_old(
	struct target_tree_making *m, struct target_node *n, struct err *err)
{
	struct target_tree *t = m->tree;

	for (size_t i = 0; i < n->n; i++)
		if (!level_push_old(&m->next, n->children[i]))
			return target_tree_no_memory(err);
	if (!n->sum.part)
		return ERR_OK;
	if (!array_room(&t->gone, t->gone_n, 1, &t->gone_cap))
		return target_tree_no_memory(err);
	t->gone[t->gone_n++] = n->sum.part;
	return ERR_OK;
}

static enum err_code target_tree_grow(struct target_tree_making *m, struct err *err)
{
	enum err_code rc = ERR_OK;

	while (!rc && (m->now.wants_n || m->now.old_n)) {
		rc = level_index_old(&m->now, err);
		for (size_t i = 0; i < m->now.wants_n && !rc; i++)
			rc = target_tree_satisfy(m, &m->now.wants[i], err);
		for (size_t i = 0; i < m->now.old_n && !rc; i++)
			if (m->now.old[i]->taken != m->number)
				rc = target_tree_open_old(m, m->now.old[i], err);
		level_release(&m->now);
		m->now = m->next;
		m->next = (struct level){ 0 };
	}
	return rc;
}

static enum err_code target_tree_make_part(
	struct target_tree_making *m, struct target_node *n, struct err *err)
{
	struct target_part_options o = *m->o;
	struct target_tree *t = m->tree;
	enum err_code rc;

	if (!n->groups->n)
		return ERR_OK;
	o.dropped_max -= m->dropped < o.dropped_max ? m->dropped : o.dropped_max;
	o.elsewhere_max -= m->elsewhere < o.elsewhere_max ? m->elsewhere : o.elsewhere_max;
	if ((rc = target_part_make(&o, n->groups, &n->sum, err)) || !n->sum.part)
		return rc;
	n->dropped_kept = n->sum.part->dropped_n;
	n->wrong = n->sum.part->error.len ? n->sum.part : NULL;
	m->dropped += n->dropped_kept;
	m->elsewhere += n->sum.elsewhere;
	if (!array_room(&t->fresh, t->fresh_n, 1, &t->fresh_cap))
		return target_tree_no_memory(err);
	t->fresh[t->fresh_n++] = n->sum.part;
	return ERR_OK;
}

static void target_node_add_up(struct target_node *n)
{
	const struct target_node *c;

	for (size_t i = 0; i < n->n; i++) {
		c = n->children[i];
		n->sum.targets += c->sum.targets;
		n->sum.dropped += c->sum.dropped;
		n->sum.elsewhere += c->sum.elsewhere;
		n->sum.waiting += c->sum.waiting;
		n->sum.errors += c->sum.errors;
		n->dropped_kept += c->dropped_kept;
		if (!n->wrong)
			n->wrong = c->wrong;
	}
}

enum err_code target_tree_follow(const struct target_part_options *o, uint64_t number,
	struct groups *groups, struct target_node *before, struct target_tree *out, struct err *err)
{
	struct target_tree tree = { 0 };
	struct target_tree_making m = { .o = o, .number = number, .tree = &tree };
	enum err_code rc = ERR_OK;

	if (!level_push_want(&m.now, groups, &tree.root) || (before && !level_push_old(&m.now, before)))
		rc = target_tree_no_memory(err);
	if (!rc)
		rc = target_tree_grow(&m, err);
	for (size_t i = 0; i < m.made_n && !rc; i++)
		if (!m.made[i]->n)
			rc = target_tree_make_part(&m, m.made[i], err);
	for (size_t i = m.made_n; i-- > 0 && !rc;)
		target_node_add_up(m.made[i]);
	level_release(&m.now);
	level_release(&m.next);
	free(m.made);
	if (rc) {
		target_node_unref(tree.root);
		target_tree_release(&tree);
		return rc;
	}
	*out = tree;
	return ERR_OK;
}

void target_tree_release(struct target_tree *t)
{
	free(t->fresh);
	free(t->gone);
	t->fresh = t->gone = NULL;
}
