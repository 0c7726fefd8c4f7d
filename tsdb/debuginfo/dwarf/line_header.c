/*
 * The header of a line table: folders and files. Tables of the units that were asked for last are
 * kept, since functions are declared in files of other units.
 *
 * A path is the compilation folder, the file's folder and its name, each but for what an absolute
 * one makes needless; "." and ".." stay. addr2line shows them so.
 */
#include "base/array.h"
#include "tsdb/debuginfo/dwarf/format.h"
#include "tsdb/debuginfo/dwarf/internal.h"

#include <stdlib.h>

enum err_code line_file_add(struct line_table *t, struct str name, uint64_t dir, struct err *err)
{
	if (t->files_n == FILES_MAX)
		return dwarf_damaged(err, "more than %u files", FILES_MAX);
	if (!array_room(&t->files, t->files_n, 1, &t->files_cap))
		return err_nomem(err, "files");
	t->files[t->files_n++] = (struct line_file){ name,
		dir > UINT32_MAX ? UINT32_MAX : (uint32_t)dir, NONE };
	return ERR_OK;
}

static enum err_code dwarf_dir_add(struct line_table *t, struct str name, struct err *err)
{
	if (t->dirs_n == FILES_MAX)
		return dwarf_damaged(err, "more than %u folders", FILES_MAX);
	if (!array_room(&t->dirs, t->dirs_n, 1, &t->dirs_cap))
		return err_nomem(err, "files");
	t->dirs[t->dirs_n++] = name;
	return ERR_OK;
}

/* Versions 2 to 4: names until an empty one; the first folder and file have number 1. */
static enum err_code dwarf_read_old(struct cursor *c, struct line_table *t, struct err *err)
{
	struct str name;
	enum err_code rc;

	if ((rc = dwarf_dir_add(t, (struct str){ 0 }, err)) ||
		(rc = line_file_add(t, (struct str){ 0 }, 0, err)))
		return rc;
	while ((name = cursor_cstr(c)).len)
		if ((rc = dwarf_dir_add(t, name, err)))
			return rc;
	while ((name = cursor_cstr(c)).len) {
		uint64_t dir = cursor_varint(c);

		cursor_varint(c);
		cursor_varint(c);
		if ((rc = line_file_add(t, name, dir, err)))
			return rc;
	}
	return ERR_OK;
}

/* Version 5: folders, then files, each behind a description of its fields. */
static enum err_code dwarf_read_new(
	struct dwarf_reader *r, struct cursor *c, struct line_table *t, bool files, struct err *err)
{
	struct attr format[255];
	uint64_t kinds[255], n;
	unsigned formats_n = (unsigned)cursor_le(c, 1);
	enum err_code rc;

	for (unsigned i = 0; i < formats_n; i++) {
		uint64_t form;

		kinds[i] = cursor_varint(c);
		form = cursor_varint(c);
		format[i] = (struct attr){ .form = form > UINT16_MAX ? 0 : (uint16_t)form };
	}
	n = cursor_varint(c);
	if (c->bad || (n && !formats_n))
		return dwarf_damaged(err, "line table's list of files is damaged");
	for (uint64_t i = 0; i < n && !c->bad; i++) {
		struct str name = { 0 };
		struct dwarf_value v;
		uint64_t dir = 0;

		if ((rc = steps_take(r, formats_n, err)))
			return rc;
		for (unsigned k = 0; k < formats_n; k++) {
			form_read(c, t->enc, &format[k], &v);
			if (kinds[k] == LNCT_DIRECTORY_INDEX)
				dir = v.u;
			else if (kinds[k] == LNCT_PATH && !value_string(r, t->file, t->unit, &v, &name))
				name = (struct str){ 0 };
		}
		if ((rc = files ? line_file_add(t, name, dir, err) : dwarf_dir_add(t, name, err)))
			return rc;
	}
	return ERR_OK;
}

static enum err_code dwarf_line_header_parse(
	struct dwarf_reader *r, struct line_table *t, struct err *err)
{
	struct cursor c = dwarf_bytes(t->file, SEC_LINE, t->unit->line_offset), head;
	uint64_t length = cursor_le(&c, 4), header;
	enum err_code rc;

