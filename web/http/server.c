/*
 * From the head of a request to its answer: admission, the body, the worker; opening and closing.
 * web/http/conns.c says which states a connection has.
 *
 * Invariants: a conn is in the list from libmicrohttpd's STARTED to its CLOSED notification, so its
 * socket is open while the lock is held and it is in the list. An exchange belongs to the receiving
 * thread, except from pool_submit to MHD_resume_connection, when it belongs to its worker; nobody
 * frees it meanwhile; of a body by pieces both have it, each its own fields. Once a streamed answer
 * has begun, nobody changes its status and headers.
 */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "web/http/exchange.h"
#include "web/http/listen.h"

#define FLUSH_NS NS_PER_S
#define QUEUE_MAX 4096
#define SEND_BLOCK_BYTES (32u << 10)
#define CONNECTION_MEMORY_BYTES (64u << 10) /* request line and headers */

/* Nobody else waits for requests to end: the watcher would look at all connections, each time. */
static void http_server_tell_closer(struct http_server *s)
{
	mutex_assert_held(&s->lock);
	if (s->closing)
		cond_broadcast(&s->changed);
}

/* ---- answers ---- */

static enum MHD_Result http_server_send_response(struct exchange *e)
{
	struct http_out *out = &e->out;
	struct MHD_Response *r;
	enum MHD_Result rc;

	if (stream_started(&e->stream)) {
		r = MHD_create_response_from_callback(
			MHD_SIZE_UNKNOWN, SEND_BLOCK_BYTES, exchange_read_stream, e, NULL);
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
	if (!stream_started(&e->stream))
		body_drop(&e->server->bodies, &e->body); /* the answer may take long to send */
	rc = MHD_queue_response(e->connection, (unsigned)out->status, r);
	MHD_destroy_response(r);
	return rc;
}

/* ---- to a worker ---- */

enum handed {
	HANDED,
	HANDED_NOT, /* the server is shutting down */
	HANDED_BACK, /* the queue is full: the connection resumes after this call of MHD's */
};

/* False: the server is shutting down. */
static bool http_server_begin_work(struct exchange *e, enum conn_state state)
{
	struct http_server *s = e->server;
	bool closing;

	mutex_lock(&s->lock);
	closing = s->closing;
	if (!closing) {
		conn_set(s, e->conn, state, e);
		e->working = true;
		e->waits = state == CONN_WORKING;
		s->working++;
	}
	mutex_unlock(&s->lock);
	return !closing;
}

static void http_server_take_back(struct exchange *e, enum conn_state state)
{
	struct http_server *s = e->server;

	mutex_lock(&s->lock);
	conn_set(s, e->conn, state, NULL);
	e->working = false;
	assert(s->working);
	s->working--;
	mutex_unlock(&s->lock);
}

static enum handed http_server_to_worker(struct exchange *e, void (*fn)(void *ctx))
{
	if (!http_server_begin_work(e, CONN_WORKING))
		return HANDED_NOT;
	MHD_suspend_connection(e->connection);
	if (pool_submit(e->server->pool, fn, e))
		return HANDED;
	http_server_take_back(e, CONN_SENDING);
	MHD_resume_connection(e->connection);
	return HANDED_BACK;
}

static void http_server_refuse(struct exchange *e, enum handed handed)
{
	http_text(&e->out, 503,
		handed == HANDED_NOT ? "the server is shutting down" : "too many requests are waiting");
}

/* ---- admission, before the body ---- */

/* Replaces the answer, with the headers that describe it. */
static void http_server_say_no_memory(struct http_out *out)
{
	buf_release(&out->body);
	out->headers_n = 0;
	http_text(out, 503, "out of memory");
}

static void http_server_set_admission(struct exchange *e, enum http_admission admission)
{
	mutex_assert_held(&e->server->lock);
	e->admission = admission;
	conn_set(e->server, e->conn, admission == HTTP_ADMITTED ? CONN_BODY : CONN_REFUSED_BODY, NULL);
}

/* On a worker, where a password may be verified; no byte of the body is read meanwhile. */
static void http_server_admit_later(void *ctx)
{
	struct exchange *x = ctx;
	struct http_server *s = x->server;
	enum http_admission admission = s->o.admit(s->o.ctx, &x->in, &x->out, true);

	mutex_lock(&s->lock);
	http_server_set_admission(x, admission);
	x->working = false;
	assert(s->working);
	s->working--;
	http_server_tell_closer(s);
	mutex_unlock(&s->lock);
	MHD_resume_connection(x->connection);
}

/*
 * The admission is known and no byte of the body was read. A sender that waits for "100 Continue"
 * gets a refusal now, and one whose body is too long to be dropped; others would not read it before
 * they have sent their body.
 */
static enum MHD_Result http_server_admitted(struct exchange *e)
{
	if (e->admission == HTTP_ADMITTED && exchange_is_too_long(e, e->in.body_bytes_max)) {
		e->admission = HTTP_ANSWERED;
		http_text(&e->out, 413, "the body is too large");
	}
	if (e->admission == HTTP_ANSWERED &&
		(exchange_has_header(e, "Expect") || exchange_is_too_long(e, 0) || exchange_has_no_end(e)))
		return http_server_send_response(e);
	return MHD_YES;
}

/*
 * Decides on the head whether the body is taken. libmicrohttpd calls again for the head when a
 * connection resumes that was suspended in its first call.
 */
static enum MHD_Result http_server_admit(struct exchange *e)
{
	struct http_server *s = e->server;
	enum http_admission admission = HTTP_ADMITTED;
	enum handed handed;

