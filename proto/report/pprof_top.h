/*
 * The text report of a profile, as `go tool pprof -top` prints it with the options of
 * pprof_options.h.
 *
 * It works on the profile that would be sent as format=pprof, so that both say the same: totals,
 * pruning by drop_frames, merging by function name, inline marks, scaled units.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT from the arena; ERR_CANCELED where *canceled says so.
 * Ownership: scratch in the arena.
 * Threads:   any.
 * Source:    google/pprof, internal/report; tests compare with the tool.
 */
#ifndef PROTO_REPORT_PPROF_TOP_H
#define PROTO_REPORT_PPROF_TOP_H

#include <stdatomic.h>

#include "proto/pprof.h"
#include "proto/report/pprof_options.h"

/* A filter that the profile went through before. */
struct pprof_top_filter {
	const char *name;
	struct str text;
};

struct pprof_top_options {
	uint32_t type; /* a column of the profile */
	const struct pprof_options *options; /* NULL: pprof_options_default */
	bool filtered; /* percentages are of `total`, else of the sum of the samples */
	int64_t total;
	const struct pprof_top_filter *filters; /* printed in the header */
	size_t filters_n;
	const atomic_bool *canceled; /* may be NULL */
};

/* The sum of magnitudes that percentages are of; of a difference that of its base, unless it is 0.
 */
int64_t pprof_top_total(const struct pprof *p, uint32_t type);
/* ERR_LIMIT: the magnitudes exceed 64 bits together. If not, no sum of some samples does. */
MUST_CHECK enum err_code pprof_top_check_sums(
	const struct pprof *p, uint32_t type, struct err *err);

/* Times are printed in UTC. */
MUST_CHECK enum err_code pprof_top_print(const struct pprof *p, const struct pprof_top_options *o,
	struct arena *a, struct buf *out, struct err *err);

#endif
