/* The gate before a shard's sink: what is refused before it is stored, and once it is. */
#include "cmd/epimetheus/lease_gate.h"

#include <time.h>

#include "base/clock.h"
#include "tests/tsdb/cluster/shard_world.h"

static _Atomic int64_t slept_ns;

static int64_t running_ns(void)
{
	return clock_monotonic_ns() + slept_ns;
}

static int64_t system_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static const struct clock_source sleeping = { system_ns, running_ns };

/* Stores at once; `sleeps_ns` pass before that is durable. */
static struct {
	struct sink sink;
	size_t stored;
	int64_t sleeps_ns;
	enum err_code append, commit;
} behind;

static enum err_code behind_take(sink_done_fn done, void *ctx, struct err *to)
{
	struct err why;

	if (behind.append)
		return err_set(to, behind.append, "not taken");
	behind.stored += !behind.commit;
	slept_ns += behind.sleeps_ns;
	err_set(&why, behind.commit, "not durable");
	done(ctx, behind.commit, behind.commit ? &why : NULL);
	return ERR_OK;
}

static enum err_code behind_append(
	struct sink *sink, const struct sink_profile *p, sink_done_fn done, void *ctx, struct err *to)
{
	(void)sink;
	(void)p;
	return behind_take(done, ctx, to);
}

static enum err_code behind_append_numbers(struct sink *sink, const struct sink_number *numbers,
	size_t n, sink_done_fn done, void *ctx, struct err *to)
{
	(void)sink;
	(void)numbers;
	(void)n;
	return behind_take(done, ctx, to);
}

static const struct sink_ops behind_ops = { behind_append, behind_append_numbers };

struct answer {
	unsigned n;
	enum err_code rc;
	struct err err;
};

static void on_done(void *ctx, enum err_code rc, const struct err *why)
{
	struct answer *a = ctx;

	a->n++;
	a->rc = rc;
	if (why)
		a->err = *why;
}

static const struct {
	const char *what;
	int64_t before_ns, after_ns; /* that pass before it is stored, and before it is durable */
	enum err_code append, commit;
	enum err_code rc; /* of append */
	enum err_code done;
	const char *text; /* of either */
	size_t stored;
} rows[] = {
	{ "fresh", 0, 0, ERR_OK, ERR_OK, ERR_OK, ERR_OK, NULL, 1 },
	{ "old before", 91 * SEC, 0, ERR_OK, ERR_OK, ERR_UNAVAILABLE, ERR_OK,
		"shard a has not confirmed its lease for 91.", 0 },
	{ "old after", 0, 91 * SEC, ERR_OK, ERR_OK, ERR_OK, ERR_UNAVAILABLE,
		"shard a has not confirmed its lease for 91.", 1 },
	{ "nearly", 40 * SEC, 40 * SEC, ERR_OK, ERR_OK, ERR_OK, ERR_OK, NULL, 1 },
	{ "not taken", 0, 0, ERR_INVALID, ERR_OK, ERR_INVALID, ERR_OK, "not taken", 0 },
	{ "not durable", 0, 91 * SEC, ERR_OK, ERR_IO, ERR_OK, ERR_IO, "not durable", 0 },
};

static void check_row(size_t i, bool numbers)
{
	struct answer a = { 0 };
	struct lease_gate g;
	enum err_code rc;

	behind.stored = 0;
	behind.append = rows[i].append;
	behind.commit = rows[i].commit;
	behind.sleeps_ns = rows[i].after_ns;
	CHECK_OK(publisher_round(shard_publisher(s), &err), &err);
	lease_gate_init(&g, &behind.sink, s);
	slept_ns += rows[i].before_ns;
	rc = numbers ? g.sink.ops->append_numbers(&g.sink, NULL, 0, on_done, &a, &err) :
				   g.sink.ops->append(&g.sink, NULL, on_done, &a, &err);
	if (rc != rows[i].rc || a.n != !rows[i].rc || a.rc != rows[i].done ||
		behind.stored != rows[i].stored)
		CHECK_FAIL(
			"%s: %d, %u answers, %d, %zu stored", rows[i].what, rc, a.n, a.rc, behind.stored);
	if (rows[i].text)
		CHECK(str_has_prefix(str_of(rc ? err.msg : a.err.msg), str_of(rows[i].text)));
}

TEST(what_is_acknowledged)
{
	behind.sink.ops = &behind_ops;
	REQUIRE(open_world());
	clock_use(&sleeping);
	o.lease_ns = 90 * SEC;
	REQUIRE(start());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int numbers = 0; numbers < 2; numbers++)
			check_row(i, numbers);
	clock_use(NULL);
	close_world();
}
