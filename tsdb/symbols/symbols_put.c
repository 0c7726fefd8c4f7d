#include "tsdb/symbols/partition.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"

/*
 * Content is copied into a partition: texts and lists into slabs of its arena, the rest into the
 * vectors by id.
 */
#define SLAB_BYTES 4064u /* eight fill a block of the arena, which has a head */

/* The arena pads to 16 bytes: what is small shares a slab. */
static char *symbols_put_in_slab(struct partition *p, char **at, char **end, size_t bytes)
{
	char *got;

	if (bytes > SLAB_BYTES / 4)
		return arena_alloc_raw(&p->arena, 1, bytes);
	if ((size_t)(*end - *at) < bytes) {
		if (!(got = arena_alloc_raw(&p->arena, 1, SLAB_BYTES)))
			return NULL;
		*at = got;
		*end = got + SLAB_BYTES;
	}
	got = *at;
	*at += bytes;
	return got;
}

/* Behind its length, as a varint. */
static const char *symbols_put_text(struct partition *p, struct str s)
{
	unsigned char length[10];
	size_t n = 0;
	char *at;

	for (size_t v = s.len; v >= 128; v >>= 7)
		length[n++] = (unsigned char)(v | 128);
	length[n] = (unsigned char)(s.len >> 7 * n);
	n++;
	if (!(at = symbols_put_in_slab(p, &p->text_at, &p->text_end, n + s.len)))
		return NULL;
	memcpy(at, length, n);
	if (s.len)
		memcpy(at + n, s.ptr, s.len);
	return at;
}

static void *symbols_put_in_list(struct partition *p, size_t bytes)
{
	return symbols_put_in_slab(p, &p->list_at, &p->list_end, (bytes + 7) & ~(size_t)7);
}

static const void *symbols_put_array(struct partition *p, const void *value, size_t n, size_t size)
{
	void *copy = symbols_put_in_list(p, (n ? n : 1) * size);

	if (copy && n)
		memcpy(copy, value, n * size);
	return copy;
}

/* Distinct lists of types are numbered, as the types of a series are needed often. */
static bool symbols_put_typeset_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct partition *p = ctx;

	return sym_same_types(sym_header(p, p->typeset_header[id]), key);
}

static bool symbols_put_typeset_room(struct partition *p)
{
	bool ok;

	mutex_lock(&p->types_lock);
	ok = array_room(&p->typeset_header, p->typesets_n, 1, &p->typesets_cap);
	mutex_unlock(&p->types_lock);
	return ok;
}

static bool symbols_put_typeset(
	struct partition *p, const struct sym_header *h, uint32_t header_id, uint32_t *out)
{
	uint64_t hash = sym_hash_types(h);

	if ((*out = map_find(&p->typesets, hash, symbols_put_typeset_eq, p, h)) != MAP_NONE)
		return true;
	if (!symbols_put_typeset_room(p))
		return false;
	if (!map_add(&p->typesets, hash, p->typesets_n))
		return false;
	mutex_lock(&p->types_lock);
	p->typeset_header[p->typesets_n] = header_id;
	mutex_unlock(&p->types_lock);
	*out = p->typesets_n++;
	return true;
}

static bool symbols_put_keys(struct partition *p, const struct sym_label_set *set)
{
	bool ok = true;

	mutex_lock(&p->keys_lock);
	for (uint32_t i = 0; i < set->n && ok; i++) {
		struct str key = sym_string(p, set->v[i].key);
		uint64_t hash = hash_bytes(key.ptr, key.len, 0);

		if (map_find(&p->keys, hash, sym_key_eq, p, &key) == MAP_NONE)
			ok = map_add(&p->keys, hash, set->v[i].key);
	}
	mutex_unlock(&p->keys_lock);
	return ok;
}

static bool symbols_put_header(struct partition *p, uint32_t id, const struct sym_header *h)
{
	struct header_item item = { .h = *h };

	item.h.types = symbols_put_array(p, h->types, h->types_n, sizeof(*h->types));
	item.h.comments = symbols_put_array(p, h->comments, h->comments_n, sizeof(*h->comments));
	item.h.mappings = symbols_put_array(p, h->mappings, h->mappings_n, sizeof(*h->mappings));
	item.h.mapping_start = symbols_put_array(
		p, h->mapping_start, h->mappings_n, sizeof(*h->mapping_start));
	return item.h.types && item.h.comments && item.h.mappings && item.h.mapping_start &&
		symbols_put_typeset(p, &item.h, id, &item.typeset) &&
		segvec_put(&p->vec[SYM_HEADER], id, &item);
}

/* The writer alone changes it: an addition need not be one step. */
static void symbols_put_count(struct partition *p, size_t bytes)
{
	atomic_store_explicit(&p->bytes, atomic_load_explicit(&p->bytes, memory_order_relaxed) + bytes,
		memory_order_relaxed);
}

/* A parent is written down only where it is not the node before. */
static bool symbols_put_node(
	struct partition *p, uint32_t id, const struct sym_node *n, bool recursive)
{
	const struct stack_node head = { n->parent, (n->location + 1) << 1 | (recursive ? 1 : 0) };
	uint32_t item = head.tag << 1;

