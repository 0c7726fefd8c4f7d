/* zstd and lz4 of whole messages: what is inflated, what is refused. */
#include <lz4frame.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/gzip/lz4.h"
#include "base/gzip/zstd.h"
#include "tests/check.h"

static void compress_zstd(struct str raw, bool plain, struct buf *out)
{
	size_t n;

	buf_reserve(out, ZSTD_compressBound(raw.len));
	n = ZSTD_compress(
		out->ptr + out->len, ZSTD_compressBound(raw.len), raw.ptr, raw.len, plain ? 1 : 3);
	CHECK(!ZSTD_isError(n));
	out->len += n;
}

/* With linked blocks of 64 KiB, or the whole size in the header; and a checksum, or none. */
static void compress_lz4(struct str raw, bool plain, struct buf *out)
{
	LZ4F_preferences_t how = { .frameInfo = {
								   .contentChecksumFlag = LZ4F_contentChecksumEnabled } };
	size_t n;

	if (plain)
		how.frameInfo = (LZ4F_frameInfo_t){ .blockMode = LZ4F_blockIndependent,
			.contentSize = raw.len };
	n = LZ4F_compressFrameBound(raw.len, &how);
	buf_reserve(out, n);
	n = LZ4F_compressFrame(out->ptr + out->len, n, raw.ptr, raw.len, &how);
	CHECK(!LZ4F_isError(n));
	out->len += n;
}

static const struct coding {
	const char *name;
	void (*compress)(struct str raw, bool plain, struct buf *out);
	enum err_code (*inflate)(struct arena *a, struct str body, const char *what, size_t raw_max,
		struct str *out, struct err *err);
	const char *damaged; /* of a message whose last byte is another */
} codings[] = {
	{ "zstd", compress_zstd, zstd_inflate, NULL }, /* these frames have no checksum */
	{ "lz4", compress_lz4, lz4_inflate, "lz4: request: ERROR_contentChecksum_invalid" },
};

#define CODINGS (sizeof(codings) / sizeof(codings[0]))

static void check_frames(const struct coding *c, struct arena *a)
{
	struct buf raw = { 0 }, body = { 0 };
	struct str out;
	struct err err;

	for (int i = 0; i < 300000; i++)
		buf_printf(&raw, "%d,", i % 1000);
	c->compress(buf_str(&raw), false, &body);
	c->compress(STR("tail"), true, &body);
	buf_add_cstr(&raw, "tail");
	REQUIRE_OK(c->inflate(a, buf_str(&body), "request", raw.len, &out, &err), &err);
	CHECK(str_eq(out, buf_str(&raw)));
	CHECK_ERR(c->inflate(a, buf_str(&body), "request", raw.len - 1, &out, &err), &err, ERR_LIMIT,
		arena_printf(a, "%s: request inflates to more than %zu bytes", c->name, raw.len - 1));
	buf_clear(&body);
	c->compress(STR(""), true, &body);
	REQUIRE_OK(c->inflate(a, buf_str(&body), "request", 0, &out, &err), &err);
	CHECK_INT(out.len, 0);
	buf_release(&raw);
	buf_release(&body);
}

TEST(frames_one_after_the_other_are_one_message)
{
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < CODINGS; i++)
		check_frames(&codings[i], &a);
	arena_release(&a);
}

static void check_damage(const struct coding *c, struct arena *a)
{
	struct buf raw = { 0 }, body = { 0 };
	struct str out;
	struct err err;

	for (int i = 0; i < 200; i++)
		buf_printf(&raw, "%d,", i * i);
	c->compress(buf_str(&raw), false, &body);
	for (size_t n = 1; n < body.len; n++)
		CHECK_INT(c->inflate(a, (struct str){ body.ptr, n }, "request", 1u << 20, &out, &err),
			ERR_INVALID);
	CHECK_ERR(
		c->inflate(a, (struct str){ body.ptr, body.len - 1 }, "request", 1u << 20, &out, &err),
		&err, ERR_INVALID, arena_printf(a, "%s: request is cut short", c->name));
	CHECK_INT(
		c->inflate(a, str_of(arena_printf(a, "no %s", c->name)), "request", 1u << 20, &out, &err),
		ERR_INVALID);
	body.ptr[body.len - 1] ^= 1;
	if (c->damaged)
		CHECK_ERR(c->inflate(a, buf_str(&body), "request", 1u << 20, &out, &err), &err, ERR_INVALID,
			c->damaged);
	buf_release(&raw);
	buf_release(&body);
}

TEST(what_is_cut_or_damaged_is_refused)
{
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < CODINGS; i++)
		check_damage(&codings[i], &a);
	arena_release(&a);
}
