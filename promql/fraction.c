/*
 * Profiles that are quotients: rates, means of levels. Each series is multiplied by a factor of its
 * own, so there is no common divisor; costs are kept in units of 2^-62 until they are shown.
 */
#include "promql/eval.h"

#include <math.h>

#include "base/clock.h"

/* ---- factors ---- */

bool over_has_factor(enum over_time over, const struct profile_type *type)
{
	return over == OVER_RATE || over == OVER_AVG || (over == OVER_SUM && !type->delta);
}

typedef unsigned __int128 whole;

static whole common(whole a, whole b)
{
	while (b) {
		whole rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* a / b x c / d, in lowest terms so that what has an exact value gets it. */
static struct factor product(whole a, whole b, whole c, whole d)
{
	whole g;

	g = common(a, b);
	a /= g;
	b /= g;
	g = common(c, d);
	c /= g;
	d /= g;
	g = common(a, d);
	a /= g;
	d /= g;
	g = common(c, b);
	c /= g;
	b /= g;
	return (struct factor){ (long double)a * (long double)c, (long double)b * (long double)d };
}

/*
 * Rows of a delta say how much of their interval was profiled. Levels come multiplied by their
 * intervals: divided by the sum of them that is a mean, in which each scrape counts by the time it
 * stands for, and the sum is the mean of as many scrapes.
 */
struct factor over_factor(enum over_time over, const struct profile_type *type,
	const struct sum_stats *stats, int64_t window_ns)
{
	whole rows = stats->rows ? stats->rows : 1, elapsed = 1, profiled = 1;

	if (stats->elapsed_ns > 0 && stats->profiled_ns > 0) {
		elapsed = (whole)stats->elapsed_ns;
		profiled = (whole)stats->profiled_ns;
	}
	if (over == OVER_RATE)
		return product(elapsed, profiled, NS_PER_S, (whole)window_ns);
	if (over == OVER_SUM)
		return product(rows, elapsed, 1, 1);
	return type->delta ? product(1, rows, 1, 1) : product(1, elapsed, 1, 1);
}

bool fraction_of(struct factor f, __int128 v, __int128 *out)
{
	long double scaled =
		roundl((long double)v * f.multiplier / f.divisor * (long double)FRACTION_ONE);

	if (!(fabsl(scaled) < 0x1p125L))
		return false;
	*out = (__int128)scaled;
	return true;
}

/* ---- as whole numbers ---- */

static enum err_code settle(struct eval *ev, struct profile_value *p, struct err *err)
{
	long double sum = 0;
	__int128 half, v;
	enum err_code rc;
	int shift = 0;

	if ((rc = profile_join_epochs(ev, p, err)))
		return rc;
	for (size_t i = 0; i < p->parts_n; i++)
		for (size_t c = 0; c < p->parts[i].n; c++)
			sum += fabsl((long double)p->parts[i].wide[c]);
	while (sum >= 0x1p61L) { /* no sum of some of them passes 64 bits then */
		sum /= 2;
		shift++;
	}
	half = shift ? (__int128)1 << (shift - 1) : 0;
	for (size_t i = 0; i < p->parts_n; i++) {
		struct part *part = &p->parts[i];
		size_t k = 0;

		for (size_t c = 0; c < part->n; c++) {
			v = part->wide[c];
			v = v < 0 ? -((half - v) >> shift) : (v + half) >> shift;
			if (v == 0)
				continue;
			part->cells[k] = part->cells[c];
			part->cells[k++].value = (int64_t)v;
		}
		part->n = k;
		part->wide = NULL;
	}
	p->divisor = 0;
	p->exponent = 62 - shift;
	return ERR_OK;
}

enum err_code profiles_settle(struct eval *ev, struct value *v, struct err *err)
{
	enum err_code rc;

	for (size_t i = 0; v->type == VALUE_PROFILES && i < v->n; i++)
		if (v->profiles[i].fraction && v->profiles[i].divisor &&
			(rc = settle(ev, &v->profiles[i], err)))
			return rc;
	return profiles_round(ev, v, err);
}
