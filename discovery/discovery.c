/*
 * The thread and its jobs. All jobs of one configuration are a `generation`. A new one is built
 * beside the old one and replaces it only if nothing failed. Both take their sources from one
 * registry, so a source that is in both goes on.
 */
#include "discovery/discovery.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/net/http_client.h"
#include "base/net/loop.h"
#include "base/quote.h"
#include "discovery/sources/sources.h"

#define GATHER_NS (50 * NS_PER_MS) /* changes this close together are one delivery */
#define DELIVERY_MAX_NS NS_PER_S /* between two deliveries of a job that keeps changing */
#define DELIVERY_TIMES 20 /* so many times as long as the last one took, if that is less */

METRIC_COUNTER(updates, "epimetheus_discovery_updates_total", "Target sets delivered.", NULL);

struct discovery_job {
	struct discovery_generation *generation;
	struct str name;
	void *user;
	struct groups *statics;
	struct source_use *uses;
	size_t uses_n;
	struct groups **parts; /* scratch of discovery_job_set */
	struct groups *last; /* delivered last */
	struct event *timer; /* the next check for changes */
	int64_t due_ns; /* of the timer; 0: not set */
	int64_t delivered_ns; /* the last delivery of a change; 0: none yet */
	int64_t cost_ns; /* that it took, of a processor: a busy machine makes it no dearer */
	int64_t hold_ns; /* `last` stays until then or until all sources answered; 0: no hold */
};

struct discovery_generation {
	struct discovery *discovery;
	struct arena arena;
	struct discovery_job *jobs;
	size_t n;
	struct map by_name;
};

struct discovery {
	struct loop *loop;
	discovery_update_fn update;
	void *ctx;
	int64_t answer_ns;
	/* only the loop's thread */
	struct source_env env;
	struct sources *sources;
	struct discovery_generation *now;
};

/* ---- configuration ---- */

static const struct yaml_field sd_fields[] = { SD_CONFIG_FIELDS(0) };
const struct yaml_schema sd_configs_schema = {
	.name = "sd_configs",
	.size = sizeof(struct sd_configs),
	.fields = sd_fields,
	.fields_n = sizeof(sd_fields) / sizeof(sd_fields[0]),
};

enum err_code sd_static_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	struct sd_configs *out = field;
	const struct yaml_node *c, *t;
	enum err_code rc;

	if ((rc = target_groups_decode(ctx, n, "", &out->statics, &out->statics_n, err)))
		return rc;
	for (c = n->child; c; c = c->next)
		for (t = yaml_get(c, "targets") ? yaml_get(c, "targets")->child : NULL; t; t = t->next)
			if (str_find(t->text, STR("/")) >= 0)
				return yaml_err(t, err, ERR_INVALID, "%s is not a valid hostname%s",
					QUOTED(t->text),
					str_has_prefix(t->text,
						STR("unix:")) ?
						": a job's target names a socket in its label __unix_socket__" :
						"");
	return ERR_OK;
}

enum err_code sd_check_files(const struct sd_configs *c, struct err *err)
{
	const struct source_config *s;
	enum err_code rc;

	for (size_t i = 0; i < c->sources.n; i++) {
		s = &c->sources.v[i];
		if (s->ops->check && (rc = s->ops->check(s->config, err)))
			return rc;
	}
	return ERR_OK;
}

/* ---- a job's set ---- */

static enum err_code discovery_job_set(
	const struct discovery_job *j, struct groups **out, struct err *err)
{
	j->parts[0] = j->statics;
	for (size_t i = 0; i < j->uses_n; i++)
		j->parts[i + 1] = source_groups(j->uses[i].source);
	return groups_bundle(j->parts, j->uses_n + 1, out, err);
}

static bool discovery_job_is_complete(const struct discovery_job *j)
{
	for (size_t i = 0; i < j->uses_n; i++)
		if (!source_groups(j->uses[i].source))
			return false;
	return true;
}

static void discovery_job_deliver(struct discovery_job *j)
{
	struct discovery *d = j->generation->discovery;

	assert(loop_is_current(d->loop) && j->last);
	metric_add(&updates, NULL, 1);
	d->update(d->ctx, j->user, j->last);
}

/* ---- deliveries ---- */

