/*
 * Grafana's calls over a socket, on a real database and engine. Each row is asked as JSON and as
 * protobuf, and both answers must say the same.
 */
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "proto/pprof.h"
#include "proto/pyroscope.pb-c.h"
#include "tests/check.h"
#include "tests/web/http_peer.h"
#include "tsdb/db.h"
#include "web/pyroscope.h"
#include "web/pyroscope_json.h"
#include "web/web.h"

#define T0 INT64_C(1700000000) /* seconds; profiles stand at T0, T0 + 10, T0 + 20 */
#define SPAN "\"start\":\"1699999990000\",\"end\":\"1700000030000\""
#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define OF_CPU "\"profileTypeID\":\"" CPU "\","

static struct fixture {
	char dir[64];
	struct db *db;
	struct engine *engine;
	struct web *web;
	struct response r;
} f;

static void must(enum err_code rc, const struct err *err)
{
	if (!rc)
		return;
	printf("  cannot start: %s\n", err->msg);
	exit(1);
}

static enum err_code reload(void *ctx, struct err *err)
{
	(void)ctx;
	return err_set(err, ERR_INVALID, "not here");
}

static void quit(void *ctx)
{
	(void)ctx;
}

static void start(void)
{
	struct engine_options e = { .timeout_ns = 20 * NS_PER_S,
		.lookback_ns = 5 * NS_PER_MIN,
		.concurrency_max = 4,
		.samples_max = 1000000,
		.memory_bytes_max = 256u << 20 };
	struct web_options w = { .listen_address = "127.0.0.1:0",
		.cors_origin = "http://grafana\\.example",
		.enable_ingest = true,
		.reload = reload,
		.quit = quit };
	struct db_options d;
	struct err err;

	memset(&f, 0, sizeof(f));
	snprintf(f.dir, sizeof(f.dir), "/tmp/epi-pyroscope-XXXXXX");
	if (!mkdtemp(f.dir))
		exit(1);
	db_options_default(&d);
	d.dir = f.dir;
	d.too_old_ns = 100000 * NS_PER_HOUR;
	d.retention_ns = 0;
	must(db_open(&d, &f.db, &err), &err);
	e.db = f.db;
	must(engine_open(&e, &f.engine, &err), &err);
	w.db = f.db;
	w.engine = f.engine;
	must(web_open(&w, &f.web, &err), &err);
	web_set_ready(f.web, true);
}

static void stop(void)
{
	struct err err;

	web_close(f.web);
	engine_close(f.engine);
	db_close(f.db);
	response_release(&f.r);
	CHECK_OK(fs_remove_tree(&fs_posix, f.dir, &err), &err);
}

static void post(const char *path, const char *headers, struct str body)
{
	char request[1024];

	snprintf(request, sizeof(request), "POST %s", path);
	peer_ask(web_port(f.web), &f.r, request, headers, body);
}

/* ---- data ---- */

/* main;handle;leaf costs `slow`, main;handle `own`. CPU: 10 ms each, a duration of 9 s. */
static void profile(struct buf *gz, bool cpu, int64_t slow, int64_t own, const char *leaf)
{
	const char *names[] = { leaf, "main.handle", "main.main" };
	uint32_t locations[3];
	struct pprof_builder *b;
	struct buf raw = { 0 };
	struct pprof *p;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	must(pprof_builder_open(&a, &b, &err), &err);
	pprof_builder_type(b, cpu ? STR("samples") : STR("goroutine"), STR("count"));
	if (cpu)
		pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	for (int i = 0; i < 3; i++) {
		struct pprof_function fn = { .name = pprof_builder_string(b, str_of(names[i])) };
		struct pprof_line line = { .function = pprof_builder_function(b, &fn),
			.line = i + 1 };
		struct pprof_location l = { .address = 4096u + (unsigned)i, .mapping = PPROF_NONE };

		locations[i] = pprof_builder_location(b, l, &line, 1);
	}
	for (int i = 0; i < 2; i++) {
		int64_t n = i ? own : slow, values[2] = { n, n * 10000000 };

		pprof_builder_sample(b, locations + i, 3 - (uint32_t)i, NULL, 0, values);
	}
	p = pprof_builder_profile(b);
	p->duration_nanos = cpu ? 9 * NS_PER_S : 0;
	p->period_type.type = pprof_builder_string(b, cpu ? STR("cpu") : STR("goroutine"));
	p->period_type.unit = pprof_builder_string(b, cpu ? STR("nanoseconds") : STR("count"));
	must(pprof_builder_finish(b, &p, &err), &err);
	must(pprof_encode(p, &raw, &err), &err);
	must(gzip_compress(buf_str(&raw), 1, gz, &err), &err);
	buf_release(&raw);
	arena_release(&a);
}

static void ingest(const char *labels, int64_t at_s, bool cpu, int64_t slow, int64_t own,
	const char *leaf)
{
	struct buf gz = { 0 };
	char path[256];

	profile(&gz, cpu, slow, own, leaf);
	snprintf(path, sizeof(path), "/api/v1/ingest?name=%s&time=%lld&interval=10s&%s",
		cpu ? "cpu" : "goroutine", (long long)at_s, labels);
	post(path, "", buf_str(&gz));
	CHECK_INT(f.r.status, 200);
	buf_release(&gz);
}

