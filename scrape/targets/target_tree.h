/*
 * Tree: what became of a job's groups, in the shape in which discovery delivers them: a leaf for
 * each set of groups that it delivers as one, with its part (target_part.h), and a node for each
 * bundle of sets. A tree that follows another one takes over all nodes whose groups are the same
 * objects, so it costs what changed, and the number of nodes beside it.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT.
 * Ownership: a node is counted; it holds its groups, its part and its children.
 * Threads:   immutable once made, but for `taken`, which is of the thread that makes trees.
 */
#ifndef SCRAPE_TARGETS_TARGET_TREE_H
#define SCRAPE_TARGETS_TARGET_TREE_H

#include "scrape/targets/target_part.h"

struct target_node {
	atomic_uint refs;
	struct groups *groups; /* held */
	struct target_piece sum; /* a leaf's own; else of all below, without a part */
	size_t dropped_kept; /* labels of dropped targets in the parts */
	const struct target_part *wrong; /* the first part below with an error, or NULL */
	struct target_node **children; /* in the order of the groups */
	size_t n; /* 0: a leaf */
	uint64_t taken; /* number of the latest tree that it was found for */
};

/* A tree, and how it differs from the one before it. */
struct target_tree {
	struct target_node *root; /* one reference */
	struct target_part **fresh; /* parts that the one before has not */
	size_t fresh_n, fresh_cap;
	struct target_part **gone; /* parts of the one before that this one has not */
	size_t gone_n, gone_cap;
};

/*
 * o: as of target_part_make; the maxima are of the whole tree. number: no other tree has it.
 * before: NULL: none. target_tree_release frees the lists, not the root.
 */
MUST_CHECK enum err_code target_tree_follow(const struct target_part_options *o, uint64_t number,
	struct groups *groups, struct target_node *before, struct target_tree *out, struct err *err);
void target_tree_release(struct target_tree *t);

struct target_node *target_node_ref(struct target_node *n);
void target_node_unref(struct target_node *n); /* NULL is fine */
/* In the order of the groups. */
void target_node_each_part(
	const struct target_node *n, void (*fn)(void *ctx, struct target_part *p), void *ctx);

#endif
