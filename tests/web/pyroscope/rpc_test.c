/* Requests of Grafana's that are refused, bodies, headers, selectors. */
#include "base/gzip/gzip.h"
#include "tests/check.h"
#include "tests/web/grafana.h"
#include "web/pyroscope/selector.h"

/* ---- what is refused ---- */

/* clang-format off */
static const struct {
	const char *method, *request;
	int status;
	const char *code, *message;
} refused[] = {
	{ "SelectSeries", "{" OF_CPU SPAN "}", 400, "invalid_argument",
		"step must be seconds, at least 0.001" },
	{ "SelectSeries", "{" OF_CPU SPAN ",\"step\":0.001}", 400, "invalid_argument",
		"more than 11000 points: the step is too short" },
	{ "SelectSeries", "{" SPAN ",\"step\":15}", 400, "invalid_argument",
		"profile_typeID is missing" },
	{ "SelectSeries", "{\"profileTypeID\":\"cpu\"," SPAN ",\"step\":15}", 400,
		"invalid_argument",
		"selector \"\": profile type \"cpu\" is not <name>:<sample type>:<sample "
		"unit>:<period type>:<period unit>" },
	{ "SelectSeries", "{" OF_CPU SPAN ",\"step\":15,\"groupBy\":[\"\"]}", 400,
		"invalid_argument", "group_by: \"\" is not the name of a label" },
	{ "SelectSeries", "{" OF_CPU SPAN ",\"step\":15,\"aggregation\":7}", 501, "unimplemented",
		"aggregation 7 is not supported" },
	{ "SelectSeries", "{" OF_CPU SPAN ",\"step\":15,\"limit\":-1}", 400, "invalid_argument",
		"limit is negative" },
	{ "SelectSeries",
		"{" OF_CPU SPAN ",\"step\":15,\"stackTraceSelector\":{\"callSite\":[{}]}}", 501,
		"unimplemented",
		"stack_trace_selector.call_site is supported for profiles only" },
	{ "SelectMergeStacktraces", "{" OF_CPU SPAN ",\"format\":3}", 501, "unimplemented",
		"format PROFILE_FORMAT_DOT is not supported: go tool pprof -dot draws what "
		"PROFILE_FORMAT_PPROF gives" },
	{ "SelectMergeStacktraces", "{" OF_CPU SPAN ",\"format\":5}", 501, "unimplemented",
		"format 5 is not supported" },
	{ "SelectMergeStacktraces", "{" OF_CPU SPAN ",\"stackTraceSelector\":{\"goPgo\":{}}}", 501,
		"unimplemented", "stack_trace_selector.go_pgo is supported for pprof only" },
	{ "SelectSeries", "{" OF_CPU SPAN ",\"step\":15,\"stackTraceSelector\":{\"goPgo\":{}}}", 501,
		"unimplemented", "stack_trace_selector.go_pgo is supported for pprof only" },
	{ "Diff", "{\"left\":{" OF_CPU SPAN ",\"stackTraceSelector\":{\"goPgo\":{}}},"
		"\"right\":{" OF_CPU SPAN "}}", 501, "unimplemented",
		"stack_trace_selector.go_pgo is supported for pprof only" },
	{ "SelectMergeProfile", "{\"profileTypeID\":\"goroutine:goroutine:count:goroutine:count\"," SPAN
		",\"stackTraceSelector\":{\"goPgo\":{\"keepLocations\":5}}}", 400, "invalid_argument",
		"-pgo needs a CPU profile (samples/count or cpu/nanoseconds), got "
		"goroutine/count" },
	{ "SelectMergeStacktraces", "{" OF_CPU SPAN ",\"spanSelector\":[\"9a517183f26a089d\"]}", 501,
		"unimplemented", "span_selector is not supported" },
	{ "SelectMergeProfile", "{" OF_CPU SPAN ",\"traceIdSelector\":[\"x\"]}", 501,
		"unimplemented", "trace_id_selector is not supported" },
	{ "SelectMergeStacktraces", "{" OF_CPU SPAN ",\"profileIdSelector\":[\"x\"]}", 501,
		"unimplemented", "profile_id_selector is not supported" },
	{ "SelectMergeStacktraces", "{" OF_CPU "\"start\":2,\"end\":1}", 400, "invalid_argument",
		"end is before start" },
	{ "SelectMergeStacktraces", "{" OF_CPU "\"start\":-2,\"end\":1}", 400, "invalid_argument",
		"start and end are milliseconds since 1970" },
	{ "SelectMergeStacktraces", "{" OF_CPU "\"end\":\"9223372036854775807\"}", 400,
		"invalid_argument", "start and end are milliseconds since 1970" },
	{ "SelectMergeStacktraces", "{" OF_CPU "\"labelSelector\":\"{job=}\"," SPAN "}", 400,
		"invalid_argument", "selector \"{job=}\": 1:6: unexpected \"}\", expected string" },
	{ "SelectMergeStacktraces", "{" OF_CPU "\"labelSelector\":\"{} or {}\"," SPAN "}", 400,
		"invalid_argument", "selector \"{} or {}\": expected {label=\"value\", ...}" },
	{ "SelectMergeStacktraces",
		"{\"labelSelector\":\"{__profile_type__!=\\\"a:b:c:d:e\\\"}\"," SPAN "}", 400,
		"invalid_argument",
		"selector \"{__profile_type__!=\\\"a:b:c:d:e\\\"}\": __profile_type__ can only be "
		"matched by =, not by !=" },
	{ "SelectMergeProfile", "{" SPAN "}", 400, "invalid_argument",
		"profile_typeID is missing" },
	{ "Diff", "{}", 400, "invalid_argument", "left is missing" },
	{ "Diff", "{\"left\":{" OF_CPU SPAN "}}", 400, "invalid_argument", "right is missing" },
	{ "Diff", "{\"left\":{" OF_CPU SPAN "},\"right\":{\"profileTypeID\":\"" CPU "\"}}", 400,
		"invalid_argument", "a side of the difference has no length" },
	{ "LabelValues", "{\"name\":\"\"}", 400, "invalid_argument",
		"name \"\" is not the name of a label" },
	{ "LabelNames", "{\"matchers\":[\"x\"]}", 400, "invalid_argument",
		"selector \"x\": profile type \"x\" is not <name>:<sample type>:<sample "
		"unit>:<period type>:<period unit>" },
};
/* clang-format on */

