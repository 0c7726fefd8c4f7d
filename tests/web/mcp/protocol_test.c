/* Messages, revisions and headers, over a real server. */
#include <stdio.h>

#include "base/version.h"
#include "tests/check.h"
#include "tests/web/grafana.h"
#include "web/mcp/mcp.h"

#define JSON "Content-Type: application/json\r\n"
#define MODERN JSON "MCP-Protocol-Version: 2026-07-28\r\n"
#define META \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define OPEN "{\"jsonrpc\":\"2.0\",\"id\":1,"
#define ERROR(id, code, text) \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code ",\"message\":\"" text "\"}}"
#define VERSION_ERROR(asked) \
	OPEN "\"error\":{\"code\":-32022,\"message\":\"revision \\\"" asked \
		 "\\\" is not served\",\"data\":{\"supported\":[\"2026-07-28\",\"2025-11-25\"," \
		 "\"2025-06-18\"],\"requested\":\"" asked "\"}}}"
#define SERVER \
	"{\"name\":\"epimetheus\",\"title\":\"Epimetheus, continuous profiling\",\"version\":" \
	"\"" EPI_VERSION "\"}"
#define COMPLETE \
	OPEN "\"result\":{\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/" \
		 "serverInfo\":" SERVER "},"

static void ask(const char *headers, struct str body)
{
	peer_ask(web_port(grafana.web), &grafana.r, "POST /mcp", headers, body);
}

struct exchange {
	const char *headers, *body;
	int status;
	const char *want; /* the answer, or its beginning */
};

static void check_exchanges(const struct exchange *v, size_t n)
{
	grafana_start();
	for (size_t i = 0; i < n; i++) {
		ask(v[i].headers, str_of(v[i].body));
		if (grafana.r.status != v[i].status ||
			!str_has_prefix(buf_str(&grafana.r.body), str_of(v[i].want)))
			CHECK_FAIL("%s\n%s: %d\n" STR_FMT "\nwant %d\n%s", v[i].headers, v[i].body,
				grafana.r.status, STR_ARG(buf_str(&grafana.r.body)), v[i].status, v[i].want);
	}
	grafana_stop();
}

TEST(older_revisions_begin_with_initialize)
{
#define HELLO(version) \
	OPEN "\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"" version \
		 "\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"
#define WELCOME(version) \
	OPEN "\"result\":{\"protocolVersion\":\"" version "\",\"serverInfo\":" SERVER \
		 ",\"capabilities\":{\"tools\":{}},\"instructions\":\""
	static const struct exchange rows[] = {
		{ JSON, HELLO("2025-06-18"), 200, WELCOME("2025-06-18") },
		{ JSON, HELLO("2025-11-25"), 200, WELCOME("2025-11-25") },
		/* One that is not served: the newest that begins so, and the client decides. */
		{ JSON, HELLO("2024-11-05"), 200, WELCOME("2025-11-25") },
		{ JSON, HELLO("2026-07-28"), 200, WELCOME("2025-11-25") },
		{ JSON, OPEN "\"method\":\"initialize\"}", 200, WELCOME("2025-11-25") },
		{ JSON, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", 202, "" },
		{ JSON "MCP-Protocol-Version: 2025-11-25\r\n", OPEN "\"method\":\"ping\"}", 200,
			OPEN "\"result\":{}}" },
		{ JSON "MCP-Protocol-Version: 2025-06-18\r\n",
			"{\"jsonrpc\":\"2.0\",\"id\":\"a\\u00e9\",\"method\":\"tools/list\",\"params\":{}}",
			200,
			"{\"jsonrpc\":\"2.0\",\"id\":\"a\xc3\xa9\",\"result\":{\"tools\":[{\"name\":"
			"\"services\",\"description\":\"" },
		{ JSON, OPEN "\"method\":\"resources/list\"}", 200,
			ERROR("1", "-32601",
				"method \\\"resources/list\\\" is not served; there are tools/list and "
				"tools/call") },
		{ JSON, OPEN "\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"}}", 200,
			ERROR("1", "-32602", "the list of tools has one page, and so no cursor") },
		{ JSON "MCP-Protocol-Version: 1900-01-01\r\n", OPEN "\"method\":\"ping\"}", 400,
			VERSION_ERROR("1900-01-01") },
		{ JSON "MCP-Protocol-Version: 1900-01-01\r\n",
			"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", 400,
			"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32022," },
	};

	check_exchanges(rows, sizeof(rows) / sizeof(rows[0]));
}

