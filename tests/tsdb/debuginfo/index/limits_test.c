#include "tests/check.h"
#include "tsdb/debuginfo/index/symindex.h"

static struct err err;

static struct symindex_builder *builder(const struct symindex_limits *l)
{
	struct symindex_builder *b = NULL;

	CHECK_OK(symindex_builder_open(l, &b, &err), &err);
	return b;
}

static uint32_t simple_frame(struct symindex_builder *b, const char *name)
{
	uint32_t f = 0, frame = 0;

	CHECK_OK(symindex_function(b, str_of(name), SYMINDEX_NONE, 0, &f, &err), &err);
	CHECK_OK(symindex_frame(b, SYMINDEX_NONE, f, SYMINDEX_NONE, 0, &frame, &err), &err);
	return frame;
}

TEST(each_limit_is_named)
{
	const struct symindex_limits l = { 10, 3, 3, 2 };
	struct symindex_builder *b = builder(&l);
	struct buf out = { 0 };
	char id_text[SYMINDEX_BUILD_ID_MAX + 1];
	uint32_t f, frame, id;

	REQUIRE(b);
	CHECK_OK(symindex_function(b, STR("12345"), SYMINDEX_NONE, 0, &f, &err), &err);
	CHECK_OK(symindex_function(b, STR("67890"), SYMINDEX_NONE, 0, &id, &err), &err);
	CHECK_OK(symindex_function(b, STR("67890"), SYMINDEX_NONE, 0, &id, &err), &err);
	CHECK_ERR(symindex_function(b, STR("1"), SYMINDEX_NONE, 0, &id, &err), &err, ERR_LIMIT,
		"symbol index: names and paths of more than 10 bytes, the limit");
	CHECK_ERR(symindex_function(b, STR("12345"), SYMINDEX_NONE, 7, &id, &err), &err, ERR_LIMIT,
		"symbol index: more than 2 functions, the limit");
	for (uint32_t line = 0; line < 3; line++)
		CHECK_OK(symindex_frame(b, SYMINDEX_NONE, f, SYMINDEX_NONE, line, &frame, &err), &err);
	CHECK_ERR(symindex_frame(b, SYMINDEX_NONE, f, SYMINDEX_NONE, 3, &id, &err), &err, ERR_LIMIT,
		"symbol index: more than 3 frames, the limit");
	for (uint64_t at = 0; at < 3; at++)
		CHECK_OK(symindex_add(b, at, at + 1, frame, SYMINDEX_LINES, &err), &err);
	CHECK_OK(symindex_add(b, 9, 9, frame, SYMINDEX_LINES, &err), &err);
	CHECK_ERR(symindex_add(b, 3, 4, frame, SYMINDEX_LINES, &err), &err, ERR_LIMIT,
		"symbol index: more than 3 segments, the limit");
	memset(id_text, 'a', sizeof(id_text));
	CHECK_ERR(symindex_finish(b, (struct str){ id_text, sizeof(id_text) }, &out, &err), &err,
		ERR_LIMIT, "symbol index: build id of 129 bytes, limit 128");
	symindex_builder_close(b);
	buf_release(&out);
}

TEST(calls_as_deep_as_they_may_be)
{
	struct symindex_builder *b = builder(&symindex_limits_default);
	static struct symindex_location v[SYMINDEX_DEPTH_MAX];
	uint32_t f, frame = SYMINDEX_NONE, id;
	struct buf out = { 0 };
	struct symindex *x;

	REQUIRE(b);
	CHECK_OK(symindex_function(b, STR("f"), SYMINDEX_NONE, 0, &f, &err), &err);
	for (uint32_t i = 0; i < SYMINDEX_DEPTH_MAX; i++)
		REQUIRE_OK(symindex_frame(b, frame, f, SYMINDEX_NONE, i, &frame, &err), &err);
	CHECK_OK(symindex_add(b, 5, 6, frame, SYMINDEX_DWARF, &err), &err);
	CHECK_OK(symindex_finish(b, STR(""), &out, &err), &err);
	symindex_builder_close(b);
	REQUIRE_OK(symindex_open(buf_str(&out), &x, &err), &err);
	CHECK_INT(symindex_find(x, 5, v, 10), SYMINDEX_DEPTH_MAX);
	CHECK_INT(v[9].line, SYMINDEX_DEPTH_MAX - 10);
	CHECK_INT(symindex_find(x, 5, NULL, 0), SYMINDEX_DEPTH_MAX);
	CHECK_INT(symindex_find(x, 5, v, SYMINDEX_DEPTH_MAX), SYMINDEX_DEPTH_MAX);
	CHECK_INT(v[SYMINDEX_DEPTH_MAX - 1].line, 0);
	CHECK_OK(symindex_damaged(x, &err), &err);
	symindex_close(x);

	REQUIRE((b = builder(&symindex_limits_default)));
	CHECK_OK(symindex_function(b, STR("f"), SYMINDEX_NONE, 0, &f, &err), &err);
	frame = SYMINDEX_NONE;
	for (uint32_t i = 0; i < SYMINDEX_DEPTH_MAX; i++)
		REQUIRE_OK(symindex_frame(b, frame, f, SYMINDEX_NONE, i, &frame, &err), &err);
	CHECK_ERR(symindex_frame(b, frame, f, SYMINDEX_NONE, 0, &id, &err), &err, ERR_LIMIT,
		"symbol index: inlined calls nested more than 1000 deep");
	symindex_builder_close(b);
	buf_release(&out);
}

