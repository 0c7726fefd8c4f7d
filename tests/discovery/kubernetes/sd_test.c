/*
 * The source upon watches of its own making: objects are put and taken as a test wants it. What
 * watches do with a server is watch_test.c's.
 */
#include <event2/event.h>
#include <jansson.h>

#include "base/clock.h"
#include "discovery/kubernetes/sd_config.h"
#include "tests/check.h"
#include "tests/wait.h"

#define WATCHES 64
#define OWNED(ns, name, kind, owner) \
	"{\"metadata\":{\"namespace\":\"" ns "\",\"name\":\"" name "\",\"ownerReferences\":[" \
	"{\"controller\":true,\"kind\":\"" kind "\",\"name\":\"" owner "\"}]}}"
#define ALL \
	{ \
		true, true, true, true, true \
	} /* attach_metadata */

/* ---- the world: clusters, and a host that keeps what was published ---- */

struct kube_watch {
	enum kube_resource resource;
	char namespace[32], selectors[64];
	struct kube_listener *listeners;
	json_t *objects; /* by key */
	bool synced;
};

struct kube_clusters {
	struct kube_watch v[WATCHES];
	size_t n;
	bool held; /* new watches have not listed yet */
	json_t *cluster[KUBE_RESOURCES];
};

struct sd_source {
	struct groups *set;
	size_t published;
	struct err failed;
};

struct world {
	struct event_base *base;
	struct kube_clusters clusters;
};

static char *text_of(char *to, size_t n, struct str s)
{
	snprintf(to, n, STR_FMT, STR_ARG(s));
	return to;
}

static bool is_of(const char *key, const char *namespace)
{
	size_t n = strlen(namespace);

	return !n || (strncmp(key, namespace, n) == 0 && key[n] == '/');
}

enum err_code kube_access_make(const struct kube_cluster_config *c, const char *dir,
	struct arena *a, struct kube_access *out, struct err *err)
{
	*out = (struct kube_access){ .own_namespace = c->api_server };
	return ERR_OK;
}

enum err_code kube_watch_acquire(struct kube_clusters *c, const struct kube_access *access,
	const struct kube_watch_key *key, struct kube_listener *listener, struct kube_watch **out,
	struct err *err)
{
	char ns[32], selectors[64];
	struct kube_watch *w;
	const char *name;
	json_t *o;
	size_t i;

	text_of(ns, sizeof(ns), key->namespace);
	snprintf(selectors, sizeof(selectors), STR_FMT ";" STR_FMT, STR_ARG(key->label_selector),
		STR_ARG(key->field_selector));
	for (i = 0; i < c->n; i++)
		if (c->v[i].resource == key->resource && !strcmp(c->v[i].namespace, ns) &&
			!strcmp(c->v[i].selectors, selectors))
			break;
	if (i == WATCHES)
		return err_set(err, ERR_LIMIT, "too many watches");
	w = &c->v[i];
	if (i == c->n) {
		c->n++;
		*w = (struct kube_watch){
			.resource = key->resource, .synced = !c->held, .objects = json_object()
		};
		memcpy(w->namespace, ns, sizeof(ns));
		memcpy(w->selectors, selectors, sizeof(selectors));
		json_object_foreach (c->cluster[key->resource], name, o)
			if (is_of(name, ns))
				json_object_set(w->objects, name, o);
	}
	listener->next = w->listeners;
	w->listeners = listener;
	*out = w;
	return ERR_OK;
}

void kube_watch_release(struct kube_watch *w, struct kube_listener *listener)
{
	struct kube_listener **l = &w->listeners;

	while (*l != listener)
		l = &(*l)->next;
	*l = listener->next;
}

bool kube_watch_synced(const struct kube_watch *w)
{
	return w->synced;
}

/* Never called: the tests hand their own clusters to the sources. */
enum err_code kube_clusters_open(struct event_base *base, struct http_client *client,
	struct kube_clusters **out, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED, "not in this test");
}

