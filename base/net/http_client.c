/*
 * Requests. A request waits in line, perhaps for a token, is active on a connection, is finished,
 * is delivered; there is a list for each of these but the last. Any event may move a request on,
 * but only the kick delivers, which calls the user.
 */
#include "base/net/http_client.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/net/http_client_internal.h"
#include "base/version.h"

#define CONNECTIONS_DEFAULT 1024
#define REQUEST_BLOCK_BYTES 1024 /* a URL with its headers; thousands of requests are held open */

/* -------------------------------------------------------------------------------------------- */
/* A request's life */

static void http_client_kick(struct http_client *c)
{
	event_active(c->kick, EV_TIMEOUT, 0);
}

/* To the end of another list. */
static void http_client_move(
	struct http_request *r, enum request_state state, struct request_list *to)
{
	if (r->list)
		TAILQ_REMOVE(r->list, r, link);
	r->state = state;
	r->list = to;
	if (to)
		TAILQ_INSERT_TAIL(to, r, link);
}

void request_wait(struct http_request *r, struct request_list *list)
{
	assert(r->state == REQUEST_IN_LINE && !r->conn);
	http_client_move(r, REQUEST_WAITING, list);
}

void request_in_line(struct http_request *r)
{
	enum err_code rc;
	struct err err;

	assert(r->state == REQUEST_WAITING && !r->conn);
	http_client_move(r, REQUEST_IN_LINE, &r->client->line);
	rc = r->authorization.ptr ? request_compose(r, &err) : err_nomem(&err, "request");
	if (rc)
		request_finish(r, rc, &err);
	http_client_kick(r->client);
}

void request_finish(struct http_request *r, enum err_code rc, const struct err *err)
{
	struct http_client *c = r->client;

	if (r->state == REQUEST_FINISHED)
		return;
	http_client_move(r, REQUEST_FINISHED, &c->finished);
	event_del(r->deadline);
	if (r->idle)
		event_del(r->idle);
	if (r->has_pieces) /* they are handed over before done */
		TAILQ_REMOVE(&c->pieces, r, pieces_link);
	r->has_pieces = false;
	if (r->conn)
		conn_close(r->conn); /* nobody would read the rest of its answer */
	r->rc = rc;
	if (err)
		r->err = *err;
	http_client_kick(c);
}

/* Puts it back into the line, in front: it has waited already. */
static void http_client_again(struct http_request *r)
{
	struct http_client *c = r->client;

	assert(r->state == REQUEST_ACTIVE && !r->conn);
	TAILQ_REMOVE(r->list, r, link);
	r->state = REQUEST_IN_LINE;
	r->list = &c->line;
	TAILQ_INSERT_HEAD(&c->line, r, link);
	http_client_kick(c);
}

static bool http_client_is_redirect(const struct http_request *r, struct str *location)
{
	int s = r->parser.status;

	return r->config && r->config->follow_redirects &&
		(s == 301 || s == 302 || s == 303 || s == 307 || s == 308) &&
		http_head_get(buf_str(&r->parser.head), "location", location);
}

static enum err_code http_client_redirect(
	struct http_request *r, struct str location, struct err *err)
{
	int s = r->parser.status;
	struct http_url to;
	enum err_code rc;

	if (r->redirects == HTTP_REDIRECTS_MAX)
		return err_set(err, ERR_LIMIT, "stopped after %d redirects", HTTP_REDIRECTS_MAX);
	if ((rc = http_url_resolve(&r->arena, &r->url, location, &to, err)))
		return rc;
	r->redirects++;
	if (!http_url_same_origin(&r->url, &to))
		r->foreign = true; /* for good: a redirect back gets no more than the redirect away */
	if (strcmp(r->method, "HEAD") != 0 &&
		(s == 303 || (s < 303 && strcmp(r->method, "POST") == 0))) {
		r->method = "GET";
		r->body = STR("");
		r->source = NULL;
	}
	r->url = to;
	r->retried = false;
	if ((rc = request_route(r, err)))
		return rc;
	return request_compose(r, err);
}

