/*
 * The life of a connection, as the watcher sees it (struct conn, all under server.lock):
 *
 *   RECEIVING  opened, or answered and kept alive; since `since_ns`. A whole head must come
 *              within the read timeout, drips or not, or the socket is shut down.
 *   BODY       the request was admitted on its head; its body must come within the body timeout.
 *   REFUSED_BODY
 *              it was not; its body is read and dropped, so that its sender reads the answer.
 *   WORKING    a worker has the request, or verifies whether its body is taken. When the client's
 *              side closes, the request is marked canceled.
 *   SENDING    the answer is on its way, and must be taken within SEND_TIMEOUT_NS.
 *
 * A long answer is sent while its worker still writes it (web/http/stream.h): then the connection
 * is resumed at the first piece, stays WORKING till the last one is written, and may end before its
 * worker does, which then frees the exchange.
 *
 * Invariants: a conn is in the list from libmicrohttpd's STARTED to its CLOSED notification, so its
 * socket is open while the lock is held and it is in the list. An exchange belongs to the receiving
 * thread, except from pool_submit to MHD_resume_connection, when it belongs to its worker; nobody
 * frees it meanwhile. Once a streamed answer has begun, nobody changes its status and headers.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "web/http/exchange.h"
#include "web/http/listen.h"

#define SEND_TIMEOUT_NS (10 * NS_PER_MIN)
#define FLUSH_NS NS_PER_S
/* When three quarters of the connections are taken, slow senders get less time. */
#define CROWDED_TIMEOUT_NS (5 * NS_PER_S)
/* A refused request gets less time for its body. */
#define REFUSED_BODY_TIMEOUT_NS (10 * NS_PER_S)
#define WATCH_NS (200 * NS_PER_MS)
#define QUEUE_MAX 4096
#define SEND_BLOCK_BYTES (32u << 10)
#define CONNECTION_MEMORY_BYTES (64u << 10) /* request line and headers */
/* So much of a refused body is read and dropped, so that its sender reads the answer. */
#define DISCARD_BYTES_MAX (64u << 20)

/* ---- connections ---- */

