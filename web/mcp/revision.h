/*
 * Revisions of the protocol: which one a request has, and whether its headers say what it says.
 *
 * A request of 2026-07-28 names its revision in the header MCP-Protocol-Version and in _meta, and
 * its method and tool in Mcp-Method and Mcp-Name, so that what lies between can read them; a
 * request that contradicts itself is refused. The older revisions agree on one by `initialize`.
 *
 * Threads: values; one request, one thread.
 */
#ifndef WEB_MCP_REVISION_H
#define WEB_MCP_REVISION_H

#include "web/mcp/message.h"

#define REVISION_MODERN "2026-07-28"
#define REVISION_SERVER_INFO "io.modelcontextprotocol/serverInfo"

/* False: *out is the error. Sets m->modern. */
bool revision_admit(struct mcp_message *m, const struct http_in *in, struct http_out *out);
/* Of `initialize`: the one that the client asks for, or else the newest that begins so. */
const char *revision_agree(const struct mcp_message *m);

void revision_write_list(struct json *j); /* an array, the newest first */
void revision_write_server(struct json *j); /* name, title and version */

#endif
