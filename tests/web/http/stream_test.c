/* Answers that are sent while they are written: pieces, codings, slow and gone clients, failures.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gzip/gzip.h"
#include "base/gzip/zstd.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/http/any_port.h"
#include "tests/web/http/http_peer.h"
#include "web/http/http.h"
#include "web/http/stream.h"

#define PIECE_BYTES (64u << 10)
#define PIECES_MAX ((STREAM_READY_BYTES_MAX + (32u << 20)) / PIECE_BYTES) /* buffers of sockets */

static struct fixture {
	struct http_server *server;
	unsigned port;
	atomic_uint pieces, ended; /* flushed; handlers that came to their end */
	atomic_int rc; /* of the last flush */
} f;

static void fill_piece(struct buf *out, unsigned i)
{
	size_t end = out->len + PIECE_BYTES;
	char line[12];

	snprintf(line, sizeof(line), "%07u\n", i);
	while (out->len < end)
		buf_add(out, line, 8);
}

/* "?pieces=N": so many, and "end\n"; "?fail=N": a failure behind the N-th. */
static void handle(void *ctx, struct http_in *in, struct http_out *out)
{
	uint64_t n = 0, fail = 0;
	enum err_code rc = ERR_OK;
	struct err err;

	(void)ctx;
	str_to_u64(http_param(in, "pieces"), &n);
	str_to_u64(http_param(in, "fail"), &fail);
	out->status = 200;
	out->content_type = "text/plain";
	for (unsigned i = 0; i < n && !rc; i++) {
		fill_piece(&out->body, i);
		if (!(rc = http_flush(in, out, &err)))
			atomic_fetch_add(&f.pieces, 1);
		out->failed = rc || i + 1 == fail;
		if (out->failed)
			break;
	}
	atomic_store(&f.rc, (int)rc);
	buf_add_cstr(&out->body, "end\n");
	atomic_fetch_add(&f.ended, 1);
}

static bool start(void)
{
	const struct http_server_options o = {
		.read_timeout_ns = NS_PER_HOUR, .body_bytes_max = 1000, .handler = handle
	};

	memset(&f, 0, sizeof(f));
	return open_on_any_port(o, &f.server, &f.port);
}

static void until(atomic_uint *counter, unsigned want)
{
	CHECK(WAIT_FOR(atomic_load(counter) >= want));
}

/* The bytes of all chunks; false where the last one is missing. */
static bool unchunk(struct str s, struct buf *out)
{
	for (;;) {
		ptrdiff_t line = str_find(s, STR("\r\n"));
		size_t n = line > 0 ? strtoul(s.ptr, NULL, 16) : 0;

		if (line <= 0 || s.len < (size_t)line + 2 + n + 2)
			return false;
		if (n == 0)
			return true;
		buf_add(out, s.ptr + line + 2, n);
		s = (struct str){ s.ptr + line + 4 + n, s.len - (size_t)line - 4 - n };
	}
}

/* All that the server sends, until it ends the connection. */
static void ask(const char *request, struct buf *head, struct buf *body, bool *whole)
{
	struct peer p;
	struct buf all = { 0 };
	char chunk[65536];
	ptrdiff_t at;
	ssize_t n;

	peer_open(&p, f.port);
	peer_send(&p, str_of(request));
	while (!p.dead && (n = recv(p.fd, chunk, sizeof(chunk), 0)) > 0)
		buf_add(&all, chunk, (size_t)n);
	peer_close(&p);
	at = str_find(buf_str(&all), STR("\r\n\r\n"));
	CHECK(at > 0);
	if (at > 0) {
		buf_add(head, all.ptr, (size_t)at);
		*whole = unchunk((struct str){ all.ptr + at + 4, all.len - (size_t)at - 4 }, body);
	}
	buf_release(&all);
}

static void check_pieces(struct str body, unsigned n)
{
	struct buf want = { 0 };

	for (unsigned i = 0; i < n; i++)
		fill_piece(&want, i);
	buf_add_cstr(&want, "end\n");
	CHECK(str_eq(body, buf_str(&want)));
	buf_release(&want);
}

#define REQUEST(query, headers) \
	"GET /x?" query " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" headers "\r\n"

