/*
 * What is shown of the bucket: a shard that publishes into a fake store, and objects that are read
 * there; each state of a shard that is queried; metrics.
 */
#include "cmd/epimetheus/cluster_view.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/metrics.h"
#include "tests/check.h"
#include "tests/tsdb/cluster/scene.h"
#include "tests/wait.h"
#include "tsdb/cluster/cluster.h"
#include "tsdb/remote/remote.h"

static struct scene s;
static struct arena arena;
static struct cluster_view view;
static struct err err;
static const struct bucket_prices prices = { 5, 0.4, 23 };

static struct cluster_parts parts_of(void)
{
	return (struct cluster_parts){ .mode = "server",
		.shard = "a",
		.bucket = s.bucket,
		.publisher = s.p,
		.prices = prices,
		.opened_ns = clock_monotonic_ns() };
}

static void parts_again(void *ctx, struct cluster_parts *out)
{
	*out = *(const struct cluster_parts *)ctx;
}

static bool look(const struct cluster_parts *p)
{
	arena_reset(&arena);
	CHECK_OK(cluster_view_fill(p, &arena, &view, &err), &err);
	return !view.bucket.len || view.requests_n == BUCKET_KINDS;
}

/* The line of a metric is there. */
static bool shows(const char *line)
{
	struct buf text = { 0 }, want = { 0 };
	bool found;

	metrics_print(&text);
	buf_printf(&want, "\n%s\n", line);
	found = str_find(buf_str(&text), buf_str(&want)) >= 0;
	buf_release(&text);
	buf_release(&want);
	return found;
}

TEST(nothing_is_there)
{
	struct cluster_parts p = { .mode = "server" };

	arena_init(&arena, 0);
	CHECK(look(&p));
	CHECK_STR(str_of(view.mode), "server");
	CHECK_INT(view.bucket.len, 0);
	CHECK(!view.shard.state && !view.has_shards && !view.cache.there);
	arena_release(&arena);
}

TEST(a_shard_that_publishes)
{
	struct cluster_parts p;
	double cost;

	arena_init(&arena, 0);
	REQUIRE(scene_open(&s));
	town_fill(&s.town, 1, 1, T0, T0 + 10, 5);
	REQUIRE(scene_start(&s));
	CHECK_OK(publisher_round(s.p, &s.err), &s.err);
	p = parts_of();
	CHECK(look(&p));
	CHECK(view.bucket.len && str_is(view.bucket, bucket_name(s.bucket).ptr));
	CHECK_STR(view.shard.name, "a");
	CHECK_STR(str_of(view.shard.state), "running");
	CHECK_INT(view.shard.windows, 1);
	CHECK_INT(view.shard.segments, 1);
	CHECK(view.shard.bytes > 0 && view.shard.lag_ns >= 0 && view.shard.through_ns > 0);
	CHECK_INT(view.shard.last_error.len, 0);
	CHECK(!view.has_shards && !view.cache.there);
	CHECK_STR(str_of(view.requests[BUCKET_PUTS].kind), "put");
	CHECK(view.requests[BUCKET_PUTS].requests >= 2 && view.requests[BUCKET_PUTS].sent_bytes > 0);
	CHECK(view.requests_cost > 0 && view.storage_cost_month > 0);
	CHECK(view.requests_cost_day < 0);
	p.bucket_too[1] = s.bucket;
	cost = view.requests_cost;
	CHECK(look(&p));
	CHECK(view.requests_cost > 1.9 * cost && view.requests_cost < 2.1 * cost);
	p.bucket_too[1] = NULL;
	/* A day of requests. */
	p.opened_ns -= 12 * NS_PER_HOUR;
	CHECK(look(&p));
	CHECK(view.requests_cost_day > 1.9 * view.requests_cost);
	CHECK(view.requests_cost_day <= 2 * view.requests_cost);
	/* The bucket goes away; the message lives in the arena. */
	fake_fault(&s.fake,
		(struct fake_fault){ .kind = FAULT_STATUS,
			.line = "PUT",
			.times = 1,
			.status = 403,
			.code = "AccessDenied" });
	CHECK(publisher_round(s.p, &s.err) != ERR_OK);
	CHECK(look(&p));
	CHECK_STR(str_of(view.shard.state), "away");
	CHECK(str_find(view.shard.last_error, STR("access denied: ")) >= 0);
	CHECK(shows("epimetheus_publish_state{state=\"away\"} 1"));
	CHECK(shows("epimetheus_publish_state{state=\"running\"} 0"));
	fake_forget_faults(&s.fake);
	CHECK_OK(publisher_round(s.p, &s.err), &s.err);
	CHECK(shows("epimetheus_publish_state{state=\"running\"} 1"));
	arena_release(&arena);
	SCENE_END(&s);
}

/* Bytes of a fake's object, through a source of ranges. */
static enum err_code read_object(struct remote *r)
{
	struct range_reader *reader = NULL;
	enum err_code rc;
	char byte;

	if ((rc = range_open(remote_source(r), "x", &reader, &err)))
		return rc;
	rc = reader->ops->read(reader, 3, 1, &byte, &err);
	range_close(reader);
	CHECK(rc || byte == '3');
	return rc;
}

