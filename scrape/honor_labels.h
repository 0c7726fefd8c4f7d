/*
 * honor_labels for profiles, for targets that serve the profiles of others (an aggregating proxy, a
 * push gateway). If a sample has a string label with the name of a target's label, its value
 * replaces the target's and the sample loses the label. So a profile becomes one series per
 * distinct combination of such values. Samples without such a label keep the target's value, as in
 * Prometheus.
 *
 * __name__ is never replaced. Empty values and numbers replace nothing. If a sample has several
 * labels of one name, the first replaces and the others stay.
 *
 * Errors:    ERR_LIMIT (HONOR_SERIES_MAX, the arena's budget), ERR_INVALID (a value is not UTF-8).
 * Ownership: the arena's; the profiles made share the given one's symbols and stacks.
 * Threads:   any.
 */
#ifndef SCRAPE_HONOR_LABELS_H
#define SCRAPE_HONOR_LABELS_H

#include "base/labels.h"
#include "proto/pprof.h"

#define HONOR_SERIES_MAX 1000u /* that one profile is split into */

struct honored {
	struct labels labels; /* distinct among all of them */
	const struct pprof *profile;
};

/* In the order in which combinations appear; only the given profile if there are none. */
MUST_CHECK enum err_code honor_labels(struct arena *a, const struct pprof *p, struct labels labels,
	struct honored **out, size_t *n, struct err *err);

#endif
