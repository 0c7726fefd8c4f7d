/*
 * Private to the room: what its files share.
 *
 * Split DWARF: the skeleton of a unit is in the binary, the unit in a .dwo file or a package
 * (split.c). Of these one is open at a time, as a struct dwarf_file that borrows .debug_addr and
 * .debug_ranges of the binary. A unit of it takes the bases that it lacks, and the line table, from
 * its skeleton, and is then read as any other unit.
 *
 * A unit is read in three steps: its entries (scopes.c) become scopes with ranges, its line table
 * (line_program.c) becomes rows, and flatten.c merges both into segments. What belongs to one unit
 * is in struct job, which the next unit uses again.
 *
 * Damage is ERR_INVALID: the unit is skipped. ERR_LIMIT and ERR_NOMEM end the whole file. Every
 * loop over bytes of the file takes steps from one budget that follows the size of the sections,
 * so lists that overlap or are named many times end it, too.
 */
#ifndef TSDB_DEBUGINFO_DWARF_INTERNAL_H
#define TSDB_DEBUGINFO_DWARF_INTERNAL_H

#include "tsdb/debuginfo/dwarf/dwarf.h"
#include "tsdb/debuginfo/elf/symbols.h"

/* Limits of one file or unit. The compilers' own output is far below all of them. */
#define UNITS_MAX (1u << 19)
#define ABBREVS_MAX (1u << 16) /* of a table */
#define ABBREV_ATTRS_MAX (1u << 19) /* of a table */
#define ABBREV_CACHE_BYTES (64u << 20)
#define DEPTH_MAX 4096u
#define CHAIN_MAX 32u
#define FILES_MAX (1u << 18) /* of a line table */
#define ROWS_MAX (8u << 20) /* of a unit */
#define RANGES_MAX (8u << 20) /* of a unit */
#define SCOPES_MAX (4u << 20) /* of a unit */
#define PATH_BYTES_MAX 4096u
/* A compiler's table needs less than one step a byte, each of several times at most. */
#define STEPS_A_BYTE 16u

#define NONE UINT32_MAX
#define MAP_MISS (UINT32_MAX - 1) /* number_map_find: the key is not there */

enum section {
	SEC_INFO,
	SEC_ABBREV,
	SEC_LINE,
	SEC_STR,
	SEC_LINE_STR,
	SEC_STR_OFFSETS,
	SEC_ADDR,
	SEC_RANGES,
	SEC_RNGLISTS,
	SEC_INDEX, /* of a package */
	SECTIONS
};

struct dwarf_encoding {
	uint16_t version;
	uint8_t offset_bytes, address_bytes;
};

/* An attribute as it is written; strings and references are resolved when they are wanted. */
struct dwarf_value {
	uint16_t form;
	uint64_t u;
	struct str s; /* FORM_STRING */
};

enum slot {
	SLOT_SIBLING,
	SLOT_NAME,
	SLOT_LINKAGE_NAME,
	SLOT_LOW_PC,
	SLOT_HIGH_PC,
	SLOT_RANGES,
	SLOT_ORIGIN,
	SLOT_SPECIFICATION,
	SLOT_DECL_FILE,
	SLOT_DECL_LINE,
	SLOT_CALL_FILE,
	SLOT_CALL_LINE,
	SLOT_STMT_LIST,
	SLOT_COMP_DIR,
	SLOT_STR_BASE,
	SLOT_ADDR_BASE,
	SLOT_RNGLISTS_BASE,
	SLOT_RANGES_BASE,
	SLOT_DWO_NAME,
	SLOT_DWO_ID,
	SLOTS
};

struct die {
	uint32_t has; /* a bit for each slot */
	struct dwarf_value v[SLOTS];
};

static inline const struct dwarf_value *die_value(const struct die *d, enum slot s)
{
	return d->has >> s & 1 ? &d->v[s] : NULL;
}

struct attr {
	uint16_t form;
	uint8_t slot; /* SLOTS: not wanted */
	int64_t implicit;
};

