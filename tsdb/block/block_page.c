#include "tsdb/block/block_internal.h"

#include <zstd.h>

/* Reads a page of symbols; block_symbols.c describes how it is written. */

/* clang-format off */
const uint8_t block_symbol_columns[SYM_KINDS] = {
	[SYM_STRING] = 3,    /* id, length, bytes */
	[SYM_MAPPING] = 7,   /* id, size, offset, filename, build id, ordinal, flags */
	[SYM_FUNCTION] = 5,  /* id, name, system name, filename, start line */
	[SYM_LOCATION] = 7,  /* id, address, mapping, lines, function, line, column */
	[SYM_NODE] = 4,      /* id, way to the parent, location, which are recursive */
	[SYM_LABEL_SET] = 6, /* id, labels, key, string, unit, number */
	[SYM_HEADER] = 7,    /* id, counts, types, strings, comments, mappings, starts */
};
/* clang-format on */

static enum err_code block_bad_page(struct err *err)
{
	return err_set(err, ERR_CORRUPT, "a page of symbols cannot be read");
}

enum err_code symbol_page_unpack(
	struct symbol_page *page, enum sym_kind kind, struct str bytes, struct err *err)
{
	struct cursor in = cursor_of(bytes);
	size_t lengths[SYM_COLUMNS_MAX], got, at = 0;
	struct str raw;
	uint64_t size;
	int codec;

	codec = cursor_left(&in) ? *in.at++ : -1;
	if (codec == 1) {
		size = cursor_varint(&in);
		if (in.bad || size > BLOCK_PAGE_RAW_MAX)
			return block_bad_page(err);
		buf_clear(&page->raw);
		if (!buf_reserve(&page->raw, size + 1))
			return err_nomem(err, "symbols");
		if (!page->zstd && !(page->zstd = ZSTD_createDCtx()))
			return err_nomem(err, "symbols");
		got = ZSTD_decompressDCtx(page->zstd, page->raw.ptr, size, in.at, cursor_left(&in));
		if (ZSTD_isError(got) || got != size)
			return block_bad_page(err);
		page->raw.len = size;
		raw = buf_str(&page->raw);
	} else if (codec == 0) {
		raw = cursor_bytes(&in, cursor_left(&in));
	} else {
		return block_bad_page(err);
	}
	in = cursor_of(raw);
	page->n = cursor_u32(&in);
	for (size_t i = 0; i < block_symbol_columns[kind]; i++)
		lengths[i] = cursor_varint(&in);
	for (; at < block_symbol_columns[kind]; at++)
		page->columns[at] = cursor_of(cursor_bytes(&in, lengths[at]));
	/* Each id but the first takes at least a byte. */
	if (in.bad || cursor_left(&in) || page->n == 0 || page->n - 1 > cursor_left(&page->columns[0]))
		return block_bad_page(err);
	return ERR_OK;
}

void symbol_page_release(struct symbol_page *page)
{
	buf_release(&page->raw);
	ZSTD_freeDCtx(page->zstd);
	page->zstd = NULL;
}

struct unpacker {
	struct cursor *c;
	struct partition *p;
	struct arena *arena;
	uint32_t first;
	bool bad;
	uint64_t address, start;
	uint32_t name, filename, function, string;
	uint32_t locations; /* above all locations of its nodes */
	uint32_t at, recursive; /* number of nodes read; where the next recursive one is (0: none) */
};

static uint32_t block_delta(struct unpacker *u, struct cursor *c, uint32_t *before)
{
	int64_t v = (int64_t)*before + str_unzigzag(cursor_varint(c));

	if (v < 0 || v > UINT32_MAX) {
		u->bad = true;
		v = 0;
	}
	return *before = (uint32_t)v;
}

/* A size that does not fit its column is not allocated. */
static void *block_array(
	struct unpacker *u, const struct cursor *in, uint64_t n, size_t bytes_min, size_t size)
{
	void *v = NULL;

	if (n > cursor_left(in) / bytes_min || !(v = arena_alloc_raw(u->arena, n + 1, size)))
		u->bad = true;
	return v;
}

static void block_unpack_mapping(struct unpacker *u, struct sym_mapping *m)
{
	struct cursor *c = u->c;
	uint64_t flags;

	m->size = cursor_varint(&c[1]);
	m->offset = cursor_varint(&c[2]);
	m->filename = cursor_u32(&c[3]);
	m->build_id = cursor_u32(&c[4]);
	m->ordinal = cursor_u32(&c[5]);
	flags = cursor_varint(&c[6]);
	m->has_functions = flags & 1;
	m->has_filenames = flags & 2;
	m->has_line_numbers = flags & 4;
	m->has_inline_frames = flags & 8;
}

