/*
 * One connection: resolve, connect to each address in turn, pass the proxy, shake hands, send the
 * request, read the answer, go back to the pool. A function that may end the connection does so as
 * its last act, since the struct is gone then.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/net/http_client_internal.h"
#include "base/net/loop.h"

#define CONNECT_NS_MIN (2 * NS_PER_S) /* an address gets at least so much of the time left */
#define READS_PER_EVENT 16 /* so that a quick sender does not starve the others */
#define KEY_BYTES 256 /* host and server name: a connection is kept for minutes */

static void http_client_conn_on_io(evutil_socket_t fd, short what, void *ctx);
static void http_client_conn_on_timer(evutil_socket_t fd, short what, void *ctx);
static void http_client_conn_connect_next(struct http_client_conn *c);
static void http_client_conn_shake_hands(struct http_client_conn *c);

/* -------------------------------------------------------------------------------------------- */
/* Pool */

static struct conn_bucket *http_client_conn_bucket_of(
	struct http_client *cl, const struct conn_key *k)
{
	uint64_t seed = (uint64_t)k->port << 32 ^ k->tls_id ^ k->proxy_tls_id << 16;
	uint64_t h = hash_bytes(k->host.ptr, k->host.len, hash_bytes(k->proxy.ptr, k->proxy.len, seed));

	return &cl->pool[h & (HTTP_POOL_BUCKETS - 1)];
}

static bool http_client_conn_key_eq(const struct conn_key *a, const struct conn_key *b)
{
	return a->tls == b->tls && a->http2 == b->http2 && a->port == b->port &&
		a->tls_id == b->tls_id && a->proxy_tls_id == b->proxy_tls_id && str_eq(a->host, b->host) &&
		str_eq(a->server_name, b->server_name) && str_eq(a->proxy, b->proxy) &&
		str_eq(a->proxy_name, b->proxy_name);
}

static void http_client_conn_unpark(struct http_client_conn *c)
{
	assert(c->state == CONN_IDLE && !c->req);
	TAILQ_REMOVE(&c->client->idle, c, idle_link);
	LIST_REMOVE(c, pool_link);
	c->state = CONN_ACTIVE;
	evtimer_del(c->timer);
}

struct http_client_conn *conn_take(struct http_client *cl, const struct conn_key *key)
{
	struct http_client_conn *c, *next;

	for (c = LIST_FIRST(http_client_conn_bucket_of(cl, key)); c; c = next) {
		next = LIST_NEXT(c, pool_link);
		if (!http_client_conn_key_eq(&c->key, key))
			continue;
		if (conn_is_alive(c)) {
			http_client_conn_unpark(c);
			c->reused = true;
			cl->reuses++;
			return c;
		}
		conn_close(c);
	}
	return NULL;
}

bool conn_watch(struct http_client_conn *c, short what)
{
	if (c->watching == what)
		return true;
	event_del(c->io);
	c->watching = 0;
	if (what &&
		(event_assign(c->io, c->client->base, c->fd, (short)(what | EV_PERSIST),
			 http_client_conn_on_io, c) ||
			event_add(c->io, NULL)))
		return false;
	c->watching = what;
	return true;
}

void conn_park(struct http_client_conn *c)
{
	assert(c->state == CONN_ACTIVE && !c->req);
	c->state = CONN_IDLE;
	TAILQ_INSERT_TAIL(&c->client->idle, c, idle_link);
	LIST_INSERT_HEAD(http_client_conn_bucket_of(c->client, &c->key), c, pool_link);
	timer_after(c->timer, HTTP_IDLE_NS);
	if (!conn_watch(c, EV_READ))
		conn_close(c);
}

