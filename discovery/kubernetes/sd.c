/*
 * The source. An entry for each object of its role has its group and the hashes of all objects that
 * were looked up for it (entries.h). A change of an object of the role marks its entry; a change of
 * any other object marks the entries that looked it up. So a change costs what depends on it.
 */
#include "discovery/kubernetes/sd_config.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/net/http_config.h"
#include "base/net/loop.h"
#include "discovery/kubernetes/entries.h"

#define SD_TEXT "Kubernetes discovery"

struct sd_watch {
	struct kube_watch *watch;
	struct kube_listener listener;
	struct kubernetes_sd *sd;
	enum kube_resource resource;
	uint32_t ns;
	bool failing;
};

struct kubernetes_sd {
	struct sd_source *host;
	struct kube_clusters *clusters;
	struct event *timer;
	enum kube_role role;
	struct kube_join join;
	struct arena arena; /* access, namespaces, watches */
	struct str *namespaces; /* "": all; valid in sd_open only */
	size_t namespaces_n;
	struct sd_watch *watches;
	size_t watches_n;
	struct sd_watch **find; /* [ns * KUBE_RESOURCES + resource] */

	struct kube_entries entries;
	bool synced; /* all watches */
	bool reload; /* rebuild all entries */
	uint32_t ns; /* of the entry that is built now */
	int64_t published_ns;
	struct arena scratch;
};

/* ---- building ---- */

static const json_t *kube_join_get(void *ctx, enum kube_resource resource, struct str key)
{
	const struct kubernetes_sd *sd = ctx;
	const struct sd_watch *w = sd->find[sd->ns * KUBE_RESOURCES + resource];

	return w ? kube_watch_get(w->watch, key) : NULL;
}

static enum err_code kubernetes_sd_build(
	struct kubernetes_sd *sd, struct kube_entry *e, const json_t *object, struct err *err)
{
	struct groups *set = NULL;
	struct target_group group;
	struct kube_deps deps;
	enum err_code rc;

	arena_reset(&sd->scratch);
	sd->ns = e->ns;
	if (!(rc = kube_role_build(sd->role, &sd->join, (struct str){ e->key, e->key_len }, object,
			  &sd->scratch, &group, &deps, err)) &&
		!(rc = groups_pack(&group, 1, &set, err)))
		rc = kube_entries_give(&sd->entries, e, set, deps.v, deps.n, err);
	return rc ? err_wrap(err, rc, "%s%s", kube_roles[sd->role].source, e->key) : ERR_OK;
}

static bool kube_load_entry(void *ctx, struct str key, const json_t *object)
{
	const struct sd_watch *w = ctx;

	return kube_entries_mark(&w->sd->entries, key, w->ns);
}

/* Marks entries of all objects. False: out of memory, some are missing. */
static bool kubernetes_sd_load_all(struct kubernetes_sd *sd)
{
	enum kube_resource r = kube_roles[sd->role].resource;
	struct sd_watch *w;
	size_t want = 0;

	kube_entries_mark_all(&sd->entries);
	for (size_t i = 0; i < sd->namespaces_n; i++) {
		w = sd->find[i * KUBE_RESOURCES + r];
		want += kube_watch_size(w->watch);
		kube_watch_each(w->watch, kube_load_entry, w);
	}
	return sd->entries.n >= want;
}

/* Rebuilds changed entries and publishes. An entry that cannot be built keeps its group. */
static void kubernetes_sd_rebuild(struct kubernetes_sd *sd)
{
	enum kube_resource r = kube_roles[sd->role].resource;
	struct err why = { .code = ERR_OK }, err;
	const json_t *object;
	struct kube_entry *e;
	struct groups *all;

	assert(sd->synced);
	if (sd->reload)
		sd->reload = !kubernetes_sd_load_all(sd);
	while ((e = kube_entries_take(&sd->entries))) {
		object = kube_watch_get(
			sd->find[e->ns * KUBE_RESOURCES + r]->watch, (struct str){ e->key, e->key_len });
		if (!object)
			kube_entries_remove(&sd->entries, e);
		else if (kubernetes_sd_build(sd, e, object, &err))
			why = err;
	}
	sd->published_ns = clock_monotonic_ns();
	if (kube_entries_join(&sd->entries, &all, &err))
		why = err;
	else
		source_publish(sd->host, all);
	if (why.code)
		source_failed(sd->host, &why);
}

/* ---- callbacks of the watches ---- */

static void kubernetes_sd_schedule(struct kubernetes_sd *sd)
{
	int64_t wait = sd->published_ns + KUBE_PUBLISH_NS - clock_monotonic_ns();

	if (!event_pending(sd->timer, EV_TIMEOUT, NULL))
		timer_after(sd->timer, wait < KUBE_GATHER_NS ? KUBE_GATHER_NS : wait);
}