void kube_clusters_close(struct kube_clusters *c) {}

const json_t *kube_watch_get(const struct kube_watch *w, struct str key)
{
	return json_object_getn(w->objects, key.ptr, key.len);
}

size_t kube_watch_size(const struct kube_watch *w)
{
	return json_object_size(w->objects);
}

static int name_cmp(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void kube_watch_each(const struct kube_watch *w,
	bool (*fn)(void *ctx, struct str key, const json_t *object), void *ctx)
{
	size_t n = json_object_size(w->objects), i = 0;
	const char **names = calloc(n + 1, sizeof(*names)), *name;
	json_t *o;

	json_object_foreach (w->objects, name, o)
		names[i++] = name;
	qsort(names, n, sizeof(*names), name_cmp);
	for (i = 0; i < n && fn(ctx, str_of(names[i]), json_object_get(w->objects, names[i])); i++)
		;
	free(names);
}

void source_publish(struct sd_source *host, struct groups *set)
{
	groups_unref(host->set);
	host->set = set;
	host->published++;
}

void source_failed(struct sd_source *host, const struct err *why)
{
	host->failed = *why;
}

/* Puts the object, or deletes it if text is NULL, and calls the listeners of every watch. */
static void put(struct world *w, enum kube_resource r, const char *key, const char *text)
{
	json_error_t why;
	json_t *o = text ? json_loads(text, 0, &why) : NULL;
	struct kube_watch *at;

	if (text && !o)
		CHECK_FAIL("%s: %s", why.text, text);
	if (o)
		json_object_set(w->clusters.cluster[r], key, o);
	else
		json_object_del(w->clusters.cluster[r], key);
	for (size_t i = 0; i < w->clusters.n; i++) {
		at = &w->clusters.v[i];
		if (at->resource != r || !is_of(key, at->namespace))
			continue;
		if (o)
			json_object_set(at->objects, key, o);
		else
			json_object_del(at->objects, key);
		for (struct kube_listener *l = at->listeners; l; l = l->next)
			l->changed(l->ctx, at, str_of(key), o);
	}
	json_decref(o);
}

static void world_init(struct world *w)
{
	*w = (struct world){ .base = event_base_new() };
	for (int i = 0; i < KUBE_RESOURCES; i++)
		w->clusters.cluster[i] = json_object();
}

static void world_release(struct world *w)
{
	for (size_t i = 0; i < w->clusters.n; i++) {
		CHECK(!w->clusters.v[i].listeners);
		json_decref(w->clusters.v[i].objects);
	}
	for (int i = 0; i < KUBE_RESOURCES; i++)
		json_decref(w->clusters.cluster[i]);
	event_base_free(w->base);
}

static void *open_source(
	struct world *w, const struct kubernetes_sd_config *c, struct sd_source *host)
{
	struct source_env env = { .base = w->base, .shared = &w->clusters };
	void *p = NULL;
	struct err err;

	*host = (struct sd_source){ 0 };
	CHECK_OK(kubernetes_sd_ops.open(&env, c, host, &p, &err), &err);
	return p;
}

static void close_source(void *p, struct sd_source *host)
{
	kubernetes_sd_ops.close(p);
	groups_unref(host->set);
}

static void run_for(struct world *w, int64_t ns)
{
	struct timeval tv = { ns / NS_PER_S, ns % NS_PER_S / NS_PER_US };

	event_base_loopexit(w->base, &tv);
	event_base_dispatch(w->base);
}

static void run_until_published(struct world *w, const struct sd_source *host, size_t n)
{
	(void)!WAIT_FOR((run_for(w, 5 * NS_PER_MS), host->published >= n));
	CHECK_INT(host->published, n);
}

static const char *pod(const char *ns, const char *name, const char *ip, const char *node)
{
	static char text[512];

	snprintf(text, sizeof(text),
		"{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"labels\":{\"app\":\"x\"}},\"spec\":{"
		"\"nodeName\":\"%s\",\"containers\":[{\"name\":\"c\",\"ports\":[{\"containerPort\":80}]}]},"
		"\"status\":{\"podIP\":\"%s\"}}",
		ns, name, node, ip);
	return text;
}

static const struct labels *first_targets(const struct sd_source *host)
{
	struct groups_cursor all;

	groups_begin(&all, host->set);
	return groups_next(&all)->targets;
}

/* "SOURCE address address, ..." */
static void check_targets(const struct sd_source *host, const char *want)
{
	const struct target_group *g;
	struct groups_cursor all;
	struct buf b = { 0 };

	groups_begin(&all, host->set);
	while ((g = groups_next(&all))) {
		buf_printf(&b, "%s" STR_FMT, b.len ? ", " : "", STR_ARG(g->source));
		for (size_t k = 0; k < g->targets_n; k++)
			buf_printf(&b, " " STR_FMT, STR_ARG(labels_get(g->targets[k], STR("__address__"))));
	}
	CHECK_STR(buf_str(&b), want);
	buf_release(&b);
}

/* ---- tests ---- */

TEST(published_when_all_lists_are_complete)
{
	struct kubernetes_sd_config c = { .role = KUBE_ROLE_ENDPOINTS };
	struct kube_watch *w;
	struct sd_source host;
	struct world world;
	void *p;

	world_init(&world);
	world.clusters.held = true;
	p = open_source(&world, &c, &host);
	put(&world, KUBE_ENDPOINTS, "a/e",
		"{\"metadata\":{\"namespace\":\"a\",\"name\":\"e\"},\"subsets\":[{\"ports\":[{\"port\":1}],"
		"\"addresses\":[{\"ip\":\"1.1.1.1\"}]}]}");
	CHECK_INT(world.clusters.n, 3);
	for (size_t i = 0; i < world.clusters.n; i++) {
		CHECK_INT(host.published, 0);
		w = &world.clusters.v[i];
		w->synced = true;
		w->listeners->synced(w->listeners->ctx, w);
	}
	CHECK_INT(host.published, 1);
	check_targets(&host, "endpoints/a/e 1.1.1.1:1");
	close_source(p, &host);
	world_release(&world);
}

TEST(an_object_changes_comes_and_goes)
{
	struct kubernetes_sd_config c = { .role = KUBE_ROLE_POD };
	const struct labels *kept;
	struct sd_source host;
	struct world world;
	void *p;

	world_init(&world);
	put(&world, KUBE_PODS, "a/p", pod("a", "p", "10.0.0.1", "n"));
	put(&world, KUBE_PODS, "a/q", pod("a", "q", "10.0.0.2", "n"));
	p = open_source(&world, &c, &host);
	check_targets(&host, "pod/a/p 10.0.0.1:80, pod/a/q 10.0.0.2:80");
	kept = first_targets(&host);

	put(&world, KUBE_PODS, "a/q", pod("a", "q", "10.0.0.3", "n"));
	put(&world, KUBE_PODS, "a/pp", pod("a", "pp", "10.0.0.4", "n"));
	CHECK_INT(host.published, 1);
	run_until_published(&world, &host, 2);
	check_targets(&host, "pod/a/p 10.0.0.1:80, pod/a/pp 10.0.0.4:80, pod/a/q 10.0.0.3:80");
	CHECK(first_targets(&host) == kept); /* not made anew */

	put(&world, KUBE_PODS, "a/pp", NULL);
	put(&world, KUBE_PODS, "a/x", pod("a", "x", "10.0.0.5", "n"));
	put(&world, KUBE_PODS, "a/x", NULL);
	run_until_published(&world, &host, 3);
	check_targets(&host, "pod/a/p 10.0.0.1:80, pod/a/q 10.0.0.3:80");
	close_source(p, &host);
	world_release(&world);
}

TEST(a_stream_of_changes_is_published_five_times_a_second)
{
	struct kubernetes_sd_config c = { .role = KUBE_ROLE_POD };
	struct sd_source host;
	struct world world;
	int64_t began, took;
	char ip[32];
	void *p;

	world_init(&world);
	began = clock_monotonic_ns();
	p = open_source(&world, &c, &host);
	for (int i = 0;; i++) {
		snprintf(ip, sizeof(ip), "10.0.0.%d", i % 250);
		put(&world, KUBE_PODS, "a/p", pod("a", "p", ip, "n"));
		run_for(&world, 2 * NS_PER_MS);
		took = clock_monotonic_ns() - began;
		if ((took >= NS_PER_S && host.published >= 3) || took >= WAIT_NS)
			break;
	}
	CHECK(host.published >= 3 && (int64_t)host.published <= 1 + took / KUBE_PUBLISH_NS);
	close_source(p, &host);
	world_release(&world);
}

/* Each row: a change, and whether the group of endpoints a/e is rebuilt. */
TEST(what_was_joined_makes_a_group_anew)
{
	static const struct {
		enum kube_resource r;
		const char *key, *text;
		bool anew;
	} rows[] = {
		{ KUBE_PODS, "a/p", "{\"metadata\":{\"namespace\":\"a\",\"name\":\"p\"}}", true },
		{ KUBE_PODS, "a/other", "{\"metadata\":{\"namespace\":\"a\",\"name\":\"other\"}}", false },
		{ KUBE_SERVICES, "a/e", "{\"metadata\":{\"namespace\":\"a\",\"name\":\"e\"}}", true },
		{ KUBE_SERVICES, "b/e", "{\"metadata\":{\"namespace\":\"b\",\"name\":\"e\"}}", false },
		{ KUBE_NODES, "n", "{\"metadata\":{\"name\":\"n\"}}", true },
		{ KUBE_NODES, "m", "{\"metadata\":{\"name\":\"m\"}}", false },
		{ KUBE_NAMESPACES, "a", "{\"metadata\":{\"name\":\"a\",\"labels\":{\"k\":\"v\"}}}", true },
		{ KUBE_NAMESPACES, "b", "{\"metadata\":{\"name\":\"b\",\"labels\":{\"k\":\"v\"}}}", false },
		{ KUBE_PODS, "a/p", OWNED("a", "p", "ReplicaSet", "r"), true },
		{ KUBE_REPLICASETS, "b/r", OWNED("b", "r", "Deployment", "d"), false },
		{ KUBE_REPLICASETS, "a/r", OWNED("a", "r", "Deployment", "d"), true },
		{ KUBE_PODS, "a/p", OWNED("a", "p", "Job", "j"), true },
		{ KUBE_JOBS, "a/j", OWNED("a", "j", "CronJob", "c"), true },
		{ KUBE_REPLICASETS, "a/r", NULL, false },
		{ KUBE_PODS, "a/p", NULL, true },
	};
	struct kubernetes_sd_config c = { .role = KUBE_ROLE_ENDPOINTS, .attach = ALL };
	const struct labels *before;
	struct sd_source host;
	struct world world;
	void *p;

	world_init(&world);
	put(&world, KUBE_ENDPOINTS, "a/e",
		"{\"metadata\":{\"namespace\":\"a\",\"name\":\"e\"},\"subsets\":[{\"ports\":[{\"port\":1}],"
		"\"addresses\":[{\"ip\":\"1.1.1.1\",\"nodeName\":\"n\",\"targetRef\":{\"kind\":\"Pod\","
		"\"namespace\":\"a\",\"name\":\"p\"}}]}]}");
	p = open_source(&world, &c, &host);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		before = first_targets(&host);
		put(&world, rows[i].r, rows[i].key, rows[i].text);
		run_until_published(&world, &host, i + 2);
		if ((before != first_targets(&host)) != rows[i].anew)
			CHECK_FAIL("row %zu: %s", i, rows[i].key);
	}
	close_source(p, &host);
	world_release(&world);
}

