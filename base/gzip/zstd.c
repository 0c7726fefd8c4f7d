#include "base/gzip/zstd.h"

#include <zstd.h>

#define WINDOW_LOG_MAX 23
#define FIRST_BYTES 65536u
#define MAGIC STR("\x28\xb5\x2f\xfd")

bool zstd_is(struct str s)
{
	return str_has_prefix(s, MAGIC);
}

static enum err_code zstd_refuse(const char *what, size_t code, struct err *err)
{
	return err_set(err, ERR_INVALID, "zstd: %s: %s", what, ZSTD_getErrorName(code));
}

static enum err_code zstd_inflate_all(ZSTD_DCtx *context, struct str body, const char *what,
	size_t raw_max, struct buf *out, struct err *err)
{
	ZSTD_inBuffer in = { body.ptr, body.len, 0 };
	size_t left = 1;

	/* One byte more than allowed tells a body that is just as long from a longer one. */
	while (in.pos < in.size || left) {
		size_t had = in.pos, room = out->len < FIRST_BYTES ? FIRST_BYTES : out->len;
		ZSTD_outBuffer to;

		if (room > raw_max + 1 - out->len)
			room = raw_max + 1 - out->len;
		if (!buf_reserve(out, room))
			return err_nomem(err, what);
		to = (ZSTD_outBuffer){ out->ptr + out->len, room, 0 };
		left = ZSTD_decompressStream(context, &to, &in);
		if (ZSTD_isError(left))
			return zstd_refuse(what, left, err);
		out->len += to.pos;
		if (out->len > raw_max)
			return err_set(
				err, ERR_LIMIT, "zstd: %s inflates to more than %zu bytes", what, raw_max);
		if (in.pos == had && !to.pos && left)
			return err_set(err, ERR_INVALID, "zstd: %s is cut short", what);
	}
	return ERR_OK;
}

enum err_code zstd_inflate(struct arena *a, struct str body, const char *what, size_t raw_max,
	struct str *out, struct err *err)
{
	ZSTD_DCtx *z = ZSTD_createDCtx();
	struct buf raw = { 0 };
	struct str copy;
	enum err_code rc;

	if (!z)
		return err_nomem(err, what);
	ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	rc = zstd_inflate_all(z, body, what, raw_max, &raw, err);
	ZSTD_freeDCtx(z);
	if (!rc) {
		copy = str_dup(a, buf_str(&raw));
		rc = copy.ptr ? ERR_OK : arena_fail(a, what, err);
	}
	if (!rc)
		*out = copy;
	buf_release(&raw);
	return rc;
}
