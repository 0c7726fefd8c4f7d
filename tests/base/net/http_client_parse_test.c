#include "base/net/http_client_internal.h"
#include "tests/check.h"

struct outcome {
	enum err_code rc;
	struct err err;
	struct http_parser p;
	size_t left;
};

/* The whole answer in pieces of at most `step` bytes, then the end. */
static void parse(struct outcome *o, struct str text, size_t step, bool is_head, size_t body_max)
{
	memset(&o->err, 0, sizeof(o->err));
	o->rc = ERR_OK;
	http_parser_init(&o->p, is_head, body_max);
	while (text.len && !o->rc && o->p.state != PARSE_DONE) {
		struct str piece = { text.ptr, text.len < step ? text.len : step };

		text.ptr += piece.len;
		text.len -= piece.len;
		o->rc = http_parser_feed(&o->p, &piece, &o->err);
		o->left = text.len + piece.len;
	}
	if (!o->rc)
		o->rc = http_parser_eof(&o->p, &o->err);
}

#define H "HTTP/1.1 200 OK\r\n"

TEST(answers)
{
	/* clang-format off */
	static const struct {
		const char *text;
		bool is_head;
		int status;
		const char *body;
		bool keep_alive;
		size_t left;
	} rows[] = {
		{ H "Content-Length: 5\r\n\r\nhello", false, 200, "hello", true, 0 },
		{ H "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", false, 200, "hello", true, 0 },
		{ H "content-LENGTH:5\r\n\r\nhellomore", false, 200, "hello", true, 4 },
		{ H "Content-Length: 0\r\n\r\n", false, 200, "", true, 0 },
		{ H "\r\nuntil the end", false, 200, "until the end", false, 0 },
		{ "HTTP/1.1 200\nContent-Length: 2\n\nok", false, 200, "ok", true, 0 },
		{ "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false, 200, "ok", false, 0 },
		{ "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok", false, 200,
			"ok", true, 0 },
		{ H "Connection: x, close\r\nContent-Length: 2\r\n\r\nok", false, 200, "ok", false, 0 },
		{ H "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\n", false, 200,
			"hello!", true, 0 },
		{ H "Transfer-Encoding: Chunked\r\n\r\n0a \r\n0123456789\r\n00\r\nX: y\r\n\r\nz", false,
			200, "0123456789", true, 1 },
		{ H "Transfer-Encoding: chunked\n\n2\nok\n0\n\n", false, 200, "ok", true, 0 },
		{ H "Transfer-Encoding: chunked\r\nContent-Length: 99\r\n\r\n2\r\nok\r\n0\r\n\r\n", false,
			200, "ok", false, 0 },
		{ "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
			H "Content-Length: 2\r\n\r\nok", false, 200, "ok", true, 0 },
		{ "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", false, 204, "", true, 0 },
		{ "HTTP/1.1 304 Not Modified\r\n\r\n", false, 304, "", true, 0 },
		{ H "Content-Length: 500\r\n\r\n", true, 200, "", true, 0 },
		{ H "Transfer-Encoding: chunked\r\n\r\n", true, 200, "", true, 0 },
		{ "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\n\r\nbad", false, 503, "bad",
			true, 0 },
	};
	/* clang-format on */
	static struct outcome o;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t step = 1; step <= strlen(rows[i].text); step++) {
			parse(&o, str_of(rows[i].text), step, rows[i].is_head, 1000);
			if (o.rc || o.p.status != rows[i].status || !str_is(buf_str(&o.p.body), rows[i].body) ||
				o.p.keep_alive != rows[i].keep_alive || o.left != rows[i].left) {
				CHECK_FAIL("row %zu in steps of %zu: %s %d \"" STR_FMT "\" %d %zu", i, step,
					o.err.msg, o.p.status, STR_ARG(buf_str(&o.p.body)), o.p.keep_alive, o.left);
				break;
			}
		}
	}
	http_parser_release(&o.p);
}

