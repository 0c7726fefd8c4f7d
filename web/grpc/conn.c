#include "web/grpc/conn.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"

METRIC_GAUGE(connections, "epimetheus_grpc_connections", "gRPC connections that are open.", NULL);
METRIC_COUNTER(dropped, "epimetheus_grpc_connections_dropped_total",
	"gRPC connections that this server ended, by reason: crowded, handshake, protocol, flood, "
	"stalled, no_memory.",
	"reason");

#define READ_BYTES (32u << 10) /* more than a TLS record */
#define READS_MAX 8 /* then others have their turn */
#define SEND_BYTES (64u << 10) /* gathered before they are sent */
#define GREETING_NS (10 * NS_PER_S) /* TLS and the first SETTINGS */
#define STALL_NS (30 * NS_PER_S)
#define LINGER_NS (2 * NS_PER_S)

enum wire { WIRE_OK, WIRE_AGAIN, WIRE_END, WIRE_FAILED };

/* ---- the socket ---- */

static enum wire wire_read(struct grpc_conn *c, void *to, size_t max, size_t *n)
{
	ssize_t got;

	if (c->tls && c->state == CONN_OPEN) {
		got = gnutls_record_recv(c->tls, to, max);
		if (got == GNUTLS_E_AGAIN || got == GNUTLS_E_INTERRUPTED)
			return WIRE_AGAIN;
	} else {
		got = recv(c->fd, to, max, 0);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return WIRE_AGAIN;
	}
	if (got < 0)
		return WIRE_FAILED;
	*n = (size_t)got;
	return got ? WIRE_OK : WIRE_END;
}

static enum wire wire_send(struct grpc_conn *c, const void *from, size_t len, size_t *n)
{
	ssize_t got;

	if (c->tls) {
		got = gnutls_record_send(c->tls, from, len);
		if (got == GNUTLS_E_AGAIN || got == GNUTLS_E_INTERRUPTED)
			return WIRE_AGAIN;
	} else {
		got = send(c->fd, from, len, MSG_NOSIGNAL);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return WIRE_AGAIN;
	}
	if (got < 0)
		return WIRE_FAILED;
	*n = (size_t)got;
	return WIRE_OK;
}

/* ---- ending ---- */

static void grpc_conn_free(struct grpc_conn *c)
{
	session_free(c->session);
	if (c->tls)
		gnutls_deinit(c->tls);
	buf_release(&c->out);
	free(c);
}

void grpc_conn_end(struct grpc_conn *c, const char *why)
{
	struct grpc_server *s = c->server;

	assert(c->state != CONN_ENDED);
	if (why)
		metric_add(&dropped, why, 1);
	c->state = CONN_ENDED;
	if (c->readable)
		event_free(c->readable);
	if (c->writable)
		event_free(c->writable);
	close(c->fd);
	c->prev->next = c->next;
	c->next->prev = c->prev;
	metric_add(&connections, NULL, -1);
	if (c->session)
		session_close(c->session);
	if (!c->session || !session_handed(c->session))
		grpc_conn_free(c);
	mutex_lock(&s->lock);
	if (!--s->conns_n)
		cond_broadcast(&s->changed);
	mutex_unlock(&s->lock);
}

/* What was sent must not be lost to a reset, so unread bytes are read first. False: it is gone. */
static bool grpc_conn_linger(struct grpc_conn *c)
{
	if (c->tls)
		gnutls_bye(c->tls, GNUTLS_SHUT_WR);
	shutdown(c->fd, SHUT_WR);
	c->state = CONN_LINGER;
	c->since_ns = clock_monotonic_ns();
	if (!session_flooded(c->session))
		return true;
	log_warn("grpc", "connection dropped: too many frames that carry nothing",
		LOG_S("remote", c->remote));
	grpc_conn_end(c, "flood");
	return false;
}

/* ---- sending ---- */

static void grpc_conn_block(struct grpc_conn *c, bool blocked)
{
	if (c->blocked == blocked)
		return;
	c->blocked = blocked;
	if (c->state == CONN_OPEN)
		c->since_ns = clock_monotonic_ns();
	if (blocked) {
		event_del(c->readable);
		event_add(c->writable, NULL);
	} else {
		event_del(c->writable);
		event_add(c->readable, NULL);
	}
}

/* False: nothing is left to send. */
static bool grpc_conn_gather(struct grpc_conn *c)
{
	struct str next;

	if (c->out_at < c->out.len)
		return true;
	buf_clear(&c->out);
	c->out_at = 0;
	while (c->out.len < SEND_BYTES && (next = session_next(c->session)).len)
		buf_add_str(&c->out, next);
	return c->out.len > 0;
}

