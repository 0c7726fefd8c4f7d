#include <assert.h>

#include "tsdb/symbols/derive.h"
#include "tsdb/symbols/named.h"
#include "tsdb/symbols/partition.h"

/* Reading a partition. No lock is taken: published symbols do not change. */

/* The partition that owns the symbols; one that a query made shares those of its base. */
static inline const struct partition *symbols_read_shared(const struct partition *p)
{
	return __builtin_expect(p->base != NULL, 0) ? p->base : p;
}

struct str partition_name(const struct partition *p)
{
	return p->name;
}

uint32_t partition_index(const struct partition *p)
{
	return p->index;
}

uint32_t sym_nodes_n(const struct partition *p)
{
	return p->derived ? derived_n(p->derived, SYM_NODE) :
						segvec_n(&symbols_read_shared(p)->vec[SYM_NODE]);
}

/* Functions and strings that a derived partition has in addition: above all others. */
static inline uint32_t symbols_read_derived_end(const struct partition *p, enum sym_kind kind)
{
	if (__builtin_expect(!p->derived, 1))
		return 0;
	return kind == SYM_FUNCTION ? derived_functions_end(p->derived) :
								  derived_strings_end(p->derived);
}

uint32_t sym_functions_n(const struct partition *p)
{
	uint32_t end = symbols_read_derived_end(p, SYM_FUNCTION);

	if (end)
		return end;
	return p->named ? named_n(p->named, SYM_FUNCTION) :
					  segvec_n(&symbols_read_shared(p)->vec[SYM_FUNCTION]);
}

uint32_t sym_locations_n(const struct partition *p)
{
	return p->derived ? derived_n(p->derived, SYM_LOCATION) :
						segvec_n(&symbols_read_shared(p)->vec[SYM_LOCATION]);
}

uint32_t sym_mappings_n(const struct partition *p)
{
	return segvec_n(&symbols_read_shared(p)->vec[SYM_MAPPING]);
}

uint32_t sym_label_sets_n(const struct partition *p)
{
	return segvec_n(&symbols_read_shared(p)->vec[SYM_LABEL_SET]);
}

uint32_t sym_strings_n(const struct partition *p)
{
	uint32_t end = symbols_read_derived_end(p, SYM_STRING);

	if (end)
		return end;
	return p->named ? named_n(p->named, SYM_STRING) :
					  segvec_n(&symbols_read_shared(p)->vec[SYM_STRING]);
}

struct str sym_string(const struct partition *p, uint32_t id)
{
	const struct str *made = NULL;
	const void *at;

	if (__builtin_expect(p->derived != NULL, 0))
		made = derived_string(p->derived, id);
	if (__builtin_expect(p->named != NULL, 0) && !made)
		made = named_string_at(p->named, id);
	if (made)
		return *made;
	at = *(const void *const *)segvec_at(&symbols_read_shared(p)->vec[SYM_STRING], id);
	return at ? sym_text(at) : STR("");
}

struct str sym_function_name(const struct partition *p, const struct sym_function *f)
{
	if (__builtin_expect(!f->shown, 1) || f->shown == SYM_SHOWN_AS_NAMED)
		return sym_string(p, f->name);
	return sym_text(*(const void *const *)segvec_at(&symbols_read_shared(p)->shown, f->shown - 1));
}

bool sym_has_shown(const struct partition *p)
{
	return atomic_load_explicit(&symbols_read_shared(p)->has_shown, memory_order_relaxed);
}

bool sym_has_own_functions(const struct partition *p)
{
	return p->named || symbols_read_derived_end(p, SYM_FUNCTION);
}

bool sym_has_bare(const struct partition *p)
{
	return atomic_load_explicit(&symbols_read_shared(p)->has_bare, memory_order_relaxed);
}

const struct sym_function *sym_function(const struct partition *p, uint32_t id)
{
	const struct sym_function *made = NULL;

	if (__builtin_expect(p->derived != NULL, 0))
		made = derived_function(p->derived, id);
	if (__builtin_expect(p->named != NULL, 0) && !made)
		made = named_function_at(p->named, id);
	return made ? made : segvec_at(&symbols_read_shared(p)->vec[SYM_FUNCTION], id);
}

const struct sym_mapping *sym_mapping(const struct partition *p, uint32_t id)
{
	return segvec_at(&symbols_read_shared(p)->vec[SYM_MAPPING], id);
}

struct sym_location sym_location(const struct partition *p, uint32_t id)
{
	const struct sym_location *made;

	if (__builtin_expect(p->derived != NULL, 0))
		return *derived_location(p->derived, id);
	if (__builtin_expect(p->named != NULL, 0) && (made = named_location_at(p->named, id)))
		return *made;
	return partition_location(symbols_read_shared(p), id);
}

