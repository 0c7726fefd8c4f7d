/*
 * The life of a connection, as the watcher sees it (struct conn, all under server.lock):
 *
 *   RECEIVING  opened, or answered and kept alive; since `since_ns`. A whole head must come
 *              within the read timeout, drips or not, or the socket is shut down.
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
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "web/http/exchange.h"

#define SEND_TIMEOUT_NS (10 * NS_PER_MIN)
/* When three quarters of the connections are taken, slow senders get less time. */
#define CROWDED_TIMEOUT_NS (5 * NS_PER_S)
/* A refused request gets less time for its body. */
#define REFUSED_BODY_TIMEOUT_NS (10 * NS_PER_S)
#define WATCH_NS (200 * NS_PER_MS)

void conn_set(
	const struct http_server *s, struct conn *c, enum conn_state state, struct exchange *e)
{
	mutex_assert_held(&s->lock);
	assert(!e == (state != CONN_WORKING && state != CONN_PIECES));
	c->state = state;
	c->since_ns = clock_monotonic_ns();
	c->exchange = e;
}

void conns_notify(void *ctx, struct MHD_Connection *connection, void **socket_context,
	enum MHD_ConnectionNotificationCode what)
{
	struct http_server *s = ctx;
	const union MHD_ConnectionInfo *info;
	struct conn *c = *socket_context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		c = calloc(1, sizeof(*c));
		*socket_context = c;
		if (!c || !info)
			return; /* on_request refuses its requests then */
		c->fd = info->connect_fd;
		mutex_lock(&s->lock);
		conn_set(s, c, CONN_RECEIVING, NULL);
		c->prev = &s->conns;
		c->next = s->conns.next;
		c->next->prev = c;
		c->prev->next = c;
		s->conns_n++;
		mutex_unlock(&s->lock);
	} else if (c) {
		mutex_lock(&s->lock);
		if (c->next) {
			c->prev->next = c->next;
			c->next->prev = c->prev;
			assert(s->conns_n);
			s->conns_n--;
		}
		mutex_unlock(&s->lock);
		free(c);
		*socket_context = NULL;
	}
}

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

static void conns_watch_conn(struct http_server *s, struct conn *c, int64_t now)
{
	if (c->state == CONN_WORKING) {
		if (c->exchange && conns_client_gone(c->fd))
			atomic_store(&c->exchange->in.canceled, true);
	} else if (now - c->since_ns > conns_patience_ns(s, c)) {
		shutdown(c->fd, SHUT_RDWR); /* libmicrohttpd notices and closes */
	} else if (conns_reads_body(c) && conns_client_gone(c->fd)) {
		shutdown(c->fd, SHUT_RD); /* one more edge; what came before can still be read */
	}
}

void conns_watch(void *ctx)
{
	struct http_server *s = ctx;

	mutex_lock(&s->lock);
	while (!s->closing || s->conns_n) {
		int64_t now = clock_monotonic_ns();

		for (struct conn *c = s->conns.next; c != &s->conns; c = c->next)
			conns_watch_conn(s, c, now);
		cond_wait_until(&s->changed, &s->lock, now + WATCH_NS);
	}
	mutex_unlock(&s->lock);
}
