#include "web/http/config_file.h"

#include "base/fs.h"
#include "base/quote.h"
#include "base/yaml/yaml.h"
#include "web/http/users.h"

#define TLS_VERSION_DEFAULT 2

static enum err_code http_config_file_refuse(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	(void)ctx;
	(void)field;
	if (n->kind != YAML_SCALAR && !n->n)
		return ERR_OK;
	return yaml_err(n->key ? n->key : n, err, ERR_UNSUPPORTED, STR_FMT " is not supported here",
		STR_ARG(n->key ? n->key->text : STR("this")));
}

static enum err_code http_config_file_check_version(
	const struct yaml_node *n, struct str name, int *out, struct err *err)
{
	if (!name.len || tls_version_parse(name, out))
		return ERR_OK;
	return yaml_err(
		n, err, ERR_INVALID, "unknown TLS version: %s; TLS10 to TLS13 are known", QUOTED(name));
}

static enum err_code tls_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct tls_settings *t = out;
	enum err_code rc;

	(void)ctx;
	t->min = TLS_VERSION_DEFAULT;
	t->max = 3;
	if (!t->cert_file.len)
		return yaml_err(n, err, ERR_INVALID, "missing cert_file");
	if (!t->key_file.len)
		return yaml_err(n, err, ERR_INVALID, "missing key_file");
	if ((rc = http_config_file_check_version(
			 yaml_get(n, "min_version"), t->min_version, &t->min, err)))
		return rc;
	if ((rc = http_config_file_check_version(
			 yaml_get(n, "max_version"), t->max_version, &t->max, err)))
		return rc;
	if (t->min > t->max)
		return yaml_err(n, err, ERR_INVALID, "min_version is above max_version");
	if (t->client_auth_type.len && !tls_client_auth_parse(t->client_auth_type, &t->auth))
		return yaml_err(yaml_get(n, "client_auth_type"), err, ERR_INVALID,
			"unknown client_auth_type %s", QUOTED(t->client_auth_type));
	if (t->client_ca_file.len && t->auth == TLS_NO_CLIENT_CERT)
		return yaml_err(yaml_get(n, "client_ca_file"), err, ERR_INVALID,
			"a client_ca_file without a client_auth_type");
	if (!t->client_ca_file.len && tls_client_auth_verifies(t->auth))
		return yaml_err(yaml_get(n, "client_auth_type"), err, ERR_INVALID,
			STR_FMT " needs a client_ca_file", STR_ARG(t->client_auth_type));
	return ERR_OK;
}

/* Headers that can be set; some have a list of allowed values. */
static const struct {
	const char *name, *values[2];
} settable_headers[] = {
	{ "Content-Security-Policy", { NULL } },
	{ "Strict-Transport-Security", { NULL } },
	{ "X-Content-Type-Options", { "nosniff" } },
	{ "X-Frame-Options", { "deny", "sameorigin" } },
	{ "X-XSS-Protection", { NULL } },
};

static enum err_code http_config_file_header_check(const struct yaml_node *n, struct err *err)
{
	struct str name = n->key->text;
	size_t i = 0, count = sizeof(settable_headers) / sizeof(settable_headers[0]);
	const char *const *values;

	while (i < count && !str_is(name, settable_headers[i].name))
		i++;
	if (i == count)
		return yaml_err(
			n->key, err, ERR_INVALID, "HTTP header %s can not be configured", QUOTED(name));
	for (size_t k = 0; k < n->text.len; k++)
		if ((unsigned char)n->text.ptr[k] < ' ' || n->text.ptr[k] == 127)
			return yaml_err(n, err, ERR_INVALID, "a control character in header %s", QUOTED(name));
	values = settable_headers[i].values;
	for (size_t k = 0; k < 2 && values[k]; k++)
		if (str_is(n->text, values[k]))
			return ERR_OK;
	if (!values[0])
		return ERR_OK;
	return yaml_err(n, err, ERR_INVALID, "invalid value for %s: %s; want \"%s\"%s%s%s",
		settable_headers[i].name, QUOTED(n->text), values[0], values[1] ? " or \"" : "",
		values[1] ? values[1] : "", values[1] ? "\"" : "");
}

static enum err_code http_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	const struct yaml_node *headers = yaml_get(n, "headers");
	enum err_code rc = ERR_OK;

	(void)ctx;
	(void)out;
	for (const struct yaml_node *h = headers ? headers->child : NULL; h && !rc; h = h->next)
		rc = http_config_file_header_check(h, err);
	return rc;
}

static enum err_code http_config_file_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	const struct yaml_node *users = yaml_get(n, "basic_auth_users");
	struct err why;

	(void)ctx;
	(void)out;
	for (const struct yaml_node *u = users ? users->child : NULL; u; u = u->next) {
		if (!u->key->text.len || memchr(u->key->text.ptr, ':', u->key->text.len))
			return yaml_err(
				u->key, err, ERR_INVALID, "a user's name must not be empty or have a colon");
		if (users_check_hash(u->text, &why))
			return yaml_err(u, err, ERR_INVALID, "user %s: %s", QUOTED(u->key->text), why.msg);
	}
	return ERR_OK;
}

