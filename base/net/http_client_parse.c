/*
 * An HTTP/1.x response, byte by byte as it comes: a state machine that holds only the head and the
 * body, and that checks each limit before it stores a byte.
 *
 * Framing errors end the connection: client and server must agree where a body ends, or a reused
 * connection is unsafe. So: one length, or chunked, or until the peer closes; lengths that differ
 * are refused; with both given chunked counts and the connection is not used again (RFC 9112, 6.3).
 */
#include "base/net/http_client_internal.h"

#include <assert.h>

#define CHUNK_LINE_BYTES_MAX 4096u
#define CHUNK_DIGITS_MAX 15u /* below 2^60, so that sums do not overflow */

void http_parser_init(struct http_parser *p, bool is_head, size_t body_max)
{
	struct buf head = p->head, body = p->body;

	buf_clear(&head);
	buf_clear(&body);
	*p = (struct http_parser){
		.is_head = is_head, .body_max = body_max, .head = head, .body = body
	};
}

void http_parser_release(struct http_parser *p)
{
	buf_release(&p->head);
	buf_release(&p->body);
}

static bool http_client_parse_token_char(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		(c && strchr("!#$%&'*+-.^_`|~", c));
}

bool http_token_valid(struct str s)
{
	size_t i;

	for (i = 0; i < s.len; i++)
		if (!http_client_parse_token_char((unsigned char)s.ptr[i]))
			return false;
	return s.len > 0;
}

bool http_header_value_valid(struct str s)
{
	size_t i;

	for (i = 0; i < s.len; i++)
		if (((unsigned char)s.ptr[i] < ' ' && s.ptr[i] != '\t') || s.ptr[i] == 0x7f)
			return false;
	return true;
}

/* Takes a line off the front, without its end. False: none left. */
static bool http_client_parse_next_line(struct str *text, struct str *line)
{
	const char *nl = text->len ? memchr(text->ptr, '\n', text->len) : NULL;
	size_t n = nl ? (size_t)(nl - text->ptr) : 0;

	if (!nl)
		return false;
	*line = (struct str){ text->ptr, n && text->ptr[n - 1] == '\r' ? n - 1 : n };
	text->ptr += n + 1;
	text->len -= n + 1;
	return true;
}

static bool http_client_parse_split_header(struct str line, struct str *name, struct str *value)
{
	const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;

	if (!colon)
		return false;
	*name = (struct str){ line.ptr, (size_t)(colon - line.ptr) };
	*value = str_trim((struct str){ colon + 1, line.len - name->len - 1 });
	return true;
}

bool http_head_get(struct str head, const char *name, struct str *out)
{
	struct str line, n, v;

	while (http_client_parse_next_line(&head, &line)) {
		if (http_client_parse_split_header(line, &n, &v) && str_eq_nocase(n, str_of(name))) {
			*out = v;
			return true;
		}
	}
	return false;
}

/* True if a comma-separated list has the word. */
static bool http_client_parse_list_has(struct str list, const char *word)
{
	while (list.len) {
		const char *comma = memchr(list.ptr, ',', list.len);
		size_t n = comma ? (size_t)(comma - list.ptr) : list.len;

		if (str_eq_nocase(str_trim((struct str){ list.ptr, n }), str_of(word)))
			return true;
		n += comma != NULL;
		list.ptr += n;
		list.len -= n;
	}
	return false;
}

/* A frame of the whole connection: SETTINGS or GOAWAY. */
static bool http_client_parse_is_http2(struct str s)
{
	return s.len >= 9 && s.ptr[0] == 0 && (s.ptr[3] == 4 || s.ptr[3] == 7) &&
		memcmp(s.ptr + 5, "\0\0\0", 4) == 0;
}

static enum err_code http_client_parse_malformed(struct str line, struct err *err)
{
	char shown[64];
	size_t i;

	if (str_has_prefix(line, STR("\x15"))) /* the first byte of an alert */
		return err_set(err, ERR_INVALID, "malformed HTTP response: the server speaks TLS");
	if (http_client_parse_is_http2(line))
		return err_set(err, ERR_INVALID, "malformed HTTP response: the server speaks HTTP/2");
	for (i = 0; i < line.len && i < sizeof(shown) - 1; i++)
		shown[i] = line.ptr[i] >= ' ' && line.ptr[i] < 0x7f ? line.ptr[i] : '.';
	shown[i] = '\0';
	return err_set(err, ERR_INVALID, "malformed HTTP response \"%s\"", shown);
}

/* HTTP/1.1 200 OK */
static enum err_code parse_status(struct http_parser *p, struct str line, struct err *err)
{
	const char *s = line.ptr;

	if (line.len < 12 || memcmp(s, "HTTP/1.", 7) != 0 || (s[7] != '0' && s[7] != '1') ||
		s[8] != ' ' || s[9] < '1' || s[9] > '9' || s[10] < '0' || s[10] > '9' || s[11] < '0' ||
		s[11] > '9' || (line.len > 12 && s[12] != ' ') || !http_header_value_valid(line))
		return http_client_parse_malformed(line, err);
	p->status = (s[9] - '0') * 100 + (s[10] - '0') * 10 + (s[11] - '0');
	p->keep_alive = s[7] == '1';
	p->reason = str_trim((struct str){ s + 12, line.len - 12 });
	return ERR_OK;
}

