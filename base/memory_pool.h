/*
 * Memory pool: one limit for many budgets together, such as those of all queries.
 *
 * A budget that has joined takes its memory from the pool, in chunks. When the pool has no more,
 * the taker waits until others give back. If every budget that holds memory waits, none would ever
 * give any back: then the youngest of them is refused, and ends. A refused budget may begin again
 * as the elder: one budget of the pool at a time, in favour of which the others are refused. So
 * everything that fits into the pool alone gets done in the end, and nobody waits for ever.
 *
 * Units:     bytes.
 * Errors:    budget_take gives false; budget_fail says which limit it was: ERR_LIMIT if the pool
 *            would be too small even for this budget alone, else ERR_UNAVAILABLE.
 * Ownership: memory_pool_open hands *out to the caller; budgets leave before it is closed.
 * Threads:   any.
 */
#ifndef BASE_MEMORY_POOL_H
#define BASE_MEMORY_POOL_H

#include <stdint.h>

#include "base/arena.h"

/* flag names the limit in errors. */
MUST_CHECK enum err_code memory_pool_open(
	size_t max_bytes, const char *flag, struct memory_pool **out, struct err *err);
void memory_pool_close(struct memory_pool *p); /* NULL is fine */

/* Asked every few milliseconds while a budget waits: true ends the wait, and the take fails. */
typedef bool (*memory_give_up_fn)(const void *ctx);

/*
 * b holds nothing yet. It gives everything back before it leaves; one that never joined may leave.
 */
void memory_pool_join(
	struct memory_pool *p, struct budget *b, memory_give_up_fn give_up, const void *ctx);
void memory_pool_leave(struct budget *b);
/* b is idle while it waits for something that may depend on others who wait for memory. */
void memory_pool_idle(struct budget *b, bool idle);
/* True if b was refused memory that it could get later: it may begin again as the elder. */
bool memory_pool_was_short(const struct budget *b);
/* How long threads of b have waited for memory so far; several at a time count once. */
int64_t memory_pool_waited_ns(const struct budget *b);
/* Waits until no other is the elder; b is it until it leaves. False: it gave up. */
bool memory_pool_become_elder(struct budget *b);

struct memory_pool_state {
	size_t used_bytes, max_bytes;
	uint64_t waits, refused; /* takes that waited; budgets that were refused */
};
struct memory_pool_state memory_pool_look(struct memory_pool *p);

/* The pool's part of budget_take and budget_give. */
bool memory_pool_cover(struct budget *b, size_t bytes);
void memory_pool_uncover(struct budget *b);

#endif
