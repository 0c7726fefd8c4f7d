#include "discovery/kubernetes/cluster.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/net/http_config.h"
#include "tests/check.h"

#define CONTEXT \
	"current-context: c\ncontexts: [{name: b}, {name: c, context: {cluster: k, user: u, " \
	"namespace: mine}}]\n"
#define CLUSTER "clusters: [{name: k, cluster: {server: 'https://k:6443/'}}]\n"
#define USERS(user) CONTEXT CLUSTER "users: [{name: u, user: " user "}]"
#define CLUSTERS(cluster) CONTEXT "clusters: [{name: k, cluster: " cluster "}]\nusers: [{name: u}]"

static struct arena arena;

/* Prints the settings that are not empty. */
static void print(struct buf *b, const struct kube_access *a)
{
	const struct http_config *h = &a->http;
	const struct {
		const char *name;
		struct str text;
	} rows[] = { { "ns", a->own_namespace }, { "user", h->username }, { "password", h->password },
		{ "token", h->credentials }, { "token-file", h->credentials_file }, { "ca", h->tls_ca },
		{ "ca-file", h->tls_ca_file }, { "cert", h->tls_cert }, { "cert-file", h->tls_cert_file },
		{ "key", h->tls_key }, { "key-file", h->tls_key_file }, { "name", h->tls_server_name },
		{ "proxy", h->proxy.url } };

	buf_printf(b, STR_FMT, STR_ARG(a->server));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].text.len)
			buf_printf(b, " %s=" STR_FMT, rows[i].name, STR_ARG(rows[i].text));
	if (h->has_basic_auth)
		buf_add_cstr(b, " basic");
	if (h->has_authorization)
		buf_printf(b, " " STR_FMT, STR_ARG(h->auth_type));
	if (h->tls_insecure_skip_verify)
		buf_add_cstr(b, " insecure");
}

