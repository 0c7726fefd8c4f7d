/*
 * Tunnels. A proxy of HTTP is asked with CONNECT (RFC 9110, 9.3.6), one of SOCKS5 as in RFC 1928
 * and RFC 1929, without authentication or with a user and a password. The target then begins where
 * the proxy's answer ends, and no target speaks first: bytes behind the answer are an error.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/net/http_client_internal.h"

#define SOCKS_TEXT_BYTES_MAX 255u

enum { METHOD_NONE = 0, METHOD_PASSWORD = 2 };

void tunnel_end(struct http_client_conn *c)
{
	if (!c->tunnel)
		return;
	http_parser_release(&c->tunnel->parser);
	buf_release(&c->tunnel->out);
	free(c->tunnel);
	c->tunnel = NULL;
}

static void http_client_proxy_fail(struct http_client_conn *c, enum err_code rc, const char *why)
{
	struct err err;

	err_set(&err, rc, "proxy %s: %s to %s: %s", c->address,
		c->tunnel->phase == TUNNEL_CONNECT ? "CONNECT" : "SOCKS5", c->tunnel->target, why);
	conn_fail(c, rc, &err);
}

/* -------------------------------------------------------------------------------------------- */
/* CONNECT */

static void http_client_proxy_compose_connect(struct http_client_conn *c)
{
	const struct http_request *r = c->req;
	struct labels headers = r->config->proxy.connect_headers;
	struct tunnel *t = c->tunnel;
	struct str auth;

	buf_printf(&t->out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", t->target, t->target);
	if (!header_is_in(headers, "user-agent"))
		header_print(&t->out, STR("User-Agent"), str_of(c->client->user_agent));
	for (size_t i = 0; i < headers.n; i++)
		if (!r->proxy.has_user || !str_eq_nocase(headers.v[i].name, STR("proxy-authorization")))
			header_print(&t->out, headers.v[i].name, headers.v[i].value);
	if (r->proxy.has_user) {
		auth = http_basic_credentials(&c->req->arena, r->proxy.user, r->proxy.password);
		header_print(&t->out, STR("Proxy-Authorization"), auth);
		t->out.failed |= !auth.ptr;
	}
	buf_add(&t->out, "\r\n", 2);
}

static enum err_code http_client_proxy_feed_connect(
	struct tunnel *t, struct str *in, bool *done, struct err *err)
{
	struct http_parser *p = &t->parser;
	enum err_code rc = http_parser_feed(p, in, err);

	if (rc)
		return rc;
	*done = p->state == PARSE_DONE;
	if (!*done || p->status == 200)
		return ERR_OK;
	return err_set(err, ERR_UNAVAILABLE, "server returned HTTP status %d%s%.*s", p->status,
		p->reason.len ? " " : "", (int)(p->reason.len < 100 ? p->reason.len : 100), p->reason.ptr);
}

/* -------------------------------------------------------------------------------------------- */
/* SOCKS5 */

static const char *http_client_proxy_socks_reason(unsigned code)
{
	static const char *const reasons[] = { "succeeded", "general failure",
		"connection not allowed by the rules", "network unreachable", "host unreachable",
		"connection refused", "time to live expired", "command not supported",
		"address type not supported" };

	return code < sizeof(reasons) / sizeof(reasons[0]) ? reasons[code] : "unknown error";
}

static void http_client_proxy_add_short(struct buf *b, struct str s)
{
	assert(s.len <= SOCKS_TEXT_BYTES_MAX);
	buf_add_char(b, (char)(unsigned char)s.len);
	buf_add_str(b, s);
}

static void http_client_proxy_compose_greeting(struct tunnel *t, const struct http_proxy *p)
{
	t->phase = TUNNEL_METHOD;
	if (p->has_user)
		buf_add(&t->out, "\x05\x02\x00\x02", 4);
	else
		buf_add(&t->out, "\x05\x01\x00", 3);
}

static void http_client_proxy_compose_password(struct tunnel *t, const struct http_proxy *p)
{
	t->phase = TUNNEL_PASSWORD;
	buf_add_char(&t->out, 1);
	http_client_proxy_add_short(&t->out, p->user);
	http_client_proxy_add_short(&t->out, p->password);
}

/* Names go to the proxy as they are: it resolves them. */
static void http_client_proxy_compose_request(struct tunnel *t, const struct http_url *url)
{
	unsigned char ip[16];
	unsigned char port[2] = { (unsigned char)(url->port >> 8), (unsigned char)url->port };

	t->phase = TUNNEL_REQUEST;
	buf_add(&t->out, "\x05\x01\x00", 3);
	if (inet_pton(AF_INET, url->host.ptr, ip) == 1) {
		buf_add_char(&t->out, 1);
		buf_add(&t->out, ip, 4);
	} else if (inet_pton(AF_INET6, url->host.ptr, ip) == 1) {
		buf_add_char(&t->out, 4);
		buf_add(&t->out, ip, 16);
	} else {
		buf_add_char(&t->out, 3);
		http_client_proxy_add_short(&t->out, url->host);
	}
	buf_add(&t->out, port, sizeof(port));
}

/* How long the phase's answer is, as far as its first bytes say. */
static size_t http_client_proxy_socks_answer_bytes(const struct tunnel *t)
{
	if (t->phase != TUNNEL_REQUEST)
		return 2;
	if (t->in_n < 2 || t->in[1])
		return 2; /* a refusal needs no address */
	if (t->in_n < 5)
		return 5;
	return 4 + 2u + (t->in[3] == 1 ? 4u : t->in[3] == 4 ? 16u : 1u + t->in[4]);
}

/* A phase's answer is complete. Gives a problem, or NULL. */
static const char *http_client_proxy_socks_answer(struct tunnel *t, bool *done)
{
	const struct http_proxy *p = t->proxy;
	unsigned char version = t->in[0], code = t->in[1], type = t->in[3];

	if (version != (t->phase == TUNNEL_PASSWORD ? 1 : 5))
		return "the answer is not SOCKS5";
	t->in_n = 0;
	switch (t->phase) {
	case TUNNEL_METHOD:
		if (code == METHOD_NONE)
			http_client_proxy_compose_request(t, t->url);
		else if (code == METHOD_PASSWORD && p->has_user)
			http_client_proxy_compose_password(t, p);
		else
			return "the proxy takes none of our ways to authenticate";
		return NULL;
	case TUNNEL_PASSWORD:
		if (code)
			return "the proxy refused the user or the password";
		http_client_proxy_compose_request(t, t->url);
		return NULL;
	default:
		if (code)
			return http_client_proxy_socks_reason(code);
		if (type != 1 && type != 3 && type != 4)
			return "the answer is not SOCKS5";
		*done = true;
		return NULL;
	}
}

static enum err_code http_client_proxy_feed_socks(
	struct tunnel *t, struct str *in, bool *done, struct err *err)
{
	const char *problem;
	size_t want;

	while (in->len && !*done) { /* each turn takes at least a byte */
		want = http_client_proxy_socks_answer_bytes(t);
		assert(t->in_n < want && want <= sizeof(t->in));
		want = want - t->in_n < in->len ? want - t->in_n : in->len;
		memcpy(t->in + t->in_n, in->ptr, want);
		t->in_n += want;
		in->ptr += want;
		in->len -= want;
		if (t->in_n < http_client_proxy_socks_answer_bytes(t))
			continue;
		if ((problem = http_client_proxy_socks_answer(t, done)))
			return err_set(err, ERR_UNAVAILABLE, "%s", problem);
	}
	return ERR_OK;
}

/* -------------------------------------------------------------------------------------------- */
/* Both */

enum err_code tunnel_feed(struct tunnel *t, struct str *in, bool *done, struct err *err)
{
	return t->phase == TUNNEL_CONNECT ? http_client_proxy_feed_connect(t, in, done, err) :
										http_client_proxy_feed_socks(t, in, done, err);
}

/* Gives the events to wait for, or -1: the connection is gone. */
static int http_client_proxy_send_out(struct http_client_conn *c)
{
	struct tunnel *t = c->tunnel;
	struct buf why = { 0 };
	enum io_status s;
	bool broken;
	size_t n;

	if (buf_failed(&t->out)) {
		http_client_proxy_fail(c, ERR_NOMEM, "out of memory");
		return -1;
	}
	while (t->out_at < t->out.len) { /* each turn sends at least a byte */
		struct str rest = { t->out.ptr + t->out_at, t->out.len - t->out_at };

		s = conn_write(c, rest, &n, &why, &broken);
		t->out_at += n;
		if (s == IO_WANT_READ || s == IO_WANT_WRITE)
			return s == IO_WANT_WRITE ? EV_READ | EV_WRITE : EV_READ;
		if (s == IO_DONE)
			continue;
		buf_add_char(&why, '\0');
		http_client_proxy_fail(
			c, ERR_UNAVAILABLE, buf_failed(&why) || !why.ptr[0] ? "connection closed" : why.ptr);
		buf_release(&why);
		return -1;
	}
	buf_clear(&t->out);
	t->out_at = 0;
	return EV_READ;
}

/* The tunnel is open: from now on the connection is one to the target. */
static void http_client_proxy_opened(struct http_client_conn *c, bool leftover)
{
	if (leftover) {
		http_client_proxy_fail(
			c, ERR_INVALID, "bytes came behind the answer, before anything was asked");
		return;
	}
	snprintf(c->address_text, sizeof(c->address_text), "%.63s", c->tunnel->target);
	tunnel_end(c);
	conn_reached(c);
}

/* Gives the events to wait for, or -1: the connection is gone, or the tunnel is open. */
static int http_client_proxy_read_in(struct http_client_conn *c, bool *again)
{
	struct http_client *cl = c->client;
	struct buf why = { 0 };
	bool done = false;
	enum io_status s;
	enum err_code rc;
	struct err err;
	struct str in;
	size_t n;

	s = conn_read(c, cl->scratch, sizeof(cl->scratch), &n, &why);
	if (s == IO_WANT_READ || s == IO_WANT_WRITE)
		return s == IO_WANT_WRITE ? EV_READ | EV_WRITE : EV_READ;
	if (s != IO_DONE) {
		buf_add_char(&why, '\0');
		http_client_proxy_fail(c, ERR_UNAVAILABLE,
			s == IO_EOF || buf_failed(&why) || !why.ptr[0] ? "connection closed" : why.ptr);
		buf_release(&why);
		return -1;
	}
	request_received(c->req);
	in = (struct str){ (const char *)cl->scratch, n };
	if ((rc = tunnel_feed(c->tunnel, &in, &done, &err))) {
		http_client_proxy_fail(c, rc, err.msg);
		return -1;
	}
	if (done) {
		http_client_proxy_opened(c, in.len > 0);
		return -1;
	}
	*again = true;
	return EV_READ;
}

void tunnel_step(struct http_client_conn *c)
{
	bool again;
	int out, in;

	do { /* each turn took bytes of an answer, of which there are few */
		again = false;
		if ((out = http_client_proxy_send_out(c)) < 0 ||
			(in = http_client_proxy_read_in(c, &again)) < 0)
			return;
	} while (again);
	if (!conn_watch(c, (short)(out | in)))
		http_client_proxy_fail(c, ERR_NOMEM, "cannot watch the socket");
}

void tunnel_start(struct http_client_conn *c)
{
	const struct http_url *url = &c->req->url;
	const struct http_proxy *p = &c->req->proxy;
	struct tunnel *t = calloc(1, sizeof(*t));
	struct err err;

	if (!t) {
		err_nomem(&err, "tunnel");
		conn_fail(c, ERR_NOMEM, &err);
		return;
	}
	t->proxy = p;
	t->url = url;
	c->tunnel = t;
	c->state = CONN_TUNNEL;
	snprintf(t->target, sizeof(t->target),
		memchr(url->host.ptr, ':', url->host.len) ? "[" STR_FMT "]:%u" : STR_FMT ":%u",
		STR_ARG(url->host), url->port);
	if (p->kind == HTTP_PROXY_SOCKS5) {
		t->phase = TUNNEL_METHOD;
		if (p->has_user &&
			(!p->user.len || p->user.len > SOCKS_TEXT_BYTES_MAX ||
				p->password.len > SOCKS_TEXT_BYTES_MAX)) {
			http_client_proxy_fail(c, ERR_INVALID,
				"a user of 1 to 255 bytes and a password of at most 255 are needed");
			return;
		}
		http_client_proxy_compose_greeting(t, p);
	} else {
		http_parser_init(&t->parser, true, 0); /* like HEAD: no body follows */
		http_client_proxy_compose_connect(c);
	}
	tunnel_step(c);
}
