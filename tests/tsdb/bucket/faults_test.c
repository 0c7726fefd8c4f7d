/* A store that stalls, cuts, resets, damages, refuses; what is repeated, and what is said. */
#include "base/clock.h"
#include "base/metrics.h"
#include "tests/tsdb/bucket/world.h"
#include "tests/wait.h"
#include "tsdb/bucket/internal.h"

static void fault(enum fake_fault_kind kind, const char *line, unsigned times)
{
	fake_fault(&fake, (struct fake_fault){ .kind = kind, .line = line, .times = times });
}

static void status(int code, const char *name, const char *line, unsigned times)
{
	fake_fault(&fake,
		(struct fake_fault){
			.kind = FAULT_STATUS, .line = line, .times = times, .status = code, .code = name });
}

TEST(get_is_repeated)
{
	static const enum fake_fault_kind kinds[] = { FAULT_RESET, FAULT_RESET_LATER, FAULT_CUT,
		FAULT_DAMAGE, FAULT_STALL };
	struct buf got = { 0 };

	REQUIRE(world_fake());
	config.idle_timeout_ns = 200 * NS_PER_MS;
	config.attempts_max = 1000;
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	CHECK_OK(put_text("k", "0123456789"), &err);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		fault(kinds[i], "GET /b/p/q/k", 2);
		CHECK_OK(get_text("k", &got), &err);
		CHECK_STR(buf_str(&got), "0123456789");
		fault(kinds[i], "GET /b/p/q/k", 1);
		buf_clear(&got);
		if (kinds[i] == FAULT_DAMAGE) { /* a range has no hash of its own */
			fake_forget_faults(&fake);
			continue;
		}
		CHECK_OK(bucket_get(b, STR("k"), 2, 5, &got, NULL, &err), &err);
		CHECK_STR(buf_str(&got), "23456");
	}
	buf_release(&got);
	world_stop();
}

TEST(damage_that_stays_is_named)
{
	struct buf got = { 0 };

	REQUIRE(world_fake());
	config.attempts_max = 2;
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	CHECK_OK(put_text("k", "0123456789"), &err);
	fault(FAULT_DAMAGE, "GET", 9);
	CHECK_ERR(get_text("k", &got), &err, ERR_CORRUPT,
		"bucket b: get p/q/k: after 2 attempts: its SHA-256 is not that of what was put");
	fake_put(&fake, "p/q/foreign", STR("abc"));
	CHECK_ERR(get_text("foreign", &got), &err, ERR_CORRUPT,
		"bucket b: get p/q/foreign: after 2 attempts: its MD5 is not its ETag");
	CHECK_INT(got.len, 0);
	world_stop();
}

/* A store whose ETags are no MD5 shows it at the first put. */
TEST(etags_that_are_no_md5_are_left_alone)
{
	struct buf got = { 0 };

	REQUIRE(world_start());
	fake.other_etags = true;
	CHECK_OK(put_text("k", "x"), &err);
	fake_put(&fake, "p/q/foreign", STR("abc"));
	CHECK_OK(get_text("foreign", &got), &err);
	buf_release(&got);
	world_stop();
}

TEST(statuses_that_are_repeated)
{
	static const struct {
		int status;
		const char *code;
	} rows[] = { { 500, "InternalError" }, { 503, "SlowDown" }, { 429, "SlowDown" },
		{ 503, "ServiceUnavailable" }, { 400, "RequestTimeout" }, { 409, "OperationAborted" },
		{ 502, "" }, { 504, "" }, { 400, "XAmzContentSHA256Mismatch" } };
	struct buf got = { 0 };

	REQUIRE(world_start());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		status(rows[i].status, rows[i].code, "PUT", 2);
		CHECK_OK(put_text("k", "x"), &err);
		status(rows[i].status, rows[i].code, "GET", 2);
		CHECK_OK(get_text("k", &got), &err);
	}
	CHECK_INT(atomic_load(&fake.requests), 9 * 6);
	buf_release(&got);
	world_stop();
}

