/* The API over a socket, on a real database, engine and scrape manager. */

#include "base/clock.h"
#include "base/fs.h"
#include "base/self/flags.h"
#include "base/self/libraries.h"
#include "base/version.h"
#include "proto/pprof.h"
#include "scrape/manager.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/http/http_peer.h"
#include "tests/web/storage.h"
#include "web/web.h"

#define T0 INT64_C(1700000000) /* seconds; profiles stand at T0, T0 + 10, ... */

static struct fixture {
	struct storage storage;
	struct scrape_manager *manager;
	struct config *config;
	struct web *web;
	struct response r;
} f;

static const char *flag_text = "somewhere";
static int64_t flag_duration = 15 * NS_PER_DAY;
static struct flag flags[] = {
	{ "config.file", FLAG_STRING, &flag_text, NULL, "" },
	{ "storage.tsdb.retention.time", FLAG_DURATION, &flag_duration, NULL, "" },
};

static enum err_code reload(void *ctx, struct err *err)
{
	(void)ctx;
	return err_set(err, ERR_INVALID, "not here");
}

static void quit(void *ctx)
{
	(void)ctx;
}

static struct config *config_of(void *ctx)
{
	(void)ctx;
	return config_ref(f.config);
}

static void reload_state(void *ctx, bool *ok, int64_t *tried_ns, int64_t *at_ns)
{
	(void)ctx;
	*ok = true;
	*tried_ns = *at_ns = T0 * NS_PER_S;
}

/* Nothing is scraped in these tests: the one target is a port where nobody listens. */
static enum err_code no_append(
	struct sink *s, const struct sink_profile *p, sink_done_fn done, void *ctx, struct err *err)
{
	(void)s;
	(void)p;
	(void)done;
	(void)ctx;
	return err_set(err, ERR_UNAVAILABLE, "no sink");
}

static enum err_code no_append_numbers(struct sink *s, const struct sink_number *v, size_t n,
	sink_done_fn done, void *ctx, struct err *err)
{
	(void)s;
	(void)v;
	(void)n;
	(void)done;
	(void)ctx;
	return err_set(err, ERR_UNAVAILABLE, "no sink");
}

static const struct sink_ops sink_ops = { no_append, no_append_numbers };
static struct sink sink = { &sink_ops };

static const char config_text[] =
	"scrape_configs:\n"
	"- job_name: quiet\n"
	"  scrape_interval: 1h\n"
	"  basic_auth: {username: me, password: hidden}\n"
	"  profiling_config:\n"
	"    pprof_config:\n"
	"      memory: {enabled: false}\n"
	"      block: {enabled: false}\n"
	"      mutex: {enabled: false}\n"
	"      goroutine: {enabled: false}\n"
	"      goroutineleak: {enabled: false}\n"
	"  relabel_configs:\n"
	"  - {source_labels: [__address__], regex: 'drop:1', action: drop}\n"
	"  static_configs:\n"
	"  - targets: ['127.0.0.1:1', 'drop:1']\n"
	"    labels: {zone: a}\n";

static struct shard shard; /* of the next start */

static void start(void)
{
	struct scrape_manager_options m = { .sink = &sink, .workers = 1, .shard = shard };
	struct web_options w = { .listen_address = "127.0.0.1:0",
		.enable_ingest = true,
		.flags = flags,
		.flags_n = sizeof(flags) / sizeof(flags[0]),
		.reload = reload,
		.quit = quit,
		.config = config_of,
		.reload_state = reload_state };
	struct err err;

	memset(&f, 0, sizeof(f));
	storage_open(&f.storage);
	must(config_load_text("test.yml", STR("."), str_of(config_text), &f.config, &err), &err);
	must(scrape_manager_open(&m, &f.manager, &err), &err);
	must(scrape_manager_apply(f.manager, f.config, &err), &err);
	w.db = f.storage.db;
	w.sink = &f.storage.sink.sink;
	w.engine = f.storage.engine;
	w.manager = f.manager;
	must(web_open(&w, &f.web, &err), &err);
	web_set_ready(f.web, true);
}

static void stop(void)
{
	web_close(f.web);
	scrape_manager_close(f.manager);
	storage_close(&f.storage);
	config_unref(f.config);
	response_release(&f.r);
}

