/*
 * Interval: by how much a function's cost may differ between two sides, given what was counted.
 *
 * A ratio r fits if the counts are not much less likely under it than under the ratio that fits
 * best: the signed root of the deviance is compared with a quantile t. Unlike estimate +- t x
 * deviation this holds for few and for no counts, and its two ends may be unequally far.
 *
 * Overdispersed counts are divided by their dispersion first, counts and totals alike, each side by
 * its own: the deviance is then that of a quasi-likelihood, and t is Student's.
 *
 * Units:   logarithms of ratios, new over base; counts need not be whole.
 * Errors:  none. Nothing counted in new: the ratio may be 0, -INFINITY; nothing in base: INFINITY.
 * Threads: pure.
 * Source:  profile likelihood intervals: McCullagh and Nelder, Generalized Linear Models (1989),
 *          4.4.3 (odds ratios), 6.2 (Poisson rates), 9.2 (quasi-likelihood). The odds that are most
 *          likely under a given ratio: Miettinen and Nurminen, Statistics in Medicine 4 (1985).
 */
#ifndef PROMQL_RUNS_INTERVAL_H
#define PROMQL_RUNS_INTERVAL_H

#include <stdbool.h>

struct interval_counts {
	/*
	 * Shares: binomials of totals. A function's cost is its odds, that is, relative to all other
	 * functions: from 20 % to 25 % of the total costs are a third more. Else amounts: Poisson
	 * counts, and totals are how long each side was looked at.
	 */
	bool shares;
	double count[2], total[2]; /* base, new */
};

double interval_estimate(const struct interval_counts *c);
/* The least and the greatest ratio that fit. */
double interval_low(const struct interval_counts *c, double t);
double interval_high(const struct interval_counts *c, double t);
/* The same of a share, 0..1, of one side. */
double interval_share_low(double count, double total, double t);
double interval_share_high(double count, double total, double t);

#endif
