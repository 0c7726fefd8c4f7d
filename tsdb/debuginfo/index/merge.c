/*
 * What one index says goes into the builder of another. Scopes are met in the order of their
 * numbers, so a parent is there before its children: one array has for each scope the frame that it
 * is inlined into, and no chain is walked twice.
 */
#include <stdlib.h>

#include "tsdb/debuginfo/index/builder.h"
#include "tsdb/debuginfo/index/reader.h"

struct merge {
	struct symindex_builder *b;
	const struct symindex *from;
	/* Numbers of the builder by those of the index. */
	uint32_t *files, *functions;
	struct merge_scope {
		uint32_t parent; /* frame, or SYMINDEX_NONE */
		uint32_t function, file;
		bool bare; /* all that a table of symbols says: a name */
	} * scopes;
};

/* What pages and checksums did not tell is wrong contents. */
static enum err_code merge_damaged(const struct merge *m, struct err *err)
{
	if (!symindex_damaged(m->from, err))
		symindex_fault(m->from);
	return symindex_damaged(m->from, err);
}

/* Numbers of a section; each takes a bit at least, or there is one. */
static bool merge_room(const struct merge *m, enum section_id id, size_t item_bytes, void *out)
{
	const struct section *s = &m->from->h.section[id];
	void *v = s->count <= s->bytes * 8 + 1 ? calloc(s->count + 1, item_bytes) : NULL;

	memcpy(out, &v, sizeof(v));
	return v;
}

/* file_plus_1: as in the index. */
static bool merge_file(const struct merge *m, uint64_t file_plus_1, uint32_t *out)
{
	*out = SYMINDEX_NONE;
	if (!file_plus_1)
		return true;
	if (file_plus_1 > m->from->h.section[SECTION_FILES].count)
		return symindex_fault(m->from);
	*out = m->files[file_plus_1 - 1];
	return true;
}

static enum err_code merge_add_files(struct merge *m, struct err *err)
{
	struct symindex_record r;
	enum err_code rc;
	struct str path;

	for (uint64_t i = 0; i < m->from->h.section[SECTION_FILES].count; i++) {
		if (!symindex_get_record(m->from, SECTION_FILES, i, &r) ||
			!symindex_get_string(m->from, r.v[0], &path))
			return merge_damaged(m, err);
		if ((rc = symindex_file(m->b, path, &m->files[i], err)))
			return rc;
	}
	return ERR_OK;
}

static enum err_code merge_add_functions(struct merge *m, struct err *err)
{
	struct symindex_record r;
	enum err_code rc;
	struct str raw;
	uint32_t file;

	for (uint64_t i = 0; i < m->from->h.section[SECTION_FUNCTIONS].count; i++) {
		if (!symindex_get_record(m->from, SECTION_FUNCTIONS, i, &r) ||
			!symindex_get_string(m->from, r.v[1] ? r.v[1] : r.v[0], &raw) ||
			!merge_file(m, r.v[2], &file))
			return merge_damaged(m, err);
		if ((rc = symindex_function(m->b, raw, file, (uint32_t)r.v[3], &m->functions[i], err)))
			return rc;
	}
	return ERR_OK;
}

static enum err_code merge_add_scope(
	struct merge *m, uint64_t i, const struct symindex_record *r, struct err *err)
{
	struct merge_scope *to = &m->scopes[i];
	const struct merge_scope *parent = r->v[0] ? &m->scopes[i - r->v[0]] : NULL;
	const struct function_item *function;

	if (r->v[2] >= m->from->h.section[SECTION_FUNCTIONS].count ||
		!merge_file(m, r->v[3], &to->file))
		return merge_damaged(m, err);
	to->function = m->functions[r->v[2]];
	function = builder_function(m->b, to->function);
	to->bare = !parent && to->file == SYMINDEX_NONE && function->file == SYMINDEX_NONE &&
		!function->line;
	to->parent = SYMINDEX_NONE;
	return parent ? symindex_frame(m->b, parent->parent, parent->function, parent->file,
						(uint32_t)r->v[1], &to->parent, err) :
					ERR_OK;
}

static enum err_code merge_add_scopes(struct merge *m, struct err *err)
{
	struct symindex_record r;
	enum err_code rc;