static struct str get(const char *path)
{
	char request[1024];

	snprintf(request, sizeof(request), "GET %s", path);
	peer_ask(web_port(f.web), &f.r, request, "", (struct str){ 0 });
	return buf_str(&f.r.body);
}

static struct str post(const char *path, const char *headers, struct str body)
{
	char request[1024];

	snprintf(request, sizeof(request), "POST %s", path);
	peer_ask(web_port(f.web), &f.r, request, headers, body);
	return buf_str(&f.r.body);
}

#define CHECK_GET(path, want_status, want) \
	do { \
		struct str body_ = get(path); \
		CHECK_INT(f.r.status, want_status); \
		CHECK_STR(body_, want); \
	} while (0)

#define ERROR_BODY(type, msg) \
	"{\"status\":\"error\",\"errorType\":\"" type "\",\"error\":\"" msg "\"}"
#define CHECK_BAD(path, msg) CHECK_GET(path, 400, ERROR_BODY("bad_data", msg))

/* CPU of the ten seconds before at_s, by handler "/x". */
static void cpu_profile(struct buf *gz, int64_t at_s, int64_t slow, int64_t own)
{
	profile_gz(gz,
		&(struct pushed_profile){ .cpu = true,
			.slow = slow,
			.own = own,
			.leaf = "main.slow",
			.end_s = at_s,
			.handler = "/x" });
}

/* Two versions, three profiles each: v2 is slow. */
static void fill(void)
{
	for (int64_t i = 0; i < 3; i++)
		for (int v = 1; v <= 2; v++) {
			struct buf gz = { 0 };
			char path[256];

			cpu_profile(&gz, T0 + 10 * i, v == 2 ? 300 : 100, 50);
			snprintf(path, sizeof(path), "/api/v1/ingest?name=cpu&job=demo&version=v%d", v);
			post(path, "", buf_str(&gz));
			CHECK_INT(f.r.status, 200);
			buf_release(&gz);
		}
}

/* ---- ingest ---- */

#define STORED(name, time) \
	"{\"status\":\"success\",\"data\":{\"samples\":2,\"time\":\"" time \
	"\",\"profiles\":[{\"name\":\"" name "\",\"samples\":2,\"time\":\"" time "\"}]}}\n"

TEST(ingest_answers_what_was_stored)
{
	struct buf gz = { 0 };

	start();
	cpu_profile(&gz, T0, 3, 1);
	CHECK_STR(post("/api/v1/ingest?name=cpu&job=demo", "", buf_str(&gz)),
		STORED("process_cpu", "2023-11-14T22:13:20.000Z"));
	/* The type curl gives a body by itself; a time of its own. */
	CHECK_STR(post("/api/v1/ingest?name=cpu&job=demo&time=1700000001.5&interval=10s",
				  "Content-Type: application/x-www-form-urlencoded\r\n", buf_str(&gz)),
		STORED("process_cpu", "2023-11-14T22:13:21.500Z"));
	CHECK_GET("/api/v1/series?match[]=process_cpu", 200,
		"{\"status\":\"success\",\"data\":[{\"__name__\":\"process_cpu\",\"job\":\"demo\"}]"
		"}\n");
	buf_release(&gz);
	stop();
}

/* Of a format before protobuf. Both of its types count. */
TEST(ingest_takes_what_gperftools_writes)
{
	struct buf body = { 0 };
	struct err err;

	start();
	CHECK_OK(
		fs_read_file("tests/proto/legacy/testdata/gperftools.cpu", 1u << 20, &body, &err), &err);
	post("/api/v1/ingest?name=cpu&job=cpp&time=1700000000&interval=1s", "", buf_str(&body));
	CHECK_INT(f.r.status, 200);
	CHECK_GET("/api/v1/query?time=1700000000&query=total(process_cpu:samples:count:cpu:nanoseconds:"
			  "delta)",
		200,
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"unit\":\"count\","
		"\"result\":[{\"metric\":{\"job\":\"cpp\"},\"value\":[1700000000,\"131\"]}]}}\n");
	buf_release(&body);
	stop();
}

