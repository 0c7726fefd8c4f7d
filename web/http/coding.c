/* Codings of answers: which one the client takes best, and whole bodies in it. */
#include <zstd.h>

#include "base/gzip/gzip.h"
#include "web/http/http.h"

/*
 * The weight of a coding, in thousandths: 1000 without one; -1: it is not in the list. What is no
 * weight counts as 0, which refuses.
 */
static int coding_weight_of(struct str params)
{
	ptrdiff_t at = str_find(params, STR("q="));
	size_t i = (size_t)at + 2;
	int weight = 0, digit = 1000;

	if (at < 0)
		return 1000;
	for (; i < params.len && digit; i++) {
		char c = params.ptr[i];

		if (c == '.' && digit == 100)
			continue;
		if (c < '0' || c > '9')
			break;
		weight += (c - '0') * digit;
		digit /= 10;
	}
	return weight;
}

static int coding_weight(const struct http_in *in, const char *coding)
{
	struct str rest = in->accept_encoding;

	while (rest.len) {
		const char *comma = memchr(rest.ptr, ',', rest.len);
		struct str item = { rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len };
		const char *semicolon = memchr(item.ptr, ';', item.len);
		struct str name = { item.ptr, semicolon ? (size_t)(semicolon - item.ptr) : item.len };
		size_t taken = item.len + (comma != NULL);

		if (str_is(str_trim(name), coding))
			return coding_weight_of((struct str){ item.ptr + name.len, item.len - name.len });
		rest = (struct str){ rest.ptr + taken, rest.len - taken };
	}
	return -1;
}

bool http_takes_gzip(const struct http_in *in)
{
	return coding_weight(in, "gzip") > 0;
}

enum http_coding http_coding_of(const struct http_in *in)
{
	int gzip = coding_weight(in, "gzip"), zstd = coding_weight(in, "zstd");

	if (zstd > 0 && zstd >= gzip)
		return HTTP_ZSTD;
	return gzip > 0 ? HTTP_GZIP : HTTP_PLAIN;
}

void http_add_coding(struct http_out *out, enum http_coding coding)
{
	if (coding == HTTP_PLAIN)
		return;
	http_add_header(out, "Content-Encoding", coding == HTTP_ZSTD ? STR("zstd") : STR("gzip"));
	http_add_header(out, "Vary", STR("Accept-Encoding"));
}

static enum err_code coding_add_zstd(struct str raw, struct buf *out, struct err *err)
{
	size_t room = ZSTD_compressBound(raw.len), n;

	if (!buf_reserve(out, room))
		return err_nomem(err, "answer");
	n = ZSTD_compress(out->ptr + out->len, room, raw.ptr, raw.len, CODING_ZSTD_LEVEL);
	if (ZSTD_isError(n))
		return err_nomem(err, "answer");
	out->len += n;
	return ERR_OK;
}

enum err_code coding_add(enum http_coding coding, struct str raw, struct buf *out, struct err *err)
{
	if (coding == HTTP_ZSTD)
		return coding_add_zstd(raw, out, err);
	return gzip_compress(raw, CODING_GZIP_LEVEL, out, err);
}
