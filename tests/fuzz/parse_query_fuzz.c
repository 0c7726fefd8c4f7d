/*
 * fuzz: web
 * Any text as a query of parse_query and format_query: the answer is JSON, however deep the tree,
 * and says the same of both: either it is a query or what is wrong with it.
 */
#include <assert.h>
#include <jansson.h>

#include "tests/fuzz/fuzz.h"
#include "web/api/handlers.h"

typedef void (*handler)(struct web *w, struct http_in *in, struct http_out *out);

/* True: it is a query. */
static bool ask(handler fn, struct str text)
{
	struct http_param param = { STR("query"), text };
	struct http_in in = { .method = HTTP_GET, .params = &param, .params_n = 1 };
	struct http_out out = { .status = 200 };
	const char *status;
	json_t *answer;
	bool ok;

	arena_init(&in.arena, HTTP_REQUEST_ARENA_BYTES);
	fn(NULL, &in, &out);
	assert(!buf_failed(&out.body));
	answer = json_loadb(out.body.ptr, out.body.len, JSON_ALLOW_NUL, NULL);
	assert(answer);
	status = json_string_value(json_object_get(answer, "status"));
	ok = !strcmp(status, "success");
	assert(ok ? out.status == 200 : out.status == 400 || out.status == 422);
	assert(!ok == !json_object_get(answer, "data"));
	assert(ok == !json_object_get(answer, "error"));
	json_decref(answer);
	buf_release(&out.body);
	arena_release(&in.arena);
	return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };

	assert(ask(api_parse_query, text) == ask(api_format_query, text));
	return 0;
}