TEST(the_newest_revision_is_said_in_each_request)
{
	static const struct exchange rows[] = {
		{ MODERN "Mcp-Method: server/discover\r\n",
			OPEN "\"method\":\"server/discover\",\"params\":{" META "}}", 200,
			COMPLETE "\"supportedVersions\":[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\"],"
					 "\"capabilities\":{\"tools\":{}},\"instructions\":\"" },
		{ MODERN "Mcp-Method: tools/list\r\n",
			OPEN "\"method\":\"tools/list\",\"params\":{" META "}}", 200,
			COMPLETE "\"tools\":[{\"name\":\"services\"," },
		{ MODERN "Mcp-Method: tools/call\r\nMcp-Name: help\r\n",
			OPEN "\"method\":\"tools/call\",\"params\":{\"name\":\"help\",\"arguments\":{\"topic\":"
				 "\"total\"}," META "}}",
			200, COMPLETE "\"content\":[{\"type\":\"text\",\"text\":\"usage: total(profiles)\\n" },
		{ MODERN "Mcp-Method: ping\r\n", OPEN "\"method\":\"ping\",\"params\":{" META "}}", 404,
			ERROR("1", "-32601",
				"method \\\"ping\\\" is not served; there are tools/list and tools/call") },
		{ MODERN "Mcp-Method: initialize\r\n",
			OPEN "\"method\":\"initialize\",\"params\":{" META "}}", 404,
			OPEN "\"error\":{\"code\":-32601," },
		{ MODERN "Mcp-Method: tools/list\r\n", OPEN "\"method\":\"tools/list\"}", 400,
			OPEN
			"\"error\":{\"code\":-32602,\"message\":\"params._meta of revision 2026-07-28 needs" },
		{ MODERN, OPEN "\"method\":\"tools/list\",\"params\":{" META "}}", 400,
			ERROR("1", "-32020",
				"the header Mcp-Method is missing, and the body says \\\"tools/list\\\"") },
		{ JSON "Mcp-Method: tools/list\r\n",
			OPEN "\"method\":\"tools/list\",\"params\":{" META "}}", 400,
			OPEN "\"error\":{\"code\":-32020," },
		{ MODERN "Mcp-Method: tools/call\r\nMcp-Name: top\r\n",
			OPEN "\"method\":\"tools/call\",\"params\":{\"name\":\"help\"," META "}}", 400,
			ERROR("1", "-32020",
				"the header Mcp-Name is \\\"top\\\", and the body says \\\"help\\\"") },
		{ MODERN "Mcp-Method: tools/list\r\nMcp-Method: tools/list\r\n",
			OPEN "\"method\":\"tools/list\",\"params\":{" META "}}", 400,
			ERROR("1", "-32020", "the header Mcp-Method is repeated") },
		{ JSON "MCP-Protocol-Version: 2030-01-01\r\nMcp-Method: tools/list\r\n",
			OPEN "\"method\":\"tools/list\",\"params\":{\"_meta\":{"
				 "\"io.modelcontextprotocol/protocolVersion\":\"2030-01-01\","
				 "\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
			400, VERSION_ERROR("2030-01-01") },
		{ MODERN, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}", 202, "" },
		{ MODERN "Mcp-Method: tools/call\r\nMcp-Name: tpo\r\n",
			OPEN "\"method\":\"tools/call\",\"params\":{\"name\":\"tpo\"," META "}}", 400,
			ERROR("1", "-32602", "there is no tool \\\"tpo\\\"; did you mean \\\"top\\\"?") },
	};

	check_exchanges(rows, sizeof(rows) / sizeof(rows[0]));
}

