#include "tsdb/block/block_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>

/*
 * Symbols of a block: all that its rows and rollups use, by partition and kind, in pages of
 * columns.
 *
 * A page holds up to PAGE_SYMBOLS of one kind in the order of their ids. Each field is a separate
 * column of varints, which compresses better. Ids are given in the order of arrival, so a field is
 * mostly near that of the symbol before, and is stored as the distance to it.
 */
#define PAGE_SYMBOLS 4096u
#define PAGE_BYTES (64u << 10) /* of columns, before compression */

/* ---- the closure ---- */

struct closure {
	const struct partition *p;
	struct bits *bits;
	bool nomem;
	bool missing;
	enum sym_kind missing_kind;
	uint32_t missing_id;
};

static void block_mark(struct closure *c, enum sym_kind kind, uint32_t id)
{
	if (!bits_reserve(&c->bits[kind], id))
		c->nomem = true;
	else
		bits_set(&c->bits[kind], id);
}

static void block_mark_strings(struct closure *c, const uint32_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		block_mark(c, SYM_STRING, ids[i]);
}

static void block_refer_header(struct closure *c, uint32_t id)
{
	const struct sym_header *h = sym_header(c->p, id);

	block_mark_strings(c,
		(const uint32_t[]){ h->period_type, h->period_unit, h->drop_frames, h->keep_frames,
			h->default_sample_type, h->doc_url },
		6);
	block_mark_strings(c, h->comments, h->comments_n);
	for (uint32_t i = 0; i < h->types_n; i++)
		block_mark_strings(c, (const uint32_t[]){ h->types[i].type, h->types[i].unit }, 2);
	for (uint32_t i = 0; i < h->mappings_n; i++)
		block_mark(c, SYM_MAPPING, h->mappings[i]);
}

static void block_refer_label_set(struct closure *c, uint32_t id)
{
	struct sym_label_set set = sym_label_set(c->p, id);

	for (uint32_t i = 0; i < set.n; i++)
		block_mark_strings(
			c, (const uint32_t[]){ set.v[i].key, set.v[i].str, set.v[i].num_unit }, 3);
}

static void block_refer_location(struct closure *c, uint32_t id)
{
	const struct sym_location l = sym_location(c->p, id);

	if (l.mapping != SYM_NONE)
		block_mark(c, SYM_MAPPING, l.mapping);
	for (uint32_t i = 0; i < l.lines_n; i++)
		block_mark(c, SYM_FUNCTION, l.lines[i].function);
}

static void block_refer(struct closure *c, enum sym_kind kind, uint32_t id)
{
	const struct sym_function *f;
	const struct sym_mapping *m;
	struct sym_node n;

	switch (kind) {
	case SYM_HEADER:
		block_refer_header(c, id);
		break;
	case SYM_LABEL_SET:
		block_refer_label_set(c, id);
		break;
	case SYM_NODE:
		n = sym_node(c->p, id);
		block_mark(c, SYM_NODE, n.parent);
		block_mark(c, SYM_LOCATION, n.location);
		break;
	case SYM_LOCATION:
		block_refer_location(c, id);
		break;
	case SYM_FUNCTION:
		f = sym_function(c->p, id);
		block_mark_strings(c, (const uint32_t[]){ f->name, f->system_name, f->filename }, 3);
		break;
	case SYM_MAPPING:
		m = sym_mapping(c->p, id);
		block_mark_strings(c, (const uint32_t[]){ m->filename, m->build_id }, 2);
		break;
	case SYM_STRING:
	case SYM_KINDS:
		break;
	}
}

/* Parents have smaller ids than their children, so one pass from the last to the first does. */
static uint32_t block_close_kind(struct closure *c, enum sym_kind kind)
{
	bool implied = kind == SYM_STRING || kind == SYM_NODE || kind == SYM_LABEL_SET; /* id 0 */
	struct bits *b = &c->bits[kind];
	uint32_t n = 0;

	if (implied)
		bits_clear(b, 0);
	for (size_t w = b->words; w-- > 0;) {
		uint64_t below = UINT64_MAX, left;

		/* The word changes as we go: nodes mark their parents in it, further down. */
		while ((left = b->w[w] & below)) {
			uint32_t bit = 63 - (uint32_t)__builtin_clzll(left);
			uint32_t id = (uint32_t)(w * 64) + bit;

			below = (UINT64_C(1) << bit) - 1;
			if (id == 0 && implied)
				break;
			if (sym_exists(c->p, kind, id)) {
				block_refer(c, kind, id);
				n++;
			} else {
				c->missing = true;
				c->missing_kind = kind;
				c->missing_id = id;
				bits_clear(b, id);
			}
		}
	}
	if (implied)
		bits_clear(b, 0);
	return n;
}

