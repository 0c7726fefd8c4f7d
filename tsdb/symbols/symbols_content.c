#include "tsdb/symbols/partition.h"

#include <stdlib.h>

#include "proto/function_name.h"

/* ---- content: hash and equality per kind ---- */

static uint64_t symbols_content_mix(uint64_t hash, uint64_t value)
{
	return map_hash_u64(hash * UINT64_C(0x9e3779b97f4a7c15) + value);
}

static uint64_t symbols_content_hash_mapping(const struct sym_mapping *m)
{
	unsigned flags = (unsigned)m->has_functions | (unsigned)m->has_filenames << 1 |
		(unsigned)m->has_line_numbers << 2 | (unsigned)m->has_inline_frames << 3;

	return symbols_content_mix(
		symbols_content_mix(symbols_content_mix(symbols_content_mix(m->size, m->offset),
								(uint64_t)m->filename << 32 | m->build_id),
			m->ordinal),
		flags);
}

static bool symbols_content_same_mapping(const struct sym_mapping *a, const struct sym_mapping *b)
{
	return a->size == b->size && a->offset == b->offset && a->filename == b->filename &&
		a->build_id == b->build_id && a->ordinal == b->ordinal &&
		a->has_functions == b->has_functions && a->has_filenames == b->has_filenames &&
		a->has_line_numbers == b->has_line_numbers && a->has_inline_frames == b->has_inline_frames;
}

static uint64_t symbols_content_hash_location(const struct sym_location *l)
{
	uint64_t h = symbols_content_mix(
		symbols_content_mix(l->address, (uint64_t)l->mapping << 1 | l->is_folded), l->lines_n);

	for (uint32_t i = 0; i < l->lines_n; i++)
		h = symbols_content_mix(symbols_content_mix(symbols_content_mix(h, l->lines[i].function),
									(uint64_t)l->lines[i].line),
			(uint64_t)l->lines[i].column);
	return h;
}

static bool symbols_content_same_location(
	const struct sym_location *a, const struct sym_location *b)
{
	if (a->address != b->address || a->mapping != b->mapping || a->lines_n != b->lines_n ||
		a->is_folded != b->is_folded)
		return false;
	for (uint32_t i = 0; i < a->lines_n; i++)
		if (a->lines[i].function != b->lines[i].function || a->lines[i].line != b->lines[i].line ||
			a->lines[i].column != b->lines[i].column)
			return false;
	return true;
}

static uint64_t symbols_content_hash_label_set(const struct sym_label_set *s)
{
	uint64_t h = s->n;

	for (uint32_t i = 0; i < s->n; i++)
		h = symbols_content_mix(
			symbols_content_mix(symbols_content_mix(h, (uint64_t)s->v[i].key << 32 | s->v[i].str),
				s->v[i].num_unit),
			(uint64_t)s->v[i].num);
	return h;
}

static int sym_label_cmp(const struct sym_label *a, const struct sym_label *b)
{
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->str != b->str)
		return a->str < b->str ? -1 : 1;
	if (a->num != b->num)
		return a->num < b->num ? -1 : 1;
	return (a->num_unit > b->num_unit) - (a->num_unit < b->num_unit);
}

static int symbols_content_label_cmp_qsort(const void *a, const void *b)
{
	return sym_label_cmp(a, b);
}

void sym_label_set_sort(struct sym_label *s, uint32_t n)
{
	if (n > 1)
		qsort(s, n, sizeof(*s), symbols_content_label_cmp_qsort);
}

static bool symbols_content_same_label_set(
	const struct sym_label_set *a, const struct sym_label_set *b)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (sym_label_cmp(&a->v[i], &b->v[i]) != 0)
			return false;
	return true;
}

uint64_t sym_hash_types(const struct sym_header *h)
{
	uint64_t x = symbols_content_mix((uint64_t)h->period_type << 32 | h->period_unit, h->types_n);

	for (uint32_t i = 0; i < h->types_n; i++)
		x = symbols_content_mix(
			symbols_content_mix(x, (uint64_t)h->types[i].type << 32 | h->types[i].unit),
			(uint64_t)h->types[i].kind << 1 | h->types[i].was_cumulative);
	return x;
}

bool sym_same_types(const struct sym_header *a, const struct sym_header *b)
{
	if (a->types_n != b->types_n || a->period_type != b->period_type ||
		a->period_unit != b->period_unit)
		return false;
	for (uint32_t i = 0; i < a->types_n; i++)
		if (a->types[i].type != b->types[i].type || a->types[i].unit != b->types[i].unit ||
			a->types[i].kind != b->types[i].kind ||
			a->types[i].was_cumulative != b->types[i].was_cumulative)
			return false;
	return true;
}

