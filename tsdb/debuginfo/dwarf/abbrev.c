/*
 * Abbreviations. A table is parsed when a unit first asks for it and kept in a small cache, since
 * linkers and dwz share tables between units. For each abbreviation it is known whether all its
 * attributes have a fixed size: most entries describe types, and are stepped over in one addition.
 */
#include "base/array.h"
#include "tsdb/debuginfo/dwarf/format.h"
#include "tsdb/debuginfo/dwarf/internal.h"

#include <stdlib.h>

static const struct {
	uint16_t name;
	uint8_t slot;
} wanted[] = {
	{ AT_SIBLING, SLOT_SIBLING },
	{ AT_NAME, SLOT_NAME },
	{ AT_STMT_LIST, SLOT_STMT_LIST },
	{ AT_LOW_PC, SLOT_LOW_PC },
	{ AT_HIGH_PC, SLOT_HIGH_PC },
	{ AT_COMP_DIR, SLOT_COMP_DIR },
	{ AT_ABSTRACT_ORIGIN, SLOT_ORIGIN },
	{ AT_DECL_FILE, SLOT_DECL_FILE },
	{ AT_DECL_LINE, SLOT_DECL_LINE },
	{ AT_SPECIFICATION, SLOT_SPECIFICATION },
	{ AT_RANGES, SLOT_RANGES },
	{ AT_CALL_FILE, SLOT_CALL_FILE },
	{ AT_CALL_LINE, SLOT_CALL_LINE },
	{ AT_LINKAGE_NAME, SLOT_LINKAGE_NAME },
	{ AT_MIPS_LINKAGE_NAME, SLOT_LINKAGE_NAME },
	{ AT_STR_OFFSETS_BASE, SLOT_STR_BASE },
	{ AT_ADDR_BASE, SLOT_ADDR_BASE },
	{ AT_GNU_ADDR_BASE, SLOT_ADDR_BASE },
	{ AT_RNGLISTS_BASE, SLOT_RNGLISTS_BASE },
	{ AT_GNU_RANGES_BASE, SLOT_RANGES_BASE },
	{ AT_DWO_NAME, SLOT_DWO_NAME },
	{ AT_GNU_DWO_NAME, SLOT_DWO_NAME },
	{ AT_GNU_DWO_ID, SLOT_DWO_ID },
};

static uint8_t dwarf_slot_of(uint64_t name)
{
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (wanted[i].name == name)
			return wanted[i].slot;
	return SLOTS;
}

static enum abbrev_kind dwarf_kind_of(const struct abbrev *a, uint32_t has)
{
	bool code = has & (1u << SLOT_LOW_PC | 1u << SLOT_RANGES);

	switch (a->tag) {
	case TAG_SUBPROGRAM:
		return code ? KIND_FUNCTION : KIND_PLAIN;
	case TAG_INLINED_SUBROUTINE:
		return code ? KIND_INLINED : KIND_PLAIN;
	case TAG_ARRAY_TYPE:
	case TAG_ENUMERATION_TYPE:
	case TAG_SUBROUTINE_TYPE:
	case TAG_CALL_SITE:
	case TAG_GNU_CALL_SITE:
		return a->children && has >> SLOT_SIBLING & 1 ? KIND_SKIP_CHILDREN : KIND_PLAIN;
	}
	return KIND_PLAIN;
}

/* The attributes of one abbreviation. */
static enum err_code dwarf_read_attrs(
	struct cursor *c, struct abbrev_table *t, struct abbrev *a, struct err *err)
{
	uint32_t has = 0;

	a->attr_first = t->attrs_n;
	a->fixed = true;
	for (;;) {
		uint64_t name = cursor_varint(c), form = cursor_varint(c);
		struct attr *to;

		if (c->bad || form > UINT16_MAX)
			return dwarf_damaged(
				err, "abbreviation %llu is cut or damaged", (unsigned long long)a->code);
		if (!name && !form)
			break;
		if (t->attrs_n == ABBREV_ATTRS_MAX)
			return dwarf_damaged(err, "more than %u attributes of abbreviations", ABBREV_ATTRS_MAX);
		if (!array_room(&t->attrs, t->attrs_n, 1, &t->attrs_cap))
			return err_nomem(err, "abbreviations");
		to = &t->attrs[t->attrs_n++];
		*to = (struct attr){ .form = (uint16_t)form, .slot = dwarf_slot_of(name) };
		if (form == FORM_IMPLICIT_CONST)
			to->implicit = cursor_sleb(c);
		if (to->slot < SLOTS)
			has |= 1u << to->slot;
		a->fixed &= form_fixed(to->form, a);
	}
	a->attrs_n = t->attrs_n - a->attr_first;
	a->kind = (uint8_t)dwarf_kind_of(a, has);
	return ERR_OK;
}

static int dwarf_by_code(const void *a, const void *b)
{
	uint64_t x = ((const struct abbrev *)a)->code, y = ((const struct abbrev *)b)->code;

	return x < y ? -1 : x > y;
}