enum err_code block_symbols_close(const struct partition *p, struct bits bits[SYM_KINDS],
	bool tainted, uint32_t counts[SYM_KINDS], struct err *err)
{
	/* Each before what it refers to. */
	static const enum sym_kind order[] = { SYM_HEADER, SYM_LABEL_SET, SYM_NODE, SYM_LOCATION,
		SYM_FUNCTION, SYM_MAPPING, SYM_STRING };
	static const char *const names[SYM_KINDS] = { "", "string", "mapping", "function", "location",
		"stack node", "label set", "header" };
	struct closure c = { .p = p, .bits = bits };

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]) && !c.nomem; i++)
		counts[order[i]] = block_close_kind(&c, order[i]);
	if (c.nomem)
		return err_nomem(err, "symbols");
	if (c.missing && !tainted)
		return err_set(err, ERR_CORRUPT,
			"symbols of job \"" STR_FMT "\": %s %" PRIu32 " is used and missing", STR_ARG(p->name),
			names[c.missing_kind], c.missing_id);
	return ERR_OK;
}

/* ---- pages ---- */

struct packer {
	const struct partition *p;
	struct spill *to;
	struct buf columns[SYM_COLUMNS_MAX], raw, value;
	ZSTD_CCtx *zstd;
	uint32_t n, first, id; /* in the page; its first; the one before */
	/* what the symbol before had */
	uint64_t address, start;
	uint32_t name, filename, function, string;
	uint32_t locations; /* above all locations of its nodes */
	uint32_t recursive; /* place of the recursive node before */
};

static void block_add_delta(struct buf *out, uint32_t value, uint32_t *before)
{
	buf_add_varint(out, str_zigzag((int64_t)value - (int64_t)*before));
	*before = value;
}

static void block_pack_mapping(struct packer *p, const struct sym_mapping *m)
{
	struct buf *c = p->columns;

	buf_add_varint(&c[1], m->size);
	buf_add_varint(&c[2], m->offset);
	buf_add_varint(&c[3], m->filename);
	buf_add_varint(&c[4], m->build_id);
	buf_add_varint(&c[5], m->ordinal);
	buf_add_varint(&c[6],
		(uint64_t)m->has_functions | (uint64_t)m->has_filenames << 1 |
			(uint64_t)m->has_line_numbers << 2 | (uint64_t)m->has_inline_frames << 3);
}

static void block_pack_function(struct packer *p, const struct sym_function *f)
{
	struct buf *c = p->columns;
	uint32_t name = f->name;

	block_add_delta(&c[1], f->name, &p->name);
	block_add_delta(&c[2], f->system_name, &name); /* mostly the same */
	block_add_delta(&c[3], f->filename, &p->filename);
	buf_add_varint(&c[4], str_zigzag(f->start_line));
}

static void block_pack_location(struct packer *p, const struct sym_location *l)
{
	struct buf *c = p->columns;

	buf_add_varint(&c[1], str_zigzag((int64_t)(l->address - p->address)));
	p->address = l->address;
	buf_add_varint(&c[2], l->mapping == SYM_NONE ? 0 : (uint64_t)l->mapping + 1);
	buf_add_varint(&c[3], (uint64_t)l->lines_n << 1 | l->is_folded);
	for (uint32_t i = 0; i < l->lines_n; i++) {
		const struct sym_line *line = &l->lines[i];

		block_add_delta(&c[4], line->function, &p->function);
		buf_add_varint(&c[5],
			str_zigzag((int64_t)((uint64_t)line->line -
				(uint64_t)sym_function(p->p, line->function)->start_line)));
		buf_add_varint(&c[6], str_zigzag(line->column));
	}
}

static void block_pack_label_set(struct packer *p, struct sym_label_set set)
{
	struct buf *c = p->columns;

	buf_add_varint(&c[1], set.n);
	for (uint32_t i = 0; i < set.n; i++) {
		buf_add_varint(&c[2], set.v[i].key);
		block_add_delta(&c[3], set.v[i].str, &p->string);
		buf_add_varint(&c[4], set.v[i].num_unit);
		buf_add_varint(&c[5], str_zigzag(set.v[i].num));
	}
}