/* Grafana asks again after resource_exhausted, which would not help: these fail each time. */
TEST(limits_of_a_call_are_mistakes_of_its_sender)
{
	struct buf request = { 0 };

	grafana_start();
	grafana_fill();
	buf_add_cstr(&request, "{" OF_CPU SPAN ",\"labelSelector\":\"{job=~\\\"");
	for (int i = 0; i < 60; i++)
		buf_printf(&request, "%sdeployment-of-demo-7c9d8f5b6-%02d", i ? "|" : "", i);
	buf_add_cstr(&request, "|demo\\\"}\"}");
	CHECK(request.len > 2000);
	grafana_call("SelectMergeStacktraces", AS_JSON, buf_str(&request));
	CHECK_INT(grafana.r.status, 200);
	CHECK(str_find(buf_str(&grafana.r.body), STR("main.handle")) > 0);
	buf_clear(&request);
	buf_add_cstr(&request, "{" OF_CPU SPAN ",\"labelSelector\":\"{job=~\\\"");
	for (size_t i = 0; i <= REGEX_BYTES_MAX; i++)
		buf_add_char(&request, 'a');
	buf_add_cstr(&request, "\\\"}\"}");
	grafana_call("SelectMergeStacktraces", AS_JSON, buf_str(&request));
	CHECK_INT(grafana.r.status, 400);
	CHECK(str_find(buf_str(&grafana.r.body), STR("{\"code\":\"invalid_argument\"")) == 0);
	buf_clear(&request);
	buf_add_cstr(&request, "{" OF_CPU SPAN ",\"step\":15,\"groupBy\":[\"a\"");
	for (int i = 0; i < 64; i++)
		buf_add_cstr(&request, ",\"a\"");
	buf_add(&request, "]}", 3); /* with a NUL */
	CHECK(grafana_refuses(
		"SelectSeries", request.ptr, 400, "invalid_argument", "65 labels in group_by, limit 64"));
	buf_release(&request);
	grafana_stop();
}

TEST(errors_are_connects)
{
	grafana_start();
	grafana_fill();
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		CHECK(grafana_refuses(refused[i].method, refused[i].request, refused[i].status,
			refused[i].code, refused[i].message));
	grafana_stop();
}

/* A client of gRPC shows nothing but the number of any other status than 200. */
TEST(grpc_is_refused_in_its_own_form)
{
	static const char *const types[] = { "application/grpc", "application/grpc+proto",
		"application/grpc-web", "application/grpc-web+proto", "application/grpc-web-text" };
	char headers[128];

	grafana_start();
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		snprintf(headers, sizeof(headers), "Content-Type: %s\r\n", types[i]);
		grafana_call("ProfileTypes", headers, STR("\0\0\0\0\0"));
		CHECK_INT(grafana.r.status, 200);
		CHECK_STR(buf_str(&grafana.r.body), "");
		CHECK_STR(response_header(&grafana.r, "Content-Type"), types[i]);
		CHECK_STR(response_header(&grafana.r, "Grpc-Status"), "12");
		CHECK_STR(response_header(&grafana.r, "Grpc-Message"),
			"gRPC and gRPC-Web are not served here: use the Connect protocol (application/proto or "
			"application/json)");
	}
	grafana_stop();
}

