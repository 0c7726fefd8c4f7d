/*
 * Pools: one per job. Discovery expands a job's groups into a target set on its own thread and
 * posts it; the loop's thread compares it with the scrapers it has, both in the order of
 * target_cmp.
 *
 * A new configuration makes new pools, which discovery fills while the old ones go on; then one
 * call on the loop's thread swaps them, and scrapers move over to the pool of their name. A set for
 * a pool that is not swapped in yet is kept for the swap; one for a pool that was swapped out is
 * dropped. As posts run in order, nothing else is needed for a pool to have seen the latest.
 */
#include "scrape/manager.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "discovery/loop.h"
#include "scrape/scraper.h"
#include "scrape/url.h"

#define CONNECTIONS_DEFAULT 16384u

METRIC_GAUGE(pools_gauge, "epimetheus_scrape_pools", "Jobs.", NULL);
METRIC_COUNTER(syncs, "epimetheus_scrape_pool_syncs_total", "Target sets taken over.", NULL);

enum pool_state { POOL_NEW, POOL_LIVE, POOL_GONE };

struct job_pool {
	atomic_uint refs;
	struct scrape_manager *manager;
	struct config *config; /* held */
	const struct scrape_config *job;
	/* the loop's thread */
	enum pool_state state;
	struct target_set *set; /* the latest; NULL: none came yet */
	struct scraper **scrapers; /* in the order of set->v */
	size_t n;
	const char *trouble; /* what kept targets from being scraped, or NULL */
	uint64_t told;       /* hash of the set's error in the log */
};

struct scrape_manager {
	struct scrape_env env;
	struct discovery *discovery;
	char *user_agent, *listen_address, *external_url;
	size_t connections_max;
	bool closing; /* the loop's thread */
	struct job_pool **pools; /* sorted by name; the loop's thread */
	size_t n;
};

/* ---- pools ---- */

static struct job_pool *pool_ref(struct job_pool *p)
{
	atomic_fetch_add(&p->refs, 1);
	return p;
}

static void pool_unref(struct job_pool *p)
{
	if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	target_set_unref(p->set);
	config_unref(p->config);
	free(p->scrapers);
	free(p);
}

/* Once per text: targets that come and go must not repeat it. */
static void tell_trouble(struct job_pool *p)
{
	uint64_t hash = hash_bytes(p->set->error.ptr, p->set->error.len, 0);

	if (p->set->error.len && hash != p->told)
		log_warn("scrape", "some targets are not scraped", LOG_STR("job", p->job->job_name),
			LOG_STR("err", p->set->error));
	p->told = hash;
}

/*
 * The scrapers of `old` (in order) become those of the pool's set. One for which there is no memory
 * is left out, and the pool says so.
 */
static void pool_sync(struct job_pool *p, struct scraper **old, size_t old_n)
{
	struct scraper **v = calloc(p->set->n ? p->set->n : 1, sizeof(struct scraper *));
	const struct target *t;
	struct err err;
	size_t i = 0, n = 0;
	int c;

	p->trouble = v ? NULL : "out of memory for targets";
	for (size_t k = 0; v && k < p->set->n; k++) {
		t = &p->set->v[k];
		c = -1;
		while (i < old_n && (c = target_cmp(old[i]->target, t)) < 0)
			scraper_stop(old[i++]);
		if (i < old_n && c == 0) {
			v[n] = old[i++];
			scraper_update(v[n++], p->set, t);
		} else if (scraper_start(&p->manager->env, p->set, t, &v[n], &err)) {
			p->trouble = "out of memory for targets";
		} else {
			n++;
		}
	}
	while (i < old_n)
		scraper_stop(old[i++]);
	free(p->scrapers);
	p->scrapers = v;
	p->n = n;
	metric_add(&syncs, NULL, 1);
	tell_trouble(p);
}

static void pool_take(struct job_pool *p, struct target_set *set)
{
	struct scraper **old = p->scrapers;
	size_t n = p->n;

	target_set_unref(p->set);
	p->set = set;
	if (p->state != POOL_LIVE)
		return;
	p->scrapers = NULL;
	p->n = 0;
	pool_sync(p, old, n);
	free(old);
}

struct set_message { /* from discovery's thread to the loop's */
	struct loop_work work;
	struct job_pool *pool;
	struct target_set *set;
};

