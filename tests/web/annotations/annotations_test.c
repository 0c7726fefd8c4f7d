/* Marks of time lines, over a socket, on a real database. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/check.h"
#include "tests/scratch.h"
#include "tests/web/grafana.h"

#define PATH "/api/v1/annotations"
#define DATA(data) "{\"status\":\"success\",\"data\":" data "}\n"
#define BAD(msg) "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"" msg "\"}"
#define LONG(msg) "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"" msg "\"}"
#define POSTED(at, text, labels) \
	"{\"time\":" at ",\"kind\":\"posted\",\"text\":\"" text "\",\"labels\":{" labels "}}"
#define LASTING(at, end, text, labels) \
	"{\"time\":" at ",\"end\":" end ",\"kind\":\"posted\",\"text\":\"" text \
	"\",\"labels\":{" labels "}}"
#define VERSION(at, label, from, to, labels) \
	"{\"time\":" at ",\"kind\":\"version\",\"label\":\"" label "\",\"from\":\"" from \
	"\",\"to\":\"" to "\",\"text\":\"" from " -> " to "\",\"labels\":{" labels "}}"
#define SHOP "\"job\":\"shop\""
#define AS_FORM "Content-Type: application/x-www-form-urlencoded\r\n"

static const char *post(const char *headers, struct str body)
{
	peer_ask(web_port(grafana.web), &grafana.r, "POST " PATH, headers, body);
	buf_add_char(&grafana.r.body, '\0');
	return grafana.r.body.ptr;
}

struct posted {
	const char *body;
	int status;
	const char *want;
};

static void post_all(const char *headers, const struct posted *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *got = post(headers, str_of(rows[i].body));

		if (grafana.r.status != rows[i].status || strcmp(got, rows[i].want) != 0)
			CHECK_FAIL("%s: %d %s, want %d %s", rows[i].body, grafana.r.status, got, rows[i].status,
				rows[i].want);
	}
}
#define POST_ALL(headers, rows) post_all((headers), (rows), sizeof(rows) / sizeof((rows)[0]))

static const struct posted json[] = {
	{ "{\"time\":1700000000.123,\"text\":\"deploy v41\",\"labels\":{\"job\":\"shop\"}}", 200,
		DATA(POSTED("1700000000.123", "deploy v41", SHOP)) },
	{ " {\"end\":\"2023-11-14T22:14:20Z\",\"labels\":{},\"text\":\"one\\ntwo \\u00fc\","
	  "\"time\":\"1700000000\"}\n",
		200, DATA(LASTING("1700000000", "1700000060", "one\\ntwo \xc3\xbc", "")) },
	{ "{\"time\":1700000001,\"end\":null,\"text\":\"all\",\"labels\":null}", 200,
		DATA(POSTED("1700000001", "all", "")) },
	{ "{\"time\":1700000000}", 400,
		BAD("invalid parameter \\\"text\\\": missing or empty; write what happened, as deploy "
			"v41") },
	{ "{\"text\":\"\"}", 400,
		BAD("invalid parameter \\\"text\\\": missing or empty; write what happened, as deploy "
			"v41") },
	{ "{\"text\":\"\xff\"}", 400, BAD("invalid parameter \\\"text\\\": not UTF-8") },
	{ "{\"text\":5}", 400, BAD("byte 8, text: expected a string") },
	{ "{\"text\":\"x\",\"time\":\"noon\"}", 400,
		BAD("invalid parameter \\\"time\\\": cannot parse \\\"noon\\\" to a valid timestamp") },
	{ "{\"text\":\"x\",\"time\":0}", 400, BAD("invalid parameter \\\"time\\\": before 1970") },
	{ "{\"text\":\"x\",\"time\":1700000000,\"end\":1699999999}", 400,
		BAD("invalid parameter \\\"end\\\": before the mark's time") },
	{ "{\"text\":\"x\",\"time\":9000000000000}", 400,
		BAD("invalid parameter \\\"time\\\": time \\\"9000000000000\\\" is out of range, "
			"1823-11-12 to 2116-02-20") },
	{ "{\"text\":\"x\",\"when\":1}", 400,
		BAD("unknown field \\\"when\\\": a mark has time, end, text and labels") },
	{ "{\"text\":\"x\",\"labels\":{\"a-b\":\"c\"}}", 400,
		BAD("invalid parameter \\\"labels\\\": \\\"a-b\\\" is not a label name: write a-z, A-Z, "
			"0-9 and _, and no digit first, and no __ first") },
	{ "{\"text\":\"x\",\"labels\":{\"__name__\":\"cpu\"}}", 400,
		BAD("invalid parameter \\\"labels\\\": \\\"__name__\\\" is not a label name: write a-z, "
			"A-Z, 0-9 and _, and no digit first, and no __ first") },
	{ "{\"text\":\"x\",\"labels\":{\"a\":\"b\",\"a\":\"c\"}}", 400,
		BAD("invalid parameter \\\"labels\\\": a is set twice") },
	{ "{\"text\":\"x\",\"labels\":[]}", 400, BAD("byte 21, labels: expected an object") },
	{ "{\"text\":\"x\",\"labels\":{\"a\":1}}", 400, BAD("byte 26, labels: expected a string") },
	{ "{\"text\":\"x\"} x", 400, BAD("byte 13: expected the end") },
	{ "{\"text\":\"x\"", 400, BAD("JSON ends at byte 11: expected ',' or '}'") },
	{ "[]", 400, BAD("the body is neither a JSON object nor a form") },
};

static const struct posted forms[] = {
	{ "time=1700000002&end=1700000003&text=a+b&label[]=job=shop&label[]=env=a%3Db", 200,
		DATA(LASTING("1700000002", "1700000003", "a b", "\"env\":\"a=b\"," SHOP)) },
	/* curl calls each body a form. */
	{ "{\"time\":1700000003,\"text\":\"json\"}", 200, DATA(POSTED("1700000003", "json", "")) },
	{ "text=x&label[]=job", 400,
		BAD("invalid parameter \\\"label[]\\\": \\\"job\\\" is not NAME=VALUE, as job=shop") },
	{ "text=x&time=noon", 400,
		BAD("invalid parameter \\\"time\\\": cannot parse \\\"noon\\\" to a valid timestamp") },
	{ "time=1700000000", 400,
		BAD("invalid parameter \\\"text\\\": missing or empty; write what happened, as deploy "
			"v41") },
};

