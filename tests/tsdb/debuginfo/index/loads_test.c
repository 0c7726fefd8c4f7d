/* Places in mapped files become addresses. */
#include "tests/check.h"
#include "tsdb/debuginfo/index/symindex.h"

static struct err err;

#define NO UINT64_MAX

static struct symindex *made(struct buf *out, const struct symindex_load *v, size_t n)
{
	struct symindex_builder *b = NULL;
	struct symindex *x = NULL;

	CHECK_OK(symindex_builder_open(&symindex_limits_default, &b, &err), &err);
	for (size_t i = 0; i < n; i++)
		CHECK_OK(symindex_load(b, &v[i], &err), &err);
	CHECK_OK(symindex_finish(b, STR(""), out, &err), &err);
	symindex_builder_close(b);
	CHECK_OK(symindex_open(buf_str(out), &x, &err), &err);
	return x;
}

struct question {
	uint64_t mapping_offset, offset, want;
};

static void ask(const struct symindex_load *v, size_t loads, const struct question *q, size_t n)
{
	struct buf out = { 0 };
	struct symindex *x = made(&out, v, loads);

	REQUIRE(x);
	for (size_t i = 0; i < n; i++) {
		uint64_t got = NO;

		if (!symindex_address(x, q[i].mapping_offset, q[i].offset, &got))
			got = NO;
		if (got != q[i].want)
			CHECK_FAIL("question %zu: 0x%" PRIx64 ", want 0x%" PRIx64, i, got, q[i].want);
	}
	CHECK_OK(symindex_damaged(x, &err), &err);
	symindex_close(x);
	buf_release(&out);
}

#define ASK(loads, questions) \
	ask(loads, sizeof(loads) / sizeof(*(loads)), questions, \
		sizeof(questions) / sizeof(*(questions)))

TEST(the_load_that_holds_the_byte)
{
	/* As LLD lays them out: the second page of the file is mapped twice. */
	static const struct symindex_load v[] = { { 0x1740, 0x3000, 0x2740, true },
		{ 0, 0x1740, 0, false }, { 0x4740, 0x100, 0x6740, false } };
	static const struct question q[] = { { 0, 0x10, 0x10 }, { 0x1000, 0x740, 0x2740 },
		{ 0x1000, 0x73f, 0x173f }, { 0x1000, 0x3740, 0x6740 }, { 0x4000, 0x800, 0x6800 },
		{ 0x3000, 0x20, 0x4020 }, { 0x4000, 0x840, NO }, { 0x9000, 1, NO },
		{ UINT64_MAX - 4095, 4096, NO } };

	ASK(v, q);
}

TEST(the_executable_one_of_two)
{
	static const struct symindex_load v[] = { { 0, 0x2000, 0, false },
		{ 0x1000, 0x1000, 0x11000, true }, { 0x1000, 0x1000, 0x21000, false } };
	static const struct question q[] = { { 0, 0x1004, 0x11004 }, { 0, 4, 4 } };

	ASK(v, q);
}

TEST(a_load_without_its_place_is_the_mapping)
{
	static const struct symindex_load v[] = { { 0, 0, 0, false, true },
		{ 0, 0x300, 0x2740, true, true }, { 0, 0, 0x5000, false, true } };
	static const struct question q[] = { { 0x1000, 0x740, 0x2740 }, { 0x7000, 0, 0x2000 },
		{ 0x1010, 0x740, NO }, { 0, UINT64_MAX - 1, NO } };

	ASK(v, q);
}

TEST(several_executable_ones_without_their_places_say_nothing)
{
	static const struct symindex_load two[] = { { 0, 0, 0x1000, true, true },
		{ 0, 0, 0x5000, true, true } },
									  none[] = { { 0, 0, 0x1000, false, true } },
									  far[] = { { 0x1000, 0x100, UINT64_MAX - 0x10, true } };
	static const struct question q[] = { { 0x1000, 0x40, NO } };

	ASK(two, q);
	ASK(none, q);
	ASK(far, q);
	ask(NULL, 0, q, 1);
}

TEST(they_are_read_back_in_order_and_limited)
{
	static const struct symindex_load v[] = { { UINT64_MAX, UINT64_MAX, UINT64_MAX, true, true },
		{ 5, 6, 7, false }, { 1, 2, 7, true } };
	struct symindex_builder *b = NULL;
	struct symindex_load got;
	struct buf out = { 0 };
	struct symindex *x = made(&out, v, 3);

	REQUIRE(x);
	CHECK_INT(symindex_loads(x), 3);
	for (uint32_t i = 0; i < 3; i++) {
		REQUIRE(symindex_load_at(x, i, &got));
		CHECK(got.offset == v[2 - i].offset && got.bytes == v[2 - i].bytes &&
			got.address == v[2 - i].address && got.executable == v[2 - i].executable &&
			got.lost == v[2 - i].lost);
	}
	CHECK(!symindex_load_at(x, 3, &got));
	symindex_close(x);
	buf_release(&out);

	CHECK_OK(symindex_builder_open(&symindex_limits_default, &b, &err), &err);
	for (unsigned i = 0; i < SYMINDEX_LOADS_MAX; i++)
		CHECK_OK(symindex_load(b, &v[0], &err), &err);
	CHECK_ERR(symindex_load(b, &v[0], &err), &err, ERR_LIMIT,
		"symbol index: more than 64 loaded segments, the limit");
	symindex_builder_close(b);
}
