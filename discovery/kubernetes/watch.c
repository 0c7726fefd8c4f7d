/*
 * Watches. A watch has a request under way (a page of a list, or the stream of changes), or its
 * timer is set (begin, retry). Every end of a request leads to `kube_again`, `kube_back_off` or
 * `kube_fail`,
 * which set the timer, so requests begin in one place.
 *
 * A list is gathered in `fresh` and replaces the objects when it is complete. So a list that breaks
 * off changes nothing, and listeners get differences only.
 */
#include "discovery/kubernetes/watch.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/net/loop.h"
#include "base/net/percent.h"
#include "discovery/kubernetes/watch_internal.h"

#define STATUS_BYTES_MAX (64u << 10)
#define RETRY_AFTER_NS_MAX (120 * NS_PER_S)

const struct kube_timing kube_timing_default = {
	.backoff_min_ns = 800 * NS_PER_MS,
	.backoff_max_ns = 30 * NS_PER_S,
	.linger_ns = KUBE_LINGER_NS,
	.watch_min_ns = 300 * NS_PER_S,
	.list_ns = 300 * NS_PER_S,
	.list_idle_ns = 60 * NS_PER_S,
	/* bookmarks come once a minute */
	.watch_idle_ns = 150 * NS_PER_S,
	.quiet_ns = NS_PER_S,
};

/* -------------------------------------------------------------------------------------------- */
/* Callbacks */

/* A callback may release its listener, or others: see kube_watch_release. */
#define TELL(w, fn, ...) \
	do { \
		for (struct kube_listener *l_ = (w)->listeners; l_; l_ = (w)->next_told) { \
			(w)->next_told = l_->next; \
			if (l_->fn) \
				l_->fn(l_->ctx, (w), ##__VA_ARGS__); \
		} \
		(w)->next_told = NULL; \
	} while (0)

/* -------------------------------------------------------------------------------------------- */
/* Time */

static uint64_t kube_next_random(struct kube_clusters *c)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return c->random;
}

/* delay_ns to 1.5 delay_ns, so that watches that failed together do not retry together. */
static int64_t kube_jittered(struct kube_clusters *c, int64_t delay_ns)
{
	return delay_ns + (int64_t)(kube_next_random(c) % (uint64_t)(delay_ns / 2 + 1));
}

/* The request has ended; the next one begins at once. */
static void kube_again(struct kube_watch *w)
{
	w->request = NULL;
	timer_after(w->timer, 0);
}

/* The request has ended; the next one begins after a delay. */
static void kube_back_off(struct kube_watch *w, int64_t at_least_ns)
{
	const struct kube_timing *t = &w->clusters->timing;
	int64_t delay = w->backoff_ns ? w->backoff_ns : t->backoff_min_ns;

	w->backoff_ns = 2 * delay < t->backoff_max_ns ? 2 * delay : t->backoff_max_ns;
	delay = kube_jittered(w->clusters, delay);
	w->request = NULL;
	timer_after(w->timer, delay > at_least_ns ? delay : at_least_ns);
}

/* `doing` is "list" or "watch". */
static void kube_fail(
	struct kube_watch *w, const char *doing, const struct err *why, int64_t at_least_ns)
{
	struct err err = *why;

	err_wrap(&err, why->code, "%s %s", doing, w->what);
	kube_back_off(w, at_least_ns);
	w->failing = true;
	TELL(w, failed, &err);
}

static void kube_succeed(struct kube_watch *w)
{
	w->backoff_ns = 0;
	if (!w->failing)
		return;
	w->failing = false;
	TELL(w, works);
}

/* Fails with a status other than 200 and the message of the server. */
static void kube_fail_status(
	struct kube_watch *w, const char *doing, const struct http_response *res)
{
	char message[512];
	struct err err;
	uint64_t seconds;
	int64_t wait = 0;

