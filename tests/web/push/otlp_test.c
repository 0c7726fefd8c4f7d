/* OTLP over HTTP against a real database: recorded requests of the eBPF profiler, and refusals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "scrape/config/config.h"
#include "tests/check.h"
#include "tests/web/grafana.h"

#define PATH "POST /v1development/profiles"
#define AS_OTLP "Content-Type: application/x-protobuf\r\n"
#define RECORDED "tests/proto/otlp/testdata/"
#define END "1795326360" /* a little after the recorded ones */

static int push(const char *headers, struct str body)
{
	peer_ask(web_port(grafana.web), &grafana.r, PATH, headers, body);
	return grafana.r.status;
}

static void push_file(const char *name, const char *headers)
{
	struct buf body = { 0 };
	struct err err;

	must(fs_read_file(name, 1u << 20, &body, &err), &err);
	CHECK_INT(push(headers, buf_str(&body)), 200);
	buf_release(&body);
}

/* "java 20\n": samples of each executable, greatest first. */
static void samples_by_job(struct buf *out)
{
	const char *at;

	at = grafana_get("/api/v1/query?query=sort_desc(total(merge%20by%20(job)%20(process_cpu:samples"
					 "%5B1h%5D)))&time=" END)
			 .ptr;
	buf_clear(out);
	while (at && (at = strstr(at, "\"job\":\""))) {
		const char *value = strstr(at, "\"value\":[" END ",\"");

		at += strlen("\"job\":\"");
		buf_add(out, at, strcspn(at, "\""));
		buf_add_char(out, ' ');
		value += strlen("\"value\":[" END ",\"");
		buf_add(out, value, strcspn(value, "\""));
		buf_add_char(out, '\n');
	}
}

TEST(what_the_ebpf_profiler_sent_is_stored_by_executable)
{
	static const char want[] = "java 20\npython3.11 19\nc_nofp_strip 18\nc_fp 15\ngo_strip 14\n"
							   "perl 13\ngo_sym 12\nnode 11\nc_nofp 9\nebpf-profiler-ns 5\n";
	struct buf got = { 0 };

	grafana_start();
	push_file(RECORDED "p2-standalone-99hz-steady.pb.gz", AS_OTLP "Content-Encoding: gzip\r\n");
	CHECK_INT(grafana.r.body.len, 0);
	samples_by_job(&got);
	CHECK_STR(buf_str(&got), want);
	/* Again, as after an answer that was lost. */
	push_file(RECORDED "p2-standalone-99hz-steady.pb.gz", AS_OTLP "Content-Encoding: gzip\r\n");
	CHECK_INT(grafana.r.body.len, 0);
	samples_by_job(&got);
	CHECK_STR(buf_str(&got), want);
	CHECK_STR(grafana_get("/api/v1/query?query=top(1,%20merge(cpu%7Bjob=%22go_sym%22%7D%5B1h%5D))"
						  "&time=" END),
		"{\"status\":\"success\",\"data\":{\"resultType\":\"top\",\"result\":[{\"metric\":{},"
		"\"type\":"
		"\"process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta\",\"unit\":\"nanoseconds\",\"total\":"
		"121212120,"
		"\"profiles\":1,\"functions\":12,\"rows\":[{\"function\":\"main.goLeaf\",\"flat\":80808080,"
		"\"flat_percent\":66.66666666666666,\"sum_percent\":66.66666666666666,\"cum\":80808080,"
		"\"cum_percent\":66.66666666666666}]}]}}\n");
	CHECK_STR(grafana_get("/api/v1/series?match%5B%5D=%7Bjob=%22go_sym%22%7D&time=" END),
		"{\"status\":\"success\",\"data\":[{\"__name__\":\"process_cpu\",\"job\":\"go_sym\","
		"\"process_executable_name\":\"go_sym\",\"process_executable_path\":"
		"\"/opt/demo-1/prog/go_sym\",\"service_name\":\"go_sym\"}]}\n");
	grafana_stop();
	buf_release(&got);
}

