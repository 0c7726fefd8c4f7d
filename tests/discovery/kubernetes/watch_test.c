/* Watches against an API server whose answers each test sets. */
#include "discovery/kubernetes/watch.h"

#include <event2/event.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "discovery/kubernetes/cluster.h"
#include "discovery/kubernetes/watch_internal.h"
#include "tests/check.h"
#include "tests/discovery/kubernetes/kube_server.h"
#include "tests/wait.h"

#define POD(ns, name, uid, version) \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"" ns "\",\"uid\":\"" uid \
	"\",\"resourceVersion\":\"" version "\"},\"status\":{\"podIP\":\"" version "\"}}"
#define LIST(version, more, items) \
	"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" more \
	"\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(version) EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" version "\"}}")
#define ERROR_410 EVENT("ERROR", "{\"code\":410,\"message\":\"too old resource version: 1 (5)\"}")
#define STATUS(message) "{\"kind\":\"Status\",\"message\":\"" message "\"}"
#define FROM_CACHE "/api/v1/pods?limit=500&resourceVersion=0"
#define WATCH_FROM(version) \
	"/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=" version "&timeoutSeconds="

struct ear {
	struct kube_listener listener;
	struct kube_watch *watch;
	struct buf heard;
	bool release_on_change;
};

static struct event_base *base;
static struct http_client *http;
static struct kube_clusters *clusters;
static struct kube_server server;
static struct kube_access access_;
static struct arena arena;
static struct ear ear, other;

static const struct kube_watch_key pods = { .resource = KUBE_PODS,
	.namespace = STR(""), .label_selector = STR(""), .field_selector = STR("") };

static void changed(void *ctx, const struct kube_watch *w, struct str key, const json_t *object)
{
	struct ear *e = ctx;
	const char *ip = json_string_value(json_object_get(json_object_get(object, "status"), "podIP"));

	CHECK(kube_watch_get(w, key) == object);
	if (object)
		buf_printf(&e->heard, "+" STR_FMT " %s\n", STR_ARG(key), ip ? ip : "");
	else
		buf_printf(&e->heard, "-" STR_FMT "\n", STR_ARG(key));
	if (e->release_on_change) {
		kube_watch_release(e->watch, &e->listener);
		e->watch = NULL;
	}
}

static void synced(void *ctx, const struct kube_watch *w)
{
	struct ear *e = ctx;

	CHECK(kube_watch_synced(w));
	buf_add_cstr(&e->heard, "synced\n");
}

static void failed(void *ctx, const struct kube_watch *w, const struct err *why)
{
	struct ear *e = ctx;

	buf_printf(&e->heard, "failed: %s\n", why->msg);
}

static void works(void *ctx, const struct kube_watch *w)
{
	struct ear *e = ctx;

	buf_add_cstr(&e->heard, "works\n");
}

static void acquire(struct ear *e, const struct kube_watch_key *key)
{
	struct err err;

	e->listener = (struct kube_listener){ changed, synced, failed, works, e, NULL };
	CHECK_OK(kube_watch_acquire(clusters, &access_, key, &e->listener, &e->watch, &err), &err);
}

static void release(struct ear *e)
{
	kube_watch_release(e->watch, &e->listener);
	e->watch = NULL;
}

static bool start(void)
{
	struct http_client_options o = { 0 };
	struct kube_cluster_config config = { .kubeconfig_file = STR("") };
	struct err err;

	arena_init(&arena, 0);
	ear = other = (struct ear){ 0 };
	o.base = base = event_base_new();
	if (!base || http_client_open(&o, &http, &err) ||
		kube_clusters_open(base, http, &clusters, &err) || !kube_server_start(&server, base))
		return false;
	clusters->timing.backoff_min_ns = 20 * NS_PER_MS;
	clusters->timing.linger_ns = 100 * NS_PER_MS;
	config.http.follow_redirects = true;
	config.api_server = str_of(arena_printf(&arena, "http://127.0.0.1:%u/", server.port));
	return kube_access_make(&config, NULL, &arena, &access_, &err) == ERR_OK;
}

