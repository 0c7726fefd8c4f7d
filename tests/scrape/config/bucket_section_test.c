#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "tests/scrape/config/refused.h"

#define SECTION(more) "bucket: {endpoint: 'http://s3', bucket: b" more "}"

TEST(there_is_none_by_default)
{
	const char *const texts[] = { "{}", "bucket:", "bucket: ~" };
	struct config *c;
	struct err err;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		REQUIRE_OK(load(texts[i], &c, &err), &err);
		CHECK(!c->bucket.present);
		config_unref(c);
	}
}

TEST(defaults)
{
	const struct bucket_section *s;
	struct config *c;
	struct err err;

	REQUIRE_OK(load(SECTION(""), &c, &err), &err);
	s = &c->bucket;
	CHECK(s->present && !s->virtual_host && !s->http.follow_redirects);
	CHECK_INT(s->source, BUCKET_FROM_ENVIRONMENT);
	CHECK_STR(s->endpoint, "http://s3");
	CHECK_STR(s->bucket, "b");
	CHECK_INT(s->prefix.len + s->region.len + s->secret_key.len + s->credentials_file.len, 0);
	CHECK(s->prices.put_per_million == 5 && s->prices.get_per_million == 0.4 &&
		s->prices.storage_per_tb_month == 23);
	config_unref(c);
}

TEST(all_of_it)
{
	const struct bucket_section *s;
	struct config *c;
	struct err err;

	REQUIRE_OK(load("bucket:\n"
					"  endpoint: https://s3.example/base\n"
					"  bucket: profiles\n"
					"  prefix: a/b\n"
					"  region: eu-central-1\n"
					"  virtual_host: true\n"
					"  access_key: AK\n"
					"  secret_key_file: secret\n"
					"  session_token_file: /run/token\n"
					"  tls_config: {ca_file: ca.pem}\n"
					"  proxy_url: http://proxy:3128\n"
					"  http_headers: {X-Team: {values: [a]}}\n"
					"  prices: {get_per_million: 0, storage_per_tb_month: 11.5}\n",
				   &c, &err),
		&err);
	s = &c->bucket;
	CHECK_STR(s->endpoint, "https://s3.example/base");
	CHECK_STR(s->prefix, "a/b");
	CHECK_STR(s->region, "eu-central-1");
	CHECK(s->virtual_host);
	CHECK_INT(s->source, BUCKET_FROM_KEYS);
	CHECK_STR(s->access_key, "AK");
	CHECK_STR(s->secret_key_file, "/etc/epimetheus/secret");
	CHECK_STR(s->session_token_file, "/run/token");
	CHECK_STR(s->http.tls_ca_file, "/etc/epimetheus/ca.pem");
	CHECK_STR(s->http.proxy.url, "http://proxy:3128");
	CHECK_INT(s->http.headers.n, 1);
	CHECK(s->prices.put_per_million == 5 && s->prices.get_per_million == 0 &&
		s->prices.storage_per_tb_month == 11.5);
	config_unref(c);
	REQUIRE_OK(load(SECTION(", credentials_file: c.ini, profile: p"), &c, &err), &err);
	CHECK_INT(c->bucket.source, BUCKET_FROM_FILE);
	CHECK_STR(c->bucket.credentials_file, "/etc/epimetheus/c.ini");
	CHECK_STR(c->bucket.profile, "p");
	config_unref(c);
	REQUIRE_OK(load(SECTION(", web_identity: {role_arn: r, token_file: t, session_name: n, "
							"sts_endpoint: 'http://sts'}"),
				   &c, &err),
		&err);
	CHECK_INT(c->bucket.source, BUCKET_FROM_ROLE);
	CHECK_STR(c->bucket.role_arn, "r");
	CHECK_STR(c->bucket.token_file, "/etc/epimetheus/t");
	CHECK_STR(c->bucket.session_name, "n");
	CHECK_STR(c->bucket.sts_endpoint, "http://sts");
	config_unref(c);
}