static const struct {
	const char *text, *want;
} kubeconfigs[] = {
	{ USERS("{token: t}"), "https://k:6443 ns=mine token=t Bearer" },
	{ USERS("{token: t, tokenFile: f}"), "https://k:6443 ns=mine token-file=/etc/kube/f Bearer" },
	{ USERS("{tokenFile: /f}"), "https://k:6443 ns=mine token-file=/f Bearer" },
	{ USERS("{username: a, password: b}"), "https://k:6443 ns=mine user=a password=b basic" },
	{ USERS("{client-certificate: c.pem, client-key-data: 'a2\n  V5'}"),
		"https://k:6443 ns=mine cert-file=/etc/kube/c.pem key=key" },
	{ USERS("{client-certificate-data: Y2VydA==, client-key: k, client-certificate: x}"),
		"https://k:6443 ns=mine cert=cert key-file=/etc/kube/k" },
	{ USERS(""), "https://k:6443 ns=mine" },
	{ USERS("{exec: null, auth-provider: ~, extensions: [1]}"), "https://k:6443 ns=mine" },
	{ CLUSTERS("{server: 'http://a/b//', insecure-skip-tls-verify: true}"),
		"http://a/b ns=mine insecure" },
	{ CLUSTERS("{server: https://a, certificate-authority: ca.crt, tls-server-name: n, "
			   "certificate-authority-data: '', proxy-url: ''}"),
		"https://a ns=mine ca-file=/etc/kube/ca.crt name=n" },
	{ CLUSTERS("{server: https://a, proxy-url: 'socks5://u:p@p'}"),
		"https://a ns=mine proxy=socks5://u:p@p" },
	{ CLUSTERS("{server: https://a, certificate-authority-data: Y2E=}"),
		"https://a ns=mine ca=ca" },
	{ "{\"current-context\": \"c\", \"contexts\": [{\"name\": \"c\", \"context\": "
	  "{\"cluster\": \"k\"}}], \"clusters\": [{\"name\": \"k\", \"cluster\": "
	  "{\"server\": \"https://j\"}}], \"kind\": \"Config\"}",
		"https://j" },

	{ "[]", "/etc/kube/config:1:1: a kubeconfig is a mapping" },
	{ "a: [", "/etc/kube/config:" },
	{ "kind: Config", "/etc/kube/config:1:1: current-context is not set" },
	{ "current-context: x", "/etc/kube/config:1:1: context \"x\" does not exist" },
	{ "current-context: x\ncontexts: {}", "/etc/kube/config:2:11: contexts is no list" },
	{ "current-context: x\ncontexts: [{name: x}]", "/etc/kube/config:1:1: context \"x\" is empty" },
	{ "current-context: x\ncontexts: [{name: [1]}]",
		"/etc/kube/config:2:19: cannot unmarshal !!seq into string" },
	{ CONTEXT "clusters: [{name: other}]", "/etc/kube/config:3:11: cluster \"k\" does not exist" },
	{ CONTEXT "clusters: [{name: k}]", "/etc/kube/config:1:1: cluster \"k\" is empty" },
	{ CONTEXT CLUSTER, "/etc/kube/config:1:1: user \"u\" does not exist" },
	{ CLUSTERS("{server: 'k:6443'}"),
		"/etc/kube/config:3:40: server \"k:6443\" is not an http or https URL" },
	{ CLUSTERS("{x: y}"), "/etc/kube/config:3:31: server \"\" is not an http or https URL" },
	{ CLUSTERS("{server: https://a, proxy-url: p:3128}"),
		"/etc/kube/config:3:62: the URL of a proxy begins with http://, https://, socks5:// or "
		"socks5h://" },
	{ CLUSTERS("{server: https://a, insecure-skip-tls-verify: 'x'}"),
		"/etc/kube/config:3:77: cannot unmarshal !!str into bool" },
	{ CLUSTERS("{server: https://a, insecure-skip-tls-verify: true, certificate-authority: a}"),
		"/etc/kube/config:3:77: specifying a root certificates file with the insecure flag is "
		"not allowed" },
	{ CLUSTERS("{server: https://a, certificate-authority-data: '*'}"),
		"/etc/kube/config:3:79: certificate-authority-data is not base64" },
	{ CLUSTERS("{server: https://a, certificate-authority-data: 'Y=E='}"),
		"/etc/kube/config:3:79: certificate-authority-data is not base64" },
	{ CLUSTERS("{server: https://a, certificate-authority-data: 'AAAA'}"),
		"/etc/kube/config:3:79: certificate-authority-data holds a NUL byte" },
	{ USERS("{exec: {command: aws}}"), "/etc/kube/config:4:32: exec is not supported" },
	{ USERS("{auth-provider: {name: gcp}}"),
		"/etc/kube/config:4:41: auth-provider is not supported" },
	{ USERS("{as: root}"), "/etc/kube/config:4:30: as is not supported" },
	{ USERS("{token: t, username: u}"),
		"/etc/kube/config:4:25: more than one authentication "
		"method found for user; found [token basicAuth], only one is allowed" },
	{ USERS("{client-key: k}"),
		"/etc/kube/config:4:25: client-certificate is missing beside client-key" },
	{ USERS("{client-certificate: k}"),
		"/etc/kube/config:4:25: client-key is missing beside client-certificate" },
};

TEST(kubeconfigs_read)
{
	struct buf got = { 0 };
	struct err err;

	for (size_t i = 0; i < sizeof(kubeconfigs) / sizeof(kubeconfigs[0]); i++) {
		struct kube_access a;
		const char *want = kubeconfigs[i].want;
		enum err_code rc;

		arena_init(&arena, 0);
		buf_clear(&got);
		rc = kubeconfig_parse(&arena, "/etc/kube/config", str_of(kubeconfigs[i].text), &a, &err);
		if (rc)
			buf_add_cstr(&got, err.msg);
		else
			print(&got, &a);
		if (want[strlen(want) - 1] == ':')
			CHECK(str_has_prefix(buf_str(&got), str_of(want)));
		else
			CHECK_STR(buf_str(&got), want);
		arena_release(&arena);
	}
	buf_release(&got);
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[128];
	struct err err;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	CHECK_OK(fs_write_file(&fs_posix, path, str_of(text), &err), &err);
}

