/*
 * Range reader: bytes of an immutable file by offset; where the file is, its user does not know.
 * Range source: where files are opened by path: the disk, or an object store (tsdb/remote).
 *
 * In an object store a read is one request, so callers read whole ranges and few of them.
 *
 * Units:     bytes.
 * Errors:    ERR_IO, ERR_NOT_FOUND; ERR_CORRUPT where the file ends before the range does, or is
 * not the one that was opened; ERR_TIMEOUT, ERR_UNAVAILABLE: its place does not answer, which says
 * nothing about the file (range_unreachable). Each message begins with the name. Ownership:
 * range_open hands *out to the caller, who ends it by range_close. A source lives longer than its
 * readers. Threads:   any number of readers at once.
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

struct range_source {
	enum err_code (*open)(
		struct range_source *s, const char *path, struct range_reader **out, struct err *err);
	/* The file has so many bytes, and this XXH3 (0: not known): opening it need not ask. NULL: that
	 * is no help. */
	void (*know)(struct range_source *s, const char *path, uint64_t bytes, uint64_t hash);
	/* Nobody will open it again: what is kept of it may go. NULL: nothing is. */
	void (*forget)(struct range_source *s, const char *path);
};
extern struct range_source range_files; /* on the disk */

/* from NULL: range_files; also below. */
MUST_CHECK enum err_code range_open(
	struct range_source *from, const char *path, struct range_reader **out, struct err *err);
/* The whole file, appended to *out; more than max bytes: ERR_LIMIT before anything is read. */
MUST_CHECK enum err_code range_read_all(
	struct range_source *from, const char *path, size_t max, struct buf *out, struct err *err);
void range_know(struct range_source *from, const char *path, uint64_t bytes, uint64_t hash);
void range_forget(struct range_source *from, const char *path);
static inline bool range_unreachable(enum err_code rc)
{
	return rc == ERR_TIMEOUT || rc == ERR_UNAVAILABLE || rc == ERR_CANCELED;
}

MUST_CHECK enum err_code range_open_file(
	const char *path, struct range_reader **out, struct err *err);
void range_close(struct range_reader *r); /* NULL is fine */
void range_expect(struct range_reader *r, uint64_t offset, uint64_t n);

#endif
