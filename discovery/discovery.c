/*
 * The thread and its jobs. All jobs of one configuration are a `generation`, with one inotify
 * descriptor. A new one is built beside the old one, reads its sources (with what the old one knew
 * as the fallback for files that are broken just now), and takes its place only when nothing
 * failed.
 */
#include "discovery/discovery.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/quote.h"
#include "discovery/file_sd.h"
#include "discovery/loop.h"

#define SET_BYTES_MAX (512u << 20) /* of one job's groups */
/* An editor or a ConfigMap changes several entries at once: they are read together. */
#define SETTLE_NS (50 * NS_PER_MS)
/* How soon a directory that could not be watched is tried again. */
#define UNWATCHED_RETRY_NS (5 * NS_PER_S)
#define WATCH_EVENTS \
	(IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | \
	 IN_MOVE_SELF)

METRIC_GAUGE(watches_failed, "epimetheus_discovery_file_unwatched_directories",
	"Directories of target files that inotify does not watch.", NULL);
METRIC_COUNTER(updates, "epimetheus_discovery_updates_total", "Target sets handed over.", NULL);

struct provider {
	struct file_sd *files;
	struct event *timer;
	struct job *job;
	int *watches; /* inotify's number for each of its directories, or -1 */
	bool changed; /* an event came; read when things settled */
};

struct job {
	struct generation *generation;
	struct str name;
	void *user;
	struct target_group *statics;
	size_t statics_n;
	struct provider *providers;
	size_t providers_n;
	struct groups *last; /* delivered */
};

struct generation {
	struct discovery *discovery;
	struct arena arena;
	struct job *jobs;
	size_t n;
	int inotify; /* -1: none to be had */
	struct event *notified, *settle;
};

struct discovery {
	struct loop *loop;
	discovery_update_fn update;
	void *ctx;
	struct generation *now; /* the loop's thread */
};

/* ---- static ---- */

enum err_code sd_static_decode(struct yaml_ctx *ctx, const struct yaml_node *n, void *field,
	struct err *err)
{
	struct sd_configs *out = field;
	const struct yaml_node *c, *t;
	enum err_code rc;

	if ((rc = target_groups_decode(ctx, n, "", &out->statics, &out->statics_n, err)))
		return rc;
	for (c = n->child; c; c = c->next)
		for (t = yaml_get(c, "targets") ? yaml_get(c, "targets")->child : NULL; t; t = t->next)
			if (str_find(t->text, STR("/")) >= 0)
				return yaml_err(t, err, ERR_INVALID, "%s is not a valid hostname",
					QUOTED(t->text));
	return ERR_OK;
}

/* ---- a job's set ---- */

static enum err_code add_groups(struct groups *set, const struct target_group *v, size_t n,
	struct err *err)
{
	enum err_code rc;

	for (size_t i = 0; i < n; i++)
		if ((rc = target_group_dup(&set->arena, &v[i], &set->v[set->n++], err)))
			return rc;
	return ERR_OK;
}

static enum err_code job_set(const struct job *j, struct groups **out, struct err *err)
{
	struct groups *set = groups_new(SET_BYTES_MAX);
	const struct groups *doc;
	size_t n = j->statics_n;
	enum err_code rc;

	if (!set)
		return err_set(err, ERR_NOMEM, "out of memory for targets");
	for (size_t i = 0; i < j->providers_n; i++)
		for (size_t k = 0; (doc = file_sd_document(j->providers[i].files, k)); k++)
			n += doc->n;
	set->v = arena_array(&set->arena, struct target_group, n);
	rc = set->v ? add_groups(set, j->statics, j->statics_n, err) :
		      arena_fail(&set->arena, "targets", err);
	for (size_t i = 0; i < j->providers_n && !rc; i++)
		for (size_t k = 0; !rc && (doc = file_sd_document(j->providers[i].files, k)); k++)
			rc = add_groups(set, doc->v, doc->n, err);
	if (rc) {
		groups_unref(set);
		return rc;
	}
	*out = set;
	return ERR_OK;
}

static void job_deliver(struct job *j)
{
	struct discovery *d = j->generation->discovery;

	metric_add(&updates, NULL, 1);
	d->update(d->ctx, j->user, j->last);
}

static void job_changed(struct job *j)
{
	struct groups *set;
	struct err err;

	if (job_set(j, &set, &err)) {
		log_warn("discovery", "job keeps its last targets", LOG_STR("job", j->name), LOG_E(&err));
		return;
	}
	if (groups_eq(set, j->last)) {
		groups_unref(set);
		return;
	}
	groups_unref(j->last);
	j->last = set;
	job_deliver(j);
}

/* ---- when to read again ---- */

