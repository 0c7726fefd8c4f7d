/* Files over HTTP: looked at, in queries beside what is stored, and kept. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/check.h"
#include "tests/web/grafana.h"
#include "web/files/kept.h"

#define BOUNDARY "Content-Type: multipart/form-data; boundary=b\r\n"
#define PART(head, body) "--b\r\nContent-Disposition: form-data; " head "\r\n\r\n" body "\r\n"
#define FIELD(name, value) PART("name=\"" name "\"", value)
#define FILE_PART(name, body) PART("name=\"file\"; filename=\"" name "\"", body)
#define END "--b--\r\n"
#define OLD FILE_PART("old.folded", "main;f 30\nmain;g 10\n")
#define NEW FILE_PART("new.folded", "main;f 50\nmain;g 10\nmain;h 5\n")

static struct kept *kept;
static char dir[64];

static void start(void)
{
	struct kept_options o = {
		.fs = &fs_posix, .dir = dir, .bytes_max = 1000, .time_max_ns = 30 * NS_PER_DAY
	};
	struct err err;

	snprintf(dir, sizeof(dir), "/tmp/epi-files-XXXXXX");
	must(mkdtemp(dir) ? ERR_OK : err_set(&err, ERR_IO, "%s", dir), &err);
	must(kept_open(&o, &kept, &err), &err);
	grafana_start_files(kept);
}

static void stop(void)
{
	struct err err;

	grafana_stop();
	kept_close(kept);
	must(fs_remove_tree(&fs_posix, dir, &err), &err);
}

static void ask(const char *request, const char *headers, const char *body)
{
	peer_ask(web_port(grafana.web), &grafana.r, request, headers, str_of(body));
}

static void query(const char *body)
{
	ask("POST /api/v1/query", BOUNDARY, body);
}

#define HAS(text) \
	do { \
		if (!grafana_count(text)) \
			CHECK_FAIL("no %s in %d: " STR_FMT, text, grafana.r.status, \
				STR_ARG(buf_str(&grafana.r.body))); \
	} while (0)

TEST(queries_take_files)
{
	/* clang-format off */
	static const struct {
		const char *body, *want;
	} rows[] = {
		{ FIELD("query", "file(\"old.folded\")") OLD END,
		  "\"resultType\":\"profiles\",\"result\":[{\"metric\":{\"__name__\":\"samples\"},"
		  "\"type\":\"samples:samples:count:::delta\",\"unit\":\"count\",\"total\":40,"
		  "\"cost\":40,\"profiles\":1" },
		{ FIELD("query", "total(file(\"old.folded\"))") OLD END,
		  "\"unit\":\"count\",\"result\":[{\"metric\":{}" },
		{ FIELD("query", "total(focus(file(\"old.folded\"), \"^f$\"))") OLD END, "\"30\"]" },
		{ FIELD("query", "flat(file(\"new.folded\"), {function=\"h\"})") NEW END, "\"5\"]" },
		{ FIELD("query", "top(1, diff(file(\"new.folded\"), file(\"old.folded\")))") OLD NEW END,
		  "\"function\":\"f\",\"flat\":20" },
		{ FIELD("query", "diff(merge(file(\"new.folded\")), "
		  "merge(file(\"old.folded\")))") OLD NEW END,
		  "\"left_total\":40,\"right_total\":65" },
		/* Against what is stored. */
		{ FIELD("query", "diff(file(\"new.folded\"), "
		  "merge(cpu:samples[1m]))") FIELD("time", "1700000030")
		  NEW END, "\"left_total\":42,\"right_total\":65" },
		{ FIELD("query", "file(\"old.folded\")") FIELD("format", "folded") OLD END, "main;f 30\n" },
		{ FIELD("query", "file(\"old.folded\")") FIELD("call_site[]", "main")
		  FIELD("call_site[]", "g") OLD END, "[[0,10,0,0],[0,10,0,1],[0,10,10,2]]" },
	};
	static const struct {
		const char *body;
		int status;
		const char *want;
	} wrong[] = {
		{ FIELD("query", "file(\"old.folded\")") END, 404,
		  "1:1: file \\\"old.folded\\\": no such file in the query, and no stored file with "
		  "this id" },
		{ FIELD("query", "file(\"cpu.pb.gz\")") NEW END, 404,
		  "1:1: file \\\"cpu.pb.gz\\\": no such file in the query, only "
		  "\\\"new.folded\\\", and no stored file with this id" },
		{ FIELD("query", "file(\"a\")") FILE_PART("b", "f 1") FILE_PART("c", "f 1")
		  FILE_PART("d", "f 1") FILE_PART("e", "f 1") FILE_PART("f", "f 1")
		  FILE_PART("g", "f 1") END, 404,
		  "only \\\"b\\\", \\\"c\\\", \\\"d\\\", \\\"e\\\" and 2 more, and no stored " },
		{ FIELD("query", "total(file(\"0123456789abcdef0123456789abcdef\"))") END, 404,
		  "1:7: file \\\"0123456789abcdef0123456789abcdef\\\": no stored file" },
		{ FIELD("query", "file(\"old.folded\", \"space\")") OLD END, 400,
		  "the file has no type \\\"space\\\"; it has samples:samples" },
		{ FIELD("query", "file(\"x\")") FILE_PART("x", "main;f 3\nmain\n") END, 400, "line 2" },
		{ FIELD("query", "file(\"x\")") FILE_PART("x", "a 1") FILE_PART("x", "a 2") END, 400,
		  "two files have the name \\\"x\\\"" },
		{ FIELD("query", "file(\"x\")"), 400, "multipart: " },
		{ FIELD("query", "diff(file(\"new.folded\"), merge(cpu[1m]))") FIELD("time", "1700000030")
		  NEW END, 400, "nanoseconds" },
	};
	/* clang-format on */

	start();
	grafana_fill();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		query(rows[i].body);
		CHECK_INT(grafana.r.status, 200);
		HAS(rows[i].want);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		query(wrong[i].body);
		CHECK_INT(grafana.r.status, wrong[i].status);
		HAS(wrong[i].want);
	}
	stop();
}

