/* Two indexes become one: each address has the better of both names. */
#include <stdlib.h>

#include "tests/check.h"
#include "tests/tsdb/debuginfo/index/sample.h"

static struct err err;

/* A name without inlined calls, file and lines is one of a table of symbols. */
static bool is_bare(struct str text)
{
	return str_has_suffix(text, STR(" :0 0; ")) && !memmem(text.ptr, text.len - 2, "; ", 2);
}

static void check_merged(const struct sample *s, const struct symindex *older,
	const struct symindex *merged, size_t *from_older)
{
	struct buf want = { 0 }, got = { 0 };

	for (uint64_t at = s->base; at != s->base + s->span; at++) {
		enum symindex_quality was;

		buf_clear(&want);
		buf_clear(&got);
		sample_found(older, at, &want);
		was = !want.len ? 0 : is_bare(buf_str(&want)) ? SYMINDEX_SYMBOLS : symindex_best(older);
		if (sample_quality(s, at) && sample_quality(s, at) >= was) {
			buf_clear(&want);
			sample_expect(s, at, &want);
		} else {
			*from_older += want.len > 0;
		}
		sample_found(merged, at, &got);
		if (!str_eq(buf_str(&want), buf_str(&got)))
			CHECK_FAIL("at 0x%" PRIx64 ": \"" STR_FMT "\", want \"" STR_FMT "\"", at,
				STR_ARG(buf_str(&got)), STR_ARG(buf_str(&want)));
	}
	buf_release(&want);
	buf_release(&got);
}

TEST(each_address_has_the_better_name)
{
	struct buf first = { 0 }, second = { 0 }, again = { 0 };
	struct symindex *older, *merged;
	size_t from_older = 0;
	struct sample s;

	for (uint64_t seed = 3; seed < (check_is_short() ? 30 : 90); seed += 3) {
		buf_clear(&first);
		buf_clear(&second);
		buf_clear(&again);
		sample_init(&s, seed, 600, seed % 2 ? 5 : 200, false);
		REQUIRE_OK(sample_index(&s, 0, &first, &err), &err);
		REQUIRE_OK(symindex_open(buf_str(&first), &older, &err), &err);
		sample_init(&s, seed + 300, 600, 40, false); /* the same base: a multiple of 3 away */
		REQUIRE_OK(sample_index_over(&s, seed, older, &second, &err), &err);
		REQUIRE_OK(symindex_open(buf_str(&second), &merged, &err), &err);
		check_merged(&s, older, merged, &from_older);
		CHECK_INT(symindex_loads(merged), SAMPLE_LOADS);
		CHECK_OK(symindex_damaged(merged, &err), &err);
		symindex_close(older);
		/* What is there already adds nothing, not one byte. */
		REQUIRE_OK(sample_index_over(&s, seed, merged, &again, &err), &err);
		CHECK(symindex_best(merged) != SYMINDEX_DWARF || str_eq(buf_str(&second), buf_str(&again)));
		symindex_close(merged);
	}
	CHECK(from_older > 1000);
	buf_release(&first);
	buf_release(&second);
	buf_release(&again);
}

static struct symindex *of_loads(
	const struct symindex_load *v, size_t n, const struct symindex *older, struct buf *out)
{
	struct symindex_builder *b = NULL;
	struct symindex *x = NULL;

	CHECK_OK(symindex_builder_open(&symindex_limits_default, &b, &err), &err);
	for (size_t i = 0; i < n; i++)
		CHECK_OK(symindex_load(b, &v[i], &err), &err);
	if (older)
		CHECK_OK(symindex_add_index(b, older, &err), &err);
	CHECK_OK(symindex_finish(b, STR(""), out, &err), &err);
	symindex_builder_close(b);
	CHECK_OK(symindex_open(buf_str(out), &x, &err), &err);
	return x;
}

/* The debug file first or the binary first: the binary's places are kept. */
TEST(places_are_kept)
{
	static const struct symindex_load binary[] = { { 0, 0x400, 0, false, false },
		{ 0x1000, 0x2000, 0x1000, true, false } };
	static const struct symindex_load debug[] = { { 0, 0x400, 0, false, true },
		{ 0, 0x2000, 0x1000, true, true } };

	for (int debug_first = 0; debug_first < 2; debug_first++) {
		const struct symindex_load *first = debug_first ? debug : binary,
								   *second = debug_first ? binary : debug;
		struct buf one = { 0 }, both = { 0 };
		struct symindex *older = of_loads(first, 2, NULL, &one), *merged;

		REQUIRE(older);
		merged = of_loads(second, 2, older, &both);
		REQUIRE(merged && symindex_loads(merged) == 2);
		for (uint32_t i = 0; i < 2; i++) {
			struct symindex_load got;

			REQUIRE(symindex_load_at(merged, i, &got));
			CHECK(!got.lost && got.offset == binary[i].offset && got.bytes == binary[i].bytes &&
				got.executable == binary[i].executable);
		}
		symindex_close(older);
		symindex_close(merged);
		buf_release(&one);
		buf_release(&both);
	}
}

/* Each flipped bit is met, or the merged index is as if it were not there. */
TEST(a_damaged_one_is_refused)
{
	struct buf first = { 0 }, whole = { 0 }, second = { 0 };
	struct symindex *older;
	size_t refused = 0;
	struct sample s;

	sample_init(&s, 6, 100, 30, false);
	REQUIRE_OK(sample_index(&s, 0, &first, &err), &err);
	REQUIRE_OK(symindex_open(buf_str(&first), &older, &err), &err);
	sample_init(&s, 306, 100, 5, false);
	REQUIRE_OK(sample_index_over(&s, 0, older, &whole, &err), &err);
	symindex_close(older);
	for (size_t i = 448; i < first.len - 8; i += 3) { /* the data of its page */
		first.ptr[i] = (char)(first.ptr[i] ^ 0x10);
		REQUIRE_OK(symindex_open(buf_str(&first), &older, &err), &err);
		buf_clear(&second);
		if (sample_index_over(&s, 0, older, &second, &err)) {
			CHECK_INT(err.code, ERR_CORRUPT);
			refused++;
		} else {
			CHECK_FAIL("byte %zu: not refused", i);
		}
		symindex_close(older);
		first.ptr[i] = (char)(first.ptr[i] ^ 0x10);
	}
	CHECK(refused > 100);
	buf_release(&first);
	buf_release(&whole);
	buf_release(&second);
}