TEST(ingest_refuses_what_it_cannot_store)
{
	static const struct {
		const char *params;
		const char *msg;
	} rows[] = {
		{ "",
			"invalid parameter \\\"name\\\": missing; use the profile's name, such as process_cpu "
			"or memory" },
		{ "name=a-b", "invalid parameter \\\"name\\\": \\\"a-b\\\"" },
		{ "name=cpu&a-b=1", "\\\"a-b\\\" is not a label name" },
		{ "name=cpu&__x=1", "\\\"__x\\\" is not a label name" },
		{ "name=cpu&a=1&a=2", "label a is set twice" },
		{ "name=cpu&a=%ff", "the value of label a is not UTF-8" },
		{ "name=cpu&time=x",
			"invalid parameter \\\"time\\\": cannot parse \\\"x\\\" to a valid "
			"timestamp" },
		{ "name=cpu&interval=0",
			"invalid parameter \\\"interval\\\": must be more than 0 and at most a day" },
	};
	static const char gperftools[40] = { [8] = 3, [24] = 0x10, [25] = 0x27 };
	struct buf gz = { 0 };
	char path[256], want[512];

	start();
	cpu_profile(&gz, T0, 3, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(path, sizeof(path), "/api/v1/ingest?%s", rows[i].params);
		snprintf(want, sizeof(want), ERROR_BODY("bad_data", "%s"), rows[i].msg);
		CHECK_STR(post(path, "", buf_str(&gz)), want);
		CHECK_INT(f.r.status, 400);
	}
	CHECK_STR(post("/api/v1/ingest?name=cpu", "", STR("")),
		ERROR_BODY("bad_data", "the body is empty; send a profile"));
	CHECK_STR(post("/api/v1/ingest?name=cpu", "", STR("<html>no</html>")),
		ERROR_BODY("bad_data",
			"this is a web page: a login or error page may have answered; check the address and "
			"the credentials"));
	CHECK_INT(f.r.status, 400);
	CHECK_STR(post("/api/v1/ingest?name=cpu", "", (struct str){ gperftools, sizeof(gperftools) }),
		ERROR_BODY("bad_data", "CPU profile of gperftools: the end marker is missing"));
	gz.ptr[gz.len - 5] ^= 1;
	post("/api/v1/ingest?name=cpu", "", buf_str(&gz));
	CHECK_INT(f.r.status, 400);
	get("/api/v1/ingest?name=cpu");
	CHECK_INT(f.r.status, 405);
	CHECK_GET("/api/v1/labels", 200, "{\"status\":\"success\",\"data\":[]}\n");
	buf_release(&gz);
	stop();
}

/* ---- names ---- */

