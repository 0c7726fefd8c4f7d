/*
 * Requests. A request waits in line, is active on a connection, is finished, is delivered. Lists
 * hold those of each kind; everything that moves one on, except the delivery, is done in whatever
 * event made it possible. Delivery, which calls the user, happens in one place only: the kick.
 */
#include "base/http_client.h"

#include <event2/event.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/http_client_internal.h"

#define CREDENTIAL_BYTES_MAX (64u << 10)
#define CONNECTIONS_DEFAULT 1024

/* -------------------------------------------------------------------------------------------- */
/* What is sent */

static bool eq_fold(struct str a, const char *b)
{
	return a.len == strlen(b) && strncasecmp(a.ptr, b, a.len) == 0;
}

static bool in_list(struct str name, const char *const *list)
{
	for (; *list; list++)
		if (eq_fold(name, *list))
			return true;
	return false;
}

/*
 * A value, or the file that holds it, read each time: secrets rotate. White space around it goes.
 */
static enum err_code read_secret(struct arena *a, struct str value, struct str file,
	const char *what, struct str *out, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc = ERR_OK;

	*out = value;
	if (file.len) {
		char *path = arena_strndup(a, file.ptr, file.len);

		if (!path)
			return arena_fail(a, "request", err);
		if ((rc = fs_read_file(path, CREDENTIAL_BYTES_MAX, &b, err))) {
			buf_release(&b);
			return err_wrap(err, rc, "unable to read %s", what);
		}
		*out = str_dup(a, str_trim(buf_str(&b)));
		buf_release(&b);
		if (!out->ptr)
			return arena_fail(a, "request", err);
	}
	if (!http_header_value_valid(*out))
		return err_set(err, ERR_INVALID, "%s holds control characters", what);
	return rc;
}

static enum err_code basic_auth(struct http_request *r, struct str *out, struct err *err)
{
	const struct http_config *c = r->config;
	struct str user, password;
	enum err_code rc;
	char *pair, *text;
	size_t n;

	rc = read_secret(&r->arena, c->username, c->username_file, "basic auth username file",
		&user, err);
	if (rc)
		return rc;
	rc = read_secret(&r->arena, c->password, c->password_file, "basic auth password file",
		&password, err);
	if (rc)
		return rc;
	n = user.len + 1 + password.len;
	pair = arena_printf(&r->arena, STR_FMT ":" STR_FMT, STR_ARG(user), STR_ARG(password));
	text = arena_alloc_raw(&r->arena, 6 + (n + 2) / 3 * 4 + 1, 1);
	if (!pair || !text)
		return arena_fail(&r->arena, "request", err);
	memcpy(text, "Basic ", 6);
	n = (size_t)EVP_EncodeBlock((unsigned char *)text + 6, (const unsigned char *)pair, (int)n);
	*out = (struct str){ text, 6 + n };
	return ERR_OK;
}

static enum err_code authorization(struct http_request *r, struct err *err)
{
	const struct http_config *c = r->config;
	struct str credentials;
	enum err_code rc;
	char *text;

	if (!c)
		return ERR_OK;
	if (c->has_basic_auth)
		return basic_auth(r, &r->authorization, err);
	if (!c->has_authorization)
		return ERR_OK;
	rc = read_secret(&r->arena, c->credentials, c->credentials_file,
		"authorization credentials file", &credentials, err);
	if (rc)
		return rc;
	if (!http_header_value_valid(c->auth_type))
		return err_set(err, ERR_INVALID, "authorization type holds control characters");
	text = arena_printf(&r->arena, STR_FMT " " STR_FMT,
		STR_ARG(c->auth_type.len ? c->auth_type : STR("Bearer")), STR_ARG(credentials));
	if (!text)
		return arena_fail(&r->arena, "request", err);
	r->authorization = str_of(text);
	return ERR_OK;
}

/* Framing is ours: a header of the caller's that changed it would desynchronise the connection. */
static enum err_code check_headers(struct labels headers, struct err *err)
{
	static const char *const ours[] = { "host", "content-length", "transfer-encoding", "connection",
		"upgrade", "expect", "te", "trailer", NULL };

	for (size_t i = 0; i < headers.n; i++) {
		struct str name = headers.v[i].name;

		if (!http_token_valid(name) || in_list(name, ours))
			return err_set(err, ERR_INVALID, "header \"%.*s\" may not be set",
				(int)(name.len < 64 ? name.len : 64), name.ptr);
		if (!http_header_value_valid(headers.v[i].value))
			return err_set(err, ERR_INVALID,
				"value of header \"" STR_FMT "\" holds control characters", STR_ARG(name));
	}
	return ERR_OK;
}