TEST(namespaces_and_selectors_name_the_watches)
{
	struct str names[] = { STR("b"), STR("a"), STR("b") };
	struct kube_selector selectors[] = {
		{ KUBE_ROLE_POD, STR("app=x"), STR("spec.nodeName=n"), true },
			{ KUBE_ROLE_ENDPOINTSLICE, STR("s"), STR(""), true } };
	struct kubernetes_sd_config c = { .role = KUBE_ROLE_ENDPOINTSLICE,
		.own_namespace = true,
		.cluster.api_server = STR("own"), .namespaces = { names, 3 }, .selectors = { selectors, 2 },
			.attach = ALL };
	struct buf b = { 0 };
	struct sd_source host;
	struct world world;
	void *p;

	world_init(&world);
	p = open_source(&world, &c, &host);
	for (size_t i = 0; i < world.clusters.n; i++)
		buf_printf(&b, "%d %s %s\n", world.clusters.v[i].resource, world.clusters.v[i].namespace,
			world.clusters.v[i].selectors);
	CHECK_STR(buf_str(&b),
		"0  ;\n1  ;\n"
		"2 b app=x;spec.nodeName=n\n3 b ;\n5 b s;\n7 b ;\n8 b ;\n"
		"2 a app=x;spec.nodeName=n\n3 a ;\n5 a s;\n7 a ;\n8 a ;\n"
		"2 own app=x;spec.nodeName=n\n3 own ;\n5 own s;\n7 own ;\n8 own ;\n");
	CHECK_INT(host.published, 1);
	put(&world, KUBE_ENDPOINTSLICES, "own/s", "{}");
	put(&world, KUBE_ENDPOINTSLICES, "a/s", "{}");
	put(&world, KUBE_ENDPOINTSLICES, "other/s", "{}");
	run_until_published(&world, &host, 2);
	check_targets(&host, "endpointslice/a/s, endpointslice/own/s");
	close_source(p, &host);
	buf_release(&b);
	world_release(&world);
}

