/*
 * Members: the databases of a union, and who uses them.
 *
 * A union has no data of its own. Its queriers, lists and counts go over its members. Members may
 * be added and removed meanwhile: whoever uses one pins it, and removing it waits until it has no
 * pins.
 *
 * Errors:  ERR_EXISTS (the name is taken), ERR_NOT_FOUND (there is no such member), ERR_NOMEM.
 * Threads: any. The union's lock is held for the list alone, never while a member's lock is taken.
 */
#ifndef TSDB_CATALOG_MEMBERS_H
#define TSDB_CATALOG_MEMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct db;

typedef void (*db_warn_fn)(void *to, const char *text);
/* Warns of what the member lacks in (min, max] nanoseconds, for each querier. No lock is held. */
typedef void (*db_member_fn)(void *ctx, int64_t min_ns, int64_t max_ns, db_warn_fn warn, void *to);

struct member {
	struct db *db;
	char *name;
	db_member_fn tell; /* NULL: nothing to tell */
	void *ctx;
	unsigned pins; /* the union's lock */
};

MUST_CHECK enum err_code members_add(
	struct db *d, const char *name, struct db *db, db_member_fn tell, void *ctx, struct err *err);
/* Waits until it is not pinned. NULL: there is no such member. */
struct db *members_remove(struct db *d, const char *name);

/* Pins all of them, ascending by name; *out is malloc'ed. */
MUST_CHECK enum err_code members_pin(
	struct db *d, struct member ***out, size_t *n, struct err *err);
void members_unpin(struct db *d, struct member **m, size_t n); /* frees m; NULL is fine */
/* ERR_UNSUPPORTED if the database is a union: data are changed in the shard. */
MUST_CHECK enum err_code members_refuse(const struct db *db, const char *what, struct err *err);

#endif
