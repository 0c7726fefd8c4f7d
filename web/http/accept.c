/*
 * Accepting. A connection over the limit is not accepted before there is room for it: one that may
 * go is let go at once, so nobody waits for a timeout of others. Where none may go (all have
 * requests under way) new ones wait in the kernel's queue.
 *
 * libmicrohttpd would not accept at its limit, and would not say so. It gets each socket from this
 * thread, and takes it over on its own: until then the connection is pending.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "web/http/exchange.h"

/* So many connections that were let go may be open beside as many as are allowed. */
#define LET_GO_MAX 128u
#define RETRY_NS (20 * NS_PER_MS)
/*
 * A connection of which bytes came so lately is spared: its head may be whole. If that leaves no
 * room for PATIENCE_NS, drips do not count as a head that comes, for PRESSED_NS.
 */
#define QUIET_MS 50u
#define PATIENCE_NS (100 * NS_PER_MS)
#define PRESSED_NS (10 * NS_PER_S)
/* Of a connection that is pending for longer, libmicrohttpd had no memory, and said nothing. */
#define PENDING_NS NS_PER_S

/* ---- room ---- */

static bool http_accept_has_room(struct http_server *s, int64_t now)
{
	unsigned taken = s->conns_n - s->let_go_n + s->pending_n;

	mutex_assert_held(&s->lock);
	if (s->conns_n + s->pending_n >= s->o.connections_max + LET_GO_MAX)
		return false; /* libmicrohttpd is closing them */
	return taken < s->o.connections_max ||
		conns_make_room(s, now < s->pressed_until_ns ? 0 : QUIET_MS);
}

static void http_accept_wait(struct http_server *s, int64_t now)
{
	mutex_assert_held(&s->lock);
	cond_wait_until(&s->room, &s->lock, now + RETRY_NS);
	if (now - s->pending_ns > PENDING_NS)
		s->pending_n = 0;
}

/* False: the server is closing. */
static bool http_accept_await_room(struct http_server *s)
{
	int64_t began = clock_monotonic_ns(), now = began;
	bool closing;

	mutex_lock(&s->lock);
	while (!s->closing && !http_accept_has_room(s, now)) {
		http_accept_wait(s, now);
		now = clock_monotonic_ns();
		if (now - began > PATIENCE_NS)
			s->pressed_until_ns = now + PRESSED_NS;
	}
	closing = s->closing;
	mutex_unlock(&s->lock);
	return !closing;
}

/* No descriptor or memory is left for another connection: one less may help. */
static void http_accept_give_way(struct http_server *s)
{
	mutex_lock(&s->lock);
	(void)conns_make_room(s, QUIET_MS);
	if (!s->closing)
		http_accept_wait(s, clock_monotonic_ns());
	mutex_unlock(&s->lock);
}

/* ---- the thread ---- */

static void http_accept_count(struct http_server *s, int change)
{
	mutex_lock(&s->lock);
	if (change > 0 || s->pending_n)
		s->pending_n += (unsigned)change;
	s->pending_ns = clock_monotonic_ns();
	mutex_unlock(&s->lock);
}

static void http_accept_one(struct http_server *s)
{
	struct sockaddr_storage client = { 0 };
	socklen_t len = sizeof(client);
	int fd = accept4(s->fd, (struct sockaddr *)&client, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
		http_accept_give_way(s);
	if (fd < 0)
		return;
	http_accept_count(s, 1);
	if (MHD_add_connection(s->daemon, fd, (struct sockaddr *)&client, len) != MHD_YES) {
		conns_count_no_memory();
		http_accept_count(s, -1);
	}
}

void http_accept(void *ctx)
{
	struct http_server *s = ctx;
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	for (;;) {
		if (poll(&p, 1, -1) < 0)
			continue;
		if (p.revents & (POLLHUP | POLLERR | POLLNVAL)) /* http_accept_stop */
			return;
		if (http_accept_await_room(s)) /* nobody is let go for a connection that does not come */
			http_accept_one(s);
	}
}

void http_accept_stop(struct http_server *s)
{
	if (!s->acceptor.started)
		return;
	mutex_lock(&s->lock);
	s->closing = true;
	cond_broadcast(&s->changed);
	cond_broadcast(&s->room);
	mutex_unlock(&s->lock);
	shutdown(s->fd, SHUT_RDWR); /* poll sees the end of the listening socket */
	thread_join(&s->acceptor);
}
