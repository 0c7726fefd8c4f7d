#include "base/clock.h"
#include "base/metrics.h"
#include "tsdb/catalog/state.h"
#include "tsdb/cluster/publisher_internal.h"

METRIC_GAUGE(lag_gauge, "epimetheus_publish_lag_seconds",
	"How old the newest row is that the bucket surely has.", NULL);
METRIC_GAUGE(confirmed_gauge, "epimetheus_publish_manifest_age_seconds",
	"Time since the manifest was last written.", NULL);
METRIC_GAUGE(waiting_gauge, "epimetheus_publish_waiting_bytes",
	"Bytes of segments and blocks that wait to be put into the bucket.", NULL);
METRIC_GAUGE(stored_gauge, "epimetheus_publish_stored_bytes",
	"Bytes of objects that the manifest names.", NULL);
METRIC_GAUGE(gone_gauge, "epimetheus_publish_gone_objects",
	"Objects that are to be removed from the bucket.", NULL);
METRIC_GAUGE(kept_gauge, "epimetheus_publish_kept",
	"Windows and blocks in the bucket that the data directory lacks.", NULL);
METRIC_GAUGE(up_gauge, "epimetheus_publish_up", "1: the last round worked.", NULL);
METRIC_GAUGE(state_gauge, "epimetheus_publish_state",
	"1: the state; waiting for the lease, running, away: the bucket is, fenced: another server has "
	"the shard.",
	"state");
METRIC_GAUGE(failures_gauge, "epimetheus_publish_failures",
	"Rounds and uploads that failed since the start.", NULL);
METRIC_GAUGE(
	put_gauge, "epimetheus_publish_put_bytes", "Bytes put into the bucket since the start.", NULL);
METRIC_GAUGE(cost_gauge, "epimetheus_publish_cost",
	"What the requests since the start cost, by the prices of the configuration.", NULL);

static const char *const state_names[] = { "waiting", "running", "away", "fenced" };

const char *publisher_state_name(enum publisher_state state)
{
	return state_names[state];
}

static void cluster_status_count_manifest(const struct publisher *p, struct publisher_status *s)
{
	struct manifest m = p->m;

	m.shard = p->o.shard;
	s->windows = m.windows_n;
	s->blocks = m.blocks_n;
	s->gone = m.gone_n;
	s->bytes = manifest_bytes(&m);
	for (uint32_t i = 0; i < m.windows_n; i++) {
		s->segments += m.windows[i].segments_n;
		s->kept += m.windows[i].kept;
	}
	for (uint32_t i = 0; i < m.blocks_n; i++)
		s->kept += m.blocks[i].kept;
}

bool publisher_say_refusal(struct publisher *p, struct err *out)
{
	int64_t age = lease_age_ns(p->lease);
	struct err last;

	if (lease_is_fenced(p->lease)) {
		err_set(out, ERR_UNAVAILABLE,
			"shard %s was taken over by another server: nothing is acknowledged", p->shard);
	} else if (!atomic_load(&p->attached)) {
		err_set(out, ERR_UNAVAILABLE,
			"shard %s has no lease yet, as the bucket was away at its start: nothing is "
			"acknowledged before",
			p->shard);
	} else if (age >= lease_ns(p->lease)) {
		mutex_lock(&p->lock);
		last = p->round_failed ? p->round_err : (struct err){ 0 };
		mutex_unlock(&p->lock);
		err_set(out, ERR_UNAVAILABLE,
			"shard %s has not confirmed its lease for %.1f s, limit %g s: another server may have "
			"its name, and nothing is acknowledged until the bucket confirms the lease%s%s",
			p->shard, (double)age / NS_PER_S, (double)lease_ns(p->lease) / NS_PER_S,
			last.code ? "; " : "", last.code ? last.msg : "");
	} else {
		return false;
	}
	return true;
}

void publisher_status(struct publisher *p, struct publisher_status *out)
{
	int64_t age = lease_age_ns(p->lease);
	struct db *db;

	mutex_lock(&p->lock);
	db = p->db;
	*out = p->counts;
	out->state = p->round_failed ? PUBLISHER_AWAY : PUBLISHER_RUNNING;
	if (p->round_failed)
		out->last = p->round_err;
	else if (p->work_failed)
		out->last = p->work_err;
	out->through_ns = p->confirmed_through_ns;
	out->waiting_blocks = p->wanted_n;
	out->waiting_bytes = p->wanted_bytes;
	if (lease_generation(p->lease))
		cluster_status_count_manifest(p, out);
	else
		out->state = PUBLISHER_WAITING;
	mutex_unlock(&p->lock);
	if (lease_is_fenced(p->lease))
		out->state = PUBLISHER_FENCED;
	if (db && db->o.segments)
		out->waiting_bytes += head_ship_bytes(db);
	out->generation = lease_generation(p->lease);
	out->manifest_bytes = lease_manifest_bytes(p->lease);
	out->confirmed_age_ns = age == INT64_MAX ? -1 : age;
	out->acknowledges = !publisher_say_refusal(p, &out->refusal);
	out->lag_ns = out->through_ns ? clock_now_ns() - out->through_ns : -1;
	bucket_get_usage(p->o.bucket, &out->usage);
	out->cost_requests = bucket_requests_cost(&out->usage, &p->o.prices);
	out->cost_month = bucket_storage_cost(out->bytes, &p->o.prices);
}

void publisher_collect(void *ctx)
{
	struct publisher_status s;

	publisher_status(ctx, &s);
	if (s.lag_ns >= 0)
		metric_set(&lag_gauge, NULL, (double)s.lag_ns / 1e9);
	if (s.confirmed_age_ns >= 0)
		metric_set(&confirmed_gauge, NULL, (double)s.confirmed_age_ns / 1e9);
	metric_set(&waiting_gauge, NULL, (double)s.waiting_bytes);
	metric_set(&stored_gauge, NULL, (double)s.bytes);
	metric_set(&gone_gauge, NULL, (double)s.gone);
	metric_set(&kept_gauge, NULL, (double)s.kept);
	metric_set(&up_gauge, NULL, s.state == PUBLISHER_RUNNING);
	for (unsigned i = 0; i < sizeof(state_names) / sizeof(state_names[0]); i++)
		metric_set(&state_gauge, state_names[i], s.state == i);
	metric_set(&failures_gauge, NULL, (double)s.failures);
	metric_set(&put_gauge, NULL, (double)s.put_bytes);
	metric_set(&cost_gauge, NULL, s.cost_requests);
}
