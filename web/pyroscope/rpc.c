/*
 * Connect's unary calls: decodes the body, calls the method, writes the answer or the error.
 *
 * Refusals of a method of HTTP (405) and of a content type (415) are plain HTTP; gRPC's own, where
 * that was spoken. All others are connect's JSON, whatever the encoding of the request.
 */
#include <zlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/quote.h"
#include "web/pyroscope/json.h"
#include "web/pyroscope/pyroscope.h"
#include "web/router/envelope.h"

#define PREFIX STR("/querier.v1.QuerierService/")
#define TIMEOUT_DIGITS_MAX 10u
#define GRPC_UNIMPLEMENTED "12"

#define REQUEST(name) &epimetheus__pyroscope__##name##__descriptor

/* clang-format off */
const struct pyroscope_method pyroscope_methods[] = {
	{ "ProfileTypes", REQUEST(profile_types_request), pyroscope_profile_types },
	{ "LabelNames", REQUEST(label_names_request), pyroscope_label_names },
	{ "LabelValues", REQUEST(label_values_request), pyroscope_label_values },
	{ "Series", REQUEST(series_request), pyroscope_series },
	{ "SelectSeries", REQUEST(select_series_request), pyroscope_select_series },
	{ "SelectMergeStacktraces", REQUEST(select_merge_stacktraces_request), pyroscope_stacktraces },
	{ "SelectMergeProfile", REQUEST(select_merge_profile_request), pyroscope_profile },
	{ "Diff", REQUEST(diff_request), pyroscope_diff },
	{ "GetProfileStats", REQUEST(get_profile_stats_request), pyroscope_stats },
};
/* clang-format on */
const size_t pyroscope_methods_n = sizeof(pyroscope_methods) / sizeof(pyroscope_methods[0]);

/* ---- what a request is ---- */

/*
 * A client of gRPC or gRPC-Web believes an error only in the protocol's own form, which is an
 * answer of status 200 without a body ("Trailers-Only"). Of any other status it shows just the
 * number. The type must be the one that it sent, and it must not become anything else in a header.
 */
static bool pyroscope_refuse_grpc(const struct http_in *in, struct http_out *out)
{
	static const char *const types[] = { "application/grpc", "application/grpc+proto",
		"application/grpc+json", "application/grpc-web", "application/grpc-web+proto",
		"application/grpc-web+json", "application/grpc-web-text",
		"application/grpc-web-text+proto" };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (!http_type_is(in->content_type, types[i]))
			continue;
		out->content_type = types[i];
		http_add_header(out, "Grpc-Status", STR(GRPC_UNIMPLEMENTED));
		http_add_header(out, "Grpc-Message",
			STR("gRPC and gRPC-Web are not served here: use the Connect protocol "
			    "(" PYROSCOPE_PROTO_TYPE " or " PYROSCOPE_JSON_TYPE ")"));
		return true;
	}
	return false;
}

bool pyroscope_takes_type(const struct http_in *in, struct http_out *out, bool *json)
{
	*json = http_type_is(in->content_type, PYROSCOPE_JSON_TYPE);
	if (*json || http_type_is(in->content_type, PYROSCOPE_PROTO_TYPE))
		return true;
	if (!pyroscope_refuse_grpc(in, out)) {
		http_text(
			out, 415, "Content-Type must be " PYROSCOPE_PROTO_TYPE " or " PYROSCOPE_JSON_TYPE);
		http_add_header(out, "Accept-Post", STR(PYROSCOPE_PROTO_TYPE ", " PYROSCOPE_JSON_TYPE));
	}
	return false;
}

static enum err_code pyroscope_read_headers(struct pyroscope_call *c, struct err *err)
{
	struct str version = c->in->connect_version, timeout = c->in->connect_timeout_ms;
	uint64_t ms;

