#include "cmd/epimetheus/cluster_view.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "tsdb/cluster/assignment/assignment_node.h"
#include "tsdb/cluster/cluster.h"
#include "tsdb/cluster/publisher.h"
#include "tsdb/remote/remote.h"

#define RATE_AFTER_NS (10 * NS_PER_MIN) /* the first minutes, which read much, are no rate */
#define COLLECT_BYTES_MAX (64u << 20)
#define OTHER "other"

METRIC_GAUGE(lag_gauge, "epimetheus_cluster_shard_lag_seconds",
	"How old the newest row of a shard is that can be queried here; NaN: it stopped, or is gone.",
	"shard");
METRIC_GAUGE(late_gauge, "epimetheus_cluster_shard_late",
	"1: answers lack the newest rows of the shard.", "shard");
METRIC_GAUGE(missing_gauge, "epimetheus_cluster_shard_missing_objects",
	"Objects that the shard's manifest names and the bucket lacks.", "shard");
METRIC_GAUGE(unread_gauge, "epimetheus_cluster_shard_unread_bytes",
	"Bytes of the shard's segments that are still to be read here; answers name their time.",
	"shard");
METRIC_GAUGE(shards_gauge, "epimetheus_cluster_shards", "Queried shards.", "state");
METRIC_GAUGE(requests_cost_gauge, "epimetheus_bucket_requests_cost",
	"What the requests since the start cost, by the prices of the configuration.", NULL);
METRIC_GAUGE(storage_cost_gauge, "epimetheus_bucket_storage_cost_month",
	"What the shards' objects cost in a month, by the prices of the configuration.", NULL);

static const char *const states[] = { "running", "late", "reading", "stopped", "failing", "unread",
	"own" };
#define STATES (sizeof(states) / sizeof(states[0]))

/* The message in the arena; "" where there is none. */
static bool cluster_view_copy_message(struct arena *a, const struct err *e, struct str *out)
{
	char *text;

	*out = STR("");
	if (e->code == ERR_OK)
		return true;
	text = arena_strndup(a, e->msg, strlen(e->msg));
	if (text)
		*out = str_of(text);
	return text != NULL;
}

/* ---- shards that are queried ---- */

/* The one that matters most: a round that failed may be why the shard is late. */
static const char *cluster_view_state_of(const struct cluster_shard *s)
{
	const struct follower_status *is = &s->is;

	if (s->own)
		return "own";
	if (is->failed.code != ERR_OK)
		return "failing";
	if (!is->through_ns)
		return "unread";
	if (is->late && !is->stopped)
		return "late";
	if (is->unread_windows)
		return "reading";
	return is->stopped ? "stopped" : "running";
}

void cluster_view_shard(
	const struct cluster_shard *s, int64_t now_ns, struct cluster_shard_view *out)
{
	const struct follower_status *is = &s->is;

	*out = (struct cluster_shard_view){ .name = str_of(s->name),
		.state = cluster_view_state_of(s),
		.own = s->own,
		.lag_ns = -1,
		.host = STR(""), .error = STR("") };
	if (s->own)
		return;
	out->host = str_of(is->host);
	out->late = is->late;
	out->stopped = is->stopped;
	out->through_ns = is->through_ns;
	if (is->through_ns && !is->stopped) /* clocks of two machines: never in the future */
		out->lag_ns = now_ns > is->through_ns ? now_ns - is->through_ns : 0;
	out->windows = is->windows;
	out->segments = is->segments;
	out->blocks = is->blocks;
	out->bytes = is->bytes;
	out->missing = is->missing;
	out->assignment = is->assignment;
	out->behind = is->behind;
	out->reading = is->unread_windows > 0;
	out->read_segments = is->read_segments;
	out->all_segments = is->all_segments;
	out->read_bytes = is->read_bytes;
	out->all_bytes = is->all_bytes;
	out->left_ns = is->left_ns;
	if (is->failed.code != ERR_OK)
		out->error = str_of(is->failed.msg);
}

static enum err_code cluster_view_fill_shards(
	struct cluster *c, struct arena *a, struct cluster_view *out, struct err *err)
{
	int64_t now_ns = clock_now_ns();
	struct cluster_shard *v;
	size_t n;
	enum err_code rc;

	if ((rc = cluster_shards(c, a, &v, &n, err)))
		return rc;
	if (!(out->shards = arena_array(a, struct cluster_shard_view, n + 1)))
		return arena_fail(a, "shards", err);
	for (size_t i = 0; i < n; i++)
		cluster_view_shard(&v[i], now_ns, &out->shards[i]);
	out->shards_n = n;
	out->has_shards = true;
	return ERR_OK;
}

