#include "tsdb/columns/varints.h"

#include <stdlib.h>

#include "tests/check.h"

#define MOST 64

static uint64_t state = 7;

static uint64_t draw(uint64_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (state >> 20) % below;
}

/* Of any length, and the ends of each. */
static uint64_t any_number(unsigned bits_max)
{
	unsigned bits = (unsigned)draw(bits_max + 1);
	uint64_t top = bits ? UINT64_C(1) << (bits - 1) : 0;

	switch (draw(3)) {
	case 0:
		return top;
	case 1:
		return top | (top - (top != 0));
	default:
		return top | (state & (top - (top != 0)));
	}
}

TEST(values_are_those_that_went_in)
{
	static const uint64_t factors[] = { 1, 17, 10000000, UINT64_C(1) << 63 };
	uint64_t in[MOST];
	int64_t out[MOST];
	struct buf bytes = { 0 };
	struct cursor at;

	for (uint32_t round = 0; round < 20000; round++) {
		uint32_t n = (uint32_t)draw(MOST + 1);
		uint64_t factor = factors[draw(4)];
		bool negative = draw(2);
		unsigned bits = draw(2) ? 64 : 9;

		buf_clear(&bytes);
		for (uint32_t i = 0; i < n; i++)
			buf_add_varint(&bytes, in[i] = any_number(bits));
		at = cursor_of(buf_str(&bytes));
		CHECK(varints_values(&at, n, factor, negative, out));
		CHECK(at.at == at.end);
		for (uint32_t i = 0; i < n; i++) {
			uint64_t v = negative ? (uint64_t)str_unzigzag(in[i]) : in[i];

			if ((uint64_t)out[i] != v * factor)
				CHECK_FAIL("value %u of %u is %lld", i, n, (long long)out[i]);
		}
		if (n == 0)
			continue;
		at = cursor_of((struct str){ bytes.ptr, bytes.len - 1 });
		CHECK(!varints_values(&at, n, factor, negative, out));
	}
	buf_release(&bytes);
}

