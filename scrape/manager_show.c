/*
 * The snapshot of targets. Their labels and URLs are in the pools' sets, which the snapshot holds.
 * Only the outcome of their last scrapes is copied, by their loops, one loop after the other.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hidden.h"
#include "base/str.h"
#include "scrape/manager_internal.h"
#include "scrape/targets/url.h"

struct snapshot {
	struct scrape_manager *manager;
	const char *pool;
	struct arena *arena;
	struct scrape_snapshot *out;
	struct str pool_name; /* of the pool that is copied now */
	struct scraper **scrapers; /* of out->active */
	struct lane *lane; /* whose loop copies now */
	bool failed;
};

static struct str snapshot_dup(struct snapshot *s, struct str text)
{
	struct str copy = str_dup(s->arena, text);

	if (!copy.ptr) {
		s->failed = true;
		return STR("");
	}
	return copy;
}

static struct labels snapshot_without_name(struct snapshot *s, struct labels ls)
{
	struct label *v = arena_alloc_raw(s->arena, ls.n ? ls.n : 1, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; v && i < ls.n; i++)
		if (!str_is(ls.v[i].name, LABEL_NAME))
			v[n++] = ls.v[i];
	s->failed |= !v;
	return (struct labels){ v, n };
}

static struct labels snapshot_without_secrets(struct snapshot *s, struct labels ls)
{
	struct labels shown = hidden_labels(s->arena, ls);

	s->failed |= shown.n != ls.n;
	return shown;
}

/* When the profile that is being taken, or else the next one, is complete; 0: in centuries. */
static int64_t manager_show_next_profile(const struct scraper *s)
{
	int64_t turn = s->state == SCRAPER_IDLE ? s->next_ns : s->turn_ns, when;

	if (!s->target || __builtin_mul_overflow(s->target->seconds, NS_PER_S, &when) ||
		__builtin_add_overflow(when, turn - clock_monotonic_ns(), &when) ||
		__builtin_add_overflow(when, clock_now_ns(), &when))
		return 0;
	return when;
}

/* Copies the fields that only the loop's thread may read. */
static void show_state(struct snapshot *s, const struct scraper *from, struct target_info *to)
{
	const char *warning = growth_warning(&from->growth);

	if (!warning && from->stacks_cut)
		warning = "samples have more than 4096 frames: those at the root are left out";
	to->last_error = snapshot_dup(s, str_of(from->last_error ? from->last_error : ""));
	to->warning = str_of(warning ? warning : "");
	to->last_scrape_ns = from->last_scrape_ns;
	to->last_duration_ns = from->last_duration_ns;
	to->next_profile_ns = manager_show_next_profile(from);
	to->health = from->health;
	to->sharing = from->sharing.mode;
	to->scrapes = from->scrapes;
	to->failures = from->failures;
	to->skipped = from->skipped;
	to->last_samples = from->last_samples;
	to->last_bytes = from->last_bytes;
}

static void show_lane(void *ctx)
{
	struct snapshot *s = ctx;

	assert(loop_is_current(s->lane->loop));
	for (size_t i = 0; i < s->out->active_n; i++)
		if (s->scrapers[i] && s->scrapers[i]->lane == s->lane)
			show_state(s, s->scrapers[i], &s->out->active[i]);
}

static void show_target(
	struct snapshot *s, const struct job_pool *p, const struct target *t, struct target_info *to)
{
	const struct scrape_manager *m = s->manager;
	struct buf global = { 0 };

	*to = (struct target_info){
		.discovered = snapshot_without_secrets(s, t->discovered),
		.labels = snapshot_without_name(s, t->labels),
		.profile = t->name,
		.pool = s->pool_name,
		.scrape_url = t->shown_url,
		.global_url = t->shown_url,
		.unix_path = snapshot_dup(s, target_unix_path(t)),
		.interval_ns = t->interval_ns,
		.timeout_ns = t->timeout_ns,
		.last_error = { "", 0 },
		.warning = { "", 0 },
		.health = t->profile->optional ? TARGET_ABSENT : TARGET_UNKNOWN, /* until its loop says */
	};
	if (t->unix_path)
		return; /* no other machine reaches it */
	url_print_global(&global, t->shown_url, str_of(m->listen_address), str_of(m->external_url));
	if (!buf_failed(&global) && !str_eq(buf_str(&global), t->shown_url))
		to->global_url = snapshot_dup(s, buf_str(&global));
	buf_release(&global);
}

static bool manager_show_wanted(const struct snapshot *s, const struct job_pool *p)
{
	return !s->pool || str_is(p->job->job_name, s->pool);
}

struct shard scrape_manager_shard(struct scrape_manager *m)
{
	return shard_gate_get(&m->env.gate);
}

static void show_dropped(void *ctx, struct target_part *p)
{
	struct snapshot *s = ctx;

	for (size_t i = 0; i < p->dropped_n; i++)
		s->out->dropped[s->out->dropped_n++] = (struct dropped_target){
			.discovered = snapshot_without_secrets(s, p->dropped[i].discovered),
			.pool = s->pool_name,
			.reason = snapshot_dup(s, p->dropped[i].reason),
		};
}

