#include "promql/runs/interval.h"

#include <math.h>

#define STEPS 60
#define LOG_MAX 30 /* of ratios that are looked at */

/* x ln(x / y), which is 0 for no counts. */
static double interval_term(double x, double y)
{
	return x > 0 ? x * log(x / y) : 0;
}

/* The base's share that is most likely if the odds differ by the factor `ratio`. */
static double interval_base_share(const struct interval_counts *c, double ratio)
{
	double counts = c->count[0] + c->count[1], a = ratio - 1;
	double b = c->total[0] + c->total[1] * ratio - counts * a;

	return 2 * counts / (b + sqrt(fmax(0, b * b + 4 * c->total[0] * a * counts)));
}

static double interval_deviance_of_shares(const struct interval_counts *c, double ratio)
{
	double p[2], sum = 0;

	p[0] = interval_base_share(c, ratio);
	p[1] = ratio * p[0] / (1 + (ratio - 1) * p[0]);
	for (int i = 0; i < 2; i++) {
		double rest = c->total[i] - c->count[i];

		sum += interval_term(c->count[i], c->total[i] * p[i]) +
			interval_term(rest, c->total[i] * (1 - p[i]));
	}
	return 2 * sum;
}

static double interval_deviance_of_amounts(const struct interval_counts *c, double ratio)
{
	double rate = (c->count[0] + c->count[1]) / (c->total[0] + ratio * c->total[1]);

	return 2 *
		(interval_term(c->count[0], c->total[0] * rate) +
			interval_term(c->count[1], c->total[1] * rate * ratio));
}

static double interval_deviance(const struct interval_counts *c, double log_ratio)
{
	double ratio = exp(log_ratio);

	return c->shares ? interval_deviance_of_shares(c, ratio) :
					   interval_deviance_of_amounts(c, ratio);
}

double interval_estimate(const struct interval_counts *c)
{
	double amount[2];

	for (int i = 0; i < 2; i++)
		amount[i] = c->count[i] / (c->shares ? c->total[i] - c->count[i] : c->total[i]);
	if (!(c->count[0] > 0))
		return c->count[1] > 0 ? INFINITY : 0;
	if (isinf(amount[0]))
		return isinf(amount[1]) ? 0 : -INFINITY;
	return log(amount[1] / amount[0]);
}

/* Between the estimate and `far` the deviance only grows. */
static double interval_end(const struct interval_counts *c, double estimate, double far, double t)
{
	double near = fmin(fmax(estimate, -LOG_MAX), LOG_MAX);

	for (int i = 0; i < STEPS; i++) {
		double mid = (near + far) / 2;

		if (interval_deviance(c, mid) > t * t)
			far = mid;
		else
			near = mid;
	}
	return near;
}

/* There is no other function on this side that its cost could be relative to. */
static bool interval_is_all(const struct interval_counts *c, int side)
{
	return c->shares && !(c->count[side] < c->total[side]);
}

double interval_low(const struct interval_counts *c, double t)
{
	if (!(c->count[1] > 0) || interval_is_all(c, 0))
		return -INFINITY;
	return interval_end(c, interval_estimate(c), -LOG_MAX, t);
}

double interval_high(const struct interval_counts *c, double t)
{
	if (!(c->count[0] > 0) || interval_is_all(c, 1))
		return INFINITY;
	return interval_end(c, interval_estimate(c), LOG_MAX, t);
}

static double interval_share_end(double count, double total, double far, double t)
{
	double near = count / total;

	for (int i = 0; i < STEPS; i++) {
		double mid = (near + far) / 2;
		double deviance = 2 *
			(interval_term(count, total * mid) + interval_term(total - count, total * (1 - mid)));

		if (deviance > t * t)
			far = mid;
		else
			near = mid;
	}
	return near;
}

double interval_share_low(double count, double total, double t)
{
	return count > 0 ? interval_share_end(count, total, 0, t) : 0;
}

double interval_share_high(double count, double total, double t)
{
	return count < total ? interval_share_end(count, total, 1, t) : 1;
}