/* Two versions, three profiles each, v2 is slow; and goroutines of v1, 4 then 8 then 12. */
static void fill(void)
{
	for (int64_t i = 0; i < 3; i++) {
		ingest("job=demo&version=v1", T0 + 10 * i, true, 1, 5, "main.slow");
		ingest("job=demo&version=v2", T0 + 10 * i, true, 3, 5, "main.slow");
		ingest("job=demo&version=v1", T0 + 10 * i, false, 3 * (i + 1), i + 1, "main.wait");
	}
}

/* ---- asking ---- */

#define M(name) &epimetheus__pyroscope__##name##__descriptor

static const struct {
	const char *method;
	const ProtobufCMessageDescriptor *response;
} responses[] = {
	{ "ProfileTypes", M(profile_types_response) },
	{ "LabelNames", M(label_names_response) },
	{ "LabelValues", M(label_values_response) },
	{ "Series", M(series_response) },
	{ "SelectSeries", M(select_series_response) },
	{ "SelectMergeStacktraces", M(select_merge_stacktraces_response) },
	{ "SelectMergeProfile", &epimetheus__pprof__profile__descriptor },
	{ "Diff", M(diff_response) },
	{ "GetProfileStats", M(get_profile_stats_response) },
};

static void call(const char *method, const char *headers, struct str body)
{
	char path[128];

	snprintf(path, sizeof(path), "/querier.v1.QuerierService/%s", method);
	post(path, headers, body);
}

#define AS_JSON "Content-Type: application/json\r\n"
#define AS_PROTO "Content-Type: application/proto\r\nConnect-Protocol-Version: 1\r\n"

static void pack(const char *method, const char *json, struct buf *out)
{
	ProtobufCMessage *m = NULL;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	for (size_t i = 0; i < pyroscope_methods_n; i++)
		if (!strcmp(pyroscope_methods[i].name, method))
			CHECK_OK(pyroscope_json_read(&a, pyroscope_methods[i].request, str_of(json),
					 &m, &err), &err);
	if (m && buf_reserve(out, protobuf_c_message_get_packed_size(m) + 1))
		out->len += protobuf_c_message_pack(m, (uint8_t *)out->ptr);
	arena_release(&a);
}

static void check_proto(const char *method, const char *json, const char *want)
{
	struct buf request = { 0 }, text = { 0 };
	ProtobufCMessage *m = NULL;
	struct json j;

	pack(method, json, &request);
	call(method, AS_PROTO, buf_str(&request));
	CHECK_INT(f.r.status, 200);
	CHECK_STR(response_header(&f.r, "Content-Type"), "application/proto");
	for (size_t i = 0; i < sizeof(responses) / sizeof(responses[0]); i++)
		if (!strcmp(responses[i].method, method))
			m = protobuf_c_message_unpack(responses[i].response, NULL, f.r.body.len,
				(const uint8_t *)(f.r.body.ptr ? f.r.body.ptr : ""));
	if (m) {
		json_init(&j, &text);
		pyroscope_json_write(&j, m);
		CHECK_STR(buf_str(&text), want);
		protobuf_c_message_free_unpacked(m, NULL);
	} else {
		CHECK_FAIL("%s: the answer cannot be decoded", method);
	}
	buf_release(&request);
	buf_release(&text);
}

static void check(const char *method, const char *json, const char *want)
{
	call(method, AS_JSON, str_of(json));
	CHECK_INT(f.r.status, 200);
	CHECK_STR(response_header(&f.r, "Content-Type"), "application/json");
	CHECK_STR(buf_str(&f.r.body), want);
	check_proto(method, json, want);
}

static void check_error(
	const char *method, const char *json, int status, const char *code, const char *message)
{
	struct buf want = { 0 }, request = { 0 };
	struct json j;

	json_init(&j, &want);
	json_object(&j);
	json_key(&j, "code");
	json_cstr(&j, code);
	json_key(&j, "message");
	json_cstr(&j, message);
	json_object_end(&j);
	buf_add_char(&want, '\0');
	call(method, AS_JSON, str_of(json));
	CHECK_INT(f.r.status, status);
	CHECK_STR(buf_str(&f.r.body), want.ptr);
	pack(method, json, &request);
	call(method, AS_PROTO, buf_str(&request));
	CHECK_INT(f.r.status, status);
	CHECK_STR(response_header(&f.r, "Content-Type"), "application/json");
	CHECK_STR(buf_str(&f.r.body), want.ptr);
	buf_release(&want);
	buf_release(&request);
}

/* ---- the methods ---- */

TEST(the_health_check_of_grafana_is_an_empty_answer)
{
	struct buf request = { 0 };

	start();
	check("ProfileTypes", "{\"start\":1000,\"end\":4000}", "{}");
	pack("ProfileTypes", "{\"start\":1000,\"end\":4000}", &request);
	CHECK_STR(buf_str(&request), "\x08\xe8\x07\x10\xa0\x1f");
	call("ProfileTypes", AS_PROTO, buf_str(&request));
	CHECK_INT(f.r.status, 200);
	CHECK_INT(f.r.body.len, 0);
	check("GetProfileStats", "{}", "{}");
	buf_release(&request);
	stop();
}

