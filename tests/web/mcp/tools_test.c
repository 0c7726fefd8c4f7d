/* What the tools answer, over a server with profiles of two versions. */
#include <stdio.h>

#include "tests/check.h"
#include "tests/web/grafana.h"
#include "web/mcp/tool.h"

#define JSON "Content-Type: application/json\r\n"
#define AT "\"window\":\"40s\",\"end\":1700000030"
#define V2 "\"profiles\":\"cpu{version=\\\"v2\\\"}\","

/* The text of the last answer, unescaped. */
static struct buf text;
static bool is_error;

static void call(const char *tool, const char *arguments)
{
	char body[2048];
	json_t *answer;
	const json_t *result;

	snprintf(body, sizeof(body),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
		"\"arguments\":{%s}}}",
		tool, arguments);
	peer_ask(web_port(grafana.web), &grafana.r, "POST /mcp", JSON, str_of(body));
	CHECK_INT(grafana.r.status, 200);
	answer = json_loadb(grafana.r.body.ptr, grafana.r.body.len, JSON_ALLOW_NUL, NULL);
	REQUIRE(answer);
	result = json_object_get(answer, "result");
	buf_clear(&text);
	buf_add_str(&text,
		message_str(
			json_object_get(json_array_get(json_object_get(result, "content"), 0), "text")));
	is_error = json_is_true(json_object_get(result, "isError"));
	CHECK(json_is_object(json_object_get(result, "structuredContent")));
	json_decref(answer);
}

static void start(void)
{
	grafana_start();
	grafana_fill();
}

static void stop(void)
{
	buf_release(&text);
	grafana_stop();
}

TEST(services_are_listed_with_their_costs)
{
	start();
	call("services", AT);
	CHECK(!is_error);
	CHECK_STR(buf_str(&text),
		"window: 2023-11-14T22:13:10Z to 2023-11-14T22:13:50Z\n"
		"by: __service__\n"
		"services:\n"
		"cores  memory  goroutines  service  profiles\n"
		"0.012       -           9  demo  goroutine 3, cpu 6\n"
		"next: top {\"profiles\":\"cpu{__service__=\\\"demo\\\"}\",\"window\":\"40s\","
		"\"end\":\"2023-11-14T22:13:50Z\"} (its most expensive functions)\n"
		"next: compare {\"profiles\":\"cpu{__service__=\\\"demo\\\"}\",\"window\":\"40s\","
		"\"end\":\"2023-11-14T22:13:50Z\"} (what changed against the window before)\n");
	call("services", "\"by\":\"version\"," AT);
	CHECK(str_find(buf_str(&text), STR("  v2  cpu 3\n")) > 0);
	call("services", "\"end\":1600000000");
	CHECK(str_find(buf_str(&text), STR("services:\nnone\nnote: no profiles in this window")) > 0);
	stop();
}

TEST(top_has_functions_and_what_is_left_out)
{
	start();
	call("top", V2 AT);
	CHECK_STR(buf_str(&text),
		"profiles: cpu{version=\"v2\"}\n"
		"window: 2023-11-14T22:13:10Z to 2023-11-14T22:13:50Z\n"
		"unit: nanoseconds\n"
		"total: 240ms\n"
		"merged: 3\n"
		"functions:\n"
		" flat   flat%    cum     cum%  function  where\n"
		"150ms  62.50%  240ms  100.00%  main.handle\n"
		" 90ms  37.50%   90ms   37.50%  main.slow\n"
		"    0   0.00%  240ms  100.00%  main.main\n"
		"next: function {\"function\":\"main.handle\",\"profiles\":\"cpu{version=\\\"v2\\\"}\","
		"\"window\":\"40s\",\"end\":\"2023-11-14T22:13:50Z\"} (who calls it, its lines)\n");
	call("top", V2 "\"limit\":1," AT);
	CHECK(str_find(
		buf_str(&text), STR("\n1 of 3 functions; the other 2 have 37.50% of the flat cost\n")) > 0);
	call("top", V2 "\"sort\":\"cum\",\"limit\":2," AT);
	CHECK(
		str_find(buf_str(&text), STR("main.handle")) < str_find(buf_str(&text), STR("main.main")));
	stop();
}

