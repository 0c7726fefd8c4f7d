#include "base/gzip/zstd.h"

#include <zstd.h>

#include "base/gzip/frames.h"

#define WINDOW_LOG_MAX 23
#define MAGIC STR("\x28\xb5\x2f\xfd")

bool zstd_is(struct str s)
{
	return str_has_prefix(s, MAGIC);
}

static const char *zstd_step(
	void *context, struct str in, size_t *taken, char *to, size_t *made, size_t *left)
{
	ZSTD_inBuffer from = { in.ptr, in.len, 0 };
	ZSTD_outBuffer out = { to, *made, 0 };

	*left = ZSTD_decompressStream(context, &out, &from);
	*taken = from.pos;
	*made = out.pos;
	return ZSTD_isError(*left) ? ZSTD_getErrorName(*left) : NULL;
}

enum err_code zstd_inflate(struct arena *a, struct str body, const char *what, size_t raw_max,
	struct str *out, struct err *err)
{
	static const struct frames_coding zstd = { "zstd", zstd_step };
	ZSTD_DCtx *z = ZSTD_createDCtx();
	enum err_code rc;

	if (!z)
		return err_nomem(err, what);
	ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	rc = frames_inflate(&zstd, z, a, body, what, raw_max, out, err);
	ZSTD_freeDCtx(z);
	return rc;
}
