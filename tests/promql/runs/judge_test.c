#include "promql/runs/judge.h"

#include <math.h>

#include "tests/check.h"

#define RUNS 10

static const double totals[RUNS] = { 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000 };

/* Counts around a mean, as far from it as Poisson counts are on average. */
static void fill(double *counts, double mean, double noise)
{
	for (int i = 0; i < RUNS; i++)
		counts[i] = mean + (i % 2 ? 1 : -1) * sqrt(mean * noise);
}

struct bench {
	double counts[2][3][RUNS], kept[2][RUNS];
	struct judge_function functions[3];
	struct judge_side sides[2];
};

static void bench_set(struct bench *b, const double mean[2][3], double noise)
{
	for (int f = 0; f < 3; f++) {
		b->functions[f] = (struct judge_function){ .budget = -1 };
		for (int s = 0; s < 2; s++) {
			fill(b->counts[s][f], mean[s][f], noise);
			b->functions[f].counts[s] = b->counts[s][f];
		}
	}
	for (int s = 0; s < 2; s++)
		b->sides[s] = (struct judge_side){ totals, b->kept[s], RUNS };
}

static const struct judge_options options = {
	.shares = true, .events = true, .threshold = 0.2, .least_share = 0.05
};

TEST(verdicts)
{
	/* The first costs 34 % more than the rest, the second the same, the third is small. */
	static const double mean[2][3] = { { 200, 300, 20 }, { 250, 300, 40 } };
	struct judge_result r;
	struct bench b;

	bench_set(&b, mean, 0.9);
	judge_runs(&options, b.sides, b.functions, 3, &r);
	CHECK_INT(r.verdict, JUDGE_WORSE);
	CHECK_INT(r.worse, 1);
	CHECK_INT(r.not_worse, 1);
	CHECK_INT(r.cannot_tell, 0);
	CHECK_INT(b.functions[0].verdict, JUDGE_WORSE);
	CHECK_INT(b.functions[1].verdict, JUDGE_NOT_WORSE);
	CHECK_INT(b.functions[2].verdict, JUDGE_LEFT_OUT);
	CHECK(fabs(b.functions[0].ratio - 4.0 / 3) < 1e-9);
	CHECK(b.functions[0].low > 1 && b.functions[0].low < b.functions[0].ratio);
	CHECK(b.functions[0].high > 1.34 && b.functions[0].high < 1.6);
	CHECK(b.functions[0].share[1] == 0.25);
	CHECK(b.functions[0].noise[0] > 1);
}

/* A function that costs less makes the shares of all others greater; none of them costs more. */
TEST(what_costs_less_makes_nothing_worse)
{
	static const double mean[2][3] = { { 400, 300, 300 }, { 110, 445, 445 } };
	struct judge_options o = options;
	struct judge_result r;
	struct bench b;

	bench_set(&b, mean, 0.9);
	judge_runs(&o, b.sides, b.functions, 3, &r);
	CHECK_INT(r.verdict, JUDGE_NOT_WORSE);
	CHECK(b.functions[0].is_cheaper && !b.functions[1].is_cheaper);
	CHECK(fabs(b.functions[1].ratio - 1) < 1e-9);
	/* Costs that overlap cannot be taken out of the others'. */
	o.overlap = true;
	judge_runs(&o, b.sides, b.functions, 3, &r);
	CHECK_INT(r.verdict, JUDGE_WORSE);
}

/* And one that costs more makes the shares of all others smaller; none of them costs less. */
TEST(what_costs_more_is_not_left_alone)
{
	static const double mean[2][3] = { { 500, 300, 200 }, { 670, 198, 132 } };
	struct judge_result r;
	struct bench b;

	bench_set(&b, mean, 0.9);
	judge_runs(&options, b.sides, b.functions, 3, &r);
	CHECK_INT(b.functions[0].verdict, JUDGE_WORSE);
	CHECK(b.functions[0].ratio > 2 && !b.functions[1].is_cheaper && !b.functions[2].is_cheaper);
	CHECK_INT(r.worse, 1);
}

/* Two functions share nearly all costs: that what fell moved a little farther is chance. */
TEST(the_greater_of_two_functions_is_worse)
{
	static const double mean[2][3] = { { 750, 240, 10 }, { 240, 745, 15 } };
	struct judge_result r;
	struct bench b;

	bench_set(&b, mean, 0.9);
	judge_runs(&options, b.sides, b.functions, 3, &r);
	CHECK_INT(b.functions[1].verdict, JUDGE_WORSE);
	CHECK(b.functions[1].ratio > 8);
	CHECK(!b.functions[0].is_cheaper);
}

