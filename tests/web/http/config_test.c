/* The web configuration behind a real server: TLS, client certificates, users, changes of files. */
#include "web/http/config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/http/any_port.h"
#include "tests/web/http/bcrypt.h"
#include "tests/web/http/certs.h"
#include "tests/web/http/http_peer.h"
#include "web/web.h"

/* A directory with authorities, certificates and the configuration file. */
struct place {
	char dir[64];
	struct authority ca, other;
	struct web_config *config;
	struct http_server *server;
	unsigned port;
};

static const char *at(const struct place *p, const char *name)
{
	static char paths[8][160];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", p->dir, name);
	return path;
}

static void write_text(const struct place *p, const char *name, const char *text)
{
	FILE *f = fopen(at(p, name), "w");

	if (!f || fputs(text, f) < 0)
		CHECK_FAIL("cannot write %s", name);
	if (f)
		fclose(f);
}

static void place_init(struct place *p)
{
	*p = (struct place){ 0 };
	snprintf(p->dir, sizeof(p->dir), "/tmp/epi-web-XXXXXX");
	if (!mkdtemp(p->dir))
		CHECK_FAIL("no directory");
	authority_open(&p->ca, "ours");
	authority_open(&p->other, "theirs");
	authority_write(&p->ca, at(p, "ca.pem"));
	authority_sign(&p->ca, "first", CERT_SERVER, at(p, "server.pem"), at(p, "server.key"));
	authority_sign(&p->ca, "alice", CERT_CLIENT, at(p, "alice.pem"), at(p, "alice.key"));
	authority_sign(&p->ca, "late", CERT_CLIENT_EXPIRED, at(p, "late.pem"), at(p, "late.key"));
	authority_sign(&p->other, "mallory", CERT_CLIENT, at(p, "mallory.pem"), at(p, "mallory.key"));
}

static void admit(void *ctx, struct http_in *in, struct http_out *out)
{
	if (web_config_admit(ctx, in, out, true, false) == HTTP_ADMITTED)
		http_text(out, 200, "welcome");
}

static bool serve(struct place *p, const char *text)
{
	struct http_server_options o = {
		.read_timeout_ns = NS_PER_MIN,
		.body_bytes_max = 1000,
		.handler = admit,
	};
	struct err err;

	write_text(p, "web.yml", text);
	if (web_config_open(at(p, "web.yml"), 0, &p->config, &err)) {
		CHECK_FAIL("configuration: %s", err.msg);
		return false;
	}
	o.ctx = p->config;
	if (web_config_tls(p->config)) {
		o.tls_certificate_fn = web_config_certificate_fn();
		o.tls_priorities = web_config_priorities(p->config);
	}
	return open_on_any_port(o, &p->server, &p->port);
}

static void stop(struct place *p)
{
	http_server_close(p->server, NS_PER_S);
	web_config_close(p->config);
	p->server = NULL;
	p->config = NULL;
}

static void place_release(struct place *p)
{
	struct err err;

	stop(p);
	authority_close(&p->ca);
	authority_close(&p->other);
	CHECK_OK(fs_remove_tree(&fs_posix, p->dir, &err), &err);
}

/* One request over TLS; `client` names a certificate of the place, or is NULL. 0: no answer. */
static int ask_tls(struct place *p, const char *client, const char *priorities, struct response *r)
{
	struct peer_tls tls = { .priorities = priorities };
	struct peer peer;
	char cert[160], key[160];

	if (client) {
		snprintf(cert, sizeof(cert), "%s/%s.pem", p->dir, client);
		snprintf(key, sizeof(key), "%s/%s.key", p->dir, client);
		tls.cert_file = cert;
		tls.key_file = key;
	}
	peer_open_tls(&peer, p->port, &tls);
	peer_ask_on(&peer, r, "GET /x", "", (struct str){ 0 });
	peer_close(&peer);
	return r->status;
}

#define TLS_FILES "tls_server_config: {cert_file: server.pem, key_file: server.key"

