/*
 * HTTP/2 of a connection (RFC 9113), with nghttp2, one request at a time. It is the other coding of
 * the same requests and answers: the request's head is what http_client_send.c composed, and the
 * frames of an answer go to http_client_parse.c as the text that HTTP/1.1 would have. So limits,
 * statuses and bodies are judged in one place. Nothing here reads a socket or ends a connection.
 *
 * nghttp2 checks frames, order, header fields and lengths of bodies. What it lets a server do all
 * day is bounded here: decoded header fields by HTTP_HEADER_BYTES_MAX, and all bytes of an exchange
 * by a multiple of its body's. That ends floods of PING, SETTINGS, CONTINUATION, empty DATA and
 * padding alike.
 */
#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#include "base/net/http_client_internal.h"

#define WINDOW_BYTES (1 << 20)
#define FRAMES_BYTES_MAX (4u * HTTP_HEADER_BYTES_MAX) /* of an exchange, for each of its bodies */
#define FRAMES_PER_BODY 16u
#define TOO_LITTLE "HTTP/2 frames with too little data in them"
#define OUT_BYTES (16u << 10) /* gathered for one write */
#define REQUEST_HEAD_BYTES_MAX (1u << 20)

struct h2_coding {
	nghttp2_session *session;
	struct http_client_conn *conn;
	int32_t stream; /* of the request under way; 0: none */
	struct buf out; /* to be sent */
	size_t out_at; /* of out */
	uint64_t received; /* bytes, since the request or its end */
	size_t head_bytes; /* of header fields and trailers, decoded */
	bool ended; /* the answer is whole */
	bool leaving; /* the server takes no further requests */
	enum err_code rc; /* of a callback that failed; its err is the caller's */
	struct err *err; /* while nghttp2 runs */
	char why[128]; /* nghttp2's last complaint */
};

/* ---- failing ---- */

static int h2_fail(struct h2_coding *h, enum err_code rc)
{
	h->rc = rc;
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static void h2_printable(char *out, size_t size, const char *text, size_t n)
{
	size_t i;

	for (i = 0; i < n && i < size - 1; i++)
		out[i] = text[i] >= ' ' && text[i] < 0x7f ? text[i] : '.';
	out[i] = '\0';
}

/* What nghttp2 refuses; it would tell the server and end the stream or the connection. */
static int h2_malformed(struct h2_coding *h)
{
	return h2_fail(h,
		err_set(
			h->err, ERR_INVALID, "malformed HTTP/2 response%s%s", h->why[0] ? ": " : "", h->why));
}

/* A call of nghttp2 gave `code`. */
static enum err_code h2_problem(struct h2_coding *h, ssize_t code)
{
	if (code == NGHTTP2_ERR_CALLBACK_FAILURE && h->rc)
		return h->rc;
	if (code == NGHTTP2_ERR_FLOODED) /* it wants more answers than it reads */
		return err_set(h->err, ERR_LIMIT, TOO_LITTLE);
	if (code == NGHTTP2_ERR_NOMEM)
		return err_nomem(h->err, "HTTP/2");
	return err_set(h->err, ERR_INVALID, "HTTP/2: %s", nghttp2_strerror((int)code));
}

/* ---- the answer ---- */

static bool h2_is_ours(const struct h2_coding *h, int32_t stream)
{
	return h->stream && stream == h->stream && !h->ended;
}

static int h2_parse(struct h2_coding *h, struct str text)
{
	enum err_code rc = http_parser_feed(&h->conn->req->parser, &text, h->err);

	return rc ? h2_fail(h, rc) : 0;
}

/* ":status: 200" becomes "HTTP/1.1 200 "; trailers are not kept. */
static int h2_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *ctx)
{
	struct str n = { (const char *)name, name_n }, v = { (const char *)value, value_n };
	struct h2_coding *h = ctx;
	bool status = str_is(n, ":status");
	int rc;

	if (!h2_is_ours(h, frame->hd.stream_id))
		return 0;
	h->head_bytes += name_n + value_n;
	if (h->head_bytes > HTTP_HEADER_BYTES_MAX)
		return h2_fail(h,
			err_set(h->err, ERR_LIMIT, "response header is larger than %u bytes",
				HTTP_HEADER_BYTES_MAX));
	if (h->conn->req->parser.state != PARSE_HEAD)
		return 0;
	if (status != !h->conn->req->parser.head.len || (!status && !http_token_valid(n)) ||
		!http_header_value_valid(v))
		return h2_malformed(h);
	if ((rc = h2_parse(h, status ? STR("HTTP/1.1") : n)) ||
			(rc = h2_parse(h, status ? STR(" ") : STR(": "))) || (v.len && (rc = h2_parse(h, v))))
		return rc;
	return h2_parse(h, status ? STR(" \r\n") : STR("\r\n"));
}

static int h2_on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
	size_t n, void *ctx)
{
	struct h2_coding *h = ctx;

	return h2_is_ours(h, stream) ? h2_parse(h, (struct str){ (const char *)data, n }) : 0;
}

