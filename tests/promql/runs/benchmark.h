/*
 * A benchmark that is made up, run many times: what a profiler counts of each run.
 *
 * The profiler takes so many samples of a run as the run got of the processors: Poisson around a
 * mean that varies from run to run (a lognormal). Each sample is of a function, drawn by the
 * functions' shares of this run: each function's cost times a gamma variable of its own, so that
 * counts are overdispersed beyond a multinomial.
 *
 * Threads: one.
 */
#ifndef TESTS_PROMQL_RUNS_BENCHMARK_H
#define TESTS_PROMQL_RUNS_BENCHMARK_H

#include <math.h>
#include <stdint.h>

#include "promql/runs/judge.h"

#define BENCHMARK_FUNCTIONS 60
#define BENCHMARK_RUNS_MAX 400

struct benchmark {
	const char *name;
	double samples; /* of a run, the mean */
	double spread; /* of runs' lengths: a deviation of logarithms */
	double shake; /* relative deviation of a function's cost from run to run */
	double bursts; /* part of runs in which collecting garbage costs three times as much */
};

/* Runs of one side: counts[function][run]. */
struct benchmark_side {
	size_t n;
	double totals[BENCHMARK_RUNS_MAX], kept[BENCHMARK_RUNS_MAX];
	double counts[BENCHMARK_FUNCTIONS][BENCHMARK_RUNS_MAX];
};

/* ---- random numbers: splitmix64 ---- */

static uint64_t benchmark_state;

static double benchmark_uniform(void)
{
	uint64_t z = benchmark_state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	z ^= z >> 31;
	return ((double)(z >> 11) + 0.5) / 9007199254740992.0;
}

static double benchmark_normal(void)
{
	double radius = sqrt(-2 * log(benchmark_uniform()));

	return radius * cos(2 * M_PI * benchmark_uniform());
}

/* Shapes of 1 and more, of mean 1: Marsaglia and Tsang (2000). */
static double benchmark_gamma(double shape)
{
	double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);

	for (;;) {
		double x = benchmark_normal(), v = 1 + c * x;

		v = v * v * v;
		if (v > 0 && log(benchmark_uniform()) < 0.5 * x * x + d - d * v + d * log(v))
			return d * v / shape;
	}
}

static unsigned benchmark_poisson(double mean)
{
	unsigned n = 0;

	for (double sum = -log(benchmark_uniform()); sum < mean; n++)
		sum -= log(benchmark_uniform());
	return n;
}

/* ---- runs ---- */

/* Shares without a change: one function of 20 %, ten more of 14 to 2 %, and a long tail. */
static void benchmark_shares(double shares[BENCHMARK_FUNCTIONS])
{
	static const double great[] = { 20, 14, 10, 8, 6, 5, 4, 3, 3, 2.5, 2 };
	size_t n = sizeof(great) / sizeof(great[0]);
	double left = 100;

	for (size_t i = 0; i < BENCHMARK_FUNCTIONS; i++) {
		if (i < n)
			shares[i] = great[i];
		else
			shares[i] = left / (double)(BENCHMARK_FUNCTIONS - n);
		if (i < n)
			left -= great[i];
	}
}

/*
 * The first function costs `factor` times as much. amounts: the work is fixed, so the run takes
 * longer if it costs more.
 */
static void benchmark_run(
	const struct benchmark *b, double factor, bool amounts, struct benchmark_side *side, size_t run)
{
	double upto[BENCHMARK_FUNCTIONS], sum = 0;
	double length = exp(b->spread * benchmark_normal() - b->spread * b->spread / 2);
	bool burst = benchmark_uniform() < b->bursts;
	unsigned n;

	benchmark_shares(upto);
	upto[0] *= factor;
	for (size_t i = 0; i < BENCHMARK_FUNCTIONS; i++) {
		double cost = upto[i];

		if (b->shake > 0)
			cost *= benchmark_gamma(1 / (b->shake * b->shake));
		if (burst && (i == 2 || i == 4 || i == 7))
			cost *= 3;
		upto[i] = sum += cost;
		side->counts[i][run] = 0;
	}
	do
		n = benchmark_poisson(b->samples * length * (amounts ? sum / 100 : 1));
	while (!n);
	side->totals[run] = n;
	while (n--) {
		double at = benchmark_uniform() * sum;
		size_t i = 0;

		while (i + 1 < BENCHMARK_FUNCTIONS && upto[i] < at)
			i++;
		side->counts[i][run]++;
	}
}

static void benchmark_runs(
	const struct benchmark *b, double factor, bool amounts, size_t n, struct benchmark_side *side)
{
	while (side->n < n)
		benchmark_run(b, factor, amounts, side, side->n++);
}

static void benchmark_judge(const struct judge_options *o, struct benchmark_side sides[2],
	struct judge_function *functions, struct judge_result *out)
{
	const struct judge_side s[2] = { { sides[0].totals, sides[0].kept, sides[0].n },
		{ sides[1].totals, sides[1].kept, sides[1].n } };

	for (size_t i = 0; i < BENCHMARK_FUNCTIONS; i++)
		functions[i] = (struct judge_function){
			.counts = { sides[0].counts[i], sides[1].counts[i] }, .budget = -1
		};
	judge_runs(o, s, functions, BENCHMARK_FUNCTIONS, out);
}

#endif
