#include "promql/pprof/symbols.h"

/* Ids of one partition's symbols in the profile, + 1; 0: not there yet. */
struct symbol_table {
	const struct partition *p;
	uint32_t *mappings, *functions, *locations;
	uint32_t mappings_cap;
	uint64_t *starts; /* per mapping: where some process had it */
	struct symbol_table *next;
};

void pprof_symbols_init(struct pprof_symbols *s, struct arena *a, struct pprof_builder *b)
{
	*s = (struct pprof_symbols){ .arena = a, .builder = b };
	map_init(&s->mappings);
	map_init(&s->functions);
	map_init(&s->locations);
}

void pprof_symbols_release(struct pprof_symbols *s)
{
	map_release(&s->mappings);
	map_release(&s->functions);
	map_release(&s->locations);
}

static enum err_code pprof_symbols_nomem(const struct pprof_symbols *s, struct err *err)
{
	return arena_fail(s->arena, "answer", err);
}

/* An item that the builder has just added; it may have failed. */
static enum err_code pprof_symbols_note(const struct pprof_symbols *s, struct map *m, uint64_t hash,
	uint32_t id, uint32_t items_n, struct err *err)
{
	if (id >= items_n)
		return pprof_symbols_nomem(s, err);
	if (!map_add(m, hash, id))
		return err_nomem(err, "answer");
	return ERR_OK;
}

/* ---- tables ---- */

static enum err_code pprof_symbols_reserve_mappings(
	struct pprof_symbols *s, struct symbol_table *t, uint32_t n, struct err *err)
{
	uint32_t cap = t->mappings_cap ? t->mappings_cap : 16, *mappings;
	uint64_t *starts;

	if (n <= t->mappings_cap)
		return ERR_OK;
	while (cap < n)
		cap *= 2;
	mappings = arena_array(s->arena, uint32_t, cap);
	starts = arena_array(s->arena, uint64_t, cap);
	if (!mappings || !starts)
		return pprof_symbols_nomem(s, err);
	if (t->mappings_cap) {
		memcpy(mappings, t->mappings, t->mappings_cap * sizeof(*mappings));
		memcpy(starts, t->starts, t->mappings_cap * sizeof(*starts));
	}
	t->mappings = mappings;
	t->starts = starts;
	t->mappings_cap = cap;
	return ERR_OK;
}

enum err_code pprof_symbols_table(
	struct pprof_symbols *s, const struct part *part, struct symbol_table **out, struct err *err)
{
	const struct partition *p = part->partition;
	struct symbol_table *t = s->tables;
	enum err_code rc;

	while (t && t->p != p)
		t = t->next;
	if (!t) {
		if (!(t = arena_new(s->arena, struct symbol_table)))
			return pprof_symbols_nomem(s, err);
		t->p = p;
		t->functions = arena_array(s->arena, uint32_t, sym_functions_n(p) + 1);
		t->locations = arena_array(s->arena, uint32_t, sym_locations_n(p) + 1);
		if (!t->functions || !t->locations)
			return pprof_symbols_nomem(s, err);
		t->next = s->tables;
		s->tables = t;
	}
	for (uint32_t i = part->headers_n; i-- > 0;) { /* the first header's fields win */
		const struct sym_header *h = sym_header(p, part->headers[i]);

		for (uint32_t k = 0; k < h->mappings_n; k++) {
			if ((rc = pprof_symbols_reserve_mappings(s, t, h->mappings[k] + 1, err)))
				return rc;
			if (!t->mappings[h->mappings[k]])
				t->starts[h->mappings[k]] = h->mapping_start[k];
		}
	}
	*out = t;
	return ERR_OK;
}

/* ---- mappings ---- */

struct mapping_key {
	struct pprof_mapping m;
	uint32_t ordinal;
	const struct pprof_symbols *s;
};

/* Its address does not matter: one process represents all. */
static bool pprof_symbols_mapping_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct mapping_key *k = key;
	const struct pprof_mapping *a = &k->m, *b = &((const struct pprof *)ctx)->mappings[id];

	return k->ordinal == k->s->ordinals[id] && a->limit - a->start == b->limit - b->start &&
		a->offset == b->offset && a->filename == b->filename && a->build_id == b->build_id &&
		a->has_filenames == b->has_filenames && a->has_line_numbers == b->has_line_numbers &&
		a->has_inline_frames == b->has_inline_frames;
}

static enum err_code pprof_symbols_keep_ordinal(
	struct pprof_symbols *s, uint32_t id, uint32_t ordinal, struct err *err)
{
	uint32_t *grown, cap = s->ordinals_cap ? s->ordinals_cap * 2 : 16;

	if (id >= s->ordinals_cap) {
		if (!(grown = arena_array(s->arena, uint32_t, cap)))
			return pprof_symbols_nomem(s, err);
		if (s->ordinals_cap)
			memcpy(grown, s->ordinals, s->ordinals_cap * sizeof(*grown));
		s->ordinals = grown;
		s->ordinals_cap = cap;
	}
	s->ordinals[id] = ordinal;
	return ERR_OK;
}

/* Functions are marked as known, or `go tool pprof` would ask for their names. */
enum err_code pprof_symbols_mapping(
	struct pprof_symbols *s, struct symbol_table *t, uint32_t id, uint32_t *out, struct err *err)
{
	const struct sym_mapping *m = sym_mapping(t->p, id);
	const struct pprof *p = pprof_builder_profile(s->builder);
	struct mapping_key key = { .ordinal = m->ordinal, .s = s };
	uint64_t hash;
	enum err_code rc;

