#include "base/net/http_config.h"
#include "tests/check.h"

struct job {
	struct str name;
	struct http_config http;
};

static const struct yaml_field fields[] = {
	{ "name", YAML_STRING, offsetof(struct job, name) },
	HTTP_CONFIG_FIELDS(offsetof(struct job, http)),
};

static void defaults(struct yaml_ctx *ctx, void *out)
{
	http_config_defaults(&((struct job *)out)->http);
}

static enum err_code check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	return http_config_check(ctx, n, &((struct job *)out)->http, err);
}

static const struct yaml_schema schema = { "job", sizeof(struct job), fields,
	sizeof(fields) / sizeof(fields[0]), defaults, check };

static struct arena arena;

static enum err_code decode(const char *text, struct job *out, struct err *err)
{
	struct yaml_ctx ctx = { .arena = &arena, .dir = STR("/etc/epi") };
	struct yaml_node *n;
	enum err_code rc;

	arena_release(&arena);
	arena_init(&arena, 1u << 20);
	if ((rc = yaml_parse(&arena, "j.yml", str_of(text), &n, err)))
		return rc;
	return yaml_decode(&ctx, &schema, n, out, err);
}

TEST(defaults_and_all_fields)
{
	struct job j;
	struct err err;

	REQUIRE_OK(decode("name: x", &j, &err), &err);
	CHECK(j.http.follow_redirects && j.http.enable_http2 && !j.http.has_basic_auth &&
		!j.http.has_authorization);
	REQUIRE_OK(decode("basic_auth: {username: u, password_file: pw}\n"
					  "follow_redirects: false\n"
					  "enable_http2: true\n"
					  "proxy_url: ''\n"
					  "proxy_from_environment: false\n"
					  "tls_config:\n"
					  "  ca_file: ca.pem\n"
					  "  cert_file: /abs/cert.pem\n"
					  "  key: PEM\n"
					  "  server_name: s\n"
					  "  insecure_skip_verify: yes\n"
					  "  min_version: TLS12\n"
					  "  max_version: TLS13\n"
					  "http_headers:\n"
					  "  X-B: {values: [one, 2], secrets: [three]}\n"
					  "  X-A: {files: [token]}\n",
				   &j, &err),
		&err);
	CHECK(j.http.has_basic_auth && !j.http.follow_redirects && j.http.tls_insecure_skip_verify);
	CHECK_STR(j.http.username, "u");
	CHECK_STR(j.http.password_file, "/etc/epi/pw");
	CHECK_STR(j.http.tls_ca_file, "/etc/epi/ca.pem");
	CHECK_STR(j.http.tls_cert_file, "/abs/cert.pem");
	CHECK_STR(j.http.tls_key, "PEM");
	CHECK_STR(j.http.tls_server_name, "s");
	CHECK_STR(j.http.tls_min_version, "TLS12");
	CHECK_STR(j.http.tls_max_version, "TLS13");
	REQUIRE(j.http.headers.n == 1 && j.http.header_files.n == 1);
	CHECK_STR(j.http.headers.v[0].name, "X-B");
	CHECK_STR(j.http.headers.v[0].value, "one, 2, three");
	CHECK_STR(j.http.header_files.v[0].name, "X-A");
	CHECK_STR(j.http.header_files.v[0].value, "/etc/epi/token");
	arena_release(&arena);
}

TEST(authorization)
{
	static const struct {
		const char *text, *type, *credentials, *file;
	} rows[] = {
		{ "authorization: {credentials: c}", "Bearer", "c", "" },
		{ "authorization: {type: ' Custom ', credentials_file: f}", "Custom", "", "/etc/epi/f" },
		{ "bearer_token: t", "Bearer", "t", "" },
		{ "bearer_token_file: f", "Bearer", "", "/etc/epi/f" },
	};
	struct job j;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_OK(decode(rows[i].text, &j, &err), &err);
		CHECK(j.http.has_authorization);
		CHECK_STR(j.http.auth_type, rows[i].type);
		CHECK_STR(j.http.credentials, rows[i].credentials);
		CHECK_STR(j.http.credentials_file, rows[i].file);
	}
	CHECK_OK(decode("bearer_token: ''", &j, &err), &err);
	CHECK(!j.http.has_authorization);
	arena_release(&arena);
}

