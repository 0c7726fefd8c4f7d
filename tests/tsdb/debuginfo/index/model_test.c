/* Random ranges with overlaps and inlined calls, against a walk over all of them. */
#include "base/thread.h"
#include "tests/check.h"
#include "tests/tsdb/debuginfo/index/sample.h"

static struct err err;

static void check_sample(const struct sample *s, const struct symindex *x)
{
	struct buf want = { 0 }, got = { 0 };

	for (uint64_t at = s->base ? s->base - 2 : 0; at != s->base + s->span + 2; at++) {
		buf_clear(&want);
		buf_clear(&got);
		sample_expect(s, at, &want);
		sample_found(x, at, &got);
		if (!str_eq(buf_str(&want), buf_str(&got)))
			CHECK_FAIL("at 0x%" PRIx64 ": \"" STR_FMT "\", want \"" STR_FMT "\"", at,
				STR_ARG(buf_str(&got)), STR_ARG(buf_str(&want)));
	}
	buf_release(&want);
	buf_release(&got);
}

TEST(every_address_as_in_the_model)
{
	struct buf out = { 0 };
	struct symindex *x;
	struct sample s;

	for (uint64_t seed = 1; seed < (check_is_short() ? 16 : 61); seed++) {
		sample_init(&s, seed, seed % 4 ? 600 : 6000, seed % 5 ? 400 : 3, false);
		buf_clear(&out);
		buf_add_cstr(&out, "before");
		REQUIRE_OK(sample_index(&s, seed, &out, &err), &err);
		REQUIRE_OK(symindex_open((struct str){ out.ptr + 6, out.len - 6 }, &x, &err), &err);
		check_sample(&s, x);
		CHECK_OK(symindex_damaged(x, &err), &err);
		symindex_close(x);
	}
	buf_release(&out);
}

TEST(same_bytes_in_any_order)
{
	struct buf one = { 0 }, other = { 0 };
	struct sample s;

	for (uint64_t seed = 1; seed < (check_is_short() ? 8 : 30); seed++) {
		sample_init(&s, seed, 150, 400, true);
		buf_clear(&one);
		REQUIRE_OK(sample_index(&s, 0, &one, &err), &err);
		for (uint64_t order = 0; order < 8; order++) {
			buf_clear(&other);
			REQUIRE_OK(sample_index(&s, order * 13 % 29, &other, &err), &err);
			CHECK(str_eq(buf_str(&one), buf_str(&other)));
		}
	}
	buf_release(&one);
	buf_release(&other);
}

/* ---- an index of many pages and blocks ---- */

#define MANY 120000u

static enum err_code many(uint32_t step, struct buf *out)
{
	struct symindex_builder *b;
	uint32_t f, frame;
	enum err_code rc;
	char name[32];

	if ((rc = symindex_builder_open(&symindex_limits_default, &b, &err)))
		return rc;
	/* step has no factor of MANY: all of them, and each block of segments has to be sorted */
	for (uint64_t i = 0; !rc && i < MANY; i++) {
		uint64_t n = i * step % MANY;

		snprintf(name, sizeof(name), "f%u", (unsigned)n);
		if (!(rc = symindex_function(b, str_of(name), SYMINDEX_NONE, 0, &f, &err)) &&
			!(rc = symindex_frame(b, SYMINDEX_NONE, f, SYMINDEX_NONE, (uint32_t)n, &frame, &err)))
			rc = symindex_add(b, n * 10, n * 10 + 9, frame, SYMINDEX_SYMBOLS, &err);
	}
	if (!rc)
		rc = symindex_finish(b, STR(""), out, &err);
	symindex_builder_close(b);
	return rc;
}

static unsigned wrong_of_many(const struct symindex *x)
{
	struct symindex_location v;
	unsigned wrong = 0;
	char name[32];

	for (uint32_t n = 0; n < MANY; n++) {
		snprintf(name, sizeof(name), "f%u", n);
		if (symindex_find(x, n * 10 + n % 9, &v, 1) != 1 || !str_is(v.name, name) || v.line != n ||
			symindex_find(x, n * 10 + 9, &v, 1))
			wrong++;
	}
	return wrong;
}

TEST(many_blocks_and_pages)
{
	struct buf one = { 0 }, other = { 0 };
	struct symindex *x;

	REQUIRE_OK(many(1, &one), &err);
	REQUIRE_OK(many(70001, &other), &err);
	CHECK(str_eq(buf_str(&one), buf_str(&other)));
	CHECK(one.len > 10 << 16);
	REQUIRE_OK(symindex_open(buf_str(&other), &x, &err), &err);
	CHECK_INT(wrong_of_many(x), 0);
	CHECK_OK(symindex_damaged(x, &err), &err);
	symindex_close(x);
	buf_release(&one);
	buf_release(&other);
}

struct reader {
	const struct symindex *x;
	unsigned wrong;
};

static void read_many(void *ctx)
{
	struct reader *r = ctx;

	r->wrong = wrong_of_many(r->x);
}

TEST(threads_verify_the_same_pages)
{
	struct thread threads[4] = { 0 };
	struct reader readers[4];
	struct buf out = { 0 };
	struct symindex *x;

	REQUIRE_OK(many(1, &out), &err);
	REQUIRE_OK(symindex_open(buf_str(&out), &x, &err), &err);
	for (unsigned i = 0; i < 4; i++) {
		readers[i] = (struct reader){ x, 1 };
		CHECK_OK(thread_start(&threads[i], "reader", read_many, &readers[i], &err), &err);
	}
	for (unsigned i = 0; i < 4; i++) {
		thread_join(&threads[i]);
		CHECK_INT(readers[i].wrong, 0);
	}
	symindex_close(x);
	buf_release(&out);
}