	if ((rc = pprof_symbols_reserve_mappings(s, t, id + 1, err)))
		return rc;
	if (t->mappings[id]) {
		*out = t->mappings[id] - 1;
		return ERR_OK;
	}
	key.m = (struct pprof_mapping){
		.start = t->starts[id],
		.limit = t->starts[id] + m->size,
		.offset = m->offset,
		.filename = pprof_builder_string(s->builder, sym_string(t->p, m->filename)),
		.build_id = pprof_builder_string(s->builder, sym_string(t->p, m->build_id)),
		.has_functions = true,
		.has_filenames = m->has_filenames,
		.has_line_numbers = m->has_line_numbers,
		.has_inline_frames = m->has_inline_frames,
	};
	hash = map_hash_u64((uint64_t)key.m.filename << 32 | key.m.build_id) ^
		map_hash_u64(m->offset ^ m->size << 1 ^ m->ordinal);
	*out = map_find(&s->mappings, hash, pprof_symbols_mapping_eq, p, &key);
	if (*out == MAP_NONE) {
		*out = pprof_builder_mapping(s->builder, &key.m);
		if ((rc = pprof_symbols_note(s, &s->mappings, hash, *out, p->mappings_n, err)) ||
			(rc = pprof_symbols_keep_ordinal(s, *out, m->ordinal, err)))
			return rc;
	}
	t->mappings[id] = *out + 1;
	return ERR_OK;
}

/* ---- functions ---- */

static bool pprof_symbols_function_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct pprof_function *a = key, *b = &((const struct pprof *)ctx)->functions[id];

	return a->name == b->name && a->system_name == b->system_name && a->filename == b->filename &&
		a->start_line == b->start_line;
}

static enum err_code pprof_symbols_add_function(
	struct pprof_symbols *s, struct symbol_table *t, uint32_t id, uint32_t *out, struct err *err)
{
	const struct sym_function *f = sym_function(t->p, id);
	const struct pprof *p = pprof_builder_profile(s->builder);
	struct pprof_function key;
	uint64_t hash;
	enum err_code rc;

	if (t->functions[id]) {
		*out = t->functions[id] - 1;
		return ERR_OK;
	}
	key = (struct pprof_function){
		.name = pprof_builder_string(s->builder, sym_function_name(t->p, f)),
		.system_name = pprof_builder_string(s->builder, sym_string(t->p, f->system_name)),
		.filename = pprof_builder_string(s->builder, sym_string(t->p, f->filename)),
		.start_line = f->start_line,
	};
	hash = map_hash_u64((uint64_t)key.name << 32 | key.system_name) ^
		map_hash_u64((uint64_t)key.filename << 32 ^ (uint64_t)key.start_line);
	*out = map_find(&s->functions, hash, pprof_symbols_function_eq, p, &key);
	if (*out == MAP_NONE) {
		*out = pprof_builder_function(s->builder, &key);
		if ((rc = pprof_symbols_note(s, &s->functions, hash, *out, p->functions_n, err)))
			return rc;
	}
	t->functions[id] = *out + 1;
	return ERR_OK;
}

/* ---- locations ---- */

static enum err_code pprof_symbols_add_location(
	struct pprof_symbols *s, struct symbol_table *t, uint32_t id, uint32_t *out, struct err *err)
{
	const struct sym_location l = sym_location(t->p, id);
	const struct pprof *p = pprof_builder_profile(s->builder);
	struct pprof_location_key key = { .l = { .address = l.address,
										  .mapping = PPROF_NONE,
										  .line_n = l.lines_n,
										  .is_folded = l.is_folded } };
	struct pprof_line *lines;
	uint64_t hash;
	enum err_code rc;

	if (!(lines = arena_array(s->arena, struct pprof_line, l.lines_n + 1)))
		return pprof_symbols_nomem(s, err);
	key.lines = lines;
	for (uint32_t i = 0; i < l.lines_n; i++) {
		lines[i].line = l.lines[i].line;
		lines[i].column = l.lines[i].column;
		if ((rc = pprof_symbols_add_function(s, t, l.lines[i].function, &lines[i].function, err)))
			return rc;
	}
	if (l.mapping != SYM_NONE) {
		if ((rc = pprof_symbols_mapping(s, t, l.mapping, &key.l.mapping, err)))
			return rc;
		key.l.address = l.address == SYM_NO_ADDRESS ? 0 :
													  l.address + p->mappings[key.l.mapping].start;
	}
	hash = pprof_location_hash(&key);
	*out = map_find(&s->locations, hash, pprof_location_eq, p, &key);
	if (*out != MAP_NONE)
		return ERR_OK;
	*out = pprof_builder_location(s->builder, key.l, lines, l.lines_n);
	return pprof_symbols_note(s, &s->locations, hash, *out, p->locations_n, err);
}

enum err_code pprof_symbols_location(
	struct pprof_symbols *s, struct symbol_table *t, uint32_t id, uint32_t *out, struct err *err)
{
	enum err_code rc;

	if (!t->locations[id]) {
		if ((rc = pprof_symbols_add_location(s, t, id, out, err)))
			return rc;
		t->locations[id] = *out + 1;
	}
	*out = t->locations[id] - 1;
	return ERR_OK;
}
