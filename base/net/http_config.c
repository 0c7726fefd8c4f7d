/*
 * The fields are inline in other structs, so each has its own decoder. A decoder reads into a
 * separate struct http_config and copies its field, since yaml_decode begins by setting defaults.
 */
#include "base/net/http_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))
#define AT(f) offsetof(struct http_config, f)

void http_config_defaults(struct http_config *c)
{
	*c = (struct http_config){ .follow_redirects = true, .enable_http2 = true };
}

/* -------------------------------------------------------------------------------------------- */
/* Credentials */

static const struct yaml_field basic_auth_fields[] = {
	{ "username", YAML_STRING, AT(username), .help = "The name of the user." },
	{ "username_file", YAML_STRING, AT(username_file), .help = "A file with it.", .takes = "path" },
	{ "password", YAML_SECRET, AT(password), .help = "The password." },
	{ "password_file", YAML_STRING, AT(password_file),
		.help = "A file with it, read for each request.", .takes = "path" },
};
const struct yaml_schema http_basic_auth_schema = { "basic_auth", sizeof(struct http_config),
	basic_auth_fields, COUNT(basic_auth_fields), NULL, NULL };

static const struct yaml_field authorization_fields[] = {
	{ "type", YAML_STRING, AT(auth_type), .help = "The scheme. `Basic` is written as `basic_auth`.",
		.unset = "`Bearer`" },
	{ "credentials", YAML_SECRET, AT(credentials), .help = "What follows the scheme." },
	{ "credentials_file", YAML_STRING, AT(credentials_file),
		.help = "A file with it, read for each request.", .takes = "path" },
};
const struct yaml_schema http_authorization_schema = { "authorization", sizeof(struct http_config),
	authorization_fields, COUNT(authorization_fields), NULL, NULL };

enum err_code http_config_basic_auth(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct http_config *c = out, in;
	enum err_code rc = yaml_decode(ctx, &http_basic_auth_schema, n, &in, err);

	if (rc)
		return rc;
	if (in.username.len && in.username_file.len)
		return yaml_err(n, err, ERR_INVALID,
			"at most one of basic_auth username & username_file must be configured");
	if (in.password.len && in.password_file.len)
		return yaml_err(n, err, ERR_INVALID,
			"at most one of basic_auth password & password_file must be configured");
	c->username = in.username;
	c->username_file = in.username_file;
	c->password = in.password;
	c->password_file = in.password_file;
	c->has_basic_auth = true;
	return ERR_OK;
}

enum err_code http_config_authorization(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct http_config *c = out, in;
	enum err_code rc = yaml_decode(ctx, &http_authorization_schema, n, &in, err);

	if (rc)
		return rc;
	if (in.credentials.len && in.credentials_file.len)
		return yaml_err(n, err, ERR_INVALID,
			"at most one of authorization credentials & credentials_file must be configured");
	in.auth_type = str_trim(in.auth_type);
	if (str_eq_nocase(in.auth_type, STR("basic")))
		return yaml_err(yaml_get(n, "type"), err, ERR_INVALID,
			"authorization type cannot be set to \"basic\", use \"basic_auth\" instead");
	c->auth_type = in.auth_type.len ? in.auth_type : STR("Bearer");
	c->credentials = in.credentials;
	c->credentials_file = in.credentials_file;
	c->has_authorization = true;
	return ERR_OK;
}

/* A field that is one string. */
static enum err_code http_config_one_string(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct str *out, struct err *err)
{
	if (n->kind != YAML_SCALAR)
		return yaml_err(n, err, ERR_INVALID, "cannot unmarshal %s into string", yaml_tag(n));
	if (n->text.len && memchr(n->text.ptr, '\0', n->text.len))
		return yaml_err(n, err, ERR_INVALID, "a string may not hold a NUL byte");
	*out = str_dup(ctx->arena, n->text);
	return out->ptr ? ERR_OK : arena_fail(ctx->arena, n->file, err);
}