/* A function at the root has all costs of each run: it is left out, and spoils nothing. */
TEST(what_takes_all_is_left_out)
{
	static const double mean[2][3] = { { 1000, 300, 200 }, { 1000, 300, 200 } };
	struct judge_result r;
	struct bench b;

	bench_set(&b, mean, 0);
	judge_runs(&options, b.sides, b.functions, 3, &r);
	CHECK_INT(b.functions[0].verdict, JUDGE_LEFT_OUT);
	CHECK_INT(r.verdict, JUDGE_NOT_WORSE);
}

TEST(noise_between_runs_counts)
{
	static const double mean[2][3] = { { 200, 300, 20 }, { 250, 300, 40 } };
	struct judge_result r;
	struct bench b;
	double more;

	bench_set(&b, mean, 16);
	judge_runs(&options, b.sides, b.functions, 3, &r);
	CHECK_INT(r.verdict, JUDGE_CANNOT_TELL);
	more = b.functions[0].more_runs;
	CHECK(more > 5 && more < 1000);
	bench_set(&b, mean, 64);
	judge_runs(&options, b.sides, b.functions, 3, &r);
	CHECK(b.functions[0].more_runs > 3 * more);
	CHECK(r.more_runs >= b.functions[0].more_runs);
}

TEST(one_run_a_side_cannot_tell)
{
	static const double mean[2][3] = { { 200, 300, 20 }, { 400, 300, 40 } };
	struct judge_result r;
	struct bench b;

	bench_set(&b, mean, 0);
	b.sides[1].n = 1;
	judge_runs(&options, b.sides, b.functions, 3, &r);
	CHECK_INT(r.verdict, JUDGE_CANNOT_TELL);
	CHECK(b.functions[0].more_runs >= 1 && b.functions[0].more_runs < 100);
	CHECK(b.functions[0].noise[1] == 0);
}

TEST(budgets)
{
	static const double mean[2][3] = { { 200, 300, 20 }, { 250, 300, 40 } };
	static const struct {
		double budget;
		enum judge_verdict verdict;
	} cases[] = { { 0.2, JUDGE_WORSE }, { 0.249, JUDGE_CANNOT_TELL }, { 0.3, JUDGE_NOT_WORSE } };
	struct judge_options o = options;

	o.threshold = -1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct judge_result r;
		struct bench b;

		bench_set(&b, mean, 0.9);
		b.functions[0].budget = cases[i].budget;
		judge_runs(&o, b.sides, b.functions, 3, &r);
		CHECK_INT(b.functions[0].budget_verdict, cases[i].verdict);
		CHECK_INT(b.functions[0].verdict, JUDGE_LEFT_OUT);
		CHECK_INT(r.verdict, cases[i].verdict);
		CHECK_INT(r.worse + r.cannot_tell + r.not_worse, 1);
		CHECK(b.functions[0].share_low < 0.25 && b.functions[0].share_high > 0.25);
		CHECK_INT(b.functions[0].more_runs > 0, cases[i].verdict == JUDGE_CANNOT_TELL);
	}
}

/* Bytes of a heap: costs without noise are different if they differ at all. */
TEST(amounts_that_are_no_events)
{
	static const double bytes[RUNS] = { [0 ... RUNS - 1] = 2.8e9 };
	static const double mean[2][3] = { { 2e9, 3e8, 20 }, { 2.5e9, 3e8, 40 } };
	const struct judge_options o = { .threshold = 0.2, .least_share = 0.05 };
	struct judge_result r;
	struct bench b;

	bench_set(&b, mean, 0);
	for (int s = 0; s < 2; s++)
		b.sides[s].totals = bytes;
	judge_runs(&o, b.sides, b.functions, 3, &r);
	CHECK_INT(b.functions[0].verdict, JUDGE_WORSE);
	CHECK(fabs(b.functions[0].ratio - 1.25) < 1e-9);
	CHECK(b.functions[0].low > 1.24 && b.functions[0].high < 1.26);
	CHECK_INT(b.functions[1].verdict, JUDGE_NOT_WORSE);
}

TEST(new_and_vanished_functions)
{
	static const double mean[2][3] = { { 0, 300, 0 }, { 250, 0, 0 } };
	struct judge_result r;
	struct bench b;

	bench_set(&b, mean, 0.9);
	judge_runs(&options, b.sides, b.functions, 3, &r);
	CHECK_INT(b.functions[0].verdict, JUDGE_WORSE);
	CHECK(isinf(b.functions[0].ratio) && isinf(b.functions[0].high));
	CHECK_INT(b.functions[1].verdict, JUDGE_NOT_WORSE);
	CHECK(b.functions[1].ratio == 0 && b.functions[1].low == 0);
	CHECK_INT(b.functions[2].verdict, JUDGE_LEFT_OUT);
	judge_runs(&options, b.sides, b.functions, 0, &r);
	CHECK_INT(r.verdict, JUDGE_LEFT_OUT);
}
