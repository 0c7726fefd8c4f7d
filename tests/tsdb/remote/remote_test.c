/* Objects read by pages: how many requests that takes, what is kept, and what is noticed. */
#include "tests/tsdb/remote/world.h"
#include "tests/wait.h"

static struct buf bytes;

/* An object of so many pages, less a few bytes, that its size is known of; read by *r. */
static bool open_object(const char *key, uint32_t pages, struct range_reader **r)
{
	make_bytes(&bytes, (size_t)pages * PAGE - 100, pages);
	put_object(key, &bytes);
	range_know(remote_source(remote), key, bytes.len, 7);
	return range_open(remote_source(remote), key, r, &err) == ERR_OK;
}

TEST(opening_asks_only_what_is_not_known)
{
	struct range_reader *r;
	struct buf got = { 0 };
	unsigned before;

	REQUIRE(remote_world(100));
	before = atomic_load(&fake.requests);
	REQUIRE(open_object("k", 2, &r));
	CHECK_INT(atomic_load(&fake.requests), before);
	CHECK_INT(r->bytes, 2 * PAGE - 100);
	CHECK_STR(str_of(r->name), "k");
	range_close(r);
	put_object("other", &bytes);
	REQUIRE_OK(range_open(remote_source(remote), "other", &r, &err), &err);
	CHECK_INT(atomic_load(&fake.requests), before + 1);
	CHECK_OK(read_same(r, &bytes, 0, bytes.len, &err), &err);
	range_close(r);
	CHECK_ERR(range_open(remote_source(remote), "none", &r, &err), &err, ERR_NOT_FOUND,
		"none: bucket b: head p/q/none: no such object");
	CHECK_OK(range_read_all(remote_source(remote), "k", 1 << 20, &got, &err), &err);
	CHECK(str_eq(buf_str(&got), buf_str(&bytes)));
	range_know(remote_source(remote), "empty", 0, 0);
	buf_clear(&got);
	CHECK_OK(range_read_all(remote_source(remote), "empty", 1, &got, &err), &err);
	CHECK_INT(got.len, 0);
	buf_release(&got);
	remote_world_stop();
}

TEST(reading_in_order_takes_few_requests)
{
	static const struct {
		uint32_t pages;
		uint64_t requests;
	} cases[] = { { 1, 1 }, { 8, 1 }, { 9, 4 }, { 160, 8 }, { 320, 11 } };
	struct range_reader *r;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		REQUIRE(remote_world(0));
		REQUIRE(open_object("k", cases[i].pages, &r));
		for (uint64_t at = 0; at < bytes.len; at += 16384)
			CHECK_OK(
				read_same(r, &bytes, at, bytes.len - at < 16384 ? bytes.len - at : 16384, &err),
				&err);
		CHECK_INT(requests(), cases[i].requests);
		range_close(r);
		remote_world_stop();
	}
}

TEST(the_end_of_an_object_is_one_request)
{
	struct range_reader *r;

	REQUIRE(remote_world(100));
	REQUIRE(open_object("k", 100, &r));
	CHECK_OK(read_same(r, &bytes, bytes.len - 48, 48, &err), &err);
	CHECK_OK(read_same(r, &bytes, bytes.len - PAGE, PAGE - 48, &err), &err);
	CHECK_INT(requests(), 1);
	range_close(r);
	remote_world_stop();
}

TEST(what_is_near_is_read_with_it)
{
	struct range_reader *r;

	REQUIRE(remote_world(200));
	REQUIRE(open_object("k", 100, &r));
	CHECK_OK(read_same(r, &bytes, 10 * PAGE, 10, &err), &err); /* 10 */
	CHECK_OK(read_same(r, &bytes, 11 * PAGE, 10, &err), &err); /* 11, 12 */
	CHECK_OK(read_same(r, &bytes, 12 * PAGE, 10, &err), &err);
	CHECK_INT(requests(), 2);
	CHECK_OK(read_same(r, &bytes, 17 * PAGE, 10, &err), &err); /* 17 ... 20 */
	CHECK_OK(read_same(r, &bytes, 20 * PAGE, 10, &err), &err);
	CHECK_INT(requests(), 3);
	/* What is there in between is read again rather than twice asked for. */
	CHECK_OK(read_same(r, &bytes, 8 * PAGE + 5, 12 * PAGE, &err), &err); /* 8 ... 16 */
	CHECK_INT(requests(), 4);
	range_close(r);
	remote_world_stop();
}

