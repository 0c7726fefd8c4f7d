/* Pyroscope's /ingest against a real database: each form of a profile, names, times, refusals. */
#include <stdio.h>

#include "base/fs.h"
#include "base/gzip/gzip.h"
#include "tests/check.h"
#include "tests/web/grafana.h"

#define RECORDINGS "tests/proto/jfr/recordings/"
#define LEGACY "tests/proto/legacy/testdata/"
#define AT "&from=1700000000&until=1700000010"
#define PART(name) "--b\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"
#define AS_PARTS "Content-Type: multipart/form-data; boundary=b\r\n"

static int push(const char *params, const char *headers, struct str body)
{
	char request[512];

	snprintf(request, sizeof(request), "POST /ingest?%s", params);
	peer_ask(web_port(grafana.web), &grafana.r, request, headers, body);
	return grafana.r.status;
}

/* The value of an instant query 5 s after the profiles. */
static void check_value(const char *query, const char *want)
{
	struct str body;
	const char *at;
	char path[512];

	snprintf(path, sizeof(path), "/api/v1/query?query=%s&time=1700000015", query);
	body = grafana_get(path);
	at = strstr(body.ptr, "\"value\":[1700000015,\"");
	at = at ? at + strlen("\"value\":[1700000015,\"") : NULL;
	if (!at || strncmp(at, want, strlen(want)) != 0 || at[strlen(want)] != '"')
		CHECK_FAIL("%s: " STR_FMT ", want %s", query, STR_ARG(body), want);
}

TEST(stacks_by_name_cost_what_the_end_of_the_name_says)
{
	grafana_start();
	CHECK_INT(push("name=shop.cpu%7Bregion%3Deu%2C__session_id__%3D7%7D&sampleRate=50" AT, "",
		STR("main;work 3\nmain 1\n")),
		200);
	CHECK_INT(grafana.r.body.len, 0);
	check_value("total(cpu%7Bjob=%22shop%22,service_name=%22shop%22,region=%22eu%22,"
				"__session_id__=%22%22%7D%5B1m%5D)",
		"80000000");
	check_value("flat(cpu%5B1m%5D,%7Bfunction=%22work%22%7D)", "60000000");
	CHECK_INT(push("name=shop.inuse_space&sampleRate=0" AT, "", STR("main;keep 4096\n")), 200);
	check_value("total(memory:inuse_space%5B1m%5D)", "4096");
	CHECK_INT(push("name=my.shop&format=lines" AT, "", STR("main;work\nmain;work\nmain\n")), 200);
	check_value("total(cpu%7Bjob=%22my.shop%22%7D%5B1m%5D)", "30000000");
	grafana_stop();
}

TEST(processes_of_one_service_end_profiles_in_the_same_second)
{
	grafana_start();
	for (int again = 0; again < 2; again++) {
		CHECK_INT(push("name=shop" AT, "", STR("main;work 3\n")), 200);
		CHECK_INT(push("name=shop" AT, "", STR("main;work 4\n")), 200);
		CHECK_INT(push(
			"name=shop&from=1700000000000&until=1700000010000", "", STR("main;work 5\n")), 200);
		check_value("total(cpu%5B1m%5D)", "120000000");
	}
	/* Not after the second, and within it. */
	check_value("total(cpu%5B1s%5D%20offset%205s)", "120000000");
	/* Nanoseconds are believed; another body of the same one gets the next. */
	for (int again = 0; again < 2; again++) {
		CHECK_INT(push("name=b&until=1700000010000000007", "", STR("main;work 3\n")), 200);
		CHECK_INT(push("name=b&until=1700000010000000007", "", STR("main;work 4\n")), 200);
		check_value("total(cpu%7Bservice_name=%22b%22%7D%5B1m%5D)", "70000000");
	}
	grafana_stop();
}

/* A process that sends the same again is one; another that it tells apart is another. */
TEST(equal_bodies_count_once_per_source)
{
	grafana_start();
	for (int again = 0; again < 2; again++)
		CHECK_INT(push("name=shop" AT, "", STR("main;idle 10\n")), 200);
	check_value("total(cpu%5B1m%5D)", "100000000");
	for (int again = 0; again < 2; again++) {
		CHECK_INT(push("name=shop%7B__session_id__=a%7D" AT, "", STR("main;idle 10\n")), 200);
		CHECK_INT(push("name=shop%7B__session_id__=b%7D" AT, "", STR("main;idle 10\n")), 200);
	}
	check_value("total(cpu%5B1m%5D)", "300000000");
	grafana_stop();
}

TEST(an_end_may_be_rounded_to_before_its_beginning)
{
	grafana_start();
	CHECK_INT(push(
		"name=shop&from=1700000009500000000&until=1700000000000000000", "", STR("main;work 3\n")),
		200);
	check_value("total(cpu%5B1s%5D%20offset%2015s)", "30000000");
	grafana_stop();
}