/* Sends no close_notify: at the end of an exchange a TLS peer does not need it. */
void conn_close(struct http_client_conn *c)
{
	if (c->state == CONN_IDLE)
		http_client_conn_unpark(c);
	if (c->req)
		c->req->conn = NULL;
	lookup_cancel(&c->waiter);
	if (c->io)
		event_free(c->io);
	if (c->timer)
		event_free(c->timer);
	tunnel_end(c);
	http2_close(c->h2);
	SSL_free(c->ssl); /* the inner one first */
	SSL_free(c->proxy_ssl);
	if (c->fd >= 0)
		close(c->fd);
	TAILQ_REMOVE(&c->client->conns, c, link);
	assert(c->client->connections_n > 0);
	c->client->connections_n--;
	if (!TAILQ_EMPTY(&c->client->line)) /* its place is free */
		event_active(c->client->kick, EV_TIMEOUT, 0);
	arena_release(&c->arena);
	free(c);
}

/* -------------------------------------------------------------------------------------------- */
/* Failing */

void conn_fail(struct http_client_conn *c, enum err_code rc, const struct err *err)
{
	bool stale = c->reused && c->state == CONN_ACTIVE && !c->req->parser.any;
	struct http_request *r = c->req;
	struct err copy = *err;

	assert(r && rc);
	conn_close(c);
	request_failed(r, rc, &copy, stale);
}

/* In front of a problem's phase, while the proxy is what we talk to. */
static const char *http_client_conn_hop(const struct http_client_conn *c)
{
	return c->req->proxy.kind && c->state < CONN_HANDSHAKE ? "proxy " : "";
}

void conn_fail_io(struct http_client_conn *c, const char *phase, const char *why)
{
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "%s%s %s: %s", http_client_conn_hop(c), phase, c->address, why);
	conn_fail(c, ERR_UNAVAILABLE, &err);
}

/* -------------------------------------------------------------------------------------------- */
/* The exchange */

#define SENDS_PER_EVENT 64 /* of a body's source: then other events have their turn */

/*
 * Sends as much as the socket takes. Gives the events to wait for, or -1: the connection is gone. A
 * broken socket is not the end: a server that refuses early has sent an answer or a TLS alert
 * before it closed, so reading goes on.
 */
static int http_client_conn_send_out(struct http_client_conn *c)
{
	struct buf why = { 0 };
	enum io_status s;
	struct err err;
	bool broken;
	size_t done;

	for (int i = 0; !c->write_error[0]; i++) { /* each turn sends at least a byte */
		struct str rest;
		enum err_code rc = c->h2 ? http2_unsent(c, &rest, &err) : conn_unsent(c, &rest, &err);

		if (rc) {
			conn_fail(c, rc, &err);
			return -1;
		}
		if (!rest.len)
			break;
		if (i == SENDS_PER_EVENT && c->req->source)
			return EV_READ | EV_WRITE;
		s = conn_write(c, rest, &done, &why, &broken);
		if (s == IO_WANT_READ || s == IO_WANT_WRITE)
			return s == IO_WANT_WRITE ? EV_READ | EV_WRITE : EV_READ;
		if (c->h2)
			http2_count_sent(c, done);
		else
			conn_count_sent(c, done);
		if (s == IO_DONE)
			continue;
		snprintf(c->write_error, sizeof(c->write_error), STR_FMT,
			STR_ARG(why.len ? buf_str(&why) : STR("connection closed")));
		buf_release(&why);
		if (!broken) {
			conn_fail_io(c, "tls", c->write_error);
			return -1;
		}
	}
	return EV_READ;
}

/* The answer is complete, or will never be. */
static void http_client_conn_end_exchange(struct http_client_conn *c, bool leftover)
{
	struct http_request *r = c->req;
	bool reusable = conn_is_sent(c) && !c->write_error[0] &&
		(c->h2 ? http2_park(c) : r->parser.keep_alive && !leftover);

	r->connected_ns = c->opened_ns;
	r->conn = NULL;
	c->req = NULL;
	if (reusable)
		conn_park(c);
	else
		conn_close(c);
	request_answered(r);
}

static void http_client_conn_on_eof(struct http_client_conn *c)
{
	struct http_parser *p = &c->req->parser;
	struct err err;
	enum err_code rc;

	if (c->h2 && p->any) /* the end of an answer is a frame */
		rc = err_set(&err, ERR_UNAVAILABLE, "unexpected EOF");
	else
		rc = http_parser_eof(p, &err);
	if (!rc) {
		http_client_conn_end_exchange(c, true);
		return;
	}
	if (c->write_error[0] && !c->req->parser.any) /* the write got the reason, not the read */
		conn_fail_io(c, "write", c->write_error);
	else
		conn_fail_io(c, "read", err.msg);
}

