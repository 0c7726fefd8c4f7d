/*
 * Writing: segments first, which number the scopes in the order in which they meet them, then
 * tables. So equal input gives equal bytes, in whatever order it came. Each part of the builder is
 * freed when it has been written.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/demangle/demangle.h"
#include "base/map.h"
#include "tsdb/debuginfo/index/builder.h"

/* Ids in the file, in the order of their first use. */
struct numbering {
	uint32_t *of; /* by the builder's id; SYMINDEX_NONE: not used */
	uint32_t *order; /* the builder's ids */
	uint32_t n;
};

struct symindex_write_place {
	uint32_t scope, line; /* scope: of the file */
};

struct name_item {
	uint32_t name, raw; /* offsets; raw 0: as the name */
};

struct block_item {
	uint64_t start, offset;
};

struct writer {
	struct symindex_builder *b;
	struct buf *out;
	size_t from; /* of out */
	struct header h;
	struct numbering scopes, functions, files;
	struct vec blocks; /* struct block_item */
	unsigned entries; /* of the last block */
	uint64_t start, end; /* of the last entry */
	struct symindex_write_place now, back;
	/* offsets of strings in their section */
	struct ids strings;
	struct vec string_offsets; /* uint32_t */
	struct vec paths; /* uint32_t, by numbers of files */
	struct vec names; /* struct name_item, by numbers of functions */
	uint64_t seed;
	struct buf name; /* scratch */
};

static enum err_code symindex_no_memory(struct err *err)
{
	return err_nomem(err, "symbol index: writing");
}

static bool numbering_init(struct numbering *n, size_t ids)
{
	n->of = malloc((ids + 1) * sizeof(*n->of));
	n->order = malloc((ids + 1) * sizeof(*n->order));
	if (!n->of || !n->order)
		return false;
	memset(n->of, 0xff, ids * sizeof(*n->of));
	return true;
}

static void numbering_release(struct numbering *n)
{
	free(n->of);
	free(n->order);
	*n = (struct numbering){ 0 };
}

static uint32_t symindex_number(struct numbering *n, uint32_t id)
{
	if (n->of[id] == SYMINDEX_NONE) {
		n->of[id] = n->n;
		n->order[n->n++] = id;
	}
	return n->of[id];
}

/* A scope's parents have lower numbers. */
static uint32_t symindex_number_scope(struct writer *w, uint32_t scope)
{
	uint32_t chain[SYMINDEX_DEPTH_MAX], n = 0, at;

	for (at = scope; at != SYMINDEX_NONE && w->scopes.of[at] == SYMINDEX_NONE;
		 at = builder_scope(w->b, at)->parent) {
		assert(n < SYMINDEX_DEPTH_MAX);
		chain[n++] = at;
	}
	while (n)
		symindex_number(&w->scopes, chain[--n]);
	return w->scopes.of[scope];
}

static void section_begin(struct writer *w, enum section_id id)
{
	w->h.section[id].offset = w->out->len - w->from;
}

static void section_end(struct writer *w, enum section_id id)
{
	w->h.section[id].bytes = w->out->len - w->from - w->h.section[id].offset;
}

/* ---- segments ---- */

static enum err_code symindex_block_begin(struct writer *w, uint64_t start, struct err *err)
{
	struct block_item *item;

	if (!vec_room(&w->blocks))
		return symindex_no_memory(err);
	item = vec_at(&w->blocks, w->blocks.n++);
	*item = (struct block_item){ start,
		w->out->len - w->from - w->h.section[SECTION_SEGMENTS].offset };
	w->entries = 0;
	w->start = start;
	w->now = w->back = (struct symindex_write_place){ 0 };
	return ERR_OK;
}

/* to: NULL where a gap begins. */
static enum err_code symindex_entry(
	struct writer *w, uint64_t start, const struct symindex_write_place *to, struct err *err)
{
	enum entry_tag tag = ENTRY_GAP;
	struct symindex_write_place was;
	enum err_code rc;

	/* A difference takes two bits more with its tag, which 64 bits may not have. */
	if ((!w->blocks.n || w->entries == BLOCK_ENTRIES || (start - w->start) >> 62) &&
		(rc = symindex_block_begin(w, start, err)))
		return rc;
	if (to)
		tag = w->entries && to->scope == w->now.scope ? ENTRY_SAME :
			w->entries && to->scope == w->back.scope  ? ENTRY_BACK :
														ENTRY_SCOPE;
	buf_add_varint(w->out, (start - w->start) << 2 | tag);
	if (tag == ENTRY_SCOPE || tag == ENTRY_BACK) {
		was = w->now;
		w->now = tag == ENTRY_BACK ? w->back : w->now;
		w->back = was;
	}
	if (tag == ENTRY_SCOPE)
		buf_add_varint(w->out, str_zigzag((int64_t)to->scope - (int64_t)w->now.scope));
	if (to) {
		buf_add_varint(w->out, str_zigzag((int64_t)to->line - (int64_t)w->now.line));
		w->now = *to;
	}
	w->start = start;
	w->entries++;
	w->h.section[SECTION_SEGMENTS].count++;
	return ERR_OK;
}