#define CONNECT_ERROR(code, msg) "{\"code\":\"" code "\",\"message\":\"" msg "\"}"

TEST(bodies_and_headers)
{
	/* clang-format off */
	static const struct {
		const char *headers, *body;
		int status;
		const char *want;
	} rows[] = {
		{ "Content-Type: text/plain\r\n", "{}", 415,
			"Content-Type must be application/proto or application/json\n" },
		{ "Content-Type: application/x-www-form-urlencoded\r\n", "a=b", 415,
			"Content-Type must be application/proto or application/json\n" },
		{ "", "", 415, "Content-Type must be application/proto or application/json\n" },
		{ "Content-Type: application/grpcx\r\n", "", 415,
			"Content-Type must be application/proto or application/json\n" },
		{ "Content-Type: application/json; charset=utf-8\r\n", "{\"unknown\":[{}]}", 200,
			"{}" },
		{ AS_JSON, "", 400,
			CONNECT_ERROR("invalid_argument",
				"the body is not JSON: line 1, column 0: '[' or '{' expected near "
				"end of file") },
		{ AS_JSON, "[]", 400,
			CONNECT_ERROR(
				"invalid_argument", "ProfileTypesRequest: expected an object") },
		{ AS_JSON, "{\"start\":\"x\"}", 400,
			CONNECT_ERROR("invalid_argument", "field start: expected a whole number") },
		{ AS_JSON, "{\"start\":1.5}", 400,
			CONNECT_ERROR("invalid_argument", "field start: expected a whole number") },
		{ AS_JSON, "{\"start\":99999999999999999999}", 400,
			CONNECT_ERROR("invalid_argument", "field start: expected a whole number") },
		{ AS_JSON, "{\"start\":1e3,\"end\":null}", 400,
			CONNECT_ERROR("invalid_argument", "end is before start") },
		{ AS_PROTO, "\x08", 400,
			CONNECT_ERROR("invalid_argument",
				"the body is not a ProfileTypesRequest in protobuf") },
		{ AS_PROTO, "\x7a\x01x\xf8\x07\x05", 200, "" }, /* fields 15 and 127 */
		{ "Content-Type: application/json\r\nConnect-Protocol-Version: 2\r\n", "{}", 400,
			CONNECT_ERROR("invalid_argument",
				"Connect-Protocol-Version must be \\\"1\\\", not \\\"2\\\"") },
		{ "Content-Type: application/json\r\nConnect-Timeout-Ms: x\r\n", "{}", 400,
			CONNECT_ERROR("invalid_argument",
				"Connect-Timeout-Ms must be a number of "
				"at most 10 digits, not \\\"x\\\"") },
		{ "Content-Type: application/json\r\nConnect-Timeout-Ms: 0\r\n", "{}", 504,
			CONNECT_ERROR("deadline_exceeded", "Connect-Timeout-Ms is 0") },
		{ "Content-Type: application/json\r\nConnect-Timeout-Ms: 5000\r\n", "{}", 200,
			"{}" },
		{ "Content-Type: application/json\r\nContent-Encoding: br\r\n", "{}", 501,
			CONNECT_ERROR("unimplemented",
				"Content-Encoding \\\"br\\\" is unknown; use gzip or identity") },
		{ "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", "{}", 400,
			CONNECT_ERROR(
				"invalid_argument", "Content-Encoding gzip: incorrect header check") },
	};
	/* clang-format on */
	grafana_start();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		grafana_call("ProfileTypes", rows[i].headers, str_of(rows[i].body));
		CHECK_INT(grafana.r.status, rows[i].status);
		CHECK_STR(buf_str(&grafana.r.body), rows[i].want);
	}
	grafana_stop();
}

#define AS_GZIP AS_JSON "Content-Encoding: gzip\r\n"

