/* zstd of whole messages: what is inflated, what is refused. */
#include "base/gzip/zstd.h"

#include <stdlib.h>
#include <zstd.h>

#include "tests/check.h"

static void compress(struct str raw, int level, struct buf *out)
{
	size_t n;

	buf_reserve(out, ZSTD_compressBound(raw.len));
	n = ZSTD_compress(out->ptr + out->len, ZSTD_compressBound(raw.len), raw.ptr, raw.len, level);
	CHECK(!ZSTD_isError(n));
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
	compress(buf_str(&raw), 3, &body);
	compress(STR("tail"), 1, &body);
	buf_add_cstr(&raw, "tail");
	REQUIRE_OK(zstd_inflate(&a, buf_str(&body), "request", raw.len, &out, &err), &err);
	CHECK(str_eq(out, buf_str(&raw)));
	CHECK_ERR(zstd_inflate(&a, buf_str(&body), "request", raw.len - 1, &out, &err), &err, ERR_LIMIT,
		arena_printf(&a, "zstd: request inflates to more than %zu bytes", raw.len - 1));
	buf_clear(&body);
	compress(STR(""), 1, &body);
	REQUIRE_OK(zstd_inflate(&a, buf_str(&body), "request", 0, &out, &err), &err);
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
	compress(buf_str(&raw), 3, &body);
	for (size_t n = 1; n < body.len; n++)
		CHECK_INT(zstd_inflate(&a, (struct str){ body.ptr, n }, "request", 1u << 20, &out, &err),
			ERR_INVALID);
	CHECK_ERR(
		zstd_inflate(&a, (struct str){ body.ptr, body.len - 1 }, "request", 1u << 20, &out, &err),
		&err, ERR_INVALID, "zstd: request is cut short");
	CHECK_INT(zstd_inflate(&a, STR("no zstd"), "request", 1u << 20, &out, &err), ERR_INVALID);
	arena_release(&a);
	buf_release(&raw);
	buf_release(&body);
}