/* ---- this server's own part ---- */

static bool cluster_parts_fill_publisher(
	const struct cluster_parts *p, struct arena *a, struct cluster_publish_view *out)
{
	struct publisher_status s;

	publisher_status(p->publisher, &s);
	*out = (struct cluster_publish_view){ .name = str_of(p->shard),
		.state = publisher_state_name(s.state),
		.generation = s.generation,
		.through_ns = s.through_ns,
		.lag_ns = s.lag_ns,
		.waiting_blocks = s.waiting_blocks,
		.waiting_bytes = s.waiting_bytes,
		.blocks = s.blocks,
		.windows = s.windows,
		.segments = s.segments,
		.bytes = s.bytes,
		.kept = s.kept,
		.gone = s.gone,
		.failures = s.failures };
	if (!cluster_view_copy_message(a, &s.refusal, &out->refuses))
		return false;
	return cluster_view_copy_message(a, &s.last, &out->last_error);
}

static enum err_code cluster_parts_fill_members(const struct cluster_parts *p, struct arena *a,
	struct cluster_publish_view *out, struct err *err)
{
	struct assignment_status s;
	enum err_code rc;

	if (!p->assignment)
		return ERR_OK;
	if ((rc = assignment_node_status(p->assignment, a, &s, err)))
		return rc;
	if (!(out->members = arena_array(a, struct cluster_member_view, s.members_n + 1u)))
		return arena_fail(a, "shard", err);
	out->joined = true;
	out->assignment = s.number;
	out->members_n = s.members_n;
	for (size_t i = 0; i < s.members_n; i++)
		out->members[i] = (struct cluster_member_view){ s.members[i].name, s.members[i].in,
			s.members[i].drained, s.members[i].ended, s.members[i].number };
	return ERR_OK;
}

static bool cluster_view_fill_cache(
	struct remote *r, struct arena *a, struct cluster_cache_view *out)
{
	struct remote_status s;

	remote_status(r, &s);
	*out = (struct cluster_cache_view){ .there = true,
		.from_memory = s.from_memory,
		.from_disk = s.from_disk,
		.from_bucket = s.from_bucket,
		.bytes = s.cache_bytes,
		.bytes_max = s.cache_bytes_max,
		.damaged_pages = s.damaged_pages };
	return cluster_view_copy_message(a, &s.cache_off, &out->off) &&
		cluster_view_copy_message(a, &s.down, &out->down);
}

static uint64_t cluster_view_stored_bytes(const struct cluster_view *v)
{
	uint64_t bytes = v->shard.bytes;

	for (size_t i = 0; i < v->shards_n; i++)
		bytes += v->shards[i].bytes;
	return bytes;
}

static void cluster_view_add_usage(struct bucket_usage *u, const struct bucket *b)
{
	struct bucket_usage more;

	bucket_get_usage(b, &more);
	for (unsigned i = 0; i < BUCKET_KINDS; i++) {
		u->kinds[i].requests += more.kinds[i].requests;
		u->kinds[i].sent_bytes += more.kinds[i].sent_bytes;
		u->kinds[i].received_bytes += more.kinds[i].received_bytes;
	}
}

static void cluster_parts_fill_requests(const struct cluster_parts *p, struct cluster_view *out)
{
	int64_t since_ns = clock_monotonic_ns() - p->opened_ns;
	struct bucket_usage u;

	_Static_assert(BUCKET_KINDS <= CLUSTER_KINDS_MAX, "kinds of requests");
	bucket_get_usage(p->bucket, &u);
	for (size_t i = 0; i < sizeof(p->bucket_too) / sizeof(p->bucket_too[0]); i++)
		if (p->bucket_too[i])
			cluster_view_add_usage(&u, p->bucket_too[i]);
	for (unsigned i = 0; i < BUCKET_KINDS; i++)
		out->requests[i] = (struct cluster_request_view){ bucket_kind_name((enum bucket_kind)i),
			u.kinds[i].requests, u.kinds[i].sent_bytes, u.kinds[i].received_bytes };
	out->requests_n = BUCKET_KINDS;
	out->requests_cost = bucket_requests_cost(&u, &p->prices);
	out->requests_cost_day = -1;
	if (since_ns >= RATE_AFTER_NS)
		out->requests_cost_day = out->requests_cost * (double)NS_PER_DAY / (double)since_ns;
	out->storage_cost_month = bucket_storage_cost(cluster_view_stored_bytes(out), &p->prices);
}

