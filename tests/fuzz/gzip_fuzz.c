/*
 * fuzz: proto
 * Bodies as a target might send them, inflated within a limit. zlib, another program, says
 * whether what comes out is right; that the limit holds is checked for each body.
 */
#include <stdlib.h>
#include <zlib.h>

#include "base/gzip/gzip.h"
#include "base/gzip/lz4.h"
#include "base/gzip/zstd.h"
#include "proto/pprof.h"
#include "tests/fuzz/fuzz.h"

#define RAW_BYTES_MAX (256u << 10)

/* All members as zlib inflates them: the bytes must be the ones given. */
static void check_with_zlib(const uint8_t *body, size_t len, struct str raw)
{
	unsigned char *out = malloc(RAW_BYTES_MAX + 1);
	z_stream z = { .next_in = (Bytef *)(uintptr_t)body, .avail_in = (uInt)len };
	size_t at = 0;
	int rc;

	require(out && inflateInit2(&z, 15 + 16) == Z_OK);
	do {
		z.next_out = out + at;
		z.avail_out = (uInt)(RAW_BYTES_MAX + 1 - at);
		rc = inflate(&z, Z_FINISH);
		at += (RAW_BYTES_MAX + 1 - at) - z.avail_out;
	} while (rc == Z_STREAM_END && z.avail_in && inflateReset(&z) == Z_OK);
	/* zlib refuses reserved flags and what it calls too far back; what it accepts must agree. */
	if (rc == Z_STREAM_END)
		require(at == raw.len && !memcmp(out, raw.ptr, at));
	inflateEnd(&z);
	free(out);
}

static bool is_compressed(struct str body)
{
	return gzip_is(body) || zstd_is(body) || lz4_is(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pprof_limits limits = pprof_limits_default;
	struct str raw, body = { (const char *)data, size };
	struct buf gz = { 0 };
	struct arena a;
	struct err err;

	limits.raw_bytes_max = RAW_BYTES_MAX;
	arena_init(&a, 4 * RAW_BYTES_MAX);
	if (!pprof_inflate(&a, body, &limits, &raw, &err)) {
		require(raw.len && raw.len <= RAW_BYTES_MAX);
		if (gzip_is(body))
			check_with_zlib(data, size, raw);
		else if (!is_compressed(body))
			require(raw.ptr == body.ptr && raw.len == body.len);
	} else {
		require(err.msg[0] != '\0');
	}
	arena_release(&a);

	/* Our own compression inflates to the same bytes; an empty body or one compressed twice is
	 * refused. */
	arena_init(&a, 0);
	require(!gzip_compress(body, 1, &gz, &err));
	if (!pprof_inflate(&a, buf_str(&gz), &pprof_limits_default, &raw, &err))
		require(str_eq(raw, body));
	else
		require(!size || is_compressed(body));
	arena_release(&a);
	buf_release(&gz);
	return 0;
}