static void pprof_part(struct buf *out, bool cpu)
{
	struct buf gz = { 0 };

	profile_gz(
		&gz, &(struct pushed_profile){ .cpu = cpu, .slow = 3, .own = 1, .leaf = "main.slow" });
	buf_add_cstr(out, PART("profile"));
	buf_add_str(out, buf_str(&gz));
	buf_add_cstr(out, "\r\n");
	buf_release(&gz);
}

TEST(pprof_comes_bare_or_in_parts)
{
	struct buf body = { 0 }, gz = { 0 };

	grafana_start();
	pprof_part(&body, true);
	buf_add_cstr(
		&body, PART("sample_type_config") "{\"cpu\":{\"units\":\"samples\"}}\r\n--b--\r\n");
	CHECK_INT(push("name=go%7B%7D&spyName=gospy" AT, AS_PARTS, buf_str(&body)), 200);
	check_value("total(cpu%7Bjob=%22go%22%7D%5B1m%5D)", "40000000");
	/* gzip of which no header says so. */
	profile_gz(
		&gz, &(struct pushed_profile){ .cpu = true, .slow = 5, .own = 0, .leaf = "main.slow" });
	CHECK_INT(push("name=node&format=pprof" AT, "Content-Type: application/octet-stream\r\n",
				  buf_str(&gz)),
		200);
	check_value("total(cpu%7Bjob=%22node%22%7D%5B1m%5D)", "50000000");
	buf_clear(&body);
	pprof_part(&body, false);
	buf_add_cstr(&body, "--b--");
	CHECK_INT(push("name=go" AT, AS_PARTS, buf_str(&body)), 200);
	check_value("total(goroutine%7Bjob=%22go%22%7D%5B1m%5D)", "4");
	grafana_stop();
	buf_release(&body);
	buf_release(&gz);
}

/* No format is named, and the bytes say it. */
TEST(bytes_without_a_format_are_read_as_files_are)
{
	struct buf gz = { 0 }, twice = { 0 };
	struct err err;

	grafana_start();
	profile_gz(
		&gz, &(struct pushed_profile){ .cpu = true, .slow = 5, .own = 0, .leaf = "main.slow" });
	CHECK_INT(push("name=bare" AT, "", buf_str(&gz)), 200);
	check_value("total(cpu%7Bjob=%22bare%22%7D%5B1m%5D)", "50000000");
	must(gzip_compress(buf_str(&gz), 1, &twice, &err), &err);
	CHECK_INT(push("name=coded" AT, "Content-Encoding: gzip\r\n", buf_str(&twice)), 200);
	check_value("total(cpu%7Bjob=%22coded%22%7D%5B1m%5D)", "50000000");
	CHECK_INT(push("name=twice" AT, "", buf_str(&twice)), 400);
	CHECK_STR(buf_str(&grafana.r.body), "gzip: the profile is compressed twice\n");
	CHECK_INT(push("name=scope&sampleRate=100" AT, "",
		STR("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
					  "\"shared\":{\"frames\":[{\"name\":\"main\"}]},\"profiles\":[{\"type\":"
					  "\"sampled\",\"name\":\"t\",\"unit\":\"none\",\"startValue\":0,"
					  "\"endValue\":3,"
					  "\"samples\":[[0]],\"weights\":[3]}]}")),
		200);
	check_value("total(cpu%7Bjob=%22scope%22%7D%5B1m%5D)", "30000000");
	CHECK_INT(push("name=a" AT, "", STR("heap profile: 1: 2\n")), 422);
	CHECK_STR(buf_str(&grafana.r.body), "heap profile (text): its first line is damaged\n");
	CHECK_INT(push("name=a" AT, "", STR("PERFILE2\0\0\0\0")), 422);
	CHECK(str_has_prefix(buf_str(&grafana.r.body), STR("this is perf.data of Linux perf: ")));
	CHECK_INT(push("name=a" AT, "", STR("<html>")), 422);
	CHECK_STR(buf_str(&grafana.r.body),
		"this is a web page: a login or error page may have answered; check the address and the "
		"credentials\n");
	grafana_stop();
	buf_release(&gz);
	buf_release(&twice);
}

static void file_part(struct buf *body, const char *head, const char *file)
{
	struct buf content = { 0 };
	struct err err;

	must(fs_read_file(file, 1u << 20, &content, &err), &err);
	buf_add_cstr(body, head);
	buf_add_str(body, buf_str(&content));
	buf_add_cstr(body, "\r\n");
	buf_release(&content);
}

TEST(a_recording_of_java_is_several_profiles)
{
	struct buf body = { 0 };

	grafana_start();
	file_part(&body, PART("jfr"), RECORDINGS "agent.jfr.gz");
	file_part(&body, PART("labels"), RECORDINGS "agent.labels.gz");
	buf_add_cstr(&body, "--b--\r\n");
	CHECK_INT(push("name=java&format=jfr" AT, AS_PARTS, buf_str(&body)), 200);
	CHECK_INT(grafana.r.body.len, 0);
	CHECK_STR(grafana_get("/api/v1/label/__name__/values?start=1700000000&end=1700000015"),
		"{\"status\":\"success\",\"data\":[\"memory\",\"process_cpu\"]}\n");
	grafana_get("/api/v1/query?query=top(1,%20merge(cpu%7Bjob=%22java%22%7D%5B1m%5D))"
				"&time=1700000015");
	CHECK_INT(grafana_count("\"total\":770000000,"), 1);
	CHECK_INT(grafana_count("\"function\":\"Work.hotLeaf\",\"flat\":620000000,"), 1);
	grafana_stop();
	buf_release(&body);
}