static bool has_header(struct labels headers, const char *name)
{
	for (size_t i = 0; i < headers.n; i++)
		if (eq_fold(headers.v[i].name, name))
			return true;
	return false;
}

static void add_header(struct buf *b, struct str name, struct str value)
{
	buf_add_str(b, name);
	buf_add(b, ": ", 2);
	buf_add_str(b, value);
	buf_add(b, "\r\n", 2);
}

/*
 * Beyond the origin that was asked for, only what describes the body and the answer wanted goes
 * along.
 */
static void add_headers(struct buf *b, struct labels headers, bool foreign)
{
	static const char *const harmless[] = { "accept", "accept-encoding", "accept-language",
		"content-type", "content-encoding", "user-agent", NULL };

	for (size_t i = 0; i < headers.n; i++)
		if (!foreign || in_list(headers.v[i].name, harmless))
			add_header(b, headers.v[i].name, headers.v[i].value);
}

static enum err_code add_file_headers(struct http_request *r, struct err *err)
{
	struct labels files = r->config ? r->config->header_files : (struct labels){ 0 };
	struct str value;
	enum err_code rc;

	for (size_t i = 0; i < files.n && !r->foreign; i++) {
		rc = read_secret(&r->arena, STR(""), files.v[i].value, "http header file", &value, err);
		if (rc)
			return rc;
		add_header(&r->out, files.v[i].name, value);
	}
	return ERR_OK;
}

static enum err_code compose(struct http_request *r, struct err *err)
{
	bool body = r->body.len || strcmp(r->method, "POST") == 0 || strcmp(r->method, "PUT") == 0;
	struct buf *b = &r->out;
	enum err_code rc;

	buf_clear(b);
	buf_printf(b, "%s %s HTTP/1.1\r\n", r->method, r->url.target.ptr);
	add_header(b, STR("Host"), r->url.authority);
	if (!has_header(r->headers, "user-agent"))
		add_header(b, STR("User-Agent"), str_of(r->client->user_agent));
	if (r->authorization.len && !r->foreign && !has_header(r->headers, "authorization"))
		add_header(b, STR("Authorization"), r->authorization);
	if (body)
		buf_printf(b, "Content-Length: %zu\r\n", r->body.len);
	if (r->config && !r->foreign)
		add_headers(b, r->config->headers, false);
	if ((rc = add_file_headers(r, err)))
		return rc;
	add_headers(b, r->headers, r->foreign);
	buf_add(b, "\r\n", 2);
	buf_add_str(b, r->body);
	if (buf_failed(b))
		return err_set(err, ERR_NOMEM, "request: out of memory");
	return ERR_OK;
}

/* -------------------------------------------------------------------------------------------- */
/* A request's life */

static void kick(struct http_client *c)
{
	event_active(c->kick, EV_TIMEOUT, 0);
}

static void finish(struct http_request *r, enum err_code rc, const struct err *err)
{
	struct http_client *c = r->client;

	if (r->state == REQUEST_FINISHED)
		return;
	TAILQ_REMOVE(r->state == REQUEST_IN_LINE ? &c->line : &c->active, r, link);
	r->state = REQUEST_FINISHED;
	TAILQ_INSERT_TAIL(&c->finished, r, link);
	event_del(r->deadline);
	if (r->conn)
		conn_close(r->conn); /* an answer under way: nobody would read it */
	r->rc = rc;
	if (err)
		r->err = *err;
	kick(c);
}

/* Back into the line, in front: it has waited already. */
static void again(struct http_request *r)
{
	struct http_client *c = r->client;

	TAILQ_REMOVE(&c->active, r, link);
	r->state = REQUEST_IN_LINE;
	TAILQ_INSERT_HEAD(&c->line, r, link);
	kick(c);
}

static bool is_redirect(const struct http_request *r, struct str *location)
{
	int s = r->parser.status;

	return r->config && r->config->follow_redirects &&
		(s == 301 || s == 302 || s == 303 || s == 307 || s == 308) &&
		http_head_get(buf_str(&r->parser.head), "location", location);
}

static enum err_code redirect(struct http_request *r, struct str location, struct err *err)
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
		r->foreign = true; /* for good: a way back must not carry more than the way there */
	if (strcmp(r->method, "HEAD") != 0 &&
		(s == 303 || (s < 303 && strcmp(r->method, "POST") == 0))) {
		r->method = "GET";
		r->body = STR("");
	}
	r->url = to;
	r->retried = false;
	return compose(r, err);
}

