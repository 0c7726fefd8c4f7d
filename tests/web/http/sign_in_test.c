/* Who a request is of, by what signs it in: a password, a token, a proxy that is trusted. */
#include "web/http/sign_in.h"

#include <unistd.h>

#include "base/clock.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/http/any_port.h"
#include "tests/web/http/bcrypt.h"
#include "tests/web/http/http_peer.h"
#include "web/http/config.h"

static struct {
	char dir[64];
	struct web_config *config;
	struct http_server *server;
	unsigned port;
	struct response r;
} place;

static const char *place_path(const char *name)
{
	static char paths[4][160];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", place.dir, name);
	return path;
}

static void write_text(const char *name, const char *text)
{
	FILE *f = fopen(place_path(name), "w");

	REQUIRE(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* "NAME by HOW: ROLES", and which of these two namespaces are seen. */
static void answer(void *ctx, struct http_in *in, struct http_out *out)
{
	const struct label shop = { STR("namespace"), STR("shop") },
		bank = { STR("namespace"), STR("bank") };
	const struct http_user *u = &in->user;

	if (web_config_admit(ctx, in, out, true, str_is(in->path, "/open")) != HTTP_ADMITTED) {
		if (out->status == 401)
			http_text(out, 401, "%s", u->why);
		return;
	}
	http_text(out, 200, STR_FMT " by %s:%s%s%s%s%s", STR_ARG(u->name),
		u->sign_in ? u->sign_in : "nothing", u->roles & ROLE_READ ? " read" : "",
		u->roles & ROLE_INGEST ? " ingest" : "", u->roles & ROLE_ADMIN ? " admin" : "",
		label_limits_admit(u->limits, (struct labels){ &shop, 1 }) ? ", shop" : "",
		label_limits_admit(u->limits, (struct labels){ &bank, 1 }) ? ", bank" : "");
}

static void place_open(const char *text)
{
	struct http_server_options o = {
		.read_timeout_ns = NS_PER_MIN, .body_bytes_max = 1000, .handler = answer
	};
	struct err err;

	memset(&place, 0, sizeof(place));
	snprintf(place.dir, sizeof(place.dir), "/tmp/epi-users-XXXXXX");
	REQUIRE(mkdtemp(place.dir));
	write_text("ci", "token-of-the-ci-job\n");
	write_text("web.yml", text);
	REQUIRE_OK(web_config_open(place_path("web.yml"), 0, &place.config, &err), &err);
	o.ctx = place.config;
	REQUIRE(open_on_any_port(o, &place.server, &place.port));
}

static void place_close(void)
{
	http_server_close(place.server, NS_PER_S);
	web_config_close(place.config);
	response_release(&place.r);
	CHECK(unlink(place_path("web.yml")) == 0 && unlink(place_path("ci")) == 0);
	CHECK(rmdir(place.dir) == 0);
}

/* From 127.0.0.N. */
static struct str ask_for(unsigned n, const char *request, const char *headers)
{
	struct peer peer;

	peer_open_from(&peer, n, place.port);
	peer_ask_on(&peer, &place.r, request, headers, (struct str){ 0 });
	peer_close(&peer);
	return buf_str(&place.r.body);
}

static struct str ask(unsigned n, const char *headers)
{
	return ask_for(n, "GET /x", headers);
}

struct row {
	unsigned from;
	const char *headers, *want;
};

static void check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct str got = ask(rows[i].from, rows[i].headers);
		struct str want = str_of(rows[i].want);

		if (got.len != want.len + 1 || !str_has_prefix(got, want))
			CHECK_FAIL(
				"%s: \"" STR_FMT "\", want \"%s\"", rows[i].headers, STR_ARG(got), rows[i].want);
	}
}
#define CHECK_ROWS(rows) check_rows((rows), sizeof(rows) / sizeof((rows)[0]))

#define SECRET_OF_ALICE "Authorization: Basic YWxpY2U6c2VjcmV0\r\n" /* alice:secret */
#define WRONG_OF_ALICE "Authorization: Basic YWxpY2U6d3Jvbmc=\r\n" /* alice:wrong */
#define CI "Authorization: Bearer token-of-the-ci-job\r\n"

