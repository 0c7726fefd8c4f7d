/*
 * Profiles times a number. Each cell is rounded by itself, so the epochs of a stack are joined
 * first. For fractions the number's exponent is added to theirs, so costs do not grow. And profiles
 * in another unit, which is exact.
 */
#include "promql/profiles/profiles.h"

#include <assert.h>
#include <math.h>

#include "proto/report/pprof_unit.h"

struct profiles_scale {
	double factor;
	bool divide;
	bool fraction; /* the factor's magnitude is at most 1 to multiply by, at least 1 to divide by */
};

static bool scale_cost(int64_t *value, struct profiles_scale s)
{
	double scaled;

	if (s.fraction) {
		*value = (int64_t)roundl(s.divide ? (long double)*value / (long double)s.factor :
											(long double)*value * (long double)s.factor);
		return true;
	}
	scaled = round(s.divide ? (double)*value / s.factor : (double)*value * s.factor);
	if (!(scaled > -0x1p63 && scaled < 0x1p63))
		return false;
	*value = (int64_t)scaled;
	return true;
}

static bool scale_size(int64_t *value, struct profiles_scale s)
{
	s.factor = fabs(s.factor);
	return scale_cost(value, s);
}

static enum err_code scale_part(struct work *work, const struct expr *e, struct profiles_scale s,
	const struct part *from, struct part *to, struct err *err)
{
	*to = *from;
	to->n = 0;
	if (!(to->cells = arena_alloc_raw(work->arena, from->n + 1, sizeof(*to->cells))))
		return work_nomem(work, err);
	for (size_t i = 0; i < from->n; i++) {
		struct cell *cell = &to->cells[to->n];

		*cell = from->cells[i];
		if (!scale_cost(&cell->value, s) || !scale_cost(&cell->base, s))
			return work_fault(work, e, err, ERR_LIMIT, "a scaled cost exceeds 64 bits");
		to->n += cell->value != 0 || cell->base != 0;
	}
	return ERR_OK;
}

/* The factor without its power of two, which goes to the exponent. */
static struct profiles_scale scale_of_fraction(struct profile_value *p, double factor, bool divide)
{
	int power;
	double rest = frexp(factor, &power);

	p->exponent += divide ? power - 1 : -power;
	return (struct profiles_scale){ divide ? rest * 2 : rest, divide, true };
}

enum err_code profiles_scale(struct work *work, const struct expr *e, const struct value *in,
	double factor, bool divide, struct value *out, struct err *err)
{
	struct profiles_scale s = { factor, divide, false };
	enum err_code rc;

	assert(e->kind == EXPR_BINARY);
	assert(!in->n || in->type & VALUE_PROFILES);
	*out = *in;
	if (!isfinite(factor) || (divide && factor == 0))
		return work_fault(work, e, err, ERR_INVALID, "profiles cannot be %s by %g",
			divide ? "divided" : "multiplied", factor);
	out->profiles = arena_array(work->arena, struct profile_value, in->n + 1);
	if (!out->profiles)
		return work_nomem(work, err);
	for (size_t i = 0; i < in->n; i++) {
		struct profile_value *p = &out->profiles[i], from;

		if ((rc = profile_joined(work, &in->profiles[i], &from, err)))
			return rc;
		*p = from;
		if (p->fraction)
			s = scale_of_fraction(p, factor, divide);
		if (!(p->parts = arena_array(work->arena, struct part, p->parts_n + 1)))
			return work_nomem(work, err);
		for (size_t k = 0; k < p->parts_n; k++)
			if ((rc = scale_part(work, e, s, &from.parts[k], &p->parts[k], err)))
				return rc;
		if (p->filtered && (!scale_size(&p->value_size, s) || !scale_size(&p->base_size, s)))
			return work_fault(work, e, err, ERR_LIMIT, "a scaled cost exceeds 64 bits");
		if ((rc = profile_totals(p, err)))
			return rc;
	}
	return ERR_OK;
}

enum err_code profile_in_unit(struct work *work, const struct profile_value *in, struct str unit,
	struct profile_value *out, struct err *err)
{
	int64_t ratio = pprof_unit_ratio(in->type.sample_unit, unit), period_ratio;
	bool fits = true;

	assert(ratio > 0 && !in->divisor);
	*out = *in;
	out->type.sample_unit = unit;
	if ((period_ratio = pprof_unit_ratio(in->type.period_unit, unit))) {
		out->type.period_unit = unit;
		if (__builtin_mul_overflow(in->period, period_ratio, &out->period))
			out->period = INT64_MAX;
	}
	if (ratio == 1)
		return ERR_OK;
	if (!(out->parts = arena_array(work->arena, struct part, in->parts_n + 1)))
		return work_nomem(work, err);
	for (size_t i = 0; i < in->parts_n; i++) {
		struct part *part = &out->parts[i];

		*part = in->parts[i];
		assert(part->names_n == 0);
		if (!(part->cells = arena_alloc_raw(work->arena, part->n + 1, sizeof(*part->cells))))
			return work_nomem(work, err);
		for (size_t k = 0; k < part->n; k++) {
			struct cell *cell = &part->cells[k];

			*cell = in->parts[i].cells[k];
			fits &= !__builtin_mul_overflow(cell->value, ratio, &cell->value) &&
				!__builtin_mul_overflow(cell->base, ratio, &cell->base);
		}
	}
	fits &= !__builtin_mul_overflow(out->value_size, ratio, &out->value_size) &&
		!__builtin_mul_overflow(out->base_size, ratio, &out->base_size);
	if (!fits)
		return err_set(err, ERR_LIMIT, "a sum exceeds 64 bits in " STR_FMT, STR_ARG(unit));
	return profile_totals(out, err);
}
