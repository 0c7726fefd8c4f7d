/*
 * The text report of a profile, as `go tool pprof -top -nodefraction=0 -nodecount=N` prints it.
 *
 * It works on the profile that would be sent as format=pprof, so that both say the same: totals,
 * pruning by drop_frames, merging by function name, inline marks, scaled units.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT from the arena.
 * Ownership: scratch in the arena.
 * Threads:   any.
 * Source:    google/pprof, internal/graph and internal/report; tests compare with the tool.
 */
#ifndef WEB_PPROF_TOP_H
#define WEB_PPROF_TOP_H

#include "proto/pprof.h"

/* Column `type` of the profile; rows_max 0: all. Times are printed in UTC. */
MUST_CHECK enum err_code pprof_top_print(const struct pprof *p, uint32_t type, size_t rows_max,
	struct arena *a, struct buf *out, struct err *err);

#endif
