/* TLS against real servers: OpenSSL on the other side, with a CA and certificates made here. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/net/http_client.h"
#include "tests/base/net/http_server.h"
#include "tests/base/net/identity.h"
#include "tests/check.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static struct identity ca, stranger, leaf, person;
static struct http_server server;
static struct client client;
static struct result res;
static char url[128], dir[64], want[256];
static struct str ca_pem, stranger_pem, person_pem, person_key_pem;
static struct arena arena;

static bool make_all(void)
{
	arena_init(&arena, 0);
	snprintf(dir, sizeof(dir), "/tmp/epimetheus-tls-XXXXXX");
	if (!mkdtemp(dir) || !identity_make(&ca, "test CA", NULL, NULL) ||
		!identity_make(&stranger, "another CA", NULL, NULL) ||
		!identity_make(&leaf, "server", &ca, "DNS:localhost,DNS:*.example.test,IP:127.0.0.1") ||
		!identity_make(&person, "client", &ca, "DNS:client"))
		return false;
	ca_pem = identity_pem(&arena, &ca, false);
	stranger_pem = identity_pem(&arena, &stranger, false);
	person_pem = identity_pem(&arena, &person, false);
	person_key_pem = identity_pem(&arena, &person, true);
	return true;
}

static bool start(const struct identity *id, bool client_cert, script_fn script)
{
	if (!make_all() ||
		!http_server_start(&server, script, (void *)(uintptr_t)OK,
			identity_server(id, client_cert ? &ca : NULL)) ||
		!client_open(&client, 0, NULL))
		return false;
	snprintf(url, sizeof(url), "https://127.0.0.1:%u/", server.port);
	return true;
}

static void stop(void)
{
	struct err err;

	client_close(&client);
	http_server_stop(&server);
	SSL_CTX_free(server.tls);
	identity_release(&ca);
	identity_release(&stranger);
	identity_release(&leaf);
	identity_release(&person);
	result_release(&res);
	res = (struct result){ 0 };
	arena_release(&arena);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
}

static void check_fails(const struct http_config *c, const char *message)
{
	client_get(&client, url, c, &res);
	CHECK_INT(res.rc, ERR_UNAVAILABLE);
	snprintf(want, sizeof(want), "tls 127.0.0.1:%u: %s", server.port, message);
	CHECK_STR(str_of(res.msg), want);
}

static void check_works(const struct http_config *c)
{
	client_get(&client, url, c, &res);
	CHECK_STR(str_of(res.msg), "");
	CHECK_INT(res.rc, ERR_OK);
	CHECK_STR(buf_str(&res.body), "ok");
}

TEST(who_is_trusted)
{
	struct http_config c = { 0 };

	REQUIRE(start(&leaf, false, script_answers));
	check_fails(NULL, "certificate verify failed: unable to get local issuer certificate");
	c.tls_ca = stranger_pem;
	check_fails(&c, "certificate verify failed: unable to get local issuer certificate");
	c.tls_ca = ca_pem;
	check_works(&c);
	check_works(&c);
	CHECK_INT(http_client_stats(client.http).reuses, 1);
	c = (struct http_config){ .tls_insecure_skip_verify = true };
	check_works(&c); /* other settings: the open connection is not used */
	CHECK_INT(http_client_stats(client.http).reuses, 1);
	stop();
}

TEST(names)
{
	struct http_config c = { 0 };

	REQUIRE(start(&leaf, false, script_answers));
	c.tls_ca = ca_pem;
	c.tls_server_name = STR("a.example.test");
	check_works(&c);
	c.tls_server_name = STR("wrong.test");
	check_fails(&c, "certificate verify failed: hostname mismatch (it is not for wrong.test)");
	c.tls_server_name = STR("b.a.example.test");
	check_fails(
		&c, "certificate verify failed: hostname mismatch (it is not for b.a.example.test)");
	c.tls_server_name = STR("127.0.0.2");
	check_fails(&c, "certificate verify failed: IP address mismatch (it is not for 127.0.0.2)");
	c.tls_server_name = STR("");
	snprintf(url, sizeof(url), "https://localhost:%u/", server.port);
	check_works(&c);
	snprintf(url, sizeof(url), "https://other.localhost:%u/", server.port);
	check_fails(&c, "certificate verify failed: hostname mismatch (it is not for other.localhost)");
	stop();
}