TEST(errors_in_words)
{
	static const struct {
		int status;
		const char *code;
		enum err_code rc;
		const char *msg;
	} rows[] = {
		{ 403, "AccessDenied", ERR_UNAVAILABLE,
			"access denied: the credentials do not allow s3:PutObject" },
		{ 404, "NoSuchBucket", ERR_UNAVAILABLE, "the bucket does not exist" },
		{ 403, "SignatureDoesNotMatch", ERR_UNAVAILABLE,
			"the signature does not match: the secret key is wrong, or a proxy changes requests" },
		{ 403, "InvalidAccessKeyId", ERR_UNAVAILABLE, "the store does not know the access key" },
		{ 400, "ExpiredToken", ERR_UNAVAILABLE, "the credentials have expired" },
		{ 403, "QuotaExceeded", ERR_LIMIT, "the bucket is full: a quota is exceeded" },
		{ 507, "", ERR_LIMIT, "the store is full" },
		{ 501, "NotImplemented", ERR_UNSUPPORTED, "the store answers 501 NotImplemented: a & b" },
		{ 301, "PermanentRedirect", ERR_UNAVAILABLE,
			"the bucket is elsewhere: asked in region us-east-1" },
		{ 418, "Other", ERR_UNAVAILABLE, "the store answers 418 Other: a & b" },
		{ 418, "b<ad", ERR_UNAVAILABLE, "the store answers 418" },
	};
	char want[256];

	REQUIRE(world_start());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		status(rows[i].status, rows[i].code, "PUT", 1);
		snprintf(want, sizeof(want), "bucket b: put p/q/k: %s", rows[i].msg);
		CHECK_ERR(put_text("k", "x"), &err, rows[i].rc, want);
		CHECK_INT(atomic_load(&fake.requests), i + 1);
	}
	world_stop();
}

TEST(clock_that_is_wrong)
{
	static const struct {
		int64_t ahead_s;
		const char *want;
	} rows[] = { { 1200, ", ours is slow by 20m" }, { -1200, ", ours is fast by 20m" } };

	REQUIRE(world_start());
	for (size_t i = 0; i < 2; i++) {
		fake.ahead_s = rows[i].ahead_s;
		CHECK_INT(put_text("k", "x"), ERR_UNAVAILABLE);
		CHECK(strstr(err.msg, "bucket b: put p/q/k: the clocks differ too much: ours says 20") !=
			NULL);
		CHECK(strstr(err.msg, ", the store's 20") != NULL);
		/* a second may pass between the two clocks */
		if (!strstr(err.msg, rows[i].want) && !strstr(err.msg, " by 19m59s") &&
			!strstr(err.msg, " by 20m"))
			CHECK_FAIL("%s", err.msg);
	}
	world_stop();
}

static enum err_code visit_none(void *ctx, const struct bucket_object *o, struct err *e)
{
	return ERR_OK;
}

TEST(wrong_secret)
{
	REQUIRE(world_fake());
	config.credentials.secret_key = STR("OTHER-SECRET");
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	CHECK_ERR(put_text("k", "x"), &err, ERR_UNAVAILABLE,
		"bucket b: put p/q/k: the signature does not match: the secret key is wrong, or a proxy "
		"changes requests");
	CHECK(!strstr(err.msg, "OTHER"));
	CHECK_INT(fake.refused, 1);
	CHECK_ERR(bucket_list(b,
		STR("x"), STR(""), STR(""), visit_none, NULL, &err), &err, ERR_UNAVAILABLE,
			"bucket b: list: the signature does not match: the secret key is wrong, or a proxy "
			"changes "
			"requests");
	world_stop();
}

/* ---- puts whose answer is lost ---- */

TEST(conditional_put_whose_answer_is_lost_is_ours)
{
	char etag[BUCKET_ETAG_BYTES_MAX], next[BUCKET_ETAG_BYTES_MAX];

	REQUIRE(world_start());
	fault(FAULT_RESET_LATER, "PUT", 1);
	CHECK_OK(bucket_put(b, STR("l"), STR("1"), BUCKET_IF_ABSENT, NULL, etag, &err), &err);
	CHECK_STR(str_of(etag), fake_find(&fake, "p/q/l")->etag);
	fault(FAULT_RESET_LATER, "PUT", 1);
	CHECK_OK(bucket_put(b, STR("l"), STR("2"), BUCKET_IF_ETAG, etag, next, &err), &err);
	CHECK_STR(str_of(next), fake_find(&fake, "p/q/l")->etag);
	fault(FAULT_RESET, "PUT", 1);
	CHECK_ERR(bucket_put(b, STR("l"), STR("2"), BUCKET_IF_ABSENT, NULL, NULL, &err), &err,
		ERR_EXISTS, "bucket b: put p/q/l: the condition does not hold");
	/* who has the object cannot be asked: then it is not known */
	fault(FAULT_RESET_LATER, "PUT", 1);
	status(403, "AccessDenied", "HEAD", 1);
	CHECK_ERR(bucket_put(b, STR("l"), STR("3"), BUCKET_IF_ETAG, next, NULL, &err), &err,
		ERR_UNAVAILABLE,
		"bucket b: head p/q/l: access denied: the credentials do not allow s3:GetObject");
	world_stop();
}