static enum err_code http_config_bearer(struct yaml_ctx *ctx, const struct yaml_node *n,
	struct http_config *c, struct str *to, struct err *err)
{
	enum err_code rc = http_config_one_string(ctx, n, to, err);

	if (rc || !to->len)
		return rc;
	if (!c->auth_type.len) /* http_config_check refuses it together with authorization */
		c->auth_type = STR("Bearer");
	c->has_authorization = true;
	return ERR_OK;
}

enum err_code http_config_bearer_token(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct http_config *c = out;

	return http_config_bearer(ctx, n, c, &c->credentials, err);
}

enum err_code http_config_bearer_token_file(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct http_config *c = out;

	return http_config_bearer(ctx, n, c, &c->credentials_file, err);
}

/* -------------------------------------------------------------------------------------------- */
/* TLS */

static const struct yaml_field tls_fields[] = {
	{ "ca", YAML_STRING, AT(tls_ca), .help = "CA certificates to trust, in PEM.",
		.unset = "those of the system" },
	{ "ca_file", YAML_STRING, AT(tls_ca_file), .help = "A file with them.", .takes = "path" },
	{ "cert", YAML_STRING, AT(tls_cert), .help = "The client certificate in PEM." },
	{ "cert_file", YAML_STRING, AT(tls_cert_file), .help = "A file with it.", .takes = "path" },
	{ "key", YAML_SECRET, AT(tls_key), .help = "The key of the client certificate, in PEM." },
	{ "key_file", YAML_STRING, AT(tls_key_file), .help = "A file with it.", .takes = "path" },
	{ "server_name", YAML_STRING, AT(tls_server_name),
		.help = "The name that the server's certificate must have.",
		.unset = "the host of the URL" },
	{ "insecure_skip_verify", YAML_BOOL, AT(tls_insecure_skip_verify),
		.help = "Any certificate is accepted." },
	{ "min_version", YAML_STRING, AT(tls_min_version), .help = "The oldest version of TLS.",
		.limits = "`TLS10`, `TLS11`, `TLS12` or `TLS13`", .unset = "`TLS12`" },
	{ "max_version", YAML_STRING, AT(tls_max_version), .help = "The newest version of TLS.",
		.limits = "`TLS10`, `TLS11`, `TLS12` or `TLS13`", .unset = "`TLS13`" },
};

/* 0: not set. */
static enum err_code http_config_check_version(
	const struct yaml_node *n, struct str version, int *out, struct err *err)
{
	static const char *const names[] = { "TLS10", "TLS11", "TLS12", "TLS13" };

	*out = 0;
	if (!version.len)
		return ERR_OK;
	for (size_t i = 0; i < COUNT(names); i++)
		if (str_is(version, names[i])) {
			*out = (int)i + 1;
			return ERR_OK;
		}
	return yaml_err(n, err, ERR_INVALID, "unknown TLS version: " STR_FMT, STR_ARG(version));
}

static enum err_code http_config_check_tls(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	const struct http_config *c = out;
	bool cert = c->tls_cert.len || c->tls_cert_file.len;
	bool key = c->tls_key.len || c->tls_key_file.len;
	const char *twice = c->tls_ca.len && c->tls_ca_file.len ? "ca" :
		c->tls_cert.len && c->tls_cert_file.len             ? "cert" :
		c->tls_key.len && c->tls_key_file.len               ? "key" :
															  NULL;
	enum err_code rc;
	int min, max;

	if (twice)
		return yaml_err(
			n, err, ERR_INVALID, "at most one of %s and %s_file must be configured", twice, twice);
	if (cert && !key)
		return yaml_err(n, err, ERR_INVALID,
			"exactly one of key or key_file must be configured when a client certificate is "
			"configured");
	if (key && !cert)
		return yaml_err(n, err, ERR_INVALID,
			"exactly one of cert or cert_file must be configured when a client key is configured");
	if ((rc = http_config_check_version(
			 yaml_get(n, "min_version"), c->tls_min_version, &min, err)) ||
		(rc = http_config_check_version(yaml_get(n, "max_version"), c->tls_max_version, &max, err)))
		return rc;
	if (min && max && max < min)
		return yaml_err(yaml_get(n, "max_version"), err, ERR_INVALID,
			"tls_config.max_version must be greater "
			"than or equal to tls_config.min_version if both are specified");
	return ERR_OK;
}

