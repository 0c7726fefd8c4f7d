/*
 * Services that are made up, for changed(): their functions, pods and what happens to both.
 *
 * The logarithm of a function's share in a pod and slice is the sum of its own (heavy-tailed), what
 * the pod differs by for good, and three AR(1) processes: of its request handler and of itself,
 * common to all pods, and of itself in this pod (half as much again). How shaky a function is
 * differs by a factor of e^0.5. Shares add up to one; samples are Poisson at the pod's load, or
 * come in clumps.
 *
 * Threads: one.
 */
#ifndef TESTS_PROMQL_CHANGED_SERVICE_H
#define TESTS_PROMQL_CHANGED_SERVICE_H

#include <math.h>

#include "promql/changed/statistic.h"

#define FUNCTIONS_MAX 1000
#define HANDLERS_MAX 8
#define SLICES_MAX 220

struct kind {
	const char *name;
	unsigned functions, handlers;
	double samples; /* of a pod in a minute */
	double load; /* by which pods' loads differ: a deviation of logarithms, as are these: */
	double of_pod, of_handler, of_function;
	double clump; /* samples that come together, on average */
	double daily; /* each handler's swing over a day */
	double warmup; /* share of what runs after a start, which fades with 2 minutes */
	double batch; /* share of a job that runs a minute in seven */
};

/* clang-format off */
enum { LARGE, SMALL, DEMO, SPARSE, BURSTY, DAILY, UNEVEN, RESTART, BATCH, POD, FEW };
static const struct kind kinds[] = {
	[LARGE] =   { "large",   1000, 8, 4200, 0.3, 0.08, 0.05, 0.03, 1, 0,   0,   0 },
	[SMALL] =   { "small",     60, 5,  300, 0.3, 0.08, 0.20, 0.10, 1, 0,   0,   0 },
	[DEMO] =    { "demo",      60, 5,  300, 0.3, 0.08, 0.12, 0.05, 1, 0,   0,   0 },
	[SPARSE] =  { "sparse",    40, 3,   40, 0.3, 0.08, 0.20, 0.10, 1, 0,   0,   0 },
	[BURSTY] =  { "bursty",    60, 5,  300, 0.3, 0.08, 0.50, 0.30, 4, 0,   0,   0 },
	[DAILY] =   { "daily",    200, 8, 2000, 0.3, 0.08, 0.05, 0.03, 1, 0.3, 0,   0 },
	[UNEVEN] =  { "uneven",   200, 8, 1000, 1.2, 0.08, 0.10, 0.05, 1, 0,   0,   0 },
	[RESTART] = { "restart",  100, 5,  600, 0.3, 0.08, 0.10, 0.05, 1, 0,   0.4, 0 },
	[BATCH] =   { "batch",    100, 5,  600, 0.3, 0.08, 0.10, 0.05, 1, 0,   0,   0.4 },
	[POD] =     { "pod",       60, 5,  300, 0.3, 0.08, 0.15, 0.06, 1, 0,   0,   0 },
	[FEW] =     { "few",        6, 3,  300, 0.3, 0.08, 0.15, 0.06, 1, 0,   0,   0 },
};
/* clang-format on */

struct setting {
	unsigned kind, pods, new_slices, base_slices, slice_s;
	double phi; /* persistence of all shocks, from slice to slice */
	bool replaced; /* the new side has pods of its own */
	double share, planted; /* of the function that changes, and by how much; 0: nothing does */
	unsigned gap; /* slices between base and new */
	unsigned drift; /* the change takes the last so many slices; 0: it is a step */
	bool alone; /* only the first pod changes */
};

/* ---- random numbers ---- */

static uint64_t state;

