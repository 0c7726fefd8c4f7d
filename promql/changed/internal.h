/*
 * The inside of statistic.h: what its files share. Private to them.
 *
 * sides.c reads the observations into sums and paths, shocks.c finds what passing
 * shocks do to them, reach.c how far chance reaches, apart.c which sides do not overlap,
 * drift.c which functions cost more and more, alone.c which series changed
 * by itself; statistic.c judges.
 */
#ifndef PROMQL_CHANGED_INTERNAL_H
#define PROMQL_CHANGED_INTERNAL_H

#include "promql/changed/statistic.h"

/* Sums over one side. */
struct changed_side {
	const struct change_side *in;
	const struct change_observation **v; /* by series, then slice */
	size_t *first; /* per series, and one more */
	double *total; /* per series */
	double *weight; /* per series; they add up to 1 */
	bool *present; /* per slice */
	double *load; /* per slice, 1 on average: what the series that count weigh in it */
	double slices; /* that are present */
	double series_n, cells_n;
	double all; /* costs */
	double sampling; /* variance of the mean of a share of 1, by sampling alone */
	double weights2, weights4; /* sums of powers */
	double spread_unit; /* the expected sum of w^2 (r - R)^2 per unit of variance */
	double *path; /* per function and slice: its share's deviation */
};

struct track { /* of a function */
	double cost[2], share[2];
	double squares[2]; /* sum of cost^2 / total */
	double spread[2], mean[2]; /* sums of w^2 r^2, w^2 r; paired: of differences, in [0] */
	bool tested;
	double least; /* the smallest p that any split could give */
};

/* Possible variances of a function's difference; their weights add up to 1. */
#define MIXTURE_MAX 32
#define MIXTURE_RATIO 1.3

struct mixture {
	double least; /* variance by sampling alone */
	double weight[MIXTURE_MAX], variance[MIXTURE_MAX]; /* no weight, no variance */
	double freedom[MIXTURE_MAX]; /* of its estimate; INFINITY: it is given */
};

struct shocks;

#define PHIS 7 /* persistences of shocks, from 0 up */
#define PHIS_SHORT 4 /* of them those of shocks of at most CHANGE_SHOCK_SLICES */

/* The variance of a weighed sum of slices, for a function with a share of 1. */
struct contrast {
	double sampling;
	double shocks[PHIS]; /* of relative variance 1 */
};

struct drifts;

#define DRIFT_PART 0.3 /* of p */
#define ALONE_PART 0.1
/*
 * A function whose sides are apart has so many times its part of p, but at most so much of all: to
 * be apart by chance is rare by itself.
 */
#define APART_TIMES 20
#define APART_PART (1.0 / 3)

struct judge {
	struct arena *arena;
	const struct change_input *in;
	struct change_output *out;
	struct changed_side side[2];
	struct track *tracks;
	double *share[2]; /* of the series in work, per function */
	char *is_met;
	uint32_t *met; /* functions of the series in work */
	uint32_t met_n;
	double quantum;
	struct shocks *shocks;
	double
		*moved; /* per series: how far a function's share did, in squares of sampling's deviation */
	uint32_t paired_n; /* series on both sides */
	size_t alone_cap;
	struct drifts *drifts; /* NULL: windows that are not joined */
	double deviations; /* of a normal value, at the p of one function */
};

bool changed_is_stopped(const struct judge *j);
double changed_pooled_share(const struct judge *j, const struct track *t);
int changed_ascending(const void *a, const void *b); /* doubles, for qsort */

/* ---- sides.c ---- */

MUST_CHECK enum err_code changed_sides_init(struct judge *j, struct err *err);
/* Weights of series; j->out->paired. */
void changed_weigh(struct judge *j);
/* Tracks, and paths: deviations of each function's share from its series' means. */
MUST_CHECK enum err_code changed_read(struct judge *j, struct err *err);

/* ---- shocks.c ---- */

/* Shared by all functions that are tested. */
MUST_CHECK enum err_code changed_find_shocks(struct judge *j, struct err *err);
/* Variances of a function's difference in time, sampling and shocks of the first phis together. */
void changed_mix(const struct judge *j, uint32_t function, unsigned phis_n, struct mixture *m);

double changed_persistence(unsigned phi);
/* Of shocks in a slice, that most functions have in common; relative to a share. */
double changed_shock_deviation(const struct judge *j);
/* Of a weighed sum of slices of both sides, if nothing changed; its path may have a slope. */
void changed_mix_contrast(
	const struct judge *j, uint32_t function, const struct contrast *c, struct mixture *m);

/* ---- apart.c ---- */

/* Whether the slices of the one side are above those of the other. */
bool changed_is_apart(const struct judge *j, uint32_t function);

/* ---- drift.c ---- */

/* Sets j->drifts if both windows are one path. */
MUST_CHECK enum err_code changed_find_drifts(struct judge *j, struct err *err);
/* Changes word and interval of a function that drifts. */
void changed_drift(const struct judge *j, uint32_t function, double dispersion, struct change *c);

/* ---- alone.c ---- */

bool changed_may_be_alone(const struct judge *j);
/* Adds to j->out->alone. */
MUST_CHECK enum err_code changed_find_alone(struct judge *j, struct err *err);

/* ---- reach.c ---- */

/* The x > 0 that a difference with these variances exceeds by chance with probability p. */
double mixture_reach(const struct mixture *m, double p);
/* The number of deviations that a normal value exceeds, on either side, with probability p. */
double normal_reach(double p);
/* The greatest share that could well have given `samples` of `all`, but with probability p / 2. */
double share_reach(double samples, double all, double p);

#endif
