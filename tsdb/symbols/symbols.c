#include "tsdb/symbols/partition.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/metrics.h"
#include "tsdb/symbols/stored.h"

/* Asked of malloc at a time: with blocks of up to 1 MiB every other byte of them was free. */
#define BLOCK_BYTES (32u << 10)
#define SLAB_BYTES 4064u /* eight fill a block, which has a head */

static const struct {
	const char *name;
	size_t item_bytes;
	uint32_t first; /* ids below it are not content */
} kinds[SYM_KINDS] = {
	[SYM_STRING] = { "strings", sizeof(const char *), 1 },
	[SYM_MAPPING] = { "mappings", sizeof(struct sym_mapping), 0 },
	[SYM_FUNCTION] = { "functions", sizeof(struct sym_function), 0 },
	[SYM_LOCATION] = { "locations", sizeof(struct sym_location), 0 },
	[SYM_NODE] = { "stack nodes", sizeof(uint32_t), 1 },
	[SYM_LABEL_SET] = { "sample label sets", sizeof(struct sym_label_set), 1 },
	[SYM_HEADER] = { "headers", sizeof(struct header_item), 0 },
};

METRIC_COUNTER(limits_met, "epimetheus_tsdb_symbol_limit_failures_total",
	"Profiles that would have passed a limit of their job's symbols.", "limit");

static const struct sym_label no_labels[1];
static const struct sym_line no_lines[1];

/* ---- open, close ---- */

enum err_code partition_init(struct partition *p, struct str name, uint32_t id, uint32_t index,
	const struct symbol_limits *limits, struct err *err)
{
	const struct sym_label_set empty_set = { no_labels, 0 };
	const uint32_t root = 0;
	const char *const empty = "";
	int k;

	p->index = index;
	p->id = id;
	p->limits = *limits;
	p->lookup = true;
	p->overflow_set = SYM_NONE;
	arena_init(&p->arena, 0);
	p->arena.block_max = BLOCK_BYTES;
	mutex_init(&p->lock);
	mutex_init(&p->keys_lock);
	mutex_init(&p->types_lock);
	for (k = 1; k < SYM_KINDS; k++) {
		segvec_init(&p->vec[k], kinds[k].item_bytes);
		p->next[k] = kinds[k].first;
	}
	segvec_init(&p->heads, sizeof(struct stack_node));
	segvec_init(&p->shown, sizeof(const char *));
	map_init(&p->keys);
	map_init(&p->typesets);
	p->name = str_dup(&p->arena, name);
	if (!p->name.ptr || !segvec_put(&p->vec[SYM_STRING], 0, &empty) ||
		!segvec_put(&p->vec[SYM_NODE], 0, &root) ||
		!segvec_put(&p->vec[SYM_LABEL_SET], 0, &empty_set)) {
		partition_release(p);
		return err_nomem(err, "partition");
	}
	atomic_store(&p->bytes, sizeof(*p) + name.len);
	return ERR_OK;
}

void partition_release(struct partition *p)
{
	stored_release_all(p);
	for (int k = 1; k < SYM_KINDS; k++) {
		segvec_release(&p->vec[k]);
		idtable_release(&p->table[k]);
	}
	map_release(&p->keys);
	leafcache_release(&p->leaves);
	segvec_release(&p->heads);
	segvec_release(&p->shown);
	map_release(&p->typesets);
	free(p->typeset_header);
	arena_release(&p->arena);
	mutex_destroy(&p->lock);
	mutex_destroy(&p->keys_lock);
	mutex_destroy(&p->types_lock);
}

enum err_code partition_open(struct str name, uint32_t id, uint32_t index,
	const struct symbol_limits *limits, struct partition **out, struct err *err)
{
	struct partition *p = calloc(1, sizeof(*p));
	enum err_code rc;

	if (!p)
		return err_nomem(err, "partition");
	if ((rc = partition_init(p, name, id, index, limits, err))) {
		free(p);
		return rc;
	}
	*out = p;
	return ERR_OK;
}

void partition_close(struct partition *p)
{
	if (!p)
		return;
	partition_release(p);
	free(p);
}

/* ---- copying content in ---- */

/* The arena pads to 16 bytes: what is small shares a slab. */
static char *symbols_slab_alloc(struct partition *p, char **at, char **end, size_t bytes)
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
static const char *symbols_text_dup(struct partition *p, struct str s)
{
	unsigned char length[10];
	size_t n = 0;
	char *at;

	for (size_t v = s.len; v >= 128; v >>= 7)
		length[n++] = (unsigned char)(v | 128);
	length[n] = (unsigned char)(s.len >> 7 * n);
	n++;
	if (!(at = symbols_slab_alloc(p, &p->text_at, &p->text_end, n + s.len)))
		return NULL;
	memcpy(at, length, n);
	if (s.len)
		memcpy(at + n, s.ptr, s.len);
	return at;
}

