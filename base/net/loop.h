/*
 * Loop: a thread that runs an event base and takes work from other threads.
 *
 * libevent's own locks are off: once the thread runs, only it touches the base.
 *
 * Errors:    ERR_UNAVAILABLE, ERR_NOMEM, ERR_IO.
 * Ownership: loop_close runs what was posted, ends the thread and frees the base.
 * Threads:   loop_post from any thread; loop_call and loop_close from any but the loop's.
 */
#ifndef BASE_NET_LOOP_H
#define BASE_NET_LOOP_H

#include "base/thread.h"

struct event;
struct event_base;
struct loop;

MUST_CHECK enum err_code loop_open(const char *name, struct loop **out, struct err *err);
void loop_close(struct loop *l); /* NULL is fine */
struct event_base *loop_base(struct loop *l);
bool loop_is_current(const struct loop *l); /* the caller runs on its thread; for assertions */

/* Work that was posted. It is a member of the caller's object, so that posting cannot fail. */
struct loop_work {
	struct loop_work *next;
	thread_fn fn;
	void *ctx;
};

/* Runs fn(ctx) on the loop's thread, in the order of the posts. w is the loop's until fn runs. */
void loop_post(struct loop *l, struct loop_work *w, thread_fn fn, void *ctx);
/* The same, and waits until fn has returned. */
void loop_call(struct loop *l, thread_fn fn, void *ctx);

/* Fires an evtimer once, ns from now, instead of at its former time. On the loop's thread. */
void timer_after(struct event *timer, int64_t ns);

#endif
