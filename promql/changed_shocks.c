#include <math.h>

#include "promql/changed_internal.h"

#define PERSISTENCE_MAX 0.97
#define SHOCK_FIRST 0.0025 /* a first guess of relative variance: shocks of five percent */
#define PERSISTENCE_MARGIN 0.02 /* phi too small is worse than phi too great */
#define PERSISTENCE_CURVATURE 12 /* and errors of its estimate hurt by their squares */

/* Of n values of a process with phi and variance 1: the variance of their mean. */
static double variance_of_mean(double phi, double n)
{
	double sum = n, power = 1;

	for (double h = 1; h < n; h++) {
		power *= phi;
		sum += 2 * (n - h) * power;
	}
	return sum / (n * n);
}

/* ... the expected sums of squares and of neighbours' products, once the mean is subtracted. */
static void expected_sums(double phi, double n, double *squares, double *products)
{
	double mean = variance_of_mean(phi, n), first = 0, power = 1;

	for (double h = 0; h < n; h++) {
		first += power / n;
		power *= phi;
	}
	*squares += n * (1 - mean);
	*products += (n - 1) * phi - (n + 1) * mean + 2 * first;
}

/* By sampling, the variance of one slice of a share. */
static double sampling_of_slice(const struct side *s, double share)
{
	return share * s->sampling * s->slices;
}

/*
 * Sums of squares and of neighbours' products of a function's slices, less what sampling makes.
 * Slices without data are stepped over, here and below.
 */
static void path_sums(
	const struct judge *j, uint32_t function, double share, double *squares, double *products)
{
	for (unsigned k = 0; k < 2; k++) {
		const struct side *s = &j->side[k];
		const double *path = &s->path[(size_t)function * s->in->slices_n];
		double sampling = sampling_of_slice(s, share), previous = 0;

		for (uint32_t t = 0; t < s->in->slices_n; t++) {
			if (!s->present[t])
				continue;
			*squares += path[t] * path[t];
			*products += path[t] * previous;
			previous = path[t];
		}
		*squares -= (s->slices - 1) * sampling;
		*products += (s->slices - 1) / s->slices * sampling;
	}
}

/* The sum of squares of a function's innovations, and what sampling makes of it. */
static double innovations(
	const struct judge *j, uint32_t function, double share, double *by_sampling)
{
	const double phi = j->phi;
	double all = 0;

	*by_sampling = 0;
	for (unsigned k = 0; k < 2; k++) {
		const struct side *s = &j->side[k];
		const double *path = &s->path[(size_t)function * s->in->slices_n];
		double n = s->slices - 1, sum = 0, squares = 0, previous = 0;
		bool any = false;

		for (uint32_t t = 0; t < s->in->slices_n; t++) {
			if (!s->present[t])
				continue;
			if (any) {
				sum += path[t] - phi * previous;
				squares += (path[t] - phi * previous) * (path[t] - phi * previous);
			}
			any = true;
			previous = path[t];
		}
		all += squares - sum * sum / n;
		*by_sampling += sampling_of_slice(s, share) * (n - 1) *
			(1 + phi * phi + 2 * phi / n);
	}
	return all;
}

/* A function tells of shocks as much as its share stands out of its sampling. */
static double telling(const struct judge *j, double share, double shock)
{
	double noise = 0;

	for (unsigned k = 0; k < 2; k++)
		noise += sampling_of_slice(&j->side[k], share) / (share * share) / 2;
	return 1 / ((noise + shock) * (noise + shock));
}

/* phi such that products / squares is what is expected of it. */
static double solve_phi(const struct judge *j, double ratio)
{
	double low = 0, high = PERSISTENCE_MAX;

	for (int i = 0; i < 40; i++) {
		double phi = (low + high) / 2, squares = 0, products = 0;

		for (unsigned k = 0; k < 2; k++)
			expected_sums(phi, j->side[k].slices, &squares, &products);
		if (products / squares < ratio)
			low = phi;
		else
			high = phi;
	}
	return low;
}

/* Sums over functions, each relative to its share and weighed by what it tells. */
struct pool {
	double squares, products, weights, error2;
};

static struct pool pool_paths(const struct judge *j, double shock, double ratio)
{
	struct pool p = { 0 };

	for (uint32_t f = 0; f < j->in->functions_n; f++) {
		double share = changed_pooled_share(j, &j->tracks[f]), squares = 0, products = 0, w;

		if (!j->tracks[f].tested)
			continue;
		path_sums(j, f, share, &squares, &products);
		w = telling(j, share, shock);
		p.weights += w;
		w /= share * share;
		p.squares += w * squares;
		p.products += w * products;
		p.error2 += w * w * (products - ratio * squares) * (products - ratio * squares);
	}
	return p;
}

/* phi, and what variance the shocks of a function have, relative to its share's square. */
static double find_persistence(struct judge *j)
{
	double shock = SHOCK_FIRST, ratio = 0;
	struct pool p = { 0 };

	for (int round = 0; round < 3; round++) {
		double unit = 0, unused = 0;

		p = pool_paths(j, shock, ratio);
		ratio = p.squares > 0 ? p.products / p.squares : 0;
		j->phi = solve_phi(j, ratio);
		for (unsigned k = 0; k < 2; k++)
			expected_sums(j->phi, j->side[k].slices, &unit, &unused);
		shock = p.weights > 0 ? p.squares / p.weights / unit : 0;
		shock = fmax(shock, 1e-6);
	}
	if (p.squares > 0)
		j->phi += PERSISTENCE_CURVATURE * p.error2 / (p.squares * p.squares);
	j->phi = fmin(j->phi + PERSISTENCE_MARGIN, PERSISTENCE_MAX);
	j->out->persistence = j->phi;
	return shock;
}

/* With phi: the innovations that functions have in common, and what they do to a difference. */
void changed_find_shocks(struct judge *j)
{
	double shock = find_persistence(j), weights = 0;

	j->freedom = j->side[0].slices + j->side[1].slices - 4;
	for (unsigned k = 0; k < 2; k++)
		j->inflation += variance_of_mean(j->phi, j->side[k].slices) /
			(1 - j->phi * j->phi);
	for (uint32_t f = 0; f < j->in->functions_n; f++) {
		double share = changed_pooled_share(j, &j->tracks[f]), by_sampling, w, v;

		if (!j->tracks[f].tested)
			continue;
		w = telling(j, share, shock);
		v = innovations(j, f, share, &by_sampling);
		j->shock += w * (v - by_sampling) / (share * share);
		weights += w;
	}
	j->shock = weights > 0 ? fmax(j->shock / weights / j->freedom, 0) : 0;
}

double changed_shock(const struct judge *j, uint32_t function)
{
	double share = changed_pooled_share(j, &j->tracks[function]), by_sampling;
	double own = innovations(j, function, share, &by_sampling) - by_sampling;

	return fmax(own / j->freedom, j->shock * share * share);
}