const struct yaml_schema http_tls_schema = { "tls_config", sizeof(struct http_config), tls_fields,
	COUNT(tls_fields), NULL, http_config_check_tls };

enum err_code http_config_tls(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct http_config *c = out, in;
	enum err_code rc = yaml_decode(ctx, &http_tls_schema, n, &in, err);

	if (rc)
		return rc;
	c->tls_ca = in.tls_ca;
	c->tls_ca_file = in.tls_ca_file;
	c->tls_cert = in.tls_cert;
	c->tls_cert_file = in.tls_cert_file;
	c->tls_key = in.tls_key;
	c->tls_key_file = in.tls_key_file;
	c->tls_server_name = in.tls_server_name;
	c->tls_insecure_skip_verify = in.tls_insecure_skip_verify;
	c->tls_min_version = in.tls_min_version;
	c->tls_max_version = in.tls_max_version;
	return ERR_OK;
}

/* -------------------------------------------------------------------------------------------- */
/* Headers */

struct http_config_header {
	struct yaml_list values, secrets, files;
};

static const struct yaml_field header_fields[] = {
	{ "values", YAML_LIST, offsetof(struct http_config_header, values), .help = "Values." },
	{ "secrets", YAML_LIST, offsetof(struct http_config_header, secrets),
		.help = "Values that are never shown.", .takes = "list of secrets" },
	{ "files", YAML_LIST, offsetof(struct http_config_header, files),
		.help = "A file with a value, read for each request.", .takes = "list of paths",
		.limits = "at most one" },
};
const struct yaml_schema http_header_schema = { "header", sizeof(struct http_config_header),
	header_fields, COUNT(header_fields), NULL, NULL };

static bool http_config_is_reserved(struct str name)
{
	static const char *const reserved[] = { "Accept-Encoding", "Authorization", "Connection",
		"Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive",
		"Proxy-Authenticate", "Proxy-Authorization", "TE", "Trailer", "Transfer-Encoding",
		"Upgrade", "User-Agent", "Www-Authenticate", "X-Prometheus-Scrape-Timeout-Seconds" };

	for (size_t i = 0; i < COUNT(reserved); i++)
		if (str_eq_nocase(name, str_of(reserved[i])))
			return true;
	return false;
}

static bool http_config_header_name_valid(struct str s)
{
	size_t i;

	for (i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i] | 0x20;

		if (!(c >= 'a' && c <= 'z') && !(s.ptr[i] && strchr("0123456789!#$%&'*+-.^_`|~", s.ptr[i])))
			return false;
	}
	return s.len > 0;
}

/* Several values of one header become one with commas between (RFC 9110, 5.3). */
static void http_config_join(struct buf *b, const struct yaml_list *l)
{
	const struct str *v = l->v;

	for (size_t i = 0; i < l->n; i++) {
		if (b->len)
			buf_add_cstr(b, ", ");
		buf_add_str(b, v[i]);
	}
}

static enum err_code http_config_one_header(struct yaml_ctx *ctx, const struct yaml_node *n,
	struct label *value, struct label *file, struct err *err)
{
	struct str name = n->key->text;
	struct buf b = { 0 };
	struct http_config_header h;
	enum err_code rc;
	size_t i;