static enum err_code symindex_add_segment(
	void *ctx, uint64_t start, uint64_t end, uint32_t frame, struct err *err)
{
	struct writer *w = ctx;
	const struct frame_item *item = builder_frame(w->b, frame);
	struct symindex_write_place to = { symindex_number_scope(w, item->scope), item->line };
	enum err_code rc;

	if (w->blocks.n == 0)
		w->h.base = w->end = start;
	if (w->end != start && (rc = symindex_entry(w, w->end, NULL, err)))
		return rc;
	w->end = start;
	if ((rc = symindex_entry(w, start, &to, err)))
		return rc;
	w->end = end;
	return ERR_OK;
}

static enum err_code write_segments(struct writer *w, struct err *err)
{
	enum err_code rc;

	section_begin(w, SECTION_SEGMENTS);
	if ((rc = symindex_sweep(w->b, symindex_add_segment, w, err)))
		return rc;
	if (w->blocks.n && (rc = symindex_entry(w, w->end, NULL, err)))
		return rc;
	w->h.end = w->end;
	section_end(w, SECTION_SEGMENTS);
	items_release(&w->b->frames);
	vec_release(&w->b->scope_orders);
	return ERR_OK;
}

/* ---- tables ---- */

static unsigned symindex_bits_of(uint64_t value)
{
	return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

typedef void (*row_fn)(struct writer *w, uint64_t i, uint64_t row[FORMAT_COLUMNS]);

struct symindex_bits {
	struct buf *out;
	unsigned __int128 v;
	unsigned n;
};

static void symindex_bits_add(struct symindex_bits *b, uint64_t value, unsigned width)
{
	b->v |= (unsigned __int128)value << b->n;
	for (b->n += width; b->n >= 8; b->n -= 8, b->v >>= 8)
		buf_add_char(b->out, (char)(unsigned char)b->v);
}

static void write_table(struct writer *w, enum section_id id, uint64_t n, row_fn fn)
{
	struct section *s = &w->h.section[id];
	struct symindex_bits bits = { .out = w->out };
	uint64_t row[FORMAT_COLUMNS], any[FORMAT_COLUMNS] = { 0 };

	section_begin(w, id);
	s->count = n;
	for (uint64_t i = 0; i < n; i++) {
		memset(row, 0, sizeof(row));
		fn(w, i, row);
		for (unsigned k = 0; k < FORMAT_COLUMNS; k++)
			any[k] |= row[k];
	}
	for (unsigned k = 0; k < FORMAT_COLUMNS; k++)
		s->width[k] = symindex_bits_of(any[k]);
	for (uint64_t i = 0; i < n; i++) {
		memset(row, 0, sizeof(row));
		fn(w, i, row);
		for (unsigned k = 0; k < FORMAT_COLUMNS; k++)
			symindex_bits_add(&bits, row[k], s->width[k]);
	}
	if (bits.n)
		symindex_bits_add(&bits, 0, 8 - bits.n);
	section_end(w, id);
}

static void symindex_block_row(struct writer *w, uint64_t i, uint64_t row[FORMAT_COLUMNS])
{
	const struct block_item *item = vec_at(&w->blocks, i);

	row[0] = item->start - w->h.base;
	row[1] = item->offset;
}

/* The last block that begins at or before this one's first address. */
static void symindex_bucket_row(struct writer *w, uint64_t i, uint64_t row[FORMAT_COLUMNS])
{
	uint64_t offset = i << w->h.bucket_shift;
	size_t low = 0, high = w->blocks.n;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		const struct block_item *item = vec_at(&w->blocks, middle);

		if (item->start - w->h.base <= offset)
			low = middle;
		else
			high = middle;
	}
	row[0] = low;
}

static uint64_t symindex_file_plus_1(struct writer *w, uint32_t file)
{
	return file == SYMINDEX_NONE ? 0 : (uint64_t)symindex_number(&w->files, file) + 1;
}

static void symindex_scope_row(struct writer *w, uint64_t i, uint64_t row[FORMAT_COLUMNS])
{
	const struct scope_item *item = builder_scope(w->b, w->scopes.order[i]);

	row[0] = item->parent == SYMINDEX_NONE ? 0 : i - w->scopes.of[item->parent];
	row[1] = item->line;
	row[2] = symindex_number(&w->functions, item->function);
	row[3] = symindex_file_plus_1(w, item->file);
}