TEST(tls_is_spoken_in_the_versions_allowed)
{
	struct response r = { 0 };
	struct place p;

	place_init(&p);
	REQUIRE(serve(&p, TLS_FILES "}\n"));
	CHECK_STR(
		str_of(web_config_priorities(p.config)), "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2");
	CHECK_INT(ask_tls(&p, NULL, NULL, &r), 200);
	CHECK_STR(buf_str(&r.body), "welcome\n");
	CHECK_INT(ask_tls(&p, NULL, "NORMAL:-VERS-ALL:+VERS-TLS1.2", &r), 200);
	CHECK_INT(ask_tls(&p, NULL, "NORMAL:-VERS-ALL:+VERS-TLS1.1", &r), 0);
	stop(&p);
	REQUIRE(serve(&p, TLS_FILES ", min_version: TLS13}\n"));
	CHECK_INT(ask_tls(&p, NULL, "NORMAL:-VERS-ALL:+VERS-TLS1.2", &r), 0);
	CHECK_INT(ask_tls(&p, NULL, NULL, &r), 200);
	stop(&p);
	REQUIRE(serve(&p, TLS_FILES ", max_version: TLS12}\n"));
	CHECK_INT(ask_tls(&p, NULL, "NORMAL:-VERS-ALL:+VERS-TLS1.3", &r), 0);
	CHECK_INT(ask_tls(&p, NULL, NULL, &r), 200);
	response_release(&r);
	place_release(&p);
}

TEST(plain_http_at_a_tls_port_gets_no_answer)
{
	struct response r = { 0 };
	struct place p;

	place_init(&p);
	REQUIRE(serve(&p, TLS_FILES "}\n"));
	peer_ask(p.port, &r, "GET /x", "", (struct str){ 0 });
	CHECK_INT(r.status, 0);
	CHECK_INT(ask_tls(&p, NULL, NULL, &r), 200);
	response_release(&r);
	place_release(&p);
}

TEST(client_certificates_are_what_the_auth_type_asks_for)
{
	static const char *const clients[] = { NULL, "alice", "mallory", "late", "server" };
	static const struct {
		const char *auth;
		bool ca;
		int want[5];
	} rows[] = {
		{ "NoClientCert", false, { 200, 200, 200, 200, 200 } },
		{ "RequestClientCert", false, { 200, 200, 200, 200, 200 } },
		{ "RequireAnyClientCert", false, { 403, 200, 200, 200, 200 } },
		{ "VerifyClientCertIfGiven", true, { 200, 200, 403, 403, 403 } },
		{ "RequireAndVerifyClientCert", true, { 403, 200, 403, 403, 403 } },
	};
	static const char *const versions[] = { "NORMAL:-VERS-ALL:+VERS-TLS1.3",
		"NORMAL:-VERS-ALL:+VERS-TLS1.2" };
	struct response r = { 0 };
	struct place p;
	char text[256];

	place_init(&p);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), TLS_FILES ", client_auth_type: %s%s}\n", rows[i].auth,
			rows[i].ca ? ", client_ca_file: ca.pem" : "");
		REQUIRE(serve(&p, text));
		for (int k = 0; k < 10; k++)
			if (ask_tls(&p, clients[k / 2], versions[k % 2], &r) != rows[i].want[k / 2])
				CHECK_FAIL("%s, %s, %s: %d, want %d", rows[i].auth,
					clients[k / 2] ? clients[k / 2] : "none", versions[k % 2], r.status,
					rows[i].want[k / 2]);
		stop(&p);
	}
	response_release(&r);
	place_release(&p);
}

TEST(a_refused_client_is_told_why)
{
	struct response r = { 0 };
	struct place p;

	place_init(&p);
	REQUIRE(serve(&p,
		TLS_FILES ", client_ca_file: ca.pem, "
				  "client_auth_type: RequireAndVerifyClientCert}\n"));
	ask_tls(&p, NULL, NULL, &r);
	CHECK_STR(buf_str(&r.body), "Forbidden: a client certificate is required\n");
	ask_tls(&p, "mallory", NULL, &r);
	CHECK_STR(buf_str(&r.body),
		"Forbidden: The certificate is NOT trusted. The certificate issuer is "
		"unknown.\n");
	ask_tls(&p, "late", NULL, &r);
	CHECK_STR(buf_str(&r.body),
		"Forbidden: The certificate is NOT trusted. The certificate chain uses "
		"expired certificate.\n");
	ask_tls(&p, "server", NULL, &r);
	CHECK_STR(buf_str(&r.body),
		"Forbidden: The certificate is NOT trusted. The certificate chain does "
		"not match the intended purpose.\n");
	response_release(&r);
	place_release(&p);
}

