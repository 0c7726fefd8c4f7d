/* Grafana's calls, each in JSON and in protobuf: what they answer. */
#include "base/clock.h"
#include "proto/pyroscope.pb-c.h"
#include "tests/check.h"
#include "tests/web/grafana.h"
#include "web/pyroscope/json.h"

#define CHECK_SAYS(method, json, want) CHECK(grafana_says(method, json, want))
#define M(name) &epimetheus__pyroscope__##name##__descriptor
#define ROW(x, total, self, name) \
	"{\"values\":[\"" #x "\",\"" #total "\",\"" #self "\",\"" #name "\"]}"
#define ROW2(lx, lt, ls, rx, rt, rs, name) \
	"{\"values\":[\"" #lx "\",\"" #lt "\",\"" #ls "\",\"" #rx "\",\"" #rt "\",\"" #rs \
	"\",\"" #name "\"]}"

/* ---- the methods ---- */

TEST(the_health_check_of_grafana_is_an_empty_answer)
{
	struct buf request = { 0 };

	grafana_start();
	CHECK_SAYS("ProfileTypes", "{\"start\":1000,\"end\":4000}", "{}");
	grafana_pack("ProfileTypes", "{\"start\":1000,\"end\":4000}", &request);
	CHECK_STR(buf_str(&request), "\x08\xe8\x07\x10\xa0\x1f");
	grafana_call("ProfileTypes", AS_PROTO, buf_str(&request));
	CHECK_INT(grafana.r.status, 200);
	CHECK_INT(grafana.r.body.len, 0);
	CHECK_SAYS("GetProfileStats", "{}", "{}");
	buf_release(&request);
	grafana_stop();
}

TEST(names)
{
	grafana_start();
	grafana_fill();
	CHECK_SAYS("ProfileTypes", "{" SPAN "}",
		"{\"profileTypes\":["
		"{\"ID\":\"goroutine:goroutine:count:goroutine:count\",\"name\":\"goroutine\","
		"\"sampleType\":\"goroutine\",\"sampleUnit\":\"count\",\"periodType\":\"goroutine\","
		"\"periodUnit\":\"count\"},"
		"{\"ID\":\"" CPU "\",\"name\":\"process_cpu\",\"sampleType\":\"cpu\","
		"\"sampleUnit\":\"nanoseconds\",\"periodType\":\"cpu\",\"periodUnit\":\"nanoseconds\"},"
		"{\"ID\":\"process_cpu:samples:count:cpu:nanoseconds\",\"name\":\"process_cpu\","
		"\"sampleType\":\"samples\",\"sampleUnit\":\"count\",\"periodType\":\"cpu\","
		"\"periodUnit\":\"nanoseconds\"}]}");
	CHECK_SAYS("LabelNames", "{" SPAN "}",
		"{\"names\":[\"__name__\",\"job\",\"service_name\",\"version\"]}");
	CHECK_SAYS("LabelNames", "{\"matchers\":[\"{__profile_type__=\\\"" CPU "\\\"}\"]," SPAN "}",
		"{\"names\":[\"__name__\",\"job\",\"service_name\",\"version\"]}");
	CHECK_SAYS("LabelValues", "{\"name\":\"version\"," SPAN "}", "{\"names\":[\"v1\",\"v2\"]}");
	CHECK_SAYS("LabelValues",
		"{\"name\":\"version\",\"matchers\":[\"" CPU "{version!=\\\"v1\\\"}\"]," SPAN "}",
		"{\"names\":[\"v2\"]}");
	CHECK_SAYS("LabelValues",
		"{\"name\":\"version\",\"matchers\":"
		"[\"{__profile_type__=\\\"goroutine:goroutine:count:goroutine:count\\\"}\"]," SPAN "}",
		"{\"names\":[\"v1\"]}");
	CHECK_SAYS("LabelValues", "{\"name\":\"service_name\"," SPAN "}", "{\"names\":[\"demo\"]}");
	CHECK_SAYS("LabelValues",
		"{\"name\":\"__profile_type__\",\"matchers\":[\"{version=\\\"v2\\\"}\"]," SPAN "}",
		"{\"names\":[\"" CPU "\",\"process_cpu:samples:count:cpu:nanoseconds\"]}");
	CHECK_SAYS("LabelValues", "{\"name\":\"__profile_type__\",\"matchers\":[\"{}\"]," SPAN "}",
		"{\"names\":[\"goroutine:goroutine:count:goroutine:count\",\"" CPU
		"\",\"process_cpu:samples:count:cpu:nanoseconds\"]}");
	CHECK_SAYS("LabelValues", "{\"name\":\"job\",\"start\":1,\"end\":2}", "{}");
	CHECK_SAYS("GetProfileStats", "{}",
		"{\"dataIngested\":true,\"oldestProfileTime\":\"1700000000000\","
		"\"newestProfileTime\":\"1700000020000\"}");
	grafana_stop();
}