TEST(names)
{
	start();
	fill();
	check("ProfileTypes", "{" SPAN "}",
		"{\"profileTypes\":["
		"{\"ID\":\"goroutine:goroutine:count:goroutine:count\",\"name\":\"goroutine\","
		"\"sampleType\":\"goroutine\",\"sampleUnit\":\"count\",\"periodType\":\"goroutine\","
		"\"periodUnit\":\"count\"},"
		"{\"ID\":\"" CPU "\",\"name\":\"process_cpu\",\"sampleType\":\"cpu\","
		"\"sampleUnit\":\"nanoseconds\",\"periodType\":\"cpu\",\"periodUnit\":\"nanoseconds\"},"
		"{\"ID\":\"process_cpu:samples:count:cpu:nanoseconds\",\"name\":\"process_cpu\","
		"\"sampleType\":\"samples\",\"sampleUnit\":\"count\",\"periodType\":\"cpu\","
		"\"periodUnit\":\"nanoseconds\"}]}");
	check("LabelNames", "{" SPAN "}", "{\"names\":[\"__name__\",\"job\",\"version\"]}");
	check("LabelNames", "{\"matchers\":[\"{__profile_type__=\\\"" CPU "\\\"}\"]," SPAN "}",
		"{\"names\":[\"__name__\",\"job\",\"version\"]}");
	check("LabelValues", "{\"name\":\"version\"," SPAN "}", "{\"names\":[\"v1\",\"v2\"]}");
	check("LabelValues", "{\"name\":\"version\",\"matchers\":[\"" CPU "{version!=\\\"v1\\\"}\"],"
		SPAN "}", "{\"names\":[\"v2\"]}");
	check("LabelValues", "{\"name\":\"version\",\"matchers\":"
		"[\"{__profile_type__=\\\"goroutine:goroutine:count:goroutine:count\\\"}\"]," SPAN "}",
		"{\"names\":[\"v1\"]}");
	check("LabelValues", "{\"name\":\"service_name\"," SPAN "}", "{}");
	check("LabelValues", "{\"name\":\"__profile_type__\",\"matchers\":[\"{version=\\\"v2\\\"}\"],"
		SPAN "}", "{\"names\":[\"" CPU "\",\"process_cpu:samples:count:cpu:nanoseconds\"]}");
	check("LabelValues", "{\"name\":\"__profile_type__\",\"matchers\":[\"{}\"]," SPAN "}",
		"{\"names\":[\"goroutine:goroutine:count:goroutine:count\",\"" CPU
		"\",\"process_cpu:samples:count:cpu:nanoseconds\"]}");
	check("LabelValues", "{\"name\":\"job\",\"start\":1,\"end\":2}", "{}");
	check("GetProfileStats", "{}",
		"{\"dataIngested\":true,\"oldestProfileTime\":\"1700000000000\","
		"\"newestProfileTime\":\"1700000020000\"}");
	stop();
}

TEST(series)
{
	start();
	fill();
	check("Series", "{\"matchers\":[\"{__profile_type__=\\\"" CPU "\\\"}\"]," SPAN "}",
		"{\"labelsSet\":[{\"labels\":[{\"name\":\"__name__\",\"value\":\"process_cpu\"},"
		"{\"name\":\"job\",\"value\":\"demo\"},{\"name\":\"version\",\"value\":\"v1\"}]},"
		"{\"labels\":[{\"name\":\"__name__\",\"value\":\"process_cpu\"},"
		"{\"name\":\"job\",\"value\":\"demo\"},{\"name\":\"version\",\"value\":\"v2\"}]}]}");
	check("Series", "{\"label_names\":[\"job\"]," SPAN "}",
		"{\"labelsSet\":[{\"labels\":[{\"name\":\"job\",\"value\":\"demo\"}]}]}");
	check("Series", "{\"matchers\":[\"{version=\\\"v2\\\"}\",\"{version=~\\\"v[2-9]\\\"}\"],"
		"\"labelNames\":[\"version\",\"__profile_type__\",\"zone\"]," SPAN "}",
		"{\"labelsSet\":[{\"labels\":[{\"name\":\"__profile_type__\",\"value\":\"" CPU "\"},"
		"{\"name\":\"version\",\"value\":\"v2\"}]},{\"labels\":[{\"name\":\"__profile_type__\","
		"\"value\":\"process_cpu:samples:count:cpu:nanoseconds\"},"
		"{\"name\":\"version\",\"value\":\"v2\"}]}]}");
	check("Series", "{\"matchers\":[\"{__profile_type__=\\\"a:b:c:d:e\\\"}\"]," SPAN "}", "{}");
	stop();
}

#define POINT(v, t) "{\"value\":" v ",\"timestamp\":\"" t "\"}"