/* False: the connection is gone. */
static bool grpc_flush(struct grpc_conn *c)
{
	size_t n;

	while (grpc_conn_gather(c)) {
		enum wire w = wire_send(c, c->out.ptr + c->out_at, c->out.len - c->out_at, &n);

		if (w == WIRE_OK) {
			c->out_at += n;
			c->since_ns = c->blocked ? clock_monotonic_ns() : c->since_ns;
		} else if (w == WIRE_AGAIN) {
			grpc_conn_block(c, true);
			return true;
		} else {
			grpc_conn_end(c, NULL); /* the other side is gone */
			return false;
		}
	}
	if (buf_failed(&c->out)) {
		grpc_conn_end(c, "no_memory");
		return false;
	}
	buf_release(&c->out);
	grpc_conn_block(c, false);
	return !session_is_over(c->session) || grpc_conn_linger(c);
}

void grpc_conn_flush(struct grpc_conn *c)
{
	if (c->state == CONN_OPEN)
		(void)grpc_flush(c);
}

void grpc_conn_evict(struct grpc_conn *c)
{
	if (c->state == CONN_OPEN) {
		session_shut(c->session);
		if (!grpc_flush(c))
			return;
	}
	grpc_conn_end(c, "crowded");
}

void grpc_conn_refuse(int fd)
{
	metric_add(&dropped, "crowded", 1);
	close(fd);
}

void grpc_conn_shut(struct grpc_conn *c)
{
	if (c->state == CONN_HANDSHAKE) {
		grpc_conn_end(c, NULL);
	} else if (c->state == CONN_OPEN) {
		session_shut(c->session);
		grpc_conn_flush(c);
	}
}

/* ---- workers ---- */

static void grpc_on_returned(void *ctx)
{
	struct grpc_call *call = ctx;
	struct grpc_conn *c = call->owner;

	session_returned(c->session, call);
	if (c->state == CONN_OPEN && !c->blocked)
		c->since_ns = clock_monotonic_ns();
	if (c->state != CONN_ENDED)
		grpc_conn_flush(c);
	else if (!session_handed(c->session))
		grpc_conn_free(c);
}

static void grpc_work(void *ctx)
{
	struct grpc_call *call = ctx;
	struct grpc_conn *c = call->owner;

	call_run(call);
	loop_post(c->server->loop, &call->work, grpc_on_returned, call);
}

static bool grpc_hand(void *ctx, struct grpc_call *call)
{
	struct grpc_conn *c = ctx;

	call->owner = c;
	return pool_submit(c->server->pool, grpc_work, call);
}

/* ---- receiving ---- */

static const char *grpc_reason_of(const struct err *err)
{
	return err->code == ERR_NOMEM ? "no_memory" : "protocol";
}

/* False: the connection is gone. */
static bool grpc_conn_receive(struct grpc_conn *c, const void *data, size_t n)
{
	struct err err;

	if (!session_receive(c->session, data, n, &err))
		return true;
	log_debug("grpc", "connection ended", LOG_S("remote", c->remote), LOG_E(&err));
	grpc_conn_end(c, grpc_reason_of(&err));
	return false;
}

/* The other side is read to its end, whatever it sends. */
static void grpc_conn_read_lingering(struct grpc_conn *c)
{
	char bytes[READ_BYTES];
	size_t n;
	enum wire w = wire_read(c, bytes, sizeof(bytes), &n);

	if (w == WIRE_END || w == WIRE_FAILED)
		grpc_conn_end(c, NULL);
}

static void grpc_conn_read_open(struct grpc_conn *c)
{
	char bytes[READ_BYTES];
	size_t n;

	for (int i = 0; i < READS_MAX || (c->tls && gnutls_record_check_pending(c->tls)); i++) {
		enum wire w = wire_read(c, bytes, sizeof(bytes), &n);

		if (w == WIRE_AGAIN)
			break;
		if (w != WIRE_OK) {
			grpc_conn_end(c, NULL);
			return;
		}
		if (!grpc_conn_receive(c, bytes, n))
			return;
		if (session_is_over(c->session))
			break;
	}
	grpc_conn_flush(c);
}

static enum err_code grpc_conn_open_session(struct grpc_conn *c, struct err *err)
{
	c->host.tls_session = c->tls;
	return session_open(&c->host, &c->session, err);
}

static bool grpc_speaks_h2(gnutls_session_t tls)
{
	gnutls_datum_t name;

	return gnutls_alpn_get_selected_protocol(tls, &name) == 0 && name.size == 2 &&
		memcmp(name.data, "h2", 2) == 0;
}

