/*
 * Exclusive: endpoints that serve one request at a time, and the queue of users for each.
 *
 * A Go process has one CPU profiler: a second request for it gets status 500. So a user waits while
 * another one holds the endpoint.
 *
 * Ownership: users belong to the caller; a user that entered leaves before it is freed.
 * Threads:   one.
 */
#ifndef SCRAPE_EXCLUSIVE_H
#define SCRAPE_EXCLUSIVE_H

#include "base/str.h"

struct exclusive;

struct exclusive_user {
	void (*turn)(void *ctx); /* called when a user that waited gets the endpoint */
	void *ctx;
	/* private to exclusive.c */
	struct str key;
	bool inside, holds;
	struct exclusive_user *next; /* holders of one bucket, or users that wait */
	struct exclusive_user *waiters; /* of a holder */
};

enum exclusive_entry { EXCLUSIVE_HOLDS, EXCLUSIVE_WAITS, EXCLUSIVE_NOMEM };

struct exclusive *exclusive_open(void); /* NULL: out of memory */
void exclusive_close(struct exclusive *e); /* NULL is fine; nobody is inside */
enum exclusive_entry exclusive_enter(struct exclusive *e, struct str key, struct exclusive_user *u);
/* Calls `turn` of the next user that waits. A user that is not inside is fine. */
void exclusive_leave(struct exclusive *e, struct exclusive_user *u);
/* The user that holds it, or NULL. */
struct exclusive_user *exclusive_holder(const struct exclusive *e, struct str key);

#endif