TEST(refused)
{
	static const struct {
		const char *text;
		enum err_code code;
		const char *want;
	} rows[] = {
		{ "basic_auth: {user: u}", ERR_INVALID,
			"j.yml:1:14: field user not found in type basic_auth" },
		{ "basic_auth: u", ERR_INVALID, "j.yml:1:13: cannot unmarshal !!str `u` into basic_auth" },
		{ "basic_auth: {username: u, username_file: f}", ERR_INVALID,
			"j.yml:1:13: at most one of basic_auth username & username_file must be configured" },
		{ "basic_auth: {password: u, password_file: f}", ERR_INVALID,
			"j.yml:1:13: at most one of basic_auth password & password_file must be configured" },
		{ "authorization: {credentials: c, credentials_file: f}", ERR_INVALID,
			"j.yml:1:16: at most one of "
			"authorization credentials & credentials_file must be configured" },
		{ "authorization: {type: Basic}", ERR_INVALID,
			"j.yml:1:23: authorization type cannot be set to "
			"\"basic\", use \"basic_auth\" instead" },
		{ "bearer_token: t\nbearer_token_file: f", ERR_INVALID,
			"j.yml:2:20: at most one of bearer_token & bearer_token_file must be configured" },
		{ "bearer_token: t\nbasic_auth: {username: u}", ERR_INVALID,
			"j.yml:2:13: at most one of basic_auth, "
			"oauth2, bearer_token & bearer_token_file must be configured" },
		{ "bearer_token: t\nauthorization: {credentials: c}", ERR_INVALID,
			"j.yml:2:16: authorization is not compatible with bearer_token & bearer_token_file" },
		{ "authorization: {credentials: c}\nbasic_auth: {username: u}", ERR_INVALID,
			"j.yml:1:16: at most one of basic_auth, oauth2 & authorization must be configured" },
		{ "bearer_token: [a]", ERR_INVALID, "j.yml:1:15: cannot unmarshal !!seq into string" },
		{ "enable_http2: 2", ERR_INVALID, "j.yml:1:15: cannot unmarshal !!int `2` into bool" },
		{ "follow_redirects: 2", ERR_INVALID, "j.yml:1:19: cannot unmarshal !!int `2` into bool" },
		{ "tls_config: {ca: x, ca_file: y}", ERR_INVALID,
			"j.yml:1:13: at most one of ca and ca_file must be configured" },
		{ "tls_config: {cert: x}", ERR_INVALID,
			"j.yml:1:13: exactly one of key or key_file must be configured "
			"when a client certificate is configured" },
		{ "tls_config: {key_file: x}", ERR_INVALID,
			"j.yml:1:13: exactly one of cert or cert_file must be "
			"configured when a client key is configured" },
		{ "tls_config: {min_version: TLS1}", ERR_INVALID, "j.yml:1:27: unknown TLS version: TLS1" },
		{ "tls_config: {min_version: TLS13, max_version: TLS12}", ERR_INVALID,
			"j.yml:1:47: "
			"tls_config.max_version must be greater than or equal to tls_config.min_version if "
			"both are "
			"specified" },
		{ "http_headers: {authorization: {values: [x]}}", ERR_INVALID,
			"j.yml:1:16: setting header \"authorization\" is not allowed" },
		{ "http_headers: {'a b': {values: [x]}}", ERR_INVALID,
			"j.yml:1:16: invalid header name \"a b\"" },
		{ "http_headers: {a: {values: [\"x\\ny\"]}}", ERR_INVALID,
			"j.yml:1:19: a header's value may not hold control characters" },
		{ "http_headers: {a: {value: x}}", ERR_INVALID,
			"j.yml:1:20: field value not found in type header; did you mean \"values\"?" },
		{ "http_headers: {a: {files: [x, y]}}", ERR_UNSUPPORTED,
			"j.yml:1:27: more than one file for a header" },
	};
	struct job j;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_ERR(decode(rows[i].text, &j, &err), &err, rows[i].code, rows[i].want);
	arena_release(&arena);
}

