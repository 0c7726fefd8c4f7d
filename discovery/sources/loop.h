/*
 * Loop: a thread that runs an event base, and a door through which other threads hand it work.
 *
 * libevent is used without its locks: only the loop's thread touches the base once it runs.
 *
 * Errors:    ERR_UNAVAILABLE, ERR_NOMEM, ERR_IO.
 * Ownership: loop_close runs what was posted, ends the thread and frees the base.
 * Threads:   loop_post and loop_call from any thread; loop_call not from the loop's own.
 */
#ifndef DISCOVERY_SOURCES_LOOP_H
#define DISCOVERY_SOURCES_LOOP_H

#include "base/thread.h"

struct event;
struct event_base;
struct loop;

MUST_CHECK enum err_code loop_open(const char *name, struct loop **out, struct err *err);
void loop_close(struct loop *l); /* NULL is fine */
struct event_base *loop_base(struct loop *l);

/* Work that was posted: kept inside of the caller's object, so that posting cannot fail. */
struct loop_work {
	struct loop_work *next;
	thread_fn fn;
	void *ctx;
};

/*
 * fn(ctx) on the loop's thread, in the order of the posts. w is the loop's until fn runs; fn may
 * free it.
 */
void loop_post(struct loop *l, struct loop_work *w, thread_fn fn, void *ctx);
/* The same, and waits until fn returned. */
void loop_call(struct loop *l, thread_fn fn, void *ctx);

/* An evtimer fires once, ns from now; an earlier wish of it is forgotten. On the loop's thread. */
void timer_after(struct event *timer, int64_t ns);

#endif