static void block_unpack_function(struct unpacker *u, struct sym_function *f)
{
	struct cursor *c = u->c;
	uint32_t name;

	f->name = name = block_delta(u, &c[1], &u->name);
	f->system_name = block_delta(u, &c[2], &name);
	f->filename = block_delta(u, &c[3], &u->filename);
	f->start_line = str_unzigzag(cursor_varint(&c[4]));
}

static void block_unpack_location(struct unpacker *u, struct sym_location *l)
{
	struct cursor *c = u->c;
	struct sym_line *lines;
	uint64_t mapping, n, start;
	int64_t column;

	u->address += (uint64_t)str_unzigzag(cursor_varint(&c[1]));
	l->address = u->address;
	mapping = cursor_varint(&c[2]);
	if (mapping > UINT32_MAX)
		u->bad = true;
	l->mapping = mapping ? (uint32_t)(mapping - 1) : SYM_NONE;
	n = cursor_varint(&c[3]);
	l->is_folded = n & 1;
	if (!(lines = block_array(u, &c[4], n >> 1, 1, sizeof(*lines))))
		return;
	l->lines_n = (uint32_t)(n >> 1);
	l->lines = lines;
	for (uint32_t i = 0; i < l->lines_n; i++) {
		lines[i].function = block_delta(u, &c[4], &u->function);
		start = (uint64_t)sym_function(u->p, lines[i].function)->start_line;
		lines[i].line = (int64_t)(start + (uint64_t)str_unzigzag(cursor_varint(&c[5])));
		column = str_unzigzag(cursor_varint(&c[6]));
		if (column != (int32_t)column)
			u->bad = true;
		lines[i].column = (int32_t)column;
	}
}

static void block_unpack_label_set(struct unpacker *u, struct sym_label_set *set)
{
	struct cursor *c = u->c;
	uint64_t n = cursor_varint(&c[1]);
	struct sym_label *v = block_array(u, &c[2], n, 1, sizeof(*v));

	if (!v)
		return;
	for (uint64_t i = 0; i < n; i++) {
		v[i].key = cursor_u32(&c[2]);
		v[i].str = block_delta(u, &c[3], &u->string);
		v[i].num_unit = cursor_u32(&c[4]);
		v[i].num = str_unzigzag(cursor_varint(&c[5]));
	}
	*set = (struct sym_label_set){ v, (uint32_t)n };
}

static void block_unpack_types(struct unpacker *u, struct sym_header *h, uint64_t n)
{
	struct cursor *c = u->c;
	struct sym_type *types = block_array(u, &c[2], n, 3, sizeof(*types));
	uint64_t kind;

	if (!types || n > SYM_TYPES_MAX) {
		u->bad = true;
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		types[i].type = cursor_u32(&c[2]);
		types[i].unit = cursor_u32(&c[2]);
		kind = cursor_varint(&c[2]);
		types[i].kind = (uint8_t)(kind >> 1);
		types[i].was_cumulative = kind & 1;
		if (kind >> 1 != KIND_GAUGE && kind >> 1 != KIND_DELTA)
			u->bad = true;
	}
	h->types = types;
	h->types_n = (uint32_t)n;
}

static void block_unpack_header(struct unpacker *u, struct sym_header *h)
{
	struct cursor *c = u->c;
	uint64_t types_n = cursor_varint(&c[1]), comments_n = cursor_varint(&c[1]);
	uint64_t mappings_n = cursor_varint(&c[1]);
	uint32_t *comments = block_array(u, &c[4], comments_n, 1, sizeof(*comments)), mapping = 0;
	uint32_t *mappings = block_array(u, &c[5], mappings_n, 1, sizeof(*mappings));
	uint64_t *starts = block_array(u, &c[6], mappings_n, 1, sizeof(*starts));

	block_unpack_types(u, h, types_n);
	h->period_type = cursor_u32(&c[3]);
	h->period_unit = cursor_u32(&c[3]);
	h->drop_frames = cursor_u32(&c[3]);
	h->keep_frames = cursor_u32(&c[3]);
	h->default_sample_type = cursor_u32(&c[3]);
	h->doc_url = cursor_u32(&c[3]);
	if (u->bad)
		return;
	for (uint64_t i = 0; i < comments_n; i++)
		comments[i] = cursor_u32(&c[4]);
	for (uint64_t i = 0; i < mappings_n; i++) {
		mappings[i] = block_delta(u, &c[5], &mapping);
		u->start += (uint64_t)str_unzigzag(cursor_varint(&c[6]));
		starts[i] = u->start;
	}
	h->comments = comments;
	h->comments_n = (uint32_t)comments_n;
	h->mappings = mappings;
	h->mapping_start = starts;
	h->mappings_n = (uint32_t)mappings_n;
}

