/*
 * fuzz: web
 * Any bytes as a message of the Model Context Protocol, in each of its revisions, to a server with
 * a few profiles: the answer is one JSON object with a result or an error, and text keeps its
 * bound.
 */
#include <assert.h>
#include <jansson.h>

#include "tests/fuzz/small_db.h"
#include "web/mcp/mcp.h"
#include "web/mcp/reply.h"

#define PROFILES 6

static struct web web;

/* Two stacks: main.main, and main.main that calls a function whose name holds any byte. */
static void store_profile(struct arena *a, struct labels labels, int64_t at_s)
{
	const struct str names[] = { STR("main.main"), STR("ns::\n<T>\xff\x1b[2J(\"a\") > b") };
	enum value_kind kinds[] = { KIND_DELTA };
	struct pprof_line line = { .line = 7 };
	struct pprof_function function = { .start_line = 3 };
	struct db_append_stats stats;
	struct pprof_builder *b;
	struct pprof *profile;
	int64_t cost = at_s;
	uint32_t stack[2];
	struct err err;

	require(!pprof_builder_open(a, &b, &err));
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	function.filename = pprof_builder_string(b, STR("a.go"));
	for (uint32_t i = 0; i < 2; i++) {
		function.name = pprof_builder_string(b, names[i]);
		line.function = pprof_builder_function(b, &function);
		stack[1 - i] = pprof_builder_location(
			b, (struct pprof_location){ .address = i + 1, .mapping = PPROF_NONE }, &line, 1);
	}
	pprof_builder_sample(b, stack, 2, NULL, 0, &cost);
	pprof_builder_sample(b, stack + 1, 1, NULL, 0, &cost);
	require(!pprof_builder_finish(b, &profile, &err));
	require(!db_append(db,
		&(struct db_append){ .labels = labels,
			.profile = profile,
			.ts_ns = T0 + at_s * NS_PER_S,
			.interval_ns = 10 * NS_PER_S,
			.kinds = kinds },
		&stats, on_acked, NULL, &err));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct label labels[] = { { { LABEL_NAME, 8 }, { "process_cpu", 11 } },
		{ { "job", 3 }, { "x", 1 } } };
	struct arena a;

	small_db_open((struct engine_options){ .timeout_ns = 2 * NS_PER_S,
		.lookback_ns = 300 * NS_PER_S,
		.concurrency_max = 4,
		.samples_max = 100000,
		.memory_bytes_max = 64u << 20 });
	arena_init(&a, 0);
	for (int64_t i = 1; i <= PROFILES; i++)
		store_profile(&a, (struct labels){ labels, 2 }, 10 * i);
	wait_acked(PROFILES);
	arena_release(&a);
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