	if (e->in.no_memory) { /* a head that is not complete cannot be judged */
		http_server_say_no_memory(&e->out);
		admission = HTTP_ANSWERED;
	} else if (s->o.admit) {
		admission = s->o.admit(s->o.ctx, &e->in, &e->out, false);
	}
	if (admission == HTTP_ADMIT_LATER) {
		handed = http_server_to_worker(e, http_server_admit_later);
		e->admitting = handed != HANDED_NOT;
		if (handed == HANDED)
			return MHD_YES;
		http_server_refuse(e, handed);
		admission = HTTP_ANSWERED;
	}
	mutex_lock(&s->lock);
	http_server_set_admission(e, admission);
	mutex_unlock(&s->lock);
	return e->admitting ? MHD_YES : http_server_admitted(e);
}

/* ---- whole requests ---- */

/* An answer is made of many buffers. If one of them failed, the answer is wrong and is replaced. */
static void http_server_handle(struct http_server *s, struct exchange *e)
{
	uint64_t failures = buf_failures();

	if (buf_failed(&e->body.data) || e->in.no_memory)
		http_server_say_no_memory(&e->out);
	else
		s->o.handler(s->o.ctx, &e->in, &e->out);
	if (buf_failures() == failures)
		return;
	if (stream_started(&e->stream))
		e->out.failed = true;
	else if (buf_failed(&e->out.body) || e->out.status < 400)
		http_server_say_no_memory(&e->out);
}

static void http_server_work(void *ctx)
{
	struct exchange *x = ctx;
	struct http_server *s = x->server;
	bool streaming, orphaned, waits;

	x->in.body = buf_str(&x->body.data);
	x->in.body_refused = x->body.refused;
	http_server_handle(s, x);
	intake_leave(&x->intake);
	streaming = stream_started(&x->stream);
	if (streaming)
		exchange_end_stream(x);
	mutex_lock(&s->lock);
	x->working = false;
	orphaned = x->orphaned;
	waits = x->waits;
	if (!orphaned)
		conn_set(s, x->conn, waits ? CONN_SENDING : CONN_REFUSED_BODY, NULL);
	assert(s->working);
	s->working--;
	http_server_tell_closer(s);
	/* From here on the other thread may free one that is streamed, or not suspended. */
	mutex_unlock(&s->lock);
	if (orphaned)
		exchange_close(x);
	else if (waits && !streaming)
		MHD_resume_connection(x->connection);
}

/* The request is whole: it goes to a worker, or is refused when the queue is full. */
static enum MHD_Result http_server_submit(struct exchange *e)
{
	enum handed handed;