void request_answered(struct http_request *r)
{
	struct str location;
	enum err_code rc;
	struct err err;

	assert(r->state == REQUEST_ACTIVE && !r->conn && r->parser.state == PARSE_DONE);
	if (request_token_refused(r))
		http_client_again(r);
	else if (!http_client_is_redirect(r, &location))
		request_finish(r, ERR_OK, NULL);
	else if ((rc = http_client_redirect(r, location, &err)))
		request_finish(r, rc, &err);
	else
		http_client_again(r);
}

void request_failed(struct http_request *r, enum err_code rc, const struct err *err, bool stale)
{
	bool repeatable = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0 ||
		strcmp(r->method, "PUT") == 0 || strcmp(r->method, "DELETE") == 0;

	assert(rc && !r->conn);
	if (stale && repeatable && !r->retried) {
		r->retried = true;
		http_client_again(r);
		return;
	}
	request_finish(r, rc, err);
}

void request_received(struct http_request *r)
{
	if (r->idle)
		r->received_ns = clock_monotonic_ns();
	if (!r->parser.stream || !r->parser.body.len || r->has_pieces)
		return;
	r->has_pieces = true;
	TAILQ_INSERT_TAIL(&r->client->pieces, r, pieces_link);
	http_client_kick(r->client);
}

static struct timeval timeval_of(int64_t ns)
{
	return (struct timeval){ ns > 0 ? ns / NS_PER_S : 0, ns > 0 ? ns % NS_PER_S / 1000 : 0 };
}

static void http_client_on_idle(evutil_socket_t fd, short what, void *ctx)
{
	struct http_request *r = ctx;
	int64_t left = r->received_ns + r->idle_timeout_ns - clock_monotonic_ns();
	struct timeval tv = timeval_of(left);
	struct buf text = { 0 };
	struct err err;

	/* the timer is set again when it fires, not with each byte */
	if (left > 0 && !evtimer_add(r->idle, &tv))
		return;
	duration_print(&text, r->idle_timeout_ns);
	err_set(&err, ERR_TIMEOUT, "nothing received for " STR_FMT, STR_ARG(buf_str(&text)));
	buf_release(&text);
	request_finish(r, ERR_TIMEOUT, &err);
}

static void http_client_on_deadline(evutil_socket_t fd, short what, void *ctx)
{
	struct http_request *r = ctx;
	struct err err;

	if (r->state == REQUEST_IN_LINE)
		err_set(&err, ERR_TIMEOUT,
			"context deadline exceeded: no connection was free, all %zu were in use (the limit of "
			"open files allows no more)",
			r->client->connections_n);
	else if (r->state == REQUEST_WAITING)
		request_describe_wait(r, &err);
	else
		err_set(&err, ERR_TIMEOUT, "context deadline exceeded");
	request_finish(r, ERR_TIMEOUT, &err);
}

/* The name that the peer must prove to be. */
static struct str tls_name(const struct http_request *r, struct str host, bool foreign)
{
	return r->config && r->config->tls_server_name.len && !foreign ? r->config->tls_server_name :
																	 host;
}

/* The kind of connection that a request needs. Fails when its TLS settings cannot be loaded. */
static enum err_code http_client_key_of(
	struct http_request *r, struct conn_key *key, struct err *err)
{
	enum http_proxy_kind via = r->proxy.kind;
	bool any = !r->url.tls && (via == HTTP_PROXY_HTTP || via == HTTP_PROXY_HTTPS);
	struct tls_context context;
	enum err_code rc;

