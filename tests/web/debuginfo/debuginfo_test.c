/* Uploads and the list of binaries over real sockets, on a real store without an extractor. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/debuginfo/mini_elf.h"
#include "tests/web/grafana.h"
#include "tsdb/debuginfo/service/debuginfo.h"
#include "web/debuginfo/debuginfo.h"
#include "web/debuginfo/uploads.h"
#include "web/pyroscope/json.h"

#define ID "0123456789abcdef0123"
#define ID_BYTES STR("\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23")
#define OTHER "00ff"
#define OTHER_BYTES STR("\0\xff")

static struct {
	char dir[64];
	struct debuginfo *d;
	struct buf elf;
} world;

static void begin(void)
{
	struct debuginfo_service_options o = { .fs = &fs_posix, .dir = world.dir };
	struct err err;

	snprintf(world.dir, sizeof(world.dir), "/tmp/epi-debuginfo-XXXXXX");
	if (!mkdtemp(world.dir))
		exit(1);
	must(debuginfo_service_open(&o, &world.d, &err), &err);
	grafana_start_debuginfo(world.d);
}

static void end(void)
{
	struct err err;

	grafana_stop();
	debuginfo_stop(world.d);
	debuginfo_service_close(world.d);
	must(fs_remove_tree(&fs_posix, world.dir, &err), &err);
	buf_release(&world.elf);
}

static int post(const char *path, const char *headers, struct str body)
{
	char request[600];

	snprintf(request, sizeof(request), "POST %s", path);
	peer_ask(web_port(grafana.web), &grafana.r, request, headers, body);
	return grafana.r.status;
}

static int call(const char *method, const char *json)
{
	char path[200];

	snprintf(path, sizeof(path), DEBUGINFO_SERVICE "%s", method);
	return post(path, AS_JSON, str_of(json));
}

static int upload(const char *id, struct str file)
{
	char path[200];

	snprintf(path, sizeof(path), DEBUGINFO_SERVICE "Upload/%s", id);
	return post(path, "", file);
}

#define BODY buf_str(&grafana.r.body)
#define ASK(id) \
	"{\"file\":{\"gnuBuildId\":\"" id "\",\"name\":\"/bin/x\",\"type\":\"TYPE_EXECUTABLE_FULL\"}}"
#define YES "{\"shouldInitiateUpload\":true,\"reason\":\"nothing is there\"}"

static size_t files(const char *end)
{
	DIR *d = opendir(world.dir);
	size_t n = 0, len = strlen(end);
	struct dirent *e;

	while (d && (e = readdir(d)))
		n += strlen(e->d_name) >= len && !strcmp(e->d_name + strlen(e->d_name) - len, end);
	if (d)
		closedir(d);
	return n;
}

TEST(a_file_is_announced_uploaded_and_finished)
{
	struct str body;

	begin();
	mini_elf(&world.elf, ID_BYTES, 100);
	CHECK_INT(upload(ID, buf_str(&world.elf)), 412);
	CHECK_STR(BODY, "no upload of " ID " was announced: call ShouldInitiateUpload first\n");
	CHECK_INT(call("ShouldInitiateUpload", ASK(ID)), 200);
	CHECK_STR(BODY, YES);
	CHECK_INT(call("UploadFinished", "{\"gnuBuildId\":\"" ID "\"}"), 400);
	CHECK_STR(
		BODY, "{\"code\":\"failed_precondition\",\"message\":\"nothing was uploaded for " ID "\"}");
	CHECK_INT(upload("0123456789ABCDEF0123", buf_str(&world.elf)), 200);
	CHECK_INT(files(".queued"), 1);
	CHECK_INT(call("UploadFinished", "{\"gnuBuildId\":\"" ID "\"}"), 200);
	CHECK_STR(BODY, "{}");
	CHECK_INT(call("ShouldInitiateUpload", ASK(ID)), 200);
	CHECK_STR(BODY, "{\"reason\":\"extraction is in progress\"}");
	body = grafana_get("/api/v1/symbols");
	CHECK_STR(body,
		"{\"status\":\"success\",\"data\":{\"enabled\":false,\"uploadEnabled\":true,\"bytes\":0,"
		"\"bytesMax\":0,\"debuginfod\":[],\"directories\":[],\"binaries\":[{\"id\":\"" ID
		"\",\"kind\":\"gnu\",\"path\":\"/bin/x\","
		"\"jobs\":[],\"addresses\":0,\"state\":\"queued\",\"sourceBytes\":246}]}}\n");
	CHECK_STR(grafana_get("/api/v1/symbols?id=" OTHER),
		"{\"status\":\"success\",\"data\":{\"enabled\":false,\"uploadEnabled\":true,\"bytes\":0,"
		"\"bytesMax\":0,\"debuginfod\":[],\"directories\":[],\"binaries\":[]}}\n");
	end();
}

static void pack(const ProtobufCMessageDescriptor *d, const char *json, struct buf *out)
{
	ProtobufCMessage *m;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	must(pyroscope_json_read(&a, d, str_of(json), &m, &err), &err);
	buf_clear(out);
	buf_reserve(out, 4096);
	out->len = protobuf_c_message_pack(m, (uint8_t *)out->ptr);
	arena_release(&a);
}

TEST(questions_in_protobuf_and_wrong_ones)
{
	static const struct {
		const char *request, *want;
		int status;
	} rows[] = {
		{ "{}", "{\"code\":\"invalid_argument\",\"message\":\"file is missing\"}", 400 },
		{ "{\"file\":{\"gnuBuildId\":\"" ID "\"}}",
			"{\"code\":\"invalid_argument\",\"message\":\"file.type is 0, not 1 (full) or 2 "
			"(without "
			"code)\"}",
			400 },
		{ "{\"file\":{\"otelFileId\":\"aa\",\"type\":1}}",
			"{\"reason\":\"it has no GNU build id\"}", 200 },
		{ "{\"file\":{\"gnuBuildId\":\"" OTHER "\",\"type\":\"TYPE_EXECUTABLE_NO_TEXT\"}}", YES,
			200 },
	};
	struct buf body = { 0 };

	begin();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_INT(call("ShouldInitiateUpload", rows[i].request), rows[i].status);
		CHECK_STR(BODY, rows[i].want);
	}
	CHECK_INT(call("ShouldInitiateUpload", "{\"file\":{\"gnuBuildId\":\"../x\",\"type\":1}}"), 400);
	CHECK_INT(grafana_count("file.gnu_build_id: "), 1);
	CHECK_INT(call("UploadFinished", "{}"), 400);
	CHECK_INT(post(DEBUGINFO_SERVICE "UploadFinished", "", STR("")), 415);
	pack(&epimetheus__pyroscope__should_initiate_upload_request__descriptor, ASK(ID), &body);
	CHECK_INT(post(DEBUGINFO_SERVICE "ShouldInitiateUpload", AS_PROTO, buf_str(&body)), 200);
	CHECK_STR(BODY, "\x08\x01\x12\x10nothing is there");
	CHECK_INT(post(DEBUGINFO_SERVICE "ShouldInitiateUpload", AS_PROTO, STR("\xff\xff")), 400);
	CHECK_INT(upload("..%2fx", STR("x")), 404);
	CHECK_INT(upload("xyz", STR("x")), 400);
	buf_release(&body);
	end();
}

/* Another machine has the same binary. */
TEST(one_client_is_told_to_upload)
{
	struct peer p;

	begin();
	CHECK_INT(call("ShouldInitiateUpload", ASK(ID)), 200);
	CHECK_STR(BODY, YES);
	peer_open_from(&p, 2, web_port(grafana.web));
	peer_ask_on(
		&p, &grafana.r, "POST " DEBUGINFO_SERVICE "ShouldInitiateUpload", AS_JSON, STR(ASK(ID)));
	CHECK_STR(BODY, "{\"reason\":\"another sender uploads this file\"}");
	CHECK_INT(call("ShouldInitiateUpload", ASK(ID)), 200);
	CHECK_STR(BODY, YES);
	peer_close(&p);
	end();
}