static void stop(void)
{
	release(&ear);
	release(&other);
	kube_clusters_close(clusters);
	http_client_close(http);
	CHECK_INT(server.unexpected, 0);
	if (server.unexpected)
		printf("  requests:\n" STR_FMT, STR_ARG(buf_str(&server.log)));
	kube_server_stop(&server);
	event_base_free(base);
	buf_release(&ear.heard);
	buf_release(&other.heard);
	arena_release(&arena);
}

static void on_tick(evutil_socket_t fd, short what, void *ctx) {}

/* Runs the loop until the ear has heard this and nothing else. */
static void expect(struct ear *e, const char *want)
{
	int64_t until = clock_monotonic_ns() + WAIT_NS;
	struct event *tick = event_new(base, -1, EV_PERSIST, on_tick, NULL);

	event_add(tick, &(struct timeval){ 0, 10000 });
	while (!str_is(buf_str(&e->heard), want) && clock_monotonic_ns() < until)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(tick);
	CHECK_STR(buf_str(&e->heard), want);
	buf_clear(&e->heard);
}

static void run(int64_t ns)
{
	event_base_loopexit(base, &(struct timeval){ ns / NS_PER_S, ns % NS_PER_S / 1000 });
	event_base_dispatch(base);
}

/* Runs the loop until this is true. */
#define RUN_UNTIL(cond) WAIT_FOR((run(5 * NS_PER_MS), (cond)))

/* Until a stream of this match is held. */
static void wait_stream(const char *match)
{
	CHECK(RUN_UNTIL(kube_server_holds(&server, match)));
}

static void add(const char *match, int status, enum kube_end end, const char *body)
{
	kube_server_add(
		&server, (struct kube_step){ .match = match, .status = status, .end = end, .body = body });
}

static void push(const char *match, const char *text)
{
	CHECK(kube_server_push(&server, match, str_of(text)));
}

TEST(paths)
{
	static const struct {
		struct kube_watch_key key;
		const char *path;
	} rows[] = {
		{ { KUBE_NODES, STR(""), STR(""), STR("") }, "/api/v1/nodes" },
			{ { KUBE_NAMESPACES, STR(""), STR(""), STR("") }, "/api/v1/namespaces" },
				{ { KUBE_PODS, STR("a-b"), STR(""), STR("") }, "/api/v1/namespaces/a-b/pods" },
					{ { KUBE_SERVICES, STR(""), STR(""), STR("") }, "/api/v1/services" },
						{ { KUBE_ENDPOINTS,
							STR("x"), STR(""), STR("") }, "/api/v1/namespaces/x/endpoints" },
							{ { KUBE_ENDPOINTSLICES,
								STR("x"), STR(""), STR("") },
									"/apis/discovery.k8s.io/v1/namespaces/x/endpointslices" },
								{ { KUBE_INGRESSES,
									STR(""), STR(""), STR("") },
										"/apis/networking.k8s.io/v1/ingresses" },
								};
	char list[256], watch[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REQUIRE(start());
		snprintf(list, sizeof(list), "%s?limit=500&resourceVersion=0", rows[i].path);
		snprintf(watch, sizeof(watch),
			"%s?watch=1&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=", rows[i].path);
		add(list, 200, KUBE_WHOLE, LIST("7", "", ""));
		add(watch, 200, KUBE_HOLD, "");
		acquire(&ear, &rows[i].key);
		expect(&ear, "synced\n");
		wait_stream(watch);
		stop();
	}
}

TEST(selectors_are_escaped)
{
	static const char list[] = FROM_CACHE
		"&labelSelector=app%20in%20%28a%2Cb%29&fieldSelector=status.phase%3DRunning";
	struct kube_watch_key key = pods;
	unsigned long seconds;

	REQUIRE(start());
	key.label_selector = STR("app in (a,b)");
	key.field_selector = STR("status.phase=Running");
	add(list, 200, KUBE_WHOLE, LIST("7", "", ""));
	add("&labelSelector=app%20in%20%28a%2Cb%29&fieldSelector=status.phase%3DRunning", 200,
		KUBE_HOLD, "");
	acquire(&ear, &key);
	expect(&ear, "synced\n");
	wait_stream("labelSelector");
	seconds = strtoul(strstr(server.log.ptr, "timeoutSeconds=") + 15, NULL, 10);
	CHECK(seconds >= 300 && seconds <= 600);
	stop();
}