TEST(self_signed)
{
	struct identity self;
	struct http_config c = { 0 };

	REQUIRE(make_all());
	REQUIRE(identity_make(&self, "self", NULL, "IP:127.0.0.1"));
	REQUIRE(http_server_start(
		&server, script_answers, (void *)(uintptr_t)OK, identity_server(&self, NULL)));
	REQUIRE(client_open(&client, 0, NULL));
	snprintf(url, sizeof(url), "https://127.0.0.1:%u/", server.port);
	check_fails(NULL, "certificate verify failed: self-signed certificate");
	c.tls_ca = identity_pem(&arena, &self, false);
	check_works(&c);
	stop();
	identity_release(&self);
}

TEST(client_certificates)
{
	struct http_config c = { 0 };

	REQUIRE(start(&leaf, true, script_answers));
	c.tls_ca = ca_pem;
	check_fails(&c, "tlsv13 alert certificate required");
	c.tls_cert = person_pem;
	c.tls_key = person_key_pem;
	check_works(&c);
	c.tls_key = identity_pem(&arena, &leaf, true);
	client_get(&client, url, &c, &res);
	CHECK_INT(res.rc, ERR_INVALID);
	CHECK(str_has_prefix(str_of(res.msg), STR("tls ")));
	stop();
}

static struct str file(const char *name, struct str content)
{
	char *path = arena_printf(&arena, "%s/%s", dir, name);
	struct err err;

	CHECK_OK(fs_write_file(&fs_posix, path, content, &err), &err);
	return str_of(path);
}

TEST(files_are_read_again_when_they_change)
{
	struct http_config c = { 0 };

	REQUIRE(start(&leaf, true, script_answers));
	c.tls_ca_file = file("ca.pem", stranger_pem);
	c.tls_cert_file = file("cert.pem", person_pem);
	c.tls_key_file = file("key.pem", person_key_pem);
	check_fails(&c, "certificate verify failed: self-signed certificate in certificate chain");
	file("ca.pem", ca_pem);
	check_works(&c);
	check_works(&c);
	CHECK_INT(http_client_stats(client.http).reuses, 1);
	file("ca.pem", stranger_pem); /* the kept connection was verified by the old CA */
	check_fails(&c, "certificate verify failed: self-signed certificate in certificate chain");
	file("ca.pem", STR("nothing"));
	client_get(&client, url, &c, &res);
	CHECK_INT(res.rc, ERR_INVALID);
	snprintf(want, sizeof(want), "tls ca %s/ca.pem: no certificate found", dir);
	CHECK_STR(str_of(res.msg), want);
	c.tls_ca_file = STR("/nonexistent/ca.pem");
	client_get(&client, url, &c, &res);
	CHECK_INT(res.rc, ERR_NOT_FOUND);
	CHECK_STR(str_of(res.msg),
		"tls ca /nonexistent/ca.pem: open /nonexistent/ca.pem: No such file or directory");
	stop();
}

TEST(versions)
{
	struct http_config c = { 0 };

	REQUIRE(start(&leaf, false, script_answers));
	c.tls_ca = ca_pem;
	SSL_CTX_set_max_proto_version(server.tls, TLS1_2_VERSION);
	c.tls_min_version = STR("TLS12");
	check_works(&c);
	c.tls_min_version = STR("TLS13");
	check_fails(&c, "tlsv1 alert protocol version");
	c.tls_min_version = STR("");
	c.tls_max_version = STR("TLS11"); /* SHA-1, which the default security level refuses */
	SSL_CTX_set_min_proto_version(server.tls, TLS1_VERSION);
	SSL_CTX_set_security_level(server.tls, 0);
	check_works(&c);
	c.tls_max_version = STR("SSL3");
	client_get(&client, url, &c, &res);
	CHECK_INT(res.rc, ERR_INVALID);
	CHECK_STR(str_of(res.msg), "unknown TLS version: SSL3");
	stop();
}