#define PROXIES \
	"trusted_proxy:\n" \
	"  addresses: [127.0.0.2, 127.0.0.8/30]\n" \
	"  user_header: X-Forwarded-User\n" \
	"  groups_header: Remote-Groups\n" \
	"  users: [{name: root@example.org, roles: [admin]}]\n" \
	"  groups:\n" \
	"    - {name: shop, roles: [read], matchers: '{namespace=\"shop\"}'}\n" \
	"    - {name: bank, roles: [read], matchers: '{namespace=\"bank\"}'}\n" \
	"    - {name: ci, roles: [ingest]}\n" \
	"    - {name: everybody, roles: [read]}\n"

TEST(users_without_roles_have_all)
{
	static const struct row rows[] = {
		{ 1, SECRET_OF_ALICE, "alice by password: read ingest admin, shop, bank" },
		{ 1, WRONG_OF_ALICE, "unknown name or password" },
		{ 1, CI, "unknown name or password" },
		{ 1, "X-Forwarded-User: root@example.org\r\n", "no credentials" },
		{ 1, "", "no credentials" },
	};
	char text[512];

	place_open("");
	CHECK_STR(ask(1, ""), " by nothing: read ingest admin, shop, bank\n");
	place_close();
	snprintf(text, sizeof(text), "basic_auth_users: {alice: '%s'}\n", hash_of("secret", SALT));
	place_open(text);
	CHECK_ROWS(rows);
	CHECK_STR(response_header(&place.r, "WWW-Authenticate"), "Basic");
	place_close();
}

/* Health: nobody need sign in, and who tries has to be right. */
TEST(what_is_open_needs_no_credentials)
{
	char text[2048];

	snprintf(
		text, sizeof(text), "basic_auth_users: {alice: '%s'}\n" PROXIES, hash_of("secret", SALT));
	place_open(text);
	CHECK_STR(ask_for(1, "GET /open", ""), " by nothing:, shop, bank\n");
	CHECK_STR(ask_for(2, "GET /open", ""), " by nothing:, shop, bank\n");
	CHECK_STR(ask_for(1, "GET /open", WRONG_OF_ALICE), "unknown name or password\n");
	CHECK_STR(ask_for(1, "GET /open", "X-Forwarded-User: root@example.org\r\n"),
		"proxy header from an untrusted address\n");
	CHECK_STR(ask_for(1, "GET /open", SECRET_OF_ALICE),
		"alice by password: read ingest admin, shop, bank\n");
	CHECK_STR(ask_for(1, "GET /x", ""), "no credentials\n");
	place_close();
}