enum abbrev_kind { KIND_PLAIN, KIND_SKIP_CHILDREN, KIND_FUNCTION, KIND_INLINED };

struct abbrev {
	uint64_t code;
	uint32_t attr_first, attrs_n;
	uint32_t fixed_bytes, fixed_addresses, fixed_offsets, fixed_ref_addrs;
	uint32_t tag;
	uint8_t kind; /* enum abbrev_kind */
	bool children, fixed; /* fixed: the size follows from the numbers above */
};

struct abbrev_table {
	uint64_t offset;
	struct abbrev *v;
	struct attr *attrs;
	uint32_t n, cap, attrs_n, attrs_cap;
	bool dense; /* v[i].code is i + 1 */
};

struct dwarf_unit {
	uint64_t offset, first, end; /* of the header, the first entry, the next unit */
	uint64_t abbrev_offset;
	struct dwarf_encoding enc;
	uint8_t type; /* UT_ */
	enum { ROOT_UNREAD, ROOT_READ, ROOT_DAMAGED } root;
	bool is_done; /* read, by its split unit, or damaged */
	uint64_t str_first, rnglists_first; /* its part of a package */
	const struct dwarf_unit *skeleton; /* of a split unit */
	/* Of the first entry: */
	bool has_lines, is_skeleton, has_dwo_id;
	uint32_t tag;
	uint64_t low_pc, line_offset, str_base, addr_base, rnglists_base, ranges_base;
	uint64_t split_ranges_base; /* of a skeleton: what ranges of its unit count from */
	uint64_t dwo_id;
	struct str comp_dir, dwo_name;
};

/* A row of a package's index: where a unit's parts begin. */
struct package_row {
	uint64_t info, info_end;
	uint64_t abbrev, str_offsets, rnglists;
};

enum file_kind {
	FILE_MAIN, /* the binary */
	FILE_ALT, /* what dwz took out of it */
	FILE_SPLIT, /* a .dwo file or a package */
	FILE_KINDS
};

struct dwarf_file {
	enum file_kind kind;
	char label[48]; /* begins messages of its units; "" for the binary */
	struct str sections[SECTIONS];
	struct dwarf_unit *units; /* ascending */
	uint32_t units_n, units_cap;
	bool is_package;
	struct package_row *rows; /* by ascending info */
	uint32_t rows_n;
};

struct line_file {
	struct str name;
	uint32_t dir;
	uint32_t id; /* of symindex_file; NONE: not asked yet */
};

/* The header of a line table. */
struct line_table {
	const struct dwarf_file *file;
	const struct dwarf_unit *unit;
	struct dwarf_encoding enc;
	struct str *dirs;
	struct line_file *files;
	uint32_t dirs_n, dirs_cap, files_n, files_cap;
	struct str program;
	const unsigned char *opcode_lengths;
	uint8_t min_length, max_ops, line_range, opcode_base;
	int8_t line_base;
};

/* A map of numbers to functions. */
struct number_map {
	uint64_t *keys; /* + 1; 0: free */
	uint32_t *values;
	size_t cap, used;
};

struct scope {
	uint32_t function;
	uint32_t caller; /* frame that it is inlined into, NONE for a function of its own */
	uint32_t depth;
};

struct dwarf_range {
	uint64_t start, end;
	uint32_t scope;
};

struct dwarf_row {
	uint64_t address;
	uint32_t file, line; /* file: index in the line table */
};

struct sequence {
	uint64_t start, end;
	uint32_t row_first, rows_n;
};

/* What is read of one unit. */
struct dwarf_job {
	struct dwarf_file *file;
	struct dwarf_unit *unit;
	enum symindex_quality quality; /* of what it says */
	struct line_table *lines; /* NULL: it has none */
	struct scope *scopes;
	struct dwarf_range *ranges;
	struct dwarf_row *rows;
	struct sequence *sequences;
	uint32_t scopes_n, scopes_cap, ranges_n, ranges_cap, rows_n, rows_cap, sequences_n,
		sequences_cap;
	uint32_t *heap;
	uint32_t heap_n, heap_cap;
	uint32_t stack[DEPTH_MAX];
};