TEST(series_are_sums_of_steps)
{
	start();
	fill();
	/* (t - step, t]: T0 stands in the first step, which ends at it; the last has no profile. */
	check("SelectSeries", "{" OF_CPU "\"labelSelector\":\"{}\",\"start\":\"1700000000000\","
		"\"end\":\"1700000060000\",\"step\":15}",
		"{\"series\":[{\"points\":[" POINT("140000000", "1700000000000") ","
		POINT("140000000", "1700000015000") "," POINT("140000000", "1700000030000") "]}]}");
	check("SelectSeries", "{" OF_CPU "\"labelSelector\":\"{job=\\\"demo\\\"}\",\"groupBy\":"
		"[\"version\"],\"start\":\"1700000020000\",\"end\":\"1700000020000\",\"step\":20}",
		"{\"series\":[{\"labels\":[{\"name\":\"version\",\"value\":\"v1\"}],\"points\":["
		POINT("120000000", "1700000020000") "]},"
		"{\"labels\":[{\"name\":\"version\",\"value\":\"v2\"}],\"points\":["
		POINT("160000000", "1700000020000") "]}]}");
	check("SelectSeries", "{" OF_CPU "\"group_by\":[\"version\"],\"limit\":\"1\","
		"\"start\":\"1700000020000\",\"end\":\"1700000020000\",\"step\":\"20\"}",
		"{\"series\":[{\"labels\":[{\"name\":\"version\",\"value\":\"v2\"}],\"points\":["
		POINT("160000000", "1700000020000") "]}]}");
	/* A level is its mean, summed over series or, where that is asked for, the mean of them. */
	check("SelectSeries", "{\"profile_typeID\":\"goroutine:goroutine:count:goroutine:count\","
		"\"start\":\"1700000020000\",\"end\":\"1700000020000\",\"step\":20}",
		"{\"series\":[{\"points\":[" POINT("10", "1700000020000") "]}]}");
	ingest("job=demo&version=v3", T0 + 10, false, 9, 9, "main.wait");
	ingest("job=demo&version=v3", T0 + 20, false, 9, 9, "main.wait");
	check("SelectSeries", "{\"profile_typeID\":\"goroutine:goroutine:count:goroutine:count\","
		"\"start\":\"1700000020000\",\"end\":\"1700000020000\",\"step\":20}",
		"{\"series\":[{\"points\":[" POINT("28", "1700000020000") "]}]}");
	check("SelectSeries", "{\"profile_typeID\":\"goroutine:goroutine:count:goroutine:count\","
		"\"start\":\"1700000020000\",\"end\":\"1700000020000\",\"step\":20,"
		"\"aggregation\":\"TIME_SERIES_AGGREGATION_TYPE_AVERAGE\"}",
		"{\"series\":[{\"points\":[" POINT("14", "1700000020000") "]}]}");
	check("SelectSeries", "{" OF_CPU SPAN ",\"step\":15,\"labelSelector\":"
		"\"{job=\\\"other\\\"}\"}", "{}");
	stop();
}

#define NAMES "\"names\":[\"total\",\"main.main\",\"main.handle\",\"main.slow\"]"
#define ROW(v) "{\"values\":[" v "]}"

TEST(merged_stacks)
{
	start();
	fill();
	check("SelectMergeStacktraces", "{" OF_CPU "\"labelSelector\":\"{version=\\\"v2\\\"}\"," SPAN
		"}",
		"{\"flamegraph\":{" NAMES ",\"levels\":[" ROW("\"0\",\"240000000\",\"0\",\"0\"") ","
		ROW("\"0\",\"240000000\",\"0\",\"1\"") ","
		ROW("\"0\",\"240000000\",\"150000000\",\"2\"") ","
		ROW("\"150000000\",\"90000000\",\"90000000\",\"3\"") "],"
		"\"total\":\"240000000\",\"maxSelf\":\"150000000\"}}");
	check("SelectMergeStacktraces", "{" OF_CPU "\"labelSelector\":\"" CPU "{version=\\\"v2\\\"}\","
		"\"maxNodes\":\"3\",\"format\":\"PROFILE_FORMAT_FLAMEGRAPH\"," SPAN "}",
		"{\"flamegraph\":{\"names\":[\"total\",\"main.main\",\"main.handle\",\"other\"],"
		"\"levels\":[" ROW("\"0\",\"240000000\",\"0\",\"0\"") ","
		ROW("\"0\",\"240000000\",\"0\",\"1\"") ","
		ROW("\"0\",\"240000000\",\"150000000\",\"2\"") ","
		ROW("\"150000000\",\"90000000\",\"90000000\",\"3\"") "],"
		"\"total\":\"240000000\",\"maxSelf\":\"150000000\"}}");
	check("SelectMergeStacktraces", "{" OF_CPU "\"labelSelector\":\"{job=\\\"other\\\"}\"," SPAN
		"}", "{\"flamegraph\":{\"names\":[\"total\"],\"levels\":["
		ROW("\"0\",\"0\",\"0\",\"0\"") "]}}");
	/* "", 0, 1 below; main.main, 0, 1; main.handle, 5, 1; main.slow, 3, 0 */
	check("SelectMergeStacktraces", "{\"profileTypeID\":\"cpu:samples:count:cpu:nanoseconds\","
		"\"labelSelector\":\"{version=\\\"v2\\\"}\",\"format\":2," SPAN "}",
		"{\"tree\":\"AAABCW1haW4ubWFpbgABC21haW4uaGFuZGxlDwEJbWFpbi5zbG93CQA=\"}");
	check("SelectMergeStacktraces", "{" OF_CPU "\"labelSelector\":\"{job=\\\"other\\\"}\","
		"\"format\":2," SPAN "}", "{}");
	stop();
}

