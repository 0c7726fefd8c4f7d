/*
 * A system's clock that a test moves: clock_begin in place of the machine's, then clock_pass and
 * clock_step. clock_use(NULL) ends it.
 */
#ifndef TESTS_CLOCK_STEPS_H
#define TESTS_CLOCK_STEPS_H

#include <stdatomic.h>

#include "base/clock.h"

static _Atomic int64_t clock_ahead, clock_running_at; /* the system's clock is so far ahead */

static inline int64_t clock_steps_system(void)
{
	return atomic_load(&clock_running_at) + atomic_load(&clock_ahead);
}

static inline int64_t clock_steps_running(void)
{
	return atomic_load(&clock_running_at);
}

static const struct clock_source clock_steps = { clock_steps_system, clock_steps_running };

/* As a process begins. */
static inline void clock_begin(int64_t system_ns)
{
	atomic_fetch_add(&clock_running_at, NS_PER_S); /* it is not 0, and never goes back */
	atomic_store(&clock_ahead, system_ns - atomic_load(&clock_running_at));
	clock_use(&clock_steps);
}

/* Both clocks go on, and nobody looks. */
static inline void clock_wait(int64_t ns)
{
	atomic_fetch_add(&clock_running_at, ns);
}

/* Both clocks go on, with a look each second. */
static inline void clock_pass(int64_t ns, clock_free_fn free_from, void *ctx)
{
	for (; ns > 0; ns -= NS_PER_S) {
		clock_wait(NS_PER_S);
		clock_look(free_from, ctx);
	}
}

static inline void clock_step(int64_t ns)
{
	atomic_fetch_add(&clock_ahead, ns);
}

#endif