TEST(a_tree_is_an_outline)
{
	start();
	call("tree", V2 AT);
	CHECK_STR(buf_str(&text),
		"profiles: cpu{version=\"v2\"}\n"
		"window: 2023-11-14T22:13:10Z to 2023-11-14T22:13:50Z\n"
		"unit: nanoseconds\n"
		"total: 240ms\n"
		"merged: 3\n"
		"tree:\n"
		"total   total%   self  calls  left_out\n"
		"240ms  100.00%  150ms  main.main > main.handle\n"
		" 90ms   37.50%   90ms   main.slow\n");
	call("tree", V2 "\"path\":[\"main.main\",\"main.handle\"]," AT);
	CHECK(str_find(buf_str(&text), STR("\nbelow_path: 240ms\n")) > 0);
	CHECK(str_find(buf_str(&text), STR("\n 90ms  37.50%  90ms  main.slow\n")) > 0);
	call("tree", V2 "\"path\":[\"main.main\",\"nobody\"]," AT);
	CHECK(is_error);
	CHECK(str_find(buf_str(&text), STR("error: no stack begins with this path\n")) == 0);
	stop();
}

TEST(a_function_has_callers_callees_and_lines)
{
	start();
	call("function", "\"function\":\"main.handle\"," V2 AT);
	CHECK(!is_error);
	CHECK(str_find(buf_str(&text), STR("\nflat: 150ms\ncum: 240ms\n")) > 0);
	CHECK(str_find(buf_str(&text),
		STR("callers:\n cost   of_it%  function\n"
									   "240ms  100.00%  main.main\n")) > 0);
	CHECK(str_find(buf_str(&text),
		STR("callees:\n cost  of_it%  function\n"
									   "150ms  62.50%  (itself)\n"
									   " 90ms  37.50%  main.slow\n")) > 0);
	CHECK(str_find(buf_str(&text), STR("lines:\n")) > 0);
	call("function", "\"function\":\"main.main\"," V2 AT);
	CHECK(str_find(buf_str(&text), STR("100.00%  (nobody: it is a root)\n")) > 0);
	call("function", "\"function\":\"HANDL\"," V2 AT);
	CHECK(!is_error);
	CHECK(str_find(buf_str(&text),
		STR("150ms  240ms  main.handle\nnote: no function is called "
									   "\"HANDL\"; these have it in their names")) > 0);
	call("function", "\"function\":\"main.hndle\"," V2 AT);
	CHECK(is_error);
	CHECK(str_find(buf_str(&text),
		STR("error: no function \"main.hndle\" in these profiles; did you "
									   "mean \"main.handle\"?\n")) == 0);
	stop();
}

TEST(a_comparison_has_totals_shares_and_a_verdict)
{
	start();
	call("compare", V2 "\"base\":\"cpu{version=\\\"v1\\\"}\"," AT);
	CHECK(!is_error);
	CHECK(str_find(buf_str(&text), STR("\nnew_total: 240ms\nbase_total: 180ms\n")) > 0);
	CHECK(str_find(buf_str(&text), STR("\nnew_is: 1.33 times base\n")) > 0);
	CHECK(str_find(buf_str(&text), STR("not enough data yet")) > 0);
	CHECK(str_find(buf_str(&text), STR("main.slow")) > 0);
	call("compare", V2 AT);
	CHECK(str_find(
		buf_str(&text), STR("note: base has no cost in its window: all of new is a change\n")) > 0);
	call("compare", V2 "\"base\":\"goroutine\"," AT);
	CHECK(is_error);
	CHECK(str_find(
		buf_str(&text), STR("error: new has the unit \"nanoseconds\", base \"count\"\n")) == 0);
	stop();
}

TEST(a_query_is_run_checked_and_planned)
{
	start();
	call("query", "\"query\":\"sort_desc(flat(merge(cpu)))\"," AT);
	CHECK_STR(buf_str(&text),
		"query: sort_desc(flat(merge(cpu)))\n"
		"window: 2023-11-14T22:13:10Z to 2023-11-14T22:13:50Z\n"
		"unit: nanoseconds\n"
		"costs:\n"
		"    value  labels\n"
		"300000000  {function=\"main.handle\"}\n"
		"120000000  {function=\"main.slow\"}\n");
	call("query", "\"query\":\"total(merge(cpu))\",\"step\":\"10s\"," AT);
	CHECK(str_find(buf_str(&text), STR("series:\npoints")) > 0);
	call("query", "\"query\":\"merge by (version) (cpu)\"," AT);
	CHECK(str_find(buf_str(&text), STR("240ms       3  {version=\"v2\"}  nanoseconds\n")) > 0);
	call("query", "\"query\":\"scalar(vector(2))\"," AT);
	CHECK(str_find(buf_str(&text), STR("\nvalue: 2\n")) > 0);
	call("query", "\"mode\":\"validate\",\"query\":\"sum by(job)(total(cpu))\"");
	CHECK_STR(buf_str(&text), "valid: sum by (job) (total(cpu))\ngives: costs\n");
	call("query", "\"mode\":\"validate\",\"query\":\"sum(cpu\"");
	CHECK(is_error);
	CHECK(str_find(buf_str(&text), STR("error: 1:8: unexpected end of query")) == 0);
	call("query", "\"mode\":\"explain\",\"query\":\"total(cpu)\"," AT);
	CHECK(!is_error && str_find(buf_str(&text), STR("total(cpu)")) > 0);
	call("query", "\"query\":\"cpu\",\"step\":\"1ms\",\"window\":\"1h\"");
	CHECK(is_error);
	stop();
}