	t->enc.offset_bytes = 4;
	if (length == 0xffffffff) {
		length = cursor_le(&c, 8);
		t->enc.offset_bytes = 8;
	}
	if (c.bad || length > cursor_left(&c))
		return dwarf_damaged(err, "its line table is not in .debug_line");
	c.end = c.at + length;
	t->enc.version = (uint16_t)cursor_le(&c, 2);
	t->enc.address_bytes = t->unit->enc.address_bytes;
	if (t->enc.version < 2 || t->enc.version > 5)
		return dwarf_damaged(err, "its line table has version %u", t->enc.version);
	if (t->enc.version >= 5) {
		t->enc.address_bytes = (uint8_t)cursor_le(&c, 1);
		cursor_le(&c, 1);
		if (t->enc.address_bytes != 4 && t->enc.address_bytes != 8)
			return dwarf_damaged(
				err, "its line table has addresses of %u bytes", t->enc.address_bytes);
	}
	header = cursor_le(&c, t->enc.offset_bytes);
	if (c.bad || header > cursor_left(&c))
		return dwarf_damaged(err, "its line table's header is cut");
	head = c;
	head.end = c.at + header;
	t->program = (struct str){ (const char *)head.end, (size_t)(c.end - head.end) };
	t->min_length = (uint8_t)cursor_le(&head, 1);
	t->max_ops = t->enc.version >= 4 ? (uint8_t)cursor_le(&head, 1) : 1;
	cursor_le(&head, 1);
	t->line_base = (int8_t)cursor_le(&head, 1);
	t->line_range = (uint8_t)cursor_le(&head, 1);
	t->opcode_base = (uint8_t)cursor_le(&head, 1);
	if (head.bad || !t->line_range || !t->opcode_base || cursor_left(&head) < t->opcode_base - 1u)
		return dwarf_damaged(err, "its line table's header is cut or damaged");
	t->opcode_lengths = head.at;
	head.at += t->opcode_base - 1u;
	if (t->enc.version < 5)
		rc = dwarf_read_old(&head, t, err);
	else if (!(rc = dwarf_read_new(r, &head, t, false, err)))
		rc = dwarf_read_new(r, &head, t, true, err);
	if (!rc && head.bad)
		rc = dwarf_damaged(err, "its line table's list of files is cut");
	return rc;
}

static void dwarf_table_release(struct line_table *t)
{
	if (t) {
		free(t->dirs);
		free(t->files);
		free(t);
	}
}

enum err_code line_table(struct dwarf_reader *r, const struct dwarf_file *f,
	const struct dwarf_unit *u, struct line_table **out, struct err *err)
{
	struct line_table **slot, *t;
	enum err_code rc;
	size_t hash;

	*out = NULL;
	if (u->skeleton) { /* the numbers of files are the same there */
		f = &r->main;
		u = u->skeleton;
	}
	hash = u->line_offset / 8 % LINES_CACHE;
	if (!u->has_lines || !f->sections[SEC_LINE].len)
		return ERR_OK;
	for (size_t i = 0; i < 2; i++) {
		t = r->lines[f->kind][(hash + i) % LINES_CACHE];
		if (t && t->unit == u) {
			*out = t;
			return ERR_OK;
		}
	}
	if (!(t = calloc(1, sizeof(*t))))
		return err_nomem(err, "line table");
	t->file = f;
	t->unit = u;
	rc = dwarf_line_header_parse(r, t, err);
	if (steps_take(r, 8 + (uint64_t)t->files_n + t->dirs_n, rc ? NULL : err))
		rc = rc ? rc : ERR_LIMIT;
	if (rc) {
		dwarf_table_release(t);
		return rc;
	}
	slot = &r->lines[f->kind][hash];
	if (*slot && *slot == r->lines_pinned)
		slot = &r->lines[f->kind][(hash + 1) % LINES_CACHE];
	dwarf_table_release(*slot);
	*slot = t;
	*out = t;
	return ERR_OK;
}

void line_tables_release(struct dwarf_reader *r)
{
	for (unsigned i = 0; i < 2 * LINES_CACHE; i++)
		dwarf_table_release(r->lines[i / LINES_CACHE][i % LINES_CACHE]);
}

static bool dwarf_is_absolute(struct str s)
{
	return s.len && s.ptr[0] == '/';
}

static void dwarf_path_of(struct buf *b, const struct line_table *t, const struct line_file *f)
{
	struct str parts[3] = { t->unit->comp_dir, { 0 }, f->name };
	unsigned from = 0;

	if (f->dir < t->dirs_n)
		parts[1] = t->dirs[f->dir];
	if (dwarf_is_absolute(f->name))
		from = 2;
	else if (dwarf_is_absolute(parts[1]))
		from = 1;
	buf_clear(b);
	for (unsigned i = from; i < 3; i++) {
		if (!parts[i].len)
			continue;
		if (b->len && b->ptr[b->len - 1] != '/')
			buf_add_char(b, '/');
		buf_add_str(b, parts[i]);
	}
}

enum err_code line_file_id(
	struct dwarf_reader *r, struct line_table *t, uint64_t index, uint32_t *out, struct err *err)
{
	struct line_file *f;
	enum err_code rc;

	*out = NONE;
	if (index >= t->files_n || !t->files[index].name.len)
		return ERR_OK;
	f = &t->files[index];
	if (f->id == NONE) {
		dwarf_path_of(&r->path, t, f);
		if (buf_failed(&r->path))
			return err_nomem(err, "path");
		if (r->path.len > PATH_BYTES_MAX)
			return dwarf_damaged(err, "a path has more than %u bytes", PATH_BYTES_MAX);
		if ((rc = symindex_file(r->builder, buf_str(&r->path), &f->id, err)))
			return rc;
	}
	*out = f->id;
	return ERR_OK;
}
