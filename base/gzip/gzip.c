/*
 * gzip (RFC 1952) around libdeflate's inflate. The members' headers and trailers are read here, so
 * that we refuse what Go's compress/gzip refuses: Go checks a header's own checksum and ignores
 * reserved flags, libdeflate does neither.
 *
 * libdeflate wants the whole output at once. A trailer gives its size, modulo 2^32. We believe it
 * as far as deflate could have reached it from the bytes given, and up to the limit. If it was
 * wrong (several members), the room doubles and the member starts again: at most twice the work.
 */
#include <assert.h>
#include <libdeflate.h>
#include <stdio.h>

#include "base/gzip/gzip.h"

#define HEADER_BYTES 10
#define TRAILER_BYTES 8
#define TEXT_BYTES_MAX 512 /* of a file name or comment with its NUL, as in Go */
#define DEFLATE_RATIO_MAX 1032 /* a match of 258 bytes in two bits */
#define ROOM_MIN 4096
/* libdeflate is at its quickest until 299 bytes before the end of its room. */
#define ROOM_SPARE 320

enum { FLAG_HEADER_CRC = 2, FLAG_EXTRA = 4, FLAG_NAME = 8, FLAG_COMMENT = 16 };

static uint32_t gzip_u32le(const unsigned char *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

bool gzip_is(struct str s)
{
	return s.len >= 2 && (unsigned char)s.ptr[0] == 0x1f && (unsigned char)s.ptr[1] == 0x8b;
}

static const unsigned char *gzip_skip_text(const unsigned char *at, const unsigned char *end)
{
	size_t left = (size_t)(end - at);
	const unsigned char *nul = memchr(at, 0, left < TEXT_BYTES_MAX ? left : TEXT_BYTES_MAX);

	return nul ? nul + 1 : NULL;
}

/* The position behind a member's header, or NULL. */
static const unsigned char *gzip_skip_header(const unsigned char *at, const unsigned char *end)
{
	const unsigned char *begin = at;
	unsigned flags, crc;

	if (end - at < HEADER_BYTES || at[0] != 0x1f || at[1] != 0x8b || at[2] != 8)
		return NULL;
	flags = at[3];
	at += HEADER_BYTES;
	if (flags & FLAG_EXTRA) {
		if (end - at < 2 || end - at - 2 < (at[0] | at[1] << 8))
			return NULL;
		at += 2 + (at[0] | at[1] << 8);
	}
	if ((flags & FLAG_NAME) && !(at = gzip_skip_text(at, end)))
		return NULL;
	if ((flags & FLAG_COMMENT) && !(at = gzip_skip_text(at, end)))
		return NULL;
	if (flags & FLAG_HEADER_CRC) {
		if (end - at < 2)
			return NULL;
		crc = libdeflate_crc32(0, begin, (size_t)(at - begin));
		if ((crc & 0xffff) != (at[0] | (unsigned)at[1] << 8))
			return NULL;
		at += 2;
	}
	return at;
}

struct inflater {
	struct libdeflate_decompressor *z;
	struct arena *a;
	size_t raw_max;
	const char *what; /* is inflated; for errors */
	char *out;
	size_t used, room;
	struct err *err;
};

/* Gives more room and keeps the bytes so far. */
static enum err_code inflater_grow(struct inflater *inflater, size_t want)
{
	size_t room = (want < ROOM_MIN ? ROOM_MIN : want) + ROOM_SPARE;
	char *wide, name[64];

	if (inflater->room >= inflater->raw_max && inflater->out)
		return err_set(inflater->err, ERR_LIMIT, "%s is more than %zu bytes inflated, the limit",
			inflater->what, inflater->raw_max);
	if (room > inflater->raw_max)
		room = inflater->raw_max;
	if (!(wide = arena_alloc_raw(inflater->a, room ? room : 1, 1))) {
		snprintf(name, sizeof(name), "inflated %s", inflater->what);
		return arena_fail(inflater->a, name, inflater->err);
	}
	if (inflater->used)
		memcpy(wide, inflater->out, inflater->used);
	inflater->out = wide;
	inflater->room = room;
	return ERR_OK;
}

/* One member's deflate stream and trailer; *at moves behind it. */
static enum err_code inflater_inflate_member(
	struct inflater *inflater, const unsigned char **at, const unsigned char *end)
{
	enum libdeflate_result result;
	size_t in_used, out_used;
	enum err_code rc;

	for (;;) {
		result = libdeflate_deflate_decompress_ex(inflater->z, *at, (size_t)(end - *at),
			inflater->out + inflater->used, inflater->room - inflater->used, &in_used, &out_used);
		if (result != LIBDEFLATE_INSUFFICIENT_SPACE)
			break;
		if ((rc = inflater_grow(inflater, inflater->room * 2)))
			return rc;
	}
	if (result != LIBDEFLATE_SUCCESS)
		return err_set(inflater->err, ERR_INVALID, "gzip: bad or truncated deflate data");
	*at += in_used;
	if (end - *at < TRAILER_BYTES)
		return err_set(inflater->err, ERR_INVALID, "gzip: truncated trailer");
	if (gzip_u32le(*at) != libdeflate_crc32(0, inflater->out + inflater->used, out_used))
		return err_set(inflater->err, ERR_INVALID, "gzip: wrong checksum");
	if (gzip_u32le(*at + 4) != (uint32_t)out_used)
		return err_set(inflater->err, ERR_INVALID, "gzip: wrong size in the trailer");
	*at += TRAILER_BYTES;
	inflater->used += out_used;
	return ERR_OK;
}

size_t gzip_raw_hint(struct str body)
{
	size_t hint = body.len > TRAILER_BYTES ?
		gzip_u32le((const unsigned char *)body.ptr + body.len - 4) :
		0;

	return hint / DEFLATE_RATIO_MAX > body.len ? body.len * 4 : hint;
}

static enum err_code inflater_inflate_members(struct inflater *inflater, struct str body)
{
	const unsigned char *begin = (const unsigned char *)body.ptr, *at = begin, *end = at + body.len;
	enum err_code rc;

	if ((rc = inflater_grow(inflater, gzip_raw_hint(body))))
		return rc;
	while (at < end) {
		const unsigned char *member = at;

		if (!(at = gzip_skip_header(at, end))) {
			if (member == begin)
				return err_set(inflater->err, ERR_INVALID, "gzip: bad header");
			return err_set(inflater->err, ERR_INVALID,
				"gzip: %zu bytes after the last member are not gzip", (size_t)(end - member));
		}
		if ((rc = inflater_inflate_member(inflater, &at, end)))
			return rc;
	}
	return ERR_OK;
}

enum err_code gzip_inflate(struct arena *a, struct str body, const char *what, size_t raw_max,
	struct str *out, struct err *err)
{
	struct inflater f = { .a = a, .what = what, .raw_max = raw_max, .err = err };
	enum err_code rc;

	if (!(f.z = libdeflate_alloc_decompressor()))
		return err_nomem(err, "gzip");
	rc = inflater_inflate_members(&f, body);
	libdeflate_free_decompressor(f.z);
	if (rc)
		return rc;
	*out = (struct str){ f.out, f.used };
	return ERR_OK;
}

enum err_code gzip_compress(struct str raw, int level, struct buf *out, struct err *err)
{
	struct libdeflate_compressor *z = libdeflate_alloc_compressor(level);
	size_t n;

	assert(level >= 1 && level <= 9);
	if (!z)
		return err_nomem(err, "gzip");
	n = libdeflate_gzip_compress_bound(z, raw.len);
	if (!buf_reserve(out, n)) {
		libdeflate_free_compressor(z);
		return err_nomem(err, "gzip");
	}
	out->len += libdeflate_gzip_compress(z, raw.ptr, raw.len, out->ptr + out->len, n);
	libdeflate_free_compressor(z);
	return ERR_OK;
}
