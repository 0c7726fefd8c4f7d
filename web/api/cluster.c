#include "base/clock.h"
#include "web/api/handlers.h"
#include "web/router/envelope.h"

static void api_write_text(struct json *j, const char *key, struct str value)
{
	json_key(j, key);
	json_str(j, value);
}

/* A message that is there. */
static void api_write_error(struct json *j, const char *key, struct str value)
{
	if (value.len)
		api_write_text(j, key, value);
}

static void api_write_count(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_u64(j, value);
}

static void api_write_double(struct json *j, const char *key, double value)
{
	json_key(j, key);
	json_double(j, value);
}

static void api_write_bool(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	json_bool(j, value);
}

/* Both are left out where they are not known. */
static void api_write_progress(struct json *j, int64_t through_ns, int64_t lag_ns)
{
	struct buf text = { 0 };

	if (through_ns) {
		time_print_rfc3339(&text, through_ns);
		api_write_text(j, "through", buf_str(&text));
		buf_release(&text);
	}
	if (lag_ns >= 0)
		api_write_double(j, "lag_seconds", (double)lag_ns / NS_PER_S);
}

static void api_write_assignment(struct json *j, const struct cluster_publish_view *c)
{
	if (!c->joined)
		return;
	api_write_count(j, "assignment", c->assignment);
	json_key(j, "members");
	json_array(j);
	for (size_t i = 0; i < c->members_n; i++) {
		const struct cluster_member_view *m = &c->members[i];

		json_object(j);
		api_write_text(j, "name", m->name);
		api_write_bool(j, "member", m->member);
		api_write_bool(j, "drained", m->drained);
		api_write_bool(j, "ended", m->ended);
		api_write_count(j, "follows", m->follows);
		json_object_end(j);
	}
	json_array_end(j);
}

static void api_write_own(struct json *j, const struct cluster_publish_view *c)
{
	json_key(j, "shard");
	json_object(j);
	api_write_text(j, "name", c->name);
	api_write_text(j, "state", str_of(c->state));
	api_write_count(j, "generation", c->generation);
	api_write_progress(j, c->through_ns, c->lag_ns);
	api_write_count(j, "waiting_blocks", c->waiting_blocks);
	api_write_count(j, "waiting_bytes", c->waiting_bytes);
	api_write_count(j, "blocks", c->blocks);
	api_write_count(j, "windows", c->windows);
	api_write_count(j, "segments", c->segments);
	api_write_count(j, "bytes", c->bytes);
	api_write_count(j, "kept", c->kept);
	api_write_count(j, "gone", c->gone);
	api_write_count(j, "failures", c->failures);
	api_write_error(j, "last_error", c->last_error);
	api_write_error(j, "refuses_pushes", c->refuses);
	api_write_assignment(j, c);
	json_object_end(j);
}

static void api_write_reading(struct json *j, const struct cluster_shard_view *s)
{
	json_key(j, "reading");
	json_object(j);
	api_write_count(j, "read_segments", s->read_segments);
	api_write_count(j, "segments", s->all_segments);
	api_write_count(j, "read_bytes", s->read_bytes);
	api_write_count(j, "bytes", s->all_bytes);
	if (s->left_ns >= 0)
		api_write_double(j, "left_seconds", (double)s->left_ns / NS_PER_S);
	json_object_end(j);
}

static void api_write_shard(struct json *j, const struct cluster_shard_view *s)
{
	json_object(j);
	api_write_text(j, "name", s->name);
	api_write_bool(j, "own", s->own);
	api_write_text(j, "state", str_of(s->state));
	if (!s->own) {
		api_write_text(j, "host", s->host);
		api_write_progress(j, s->through_ns, s->lag_ns);
		api_write_bool(j, "late", s->late);
		api_write_bool(j, "stopped", s->stopped);
		api_write_count(j, "windows", s->windows);
		api_write_count(j, "segments", s->segments);
		api_write_count(j, "blocks", s->blocks);
		api_write_count(j, "bytes", s->bytes);
		api_write_count(j, "missing", s->missing);
		if (s->reading)
			api_write_reading(j, s);
		api_write_error(j, "error", s->error);
		if (s->assignment) {
			api_write_count(j, "assignment", s->assignment);
			api_write_bool(j, "behind", s->behind);
		}
	}
	json_object_end(j);
}

static void api_write_shards(struct json *j, const struct cluster_view *v)
{
	json_key(j, "shards");
	json_array(j);
	for (size_t i = 0; i < v->shards_n; i++)
		api_write_shard(j, &v->shards[i]);
	json_array_end(j);
}

static void api_write_cache(struct json *j, const struct cluster_cache_view *c)
{
	uint64_t hits = c->from_memory + c->from_disk, pages = hits + c->from_bucket;

	json_key(j, "cache");
	json_object(j);
	api_write_count(j, "from_memory", c->from_memory);
	api_write_count(j, "from_disk", c->from_disk);
	api_write_count(j, "from_bucket", c->from_bucket);
	if (pages)
		api_write_double(j, "hit_rate", (double)hits / (double)pages);
	api_write_count(j, "bytes", c->bytes);
	api_write_count(j, "max_bytes", c->bytes_max);
	api_write_count(j, "damaged_pages", c->damaged_pages);
	api_write_error(j, "off", c->off);
	api_write_error(j, "down", c->down);
	json_object_end(j);
}

static void api_write_requests(struct json *j, const struct cluster_view *v)
{
	json_key(j, "requests");
	json_object(j);
	for (size_t i = 0; i < v->requests_n; i++) {
		const struct cluster_request_view *r = &v->requests[i];

		json_key(j, r->kind);
		json_object(j);
		api_write_count(j, "requests", r->requests);
		api_write_count(j, "sent_bytes", r->sent_bytes);
		api_write_count(j, "received_bytes", r->received_bytes);
		json_object_end(j);
	}
	json_object_end(j);
	json_key(j, "cost");
	json_object(j);
	api_write_double(j, "since_start", v->requests_cost);
	if (v->requests_cost_day >= 0)
		api_write_double(j, "requests_per_day", v->requests_cost_day);
	api_write_double(j, "month", v->storage_cost_month);
	json_object_end(j);
}

void api_cluster(struct web *w, struct http_in *in, struct http_out *out)
{
	struct cluster_view v = { .mode = "server" };
	struct json j;
	struct err err;
	enum err_code rc;

	if (w->o.cluster && (rc = w->o.cluster(w->o.ctx, &in->arena, &v, &err))) {
		api_fail(out, rc, &err);
		return;
	}
	api_begin(out, &j);
	json_object(&j);
	api_write_text(&j, "mode", str_of(v.mode));
	if (v.bucket.len) {
		api_write_text(&j, "bucket", v.bucket);
		if (v.shard.state)
			api_write_own(&j, &v.shard);
		if (v.has_shards)
			api_write_shards(&j, &v);
		if (v.cache.there)
			api_write_cache(&j, &v.cache);
		api_write_requests(&j, &v);
	}
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}
