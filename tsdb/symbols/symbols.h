/*
 * Symbols: what stacks are made of, for one partition (all series of one job share code, so one
 * table).
 *
 * Stacks are nodes of a tree: a node is (parent, location), node 0 is the empty stack, ids are
 * dense and a parent's id is below its children's. A stack's node is its leaf; the walk to the root
 * goes leaf -> outermost caller. Merging is adding into an array by node id; cum is one pass from
 * the last id to the first. Addresses are kept relative to their mapping's start, so pods whose
 * binaries are loaded at different addresses share locations; the row's header says where a
 * process had its mappings.
 *
 * Ids are given once for the life of the data directory (until the partition's epoch changes) and
 * never change meaning.
 *
 * Threads: one writer at a time (partition lock, taken inside db_append). Readers take no lock:
 *          symbols are immutable and their storage never moves.
 * Limits:  nodes, functions, strings and label sets per partition; passing one is ERR_LIMIT for
 *          that profile.
 */
#ifndef TSDB_SYMBOLS_SYMBOLS_H
#define TSDB_SYMBOLS_SYMBOLS_H

#include "base/str.h"

#define SYM_NONE UINT32_MAX

struct partition;

/* Numbered as on disk; each refers to earlier ones only (and nodes to nodes of smaller id). */
enum sym_kind {
	SYM_STRING = 1,
	SYM_MAPPING,
	SYM_FUNCTION,
	SYM_LOCATION,
	SYM_NODE,
	SYM_LABEL_SET,
	SYM_HEADER,
	SYM_KINDS
};

struct sym_mapping {
	uint64_t size, offset; /* limit - start */
	uint32_t filename, build_id; /* strings */
	uint32_t ordinal; /* tells apart equal mappings of one process */
	bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
};

#define SYM_SHOWN_AS_NAMED UINT32_MAX /* `name` is shown, and the symbol is `system_name` */

struct sym_function {
	uint32_t name, system_name, filename; /* strings */
	uint32_t shown; /* not stored; not 0: `name`, or what is shown, is not the symbol: see
					   sym_function_name and SYM_SHOWN_AS_NAMED */
	int64_t start_line;
};

/* Of a location in a mapping, whose first byte has address 0. */
#define SYM_NO_ADDRESS UINT64_MAX

/* Packed: there are as many as code addresses. A profile with a wider column is refused. */
struct sym_line {
	uint32_t function;
	int64_t line;
	int32_t column;
} __attribute__((packed, aligned(4)));

struct sym_location {
	/* Minus its mapping's start, or SYM_NO_ADDRESS; as it is without mapping. sym_has_address. */
	uint64_t address;
	uint32_t mapping; /* SYM_NONE: none */
	uint32_t lines_n : 31;
	uint32_t is_folded : 1;
	const struct sym_line *lines; /* innermost inlined frame first */
};

struct sym_node {
	uint32_t parent, location;
};

struct sym_label {
	uint32_t key, str, num_unit; /* strings; str 0: the value is num */
	int64_t num;
};

struct sym_label_set {
	const struct sym_label *v; /* in a canonical order; set 0 is empty */
	uint32_t n;
};

/* All that profiles of one target share: everything but samples and times. */
struct sym_type {
	uint32_t type, unit; /* strings */
	uint8_t kind; /* enum value_kind as stored: KIND_GAUGE or KIND_DELTA */
	bool was_cumulative;
};

struct sym_header {
	const struct sym_type *types;
	uint32_t types_n;
	uint32_t period_type, period_unit; /* strings */
	uint32_t drop_frames, keep_frames, default_sample_type, doc_url; /* strings */
	const uint32_t *comments; /* strings */
	uint32_t comments_n;
	const uint32_t *mappings; /* in the profile's order */
	const uint64_t *mapping_start; /* where this process had each */
	uint32_t mappings_n;
};

struct str partition_name(const struct partition *p); /* the job */
uint32_t partition_index(const struct partition *p); /* dense, for arrays over partitions */

/* Counts as published now. Some ids below are holes: symbols that no loaded block or window uses,
 * which may be filled at any time. A walk over all ids asks sym_exists for each; ids in rows and
 * symbols are there. */
bool sym_exists(const struct partition *p, enum sym_kind kind, uint32_t id);
/* The first one at or after this id that exists, or SYM_NONE: for walks. Ids may be far apart. Not
 * of partitions that a query made. */
uint32_t sym_next(const struct partition *p, enum sym_kind kind, uint32_t id);
uint32_t sym_nodes_n(const struct partition *p);
uint32_t sym_functions_n(const struct partition *p);
uint32_t sym_locations_n(const struct partition *p);
uint32_t sym_mappings_n(const struct partition *p);
uint32_t sym_label_sets_n(const struct partition *p);
uint32_t sym_strings_n(const struct partition *p);

struct str sym_string(const struct partition *p, uint32_t id); /* 0 is "" */
const struct sym_function *sym_function(const struct partition *p, uint32_t id);
/* The name that people see and ask for (proto/function_name.h); "": it has none. */
struct str sym_function_name(const struct partition *p, const struct sym_function *f);
/* Some function is shown under another name than it is stored under; of a partition that a query
 * made: some function of its base. */
bool sym_has_shown(const struct partition *p);
/* A query made it, with functions that its base does not have. */
bool sym_has_own_functions(const struct partition *p);
/* Some location was stored without lines: an address that may get names (named.h). */
bool sym_has_bare(const struct partition *p);
const struct sym_mapping *sym_mapping(const struct partition *p, uint32_t id);
struct sym_location sym_location(const struct partition *p, uint32_t id); /* lines: p's */
/*
 * False: the sender gave none. 0 is the first byte of a mapping that has a place in its file; it is
 * none without such a mapping, where the sender has counted from the binary's own start.
 */
bool sym_has_address(const struct partition *p, const struct sym_location *l);
struct sym_node sym_node(const struct partition *p, uint32_t id);
/* True when a function of the node's location is also in one of its ancestors (or twice in it).
 */
bool sym_node_recursive(const struct partition *p, uint32_t id);
/* Both at once, for passes over many nodes. */
struct sym_node sym_node_marked(const struct partition *p, uint32_t id, bool *recursive);
struct sym_label_set sym_label_set(const struct partition *p, uint32_t id);
const struct sym_header *sym_header(const struct partition *p, uint32_t id);

/* Some label set of the partition has this key. Value of a key in a set as text; "" when missing.
 */
bool sym_has_label_key(const struct partition *p, struct str key);
void sym_label_value(
	const struct partition *p, uint32_t label_set, struct str key, struct buf *out);

#endif
