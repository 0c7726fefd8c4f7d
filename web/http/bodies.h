/*
 * Bodies: the memory of request bodies while they are received, bounded in all and fair to each
 * address.
 *
 * No address may hold more than its share. When the memory of all is used up, the address that
 * holds most loses its longest unfinished body to an address that holds less. So many bodies from
 * one sender cannot keep out one body from another.
 *
 * Units:     bytes.
 * Ownership: the caller's memory; every body is released before its bodies are.
 * Threads:   one, the receiving thread.
 */
#ifndef WEB_HTTP_BODIES_H
#define WEB_HTTP_BODIES_H

#include "web/http/http.h"

#define BODIES_SLOTS 256u

struct body_source;

struct http_body {
	struct http_body *prev, *next; /* in the ring of bodies that hold memory */
	struct body_source *source;
	struct buf data;
	size_t counted; /* bytes of data that count against both limits */
	bool whole; /* received to its end: never dropped for others */
	/*
	 * 0, or why it was dropped: 413 too long, 429 the share of its address, 503 the limit of all.
	 */
	int refused;
};

struct bodies {
	size_t max_bytes, address_max_bytes;
	size_t bytes;
	struct http_body ring;
	struct body_source *slots[BODIES_SLOTS];
};

void bodies_init(struct bodies *all, size_t max_bytes, size_t address_max_bytes);

/*
 * Adds n bytes to a body of at most body_max bytes. Over a limit it sets refused and drops the
 * body.
 */
void body_add(struct bodies *all, struct http_body *b, struct http_sender client, const void *data,
	size_t n, size_t body_max);
void body_drop(struct bodies *all, struct http_body *b); /* frees its data */
/* Counts it no longer; its data is the caller's now. */
void body_leave(struct bodies *all, struct http_body *b);

#endif
