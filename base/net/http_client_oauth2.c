/*
 * Requests that need a token. A grant is what this client knows of one token that it has not got
 * yet: the requests that wait, and the request that asks the token server, unless another client
 * of the process asks already; then the grant looks again after a while. It ends with the answer.
 */
#include <assert.h>
#include <event2/event.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hidden.h"
#include "base/net/http_client_internal.h"
#include "base/net/http_config.h"
#include "base/net/loop.h"
#include "base/net/percent.h"

#define ASK_TIMEOUT_NS (30 * NS_PER_S) /* whoever waits has a deadline of its own */
#define LOOK_AGAIN_NS (20 * INT64_C(1000000))

struct grant {
	TAILQ_ENTRY(grant) link; /* of client->grants */
	struct http_client *client;
	struct arena arena;
	struct http_token_id id;
	struct http_oauth2 oauth2; /* a copy: the owner of the configuration may go */
	struct str secret;
	struct request_list waiting;
	enum http_token_style style, sent_style; /* as known; of the request under way */
	bool asking;
	struct event *look;
};

static void grant_ask(struct grant *g, enum http_token_style style);

static void grant_free(struct grant *g)
{
	TAILQ_REMOVE(&g->client->grants, g, link);
	if (g->look)
		event_free(g->look);
	if (g->secret.len)
		OPENSSL_cleanse((void *)(uintptr_t)g->secret.ptr, g->secret.len);
	arena_release(&g->arena);
	free(g);
}

/* -------------------------------------------------------------------------------------------- */
/* Outcomes */

static void grant_failed(struct grant *g, enum err_code rc, const char *why)
{
	struct buf url = { 0 };
	struct http_request *r;
	struct err err;

	hidden_print_url(&url, g->oauth2.token_url);
	err_set(
		&err, rc, "oauth2: cannot fetch token from " STR_FMT ": %s", STR_ARG(buf_str(&url)), why);
	buf_release(&url);
	if (g->asking)
		http_token_fail(&g->id, clock_monotonic_ns(), rc, rc == ERR_CANCELED ? NULL : &err);
	while ((r = TAILQ_FIRST(&g->waiting)))
		request_finish(r, rc, &err);
	grant_free(g);
}

static void grant_got(struct grant *g, struct str authorization, uint64_t serial)
{
	struct http_request *r;

	while ((r = TAILQ_FIRST(&g->waiting))) {
		r->authorization = str_dup(&r->arena, authorization);
		r->token_serial = serial;
		r->token_is_new = true;
		request_in_line(r);
	}
	grant_free(g);
}

static void http_client_oauth2_on_answer(void *ctx, const struct http_response *res)
{
	struct grant *g = ctx;
	struct str authorization;
	struct buf why = { 0 };
	int64_t life_ns;
	enum err_code rc;
	struct err err;

	if (res->rc) {
		grant_failed(g, res->rc, res->err.msg);
		return;
	}
	if (res->status < 200 || res->status > 299) {
		if (g->style == HTTP_TOKEN_UNKNOWN && g->sent_style == HTTP_TOKEN_IN_HEADER) {
			grant_ask(g, HTTP_TOKEN_IN_BODY); /* some servers take them there only */
			return;
		}
		buf_printf(&why, "server returned HTTP status %d%s%.*s", res->status,
			res->reason.len ? " " : "", (int)(res->reason.len < 100 ? res->reason.len : 100),
			res->reason.ptr);
		http_token_print_error(&why, res->body, g->secret);
		buf_add_char(&why, '\0');
		grant_failed(g, ERR_UNAVAILABLE, buf_failed(&why) ? "refused" : why.ptr);
		buf_release(&why);
		return;
	}
	rc = http_token_parse(&g->arena, res->content_type, res->body, &authorization, &life_ns, &err);
	if (rc)
		grant_failed(g, rc, err.msg);
	else
		grant_got(g, authorization,
			http_token_put(&g->id, clock_monotonic_ns(), authorization, life_ns, g->sent_style));
}

/* -------------------------------------------------------------------------------------------- */
/* Asking */

static void http_client_oauth2_add_field(struct buf *b, struct str name, struct str value)
{
	if (b->len)
		buf_add_char(b, '&');
	percent_encode(b, name, PERCENT_FORM);
	buf_add_char(b, '=');
	percent_encode(b, value, PERCENT_FORM);
}

