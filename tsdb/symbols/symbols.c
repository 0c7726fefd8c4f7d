#include "tsdb/symbols/partition.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/metrics.h"
#include "tsdb/symbols/shown.h"
#include "tsdb/symbols/stored.h"

/* Asked of malloc at a time: with blocks of up to 1 MiB every other byte of them was free. */
#define BLOCK_BYTES (32u << 10)

static const struct {
	const char *name;
	size_t item_bytes;
	uint32_t first; /* ids below it are not content */
} kinds[SYM_KINDS] = {
	[SYM_STRING] = { "strings", sizeof(const char *), 1 },
	[SYM_MAPPING] = { "mappings", sizeof(struct sym_mapping), 0 },
	[SYM_FUNCTION] = { "functions", sizeof(struct sym_function), 0 },
	[SYM_LOCATION] = { "locations", sizeof(struct packed_location), 0 },
	[SYM_NODE] = { "stack nodes", sizeof(uint32_t), 1 },
	[SYM_LABEL_SET] = { "sample label sets", sizeof(struct sym_label_set), 1 },
	[SYM_HEADER] = { "headers", sizeof(struct header_item), 0 },
};

METRIC_COUNTER(limits_met, "epimetheus_tsdb_symbol_limit_failures_total",
	"Profiles that would have passed a limit of their job's symbols.", "limit");

static const struct sym_label no_labels[1];

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
	shown_close(atomic_load(&p->shown_names));
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

size_t partition_bytes(const struct partition *p)
{
	return atomic_load(&p->bytes) + shown_bytes(p);
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
	return sym_put(p, kind, hash, *id, c, false, err);
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
	const struct sym_location l = sym_location(p, location);
	struct sym_location above;
	struct sym_node n;

	for (uint32_t i = 0; i < l.lines_n; i++) {
		for (uint32_t j = i + 1; j < l.lines_n; j++)
			if (l.lines[i].function == l.lines[j].function)
				return true;
		for (uint32_t at = parent; at; at = n.parent) {
			n = sym_node(p, at);
			above = sym_location(p, n.location);
			if (sym_location_has_function(&above, l.lines[i].function))
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
	return sym_put(
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
	return sym_put(p, kind, p->lookup ? sym_content_hash(kind, c) : 0, id, c, recursive, err);
}
