/*
 * Stacks by name in all formats. testdata: the same stacks, written by Pyroscope's own code as
 * trie, tree and text, and a recording of py-spy 0.4.3 (--format speedscope).
 */
#include "proto/folded/folded.h"

#include "base/fs.h"
#include "tests/check.h"
#include "tests/proto/folded/stacks.h"

#define DATA "tests/proto/folded/testdata/"
#define LIT(s) \
	{ \
		s, sizeof(s) - 1 \
	}

static const struct folded_meaning samples = { .type = LIT("samples"),
	.unit = LIT("count"),
	.period_type = LIT("cpu"),
	.period_unit = LIT("nanoseconds"),
	.period = 10000000,
	.scale = 1,
	.time_nanos = 5,
	.duration_nanos = 7 };

/* All profiles of a body, "name: type/unit" and stacks, or the error. */
static void decode(
	enum folded_format format, struct str body, const struct pprof_limits *limits, struct buf *out)
{
	struct folded_profile *v = NULL;
	struct err err = { 0 };
	struct arena a;
	uint32_t n = 0;

	arena_init(&a, 64 << 20);
	buf_clear(out);
	if (folded_decode(&a, format, body, &samples, limits, &v, &n, &err)) {
		CHECK(!v && !n);
		buf_printf(out, "%s: %s", err_code_name(err.code), err.msg);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct pprof *p = v[i].profile;

		if (v[i].name.len)
			buf_printf(out, "[" STR_FMT " " STR_FMT "] ", STR_ARG(v[i].name),
				STR_ARG(p->strings[p->types[0].unit]));
		print_stacks(p, "; ", out);
		if (p->stacks_cut)
			buf_printf(out, "(%u cut)", p->stacks_cut);
	}
	arena_release(&a);
}