/* Bytes came. True: the answer is complete. */
static enum err_code http_client_conn_feed(
	struct http_client_conn *c, struct str *in, bool *answered, struct err *err)
{
	struct http_parser *p = &c->req->parser;
	uint64_t before = p->head_used + p->body_bytes;
	enum err_code rc = c->h2 ? http2_feed(c, *in, err) : http_parser_feed(p, in, err);

	*answered = !rc && (c->h2 ? http2_is_answered(c) : p->state == PARSE_DONE);
	/* other frames of HTTP/2 are no sign of an answer */
	if (!rc && !*answered && (!c->h2 || p->head_used + p->body_bytes > before))
		request_received(c->req);
	return rc;
}

/* Gives the events to wait for, or -1: the connection is gone or parked. */
static int http_client_conn_read_in(struct http_client_conn *c)
{
	const int one = 1;
	struct http_client *cl = c->client;
	struct buf why = { 0 };
	enum io_status s;
	struct err err;
	enum err_code rc;
	struct str in;
	bool answered;
	size_t n;

	for (int i = 0; i < READS_PER_EVENT; i++) {
		s = conn_read(c, cl->scratch, sizeof(cl->scratch), &n, &why);
		if (s == IO_WANT_READ || s == IO_WANT_WRITE) {
			if (cl->quick_ack && c->req->parser.any) /* it holds for this moment only */
				setsockopt(c->fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one));
			return s == IO_WANT_WRITE ? EV_READ | EV_WRITE : EV_READ;
		}
		if (s == IO_EOF) {
			http_client_conn_on_eof(c);
			return -1;
		}
		if (s == IO_FAILED) {
			buf_add_char(&why, '\0');
			conn_fail_io(c, c->ssl ? "tls" : "read", buf_failed(&why) ? "read failed" : why.ptr);
			buf_release(&why);
			return -1;
		}
		in = (struct str){ (const char *)cl->scratch, n };
		rc = http_client_conn_feed(c, &in, &answered, &err);
		if (rc) {
			conn_fail(c, rc, &err);
			return -1;
		}
		if (answered) {
			http_client_conn_end_exchange(c, in.len > 0);
			return -1;
		}
	}
	event_active(c->io, EV_READ, 0); /* TLS may hold bytes that the socket will not announce */
	return EV_READ;
}

static void http_client_conn_exchange_step(struct http_client_conn *c)
{
	int out = http_client_conn_send_out(c), in;

	if (out < 0 || (in = http_client_conn_read_in(c)) < 0)
		return;
	if (c->h2 && (out = http_client_conn_send_out(c)) < 0) /* what was read wants an answer */
		return;
	if (!conn_watch(c, (short)(out | in)))
		conn_fail_io(c, "read", "cannot watch the socket");
}

void conn_exchange(struct http_client_conn *c, struct http_request *r)
{
	enum err_code rc;
	struct err err;

	assert(c->state != CONN_IDLE && (!c->req || c->req == r));
	c->req = r;
	r->conn = c;
	c->state = CONN_ACTIVE;
	c->out_at = 0;
	buf_clear(&r->piece);
	r->piece_at = 0;
	r->source_at = 0;
	c->write_error[0] = '\0';
	evtimer_del(c->timer);
	if (c->h2 && (rc = http2_begin(c, &err)))
		conn_fail(c, rc, &err);
	else
		http_client_conn_exchange_step(c);
}

/* -------------------------------------------------------------------------------------------- */
/* Getting connected */