static const void *symbols_array_dup(struct partition *p, const void *value, size_t n, size_t size)
{
	size_t bytes = ((n ? n : 1) * size + 7) & ~(size_t)7;
	void *copy = symbols_slab_alloc(p, &p->list_at, &p->list_end, bytes);

	if (copy && n)
		memcpy(copy, value, n * size);
	return copy;
}

/* Distinct lists of types are numbered, as the types of a series are needed often. */
static bool symbols_typeset_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct partition *p = ctx;

	return sym_same_types(sym_header(p, p->typeset_header[id]), key);
}

static bool symbols_typesets_reserve(struct partition *p)
{
	bool ok;

	mutex_lock(&p->types_lock);
	ok = array_room(&p->typeset_header, p->typesets_n, 1, &p->typesets_cap);
	mutex_unlock(&p->types_lock);
	return ok;
}

static bool symbols_typeset_of(
	struct partition *p, const struct sym_header *h, uint32_t header_id, uint32_t *out)
{
	uint64_t hash = sym_hash_types(h);

	if ((*out = map_find(&p->typesets, hash, symbols_typeset_eq, p, h)) != MAP_NONE)
		return true;
	if (!symbols_typesets_reserve(p))
		return false;
	if (!map_add(&p->typesets, hash, p->typesets_n))
		return false;
	mutex_lock(&p->types_lock);
	p->typeset_header[p->typesets_n] = header_id;
	mutex_unlock(&p->types_lock);
	*out = p->typesets_n++;
	return true;
}

static bool symbols_keys_add(struct partition *p, const struct sym_label_set *set)
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

	item.h.types = symbols_array_dup(p, h->types, h->types_n, sizeof(*h->types));
	item.h.comments = symbols_array_dup(p, h->comments, h->comments_n, sizeof(*h->comments));
	item.h.mappings = symbols_array_dup(p, h->mappings, h->mappings_n, sizeof(*h->mappings));
	item.h.mapping_start = symbols_array_dup(
		p, h->mapping_start, h->mappings_n, sizeof(*h->mapping_start));
	return item.h.types && item.h.comments && item.h.mappings && item.h.mapping_start &&
		symbols_typeset_of(p, &item.h, id, &item.typeset) &&
		segvec_put(&p->vec[SYM_HEADER], id, &item);
}

/* The writer alone changes it: an addition need not be one step. */
static void symbols_count_bytes(struct partition *p, size_t bytes)
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
		symbols_count_bytes(p, after - before);
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
		text = symbols_text_dup(p, buf_str(&shown));
		ok = text && segvec_put(&p->shown, function.shown - 1, &text);
	}
	buf_release(&shown);
	return ok && segvec_put(&p->vec[SYM_FUNCTION], id, &function);
}

static bool symbols_put_item(struct partition *p, enum sym_kind kind, uint32_t id,
	const union sym_content *c, bool recursive)
{
	struct sym_location location;
	struct sym_label_set set;
	const char *text;

	switch (kind) {
	case SYM_STRING:
		text = symbols_text_dup(p, c->string);
		return text && segvec_put(&p->vec[kind], id, &text);
	case SYM_MAPPING:
		return segvec_put(&p->vec[kind], id, &c->mapping);
	case SYM_FUNCTION:
		return symbols_put_function(p, id, &c->function);
	case SYM_LOCATION:
		location = c->location;
		location.lines = no_lines;
		if (location.lines_n)
			location.lines = symbols_array_dup(
				p, c->location.lines, location.lines_n, sizeof(*location.lines));
		else
			atomic_store_explicit(&p->has_bare, true, memory_order_relaxed);
		return location.lines && segvec_put(&p->vec[kind], id, &location);
	case SYM_NODE:
		return symbols_put_node(p, id, &c->node, recursive);
	case SYM_LABEL_SET:
		set = c->label_set;
		set.v = symbols_array_dup(p, c->label_set.v, set.n, sizeof(*set.v));
		return set.v && symbols_keys_add(p, &set) && segvec_put(&p->vec[kind], id, &set);
	case SYM_HEADER:
		return symbols_put_header(p, id, &c->header);
	case SYM_KINDS:
		break;
	}
	return false;
}

static size_t symbols_kind_bytes(const struct partition *p, enum sym_kind kind)
{
	return p->vec[kind].bytes + idtable_bytes(&p->table[kind]) + p->arena.used_bytes +
		p->heads.bytes + p->shown.bytes;
}

static enum err_code symbols_put(struct partition *p, enum sym_kind kind, uint64_t hash,
	uint32_t id, const union sym_content *c, bool recursive, struct err *err)
{
	size_t before = symbols_kind_bytes(p, kind);
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
	symbols_count_bytes(p, symbols_kind_bytes(p, kind) - before);
	return found ? ERR_OK : err_nomem(err, "symbols");
}