static const struct {
	enum folded_format format;
	struct str body;
	const char *want; /* stacks by name, or the error */
} rows[] = {
	{ FOLDED_STACKS, LIT("a;b 1\na;b 2\r\na 5\n\nmain loop;run (x) 7"),
		"a 5; a;b 3; main loop;run (x) 7; " },
	{ FOLDED_STACKS, LIT(""), "" },
	{ FOLDED_STACKS, LIT("\n\r\n"), "" },
	{ FOLDED_STACKS, LIT("a;b 0\n"), "" },
	{ FOLDED_STACKS, LIT(";;a;;b; 3\n"), "a;b 3; " },
	{ FOLDED_STACKS, LIT(" 3\n"), " 3; " },
	{ FOLDED_STACKS,
		LIT("\xef\xbb\xbf"
			"a;b\t1\r\na;b \t 2\r\n"),
		"a;b 3; " },
	{ FOLDED_STACKS, LIT("\xef\xbb\xbf"), "" },
	{ FOLDED_STACKS, LIT("a;b\tc 1\n"), "a;b\tc 1; " },
	{ FOLDED_LINES,
		LIT("\xef\xbb\xbf"
			"a;b\r\na;b\r\n"),
		"a;b 2; " },
	{ FOLDED_STACKS, LIT("a;b\n"),
		"invalid input: folded stacks: line 1: expected \"frame;frame value\"" },
	{ FOLDED_STACKS, LIT("a 1\na;b 1.5\n"),
		"invalid input: folded stacks: line 2: expected a whole number after the last space or "
		"tab" },
	{ FOLDED_STACKS, LIT("a -1\n"),
		"invalid input: folded stacks: line 1: expected a whole number after the last space or "
		"tab" },
	{ FOLDED_STACKS, LIT("a 9223372036854775808\n"),
		"invalid input: folded stacks: line 1: expected a whole number after the last space or "
		"tab" },
	{ FOLDED_STACKS, LIT("a 9223372036854775807\na 1\n"),
		"invalid input: folded stacks: line 2: the value of a stack has more than 64 bits" },
	{ FOLDED_STACKS, LIT("a 9223372036854775807\nb 1\n"),
		"invalid input: folded stacks: the total of all stacks has more than 64 bits" },
	{ FOLDED_LINES, LIT("a;b\na;b\nc d\n\n"), "a;b 2; c d 1; " },
	/* the root without a name; "a" with 1, below it "b" and "c" */
	{ FOLDED_TREE,
		LIT("\0\0\1"
			"\1a\1\2"
			"\1b\2\0"
			"\1c\3\0"),
		"a 1; a;b 2; a;c 3; " },
	{ FOLDED_TREE, LIT("\0\0\0"), "" },
	{ FOLDED_TREE,
		LIT("\0\0\2"
			"\0\1\1"
			"\1b\2\0"
			"\3c;d\3\0"),
		" 1; b 2; c;d 3; " },
	{ FOLDED_TREE, LIT(""), "invalid input: tree: node 1 is cut off" },
	{ FOLDED_TREE, LIT("\0\1\0"), "invalid input: tree: the root has a name or a value" },
	{ FOLDED_TREE, LIT("\1a\0\0"), "invalid input: tree: the root has a name or a value" },
	{ FOLDED_TREE,
		LIT("\0\0\1"
			"\5a\1\2"),
		"invalid input: tree: node 2 is cut off" },
	{ FOLDED_TREE, LIT("\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"),
		"invalid input: tree: node 1 has 18446744073709551615 children, but 0 bytes follow" },
	{ FOLDED_TREE,
		LIT("\0\0\1"
			"\1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0"),
		"invalid input: tree: the value of node 2 has more than 63 bits" },
	{ FOLDED_TREE,
		LIT("\0\0\1"
			"\1a\1\0"
			"\0"),
		"invalid input: tree: 1 bytes after the last node" },
	/* "ma" + "in", "in;x;y" and "p;q" */
	{ FOLDED_TRIE,
		LIT("\0\0\1"
			"\2ma\1\2"
			"\2in\2\1"
			"\4;x;y\0\0"
			"\3p;q\4\0"),
		"ma 1; main 2; map;q 4; " },
	{ FOLDED_TRIE,
		LIT("\0\0\2"
			"\3a;b\1\2"
			"\2;c\2\0"
			"\1c\3\0"
			"\1d\4\0"),
		"a;b 1; a;b;c 2; a;bc 3; d 4; " },
	{ FOLDED_TRIE, LIT(""), "" },
	{ FOLDED_TRIE,
		LIT("\0\0\1"
			"\2ma\1\2"
			"\2in\2\0"),
		"invalid input: trie: node 2 has 2 children, but 5 bytes follow" },
	{ FOLDED_SPEEDSCOPE, LIT("{}"), "unsupported: speedscope: $schema is not speedscope's" },
	{ FOLDED_SPEEDSCOPE, LIT("[]"), "invalid input: speedscope: byte 0: expected an object" },
	{ FOLDED_SPEEDSCOPE, LIT("{"),
		"invalid input: speedscope: JSON ends at byte 1: expected the end of what begins before" },
};

/* What is between the brackets of "frames" and of "profiles" in a file. */
#define FILE_OF(frames, profiles) \
	LIT("{\"$schema\":\"https://www.speedscope.app/" \
		"file-format-schema.json\",\"profiles\":[" profiles "],\"shared\":{\"frames\":[" frames \
		"]},\"name\":\"x\",\"activeProfileIndex\":null}")
#define ABC \
	"{\"name\":\"a\"},{\"name\":\"b\",\"file\":\"b.c\",\"line\":3,\"col\":4},{\"name\":" \
	"\"\\u00fc\\ud83d\\ude00\\n\",\"line\":null}"
#define HEAD(type, unit) \
	"\"type\":\"" type "\",\"name\":\"t\",\"unit\":\"" unit "\",\"startValue\":1,\"endValue\":10"