TEST(marks_are_taken_or_refused_by_field)
{
	grafana_start();
	POST_ALL(AS_JSON, json);
	POST_ALL(AS_FORM, forms);
	CHECK_STR(grafana_get(PATH),
		DATA("[" LASTING("1700000000", "1700000060", "one\\ntwo \xc3\xbc", "") "," POSTED(
			"1700000000.123", "deploy v41", SHOP) "," POSTED("1700000001", "all",
			"") "," LASTING("1700000002", "1700000003", "a b",
			"\"env\":\"a=b\"," SHOP) "," POSTED("1700000003", "json", "") "]"));
	grafana_stop();
}

static void post_text(size_t bytes, int status, const char *want)
{
	struct buf body = { 0 };

	buf_add_cstr(&body, "{\"time\":1700000000,\"text\":\"");
	for (size_t i = 0; i < bytes; i++)
		buf_add_char(&body, 'x');
	buf_add_cstr(&body, "\"}");
	post(AS_JSON, buf_str(&body));
	CHECK_INT(grafana.r.status, status);
	if (want)
		CHECK_STR(str_of(grafana.r.body.ptr), want);
	buf_release(&body);
}

static void post_labels(size_t n, int status, const char *want)
{
	struct buf body = { 0 };

	buf_add_cstr(&body, "{\"time\":1700000000,\"text\":\"x\",\"labels\":{");
	for (size_t i = 0; i < n; i++)
		buf_printf(&body, "%s\"l%zu\":\"v\"", i ? "," : "", i);
	buf_add_cstr(&body, "}}");
	post(AS_JSON, buf_str(&body));
	CHECK_INT(grafana.r.status, status);
	if (want)
		CHECK_STR(str_of(grafana.r.body.ptr), want);
	buf_release(&body);
}