void request_answered(struct http_request *r)
{
	struct str location;
	enum err_code rc;
	struct err err;

	if (!is_redirect(r, &location))
		finish(r, ERR_OK, NULL);
	else if ((rc = redirect(r, location, &err)))
		finish(r, rc, &err);
	else
		again(r);
}

void request_failed(struct http_request *r, enum err_code rc, const struct err *err, bool stale)
{
	bool repeatable = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0 ||
		strcmp(r->method, "PUT") == 0 || strcmp(r->method, "DELETE") == 0;

	if (stale && repeatable && !r->retried) {
		r->retried = true;
		again(r);
		return;
	}
	finish(r, rc, err);
}

static void on_deadline(evutil_socket_t fd, short what, void *ctx)
{
	struct http_request *r = ctx;
	struct err err;

	err_set(&err, ERR_TIMEOUT, "context deadline exceeded");
	finish(r, ERR_TIMEOUT, &err);
}

/* Which connection a request needs; fails where its TLS settings cannot be loaded. */
static enum err_code key_of(struct http_request *r, struct conn_key *key, struct err *err)
{
	struct tls_context context;
	enum err_code rc;

	*key = (struct conn_key){ .tls = r->url.tls, .host = r->url.host, .port = r->url.port,
		.server_name = STR("") };
	if (!key->tls)
		return ERR_OK;
	if ((rc = tls_cache_get(r->client->tls, r->config, !r->foreign, &context, err)))
		return rc;
	key->tls_id = context.id;
	key->server_name = r->config && r->config->tls_server_name.len && !r->foreign ?
		r->config->tls_server_name : r->url.host;
	return ERR_OK;
}

/* False: no connection may be opened now, the line waits. */
static bool start(struct http_request *r)
{
	struct http_client *c = r->client;
	struct conn *conn = NULL;
	struct conn_key key;
	enum err_code rc;
	struct err err;

	if ((rc = key_of(r, &key, &err))) {
		finish(r, rc, &err);
		return true;
	}
	if (!r->retried)
		conn = conn_take(c, &key);
	if (!conn && c->connections_n >= c->connections_max) {
		if (TAILQ_EMPTY(&c->idle))
			return false;
		conn_close(TAILQ_FIRST(&c->idle));
	}
	TAILQ_REMOVE(&c->line, r, link);
	r->state = REQUEST_ACTIVE;
	TAILQ_INSERT_TAIL(&c->active, r, link);
	http_parser_init(&r->parser, strcmp(r->method, "HEAD") == 0, r->body_size_max);
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
	http_parser_release(&r->parser);
	buf_release(&r->out);
	arena_release(&r->arena);
	free(r);
}

static void deliver(struct http_request *r)
{
	struct http_response res = { .rc = r->rc, .err = r->err, .final_url = r->url.text,
		.elapsed_ns = clock_monotonic_ns() - r->start_ns };

	TAILQ_REMOVE(&r->client->finished, r, link);
	if (!r->rc) {
		res.head = buf_str(&r->parser.head);
		res.status = r->parser.status;
		res.reason = r->parser.reason;
		res.body = buf_str(&r->parser.body);
		res.content_type = http_response_header(&res, "content-type");
		res.content_encoding = http_response_header(&res, "content-encoding");
		res.location = http_response_header(&res, "location");
	}
	r->done(r->ctx, &res);
	request_free(r);
}

static void on_kick(evutil_socket_t fd, short what, void *ctx)
{
	struct http_client *c = ctx;
	struct http_request *r;

	/*
	 * Each turn ends one request or one attempt of it; what callbacks add is delivered by a kick of
	 * its own.
	 */
	while ((r = TAILQ_FIRST(&c->line)) && start(r))
		;
	while ((r = TAILQ_FIRST(&c->finished)))
		deliver(r);
}

/* -------------------------------------------------------------------------------------------- */
/* What callers see */

struct str http_response_header(const struct http_response *res, const char *name)
{
	struct str v = STR("");

	return http_head_get(res->head, name, &v) ? v : STR("");
}

static enum err_code copy_headers(struct http_request *r, struct labels headers, struct err *err)
{
	enum err_code rc;

	if ((rc = check_headers(headers, err)) ||
			(r->config && ((rc = check_headers(r->config->headers, err)) ||
			(rc = check_headers(r->config->header_files, err)))))
		return rc;
	r->headers = labels_dup(&r->arena, headers);
	return headers.n && !r->headers.v ? arena_fail(&r->arena, "request", err) : ERR_OK;
}