static void on_set(void *ctx)
{
	struct set_message *m = ctx;

	if (m->pool->state == POOL_GONE)
		target_set_unref(m->set);
	else
		pool_take(m->pool, m->set);
	pool_unref(m->pool);
	free(m);
}

/* Discovery's thread: relabelling of thousands of targets keeps no scrape waiting. */
static void on_groups(void *ctx, void *user, struct groups *groups)
{
	struct scrape_manager *m = ctx;
	struct job_pool *p = user;
	struct set_message *msg = calloc(1, sizeof(*msg));
	struct err err;
	enum err_code rc;

	if (!msg)
		rc = err_set(&err, ERR_NOMEM, "out of memory for targets");
	else
		rc = targets_expand(p->config, p->job, groups, &msg->set, &err);
	if (rc) {
		log_error("scrape", "job keeps its last targets", LOG_STR("job", p->job->job_name),
			LOG_E(&err));
		free(msg);
		return;
	}
	msg->pool = pool_ref(p);
	loop_post(m->env.loop, &msg->work, on_set, msg);
}

/* ---- a new configuration ---- */

struct swap {
	struct scrape_manager *manager;
	struct job_pool **pools; /* in: new, out: old */
	size_t n;
};

static int by_name(const void *a, const void *b)
{
	const struct job_pool *const *x = a, *const *y = b;

	return str_cmp((*x)->job->job_name, (*y)->job->job_name);
}

static void pool_end(struct job_pool *p)
{
	p->state = POOL_GONE;
	for (size_t i = 0; i < p->n; i++)
		scraper_stop(p->scrapers[i]);
	p->n = 0;
}

/* Both lists are sorted by name. */
static void swap_pools(void *ctx)
{
	struct swap *s = ctx;
	struct scrape_manager *m = s->manager;
	struct job_pool **old = m->pools, *p;
	size_t old_n = m->n, i = 0;

	for (size_t k = 0; k < s->n; k++) {
		p = s->pools[k];
		p->state = POOL_LIVE;
		while (i < old_n && by_name(&old[i], &p) < 0)
			pool_end(old[i++]);
		if (i < old_n && by_name(&old[i], &p) == 0) {
			old[i]->state = POOL_GONE;
			if (p->set) {
				pool_sync(p, old[i]->scrapers, old[i]->n);
				old[i]->n = 0;
			} else { /* its set could not be made: what runs goes on */
				p->set = old[i]->set;
				p->scrapers = old[i]->scrapers;
				p->n = old[i]->n;
				p->trouble = "no memory for its new targets: the old ones go on";
				old[i]->set = NULL;
				old[i]->scrapers = NULL;
				old[i]->n = 0;
			}
			i++;
		} else if (p->set) {
			pool_sync(p, NULL, 0);
		}
	}
	while (i < old_n)
		pool_end(old[i++]);
	m->pools = s->pools;
	m->n = s->n;
	s->pools = old;
	s->n = old_n;
	metric_set(&pools_gauge, NULL, (double)m->n);
}

static void pools_free(struct job_pool **pools, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pool_unref(pools[i]);
	free(pools);
}

static enum err_code pools_make(struct scrape_manager *m, struct config *c, struct swap *s,
	struct err *err)
{
	struct job_pool *p;

	s->pools = calloc(c->scrape_n ? c->scrape_n : 1, sizeof(struct job_pool *));
	for (size_t i = 0; s->pools && i < c->scrape_n; i++) {
		p = s->pools[i] = calloc(1, sizeof(*p));
		if (!p)
			return err_set(err, ERR_NOMEM, "out of memory for jobs");
		s->n++;
		atomic_init(&p->refs, 1);
		p->manager = m;
		p->config = config_ref(c);
		p->job = &c->scrape[i];
	}
	if (!s->pools)
		return err_set(err, ERR_NOMEM, "out of memory for jobs");
	qsort(s->pools, s->n, sizeof(*s->pools), by_name);
	return ERR_OK;
}

enum err_code scrape_manager_apply(struct scrape_manager *m, struct config *c, struct err *err)
{
	struct swap s = { .manager = m };
	struct sd_job *jobs = calloc(c->scrape_n ? c->scrape_n : 1, sizeof(*jobs));
	enum err_code rc;

