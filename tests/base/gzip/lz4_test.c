/* lz4 of whole messages: what is inflated, what is refused. */
#include "base/gzip/lz4.h"

#include <lz4frame.h>
#include <stdlib.h>

#include "tests/check.h"

/* With linked blocks of 64 KiB, or the whole size in the header; and a checksum, or none. */
static void compress(struct str raw, bool plain, struct buf *out)
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

TEST(frames_one_after_the_other_are_one_message)
{
	struct buf raw = { 0 }, body = { 0 };
	struct arena a;
	struct str out;
	struct err err;

	arena_init(&a, 0);
	for (int i = 0; i < 300000; i++)
		buf_printf(&raw, "%d,", i % 1000);
	compress(buf_str(&raw), false, &body);
	compress(STR("tail"), true, &body);
	buf_add_cstr(&raw, "tail");
	REQUIRE_OK(lz4_inflate(&a, buf_str(&body), "request", raw.len, &out, &err), &err);
	CHECK(str_eq(out, buf_str(&raw)));
	CHECK_ERR(lz4_inflate(&a, buf_str(&body), "request", raw.len - 1, &out, &err), &err, ERR_LIMIT,
		arena_printf(&a, "lz4: request inflates to more than %zu bytes", raw.len - 1));
	buf_clear(&body);
	compress(STR(""), true, &body);
	REQUIRE_OK(lz4_inflate(&a, buf_str(&body), "request", 0, &out, &err), &err);
	CHECK_INT(out.len, 0);
	arena_release(&a);
	buf_release(&raw);
	buf_release(&body);
}

TEST(what_is_cut_or_damaged_is_refused)
{
	struct buf raw = { 0 }, body = { 0 };
	struct arena a;
	struct str out;
	struct err err;

	arena_init(&a, 0);
	for (int i = 0; i < 200; i++)
		buf_printf(&raw, "%d,", i * i);
	compress(buf_str(&raw), false, &body);
	for (size_t n = 1; n < body.len; n++)
		CHECK_INT(lz4_inflate(&a, (struct str){ body.ptr, n }, "request", 1u << 20, &out, &err),
			ERR_INVALID);
	CHECK_ERR(
		lz4_inflate(&a, (struct str){ body.ptr, body.len - 1 }, "request", 1u << 20, &out, &err),
		&err, ERR_INVALID, "lz4: request is cut short");
	CHECK_INT(lz4_inflate(&a, STR("no lz4"), "request", 1u << 20, &out, &err), ERR_INVALID);
	body.ptr[body.len - 1] ^= 1;
	CHECK_ERR(lz4_inflate(&a, buf_str(&body), "request", 1u << 20, &out, &err), &err, ERR_INVALID,
		"lz4: request: ERROR_contentChecksum_invalid");
	arena_release(&a);
	buf_release(&raw);
	buf_release(&body);
}
