/*
 * Pruning: removes the frames that a profile's drop_frames and keep_frames name.
 *
 * A frame whose name matches drop_frames (and not keep_frames) goes, with all that it calls, if a
 * frame that stays is above it. If a line of a location goes, the lines inlined below it go in
 * every stack.
 *
 * The rule sees frames through struct prune_source, so it serves everything that has locations
 * and functions by number. The caller walks its stacks from the root and calls prune_next for
 * each location.
 *
 * Ownership: arrays are in the arena; prune_release frees the expressions.
 * Threads:   one at a time.
 * Source:    google/pprof, profile/prune.go.
 */
#ifndef PROTO_REPORT_PRUNE_H
#define PROTO_REPORT_PRUNE_H

#include "base/str.h"

/*
 * Frames by number. Only locations given to prune_next, and the functions of their lines, are
 * read.
 */
struct prune_source {
	const void *ctx;
	uint32_t locations_n, functions_n;
	uint32_t (*lines_n)(const void *ctx, uint32_t location);
	/* The function of a line; line 0 is the innermost. */
	uint32_t (*line_function)(const void *ctx, uint32_t location, uint32_t line);
	struct str (*function_name)(const void *ctx, uint32_t function);
};

struct prune {
	bool active; /* false: all frames stay, line_skip is NULL */
	/* Per location that was given to prune_next: how many of its innermost lines go. */
	uint32_t *line_skip;
	/* private */
	struct prune_source source;
	struct regex *drop, *keep;
	char *functions, *locations; /* what is known of each */
};

/* The state of a walk from a stack's root to some location. */
enum prune_state {
	PRUNE_AT_ROOT, /* nothing that stays is above, so nothing is cut yet */
	PRUNE_GOES_ON,
	PRUNE_ENDS_HERE, /* the outer lines of the location stay; all below it goes */
	PRUNE_ENDED, /* the location goes, and all below it */
};

/* An empty `drop` prunes nothing, and so does an expression that does not compile, as in pprof. */
MUST_CHECK enum err_code prune_init(struct prune *p, const struct prune_source *source,
	struct str drop, struct str keep, struct arena *a, struct err *err);
void prune_release(struct prune *p); /* line_skip stays */

/* The state at a location, from the state at its caller. p is active. */
enum prune_state prune_next(struct prune *p, enum prune_state above, uint32_t location);

#endif
