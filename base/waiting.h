/*
 * Waiting: what a start waits for, in words for people, while it does.
 *
 * Units:     nanoseconds.
 * Ownership: texts are copied, and cut where they are too long. No text may hold a secret: whoever
 *            may ask for the readiness of the server reads them.
 * Threads:   any. A NULL `struct waiting *` is fine: nobody asks.
 */
#ifndef BASE_WAITING_H
#define BASE_WAITING_H

#include "base/str.h"
#include "base/thread.h"

#define WAITING_BYTES_MAX 400

struct waiting {
	struct mutex lock; /* guards what follows */
	char text[WAITING_BYTES_MAX]; /* "": nothing was said yet */
	char why[WAITING_BYTES_MAX]; /* "": it goes on */
	int64_t since_ns, time_ns; /* monotonic; time_ns 0: nobody knows how long it takes */
};

void waiting_init(struct waiting *w);
void waiting_release(struct waiting *w);

/*
 * "opens the data directory": from now on; why the step before did not go on is forgotten. The text
 * that is there already changes nothing.
 */
void waiting_say(struct waiting *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same of something that takes time_ns: the text is printed with how much of it is over. */
void waiting_say_time(struct waiting *w, int64_t time_ns, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* An error that is tried again; NULL: the last attempt was well. */
void waiting_say_why(struct waiting *w, const struct err *why);

/* One line: "waiting for the lease of shard a: 45 s of 90 s; bucket b: head: Connection refused" */
void waiting_print(struct waiting *w, struct buf *out);

#endif
