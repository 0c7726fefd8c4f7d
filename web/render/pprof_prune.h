/*
 * Pruning: what drop_frames and keep_frames take away from the leaf end of a profile's stacks.
 *
 * A frame whose name matches drop_frames (and not keep_frames) goes with all that it calls, if a
 * frame that stays stands above it. Inlined frames below a match go everywhere.
 *
 * Ownership: scratch in the arena.
 * Threads:   any.
 * Source:    google/pprof, profile/prune.go.
 */
#ifndef WEB_RENDER_PPROF_PRUNE_H
#define WEB_RENDER_PPROF_PRUNE_H

#include "proto/pprof.h"

struct pruning {
	bool active;
	uint32_t *line_skip; /* per location: lines gone from the innermost end */
	bool *cut; /* per location: the whole of it matched */
	bool *cut_below; /* per location: some line of it matched */
};

/* An expression that does not compile prunes nothing, as in pprof. */
MUST_CHECK enum err_code pruning_init(
	struct pruning *r, const struct pprof *p, struct arena *a, struct err *err);

/* The index in s's locations of the first that stays (0: all stay); location_n where none does. */
uint32_t pruning_first(
	const struct pruning *r, const struct pprof *p, const struct pprof_sample *s);

#endif