TEST(series)
{
	grafana_start();
	grafana_fill();
	CHECK_SAYS("Series", "{\"matchers\":[\"{__profile_type__=\\\"" CPU "\\\"}\"]," SPAN "}",
		"{\"labelsSet\":[{\"labels\":[{\"name\":\"__name__\",\"value\":\"process_cpu\"},"
		"{\"name\":\"job\",\"value\":\"demo\"},"
		"{\"name\":\"service_name\",\"value\":\"demo\"},{\"name\":\"version\",\"value\":\"v1\"}]},"
		"{\"labels\":[{\"name\":\"__name__\",\"value\":\"process_cpu\"},"
		"{\"name\":\"job\",\"value\":\"demo\"},"
		"{\"name\":\"service_name\",\"value\":\"demo\"},{\"name\":\"version\",\"value\":\"v2\"}]}]"
		"}");
	CHECK_SAYS("Series", "{\"label_names\":[\"job\"]," SPAN "}",
		"{\"labelsSet\":[{\"labels\":[{\"name\":\"job\",\"value\":\"demo\"}]}]}");
	CHECK_SAYS("Series",
		"{\"matchers\":[\"{version=\\\"v2\\\"}\",\"{version=~\\\"v[2-9]\\\"}\"],"
		"\"labelNames\":[\"version\",\"__profile_type__\",\"zone\"]," SPAN "}",
		"{\"labelsSet\":[{\"labels\":[{\"name\":\"__profile_type__\",\"value\":\"" CPU "\"},"
		"{\"name\":\"version\",\"value\":\"v2\"}]},{\"labels\":[{\"name\":\"__profile_type__\","
		"\"value\":\"process_cpu:samples:count:cpu:nanoseconds\"},"
		"{\"name\":\"version\",\"value\":\"v2\"}]}]}");
	CHECK_SAYS(
		"Series", "{\"matchers\":[\"{__profile_type__=\\\"a:b:c:d:e\\\"}\"]," SPAN "}", "{}");
	grafana_stop();
}

#define POINT(v, t) "{\"value\":" v ",\"timestamp\":\"" t "\"}"

