/*
 * Both profiles' samples come into one profile first, with one column. Then equal symbols get one
 * number, so that samples with equal stacks and labels are found by their numbers and added up.
 */
#include "proto/report/pprof_base.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/quote.h"
#include "proto/report/pprof_unit.h"

#define BASE_KEY STR("pprof::base")
#define MAPPING_ROUNDING UINT64_C(0x1000) /* sizes of one binary differ by less */

struct joining {
	struct arena *arena;
	struct pprof *p; /* all samples */
	uint32_t base_first; /* samples from here on are the base's */
	uint32_t *mapping, *function, *location; /* of each: the first that is equal */
	struct map map;
};

/* ---- one column ---- */

static enum err_code pprof_base_overflow(struct err *err)
{
	return err_set(err, ERR_LIMIT, "a cost exceeds 64 bits");
}

/* The profile with this column alone, times a whole number. */
static enum err_code pprof_side_column(const struct pprof_side *side, int64_t factor,
	struct str unit, struct arena *a, struct pprof *out, struct err *err)
{
	const struct pprof *p = side->p;
	struct str *strings = arena_array(a, struct str, (size_t)p->strings_n + 1);
	struct pprof_type *type = arena_new(a, struct pprof_type);
	int64_t *values = arena_array(a, int64_t, (size_t)p->samples_n + 1);

	if (!strings || !type || !values)
		return arena_fail(a, "profile", err);
	memcpy(strings, p->strings, p->strings_n * sizeof(*strings));
	strings[p->strings_n] = unit;
	*type = (struct pprof_type){ p->types[side->type].type, p->strings_n };
	for (uint32_t i = 0; i < p->samples_n; i++)
		if (__builtin_mul_overflow(
				p->values[(size_t)i * p->types_n + side->type], factor, &values[i]))
			return pprof_base_overflow(err);
	*out = *p;
	out->strings = strings;
	out->strings_n++;
	out->types = type;
	out->types_n = 1;
	out->values = values;
	out->links = NULL;
	out->sample_links = NULL;
	return ERR_OK;
}

/* The finer of the two units, and how many of it make one of each side's. */
static enum err_code pprof_base_units(
	const struct pprof_side sides[2], struct str *unit, int64_t factors[2], struct err *err)
{
	struct str units[2];

	for (int i = 0; i < 2; i++)
		units[i] = sides[i].p->strings[sides[i].p->types[sides[i].type].unit];
	if (!pprof_unit_fits(units[0], units[1]))
		return err_set(err, ERR_INVALID, "the units of both profiles do not convert: %s and %s",
			QUOTED(units[0]), QUOTED(units[1]));
	*unit = pprof_unit_ratio(units[0], units[1]) > 1 ? units[1] : units[0];
	for (int i = 0; i < 2; i++)
		factors[i] = pprof_unit_ratio(units[i], *unit);
	return ERR_OK;
}

/* Scales the new side to the base's plain sum. */
static enum err_code pprof_base_normalize(
	struct pprof *new_side, const struct pprof *base_side, struct err *err)
{
	const struct pprof *sides[2] = { new_side, base_side };
	int64_t sums[2] = { 0, 0 };
	double ratio;

	for (int side = 0; side < 2; side++)
		for (uint32_t i = 0; i < sides[side]->samples_n; i++)
			if (__builtin_add_overflow(sums[side], sides[side]->values[i], &sums[side]))
				return pprof_base_overflow(err);
	ratio = sums[0] ? (double)sums[1] / (double)sums[0] : 0;
	for (uint32_t i = 0; i < new_side->samples_n; i++) {
		double v = round((double)new_side->values[i] * ratio);

		if (!(fabs(v) < 0x1p63))
			return pprof_base_overflow(err);
		new_side->values[i] = (int64_t)v;
	}
	return ERR_OK;
}

/* ---- equal symbols ---- */

typedef uint64_t (*pprof_base_hash_fn)(const struct joining *j, uint32_t id);

static enum err_code joining_unify(struct joining *j, uint32_t n, pprof_base_hash_fn hash_of,
	map_eq_fn eq, uint32_t **out, struct err *err)
{
	uint32_t *first = arena_array(j->arena, uint32_t, (size_t)n + 1);

	if (!first)
		return arena_fail(j->arena, "profile", err);
	*out = first;
	map_release(&j->map);
	map_init(&j->map);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t hash = hash_of(j, i);

		first[i] = map_find(&j->map, hash, eq, j, &i);
		if (first[i] != MAP_NONE)
			continue;
		first[i] = i;
		if (!map_add(&j->map, hash, i))
			return err_nomem(err, "profile");
	}
	return ERR_OK;
}

