/*
 * Threads: named threads, a bounded pool of workers, and locks that cannot fail.
 *
 * All our threads are started here, so that the self-profiler knows them and their names show in
 * /proc and in stacks. Signals are blocked in all of them; the main thread waits for them.
 *
 * Errors: ERR_UNAVAILABLE when the system has no thread left; pool_submit gives false when the
 *         queue is full.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct mutex {
	pthread_mutex_t m;
#ifdef EPI_CHECK_LOCKS
	uintptr_t owner; /* atomic: the thread that holds it; 0: none */
#endif
};
#define MUTEX_INIT \
	{ \
		.m = PTHREAD_MUTEX_INITIALIZER \
	}
void mutex_init(struct mutex *m);
void mutex_destroy(struct mutex *m);
void mutex_lock(struct mutex *m);
MUST_CHECK bool mutex_try_lock(struct mutex *m); /* false: another thread holds it */
void mutex_unlock(struct mutex *m);
/*
 * The first line of a function whose caller holds the lock. Aborts when this thread does not hold
 * it; does nothing in release builds.
 */
#ifdef EPI_CHECK_LOCKS
void mutex_assert_held(const struct mutex *m);
#else
static inline void mutex_assert_held(const struct mutex *m)
{
	(void)m;
}
#endif

struct cond {
	pthread_cond_t c; /* waits on the monotonic clock */
};
void cond_init(struct cond *c);
void cond_destroy(struct cond *c);
void cond_wait(struct cond *c, struct mutex *m);
/* False when deadline_ns (clock_monotonic_ns) passed. */
bool cond_wait_until(struct cond *c, struct mutex *m, int64_t deadline_ns);
/* Until *flag, which the lock guards, or deadline_ns (clock_monotonic_ns); gives *flag. */
bool cond_wait_flag(struct cond *c, struct mutex *m, const bool *flag, int64_t deadline_ns);
/* The same for who does not hold the lock, and after ns from now. */
bool cond_sleep_unless(struct cond *c, struct mutex *m, const bool *flag, int64_t ns);
void cond_signal(struct cond *c);
void cond_broadcast(struct cond *c);

struct thread {
	pthread_t id;
	bool started;
};
typedef void (*thread_fn)(void *ctx);
/* name: at most 15 bytes are kept. */
MUST_CHECK enum err_code thread_start(
	struct thread *t, const char *name, thread_fn fn, void *ctx, struct err *err);
void thread_join(struct thread *t); /* a thread that was never started is fine */

/*
 * Called in each new thread before its function, and after it: the self-profiler's hooks. Set once
 * at program start, before any thread.
 */
struct thread_hooks {
	void (*enter)(const char *name);
	void (*leave)(void);
};
void thread_set_hooks(const struct thread_hooks *hooks);

struct pool;
MUST_CHECK enum err_code pool_open(
	const char *name, unsigned workers, size_t queue_max, struct pool **out, struct err *err);
/* False when the queue is full or the pool is closing; fn was not and will not be called. */
bool pool_submit(struct pool *p, thread_fn fn, void *ctx);
size_t pool_queued(struct pool *p);
void pool_close(struct pool *p); /* runs what is queued, then ends; NULL is fine */

unsigned cpu_count(void); /* cores this process may use */

#endif