	if (!http_config_header_name_valid(name))
		return yaml_err(n->key, err, ERR_INVALID, "invalid header name \"%.*s\"",
			(int)(name.len < 64 ? name.len : 64), name.ptr);
	if (http_config_is_reserved(name))
		return yaml_err(n->key, err, ERR_INVALID, "setting header \"" STR_FMT "\" is not allowed",
			STR_ARG(name));
	if ((rc = yaml_decode(ctx, &http_header_schema, n, &h, err)))
		return rc;
	if (h.files.n > 1)
		return yaml_err(
			yaml_get(n, "files"), err, ERR_UNSUPPORTED, "more than one file for a header");
	value->name = file->name = str_dup(ctx->arena, name);
	http_config_join(&b, &h.values);
	http_config_join(&b, &h.secrets);
	value->value = str_dup(ctx->arena, buf_str(&b));
	if (h.files.n)
		file->value = *(struct str *)h.files.v;
	buf_release(&b);
	if (!value->name.ptr || !value->value.ptr)
		return arena_fail(ctx->arena, n->file, err);
	for (i = 0; i < value->value.len; i++)
		if (((unsigned char)value->value.ptr[i] < ' ' && value->value.ptr[i] != '\t') ||
			value->value.ptr[i] == 0x7f)
			return yaml_err(
				n, err, ERR_INVALID, "a header's value may not hold control characters");
	return ERR_OK;
}

static int http_config_by_name(const void *a, const void *b)
{
	return str_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

enum err_code http_config_headers(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct http_config *c = out;
	struct label *values, *files;
	const struct yaml_node *m;
	size_t values_n = 0, files_n = 0;
	enum err_code rc;

	if (n->kind != YAML_MAPPING)
		return yaml_err(n, err, ERR_INVALID, "cannot unmarshal %s into http_headers", yaml_tag(n));
	values = arena_array(ctx->arena, struct label, n->n);
	files = arena_array(ctx->arena, struct label, n->n);
	if (!values || !files)
		return arena_fail(ctx->arena, n->file, err);
	for (m = n->child; m; m = m->next) {
		if ((rc = http_config_one_header(ctx, m, &values[values_n], &files[files_n], err)))
			return rc;
		values_n += values[values_n].value.len != 0;
		files_n += files[files_n].value.len != 0;
	}
	if (values_n > 1)
		qsort(values, values_n, sizeof(*values), http_config_by_name);
	if (files_n > 1)
		qsort(files, files_n, sizeof(*files), http_config_by_name);
	c->headers = (struct labels){ values, values_n };
	c->header_files = (struct labels){ files, files_n };
	return ERR_OK;
}

/* -------------------------------------------------------------------------------------------- */
/* The whole */

static bool http_config_is_set(const struct yaml_node *n, const char *field)
{
	const struct yaml_node *v = yaml_get(n, field);

	return !yaml_is_null(v) && (v->kind != YAML_SCALAR || v->text.len);
}

enum err_code http_config_make_absolute(struct yaml_ctx *ctx, struct str *path, struct err *err)
{
	char *p;

	if (!path->len)
		return ERR_OK;
	p = path_join(ctx->arena, ctx->dir, *path);
	if (!p)
		return arena_fail(ctx->arena, "configuration", err);
	*path = str_of(p);
	return ERR_OK;
}

enum err_code http_config_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct http_config *c, struct err *err)
{
	bool token = http_config_is_set(n, "bearer_token"),
		 token_file = http_config_is_set(n, "bearer_token_file");
	bool bearer_given = token || token_file, auth = http_config_is_set(n, "authorization");
	struct str *const paths[] = { &c->username_file, &c->password_file, &c->credentials_file,
		&c->tls_ca_file, &c->tls_cert_file, &c->tls_key_file };
	struct label *files;
	enum err_code rc;

	if (token && token_file)
		return yaml_err(yaml_get(n, "bearer_token_file"), err, ERR_INVALID,
			"at most one of bearer_token & bearer_token_file must be configured");
	if ((c->has_basic_auth || c->oauth2) && bearer_given)
		return yaml_err(yaml_get(n, c->oauth2 ? "oauth2" : "basic_auth"), err, ERR_INVALID,
			"at most one of basic_auth, oauth2, bearer_token & bearer_token_file must be "
			"configured");
	if (auth && bearer_given)
		return yaml_err(yaml_get(n, "authorization"), err, ERR_INVALID,
			"authorization is not compatible with bearer_token & bearer_token_file");
	if (c->has_basic_auth + c->has_authorization + (c->oauth2 != NULL) > 1)
		return yaml_err(yaml_get(n, c->has_authorization ? "authorization" : "oauth2"), err,
			ERR_INVALID, "at most one of basic_auth, oauth2 & authorization must be configured");
	if ((rc = http_config_check_proxy(ctx, n, &c->proxy, err)))
		return rc;
	for (size_t i = 0; i < COUNT(paths); i++)
		if ((rc = http_config_make_absolute(ctx, paths[i], err)))
			return rc;
	files = arena_array(ctx->arena, struct label, c->header_files.n);
	if (!files)
		return arena_fail(ctx->arena, "configuration", err);
	for (size_t i = 0; i < c->header_files.n; i++) {
		files[i] = c->header_files.v[i];
		if ((rc = http_config_make_absolute(ctx, &files[i].value, err)))
			return rc;
	}
	c->header_files.v = files;
	return ERR_OK;
}