/* clang-format off */
static const char *const refused_rows[][2] = {
	{ "bucket: []", "c.yml:1:9: cannot unmarshal !!seq into bucket_config" },
	{ "bucket: {}", "c.yml:1:9: endpoint: URL is missing" },
	{ "bucket: {endpoint: s3}",
	  "c.yml:1:20: endpoint: URL scheme must be 'http' or 'https'" },
	{ "bucket: {endpoint: 'http://u:p@s3'}",
	  "c.yml:1:20: endpoint: user information in a URL is not supported" },
	{ "bucket: {endpoint: 'http://s3'}", "c.yml:1:9: bucket: the bucket's name is missing" },
	{ SECTION(", basic_auth: {username: u, password: p}"),
	  "c.yml:1:44: field basic_auth not found in type bucket_config" },
	{ SECTION(", follow_redirects: true"),
	  "c.yml:1:44: field follow_redirects not found in type bucket_config" },
	{ SECTION(", access_key: a"), "c.yml:1:9: access_key needs secret_key" },
	{ SECTION(", secret_key: a"), "c.yml:1:9: secret_key needs access_key" },
	{ SECTION(", access_key: a, access_key_file: f, secret_key: s"),
	  "c.yml:1:9: at most one of access_key & access_key_file must be configured" },
	{ SECTION(", access_key: a, secret_key: s, secret_key_file: f"),
	  "c.yml:1:9: at most one of secret_key & secret_key_file must be configured" },
	{ SECTION(", access_key: a, secret_key: s, session_token: t, session_token_file: f"),
	  "c.yml:1:9: at most one of session_token & session_token_file must be configured" },
	{ SECTION(", session_token: t"),
	  "c.yml:1:9: session_token needs access_key and secret_key" },
	{ SECTION(", access_key: a, secret_key: s, credentials_file: f"),
	  "c.yml:1:9: at most one of access_key, credentials_file & web_identity must be "
	  "configured" },
	{ SECTION(", credentials_file: f, web_identity: {role_arn: r, token_file: t}"),
	  "c.yml:1:9: at most one of access_key, credentials_file & web_identity must be "
	  "configured" },
	{ SECTION(", profile: p"), "c.yml:1:53: profile needs credentials_file" },
	{ SECTION(", web_identity: {role_arn: r}"),
	  "c.yml:1:58: web_identity needs role_arn and token_file" },
	{ SECTION(", web_identity: {token_file: r}"),
	  "c.yml:1:58: web_identity needs role_arn and token_file" },
	{ SECTION(", web_identity: {role_arn: r, token_file: t, sts_endpoint: x}"),
	  "c.yml:1:101: sts_endpoint: URL scheme must be 'http' or 'https'" },
	{ SECTION(", web_identity: {role: r}"),
	  "c.yml:1:59: field role not found in type web_identity" },
	{ SECTION(", prices: {put_per_million: -1}"),
	  "c.yml:1:70: put_per_million is not a price" },
	{ SECTION(", prices: {storage_per_tb_month: .inf}"),
	  "c.yml:1:75: storage_per_tb_month is not a price" },
	{ SECTION(", prices: {get_per_million: x}"),
	  "c.yml:1:70: cannot unmarshal !!str `x` into float64" },
	{ SECTION(", http_headers: {X-Amz-Acl: {values: [private]}}"),
	  "c.yml:1:58: header \"X-Amz-Acl\" cannot be set: it would have to be signed" },
	{ SECTION(", http_headers: {x-amz-acl: {files: [f]}}"),
	  "c.yml:1:58: header \"x-amz-acl\" cannot be set: it would have to be signed" },
	{ SECTION(", http_headers: {Authorization: {values: [a]}}"),
	  "c.yml:1:59: setting header \"Authorization\" is not allowed" },
	{ SECTION(", tls_config: {cert_file: c}"),
	  "c.yml:1:56: exactly one of key or key_file must be configured when a client certificate "
	  "is configured" },
};
/* clang-format on */

TEST(refusals_name_the_place)
{
	refuse_each(refused_rows, sizeof(refused_rows) / sizeof(refused_rows[0]));
}

TEST(errors_of_others_get_the_place)
{
	struct config *c;
	struct err err;

	REQUIRE_OK(load("global: {}\nbucket:\n  endpoint: http://s3\n  bucket: b\n", &c, &err), &err);
	CHECK_ERR(bucket_section_err(&c->bucket, err_set(&err, ERR_INVALID, "too blue"), &err), &err,
		ERR_INVALID, "c.yml:3:3: too blue");
	CHECK_OK(bucket_section_err(&c->bucket, ERR_OK, &err), &err);
	config_unref(c);
}

TEST(secrets_are_hidden)
{
	struct buf out = { 0 };
	struct config *c;
	struct err err;

	REQUIRE_OK(load(SECTION(", access_key: AK, secret_key: geheim, session_token: geheim, "
							"proxy_url: 'http://geheim@p', "
							"http_headers: {X: {secrets: [geheim]}}"),
				   &c, &err),
		&err);
	config_print(&out, c);
	CHECK(str_find(buf_str(&out), STR("geheim")) < 0);
	CHECK(str_find(buf_str(&out), STR("secret_key: <secret>")) > 0);
	CHECK(str_find(buf_str(&out), STR("session_token: <secret>")) > 0);
	CHECK(str_find(buf_str(&out), STR("access_key: AK")) > 0);
	config_unref(c);
	buf_release(&out);
}

TEST(files_are_checked)
{
	static const char *const rows[][2] = {
		{ SECTION(", access_key_file: /gone/a, secret_key: s"), "access key file /gone/a" },
		{ SECTION(", access_key: a, secret_key_file: /gone/s"), "secret key file /gone/s" },
		{ SECTION(", access_key: a, secret_key: s, session_token_file: /gone/t"),
			"session token file /gone/t" },
		{ SECTION(", credentials_file: /gone/c"), "credentials file /gone/c" },
		{ SECTION(", web_identity: {role_arn: r, token_file: /gone/w}"),
			"web identity token file /gone/w" },
		{ SECTION(", tls_config: {ca_file: /gone/ca}"), "tls ca file /gone/ca" },
	};
	struct config *c;
	struct err err;
	char want[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REQUIRE_OK(load(rows[i][0], &c, &err), &err);
		snprintf(want, sizeof(want), "bucket: %s: No such file or directory", rows[i][1]);
		CHECK_ERR(config_check_files(c, NULL, &err), &err, ERR_NOT_FOUND, want);
		config_unref(c);
	}
}

/* A reload with the same bucket leaves it open. */
TEST(equal_settings_have_equal_bytes)
{
	const char *const texts[] = { SECTION(""), SECTION(", prices: {put_per_million: 1}"),
		SECTION(", prefix: p"), SECTION(", region: r"), SECTION(", virtual_host: true"),
		SECTION(", access_key: a, secret_key: s"), SECTION(", access_key: a, secret_key: t"),
		SECTION(", access_key: a, secret_key_file: s"), SECTION(", credentials_file: a"),
		SECTION(", proxy_url: 'http://p'"), "{}" };
	struct buf first = { 0 }, other = { 0 };
	struct config *c;
	struct err err;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		REQUIRE_OK(load(texts[i], &c, &err), &err);
		buf_clear(&other);
		bucket_section_encode(i ? &other : &first, &c->bucket);
		config_unref(c);
		if (i && str_eq(buf_str(&first), buf_str(&other)) != (i == 1))
			CHECK_FAIL("row %zu", i);
	}
	buf_release(&first);
	buf_release(&other);
}
