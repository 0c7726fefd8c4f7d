/* HTTP/2: a server of nghttp2 on the other side, then servers that send anything. */
#include "base/clock.h"
#include "tests/base/net/h2_server.h"
#include "tests/base/net/http_pair.h"
#include "tests/base/net/identity.h"
#include "tests/check.h"

#define BODY_MAX 65536u

static struct identity ca, leaf;
static struct arena arena;
static struct http_config config;

static bool start(script_fn script, const void *ctx)
{
	SSL_CTX *tls;

	arena_init(&arena, 0);
	if (!identity_make(&ca, "test CA", NULL, NULL) ||
		!identity_make(&leaf, "server", &ca, "IP:127.0.0.1") ||
		!(tls = identity_server(&leaf, NULL)))
		return false;
	h2_offer(tls);
	config = (struct http_config){
		.enable_http2 = true, .follow_redirects = true, .tls_ca = identity_pem(&arena, &ca, false)
	};
	return pair_start(script, ctx, tls, "");
}

static void stop(void)
{
	pair_stop();
	SSL_CTX_free(server.tls);
	identity_release(&ca);
	identity_release(&leaf);
	arena_release(&arena);
}

static void ask(const char *path, struct http_request_options o)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s%s", url, path);
	o.url = str_of(whole);
	o.config = &config;
	o.body_size_max = o.body_size_max ? o.body_size_max : BODY_MAX;
	client_run(&client, o, &res);
}

static void check_ok(const char *path, const char *body)
{
	ask(path, (struct http_request_options){ 0 });
	CHECK_STR(str_of(res.msg), "");
	CHECK_INT(res.status, 200);
	CHECK_STR(buf_str(&res.body), body);
}

TEST(a_request_and_its_answer)
{
	struct label headers[] = { { STR("X-One"), STR("1") }, { STR("X-Empty"), STR("") } };
	struct buf last = { 0 };
	char want[512];

	REQUIRE(start(h2_script, NULL));
	config.has_basic_auth = true;
	config.username = STR("u");
	config.password = STR("p");
	ask("/echo?a=b",
		(struct http_request_options){
			.method = "POST", .body = STR("hello"), .headers = { headers, 2 } });
	CHECK_STR(str_of(res.msg), "");
	CHECK_INT(res.status, 200);
	CHECK_STR(str_of(res.reason), "");
	CHECK_STR(str_of(res.content_type), "text/plain");
	http_server_last(&server, &last);
	snprintf(want, sizeof(want),
		":method: POST\n:scheme: https\n:authority: 127.0.0.1:%u\n:path: /echo?a=b\n"
		"user-agent: test/1\nauthorization: Basic dTpw\ncontent-length: 5\nx-one: 1\nx-empty: \n\n"
		"hello",
		server.port);
	CHECK_STR(buf_str(&last), want);
	buf_release(&last);
	stop();
}

TEST(a_connection_serves_again)
{
	REQUIRE(start(h2_script, NULL));
	check_ok("/x", "ok");
	check_ok("/early", "ok");
	check_ok("/trailers", "ok");
	check_ok("/ping", "ok"); /* answered between the requests */
	check_ok("/x", "ok");
	CHECK_INT(atomic_load(&server.pongs), 1);
	check_ok("/to", "ok");
	CHECK(http_server_saw(&server, ":path: /there\n"));
	ask("/x", (struct http_request_options){ .method = "HEAD" });
	CHECK_INT(res.status, 200);
	CHECK_STR(buf_str(&res.body), "");
	CHECK_INT(http_client_stats(client.http).connects, 1);
	CHECK_INT(http_client_stats(client.http).reuses, 7);
	/* it says that no request may follow */
	check_ok("/last", "ok");
	check_ok("/x", "ok");
	CHECK_INT(http_client_stats(client.http).connects, 2);
	/* other settings, another connection */
	config.enable_http2 = false;
	ask("/x", (struct http_request_options){ 0 });
	CHECK_STR(str_of(res.msg), "malformed HTTP response: the server speaks HTTP/2");
	CHECK_INT(http_client_stats(client.http).connects, 3);
	stop();
}

/* The server ends a kept-alive connection as the request is sent: it is sent once more. */
TEST(a_refused_request_of_a_kept_connection)
{
	REQUIRE(start(h2_script, NULL));
	check_ok("/x", "ok");
	ask("/refuse", (struct http_request_options){ 0 });
	CHECK_STR(str_of(res.msg), "HTTP/2: the server reset the stream: REFUSED_STREAM");
	CHECK_INT(http_client_stats(client.http).connects, 2);
	CHECK_INT(atomic_load(&server.requests), 3);
	stop();
}