static void show_pool(struct snapshot *s, const struct job_pool *p)
{
	struct scrape_snapshot *out = s->out;
	struct pool_info *info = &out->pools[out->pools_n++];
	const struct target_chunk *c;
	struct str trouble = str_of(p->trouble ? p->trouble :
			p->set && p->set->error        ? p->set->error :
											 "");

	*info = (struct pool_info){
		.name = snapshot_dup(s, p->job->job_name),
		.error = snapshot_dup(s, trouble),
	};
	if (!p->set)
		return;
	s->pool_name = info->name;
	out->sets[out->sets_n++] = target_set_ref(p->set);
	info->active = p->set->n;
	info->dropped = p->set->dropped_total;
	info->elsewhere = p->set->elsewhere;
	info->waiting = p->set->waiting;
	for (size_t i = 0; i < p->set->list.n; i++) {
		c = p->set->list.v[i].chunk;
		for (size_t k = 0; k < c->n; k++) {
			s->scrapers[out->active_n] = p->synced ? c->users[k] : NULL;
			show_target(s, p, c->v[k], &out->active[out->active_n++]);
		}
	}
	target_node_each_part(p->set->tree, show_dropped, s);
}

/* The lock is held, so no scraper of a pool ends meanwhile. */
static void snapshot_take(struct snapshot *s)
{
	const struct scrape_manager *m = s->manager;
	size_t pools = 0, active = 0, dropped = 0;

	mutex_assert_held(&m->lock);
	for (size_t i = 0; i < m->n; i++) {
		if (!manager_show_wanted(s, m->pools[i]))
			continue;
		pools++;
		active += m->pools[i]->set ? m->pools[i]->set->n : 0;
		dropped += m->pools[i]->set ? m->pools[i]->set->dropped_n : 0;
	}
	s->out->pools = arena_array(s->arena, struct pool_info, pools);
	s->out->active = arena_array(s->arena, struct target_info, active);
	s->out->dropped = arena_array(s->arena, struct dropped_target, dropped);
	s->out->sets = arena_array(s->arena, struct target_set *, pools);
	s->scrapers = arena_array(s->arena, struct scraper *, active);
	if (!s->out->pools || !s->out->active || !s->out->dropped || !s->out->sets || !s->scrapers) {
		s->failed = true;
		return;
	}
	for (size_t i = 0; i < m->n && !s->failed; i++)
		if (manager_show_wanted(s, m->pools[i]))
			show_pool(s, m->pools[i]);
	assert(s->failed || (s->out->active_n == active && s->out->dropped_n == dropped));
	for (size_t i = 0; i < m->lanes_n && !s->failed; i++) {
		s->lane = m->lanes[i];
		loop_call(s->lane->loop, show_lane, s);
	}
}

static int manager_show_by_labels(const void *a, const void *b)
{
	const struct target_info *x = a, *y = b;
	int c = labels_cmp(x->labels, y->labels);

	return c ? c : str_cmp(x->profile, y->profile);
}

/* Optional profiles that are not there. */
static void manager_show_leave_out_absent(struct scrape_snapshot *s)
{
	struct target_info *v = s->active;
	size_t n = 0, at = 0, end;

	for (size_t i = 0; i < s->pools_n; i++) {
		end = at + s->pools[i].active;
		s->pools[i].active = 0;
		for (; at < end; at++)
			if (v[at].health != TARGET_ABSENT) {
				s->pools[i].active++;
				v[n++] = v[at];
			}
	}
	assert(at == s->active_n);
	s->active_n = n;
}

/* Pools keep their targets in another order. */
static void manager_show_sort_active(struct scrape_snapshot *s)
{
	struct target_info *v = s->active;

	for (size_t i = 0; i < s->pools_n; v += s->pools[i++].active)
		if (s->pools[i].active)
			qsort(v, s->pools[i].active, sizeof(*v), manager_show_by_labels);
	assert(v == s->active + s->active_n);
}

enum err_code scrape_manager_snapshot(struct scrape_manager *m, const char *pool, struct arena *a,
	struct scrape_snapshot *out, struct err *err)
{
	struct scrape_snapshot made = { 0 };
	struct snapshot s = { .manager = m, .pool = pool, .arena = a, .out = &made };

	mutex_lock(&m->lock);
	snapshot_take(&s);
	mutex_unlock(&m->lock);
	if (s.failed) {
		scrape_snapshot_release(&made);
		return arena_fail(a, "list of targets", err);
	}
	manager_show_leave_out_absent(&made);
	manager_show_sort_active(&made);
	*out = made;
	return ERR_OK;
}

void scrape_snapshot_release(struct scrape_snapshot *s)
{
	for (size_t i = 0; i < s->sets_n; i++)
		target_set_unref(s->sets[i]);
	*s = (struct scrape_snapshot){ 0 };
}