static uint64_t symbols_content_hash_header(const struct sym_header *h)
{
	uint64_t x = sym_hash_types(h);

	x = symbols_content_mix(symbols_content_mix(x, (uint64_t)h->drop_frames << 32 | h->keep_frames),
		(uint64_t)h->default_sample_type << 32 | h->doc_url);
	x = symbols_content_mix(x, (uint64_t)h->comments_n << 32 | h->mappings_n);
	for (uint32_t i = 0; i < h->comments_n; i++)
		x = symbols_content_mix(x, h->comments[i]);
	for (uint32_t i = 0; i < h->mappings_n; i++)
		x = symbols_content_mix(symbols_content_mix(x, h->mappings[i]), h->mapping_start[i]);
	return x;
}

static bool symbols_content_same_array(const void *a, const void *b, size_t n, size_t size)
{
	return n == 0 || memcmp(a, b, n * size) == 0;
}

static bool symbols_content_same_header(const struct sym_header *a, const struct sym_header *b)
{
	return sym_same_types(a, b) && a->drop_frames == b->drop_frames &&
		a->keep_frames == b->keep_frames && a->default_sample_type == b->default_sample_type &&
		a->doc_url == b->doc_url && a->comments_n == b->comments_n &&
		a->mappings_n == b->mappings_n &&
		symbols_content_same_array(a->comments, b->comments, a->comments_n, sizeof(*a->comments)) &&
		symbols_content_same_array(a->mappings, b->mappings, a->mappings_n, sizeof(*a->mappings)) &&
		symbols_content_same_array(
			a->mapping_start, b->mapping_start, a->mappings_n, sizeof(*a->mapping_start));
}

bool sym_shown_name(struct partition *p, const struct sym_function *f, struct buf *out)
{
	if (f->name && f->name != f->system_name)
		return false;
	if (!function_name_shown(sym_string(p, f->name), sym_string(p, f->system_name), out))
		return false;
	atomic_store_explicit(&p->has_shown, true, memory_order_relaxed);
	return true;
}

static uint64_t symbols_content_hash_function(const struct sym_function *f)
{
	return symbols_content_mix(
		symbols_content_mix(symbols_content_mix(f->name, f->system_name), f->filename),
		(uint64_t)f->start_line);
}

static bool symbols_content_same_function(
	const struct sym_function *a, const struct sym_function *b)
{
	return a->name == b->name && a->system_name == b->system_name && a->filename == b->filename &&
		a->start_line == b->start_line;
}

static uint64_t symbols_content_hash_node(uint32_t parent, uint32_t location)
{
	return map_hash_u64((uint64_t)parent << 32 | location);
}

uint64_t sym_content_hash(enum sym_kind kind, const union sym_content *c)
{
	switch (kind) {
	case SYM_STRING:
		return hash_bytes(c->string.ptr, c->string.len, 0);
	case SYM_MAPPING:
		return symbols_content_hash_mapping(&c->mapping);
	case SYM_FUNCTION:
		return symbols_content_hash_function(&c->function);
	case SYM_LOCATION:
		return symbols_content_hash_location(&c->location);
	case SYM_NODE:
		return symbols_content_hash_node(c->node.parent, c->node.location);
	case SYM_LABEL_SET:
		return symbols_content_hash_label_set(&c->label_set);
	case SYM_HEADER:
		return symbols_content_hash_header(&c->header);
	case SYM_KINDS:
		break;
	}
	return 0;
}

bool sym_content_same(
	const struct partition *p, enum sym_kind kind, uint32_t id, const union sym_content *c)
{
	const void *item = segvec_at(&p->vec[kind], id);
	struct sym_location location;
	struct sym_node node;

	switch (kind) {
	case SYM_STRING:
		return str_eq(sym_string(p, id), c->string);
	case SYM_MAPPING:
		return symbols_content_same_mapping(item, &c->mapping);
	case SYM_FUNCTION:
		return symbols_content_same_function(item, &c->function);
	case SYM_LOCATION:
		location = partition_location(p, id);
		return symbols_content_same_location(&location, &c->location);
	case SYM_NODE:
		node = sym_node(p, id);
		return node.parent == c->node.parent && node.location == c->node.location;
	case SYM_LABEL_SET:
		return symbols_content_same_label_set(item, &c->label_set);
	case SYM_HEADER:
		return symbols_content_same_header(&((const struct header_item *)item)->h, &c->header);
	case SYM_KINDS:
		break;
	}
	return false;
}

/* ---- completeness: what it refers to is there ---- */

static bool symbols_content_refers_to_strings(
	const struct partition *p, const uint32_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!sym_exists(p, SYM_STRING, ids[i]))
			return false;
	return true;
}