static void http_client_oauth2_compose_body(struct buf *b, const struct grant *g, bool credentials)
{
	const struct http_oauth2 *o = &g->oauth2;

	if (!labels_has(o->endpoint_params, STR("grant_type")))
		http_client_oauth2_add_field(b, STR("grant_type"), STR("client_credentials"));
	if (o->scope.len)
		http_client_oauth2_add_field(b, STR("scope"), o->scope);
	for (size_t i = 0; i < o->endpoint_params.n; i++) {
		const struct label *l = &o->endpoint_params.v[i];

		if (!credentials || (!str_is(l->name, "client_id") && !str_is(l->name, "client_secret")))
			http_client_oauth2_add_field(b, l->name, l->value);
	}
	if (!credentials)
		return;
	http_client_oauth2_add_field(b, STR("client_id"), o->client_id);
	if (g->secret.len)
		http_client_oauth2_add_field(b, STR("client_secret"), g->secret);
}

/* Encoded as in a form first (RFC 6749, 2.3.1). */
static struct str grant_header_credentials(struct grant *g)
{
	struct buf user = { 0 }, password = { 0 };
	struct str out = { NULL, 0 };

	percent_encode(&user, g->oauth2.client_id, PERCENT_FORM);
	percent_encode(&password, g->secret, PERCENT_FORM);
	if (!buf_failed(&user) && !buf_failed(&password))
		out = http_basic_credentials(&g->arena, buf_str(&user), buf_str(&password));
	buf_release(&user);
	buf_release(&password);
	return out;
}

static void grant_ask(struct grant *g, enum http_token_style style)
{
	struct label headers[] = {
		{ STR("Accept"), STR("application/json") },
			{ STR("Content-Type"), STR("application/x-www-form-urlencoded") },
				{ STR("Authorization"), grant_header_credentials(g) },
			};
	struct http_request_options o = {
		.method = "POST",
		.url = g->oauth2.token_url,
		.config = &g->oauth2.http,
		.headers = { headers, style == HTTP_TOKEN_IN_BODY ? 2 : 3 },
		.timeout_ns = ASK_TIMEOUT_NS,
		.body_size_max = HTTP_TOKEN_BODY_BYTES_MAX,
	};
	struct buf body = { 0 };
	enum err_code rc;
	struct err err;

	assert(g->asking);
	g->sent_style = style;
	http_client_oauth2_compose_body(&body, g, style == HTTP_TOKEN_IN_BODY);
	o.body = buf_str(&body);
	rc = buf_failed(&body) || !headers[2].value.ptr ? err_nomem(&err, "token") : ERR_OK;
	if (!rc && g->client->closing)
		rc = err_set(&err, ERR_CANCELED, "the HTTP client is closing");
	if (!rc)
		rc = http_client_send(g->client, &o, http_client_oauth2_on_answer, g, NULL, &err);
	if (body.ptr)
		OPENSSL_cleanse(body.ptr, body.cap);
	buf_release(&body);
	if (rc)
		grant_failed(g, rc, err.msg);
}

static void grant_begin_ask(struct grant *g, enum http_token_style style)
{
	g->asking = true;
	g->style = style;
	grant_ask(g, style == HTTP_TOKEN_UNKNOWN ? HTTP_TOKEN_IN_HEADER : style);
}

/* Somebody else asks: is there an answer? */
static void http_client_oauth2_on_look(evutil_socket_t fd, short what, void *ctx)
{
	struct grant *g = ctx;
	struct http_token token;
	struct http_request *r;
	struct err err;

	if (TAILQ_EMPTY(&g->waiting)) {
		grant_free(g);
		return;
	}
	switch (http_token_get(&g->arena, &g->id, clock_monotonic_ns(), &token, &err)) {
	case HTTP_TOKEN_VALID:
		grant_got(g, token.authorization, token.serial);
		return;
	case HTTP_TOKEN_ASK:
		grant_begin_ask(g, token.style);
		return;
	case HTTP_TOKEN_BUSY:
		timer_after(g->look, LOOK_AGAIN_NS);
		return;
	case HTTP_TOKEN_NOMEM:
		grant_failed(g, ERR_NOMEM, "out of memory");
		return;
	case HTTP_TOKEN_FAILED:
		while ((r = TAILQ_FIRST(&g->waiting)))
			request_finish(r, ERR_UNAVAILABLE, &err);
		grant_free(g);
	}
}

/* -------------------------------------------------------------------------------------------- */
/* For requests */

/* Equal settings and an equal secret are one identity. */
static enum err_code http_client_oauth2_identify(
	struct http_request *r, struct str *secret, struct err *err)
{
	const struct http_oauth2 *o = r->config->oauth2;
	struct buf b = { 0 };
	enum err_code rc;
	unsigned n = 0;

