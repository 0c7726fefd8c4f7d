/*
 * Items: the configuration that a conversion writes, as a tree of YAML with comments.
 *
 * What is left out stays as a comment, with the reason above it. Each reason is a note too, which
 * the command shows on standard error with its place in the file that is converted.
 *
 * Errors:    a failed allocation is remembered (conversion.failed); items are never NULL then, but
 *            the one spare item.
 * Ownership: everything lives in the conversion's arena; texts are copied or outlive it.
 * Threads:   one.
 */
#ifndef CMD_EPITOOL_CONVERT_ITEM_H
#define CMD_EPITOOL_CONVERT_ITEM_H

#include "base/yaml/yaml.h"

struct item {
	enum yaml_kind kind;
	struct str key; /* in a mapping */
	struct str text; /* of a scalar */
	bool plain; /* a scalar whose type is that of its text without quotes */
	bool left_out; /* printed as a comment */
	bool reason_only; /* of what is left out only the reason is printed */
	struct str above; /* lines of comment, without "# "; "" none */
	struct str behind; /* on the same line, "" none */
	struct item *child, **tail, *next;
};

struct note {
	struct note *next;
	uint32_t line, column;
	const char *text;
};

struct conversion {
	struct arena *arena;
	const char *file; /* that is converted, for messages */
	struct str source; /* its text */
	struct item *root; /* a mapping */
	struct note *notes, **notes_tail; /* in the order of the file that is written */
	bool failed; /* the arena did */
	struct item spare;
	struct source_line *lines; /* of a YAML source (comments.h); NULL: comments are not kept */
	size_t lines_n;
};

void conversion_init(struct conversion *c, struct arena *a, const char *file, struct str source);

/* Appends to a mapping (key) or a sequence (key ""). */
struct item *item_add(struct conversion *c, struct item *to, struct str key, enum yaml_kind kind);
void item_append(struct item *to, struct item *i); /* one that was added to NULL */
struct item *item_mapping(struct conversion *c, struct item *to, const char *key);
struct item *item_sequence(struct conversion *c, struct item *to, const char *key);
/* A string: quoted where a plain text would be something else. */
struct item *item_string(struct conversion *c, struct item *to, const char *key, struct str text);
/* Printed without quotes: a number, true, a duration. */
struct item *item_plain(struct conversion *c, struct item *to, const char *key, struct str text);
struct item *item_find(struct item *mapping, const char *key); /* NULL: none that is not left out */

/* Adds a line of comment above. */
void item_comment(struct conversion *c, struct item *i, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The same, and a note about that place. */
void item_note(struct conversion *c, struct item *i, uint32_t line, uint32_t column,
	const char *fmt, ...) PRINTF_LIKE(5, 6);
/* The item becomes a comment, "left out: WHY" above it; the note says "WHAT is left out: WHY". */
void item_leave_out(struct conversion *c, struct item *i, uint32_t line, uint32_t column,
	const char *what, const char *fmt, ...) PRINTF_LIKE(6, 7);

/* The whole tree as YAML. */
void items_print(struct buf *out, const struct conversion *c);

#endif
