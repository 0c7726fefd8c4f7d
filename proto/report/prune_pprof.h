/*
 * Pruning of a profile's samples by its own drop_frames and keep_frames.
 *
 *	for (i = sample->location_n; i-- > prune_pprof_first(&prune, p, sample);)
 *		... lines from prune_pprof_skip(&prune, id) on ...;
 *
 * Ownership: as of prune.h: prune_release ends it.
 * Threads:   one at a time.
 */
#ifndef PROTO_REPORT_PRUNE_PPROF_H
#define PROTO_REPORT_PRUNE_PPROF_H

#include "proto/pprof.h"
#include "proto/report/prune.h"

MUST_CHECK enum err_code prune_pprof_init(
	struct prune *prune, const struct pprof *p, struct arena *a, struct err *err);

/* The index in s's locations of the first one that stays; location_n if none does. */
uint32_t prune_pprof_first(
	struct prune *prune, const struct pprof *p, const struct pprof_sample *s);

/*
 * The number of innermost lines of a location that go; the location is of a sample given to
 * prune_pprof_first.
 */
static inline uint32_t prune_pprof_skip(const struct prune *p, uint32_t location)
{
	return p->active ? p->line_skip[location] : 0;
}

#endif