static uint64_t pprof_base_mapping_size(const struct pprof_mapping *m)
{
	return (m->limit - m->start + MAPPING_ROUNDING - 1) / MAPPING_ROUNDING;
}

static struct str joining_binary(const struct joining *j, uint32_t mapping)
{
	const struct pprof_mapping *m = &j->p->mappings[mapping];

	return j->p->strings[j->p->strings[m->build_id].len ? m->build_id : m->filename];
}

static uint64_t joining_mapping_hash(const struct joining *j, uint32_t id)
{
	const struct pprof_mapping *m = &j->p->mappings[id];
	struct str binary = joining_binary(j, id);

	return hash_bytes(binary.ptr, binary.len, pprof_base_mapping_size(m) ^ m->offset << 20);
}

static bool joining_mapping_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct joining *j = ctx;
	const struct pprof_mapping *m = j->p->mappings;
	uint32_t other = *(const uint32_t *)key;

	return pprof_base_mapping_size(&m[id]) == pprof_base_mapping_size(&m[other]) &&
		m[id].offset == m[other].offset && str_eq(joining_binary(j, id), joining_binary(j, other));
}

static uint64_t joining_function_hash(const struct joining *j, uint32_t id)
{
	const struct pprof_function *f = &j->p->functions[id];

	return map_hash_u64(
		((uint64_t)f->name << 32 | f->filename) ^ map_hash_u64((uint64_t)f->start_line));
}

static bool joining_function_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct pprof_function *f = ((const struct joining *)ctx)->p->functions;
	const struct pprof_function *a = &f[id], *b = &f[*(const uint32_t *)key];

	return a->name == b->name && a->system_name == b->system_name && a->filename == b->filename &&
		a->start_line == b->start_line;
}

static uint64_t joining_address(const struct joining *j, const struct pprof_location *l)
{
	return l->mapping == PPROF_NONE ? l->address : l->address - j->p->mappings[l->mapping].start;
}

static uint32_t joining_mapping_of(const struct joining *j, const struct pprof_location *l)
{
	return l->mapping == PPROF_NONE ? PPROF_NONE : j->mapping[l->mapping];
}

static uint64_t joining_location_hash(const struct joining *j, uint32_t id)
{
	const struct pprof_location *l = &j->p->locations[id];
	uint64_t hash = map_hash_u64(joining_address(j, l) ^ (uint64_t)joining_mapping_of(j, l) << 40);

	for (uint32_t i = l->line_first; i < l->line_first + l->line_n; i++) {
		const struct pprof_line *line = &j->p->lines[i];

		hash = map_hash_u64(hash ^ j->function[line->function] ^ (uint64_t)line->line << 32);
	}
	return hash;
}

static bool joining_location_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct joining *j = ctx;
	const struct pprof_location *a = &j->p->locations[id];
	const struct pprof_location *b = &j->p->locations[*(const uint32_t *)key];

	if (joining_address(j, a) != joining_address(j, b) ||
		joining_mapping_of(j, a) != joining_mapping_of(j, b) || a->line_n != b->line_n ||
		a->is_folded != b->is_folded)
		return false;
	for (uint32_t i = 0; i < a->line_n; i++) {
		const struct pprof_line *x = &j->p->lines[a->line_first + i];
		const struct pprof_line *y = &j->p->lines[b->line_first + i];

		if (j->function[x->function] != j->function[y->function] || x->line != y->line ||
			x->column != y->column)
			return false;
	}
	return true;
}

/* ---- equal samples ---- */

/* By key, texts before numbers; of one key in the order that they have (the sort is not stable). */
static int pprof_base_by_key(const void *left, const void *right, void *labels)
{
	const struct pprof_label *all = labels;
	uint32_t l = *(const uint32_t *)left, r = *(const uint32_t *)right;

	if (all[l].key != all[r].key)
		return all[l].key < all[r].key ? -1 : 1;
	if (!all[l].str != !all[r].str)
		return all[l].str ? -1 : 1;
	return l < r ? -1 : l > r;
}

static enum err_code joining_sort_labels(struct joining *j, struct err *err)
{
	struct pprof *p = j->p;
	struct pprof_label *sorted = arena_array(j->arena, struct pprof_label, (size_t)p->labels_n + 1);
	uint32_t *order = arena_array(j->arena, uint32_t, (size_t)p->labels_n + 1);

	if (!sorted || !order)
		return arena_fail(j->arena, "profile", err);
	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *s = &p->samples[i];