TEST(what_is_expected_is_read_in_the_background_together)
{
	struct range_reader *r;
	struct remote_status s;

	REQUIRE(remote_world(300));
	REQUIRE(open_object("k", 200, &r));
	for (uint64_t i = 0; i < 40; i += 4) /* pages 20 ... 56 */
		range_expect(r, (20 + i) * PAGE + 5, 100);
	range_expect(r, 100 * PAGE, 5 * PAGE + 1); /* 100 ... 105: the first ones go */
	CHECK(WAIT_FOR(requests() == 1));
	remote_status(remote, &s);
	CHECK_INT(s.request_bytes, 37 * PAGE);
	CHECK_OK(read_same(r, &bytes, 40 * PAGE, 17 * PAGE, &err), &err);
	CHECK_INT(requests(), 1);
	/* The first page that is wanted brings the rest. */
	CHECK_OK(read_same(r, &bytes, 100 * PAGE, 10, &err), &err);
	CHECK_OK(read_same(r, &bytes, 101 * PAGE, 5 * PAGE, &err), &err);
	CHECK_INT(requests(), 2);
	range_expect(r, bytes.len, 5);
	range_expect(r, 150 * PAGE, UINT64_MAX);
	range_close(r); /* what is on its way does not mind */
	remote_world_stop();
}

/* In whatever order: what is near is one request. */
TEST(what_is_expected_from_the_back_is_read_together)
{
	struct range_reader *r;
	struct remote_status s;

	REQUIRE(remote_world(300));
	REQUIRE(open_object("k", 200, &r));
	range_expect(r, 30 * PAGE, 10);
	range_expect(r, 26 * PAGE, 10);
	range_expect(r, 34 * PAGE, 10);
	range_expect(r, 22 * PAGE, 10); /* 22 ... 34 */
	range_expect(r, 30 * PAGE, 10);
	range_expect(r, 17 * PAGE, 10); /* farther than the gap */
	CHECK(WAIT_FOR(requests() == 1));
	remote_status(remote, &s);
	CHECK_INT(s.request_bytes, 13 * PAGE);
	CHECK_OK(read_same(r, &bytes, 22 * PAGE, 13 * PAGE, &err), &err);
	CHECK_INT(requests(), 1);
	range_close(r);
	remote_world_stop();
}

/* More is expected than may be on its way: the rest comes when it is wanted. */
TEST(expecting_too_much_is_harmless)
{
	struct range_reader *r;

	REQUIRE(remote_world(0));
	options.memory_bytes = 8 * PAGE;
	REQUIRE(remote_again());
	REQUIRE(open_object("k", check_is_short() ? 60 : 300, &r));
	for (int i = 0; i < (check_is_short() ? 2 : 100 / CHECK_STEP); i++)
		range_expect(r, 0, UINT64_MAX);
	CHECK_OK(read_same(r, &bytes, 0, bytes.len, &err), &err);
	range_close(r);
	remote_world_stop();
}

TEST(pages_outlive_the_process)
{
	struct range_reader *r;

	REQUIRE(remote_world(300));
	REQUIRE(open_object("k", 200, &r));
	CHECK_OK(read_same(r, &bytes, 0, bytes.len, &err), &err);
	range_close(r);
	REQUIRE(remote_again());
	REQUIRE(open_object("k", 200, &r));
	CHECK_OK(read_same(r, &bytes, 0, bytes.len, &err), &err);
	CHECK_INT(requests(), 0);
	range_close(r);
	/* Other contents under the key: the manifest says so, by the hash. */
	make_bytes(&bytes, bytes.len, 99);
	put_object("k", &bytes);
	range_know(remote_source(remote), "k", bytes.len, 8);
	REQUIRE_OK(range_open(remote_source(remote), "k", &r, &err), &err);
	CHECK_OK(read_same(r, &bytes, 0, bytes.len, &err), &err);
	CHECK(requests() > 0);
	range_close(r);
	remote_world_stop();
}

TEST(a_forgotten_object_is_kept_no_longer)
{
	struct range_reader *r;
	struct remote_status s;

	REQUIRE(remote_world(300));
	REQUIRE(open_object("k", 20, &r));
	CHECK_OK(read_same(r, &bytes, 0, bytes.len, &err), &err);
	range_forget(remote_source(remote), "k");
	CHECK_OK(read_same(r, &bytes, 0, bytes.len, &err), &err); /* its reader goes on */
	range_close(r);
	range_forget(remote_source(remote), "k");
	range_forget(remote_source(remote), "never known");
	REQUIRE(open_object("k", 20, &r));
	range_close(r);
	range_forget(remote_source(remote), "k");
	remote_status(remote, &s);
	CHECK_INT(s.cache_bytes, 0);
	CHECK_ERR(range_open(remote_source(remote), "gone", &r, &err), &err, ERR_NOT_FOUND,
		"gone: bucket b: head p/q/gone: no such object");
	remote_world_stop();
}