TEST(series_are_sums_of_steps)
{
	grafana_start();
	grafana_fill();
	/* (t - step, t]: T0 is in the first step, which ends at it; the last has no profile. */
	CHECK_SAYS("SelectSeries",
		"{" OF_CPU "\"labelSelector\":\"{}\",\"start\":\"1700000000000\","
		"\"end\":\"1700000060000\",\"step\":15}",
		"{\"series\":[{\"points\":[" POINT("140000000", "1700000000000") "," POINT(
			"140000000", "1700000015000") "," POINT("140000000", "1700000030000") "]}]}");
	CHECK_SAYS("SelectSeries",
		"{" OF_CPU "\"labelSelector\":\"{job=\\\"demo\\\"}\",\"groupBy\":"
		"[\"version\"],\"start\":\"1700000020000\",\"end\":\"1700000020000\",\"step\":20}",
		"{\"series\":[{\"labels\":[{\"name\":\"version\",\"value\":\"v1\"}],\"points\":[" POINT(
			"120000000", "1700000020000") "]},"
										  "{\"labels\":[{\"name\":\"version\",\"value\":\"v2\"}],"
										  "\"points\":[" POINT(
											  "160000000", "1700000020000") "]}]}");
	CHECK_SAYS("SelectSeries",
		"{" OF_CPU "\"group_by\":[\"version\"],\"limit\":\"1\","
		"\"start\":\"1700000020000\",\"end\":\"1700000020000\",\"step\":\"20\"}",
		"{\"series\":[{\"labels\":[{\"name\":\"version\",\"value\":\"v2\"}],\"points\":[" POINT(
			"160000000", "1700000020000") "]}]}");
	/* Levels: the mean of each series, summed, or their mean if that is asked for. */
	CHECK_SAYS("SelectSeries",
		"{\"profile_typeID\":\"goroutine:goroutine:count:goroutine:count\","
		"\"start\":\"1700000020000\",\"end\":\"1700000020000\",\"step\":20}",
		"{\"series\":[{\"points\":[" POINT("10", "1700000020000") "]}]}");
	grafana_ingest("job=demo&version=v3", T0 + 10, false, 9, 9, "main.wait");
	grafana_ingest("job=demo&version=v3", T0 + 20, false, 9, 9, "main.wait");
	CHECK_SAYS("SelectSeries",
		"{\"profile_typeID\":\"goroutine:goroutine:count:goroutine:count\","
		"\"start\":\"1700000020000\",\"end\":\"1700000020000\",\"step\":20}",
		"{\"series\":[{\"points\":[" POINT("28", "1700000020000") "]}]}");
	CHECK_SAYS("SelectSeries",
		"{\"profile_typeID\":\"goroutine:goroutine:count:goroutine:count\","
		"\"start\":\"1700000020000\",\"end\":\"1700000020000\",\"step\":20,"
		"\"aggregation\":\"TIME_SERIES_AGGREGATION_TYPE_AVERAGE\"}",
		"{\"series\":[{\"points\":[" POINT("14", "1700000020000") "]}]}");
	CHECK_SAYS("SelectSeries",
		"{" OF_CPU SPAN ",\"step\":15,\"labelSelector\":"
		"\"{job=\\\"other\\\"}\"}",
		"{}");
	grafana_stop();
}

/* The mean of all profiles of a group, be they of one series or of several. */
TEST(series_are_means_of_profiles)
{
	grafana_start();
	grafana_fill();
	/* in (T0, T0 + 20] two of v1, 60 ms each, and two of v2, 80 ms each; then one of v3 */
	CHECK_SAYS("SelectSeries",
		"{" OF_CPU "\"groupBy\":[\"version\"],\"aggregation\":1,"
		"\"start\":\"1700000020000\",\"end\":\"1700000040000\",\"step\":20}",
		"{\"series\":[{\"labels\":[{\"name\":\"version\",\"value\":\"v1\"}],\"points\":[" POINT(
			"60000000", "1700000020000") "]},"
										 "{\"labels\":[{\"name\":\"version\",\"value\":\"v2\"}],"
										 "\"points\":[" POINT("80000000", "1700000020000") "]}]}");
	grafana_ingest("job=demo&version=v3", T0 + 20, true, 20, 2, "main.slow");
	CHECK_SAYS("SelectSeries",
		"{" OF_CPU "\"aggregation\":\"TIME_SERIES_AGGREGATION_TYPE_AVERAGE\","
		"\"start\":\"1700000020000\",\"end\":\"1700000020000\",\"step\":20}",
		"{\"series\":[{\"points\":[" POINT("100000000", "1700000020000") "]}]}");
	CHECK_SAYS("SelectSeries",
		"{" OF_CPU SPAN ",\"step\":15,\"aggregation\":1,\"labelSelector\":"
		"\"{job=\\\"other\\\"}\"}",
		"{}");
	grafana_stop();
}

#define NAMES(leaf) "\"names\":[\"total\",\"main.main\",\"main.handle\",\"" leaf "\"]"
/* main.main;main.handle costs `own`, and a leaf below it. */
#define FLAME(leaf, total, own, cost, most) \
	"{\"flamegraph\":{" NAMES(leaf) ",\"levels\":[" ROW(0, total, 0, 0) "," ROW(0, total, 0, \
		1) "," ROW(0, total, own, 2) "," ROW(own, cost, cost, 3) "]," \
																 "\"total\":\"" #total \
																 "\",\"maxSelf\":\"" #most "\"}}"

