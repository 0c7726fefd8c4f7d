/*
 * Filters: focus, ignore, hide, show, show_from, prune_from, tagfocus, tagignore, noinlines as go
 * tool pprof's options of these names, and callers, callees. Private to promql/.
 *
 * An expression is not anchored. It matches a frame by its function's name or file, or by the file
 * of the location's mapping; prune_from only by the name, without argument list. An empty one
 * filters nothing. What drop_frames takes away is gone before any filter, and what has gone through
 * one that changes stacks has no drop_frames any more. As in the tool, no show shows a location
 * without lines, and empty stacks stay with prune_from, noinlines, tagfocus and tagignore only.
 *
 * callees(P, re): the stacks that have a matching frame, from the outermost one down to the leaf.
 * callers(P, re): the same stacks from the root down to that frame, which becomes the leaf. So the
 * two are halves of the same stacks that meet in one frame, each stack counts once, also with
 * recursion, and the total of either is cum of what matches.
 *
 * noinlines(P): of each location only the outermost line is left, into whose function the others
 * were inlined; it has their costs. In the tool it comes after all filters.
 *
 * tagfocus, tagignore look at all labels of samples (promql/syntax/filter_text.h says what their
 * texts are). Some number must be in a range. Of expressions with a key, one must match a text of
 * that key; without a key, each must match some "key:text". Numbers without a unit have the first
 * unit that their key has anywhere in the profile, else bytes ("alignment", "request"), else the
 * key.
 *
 * Filters see what a profile costs when it is shown: gauges are rounded. Merging gives
 * the same below and above a filter, so filters below it wait until it is done (filters_wait):
 * rounding happens once. Profiles keep as total what it was before the first filter.
 *
 * Errors:    ERR_INVALID, ERR_LIMIT of an expression, without a place; the arena's ERR_LIMIT.
 * Ownership: results in work.arena; scratch is gone when a filter is done, and counts meanwhile.
 * Threads:   one query, one thread.
 * Source:    google/pprof: profile/filter.go, profile/prune.go, internal/driver/driver_focus.go.
 */
#ifndef PROMQL_PROFILES_FILTER_H
#define PROMQL_PROFILES_FILTER_H

#include "promql/syntax/filter_text.h"
#include "promql/value/work.h"

/* True if filters under e wait below its merges. */
bool filters_wait(const struct expr *e);
/* Applies them, innermost first, to rounded profiles; in place. */
MUST_CHECK enum err_code filters_apply(
	struct work *work, const struct expr *e, struct value *v, struct err *err);

/* ---- filter_stacks.c ---- */

/* Filters one part of p by its stacks; not for filters of tags. */
MUST_CHECK enum err_code filter_stacks(struct work *work, struct arena *scratch,
	const struct filter *f, const struct profile_value *p, const struct part *part,
	struct part *out, struct err *err);

struct derived;
/* The part's headers in a derived partition, without the drop_frames that are done. */
MUST_CHECK enum err_code filter_headers(struct work *work, struct derived *derived,
	const struct part *part, struct part *out, struct err *err);

/* ---- filter_tags.c ---- */

/* The cells of p whose labels match (ignore: do not). out has p's parts, which are changed. */
MUST_CHECK enum err_code tag_match_cells(struct work *work, struct arena *scratch,
	const struct tag_match *m, bool ignore, const struct profile_value *p, struct part *out,
	struct err *err);

#endif