static void discovery_job_check_at(struct discovery_job *j, int64_t due_ns, int64_t now)
{
	if (j->due_ns && j->due_ns <= due_ns)
		return;
	j->due_ns = due_ns;
	timer_after(j->timer, due_ns - now);
}

static void discovery_on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct discovery_job *j = ctx;
	int64_t now = clock_monotonic_ns(), began;
	struct groups *set;
	struct err err;

	j->due_ns = 0;
	if (j->hold_ns && !discovery_job_is_complete(j)) {
		if (j->hold_ns > now) {
			discovery_job_check_at(j, j->hold_ns, now);
			return;
		}
		log_warn("discovery",
			"new sources have not answered: the job continues without their targets",
			LOG_STR("job", j->name));
	}
	j->hold_ns = 0;
	if (discovery_job_set(j, &set, &err)) {
		log_warn("discovery", "job keeps its last targets", LOG_STR("job", j->name), LOG_E(&err));
		return;
	}
	if (groups_eq(set, j->last)) {
		groups_unref(set);
		return;
	}
	groups_unref(j->last);
	j->last = set;
	j->delivered_ns = now;
	began = clock_thread_ns();
	discovery_job_deliver(j);
	j->cost_ns = clock_thread_ns() - began;
}

/* A source of the job has published. */
static void discovery_on_changed(void *ctx)
{
	struct discovery_job *j = ctx;
	int64_t now = clock_monotonic_ns(), due = now + GATHER_NS;
	int64_t rest = j->cost_ns < DELIVERY_MAX_NS / DELIVERY_TIMES ? DELIVERY_TIMES * j->cost_ns :
																   DELIVERY_MAX_NS;

	if (j->delivered_ns && due < j->delivered_ns + rest)
		due = j->delivered_ns + rest;
	discovery_job_check_at(j, due, now);
}

/* ---- generations ---- */

static void discovery_generation_free(struct discovery_generation *g)
{
	struct discovery_job *j;

	if (!g)
		return;
	for (size_t i = 0; i < g->n; i++) {
		j = &g->jobs[i];
		for (size_t k = 0; k < j->uses_n; k++)
			sources_release(&j->uses[k]);
		if (j->timer)
			event_free(j->timer);
		groups_unref(j->statics);
		groups_unref(j->last);
	}
	map_release(&g->by_name);
	arena_release(&g->arena);
	free(g);
}

static bool discovery_is_named(const void *ctx, const void *key, uint32_t id)
{
	const struct discovery_generation *g = ctx;

	return str_eq(g->jobs[id].name, *(const struct str *)key);
}

static struct discovery_job *discovery_generation_find_job(
	const struct discovery_generation *g, struct str name)
{
	uint32_t id;

	if (!g)
		return NULL;
	id = map_find(&g->by_name, hash_bytes(name.ptr, name.len, 0), discovery_is_named, g, &name);
	return id == MAP_NONE ? NULL : &g->jobs[id];
}

static enum err_code discovery_job_init(struct discovery_job *j, struct discovery_generation *g,
	const struct sd_job *from, struct err *err)
{
	const struct source_configs *sources = &from->sd->sources;
	struct discovery *d = g->discovery;
	enum err_code rc;

	j->generation = g;
	j->user = from->user;
	j->name = str_dup(&g->arena, from->name);
	assert(from->sd && !discovery_generation_find_job(g, from->name)); /* names are distinct */
	j->timer = evtimer_new(d->env.base, discovery_on_timer, j);
	j->uses = arena_array(&g->arena, struct source_use, sources->n);
	j->parts = arena_array(&g->arena, struct groups *, sources->n + 1);
	if (!j->name.ptr || !j->timer || !j->uses || !j->parts ||
		!map_add(&g->by_name, hash_bytes(j->name.ptr, j->name.len, 0), (uint32_t)(j - g->jobs)))
		return err_nomem(err, "discovery");
	if ((rc = groups_pack(from->sd->statics, from->sd->statics_n, &j->statics, err)))
		return rc;
	for (size_t i = 0; i < sources->n; i++) {
		j->uses[i] = (struct source_use){ .changed = discovery_on_changed, .ctx = j };
		if ((rc = sources_acquire(d->sources, &sources->v[i], &j->uses[i], err)))
			return rc;
		j->uses_n++;
	}
	return ERR_OK;
}