TEST(names_of_what_is_stored)
{
	start();
	fill();
	get("/api/v1/labels?match[]={job=\"demo\"}");
	CHECK_INT(f.r.status, 200);
	CHECK(str_find(buf_str(&f.r.body), STR("\"job\",\"version\"]}\n")) > 0);
	CHECK_GET(
		"/api/v1/label/version/values", 200, "{\"status\":\"success\",\"data\":[\"v1\",\"v2\"]}\n");
	CHECK_GET("/api/v1/label/version/values?match[]=cpu{version!=\"v1\"}&match[]=nothing", 200,
		"{\"status\":\"success\",\"data\":[\"v2\"]}\n");
	CHECK_GET("/api/v1/label/version/values?limit=1", 200,
		"{\"status\":\"success\",\"data\":[\"v1\"],\"warnings\":[\"results truncated due "
		"to "
		"limit\"]}\n");
	CHECK_GET("/api/v1/label/version/values?start=1600000000&end=1600000001", 200,
		"{\"status\":\"success\",\"data\":[]}\n");
	CHECK_GET("/api/v1/label/nothing/values", 200, "{\"status\":\"success\",\"data\":[]}\n");
	CHECK_GET("/api/v1/label/U__ver_73_ion/values", 200,
		"{\"status\":\"success\",\"data\":[\"v1\",\"v2\"]}\n");
	CHECK_GET("/api/v1/label/a-b/values", 200, "{\"status\":\"success\",\"data\":[]}\n");
	CHECK_GET("/api/v1/label/U__ver_73/values", 200, "{\"status\":\"success\",\"data\":[]}\n");
	CHECK_BAD("/api/v1/label/%ff/values", "invalid label name: \\\"\xef\xbf\xbd\\\"");
	CHECK_GET("/api/v1/series?match[]=cpu:samples{version=~\"v.\"}&match[]={version=\"v1\"}", 200,
		"{\"status\":\"success\",\"data\":["
		"{\"__name__\":\"process_cpu\",\"job\":\"demo\",\"version\":\"v1\"},"
		"{\"__name__\":\"process_cpu\",\"job\":\"demo\",\"version\":\"v2\"}]}\n");
	CHECK_GET("/api/v1/series?match[]=cpu:nothing", 200, "{\"status\":\"success\",\"data\":[]}\n");
	CHECK_BAD("/api/v1/series", "no match[] parameter provided");
	CHECK_BAD("/api/v1/series?match[]=cpu{",
		"invalid parameter \\\"match[]\\\": 1:5: unexpected "
		"end of query, expected string, \\\"}\\\" or label name");
	CHECK_BAD("/api/v1/labels?start=2&end=1",
		"invalid parameter \\\"end\\\": end timestamp must not be before start time");
	CHECK_BAD("/api/v1/labels?limit=-1",
		"invalid parameter \\\"limit\\\": \\\"-1\\\" is not a number from 0 on");
	CHECK_GET("/api/v1/profile_types", 200,
		"{\"status\":\"success\",\"data\":["
		"{\"type\":\"process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta\",\"name\":"
		"\"process_cpu\","
		"\"sample_type\":\"cpu\",\"sample_unit\":\"nanoseconds\",\"period_type\":\"cpu\","
		"\"period_unit\":\"nanoseconds\",\"delta\":true},"
		"{\"type\":\"process_cpu:samples:count:cpu:nanoseconds:delta\",\"name\":\"process_"
		"cpu\","
		"\"sample_type\":\"samples\",\"sample_unit\":\"count\",\"period_type\":\"cpu\","
		"\"period_unit\":\"nanoseconds\",\"delta\":true}]}\n");
	stop();
}

/* It is not the memory of the answer that is short. */
TEST(a_selector_that_is_too_long_is_no_list_that_is)
{
	struct buf body = { 0 };

	start();
	buf_add_cstr(&body, "match[]=up");
	for (unsigned i = 0; i < 64u << 10; i++)
		buf_add_char(&body, 'p');
	CHECK_STR(post("/api/v1/series", "Content-Type: application/x-www-form-urlencoded\r\n",
				  buf_str(&body)),
		"{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"invalid parameter "
		"\\\"match[]\\\": query is 65538 bytes long, limit 65536\"}");
	buf_release(&body);
	stop();
}

/* ---- queries ---- */

#define AT "&time=1700000030"