static void server_name(struct place *p, struct buf *out)
{
	struct peer_tls tls = { 0 };
	struct peer peer;

	buf_clear(out);
	peer_open_tls(&peer, p->port, &tls);
	peer_server_name(&peer, out);
	peer_close(&peer);
}

/* Waits until the new name is served. */
static void wait_for_name(struct place *p, const char *want)
{
	struct buf name = { 0 };

	(void)!WAIT_FOR((server_name(p, &name), str_is(buf_str(&name), want)));
	CHECK_STR(buf_str(&name), want);
	buf_release(&name);
}

TEST(a_renewed_certificate_is_served_without_a_restart)
{
	struct response r = { 0 };
	struct peer_tls tls = { 0 };
	struct peer old;
	struct place p;
	struct buf name = { 0 };

	place_init(&p);
	REQUIRE(serve(&p, TLS_FILES "}\n"));
	wait_for_name(&p, "first");
	peer_open_tls(&old, p.port, &tls);
	authority_sign(&p.ca, "second", CERT_SERVER, at(&p, "server.pem"), at(&p, "server.key"));
	wait_for_name(&p, "second");
	peer_ask_on(&old, &r, "GET /x", "", (struct str){ 0 }); /* the old connection goes on */
	CHECK_INT(r.status, 200);
	peer_close(&old);

	/* A new certificate is not used before its key is there. */
	authority_sign(&p.ca, "third", CERT_SERVER, at(&p, "server.pem"), at(&p, "other.key"));
	usleep(1200000);
	for (int i = 0; i < 3; i++) {
		server_name(&p, &name);
		CHECK_STR(buf_str(&name), "second");
	}
	CHECK_INT(rename(at(&p, "other.key"), at(&p, "server.key")), 0);
	wait_for_name(&p, "third");
	buf_release(&name);
	response_release(&r);
	place_release(&p);
}

TEST(a_changed_authority_of_clients_counts_at_once_for_old_connections_too)
{
	struct response r = { 0 };
	struct peer_tls tls = { 0 };
	struct peer alice;
	struct place p;
	char cert[160], key[160];

	place_init(&p);
	REQUIRE(serve(&p,
		TLS_FILES ", client_ca_file: ca.pem, "
				  "client_auth_type: RequireAndVerifyClientCert}\n"));
	snprintf(cert, sizeof(cert), "%s/alice.pem", p.dir);
	snprintf(key, sizeof(key), "%s/alice.key", p.dir);
	tls.cert_file = cert;
	tls.key_file = key;
	peer_open_tls(&alice, p.port, &tls);
	peer_ask_on(&alice, &r, "GET /x", "", (struct str){ 0 });
	CHECK_INT(r.status, 200);
	authority_write(&p.other, at(&p, "ca.pem"));
	(void)!WAIT_FOR((peer_ask_on(&alice, &r, "GET /x", "", (struct str){ 0 }), r.status != 200));
	CHECK_INT(r.status, 403);
	peer_close(&alice);
	CHECK_INT(ask_tls(&p, "mallory", NULL, &r), 200);
	response_release(&r);
	place_release(&p);
}

/* ---- users ---- */

static int ask_as(struct place *p, const char *credentials, struct response *r)
{
	gnutls_datum_t plain = { (unsigned char *)(uintptr_t)credentials,
		credentials ? (unsigned)strlen(credentials) : 0 };
	gnutls_datum_t coded = { NULL, 0 };
	char header[512] = "";

	if (credentials) {
		gnutls_base64_encode2(&plain, &coded);
		snprintf(
			header, sizeof(header), "Authorization: Basic %.*s\r\n", (int)coded.size, coded.data);
		gnutls_free(coded.data);
	}
	peer_ask(p->port, r, "GET /x", header, (struct str){ 0 });
	return r->status;
}