TEST(stacks_that_begin_with_a_call_site)
{
	start();
	fill();
	ingest("job=demo&version=v2", T0 + 25, true, 7, 2, "main.other");
	check("SelectMergeStacktraces", "{" OF_CPU "\"labelSelector\":\"{version=\\\"v2\\\"}\","
		"\"stackTraceSelector\":{\"callSite\":[{\"name\":\"main.main\"},"
		"{\"name\":\"main.handle\"},{\"name\":\"main.other\"}]}," SPAN "}",
		"{\"flamegraph\":{\"names\":[\"total\",\"main.main\",\"main.handle\",\"main.other\"],"
		"\"levels\":[" ROW("\"0\",\"70000000\",\"0\",\"0\"") ","
		ROW("\"0\",\"70000000\",\"0\",\"1\"") "," ROW("\"0\",\"70000000\",\"0\",\"2\"") ","
		ROW("\"0\",\"70000000\",\"70000000\",\"3\"") "],"
		"\"total\":\"70000000\",\"maxSelf\":\"70000000\"}}");
	check("SelectMergeStacktraces", "{" OF_CPU "\"labelSelector\":\"{version=\\\"v2\\\"}\","
		"\"stackTraceSelector\":{\"callSite\":[{\"name\":\"main.handle\"}]}," SPAN "}",
		"{\"flamegraph\":{\"names\":[\"total\"],\"levels\":["
		ROW("\"0\",\"0\",\"0\",\"0\"") "]}}");
	check("SelectMergeStacktraces", "{" OF_CPU "\"labelSelector\":\"{version=\\\"v1\\\"}\","
		"\"stackTraceSelector\":{}," SPAN "}",
		"{\"flamegraph\":{" NAMES ",\"levels\":[" ROW("\"0\",\"180000000\",\"0\",\"0\"") ","
		ROW("\"0\",\"180000000\",\"0\",\"1\"") ","
		ROW("\"0\",\"180000000\",\"150000000\",\"2\"") ","
		ROW("\"150000000\",\"30000000\",\"30000000\",\"3\"") "],"
		"\"total\":\"180000000\",\"maxSelf\":\"150000000\"}}");
	stop();
}

static struct pprof *decode_profile(struct arena *a, struct str raw)
{
	struct pprof *p = NULL;
	struct err err;

	CHECK_OK(pprof_decode(a, raw, &pprof_limits_default, &p, &err), &err);
	return p;
}

static void check_pprof(const struct pprof *p)
{
	int64_t sum = 0;

	REQUIRE(p != NULL);
	CHECK_INT(p->types_n, 1);
	CHECK_STR(p->strings[p->types[0].type], "cpu");
	CHECK_STR(p->strings[p->types[0].unit], "nanoseconds");
	CHECK_INT(p->samples_n, 2);
	CHECK_INT(p->functions_n, 3);
	for (uint32_t i = 0; i < p->samples_n; i++)
		sum += p->values[i];
	CHECK_INT(sum, 240000000);
	CHECK_INT(p->duration_nanos, 27 * NS_PER_S);
}

TEST(merged_pprof)
{
	const char *ask = "{" OF_CPU "\"labelSelector\":\"{version=\\\"v2\\\"}\",\"format\":4," SPAN
		"}";
	struct buf request = { 0 };
	ProtobufCMessage *m;
	Epimetheus__Pyroscope__SelectMergeStacktracesResponse *wrapped;
	struct arena a;
	struct err err;

	start();
	fill();
	arena_init(&a, 0);
	pack("SelectMergeProfile", ask, &request);
	call("SelectMergeProfile", AS_PROTO, buf_str(&request));
	CHECK_INT(f.r.status, 200);
	check_pprof(decode_profile(&a, buf_str(&f.r.body)));
	call("SelectMergeProfile", AS_JSON, str_of(ask));
	CHECK_OK(pyroscope_json_read(&a, M(select_merge_profile_request), buf_str(&f.r.body), &m,
			 &err), &err);
	CHECK(str_find(buf_str(&f.r.body), STR("\"stringTable\":[\"\",")) > 0);
	CHECK(str_find(buf_str(&f.r.body), STR("\"durationNanos\":\"27000000000\"")) > 0);
	buf_clear(&request);
	pack("SelectMergeStacktraces", ask, &request);
	call("SelectMergeStacktraces", AS_PROTO, buf_str(&request));
	CHECK_INT(f.r.status, 200);
	wrapped = epimetheus__pyroscope__select_merge_stacktraces_response__unpack(
		NULL, f.r.body.len, (uint8_t *)f.r.body.ptr);
	REQUIRE(wrapped && wrapped->pprof && wrapped->pprof->profile && !wrapped->flamegraph);
	CHECK_INT(wrapped->pprof->profile->n_sample, 2);
	CHECK_INT(wrapped->pprof->profile->duration_nanos, 27 * NS_PER_S);
	epimetheus__pyroscope__select_merge_stacktraces_response__free_unpacked(wrapped, NULL);
	call("SelectMergeStacktraces", AS_JSON, str_of(ask));
	CHECK(str_has_prefix(buf_str(&f.r.body), STR("{\"pprof\":{\"profile\":{\"sampleType\":[")));
	check("SelectMergeProfile", "{" OF_CPU "\"labelSelector\":\"{job=\\\"other\\\"}\"," SPAN "}",
		"{}");
	buf_release(&request);
	arena_release(&a);
	stop();
}