TEST(refused_oauth2_and_proxies)
{
	static const struct {
		const char *text;
		enum err_code code;
		const char *want;
	} rows[] = {
		{ "oauth2: {token_url: 'http://t'}", ERR_INVALID,
			"j.yml:1:9: oauth2 client_id must be configured" },
		{ "oauth2: {client_id: x}", ERR_INVALID, "j.yml:1:9: oauth2 token_url must be configured" },
		{ "oauth2: {client_id: x, token_url: 'http://t', client_secret: s, client_secret_file: f}",
			ERR_INVALID,
			"j.yml:1:9: at most one of oauth2 client_secret & client_secret_file must be "
			"configured" },
		{ "oauth2: {client_id: x, token_url: t}", ERR_INVALID,
			"j.yml:1:35: oauth2 token_url: invalid URL \"t\": unsupported protocol scheme" },
		{ "oauth2: {client_id: x, token_url: 'http://t', scopes: [a], endpoint_params: {scope: b}}",
			ERR_INVALID, "j.yml:1:77: oauth2: cannot overwrite parameter \"scope\"" },
		{ "oauth2: {client_id: x, token_url: 'http://t', secret: s}", ERR_INVALID,
			"j.yml:1:47: field secret not found in type oauth2" },
		{ "oauth2: {client_id: x, token_url: 'http://t', tls_config: {cert: c}}", ERR_INVALID,
			"j.yml:1:59: exactly one of key or key_file must be configured when a client "
			"certificate is configured" },
		{ "oauth2: {client_id: x, token_url: 'http://t', no_proxy: a}", ERR_INVALID,
			"j.yml:1:57: if no_proxy is configured, proxy_url must also be configured" },
		{ "oauth2: {client_id: x, token_url: 'http://t'}\nbasic_auth: {username: u}", ERR_INVALID,
			"j.yml:1:9: at most one of basic_auth, oauth2 & authorization must be configured" },
		{ "oauth2: {client_id: x, token_url: 'http://t'}\nauthorization: {credentials: c}",
			ERR_INVALID,
			"j.yml:2:16: at most one of basic_auth, oauth2 & authorization must be configured" },
		{ "oauth2: {client_id: x, token_url: 'http://t'}\nbearer_token: t", ERR_INVALID,
			"j.yml:1:9: at most one of basic_auth, oauth2, bearer_token & bearer_token_file must "
			"be configured" },
		{ "proxy_url: proxy:3128", ERR_INVALID,
			"j.yml:1:12: the URL of a proxy begins with http://, https://, socks5:// or "
			"socks5h://" },
		{ "proxy_url: ftp://user:secret@proxy", ERR_INVALID,
			"j.yml:1:12: proxy scheme \"ftp\" is not supported" },
		{ "no_proxy: a.b", ERR_INVALID,
			"j.yml:1:11: if no_proxy is configured, proxy_url must also be configured" },
		{ "proxy_from_environment: true\nproxy_url: http://p", ERR_INVALID,
			"j.yml:2:12: if proxy_from_environment is configured, proxy_url must not be "
			"configured" },
		{ "proxy_from_environment: true\nno_proxy: a", ERR_INVALID,
			"j.yml:2:11: if proxy_from_environment is configured, no_proxy must not be "
			"configured" },
		{ "proxy_connect_header: {A: [b]}", ERR_INVALID,
			"j.yml:1:23: if proxy_connect_header is configured, proxy_url or "
			"proxy_from_environment must also be configured" },
		{ "proxy_url: http://p\nproxy_connect_header: {A: b}", ERR_INVALID,
			"j.yml:2:27: cannot unmarshal !!str into a list of values of a header" },
		{ "proxy_url: http://p\nproxy_connect_header: {A: [[b]]}", ERR_INVALID,
			"j.yml:2:28: cannot unmarshal !!seq into string" },
		{ "proxy_url: http://p\nproxy_connect_header: {Host: [b]}", ERR_INVALID,
			"j.yml:2:24: header \"Host\" may not be set" },
		{ "proxy_url: http://p\nproxy_connect_header: {A: [\"b\\r\\nC: d\"]}", ERR_INVALID,
			"j.yml:2:24: value of header \"A\" holds control characters" },
	};
	struct job j;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_ERR(decode(rows[i].text, &j, &err), &err, rows[i].code, rows[i].want);
	arena_release(&arena);
}