/* ---- interning ---- */

static uint64_t symbols_limit_of(const struct partition *p, enum sym_kind kind)
{
	switch (kind) {
	case SYM_STRING:
	case SYM_FUNCTION:
		return p->limits.strings_max;
	case SYM_LOCATION:
	case SYM_NODE:
		return p->limits.nodes_max;
	case SYM_LABEL_SET:
		return (uint64_t)p->limits.label_sets_max + 2; /* and the empty set, and __overflow__ */
	case SYM_MAPPING:
		return SYM_MAPPINGS_MAX;
	case SYM_HEADER:
		return SYM_HEADERS_MAX;
	case SYM_KINDS:
		break;
	}
	return 0;
}

static uint32_t symbols_ids_max(enum sym_kind kind)
{
	return kind == SYM_LOCATION ? NODE_LOCATIONS_MAX : UINT32_MAX - 1;
}

static enum err_code symbols_check_room(struct partition *p, enum sym_kind kind, struct err *err)
{
	uint64_t limit = symbols_limit_of(p, kind);

	if (p->vec[kind].used >= limit) {
		metric_add(&limits_met, kinds[kind].name, 1);
		return err_set(err, ERR_LIMIT, "job \"" STR_FMT "\" has %" PRIu32 " %s, limit %" PRIu64,
			STR_ARG(p->name), p->vec[kind].used, kinds[kind].name, limit);
	}
	if (atomic_load_explicit(&p->bytes, memory_order_relaxed) >= p->limits.bytes_max) {
		metric_add(&limits_met, "bytes", 1);
		return err_set(err, ERR_LIMIT,
			"symbols of job \"" STR_FMT "\" take %zu bytes, limit %" PRIu64, STR_ARG(p->name),
			atomic_load(&p->bytes), p->limits.bytes_max);
	}
	if (p->next[kind] >= symbols_ids_max(kind)) {
		metric_add(&limits_met, "ids", 1);
		return err_set(err, ERR_LIMIT, "job \"" STR_FMT "\" has used up the ids of its %s",
			STR_ARG(p->name), kinds[kind].name);
	}
	return ERR_OK;
}

const char *sym_near_limit(const struct partition *p)
{
	for (int k = 1; k < SYM_KINDS; k++)
		if (p->vec[k].used > symbols_limit_of(p, k) / 2 || p->next[k] > symbols_ids_max(k) / 4)
			return kinds[k].name;
	return atomic_load(&p->bytes) > p->limits.bytes_max / 2 ? "bytes" : NULL;
}

static enum err_code sym_db_symbols_intern(struct partition *p, enum sym_kind kind,
	const union sym_content *c, uint32_t *id, struct err *err)
{
	uint64_t hash = sym_content_hash(kind, c);
	enum err_code rc;

	assert(p->lookup);
	if ((*id = sym_find(p, kind, c, hash)) != SYM_NONE)
		return ERR_OK;
	if ((rc = symbols_check_room(p, kind, err)))
		return rc;
	*id = p->next[kind]++;
	return symbols_put(p, kind, hash, *id, c, false, err);
}

enum err_code sym_intern_string(struct partition *p, struct str s, uint32_t *id, struct err *err)
{
	*id = 0;
	return s.len ?
		sym_db_symbols_intern(p, SYM_STRING, &(union sym_content){ .string = s }, id, err) :
		ERR_OK;
}

enum err_code sym_intern_mapping(
	struct partition *p, const struct sym_mapping *m, uint32_t *id, struct err *err)
{
	return sym_db_symbols_intern(p, SYM_MAPPING, &(union sym_content){ .mapping = *m }, id, err);
}

enum err_code sym_intern_function(
	struct partition *p, const struct sym_function *f, uint32_t *id, struct err *err)
{
	return sym_db_symbols_intern(p, SYM_FUNCTION, &(union sym_content){ .function = *f }, id, err);
}

enum err_code sym_intern_location(
	struct partition *p, const struct sym_location *l, uint32_t *id, struct err *err)
{
	return sym_db_symbols_intern(p, SYM_LOCATION, &(union sym_content){ .location = *l }, id, err);
}

enum err_code sym_intern_header(
	struct partition *p, const struct sym_header *h, uint32_t *id, struct err *err)
{
	return sym_db_symbols_intern(p, SYM_HEADER, &(union sym_content){ .header = *h }, id, err);
}

static enum err_code symbols_overflow_set(struct partition *p, uint32_t *id, struct err *err)
{
	struct sym_label label = { 0 };
	enum err_code rc;