static double counted(const char *metric)
{
	struct str body = grafana_get("/metrics");
	const char *at = strstr(body.ptr, metric);

	return at ? strtod(at + strlen(metric), NULL) : 0;
}

#define LOST "epimetheus_ingested_recording_lost_total{what="

/* The labels of its events are in a part that is missing. */
TEST(what_a_recording_lacks_is_counted)
{
	struct buf body = { 0 };

	grafana_start();
	file_part(&body, PART("jfr"), RECORDINGS "agent.jfr.gz");
	buf_add_cstr(&body, "--b--\r\n");
	CHECK_INT(counted(LOST "\"labels_missing\"}"), 0);
	CHECK_INT(push("name=java&format=jfr" AT, AS_PARTS, buf_str(&body)), 200);
	CHECK(counted(LOST "\"labels_missing\"}") >= 39);
	CHECK_INT(counted(LOST "\"method_missing\"}"), 0);
	grafana_stop();
	buf_release(&body);
}

/* Samples that JDK 25 lost are told to who sends, and do not refuse the rest. */
TEST(lost_samples_are_a_warning)
{
	struct buf body = { 0 };

	grafana_start();
	file_part(&body, PART("jfr"), RECORDINGS "jdk25.jfr.gz");
	buf_add_cstr(&body, "--b--\r\n");
	CHECK_INT(counted(LOST "\"sample\"}"), 0);
	CHECK_INT(push("name=java&format=jfr" AT, AS_PARTS, buf_str(&body)), 200);
	CHECK_STR(buf_str(&grafana.r.body),
		"warning: the recorder lost 47 samples of CPU time, about 329 ms; process_cpu lacks "
		"them\n");
	CHECK_INT(counted(LOST "\"sample\"}"), 47);
	/* 326 samples of 7 ms and 9 of 14; 120 of 20 ms by the other sampler. */
	check_value("total(cpu%5B1m%5D)", "2408000000");
	check_value("total(process_cpu:execution%5B1m%5D)", "2400000000");
	check_value("total(memory:old_objects%5B1m%5D)", "23");
	grafana_stop();
	buf_release(&body);
}

/* CPU time counts, memory in use is a level; an address is its own name. */
TEST(formats_before_protobuf)
{
	struct buf body = { 0 };
	struct err err;

	grafana_start();
	must(fs_read_file(LEGACY "gperftools.cpu", 1u << 20, &body, &err), &err);
	CHECK_INT(push("name=cpp&format=pprof" AT, "", buf_str(&body)), 200);
	check_value("total(process_cpu:samples%7Bjob=%22cpp%22%7D%5B1m%5D)", "131");
	check_value(
		"total(process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta%7Bjob=%22cpp%22%7D%5B1m%5D)",
		"655000000");
	buf_clear(&body);
	file_part(&body, PART("profile"), LEGACY "jemalloc.heap");
	buf_add_cstr(&body, "--b--");
	CHECK_INT(push("name=cpp" AT, AS_PARTS, buf_str(&body)), 200);
	check_value("total(memory:inuse_space%7Bjob=%22cpp%22%7D%5B1m%5D)", "65949608");
	CHECK_INT(push("name=cpp&format=pprof" AT, "", STR("heap profile: 1: 2\n")), 422);
	CHECK_STR(buf_str(&grafana.r.body), "heap profile (text): its first line is damaged\n");
	grafana_stop();
	buf_release(&body);
}

static void refused(
	const char *params, const char *headers, const char *body, int status, const char *want)
{
	CHECK_INT(push(params, headers, str_of(body)), status);
	CHECK_STR(buf_str(&grafana.r.body), want);
}

TEST(refusals_are_text)
{
	grafana_start();
	refused("", "", "a 1\n", 400, "invalid parameter \"name\": missing\n");
	refused("name=a&from=1700000061&until=1700000000", "", "a 1\n", 400,
		"invalid parameter \"until\": before from\n");
	refused("name=a&sampleRate=x", "", "a 1\n", 400,
		"invalid parameter \"sampleRate\": \"x\" is not a number up to 1000000\n");
	refused("name=a", "", "", 400, "the body is empty\n");
	refused("name=a", "Content-Encoding: br\r\n", "a 1\n", 415,
		"Content-Encoding \"br\" is unknown; use gzip, zstd or identity\n");
	refused("name=a", AS_PARTS, "--b--", 400, "multipart: no part profile or jfr\n");
	CHECK_INT(push("name=a", "", STR("a;b\n")), 422);
	CHECK_INT(push("name=a&format=pprof", "", STR("a;b 1\n")), 422);
	CHECK_INT(push("name=a&format=jfr", "", STR("FLR\0x")), 422);
	grafana_stop();
}
