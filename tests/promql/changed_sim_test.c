/*
 * changed() on services that are made up: how often it reports anything where nothing changed, and
 * how often it finds a planted regression.
 *
 * A service has 1,000 functions of eight request handlers, with heavy-tailed shares. The logarithm
 * of a function's share in a pod and minute is the sum of its own, what the pod differs by for
 * good (8 %), and three AR(1) processes: of its handler (5 %) and of itself (about 3 %), common to
 * all pods, and of itself in this pod (half as much again). How shaky a function is differs by a
 * factor of e^0.5. Shares are made to add up to one; samples are Poisson at 100 Hz of a pod's
 * processor time, which varies by pod and minute.
 *
 * `make unit-promql` runs a few evaluations of each setting, as a test. The tables of
 * promql/CHANGED.md are made by
 *
 *	EPI_CHANGED_RUNS=10000 build/tests/promql/changed_sim_test size
 *	EPI_CHANGED_RUNS=1000 build/tests/promql/changed_sim_test power
 *
 * EPI_CHANGED_ONLY=N runs setting N of the table alone, EPI_CHANGED_SEED another sequence.
 */
#include <math.h>

#include "promql/changed_statistic.h"
#include "promql/student.h"
#include "tests/check.h"

#define FUNCTIONS_N 1000
#define HANDLERS_N 8
#define SLICES_MAX 70
#define PODS_MAX 100

struct setting {
	unsigned pods, new_minutes, base_minutes;
	double phi;
	bool replaced; /* the new side has pods of its own */
	double planted; /* share; 0: nothing changes */
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

/* ---- a service ---- */

static struct service {
	double share[FUNCTIONS_N]; /* logarithms */
	double shaky[FUNCTIONS_N]; /* of the function's own shocks */
	double of_handler[HANDLERS_N][SLICES_MAX], of_function[FUNCTIONS_N][SLICES_MAX];
	double load[SLICES_MAX];
	double of_pod[FUNCTIONS_N][SLICES_MAX], in_pod[FUNCTIONS_N]; /* of the pod in work */
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

static void make_service(const struct setting *o)
{
	unsigned n = o->new_minutes + o->base_minutes;
	double sum = 0, nearest = 1;

	for (unsigned f = 0; f < FUNCTIONS_N; f++) {
		s.share[f] = pow(uniform(), -0.8);
		sum += s.share[f];
	}
	for (unsigned f = 0; f < FUNCTIONS_N; f++) {
		double share = s.share[f] / sum, want = fabs(log(share / 0.01));

		s.share[f] = log(share);
		s.shaky[f] = 0.03 * exp(0.5 * normal());
		walk(s.of_function[f], n, o->phi, s.shaky[f]);
		if (f == 0 || want < nearest) { /* what is planted costs about 1 % */
			nearest = want;
			s.planted = f;
		}
	}
	for (unsigned h = 0; h < HANDLERS_N; h++)
		walk(s.of_handler[h], n, o->phi, 0.05);
	walk(s.load, n, o->phi, 0.1);
}

static void make_pod(const struct setting *o)
{
	unsigned n = o->new_minutes + o->base_minutes;

	for (unsigned f = 0; f < FUNCTIONS_N; f++) {
		s.in_pod[f] = 0.08 * normal();
		walk(s.of_pod[f], n, o->phi, s.shaky[f] * 1.5);
	}
}

static double rate[FUNCTIONS_N];

static void observe(struct arena *a, const struct setting *o, unsigned t, double processor,
	struct change_observation *out)
{
	double sum = 0, mean = 6000 * processor * exp(s.load[t]);
	struct change_cell *cells = arena_array(a, struct change_cell, FUNCTIONS_N);

