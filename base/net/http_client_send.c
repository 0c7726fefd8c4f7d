/*
 * The bytes to send: the request's head, with credentials and headers from the configuration and
 * the caller, and its body.
 */
#include <openssl/evp.h>

#include "base/fs.h"
#include "base/net/http_client_internal.h"

#define PIECE_BYTES (256u << 10)
#define CREDENTIAL_BYTES_MAX (64u << 10)

static bool http_client_send_in_list(struct str name, const char *const *list)
{
	for (; *list; list++)
		if (str_eq_nocase(name, str_of(*list)))
			return true;
	return false;
}

enum err_code http_read_secret(struct arena *a, struct str value, struct str file, const char *what,
	struct str *out, struct err *err)
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

struct str http_basic_credentials(struct arena *a, struct str user, struct str password)
{
	size_t n = user.len + 1 + password.len;
	char *pair = arena_alloc_raw(a, n, 1), *text = arena_alloc_raw(a, 6 + (n + 2) / 3 * 4 + 1, 1);

	if (!pair || !text)
		return (struct str){ NULL, 0 };
	memcpy(pair, user.ptr, user.len);
	pair[user.len] = ':';
	memcpy(pair + user.len + 1, password.ptr, password.len);
	memcpy(text, "Basic ", 6);
	n = (size_t)EVP_EncodeBlock((unsigned char *)text + 6, (const unsigned char *)pair, (int)n);
	return (struct str){ text, 6 + n };
}

static enum err_code http_client_send_basic_auth(
	struct http_request *r, struct str *out, struct err *err)
{
	const struct http_config *c = r->config;
	struct str user, password;
	enum err_code rc;

	rc = http_read_secret(
		&r->arena, c->username, c->username_file, "basic auth username file", &user, err);
	if (rc)
		return rc;
	rc = http_read_secret(
		&r->arena, c->password, c->password_file, "basic auth password file", &password, err);
	if (rc)
		return rc;
	*out = http_basic_credentials(&r->arena, user, password);
	return out->ptr ? ERR_OK : arena_fail(&r->arena, "request", err);
}

enum err_code request_authorize(struct http_request *r, struct err *err)
{
	const struct http_config *c = r->config;
	struct str credentials;
	enum err_code rc;
	char *text;