static void block_pack_header(struct packer *p, const struct sym_header *h)
{
	struct buf *c = p->columns;
	uint32_t mapping = 0;

	buf_add_varint(&c[1], h->types_n);
	buf_add_varint(&c[1], h->comments_n);
	buf_add_varint(&c[1], h->mappings_n);
	for (uint32_t i = 0; i < h->types_n; i++) {
		buf_add_varint(&c[2], h->types[i].type);
		buf_add_varint(&c[2], h->types[i].unit);
		buf_add_varint(&c[2], (uint64_t)h->types[i].kind << 1 | h->types[i].was_cumulative);
	}
	buf_add_varint(&c[3], h->period_type);
	buf_add_varint(&c[3], h->period_unit);
	buf_add_varint(&c[3], h->drop_frames);
	buf_add_varint(&c[3], h->keep_frames);
	buf_add_varint(&c[3], h->default_sample_type);
	buf_add_varint(&c[3], h->doc_url);
	for (uint32_t i = 0; i < h->comments_n; i++)
		buf_add_varint(&c[4], h->comments[i]);
	for (uint32_t i = 0; i < h->mappings_n; i++) {
		block_add_delta(&c[5], h->mappings[i], &mapping);
		buf_add_varint(&c[6], str_zigzag((int64_t)(h->mapping_start[i] - p->start)));
		p->start = h->mapping_start[i];
	}
}

/*
 * A stack that is new mostly brings a new location, whose id is the next: so locations are counted
 * down from the highest one so far, which costs a quarter less than from the one before.
 */
static void block_pack_node(struct packer *p, uint32_t id, struct sym_node node)
{
	struct buf *c = p->columns;

	buf_add_varint(&c[1], id - node.parent - 1);
	buf_add_varint(&c[2], str_zigzag((int64_t)p->locations - (int64_t)node.location));
	if (node.location >= p->locations)
		p->locations = node.location + 1;
	if (sym_node_recursive(p->p, id)) {
		buf_add_varint(&c[3], p->n - p->recursive);
		p->recursive = p->n;
	}
}

static void block_pack_symbol(struct packer *p, enum sym_kind kind, uint32_t id)
{
	struct buf *c = p->columns;
	struct sym_location location;
	struct str s;

	if (p->n++ == 0)
		p->first = id;
	else
		buf_add_varint(&c[0], id - p->id - 1);
	p->id = id;
	switch (kind) {
	case SYM_STRING:
		s = sym_string(p->p, id);
		buf_add_varint(&c[1], s.len);
		buf_add_str(&c[2], s);
		break;
	case SYM_MAPPING:
		block_pack_mapping(p, sym_mapping(p->p, id));
		break;
	case SYM_FUNCTION:
		block_pack_function(p, sym_function(p->p, id));
		break;
	case SYM_LOCATION:
		location = sym_location(p->p, id);
		block_pack_location(p, &location);
		break;
	case SYM_NODE:
		block_pack_node(p, id, sym_node(p->p, id));
		break;
	case SYM_LABEL_SET:
		block_pack_label_set(p, sym_label_set(p->p, id));
		break;
	case SYM_HEADER:
		block_pack_header(p, sym_header(p->p, id));
		break;
	case SYM_KINDS:
		break;
	}
}

static size_t block_columns_bytes(const struct packer *p)
{
	size_t bytes = 0;

	for (size_t i = 0; i < SYM_COLUMNS_MAX; i++)
		bytes += p->columns[i].len;
	return bytes;
}

/* zstd-1 where it saves a tenth: else it would cost a reader time for nothing. */
static enum err_code block_compress(struct packer *p, struct err *err)
{
	size_t bound = ZSTD_compressBound(p->raw.len), n, head;

	buf_clear(&p->value);
	buf_add_char(&p->value, 1);
	buf_add_varint(&p->value, p->raw.len);
	head = p->value.len;
	if (!buf_reserve(&p->value, bound) || buf_failed(&p->raw))
		return err_nomem(err, "symbols");
	n = ZSTD_compressCCtx(p->zstd, p->value.ptr + head, bound, p->raw.ptr, p->raw.len, 1);
	if (ZSTD_isError(n))
		return err_set(err, ERR_NOMEM, "symbols: zstd: %s", ZSTD_getErrorName(n));
	p->value.len = head + n;
	if (p->value.len > p->raw.len - p->raw.len / 10) {
		buf_clear(&p->value);
		buf_add_char(&p->value, 0);
		buf_add_str(&p->value, buf_str(&p->raw));
	}
	return buf_failed(&p->value) ? err_nomem(err, "symbols") : ERR_OK;
}