TEST(oauth2)
{
	const struct http_oauth2 *o;
	struct job j;
	struct err err;

	REQUIRE_OK(decode("oauth2:\n"
					  "  client_id: me\n"
					  "  client_secret_file: secret\n"
					  "  scopes: [read, write all]\n"
					  "  token_url: https://t.example/token?x=y\n"
					  "  endpoint_params: {resource: r, audience: a}\n"
					  "  tls_config: {ca_file: ca.pem, server_name: s}\n"
					  "  proxy_url: http://user:pw@p:1\n"
					  "  no_proxy: a,b\n"
					  "  proxy_connect_header: {X: [1, two]}\n",
				   &j, &err),
		&err);
	REQUIRE(o = j.http.oauth2);
	CHECK_STR(o->client_id, "me");
	CHECK_STR(o->client_secret, "");
	CHECK_STR(o->client_secret_file, "/etc/epi/secret");
	CHECK_STR(o->scope, "read write all");
	CHECK_STR(o->token_url, "https://t.example/token?x=y");
	CHECK_STR(labels_get(o->endpoint_params, STR("audience")), "a");
	CHECK_STR(o->http.tls_ca_file, "/etc/epi/ca.pem");
	CHECK_STR(o->http.tls_server_name, "s");
	CHECK_STR(o->http.proxy.url, "http://user:pw@p:1");
	CHECK_STR(o->http.proxy.no_proxy, "a,b");
	CHECK(!o->http.follow_redirects && !o->http.proxy.from_environment);
	REQUIRE(o->http.proxy.connect_headers.n == 2);
	CHECK_STR(o->http.proxy.connect_headers.v[1].name, "X");
	CHECK_STR(o->http.proxy.connect_headers.v[1].value, "two");
	CHECK(!j.http.proxy.url.len && !j.http.tls_ca_file.len); /* its own are others */
	arena_release(&arena);
}

TEST(proxies)
{
	struct job j;
	struct err err;

	REQUIRE_OK(decode("proxy_url: socks5://p\nno_proxy: 'a, b'\n"
					  "proxy_connect_header: {A: [b, c], D: [], E: }",
				   &j, &err),
		&err);
	CHECK_STR(j.http.proxy.url, "socks5://p");
	CHECK_STR(j.http.proxy.no_proxy, "a, b");
	REQUIRE(j.http.proxy.connect_headers.n == 2);
	CHECK_STR(j.http.proxy.connect_headers.v[0].name, "A");
	CHECK_STR(j.http.proxy.connect_headers.v[1].value, "c");
	REQUIRE_OK(decode("proxy_url: ''\nno_proxy: a", &j, &err), &err); /* as Prometheus */
	REQUIRE_OK(decode("proxy_from_environment: true", &j, &err), &err);
	CHECK(j.http.proxy.from_environment);
	arena_release(&arena);
}