static enum err_code dwarf_parse(
	const struct dwarf_file *f, struct abbrev_table *t, struct err *err)
{
	struct cursor c = dwarf_bytes(f, SEC_ABBREV, t->offset);
	enum err_code rc;
	uint64_t code;

	t->dense = true;
	if (c.bad)
		return dwarf_damaged(
			err, "abbreviations at 0x%llx are not in .debug_abbrev", (unsigned long long)t->offset);
	/* Some producers leave out the last 0. */
	while (c.at < c.end && (code = cursor_varint(&c))) {
		struct abbrev a = { .code = code };
		uint64_t tag = cursor_varint(&c);

		a.children = cursor_le(&c, 1);
		if (c.bad || tag > UINT16_MAX)
			return dwarf_damaged(
				err, "abbreviation %llu is cut or damaged", (unsigned long long)code);
		a.tag = (uint32_t)tag;
		if ((rc = dwarf_read_attrs(&c, t, &a, err)))
			return rc;
		if (t->n == ABBREVS_MAX)
			return dwarf_damaged(err, "more than %u abbreviations", ABBREVS_MAX);
		if (!array_room(&t->v, t->n, 1, &t->cap))
			return err_nomem(err, "abbreviations");
		t->dense &= code == t->n + 1;
		t->v[t->n++] = a;
	}
	if (c.bad)
		return dwarf_damaged(err, "abbreviations are cut");
	if (!t->dense)
		qsort(t->v, t->n, sizeof(*t->v), dwarf_by_code);
	return ERR_OK;
}

static size_t dwarf_table_bytes(const struct abbrev_table *t)
{
	return sizeof(*t) + t->cap * sizeof(*t->v) + t->attrs_cap * sizeof(*t->attrs);
}

static void dwarf_drop(struct dwarf_reader *r, struct abbrev_table **slot)
{
	struct abbrev_table *t = *slot;

	if (!t || t == r->abbrevs_pinned)
		return;
	r->abbrevs_bytes -= dwarf_table_bytes(t);
	free(t->v);
	free(t->attrs);
	free(t);
	*slot = NULL;
}

void abbrev_forget(struct dwarf_reader *r, enum file_kind kind)
{
	for (unsigned i = 0; i < ABBREV_CACHE; i++)
		dwarf_drop(r, &r->abbrevs[kind][i]);
}

void abbrev_release(struct dwarf_reader *r)
{
	for (unsigned kind = 0; kind < FILE_KINDS; kind++)
		abbrev_forget(r, (enum file_kind)kind);
}

/* A place for a new table: the pinned one keeps its own, and the next is taken. */
static struct abbrev_table **dwarf_place(struct dwarf_reader *r, enum file_kind kind, size_t hash)
{
	struct abbrev_table **slot = &r->abbrevs[kind][hash];

	return *slot && *slot == r->abbrevs_pinned ? &r->abbrevs[kind][(hash + 1) % ABBREV_CACHE] :
												 slot;
}

enum err_code abbrev_table(struct dwarf_reader *r, const struct dwarf_file *f, uint64_t offset,
	const struct abbrev_table **out, struct err *err)
{
	size_t hash = (size_t)((offset * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % ABBREV_CACHE;
	struct abbrev_table **slot, *t;
	enum err_code rc;

	for (size_t i = 0; i < 2; i++) {
		t = r->abbrevs[f->kind][(hash + i) % ABBREV_CACHE];
		if (t && t->offset == offset) {
			*out = t;
			return ERR_OK;
		}
	}
	if (!(t = calloc(1, sizeof(*t))))
		return err_nomem(err, "abbreviations");
	t->offset = offset;
	rc = dwarf_parse(f, t, err);
	if (!rc)
		rc = steps_take(r, 1 + t->n + t->attrs_n, err);
	if (rc) {
		/* Damage that many units name is found once for each of them: it costs steps, too. */
		if (rc == ERR_INVALID && steps_take(r, 1 + t->n + t->attrs_n, err))
			rc = ERR_LIMIT;
		free(t->v);
		free(t->attrs);
		free(t);
		return rc;
	}
	r->abbrevs_bytes += dwarf_table_bytes(t);
	if (r->abbrevs_bytes > ABBREV_CACHE_BYTES)
		abbrev_release(r);
	slot = dwarf_place(r, f->kind, hash);
	dwarf_drop(r, slot);
	*slot = t;
	*out = t;
	return ERR_OK;
}

const struct abbrev *abbrev_find(const struct abbrev_table *t, uint64_t code)
{
	struct abbrev key = { .code = code };

	if (t->dense)
		return code && code <= t->n ? &t->v[code - 1] : NULL;
	return t->n ? bsearch(&key, t->v, t->n, sizeof(*t->v), dwarf_by_code) : NULL;
}

void die_read(struct cursor *c, struct dwarf_encoding enc, const struct abbrev_table *t,
	const struct abbrev *a, struct die *out)
{
	out->has = 0;
	for (uint32_t i = 0; i < a->attrs_n; i++) {
		const struct attr *at = &t->attrs[a->attr_first + i];

		if (at->slot == SLOTS) {
			form_skip(c, enc, at->form);
		} else {
			form_read(c, enc, at, &out->v[at->slot]);
			out->has |= 1u << at->slot;
		}
	}
}

void die_skip(struct cursor *c, struct dwarf_encoding enc, const struct abbrev_table *t,
	const struct abbrev *a)
{
	if (a->fixed) {
		uint64_t n = a->fixed_bytes + (uint64_t)a->fixed_addresses * enc.address_bytes +
			(uint64_t)a->fixed_offsets * enc.offset_bytes +
			(uint64_t)a->fixed_ref_addrs *
				(enc.version <= 2 ? enc.address_bytes : enc.offset_bytes);

		if (n > cursor_left(c)) {
			c->bad = true;
			c->at = c->end;
		} else {
			c->at += n;
		}
		return;
	}
	for (uint32_t i = 0; i < a->attrs_n; i++)
		form_skip(c, enc, t->attrs[a->attr_first + i].form);
}