	for (uint64_t i = 0; i < m->from->h.section[SECTION_SCOPES].count; i++) {
		if (!symindex_get_record(m->from, SECTION_SCOPES, i, &r) || r.v[0] > i)
			return merge_damaged(m, err);
		if ((rc = merge_add_scope(m, i, &r, err)))
			return rc;
	}
	return ERR_OK;
}

/* The index says the best quality of its segments. A name without file and line is a symbol's. */
static enum err_code merge_add_segment(
	struct merge *m, uint64_t start, uint64_t end, const struct symindex_place *at, struct err *err)
{
	const struct merge_scope *s;
	enum symindex_quality q = m->from->h.best;
	enum err_code rc;
	uint32_t frame;

	if (at->gap || start >= end)
		return ERR_OK;
	if (at->scope >= m->from->h.section[SECTION_SCOPES].count || at->line > UINT32_MAX ||
		q < SYMINDEX_SYMBOLS || q > SYMINDEX_DWARF)
		return merge_damaged(m, err);
	s = &m->scopes[at->scope];
	if (s->bare && !at->line)
		q = SYMINDEX_SYMBOLS;
	if ((rc = symindex_frame(
			 m->b, s->parent, s->function, s->file, (uint32_t)at->line, &frame, err)))
		return rc;
	return builder_add_segment(m->b, start, end, frame, q, false, err);
}

static enum err_code merge_add_segments(struct merge *m, struct err *err)
{
	uint64_t blocks = m->from->h.section[SECTION_BLOCKS].count, start = 0, next, head;
	struct symindex_place at = { .gap = true }, now, back;
	struct symindex_block block;
	enum err_code rc;

	for (uint64_t i = 0; i < blocks; i++) {
		struct cursor c;

		if (!symindex_get_block(m->from, i, &block))
			return merge_damaged(m, err);
		now = back = (struct symindex_place){ 0 };
		next = m->from->h.base + block.offset;
		for (c = cursor_of(block.entries); cursor_left(&c);) {
			head = cursor_varint(&c);
			if (__builtin_add_overflow(next, head >> 2, &next) || c.bad || next < start)
				return merge_damaged(m, err);
			if ((rc = merge_add_segment(m, start, next, &at, err)))
				return rc;
			start = next;
			symindex_take_entry(&c, head, &now, &back);
			if (c.bad)
				return merge_damaged(m, err);
			at = now;
		}
	}
	return ERR_OK;
}

static struct symindex_load *merge_find_load(const struct merge *m, uint64_t address)
{
	for (uint32_t i = 0; i < m->b->loads_n; i++)
		if (m->b->loads[i].address == address)
			return &m->b->loads[i];
	return NULL;
}

static enum err_code merge_add_loads(struct merge *m, struct err *err)
{
	struct symindex_load l, *same;

	for (uint32_t i = 0; i < symindex_loads(m->from); i++) {
		if (!symindex_load_at(m->from, i, &l))
			return merge_damaged(m, err);
		if (!(same = merge_find_load(m, l.address))) {
			if (m->b->loads_n < SYMINDEX_LOADS_MAX)
				m->b->loads[m->b->loads_n++] = l;
		} else if (same->lost && (!l.lost || !same->bytes)) {
			*same = l;
		}
	}
	return ERR_OK;
}

enum err_code symindex_add_index(
	struct symindex_builder *b, const struct symindex *from, struct err *err)
{
	struct merge m = { .b = b, .from = from };
	enum err_code rc = ERR_OK;

	if (!merge_room(&m, SECTION_FILES, sizeof(*m.files), &m.files) ||
		!merge_room(&m, SECTION_FUNCTIONS, sizeof(*m.functions), &m.functions) ||
		!merge_room(&m, SECTION_SCOPES, sizeof(*m.scopes), &m.scopes))
		rc = err_nomem(err, "symbol index: parts of another");
	if (!rc && !(rc = merge_add_files(&m, err)) && !(rc = merge_add_functions(&m, err)) &&
		!(rc = merge_add_scopes(&m, err)) && !(rc = merge_add_segments(&m, err)))
		rc = merge_add_loads(&m, err);
	free(m.files);
	free(m.functions);
	free(m.scopes);
	return rc;
}
