#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define NAME_SIZE 16 /* Linux: 15 bytes and NUL */

/* A lock call fails only when it is misused; then the program cannot go on. */
static void thread_must(int rc)
{
	if (rc)
		abort();
}

#ifdef EPI_CHECK_LOCKS
static bool mutex_is_held(const struct mutex *m)
{
	return __atomic_load_n(&m->owner, __ATOMIC_RELAXED) == (uintptr_t)pthread_self();
}

static void mutex_assert_not_held(
	const struct mutex *m) /* else it would wait for itself for ever */
{
	assert(!mutex_is_held(m));
}

static void mutex_own(struct mutex *m)
{
	__atomic_store_n(&m->owner, (uintptr_t)pthread_self(), __ATOMIC_RELAXED);
}

static void mutex_disown(struct mutex *m)
{
	mutex_assert_held(m);
	__atomic_store_n(&m->owner, 0, __ATOMIC_RELAXED);
}

void mutex_assert_held(const struct mutex *m)
{
	assert(mutex_is_held(m));
}
#else
static void mutex_assert_not_held(const struct mutex *m)
{
	(void)m;
}

static void mutex_own(struct mutex *m)
{
	(void)m;
}

static void mutex_disown(struct mutex *m)
{
	(void)m;
}
#endif

void mutex_init(struct mutex *m)
{
	memset(m, 0, sizeof(*m));
	thread_must(pthread_mutex_init(&m->m, NULL));
}

void mutex_destroy(struct mutex *m)
{
	thread_must(pthread_mutex_destroy(&m->m));
}

void mutex_lock(struct mutex *m)
{
	mutex_assert_not_held(m);
	thread_must(pthread_mutex_lock(&m->m));
	mutex_own(m);
}

bool mutex_try_lock(struct mutex *m)
{
	if (pthread_mutex_trylock(&m->m))
		return false;
	mutex_own(m);
	return true;
}

void mutex_unlock(struct mutex *m)
{
	mutex_disown(m);
	thread_must(pthread_mutex_unlock(&m->m));
}

void cond_init(struct cond *c)
{
	pthread_condattr_t attr;

	thread_must(pthread_condattr_init(&attr));
	thread_must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
	thread_must(pthread_cond_init(&c->c, &attr));
	thread_must(pthread_condattr_destroy(&attr));
}

void cond_destroy(struct cond *c)
{
	thread_must(pthread_cond_destroy(&c->c));
}

void cond_wait(struct cond *c, struct mutex *m)
{
	mutex_disown(m);
	thread_must(pthread_cond_wait(&c->c, &m->m));
	mutex_own(m);
}

bool cond_wait_until(struct cond *c, struct mutex *m, int64_t deadline_ns)
{
	int64_t at = deadline_ns > 0 ? deadline_ns : 0;
	struct timespec ts = { .tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S };
	int rc;

	mutex_disown(m);
	rc = pthread_cond_timedwait(&c->c, &m->m, &ts);
	mutex_own(m);
	if (rc == ETIMEDOUT)
		return false;
	thread_must(rc);
	return true;
}

bool cond_wait_flag(struct cond *c, struct mutex *m, const bool *flag, int64_t deadline_ns)
{
	mutex_assert_held(m);
	while (!*flag && cond_wait_until(c, m, deadline_ns))
		;
	return *flag;
}

bool cond_sleep_unless(struct cond *c, struct mutex *m, const bool *flag, int64_t ns)
{
	int64_t deadline_ns = clock_monotonic_ns() + ns;
	bool is_set;

	mutex_lock(m);
	is_set = cond_wait_flag(c, m, flag, deadline_ns);
	mutex_unlock(m);
	return is_set;
}

void cond_signal(struct cond *c)
{
	thread_must(pthread_cond_signal(&c->c));
}

void cond_broadcast(struct cond *c)
{
	thread_must(pthread_cond_broadcast(&c->c));
}

static struct thread_hooks hooks; /* written before the first thread starts */

void thread_set_hooks(const struct thread_hooks *h)
{
	hooks = h ? *h : (struct thread_hooks){ 0 };
}

struct thread_start {
	char name[NAME_SIZE];
	thread_fn fn;
	void *ctx;
};

static void *thread_main(void *arg)
{
	struct thread_start s = *(struct thread_start *)arg;

	free(arg);
	pthread_setname_np(pthread_self(), s.name);
	if (hooks.enter)
		hooks.enter(s.name);
	s.fn(s.ctx);
	if (hooks.leave)
		hooks.leave();
	return NULL;
}

/*
 * All signals except those that a fault raises in the thread itself (blocked, they would kill the
 * process without a handler) and SIGPROF (the profiler samples a thread with it).
 */