TEST(what_is_wrong_with_a_query_is_said)
{
	start();
	CHECK_BAD("/api/v1/query", "invalid parameter \\\"query\\\": missing");
	CHECK_BAD("/api/v1/query?query=1&time=x",
		"invalid parameter \\\"time\\\": cannot parse \\\"x\\\" to a valid timestamp");
	CHECK_BAD("/api/v1/query?query=1&timeout=x",
		"invalid parameter \\\"timeout\\\": cannot parse \\\"x\\\" to a valid duration; units are "
		"ms, "
		"s, m, h, d, w and y");
	CHECK_BAD("/api/v1/query?query=1&max_nodes=x",
		"invalid parameter \\\"max_nodes\\\": \\\"x\\\" is not a number from 0 on");
	CHECK_BAD("/api/v1/query?query=1&files=1",
		"invalid parameter \\\"files\\\": must be \\\"true\\\" or \\\"false\\\"");
	CHECK_BAD("/api/v1/query?query=1&format=xml",
		"unknown format \\\"xml\\\"; known are json, pprof, pgo, folded, speedscope, text");
	CHECK_BAD("/api/v1/query?query=1&start=1", "start and end are both needed");
	CHECK_BAD("/api/v1/query?query=1&start=1&end=2&time=3", "use either time, or start and end");
	CHECK_BAD("/api/v1/query?query=1&start=2&end=1",
		"invalid parameter \\\"end\\\": end timestamp must not be before start time");
	CHECK_BAD("/api/v1/query?query=flat(1)", "1:6: flat() needs profiles, got a scalar");
	CHECK_BAD("/api/v1/query_range?query=1", "invalid parameter \\\"start\\\": missing");
	CHECK_BAD("/api/v1/query_range?query=1&start=1&end=2&step=0",
		"invalid parameter \\\"step\\\": zero or negative query resolution step widths are "
		"not "
		"accepted. Try a positive integer");
	CHECK_BAD("/api/v1/query_range?query=1&start=1&end=2&step=-1",
		"invalid parameter \\\"step\\\": \\\"-1\\\" is negative");
	CHECK_BAD("/api/v1/query_range?query=1&start=0&end=11001&step=1",
		"exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the "
		"query "
		"resolution (?step=XX)");
	get("/api/v1/query_range?query=1&start=0&end=11000&step=1s");
	CHECK_INT(f.r.status, 200);
	/* `go tool pprof` shows the text of such an answer. */
	CHECK_GET("/api/v1/query?query=1%2B&format=pprof", 400, "1:3: unexpected end of query\n");
	CHECK_STR(response_header(&f.r, "X-Go-Pprof"), "1");
	CHECK_STR(response_header(&f.r, "Content-Type"), "text/plain; charset=utf-8");
	CHECK_STR(response_header(&f.r, "Content-Disposition"), "");
	CHECK_GET("/api/v1/query?query=1&format=pprof", 400,
		"format=pprof needs profiles, the query gives a scalar\n");
	stop();
}

TEST(queries_in_prometheus_forms)
{
	start();
	fill();
	CHECK_GET("/api/v1/query?query=1%2B1&time=1700000000.5", 200,
		"{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":"
		"[1700000000.5,\"2\"]}}\n");
	CHECK_GET("/api/v1/query?query=sum(total(cpu:samples[1m]))" AT, 200,
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"unit\":\"count\","
		"\"result\":[{"
		"\"metric\":{},"
		"\"value\":[1700000030,\"1500\"]}]}}\n");
	CHECK_STR(post("/api/v1/query?time=1700000030",
		"Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\n",
		STR("query=sum+by+(version)+(total(cpu%3Asamples%5B1m%5D))")),
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"unit\":\"count\","
		"\"result\":["
		"{\"metric\":{\"version\":\"v1\"},\"value\":[1700000030,\"450\"]},"
		"{\"metric\":{\"version\":\"v2\"},\"value\":[1700000030,\"1050\"]}]}}\n");
	CHECK_GET("/api/v1/query_range?query=sum(total(cpu:samples))&step=10&start=1700000000&"
			  "end=1700000020",
		200,
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"unit\":\"count\","
		"\"result\":[{"
		"\"metric\":{},"
		"\"values\":[[1700000000,\"500\"],[1700000010,\"500\"],[1700000020,\"500\"]]}]}}"
		"\n");
	/* (start, end]: the profile at the start does not count. */
	CHECK_GET("/api/v1/query?query=sum(total(cpu:samples))&start=1700000000&end=1700000020", 200,
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"unit\":\"count\","
		"\"result\":[{"
		"\"metric\":{},"
		"\"value\":[1700000020,\"1000\"]}]}}\n");
	stop();
}

