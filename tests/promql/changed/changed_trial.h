/*
 * What the simulations of changed() share: how many runs, and what their count is evidence of.
 *
 * Threads: one.
 */
#ifndef TESTS_PROMQL_CHANGED_TRIAL_H
#define TESTS_PROMQL_CHANGED_TRIAL_H

#include "promql/changed/student.h"
#include "tests/check.h"
#include "tests/promql/changed/changed_service.h"

/* The bound of Clopper and Pearson: where P(K >= k) or P(K <= k) is 2.5 %. */
static inline double bound(double k, double n, bool upper)
{
	double low = 0, high = 1;

	for (int i = 0; i < 60; i++) {
		double mid = (low + high) / 2;
		bool above = upper ? 1 - binomial_at_least(k + 1, n, mid) < 0.025 :
							 binomial_at_least(k, n, mid) > 0.025;

		if (above)
			high = mid;
		else
			low = mid;
	}
	return low;
}

static inline unsigned runs_of(unsigned otherwise)
{
	const char *text = getenv("EPI_CHANGED_RUNS");

	return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static inline bool is_table(void)
{
	return getenv("EPI_CHANGED_RUNS") != NULL;
}

static inline bool is_asked_for(size_t i)
{
	const char *only = getenv("EPI_CHANGED_ONLY");

	return !only || strtoul(only, NULL, 10) == i;
}

#endif