static void thread_signals_to_block(sigset_t *set)
{
	static const int open[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS,
		SIGPROF };
	size_t i;

	sigfillset(set);
	for (i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		sigdelset(set, open[i]);
}

enum err_code thread_start(
	struct thread *t, const char *name, thread_fn fn, void *ctx, struct err *err)
{
	struct thread_start *s = malloc(sizeof(*s));
	sigset_t block, before;
	int rc;

	assert(fn);
	t->started = false;
	if (!s)
		return err_set(err, ERR_NOMEM, "start thread %s: out of memory", name);
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->fn = fn;
	s->ctx = ctx;
	thread_signals_to_block(&block);
	pthread_sigmask(SIG_BLOCK, &block, &before); /* the new thread inherits it */
	rc = pthread_create(&t->id, NULL, thread_main, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		free(s);
		return err_set(err, ERR_UNAVAILABLE, "start thread %s: %s", name, strerror(rc));
	}
	t->started = true;
	return ERR_OK;
}

void thread_join(struct thread *t)
{
	if (!t->started)
		return;
	thread_must(pthread_join(t->id, NULL));
	t->started = false;
}

struct task {
	thread_fn fn;
	void *ctx;
};

struct pool {
	struct mutex lock; /* guards queue, first, queued, closing */
	struct cond work; /* something queued, or closing */
	struct task *queue; /* ring of queue_max */
	size_t queue_max, first, queued;
	bool closing;
	unsigned workers_n;
	struct thread workers[];
};

static void pool_worker(void *arg)
{
	struct pool *p = arg;
	struct task task;

	mutex_lock(&p->lock);
	for (;;) { /* ends: pool_close sets closing, and then nothing is added */
		while (!p->queued && !p->closing)
			cond_wait(&p->work, &p->lock);
		if (!p->queued)
			break;
		task = p->queue[p->first];
		p->first = (p->first + 1) % p->queue_max;
		p->queued--;
		mutex_unlock(&p->lock);
		task.fn(task.ctx);
		mutex_lock(&p->lock);
	}
	mutex_unlock(&p->lock);
}

enum err_code pool_open(
	const char *name, unsigned workers, size_t queue_max, struct pool **out, struct err *err)
{
	struct pool *p;
	char thread_name[64];
	enum err_code rc;

	assert(workers > 0 && queue_max > 0);
	p = calloc(1, sizeof(*p) + workers * sizeof(p->workers[0]));
	if (!p)
		return err_set(err, ERR_NOMEM, "pool %s: out of memory", name);
	mutex_init(&p->lock);
	cond_init(&p->work);
	p->queue_max = queue_max;
	p->queue = calloc(queue_max, sizeof(*p->queue));
	if (!p->queue) {
		rc = err_set(err, ERR_NOMEM, "pool %s: out of memory for a queue of %zu", name, queue_max);
		goto fail;
	}
	while (p->workers_n < workers) {
		snprintf(thread_name, sizeof(thread_name), "%.12s-%u", name, p->workers_n % 100);
		if ((rc = thread_start(&p->workers[p->workers_n], thread_name, pool_worker, p, err)))
			goto fail;
		p->workers_n++;
	}
	*out = p;
	return ERR_OK;
fail:
	pool_close(p);
	return rc;
}

bool pool_submit(struct pool *p, thread_fn fn, void *ctx)
{
	bool taken = false;

	assert(fn);
	mutex_lock(&p->lock);
	if (!p->closing && p->queued < p->queue_max) {
		p->queue[(p->first + p->queued) % p->queue_max] = (struct task){ fn, ctx };
		p->queued++;
		taken = true;
	}
	mutex_unlock(&p->lock);
	if (taken) /* under the lock the worker would wake up only to wait for it */
		cond_signal(&p->work);
	return taken;
}

size_t pool_queued(struct pool *p)
{
	size_t n;

	mutex_lock(&p->lock);
	n = p->queued;
	mutex_unlock(&p->lock);
	return n;
}

void pool_close(struct pool *p)
{
	unsigned i;

	if (!p)
		return;
	mutex_lock(&p->lock);
	p->closing = true;
	cond_broadcast(&p->work);
	mutex_unlock(&p->lock);
	for (i = 0; i < p->workers_n; i++)
		thread_join(&p->workers[i]);
	assert(!p->queued || !p->workers_n); /* every queued task has run */
	cond_destroy(&p->work);
	mutex_destroy(&p->lock);
	free(p->queue);
	free(p);
}

/* A container's share of the CPUs, which the affinity mask does not show; 0: no limit known. */
static unsigned thread_cgroup_cpus(void)
{
	char text[64];
	unsigned long long quota, period;
	int fd = open("/sys/fs/cgroup/cpu.max", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	if (sscanf(text, "%19llu %19llu", &quota, &period) != 2 || !period) /* "max 100000": none */
		return 0;
	quota = (quota + period - 1) / period;
	return quota > 4096 ? 4096 : (unsigned)quota;
}

unsigned cpu_count(void)
{
	cpu_set_t set;
	unsigned limit = thread_cgroup_cpus();
	long n;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = CPU_COUNT(&set);
	else
		n = sysconf(_SC_NPROCESSORS_ONLN);
	if (n < 1)
		n = 1;
	return limit && limit < (unsigned long)n ? limit : (unsigned)n;
}
