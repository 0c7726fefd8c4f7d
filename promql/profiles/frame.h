/*
 * Frames as reports show them: their names, and the stacks that pruning leaves.
 *
 * Ownership: names point into symbols or into the arena.
 * Threads:   any.
 * Source:    google/pprof, internal/graph.
 */
#ifndef PROMQL_PROFILES_FRAME_H
#define PROMQL_PROFILES_FRAME_H

#include "promql/value/value.h"

/* The function's name; without one, or without a line (NULL), the binary's. */
struct str frame_name(struct arena *a, const struct partition *p, const struct sym_location *l,
	const struct sym_line *line);

/* The same, but a frame without a name is "[base+0x1f]": its place in its binary's file. */
struct str frame_address_name(struct arena *a, const struct partition *p,
	const struct sym_location *l, const struct sym_line *line);

/*
 * Expressions match names as they are shown. An expression that begins with "_Z" or "_R", or has
 * an alternative that does, is about symbols: it is also tried on mangled names, so that it finds
 * what it was written for.
 */
bool frame_means_symbol(struct str expression);
/* It has "+0x": frames without a name are meant, as frame_address_name shows them. */
bool frame_means_address(struct str expression);
/* The mangled name of a function that is shown demangled, else "". */
struct str frame_symbol(const struct partition *p, const struct sym_function *f);
/* True if a matcher of functions matches f; name_matches: it matches the name that is shown. */
bool frame_symbol_matches(const struct matcher *m, const struct partition *p,
	const struct sym_function *f, bool name_matches);

/* drop_frames and keep_frames of a profile, from its first header that has any. */
void profile_drop_frames(const struct profile_value *p, struct str *drop, struct str *keep);

/* The stacks of a partition after pruning (proto/report/prune.h). */
struct pruned {
	bool active; /* false: all frames stay, the arrays are NULL */
	uint32_t *stack; /* per node: the node where its stack ends now */
	uint32_t *line_skip; /* per location: how many of its innermost lines go */
};
MUST_CHECK enum err_code pruned_init(struct pruned *pruned, const struct profile_value *p,
	const struct part *part, struct arena *a, struct err *err);

static inline uint32_t pruned_stack(const struct pruned *p, uint32_t stack)
{
	return p->active ? p->stack[stack] : stack;
}

static inline uint32_t pruned_line(const struct pruned *p, uint32_t location)
{
	return p->active ? p->line_skip[location] : 0;
}

#endif