TEST(names_of_namespaces)
{
	struct kube_watch_key key = pods, nodes = { KUBE_NODES, STR("x"), STR(""), STR("") };
	struct err err;

	REQUIRE(start());
	key.namespace = STR("../nodes?");
	CHECK_ERR(kube_watch_acquire(clusters, &access_, &key, &ear.listener, &ear.watch, &err), &err,
		ERR_INVALID, "\"../nodes?\" is not a valid namespace");
	CHECK_ERR(kube_watch_acquire(clusters, &access_, &nodes, &ear.listener, &ear.watch, &err), &err,
		ERR_INVALID, "nodes have no namespace");
	stop();
}

TEST(a_list_in_pages_and_then_changes)
{
	static const char *const text = EVENT("ADDED", POD("n", "c", "u3", "11"))
		EVENT("MODIFIED", POD("n", "a", "u1", "12")) EVENT("DELETED", POD("n", "b", "u2", "13"))
			EVENT("DELETED", POD("n", "never", "u9", "14"))
				EVENT("UNHEARD-OF", "{}") "\n" EVENT("MODIFIED", POD("n", "a", "u1", "12"))
					BOOKMARK("20");

	REQUIRE(start());
	add(FROM_CACHE, 200, KUBE_WHOLE, LIST("10", "more/+", POD("n", "b", "u2", "2")));
	add("/api/v1/pods?limit=500&continue=more%2F%2B", 200, KUBE_CLEAN,
		LIST("10", "", POD("n", "a", "u1", "1")));
	add(WATCH_FROM("10"), 200, KUBE_HOLD, "");
	add(WATCH_FROM("20"), 200, KUBE_HOLD, "");
	acquire(&ear, &pods);
	CHECK(!kube_watch_synced(ear.watch));
	expect(&ear, "+n/b 2\n+n/a 1\nsynced\n");
	wait_stream(WATCH_FROM("10"));
	for (const char *c = text; *c; c++) { /* cut everywhere */
		REQUIRE(kube_server_push(&server, "=10&", (struct str){ c, 1 }));
		if ((c - text) % 16 == 0)
			run(NS_PER_MS);
	}
	expect(&ear, "+n/c 11\n+n/a 12\n-n/b\n");
	CHECK_INT(kube_watch_size(ear.watch), 2);
	run(20 * NS_PER_MS);
	CHECK(kube_server_end(&server, "=10&", KUBE_CLEAN));
	wait_stream(WATCH_FROM("20"));
	stop();
}

static bool add_key(void *ctx, struct str key, const json_t *object)
{
	buf_printf(ctx, STR_FMT " ", STR_ARG(key));
	return !str_is(key, "n/m");
}

TEST(objects_in_the_order_of_their_keys)
{
	struct buf got = { 0 };

	REQUIRE(start());
	add(FROM_CACHE, 200, KUBE_WHOLE,
		LIST("1", "",
			POD("n", "z", "1", "1") "," POD("n", "m", "2", "1") "," POD("a", "x", "3", "1")));
	add(WATCH_FROM("1"), 200, KUBE_HOLD, EVENT("ADDED", POD("n", "b", "4", "2")));
	acquire(&ear, &pods);
	expect(&ear, "+n/z 1\n+n/m 1\n+a/x 1\nsynced\n+n/b 2\n");
	kube_watch_each(ear.watch, add_key, &got);
	CHECK_STR(buf_str(&got), "a/x n/b n/m ");
	buf_clear(&got);
	push("=1&", EVENT("DELETED", POD("n", "b", "4", "3")) EVENT("ADDED", POD("b", "b", "5", "4")));
	expect(&ear, "-n/b\n+b/b 4\n");
	kube_watch_each(ear.watch, add_key, &got);
	CHECK_STR(buf_str(&got), "a/x b/b n/m ");
	CHECK(!kube_watch_get(ear.watch, STR("n/b")) && kube_watch_get(ear.watch, STR("n/z")));
	buf_release(&got);
	stop();
}

