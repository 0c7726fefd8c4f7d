/*
 * Walks the entries of a unit. Functions and inlined calls with code become scopes; all else is
 * stepped over. The stack holds, for each open entry, the scope that its children are in.
 */
#include "base/array.h"
#include "tsdb/debuginfo/dwarf/internal.h"

static enum err_code dwarf_call_frame(struct dwarf_reader *r, const struct scope *parent,
	const struct die *d, uint32_t *out, struct err *err)
{
	const struct dwarf_value *v = die_value(d, SLOT_CALL_LINE);
	uint32_t line = v && v->u <= UINT32_MAX ? (uint32_t)v->u : 0, file = NONE;
	enum err_code rc;

	if ((v = die_value(d, SLOT_CALL_FILE)) && r->job.lines &&
		(rc = line_file_id(r, r->job.lines, v->u, &file, err)))
		return rc;
	return symindex_frame(r->builder, parent->caller, parent->function, file, line, out, err);
}

/* Skeletons have short names. The symbol at the function's address is the whole one. */
static enum err_code dwarf_full_name(
	struct dwarf_reader *r, uint64_t address, uint32_t *function, struct err *err)
{
	enum err_code rc;
	struct str name;
	uint64_t end;
	bool found;

	if ((rc = dwarf_symbol(r, address, &found, &name, &end, err)) || !found)
		return rc;
	return symindex_function(r->builder, name, NONE, 0, function, err);
}

/* *scope: that of the entry's parent, then that of its children. */
static enum err_code scope_add(
	struct dwarf_reader *r, const struct die *d, bool inlined, uint32_t *scope, struct err *err)
{
	struct dwarf_job *j = &r->job;
	uint32_t parent = inlined ? *scope : NONE, ranges_n = j->ranges_n;
	struct scope s = { .caller = NONE };
	enum err_code rc;

	if (!inlined)
		*scope = NONE;
	else if (parent == NONE)
		return ERR_OK; /* its function was removed */
	if ((rc = ranges_add(r, d, j->scopes_n, err)))
		return rc;
	if (j->ranges_n == ranges_n && !inlined)
		return ERR_OK;
	if ((rc = function_of(r, j->file, j->unit, d, &s.function, err)))
		return rc;
	if (j->unit->is_skeleton && !inlined && !die_value(d, SLOT_LINKAGE_NAME) &&
		(rc = dwarf_full_name(r, j->ranges[ranges_n].start, &s.function, err)))
		return rc;
	if (s.function == NONE) {
		j->ranges_n = ranges_n;
		return ERR_OK; /* without a name; what is inlined here counts for the outer one */
	}
	if (inlined) {
		s.depth = j->scopes[parent].depth + 1;
		if ((rc = dwarf_call_frame(r, &j->scopes[parent], d, &s.caller, err)))
			return rc;
	}
	if (j->scopes_n == SCOPES_MAX)
		return dwarf_damaged(err, "more than %u functions and inlined calls", SCOPES_MAX);
	if (!array_room(&j->scopes, j->scopes_n, 1, &j->scopes_cap))
		return err_nomem(err, "functions");
	*scope = j->scopes_n;
	j->scopes[j->scopes_n++] = s;
	return ERR_OK;
}

/* Reads the entry behind its code. *scope as above; *children: they come next. */
static enum err_code dwarf_entry(struct dwarf_reader *r, struct cursor *c,
	const struct abbrev_table *t, const struct abbrev *a, uint32_t *scope, bool *children,
	struct err *err)
{
	const struct dwarf_unit *u = r->job.unit;
	const unsigned char *base = (const unsigned char *)r->job.file->sections[SEC_INFO].ptr;
	const struct dwarf_value *v;
	struct die d;

	*children = a->children;
	if (a->kind == KIND_PLAIN) {
		die_skip(c, u->enc, t, a);
		return ERR_OK;
	}
	die_read(c, u->enc, t, a, &d);
	if (c->bad)
		return ERR_OK;
	if (a->kind != KIND_SKIP_CHILDREN)
		return scope_add(r, &d, a->kind == KIND_INLINED, scope, err);
	v = die_value(&d, SLOT_SIBLING);
	if (v && v->u < u->end - u->offset && base + u->offset + v->u > c->at) {
		c->at = base + u->offset + v->u;
		*children = false;
	}
	return ERR_OK;
}

enum err_code scopes_read(struct dwarf_reader *r, struct err *err)
{
	struct dwarf_job *j = &r->job;
	const struct dwarf_unit *u = j->unit;
	struct cursor c = dwarf_bytes(j->file, SEC_INFO, u->first);
	const struct abbrev_table *t = r->abbrevs_pinned;
	uint32_t depth = 0;
	enum err_code rc;

	j->scopes_n = j->ranges_n = 0;
	c.end = (const unsigned char *)j->file->sections[SEC_INFO].ptr + u->end;
	if ((rc = steps_take(r, u->end - u->first, err)))
		return rc;
	while (c.at < c.end) {
		uint64_t at = (uint64_t)(c.at - (const unsigned char *)j->file->sections[SEC_INFO].ptr);
		uint64_t code = cursor_varint(&c);
		uint32_t scope = depth ? j->stack[depth - 1] : NONE;
		const struct abbrev *a;
		bool children;

		if (!code) {
			if (depth <= 1)
				break;
			depth--;
			continue;
		}
		if (c.bad || !(a = abbrev_find(t, code)))
			return dwarf_damaged(
				err, "entry at 0x%llx has no abbreviation", (unsigned long long)at);
		if ((rc = dwarf_entry(r, &c, t, a, &scope, &children, err)))
			return rc;
		if (c.bad)
			return dwarf_damaged(err, "entry at 0x%llx is cut or damaged", (unsigned long long)at);
		if (children) {
			if (depth == DEPTH_MAX)
				return dwarf_damaged(err, "entries are nested more than %u deep", DEPTH_MAX);
			j->stack[depth++] = scope;
		} else if (!depth) {
			break;
		}
	}
	return ERR_OK;
}
