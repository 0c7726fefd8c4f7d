/*
 * Functions over a window of numbers that look at the values alone.
 *
 * Source: Prometheus 3, promql/functions.go, for the order of additions and what NaN does.
 */
#include <math.h>

#include "base/clock.h"
#include "promql/costs/costs.h"

void costs_add_exactly(double value, double *sum, double *rest)
{
	double t = *sum + value;

	if (isinf(t))
		*rest = 0;
	else
		*rest += fabs(*sum) >= fabs(value) ? (*sum - t) + value : (value - t) + *sum;
	*sum = t;
}

static bool over_time_sum(const struct samples *s, double *out)
{
	double sum = 0, rest = 0;

	for (size_t i = 0; i < s->n; i++)
		costs_add_exactly(s->v[i], &sum, &rest);
	*out = isinf(sum) ? sum : sum + rest;
	return true;
}

/* Of the sum, unless that overflows: from there on a mean is carried along. */
static bool over_time_avg(const struct samples *s, double *out)
{
	double sum = s->v[0], rest = 0, n = 1;
	bool overflows = false;

	for (size_t i = 1; i < s->n; i++) {
		double next = sum, next_rest = rest, q;

		n = (double)(i + 1);
		if (!overflows) {
			costs_add_exactly(s->v[i], &next, &next_rest);
			if (!isinf(next)) {
				sum = next;
				rest = next_rest;
				continue;
			}
			overflows = true;
			sum /= n - 1;
			rest /= n - 1;
		}
		q = (n - 1) / n;
		sum *= q;
		rest *= q;
		costs_add_exactly(s->v[i] / n, &sum, &rest);
	}
	*out = overflows ? sum + rest : sum / n + rest / n;
	return true;
}

/* The place of the last one of equals. */
static size_t costs_over_time_place_of_best(const struct samples *s, bool greatest)
{
	size_t at = 0;

	for (size_t i = 0; i < s->n; i++)
		if ((greatest ? s->v[i] >= s->v[at] : s->v[i] <= s->v[at]) || isnan(s->v[at]))
			at = i;
	return at;
}

/* The first of equals: 0 and -0 are. */
static bool over_time_min(const struct samples *s, double *out)
{
	*out = s->v[0];
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i] < *out || isnan(*out))
			*out = s->v[i];
	return true;
}

static bool over_time_max(const struct samples *s, double *out)
{
	*out = s->v[0];
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i] > *out || isnan(*out))
			*out = s->v[i];
	return true;
}

static bool over_time_variance(const struct samples *s, double *out)
{
	double mean = 0, mean_rest = 0, sum = 0, rest = 0;

	for (size_t i = 0; i < s->n; i++) {
		double delta = s->v[i] - (mean + mean_rest);

		costs_add_exactly(delta / (double)(i + 1), &mean, &mean_rest);
		costs_add_exactly(delta * (s->v[i] - (mean + mean_rest)), &sum, &rest);
	}
	*out = (sum + rest) / (double)s->n;
	return true;
}

static bool over_time_stddev(const struct samples *s, double *out)
{
	over_time_variance(s, out);
	*out = sqrt(*out);
	return true;
}

static bool over_time_changes(const struct samples *s, double *out)
{
	size_t changes = 0;

	for (size_t i = 1; i < s->n; i++)
		changes += s->v[i] != s->v[i - 1] && !(isnan(s->v[i]) && isnan(s->v[i - 1]));
	*out = (double)changes;
	return true;
}

static bool over_time_resets(const struct samples *s, double *out)
{
	size_t resets = 0;

	for (size_t i = 1; i < s->n; i++)
		resets += s->v[i] < s->v[i - 1];
	*out = (double)resets;
	return true;
}

static bool over_time_first(const struct samples *s, double *out)
{
	*out = s->v[0];
	return true;
}

static bool over_time_last(const struct samples *s, double *out)
{
	*out = s->v[s->n - 1];
	return true;
}

static bool over_time_count(const struct samples *s, double *out)
{
	*out = (double)s->n;
	return true;
}

static bool over_time_present(const struct samples *s, double *out)
{
	*out = s->n > 0;
	return true;
}

static bool over_time_quantile(const struct samples *s, double *out)
{
	memcpy(s->room, s->v, s->n * sizeof(*s->v));
	*out = quantile_of(s->args[0], s->room, s->n);
	return true;
}

/* The median of the distances from the median. */
static bool over_time_mad(const struct samples *s, double *out)
{
	double median;

	*out = NAN;
	for (size_t i = 0; i < s->n; i++)
		if (isnan(s->v[i]))
			return true;
	memcpy(s->room, s->v, s->n * sizeof(*s->v));
	median = quantile_of(0.5, s->room, s->n);
	for (size_t i = 0; i < s->n; i++)
		s->room[i] = fabs(s->v[i] - median);
	*out = quantile_of(0.5, s->room, s->n);
	return true;
}

/* In whole milliseconds, as Prometheus has times. */
static bool costs_over_time_of(const struct samples *s, size_t at, double *out)
{
	*out = (double)(s->ts[at] / NS_PER_MS) / 1e3;
	return true;
}

static bool time_of_first(const struct samples *s, double *out)
{
	return costs_over_time_of(s, 0, out);
}

static bool time_of_last(const struct samples *s, double *out)
{
	return costs_over_time_of(s, s->n - 1, out);
}

static bool time_of_min(const struct samples *s, double *out)
{
	return costs_over_time_of(s, costs_over_time_place_of_best(s, false), out);
}

static bool time_of_max(const struct samples *s, double *out)
{
	return costs_over_time_of(s, costs_over_time_place_of_best(s, true), out);
}

samples_fn samples_function(enum function_id fn)
{
	static const samples_fn all[FUNCTIONS] = {
		[FN_SUM_OVER_TIME] = over_time_sum,
		[FN_AVG_OVER_TIME] = over_time_avg,
		[FN_MIN_OVER_TIME] = over_time_min,
		[FN_MAX_OVER_TIME] = over_time_max,
		[FN_FIRST_OVER_TIME] = over_time_first,
		[FN_LAST_OVER_TIME] = over_time_last,
		[FN_COUNT_OVER_TIME] = over_time_count,
		[FN_STDDEV_OVER_TIME] = over_time_stddev,
		[FN_STDVAR_OVER_TIME] = over_time_variance,
		[FN_QUANTILE_OVER_TIME] = over_time_quantile,
		[FN_MAD_OVER_TIME] = over_time_mad,
		[FN_PRESENT_OVER_TIME] = over_time_present,
		[FN_ABSENT_OVER_TIME] = over_time_present,
		[FN_CHANGES] = over_time_changes,
		[FN_RESETS] = over_time_resets,
		[FN_TS_OF_FIRST_OVER_TIME] = time_of_first,
		[FN_TS_OF_LAST_OVER_TIME] = time_of_last,
		[FN_TS_OF_MIN_OVER_TIME] = time_of_min,
		[FN_TS_OF_MAX_OVER_TIME] = time_of_max,
	};

	return all[fn] ? all[fn] : samples_rate(fn);
}
