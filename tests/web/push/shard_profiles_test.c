/*
 * Pushes to a shard that does not keep them: three real servers with databases. `alone` stores all
 * that it gets; `door` sends all on to `keeper`. What door answers is what alone answers, and what
 * keeper has is what alone has.
 */
#include "scrape/forward/push_entries.h"
#include "scrape/forward/push_router.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/asking.h"
#include "tests/web/storage.h"

#define SECRET "0123456789abcdef0123456789abcdef"
#define PATH "/api/v1/shard/profiles"
#define AS_SHARD "Authorization: Bearer " SECRET "\r\n"

/* ---- three servers ---- */

struct place {
	struct storage storage;
	struct web *web;
	struct push_router router; /* of door */
};

static struct place alone, door, keeper;
static struct response r;

static struct {
	atomic_int keeper_owns; /* by its own view */
	atomic_uint keeper_view; /* the number of its assignment; door has 5 */
	atomic_bool split; /* door keeps half of all itself */
	char address[64]; /* of keeper */
} world;

static enum err_code door_owner(
	void *ctx, uint64_t hash, int64_t ts_ns, struct push_owner *out, struct err *err)
{
	(void)ctx;
	(void)ts_ns;
	(void)err;
	*out = (struct push_owner){
		.name = "shard-1", .own = atomic_load(&world.split) && hash % 2, .assignment = 5
	};
	memcpy(out->address, world.address, sizeof(world.address));
	return ERR_OK;
}

static enum err_code keeper_owner(
	void *ctx, uint64_t hash, int64_t ts_ns, struct push_owner *out, struct err *err)
{
	(void)ctx;
	(void)hash;
	(void)ts_ns;
	(void)err;
	*out = (struct push_owner){ .name = "shard-2",
		.own = atomic_load(&world.keeper_owns),
		.assignment = atomic_load(&world.keeper_view) };
	return ERR_OK;
}

static void nobody_failed(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
}

static void secret(void *ctx, char out[PUSH_SECRET_BYTES])
{
	(void)ctx;
	memcpy(out, SECRET, PUSH_SECRET_BYTES);
}

static const struct push_assignment door_assignment = { NULL, door_owner, nobody_failed, secret },
									keeper_assignment = { NULL, keeper_owner, nobody_failed,
										secret };

static void start_web(struct place *p, struct web_options w)
{
	w.listen_address = "127.0.0.1:0";
	w.enable_ingest = true;
	w.db = p->storage.db;
	w.engine = p->storage.engine;
	p->web = asking_open(&w);
	web_set_ready(p->web, true);
}

static void start_keeper(void)
{
	start_web(&keeper,
		(struct web_options){ .sink = &keeper.storage.sink.sink,
			.assignment = &keeper_assignment,
			.shard_sink = &keeper.storage.sink.sink });
	snprintf(world.address, sizeof(world.address), "http://127.0.0.1:%u", web_port(keeper.web));
}

static void start_all(void)
{
	struct push_router_options o = { &door.storage.sink.sink, &door_assignment, NULL };
	struct err err;

	atomic_store(&world.split, false);
	atomic_store(&world.keeper_owns, true);
	atomic_store(&world.keeper_view, 5);
	storage_open(&alone.storage);
	storage_open(&door.storage);
	storage_open(&keeper.storage);
	start_keeper();
	must(push_router_open(&door.router, &o, &err), &err);
	start_web(&door,
		(struct web_options){ .sink = &door.router.sink,
			.assignment = &door_assignment,
			.shard_sink = &door.storage.sink.sink });
	start_web(&alone, (struct web_options){ .sink = &alone.storage.sink.sink });
}

static void stop_all(void)
{
	push_router_stop(&door.router);
	web_close(door.web);
	push_router_close(&door.router);
	web_close(keeper.web);
	web_close(alone.web);
	storage_close(&alone.storage);
	storage_close(&door.storage);
	storage_close(&keeper.storage);
	response_release(&r);
}

/* ---- pushing and asking ---- */

static int push_to(const struct place *p, const char *path, const char *headers, struct str body)
{
	char request[512];

	snprintf(request, sizeof(request), "POST %s", path);
	peer_ask(web_port(p->web), &r, request, headers, body);
	return r.status;
}

static void ask(const struct place *p, const char *path, struct buf *out)
{
	char request[1024];

	snprintf(request, sizeof(request), "GET %s", path);
	peer_ask(web_port(p->web), &r, request, "", STR(""));
	if (r.status != 200)
		CHECK_FAIL("%s: %d " STR_FMT, path, r.status, STR_ARG(buf_str(&r.body)));
	buf_add_str(out, buf_str(&r.body));
	buf_add_char(out, '\n');
}

