/*
 * Messages of JSON-RPC 2.0: one request or notification is read, one result or error is written.
 *
 * Errors:    message_read writes the error itself.
 * Ownership: a message holds what jansson allocated; message_release frees it. The id of an answer
 *            is the message's.
 * Threads:   values; one request, one thread.
 */
#ifndef WEB_MCP_MESSAGE_H
#define WEB_MCP_MESSAGE_H

#include <jansson.h>

#include "base/json.h"
#include "web/http/http.h"

enum message_code {
	MESSAGE_PARSE = -32700,
	MESSAGE_INVALID = -32600,
	MESSAGE_METHOD = -32601,
	MESSAGE_PARAMS = -32602,
	MESSAGE_HEADER = -32020, /* a header is not what the body says */
	MESSAGE_VERSION = -32022, /* a revision that is not served */
};

struct mcp_message {
	json_t *root;
	json_t *id; /* a string or an integer; NULL: a notification */
	json_t *params; /* an object; NULL: none */
	struct str method;
	bool modern; /* revision 2026-07-28 */
};

/* The text of a string, which may be NULL: empty then. */
struct str message_str(const json_t *value);

/* False: *out is the error. The message is released in either case by message_release. */
bool message_read(struct mcp_message *m, struct str body, struct http_out *out);
void message_release(struct mcp_message *m);

/* {"jsonrpc":"2.0","id":...,"result":{ and what the revision has in each result. */
void message_begin(const struct mcp_message *m, struct http_out *out, struct json *j);
void message_end(struct json *j);

/* Status 400, and 404 of an unknown method; of the older revisions 200 if the id is known. */
void message_fail(const struct mcp_message *m, struct http_out *out, enum message_code code,
	const char *fmt, ...) PRINTF_LIKE(4, 5);
/* MESSAGE_VERSION, with the list of revisions that are served. */
void message_fail_version(const struct mcp_message *m, struct http_out *out, struct str requested);

#endif