TEST(limits_of_marks_are_named)
{
	char text[64];

	grafana_start();
	post_text(4096, 200, NULL);
	post_text(4097, 422, LONG("invalid parameter \\\"text\\\": 4097 bytes, limit 4096"));
	post_labels(63, 200, NULL);
	post_labels(64, 422, LONG("invalid parameter \\\"labels\\\": more than 63, the limit"));
	post_text(300000, 413, NULL);
	snprintf(text, sizeof(text), "{\"text\":\"x\",\"time\":%lld}",
		(long long)(clock_now_ns() / NS_PER_S + 700));
	post(AS_JSON, str_of(text));
	CHECK_INT(grafana.r.status, 400);
	CHECK_INT(grafana_count("invalid parameter \\\"time\\\": profile of "), 1);
	CHECK_INT(grafana_count("is more than 10m ahead of this server's clock"), 1);
	grafana_stop();
}

/* Of one time and labels none is lost; the same one again is one. */
TEST(marks_share_a_time)
{
	static const char *const texts[] = { "b", "a", "c", "a" };
	char body[128];

	grafana_start();
	for (size_t i = 0; i < 4; i++) {
		snprintf(body, sizeof(body),
			"{\"time\":1700000000,\"text\":\"%s\",\"labels\":{\"job\":\"shop\"}}", texts[i]);
		post(AS_JSON, str_of(body));
		CHECK_INT(grafana.r.status, 200);
	}
	CHECK_STR(grafana_get(PATH "?start=1700000000&end=1700000001"),
		DATA("[" POSTED("1700000000", "a", SHOP) "," POSTED("1700000000", "b", SHOP) "," POSTED(
			"1700000000", "c", SHOP) "]"));
	grafana_get(PATH "?start=1700000000&end=1700000000"); /* rows of twins are behind its end */
	CHECK_INT(grafana_count("posted"), 3);
	CHECK_STR(grafana_get(PATH "?limit=1"),
		"{\"status\":\"success\",\"data\":[" POSTED(
			"1700000000", "a", SHOP) "],\"warnings\":[\"results truncated due to limit\"]}\n");
	CHECK_STR(grafana_get(PATH "?end=1699999999"), DATA("[]"));
	CHECK_STR(grafana_get(PATH "?start=1700000001"), DATA("[]"));
	grafana_stop();
}

static const struct {
	const char *match;
	size_t marks; /* of 3: for all, of job shop, of job bank with env dev */
} matches[] = {
	{ "", 3 },
	{ "?match[]={job=%22shop%22}", 2 },
	{ "?match[]={job=%22shop%22,pod=%22x%22}", 2 },
	{ "?match[]=cpu{job=%22shop%22}", 2 },
	{ "?match[]={__name__=%22cpu%22,__type__=%22samples%22,job=%22shop%22}", 2 },
	{ "?match[]={job=~%22.%2B%22,job!=%22shop%22}", 2 },
	{ "?match[]={job=~%22shop|bank%22}", 3 },
	{ "?match[]={env=%22dev%22}", 3 },
	{ "?match[]={env=%22prod%22}", 2 },
	{ "?match[]={job=%22shop%22}&match[]={job=%22bank%22}", 3 },
	{ "?match[]={__service__=%22shop%22}", 2 },
	{ "?match[]={job=%22other%22}", 1 },
};

TEST(marks_fit_by_the_labels_that_they_have)
{
	grafana_start();
	post(AS_FORM, STR("time=1700000000&text=m1"));
	post(AS_FORM, STR("time=1700000001&text=m2&label[]=job=shop"));
	post(AS_FORM, STR("time=1700000002&text=m3&label[]=job=bank&label[]=env=dev"));
	for (size_t i = 0; i < sizeof(matches) / sizeof(matches[0]); i++) {
		char path[256];

		snprintf(path, sizeof(path), PATH "%s", matches[i].match);
		grafana_get(path);
		if (grafana.r.status != 200 || grafana_count("\"kind\"") != matches[i].marks)
			CHECK_FAIL(
				"%s: %d " STR_FMT, path, grafana.r.status, STR_ARG(buf_str(&grafana.r.body)));
	}
	CHECK_STR(grafana_get(PATH "?match[]={"),
		BAD("invalid parameter \\\"match[]\\\": 1:2: unexpected end of query, expected string, "
			"\\\"}\\\" or label name"));
	grafana_stop();
}