/* Begins TLS with the proxy or, through its tunnel if there is one, with the target. */
static void http_client_conn_start_tls(struct http_client_conn *c, bool proxy)
{
	struct http_request *r = c->req;
	uint64_t *id = proxy ? &c->key.proxy_tls_id : &c->key.tls_id;
	struct tls_context context;
	enum err_code rc;
	struct err err;
	SSL *ssl;

	rc = tls_cache_get(c->client->tls, r->config, proxy || !r->foreign, &context, &err);
	c->tls_name = proxy ? c->key.proxy_name.ptr : c->key.server_name.ptr;
	if (!rc) /* the files may have changed while we connected */
		*id = context.id;
	if (!rc)
		rc = tls_session(&context, c->fd, c->ssl, c->tls_name, !proxy && c->key.http2, &ssl, &err);
	if (rc) {
		err_wrap(&err, rc, "%stls %s", proxy ? "proxy " : "", c->address);
		conn_fail(c, rc, &err);
		return;
	}
	c->proxy_ssl = c->ssl;
	c->ssl = ssl;
	c->state = proxy ? CONN_PROXY_HANDSHAKE : CONN_HANDSHAKE;
	http_client_conn_shake_hands(c);
}

void conn_reached(struct http_client_conn *c)
{
	if (c->key.tls)
		http_client_conn_start_tls(c, false);
	else
		conn_exchange(c, c->req);
}

/* The proxy listens. It opens a tunnel, unless it reads URLs itself. */
static void http_client_conn_pass_proxy(struct http_client_conn *c)
{
	if (c->req->proxy.kind == HTTP_PROXY_SOCKS5 || c->key.tls)
		tunnel_start(c);
	else
		conn_reached(c);
}

static void http_client_conn_shake_hands(struct http_client_conn *c)
{
	struct buf why = { 0 };
	enum io_status s = conn_handshake(c, &why);
	enum err_code rc;
	struct err err;

	if (s == IO_DONE) {
		if (c->state == CONN_PROXY_HANDSHAKE)
			http_client_conn_pass_proxy(c);
		else if (tls_chose_http2(c->ssl) && (rc = http2_open(c, &err)))
			conn_fail(c, rc, &err);
		else
			conn_exchange(c, c->req);
		return;
	}
	if ((s == IO_WANT_READ && conn_watch(c, EV_READ)) ||
		(s == IO_WANT_WRITE && conn_watch(c, EV_WRITE)))
		return;
	buf_add_char(&why, '\0');
	conn_fail_io(c, "tls", buf_failed(&why) || !why.ptr[0] ? "connection closed" : why.ptr);
	buf_release(&why);
}

static void http_client_conn_on_connected(struct http_client_conn *c)
{
	int one = 1;

	evtimer_del(c->timer);
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->client->connects++;
	switch (c->req->proxy.kind) {
	case HTTP_PROXY_NONE:
		conn_reached(c);
		return;
	case HTTP_PROXY_HTTPS:
		http_client_conn_start_tls(c, true);
		return;
	default:
		http_client_conn_pass_proxy(c);
	}
}

/* This address failed: keep the first one's reason, drop the socket, try the next. */
static void http_client_conn_address_failed(struct http_client_conn *c, const char *why)
{
	if (c->address_i == 0)
		c->first_problem = arena_printf(
			&c->arena, "%sconnect %s: %s", http_client_conn_hop(c), c->address, why);
	conn_watch(c, 0);
	evtimer_del(c->timer);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->address_i++;
	http_client_conn_connect_next(c);
}

/* Recursion through http_client_conn_address_failed is at most HTTP_ADDRESSES_MAX deep. */
static void http_client_conn_connect_next(struct http_client_conn *c)
{
	int64_t now = clock_monotonic_ns(), left = c->req->deadline_ns - now, share;
	int64_t idle = c->req->received_ns + c->req->idle_timeout_ns - now;
	struct err err;
	int e;

	if (c->address_i == c->addresses_n) {
		err_set(&err, ERR_UNAVAILABLE, "%s", c->first_problem ? c->first_problem : "out of memory");
		conn_fail(c, ERR_UNAVAILABLE, &err);
		return;
	}
	c->state = CONN_CONNECTING;
	e = conn_connect(c);
	if (e) {
		http_client_conn_address_failed(c, conn_problem(c, e));
		return;
	}
	if (c->req->idle && idle < left)
		left = idle;
	share = left / (int64_t)(c->addresses_n - c->address_i);
	if (c->address_i + 1 < c->addresses_n) /* the last address has all the time that is left */
		timer_after(c->timer, share > CONNECT_NS_MIN ? share : CONNECT_NS_MIN);
}

