/*
 * Bodies: what request bodies hold while they are received, bounded for all together and fair to
 * each address.
 *
 * An address has a share that it cannot pass. Where the shares of several together pass what all
 * may hold, an address that holds less takes from the one that holds most: the longest body that
 * has not come whole is let go. So nobody who sends one body is kept out by those who send many.
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

struct body {
	struct body *prev, *next; /* in the ring of those that hold something */
	struct body_source *source;
	struct buf data;
	size_t counted; /* of data, against both limits */
	bool whole; /* it came to its end: it is not let go for others */
	/* 0, or why nothing is kept: 413 too long, 429 its address's share, 503 all together. */
	int refused;
};

struct bodies {
	size_t max_bytes, address_max_bytes;
	size_t bytes;
	struct body ring;
	struct body_source *slots[BODIES_SLOTS];
};

void bodies_init(struct bodies *all, size_t max_bytes, size_t address_max_bytes);

/* Adds n bytes to a body of at most body_max; where that cannot be, sets refused and drops all. */
void body_add(struct bodies *all, struct body *b, struct http_client client, const void *data,
	size_t n, size_t body_max);
void body_drop(struct bodies *all, struct body *b); /* lets go what it holds */
/* It is no longer counted; data stays, the caller's. */
void body_leave(struct bodies *all, struct body *b);

#endif
