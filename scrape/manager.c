/*
 * Pools: one per job. Discovery's thread expands a job's groups into a target set and compares what
 * differs, under the manager's lock, with the set before it; both are sorted by target_cmp.
 * Scrapers that start, change or end are queued in the lane of their address. So the loops compare
 * nothing and never take the lock.
 *
 * A new configuration makes new pools. Discovery fills them while the old ones are scraped; then
 * apply swaps them, and scrapers move to the pool of the same name. A set for a pool that is not
 * swapped in yet waits for the swap. Discovery delivers nothing to a pool that was swapped out.
 */
#include "scrape/manager.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/version.h"
#include "scrape/manager_internal.h"
#include "scrape/symbol_cache.h"

#define CONNECTIONS_DEFAULT 65536u
#define CONNECTIONS_LEAST 64u
#define SYMBOLS_TIMEOUT_NS (10 * NS_PER_S)

METRIC_GAUGE(pools_gauge, "epimetheus_scrape_pools", "Jobs.", NULL);
METRIC_GAUGE(pool_targets, "epimetheus_scrape_pool_targets", "Target and profile pairs of a job.",
	"scrape_pool");
METRIC_GAUGE(pool_elsewhere, "epimetheus_scrape_pool_targets_of_other_shards",
	"Targets of a job that other shards scrape.", "scrape_pool");
METRIC_COUNTER(syncs, "epimetheus_scrape_pool_syncs_total", "Target sets applied.", NULL);
METRIC_HISTOGRAM(sync_seconds, "epimetheus_scrape_pool_sync_duration_seconds",
	"From a job's target groups to queued changes of its targets.", NULL);
METRIC_COUNTER(limit_exceeded, "epimetheus_scrape_pool_exceeded_target_limit_total",
	"Target sets over their job's target_limit.", NULL);

/* ---- pools ---- */

static void scrape_manager_pool_free(struct job_pool *p)
{
	if (!p)
		return;
	target_set_unref(p->set);
	config_unref(p->config);
	free(p);
}

/* Logs each message once, however often targets come and go. */
static void scrape_manager_log_trouble(struct job_pool *p)
{
	struct str error = str_of(p->set->error ? p->set->error : "");
	uint64_t hash = hash_bytes(error.ptr, error.len, 0);

	if (error.len && hash != p->logged)
		log_warn("scrape",
			p->set->limit_exceeded ? "no target of the job is scraped" :
									 "some targets are not scraped",
			LOG_STR("job", p->job->job_name), LOG_STR("err", error));
	p->logged = hash;
	if (p->set->limit_exceeded)
		metric_add(&limit_exceeded, NULL, 1);
}

/* Adds the difference, because jobs beyond METRIC_VALUES_MAX share a cell. */
static void scrape_manager_count_targets(struct job_pool *p, size_t n, size_t elsewhere)
{
	char name[256];

	if (n == p->counted && elsewhere == p->elsewhere)
		return;
	snprintf(name, sizeof(name), STR_FMT, STR_ARG(p->job->job_name));
	metric_add(&pool_targets, name, (double)n - (double)p->counted);
	metric_add(&pool_elsewhere, name, (double)elsewhere - (double)p->elsewhere);
	p->counted = n;
	p->elsewhere = elsewhere;
}

/* t: its target. */
static void scrape_manager_end_scraper(
	struct scrape_manager *m, struct scraper *s, const struct target *t)
{
	struct shard shard;

	if (!s)
		return;
	shard = shard_gate_get(&m->env.gate);
	scraper_end(s, shard_whose(&shard, t->shard_key, NULL) != SHARD_OWN);
	shard_unref(&shard);
}

/* A walk over the targets of a set and their scrapers. */
struct scrape_manager_walk {
	const struct target_set *set; /* NULL: there are none */
	const struct target_set *without; /* NULL, or: not of chunks that this set has too */
	size_t chunk, at;
	const struct target *now; /* NULL: the end */
	void **scraper; /* of it */
};

static void scrape_manager_walk_next(struct scrape_manager_walk *w)
{
	const struct target_list *l = w->set ? &w->set->list : NULL;
	const struct target_chunk *c;

	w->now = NULL;
	for (; l && w->chunk < l->n; w->chunk++, w->at = 0) {
		if (w->at == 0 && w->without && target_list_has(&w->without->list, &l->v[w->chunk]))
			continue;
		c = l->v[w->chunk].chunk;
		if (w->at == c->n)
			continue;
		w->scraper = &c->users[w->at];
		w->now = c->v[w->at++];
		return;
	}
}

