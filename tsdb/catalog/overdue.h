/*
 * Overdue: data that became too old long ago. Who runs drops data within minutes of its day. What
 * is due for longer than OVERDUE_NS is due because nobody ran for long, or because the clock is
 * wrong. Who finds such data says so, and waits for CLOCK_HOLD_NS before it is dropped.
 *
 * Units:   nanoseconds; times since 1970.
 * Threads: a struct is guarded by a lock of its owner; overdue_tell may be called by any.
 */
#ifndef TSDB_CATALOG_OVERDUE_H
#define TSDB_CATALOG_OVERDUE_H

#include "base/clock.h"

#define OVERDUE_NS NS_PER_HOUR
/* What is overdue ... */
#define OVERDUE_WHY "became too old at once, after a long stop or by a step of the clock"

/* What is overdue now. */
struct overdue {
	uint64_t n; /* blocks and windows */
	int64_t until_ns; /* their last row */
};

struct overdue_wait {
	int64_t since_ns; /* on the running clock; 0: nothing waits */
};

/* Whether it is overdue, if what ends by cut_ns is too old. */
bool overdue_is(int64_t end_ns, int64_t cut_ns);
void overdue_add(struct overdue *o, int64_t last_ns);

/* Begins to wait, goes on or ends it; true: it begins, and is to be told. Each round of retention
 * calls it. */
bool overdue_hold(struct overdue_wait *w, const struct overdue *o);
bool overdue_waits(const struct overdue_wait *w);
int64_t overdue_since_ns(const struct overdue_wait *w); /* while it waits */
void overdue_tell(const char *component, const struct overdue *o);

#endif