static const struct {
	struct str body;
	const char *want;
} speedscope[] = {
	{ FILE_OF(ABC,
		  "{" HEAD("sampled",
			  "milliseconds") ",\"samples\":[[0,1],[0],[0,1,2],[0,1]],\"weights\":[1,0.5,2e-1,2]}"),
		"[t nanoseconds] a 500000; a;b 3000000; a;b;\xc3\xbc\xf0\x9f\x98\x80\n 200000; " },
	{ FILE_OF(ABC,
		  "{" HEAD(
			  "sampled", "none") ",\"samples\":[[0],[1],[0],[1]],\"weights\":[0.5,0.5,0.5,0.5]}"),
		"[t count] a 2; " },
	{ FILE_OF(
		  ABC, "{\"samples\":[[0]],\"weights\":[9007199254740993]," HEAD("sampled", "bytes") "}"),
		"[t bytes] a 9007199254740993; " },
	{ FILE_OF(ABC,
		  "{" HEAD("evented",
			  "seconds") ",\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":2},{\"type\":\"O\","
						 "\"frame\":1,\"at\":2.5},"
						 "{\"type\":\"C\",\"frame\":1,\"at\":4},{\"type\":\"C\",\"frame\":0,\"at\":"
						 "7},{\"type\":\"O\",\"frame\":2,\"at\":9}]}"),
		"[t nanoseconds] a 3500000000; a;b 1500000000; \xc3\xbc\xf0\x9f\x98\x80\n 1000000000; " },
	{ FILE_OF(ABC,
		  "{" HEAD("sampled", "none") ",\"samples\":[],\"weights\":[]},{" HEAD(
			  "sampled", "bytes") ",\"samples\":[[1]],\"weights\":[3]}"),
		"[t count] [t bytes] b 3; " },
	{ FILE_OF("", ""), "" },
	{ FILE_OF(ABC, "{" HEAD("sampled", "none") ",\"samples\":[[3]],\"weights\":[1]}"),
		"invalid input: speedscope: profile[0]: byte 160: expected the index of a frame" },
	{ FILE_OF(ABC, "{" HEAD("sampled", "none") ",\"samples\":[[0]],\"weights\":[]}"),
		"invalid input: speedscope: profile[0]: more samples than weights" },
	{ FILE_OF(ABC, "{" HEAD("sampled", "none") ",\"samples\":[[0]],\"weights\":[-1]}"),
		"invalid input: speedscope: profile[0]: byte 175: expected a weight that is not negative" },
	{ FILE_OF(ABC, "{" HEAD("sampled", "none") ",\"samples\":[[0]],\"weights\":[01]}"),
		"invalid input: speedscope: profile[0]: byte 175: expected a number" },
	{ FILE_OF(ABC, "{" HEAD("sampled", "seconds") ",\"samples\":[[0]],\"weights\":[9223372037]}"),
		"invalid input: speedscope: profile[0]: a value has more than 64 bits" },
	{ FILE_OF(ABC, "{" HEAD("sampled", "hours") ",\"samples\":[[0]],\"weights\":[1]}"),
		"invalid input: speedscope: byte 112: expected a unit of speedscope" },
	{ FILE_OF(ABC, "{" HEAD("other", "none") "}"),
		"invalid input: speedscope: profile[0]: byte 84: expected the type \"sampled\" or "
		"\"evented\"" },
	{ FILE_OF(ABC,
		  "{" HEAD("evented", "none") ",\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":2},{"
									  "\"type\":\"C\",\"frame\":1,\"at\":3}]}"),
		"invalid input: speedscope: profile[0]: byte 188: expected the close of the frame opened "
		"last" },
	{ FILE_OF(
		  ABC, "{" HEAD("evented", "none") ",\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":0}]}"),
		"invalid input: speedscope: profile[0]: events are not in the order of time" },
	{ FILE_OF(
		  ABC, "{" HEAD("evented", "none") ",\"events\":[{\"type\":\"X\",\"frame\":0,\"at\":2}]}"),
		"invalid input: speedscope: profile[0]: byte 158: expected an event with type \"O\" or "
		"\"C\", frame, at" },
	{ FILE_OF("{\"file\":\"x\"}", ""),
		"invalid input: speedscope: byte 98: expected a frame with a name" },
	{ FILE_OF("{\"name\":\"\\x\"}", ""),
		"invalid input: speedscope: byte 108: expected an escape" },
	{ FILE_OF("{\"name\" \"x\"}", ""), "invalid input: speedscope: byte 106: expected ':'" },
};

