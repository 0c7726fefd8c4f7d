/* The Alertmanagers that discovery has found, and the queue of each. */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hidden.h"
#include "base/log.h"
#include "base/metrics.h"
#include "promql/rules/notify/notifier_internal.h"

#define SCHEME "__scheme__"
#define ADDRESS "__address__"
#define PATH "__alerts_path__"
#define API "/api/v2/alerts"
#define SCRATCH_BYTES_MAX (64u << 20)

METRIC_COUNTER(sent_total, "epimetheus_notifications_sent_total", "Alerts sent to an Alertmanager.",
	"alertmanager");
METRIC_COUNTER(errors_total, "epimetheus_notifications_errors_total",
	"Alerts in requests that an Alertmanager refused.", "alertmanager");
METRIC_COUNTER(dropped_total, "epimetheus_notifications_dropped_total",
	"Alerts that were not delivered: refused, over the queue's limit, or without an Alertmanager.",
	"alertmanager");
METRIC_GAUGE(queue_length, "epimetheus_notifications_queue_length",
	"Alerts that wait for an Alertmanager.", "alertmanager");
METRIC_HISTOGRAM(latency, "epimetheus_notifications_latency_seconds",
	"Time a request to an Alertmanager takes.", "alertmanager");

void notifications_dropped(const char *url, size_t n)
{
	if (n)
		metric_add(&dropped_total, url, (double)n);
}

/* ---- queues ---- */

static void alertmanagers_show_length(const struct alertmanager *a)
{
	metric_set(&queue_length, a->shown_url, (double)a->waiting_n);
}

static void alertmanagers_drop_oldest(struct alertmanager *a)
{
	struct queued *q = STAILQ_FIRST(&a->waiting);

	assert(q && a->waiting_n && a->waiting_bytes >= q->text->len);
	STAILQ_REMOVE_HEAD(&a->waiting, next);
	a->waiting_n--;
	a->waiting_bytes -= q->text->len;
	alert_text_unref(q->text);
	free(q);
	notifications_dropped(a->shown_url, 1);
}

bool alertmanager_queue(struct alertmanager *a, struct alert_text *text, size_t queue_max)
{
	struct queued *q = malloc(sizeof(*q));

	if (!q) {
		notifications_dropped(a->shown_url, 1);
		return false;
	}
	q->text = text;
	text->refs++;
	STAILQ_INSERT_TAIL(&a->waiting, q, next);
	a->waiting_n++;
	a->waiting_bytes += text->len;
	while (a->waiting_n > 1 &&
		(a->waiting_n > queue_max || a->waiting_bytes > NOTIFIER_QUEUE_BYTES_MAX))
		alertmanagers_drop_oldest(a);
	alertmanagers_show_length(a);
	return true;
}

void alertmanager_take_batch(struct alertmanager *a, struct buf *body)
{
	struct queued *q;

	assert(STAILQ_EMPTY(&a->batch) && a->waiting_n);
	buf_add_char(body, '[');
	while (a->batch_n < NOTIFIER_BATCH && (q = STAILQ_FIRST(&a->waiting))) {
		STAILQ_REMOVE_HEAD(&a->waiting, next);
		a->waiting_n--;
		a->waiting_bytes -= q->text->len;
		if (a->batch_n++)
			buf_add_char(body, ',');
		buf_add(body, q->text->bytes, q->text->len);
		STAILQ_INSERT_TAIL(&a->batch, q, next);
	}
	buf_add_char(body, ']');
	a->began_ns = clock_monotonic_ns();
	alertmanagers_show_length(a);
}

static void alertmanagers_free_batch(struct alertmanager *a)
{
	struct queued *q;

	while ((q = STAILQ_FIRST(&a->batch))) {
		STAILQ_REMOVE_HEAD(&a->batch, next);
		alert_text_unref(q->text);
		free(q);
	}
	a->batch_n = 0;
}

void alertmanager_end_batch(struct alertmanager *a, const struct err *why)
{
	metric_observe(&latency, a->shown_url, (double)(clock_monotonic_ns() - a->began_ns) / 1e9);
	if (why) {
		if (a->last.code == ERR_OK || strcmp(a->last.msg, why->msg) != 0)
			log_warn("notifier", "alerts were not taken", LOG_S("alertmanager", a->shown_url),
				LOG_I("alerts", a->batch_n), LOG_E(why));
		a->last = *why;
		a->failed += a->batch_n;
		metric_add(&errors_total, a->shown_url, (double)a->batch_n);
		notifications_dropped(a->shown_url, a->batch_n);
	} else {
		if (a->last.code != ERR_OK)
			log_info("notifier", "alerts are taken again", LOG_S("alertmanager", a->shown_url));
		a->last = (struct err){ 0 };
		a->sent += a->batch_n;
		metric_add(&sent_total, a->shown_url, (double)a->batch_n);
	}
	alertmanagers_free_batch(a);
}

