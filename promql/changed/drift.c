/*
 * Slow drifts: a function that costs more and more, in base already, so that the sides' means tell
 * little of it.
 *
 * If base ends where new begins, or later, and the same series are on both sides, their slices are
 * joined to one path. Slopes that begin at one of STARTS places are fitted to it. How far such a
 * slope rises is a weighed sum of slices, whose variance sampling and shocks give as
 * they do that of a difference (shocks.c). The function's own evidence about shocks leaves out the
 * slowest waves, since a slope is nearly all in them. What all functions have in common stays.
 *
 * What a start brings fades in minutes, and gives a slope to an hour. So half of the rise must be
 * left if the highest and the lowest tenth of the slices are cut to the level of the others.
 *
 * A step gives a slope, too. So where a slope is proved, the path is compared with a step and with
 * a slope, each at its best place; if the step fits no worse, it is a change, not a drift.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "promql/changed/internal.h"

#define STARTS 2 /* the beginning, and the middle */
#define JOINED_MIN 20 /* slices */
#define SAMPLES_MIN 60 /* of a function */
#define RISE_MIN 0.25 /* of the share: a daily rhythm is less in an hour */
#define SHOCKS_MAX 0.5 /* of shares: greater ones are so skewed that a few look like a slope */
#define CUT 10 /* one in so many slices is cut, at each end */
#define LEFT_MIN 0.5 /* of the rise, then */
#define END_MIN 3 /* slices after a step, or on a slope */

struct drift_slice {
	unsigned side;
	uint32_t slice;
	double at; /* slices before the end of new, below 0 */
};

struct drifts {
	struct drift_slice *v; /* in order of time */
	size_t n;
	double *room; /* for a path and one more number per slice */
	double *weight[STARTS]; /* per slice: their sum with shares is the rise */
	struct contrast contrast[STARTS];
};

static void drift_join_side(const struct judge *j, unsigned at, struct drifts *d)
{
	const struct changed_side *s = &j->side[at];
	double end = at ? -j->in->ahead : 0, begins = -(double)j->side[0].in->slices_n;

	for (uint32_t t = 0; t < s->in->slices_n; t++) {
		double when = end - (s->in->slices_n - 1 - t);

		if (s->load[t] > 0 && (!at || when < begins + 0.5))
			d->v[d->n++] = (struct drift_slice){ at, t, when };
	}
}

/* The weights that give the rise from `start` to the end of new, by least squares. */
static void drift_make_slope(struct drifts *d, double start, double *weight)
{
	double mean = 0, squares = 0;

	for (size_t i = 0; i < d->n; i++)
		mean += weight[i] = fmax(0, d->v[i].at - start);
	mean /= (double)d->n;
	for (size_t i = 0; i < d->n; i++) {
		weight[i] -= mean;
		squares += weight[i] * weight[i];
	}
	for (size_t i = 0; i < d->n; i++)
		weight[i] *= -start / squares;
}

static void drift_make_contrast(
	const struct judge *j, const struct drifts *d, const double *weight, struct contrast *c)
{
	double last[PHIS] = { 0 };

	*c = (struct contrast){ 0 };
	for (size_t i = 0; i < d->n; i++) {
		const struct changed_side *s = &j->side[d->v[i].side];

		c->sampling += weight[i] * weight[i] * s->sampling * s->slices;
		for (unsigned p = 0; p < PHIS; p++) {
			if (i > 0)
				last[p] *= pow(changed_persistence(p), d->v[i].at - d->v[i - 1].at);
			c->shocks[p] += weight[i] * (weight[i] + 2 * last[p]);
			last[p] += weight[i];
		}
	}
}

enum err_code changed_find_drifts(struct judge *j, struct err *err)
{
	struct drifts *d = arena_new(j->arena, struct drifts);
	double gap = j->in->ahead - j->side[0].in->slices_n;
	size_t room = (size_t)j->side[0].in->slices_n + j->side[1].in->slices_n, of_base;

	if (!j->out->paired || !(j->in->ahead > 0) || gap > 1 ||
		changed_shock_deviation(j) > SHOCKS_MAX)
		return ERR_OK;
	if (!d || !(d->v = arena_array(j->arena, struct drift_slice, room + 1)))
		return arena_fail(j->arena, "query", err);
	drift_join_side(j, 1, d);
	of_base = d->n;
	drift_join_side(j, 0, d);
	if (d->n < JOINED_MIN || of_base < CHANGE_APART_MIN)
		return ERR_OK;
	if (!(d->room = arena_array(j->arena, double, 2 * d->n)))
		return arena_fail(j->arena, "query", err);
	for (unsigned i = 0; i < STARTS; i++) {
		if (!(d->weight[i] = arena_array(j->arena, double, d->n)))
			return arena_fail(j->arena, "query", err);
		drift_make_slope(d, (d->v[0].at - 1) * (STARTS - i) / STARTS, d->weight[i]);
		drift_make_contrast(j, d, d->weight[i], &d->contrast[i]);
	}
	j->drifts = d;
	return ERR_OK;
}