TEST(json_and_protobuf_of_the_collector_hold_the_same)
{
	struct buf got[2] = { { 0 }, { 0 } };

	for (int json = 0; json < 2; json++) {
		grafana_start();
		push_file(json ? RECORDED "p5-collector-49hz.json.gz" : RECORDED "p5-collector-49hz.pb.gz",
			json ? AS_JSON "Content-Encoding: gzip\r\n" : AS_OTLP "Content-Encoding: gzip\r\n");
		CHECK_STR(buf_str(&grafana.r.body), json ? "{}" : "");
		samples_by_job(&got[json]);
		grafana_stop();
	}
	CHECK(got[0].len > 0);
	CHECK(str_eq(buf_str(&got[0]), buf_str(&got[1])));
	buf_release(&got[0]);
	buf_release(&got[1]);
}

#define TYPE(type) "{\"typeStrindex\":" type ",\"unitStrindex\":2}"
#define SENT(resource, profile) \
	"{\"dictionary\":{\"stringTable\":[\"\",\"samples\",\"count\",\"service.name\"]," \
	"\"attributeTable\":[{},{\"keyStrindex\":3,\"value\":{\"stringValue\":\"of-profile\"}}]}," \
	"\"resourceProfiles\":[{\"resource\":{\"attributes\":[" resource "]}," \
	"\"scopeProfiles\":[{\"profiles\":[{\"sampleType\":" TYPE( \
		"1") "," \
			 "\"timeUnixNano\":\"1795326350000000000\"," profile \
			 "\"samples\":[{\"values\":[1]}]}]}]}]}"
#define IS(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"

/* How profiles are called that say little of their process. */
static const struct {
	const char *config; /* push_config */
	const char *request, *want;
} unnamed[] = {
	{ "{}", SENT("", ""),
		"\"instance\":\"127.0.0.1\",\"job\":\"unknown_service\",\"service_name\":"
		"\"unknown_service\"" },
	{ "{}", SENT(IS("service.namespace", "shop"), ""),
		"\"instance\":\"127.0.0.1\",\"job\":\"shop/unknown_service\",\"service_name\":"
		"\"unknown_service\",\"service_namespace\":\"shop\"" },
	{ "{}", SENT(IS("host.name", "n1") "," IS("process.pid", "7"), ""),
		"\"instance\":\"n1\",\"job\":\"unknown_service\",\"node\":\"n1\",\"service_name\":"
		"\"unknown_service\"" },
	{ "{}", SENT(IS("host.name", "n1") "," IS("k8s.pod.name", "p1"), ""),
		"\"instance\":\"p1\",\"job\":\"unknown_service\",\"node\":\"n1\",\"pod\":\"p1\","
		"\"service_name\":\"unknown_service\"" },
	{ "{}", SENT(IS("k8s.pod.name", "p1") "," IS("service.instance.id", "i1"), ""),
		"\"instance\":\"i1\",\"job\":\"unknown_service\",\"pod\":\"p1\",\"service_name\":"
		"\"unknown_service\"" },
	{ "{}", SENT(IS("instance", "own"), ""),
		"\"instance\":\"own\",\"job\":\"unknown_service\",\"service_name\":"
		"\"unknown_service\"" },
	/* what has a name needs no instance */
	{ "{}", SENT(IS("process.executable.path", "/bin/java"), ""),
		"\"job\":\"java\",\"process_executable_path\":\"/bin/java\",\"service_name\":\"java\"" },
	{ "{}", SENT("", "\"attributeIndices\":[1],"),
		"\"job\":\"of-profile\",\"service_name\":\"of-profile\"" },
	/* the configuration's labels are for those that have none of their own */
	{ "{labels: {job: java}}", SENT("", ""),
		"\"instance\":\"127.0.0.1\",\"job\":\"java\",\"service_name\":\"java\"" },
	{ "{labels: {job: j, service_name: s, instance: i}}", SENT("", ""),
		"\"instance\":\"i\",\"job\":\"j\",\"service_name\":\"s\"" },
	{ "{labels: {job: java}}", SENT(IS("service.name", "own"), ""),
		"\"job\":\"own\",\"service_name\":\"own\"" },
	{ "{drop_labels: [instance]}", SENT("", ""),
		"\"job\":\"unknown_service\",\"service_name\":\"unknown_service\"" },
};

