#include "web/mcp/message.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/quote.h"
#include "web/mcp/mcp.h"
#include "web/mcp/revision.h"

#define TEXT_BYTES_MAX 512u

struct str message_str(const json_t *value)
{
	return json_is_string(value) ?
		(struct str){ json_string_value(value), json_string_length(value) } :
		STR("");
}

/* ---- answers ---- */

static void message_write_id(const struct mcp_message *m, struct json *j)
{
	json_key(j, "id");
	if (m->id && json_is_string(m->id))
		json_str(j, message_str(m->id));
	else if (m->id)
		json_i64(j, json_integer_value(m->id));
	else
		json_null(j);
}

static void message_open(const struct mcp_message *m, struct http_out *out, struct json *j)
{
	buf_clear(&out->body);
	out->content_type = "application/json";
	json_init(j, &out->body);
	json_object(j);
	json_key(j, "jsonrpc");
	json_cstr(j, "2.0");
	message_write_id(m, j);
}

void message_begin(const struct mcp_message *m, struct http_out *out, struct json *j)
{
	message_open(m, out, j);
	json_key(j, "result");
	json_object(j);
	if (!m->modern)
		return;
	json_key(j, "resultType");
	json_cstr(j, "complete");
	json_key(j, "_meta");
	json_object(j);
	json_key(j, REVISION_SERVER_INFO);
	revision_write_server(j);
	json_object_end(j);
}

void message_end(struct json *j)
{
	json_object_end(j);
	json_object_end(j);
}

/* Clients of the older revisions take another status than 200 for the end of the connection. */
static int message_status(const struct mcp_message *m, enum message_code code)
{
	if (!m->modern && m->id)
		return 200;
	return code == MESSAGE_METHOD ? 404 : 400;
}

static void message_begin_error(const struct mcp_message *m, struct http_out *out, struct json *j,
	enum message_code code, const char *text)
{
	out->status = message_status(m, code);
	message_open(m, out, j);
	json_key(j, "error");
	json_object(j);
	json_key(j, "code");
	json_i64(j, code);
	json_key(j, "message");
	json_cstr(j, text);
}

void message_fail(
	const struct mcp_message *m, struct http_out *out, enum message_code code, const char *fmt, ...)
{
	char text[TEXT_BYTES_MAX];
	struct json j;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	message_begin_error(m, out, &j, code, text);
	message_end(&j);
}

void message_fail_version(const struct mcp_message *m, struct http_out *out, struct str requested)
{
	char text[TEXT_BYTES_MAX];
	struct json j;

	snprintf(text, sizeof(text), "revision %s is not served", QUOTED(requested));
	message_begin_error(m, out, &j, MESSAGE_VERSION, text);
	out->status = 400;
	json_key(&j, "data");
	json_object(&j);
	json_key(&j, "supported");
	revision_write_list(&j);
	json_key(&j, "requested");
	json_str(&j, requested);
	json_object_end(&j);
	message_end(&j);
}

/* ---- what comes ---- */

/* jansson's own limit of depth bounds the recursion. */
static bool message_is_deep(const json_t *value, unsigned room)
{
	const json_t *member;
	const char *key;
	size_t i;

	if (!json_is_object(value) && !json_is_array(value))
		return false;
	if (!room)
		return true;
	json_array_foreach (value, i, member) {
		if (message_is_deep(member, room - 1))
			return true;
	}
	/* jansson's iterators take no const, and change nothing. */
	json_object_foreach ((json_t *)(uintptr_t)value, key, member) {
		if (message_is_deep(member, room - 1))
			return true;
	}
	return false;
}

static bool message_parse(struct mcp_message *m, struct str body, struct http_out *out)
{
	json_error_t why;

	if (body.len > MCP_BODY_BYTES_MAX) {
		message_fail(m, out, MESSAGE_INVALID, "the message is %zu bytes, limit %u", body.len,
			MCP_BODY_BYTES_MAX);
		out->status = 413;
		return false;
	}
	m->root = json_loadb(body.len ? body.ptr : "", body.len, JSON_REJECT_DUPLICATES, &why);
	if (!m->root) {
		message_fail(m, out, MESSAGE_PARSE, "the body is not JSON: line %d, column %d: %s",
			why.line, why.column, QUOTED(str_of(why.text)));
		return false;
	}
	return true;
}

static bool message_is_id(const json_t *id)
{
	return json_is_string(id) || json_is_integer(id);
}

bool message_read(struct mcp_message *m, struct str body, struct http_out *out)
{
	json_t *id;

	*m = (struct mcp_message){ 0 };
	if (!message_parse(m, body, out))
		return false;
	if (json_is_array(m->root)) {
		message_fail(m, out, MESSAGE_INVALID, "batches are not served: send one message a request");
		return false;
	}
	if (message_is_deep(m->root, MCP_DEPTH_MAX)) {
		message_fail(
			m, out, MESSAGE_INVALID, "the message is more than %u levels deep", MCP_DEPTH_MAX);
		return false;
	}
	id = json_object_get(m->root, "id");
	m->params = json_object_get(m->root, "params");
	m->method = message_str(json_object_get(m->root, "method"));
	if (!str_is(message_str(json_object_get(m->root, "jsonrpc")), "2.0") || !m->method.len ||
		(id && !message_is_id(id)) || (m->params && !json_is_object(m->params))) {
		message_fail(m, out, MESSAGE_INVALID,
			"the body is no request of JSON-RPC 2.0: an object with jsonrpc \"2.0\", method, an id "
			"that is a string or an integer, and params that are an object");
		return false;
	}
	m->id = id;
	return true;
}

void message_release(struct mcp_message *m)
{
	json_decref(m->root);
	m->root = NULL;
}
