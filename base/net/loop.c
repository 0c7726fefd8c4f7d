#include "base/net/loop.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

struct loop {
	struct event_base *base;
	struct event *wake;
	int fd;
	struct thread thread;
	_Atomic(pthread_t) id; /* of the thread, once it runs */
	struct mutex lock;
	struct cond called; /* a loop_call ended */
	/* guarded by lock */
	struct loop_work *first, **last;
	bool stop;
};

/* Takes the whole queue at once: work that posts more work does not delay events. */
static void loop_run_posted(struct loop *l)
{
	struct loop_work *w, *next;
	bool stop;

	mutex_lock(&l->lock);
	w = l->first;
	l->first = NULL;
	l->last = &l->first;
	stop = l->stop;
	mutex_unlock(&l->lock);
	for (; w; w = next) {
		next = w->next;
		w->fn(w->ctx);
	}
	mutex_lock(&l->lock);
	stop = stop && !l->first;
	mutex_unlock(&l->lock);
	if (stop)
		event_base_loopbreak(l->base);
}

static void net_loop_on_wake(evutil_socket_t fd, short what, void *ctx)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) < 0)
		return; /* an earlier call read the count and ran the work */
	loop_run_posted(ctx);
}

static void loop_wake(struct loop *l)
{
	const uint64_t one = 1;

	while (write(l->fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void loop_main(void *ctx)
{
	struct loop *l = ctx;

	atomic_store(&l->id, pthread_self());
	event_base_loop(l->base, EVLOOP_NO_EXIT_ON_EMPTY);
}

static void loop_free(struct loop *l)
{
	if (l->wake)
		event_free(l->wake);
	if (l->base)
		event_base_free(l->base);
	if (l->fd >= 0)
		close(l->fd);
	cond_destroy(&l->called);
	mutex_destroy(&l->lock);
	free(l);
}

enum err_code loop_open(const char *name, struct loop **out, struct err *err)
{
	struct event_config *config = NULL;
	struct loop *l = calloc(1, sizeof(*l));
	enum err_code rc = ERR_OK;

	if (!l)
		return err_nomem(err, name);
	mutex_init(&l->lock);
	cond_init(&l->called);
	l->last = &l->first;
	l->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->fd < 0)
		rc = err_errno(err, errno, "eventfd for loop %s", name);
	if (!rc && (config = event_config_new())) {
		event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
		event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
		l->base = event_base_new_with_config(config);
		event_config_free(config);
	}
	if (!rc && l->base)
		l->wake = event_new(l->base, l->fd, EV_READ | EV_PERSIST, net_loop_on_wake, l);
	if (!rc && (!l->wake || event_add(l->wake, NULL)))
		rc = err_nomem(err, name);
	if (!rc)
		rc = thread_start(&l->thread, name, loop_main, l, err);
	if (rc) {
		loop_free(l);
		return rc;
	}
	*out = l;
	return ERR_OK;
}

struct event_base *loop_base(struct loop *l)
{
	return l->base;
}

bool loop_is_current(const struct loop *l)
{
	return pthread_equal(atomic_load(&l->id), pthread_self());
}

void loop_post(struct loop *l, struct loop_work *w, thread_fn fn, void *ctx)
{
	bool was_empty;

	assert(fn);
	*w = (struct loop_work){ .fn = fn, .ctx = ctx };
	mutex_lock(&l->lock);
	was_empty = !l->first;
	*l->last = w;
	l->last = &w->next;
	mutex_unlock(&l->lock);
	if (was_empty)
		loop_wake(l);
}

struct net_loop_call {
	struct loop *loop;
	thread_fn fn;
	void *ctx;
	bool done; /* guarded by the loop's lock */
};

static void net_loop_run_call(void *ctx)
{
	struct net_loop_call *c = ctx;

	c->fn(c->ctx);
	mutex_lock(&c->loop->lock);
	c->done = true;
	cond_broadcast(&c->loop->called);
	mutex_unlock(&c->loop->lock);
}

void loop_call(struct loop *l, thread_fn fn, void *ctx)
{
	struct net_loop_call c = { .loop = l, .fn = fn, .ctx = ctx };
	struct loop_work w;

	assert(!loop_is_current(l)); /* it would wait for itself */
	loop_post(l, &w, net_loop_run_call, &c);
	mutex_lock(&l->lock);
	while (!c.done)
		cond_wait(&l->called, &l->lock);
	mutex_unlock(&l->lock);
}

void loop_close(struct loop *l)
{
	if (!l)
		return;
	assert(!loop_is_current(l));
	mutex_lock(&l->lock);
	l->stop = true;
	mutex_unlock(&l->lock);
	loop_wake(l);
	thread_join(&l->thread);
	loop_free(l);
}

void timer_after(struct event *timer, int64_t ns)
{
	struct timeval tv = { 0 };

	if (ns > 0)
		tv = (struct timeval){ .tv_sec = ns / NS_PER_S, .tv_usec = ns % NS_PER_S / NS_PER_US };
	event_add(timer, &tv); /* cannot fail: the event is pending on a timeout alone */
}