bool sym_has_address(const struct partition *p, const struct sym_location *l)
{
	const struct sym_mapping *m = l->mapping == SYM_NONE ? NULL : sym_mapping(p, l->mapping);

	if (m && l->address == SYM_NO_ADDRESS)
		return false;
	return l->address || (m && (m->size || m->offset));
}

struct sym_node sym_node(const struct partition *p, uint32_t id)
{
	struct stack_node n;

	if (__builtin_expect(p->derived != NULL, 0))
		return derived_node(p->derived, id);
	n = stack_node_at(partition_nodes(symbols_read_shared(p)), id);
	return (struct sym_node){ n.parent, n.tag ? (n.tag >> 1) - 1 : SYM_NONE };
}

/* The base's mark does not know the functions of locations that got lines: it may be recursive. */
static inline bool symbols_read_is_recursive(const struct partition *p, struct stack_node n)
{
	return (n.tag & 1) || (p->named && n.tag && named_location_at(p->named, (n.tag >> 1) - 1));
}

bool sym_node_recursive(const struct partition *p, uint32_t id)
{
	if (__builtin_expect(p->derived != NULL, 0))
		return derived_node_recursive(p->derived, id);
	return symbols_read_is_recursive(p, stack_node_at(partition_nodes(symbols_read_shared(p)), id));
}

struct sym_node sym_node_marked(const struct partition *p, uint32_t id, bool *recursive)
{
	struct stack_node n;

	if (__builtin_expect(p->derived != NULL, 0)) {
		*recursive = derived_node_recursive(p->derived, id);
		return derived_node(p->derived, id);
	}
	n = stack_node_at(partition_nodes(symbols_read_shared(p)), id);
	*recursive = symbols_read_is_recursive(p, n);
	return (struct sym_node){ n.parent, n.tag ? (n.tag >> 1) - 1 : SYM_NONE };
}

struct sym_label_set sym_label_set(const struct partition *p, uint32_t id)
{
	return *(const struct sym_label_set *)segvec_at(
		&symbols_read_shared(p)->vec[SYM_LABEL_SET], id);
}

const struct sym_header *sym_header(const struct partition *p, uint32_t id)
{
	if (__builtin_expect(p->derived != NULL, 0))
		return derived_header(p->derived, id);
	return &((const struct header_item *)segvec_at(&symbols_read_shared(p)->vec[SYM_HEADER], id))
				->h;
}

uint32_t sym_header_typeset(const struct partition *p, uint32_t header)
{
	return ((const struct header_item *)segvec_at(&p->vec[SYM_HEADER], header))->typeset;
}

uint32_t sym_typeset_header(const struct partition *p, uint32_t header)
{
	struct partition *w = (struct partition *)(uintptr_t)p; /* its lock only */
	uint32_t found;

	mutex_lock(&w->types_lock);
	found = p->typeset_header[sym_header_typeset(p, header)];
	mutex_unlock(&w->types_lock);
	return found;
}

bool sym_exists(const struct partition *p, enum sym_kind kind, uint32_t id)
{
	if (p->derived && (kind == SYM_NODE || kind == SYM_LOCATION || kind == SYM_HEADER))
		return id < derived_n(p->derived, kind);
	if (p->derived && kind == SYM_STRING && derived_string(p->derived, id))
		return id < derived_strings_end(p->derived);
	if (p->derived && kind == SYM_FUNCTION && derived_function(p->derived, id))
		return id < derived_functions_end(p->derived);
	if (p->named && kind == SYM_STRING && named_string_at(p->named, id))
		return true;
	if (p->named && kind == SYM_FUNCTION && named_function_at(p->named, id))
		return true;
	return segvec_has(&symbols_read_shared(p)->vec[kind], id);
}

uint32_t sym_next(const struct partition *p, enum sym_kind kind, uint32_t id)
{
	assert(!p->base);
	return segvec_next(&p->vec[kind], id);
}

bool sym_key_eq(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(sym_string(ctx, id), *(const struct str *)key);
}

bool sym_has_label_key(const struct partition *p, struct str key)
{
	struct partition *w = (struct partition *)(uintptr_t)symbols_read_shared(p); /* its lock only */
	bool found;

	mutex_lock(&w->keys_lock);
	found = map_find(&w->keys, hash_bytes(key.ptr, key.len, 0), sym_key_eq, w, &key) != MAP_NONE;
	mutex_unlock(&w->keys_lock);
	return found;
}

void sym_label_value(const struct partition *p, uint32_t label_set, struct str key, struct buf *out)
{
	struct sym_label_set set = sym_label_set(p, label_set);

	for (uint32_t i = 0; i < set.n; i++) {
		if (!str_eq(sym_string(p, set.v[i].key), key))
			continue;
		if (set.v[i].str)
			buf_add_str(out, sym_string(p, set.v[i].str));
		else if (set.v[i].num || set.v[i].num_unit)
			buf_add_i64(out, set.v[i].num);
		return;
	}
}
