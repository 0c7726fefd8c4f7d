/* A scene whose shard is followed; what the follower says is compared with the town. */
#ifndef TESTS_TSDB_CLUSTER_FOLLOWER_WORLD_H
#define TESTS_TSDB_CLUSTER_FOLLOWER_WORLD_H

#include <unistd.h>

#include "tests/check.h"
#include "tests/tsdb/cluster/scene.h"
#include "tsdb/cluster/cluster.h"
#include "tsdb/remote/remote.h"

#define HOUR_NS NS_PER_HOUR
#define STEP (20 * NS_PER_MS)

static struct scene s;
static struct remote *remote;
static struct follower *f;
static char follower_dir[96];

static inline void fill(int from_s, int to_s)
{
	town_fill(&s.town, 2, 2, T0 + from_s, T0 + to_s, 5);
}

static inline bool open_follower(void)
{
	struct follower_options o = {
		.bucket = s.bucket, .remote = remote_source(remote), .shard = "a", .dir = follower_dir
	};

	db_options_default(&o.db);
	return follower_open(&o, &f, &s.err) == ERR_OK;
}

static inline void close_follower(void)
{
	follower_close(f);
	f = NULL;
}

/* A shard that is never late, and its follower. */
static inline bool open_world(void)
{
	struct remote_options o = { .retry_ns = 1 };

	if (!scene_open(&s))
		return false;
	s.o.interval_ns = HOUR_NS;
	o.bucket = s.bucket;
	snprintf(follower_dir, sizeof(follower_dir), "%s.follower", s.town.f.dir);
	return remote_open(&o, &remote, &s.err) == ERR_OK && open_follower();
}

static inline void close_world(void)
{
	scene_crash(&s);
	close_follower();
	CHECK_OK(fs_remove_tree(&fs_posix, follower_dir, &s.err), &s.err);
	remote_close(remote);
	SCENE_END(&s);
}

/* The shard's rows are put, and followed. */
static inline void put(void)
{
	CHECK_OK(publisher_round(s.p, &s.err), &s.err);
}

/* As a cluster does: another follower where the shard goes on in another directory. */
static inline void follow(void)
{
	if (follower_round(f, &s.err) == ERR_EXISTS) {
		close_follower();
		CHECK(open_follower());
	}
	CHECK_OK(follower_round(f, &s.err), &s.err);
}

/* The follower has the town's rows, each once. */
static inline void check_follower(const char *what)
{
	struct db *own = s.town.f.db;

	s.town.f.db = follower_db(f);
	TOWN_CHECK(&s.town, what);
	s.town.f.db = own;
}

static inline void check_layout(const char *want)
{
	struct db *own = s.town.f.db;

	s.town.f.db = follower_db(f);
	CHECK_LAYOUT(&s.town, want);
	s.town.f.db = own;
}

static inline void add_told(void *to, const char *text)
{
	buf_printf(to, "%s\n", text);
}

/* What it says of (from, to], a line each. */
static inline void tell(int from_s, int to_s, struct buf *out)
{
	buf_clear(out);
	follower_tell(f, (T0 + from_s) * SEC, (T0 + to_s) * SEC, add_told, out);
}

#define CHECK_TOLD(from_s, to_s, want) \
	do { \
		struct buf told_ = { 0 }; \
		tell((from_s), (to_s), &told_); \
		CHECK_STR(buf_str(&told_), want); \
		buf_release(&told_); \
	} while (0)

/* It says something of (from, to] that contains the text. */
static inline bool tells(int from_s, int to_s, const char *text)
{
	struct buf told = { 0 };
	bool is;

	tell(from_s, to_s, &told);
	is = str_find(buf_str(&told), str_of(text)) >= 0;
	buf_release(&told);
	return is;
}

static inline void forget_from(int from_s)
{
	for (size_t i = 0; i < s.town.n; i++)
		s.town.rows[i].deleted |= s.town.rows[i].ts_s > T0 + from_s;
}

/* ---- all shards ---- */

static inline bool count_row(void *ctx, const struct db_series *series, const struct db_row *row)
{
	(void)series;
	(void)row;
	++*(size_t *)ctx;
	return true;
}

static inline size_t count_rows(struct db *db)
{
	size_t n = 0, warnings = 0;

	if (!rows_each(db, 0, INT64_MAX - 1, count_row, &n, &warnings, &s.err))
		CHECK_FAIL("rows: %s", s.err.msg);
	return n;
}

/* Of this shard and others. */
static inline struct cluster *open_cluster(void)
{
	struct cluster_options o = { .bucket = s.bucket,
		.remote = remote_source(remote),
		.dir = follower_dir,
		.poll_ns = STEP,
		.workers = 2 };
	struct cluster *c = NULL;

	db_options_default(&o.db);
	CHECK_OK(cluster_open(&o, &c, &s.err), &s.err);
	return c;
}

#endif
