/*
 * The inside of tsdb/remote: objects, pages in memory, fetching.
 *
 * Threads: r->lock guards all fields that do not say otherwise. It is not held during a read of the
 *          disk or a request.
 */
#ifndef TSDB_REMOTE_INTERNAL_H
#define TSDB_REMOTE_INTERNAL_H

#include "base/thread.h"
#include "tsdb/remote/cache.h"

#define OBJECT_CHAINS 4096u
#define STREAMS_N 8u
#define FETCH_PAGES_MAX (REMOTE_FETCH_BYTES_MAX / REMOTE_PAGE_BYTES)
#define GAP_PAGES 4u /* reads not farther apart than 256 KiB are one */
#define FIRST_PAGES 1u /* of a read at a new place */
#define SMALL_PAGES 8u /* an object up to this size is read whole */

/* An object, by key and contents. It is kept while a reader has it, or something is known of it. */
struct object {
	struct object *next; /* in its chain */
	unsigned users;
	bool known; /* in the table */
	uint64_t id[2]; /* of its pages: hash of key, size, and hash of the contents where known */
	uint64_t bytes, hash;
	uint64_t etag; /* hash of the ETag; 0: not known yet */
	uint32_t pages;
	bool stays; /* all of it is small or an index */
	char key[];
};

struct remote_page {
	struct remote_page *next; /* in its chain */
	struct remote_page *newer, *older; /* of those that are READY */
	uint64_t object[2];
	uint32_t number, len;
	unsigned pins;
	bool ready; /* else it is being read, and pinned by the thread that reads it */
	char *bytes;
};

/* Where reading in order would go on. */
struct remote_stream {
	uint32_t next; /* page behind the last fetched one */
	uint32_t window; /* pages of the last fetch; 0: unused */
	uint64_t used;
};

struct remote {
	struct range_source source;
	struct remote_options o;
	struct cache *cache; /* NULL: none */
	struct err no_cache; /* why */
	struct pool *pool;
	struct mutex lock;
	struct cond ready; /* the read of a page has ended, well or not */
	struct object *objects[OBJECT_CHAINS];
	struct remote_page **chains; /* of pages */
	size_t mask;
	struct remote_page *newest, *oldest;
	uint64_t memory_bytes; /* of pages */
	uint64_t expected_bytes; /* given to the pool, not read yet */
	struct pages_job *jobs; /* pages.c */
	uint64_t clock; /* for streams */
	int64_t down_until_ns;
	struct remote_status status;
	bool closing;
};

struct remote_reader {
	struct range_reader r;
	struct remote *remote;
	struct object *o;
	struct remote_stream streams[STREAMS_N];
	uint32_t expected_first, expected_end; /* pages that are expected and not asked for yet */
};

void object_unuse(struct remote *r, struct object *o); /* r->lock is held */

/* ---- pages.c ---- */

/* [offset, offset + n) of the reader's object, which has them. */
MUST_CHECK enum err_code pages_read(
	struct remote_reader *reader, uint64_t offset, size_t n, char *into, struct err *err);
void pages_expect(struct remote_reader *reader, uint64_t offset, uint64_t n);
void pages_forget(struct remote *r, const struct object *o); /* r->lock is held */
void pages_free(struct remote *r); /* all, at the end */

/* ---- fetch.c ---- */

/* Page `number` is neither in memory nor on disk: reads it, and with it the missing ones of [from,
 * end), from <= number < end. r->lock is held, and released meanwhile. *out is pinned: without a
 * pin other pages might replace it before its reader looks. out NULL: nobody waits for it. */
MUST_CHECK enum err_code fetch_locked(struct remote *r, struct object *o, uint32_t number,
	uint32_t from, uint32_t end, struct remote_page **out, struct err *err);

struct remote_page *page_find(struct remote *r, const struct object *o, uint32_t number);
/* Adds a page that will be read, pinned; NULL: out of memory. */
struct remote_page *page_add(struct remote *r, const struct object *o, uint32_t number);
void page_drop(struct remote *r, struct remote_page *p); /* it could not be read */
void page_came(struct remote *r, struct remote_page *p); /* its bytes were read; the pin stays */
void page_unpin(struct remote *r, struct remote_page *p);
uint32_t page_len(const struct object *o, uint32_t number);
bool page_stays(const struct object *o, uint32_t number);

#endif