	for (unsigned f = 0; f < FUNCTIONS_N; f++) {
		rate[f] = exp(s.share[f] + s.in_pod[f] + s.of_pod[f][t] + s.of_function[f][t] +
			s.of_handler[f % HANDLERS_N][t]);
		sum += rate[f];
	}
	if (t >= o->base_minutes)
		rate[s.planted] += o->planted * sum;
	out->cells = cells;
	for (unsigned f = 0; f < FUNCTIONS_N; f++) {
		double k = poisson(mean * rate[f] / sum);

		if (k > 0)
			cells[out->n++] = (struct change_cell){ f, k };
		out->total += k;
	}
}

/* ---- one evaluation ---- */

static void evaluate(const struct setting *o, struct arena *a, struct change_output *out)
{
	static struct change_observation v[2][PODS_MAX * SLICES_MAX];
	struct change_input in = { .functions_n = FUNCTIONS_N,
		.series_n = o->pods * (o->replaced ? 2 : 1),
		.quantum = 1,
		.p = 0.01 };
	struct err err;

	in.side[0] = (struct change_side){ .v = v[0], .slices_n = o->new_minutes };
	in.side[1] = (struct change_side){ .v = v[1], .slices_n = o->base_minutes };
	make_service(o);
	for (unsigned i = 0; i < in.series_n; i++) {
		double processor = 0.7 * exp(0.3 * normal());

		make_pod(o);
		for (unsigned t = 0; t < o->new_minutes + o->base_minutes; t++) {
			unsigned k = t < o->base_minutes;

			if (o->replaced && k != i % 2)
				continue;
			v[k][in.side[k].n] = (struct change_observation){ .series = i,
				.slice = t - (k ? 0 : o->base_minutes) };
			observe(a, o, t, processor, &v[k][in.side[k].n++]);
		}
	}
	CHECK_OK(changed_judge(a, &in, out, &err), &err);
}

/* The bound of Clopper and Pearson: where P(K >= k) or P(K <= k) is 2.5 %. */
static double bound(double k, double n, bool upper)
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

static unsigned runs_of(unsigned otherwise)
{
	const char *text = getenv("EPI_CHANGED_RUNS");

	return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

/* Runs in which the planted function (or, where nothing is planted, any) is reported. */
static unsigned run(const struct setting *o, unsigned runs)
{
	const char *seed = getenv("EPI_CHANGED_SEED");
	unsigned found = 0, others = 0;
	double tested = 0, phi = 0;

	state = seed ? strtoull(seed, NULL, 10) : 1;
	for (unsigned i = 0; i < runs; i++) {
		struct change_output out;
		struct arena a;
		bool hit = false;

		arena_init(&a, 0);
		evaluate(o, &a, &out);
		for (size_t k = 0; k < out.n; k++)
			hit |= out.v[k].function == s.planted;
		if (o->planted > 0)
			others += out.n > hit;
		found += o->planted > 0 ? hit : out.n > 0;
		tested += out.tested_n;
		phi += out.persistence;
		arena_release(&a);
	}
	if (getenv("EPI_CHANGED_RUNS")) {
		printf("| %u | %um/%um | %.2f | %s | %u of %u | %.2f %% (%.2f to %.2f) |", o->pods,
			o->new_minutes, o->base_minutes, o->phi, o->replaced ? "new" : "same",
			found, runs, 100.0 * found / runs, 100 * bound(found, runs, false),
			100 * bound(found, runs, true));
		if (o->planted > 0)
			printf(" others %u |", others);
		printf(" %.0f | %.2f |\n", tested / runs, phi / runs);
	}
	return found;
}

static bool is_asked_for(size_t i)
{
	const char *only = getenv("EPI_CHANGED_ONLY");

	return !only || strtoul(only, NULL, 10) == i;
}

/* clang-format off */
static const struct setting steady[] = {
	{ 1, 10, 10, 0.0, false, 0 }, { 1, 10, 10, 0.5, false, 0 }, { 1, 10, 10, 0.8, false, 0 },
	{ 1, 10, 60, 0.0, false, 0 }, { 1, 10, 60, 0.5, false, 0 }, { 1, 10, 60, 0.8, false, 0 },
	{ 3, 10, 10, 0.0, false, 0 }, { 3, 10, 10, 0.5, false, 0 }, { 3, 10, 10, 0.8, false, 0 },
	{ 3, 10, 60, 0.0, false, 0 }, { 3, 10, 60, 0.5, false, 0 }, { 3, 10, 60, 0.8, false, 0 },
	{ 10, 10, 10, 0.0, false, 0 }, { 10, 10, 10, 0.5, false, 0 }, { 10, 10, 10, 0.8, false, 0 },
	{ 10, 10, 60, 0.0, false, 0 }, { 10, 10, 60, 0.5, false, 0 }, { 10, 10, 60, 0.8, false, 0 },
	{ 50, 10, 10, 0.0, false, 0 }, { 50, 10, 10, 0.5, false, 0 }, { 50, 10, 10, 0.8, false, 0 },
	{ 50, 10, 60, 0.0, false, 0 }, { 50, 10, 60, 0.5, false, 0 }, { 50, 10, 60, 0.8, false, 0 },
	{ 3, 10, 10, 0.0, true, 0 }, { 3, 10, 10, 0.5, true, 0 }, { 3, 10, 10, 0.8, true, 0 },
	{ 10, 10, 10, 0.0, true, 0 }, { 10, 10, 10, 0.5, true, 0 }, { 10, 10, 10, 0.8, true, 0 },
	{ 10, 10, 60, 0.0, true, 0 }, { 10, 10, 60, 0.5, true, 0 }, { 10, 10, 60, 0.8, true, 0 },
	{ 50, 10, 10, 0.5, true, 0 }, { 50, 10, 10, 0.8, true, 0 },
	/* beyond what is promised */
	{ 1, 10, 10, 0.95, false, 0 }, { 1, 10, 60, 0.95, false, 0 },
	{ 10, 10, 10, 0.95, false, 0 }, { 10, 10, 60, 0.95, false, 0 },
	{ 1, 10, 10, 0.5, true, 0 },
};
static const struct setting planted[] = {
	{ 10, 10, 60, 0.0, false, 0.005 }, { 10, 10, 60, 0.5, false, 0.005 },
	{ 50, 10, 60, 0.5, false, 0.005 },
	/* not promised */
	{ 10, 10, 60, 0.8, false, 0.005 },
	{ 10, 10, 10, 0.0, false, 0.005 }, { 10, 10, 10, 0.5, false, 0.005 },
	{ 10, 10, 10, 0.8, false, 0.005 },
	{ 10, 10, 60, 0.0, true, 0.005 }, { 10, 10, 60, 0.5, true, 0.005 },
	{ 10, 10, 60, 0.8, true, 0.005 },
	{ 1, 10, 60, 0.5, false, 0.02 }, { 3, 10, 60, 0.5, false, 0.01 },
};
#define PROMISED_POWER 3
/* clang-format on */

TEST(size)
{
	const size_t promised = sizeof(steady) / sizeof(steady[0]) - 5;
	unsigned runs = runs_of(20);

	for (size_t i = 0; i < sizeof(steady) / sizeof(steady[0]); i++) {
		unsigned found, few = runs;

		if (!is_asked_for(i) || (i >= promised && !getenv("EPI_CHANGED_RUNS")))
			continue;
		if (!getenv("EPI_CHANGED_RUNS") && steady[i].pods > 3)
			few = steady[i].pods == 50 ? 1 : 3;
		found = run(&steady[i], few);
		if (i < promised && bound(found, few, false) > 0.01)
			CHECK_FAIL("setting %zu: %u of %u evaluations report something", i, found,
				few);
	}
}

TEST(power)
{
	for (size_t i = 0; i < sizeof(planted) / sizeof(planted[0]); i++) {
		unsigned runs = runs_of(2);
		unsigned found;

		if (!is_asked_for(i) || (i >= PROMISED_POWER && !getenv("EPI_CHANGED_RUNS")))
			continue;
		found = run(&planted[i], runs);
		if (i < PROMISED_POWER && bound(found, runs, true) < 0.99)
			CHECK_FAIL("setting %zu: found in %u of %u", i, found, runs);
	}
}