/* Two settings that differ in one value only have different bytes. */
TEST(what_differs_encodes_differently)
{
	static const char *const texts[] = {
		"name: x",
		"proxy_url: http://p",
		"{proxy_url: http://p, no_proxy: a}",
		"{proxy_url: http://p, proxy_connect_header: {A: [b]}}",
		"proxy_from_environment: true",
		"oauth2: {client_id: a, token_url: 'http://t'}",
		"oauth2: {client_id: b, token_url: 'http://t'}",
		"oauth2: {client_id: a, token_url: 'http://u'}",
		"oauth2: {client_id: a, token_url: 'http://t', client_secret: s}",
		"oauth2: {client_id: a, token_url: 'http://t', client_secret_file: s}",
		"oauth2: {client_id: a, token_url: 'http://t', scopes: [s]}",
		"oauth2: {client_id: a, token_url: 'http://t', endpoint_params: {s: t}}",
		"oauth2: {client_id: a, token_url: 'http://t', tls_config: {ca: c}}",
		"oauth2: {client_id: a, token_url: 'http://t', proxy_url: 'http://p'}",
	};
	struct buf bytes[sizeof(texts) / sizeof(texts[0])] = { 0 };
	struct http_config copy;
	struct buf again = { 0 };
	struct arena a;
	struct job j;
	struct err err;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		REQUIRE_OK(decode(texts[i], &j, &err), &err);
		http_config_encode(&bytes[i], &j.http);
		REQUIRE_OK(http_config_dup(&a, &j.http, &copy, &err), &err);
		buf_clear(&again);
		http_config_encode(&again, &copy);
		CHECK(str_eq(buf_str(&again), buf_str(&bytes[i])));
		for (size_t k = 0; k < i; k++)
			CHECK(!str_eq(buf_str(&bytes[k]), buf_str(&bytes[i])));
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		buf_release(&bytes[i]);
	buf_release(&again);
	arena_release(&a);
	arena_release(&arena);
}

TEST(files_that_are_named_must_be_there)
{
	struct http_oauth2 o = { .client_secret_file = STR("/nonexistent/secret") };
	struct http_config c = { .tls_ca_file = STR("/dev/null") };
	struct label header = { STR("X"), STR("/nonexistent/header") };
	struct err err;

	CHECK_OK(http_config_check_files(&c, &err), &err);
	c.password_file = STR("/nonexistent/pw");
	CHECK_ERR(http_config_check_files(&c, &err), &err, ERR_NOT_FOUND,
		"basic auth password file /nonexistent/pw: No such file or directory");
	c = (struct http_config){ .oauth2 = &o };
	CHECK_ERR(http_config_check_files(&c, &err), &err, ERR_NOT_FOUND,
		"oauth2 client secret file /nonexistent/secret: No such file or directory");
	o = (struct http_oauth2){ .http.tls_ca_file = STR("/nonexistent/ca") };
	CHECK_ERR(http_config_check_files(&c, &err), &err, ERR_NOT_FOUND,
		"oauth2: tls ca file /nonexistent/ca: No such file or directory");
	c = (struct http_config){ .header_files = { &header, 1 } };
	CHECK_ERR(http_config_check_files(&c, &err), &err, ERR_NOT_FOUND,
		"http header file /nonexistent/header: No such file or directory");
}

TEST(a_copy_is_the_same_and_stands_alone)
{
	static const char text[] =
		"basic_auth: {username: u, password: p}\n"
		"tls_config: {ca: a, server_name: n, min_version: TLS12, insecure_skip_verify: true}\n"
		"follow_redirects: false\n"
		"http_headers: {X-A: {values: [v]}, X-B: {files: [/f]}}\n";
	struct http_config copy;
	struct arena a;
	struct job j;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(decode(text, &j, &err), &err);
	REQUIRE_OK(http_config_dup(&a, &j.http, &copy, &err), &err);
	arena_release(&arena);
	CHECK_STR(copy.username, "u");
	CHECK_STR(copy.password, "p");
	CHECK(copy.has_basic_auth && copy.tls_insecure_skip_verify && !copy.follow_redirects);
	CHECK_STR(copy.tls_ca, "a");
	CHECK_STR(copy.tls_server_name, "n");
	CHECK_STR(copy.tls_min_version, "TLS12");
	CHECK_INT(copy.tls_key_file.len, 0);
	CHECK_STR(labels_get(copy.headers, STR("X-A")), "v");
	CHECK_STR(labels_get(copy.header_files, STR("X-B")), "/f");
	arena_release(&a);
}
