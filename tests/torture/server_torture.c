/*
 * The whole server: requests over HTTP, from the bytes that come to the bytes that go. What is
 * stored stays the same, so that each answer can be compared.
 */
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/gzip/gzip.h"
#include "base/log.h"
#include "cmd/epimetheus/server.h"
#include "proto/pprof.h"
#include "tests/torture/client.h"
#include "tests/torture/sweep.h"
#include "tests/wait.h"
#include "tests/web/grpc/h2_client.h"

#define T0 INT64_C(1700000000) /* seconds */
#define AT "time=1700000060"
#define SPAN "start=1700000000&end=1700000060"
#define SERVICE "service=a&from=2023-11-14T22:13:20&to=2023-11-14T22:14:20" /* SPAN */

static struct {
	char dir[64], config[128], address[32], grpc_address[32], data[128];
	unsigned port, grpc_port;
	struct options o;
	struct server *s;
	int64_t pushed_s, opened; /* profiles of ingest, and windows that were opened */
	uint64_t deleted;
} world;

/* ---- a profile ---- */

static bool profile(struct buf *gz, int64_t value)
{
	const char *names[] = { "main.slow", "main.handle", "main.main" };
	struct pprof_label label;
	uint32_t locations[3];
	struct pprof_builder *b;
	struct buf raw = { 0 };
	struct pprof *p;
	struct arena a;
	struct err err;
	bool ok;

	arena_init(&a, 0);
	if (pprof_builder_open(&a, &b, &err))
		return false;
	pprof_builder_type(b, STR("samples"), STR("count"));
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	for (int i = 0; i < 3; i++) {
		struct pprof_function fn = { .start_line = 1 + i,
			.name = pprof_builder_string(b, str_of(names[i])),
			.filename = pprof_builder_string(b, STR("main.go")) };
		struct pprof_line line = { .function = pprof_builder_function(b, &fn), .line = i + 1 };
		struct pprof_location l = { .address = 4096u + (unsigned)i, .mapping = PPROF_NONE };

		locations[i] = pprof_builder_location(b, l, &line, 1);
	}
	label = (struct pprof_label){
		.key = pprof_builder_string(b, STR("handler")), .str = pprof_builder_string(b, STR("/a")) };
	for (int i = 0; i < 3; i++) {
		int64_t values[2] = { value + i, (value + i) * 10000000 };

		pprof_builder_sample(b, locations + i, 3 - (uint32_t)i, &label, i == 0, values);
	}
	p = pprof_builder_profile(b);
	p->duration_nanos = 9 * NS_PER_S;
	p->period_type.type = pprof_builder_string(b, STR("cpu"));
	p->period_type.unit = pprof_builder_string(b, STR("nanoseconds"));
	ok = !pprof_builder_finish(b, &p, &err) && !pprof_encode(p, &raw, &err) &&
		!gzip_compress(buf_str(&raw), 1, gz, &err);
	buf_release(&raw);
	arena_release(&a);
	return ok;
}

/* ---- the server ---- */

static bool write_text(const char *path, const char *text)
{
	struct err err;

	return !fs_write_file(&fs_posix, path, str_of(text), &err);
}

/* No turn of a scrape or a rule comes while the tests run: it would store at a time of its own. */
static const char config_text[] =
	"global: {scrape_interval: 100y, evaluation_interval: 100y, external_labels: {region: x}}\n"
	"rule_files: [rules.yml]\n"
	"alerting: {alertmanagers: [{static_configs: [{targets: ['127.0.0.1:1']}]}]}\n"
	"scrape_configs:\n"
	"  - job_name: api\n"
	"    params: {gc: ['1']}\n"
	"    basic_auth: {username: u, password: p}\n"
	"    profiling_config:\n"
	"      pprof_config: {memory: {interval: 100y, kind: {alloc_space: cumulative}}}\n"
	"    relabel_configs:\n"
	"      - {source_labels: [__address__], regex: '(.*):.*', target_label: host,\n"
	"         replacement: $1}\n"
	"      - {action: labeldrop, regex: 'x.*'}\n"
	"    static_configs: [{targets: ['127.0.0.1:1'], labels: {version: v2}}]\n"
	"  - job_name: files\n"
	"    file_sd_configs: [{files: ['targets/*.json'], refresh_interval: 1h}]\n";