void alertmanager_requeue(struct alertmanager *a)
{
	struct queued *q;

	assert(!a->request);
	STAILQ_FOREACH (q, &a->batch, next)
		a->waiting_bytes += q->text->len;
	a->waiting_n += a->batch_n;
	a->batch_n = 0;
	STAILQ_CONCAT(&a->batch, &a->waiting);
	STAILQ_CONCAT(&a->waiting, &a->batch);
	alertmanagers_show_length(a);
}

static struct alertmanager *alertmanager_new(struct str url)
{
	struct alertmanager *m = calloc(1, sizeof(*m));
	struct buf shown = { 0 };

	if (!m)
		return NULL;
	m->url = strndup(url.ptr, url.len);
	hidden_print_url(&shown, url);
	buf_add_char(&shown, '\0');
	if (!m->url || buf_failed(&shown)) {
		buf_release(&shown);
		free(m->url);
		free(m);
		return NULL;
	}
	m->shown_url = shown.ptr;
	STAILQ_INIT(&m->waiting);
	STAILQ_INIT(&m->batch);
	return m;
}

void alertmanager_free(struct alertmanager *a)
{
	assert(!a->request);
	notifications_dropped(a->shown_url, a->batch_n);
	alertmanagers_free_batch(a);
	while (!STAILQ_EMPTY(&a->waiting))
		alertmanagers_drop_oldest(a);
	alertmanagers_show_length(a);
	free(a->url);
	free(a->shown_url);
	free(a);
}

/* ---- from groups to URLs ---- */

/* {scheme}://{address}{path} */
static struct str alertmanagers_url_of(struct arena *a, const struct labels_builder *b)
{
	struct str path = labels_builder_get(b, STR(PATH));

	return str_of(arena_printf(a, STR_FMT "://" STR_FMT "%s" STR_FMT,
		STR_ARG(labels_builder_get(b, STR(SCHEME))),
			STR_ARG(labels_builder_get(b, STR(ADDRESS))),
				str_has_prefix(path, STR("/")) ? "" : "/", STR_ARG(path)));
}

/* Slashes around the prefix do not matter. */
static struct str alertmanagers_path_of(struct arena *a, struct str prefix)
{
	while (prefix.len && prefix.ptr[0] == '/')
		prefix.ptr++, prefix.len--;
	while (prefix.len && prefix.ptr[prefix.len - 1] == '/')
		prefix.len--;
	if (!prefix.len)
		return STR(API);
	return str_of(arena_printf(a, "/" STR_FMT API, STR_ARG(prefix)));
}

static struct alertmanager *alertmanagers_find(struct alertmanagers *list, struct str url)
{
	struct alertmanager *m;

	LIST_FOREACH (m, list, link)
		if (str_is(url, m->url))
			return m;
	return NULL;
}

/*
 * Takes the Alertmanager of this URL out of the set's old list or the old configuration. NULL: new.
 */
static struct alertmanager *alertmanagers_take_known(
	struct alertmanagers *was, struct notifier_generation *old, struct str url)
{
	struct alertmanager *m = alertmanagers_find(was, url);

	for (size_t i = 0; !m && old && i < old->sets_n; i++)
		m = alertmanagers_find(&old->sets[i].active, url);
	if (m)
		LIST_REMOVE(m, link);
	return m;
}

struct alertmanagers_rebuild {
	struct alertmanager_set *set;
	struct notifier_generation *old;
	struct alertmanagers was;
	struct arena arena; /* scratch */
	struct str path;
	struct alertmanager *last; /* of the new list */
	size_t n;
};

static enum err_code alertmanagers_rebuild_drop(
	struct alertmanagers_rebuild *r, struct str url, struct err *err)
{
	struct alertmanager_set *set = r->set;

	if (set->dropped_n == NOTIFIER_ALERTMANAGERS_MAX)
		return ERR_OK;
	url = str_dup(&set->arena, url);
	if (!url.ptr)
		return arena_fail(&set->arena, "alertmanagers", err);
	set->dropped[set->dropped_n++] = url;
	return ERR_OK;
}

static enum err_code alertmanagers_rebuild_add(
	struct alertmanagers_rebuild *r, struct str url, struct err *err)
{
	struct alertmanager *m;

	if (!url.ptr)
		return arena_fail(&r->arena, "alertmanagers", err);
	if (alertmanagers_find(&r->set->active, url))
		return ERR_OK;
	if (r->n == NOTIFIER_ALERTMANAGERS_MAX)
		return err_set(
			err, ERR_LIMIT, "more than %u alertmanagers of one entry", NOTIFIER_ALERTMANAGERS_MAX);
	if (!(m = alertmanagers_take_known(&r->was, r->old, url)) && !(m = alertmanager_new(url)))
		return err_nomem(err, "alertmanagers");
	m->set = r->set;
	if (r->last)
		LIST_INSERT_AFTER(r->last, m, link);
	else
		LIST_INSERT_HEAD(&r->set->active, m, link);
	r->last = m;
	r->n++;
	return ERR_OK;
}