/* The first delivery: its own set, or the former job's while a source has not answered. */
static enum err_code discovery_job_begin(
	struct discovery_job *j, const struct discovery_job *old, struct err *err)
{
	if (!old || discovery_job_is_complete(j))
		return discovery_job_set(j, &j->last, err);
	j->last = groups_ref(old->last);
	j->hold_ns = clock_monotonic_ns() + j->generation->discovery->answer_ns;
	return ERR_OK;
}

static enum err_code discovery_generation_init(struct discovery_generation *g,
	const struct sd_job *jobs, size_t n, const struct discovery_generation *before, struct err *err)
{
	enum err_code rc;

	map_init(&g->by_name);
	g->jobs = arena_array(&g->arena, struct discovery_job, n);
	if (!g->jobs)
		return err_nomem(err, "discovery");
	for (size_t i = 0; i < n; i++)
		if ((rc = discovery_job_init(&g->jobs[g->n++], g, &jobs[i], err)))
			return rc;
	for (size_t i = 0; i < n; i++)
		if ((rc = discovery_job_begin(
				 &g->jobs[i], discovery_generation_find_job(before, g->jobs[i].name), err)))
			return rc;
	return ERR_OK;
}

struct apply {
	struct discovery *discovery;
	const struct sd_job *jobs;
	size_t n;
	enum err_code rc;
	struct err *err;
};

static void sd_discovery_apply(void *ctx)
{
	struct apply *a = ctx;
	struct discovery *d = a->discovery;
	struct discovery_generation *g = calloc(1, sizeof(*g));
	struct discovery_job *j;

	if (!g) {
		a->rc = err_nomem(a->err, "discovery");
		return;
	}
	g->discovery = d;
	if ((a->rc = discovery_generation_init(g, a->jobs, a->n, d->now, a->err))) {
		discovery_generation_free(g);
		return;
	}
	discovery_generation_free(d->now);
	d->now = g;
	for (size_t i = 0; i < g->n; i++) {
		j = &g->jobs[i];
		if (j->hold_ns)
			discovery_job_check_at(j, j->hold_ns, clock_monotonic_ns());
		discovery_job_deliver(j);
	}
}

enum err_code discovery_apply(
	struct discovery *d, const struct sd_job *jobs, size_t n, struct err *err)
{
	struct apply a = { .discovery = d, .jobs = jobs, .n = n, .err = err };

	loop_call(d->loop, sd_discovery_apply, &a);
	return a.rc;
}

/* ---- opening and closing ---- */

struct discovery_start {
	struct discovery *discovery;
	enum err_code rc;
	struct err *err;
};

static void discovery_start(void *ctx)
{
	struct discovery_start *s = ctx;
	struct source_env *env = &s->discovery->env;
	struct http_client_options client = { .base = loop_base(s->discovery->loop),
		.dns_servers = env->dns_servers };

	env->base = client.base;
	if (!(s->rc = http_client_open(&client, &env->client, s->err)))
		s->rc = sources_open(env, &s->discovery->sources, s->err);
}

static void discovery_stop(void *ctx)
{
	struct discovery *d = ctx;

	discovery_generation_free(d->now);
	d->now = NULL;
	sources_close(d->sources);
	http_client_close(d->env.client);
}

enum err_code discovery_open(
	const struct discovery_options *o, struct discovery **out, struct err *err)
{
	struct discovery *d = calloc(1, sizeof(*d));
	struct discovery_start s = { .discovery = d, .err = err };
	enum err_code rc;

	assert(o->update);
	if (!d)
		return err_nomem(err, "discovery");
	d->update = o->update;
	d->ctx = o->ctx;
	d->env.dns_servers = o->dns_servers;
	d->answer_ns = o->answer_ns ? o->answer_ns : DISCOVERY_ANSWER_NS;
	if ((rc = loop_open("discovery", &d->loop, err))) {
		free(d);
		return rc;
	}
	loop_call(d->loop, discovery_start, &s);
	if (s.rc) {
		discovery_close(d);
		return s.rc;
	}
	*out = d;
	return ERR_OK;
}

void discovery_close(struct discovery *d)
{
	if (!d)
		return;
	loop_call(d->loop, discovery_stop, d);
	loop_close(d->loop);
	free(d);
}
