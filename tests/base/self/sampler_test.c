/* The sampler runs once at a time, can be canceled, and can run again afterwards. */
#include "base/self/sampler.h"

#include "base/clock.h"
#include "base/thread.h"
#include "tests/check.h"

struct turn {
	struct unwind_tables tables;
	atomic_bool cancel;
	enum err_code rc;
	struct err err;
};

static void ignore(void *ctx, int tid, const uint64_t *pcs, size_t n) {}

static enum err_code sample(struct turn *t, int64_t duration_ns)
{
	struct sampler_stats stats;

	return sampler_run(
		duration_ns, NS_PER_S, &t->cancel, &t->tables, ignore, NULL, &stats, &t->err);
}

static void sample_long(void *ctx)
{
	struct turn *t = ctx;

	while ((t->rc = sample(t, NS_PER_HOUR)) == ERR_UNAVAILABLE) /* the other one is quick */
		;
}

TEST(one_profile_at_a_time)
{
	static struct turn first, second;
	struct thread thread;
	struct err err;

	unwind_tables_load(&first.tables);
	unwind_tables_load(&second.tables);
	CHECK_OK(sample(&second, 0), &second.err);
	REQUIRE_OK(thread_start(&thread, "sampler", sample_long, &first, &err), &err);
	while (!sample(&second, 0)) /* until the first has begun */
		;
	CHECK_STR(str_of(second.err.msg), "cpu profiling already in use");
	CHECK_INT(second.err.code, ERR_UNAVAILABLE);
	atomic_store(&first.cancel, true);
	thread_join(&thread);
	CHECK_INT(first.rc, ERR_CANCELED);
	CHECK_STR(str_of(first.err.msg), "cpu profile: canceled");
	CHECK_OK(sample(&second, NS_PER_MS), &second.err);
}