#define SPAN "&start=1000000000&end=2000000000"

/* OTLP with a link of a sample to a span. */
static const char linked[] =
	"{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{"
	"\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2},\"timeUnixNano\":"
	"\"1795326350000000000\",\"samples\":[{\"stackIndex\":1,\"linkIndex\":1,\"values\":[\"1\"]},"
	"{\"stackIndex\":1,\"values\":[\"8\"]}]}]}]}],"
	"\"dictionary\":{\"stringTable\":[\"\",\"samples\",\"count\",\"main.main\"],"
	"\"mappingTable\":[{}],\"functionTable\":[{},{\"nameStrindex\":3}],"
	"\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1}]}],"
	"\"stackTable\":[{},{\"locationIndices\":[1]}],"
	"\"linkTable\":[{},{\"traceId\":\"000102030405060708090a0b0c0d0e0f\",\"spanId\":"
	"\"a0a1a2a3a4a5a6a7\"}]}}";

/* All that a server has, by several questions. */
static void everything(const struct place *p, struct buf *out)
{
	static const char *const names[] = { "cpu:samples", "cpu:cpu", "memory:inuse_space",
		"memory:alloc_space", "memory:alloc_objects", "memory:alloc_in_new_tlab_bytes",
		"mutex:delay", "mutex:contentions", "goroutine", "wall" };
	char path[512];

	buf_clear(out);
	ask(p, "/api/v1/series?match%5B%5D=%7B__name__!%3D%22%22%7D" SPAN, out);
	ask(p, "/api/v1/profile_types?x=1" SPAN, out);
	ask(p, "/api/v1/links?x=1" SPAN, out);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "/api/v1/query?query=%s&max_nodes=100000" SPAN, names[i]);
		ask(p, path, out);
	}
}

static const struct {
	const char *path, *headers, *file;
	unsigned times;
} forms[] = {
	{ "/api/v1/ingest?name=memory&job=go&time=1795326350&cumulative=true&interval=10s", "",
		"tests/proto/testdata/go_heap.pb.gz", 1 },
	{ "/api/v1/ingest?name=memory&job=go&time=1795326360&cumulative=true&interval=10s", "",
		"tests/proto/testdata/go_allocs.pb.gz", 1 },
	{ "/api/v1/ingest?name=cpu&job=go&region=eu&time=1795326350.5", "",
		"tests/proto/testdata/go_cpu.pb.gz", 2 },
	{ "/api/v1/ingest?name=goroutine&job=levels&time=1795326350", "",
		"tests/proto/testdata/go_goroutine.pb.gz", 1 },
	{ "/api/v1/ingest?name=goroutine&job=levels&time=1795326370", "",
		"tests/proto/testdata/go_goroutine.pb.gz", 1 },
	{ "/api/v1/ingest?job=java&time=1795326350", "", "tests/proto/jfr/recordings/agent.jfr.gz", 2 },
	{ "/ingest?name=shop%7Bpod=a%7D&from=1795326340&until=1795326350&format=jfr", "",
		"tests/proto/jfr/recordings/wall.jfr.gz", 2 },
	{ "/ingest?name=py.cpu&from=1795326340&until=1795326350&format=folded", "",
		"tests/proto/folded/testdata/folded", 2 },
	{ "/ingest?name=shop&from=1795326340&until=1795326350&format=pprof", "",
		"tests/proto/testdata/go_mutex.pb.gz", 2 },
	{ "/v1development/profiles",
		"Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n",
		"tests/proto/otlp/testdata/p2-standalone-99hz-steady.pb.gz", 2 },
	{ "/v1development/profiles", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
		"tests/proto/otlp/testdata/p5-collector-49hz.json.gz", 1 },
	{ "/v1development/profiles", "Content-Type: application/x-protobuf\r\n",
		"tests/fuzz/otlp/drawn.pb", 1 },
	{ "/v1development/profiles", "Content-Type: application/json\r\n", NULL, 2 }, /* linked */
	{ "/api/0/profiles?service=old&type=heap&created_at=2026-11-22T03:45:50", "",
		"tests/proto/testdata/go_heap.pb.gz", 2 },
	/* refused: by the form, by its labels, by its time */
	{ "/api/v1/ingest?name=cpu&job=go&time=1795326350", "", "tests/run.sh", 1 },
	{ "/api/v1/ingest?name=cpu&job=go&time=9", "", "tests/proto/testdata/go_cpu.pb.gz", 1 },
	{ "/ingest?name=shop&until=1995326350&format=pprof", "", "tests/proto/testdata/go_mutex.pb.gz",
		1 },
};

