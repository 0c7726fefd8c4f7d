/* push.v1.PusherService/Push against a real database: what is stored, what is answered. */
#include "base/fs.h"
#include "proto/base64.h"
#include "tests/check.h"
#include "tests/web/grafana.h"
#include "web/pyroscope/json.h"

#define PATH "POST /push.v1.PusherService/Push"
#define END_S (T0 + 10)

/* One series with one profile. */
static void request(struct buf *out, const char *labels, struct str profile)
{
	buf_clear(out);
	buf_printf(out, "{\"series\":[{\"labels\":[%s],\"samples\":[{\"rawProfile\":\"", labels);
	base64_add(out, profile);
	buf_add_cstr(out, "\",\"ID\":\"x\"}]}]}");
}

/* The same as protobuf. */
static void pack(struct buf *json, struct buf *out)
{
	ProtobufCMessage *m;
	struct arena a;
	struct err err;
	size_t size;

	arena_init(&a, 0);
	must(pyroscope_json_read(
			 &a, &epimetheus__pyroscope__push_request__descriptor, buf_str(json), &m, &err),
		&err);
	buf_clear(out);
	size = protobuf_c_message_get_packed_size(m);
	buf_reserve(out, size);
	out->len = protobuf_c_message_pack(m, (uint8_t *)out->ptr);
	arena_release(&a);
}

static int push(const char *headers, struct str body)
{
	peer_ask(web_port(grafana.web), &grafana.r, PATH, headers, body);
	return grafana.r.status;
}

static void profile(struct buf *gz, int64_t slow, int64_t end_s)
{
	buf_clear(gz);
	profile_gz(gz,
		&(struct pushed_profile){
			.cpu = true, .slow = slow, .own = 1, .leaf = "main.slow", .end_s = end_s });
}

#define LABELS(service) \
	"{\"name\":\"__name__\",\"value\":\"process_cpu\"}," \
	"{\"name\":\"service_name\",\"value\":\"" service "\"}," \
	"{\"name\":\"__session_id__\",\"value\":\"1\"}"

static void check_stored(const char *job, const char *want)
{
	char path[300];

	snprintf(path, sizeof(path),
		"/api/v1/query?query=total(merge%%20by%%20(job,service_name)%%20(cpu%%7Bjob=%%22%s%%22%%7D"
		"%%5B1m%%5D))&time=%lld",
		job, (long long)END_S + 1);
	CHECK_STR(grafana_get(path), want);
}

TEST(both_encodings_are_stored)
{
	struct buf gz = { 0 }, json = { 0 }, proto = { 0 };

	grafana_start();
	profile(&gz, 3, END_S);
	request(&json, LABELS("a"), buf_str(&gz));
	CHECK_INT(push(AS_JSON, buf_str(&json)), 200);
	CHECK_STR(buf_str(&grafana.r.body), "{}");
	request(&json, LABELS("b"), buf_str(&gz));
	pack(&json, &proto);
	CHECK_INT(push(AS_PROTO, buf_str(&proto)), 200);
	CHECK_INT(grafana.r.body.len, 0);
	/* The same again, as after a lost answer, is nothing new. */
	CHECK_INT(push(AS_PROTO, buf_str(&proto)), 200);
	check_stored("a",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"unit\":\"nanoseconds\","
		"\"result\":[{\"metric\":{"
		"\"job\":\"a\",\"service_name\":\"a\"},\"value\":[1700000011,\"40000000\"]}]}}\n");
	check_stored("b",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"unit\":\"nanoseconds\","
		"\"result\":[{\"metric\":{"
		"\"job\":\"b\",\"service_name\":\"b\"},\"value\":[1700000011,\"40000000\"]}]}}\n");
	/* Another one of the same series and time is kept beside it. */
	profile(&gz, 4, END_S);
	request(&json, LABELS("a"), buf_str(&gz));
	CHECK_INT(push(AS_JSON, buf_str(&json)), 200);
	check_stored("a",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"unit\":\"nanoseconds\","
		"\"result\":[{\"metric\":{"
		"\"job\":\"a\",\"service_name\":\"a\"},\"value\":[1700000011,\"90000000\"]}]}}\n");
	grafana_stop();
	buf_release(&gz);
	buf_release(&json);
	buf_release(&proto);
}