/* Two bytes are as likely as one. */
static inline uint64_t block_take_short(struct cursor *c)
{
	uint64_t v;

	if (cursor_left(c) < 2 || c->at[0] < 0x80 || c->at[1] >= 0x80)
		return cursor_varint(c);
	v = (c->at[0] & 0x7fu) | (uint64_t)c->at[1] << 7;
	c->at += 2;
	return v;
}

static inline void block_unpack_node(struct unpacker *u, uint32_t id, struct sym_node *n)
{
	uint64_t up = cursor_varint(&u->c[1]);
	int64_t location = (int64_t)u->locations - str_unzigzag(block_take_short(&u->c[2]));

	if (up >= id || location < 0 || location >= UINT32_MAX / 2) {
		u->bad = true;
		return;
	}
	n->parent = (uint32_t)(id - 1 - up);
	n->location = (uint32_t)location;
	if (n->location >= u->locations)
		u->locations = n->location + 1;
}

/* True if the node just read is the next recursive one. */
static bool block_is_recursive(struct unpacker *u)
{
	if (++u->at != u->recursive)
		return false;
	u->recursive = cursor_left(&u->c[3]) ? u->at + cursor_u32(&u->c[3]) : 0;
	return true;
}

static void block_unpack_symbol(
	struct unpacker *u, enum sym_kind kind, uint32_t id, union sym_content *c)
{
	switch (kind) {
	case SYM_STRING:
		c->string = cursor_bytes(&u->c[2], cursor_varint(&u->c[1]));
		break;
	case SYM_MAPPING:
		block_unpack_mapping(u, &c->mapping);
		break;
	case SYM_FUNCTION:
		block_unpack_function(u, &c->function);
		break;
	case SYM_LOCATION:
		block_unpack_location(u, &c->location);
		break;
	case SYM_LABEL_SET:
		block_unpack_label_set(u, &c->label_set);
		break;
	case SYM_HEADER:
		block_unpack_header(u, &c->header);
		break;
	case SYM_NODE: /* block_load_nodes */
	case SYM_KINDS:
		break;
	}
}

#define NODES_AT_ONCE 256u

static enum err_code block_load_nodes(struct symbol_page *page, struct partition *p, uint64_t id,
	uint32_t end, uint64_t *loaded, struct err *err)
{
	struct unpacker u = { .c = page->columns, .p = p };
	struct sym_stored_node v[NODES_AT_ONCE];
	const struct cursor *c = page->columns;
	enum err_code rc, lost = ERR_OK;
	struct sym_node node = { 0 };
	uint32_t n = 0;

	if (cursor_left(&c[3]))
		u.recursive = cursor_u32(&page->columns[3]);
	for (uint32_t i = 0; i < page->n && !u.bad; i++) {
		if (i)
			id += cursor_varint(&page->columns[0]) + 1;
		if (id < end) /* else it would make room for all ids below it */
			block_unpack_node(&u, (uint32_t)id, &node);
		u.bad |= id >= end || c[0].bad || c[1].bad || c[2].bad || c[3].bad;
		if (!u.bad)
			v[n++] = (struct sym_stored_node){ (uint32_t)id, node.parent, node.location,
				block_is_recursive(&u) };
		if (n < NODES_AT_ONCE && i + 1 < page->n && !u.bad)
			continue;
		rc = sym_load_nodes(p, v, n, loaded, err);
		if (rc && rc != ERR_CORRUPT)
			return rc;
		lost = rc ? rc : lost;
		n = 0;
	}
	return u.bad ? block_bad_page(err) : lost;
}

enum err_code symbol_page_load(struct symbol_page *page, struct partition *p, enum sym_kind kind,
	uint32_t first, uint32_t end, struct arena *scratch, uint64_t *loaded, struct err *err)
{
	struct unpacker u = { .c = page->columns, .p = p, .arena = scratch };
	enum err_code rc, lost = ERR_OK;
	uint64_t id = first;

	if (kind == SYM_NODE)
		return block_load_nodes(page, p, first, end, loaded, err);
	for (uint32_t i = 0; i < page->n; i++) {
		union sym_content c = { 0 };

		if (i)
			id += cursor_varint(&page->columns[0]) + 1;
		if (id >= end) /* would make room for all ids below it */
			return block_bad_page(err);
		if (kind == SYM_LOCATION || kind == SYM_LABEL_SET || kind == SYM_HEADER)
			arena_reset(scratch);
		block_unpack_symbol(&u, kind, (uint32_t)id, &c);
		for (size_t k = 0; k < block_symbol_columns[kind]; k++)
			u.bad |= page->columns[k].bad;
		if (u.bad)
			return block_bad_page(err);
		rc = sym_load(p, kind, (uint32_t)id, &c, false, err);
		if (rc == ERR_CORRUPT) /* it refers to a lost symbol, so it is lost too, and nothing else */
			lost = rc;
		else if (rc)
			return rc;
		else
			(*loaded)++;
	}
	return lost;
}
