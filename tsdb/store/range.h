/*
 * Range reader: bytes of an immutable file by offset; where the file is, its user does not know.
 *
 * A local file today; an object store would be another implementation: a read is one request, so
 * callers read whole ranges and few of them.
 *
 * Errors:    ERR_IO, ERR_NOT_FOUND; ERR_CORRUPT where the file ends before the range does. Each
 *            message begins with the name.
 * Ownership: range_open_file hands *out to the caller, who ends it by range_close.
 * Threads:   any number of readers at once.
 */
#ifndef TSDB_STORE_RANGE_H
#define TSDB_STORE_RANGE_H

#include "base/err.h"
#include "base/str.h"

struct range_reader;

struct range_ops {
	/* All of [offset, offset + n) into `into`. */
	enum err_code (*read)(
		struct range_reader *r, uint64_t offset, size_t n, void *into, struct err *err);
	void (*close)(struct range_reader *r);
	/* What lies in the file of [offset, offset + n) is read soon; NULL: that is no help. */
	void (*expect)(struct range_reader *r, uint64_t offset, uint64_t n);
};

struct range_reader {
	const struct range_ops *ops;
	uint64_t bytes; /* of the file */
	const char *name; /* for messages */
};

MUST_CHECK enum err_code range_open_file(
	const char *path, struct range_reader **out, struct err *err);
void range_close(struct range_reader *r); /* NULL is fine */
void range_expect(struct range_reader *r, uint64_t offset, uint64_t n);

#endif
