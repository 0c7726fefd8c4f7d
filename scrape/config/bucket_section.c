#include "scrape/config/bucket_section.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "base/net/http_config.h"

#define PUT_PER_MILLION 5.0
#define GET_PER_MILLION 0.4
#define STORAGE_PER_TB_MONTH 23.0

/* ---- tables ---- */

#define AT(member) offsetof(struct bucket_section, member)
/* clang-format off */
static const struct yaml_field role_table[] = {
	{ "role_arn", YAML_STRING, AT(role_arn), NULL, NULL, "The role to take.", 0,
		.unset = "required" },
	{ "token_file", YAML_STRING, AT(token_file), NULL, NULL, "A file with the token.", 0,
		.takes = "path", .unset = "required" },
	{ "session_name", YAML_STRING, AT(session_name), NULL, NULL,
		"A name that logs of the store show.", 0 },
	{ "sts_endpoint", YAML_STRING, AT(sts_endpoint), NULL, NULL, "The token service.", 0,
		.takes = "URL", .unset = "AWS's own" },
};
static const struct yaml_field prices_table[] = {
	{ "put_per_million", YAML_FLOAT, AT(prices.put_per_million), NULL, NULL,
		"The price of a million puts and lists.", 0 },
	{ "get_per_million", YAML_FLOAT, AT(prices.get_per_million), NULL, NULL,
		"The price of a million gets and heads.", 0 },
	{ "storage_per_tb_month", YAML_FLOAT, AT(prices.storage_per_tb_month), NULL, NULL,
		"The price of a terabyte that is stored for a month.", 0 },
};
/* clang-format on */

#undef AT

/* Their fields are members of the section, so they have no defaults of their own. */

static enum err_code bucket_section_check_role(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	const struct bucket_section *s = out;

	(void)ctx;
	if (!s->role_arn.len || !s->token_file.len)
		return yaml_err(n, err, ERR_INVALID, "web_identity needs role_arn and token_file");
	return ERR_OK;
}

static enum err_code bucket_section_check_prices(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	const struct yaml_field *f;
	double v;

	(void)ctx;
	for (size_t i = 0; i < sizeof(prices_table) / sizeof(prices_table[0]); i++) {
		f = &prices_table[i];
		v = *(const double *)((const char *)out + f->offset);
		if (!isfinite(v) || v < 0)
			return yaml_err(yaml_get(n, f->name), err, ERR_INVALID, "%s is not a price", f->name);
	}
	return ERR_OK;
}

static const struct yaml_schema role_schema = {
	.name = "web_identity",
	.size = sizeof(struct bucket_section),
	.fields = role_table,
	.fields_n = sizeof(role_table) / sizeof(role_table[0]),
	.check = bucket_section_check_role,
};
static const struct yaml_schema prices_schema = {
	.name = "prices",
	.size = sizeof(struct bucket_section),
	.fields = prices_table,
	.fields_n = sizeof(prices_table) / sizeof(prices_table[0]),
	.check = bucket_section_check_prices,
};