		for (uint32_t k = 0; k < s->label_n; k++)
			order[k] = s->label_first + k;
		if (s->label_n > 1)
			qsort_r(order, s->label_n, sizeof(*order), pprof_base_by_key, p->labels);
		for (uint32_t k = 0; k < s->label_n; k++)
			sorted[s->label_first + k] = p->labels[order[k]];
	}
	p->labels = sorted;
	return ERR_OK;
}

static uint64_t joining_sample_hash(const struct joining *j, uint32_t id)
{
	const struct pprof_sample *s = &j->p->samples[id];
	uint64_t hash = map_hash_u64((uint64_t)s->location_n << 32 | s->label_n);

	if (s->location_n)
		hash = hash_bytes(&j->p->location_ids[s->location_first],
			s->location_n * sizeof(*j->p->location_ids), hash);
	for (uint32_t i = s->label_first; i < s->label_first + s->label_n; i++) {
		const struct pprof_label *l = &j->p->labels[i];

		hash = map_hash_u64(
			hash ^ ((uint64_t)l->key << 32 | l->str) ^ map_hash_u64((uint64_t)l->num));
	}
	return hash;
}

static bool joining_sample_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct pprof *p = ((const struct joining *)ctx)->p;
	const struct pprof_sample *a = &p->samples[id], *b = &p->samples[*(const uint32_t *)key];

	if (a->location_n != b->location_n || a->label_n != b->label_n)
		return false;
	for (uint32_t i = 0; i < a->location_n; i++)
		if (p->location_ids[a->location_first + i] != p->location_ids[b->location_first + i])
			return false;
	for (uint32_t i = 0; i < a->label_n; i++) {
		const struct pprof_label *x = &p->labels[a->label_first + i];
		const struct pprof_label *y = &p->labels[b->label_first + i];

		if (x->key != y->key || x->str != y->str || x->num_unit != y->num_unit || x->num != y->num)
			return false;
	}
	return true;
}

/* Leaves the first of equal samples, with the sum of all, if it is not 0. */
static enum err_code joining_add_up(struct joining *j, struct err *err)
{
	struct pprof *p = j->p;
	uint32_t *first, kept = 0;
	enum err_code rc = joining_unify(
		j, p->samples_n, joining_sample_hash, joining_sample_eq, &first, err);

	for (uint32_t i = 0; i < p->samples_n && !rc; i++)
		if (first[i] != i &&
			__builtin_add_overflow(p->values[first[i]], p->values[i], &p->values[first[i]]))
			rc = pprof_base_overflow(err);
	for (uint32_t i = 0; i < p->samples_n && !rc; i++) {
		if (first[i] != i || !p->values[i])
			continue;
		p->samples[kept] = p->samples[i];
		p->values[kept++] = p->values[i];
	}
	p->samples_n = kept;
	return rc;
}

static enum err_code joining_merge(struct joining *j, struct err *err)
{
	struct pprof *p = j->p;
	enum err_code rc;

	if ((rc = joining_unify(
			 j, p->mappings_n, joining_mapping_hash, joining_mapping_eq, &j->mapping, err)) ||
		(rc = joining_unify(
			 j, p->functions_n, joining_function_hash, joining_function_eq, &j->function, err)) ||
		(rc = joining_unify(
			 j, p->locations_n, joining_location_hash, joining_location_eq, &j->location, err)))
		return rc;
	for (uint32_t i = 0; i < p->location_ids_n; i++)
		p->location_ids[i] = j->location[p->location_ids[i]];
	if ((rc = joining_sort_labels(j, err)))
		return rc;
	return joining_add_up(j, err);
}

/* ---- both sides ---- */

/* The base's samples get the label pprof::base=true, in place of one that they may have. */
static enum err_code joining_mark_base(struct joining *j, struct err *err)
{
	struct pprof *p = j->p;
	uint32_t n = 0, key = p->strings_n;
	struct str *strings = arena_array(j->arena, struct str, (size_t)p->strings_n + 2);
	struct pprof_label *labels = arena_array(
		j->arena, struct pprof_label, (size_t)p->labels_n + p->samples_n + 1);

