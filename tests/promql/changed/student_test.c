#include "promql/changed/student.h"

#include <math.h>

#include "tests/check.h"

static void check_near(double got, double want, const char *what)
{
	if (!(fabs(got - want) <= 1e-10 * fabs(want)))
		CHECK_FAIL("%s is %.15g, want %.15g", what, got, want);
}

TEST(tails_of_student_are_those_of_closed_forms)
{
	/* One degree of freedom is Cauchy's; two and four are algebraic (A. and S. 26.7.3-4). */
	for (double t = 0.1; t < 1e5; t *= 3) {
		double cos2 = 4 / (4 + t * t), sine = sqrt(1 - cos2);
		double two = 2 / (sqrt(2 + t * t) * (sqrt(2 + t * t) + t));
		double rest = 1 - sine;

		if (sine > 0.5)
			rest = cos2 / (1 + sine); /* 1 - sine without cancellation */
		check_near(student_two_sided(t, 1), 2 / M_PI * atan2(1, t), "t, 1");
		check_near(student_two_sided(t, 2), two, "t, 2");
		/* 1 - sine (1 + cos^2 / 2) = rest - sine cos^2 / 2 = rest^2 (2 + sine) / 2 */
		check_near(student_two_sided(t, 4), rest * rest * (2 + sine) / 2, "t, 4");
	}
}

TEST(quantiles_of_student_are_those_of_tables)
{
	/* R's qt(1 - p / 2, n), as printed in tables to the digits given. */
	/* clang-format off */
	static const struct {
		double t, freedom, p, digits;
	} rows[] = {
		{ 12.7062047362, 1, 0.05, 1e-10 }, { 4.30265272991, 2, 0.05, 1e-10 },
		{ 2.57058183661, 5, 0.05, 1e-10 }, { 2.22813885196, 10, 0.05, 1e-10 },
		{ 3.16927267261, 10, 0.01, 1e-10 }, { 2.04227245630, 30, 0.05, 1e-10 },
		{ 1.98397151852, 100, 0.05, 1e-10 },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (fabs(student_two_sided(rows[i].t, rows[i].freedom) - rows[i].p) > rows[i].digits)
			CHECK_FAIL("P(|T| >= %g) with %g degrees of freedom is %.13g, want %g", rows[i].t,
				rows[i].freedom, student_two_sided(rows[i].t, rows[i].freedom), rows[i].p);
}

TEST(many_degrees_of_freedom_are_a_normal)
{
	for (double t = 0.5; t < 6; t += 0.5) {
		double normal = erfc(t / M_SQRT2), got = student_two_sided(t, 1e7);

		if (fabs(got - normal) > 1e-4 * normal)
			CHECK_FAIL("at %g: %.12g, want %.12g", t, got, normal);
	}
}

TEST(tails_of_binomials_are_their_sums)
{
	for (int n = 1; n <= 60; n += 7)
		for (double p = 0.05; p < 1; p += 0.15) {
			double sum = 0;

			for (int k = n; k >= 1; k--) {
				sum += exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) +
					(n - k) * log1p(-p));
				check_near(binomial_at_least(k, n, p), sum, "binomial");
			}
			CHECK(binomial_at_least(0, n, p) == 1);
			CHECK(binomial_at_least(n + 1, n, p) == 0);
		}
}

TEST(what_is_no_distribution_says_nothing)
{
	CHECK(student_two_sided(3, 0) == 1);
	CHECK(student_two_sided(3, -1) == 1);
	CHECK(student_two_sided(NAN, 5) == 1);
	CHECK(student_two_sided(INFINITY, 5) == 0);
	CHECK(student_two_sided(0, 5) == 1);
	CHECK(binomial_at_least(3, 0, 0.5) == 1);
	CHECK(binomial_at_least(3, 5, NAN) == 1);
	CHECK(beta_regularized(0, 1, 0.5) == 1);
	CHECK(beta_regularized(2, 3, 0) == 0);
	CHECK(beta_regularized(2, 3, 1) == 1);
}

TEST(quantiles_invert_tails)
{
	for (double freedom = 1; freedom < 1000; freedom *= 1.7)
		for (double tail = 0.4; tail > 1e-7; tail /= 3)
			check_near(student_two_sided(student_beyond(tail, freedom), freedom), 2 * tail, "tail");
	check_near(student_beyond(0.025, 10), 2.228138851964939, "quantile");
	CHECK(isinf(student_beyond(0.025, 0)));
}