static uint64_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static double uniform(void)
{
	return ((double)(draw() >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	static double spare;
	static bool has_spare;
	double x, y, r;

	if (has_spare) {
		has_spare = false;
		return spare;
	}
	do {
		x = 2 * uniform() - 1;
		y = 2 * uniform() - 1;
		r = x * x + y * y;
	} while (r >= 1 || r == 0);
	r = sqrt(-2 * log(r) / r);
	spare = y * r;
	has_spare = true;
	return x * r;
}

static double poisson(double mean)
{
	double limit, product = 1;
	int k = -1;

	if (mean > 60)
		return fmax(0, floor(mean + sqrt(mean) * normal() + 0.5));
	limit = exp(-mean);
	do {
		k++;
		product *= uniform();
	} while (product > limit);
	return k;
}

/* Clumps of geometric size. */
static double samples_of(double mean, double clump)
{
	double n, all = 0;

	if (clump <= 1)
		return poisson(mean);
	n = poisson(mean / clump);
	for (double i = 0; i < n; i++)
		all += 1 + floor(log(uniform()) / log1p(-1 / clump));
	return all;
}

/* ---- a service ---- */

static struct service {
	const struct kind *kind;
	double share[FUNCTIONS_MAX]; /* logarithms */
	double shaky[FUNCTIONS_MAX]; /* of the function's own shocks */
	double of_handler[HANDLERS_MAX][SLICES_MAX], of_function[FUNCTIONS_MAX][SLICES_MAX];
	double load[SLICES_MAX], batch[SLICES_MAX];
	double of_pod[FUNCTIONS_MAX][SLICES_MAX], in_pod[FUNCTIONS_MAX]; /* of the pod in work */
	double started; /* slice */
	unsigned planted;
} s;

static void walk(double *v, unsigned n, double phi, double deviation)
{
	double at = normal();

	for (unsigned t = 0; t < n; t++) {
		v[t] = deviation * at;
		at = phi * at + sqrt(1 - phi * phi) * normal();
	}
}

static void make_handlers(const struct setting *o, unsigned n)
{
	double minutes = o->slice_s / 60.0, turn = 7 * uniform();

	for (unsigned h = 0; h < s.kind->handlers; h++) {
		double phase = 2 * M_PI * uniform();

		walk(s.of_handler[h], n, o->phi, s.kind->of_handler);
		for (unsigned t = 0; t < n; t++)
			s.of_handler[h][t] += s.kind->daily * sin(phase + 2 * M_PI * t * minutes / 1440);
	}
	for (unsigned t = 0; t < n; t++) {
		double part = fmod(t * minutes + turn, 7);

		s.batch[t] = part < 1 ? s.kind->batch : 0;
	}
	s.started = uniform() * n;
	walk(s.load, n, o->phi, 0.1);
}

static unsigned slices_of(const struct setting *o)
{
	return o->base_slices + o->gap + o->new_slices;
}

static void make_service(const struct setting *o)
{
	unsigned n = slices_of(o);
	double sum = 0, nearest = 1;

	s.kind = &kinds[o->kind];
	for (unsigned f = 0; f < s.kind->functions; f++) {
		s.share[f] = pow(uniform(), -0.8);
		sum += s.share[f];
	}
	for (unsigned f = 0; f < s.kind->functions; f++) {
		double share = s.share[f] / sum;
		double want = fabs(log(share / (o->share > 0 ? o->share : 0.01)));

		s.share[f] = log(share);
		s.shaky[f] = s.kind->of_function * exp(0.5 * normal());
		walk(s.of_function[f], n, o->phi, s.shaky[f]);
		if (f == 0 || want < nearest) {
			nearest = want;
			s.planted = f;
		}
	}
	if (o->share > 0)
		s.share[s.planted] = log(o->share);
	make_handlers(o, n);
}

static void make_pod(const struct setting *o)
{
	unsigned n = slices_of(o);

	for (unsigned f = 0; f < s.kind->functions; f++) {
		s.in_pod[f] = s.kind->of_pod * normal();
		walk(s.of_pod[f], n, o->phi, s.shaky[f] * 1.5);
	}
}

/* Functions 0 and 1 are what starts and what runs now and then; they have hardly a share else. */
static double add_events(double *rate, unsigned t, const struct setting *o, double sum)
{
	double since = ((double)t - s.started) * o->slice_s / 60.0, before = sum;

	if (s.kind->warmup > 0 && since >= 0) {
		double part = s.kind->warmup * exp(-since / 2);

		rate[0] += before * part / (1 - part);
		sum += before * part / (1 - part);
	}
	if (s.batch[t] > 0) {
		rate[1] += before * s.batch[t] / (1 - s.batch[t]);
		sum += before * s.batch[t] / (1 - s.batch[t]);
	}
	return sum;
}

/* By how much the planted function's share is greater in a slice. */
static double planted_at(const struct setting *o, unsigned t)
{
	if (o->drift > 0)
		return o->planted * fmax(0, 1 - (slices_of(o) - t - 0.5) / o->drift);
	return t >= o->base_slices ? o->planted : 0;
}

static void observe(struct arena *a, const struct setting *o, unsigned t, double load,
	double planted, struct change_observation *out)
{
	static double rate[FUNCTIONS_MAX];
	const unsigned n = s.kind->functions;
	double sum = 0, mean = s.kind->samples * o->slice_s / 60 * load * exp(s.load[t]);
	struct change_cell *cells = arena_array(a, struct change_cell, n);

	for (unsigned f = 0; f < n; f++) {
		rate[f] = exp(s.share[f] + s.in_pod[f] + s.of_pod[f][t] + s.of_function[f][t] +
			s.of_handler[f % s.kind->handlers][t]);
		sum += rate[f];
	}
	if (planted > 0) {
		double factor = 1 + planted / exp(s.share[s.planted]) / (1 - planted);

		sum += rate[s.planted] * (factor - 1);
		rate[s.planted] *= factor;
	}
	sum = add_events(rate, t, o, sum);
	out->cells = cells;
	for (unsigned f = 0; f < n; f++) {
		double k = samples_of(mean * rate[f] / sum, s.kind->clump);

		if (k > 0)
			cells[out->n++] = (struct change_cell){ f, k };
		out->total += k;
	}
}

/* All observations of one evaluation; v has room for every pod and slice of a side. */
static void make_evaluation(const struct setting *o, struct arena *a, struct change_input *in)
{
	const unsigned n = slices_of(o);
	struct change_observation *v[2];

	*in = (struct change_input){ .functions_n = kinds[o->kind].functions,
		.series_n = o->pods * (o->replaced ? 2 : 1),
		.quantum = 1,
		.p = 0.01,
		.ahead = o->replaced ? 0 : o->new_slices + o->gap };
	v[0] = arena_array(a, struct change_observation, (size_t)in->series_n * o->new_slices);
	v[1] = arena_array(a, struct change_observation, (size_t)in->series_n * o->base_slices);
	in->side[0] = (struct change_side){ .v = v[0], .slices_n = o->new_slices };
	in->side[1] = (struct change_side){ .v = v[1], .slices_n = o->base_slices };
	make_service(o);
	for (unsigned i = 0; i < in->series_n; i++) {
		double load = exp(s.kind->load * normal());

		make_pod(o);
		for (unsigned t = 0; t < n; t++) {
			unsigned k = t < o->base_slices;

			if ((o->replaced && k != i % 2) || (!k && t < o->base_slices + o->gap))
				continue;
			v[k][in->side[k].n] = (struct change_observation){ .series = i,
				.slice = t - (k ? 0 : o->base_slices + o->gap) };
			observe(
				a, o, t, load, o->alone && i > 0 ? 0 : planted_at(o, t), &v[k][in->side[k].n++]);
		}
	}
}

#endif