TEST(merged_stacks)
{
	grafana_start();
	grafana_fill();
	CHECK_SAYS("SelectMergeStacktraces",
		"{" OF_CPU "\"labelSelector\":\"{version=\\\"v2\\\"}\"," SPAN "}",
		FLAME("main.slow", 240000000, 150000000, 90000000, 150000000));
	CHECK_SAYS("SelectMergeStacktraces",
		"{" OF_CPU "\"labelSelector\":\"" CPU "{version=\\\"v2\\\"}\","
		"\"maxNodes\":\"3\",\"format\":\"PROFILE_FORMAT_FLAMEGRAPH\"," SPAN "}",
		FLAME("other", 240000000, 150000000, 90000000, 150000000));
	CHECK_SAYS("SelectMergeStacktraces",
		"{" OF_CPU "\"labelSelector\":\"{job=\\\"other\\\"}\"," SPAN "}",
		"{\"flamegraph\":{\"names\":[\"total\"],\"levels\":[" ROW(0, 0, 0, 0) "]}}");
	/* "", 0, 1 below; main.main, 0, 1; main.handle, 5, 1; main.slow, 3, 0 */
	CHECK_SAYS("SelectMergeStacktraces",
		"{\"profileTypeID\":\"cpu:samples:count:cpu:nanoseconds\","
		"\"labelSelector\":\"{version=\\\"v2\\\"}\",\"format\":2," SPAN "}",
		"{\"tree\":\"AAABCW1haW4ubWFpbgABC21haW4uaGFuZGxlDwEJbWFpbi5zbG93CQA=\"}");
	CHECK_SAYS("SelectMergeStacktraces",
		"{" OF_CPU "\"labelSelector\":\"{job=\\\"other\\\"}\","
		"\"format\":2," SPAN "}",
		"{}");
	grafana_stop();
}

TEST(stacks_that_begin_with_a_call_site)
{
	grafana_start();
	grafana_fill();
	grafana_ingest("job=demo&version=v2", T0 + 25, true, 7, 2, "main.other");
	CHECK_SAYS("SelectMergeStacktraces",
		"{" OF_CPU "\"labelSelector\":\"{version=\\\"v2\\\"}\","
		"\"stackTraceSelector\":{\"callSite\":[{\"name\":\"main.main\"},"
		"{\"name\":\"main.handle\"},{\"name\":\"main.other\"}]}," SPAN "}",
		FLAME("main.other", 70000000, 0, 70000000, 70000000));
	CHECK_SAYS("SelectMergeStacktraces",
		"{" OF_CPU "\"labelSelector\":\"{version=\\\"v2\\\"}\","
		"\"stackTraceSelector\":{\"callSite\":[{\"name\":\"main.handle\"}]}," SPAN "}",
		"{\"flamegraph\":{\"names\":[\"total\"],\"levels\":[" ROW(0, 0, 0, 0) "]}}");
	CHECK_SAYS("SelectMergeStacktraces",
		"{" OF_CPU "\"labelSelector\":\"{version=\\\"v1\\\"}\","
		"\"stackTraceSelector\":{}," SPAN "}",
		FLAME("main.slow", 180000000, 150000000, 30000000, 150000000));
	grafana_stop();
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

	grafana_start();
	grafana_fill();
	arena_init(&a, 0);
	grafana_pack("SelectMergeProfile", ask, &request);
	grafana_call("SelectMergeProfile", AS_PROTO, buf_str(&request));
	CHECK_INT(grafana.r.status, 200);
	check_pprof(decode_profile(&a, buf_str(&grafana.r.body)));
	grafana_call("SelectMergeProfile", AS_JSON, str_of(ask));
	CHECK_OK(pyroscope_json_read(
				 &a, M(select_merge_profile_request), buf_str(&grafana.r.body), &m, &err),
		&err);
	CHECK(str_find(buf_str(&grafana.r.body), STR("\"stringTable\":[\"\",")) > 0);
	CHECK(str_find(buf_str(&grafana.r.body), STR("\"durationNanos\":\"27000000000\"")) > 0);
	buf_clear(&request);
	grafana_pack("SelectMergeStacktraces", ask, &request);
	grafana_call("SelectMergeStacktraces", AS_PROTO, buf_str(&request));
	CHECK_INT(grafana.r.status, 200);
	wrapped = epimetheus__pyroscope__select_merge_stacktraces_response__unpack(
		NULL, grafana.r.body.len, (uint8_t *)grafana.r.body.ptr);
	REQUIRE(wrapped && wrapped->pprof && wrapped->pprof->profile && !wrapped->flamegraph);
	CHECK_INT(wrapped->pprof->profile->n_sample, 2);
	CHECK_INT(wrapped->pprof->profile->duration_nanos, 27 * NS_PER_S);
	epimetheus__pyroscope__select_merge_stacktraces_response__free_unpacked(wrapped, NULL);
	grafana_call("SelectMergeStacktraces", AS_JSON, str_of(ask));
	CHECK(
		str_has_prefix(buf_str(&grafana.r.body), STR("{\"pprof\":{\"profile\":{\"sampleType\":[")));
	CHECK_SAYS("SelectMergeProfile",
		"{" OF_CPU "\"labelSelector\":\"{job=\\\"other\\\"}\"," SPAN "}", "{}");
	buf_release(&request);
	arena_release(&a);
	grafana_stop();
}

