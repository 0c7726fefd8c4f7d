/*
 * Starting: what a start waits for, in words for people, while it does.
 *
 * Units:     nanoseconds.
 * Ownership: texts are copied, and cut where they are too long. No text may hold a secret: whoever
 *            may ask for the readiness of the server reads them.
 * Threads:   any. A NULL `struct starting *` is fine: nobody asks.
 */
#ifndef BASE_SELF_STARTING_H
#define BASE_SELF_STARTING_H

#include "base/str.h"
#include "base/thread.h"

#define STARTING_BYTES_MAX 400

struct starting {
	struct mutex lock; /* guards what follows */
	char text[STARTING_BYTES_MAX]; /* "": nothing was said yet */
	char why[STARTING_BYTES_MAX]; /* "": it goes on */
	int64_t since_ns, time_ns; /* monotonic; time_ns 0: nobody knows how long it takes */
};

void starting_init(struct starting *start);
void starting_release(struct starting *start);

/*
 * "opens the data directory": from now on; why the step before did not go on is forgotten. The text
 * that is there already changes nothing.
 */
void starting_say(struct starting *start, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same of something that takes time_ns: the text is printed with how much of it is over. */
void starting_say_time(struct starting *start, int64_t time_ns, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/* An error that is tried again; NULL: the last attempt was well. */
void starting_say_why(struct starting *start, const struct err *why);

/* One line: "waiting for the lease of shard a: 45 s of 90 s; bucket b: head: Connection refused" */
void starting_print(struct starting *start, struct buf *out);

#endif
