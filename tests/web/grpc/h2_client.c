#include "tests/web/grpc/h2_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define FIELDS_MAX 16

static struct h2_reply *reply_of(nghttp2_session *h2, int32_t stream)
{
	return nghttp2_session_get_stream_user_data(h2, stream);
}

static void copy(char *to, size_t max, const uint8_t *from, size_t n)
{
	n = n < max - 1 ? n : max - 1;
	memcpy(to, from, n);
	to[n] = '\0';
}

static int number(const uint8_t *text, size_t n)
{
	uint64_t v;

	return str_to_u64((struct str){ (const char *)text, n }, &v) ? (int)v : -1;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
	size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *ctx)
{
	struct h2_reply *r = reply_of(h2, frame->hd.stream_id);
	struct str s = { (const char *)name, name_len };

	(void)flags;
	(void)ctx;
	if (!r)
		return 0;
	if (str_is(s, ":status"))
		r->http_status = number(value, value_len);
	else if (str_is(s, "grpc-status"))
		r->status = number(value, value_len);
	else if (str_is(s, "grpc-message"))
		copy(r->message, sizeof(r->message), value, value_len);
	else if (str_is(s, "grpc-status-details-bin"))
		copy(r->details, sizeof(r->details), value, value_len);
	else if (str_is(s, "grpc-accept-encoding"))
		copy(r->accepts, sizeof(r->accepts), value, value_len);
	return 0;
}

static int on_data(
	nghttp2_session *h2, uint8_t flags, int32_t stream, const uint8_t *data, size_t n, void *ctx)
{
	struct h2_reply *r = reply_of(h2, stream);

	(void)flags;
	(void)ctx;
	if (r)
		buf_add(&r->body, data, n);
	return 0;
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
	struct h2_client *c = ctx;

	(void)h2;
	if (frame->hd.type == NGHTTP2_GOAWAY) {
		c->goaway = true;
		c->goaway_code = frame->goaway.error_code;
	}
	if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK))
		c->pings++;
	return 0;
}

static int on_close(nghttp2_session *h2, int32_t stream, uint32_t code, void *ctx)
{
	struct h2_reply *r = reply_of(h2, stream);

	(void)ctx;
	if (r) {
		r->closed = true;
		r->reset = code;
	}
	return 0;
}

static ssize_t read_body(nghttp2_session *h2, int32_t stream, uint8_t *to, size_t max,
	uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
	struct h2_reply *r = source->ptr;
	size_t n = r->to_send.len - r->sent < max ? r->to_send.len - r->sent : max;

	(void)h2;
	(void)stream;
	(void)ctx;
	if (!n && !r->end)
		return NGHTTP2_ERR_DEFERRED;
	if (n)
		memcpy(to, r->to_send.ptr + r->sent, n);
	r->sent += n;
	if (r->end && r->sent == r->to_send.len)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static void shake_hands(struct h2_client *c, const struct h2_tls *tls)
{
	gnutls_datum_t alpn;
	int rc = -1;

	gnutls_certificate_allocate_credentials(&c->credentials);
	if (tls->cert_file &&
		gnutls_certificate_set_x509_key_file(
			c->credentials, tls->cert_file, tls->key_file, GNUTLS_X509_FMT_PEM) < 0)
		c->ended = true;
	gnutls_init(&c->tls, GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT | GNUTLS_NO_SIGNAL);
	gnutls_priority_set_direct(c->tls, "NORMAL", NULL);
	gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, c->credentials);
	if (tls->alpn) {
		alpn = (gnutls_datum_t){ (unsigned char *)(uintptr_t)tls->alpn,
			(unsigned)strlen(tls->alpn) };
		gnutls_alpn_set_protocols(c->tls, &alpn, 1, 0);
	}
	gnutls_transport_set_int(c->tls, c->fd);
	gnutls_handshake_set_timeout(c->tls, H2_TIMEOUT_S * 1000);
	for (int i = 0; i < 100 && rc < 0 && !c->ended; i++) {
		rc = gnutls_handshake(c->tls);
		c->ended = rc < 0 && gnutls_error_is_fatal(rc);
	}
}

