/* GET /api/v1/status/cluster: each state of a shard, and of what is left out. */
#include "base/clock.h"
#include "tests/check.h"
#include "tests/web/http/http_peer.h"
#include "web/web.h"

#define AT (INT64_C(1700000000) * NS_PER_S)

static struct cluster_view view;
static enum err_code view_rc;

static enum err_code fill(void *ctx, struct arena *a, struct cluster_view *out, struct err *err)
{
	(void)ctx;
	(void)a;
	if (view_rc)
		return err_set(err, view_rc, "shards: out of memory");
	*out = view;
	return ERR_OK;
}

static int ask(bool has_bucket, struct response *r)
{
	struct web_options o = { .listen_address = "127.0.0.1:0", .cluster = has_bucket ? fill : NULL };
	struct web *w = NULL;
	struct err err;

	if (web_open(&o, &w, &err)) {
		CHECK_FAIL("web_open: %s", err.msg);
		return 0;
	}
	web_set_ready(w, true);
	peer_ask(web_port(w), r, "GET /api/v1/status/cluster", "", (struct str){ 0 });
	web_close(w);
	return r->status;
}

static void says(const char *data)
{
	struct response r = { 0 };
	struct buf want = { 0 };

	CHECK_INT(ask(true, &r), 200);
	buf_printf(&want, "{\"status\":\"success\",\"data\":%s}\n", data);
	buf_add_char(&want, '\0');
	CHECK_STR(buf_str(&r.body), want.ptr);
	buf_release(&want);
	response_release(&r);
}

TEST(without_a_bucket)
{
	struct response r = { 0 };

	CHECK_INT(ask(false, &r), 200);
	CHECK_STR(buf_str(&r.body), "{\"status\":\"success\",\"data\":{\"mode\":\"server\"}}\n");
	response_release(&r);
	view = (struct cluster_view){ .mode = "server" };
	says("{\"mode\":\"server\"}");
}

TEST(an_error)
{
	struct response r = { 0 };

	view_rc = ERR_LIMIT;
	CHECK_INT(ask(true, &r), 422);
	CHECK(str_find(buf_str(&r.body), STR("\"error\":\"shards: out of memory\"")) > 0);
	response_release(&r);
	view_rc = ERR_OK;
}

TEST(a_server_that_publishes)
{
	view = (struct cluster_view){ .mode = "server",
		.bucket = STR("http://127.0.0.1:1/b/p"),
			.shard = {
				.name = STR("a"), .state = "away", .generation = 7, .through_ns = AT,
					.lag_ns = 61 * NS_PER_S + NS_PER_S / 2, .waiting_blocks = 1, .waiting_bytes = 2,
					.blocks = 3, .windows = 4, .segments = 5, .bytes = 6, .kept = 8, .gone = 9,
					.failures = 10,
					.last_error = STR("the bucket is \"away\""), .refuses = STR("old lease") },
					.requests = { { "put", 1000, 2000, 0 }, { "get", 3, 0, 4 } }, .requests_n = 2,
					.requests_cost = 0.5, .requests_cost_day = 1.5, .storage_cost_month = 0.25 };
	says("{\"mode\":\"server\",\"bucket\":\"http://127.0.0.1:1/b/p\",\"shard\":{\"name\":\"a\","
		 "\"state\":\"away\",\"generation\":7,\"through\":\"2023-11-14T22:13:20.000Z\","
		 "\"lag_seconds\":61.5,\"waiting_blocks\":1,\"waiting_bytes\":2,\"blocks\":3,\"windows\":4,"
		 "\"segments\":5,\"bytes\":6,\"kept\":8,\"gone\":9,\"failures\":10,"
		 "\"last_error\":\"the bucket is \\\"away\\\"\",\"refuses_pushes\":\"old lease\"},"
		 "\"requests\":{\"put\":{\"requests\":1000,\"sent_bytes\":2000,\"received_bytes\":0},"
		 "\"get\":{\"requests\":3,\"sent_bytes\":0,\"received_bytes\":4}},"
		 "\"cost\":{\"since_start\":0.5,\"requests_per_day\":1.5,\"month\":0.25}}");
	/* Nothing was written yet, and it is too early for a rate. */
	view.shard = (struct cluster_publish_view){ .name = STR("a"), .state = "waiting",
													.lag_ns = -1 };
	view.requests_n = 0;
	view.requests_cost_day = -1;
	says("{\"mode\":\"server\",\"bucket\":\"http://127.0.0.1:1/b/p\",\"shard\":{\"name\":\"a\","
		 "\"state\":\"waiting\",\"generation\":0,\"waiting_blocks\":0,\"waiting_bytes\":0,"
		 "\"blocks\":0,\"windows\":0,\"segments\":0,\"bytes\":0,\"kept\":0,\"gone\":0,\"failures\":"
		 "0},"
		 "\"requests\":{},\"cost\":{\"since_start\":0.5,\"month\":0.25}}");
}