/* ---- strings ---- */

struct string_key {
	const struct writer *w;
	struct str text;
};

static struct str symindex_string_at(const struct writer *w, uint32_t id)
{
	const struct section *s = &w->h.section[SECTION_STRINGS];
	size_t from = w->from + s->offset + *(const uint32_t *)vec_at(&w->string_offsets, id);
	struct cursor c = cursor_of((struct str){ w->out->ptr + from, w->out->len - from });

	return cursor_lenstr(&c);
}

static bool string_same(const void *ctx, uint32_t id, const void *key)
{
	return str_eq(symindex_string_at(ctx, id), *(const struct str *)key);
}

static uint64_t symindex_string_hash(const void *ctx, uint32_t id)
{
	const struct writer *w = ctx;
	struct str s = symindex_string_at(w, id);

	return hash_bytes(s.ptr, s.len, w->seed);
}

/* The offset of a string, which is added if it is not there. */
static enum err_code symindex_put_string(
	struct writer *w, struct str text, uint32_t *out, struct err *err)
{
	uint64_t hash = hash_bytes(text.ptr, text.len, w->seed);
	uint64_t offset = w->out->len - w->from - w->h.section[SECTION_STRINGS].offset;
	uint32_t id = ids_find(&w->strings, hash, string_same, w, &text);

	if (id != IDS_NONE) {
		*out = *(const uint32_t *)vec_at(&w->string_offsets, id);
		return ERR_OK;
	}
	if (offset > UINT32_MAX)
		return err_set(err, ERR_LIMIT, "symbol index: strings of more than 4 GiB");
	*out = (uint32_t)offset;
	if (!vec_room(&w->string_offsets))
		return symindex_no_memory(err);
	memcpy(vec_at(&w->string_offsets, w->string_offsets.n++), out, sizeof(*out));
	buf_add_lenstr(w->out, text);
	if (buf_failed(w->out) || !ids_add(&w->strings, hash, symindex_string_hash, w))
		return symindex_no_memory(err);
	return ERR_OK;
}

static struct str symindex_text_of(const struct writer *w, uint32_t string)
{
	const struct string *s = strings_at(&w->b->strings, string);

	return (struct str){ s->ptr, s->len };
}

static enum err_code symindex_put_names(
	struct writer *w, const struct function_item *f, struct err *err)
{
	struct str raw = symindex_text_of(w, f->raw), stub = STR("@plt"), mangled = raw;
	struct name_item *item;
	enum err_code rc;

	if (!vec_room(&w->names))
		return symindex_no_memory(err);
	item = vec_at(&w->names, w->names.n++);
	*item = (struct name_item){ 0 };
	buf_clear(&w->name);
	if (str_has_suffix(raw, stub))
		mangled.len -= stub.len;
	if (!demangle_may(mangled) || !demangle_name(mangled, &w->name) || !w->name.len)
		return symindex_put_string(w, raw, &item->name, err);
	if (mangled.len < raw.len)
		buf_add_str(&w->name, stub);
	if (buf_failed(&w->name))
		return symindex_no_memory(err);
	if ((rc = symindex_put_string(w, buf_str(&w->name), &item->name, err)))
		return rc;
	return symindex_put_string(w, raw, &item->raw, err);
}

static enum err_code symindex_write_strings(struct writer *w, struct err *err)
{
	struct items *functions = &w->b->functions;
	enum err_code rc;
	uint32_t none;

	for (uint32_t i = 0; i < w->functions.n; i++)
		symindex_file_plus_1(
			w, ((struct function_item *)vec_at(&functions->v, w->functions.order[i]))->file);
	section_begin(w, SECTION_STRINGS);
	if ((rc = symindex_put_string(w, STR(""), &none, err)))
		return rc;
	for (uint32_t i = 0; i < w->files.n; i++) {
		const struct file_item *item = vec_at(&w->b->files.v, w->files.order[i]);

		if (!vec_room(&w->paths))
			return symindex_no_memory(err);
		if ((rc = symindex_put_string(
				 w, symindex_text_of(w, item->path), vec_at(&w->paths, i), err)))
			return rc;
		w->paths.n++;
	}
	for (uint32_t i = 0; i < w->functions.n; i++)
		if ((rc = symindex_put_names(w, builder_function(w->b, w->functions.order[i]), err)))
			return rc;
	section_end(w, SECTION_STRINGS);
	w->h.section[SECTION_STRINGS].count = w->string_offsets.n;
	return ERR_OK;
}

static void symindex_function_row(struct writer *w, uint64_t i, uint64_t row[FORMAT_COLUMNS])
{
	const struct function_item *item = builder_function(w->b, w->functions.order[i]);
	const struct name_item *name = vec_at(&w->names, i);

	row[0] = name->name;
	row[1] = name->raw;
	row[2] = symindex_file_plus_1(w, item->file);
	row[3] = item->line;
}

