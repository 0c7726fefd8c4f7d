#include "base/self/flags.h"

#include "tests/check.h"

static bool lifecycle;
static const char *config;
static int64_t timeout;
static uint64_t size, samples;
static struct flag_list listen;

static struct flag flags[] = {
	{ "web.enable-lifecycle", FLAG_BOOL, &lifecycle, "false",
		"Enable shutdown and reload over HTTP.", 'l' },
	{ "config.file", FLAG_STRING, &config, "epimetheus.yml", "Configuration file path.", 'c' },
	{ "query.timeout", FLAG_DURATION, &timeout, "2m", "Longest time one query may take." },
	{ "storage.tsdb.retention.size", FLAG_BYTES, &size, "0", "Most bytes that blocks may take." },
	{ "query.max-samples", FLAG_UINT, &samples, NULL, "Most samples a query may load." },
	{ "web.listen-address", FLAG_LIST, &listen, "0.0.0.0:7272",
		"Address to listen on; may be given several times, and then the default is not." },
};
#define FLAGS (sizeof(flags) / sizeof(flags[0]))

static const char *args[3];
static size_t args_n;
static bool help, version;

static enum err_code parse(const char *const *list, struct err *err)
{
	char *argv[80] = { (char *)(uintptr_t) "program" };
	int argc = 1;

	for (; *list; list++)
		argv[argc++] = (char *)(uintptr_t)*list;
	lifecycle = false, config = NULL, timeout = -1, size = 1, samples = 77, listen.n = 0;
	return flags_parse(flags, FLAGS, argc, argv, args, 3, &args_n, &help, &version, err);
}
#define PARSE(...) parse((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL }, &err)

static void check_values(const char *const *want)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < FLAGS; i++) {
		buf_clear(&b);
		flag_print_value(&b, &flags[i]);
		CHECK_STR(buf_str(&b), want[i]);
	}
	buf_release(&b);
}
#define VALUES(...) check_values((const char *const[]){ __VA_ARGS__ })

TEST(defaults)
{
	struct err err;

	CHECK_OK(PARSE(), &err);
	VALUES("false", "epimetheus.yml", "2m", "0B", "77", "0.0.0.0:7272");
	for (size_t i = 0; i < FLAGS; i++)
		CHECK(!flags[i].set);
}

TEST(all_spellings)
{
	struct err err;

	CHECK_OK(PARSE("--web.enable-lifecycle", "--config.file=a=b.yml", "--query.timeout", "90s",
				 "--storage.tsdb.retention.size=512MB", "--query.max-samples=5",
				 "--web.listen-address=:1", "--web.listen-address", ":2"),
		&err);
	VALUES("true", "a=b.yml", "1m30s", "512MiB", "5", ":1,:2");
	CHECK(flags[0].set && flags[5].set);
	CHECK_OK(PARSE("-l", "-c", "x.yml"), &err);
	VALUES("true", "x.yml", "2m", "0B", "77", "0.0.0.0:7272");
	CHECK_OK(PARSE("-lcx.yml"), &err);
	VALUES("true", "x.yml", "2m", "0B", "77", "0.0.0.0:7272");
	CHECK_OK(PARSE("--no-web.enable-lifecycle", "--config.file="), &err);
	VALUES("false", "", "2m", "0B", "77", "0.0.0.0:7272");
	CHECK(flags[0].set && !flags[2].set);
	CHECK_OK(PARSE("--web.enable-lifecycle=true"), &err);
	CHECK(lifecycle);
	CHECK_OK(PARSE("--config.file", "--query.timeout"), &err); /* a value may look like a flag */
	CHECK_STR(str_of(config), "--query.timeout");
}

TEST(arguments)
{
	struct err err;

	CHECK_OK(PARSE("check", "-l", "-", "--", "--query.timeout"), &err);
	CHECK_INT(args_n, 3);
	CHECK_STR(str_of(args[0]), "check");
	CHECK_STR(str_of(args[1]), "-");
	CHECK_STR(str_of(args[2]), "--query.timeout");
	CHECK(lifecycle);
	CHECK_ERR(PARSE("a", "b", "c", "d"), &err, ERR_INVALID, "unexpected d");
}