static void read_form(size_t i, struct buf *body)
{
	struct err err;

	buf_clear(body);
	if (forms[i].file)
		must(fs_read_file(forms[i].file, 1u << 22, body, &err), &err);
	else
		buf_add_cstr(body, linked);
}

static bool same_answers(size_t i, struct str body)
{
	struct buf want = { 0 };
	int status = push_to(&alone, forms[i].path, forms[i].headers, body);
	bool same;

	buf_add_str(&want, buf_str(&r.body));
	same = push_to(&door, forms[i].path, forms[i].headers, body) == status &&
		str_eq(buf_str(&want), buf_str(&r.body));
	if (!same)
		CHECK_FAIL("%s %s: %d " STR_FMT ", alone %d " STR_FMT, forms[i].path,
			forms[i].file ? forms[i].file : "linked", r.status, STR_ARG(buf_str(&r.body)), status,
			STR_ARG(buf_str(&want)));
	buf_release(&want);
	return same && status == 200;
}

TEST(all_forms_are_stored_as_if_they_had_been_sent_there)
{
	struct buf body = { 0 }, want = { 0 }, got = { 0 };
	size_t stored = 0;

	start_all();
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		read_form(i, &body);
		for (unsigned k = 0; k < forms[i].times; k++) /* again: it is stored once */
			stored += same_answers(i, buf_str(&body));
	}
	CHECK(stored > 15);
	everything(&alone, &want);
	everything(&keeper, &got);
	CHECK(want.len > 50000);
	CHECK(str_find(buf_str(&want), STR("\"span_id\":\"a0a1a2a3a4a5a6a7\"")) > 0);
	CHECK(str_eq(buf_str(&want), buf_str(&got)));
	/* What went straight to the keeper as well is still there once. */
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (strstr(forms[i].path, "cumulative"))
			continue; /* the one before it is another now */
		read_form(i, &body);
		(void)push_to(&keeper, forms[i].path, forms[i].headers, buf_str(&body));
	}
	everything(&keeper, &got);
	CHECK(str_eq(buf_str(&want), buf_str(&got)));
	buf_clear(&got);
	ask(&door, "/api/v1/series?match%5B%5D=%7B__name__!%3D%22%22%7D" SPAN, &got);
	CHECK_STR(buf_str(&got), "{\"status\":\"success\",\"data\":[]}\n\n");
	buf_release(&body);
	buf_release(&want);
	buf_release(&got);
	stop_all();
}

/* Senders are listed where they sent to, and not where it was stored. */
TEST(senders_are_those_of_the_door)
{
	struct buf gz = { 0 }, got = { 0 };

	start_all();
	profile_gz(&gz, &(struct pushed_profile){ .cpu = true, .slow = 1, .own = 2, .leaf = "a" });
	CHECK_INT(
		push_to(&door, "/api/v1/ingest?name=cpu&job=a&time=1795326350", "", buf_str(&gz)), 200);
	ask(&door, "/api/v1/senders", &got);
	CHECK(str_find(buf_str(&got), STR("\"path\":\"/api/v1/ingest\"")) > 0);
	buf_clear(&got);
	ask(&keeper, "/api/v1/senders", &got);
	CHECK(str_find(buf_str(&got), STR("\"senders\":[]")) > 0);
	buf_release(&gz);
	buf_release(&got);
	stop_all();
}

/* ---- profiles of one series and time ---- */

static int push_value(const struct place *p, int64_t value)
{
	struct buf gz = { 0 };
	int status;

	profile_gz(&gz, &(struct pushed_profile){ .cpu = true, .slow = value, .own = 1, .leaf = "a" });
	status = push_to(p, "/api/v1/ingest?name=cpu&job=a&time=1795326350", "", buf_str(&gz));
	buf_release(&gz);
	return status;
}

static double total_of(const struct place *p)
{
	struct buf got = { 0 };
	const char *at;
	double v = -1;

	ask(p, "/api/v1/query?query=total(cpu:samples%5B1h%5D)&time=1795326360", &got);
	buf_add_char(&got, '\0');
	if ((at = strstr(got.ptr, "\"value\":[1795326360,\"")))
		v = strtod(at + 21, NULL);
	buf_release(&got);
	return v;
}

