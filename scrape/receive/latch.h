/*
 * Latch: one thread waits until n things are done.
 *
 * A mutex with a condition costs the waiter more: whoever signals holds the lock, so that the
 * waiter does not free it too early, and the waiter wakes up only to wait for the lock. A latch
 * costs two system calls at most.
 *
 * Ownership: the caller's struct; it may end as soon as latch_wait returns.
 * Threads:   latch_down on any threads, n times in all; latch_wait on one.
 */
#ifndef SCRAPE_RECEIVE_LATCH_H
#define SCRAPE_RECEIVE_LATCH_H

#include <stdatomic.h>
#include <stdint.h>

struct latch {
	_Atomic uint32_t left;
};

void latch_init(struct latch *l, uint32_t n);
void latch_down(struct latch *l);
void latch_wait(struct latch *l);

#endif