static const char rules_text[] =
	"groups:\n"
	"- name: g\n"
	"  interval: 100y\n"
	"  rules:\n"
	"  - {record: 'job:cpu:share', expr: 'cum_share(cpu[5m], {function=\"main.slow\"})'}\n"
	"  - alert: High\n"
	"    expr: job:cpu:share > 0.1\n"
	"    labels: {severity: '{{ if gt $value 1.0 }}page{{ end }}'}\n"
	"    annotations: {summary: '{{ $labels.job }} {{ $value | humanizePercentage }}'}\n";

static bool push(int64_t at_s, const char *labels, int64_t value)
{
	struct buf gz = { 0 }, answer = { 0 };
	char request[256];
	bool ok;

	snprintf(request, sizeof(request), "POST /api/v1/ingest?name=cpu&time=%lld&interval=10s&%s",
		(long long)at_s, labels);
	ok = profile(&gz, value) && client_ask(world.port, request, buf_str(&gz), &answer) == 200;
	if (!ok)
		printf("  not stored: " STR_FMT "\n", STR_ARG(buf_str(&answer)));
	buf_release(&gz);
	buf_release(&answer);
	return ok;
}

/* OTLP: a stack under each of two spans, and under none. */
static int push_linked(const char *job, int64_t at_s, struct buf *answer)
{
	static const char otlp[] =
		"{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\","
		"\"value\":{\"stringValue\":\"%s\"}}]},\"scopeProfiles\":[{\"profiles\":[{"
		"\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2},\"timeUnixNano\":"
		"\"%lld000000000\",\"samples\":[{\"stackIndex\":1,\"linkIndex\":1,\"values\":[1]},"
		"{\"stackIndex\":1,\"linkIndex\":2,\"values\":[2]},{\"stackIndex\":1,\"values\":[4]}]}]}]}]"
		","
		"\"dictionary\":{\"stringTable\":[\"\",\"samples\",\"count\",\"main.main\"],"
		"\"mappingTable\":[{}],\"functionTable\":[{},{\"nameStrindex\":3}],\"locationTable\":[{},"
		"{\"lines\":[{\"functionIndex\":1}]}],\"stackTable\":[{},{\"locationIndices\":[1]}],"
		"\"linkTable\":[{},{\"traceId\":\"000102030405060708090a0b0c0d0e0f\",\"spanId\":"
		"\"a0a1a2a3a4a5a6a7\"},{\"spanId\":\"b0b1b2b3b4b5b6b7\"}],\"attributeTable\":[{}]}}";
	struct buf body = { 0 };
	int status;

	buf_printf(&body, otlp, job, (long long)at_s);
	buf_clear(answer);
	status = client_ask(world.port, "POST /v1development/profiles", buf_str(&body), answer);
	buf_release(&body);
	/* Its only profile was refused, as beyond a limit of memory. */
	if (status == 200 && str_find(buf_str(answer), STR("\"rejectedProfiles\":\"1\"")) >= 0)
		status = 413;
	return status;
}

