/* Links of samples to spans, over a socket, on a real database. */
#include "tests/check.h"
#include "tests/web/grafana.h"
#include "tsdb/columns/links.h"
#include "tsdb/db.h"

#define DATA(data) "{\"status\":\"success\",\"data\":" data "}\n"
#define BAD(msg) "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"" msg "\"}"
#define CUT ",\"warnings\":[\"results truncated due to limit\"]}\n"

#define TRACE "000102030405060708090a0b0c0d0e0f"
#define LINK(at, span, function, labels, n) \
	"{\"time\":" at ",\"metric\":{\"__name__\":\"samples\",\"job\":\"shop\",\"service_name\":" \
	"\"shop\"},\"trace_id\":\"" TRACE "\",\"span_id\":\"" span "\",\"function\":\"" function \
	"\",\"labels\":{" labels "},\"values\":{\"samples:count\":" n "}}"
#define ONE "a0a1a2a3a4a5a6a7"
#define TWO "b0b1b2b3b4b5b6b7"
#define FIRST LINK("1700000000", ONE, "main.main", "", "3")
#define SECOND LINK("1700000000", TWO, "main.main", "\"thread\":\"io\"", "4")

/* Two spans, at T0 and ten seconds later; the second one's sample has a label. */
static void push(const char *time)
{
	char body[2000];

	snprintf(body, sizeof(body),
		"{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\","
		"\"value\":{\"stringValue\":\"shop\"}}]},\"scopeProfiles\":[{\"profiles\":[{"
		"\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2},\"timeUnixNano\":\"%s000000000\","
		"\"samples\":[{\"stackIndex\":1,\"linkIndex\":1,\"values\":[\"1\"]},"
		"{\"stackIndex\":1,\"linkIndex\":1,\"values\":[\"2\"]},"
		"{\"stackIndex\":1,\"linkIndex\":2,\"values\":[\"4\"],\"attributeIndices\":[1]},"
		"{\"stackIndex\":1,\"values\":[\"8\"]}]}]}]}],"
		"\"dictionary\":{\"stringTable\":[\"\",\"samples\",\"count\",\"main.main\",\"thread\"],"
		"\"mappingTable\":[{}],\"functionTable\":[{},{\"nameStrindex\":3}],"
		"\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1}]}],"
		"\"stackTable\":[{},{\"locationIndices\":[1]}],"
		"\"linkTable\":[{},{\"traceId\":\"" TRACE "\",\"spanId\":\"" ONE "\"},"
		"{\"traceId\":\"" TRACE "\",\"spanId\":\"" TWO "\"}],"
		"\"attributeTable\":[{},{\"keyStrindex\":4,\"value\":{\"stringValue\":\"io\"}}]}}",
		time);
	peer_ask(
		web_port(grafana.web), &grafana.r, "POST /v1development/profiles", AS_JSON, str_of(body));
	CHECK_INT(grafana.r.status, 200);
	CHECK_STR(buf_str(&grafana.r.body), "{}");
}