static void script_truncates(struct peer *p, void *ctx)
{
	peer_read_request(p);
	peer_print(p, "HTTP/1.1 200 OK\r\n\r\nhalf of it");
	shutdown(p->fd, SHUT_RDWR); /* no close_notify */
}

static void script_until_close(struct peer *p, void *ctx)
{
	peer_read_request(p);
	peer_print(p, "HTTP/1.1 200 OK\r\n\r\nok");
}

static void script_large(struct peer *p, void *ctx)
{
	static char block[900000];

	memset(block, 'x', sizeof(block));
	peer_read_request(p);
	peer_print(p, "HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n");
	peer_write(p, (struct str){ block, sizeof(block) });
}

TEST(an_end_must_be_said)
{
	struct http_config c = { 0 };

	REQUIRE(start(&leaf, false, script_truncates));
	c.tls_ca = ca_pem;
	check_fails(&c, "connection closed");
	stop();
	REQUIRE(start(&leaf, false, script_until_close));
	c.tls_ca = ca_pem;
	check_works(&c);
	stop();
	REQUIRE(start(&leaf, false, script_large)); /* more than one event's reads */
	c.tls_ca = ca_pem;
	client_get(&client, url, &c, &res);
	CHECK_INT(res.rc, ERR_OK);
	CHECK_INT(res.body.len, 900000);
	stop();
}

TEST(peers_that_speak_no_tls)
{
	struct http_request_options o = { .timeout_ns = NS_PER_MIN };

	REQUIRE(make_all());
	REQUIRE(http_server_start(&server, script_answers_once, (void *)(uintptr_t)OK, NULL));
	REQUIRE(client_open(&client, 0, NULL));
	snprintf(url, sizeof(url), "https://127.0.0.1:%u/", server.port);
	o.url = str_of(url);
	/* a hello is no request, so the script waits until the deadline */
	o.timeout_ns = 200 * NS_PER_MS;
	client_run(&client, o, &res);
	CHECK_INT(res.rc, ERR_TIMEOUT);
	CHECK_STR(str_of(res.msg), "context deadline exceeded");
	stop();
	REQUIRE(start(&leaf, false, script_answers));
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", server.port);
	client_get(&client, url, NULL, &res);
	CHECK(res.rc != ERR_OK);
	stop();
}

static struct label secret[] = { { { "X-Secret", 8 }, { "s", 1 } } };

static void script_to_plain(struct peer *p, void *ctx)
{
	char answer[128];

	snprintf(answer, sizeof(answer),
		"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%u/\r\n"
		"Content-Length: 0\r\n\r\n",
		*(unsigned *)ctx);
	if (peer_read_request(p))
		peer_print(p, answer);
}

TEST(nothing_secret_goes_from_https_to_http)
{
	struct http_config c = { .follow_redirects = true,
		.has_authorization = true,
		.credentials = STR("token"), .headers = { secret, 1 } };
	static struct http_server plain;

	REQUIRE(make_all());
	REQUIRE(http_server_start(&plain, script_answers, (void *)(uintptr_t)OK, NULL));
	REQUIRE(http_server_start(&server, script_to_plain, &plain.port, identity_server(&leaf, NULL)));
	REQUIRE(client_open(&client, 0, NULL));
	snprintf(url, sizeof(url), "https://127.0.0.1:%u/", server.port);
	c.tls_ca = ca_pem;
	check_works(&c);
	mutex_lock(&server.lock);
	CHECK(str_find(buf_str(&server.last), STR("Authorization: Bearer token\r\n")) > 0);
	mutex_unlock(&server.lock);
	snprintf(want, sizeof(want),
		"GET / HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: test/1\r\n\r\n", plain.port);
	mutex_lock(&plain.lock);
	CHECK_STR(buf_str(&plain.last), want);
	mutex_unlock(&plain.lock);
	stop();
	http_server_stop(&plain);
}