TEST(each_format)
{
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		decode(rows[i].format, rows[i].body, &pprof_limits_default, &out);
		CHECK_STR(buf_str(&out), rows[i].want);
	}
	for (size_t i = 0; i < sizeof(speedscope) / sizeof(speedscope[0]); i++) {
		decode(FOLDED_SPEEDSCOPE, speedscope[i].body, &pprof_limits_default, &out);
		CHECK_STR(buf_str(&out), speedscope[i].want);
	}
	buf_release(&out);
}

TEST(what_the_values_are)
{
	struct folded_meaning meaning = samples;
	struct folded_profile *v;
	const struct pprof *p;
	struct arena a;
	struct err err;
	uint32_t n;

	arena_init(&a, 0);
	meaning.scale = 10000000;
	REQUIRE_OK(folded_decode(
		&a, FOLDED_STACKS, STR("a;b 3\n"), &meaning, &pprof_limits_default, &v, &n, &err), &err);
	p = v->profile;
	CHECK_INT(n, 1);
	CHECK_INT(p->values[0], 30000000);
	CHECK_STR(p->strings[p->types[0].type], "samples");
	CHECK_STR(p->strings[p->types[0].unit], "count");
	CHECK_STR(p->strings[p->period_type.type], "cpu");
	CHECK_STR(p->strings[p->period_type.unit], "nanoseconds");
	CHECK_INT(p->period, 10000000);
	CHECK_INT(p->time_nanos, 5);
	CHECK_INT(p->duration_nanos, 7);
	CHECK_INT(p->locations_n, 2);
	CHECK_INT(p->locations[0].mapping, PPROF_NONE);
	CHECK_ERR(folded_decode(
		&a, FOLDED_STACKS, STR("a 922337203686\n"), &meaning, &pprof_limits_default, &v, &n, &err),
		&err, ERR_INVALID, "folded stacks: line 1: the value of a stack has more than 64 bits");
	/* Files and lines are speedscope's. */
	REQUIRE_OK(folded_decode(&a, FOLDED_SPEEDSCOPE, speedscope[0].body, &meaning,
				   &pprof_limits_default, &v, &n, &err),
		&err);
	p = v->profile;
	CHECK_STR(p->strings[p->functions[1].filename], "b.c");
	CHECK_INT(p->lines[1].line, 3);
	CHECK_INT(p->lines[1].column, 4);
	CHECK_INT(p->values[1], 3000000); /* nanoseconds, not scaled */
	arena_release(&a);
}

TEST(which_format)
{
	CHECK_INT(folded_format_of(STR(""), STR("")), FOLDED_STACKS);
	CHECK_INT(folded_format_of(STR("folded"), STR("text/plain")), FOLDED_STACKS);
	CHECK_INT(folded_format_of(STR("lines"), STR("")), FOLDED_LINES);
	CHECK_INT(folded_format_of(STR("trie"), STR("")), FOLDED_TRIE);
	CHECK_INT(folded_format_of(STR(""), STR("binary/octet-stream+trie")), FOLDED_TRIE);
	CHECK_INT(folded_format_of(STR("tree"), STR("")), FOLDED_TREE);
	CHECK_INT(folded_format_of(STR(""), STR("binary/octet-stream+tree")), FOLDED_TREE);
	CHECK_INT(folded_format_of(STR("speedscope"), STR("")), FOLDED_SPEEDSCOPE);
}

/* ------------------------------------------------------------------------------------------------
 * What others wrote. */

static void load(const char *name, struct buf *out)
{
	char path[256];
	struct err err;

	snprintf(path, sizeof(path), DATA "%s", name);
	CHECK_OK(fs_read_file(path, 1 << 22, out, &err), &err);
}