/* What people choose from has no marks; a query by their name has. */
TEST(marks_are_no_clutter)
{
	grafana_start();
	grafana_ingest("job=shop", T0, true, 1, 5, "main.slow");
	post(AS_FORM, STR("time=1700000000&text=deploy&label[]=job=shop"));
	CHECK_INT(grafana.r.status, 200);
	grafana_get("/api/v1/profile_types");
	CHECK_INT(grafana_count("annotation"), 0);
	grafana_get("/api/v1/profile_types?match[]={job=%22shop%22}");
	CHECK_INT(grafana_count("annotation"), 0);
	CHECK_INT(grafana_count("process_cpu"), 2 * 2);
	CHECK_STR(grafana_get("/api/v1/label/__name__/values"), DATA("[\"process_cpu\"]"));
	CHECK_STR(grafana_get("/api/v1/label_counts?label=__name__"),
		DATA("[{\"value\":\"process_cpu\",\"series\":1}]"));
	CHECK_STR(grafana_get("/api/v1/series?match[]={job=%22shop%22}"),
		DATA("[{\"__name__\":\"process_cpu\",\"job\":\"shop\"}]"));
	CHECK_STR(grafana_get("/api/v1/series?match[]=annotation"),
		DATA("[{\"__name__\":\"annotation\",\"job\":\"shop\"}]"));
	CHECK_STR(grafana_get("/api/v1/functions?prefix=d"), DATA("[]"));
	grafana_get("/api/v1/senders");
	CHECK_INT(grafana_count(PATH), 0);
	CHECK_INT(grafana_count("/api/v1/ingest"), 1);
	grafana_get("/api/v1/query?time=1700000000&query=total({job=%22shop%22}[1m])");
	CHECK_INT(grafana.r.status, 200);
	CHECK_INT(grafana_count("\"unit\":\"nanoseconds\""), 1);
	grafana_get("/api/v1/query?time=1700000000&query=annotation:events{job=%22shop%22}");
	CHECK_INT(grafana_count("[\"total\",\"deploy\"]"), 1);
	CHECK_STR(grafana_get("/api/v1/query?time=1700000000&query=annotation:events{job=%22bank%22}"),
		"{\"status\":\"success\",\"data\":{\"resultType\":\"profiles\",\"result\":[]},\"infos\":["
		"\"no series of \\\"annotation:events\\\" has job=\\\"bank\\\" in this time range\"]}\n");
	grafana_stop();
}

static void ingest(const char *labels, int64_t at_s)
{
	grafana_ingest(labels, T0 + at_s, true, 1, 5, "main.slow");
}