TEST(differences)
{
	start();
	fill();
	check("Diff", "{\"left\":{" OF_CPU "\"labelSelector\":\"{version=\\\"v1\\\"}\"," SPAN "},"
		"\"right\":{" OF_CPU "\"labelSelector\":\"{version=\\\"v2\\\"}\",\"start\":"
		"1700000005000,\"end\":1700000030000}}",
		"{\"flamegraph\":{" NAMES ",\"levels\":["
		ROW("\"0\",\"180000000\",\"0\",\"0\",\"160000000\",\"0\",\"0\"") ","
		ROW("\"0\",\"180000000\",\"0\",\"0\",\"160000000\",\"0\",\"1\"") ","
		ROW("\"0\",\"180000000\",\"150000000\",\"0\",\"160000000\",\"100000000\",\"2\"") ","
		ROW("\"150000000\",\"30000000\",\"30000000\",\"100000000\",\"60000000\",\"60000000\","
		"\"3\"") "],\"total\":\"340000000\",\"maxSelf\":\"150000000\","
		"\"leftTicks\":\"180000000\",\"rightTicks\":\"160000000\"}}");
	check("Diff", "{\"left\":{" OF_CPU "\"labelSelector\":\"{version=\\\"v9\\\"}\"," SPAN "},"
		"\"right\":{" OF_CPU "\"labelSelector\":\"{version=\\\"v8\\\"}\"," SPAN "}}",
		"{\"flamegraph\":{\"names\":[\"total\"],\"levels\":["
		ROW("\"0\",\"0\",\"0\",\"0\",\"0\",\"0\",\"0\"") "]}}");
	stop();
}

/* ---- what is refused ---- */

TEST(errors_are_connects)
{
	static const struct {
		const char *method, *request;
		int status;
		const char *code, *message;
	} rows[] = {
		{ "SelectSeries", "{" OF_CPU SPAN "}", 400, "invalid_argument",
			"step is to be seconds, 0.001 at least" },
		{ "SelectSeries", "{" OF_CPU SPAN ",\"step\":0.001}", 400, "invalid_argument",
			"more than 11000 points: the step is too short" },
		{ "SelectSeries", "{" SPAN ",\"step\":15}", 400, "invalid_argument",
			"profile_typeID is missing" },
		{ "SelectSeries", "{\"profileTypeID\":\"cpu\"," SPAN ",\"step\":15}", 400,
			"invalid_argument",
			"selector \"\": profile type \"cpu\" is not <name>:<sample type>:<sample "
			"unit>:<period type>:<period unit>" },
		{ "SelectSeries", "{" OF_CPU SPAN ",\"step\":15,\"groupBy\":[\"a) (x)\"]}", 400,
			"invalid_argument", "group_by: \"a) (x)\" is no name of a label" },
		{ "SelectSeries", "{" OF_CPU SPAN ",\"step\":15,\"aggregation\":1}", 501,
			"unimplemented",
			"aggregation average is supported for levels alone, such as inuse_space" },
		{ "SelectSeries", "{" OF_CPU SPAN ",\"step\":15,\"aggregation\":7}", 501,
			"unimplemented", "aggregation 7 is not supported" },
		{ "SelectSeries", "{" OF_CPU SPAN ",\"step\":15,\"limit\":-1}", 400,
			"invalid_argument", "limit is negative" },
		{ "SelectSeries",
			"{" OF_CPU SPAN ",\"step\":15,\"stackTraceSelector\":{\"callSite\":[{}]}}",
			501, "unimplemented",
			"stack_trace_selector.call_site is supported for flame graphs alone" },
		{ "SelectMergeStacktraces", "{" OF_CPU SPAN ",\"format\":3}", 501, "unimplemented",
			"format PROFILE_FORMAT_DOT is not supported" },
		{ "SelectMergeStacktraces", "{" OF_CPU SPAN ",\"format\":5}", 501, "unimplemented",
			"format 5 is not supported" },
		{ "SelectMergeStacktraces",
			"{" OF_CPU SPAN ",\"stackTraceSelector\":{\"goPgo\":{}}}", 501,
			"unimplemented", "stack_trace_selector.go_pgo is not supported" },
		{ "SelectMergeStacktraces", "{" OF_CPU SPAN ",\"profileIdSelector\":[\"x\"]}", 501,
			"unimplemented", "profile_id_selector is not supported" },
		{ "SelectMergeStacktraces", "{" OF_CPU "\"start\":2,\"end\":1}", 400,
			"invalid_argument", "end is before start" },
		{ "SelectMergeStacktraces", "{" OF_CPU "\"start\":-2,\"end\":1}", 400,
			"invalid_argument", "start and end are milliseconds since 1970" },
		{ "SelectMergeStacktraces", "{" OF_CPU "\"end\":\"9223372036854775807\"}", 400,
			"invalid_argument", "start and end are milliseconds since 1970" },
		{ "SelectMergeStacktraces", "{" OF_CPU "\"labelSelector\":\"{job=}\"," SPAN "}", 400,
			"invalid_argument",
			"selector \"{job=}\": 1:6: unexpected \"}\", expected string" },
		{ "SelectMergeStacktraces", "{" OF_CPU "\"labelSelector\":\"{} or {}\"," SPAN "}",
			400, "invalid_argument",
			"selector \"{} or {}\": expected {label=\"value\", ...}" },
		{ "SelectMergeStacktraces",
			"{\"labelSelector\":\"{__profile_type__!=\\\"a:b:c:d:e\\\"}\"," SPAN "}", 400,
			"invalid_argument",
			"selector \"{__profile_type__!=\\\"a:b:c:d:e\\\"}\": __profile_type__ can be "
			"matched by = alone, not by !=" },
		{ "SelectMergeProfile", "{" SPAN "}", 400, "invalid_argument",
			"profile_typeID is missing" },
		{ "Diff", "{}", 400, "invalid_argument", "left is missing" },
		{ "Diff", "{\"left\":{" OF_CPU SPAN "}}", 400, "invalid_argument",
			"right is missing" },
		{ "Diff", "{\"left\":{" OF_CPU SPAN "},\"right\":{\"profileTypeID\":\"" CPU "\"}}", 400,
			"invalid_argument", "a side of the difference ends where it starts" },
		{ "LabelValues", "{\"name\":\"a b\"}", 400, "invalid_argument",
			"name is to be that of a label" },
		{ "LabelNames", "{\"matchers\":[\"x\"]}", 400, "invalid_argument",
			"selector \"x\": profile type \"x\" is not <name>:<sample type>:<sample "
			"unit>:<period type>:<period unit>" },
	};

	start();
	fill();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_error(rows[i].method, rows[i].request, rows[i].status, rows[i].code,
			rows[i].message);
	stop();
}