	kube_status_message(res->body, message, sizeof(message));
	err_set(&err, ERR_UNAVAILABLE, "server returned HTTP status %d " STR_FMT "%s%s", res->status,
		STR_ARG(res->reason), message[0] ? ": " : "", message);
	if (str_to_u64(http_response_header(res, "retry-after"), &seconds))
		wait = seconds > RETRY_AFTER_NS_MAX / NS_PER_S ? RETRY_AFTER_NS_MAX :
														 (int64_t)seconds * NS_PER_S;
	kube_fail(w, doing, &err, wait);
}

/* -------------------------------------------------------------------------------------------- */
/* Requests */

static enum err_code kube_send_request(struct kube_watch *w, struct buf *url, int64_t timeout_ns,
	int64_t idle_ns, http_data_fn data, http_done_fn done, struct err *err)
{
	static const struct label accept[] = { { { "Accept", 6 }, { "application/json", 16 } } };
	struct http_request_options o = { .url = buf_str(url),
		.config = &w->access.http,
		.headers = { accept, 1 },
		.timeout_ns = timeout_ns,
		.idle_timeout_ns = idle_ns,
		.body_size_max = STATUS_BYTES_MAX,
		.data = data };
	enum err_code rc;

	if (w->key.label_selector.len) {
		buf_add_cstr(url, "&labelSelector=");
		percent_encode(url, w->key.label_selector, PERCENT_VALUE);
	}
	if (w->key.field_selector.len) {
		buf_add_cstr(url, "&fieldSelector=");
		percent_encode(url, w->key.field_selector, PERCENT_VALUE);
	}
	o.url = buf_str(url);
	rc = buf_failed(url) ? err_nomem(err, "request") :
						   http_client_send(w->clusters->client, &o, done, w, &w->request, err);
	buf_release(url);
	return rc;
}

/* -------------------------------------------------------------------------------------------- */
/* Lists */

static void kube_drop_list(struct kube_watch *w)
{
	json_decref(w->fresh);
	w->fresh = NULL;
	free(w->next_page);
	w->next_page = NULL;
	kube_list_release(&w->list);
}

static void kube_fail_list(struct kube_watch *w, const struct err *why)
{
	kube_drop_list(w);
	kube_fail(w, "list", why, 0);
}

static bool kube_same_object(const json_t *old, const struct kube_item *item)
{
	const json_t *m = json_object_get(old, "metadata");
	const char *version = json_string_value(json_object_get(m, "resourceVersion"));
	const char *uid = json_string_value(json_object_get(m, "uid"));

	return item->version.len && version && str_is(item->version, version) &&
		str_is(item->uid, uid ? uid : "");
}

/* Adds an object to map. Keeps `old` if it is the same version. */
static enum err_code kube_put(
	struct kube_watch *w, json_t *map, const struct kube_item *item, json_t *old, struct err *err)
{
	json_t *v = old && kube_same_object(old, item) ? old : item->object;

	if (json_object_size(map) >= KUBE_OBJECTS_MAX && !json_object_get(map, item->key))
		return err_set(err, ERR_LIMIT, "more than %u objects", KUBE_OBJECTS_MAX);
	if (v != old)
		kube_object_share(&w->clusters->values, w->key.resource, v);
	if (json_object_set_nocheck(map, item->key, v))
		return err_nomem(err, "objects");
	return ERR_OK;
}

static enum err_code kube_on_item(void *ctx, const struct kube_item *item, struct err *err)
{
	struct kube_watch *w = ctx;

	return kube_put(w, w->fresh, item, json_object_get(w->objects, item->key), err);
}

static void kube_on_list_data(void *ctx, struct str piece)
{
	struct kube_watch *w = ctx;
	struct err err;

	if (!kube_list_feed(&w->list, piece, kube_on_item, w, &err))
		return;
	http_request_cancel(w->request);
	kube_fail_list(w, &err);
}

static void kube_forget_order(struct kube_watch *w)
{
	free(w->order);
	w->order = NULL;
}

