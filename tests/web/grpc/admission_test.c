/* Who may call: users, TLS, client certificates; and the window while a user is verified. */
#include <unistd.h>

#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/grpc/fixture.h"
#include "tests/web/http/bcrypt.h"
#include "tests/web/http/certs.h"
#include "web/http/config.h"

#define EMPTY ((struct str){ "\0\0\0\0", 5 })
#define ALICE "Basic YWxpY2U6c2VjcmV0" /* alice:secret */

struct place {
	char dir[64];
	struct authority ca, other;
	struct web_config *config;
};

static const char *at(const struct place *p, const char *name)
{
	static char paths[8][160];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", p->dir, name);
	return path;
}

static enum http_admission admit(void *ctx, struct http_in *in, struct http_out *out, bool may_wait)
{
	return web_config_admit(((struct place *)ctx)->config, in, out, may_wait, false);
}

static void place_open(struct place *p, const char *text)
{
	struct grpc_server_options o = { .admit = admit, .ctx = p };
	struct err err;
	FILE *f;

	*p = (struct place){ .dir = "/tmp/epi-grpc-XXXXXX" };
	if (!mkdtemp(p->dir))
		CHECK_FAIL("no directory");
	authority_open(&p->ca, "ours");
	authority_open(&p->other, "theirs");
	authority_write(&p->ca, at(p, "ca.pem"));
	authority_sign(&p->ca, "first", CERT_SERVER, at(p, "server.pem"), at(p, "server.key"));
	authority_sign(&p->ca, "alice", CERT_CLIENT, at(p, "alice.pem"), at(p, "alice.key"));
	authority_sign(&p->other, "mallory", CERT_CLIENT, at(p, "mallory.pem"), at(p, "mallory.key"));
	f = fopen(at(p, "web.yml"), "w");
	fputs(text, f);
	fclose(f);
	CHECK_OK(web_config_open(at(p, "web.yml"), 0, &p->config, &err), &err);
	if (web_config_tls(p->config)) {
		o.tls_certificate_fn = web_config_certificate_fn();
		o.tls_priorities = web_config_priorities(p->config);
	}
	fixture_open(o);
}

static void place_close(struct place *p)
{
	static const char *const names[] = { "web.yml", "ca.pem", "server.pem", "server.key",
		"alice.pem", "alice.key", "mallory.pem", "mallory.key" };

	fixture_close();
	web_config_close(p->config);
	authority_close(&p->ca);
	authority_close(&p->other);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(at(p, names[i]));
	rmdir(p->dir);
}

#define TLS "tls_server_config: {cert_file: server.pem, key_file: server.key}\n"
#define TLS_CLIENTS \
	"tls_server_config: {cert_file: server.pem, key_file: server.key, client_ca_file: ca.pem,\n" \
	"  client_auth_type: RequireAndVerifyClientCert}\n"

static void check_call(
	const struct h2_tls *tls, const char *const *fields, int status, const char *message)
{
	struct h2_client *c = malloc(sizeof(*c));
	struct h2_reply *r;

	h2_open(c, fixture.port, tls);
	r = h2_call(c, ECHO, fields, EMPTY, true);
	h2_wait(c, r);
	CHECK_INT(r->status, status);
	CHECK_STR(str_of(r->message), message);
	h2_close(c);
	free(c);
}

TEST(users_are_those_of_http)
{
	static const char *const good[] = { "authorization", ALICE, NULL };
	static const char *const wrong[] = { "authorization", "Basic YWxpY2U6d3Jvbmc=", NULL };
	struct place p;
	char text[200];

	snprintf(text, sizeof(text), "basic_auth_users: {alice: '%s'}\n", hash_of("secret", SALT));
	place_open(&p, text);
	for (int again = 0; again < 2; again++) { /* verified, then remembered */
		check_call(NULL, good, GRPC_OK, "");
		check_call(NULL, wrong, GRPC_UNAUTHENTICATED, "Unauthorized");
		check_call(NULL, NULL, GRPC_UNAUTHENTICATED, "Unauthorized");
	}
	place_close(&p);
}