TEST(profiles_in_every_format)
{
	struct pprof *p = NULL;
	struct arena a;
	struct str raw;
	struct err err;

	arena_init(&a, 0);
	start();
	fill();
	CHECK_GET("/api/v1/query?format=folded&query=merge(cpu:samples[1m])" AT, 200,
		"main.main;main.handle 300\nmain.main;main.handle;main.slow 1200\n");
	get("/api/v1/query?format=text&query=merge(cpu:samples[1m])" AT);
	CHECK_INT(f.r.status, 200);
	CHECK_STR(response_header(&f.r, "Content-Type"), "text/plain; charset=utf-8");
	CHECK(str_find(
		buf_str(&f.r.body), STR("      1200 80.00% 80.00%       1200 80.00%  main.slow")) > 0);
	get("/api/v1/query?format=pprof&query=merge(cpu:samples[1m])" AT);
	CHECK_INT(f.r.status, 200);
	CHECK_STR(response_header(&f.r, "Content-Type"), "application/octet-stream");
	CHECK_STR(response_header(&f.r, "Content-Encoding"), "");
	CHECK_STR(response_header(&f.r, "Content-Disposition"),
		"attachment; filename=\"cpu-samples-2023-11-14T22-13-11Z-29s.pb.gz\"");
	CHECK_OK(pprof_inflate(&a, buf_str(&f.r.body), &pprof_limits_default, &raw, &err), &err);
	CHECK_OK(pprof_decode(&a, raw, &pprof_limits_default, &p, &err), &err);
	CHECK_INT(p->samples_n, 2);
	CHECK_INT(p->values[0] + p->values[1], 1500);
	CHECK_INT(p->labels_n, 2); /* sample labels are kept */
	get("/api/v1/query?query=merge(cpu:samples[1m])" AT);
	CHECK(str_find(buf_str(&f.r.body), STR("\"resultType\":\"profiles\"")) > 0);
	CHECK(str_find(buf_str(&f.r.body), STR("\"total\":1500")) > 0);
	CHECK(str_find(buf_str(&f.r.body), STR("\"main.slow\"")) > 0);
	arena_release(&a);
	stop();
}

TEST(a_query_laid_out)
{
	start();
	CHECK_GET("/api/v1/format_query?query=sum+by(a)(total(cpu%7Ba=\"b\"%7D))", 200,
		"{\"status\":\"success\",\"data\":\"sum by (a) (total(cpu{a=\\\"b\\\"}))\"}\n");
	CHECK_BAD("/api/v1/format_query?query=1%2B", "1:3: unexpected end of query");
	stop();
}

/* ---- targets and status ---- */

TEST(targets_of_other_shards_are_dropped_with_the_reason)
{
	unsigned owner = shard_of(STR("quiet"), STR("127.0.0.1:1"), 3);
	struct buf want = { 0 };

	shard = (struct shard){ (owner + 1) % 3, 3 };
	start();
	shard = (struct shard){ 0 };
	CHECK(WAIT_FOR((get("/api/v1/targets"),
		str_find(buf_str(&f.r.body), STR("\"droppedTargetCounts\":{\"quiet\":2}")) >= 0)));
	CHECK(str_find(buf_str(&f.r.body), STR("\"activeTargets\":[]")) > 0);
	buf_printf(&want,
		"\"scrapePool\":\"quiet\",\"reason\":\"shard %u scrapes it (shards 0 to 2)\"}", owner);
	CHECK(str_find(buf_str(&f.r.body), buf_str(&want)) > 0);
	/* what a rule drops is no shard's */
	CHECK(str_find(buf_str(&f.r.body), STR("\"scrapePool\":\"quiet\"}")) > 0);
	get("/metrics");
	CHECK(str_find(buf_str(&f.r.body),
		STR("epimetheus_scrape_pool_targets_of_other_shards{scrape_pool=\"quiet\"} 1\n")) > 0);
	buf_release(&want);
	stop();
}

