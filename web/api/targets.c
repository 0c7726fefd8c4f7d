#include "base/clock.h"
#include "scrape/target_lines.h"
#include "web/api/fleet_targets.h"
#include "web/api/handlers.h"
#include "web/router/envelope.h"

static void api_write_dropped(struct json *j, const struct scrape_snapshot *s, bool shown)
{
	json_key(j, "droppedTargets");
	json_array(j);
	for (size_t i = 0; shown && i < s->dropped_n; i++)
		target_lines_write_dropped(j, &s->dropped[i]);
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

/* Which shards' lists these are, and of when. No key on a server that scrapes itself. */
static void api_write_target_shards(struct json *j, const struct fleet_targets *f)
{
	struct buf time = { 0 };

	if (!f->shards_n)
		return;
	json_key(j, "shards");
	json_array(j);
	for (size_t i = 0; i < f->shards_n; i++) {
		buf_clear(&time);
		time_print_rfc3339(&time, f->shards[i].time_ns);
		json_object(j);
		json_key(j, "shard");
		json_str(j, f->shards[i].name);
		json_key(j, "time");
		json_str(j, buf_str(&time));
		json_key(j, "targets");
		json_u64(j, f->shards[i].active);
		json_key(j, "leftOut");
		json_u64(j, f->shards[i].left_out);
		json_object_end(j);
	}
	json_array_end(j);
	buf_release(&time);
}

void api_targets(struct web *w, struct http_in *in, struct http_out *out)
{
	struct str state = http_param(in, "state"), pool = http_param(in, "scrapePool");
	struct str health = http_param(in, "health");
	bool any = api_state_is(state, "any"), active = any || api_state_is(state, "active");
	struct fleet_targets f;
	struct json j;
	struct err err;
	enum err_code rc = fleet_targets_open(w, pool, &in->arena, &f, &err);

	if (rc) {
		api_fail(out, rc, &err);
		return;
	}
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "activeTargets");
	json_array(&j);
	for (size_t i = 0; active && i < f.s.active_n; i++)
		if (api_state_is(health, target_health_name(f.s.active[i].health)))
			target_lines_write_target(&j, &f.s.active[i]);
	json_array_end(&j);
	api_write_dropped(&j, &f.s, any || api_state_is(state, "dropped"));
	api_write_pool_errors(&j, &f.s);
	api_write_target_shards(&j, &f);
	json_object_end(&j);
	api_end(&j, f.warnings, f.warnings_n, f.infos, f.infos_n);
	fleet_targets_release(&f);
}

void api_scrape_pools(struct web *w, struct http_in *in, struct http_out *out)
{
	struct fleet_targets f;
	struct json j;
	struct err err;
	enum err_code rc = fleet_targets_open(w, STR(""), &in->arena, &f, &err);

	if (rc) {
		api_fail(out, rc, &err);
		return;
	}
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "scrapePools");
	json_array(&j);
	for (size_t i = 0; i < f.s.pools_n; i++)
		json_str(&j, f.s.pools[i].name);
	json_array_end(&j);
	json_object_end(&j);
	api_end(&j, f.warnings, f.warnings_n, f.infos, f.infos_n);
	fleet_targets_release(&f);
}
