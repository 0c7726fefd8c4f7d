/*
 * Remote: objects of a bucket as files of a range source.
 *
 * Objects are immutable, and read in pages. A page is kept in memory, and on disk if there is a
 * directory for it, until more recently used ones need its place. Missing pages are read from the
 * bucket: neighbours in one request, more at once if a reader reads in order, and expected ones in
 * the background. A damaged page on disk is read again. A full disk is not written to for a while;
 * no read fails by it.
 *
 * An object that is gone, has another size, or another ETag than before is ERR_CORRUPT with its
 * key. If the bucket does not answer, reads fail with ERR_UNAVAILABLE or ERR_TIMEOUT after the
 * deadline of the bucket's calls, and for retry_ns after that at once; kept pages can be read.
 *
 * Units:     bytes, nanoseconds.
 * Errors:    those of range.h; each begins with the object's key.
 * Ownership: remote_open hands *out to the caller, who ends it when all its readers are closed. The
 *            bucket lives longer.
 * Threads:   any.
 */
#ifndef TSDB_REMOTE_REMOTE_H
#define TSDB_REMOTE_REMOTE_H

#include "tsdb/bucket/bucket.h"
#include "tsdb/store/range.h"

#define REMOTE_PAGE_BYTES (64u << 10)
#define REMOTE_FETCH_BYTES_MAX (4u << 20) /* of a request */

struct remote;

struct remote_options {
	struct bucket *bucket;
	const char *cache_dir; /* made where it is not there; one process has it. NULL: no disk */
	uint64_t cache_bytes; /* on disk, at most; 0: no disk */
	uint64_t free_bytes_reserve; /* the cache does not grow if the disk has less; default 1 GiB */
	/* 0: the default */
	uint64_t memory_bytes; /* 32 MiB */
	int64_t retry_ns; /* 5 s */
	unsigned workers; /* that read what is expected: 4 */
};

/* A cache directory that cannot be used is a warning in the log and in the status: reading goes on
 * without it. */
MUST_CHECK enum err_code remote_open(
	const struct remote_options *o, struct remote **out, struct err *err);
void remote_close(struct remote *r); /* NULL is fine */
/* Paths are keys of the bucket. An object that nothing is known of costs a request when opened. */
struct range_source *remote_source(struct remote *r);

struct remote_status {
	uint64_t requests, request_bytes; /* gets that gave bytes, and those bytes */
	uint64_t failures; /* gets that did not */
	uint64_t from_memory, from_disk, from_bucket; /* pages asked for, by where they were */
	uint64_t cache_bytes, cache_bytes_max; /* on disk */
	uint64_t damaged_pages; /* found on disk, read again from the bucket */
	struct err cache_off; /* code ERR_OK: the cache takes pages, or there is none */
	struct err down; /* code ERR_OK: the last request was answered */
};
void remote_status(struct remote *r, struct remote_status *out);

#endif