static bool world_start(void)
{
	char *argv[] = { (char *)(uintptr_t) "epimetheus", NULL };
	struct buf answer = { 0 };
	char path[192];
	struct err err;

	torture_spare();
	log_set(LOG_ERROR + 1, LOG_LOGFMT);
	signal(SIGPIPE, SIG_IGN);
	snprintf(world.dir, sizeof(world.dir), "/tmp/epi-torture-XXXXXX");
	if (!mkdtemp(world.dir))
		return false;
	snprintf(world.config, sizeof(world.config), "%s/epimetheus.yml", world.dir);
	snprintf(world.data, sizeof(world.data), "%s/data", world.dir);
	snprintf(path, sizeof(path), "%s/rules.yml", world.dir);
	if (!write_text(world.config, config_text) || !write_text(path, rules_text))
		return false;
	snprintf(path, sizeof(path), "%s/targets", world.dir);
	if (fs_mkdir_all(&fs_posix, path, &err))
		return false;
	snprintf(path, sizeof(path), "%s/targets/a.json", world.dir);
	if (!write_text(path, "[{\"targets\": [\"127.0.0.1:1\"], \"labels\": {\"a\": \"b\"}}]"))
		return false;
	world.port = client_free_port();
	snprintf(world.address, sizeof(world.address), "127.0.0.1:%u", world.port);
	if (options_parse(&world.o, 1, argv, &err))
		return false;
	world.o.flags[0].set = true; /* --config.file is given */
	world.o.config_file = world.config;
	world.o.listen_address = world.address;
	world.grpc_port = client_free_port();
	snprintf(world.grpc_address, sizeof(world.grpc_address), "127.0.0.1:%u", world.grpc_port);
	world.o.otlp_grpc_listen_address = world.grpc_address;
	world.o.data_dir = world.data;
	world.o.enable_ingest = world.o.enable_admin_api = world.o.enable_lifecycle = true;
	world.o.sandbox = false;
	world.o.retention_ns = 0;
	world.o.too_old_ns = INT64_MAX / 2;
	if (server_open(&world.o, NULL, &world.s, &err)) {
		printf("  %s\n", err.msg);
		return false;
	}
	for (int64_t t = 10; t <= 60; t += 10)
		if (push_linked("linked", T0 + t, &answer) != 200 || !push(T0 + t, "job=a&pod=p", 3) ||
			!push(T0 + t, "job=a&pod=q&version=v2", 3 * t))
			return false;
	buf_release(&answer);
	return true;
}

/* Opened by the first test that runs. */
static bool world_open(void)
{
	return world.s || world_start();
}

static bool world_end(void)
{
	struct err err;

	server_close(world.s);
	world.s = NULL;
	return !fs_remove_tree(&fs_posix, world.dir, &err);
}

/* ---- paths ---- */

static enum err_code as_error(int status, struct buf *out, struct err *err)
{
	enum err_code rc = status == 0 || status == 500 ? ERR_IO :
		status == 503                               ? ERR_UNAVAILABLE :
		status == 422 || status == 413              ? ERR_LIMIT :
		status == 404                               ? ERR_NOT_FOUND :
													  ERR_INVALID;

	if (!status)
		buf_add_cstr(out, "the connection ended");
	return err_set(err, rc, "%d " STR_FMT, status, STR_ARG(buf_str(out)));
}

static enum err_code ask(const struct torture_path *p, struct buf *out, struct err *err)
{
	int status = client_ask(world.port, p->request, STR(""), out);

	return status == 200 || status == 204 ? ERR_OK : as_error(status, out, err);
}

/* Its answer changes from one to the next: that there is one is what counts. */
static enum err_code ask_any(const struct torture_path *p, struct buf *out, struct err *err)
{
	enum err_code rc = ask(p, out, err);

	if (!rc)
		buf_clear(out);
	return rc;
}

static enum err_code call_with(const char *path, struct str body, struct buf *out, struct err *err)
{
	static const char *const fields[] = { "grpc-encoding", "gzip", NULL };
	static struct h2_client c;
	const struct h2_reply *r;
	enum err_code rc = ERR_OK;

	h2_open(&c, world.grpc_port, NULL);
	r = h2_call(&c, path, fields, body, true);
	h2_wait(&c, r);
	if (r->status == 0)
		buf_add_str(out, buf_str(&r->body));
	else
		rc = err_set(err, r->status == 14 ? ERR_UNAVAILABLE : ERR_IO, "%d %s", r->status,
			r->status < 0 ? "the connection ended" : r->message);
	h2_close(&c);
	return rc;
}

