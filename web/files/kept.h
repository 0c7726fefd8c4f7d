/*
 * Kept files: profiles that somebody dropped on the page and asked to keep, until they expire.
 *
 * A file is one file of the directory, DIR/ID.file: a line with times, size, checksum and name, and
 * the bytes as they came. It is written beside, synced and renamed, so after a crash it is there
 * whole or not at all. The id is 128 random bits: who knows it may read the file. What is over its
 * time is removed; what is full refuses, and nothing that somebody was promised goes before its
 * time.
 *
 * With a bucket the file is an object there before kept_put returns, and all members of a cluster
 * open it; the directory has copies, DIR/ID.cached. Files from before the bucket are put there.
 * Limits are of all members together.
 *
 * Units:     nanoseconds since 1970 (stored in seconds), bytes.
 * Errors:    ERR_NOT_FOUND: no such id, or its time is over; ERR_LIMIT names the flag; ERR_CORRUPT:
 *            the file on the disk, or its object, is damaged, which names it; ERR_UNAVAILABLE: the
 *            bucket does not answer; ERR_IO.
 * Ownership: kept_open hands *out to the caller. Lists and bytes live in the arena given. The
 *            bucket outlives it; bucket_cancel ends what waits for it.
 * Threads:   any number at once; a thread of its own removes what is over.
 */
#ifndef WEB_FILES_KEPT_H
#define WEB_FILES_KEPT_H

#include "base/arena.h"
#include "base/fs.h"

struct bucket;

#define KEPT_ID_BYTES 32u /* hexadecimal */
#define KEPT_NAME_BYTES_MAX 100u
#define KEPT_FILES_MAX 10000u
#define KEPT_CACHE_BYTES_MAX (UINT64_C(256) << 20) /* copies of what the bucket has */
#define KEPT_LOOK_NS (INT64_C(60) * 1000000000) /* how late a file of the disk may be removed */
#define KEPT_LIST_NS (INT64_C(300) * 1000000000) /* between two lists of the bucket */
#define KEPT_REST_NS (INT64_C(10) * 1000000000) /* after the bucket did not answer */

struct kept_options {
	struct fs *fs;
	const char *dir; /* made when the first file is kept */
	uint64_t bytes_max; /* of all; --storage.files.max-size */
	int64_t time_max_ns; /* of one; --storage.files.max-time */
	uint64_t free_bytes_min; /* on the disk, beside the file; 0: not looked at */
	struct bucket *bucket; /* NULL: files are on this disk alone */
	bool removes; /* what is over from the bucket, 10 minutes later */
	uint64_t cache_bytes_max; /* 0: KEPT_CACHE_BYTES_MAX */
	int64_t look_ns, list_ns, rest_ns; /* 0: those above */
};

struct kept_file {
	char id[KEPT_ID_BYTES + 1];
	char name[KEPT_NAME_BYTES_MAX + 1]; /* letters, digits and "._-" */
	uint64_t bytes;
	int64_t created_ns, expires_ns;
	bool damaged; /* its size is another one, or its first line cannot be read: no times then */
};

struct kept;
MUST_CHECK enum err_code kept_open(
	const struct kept_options *o, struct kept **out, struct err *err);
void kept_close(struct kept *k); /* NULL is fine */
const struct kept_options *kept_limits(const struct kept *k);

/* Durable once it returns; with a bucket all members have it then. The name is cut, and characters
 * that it cannot have become "-". */
MUST_CHECK enum err_code kept_put(struct kept *k, struct str name, struct str bytes,
	int64_t keep_ns, int64_t now_ns, struct kept_file *out, struct err *err);
MUST_CHECK enum err_code kept_get(struct kept *k, struct str id, int64_t now_ns, struct arena *a,
	struct kept_file *out, struct str *bytes, struct err *err);
MUST_CHECK enum err_code kept_delete(struct kept *k, struct str id, struct err *err);
struct kept_listing {
	struct kept_file *v; /* the one that expires first comes first */
	size_t n;
	struct str warning; /* the bucket does not answer, and since when; "": it does */
};
MUST_CHECK enum err_code kept_list(
	struct kept *k, int64_t now_ns, struct arena *a, struct kept_listing *out, struct err *err);
/* Removes what is over at that time from the disk. What cannot be removed is tried again later. */
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

/* The key of its object: files/ID-CREATED-EXPIRES-BYTES-CHECKSUM-NAME. false: another object. */
#define KEPT_PREFIX "files/"
MUST_CHECK bool kept_key_parse(struct str key, struct kept_head *out);
void kept_key_print(const struct kept_head *h, struct buf *out);

#endif