/* The version expires in the middle of a list: the next list has one page. */
TEST(a_page_that_is_gone)
{
	REQUIRE(start());
	add(FROM_CACHE, 200, KUBE_WHOLE, LIST("10", "m", POD("n", "old", "u2", "2")));
	add("continue=m", 410, KUBE_WHOLE, STATUS("The provided continue parameter is too old"));
	add("/api/v1/pods?resourceVersion=0", 200, KUBE_WHOLE,
		LIST("12", "", POD("n", "a", "u1", "1")));
	add(WATCH_FROM("12"), 200, KUBE_HOLD, "");
	acquire(&ear, &pods);
	expect(&ear, "+n/a 1\nsynced\n");
	wait_stream("=12&");
	stop();
}

/* The new list reports objects that changed meanwhile, and no others. */
TEST(a_version_that_is_gone)
{
	static const enum kube_end how[] = { KUBE_HOLD, KUBE_WHOLE };

	for (size_t i = 0; i < 2; i++) {
		REQUIRE(start());
		add(FROM_CACHE, 200, KUBE_WHOLE,
			LIST("5", "",
				POD("n", "same", "1", "1") "," POD("n", "new", "2", "2") "," POD(
					"n", "gone", "3", "3") "," POD("n", "again", "4", "4")));
		add(WATCH_FROM("5"), how[i] == KUBE_HOLD ? 200 : 410, how[i], ERROR_410);
		add("/api/v1/pods?limit=500", 200, KUBE_WHOLE,
			LIST("9", "",
				POD("n", "again", "5", "4") "," POD("n", "same", "1", "1") "," POD(
					"n", "new", "2", "8")));
		add(WATCH_FROM("9"), 200, KUBE_HOLD, "");
		acquire(&ear, &pods);
		expect(&ear,
			"+n/same 1\n+n/new 2\n+n/gone 3\n+n/again 4\nsynced\n"
			"+n/again 4\n+n/new 8\n-n/gone\n");
		wait_stream("=9&");
		CHECK(strstr(server.log.ptr, "/api/v1/pods?limit=500\n"));
		stop();
	}
}

TEST(an_endless_410_does_not_spin)
{
	int64_t began = clock_monotonic_ns();

	REQUIRE(start());
	kube_server_add(&server,
		(struct kube_step){
			.match = "?limit=500", .times = UINT32_MAX, .body = LIST("5", "", "") });
	kube_server_add(&server,
		(struct kube_step){
			.match = "watch=1", .times = UINT32_MAX, .end = KUBE_CLEAN, .body = ERROR_410 });
	acquire(&ear, &pods);
	run(500 * NS_PER_MS);
	CHECK(RUN_UNTIL(server.requests >= 6));
	CHECK(server.requests * 500 * NS_PER_MS <= 16 * (clock_monotonic_ns() - began));
	stop();
}

TEST(a_stream_cut_in_a_line_goes_on_where_it_stood)
{
	REQUIRE(start());
	add(FROM_CACHE, 200, KUBE_WHOLE, LIST("5", "", ""));
	add(WATCH_FROM("5"), 200, KUBE_CUT,
		EVENT("ADDED", POD("n", "a", "1", "6")) "{\"type\":\"ADDED\",\"obj");
	add(WATCH_FROM("6"), 200, KUBE_HOLD, EVENT("ADDED", POD("n", "b", "2", "7")));
	acquire(&ear, &pods);
	expect(&ear, "synced\n+n/a 6\n+n/b 7\n");
	stop();
}

TEST(a_silent_stream_is_taken_up_again)
{
	REQUIRE(start());
	clusters->timing.watch_idle_ns = NS_PER_S;
	add(FROM_CACHE, 200, KUBE_WHOLE, LIST("5", "", ""));
	for (int i = 0; i < 20; i++) { /* on a busy machine it is silent before its first event */
		add(WATCH_FROM("5"), 200, KUBE_HOLD, BOOKMARK("6"));
		add(WATCH_FROM("6"), 200, KUBE_HOLD, EVENT("ADDED", POD("n", "b", "2", "7")));
	}
	acquire(&ear, &pods);
	expect(&ear, "synced\n+n/b 7\n");
	stop();
}