static enum err_code call_health(const struct torture_path *p, struct buf *out, struct err *err)
{
	return call_with(p->request, (struct str){ "\0\0\0\0", 5 }, out, err);
}

/* With a recorded request, which is the same again each time. */
static enum err_code call_export(const struct torture_path *p, struct buf *out, struct err *err)
{
	struct buf file = { 0 }, body = { 0 };
	enum err_code rc = fs_read_file(
		"tests/proto/otlp/testdata/p4-standalone-20hz-tiny.pb.gz", 1u << 20, &file, err);

	h2_message(&body, 1, buf_str(&file));
	if (!rc)
		rc = call_with(p->request, buf_str(&body), out, err);
	if (!rc && out->len > 5) /* partial_success: a profile found no memory */
		rc = err_set(err, ERR_LIMIT, "rejected");
	buf_release(&file);
	buf_release(&body);
	return rc;
}

#define GET(text) \
	{ \
		text, ask, "GET " text \
	}
/* Requests for data, asked of a head and of blocks. */
static const struct torture_path questions[] = {
	GET("/api/v1/query?query=cpu&" SPAN),
	GET("/api/v1/query?query=cpu&format=pprof&" SPAN),
	GET("/api/v1/query?query=cpu&format=folded&" SPAN),
	GET("/api/v1/query?query=cpu&format=text&" SPAN),
	GET("/api/v1/query?query=cpu&format=pgo&" SPAN),
	GET("/api/v1/query?query=cpu&format=speedscope&" SPAN),
	GET("/api/v1/query?query=cpu{pod=\"p\"}&types=all&format=pprof&" AT),
	GET("/api/v1/query?query=top(5,cpu[1m])&" AT),
	GET("/api/v1/query?query=cpu[1m]-cpu[1m]offset+30s&" AT),
	GET("/api/v1/query?query=flat+by+(function)(cpu[1m])&" AT),
	GET("/api/v1/query?query=cum_share(merge+by+(handler)(cpu[1m]),"
		"{function=\"main.slow\"})>0.1&" AT),
	GET("/api/v1/query?query=callers(focus(cpu[1m],\"slow\"),\"handle\")&" AT),
	GET("/api/v1/query?query=changed(cpu{pod=\"q\"}[1m],cpu{pod=\"p\"}[1m])&" AT),
	GET("/api/v1/query?query=rate(cpu{pod=~\"p|q.*\"}[1m])&" AT),
	GET("/api/v1/query?query=count_over_time(cpu[1m])%2Bon(pod)total(cpu)&" AT),
	GET("/api/v1/query_range?query=total(cpu)&step=10&" SPAN),
	GET("/api/v1/query_range?query=cpu&step=20&" SPAN),
	GET("/api/v1/query_range?query=topk(1,flat(cpu))&step=20&" SPAN),
	GET("/api/v1/series?match[]=cpu&" SPAN),
	GET("/api/v1/links?match[]={job=\"linked\"}&" SPAN),
	GET("/api/v1/labels?" SPAN),
	GET("/api/v1/label/pod/values?match[]=cpu&" SPAN),
	GET("/api/v1/label_counts?" SPAN),
	GET("/api/v1/profile_types?" SPAN),
	GET("/api/v1/functions?query=cpu&" SPAN),
	GET("/api/v1/metadata"),
	GET("/api/v1/explain_query?query=merge(cpu)&" SPAN),
	GET("/api/0/profiles?" SERVICE),
	GET("/api/0/profiles/merge?type=cpu&limit=3&" SERVICE),
	GET("/api/0/profiles/F5edAIo15ABoe8F39SB86WE+F5edAIo15ABoe8F39SB86WF"),
	GET("/api/0/services"),
};

