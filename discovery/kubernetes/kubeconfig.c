/*
 * kubeconfig: the file that kubectl reads. Extensions, preferences and other contexts are ignored.
 * Settings that change the user or the connection and are not supported are refused by name.
 */
#include <openssl/evp.h>

#include "base/fs.h"
#include "base/net/http_config.h"
#include "base/net/http_proxy.h"
#include "discovery/kubernetes/cluster.h"

struct kube_reader {
	struct arena *arena;
	struct str dir; /* of the file */
};

/* "" where the field is missing or null. */
static enum err_code kube_get_text(
	const struct yaml_node *n, const char *field, struct str *out, struct err *err)
{
	const struct yaml_node *v = yaml_get(n, field);

	*out = STR("");
	if (yaml_is_null(v))
		return ERR_OK;
	if (v->kind != YAML_SCALAR)
		return yaml_err(v, err, ERR_INVALID, "cannot unmarshal %s into string", yaml_tag(v));
	if (v->text.len && memchr(v->text.ptr, '\0', v->text.len))
		return yaml_err(v, err, ERR_INVALID, "a string may not hold a NUL byte");
	*out = v->text;
	return ERR_OK;
}

static enum err_code kube_reader_get_path(struct kube_reader *r, const struct yaml_node *n,
	const char *field, struct str *out, struct err *err)
{
	enum err_code rc = kube_get_text(n, field, out, err);
	char *path;

	if (rc || !out->len)
		return rc;
	path = path_join(r->arena, r->dir, *out);
	if (!path)
		return arena_fail(r->arena, "kubeconfig", err);
	*out = str_of(path);
	return ERR_OK;
}

/* Base64 in lines or in one. */
static enum err_code kube_reader_get_data(struct kube_reader *r, const struct yaml_node *n,
	const char *field, struct str *out, struct err *err)
{
	const struct yaml_node *v = yaml_get(n, field);
	unsigned char *packed, *bytes;
	size_t len = 0, pad = 0;
	struct str text;
	enum err_code rc = kube_get_text(n, field, &text, err);
	int got;

	*out = STR("");
	if (rc || !text.len)
		return rc;
	packed = arena_alloc_raw(r->arena, text.len + 1, 1);
	bytes = arena_alloc_raw(r->arena, text.len + 1, 1);
	if (!packed || !bytes)
		return arena_fail(r->arena, "kubeconfig", err);
	for (size_t i = 0; i < text.len; i++)
		if (!strchr(" \t\r\n", text.ptr[i]))
			packed[len++] = (unsigned char)text.ptr[i];
	while (pad < 2 && pad < len && packed[len - 1 - pad] == '=')
		pad++;
	got = EVP_DecodeBlock(bytes, packed, (int)len);
	if (len % 4 != 0 || got < (int)pad || memchr(packed, '=', len - pad) != NULL)
		return yaml_err(v, err, ERR_INVALID, "%s is not base64", field);
	bytes[(size_t)got - pad] = '\0';
	*out = (struct str){ (const char *)bytes, (size_t)got - pad };
	if (out->len && memchr(bytes, '\0', out->len))
		return yaml_err(v, err, ERR_INVALID, "%s holds a NUL byte", field);
	return ERR_OK;
}

/* FIELD-data wins if both are given. */
static enum err_code kube_reader_get_pem(struct kube_reader *r, const struct yaml_node *n,
	const char *field, struct str *data, struct str *file, struct err *err)
{
	char name[64];
	enum err_code rc;

	snprintf(name, sizeof(name), "%s-data", field);
	if ((rc = kube_reader_get_data(r, n, name, data, err)) ||
		(rc = kube_reader_get_path(r, n, field, file, err)))
		return rc;
	if (data->len)
		*file = STR("");
	return ERR_OK;
}

