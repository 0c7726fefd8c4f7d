/*
 * Listening, the ring of connections, closing.
 *
 * When all connections are taken, the one that has been without a call for longest makes room: its
 * sender opens another one. If all have calls, the new one is closed.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "web/grpc/conn.h"
#include "web/http/listen.h"

#define QUEUE_MAX 4096
#define TICK_NS NS_PER_S
#define ACCEPTS_MAX 64 /* then others have their turn */
#define LINGER_NS NS_PER_S /* at the end */

/* ---- connections ---- */

static unsigned grpc_conns(struct grpc_server *s)
{
	unsigned n;

	mutex_lock(&s->lock);
	n = s->conns_n;
	mutex_unlock(&s->lock);
	return n;
}

static void grpc_make_room(struct grpc_server *s)
{
	struct grpc_conn *idle = NULL;

	for (struct grpc_conn *c = s->conns.next; c != &s->conns; c = c->next)
		if ((!c->session || !session_calls(c->session)) && (!idle || c->since_ns < idle->since_ns))
			idle = c;
	if (idle)
		grpc_conn_evict(idle);
}

static void grpc_on_acceptable(evutil_socket_t fd, short what, void *ctx)
{
	struct grpc_server *s = ctx;

	(void)what;
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		struct sockaddr_storage client = { 0 };
		socklen_t len = sizeof(client);
		int peer = accept4(fd, (struct sockaddr *)&client, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (peer < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
			event_del(s->acceptable); /* until the next tick */
			s->accepting = false;
		}
		if (peer < 0)
			return;
		if (grpc_conns(s) >= s->o.connections_max)
			grpc_make_room(s);
		if (grpc_conns(s) < s->o.connections_max)
			grpc_conn_open(s, peer, (struct sockaddr *)&client);
		else
			grpc_conn_refuse(peer);
	}
}

static void grpc_on_tick(evutil_socket_t fd, short what, void *ctx)
{
	struct grpc_server *s = ctx;
	int64_t now_ns = clock_monotonic_ns();
	struct grpc_conn *c, *next;

	(void)fd;
	(void)what;
	for (c = s->conns.next; c != &s->conns; c = next) {
		next = c->next;
		grpc_conn_tick(c, now_ns);
	}
	if (!s->accepting && !s->closing) {
		event_add(s->acceptable, NULL);
		s->accepting = true;
	}
	timer_after(s->tick, TICK_NS);
}

/* ---- opening ---- */

static enum err_code grpc_open_tls(struct grpc_server *s, struct err *err)
{
	const char *at;

	if (gnutls_certificate_allocate_credentials(&s->credentials)) {
		s->credentials = NULL;
		return err_nomem(err, "TLS");
	}
	gnutls_certificate_set_retrieve_function2(
		s->credentials, (gnutls_certificate_retrieve_function2 *)s->o.tls_certificate_fn);
	if (gnutls_priority_init(&s->priorities, s->o.tls_priorities, &at)) {
		s->priorities = NULL;
		return err_nomem(err, "TLS");
	}
	return ERR_OK;
}

static void grpc_begin(void *ctx)
{
	struct grpc_server *s = ctx;
	struct event_base *base = loop_base(s->loop);

	s->acceptable = event_new(base, s->fd, EV_READ | EV_PERSIST, grpc_on_acceptable, s);
	s->tick = evtimer_new(base, grpc_on_tick, s);
	if (!s->acceptable || !s->tick || event_add(s->acceptable, NULL))
		return;
	s->accepting = true;
	timer_after(s->tick, TICK_NS);
}

static enum err_code grpc_open_all(struct grpc_server *s, struct err *err)
{
	enum err_code rc;

	if (s->o.tls_certificate_fn && (rc = grpc_open_tls(s, err)))
		return rc;
	if ((rc = listen_open(s->o.listen_address, s->o.bound, &s->fd, &s->port, err)))
		return rc;
	if ((rc = pool_open("grpc", s->o.workers, QUEUE_MAX, &s->pool, err)))
		return rc;
	if ((rc = loop_open("grpc-recv", &s->loop, err)))
		return rc;
	loop_call(s->loop, grpc_begin, s);
	return s->accepting ? ERR_OK : err_nomem(err, "gRPC server");
}

enum err_code grpc_server_open(
	const struct grpc_server_options *o, struct grpc_server **out, struct err *err)
{
	struct grpc_server *s = calloc(1, sizeof(*s));
	enum err_code rc;

	assert(o->workers && o->connections_max && o->body_timeout_ns && o->read_timeout_ns);
	if (!s)
		return err_nomem(err, "gRPC server");
	s->o = *o;
	s->fd = -1;
	s->conns.next = s->conns.prev = &s->conns;
	bodies_init(&s->bodies, o->bodies_bytes_max, o->address_bodies_bytes_max);
	mutex_init(&s->lock);
	cond_init(&s->changed);
	if ((rc = grpc_open_all(s, err))) {
		grpc_server_close(s, 0);
		return rc;
	}
	*out = s;
	return ERR_OK;
}

unsigned grpc_server_port(const struct grpc_server *s)
{
	return s->port;
}

/* ---- closing ---- */

static void grpc_each_conn(struct grpc_server *s, void (*fn)(struct grpc_conn *c))
{
	struct grpc_conn *c, *next;

	for (c = s->conns.next; c != &s->conns; c = next) {
		next = c->next;
		fn(c);
	}
}

static void grpc_shut(void *ctx)
{
	struct grpc_server *s = ctx;

	s->closing = true;
	s->accepting = false;
	if (s->acceptable)
		event_free(s->acceptable);
	s->acceptable = NULL;
	grpc_each_conn(s, grpc_conn_shut);
}

static void grpc_cancel_conn(struct grpc_conn *c)
{
	if (c->session)
		session_cancel(c->session);
}

static void grpc_cancel(void *ctx)
{
	grpc_each_conn(ctx, grpc_cancel_conn);
}

static void grpc_end_conn(struct grpc_conn *c)
{
	grpc_conn_end(c, NULL);
}

static void grpc_finish(void *ctx)
{
	struct grpc_server *s = ctx;

	grpc_each_conn(s, grpc_end_conn);
	if (s->tick)
		event_free(s->tick);
	s->tick = NULL;
}

static void grpc_wait_for_conns(struct grpc_server *s, int64_t ns)
{
	int64_t deadline = clock_monotonic_ns() + ns;

	mutex_lock(&s->lock);
	while (s->conns_n && cond_wait_until(&s->changed, &s->lock, deadline))
		;
	mutex_unlock(&s->lock);
}

/* Connections end by themselves once their calls are answered and the other side has read it. */
static void grpc_end_conns(struct grpc_server *s, int64_t grace_ns)
{
	loop_call(s->loop, grpc_shut, s);
	grpc_wait_for_conns(s, grace_ns);
	loop_call(s->loop, grpc_cancel, s);
	pool_close(s->pool); /* runs what is queued; what it posts comes before the next call */
	s->pool = NULL;
	grpc_wait_for_conns(s, LINGER_NS);
	loop_call(s->loop, grpc_finish, s);
}

void grpc_server_close(struct grpc_server *s, int64_t grace_ns)
{
	if (!s)
		return;
	if (s->loop)
		grpc_end_conns(s, grace_ns);
	pool_close(s->pool);
	loop_close(s->loop);
	if (s->fd >= 0)
		close(s->fd);
	if (s->priorities)
		gnutls_priority_deinit(s->priorities);
	if (s->credentials)
		gnutls_certificate_free_credentials(s->credentials);
	cond_destroy(&s->changed);
	mutex_destroy(&s->lock);
	free(s);
}
