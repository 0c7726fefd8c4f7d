/*
 * Clock: time of day and monotonic time; durations and times as text, in Prometheus's forms.
 *
 * Units: nanoseconds, int64_t; times since 1970 UTC.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/str.h"

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MIN (60 * NS_PER_S)
#define NS_PER_HOUR (60 * NS_PER_MIN)
#define NS_PER_DAY (24 * NS_PER_HOUR)
/* Times from outside lie within +- this (year 2116): a difference of two never overflows. */
#define TIME_MAX_NS (INT64_C(1) << 62)

/*
 * The time of day that this process keeps. Between two calls of clock_look it goes on as the
 * monotonic clock does, so a step of the system's clock does not reach it. A process that never
 * looks has the system's time of its first call, and goes on from there.
 */
int64_t clock_now_ns(void);
int64_t clock_system_ns(void); /* CLOCK_REALTIME: for logs, signatures and what others check */
int64_t clock_monotonic_ns(void); /* never goes back; for deadlines and durations */
int64_t clock_running_ns(void); /* the same, and it goes on while the machine sleeps */
/* The time of day, as it is kept now, when the running clock was there. */
int64_t clock_of_running_ns(int64_t running_ns);
int64_t clock_thread_ns(void); /* of a processor, that this thread took */

#define CLOCK_STEP_NS NS_PER_S /* a difference to the system's clock up to here is no step */
#define CLOCK_HOLD_NS (5 * NS_PER_MIN) /* a step is taken over after it held so long */

/* The earliest time from ts_ns on that what is stored leaves free: ts_ns, if nothing is there. */
typedef int64_t (*clock_free_fn)(void *ctx, int64_t ts_ns);

/*
 * Compares with the system's clock. The first call takes its time over; later ones take a step over
 * once it held for CLOCK_HOLD_NS. Where the system's time is not free, the time goes on from the
 * first that is, until the system's clock is there. Steps are logged. free_from may be NULL. To be
 * called each second.
 */
void clock_look(clock_free_fn free_from, void *ctx);
/* How far the system's clock is ahead of the kept one (negative: behind), when last looked; 0: they
 * agree. */
int64_t clock_step_ns(void);
int64_t clock_step_since_ns(void); /* since when they do not agree; only while they do not */

/* For tests: where the system's and the running clock come from. NULL: the machine's. */
struct clock_source {
	int64_t (*system_ns)(void);
	int64_t (*running_ns)(void);
};
void clock_use(const struct clock_source *source); /* and begins anew, as a process does */

/*
 * "1h30m", "500ms", "15d": units y w d h m s ms, each at most once and descending, as Prometheus's
 * model.ParseDuration; "0" alone is fine. ERR_INVALID with Prometheus's wording.
 */
MUST_CHECK enum err_code duration_parse(struct str s, int64_t *out_ns, struct err *err);
/* "1h30m"; whole milliseconds, rounded down; "0s" */
void duration_print(struct buf *out, int64_t ns);

/* A day of the Gregorian calendar, UTC. */
struct date {
	int64_t year;
	int month, day; /* from 1 */
	int month_days;
	int of_year; /* from 1 */
	int of_week; /* 0: Sunday */
};
struct date date_of_days(int64_t days); /* since 1970-01-01; any that come from seconds */

/*
 * Float seconds since 1970 or RFC 3339 (any zone, any number of fraction digits), as the HTTP API
 * takes times. Plain decimals keep their nanoseconds. ERR_INVALID; beyond TIME_MAX_NS is out of
 * range.
 */
MUST_CHECK enum err_code time_parse(struct str s, int64_t *out_ns, struct err *err);
/* 2026-11-21T01:02:03.004Z; 6 or 9 digits if needed */
void time_print_rfc3339(struct buf *out, int64_t ns);

/*
 * "10MB", "512KiB", "1.5GB", "1GB512MB", "0": a unit is required but for 0; powers of 1024 for all
 * spellings, as Prometheus's units.
 */
MUST_CHECK enum err_code bytes_parse(struct str s, uint64_t *out, struct err *err);

#endif