TEST(help_and_version)
{
	struct err err;

	CHECK_OK(PARSE("--help", "--nonsense"), &err);
	CHECK(help && !version);
	CHECK_OK(PARSE("-h"), &err);
	CHECK(help);
	CHECK_OK(PARSE("-lh"), &err);
	CHECK(help);
	CHECK_OK(PARSE("--version"), &err);
	CHECK(version && !help);
}

TEST(errors)
{
	struct err err;

	CHECK_ERR(PARSE("--x"), &err, ERR_INVALID, "unknown long flag '--x'");
	CHECK_ERR(PARSE("--x=5"), &err, ERR_INVALID, "unknown long flag '--x'");
	CHECK_ERR(PARSE("--no-config.file"), &err, ERR_INVALID,
		"unknown long flag '--no-config.file'; did you mean '--config.file'?");
	CHECK_ERR(PARSE("--config-file=x"), &err, ERR_INVALID,
		"unknown long flag '--config-file'; did you mean '--config.file'?");
	CHECK_ERR(PARSE("-z"), &err, ERR_INVALID, "unknown short flag '-z'");
	CHECK_ERR(
		PARSE("--config.file"), &err, ERR_INVALID, "expected argument for flag '--config.file'");
	CHECK_ERR(PARSE("-c"), &err, ERR_INVALID, "expected argument for flag '--config.file'");
	CHECK_ERR(PARSE("--config.file=a", "--config.file=b"), &err, ERR_INVALID,
		"flag 'config.file' cannot be repeated");
	CHECK_ERR(PARSE("--query.timeout=1"), &err, ERR_INVALID,
		"invalid value for flag '--query.timeout': not a valid duration string: \"1\"");
	CHECK_ERR(PARSE("--storage.tsdb.retention.size=5"), &err, ERR_INVALID,
		"invalid value for flag '--storage.tsdb.retention.size': units: \"5\" needs a unit: "
		"B, KB, MB, GB, TB, PB or EB");
	CHECK_ERR(PARSE("--query.max-samples=-1"), &err, ERR_INVALID,
		"invalid value for flag '--query.max-samples': not a valid number: \"-1\"");
	CHECK_ERR(PARSE("--web.enable-lifecycle=yes"), &err, ERR_INVALID,
		"invalid value for flag '--web.enable-lifecycle': not true or false: \"yes\"");
	CHECK_ERR(PARSE("--no-web.enable-lifecycle=true"), &err, ERR_INVALID,
		"unexpected value \"true\" for flag '--no-web.enable-lifecycle'");
}

TEST(lists_are_bounded)
{
	const char *list[FLAG_LIST_MAX + 2];
	struct err err;

	for (size_t i = 0; i <= FLAG_LIST_MAX; i++)
		list[i] = "--web.listen-address=:1";
	list[FLAG_LIST_MAX + 1] = NULL;
	CHECK_ERR(parse(list, &err), &err, ERR_LIMIT,
		"invalid value for flag '--web.listen-address': given more than 64 times");
}

TEST(help_text)
{
	struct buf b = { 0 };

	flags_print_help(&b, "epimetheus", "Looks back at code.", flags, FLAGS);
	CHECK_STR(buf_str(&b),
		"usage: epimetheus [<flags>]\n"
		"\n"
		"Looks back at code.\n"
		"\n"
		"Flags:\n"
		"  -h, --help                     Show this help.\n"
		"      --version                  Show the version.\n"
		"  -l, --[no-]web.enable-lifecycle\n"
		"                                 Enable shutdown and reload over HTTP.\n"
		"  -c, --config.file=\"epimetheus.yml\"\n"
		"                                 Configuration file path.\n"
		"      --query.timeout=2m         Longest time one query may take.\n"
		"      --storage.tsdb.retention.size=0\n"
		"                                 Most bytes that blocks may take.\n"
		"      --query.max-samples=N      Most samples a query may load.\n"
		"      --web.listen-address=\"0.0.0.0:7272\" ...\n"
		"                                 Address to listen on; may be given several\n"
		"                                 times, and then the default is not.\n");
	buf_release(&b);
}
