/*
 * Frames: groups of frames by the fields asked for (function, line, ...), and the costs of each
 * group.
 *
 * A frame is one line of a location, or the location itself if it has no lines. Groups are found
 * once per location and kept, so one framing serves all elements of a query.
 *
 * Ownership: groups' strings point into the symbols or into the arena. frames_close ends the rest.
 * Threads:   one query, one thread.
 * Source:    google/pprof, internal/graph: names of what has no function.
 */
#ifndef PROMQL_PROFILES_FRAMES_H
#define PROMQL_PROFILES_FRAMES_H

#include "promql/syntax/functions.h"
#include "promql/value/work.h"

#define FRAME_BIT(field) (1u << (field))
#define GROUP_NONE UINT32_MAX

struct frame_group {
	struct str v[FRAME_FIELDS]; /* of the fields asked for */
	/* For top(): pprof tells nodes without a name apart by these. */
	struct str objfile;
	int64_t start_line;
};

struct frames;

struct frames_options {
	unsigned fields; /* FRAME_BITs */
	bool as_pprof; /* groups are the nodes of pprof's reports: fields is ignored */
	const struct matcher *matchers;
	size_t matchers_n;
	/*
	 * Flat costs of runtime.asyncPreempt are those of the function that it interrupts: where
	 * processors are busy, a third of a loop's samples land there.
	 */
	bool no_preempts;
};

MUST_CHECK enum err_code frames_open(
	struct work *work, const struct frames_options *o, struct frames **out, struct err *err);
void frames_close(struct frames *f); /* NULL is fine */

const struct frame_group *frames_group(const struct frames *f, uint32_t group);

/* Costs of the groups that a profile touches; valid until the next frames_sum. */
struct frame_sums {
	const uint32_t *groups; /* in order of first appearance */
	size_t n;
	const int64_t *flat, *cum; /* by group */
};

/* value - base; cum counts a group once per stack. want_cum: else only flat is filled in. */
MUST_CHECK enum err_code frames_sum(struct frames *f, const struct profile_value *p, bool want_cum,
	struct frame_sums *out, struct err *err);

#endif
