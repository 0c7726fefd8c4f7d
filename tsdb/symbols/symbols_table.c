#include "tsdb/symbols/partition.h"

#include <assert.h>

/*
 * Tables from content to id.
 *
 * Locations are looked up before any name is, by a hint: address, mapping, number of lines, first
 * line's number. If several have the same hint, one is in the table under the hint's hash and the
 * others under the hash of their whole content, so that none is far from its place.
 */
static bool symbols_table_same_hint(const struct sym_location *a, const struct sym_location *b)
{
	return a->address == b->address && a->mapping == b->mapping && a->lines_n == b->lines_n &&
		(!a->lines_n || a->lines->line == b->lines->line);
}

uint64_t sym_hint_hash(const struct sym_location *l)
{
	uint64_t line = l->lines_n ? (uint64_t)l->lines->line : 0;

	return map_hash_u64(l->address * UINT64_C(0x9e3779b97f4a7c15) +
		((uint64_t)l->mapping << 32 ^ line << 8 ^ l->lines_n));
}

void sym_hint_prefetch(const struct partition *p, uint64_t hash)
{
	idtable_prefetch(&p->table[SYM_LOCATION], hash);
}

uint32_t sym_hint_guess(const struct partition *p, uint64_t hash)
{
	const struct idtable *t = &p->table[SYM_LOCATION];
	uint32_t place = idtable_place(t, hash);

	return t->n ? idtable_next(t, hash, &place) : SYM_NONE;
}

static bool symbols_table_has_hint(const struct partition *p, const struct idtable *idtable,
	const struct sym_location *l, uint64_t hash)
{
	uint32_t place = idtable_place(idtable, hash), id;
	struct sym_location found;

	while (idtable->n && (id = idtable_next(idtable, hash, &place)) != SYM_NONE) {
		found = partition_location(p, id);
		if (symbols_table_same_hint(&found, l))
			return true;
	}
	return false;
}

/* The hash that a table, which lacks this content, has it under. */
static uint64_t table_hash(const struct partition *p, enum sym_kind kind,
	const struct idtable *idtable, const union sym_content *c, uint64_t content_hash)
{
	uint64_t hint;

	if (kind != SYM_LOCATION)
		return content_hash;
	hint = sym_hint_hash(&c->location);
	return symbols_table_has_hint(p, idtable, &c->location, hint) ? content_hash : hint;
}

static uint32_t symbols_table_find(
	const struct partition *p, enum sym_kind kind, const union sym_content *c, uint64_t hash)
{
	const struct idtable *t = &p->table[kind];
	uint32_t place = idtable_place(t, hash), id;

	while (t->n && (id = idtable_next(t, hash, &place)) != SYM_NONE)
		if (sym_content_same(p, kind, id, c))
			return id;
	return SYM_NONE;
}

uint32_t sym_find(const struct partition *p, enum sym_kind kind, const union sym_content *c,
	uint64_t content_hash)
{
	uint32_t id = symbols_table_find(p, kind, c, content_hash);

	if (id == SYM_NONE && kind == SYM_LOCATION)
		id = symbols_table_find(p, kind, c, sym_hint_hash(&c->location));
	return id;
}

static union sym_content symbols_table_content_of(
	const struct partition *p, enum sym_kind kind, uint32_t id)
{
	union sym_content c = { 0 };

	switch (kind) {
	case SYM_STRING:
		c.string = sym_string(p, id);
		break;
	case SYM_MAPPING:
		c.mapping = *sym_mapping(p, id);
		break;
	case SYM_FUNCTION:
		c.function = *sym_function(p, id);
		break;
	case SYM_LOCATION:
		c.location = sym_location(p, id);
		break;
	case SYM_LABEL_SET:
		c.label_set = sym_label_set(p, id);
		break;
	case SYM_HEADER:
		c.header = *sym_header(p, id);
		break;
	case SYM_NODE: /* nodemap.h */
	case SYM_KINDS:
		break;
	}
	return c;
}

struct symbols_table {
	const struct partition *p;
	enum sym_kind kind;
};

static uint64_t symbols_table_hash_again(
	const void *ctx, const struct idtable *idtable, uint32_t id)
{
	const struct symbols_table *of = ctx;
	union sym_content c = symbols_table_content_of(of->p, of->kind, id);

	return table_hash(of->p, of->kind, idtable, &c, sym_content_hash(of->kind, &c));
}

bool sym_table_add(struct partition *p, enum sym_kind kind, const union sym_content *c,
	uint64_t content_hash, uint32_t id)
{
	const struct symbols_table of = { p, kind };
	struct idtable *t = &p->table[kind];

	assert(kind != SYM_NODE);
	return idtable_add(
		t, table_hash(p, kind, t, c, content_hash), id, symbols_table_hash_again, &of);
}