/* A shard publishes; another server, here of the same process, reads it. */
TEST(what_is_read_there)
{
	char dir[] = "/tmp/epi-cluster-view-XXXXXX";
	struct remote_options o = { 0 };
	struct cluster_options c = { .dir = dir };
	struct cluster_metrics m;
	struct cluster_parts p;
	struct cluster *cluster;
	struct remote *r = NULL;

	arena_init(&arena, 0);
	REQUIRE(scene_open(&s));
	s.o.interval_ns = NS_PER_HOUR; /* it is never late */
	REQUIRE(mkdtemp(dir));
	town_fill(&s.town, 1, 1, T0, T0 + 10, 5);
	REQUIRE(scene_start(&s));
	CHECK_OK(publisher_round(s.p, &s.err), &s.err);
	fake_put(&s.fake, "p/q/x", STR("0123456789"));
	c.bucket = o.bucket = s.bucket;
	REQUIRE_OK(remote_open(&o, &r, &err), &err);
	c.remote = remote_source(r);
	db_options_default(&c.db);
	REQUIRE_OK(cluster_open(&c, &cluster, &err), &err);
	cluster_wait(cluster, 60 * NS_PER_S);
	CHECK_OK(read_object(r), &err);
	CHECK_OK(read_object(r), &err);
	p = parts_of();
	p.publisher = NULL;
	p.remote = r;
	p.cluster = cluster;
	CHECK(WAIT_FOR(look(&p) && view.shards_n == 1 && !view.shards[0].reading));
	CHECK(view.cache.there && view.cache.from_bucket >= 1 && view.cache.from_memory >= 1);
	CHECK_INT(view.cache.off.len + view.cache.down.len, 0);
	CHECK(!view.shard.state && view.has_shards);
	REQUIRE(view.shards_n == 1);
	CHECK_STR(view.shards[0].name, "a");
	CHECK_STR(view.shards[0].host, "here");
	CHECK_STR(str_of(view.shards[0].state), "running");
	CHECK_INT(view.shards[0].windows, 1);
	CHECK_INT(view.shards[0].segments, 1);
	CHECK(view.shards[0].through_ns > 0 && view.shards[0].lag_ns >= 0);
	CHECK(view.shards[0].bytes > 0 && view.storage_cost_month > 0);
	cluster_metrics_begin(&m, parts_again, &p);
	CHECK(shows("epimetheus_cluster_shard_late{shard=\"a\"} 0"));
	CHECK(shows("epimetheus_cluster_shard_missing_objects{shard=\"a\"} 0"));
	CHECK(shows("epimetheus_cluster_shard_unread_bytes{shard=\"a\"} 0"));
	CHECK(shows("epimetheus_cluster_shards{state=\"reading\"} 0"));
	CHECK(shows("epimetheus_cluster_shards{state=\"running\"} 1"));
	CHECK(shows("epimetheus_cluster_shards{state=\"late\"} 0"));
	CHECK(!shows("epimetheus_cluster_shard_lag_seconds{shard=\"a\"} NaN"));
	CHECK(!shows("epimetheus_bucket_requests_cost 0"));
	CHECK(!shows("epimetheus_bucket_storage_cost_month 0"));
	/* It is this process's own: nothing is followed. */
	CHECK_OK(cluster_set_own(cluster, "a", s.town.f.db, &err), &err);
	CHECK(shows("epimetheus_cluster_shards{state=\"own\"} 1"));
	CHECK(shows("epimetheus_cluster_shard_lag_seconds{shard=\"a\"} NaN"));
	cluster_metrics_end(&m);
	CHECK_OK(cluster_set_own(cluster, "a", NULL, &err), &err);
	cluster_close(cluster);
	remote_close(r);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	arena_release(&arena);
	SCENE_END(&s);
}

TEST(states_of_a_shard)
{
	static const struct {
		struct cluster_shard s;
		const char *state;
		int64_t lag_ns;
	} rows[] = {
		{ { .name = "a", .is = { .through_ns = T0 * NS_PER_S } }, "running", 30 * NS_PER_S },
		{ { .name = "a", .is = { .through_ns = (T0 + 31) * NS_PER_S } }, "running", 0 },
		{ { .name = "a", .is = { .through_ns = T0 * NS_PER_S, .late = true } }, "late",
			30 * NS_PER_S },
		{ { .name = "a", .is = { .through_ns = T0 * NS_PER_S, .stopped = true } }, "stopped", -1 },
		{ { .name = "a" }, "unread", -1 },
		{ { .name = "a", .is = { .through_ns = T0 * NS_PER_S, .unread_windows = 1 } }, "reading",
			30 * NS_PER_S },
		{ { .name = "a",
			  .is = { .through_ns = T0 * NS_PER_S, .unread_windows = 1, .stopped = true } },
			"reading", -1 },
		{ { .name = "a", .is = { .through_ns = T0 * NS_PER_S, .unread_windows = 1, .late = true } },
			"late", 30 * NS_PER_S },
		{ { .name = "a",
			  .is = { .late = true, .failed = { ERR_NOT_FOUND, "shard a: no manifest" } } },
			"failing", -1 },
		{ { .name = "a", .own = true }, "own", -1 },
	};
	struct cluster_shard_view v;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cluster_view_shard(&rows[i].s, (T0 + 30) * NS_PER_S, &v);
		CHECK_STR(str_of(v.state), rows[i].state);
		CHECK_INT(v.lag_ns, rows[i].lag_ns);
		CHECK_STR(v.error, rows[i].s.is.failed.msg);
		CHECK(v.late == rows[i].s.is.late && v.own == rows[i].s.own);
		CHECK(v.reading == (rows[i].s.is.unread_windows > 0));
	}
}
