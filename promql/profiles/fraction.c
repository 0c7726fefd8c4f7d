/*
 * Profiles that are quotients: rates, means of levels. Each series has its own factor, so there is
 * no common divisor. Costs are kept in units of 2^-62 until they are shown.
 */
#include "promql/profiles/profiles.h"

#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "base/integer.h"

/* ---- factors ---- */

bool fraction_has_factor(enum over_time over, const struct profile_type *type)
{
	return over == OVER_RATE || over == OVER_MEAN_RATE || over == OVER_AVG ||
		(over == OVER_SUM && !type->delta);
}

typedef unsigned __int128 whole;

/* a / b x third / fourth, in lowest terms, so that the result is exact if it can be. */
static struct factor fraction_product(whole a, whole b, whole third, whole fourth)
{
	whole g;

	g = integer_gcd128(a, b);
	a /= g;
	b /= g;
	g = integer_gcd128(third, fourth);
	third /= g;
	fourth /= g;
	g = integer_gcd128(a, fourth);
	a /= g;
	fourth /= g;
	g = integer_gcd128(third, b);
	third /= g;
	b /= g;
	return (
		struct factor){ (long double)a * (long double)third, (long double)b * (long double)fourth };
}

/*
 * Rows of a delta say how much of their interval was profiled. Values of levels come multiplied by
 * what they count of the window, and divided by all that they count they are a mean. For the sum of
 * levels each counts its interval (SUM_EACH), and that mean is multiplied by the number of scrapes.
 */
struct factor fraction_factor(enum over_time over, const struct profile_type *type,
	const struct sum_stats *stats, int64_t window_ns)
{
	whole rows = stats->rows ? stats->rows : 1, elapsed = 1, profiled = 1;

	assert(window_ns > 0 || (over != OVER_RATE && over != OVER_MEAN_RATE));
	if (stats->elapsed_ns > 0 && stats->profiled_ns > 0) {
		elapsed = (whole)stats->elapsed_ns;
		profiled = (whole)stats->profiled_ns;
	}
	if (over == OVER_RATE || over == OVER_MEAN_RATE)
		return fraction_product(elapsed, profiled, NS_PER_S, (whole)window_ns);
	if (over == OVER_SUM)
		return fraction_product(rows, elapsed, 1, 1);
	return type->delta ? fraction_product(1, rows, 1, 1) : fraction_product(1, elapsed, 1, 1);
}

bool fraction_of(struct factor f, __int128 value, __int128 *out)
{
	long double scaled = roundl(
		(long double)value * f.multiplier / f.divisor * (long double)FRACTION_ONE);

	if (!(fabsl(scaled) < 0x1p125L))
		return false;
	*out = (__int128)scaled;
	return true;
}

/* ---- as whole numbers of 2^-exponent ---- */

/* Rounds half away from zero if bits are lost. */
bool cost_shift(int64_t value, int shift, int64_t *out)
{
	__int128 half, wide = value;

	if (shift > 0) {
		half = (__int128)1 << (shift > 65 ? 65 : shift) >> 1;
		wide = wide < 0 ? -((half - wide) >> (shift > 65 ? 65 : shift)) :
						  (wide + half) >> (shift > 65 ? 65 : shift);
	} else if (value && shift < 0) {
		if (shift < -63)
			return false;
		wide *= (__int128)1 << -shift;
	}
	*out = (int64_t)wide;
	return *out == wide;
}

static void fraction_settle(struct profile_value *p, int shift)
{
	__int128 half = shift ? (__int128)1 << (shift - 1) : 0, v;

	assert(p->fraction && p->divisor == FRACTION_ONE);
	assert(shift >= 0 && shift < 127);
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
}

static bool fraction_is_unsettled(const struct profile_value *p)
{
	return p->fraction && p->divisor;
}

/* One exponent for all elements, so that they can be merged. */
enum err_code profiles_settle(struct work *work, struct value *v, struct err *err)
{
	size_t n = v->type == VALUE_PROFILES ? v->n : 0;
	long double sum = 0;
	enum err_code rc;
	int shift = 0;

	for (size_t i = 0; i < n; i++) {
		struct profile_value *p = &v->profiles[i];

		if (!fraction_is_unsettled(p))
			continue;
		if ((rc = profile_join_epochs(work, p, err)))
			return rc;
		for (size_t k = 0; k < p->parts_n; k++)
			for (size_t c = 0; c < p->parts[k].n; c++)
				sum += fabsl((long double)p->parts[k].wide[c]);
	}
	while (sum >= 0x1p61L) { /* no sum of some of them passes 64 bits then */
		sum /= 2;
		shift++;
	}
	for (size_t i = 0; i < n; i++)
		if (fraction_is_unsettled(&v->profiles[i]))
			fraction_settle(&v->profiles[i], shift);
	return profiles_round(work, v, err);
}

static enum err_code fraction_shift_part(
	struct work *work, int shift, const struct part *from, struct part *to, struct err *err)
{
	*to = *from;
	to->n = 0;
	if (!(to->cells = arena_alloc_raw(work->arena, from->n + 1, sizeof(*to->cells))))
		return work_nomem(work, err);
	for (size_t i = 0; i < from->n; i++) {
		struct cell *cell = &to->cells[to->n];

		*cell = from->cells[i];
		if (!cost_shift(cell->value, shift, &cell->value) ||
			!cost_shift(cell->base, shift, &cell->base))
			return err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
		to->n += cell->value != 0 || cell->base != 0;
	}
	return ERR_OK;
}

enum err_code profile_with_exponent(struct work *work, const struct profile_value *in, int exponent,
	struct profile_value *out, struct err *err)
{
	int shift = in->exponent - exponent;
	struct profile_value from;
	enum err_code rc;

	*out = *in;
	if (shift == 0)
		return ERR_OK;
	if ((rc = profile_joined(work, in, &from, err)))
		return rc;
	*out = from;
	out->exponent = exponent;
	if (!(out->parts = arena_array(work->arena, struct part, from.parts_n + 1)))
		return work_nomem(work, err);
	for (size_t i = 0; i < from.parts_n; i++)
		if ((rc = fraction_shift_part(work, shift, &from.parts[i], &out->parts[i], err)))
			return rc;
	if (!cost_shift(in->value_size, shift, &out->value_size) ||
		!cost_shift(in->base_size, shift, &out->base_size))
		return err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
	return profile_totals(out, err);
}

enum err_code profiles_whole(
	struct work *work, const struct expr *e, struct value *v, struct err *err)
{
	struct profile_value *profiles;
	enum err_code rc;
	bool any = false;

	for (size_t i = 0; v->type == VALUE_PROFILES && i < v->n; i++)
		any |= v->profiles[i].fraction;
	if (!any)
		return ERR_OK;
	if (!(profiles = arena_array(work->arena, struct profile_value, v->n)))
		return work_nomem(work, err);
	for (size_t i = 0; i < v->n; i++) {
		rc = profile_with_exponent(work, &v->profiles[i], 0, &profiles[i], err);
		if (rc == ERR_LIMIT)
			return work_fault(work, e, err, rc, "a cost exceeds 64 bits");
		if (rc)
			return rc;
		profiles[i].fraction = false;
	}
	v->profiles = profiles;
	return ERR_OK;
}