TEST(failures_are_told_and_tried_again)
{
	REQUIRE(start());
	clusters->timing.quiet_ns = NS_PER_HOUR;
	add(FROM_CACHE, 500, KUBE_WHOLE, "not JSON");
	add(FROM_CACHE, 403, KUBE_WHOLE, STATUS("pods is forbidden: no RBAC"));
	add(FROM_CACHE, 401, KUBE_WHOLE, STATUS("Unauthorized"));
	add(FROM_CACHE, 200, KUBE_WHOLE, "{\"kind\":\"Pod\"}");
	add(FROM_CACHE, 200, KUBE_WHOLE, LIST("5", "", "{\"metadata\":{}}"));
	add(FROM_CACHE, 200, KUBE_WHOLE, LIST("5", "", "{]"));
	add(FROM_CACHE, 200, KUBE_CUT, "{\"items\":[" POD("n", "x", "1", "1"));
	add(FROM_CACHE, 200, KUBE_WHOLE, LIST("5", "", ""));
	add(WATCH_FROM("5"), 503, KUBE_WHOLE, "");
	add(WATCH_FROM("5"), 200, KUBE_CLEAN, "");
	add(WATCH_FROM("5"), 200, KUBE_HOLD, EVENT("ERROR", "{\"code\":500,\"message\":\"etcd\"}"));
	add(WATCH_FROM("5"), 200, KUBE_HOLD, "what?\n");
	add("/api/v1/pods?limit=500", 200, KUBE_WHOLE, LIST("8", "", POD("n", "a", "1", "6")));
	add(WATCH_FROM("8"), 200, KUBE_HOLD, "");
	acquire(&ear, &pods);
	clusters->timing.backoff_max_ns = 40 * NS_PER_MS;
	expect(&ear,
		arena_printf(&arena,
			"failed: list pods: server returned HTTP status 500 Said So\n"
			"failed: list pods: server returned HTTP status 403 Said So: pods is forbidden: no "
			"RBAC\n"
			"failed: list pods: server returned HTTP status 401 Said So: Unauthorized\n"
			"failed: list pods: not a list: it has no resourceVersion\n"
			"failed: list pods: an object without a valid name\n"
			"failed: list pods: not JSON: string or '}' expected near ']'\n"
			"failed: list pods: read 127.0.0.1:%u: unexpected EOF\n"
			"synced\nworks\n"
			"failed: watch pods: server returned HTTP status 503 Said So\n"
			"failed: watch pods: server closed the stream at once\n"
			"failed: watch pods: server ended the stream: 500 etcd\n"
			"failed: watch pods: not JSON: '[' or '{' expected near 'what'\n"
			"+n/a 6\nworks\n",
			server.port));
	stop();
}

TEST(a_server_that_asks_for_patience)
{
	int64_t start_ns;

	REQUIRE(start());
	kube_server_add(&server,
		(struct kube_step){
			.match = FROM_CACHE, .status = 429, .body = STATUS("slow down"), .retry_after = "1" });
	add(FROM_CACHE, 200, KUBE_WHOLE, LIST("5", "", ""));
	add(WATCH_FROM("5"), 200, KUBE_HOLD, "");
	start_ns = clock_monotonic_ns();
	acquire(&ear, &pods);
	expect(&ear,
		"failed: list pods: server returned HTTP status 429 Said So: slow down\n"
		"synced\nworks\n");
	CHECK(clock_monotonic_ns() - start_ns >= 900 * NS_PER_MS);
	stop();
}

TEST(delays_grow)
{
	int64_t began = clock_monotonic_ns();

	REQUIRE(start());
	kube_server_add(
		&server, (struct kube_step){ .match = FROM_CACHE, .status = 500, .times = UINT32_MAX });
	acquire(&ear, &pods);
	run(600 * NS_PER_MS); /* 20, 40, 80, 160, 320 ms, and up to half as much again */
	CHECK(RUN_UNTIL(server.requests >= 4));
	CHECK(((1 << (server.requests - 1)) - 1) * 20 * NS_PER_MS <= clock_monotonic_ns() - began);
	stop();
}

static bool is_version(const struct kube_watch *w, const char *key, const char *version)
{
	const json_t *object = kube_watch_get(w, str_of(key));

	return object &&
		strcmp(json_string_value(
				   json_object_get(json_object_get(object, "metadata"), "resourceVersion")),
			version) == 0;
}

