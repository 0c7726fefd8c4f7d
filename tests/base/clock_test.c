#include "base/clock.h"

#include "tests/check.h"

#define ROWS(a) (sizeof(a) / sizeof((a)[0]))

TEST(durations_as_prometheus_reads_them)
{
	static const struct {
		const char *text;
		int64_t want;
		const char *msg; /* NULL: fine */
	} rows[] = {
		{ "0", 0, NULL },
		{ "0s", 0, NULL },
		{ "00", 0, "not a valid duration string: \"00\"" },
		{ "1ms", NS_PER_MS, NULL },
		{ "5m", 5 * NS_PER_MIN, NULL },
		{ "1h30m", 90 * NS_PER_MIN, NULL },
		{ "15d", 15 * NS_PER_DAY, NULL },
		{ "1y2w3d4h5m6s7ms",
			365 * NS_PER_DAY + 17 * NS_PER_DAY + 4 * NS_PER_HOUR + 5 * NS_PER_MIN + 6 * NS_PER_S +
				7 * NS_PER_MS,
			NULL },
		{ "0s500ms", 500 * NS_PER_MS, NULL },
		{ "292y", 292 * 365 * NS_PER_DAY, NULL },
		{ "293y", 0, "duration out of range" },
		{ "106752d", 0, "duration out of range" },
		{ "292y25w", 0, "duration out of range" },
		{ "9223372036854ms", 9223372036854 * NS_PER_MS, NULL },
		{ "9223372036855ms", 0, "duration out of range" },
		{ "18446744073709551616ms", 0, "not a valid duration string: \"18446744073709551616ms\"" },
		{ "", 0, "empty duration string" },
		{ "1", 0, "not a valid duration string: \"1\"" },
		{ "s", 0, "not a valid duration string: \"s\"" },
		{ "-1s", 0, "not a valid duration string: \"-1s\"" },
		{ "+1s", 0, "not a valid duration string: \"+1s\"" },
		{ "1.5h", 0, "unknown unit \".\" in duration \"1.5h\"" },
		{ "1s1h", 0, "not a valid duration string: \"1s1h\"" },
		{ "1s1s", 0, "not a valid duration string: \"1s1s\"" },
		{ "1h30", 0, "not a valid duration string: \"1h30\"" },
		{ "1 h", 0, "unknown unit \" h\" in duration \"1 h\"" },
		{ "1us", 0, "unknown unit \"us\" in duration \"1us\"" },
		{ "1M", 0, "unknown unit \"M\" in duration \"1M\"" },
		{ "5m\n", 0, "unknown unit \"m\\n\" in duration \"5m\\n\"" },
	};
	struct err err;
	int64_t got;

	for (size_t i = 0; i < ROWS(rows); i++) {
		if (rows[i].msg) {
			CHECK_ERR(
				duration_parse(str_of(rows[i].text), &got, &err), &err, ERR_INVALID, rows[i].msg);
			continue;
		}
		CHECK_OK(duration_parse(str_of(rows[i].text), &got, &err), &err);
		if (got != rows[i].want)
			CHECK_FAIL("%s is %" PRId64, rows[i].text, got);
	}
}

TEST(durations_print)
{
	/* clang-format off */
	static const struct {
		int64_t ns;
		const char *want;
	} rows[] = {
		{ 0, "0s" }, { 999999, "0s" }, { -999999, "0s" }, { NS_PER_MS, "1ms" },
		{ 1500 * NS_PER_MS, "1s500ms" },
		{ 90 * NS_PER_MIN, "1h30m" }, { 7 * NS_PER_DAY, "1w" }, { 90 * NS_PER_DAY, "90d" },
		{ 365 * NS_PER_DAY, "1y" }, { 372 * NS_PER_DAY, "372d" }, { 730 * NS_PER_DAY, "2y" },
		{ 8 * NS_PER_DAY, "8d" }, { 15 * NS_PER_S, "15s" }, { -90 * NS_PER_S, "-1m30s" },
		{ INT64_MAX, "106751d23h47m16s854ms" }, { INT64_MIN, "-106751d23h47m16s854ms" },
	};
	/* clang-format on */
	struct buf b = { 0 };

	for (size_t i = 0; i < ROWS(rows); i++) {
		buf_clear(&b);
		duration_print(&b, rows[i].ns);
		CHECK_STR(buf_str(&b), rows[i].want);
	}
	buf_release(&b);
}

