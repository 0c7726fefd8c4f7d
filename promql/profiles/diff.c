/*
 * Differences: new minus base, element by element. Each cell keeps both sides, so that an answer
 * can show the change or the two side by side. If one side is a fraction, all elements get one
 * exponent.
 */
#include "promql/profiles/profiles.h"

#include <assert.h>
#include <math.h>

#include "base/map.h"
#include "promql/costs/costs.h"
#include "proto/report/pprof_unit.h"

struct profiles_diff_pair {
	struct labels metric;
	const struct profile_value *side[2]; /* new, base; NULL: none */
};

struct pairing {
	struct work *work;
	const struct expr *e;
	enum grouping matching;
	struct name_list labels;
	struct profiles_diff_pair *pairs;
	size_t n;
	struct map map;
};

static bool profiles_diff_pair_eq(const void *ctx, const void *key, uint32_t id)
{
	return labels_eq(*(const struct labels *)key, ((const struct pairing *)ctx)->pairs[id].metric);
}

static enum err_code profiles_diff_twice(struct pairing *p, struct labels metric,
	const struct profile_value *a, const struct profile_value *b, int side, struct err *err)
{
	struct buf group = { 0 }, one = { 0 }, two = { 0 };
	enum err_code rc;

	labels_print(&group, metric);
	labels_print(&one, a->metric);
	labels_print(&two, b->metric);
	rc = work_fault(p->work, p->e, err, ERR_INVALID,
		"the %s side has two profiles for " STR_FMT ": " STR_FMT " and " STR_FMT
		"; merge them first",
		side ? "base" : "new", STR_ARG(buf_str(&group)), STR_ARG(buf_str(&one)),
		STR_ARG(buf_str(&two)));
	buf_release(&group);
	buf_release(&one);
	buf_release(&two);
	return rc;
}

static enum err_code profiles_diff_add_side(
	struct pairing *pairing, const struct value *v, int side, struct err *err)
{
	struct labels metric;
	enum grouping how = pairing->matching == GROUPING_ON ? GROUPING_BY : GROUPING_WITHOUT;
	enum err_code rc;
	uint64_t hash;
	uint32_t id;

	for (size_t i = 0; i < v->n; i++) {
		const struct profile_value *p = &v->profiles[i];

		if (p->is_diff)
			return work_fault(pairing->work, pairing->e, err, ERR_INVALID,
				"the %s side is already a difference", side ? "base" : "new");
		if ((rc = labels_group(pairing->work, p->metric, how, pairing->labels, &metric, err)))
			return rc;
		hash = labels_hash(metric);
		id = map_find(&pairing->map, hash, profiles_diff_pair_eq, pairing, &metric);
		if (id == MAP_NONE) {
			id = (uint32_t)pairing->n;
			if (!map_add(&pairing->map, hash, id))
				return work_nomem(pairing->work, err);
			pairing->pairs[pairing->n++].metric = metric;
		}
		if (pairing->pairs[id].side[side])
			return profiles_diff_twice(
				pairing, metric, pairing->pairs[id].side[side], p, side, err);
		pairing->pairs[id].side[side] = p;
	}
	return ERR_OK;
}

/* The new side by base / new, as -normalize. */
static double profiles_diff_pair_ratio_of(const struct profiles_diff_pair *pair)
{
	double new_total = pair->side[0] ? profile_total_cost(pair->side[0]) : 0;
	double base_total = pair->side[1] ? profile_total_cost(pair->side[1]) : 0;

	return new_total == 0 ? 0 : base_total / new_total;
}

static long double profiles_diff_magnitude(const struct profile_value *p)
{
	long double sum = 0;

	for (size_t i = 0; i < p->parts_n; i++)
		for (size_t k = 0; k < p->parts[i].n; k++)
			sum += fabsl((long double)p->parts[i].cells[k].value);
	return ldexpl(sum, -p->exponent);
}

/* An exponent for all pairs whose sums fit in 64 bits; 0 if all are whole numbers. */
static int profiles_diff_common_exponent(
	const struct pairing *pairing, bool normalized, bool *fraction)
{
	long double sum = 0;
	int most = 0, bits;

	*fraction = false;
	for (size_t i = 0; i < pairing->n; i++)
		for (int side = 0; side < 2; side++) {
			const struct profile_value *p = pairing->pairs[i].side[side];
			double ratio = normalized && side == 0 ?
				fabs(profiles_diff_pair_ratio_of(&pairing->pairs[i])) :
				1;

			*fraction |= p && p->fraction;
			if (p && p->exponent > most)
				most = p->exponent;
			if (p)
				sum += profiles_diff_magnitude(p) * (ratio > 1 ? (long double)ratio : 1);
		}
	frexpl(sum, &bits);
	return !*fraction ? 0 : most < 61 - bits ? most : 61 - bits;
}

