/*
 * notifier_send puts alerts into the queues. The loop sends them, one request at a time for each
 * Alertmanager. There are no retries: the rule sends an alert that still fires again, with a later
 * end.
 */
#include "promql/rules/notify/notifier.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hidden.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/net/loop.h"
#include "promql/rules/notify/notifier_internal.h"

#define DRAIN_NS (5 * NS_PER_S)
#define ANSWER_BYTES_MAX (1u << 20)

METRIC_GAUGE(discovered, "epimetheus_notifications_alertmanagers_discovered",
	"Alertmanagers that alerts are sent to.", NULL);
METRIC_GAUGE(capacity, "epimetheus_notifications_queue_capacity",
	"Alerts that may wait for one Alertmanager.", NULL);

struct notifier {
	size_t queue_max;
	struct loop *loop;
	struct http_client *client; /* the loop's thread */
	struct discovery *discovery;
	struct mutex lock; /* guards all below and what they point to */
	struct cond idle; /* nothing waits and nothing is under way */
	struct notifier_generation *now; /* changed on the loop's thread */
	struct loop_work work;
	bool posted; /* work is queued on the loop */
	bool closing; /* no more requests */
};

/* ---- the loop's thread ---- */

static bool notifier_is_idle(const struct notifier *n)
{
	const struct alertmanager *m;

	mutex_assert_held(&n->lock);
	for (size_t i = 0; n->now && i < n->now->sets_n; i++)
		LIST_FOREACH (m, &n->now->sets[i].active, link)
			if (m->waiting_n || m->batch_n)
				return false;
	return true;
}

static void notifier_send_next(struct notifier *n, struct alertmanager *a);

static void notifier_on_answer(void *ctx, const struct http_response *res)
{
	struct alertmanager *m = ctx;
	struct notifier *n = m->set->generation->notifier;
	struct err err = res->err;
	enum err_code rc = res->rc;

	if (!rc && res->status / 100 != 2)
		rc = err_set(&err, ERR_UNAVAILABLE, "bad response status %d " STR_FMT, res->status,
			STR_ARG(res->reason));
	mutex_lock(&n->lock);
	assert(m->request && m->batch_n);
	m->request = NULL;
	alertmanager_end_batch(m, rc ? &err : NULL);
	notifier_send_next(n, m);
	if (notifier_is_idle(n))
		cond_broadcast(&n->idle);
	mutex_unlock(&n->lock);
}

/* Sends the next batch. Batches that cannot be sent at all fail here, one after the other. */
static void notifier_send_next(struct notifier *n, struct alertmanager *a)
{
	static const struct label json[] = { { { "Content-Type", 12 }, { "application/json", 16 } } };
	struct http_request_options o = {
		.method = "POST",
		.url = str_of(a->url),
		.config = &a->set->config->http,
		.headers = { json, 1 },
		.timeout_ns = a->set->config->timeout_ns,
		.body_size_max = ANSWER_BYTES_MAX,
	};
	struct buf body = { 0 };
	struct err err;
	enum err_code rc;

	mutex_assert_held(&n->lock);
	while (!n->closing && !a->request && a->waiting_n) {
		buf_clear(&body);
		alertmanager_take_batch(a, &body);
		o.body = buf_str(&body);
		if (buf_failed(&body))
			rc = err_nomem(&err, "alerts");
		else
			rc = http_client_send(n->client, &o, notifier_on_answer, a, &a->request, &err);
		if (rc)
			alertmanager_end_batch(a, &err);
	}
	buf_release(&body);
}

static void notifier_recall(struct alertmanager *a)
{
	if (!a->request)
		return;
	http_request_cancel(a->request);
	a->request = NULL;
	alertmanager_requeue(a);
}

static void notifier_free_all(struct alertmanagers *gone)
{
	struct alertmanager *m;

	while ((m = LIST_FIRST(gone))) {
		notifier_recall(m);
		LIST_REMOVE(m, link);
		alertmanager_free(m);
	}
}

static void notifier_show_discovered(const struct notifier *n)
{
	const struct alertmanager *m;
	double count = 0;

	mutex_assert_held(&n->lock);
	for (size_t i = 0; i < n->now->sets_n; i++)
		LIST_FOREACH (m, &n->now->sets[i].active, link)
			count++;
	metric_set(&discovered, NULL, count);
}

static void notifier_look(void *ctx)
{
	struct notifier *n = ctx;
	struct alertmanagers gone;
	struct alertmanager *m;

	LIST_INIT(&gone);
	mutex_lock(&n->lock);
	n->posted = false;
	for (size_t i = 0; n->now && i < n->now->sets_n; i++) {
		if (n->now->sets[i].changed) {
			alertmanagers_rebuild(&n->now->sets[i], NULL, &gone);
			notifier_show_discovered(n);
		}
		LIST_FOREACH (m, &n->now->sets[i].active, link)
			notifier_send_next(n, m);
	}
	notifier_free_all(&gone);
	if (notifier_is_idle(n))
		cond_broadcast(&n->idle);
	mutex_unlock(&n->lock);
}