/* Other requests. */
static const struct torture_path others[] = {
	GET("/api/v1/parse_query?query=sum(flat(cpu[5m]))>1"),
	GET("/api/v1/format_query?query=sum(flat(cpu[5m]))>1"),
	GET("/api/v1/language"),
	GET("/api/v1/rules"),
	GET("/api/v1/alerts"),
	GET("/api/v1/alertmanagers"),
	GET("/api/v1/scrape_pools"),
	GET("/api/v1/status/config"),
	GET("/api/v1/status/flags"),
	GET("/api/v1/status/buildinfo"),
	GET("/federate?match[]=up"),
	GET("/"),
	{ "/api/v1/targets", ask_any, "GET /api/v1/targets" },
	{ "/api/v1/status/tsdb", ask_any, "GET /api/v1/status/tsdb" },
	{ "/api/v1/status/runtimeinfo", ask_any, "GET /api/v1/status/runtimeinfo" },
	{ "/metrics", ask_any, "GET /metrics" },
	{ "/-/reload", ask_any, "POST /-/reload" },
};

static void torture_all(const struct torture_path *paths, size_t n)
{
	for (size_t i = 0; i < n; i++)
		torture_path(&paths[i]);
}

TEST(every_question_survives)
{
	REQUIRE(world_open());
	torture_all(questions, sizeof(questions) / sizeof(questions[0]));
}

TEST(every_other_request_survives)
{
	REQUIRE(world_open());
	torture_all(others, sizeof(others) / sizeof(others[0]));
}

/* ---- what changes the data ---- */

/*
 * Pushes a profile of its own. One that was acknowledged is there; one that was refused may be,
 * whole, and is stored when it is sent again.
 */
static enum err_code ingest_at(int64_t at, struct buf *out, struct err *err)
{
	struct buf gz = { 0 }, answer = { 0 };
	char text[256];
	enum err_code rc = ERR_OK;
	int status;

	snprintf(text, sizeof(text), "POST /api/v1/ingest?name=cpu&time=%lld&interval=1s&job=ingest",
		(long long)at);
	if (!profile(&gz, 5))
		return err_set(err, ERR_INVALID, "no profile");
	status = client_ask(world.port, text, buf_str(&gz), &answer);
	if (status != 200)
		rc = as_error(status, &answer, err);
	torture_disarm();
	if (rc) /* the store may be opened again meanwhile */
		(void)!WAIT_FOR((buf_clear(&answer),
			status = client_ask(world.port, text, buf_str(&gz), &answer), status != 503));
	if (status != 200)
		rc = err_set(
			err, ERR_CORRUPT, "the second try: %d " STR_FMT, status, STR_ARG(buf_str(&answer)));
	snprintf(text, sizeof(text),
		"GET /api/v1/query?format=folded&time=%lld&query=cpu:samples{job=\"ingest\"}[1s]",
		(long long)at);
	buf_clear(out);
	status = client_ask(world.port, text, STR(""), out);
	if (status != 200 ||
		!str_is(buf_str(out),
			"main.main 7\nmain.main;main.handle 6\n"
			"main.main;main.handle;main.slow 5\n"))
		rc = err_set(err, ERR_CORRUPT, "stored: %d " STR_FMT, status, STR_ARG(buf_str(out)));
	buf_release(&gz);
	buf_release(&answer);
	return rc;
}

static enum err_code ingest(const struct torture_path *p, struct buf *out, struct err *err)
{
	(void)p;
	return ingest_at(T0 + 3600 + world.pushed_s++, out, err);
}

/* The first of a window of the head. */
static enum err_code ingest_first(const struct torture_path *p, struct buf *out, struct err *err)
{
	(void)p;
	return ingest_at(T0 - 7200 * ++world.opened, out, err);
}

/* The same of one with links. */
static enum err_code ingest_linked(const struct torture_path *p, struct buf *out, struct err *err)
{
	int64_t at = T0 + 3600 + world.pushed_s++;
	struct buf answer = { 0 };
	enum err_code rc = ERR_OK;
	char text[256];
	int status;