/* The function's shares; a slice with little load, of which sampling tells little, counts less. */
static void drift_read_path(const struct judge *j, uint32_t function, double *path)
{
	for (size_t i = 0; i < j->drifts->n; i++) {
		const struct drift_slice *at = &j->drifts->v[i];
		const struct changed_side *s = &j->side[at->side];

		path[i] = j->tracks[function].share[at->side] +
			s->path[(size_t)function * s->in->slices_n + at->slice];
	}
}

static double drift_rise(const struct drifts *d, unsigned start, const double *path)
{
	double rise = 0;

	for (size_t i = 0; i < d->n; i++)
		rise += d->weight[start][i] * path[i];
	return rise;
}

static void drift_cut(const double *path, size_t n, double *cut)
{
	double low, high;

	memcpy(cut, path, n * sizeof(*cut));
	qsort(cut, n, sizeof(*cut), changed_ascending);
	low = cut[n / CUT];
	high = cut[n - 1 - n / CUT];
	for (size_t i = 0; i < n; i++)
		cut[i] = fmin(fmax(path[i], low), high);
}

/* Reads the path. The rise over what chance reaches, of the best slope; 0: none is proved. */
static double drift_proof(const struct judge *j, uint32_t function, double p, double dispersion)
{
	const struct drifts *d = j->drifts;
	const struct track *t = &j->tracks[function];
	double share = changed_pooled_share(j, t), best = 0;
	double *path = d->room, *cut = d->room + d->n;

	if ((t->cost[0] + t->cost[1]) / fmax(dispersion, j->quantum) < SAMPLES_MIN)
		return 0;
	drift_read_path(j, function, path);
	drift_cut(path, d->n, cut);
	for (unsigned i = 0; i < STARTS; i++) {
		const struct contrast *c = &d->contrast[i];
		double rise = drift_rise(d, i, path), reach;
		struct mixture m;

		if (fabs(rise) < RISE_MIN * share ||
			fabs(rise) < j->deviations * sqrt(share * c->sampling) ||
			drift_rise(d, i, cut) / rise < LEFT_MIN)
			continue;
		changed_mix_contrast(j, function, c, &m);
		reach = mixture_reach(&m, p / STARTS);
		if (fabs(rise) / reach > fabs(best))
			best = rise / reach;
	}
	return best;
}

/* The squares that are left after the best line a + b g; *b is its slope. */
static double drift_left(const double *x, const double *g, size_t n, double *b)
{
	double gx = 0, gg = 0, xx = 0, mean_g = 0, mean_x = 0;

	for (size_t i = 0; i < n; i++) {
		mean_g += g[i] / (double)n;
		mean_x += x[i] / (double)n;
	}
	for (size_t i = 0; i < n; i++) {
		gx += (g[i] - mean_g) * (x[i] - mean_x);
		gg += (g[i] - mean_g) * (g[i] - mean_g);
		xx += (x[i] - mean_x) * (x[i] - mean_x);
	}
	*b = gg > 0 ? gx / gg : 0;
	return xx - *b * gx;
}

/* Whether the path in d->room is rather a slope than a step, and since when. */
static bool drift_is_slope(const struct drifts *d, double *since, double *slope)
{
	double *x = d->room, *g = d->room + d->n, b, left, least[2] = { INFINITY, INFINITY };

	for (size_t from = 0; from + END_MIN <= d->n; from++)
		for (unsigned is_slope = 0; is_slope < 2; is_slope++) {
			double start = d->v[from].at - 1;

			for (size_t i = 0; i < d->n; i++)
				g[i] = is_slope ? fmax(0, d->v[i].at - start) : i >= from;
			left = drift_left(x, g, d->n, &b);
			if (left >= least[is_slope] || (!is_slope && from < END_MIN))
				continue;
			least[is_slope] = left;
			since[is_slope] = -start;
			slope[is_slope] = b;
		}
	return least[1] < least[0];
}

void changed_drift(const struct judge *j, uint32_t function, double dispersion, struct change *c)
{
	double p = j->in->p * DRIFT_PART / fmax(j->out->tested_n, 1);
	double since[2] = { 0 }, slope[2] = { 0 };
	double proof = drift_proof(j, function, p, dispersion);
	bool is_slope, is_changed = c->low * c->high > 0;

	if (!(fabs(proof) > 1) || (proof > 0) != (c->difference > 0))
		return;
	is_slope = drift_is_slope(j->drifts, since, slope);
	if ((slope[is_slope] > 0) != (proof > 0))
		return;
	c->word = !is_slope ? CHANGE_CHANGED : proof > 0 ? CHANGE_RISES : CHANGE_FALLS;
	if (!is_changed) { /* an interval that says as much as the proof does */
		c->low = fmax(c->difference - fabs(c->difference / proof), -1);
		c->high = fmin(c->difference + fabs(c->difference / proof), 1);
	}
	/* A step about where new begins is what the windows ask for. */
	if (is_slope || fabs(since[0] - j->side[0].in->slices_n) >= END_MIN)
		c->since = since[is_slope];
}
