/* Proxies, and oauth2, which has TLS settings and a proxy of its own. */
#include "base/net/http_client_internal.h"
#include "base/net/http_config.h"
#include "base/net/http_proxy.h"

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

/* -------------------------------------------------------------------------------------------- */
/* Proxies */

static enum err_code http_config_oauth2_add_connect_header(struct yaml_ctx *ctx,
	const struct yaml_node *n, struct label *out, size_t *out_n, struct err *err)
{
	const struct yaml_node *item = n->child;
	struct labels one = { out, 1 };
	enum err_code rc;
	struct err why;

	if (n->kind != YAML_SEQUENCE && !yaml_is_null(n))
		return yaml_err(n, err, ERR_INVALID,
			"cannot unmarshal %s into a list of values of a header", yaml_tag(n));
	for (*out_n = 0; item; item = item->next, out++, ++*out_n) {
		if (item->kind != YAML_SCALAR)
			return yaml_err(
				item, err, ERR_INVALID, "cannot unmarshal %s into string", yaml_tag(item));
		out->name = str_dup(ctx->arena, n->key->text);
		out->value = str_dup(ctx->arena, item->text);
		if (!out->name.ptr || !out->value.ptr)
			return arena_fail(ctx->arena, n->file, err);
		one.v = out;
		if ((rc = request_check_headers(one, &why)))
			return yaml_err(n->key, err, rc, "%s", why.msg);
	}
	return ERR_OK;
}

enum err_code http_config_connect_header(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct labels *to = out;
	const struct yaml_node *m;
	size_t n_max = 0, n_one;
	struct label *v;
	enum err_code rc;

	if (n->kind != YAML_MAPPING)
		return yaml_err(
			n, err, ERR_INVALID, "cannot unmarshal %s into proxy_connect_header", yaml_tag(n));
	for (m = n->child; m; m = m->next)
		n_max += m->n;
	v = arena_array(ctx->arena, struct label, n_max);
	if (!v)
		return arena_fail(ctx->arena, n->file, err);
	*to = (struct labels){ v, 0 };
	for (m = n->child; m; m = m->next) {
		if ((rc = http_config_oauth2_add_connect_header(ctx, m, v + to->n, &n_one, err)))
			return rc;
		to->n += n_one;
	}
	return ERR_OK;
}

enum err_code http_config_check_proxy(struct yaml_ctx *ctx, const struct yaml_node *n,
	const struct http_proxy_config *c, struct err *err)
{
	const struct yaml_node *headers = yaml_get(n, "proxy_connect_header");
	struct http_proxy ignored;
	enum err_code rc;
	struct err why;

	if (headers && headers->n && !c->from_environment && !c->url.len)
		return yaml_err(headers, err, ERR_INVALID,
			"if proxy_connect_header is configured, proxy_url or proxy_from_environment must also "
			"be configured");
	if (c->from_environment && c->url.len)
		return yaml_err(yaml_get(n, "proxy_url"), err, ERR_INVALID,
			"if proxy_from_environment is configured, proxy_url must not be configured");
	if (c->from_environment && c->no_proxy.len)
		return yaml_err(yaml_get(n, "no_proxy"), err, ERR_INVALID,
			"if proxy_from_environment is configured, no_proxy must not be configured");
	if (c->no_proxy.len && yaml_is_null(yaml_get(n, "proxy_url")))
		return yaml_err(yaml_get(n, "no_proxy"), err, ERR_INVALID,
			"if no_proxy is configured, proxy_url must also be configured");
	if (!c->url.len)
		return ERR_OK;
	if ((rc = http_proxy_parse(ctx->arena, c->url, c->no_proxy.len > 0, &ignored, &why)))
		return yaml_err(yaml_get(n, "proxy_url"), err, rc, "%s", why.msg);
	return ERR_OK;
}

/* -------------------------------------------------------------------------------------------- */
/* OAuth 2.0 */

struct oauth2 {
	struct http_oauth2 made;
	struct yaml_list scopes;
};

#define AT(f) offsetof(struct oauth2, made.f)

