/* Calls that are canceled, and what the store counts. */
#include "base/clock.h"
#include "tests/tsdb/bucket/world.h"
#include "tests/wait.h"

#define CALLERS 6

static struct caller {
	struct thread thread;
	enum err_code rc;
	struct err err;
} callers[CALLERS];
static atomic_uint ended;

static void get_k(void *ctx)
{
	struct caller *c = ctx;
	struct buf got = { 0 };

	c->rc = bucket_get(b, STR("k"), 0, BUCKET_TO_END, &got, NULL, &c->err);
	buf_release(&got);
	atomic_fetch_add(&ended, 1);
}

/* All of them are in a get that does not end by itself. */
static bool begin(struct fake_fault fault)
{
	unsigned before;

	config.attempts_max = 1000000;
	config.timeout_ns = 3600 * NS_PER_S;
	config.attempt_timeout_ns = 3600 * NS_PER_S;
	config.idle_timeout_ns = 3600 * NS_PER_S;
	config.pause_ns = config.pause_max_ns = 3600 * NS_PER_S;
	if (bucket_open(&config, &b, &err))
		return false;
	atomic_store(&ended, 0);
	before = atomic_load(&fake.requests);
	fake_fault(&fake, fault);
	for (int i = 0; i < CALLERS; i++)
		if (thread_start(&callers[i].thread, "caller", get_k, &callers[i], &err))
			return false;
	return WAIT_FOR(atomic_load(&fake.requests) - before == CALLERS);
}

static void check_canceled(const char *msg)
{
	for (int i = 0; i < CALLERS; i++) {
		thread_join(&callers[i].thread);
		CHECK_ERR(callers[i].rc, &callers[i].err, ERR_CANCELED, msg);
	}
}

TEST(requests_under_way)
{
	struct buf got = { 0 };

	REQUIRE(world_fake());
	REQUIRE(begin((struct fake_fault){ FAULT_STALL, "GET", 1000000 }));
	CHECK_INT(atomic_load(&ended), 0);
	bucket_cancel(b, clock_monotonic_ns());
	check_canceled("bucket b: get p/q/k: canceled");
	/* later ones, too, and nothing is sent */
	CHECK_ERR(get_text("k", &got), &err, ERR_CANCELED, "bucket b: get p/q/k: canceled");
	CHECK_ERR(put_text("k", "x"), &err, ERR_CANCELED, "bucket b: put p/q/k: canceled");
	CHECK_INT(atomic_load(&fake.requests), CALLERS);
	/* until it is taken back */
	bucket_cancel(b, INT64_MAX);
	CHECK_OK(put_text("k", "x"), &err);
	world_stop();
}

TEST(pauses)
{
	REQUIRE(world_fake());
	REQUIRE(begin((struct fake_fault){
		FAULT_STATUS, "GET", 1000000, 503, "SlowDown", "Retry-After: 1000\r\n" }));
	bucket_cancel(b, 0);
	for (int i = 0; i < CALLERS; i++) {
		thread_join(&callers[i].thread);
		CHECK_INT(callers[i].rc, ERR_CANCELED);
	}
	world_stop();
}

TEST(at_a_time)
{
	REQUIRE(world_fake());
	REQUIRE(begin((struct fake_fault){ FAULT_STALL, "GET", 1000000 }));
	bucket_cancel(b, clock_monotonic_ns() + 3600 * NS_PER_S);
	bucket_cancel(b, INT64_MAX);
	bucket_cancel(b, clock_monotonic_ns() + 50 * NS_PER_MS);
	check_canceled("bucket b: get p/q/k: canceled");
	world_stop();
}

TEST(a_last_call_has_some_time)
{
	REQUIRE(world_fake());
	REQUIRE(begin((struct fake_fault){ FAULT_STALL, "GET", 1000000 }));
	bucket_cancel(b, 0);
	check_canceled("bucket b: get p/q/k: canceled");
	bucket_cancel(b, clock_monotonic_ns() + 3600 * NS_PER_S);
	CHECK_OK(put_text("k", "x"), &err);
	CHECK(fake_find(&fake, "p/q/k") != NULL);
	world_stop();
}

/* ---- usage ---- */

static enum err_code ignore(void *ctx, const struct bucket_object *o, struct err *e)
{
	return ERR_OK;
}

TEST(usage)
{
	static const struct {
		const char *name;
		uint64_t requests, sent, received;
	} want[BUCKET_KINDS] = { { "get", 2, 0, 10 + 4 }, { "head", 2, 0, 0 }, { "put", 1, 10, 0 },
		{ "list", 1, 0, 0 }, { "delete", 1, 0, 0 } };
	const struct bucket_prices prices = { 5, 0.4, 23 };
	struct bucket_usage u;
	struct bucket_info info;
	struct buf got = { 0 };

	REQUIRE(world_start());
	CHECK_OK(put_text("k", "0123456789"), &err);
	CHECK_OK(get_text("k", &got), &err);
	CHECK_OK(bucket_get(b, STR("k"), 2, 4, &got, NULL, &err), &err);
	fake_fault(&fake, (struct fake_fault){ FAULT_STATUS, "HEAD", 1, 500, "InternalError", NULL });
	CHECK_OK(bucket_head(b, STR("k"), &info, &err), &err);
	CHECK_OK(bucket_list(b, STR(""), STR(""), STR(""), ignore, NULL, &err), &err);
	CHECK_OK(bucket_delete(b, STR("k"), &err), &err);
	bucket_get_usage(b, &u);
	for (size_t i = 0; i < BUCKET_KINDS; i++) {
		CHECK_STR(str_of(bucket_kind_name(i)), want[i].name);
		CHECK_INT(u.kinds[i].requests, want[i].requests);
		CHECK_INT(u.kinds[i].sent_bytes, want[i].sent);
		if (i != BUCKET_LISTS)
			CHECK_INT(u.kinds[i].received_bytes, want[i].received);
	}
	CHECK(u.kinds[BUCKET_LISTS].received_bytes > 100);
	u = (struct bucket_usage){ 0 };
	u.kinds[BUCKET_PUTS].requests = 3000000;
	u.kinds[BUCKET_LISTS].requests = 1000000;
	u.kinds[BUCKET_GETS].requests = 5000000;
	u.kinds[BUCKET_DELETES].requests = 9000000;
	CHECK(bucket_requests_cost(&u, &prices) == 22);
	CHECK(bucket_storage_cost(UINT64_C(2000000000000), &prices) == 46);
	buf_release(&got);
	world_stop();
}

TEST(check_of_a_configuration)
{
	struct bucket_config c = { .endpoint = STR("http://s3"), .bucket = STR("b") };

	CHECK_OK(bucket_config_check(&c, &err), &err);
	c.prefix = STR("a//b");
	CHECK_ERR(bucket_config_check(&c, &err), &err, ERR_INVALID,
		"prefix \"a//b\" has an empty part, or \".\" or \"..\"");
	c.prefix = STR("");
	c.bucket = STR("a/b");
	CHECK_ERR(bucket_config_check(&c, &err), &err, ERR_INVALID, "bucket name with a \"/\"");
	c.bucket = STR("b");
	c.endpoint = STR("http://s3/?a");
	CHECK_ERR(bucket_config_check(&c, &err), &err, ERR_INVALID,
		"endpoint: a query, a fragment or a \"%\" cannot be in it");
}