static enum err_code profiles_diff_add_cells(struct pairing *p, struct profile_value *out,
	const struct part *part, int side, double ratio, struct err *err)
{
	struct part *into = NULL;
	struct cell *cells;
	double scaled;

	for (size_t i = 0; i < out->parts_n && !into; i++)
		if (out->parts[i].partition == part->partition)
			into = &out->parts[i];
	if (!into) {
		into = &out->parts[out->parts_n++];
		*into = (struct part){ .partition = part->partition };
	}
	if (!(cells = arena_alloc_raw(p->work->arena, into->n + part->n + 1, sizeof(*cells))))
		return work_nomem(p->work, err);
	if (into->n)
		memcpy(cells, into->cells, into->n * sizeof(*cells));
	into->cells = cells;
	for (size_t i = 0; i < part->n; i++) {
		struct cell c = part->cells[i];

		if (side == 0 && ratio != 1) {
			scaled = round((double)c.value * ratio);
			if (!(scaled > -0x1p63 && scaled < 0x1p63))
				return work_fault(
					p->work, p->e, err, ERR_LIMIT, "a normalized cost exceeds 64 bits");
			c.value = (int64_t)scaled;
		}
		if (side == 1)
			c = (struct cell){ .stack = c.stack, .label_set = c.label_set, .base = c.value };
		if (c.value != 0 || c.base != 0)
			into->cells[into->n++] = c;
	}
	if (!into->headers_n || side == 0) {
		into->headers = part->headers;
		into->headers_n = part->headers_n;
		into->headers_plain = part->headers_plain;
	}
	return ERR_OK;
}

static void profiles_diff_join(struct profile_value *out, const struct profile_value *p)
{
	out->profiles += p->profiles;
	out->duration_nanos = value_duration_sum(out->duration_nanos, p->duration_nanos);
	if (p->time_nanos != 0 && (out->time_nanos == 0 || p->time_nanos < out->time_nanos))
		out->time_nanos = p->time_nanos;
	if (p->period > out->period)
		out->period = p->period;
	if (out->end_ns == 0 || p->start_ns < out->start_ns)
		out->start_ns = p->start_ns;
	if (p->end_ns > out->end_ns)
		out->end_ns = p->end_ns;
}

/* Puts the base's filters on top of those of the new side. */
static enum err_code profiles_diff_join_filters(struct pairing *p, const struct profile_value *a,
	const struct profile_value *b, struct profile_value *out, struct err *err)
{
	const struct active_filter **end = &out->filters;
	struct active_filter *copy;

	for (const struct active_filter *f = b ? b->filters : NULL; f; f = f->before) {
		if (!(copy = arena_new(p->work->arena, struct active_filter)))
			return work_nomem(p->work, err);
		*copy = *f;
		*end = copy;
		end = &copy->before;
	}
	*end = a ? a->filters : NULL;
	return ERR_OK;
}

/* Both sides in one unit. */
static enum err_code profiles_diff_convert(
	struct pairing *pairing, struct profiles_diff_pair *pair, struct err *err)
{
	const struct profile_value *a = pair->side[0], *b = pair->side[1];
	struct profile_value *v;
	struct str unit;
	enum err_code rc;

	if (!a || !b || str_eq(a->type.sample_unit, b->type.sample_unit))
		return ERR_OK;
	if (!pprof_unit_fits(a->type.sample_unit, b->type.sample_unit))
		return work_fault(pairing->work, pairing->e, err, ERR_INVALID,
			"no difference between " STR_FMT " and " STR_FMT, STR_ARG(a->type.sample_unit),
			STR_ARG(b->type.sample_unit));
	unit = pprof_unit_finer(a->type.sample_unit, b->type.sample_unit);
	if (!(v = arena_array(pairing->work->arena, struct profile_value, 2)))
		return work_nomem(pairing->work, err);
	for (int side = 0; side < 2; side++) {
		if ((rc = profile_in_unit(pairing->work, pair->side[side], unit, &v[side], err)))
			return rc;
		pair->side[side] = &v[side];
	}
	return ERR_OK;
}