TEST(versions_are_marks_where_they_begin)
{
	grafana_start();
	ingest("job=shop&version=v1&pod=a", 0);
	ingest("job=shop&version=v1&pod=b", 10);
	ingest("job=shop&version=v2&pod=c", 30);
	ingest("job=shop&version=v2&pod=a", 20);
	ingest("job=shop&version=v1&pod=a", 40); /* it comes back */
	ingest("job=shop&version=v3&pod=a", 50);
	ingest("job=bank&namespace=x&service_version=1", 0);
	ingest("job=bank&namespace=x&service_version=2", 60);
	ingest("job=bank&namespace=y&service_version=2", 5); /* another service */
	ingest("job=both&version=1&app_version=a", 0);
	ingest("job=both&version=1&app_version=b", 1); /* version is what counts */
	ingest("job=twins&version=1", 0);
	ingest("job=twins&version=2", 0); /* neither came first */
	ingest("job=twins&version=3", 70);
	/* A version of marks is none of the service's. */
	post(AS_FORM, STR("time=1700000080&text=m&label[]=job=shop&label[]=version=v4"));
	CHECK_STR(grafana_get(PATH),
		DATA("[" VERSION("1700000020", "version", "v1", "v2", SHOP) "," VERSION("1700000050",
			"version", "v2", "v3", SHOP) "," VERSION("1700000060", "service_version", "1", "2",
			"\"job\":\"bank\",\"namespace\":\"x\"") "," VERSION("1700000070", "version", "2", "3",
			"\"job\":\"twins\"") "," POSTED("1700000080", "m", SHOP ",\"version\":\"v4\"") "]"));
	/* What came before the window counts. */
	CHECK_STR(grafana_get(PATH "?start=1700000021&end=1700000055"),
		DATA("[" VERSION("1700000050", "version", "v2", "v3", SHOP) "]"));
	CHECK_STR(grafana_get(PATH "?start=1700000020&end=1700000020"),
		DATA("[" VERSION("1700000020", "version", "v1", "v2", SHOP) "]"));
	CHECK_STR(grafana_get(PATH "?match[]={job=%22shop%22,version=%22v2%22}&end=1700000030"),
		DATA("[" VERSION("1700000020", "version", "v1", "v2", SHOP) "]"));
	CHECK_STR(grafana_get(PATH "?match[]={namespace=%22x%22,job=%22bank%22}"),
		DATA("[" VERSION("1700000060", "service_version", "1", "2",
			"\"job\":\"bank\",\"namespace\":\"x\"") "]"));
	grafana_stop();
}

/* ---- users ---- */

static char dir[64], config_file[128];

static void write_users(void)
{
	static const char *const files[][2] = {
		{ "pusher", "the-token-of-a-pusher\n" },
		{ "limited", "the-token-of-the-shop\n" },
		{ "web.yml",
			"users:\n"
			"  - {name: ci, token_file: pusher, roles: [ingest]}\n"
			"  - {name: shop, token_file: limited, roles: [read], "
			"matchers: '{namespace=\"shop\"}'}\n" },
	};

	snprintf(dir, sizeof(dir), SCRATCH "epi-marks-XXXXXX");
	REQUIRE(scratch_dir(dir));
	for (size_t i = 0; i < 3; i++) {
		FILE *f;

		snprintf(config_file, sizeof(config_file), "%s/%s", dir, files[i][0]);
		f = fopen(config_file, "w");
		REQUIRE(f && fputs(files[i][1], f) >= 0 && fclose(f) == 0);
	}
}

static void remove_users(void)
{
	struct err err;

	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
}

#define PUSHER "Authorization: Bearer the-token-of-a-pusher\r\n"
#define LIMITED "Authorization: Bearer the-token-of-the-shop\r\n"

TEST(users_see_marks_that_their_matchers_admit)
{
	write_users();
	grafana_start_users(config_file);
	grafana.headers = PUSHER;
	ingest("job=a&namespace=shop&version=1", 0);
	ingest("job=a&namespace=shop&version=2", 10);
	ingest("job=b&namespace=bank&version=1", 0);
	ingest("job=b&namespace=bank&version=2", 10);
	post(LIMITED AS_FORM, STR("text=no"));
	CHECK_INT(grafana.r.status, 403);
	post(PUSHER AS_FORM, STR("time=1700000020&text=all"));
	CHECK_INT(grafana.r.status, 200);
	post(PUSHER AS_FORM, STR("time=1700000020&text=b&label[]=namespace=bank"));
	post(PUSHER AS_FORM, STR("time=1700000020&text=a&label[]=namespace=shop"));
	grafana_get(PATH);
	CHECK_INT(grafana.r.status, 403);
	grafana.headers = LIMITED;
	CHECK_STR(grafana_get(PATH),
		DATA("[" VERSION("1700000010", "version", "1", "2",
			"\"job\":\"a\",\"namespace\":\"shop\"") "," POSTED("1700000020", "a",
			"\"namespace\":\"shop\"") "]"));
	grafana_stop();
	remove_users();
}
