/*
 * Places: where objects are, a directory or a prefix in a bucket; and copies between them.
 *
 * Units:     nanoseconds since 1970.
 * Errors:    the bucket's; ERR_IO for files; ERR_CORRUPT: a file that cannot be read to its end, or
 *            bytes that are not those which were put.
 * Ownership: lists are in the arena.
 * Threads:   any; two may write the same key, and one of them wins.
 */
#ifndef CMD_EPITOOL_BUCKET_PLACE_H
#define CMD_EPITOOL_BUCKET_PLACE_H

#include "base/arena.h"
#include "base/fs.h"
#include "tsdb/bucket/bucket.h"

#define PLACE_PART ".epitool-part" /* ends the name of a file that is not whole yet */

struct place {
	struct bucket *bucket; /* NULL: a directory */
	const char *path; /* the directory; or what keys begin with: "" or "a/b/" */
	struct fs *fs; /* writes files; NULL: fs_posix */
};

struct place_object {
	struct str key; /* behind the path; ends in NUL */
	uint64_t bytes;
	int64_t modified_ns; /* by the clock of the store or file system */
	uint64_t inode; /* of a file; 0: of an object */
};

struct place_list {
	struct place_object *v; /* ascending */
	size_t n, cap;
	size_t odd; /* left out: no key that a bucket takes, or no regular file */
};

/* All that is there. A directory that does not exist is ERR_NOT_FOUND. */
MUST_CHECK enum err_code place_list(
	const struct place *p, struct arena *a, struct place_list *out, struct err *err);
/* SHA-256 as hex; "": nobody knows it. */
MUST_CHECK enum err_code place_hash(
	const struct place *p, struct str key, char out[BUCKET_HASH_LEN + 1], struct err *err);
/* Whole or not at all, synced; makes directories. */
MUST_CHECK enum err_code place_copy(const struct place *from, struct str from_key,
	const struct place *to, struct str to_key, struct err *err);
/* The same of a file from its start to its end. */
MUST_CHECK enum err_code place_put(const struct place *p, struct str key, int fd, struct err *err);
/* Small objects, in memory. */
MUST_CHECK enum err_code place_write(
	const struct place *p, struct str key, struct str bytes, struct err *err);
MUST_CHECK enum err_code place_read(
	const struct place *p, struct str key, size_t max, struct buf *out, struct err *err);
/* None is fine. */
MUST_CHECK enum err_code place_remove(const struct place *p, struct str key, struct err *err);
/* A regular file, no link. */
MUST_CHECK enum err_code place_open_file(
	const struct place *p, struct str key, int *fd, struct err *err);

const char *place_temp_dir(void); /* TMPDIR, or /tmp */

#endif