TEST(who_asks_for_the_same_shares_it)
{
	struct kube_watch *watch;
	struct kube_access mine;

	REQUIRE(start());
	clusters->timing.linger_ns = NS_PER_HOUR;
	mine = access_;
	add(FROM_CACHE, 200, KUBE_WHOLE, LIST("5", "", POD("n", "a", "1", "1")));
	add(WATCH_FROM("5"), 200, KUBE_HOLD, "");
	acquire(&ear, &pods);
	acquire(&other, &pods);
	CHECK(ear.watch == other.watch);
	expect(&ear, "+n/a 1\nsynced\n");
	expect(&other, "+n/a 1\nsynced\n");
	wait_stream("=5&");
	push("=5&", EVENT("MODIFIED", POD("n", "a", "1", "6")));
	expect(&ear, "+n/a 6\n");
	expect(&other, "+n/a 6\n");

	watch = ear.watch;
	release(&ear); /* the last one: within the time it lingers it is taken up as it was */
	release(&other);
	CHECK(evtimer_pending(watch->linger, NULL));
	run(50 * NS_PER_MS);
	push("=5&", EVENT("MODIFIED", POD("n", "a", "1", "7")));
	CHECK(RUN_UNTIL(is_version(watch, "n/a", "7")));
	acquire(&ear, &pods);
	CHECK(ear.watch == watch && !evtimer_pending(watch->linger, NULL));
	CHECK(kube_watch_synced(ear.watch) && kube_watch_get(ear.watch, STR("n/a")));
	run(50 * NS_PER_MS);
	CHECK_STR(buf_str(&ear.heard), "");
	CHECK(kube_server_holds(&server, "=5&"));
	CHECK_INT(server.requests, 2);

	add(FROM_CACHE, 200, KUBE_WHOLE, LIST("8", "", ""));
	add(WATCH_FROM("8"), 200, KUBE_HOLD, "");
	access_.identity = STR("somebody else");
	acquire(&other, &pods);
	CHECK(ear.watch != other.watch);
	expect(&other, "synced\n");
	access_ = mine;
	clusters->timing.linger_ns = 100 * NS_PER_MS;
	release(&ear);
	CHECK(RUN_UNTIL(!kube_server_holds(&server, "=5&"))); /* and then it ends */
	stop();
}

TEST(released_while_it_is_told)
{
	REQUIRE(start());
	add(FROM_CACHE, 200, KUBE_WHOLE,
		LIST("5", "", POD("n", "a", "1", "1") "," POD("n", "b", "2", "2")));
	add(WATCH_FROM("5"), 200, KUBE_HOLD, "");
	ear.release_on_change = other.release_on_change = true;
	acquire(&ear, &pods);
	acquire(&other, &pods);
	expect(&ear, "+n/a 1\n");
	expect(&other, "+n/a 1\n");
	CHECK(RUN_UNTIL(LIST_EMPTY(&clusters->watches)));
	stop();
}

TEST(tokens_are_read_for_each_request)
{
	char dir[] = "/tmp/epimetheus-kube-XXXXXX", path[64];
	struct err err;

	REQUIRE(start() && mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/token", dir);
	access_.http.has_authorization = true;
	access_.http.auth_type = STR("Bearer");
	access_.http.credentials_file = str_of(path);
	add(FROM_CACHE, 200, KUBE_WHOLE, LIST("5", "", ""));
	add(WATCH_FROM("5"), 200, KUBE_HOLD, BOOKMARK("6"));
	add(WATCH_FROM("6"), 200, KUBE_HOLD, "");
	acquire(&ear, &pods);
	expect(&ear,
		arena_printf(&arena,
			"failed: list pods: unable to read authorization "
			"credentials file: open %s: No such file or directory\n",
			path));
	CHECK_OK(fs_write_file(&fs_posix, path, STR("one\n"), &err), &err);
	expect(&ear, "synced\nworks\n");
	wait_stream("=5&");
	CHECK_OK(fs_write_file(&fs_posix, path, STR("two\n"), &err), &err);
	run(20 * NS_PER_MS);
	CHECK(kube_server_end(&server, "=5&", KUBE_CLEAN));
	wait_stream("=6&");
	CHECK_STR(buf_str(&server.auth), "Bearer one\nBearer one\nBearer two\n");
	stop();
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
}

TEST(a_server_that_is_not_there)
{
	REQUIRE(start());
	access_.server = STR("http://127.0.0.1:1");
	acquire(&ear, &pods);
	expect(&ear, "failed: list pods: connect 127.0.0.1:1: Connection refused\n");
	stop();
}