#define AT(member) offsetof(struct bucket_section, member)
/* clang-format off */
static const struct yaml_field table[] = {
	{ "endpoint", YAML_STRING, AT(endpoint), NULL, NULL, "Where the store is.", 0, .takes = "URL",
		.unset = "required", .example = "https://s3.eu-central-1.amazonaws.com" },
	{ "bucket", YAML_STRING, AT(bucket), NULL, NULL, "The name of the bucket.", 0,
		.unset = "required" },
	{ "prefix", YAML_STRING, AT(prefix), NULL, NULL, "What all keys begin with.", 0,
		.example = "production" },
	{ "region", YAML_STRING, AT(region), NULL, NULL, "The region of the store.", 0,
		.example = "eu-central-1" },
	{ "virtual_host", YAML_BOOL, AT(virtual_host), NULL, NULL,
		"The name of the bucket is part of the host, not of the path.", 0 },
	{ "access_key", YAML_STRING, AT(access_key), NULL, NULL, "The name of the secret key.", 0 },
	{ "access_key_file", YAML_STRING, AT(access_key_file), NULL, NULL,
		"A file with it, read again when it changes.", 0, .takes = "path" },
	{ "secret_key", YAML_SECRET, AT(secret_key), NULL, NULL, "The key that signs requests.", 0 },
	{ "secret_key_file", YAML_STRING, AT(secret_key_file), NULL, NULL,
		"A file with it, read again when it changes.", 0, .takes = "path" },
	{ "session_token", YAML_SECRET, AT(session_token), NULL, NULL, "The token of keys that end.",
		0 },
	{ "session_token_file", YAML_STRING, AT(session_token_file), NULL, NULL,
		"A file with it, read again when it changes.", 0, .takes = "path" },
	{ "credentials_file", YAML_STRING, AT(credentials_file), NULL, NULL,
		"A file of keys in AWS's ini format.", 0, .takes = "path" },
	{ "profile", YAML_STRING, AT(profile), NULL, NULL, "The section of `credentials_file`.", 0,
		.unset = "`default`" },
	{ "web_identity", YAML_STRUCT, 0, &role_schema, NULL, "Keys in exchange for a token.", 0 },
	{ "prices", YAML_STRUCT, 0, &prices_schema, NULL, "What the store costs. Only shown.", 0 },
	HTTP_TLS_FIELD(AT(http)),
	HTTP_PROXY_FIELDS(AT(http) + offsetof(struct http_config, proxy)),
	HTTP_HEADERS_FIELD(AT(http)),
};
/* clang-format on */
#undef AT

static void bucket_section_set_defaults(struct yaml_ctx *ctx, void *out)
{
	struct bucket_section *s = out;

	*s = (struct bucket_section){ .present = true,
		.prices = { PUT_PER_MILLION, GET_PER_MILLION, STORAGE_PER_TB_MONTH } };
	http_config_defaults(&s->http);
	s->http.follow_redirects = false; /* a signature is for one host */
}

const struct yaml_schema bucket_section_schema = {
	.name = "bucket_config",
	.size = sizeof(struct bucket_section),
	.fields = table,
	.fields_n = sizeof(table) / sizeof(table[0]),
	.defaults = bucket_section_set_defaults,
};
/* ---- checks ---- */

static enum err_code bucket_section_check_url(
	const struct yaml_node *n, const char *name, struct str url, struct err *err)
{
	const char *problem = http_config_url_problem(url);

	if (url.len && memchr(url.ptr, '@', url.len))
		problem = "user information in a URL is not supported";
	if (problem)
		return yaml_err(
			yaml_get(n, name) ? yaml_get(n, name) : n, err, ERR_INVALID, "%s: %s", name, problem);
	return ERR_OK;
}

/* A value and a file with it. */
static enum err_code bucket_section_check_pair(
	const struct yaml_node *n, const char *name, struct str text, struct str file, struct err *err)
{
	if (text.len && file.len)
		return yaml_err(
			n, err, ERR_INVALID, "at most one of %s & %s_file must be configured", name, name);
	return ERR_OK;
}

static enum err_code bucket_section_check_keys(
	const struct yaml_node *n, const struct bucket_section *s, struct err *err)
{
	bool access = s->access_key.len || s->access_key_file.len;
	bool secret = s->secret_key.len || s->secret_key_file.len;
	enum err_code rc;

	if ((rc = bucket_section_check_pair(n, "access_key", s->access_key, s->access_key_file, err)) ||
		(rc = bucket_section_check_pair(n, "secret_key", s->secret_key, s->secret_key_file, err)) ||
		(rc = bucket_section_check_pair(
			 n, "session_token", s->session_token, s->session_token_file, err)))
		return rc;
	if (access != secret)
		return yaml_err(n, err, ERR_INVALID, "%s needs %s", access ? "access_key" : "secret_key",
			access ? "secret_key" : "access_key");
	if (!access && (s->session_token.len || s->session_token_file.len))
		return yaml_err(n, err, ERR_INVALID, "session_token needs access_key and secret_key");
	return ERR_OK;
}

