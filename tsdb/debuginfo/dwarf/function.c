/*
 * The function that an entry describes. An inlined call and the code of a function name the
 * abstract function (abstract_origin), that one its declaration (specification), each perhaps in
 * another unit or in the dwz file. The first name, file and line on the way count.
 *
 * What an entry refers to is looked up once and remembered: per unit, and for other units as long
 * as the file is read.
 */
#include "tsdb/debuginfo/dwarf/format.h"
#include "tsdb/debuginfo/dwarf/internal.h"

#define GLOBAL_MAX (4u << 20) /* remembered across units; then it is forgotten */

struct dwarf_names {
	struct str linkage, name;
	uint32_t file, line;
	bool has_linkage, has_name, has_file, has_line;
};

struct dwarf_place {
	struct dwarf_file *file;
	struct dwarf_unit *unit;
	uint64_t offset;
};

/* Where v refers to. False: nowhere that is known. */
static bool dwarf_follow(struct dwarf_reader *r, struct dwarf_file *f, struct dwarf_unit *u,
	const struct dwarf_value *v, struct dwarf_place *out)
{
	out->file = f;
	switch (v->form) {
	case FORM_REF1:
	case FORM_REF2:
	case FORM_REF4:
	case FORM_REF8:
	case FORM_REF_UDATA:
		if (v->u >= u->end - u->offset || v->u < u->first - u->offset)
			return false;
		out->unit = u;
		out->offset = u->offset + v->u;
		return true;
	case FORM_REF_ADDR:
		break;
	case FORM_REF_SUP4:
	case FORM_REF_SUP8:
	case FORM_GNU_REF_ALT:
		if (f->kind == FILE_ALT || !r->has_alt) {
			r->stats->references_lost++;
			return false;
		}
		out->file = &r->alt;
		break;
	default:
		return false;
	}
	out->offset = v->u;
	return (out->unit = unit_at(out->file, v->u));
}

static enum err_code dwarf_take_names(struct dwarf_reader *r, const struct dwarf_file *f,
	const struct dwarf_unit *u, const struct die *d, struct dwarf_names *n, struct err *err)
{
	const struct dwarf_value *v;
	struct line_table *t;
	enum err_code rc;

	if (!n->has_linkage && (v = die_value(d, SLOT_LINKAGE_NAME)))
		n->has_linkage = value_string(r, f, u, v, &n->linkage) && n->linkage.len;
	if (!n->has_name && (v = die_value(d, SLOT_NAME)))
		n->has_name = value_string(r, f, u, v, &n->name) && n->name.len;
	if (!n->has_line && (v = die_value(d, SLOT_DECL_LINE))) {
		n->line = v->u > UINT32_MAX ? 0 : (uint32_t)v->u;
		n->has_line = true;
	}
	if (!n->has_file && (v = die_value(d, SLOT_DECL_FILE))) {
		if ((rc = line_table(r, f, u, &t, err)))
			return rc;
		if (t && (rc = line_file_id(r, t, v->u, &n->file, err)))
			return rc;
		n->has_file = true;
	}
	return ERR_OK;
}

/* Reads the entry at p into *d. */
static enum err_code dwarf_read_at(
	struct dwarf_reader *r, const struct dwarf_place *p, struct die *d, struct err *err)
{
	struct cursor c = dwarf_bytes(p->file, SEC_INFO, p->offset);
	const struct abbrev_table *t;
	const struct abbrev *a;
	enum err_code rc;

	if ((rc = unit_root(r, p->file, p->unit, err)) || (rc = steps_take(r, 4, err)) ||
		(rc = abbrev_table(r, p->file, p->unit->abbrev_offset, &t, err)))
		return rc;
	c.end = (const unsigned char *)p->file->sections[SEC_INFO].ptr + p->unit->end;
	if (!(a = abbrev_find(t, cursor_varint(&c))))
		return dwarf_damaged(
			err, "0x%llx is referred to, but is no entry", (unsigned long long)p->offset);
	die_read(&c, p->unit->enc, t, a, d);
	return c.bad ? dwarf_damaged(err, "entry at 0x%llx is cut", (unsigned long long)p->offset) :
				   ERR_OK;
}

static const struct dwarf_value *dwarf_reference(const struct die *d)
{
	const struct dwarf_value *v = die_value(d, SLOT_ORIGIN);

	return v ? v : die_value(d, SLOT_SPECIFICATION);
}

static enum err_code dwarf_chase(struct dwarf_reader *r, struct dwarf_file *f, struct dwarf_unit *u,
	struct die *d, uint32_t *out, struct err *err)
{
	struct dwarf_names n = { .file = NONE };
	const struct dwarf_value *v;
	enum err_code rc;

	for (unsigned step = 0;; step++) {
		struct dwarf_place p;

		if ((rc = dwarf_take_names(r, f, u, d, &n, err)))
			return rc;
		if ((n.has_linkage && n.has_file && n.has_line) || !(v = dwarf_reference(d)) ||
			!dwarf_follow(r, f, u, v, &p))
			break;
		if (step == CHAIN_MAX)
			return dwarf_damaged(err, "a function is described by more than %u entries", CHAIN_MAX);
		if ((rc = dwarf_read_at(r, &p, d, err)))
			return rc;
		f = p.file;
		u = p.unit;
	}
	*out = NONE;
	if (!n.has_linkage && !n.has_name)
		return ERR_OK;
	return symindex_function(
		r->builder, n.has_linkage ? n.linkage : n.name, n.file, n.line, out, err);
}

enum err_code function_of(struct dwarf_reader *r, struct dwarf_file *f, struct dwarf_unit *u,
	const struct die *d, uint32_t *out, struct err *err)
{
	const uint32_t own = 1u << SLOT_NAME | 1u << SLOT_LINKAGE_NAME | 1u << SLOT_DECL_LINE |
		1u << SLOT_DECL_FILE;
	const struct dwarf_value *v = dwarf_reference(d);
	struct number_map *m;
	struct dwarf_place p;
	struct die at;
	enum err_code rc;
	uint64_t key;

	if (!v || d->has & own) {
		at = *d;
		return dwarf_chase(r, f, u, &at, out, err);
	}
	*out = NONE;
	if (!dwarf_follow(r, f, u, v, &p))
		return ERR_OK;
	m = p.unit == u ? &r->local : &r->global;
	key = p.offset << 2 | p.file->kind;
	if ((*out = number_map_find(m, key)) != MAP_MISS)
		return ERR_OK;
	if ((rc = dwarf_read_at(r, &p, &at, err)) ||
		(rc = dwarf_chase(r, p.file, p.unit, &at, out, err)))
		return rc;
	if (m == &r->global && m->used >= GLOBAL_MAX)
		number_map_clear(m);
	return number_map_add(m, key, *out) ? ERR_OK : err_nomem(err, "functions");
}