	if (version.len && !str_is(version, "1"))
		return err_set(
			err, ERR_INVALID, "Connect-Protocol-Version must be \"1\", not %s", QUOTED(version));
	if (!timeout.len)
		return ERR_OK;
	if (timeout.len > TIMEOUT_DIGITS_MAX || !str_to_u64(timeout, &ms))
		return err_set(err, ERR_INVALID,
			"Connect-Timeout-Ms must be a number of at most %u digits, not %s", TIMEOUT_DIGITS_MAX,
			QUOTED(timeout));
	if (ms == 0)
		return err_set(err, ERR_TIMEOUT, "Connect-Timeout-Ms is 0");
	c->timeout_ns = (int64_t)ms * NS_PER_MS;
	return ERR_OK;
}

static enum err_code pyroscope_inflate_members(z_stream *stream, size_t *len, struct err *err)
{
	int rc;

	for (;;) {
		rc = inflate(stream, Z_NO_FLUSH);
		*len = PYROSCOPE_REQUEST_BYTES_MAX + 1 - stream->avail_out;
		if (*len > PYROSCOPE_REQUEST_BYTES_MAX)
			return err_set(err, ERR_LIMIT, "the request inflates to more than %u bytes",
				PYROSCOPE_REQUEST_BYTES_MAX);
		if (rc == Z_STREAM_END && stream->avail_in == 0)
			return ERR_OK;
		if (rc == Z_STREAM_END && inflateReset(stream) == Z_OK)
			continue; /* a further member */
		return err_set(err, ERR_INVALID, "Content-Encoding gzip: %s",
			stream->msg ? stream->msg : "the body is cut short");
	}
}

/* An empty message is a body of gzip with nothing in it. */
static enum err_code pyroscope_gunzip(
	struct arena *a, struct str in, struct str *out, struct err *err)
{
	z_stream z = { .avail_in = (unsigned)in.len, .avail_out = PYROSCOPE_REQUEST_BYTES_MAX + 1 };
	const unsigned char *at = (const unsigned char *)in.ptr;
	enum err_code rc;

	memcpy(&z.next_in, &at, sizeof(at)); /* zlib's pointer is not const; it only reads */
	out->ptr = (const char *)(z.next_out = arena_alloc_raw(a, z.avail_out, 1));
	if (!z.next_out)
		return arena_fail(a, "request", err);
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return err_nomem(err, "request");
	rc = pyroscope_inflate_members(&z, &out->len, err);
	inflateEnd(&z);
	return rc;
}

static enum err_code pyroscope_read_body(struct http_in *in, struct str *out, struct err *err)
{
	struct str encoding = str_trim(in->content_encoding);

	*out = in->body;
	if (out->len > PYROSCOPE_REQUEST_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the request is %zu bytes, limit %u", out->len,
			PYROSCOPE_REQUEST_BYTES_MAX);
	if (!encoding.len || http_type_is(encoding, "identity"))
		return ERR_OK;
	if (!http_type_is(encoding, "gzip"))
		return err_set(err, ERR_UNSUPPORTED, "Content-Encoding %s is unknown; use gzip or identity",
			QUOTED(encoding));
	if (!out->len)
		return ERR_OK;
	return pyroscope_gunzip(&in->arena, in->body, out, err);
}

static void *arena_alloc_for(void *ctx, size_t size)
{
	return arena_alloc(ctx, size ? size : 1);
}

static void arena_free_for(void *ctx, void *bytes)
{
	(void)ctx;
	(void)bytes;
}

enum err_code pyroscope_decode(struct arena *a, const ProtobufCMessageDescriptor *descriptor,
	bool json, struct str body, ProtobufCMessage **out, struct err *err)
{
	ProtobufCAllocator allocator = { arena_alloc_for, arena_free_for, a };

	if (json)
		return pyroscope_json_read(a, descriptor, body, out, err);
	*out = protobuf_c_message_unpack(descriptor, &allocator, body.len,
		body.len ? (const uint8_t *)body.ptr : (const uint8_t *)"");
	if (!*out)
		return err_set(
			err, ERR_INVALID, "the body is not a %s in protobuf", descriptor->short_name);
	return ERR_OK;
}