TEST(nodes_have_no_namespace)
{
	struct str names[] = { STR("a"), STR("b") };
	struct kubernetes_sd_config c = {
		.role = KUBE_ROLE_NODE, .namespaces = { names, 2 }, .attach = ALL
	};
	struct sd_source host;
	struct world world;
	void *p;

	world_init(&world);
	put(&world, KUBE_NODES, "n", "{\"metadata\":{\"name\":\"n\"}}");
	p = open_source(&world, &c, &host);
	CHECK_INT(world.clusters.n, 1);
	check_targets(&host, "node/n");
	close_source(p, &host);
	world_release(&world);
}

TEST(trouble_is_told)
{
	struct kubernetes_sd_config c = { .role = KUBE_ROLE_SERVICE, .own_namespace = true };
	struct source_env env = { 0 };
	struct kube_watch *w;
	struct sd_source host;
	struct world world;
	struct err err;
	void *p;

	world_init(&world);
	env = (struct source_env){ .base = world.base, .shared = &world.clusters };
	CHECK_ERR(kubernetes_sd_ops.open(&env, &c, &host, &p, &err), &err, ERR_INVALID,
		"could not determine the pod's namespace");
	c.own_namespace = false;
	p = open_source(&world, &c, &host);
	w = &world.clusters.v[0];
	err_set(&err, ERR_UNAVAILABLE, "list services: forbidden");
	w->listeners->failed(w->listeners->ctx, w, &err);
	CHECK_STR(str_of(host.failed.msg), "list services: forbidden");
	run_until_published(&world, &host, 1); /* a source that works again says so by publishing */
	w->listeners->works(w->listeners->ctx, w);
	run_until_published(&world, &host, 2);
	close_source(p, &host);
	world_release(&world);
}