	*key = (struct conn_key){ .tls = r->url.tls,
		.http2 = r->url.tls && r->config && r->config->enable_http2,
		.host = r->url.host,
		.port = r->url.port,
		.server_name = STR(""), .proxy = r->proxy_key, .proxy_name = STR("") };
	if (any) {
		key->host = STR("");
		key->port = 0;
	}
	if (via == HTTP_PROXY_HTTPS) {
		if ((rc = tls_cache_get(r->client->tls, r->config, true, &context, err)))
			return rc;
		key->proxy_tls_id = context.id;
		key->proxy_name = tls_name(r, r->proxy.host, false);
	}
	if (!key->tls)
		return ERR_OK;
	if ((rc = tls_cache_get(r->client->tls, r->config, !r->foreign, &context, err)))
		return rc;
	key->tls_id = context.id;
	key->server_name = tls_name(r, r->url.host, r->foreign);
	return ERR_OK;
}

/* False: no connection may be opened now, the line waits. */
static bool http_client_start(struct http_request *r)
{
	struct http_client *c = r->client;
	struct http_client_conn *conn = NULL;
	struct conn_key key;
	enum err_code rc;
	struct err err;

	assert(r->state == REQUEST_IN_LINE);
	if (request_needs_token(r)) {
		if ((rc = request_get_token(r, &err)))
			request_finish(r, rc, &err);
		if (r->state != REQUEST_IN_LINE)
			return true;
	}
	if ((rc = http_client_key_of(r, &key, &err))) {
		request_finish(r, rc, &err);
		return true;
	}
	if (!r->retried)
		conn = conn_take(c, &key);
	if (!conn && c->connections_n >= c->connections_max) {
		if (TAILQ_EMPTY(&c->idle))
			return false;
		conn_close(TAILQ_FIRST(&c->idle));
	}
	http_client_move(r, REQUEST_ACTIVE, &c->active);
	http_parser_init(&r->parser, strcmp(r->method, "HEAD") == 0, r->body_size_max);
	r->parser.stream_200 = r->data != NULL;
	if (conn)
		conn_exchange(conn, r);
	else
		conn_open(r, &key);
	return true;
}

static void request_free(struct http_request *r)
{
	if (r->deadline)
		event_free(r->deadline);
	if (r->idle)
		event_free(r->idle);
	http_parser_release(&r->parser);
	buf_release(&r->out);
	buf_release(&r->piece);
	arena_release(&r->arena);
	free(r);
}

/* False: the user's function has canceled the request, which is gone. */
static bool http_client_hand_over(struct http_request *r)
{
	struct buf piece = r->parser.body;

	assert(r->data && !r->in_data);
	r->parser.body = (struct buf){ 0 };
	r->in_data = true;
	r->data(r->ctx, buf_str(&piece));
	r->in_data = false;
	buf_clear(&piece);
	r->parser.body = piece;
	if (!r->canceled)
		return true;
	if (r->state != REQUEST_FINISHED)
		request_finish(r, ERR_CANCELED, NULL);
	http_client_move(r, REQUEST_FINISHED, NULL);
	request_free(r);
	return false;
}

static void http_client_deliver(struct http_request *r)
{
	struct http_response res = { .rc = r->rc,
		.err = r->err,
		.final_url = r->url.text,
		.redirects = (unsigned)r->redirects,
		.elapsed_ns = clock_monotonic_ns() - r->start_ns };

	if (r->parser.stream && r->parser.body.len && r->rc != ERR_CANCELED &&
		!http_client_hand_over(r))
		return;
	assert(r->state == REQUEST_FINISHED && !r->conn);
	http_client_move(r, REQUEST_FINISHED, NULL);
	if (r->parser.stream)
		res.status = r->parser.status;
	if (!r->rc) {
		res.head = buf_str(&r->parser.head);
		res.status = r->parser.status;
		res.reason = r->parser.reason;
		res.body = buf_str(&r->parser.body);
		res.body_buf = &r->parser.body;
		res.content_type = http_response_header(&res, "content-type");
		res.content_encoding = http_response_header(&res, "content-encoding");
		res.location = http_response_header(&res, "location");
		res.connected_ns = r->connected_ns;
	}
	r->done(r->ctx, &res);
	request_free(r);
}

