/*
 * Waiting for another thread: WAIT_FOR(cond) is true as soon as cond is, and false after two
 * minutes. The limit only ends a test that has failed; a busy machine does not reach it. A test
 * waits for the very condition it checks:
 *
 *	CHECK(WAIT_FOR(atomic_load(&calls) == 3));
 */
#ifndef TESTS_WAIT_H
#define TESTS_WAIT_H

#include <stdbool.h>
#include <unistd.h>

#include "base/clock.h"

#define WAIT_NS (2 * NS_PER_MIN)
#define WAIT_STEP_US 1000

/* For loops that do more than look; begins where until_ns is 0. */
static inline bool wait_more(int64_t *until_ns)
{
	int64_t now_ns = clock_monotonic_ns();

	if (!*until_ns)
		*until_ns = now_ns + WAIT_NS;
	if (now_ns >= *until_ns)
		return false;
	usleep(WAIT_STEP_US);
	return true;
}

#define WAIT_FOR(cond) \
	({ \
		int64_t wait_until_ns_ = 0; \
		bool wait_over_; \
		while (!(wait_over_ = (cond)) && wait_more(&wait_until_ns_)) \
			; \
		wait_over_; \
	})

#endif