	if (p->overflow_set == SYM_NONE) {
		/* One more than the limit, which symbols_limit_of leaves room for. */
		if ((rc = sym_intern_string(p, STR("__overflow__"), &label.key, err)) ||
				(rc = sym_intern_string(p, STR("true"), &label.str, err)) ||
					(rc = sym_db_symbols_intern(p, SYM_LABEL_SET,
						 &(union sym_content){ .label_set = { &label, 1 } }, &p->overflow_set,
						 err)))
			return rc;
	}
	*id = p->overflow_set;
	return ERR_OK;
}

enum err_code sym_intern_label_set(struct partition *p, const struct sym_label_set *set,
	uint32_t *id, bool *overflow, struct err *err)
{
	const union sym_content c = { .label_set = *set };

	*id = 0;
	if (set->n == 0)
		return ERR_OK;
	*id = sym_find(p, SYM_LABEL_SET, &c, sym_content_hash(SYM_LABEL_SET, &c));
	if (*id != SYM_NONE)
		return ERR_OK;
	if (p->vec[SYM_LABEL_SET].used > p->limits.label_sets_max) {
		*overflow = true;
		return symbols_overflow_set(p, id, err);
	}
	return sym_db_symbols_intern(p, SYM_LABEL_SET, &c, id, err);
}

static bool sym_location_has_function(const struct sym_location *l, uint32_t function)
{
	for (uint32_t i = 0; i < l->lines_n; i++)
		if (l->lines[i].function == function)
			return true;
	return false;
}

static bool symbols_is_recursive(const struct partition *p, uint32_t parent, uint32_t location)
{
	const struct sym_location *l = sym_location(p, location);
	struct sym_node n;

	for (uint32_t i = 0; i < l->lines_n; i++) {
		for (uint32_t j = i + 1; j < l->lines_n; j++)
			if (l->lines[i].function == l->lines[j].function)
				return true;
		for (uint32_t at = parent; at; at = n.parent) {
			n = sym_node(p, at);
			if (sym_location_has_function(sym_location(p, n.location), l->lines[i].function))
				return true;
		}
	}
	return false;
}

enum err_code sym_add_node(struct partition *p, uint32_t parent, uint32_t location, bool distinct,
	uint32_t *id, struct err *err)
{
	bool recursive = !distinct && symbols_is_recursive(p, parent, location);
	enum err_code rc;

	assert(p->lookup && sym_exists(p, SYM_LOCATION, location));
	assert(parent == 0 || sym_exists(p, SYM_NODE, parent));
	if ((rc = symbols_check_room(p, SYM_NODE, err)))
		return rc;
	*id = p->next[SYM_NODE]++;
	return symbols_put(
		p, SYM_NODE, 0, *id, &(union sym_content){ .node = { parent, location } }, recursive, err);
}

enum err_code sym_intern_node(
	struct partition *p, uint32_t parent, uint32_t location, uint32_t *id, struct err *err)
{
	*id = nodemap_find(&p->table[SYM_NODE], partition_nodes(p), parent, location);
	return *id ? ERR_OK : sym_add_node(p, parent, location, false, id, err);
}

/* ---- loading ---- */

void sym_reserve(struct partition *p, enum sym_kind kind, uint32_t id)
{
	assert(kind >= SYM_STRING && kind < SYM_KINDS);
	if (id != SYM_NONE && p->next[kind] <= id)
		p->next[kind] = id + 1;
}

static enum err_code symbols_check_load(struct partition *p, enum sym_kind kind, uint32_t id,
	const union sym_content *c, struct err *err)
{
	if (id < kinds[kind].first || id == SYM_NONE)
		return err_set(err, ERR_CORRUPT,
			"%s of job \"" STR_FMT "\": id %" PRIu32 " cannot be stored", kinds[kind].name,
			STR_ARG(p->name), id);
	if (!sym_content_complete(p, kind, id, c))
		return err_set(err, ERR_CORRUPT,
			"%s of job \"" STR_FMT "\": %" PRIu32 " refers to symbols that are missing",
			kinds[kind].name, STR_ARG(p->name), id);
	return ERR_OK;
}

enum err_code sym_load(struct partition *p, enum sym_kind kind, uint32_t id,
	const union sym_content *c, bool recursive, struct err *err)
{
	enum err_code rc;

	sym_reserve(p, kind, id);
	if (sym_exists(p, kind, id) && id >= kinds[kind].first) {
		if (!sym_content_same(p, kind, id, c))
			return err_set(err, ERR_EXISTS,
				"%s of job \"" STR_FMT "\": %" PRIu32 " has two meanings", kinds[kind].name,
				STR_ARG(p->name), id);
		return ERR_OK;
	}
	if ((rc = symbols_check_load(p, kind, id, c, err)))
		return rc;
	return symbols_put(p, kind, p->lookup ? sym_content_hash(kind, c) : 0, id, c, recursive, err);
}
