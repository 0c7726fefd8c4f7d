/*
 * Exclusive: endpoints that serve one request at a time, and who stands in line for them.
 *
 * A Go process has one CPU profiler: a second request for it gets 500. So who wants an endpoint
 * that is taken waits until the one before it leaves.
 *
 * Ownership: users belong to the caller; a user that entered must leave before it is freed.
 * Threads:   one.
 */
#ifndef SCRAPE_EXCLUSIVE_H
#define SCRAPE_EXCLUSIVE_H

#include "base/str.h"

struct exclusive;

struct exclusive_user {
	void (*turn)(void *ctx); /* called when a user that waited holds the endpoint */
	void *ctx;
	/* of exclusive.c */
	struct str key;
	bool inside, holds;
	struct exclusive_user *next; /* holders of one bucket, or users in line */
	struct exclusive_user *waiters; /* of a holder */
};

enum exclusive_entry { EXCLUSIVE_HOLDS, EXCLUSIVE_WAITS, EXCLUSIVE_NOMEM };

struct exclusive *exclusive_open(void); /* NULL: out of memory */
void exclusive_close(struct exclusive *e); /* NULL is fine; nobody is inside */
enum exclusive_entry exclusive_enter(struct exclusive *e, struct str key, struct exclusive_user *u);
/* Calls the turn of the next in line. A user that is not inside is fine. */
void exclusive_leave(struct exclusive *e, struct exclusive_user *u);
/* Who holds it; NULL: nobody. */
struct exclusive_user *exclusive_holder(const struct exclusive *e, struct str key);

#endif