static void grpc_conn_shake_hands(struct grpc_conn *c)
{
	struct err err;
	int rc;

	do {
		rc = gnutls_handshake(c->tls);
	} while (rc == GNUTLS_E_WARNING_ALERT_RECEIVED);
	if (rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED) {
		grpc_conn_block(c, gnutls_record_get_direction(c->tls) == 1);
		return;
	}
	if (rc < 0) {
		log_debug("grpc", "TLS handshake failed", LOG_S("remote", c->remote),
			LOG_S("reason", gnutls_strerror(rc)));
		grpc_conn_end(c, "handshake");
	} else if (!grpc_speaks_h2(c->tls)) {
		log_debug("grpc", "TLS without ALPN h2", LOG_S("remote", c->remote));
		grpc_conn_end(c, "handshake");
	} else if (grpc_conn_open_session(c, &err)) {
		grpc_conn_end(c, "no_memory");
	} else {
		grpc_conn_block(c, false);
		c->state = CONN_OPEN;
		grpc_conn_read_open(c);
	}
}

static void grpc_on_event(evutil_socket_t fd, short what, void *ctx)
{
	struct grpc_conn *c = ctx;

	(void)fd;
	if (c->state == CONN_HANDSHAKE)
		grpc_conn_shake_hands(c);
	else if (c->state == CONN_LINGER)
		grpc_conn_read_lingering(c);
	else if (what & EV_WRITE)
		grpc_conn_flush(c);
	else
		grpc_conn_read_open(c);
}

/* ---- opening ---- */

static enum err_code grpc_conn_set_up_tls(struct grpc_conn *c, struct err *err)
{
	const gnutls_datum_t h2 = { (unsigned char *)(uintptr_t) "h2", 2 };
	struct grpc_server *s = c->server;

	if (gnutls_init(&c->tls, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL)) {
		c->tls = NULL;
		return err_nomem(err, "TLS");
	}
	if (gnutls_priority_set(c->tls, s->priorities) ||
		gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, s->credentials) ||
		gnutls_alpn_set_protocols(c->tls, &h2, 1, GNUTLS_ALPN_MANDATORY))
		return err_nomem(err, "TLS");
	gnutls_transport_set_int(c->tls, c->fd);
	c->state = CONN_HANDSHAKE;
	return ERR_OK;
}

static enum err_code grpc_conn_set_up(struct grpc_conn *c, struct err *err)
{
	struct event_base *base = loop_base(c->server->loop);
	enum err_code rc = ERR_OK;
	int one = 1;

	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->readable = event_new(base, c->fd, EV_READ | EV_PERSIST, grpc_on_event, c);
	c->writable = event_new(base, c->fd, EV_WRITE | EV_PERSIST, grpc_on_event, c);
	if (!c->readable || !c->writable)
		return err_nomem(err, "gRPC connection");
	if ((rc = c->server->credentials ? grpc_conn_set_up_tls(c, err) :
									   grpc_conn_open_session(c, err)))
		return rc;
	return event_add(c->readable, NULL) ? err_nomem(err, "gRPC connection") : ERR_OK;
}

void grpc_conn_open(struct grpc_server *s, int fd, const struct sockaddr *client)
{
	struct grpc_conn *c = calloc(1, sizeof(*c));

	if (!c) {
		metric_add(&dropped, "no_memory", 1);
		close(fd);
		return;
	}
	c->server = s;
	c->fd = fd;
	c->state = CONN_OPEN;
	c->since_ns = clock_monotonic_ns();
	c->host = (struct session_host){
		.o = &s->o, .bodies = &s->bodies, .calls_n = &s->calls_n, .hand = grpc_hand, .ctx = c
	};
	http_client_of(client, &c->host.client, c->remote);
	c->host.remote = str_of(c->remote);
	c->prev = s->conns.prev;
	c->next = &s->conns;
	c->prev->next = c->next->prev = c;
	metric_add(&connections, NULL, 1);
	mutex_lock(&s->lock);
	s->conns_n++;
	mutex_unlock(&s->lock);
	if (grpc_conn_set_up(c, NULL))
		grpc_conn_end(c, "no_memory");
	else
		grpc_conn_flush(c);
}

void grpc_conn_tick(struct grpc_conn *c, int64_t now_ns)
{
	if (c->state == CONN_LINGER) {
		if (now_ns - c->since_ns >= LINGER_NS)
			grpc_conn_end(c, NULL);
		return;
	}
	if (c->state == CONN_HANDSHAKE || !session_greeted(c->session)) {
		if (now_ns - c->since_ns >= GREETING_NS)
			grpc_conn_end(c, "handshake");
		return;
	}
	if (c->blocked) {
		if (now_ns - c->since_ns >= STALL_NS)
			grpc_conn_end(c, "stalled");
		return;
	}
	session_tick(c->session, now_ns);
	if (session_calls(c->session))
		c->since_ns = now_ns;
	else if (now_ns - c->since_ns >= c->server->o.read_timeout_ns)
		session_shut(c->session);
	grpc_conn_flush(c);
}