/* The list is complete. */
static void kube_take_list(struct kube_watch *w)
{
	json_t *old = w->objects, *fresh = json_incref(w->fresh), *v;
	bool first = !w->synced;
	const char *key;

	assert(w->fresh && !w->next_page && w->version[0]);
	kube_drop_list(w);
	kube_forget_order(w);
	w->objects = fresh;
	w->synced = true;
	w->full_list = false;
	json_object_foreach (fresh, key, v)
		if (json_object_get(old, key) != v)
			TELL(w, changed, str_of(key), v);
	json_object_foreach (old, key, v)
		if (!json_object_get(fresh, key))
			TELL(w, changed, str_of(key), NULL);
	json_decref(old);
	if (first)
		TELL(w, synced);
	if (!w->gone) /* else only a stream shows that it works */
		kube_succeed(w);
	w->gone = false;
	kube_again(w);
}

static void kube_on_list_done(void *ctx, const struct http_response *res)
{
	struct kube_watch *w = ctx;
	bool paged = w->next_page != NULL;
	enum err_code rc = res->rc;
	struct err err = res->err;
	char *next = NULL;

	if (!rc && res->status == 410 && paged) { /* the pages expired: ask for all in one */
		kube_drop_list(w);
		if (w->full_list)
			kube_back_off(w, 0);
		else
			kube_again(w);
		w->full_list = true;
		return;
	}
	if (!rc && res->status != 200) {
		kube_drop_list(w);
		kube_fail_status(w, "list", res);
		return;
	}
	if (!rc)
		rc = kube_list_end(&w->list, w->version, &next, &err);
	if (rc) {
		w->version[0] = '\0';
		kube_fail_list(w, &err);
		return;
	}
	free(w->next_page);
	w->next_page = next;
	if (next) {
		w->version[0] = '\0'; /* valid only when the list is complete */
		kube_again(w);
	} else {
		kube_take_list(w);
	}
}

static enum err_code kube_begin_list(struct kube_watch *w, struct err *err)
{
	const struct kube_timing *t = &w->clusters->timing;
	struct buf url = { 0 };

	if (!w->fresh && !(w->fresh = json_object()))
		return err_nomem(err, "objects");
	kube_list_init(&w->list, w->key.resource);
	buf_add_cstr(&url, w->path);
	if (w->next_page) {
		buf_printf(&url, "?limit=%d&continue=", KUBE_PAGE_ITEMS);
		percent_encode(&url, str_of(w->next_page), PERCENT_VALUE);
	} else {
		/*
		 * From the server's cache, which may be older than our objects. If our version is gone,
		 * ask for the newest, so that no object goes back in time.
		 */
		buf_add_cstr(&url, w->full_list ? "?" : "?limit=500");
		if (!w->gone)
			buf_add_cstr(&url, w->full_list ? "resourceVersion=0" : "&resourceVersion=0");
	}
	return kube_send_request(
		w, &url, t->list_ns, t->list_idle_ns, kube_on_list_data, kube_on_list_done, err);
}

/* -------------------------------------------------------------------------------------------- */
/* Streams */

/* Our version is too old to resume. Lists at once the first time, then with a failure's delays. */
static void kube_list_anew(struct kube_watch *w)
{
	w->version[0] = '\0';
	w->gone = true;
	if (w->backoff_ns) {
		kube_back_off(w, 0);
		return;
	}
	w->backoff_ns = w->clusters->timing.backoff_min_ns;
	kube_again(w);
}

static enum err_code kube_changed(
	struct kube_watch *w, const struct kube_event *event, struct err *err)
{
	const struct kube_item *item = &event->item;
	json_t *old = json_incref(json_object_get(w->objects, item->key));
	enum err_code rc = ERR_OK;
	bool tell = true;

	if (event->type == KUBE_DELETED) {
		json_object_del(w->objects, item->key);
		tell = old != NULL;
	} else {
		tell = !old || !kube_same_object(old, item);
		rc = kube_put(w, w->objects, item, old, err);
	}
	if (!old != (event->type == KUBE_DELETED))
		kube_forget_order(w);
	if (tell && !rc)
		TELL(w, changed, str_of(item->key), json_object_get(w->objects, item->key));
	json_decref(old);
	return rc;
}

