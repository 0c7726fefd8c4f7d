#include "base/log.h"

#include <errno.h>
#include <unistd.h>

#include "tests/check.h"

static char line[32768];

/* The line of one call on standard error without its time, whose form is checked. */
#define CAPTURE(call) \
	do { \
		int saved_ = dup(2); \
		FILE *f_ = tmpfile(); \
		dup2(fileno(f_), 2); \
		call; \
		dup2(saved_, 2); \
		close(saved_); \
		rewind(f_); \
		line[fread(line, 1, sizeof(line) - 1, f_)] = '\0'; \
		fclose(f_); \
	} while (0)

static struct str without_time(const char *prefix)
{
	static const char form[] = "0000-00-00T00:00:00.000Z";
	const char *p = line + strlen(prefix), *f;

	if (strncmp(line, prefix, strlen(prefix)))
		return STR("no time");
	for (f = form; *f; f++, p++)
		if (*f == '0' ? *p < '0' || *p > '9' : *p != *f)
			return STR("bad time");
	return str_of(p);
}

TEST(logfmt)
{
	struct err err;

	log_set(LOG_INFO, LOG_LOGFMT);
	err_set(&err, ERR_IO, "open \"x\": No such file");
	CAPTURE(log_warn("scrape", "target failed", LOG_S("target", "http://a:1/x?y"), LOG_I("n", -5),
		LOG_D("took", 1500 * 1000 * 1000), LOG_E(&err)));
	CHECK_STR(without_time("time="),
		" level=warn component=scrape msg=\"target failed\" "
		"target=http://a:1/x?y n=-5 took=1.5s err=\"open \\\"x\\\": No such file\"\n");
	CAPTURE(log_error("x", "plain"));
	CHECK_STR(without_time("time="), " level=error component=x msg=plain\n");
	CAPTURE(log_info("x", "values", LOG_S("empty", ""), LOG_S("null", NULL), LOG_S("eq", "a=b"),
		LOG_STR("bytes", STR("\xff\n")), LOG_S("accent", "\xc3\xa9"), LOG_S("back", "a\\b"),
			LOG_E(NULL)));
	CHECK_STR(without_time("time="),
		" level=info component=x msg=values empty=\"\" null=\"\" eq=\"a=b\" "
		"bytes=\"\\xff\\n\" accent=\"\xc3\xa9\" back=\"a\\\\b\" err=\"\"\n");
}

TEST(json_lines)
{
	struct err err;

	log_set(LOG_DEBUG, LOG_JSON);
	err_set(&err, ERR_IO, "bad \xff byte");
	CAPTURE(log_debug(
		"tsdb", "block \"made\"", LOG_I("rows", 12), LOG_D("took", 20 * 1000 * 1000), LOG_E(&err)));
	CHECK_STR(without_time("{\"time\":\""),
		"\",\"level\":\"debug\",\"component\":\"tsdb\","
		"\"msg\":\"block \\\"made\\\"\","
		"\"rows\":12,\"took\":\"20ms\",\"err\":\"bad \xef\xbf\xbd byte\"}\n");
	log_set(LOG_INFO, LOG_LOGFMT);
}

TEST(levels)
{
	enum log_format format;
	enum log_level level;
	struct err err;

	log_set(LOG_WARN, LOG_LOGFMT);
	CAPTURE(log_info("x", "too low"));
	CHECK_STR(str_of(line), "");
	CHECK(log_enabled(LOG_ERROR) && log_enabled(LOG_WARN) && !log_enabled(LOG_INFO));
	log_set(LOG_INFO, LOG_LOGFMT);
	CHECK_OK(log_level_parse(STR("error"), &level, &err), &err);
	CHECK_INT(level, LOG_ERROR);
	CHECK_OK(log_format_parse(STR("json"), &format, &err), &err);
	CHECK_INT(format, LOG_JSON);
	CHECK_ERR(log_level_parse(STR("loud"), &level, &err), &err, ERR_INVALID,
		"unrecognized log level \"loud\", want one of debug, info, warn, error");
	CHECK_ERR(log_format_parse(STR("xml"), &format, &err), &err, ERR_INVALID,
		"unrecognized log format \"xml\", want one of logfmt, json");
}

TEST(durations)
{
	/* clang-format off */
	static const struct {
		int64_t ns;
		const char *want;
	} rows[] = {
		{ 0, "0s" }, { 350, "350ns" }, { 1500, "1.5us" }, { 20000000, "20ms" },
		{ 1234567, "1.234ms" },
		{ 1500000000, "1.5s" }, { 1000000001, "1s" }, { 90500000000, "1m30.5s" },
		{ 3600000000000, "1h0m0s" }, { 3725000000000, "1h2m5s" }, { -20000000, "-20ms" },
		{ 60000000000, "1m0s" },
	};
	/* clang-format on */
	char want[128];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CAPTURE(log_info("x", "y", LOG_D("d", rows[i].ns)));
		snprintf(want, sizeof(want), " level=info component=x msg=y d=%s\n", rows[i].want);
		CHECK_STR(without_time("time="), want);
	}
}

TEST(long_values_are_cut_between_code_points)
{
	static char text[10000];
	struct str got;

	for (size_t i = 1; i + 1 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	text[0] = 'a';
	CAPTURE(log_info("x", "y", LOG_STR("v", ((struct str){ text, 9999 }))));
	got = without_time("time=");
	CHECK_INT(got.len, strlen(" level=info component=x msg=y v=\"") + 4095 + strlen("...\"\n"));
	CHECK(str_is_utf8(got));
	CHECK(str_has_suffix(got, STR("\xc3\xa9...\"\n")));
}

TEST(errno_is_kept)
{
	int after = 0;

	errno = 1234;
	CAPTURE((errno = 1234, log_write(LOG_INFO, "x", "y", NULL, 0), after = errno));
	CHECK_INT(after, 1234);
}