TEST(tls_wants_alpn_h2)
{
	const struct h2_tls h2 = { .alpn = "h2" }, http1 = { .alpn = "http/1.1" }, none = { 0 };
	struct place p;

	place_open(&p, TLS);
	check_call(&h2, NULL, GRPC_OK, "");
	check_call(&http1, NULL, -1, "");
	check_call(&none, NULL, -1, "");
	check_call(NULL, NULL, -1, ""); /* plain */
	check_call(&h2, NULL, GRPC_OK, "");
	place_close(&p);
}

TEST(a_long_message_comes_over_tls)
{
	const struct h2_tls h2 = { .alpn = "h2" };
	struct h2_client *c = malloc(sizeof(*c));
	struct buf body = { 0 }, message = { 0 };
	struct h2_reply *r;
	struct place p;

	place_open(&p, TLS);
	for (uint32_t i = 0; i < (3u << 20) / 4; i++)
		buf_add_u32be(&message, i * 2654435761u);
	h2_message(&body, 0, buf_str(&message));
	h2_open(c, fixture.port, &h2);
	for (int i = 0; i < 3; i++) {
		r = h2_call(c, ECHO, NULL, buf_str(&body), true);
		h2_wait(c, r);
		CHECK_INT(r->status, GRPC_OK);
		CHECK(str_eq(buf_str(&r->body), buf_str(&body)));
	}
	h2_close(c);
	free(c);
	place_close(&p);
	buf_release(&body);
	buf_release(&message);
}

TEST(client_certificates_are_those_of_http)
{
	struct place p;
	struct h2_tls alice, mallory, nobody = { .alpn = "h2" };

	place_open(&p, TLS_CLIENTS);
	alice = (struct h2_tls){ "h2", at(&p, "alice.pem"), at(&p, "alice.key") };
	mallory = (struct h2_tls){ "h2", at(&p, "mallory.pem"), at(&p, "mallory.key") };
	check_call(&alice, NULL, GRPC_OK, "");
	check_call(
		&nobody, NULL, GRPC_PERMISSION_DENIED, "Forbidden: a client certificate is required");
	check_call(&mallory, NULL, GRPC_PERMISSION_DENIED,
		"Forbidden: The certificate is NOT trusted. The certificate issuer is unknown.");
	place_close(&p);
}

/* ---- the window ---- */

static struct {
	atomic_bool asked, known;
} gate;

static enum http_admission admit_late(
	void *ctx, struct http_in *in, struct http_out *out, bool may_wait)
{
	(void)ctx;
	if (!may_wait)
		return HTTP_ADMIT_LATER;
	atomic_store(&gate.asked, true);
	CHECK(WAIT_FOR(atomic_load(&gate.known)));
	if (in->authorization.len)
		return HTTP_ADMITTED;
	http_text(out, 401, "Unauthorized");
	return HTTP_ANSWERED;
}

TEST(until_the_user_is_known_the_window_stays_shut)
{
	static const char *const good[] = { "authorization", ALICE, NULL };
	struct h2_client *c = malloc(sizeof(*c));
	struct buf body = { 0 }, message = { 0 };
	struct h2_reply *r[2];

	fixture_open((struct grpc_server_options){ .admit = admit_late });
	buf_reserve(&message, 1u << 20);
	memset(message.ptr, 'x', 1u << 20);
	message.len = 1u << 20;
	h2_message(&body, 0, buf_str(&message));
	h2_open(c, fixture.port, NULL);
	r[0] = h2_call(c, ECHO, good, buf_str(&body), true);
	r[1] = h2_call(c, ECHO, NULL, buf_str(&body), true);
	/* A ping that is answered comes after all that the windows let through. */
	for (unsigned i = 1; i <= 20; i++) {
		nghttp2_submit_ping(c->h2, NGHTTP2_FLAG_NONE, NULL);
		while (c->pings < i && h2_turn(c))
			;
	}
	CHECK(WAIT_FOR(atomic_load(&gate.asked)));
	CHECK_INT(r[0]->sent, 256 << 10);
	CHECK_INT(r[1]->sent, 256 << 10);
	atomic_store(&gate.known, true);
	h2_wait(c, r[0]);
	h2_wait(c, r[1]);
	CHECK_INT(r[0]->status, GRPC_OK);
	CHECK(str_eq(buf_str(&r[0]->body), buf_str(&body)));
	CHECK_INT(r[1]->status, GRPC_UNAUTHENTICATED);
	h2_close(c);
	free(c);
	fixture_close();
	buf_release(&body);
	buf_release(&message);
}