#define CONNECT_ERROR(code, msg) "{\"code\":\"" code "\",\"message\":\"" msg "\"}"

TEST(bodies_and_headers)
{
	static const struct {
		const char *headers, *body;
		int status;
		const char *want;
	} rows[] = {
		{ "Content-Type: text/plain\r\n", "{}", 415,
			"Content-Type is to be application/proto or application/json\n" },
		{ "Content-Type: application/x-www-form-urlencoded\r\n", "a=b", 415,
			"Content-Type is to be application/proto or application/json\n" },
		{ "", "", 415, "Content-Type is to be application/proto or application/json\n" },
		{ "Content-Type: application/grpc\r\n", "", 415,
			"Content-Type is to be application/proto or application/json\n" },
		{ "Content-Type: application/json; charset=utf-8\r\n", "{\"unknown\":[{}]}", 200,
			"{}" },
		{ AS_JSON, "", 400, CONNECT_ERROR("invalid_argument",
			"the body is not JSON: line 1, column 0: '[' or '{' expected near end of file") },
		{ AS_JSON, "[]", 400, CONNECT_ERROR("invalid_argument",
			"ProfileTypesRequest: expected an object") },
		{ AS_JSON, "{\"start\":\"x\"}", 400, CONNECT_ERROR("invalid_argument",
			"field start: expected a whole number") },
		{ AS_JSON, "{\"start\":1.5}", 400, CONNECT_ERROR("invalid_argument",
			"field start: expected a whole number") },
		{ AS_JSON, "{\"start\":1e3,\"end\":null}", 400, CONNECT_ERROR("invalid_argument",
			"end is before start") },
		{ AS_PROTO, "\x08", 400, CONNECT_ERROR("invalid_argument",
			"the body is no ProfileTypesRequest in protobuf") },
		{ AS_PROTO, "\x7a\x01x\xf8\x07\x05", 200, "" }, /* fields 15 and 127 */
		{ "Content-Type: application/json\r\nConnect-Protocol-Version: 2\r\n", "{}", 400,
			CONNECT_ERROR("invalid_argument",
				"Connect-Protocol-Version is to be \\\"1\\\", not \\\"2\\\"") },
		{ "Content-Type: application/json\r\nConnect-Timeout-Ms: x\r\n", "{}", 400,
			CONNECT_ERROR("invalid_argument", "Connect-Timeout-Ms is to be a number of "
							  "at most 10 digits, not \\\"x\\\"") },
		{ "Content-Type: application/json\r\nConnect-Timeout-Ms: 0\r\n", "{}", 504,
			CONNECT_ERROR("deadline_exceeded", "Connect-Timeout-Ms is 0") },
		{ "Content-Type: application/json\r\nConnect-Timeout-Ms: 5000\r\n", "{}", 200,
			"{}" },
		{ "Content-Type: application/json\r\nContent-Encoding: br\r\n", "{}", 501,
			CONNECT_ERROR("unimplemented", "Content-Encoding \\\"br\\\" is not known; "
						       "gzip and identity are") },
		{ "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", "{}", 400,
			CONNECT_ERROR("invalid_argument",
				"Content-Encoding is gzip, the body is not") },
	};
	struct buf big = { 0 }, gz = { 0 };
	struct err err;

	start();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		call("ProfileTypes", rows[i].headers, str_of(rows[i].body));
		CHECK_INT(f.r.status, rows[i].status);
		CHECK_STR(buf_str(&f.r.body), rows[i].want);
	}
	CHECK_OK(gzip_compress(STR("{\"start\":2,\"end\":1}"), 6, &gz, &err), &err);
	call("ProfileTypes", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
		buf_str(&gz));
	CHECK_STR(buf_str(&f.r.body), CONNECT_ERROR("invalid_argument", "end is before start"));
	for (size_t i = 0; i <= PYROSCOPE_REQUEST_BYTES_MAX; i++)
		buf_add_char(&big, ' ');
	call("ProfileTypes", AS_JSON, buf_str(&big));
	CHECK_INT(f.r.status, 429);
	CHECK_STR(buf_str(&f.r.body), CONNECT_ERROR("resource_exhausted",
		"the request is 262145 bytes, limit 262144"));
	buf_clear(&gz);
	CHECK_OK(gzip_compress(buf_str(&big), 6, &gz, &err), &err);
	call("ProfileTypes", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
		buf_str(&gz));
	CHECK_INT(f.r.status, 429);
	call("SelectMergeSpanProfile", AS_JSON, STR("{}"));
	CHECK_INT(f.r.status, 404);
	peer_ask(web_port(f.web), &f.r, "GET /querier.v1.QuerierService/ProfileTypes", "",
		(struct str){ 0 });
	CHECK_INT(f.r.status, 405);
	peer_ask(web_port(f.web), &f.r, "OPTIONS /querier.v1.QuerierService/ProfileTypes",
		"Origin: http://grafana.example\r\n", (struct str){ 0 });
	CHECK_INT(f.r.status, 204);
	CHECK_STR(response_header(&f.r, "Access-Control-Allow-Headers"),
		"Accept, Authorization, Connect-Protocol-Version, Connect-Timeout-Ms, "
		"Content-Type, Origin");
	buf_release(&big);
	buf_release(&gz);
	stop();
}