TEST(a_shard_that_joined)
{
	struct cluster_member_view members[] = {
		{ STR("a"), true, false, false, 7 }, { STR("b"), false, true, true, 6 } };

	view = (struct cluster_view){ .mode = "server",
		.bucket = STR("x"),
			.shard = { .name = STR("a"), .state = "running", .lag_ns = -1, .joined = true,
						   .assignment = 7, .members = members, .members_n = 2 },
				.requests_cost_day = -1 };
	says("{\"mode\":\"server\",\"bucket\":\"x\",\"shard\":{\"name\":\"a\","
		 "\"state\":\"running\",\"generation\":0,\"waiting_blocks\":0,\"waiting_bytes\":0,"
		 "\"blocks\":0,\"windows\":0,\"segments\":0,\"bytes\":0,\"kept\":0,\"gone\":0,"
		 "\"failures\":0,\"assignment\":7,\"members\":[{\"name\":\"a\",\"member\":true,"
		 "\"drained\":false,\"ended\":false,\"follows\":7},{\"name\":\"b\",\"member\":false,"
		 "\"drained\":true,\"ended\":true,\"follows\":6}]},"
		 "\"requests\":{},\"cost\":{\"since_start\":0,\"month\":0}}");
}

TEST(a_query_node)
{
	struct cluster_shard_view shards[] = {
		{ .name = STR("a"),
			  .host = STR("h1"), .state = "running", .through_ns = AT, .windows = 1, .segments = 2,
				  .blocks = 3, .bytes = 4, .missing = 5, .assignment = 3, .behind = true },
			{ .name = STR("b"), .state = "own", .own = true, .lag_ns = -1 },
				{ .name = STR("c"),
					  .host = STR("h3"), .state = "failing", .late = true, .lag_ns = -1,
						  .error = STR("shard c: no manifest") },
				 };

	view = (struct cluster_view){ .mode = "query",
		.bucket = STR("x"), .shards = shards, .shards_n = 3, .has_shards = true,
			.cache = { .there = true,
				.from_memory = 6,
				.from_disk = 3,
				.from_bucket = 3,
				.bytes = 100,
				.bytes_max = 200,
				.damaged_pages = 1,
				.off = STR("No space left on device"), .down = STR("refused") } };
	says("{\"mode\":\"query\",\"bucket\":\"x\",\"shards\":[{\"name\":\"a\",\"own\":false,"
		 "\"state\":\"running\",\"host\":\"h1\",\"through\":\"2023-11-14T22:13:20.000Z\",\"lag_"
		 "seconds\":0,"
		 "\"late\":false,\"stopped\":false,\"windows\":1,\"segments\":2,\"blocks\":3,\"bytes\":4,"
		 "\"missing\":5,\"assignment\":3,\"behind\":true},{\"name\":\"b\",\"own\":true,\"state\":"
		 "\"own\"},{\"name\":\"c\",\"own\":"
		 "false,"
		 "\"state\":\"failing\",\"host\":\"h3\",\"late\":true,\"stopped\":false,\"windows\":0,"
		 "\"segments\":0,\"blocks\":0,\"bytes\":0,\"missing\":0,\"error\":\"shard c: no "
		 "manifest\"}],"
		 "\"cache\":{\"from_memory\":6,\"from_disk\":3,\"from_bucket\":3,\"hit_rate\":0.75,"
		 "\"bytes\":100,"
		 "\"max_bytes\":200,\"damaged_pages\":1,\"off\":\"No space left on "
		 "device\",\"down\":\"refused\"},"
		 "\"requests\":{},\"cost\":{\"since_start\":0,\"requests_per_day\":0,\"month\":0}}");
	/* Windows are being read; at first nobody knows how long that takes. */
	view.shards_n = 1;
	view.cache.there = false;
	shards[0].state = "reading";
	shards[0].reading = true;
	shards[0].read_segments = 6;
	shards[0].all_segments = 7;
	shards[0].read_bytes = 8;
	shards[0].all_bytes = 9;
	for (int i = 0; i < 2; i++) {
		struct buf want = { 0 };

		shards[0].left_ns = i ? 1500 * NS_PER_MS : -1;
		buf_printf(&want,
			"{\"mode\":\"query\",\"bucket\":\"x\",\"shards\":[{\"name\":\"a\",\"own\":false,"
			"\"state\":\"reading\",\"host\":\"h1\",\"through\":\"2023-11-14T22:13:20.000Z\","
			"\"lag_seconds\":0,\"late\":false,\"stopped\":false,\"windows\":1,\"segments\":2,"
			"\"blocks\":3,\"bytes\":4,\"missing\":5,\"reading\":{\"read_segments\":6,"
			"\"segments\":7,\"read_bytes\":8,\"bytes\":9%s},\"assignment\":3,\"behind\":true}],"
			"\"requests\":{},"
			"\"cost\":{\"since_start\":0,\"requests_per_day\":0,\"month\":0}}%c",
			i ? ",\"left_seconds\":1.5" : "", 0);
		says(want.ptr);
		buf_release(&want);
	}
	/* It has found no shard, and read no page: there is no rate. */
	view.shards_n = 0;
	view.cache = (struct cluster_cache_view){ .there = true };
	says("{\"mode\":\"query\",\"bucket\":\"x\",\"shards\":[],\"cache\":{\"from_memory\":0,"
		 "\"from_disk\":0,\"from_bucket\":0,\"bytes\":0,\"max_bytes\":0,\"damaged_pages\":0},"
		 "\"requests\":{},\"cost\":{\"since_start\":0,\"requests_per_day\":0,\"month\":0}}");
}