static void timer_set(struct event *e, int64_t ns)
{
	struct timeval tv = { .tv_sec = ns / NS_PER_S, .tv_usec = ns % NS_PER_S / NS_PER_US };

	event_add(e, &tv); /* cannot fail: the event is pending on a timeout alone */
}

/* Watches what is not watched yet; a directory may have appeared only now. */
static void provider_watch(struct provider *p)
{
	const char *dir;

	for (size_t i = 0; (dir = file_sd_dir(p->files, i)); i++)
		if (p->watches[i] < 0 && p->job->generation->inotify >= 0)
			p->watches[i] = inotify_add_watch(p->job->generation->inotify, dir,
				WATCH_EVENTS | IN_ONLYDIR);
}

static size_t provider_unwatched(const struct provider *p)
{
	size_t n = 0;

	for (size_t i = 0; file_sd_dir(p->files, i); i++)
		n += p->watches[i] < 0;
	return n;
}

/* First the watch, then the reading: a change in between is noticed. */
static void provider_read(struct provider *p)
{
	int64_t next = file_sd_refresh_interval_ns(p->files);
	size_t unwatched = 0;

	provider_watch(p);
	file_sd_refresh(p->files);
	p->changed = false;
	for (size_t i = 0; i < p->job->generation->n; i++)
		for (size_t k = 0; k < p->job->generation->jobs[i].providers_n; k++)
			unwatched += provider_unwatched(&p->job->generation->jobs[i].providers[k]);
	metric_set(&watches_failed, NULL, (double)unwatched);
	if (provider_unwatched(p) && next > UNWATCHED_RETRY_NS)
		next = UNWATCHED_RETRY_NS;
	timer_set(p->timer, next);
}

static void on_refresh(evutil_socket_t fd, short what, void *ctx)
{
	struct provider *p = ctx;

	provider_read(p);
	job_changed(p->job);
}

static void on_settled(evutil_socket_t fd, short what, void *ctx)
{
	struct generation *g = ctx;
	bool read;

	for (size_t i = 0; i < g->n; i++) {
		read = false;
		for (size_t k = 0; k < g->jobs[i].providers_n; k++)
			if (g->jobs[i].providers[k].changed) {
				provider_read(&g->jobs[i].providers[k]);
				read = true;
			}
		if (read)
			job_changed(&g->jobs[i]);
	}
}

static bool provider_notice(struct provider *p, const struct inotify_event *e)
{
	struct str name = e->len ? str_of(e->name) : STR("");
	bool noticed = false;

	for (size_t i = 0; file_sd_dir(p->files, i); i++) {
		if (e->mask & IN_Q_OVERFLOW) {
			noticed = true;
		} else if (p->watches[i] == e->wd) {
			if (e->mask & (IN_IGNORED | IN_MOVE_SELF))
				p->watches[i] = -1; /* the directory went away, and may come again */
			noticed |= e->len == 0 || file_sd_concerns(p->files, i, name);
		}
	}
	p->changed |= noticed;
	return noticed;
}

static void on_notified(evutil_socket_t fd, short what, void *ctx)
{
	struct generation *g = ctx;
	_Alignas(struct inotify_event) char buf[16384];
	const struct inotify_event *e;
	bool noticed = false;
	ssize_t n = read(fd, buf, sizeof(buf));

	for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof(*e) + e->len)) {
		e = (const struct inotify_event *)(const void *)(buf + at);
		for (size_t i = 0; i < g->n; i++)
			for (size_t k = 0; k < g->jobs[i].providers_n; k++)
				noticed |= provider_notice(&g->jobs[i].providers[k], e);
	}
	if (noticed && !event_pending(g->settle, EV_TIMEOUT, NULL))
		timer_set(g->settle, SETTLE_NS);
}

/* ---- generations ---- */

static void generation_free(struct generation *g)
{
	struct job *j;

	if (!g)
		return;
	for (size_t i = 0; i < g->n; i++) {
		j = &g->jobs[i];
		for (size_t k = 0; k < j->providers_n; k++) {
			if (j->providers[k].timer)
				event_free(j->providers[k].timer);
			file_sd_close(j->providers[k].files);
		}
		groups_unref(j->last);
	}
	if (g->settle)
		event_free(g->settle);
	if (g->notified)
		event_free(g->notified);
	if (g->inotify >= 0)
		close(g->inotify);
	arena_release(&g->arena);
	free(g);
}

static const struct job *find_job(const struct generation *g, struct str name)
{
	for (size_t i = 0; g && i < g->n; i++)
		if (str_eq(g->jobs[i].name, name))
			return &g->jobs[i];
	return NULL;
}

