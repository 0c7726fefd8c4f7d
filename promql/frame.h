/*
 * Frames as reports show them: the name of what has none, and what drop_frames takes away.
 *
 * Ownership: names point into symbols or into the arena.
 * Threads:   any.
 * Source:    google/pprof: internal/graph (names), profile/prune.go.
 */
#ifndef PROMQL_FRAME_H
#define PROMQL_FRAME_H

#include "promql/value.h"
#include "proto/report/frame_text.h"

/* The function's name; where there is none, or no line (NULL), the binary's. */
struct str frame_name(struct arena *a, const struct partition *p, const struct sym_location *l,
	const struct sym_line *line);

/* The same, but what has no name is "[base+0x1f]", by its place in the binary's mapping. */
struct str frame_address_name(struct arena *a, const struct partition *p,
	const struct sym_location *l, const struct sym_line *line);

/*
 * Names are matched as they are shown. An expression with "_Z" or "_R" at its beginning, or at that
 * of an alternative, is about symbols: it is tried on them too, so that one that was written for
 * mangled names finds what it did.
 */
bool frame_means_symbol(struct str expression);
/* The mangled name of what is shown demangled; "": it is no such function. */
struct str frame_symbol(const struct partition *p, const struct sym_function *f);
/* What a matcher of functions says of f, where it says name_matches of the name that is shown. */
bool frame_symbol_matches(const struct matcher *m, const struct partition *p,
	const struct sym_function *f, bool name_matches);

/* drop_frames and keep_frames of a profile: those of its first header that has any. */
void profile_drop_frames(const struct profile_value *p, struct str *drop, struct str *keep);

/* The stacks of a partition without what was dropped (proto/report/prune.h). */
struct pruned {
	bool active; /* false: everything stays, the arrays are NULL */
	uint32_t *stack; /* per node: the node that its stack ends at now */
	uint32_t *line_skip; /* per location: lines gone from the innermost end */
};
MUST_CHECK enum err_code pruned_init(struct pruned *r, const struct profile_value *p,
	const struct part *part, struct arena *a, struct err *err);

static inline uint32_t pruned_stack(const struct pruned *r, uint32_t stack)
{
	return r->active ? r->stack[stack] : stack;
}

static inline uint32_t pruned_line(const struct pruned *r, uint32_t location)
{
	return r->active ? r->line_skip[location] : 0;
}

#endif