static enum err_code bucket_section_set_source(
	const struct yaml_node *n, struct bucket_section *s, struct err *err)
{
	bool keys = s->secret_key.len || s->secret_key_file.len;
	bool file = s->credentials_file.len, role = s->role_arn.len;

	if (keys + file + role > 1)
		return yaml_err(n, err, ERR_INVALID,
			"at most one of access_key, credentials_file & web_identity must be configured");
	if (s->profile.len && !file)
		return yaml_err(yaml_get(n, "profile"), err, ERR_INVALID, "profile needs credentials_file");
	s->source = keys ? BUCKET_FROM_KEYS :
		file         ? BUCKET_FROM_FILE :
		role         ? BUCKET_FROM_ROLE :
					   BUCKET_FROM_ENVIRONMENT;
	return ERR_OK;
}

/* A store refuses headers of this kind that are not signed. */
static enum err_code bucket_section_check_headers(
	const struct yaml_node *n, const struct labels *headers, struct err *err)
{
	for (size_t i = 0; i < headers->n; i++)
		if (str_has_prefix_nocase(headers->v[i].name, STR("x-amz-")))
			return yaml_err(yaml_get(n, "http_headers"), err, ERR_INVALID,
				"header \"" STR_FMT "\" cannot be set: it would have to be signed",
				STR_ARG(headers->v[i].name));
	return ERR_OK;
}

static enum err_code bucket_section_make_absolute(
	struct yaml_ctx *ctx, struct bucket_section *s, struct err *err)
{
	struct str *const paths[] = { &s->access_key_file, &s->secret_key_file, &s->session_token_file,
		&s->credentials_file, &s->token_file };
	enum err_code rc;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if ((rc = http_config_make_absolute(ctx, paths[i], err)))
			return rc;
	return ERR_OK;
}

enum err_code bucket_section_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct bucket_section *out, struct err *err)
{
	enum err_code rc;

	*out = (struct bucket_section){ 0 };
	if (yaml_is_null(n))
		return ERR_OK;
	if ((rc = yaml_decode(ctx, &bucket_section_schema, n, out, err)) ||
		(rc = bucket_section_check_url(n, "endpoint", out->endpoint, err)))
		return rc;
	if (!out->bucket.len)
		return yaml_err(n, err, ERR_INVALID, "bucket: the bucket's name is missing");
	if (out->sts_endpoint.len &&
		(rc = bucket_section_check_url(
			 yaml_get(n, "web_identity"), "sts_endpoint", out->sts_endpoint, err)))
		return rc;
	if ((rc = bucket_section_check_keys(n, out, err)) ||
		(rc = bucket_section_set_source(n, out, err)) ||
		(rc = bucket_section_check_headers(n, &out->http.headers, err)) ||
		(rc = bucket_section_check_headers(n, &out->http.header_files, err)) ||
		(rc = bucket_section_make_absolute(ctx, out, err)))
		return rc;
	out->at = n;
	return http_config_check(ctx, n, &out->http, err);
}

enum err_code bucket_section_err(const struct bucket_section *s, enum err_code rc, struct err *err)
{
	struct err why;

	if (!rc || !err || !s->at)
		return rc;
	why = *err;
	return yaml_err(s->at, err, rc, "%s", why.msg);
}

/* ---- for others ---- */

void bucket_section_encode(struct buf *out, const struct bucket_section *s)
{
	const struct str texts[] = { s->endpoint, s->bucket, s->prefix, s->region, s->access_key,
		s->access_key_file, s->secret_key, s->secret_key_file, s->session_token,
		s->session_token_file, s->credentials_file, s->profile, s->role_arn, s->session_name,
		s->token_file, s->sts_endpoint };

	buf_printf(out, "%d %d ", s->present, s->virtual_host);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		buf_add_lenstr(out, texts[i]);
	http_config_encode(out, &s->http);
}

enum err_code bucket_section_check_files(const struct bucket_section *s, struct err *err)
{
	const struct {
		const char *what;
		struct str path;
	} files[] = {
		{ "access key file", s->access_key_file },
		{ "secret key file", s->secret_key_file },
		{ "session token file", s->session_token_file },
		{ "credentials file", s->credentials_file },
		{ "web identity token file", s->token_file },
	};
	enum err_code rc;
	int fd;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (!files[i].path.len)
			continue;
		fd = open(files[i].path.ptr, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			return err_errno(
				err, errno, "bucket: %s " STR_FMT, files[i].what, STR_ARG(files[i].path));
		close(fd);
	}
	rc = http_config_check_files(&s->http, err);
	return rc ? err_wrap(err, rc, "bucket") : ERR_OK;
}
