/* The watches of all clusters: found by key, shared, released, read. */
#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/net/loop.h"
#include "discovery/kubernetes/cluster.h"
#include "discovery/kubernetes/watch_internal.h"

static const struct {
	const char *name, *api;
	bool namespaced;
} resources[KUBE_RESOURCES] = {
	[KUBE_NODES] = { "nodes", "/api/v1", false },
	[KUBE_NAMESPACES] = { "namespaces", "/api/v1", false },
	[KUBE_PODS] = { "pods", "/api/v1", true },
	[KUBE_SERVICES] = { "services", "/api/v1", true },
	[KUBE_ENDPOINTS] = { "endpoints", "/api/v1", true },
	[KUBE_ENDPOINTSLICES] = { "endpointslices", "/apis/discovery.k8s.io/v1", true },
	[KUBE_INGRESSES] = { "ingresses", "/apis/networking.k8s.io/v1", true },
	[KUBE_REPLICASETS] = { "replicasets", "/apis/apps/v1", true },
	[KUBE_JOBS] = { "jobs", "/apis/batch/v1", true },
};

/* -------------------------------------------------------------------------------------------- */
/* Making and ending */

static void kube_watch_free(struct kube_watch *w)
{
	kube_watch_stop(w);
	if (w->timer)
		event_free(w->timer);
	if (w->linger)
		event_free(w->linger);
	json_decref(w->objects);
	LIST_REMOVE(w, link);
	arena_release(&w->arena);
	free(w);
}

static void kube_on_linger(evutil_socket_t fd, short what, void *ctx)
{
	kube_watch_free(ctx);
}

static bool kube_copy_key(
	struct arena *a, const struct kube_watch_key *from, struct kube_watch_key *to)
{
	*to = (struct kube_watch_key){ .resource = from->resource,
		.namespace = str_dup(a, from->namespace),
		.label_selector = str_dup(a, from->label_selector),
		.field_selector = str_dup(a, from->field_selector) };
	return to->namespace.ptr && to->label_selector.ptr && to->field_selector.ptr;
}

/* The namespace becomes a part of a path, so other characters are refused. */
static enum err_code kube_check_namespace(const struct kube_watch_key *k, struct err *err)
{
	struct str s = k->namespace;

	if (s.len && !resources[k->resource].namespaced)
		return err_set(err, ERR_INVALID, "%s have no namespace", resources[k->resource].name);
	for (size_t i = 0; i < s.len; i++)
		if (!(s.ptr[i] >= 'a' && s.ptr[i] <= 'z') && !(s.ptr[i] >= '0' && s.ptr[i] <= '9') &&
			s.ptr[i] != '-')
			return err_set(err, ERR_INVALID, "\"%.*s\" is not a valid namespace",
				(int)(s.len < 256 ? s.len : 256), s.ptr);
	return ERR_OK;
}

static enum err_code kube_fill(struct kube_watch *w, const struct kube_access *access,
	const struct kube_watch_key *key, struct err *err)
{
	const char *name = resources[key->resource].name, *api = resources[key->resource].api;
	bool within = key->namespace.len > 0;
	enum err_code rc = kube_access_dup(&w->arena, access, &w->access, err);

	if (rc)
		return rc;
	w->path = arena_printf(&w->arena, STR_FMT "%s%s" STR_FMT "/%s", STR_ARG(access->server), api,
		within ? "/namespaces/" : "", STR_ARG(key->namespace), name);
	w->what = arena_printf(
		&w->arena, "%s%s" STR_FMT, name, within ? " in namespace " : "", STR_ARG(key->namespace));
	if (!w->path || !w->what || !kube_copy_key(&w->arena, key, &w->key))
		return arena_fail(&w->arena, "watch", err);
	w->objects = json_object();
	w->timer = evtimer_new(w->clusters->base, kube_watch_begin, w);
	w->linger = evtimer_new(w->clusters->base, kube_on_linger, w);
	if (!w->objects || !w->timer || !w->linger || evtimer_add(w->timer, &(struct timeval){ 0 }))
		return err_nomem(err, "watch");
	return ERR_OK;
}

enum err_code kube_clusters_open(struct event_base *base, struct http_client *client,
	struct kube_clusters **out, struct err *err)
{
	struct kube_clusters *c = calloc(1, sizeof(*c));