TEST(twins_are_told_apart_at_both_doors)
{
	double want = 0;

	start_all();
	for (int64_t i = 1; i <= 64; i++) {
		CHECK_INT(push_value(i % 2 ? &door : &keeper, i), 200);
		CHECK_INT(push_value(i % 2 ? &keeper : &door, i), 200); /* the same again */
		want += (double)(i + 1);
	}
	CHECK(total_of(&keeper) == want);
	CHECK_INT(push_value(&keeper, 100), 409);
	CHECK_INT(push_value(&door, 101), 409);
	CHECK(str_find(buf_str(&r.body), STR("another profile")) > 0 ||
		str_find(buf_str(&r.body), STR("conflict")) > 0);
	CHECK(total_of(&keeper) == want);
	stop_all();
}

/* ---- the keeper is away, or thinks otherwise ---- */

TEST(a_keeper_that_is_away)
{
	start_all();
	CHECK_INT(push_value(&door, 1), 200);
	web_close(keeper.web);
	CHECK_INT(push_value(&door, 2), 503);
	CHECK_STR(response_header(&r, "Retry-After"), "5");
	CHECK(str_find(buf_str(&r.body),
		STR("shard shard-1, which keeps these profiles, cannot be reached at http://")) > 0);
	CHECK(total_of(&door) == -1);
	start_keeper();
	CHECK(WAIT_FOR(push_value(&door, 2) == 200));
	CHECK(total_of(&keeper) == 2 + 3);
	stop_all();
}

static size_t series_of(const struct place *p)
{
	struct buf got = { 0 };
	size_t n = 0;

	ask(p, "/api/v1/series?match%5B%5D=%7B__name__!%3D%22%22%7D" SPAN, &got);
	for (struct str rest = buf_str(&got); rest.len; rest.ptr++, rest.len--)
		n += str_has_prefix(rest, STR("\"__name__\""));
	buf_release(&got);
	return n;
}

/* A request with profiles of both: what could be stored stays, and the repeat stores the rest. */
TEST(a_request_for_several_shards)
{
	static const char path[] = "/v1development/profiles";
	static const char headers[] =
		"Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n";
	struct buf body = { 0 }, before = { 0 }, after = { 0 };
	size_t all, own;
	struct err err;

	start_all();
	must(fs_read_file(
			 "tests/proto/otlp/testdata/p2-standalone-99hz-steady.pb.gz", 1u << 20, &body, &err),
		&err);
	CHECK_INT(push_to(&alone, path, headers, buf_str(&body)), 200);
	atomic_store(&world.split, true);
	web_close(keeper.web);
	CHECK_INT(push_to(&door, path, headers, buf_str(&body)), 503);
	CHECK_STR(response_header(&r, "Retry-After"), "5");
	start_keeper();
	all = series_of(&alone);
	own = series_of(&door);
	CHECK(all == 10 && own > 0 && own < all);
	CHECK_INT(series_of(&keeper), 0);
	everything(&door, &before);
	CHECK(WAIT_FOR(push_to(&door, path, headers, buf_str(&body)) == 200));
	everything(&door, &after);
	CHECK(str_eq(buf_str(&before), buf_str(&after)));
	CHECK_INT(series_of(&keeper), all - own);
	CHECK_INT(series_of(&door), own);
	buf_release(&body);
	buf_release(&before);
	buf_release(&after);
	stop_all();
}

TEST(a_keeper_with_another_assignment)
{
	static const struct {
		bool owns;
		unsigned view;
		int status;
	} rows[] = { { false, 5, 503 }, { false, 6, 503 }, { false, 4, 200 }, { true, 9, 200 } };

	start_all();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		atomic_store(&world.keeper_owns, rows[i].owns);
		atomic_store(&world.keeper_view, rows[i].view);
		CHECK_INT(push_value(&door, 10 + (int64_t)i), rows[i].status);
		if (rows[i].status == 503)
			CHECK(str_find(buf_str(&r.body),
				rows[i].view == 5 ? STR("shard shard-1, which keeps these profiles: by "
											  "assignment 5 shard shard-2 keeps it") :
									STR("by assignment 6 shard shard-2 keeps it")) > 0);
	}
	stop_all();
}

/* ---- who may send here ---- */

#define SHORT "Authorization: Bearer 0123456789abcdef0123456789abcde\r\n"
#define WRONG "Authorization: Bearer 0123456789abcdef0123456789abcdee\r\n"
#define LONG "Authorization: Bearer 0123456789abcdef0123456789abcdeff\r\n"
#define BASIC "Authorization: Basic YWRtaW46YWRtaW4=\r\n"

