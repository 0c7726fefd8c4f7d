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
	CHECK(j.http.follow_redirects && !j.http.has_basic_auth && !j.http.has_authorization);
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
		{ "oauth2: {client_id: x}", ERR_UNSUPPORTED, "j.yml:1:9: oauth2 is not supported" },
		{ "proxy_url: http://proxy", ERR_UNSUPPORTED, "j.yml:1:12: proxy_url is not supported" },
		{ "proxy_from_environment: true", ERR_UNSUPPORTED,
			"j.yml:1:25: proxy_from_environment is not supported" },
		{ "enable_http2: 2", ERR_INVALID, "j.yml:1:15: enable_http2 must be true or false" },
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
			"j.yml:1:20: field value not found in type header" },
		{ "http_headers: {a: {files: [x, y]}}", ERR_UNSUPPORTED,
			"j.yml:1:27: more than one file for a header" },
	};
	struct job j;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_ERR(decode(rows[i].text, &j, &err), &err, rows[i].code, rows[i].want);
	arena_release(&arena);
}

TEST(files_that_are_named_must_be_there)
{
	struct http_config c = { .tls_ca_file = STR("/dev/null") };
	struct label header = { STR("X"), STR("/nonexistent/header") };
	struct err err;

	CHECK_OK(http_config_check_files(&c, &err), &err);
	c.password_file = STR("/nonexistent/pw");
	CHECK_ERR(http_config_check_files(&c, &err), &err, ERR_NOT_FOUND,
		"basic auth password file /nonexistent/pw: No such file or directory");
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