TEST(what_is_no_such_file_stores_nothing)
{
	begin();
	CHECK_INT(call("ShouldInitiateUpload", ASK(ID)), 200);
	mini_elf(&world.elf, OTHER_BYTES, 100);
	CHECK_INT(upload(ID, buf_str(&world.elf)), 400);
	CHECK_STR(BODY, "the file's build id is " OTHER ", not " ID "\n");
	CHECK_INT(upload(ID, STR("<!DOCTYPE html><html>Not Found</html>")), 400);
	CHECK_STR(BODY, "not an ELF file: it is an HTML page\n");
	CHECK_INT(upload(ID, STR("")), 400);
	CHECK_STR(BODY, "the body is empty: send the file\n");
	CHECK_INT(files(".queued") + files(".tmp"), 0);
	grafana_get("/api/v1/symbols");
	CHECK_INT(grafana_count("\"binaries\":[]"), 1);
	end();
}

#define PUT "/api/v1/symbols/upload?name=x.debug"

TEST(one_request_uploads_too)
{
	static const struct {
		const char *params, *want;
		int status;
	} rows[] = {
		{ "",
			"{\"status\":\"success\",\"data\":{\"id\":\"" ID "\",\"kind\":\"gnu\","
			"\"state\":\"queued\"}}\n",
			200 },
		{ "",
			"{\"status\":\"error\",\"errorType\":\"conflict\",\"error\":\"extraction is in "
			"progress\"}",
			409 },
		{ "&id=" ID "&kind=gnu",
			"{\"status\":\"error\",\"errorType\":\"conflict\",\"error\":\"extraction is in "
			"progress\"}",
			409 },
		{ "&id=" OTHER,
			"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"the file's build id "
			"is " ID ", not " OTHER "\"}",
			400 },
		{ "&id=0123456789abcdef0123456789abcdef&kind=file&content=stripped",
			"{\"status\":\"success\",\"data\":{\"id\":\"0123456789abcdef0123456789abcdef\","
			"\"kind\":\"file\",\"state\":\"queued\"}}\n",
			200 },
		{ "&id=a%2Fb%2Fc&kind=go",
			"{\"status\":\"success\",\"data\":{\"id\":\"a/b/c\",\"kind\":\"go\","
			"\"state\":\"queued\"}}\n",
			200 },
		{ "&kind=elf",
			"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"invalid parameter "
			"\\\"kind\\\": \\\"elf\\\" is none of gnu, go, file\"}",
			400 },
		{ "&content=much",
			"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"invalid parameter "
			"\\\"content\\\": \\\"much\\\" is none of stripped, no_text, full\"}",
			400 },
	};

	begin();
	mini_elf(&world.elf, ID_BYTES, 5u << 20);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[200];

		snprintf(path, sizeof(path), PUT "%s", rows[i].params);
		CHECK_INT(post(path, "", buf_str(&world.elf)), rows[i].status);
		CHECK_STR(BODY, rows[i].want);
	}
	grafana_get("/api/v1/symbols");
	CHECK_INT(grafana_count("\"sourceBytes\":5243026"), 3);
	CHECK_INT(grafana_count("\"path\":\"x.debug\""), 3);
	mini_elf(&world.elf, STR(""), 10);
	CHECK_INT(post(PUT, "", buf_str(&world.elf)), 400);
	CHECK_INT(grafana_count("no build id in the first MiB of the file"), 1);
	CHECK_INT(post(PUT, "Content-Encoding: gzip\r\n", buf_str(&world.elf)), 415);
	end();
}

