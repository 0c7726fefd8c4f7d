#include "cmd/epitool/run_labels.h"

#include "tests/check.h"

static struct run_labels labels;

TEST(labels_become_matchers)
{
	static const struct {
		const char *text, *matchers;
		bool several;
	} cases[] = {
		{ "run=1", "run=\"1\",", false },
		{ "run=1,branch=main", "run=\"1\",branch=\"main\",", false },
		{ "run=1,branch=main,", "run=\"1\",branch=\"main\",", false },
		{ "run=", "run=\"\",", false },
		{ "run=a\\b", "run=\"a\\\\b\",", false },
		{ "run=a,b,c", "run=~\"a|b|c\",", true },
		{ "run=a,b,branch=main", "run=~\"a|b\",branch=\"main\",", true },
		{ "branch=main,run=1.5,2+", "branch=\"main\",run=~\"1\\\\.5|2\\\\+\",", true },
		{ "run=a\\b,c", "run=~\"a\\\\\\\\b|c\",", true },
		{ "run=~\"7[.].+\"", "run=~\"7[.].+\",", true },
		{ "run=~\"7,8|9\",job=bench", "run=~\"7,8|9\",job=\"bench\",", true },
		{ "run=~7-.+", "run=~\"7-.+\",", true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf out = { 0 };
		struct err err;

		CHECK(run_labels_are(cases[i].text));
		REQUIRE_OK(run_labels_parse(cases[i].text, &labels, &err), &err);
		run_labels_print(&labels, &out);
		CHECK_STR(buf_str(&out), cases[i].matchers);
		CHECK_INT(labels.several, cases[i].several);
		buf_release(&out);
	}
}

TEST(queries_and_files_are_no_labels)
{
	static const char *const cases[] = { "", "cpu", "run", "1=2", "cpu{run=\"1\"}", "run=\"1\"",
		"run=~\"1", "run=~\"1\"2", "a,run=1", "run=~\"1\",2", "merge(cpu)", "base.pb.gz,new.pb.gz",
		"run!=1", "run=a,{}", "run=1,=2" };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (run_labels_are(cases[i]))
			CHECK_FAIL("%s: labels", cases[i]);
}

TEST(there_is_a_limit_of_values)
{
	struct buf text = { 0 };
	struct err err;

	buf_add_cstr(&text, "run=0");
	for (unsigned i = 1; i < RUN_VALUES_MAX; i++)
		buf_printf(&text, ",%u", i);
	buf_add_char(&text, '\0');
	CHECK_OK(run_labels_parse(text.ptr, &labels, &err), &err);
	CHECK_INT(labels.n, RUN_VALUES_MAX);
	text.len--;
	buf_add_cstr(&text, ",x");
	buf_add_char(&text, '\0');
	CHECK(run_labels_parse(text.ptr, &labels, &err) == ERR_LIMIT);
	CHECK_STR(
		str_of(err.msg), "run=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,1...: 1001 values, limit 1000");
	buf_release(&text);
}
