#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "tests/check.h"

TEST(utf8)
{
	/* clang-format off */
	static const struct {
		const char *text;
		bool want;
	} rows[] = {
		{ "", true }, { "a", true }, { "\xc3\xa9", true }, { "\xe2\x82\xac", true },
		{ "\xf0\x9f\x99\x82", true }, { "\xc0\x80", false }, { "\xed\xa0\x80", false },
		{ "\xf4\x90\x80\x80", false }, { "\xe2\x82", false }, { "\x80", false },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (str_is_utf8(str_of(rows[i].text)) != rows[i].want)
			CHECK_FAIL("row %zu: want %d", i, rows[i].want);
}

TEST(integers)
{
	int64_t v = 0;

	CHECK(str_to_i64(STR("-9223372036854775808"), &v));
	CHECK_INT(v, INT64_MIN);
	CHECK(str_to_i64(STR("9223372036854775807"), &v));
	CHECK_INT(v, INT64_MAX);
	CHECK(!str_to_i64(STR("9223372036854775808"), &v));
	CHECK(!str_to_i64(STR("-"), &v));
	CHECK(!str_to_i64(STR("1x"), &v));
	CHECK(!str_to_i64(STR(""), &v));
}

TEST(digits_at_the_end)
{
	CHECK_STR(str_ending_digits(STR("epi-12")), "12");
	CHECK_STR(str_ending_digits(STR("7a007")), "007");
	CHECK_STR(str_ending_digits(STR("12")), "12");
	CHECK_STR(str_ending_digits(STR("12a")), "");
	CHECK_STR(str_ending_digits(STR("")), "");
}

TEST(varints_round_trip_and_stop_at_the_end)
{
	static const uint64_t values[] = { 0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX };
	struct buf b = { 0 };
	struct cursor c;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		buf_clear(&b);
		buf_add_varint(&b, values[i]);
		c = cursor_of(buf_str(&b));
		CHECK(cursor_varint(&c) == values[i]);
		CHECK(!c.bad && cursor_left(&c) == 0);
		c = cursor_of((struct str){ b.ptr, b.len - 1 });
		CHECK_INT(cursor_varint(&c), 0);
		CHECK(c.bad);
	}
	c = cursor_of(STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"));
	CHECK_INT(cursor_varint(&c), 0);
	CHECK(c.bad);
	buf_release(&b);
}

TEST(arena_budget)
{
	struct arena a;
	struct err err;

	arena_init(&a, 1000);
	CHECK(arena_alloc(&a, 900) != NULL);
	CHECK(arena_alloc(&a, 200) == NULL);
	CHECK_ERR(arena_fail(&a, "query", &err), &err, ERR_LIMIT,
		"query needs more memory than its limit of 1000 bytes");
	CHECK(arena_array(&a, uint64_t, SIZE_MAX / 4) == NULL);
	arena_reset(&a);
	CHECK(arena_alloc(&a, 900) != NULL);
	arena_release(&a);
}

/* No machine has half of the addresses to give. The sanitizers would end the program. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(an_arena_that_finds_no_memory_does_not_blame_its_budget)
{
	struct arena a;
	struct err err;

	arena_init(&a, PTRDIFF_MAX);
	CHECK(arena_alloc_raw(&a, PTRDIFF_MAX / 2, 1) == NULL);
	CHECK_ERR(arena_fail(&a, "query", &err), &err, ERR_NOMEM, "query: out of memory");
	arena_reset(&a);
	CHECK_INT(arena_fail(&a, "query", &err), ERR_LIMIT);
	arena_release(&a);
}
#endif

/* All lengths and signs, beside printf. */
TEST(decimals)
{
	uint64_t random = 1, power = 1, v[200];
	struct buf one = { 0 }, many = { 0 };
	char want[32];
	size_t n = 0;

	for (int i = 0; i < 20; i++, power *= 10) {
		v[n++] = power - 1;
		v[n++] = power;
		v[n++] = 0 - power;
	}
	v[n++] = UINT64_MAX;
	v[n++] = (uint64_t)INT64_MIN;
	v[n++] = (uint64_t)INT64_MAX;
	while (n < 200) {
		random = random * UINT64_C(6364136223846793005) + 1;
		v[n] = random >> (n % 64);
		n++;
	}
	for (size_t i = 0; i < n; i++) {
		snprintf(want, sizeof(want), "%" PRIu64, v[i]);
		buf_clear(&one);
		buf_add_u64(&one, v[i]);
		CHECK_STR(buf_str(&one), want);
		snprintf(want, sizeof(want), "%" PRId64, (int64_t)v[i]);
		buf_clear(&one);
		buf_add_i64(&one, (int64_t)v[i]);
		CHECK_STR(buf_str(&one), want);
	}
	buf_clear(&one);
	for (size_t i = 0; i < n; i++)
		buf_printf(&one, "%s%" PRId64, i ? "," : "", (int64_t)v[i]);
	buf_add_i64s(&many, (const int64_t *)v, n);
	buf_add_i64s(&many, NULL, 0);
	CHECK(str_eq(buf_str(&many), buf_str(&one)));
	buf_release(&one);
	buf_release(&many);
}

/* Blocks are kept between arenas, of many sizes; zeroed memory is zeroed again. */
TEST(the_nearest_name)
{
	static const char *const names[] = { "cpu", "memory", "goroutine", "storage.tsdb.path",
		"storage.tsdb.retention.time", "", "sum", "sort", "up" };
	/* clang-format off */
	static const struct {
		const char *wanted, *name;
	} rows[] = {
		{ "cpu", "cpu" }, { "CPU", "cpu" }, { "cpuu", "cpu" }, { "cp", "cpu" }, { "cup", "cpu" },
		{ "xyz", "" }, { "", "" }, { "memroy", "memory" }, { "memorry", "memory" },
		{ "goroutines", "goroutine" }, { "gorotine", "goroutine" }, { "sqrt", "sort" },
		{ "storage.path", "" }, { "storage.tsdb.pth", "storage.tsdb.path" }, { "q", "" },
		{ "storage-tsdb-retention-time", "storage.tsdb.retention.time" },
	};
	/* clang-format on */
	char longest[200];
	struct nearest n;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		n = nearest_to(str_of(rows[i].wanted));
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			nearest_try(&n, str_of(names[k]));
		if (!str_is(n.name, rows[i].name))
			CHECK_FAIL("%s: %.*s, want %s", rows[i].wanted, STR_ARG(n.name), rows[i].name);
	}
	/* Names that are too long are not compared, and do no harm. */
	memset(longest, 'a', sizeof(longest));
	n = nearest_to((struct str){ longest, sizeof(longest) });
	nearest_try(&n, (struct str){ longest, sizeof(longest) - 1 });
	CHECK_INT(n.name.len, 0);
	n = nearest_to((struct str){ longest, 80 });
	nearest_try(&n, (struct str){ longest, 81 });
	CHECK_INT(n.name.len, 0);
	nearest_try(&n, (struct str){ longest, 79 });
	CHECK_INT(n.name.len, 79);
}

