/*
 * Places: where objects are, a directory or a prefix in a bucket; and copies between them.
 *
 * Errors:    the bucket's; ERR_IO for files.
 * Ownership: lists are in the arena.
 * Threads:   any; each object by one at a time.
 */
#ifndef CMD_EPITOOL_BUCKET_PLACE_H
#define CMD_EPITOOL_BUCKET_PLACE_H

#include "base/arena.h"
#include "tsdb/bucket/bucket.h"

#define PLACE_FILE_BYTES_MAX (256u << 20)

struct place {
	struct bucket *bucket; /* NULL: a directory */
	const char *path; /* the directory; or what keys begin with: "" or "a/b/" */
};

struct place_object {
	struct str key; /* behind the path; ends in NUL */
	uint64_t bytes;
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
/* Whole or not at all. From a directory to a directory: files of at most PLACE_FILE_BYTES_MAX. */
MUST_CHECK enum err_code place_copy(
	const struct place *from, const struct place *to, struct str key, struct err *err);
/* An object into a file, whole or not at all; makes directories. */
MUST_CHECK enum err_code place_fetch(
	struct bucket *b, struct str key, const char *path, struct err *err);

const char *place_temp_dir(void); /* TMPDIR, or /tmp */

#endif