#define ABBREV_CACHE 1024u
#define LINES_CACHE 16u

/* A skeleton of the binary whose unit was not found yet. */
struct dwarf_skeleton {
	uint64_t dwo_id;
	uint32_t unit;
};

struct dwarf_reader {
	struct dwarf_file main, alt, split;
	bool has_alt;
	struct elf *elf; /* of main */
	struct symbol_map *symbols; /* of elf; NULL: not asked yet, or it has none */
	bool symbols_tried;
	struct dwarf_skeleton *skeletons; /* by ascending dwo_id */
	uint32_t skeletons_n;
	uint64_t split_bytes_left; /* that split files may still inflate to */
	struct symindex_builder *builder;
	struct dwarf_stats *stats;
	uint64_t steps_left, steps_max;
	struct abbrev_table *abbrevs[FILE_KINDS][ABBREV_CACHE];
	const struct abbrev_table *abbrevs_pinned; /* of the unit that is walked */
	size_t abbrevs_bytes;
	struct line_table *lines[FILE_SPLIT][LINES_CACHE]; /* split files have none */
	const struct line_table *lines_pinned;
	struct number_map local, global; /* entry's offset to function */
	struct buf path;
	struct dwarf_job job;
};

/* dwarf.c */
MUST_CHECK enum err_code dwarf_reader_open(
	struct elf *e, struct dwarf_stats *stats, struct dwarf_reader **out, struct err *err);
void dwarf_reader_close(struct dwarf_reader *r);
/* Loads a file's sections, whose bytes count for the budget of steps. */
enum err_code dwarf_file_load(
	struct dwarf_reader *r, struct elf *e, struct dwarf_file *f, struct err *err);
/* Reads a unit of code; ERR_INVALID: it is damaged. */
enum err_code dwarf_unit_read(
	struct dwarf_reader *r, struct dwarf_file *f, struct dwarf_unit *u, struct err *err);
/* Counts a damaged unit, and keeps the first one's message. Other errors are returned. */
enum err_code dwarf_note_unit(struct dwarf_reader *r, const struct dwarf_file *f,
	const struct dwarf_unit *u, enum err_code rc, struct err *why, struct err *err);
/* Counts a file beside the binary that is left out, and keeps the first message. */
void dwarf_note_file(
	struct dwarf_reader *r, const struct dwarf_file *f, enum err_code rc, const struct err *why);
/* The symbol at an address of the binary, as symbol_map_find. */
enum err_code dwarf_symbol(struct dwarf_reader *r, uint64_t address, bool *found, struct str *name,
	uint64_t *end, struct err *err);

/* split.c: reads the units of the files, and marks their skeletons as done. */
enum err_code split_read(struct dwarf_reader *r, const struct bundle *files, struct err *err);
/* Loads r->split of a .dwo file or package. */
enum err_code split_load(struct dwarf_reader *r, struct elf *e, struct err *err);
typedef enum err_code (*split_unit_fn)(
	struct dwarf_reader *r, struct dwarf_unit *u, void *ctx, struct err *err);
/* Each unit of r->split. *is_file: the error is of the file, and not what `each` returned. */
enum err_code split_each_unit(struct dwarf_reader *r, struct elf *e, split_unit_fn each, void *ctx,
	bool *is_file, struct err *err);
void split_unload(struct dwarf_reader *r);

/* package.c: a package's index becomes f->rows. */
enum err_code package_index(struct dwarf_file *f, struct err *err);
const struct package_row *package_row_at(const struct dwarf_file *f, uint64_t info);

