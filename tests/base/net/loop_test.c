/* Loops: work runs on their thread, in the order of the posts, and before they end. */
#include "base/net/loop.h"

#include <event2/event.h>

#include "base/clock.h"
#include "tests/check.h"
#include "tests/wait.h"

enum { POSTS = 100 };

struct fixture;

struct post {
	struct loop_work work;
	struct fixture *fixture;
	int i;
};

struct fixture {
	struct loop *loop;
	struct post posts[POSTS];
	int seen[POSTS];
	size_t seen_n;
	bool elsewhere; /* some work ran on another thread */
};

static void fixture_init(struct fixture *f)
{
	struct err err;

	*f = (struct fixture){ 0 };
	for (int i = 0; i < POSTS; i++)
		f->posts[i] = (struct post){ .fixture = f, .i = i };
	REQUIRE_OK(loop_open("loop", &f->loop, &err), &err);
}

static void note(void *ctx)
{
	struct post *p = ctx;

	p->fixture->elsewhere |= !loop_is_current(p->fixture->loop);
	p->fixture->seen[p->fixture->seen_n++] = p->i;
}

static void check_seen(const struct fixture *f)
{
	CHECK_INT(f->seen_n, POSTS);
	for (size_t i = 0; i < f->seen_n; i++)
		CHECK_INT(f->seen[i], (int)i);
	CHECK(!f->elsewhere);
}

TEST(a_call_returns_after_what_was_posted_before_it)
{
	struct fixture f;

	fixture_init(&f);
	CHECK(!loop_is_current(f.loop));
	for (int i = 0; i < POSTS - 1; i++)
		loop_post(f.loop, &f.posts[i].work, note, &f.posts[i]);
	loop_call(f.loop, note, &f.posts[POSTS - 1]);
	check_seen(&f);
	loop_close(f.loop);
}

static void note_and_post_next(void *ctx)
{
	struct post *p = ctx, *next = p + 1;

	note(p);
	if (next->i < POSTS - 1)
		loop_post(p->fixture->loop, &next->work, note_and_post_next, next);
	else
		loop_post(p->fixture->loop, &next->work, note, next);
}

TEST(the_end_waits_for_work_that_posts_more_work)
{
	struct fixture f;

	fixture_init(&f);
	loop_post(f.loop, &f.posts[0].work, note_and_post_next, &f.posts[0]);
	loop_close(f.loop);
	check_seen(&f);
}

struct alarm {
	struct loop *loop;
	struct event *timer;
	int64_t after_ns;
	_Atomic(int) fired;
};

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct alarm *a = ctx;

	a->fired++;
}

static void set_alarm(void *ctx)
{
	struct alarm *a = ctx;

	if (!a->timer)
		a->timer = evtimer_new(loop_base(a->loop), on_timer, a);
	timer_after(a->timer, a->after_ns);
}

static void free_alarm(void *ctx)
{
	event_free(((struct alarm *)ctx)->timer);
}

TEST(a_timer_fires_once_and_may_be_set_again)
{
	static const int64_t times_ns[] = { NS_PER_MS, 1, 0, -NS_PER_S, INT64_MIN };
	enum { N = sizeof(times_ns) / sizeof(times_ns[0]) };
	struct alarm a = { 0 };
	struct err err;

	REQUIRE_OK(loop_open("loop", &a.loop, &err), &err);
	a.after_ns = NS_PER_HOUR; /* replaced before it fires */
	loop_call(a.loop, set_alarm, &a);
	for (int i = 0; i < N; i++) {
		a.after_ns = times_ns[i];
		loop_call(a.loop, set_alarm, &a);
		CHECK(WAIT_FOR(a.fired == i + 1));
	}
	loop_call(a.loop, free_alarm, &a);
	CHECK_INT(a.fired, N);
	loop_close(a.loop);
}