static enum err_code kube_refuse(
	const struct yaml_node *n, const char *const *fields, struct err *err)
{
	for (; *fields; fields++) {
		const struct yaml_node *v = yaml_get(n, *fields);

		if (!yaml_is_null(v) && (v->kind != YAML_SCALAR || v->text.len))
			return yaml_err(v, err, ERR_UNSUPPORTED, "%s is not supported", *fields);
	}
	return ERR_OK;
}

/* The member `inner` of the item named `name` in a list of root. */
static enum err_code kube_find_named(const struct yaml_node *root, const char *list,
	struct str name, const char *inner, const struct yaml_node **out, struct err *err)
{
	const struct yaml_node *l = yaml_get(root, list), *item;
	struct str text;
	enum err_code rc;

	if (!yaml_is_null(l) && l->kind != YAML_SEQUENCE)
		return yaml_err(l, err, ERR_INVALID, "%s is no list", list);
	for (item = l ? l->child : NULL; item; item = item->next) {
		if ((rc = kube_get_text(item, "name", &text, err)))
			return rc;
		if (!str_eq(text, name))
			continue;
		*out = yaml_get(item, inner);
		if (!yaml_is_null(*out) && (*out)->kind != YAML_MAPPING)
			return yaml_err(*out, err, ERR_INVALID, "%s is no mapping", inner);
		return ERR_OK;
	}
	return yaml_err(l ? l : root, err, ERR_INVALID, "%s \"%.*s\" does not exist", inner,
		(int)(name.len < 256 ? name.len : 256), name.ptr);
}

static enum err_code kube_reader_read_cluster(
	struct kube_reader *r, const struct yaml_node *n, struct kube_access *out, struct err *err)
{
	struct http_config *h = &out->http;
	const struct yaml_node *skip = yaml_get(n, "insecure-skip-tls-verify");
	struct http_proxy ignored;
	enum err_code rc;
	struct err why;

	if ((rc = kube_get_text(n, "server", &out->server, err)) ||
		(rc = kube_get_text(n, "proxy-url", &h->proxy.url, err)) ||
		(rc = kube_reader_get_pem(
			 r, n, "certificate-authority", &h->tls_ca, &h->tls_ca_file, err)) ||
		(rc = kube_get_text(n, "tls-server-name", &h->tls_server_name, err)))
		return rc;
	if (h->proxy.url.len && (rc = http_proxy_parse(r->arena, h->proxy.url, false, &ignored, &why)))
		return yaml_err(yaml_get(n, "proxy-url"), err, rc, "%s", why.msg);
	while (out->server.len && out->server.ptr[out->server.len - 1] == '/')
		out->server.len--;
	if (!str_has_prefix(out->server, STR("https://")) &&
			!str_has_prefix(out->server, STR("http://")))
		return yaml_err(out->server.len ? yaml_get(n, "server") : n, err, ERR_INVALID,
			"server \"%.*s\" is not an http or https URL",
			(int)(out->server.len < 256 ? out->server.len : 256), out->server.ptr);
	if (!yaml_is_null(skip)) {
		/* "yes" and the like are strings to kubectl */
		if (strcmp(yaml_tag(skip), "!!bool") != 0 || !strchr("tTfF", skip->text.ptr[0]))
			return yaml_err(
				skip, err, ERR_INVALID, "cannot unmarshal %s into bool", yaml_tag(skip));
		h->tls_insecure_skip_verify = skip->text.ptr[0] == 't' || str_is(skip->text, "True") ||
			str_is(skip->text, "TRUE");
	}
	if (h->tls_insecure_skip_verify && (h->tls_ca.len || h->tls_ca_file.len))
		return yaml_err(skip, err, ERR_INVALID,
			"specifying a root certificates file with the insecure flag is not allowed");
	return ERR_OK;
}

static enum err_code kube_reader_read_user(
	struct kube_reader *r, const struct yaml_node *n, struct kube_access *out, struct err *err)
{
	static const char *const refused[] = { "exec", "auth-provider", "as", "as-uid", "as-groups",
		"as-user-extra", NULL };
	struct http_config *h = &out->http;
	enum err_code rc;
	bool cert, key;