/* The scraper leaves the set. */
static struct scraper *scrape_manager_walk_take(const struct scrape_manager_walk *w)
{
	struct scraper *s = *w->scraper;

	*w->scraper = NULL;
	return s;
}

/* The target of the new set has the scraper that was the same target's in the old one, or its own.
 */
static void scrape_manager_sync_one(struct job_pool *p, struct scraper *s, const struct target *was,
	const struct scrape_manager_walk *now)
{
	struct scrape_manager *m = p->manager;

	if (!s)
		s = scraper_new(m->lanes[now->now->home % m->lanes_n], now->now);
	else if (was != now->now)
		scraper_change(s, now->now);
	if (!s)
		p->trouble = "out of memory for targets";
	*now->scraper = s;
}

/*
 * Makes the scrapers of the pool's set out of those of `old`, which may be NULL. follows: the set
 * was made from it, so chunks that are in both need no look. Where memory is missing a target is
 * left out, and the pool's `trouble` says so until all is well.
 */
static void scrape_manager_pool_sync(struct job_pool *p, const struct target_set *old, bool follows)
{
	struct scrape_manager_walk a = { .set = old }, b = { .set = p->set };
	const struct target *was;
	struct scraper *s;
	int c;

	mutex_assert_held(&p->manager->lock);
	assert(p->live && p->manager->lanes_n > 0);
	if (follows && !p->trouble) {
		a.without = p->set;
		b.without = old;
	}
	p->trouble = NULL;
	p->synced = true;
	scrape_manager_walk_next(&a);
	scrape_manager_walk_next(&b);
	while (a.now || b.now) {
		c = !a.now ? 1 : !b.now ? -1 : a.now == b.now ? 0 : target_cmp(a.now, b.now);
		was = c ? NULL : a.now;
		s = c > 0 ? NULL : scrape_manager_walk_take(&a);
		if (c < 0)
			scrape_manager_end_scraper(p->manager, s, a.now);
		else
			scrape_manager_sync_one(p, s, was, &b);
		if (c <= 0)
			scrape_manager_walk_next(&a);
		if (c >= 0)
			scrape_manager_walk_next(&b);
	}
	metric_add(&syncs, NULL, 1);
	scrape_manager_count_targets(p, p->set->n, p->set->elsewhere);
	scrape_manager_log_trouble(p);
}

/* follows: the set was made from the one that the pool has. */
static void scrape_manager_pool_take(struct job_pool *p, struct target_set *set, bool follows)
{
	struct target_set *old = p->set;

	mutex_assert_held(&p->manager->lock);
	p->set = set;
	if (p->live)
		scrape_manager_pool_sync(p, p->synced ? old : NULL, p->synced && follows);
	target_set_unref(old);
}

/* follows: the set that the pool has was made by the rule of shards in force. */
static void scrape_manager_expand(struct job_pool *p, struct groups *groups, bool follows)
{
	struct scrape_manager *m = p->manager;
	struct shard shard = shard_gate_get(&m->env.gate);
	int64_t began = clock_monotonic_ns();
	struct target_set *set, *before;
	enum err_code rc;
	struct err err;

	mutex_assert_held(&m->expanding);
	mutex_lock(&m->lock);
	before = follows && p->set ? target_set_ref(p->set) : NULL;
	mutex_unlock(&m->lock);
	rc = targets_expand(p->config, p->job, shard, groups, before, &set, &err);
	target_set_unref(before);
	shard_unref(&shard);
	if (rc) {
		log_error(
			"scrape", "job keeps its last targets", LOG_STR("job", p->job->job_name), LOG_E(&err));
		return;
	}
	mutex_lock(&m->lock);
	scrape_manager_pool_take(p, set, follows);
	mutex_unlock(&m->lock);
	metric_observe(&sync_seconds, NULL, (double)(clock_monotonic_ns() - began) / NS_PER_S);
}

/* On discovery's thread: relabelling thousands of targets delays no scrape. */
static void scrape_manager_on_groups(void *ctx, void *user, struct groups *groups)
{
	struct scrape_manager *m = ctx;

	mutex_lock(&m->expanding);
	scrape_manager_expand(user, groups, true);
	mutex_unlock(&m->expanding);
}

/* `applying` is held, so all pools are in the list; `expanding`, so no set is made by the old rule
 * and taken later. */
void scrape_manager_set_shard(struct scrape_manager *m, const struct shard *s)
{
	struct groups *groups;

	mutex_lock(&m->applying);
	mutex_lock(&m->expanding);
	shard_gate_set(&m->env.gate, s);
	for (size_t i = 0; i < m->n; i++) {
		mutex_lock(&m->lock);
		groups = m->pools[i]->set ? groups_ref(m->pools[i]->set->tree->groups) : NULL;
		mutex_unlock(&m->lock);
		if (groups)
			scrape_manager_expand(m->pools[i], groups, false);
		groups_unref(groups);
	}
	mutex_unlock(&m->expanding);
	mutex_unlock(&m->applying);
}