void h2_open(struct h2_client *c, unsigned port, const struct h2_tls *tls)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct timeval timeout = { .tv_sec = H2_TIMEOUT_S };
	nghttp2_session_callbacks *calls;

	memset(c, 0, sizeof(*c));
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	c->ended = connect(c->fd, (struct sockaddr *)&to, sizeof(to)) != 0;
	nghttp2_session_callbacks_new(&calls);
	nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
	nghttp2_session_client_new(&c->h2, calls, c);
	nghttp2_session_callbacks_del(calls);
	nghttp2_submit_settings(c->h2, NGHTTP2_FLAG_NONE, NULL, 0);
	if (tls && !c->ended)
		shake_hands(c, tls);
}

void h2_close(struct h2_client *c)
{
	nghttp2_session_del(c->h2);
	if (c->tls)
		gnutls_deinit(c->tls);
	if (c->credentials)
		gnutls_certificate_free_credentials(c->credentials);
	close(c->fd);
	for (unsigned i = 0; i < c->replies_n; i++) {
		buf_release(&c->replies[i].body);
		buf_release(&c->replies[i].to_send);
	}
}

static void set(nghttp2_nv *v, size_t *n, const char *name, const char *value)
{
	size_t i = 0;

	while (i < *n && strcmp((const char *)v[i].name, name) != 0)
		i++;
	v[i] = (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
		strlen(value), NGHTTP2_NV_FLAG_NONE };
	*n += i == *n;
}

struct h2_reply *h2_call(
	struct h2_client *c, const char *path, const char *const *fields, struct str body, bool end)
{
	struct h2_reply *r = &c->replies[c->replies_n++];
	const nghttp2_data_provider from = { { .ptr = r }, read_body };
	nghttp2_nv v[FIELDS_MAX];
	size_t n = 0;

	if (c->replies_n > H2_REPLIES_MAX)
		abort();
	*r = (struct h2_reply){ .status = -1, .end = end };
	buf_add_str(&r->to_send, body);
	set(v, &n, ":method", "POST");
	set(v, &n, ":scheme", c->tls ? "https" : "http");
	set(v, &n, ":path", path);
	set(v, &n, ":authority", "localhost");
	set(v, &n, "content-type", "application/grpc");
	set(v, &n, "te", "trailers");
	for (; fields && fields[0]; fields += 2)
		if (fields[0][0] == '+') /* of no other name: added */
			set(v + n++, &(size_t){ 0 }, fields[0] + 1, fields[1]);
		else
			set(v, &n, fields[0], fields[1]);
	r->stream = nghttp2_submit_request(c->h2, NULL, v, n, &from, r);
	return r;
}

void h2_more(struct h2_client *c, struct h2_reply *r, struct str body, bool end)
{
	buf_add_str(&r->to_send, body);
	r->end = end;
	nghttp2_session_resume_data(c->h2, r->stream);
}

void h2_raw(struct h2_client *c, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n && !c->ended) {
		ssize_t sent = c->tls ? gnutls_record_send(c->tls, at, n) :
								send(c->fd, at, n, MSG_NOSIGNAL);

		if (sent < 0 && !c->tls && errno == EINTR)
			continue;
		if (sent <= 0) {
			c->ended = true;
			return;
		}
		at += sent;
		n -= (size_t)sent;
	}
}

void h2_send(struct h2_client *c)
{
	const uint8_t *bytes;
	ssize_t n;

	while (!c->ended && (n = nghttp2_session_mem_send(c->h2, &bytes)) > 0)
		h2_raw(c, bytes, (size_t)n);
}

bool h2_turn(struct h2_client *c)
{
	uint8_t bytes[16384];
	ssize_t n;

	h2_send(c);
	/* What was sent before the end can still be read. */
	n = c->tls ? gnutls_record_recv(c->tls, bytes, sizeof(bytes)) :
				 recv(c->fd, bytes, sizeof(bytes), 0);
	if (n < 0 && (c->tls ? !gnutls_error_is_fatal((int)n) : errno == EINTR))
		return true; /* also where the process was stopped for a while */
	c->ended = n <= 0 || nghttp2_session_mem_recv(c->h2, bytes, (size_t)n) < 0;
	return !c->ended;
}

void h2_wait(struct h2_client *c, const struct h2_reply *r)
{
	while (!r->closed && h2_turn(c))
		;
}

void h2_message(struct buf *out, unsigned char flag, struct str message)
{
	buf_add_char(out, (char)flag);
	buf_add_u32be(out, (uint32_t)message.len);
	buf_add_str(out, message);
}