	if (!c)
		return err_nomem(err, "clusters");
	c->base = base;
	c->client = client;
	kube_values_init(&c->values);
	c->timing = kube_timing_default;
	c->random = (uint64_t)clock_now_ns() | 1;
	*out = c;
	return ERR_OK;
}

void kube_clusters_close(struct kube_clusters *c)
{
	struct kube_watch *w;

	if (!c)
		return;
	while ((w = LIST_FIRST(&c->watches))) {
		assert(!w->listeners);
		kube_watch_free(w);
	}
	kube_values_release(&c->values);
	free(c);
}

/* -------------------------------------------------------------------------------------------- */
/* Sharing */

static bool kube_key_eq(const struct kube_watch_key *a, const struct kube_watch_key *b)
{
	return a->resource == b->resource && str_eq(a->namespace, b->namespace) &&
		str_eq(a->label_selector, b->label_selector) &&
		str_eq(a->field_selector, b->field_selector);
}

enum err_code kube_watch_acquire(struct kube_clusters *c, const struct kube_access *access,
	const struct kube_watch_key *key, struct kube_listener *listener, struct kube_watch **out,
	struct err *err)
{
	enum err_code rc = kube_check_namespace(key, err);
	struct kube_watch *w;

	if (rc)
		return rc;
	assert(listener->changed && listener->synced && listener->failed);
	LIST_FOREACH (w, &c->watches, link)
		if (kube_key_eq(&w->key, key) && str_eq(w->access.identity, access->identity))
			break;
	if (!w) {
		w = calloc(1, sizeof(*w));
		if (!w)
			return err_nomem(err, "watch");
		w->clusters = c;
		arena_init(&w->arena, 0);
		LIST_INSERT_HEAD(&c->watches, w, link);
		if ((rc = kube_fill(w, access, key, err))) {
			kube_watch_free(w);
			return rc;
		}
	}
	evtimer_del(w->linger);
	listener->next = w->listeners;
	w->listeners = listener;
	*out = w;
	return ERR_OK;
}

/*
 * The timer frees the watch later: a reload may take it again, and a caller of listeners may still
 * use it.
 */
void kube_watch_release(struct kube_watch *w, struct kube_listener *listener)
{
	struct kube_listener **l;

	if (!w)
		return;
	for (l = &w->listeners; *l && *l != listener; l = &(*l)->next)
		;
	if (!*l)
		return;
	if (w->next_told == listener)
		w->next_told = listener->next;
	*l = listener->next;
	listener->next = NULL;
	if (!w->listeners)
		timer_after(w->linger, w->clusters->timing.linger_ns);
}

/* -------------------------------------------------------------------------------------------- */
/* Reading */

bool kube_watch_synced(const struct kube_watch *w)
{
	return w->synced;
}

const json_t *kube_watch_get(const struct kube_watch *w, struct str key)
{
	return json_object_getn(w->objects, key.ptr ? key.ptr : "", key.len);
}

size_t kube_watch_size(const struct kube_watch *w)
{
	return json_object_size(w->objects);
}

static int kube_by_key(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The order is kept until a key is added or deleted. False: out of memory. */
static bool kube_sort_keys(struct kube_watch *w)
{
	size_t n = 0;
	const char *key;
	json_t *v;

	w->order = calloc(json_object_size(w->objects) + 1, sizeof(*w->order));
	if (!w->order)
		return false;
	json_object_foreach (w->objects, key, v)
		w->order[n++] = key;
	qsort(w->order, n, sizeof(*w->order), kube_by_key);
	return true;
}

void kube_watch_each(const struct kube_watch *cw,
	bool (*fn)(void *ctx, struct str key, const json_t *object), void *ctx)
{
	struct kube_watch *w = (struct kube_watch *)(uintptr_t)cw; /* the order is a cache */
	size_t n = json_object_size(w->objects);
	const char *key;
	json_t *v;

	if (w->order || kube_sort_keys(w)) {
		for (size_t i = 0; i < n; i++)
			if (!fn(ctx, str_of(w->order[i]), json_object_get(w->objects, w->order[i])))
				return;
		return;
	}
	json_object_foreach (w->objects, key, v) /* out of memory: unsorted */
		if (!fn(ctx, str_of(key), v))
			return;
}
