#include "base/clock.h"
#include "scrape/manager.h"
#include "web/api/handlers.h"
#include "web/router/envelope.h"

#define NEVER "0001-01-01T00:00:00Z" /* Go's zero time */

static void api_write_duration(struct json *j, const char *key, int64_t ns)
{
	struct buf text = { 0 };

	duration_print(&text, ns);
	json_key(j, key);
	json_str(j, buf_str(&text));
	buf_release(&text);
}

static void api_targets_write_time(struct json *j, const char *key, int64_t ns)
{
	struct buf text = { 0 };

	if (ns)
		time_print_rfc3339(&text, ns);
	else
		buf_add_cstr(&text, NEVER);
	json_key(j, key);
	json_str(j, buf_str(&text));
	buf_release(&text);
}

static void api_write_target(struct json *j, const struct target_info *t)
{
	const struct {
		const char *key;
		struct str value;
	} texts[] = {
		{ "profile", t->profile },
		{ "scrapePool", t->pool },
		{ "scrapeUrl", t->scrape_url },
		{ "globalUrl", t->global_url },
		{ "lastError", t->last_error },
	};
	const struct {
		const char *key;
		uint64_t value;
	} counts[] = {
		{ "scrapes", t->scrapes },
		{ "failures", t->failures },
		{ "skipped", t->skipped },
		{ "lastSamples", t->last_samples },
		{ "lastBytes", t->last_bytes },
	};

	json_object(j);
	json_key(j, "discoveredLabels");
	api_labels(j, t->discovered);
	json_key(j, "labels");
	api_labels(j, t->labels);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_key(j, texts[i].key);
		json_str(j, texts[i].value);
	}
	if (t->unix_path.len) { /* our own */
		json_key(j, "scrapeUnixSocket");
		json_str(j, t->unix_path);
	}
	api_targets_write_time(j, "lastScrape", t->last_scrape_ns);
	json_key(j, "lastScrapeDuration");
	json_double(j, (double)t->last_duration_ns / 1e9);
	if (t->next_profile_ns)
		api_targets_write_time(j, "nextProfile", t->next_profile_ns);
	json_key(j, "health");
	json_cstr(j, target_health_name(t->health));
	if (t->warning.len) {
		json_key(j, "warning");
		json_str(j, t->warning);
	}
	if (t->sharing != SHARING_ALONE) {
		json_key(j, "profilerShared");
		json_cstr(j, sharing_mode_name(t->sharing));
	}
	api_write_duration(j, "scrapeInterval", t->interval_ns);
	api_write_duration(j, "scrapeTimeout", t->timeout_ns);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		json_key(j, counts[i].key);
		json_u64(j, counts[i].value);
	}
	json_object_end(j);
}

static void api_write_dropped(struct json *j, const struct scrape_snapshot *s, bool shown)
{
	json_key(j, "droppedTargets");
	json_array(j);
	for (size_t i = 0; shown && i < s->dropped_n; i++) {
		json_object(j);
		json_key(j, "discoveredLabels");
		api_labels(j, s->dropped[i].discovered);
		json_key(j, "scrapePool");
		json_str(j, s->dropped[i].pool);
		if (s->dropped[i].reason.len) { /* our own: another shard */
			json_key(j, "reason");
			json_str(j, s->dropped[i].reason);
		}
		json_object_end(j);
	}
	json_array_end(j);
	json_key(j, "droppedTargetCounts");
	json_object(j);
	for (size_t i = 0; shown && i < s->pools_n; i++) {
		json_key_str(j, s->pools[i].name);
		json_u64(j, s->pools[i].dropped);
	}
	json_object_end(j);
}

/* Pools that do not scrape at all, with the reason. No key if there are none. */
static void api_write_pool_errors(struct json *j, const struct scrape_snapshot *s)
{
	bool open = false;

	for (size_t i = 0; i < s->pools_n; i++) {
		if (!s->pools[i].error.len)
			continue;
		if (!open) {
			json_key(j, "scrapePoolErrors");
			json_object(j);
			open = true;
		}
		json_key_str(j, s->pools[i].name);
		json_str(j, s->pools[i].error);
	}
	if (open)
		json_object_end(j);
}

static bool api_state_is(struct str state, const char *name)
{
	struct str want = str_of(name);

	if (!state.len)
		return true;
	if (state.len != want.len)
		return false;
	for (size_t i = 0; i < want.len; i++)
		if ((state.ptr[i] | 0x20) != want.ptr[i])
			return false;
	return true;
}

void api_targets(struct web *w, struct http_in *in, struct http_out *out)
{
	struct str state = http_param(in, "state"), pool = http_param(in, "scrapePool");
	bool any = api_state_is(state, "any");
	struct scrape_snapshot s;
	struct json j;
	struct err err;
	enum err_code rc = scrape_manager_snapshot(
		w->o.manager, pool.len ? pool.ptr : NULL, &in->arena, &s, &err);

	if (rc) {
		api_fail(out, rc, &err);
		return;
	}
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "activeTargets");
	json_array(&j);
	for (size_t i = 0; (any || api_state_is(state, "active")) && i < s.active_n; i++)
		api_write_target(&j, &s.active[i]);
	json_array_end(&j);
	api_write_dropped(&j, &s, any || api_state_is(state, "dropped"));
	api_write_pool_errors(&j, &s);
	json_object_end(&j);
	scrape_snapshot_release(&s);
	api_end(&j, NULL, 0, NULL, 0);
}

void api_scrape_pools(struct web *w, struct http_in *in, struct http_out *out)
{
	struct scrape_snapshot s;
	struct json j;
	struct err err;
	enum err_code rc = scrape_manager_snapshot(w->o.manager, NULL, &in->arena, &s, &err);

	if (rc) {
		api_fail(out, rc, &err);
		return;
	}
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "scrapePools");
	json_array(&j);
	for (size_t i = 0; i < s.pools_n; i++)
		json_str(&j, s.pools[i].name);
	json_array_end(&j);
	json_object_end(&j);
	scrape_snapshot_release(&s);
	api_end(&j, NULL, 0, NULL, 0);
}