	if (!strings || !labels)
		return arena_fail(j->arena, "profile", err);
	memcpy(strings, p->strings, p->strings_n * sizeof(*strings));
	for (uint32_t i = 0; i < p->strings_n; i++) /* strings of a concatenation differ */
		if (str_eq(strings[i], BASE_KEY))
			key = i;
	strings[p->strings_n] = BASE_KEY;
	strings[p->strings_n + 1] = STR("true");
	for (uint32_t i = 0; i < p->samples_n; i++) {
		struct pprof_sample *s = &p->samples[i];
		uint32_t first = n;

		for (uint32_t k = s->label_first; k < s->label_first + s->label_n; k++)
			if (i < j->base_first || p->labels[k].key != key)
				labels[n++] = p->labels[k];
		if (i >= j->base_first)
			labels[n++] = (struct pprof_label){ .key = key, .str = p->strings_n + 1 };
		s->label_first = first;
		s->label_n = n - first;
	}
	p->strings = strings;
	p->strings_n += 2;
	p->labels = labels;
	p->labels_n = n;
	return ERR_OK;
}

static bool joining_comment_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct pprof *p = ((const struct joining *)ctx)->p;

	return str_eq(p->strings[p->comments[id]], *(const struct str *)key);
}

/* Comments of both, each once. There is room for them. */
static enum err_code joining_join_comments(
	struct joining *j, const struct pprof *side, struct err *err)
{
	struct pprof *p = j->p;

	for (uint32_t i = 0; i < side->comments_n; i++) {
		struct str text = side->strings[side->comments[i]];
		uint64_t hash = hash_bytes(text.ptr, text.len, 0);

		if (map_find(&j->map, hash, joining_comment_eq, j, &text) != MAP_NONE)
			continue;
		if (!map_add(&j->map, hash, p->comments_n))
			return err_nomem(err, "profile");
		p->strings[p->strings_n] = text;
		p->comments[p->comments_n++] = p->strings_n++;
	}
	return ERR_OK;
}

static enum err_code joining_join_heads(
	struct joining *j, const struct pprof *const sides[2], struct err *err)
{
	struct pprof *p = j->p;
	size_t n = (size_t)sides[0]->comments_n + sides[1]->comments_n;
	struct str *strings = arena_array(j->arena, struct str, p->strings_n + n + 1);
	enum err_code rc;

	p->comments = arena_array(j->arena, uint32_t, n + 1);
	if (!strings || !p->comments)
		return arena_fail(j->arena, "profile", err);
	memcpy(strings, p->strings, p->strings_n * sizeof(*strings));
	p->strings = strings;
	for (int side = 0; side < 2; side++)
		if ((rc = joining_join_comments(j, sides[side], err)))
			return rc;
	if (__builtin_add_overflow(
			sides[0]->duration_nanos, sides[1]->duration_nanos, &p->duration_nanos))
		p->duration_nanos = INT64_MAX;
	if (sides[1]->period > p->period)
		p->period = sides[1]->period;
	if (!p->strings[p->doc_url].len && sides[1]->doc_url) {
		strings[p->strings_n] = sides[1]->strings[sides[1]->doc_url];
		p->doc_url = p->strings_n++;
	}
	return ERR_OK;
}

enum err_code pprof_without_base(struct pprof_side new_side, struct pprof_side base_side,
	const struct pprof_base_options *o, struct arena *a, struct pprof **out, struct err *err)
{
	const struct pprof_side sides[2] = { new_side, base_side };
	struct pprof columns[2];
	const struct pprof *const both[2] = { &columns[0], &columns[1] };
	struct joining j = { .arena = a, .base_first = new_side.p->samples_n };
	int64_t factors[2] = { 1, 1 };
	struct str unit;
	enum err_code rc;

	assert(new_side.type < new_side.p->types_n && base_side.type < base_side.p->types_n);
	map_init(&j.map);
	if ((rc = pprof_base_units(sides, &unit, factors, err)) ||
		(rc = pprof_side_column(&sides[0], factors[0], unit, a, &columns[0], err)) ||
		(rc = pprof_side_column(&sides[1], factors[1], unit, a, &columns[1], err)) ||
		(o->normalize && (rc = pprof_base_normalize(&columns[0], &columns[1], err))))
		goto out;
	for (uint32_t i = 0; i < columns[1].samples_n; i++)
		if (__builtin_sub_overflow((int64_t)0, columns[1].values[i], &columns[1].values[i])) {
			rc = pprof_base_overflow(err);
			goto out;
		}
	if ((rc = pprof_concat(a, both, 2, &j.p, err)))
		goto out;
	assert(j.p->types_n == 1);
	if ((rc = joining_join_heads(&j, both, err)) ||
		(o->diff_base && (rc = joining_mark_base(&j, err))) || (rc = joining_merge(&j, err)))
		goto out;
	*out = j.p;
out:
	map_release(&j.map);
	return rc;
}