TEST(users_sign_in_with_what_bcrypt_says)
{
	struct response r = { 0 };
	struct place p;
	char text[512];

	place_init(&p);
	snprintf(text, sizeof(text), "basic_auth_users:\n  alice: %s\n", hash_of("se:cret", SALT));
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "  bob: '%s'\n",
		hash_of("pass", "$2y$05$abcdefghijklmnopqrstuu"));
	REQUIRE(serve(&p, text));
	CHECK_INT(ask_as(&p, NULL, &r), 401);
	CHECK_STR(response_header(&r, "WWW-Authenticate"), "Basic");
	CHECK_STR(buf_str(&r.body), "Unauthorized\n");
	CHECK_INT(ask_as(&p, "alice:se:cret", &r), 200);
	CHECK_INT(ask_as(&p, "bob:pass", &r), 200);
	CHECK_INT(ask_as(&p, "bob:se:cret", &r), 401);
	CHECK_INT(ask_as(&p, "alice:", &r), 401);
	CHECK_INT(ask_as(&p, "carol:pass", &r), 401);
	CHECK_INT(ask_as(&p, "carol:se:cret", &r), 401);
	CHECK_INT(ask_as(&p, ":", &r), 401);
	CHECK_INT(ask_as(&p, "alice", &r), 401);
	peer_ask(p.port, &r, "GET /x", "Authorization: Basic !!!\r\n", (struct str){ 0 });
	CHECK_INT(r.status, 401);
	peer_ask(p.port, &r, "GET /x", "Authorization: Bearer x\r\n", (struct str){ 0 });
	CHECK_INT(r.status, 401);

	/* A changed file counts within a second or so. */
	snprintf(text, sizeof(text), "basic_auth_users: {alice: '%s'}\n", hash_of("new", SALT));
	write_text(&p, "web.yml", text);
	CHECK(WAIT_FOR(ask_as(&p, "alice:new", &r) == 200));
	CHECK_INT(ask_as(&p, "alice:se:cret", &r), 401);
	CHECK_INT(ask_as(&p, "bob:pass", &r), 401);
	write_text(&p, "web.yml", "basic_auth_users: {alice: plain}\n"); /* wrong: nothing changes */
	usleep(1200000);
	CHECK_INT(ask_as(&p, "alice:new", &r), 200);
	response_release(&r);
	place_release(&p);
}

TEST(headers_of_the_file_are_on_every_answer)
{
	struct response r = { 0 };
	struct place p;
	char text[512];

	place_init(&p);
	snprintf(text, sizeof(text),
		"http_server_config:\n  http2: false\n  headers:\n"
		"    X-Frame-Options: sameorigin\n    Strict-Transport-Security: max-age=1\n"
		"basic_auth_users: {alice: '%s'}\n",
		hash_of("secret", SALT));
	REQUIRE(serve(&p, text));
	CHECK_INT(ask_as(&p, "alice:secret", &r), 200);
	CHECK_STR(response_header(&r, "X-Frame-Options"), "sameorigin");
	CHECK_STR(response_header(&r, "Strict-Transport-Security"), "max-age=1");
	CHECK_INT(ask_as(&p, "alice:guess", &r), 401);
	CHECK_STR(response_header(&r, "X-Frame-Options"), "sameorigin");
	response_release(&r);
	place_release(&p);
}

/* ---- the check ---- */

#define USERS "users:\n"
#define PROXY "trusted_proxy: {user_header: X-User, "