TEST(in_a_pod)
{
	/* clang-format off */
	static const struct {
		const char *host, *port, *files; /* t: token, c: ca.crt, n: namespace */
		const char *want;                /* %s: the directory */
	} rows[] = {
		{ "10.0.0.1", "443", "tcn", "https://10.0.0.1:443 ns=here token-file=%s/token "
			"ca-file=%s/ca.crt Bearer" },
		{ "fd00::1", "6443", "t", "https://[fd00::1]:6443 token-file=%s/token Bearer" },
		{ "10.0.0.1", "443", "cn",
			"unable to load in-cluster configuration: open %s/token: No such file or directory" },
		{ "", "443", "tcn", "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and "
			"KUBERNETES_SERVICE_PORT must be defined" },
		{ "10.0.0.1", NULL, "tcn", "unable to load in-cluster configuration, "
			"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined" },
	};
	/* clang-format on */
	const struct kube_cluster_config config = { .api_server = STR("") };
	struct buf got = { 0 }, want = { 0 };
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char dir[] = "/tmp/epimetheus-kube-XXXXXX";
		struct kube_access a;

		REQUIRE(mkdtemp(dir));
		arena_init(&arena, 0);
		setenv("KUBERNETES_SERVICE_HOST", rows[i].host, 1);
		if (rows[i].port)
			setenv("KUBERNETES_SERVICE_PORT", rows[i].port, 1);
		else
			unsetenv("KUBERNETES_SERVICE_PORT");
		if (strchr(rows[i].files, 't'))
			put(dir, "token", "secret");
		if (strchr(rows[i].files, 'c'))
			put(dir, "ca.crt", "pem");
		if (strchr(rows[i].files, 'n'))
			put(dir, "namespace", "here\n");
		buf_clear(&got);
		buf_clear(&want);
		if (kube_access_make(&config, dir, &arena, &a, &err))
			buf_add_cstr(&got, err.msg);
		else
			print(&got, &a);
		for (const char *c = rows[i].want; *c; c++) {
			if (c[0] == '%' && c[1] == 's')
				buf_add_cstr(&want, dir), c++;
			else
				buf_add_char(&want, *c);
		}
		buf_add_char(&want, '\0');
		CHECK_STR(buf_str(&got), want.ptr);
		arena_release(&arena);
		CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	}
	buf_release(&got);
	buf_release(&want);
}

TEST(what_may_not_stand_together)
{
	/* clang-format off */
	static const struct {
		const char *api, *file;
		bool custom, own;
		const char *want; /* NULL: fine */
	} rows[] = {
		{ "", "", false, true, NULL },
		{ "http://a", "", true, false, NULL },
		{ "", "/f", false, false, NULL },
		{ "http://a", "/f", false, false,
			"cannot use 'kubeconfig_file' and 'api_server' simultaneously" },
		{ "", "/f", true, false,
			"cannot use a custom HTTP client configuration together with 'kubeconfig_file'" },
		{ "", "", true, false, "to use custom HTTP client configuration please provide the "
			"'api_server' URL explicitly" },
		{ "http://a", "", false, true,
			"cannot use 'api_server' and 'namespaces.own_namespace' simultaneously" },
		{ "", "/f", false, true,
			"cannot use 'kubeconfig_file' and 'namespaces.own_namespace' simultaneously" },
		{ "a:80", "", false, false, "api_server \"a:80\" is not an http or https URL" },
		{ "https://", "", false, false, "api_server \"https://\" is not an http or https URL" },
		{ "https://a/?b", "", false, false,
			"api_server \"https://a/?b\" is not an http or https URL" },
	};
	/* clang-format on */
	struct yaml_node n = { 0 };
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kube_cluster_config c = { .api_server = str_of(rows[i].api),
			.kubeconfig_file = str_of(rows[i].file) };
		enum err_code rc;

		http_config_defaults(&c.http);
		c.http.tls_insecure_skip_verify = rows[i].custom;
		rc = kube_cluster_check(&n, &c, rows[i].own, &err);
		if (rows[i].want)
			CHECK_ERR(rc, &err, ERR_INVALID, rows[i].want);
		else
			CHECK_OK(rc, &err);
	}
}

TEST(identities)
{
	struct kube_cluster_config c = { .api_server = STR("https://a"), .kubeconfig_file = STR("") };
	struct kube_access first, same, other;
	struct err err;

	arena_init(&arena, 0);
	http_config_defaults(&c.http);
	c.http.credentials = STR("secret");
	c.http.has_authorization = true;
	REQUIRE_OK(kube_access_make(&c, NULL, &arena, &first, &err), &err);
	c.api_server = STR("https://a/");
	REQUIRE_OK(kube_access_make(&c, NULL, &arena, &same, &err), &err);
	CHECK(str_eq(first.identity, same.identity) && first.identity.len == 64);
	c.http.credentials = STR("Secret");
	REQUIRE_OK(kube_access_make(&c, NULL, &arena, &other, &err), &err);
	CHECK(!str_eq(first.identity, other.identity));
	c.http.credentials = STR("secret");
	c.http.proxy.url = STR("http://p");
	REQUIRE_OK(kube_access_make(&c, NULL, &arena, &other, &err), &err);
	CHECK(!str_eq(first.identity, other.identity));
	CHECK_STR(other.http.proxy.url, "http://p");
	arena_release(&arena);
}
