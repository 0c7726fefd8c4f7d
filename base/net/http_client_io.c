/* A connection's socket, and its bytes: plain, TLS, or TLS through the TLS of a proxy. Nothing here
 * ends one. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <openssl/err.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/net/http_client_internal.h"

/* errno_value is that of the call that gave rc. *broken: the system failed, not TLS. */
static enum io_status http_client_io_ssl_status(
	struct http_client_conn *c, int rc, int errno_value, struct buf *why, bool *broken)
{
	int e = SSL_get_error(c->ssl, rc);

	*broken = e == SSL_ERROR_SYSCALL;
	switch (e) {
	case SSL_ERROR_WANT_READ:
		return IO_WANT_READ;
	case SSL_ERROR_WANT_WRITE:
		return IO_WANT_WRITE;
	case SSL_ERROR_ZERO_RETURN:
		return IO_EOF;
	default:
		tls_describe(c->ssl, e, errno_value, c->tls_name, why);
		return IO_FAILED;
	}
}

enum io_status conn_read(
	struct http_client_conn *c, void *bytes, size_t n, size_t *done, struct buf *why)
{
	ssize_t got;
	bool broken;
	int rc;

	if (c->ssl) {
		ERR_clear_error();
		errno = 0;
		rc = SSL_read(c->ssl, bytes, (int)n);
		*done = rc > 0 ? (size_t)rc : 0;
		return rc > 0 ? IO_DONE : http_client_io_ssl_status(c, rc, errno, why, &broken);
	}
	got = recv(c->fd, bytes, n, 0);
	*done = got > 0 ? (size_t)got : 0;
	if (got > 0)
		return IO_DONE;
	if (got == 0)
		return IO_EOF;
	if (errno == EAGAIN || errno == EINTR)
		return IO_WANT_READ;
	buf_add_cstr(why, strerror(errno));
	return IO_FAILED;
}

enum io_status conn_write(
	struct http_client_conn *c, struct str out, size_t *done, struct buf *why, bool *broken)
{
	ssize_t sent;
	int rc;

	*done = 0;
	*broken = false;
	if (c->ssl) {
		ERR_clear_error();
		errno = 0;
		rc = SSL_write(c->ssl, out.ptr, out.len > (1u << 20) ? 1 << 20 : (int)out.len);
		*done = rc > 0 ? (size_t)rc : 0;
		return rc > 0 ? IO_DONE : http_client_io_ssl_status(c, rc, errno, why, broken);
	}
	sent = send(c->fd, out.ptr, out.len, MSG_NOSIGNAL);
	if (sent >= 0) {
		*done = (size_t)sent;
		return IO_DONE;
	}
	if (errno == EAGAIN || errno == EINTR)
		return IO_WANT_WRITE;
	buf_add_cstr(why, strerror(errno));
	*broken = true;
	return IO_FAILED;
}

enum io_status conn_handshake(struct http_client_conn *c, struct buf *why)
{
	bool broken;
	int rc;

	ERR_clear_error();
	errno = 0;
	rc = SSL_do_handshake(c->ssl);
	return rc == 1 ? IO_DONE : http_client_io_ssl_status(c, rc, errno, why, &broken);
}

#define IDLE_READS_MAX 16 /* a server that sends so much unasked is of no use */

/* Answers what HTTP/2 says between requests, such as PING. */
static bool http_client_io_is_alive_h2(struct http_client_conn *c)
{
	struct buf why = { 0 };
	enum io_status s = IO_DONE;
	struct str in = { (const char *)c->client->scratch, 0 };

	for (int i = 0; i < IDLE_READS_MAX && s == IO_DONE; i++) {
		s = conn_read(c, c->client->scratch, sizeof(c->client->scratch), &in.len, &why);
		if (s == IO_DONE && http2_feed(c, in, &(struct err){ 0 }))
			break;
	}
	buf_release(&why);
	return s == IO_WANT_READ && http2_park(c);
}

bool conn_is_alive(struct http_client_conn *c)
{
	char byte;
	int rc;

	if (c->h2)
		return http_client_io_is_alive_h2(c);
	/* HTTP/1.1 has nothing to say: bytes or an end make it useless */
	if (c->ssl) { /* a late session ticket is no byte of an answer */
		ERR_clear_error();
		rc = SSL_peek(c->ssl, &byte, 1);
		return rc <= 0 && SSL_get_error(c->ssl, rc) == SSL_ERROR_WANT_READ;
	}
	rc = (int)recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return rc < 0 && (errno == EAGAIN || errno == EINTR);
}

/* ---- opening ---- */

static void http_client_io_address_text(struct http_client_conn *c)
{
	struct http_address *a = &c->addresses[c->address_i];
	char ip[INET6_ADDRSTRLEN] = "";
	uint16_t port = c->req->proxy.kind ? c->req->proxy.port : c->req->url.port;

	c->address = c->address_text;
	if (request_is_local(c->req)) {
		c->address = arena_printf(&c->arena, "unix://%s", c->req->unix_path.ptr);
		if (!c->address)
			c->address = "unix socket";
		return;
	}
	if (a->sa.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a->sa.in6.sin6_addr, ip, sizeof(ip));
		snprintf(c->address_text, sizeof(c->address_text), "[%s]:%u", ip, port);
		a->sa.in6.sin6_port = htons(port);
	} else {
		inet_ntop(AF_INET, &a->sa.in.sin_addr, ip, sizeof(ip));
		snprintf(c->address_text, sizeof(c->address_text), "%s:%u", ip, port);
		a->sa.in.sin_port = htons(port);
	}
}

int conn_connect(struct http_client_conn *c)
{
	struct http_address *a = &c->addresses[c->address_i];
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const struct sockaddr *to = &a->sa.any;
	socklen_t len = a->len;

	http_client_io_address_text(c);
	if (request_is_local(c->req)) {
		assert(c->req->unix_path.len < sizeof(un.sun_path));
		memcpy(un.sun_path, c->req->unix_path.ptr, c->req->unix_path.len);
		to = (const struct sockaddr *)&un;
		len = sizeof(un);
	}
	c->fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return errno;
	if (connect(c->fd, to, len) == 0 || errno == EINPROGRESS)
		return conn_watch(c, EV_WRITE) ? 0 : ENOMEM;
	return errno;
}

const char *conn_problem(const struct http_client_conn *c, int errno_value)
{
	struct stat st;

	if (!request_is_local(c->req))
		return strerror(errno_value);
	if (errno_value == EAGAIN)
		return "too many clients wait for it";
	if (errno_value == ECONNREFUSED && stat(c->req->unix_path.ptr, &st) == 0 &&
		!S_ISSOCK(st.st_mode))
		return "not a socket";
	return strerror(errno_value);
}