/* Two samples of v2, and below a call site of the one that is there. */
TEST(merged_pprof_of_a_call_site)
{
	static const struct {
		const char *site, *says;
		uint32_t samples;
		int64_t sum;
	} rows[] = {
		{ "{\"name\":\"main.main\"}", "", 2, 240000000 },
		{ "{\"name\":\"main.main\"},{\"name\":\"main.handle\"}", "", 2, 240000000 },
		{ "{\"name\":\"main.main\"},{\"name\":\"main.handle\"},{\"name\":\"main.slow\"}", "", 1,
			90000000 },
		{ "", "", 2, 240000000 },
		{ "{\"name\":\"main.handle\"}", "{}", 0, 0 },
		{ "{\"name\":\"main.main\"},{\"name\":\"main.slow\"}", "{}", 0, 0 },
		{ "{\"name\":\"[no stack]\"}", "{}", 0, 0 },
	};
	struct buf ask = { 0 };
	struct arena a;

	grafana_start();
	grafana_fill();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf request = { 0 };
		int64_t sum = 0;
		struct pprof *p;

		buf_clear(&ask);
		buf_printf(&ask,
			"{" OF_CPU "\"labelSelector\":\"{version=\\\"v2\\\"}\","
			"\"stackTraceSelector\":{\"callSite\":[%s]}," SPAN "}%c",
			rows[i].site, 0);
		if (rows[i].says[0]) {
			CHECK_SAYS("SelectMergeProfile", ask.ptr, rows[i].says);
			continue;
		}
		arena_init(&a, 0);
		grafana_pack("SelectMergeProfile", ask.ptr, &request);
		grafana_call("SelectMergeProfile", AS_PROTO, buf_str(&request));
		REQUIRE((p = decode_profile(&a, buf_str(&grafana.r.body))));
		CHECK_INT(p->samples_n, rows[i].samples);
		for (uint32_t k = 0; k < p->samples_n; k++)
			sum += p->values[k];
		CHECK_INT(sum, rows[i].sum);
		buf_release(&request);
		arena_release(&a);
	}
	buf_release(&ask);
	grafana_stop();
}

/* "leaf:line caller:line value" of each sample, in the order of the answer. */
static void print_samples(const struct pprof *p, struct buf *out)
{
	for (uint32_t i = 0; i < p->samples_n; i++) {
		for (uint32_t k = 0; k < p->samples[i].location_n; k++) {
			uint32_t id = p->location_ids[p->samples[i].location_first + k];
			const struct pprof_line *line = &p->lines[p->locations[id].line_first];

			buf_printf(out, STR_FMT ":%lld ",
				STR_ARG(p->strings[p->functions[line->function].name]), (long long)line->line);
		}
		buf_printf(out, "%lld\n", (long long)p->values[i]);
	}
}

