/*
 * Partition, the inside of symbols.h: tables of one partition and how they are filled.
 *
 * A partition is one epoch of a job. Each kind of symbol is a segmented vector by id, and a
 * table from content to id that only the writer uses; partitions that are only read (`lookup`
 * false) have no tables. What a symbol refers to has been published before it. Ids 0 of strings,
 * nodes and label sets are "", the empty stack and the empty set; they exist everywhere and are
 * stored nowhere.
 *
 * Errors:  ERR_LIMIT (names the partition, the kind and the limit), ERR_NOMEM, ERR_CORRUPT
 * (loading). Threads: functions that change the partition need partition->lock.
 */
#ifndef TSDB_SYMBOLS_PARTITION_H
#define TSDB_SYMBOLS_PARTITION_H

#include "base/map.h"
#include "base/thread.h"
#include "proto/kinds.h"
#include "tsdb/symbols/leafcache.h"
#include "tsdb/symbols/location.h"
#include "tsdb/symbols/nodemap.h"
#include "tsdb/symbols/segvec.h"
#include "tsdb/symbols/symbols.h"

struct symbol_limits {
	uint32_t nodes_max, strings_max, label_sets_max; /* locations as nodes, functions as strings */
	uint64_t bytes_max;
};

#define SYM_MAPPINGS_MAX (1u << 17) /* per partition */
#define SYM_HEADERS_MAX \
	(1u << 20) /* per partition: about one per process, where addresses are random */
#define SYM_TYPES_MAX 64u /* sample types of a profile */

struct header_item {
	struct sym_header h;
	uint32_t typeset; /* index of the distinct (types, period type): headers differ in mappings
				 mostly */
};

struct stored_symbols;
struct derived;
struct named;
struct shown_names;

struct partition {
	/* Made by a query: the partition whose symbols it shares; all below `base` but the name is
	 * unused. At least one of the two above it is set then. */
	const struct derived *derived; /* stacks of its own: derive.h */
	const struct named *named; /* names of its own: named.h */
	const struct partition *base; /* NULL: it has its own symbols */
	uint32_t index; /* among those in memory, of all databases */
	uint32_t id; /* of the job, on disk */
	uint32_t epoch;
	bool lookup; /* has tables: content can be found, and made */
	struct str name;
	struct symbol_limits limits;
	struct mutex lock;
	struct segvec vec[SYM_KINDS];
	struct idtable table[SYM_KINDS]; /* by content: symbols_table.c; nodes: nodemap.h */
	struct leafcache leaves;
	struct segvec heads; /* of nodes: see nodemap.h */
	struct segvec shown; /* texts: what functions are shown as, by sym_function.shown - 1 */
	uint32_t next[SYM_KINDS]; /* the id that the next new symbol gets: above all that were ever
					 given */
	struct arena arena; /* bytes of strings, lines, labels, header arrays: never moved */
	char *text_at, *text_end; /* slab of the arena that strings are packed into */
	char *list_at, *list_end; /* and one for lines, labels and header arrays */
	_Atomic size_t bytes; /* without shown_names */
	_Atomic bool has_shown; /* sym_has_shown */
	_Atomic bool has_bare; /* sym_has_bare */
	_Atomic bool damaged; /* some symbols were lost: rows are checked for them */
	uint32_t overflow_set; /* SYM_NONE until made */
	struct mutex types_lock; /* guards typeset_header, for readers */
	struct map typesets;
	uint32_t *typeset_header; /* a header that has it */
	uint32_t typesets_n, typesets_cap;
	struct mutex keys_lock; /* guards keys: sample label keys in use */
	struct map keys;
	_Atomic uint64_t functions_put; /* how often */
	_Atomic(struct shown_names *) shown_names; /* shown.h; NULL: nobody asked yet */
	struct stored_symbols *stored; /* list, one per window that takes rows */
};

static inline struct stack_nodes partition_nodes(const struct partition *p)
{
	return (struct stack_nodes){ &p->vec[SYM_NODE], &p->heads };
}

static inline const struct packed_location *partition_packed_location(
	const struct partition *p, uint32_t id)
{
	return segvec_at_of(&p->vec[SYM_LOCATION], id, sizeof(struct packed_location));
}

static inline struct sym_location partition_location(const struct partition *p, uint32_t id)
{
	return location_unpack(partition_packed_location(p, id));
}

/* A string of the partition, as it was stored: behind its length. */
static inline struct str sym_text(const void *text)
{
	const unsigned char *at = text;
	size_t n = 0;

	for (unsigned shift = 0;; shift += 7) {
		n |= (size_t)(*at & 127) << shift;
		if (*at++ < 128)
			return (struct str){ (const char *)at, n };
	}
}

MUST_CHECK enum err_code partition_open(struct str name, uint32_t id, uint32_t index,
	const struct symbol_limits *limits, struct partition **out, struct err *err);
void partition_close(struct partition *p);
size_t partition_bytes(const struct partition *p); /* memory, of all that it has */
/* The same in the caller's memory, zeroed. */
MUST_CHECK enum err_code partition_init(struct partition *p, struct str name, uint32_t id,
	uint32_t index, const struct symbol_limits *limits, struct err *err);
void partition_release(struct partition *p);

/* Ids of content, made where they are missing. */
MUST_CHECK enum err_code sym_intern_string(
	struct partition *p, struct str s, uint32_t *id, struct err *err);
MUST_CHECK enum err_code sym_intern_mapping(
	struct partition *p, const struct sym_mapping *m, uint32_t *id, struct err *err);