struct framing {
	bool chunked, has_length;
	uint64_t length;
};

static enum err_code parse_header(
	struct http_parser *p, struct str line, struct framing *f, struct err *err)
{
	struct str name, value;
	uint64_t length;

	if (!http_client_parse_split_header(line, &name, &value) || !http_token_valid(name) ||
		!http_header_value_valid(value))
		return http_client_parse_malformed(line, err);
	if (str_eq_nocase(name, STR("content-length"))) {
		if (!str_to_u64(value, &length) || (f->has_length && f->length != length))
			return http_client_parse_malformed(line, err);
		f->has_length = true;
		f->length = length;
	} else if (str_eq_nocase(name, STR("transfer-encoding"))) {
		if (f->chunked || !str_eq_nocase(value, STR("chunked")))
			return err_set(err, ERR_INVALID, "transfer encoding \"%.*s\" is not supported",
				(int)(value.len < 64 ? value.len : 64), value.ptr);
		f->chunked = true;
	} else if (str_eq_nocase(name, STR("connection"))) {
		if (http_client_parse_list_has(value, "close"))
			p->keep_alive = false;
		else if (http_client_parse_list_has(value, "keep-alive"))
			p->keep_alive = true;
	}
	return ERR_OK;
}

/* The head is complete: what kind of body follows? */
static enum err_code parse_head(struct http_parser *p, struct err *err)
{
	struct str head = buf_str(&p->head), line;
	struct framing f = { 0 };
	enum err_code rc;

	if (!http_client_parse_next_line(&head, &line))
		return http_client_parse_malformed(head, err);
	if ((rc = parse_status(p, line, err)))
		return rc;
	while (http_client_parse_next_line(&head, &line) && line.len)
		if ((rc = parse_header(p, line, &f, err)))
			return rc;
	if (p->status == 101)
		return err_set(err, ERR_INVALID, "server switched protocols unasked");
	if (p->status < 200) { /* an interim answer: the real one follows */
		buf_clear(&p->head);
		p->line_at = 0;
		return ERR_OK;
	}
	if (f.chunked && f.has_length)
		p->keep_alive = false;
	if (p->is_head || p->status == 204 || p->status == 304) {
		p->state = PARSE_DONE;
		return ERR_OK;
	}
	p->stream = p->stream_200 && p->status == 200;
	if (f.chunked) {
		p->state = PARSE_CHUNK_SIZE;
	} else if (f.has_length) {
		if (f.length > p->body_max && !p->stream)
			return err_set(err, ERR_LIMIT, "body size limit exceeded");
		p->left = f.length;
		p->state = f.length ? PARSE_LENGTH : PARSE_DONE;
	} else {
		p->keep_alive = false;
		p->state = PARSE_CLOSE;
	}
	return ERR_OK;
}

/* Up to and with the next line's end, or all there is. */
static struct str http_client_parse_take_line_part(struct str *in)
{
	const char *nl = memchr(in->ptr, '\n', in->len);
	size_t n = nl ? (size_t)(nl - in->ptr) + 1 : in->len;
	struct str part = { in->ptr, n };

	in->ptr += n;
	in->len -= n;
	return part;
}

static enum err_code http_client_parse_count_head(struct http_parser *p, size_t n, struct err *err)
{
	p->head_used += n;
	if (p->head_used > HTTP_HEADER_BYTES_MAX)
		return err_set(
			err, ERR_LIMIT, "response header is larger than %u bytes", HTTP_HEADER_BYTES_MAX);
	return ERR_OK;
}

static enum err_code http_client_parse_feed_head(
	struct http_parser *p, struct str *in, struct err *err)
{
	struct str part = http_client_parse_take_line_part(in);
	enum err_code rc;
	size_t n;

	if ((rc = http_client_parse_count_head(p, part.len, err)))
		return rc;
	buf_add_str(&p->head, part);
	if (buf_failed(&p->head))
		return err_nomem(err, "response header");
	/* the first bytes show that it is not HTTP; do not wait for the deadline */
	n = p->head.len < 7 ? p->head.len : 7;
	if (memcmp(p->head.ptr, "HTTP/1.", n) != 0)
		return http_client_parse_malformed(buf_str(&p->head), err);
	if (part.ptr[part.len - 1] != '\n')
		return ERR_OK;
	n = p->head.len - p->line_at;
	p->line_at = p->head.len;
	if (n == 1 || (n == 2 && p->head.ptr[p->head.len - 2] == '\r'))
		return parse_head(p, err);
	return ERR_OK;
}

