#include "discovery/kubernetes/cluster.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/net/http_config.h"

#define TOKEN_BYTES_MAX (64u << 10)
#define NAMESPACE_BYTES_MAX 1024u

/* -------------------------------------------------------------------------------------------- */
/* Identity */

/* A digest, because settings hold secrets and identities may be shown. */
enum err_code kube_access_identify(struct arena *a, struct kube_access *out, struct err *err)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned digest_len = 0;
	struct buf b = { 0 };
	char *text;
	bool ok;

	buf_add_lenstr(&b, out->server);
	buf_add_lenstr(&b, out->own_namespace);
	http_config_encode(&b, &out->http);
	ok = !buf_failed(&b) && EVP_Digest(b.ptr, b.len, digest, &digest_len, EVP_sha256(), NULL) == 1;
	buf_release(&b);
	text = ok ? arena_alloc(a, 2 * (size_t)digest_len + 1) : NULL;
	if (!text)
		return err_nomem(err, "access to a cluster");
	for (unsigned i = 0; i < digest_len; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	out->identity = str_of(text);
	return ERR_OK;
}

/* -------------------------------------------------------------------------------------------- */
/* Checks */

static bool kube_is_custom(const struct http_config *c)
{
	struct buf given = { 0 }, plain = { 0 };
	struct http_config defaults;
	bool custom;

	http_config_defaults(&defaults);
	http_config_encode(&given, c);
	http_config_encode(&plain, &defaults);
	custom = !str_eq(buf_str(&given), buf_str(&plain));
	buf_release(&given);
	buf_release(&plain);
	return custom;
}

static bool kube_is_url(struct str s)
{
	struct str rest = s;

	if (str_has_prefix(s, STR("https://")))
		rest = (struct str){ s.ptr + 8, s.len - 8 };
	else if (str_has_prefix(s, STR("http://")))
		rest = (struct str){ s.ptr + 7, s.len - 7 };
	else
		return false;
	return rest.len && rest.ptr[0] != '/' &&
		str_find(rest, STR("?")) < 0 && str_find(rest, STR("#")) < 0;
}

enum err_code kube_cluster_check(const struct yaml_node *n, const struct kube_cluster_config *c,
	bool own_namespace, struct err *err)
{
	bool url = c->api_server.len > 0, file = c->kubeconfig_file.len > 0;

	if (url && file)
		return yaml_err(
			n, err, ERR_INVALID, "cannot use 'kubeconfig_file' and 'api_server' simultaneously");
	if (file && kube_is_custom(&c->http))
		return yaml_err(n, err, ERR_INVALID,
			"cannot use a custom HTTP client configuration together with 'kubeconfig_file'");
	if (!url && kube_is_custom(&c->http))
		return yaml_err(n, err, ERR_INVALID,
			"to use custom HTTP client configuration please provide the 'api_server' URL "
			"explicitly");
	if (url && own_namespace)
		return yaml_err(n, err, ERR_INVALID,
			"cannot use 'api_server' and 'namespaces.own_namespace' simultaneously");
	if (file && own_namespace)
		return yaml_err(n, err, ERR_INVALID,
			"cannot use 'kubeconfig_file' and 'namespaces.own_namespace' simultaneously");
	if (url && !kube_is_url(c->api_server))
		return yaml_err(n, err, ERR_INVALID, "api_server \"%.*s\" is not an http or https URL",
			(int)(c->api_server.len < 256 ? c->api_server.len : 256), c->api_server.ptr);
	return ERR_OK;
}

/* -------------------------------------------------------------------------------------------- */
/* Access */

static struct str kube_without_end_slash(struct str s)
{
	while (s.len && s.ptr[s.len - 1] == '/')
		s.len--;
	return s;
}

/* The text of a file of the service account, without white space around it. */
static enum err_code kube_read_text(
	struct arena *a, const char *path, size_t max, struct str *out, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc = fs_read_file(path, max, &b, err);

	if (!rc) {
		*out = str_dup(a, str_trim(buf_str(&b)));
		if (!out->ptr)
			rc = arena_fail(a, path, err);
	}
	buf_release(&b);
	return rc;
}

static enum err_code kube_in_cluster(
	struct arena *a, struct str dir, struct kube_access *out, struct err *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
	char *token = path_join(a, dir, STR("token")), *ca = path_join(a, dir, STR("ca.crt"));
	char *namespace = path_join(a, dir, STR("namespace")), *server;
	struct str text;
	enum err_code rc;

	if (!host || !*host || !port || !*port)
		return err_set(err, ERR_NOT_FOUND,
			"unable to load in-cluster configuration, "
			"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined");
	server = arena_printf(a, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
	if (!token || !ca || !namespace || !server)
		return arena_fail(a, "service account", err);
	if ((rc = kube_read_text(a, token, TOKEN_BYTES_MAX, &text, err)))
		return err_wrap(err, rc, "unable to load in-cluster configuration");
	out->server = str_of(server);
	out->http.has_authorization = true;
	out->http.auth_type = STR("Bearer");
	out->http.credentials_file = str_of(token);
	if (fs_exists(ca)) /* else the system's */
		out->http.tls_ca_file = str_of(ca);
	if (!fs_exists(namespace))
		return ERR_OK;
	return kube_read_text(a, namespace, NAMESPACE_BYTES_MAX, &out->own_namespace, err);
}

static enum err_code kube_from_kubeconfig(
	struct arena *a, struct str path, struct kube_access *out, struct err *err)
{
	char *file = arena_strndup(a, path.ptr, path.len);
	struct buf b = { 0 };
	enum err_code rc;

	if (!file)
		return arena_fail(a, "kubeconfig", err);
	rc = fs_read_file(file, YAML_FILE_BYTES_MAX, &b, err);
	if (!rc)
		rc = kubeconfig_parse(a, file, buf_str(&b), out, err);
	buf_release(&b);
	return rc;
}

enum err_code kube_access_dup(
	struct arena *a, const struct kube_access *from, struct kube_access *out, struct err *err)
{
	struct kube_access to = {
		.server = str_dup(a, from->server),
		.own_namespace = str_dup(a, from->own_namespace),
		.identity = str_dup(a, from->identity),
	};
	enum err_code rc;

	if (!to.server.ptr || !to.own_namespace.ptr || !to.identity.ptr)
		return arena_fail(a, "access to a cluster", err);
	if ((rc = http_config_dup(a, &from->http, &to.http, err)))
		return rc;
	*out = to;
	return ERR_OK;
}

enum err_code kube_access_make(const struct kube_cluster_config *c, const char *service_account_dir,
	struct arena *a, struct kube_access *out, struct err *err)
{
	struct kube_access made = { .server = STR(""), .own_namespace = STR("") };
	struct str dir = str_of(service_account_dir ? service_account_dir : KUBE_SERVICE_ACCOUNT_DIR);
	enum err_code rc = ERR_OK;

	http_config_defaults(&made.http);
	if (c->kubeconfig_file.len) {
		rc = kube_from_kubeconfig(a, c->kubeconfig_file, &made, err);
	} else if (c->api_server.len) {
		made.server = kube_without_end_slash(c->api_server);
		made.http = c->http;
	} else {
		rc = kube_in_cluster(a, dir, &made, err);
	}
	if (rc || (rc = kube_access_identify(a, &made, err)))
		return rc;
	return kube_access_dup(a, &made, out, err);
}