	(void)p;
	status = push_linked("otlp", at, &answer);
	if (status != 200)
		rc = as_error(status, &answer, err);
	torture_disarm();
	if (rc)
		(void)!WAIT_FOR((status = push_linked("otlp", at, &answer), status != 503));
	snprintf(text, sizeof(text), "GET /api/v1/links?match[]={job=\"otlp\"}&start=%lld&end=%lld",
		(long long)at, (long long)at);
	buf_clear(&answer);
	buf_clear(out);
	if (status == 200)
		status = client_ask(world.port, text, STR(""), &answer);
	if (status != 200 ||
		str_find(buf_str(&answer), STR("\"samples:count\":1}")) < 0 ||
			str_find(buf_str(&answer), STR("\"samples:count\":2}")) < 0)
		rc = err_set(err, ERR_CORRUPT, "stored: %d " STR_FMT, status, STR_ARG(buf_str(&answer)));
	buf_release(&answer);
	return rc;
}

TEST(a_pushed_profile_with_links_is_whole_or_not_there)
{
	static const struct torture_path path = { "/v1development/profiles", ingest_linked, NULL };

	REQUIRE(world_open());
	torture_path(&path);
}

TEST(a_pushed_profile_is_whole_or_not_there)
{
	static const struct torture_path path = { "/api/v1/ingest", ingest, NULL };

	REQUIRE(world_open());
	torture_path(&path);
}

TEST(a_snapshot_is_whole_or_not_there)
{
	static const struct torture_path path = { "/api/v1/admin/tsdb/snapshot", ask_any,
		"POST /api/v1/admin/tsdb/snapshot" };

	REQUIRE(world_open());
	torture_path(&path);
}

TEST(a_deletion_deletes_or_says_why_not)
{
	static const struct torture_path path = { "/api/v1/admin/tsdb/delete_series", ask_any,
		"POST /api/v1/admin/tsdb/delete_series?match[]=process_cpu{job=\"none\"}&" SPAN };

	REQUIRE(world_open());
	torture_path(&path);
}

/* Leaves some hundred windows behind. */
TEST(a_profile_that_opens_a_window_is_whole_or_not_there)
{
	static const struct torture_path path = { "/api/v1/ingest", ingest_first, NULL, .all = true };

	REQUIRE(world_open());
	torture_path(&path);
}

/* All but the newest window. */
static bool has_become_blocks(void)
{
	struct buf answer = { 0 };
	bool has;

	client_ask(world.port, "GET /api/v1/status/tsdb", STR(""), &answer);
	has = str_find(buf_str(&answer), STR("\"windows\":1,\"numBlocks\":1,")) >= 0;
	buf_release(&answer);
	return has;
}

/* The same questions, now that windows have become blocks; of a server without those above. */
TEST(every_question_survives_on_blocks)
{
	struct err err;

	REQUIRE(world_open() && world_end() && world_open());
	server_close(world.s);
	world.s = NULL;
	world.o.too_old_ns = NS_PER_HOUR;
	REQUIRE_OK(server_open(&world.o, NULL, &world.s, &err), &err);
	REQUIRE(push(T0 + 36000, "job=later", 1));
	REQUIRE(WAIT_FOR(has_become_blocks()));
	torture_all(questions, sizeof(questions) / sizeof(questions[0]));
}

/* The last: what it stores is newer than all else, which is too old from then on. */
TEST(calls_over_grpc_survive)
{
	static const struct torture_path calls[] = {
		{ "OTLP over gRPC", call_export,
			"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export" },
		{ "health over gRPC", call_health, "/grpc.health.v1.Health/Check" },
	};

	REQUIRE(world_open());
	torture_all(calls, sizeof(calls) / sizeof(calls[0]));
}

TEST(the_server_ends)
{
	CHECK(world_end());
}
