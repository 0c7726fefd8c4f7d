#include <math.h>

#include <jansson.h>

#include "base/json.h"
#include "tests/check.h"

TEST(nesting_and_commas)
{
	struct buf b = { 0 };
	struct json j;

	json_init(&j, &b);
	json_object(&j);
	json_key(&j, "a");
	json_array(&j);
	json_i64(&j, INT64_MIN);
	json_i64s(&j, NULL, 0);
	json_i64s(&j, (const int64_t[]){ -1, 0, 23 }, 3);
	json_u64(&j, UINT64_MAX);
	json_object(&j);
	json_object_end(&j);
	json_array(&j);
	json_array_end(&j);
	json_array_end(&j);
	json_key_str(&j, STR("b\n"));
	json_bool(&j, true);
	json_key(&j, "c");
	json_null(&j);
	json_key(&j, "d");
	json_raw(&j, STR("[1]"));
	json_key(&j, "e");
	json_array(&j);
	json_double(&j, 1.5);
	json_double(&j, NAN);
	json_double(&j, -INFINITY);
	json_sample_value(&j, 0.25);
	json_sample_value(&j, INFINITY);
	json_cstr(&j, "x");
	json_bool(&j, false);
	json_array_end(&j);
	json_object_end(&j);
	CHECK_STR(buf_str(&b),
		"{\"a\":[-9223372036854775808,-1,0,23,18446744073709551615,{},[]],\"b\\n\":true,"
		"\"c\":null,\"d\":[1],\"e\":[1.5,null,null,\"0.25\",\"+Inf\",\"x\",false]}");
	buf_release(&b);
}

TEST(strings)
{
	/* clang-format off */
	static const struct {
		const char *text;
		size_t len;
		const char *want;
	} rows[] = {
		{ "", 0, "\"\"" },
		{ "a\"\\/\b\f\n\r\t\x01\x7f", 11, "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u007f\"" },
		{ "\xc2\x9b" "2J\xc2\xa0", 6, "\"\\u009b2J\xc2\xa0\"" }, /* a control of terminals */
		{ "a\0b", 3, "\"a\\u0000b\"" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82\"" },
		{ "a\xff\xfe z", 5, "\"a\xef\xbf\xbd\xef\xbf\xbd z\"" },
		{ "\xe2\x82", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	};
	/* clang-format on */
	struct buf b = { 0 };
	struct json j;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&b);
		json_init(&j, &b);
		json_str(&j, (struct str){ rows[i].text, rows[i].len });
		CHECK_STR(buf_str(&b), rows[i].want);
	}
	json_init(&j, &b);
	buf_clear(&b);
	json_str(&j, (struct str){ 0 });
	CHECK_STR(buf_str(&b), "\"\"");
	buf_release(&b);
}

/* Another JSON reader accepts a string of any bytes. */
TEST(any_bytes_give_valid_json)
{
	struct buf b = { 0 };
	unsigned seed = 1;

	for (int round = 0; round < 2000; round++) {
		char text[32];
		struct json j;
		json_t *back;

		for (size_t i = 0; i < sizeof(text); i++) {
			seed = seed * 1103515245u + 12345u;
			text[i] = (char)(seed >> 16);
		}
		buf_clear(&b);
		json_init(&j, &b);
		json_array(&j);
		json_str(&j, (struct str){ text, sizeof(text) });
		json_array_end(&j);
		back = json_loadb(b.ptr, b.len, JSON_ALLOW_NUL, NULL);
		if (!back)
			CHECK_FAIL("round %d: " STR_FMT, round, STR_ARG(buf_str(&b)));
		json_decref(back);
	}
	buf_release(&b);
}

TEST(doubles)
{
	/* clang-format off */
	static const struct {
		double v;
		const char *want; /* what Go's strconv.FormatFloat(v, 'f' or 'e', -1, 64) gives */
	} rows[] = {
		{ 0, "0" }, { -0.0, "-0" }, { 1, "1" }, { -1.5, "-1.5" }, { 100, "100" }, { 0.1, "0.1" },
		{ 12345.678, "12345.678" }, { 1795219120.907, "1795219120.907" },
		{ 9007199254740993.0, "9007199254740992" }, { 1e20, "100000000000000000000" },
		{ 123456789012345680000.0, "123456789012345680000" }, { 1e21, "1e+21" },
		{ -1.5e21, "-1.5e+21" }, { 1e-6, "0.000001" }, { 9.99e-7, "9.99e-07" },
		{ 5e-324, "5e-324" }, { 1.7976931348623157e308, "1.7976931348623157e+308" },
		{ 5.684341886080802e-14, "5.684341886080802e-14" }, { 0.3, "0.3" },
		{ 0.1 + 0.2, "0.30000000000000004" }, { NAN, "NaN" }, { INFINITY, "+Inf" },
		{ -INFINITY, "-Inf" },
	};
	/* clang-format on */
	struct buf b = { 0 };
	uint64_t bits = 88172645463325252u;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&b);
		buf_add_double(&b, rows[i].v);
		CHECK_STR(buf_str(&b), rows[i].want);
	}
	for (int i = 0; i < 100000; i++) {
		double v;

		bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
		memcpy(&v, &bits, sizeof(v));
		if (i % 2)
			v = (double)(int64_t)bits / 1024;
		buf_clear(&b);
		buf_add_double(&b, v);
		buf_add_char(&b, '\0');
		if (v == v && strtod(b.ptr, NULL) != v)
			CHECK_FAIL("%a printed as %s", v, b.ptr);
	}
	buf_release(&b);
}