static void kube_on_timer(evutil_socket_t fd, short what, void *ctx)
{
	kubernetes_sd_rebuild(ctx);
}

static void kube_on_changed(
	void *ctx, const struct kube_watch *w, struct str key, const json_t *object)
{
	struct sd_watch *at = ctx;
	struct kubernetes_sd *sd = at->sd;

	if (!sd->synced)
		return; /* kube_on_synced rebuilds all */
	kubernetes_sd_schedule(sd);
	if (sd->reload)
		return;
	if (at->resource == kube_roles[sd->role].resource)
		sd->reload = !kube_entries_mark(&sd->entries, key, at->ns);
	else
		kube_entries_mark_those_of(&sd->entries, kube_dep(at->resource, key));
}

static bool kubernetes_sd_all_synced(const struct kubernetes_sd *sd)
{
	for (size_t i = 0; i < sd->watches_n; i++)
		if (!kube_watch_synced(sd->watches[i].watch))
			return false;
	return true;
}

static void kube_on_synced(void *ctx, const struct kube_watch *w)
{
	struct kubernetes_sd *sd = ((struct sd_watch *)ctx)->sd;

	if (sd->synced || !kubernetes_sd_all_synced(sd))
		return;
	sd->synced = sd->reload = true;
	kubernetes_sd_rebuild(sd);
}

static void kube_on_failed(void *ctx, const struct kube_watch *w, const struct err *why)
{
	struct sd_watch *at = ctx;

	at->failing = true;
	source_failed(at->sd->host, why);
}

static void kube_on_works(void *ctx, const struct kube_watch *w)
{
	struct sd_watch *at = ctx;
	struct kubernetes_sd *sd = at->sd;

	at->failing = false;
	for (size_t i = 0; i < sd->watches_n; i++)
		if (sd->watches[i].failing)
			return;
	if (sd->synced)
		kubernetes_sd_schedule(sd); /* a publish says that it works again */
}

/* ---- opening ---- */

static enum err_code kubernetes_sd_list_namespaces(struct kubernetes_sd *sd,
	const struct kubernetes_sd_config *c, const struct kube_access *access, struct err *err)
{
	const struct str *names = c->namespaces.v;
	struct str ns;
	size_t k;

	sd->namespaces = arena_array(&sd->arena, struct str, c->namespaces.n + 1);
	if (!sd->namespaces)
		return arena_fail(&sd->arena, SD_TEXT, err);
	if (c->own_namespace && !access->own_namespace.len)
		return err_set(err, ERR_INVALID, "could not determine the pod's namespace");
	for (size_t i = 0; i < c->namespaces.n + c->own_namespace; i++) {
		ns = i < c->namespaces.n ? names[i] : access->own_namespace;
		for (k = 0; k < sd->namespaces_n && !str_eq(sd->namespaces[k], ns); k++)
			;
		if (k == sd->namespaces_n)
			sd->namespaces[sd->namespaces_n++] = ns;
	}
	sd->namespaces_n += !sd->namespaces_n; /* none is given: one, "", for all */
	return ERR_OK;
}

static void kube_select_objects(const struct kubernetes_sd_config *c, struct kube_watch_key *key)
{
	const struct kube_selector *s = c->selectors.v;

	for (size_t i = 0; i < c->selectors.n; i++)
		if (kube_roles[s[i].role].resource == key->resource) {
			key->label_selector = s[i].label;
			key->field_selector = s[i].field;
		}
}

static enum err_code kubernetes_sd_watch(struct kubernetes_sd *sd,
	const struct kubernetes_sd_config *c, const struct kube_access *access, enum kube_resource r,
	uint32_t ns, struct err *err)
{
	struct sd_watch *w = &sd->watches[sd->watches_n];
	struct kube_watch_key key = { .resource = r };
	enum err_code rc;

	if (r != KUBE_NODES && r != KUBE_NAMESPACES)
		key.namespace = sd->namespaces[ns];
	kube_select_objects(c, &key);
	*w = (struct sd_watch){
		.listener = { .changed = kube_on_changed,
			.synced = kube_on_synced,
			.failed = kube_on_failed,
			.works = kube_on_works,
			.ctx = w },
		.sd = sd,
		.resource = r,
		.ns = ns,
	};
	if ((rc = kube_watch_acquire(sd->clusters, access, &key, &w->listener, &w->watch, err)))
		return rc;
	sd->watches_n++;
	for (uint32_t i = 0; i < sd->namespaces_n; i++)
		if (i == ns || r == KUBE_NODES || r == KUBE_NAMESPACES)
			sd->find[i * KUBE_RESOURCES + r] = w;
	return ERR_OK;
}