	rc = jobs ? pools_make(m, c, &s, err) : err_set(err, ERR_NOMEM, "out of memory for jobs");
	for (size_t i = 0; !rc && i < s.n; i++)
		jobs[i] = (struct sd_job){ s.pools[i]->job->job_name, &s.pools[i]->job->sd, s.pools[i] };
	if (!rc)
		rc = discovery_apply(m->discovery, jobs, s.n, err);
	if (!rc)
		loop_call(m->env.loop, swap_pools, &s);
	pools_free(s.pools, s.n);
	free(jobs);
	return rc;
}

/* ---- opening and closing ---- */

struct client_open {
	struct scrape_manager *manager;
	enum err_code rc;
	struct err *err;
};

static void client_open(void *ctx)
{
	struct client_open *c = ctx;
	struct scrape_manager *m = c->manager;
	struct http_client_options o = {
		.base = loop_base(m->env.loop),
		.connections_max = m->connections_max,
		.user_agent = m->user_agent,
	};

	c->rc = http_client_open(&o, &m->env.client, c->err);
}

static void stop_scraping(void *ctx)
{
	struct scrape_manager *m = ctx;

	for (size_t i = 0; i < m->n; i++)
		pool_end(m->pools[i]);
	http_client_close(m->env.client);
	m->env.client = NULL;
}

void scrape_manager_close(struct scrape_manager *m)
{
	struct scrape_env *env;

	if (!m)
		return;
	env = &m->env;
	discovery_close(m->discovery);
	if (env->client)
		loop_call(env->loop, stop_scraping, m);
	pool_close(env->workers); /* bodies that were fetched are decoded and appended */
	mutex_lock(&env->lock);
	while (env->storing)
		cond_wait(&env->idle, &env->lock);
	mutex_unlock(&env->lock);
	loop_close(env->loop);
	pools_free(m->pools, m->n);
	exclusive_close(env->exclusive);
	mutex_destroy(&env->lock);
	cond_destroy(&env->idle);
	free(m->user_agent);
	free(m->listen_address);
	free(m->external_url);
	free(m);
}

static enum err_code manager_init(struct scrape_manager *m, const struct scrape_manager_options *o,
	struct err *err)
{
	const struct discovery_options discovery = { .update = on_groups, .ctx = m };
	struct client_open c = { .manager = m, .err = err };
	enum err_code rc;

	m->env.sink = o->sink;
	m->connections_max = o->connections_max ? o->connections_max : CONNECTIONS_DEFAULT;
	m->user_agent = strdup(o->user_agent ? o->user_agent : "Epimetheus/" EPI_VERSION);
	m->listen_address = strdup(o->listen_address ? o->listen_address : "");
	m->external_url = strdup(o->external_url ? o->external_url : "");
	m->env.exclusive = exclusive_open();
	if (!m->user_agent || !m->listen_address || !m->external_url || !m->env.exclusive)
		return err_set(err, ERR_NOMEM, "out of memory for the scrape manager");
	if ((rc = pool_open("scrape-worker", o->workers ? o->workers : cpu_count(), SCRAPE_QUEUED_MAX,
		     &m->env.workers, err)) ||
	    (rc = loop_open("scrape", &m->env.loop, err)))
		return rc;
	loop_call(m->env.loop, client_open, &c);
	return c.rc ? c.rc : discovery_open(&discovery, &m->discovery, err);
}

enum err_code scrape_manager_open(const struct scrape_manager_options *o,
	struct scrape_manager **out, struct err *err)
{
	struct scrape_manager *m = calloc(1, sizeof(*m));
	enum err_code rc;

	if (!m)
		return err_set(err, ERR_NOMEM, "out of memory for the scrape manager");
	mutex_init(&m->env.lock);
	cond_init(&m->env.idle);
	if ((rc = manager_init(m, o, err))) {
		scrape_manager_close(m);
		return rc;
	}
	*out = m;
	return ERR_OK;
}

/* ---- what is shown ---- */

struct snapshot {
	struct scrape_manager *manager;
	const char *pool;
	struct arena *arena;
	struct scrape_snapshot *out;
	bool failed;
};

static struct str dup(struct snapshot *s, struct str text)
{
	struct str copy = str_dup(s->arena, text);

	if (!copy.ptr) {
		s->failed = true;
		return STR("");
	}
	return copy;
}