static int h2_on_end(struct h2_coding *h)
{
	enum err_code rc = http_parser_eof(&h->conn->req->parser, h->err);

	h->ended = true;
	return rc ? h2_fail(h, rc) : 0;
}

/* The server ends the connection: now, or after the requests that it has taken. */
static int h2_on_goaway(struct h2_coding *h, const nghttp2_goaway *frame)
{
	char more[65];

	h->leaving = true;
	if (!h->stream || h->ended ||
		(frame->error_code == NGHTTP2_NO_ERROR && frame->last_stream_id >= h->stream))
		return 0;
	h2_printable(more, sizeof(more), (const char *)frame->opaque_data, frame->opaque_data_len);
	return h2_fail(h,
		err_set(h->err, ERR_UNAVAILABLE, "HTTP/2: the server ended the connection: %s%s%s",
			nghttp2_http2_strerror(frame->error_code), more[0] ? ": " : "", more));
}

static int h2_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
	struct h2_coding *h = ctx;
	bool ours = h2_is_ours(h, frame->hd.stream_id);
	int rc;

	switch (frame->hd.type) {
	case NGHTTP2_GOAWAY:
		return h2_on_goaway(h, &frame->goaway);
	case NGHTTP2_RST_STREAM:
		if (!ours)
			return 0;
		return h2_fail(h,
			err_set(h->err, ERR_UNAVAILABLE, "HTTP/2: the server reset the stream: %s",
				nghttp2_http2_strerror(frame->rst_stream.error_code)));
	case NGHTTP2_HEADERS:
		if (ours && h->conn->req->parser.state == PARSE_HEAD && (rc = h2_parse(h, STR("\r\n"))))
			return rc;
		break;
	case NGHTTP2_DATA:
		break;
	default:
		return 0;
	}
	return ours && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ? h2_on_end(h) : 0;
}

/* Only nghttp2 itself resets streams and ends the connection here, for what the server did. */
static int h2_on_send(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
	struct h2_coding *h = ctx;

	if (frame->hd.type == NGHTTP2_GOAWAY ||
		(frame->hd.type == NGHTTP2_RST_STREAM && h2_is_ours(h, frame->hd.stream_id)))
		return h2_malformed(h);
	return 0;
}

static int h2_on_not_sent(
	nghttp2_session *session, const nghttp2_frame *frame, int error, void *ctx)
{
	struct h2_coding *h = ctx;

	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	return h2_fail(h,
		err_set(h->err, ERR_UNAVAILABLE, "HTTP/2: the request was not sent: %s",
			nghttp2_strerror(error)));
}

static int h2_on_complaint(
	nghttp2_session *session, int code, const char *text, size_t n, void *ctx)
{
	struct h2_coding *h = ctx;

	h2_printable(h->why, sizeof(h->why), text, n);
	return 0;
}

/* ---- opening ---- */

static int h2_set_up(struct h2_coding *h)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0 }, /* of the server's */
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEADER_BYTES_MAX },
	};
	nghttp2_session_callbacks *calls = NULL;
	nghttp2_option *option = NULL;
	int rc = NGHTTP2_ERR_NOMEM;

	if (nghttp2_session_callbacks_new(&calls) || nghttp2_option_new(&option))
		goto end;
	nghttp2_session_callbacks_set_on_header_callback(calls, h2_on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, h2_on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(calls, h2_on_frame);
	nghttp2_session_callbacks_set_before_frame_send_callback(calls, h2_on_send);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(calls, h2_on_not_sent);
	nghttp2_session_callbacks_set_error_callback2(calls, h2_on_complaint);
	nghttp2_option_set_no_closed_streams(option, 1);
	nghttp2_option_set_max_send_header_block_length(option, REQUEST_HEAD_BYTES_MAX);
	if ((rc = nghttp2_session_client_new2(&h->session, calls, h, option)) ||
		(rc = nghttp2_submit_settings(
			 h->session, NGHTTP2_FLAG_NONE, settings, sizeof(settings) / sizeof(settings[0]))))
		goto end;
	rc = nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, WINDOW_BYTES);
end:
	nghttp2_session_callbacks_del(calls);
	nghttp2_option_del(option);
	return rc;
}

enum err_code http2_open(struct http_client_conn *c, struct err *err)
{
	struct h2_coding *h = calloc(1, sizeof(*h));

	if (!h)
		return err_nomem(err, "HTTP/2");
	h->conn = c;
	if (h2_set_up(h)) {
		http2_close(h);
		return err_nomem(err, "HTTP/2");
	}
	c->h2 = h;
	return ERR_OK;
}

void http2_close(struct h2_coding *h)
{
	if (!h)
		return;
	nghttp2_session_del(h->session);
	buf_release(&h->out);
	free(h);
}

/* ---- the request ---- */

static ssize_t h2_read_body(nghttp2_session *session, int32_t stream, uint8_t *to, size_t n,
	uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
	struct h2_coding *h = ctx;
	struct http_client_conn *c = h->conn;
	struct str rest;
	enum err_code rc;

	if ((rc = conn_unsent(c, &rest, h->err)))
		return h2_fail(h, rc);
	if (n > rest.len)
		n = rest.len;
	memcpy(to, rest.ptr, n);
	conn_count_sent(c, n);
	if (conn_is_sent(c))
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

/* Fields may be secrets, so the server's table of them gets none. */
static nghttp2_nv h2_field(struct str name, struct str value)
{
	return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name.ptr,
		.namelen = name.len,
		.value = (uint8_t *)(uintptr_t)value.ptr,
		.valuelen = value.len,
		.flags = NGHTTP2_NV_FLAG_NO_INDEX };
}