TEST(compressed_and_long_bodies)
{
	struct buf big = { 0 }, gz = { 0 };
	struct err err;

	grafana_start();
	CHECK_OK(gzip_compress(STR("{\"start\":2,\"end\":1}"), 6, &gz, &err), &err);
	grafana_call("ProfileTypes", AS_GZIP, buf_str(&gz));
	CHECK_STR(buf_str(&grafana.r.body), CONNECT_ERROR("invalid_argument", "end is before start"));
	for (size_t i = 0; i <= PYROSCOPE_REQUEST_BYTES_MAX; i++)
		buf_add_char(&big, ' ');
	grafana_call("ProfileTypes", AS_JSON, buf_str(&big));
	CHECK_INT(grafana.r.status, 400);
	CHECK_STR(buf_str(&grafana.r.body),
		CONNECT_ERROR("invalid_argument", "the request is 262145 bytes, limit 262144"));
	buf_clear(&gz);
	CHECK_OK(gzip_compress(buf_str(&big), 6, &gz, &err), &err);
	grafana_call("ProfileTypes", AS_GZIP, buf_str(&gz));
	CHECK_INT(grafana.r.status, 400);
	CHECK_STR(buf_str(&grafana.r.body),
		CONNECT_ERROR("invalid_argument", "the request inflates to more than 262144 bytes"));
	grafana_call("ProfileTypes", AS_GZIP, (struct str){ gz.ptr, gz.len - 4 });
	CHECK_INT(grafana.r.status, 400);
	buf_clear(&gz);
	/* Two members, "{" and "}"; then the second cut short; then an empty message. */
	CHECK_OK(gzip_compress(STR("{"), 6, &gz, &err), &err);
	CHECK_OK(gzip_compress(STR("}"), 6, &gz, &err), &err);
	grafana_call("ProfileTypes", AS_GZIP, buf_str(&gz));
	CHECK_INT(grafana.r.status, 200);
	grafana_call("ProfileTypes", AS_GZIP, (struct str){ gz.ptr, gz.len - 1 });
	CHECK_STR(buf_str(&grafana.r.body),
		CONNECT_ERROR("invalid_argument", "Content-Encoding gzip: the body is cut short"));
	buf_clear(&gz);
	CHECK_OK(gzip_compress(STR(""), 6, &gz, &err), &err);
	grafana_call("GetProfileStats", AS_PROTO "Content-Encoding: gzip\r\n", buf_str(&gz));
	CHECK_INT(grafana.r.status, 200);
	buf_release(&big);
	buf_release(&gz);
	grafana_stop();
}

TEST(methods_of_http_and_other_origins)
{
	grafana_start();
	grafana_call("SelectMergeSpanProfile", AS_JSON, STR("{}"));
	CHECK_INT(grafana.r.status, 404);
	CHECK_STR(buf_str(&grafana.r.body),
		"{\"code\":\"unimplemented\",\"message\":\"method \\\"SelectMergeSpanProfile\\\" is not "
		"served here\"}");
	peer_ask(web_port(grafana.web), &grafana.r, "GET /querier.v1.QuerierService/ProfileTypes", "",
		(struct str){ 0 });
	CHECK_INT(grafana.r.status, 405);
	peer_ask(web_port(grafana.web), &grafana.r, "OPTIONS /querier.v1.QuerierService/ProfileTypes",
		"Origin: http://grafana.example\r\n", (struct str){ 0 });
	CHECK_INT(grafana.r.status, 204);
	CHECK_STR(response_header(&grafana.r, "Access-Control-Allow-Headers"),
		"Accept, Authorization, Connect-Protocol-Version, Connect-Timeout-Ms, "
		"Content-Type, Origin");
	grafana_stop();
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
		{ CPU, "{}", "{__name__=\"process_cpu\",__type__=~\"" CPU "(:delta)?\"}" },
		{ "cpu:cpu:nanoseconds:cpu:nanoseconds", "{}",
			"{__name__=\"process_cpu\",__type__=~\"" CPU "(:delta)?\"}" },
		{ CPU ":delta", " {a!=\"b\"} ",
			"{__name__=\"process_cpu\",__type__=~\"" CPU ":delta\",a!=\"b\"}" },
		{ "", "{__profile_type__=\"w:x y:z.\\\"::\",k=~\"v|w\"}",
			"{__name__=\"w\",__type__=~\"w:x\\\\ "
			"y:z\\\\.\\\\\\\"::(:delta)?\",k=~\"v|w\"}" },
		{ "", "a.b:c:d:e:f{k=\"}\\\"\"}",
			"{__name__=\"a.b\",__type__=~\"a\\\\.b:c:d:e:f(:delta)?\",k=\"}\\\"\"}" },
	};
	struct pyroscope_selector s;
	struct buf text = { 0 };
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_OK(pyroscope_selector_read(&a, str_of(rows[i].type), str_of(rows[i].text), &s, &err),
			&err);
		buf_clear(&text);
		pyroscope_selector_print(&text, &s);
		CHECK_STR(buf_str(&text), rows[i].want);
		pyroscope_selector_release(&s);
	}
	buf_release(&text);
	arena_release(&a);
}