static struct labels dup_labels(struct snapshot *s, struct labels ls)
{
	struct labels copy = labels_dup(s->arena, ls);

	if (copy.n && !copy.v) {
		s->failed = true;
		return (struct labels){ 0 };
	}
	return copy;
}

static struct labels without_name(struct snapshot *s, struct labels ls)
{
	struct labels_builder b;
	struct labels out = { 0 };

	labels_builder_init(&b, s->arena, ls);
	labels_builder_del(&b, STR(LABEL_NAME));
	if (labels_builder_build(&b, &out, NULL))
		s->failed = true;
	return out;
}

static void show_target(struct snapshot *s, const struct job_pool *p, const struct scraper *from,
	struct target_info *to)
{
	const struct scrape_manager *m = s->manager;
	struct labels labels = dup_labels(s, from->target->labels);
	struct buf global = { 0 };

	*to = (struct target_info){
		.discovered = dup_labels(s, from->target->discovered),
		.labels = without_name(s, labels),
		.profile = dup(s, from->target->name),
		.pool = dup(s, p->job->job_name),
		.scrape_url = dup(s, from->target->url),
		.last_error = dup(s, str_of(from->last_error ? from->last_error : "")),
		.last_scrape_ns = from->last_scrape_ns,
		.last_duration_ns = from->last_duration_ns,
		.interval_ns = from->target->interval_ns,
		.timeout_ns = from->target->timeout_ns,
		.health = from->health,
		.scrapes = from->scrapes,
		.failures = from->failures,
		.skipped = from->skipped,
		.last_samples = from->last_samples,
		.last_bytes = from->last_bytes,
	};
	url_print_global(&global, from->target->url, str_of(m->listen_address),
		str_of(m->external_url));
	to->global_url = dup(s, buf_failed(&global) ? from->target->url : buf_str(&global));
	buf_release(&global);
}

static bool wanted(const struct snapshot *s, const struct job_pool *p)
{
	return !s->pool || str_is(p->job->job_name, s->pool);
}

static void show_pool(struct snapshot *s, const struct job_pool *p)
{
	struct scrape_snapshot *out = s->out;
	struct pool_info *info = &out->pools[out->pools_n++];
	struct str trouble = str_of(p->trouble ? p->trouble : "");

	*info = (struct pool_info){
		.name = dup(s, p->job->job_name),
		.active = p->n,
		.dropped = p->set ? p->set->dropped_total : 0,
		.error = dup(s, trouble.len || !p->set ? trouble : p->set->error),
	};
	for (size_t i = 0; i < p->n; i++)
		show_target(s, p, p->scrapers[i], &out->active[out->active_n++]);
	for (size_t i = 0; p->set && i < p->set->dropped_n; i++)
		out->dropped[out->dropped_n++] = (struct dropped_target){
			.discovered = dup_labels(s, p->set->dropped[i]),
			.pool = info->name,
		};
}

static void take_snapshot(void *ctx)
{
	struct snapshot *s = ctx;
	const struct scrape_manager *m = s->manager;
	size_t pools = 0, active = 0, dropped = 0;

	for (size_t i = 0; i < m->n; i++) {
		if (!wanted(s, m->pools[i]))
			continue;
		pools++;
		active += m->pools[i]->n;
		dropped += m->pools[i]->set ? m->pools[i]->set->dropped_n : 0;
	}
	s->out->pools = arena_array(s->arena, struct pool_info, pools);
	s->out->active = arena_array(s->arena, struct target_info, active);
	s->out->dropped = arena_array(s->arena, struct dropped_target, dropped);
	if (!s->out->pools || !s->out->active || !s->out->dropped) {
		s->failed = true;
		return;
	}
	for (size_t i = 0; i < m->n && !s->failed; i++)
		if (wanted(s, m->pools[i]))
			show_pool(s, m->pools[i]);
}

enum err_code scrape_manager_snapshot(struct scrape_manager *m, const char *pool, struct arena *a,
	struct scrape_snapshot *out, struct err *err)
{
	struct scrape_snapshot made = { 0 };
	struct snapshot s = { .manager = m, .pool = pool, .arena = a, .out = &made };

	loop_call(m->env.loop, take_snapshot, &s);
	if (s.failed)
		return arena_fail(a, "list of targets", err);
	*out = made;
	return ERR_OK;
}