#define LONG_BYTES ((size_t)3 << 20)

static char byte_at(uint64_t at)
{
	return (char)('a' + at * 31 % 26);
}

static enum err_code read_source(void *ctx, uint64_t at, char *to, size_t n, struct err *err)
{
	if (at >= *(uint64_t *)ctx)
		return err_set(err, ERR_IO, "the file has become shorter");
	for (size_t i = 0; i < n; i++)
		to[i] = byte_at(at + i);
	return ERR_OK;
}

/* Larger than any window, both ways. */
TEST(long_bodies)
{
	uint64_t fails_at = UINT64_MAX;
	struct http_body_source source = { LONG_BYTES, read_source, &fails_at };
	bool same = true;

	REQUIRE(start(h2_script, NULL));
	ask("/echo",
		(struct http_request_options){
			.method = "PUT", .source = &source, .body_size_max = LONG_BYTES });
	CHECK_STR(str_of(res.msg), "");
	REQUIRE(res.body.len == LONG_BYTES);
	for (size_t i = 0; i < LONG_BYTES; i++)
		same &= res.body.ptr[i] == byte_at(i);
	CHECK(same);
	ask("/echo", (struct http_request_options){ .method = "PUT", .source = &source });
	CHECK_STR(str_of(res.msg), "body size limit exceeded");
	fails_at = LONG_BYTES / 2;
	ask("/echo", (struct http_request_options){ .method = "PUT", .source = &source });
	CHECK_STR(str_of(res.msg), "the file has become shorter");
	stop();
}

#define FRAME(length, type, flags, stream) length type flags "\0\0\0" stream
#define SETTINGS FRAME("\0\0\0", "\4", "\0", "\0")
#define HEAD(flags, length) FRAME("\0\0" length, "\1", flags, "\1")
#define STATUS_200 "\x88"
#define OK_HEAD HEAD("\4", "\1") STATUS_200
#define END "\5" /* END_HEADERS, END_STREAM */
#define BYTES(text) \
	{ \
		text, sizeof(text) - 1 \
	}
#define K15 K1 K1 K1 K1 K1 K1 K1 K1 K1 K1 K1 K1 K1 K1 K1
#define K1 K256 K256 K256 K256
#define K256 K64 K64 K64 K64
#define K64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

struct hostile {
	const char *name;
	struct h2_bytes bytes;
	const char *error; /* NULL: the answer is "ok" */
};

