/* Budgets that share a pool: what is counted, who waits, who is refused. */
#include "base/memory_pool.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/thread.h"
#include "tests/check.h"
#include "tests/wait.h"

#define MAX ((size_t)1 << 20)
#define KIB ((size_t)1024)

static bool never(const void *ctx)
{
	(void)ctx;
	return false;
}

static bool flag_is_set(const void *ctx)
{
	return atomic_load((const atomic_bool *)ctx);
}

static struct memory_pool *open_pool(void)
{
	struct memory_pool *p = NULL;
	struct err err;

	if (memory_pool_open(MAX, "--all", &p, &err)) {
		CHECK_FAIL("open: %s", err.msg);
		exit(1);
	}
	return p;
}

static void join(struct memory_pool *p, struct budget *b)
{
	*b = (struct budget){ .max_bytes = 8 * MAX, .flag = "--each" };
	memory_pool_join(p, b, never, NULL);
}

TEST(what_budgets_hold_is_counted_and_given_back)
{
	struct memory_pool *p = open_pool();
	struct budget a, b;
	struct arena arena;

	join(p, &a);
	join(p, &b);
	CHECK(budget_take(&a, 100 * KIB));
	CHECK(budget_take(&b, 1));
	CHECK(memory_pool_look(p).used_bytes >= 100 * KIB + 1);
	CHECK(memory_pool_look(p).used_bytes < 120 * KIB);
	CHECK(budget_take(&b, 900 * KIB)); /* to the last byte that is left */
	budget_give(&b, 900 * KIB);
	CHECK(memory_pool_look(p).used_bytes < 120 * KIB);
	arena_init_shared(&arena, &b);
	for (int i = 0; i < 100; i++)
		CHECK(arena_alloc(&arena, 4 * KIB) != NULL);
	CHECK(memory_pool_look(p).used_bytes >= 500 * KIB);
	arena_release(&arena);
	budget_give(&b, 1);
	budget_give(&a, 100 * KIB);
	CHECK_INT(a.used_bytes + b.used_bytes, 0);
	memory_pool_leave(&a);
	memory_pool_leave(&b);
	memory_pool_leave(&b); /* once is enough */
	CHECK_INT(memory_pool_look(p).used_bytes, 0);
	CHECK_INT(memory_pool_look(p).waits, 0);
	memory_pool_close(p);
}

TEST(what_would_never_do_is_refused_at_once_and_less_is_not)
{
	struct memory_pool *p = open_pool();
	struct budget a, b;
	struct err err;

	join(p, &a);
	join(p, &b);
	CHECK(budget_take(&b, 10 * KIB));
	CHECK(!budget_take(&a, MAX + 1));
	CHECK_ERR(budget_fail(&a, "query", &err), &err, ERR_LIMIT,
		"query needs more memory than the 1048576 bytes that all may use together (--all)");
	CHECK(!memory_pool_was_short(&a));
	CHECK_INT(a.used_bytes, 0);
	CHECK(budget_take(&a, 10 * KIB));
	CHECK(!budget_take(&a, 8 * MAX));
	CHECK_ERR(budget_fail(&a, "query", &err), &err, ERR_LIMIT,
		"query needs more memory than its limit of 8388608 bytes (--each)");
	budget_give(&a, 10 * KIB);
	budget_give(&b, 10 * KIB);
	memory_pool_leave(&a);
	memory_pool_leave(&b);
	memory_pool_close(p);
}

struct taker {
	struct memory_pool *pool;
	struct budget budget;
	size_t bytes;
	atomic_bool done, stop;
	bool ok;
};

static void take(void *ctx)
{
	struct taker *t = ctx;

	t->ok = budget_take(&t->budget, t->bytes);
	atomic_store(&t->done, true);
}

static void until_waits(struct memory_pool *p, uint64_t n)
{
	CHECK(WAIT_FOR(memory_pool_look(p).waits >= n));
	CHECK_INT(memory_pool_look(p).waits, n);
}

TEST(who_finds_no_room_waits_for_it)
{
	struct memory_pool *p = open_pool();
	struct taker t = { .bytes = 600 * KIB };
	struct thread thread = { 0 };
	struct budget a;
	struct err err;

	join(p, &a);
	join(p, &t.budget);
	CHECK(budget_take(&a, 600 * KIB));
	REQUIRE_OK(thread_start(&thread, "taker", take, &t, &err), &err);
	until_waits(p, 1);
	CHECK(!atomic_load(&t.done));
	budget_give(&a, 600 * KIB);
	thread_join(&thread);
	CHECK(t.ok);
	CHECK_INT(memory_pool_look(p).refused, 0);
	budget_give(&t.budget, 600 * KIB);
	memory_pool_leave(&t.budget);
	memory_pool_leave(&a);
	memory_pool_close(p);
}