static enum err_code diff_pair(struct pairing *pairing, const struct profiles_diff_pair *pair,
	bool normalized, int exponent, struct profile_value *out, struct err *err)
{
	const struct profile_value *a = pair->side[0], *b = pair->side[1];
	double ratio = normalized ? profiles_diff_pair_ratio_of(pair) : 1;
	struct profile_value joined, sides[2];
	enum err_code rc;

	*out = (struct profile_value){
		.metric = pair->metric, .is_diff = true, .type = a ? a->type : b->type
	};
	if (a && b && !profile_type_eq(&a->type, &b->type)) {
		out->type.name = (struct str){ 0 };
		if (!str_eq(a->type.sample_type, b->type.sample_type))
			out->type.sample_type = (struct str){ 0 };
	}
	if ((a && (rc = profile_with_exponent(pairing->work, a, exponent, &sides[0], err))) ||
		(b && (rc = profile_with_exponent(pairing->work, b, exponent, &sides[1], err))))
		return rc;
	a = a ? &sides[0] : NULL;
	b = b ? &sides[1] : NULL;
	out->exponent = exponent;
	out->parts = arena_array(
		pairing->work->arena, struct part, (a ? a->parts_n : 0) + (b ? b->parts_n : 0) + 1);
	if (!out->parts)
		return work_nomem(pairing->work, err);
	if (a && ratio != 1) {
		if ((rc = profile_joined(pairing->work, a, &joined, err)))
			return rc;
		a = &joined;
	}
	for (int side = 0; side < 2; side++) {
		const struct profile_value *p = side ? b : a;

		for (size_t i = 0; p && i < p->parts_n; i++)
			if ((rc = profiles_diff_add_cells(pairing, out, &p->parts[i], side, ratio, err)))
				return rc;
		if (p)
			profiles_diff_join(out, p);
	}
	for (size_t i = 0; i < out->parts_n; i++)
		if ((rc = part_normalize(pairing->work, &out->parts[i], err)))
			return rc;
	if ((a && a->filtered) || (b && b->filtered)) {
		out->filtered = true;
		/* Without a base the new side was scaled by 1, or is empty. */
		out->value_size = a ? a->value_size : 0;
		out->base_size = b ? b->value_size : 0;
		if ((rc = profiles_diff_join_filters(pairing, a, b, out, err)))
			return rc;
	}
	return profile_totals(out, err);
}

/* Against no profiles at all every cost is new, or gone: the answer's infos say so. */
static enum err_code profiles_diff_note_empty(
	struct work *work, const struct value *new_side, const struct value *base_side, struct err *err)
{
	if (!new_side->n == !base_side->n)
		return ERR_OK;
	return work_info(work, err, "%sno profiles on the %s side of the difference",
		work->steps > 1 ? "at some steps: " : "", new_side->n ? "base" : "new");
}

enum err_code profiles_diff(struct work *work, const struct expr *e, const struct value *new_side,
	const struct value *base_side, enum grouping matching, struct name_list labels, bool normalized,
	struct value *out, struct err *err)
{
	struct pairing x = { .work = work, .e = e, .matching = matching, .labels = labels };
	struct value result = { .type = VALUE_PROFILES };
	enum err_code rc;
	bool fraction;
	int exponent;

	assert(matching == GROUPING_NONE || matching >= GROUPING_ON);
	map_init(&x.map);
	x.pairs = arena_array(work->arena, struct profiles_diff_pair, new_side->n + base_side->n + 1);
	result.profiles = arena_array(
		work->arena, struct profile_value, new_side->n + base_side->n + 1);
	if (!x.pairs || !result.profiles) {
		rc = work_nomem(work, err);
		goto out;
	}
	if ((rc = profiles_diff_note_empty(work, new_side, base_side, err)) ||
		(rc = profiles_diff_add_side(&x, new_side, 0, err)) ||
		(rc = profiles_diff_add_side(&x, base_side, 1, err)))
		goto out;
	for (size_t i = 0; i < x.n; i++)
		if ((rc = profiles_diff_convert(&x, &x.pairs[i], err)))
			goto out;
	exponent = profiles_diff_common_exponent(&x, normalized, &fraction);
	for (size_t i = 0; i < x.n; i++) {
		if ((rc = diff_pair(
				 &x, &x.pairs[i], normalized, exponent, &result.profiles[result.n], err)))
			goto out;
		result.profiles[result.n++].fraction = fraction;
	}
	*out = result;
out:
	map_release(&x.map);
	return rc;
}
