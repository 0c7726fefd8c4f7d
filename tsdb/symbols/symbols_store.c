#include <stdlib.h>

#include "tsdb/symbols/stored.h"

/*
 * A symbol record: for each kind that has new symbols, in the kinds' order: the kind (one byte),
 * their number, and per symbol the gap of its id to the one before, then its content. All numbers
 * are varints, signed ones in zigzag; a node's parent is the distance down to it.
 */

static int symbols_store_id_cmp(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Nodes come sorted, mostly. */
static void symbols_store_sort_ids(uint32_t *ids, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (ids[i] < ids[i - 1]) {
			qsort(ids, n, sizeof(*ids), symbols_store_id_cmp);
			return;
		}
}

static void symbols_store_add_mapping(struct buf *out, const struct sym_mapping *m)
{
	buf_add_varint(out, m->size);
	buf_add_varint(out, m->offset);
	buf_add_varint(out, m->filename);
	buf_add_varint(out, m->build_id);
	buf_add_varint(out, m->ordinal);
	buf_add_varint(out,
		(uint64_t)m->has_functions | (uint64_t)m->has_filenames << 1 |
			(uint64_t)m->has_line_numbers << 2 | (uint64_t)m->has_inline_frames << 3);
}

static void symbols_store_add_location(struct buf *out, const struct sym_location *l)
{
	buf_add_varint(out, l->address);
	buf_add_varint(out, l->mapping == SYM_NONE ? 0 : (uint64_t)l->mapping + 1);
	buf_add_varint(out, (uint64_t)l->lines_n << 1 | l->is_folded);
	for (uint32_t i = 0; i < l->lines_n; i++) {
		buf_add_varint(out, l->lines[i].function);
		buf_add_varint(out, str_zigzag(l->lines[i].line));
		buf_add_varint(out, str_zigzag(l->lines[i].column));
	}
}

static void symbols_store_add_label_set(struct buf *out, struct sym_label_set set)
{
	buf_add_varint(out, set.n);
	for (uint32_t i = 0; i < set.n; i++) {
		buf_add_varint(out, set.v[i].key);
		buf_add_varint(out, set.v[i].str);
		buf_add_varint(out, set.v[i].num_unit);
		buf_add_varint(out, str_zigzag(set.v[i].num));
	}
}

static void symbols_store_add_header(struct buf *out, const struct sym_header *h)
{
	buf_add_varint(out, h->types_n);
	for (uint32_t i = 0; i < h->types_n; i++) {
		buf_add_varint(out, h->types[i].type);
		buf_add_varint(out, h->types[i].unit);
		buf_add_varint(out, (uint64_t)h->types[i].kind << 1 | h->types[i].was_cumulative);
	}
	buf_add_varint(out, h->period_type);
	buf_add_varint(out, h->period_unit);
	buf_add_varint(out, h->drop_frames);
	buf_add_varint(out, h->keep_frames);
	buf_add_varint(out, h->default_sample_type);
	buf_add_varint(out, h->doc_url);
	buf_add_varint(out, h->comments_n);
	for (uint32_t i = 0; i < h->comments_n; i++)
		buf_add_varint(out, h->comments[i]);
	buf_add_varint(out, h->mappings_n);
	for (uint32_t i = 0; i < h->mappings_n; i++) {
		buf_add_varint(out, h->mappings[i]);
		buf_add_varint(out, h->mapping_start[i]);
	}
}

static void symbols_store_add_symbol(
	const struct partition *p, enum sym_kind kind, uint32_t id, struct buf *out)
{
	const struct sym_function *f;
	struct sym_location location;
	struct sym_node n;

	switch (kind) {
	case SYM_STRING:
		buf_add_lenstr(out, sym_string(p, id));
		break;
	case SYM_MAPPING:
		symbols_store_add_mapping(out, sym_mapping(p, id));
		break;
	case SYM_FUNCTION:
		f = sym_function(p, id);
		buf_add_varint(out, f->name);
		buf_add_varint(out, f->system_name);
		buf_add_varint(out, f->filename);
		buf_add_varint(out, str_zigzag(f->start_line));
		break;
	case SYM_LOCATION:
		location = sym_location(p, id);
		symbols_store_add_location(out, &location);
		break;
	case SYM_NODE:
		n = sym_node(p, id);
		buf_add_varint(out, id - n.parent);
		buf_add_varint(out, (uint64_t)n.location << 1 | sym_node_recursive(p, id));
		break;
	case SYM_LABEL_SET:
		symbols_store_add_label_set(out, sym_label_set(p, id));
		break;
	case SYM_HEADER:
		symbols_store_add_header(out, sym_header(p, id));
		break;
	case SYM_KINDS:
		break;
	}
}

void symbols_encode(const struct partition *p, struct new_symbols *new, struct buf *out)
{
	for (int k = 1; k < SYM_KINDS; k++) {
		uint32_t before = 0;

		if (!new->n[k])
			continue;
		symbols_store_sort_ids(new->ids[k], new->n[k]);
		buf_add_char(out, (char)k);
		buf_add_varint(out, new->n[k]);
		for (uint32_t i = 0; i < new->n[k]; i++) {
			buf_add_varint(out, new->ids[k][i] - before);
			before = new->ids[k][i];
			symbols_store_add_symbol(p, k, before, out);
		}
	}
}

/* ---- reading ---- */

/* An array of n items, each at least item_bytes_min in the input: what does not fit there is not
 * allocated. */
static void *symbols_store_read_array(
	struct cursor *in, struct arena *a, uint64_t n, size_t item_bytes_min, size_t size)
{
	void *v;

	if (n > cursor_left(in) / item_bytes_min) {
		in->bad = true;
		return NULL;
	}
	if (!(v = arena_calloc(a, n ? n : 1, size)))
		in->bad = true;
	return v;
}

static void symbols_store_read_mapping(struct cursor *in, struct sym_mapping *m)
{
	uint64_t flags;

	m->size = cursor_varint(in);
	m->offset = cursor_varint(in);
	m->filename = cursor_u32(in);
	m->build_id = cursor_u32(in);
	m->ordinal = cursor_u32(in);
	flags = cursor_varint(in);
	m->has_functions = flags & 1;
	m->has_filenames = flags & 2;
	m->has_line_numbers = flags & 4;
	m->has_inline_frames = flags & 8;
}

static void symbols_store_read_location(struct cursor *in, struct arena *a, struct sym_location *l)
{
	struct sym_line *lines;
	uint64_t mapping, n;
	int64_t column;

	l->address = cursor_varint(in);
	mapping = cursor_varint(in);
	if (mapping > UINT32_MAX)
		in->bad = true;
	l->mapping = mapping ? (uint32_t)(mapping - 1) : SYM_NONE;
	n = cursor_varint(in);
	l->is_folded = n & 1;
	if (!(lines = symbols_store_read_array(in, a, n >> 1, 3, sizeof(*lines))))
		return;
	l->lines_n = (uint32_t)(n >> 1);
	l->lines = lines;
	for (uint32_t i = 0; i < l->lines_n; i++) {
		lines[i].function = cursor_u32(in);
		lines[i].line = str_unzigzag(cursor_varint(in));
		column = str_unzigzag(cursor_varint(in));
		if (column != (int32_t)column)
			in->bad = true;
		lines[i].column = (int32_t)column;
	}
}

static void symbols_store_read_label_set(
	struct cursor *in, struct arena *a, struct sym_label_set *set)
{
	uint64_t n = cursor_varint(in);
	struct sym_label *v = symbols_store_read_array(in, a, n, 4, sizeof(*v));

	if (!v)
		return;
	for (uint64_t i = 0; i < n; i++) {
		v[i].key = cursor_u32(in);
		v[i].str = cursor_u32(in);
		v[i].num_unit = cursor_u32(in);
		v[i].num = str_unzigzag(cursor_varint(in));
	}
	*set = (struct sym_label_set){ v, (uint32_t)n };
}

static void symbols_store_read_header_arrays(
	struct cursor *in, struct arena *a, struct sym_header *h)
{
	uint64_t n = cursor_varint(in);
	uint32_t *ids = symbols_store_read_array(in, a, n, 1, sizeof(*ids));
	uint64_t *start;

	if (!ids)
		return;
	for (uint64_t i = 0; i < n; i++)
		ids[i] = cursor_u32(in);
	h->comments = ids;
	h->comments_n = (uint32_t)n;
	n = cursor_varint(in);
	ids = symbols_store_read_array(in, a, n, 2, sizeof(*ids));
	start = ids ? symbols_store_read_array(in, a, n, 2, sizeof(*start)) : NULL;
	if (!start)
		return;
	for (uint64_t i = 0; i < n; i++) {
		ids[i] = cursor_u32(in);
		start[i] = cursor_varint(in);
	}
	h->mappings = ids;
	h->mapping_start = start;
	h->mappings_n = (uint32_t)n;
}

static void symbols_store_read_header(struct cursor *in, struct arena *a, struct sym_header *h)
{
	uint64_t n = cursor_varint(in), kind;
	struct sym_type *types = symbols_store_read_array(in, a, n, 3, sizeof(*types));

	if (!types || n > SYM_TYPES_MAX) {
		in->bad = true;
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		types[i].type = cursor_u32(in);
		types[i].unit = cursor_u32(in);
		kind = cursor_varint(in);
		types[i].kind = (uint8_t)(kind >> 1);
		types[i].was_cumulative = kind & 1;
		if (kind >> 1 != KIND_GAUGE && kind >> 1 != KIND_DELTA)
			in->bad = true;
	}
	h->types = types;
	h->types_n = (uint32_t)n;
	h->period_type = cursor_u32(in);
	h->period_unit = cursor_u32(in);
	h->drop_frames = cursor_u32(in);
	h->keep_frames = cursor_u32(in);
	h->default_sample_type = cursor_u32(in);
	h->doc_url = cursor_u32(in);
	symbols_store_read_header_arrays(in, a, h);
}

static void symbols_store_read_symbol(struct cursor *in, struct arena *a, enum sym_kind kind,
	uint32_t id, union sym_content *c, bool *recursive)
{
	uint64_t v;

	memset(c, 0, sizeof(*c));
	switch (kind) {
	case SYM_STRING:
		c->string = cursor_lenstr(in);
		break;
	case SYM_MAPPING:
		symbols_store_read_mapping(in, &c->mapping);
		break;
	case SYM_FUNCTION:
		c->function.name = cursor_u32(in);
		c->function.system_name = cursor_u32(in);
		c->function.filename = cursor_u32(in);
		c->function.start_line = str_unzigzag(cursor_varint(in));
		break;
	case SYM_LOCATION:
		symbols_store_read_location(in, a, &c->location);
		break;
	case SYM_NODE:
		v = cursor_varint(in);
		if (v == 0 || v > id)
			in->bad = true;
		c->node.parent = (uint32_t)(id - v);
		v = cursor_varint(in);
		if (v >> 1 >= UINT32_MAX / 2)
			in->bad = true;
		c->node.location = (uint32_t)(v >> 1);
		*recursive = v & 1;
		break;
	case SYM_LABEL_SET:
		symbols_store_read_label_set(in, a, &c->label_set);
		break;
	case SYM_HEADER:
		symbols_store_read_header(in, a, &c->header);
		break;
	case SYM_KINDS:
		break;
	}
}

static enum err_code symbols_store_load_one(struct partition *p, struct stored_symbols *stored,
	enum sym_kind kind, uint32_t id, const union sym_content *c, bool recursive, uint64_t *lost,
	struct err *err)
{
	enum err_code rc = sym_load(p, kind, id, c, recursive, err);

	if (rc == ERR_CORRUPT) {
		(*lost)++;
		/* It refers to symbols that are lost: nothing else may get their ids. */
		sym_content_reserve(p, kind, c);
		return ERR_OK;
	}
	if (rc || !stored)
		return rc;
	if (!bits_reserve(&stored->bits[kind], id))
		return err_nomem(err, "symbols");
	stored->nodes += kind == SYM_NODE && !bits_get(&stored->bits[kind], id);
	bits_set(&stored->bits[kind], id);
	return ERR_OK;
}

enum err_code symbols_load_record(struct partition *p, struct stored_symbols *stored,
	struct str record, struct arena *scratch, uint64_t *lost, struct err *err)
{
	struct cursor in = cursor_of(record);
	union sym_content c;
	enum err_code rc;

	while (cursor_left(&in)) {
		enum sym_kind kind = *in.at++;
		uint64_t n = cursor_varint(&in), id = 0;
		bool recursive = false;

		if (kind == 0 || kind >= SYM_KINDS || n > cursor_left(&in))
			goto bad;
		for (; n; n--) {
			id += cursor_varint(&in);
			if (in.bad || id >= SYM_NONE)
				goto bad;
			arena_reset(scratch);
			symbols_store_read_symbol(&in, scratch, kind, (uint32_t)id, &c, &recursive);
			if (in.bad)
				goto bad;
			if ((rc = symbols_store_load_one(
					 p, stored, kind, (uint32_t)id, &c, recursive, lost, err)))
				return rc;
		}
	}
	return ERR_OK;
bad:
	return err_set(err, ERR_CORRUPT,
		"symbols of job \"" STR_FMT "\": a record cannot be read past byte %zu", STR_ARG(p->name),
		(size_t)(in.at - (const unsigned char *)record.ptr));
}