static enum err_code fill(
	struct http_request *r, const struct http_request_options *o, struct err *err)
{
	const char *method = o->method ? o->method : "GET";
	enum err_code rc;

	if (!http_token_valid(str_of(method)))
		return err_set(err, ERR_INVALID, "invalid HTTP method");
	r->method = arena_strndup(&r->arena, method, strlen(method));
	r->body = str_dup(&r->arena, o->body);
	if (!r->method || !r->body.ptr)
		return arena_fail(&r->arena, "request", err);
	r->body_size_max = o->body_size_max ? o->body_size_max : HTTP_BODY_BYTES_DEFAULT;
	r->start_ns = clock_monotonic_ns();
	r->deadline_ns = r->start_ns + (o->timeout_ns > 0 ? o->timeout_ns : 0);
	if ((rc = http_url_parse(&r->arena, o->url, &r->url, err)) ||
		(rc = copy_headers(r, o->headers, err)) || (rc = authorization(r, err)))
		return rc;
	return compose(r, err);
}

enum err_code http_client_send(struct http_client *c, const struct http_request_options *o,
	http_done_fn done, void *ctx, struct http_request **out, struct err *err)
{
	struct http_request *r = calloc(1, sizeof(*r));
	struct timeval tv = { 0 };
	enum err_code rc;

	if (!r)
		return err_set(err, ERR_NOMEM, "request: out of memory");
	r->client = c;
	r->config = o->config;
	r->done = done;
	r->ctx = ctx;
	arena_init(&r->arena, 0);
	if ((rc = fill(r, o, err)))
		goto fail;
	if (o->timeout_ns > 0)
		tv = (struct timeval){ o->timeout_ns / NS_PER_S, o->timeout_ns % NS_PER_S / 1000 };
	r->deadline = evtimer_new(c->base, on_deadline, r);
	if (!r->deadline || evtimer_add(r->deadline, &tv)) {
		rc = err_set(err, ERR_NOMEM, "request: out of memory");
		goto fail;
	}
	r->state = REQUEST_IN_LINE;
	TAILQ_INSERT_TAIL(&c->line, r, link);
	kick(c);
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
	finish(r, ERR_CANCELED, NULL);
	TAILQ_REMOVE(&r->client->finished, r, link);
	request_free(r);
}

enum err_code http_client_open(
	const struct http_client_options *o, struct http_client **out, struct err *err)
{
	struct http_client *c = calloc(1, sizeof(*c));
	enum err_code rc;

	if (!c)
		return err_set(err, ERR_NOMEM, "HTTP client: out of memory");
	c->base = o->base;
	c->connections_max = o->connections_max ? o->connections_max : CONNECTIONS_DEFAULT;
	TAILQ_INIT(&c->line);
	TAILQ_INIT(&c->active);
	TAILQ_INIT(&c->finished);
	TAILQ_INIT(&c->conns);
	TAILQ_INIT(&c->idle);
	c->user_agent = strdup(o->user_agent ? o->user_agent : "Epimetheus/" EPI_VERSION);
	c->kick = event_new(o->base, -1, 0, on_kick, c);
	if (!c->user_agent || !c->kick)
		rc = err_set(err, ERR_NOMEM, "HTTP client: out of memory");
	else if (!http_header_value_valid(str_of(c->user_agent)))
		rc = err_set(err, ERR_INVALID, "user agent holds control characters");
	else if (!(rc = tls_cache_open(&c->tls, err)))
		rc = resolver_open(o->base, o->dns_servers, &c->resolver, err);
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
	struct conn *conn;
	struct err err;

	if (!c)
		return;
	err_set(&err, ERR_CANCELED, "the HTTP client is closing");
	while ((r = TAILQ_FIRST(&c->line)) || (r = TAILQ_FIRST(&c->active)))
		finish(r, ERR_CANCELED, &err);
	while ((r = TAILQ_FIRST(&c->finished)))
		deliver(r);
	while ((conn = TAILQ_FIRST(&c->conns)))
		conn_close(conn);
	resolver_close(c->resolver);
	tls_cache_close(c->tls);
	if (c->kick)
		event_free(c->kick);
	free(c->user_agent);
	free(c);
}

struct http_client_stats http_client_stats(const struct http_client *c)
{
	return (struct http_client_stats){ .connections = c->connections_n, .connects = c->connects,
		.reuses = c->reuses };
}