	if (n->parent != id - 1) {
		item = p->heads.used << 1 | 1;
		if (!segvec_put(&p->heads, item >> 1, &head))
			return false;
	}
	return segvec_put(&p->vec[SYM_NODE], id, &item);
}

bool sym_put_node(struct partition *p, uint32_t id, const struct sym_node *n, bool recursive)
{
	size_t before = p->vec[SYM_NODE].bytes + p->heads.bytes, after;
	bool ok = symbols_put_node(p, id, n, recursive);

	after = p->vec[SYM_NODE].bytes + p->heads.bytes;
	if (after != before)
		symbols_put_count(p, after - before);
	return ok;
}

static bool symbols_put_function(struct partition *p, uint32_t id, const struct sym_function *f)
{
	struct sym_function function = *f;
	struct buf shown = { 0 };
	const char *text;
	bool ok = true;

	function.shown = 0;
	if (sym_shown_name(p, f, &shown)) { /* else it is shown as it is stored */
		function.shown = p->shown.used + 1;
		text = symbols_put_text(p, buf_str(&shown));
		ok = text && segvec_put(&p->shown, function.shown - 1, &text);
	}
	buf_release(&shown);
	if (!ok || !segvec_put(&p->vec[SYM_FUNCTION], id, &function))
		return false;
	atomic_fetch_add_explicit(&p->functions_put, 1, memory_order_release);
	return true;
}

static const struct location_many *symbols_put_lines(
	struct partition *p, const struct sym_location *l)
{
	size_t bytes = l->lines_n * sizeof(*l->lines);
	struct location_many *many = symbols_put_in_list(p, sizeof(*many) + bytes);

	if (many) {
		many->n = l->lines_n;
		memcpy(many->v, l->lines, bytes);
	}
	return many;
}

static const struct sym_location *symbols_put_whole(
	struct partition *p, const struct sym_location *l)
{
	struct sym_location copy = *l;
	struct sym_location *whole = symbols_put_in_list(p, sizeof(*whole));

	if (!whole || !(copy.lines = symbols_put_array(p, l->lines, l->lines_n, sizeof(*l->lines))))
		return NULL;
	*whole = copy;
	return whole;
}

bool sym_put_location(struct partition *p, uint32_t id, const struct sym_location *l)
{
	struct packed_location packed = location_pack(l);

	if (!l->lines_n)
		atomic_store_explicit(&p->has_bare, true, memory_order_relaxed);
	if (packed.form == LOCATION_MANY && !(packed.many = symbols_put_lines(p, l)))
		return false;
	if (packed.form == LOCATION_WHOLE && !(packed.whole = symbols_put_whole(p, l)))
		return false;
	return segvec_put(&p->vec[SYM_LOCATION], id, &packed);
}

static bool symbols_put_item(struct partition *p, enum sym_kind kind, uint32_t id,
	const union sym_content *c, bool recursive)
{
	struct sym_label_set set;
	const char *text;

	switch (kind) {
	case SYM_STRING:
		text = symbols_put_text(p, c->string);
		return text && segvec_put(&p->vec[kind], id, &text);
	case SYM_MAPPING:
		return segvec_put(&p->vec[kind], id, &c->mapping);
	case SYM_FUNCTION:
		return symbols_put_function(p, id, &c->function);
	case SYM_LOCATION:
		return sym_put_location(p, id, &c->location);
	case SYM_NODE:
		return symbols_put_node(p, id, &c->node, recursive);
	case SYM_LABEL_SET:
		set = c->label_set;
		set.v = symbols_put_array(p, c->label_set.v, set.n, sizeof(*set.v));
		return set.v && symbols_put_keys(p, &set) && segvec_put(&p->vec[kind], id, &set);
	case SYM_HEADER:
		return symbols_put_header(p, id, &c->header);
	case SYM_KINDS:
		break;
	}
	return false;
}

static size_t symbols_put_bytes(const struct partition *p, enum sym_kind kind)
{
	return p->vec[kind].bytes + idtable_bytes(&p->table[kind]) + p->arena.used_bytes +
		p->heads.bytes + p->shown.bytes;
}

enum err_code sym_put(struct partition *p, enum sym_kind kind, uint64_t hash, uint32_t id,
	const union sym_content *c, bool recursive, struct err *err)
{
	size_t before = symbols_put_bytes(p, kind);
	bool found = true;

	assert(!sym_exists(p, kind, id) && p->next[kind] > id);
	assert(kind != SYM_NODE || c->node.parent < id);
	if (!symbols_put_item(p, kind, id, c, recursive))
		return err_nomem(err, "symbols");
	/* If this fails the content gets another id when it comes again: more memory, nothing
	 * wrong. */
	if (p->lookup) {
		if (kind == SYM_NODE)
			found = nodemap_add(&p->table[kind], partition_nodes(p), id);
		else
			found = sym_table_add(p, kind, c, hash, id);
	}
	symbols_put_count(p, symbols_put_bytes(p, kind) - before);
	return found ? ERR_OK : err_nomem(err, "symbols");
}