TEST(what_pyroscope_wrote)
{
	static const struct {
		enum folded_format format;
		const char *name;
	} files[] = { { FOLDED_STACKS, "folded" }, { FOLDED_TRIE, "trie" }, { FOLDED_TREE, "tree" } };
	struct buf want = { 0 }, body = { 0 };

	load("folded", &want);
	CHECK(want.len > 4000);
	for (size_t i = 0; i < 3; i++) {
		struct folded_profile *v;
		struct buf out = { 0 };
		struct arena a;
		struct err err;
		uint32_t n;

		arena_init(&a, 0);
		buf_clear(&body);
		load(files[i].name, &body);
		REQUIRE_OK(folded_decode(&a, files[i].format, buf_str(&body), &samples,
					   &pprof_limits_default, &v, &n, &err),
			&err);
		print_stacks(v->profile, "\n", &out);
		CHECK(str_eq(buf_str(&out), buf_str(&want)));
		buf_release(&out);
		arena_release(&a);
	}
	buf_release(&want);
	buf_release(&body);
}

static int64_t total(const struct pprof *p)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->samples_n; i++)
		sum += p->values[i];
	return sum;
}

/* What a stack's leaf of that name has. */
static int64_t self(const struct pprof *p, const char *name)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_location *l =
			&p->locations[p->location_ids[p->samples[i].location_first]];

		if (str_is(p->strings[p->functions[p->lines[l->line_first].function].name], name))
			sum += p->values[i];
	}
	return sum;
}

TEST(what_py_spy_wrote)
{
	struct buf body = { 0 };
	struct folded_profile *v;
	struct arena a;
	struct err err;
	uint32_t n;

	load("pyspy.speedscope.json", &body);
	arena_init(&a, 0);
	REQUIRE_OK(folded_decode(&a, FOLDED_SPEEDSCOPE, buf_str(&body), &samples, &pprof_limits_default,
				   &v, &n, &err),
		&err);
	REQUIRE(n == 2);
	CHECK_STR(v[0].name, "Thread 2869 \"\"");
	CHECK_STR(v[1].name, "Thread 2920 \"worker\"");
	CHECK_STR(v[0].profile->strings[v[0].profile->types[0].unit], "nanoseconds");
	CHECK_INT(total(v[0].profile), 2150000000);
	CHECK_INT(total(v[1].profile), 2050000000);
	CHECK_INT(self(v[0].profile, "squeeze"), 900000000);
	CHECK_INT(self(v[1].profile, "count.<locals>.<genexpr>"), 650000000);
	CHECK_INT(self(v[1].profile, "count"), 500000000);
	arena_release(&a);
	buf_release(&body);
}

/* ------------------------------------------------------------------------------------------------
 * Limits and damage. */

TEST(limits)
{
	struct pprof_limits limits = pprof_limits_default;
	struct buf out = { 0 }, body = { 0 };

	limits.raw_bytes_max = 3;
	decode(FOLDED_LINES, STR("a;b;c;d\n"), &limits, &out);
	CHECK_STR(buf_str(&out), "limit exceeded: profile is 8 bytes inflated, limit 3");
	limits = pprof_limits_default;
	limits.stack_depth_max = 3; /* those at the root are left out */
	decode(FOLDED_LINES, STR("a;b;c;d\nb;c;d\na;b;c;d;e\n"), &limits, &out);
	CHECK_STR(buf_str(&out), "b;c;d 1; b;c;d 1; c;d;e 1; (2 cut)");
	limits = pprof_limits_default;
	limits.samples_max = 1;
	decode(FOLDED_LINES, STR("a\nb\n"), &limits, &out);
	CHECK_STR(buf_str(&out),
		"limit exceeded: lines of stacks: profile has more than 1 samples, the limit");
	decode(FOLDED_TREE, (struct str)LIT("\0\0\2\1a\1\0\1b\1\0"), &limits, &out);
	CHECK_STR(buf_str(&out), "limit exceeded: tree: more than 1 values, the limit");
	limits = pprof_limits_default;
	limits.elements_max = 2;
	decode(FOLDED_LINES, STR("a;b\n"), &limits, &out);
	CHECK_STR(buf_str(&out),
		"limit exceeded: lines of stacks: line 1: profile has more than 2 calls, the limit");
	decode(FOLDED_LINES, STR("a\nb;c\n"), &limits, &out);
	decode(FOLDED_TREE, (struct str)LIT("\0\0\2\1a\1\0\1b\1\0"), &limits, &out);
	CHECK_STR(buf_str(&out), "limit exceeded: tree: more than 2 nodes, the limit");
	for (int i = 0; i < 16385; i++)
		buf_add_char(&body, 'x');
	decode(FOLDED_LINES, buf_str(&body), &pprof_limits_default, &out);
	CHECK_STR(buf_str(&out),
		"limit exceeded: lines of stacks: line 1: a name of 16385 bytes, limit 16384");
	buf_clear(&body);
	buf_add_cstr(&body, "{\"$schema\":");
	for (int i = 0; i < 65; i++)
		buf_add_char(&body, '[');
	decode(FOLDED_SPEEDSCOPE, buf_str(&body), &pprof_limits_default, &out);
	CHECK_STR(
		buf_str(&out), "limit exceeded: speedscope: byte 0: nesting of more than 64, the limit");
	buf_release(&out);
	buf_release(&body);
}