enum err_code pyroscope_times(
	int64_t start_ms, int64_t end_ms, int64_t *start_ns, int64_t *end_ns, struct err *err)
{
	const int64_t max = TIME_MAX_NS / NS_PER_MS;

	if (start_ms < 0 || end_ms < 0 || start_ms > max || end_ms > max)
		return err_set(err, ERR_INVALID, "start and end are milliseconds since 1970");
	if (end_ms < start_ms)
		return err_set(err, ERR_INVALID, "end is before start");
	*start_ns = start_ms * NS_PER_MS;
	*end_ns = end_ms * NS_PER_MS;
	return ERR_OK;
}

/* ---- answers ---- */

char *pyroscope_text(struct arena *a, struct str s)
{
	struct buf text = { 0 };
	struct str rest = s;
	uint32_t code;
	char *out;
	size_t n;

	if (str_is_utf8(s) && (!s.len || !memchr(s.ptr, '\0', s.len)))
		return arena_strndup(a, s.len ? s.ptr : "", s.len);
	while (rest.len) {
		n = utf8_decode(rest, &code);
		if (n == 0 || code == 0) {
			buf_add_cstr(&text, "\xef\xbf\xbd");
			n = 1;
		} else {
			buf_add(&text, rest.ptr, n);
		}
		rest.ptr += n;
		rest.len -= n;
	}
	out = buf_failed(&text) ? NULL : arena_strndup(a, text.ptr, text.len);
	buf_release(&text);
	return out;
}

enum err_code pyroscope_answer(
	struct pyroscope_call *c, const ProtobufCMessage *message, struct err *err)
{
	struct buf *body = &c->out->body;
	struct json j;
	size_t size;

	if (c->json) {
		c->out->content_type = PYROSCOPE_JSON_TYPE;
		json_init(&j, body);
		pyroscope_json_write(&j, message);
	} else {
		c->out->content_type = PYROSCOPE_PROTO_TYPE;
		size = protobuf_c_message_get_packed_size(message);
		if (buf_reserve(body, size))
			body->len += protobuf_c_message_pack(message, (uint8_t *)body->ptr + body->len);
	}
	if (buf_failed(body))
		return err_nomem(err, "answer");
	return ERR_OK;
}

void pyroscope_answer_wire(struct pyroscope_call *c, struct str wire)
{
	c->out->content_type = PYROSCOPE_PROTO_TYPE;
	buf_add_str(&c->out->body, wire);
}

/* ---- the route ---- */

static const struct pyroscope_method *pyroscope_find_method(struct str name)
{
	for (size_t i = 0; i < pyroscope_methods_n; i++)
		if (str_is(name, pyroscope_methods[i].name))
			return &pyroscope_methods[i];
	return NULL;
}

void pyroscope_handle(struct web *w, struct http_in *in, struct http_out *out)
{
	struct str name = { in->path.ptr + PREFIX.len, in->path.len - PREFIX.len };
	const struct pyroscope_method *m = pyroscope_find_method(name);
	struct pyroscope_call c = { .w = w, .in = in, .out = out };
	ProtobufCMessage *request;
	struct str body;
	struct err err;
	enum err_code rc;

	if (!pyroscope_takes_type(in, out, &c.json))
		return;
	if (!m) {
		connect_error(out, 404, "unimplemented", "method %s is not served here", QUOTED(name));
		return;
	}
	if (!(rc = pyroscope_read_headers(&c, &err)) && !(rc = pyroscope_read_body(in, &body, &err)) &&
		!(rc = pyroscope_decode(&in->arena, m->request, c.json, body, &request, &err)))
		rc = m->fn(&c, request, &err);
	if (rc)
		connect_fail(out, rc, &err);
}
