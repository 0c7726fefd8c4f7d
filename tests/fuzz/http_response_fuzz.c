/*
 * fuzz: base/net
 *
 * Any bytes as a response: in one piece and in pieces of the size the first byte names, with the
 * same outcome; and with the body taken out as it comes. Then the bytes as the Location of a
 * redirect.
 */
#include "base/net/http_client_internal.h"
#include "tests/fuzz/fuzz.h"

static enum err_code parse(struct http_parser *p, struct str text, size_t step, size_t *left)
{
	enum err_code rc = ERR_OK;

	http_parser_init(p, false, 4096);
	while (text.len && !rc && p->state != PARSE_DONE) {
		struct str piece = { text.ptr, text.len < step ? text.len : step };

		text.ptr += piece.len;
		text.len -= piece.len;
		rc = http_parser_feed(p, &piece, NULL);
		*left = text.len + piece.len;
	}
	return rc ? rc : http_parser_eof(p, NULL);
}

/* Wherever a body is gathered without an error, its pieces give the same. */
static void check_stream(struct str text, size_t step, const struct http_parser *whole)
{
	struct http_parser p = { 0 };
	enum err_code rc = ERR_OK;
	struct buf body = { 0 };

	http_parser_init(&p, false, 4096);
	p.stream_200 = true;
	while (text.len && !rc && p.state != PARSE_DONE) {
		struct str piece = { text.ptr, text.len < step ? text.len : step };

		text.ptr += piece.len;
		text.len -= piece.len;
		rc = http_parser_feed(&p, &piece, NULL);
		if (p.stream) {
			buf_add_str(&body, buf_str(&p.body));
			buf_clear(&p.body);
		}
	}
	if (!rc)
		rc = http_parser_eof(&p, NULL);
	if (rc || p.status != whole->status || p.stream != (p.status == 200) ||
		!str_eq(p.stream ? buf_str(&body) : buf_str(&p.body), buf_str(&whole->body)))
		abort();
	buf_release(&body);
	http_parser_release(&p);
}

static void redirect(struct str ref)
{
	struct http_url from, to;
	struct arena a;

	arena_init(&a, 1u << 20);
	if (http_url_parse(&a, STR("http://a:1/b/c?d"), &from, NULL) ||
			(http_url_resolve(&a, &from, ref, &to, NULL) == ERR_OK &&
				(!to.host.len || to.target.ptr[0] != '/' || strpbrk(to.text, " \r\n\t") != NULL)))
		abort();
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_parser whole = { 0 }, pieces = { 0 };
	struct str text = { (const char *)data + 1, size ? size - 1 : 0 };
	size_t left[2] = { 0 };
	enum err_code rc[2];

	if (!size)
		return 0;
	rc[0] = parse(&whole, text, SIZE_MAX, &left[0]);
	rc[1] = parse(&pieces, text, data[0] ? data[0] : 1, &left[1]);
	if (rc[0] != rc[1] ||
		(!rc[0] &&
			(left[0] != left[1] || whole.status != pieces.status ||
				!str_eq(buf_str(&whole.body), buf_str(&pieces.body)) ||
				!str_eq(buf_str(&whole.head), buf_str(&pieces.head)))))
		abort();
	if (!rc[0])
		check_stream(text, data[0] ? data[0] : 1, &whole);
	http_parser_release(&whole);
	http_parser_release(&pieces);
	redirect(text);
	return 0;
}