TEST(times)
{
	static const struct {
		const char *text;
		int64_t want;
		const char *msg;
	} rows[] = {
		{ "0", 0, NULL },
		{ "1795219120.907", INT64_C(1795219120907000000), NULL },
		{ "1795219120.123456789", INT64_C(1795219120123456789), NULL },
		{ "1795219120.1234567899", INT64_C(1795219120123456789), NULL },
		{ "-1.5", -1500000000, NULL },
		{ "+2", 2000000000, NULL },
		{ ".5", 500000000, NULL },
		{ "5.", 5000000000, NULL },
		{ "1.7e9", INT64_C(1700000000000000000), NULL },
		{ "1700000000123e-3", INT64_C(1700000000123000000), NULL },
		{ "0x10p0", 16 * NS_PER_S, NULL },
		{ "1970-01-01T00:00:00Z", 0, NULL },
		{ "2026-11-21T01:02:03.004Z", INT64_C(1795222923004000000), NULL },
		{ "2026-11-21T01:02:03,004Z", INT64_C(1795222923004000000), NULL },
		{ "2026-11-21T03:02:03.004+02:00", INT64_C(1795222923004000000), NULL },
		{ "2026-11-20T19:32:03.004-05:30", INT64_C(1795222923004000000), NULL },
		{ "2024-02-29T00:00:00.123456789Z", INT64_C(1709164800123456789), NULL },
		{ "1969-12-31T23:59:59.5Z", -500000000, NULL },
		{ "2023-02-29T00:00:00Z", 0, "cannot parse \"2023-02-29T00:00:00Z\" to a valid timestamp" },
		{ "2023-13-01T00:00:00Z", 0, "cannot parse \"2023-13-01T00:00:00Z\" to a valid timestamp" },
		{ "2023-01-01T24:00:00Z", 0, "cannot parse \"2023-01-01T24:00:00Z\" to a valid timestamp" },
		{ "2023-01-01T00:00:00", 0, "cannot parse \"2023-01-01T00:00:00\" to a valid timestamp" },
		{ "2023-01-01T00:00:00.Z", 0,
			"cannot parse \"2023-01-01T00:00:00.Z\" to a valid timestamp" },
		{ "2023-01-01t00:00:00z", 0, "cannot parse \"2023-01-01t00:00:00z\" to a valid timestamp" },
		{ "2023-01-01T00:00:00+0200", 0,
			"cannot parse \"2023-01-01T00:00:00+0200\" to a valid timestamp" },
		{ "2023-01-01", 0, "cannot parse \"2023-01-01\" to a valid timestamp" },
		{ "", 0, "cannot parse \"\" to a valid timestamp" },
		{ ".", 0, "cannot parse \".\" to a valid timestamp" },
		{ "-", 0, "cannot parse \"-\" to a valid timestamp" },
		{ " 1", 0, "cannot parse \" 1\" to a valid timestamp" },
		{ "1 ", 0, "cannot parse \"1 \" to a valid timestamp" },
		{ "0x10", 0, "cannot parse \"0x10\" to a valid timestamp" },
		{ "nan", 0, "cannot parse \"nan\" to a valid timestamp" },
		{ "+Inf", 0, "cannot parse \"+Inf\" to a valid timestamp" },
		{ "1e400", 0, "cannot parse \"1e400\" to a valid timestamp" },
		{ "1e300", 0, "time \"1e300\" is out of range, 1823-11-12 to 2116-02-20" },
		{ "9999999999", 0, "time \"9999999999\" is out of range, 1823-11-12 to 2116-02-20" },
		{ "-99999999999999999999999", 0,
			"time \"-99999999999999999999999\" is out of range, 1823-11-12 to 2116-02-20" },
		{ "0001-01-01T00:00:00Z", 0,
			"time \"0001-01-01T00:00:00Z\" is out of range, 1823-11-12 to 2116-02-20" },
	};
	struct err err;
	int64_t got;

	for (size_t i = 0; i < ROWS(rows); i++) {
		if (rows[i].msg) {
			CHECK_ERR(time_parse(str_of(rows[i].text), &got, &err), &err, ERR_INVALID, rows[i].msg);
			continue;
		}
		CHECK_OK(time_parse(str_of(rows[i].text), &got, &err), &err);
		if (got != rows[i].want)
			CHECK_FAIL("%s is %" PRId64, rows[i].text, got);
	}
}