/* A file has no time. */
TEST(steps_are_refused)
{
	start();
	grafana_get("/api/v1/query_range?query=total(file(%22a%22))&start=1&end=2&step=1");
	CHECK_INT(grafana.r.status, 400);
	HAS("1:7: a file has no cost over time: file() is for queries at one time");
	stop();
}

TEST(a_file_is_looked_at_and_not_stored)
{
	struct arena a;
	struct str *names;
	struct err err;
	size_t n;

	start();
	ask("POST /api/v1/files?name=old.folded", "", "main;f 30\nmain;g 10\n");
	CHECK_INT(grafana.r.status, 200);
	HAS("{\"name\":\"old.folded\",\"format\":\"folded stacks\",\"bytes\":20,\"keepMax\":2592000,"
		"\"profiles\":[{\"name\":\"samples\",\"samples\":2,\"types\":[{\"type\":\"samples\","
		"\"unit\":"
		"\"count\",\"default\":true}]}]}");
	ask("POST /api/v1/files?name=x", "", "no cost\n");
	CHECK_INT(grafana.r.status, 400);
	arena_init(&a, 0);
	CHECK_OK(fs_list(dir, &a, &names, &n, &err), &err);
	CHECK_INT(n, 0);
	arena_release(&a);
	stop();
}

/* What a recording lacks is said beside what is in it. */
TEST(a_file_that_lacks_samples)
{
	struct buf bytes = { 0 };
	struct err err;

	start();
	must(fs_read_file("tests/proto/jfr/recordings/jdk25.jfr.gz", 1u << 20, &bytes, &err), &err);
	peer_ask(web_port(grafana.web), &grafana.r, "POST /api/v1/files?name=j", "", buf_str(&bytes));
	CHECK_INT(grafana.r.status, 200);
	HAS("\"warnings\":[\"the recorder lost 47 samples of CPU time, about 329 ms; process_cpu lacks "
		"them\"]");
	stop();
	buf_release(&bytes);
}

static void id_of_answer(char id[33])
{
	struct str body = buf_str(&grafana.r.body);
	ptrdiff_t at = str_find(body, STR("\"id\":\""));

	memset(id, 0, 33);
	if (at >= 0 && body.len >= (size_t)at + 6 + 32)
		memcpy(id, body.ptr + at + 6, 32);
}

TEST(a_file_is_kept)
{
	char id[33], text[200];

	start();
	ask("POST /api/v1/files?name=old.folded&keep=7d", "", "main;f 30\nmain;g 10\n");
	CHECK_INT(grafana.r.status, 200);
	id_of_answer(id);
	CHECK(kept_is_id(str_of(id)));
	snprintf(text, sizeof(text), "/api/v1/query?query=total(file(%%22%s%%22))", id);
	grafana_get(text);
	CHECK_INT(grafana.r.status, 200);
	HAS("\"40\"]");
	snprintf(text, sizeof(text), "/api/v1/files/%s", id);
	grafana_get(text);
	HAS("\"name\":\"old.folded\"");
	HAS("\"format\":\"folded stacks\"");
	snprintf(text, sizeof(text), "/api/v1/files/%s?content=true", id);
	CHECK_STR(grafana_get(text), "main;f 30\nmain;g 10\n");
	CHECK_STR(
		response_header(&grafana.r, "Content-Disposition"), "attachment; filename=\"old.folded\"");
	grafana_get("/api/v1/files");
	HAS(id);
	HAS("\"bytes\":20,\"bytesMax\":1000");
	/* A page of another site can do nothing here. */
	snprintf(text, sizeof(text), "DELETE /api/v1/files/%s", id);
	ask(text, "Origin: https://other.example\r\n", "");
	CHECK_INT(grafana.r.status, 403);
	ask("POST /api/v1/files?name=a&keep=7d", "Sec-Fetch-Site: cross-site\r\n", "main 1");
	CHECK_INT(grafana.r.status, 403);
	ask(text, "", "");
	CHECK_INT(grafana.r.status, 200);
	ask(text, "", "");
	CHECK_INT(grafana.r.status, 404);
	/* What is no profile is not kept, nor for longer than may be. */
	ask("POST /api/v1/files?name=a&keep=7d", "", "no cost\n");
	CHECK_INT(grafana.r.status, 400);
	ask("POST /api/v1/files?name=a&keep=31d", "", "main 1");
	CHECK_INT(grafana.r.status, 422);
	HAS("--storage.files.max-time");
	grafana_get("/api/v1/files");
	HAS("\"files\":[]");
	stop();
}

TEST(keeping_is_off_unless_it_was_asked_for)
{
	grafana_start();
	ask("POST /api/v1/files?name=a", "", "main 1");
	CHECK_INT(grafana.r.status, 200);
	HAS("\"keepMax\":0");
	ask("POST /api/v1/files?name=a&keep=1d", "", "main 1");
	CHECK_INT(grafana.r.status, 404);
	HAS("this server stores no files");
	grafana_get("/api/v1/files");
	CHECK_INT(grafana.r.status, 403);
	grafana_stop();
}
