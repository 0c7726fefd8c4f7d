#include "web/grpc/call.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"

#define AUTHORIZATION_BYTES_MAX 8192u
#define RETRY_S 5u

struct grpc_call *call_open(const struct grpc_server_options *o, int32_t stream)
{
	struct grpc_call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->o = o;
	c->stream = stream;
	c->began_ns = clock_monotonic_ns();
	c->in.body_bytes_max = o->body_bytes_max;
	arena_init(&c->in.arena, HTTP_REQUEST_ARENA_BYTES);
	return c;
}

void call_close(struct grpc_call *c, struct bodies *bodies)
{
	assert(!c->handed);
	body_drop(bodies, &c->body);
	http_user_leave(&c->in.user);
	arena_release(&c->in.arena);
	buf_release(&c->out.body);
	buf_release(&c->answer.message);
	buf_release(&c->answer.body);
	buf_release(&c->sent);
	free(c);
}

/* ---- the head ---- */

const struct grpc_method *grpc_method_find(
	const struct grpc_method *methods, size_t n, struct str path)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(path, methods[i].path))
			return &methods[i];
	return NULL;
}

static void grpc_call_read_path(struct grpc_call *c, struct str path)
{
	c->in.method = HTTP_POST;
	c->is_other_path = true;
	c->method = grpc_method_find(c->o->methods, c->o->methods_n, path);
	c->in.path = c->method ? str_of(c->method->path) : str_dup(&c->in.arena, path);
}

static enum call_coding grpc_coding_of(struct str value)
{
	return str_is(value, "identity") ? CODING_IDENTITY :
		str_is(value, "gzip")        ? CODING_GZIP :
		str_is(value, "zstd")        ? CODING_ZSTD :
									   CODING_UNKNOWN;
}

static void grpc_call_read_authorization(struct grpc_call *c, struct str value)
{
	if (value.len > AUTHORIZATION_BYTES_MAX)
		c->fault = "authorization is longer than 8192 bytes";
	else if (!(c->in.authorization = str_dup(&c->in.arena, value)).ptr)
		c->in.no_memory = true;
}

/* Fields of one meaning; nghttp2 itself refuses a second one of HTTP/2's own. */
static const char *const grpc_once[] = { "authorization", "content-type", "grpc-encoding" };

static void grpc_call_see_field(struct grpc_call *c, struct str name)
{
	for (unsigned i = 0; i < sizeof(grpc_once) / sizeof(grpc_once[0]); i++) {
		if (!str_is(name, grpc_once[i]))
			continue;
		if (c->fields & 1u << i)
			c->repeated = grpc_once[i];
		c->fields |= 1u << i;
	}
}

void call_head(struct grpc_call *c, struct str name, struct str value)
{
	c->head_bytes += name.len + value.len + 32; /* as SETTINGS_MAX_HEADER_LIST_SIZE counts */
	if (c->head_bytes > GRPC_HEAD_BYTES_MAX) {
		c->fault = "the head is longer than 16384 bytes";
		return;
	}
	grpc_call_see_field(c, name);
	if (str_is(name, ":method"))
		c->is_post = str_is(value, "POST");
	else if (str_is(name, ":path"))
		grpc_call_read_path(c, value);
	else if (str_is(name, "content-type"))
		c->is_grpc = http_type_is(value, "application/grpc") ||
			http_type_is(value, "application/grpc+proto");
	else if (str_is(name, "grpc-encoding"))
		c->coding = grpc_coding_of(value);
	else if (str_is(name, "authorization"))
		grpc_call_read_authorization(c, value);
	else if (str_is(name, "user-agent"))
		c->in.user_agent = str_dup(&c->in.arena, value);
	else
		http_keep_header(&c->in, name, value);
}

static bool grpc_call_refuse(
	struct grpc_call *c, int http_status, enum grpc_status status, const char *message)
{
	c->http_status = http_status;
	grpc_fail(&c->answer, status, 0, "%s", message);
	return false;
}

bool call_check_head(struct grpc_call *c)
{
	if (c->fault)
		return grpc_call_refuse(c, 0, GRPC_RESOURCE_EXHAUSTED, c->fault);
	if (c->repeated) {
		grpc_fail(&c->answer, GRPC_INVALID_ARGUMENT, 0, "header %s is repeated", c->repeated);
		return false;
	}
	if (!c->is_post)
		return grpc_call_refuse(c, 405, GRPC_INTERNAL, "the HTTP method of a gRPC call is POST");
	if (!c->is_grpc)
		return grpc_call_refuse(
			c, 415, GRPC_INTERNAL, "this port serves gRPC: content-type must be application/grpc");
	if (!c->method)
		return grpc_call_refuse(
			c, 0, GRPC_UNIMPLEMENTED, "this service or method is not served here");
	if (c->coding == CODING_UNKNOWN)
		return grpc_call_refuse(
			c, 0, GRPC_UNIMPLEMENTED, "grpc-encoding must be identity, gzip or zstd");
	if (!c->in.no_memory)
		return true;
	grpc_fail(&c->answer, GRPC_UNAVAILABLE, RETRY_S, "out of memory");
	return false;
}

