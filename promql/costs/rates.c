/*
 * How numbers move in a window: rate(), increase(), delta() and their like,
 * deriv(), predict_linear(), double_exponential_smoothing(), integral().
 *
 * A window seldom has a sample at each of its ends. So rate(), increase() and delta()
 * carry the slope between the first and the last sample on to the ends of the window, if these are
 * about as near as samples are to each other; else by half of that distance, because the series
 * seems to begin or end there. A counter is not carried on to below 0.
 *
 * Times are in whole milliseconds, as Prometheus has them.
 *
 * Source: Prometheus 3, promql/functions.go.
 */
#include <math.h>

#include "base/clock.h"
#include "promql/costs/costs.h"

static int64_t rates_ms_of(int64_t ns)
{
	return ns / NS_PER_MS - (ns % NS_PER_MS < 0);
}

static double rates_seconds_between(int64_t from_ns, int64_t to_ns)
{
	return (double)(rates_ms_of(to_ns) - rates_ms_of(from_ns)) / 1e3;
}

/* The difference of last and first; of a counter with what it lost when it began again. */
static double rates_difference(const struct samples *s, bool counter)
{
	double d = s->v[s->n - 1] - s->v[0];

	for (size_t i = 1; i < s->n && counter; i++)
		if (s->v[i] < s->v[i - 1])
			d += s->v[i - 1];
	return d;
}

/* The difference as if the window had a sample at each end, divided by so many seconds. */
static bool rates_extrapolated(const struct samples *s, bool counter, double seconds, double *out)
{
	double d, sampled, mean, to_start, to_end, to_zero;

	if (s->n < 2)
		return false;
	d = rates_difference(s, counter);
	sampled = rates_seconds_between(s->ts[0], s->ts[s->n - 1]);
	mean = sampled / (double)(s->n - 1);
	to_start = rates_seconds_between(s->min_ns, s->ts[0]);
	to_end = rates_seconds_between(s->ts[s->n - 1], s->max_ns);
	if (to_start >= mean * 1.1)
		to_start = mean / 2;
	if (counter) {
		to_zero = d > 0 && s->v[0] >= 0 ? sampled * (s->v[0] / d) : to_start;
		to_start = to_zero < to_start ? to_zero : to_start;
	}
	if (to_end >= mean * 1.1)
		to_end = mean / 2;
	/* The factor is divided, not the difference: the last bits are Prometheus's. */
	*out = d * ((sampled != 0 ? (sampled + to_start + to_end) / sampled : 1) / seconds);
	return true;
}

static bool rates_rate(const struct samples *s, double *out)
{
	return rates_extrapolated(s, true, rates_seconds_between(s->min_ns, s->max_ns), out);
}

static bool rates_increase(const struct samples *s, double *out)
{
	return rates_extrapolated(s, true, 1, out);
}

static bool rates_delta(const struct samples *s, double *out)
{
	return rates_extrapolated(s, false, 1, out);
}

/* Between the last two samples. */
static bool rates_last_step(const struct samples *s, bool counter, double *out, double *seconds)
{
	if (s->n < 2)
		return false;
	*seconds = rates_seconds_between(s->ts[s->n - 2], s->ts[s->n - 1]);
	*out = s->v[s->n - 1];
	if (!counter || !(s->v[s->n - 1] < s->v[s->n - 2]))
		*out -= s->v[s->n - 2];
	return *seconds != 0;
}

static bool rates_irate(const struct samples *s, double *out)
{
	double seconds;

	if (!rates_last_step(s, true, out, &seconds))
		return false;
	*out /= seconds;
	return true;
}

static bool rates_idelta(const struct samples *s, double *out)
{
	double seconds;

	return rates_last_step(s, false, out, &seconds);
}