/* The fields of a head that we composed, behind its first two lines: the request and Host. */
static size_t h2_fields(struct str head, nghttp2_nv *out)
{
	size_t n = 0;

	for (size_t line = 0; head.len; line++) {
		size_t end = (size_t)str_find(head, STR("\r\n"));
		size_t colon = (size_t)str_find(head, STR(": "));

		if (line >= 2 && end) {
			if (out)
				out[n] = h2_field((struct str){ head.ptr, colon },
					(struct str){ head.ptr + colon + 2, end - colon - 2 });
			n++;
		}
		head = (struct str){ head.ptr + end + 2, head.len - end - 2 };
	}
	return n;
}

enum err_code http2_begin(struct http_client_conn *c, struct err *err)
{
	struct h2_coding *h = c->h2;
	struct http_request *r = c->req;
	struct str head = { r->out.ptr, r->head_bytes };
	nghttp2_data_provider body = { .read_callback = h2_read_body };
	nghttp2_nv *v = arena_array(&r->arena, nghttp2_nv, 4 + h2_fields(head, NULL));
	size_t n = 0;

	if (!v)
		return arena_fail(&r->arena, "request", err);
	assert(!h->stream && r->url.tls);
	v[n++] = h2_field(STR(":method"), str_of(r->method));
	v[n++] = h2_field(STR(":scheme"), STR("https"));
	v[n++] = h2_field(STR(":authority"), r->url.authority);
	v[n++] = h2_field(STR(":path"), r->url.target);
	n += h2_fields(head, v + n);
	h->received = 0;
	h->head_bytes = 0;
	h->ended = false;
	h->err = err;
	c->out_at = r->head_bytes; /* the body is read from there */
	h->stream = nghttp2_submit_request(
		h->session, NULL, v, n, conn_is_sent(c) ? NULL : &body, NULL);
	return h->stream < 0 ? h2_problem(h, h->stream) : ERR_OK;
}

/* ---- bytes ---- */

static enum err_code h2_fill(struct h2_coding *h)
{
	const uint8_t *bytes;
	ssize_t n;

	if (h->out_at == h->out.len) {
		buf_clear(&h->out);
		h->out_at = 0;
	}
	while (h->out.len < OUT_BYTES) { /* each turn adds at least a byte */
		if ((n = nghttp2_session_mem_send(h->session, &bytes)) < 0)
			return h2_problem(h, n);
		if (n == 0)
			break;
		buf_add(&h->out, bytes, (size_t)n);
	}
	return buf_failed(&h->out) ? err_nomem(h->err, "HTTP/2") : ERR_OK;
}

enum err_code http2_unsent(struct http_client_conn *c, struct str *out, struct err *err)
{
	struct h2_coding *h = c->h2;
	enum err_code rc;

	h->err = err;
	if (h->out_at == h->out.len && (rc = h2_fill(h)))
		return rc;
	*out = (struct str){ h->out.ptr + h->out_at, h->out.len - h->out_at };
	return ERR_OK;
}

void http2_count_sent(struct http_client_conn *c, size_t n)
{
	assert(n <= c->h2->out.len - c->h2->out_at);
	c->h2->out_at += n;
}

enum err_code http2_feed(struct http_client_conn *c, struct str in, struct err *err)
{
	struct h2_coding *h = c->h2;
	uint64_t body;
	ssize_t n;

	h->err = err;
	h->received += in.len;
	n = nghttp2_session_mem_recv(h->session, (const uint8_t *)in.ptr, in.len);
	if (n < 0)
		return h2_problem(h, n);
	body = h->stream ? c->req->parser.body_bytes : 0;
	if (h->received > FRAMES_BYTES_MAX + FRAMES_PER_BODY * body)
		return err_set(err, ERR_LIMIT, TOO_LITTLE);
	return h2_fill(h); /* what it refuses shows in what it would send */
}

bool http2_is_answered(const struct http_client_conn *c)
{
	return c->h2->ended;
}

bool http2_park(struct http_client_conn *c)
{
	struct h2_coding *h = c->h2;
	struct buf why = { 0 };
	struct str rest = STR("");
	size_t done = 1;
	struct err err;
	bool broken, ok;

	h->stream = 0;
	h->received = 0;
	while ((ok = !http2_unsent(c, &rest, &err)) && rest.len && done) {
		if (conn_write(c, rest, &done, &why, &broken) != IO_DONE)
			done = 0;
		http2_count_sent(c, done);
	}
	buf_release(&why);
	if (!ok || rest.len || h->leaving || !nghttp2_session_want_read(h->session) ||
		!nghttp2_session_check_request_allowed(h->session))
		return false;
	buf_release(&h->out);
	h->out_at = 0;
	return true;
}
