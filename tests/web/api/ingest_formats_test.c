/* Formats of files, pushed by /api/v1/ingest. */
#include <stdio.h>

#include "base/fs.h"
#include "tests/check.h"
#include "tests/web/grafana.h"

static struct str push(const char *path, struct str body)
{
	char request[256];

	snprintf(request, sizeof(request), "POST %s", path);
	peer_ask(web_port(grafana.web), &grafana.r, request, "", body);
	return buf_str(&grafana.r.body);
}

static void check_get(const char *path, const char *want)
{
	CHECK_STR(grafana_get(path), want);
}

/* What files have: a query reads the same of what is pushed as of a file. */
TEST(ingest_takes_stacks_by_name_and_speedscope)
{
	static const char speedscope[] =
		"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
		"\"shared\":{\"frames\":[{\"name\":\"main\"}]},\"profiles\":[{\"type\":\"sampled\","
		"\"name\":"
		"\"t\",\"unit\":\"milliseconds\",\"startValue\":0,\"endValue\":3,\"samples\":[[0]],"
		"\"weights\":[3]}]}";

	grafana_start();
	push("/api/v1/ingest?name=cpu&job=folded&time=1700000000&interval=1s",
		STR("main;work 3\nmain 1\n"));
	CHECK_INT(grafana.r.status, 200);
	check_get(
		"/api/v1/"
		"query?time=1700000000&query=total(%7B__name__=%22process_cpu%22,job=%22folded%22%7D)",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"unit\":\"count\","
		"\"result\":[{\"metric\":{\"job\":\"folded\"},\"value\":[1700000000,\"4\"]}]}}\n");
	push("/api/v1/ingest?name=wall&job=scope&time=1700000000&interval=1s", str_of(speedscope));
	CHECK_INT(grafana.r.status, 200);
	check_get("/api/v1/query?time=1700000000&query=total(wall:time)",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"unit\":\"nanoseconds\","
		"\"result\":[{\"metric\":{\"job\":\"scope\"},\"value\":[1700000000,\"3000000\"]}]}}\n");
	grafana_stop();
}

TEST(ingest_takes_a_recording_of_java_as_several_profiles)
{
	static const char path[] = "tests/proto/jfr/recordings/async.jfr.gz";
	struct buf body = { 0 };
	struct err err;

	grafana_start();
	CHECK_OK(fs_read_file(path, 16u << 20, &body, &err), &err);
	push("/api/v1/ingest?job=java&time=1700000000", buf_str(&body));
	CHECK_INT(grafana.r.status, 200);
	check_get("/api/v1/label/__name__/values",
		"{\"status\":\"success\",\"data\":[\"memory\",\"mutex\",\"process_cpu\",\"wall\"]}\n");
	push("/api/v1/ingest?job=one&name=cpu&time=1700000000", buf_str(&body));
	CHECK_INT(grafana.r.status, 200);
	CHECK(strstr(grafana.r.body.ptr, "of the recording: not stored, since name chooses another"));
	check_get("/api/v1/series?match[]=%7Bjob=%22one%22%7D",
		"{\"status\":\"success\",\"data\":[{\"__name__\":\"process_cpu\",\"job\":\"one\"}]}\n");
	CHECK_STR(push("/api/v1/ingest?job=one&name=goroutine", buf_str(&body)),
		"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"invalid parameter "
		"\\\"name\\\": the recording has no \\\"goroutine\\\"; it has process_cpu, wall, memory, "
		"mutex\"}");
	buf_release(&body);
	grafana_stop();
}