TEST(who_gives_up_is_told_what_to_raise)
{
	struct memory_pool *p = open_pool();
	struct taker t = { .bytes = 600 * KIB };
	struct thread thread = { 0 };
	struct budget a;
	struct err err;

	join(p, &a);
	t.budget = (struct budget){ .max_bytes = 8 * MAX, .flag = "--each" };
	memory_pool_join(p, &t.budget, flag_is_set, &t.stop);
	CHECK(budget_take(&a, 600 * KIB));
	REQUIRE_OK(thread_start(&thread, "taker", take, &t, &err), &err);
	until_waits(p, 1);
	atomic_store(&t.stop, true);
	thread_join(&thread);
	CHECK(!t.ok);
	CHECK_ERR(budget_fail(&t.budget, "query", &err), &err, ERR_UNAVAILABLE,
		"query found no memory: others use the 1048576 bytes that all may use together "
		"(--all): try again later");
	CHECK_INT(t.budget.used_bytes, 0);
	CHECK_INT(memory_pool_look(p).refused, 1);
	budget_give(&a, 600 * KIB);
	memory_pool_leave(&t.budget);
	memory_pool_leave(&a);
	memory_pool_close(p);
}

struct tied {
	struct taker t;
	size_t held;
};

/* Takes more. If it is refused, it gives back all that it held, and ends. */
static void take_or_end(void *ctx)
{
	struct tied *x = ctx;

	take(&x->t);
	if (!x->t.ok)
		budget_give(&x->t.budget, x->held);
}

/* Two budgets hold memory and want more: one is refused at once, and the other goes on. */
static void tie(bool elder)
{
	struct memory_pool *p = open_pool();
	struct tied old = { .t.bytes = 300 * KIB, .held = 450 * KIB }, young = old;
	struct tied *wins = elder ? &young : &old, *ends = elder ? &old : &young;
	struct thread threads[2] = { 0 };
	struct err err;

	join(p, &old.t.budget);
	join(p, &young.t.budget);
	if (elder)
		CHECK(memory_pool_become_elder(&young.t.budget));
	CHECK(budget_take(&old.t.budget, old.held));
	CHECK(budget_take(&young.t.budget, young.held));
	REQUIRE_OK(thread_start(&threads[0], "old", take_or_end, &old, &err), &err);
	REQUIRE_OK(thread_start(&threads[1], "young", take_or_end, &young, &err), &err);
	for (int i = 0; i < 2; i++)
		thread_join(&threads[i]);
	CHECK(wins->t.ok);
	CHECK(!ends->t.ok);
	CHECK(memory_pool_was_short(&ends->t.budget));
	CHECK(!budget_take(&ends->t.budget, 10 * KIB)); /* its query is to end */
	CHECK_INT(memory_pool_look(p).refused, 1);
	budget_give(&wins->t.budget, 750 * KIB);
	memory_pool_leave(&old.t.budget);
	memory_pool_leave(&young.t.budget);
	CHECK_INT(memory_pool_look(p).used_bytes, 0);
	memory_pool_close(p);
}

TEST(where_all_wait_the_youngest_is_refused)
{
	tie(false);
}

TEST(where_all_wait_the_elder_is_not_refused)
{
	tie(true);
}

TEST(who_waits_in_another_line_is_not_waited_for)
{
	struct memory_pool *p = open_pool();
	struct taker t = { .bytes = 300 * KIB };
	struct budget idle;

	join(p, &idle);
	join(p, &t.budget);
	CHECK(budget_take(&idle, 450 * KIB));
	CHECK(budget_take(&t.budget, 450 * KIB));
	memory_pool_idle(&idle, true);
	CHECK(!budget_take(&t.budget, 300 * KIB)); /* would wait for ever otherwise */
	CHECK(memory_pool_was_short(&t.budget));
	memory_pool_idle(&idle, false);
	budget_give(&idle, 450 * KIB);
	budget_give(&t.budget, 450 * KIB);
	memory_pool_leave(&idle);
	memory_pool_leave(&t.budget);
	memory_pool_close(p);
}

/* ---- many at once ---- */

struct storm {
	struct memory_pool *pool;
	atomic_size_t used, peak; /* taken by all and not given back */
	atomic_uint holding, done, again, failed;
};