TEST(what_is_refused)
{
	static const struct {
		const char *text;
		enum err_code code;
		const char *want;
	} rows[] = {
		{ "", ERR_UNAVAILABLE, "connection closed without an answer" },
		{ "HT", ERR_UNAVAILABLE, "unexpected EOF" },
		{ H, ERR_UNAVAILABLE, "unexpected EOF" },
		{ H "Content-Length: 5\r\n\r\nhell", ERR_UNAVAILABLE, "unexpected EOF" },
		{ H "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", ERR_UNAVAILABLE,
			"unexpected EOF" },
		{ "SSH-2.0-OpenSSH_9.2\r\n", ERR_INVALID, NULL },
		{ "\x15\x03\x01", ERR_INVALID, NULL },
		{ "HTTP/2.0 200 OK\r\n\r\n", ERR_INVALID, NULL },
		{ "HTTP/1.1 20 OK\r\n\r\n", ERR_INVALID, "malformed HTTP response \"HTTP/1.1 20 OK\"" },
		{ "HTTP/1.1 2000 OK\r\n\r\n", ERR_INVALID, "malformed HTTP response \"HTTP/1.1 2000 OK\"" },
		{ "\x15\x03\x01", ERR_INVALID, "malformed HTTP response: the server speaks TLS" },
		{ H "no colon\r\n\r\n", ERR_INVALID, "malformed HTTP response \"no colon\"" },
		{ H "a b: c\r\n\r\n", ERR_INVALID, "malformed HTTP response \"a b: c\"" },
		{ H "A: b\r\n folded\r\n\r\n", ERR_INVALID, "malformed HTTP response \" folded\"" },
		{ H "A: b\001c\r\n\r\n", ERR_INVALID, "malformed HTTP response \"A: b.c\"" },
		{ H "Content-Length: -1\r\n\r\n", ERR_INVALID,
			"malformed HTTP response \"Content-Length: -1\"" },
		{ H "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", ERR_INVALID,
			"malformed HTTP response \"Content-Length: 2\"" },
		{ H "Content-Length: 18446744073709551616\r\n\r\n", ERR_INVALID,
			"malformed HTTP response \"Content-Length: 18446744073709551616\"" },
		{ H "Transfer-Encoding: gzip, chunked\r\n\r\n", ERR_INVALID,
			"transfer encoding \"gzip, chunked\" is not supported" },
		{ "HTTP/1.1 101 Switching Protocols\r\n\r\n", ERR_INVALID,
			"server switched protocols unasked" },
		{ H "Transfer-Encoding: chunked\r\n\r\nx\r\n", ERR_INVALID, "malformed chunked encoding" },
		{ H "Transfer-Encoding: chunked\r\n\r\n\r\n", ERR_INVALID, "malformed chunked encoding" },
		{ H "Transfer-Encoding: chunked\r\n\r\n-1\r\n", ERR_INVALID, "malformed chunked encoding" },
		{ H "Transfer-Encoding: chunked\r\n\r\n2\r\nokk\r\n", ERR_INVALID,
			"malformed chunked encoding" },
		{ H "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\r\n", ERR_INVALID,
			"malformed chunked encoding" },
		{ H "Transfer-Encoding: chunked\r\n\r\n1000000000000000\r\n", ERR_INVALID,
			"malformed chunked encoding" },
		{ H "Transfer-Encoding: chunked\r\n\r\nb\r\n", ERR_LIMIT, "body size limit exceeded" },
		{ H "Transfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n3\r\n", ERR_LIMIT,
			"body size limit exceeded" },
		{ H "Content-Length: 11\r\n\r\n", ERR_LIMIT, "body size limit exceeded" },
		{ H "\r\n12345678901", ERR_LIMIT, "body size limit exceeded" },
	};
	static struct outcome o;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t step = 1; step <= strlen(rows[i].text) + 1; step++) {
			parse(&o, str_of(rows[i].text), step, false, 10);
			if (o.rc != rows[i].code || (rows[i].want && strcmp(o.err.msg, rows[i].want) != 0)) {
				CHECK_FAIL(
					"row %zu in steps of %zu: %s: %s", i, step, err_code_name(o.rc), o.err.msg);
				break;
			}
		}
	}
	parse(&o, STR("SSH-2.0-OpenSSH_9.2\r\n"), 100, false, 10);
	CHECK_STR(str_of(o.err.msg), "malformed HTTP response \"SSH-2.0-OpenSSH_9.2..\"");
	http_parser_release(&o.p);
}