/* A string field of protobuf is UTF-8, or its readers refuse the whole answer. */
TEST(names_of_functions_that_are_no_text)
{
	struct buf request = { 0 };
	struct arena a;
	struct pprof *p;
	bool seen = false;

	start();
	arena_init(&a, 0);
	ingest("job=demo", T0, true, 3, 1, "bad\xff name");
	check("SelectMergeStacktraces", "{" OF_CPU SPAN "}",
		"{\"flamegraph\":{\"names\":[\"total\",\"main.main\",\"main.handle\","
		"\"bad\xef\xbf\xbd name\"],\"levels\":[" ROW("\"0\",\"40000000\",\"0\",\"0\"") ","
		ROW("\"0\",\"40000000\",\"0\",\"1\"") ","
		ROW("\"0\",\"40000000\",\"10000000\",\"2\"") ","
		ROW("\"10000000\",\"30000000\",\"30000000\",\"3\"") "],"
		"\"total\":\"40000000\",\"maxSelf\":\"30000000\"}}");
	pack("SelectMergeProfile", "{" OF_CPU SPAN "}", &request);
	call("SelectMergeProfile", AS_PROTO, buf_str(&request));
	p = decode_profile(&a, buf_str(&f.r.body));
	REQUIRE(p != NULL);
	for (uint32_t i = 0; i < p->strings_n; i++)
		seen |= str_is(p->strings[i], "bad\xef\xbf\xbd name");
	CHECK(seen);
	buf_release(&request);
	arena_release(&a);
	stop();
}

/* ---- selectors ---- */

TEST(selectors_in_our_language)
{
	static const struct {
		const char *type, *text, *want;
	} rows[] = {
		{ "", "", "{}" },
		{ "", "{}", "{}" },
		{ "", "{a=\"\"}", "{a=\"\"}" },
		{ CPU, "{}",
			"{__name__=\"process_cpu\",__type__=~\"" CPU "(:delta)?\"}" },
		{ "cpu:cpu:nanoseconds:cpu:nanoseconds", "{}",
			"{__name__=\"process_cpu\",__type__=~\"" CPU "(:delta)?\"}" },
		{ CPU ":delta", " {a!=\"b\"} ",
			"{__name__=\"process_cpu\",__type__=~\"" CPU ":delta\",a!=\"b\"}" },
		{ "", "{__profile_type__=\"w:x y:z.\\\"::\",k=~\"v|w\"}",
			"{__name__=\"w\",__type__=~\"w:x\\\\ y:z\\\\.\\\\\\\"::(:delta)?\",k=~\"v|w\"}" },
		{ "", "a.b:c:d:e:f{k=\"}\\\"\"}",
			"{__name__=\"a.b\",__type__=~\"a\\\\.b:c:d:e:f(:delta)?\",k=\"}\\\"\"}" },
	};
	struct pyroscope_selector s;
	struct buf text = { 0 };
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_OK(pyroscope_selector_read(&a, str_of(rows[i].type), str_of(rows[i].text), &s,
				 &err), &err);
		buf_clear(&text);
		pyroscope_selector_print(&text, &s);
		CHECK_STR(buf_str(&text), rows[i].want);
		pyroscope_selector_release(&s);
	}
	buf_release(&text);
	arena_release(&a);
}
