/*
 * Alloy's configuration language: blocks, attributes and expressions as a tree, within limits.
 *
 * A file is a list of statements: `name = expression`, or `name.of.block "label" { statements }`.
 * A line ends a statement, unless a bracket is open or the line ends with an operator. Expressions
 * have strings, raw strings, numbers, true, false, null, lists, objects, references, calls, indices
 * and Go's operators. Comments are // and slash-star; those above a statement are kept.
 *
 * Errors:    ERR_INVALID "FILE:LINE:COLUMN: message"; ERR_LIMIT the same for nesting and nodes.
 * Ownership: everything is in the arena, or points into the text.
 * Threads:   values.
 * Source:    the language's documentation, as of Alloy 1.x.
 */
#ifndef CMD_EPITOOL_CONVERT_ALLOY_H
#define CMD_EPITOOL_CONVERT_ALLOY_H

#include "base/arena.h"
#include "base/str.h"

#define ALLOY_DEPTH_MAX 64
#define ALLOY_NODES_MAX 50000u
#define ALLOY_FILE_BYTES_MAX (1u << 20)

enum alloy_kind {
	ALLOY_STRING, /* text: its value */
	ALLOY_NUMBER, /* text: as written */
	ALLOY_BOOL,
	ALLOY_NULL,
	ALLOY_LIST, /* children: items */
	ALLOY_OBJECT, /* children: values, each with its key */
	ALLOY_NAME, /* text: "a.b.c" */
	ALLOY_CALL, /* children: the function, then arguments */
	ALLOY_ACCESS, /* child: of what; text: the field */
	ALLOY_INDEX, /* children: of what, which */
	ALLOY_OPERATOR, /* text: the operator; children: one or two operands */
};

struct alloy_expr {
	enum alloy_kind kind;
	uint32_t line, column;
	unsigned height; /* of what is below, at most ALLOY_DEPTH_MAX for each level of brackets */
	struct str text, key;
	struct str source; /* as written, for messages */
	struct alloy_expr *child, *next;
};

struct alloy_statement {
	uint32_t line, column;
	struct str name; /* "discovery.relabel" */
	struct str label; /* of a block; "" none */
	struct str comment; /* the lines above, without slashes */
	struct alloy_expr *value; /* of an attribute; NULL: a block */
	struct alloy_statement *child, *next; /* of a block: its statements */
};

MUST_CHECK enum err_code alloy_parse(struct arena *a, const char *file, struct str text,
	struct alloy_statement **out, struct err *err);

/* NULL: the block has no such attribute. */
const struct alloy_expr *alloy_attribute(const struct alloy_statement *block, const char *name);
/* A string, or strings joined by "+"; false: its value is not in the file. */
bool alloy_string(struct arena *a, const struct alloy_expr *e, struct str *out);

#endif