static struct str repeated(struct buf *b, const char *before, const char *unit, size_t n)
{
	buf_clear(b);
	buf_add_cstr(b, before);
	while (n--)
		buf_add_cstr(b, unit);
	return buf_str(b);
}

TEST(heads_and_framing_are_bounded)
{
	static struct outcome o;
	struct buf b = { 0 };

	parse(&o, repeated(&b, H, "X-Header: value\r\n", 10000), 1000, false, 10);
	CHECK_ERR(o.rc, &o.err, ERR_LIMIT, "response header is larger than 65536 bytes");
	CHECK(o.p.head.cap < 256u << 10);
	parse(&o, repeated(&b, H "X: ", "aaaaaaaaaa", 10000), 1000, false, 10);
	CHECK_ERR(o.rc, &o.err, ERR_LIMIT, "response header is larger than 65536 bytes");
	parse(&o, repeated(&b, "", "HTTP/1.1 100 Continue\r\n\r\n", 10000), 1000, false, 10);
	CHECK_ERR(o.rc, &o.err, ERR_LIMIT, "response header is larger than 65536 bytes");
	parse(&o, repeated(&b, H "Transfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n", 20000), 1000,
		false, 10);
	CHECK_ERR(o.rc, &o.err, ERR_LIMIT, "response header is larger than 65536 bytes");
	parse(&o, repeated(&b, H "Transfer-Encoding: chunked\r\n\r\n1;", "extension", 1000), 1000,
		false, 10);
	CHECK_ERR(o.rc, &o.err, ERR_LIMIT, "chunk extension is larger than 4096 bytes");
	parse(&o,
		repeated(
			&b, H "Transfer-Encoding: chunked\r\n\r\n", "1;extension=xxxxxxxxxxxx\r\na\r\n", 9000),
		1000, false, 10000);
	CHECK_ERR(o.rc, &o.err, ERR_LIMIT, "chunked encoding with too little data in it");
	parse(&o, repeated(&b, H "Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", 9000), 1000, false,
		10000);
	CHECK_ERR(o.rc, &o.err, ERR_UNAVAILABLE, "unexpected EOF");
	CHECK_INT(o.p.body.len, 9000);
	http_parser_release(&o.p);
	buf_release(&b);
}

TEST(headers_are_found_by_name)
{
	struct str head = STR(H "A: 1\r\nContent-Type:  text/html \r\na: 2\r\n\r\n"), v;

	CHECK(http_head_get(head, "content-type", &v));
	CHECK_STR(v, "text/html");
	CHECK(http_head_get(head, "a", &v));
	CHECK_STR(v, "1");
	CHECK(!http_head_get(head, "b", &v));
}

TEST(urls)
{
	static const struct {
		const char *url, *host;
		unsigned port;
		const char *authority, *target, *text;
	} rows[] = {
		{ "http://a", "a", 80, "a", "/", "http://a/" },
		{ "HTTPS://A.Example:8443/x?y=z#f", "a.example", 8443, "a.example:8443", "/x?y=z",
			"https://a.example:8443/x?y=z" },
		{ "http://127.0.0.1:9090?q", "127.0.0.1", 9090, "127.0.0.1:9090", "/?q",
			"http://127.0.0.1:9090/?q" },
		{ "https://[::1]/", "::1", 443, "[::1]", "/", "https://[::1]/" },
		{ "http://[FE80::1]:1/", "fe80::1", 1, "[fe80::1]:1", "/", "http://[fe80::1]:1/" },
		{ "http://a:/", "a", 80, "a:", "/", "http://a:/" },
		{ "http://a/x y\r\nHost: b\xc3\xa9%20\"<>", "a", 80, "a",
			"/x%20y%0D%0AHost:%20b%C3%A9%20%22%3C%3E",
			"http://a/x%20y%0D%0AHost:%20b%C3%A9%20%22%3C%3E" },
	};
	struct arena a;
	struct http_url u;
	struct err err;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_OK(http_url_parse(&a, str_of(rows[i].url), &u, &err), &err);
		CHECK_STR(u.host, rows[i].host);
		CHECK_INT(u.port, rows[i].port);
		CHECK_STR(u.authority, rows[i].authority);
		CHECK_STR(u.target, rows[i].target);
		CHECK_STR(str_of(u.text), rows[i].text);
	}
	arena_release(&a);
}