/* clang-format off */
static const struct {
	const char *text;
	enum err_code rc;
	const char *msg; /* behind the path; $D: the directory */
} wrong_files[] = {
	{ "", ERR_OK, "" },
	{ "tls_server_config: {cert_file: server.pem, key_file: server.key}\n", ERR_OK, "" },
	{ "tls_server_config: {cert_file: server.pem, key_file: server.key,\n"
	  "  prefer_server_cipher_suites: true, cipher_suites: []}\n",
		ERR_OK, "" },
	{ "tls_server: {}\n", ERR_INVALID, ":1:1: field tls_server not found in type web.Config" },
	{ "tls_server_config: {cert_file: server.pem}\n", ERR_INVALID, ":1:20: missing key_file" },
	{ "tls_server_config: {key_file: server.pem}\n", ERR_INVALID, ":1:20: missing cert_file" },
	{ TLS_FILES ",\n  min_version: SSL3}\n", ERR_INVALID,
		":2:16: unknown TLS version: \"SSL3\"; TLS10 to TLS13 are known" },
	{ TLS_FILES ",\n  min_version: TLS13, max_version: TLS12}\n", ERR_INVALID,
		":1:20: min_version is above max_version" },
	{ TLS_FILES ",\n  cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA]}\n", ERR_UNSUPPORTED,
		":2:3: cipher_suites is not supported here" },
	{ TLS_FILES ",\n  client_allowed_sans: [a]}\n", ERR_UNSUPPORTED,
		":2:3: client_allowed_sans is not supported here" },
	{ TLS_FILES ",\n  client_auth_type: Maybe}\n", ERR_INVALID,
		":2:21: unknown client_auth_type \"Maybe\"" },
	{ TLS_FILES ",\n  client_ca_file: ca.pem}\n", ERR_INVALID,
		":2:19: a client_ca_file without a client_auth_type" },
	{ TLS_FILES ",\n  client_auth_type: RequireAndVerifyClientCert}\n", ERR_INVALID,
		":2:21: RequireAndVerifyClientCert needs a client_ca_file" },
	{ "tls_server_config: {cert_file: none.pem, key_file: server.key}\n", ERR_NOT_FOUND,
		": tls_server_config: open $D/none.pem: No such file or directory" },
	{ "tls_server_config: {cert_file: server.pem, key_file: alice.key}\n", ERR_INVALID,
		": tls_server_config: private key $D/alice.key does not belong to "
		"certificate "
		"$D/server.pem" },
	{ "tls_server_config: {cert_file: web.yml, key_file: alice.key}\n", ERR_INVALID,
		": tls_server_config: certificate $D/web.yml: No certificate was found." },
	{ "tls_server_config: {cert_file: alice.pem, key_file: web.yml}\n", ERR_INVALID,
		": tls_server_config: private key $D/web.yml: no key in it" },
	{ TLS_FILES ", client_ca_file: web.yml, client_auth_type: VerifyClientCertIfGiven}\n",
		ERR_INVALID,
		": tls_server_config: client CA $D/web.yml: No certificate was found." },
	{ "http_server_config:\n  headers: {X-Powered-By: us}\n", ERR_INVALID,
		":2:13: HTTP header \"X-Powered-By\" can not be configured" },
	{ "http_server_config:\n  headers: {X-Frame-Options: allow}\n", ERR_INVALID,
		":2:30: invalid value for X-Frame-Options: \"allow\"; want \"deny\" or "
		"\"sameorigin\"" },
	{ "http_server_config:\n  headers: {X-XSS-Protection: \"a\\nb: c\"}\n", ERR_INVALID,
		":2:31: a control character in header \"X-XSS-Protection\"" },
	{ "basic_auth_users:\n  a: secret\n", ERR_INVALID,
		":2:6: user \"a\": not a bcrypt hash ($2a$, $2b$ or $2y$)" },
	{ "basic_auth_users:\n  a:\n", ERR_INVALID,
		":2:5: user \"a\": not a bcrypt hash ($2a$, $2b$ or $2y$)" },
	{ "basic_auth_users:\n  a: $2b$10$short\n", ERR_INVALID,
		":2:6: user \"a\": not a whole bcrypt hash: one has 60 characters" },
	{ "basic_auth_users:\n"
	  "  a: $2b$31$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234\n",
		ERR_INVALID, ":2:6: user \"a\": bcrypt of cost 31: 4 to 16 are taken" },
	{ "basic_auth_users:\n"
	  "  a: $2b$10$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ0123-\n",
		ERR_INVALID,
		":2:6: user \"a\": not a bcrypt hash: a character that bcrypt does not use" },
	{ "basic_auth_users:\n  \"a:b\": x\n", ERR_INVALID,
		":2:3: a user's name must not be empty or have a colon" },
	/* users */
	{ USERS "  - {name: a, token_file: token, roles: [read]}\n", ERR_OK, "" },
	{ USERS "  - {name: a, token_file: token, roles: [read], matchers: '{a=\"b\", c!~\"d|e\"}'}\n",
		ERR_OK, "" },
	{ USERS "  - {name: a, token_file: token, roles: [read], matchers: '{a!=\"b\"}'}\n", ERR_OK,
		"" },
	{ "users: []\n", ERR_INVALID, ":1:8: users is empty" },
	{ USERS "  - {token_file: token, roles: [read]}\n", ERR_INVALID, ":2:5: missing name" },
	{ USERS "  - {name: '', token_file: token, roles: [read]}\n", ERR_INVALID,
		":2:12: missing name" },
	{ USERS "  - {name: a, token_file: token}\n", ERR_INVALID,
		":2:5: missing roles: read, ingest or admin" },
	{ USERS "  - {name: a, token_file: token, roles: []}\n", ERR_INVALID,
		":2:5: missing roles: read, ingest or admin" },
	{ USERS "  - {name: a, token_file: token, roles: [read, write]}\n", ERR_INVALID,
		":2:48: unknown role \"write\"; read, ingest and admin are known" },
	{ USERS "  - {name: a, token_file: token, rules: [read]}\n", ERR_INVALID,
		":2:34: field rules not found in type web.User; did you mean \"roles\"?" },
	{ USERS "  - {name: a, roles: [read]}\n", ERR_INVALID,
		":2:12: user \"a\" has neither a token_file nor a password in basic_auth_users" },
	{ USERS "  - {name: a, token_file: token, roles: [read]}\n"
	  "  - {name: a, token_file: token, roles: [read]}\n",
		ERR_INVALID, ":3:12: user \"a\" is repeated" },
	{ USERS "  - {name: a, token_file: token, roles: [read]}\n"
	  "basic_auth_users: {b: $2b$10$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234}\n",
		ERR_INVALID,
		":3:20: user \"b\" has no roles: with users, each of basic_auth_users needs an entry" },
	{ USERS "  - {name: a, token_file: token, roles: [read], matchers: '{a=}'}\n", ERR_INVALID,
		":2:59: matchers: 1:4: unexpected \"}\", expected string" },
	{ USERS "  - {name: a, token_file: token, roles: [read], matchers: 'cpu{a=\"b\"}'}\n",
		ERR_INVALID,
		":2:59: matchers: use labels in braces, without the name \"cpu\"" },
	{ USERS "  - {name: a, token_file: token, roles: [read], matchers: '{a=\"b\"}[5m]'}\n",
		ERR_INVALID, ":2:59: matchers: use labels in braces, such as {namespace=\"shop\"}" },
	{ USERS "  - {name: a, token_file: token, roles: [read], matchers: '{}'}\n", ERR_INVALID,
		":2:59: matchers: {} matches everything: remove the field to allow everything" },
	{ USERS "  - {name: a, token_file: token, roles: [read], matchers: '{__type__=\"x\"}'}\n",
		ERR_INVALID, ":2:59: matchers: __type__ is not a label of a series" },
	{ USERS "  - {name: a, token_file: token, roles: [admin], matchers: '{a=\"b\"}'}\n",
		ERR_INVALID,
		":2:60: matchers need the role read without admin, which shows everything" },
	{ USERS "  - {name: a, token_file: token, roles: [ingest], matchers: '{a=\"b\"}'}\n",
		ERR_INVALID,
		":2:61: matchers without the role read" },
	{ USERS "  - {name: a, token_file: none, roles: [read]}\n", ERR_NOT_FOUND,
		":2:27: token_file: open $D/none: No such file or directory" },
	{ USERS "  - {name: a, token_file: short, roles: [read]}\n", ERR_INVALID,
		":2:27: token_file: $D/short: a token of 5 bytes: 16 are the fewest" },
	{ USERS "  - {name: a, token_file: web.yml, roles: [read]}\n", ERR_INVALID,
		":2:27: token_file: $D/web.yml: the file must hold one token of letters, digits and - . "
		"_ ~ + / =" },
	{ USERS "  - {name: a, token_file: token, roles: [read]}\n"
	  "  - {name: b, token_file: ./token, roles: [admin]}\n",
		ERR_INVALID, ":3:27: token_file: $D/./token: same token as user \"a\"" },
	/* trusted_proxy */
	{ PROXY "addresses: [127.0.0.1, '::1', 10.0.0.0/8, 'fd00::/8']}\n", ERR_OK, "" },
	{ "trusted_proxy: {user_header: X-User}\n", ERR_INVALID,
		":1:16: missing addresses of the proxies" },
	{ "trusted_proxy: {addresses: [127.0.0.1]}\n", ERR_INVALID,
		":1:16: missing user_header, such as X-Forwarded-User" },
	{ PROXY "addresses: [proxy.example]}\n", ERR_INVALID,
		":1:50: \"proxy.example\" is not an address or network, such as 10.0.0.5 or 10.0.0.0/8" },
	{ PROXY "addresses: [10.0.0.0/33]}\n", ERR_INVALID,
		":1:50: \"10.0.0.0/33\" is not an address or network, such as 10.0.0.5 or 10.0.0.0/8" },
	{ PROXY "addresses: [127.0.0.1, 0.0.0.0/0]}\n", ERR_INVALID,
		":1:61: \"0.0.0.0/0\" trusts everybody: list only the addresses of the proxies" },
	{ PROXY "addresses: ['::/0']}\n", ERR_INVALID,
		":1:50: \"::/0\" trusts everybody: list only the addresses of the proxies" },
	{ "trusted_proxy: {user_header: Authorization, addresses: [127.0.0.1]}\n", ERR_INVALID,
		":1:30: header \"Authorization\": must begin with X- or Remote-, such as "
		"X-Forwarded-User" },
	{ PROXY "addresses: [127.0.0.1], groups_header: 'X Groups'}\n", ERR_INVALID,
		":1:77: header \"X Groups\": must begin with X- or Remote-, such as X-Forwarded-User" },
	{ PROXY "addresses: [127.0.0.1],\n  groups: [{name: a, roles: [read]}]}\n", ERR_INVALID,
		":2:11: groups without a groups_header" },
	{ PROXY "addresses: [127.0.0.1],\n  users: [{name: a, roles: [root]}]}\n", ERR_INVALID,
		":2:29: unknown role \"root\"; read, ingest and admin are known" },
	{ PROXY "addresses: [127.0.0.1],\n  users: [{name: a, token_file: token, roles: [read]}]}\n",
		ERR_INVALID, ":2:21: field token_file not found in type web.ProxyUser" },
	{ PROXY "addresses: [127.0.0.1],\n  others: {matchers: '{a=\"b\"}'}}\n", ERR_INVALID,
		":2:11: missing roles: read, ingest or admin" },
};
/* clang-format on */