	if (yaml_is_null(n))
		return ERR_OK;
	if ((rc = kube_refuse(n, refused, err)) ||
		(rc = kube_reader_get_pem(
			 r, n, "client-certificate", &h->tls_cert, &h->tls_cert_file, err)) ||
		(rc = kube_reader_get_pem(r, n, "client-key", &h->tls_key, &h->tls_key_file, err)) ||
		(rc = kube_get_text(n, "token", &h->credentials, err)) ||
		(rc = kube_reader_get_path(r, n, "tokenFile", &h->credentials_file, err)) ||
		(rc = kube_get_text(n, "username", &h->username, err)) ||
		(rc = kube_get_text(n, "password", &h->password, err)))
		return rc;
	cert = h->tls_cert.len || h->tls_cert_file.len;
	key = h->tls_key.len || h->tls_key_file.len;
	if (cert != key)
		return yaml_err(n, err, ERR_INVALID, "%s is missing beside %s",
			cert ? "client-key" : "client-certificate", cert ? "client-certificate" : "client-key");
	h->has_authorization = h->credentials.len || h->credentials_file.len;
	h->has_basic_auth = h->username.len || h->password.len;
	if (h->has_authorization && h->has_basic_auth)
		return yaml_err(n, err, ERR_INVALID,
			"more than one authentication method found for user; "
			"found [token basicAuth], only one is allowed");
	if (h->credentials_file.len) /* it wins: it may be newer */
		h->credentials = STR("");
	if (h->has_authorization)
		h->auth_type = STR("Bearer");
	return ERR_OK;
}

enum err_code kubeconfig_parse(
	struct arena *a, const char *file, struct str text, struct kube_access *out, struct err *err)
{
	struct kube_reader r = { .arena = a, .dir = path_dir(str_of(file)) };
	struct kube_access made = { .server = STR(""), .own_namespace = STR("") };
	const struct yaml_node *context, *cluster, *user = NULL;
	struct str name, cluster_name, user_name;
	struct yaml_node *root;
	enum err_code rc;

	http_config_defaults(&made.http);
	if ((rc = yaml_parse(a, file, text, &root, err)))
		return rc;
	if (root->kind != YAML_MAPPING)
		return yaml_err(root, err, ERR_INVALID, "a kubeconfig is a mapping");
	if ((rc = kube_get_text(root, "current-context", &name, err)))
		return rc;
	if (!name.len)
		return yaml_err(root, err, ERR_INVALID, "current-context is not set");
	if ((rc = kube_find_named(root, "contexts", name, "context", &context, err)))
		return rc;
	if (yaml_is_null(context))
		return yaml_err(root, err, ERR_INVALID, "context \"%.*s\" is empty",
			(int)(name.len < 256 ? name.len : 256), name.ptr);
	if ((rc = kube_get_text(context, "cluster", &cluster_name, err)) ||
		(rc = kube_get_text(context, "user", &user_name, err)) ||
		(rc = kube_get_text(context, "namespace", &made.own_namespace, err)) ||
		(rc = kube_find_named(root, "clusters", cluster_name, "cluster", &cluster, err)))
		return rc;
	if (yaml_is_null(cluster))
		return yaml_err(root, err, ERR_INVALID, "cluster \"%.*s\" is empty",
			(int)(cluster_name.len < 256 ? cluster_name.len : 256), cluster_name.ptr);
	if (user_name.len && (rc = kube_find_named(root, "users", user_name, "user", &user, err)))
		return rc;
	if ((rc = kube_reader_read_cluster(&r, cluster, &made, err)) ||
		(rc = kube_reader_read_user(&r, user, &made, err)) ||
		(rc = kube_access_identify(a, &made, err)))
		return rc;
	return kube_access_dup(a, &made, out, err);
}