static void conn_set(
	const struct http_server *s, struct conn *c, enum conn_state state, struct exchange *x)
{
	mutex_assert_held(&s->lock);
	assert(!x == (state != CONN_WORKING));
	c->state = state;
	c->since_ns = clock_monotonic_ns();
	c->exchange = x;
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **socket_context,
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

/* Nobody else waits for requests to end: the watcher would look at all connections, each time. */
static void tell_closer(struct http_server *s)
{
	mutex_assert_held(&s->lock);
	if (s->closing)
		cond_broadcast(&s->changed);
}

static bool client_gone(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

static int64_t patience_ns(const struct http_server *s, const struct conn *c)
{
	bool crowded = s->conns_n >= s->o.connections_max - s->o.connections_max / 4;
	int64_t most = s->o.read_timeout_ns;

	mutex_assert_held(&s->lock);
	if (c->state == CONN_SENDING)
		return SEND_TIMEOUT_NS;
	if (c->state == CONN_BODY)
		most = s->o.body_timeout_ns;
	else if (c->state == CONN_REFUSED_BODY && most > REFUSED_BODY_TIMEOUT_NS)
		most = REFUSED_BODY_TIMEOUT_NS;
	return crowded && most > CROWDED_TIMEOUT_NS ? CROWDED_TIMEOUT_NS : most;
}

static void watch_conn(struct http_server *s, struct conn *c, int64_t now)
{
	if (c->state == CONN_WORKING) {
		if (c->exchange && client_gone(c->fd))
			atomic_store(&c->exchange->in.canceled, true);
	} else if (now - c->since_ns > patience_ns(s, c)) {
		shutdown(c->fd, SHUT_RDWR); /* libmicrohttpd notices and closes */
	}
}

static void watch(void *ctx)
{
	struct http_server *s = ctx;

	mutex_lock(&s->lock);
	while (!s->closing || s->conns_n) {
		int64_t now = clock_monotonic_ns();

		for (struct conn *c = s->conns.next; c != &s->conns; c = c->next)
			watch_conn(s, c, now);
		cond_wait_until(&s->changed, &s->lock, now + WATCH_NS);
	}
	mutex_unlock(&s->lock);
}

/* ---- requests ---- */

/* False: it passed DISCARD_BYTES_MAX; the connection ends. */
static bool take_body(struct exchange *x, const char *data, size_t n)
{
	struct http_server *s = x->server;

	if (x->admission == HTTP_ADMITTED)
		body_add(&s->bodies, &x->body, x->in.client, data, n, x->in.body_bytes_max);
	if (x->admission == HTTP_ADMITTED && !x->body.refused)
		return true;
	x->discarded += n;
	return x->discarded <= DISCARD_BYTES_MAX;
}

/* True if Content-Length is more than would be read to its end: answered before the body comes. */
static bool announces_too_much(struct exchange *x)
{
	const char *text = MHD_lookup_connection_value(
		x->connection, MHD_HEADER_KIND, "Content-Length");
	uint64_t n;

	return text && str_to_u64(str_of(text), &n) && n > x->server->o.body_bytes_max &&
		n - x->server->o.body_bytes_max > DISCARD_BYTES_MAX;
}

/* ---- answers ---- */

static enum MHD_Result send_response(struct exchange *x)
{
	struct http_out *out = &x->out;
	struct MHD_Response *r;
	enum MHD_Result rc;

	if (stream_started(&x->stream)) {
		r = MHD_create_response_from_callback(
			MHD_SIZE_UNKNOWN, SEND_BLOCK_BYTES, exchange_read_stream, x, NULL);
	} else if (out->fixed_body) {
		r = MHD_create_response_from_buffer(
			out->fixed_len, (void *)(uintptr_t)out->fixed_body, MHD_RESPMEM_PERSISTENT);
	} else {
		r = MHD_create_response_from_buffer(out->body.len, out->body.ptr, MHD_RESPMEM_MUST_FREE);
		if (r)
			out->body = (struct buf){ 0 }; /* the response has it now */
	}
	if (!r)
		return MHD_NO;
	if (out->content_type)
		MHD_add_response_header(r, "Content-Type", out->content_type);
	for (size_t i = 0; i < out->headers_n; i++)
		MHD_add_response_header(r, out->headers[i].name, out->headers[i].value.ptr);
	if (!stream_started(&x->stream))
		body_drop(&x->server->bodies, &x->body); /* the answer may take long to send */
	rc = MHD_queue_response(x->connection, (unsigned)out->status, r);
	MHD_destroy_response(r);
	return rc;
}

/* ---- to a worker ---- */

enum handed {
	HANDED,
	HANDED_NOT, /* the server is ending */
	HANDED_BACK, /* the queue is full: the connection resumes after this call of MHD's */
};

static enum handed to_worker(struct exchange *x, void (*fn)(void *ctx))
{
	struct http_server *s = x->server;
	bool closing;

	mutex_lock(&s->lock);
	closing = s->closing;
	if (!closing) {
		conn_set(s, x->conn, CONN_WORKING, x);
		x->working = true;
		s->working++;
	}
	mutex_unlock(&s->lock);
	if (closing)
		return HANDED_NOT;
	MHD_suspend_connection(x->connection);
	if (pool_submit(s->pool, fn, x))
		return HANDED;
	mutex_lock(&s->lock);
	conn_set(s, x->conn, CONN_SENDING, NULL);
	x->working = false;
	assert(s->working);
	s->working--;
	mutex_unlock(&s->lock);
	MHD_resume_connection(x->connection);
	return HANDED_BACK;
}

static void refuse(struct exchange *x, enum handed handed)
{
	http_text(&x->out, 503,
		handed == HANDED_NOT ? "the server is ending" : "too many requests are waiting");
}

/* ---- admission, before the body ---- */

/* Replaces the answer, with the headers that describe it. */
static void say_no_memory(struct http_out *out)
{
	buf_release(&out->body);
	out->headers_n = 0;
	http_text(out, 503, "out of memory");
}

static bool has_header(struct exchange *x, const char *name)
{
	return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name) != NULL;
}

static bool has_body(struct exchange *x)
{
	const char *length = MHD_lookup_connection_value(
		x->connection, MHD_HEADER_KIND, "Content-Length");

	return has_header(x, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

static void set_admission(struct exchange *x, enum http_admission admission)
{
	mutex_assert_held(&x->server->lock);
	x->admission = admission;
	conn_set(x->server, x->conn, admission == HTTP_ADMITTED ? CONN_BODY : CONN_REFUSED_BODY, NULL);
}

/* On a worker, where a password may be verified; no byte of the body is read meanwhile. */
static void admit_later(void *ctx)
{
	struct exchange *x = ctx;
	struct http_server *s = x->server;
	enum http_admission admission = s->o.admit(s->o.ctx, &x->in, &x->out, true);

	mutex_lock(&s->lock);
	set_admission(x, admission);
	x->working = false;
	assert(s->working);
	s->working--;
	tell_closer(s);
	mutex_unlock(&s->lock);
	MHD_resume_connection(x->connection);
}

/*
 * The admission is known and no byte of the body was read. A sender that waits for "100 Continue"
 * gets a refusal now; others would not read it before they have sent their body.
 */
static enum MHD_Result admitted(struct exchange *x)
{
	if (x->admission == HTTP_ANSWERED && has_header(x, "Expect"))
		return send_response(x);
	return MHD_YES;
}

/*
 * Decides on the head whether the body is taken. libmicrohttpd calls again for the head when a
 * connection resumes that was suspended in its first call.
 */
static enum MHD_Result admit(struct exchange *x)
{
	struct http_server *s = x->server;
	enum http_admission admission = HTTP_ADMITTED;
	enum handed handed;

	if (x->in.no_memory) { /* a head that is not complete cannot be judged */
		say_no_memory(&x->out);
		admission = HTTP_ANSWERED;
	} else if (s->o.admit) {
		admission = s->o.admit(s->o.ctx, &x->in, &x->out, false);
	}
	if (admission == HTTP_ADMIT_LATER) {
		handed = to_worker(x, admit_later);
		x->admitting = handed != HANDED_NOT;
		if (handed == HANDED)
			return MHD_YES;
		refuse(x, handed);
		admission = HTTP_ANSWERED;
	}
	mutex_lock(&s->lock);
	set_admission(x, admission);
	mutex_unlock(&s->lock);
	return x->admitting ? MHD_YES : admitted(x);
}

/* ---- whole requests ---- */

/* An answer is made of many buffers. If one of them failed, the answer is wrong and is replaced. */
static void handle(struct http_server *s, struct exchange *x)
{
	uint64_t failures = buf_failures();

	if (buf_failed(&x->body.data) || x->in.no_memory)
		say_no_memory(&x->out);
	else
		s->o.handler(s->o.ctx, &x->in, &x->out);
	if (buf_failures() == failures)
		return;
	if (stream_started(&x->stream))
		x->out.failed = true;
	else if (buf_failed(&x->out.body) || x->out.status < 400)
		say_no_memory(&x->out);
}

static void work(void *ctx)
{
	struct exchange *x = ctx;
	struct http_server *s = x->server;
	bool streaming, orphaned;

	x->in.body = buf_str(&x->body.data);
	x->in.body_refused = x->body.refused;
	handle(s, x);
	streaming = stream_started(&x->stream);
	if (streaming)
		exchange_end_stream(x);
	mutex_lock(&s->lock);
	x->working = false;
	orphaned = x->orphaned;
	if (!orphaned)
		conn_set(s, x->conn, CONN_SENDING, NULL);
	assert(s->working);
	s->working--;
	tell_closer(s);
	/* From here on a streamed exchange may be freed by the other thread. */
	mutex_unlock(&s->lock);
	if (orphaned)
		exchange_close(x);
	else if (!streaming)
		MHD_resume_connection(x->connection);
}

/* The request is whole: it goes to a worker, or is refused when the queue is full. */
static enum MHD_Result submit(struct exchange *x)
{
	enum handed handed;

	x->submitted = true;
	x->body.whole = true;
	if ((handed = to_worker(x, work)) == HANDED)
		return MHD_YES;
	refuse(x, handed);
	return handed == HANDED_NOT ? send_response(x) : MHD_YES;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *data, size_t *data_n, void **state)
{
	struct http_server *s = ctx;
	struct exchange *x = *state;

	(void)version;
	if (!x) {
		x = exchange_open(s, connection, url, method);
		*state = x;
		if (!x || !x->conn || !x->conn->next)
			return MHD_NO;
		if (!announces_too_much(x))
			return has_body(x) ? admit(x) : MHD_YES;
		http_text(&x->out, 413, "the body is longer than this server takes");
		return send_response(x);
	}
	if (x->admitting) {
		x->admitting = false;
		return admitted(x);
	}
	if (*data_n) {
		if (!take_body(x, data, *data_n))
			return MHD_NO;
		*data_n = 0;
		return MHD_YES;
	}
	return x->submitted || x->admission == HTTP_ANSWERED ? send_response(x) : submit(x);
}

/* Tells the worker that nobody reads its answer any more. */
static void leave(struct exchange *x)
{
	mutex_assert_held(&x->server->lock);
	atomic_store(&x->in.canceled, true);
	stream_leave(&x->stream);
}

static void on_completed(
	void *ctx, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode why)
{
	struct http_server *s = ctx;
	struct exchange *x = *state;
	bool orphaned;

	(void)connection;
	(void)why;
	if (!x)
		return;
	*state = NULL;
	body_leave(&s->bodies, &x->body); /* a worker may still read it */
	mutex_lock(&s->lock);
	if (x->conn)
		conn_set(s, x->conn, CONN_RECEIVING, NULL);
	orphaned = x->orphaned = x->working;
	if (orphaned)
		leave(x);
	tell_closer(s);
	mutex_unlock(&s->lock);
	if (!orphaned)
		exchange_close(x);
}

/* ---- opening and closing ---- */

static enum err_code start_daemon(struct http_server *s, struct err *err)
{
	unsigned flags = MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME |
		MHD_USE_ITC;
	struct MHD_OptionItem options[12] = {
		{ MHD_OPTION_LISTEN_SOCKET, s->fd, NULL },
		{ MHD_OPTION_CONNECTION_LIMIT, s->o.connections_max, NULL },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY_BYTES, NULL },
		{ MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, s },
		{ MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, s },
	};
	size_t n = 5;

	if (s->o.tls_certificate_fn) {
		flags |= MHD_USE_TLS;
		options[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_CERT_CALLBACK, 0,
			s->o.tls_certificate_fn };
		options[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_PRIORITIES, 0,
			(void *)(uintptr_t)s->o.tls_priorities };
	}
	options[n] = (struct MHD_OptionItem){ MHD_OPTION_END, 0, NULL };
	s->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, on_request, s, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
	if (!s->daemon)
		return err_set(err, ERR_UNAVAILABLE, "listen on %s: the HTTP server does not start",
			s->o.listen_address);
	return ERR_OK;
}

enum err_code http_server_open(
	const struct http_server_options *o, struct http_server **out, struct err *err)
{
	struct http_server *s = calloc(1, sizeof(*s));
	enum err_code rc;

	assert(o->handler && o->workers && o->connections_max);
	if (!s)
		return err_nomem(err, "web");
	s->o = *o;
	s->fd = -1;
	if (!s->o.body_timeout_ns)
		s->o.body_timeout_ns = o->read_timeout_ns;
	bodies_init(&s->bodies, o->bodies_bytes_max ? o->bodies_bytes_max : SIZE_MAX,
		o->address_bodies_bytes_max ? o->address_bodies_bytes_max : SIZE_MAX);
	s->conns.next = s->conns.prev = &s->conns;
	mutex_init(&s->lock);
	cond_init(&s->changed);
	if ((rc = listen_open(o->listen_address, &s->fd, &s->port, err)))
		goto fail;
	if ((rc = pool_open("web", o->workers, QUEUE_MAX, &s->pool, err)))
		goto fail;
	if ((rc = thread_start(&s->watcher, "web-watch", watch, s, err)))
		goto fail;
	if ((rc = start_daemon(s, err)))
		goto fail;
	*out = s;
	return ERR_OK;
fail:
	http_server_close(s, 0);
	return rc;
}

unsigned http_server_port(const struct http_server *s)
{
	return s->port;
}

unsigned http_server_connections(struct http_server *s)
{
	unsigned n;

	mutex_lock(&s->lock);
	n = s->conns_n;
	mutex_unlock(&s->lock);
	return n;
}

static bool any_sending(const struct http_server *s)
{
	mutex_assert_held(&s->lock);
	for (const struct conn *c = s->conns.next; c != &s->conns; c = c->next)
		if (c->state == CONN_SENDING)
			return true;
	return false;
}

/* Running requests get grace_ns, then they are canceled; waits for all. */
static void end_requests(struct http_server *s, int64_t grace_ns)
{
	int64_t deadline = clock_monotonic_ns() + grace_ns;

	mutex_lock(&s->lock);
	s->closing = true;
	cond_broadcast(&s->changed);
	while (s->working && cond_wait_until(&s->changed, &s->lock, deadline))
		;
	for (struct conn *c = s->conns.next; c != &s->conns; c = c->next)
		if (c->state == CONN_WORKING && c->exchange)
			atomic_store(&c->exchange->in.canceled, true);
	while (s->working)
		cond_wait(&s->changed, &s->lock);
	deadline = clock_monotonic_ns() + FLUSH_NS; /* their answers are on the way */
	while (any_sending(s) && cond_wait_until(&s->changed, &s->lock, deadline))
		;
	mutex_unlock(&s->lock);
}

void http_server_close(struct http_server *s, int64_t grace_ns)
{
	if (!s)
		return;
	if (s->daemon)
		MHD_quiesce_daemon(s->daemon);
	end_requests(s, grace_ns);
	pool_close(s->pool);
	if (s->daemon)
		MHD_stop_daemon(s->daemon); /* closes every connection, so the watcher's list empties */
	thread_join(&s->watcher);
	if (s->fd >= 0)
		close(s->fd);
	cond_destroy(&s->changed);
	mutex_destroy(&s->lock);
	free(s);
}