TEST(who_says_no_name_is_an_unknown_service_at_its_address)
{
	for (size_t i = 0; i < sizeof(unnamed) / sizeof(unnamed[0]); i++) {
		struct config *config, *usual;
		struct buf text = { 0 };
		char want[512];
		struct err err;

		buf_printf(&text, "push_config: %s", unnamed[i].config);
		must(config_load_text("test.yml", STR("."), buf_str(&text), &config, &err), &err);
		grafana_start();
		usual = grafana.config;
		grafana.config = config;
		CHECK_INT(push(AS_JSON, str_of(unnamed[i].request)), 200);
		CHECK_STR(buf_str(&grafana.r.body), "{}");
		snprintf(want, sizeof(want),
			"{\"status\":\"success\",\"data\":[{\"__name__\":\"samples\",%s}]}\n", unnamed[i].want);
		CHECK_STR(
			grafana_get("/api/v1/series?match%5B%5D=%7B__name__=~%22.%2B%22%7D&time=" END), want);
		grafana.config = usual;
		grafana_stop();
		config_unref(config);
		buf_release(&text);
	}
}

static long refused(const char *reason)
{
	char row[128];
	const char *at;

	snprintf(row, sizeof(row), "epimetheus_ingest_refused_profiles_total{reason=\"%s\"} ", reason);
	at = strstr(grafana_get("/metrics").ptr, row);
	return at ? strtol(at + strlen(row), NULL, 10) : 0;
}

/* Also where the status is 200. */
TEST(what_is_refused_is_counted_by_reason)
{
	long invalid, unsupported;

	grafana_start();
	invalid = refused("invalid input");
	unsupported = refused("unsupported");
	CHECK_INT(push(AS_JSON, STR(SENT("", "") )), 200);
	CHECK_INT(refused("invalid input"), invalid);
	CHECK_INT(push(AS_JSON, STR(SENT("", "\"attributeIndices\":[9],"))), 200);
	CHECK_STR(buf_str(&grafana.r.body),
		"{\"partialSuccess\":{\"rejectedProfiles\":\"1\",\"errorMessage\":\"resourceProfiles[0]."
		"scopeProfiles[0].profiles[0]: no attribute 9, attributeTable has 2\"}}");
	CHECK_INT(refused("invalid input"), invalid + 1);
	CHECK_INT(push(AS_OTLP, STR("\x0a\x7f")), 400);
	CHECK_INT(refused("invalid input"), invalid + 2);
	CHECK_INT(push("Content-Type: text/plain\r\n", STR("x")), 415);
	CHECK_INT(push(AS_JSON, STR("{\"dictionary\":{\"attributeUnits\":[]}}")), 415);
	CHECK_INT(refused("unsupported"), unsupported + 2);
	grafana_stop();
}

TEST(refusals_are_statuses_of_the_request_s_type)
{
	grafana_start();
	CHECK_INT(push("Content-Type: text/plain\r\n", STR("x")), 415);
	CHECK_STR(buf_str(&grafana.r.body),
		"Content-Type must be application/x-protobuf or application/json\n");
	CHECK_INT(push(AS_OTLP, STR("")), 200);
	CHECK_INT(push(AS_JSON, STR("{\"resourceProfiles\":7}")), 400);
	CHECK_STR(buf_str(&grafana.r.body),
		"{\"code\":3,\"message\":\"request is not OTLP JSON: byte 20, resourceProfiles: expected "
		"an array\"}");
	CHECK_INT(push(AS_OTLP, STR("\x0a\x7f")), 400);
	CHECK_STR(buf_str(&grafana.r.body),
		"\x08\x03\x12Jrequest is not well-formed: a field is cut off, or of an unknown wire type");
	grafana_stop();
}