static void symindex_file_row(struct writer *w, uint64_t i, uint64_t row[FORMAT_COLUMNS])
{
	row[0] = *(const uint32_t *)vec_at(&w->paths, i);
}

static int symindex_compare_loads(const void *pa, const void *pb)
{
	const struct symindex_load *a = pa, *b = pb;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return a->executable != b->executable ? a->executable - b->executable : a->lost - b->lost;
}

static void symindex_load_row(struct writer *w, uint64_t i, uint64_t row[FORMAT_COLUMNS])
{
	const struct symindex_load *l = &w->b->loads[i];

	row[0] = l->address;
	row[1] = l->offset;
	row[2] = l->bytes;
	row[3] = (l->executable ? LOAD_EXECUTABLE : 0) | (l->lost ? LOAD_LOST : 0);
}

/* ---- the whole ---- */

static enum err_code write_tables(struct writer *w, struct err *err)
{
	struct symindex_builder *b = w->b;
	uint64_t span = w->h.end - w->h.base;
	enum err_code rc;

	write_table(w, SECTION_BLOCKS, w->blocks.n, symindex_block_row);
	while (span >> w->h.bucket_shift > w->blocks.n)
		w->h.bucket_shift++;
	write_table(
		w, SECTION_BUCKETS, w->blocks.n ? (span >> w->h.bucket_shift) + 1 : 0, symindex_bucket_row);
	vec_release(&w->blocks);
	ids_release(&b->scopes.ids);
	write_table(w, SECTION_SCOPES, w->scopes.n, symindex_scope_row);
	items_release(&b->scopes);
	numbering_release(&w->scopes);
	if ((rc = symindex_write_strings(w, err)))
		return rc;
	write_table(w, SECTION_FUNCTIONS, w->functions.n, symindex_function_row);
	write_table(w, SECTION_FILES, w->files.n, symindex_file_row);
	qsort(b->loads, b->loads_n, sizeof(*b->loads), symindex_compare_loads);
	write_table(w, SECTION_LOADS, b->loads_n, symindex_load_row);
	return ERR_OK;
}

static enum err_code write_ends(struct writer *w, struct err *err)
{
	size_t hashes = pages_of_data(w->out->len - w->from - FORMAT_HEADER_BYTES) * 8;
	unsigned char *index;

	if (!buf_reserve(w->out, hashes))
		return symindex_no_memory(err);
	w->out->len += hashes;
	w->h.total = w->out->len - w->from;
	index = (unsigned char *)w->out->ptr + w->from;
	header_write(index, &w->h);
	format_seal(index, w->h.total);
	return ERR_OK;
}

static void writer_release(struct writer *w)
{
	numbering_release(&w->scopes);
	numbering_release(&w->functions);
	numbering_release(&w->files);
	vec_release(&w->blocks);
	vec_release(&w->string_offsets);
	vec_release(&w->paths);
	vec_release(&w->names);
	ids_release(&w->strings);
	buf_release(&w->name);
}

enum err_code symindex_finish(
	struct symindex_builder *b, struct str build_id, struct buf *out, struct err *err)
{
	static const unsigned char zeros[FORMAT_HEADER_BYTES];
	struct writer w = { .b = b,
		.out = out,
		.from = out->len,
		.h = { .best = b->best, .build_id = build_id },
		.seed = hash_seed(),
		.blocks.item_bytes = sizeof(struct block_item),
		.string_offsets.item_bytes = sizeof(uint32_t),
		.paths.item_bytes = sizeof(uint32_t),
		.names.item_bytes = sizeof(struct name_item) };
	enum err_code rc;

	if (build_id.len > SYMINDEX_BUILD_ID_MAX)
		return err_set(err, ERR_LIMIT, "symbol index: build id of %zu bytes, limit %u",
			build_id.len, SYMINDEX_BUILD_ID_MAX);
	ids_release(&b->strings.ids);
	ids_release(&b->files.ids);
	ids_release(&b->functions.ids);
	ids_release(&b->scopes.ids);
	ids_release(&b->frames.ids);
	buf_add(out, zeros, sizeof(zeros));
	if (!numbering_init(&w.scopes, b->scopes.v.n) ||
		!numbering_init(&w.functions, b->functions.v.n) || !numbering_init(&w.files, b->files.v.n))
		rc = symindex_no_memory(err);
	else if (!(rc = write_segments(&w, err)) && !(rc = write_tables(&w, err)))
		rc = buf_failed(out) ? symindex_no_memory(err) : write_ends(&w, err);
	writer_release(&w);
	if (rc && out->len > w.from)
		out->len = w.from;
	return rc;
}
