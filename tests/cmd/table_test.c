#include "cmd/epitool/table.h"

#include <math.h>

#include "cmd/epitool/times.h"
#include "tests/check.h"

TEST(numbers)
{
	static const struct {
		double value;
		const char *unit, *want;
	} cases[] = {
		{ 0, "", "0" },
		{ -0.0, "", "0" },
		{ 12, "", "12" },
		{ 1e14, "count", "100000000000000" },
		{ 0.1 + 0.2, "", "0.3" },
		{ 1e15, "", "1e+15" },
		{ 0.125, "ratio", "12.50%" },
		{ 1.5e9, "nanoseconds", "1.50s" },
		{ -1.5e9, "nanoseconds", "-1.50s" },
		{ 0.25, "nanoseconds", "0.25 nanoseconds" },
		{ 0, "nanoseconds", "0" },
		{ 1536, "bytes", "1.50kB" },
		{ 7, "contentions", "7 contentions" },
		{ NAN, "bytes", "NaN" },
		{ INFINITY, "", "+Inf" },
		{ -INFINITY, "ratio", "-Inf" },
	};
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_clear(&out);
		number_print(&out, cases[i].value, str_of(cases[i].unit));
		CHECK_STR(buf_str(&out), cases[i].want);
	}
	buf_release(&out);
}

TEST(units_of_tables)
{
	static const struct {
		int64_t smallest, total;
		const char *unit, *want;
	} cases[] = {
		{ 20000000, 100000000, "nanoseconds", "ms" },
		{ 10000000, 50000000000, "nanoseconds", "s" },
		{ -10000000, 50000000000, "nanoseconds", "s" },
		{ 0, 50000000000, "nanoseconds", "nanoseconds" },
		{ INT64_MIN, INT64_MIN, "bytes", "bytes" },
		{ 1, 5, "count", "count" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_STR(
			number_unit(cases[i].smallest, cases[i].total, str_of(cases[i].unit)), cases[i].want);
}

static void check_table(size_t width, const char *want)
{
	struct buf out = { 0 };
	struct arena a;
	struct text_table t;

	arena_init(&a, 0);
	text_table_init(&t, &a);
	table_column(&t, "value", true);
	table_column(&t, "function", false);
	table_column(&t, "job", false);
	table_cell(&t, STR("1.50s"));
	table_cell(&t, STR("encoding/json.Marshal"));
	table_cell(&t, STR("a\tb\n"));
	table_cell(&t, STR("12"));
	table_cell(&t,
		STR("gr\xc3\xb6\xc3\x9f"
			   "e"));
	table_cell(&t, STR(""));
	table_print(&t, width, &out);
	CHECK_STR(buf_str(&out), want);
	buf_release(&out);
	arena_release(&a);
}

TEST(tables)
{
	check_table(0,
		"value  function               job\n"
		"1.50s  encoding/json.Marshal  a\\tb\\n\n"
		"   12  gr\xc3\xb6\xc3\x9f"
		"e\n");
	check_table(30,
		"value  function         job\n"
		"1.50s  \xe2\x80\xa6g/json.Marshal  a\\tb\\n\n"
		"   12  gr\xc3\xb6\xc3\x9f"
		"e\n");
	check_table(5, /* numbers are never cut; names keep some characters */
		"value  function      job\n"
		"1.50s  \xe2\x80\xa6son.Marshal  a\\tb\\n\n"
		"   12  gr\xc3\xb6\xc3\x9f"
		"e\n");
}

TEST(times)
{
	static const struct {
		const char *text;
		int64_t want; /* -1: refused */
	} cases[] = {
		{ "now", 1000000000000 },
		{ "now-1m", 940000000000 },
		{ "now+1m30s", 1090000000000 },
		{ "-10s", 990000000000 },
		{ "12.5", 12500000000 },
		{ "1970-01-01T00:00:01Z", 1000000000 },
		{ "-5", -5000000000 },
		{ "now-", -1 },
		{ "now1", -1 },
		{ "now-1", -1 },
		{ "+1h", -1 },
		{ "-1h", -1 }, /* before 1970 */
		{ "yesterday", -1 },
		{ "", -1 },
	};
	struct err err;
	int64_t got;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		got = -1;
		if (time_arg_parse(str_of(cases[i].text), 1000000000000, &got, &err))
			CHECK(err.msg[0]);
		if (got != cases[i].want)
			CHECK_FAIL("%s: %" PRId64 ", want %" PRId64, cases[i].text, got, cases[i].want);
	}
	CHECK(time_arg_parse(STR("soon"), 0, &got, &err) == ERR_INVALID);
	CHECK_STR(str_of(err.msg),
		"cannot parse \"soon\" to a time: RFC 3339, unix seconds, now, now-1h or -1h");
}

TEST(times_as_parameters)
{
	struct buf out = { 0 };

	time_arg_print(&out, 1500000000);
	buf_add_char(&out, ' ');
	time_arg_print(&out, -1);
	buf_add_char(&out, ' ');
	time_arg_print(&out, INT64_MIN);
	CHECK_STR(buf_str(&out), "1.500000000 -0.000000001 -9223372036.854775808");
	buf_release(&out);
}
