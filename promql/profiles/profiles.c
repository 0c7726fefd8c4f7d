/*
 * Profiles as sums of cells: sorts and adds cells, computes totals, rounds. Finds out if a label
 * belongs to the series or to the samples.
 */
#include "promql/profiles/profiles.h"

#include <assert.h>
#include <math.h>

#include "tsdb/symbols/partition.h" /* keys_sort */

/* ---- cells ---- */

static uint64_t cell_key(const struct cell *c)
{
	return (uint64_t)c->stack << 32 | c->label_set;
}

enum err_code part_normalize(struct work *work, struct part *part, struct err *err)
{
	size_t n = part->n, k = 0;
	uint64_t *keys = arena_alloc_raw(work->arena, 2 * n + 1, sizeof(*keys));
	uint32_t *order = arena_alloc_raw(work->arena, 2 * n + 1, sizeof(*order));
	struct cell *cells = arena_alloc_raw(work->arena, n + 1, sizeof(*cells));
	__int128 *wide = part->wide ? arena_alloc_raw(work->arena, n + 1, sizeof(*wide)) : NULL;

	assert(part->partition);
	if (!keys || !order || !cells || (part->wide && !wide) || n > UINT32_MAX)
		return work_nomem(work, err);
	for (size_t i = 0; i < n; i++) {
		keys[i] = cell_key(&part->cells[i]);
		order[i] = (uint32_t)i;
	}
	keys_sort(keys, order, (uint32_t)n, keys + n, order + n);
	for (size_t i = 0; i < n; i++) {
		const struct cell *c = &part->cells[order[i]];

		if (k > 0 && cell_key(&cells[k - 1]) == keys[i]) {
			if (wide)
				wide[k - 1] += part->wide[order[i]];
			if (__builtin_add_overflow(cells[k - 1].value, c->value, &cells[k - 1].value) ||
				__builtin_add_overflow(cells[k - 1].base, c->base, &cells[k - 1].base))
				return err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
			continue;
		}
		if (wide)
			wide[k] = part->wide[order[i]];
		cells[k++] = *c;
	}
	part->cells = cells;
	part->wide = wide;
	part->n = k;
	return ERR_OK;
}

static bool profiles_add_abs(int64_t *sum, int64_t value)
{
	return value == INT64_MIN || __builtin_add_overflow(*sum, value < 0 ? -value : value, sum);
}

enum err_code profile_totals(struct profile_value *p, struct err *err)
{
	int64_t value_abs = 0, base_abs = 0, all;

	p->value_total = 0;
	p->base_total = 0;
	for (size_t i = 0; i < p->parts_n; i++)
		for (size_t k = 0; k < p->parts[i].n; k++) {
			const struct cell *c = &p->parts[i].cells[k];

			if (profiles_add_abs(&value_abs, c->value) || profiles_add_abs(&base_abs, c->base))
				return err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
			p->value_total += c->value;
			p->base_total += c->base;
		}
	for (size_t i = 0; i < p->parts_n; i++) {
		if (profiles_add_abs(&value_abs, p->parts[i].names_total))
			return err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
		p->value_total += p->parts[i].names_total;
	}
	/* Then no sum of some cells, of either side or of their difference, can overflow later. */
	if (__builtin_add_overflow(value_abs, base_abs, &all))
		return err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
	if (!p->filtered) {
		p->value_size = value_abs;
		p->base_size = base_abs;
	}
	p->total = p->base_size > 0 ? p->base_size : p->value_size;
	return ERR_OK;
}

double profile_total_cost(const struct profile_value *p)
{
	assert(p->divisor >= 0);
	if (p->divisor)
		return (double)((long double)p->wide_total / (long double)p->divisor);
	return ldexp((double)(p->value_total - p->base_total), -p->exponent);
}

bool profile_type_eq(const struct profile_type *a, const struct profile_type *b)
{
	return str_eq(a->name, b->name) && str_eq(a->sample_type, b->sample_type) &&
		str_eq(a->sample_unit, b->sample_unit) && str_eq(a->period_type, b->period_type) &&
		str_eq(a->period_unit, b->period_unit) && a->delta == b->delta;
}

/* ---- labels of samples ---- */

enum label_source label_source(
	struct labels metric, const struct partition *p, struct str name, struct str *key)
{
	struct str rest = { name.ptr + strlen(SAMPLE_LABEL_PREFIX),
		name.len - strlen(SAMPLE_LABEL_PREFIX) };

	if (labels_has(metric, name))
		return LABEL_OF_SERIES;
	*key = label_is_service(name) ? STR(LABEL_SERVICE_NAME) : name;
	if (sym_has_label_key(p, *key))
		return LABEL_OF_SAMPLES;
	if (!str_has_prefix(name, STR(SAMPLE_LABEL_PREFIX)) || !sym_has_label_key(p, rest))
		return LABEL_NOWHERE;
	*key = rest;
	return LABEL_OF_SAMPLES;
}

/* ---- rounding ---- */

/* Half away from zero; the divisor is above zero. */
static __int128 profiles_divide(__int128 value, int64_t divisor)
{
	__int128 q = value / divisor, r = value % divisor;

	assert(divisor > 0);
	if (r < 0 ? -r * 2 >= divisor : r * 2 >= divisor)
		q += r < 0 ? -1 : 1;
	return q;
}

static enum err_code profiles_round_profile(
	struct work *work, struct profile_value *p, struct err *err)
{
	enum err_code rc;

	assert(p->divisor > 0);
	if ((rc = profile_join_epochs(work, p, err)))
		return rc;
	for (size_t i = 0; i < p->parts_n; i++) {
		struct part *part = &p->parts[i];
		size_t k = 0;

		for (size_t c = 0; c < part->n; c++) {
			__int128 v = profiles_divide(part->wide[c], p->divisor);

			if (v == 0)
				continue;
			if (v != (int64_t)v)
				return err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
			part->cells[k] = part->cells[c];
			part->cells[k++].value = (int64_t)v;
		}
		part->n = k;
		part->wide = NULL;
	}
	p->divisor = 0;
	p->fraction = false;
	return ERR_OK;
}

enum err_code profiles_round(struct work *work, struct value *v, struct err *err)
{
	enum err_code rc;

	for (size_t i = 0; v->type == VALUE_PROFILES && i < v->n; i++) {
		if (v->profiles[i].divisor && (rc = profiles_round_profile(work, &v->profiles[i], err)))
			return rc;
		if ((rc = profile_totals(&v->profiles[i], err)))
			return rc;
	}
	return work_check(work, err);
}
