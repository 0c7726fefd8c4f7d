/*
 * The builder. Arrays grow inside the arena, where the smaller ones before them stay. Each string
 * is copied there once; a hash table of their numbers finds it again.
 */
#include <assert.h>

#include "base/array.h"
#include "base/map.h"
#include "proto/pprof.h"

#define STRINGS_MIN 64 /* slots, a power of two */

struct pprof_builder {
	struct arena *a;
	struct pprof p;
	uint32_t *slots; /* string + 1; 0: free */
	uint64_t *hashes; /* of each string */
	uint32_t slots_n;
	uint32_t strings_cap, hashes_cap, types_cap, mappings_cap, functions_cap, lines_cap,
		locations_cap;
	uint32_t samples_cap, location_ids_cap, labels_cap, comments_cap;
	size_t values_n, values_cap;
	bool failed;
};

/*
 * Makes room in an array of the builder, as arena_array_room; does nothing once the builder has
 * failed.
 */
#define ROOM(b, items, n, more, cap) \
	((b)->failed = (b)->failed || !arena_array_room((b)->a, &(items), (n), (more), &(cap)))

static bool pprof_builder_rehash(struct pprof_builder *b, uint32_t slots_n)
{
	uint32_t *slots = arena_array(b->a, uint32_t, slots_n);
	uint32_t i, at;

	if (!slots)
		return false;
	for (i = 0; i < b->p.strings_n; i++) {
		for (at = (uint32_t)b->hashes[i] & (slots_n - 1); slots[at]; at = (at + 1) & (slots_n - 1))
			;
		slots[at] = i + 1;
	}
	b->slots = slots;
	b->slots_n = slots_n;
	return true;
}

enum err_code pprof_builder_open(struct arena *a, struct pprof_builder **out, struct err *err)
{
	struct pprof_builder *b = arena_new(a, struct pprof_builder);

	if (!b)
		return arena_fail(a, "profile", err);
	b->a = a;
	if (!pprof_builder_rehash(b, STRINGS_MIN))
		return arena_fail(a, "profile", err);
	pprof_builder_string(b, STR(""));
	if (b->failed)
		return arena_fail(a, "profile", err);
	*out = b;
	return ERR_OK;
}

uint32_t pprof_builder_string(struct pprof_builder *b, struct str s)
{
	uint64_t hash = hash_bytes(s.ptr, s.len, 0);
	uint32_t at, i;

	for (at = (uint32_t)hash & (b->slots_n - 1); b->slots[at]; at = (at + 1) & (b->slots_n - 1)) {
		i = b->slots[at] - 1;
		if (b->hashes[i] == hash && str_eq(b->p.strings[i], s))
			return i;
	}
	ROOM(b, b->p.strings, b->p.strings_n, 1, b->strings_cap);
	ROOM(b, b->hashes, b->p.strings_n, 1, b->hashes_cap);
	if (b->failed || !(s = str_dup(b->a, s)).ptr) {
		b->failed = true;
		return 0;
	}
	i = b->p.strings_n++;
	b->p.strings[i] = s;
	b->hashes[i] = hash;
	b->slots[at] = i + 1;
	if (b->p.strings_n > b->slots_n / 4 * 3 && !pprof_builder_rehash(b, b->slots_n * 2))
		b->failed = true;
	return i;
}

uint32_t pprof_builder_type(struct pprof_builder *b, struct str type, struct str unit)
{
	struct pprof_type t = { pprof_builder_string(b, type), pprof_builder_string(b, unit) };

	assert(!b->p.samples_n); /* a sample has as many values as there are types */
	ROOM(b, b->p.types, b->p.types_n, 1, b->types_cap);
	if (b->failed)
		return 0;
	b->p.types[b->p.types_n] = t;
	return b->p.types_n++;
}

uint32_t pprof_builder_mapping(struct pprof_builder *b, const struct pprof_mapping *m)
{
	ROOM(b, b->p.mappings, b->p.mappings_n, 1, b->mappings_cap);
	if (b->failed)
		return 0;
	assert(m->filename < b->p.strings_n && m->build_id < b->p.strings_n);
	b->p.mappings[b->p.mappings_n] = *m;
	return b->p.mappings_n++;
}

uint32_t pprof_builder_function(struct pprof_builder *b, const struct pprof_function *f)
{
	ROOM(b, b->p.functions, b->p.functions_n, 1, b->functions_cap);
	if (b->failed)
		return 0;
	assert(f->name < b->p.strings_n && f->system_name < b->p.strings_n &&
		f->filename < b->p.strings_n);
	b->p.functions[b->p.functions_n] = *f;
	return b->p.functions_n++;
}

