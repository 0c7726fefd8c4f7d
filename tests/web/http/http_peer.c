#include "tests/web/http/http_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

void peer_open_from(struct peer *p, unsigned n, unsigned port)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct timeval timeout = { .tv_sec = PEER_TIMEOUT_S };

	*p = (struct peer){ 0 };
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + n);
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(p->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	p->dead = bind(p->fd, (struct sockaddr *)&from, sizeof(from)) != 0 ||
		connect(p->fd, (struct sockaddr *)&to, sizeof(to)) != 0;
}

void peer_open(struct peer *p, unsigned port)
{
	peer_open_from(p, 1, port);
}

void peer_open_tls(struct peer *p, unsigned port, const struct peer_tls *tls)
{
	peer_open(p, port);
	gnutls_certificate_allocate_credentials(&p->credentials);
	if (tls->cert_file &&
		gnutls_certificate_set_x509_key_file(
			p->credentials, tls->cert_file, tls->key_file, GNUTLS_X509_FMT_PEM) < 0)
		p->dead = true;
	gnutls_init(&p->tls, GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT);
	gnutls_priority_set_direct(p->tls, tls->priorities ? tls->priorities : "NORMAL", NULL);
	gnutls_credentials_set(p->tls, GNUTLS_CRD_CERTIFICATE, p->credentials);
	gnutls_transport_set_int(p->tls, p->fd);
	gnutls_handshake_set_timeout(p->tls, PEER_TIMEOUT_S * 1000);
	for (int i = 0, rc = -1; i < 100 && rc < 0 && !p->dead; i++) {
		rc = gnutls_handshake(p->tls);
		if (rc < 0 && gnutls_error_is_fatal(rc))
			p->dead = true;
	}
}

void peer_close(struct peer *p)
{
	if (p->tls)
		gnutls_deinit(p->tls);
	if (p->credentials)
		gnutls_certificate_free_credentials(p->credentials);
	if (p->fd >= 0)
		close(p->fd);
	buf_release(&p->in);
}

void peer_send(struct peer *p, struct str bytes)
{
	while (bytes.len && !p->dead) {
		ssize_t n = p->tls ? gnutls_record_send(p->tls, bytes.ptr, bytes.len) :
							 send(p->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

		if (n < 0 && !p->tls && errno == EINTR)
			continue;
		if (n <= 0) { /* a server that refuses early has answered, and takes no more */
			p->dead = p->tls != NULL;
			return;
		}
		bytes = (struct str){ bytes.ptr + n, bytes.len - (size_t)n };
	}
}

/* A socket with a timeout is not read on by itself when its process was stopped for a while. */
static ssize_t read_on(int fd, void *to, size_t max)
{
	ssize_t n;

	do {
		n = recv(fd, to, max, 0);
	} while (n < 0 && errno == EINTR);
	return n;
}

/* False at the end of the connection, or when nothing comes in time. */
static bool receive_more(struct peer *p)
{
	char part[16384];
	ssize_t n;

	if (p->dead)
		return false;
	do {
		n = p->tls ? gnutls_record_recv(p->tls, part, sizeof(part)) :
					 read_on(p->fd, part, sizeof(part));
	} while (p->tls && n < 0 && !gnutls_error_is_fatal((int)n) && n != GNUTLS_E_AGAIN);
	if (n <= 0) {
		p->dead = true;
		return false;
	}
	buf_add(&p->in, part, (size_t)n);
	return true;
}

static void take(struct peer *p, struct buf *to, size_t n)
{
	buf_clear(to);
	buf_add(to, p->in.ptr, n);
	memmove(p->in.ptr, p->in.ptr + n, p->in.len - n);
	p->in.len -= n;
}

void peer_receive(struct peer *p, struct response *r, bool no_body)
{
	ptrdiff_t end;
	uint64_t len = 0;

	r->status = 0;
	buf_clear(&r->head);
	buf_clear(&r->body);
	while ((end = p->in.len ? str_find(buf_str(&p->in), STR("\r\n\r\n")) : -1) < 0)
		if (!receive_more(p))
			return;
	take(p, &r->head, (size_t)end + 4);
	if (!no_body)
		str_to_u64(response_header(r, "Content-Length"), &len);
	while (p->in.len < len)
		if (!receive_more(p))
			return;
	take(p, &r->body, len);
	buf_reserve(&r->body, 1);
	r->body.ptr[r->body.len] = '\0';
	if (r->head.len > 12)
		r->status = (r->head.ptr[9] - '0') * 100 + (r->head.ptr[10] - '0') * 10 +
			(r->head.ptr[11] - '0');
}

bool peer_ended(struct peer *p)
{
	char byte;
	ssize_t n;

	if (p->in.len)
		return false;
	n = p->tls ? gnutls_record_recv(p->tls, &byte, 1) : read_on(p->fd, &byte, 1);
	return n == 0 || (n < 0 && p->tls && n != GNUTLS_E_AGAIN);
}

void peer_server_name(struct peer *p, struct buf *out)
{
	const gnutls_datum_t *raw;
	unsigned n = 0;
	gnutls_x509_crt_t cert;
	char name[128] = "";
	size_t size = sizeof(name);

	raw = p->dead ? NULL : gnutls_certificate_get_peers(p->tls, &n);
	if (!raw || !n)
		return;
	gnutls_x509_crt_init(&cert);
	if (!gnutls_x509_crt_import(cert, raw, GNUTLS_X509_FMT_DER) &&
		!gnutls_x509_crt_get_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &size))
		buf_add_cstr(out, name);
	gnutls_x509_crt_deinit(cert);
}

void peer_ask_on(
	struct peer *p, struct response *r, const char *request, const char *headers, struct str body)
{
	struct buf text = { 0 };

	buf_printf(&text, "%s HTTP/1.1\r\nHost: test\r\n%s", request, headers);
	if (body.ptr)
		buf_printf(&text, "Content-Length: %zu\r\n", body.len);
	buf_add_cstr(&text, "\r\n");
	buf_add_str(&text, body);
	peer_send(p, buf_str(&text));
	buf_release(&text);
	peer_receive(p, r, !strncmp(request, "HEAD ", 5));
}

void peer_ask(
	unsigned port, struct response *r, const char *request, const char *headers, struct str body)
{
	struct peer p;

	peer_open(&p, port);
	peer_ask_on(&p, r, request, headers, body);
	peer_close(&p);
}

void response_release(struct response *r)
{
	buf_release(&r->head);
	buf_release(&r->body);
}

struct str response_header(const struct response *r, const char *name)
{
	struct str rest = buf_str(&r->head);
	size_t n = strlen(name);

	while (rest.len) {
		const char *end = memmem(rest.ptr, rest.len, "\r\n", 2);
		size_t len = end ? (size_t)(end - rest.ptr) : rest.len;

		if (len > n && rest.ptr[n] == ':' && !strncasecmp(rest.ptr, name, n))
			return str_trim((struct str){ rest.ptr + n + 1, len - n - 1 });
		len += end ? 2 : 0;
		rest = (struct str){ rest.ptr + len, rest.len - len };
	}
	return STR("");
}
