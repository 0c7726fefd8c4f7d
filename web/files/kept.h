/*
 * Kept files: profiles that somebody dropped on the page and asked to keep, until they expire.
 *
 * A file is one file of the directory, DIR/ID.file: a line with times, size, checksum and name, and
 * the bytes as they came. It is written beside, synced and renamed, so after a crash it is there
 * whole or not at all. The id is 128 random bits: who knows it may read the file. What is over its
 * time is removed; what is full refuses, and nothing that somebody was promised goes before its
 * time.
 *
 * Units:     nanoseconds since 1970 (stored in seconds), bytes.
 * Errors:    ERR_NOT_FOUND: no such id, or its time is over; ERR_LIMIT names the flag; ERR_CORRUPT:
 *            the file on the disk is damaged, which names it; ERR_IO.
 * Ownership: kept_open hands *out to the caller. Lists and bytes live in the arena given.
 * Threads:   any number at once; a thread of its own removes what is over.
 */
#ifndef WEB_FILES_KEPT_H
#define WEB_FILES_KEPT_H

#include "base/arena.h"
#include "base/fs.h"

#define KEPT_ID_BYTES 32u /* hexadecimal */
#define KEPT_NAME_BYTES_MAX 100u
#define KEPT_FILES_MAX 10000u

struct kept_options {
	struct fs *fs;
	const char *dir; /* made when the first file is kept */
	uint64_t bytes_max; /* of all; --storage.files.max-size */
	int64_t time_max_ns; /* of one; --storage.files.max-time */
	uint64_t free_bytes_min; /* on the disk, beside the file; 0: not looked at */
};

struct kept_file {
	char id[KEPT_ID_BYTES + 1];
	char name[KEPT_NAME_BYTES_MAX + 1]; /* letters, digits and "._-" */
	uint64_t bytes;
	int64_t created_ns, expires_ns;
	bool damaged; /* its first line cannot be read; the times are 0 */
};

struct kept;
MUST_CHECK enum err_code kept_open(
	const struct kept_options *o, struct kept **out, struct err *err);
void kept_close(struct kept *k); /* NULL is fine */
const struct kept_options *kept_limits(const struct kept *k);

/* Durable once it returns. The name is cut, and characters that it cannot have become "-". */
MUST_CHECK enum err_code kept_put(struct kept *k, struct str name, struct str bytes,
	int64_t keep_ns, int64_t now_ns, struct kept_file *out, struct err *err);
/* bytes NULL: only what is known of it. */
MUST_CHECK enum err_code kept_get(struct kept *k, struct str id, int64_t now_ns, struct arena *a,
	struct kept_file *out, struct str *bytes, struct err *err);
MUST_CHECK enum err_code kept_delete(struct kept *k, struct str id, struct err *err);
/* The one that expires first comes first. */
MUST_CHECK enum err_code kept_list(struct kept *k, int64_t now_ns, struct arena *a,
	struct kept_file **out, size_t *n, struct err *err);
/* Removes what is over at that time. What cannot be removed is tried again the next time. */
void kept_expire(struct kept *k, int64_t now_ns);

bool kept_is_id(struct str s);

/* The line at the beginning of a file: for the store, and for its fuzz driver. */
struct kept_head {
	struct kept_file file;
	uint64_t checksum;
	size_t len; /* of the line with its end */
};
#define KEPT_HEAD_BYTES_MAX 512u
MUST_CHECK enum err_code kept_head_parse(struct str bytes, struct kept_head *out, struct err *err);
void kept_head_print(const struct kept_head *h, struct buf *out);
uint64_t kept_checksum(const struct kept_file *f, struct str bytes);

#endif