#define STORM_THREADS 12

/* Takes up to `want` bytes in small steps, some of them given back on the way; false: refused. */
static bool work(struct storm *s, struct budget *b, size_t want, unsigned *seed)
{
	size_t has = 0, step, all, peak;
	bool ok = true;

	while (ok && has < want) {
		step = 1 + (size_t)rand_r(seed) % (40 * KIB);
		if ((ok = budget_take(b, step))) {
			has += step;
			all = atomic_fetch_add(&s->used, step) + step;
			peak = atomic_load(&s->peak);
			while (all > peak && !atomic_compare_exchange_weak(&s->peak, &peak, all))
				;
			if (rand_r(seed) % 4 == 0) {
				atomic_fetch_sub(&s->used, step);
				budget_give(b, step);
				has -= step;
			}
		}
	}
	atomic_fetch_sub(&s->used, has);
	budget_give(b, has);
	return ok;
}

/*
 * All hold something before any of them asks for more than is left: one at least is refused,
 * however the threads run.
 */
static bool take_beside_all(struct storm *s, struct budget *b, size_t want, unsigned *seed)
{
	const size_t held = MAX / 16;
	bool ok;

	CHECK(budget_take(b, held));
	atomic_fetch_add(&s->used, held);
	atomic_fetch_add(&s->holding, 1);
	while (atomic_load(&s->holding) < STORM_THREADS)
		sched_yield();
	ok = work(s, b, want, seed);
	atomic_fetch_sub(&s->used, held);
	budget_give(b, held);
	return ok;
}

static void run(void *ctx)
{
	struct storm *s = ctx;
	unsigned seed = (unsigned)(uintptr_t)&seed;
	struct budget b;

	for (int i = 0; i < 40; i++) {
		size_t want = i ? (size_t)rand_r(&seed) % (900 * KIB) : MAX / 2;
		bool ok;

		join(s->pool, &b);
		ok = i ? work(s, &b, want, &seed) : take_beside_all(s, &b, want, &seed);
		if (!ok && memory_pool_was_short(&b)) {
			memory_pool_leave(&b);
			join(s->pool, &b);
			CHECK(memory_pool_become_elder(&b));
			atomic_fetch_add(&s->again, 1);
			ok = work(s, &b, want, &seed);
		}
		atomic_fetch_add(ok ? &s->done : &s->failed, 1);
		memory_pool_leave(&b);
	}
}

TEST(whatever_fits_alone_gets_done_among_many)
{
	struct storm s = { .pool = open_pool() };
	struct thread threads[STORM_THREADS] = { 0 };
	struct err err;

	for (int i = 0; i < STORM_THREADS; i++)
		REQUIRE_OK(thread_start(&threads[i], "storm", run, &s, &err), &err);
	for (int i = 0; i < STORM_THREADS; i++)
		thread_join(&threads[i]);
	CHECK_INT(atomic_load(&s.done), STORM_THREADS * 40);
	CHECK_INT(atomic_load(&s.failed), 0);
	CHECK(atomic_load(&s.again) > 0);
	CHECK(atomic_load(&s.peak) <= MAX);
	CHECK_INT(memory_pool_look(s.pool).used_bytes, 0);
	memory_pool_close(s.pool);
}

/* Several threads take from one budget at a time: every byte is covered and counted once. */
struct shared {
	struct storm *s;
	struct budget *b;
	unsigned seed;
};

static void run_shared(void *ctx)
{
	struct shared *x = ctx;

	for (int i = 0; i < 50; i++)
		if (!work(x->s, x->b, 100 * KIB, &x->seed))
			atomic_fetch_add(&x->s->failed, 1);
}

TEST(threads_of_one_budget)
{
	struct storm s = { .pool = open_pool() };
	struct thread threads[6] = { 0 };
	struct shared x[6];
	struct budget b;
	struct err err;

	join(s.pool, &b);
	for (unsigned i = 0; i < 6; i++) {
		x[i] = (struct shared){ &s, &b, i };
		REQUIRE_OK(thread_start(&threads[i], "shared", run_shared, &x[i], &err), &err);
	}
	for (int i = 0; i < 6; i++)
		thread_join(&threads[i]);
	CHECK_INT(atomic_load(&s.failed), 0);
	CHECK_INT(b.used_bytes, 0);
	CHECK(memory_pool_look(s.pool).used_bytes < 20 * KIB);
	memory_pool_leave(&b);
	CHECK_INT(memory_pool_look(s.pool).used_bytes, 0);
	memory_pool_close(s.pool);
}
