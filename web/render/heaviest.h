/*
 * The heaviest nodes of a frame tree, without building the rest of it.
 *
 * A child is never heavier than its parent. So the tree is unfolded from the root, the heaviest
 * node first, and only children of nodes that are kept get a name.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT from the tree's arena; ERR_CANCELED.
 * Ownership: in the tree's arena.
 * Threads:   one at a time.
 */
#ifndef WEB_RENDER_HEAVIEST_H
#define WEB_RENDER_HEAVIEST_H

#include "web/render/frame_tree.h"

/* No cost of the profile is negative. With one that is, a child may be heavier than its parent. */
bool heaviest_can(const struct profile_value *p);

/*
 * Adds the max_nodes heaviest nodes of the profile, or of a part of it (NULL: all), to an empty
 * tree, with their own costs and totals. Those on the path to the part come first, have its total
 * and no own costs, and count for max_nodes but are never left out. *other has, per node, the total
 * of its children that are left out; these are lighter than all nodes that are kept, or as heavy as
 * the lightest of them. Nodes without a cost are left out.
 */
MUST_CHECK enum err_code frame_tree_heaviest(struct frame_tree *t, const struct profile_value *p,
	const struct tree_part *part, size_t max_nodes, int64_t (**other)[2], struct err *err);

#endif