/* The line of least squares: its slope, and its value at a time. */
static bool rates_fit_line(const struct samples *s, int64_t at_ns, double *slope, double *value)
{
	double x, y, sum_x = 0, rest_x = 0, sum_y = 0, rest_y = 0, n = (double)s->n;
	double sum_xy = 0, rest_xy = 0, sum_xx = 0, rest_xx = 0;
	bool level = true;

	if (s->n < 2)
		return false;
	for (size_t i = 0; i < s->n; i++) {
		x = rates_seconds_between(at_ns, s->ts[i]);
		y = s->v[i];
		level &= i == 0 || y == s->v[0];
		costs_add_exactly(x, &sum_x, &rest_x);
		costs_add_exactly(y, &sum_y, &rest_y);
		costs_add_exactly(x * y, &sum_xy, &rest_xy);
		costs_add_exactly(x * x, &sum_xx, &rest_xx);
	}
	if (level) {
		*slope = isinf(s->v[0]) ? NAN : 0;
		*value = isinf(s->v[0]) ? NAN : s->v[0];
		return true;
	}
	sum_x += rest_x;
	sum_y += rest_y;
	sum_xy += rest_xy;
	sum_xx += rest_xx;
	*slope = (sum_xy - sum_x * sum_y / n) / (sum_xx - sum_x * sum_x / n);
	*value = sum_y / n - *slope * sum_x / n;
	return true;
}

/* Times near the samples keep the sums small. */
static bool rates_deriv(const struct samples *s, double *out)
{
	double value;

	return rates_fit_line(s, s->ts[0], out, &value);
}

static bool rates_predict_linear(const struct samples *s, double *out)
{
	double slope, value;

	if (!rates_fit_line(s, s->t_ns, &slope, &value))
		return false;
	*out = slope * s->args[0] + value;
	return true;
}

/* args: how much a new value counts in the level, and in the trend. */
static bool rates_smooth(const struct samples *s, double *out)
{
	double level, before = 0, trend, next;

	if (s->n < 2)
		return false;
	level = s->v[0];
	trend = s->v[1] - s->v[0];
	for (size_t i = 1; i < s->n; i++) {
		if (i > 1)
			trend = s->args[1] * (level - before) + (1 - s->args[1]) * trend;
		next = s->args[0] * s->v[i] + (1 - s->args[0]) * (level + trend);
		before = level;
		level = next;
	}
	*out = level;
	return true;
}

/* Rules of quadrature; NaN counts as 0. */
enum { LEFT_POINTS, RIGHT_POINTS, TRAPEZOIDS };

/* The mean height between two samples, and what its addition lost. */
static double rates_height(unsigned rule, double from, double to, double *rest)
{
	double sum = from;

	*rest = 0;
	if (rule != TRAPEZOIDS)
		return rule == LEFT_POINTS ? from : to;
	costs_add_exactly(to, &sum, rest);
	if (isinf(sum) && isfinite(from) && isfinite(to)) {
		sum = from / 2;
		*rest = 0;
		costs_add_exactly(to / 2, &sum, rest);
		return sum;
	}
	*rest /= 2;
	return sum / 2;
}

static bool rates_integral(const struct samples *s, double *out)
{
	double rule = s->args[0], sum = 0, rest = 0, from, to, lost, seconds, mean;
	bool known = rule == LEFT_POINTS || rule == RIGHT_POINTS;

	for (size_t i = 1; i < s->n; i++) {
		from = isnan(s->v[i - 1]) ? 0 : s->v[i - 1];
		to = isnan(s->v[i]) ? 0 : s->v[i];
		mean = rates_height(known ? (unsigned)rule : TRAPEZOIDS, from, to, &lost);
		if (mean == 0 && lost == 0) /* 0 x Inf is not meant */
			continue;
		seconds = rates_seconds_between(s->ts[i - 1], s->ts[i]);
		rest += lost * seconds;
		costs_add_exactly(mean * seconds, &sum, &rest);
	}
	*out = isinf(sum) ? sum : sum + rest;
	return true;
}

samples_fn samples_rate(enum function_id fn)
{
	switch (fn) {
	case FN_RATE:
		return rates_rate;
	case FN_INCREASE:
		return rates_increase;
	case FN_DELTA:
		return rates_delta;
	case FN_IRATE:
		return rates_irate;
	case FN_IDELTA:
		return rates_idelta;
	case FN_DERIV:
		return rates_deriv;
	case FN_PREDICT_LINEAR:
		return rates_predict_linear;
	case FN_HOLT_WINTERS:
	case FN_DOUBLE_EXPONENTIAL_SMOOTHING:
		return rates_smooth;
	case FN_INTEGRAL:
		return rates_integral;
	default:
		return NULL;
	}
}