TEST(urls_refused)
{
	static const struct {
		const char *url, *want;
	} rows[] = {
		{ "", "invalid URL \"\": unsupported protocol scheme" },
		{ "ftp://a/", "invalid URL \"ftp://a/\": unsupported protocol scheme" },
		{ "http://", "invalid URL \"http://\": no host" },
		{ "http://:80/", "invalid URL \"http://:80/\": no host" },
		{ "http:///x", "invalid URL \"http:///x\": no host" },
		{ "http://a b/", "invalid URL \"http://a b/\": invalid character in host name" },
		{ "http://a%2e/", "invalid URL \"http://a%2e/\": invalid character in host name" },
		{ "http://a:0/", "invalid URL \"http://a:0/\": invalid port" },
		{ "http://a:65536/", "invalid URL \"http://a:65536/\": invalid port" },
		{ "http://a:b/", "invalid URL \"http://a:b/\": invalid port" },
		{ "http://::1/", "invalid URL \"http://::1/\": no host" },
		{ "http://[::1/", "invalid URL \"http://[::1/\": missing ']' in host" },
		{ "http://[a]/", "invalid URL \"http://[a]/\": not an IPv6 address in brackets" },
		{ "http://[::1]x/", "invalid URL \"http://[::1]x/\": invalid port" },
		{ "http://user:secret@a/",
			"invalid URL: user information in a URL is not supported, use basic_auth" },
	};
	struct http_url u;
	struct buf b = { 0 };
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_ERR(
			http_url_parse(&a, str_of(rows[i].url), &u, &err), &err, ERR_INVALID, rows[i].want);
	CHECK_ERR(http_url_parse(&a, repeated(&b, "http://a/", "x", 8184), &u, &err), &err, ERR_LIMIT,
		"URL is 8193 bytes, limit 8192");
	buf_release(&b);
	arena_release(&a);
}

TEST(references)
{
	static const struct {
		const char *ref, *want;
	} rows[] = {
		{ "https://b:1/y", "https://b:1/y" },
		{ "//b/y", "http://b/y" },
		{ "/y", "http://a:8/y" },
		{ "y", "http://a:8/d/y" },
		{ "./y", "http://a:8/d/y" },
		{ "../y", "http://a:8/y" },
		{ "../../../y", "http://a:8/y" },
		{ "?r", "http://a:8/d/e?r" },
		{ "", "http://a:8/d/e?q=/../x" },
		{ "#f", "http://a:8/d/e?q=/../x" },
		{ "/a/./b/../c/.", "http://a:8/a/c/" },
		{ "/a/b/..", "http://a:8/a/" },
		{ "y?u=http://x/..", "http://a:8/d/y?u=http://x/.." },
		{ "/..", "http://a:8/" },
		{ "  /y ", "http://a:8/y" },
		{ "/a//../b", "http://a:8/a/b" },
	};
	struct http_url from, to;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(http_url_parse(&a, STR("http://a:8/d/e?q=/../x"), &from, &err), &err);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_OK(http_url_resolve(&a, &from, str_of(rows[i].ref), &to, &err), &err);
		CHECK_STR(str_of(to.text), rows[i].want);
	}
	CHECK_ERR(http_url_resolve(&a, &from, STR("javascript:x"), &to, &err), &err, ERR_INVALID,
		"redirect: invalid URL \"javascript:x\": unsupported protocol scheme");
	arena_release(&a);
}