/* Go's text with its names, in JSON as bytes. */
TEST(a_format_before_protobuf)
{
	struct buf text = { 0 }, json = { 0 };
	struct str body;
	struct err err;

	grafana_start();
	must(fs_read_file("tests/proto/legacy/testdata/go_goroutine.txt", 1u << 20, &text, &err), &err);
	request(&json,
		"{\"name\":\"__name__\",\"value\":\"goroutine\"},"
		"{\"name\":\"service_name\",\"value\":\"a\"}",
		buf_str(&text));
	CHECK_INT(push(AS_JSON, buf_str(&json)), 200);
	body = grafana_get("/api/v1/query?query=cum(goroutine,%7Bfunction=%22main.main%22%7D)");
	if (str_find(body, STR(",\"1\"]")) < 0)
		CHECK_FAIL(STR_FMT, STR_ARG(body));
	grafana_stop();
	buf_release(&text);
	buf_release(&json);
}

static void refused(const char *headers, const char *body, int status, const char *want)
{
	CHECK_INT(push(headers, str_of(body)), status);
	CHECK_STR(buf_str(&grafana.r.body), want);
}

TEST(what_is_alive_is_a_level_also_over_a_duration)
{
	struct buf gz = { 0 }, json = { 0 };

	grafana_start();
	profile_gz(&gz,
		&(struct pushed_profile){
			.lasting = true, .slow = 3, .own = 1, .leaf = "main.slow", .end_s = END_S });
	request(&json,
		"{\"name\":\"__name__\",\"value\":\"goroutine\"},"
		"{\"name\":\"service_name\",\"value\":\"a\"}",
		buf_str(&gz));
	CHECK_INT(push(AS_JSON, buf_str(&json)), 200);
	grafana_get("/api/v1/profile_types");
	CHECK_INT(grafana_count("\"type\":\"goroutine:goroutine:count:goroutine:count\""), 1);
	CHECK_INT(grafana_count("\"delta\":false"), 1);
	grafana_stop();
	buf_release(&gz);
	buf_release(&json);
}

TEST(what_is_refused_is_named)
{
	struct buf many = { 0 };

	grafana_start();
	refused("Content-Type: text/plain\r\n", "x", 415,
		"Content-Type must be application/proto or application/json\n");
	refused(AS_JSON "Content-Encoding: br\r\n", "{}", 415,
		"{\"code\":\"unimplemented\",\"message\":\"Content-Encoding \\\"br\\\" is unknown; use "
		"gzip, zstd or identity\"}");
	refused(AS_JSON "Content-Encoding: gzip\r\n", "{}", 400,
		"{\"code\":\"invalid_argument\",\"message\":\"Content-Encoding is gzip, the body is "
		"not\"}");
	refused(AS_PROTO, "\x0a\xff", 400,
		"{\"code\":\"invalid_argument\",\"message\":\"the body is not a PushRequest in "
		"protobuf\"}");
	refused(AS_JSON, "{\"series\":[{\"labels\":[],\"samples\":[{\"rawProfile\":\"\"}]}]}", 400,
		"{\"code\":\"invalid_argument\",\"message\":\"series 0, sample 0: raw_profile is empty\"}");
	CHECK_INT(push(
		AS_JSON, STR("{\"series\":[{\"labels\":[],\"samples\":[{\"rawProfile\":\"Li4u\"}]}]}")),
		400);
	CHECK_INT(grafana_count("series 0, sample 0: "), 1);
	/* Senders repeat what is resource_exhausted. */
	buf_add_cstr(&many, "{\"series\":[{\"samples\":[{}");
	for (int i = 0; i < 10000; i++)
		buf_add_cstr(&many, ",{}");
	buf_add(&many, "]}]}", 5); /* with a NUL */
	refused(AS_JSON, many.ptr, 413,
		"{\"code\":\"invalid_argument\",\"message\":\"10001 profiles in a request, limit "
		"10000\"}");
	refused(AS_JSON, "{}", 200, "{}");
	buf_release(&many);
	grafana_stop();
}

/* All of a request is decoded before any of it is stored. */
TEST(half_a_request_stores_nothing)
{
	struct buf gz = { 0 }, json = { 0 };

	grafana_start();
	profile(&gz, 3, END_S);
	request(&json, LABELS("a"), buf_str(&gz));
	json.len -= strlen("]}");
	buf_add_cstr(&json,
		",{\"labels\":[{\"name\":\"__name__\",\"value\":\"process_cpu\"}],"
		"\"samples\":[{\"rawProfile\":\"Li4u\"}]}]}");
	CHECK_INT(push(AS_JSON, buf_str(&json)), 400);
	CHECK_INT(grafana_count("series 1, sample 0: "), 1);
	check_stored(
		"a", "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}\n");
	grafana_stop();
	buf_release(&gz);
	buf_release(&json);
}
