/*
 * Verdicts on benchmarks that are made up (benchmark.h): how often the same code fails, and what is
 * said of a function that costs more.
 *
 * `make verdict-trial` judges 1,000 pairs of each setting and prints the tables of
 * promql/runs/RUNS.md (tests/promql/trial.h).
 */
#include "promql/runs/judge.h"
#include "tests/check.h"
#include "tests/promql/runs/benchmark.h"
#include "tests/promql/trial.h"

#define PAIRS 25

/* clang-format off */
static const struct benchmark benchmarks[] = {
	{ "quiet",    100, 0.10, 0.03, 0 },
	{ "loaded",   100, 0.55, 0.05, 0 },
	{ "restless", 100, 0.25, 0.15, 0 },
	{ "bursts",   100, 0.25, 0.05, 0.1 },
};
/* clang-format on */
#define BENCHMARKS (sizeof(benchmarks) / sizeof(benchmarks[0]))

struct trial {
	const char *what;
	double factor; /* the first function's cost, new over base */
	size_t runs[2];
	bool amounts; /* of a fixed number of iterations; else shares of a fixed time */
};

/* The first function's share is 20 %; 4/3 makes it 25 %. */
static const struct trial trials[] = {
	{ "the same", 1, { 5, 5 } },
	{ "the same", 1, { 10, 10 } },
	{ "the same", 1, { 20, 20 } },
	{ "the same", 1, { 40, 40 } },
	{ "the same", 1, { 40, 10 } },
	{ "20 to 25 %", 4.0 / 3, { 5, 5 } },
	{ "20 to 25 %", 4.0 / 3, { 10, 10 } },
	{ "20 to 25 %", 4.0 / 3, { 20, 20 } },
	{ "20 to 25 %", 4.0 / 3, { 40, 40 } },
	{ "20 to 25 %", 4.0 / 3, { 40, 10 } },
	{ "the same, amounts", 1, { 10, 10 }, true },
	{ "the same, amounts", 1, { 40, 40 }, true },
	{ "20 to 25 %, amounts", 4.0 / 3, { 40, 40 }, true },
	{ "1.2 times", 1.2, { 10, 10 } },
	{ "1.2 times", 1.2, { 40, 40 } },
	{ "1.2 times", 1.2, { 200, 200 } },
	{ "20 to 11 %", 0.5, { 10, 10 } },
	{ "20 to 11 %", 0.5, { 40, 40 } },
	{ "20 to 11 %, amounts", 0.5, { 40, 40 }, true },
};
#define TRIALS (sizeof(trials) / sizeof(trials[0]))

struct tally {
	unsigned whole[4], first[4]; /* by verdict */
	unsigned told; /* of those that could not be told, after the runs that were asked for */
	double more_sum;
};

static struct benchmark_side sides[2];

static void trial_pair(const struct benchmark *b, const struct trial *t, struct tally *out)
{
	const struct judge_options o = {
		.shares = !t->amounts, .events = true, .threshold = 0.2, .least_share = 0.05
	};
	struct judge_function functions[BENCHMARK_FUNCTIONS];
	struct judge_result r;
	size_t more;

	for (int s = 0; s < 2; s++) {
		sides[s].n = 0;
		benchmark_runs(b, s ? t->factor : 1, t->amounts, t->runs[s], &sides[s]);
	}
	benchmark_judge(&o, sides, functions, &r);
	out->whole[r.verdict]++;
	out->first[functions[0].verdict]++;
	if (functions[0].verdict != JUDGE_CANNOT_TELL)
		return;
	more = (size_t)functions[0].more_runs;
	out->more_sum += functions[0].more_runs;
	if (!trial_is_table())
		return;
	for (int s = 0; s < 2; s++)
		benchmark_runs(b, s ? t->factor : 1, t->amounts,
			t->runs[s] + more < BENCHMARK_RUNS_MAX ? t->runs[s] + more : BENCHMARK_RUNS_MAX,
			&sides[s]);
	benchmark_judge(&o, sides, functions, &r);
	out->told += functions[0].verdict != JUDGE_CANNOT_TELL;
}

static void trial_judge_pairs(size_t at, struct tally *out)
{
	unsigned pairs = trial_runs(PAIRS);
	const struct trial *t = &trials[at % TRIALS];
	const struct benchmark *b = &benchmarks[at / TRIALS];

	*out = (struct tally){ 0 };
	benchmark_state = trial_seed(at);
	for (unsigned i = 0; i < pairs; i++)
		trial_pair(b, t, out);
	if (!trial_is_table())
		return;
	printf("| %s | %s | %zu/%zu | %u, %u, %u | %u, %u, %u |", b->name, t->what, t->runs[0],
		t->runs[1], out->whole[JUDGE_WORSE], out->whole[JUDGE_CANNOT_TELL],
		out->whole[JUDGE_NOT_WORSE], out->first[JUDGE_WORSE], out->first[JUDGE_CANNOT_TELL],
		out->first[JUDGE_NOT_WORSE]);
	if (out->first[JUDGE_CANNOT_TELL])
		printf(" %.0f: %u of %u", out->more_sum / out->first[JUDGE_CANNOT_TELL], out->told,
			out->first[JUDGE_CANNOT_TELL]);
	printf(" |\n");
	fflush(stdout);
}

static bool is_tried(const struct trial *t, bool same)
{
	if (!trial_is_asked_for((size_t)(t - trials)))
		return false;
	return same == !(t->factor > 1) && (trial_is_table() || t->runs[0] <= 40);
}

TEST(what_costs_no_more_passes)
{
	for (size_t at = 0; at < BENCHMARKS * TRIALS; at++) {
		const struct trial *t = &trials[at % TRIALS];
		struct tally tally;

		if (!is_tried(t, true))
			continue;
		trial_judge_pairs(at, &tally);
		if (!trial_is_table() && tally.whole[JUDGE_WORSE] > 2) /* of 25: one in 500 at 1 % */
			CHECK_FAIL("%s, %zu/%zu runs: %u of %u pairs are worse", benchmarks[at / TRIALS].name,
				t->runs[0], t->runs[1], tally.whole[JUDGE_WORSE], PAIRS);
	}
}

TEST(costlier_functions_are_found_or_cannot_be_told)
{
	for (size_t at = 0; at < BENCHMARKS * TRIALS; at++) {
		const struct trial *t = &trials[at % TRIALS];
		const char *name = benchmarks[at / TRIALS].name;
		struct tally tally;

		if (!is_tried(t, false))
			continue;
		trial_judge_pairs(at, &tally);
		if (trial_is_table())
			continue;
		if (tally.first[JUDGE_NOT_WORSE] > 3)
			CHECK_FAIL("%s, %s, %zu/%zu runs: %u of %u are not worse", name, t->what, t->runs[0],
				t->runs[1], tally.first[JUDGE_NOT_WORSE], PAIRS);
		if (t->factor > 1.3 && t->runs[1] == 40 && !t->amounts &&
			tally.first[JUDGE_WORSE] < PAIRS - 5)
			CHECK_FAIL(
				"%s, %s: found in %u of %u pairs", name, t->what, tally.first[JUDGE_WORSE], PAIRS);
	}
}