	if (!c)
		return ERR_OK;
	if (c->has_basic_auth)
		return http_client_send_basic_auth(r, &r->authorization, err);
	if (!c->has_authorization)
		return ERR_OK;
	rc = http_read_secret(&r->arena, c->credentials, c->credentials_file,
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

enum err_code request_check_headers(struct labels headers, struct err *err)
{
	static const char *const ours[] = { "host", "content-length", "transfer-encoding", "connection",
		"upgrade", "expect", "te", "trailer", NULL };

	for (size_t i = 0; i < headers.n; i++) {
		struct str name = headers.v[i].name;

		if (!http_token_valid(name) || http_client_send_in_list(name, ours))
			return err_set(err, ERR_INVALID, "header \"%.*s\" may not be set",
				(int)(name.len < 64 ? name.len : 64), name.ptr);
		if (!http_header_value_valid(headers.v[i].value))
			return err_set(err, ERR_INVALID,
				"value of header \"" STR_FMT "\" holds control characters", STR_ARG(name));
	}
	return ERR_OK;
}

bool header_is_in(struct labels headers, const char *name)
{
	for (size_t i = 0; i < headers.n; i++)
		if (str_eq_nocase(headers.v[i].name, str_of(name)))
			return true;
	return false;
}

void header_print(struct buf *b, struct str name, struct str value)
{
	buf_add_str(b, name);
	buf_add(b, ": ", 2);
	buf_add_str(b, value);
	buf_add(b, "\r\n", 2);
}

/* Another origin gets only the headers that describe the body and the answer wanted. */
static void http_client_send_add_headers(struct buf *b, struct labels headers, bool foreign)
{
	static const char *const harmless[] = { "accept", "accept-encoding", "accept-language",
		"content-type", "content-encoding", "user-agent", NULL };

	for (size_t i = 0; i < headers.n; i++)
		if (!foreign || http_client_send_in_list(headers.v[i].name, harmless))
			header_print(b, headers.v[i].name, headers.v[i].value);
}

static enum err_code http_client_send_add_file_headers(struct http_request *r, struct err *err)
{
	struct labels files = r->config ? r->config->header_files : (struct labels){ 0 };
	struct str value;
	enum err_code rc;

	for (size_t i = 0; i < files.n && !r->foreign; i++) {
		rc = http_read_secret(
			&r->arena, STR(""), files.v[i].value, "http header file", &value, err);
		if (rc)
			return rc;
		header_print(&r->out, files.v[i].name, value);
	}
	return ERR_OK;
}

bool request_is_local(const struct http_request *r)
{
	return r->unix_path.len && !r->foreign;
}

enum err_code request_route(struct http_request *r, struct err *err)
{
	const struct http_proxy *p = &r->proxy;
	struct buf key = { 0 };
	enum err_code rc;

	r->proxy = (struct http_proxy){ 0 };
	r->proxy_key = STR("");
	if (request_is_local(r)) {
		r->proxy_key = str_of(arena_printf(&r->arena, "unix " STR_FMT, STR_ARG(r->unix_path)));
		return r->proxy_key.ptr ? ERR_OK : arena_fail(&r->arena, "request", err);
	}
	if (!r->config)
		return ERR_OK;
	rc = http_proxy_choose(
		&r->arena, &r->config->proxy, r->url.tls, r->url.host, r->url.port, &r->proxy, err);
	if (rc || !p->kind)
		return rc;
	buf_printf(&key, "%d %d %u ", p->kind, p->has_user, p->port);
	buf_add_lenstr(&key, p->host);
	buf_add_lenstr(&key, p->user);
	buf_add_lenstr(&key, p->password);
	for (size_t i = 0; r->url.tls && i < r->config->proxy.connect_headers.n; i++) {
		buf_add_lenstr(&key, r->config->proxy.connect_headers.v[i].name);
		buf_add_lenstr(&key, r->config->proxy.connect_headers.v[i].value);
	}
	r->proxy_key = str_dup(&r->arena, buf_str(&key));
	rc = buf_failed(&key) || !r->proxy_key.ptr ? arena_fail(&r->arena, "request", err) : ERR_OK;
	buf_release(&key);
	return rc;
}

enum err_code request_compose(struct http_request *r, struct err *err)
{
	bool body = r->body.len || r->source || strcmp(r->method, "POST") == 0 ||
		strcmp(r->method, "PUT") == 0;
	/* a proxy that is no tunnel reads the URL */
	bool whole = !r->url.tls &&
		(r->proxy.kind == HTTP_PROXY_HTTP || r->proxy.kind == HTTP_PROXY_HTTPS);
	struct buf *b = &r->out;
	struct str auth;
	enum err_code rc;

	buf_clear(b);
	buf_printf(b, "%s %s HTTP/1.1\r\n", r->method, whole ? r->url.text : r->url.target.ptr);
	header_print(b, STR("Host"), r->url.authority);
	if (!header_is_in(r->headers, "user-agent"))
		header_print(b, STR("User-Agent"), str_of(r->client->user_agent));
	if (r->authorization.len && !r->foreign && !header_is_in(r->headers, "authorization"))
		header_print(b, STR("Authorization"), r->authorization);
	if (whole && r->proxy.has_user) {
		auth = http_basic_credentials(&r->arena, r->proxy.user, r->proxy.password);
		if (!auth.ptr)
			return arena_fail(&r->arena, "request", err);
		header_print(b, STR("Proxy-Authorization"), auth);
	}
	if (body)
		buf_printf(b, "Content-Length: %llu\r\n",
			r->source ? (unsigned long long)r->source->bytes : (unsigned long long)r->body.len);
	if (r->config && !r->foreign)
		http_client_send_add_headers(b, r->config->headers, false);
	if ((rc = http_client_send_add_file_headers(r, err)))
		return rc;
	http_client_send_add_headers(b, r->headers, r->foreign);
	buf_add(b, "\r\n", 2);
	r->head_bytes = b->len;
	buf_add_str(b, r->body);
	if (buf_failed(b))
		return err_nomem(err, "request");
	return ERR_OK;
}

enum err_code request_next_piece(struct http_request *r, struct err *err)
{
	uint64_t left = r->source ? r->source->bytes - r->source_at : 0;
	size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
	enum err_code rc;

	if (!n || r->piece_at < r->piece.len)
		return ERR_OK;
	buf_clear(&r->piece);
	r->piece_at = 0;
	if (!buf_reserve(&r->piece, n))
		return err_nomem(err, "request");
	if ((rc = r->source->read(r->source->ctx, r->source_at, r->piece.ptr, n, err)))
		return rc;
	r->piece.len = n;
	r->source_at += n;
	return ERR_OK;
}

bool conn_is_sent(const struct http_client_conn *c)
{
	const struct http_request *r = c->req;

	return c->out_at == r->out.len && r->piece_at == r->piece.len &&
		(!r->source || r->source_at == r->source->bytes);
}

void conn_count_sent(struct http_client_conn *c, size_t n)
{
	if (c->out_at < c->req->out.len)
		c->out_at += n;
	else
		c->req->piece_at += n;
}

enum err_code conn_unsent(struct http_client_conn *c, struct str *out, struct err *err)
{
	struct http_request *r = c->req;
	enum err_code rc;

	if (c->out_at < r->out.len) {
		*out = (struct str){ r->out.ptr + c->out_at, r->out.len - c->out_at };
		return ERR_OK;
	}
	if ((rc = request_next_piece(r, err)))
		return rc;
	*out = (struct str){ r->piece.ptr + r->piece_at, r->piece.len - r->piece_at };
	return ERR_OK;
}