enum err_code cluster_view_fill(
	const struct cluster_parts *p, struct arena *a, struct cluster_view *out, struct err *err)
{
	enum err_code rc;

	*out = (struct cluster_view){ .mode = p->mode };
	if (!p->bucket)
		return ERR_OK;
	out->bucket = bucket_name(p->bucket);
	if (p->publisher && !cluster_parts_fill_publisher(p, a, &out->shard))
		return arena_fail(a, "shard", err);
	if ((rc = cluster_parts_fill_members(p, a, &out->shard, err)))
		return rc;
	if (p->cluster && (rc = cluster_view_fill_shards(p->cluster, a, out, err)))
		return rc;
	if (p->remote && !cluster_view_fill_cache(p->remote, a, &out->cache))
		return arena_fail(a, "cache", err);
	cluster_parts_fill_requests(p, out);
	return ERR_OK;
}

/* ---- metrics ---- */

/* A metric has so many values and keeps them: a name stays its shard's. NULL: there is no more. */
static const char *cluster_metrics_name_of(struct cluster_metrics *m, struct str name)
{
	size_t at = 0;

	while (at < m->n && !str_is(name, m->shards[at].name))
		at++;
	if (at == m->n) {
		if (at == CLUSTER_SHARDS_NAMED || name.len >= sizeof(m->shards[at].name))
			return NULL;
		memcpy(m->shards[at].name, name.ptr, name.len);
		m->shards[at].name[name.len] = '\0';
		m->n++;
	}
	m->shards[at].there = true;
	return m->shards[at].name;
}

static void cluster_view_show(
	const char *name, double lag_s, bool late, uint64_t missing, uint64_t unread_bytes)
{
	metric_set(&unread_gauge, name, (double)unread_bytes);
	metric_set(&lag_gauge, name, lag_s);
	metric_set(&late_gauge, name, late);
	metric_set(&missing_gauge, name, (double)missing);
}

static void cluster_metrics_show_shards(struct cluster_metrics *m, const struct cluster_view *v)
{
	double counts[STATES] = { 0 }, other_lag_s = NAN;
	bool others = false, other_late = false;
	uint64_t other_missing = 0, other_unread = 0;

	for (size_t i = 0; i < m->n; i++)
		m->shards[i].there = false;
	for (size_t i = 0; i < v->shards_n; i++) {
		const struct cluster_shard_view *s = &v->shards[i];
		double lag_s = s->lag_ns >= 0 ? (double)s->lag_ns / NS_PER_S : NAN;
		const char *name = cluster_metrics_name_of(m, s->name);

		for (size_t k = 0; k < STATES; k++)
			counts[k] += !strcmp(states[k], s->state);
		if (name) {
			cluster_view_show(name, lag_s, s->late, s->missing, s->all_bytes - s->read_bytes);
			continue;
		}
		others = true;
		other_lag_s = fmax(other_lag_s, lag_s); /* passes over NaN */
		other_late |= s->late;
		other_missing += s->missing;
		other_unread += s->all_bytes - s->read_bytes;
	}
	if (others)
		cluster_view_show(OTHER, other_lag_s, other_late, other_missing, other_unread);
	for (size_t i = 0; i < m->n; i++)
		if (!m->shards[i].there)
			cluster_view_show(m->shards[i].name, NAN, false, 0, 0);
	for (size_t k = 0; k < STATES; k++)
		metric_set(&shards_gauge, states[k], counts[k]);
}

static void cluster_view_collect(void *ctx)
{
	struct cluster_metrics *m = ctx;
	struct cluster_parts p = { 0 };
	struct cluster_view v;
	struct arena a;
	struct err err;

	m->parts(m->ctx, &p);
	if (!p.bucket)
		return;
	arena_init(&a, COLLECT_BYTES_MAX);
	if (cluster_view_fill(&p, &a, &v, &err) == ERR_OK) {
		if (v.has_shards)
			cluster_metrics_show_shards(m, &v);
		metric_set(&requests_cost_gauge, NULL, v.requests_cost);
		metric_set(&storage_cost_gauge, NULL, v.storage_cost_month);
	}
	arena_release(&a);
}

void cluster_metrics_begin(
	struct cluster_metrics *m, void (*parts)(void *ctx, struct cluster_parts *out), void *ctx)
{
	*m = (struct cluster_metrics){ .parts = parts, .ctx = ctx };
	metric_collector_add(cluster_view_collect, m);
}

void cluster_metrics_end(struct cluster_metrics *m)
{
	metric_collector_remove(cluster_view_collect, m);
}