static bool symbols_content_header_complete(const struct partition *p, const struct sym_header *h)
{
	const uint32_t s[] = { h->period_type, h->period_unit, h->drop_frames, h->keep_frames,
		h->default_sample_type, h->doc_url };

	if (h->types_n == 0 || !symbols_content_refers_to_strings(p, s, sizeof(s) / sizeof(s[0])) ||
		!symbols_content_refers_to_strings(p, h->comments, h->comments_n))
		return false;
	for (uint32_t i = 0; i < h->types_n; i++)
		if (!symbols_content_refers_to_strings(
				p, (const uint32_t[]){ h->types[i].type, h->types[i].unit }, 2))
			return false;
	for (uint32_t i = 0; i < h->mappings_n; i++)
		if (!sym_exists(p, SYM_MAPPING, h->mappings[i]))
			return false;
	return true;
}

bool sym_content_complete(
	const struct partition *p, enum sym_kind kind, uint32_t id, const union sym_content *c)
{
	switch (kind) {
	case SYM_STRING:
		return true;
	case SYM_MAPPING:
		return symbols_content_refers_to_strings(
			p, (const uint32_t[]){ c->mapping.filename, c->mapping.build_id }, 2);
	case SYM_FUNCTION:
		return symbols_content_refers_to_strings(p,
			(const uint32_t[]){ c->function.name, c->function.system_name, c->function.filename },
			3);
	case SYM_LOCATION:
		if (id >= NODE_LOCATIONS_MAX ||
			(c->location.mapping != SYM_NONE && !sym_exists(p, SYM_MAPPING, c->location.mapping)))
			return false;
		for (uint32_t i = 0; i < c->location.lines_n; i++)
			if (!sym_exists(p, SYM_FUNCTION, c->location.lines[i].function))
				return false;
		return true;
	case SYM_NODE:
		return c->node.parent < id && sym_exists(p, SYM_NODE, c->node.parent) &&
			sym_exists(p, SYM_LOCATION, c->node.location);
	case SYM_LABEL_SET:
		for (uint32_t i = 0; i < c->label_set.n; i++)
			if (!symbols_content_refers_to_strings(p,
					(const uint32_t[]){
						c->label_set.v[i].key, c->label_set.v[i].str, c->label_set.v[i].num_unit },
					3))
				return false;
		return true;
	case SYM_HEADER:
		return symbols_content_header_complete(p, &c->header);
	case SYM_KINDS:
		break;
	}
	return false;
}

/* ---- what was lost ---- */

static void symbols_content_reserve_strings(struct partition *p, const uint32_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sym_reserve(p, SYM_STRING, ids[i]);
}

static void symbols_content_reserve_header(struct partition *p, const struct sym_header *h)
{
	symbols_content_reserve_strings(p,
		(const uint32_t[]){ h->period_type, h->period_unit, h->drop_frames, h->keep_frames,
			h->default_sample_type, h->doc_url },
		6);
	symbols_content_reserve_strings(p, h->comments, h->comments_n);
	for (uint32_t i = 0; i < h->types_n; i++)
		symbols_content_reserve_strings(
			p, (const uint32_t[]){ h->types[i].type, h->types[i].unit }, 2);
	for (uint32_t i = 0; i < h->mappings_n; i++)
		sym_reserve(p, SYM_MAPPING, h->mappings[i]);
}

void sym_content_reserve(struct partition *p, enum sym_kind kind, const union sym_content *c)
{
	switch (kind) {
	case SYM_MAPPING:
		symbols_content_reserve_strings(
			p, (const uint32_t[]){ c->mapping.filename, c->mapping.build_id }, 2);
		break;
	case SYM_FUNCTION:
		symbols_content_reserve_strings(p,
			(const uint32_t[]){ c->function.name, c->function.system_name, c->function.filename },
			3);
		break;
	case SYM_LOCATION:
		sym_reserve(p, SYM_MAPPING, c->location.mapping);
		for (uint32_t i = 0; i < c->location.lines_n; i++)
			sym_reserve(p, SYM_FUNCTION, c->location.lines[i].function);
		break;
	case SYM_NODE:
		sym_reserve(p, SYM_NODE, c->node.parent);
		sym_reserve(p, SYM_LOCATION, c->node.location);
		break;
	case SYM_LABEL_SET:
		for (uint32_t i = 0; i < c->label_set.n; i++)
			symbols_content_reserve_strings(p,
				(const uint32_t[]){
					c->label_set.v[i].key, c->label_set.v[i].str, c->label_set.v[i].num_unit },
				3);
		break;
	case SYM_HEADER:
		symbols_content_reserve_header(p, &c->header);
		break;
	case SYM_STRING:
	case SYM_KINDS:
		break;
	}
}