	e->submitted = true;
	e->body.whole = true;
	intake_end(&e->intake);
	if ((handed = http_server_to_worker(e, http_server_work)) == HANDED)
		return MHD_YES;
	http_server_refuse(e, handed);
	return handed == HANDED_NOT ? http_server_send_response(e) : MHD_YES;
}

/* ---- a body by pieces, which a worker reads while it comes ---- */

static bool http_server_is_working(struct exchange *e)
{
	bool working;

	mutex_lock(&e->server->lock);
	working = e->working;
	mutex_unlock(&e->server->lock);
	return working;
}

static void http_server_start_pieces(struct exchange *e)
{
	enum handed handed = HANDED_NOT;

	e->submitted = true;
	if (http_server_begin_work(e, CONN_PIECES)) {
		if (pool_submit(e->server->pool, http_server_work, e))
			return;
		http_server_take_back(e, CONN_REFUSED_BODY);
		handed = HANDED_BACK;
	}
	http_server_refuse(e, handed);
	intake_leave(&e->intake);
}

/* The sender has time for its next bytes, or the worker takes its own. */
static void http_server_set_pace(struct exchange *e, enum conn_state state)
{
	struct http_server *s = e->server;

	e->progress = 0;
	mutex_lock(&s->lock);
	if (e->working && !e->waits)
		conn_set(s, e->conn, state, e);
	mutex_unlock(&s->lock);
}

static enum MHD_Result http_server_take_piece(struct exchange *e, const char *data, size_t *n)
{
	if (!e->submitted)
		http_server_start_pieces(e);
	if (!http_server_is_working(e)) { /* it has answered before the end of the body */
		if (!exchange_take(e, data, *n))
			return MHD_NO;
	} else if (!intake_add(&e->intake, data, *n, exchange_sleep)) {
		http_server_set_pace(e, CONN_WORKING);
		e->progress = HTTP_PIECES_BYTES_MIN; /* the next piece is the sender's again */
		return MHD_YES;
	} else if ((e->progress += *n) >= HTTP_PIECES_BYTES_MIN) {
		http_server_set_pace(e, CONN_PIECES);
	}
	*n = 0;
	return MHD_YES;
}

/* Suspends first: the worker may end meanwhile, and resumes only what waits. */
static enum MHD_Result http_server_end_pieces(struct exchange *e)
{
	struct http_server *s = e->server;
	bool waits;