TEST(what_is_no_message_is_refused)
{
	static const char no_request[] =
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"the body is no "
		"request of JSON-RPC 2.0: ";
	static const struct exchange rows[] = {
		{ JSON, "", 400, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700," },
		{ JSON, "{\"jsonrpc\":", 400,
			"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700," },
		{ JSON, "{\"id\":99999999999999999999999}", 400,
			"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700," },
		{ JSON, "{\"a\":1,\"a\":2}", 400,
			"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700," },
		{ JSON, "[" OPEN "\"method\":\"ping\"}]", 400,
			ERROR("null", "-32600", "batches are not served: send one message a request") },
		{ JSON, "[]", 400, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600," },
		{ JSON, "{\"id\":1,\"method\":\"ping\"}", 400, no_request },
		{ JSON, "{\"jsonrpc\":\"2.0\",\"id\":1}", 400, no_request },
		{ JSON, "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", 400, no_request },
		{ JSON, "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", 400, no_request },
		{ JSON, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", 400,
			no_request },
		{ JSON, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 400, no_request },
		{ "Content-Type: text/plain\r\n", OPEN "\"method\":\"ping\"}", 415,
			"Content-Type must be application/json\n" },
		{ JSON "Accept: text/event-stream\r\n", OPEN "\"method\":\"ping\"}", 406,
			"Accept must have application/json\n" },
		{ JSON "Accept: application/json, text/event-stream\r\n", OPEN "\"method\":\"ping\"}", 200,
			OPEN "\"result\":{}}" },
		{ JSON, OPEN "\"method\":\"tools/call\",\"params\":{\"name\":\"top\",\"arguments\":[]}}",
			200, ERROR("1", "-32602", "params.arguments must be an object") },
	};

	check_exchanges(rows, sizeof(rows) / sizeof(rows[0]));
}

TEST(depth_and_size_have_limits)
{
	struct buf body = { 0 };

	grafana_start();
	for (unsigned depth = MCP_DEPTH_MAX - 3; depth < 1500; depth += 700) {
		buf_clear(&body);
		buf_add_cstr(&body, OPEN "\"method\":\"ping\",\"params\":{\"a\":");
		for (unsigned i = 0; i < depth; i++)
			buf_add_char(&body, '[');
		for (unsigned i = 0; i < depth; i++)
			buf_add_char(&body, ']');
		buf_add_cstr(&body, "}}");
		ask(JSON, buf_str(&body));
		CHECK_INT(grafana.r.status, depth < MCP_DEPTH_MAX ? 200 : 400);
	}
	CHECK_STR(buf_str(&grafana.r.body),
		ERROR("null", "-32600", "the message is more than 32 levels deep"));
	buf_clear(&body);
	buf_add_cstr(&body, OPEN "\"method\":\"ping\",\"params\":{\"a\":\"");
	while (body.len <= MCP_BODY_BYTES_MAX)
		buf_add_char(&body, 'x');
	buf_add_cstr(&body, "\"}}");
	ask(JSON, buf_str(&body));
	CHECK_INT(grafana.r.status, 413);
	buf_release(&body);
	grafana_stop();
}

/* With a Host of its own. */
static int ask_from(const char *host, const char *headers)
{
	const char body[] = OPEN "\"method\":\"ping\"}";
	char request[512];
	struct peer p;

	snprintf(request, sizeof(request),
		"POST /mcp HTTP/1.1\r\nHost: %s\r\n" JSON "Content-Length: %zu\r\n%s\r\n%s", host,
		sizeof(body) - 1, headers, body);
	peer_open(&p, web_port(grafana.web));
	peer_send(&p, str_of(request));
	peer_receive(&p, &grafana.r, false);
	peer_close(&p);
	return grafana.r.status;
}

TEST(pages_of_other_sites_are_refused)
{
	static const struct {
		const char *host, *headers;
		int status;
	} rows[] = {
		{ "anything", "", 200 },
		{ "localhost:7272", "Origin: http://localhost:7272\r\n", 200 },
		{ "127.0.0.1:7272", "Origin: http://127.0.0.1:7272\r\n", 200 },
		{ "localhost:7272", "Origin: http://evil.example\r\n", 403 },
		{ "localhost:7272", "Origin: null\r\n", 403 },
		{ "localhost:7272", "Sec-Fetch-Site: cross-site\r\n", 403 },
		/* A name that was made to point here. */
		{ "evil.example", "Origin: http://evil.example\r\n", 403 },
		{ "evil.example:7272",
			"Origin: http://evil.example:7272\r\nSec-Fetch-Site: same-origin\r\n", 403 },
		/* May read the API, but not this. */
		{ "localhost:7272", "Origin: http://grafana.example\r\n", 403 },
	};

	grafana_start();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (ask_from(rows[i].host, rows[i].headers) != rows[i].status)
			CHECK_FAIL("%s %s: %d", rows[i].host, rows[i].headers, grafana.r.status);
	grafana_stop();
}

TEST(there_are_no_streams_and_no_sessions)
{
	static const char *const requests[] = { "GET /mcp", "DELETE /mcp" };

	grafana_start();
	for (size_t i = 0; i < 2; i++) {
		peer_ask(web_port(grafana.web), &grafana.r, requests[i], "Accept: text/event-stream\r\n",
			STR(""));
		CHECK_INT(grafana.r.status, 405);
		CHECK_STR(response_header(&grafana.r, "Allow"), "POST");
	}
	ask(JSON, STR(OPEN "\"method\":\"ping\"}"));
	CHECK_STR(response_header(&grafana.r, "Mcp-Session-Id"), "");
	grafana_stop();
}

TEST(without_its_flag_there_is_no_mcp)
{
	grafana_start();
	grafana.web->o.enable_mcp = false;
	ask(JSON, STR(OPEN "\"method\":\"ping\"}"));
	CHECK_INT(grafana.r.status, 404);
	CHECK_STR(buf_str(&grafana.r.body), "MCP is disabled: start with --web.enable-mcp\n");
	grafana_stop();
}
