/*
 * The life of a connection, as the watcher sees it (struct conn, all under server.lock):
 *
 *   RECEIVING  opened, or answered and kept alive; since `since_ns`. TLS and a whole head must come
 *              within the read timeout, drips or not, or the socket is shut down. When all
 *              connections are taken, one of these makes room (web/http/crowd.h).
 *   BODY       the request was admitted on its head; its body must come within the body timeout.
 *   PIECES     its body comes, and a worker reads it meanwhile (web/http/intake.h): so many bytes
 *              must come within the body timeout. While the worker is slower than the client, the
 *              connection is suspended and WORKING. In this and the next state, and in BODY, we
 *              repeat the event of the client's end: libmicrohttpd waits for edges and stops at a
 *              read that was shorter than its buffer, so it would miss an end right behind it.
 *   REFUSED_BODY
 *              it was not, or its worker has answered; its body is read and dropped, so that its
 *              sender reads the answer.
 *   WORKING    a worker has the request, or verifies whether its body is taken. When the client's
 *              side closes, the request is marked canceled.
 *   SENDING    the answer is on its way, and must be taken within SEND_TIMEOUT_NS.
 *
 * A long answer is sent while its worker still writes it (web/http/stream.h): then the connection
 * is resumed at the first piece, stays WORKING till the last one is written, and may end before its
 * worker does, which then frees the exchange.
 */
#include <assert.h>
#include <errno.h>
#include <linux/tcp.h> /* its struct tcp_info is whole */
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "web/http/exchange.h"

METRIC_COUNTER(dropped, "epimetheus_http_connections_dropped_total",
	"HTTP connections that this server ended, by reason: crowded (without a whole head, or at "
	"rest) "
	"and stalled (a body or an answer) made room for another; head, body, answer did not come or "
	"go in time; no_memory.",
	"reason");

#define SEND_TIMEOUT_NS (10 * NS_PER_MIN)
/* When three quarters of the connections are taken, slow bodies get less time. */
#define CROWDED_TIMEOUT_NS (5 * NS_PER_S)
/* A body or an answer of which no byte moved for so long makes room. */
#define STALLED_MS 1000u
/* So many that are being read are passed over, before the receiving thread gets its turn. */
#define LOOKS_MAX 64
#define LOG_NS (10 * NS_PER_S)
/* A refused request gets less time for its body. */
#define REFUSED_BODY_TIMEOUT_NS (10 * NS_PER_S)
#define WATCH_NS (200 * NS_PER_MS)

void conn_set(struct http_server *s, struct conn *c, enum conn_state state, struct exchange *e)
{
	mutex_assert_held(&s->lock);
	assert(!e == (state != CONN_WORKING && state != CONN_PIECES));
	c->state = state;
	c->since_ns = clock_monotonic_ns();
	c->exchange = e;
	crowd_leave(&s->crowd, &c->waiting);
	if (state == CONN_RECEIVING && !c->let_go)
		crowd_join(&s->crowd, &c->waiting, c->client);
}

/* libmicrohttpd notices and closes. */
static void conns_let_go(struct http_server *s, struct conn *c, const char *why)
{
	mutex_assert_held(&s->lock);
	assert(!c->let_go);
	c->let_go = true;
	s->let_go_n++;
	crowd_leave(&s->crowd, &c->waiting);
	shutdown(c->fd, SHUT_RDWR);
	if (why)
		metric_add(&dropped, why, 1);
}

void conns_count_no_memory(void)
{
	metric_add(&dropped, "no_memory", 1);
}

/* ---- what libmicrohttpd tells ---- */

static void conns_open_conn(struct http_server *s, struct MHD_Connection *connection, void **to)
{
	const union MHD_ConnectionInfo *fd = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	const union MHD_ConnectionInfo *client = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct conn *c = fd ? calloc(1, sizeof(*c)) : NULL;
	char text[HTTP_REMOTE_BYTES];

	*to = c;
	mutex_lock(&s->lock);
	s->pending_n -= s->pending_n > 0;
	s->pending_ns = clock_monotonic_ns();
	if (c) {
		c->fd = fd->connect_fd;
		if (client && client->client_addr)
			http_client_of(client->client_addr, &c->client, text);
		conn_set(s, c, CONN_RECEIVING, NULL);
		c->prev = &s->conns;
		c->next = s->conns.next;
		c->next->prev = c;
		c->prev->next = c;
		s->conns_n++;
	} else {
		conns_count_no_memory();
		if (fd)
			shutdown(fd->connect_fd, SHUT_RDWR);
	}
	cond_signal(&s->room);
	mutex_unlock(&s->lock);
}

static void conns_close_conn(struct http_server *s, struct conn *c)
{
	mutex_lock(&s->lock);
	c->prev->next = c->next;
	c->next->prev = c->prev;
	crowd_leave(&s->crowd, &c->waiting);
	assert(s->conns_n && s->let_go_n >= c->let_go);
	s->conns_n--;
	s->let_go_n -= c->let_go;
	cond_signal(&s->room);
	mutex_unlock(&s->lock);
	free(c);
}

