/*
 * Overdue: data that became too old long ago. A running server drops data within minutes after it
 * became too old. If it is too old for more than OVERDUE_NS, the server was stopped for long, or
 * the clock is wrong. Then retention logs it, and waits for CLOCK_HOLD_NS before it drops the data.
 *
 * Units:   nanoseconds; times since 1970.
 * Threads: a struct is guarded by a lock of its owner; overdue_tell may be called by any.
 */
#ifndef TSDB_CATALOG_OVERDUE_H
#define TSDB_CATALOG_OVERDUE_H

#include "base/clock.h"

#define OVERDUE_NS NS_PER_HOUR
/* Overdue data ... (part of a log message) */
#define OVERDUE_WHY "became too old at once, after a long stop or by a step of the clock"

/* The data that is overdue now. */
struct overdue {
	uint64_t n; /* blocks and windows */
	int64_t until_ns; /* their last row */
};

struct overdue_wait {
	int64_t since_ns; /* on the running clock; 0: nothing waits */
};

/* True if data that ends at end_ns is overdue, where data that ends by cut_ns is too old. */
bool overdue_is(int64_t end_ns, int64_t cut_ns);
void overdue_add(struct overdue *o, int64_t last_ns);

/* Begins, continues or ends the wait. True: the wait begins, and should be logged. Each round of
 * retention calls it. */
bool overdue_hold(struct overdue_wait *w, const struct overdue *o);
bool overdue_waits(const struct overdue_wait *w);
int64_t overdue_since_ns(const struct overdue_wait *w); /* while it waits */
void overdue_tell(const char *component, const struct overdue *o);

#endif