/* clang-format off */
static const struct hostile hostile[] = {
	{ "an answer",
	  { .once = BYTES(SETTINGS OK_HEAD FRAME("\0\0\2", "\0", "\1", "\1") "ok") }, NULL },
	{ "padding, priorities, unknown frames and flags",
	  { .once = BYTES(SETTINGS FRAME("\0\0\3", "\x77", "\xff", "\1") "abc"
		FRAME("\0\0\5", "\2", "\0", "\1") "\0\0\0\0\1"
		HEAD("\x0c", "\5") "\3" STATUS_200 "\0\0\0"
		FRAME("\0\0\5", "\0", "\x09", "\1") "\2ok\0\0") }, NULL },
	{ "a promise is left alone", { .once = BYTES(SETTINGS FRAME("\0\0\5", "\5", "\4", "\1")
		"\0\0\0\2\x82" OK_HEAD FRAME("\0\0\2", "\0", "\1", "\1") "ok") }, NULL },
	{ "a field with a line in it",
	  { .once = BYTES(SETTINGS HEAD("\4", "\x0d") STATUS_200 "\0\1a\x08" "b\r\nc: d\n"),
		.stays = true },
	  "malformed HTTP/2 response: Invalid HTTP header field was received: "
	  "frame type: 1, stream: 1, name: [a], value: [b..c: d.]" },
	{ "closed", { .once = BYTES(SETTINGS) }, "read ADDRESS: connection closed without an answer" },
	{ "closed in the body", { .once = BYTES(SETTINGS OK_HEAD) }, "read ADDRESS: unexpected EOF" },
	{ "HTTP/1.1 instead", { .once = BYTES("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") },
	  "malformed HTTP/2 response: Remote peer returned unexpected data while we expected SETTINGS "
	  "frame.  Perhaps, peer does not support HTTP/2 properly." },
	{ "an answer before SETTINGS", { .once = BYTES(OK_HEAD), .stays = true },
	  "malformed HTTP/2 response: Remote peer returned unexpected data while we expected SETTINGS "
	  "frame.  Perhaps, peer does not support HTTP/2 properly." },
	{ "a reset", { .once = BYTES(SETTINGS FRAME("\0\0\4", "\3", "\0", "\1") "\0\0\0\x0b") },
	  "HTTP/2: the server reset the stream: ENHANCE_YOUR_CALM" },
	{ "a reset that asks for HTTP/1.1",
	  { .once = BYTES(SETTINGS FRAME("\0\0\4", "\3", "\0", "\1") "\0\0\0\x0d") },
	  "HTTP/2: the server reset the stream: HTTP_1_1_REQUIRED" },
	{ "GOAWAY with a reason",
	  { .once = BYTES(SETTINGS FRAME("\0\0\x0e", "\7", "\0", "\0")
		"\0\0\0\1\0\0\0\x0b" "calm\x1b!") },
	  "HTTP/2: the server ended the connection: ENHANCE_YOUR_CALM: calm.!" },
	{ "GOAWAY before the request",
	  { .once = BYTES(SETTINGS FRAME("\0\0\x08", "\7", "\0", "\0") "\0\0\0\0\0\0\0\0") },
	  "HTTP/2: the server ended the connection: NO_ERROR" },
	{ "GOAWAY behind the request",
	  { .once = BYTES(SETTINGS FRAME("\0\0\x08", "\7", "\0", "\0") "\0\0\0\1\0\0\0\0"
		OK_HEAD FRAME("\0\0\2", "\0", "\1", "\1") "ok") }, NULL },
	{ "less than Content-Length", /* content-length is field 28 of the static table */
	  { .once = BYTES(SETTINGS HEAD("\4", "\5") STATUS_200 "\x0f\x0d\1" "3"
		FRAME("\0\0\2", "\0", "\1", "\1") "ok"), .stays = true }, "malformed HTTP/2 response" },
	{ "more than Content-Length",
	  { .once = BYTES(SETTINGS HEAD("\4", "\5") STATUS_200 "\x0f\x0d\1" "1"
		FRAME("\0\0\2", "\0", "\1", "\1") "ok"), .stays = true }, "malformed HTTP/2 response" },
	{ "a field of HTTP/1.1",
	  { .once = BYTES(SETTINGS HEAD("\4", "\x0d") STATUS_200
		"\x0f\x2a\x07" "chunked" "\x88" "\x88"), .stays = true },
	  "malformed HTTP/2 response: Invalid HTTP header field was received: "
	  "frame type: 1, stream: 1, name: [transfer-encoding], value: [chunked]" },
	{ "no status", { .once = BYTES(SETTINGS HEAD(END, "\4") "\0\1a\0"), .stays = true },
	  "malformed HTTP/2 response" },
	{ "a status that is none",
	  { .once = BYTES(SETTINGS HEAD(END, "\5") "\x08\3" "2x0"), .stays = true },
	  "malformed HTTP/2 response: Invalid HTTP header field was received: "
	  "frame type: 1, stream: 1, name: [:status], value: [2x0]" },
	{ "a body before its head",
	  { .once = BYTES(SETTINGS FRAME("\0\0\2", "\0", "\1", "\1") "ok"), .stays = true },
	  "malformed HTTP/2 response" },
	{ "a frame that is too long",
	  { .once = BYTES(SETTINGS FRAME("\xff\xff\xff", "\0", "\0", "\1")), .stays = true },
	  "malformed HTTP/2 response" },
	{ "a table of fields that is damaged",
	  { .once = BYTES(SETTINGS HEAD(END, "\1") "\xff"), .stays = true },
	  "malformed HTTP/2 response" },
	{ "a window beyond its limit",
	  { .once = BYTES(SETTINGS FRAME("\0\0\4", "\x08", "\0", "\0") "\x7f\xff\xff\xff"),
		.stays = true },
	  "malformed HTTP/2 response" },
	{ "a window of nothing",
	  { .once = BYTES(SETTINGS FRAME("\0\0\4", "\x08", "\0", "\1") "\0\0\0\0"), .stays = true },
	  "malformed HTTP/2 response" },
	{ "settings that cannot be",
	  { .once = BYTES(FRAME("\0\0\6", "\4", "\0", "\0") "\0\4\xff\xff\xff\xff"), .stays = true },
	  "malformed HTTP/2 response" },
	{ "a body over the limit",
	  { .once = BYTES(SETTINGS OK_HEAD),
		.again = BYTES(FRAME("\0\4\0", "\0", "\0", "\1") K1), .times = 65, .stays = true },
	  "body size limit exceeded" },
	{ "a head over the limit", { .once = BYTES(SETTINGS HEAD("\0", "\1") STATUS_200),
		.again = BYTES(FRAME("\0\x3c\6", "\x09", "\0", "\1") "\0\1a\x7f\x81\x77" K15),
		.times = 1u << 20 },
	  "response header is larger than 65536 bytes" },
	{ "a head without end", { .once = BYTES(SETTINGS HEAD("\0", "\1") STATUS_200),
		.again = BYTES(FRAME("\0\0\0", "\x09", "\0", "\1")), .times = 1u << 20 },
	  "HTTP/2: Too many CONTINUATION frames following a HEADER frame" },
	{ "103 without end",
	  { .once = BYTES(SETTINGS),
		.again = BYTES(HEAD("\4", "\5") "\x08\3" "103"), .times = 1u << 20 },
	  "response header is larger than 65536 bytes" },
	{ "trailers over the limit", { .once = BYTES(SETTINGS OK_HEAD HEAD("\1", "\4") "\0\1a\0"),
		.again = BYTES(FRAME("\0\x3c\6", "\x09", "\0", "\1") "\0\1a\x7f\x81\x77" K15),
		.times = 1u << 20 },
	  "response header is larger than 65536 bytes" },
	{ "PING without end",
	  { .once = BYTES(SETTINGS),
		.again = BYTES(FRAME("\0\0\x08", "\6", "\0", "\0") "12345678"), .times = 1u << 20 },
	  "HTTP/2 frames with too little data in them" },
	{ "SETTINGS without end",
	  { .once = BYTES(SETTINGS), .again = BYTES(SETTINGS), .times = 1u << 20 },
	  "HTTP/2 frames with too little data in them" },
	{ "empty DATA without end",
	  { .once = BYTES(SETTINGS OK_HEAD),
		.again = BYTES(FRAME("\0\0\0", "\0", "\0", "\1")), .times = 1u << 20 },
	  "HTTP/2 frames with too little data in them" },
	{ "padding without end", { .once = BYTES(SETTINGS OK_HEAD),
		.again = BYTES(FRAME("\0\0\x81", "\0", "\x08", "\1") "\x80" K64 K64), .times = 1u << 20 },
	  "HTTP/2 frames with too little data in them" },
	{ "unknown frames without end", { .once = BYTES(SETTINGS OK_HEAD),
		.again = BYTES(FRAME("\0\4\0", "\x77", "\0", "\1") K1), .times = 1u << 20 },
	  "HTTP/2 frames with too little data in them" },
	{ "little windows without end",
	  { .once = BYTES(SETTINGS OK_HEAD),
		.again = BYTES(FRAME("\0\0\4", "\x08", "\0", "\1") "\0\0\0\1"), .times = 1u << 20 },
	  "HTTP/2 frames with too little data in them" },
};
/* clang-format on */