TEST(passwords_tokens_and_proxies_sign_in)
{
	static const struct row rows[] = {
		{ 1, SECRET_OF_ALICE, "alice by password: read, shop" },
		{ 1, WRONG_OF_ALICE, "unknown name or password" },
		{ 1, CI, "ci by token: ingest, shop, bank" },
		{ 1, "Authorization: bearer  token-of-the-ci-job \r\n", "ci by token: ingest, shop, bank" },
		{ 1, "Authorization: Bearer token-of-the-ci-joc\r\n", "unknown token" },
		{ 1, "Authorization: Bearer token-of-the-ci-jo\r\n", "unknown token" },
		{ 1, "Authorization: Bearer \r\n", "unknown token" },
		{ 1, "Authorization: Digest x\r\n", "unknown name or password" },
		/* A header counts from a proxy's address only. */
		{ 2, "X-Forwarded-User: root@example.org\r\n",
			"root@example.org by proxy: read ingest admin, shop, bank" },
		{ 9, "x-forwarded-user: root@example.org\r\n",
			"root@example.org by proxy: read ingest admin, shop, bank" },
		{ 1, "X-Forwarded-User: root@example.org\r\n", "proxy header from an untrusted address" },
		{ 12, "X-Forwarded-User: root@example.org\r\n", "proxy header from an untrusted address" },
		{ 1, "X-Forwarded-User: root@example.org\r\n" CI, "ci by token: ingest, shop, bank" },
		{ 2, "X-Forwarded-User: root@example.org\r\n" CI,
			"root@example.org by proxy: read ingest admin, shop, bank" },
		{ 2, CI, "ci by token: ingest, shop, bank" },
		{ 2, "X-Forwarded-User: \r\n", "no credentials" },
		{ 2, "X-Forwarded-User: root@example.org\r\nX-Forwarded-User: bob\r\n",
			"the proxy's user header is repeated" },
		/* A name at the proxy is none of our users. */
		{ 2, "X-Forwarded-User: alice\r\n", "alice by proxy:, shop, bank" },
		{ 2, "X-Forwarded-User: ci\r\n", "ci by proxy:, shop, bank" },
		/* Groups. */
		{ 2, "X-Forwarded-User: bob\r\nRemote-Groups: shop\r\n", "bob by proxy: read, shop" },
		{ 2, "X-Forwarded-User: bob\r\nRemote-Groups: none, ci,shop\r\n",
			"bob by proxy: read ingest, shop" },
		{ 2, "X-Forwarded-User: bob\r\nRemote-Groups: shop,bank,shop\r\n",
			"bob by proxy: read, shop, bank" },
		{ 2, "X-Forwarded-User: bob\r\nRemote-Groups: shop,everybody\r\n",
			"bob by proxy: read, shop, bank" },
		{ 2, "X-Forwarded-User: bob\r\nRemote-Groups: shop\r\nRemote-Groups: bank\r\n",
			"the proxy's groups header is repeated" },
		{ 2, "X-Forwarded-User: root@example.org\r\nRemote-Groups: shop\r\n",
			"root@example.org by proxy: read ingest admin, shop, bank" },
	};
	char text[2048], many[2048] = "";

	snprintf(text, sizeof(text),
		"basic_auth_users: {alice: '%s'}\n"
		"users:\n"
		"  - {name: alice, roles: [read], matchers: '{namespace=\"shop\"}'}\n"
		"  - {name: ci, token_file: ci, roles: [ingest]}\n" PROXIES,
		hash_of("secret", SALT));
	place_open(text);
	CHECK_ROWS(rows);
	for (unsigned i = 0; i <= HTTP_KEPT_HEADERS_MAX; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), "X-H: %u\r\n", i);
	snprintf(many + strlen(many), sizeof(many) - strlen(many), "X-Forwarded-User: bob\r\n");
	CHECK_STR(ask(2, many), "more than 32 headers that begin with X- or Remote-\n");
	place_close();
}

TEST(others_of_a_proxy_have_what_the_file_says)
{
	static const struct row rows[] = {
		{ 2, "X-Forwarded-User: bob\r\n", "bob by proxy: read, bank" },
		{ 2, "X-Forwarded-User: bob\r\nRemote-Groups: shop\r\n", "bob by proxy: read, shop" },
		{ 2, CI, "unsupported kind of credentials" },
	};

	place_open(PROXIES "  others: {roles: [read], matchers: '{namespace!=\"shop\"}'}\n");
	CHECK_ROWS(rows);
	CHECK_STR(response_header(&place.r, "WWW-Authenticate"), "Bearer");
	place_close();
}

/* Within a second or so; and what is wrong changes nothing. */
TEST(a_token_is_read_again_when_its_file_changes)
{
	static const char *const next = "Authorization: Bearer another-token-of-ci\r\n";

	place_open("users:\n  - {name: ci, token_file: ci, roles: [ingest]}\n");
	CHECK_STR(ask(1, CI), "ci by token: ingest, shop, bank\n");
	write_text("ci", "another-token-of-ci");
	(void)!WAIT_FOR((ask(1, next), place.r.status == 200));
	CHECK_STR(ask(1, next), "ci by token: ingest, shop, bank\n");
	CHECK_STR(ask(1, CI), "unknown token\n");
	CHECK_STR(response_header(&place.r, "WWW-Authenticate"), "Bearer");
	write_text("ci", "wrong");
	write_text("web.yml", "users:\n  - {name: ci, token_file: ci, roles: [ingest, read]}\n");
	CHECK_STR(ask(1, next), "ci by token: ingest, shop, bank\n");
	write_text("ci", "a-third-token-of-ci");
	(void)!WAIT_FOR(str_is(ask(1, "Authorization: Bearer a-third-token-of-ci\r\n"),
		"ci by token: read ingest, shop, bank\n"));
	place_close();
}