TEST(targets_as_prometheus_shows_them)
{
	const char *active, *dropped;

	start();
	/* Discovery is another thread's. */
	CHECK(WAIT_FOR(
		(get("/api/v1/targets"), str_find(buf_str(&f.r.body), STR("\"scrapeUrl\"")) >= 0)));
	active = "\"scrapeUrl\":\"http://127.0.0.1:1/debug/pprof/profile?seconds=3599\"";
	dropped = "\"droppedTargets\":[{\"discoveredLabels\":{\"__address__\":\"drop:1\"";
	CHECK(str_find(buf_str(&f.r.body), str_of(active)) > 0);
	CHECK(str_find(buf_str(&f.r.body), str_of(dropped)) > 0);
	CHECK(str_find(buf_str(&f.r.body),
		STR("\"labels\":{\"instance\":\"127.0.0.1:1\",\"job\":"
					       "\"quiet\",\"zone\":\"a\"}")) > 0);
	CHECK(str_find(buf_str(&f.r.body), STR("\"scrapeInterval\":\"1h\"")) > 0);
	CHECK(str_find(buf_str(&f.r.body), STR("\"droppedTargetCounts\":{\"quiet\":1}")) > 0);
	get("/api/v1/targets?state=Active");
	CHECK(str_find(buf_str(&f.r.body), str_of(active)) > 0);
	CHECK(str_find(buf_str(&f.r.body), STR("\"droppedTargets\":[]")) > 0);
	get("/api/v1/targets?state=dropped");
	CHECK(str_find(buf_str(&f.r.body), STR("\"activeTargets\":[]")) > 0);
	CHECK(str_find(buf_str(&f.r.body), str_of(dropped)) > 0);
	get("/api/v1/targets?scrapePool=other");
	CHECK(str_find(buf_str(&f.r.body), STR("\"activeTargets\":[]")) > 0);
	CHECK(WAIT_FOR((get("/api/v1/targets?state=active&health=down"),
		str_find(buf_str(&f.r.body), str_of(active)) > 0)));
	get("/api/v1/targets?health=up");
	CHECK(str_find(buf_str(&f.r.body), STR("\"activeTargets\":[]")) > 0);
	CHECK(str_find(buf_str(&f.r.body), str_of(dropped)) > 0);
	CHECK_GET("/api/v1/scrape_pools", 200,
		"{\"status\":\"success\",\"data\":{\"scrapePools\":[\"quiet\"]}}\n");
	stop();
}

static void check_buildinfo(void)
{
	struct buf want = { 0 };

	buf_printf(&want,
		"{\"status\":\"success\",\"data\":{\"version\":\"" EPI_VERSION
		"\",\"revision\":\"%s\",\"branch\":\"\",\"buildUser\":\"\","
		"\"buildDate\":\"%s\",\"goVersion\":\"\",\"libraries\":[",
		build_revision, build_date);
	for (size_t i = 0, n = 0; i < libraries_n; i++)
		if (libraries[i].package)
			buf_printf(&want, "%s{\"name\":\"%s\",\"package\":\"%s\",\"version\":\"%s\"}",
				n++ ? "," : "", libraries[i].name, libraries[i].package,
				library_version(&libraries[i]));
	buf_add_cstr(&want, "]}}\n");
	get("/api/v1/status/buildinfo");
	CHECK(str_eq(buf_str(&f.r.body), buf_str(&want)));
	buf_release(&want);
}

TEST(status_of_the_server)
{
	start();
	fill();
	check_buildinfo();
	CHECK_GET("/api/v1/status/flags", 200,
		"{\"status\":\"success\",\"data\":{\"config.file\":\"somewhere\","
		"\"storage.tsdb.retention.time\":\"15d\"}}\n");
	get("/api/v1/status/runtimeinfo");
	CHECK(str_find(buf_str(&f.r.body),
		STR("\"reloadConfigSuccess\":true,\"lastConfigTime\":"
					       "\"2023-11-14T22:13:20.000Z\"")) > 0);
	CHECK(str_find(buf_str(&f.r.body), STR("\"storageRetention\":\"15d\"")) > 0);
	CHECK(str_find(buf_str(&f.r.body), STR("\"oldestProfile\":\"2023-11-14T22:13:20.000Z\"")) > 0);
	get("/api/v1/status/config");
	CHECK(str_find(buf_str(&f.r.body), STR("job_name: quiet")) > 0);
	CHECK(str_find(buf_str(&f.r.body), STR("password: <secret>")) > 0);
	CHECK(str_find(buf_str(&f.r.body), STR("hidden")) < 0);
	get("/api/v1/status/tsdb");
	CHECK(str_find(buf_str(&f.r.body),
		STR("\"state\":\"ready\",\"headStats\":{\"numSeries\":2,"
					       "\"maxSeries\":1000000,\"largestJob\":\"demo\","
					       "\"largestJobSeries\":2,\"maxSeriesPerJob\":500000,"
					       "\"minTime\":1700000000000,"
					       "\"maxTime\":1700000020000}")) > 0);
	CHECK(str_find(buf_str(&f.r.body), STR("\"rowsAppended\":6,\"samplesAppended\":12")) > 0);
	stop();
}
