/*
 * A tree of calls that becomes a struct pprof. Private to proto/folded.
 *
 * Node 0 is the root and no frame. Frames are locations of the builder, by their ids. Memory
 * follows the number of different stacks, not that of events.
 */
#ifndef PROTO_FOLDED_CALLS_H
#define PROTO_FOLDED_CALLS_H

#include "base/map.h"
#include "proto/folded/folded.h"

#define CALLS_ROOT 0u

struct folded_call {
	uint32_t parent, frame, depth;
	int64_t value; /* in the node itself */
};

struct calls {
	struct arena *a;
	const struct pprof_limits *limits;
	const struct folded_meaning *meaning;
	struct err *err;
	struct pprof_builder *b;
	struct pprof *p; /* the builder's */
	struct folded_call *nodes;
	uint32_t nodes_n, nodes_cap;
	struct map children; /* of all nodes, by parent and frame */
	uint64_t seed; /* of its hashes */
	uint32_t *by_string; /* location + 1 of a name; 0: none */
	uint32_t by_string_cap;
	uint64_t values_n; /* added so far */
};

/* calls_close is called in any case, and calls_finish before it. */
MUST_CHECK enum err_code calls_open(struct calls *c, struct arena *a,
	const struct folded_meaning *meaning, const struct pprof_limits *limits, struct err *err);
void calls_close(struct calls *c);

/* A frame by its name, which is not empty. The same name is the same frame. */
MUST_CHECK enum err_code calls_frame(struct calls *c, struct str name, uint32_t *frame);
/* A frame of its own. */
MUST_CHECK enum err_code calls_frame_at(struct calls *c, struct str name, struct str file,
	int64_t line, int64_t column, uint32_t *frame);

/* The node of a frame called from a node. */
MUST_CHECK enum err_code calls_child(
	struct calls *c, uint32_t parent, uint32_t frame, uint32_t *node);
/* The node of "a;b" below a node; empty frames are left out. */
MUST_CHECK enum err_code calls_path(
	struct calls *c, uint32_t parent, struct str path, uint32_t *node);
/* Adds value x scale to a node. value is not negative. */
MUST_CHECK enum err_code calls_add(struct calls *c, uint32_t node, int64_t value, int64_t scale);

MUST_CHECK enum err_code calls_finish(struct calls *c, struct pprof **out);

/* The other formats: each adds all of a body. */
MUST_CHECK enum err_code folded_stacks(struct calls *c, struct str raw);
MUST_CHECK enum err_code folded_lines(struct calls *c, struct str raw);
MUST_CHECK enum err_code folded_trie(struct calls *c, struct str raw);
MUST_CHECK enum err_code folded_tree(struct calls *c, struct str raw);
MUST_CHECK enum err_code speedscope_decode(struct arena *a, struct str raw,
	const struct folded_meaning *meaning, const struct pprof_limits *limits,
	struct folded_profile **out, uint32_t *n, struct err *err);

#endif
