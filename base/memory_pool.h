/*
 * Memory pool: what many budgets hold together, those of all queries say.
 *
 * A budget that has joined takes what it uses from the pool, in chunks. Where the pool has no more,
 * the taker waits until others give back. If every budget that holds something waits, none would
 * ever give: then the youngest of them is refused, and ends. One that was refused may begin again
 * as the elder: one budget of the pool at a time, which the others are refused for. So whatever
 * fits into the pool alone gets done in the end, and nobody waits for ever.
 *
 * Units:     bytes.
 * Errors:    budget_take gives false; budget_fail says which limit it was: ERR_LIMIT where the pool
 *            would not do if nobody else held anything, else ERR_UNAVAILABLE.
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

/* b holds nothing yet. It leaves when all it used was given back; without having joined is fine. */
void memory_pool_join(
	struct memory_pool *p, struct budget *b, memory_give_up_fn give_up, const void *ctx);
void memory_pool_leave(struct budget *b);
/* While b waits for something that others who wait for memory may keep from it. */
void memory_pool_idle(struct budget *b, bool idle);
/* Whether b was refused what it could have later: it is worth while to begin again as the elder. */
bool memory_pool_was_short(const struct budget *b);
/* Waits until no other is the elder; b is it until it leaves. False: it gave up. */
bool memory_pool_become_elder(struct budget *b);

struct memory_pool_state {
	size_t used_bytes, max_bytes;
	uint64_t waits, refused; /* takes that waited; budgets that were refused */
};
struct memory_pool_state memory_pool_look(struct memory_pool *p);

/* For budget_take and budget_give: the pool's part. */
bool memory_pool_cover(struct budget *b, size_t bytes);
void memory_pool_uncover(struct budget *b);

#endif
