#include "web/mcp/revision.h"

#include "base/quote.h"
#include "base/version.h"

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"

/* The newest first; all but the first begin with `initialize`. */
static const char *const revisions[] = { REVISION_MODERN, "2025-11-25", "2025-06-18" };
#define REVISIONS_N (sizeof(revisions) / sizeof(revisions[0]))

static bool revision_is_older(struct str name)
{
	for (size_t i = 1; i < REVISIONS_N; i++)
		if (str_is(name, revisions[i]))
			return true;
	return false;
}

static bool revision_is_once(const struct mcp_message *m, const struct http_in *in,
	const char *name, struct str *value, struct http_out *out)
{
	size_t times = 0;

	*value = http_kept_header(in, str_of(name), &times);
	if (times > 1)
		message_fail(m, out, MESSAGE_HEADER, "the header %s is repeated", name);
	return times <= 1;
}

/* The value of a header must be that of the body. */
static bool revision_header_says(const struct mcp_message *m, const struct http_in *in,
	const char *name, struct str want, struct http_out *out)
{
	struct str value;

	if (!revision_is_once(m, in, name, &value, out))
		return false;
	if (str_eq(value, want))
		return true;
	message_fail(m, out, MESSAGE_HEADER, "the header %s is %s, and the body says %s", name,
		value.len ? QUOTED(value) : "missing", QUOTED(want));
	return false;
}

static bool revision_admit_modern(
	const struct mcp_message *m, const json_t *meta, const struct http_in *in, struct http_out *out)
{
	const json_t *version = json_object_get(meta, META_VERSION);

	if (!json_is_string(version) || !json_object_get(meta, META_CAPABILITIES)) {
		message_fail(m, out, MESSAGE_PARAMS,
			"params._meta of revision " REVISION_MODERN " needs \"" META_VERSION
			"\", a string, and \"" META_CAPABILITIES "\"");
		return false;
	}
	if (!revision_header_says(m, in, "MCP-Protocol-Version", message_str(version), out) ||
		!revision_header_says(m, in, "Mcp-Method", m->method, out) ||
		(str_is(m->method, "tools/call") && json_object_get(m->params, "name") &&
			!revision_header_says(
				m, in, "Mcp-Name", message_str(json_object_get(m->params, "name")), out)))
		return false;
	if (str_is(message_str(version), REVISION_MODERN))
		return true;
	message_fail_version(m, out, message_str(version));
	return false;
}

bool revision_admit(struct mcp_message *m, const struct http_in *in, struct http_out *out)
{
	const json_t *meta = json_object_get(m->params, "_meta");
	struct str version;

	m->modern = json_object_get(meta, META_VERSION) || str_is(m->method, "server/discover");
	if (!revision_is_once(m, in, "MCP-Protocol-Version", &version, out))
		return false;
	m->modern |= str_is(version, REVISION_MODERN);
	if (m->modern && m->id)
		return revision_admit_modern(m, meta, in, out);
	if (!version.len || revision_is_older(version) || str_is(version, REVISION_MODERN) ||
		str_is(m->method, "initialize"))
		return true;
	message_fail_version(m, out, version);
	return false;
}

const char *revision_agree(const struct mcp_message *m)
{
	struct str asked = message_str(json_object_get(m->params, "protocolVersion"));

	for (size_t i = 1; i < REVISIONS_N; i++)
		if (str_is(asked, revisions[i]))
			return revisions[i];
	return revisions[1];
}

void revision_write_list(struct json *j)
{
	json_array(j);
	for (size_t i = 0; i < REVISIONS_N; i++)
		json_cstr(j, revisions[i]);
	json_array_end(j);
}

void revision_write_server(struct json *j)
{
	json_object(j);
	json_key(j, "name");
	json_cstr(j, "epimetheus");
	json_key(j, "title");
	json_cstr(j, "Epimetheus, continuous profiling");
	json_key(j, "version");
	json_cstr(j, EPI_VERSION);
	json_object_end(j);
}