/* ---- deadlines ---- */

TEST(calls_have_a_deadline)
{
	int64_t start_ns = clock_monotonic_ns();
	struct buf got = { 0 };

	REQUIRE(world_fake());
	config.timeout_ns = 300 * NS_PER_MS;
	config.attempts_max = 1000;
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	fault(FAULT_STALL, "/k", 1000);
	CHECK_INT(bucket_put(b, STR("k"), STR("x"), BUCKET_ANY, NULL, NULL, &err), ERR_TIMEOUT);
	CHECK(clock_monotonic_ns() - start_ns >= 300 * NS_PER_MS);
	fake_forget_faults(&fake);
	status(503, "SlowDown", "/k", 1000000);
	/* the first attempt may take all of the time on a busy machine */
	CHECK(WAIT_FOR(get_text("k", &got) == ERR_UNAVAILABLE &&
		strstr(err.msg, "attempts: the store is busy (SlowDown)")));
	world_stop();
}

TEST(nobody_listens)
{
	struct buf got = { 0 };

	REQUIRE(world_fake());
	fake_stop(&fake);
	config.attempts_max = 2;
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	CHECK_INT(get_text("k", &got), ERR_UNAVAILABLE);
	CHECK(strstr(err.msg, "bucket b: get p/q/k: after 2 attempts: ") != NULL);
	bucket_close(b);
	b = NULL;
}

/* ---- second requests ---- */

static void learn_times(void)
{
	struct buf got = { 0 };

	for (int i = 0; i < 200; i++)
		CHECK_OK(get_text("k", &got), &err);
	buf_release(&got);
}

TEST(slow_get_is_sent_again)
{
	struct buf got = { 0 };

	REQUIRE(world_fake());
	config.hedge_min_ns = NS_PER_MS;
	config.attempts_max = 1;
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	CHECK_OK(put_text("k", "0123456789"), &err);
	learn_times();
	for (int i = 0; i < 5; i++) { /* each of them would take its deadline */
		mutex_lock(&b->hedging.lock);
		b->hedging.credit = HEDGING_GETS;
		mutex_unlock(&b->hedging.lock);
		fault(FAULT_STALL, "GET", 1);
		CHECK_OK(get_text("k", &got), &err);
		CHECK_STR(buf_str(&got), "0123456789");
	}
	buf_release(&got);
	world_stop();
}

TEST(second_requests_are_few)
{
	struct hedging h = { .credit = 0 };
	unsigned second = 0;

	hedging_init(&h);
	for (int i = 0; i < 19; i++)
		hedging_took(&h, 100, NS_PER_MS);
	CHECK_INT(hedging_begin(&h, 100), 0);
	for (int i = 1; i <= 101; i++)
		hedging_took(&h, 100, i * NS_PER_MS);
	CHECK_INT(hedging_begin(&h, 100) / NS_PER_MS, 92);
	CHECK_INT(hedging_begin(&h, 100000), 0); /* another class */
	CHECK_INT(hedging_begin(&h, UINT64_MAX), 0);
	h.credit = 0;
	for (int i = 0; i < 10000; i++) {
		hedging_begin(&h, 100);
		second += hedging_allow(&h);
	}
	CHECK_INT(second, 500);
	hedging_release(&h);
}

/* ---- many threads ---- */

static atomic_uint done;

static void work(void *ctx)
{
	char key[32], text[64];
	struct buf got = { 0 };
	struct err e;

	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "t%u/%d", (unsigned)(uintptr_t)ctx, i % 3);
		snprintf(text, sizeof(text), "%s text %d", key, i);
		buf_clear(&got);
		if (!bucket_put(b, str_of(key), str_of(text), BUCKET_ANY, NULL, NULL, &e) &&
			!bucket_get(b, str_of(key), 0, BUCKET_TO_END, &got, NULL, &e) &&
			str_is(buf_str(&got), text))
			atomic_fetch_add(&done, 1);
	}
	buf_release(&got);
}

TEST(many_threads_call)
{
	struct thread threads[8] = { 0 };

	REQUIRE(world_start());
	status(503, "SlowDown", "/t", 10);
	for (unsigned i = 0; i < 8; i++)
		CHECK_OK(thread_start(&threads[i], "caller", work, (void *)(uintptr_t)i, &err), &err);
	for (unsigned i = 0; i < 8; i++)
		thread_join(&threads[i]);
	CHECK_INT(atomic_load(&done), 160);
	world_stop();
}