uint32_t pprof_builder_location(struct pprof_builder *b, struct pprof_location location,
	const struct pprof_line *lines, uint32_t n)
{
	uint32_t i;

	assert(lines || !n);
	ROOM(b, b->p.locations, b->p.locations_n, 1, b->locations_cap);
	ROOM(b, b->p.lines, b->p.lines_n, n, b->lines_cap);
	if (b->failed)
		return 0;
	assert(location.mapping == PPROF_NONE || location.mapping < b->p.mappings_n);
	location.line_first = b->p.lines_n;
	location.line_n = n;
	for (i = 0; i < n; i++) {
		assert(lines[i].function < b->p.functions_n);
		b->p.lines[b->p.lines_n++] = lines[i];
	}
	b->p.locations[b->p.locations_n] = location;
	return b->p.locations_n++;
}

uint64_t pprof_location_hash(const struct pprof_location_key *key)
{
	uint64_t hash = map_hash_u64(key->l.address ^ (uint64_t)key->l.mapping << 32 ^ key->l.line_n);

	for (uint32_t i = 0; i < key->l.line_n; i++)
		hash = map_hash_u64(
			hash ^ (uint64_t)key->lines[i].function << 32 ^ (uint64_t)key->lines[i].line);
	return hash;
}

bool pprof_location_eq(const void *profile, const void *key, uint32_t id)
{
	const struct pprof_location_key *k = key;
	const struct pprof *p = profile;
	const struct pprof_location *a = &k->l, *b = &p->locations[id];

	assert(id < p->locations_n);
	if (a->address != b->address || a->mapping != b->mapping || a->line_n != b->line_n ||
		a->is_folded != b->is_folded)
		return false;
	for (uint32_t i = 0; i < a->line_n; i++) {
		const struct pprof_line *x = &k->lines[i], *y = &p->lines[b->line_first + i];

		if (x->function != y->function || x->line != y->line || x->column != y->column)
			return false;
	}
	return true;
}

void pprof_builder_sample(struct pprof_builder *b, const uint32_t *locations, uint32_t locations_n,
	const struct pprof_label *labels, uint32_t labels_n, const int64_t *values)
{
	struct pprof *p = &b->p;
	uint32_t i;

	assert((locations || !locations_n) && (labels || !labels_n) && (values || !p->types_n));
	ROOM(b, p->samples, p->samples_n, 1, b->samples_cap);
	ROOM(b, p->location_ids, p->location_ids_n, locations_n, b->location_ids_cap);
	ROOM(b, p->labels, p->labels_n, labels_n, b->labels_cap);
	ROOM(b, p->values, b->values_n, p->types_n, b->values_cap);
	if (b->failed)
		return;
	p->samples[p->samples_n++] = (struct pprof_sample){ p->location_ids_n, locations_n, p->labels_n,
		labels_n };
	for (i = 0; i < locations_n; i++) {
		assert(locations[i] < p->locations_n);
		p->location_ids[p->location_ids_n++] = locations[i];
	}
	for (i = 0; i < labels_n; i++) {
		assert(labels[i].key < p->strings_n && labels[i].str < p->strings_n &&
			labels[i].num_unit < p->strings_n);
		p->labels[p->labels_n++] = labels[i];
	}
	for (i = 0; i < p->types_n; i++)
		p->values[b->values_n++] = values[i];
}

struct pprof *pprof_builder_profile(struct pprof_builder *b)
{
	return &b->p;
}

void pprof_builder_comment(struct pprof_builder *b, struct str s)
{
	uint32_t i = pprof_builder_string(b, s);

	ROOM(b, b->p.comments, b->p.comments_n, 1, b->comments_cap);
	if (!b->failed)
		b->p.comments[b->p.comments_n++] = i;
}

/* Checks the fields that callers set themselves, and the count of values. */
static void pprof_builder_check_fields(const struct pprof_builder *b)
{
	const struct pprof *p = &b->p;

	assert(p->strings_n > 0 && p->strings[0].len == 0);
	assert(p->drop_frames < p->strings_n && p->keep_frames < p->strings_n);
	assert(p->default_sample_type < p->strings_n && p->doc_url < p->strings_n);
	assert(p->period_type.type < p->strings_n && p->period_type.unit < p->strings_n);
	assert(b->values_n == (size_t)p->samples_n * p->types_n);
}

enum err_code pprof_builder_finish(struct pprof_builder *b, struct pprof **out, struct err *err)
{
	if (b->failed)
		return arena_fail(b->a, "profile", err);
	pprof_builder_check_fields(b);
	*out = &b->p;
	return ERR_OK;
}
