/*
 * Fit: computes the numbers of a fleet from a recording.
 */
#ifndef TESTS_FLEET_FIT_H
#define TESTS_FLEET_FIT_H

#include "tests/fleet/recording.h"

struct fit_column {
	double nonzero; /* share of entries */
	double mean; /* of those */
	double changed, grown; /* share of entries not as a scrape before; of those, up */
	double change; /* mean of its size */
};

struct fit {
	double scrapes;
	double samples, stacks_mean; /* of a scrape: entries; stacks whatever their labels */
	double total_mean; /* column 0 of a scrape */
	double labelled; /* share of samples */
	double distinct_first, distinct; /* stacks of a process: after one scrape, after all */
	double heaps; /* distinct stacks grow with stacks seen to this power */
	double singles; /* share of a process's stacks that were in one scrape only */
	double overlap; /* share of a scrape's stacks that the scrape before had */
	double zipf; /* by column 0 */
	double value_mean, ones, tail_first, tail_last; /* column 0 */
	double depth, depth_deviation, new_nodes, lines, inlined; /* of files only */
	struct fit_column columns[FLEET_COLUMNS_MAX];
};

MUST_CHECK enum err_code fit_recording(const struct recording *r, struct fit *out, struct err *err);

#endif