/* The magnitude of -2^63 is a number of 64 bits, as a value and as a factor. */
TEST(the_smallest_value)
{
	static const struct {
		int64_t quotient;
		uint64_t factor;
		int64_t want;
	} cases[] = {
		{ INT64_MIN, 1, INT64_MIN },
		{ -1, UINT64_C(1) << 63, INT64_MIN },
		{ INT64_MIN / 2, 2, INT64_MIN },
		{ -(INT64_C(1) << 31), UINT64_C(1) << 32, INT64_MIN },
		{ INT64_MAX, 1, INT64_MAX },
		{ -INT64_MAX, 1, -INT64_MAX },
		{ 0, UINT64_C(1) << 63, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		/* In front of others, where eight bytes are looked at, and last. */
		for (uint32_t n = 1; n <= 12; n++) {
			int64_t out[12];
			struct buf bytes = { 0 };
			struct cursor at;

			for (uint32_t k = 0; k < n; k++)
				buf_add_varint(&bytes, k % 3 ? 2 : str_zigzag(cases[i].quotient));
			at = cursor_of(buf_str(&bytes));
			CHECK(varints_values(&at, n, cases[i].factor, true, out));
			for (uint32_t k = 0; k < n; k++)
				CHECK_INT(out[k], k % 3 ? (int64_t)cases[i].factor : cases[i].want);
			buf_release(&bytes);
		}
}

TEST(sums_stay_within_32_bits)
{
	uint32_t out[MOST];
	struct buf bytes = { 0 };
	struct cursor at;

	for (uint32_t round = 0; round < 20000; round++) {
		uint32_t n = 1 + (uint32_t)draw(MOST);
		uint64_t from = draw(2) ? any_number(32) : 0, sum = from, last = from, gap, want[MOST];
		unsigned bits = (unsigned)draw(2) ? 8 : (unsigned)draw(65);
		bool fits = true;

		buf_clear(&bytes);
		for (uint32_t i = 0; i < n; i++) {
			buf_add_varint(&bytes, gap = any_number(bits));
			fits &= !__builtin_add_overflow(sum, gap, &sum) && sum <= UINT32_MAX;
			want[i] = sum;
		}
		at = cursor_of(buf_str(&bytes));
		CHECK_INT(varints_sums(&at, n, out, &last), fits);
		if (!fits)
			continue;
		CHECK(at.at == at.end && last == sum);
		for (uint32_t i = 0; i < n; i++)
			if (out[i] != want[i])
				CHECK_FAIL("sum %u of %u is %u", i, n, out[i]);
		at = cursor_of((struct str){ bytes.ptr, bytes.len - 1 });
		last = from;
		CHECK(!varints_sums(&at, n, out, &last));
	}
	buf_release(&bytes);
}

/* In its own memory, so that a read past the end is seen. */
static struct str copy_of(const struct buf *b)
{
	char *ptr = malloc(b->len ? b->len : 1);

	if (!ptr)
		abort();
	if (b->len)
		memcpy(ptr, b->ptr, b->len);
	return (struct str){ ptr, b->len };
}

static void check_both_ways(const struct buf *bytes, uint32_t n, uint64_t from)
{
	static uint32_t out[4 * MOST + 1], want[4 * MOST + 1];
	struct str in = copy_of(bytes);
	struct cursor at = cursor_of(in), plain = at;
	uint64_t last = from, plain_last = from;
	bool fits = varints_sums_words(&plain, n, want, &plain_last);

	out[n] = 77;
	CHECK_INT(varints_sums(&at, n, out, &last), fits);
	CHECK_INT(out[n], 77);
	if (fits) {
		CHECK(at.at == plain.at);
		CHECK_INT(last, plain_last);
		if (n && memcmp(out, want, n * sizeof(*out)))
			CHECK_FAIL("%u sums from %llu differ", n, (unsigned long long)from);
	}
	free((void *)(uintptr_t)in.ptr);
}

/* Gaps of all lengths in all places of a block, some longer than they need be; from near the end of
 * 32 bits, too. */
TEST(sums_both_ways)
{
	static const unsigned usual[] = { 7, 8, 14, 15, 22, 32 };
	struct buf bytes = { 0 };

	for (uint32_t round = 0; round < 30000; round++) {
		uint32_t n = (uint32_t)draw(draw(4) ? 40 : 4 * MOST + 1);
		unsigned bits = usual[draw(6)], odd = (unsigned)draw(3);
		uint64_t from = draw(3) ? 0 : UINT32_MAX - draw(200000);

		buf_clear(&bytes);
		for (uint32_t i = 0; i < n; i++) {
			uint64_t gap = draw(20) ? draw(UINT64_C(1) << (draw(8) ? 7 : 14)) : any_number(bits);

			if (odd == 2 && draw(30) == 0 && gap < 128) {
				buf_add_char(&bytes, (char)(gap | 0x80));
				gap = 0;
			}
			buf_add_varint(&bytes, gap);
		}
		if (odd == 1 && bytes.len && draw(2))
			bytes.len--;
		check_both_ways(&bytes, n, from);
		if (n)
			check_both_ways(&bytes, n - 1, from);
		check_both_ways(&bytes, n < 4 * MOST ? n + 1 : n, from);
	}
	buf_release(&bytes);
}

/* Any bytes, one by one and in blocks: the same values or the same refusal. */
TEST(values_of_any_bytes)
{
	static int64_t out[4 * MOST + 1];
	struct buf bytes = { 0 };

	for (uint32_t round = 0; round < 30000; round++) {
		uint32_t n = 1 + (uint32_t)draw(4 * MOST), len = (uint32_t)draw(3 * MOST);
		uint64_t longer = 1 + draw(12); /* in how many of 12 a byte goes on */
		struct cursor plain, at;
		struct str in;

		buf_clear(&bytes);
		for (uint32_t i = 0; i < len; i++)
			buf_add_char(&bytes, (char)(draw(128) | (draw(12) < longer ? 0x80 : 0)));
		in = copy_of(&bytes);
		plain = at = cursor_of(in);
		if (draw(2)) /* as many as there are */
			for (n = 0; cursor_left(&plain) && !plain.bad && n < 4 * MOST; n += !plain.bad)
				(void)cursor_varint(&plain);
		out[n] = 77;
		plain = at;
		CHECK_INT(varints_values(&at, n, 3, false, out), !at.bad);
		for (uint32_t i = 0; i < n && !plain.bad; i++) {
			uint64_t v = cursor_varint(&plain);

			if (!plain.bad && (uint64_t)out[i] != v * 3)
				CHECK_FAIL("value %u of %u is %lld", i, n, (long long)out[i]);
		}
		CHECK_INT(at.bad, plain.bad);
		CHECK(at.bad || at.at == plain.at);
		CHECK_INT(out[n], 77);
		free((void *)(uintptr_t)in.ptr);
	}
	buf_release(&bytes);
}

TEST(bytes_that_are_varints)
{
	unsigned char v[100];

	memset(v, 0x7f, sizeof(v));
	for (size_t n = 0; n <= sizeof(v); n++) {
		CHECK(varints_are_bytes(v, n));
		for (size_t i = 0; i < n; i++) {
			v[i] = 0x80;
			CHECK(!varints_are_bytes(v, n));
			CHECK(varints_are_bytes(v, i));
			v[i] = 0x7f;
		}
	}
}