size_t scrape_manager_waiting(struct scrape_manager *m)
{
	size_t n = 0;

	mutex_lock(&m->lock);
	for (size_t i = 0; i < m->n; i++)
		n += m->pools[i]->set ? m->pools[i]->set->waiting : 0;
	mutex_unlock(&m->lock);
	return n;
}

/* ---- a new configuration ---- */

struct swap {
	struct job_pool **pools; /* in: the new ones, out: the old ones */
	size_t n;
};

static int scrape_manager_by_name(const void *a, const void *b)
{
	const struct job_pool *const *x = a, *const *y = b;

	return str_cmp((*x)->job->job_name, (*y)->job->job_name);
}

static void scrape_manager_pool_end(struct job_pool *p)
{
	struct scrape_manager_walk w = { .set = p->synced ? p->set : NULL };

	for (scrape_manager_walk_next(&w); w.now; scrape_manager_walk_next(&w))
		scrape_manager_end_scraper(p->manager, scrape_manager_walk_take(&w), w.now);
	p->synced = false;
	scrape_manager_count_targets(p, 0, 0);
}

/* Takes the scrapers over from the pool of the same name. */
static void scrape_manager_pool_inherit(struct job_pool *p, struct job_pool *old)
{
	p->logged = old->logged;
	p->counted = old->counted;
	p->elsewhere = old->elsewhere;
	old->counted = old->elsewhere = 0;
	if (p->set) {
		scrape_manager_pool_sync(p, old->synced ? old->set : NULL, false);
	} else { /* its set could not be made: the old targets stay */
		p->set = old->set;
		p->synced = old->synced;
		p->trouble = "out of memory for the new targets: the old targets are scraped";
		old->set = NULL;
	}
	old->synced = false;
}

/* Both lists are sorted by name. */
static void swap_pools(struct scrape_manager *m, struct swap *s)
{
	struct job_pool **old = m->pools, *p;
	size_t old_n = m->n, i = 0;

	mutex_assert_held(&m->lock);
	for (size_t k = 0; k < s->n; k++) {
		p = s->pools[k];
		p->live = true;
		while (i < old_n && scrape_manager_by_name(&old[i], &p) < 0)
			scrape_manager_pool_end(old[i++]);
		if (i < old_n && scrape_manager_by_name(&old[i], &p) == 0)
			scrape_manager_pool_inherit(p, old[i++]);
		else if (p->set)
			scrape_manager_pool_sync(p, NULL, false);
	}
	while (i < old_n)
		scrape_manager_pool_end(old[i++]);
	m->pools = s->pools;
	m->n = s->n;
	s->pools = old;
	s->n = old_n;
	metric_set(&pools_gauge, NULL, (double)m->n);
}

static void scrape_manager_pools_free(struct job_pool **pools, size_t n)
{
	for (size_t i = 0; i < n; i++)
		scrape_manager_pool_free(pools[i]);
	free(pools);
}

static enum err_code scrape_manager_pools_make(
	struct scrape_manager *m, struct config *c, struct swap *s, struct err *err)
{
	struct job_pool *p;

	s->pools = calloc(c->scrape_n ? c->scrape_n : 1, sizeof(struct job_pool *));
	for (size_t i = 0; s->pools && i < c->scrape_n; i++) {
		p = s->pools[i] = calloc(1, sizeof(*p));
		if (!p)
			return err_nomem(err, "jobs");
		s->n++;
		p->manager = m;
		p->config = config_ref(c);
		p->job = &c->scrape[i];
	}
	if (!s->pools)
		return err_nomem(err, "jobs");
	qsort(s->pools, s->n, sizeof(*s->pools), scrape_manager_by_name);
	return ERR_OK;
}

enum err_code scrape_manager_apply(struct scrape_manager *m, struct config *c, struct err *err)
{
	struct swap s = { 0 };
	struct sd_job *jobs = calloc(c->scrape_n ? c->scrape_n : 1, sizeof(*jobs));
	enum err_code rc;

	mutex_lock(&m->applying);
	rc = jobs ? scrape_manager_pools_make(m, c, &s, err) : err_nomem(err, "jobs");
	for (size_t i = 0; !rc && i < s.n; i++)
		jobs[i] = (struct sd_job){ s.pools[i]->job->job_name, &s.pools[i]->job->sd, s.pools[i] };
	if (!rc)
		rc = discovery_apply(m->discovery, jobs, s.n, err);
	if (!rc) {
		mutex_lock(&m->lock);
		swap_pools(m, &s);
		mutex_unlock(&m->lock);
	}
	mutex_unlock(&m->applying);
	scrape_manager_pools_free(s.pools, s.n);
	free(jobs);
	return rc;
}

