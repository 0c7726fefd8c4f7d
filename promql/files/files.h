/*
 * Files: profiles that came with a query, or that were kept, as values of file("name").
 *
 * A file is read once per query. Its stacks are in a partition of their own, so that all operators
 * take it as they take what is stored. It has no series: its only label is the name that it would
 * be scraped under, so that it compares with merged profiles.
 *
 * Units:     bytes.
 * Errors:    those of the finder and of proto/any, with the place in the query and the file's
 *            name; ERR_INVALID: the file has no such type, or the query has steps; ERR_LIMIT: the
 *            query's memory, symbols of one file.
 * Ownership: values live in the arena of the query and in the set, until file_set_close.
 * Threads:   one query, one thread.
 */
#ifndef PROMQL_FILES_FILES_H
#define PROMQL_FILES_FILES_H

#include "promql/value/work.h"

struct found_file {
	struct str bytes; /* as it is on the disk of whom it belongs to: maybe compressed */
	struct str name; /* its name there; names of block and mutex profiles tell them apart */
};

/* Who has files. The bytes live in the arena, or longer than the query. */
struct file_finder {
	/* ERR_NOT_FOUND: there is none of that name. May be called again for a name. */
	enum err_code (*find)(
		void *ctx, struct str name, struct arena *a, struct found_file *out, struct err *err);
	void *ctx;
};

/* The files that one query has read. */
struct file_set;
MUST_CHECK enum err_code file_set_open(const struct file_finder *finder, struct budget *memory,
	struct file_set **out, struct err *err);
void file_set_close(struct file_set *s); /* NULL is fine */

/*
 * e is the call. type: a sample type ("alloc_space"), or one with the profile's name, as selectors
 * have it ("memory:alloc_space"); "": the default one.
 */
MUST_CHECK enum err_code files_value(struct work *work, struct file_set *set, const struct expr *e,
	struct str name, struct str type, struct value *out, struct err *err);

#endif