	if (!http_server_is_working(e))
		return http_server_send_response(e);
	intake_end(&e->intake);
	MHD_suspend_connection(e->connection);
	mutex_lock(&s->lock);
	waits = e->waits = e->working;
	if (waits)
		conn_set(s, e->conn, CONN_WORKING, e);
	mutex_unlock(&s->lock);
	if (!waits)
		MHD_resume_connection(e->connection);
	return MHD_YES;
}

static enum MHD_Result http_server_on_request(void *ctx, struct MHD_Connection *connection,
	const char *url, const char *method, const char *version, const char *data, size_t *data_n,
	void **state)
{
	struct http_server *s = ctx;
	struct exchange *x = *state;

	(void)version;
	if (!x) {
		x = exchange_open(s, connection, url, method);
		*state = x;
		if (!x || !x->conn || !x->conn->next)
			return MHD_NO;
		return exchange_has_body(x) ? http_server_admit(x) : MHD_YES;
	}
	if (x->admitting) {
		x->admitting = false;
		return http_server_admitted(x);
	}
	if (*data_n && x->in.by_pieces && x->admission == HTTP_ADMITTED)
		return http_server_take_piece(x, data, data_n);
	if (*data_n) {
		if (!exchange_take(x, data, *data_n))
			return MHD_NO;
		*data_n = 0;
		return MHD_YES;
	}
	if (x->submitted && x->in.by_pieces)
		return http_server_end_pieces(x);
	return x->submitted || x->admission == HTTP_ANSWERED ? http_server_send_response(x) :
														   http_server_submit(x);
}

/* Tells the worker that nobody reads its answer any more. */
static void http_server_leave(struct exchange *e)
{
	mutex_assert_held(&e->server->lock);
	atomic_store(&e->in.canceled, true);
	stream_leave(&e->stream);
	intake_gone(&e->intake);
}

static void http_server_on_completed(
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
	if (x->conn) {
		x->conn->answered = true;
		conn_set(s, x->conn, CONN_RECEIVING, NULL);
	}
	orphaned = x->orphaned = x->working;
	if (orphaned)
		http_server_leave(x);
	http_server_tell_closer(s);
	mutex_unlock(&s->lock);
	if (!orphaned)
		exchange_close(x);
}

/* ---- opening and closing ---- */

static enum err_code http_server_start_daemon(struct http_server *s, struct err *err)
{
	unsigned flags = MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME |
		MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET;
	struct MHD_OptionItem options[12] = {
		/* web/http/accept.c has the limit: here a connection over it would end without a word. */
		{ MHD_OPTION_CONNECTION_LIMIT, INT_MAX, NULL },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY_BYTES, NULL },
		{ MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)conns_notify, s },
		{ MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)http_server_on_completed, s },
	};
	size_t n = 4;

	if (s->o.tls_certificate_fn) {
		flags |= MHD_USE_TLS;
		options[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_CERT_CALLBACK, 0,
			s->o.tls_certificate_fn };
		options[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_PRIORITIES, 0,
			(void *)(uintptr_t)s->o.tls_priorities };
	}
	options[n] = (struct MHD_OptionItem){ MHD_OPTION_END, 0, NULL };
	s->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, http_server_on_request, s, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
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
	s->logged_ns = INT64_MIN / 2;
	mutex_init(&s->lock);
	cond_init(&s->changed);
	cond_init(&s->room);
	if (!crowd_open(&s->crowd, o->connections_max)) {
		rc = err_nomem(err, "web");
		goto fail;
	}
	if ((rc = listen_open(o->listen_address, o->bound, &s->fd, &s->port, err)))
		goto fail;
	if ((rc = pool_open("web", o->workers, QUEUE_MAX, &s->pool, err)))
		goto fail;
	if ((rc = thread_start(&s->watcher, "web-watch", conns_watch, s, err)))
		goto fail;
	if ((rc = http_server_start_daemon(s, err)))
		goto fail;
	if ((rc = thread_start(&s->acceptor, "web-accept", http_accept, s, err)))
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

static bool http_server_any_sending(const struct http_server *s)
{
	mutex_assert_held(&s->lock);
	for (const struct conn *c = s->conns.next; c != &s->conns; c = c->next)
		if (c->state == CONN_SENDING)
			return true;
	return false;
}

/* Running requests get grace_ns, then they are canceled; waits for all. */
static void http_server_end_requests(struct http_server *s, int64_t grace_ns)
{
	int64_t deadline = clock_monotonic_ns() + grace_ns;

	mutex_lock(&s->lock);
	s->closing = true;
	cond_broadcast(&s->changed);
	while (s->working && cond_wait_until(&s->changed, &s->lock, deadline))
		;
	for (struct conn *c = s->conns.next; c != &s->conns; c = c->next)
		if (c->exchange)
			atomic_store(&c->exchange->in.canceled, true);
	while (s->working)
		cond_wait(&s->changed, &s->lock);
	deadline = clock_monotonic_ns() + FLUSH_NS; /* their answers are on the way */
	while (http_server_any_sending(s) && cond_wait_until(&s->changed, &s->lock, deadline))
		;
	mutex_unlock(&s->lock);
}

void http_server_close(struct http_server *s, int64_t grace_ns)
{
	if (!s)
		return;
	http_accept_stop(s);
	http_server_end_requests(s, grace_ns);
	pool_close(s->pool);
	if (s->daemon)
		MHD_stop_daemon(s->daemon); /* closes every connection, so the watcher's list empties */
	thread_join(&s->watcher);
	if (s->fd >= 0)
		close(s->fd);
	crowd_close(&s->crowd);
	cond_destroy(&s->room);
	cond_destroy(&s->changed);
	mutex_destroy(&s->lock);
	free(s);
}