TEST(pprof_for_the_go_compiler)
{
	static const struct {
		const char *selector, *want;
	} rows[] = {
		{ "\"goPgo\":{\"keepLocations\":2,\"aggregateCallees\":true}",
			"main.handle:200 main.main:303 50000000\nmain.slow:100 main.handle:202 30000000\n" },
		{ "\"goPgo\":{\"keepLocations\":1}", "main.handle:202 50000000\nmain.slow:101 30000000\n" },
		/* all locations, whatever the call site */
		{ "\"goPgo\":{},\"callSite\":[{\"name\":\"main.other\"}]",
			"main.handle:202 main.main:303 50000000\n"
			"main.slow:101 main.handle:202 main.main:303 30000000\n" },
	};
	const struct pushed_profile pushed = {
		.cpu = true, .slow = 3, .own = 5, .leaf = "main.slow", .end_s = T0, .starts = true
	};
	struct buf gz = { 0 };

	grafana_start();
	profile_gz(&gz, &pushed);
	peer_ask(web_port(grafana.web), &grafana.r, "POST /api/v1/ingest?name=process_cpu&job=go", "",
		buf_str(&gz));
	CHECK_INT(grafana.r.status, 200);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf request = { 0 }, ask = { 0 }, text = { 0 };
		struct arena a;

		arena_init(&a, 0);
		buf_printf(&ask, "{" OF_CPU SPAN ",\"stackTraceSelector\":{%s}}%c", rows[i].selector, 0);
		grafana_pack("SelectMergeProfile", ask.ptr, &request);
		grafana_call("SelectMergeProfile", AS_PROTO, buf_str(&request));
		CHECK_INT(grafana.r.status, 200);
		print_samples(decode_profile(&a, buf_str(&grafana.r.body)), &text);
		CHECK_STR(buf_str(&text), rows[i].want);
		buf_release(&text);
		buf_release(&ask);
		buf_release(&request);
		arena_release(&a);
	}
	buf_release(&gz);
	grafana_stop();
}

TEST(differences)
{
	grafana_start();
	grafana_fill();
	CHECK_SAYS("Diff",
		"{\"left\":{" OF_CPU "\"labelSelector\":\"{version=\\\"v1\\\"}\"," SPAN "},"
		"\"right\":{" OF_CPU "\"labelSelector\":\"{version=\\\"v2\\\"}\",\"start\":"
		"1700000005000,\"end\":1700000030000}}",
		"{\"flamegraph\":{" NAMES("main.slow") ",\"levels\":[" ROW2(0, 180000000, 0, 0, 160000000,
			0, 0) "," ROW2(0, 180000000, 0, 0, 160000000, 0, 1) "," ROW2(0, 180000000, 150000000, 0,
			160000000, 100000000, 2) "," ROW2(150000000, 30000000, 30000000, 100000000, 60000000,
			60000000, 3) "],\"total\":\"340000000\",\"maxSelf\":\"150000000\","
						 "\"leftTicks\":\"180000000\",\"rightTicks\":\"160000000\"}}");
	CHECK_SAYS("Diff",
		"{\"left\":{" OF_CPU "\"labelSelector\":\"{version=\\\"v9\\\"}\"," SPAN "},"
		"\"right\":{" OF_CPU "\"labelSelector\":\"{version=\\\"v8\\\"}\"," SPAN "}}",
		"{\"flamegraph\":{\"names\":[\"total\"],\"levels\":[" ROW2(0, 0, 0, 0, 0, 0, 0) "]}}");
	grafana_stop();
}

/* A string field of protobuf is UTF-8, or its readers refuse the whole answer. */
TEST(names_of_functions_that_are_no_text)
{
	struct buf request = { 0 };
	struct arena a;
	struct pprof *p;
	bool seen = false;

	grafana_start();
	arena_init(&a, 0);
	grafana_ingest("job=demo", T0, true, 3, 1, "bad\xff name");
	CHECK_SAYS("SelectMergeStacktraces", "{" OF_CPU SPAN "}",
		FLAME("bad\xef\xbf\xbd name", 40000000, 10000000, 30000000, 30000000));
	grafana_pack("SelectMergeProfile", "{" OF_CPU SPAN "}", &request);
	grafana_call("SelectMergeProfile", AS_PROTO, buf_str(&request));
	p = decode_profile(&a, buf_str(&grafana.r.body));
	REQUIRE(p != NULL);
	for (uint32_t i = 0; i < p->strings_n; i++)
		seen |= str_is(p->strings[i], "bad\xef\xbf\xbd name");
	CHECK(seen);
	buf_release(&request);
	arena_release(&a);
	grafana_stop();
}