static enum err_code kubernetes_sd_watch_all(struct kubernetes_sd *sd,
	const struct kubernetes_sd_config *c, const struct kube_access *access, struct err *err)
{
	const struct kube_role_info *role = &kube_roles[sd->role];
	unsigned resources = role->joins | 1u << role->resource;
	enum err_code rc;

	if (sd->role == KUBE_ROLE_NODE) /* nodes have no namespace */
		sd->namespaces_n = 1;
	if (sd->join.attach.node)
		resources |= 1u << KUBE_NODES;
	if (sd->join.attach.namespace)
		resources |= 1u << KUBE_NAMESPACES;
	if (sd->join.attach.deployment)
		resources |= 1u << KUBE_REPLICASETS;
	if (sd->join.attach.cronjob)
		resources |= 1u << KUBE_JOBS;
	sd->watches = arena_array(&sd->arena, struct sd_watch, sd->namespaces_n * KUBE_RESOURCES);
	sd->find = arena_array(&sd->arena, struct sd_watch *, sd->namespaces_n * KUBE_RESOURCES);
	if (!sd->watches || !sd->find)
		return arena_fail(&sd->arena, SD_TEXT, err);
	for (uint32_t ns = 0; ns < sd->namespaces_n; ns++)
		for (int r = 0; r < KUBE_RESOURCES; r++) {
			if (!(resources >> r & 1) || sd->find[ns * KUBE_RESOURCES + r])
				continue;
			if ((rc = kubernetes_sd_watch(sd, c, access, (enum kube_resource)r, ns, err)))
				return rc;
		}
	return ERR_OK;
}

static void sd_close(void *provider)
{
	struct kubernetes_sd *sd = provider;

	if (!sd)
		return;
	for (size_t i = 0; i < sd->watches_n; i++)
		kube_watch_release(sd->watches[i].watch, &sd->watches[i].listener);
	kube_entries_release(&sd->entries);
	if (sd->timer)
		event_free(sd->timer);
	arena_release(&sd->scratch);
	arena_release(&sd->arena);
	free(sd);
}

static enum err_code sd_open(const struct source_env *env, const void *config,
	struct sd_source *host, void **out, struct err *err)
{
	const struct kubernetes_sd_config *c = config;
	const struct kube_role_info *role = &kube_roles[c->role];
	struct kubernetes_sd *sd = calloc(1, sizeof(*sd));
	struct kube_access access;
	enum err_code rc;

	if (!sd)
		return err_nomem(err, SD_TEXT);
	arena_init(&sd->scratch, KUBE_GROUP_BYTES_MAX);
	kube_entries_init(&sd->entries);
	sd->host = host;
	sd->clusters = env->shared;
	sd->role = c->role;
	sd->join = (struct kube_join){ .get = kube_join_get,
		.ctx = sd,
		.attach = { .node = c->attach.node && role->attach.node,
			.namespace = c->attach.namespace && role->attach.namespace,
			.deployment = c->attach.deployment && role->attach.deployment,
			.job = c->attach.job && role->attach.job,
			.cronjob = c->attach.cronjob && role->attach.cronjob } };
	sd->published_ns = INT64_MIN / 2;
	sd->timer = event_new(env->base, -1, 0, kube_on_timer, sd);
	if (!sd->timer) {
		rc = err_nomem(err, SD_TEXT);
		goto fail;
	}
	if ((rc = kube_access_make(&c->cluster, NULL, &sd->arena, &access, err)) ||
		(rc = kubernetes_sd_list_namespaces(sd, c, &access, err)) ||
		(rc = kubernetes_sd_watch_all(sd, c, &access, err)))
		goto fail;
	if (kubernetes_sd_all_synced(sd)) {
		sd->synced = sd->reload = true;
		kubernetes_sd_rebuild(sd);
	}
	*out = sd;
	return ERR_OK;
fail:
	sd_close(sd);
	return rc;
}

static enum err_code kube_sd_check(const void *config, struct err *err)
{
	const struct kubernetes_sd_config *c = config;
	struct kube_access access;
	struct arena a;
	enum err_code rc;

	if (!c->cluster.kubeconfig_file.len)
		return http_config_check_files(&c->cluster.http, err);
	arena_init(&a, 0);
	rc = kube_access_make(&c->cluster, NULL, &a, &access, err);
	if (!rc)
		rc = http_config_check_files(&access.http, err);
	arena_release(&a);
	return rc;
}

static enum err_code sd_open_shared(const struct source_env *env, void **out, struct err *err)
{
	struct kube_clusters *clusters;
	enum err_code rc = kube_clusters_open(env->base, env->client, &clusters, err);

	if (!rc)
		*out = clusters;
	return rc;
}

static void sd_close_shared(void *shared)
{
	kube_clusters_close(shared);
}

const struct source_ops kubernetes_sd_ops = {
	.kind = "kubernetes",
	.open = sd_open,
	.close = sd_close,
	.check = kube_sd_check,
	.open_shared = sd_open_shared,
	.close_shared = sd_close_shared,
};