/*
 * BOLT puts them behind everything. What an upload's id says is believed until it is extracted,
 * else what looks like the note.
 */
TEST(headers_may_be_beyond_the_first_mebibyte)
{
	begin();
	mini_elf_late(&world.elf, ID_BYTES, 2u << 20);
	CHECK_INT(call("ShouldInitiateUpload", ASK(OTHER)), 200);
	CHECK_INT(upload(OTHER, buf_str(&world.elf)), 200);
	CHECK_INT(post(PUT, "", buf_str(&world.elf)), 200);
	CHECK_STR(BODY,
		"{\"status\":\"success\",\"data\":{\"id\":\"" ID "\",\"kind\":\"gnu\","
		"\"state\":\"queued\"}}\n");
	CHECK_INT(
		post(PUT "&id=0123456789abcdef0123456789abcdef&kind=file", "", buf_str(&world.elf)), 200);
	CHECK_INT(files(".queued"), 3);
	mini_elf_late(&world.elf, STR(""), 2u << 20);
	CHECK_INT(post(PUT, "", buf_str(&world.elf)), 400);
	CHECK_INT(grafana_count("no build id in the first MiB of the file"), 1);
	/* A file that ends before them is cut short. */
	world.elf.len = 100000;
	CHECK_INT(post(PUT "&id=" OTHER "00", "", buf_str(&world.elf)), 400);
	CHECK_INT(grafana_count("the file may be cut short"), 1);
	end();
}