static void http_client_on_kick(evutil_socket_t fd, short what, void *ctx)
{
	struct http_client *c = ctx;
	struct http_request *r;

	/*
	 * Each turn ends one request or one attempt of it. Requests that callbacks add get their own
	 * kick.
	 */
	while ((r = TAILQ_FIRST(&c->pieces))) {
		TAILQ_REMOVE(&c->pieces, r, pieces_link);
		r->has_pieces = false;
		http_client_hand_over(r);
	}
	while ((r = TAILQ_FIRST(&c->line)) && http_client_start(r))
		;
	while ((r = TAILQ_FIRST(&c->finished)))
		http_client_deliver(r);
}

/* -------------------------------------------------------------------------------------------- */
/* For callers */

struct str http_response_header(const struct http_response *res, const char *name)
{
	struct str v = STR("");

	return http_head_get(res->head, name, &v) ? v : STR("");
}

/* Shrinking in place; where that fails the buffer keeps its spare room. */
void http_response_take_body(const struct http_response *res, struct buf *out)
{
	struct buf *from = res->body_buf;
	char *tight;

	assert(from && from->ptr == res->body.ptr && from->len == res->body.len);
	*out = *from;
	*from = (struct buf){ 0 };
	if (out->len && out->len < out->cap && (tight = realloc(out->ptr, out->len))) {
		out->ptr = tight;
		out->cap = out->len;
	}
}

static enum err_code http_client_copy_headers(
	struct http_request *r, struct labels headers, struct err *err)
{
	enum err_code rc;

	if ((rc = request_check_headers(headers, err)) ||
		(r->config &&
			((rc = request_check_headers(r->config->headers, err)) ||
				(rc = request_check_headers(r->config->header_files, err)))))
		return rc;
	r->headers = labels_dup(&r->arena, headers);
	return headers.n && !r->headers.v ? arena_fail(&r->arena, "request", err) : ERR_OK;
}

static enum err_code http_client_fill(
	struct http_request *r, const struct http_request_options *o, struct err *err)
{
	const char *method = o->method ? o->method : "GET";
	enum err_code rc;

	if (!http_token_valid(str_of(method)))
		return err_set(err, ERR_INVALID, "invalid HTTP method");
	if (o->unix_path.len > HTTP_UNIX_PATH_MAX)
		return err_set(err, ERR_LIMIT, "path of a socket is %zu bytes, limit %d", o->unix_path.len,
			HTTP_UNIX_PATH_MAX);
	r->method = arena_strndup(&r->arena, method, strlen(method));
	r->body = str_dup(&r->arena, o->body);
	r->unix_path = str_dup(&r->arena, o->unix_path);
	if (!r->method || !r->body.ptr || !r->unix_path.ptr)
		return arena_fail(&r->arena, "request", err);
	r->body_size_max = o->body_size_max ? o->body_size_max : HTTP_BODY_BYTES_DEFAULT;
	r->start_ns = clock_monotonic_ns();
	r->received_ns = r->start_ns;
	r->idle_timeout_ns = o->idle_timeout_ns;
	r->deadline_ns = r->start_ns + (o->timeout_ns > 0 ? o->timeout_ns : 0);
	if ((rc = http_url_parse(&r->arena, o->url, &r->url, err)) ||
		(rc = http_client_copy_headers(r, o->headers, err)) || (rc = request_authorize(r, err)) ||
		(rc = request_route(r, err)))
		return rc;
	return request_compose(r, err);
}

