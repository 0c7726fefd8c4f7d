/* The language as the API describes it: complete, and equal to the tables. */
#include "promql/syntax/functions.h"
#include "promql/syntax/parse.h"
#include "tests/check.h"
#include "tests/web/grafana.h"

#define OPERATORS (OP_UNLESS + 1)

static bool says(const char *text)
{
	return str_find(buf_str(&grafana.r.body), str_of(text)) >= 0;
}

/* Some whole entries: each kind of usage and of result. */
static const char *const entries[] = {
	"{\"status\":\"success\",\"data\":{\"functions\":[{\"name\":\"merge\",\"usage\":"
	"\"merge [by|without (label, ...)] (profiles)\",\"arguments\":\"profiles\","
	"\"returns\":\"profiles\",",
	"{\"name\":\"diff\",\"usage\":\"diff [on|ignoring (label, ...)] (new, base)\","
	"\"arguments\":\"new, base\",\"returns\":\"profiles\",",
	"{\"name\":\"top\",\"usage\":\"top(k, profiles)\",\"arguments\":\"k, profiles\","
	"\"returns\":\"table\",\"help\":\"a table of the k functions with the greatest flat cost, "
	"as go tool pprof -top shows it\","
	"\"argumentTypes\":[[\"scalar\"],[\"profiles\"]],\"variadic\":0,\"modifiers\":[],"
	"\"byFrames\":false}",
	"\"usage\":\"flat [by (field, ...)] (profiles[, {frame matchers}])\","
	"\"arguments\":\"profiles[, {frame matchers}]\",\"returns\":\"costs\",",
	"\"usage\":\"time()\",\"arguments\":\"\",\"returns\":\"scalar\",",
	"\"arguments\":\"series[window]\",\"returns\":\"profiles or costs\",",
	"\"arguments\":\"new[window], base[window][, p]\",",
	"],\"aggregations\":[{\"name\":\"topk\",\"usage\":\"topk [by|without (label, ...)] (k, "
	"costs)\",\"arguments\":\"k, costs\",\"returns\":\"costs\",\"help\":\"the k greatest "
	"costs\",\"argumentTypes\":[[\"scalar\"],[\"costs\"]],\"variadic\":0,"
	"\"modifiers\":[\"by\",\"without\"],\"byFrames\":false}",
	/* For programs: the flags of each argument. */
	"\"help\":\"flat cost over the total, 0 to 1\",\"argumentTypes\":[[\"profiles\"],"
	"[\"frames\"]],\"variadic\":1,\"modifiers\":[\"by\"],\"byFrames\":true}",
	"\"argumentTypes\":[[\"profiles\",\"selector\",\"window\"],[\"profiles\",\"selector\","
	"\"window\"],[\"scalar\"]],\"variadic\":1,\"modifiers\":[],",
	"\"argumentTypes\":[[\"profiles\"],[\"string\",\"functions\"]],",
	"\"argumentTypes\":[[\"profiles\"],[\"string\",\"tags\"]],",
	"\"argumentTypes\":[[\"costs\"],[\"string\",\"label\"],[\"string\"],[\"string\",\"label\"],"
	"[\"string\"]],\"variadic\":0,",
	"\"argumentTypes\":[[\"profiles\"],[\"profiles\"]],\"variadic\":0,"
	"\"modifiers\":[\"on\",\"ignoring\"],",
	"\"variadic\":-1,",
	"],\"frameFields\":[\"function\",\"system_name\",\"filename\",\"line\",\"address\","
	"\"mapping\",\"build_id\"],\"keywords\":[\"and\",\"or\",\"unless\",\"atan2\",\"bool\",\"by\","
	"\"without\",\"on\",\"ignoring\",\"group_left\",\"group_right\",\"offset\",\"start\","
	"\"end\",\"inf\",\"nan\"],\"labelLists\":[\"by\",\"without\",\"on\",\"ignoring\","
	"\"group_left\",\"group_right\"],\"numbers\":[\"inf\",\"nan\"],"
	"\"operators\":[{\"name\":\"+\",\"kind\":\"arithmetic\",\"binds\":4,\"right\":false},",
	"{\"name\":\"^\",\"kind\":\"arithmetic\",\"binds\":6,\"right\":true},",
	"{\"name\":\">=\",\"kind\":\"comparison\",\"binds\":3,\"right\":false},",
	"{\"name\":\"unless\",\"kind\":\"set\",\"binds\":2,\"right\":false}]}}\n",
};

TEST(the_language_is_told_whole)
{
	char want[128];

	grafana_start();
	grafana_get("/api/v1/language");
	CHECK_INT(grafana.r.status, 200);
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (!says(entries[i]))
			CHECK_FAIL("not there: %s", entries[i]);
	for (size_t i = 0; i < FUNCTIONS; i++) {
		snprintf(want, sizeof(want), "{\"name\":\"%s\",", functions[i].name);
		CHECK_INT(grafana_count(want), 1);
	}
	CHECK_INT(grafana_count("\"name\":"), FUNCTIONS + OPERATORS);
	CHECK_INT(grafana_count("\"binds\":"), OPERATORS);
	grafana_stop();
}

/* No keyword is the name of a function. */
TEST(keywords_are_words_of_the_language)
{
	size_t n = 0, both = 0; /* start and end are functions too */

	while (query_keyword(n))
		both += function_find(str_of(query_keyword(n++))) != NULL;
	CHECK_INT(n, 16);
	CHECK_INT(both, 2);
}

/* The binding strength of an operator in the answer. */
static int64_t binds(enum binary_op op)
{
	struct str body = buf_str(&grafana.r.body);
	char want[64];
	ptrdiff_t at;

	snprintf(want, sizeof(want), "{\"name\":\"%s\",", binary_op_name(op));
	at = str_find(body, str_of(want));
	body = (struct str){ body.ptr + at, body.len - (size_t)at };
	at = str_find(body, STR("\"binds\":"));
	return strtoll(body.ptr + at + 8, NULL, 10);
}

/* `x A y B z` is (x A y) B z where A binds at least as strongly; of ^ only where it is stronger. */
TEST(operators_bind_as_the_parser_has_it)
{
	struct arena a;
	struct parsed *q;
	struct err err;
	char text[64];

	grafana_start();
	grafana_get("/api/v1/language");
	for (unsigned i = 0; i < OPERATORS * OPERATORS; i++) {
		enum binary_op first = (enum binary_op)(i / OPERATORS);
		enum binary_op second = (enum binary_op)(i % OPERATORS);
		bool left = binds(first) > binds(second) ||
			(binds(first) == binds(second) && first != OP_POW);

		snprintf(text, sizeof(text), "x %s y %s z", binary_op_name(first), binary_op_name(second));
		arena_init(&a, 0);
		CHECK_OK(parse_query(&a, str_of(text), &q, NULL, &err), &err);
		CHECK_INT(q->root->binary.op, left ? second : first);
		parsed_release(q);
		arena_release(&a);
	}
	grafana_stop();
}