/* User information would fail with each request, so it is refused here. */
const char *http_config_url_problem(struct str url)
{
	ptrdiff_t colon = str_find(url, STR(":"));
	struct str scheme = { url.ptr, colon > 0 ? (size_t)colon : 0 }, host = { 0 };
	size_t n = 0;

	if (!url.len)
		return "URL is missing";
	if (!str_eq_nocase(scheme, STR("http")) && !str_eq_nocase(scheme, STR("https")))
		return "URL scheme must be 'http' or 'https'";
	if (str_has_prefix((struct str){ url.ptr + colon, url.len - scheme.len }, STR("://")))
		host = (struct str){ url.ptr + colon + 3, url.len - scheme.len - 3 };
	while (n < host.len && !(host.ptr[n] && strchr("/?#", host.ptr[n])))
		n++;
	host.len = n;
	if (!host.len || host.ptr[0] == ':')
		return "host is missing in URL";
	if (memchr(host.ptr, '@', host.len))
		return "user information in a URL is not supported, use basic_auth";
	return NULL;
}

static enum err_code http_config_check_file(const char *what, struct str path, struct err *err)
{
	char name[4096];
	int fd;

	if (!path.len)
		return ERR_OK;
	if (path.len >= sizeof(name))
		return err_set(err, ERR_INVALID, "%s: path is too long", what);
	memcpy(name, path.ptr, path.len);
	name[path.len] = '\0';
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_errno(err, errno, "%s %s", what, name);
	close(fd);
	return ERR_OK;
}

enum err_code http_config_check_files(const struct http_config *c, struct err *err)
{
	const struct {
		const char *what;
		struct str path;
	} files[] = {
		{ "basic auth username file", c->username_file },
		{ "basic auth password file", c->password_file },
		{ "authorization credentials file", c->credentials_file },
		{ "tls ca file", c->tls_ca_file },
		{ "tls cert file", c->tls_cert_file },
		{ "tls key file", c->tls_key_file },
	};
	enum err_code rc;

	for (size_t i = 0; i < COUNT(files); i++)
		if ((rc = http_config_check_file(files[i].what, files[i].path, err)))
			return rc;
	for (size_t i = 0; i < c->header_files.n; i++)
		if ((rc = http_config_check_file("http header file", c->header_files.v[i].value, err)))
			return rc;
	if (!c->oauth2)
		return ERR_OK;
	if ((rc = http_config_check_file(
			 "oauth2 client secret file", c->oauth2->client_secret_file, err)))
		return rc;
	rc = http_config_check_files(&c->oauth2->http, err);
	return rc ? err_wrap(err, rc, "oauth2") : ERR_OK;
}

/* -------------------------------------------------------------------------------------------- */
/* Copies and comparison */

static void http_config_encode_labels(struct buf *out, struct labels ls)
{
	buf_add_varint(out, ls.n);
	for (size_t i = 0; i < ls.n; i++) {
		buf_add_lenstr(out, ls.v[i].name);
		buf_add_lenstr(out, ls.v[i].value);
	}
}