void conns_notify(void *ctx, struct MHD_Connection *connection, void **socket_context,
	enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		conns_open_conn(ctx, connection, socket_context);
	} else if (*socket_context) {
		conns_close_conn(ctx, *socket_context);
		*socket_context = NULL;
	}
}

/* ---- making room ---- */

/*
 * The receiving thread may be at its head now, or has not come to it yet: bytes are unread, or have
 * come just now. Whoever never sent one has no such excuse.
 */
static bool conns_is_being_read(int fd, unsigned quiet_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (poll(&p, 1, 0) != 0)
		return true;
	return quiet_ms && !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
		info.tcpi_bytes_received && info.tcpi_last_data_recv < quiet_ms;
}

static bool conns_is_stalled(const struct conn *c)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (c->let_go || c->state == CONN_RECEIVING || c->state == CONN_WORKING)
		return false;
	if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return true;
	return (c->state == CONN_SENDING ? info.tcpi_last_data_sent : info.tcpi_last_data_recv) >=
		STALLED_MS;
}

bool conns_make_room(struct http_server *s, unsigned quiet_ms)
{
	struct crowd_member *m = NULL;

	mutex_assert_held(&s->lock);
	for (int i = 0; i < LOOKS_MAX && (m = crowd_next(&s->crowd, m)); i++) {
		struct conn *c = (struct conn *)m; /* its first field */

		if (conns_is_being_read(c->fd, quiet_ms))
			continue;
		conns_let_go(s, c, "crowded");
		s->room_made_n++;
		return true;
	}
	for (struct conn *c = s->conns.prev; c != &s->conns; c = c->prev) {
		if (!conns_is_stalled(c))
			continue;
		conns_let_go(s, c, "stalled");
		s->room_made_n++;
		return true;
	}
	return false;
}

/* ---- the watcher ---- */

static bool conns_client_gone(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

static int64_t conns_patience_ns(const struct http_server *s, const struct conn *c)
{
	bool crowded = s->conns_n >= s->o.connections_max - s->o.connections_max / 4;
	int64_t most = s->o.read_timeout_ns;

	mutex_assert_held(&s->lock);
	if (c->state == CONN_RECEIVING)
		return most;
	if (c->state == CONN_SENDING)
		return SEND_TIMEOUT_NS;
	if (c->state == CONN_BODY || c->state == CONN_PIECES)
		most = s->o.body_timeout_ns;
	else if (c->state == CONN_REFUSED_BODY && most > REFUSED_BODY_TIMEOUT_NS)
		most = REFUSED_BODY_TIMEOUT_NS;
	return crowded && most > CROWDED_TIMEOUT_NS ? CROWDED_TIMEOUT_NS : most;
}

static bool conns_reads_body(const struct conn *c)
{
	return c->state == CONN_BODY || c->state == CONN_PIECES || c->state == CONN_REFUSED_BODY;
}

static const char *conns_lateness_of(const struct conn *c)
{
	if (c->state == CONN_RECEIVING)
		return c->answered ? NULL : "head";
	return c->state == CONN_SENDING ? "answer" : "body";
}

static void conns_watch_conn(struct http_server *s, struct conn *c, int64_t now)
{
	if (c->state == CONN_WORKING) {
		if (c->exchange && conns_client_gone(c->fd))
			atomic_store(&c->exchange->in.canceled, true);
	} else if (c->let_go) {
		shutdown(c->fd, SHUT_RDWR); /* one more edge, as below */
	} else if (now - c->since_ns > conns_patience_ns(s, c)) {
		conns_let_go(s, c, conns_lateness_of(c));
	} else if (conns_reads_body(c) && conns_client_gone(c->fd)) {
		shutdown(c->fd, SHUT_RD); /* one more edge; what came before can still be read */
	}
}

static void conns_log_room(struct http_server *s, int64_t now)
{
	unsigned n = s->room_made_n;

	mutex_assert_held(&s->lock);
	if (!n || now - s->logged_ns < LOG_NS)
		return;
	s->room_made_n = 0;
	s->logged_ns = now;
	mutex_unlock(&s->lock); /* a log that is slow must not hold up connections */
	log_warn("web", "connections dropped to make room for others", LOG_I("dropped", n),
		LOG_I("web.max-connections", s->o.connections_max));
	mutex_lock(&s->lock);
}

void conns_watch(void *ctx)
{
	struct http_server *s = ctx;

	mutex_lock(&s->lock);
	while (!s->closing || s->conns_n) {
		int64_t now = clock_monotonic_ns();

		for (struct conn *c = s->conns.next; c != &s->conns; c = c->next)
			conns_watch_conn(s, c, now);
		conns_log_room(s, now);
		cond_wait_until(&s->changed, &s->lock, now + WATCH_NS);
	}
	mutex_unlock(&s->lock);
}