TEST(servers_that_send_anything)
{
	char address[32], want[256], *at;

	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		const struct hostile *h = &hostile[i];

		REQUIRE(start(h2_script_bytes, &h->bytes));
		ask("/", (struct http_request_options){ 0 });
		snprintf(address, sizeof(address), "127.0.0.1:%u", server.port);
		if ((at = strstr(res.msg, address))) {
			snprintf(want, sizeof(want), "%.*sADDRESS%s", (int)(at - res.msg), res.msg,
				at + strlen(address));
			snprintf(res.msg, sizeof(res.msg), "%s", want);
		}
		if (strcmp(res.msg, h->error ? h->error : "") != 0)
			CHECK_FAIL("%s: \"%s\"", h->name, res.msg);
		else if (!h->error && !str_is(buf_str(&res.body), "ok"))
			CHECK_FAIL("%s: body \"" STR_FMT "\"", h->name, STR_ARG(buf_str(&res.body)));
		CHECK_INT(http_client_stats(client.http).connects, 1);
		stop();
	}
}

TEST(a_server_that_says_nothing)
{
	const struct h2_bytes silent = { .once = BYTES(SETTINGS), .stays = true };

	REQUIRE(start(h2_script_bytes, &silent));
	ask("/", (struct http_request_options){ .idle_timeout_ns = 50 * NS_PER_MS });
	CHECK_STR(str_of(res.msg), "nothing received for 50ms");
	ask("/", (struct http_request_options){ .timeout_ns = 50 * NS_PER_MS });
	CHECK_STR(str_of(res.msg), "context deadline exceeded");
	stop();
}
