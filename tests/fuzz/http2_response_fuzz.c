/*
 * fuzz: base/net
 *
 * Any bytes of a server of HTTP/2, in pieces of the size the first byte names: an answer is whole
 * only with a status, and within its limits; what follows it on the kept connection is taken or
 * refused.
 */
#include "base/net/http_client_internal.h"
#include "tests/fuzz/fuzz.h"

#define BODY_MAX 4096u
#define HEAD "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n"

static enum err_code feed(struct http_client_conn *c, struct str *text, size_t step)
{
	struct str piece = { text->ptr, text->len < step ? text->len : step }, out = STR("");
	enum err_code rc = http2_feed(c, piece, NULL);

	text->ptr += piece.len;
	text->len -= piece.len;
	while (!rc && !(rc = http2_unsent(c, &out, NULL)) && out.len)
		http2_count_sent(c, out.len);
	return rc;
}

static void check_answer(const struct http_parser *p)
{
	if (p->state != PARSE_DONE || p->status < 200 || p->head.len > HTTP_HEADER_BYTES_MAX + 4096 ||
		p->body.len > BODY_MAX || !str_has_suffix(buf_str(&p->head), STR("\r\n\r\n")))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_client client = { 0 };
	struct http_request r = { .client = &client,
		.method = "GET",
		.url = { .tls = true, .authority = STR("h"), .target = STR("/") } };
	struct http_client_conn c = { .client = &client, .req = &r, .fd = -1 };
	struct str text = { (const char *)data + 1, size ? size - 1 : 0 };
	size_t step = size && data[0] ? data[0] : SIZE_MAX;

	if (!size)
		return 0;
	arena_init(&r.arena, 1u << 20);
	buf_add_cstr(&r.out, HEAD);
	r.head_bytes = r.out.len;
	http_parser_init(&r.parser, false, BODY_MAX);
	if (http2_open(&c, NULL) || http2_begin(&c, NULL))
		abort();
	while (text.len && !http2_is_answered(&c) && !feed(&c, &text, step))
		;
	if (http2_is_answered(&c)) {
		/* an end that is an error of its own is no answer, and nothing follows */
		if (r.parser.state == PARSE_DONE)
			check_answer(&r.parser);
	}
	http2_close(c.h2);
	http_parser_release(&r.parser);
	buf_release(&r.out);
	arena_release(&r.arena);
	return 0;
}
