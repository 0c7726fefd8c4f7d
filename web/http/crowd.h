/*
 * Crowd: the connections that wait for a request, and which of them makes room when all
 * connections are taken.
 *
 * The one that has waited longest does. But while an address has more than its share waiting, it
 * gives one of its own: so an address that opens thousands of connections only ends its own. Below
 * its share nobody is judged by its address, since all clients of a proxy have one.
 *
 * Errors:    crowd_open: false where memory runs out. A member whose address finds no memory is
 *            judged without it.
 * Ownership: the caller's memory; every member leaves before crowd_close.
 * Threads:   the caller's lock.
 */
#ifndef WEB_HTTP_CROWD_H
#define WEB_HTTP_CROWD_H

#include "web/http/http.h"

struct crowd_address;

struct crowd_member {
	struct crowd_member *prev, *next; /* of all; NULL: it does not wait */
	struct crowd_member *address_prev, *address_next;
	struct crowd_address *address;
};

struct crowd {
	size_t share; /* an address that has more waiting is one of `greedy` */
	size_t mask; /* slots - 1 */
	uint64_t seed;
	struct crowd_address **slots;
	struct crowd_address *greedy; /* a list */
	struct crowd_member all; /* head of the ring; the longest waiting is the first */
};

/* members_max: how many connections there may be at once. */
MUST_CHECK bool crowd_open(struct crowd *all, size_t members_max);
void crowd_close(struct crowd *all);

/* It waits from now on. Must not wait already. */
void crowd_join(struct crowd *all, struct crowd_member *m, struct http_sender client);
void crowd_leave(struct crowd *all, struct crowd_member *m); /* does nothing unless it waits */

/*
 * The next to make room, after `last` or, where that is NULL, the first of all; NULL: there is no
 * other. All of them are of one address, where one has more than its share.
 */
struct crowd_member *crowd_next(const struct crowd *all, const struct crowd_member *last);

#endif