	rc = http_read_secret(&r->arena, o->client_secret, o->client_secret_file,
		"oauth2 client secret file", secret, err);
	if (rc)
		return rc;
	http_oauth2_encode(&b, o);
	buf_add_lenstr(&b, *secret);
	if (buf_failed(&b) ||
		EVP_Digest(b.ptr, b.len, r->token_id.digest, &n, EVP_sha256(), NULL) != 1 ||
		n != sizeof(r->token_id.digest))
		rc = err_nomem(err, "token");
	if (b.ptr)
		OPENSSL_cleanse(b.ptr, b.cap);
	buf_release(&b);
	return rc;
}

static struct grant *http_client_oauth2_find_grant(
	struct http_client *c, const struct http_token_id *id)
{
	struct grant *g;

	TAILQ_FOREACH (g, &c->grants, link)
		if (memcmp(&g->id, id, sizeof(*id)) == 0)
			return g;
	return NULL;
}

static struct grant *grant_new(struct http_request *r, struct str secret, struct err *err)
{
	struct grant *g = calloc(1, sizeof(*g));

	if (!g) {
		err_nomem(err, "token");
		return NULL;
	}
	g->client = r->client;
	g->id = r->token_id;
	TAILQ_INIT(&g->waiting);
	TAILQ_INSERT_TAIL(&r->client->grants, g, link);
	arena_init(&g->arena, 0);
	g->secret = str_dup(&g->arena, secret);
	g->look = evtimer_new(r->client->base, http_client_oauth2_on_look, g);
	if (!g->secret.ptr || !g->look ||
		http_oauth2_dup(&g->arena, r->config->oauth2, &g->oauth2, err)) {
		err_nomem(err, "token");
		grant_free(g);
		return NULL;
	}
	return g;
}

bool request_needs_token(const struct http_request *r)
{
	return r->config && r->config->oauth2 && !r->foreign && !r->authorization.len &&
		!header_is_in(r->headers, "authorization");
}

/* Waits on the grant of its token. */
static enum err_code http_client_oauth2_wait_for(
	struct http_request *r, struct str secret, const struct http_token *ours, struct err *err)
{
	struct grant *g = http_client_oauth2_find_grant(r->client, &r->token_id);

	if (!g && !(g = grant_new(r, secret, err))) {
		if (ours)
			http_token_fail(&r->token_id, clock_monotonic_ns(), ERR_NOMEM, NULL);
		return ERR_NOMEM;
	}
	request_wait(r, &g->waiting);
	if (ours && !g->asking) {
		event_del(g->look);
		grant_begin_ask(g, ours->style);
	} else if (!g->asking) {
		timer_after(g->look, LOOK_AGAIN_NS);
	}
	return ERR_OK;
}

enum err_code request_get_token(struct http_request *r, struct err *err)
{
	struct http_token token;
	struct str secret;
	enum err_code rc;

	assert(request_needs_token(r));
	if ((rc = http_client_oauth2_identify(r, &secret, err)))
		return rc;
	switch (http_token_get(&r->arena, &r->token_id, clock_monotonic_ns(), &token, err)) {
	case HTTP_TOKEN_VALID:
		r->authorization = token.authorization;
		r->token_serial = token.serial;
		r->token_is_new = false;
		return request_compose(r, err);
	case HTTP_TOKEN_ASK:
		return http_client_oauth2_wait_for(r, secret, &token, err);
	case HTTP_TOKEN_BUSY:
		return http_client_oauth2_wait_for(r, secret, NULL, err);
	case HTTP_TOKEN_FAILED:
		return ERR_UNAVAILABLE;
	default:
		return err_nomem(err, "token");
	}
}

bool request_token_refused(struct http_request *r)
{
	if (!r->token_serial || r->foreign || r->parser.status != 401 || r->token_again)
		return false;
	if (!http_token_refused(&r->token_id, clock_monotonic_ns(), r->token_serial) || r->token_is_new)
		return false;
	r->token_again = true;
	r->authorization = STR("");
	return true;
}

void request_describe_wait(const struct http_request *r, struct err *err)
{
	struct buf url = { 0 };

	hidden_print_url(&url, r->config->oauth2->token_url);
	err_set(err, ERR_TIMEOUT, "context deadline exceeded: no token came from " STR_FMT,
		STR_ARG(buf_str(&url)));
	buf_release(&url);
}

void grants_cancel(struct http_client *c, const struct err *err)
{
	struct http_request *r;
	struct grant *g;

	TAILQ_FOREACH (g, &c->grants, link)
		while ((r = TAILQ_FIRST(&g->waiting)))
			request_finish(r, ERR_CANCELED, err);
}

void grants_close(struct http_client *c)
{
	struct grant *g;

	while ((g = TAILQ_FIRST(&c->grants))) {
		assert(TAILQ_EMPTY(&g->waiting) && !g->asking);
		grant_free(g);
	}
}
