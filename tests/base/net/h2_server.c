#include "tests/base/net/h2_server.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#define FRAME_HEAD 9u

static int choose(SSL *ssl, const unsigned char **out, unsigned char *n, const unsigned char *in,
	unsigned in_n, void *ctx)
{
	static const unsigned char want[] = "\x02h2";
	unsigned char *chosen;

	if (SSL_select_next_proto(&chosen, n, want, 3, in, in_n) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

void h2_offer(SSL_CTX *tls)
{
	SSL_CTX_set_alpn_select_cb(tls, choose, NULL);
}

/* ---- a server ---- */

struct stream {
	struct stream *next;
	struct buf head, body;
	size_t sent;
};

struct server_session {
	struct peer *peer;
	struct stream *streams;
};

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
	struct server_session *all = ctx;
	struct stream *s = frame->headers.cat == NGHTTP2_HCAT_REQUEST ? calloc(1, sizeof(*s)) : NULL;

	if (s) {
		nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, s);
		s->next = all->streams;
		all->streams = s;
	}
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *ctx)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	buf_printf(&s->head, "%.*s: %.*s\n", (int)name_n, (const char *)name, (int)value_n,
		(const char *)value);
	return 0;
}

static int on_data(
	nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t n, void *ctx)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, id);

	buf_add(&s->body, data, n);
	return 0;
}

static void keep(struct peer *p, const struct stream *s)
{
	mutex_lock(&p->server->lock);
	buf_clear(&p->server->last);
	buf_add_str(&p->server->last, buf_str(&s->head));
	buf_add_char(&p->server->last, '\n');
	buf_add_str(&p->server->last, buf_str(&s->body));
	mutex_unlock(&p->server->lock);
	atomic_fetch_add(&p->server->requests, 1);
}

static bool asks(const struct stream *s, const char *path)
{
	char line[64];

	snprintf(line, sizeof(line), ":path: %s\n", path);
	return str_find(buf_str(&s->head), str_of(line)) >= 0;
}

static nghttp2_nv field(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
		strlen(value), NGHTTP2_NV_FLAG_NONE };
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t n,
	uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
	struct stream *s = source->ptr;
	const nghttp2_nv trailer = field("x-checked", "yes");

	if (n > s->body.len - s->sent)
		n = s->body.len - s->sent;
	memcpy(to, s->body.ptr + s->sent, n);
	s->sent += n;
	if (s->sent < s->body.len)
		return (ssize_t)n;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (asks(s, "/trailers")) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		nghttp2_submit_trailer(session, id, &trailer, 1);
	}
	return (ssize_t)n;
}

static void answer(nghttp2_session *session, int32_t id, struct stream *s)
{
	const nghttp2_nv early[] = { field(":status", "103"), field("x-early", "1") };
	const nghttp2_nv to[] = { field(":status", "302"), field("location", "/there") };
	const nghttp2_nv ok[] = { field(":status", "200"), field("content-type", "text/plain") };
	nghttp2_data_provider body = { .source.ptr = s, .read_callback = read_body };

	if (asks(s, "/refuse")) {
		nghttp2_submit_rst_stream(session, 0, id, NGHTTP2_REFUSED_STREAM);
		return;
	}
	if (asks(s, "/to")) {
		nghttp2_submit_response(session, id, to, 2, NULL);
		return;
	}
	if (asks(s, "/early"))
		nghttp2_submit_headers(session, 0, id, NULL, early, 2, NULL);
	if (!asks(s, "/echo")) {
		buf_clear(&s->body);
		buf_add_cstr(&s->body, "ok");
	}
	nghttp2_submit_response(session, id, ok, 2,
		str_has_prefix(buf_str(&s->head), STR(":method: HEAD\n")) ? NULL : &body);
	if (asks(s, "/last"))
		nghttp2_submit_goaway(session, 0, id, NGHTTP2_NO_ERROR, NULL, 0);
	if (asks(s, "/ping"))
		nghttp2_submit_ping(session, 0, NULL);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	struct peer *p = ((struct server_session *)ctx)->peer;

	if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK))
		atomic_fetch_add(&p->server->pongs, 1);
	if (s && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
		(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
		keep(p, s);
		answer(session, frame->hd.stream_id, s);
	}
	return 0;
}

static bool flush(struct peer *p, nghttp2_session *session)
{
	const uint8_t *bytes;
	ssize_t n;

	while ((n = nghttp2_session_mem_send(session, &bytes)) > 0)
		if (!peer_write(p, (struct str){ (const char *)bytes, (size_t)n }))
			return false;
	return n == 0;
}

void h2_script(struct peer *p, void *ctx)
{
	struct server_session all = { .peer = p };
	nghttp2_session_callbacks *calls;
	nghttp2_session *session;
	uint8_t bytes[16384];
	struct stream *s;
	ssize_t n;

	if (nghttp2_session_callbacks_new(&calls))
		abort();
	nghttp2_session_callbacks_set_on_begin_headers_callback(calls, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
	if (nghttp2_session_server_new(&session, calls, &all) ||
		nghttp2_submit_settings(session, 0, NULL, 0))
		abort();
	nghttp2_session_callbacks_del(calls);
	while (flush(p, session) && (n = peer_recv(p, bytes, sizeof(bytes))) > 0)
		if (nghttp2_session_mem_recv(session, bytes, (size_t)n) < 0)
			break;
	nghttp2_session_del(session);
	while ((s = all.streams)) {
		all.streams = s->next;
		buf_release(&s->head);
		buf_release(&s->body);
		free(s);
	}
}

/* ---- any bytes ---- */

/* Until a frame HEADERS of the client is whole. */
static bool read_head(struct peer *p)
{
	struct buf in = { 0 };
	unsigned char bytes[4096];
	size_t at = 24, n; /* behind the preface */
	bool found = false;
	ssize_t got;

	while (!found && (got = peer_recv(p, bytes, sizeof(bytes))) > 0) {
		buf_add(&in, bytes, (size_t)got);
		while (!found && in.len >= at + FRAME_HEAD) {
			const unsigned char *head = (const unsigned char *)in.ptr + at;

			n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
			if (in.len < at + FRAME_HEAD + n)
				break;
			found = head[3] == NGHTTP2_HEADERS;
			at += FRAME_HEAD + n;
		}
	}
	buf_release(&in);
	return found;
}

void h2_script_bytes(struct peer *p, void *ctx)
{
	const struct h2_bytes *b = ctx;
	bool ok = read_head(p) && peer_write(p, b->once);
	char byte;

	for (unsigned i = 0; ok && i < b->times; i++)
		ok = peer_write(p, b->again);
	while (ok && b->stays && peer_recv(p, &byte, 1) > 0)
		;
}