static enum err_code kube_on_event(void *ctx, const struct kube_event *event, struct err *err)
{
	struct kube_watch *w = ctx;
	enum err_code rc;

	if (event->type == KUBE_ERROR && event->code == 410)
		return ERR_NOT_FOUND;
	if (event->type == KUBE_ERROR)
		return err_set(err, ERR_UNAVAILABLE, "server ended the stream: %d %.512s", event->code,
			event->message);
	if (event->type != KUBE_BOOKMARK && (rc = kube_changed(w, event, err)))
		return rc;
	if (event->item.version.len)
		snprintf(w->version, sizeof(w->version), STR_FMT, STR_ARG(event->item.version));
	w->progressed = true;
	kube_succeed(w);
	return ERR_OK;
}

static void kube_on_stream_data(void *ctx, struct str piece)
{
	struct kube_watch *w = ctx;
	struct err err;
	enum err_code rc = kube_events_feed(&w->events, piece, kube_on_event, w, &err);

	if (!rc)
		return;
	http_request_cancel(w->request);
	if (rc == ERR_NOT_FOUND) {
		kube_list_anew(w);
		return;
	}
	if (rc != ERR_UNAVAILABLE) /* an event was lost: list again */
		w->version[0] = '\0';
	kube_fail(w, "watch", &err, 0);
}

static void kube_on_stream_done(void *ctx, const struct http_response *res)
{
	struct kube_watch *w = ctx;
	bool lived = res->status == 200 &&
		(w->progressed || res->elapsed_ns >= w->clusters->timing.quiet_ns);
	struct err err = res->err;

	if (lived)
		kube_succeed(w);
	if (!res->rc && res->status == 410)
		kube_list_anew(w);
	else if (!res->rc && res->status != 200)
		kube_fail_status(w, "watch", res);
	else if (lived && res->rc) /* cut, or silent for long */
		kube_back_off(w, 0);
	else if (lived)
		kube_again(w);
	else {
		if (!res->rc)
			err_set(&err, ERR_UNAVAILABLE, "server closed the stream at once");
		kube_fail(w, "watch", &err, 0);
	}
}

static enum err_code kube_begin_stream(struct kube_watch *w, struct err *err)
{
	const struct kube_timing *t = &w->clusters->timing;
	int64_t ns = t->watch_min_ns;
	struct buf url = { 0 };

	ns += (int64_t)(kube_next_random(w->clusters) % (uint64_t)(ns + 1)); /* spreads their ends */
	kube_events_init(&w->events, w->key.resource);
	w->progressed = false;
	buf_printf(&url, "%s?watch=1&allowWatchBookmarks=true&resourceVersion=", w->path);
	percent_encode(&url, str_of(w->version), PERCENT_VALUE);
	buf_printf(&url, "&timeoutSeconds=%d", (int)(ns < NS_PER_S ? 1 : ns / NS_PER_S));
	return kube_send_request(w, &url, ns + KUBE_WATCH_MARGIN_NS, t->watch_idle_ns,
		kube_on_stream_data, kube_on_stream_done, err);
}

/* The only place where requests begin. */
void kube_watch_begin(evutil_socket_t fd, short what, void *ctx)
{
	struct kube_watch *w = ctx;
	struct err err;

	assert(!w->request);
	if (w->version[0]) {
		if (kube_begin_stream(w, &err))
			kube_fail(w, "watch", &err, 0);
	} else if (kube_begin_list(w, &err)) {
		kube_fail_list(w, &err);
	}
}

void kube_watch_stop(struct kube_watch *w)
{
	http_request_cancel(w->request);
	w->request = NULL;
	kube_drop_list(w);
	kube_forget_order(w);
	kube_events_release(&w->events);
}
