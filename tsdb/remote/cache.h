/*
 * Pages of objects on disk: two files in a directory, `pages` with slots of one page each, `index`
 * with an entry for each slot: whose page it is, and the hash of its bytes.
 *
 * Nothing is synced: an entry is believed only with its checksum, a page only with its hash. So
 * after a crash pages are missing or refused, never wrong.
 *
 * There are two kinds of pages: large sequential data, and what is small or an index. A new page
 * takes the slot of the least recently used page of the first kind, or of the second kind while the
 * first has at most an eighth of the slots.
 *
 * Errors:  none: a page that cannot be read counts as missing, one that cannot be written is not
 *          kept.
 * Threads: any.
 */
#ifndef TSDB_REMOTE_CACHE_H
#define TSDB_REMOTE_CACHE_H

#include "tsdb/remote/remote.h"

struct cache;

struct cache_page {
	uint64_t object[2];
	uint32_t number;
	uint32_t len;
	uint64_t etag; /* hash of the ETag of the object; 0: none */
	bool stays; /* of the second kind */
};

struct cache_options {
	const char *dir;
	uint64_t bytes;
	uint64_t free_bytes_reserve;
	int64_t pause_ns; /* after a write failed */
};

MUST_CHECK enum err_code cache_open(
	const struct cache_options *o, struct cache **out, struct err *err);
void cache_close(struct cache *c); /* NULL is fine, here and below: no disk */
bool cache_has(struct cache *c, const uint64_t object[2], uint32_t number);
/* Reads a page into REMOTE_PAGE_BYTES; p says which, and gets len and etag. False: the page is not
 * there any more, or never was. */
bool cache_read(struct cache *c, struct cache_page *p, char *into);
void cache_write(struct cache *c, const struct cache_page *p, const char *bytes);
/* All pages of an object. */
void cache_forget(struct cache *c, const uint64_t object[2], uint64_t pages);
void cache_status(struct cache *c, struct remote_status *out); /* adds its fields */

#endif