/* ---- random changes: a source has the same groups as a new one would have ---- */

static unsigned pick(uint64_t *seed, unsigned n)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (unsigned)(*seed >> 33) % n;
}

static void random_change(struct world *w, uint64_t *seed)
{
	static const char *const kinds[] = { "ReplicaSet", "Job", "Deployment", "CronJob" };
	enum kube_resource r = (enum kube_resource)pick(seed, KUBE_RESOURCES);
	bool named = r == KUBE_NODES || r == KUBE_NAMESPACES;
	char ns = (char)('a' + pick(seed, 3)), name = (char)('a' + pick(seed, 5)), key[8], text[1024];

	snprintf(key, sizeof(key), named ? "%c" : "%c/%c", named ? name : ns, name);
	if (pick(seed, 4) == 0) {
		put(w, r, key, NULL);
		return;
	}
	snprintf(text, sizeof(text),
		"{\"metadata\":{\"name\":\"%c\",\"namespace\":\"%c\",\"labels\":{\"k\":\"%u\","
		"\"kubernetes.io/service-name\":\"%c\"},"
		"\"ownerReferences\":[{\"controller\":true,\"kind\":\"%s\",\"name\":\"%c\"}]},"
		"\"spec\":{\"nodeName\":\"%c\",\"ports\":[{\"port\":%u}],\"containers\":[{\"ports\":["
		"{\"containerPort\":%u}]}],\"rules\":[{\"host\":\"%c\"}]},"
		"\"status\":{\"podIP\":\"10.0.0.%u\",\"addresses\":[{\"type\":\"InternalIP\",\"address\":"
		"\"%u\"}]},"
		"\"subsets\":[{\"ports\":[{\"port\":1},{\"port\":2}],\"addresses\":[{\"ip\":\"%u\","
		"\"targetRef\":{\"kind\":\"Pod\",\"namespace\":\"%c\",\"name\":\"%c\"}}]}],"
		"\"ports\":[{\"port\":1}],\"endpoints\":[{\"addresses\":[\"%u\"],\"nodeName\":\"%c\","
		"\"targetRef\":{\"kind\":\"%s\",\"namespace\":\"%c\",\"name\":\"%c\"}}]}",
		name, ns, pick(seed, 5), 'a' + pick(seed, 5), kinds[pick(seed, 4)], 'a' + pick(seed, 5),
		'a' + pick(seed, 5), pick(seed, 9), pick(seed, 3), 'a' + pick(seed, 9), pick(seed, 9),
		pick(seed, 9), pick(seed, 9), ns, 'a' + pick(seed, 5), pick(seed, 9), 'a' + pick(seed, 5),
		pick(seed, 2) ? "Pod" : "Node", ns, 'a' + pick(seed, 5));
	put(w, r, key, text);
}