/* Addresses of all 64 bits: as of a kernel, with variables of each processor at 0. */
TEST(addresses_far_apart)
{
	struct symindex_builder *b = builder(&symindex_limits_default);
	struct symindex_location v;
	struct buf out = { 0 };
	struct symindex *x;

	REQUIRE(b);
	CHECK_OK(symindex_add(b, 0, 8, simple_frame(b, "low"), SYMINDEX_SYMBOLS, &err), &err);
	CHECK_OK(symindex_add(b, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1, simple_frame(b, "middle"),
				 SYMINDEX_SYMBOLS, &err),
		&err);
	CHECK_OK(symindex_add(
				 b, UINT64_MAX - 4, UINT64_MAX, simple_frame(b, "high"), SYMINDEX_SYMBOLS, &err),
		&err);
	CHECK_OK(symindex_finish(b, STR(""), &out, &err), &err);
	symindex_builder_close(b);
	REQUIRE_OK(symindex_open(buf_str(&out), &x, &err), &err);
	CHECK_INT(symindex_find(x, 7, &v, 1), 1);
	CHECK_STR(v.name, "low");
	CHECK_INT(symindex_find(x, 8, &v, 1), 0);
	CHECK_INT(symindex_find(x, UINT64_C(1) << 63, &v, 1), 1);
	CHECK_STR(v.name, "middle");
	CHECK_INT(symindex_find(x, (UINT64_C(1) << 63) + 1, &v, 1), 0);
	CHECK_INT(symindex_find(x, UINT64_MAX - 1, &v, 1), 1);
	CHECK_STR(v.name, "high");
	CHECK_INT(symindex_find(x, UINT64_MAX, &v, 1), 0);
	CHECK_OK(symindex_damaged(x, &err), &err);
	symindex_close(x);
	buf_release(&out);
}

/* A wide range of good quality hides many; many around each other are too many at some time. */
TEST(ranges_over_each_other)
{
	struct symindex_builder *b = builder(&symindex_limits_default);
	struct symindex_location v;
	struct buf out = { 0 };
	struct symindex *x;
	uint32_t one, two;

	REQUIRE(b);
	one = simple_frame(b, "one");
	two = simple_frame(b, "two");
	CHECK_OK(symindex_add(b, 0, UINT64_C(1) << 40, one, SYMINDEX_DWARF, &err), &err);
	for (uint64_t i = 0; i < 1200000; i++)
		REQUIRE_OK(symindex_add(b, i, i + 2000000, two, SYMINDEX_SYMBOLS, &err), &err);
	CHECK_OK(symindex_finish(b, STR(""), &out, &err), &err);
	symindex_builder_close(b);
	REQUIRE_OK(symindex_open(buf_str(&out), &x, &err), &err);
	CHECK_INT(symindex_find(x, 3000000, &v, 1), 1);
	CHECK_STR(v.name, "one");
	CHECK(out.len < 1000);
	symindex_close(x);

	buf_clear(&out);
	REQUIRE((b = builder(&symindex_limits_default)));
	one = simple_frame(b, "one");
	for (uint64_t i = 0; i < 1200000; i++)
		REQUIRE_OK(symindex_add(b, i, (UINT64_C(1) << 40) - i, one, SYMINDEX_DWARF, &err), &err);
	CHECK_ERR(symindex_finish(b, STR(""), &out, &err), &err, ERR_LIMIT,
		"symbol index: more than 1048576 ranges overlap at 0x100000");
	CHECK_INT(out.len, 0);
	symindex_builder_close(b);
	buf_release(&out);
}

TEST(long_names_are_cut)
{
	struct symindex_builder *b = builder(&symindex_limits_default);
	struct buf out = { 0 }, name = { 0 };
	struct symindex_location v;
	struct symindex *x;
	uint32_t f, frame;

	REQUIRE(b && buf_reserve(&name, 70000));
	memset(name.ptr, 'x', 70000);
	name.len = 70000;
	CHECK_OK(symindex_function(b, buf_str(&name), SYMINDEX_NONE, 0, &f, &err), &err);
	CHECK_OK(symindex_frame(b, SYMINDEX_NONE, f, SYMINDEX_NONE, 0, &frame, &err), &err);
	CHECK_OK(symindex_add(b, 1, 2, frame, SYMINDEX_SYMBOLS, &err), &err);
	CHECK_OK(symindex_finish(b, STR(""), &out, &err), &err);
	symindex_builder_close(b);
	REQUIRE_OK(symindex_open(buf_str(&out), &x, &err), &err);
	CHECK_INT(symindex_find(x, 1, &v, 1), 1);
	CHECK_INT(v.name.len, SYMINDEX_STRING_MAX);
	symindex_close(x);
	buf_release(&out);
	buf_release(&name);
}
