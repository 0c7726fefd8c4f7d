/* The route, and the methods that are no tools. */
#include "web/mcp/mcp.h"

#include "base/quote.h"
#include "web/mcp/revision.h"
#include "web/mcp/tool.h"
#include "web/router/origin.h"

#define LIST_MS 3600000 /* the list of tools is that of the program */

#define INSTRUCTIONS \
	"Profiles of running services: what their code costs (CPU, memory, locks, goroutines), " \
	"where, " \
	"and since when. Begin with services; then top (the most expensive functions) or compare " \
	"(what changed, with a verdict on chance), then function or tree for one place. Profiles are " \
	"named by selectors such as cpu{__service__=\"cart\"}, memory{...}, mutex{...}; help shows " \
	"the language."

static void mcp_write_capabilities(struct json *j)
{
	json_key(j, "capabilities");
	json_object(j);
	json_key(j, "tools");
	json_object(j);
	json_object_end(j);
	json_object_end(j);
	json_key(j, "instructions");
	json_cstr(j, INSTRUCTIONS);
}

static void mcp_write_lifetime(const struct mcp_message *m, struct json *j)
{
	if (!m->modern)
		return;
	json_key(j, "ttlMs");
	json_i64(j, LIST_MS);
	json_key(j, "cacheScope");
	json_cstr(j, "public");
}

static void mcp_initialize(
	struct web *w, struct http_in *in, const struct mcp_message *m, struct http_out *out)
{
	struct json j;

	(void)w;
	(void)in;
	message_begin(m, out, &j);
	json_key(&j, "protocolVersion");
	json_cstr(&j, revision_agree(m));
	json_key(&j, "serverInfo");
	revision_write_server(&j);
	mcp_write_capabilities(&j);
	message_end(&j);
}

static void mcp_discover(
	struct web *w, struct http_in *in, const struct mcp_message *m, struct http_out *out)
{
	struct json j;

	(void)w;
	(void)in;
	message_begin(m, out, &j);
	json_key(&j, "supportedVersions");
	revision_write_list(&j);
	mcp_write_capabilities(&j);
	mcp_write_lifetime(m, &j);
	message_end(&j);
}

static void mcp_ping(
	struct web *w, struct http_in *in, const struct mcp_message *m, struct http_out *out)
{
	struct json j;

	(void)w;
	(void)in;
	message_begin(m, out, &j);
	message_end(&j);
}

static void mcp_list(
	struct web *w, struct http_in *in, const struct mcp_message *m, struct http_out *out)
{
	struct json j;

	(void)w;
	(void)in;
	if (json_object_get(m->params, "cursor")) {
		message_fail(m, out, MESSAGE_PARAMS, "the list of tools has one page, and so no cursor");
		return;
	}
	message_begin(m, out, &j);
	json_key(&j, "tools");
	tools_write(&j);
	mcp_write_lifetime(m, &j);
	message_end(&j);
}

static const struct {
	const char *name;
	bool older, modern; /* revisions that have it */
	void (*fn)(
		struct web *w, struct http_in *in, const struct mcp_message *m, struct http_out *out);
} methods[] = {
	{ "initialize", true, false, mcp_initialize },
	{ "ping", true, false, mcp_ping },
	{ "server/discover", false, true, mcp_discover },
	{ "tools/list", true, true, mcp_list },
	{ "tools/call", true, true, tools_call },
};

static void mcp_answer(
	struct web *w, struct http_in *in, const struct mcp_message *m, struct http_out *out)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (str_is(m->method, methods[i].name) &&
			(m->modern ? methods[i].modern : methods[i].older)) {
			methods[i].fn(w, in, m, out);
			return;
		}
	message_fail(m, out, MESSAGE_METHOD,
		"method %s is not served; there are tools/list and tools/call", QUOTED(m->method));
}

/* ---- HTTP ---- */

/*
 * A name that was made to point here (DNS rebinding) has requests of one origin, and the list of
 * our names is empty where nobody filled it in. So an Origin counts only if it is an address,
 * localhost or a name that the operator gave.
 */
static bool mcp_is_rebound(const struct web *w, const struct http_in *in)
{
	struct str host = in->origin;
	ptrdiff_t at = str_find(host, STR("://"));

	if (!host.len)
		return false;
	if (at >= 0) {
		host.ptr += at + 3;
		host.len -= (size_t)at + 3;
	}
	return !origin_host_known(host, w->o.allowed_hosts, str_of(w->own_origin));
}

bool mcp_admit(struct web *w, struct http_in *in, struct http_out *out)
{
	in->body_bytes_max = MCP_BODY_BYTES_MAX;
	if (!w->o.enable_mcp) {
		http_text(out, 404, "MCP is disabled: start with --web.enable-mcp");
		return false;
	}
	if (!mcp_is_rebound(w, in))
		return true;
	http_text(out, 403,
		"origin %s is not this server's: name its host with --web.allowed-host or "
		"--web.external-url",
		QUOTED(in->origin));
	return false;
}

void mcp_refuse_method(struct web *w, struct http_in *in, struct http_out *out)
{
	(void)w;
	(void)in;
	http_text(out, 405, "Method Not Allowed: MCP is served by POST, without streams and sessions");
	http_add_header(out, "Allow", STR("POST"));
}

static bool mcp_takes(const struct http_in *in, struct http_out *out)
{
	struct str accept = in->accept;

	if (!http_type_is(in->content_type, "application/json")) {
		http_text(out, 415, "Content-Type must be application/json");
		return false;
	}
	if (accept.len &&
		str_find(accept, STR("application/json")) < 0 &&
			str_find(accept, STR("application/*")) < 0 && str_find(accept, STR("*/*")) < 0) {
		http_text(out, 406, "Accept must have application/json");
		return false;
	}
	return true;
}

void mcp_handle(struct web *w, struct http_in *in, struct http_out *out)
{
	struct mcp_message m;

	if (!mcp_takes(in, out))
		return;
	if (message_read(&m, in->body, out) && revision_admit(&m, in, out)) {
		if (m.id)
			mcp_answer(w, in, &m, out);
		else
			out->status = 202; /* a notification: there is nothing to notify */
	}
	message_release(&m);
}
