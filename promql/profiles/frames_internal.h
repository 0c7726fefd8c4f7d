/*
 * Frames, the inside: what grouping (frames.c) and adding up (frames_sum.c) share.
 *
 * Errors, Threads: as frames.h.
 */
#ifndef PROMQL_PROFILES_FRAMES_INTERNAL_H
#define PROMQL_PROFILES_FRAMES_INTERNAL_H

#include "base/map.h"
#include "promql/profiles/frame.h"
#include "promql/profiles/frames.h"

/* The frames of a location, per partition. */
struct frames_of {
	struct partition *partition;
	uint32_t *first; /* per location: index into ids + 1 of its head; 0: not looked at yet */
	uint32_t first_n;
	struct pruned pruned; /* by the profile in work */
	const struct shown_names
		*shown; /* groups are names, and all functions are the partition's own */
	struct frames_of *next;
};

/* A node of a walk. Numbers are those of nodes in the walk, + 1; 0: none. */
struct frames_step {
	int64_t v; /* of its subtree */
	uint32_t node, location, parent, child, sibling;
};

struct frames {
	struct work *work;
	struct frames_options o;
	bool by_name; /* groups are exactly functions' names */
	struct frames_of *partitions;
	uint32_t *ids; /* location after location: a head, and the groups of its frames */
	size_t ids_n, ids_cap;
	struct frame_group *groups;
	size_t groups_n, groups_cap;
	struct map map;
	/* of the sum in work */
	int64_t *flat, *cum;
	uint32_t *touched;
	char *is_touched;
	size_t touched_n, sums_cap;
	int64_t *nodes; /* all 0 between sums, as the bits are */
	uint64_t *met; /* a bit per node */
	size_t nodes_cap;
	struct frames_step *steps; /* parents behind their children */
	size_t steps_cap;
	size_t charged; /* bytes of these arrays, taken from the query's budget */
};

/* A location's head: the number of its frames; if each has a name that no other function has. */
#define HEAD_PLAIN 1u
#define HEAD_N_SHIFT 1u

MUST_CHECK enum err_code frames_partition(
	struct frames *f, struct partition *p, struct frames_of **out, struct err *err);
/* A group of these fields, by its content. */
MUST_CHECK enum err_code frames_intern(
	struct frames *f, const struct frame_group *key, uint32_t *out, struct err *err);
/* The groups of a location that is not known yet. */
MUST_CHECK enum err_code frames_look_up(
	struct frames *f, struct frames_of *o, uint32_t location, struct err *err);

/* The groups of a location's frames that are not dropped, innermost first; at least one. */
static inline enum err_code frames_groups(struct frames *f, struct frames_of *o, uint32_t location,
	const uint32_t **out, uint32_t *n, bool *plain, struct err *err)
{
	enum err_code rc;
	uint32_t skip;

	if (__builtin_expect(!o->first[location], 0) && (rc = frames_look_up(f, o, location, err)))
		return rc;
	skip = pruned_line(&o->pruned, location);
	*out = f->ids + o->first[location];
	*plain = (*out)[-1] & HEAD_PLAIN;
	*n = ((*out)[-1] >> HEAD_N_SHIFT) - skip;
	*out += skip;
	return ERR_OK;
}

#endif