/* ---- what is noticed ---- */

TEST(an_object_that_changed_is_named)
{
	struct range_reader *r;

	REQUIRE(remote_world(300));
	REQUIRE(open_object("k", 50, &r));
	CHECK_OK(read_same(r, &bytes, 0, 10, &err), &err);
	make_bytes(&bytes, bytes.len, 99);
	put_object("k", &bytes);
	CHECK_INT(read_same(r, &bytes, 30 * PAGE, 10, &err), ERR_CORRUPT);
	CHECK(str_has_prefix(
		str_of(err.msg), STR("k: the object was changed in the bucket: its ETag is \"")));
	make_bytes(&bytes, bytes.len + 1, 99);
	put_object("k", &bytes);
	CHECK_ERR(read_same(r, &bytes, 30 * PAGE, 10, &err), &err, ERR_CORRUPT,
		"k: the object has 3276701 bytes in the bucket, not 3276700");
	bytes.len = 5 * PAGE;
	put_object("k", &bytes);
	CHECK_INT(r->ops->read(r, 30 * PAGE, 10, (char[10]){ 0 }, &err), ERR_CORRUPT);
	CHECK_STR(str_of(err.msg), "k: the object has 327680 bytes in the bucket, not 3276700");
	REQUIRE_OK(bucket_delete(b, STR("k"), &err), &err);
	CHECK_ERR(r->ops->read(r, 40 * PAGE, 10, (char[10]){ 0 }, &err), &err, ERR_CORRUPT,
		"k: the object is gone from the bucket");
	CHECK_ERR(r->ops->read(r, r->bytes - 5, 6, (char[10]){ 0 }, &err), &err, ERR_CORRUPT,
		"k: ends before the 6 bytes at 3276695");
	range_close(r);
	remote_world_stop();
}

TEST(an_unreachable_bucket_is_not_asked_again_at_once)
{
	struct range_reader *r;
	struct remote_status s;
	unsigned before;

	REQUIRE(remote_world(300));
	REQUIRE(open_object("k", 50, &r));
	CHECK_OK(read_same(r, &bytes, 0, 10, &err), &err);
	fake_fault(&fake,
		(struct fake_fault){
			.kind = FAULT_STATUS, .line = "GET", .times = 100, .status = 503, .code = "SlowDown" });
	CHECK_INT(read_same(r, &bytes, 30 * PAGE, 10, &err), ERR_UNAVAILABLE);
	before = atomic_load(&fake.requests);
	for (int i = 0; i < 20; i++)
		CHECK_INT(read_same(r, &bytes, 30 * PAGE, 10, &err), ERR_UNAVAILABLE);
	CHECK(str_has_prefix(str_of(err.msg), STR("k: not tried again yet after: k: bucket b: get")));
	CHECK_INT(atomic_load(&fake.requests), before);
	CHECK_OK(read_same(r, &bytes, 0, 10, &err), &err); /* it is kept */
	remote_status(remote, &s);
	CHECK_INT(s.failures, 1);
	CHECK_INT(s.down.code, ERR_UNAVAILABLE);
	range_close(r);
	fake_forget_faults(&fake);
	options.retry_ns = 1;
	REQUIRE(remote_again());
	REQUIRE(open_object("k", 50, &r));
	fake_fault(&fake,
		(struct fake_fault){
			.kind = FAULT_STATUS, .line = "GET", .times = 1, .status = 503, .code = "SlowDown" });
	CHECK_INT(read_same(r, &bytes, 30 * PAGE, 10, &err), ERR_UNAVAILABLE);
	CHECK_OK(read_same(r, &bytes, 30 * PAGE, 10, &err), &err);
	remote_status(remote, &s);
	CHECK_INT(s.down.code, ERR_OK);
	range_close(r);
	remote_world_stop();
}

TEST(answers_that_are_cut_or_do_not_come)
{
	static const enum fake_fault_kind kinds[] = { FAULT_CUT, FAULT_STALL, FAULT_RESET };
	struct range_reader *r;

	REQUIRE(remote_world(300));
	remote_stop();
	bucket_close(b);
	b = NULL;
	config.attempts_max = 1000;
	config.idle_timeout_ns = 200 * NS_PER_MS;
	options.retry_ns = 1;
	REQUIRE(remote_start());
	REQUIRE(open_object("k", 50, &r));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		fake_fault(&fake, (struct fake_fault){ .kind = kinds[i], .line = "GET", .times = 2 });
		CHECK_OK(read_same(r, &bytes, i * 15 * PAGE + 3, 2 * PAGE, &err), &err);
	}
	range_close(r);
	remote_world_stop();
}
