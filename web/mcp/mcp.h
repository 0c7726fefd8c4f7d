/*
 * MCP: the Model Context Protocol, by which assistants ask this server about profiles.
 *
 * One request of JSON-RPC comes as one POST, and its answer is the response; nothing is kept from
 * one to the next. Revision 2026-07-28 says in each request which revision it has; clients of
 * 2025-11-25 and 2025-06-18 begin with `initialize`. The tools only read, with the rights of the
 * user who asks.
 *
 * Errors:    what is wrong with the message is an error of JSON-RPC; what a tool cannot do is its
 *            answer, with isError, so that the assistant reads what would do.
 * Threads:   workers; any number at once.
 * Source:    https://modelcontextprotocol.io/specification
 */
#ifndef WEB_MCP_MCP_H
#define WEB_MCP_MCP_H

#include "web/router/router.h"

#define MCP_BODY_BYTES_MAX (64u << 10)
#define MCP_DEPTH_MAX 32u /* of a message's objects and arrays */

/* 404 without --web.enable-mcp, 403 to pages that are not this server's. */
route_admit_fn mcp_admit;
route_fn mcp_handle;
/* GET, DELETE: there are no streams and no sessions. */
route_fn mcp_refuse_method;

#endif