/* Whom we connect to ourselves. */
static const char *http_client_conn_next_host(const struct http_request *r)
{
	return r->proxy.kind ? r->proxy.host.ptr : r->url.host.ptr;
}

static void http_client_conn_on_resolved(
	struct resolve_waiter *w, const struct http_address *h, size_t n, const char *problem)
{
	struct http_client_conn *c = (struct http_client_conn *)(void *)((char *)w -
		offsetof(struct http_client_conn, waiter));
	struct err err;

	if (!n) {
		err_set(&err, ERR_UNAVAILABLE, "%slookup %s: %s", http_client_conn_hop(c),
			http_client_conn_next_host(c->req), problem);
		conn_fail(c, ERR_UNAVAILABLE, &err);
		return;
	}
	assert(c->state == CONN_RESOLVING && n <= HTTP_ADDRESSES_MAX);
	memcpy(c->addresses, h, n * sizeof(*h));
	c->addresses_n = n;
	c->address_i = 0;
	http_client_conn_connect_next(c);
}

static void http_client_conn_on_io(evutil_socket_t fd, short what, void *ctx)
{
	struct http_client_conn *c = ctx;
	socklen_t len = sizeof(int);
	int e = 0;

	switch (c->state) {
	case CONN_CONNECTING:
		if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &len))
			e = errno;
		if (e)
			http_client_conn_address_failed(c, strerror(e));
		else
			http_client_conn_on_connected(c);
		return;
	case CONN_PROXY_HANDSHAKE:
	case CONN_HANDSHAKE:
		http_client_conn_shake_hands(c);
		return;
	case CONN_TUNNEL:
		tunnel_step(c);
		return;
	case CONN_ACTIVE:
		http_client_conn_exchange_step(c);
		return;
	case CONN_IDLE:
		if (!conn_is_alive(c))
			conn_close(c);
		return;
	case CONN_RESOLVING:
		return;
	}
}

static void http_client_conn_on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct http_client_conn *c = ctx;

	if (c->state == CONN_CONNECTING)
		http_client_conn_address_failed(c, "timed out");
	else if (c->state == CONN_IDLE)
		conn_close(c);
}

void conn_open(struct http_request *r, const struct conn_key *key)
{
	struct http_client *cl = r->client;
	struct http_client_conn *c = calloc(1, sizeof(*c));
	struct err err;

	if (!c) {
		err_nomem(&err, "connection");
		request_failed(r, ERR_NOMEM, &err, false);
		return;
	}
	c->client = cl;
	c->fd = -1;
	c->address = c->address_text;
	c->req = r;
	c->state = CONN_RESOLVING;
	c->opened_ns = clock_monotonic_ns();
	r->conn = c;
	TAILQ_INSERT_TAIL(&cl->conns, c, link);
	cl->connections_n++;
	arena_init(&c->arena, 0);
	c->arena.block_max = KEY_BYTES;
	c->key = *key;
	c->key.host = str_dup(&c->arena, key->host);
	c->key.server_name = str_dup(&c->arena, key->server_name);
	c->key.proxy = str_dup(&c->arena, key->proxy);
	c->key.proxy_name = str_dup(&c->arena, key->proxy_name);
	c->io = event_new(cl->base, -1, 0, http_client_conn_on_io, c);
	c->timer = evtimer_new(cl->base, http_client_conn_on_timer, c);
	if (!c->key.host.ptr || !c->key.server_name.ptr || !c->key.proxy.ptr ||
		!c->key.proxy_name.ptr || !c->io || !c->timer) {
		err_nomem(&err, "connection");
		conn_fail(c, ERR_NOMEM, &err);
		return;
	}
	if (request_is_local(r)) {
		c->addresses_n = 1; /* without a place in the array: the path is the request's */
		http_client_conn_connect_next(c);
		return;
	}
	lookup_start(
		cl->lookups, http_client_conn_next_host(r), &c->waiter, http_client_conn_on_resolved);
}