enum err_code http_client_send(struct http_client *c, const struct http_request_options *o,
	http_done_fn done, void *ctx, struct http_request **out, struct err *err)
{
	struct http_request *r = calloc(1, sizeof(*r));
	struct timeval tv = timeval_of(o->timeout_ns), idle = timeval_of(o->idle_timeout_ns);
	enum err_code rc;

	assert(done);
	if (!r)
		return err_nomem(err, "request");
	r->client = c;
	r->config = o->config;
	r->done = done;
	r->data = o->data;
	r->source = o->source;
	r->ctx = ctx;
	arena_init(&r->arena, 0);
	r->arena.block_max = REQUEST_BLOCK_BYTES;
	if ((rc = http_client_fill(r, o, err)))
		goto fail;
	r->deadline = evtimer_new(c->base, http_client_on_deadline, r);
	if (o->idle_timeout_ns > 0)
		r->idle = evtimer_new(c->base, http_client_on_idle, r);
	if (!r->deadline || evtimer_add(r->deadline, &tv) ||
		(o->idle_timeout_ns > 0 && (!r->idle || evtimer_add(r->idle, &idle)))) {
		rc = err_nomem(err, "request");
		goto fail;
	}
	http_client_move(r, REQUEST_IN_LINE, &c->line);
	http_client_kick(c);
	if (out)
		*out = r;
	return ERR_OK;
fail:
	request_free(r);
	return rc;
}

void http_request_cancel(struct http_request *r)
{
	if (!r)
		return;
	if (r->in_data) {
		r->canceled = true;
		return;
	}
	request_finish(r, ERR_CANCELED, NULL);
	http_client_move(r, REQUEST_FINISHED, NULL);
	request_free(r);
}

enum err_code http_client_open(
	const struct http_client_options *o, struct http_client **out, struct err *err)
{
	struct http_client *c = calloc(1, sizeof(*c));
	enum err_code rc;

	assert(o->base);
	if (!c)
		return err_nomem(err, "HTTP client");
	c->base = o->base;
	c->quick_ack = o->quick_ack;
	c->connections_max = o->connections_max ? o->connections_max : CONNECTIONS_DEFAULT;
	TAILQ_INIT(&c->line);
	TAILQ_INIT(&c->active);
	TAILQ_INIT(&c->finished);
	TAILQ_INIT(&c->pieces);
	TAILQ_INIT(&c->conns);
	TAILQ_INIT(&c->idle);
	TAILQ_INIT(&c->grants);
	c->user_agent = strdup(o->user_agent ? o->user_agent : "Epimetheus/" EPI_VERSION);
	c->kick = event_new(o->base, -1, 0, http_client_on_kick, c);
	if (!c->user_agent || !c->kick)
		rc = err_nomem(err, "HTTP client");
	else if (!http_header_value_valid(str_of(c->user_agent)))
		rc = err_set(err, ERR_INVALID, "user agent holds control characters");
	else if (!(rc = tls_cache_open(&c->tls, err)))
		rc = lookups_open(o->base, o->dns_servers, &c->lookups, err);
	if (rc) {
		http_client_close(c);
		return rc;
	}
	*out = c;
	return ERR_OK;
}

void http_client_close(struct http_client *c)
{
	struct http_request *r;
	struct http_client_conn *conn;
	struct err err;

	if (!c)
		return;
	c->closing = true;
	err_set(&err, ERR_CANCELED, "the HTTP client is closing");
	grants_cancel(c, &err);
	while ((r = TAILQ_FIRST(&c->line)) || (r = TAILQ_FIRST(&c->active)))
		request_finish(r, ERR_CANCELED, &err);
	while ((r = TAILQ_FIRST(&c->finished)))
		http_client_deliver(r);
	while ((conn = TAILQ_FIRST(&c->conns)))
		conn_close(conn);
	grants_close(c);
	lookups_close(c->lookups);
	tls_cache_close(c->tls);
	if (c->kick)
		event_free(c->kick);
	free(c->user_agent);
	free(c);
}

struct http_client_stats http_client_stats(const struct http_client *c)
{
	return (struct http_client_stats){
		.connections = c->connections_n, .connects = c->connects, .reuses = c->reuses
	};
}
