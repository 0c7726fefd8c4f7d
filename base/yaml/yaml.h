/*
 * YAML: a document as a tree of nodes with their places, and a table-driven decoder into structs.
 *
 * The tree is bounded: the file's size before libyaml sees a byte; nesting, number of nodes and
 * alias expansion while it reads (an alias may form a cycle: refused). Duplicate keys are refused.
 *
 * Errors:    ERR_INVALID "FILE:LINE:COLUMN: message"; ERR_LIMIT the same with the limit's name.
 * Ownership: nodes and decoded strings live in the arena given.
 * Threads:   values.
 */
#ifndef BASE_YAML_YAML_H
#define BASE_YAML_YAML_H

#include "base/arena.h"
#include "base/str.h"

#define YAML_FILE_BYTES_MAX (1u << 20)
#define YAML_DEPTH_MAX 64
#define YAML_NODES_MAX 400000u

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_node {
	enum yaml_kind kind;
	uint32_t line, column; /* from 1 */
	const char *file;
	struct str text; /* scalar */
	bool plain; /* scalar without quotes: null, true, numbers are only recognised there */
	struct yaml_node *key; /* in a mapping: this value's key */
	struct yaml_node *child, *next; /* children in order */
	size_t n; /* number of children */
};

/* An empty file gives a null node; more than one document is ERR_INVALID. `file` is copied. */
MUST_CHECK enum err_code yaml_parse(
	struct arena *a, const char *file, struct str text, struct yaml_node **out, struct err *err);
/* NULL when missing, or when mapping is none. */
struct yaml_node *yaml_get(const struct yaml_node *mapping, const char *key);
bool yaml_is_null(const struct yaml_node *n); /* NULL, empty plain, ~, null */
/* The node's type, for messages: "!!str" "!!int" "!!float" "!!bool" "!!null" "!!seq" "!!map". */
const char *yaml_tag(const struct yaml_node *n);
/* err_set with "FILE:LINE:COLUMN: " in front. */
enum err_code yaml_err(const struct yaml_node *n, struct err *err, enum err_code code,
	const char *fmt, ...) PRINTF_LIKE(4, 5);

/* How to read one field of a struct. Fields that are missing in the file keep their values. */
enum yaml_type {
	YAML_STRING, /* struct str */
	YAML_SECRET, /* struct str, shown as <secret> */
	YAML_BOOL, /* bool */
	YAML_INT, /* int64_t */
	YAML_UINT, /* uint64_t */
	YAML_FLOAT, /* double */
	YAML_DURATION, /* int64_t, nanoseconds */
	YAML_BYTES, /* uint64_t, a unit is required */
	YAML_STRUCT, /* nested struct, by `schema` */
	YAML_LIST, /* struct yaml_list of `schema` structs (or of strings where schema is NULL) */
	YAML_STRING_MAP, /* struct labels: string -> string, sorted by key */
	YAML_CUSTOM, /* by `decode` */
};

struct yaml_list {
	void *v; /* array of `size` byte items in the arena; struct str items for strings */
	size_t n;
};

struct yaml_schema;
struct yaml_problems;

struct yaml_ctx {
	struct arena *arena;
	struct str dir; /* of the file: relative paths are relative to it */
	void *user; /* for custom decoders */
	struct yaml_problems *problems; /* all of them (base/yaml/problems.h); NULL: the first error */
	bool take_foreign; /* YAML_FOREIGN_SECTION fields are passed over */
};

typedef enum err_code (*yaml_decode_fn)(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err);

struct yaml_field {
	const char *name;
	enum yaml_type type;
	size_t offset;
	const struct yaml_schema *schema; /* of YAML_CUSTOM: keys of the mappings it takes, or NULL */
	yaml_decode_fn decode;
	const char *help; /* sentences in Markdown: the book prints them, and the default */
	size_t set_offset; /* offset + 1 of a bool that becomes true with a present field; 0: none */
	/* More for the book; NULL: nothing to say. */
	const char *takes; /* "URL" for a string; of YAML_CUSTOM all, or what is before the schema's */
	const char *unset; /* what counts without the field, if the schema's `defaults` do not say so */
	const char *limits, *example; /* "1 to 255"; a value in YAML */
	const struct yaml_schema *home; /* the schema that describes this field for all that have it */
};

/* A field of another program's configuration, which people bring along. */
enum yaml_foreign_kind {
	YAML_FOREIGN_HINT, /* an error, and `text`: what to write instead */
	YAML_FOREIGN_HARMLESS, /* a warning, and `text`: what it does not do here */
	YAML_FOREIGN_EMPTY, /* the same while its value is empty, else an error and the text */
	YAML_FOREIGN_SECTION, /* the same with take_foreign, else an error that says so */
};

struct yaml_foreign {
	const char *name;
	enum yaml_foreign_kind kind;
	const char *text; /* follows "field NAME ..., " or "NAME is not used here: " */
};

struct yaml_schema {
	const char *name; /* in messages: "field x not found in type NAME" */
	size_t size;
	const struct yaml_field *fields;
	size_t fields_n;
	void (*defaults)(struct yaml_ctx *ctx, void *out); /* before the fields; NULL: zeroed */
	/* after the fields; NULL: nothing to check */
	enum err_code (*check)(
		struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err);
	const struct yaml_foreign *const
		*foreign; /* tables that end with a name NULL; ends with NULL */
};

/*
 * Strict: an unknown field is an error at its place, with a hint from the schema's foreign fields
 * or the nearest name that it has. *out first gets its defaults (zero if the schema has none, but
 * its nested structs get theirs). n may be NULL or null: the defaults stay, and `check` is not
 * called. A field whose value is null counts as missing. A nested struct that is present starts
 * from its own schema's `defaults`, or, without them, from the values that the outer ones gave it.
 * A null item in a list of structs is an error, "empty or null <schema name> section"; in a list of
 * strings it is "". Empty values of a string map are dropped.
 */
MUST_CHECK enum err_code yaml_decode(struct yaml_ctx *ctx, const struct yaml_schema *schema,
	const struct yaml_node *n, void *out, struct err *err);

/* NULL: the schema has no such field; no such foreign field. */
const struct yaml_field *yaml_field_find(const struct yaml_schema *schema, struct str name);
const struct yaml_foreign *yaml_foreign_find(const struct yaml_schema *schema, struct str name);

/*
 * A copy of a decoded struct that outlives the arena it was decoded in: its strings, maps and lists
 * are copied. What custom decoders made is copied as bytes, so what that points to is the caller's
 * to copy.
 */
MUST_CHECK enum err_code yaml_dup(
	struct arena *a, const struct yaml_schema *schema, const void *from, void *to, struct err *err);

/* How a value in a mapping is shown; its key is value->key, the mapping's own mapping->key. */
enum yaml_shown {
	YAML_SHOWN,
	YAML_HIDDEN, /* as <secret>, a list as [<secret>] */
	YAML_URL, /* it, or each item of it, as base/hidden.h shows URLs */
};
typedef enum yaml_shown (*yaml_shown_fn)(
	const struct yaml_node *mapping, const struct yaml_node *value);

/* The tree as YAML text again; shown NULL: all of it. */
void yaml_print(struct buf *out, const struct yaml_node *n, yaml_shown_fn shown);

#endif