static const struct {
	const char *headers;
	struct str body;
	int status;
	const char *text;
} doors[] = {
	{ "", STR(""), 401, "Unauthorized: only shards of this cluster send here\n" },
		{ BASIC, STR(""), 401, "Unauthorized: only shards of this cluster send here\n" },
			{ SHORT, STR(""), 403, "Forbidden: the secret is not that of this cluster's shards\n" },
				{ WRONG,
					STR(""), 403, "Forbidden: the secret is not that of this cluster's shards\n" },
					{ LONG,
						STR(""), 403,
							"Forbidden: the secret is not that of this cluster's shards\n" },
						{ AS_SHARD, STR(""), 400, "the body is empty\n" },
							{ AS_SHARD, STR("\1\0\0\0\5abc"), 400, "profile 1 is cut short\n" },
								{ AS_SHARD,
									STR("\2"), 400,
										"version 2 of profiles between shards; this server has 1: "
										"upgrade all shards\n" },
									{ AS_SHARD
										"Content-Type: application/x-www-form-urlencoded\r\n",
										STR("a=b"), 400, NULL },
										{ AS_SHARD "Origin: https://evil.example\r\n",
											STR(""), 403, NULL },
									};

static void check_doors(struct web *w)
{
	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
		peer_ask(web_port(w), &r, "POST " PATH, doors[i].headers, doors[i].body);
		if (r.status != doors[i].status)
			CHECK_FAIL("%zu: %d " STR_FMT, i, r.status, STR_ARG(buf_str(&r.body)));
		if (doors[i].text)
			CHECK_STR(buf_str(&r.body), doors[i].text);
	}
}

TEST(only_shards_send_here)
{
	struct web_options o = { .listen_address = "127.0.0.1:0" };
	struct web *w;

	start_all();
	check_doors(keeper.web);
	peer_ask(web_port(keeper.web), &r, "GET " PATH, AS_SHARD, STR(""));
	CHECK_INT(r.status, 405);
	/* An entry that cannot be read is answered by itself. */
	peer_ask(web_port(keeper.web), &r, "POST " PATH, AS_SHARD, STR("\1\0\0\0\3abc"));
	CHECK_INT(r.status, 200);
	CHECK(str_find(buf_str(&r.body), STR("labels: cut short")) > 0);
	/* A server that stores alone has nobody to take profiles from. */
	peer_ask(web_port(alone.web), &r, "POST " PATH, AS_SHARD, STR(""));
	CHECK_INT(r.status, 404);
	CHECK_STR(buf_str(&r.body), "this server is no shard that has joined others\n");
	o.elsewhere.profiles = "send to a shard";
	w = asking_open(&o);
	peer_ask(web_port(w), &r, "POST " PATH, AS_SHARD, STR(""));
	CHECK_INT(r.status, 503);
	web_set_ready(w, true);
	peer_ask(web_port(w), &r, "POST " PATH, AS_SHARD, STR(""));
	CHECK_INT(r.status, 404);
	CHECK_STR(buf_str(&r.body), "send to a shard\n");
	web_close(w);
	stop_all();
}

/* Users of the web configuration are others; its tokens do not open this door. */
TEST(users_do_not_count)
{
	static const char users[] = "users:\n  - {name: ci, token_file: %s/token, roles: [admin]}\n";
	char dir[] = "/tmp/epi-users-XXXXXX", path[64], text[256];
	struct web_options o = { .listen_address = "127.0.0.1:0" };
	struct web *w;
	struct err err;

	start_all();
	REQUIRE(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/token", dir);
	must(fs_write_file(&fs_posix, path, STR("a-token-for-this-test-of-users-1"), &err), &err);
	snprintf(path, sizeof(path), "%s/web.yml", dir);
	snprintf(text, sizeof(text), users, dir);
	must(fs_write_file(&fs_posix, path, str_of(text), &err), &err);
	o.config_file = path;
	o.assignment = &keeper_assignment;
	o.shard_sink = &keeper.storage.sink.sink;
	w = asking_open(&o);
	web_set_ready(w, true);
	check_doors(w);
	peer_ask(web_port(w), &r, "POST " PATH,
		"Authorization: Bearer a-token-for-this-test-of-users-1\r\n", STR(""));
	CHECK_INT(r.status, 403);
	peer_ask(web_port(w), &r, "POST /api/v1/ingest?name=a", AS_SHARD, STR(""));
	CHECK_INT(r.status, 401);
	web_close(w);
	must(fs_remove_tree(&fs_posix, dir, &err), &err);
	stop_all();
}
