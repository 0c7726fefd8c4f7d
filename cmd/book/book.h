/*
 * The book's generated parts: a table of names and of functions that write Markdown.
 * build/book_parts DIR writes DIR/NAME.md of each; a chapter takes one in by a line {{NAME}}.
 *
 * A new part is a row in main.c and a function here. Headings of parts begin at the third level.
 *
 * Errors:    whatever keeps a part from being whole ends the build: ERR_INVALID, ERR_NOT_FOUND,
 * ERR_NOMEM. Threads:   one.
 */
#ifndef CMD_BOOK_BOOK_H
#define CMD_BOOK_BOOK_H

#include "base/err.h"
#include "base/str.h"

struct book_part {
	const char *name;
	enum err_code (*write)(const struct book_part *part, struct buf *out, struct err *err);
};

enum err_code config_part_write(const struct book_part *part, struct buf *out, struct err *err);
enum err_code config_part_write_profiles(
	const struct book_part *part, struct buf *out, struct err *err);
enum err_code config_part_write_foreign(
	const struct book_part *part, struct buf *out, struct err *err);
enum err_code flags_part_write_server(
	const struct book_part *part, struct buf *out, struct err *err);
enum err_code flags_part_write_tool(const struct book_part *part, struct buf *out, struct err *err);
enum err_code flags_part_write_exits(
	const struct book_part *part, struct buf *out, struct err *err);
enum err_code metrics_part_write(const struct book_part *part, struct buf *out, struct err *err);
/* Reads examples/rules/ below the working directory. */
enum err_code alerts_part_write(const struct book_part *part, struct buf *out, struct err *err);
enum err_code functions_part_write(const struct book_part *part, struct buf *out, struct err *err);

#define API_PART_PREFIX "api-"
/* The part is named by the prefix and a tag of operations. */
enum err_code api_part_write(const struct book_part *part, struct buf *out, struct err *err);

struct config_walk;
/* ERR_INVALID: a schema that no part prints, or a key that lacks its help. */
MUST_CHECK enum err_code config_part_check(struct err *err);
/* The same of these schemata. */
MUST_CHECK enum err_code config_part_find_problems(const struct config_walk *w, struct err *err);

#endif