/* Frames of a trie that are never complete: the text is as long as the body, not its square. */
TEST(deep_tries)
{
	struct buf body = { 0 }, out = { 0 };

	for (int i = 0; i < 100000; i++)
		buf_add(&body, "\1a\0\1", 4);
	buf_add(&body, "\1b\1\0", 4);
	decode(FOLDED_TRIE, buf_str(&body), &pprof_limits_default, &out);
	CHECK_STR(buf_str(&out), "limit exceeded: trie: a name of 100001 bytes, limit 16384");
	buf_clear(&body);
	for (int i = 0; i < 100000; i++)
		buf_add(&body, "\2;a\0\1", 5);
	buf_add(&body, "\1b\1\0", 4);
	decode(FOLDED_TRIE, buf_str(&body), &pprof_limits_default, &out);
	CHECK(str_has_suffix(buf_str(&out), STR(";a;a;ab 1; (1 cut)")));
	buf_release(&body);
	buf_release(&out);
}

/* Cut after each byte: text may still be right, binary forms and JSON are refused. */
static void cut_everywhere(enum folded_format format, struct str body, bool refused)
{
	for (size_t n = 0; n < body.len; n++) {
		char *copy = malloc(n ? n : 1); /* its end is the sanitizer's */
		struct folded_profile *v = NULL;
		struct err err = { 0 };
		struct arena a;
		uint32_t count = 0;

		arena_init(&a, 64 << 20);
		memcpy(copy, body.ptr, n);
		if (folded_decode(&a, format, (struct str){ copy, n }, &samples, &pprof_limits_default, &v,
				&count, &err))
			CHECK(err.msg[0] && !v && !count);
		else if (refused && n)
			CHECK_FAIL("%zu of %zu bytes are accepted", n, body.len);
		arena_release(&a);
		free(copy);
	}
}

TEST(cut_bodies)
{
	struct buf body = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cut_everywhere(rows[i].format, rows[i].body, false);
	for (size_t i = 0; i < sizeof(speedscope) / sizeof(speedscope[0]); i++)
		cut_everywhere(FOLDED_SPEEDSCOPE, speedscope[i].body, true);
	load("trie", &body);
	cut_everywhere(FOLDED_TRIE, buf_str(&body), true);
	buf_clear(&body);
	load("tree", &body);
	cut_everywhere(FOLDED_TREE, buf_str(&body), true);
	buf_release(&body);
}

TEST(memory_that_runs_out)
{
	struct buf body = { 0 };

	load("trie", &body);
	for (size_t bytes = 1; bytes < 200000; bytes += 4000) {
		struct folded_profile *v = NULL;
		struct err err = { 0 };
		struct arena a;
		uint32_t n = 0;

		arena_init(&a, bytes);
		if (folded_decode(
				&a, FOLDED_TRIE, buf_str(&body), &samples, &pprof_limits_default, &v, &n, &err))
			CHECK(err.msg[0] && !v && !n);
		arena_release(&a);
	}
	buf_release(&body);
}