MUST_CHECK enum err_code sym_intern_function(
	struct partition *p, const struct sym_function *f, uint32_t *id, struct err *err);
MUST_CHECK enum err_code sym_intern_location(
	struct partition *p, const struct sym_location *l, uint32_t *id, struct err *err);
MUST_CHECK enum err_code sym_intern_node(
	struct partition *p, uint32_t parent, uint32_t location, uint32_t *id, struct err *err);
/* A node that is not there. distinct: no function of the location is in the parent's stack, and
 * none twice in the location; false: the caller does not know. */
MUST_CHECK enum err_code sym_add_node(struct partition *p, uint32_t parent, uint32_t location,
	bool distinct, uint32_t *id, struct err *err);
/* set->v is in canonical order (sym_label_set_sort). */
MUST_CHECK enum err_code sym_intern_label_set(struct partition *p, const struct sym_label_set *set,
	uint32_t *id, bool *overflow, struct err *err);
MUST_CHECK enum err_code sym_intern_header(
	struct partition *p, const struct sym_header *h, uint32_t *id, struct err *err);
/* The hint of a location, which needs no names: address, mapping, number of lines and first line
 * number. Of l->lines only the first line's number is read. */
uint64_t sym_hint_hash(const struct sym_location *l);
void sym_hint_prefetch(const struct partition *p, uint64_t hash);
/* A location that may be it, or SYM_NONE. */
uint32_t sym_hint_guess(const struct partition *p, uint64_t hash);
void sym_label_set_sort(struct sym_label *s, uint32_t n);

/* Loading: gives content the id it has on disk. ERR_CORRUPT: the id has other content, or the
 * content refers to something that is missing. */
union sym_content {
	struct str string;
	struct sym_mapping mapping;
	struct sym_function function;
	struct sym_location location;
	struct sym_node node;
	struct sym_label_set label_set;
	struct sym_header header;
};
MUST_CHECK enum err_code sym_load(struct partition *p, enum sym_kind kind, uint32_t id,
	const union sym_content *c, bool recursive, struct err *err);
/* As sym_load of each. ERR_CORRUPT: some were left out; other errors end it. */
struct sym_stored_node {
	uint32_t id, parent, location;
	bool recursive;
};
MUST_CHECK enum err_code sym_load_nodes(struct partition *p, const struct sym_stored_node *s,
	size_t n, uint64_t *loaded, struct err *err);
/* Of a partition without maps: a node that is not there. False: out of memory. */
MUST_CHECK bool sym_put_node(
	struct partition *p, uint32_t id, const struct sym_node *n, bool recursive);
/* Puts content under an id that has none, into the vectors and, where the partition has tables,
 * into its table; hash: of the content. */
MUST_CHECK enum err_code sym_put(struct partition *p, enum sym_kind kind, uint64_t hash,
	uint32_t id, const union sym_content *c, bool recursive, struct err *err);
/* An id that has no location; what it refers to is not looked at. False: out of memory. */
MUST_CHECK bool sym_put_location(struct partition *p, uint32_t id, const struct sym_location *l);
/* The next new symbol of this kind gets an id above this one. */
void sym_reserve(struct partition *p, enum sym_kind kind, uint32_t id);
/* The kind of which more than half of a limit is used, or NULL. */
const char *sym_near_limit(const struct partition *p);

/* Content as such: what interning and loading compare. */
uint64_t sym_content_hash(enum sym_kind kind, const union sym_content *c);
bool sym_content_same(
	const struct partition *p, enum sym_kind kind, uint32_t id, const union sym_content *c);
bool sym_content_complete(const struct partition *p, enum sym_kind kind, uint32_t id,
	const union sym_content *c); /* what it refers to is there */
/* The ids it refers to are given to nothing new. */
void sym_content_reserve(struct partition *p, enum sym_kind kind, const union sym_content *c);
/* The name that a function of p is shown under, if it differs; notes that p has such a name. */
bool sym_shown_name(struct partition *p, const struct sym_function *f, struct buf *out);
/* The id of this content, or SYM_NONE. Not nodes. */
uint32_t sym_find(const struct partition *p, enum sym_kind kind, const union sym_content *c,
	uint64_t content_hash);
/* What was not found can be found from now on. False: out of memory. */
bool sym_table_add(struct partition *p, enum sym_kind kind, const union sym_content *c,
	uint64_t content_hash, uint32_t id);
uint64_t sym_hash_types(const struct sym_header *h);
bool sym_same_types(const struct sym_header *a, const struct sym_header *b);

bool sym_key_eq(const void *ctx, const void *key, uint32_t id); /* of partition->keys */
uint32_t sym_header_typeset(const struct partition *p, uint32_t header);
/* One header for all that have its types. */
uint32_t sym_typeset_header(const struct partition *p, uint32_t header);

/* A profile in ids: what db_append makes of it, in an arena. */
struct interned {
	uint32_t header;
	uint32_t n; /* samples with a value that is not 0 */
	uint64_t *keys; /* stack << 32 | label set, ascending */
	uint32_t *samples; /* indexes into the profile, in the order of keys; equal keys in the
				  profile's order */
	bool overflow; /* some label sets were folded */
};

MUST_CHECK enum err_code sym_intern_profile(struct partition *p, const struct pprof *pprof,
	const enum value_kind *kinds, struct arena *a, struct interned *out, struct err *err);

/* Sorts keys and carries values along; equal keys keep their order. Scratch of n items each. */
void keys_sort(
	uint64_t *keys, uint32_t *values, uint32_t n, uint64_t *keys_tmp, uint32_t *values_tmp);

#endif