/* A page that waits in the spill; its bytes follow. */
struct block_packed {
	uint32_t kind, first;
	uint64_t len;
};

static enum err_code block_flush_page(struct packer *p, enum sym_kind kind, struct err *err)
{
	struct block_packed head = { kind, p->first, 0 };
	enum err_code rc;

	if (!p->n)
		return ERR_OK;
	if (block_columns_bytes(p) > BLOCK_PAGE_RAW_MAX / 2)
		return err_set(err, ERR_LIMIT, "a symbol of job \"" STR_FMT "\" is %zu bytes, limit %u",
			STR_ARG(p->p->name), block_columns_bytes(p), BLOCK_PAGE_RAW_MAX / 2);
	buf_clear(&p->raw);
	buf_add_varint(&p->raw, p->n);
	for (size_t i = 0; i < block_symbol_columns[kind]; i++)
		buf_add_varint(&p->raw, p->columns[i].len);
	for (size_t i = 0; i < block_symbol_columns[kind]; i++) {
		if (buf_failed(&p->columns[i]))
			p->raw.failed = true;
		buf_add_str(&p->raw, buf_str(&p->columns[i]));
		buf_clear(&p->columns[i]);
	}
	if (buf_failed(&p->raw))
		return err_nomem(err, "symbols");
	if ((rc = block_compress(p, err)))
		return rc;
	p->n = 0;
	p->address = p->start = 0;
	p->name = p->filename = p->function = p->string = p->locations = p->recursive = 0;
	head.len = p->value.len;
	if ((rc = spill_add(p->to, (struct str){ (const char *)&head, sizeof(head) }, err)))
		return rc;
	return spill_add(p->to, buf_str(&p->value), err);
}

static enum err_code block_write_kind(
	struct packer *p, enum sym_kind kind, const struct bits *bits, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t w = 0; w < bits->words && !rc; w++)
		for (uint64_t left = bits->w[w]; left && !rc; left &= left - 1) {
			block_pack_symbol(p, kind, (uint32_t)(w * 64 + (size_t)__builtin_ctzll(left)));
			if (p->n == PAGE_SYMBOLS || block_columns_bytes(p) >= PAGE_BYTES)
				rc = block_flush_page(p, kind, err);
		}
	return rc ? rc : block_flush_page(p, kind, err);
}

enum err_code block_symbols_pack(
	const struct partition *p, const struct bits bits[SYM_KINDS], struct spill *to, struct err *err)
{
	struct packer k = { .p = p, .to = to, .zstd = ZSTD_createCCtx() };
	enum err_code rc = ERR_OK;

	if (!k.zstd)
		rc = err_nomem(err, "symbols");
	for (int kind = 1; kind < SYM_KINDS && !rc; kind++)
		rc = block_write_kind(&k, kind, &bits[kind], err);
	ZSTD_freeCCtx(k.zstd);
	for (size_t i = 0; i < SYM_COLUMNS_MAX; i++)
		buf_release(&k.columns[i]);
	buf_release(&k.raw);
	buf_release(&k.value);
	return rc;
}

enum err_code block_symbols_put(struct table_writer *t, uint32_t slot, struct spill *s,
	uint64_t from, uint64_t to, struct err *err)
{
	struct buf bytes = { 0 };
	enum err_code rc = ERR_OK;
	struct block_key key;
	struct block_packed head;

	for (uint64_t at = from; at < to && !rc; at += sizeof(head) + head.len) {
		if ((rc = spill_read(s, at, sizeof(head), &bytes, err)))
			break;
		memcpy(&head, bytes.ptr, sizeof(head));
		key = block_key_symbols(slot, (enum sym_kind)head.kind, head.first);
		if (!(rc = spill_read(s, at + sizeof(head), head.len, &bytes, err)))
			rc = table_writer_put(t, block_key_str(&key), buf_str(&bytes), err);
	}
	buf_release(&bytes);
	return rc;
}
