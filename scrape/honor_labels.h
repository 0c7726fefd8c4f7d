/*
 * Honor: honor_labels for profiles, for targets that hand on the profiles of others (an aggregating
 * proxy, a push gateway). Where a sample has a string label of the name of one of the target's
 * labels, its value takes the place of the target's, and the sample's label is gone: so one profile
 * becomes one series per distinct combination of such values. Samples without such a label keep the
 * target's value, as Prometheus does.
 *
 * __name__ is never replaced, nor is anything by an empty value or a number. Of several labels of
 * one name in a sample the first counts, the others stay the sample's.
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

/* In the order in which combinations appear; the given profile alone where none does. */
MUST_CHECK enum err_code honor_labels(struct arena *a, const struct pprof *p, struct labels labels,
	struct honored **out, size_t *n, struct err *err);

#endif