/* reader.c */
enum err_code steps_take(struct dwarf_reader *r, uint64_t n, struct err *err);
enum err_code dwarf_damaged(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct cursor dwarf_bytes(const struct dwarf_file *f, enum section s, uint64_t offset);
uint64_t cursor_le(struct cursor *c, unsigned bytes); /* 1, 2, 3, 4 or 8 */
int64_t cursor_sleb(struct cursor *c);
struct str cursor_cstr(struct cursor *c); /* without its NUL */
uint32_t number_map_find(const struct number_map *m, uint64_t key);
bool number_map_add(struct number_map *m, uint64_t key, uint32_t value);
void number_map_clear(struct number_map *m);

/* form.c */
bool form_fixed(uint16_t form, struct abbrev *a); /* adds its size; false: it varies */
void form_read(
	struct cursor *c, struct dwarf_encoding enc, const struct attr *a, struct dwarf_value *out);
void form_skip(struct cursor *c, struct dwarf_encoding enc, uint16_t form);
bool value_is_address(const struct dwarf_value *v);
/* False: there is none, or it is not in its section. */
bool value_string(const struct dwarf_reader *r, const struct dwarf_file *f,
	const struct dwarf_unit *u, const struct dwarf_value *v, struct str *out);
bool value_address(const struct dwarf_file *f, const struct dwarf_unit *u,
	const struct dwarf_value *v, uint64_t *out);
bool address_at(
	const struct dwarf_file *f, const struct dwarf_unit *u, uint64_t index, uint64_t *out);

/* abbrev.c */
enum err_code abbrev_table(struct dwarf_reader *r, const struct dwarf_file *f, uint64_t offset,
	const struct abbrev_table **out, struct err *err);
const struct abbrev *abbrev_find(const struct abbrev_table *t, uint64_t code);
void abbrev_forget(struct dwarf_reader *r, enum file_kind kind);
void abbrev_release(struct dwarf_reader *r);
/* Reads the wanted attributes; c is behind the entry's code, then behind the entry. */
void die_read(struct cursor *c, struct dwarf_encoding enc, const struct abbrev_table *t,
	const struct abbrev *a, struct die *out);
void die_skip(struct cursor *c, struct dwarf_encoding enc, const struct abbrev_table *t,
	const struct abbrev *a);

/* units.c */
enum err_code units_scan(struct dwarf_reader *r, struct dwarf_file *f, struct err *err);
struct dwarf_unit *unit_at(struct dwarf_file *f, uint64_t offset); /* NULL: in none */
/* Reads the first entry, once. */
enum err_code unit_root(
	struct dwarf_reader *r, struct dwarf_file *f, struct dwarf_unit *u, struct err *err);

/* function.c: the function that an entry describes; *out NONE: it has no name. */
enum err_code function_of(struct dwarf_reader *r, struct dwarf_file *f, struct dwarf_unit *u,
	const struct die *d, uint32_t *out, struct err *err);

/* ranges.c: adds the entry's ranges to r->job, for `scope`. */
enum err_code ranges_add(
	struct dwarf_reader *r, const struct die *d, uint32_t scope, struct err *err);
bool dwarf_is_tombstone(const struct dwarf_unit *u, uint64_t address);

/* line_header.c */
enum err_code line_table(struct dwarf_reader *r, const struct dwarf_file *f,
	const struct dwarf_unit *u, struct line_table **out,
	struct err *err); /* *out NULL: the unit has none */
enum err_code line_file_id(
	struct dwarf_reader *r, struct line_table *t, uint64_t index, uint32_t *out, struct err *err);
enum err_code line_file_add(struct line_table *t, struct str name, uint64_t dir, struct err *err);
void line_tables_release(struct dwarf_reader *r);

/* line_program.c: fills rows and sequences of r->job. */
enum err_code line_program(struct dwarf_reader *r, struct err *err);

/* scopes.c: fills scopes and ranges of r->job. */
enum err_code scopes_read(struct dwarf_reader *r, struct err *err);

/* flatten.c: adds the segments of r->job to the builder. */
enum err_code dwarf_flatten(struct dwarf_reader *r, struct err *err);

#endif
