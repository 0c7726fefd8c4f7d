/* A shard on a fake store, whose database has a town's rows; a test program has one of each. */
#ifndef TESTS_TSDB_CLUSTER_SHARD_WORLD_H
#define TESTS_TSDB_CLUSTER_SHARD_WORLD_H

#include "tests/check.h"
#include "tests/tsdb/bucket/fake.h"
#include "tests/tsdb/town.h"
#include "tsdb/catalog/loss_report.h"
#include "tsdb/cluster/shard.h"
#include "tsdb/remote/remote.h"

static struct town t; /* its database is the shard's */
static struct fake fake;
static struct bucket *bucket;
static struct remote *remote;
static struct shard_options o;
static struct shard_node *s;
static struct err err;
static struct arena in_bucket_arena;
static struct manifest in_bucket; /* of the last look */

static inline bool look_in_bucket(void)
{
	arena_release(&in_bucket_arena);
	return manifest_get(
		bucket, STR("shards/a/manifest"), &in_bucket_arena, &in_bucket, NULL, &err) == ERR_OK;
}

static inline bool wipe(void)
{
	return fs_remove_tree(&fs_posix, t.f.dir, &err) == ERR_OK;
}

static inline bool open_world(void)
{
	struct remote_options ro = { .retry_ns = 1 };
	struct bucket_config c;

	if (!town_open(&t) || !fake_start(&fake, NULL))
		return false;
	db_close(t.f.db);
	t.f.db = NULL;
	c = fake_config(&fake);
	c.attempts_max = 1;
	if (!wipe() || bucket_open(&c, &bucket, &err))
		return false;
	ro.bucket = bucket;
	if (remote_open(&ro, &remote, &err))
		return false;
	o = (struct shard_options){ .bucket = bucket,
		.remote = remote_source(remote),
		.name = "a",
		.db = t.f.o,
		.interval_ns = SEC,
		.lease_ns = 50 * NS_PER_MS,
		.no_probe = true,
		.no_threads = true };
	o.db.dir = t.f.dir;
	return true;
}

static inline bool start(void)
{
	if (shard_open(&o, &s, &err))
		return false;
	if (shard_start(s, &err)) {
		shard_abandon(s);
		s = NULL;
		return false;
	}
	t.f.db = shard_db(s);
	return true;
}

static inline void crash(void)
{
	shard_abandon(s);
	s = NULL;
	t.f.db = NULL;
}

static inline void stop(void)
{
	shard_close(s);
	s = NULL;
	t.f.db = NULL;
}

static inline void close_world(void)
{
	crash();
	arena_release(&in_bucket_arena);
	remote_close(remote);
	bucket_close(bucket);
	fake_stop(&fake);
	TOWN_END(&t);
}

static inline void settle(void)
{
	for (unsigned i = 0; i < 4; i++)
		if (publisher_round(shard_publisher(s), &err) || publisher_work(shard_publisher(s), &err))
			CHECK_FAIL("settle: %s", err.msg);
}

static inline void fill(int from_s, int to_s)
{
	town_fill(&t, 2, 2, T0 + from_s, T0 + to_s, 5);
}

static inline void forget_from(int from_s)
{
	for (size_t i = 0; i < t.n; i++)
		t.rows[i].deleted |= t.rows[i].ts_s > T0 + from_s;
}

/* The disk was lost while the shard ran. An entry says so, and is accepted. */
static inline void accept_unsent(void)
{
	struct loss *v = NULL;
	size_t n = 0, open = 0;
	struct arena a;

	arena_init(&a, 0);
	CHECK_OK(db_losses(t.f.db, &a, &v, &n, &err), &err);
	for (size_t i = 0; i < n; i++) {
		if (v[i].accepted)
			continue;
		open++;
		CHECK_INT(v[i].what, LOSS_PROFILES);
		CHECK(str_has_prefix(v[i].where, STR("head after generation ")));
	}
	CHECK_INT(open, 1);
	CHECK_OK(db_accept_losses(t.f.db, NULL, 0, &n, &err), &err);
	arena_release(&a);
}

static inline void sums(struct buf *out)
{
	size_t warnings = 0;

	buf_clear(out);
	if (!sum_text(t.f.db, NULL, 0, INT64_MAX - 1, out, &warnings, &err))
		CHECK_FAIL("sums: %s", err.msg);
	CHECK_INT(warnings, 0);
}

#endif
