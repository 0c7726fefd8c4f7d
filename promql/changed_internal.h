/*
 * The inside of changed_statistic.h: what its files share. Private to them.
 *
 * changed_sides.c reads the observations into sums and paths, changed_shocks.c finds what passing
 * shocks do to them, changed_statistic.c judges.
 */
#ifndef PROMQL_CHANGED_INTERNAL_H
#define PROMQL_CHANGED_INTERNAL_H

#include "promql/changed_statistic.h"

/* Sums over one side. */
struct side {
	const struct change_side *in;
	const struct change_observation **v; /* by series, then slice */
	size_t *first; /* per series, and one more */
	double *total; /* per series */
	double *weight; /* per series; they add up to 1 */
	bool *present; /* per slice */
	double slices; /* that are present */
	double series_n, cells_n;
	double all; /* costs */
	double sampling; /* variance of the mean of a share of 1, by sampling alone */
	double weights2, weights4; /* sums of powers */
	double spread_unit; /* what the sum of w^2 (r - R)^2 expects per unit of variance */
	double *path; /* per function and slice: its share's deviation */
};

struct track { /* of a function */
	double cost[2], share[2];
	double squares[2]; /* sum of cost^2 / total */
	double spread[2], mean[2]; /* sums of w^2 r^2, w^2 r; paired: of differences, in [0] */
	bool tested;
	double difference, p, least; /* the smallest p that any split could give */
};

struct judge {
	struct arena *arena;
	const struct change_input *in;
	struct change_output *out;
	struct side side[2];
	struct track *tracks;
	double *share[2]; /* of the series in work, per function */
	char *is_met;
	uint32_t *met; /* functions of the series in work */
	uint32_t met_n;
	double quantum;
	double phi;
	double shock; /* variance of innovations, relative to the share's square */
	double inflation; /* of an innovation's variance to D's */
	double freedom;
};

bool changed_is_stopped(const struct judge *j);
double changed_pooled_share(const struct judge *j, const struct track *t);

/* ---- changed_sides.c ---- */

MUST_CHECK enum err_code changed_sides_init(struct judge *j, struct err *err);
/* Weights of series; j->out->paired. */
void changed_weigh(struct judge *j);
/* Tracks, and paths: deviations of each function's share from its series' means. */
MUST_CHECK enum err_code changed_read(struct judge *j, struct err *err);

/* ---- changed_shocks.c ---- */

/* phi, freedom, inflation, shock; of functions that are tested. */
void changed_find_shocks(struct judge *j);
/* A function's variance of innovations, sampling taken away; not below what all have in common. */
double changed_shock(const struct judge *j, uint32_t function);

#endif