TEST(pieces_are_one_answer)
{
	struct buf head = { 0 }, body = { 0 };
	bool whole = false;

	REQUIRE(start());
	ask(REQUEST("pieces=200", ""), &head, &body, &whole);
	CHECK(whole);
	CHECK(str_find(buf_str(&head), STR("Transfer-Encoding: chunked")) > 0);
	CHECK(str_find(buf_str(&head), STR("Content-Encoding")) < 0);
	check_pieces(buf_str(&body), 200);
	buf_release(&head);
	buf_release(&body);
	http_server_close(f.server, NS_PER_S);
}

static void check_coded(bool zstd, unsigned pieces)
{
	struct buf head = { 0 }, body = { 0 };
	char request[128];
	struct arena a;
	struct str plain;
	bool whole = false;
	struct err err;

	arena_init(&a, 0);
	snprintf(request, sizeof(request), REQUEST("pieces=%u", "Accept-Encoding: gzip%s\r\n"), pieces,
		zstd ? ", zstd" : "");
	ask(request, &head, &body, &whole);
	CHECK(whole);
	CHECK(str_find(
		buf_str(&head), zstd ? STR("Content-Encoding: zstd") : STR("Content-Encoding: gzip")) > 0);
	CHECK(str_find(buf_str(&head), STR("Vary: Accept-Encoding")) > 0);
	CHECK(body.len < (pieces + 1) * PIECE_BYTES / 16);
	CHECK_OK(
		(zstd ? zstd_inflate : gzip_inflate)(&a, buf_str(&body), "answer", 1u << 28, &plain, &err),
		&err);
	check_pieces(plain, pieces);
	arena_release(&a);
	buf_release(&head);
	buf_release(&body);
}

/* Short ones at their end, longer ones piece by piece; the last piece decides at the border. */
TEST(answers_of_any_length_are_compressed)
{
	unsigned whole = STREAM_WHOLE_BYTES_MAX / PIECE_BYTES;
	const unsigned pieces[] = { 1, 2, whole - 1, whole, whole + 1, 200 };

	REQUIRE(start());
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		for (int zstd = 0; zstd < 2; zstd++)
			check_coded(zstd, pieces[i]);
	http_server_close(f.server, NS_PER_S);
}

TEST(a_failure_behind_the_first_piece_breaks_the_answer)
{
	struct buf head = { 0 }, body = { 0 };
	bool whole = true;

	REQUIRE(start());
	ask(REQUEST("pieces=9&fail=3", ""), &head, &body, &whole);
	CHECK(!whole);
	CHECK(str_find(buf_str(&head), STR("HTTP/1.1 200")) == 0);
	until(&f.ended, 1);
	buf_release(&head);
	buf_release(&body);
	http_server_close(f.server, NS_PER_S);
}

/* The writer stops once the buffer and the sockets are full. */
TEST(a_client_that_reads_nothing_holds_little)
{
	struct peer p;
	unsigned before;

	REQUIRE(start());
	peer_open(&p, f.port);
	peer_send(&p, STR(REQUEST("pieces=4000", "")));
	until(&f.pieces, STREAM_READY_BYTES_MAX / PIECE_BYTES);
	/* The sockets take some more; then nothing is written for long. */
	do {
		before = atomic_load(&f.pieces);
		usleep(500000);
	} while (atomic_load(&f.pieces) != before && before < PIECES_MAX);
	CHECK(before < PIECES_MAX);
	peer_close(&p);
	until(&f.ended, 1);
	CHECK_INT(atomic_load(&f.rc), ERR_CANCELED);
	http_server_close(f.server, NS_PER_S);
}

TEST(closing_the_server_ends_what_waits_for_its_client)
{
	struct peer p;
	int64_t began;

	REQUIRE(start());
	peer_open(&p, f.port);
	peer_send(&p, STR(REQUEST("pieces=4000", "")));
	until(&f.pieces, STREAM_READY_BYTES_MAX / PIECE_BYTES);
	began = clock_monotonic_ns();
	http_server_close(f.server, NS_PER_S / 10);
	CHECK(clock_monotonic_ns() - began < WAIT_NS);
	CHECK_INT(atomic_load(&f.ended), 1);
	peer_close(&p);
}

TEST(the_connection_takes_the_next_request)
{
	struct response r = { 0 };
	struct peer p;

	REQUIRE(start());
	peer_open(&p, f.port);
	peer_ask_on(&p, &r, "HEAD /x?pieces=3", "", STR(""));
	peer_close(&p);
	peer_open(&p, f.port);
	for (int i = 0; i < 3; i++) {
		peer_ask_on(&p, &r, "GET /x?pieces=0", "", STR(""));
		CHECK_STR(buf_str(&r.body), "end\n");
	}
	peer_close(&p);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}