struct notifier_taking {
	struct notifier *n;
	struct notifier_generation *fresh, *old;
};

/*
 * Requests under way use the old configuration: they are canceled and sent again. An Alertmanager
 * that gets an alert twice merges it.
 */
static void notifier_take_generation(void *ctx)
{
	struct notifier_taking *t = ctx;
	struct notifier *n = t->n;
	struct alertmanagers gone;
	struct alertmanager *m;

	LIST_INIT(&gone);
	mutex_lock(&n->lock);
	t->old = n->now;
	for (size_t i = 0; t->old && i < t->old->sets_n; i++)
		LIST_FOREACH (m, &t->old->sets[i].active, link)
			notifier_recall(m);
	n->now = t->fresh;
	for (size_t i = 0; i < n->now->sets_n; i++) {
		alertmanagers_rebuild(&n->now->sets[i], t->old, &gone);
		LIST_FOREACH (m, &n->now->sets[i].active, link)
			notifier_send_next(n, m);
	}
	notifier_show_discovered(n);
	alertmanagers_generation_free(t->old);
	mutex_unlock(&n->lock);
}

struct notifier_opening {
	struct notifier *n;
	const char *user_agent;
	enum err_code rc;
	struct err *err;
};

static void notifier_open_client(void *ctx)
{
	struct notifier_opening *o = ctx;
	const struct http_client_options options = { .base = loop_base(o->n->loop),
		.user_agent = o->user_agent };

	o->rc = http_client_open(&options, &o->n->client, o->err);
}

static void notifier_close_client(void *ctx)
{
	struct notifier *n = ctx;
	struct alertmanager *m;

	mutex_lock(&n->lock);
	n->closing = true;
	for (size_t i = 0; n->now && i < n->now->sets_n; i++)
		LIST_FOREACH (m, &n->now->sets[i].active, link)
			notifier_recall(m);
	mutex_unlock(&n->lock);
	http_client_close(n->client);
}

/* ---- any thread ---- */

static void notifier_wake(struct notifier *n)
{
	mutex_assert_held(&n->lock);
	if (n->posted)
		return;
	n->posted = true;
	loop_post(n->loop, &n->work, notifier_look, n);
}

/* On discovery's thread. */
static void notifier_on_groups(void *ctx, void *user, struct groups *groups)
{
	struct notifier *n = ctx;
	struct alertmanager_set *set = user;

	mutex_lock(&n->lock);
	groups_unref(set->groups);
	set->groups = groups_ref(groups);
	set->changed = true;
	notifier_wake(n);
	mutex_unlock(&n->lock);
}

enum err_code notifier_open(
	const struct notifier_options *o, struct notifier **out, struct err *err)
{
	struct notifier *n = calloc(1, sizeof(*n));
	struct notifier_opening opening = { n, o->user_agent, ERR_OK, err };
	const struct discovery_options d = { .update = notifier_on_groups, .ctx = n };
	enum err_code rc;

	if (!n)
		return err_nomem(err, "notifier");
	n->queue_max = o->queue_max ? o->queue_max : NOTIFIER_QUEUE_DEFAULT;
	mutex_init(&n->lock);
	cond_init(&n->idle);
	metric_set(&capacity, NULL, (double)n->queue_max);
	if ((rc = loop_open("notifier", &n->loop, err)))
		goto fail;
	loop_call(n->loop, notifier_open_client, &opening);
	if ((rc = opening.rc))
		goto fail;
	if ((rc = discovery_open(&d, &n->discovery, err)))
		goto fail;
	*out = n;
	return ERR_OK;
fail:
	notifier_close(n);
	return rc;
}

enum err_code notifier_apply(struct notifier *n, const struct alerting_config *c,
	struct labels external_labels, struct err *err)
{
	struct notifier_taking t = { .n = n };
	struct sd_job *jobs = calloc(c->alertmanagers_n + 1, sizeof(*jobs));
	enum err_code rc;

	if (!jobs)
		return err_nomem(err, "alertmanagers");
	if (!(t.fresh = generation_new(n, c, external_labels, err))) {
		rc = ERR_NOMEM;
		goto end;
	}
	rc = ERR_OK;
	for (size_t i = 0; i < t.fresh->sets_n && !rc; i++) {
		jobs[i] = (struct sd_job){
			.name = str_of(arena_printf(&t.fresh->arena, "alertmanagers-%zu", i)),
			.sd = &c->alertmanagers[i].sd,
			.user = &t.fresh->sets[i],
		};
		if (!jobs[i].name.ptr)
			rc = err_nomem(err, "alertmanagers");
	}
	if (!rc)
		rc = discovery_apply(n->discovery, jobs, t.fresh->sets_n, err);
	if (rc) {
		alertmanagers_generation_free(t.fresh);
		rc = err_wrap(err, rc, "alerting");
		goto end;
	}
	loop_call(n->loop, notifier_take_generation, &t);
end:
	free(jobs);
	return rc;
}