TEST(errors_teach)
{
	static const struct {
		const char *tool, *arguments, *want;
	} rows[] = {
		{ "top", "",
			"error: top needs the argument profiles. Which profiles: a selector such as " },
		{ "top", "\"profile\":\"cpu\"",
			"error: top has no argument \"profile\"; did you mean \"profiles\"?; it has profiles, "
			"window, end, sort, limit, max_bytes\n" },
		{ "top", "\"profiles\":5", "error: argument profiles must be a string\n" },
		{ "top", "\"profiles\":\"cpu\",\"limit\":0",
			"error: argument limit must be a whole number of 1 or more\n" },
		{ "top", "\"profiles\":\"cpu\",\"sort\":\"size\"",
			"error: argument sort must be one of flat|cum, not \"size\"\n" },
		{ "top", "\"profiles\":\"cpu\",\"window\":\"soon\"", "error: argument window: " },
		{ "top", "\"profiles\":\"cpu\",\"window\":\"0s\"",
			"error: argument window must be above 0, not \"0s\"\n" },
		{ "top", "\"profiles\":\"cpu\",\"end\":\"noon\"", "error: argument end: " },
		{ "top", "\"profiles\":\"cpu{\"", "error: argument profiles: 1:5: " },
		{ "top", "\"profiles\":\"total(cpu)\"",
			"error: argument profiles: it must give profiles, not costs; the tool query takes any "
			"query\n" },
		{ "top", "\"profiles\":\"cpu{version=\\\"v3\\\"}\"," AT,
			"error: no profiles of \"cpu{version=\\\"v3\\\"}\" in the window\nnote: " },
		{ "tree", "\"profiles\":\"cpu\",\"path\":\"main.main\"",
			"error: argument path must be an array of strings\n" },
		{ "tree", "\"profiles\":\"cpu{version=\\\"v1\\\"} - cpu{version=\\\"v2\\\"}\"," AT,
			"error: " },
		{ "help", "\"topic\":\"chaned\"",
			"error: no function is called \"chaned\"; did you mean \"changed\"?; topic functions "
			"lists all\n" },
	};

	start();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		call(rows[i].tool, rows[i].arguments);
		if (!is_error || !str_has_prefix(buf_str(&text), str_of(rows[i].want)) ||
			str_find(buf_str(&text), STR("\nhint: ")) < 0)
			CHECK_FAIL(
				"%s {%s}: " STR_FMT, rows[i].tool, rows[i].arguments, STR_ARG(buf_str(&text)));
	}
	stop();
}

TEST(help_shows_the_language_and_each_function)
{
	start();
	call("help", "");
	CHECK(text.len > 1500 && text.len < 4096);
	call("help", "\"topic\":\"changed\"");
	CHECK(str_has_prefix(buf_str(&text), STR("usage: changed(")));
	call("help", "\"topic\":\"functions\",\"max_bytes\":65536");
	CHECK(str_find(buf_str(&text), STR("prune_from(")) > 0 && text.len < 65536);
	stop();
}

/* Each example of help is a query. */
TEST(the_examples_of_help_are_queries)
{
	static const char *const queries[] = { "cpu{__service__=\\\"cart\\\"}",
		"merge by (version) (cpu)",
		"merge(cpu{version=\\\"v2\\\"}) - merge(cpu{version=\\\"v1\\\"})",
		"topk(5, flat(merge(cpu)))",
		"flat by (function, line) (merge(cpu), {function=\\\"main.f\\\"})",
		"cum_share(merge by (version) (cpu), {function=\\\"main.f\\\"})",
		"total(merge by (__service__) (rate(cpu[5m]))) / 1e9", "top(10, merge(cpu))",
		"changed(cpu[15m], cpu[15m] offset 15m)", "cpu[5m] @ 1700000000" };
	char arguments[256], plain[256];

	start();
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		size_t n = 0;

		snprintf(
			arguments, sizeof(arguments), "\"mode\":\"validate\",\"query\":\"%s\"", queries[i]);
		call("query", arguments);
		if (is_error)
			CHECK_FAIL("%s: " STR_FMT, queries[i], STR_ARG(buf_str(&text)));
		for (const char *at = queries[i]; *at; at++)
			if (*at != '\\')
				plain[n++] = *at;
		plain[n] = '\0';
		call("help", "");
		if (str_find(buf_str(&text), str_of(plain)) < 0)
			CHECK_FAIL("help has no %s", plain);
	}
	stop();
}
