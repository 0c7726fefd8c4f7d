#include "base/gzip/lz4.h"

#include <lz4frame.h>

#define MAGIC STR("\x04\x22\x4d\x18")
#define FIRST_BYTES 65536u

bool lz4_is(struct str s)
{
	return str_has_prefix(s, MAGIC);
}

static enum err_code lz4_inflate_all(LZ4F_dctx *context, struct str body, const char *what,
	size_t raw_max, struct buf *out, struct err *err)
{
	size_t at = 0, left = 1, in, room;

	/* One byte more than allowed tells a body that is just as long from a longer one. */
	while (at < body.len || left) {
		room = out->len < FIRST_BYTES ? FIRST_BYTES : out->len;
		if (room > raw_max + 1 - out->len)
			room = raw_max + 1 - out->len;
		if (!buf_reserve(out, room))
			return err_nomem(err, what);
		in = body.len - at;
		left = LZ4F_decompress(context, out->ptr + out->len, &room, body.ptr + at, &in, NULL);
		if (LZ4F_isError(left))
			return err_set(err, ERR_INVALID, "lz4: %s: %s", what, LZ4F_getErrorName(left));
		at += in;
		out->len += room;
		if (out->len > raw_max)
			return err_set(
				err, ERR_LIMIT, "lz4: %s inflates to more than %zu bytes", what, raw_max);
		if (!in && !room && left)
			return err_set(err, ERR_INVALID, "lz4: %s is cut short", what);
	}
	return ERR_OK;
}

enum err_code lz4_inflate(struct arena *a, struct str body, const char *what, size_t raw_max,
	struct str *out, struct err *err)
{
	LZ4F_dctx *z = NULL;
	struct buf raw = { 0 };
	struct str copy;
	enum err_code rc;

	if (LZ4F_isError(LZ4F_createDecompressionContext(&z, LZ4F_VERSION)))
		return err_nomem(err, what);
	rc = lz4_inflate_all(z, body, what, raw_max, &raw, err);
	LZ4F_freeDecompressionContext(z);
	if (!rc) {
		copy = str_dup(a, buf_str(&raw));
		rc = copy.ptr ? ERR_OK : arena_fail(a, what, err);
	}
	if (!rc)
		*out = copy;
	buf_release(&raw);
	return rc;
}