/* Sends the beginning of an upload, of which 100 bytes are missing. */
static void half(struct peer *p, unsigned from, unsigned i)
{
	char head[300];

	mini_elf(&world.elf, ID_BYTES, 2u << 20);
	snprintf(head, sizeof(head),
		"POST " PUT "&kind=go&id=a/%u/%u HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", from,
		i, world.elf.len + 100);
	peer_open_from(p, from, web_port(grafana.web));
	peer_send(p, str_of(head));
	peer_send(p, buf_str(&world.elf));
}

static size_t uploading(void)
{
	grafana_get("/api/v1/symbols");
	return grafana_count("\"state\":\"uploading\"");
}

TEST(limits_and_halves)
{
	struct peer p[UPLOADS_MAX], another;
	unsigned n = 0;

	begin();
	for (; n < UPLOADS_ADDRESS_MAX; n++)
		half(&p[n], 1, n);
	CHECK(WAIT_FOR(uploading() == UPLOADS_ADDRESS_MAX));
	CHECK_INT(post(PUT, "Expect: 100-continue\r\n", buf_str(&world.elf)), 429);
	CHECK_STR(response_header(&grafana.r, "Retry-After"), "5");
	CHECK_INT(grafana_count("4 uploads of this address are in progress, limit 4"), 1);
	for (; n < UPLOADS_MAX; n++)
		half(&p[n], 2 + n / UPLOADS_ADDRESS_MAX, n);
	CHECK(WAIT_FOR(uploading() == UPLOADS_MAX));
	peer_open_from(&another, 9, web_port(grafana.web));
	peer_ask_on(&another, &grafana.r, "POST " PUT, "", buf_str(&world.elf));
	CHECK_INT(grafana.r.status, 503);
	CHECK_STR(response_header(&grafana.r, "Retry-After"), "5");
	peer_close(&another);
	while (n)
		peer_close(&p[--n]);
	CHECK(WAIT_FOR(uploading() == 0));
	CHECK(WAIT_FOR(files(".tmp") == 0));
	CHECK_INT(files(".queued"), 0);

	/* The limit of a file is known before its first byte. */
	peer_open(&another, web_port(grafana.web));
	peer_send(
		&another, STR("POST " PUT " HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741825\r\n\r\n"));
	peer_receive(&another, &grafana.r, false);
	CHECK_INT(grafana.r.status, 413);
	CHECK_INT(grafana_count("the file has 1073741825 bytes, limit 1073741824"), 1);
	peer_close(&another);
	end();
}

TEST(a_server_without_symbols)
{
	grafana_start();
	CHECK_INT(call("ShouldInitiateUpload", ASK(ID)), 404);
	CHECK_STR(BODY, "{\"code\":\"not_found\",\"message\":\"this server stores no symbols\"}");
	CHECK_INT(post(PUT, "", STR("x")), 404);
	CHECK_STR(grafana_get("/api/v1/symbols"),
		"{\"status\":\"success\",\"data\":{\"enabled\":false,\"uploadEnabled\":false,\"bytes\":0,"
		"\"bytesMax\":0,\"debuginfod\":[],\"directories\":[],\"binaries\":[]}}\n");
	grafana_stop();
}