#define TLS_AT(f) offsetof(struct tls_settings, f)
/* clang-format off */
static const struct yaml_field tls_fields[] = {
	{ "cert_file", YAML_STRING, TLS_AT(cert_file), .help = "The certificate chain in PEM.",
		.takes = "path", .unset = "required" },
	{ "key_file", YAML_STRING, TLS_AT(key_file), .help = "Its private key in PEM.", .takes = "path",
		.unset = "required" },
	{ "client_ca_file", YAML_STRING, TLS_AT(client_ca_file),
		.help = "The certificates that clients must be signed by, in PEM.", .takes = "path" },
	{ "client_auth_type", YAML_STRING, TLS_AT(client_auth_type),
		.help = "What is asked of clients, in the words of Go.", .unset = "`NoClientCert`",
		.limits = "`NoClientCert`, `RequestClientCert`, `RequireAnyClientCert`, "
		"`VerifyClientCertIfGiven` or `RequireAndVerifyClientCert`" },
	{ "min_version", YAML_STRING, TLS_AT(min_version), .help = "The oldest version of TLS.",
		.unset = "`TLS12`", .limits = "`TLS10` to `TLS13`" },
	{ "max_version", YAML_STRING, TLS_AT(max_version), .help = "The newest version of TLS.",
		.unset = "`TLS13`", .limits = "`TLS10` to `TLS13`" },
	{ "prefer_server_cipher_suites", YAML_BOOL, TLS_AT(prefer_server_cipher_suites),
		.help = "Taken and without effect, as in Go." },
	{ "cipher_suites", YAML_CUSTOM, TLS_AT(unsupported), .decode = http_config_file_refuse,
		.help = "Refused unless it is empty: not supported.", .takes = "list of strings" },
	{ "curve_preferences", YAML_CUSTOM, TLS_AT(unsupported), .decode = http_config_file_refuse,
		.help = "Refused unless it is empty: not supported.", .takes = "list of strings" },
	{ "client_allowed_sans", YAML_CUSTOM, TLS_AT(unsupported), .decode = http_config_file_refuse,
		.help = "Refused unless it is empty: not supported.", .takes = "list of strings" },
};
static const struct yaml_schema tls_schema = {
	.name = "web.TLSConfig", .size = sizeof(struct tls_settings), .fields = tls_fields,
	.fields_n = sizeof(tls_fields) / sizeof(tls_fields[0]), .check = tls_check,
};
static const struct yaml_field http_fields[] = {
	{ "http2", YAML_BOOL, offsetof(struct http_settings, http2),
		.help = "Taken and without effect: the server speaks HTTP/1.1." },
	{ "headers", YAML_STRING_MAP, offsetof(struct http_settings, headers),
		.help = "Headers of every answer.",
		.limits = "`Content-Security-Policy`, `Strict-Transport-Security`, "
		"`X-Content-Type-Options`, `X-Frame-Options` and `X-XSS-Protection`" },
};
static const struct yaml_schema http_schema = {
	.name = "web.HTTPConfig", .size = sizeof(struct http_settings), .fields = http_fields,
	.fields_n = sizeof(http_fields) / sizeof(http_fields[0]), .check = http_check,
};
static const struct yaml_field file_fields[] = {
	{ "tls_server_config", YAML_STRUCT, offsetof(struct web_file, tls), .schema = &tls_schema,
		.set_offset = offsetof(struct web_file, has_tls) + 1,
		.help = "TLS for the page and the API, and for OTLP over gRPC.", .unset = "no TLS" },
	{ "http_server_config", YAML_STRUCT, offsetof(struct web_file, http), .schema = &http_schema,
		.help = "Headers of answers." },
	{ "basic_auth_users", YAML_STRING_MAP, offsetof(struct web_file, users),
		.help = "Users and their bcrypt hashes. As soon as there is one, every path asks for a "
		"password.", .example = "{admin: $2y$10$...}" },
	{ "users", YAML_LIST, offsetof(struct web_file, rights.users), .schema = &rights_user_schema,
		.set_offset = offsetof(struct web_file, rights.has_users) + 1,
		.help = "What each user may do. With this section each user needs an entry.",
		.unset = "each user of `basic_auth_users` may do everything" },
	{ "trusted_proxy", YAML_STRUCT, offsetof(struct web_file, rights.proxy),
		.schema = &rights_proxy_schema,
		.set_offset = offsetof(struct web_file, rights.has_proxy) + 1,
		.help = "A proxy that signs people in, and says who they are." },
};
const struct yaml_schema web_file_schema = {
	.name = "web.Config", .size = sizeof(struct web_file), .fields = file_fields,
	.fields_n = sizeof(file_fields) / sizeof(file_fields[0]), .check = http_config_file_check,
};
/* clang-format on */

enum err_code web_file_decode(
	struct arena *a, const char *name, struct str text, struct web_file *out, struct err *err)
{
	struct yaml_ctx ctx = { .arena = a, .dir = path_dir(str_of(name)) };
	struct yaml_node *root = NULL;
	enum err_code rc;

	if ((rc = yaml_parse(a, name, text, &root, err)) ||
		(rc = yaml_decode(&ctx, &web_file_schema, root, out, err)))
		return rc;
	return rights_check(&out->rights, a, root, out->users, err);
}

void web_file_release(struct web_file *f)
{
	rights_release(&f->rights);
}

enum err_code web_file_read(
	struct arena *a, const char *path, struct web_file *out, struct err *err)
{
	struct buf text = { 0 };
	struct str copy;
	enum err_code rc;

	if ((rc = fs_read_file(path, YAML_FILE_BYTES_MAX, &text, err)))
		return rc;
	copy = str_dup(a, buf_str(&text));
	buf_release(&text);
	return copy.ptr ? web_file_decode(a, path, copy, out, err) : arena_fail(a, path, err);
}

const char *web_file_header(struct str name)
{
	for (size_t i = 0; i < sizeof(settable_headers) / sizeof(settable_headers[0]); i++)
		if (str_is(name, settable_headers[i].name))
			return settable_headers[i].name;
	return "";
}
