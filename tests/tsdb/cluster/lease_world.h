/* Leases on a fake store; a test program has one. */
#ifndef TESTS_TSDB_CLUSTER_LEASE_WORLD_H
#define TESTS_TSDB_CLUSTER_LEASE_WORLD_H

#include "tsdb/cluster/lease.h"

#include "base/clock.h"
#include "tests/scratch.h"
#include "tests/tsdb/bucket/world.h"

#define KEY "p/q/shards/a/manifest"
#define LONG (1000 * NS_PER_S) /* never over in a test */

static inline struct lease_options options(const char *host)
{
	return (struct lease_options){ .bucket = b,
		.shard = STR("a"), .host = host, .interval_ns = NS_PER_S, .lease_ns = LONG,
			.no_probe = true };
}

static inline struct lease *open_lease(struct lease_options o)
{
	struct lease *l = NULL;

	CHECK_OK(lease_open(&o, &l, &err), &err);
	return l;
}

static inline enum err_code take_as(struct lease *l, bool idle)
{
	struct manifest m;
	struct arena a;
	enum err_code rc;
	bool same;

	arena_init(&a, 0);
	rc = lease_take(l, idle, &a, &m, &same, &err);
	arena_release(&a);
	return rc;
}

static inline enum err_code take(struct lease *l)
{
	return take_as(l, false);
}

static inline enum err_code write_it(struct lease *l, bool stopped, int64_t through_ns)
{
	struct manifest m = { .stopped = stopped, .through_ns = through_ns };

	return lease_write(l, &m, &err);
}

/* What the store has now. */
static struct manifest there;
static struct arena there_arena;

static inline bool look(void)
{
	arena_release(&there_arena);
	return manifest_get(b, STR("shards/a/manifest"), &there_arena, &there, NULL, &err) == ERR_OK;
}

static inline void fault(enum fake_fault_kind kind, const char *line, unsigned times)
{
	fake_fault(&fake, (struct fake_fault){ .kind = kind, .line = line, .times = times });
}

/* What a program wrote that knew no lease's time. */
static inline void put_manifest(int64_t ns)
{
	const struct manifest m = {
		.shard = STR("a"),
			.owner = STR("0123456789abcdef0123456789abcdef"),
				.session = STR("0123456789abcdef0123456789abcdef"),
					.host = STR("one"), .since_ns = ns, .written_ns = ns, .through_ns = ns };
	struct buf text = { 0 };

	manifest_print(&text, &m);
	fake_put(&fake, KEY, buf_str(&text));
	buf_release(&text);
}

#endif
