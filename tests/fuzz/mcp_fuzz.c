/*
 * fuzz: web
 * Any bytes as a message of the Model Context Protocol, in each of its revisions, to a server with
 * one profile: the answer is one JSON object with a result or an error, and text keeps its bound.
 */
#include <assert.h>
#include <jansson.h>

#include "tests/fuzz/small_db.h"
#include "web/mcp/mcp.h"
#include "web/mcp/reply.h"

static struct web web;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	small_db_open((struct engine_options){ .timeout_ns = 2 * NS_PER_S,
		.lookback_ns = 300 * NS_PER_S,
		.concurrency_max = 4,
		.samples_max = 100000,
		.memory_bytes_max = 64u << 20 });
	web.o.db = db;
	web.o.engine = engine;
	web.o.enable_mcp = true;
	return 0;
}

static void check_text(const json_t *result)
{
	const json_t *content = json_object_get(result, "content");
	const json_t *text = json_object_get(json_array_get(content, 0), "text");

	assert(!content || (json_is_string(text) && json_string_length(text) <= REPLY_BYTES_MAX));
	assert(!content || json_is_object(json_object_get(result, "structuredContent")));
}

static void check_answer(const struct http_out *out)
{
	json_t *answer = json_loadb(
		out->body.ptr ? out->body.ptr : "", out->body.len, JSON_ALLOW_NUL, NULL);

	if (out->status == 202) {
		assert(!out->body.len);
		return;
	}
	assert(answer && json_is_object(answer));
	assert(!strcmp(json_string_value(json_object_get(answer, "jsonrpc")), "2.0"));
	assert(!json_object_get(answer, "result") != !json_object_get(answer, "error"));
	check_text(json_object_get(answer, "result"));
	json_decref(answer);
}

/* The first byte says the header of the revision, and whether method and name have headers. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct str revisions[] = { { "", 0 }, { "2025-06-18", 10 }, { "2025-11-25", 10 },
		{ "2026-07-28", 10 }, { "1900-01-01", 10 } };
	struct http_in in = { .method = HTTP_POST, .content_type = STR("application/json") };
	struct http_out out = { .status = 200 };

	if (!size)
		return 0;
	arena_init(&in.arena, HTTP_REQUEST_ARENA_BYTES);
	in.body = (struct str){ (const char *)data + 1, size - 1 };
	if (revisions[data[0] % 5].len)
		http_keep_header(&in, STR("MCP-Protocol-Version"), revisions[data[0] % 5]);
	if (data[0] & 64)
		http_keep_header(&in, STR("Mcp-Method"), STR("tools/call"));
	if (data[0] & 128)
		http_keep_header(&in, STR("Mcp-Name"), STR("query"));
	mcp_handle(&web, &in, &out);
	assert(!buf_failed(&out.body));
	check_answer(&out);
	buf_release(&out.body);
	arena_release(&in.arena);
	return 0;
}