/* ---- the message ---- */

static size_t grpc_call_message_bytes(const struct grpc_call *c)
{
	const unsigned char *p = (const unsigned char *)c->body.data.ptr + 1;

	return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

static bool grpc_call_body_refused(struct grpc_call *c)
{
	switch (c->body.refused) {
	case 413:
		grpc_fail(&c->answer, GRPC_RESOURCE_EXHAUSTED, 0, "the message is too large: %zu bytes",
			c->o->body_bytes_max);
		break;
	case 429:
		grpc_fail(&c->answer, GRPC_UNAVAILABLE, RETRY_S,
			"too many messages at once from this address: try again later "
			"(--web.max-body-memory-per-address is %zu bytes)",
			c->o->address_bodies_bytes_max);
		break;
	default:
		grpc_fail(&c->answer, GRPC_UNAVAILABLE, RETRY_S,
			"too many messages at once: try again later "
			"(--web.max-body-memory is %zu bytes)",
			c->o->bodies_bytes_max);
	}
	return false;
}

bool call_check_message(struct grpc_call *c, size_t max)
{
	const struct buf *data = &c->body.data;

	if (c->body.refused)
		return grpc_call_body_refused(c);
	if (buf_failed(data)) {
		grpc_fail(&c->answer, GRPC_UNAVAILABLE, RETRY_S, "out of memory");
		return false;
	}
	if (data->len < GRPC_PREFIX_BYTES)
		return true;
	if ((unsigned char)data->ptr[0] > 1) {
		grpc_fail(&c->answer, GRPC_INVALID_ARGUMENT, 0,
			"the message's prefix begins with %u: 0 and 1 are known", (unsigned char)data->ptr[0]);
		return false;
	}
	if (grpc_call_message_bytes(c) > max) {
		grpc_fail(&c->answer, GRPC_RESOURCE_EXHAUSTED, 0,
			"the message is %zu bytes long, limit %zu", grpc_call_message_bytes(c), max);
		return false;
	}
	if (data->len - GRPC_PREFIX_BYTES > grpc_call_message_bytes(c)) {
		grpc_fail(&c->answer, GRPC_INVALID_ARGUMENT, 0,
			"more bytes than the message's prefix says, %zu: one message per call",
			grpc_call_message_bytes(c));
		return false;
	}
	return true;
}

bool call_take_message(struct grpc_call *c)
{
	static const char *const codings[] = { "", "gzip", "zstd" };
	const struct buf *data = &c->body.data;

	assert(c->whole && c->coding < CODING_UNKNOWN);
	if (data->len < GRPC_PREFIX_BYTES) {
		grpc_fail(&c->answer, GRPC_INVALID_ARGUMENT, 0,
			"the call ends after %zu bytes, before the message's prefix of %u", data->len,
			GRPC_PREFIX_BYTES);
		return false;
	}
	if (data->len - GRPC_PREFIX_BYTES < grpc_call_message_bytes(c)) {
		grpc_fail(&c->answer, GRPC_INVALID_ARGUMENT, 0,
			"the call ends after %zu of %zu bytes of its message", data->len - GRPC_PREFIX_BYTES,
			grpc_call_message_bytes(c));
		return false;
	}
	if (data->ptr[0] && c->coding == CODING_IDENTITY) {
		grpc_fail(&c->answer, GRPC_INTERNAL, 0,
			"the message is marked as compressed, but grpc-encoding is missing");
		return false;
	}
	c->in.body = (struct str){ data->ptr + GRPC_PREFIX_BYTES, data->len - GRPC_PREFIX_BYTES };
	c->in.content_encoding = str_of(data->ptr[0] ? codings[c->coding] : "");
	c->in.content_type = STR("application/grpc");
	return true;
}

/* ---- workers ---- */

void call_refused(struct grpc_call *c)
{
	struct str why = str_trim(buf_str(&c->out.body));
	enum grpc_status status = c->out.status == 401 ? GRPC_UNAUTHENTICATED :
		c->out.status == 403                       ? GRPC_PERMISSION_DENIED :
													 GRPC_UNAVAILABLE;

	grpc_fail(&c->answer, status, status == GRPC_UNAVAILABLE ? 1 : 0, STR_FMT, STR_ARG(why));
}

/* An answer is made of many buffers. If one of them failed, the answer is wrong and is replaced. */
static void grpc_call_run_method(struct grpc_call *c)
{
	uint64_t failures = buf_failures();

	c->ran = true;
	c->method->fn(c->o->ctx, &c->in, &c->answer);
	if (buf_failures() == failures)
		return;
	buf_release(&c->answer.body);
	buf_release(&c->answer.message);
	grpc_fail(&c->answer, GRPC_UNAVAILABLE, RETRY_S, "out of memory");
}

void call_run(struct grpc_call *c)
{
	assert(c->handed);
	if (c->state == CALL_ADMITTING) {
		c->out.headers_n = 0;
		buf_clear(&c->out.body);
		c->admission = c->o->admit(c->o->ctx, &c->in, &c->out, true);
	} else {
		grpc_call_run_method(c);
	}
}
