#include "discovery/sources/source.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "discovery/sources/sources.h"

#define BUCKETS 1024u /* a power of two */
#define LOGGED_MAX 16u /* messages that are remembered as logged */

METRIC_COUNTER(failures, "epimetheus_discovery_failures_total",
	"Sources of targets that could not be read.", "provider");
METRIC_GAUGE(at_work, "epimetheus_discovery_sources", "Open sources of targets.", "provider");
METRIC_GAUGE(in_trouble, "epimetheus_discovery_sources_failing",
	"Sources of targets whose last attempt failed.", "provider");
METRIC_GAUGE(targets, "epimetheus_discovery_targets", "Targets in the last sets of the sources.",
	"provider");
METRIC_GAUGE(groups_given, "epimetheus_discovery_target_groups",
	"Target groups in the last sets of the sources.", "provider");
METRIC_GAUGE(last_success, "epimetheus_discovery_last_success_timestamp_seconds",
	"When a source last answered.", "provider");

struct sd_source {
	LIST_ENTRY(sd_source) link;
	pthread_t thread; /* the only one that calls it; for assertions */
	const struct source_ops *ops;
	struct arena arena; /* identity */
	struct str identity;
	uint64_t hash;
	void *provider;
	struct groups *set; /* NULL: nothing published yet */
	LIST_HEAD(, source_use) uses; /* the last one closes it */
	bool failing;
	uint64_t logged[LOGGED_MAX]; /* hashes of messages that were logged since the last publish */
	size_t logged_n;
};

struct shared_by_kind {
	LIST_ENTRY(shared_by_kind) link;
	const struct source_ops *ops;
	void *shared;
};

struct sources {
	struct source_env env;
	pthread_t thread;
	LIST_HEAD(, sd_source) v[BUCKETS]; /* by hash of kind and identity */
	LIST_HEAD(, shared_by_kind)
	shared; /* of the kinds that were opened and have ops->open_shared */
};

enum err_code sources_open(const struct source_env *env, struct sources **out, struct err *err)
{
	struct sources *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err, "discovery");
	s->env = *env;
	s->thread = pthread_self();
	*out = s;
	return ERR_OK;
}

void sources_close(struct sources *s)
{
	struct shared_by_kind *k;

	if (!s)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		assert(LIST_EMPTY(&s->v[i]));
	while ((k = LIST_FIRST(&s->shared))) {
		LIST_REMOVE(k, link);
		k->ops->close_shared(k->shared);
		free(k);
	}
	free(s);
}

struct groups *source_groups(const struct sd_source *s)
{
	return s->set;
}

/* ---- for providers ---- */

static void sd_source_set_failing(struct sd_source *s, bool failing)
{
	metric_add(&in_trouble, s->ops->kind, (double)failing - (double)s->failing);
	s->failing = failing;
}

static void sd_source_replace_set(struct sd_source *s, struct groups *set)
{
	double t = set ? (double)groups_targets(set) : 0, n = set ? (double)groups_count(set) : 0;

	if (s->set) {
		t -= (double)groups_targets(s->set);
		n -= (double)groups_count(s->set);
	}
	metric_add(&targets, s->ops->kind, t);
	metric_add(&groups_given, s->ops->kind, n);
	groups_unref(s->set);
	s->set = set;
}

void source_publish(struct sd_source *s, struct groups *set)
{
	struct source_use *use;

	assert(set && pthread_equal(s->thread, pthread_self()));
	metric_set(&last_success, s->ops->kind, (double)clock_now_ns() / NS_PER_S);
	sd_source_set_failing(s, false);
	s->logged_n = 0;
	if (s->set && groups_eq(s->set, set)) {
		groups_unref(set);
		return;
	}
	sd_source_replace_set(s, set);
	LIST_FOREACH (use, &s->uses, link)
		use->changed(use->ctx);
}