/*
 * Queues an alert for the Alertmanagers of one entry. *shared: its text for entries without
 * alert_relabel_configs.
 */
static void notifier_queue_one(struct notifier *n, struct alertmanager_set *set,
	const struct notification *notification, struct alert_text **shared)
{
	const struct relabel_rules *own = &set->config->alert_relabel;
	struct alert_text *text = NULL;
	struct alertmanager *m;
	struct err err;
	enum err_code rc = ERR_OK;

	mutex_assert_held(&n->lock);
	if (LIST_EMPTY(&set->active))
		return;
	if (own->n)
		rc = alert_text_make(
			notification, n->now->external, &n->now->config->alert_relabel, own, &text, &err);
	else if (*shared) {
		text = *shared;
		text->refs++;
	}
	if (rc)
		log_error("notifier", "an alert is dropped", LOG_E(&err));
	LIST_FOREACH (m, &set->active, link)
		if (text)
			alertmanager_queue(m, text, n->queue_max);
		else if (rc)
			notifications_dropped(m->shown_url, 1);
	alert_text_unref(text);
}

static bool notifier_has_alertmanager(const struct notifier_generation *g)
{
	for (size_t i = 0; i < g->sets_n; i++)
		if (!LIST_EMPTY(&g->sets[i].active))
			return true;
	return false;
}

void notifier_send(struct notifier *n, const struct notification *notification, size_t count)
{
	struct alert_text *shared;
	struct notifier_generation *g;
	struct err err;

	mutex_lock(&n->lock);
	g = n->now;
	if (g && g->sets_n && !notifier_has_alertmanager(g))
		notifications_dropped("", count); /* configured, but none found */
	for (size_t i = 0; g && notifier_has_alertmanager(g) && i < count; i++) {
		if (alert_text_make(
				&notification[i], g->external, &g->config->alert_relabel, NULL, &shared, &err)) {
			log_error("notifier", "an alert is dropped", LOG_E(&err));
			notifications_dropped("", 1);
			continue;
		}
		for (size_t k = 0; k < g->sets_n && shared; k++)
			notifier_queue_one(n, &g->sets[k], &notification[i], &shared);
		alert_text_unref(shared);
	}
	notifier_wake(n);
	mutex_unlock(&n->lock);
}

void notifier_close(struct notifier *n)
{
	int64_t deadline_ns = clock_monotonic_ns() + DRAIN_NS;

	if (!n)
		return;
	if (n->client) {
		mutex_lock(&n->lock);
		notifier_wake(n);
		while (!notifier_is_idle(n) && cond_wait_until(&n->idle, &n->lock, deadline_ns))
			;
		mutex_unlock(&n->lock);
	}
	discovery_close(n->discovery);
	if (n->client)
		loop_call(n->loop, notifier_close_client, n);
	loop_close(n->loop);
	alertmanagers_generation_free(n->now);
	cond_destroy(&n->idle);
	mutex_destroy(&n->lock);
	free(n);
}

enum err_code notifier_alertmanagers(struct notifier *n, struct arena *a,
	struct alertmanager_info **out, size_t *count, struct err *err)
{
	const struct alertmanager *m;
	struct alertmanager_info *v;
	size_t max = 0, k = 0;

	mutex_lock(&n->lock);
	for (size_t i = 0; n->now && i < n->now->sets_n; i++) {
		LIST_FOREACH (m, &n->now->sets[i].active, link)
			max++;
		max += n->now->sets[i].dropped_n;
	}
	v = arena_array(a, struct alertmanager_info, max + 1);
	for (size_t i = 0; v && n->now && i < n->now->sets_n; i++) {
		LIST_FOREACH (m, &n->now->sets[i].active, link)
			v[k++] = (struct alertmanager_info){ str_dup(a, str_of(m->shown_url)), false,
				str_dup(a, str_of(m->last.code ? m->last.msg : "")), m->sent, m->failed };
		for (size_t d = 0; d < n->now->sets[i].dropped_n; d++)
			v[k++] = (struct alertmanager_info){
				.url = str_dup(a, hidden_url(a, n->now->sets[i].dropped[d])), .dropped = true
			};
	}
	mutex_unlock(&n->lock);
	for (size_t i = 0; v && i < k; i++)
		if (!v[i].url.ptr)
			v = NULL;
	if (!v)
		return arena_fail(a, "alertmanagers", err);
	*out = v;
	*count = k;
	return ERR_OK;
}
