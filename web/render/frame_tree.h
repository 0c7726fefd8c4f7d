/*
 * Frame tree: the stacks of profiles as a tree of names, root first; frames of one name below one
 * parent are one node, whatever line, file, address or job they come from.
 *
 * Node 0 is the root and a parent's id is below its children's. Sides: 0 new, 1 base (diffs).
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT from the arena; ERR_CANCELED.
 * Ownership: in the arena; frame_tree_release ends the rest. Names point into symbols.
 * Threads:   one at a time.
 */
#ifndef WEB_RENDER_FRAME_TREE_H
#define WEB_RENDER_FRAME_TREE_H

#include "base/map.h"
#include "promql/value.h"

#define NO_STACK STR("[no stack]") /* the frame of stacks without frames */

struct tree_node {
	uint32_t parent, name;
	int64_t self[2], total[2]; /* total after frame_tree_total */
};

struct frame_tree {
	struct arena *arena;
	struct tree_node *nodes;
	uint32_t n, cap;
	struct str *names;
	uint32_t names_n, names_cap;
	struct map node_map, name_map;
	bool addresses; /* frames without a name are told apart by where they are in their binary */
	const atomic_bool *canceled; /* ends frame_tree_add; NULL, as at first: is not asked */
};

MUST_CHECK enum err_code frame_tree_init(struct frame_tree *t, struct arena *a, struct err *err);
void frame_tree_release(struct frame_tree *t);
/* The child of `parent` with this name, made where it is missing. */
MUST_CHECK enum err_code frame_tree_child(
	struct frame_tree *t, uint32_t parent, struct str name, uint32_t *out, struct err *err);
/* The id of a name; MAP_NONE: there is none such. */
uint32_t frame_tree_name(const struct frame_tree *t, struct str name);
/* Adds a profile's stacks below a node. */
MUST_CHECK enum err_code frame_tree_add(
	struct frame_tree *t, uint32_t below, const struct profile_value *p, struct err *err);
/*
 * The same of one side alone (0 new, 1 base), by sign: self[0] is the sum of what is above 0,
 * self[1] the magnitude of what is below. So nothing cancels out.
 */
MUST_CHECK enum err_code frame_tree_add_signed(
	struct frame_tree *t, uint32_t below, const struct profile_value *p, int side, struct err *err);
/* Costs of stacks that do not begin with these frames, root first, are gone. */
MUST_CHECK enum err_code frame_tree_keep(
	struct frame_tree *t, const struct str *path, size_t n, struct err *err);
/* Negative costs count as nothing: a picture has no place for them. Fills in total. */
void frame_tree_total(struct frame_tree *t);

#endif