void source_failed(struct sd_source *s, const struct err *why)
{
	uint64_t hash = hash_bytes(why->msg, strlen(why->msg), 0);

	assert(why->code && pthread_equal(s->thread, pthread_self()));
	metric_add(&failures, s->ops->kind, 1);
	sd_source_set_failing(s, true);
	for (size_t i = 0; i < s->logged_n && i < LOGGED_MAX; i++)
		if (s->logged[i] == hash)
			return;
	s->logged[s->logged_n++ % LOGGED_MAX] = hash;
	log_warn("discovery", "source of targets failed", LOG_S("provider", s->ops->kind), LOG_E(why));
}

/* ---- for jobs ---- */

static enum err_code sources_find_shared(
	struct sources *all, const struct source_ops *ops, void **out, struct err *err)
{
	struct shared_by_kind *k;
	enum err_code rc;

	*out = NULL;
	if (!ops->open_shared)
		return ERR_OK;
	LIST_FOREACH (k, &all->shared, link)
		if (k->ops == ops) {
			*out = k->shared;
			return ERR_OK;
		}
	if (!(k = calloc(1, sizeof(*k))))
		return err_nomem(err, "discovery");
	if ((rc = ops->open_shared(&all->env, &k->shared, err))) {
		free(k);
		return rc;
	}
	k->ops = ops;
	LIST_INSERT_HEAD(&all->shared, k, link);
	*out = k->shared;
	return ERR_OK;
}

static void source_free(struct sd_source *s)
{
	sd_source_set_failing(s, false);
	sd_source_replace_set(s, NULL);
	arena_release(&s->arena);
	free(s);
}

static enum err_code sd_sources_open(struct sources *all, const struct source_config *c,
	uint64_t hash, struct sd_source **out, struct err *err)
{
	struct sd_source *s = calloc(1, sizeof(*s));
	struct source_env env = all->env;
	enum err_code rc;

	if (!s)
		return err_nomem(err, "discovery");
	s->ops = c->ops;
	s->thread = all->thread;
	s->hash = hash;
	s->identity = str_dup(&s->arena, c->identity);
	if (!s->identity.ptr)
		rc = arena_fail(&s->arena, "discovery", err);
	else if (!(rc = sources_find_shared(all, c->ops, &env.shared, err)))
		rc = c->ops->open(&env, c->config, s, &s->provider, err);
	if (rc) {
		source_free(s);
		return rc;
	}
	metric_add(&at_work, c->ops->kind, 1);
	*out = s;
	return ERR_OK;
}

enum err_code sources_acquire(
	struct sources *all, const struct source_config *c, struct source_use *use, struct err *err)
{
	uint64_t hash = hash_bytes(c->identity.ptr, c->identity.len, (uintptr_t)c->ops);
	struct sd_source *s;
	enum err_code rc;

	assert(pthread_equal(all->thread, pthread_self()));
	assert(!use->source && use->changed && c->ops->open && c->ops->close);
	assert(!c->ops->open_shared == !c->ops->close_shared);
	LIST_FOREACH (s, &all->v[hash % BUCKETS], link)
		if (s->hash == hash && s->ops == c->ops && str_eq(s->identity, c->identity))
			break;
	if (!s) {
		if ((rc = sd_sources_open(all, c, hash, &s, err)))
			return rc;
		LIST_INSERT_HEAD(&all->v[hash % BUCKETS], s, link);
	}
	LIST_INSERT_HEAD(&s->uses, use, link);
	use->source = s;
	return ERR_OK;
}

void sources_release(struct source_use *use)
{
	struct sd_source *s = use->source;

	if (!s)
		return;
	assert(pthread_equal(s->thread, pthread_self()));
	use->source = NULL;
	LIST_REMOVE(use, link);
	if (!LIST_EMPTY(&s->uses))
		return;
	LIST_REMOVE(s, link);
	metric_add(&at_work, s->ops->kind, -1);
	s->ops->close(s->provider);
	source_free(s);
}
