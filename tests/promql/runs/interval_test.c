#include "promql/runs/interval.h"

#include <math.h>

#include "tests/check.h"

static void check_end_near(double got, double want, double precision, const char *what)
{
	if (!(fabs(got - want) <= precision * fmax(1, fabs(want))))
		CHECK_FAIL("%s is %.12g, want %.12g", what, got, want);
}

static double log_likelihood(double count, double total, double share)
{
	return (count > 0 ? count * log(share) : 0) +
		(total > count ? (total - count) * log(1 - share) : 0);
}

/* The deviance of a ratio of odds, by trying all shares of base. */
static double deviance_tried(const struct interval_counts *c, double log_ratio)
{
	double best = -INFINITY, top = 0;

	for (int i = 1; i < 400000; i++) {
		double share = i / 400000.0, odds = share / (1 - share) * exp(log_ratio);
		double sum = log_likelihood(c->count[0], c->total[0], share) +
			log_likelihood(c->count[1], c->total[1], odds / (1 + odds));

		best = fmax(best, sum);
	}
	for (int i = 0; i < 2; i++)
		top += log_likelihood(c->count[i], c->total[i], c->count[i] / c->total[i]);
	return 2 * (top - best);
}

TEST(ends_have_the_deviance_that_is_asked_for)
{
	static const struct interval_counts cases[] = {
		{ true, { 200, 250 }, { 1000, 1000 } },
		{ true, { 20, 41 }, { 1000, 500 } },
		{ true, { 950, 970 }, { 1000, 1000 } },
		{ true, { 3.5, 7.25 }, { 70.5, 60 } },
		{ true, { 0, 12 }, { 500, 400 } },
		{ true, { 12, 0 }, { 500, 400 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct interval_counts *c = &cases[i];
		double low = interval_low(c, 2), high = interval_high(c, 2);

		CHECK(low <= interval_estimate(c) && interval_estimate(c) <= high);
		if (isfinite(low))
			check_end_near(deviance_tried(c, low), 4, 1e-4, "low");
		if (isfinite(high))
			check_end_near(deviance_tried(c, high), 4, 1e-4, "high");
		CHECK_INT(isfinite(low), c->count[1] > 0);
		CHECK_INT(isfinite(high), c->count[0] > 0);
	}
}

TEST(amounts_have_closed_forms)
{
	struct interval_counts c = { false, { 50, 0 }, { 10, 10 } };

	/* 2 k ln(1 + r) = t^2 */
	check_end_near(interval_high(&c, 3), log(exp(9.0 / 100) - 1), 1e-9, "none in new");
	CHECK(isinf(interval_low(&c, 3)));
	c = (struct interval_counts){ false, { 50, 75 }, { 10, 5 } };
	check_end_near(interval_estimate(&c), log(3), 1e-12, "estimate");
	c = (struct interval_counts){ false, { 4e6, 4e6 }, { 10, 10 } };
	check_end_near(interval_high(&c, 2), 2 * sqrt(2 / 4e6), 1e-6, "many");
	check_end_near(interval_low(&c, 2), -2 * sqrt(2 / 4e6), 1e-6, "many");
	c = (struct interval_counts){ false, { 0, 0 }, { 10, 10 } };
	CHECK(isinf(interval_low(&c, 2)) && isinf(interval_high(&c, 2)));
}

/* No other function: there is nothing to be relative to. */
TEST(a_function_that_is_everything)
{
	const struct interval_counts c = { true, { 100, 100 }, { 100, 100 } };

	CHECK(isinf(interval_high(&c, 2)) && isinf(interval_low(&c, 2)));
	CHECK(interval_estimate(&c) == 0);
}

TEST(shares_of_one_side)
{
	/* Nothing of n: n ln(1 - p) = -t^2 / 2. */
	check_end_near(interval_share_high(0, 100, 2), 1 - exp(-0.02), 1e-9, "none");
	CHECK(interval_share_low(0, 100, 2) == 0);
	CHECK(interval_share_high(100, 100, 2) == 1);
	check_end_near(interval_share_low(100, 100, 2), exp(-0.02), 1e-9, "all");
	check_end_near(interval_share_high(2e6, 1e7, 3), 0.2 + 3 * sqrt(0.16 / 1e7), 1e-6, "many");
}
