#include "scrape/receive/latch.h"

#include "base/thread.h"
#include "tests/check.h"

struct downs {
	struct latch *latch;
	_Atomic uint32_t done;
};

static void down_some(void *ctx)
{
	struct downs *d = ctx;

	for (int i = 0; i < 100; i++) {
		atomic_fetch_add(&d->done, 1);
		latch_down(d->latch);
	}
}

/* All that was done before each latch_down is seen. */
static void wait_for_downs(void)
{
	struct latch latch;
	struct downs d = { .latch = &latch };
	struct thread threads[4] = { 0 };
	struct err err;

	latch_init(&latch, 400);
	for (size_t i = 0; i < 4; i++)
		REQUIRE_OK(thread_start(&threads[i], "downs", down_some, &d, &err), &err);
	latch_wait(&latch);
	CHECK_INT(atomic_load(&d.done), 400);
	for (size_t i = 0; i < 4; i++)
		thread_join(&threads[i]);
}

TEST(latch_waits_for_all)
{
	struct latch none;

	latch_init(&none, 0);
	latch_wait(&none);
	for (int i = 0; i < 20; i++)
		wait_for_downs();
}
