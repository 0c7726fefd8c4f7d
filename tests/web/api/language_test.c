/* The language as the API tells it: whole, and as its tables have it. */
#include "promql/syntax/functions.h"
#include "promql/syntax/parse.h"
#include "tests/check.h"
#include "tests/web/grafana.h"

static size_t count(struct str body, const char *what)
{
	size_t n = 0;
	ptrdiff_t at;

	while ((at = str_find(body, str_of(what))) >= 0) {
		body.ptr += at + 1;
		body.len -= (size_t)at + 1;
		n++;
	}
	return n;
}

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
	"as go tool pprof -top shows it\"}",
	"\"usage\":\"flat [by (field, ...)] (profiles[, {frame matchers}])\","
	"\"arguments\":\"profiles[, {frame matchers}]\",\"returns\":\"costs\",",
	"\"usage\":\"time()\",\"arguments\":\"\",\"returns\":\"scalar\",",
	"\"arguments\":\"series[window]\",\"returns\":\"profiles or costs\",",
	"\"arguments\":\"new[window], base[window][, p]\",",
	"],\"aggregations\":[{\"name\":\"topk\",\"usage\":\"topk [by|without (label, ...)] (k, "
	"costs)\",\"arguments\":\"k, costs\",\"returns\":\"costs\",\"help\":\"the k greatest "
	"costs\"}",
	"],\"frameFields\":[\"function\",\"system_name\",\"filename\",\"line\",\"address\","
	"\"mapping\"],\"keywords\":[\"and\",\"or\",\"unless\",\"atan2\",\"bool\",\"by\","
	"\"without\",\"on\",\"ignoring\",\"group_left\",\"group_right\",\"offset\",\"start\","
	"\"end\",\"inf\",\"nan\"]}}\n",
};

TEST(the_language_is_told_whole)
{
	char want[128];

	grafana_start();
	peer_ask(web_port(grafana.web), &grafana.r, "GET /api/v1/language", "", STR(""));
	CHECK_INT(grafana.r.status, 200);
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (!says(entries[i]))
			CHECK_FAIL("not there: %s", entries[i]);
	for (size_t i = 0; i < FUNCTIONS; i++) {
		snprintf(want, sizeof(want), "{\"name\":\"%s\",", functions[i].name);
		CHECK_INT(count(buf_str(&grafana.r.body), want), 1);
	}
	CHECK_INT(count(buf_str(&grafana.r.body), "\"name\":"), FUNCTIONS);
	grafana_stop();
}

/* In any case, wherever one stands for a name of a function. */
TEST(keywords_are_words_of_the_language)
{
	size_t n = 0;

	while (query_keyword(n)) {
		CHECK(function_find(str_of(query_keyword(n))) == NULL);
		n++;
	}
	CHECK_INT(n, 16);
}