static const struct asked {
	const char *path;
	int status;
	const char *want;
} table[] = {
	{ "/api/v1/links", 200,
		DATA("[" FIRST "," SECOND "," LINK("1700000010", ONE, "main.main", "", "3") "," LINK(
			"1700000010", TWO, "main.main", "\"thread\":\"io\"", "4") "]") },
	{ "/api/v1/links?end=1700000009&trace_id=" TRACE, 200, DATA("[" FIRST "," SECOND "]") },
	{ "/api/v1/links?limit=1", 200, "{\"status\":\"success\",\"data\":[" FIRST "]" CUT },
	{ "/api/v1/links?end=1700000000&span_id=" TWO, 200, DATA("[" SECOND "]") },
	/* A matcher of a label that the series lacks is about the samples'. */
	{ "/api/v1/links?end=1700000000&match[]={thread=%22io%22}", 200, DATA("[" SECOND "]") },
	{ "/api/v1/links?end=1700000000&match[]={job=%22shop%22,sample_thread!=%22io%22}", 200,
		DATA("[" FIRST "," SECOND "]") },
	{ "/api/v1/links?end=1700000000&match[]={job=%22shop%22,thread=%22%22}", 200,
		DATA("[" FIRST "]") },
	{ "/api/v1/links?end=1700000000&match[]=samples:samples", 200, DATA("[" FIRST "," SECOND "]") },
	{ "/api/v1/links?match[]=samples:alloc_space", 200, DATA("[]") },
	{ "/api/v1/links?match[]={job=%22other%22}", 200, DATA("[]") },
	{ "/api/v1/links?trace_id=" TRACE "&span_id=a0a1a2a3a4a5a6a8", 200, DATA("[]") },
	{ "/api/v1/links?trace_id=" ONE, 400,
		BAD("invalid parameter \\\"trace_id\\\": 32 hexadecimal digits expected") },
	{ "/api/v1/links?span_id=a0a1a2a3a4a5a6ax", 400,
		BAD("invalid parameter \\\"span_id\\\": 16 hexadecimal digits expected") },
	{ "/api/v1/links?limit=10001", 400, BAD("invalid parameter \\\"limit\\\": at most 10000") },
	{ "/api/v1/links?match[]=up&match[]=cpu", 400, BAD("more than one match[] parameter") },
};

static void check_all(void)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		CHECK_STR(grafana_get(table[i].path), table[i].want);
		CHECK_INT(grafana.r.status, table[i].status);
	}
}

TEST(links_are_listed_and_found)
{
	grafana_start();
	push("1700000000");
	push("1700000010");
	check_all();
	/* Costs do not know of spans: equal samples are one. */
	CHECK_STR(grafana_get("/api/v1/query?query=total(samples:samples{thread=%22%22}[1m])&time="
						  "1700000010"),
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"unit\":\"count\",\"result\":"
		"[{\"metric\":{"
		"\"job\":\"shop\",\"service_name\":\"shop\"},\"value\":[1700000010,\"22\"]}]}}\n");
	grafana_stop();
}

/* A sender learns of links that a profile has too many of. */
TEST(links_that_are_dropped_are_told)
{
	const uint32_t n = LINKS_ROW_MAX + 3;
	struct buf b = { 0 };

	grafana_start();
	buf_add_cstr(&b,
		"{\"resourceProfiles\":[{\"resource\":{},\"scopeProfiles\":[{\"profiles\":[{"
		"\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2},\"timeUnixNano\":"
		"\"1700000000000000000\",\"samples\":[");
	for (uint32_t i = 1; i <= n; i++)
		buf_printf(
			&b, "%s{\"stackIndex\":1,\"linkIndex\":%u,\"values\":[\"1\"]}", i > 1 ? "," : "", i);
	buf_add_cstr(&b,
		"]}]}]}],\"dictionary\":{\"stringTable\":[\"\",\"samples\",\"count\"],"
		"\"mappingTable\":[{}],\"functionTable\":[{}],\"locationTable\":[{},"
		"{\"address\":77}],\"stackTable\":[{},{\"locationIndices\":[1]}],"
		"\"attributeTable\":[{}],\"linkTable\":[{}");
	for (uint32_t i = 1; i <= n; i++)
		buf_printf(&b, ",{\"traceId\":\"" TRACE "\",\"spanId\":\"%016x\"}", i);
	buf_add_cstr(&b, "]}}");
	REQUIRE(!buf_failed(&b));
	peer_ask(
		web_port(grafana.web), &grafana.r, "POST /v1development/profiles", AS_JSON, buf_str(&b));
	CHECK_INT(grafana.r.status, 200);
	CHECK_STR(buf_str(&grafana.r.body),
		"{\"partialSuccess\":{\"rejectedProfiles\":\"0\",\"errorMessage\":\"3 samples are stored "
		"without their links: a "
		"profile has too many\"}}");
	grafana_get("/api/v1/links?limit=1");
	CHECK_INT(grafana_count("3 samples of these profiles had links that were not kept"), 1);
	buf_release(&b);
	grafana_stop();
}
