#include "base/thread.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "tests/check.h"

static _Atomic int counter;
static char hook_names[8][16];
static _Atomic int entered, left;

static void add_one(void *ctx)
{
	atomic_fetch_add(&counter, *(int *)ctx);
}

static void on_enter(const char *name)
{
	snprintf(hook_names[atomic_fetch_add(&entered, 1) % 8], 16, "%s", name);
}

static void on_leave(void)
{
	atomic_fetch_add(&left, 1);
}

struct seen {
	char name[16];
	bool term_blocked, segv_blocked, prof_blocked;
};

static void look(void *ctx)
{
	struct seen *s = ctx;
	sigset_t set;

	pthread_getname_np(pthread_self(), s->name, sizeof(s->name));
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	s->term_blocked = sigismember(&set, SIGTERM);
	s->segv_blocked = sigismember(&set, SIGSEGV);
	s->prof_blocked = sigismember(&set, SIGPROF);
}

TEST(thread_has_name_mask_and_hooks)
{
	static const struct thread_hooks hooks = { on_enter, on_leave };
	struct seen seen = { "" };
	struct thread t = { 0 };
	struct err err;
	sigset_t set;

	thread_join(&t); /* never started */
	thread_set_hooks(&hooks);
	REQUIRE_OK(thread_start(&t, "a-name-that-is-too-long", look, &seen, &err), &err);
	thread_join(&t);
	thread_join(&t);
	thread_set_hooks(NULL);
	CHECK_STR(str_of(seen.name), "a-name-that-is-");
	CHECK(seen.term_blocked && !seen.segv_blocked && !seen.prof_blocked);
	CHECK_INT(entered, 1);
	CHECK_INT(left, 1);
	CHECK_STR(str_of(hook_names[0]), "a-name-that-is-");
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	CHECK(!sigismember(&set, SIGTERM)); /* the caller's own mask is as it was */
}

struct gate {
	struct mutex lock;
	struct cond open_now;
	bool open, waiting;
};

static void wait_at_gate(void *ctx)
{
	struct gate *g = ctx;

	mutex_lock(&g->lock);
	g->waiting = true;
	cond_broadcast(&g->open_now);
	while (!g->open)
		cond_wait(&g->open_now, &g->lock);
	mutex_unlock(&g->lock);
}

TEST(pool_is_bounded_and_drains)
{
	struct gate g = { .lock = MUTEX_INIT };
	struct pool *p;
	struct err err;
	int one = 1, i, taken = 0;

	cond_init(&g.open_now);
	atomic_store(&counter, 0);
	REQUIRE_OK(pool_open("tests", 1, 3, &p, &err), &err);
	CHECK(pool_submit(p, wait_at_gate, &g));
	mutex_lock(&g.lock);
	while (!g.waiting)
		cond_wait(&g.open_now, &g.lock);
	mutex_unlock(&g.lock);
	for (i = 0; i < 5; i++)
		taken += pool_submit(p, add_one, &one);
	CHECK_INT(taken, 3);
	CHECK_INT(pool_queued(p), 3);
	mutex_lock(&g.lock);
	g.open = true;
	cond_broadcast(&g.open_now);
	mutex_unlock(&g.lock);
	pool_close(p);
	CHECK_INT(counter, 3);
	cond_destroy(&g.open_now);
	pool_close(NULL);
}

TEST(pool_runs_everything_on_many_workers)
{
	struct pool *p;
	struct err err;
	int one = 1, i;

	atomic_store(&counter, 0);
	REQUIRE_OK(pool_open("tests", 8, 10000, &p, &err), &err);
	for (i = 0; i < 10000; i++)
		CHECK(pool_submit(p, add_one, &one));
	pool_close(p);
	CHECK_INT(counter, 10000);
}

TEST(cond_keeps_its_deadline)
{
	struct mutex m;
	struct cond c;
	int64_t start = clock_monotonic_ns(), took;

	mutex_init(&m);
	cond_init(&c);
	mutex_lock(&m);
	CHECK(!cond_wait_until(&c, &m, -5));
	while (cond_wait_until(&c, &m, start + 20 * NS_PER_MS))
		;
	took = clock_monotonic_ns() - start;
	mutex_unlock(&m);
	CHECK(took >= 20 * NS_PER_MS);
	cond_destroy(&c);
	mutex_destroy(&m);
}

TEST(cond_waits_for_a_flag)
{
	struct mutex m;
	struct cond c;
	bool flag = false;
	int64_t start = clock_monotonic_ns();

	mutex_init(&m);
	cond_init(&c);
	CHECK(!cond_sleep_unless(&c, &m, &flag, 20 * NS_PER_MS));
	CHECK(clock_monotonic_ns() - start >= 20 * NS_PER_MS);
	flag = true; /* it is looked at before the wait, which would last for ever */
	CHECK(cond_sleep_unless(&c, &m, &flag, 1000000 * NS_PER_S));
	mutex_lock(&m);
	CHECK(cond_wait_flag(&c, &m, &flag, INT64_MAX));
	mutex_unlock(&m);
	cond_destroy(&c);
	mutex_destroy(&m);
}

TEST(there_is_a_core)
{
	CHECK(cpu_count() >= 1);
}

TEST(a_lock_knows_who_has_it)
{
	struct mutex m = MUTEX_INIT;
	struct cond c;

	cond_init(&c);
	mutex_lock(&m);
	mutex_assert_held(&m);
	CHECK(!cond_wait_until(&c, &m, clock_monotonic_ns() + 1000));
	mutex_assert_held(&m);
	mutex_unlock(&m);
#ifdef EPI_CHECK_LOCKS
	pid_t pid = fork();
	int status;

	if (!pid) {
		fclose(stderr);
		mutex_assert_held(&m);
		_exit(0);
	}
	REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#endif
	cond_destroy(&c);
	mutex_destroy(&m);
}