TEST(arenas_one_after_the_other)
{
	uint64_t random = 1;

	for (int turn = 0; turn < (check_is_short() ? 500 : 2000); turn++) {
		struct arena a[3];

		for (int i = 0; i < 3; i++)
			arena_init(&a[i], 0);
		for (int i = 0; i < 6; i++) {
			size_t n;
			char *p;

			random = random * UINT64_C(6364136223846793005) + 1;
			n = (size_t)1 << (random >> 33) % 23;
			n += (random >> 40) % n;
			REQUIRE((p = arena_alloc_raw(&a[i % 3], n, 1)));
			p[0] = p[n - 1] = 'x';
			n = n / 64 + 1;
			REQUIRE((p = arena_alloc(&a[i % 3], n)));
			CHECK(!p[0] && !p[n / 2] && !p[n - 1]);
			p[0] = p[n / 2] = p[n - 1] = 'y';
		}
		for (int i = 0; i < 3; i++)
			arena_release(&a[(i + turn) % 3]);
	}
}

TEST(errors_add_context_and_say_when_cut)
{
	struct err err;
	char wide[2000];

	memset(wide, 'x', sizeof(wide) - 1);
	wide[sizeof(wide) - 1] = '\0';
	CHECK_INT(err_set(&err, ERR_INVALID, "meta.json:%d: bad ulid", 3), ERR_INVALID);
	CHECK_ERR(err_wrap(&err, ERR_CORRUPT, "open block %s", "01AB"), &err, ERR_CORRUPT,
		"open block 01AB: meta.json:3: bad ulid");
	err_set(&err, ERR_INVALID, "%s", wide);
	CHECK_INT(strlen(err.msg), sizeof(err.msg) - 1);
	CHECK(str_has_suffix(str_of(err.msg), STR("x...")));
	CHECK_INT(err_set(NULL, ERR_LIMIT, "nobody listens"), ERR_LIMIT);
}

TEST(sizes_for_people)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {
		{ 0, "0B" },
		{ 1023, "1023B" },
		{ 1024, "1KiB" },
		{ 9999, "9.76KiB" },
		{ 256u << 20, "256MiB" },
		{ 81223462912, "75.65GiB" },
		{ UINT64_C(1) << 63, "8EiB" },
		{ UINT64_MAX, "16.00EiB" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_STR(str_of(str_size_of(rows[i].bytes).text), rows[i].text);
}