static enum err_code http_client_parse_feed_body(
	struct http_parser *p, struct str *in, size_t n, struct err *err)
{
	assert(p->stream || p->body.len <= p->body_max);
	if (!p->stream && n > p->body_max - p->body.len)
		return err_set(err, ERR_LIMIT, "body size limit exceeded");
	p->body_bytes += n;
	buf_add(&p->body, in->ptr, n);
	if (buf_failed(&p->body))
		return err_nomem(err, "response body");
	in->ptr += n;
	in->len -= n;
	return ERR_OK;
}

static size_t http_client_parse_at_most(uint64_t left, size_t n)
{
	return left < n ? (size_t)left : n;
}

static int http_client_parse_hex_digit(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte of "1a;ext\r\n" before a chunk, or of the line end behind it. */
static enum err_code http_client_parse_feed_chunk_frame(
	struct http_parser *p, struct str *in, struct err *err)
{
	unsigned char c = (unsigned char)*in->ptr++;
	int digit = http_client_parse_hex_digit(c);

	in->len--;
	/* framing far larger than its data only keeps us busy */
	if (++p->overhead > HTTP_HEADER_BYTES_MAX + 16 * p->body_bytes)
		return err_set(err, ERR_LIMIT, "chunked encoding with too little data in it");
	if (p->state == PARSE_CHUNK_END) {
		if (c == '\r' && !p->digits++)
			return ERR_OK;
		if (c != '\n')
			return err_set(err, ERR_INVALID, "malformed chunked encoding");
		p->digits = 0;
		p->state = PARSE_CHUNK_SIZE;
		return ERR_OK;
	}
	if (p->state == PARSE_CHUNK_SIZE && digit >= 0) {
		if (++p->digits > CHUNK_DIGITS_MAX)
			return err_set(err, ERR_INVALID, "malformed chunked encoding");
		p->left = p->left << 4 | (unsigned)digit;
		return ERR_OK;
	}
	if (!p->digits || (p->state == PARSE_CHUNK_SIZE && !strchr("; \t\r\n", c)) || !c)
		return err_set(err, ERR_INVALID, "malformed chunked encoding");
	p->state = PARSE_CHUNK_EXT;
	if (++p->line_at > CHUNK_LINE_BYTES_MAX)
		return err_set(
			err, ERR_LIMIT, "chunk extension is larger than %u bytes", CHUNK_LINE_BYTES_MAX);
	if (c == '\n') {
		p->digits = 0;
		p->line_at = 0;
		p->state = p->left ? PARSE_CHUNK_DATA : PARSE_TRAILER;
		if (!p->stream && p->left > p->body_max - p->body.len)
			return err_set(err, ERR_LIMIT, "body size limit exceeded");
	}
	return ERR_OK;
}

/* Lines behind the last chunk are skipped; an empty one is the end. */
static enum err_code http_client_parse_feed_trailer(
	struct http_parser *p, struct str *in, struct err *err)
{
	struct str part = http_client_parse_take_line_part(in);
	bool cr = part.len >= 2 && part.ptr[part.len - 2] == '\r';
	enum err_code rc;

	if ((rc = http_client_parse_count_head(p, part.len, err)))
		return rc;
	p->line_at += part.len;
	if (part.ptr[part.len - 1] != '\n') {
		p->digits = part.len == p->line_at && part.len == 1 &&
			part.ptr[0] == '\r'; /* half an empty line */
		return ERR_OK;
	}
	if (p->line_at == 1 || (p->line_at == 2 && (cr || p->digits)))
		p->state = PARSE_DONE;
	p->line_at = 0;
	p->digits = 0;
	return ERR_OK;
}

enum err_code http_parser_feed(struct http_parser *p, struct str *in, struct err *err)
{
	enum err_code rc = ERR_OK;
	size_t n;

	while (in->len && !rc && p->state != PARSE_DONE) { /* each turn takes at least a byte */
		p->any = true;
		switch (p->state) {
		case PARSE_HEAD:
			rc = http_client_parse_feed_head(p, in, err);
			break;
		case PARSE_CLOSE:
			rc = http_client_parse_feed_body(p, in, in->len, err);
			break;
		case PARSE_LENGTH:
		case PARSE_CHUNK_DATA:
			assert(p->left > 0);
			n = http_client_parse_at_most(p->left, in->len);
			rc = http_client_parse_feed_body(p, in, n, err);
			p->left -= n;
			if (!p->left)
				p->state = p->state == PARSE_LENGTH ? PARSE_DONE : PARSE_CHUNK_END;
			break;
		case PARSE_TRAILER:
			rc = http_client_parse_feed_trailer(p, in, err);
			break;
		default:
			rc = http_client_parse_feed_chunk_frame(p, in, err);
		}
	}
	return rc;
}

enum err_code http_parser_eof(struct http_parser *p, struct err *err)
{
	if (p->state == PARSE_DONE)
		return ERR_OK;
	if (p->state == PARSE_CLOSE) {
		p->state = PARSE_DONE;
		return ERR_OK;
	}
	return err_set(
		err, ERR_UNAVAILABLE, p->any ? "unexpected EOF" : "connection closed without an answer");
}