TEST(random_changes)
{
	struct str names[] = { STR("c"), STR("a") };
	struct kubernetes_sd_config c[2 * KUBE_ROLES];
	struct sd_source host[2 * KUBE_ROLES], fresh;
	uint64_t seed = 7;
	struct world world;
	void *p[2 * KUBE_ROLES], *q;

	world_init(&world);
	for (int i = 0; i < 2 * KUBE_ROLES; i++) {
		c[i] = (struct kubernetes_sd_config){ .role = (enum kube_role)(i % KUBE_ROLES),
			.attach = ALL };
		if (i >= KUBE_ROLES)
			c[i].namespaces = (struct yaml_list){ names, 2 };
		p[i] = open_source(&world, &c[i], &host[i]);
	}
	for (int round = 0; round < 12; round++) {
		for (unsigned k = pick(&seed, 120); k; k--)
			random_change(&world, &seed);
		run_for(&world, KUBE_PUBLISH_NS + 20 * NS_PER_MS);
		for (int i = 0; i < 2 * KUBE_ROLES; i++) {
			q = open_source(&world, &c[i], &fresh);
			if (!groups_eq(host[i].set, fresh.set))
				CHECK_FAIL("round %d: role %s", round, kube_roles[c[i].role].name);
			close_source(q, &fresh);
		}
	}
	for (int i = 0; i < 2 * KUBE_ROLES; i++)
		close_source(p[i], &host[i]);
	world_release(&world);
}
