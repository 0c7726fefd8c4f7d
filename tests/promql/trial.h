/*
 * What trials of verdicts share: how many runs, which sequence of random numbers, and what a count
 *is evidence of. As tests they make few runs, always the same. `make verdict-trial` sets
 *
 *	EPI_VERDICT_PAIRS	runs of each setting; prints the tables of the documentation
 *	EPI_VERDICT_SEED	another sequence
 *	EPI_VERDICT_ONLY	one setting of a table, by its number
 *
 * Threads: one.
 */
#ifndef TESTS_PROMQL_TRIAL_H
#define TESTS_PROMQL_TRIAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "promql/changed/student.h"

/* The bound of Clopper and Pearson: where P(K >= k) or P(K <= k) is 2.5 %. */
static inline double trial_bound(double k, double n, bool upper)
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

static inline bool trial_is_table(void)
{
	return getenv("EPI_VERDICT_PAIRS") != NULL;
}

static inline unsigned trial_runs(unsigned otherwise)
{
	const char *text = getenv("EPI_VERDICT_PAIRS");

	return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

/* Of a setting: a sequence of its own. */
static inline uint64_t trial_seed(size_t setting)
{
	const char *text = getenv("EPI_VERDICT_SEED");

	return (text ? strtoull(text, NULL, 10) : 1) + setting * 1000003;
}

static inline bool trial_is_asked_for(size_t setting)
{
	const char *only = getenv("EPI_VERDICT_ONLY");

	return !only || strtoul(only, NULL, 10) == setting;
}

#endif