TEST(times_print_and_read_back)
{
	static const struct {
		int64_t ns;
		const char *want;
	} rows[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ INT64_C(1795222923004000000), "2026-11-21T01:02:03.004Z" },
		{ INT64_C(1795222923004005000), "2026-11-21T01:02:03.004005Z" },
		{ INT64_C(1795222923004005006), "2026-11-21T01:02:03.004005006Z" },
		{ -1, "1969-12-31T23:59:59.999999999Z" },
		{ INT64_C(951782400000000000), "2000-02-29T00:00:00.000Z" },
		{ INT64_C(4107542400000000000), "2100-03-01T00:00:00.000Z" },
		{ TIME_MAX_NS, "2116-02-20T23:53:38.427387904Z" },
		{ -TIME_MAX_NS, "1823-11-12T00:06:21.572612096Z" },
	};
	struct buf b = { 0 };
	struct err err;
	int64_t back;

	for (size_t i = 0; i < ROWS(rows); i++) {
		buf_clear(&b);
		time_print_rfc3339(&b, rows[i].ns);
		CHECK_STR(buf_str(&b), rows[i].want);
		CHECK_OK(time_parse(buf_str(&b), &back, &err), &err);
		CHECK_INT(back, rows[i].ns);
	}
	for (int64_t day = -60000; day < 60000; day++) { /* each day of 300 years */
		int64_t t = day * NS_PER_DAY / 2 + 1;

		buf_clear(&b);
		time_print_rfc3339(&b, t);
		if (time_parse(buf_str(&b), &back, &err) || back != t)
			CHECK_FAIL("day %" PRId64 ": " STR_FMT, day, STR_ARG(buf_str(&b)));
	}
	buf_release(&b);
}

TEST(bytes)
{
	static const struct {
		const char *text;
		uint64_t want;
		const char *msg;
	} rows[] = {
		{ "0", 0, NULL },
		{ "0B", 0, NULL },
		{ "17B", 17, NULL },
		{ "10KB", 10240, NULL },
		{ "10KiB", 10240, NULL },
		{ "10MB", 10485760, NULL },
		{ "512MiB", 536870912, NULL },
		{ "1GB", 1073741824, NULL },
		{ "1.5GB", 1610612736, NULL },
		{ ".5KB", 512, NULL },
		{ "1GB512MB", 1610612736, NULL },
		{ "2TB", UINT64_C(2) << 40, NULL },
		{ "2PiB", UINT64_C(2) << 50, NULL },
		{ "7EB", UINT64_C(7) << 60, NULL },
		{ "8EB", 0, "units: \"8EB\" is out of range" },
		{ "99999999999999999999B", 0, "units: invalid \"99999999999999999999B\"" },
		{ "10", 0, "units: \"10\" needs a unit: B, KB, MB, GB, TB, PB or EB" },
		{ "10mb", 0, "units: unknown unit \"mb\" in \"10mb\"" },
		{ "10kB", 0, "units: unknown unit \"kB\" in \"10kB\"" },
		{ "10M", 0, "units: unknown unit \"M\" in \"10M\"" },
		{ "10 MB", 0, "units: unknown unit \" MB\" in \"10 MB\"" },
		{ "-1B", 0, "units: invalid \"-1B\"" },
		{ "", 0, "units: invalid \"\"" },
		{ "MB", 0, "units: invalid \"MB\"" },
		{ ".B", 0, "units: invalid \".B\"" },
	};
	struct err err;
	uint64_t got;

	for (size_t i = 0; i < ROWS(rows); i++) {
		if (rows[i].msg) {
			CHECK_ERR(
				bytes_parse(str_of(rows[i].text), &got, &err), &err, ERR_INVALID, rows[i].msg);
			continue;
		}
		CHECK_OK(bytes_parse(str_of(rows[i].text), &got, &err), &err);
		if (got != rows[i].want)
			CHECK_FAIL("%s is %" PRIu64, rows[i].text, got);
	}
}

TEST(clocks_go_forward)
{
	int64_t a = clock_monotonic_ns(), b = clock_monotonic_ns();

	CHECK(b >= a);
	CHECK(clock_now_ns() > INT64_C(1600000000) * NS_PER_S);
}