TEST(what_is_wrong_in_a_file_is_said_with_its_place)
{
	struct place p;
	struct err err;

	place_init(&p);
	write_text(&p, "token", "0123456789abcdef\n");
	write_text(&p, "short", "short");
	for (size_t i = 0; i < sizeof(wrong_files) / sizeof(wrong_files[0]); i++) {
		struct buf want = { 0 };
		enum err_code rc;

		write_text(&p, "web.yml", wrong_files[i].text);
		err.msg[0] = '\0';
		rc = web_config_check(at(&p, "web.yml"), &err);
		if (wrong_files[i].rc)
			buf_add_cstr(&want, at(&p, "web.yml"));
		for (const char *c = wrong_files[i].msg; *c; c++) {
			if (c[0] == '$' && c[1] == 'D') {
				buf_add_cstr(&want, p.dir);
				c++;
			} else {
				buf_add_char(&want, *c);
			}
		}
		if (rc != wrong_files[i].rc)
			CHECK_FAIL("%s gives %s, want %s", wrong_files[i].text, err_code_name(rc),
				err_code_name(wrong_files[i].rc));
		CHECK_STR(str_of(err.msg), want.ptr ? (buf_add_char(&want, '\0'), want.ptr) : "");
		buf_release(&want);
	}
	place_release(&p);
}
