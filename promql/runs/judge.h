/*
 * Judge: repeated runs of one program on two sides, base and new. Which functions cost more, which
 * do not, and of which so many runs cannot tell. RUNS.md says how, and what was measured.
 *
 * Units:     counts are events (samples of a profiler) where a cost is a whole number of them, else
 *            costs in any unit; ratios are new over base.
 * Errors:    none; what cannot be judged says so.
 * Ownership: all memory is the caller's.
 * Threads:   pure.
 */
#ifndef PROMQL_RUNS_JUDGE_H
#define PROMQL_RUNS_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

enum judge_verdict { JUDGE_LEFT_OUT, JUDGE_NOT_WORSE, JUDGE_CANNOT_TELL, JUDGE_WORSE };

struct judge_options {
	/*
	 * Costs relative to all other functions that do not cost less for certain, else costs of a run.
	 * Shares are safe where machines or the number of iterations differ.
	 */
	bool shares;
	bool overlap; /* functions' costs have parts in common, as with their callees: none is left out
				   */
	bool events; /* counts are events: chance alone makes them vary as Poisson counts do */
	double threshold; /* 0.2: a function is worse that costs 20 % more; < 0: none is judged */
	double least_share; /* functions with a smaller share, mean of both sides, are left out */
	double false_alarms; /* chance of any "worse" if nothing changed; 0: JUDGE_FALSE_ALARMS */
	double missed; /* chance of "not worse" for a function at the threshold; 0: JUDGE_MISSED */
};

#define JUDGE_FALSE_ALARMS 0.01
#define JUDGE_MISSED 0.025
#define JUDGE_RUNS_MAX 1000000.0 /* more_runs is at most this */

struct judge_side {
	const double *totals; /* of each run, > 0 */
	double *kept; /* room for as many; out: totals without functions that cost less */
	size_t n; /* at least 1 */
};

struct judge_function {
	const double *counts[2]; /* base, new: of each run */
	double budget; /* a share of new, 0..1, that it may cost; < 0: none */
	/* out */
	double share[2];
	double noise[2]; /* variance between runs over what chance alone would make; 0: unknown */
	double ratio, low, high; /* of costs; high may be INFINITY */
	bool is_cheaper; /* for certain, so that nothing is relative to it */
	enum judge_verdict verdict; /* against base */
	double share_low, share_high; /* of new; if there is a budget */
	enum judge_verdict budget_verdict;
	double more_runs; /* a side, if either verdict is JUDGE_CANNOT_TELL: about so many would tell */
};

struct judge_result {
	enum judge_verdict verdict; /* JUDGE_LEFT_OUT: nothing was judged */
	size_t worse, cannot_tell, not_worse; /* verdicts, those on budgets too */
	double more_runs; /* the most that any verdict needs */
};

/* Fills in what is out of each function. */
void judge_runs(const struct judge_options *o, const struct judge_side sides[2],
	struct judge_function *functions, size_t n, struct judge_result *out);

#endif