/* ---- opening and closing ---- */

/* Leaves some descriptors for the database, the web server and files. */
static size_t scrape_manager_options_connections_max(const struct scrape_manager_options *o)
{
	size_t n = o->connections_max ? o->connections_max : CONNECTIONS_DEFAULT;
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
		n > limit.rlim_cur / 8 * 7)
		n = (size_t)limit.rlim_cur / 8 * 7;
	return n < CONNECTIONS_LEAST ? CONNECTIONS_LEAST : n;
}

static enum err_code scrape_manager_open_lanes(
	struct scrape_manager *m, const struct scrape_manager_options *o, struct err *err)
{
	size_t n = o->loops ? o->loops : cpu_count();
	struct lane_options lane = {
		.user_agent = o->user_agent ? o->user_agent : "Epimetheus/" EPI_VERSION,
	};
	enum err_code rc = ERR_OK;
	char name[16];

	if (n > LANES_MAX)
		n = LANES_MAX;
	lane.name = name;
	lane.connections_max = scrape_manager_options_connections_max(o) / n;
	while (!rc && m->lanes_n < n) {
		snprintf(name, sizeof(name), "scrape-%zu", m->lanes_n);
		rc = lane_open(&m->env, &lane, &m->lanes[m->lanes_n], err);
		m->lanes_n += !rc;
	}
	return rc;
}

void scrape_manager_close(struct scrape_manager *m)
{
	struct scrape_env *env;

	if (!m)
		return;
	env = &m->env;
	discovery_close(m->discovery);
	env->closing = true;
	for (size_t i = 0; i < m->n; i++)
		scrape_manager_pool_end(m->pools[i]);
	for (size_t i = 0; i < m->lanes_n; i++)
		lane_end(m->lanes[i]);
	pool_close(env->workers); /* decodes and appends the bodies that were fetched */
	mutex_lock(&env->lock);
	while (env->storing)
		cond_wait(&env->idle, &env->lock);
	mutex_unlock(&env->lock);
	for (size_t i = 0; i < m->lanes_n; i++)
		lane_close(m->lanes[i]);
	scrape_manager_pools_free(m->pools, m->n);
	symbol_cache_close(env->symbols);
	shard_gate_release(&env->gate);
	mutex_destroy(&m->lock);
	mutex_destroy(&m->expanding);
	mutex_destroy(&m->applying);
	mutex_destroy(&env->lock);
	cond_destroy(&env->idle);
	free(m->listen_address);
	free(m->external_url);
	free(m);
}

static enum err_code manager_init(
	struct scrape_manager *m, const struct scrape_manager_options *o, struct err *err)
{
	const struct discovery_options discovery = { .update = scrape_manager_on_groups, .ctx = m };
	enum err_code rc;

	assert(o->sink);
	m->env.sink = o->sink;
	m->listen_address = strdup(o->listen_address ? o->listen_address : "");
	m->external_url = strdup(o->external_url ? o->external_url : "");
	m->env.symbols = symbol_cache_open();
	m->env.symbols_timeout_ns = o->symbols_timeout_ns ? o->symbols_timeout_ns : SYMBOLS_TIMEOUT_NS;
	if (!m->listen_address || !m->external_url || !m->env.symbols)
		return err_nomem(err, "scrape manager");
	if ((rc = pool_open("scrape-worker", o->workers ? o->workers : cpu_count(), SCRAPE_QUEUED_MAX,
			 &m->env.workers, err)) ||
		(rc = scrape_manager_open_lanes(m, o, err)))
		return rc;
	return discovery_open(&discovery, &m->discovery, err);
}

enum err_code scrape_manager_open(
	const struct scrape_manager_options *o, struct scrape_manager **out, struct err *err)
{
	struct scrape_manager *m = calloc(1, sizeof(*m));
	enum err_code rc;

	if (!m)
		return err_nomem(err, "scrape manager");
	mutex_init(&m->lock);
	mutex_init(&m->expanding);
	mutex_init(&m->applying);
	shard_gate_init(&m->env.gate, &o->shard);
	mutex_init(&m->env.lock);
	cond_init(&m->env.idle);
	if ((rc = manager_init(m, o, err))) {
		scrape_manager_close(m);
		return rc;
	}
	*out = m;
	return ERR_OK;
}
