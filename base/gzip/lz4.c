#include "base/gzip/lz4.h"

#include <lz4frame.h>

#include "base/gzip/frames.h"

#define MAGIC STR("\x04\x22\x4d\x18")

bool lz4_is(struct str s)
{
	return str_has_prefix(s, MAGIC);
}

static const char *lz4_step(
	void *context, struct str in, size_t *taken, char *to, size_t *made, size_t *left)
{
	*taken = in.len;
	*left = LZ4F_decompress(context, to, made, in.ptr, taken, NULL);
	return LZ4F_isError(*left) ? LZ4F_getErrorName(*left) : NULL;
}

enum err_code lz4_inflate(struct arena *a, struct str body, const char *what, size_t raw_max,
	struct str *out, struct err *err)
{
	static const struct frames_coding lz4 = { "lz4", lz4_step };
	LZ4F_dctx *z = NULL;
	enum err_code rc;

	if (LZ4F_isError(LZ4F_createDecompressionContext(&z, LZ4F_VERSION)))
		return err_nomem(err, what);
	rc = frames_inflate(&lz4, z, a, body, what, raw_max, out, err);
	LZ4F_freeDecompressionContext(z);
	return rc;
}