static const struct yaml_field oauth2_fields[] = {
	{ "client_id", YAML_STRING, AT(client_id), .help = "The name of the client.",
		.unset = "required" },
	{ "client_secret", YAML_SECRET, AT(client_secret), .help = "Its secret." },
	{ "client_secret_file", YAML_STRING, AT(client_secret_file),
		.help = "A file with it, read for each request.", .takes = "path" },
	{ "scopes", YAML_LIST, offsetof(struct oauth2, scopes), .help = "What the token is for." },
	{ "token_url", YAML_STRING, AT(token_url), .help = "Where tokens are asked for.",
		.takes = "URL", .unset = "required" },
	{ "endpoint_params", YAML_STRING_MAP, AT(endpoint_params),
		.help = "More fields of the request for a token." },
	HTTP_TLS_FIELD(AT(http)),
	HTTP_PROXY_FIELDS(AT(http.proxy)),
};

static void oauth2_defaults(struct yaml_ctx *ctx, void *out)
{
	*(struct oauth2 *)out = (struct oauth2){ 0 }; /* follows no redirects: they get no secret */
}

/* What the grant itself says cannot be said again, but for its type. */
static enum err_code http_config_oauth2_check_params(
	const struct yaml_node *n, const struct oauth2 *o, struct err *err)
{
	if (o->scopes.n && labels_has(o->made.endpoint_params, STR("scope")))
		return yaml_err(yaml_get(n, "endpoint_params"), err, ERR_INVALID,
			"oauth2: cannot overwrite parameter \"scope\"");
	return ERR_OK;
}

static enum err_code oauth2_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct oauth2 *o = out;
	struct http_oauth2 *made = &o->made;
	struct http_url url;
	enum err_code rc;
	struct err why;

	if (!made->client_id.len)
		return yaml_err(n, err, ERR_INVALID, "oauth2 client_id must be configured");
	if (!made->token_url.len)
		return yaml_err(n, err, ERR_INVALID, "oauth2 token_url must be configured");
	if (made->client_secret.len && made->client_secret_file.len)
		return yaml_err(n, err, ERR_INVALID,
			"at most one of oauth2 client_secret & client_secret_file must be configured");
	if ((rc = http_url_parse(ctx->arena, made->token_url, &url, &why)))
		return yaml_err(yaml_get(n, "token_url"), err, rc, "oauth2 token_url: %s", why.msg);
	if ((rc = http_config_oauth2_check_params(n, o, err)) ||
		(rc = http_config_check_proxy(ctx, n, &made->http.proxy, err)) ||
		(rc = http_config_make_absolute(ctx, &made->client_secret_file, err)) ||
		(rc = http_config_make_absolute(ctx, &made->http.tls_ca_file, err)) ||
		(rc = http_config_make_absolute(ctx, &made->http.tls_cert_file, err)))
		return rc;
	return http_config_make_absolute(ctx, &made->http.tls_key_file, err);
}

const struct yaml_schema http_oauth2_schema = { "oauth2", sizeof(struct oauth2), oauth2_fields,
	COUNT(oauth2_fields), oauth2_defaults, oauth2_check };

enum err_code http_config_oauth2(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct http_config *c = out;
	struct http_oauth2 *kept = arena_new(ctx->arena, struct http_oauth2);
	struct buf scope = { 0 };
	const struct str *scopes;
	struct oauth2 o;
	enum err_code rc;

	if (!kept)
		return arena_fail(ctx->arena, n->file, err);
	if ((rc = yaml_decode(ctx, &http_oauth2_schema, n, &o, err)))
		return rc;
	scopes = o.scopes.v;
	for (size_t i = 0; i < o.scopes.n; i++) {
		if (i)
			buf_add_char(&scope, ' ');
		buf_add_str(&scope, scopes[i]);
	}
	*kept = o.made;
	kept->scope = str_dup(ctx->arena, buf_str(&scope));
	rc = buf_failed(&scope) || !kept->scope.ptr ? arena_fail(ctx->arena, n->file, err) : ERR_OK;
	buf_release(&scope);
	c->oauth2 = kept;
	return rc;
}