static enum err_code provider_init(struct provider *p, struct job *j,
	const struct file_sd_config *c, struct err *err)
{
	struct generation *g = j->generation;
	enum err_code rc;

	p->job = j;
	if ((rc = file_sd_open(c, &p->files, err)))
		return rc;
	p->watches = arena_array(&g->arena, int, c->files_n);
	p->timer = evtimer_new(loop_base(g->discovery->loop), on_refresh, p);
	if (!p->watches || !p->timer)
		return err_set(err, ERR_NOMEM, "out of memory for discovery");
	for (size_t i = 0; i < c->files_n; i++)
		p->watches[i] = -1;
	return ERR_OK;
}

static enum err_code job_init(struct job *j, struct generation *g, const struct sd_job *from,
	const struct generation *before, struct err *err)
{
	const struct job *old = find_job(before, from->name);
	enum err_code rc;

	j->generation = g;
	j->user = from->user;
	j->name = str_dup(&g->arena, from->name);
	j->statics = arena_array(&g->arena, struct target_group, from->sd->statics_n);
	j->providers = arena_array(&g->arena, struct provider, from->sd->files_n);
	if (!j->name.ptr || !j->statics || !j->providers)
		return arena_fail(&g->arena, "discovery", err);
	for (size_t i = 0; i < from->sd->statics_n; i++, j->statics_n++)
		if ((rc = target_group_dup(&g->arena, &from->sd->statics[i], &j->statics[i], err)))
			return rc;
	for (size_t i = 0; i < from->sd->files_n; i++) {
		rc = provider_init(&j->providers[j->providers_n++], j, &from->sd->files[i], err);
		if (rc)
			return rc;
		for (size_t k = 0; old && k < old->providers_n; k++)
			file_sd_inherit(j->providers[i].files, old->providers[k].files);
	}
	return ERR_OK;
}

static enum err_code generation_init(struct generation *g, const struct sd_job *jobs, size_t n,
	const struct generation *before, struct err *err)
{
	struct event_base *base = loop_base(g->discovery->loop);
	enum err_code rc;

	g->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (g->inotify < 0)
		log_warn("discovery", "no inotify: files are read at their refresh_interval only",
			LOG_I("errno", errno));
	g->jobs = arena_array(&g->arena, struct job, n);
	g->settle = evtimer_new(base, on_settled, g);
	if (g->inotify >= 0)
		g->notified = event_new(base, g->inotify, EV_READ | EV_PERSIST, on_notified, g);
	if (!g->jobs || !g->settle ||
	    (g->inotify >= 0 && (!g->notified || event_add(g->notified, NULL))))
		return err_set(err, ERR_NOMEM, "out of memory for discovery");
	for (size_t i = 0; i < n; i++)
		if ((rc = job_init(&g->jobs[g->n++], g, &jobs[i], before, err)))
			return rc;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < g->jobs[i].providers_n; k++)
			provider_read(&g->jobs[i].providers[k]);
		if ((rc = job_set(&g->jobs[i], &g->jobs[i].last, err)))
			return rc;
	}
	return ERR_OK;
}

struct apply {
	struct discovery *discovery;
	const struct sd_job *jobs;
	size_t n;
	enum err_code rc;
	struct err *err;
};

static void apply(void *ctx)
{
	struct apply *a = ctx;
	struct discovery *d = a->discovery;
	struct generation *g = calloc(1, sizeof(*g));

	if (!g) {
		a->rc = err_set(a->err, ERR_NOMEM, "out of memory for discovery");
		return;
	}
	g->discovery = d;
	g->inotify = -1;
	if ((a->rc = generation_init(g, a->jobs, a->n, d->now, a->err))) {
		generation_free(g);
		return;
	}
	generation_free(d->now);
	d->now = g;
	for (size_t i = 0; i < g->n; i++)
		job_deliver(&g->jobs[i]);
}

enum err_code discovery_apply(struct discovery *d, const struct sd_job *jobs, size_t n,
	struct err *err)
{
	struct apply a = { .discovery = d, .jobs = jobs, .n = n, .err = err };

	loop_call(d->loop, apply, &a);
	return a.rc;
}

enum err_code discovery_open(const struct discovery_options *o, struct discovery **out,
	struct err *err)
{
	struct discovery *d = calloc(1, sizeof(*d));
	enum err_code rc;

	if (!d)
		return err_set(err, ERR_NOMEM, "out of memory for discovery");
	d->update = o->update;
	d->ctx = o->ctx;
	if ((rc = loop_open("discovery", &d->loop, err))) {
		free(d);
		return rc;
	}
	*out = d;
	return ERR_OK;
}

static void stop(void *ctx)
{
	struct discovery *d = ctx;

	generation_free(d->now);
	d->now = NULL;
}

void discovery_close(struct discovery *d)
{
	if (!d)
		return;
	loop_call(d->loop, stop, d);
	loop_close(d->loop);
	free(d);
}