void http_config_encode(struct buf *out, const struct http_config *c)
{
	const struct str texts[] = { c->username, c->username_file, c->password, c->password_file,
		c->auth_type, c->credentials, c->credentials_file, c->tls_ca, c->tls_ca_file, c->tls_cert,
		c->tls_cert_file, c->tls_key, c->tls_key_file, c->tls_server_name, c->tls_min_version,
		c->tls_max_version, c->proxy.url, c->proxy.no_proxy };
	const bool flags[] = { c->has_basic_auth, c->has_authorization, c->tls_insecure_skip_verify,
		c->follow_redirects, c->enable_http2, c->proxy.from_environment, c->oauth2 != NULL };

	for (size_t i = 0; i < COUNT(texts); i++)
		buf_add_lenstr(out, texts[i]);
	for (size_t i = 0; i < COUNT(flags); i++)
		buf_add_char(out, flags[i] ? '1' : '0');
	http_config_encode_labels(out, c->headers);
	http_config_encode_labels(out, c->header_files);
	http_config_encode_labels(out, c->proxy.connect_headers);
	if (c->oauth2)
		http_oauth2_encode(out, c->oauth2);
}

void http_oauth2_encode(struct buf *out, const struct http_oauth2 *o)
{
	const struct str texts[] = { o->client_id, o->client_secret, o->client_secret_file,
		o->token_url, o->scope };

	for (size_t i = 0; i < COUNT(texts); i++)
		buf_add_lenstr(out, texts[i]);
	http_config_encode_labels(out, o->endpoint_params);
	http_config_encode(out, &o->http);
}

enum err_code http_oauth2_dup(
	struct arena *a, const struct http_oauth2 *o, struct http_oauth2 *out, struct err *err)
{
	struct http_oauth2 copy = *o;
	struct str *const strings[] = { &copy.client_id, &copy.client_secret, &copy.client_secret_file,
		&copy.token_url, &copy.scope };
	enum err_code rc;

	for (size_t i = 0; i < COUNT(strings); i++) {
		*strings[i] = str_dup(a, *strings[i]);
		if (!strings[i]->ptr)
			return arena_fail(a, "HTTP settings", err);
	}
	copy.endpoint_params = labels_dup(a, o->endpoint_params);
	if (copy.endpoint_params.n && !copy.endpoint_params.v)
		return arena_fail(a, "HTTP settings", err);
	if ((rc = http_config_dup(a, &o->http, &copy.http, err)))
		return rc;
	*out = copy;
	return ERR_OK;
}

enum err_code http_config_dup(
	struct arena *a, const struct http_config *c, struct http_config *out, struct err *err)
{
	struct http_config copy = *c;
	struct str *const strings[] = { &copy.username, &copy.username_file, &copy.password,
		&copy.password_file, &copy.auth_type, &copy.credentials, &copy.credentials_file,
		&copy.tls_ca, &copy.tls_ca_file, &copy.tls_cert, &copy.tls_cert_file, &copy.tls_key,
		&copy.tls_key_file, &copy.tls_server_name, &copy.tls_min_version, &copy.tls_max_version,
		&copy.proxy.url, &copy.proxy.no_proxy };
	struct http_oauth2 *oauth2;
	enum err_code rc;

	for (size_t i = 0; i < COUNT(strings); i++) {
		*strings[i] = str_dup(a, *strings[i]);
		if (!strings[i]->ptr)
			return arena_fail(a, "HTTP settings", err);
	}
	copy.headers = labels_dup(a, c->headers);
	copy.header_files = labels_dup(a, c->header_files);
	copy.proxy.connect_headers = labels_dup(a, c->proxy.connect_headers);
	if ((copy.headers.n && !copy.headers.v) || (copy.header_files.n && !copy.header_files.v) ||
		(copy.proxy.connect_headers.n && !copy.proxy.connect_headers.v))
		return arena_fail(a, "HTTP settings", err);
	if (c->oauth2) {
		if (!(oauth2 = arena_new(a, struct http_oauth2)))
			return arena_fail(a, "HTTP settings", err);
		if ((rc = http_oauth2_dup(a, c->oauth2, oauth2, err)))
			return rc;
		copy.oauth2 = oauth2;
	}
	*out = copy;
	return ERR_OK;
}
