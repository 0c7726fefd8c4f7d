/*
 * Frame tree: the stacks of profiles as a tree of names, root first. Frames of one name below one
 * parent are one node, of any line, file, address or job.
 *
 * Node 0 is the root, and a parent's id is below its children's. Sides: 0 new, 1 base (diffs).
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT from the arena; ERR_CANCELED.
 * Ownership: in the arena; frame_tree_release frees the rest. Names point into symbols.
 * Threads:   one at a time.
 */
#ifndef WEB_RENDER_FRAME_TREE_H
#define WEB_RENDER_FRAME_TREE_H

#include "base/map.h"
#include "promql/value/value.h"

#define NO_STACK STR("[no stack]") /* the frame of stacks without frames */

struct tree_node {
	uint32_t parent, name;
	int64_t self[2], total[2]; /* total is set by frame_tree_total */
};

/*
 * A part of a tree: the stacks that begin with a path, root first. With `rest` those that end there
 * are left out, and those that go on into the `skip` heaviest children (of equals, those found
 * first). That is what a tree cut to its heaviest nodes has as "other" below the path, if it shows
 * `skip` children there.
 */
struct tree_part {
	const struct str *path;
	size_t n; /* 0: the root */
	bool rest;
	size_t skip;
};

struct frame_tree {
	struct arena *arena;
	struct tree_node *nodes;
	uint32_t n, cap;
	struct str *names;
	uint32_t names_n, names_cap;
	struct map node_map, name_map;
	const atomic_bool *canceled; /* cancels frame_tree_add; may be NULL, as at first */
};

MUST_CHECK enum err_code frame_tree_init(struct frame_tree *t, struct arena *a, struct err *err);
void frame_tree_release(struct frame_tree *t);
/* Finds the child of `parent` with this name, or makes it. */
MUST_CHECK enum err_code frame_tree_child(
	struct frame_tree *t, uint32_t parent, struct str name, uint32_t *out, struct err *err);
/* The id of a name, made if there is none. The text is not copied. */
MUST_CHECK enum err_code frame_tree_intern(
	struct frame_tree *t, struct str name, uint32_t *out, struct err *err);
/* The id of a name; MAP_NONE if there is none. */
uint32_t frame_tree_name(const struct frame_tree *t, struct str name);
/* Adds a profile's stacks below a node. */
MUST_CHECK enum err_code frame_tree_add(
	struct frame_tree *t, uint32_t below, const struct profile_value *p, struct err *err);
/*
 * Adds one side (0 new, 1 base) by sign: self[0] is the sum of costs above 0, self[1] the
 * magnitude of those below, so that nothing cancels out.
 */
MUST_CHECK enum err_code frame_tree_add_signed(
	struct frame_tree *t, uint32_t below, const struct profile_value *p, int side, struct err *err);
/* Sets costs to 0 in stacks that do not begin with these frames, root first. n is not 0. */
MUST_CHECK enum err_code frame_tree_keep(
	struct frame_tree *t, const struct str *path, size_t n, struct err *err);
/* Sets totals. Negative costs become 0, since a picture has no place for them. */
void frame_tree_total(struct frame_tree *t);
/* Keeps a part, and sets totals. */
MUST_CHECK enum err_code frame_tree_total_part(
	struct frame_tree *t, const struct tree_part *part, struct err *err);

#endif