static enum err_code alertmanagers_rebuild_add_target(struct alertmanagers_rebuild *r,
	const struct target_group *g, struct labels target, struct err *err)
{
	const struct alertmanager_config *c = r->set->config;
	struct labels_builder b;
	struct str before, address;
	enum err_code rc;
	bool keep;

	labels_builder_init(&b, &r->arena, g->labels);
	labels_builder_set(&b, STR(SCHEME), c->scheme);
	labels_builder_set(&b, STR(PATH), r->path);
	for (size_t i = 0; i < target.n; i++)
		labels_builder_set(&b, target.v[i].name, target.v[i].value);
	before = alertmanagers_url_of(&r->arena, &b);
	if ((rc = relabel_apply(&c->relabel, &b, &keep, NULL, err)))
		return rc;
	if (!before.ptr)
		return arena_fail(&r->arena, "alertmanagers", err);
	if (!keep)
		return alertmanagers_rebuild_drop(r, before, err);
	address = labels_builder_get(&b, STR(ADDRESS));
	if (!address.len || memchr(address.ptr, '/', address.len)) {
		log_warn("notifier", "address is not host and port", LOG_STR("source", g->source),
			LOG_STR("address", address));
		return ERR_OK;
	}
	return alertmanagers_rebuild_add(r, alertmanagers_url_of(&r->arena, &b), err);
}

static enum err_code alertmanagers_rebuild_add_all(struct alertmanagers_rebuild *r, struct err *err)
{
	const struct target_group *g;
	struct groups_cursor groups;
	enum err_code rc = ERR_OK;

	r->path = alertmanagers_path_of(&r->arena, r->set->config->path_prefix);
	r->set->dropped = arena_array(&r->set->arena, struct str, NOTIFIER_ALERTMANAGERS_MAX);
	if (!r->path.ptr || !r->set->dropped)
		return err_nomem(err, "alertmanagers");
	if (!r->set->groups)
		return ERR_OK;
	groups_begin(&groups, r->set->groups);
	while (!rc && (g = groups_next(&groups)))
		for (size_t k = 0; k < g->targets_n && !rc; k++)
			rc = alertmanagers_rebuild_add_target(r, g, g->targets[k], err);
	return rc;
}

void alertmanagers_rebuild(
	struct alertmanager_set *set, struct notifier_generation *old, struct alertmanagers *gone)
{
	struct alertmanagers_rebuild r = { .set = set, .old = old };
	struct alertmanager *m;
	struct err err;

	set->changed = false;
	LIST_INIT(&r.was);
	while ((m = LIST_FIRST(&set->active))) {
		LIST_REMOVE(m, link);
		LIST_INSERT_HEAD(&r.was, m, link);
	}
	arena_reset(&set->arena);
	set->dropped_n = 0;
	arena_init(&r.arena, SCRATCH_BYTES_MAX);
	if (alertmanagers_rebuild_add_all(&r, &err))
		log_error("notifier", "some Alertmanagers get no alerts", LOG_E(&err));
	arena_release(&r.arena);
	while ((m = LIST_FIRST(&r.was))) {
		LIST_REMOVE(m, link);
		LIST_INSERT_HEAD(gone, m, link);
	}
}

/* ---- configurations at work ---- */

struct notifier_generation *generation_new(
	struct notifier *n, const struct alerting_config *c, struct labels external, struct err *err)
{
	struct notifier_generation *g = calloc(1, sizeof(*g));

	if (!g)
		goto nomem;
	arena_init(&g->arena, 0);
	g->notifier = n;
	g->config = c;
	g->sets = calloc(c->alertmanagers_n + 1, sizeof(*g->sets));
	g->external = labels_dup(&g->arena, external);
	if (!g->sets || (external.n && !g->external.v)) {
		alertmanagers_generation_free(g);
		goto nomem;
	}
	for (size_t i = 0; i < c->alertmanagers_n; i++) {
		g->sets[i] = (struct alertmanager_set){
			.generation = g, .config = &c->alertmanagers[i], .changed = true
		};
		LIST_INIT(&g->sets[i].active);
		arena_init(&g->sets[i].arena, 0);
		g->sets_n++;
	}
	return g;
nomem:
	err_nomem(err, "alertmanagers");
	return NULL;
}

void alertmanagers_generation_free(struct notifier_generation *g)
{
	struct alertmanager *m;

	if (!g)
		return;
	for (size_t i = 0; i < g->sets_n; i++) {
		while ((m = LIST_FIRST(&g->sets[i].active))) {
			LIST_REMOVE(m, link);
			alertmanager_free(m);
		}
		groups_unref(g->sets[i].groups);
		arena_release(&g->sets[i].arena);
	}
	free(g->sets);
	arena_release(&g->arena);
	free(g);
}
