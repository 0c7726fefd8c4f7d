#include "promql/changed/student.h"

#include <math.h>

#define STEPS_MAX 10000
#define PRECISION 1e-15
#define TINY 1e-300
#define BEYOND_STEPS_MAX 200
#define BEYOND_PRECISION 1e-11

static double student_away_from_zero(double value)
{
	return fabs(value) < TINY ? TINY : value;
}

/* The fraction converges fast if x < (a + 1) / (a + b + 2). */
static double student_fraction(double a, double b, double x)
{
	double c = 1, d = 1 / student_away_from_zero(1 - (a + b) * x / (a + 1)), value = d;

	for (int m = 1; m < STEPS_MAX; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 / student_away_from_zero(1 + even * d);
		c = student_away_from_zero(1 + even / c);
		value *= d * c;
		d = 1 / student_away_from_zero(1 + odd * d);
		c = student_away_from_zero(1 + odd / c);
		step = d * c;
		value *= step;
		if (fabs(step - 1) < PRECISION)
			break;
	}
	return value;
}

/* lgamma() leaves a sign in a global that other threads write, too. */
static double student_log_gamma(double value)
{
	int sign;

	return lgamma_r(value, &sign);
}

double beta_regularized(double a, double b, double x)
{
	double front;

	if (!(a > 0) || !(b > 0))
		return 1;
	if (!(x > 0))
		return 0;
	if (x >= 1)
		return 1;
	front = exp(student_log_gamma(a + b) - student_log_gamma(a) - student_log_gamma(b) +
		a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * student_fraction(a, b, x) / a;
	return 1 - front * student_fraction(b, a, 1 - x) / b;
}

double student_two_sided(double t, double freedom)
{
	if (!(freedom > 0) || isnan(t))
		return 1;
	if (isinf(t))
		return 0;
	return beta_regularized(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double binomial_at_least(double k, double n, double p)
{
	if (!(k > 0) || !(n > 0) || isnan(p))
		return 1;
	if (k > n)
		return 0;
	return beta_regularized(k, n - k + 1, p);
}

/* False position on the logarithm of the tail, which is nearly a line, as the Illinois method. */
double student_beyond(double tail, double freedom)
{
	double want = log(2 * tail), low = 0, high = 1, at_low = -want, at_high;
	int kept = 0; /* which end stayed: -1 the upper, 1 the lower */

	if (!(freedom > 0))
		return INFINITY;
	while ((at_high = log(student_two_sided(high, freedom)) - want) > 0) {
		low = high;
		at_low = at_high;
		high *= 2;
	}
	for (int i = 0; i < BEYOND_STEPS_MAX && high - low > high * BEYOND_PRECISION; i++) {
		double mid = (low * at_high - high * at_low) / (at_high - at_low);
		double at = log(student_two_sided(mid, freedom)) - want;

		if (fabs(at) < BEYOND_PRECISION)
			return mid;
		if (at > 0) {
			low = mid;
			at_low = at;
			at_high /= kept == -1 ? 2 : 1;
			kept = -1;
		} else {
			high = mid;
			at_high = at;
			at_low /= kept == 1 ? 2 : 1;
			kept = 1;
		}
	}
	return high;
}
