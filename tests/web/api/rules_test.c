/* Rules and alerts over HTTP: whole answers, without the values that differ between runs. */

#include "base/clock.h"
#include "promql/rules/manager.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/grafana.h"
#include "tsdb/db.h"

static const char rules_text[] =
	"groups:\n"
	"- name: second\n"
	"  interval: 1s\n"
	"  rules:\n"
	"  - {record: 'a:b', expr: vector(2.5), labels: {x: y}}\n"
	"  - {record: 'a:c', expr: vector(3)}\n"
	"- name: first\n"
	"  interval: 1s\n"
	"  query_offset: 0s\n"
	"  limit: 7\n"
	"  labels: {team: t}\n"
	"  rules:\n"
	"  - {alert: Fires, expr: vector(1024) > 1, labels: {severity: '{{ \"page\" }}'},"
	" annotations: {summary: 'it is {{ $value }}'}}\n"
	"  - {alert: Waits, expr: vector(0.125), for: 1h, keep_firing_for: 2m}\n"
	"  - {alert: Fails, expr: 'vector(1) / on() (vector(1) or label_replace(vector(2),"
	" \"a\", \"b\", \"\", \"\"))'}\n"
	"  - {alert: Rests, expr: vector(1) > 2}\n";

/* Times and durations become "*". */
static void blot(struct buf *b)
{
	static const char *const keys[] = { "\"evaluationTime\":", "\"lastEvaluation\":",
		"\"activeAt\":", "\"iterations\":", "\"missedIterations\":" };
	struct buf out = { 0 };
	size_t i = 0, k;

	while (i < b->len) {
		for (k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
			if (str_has_prefix((struct str){ b->ptr + i, b->len - i }, str_of(keys[k])))
				break;
		if (k == sizeof(keys) / sizeof(keys[0])) {
			buf_add_char(&out, b->ptr[i++]);
			continue;
		}
		buf_add_cstr(&out, keys[k]);
		buf_add_char(&out, '*');
		for (i += strlen(keys[k]); i < b->len && !strchr(",}", b->ptr[i]); i++)
			;
	}
	buf_release(b);
	*b = out;
}

static void open_rules(void)
{
	const struct rule_manager_options o = { .engine = grafana.storage.engine,
		.db = grafana.storage.db,
		.external_url = "http://x",
		.workers = 1,
		.resend_delay_ns = NS_PER_MIN,
		.outage_tolerance_ns = NS_PER_HOUR,
		.grace_period_ns = 10 * NS_PER_MIN };
	const struct rules_load l = { .interval_ns = NS_PER_MIN };
	struct rule_set *set;
	struct err err;

	REQUIRE_OK(rule_set_load_text("r.yml", str_of(rules_text), &l, &set, &err), &err);
	REQUIRE_OK(rule_manager_open(&o, &grafana.rules, &err), &err);
	REQUIRE_OK(rule_manager_apply(grafana.rules, set, (struct labels){ 0 }, &err), &err);
	rule_set_unref(set);
}

static void wait_for_evaluation(void)
{
	CHECK(WAIT_FOR(str_find(grafana_get("/api/v1/rules"), STR("\"unknown\"")) < 0));
}

#define DATA(data) "{\"status\":\"success\",\"data\":" data "}\n"
#define GROUPS(groups) DATA("{\"groups\":[" groups "]}")
#define GROUP(name, limit, rules) \
	"{\"name\":\"" name "\",\"file\":\"r.yml\",\"rules\":[" rules \
	"],\"interval\":1,\"queryOffset\":0,\"limit\":" limit \
	",\"evaluationTime\":*,\"lastEvaluation\":*,\"iterations\":*,\"missedIterations\":*}"
#define FIRST(rules) GROUP("first", "7", rules)
#define SECOND(rules) GROUP("second", "0", rules)
#define END(health, type) \
	"\"health\":" health ",\"evaluationTime\":*,\"lastEvaluation\":*,\"type\":\"" type "\"}"
#define RECORD(name, query, labels) \
	"{\"name\":\"" name "\",\"query\":\"" query "\"," labels \
	"\"records\":\"costs\"," END("\"ok\"", "recording")
#define ALERT(state, name, query, times, labels, annotations, alerts, health) \
	"{\"state\":\"" state "\",\"name\":\"" name "\",\"query\":\"" query "\"," times \
	",\"labels\":{" labels "},\"annotations\":{" annotations "},\"alerts\":[" alerts \
	"]," END(health, "alerting")
#define NO_TIMES "\"duration\":0,\"keepFiringFor\":0"
#define FIRES_ALERT \
	"{\"labels\":{\"alertname\":\"Fires\",\"severity\":\"page\",\"team\":\"t\"}," \
	"\"annotations\":{\"summary\":\"it is 1024\"},\"state\":\"firing\",\"activeAt\":*," \
	"\"value\":\"1.024e+03\"}"
#define WAITS_ALERT \
	"{\"labels\":{\"alertname\":\"Waits\",\"team\":\"t\"},\"annotations\":{}," \
	"\"state\":\"pending\",\"activeAt\":*,\"value\":\"1.25e-01\"}"
#define FIRES(alerts) \
	ALERT("firing", "Fires", "vector(1024) > 1", NO_TIMES, \
		"\"severity\":\"{{ \\\"page\\\" }}\",\"team\":\"t\"", \
		"\"summary\":\"it is {{ $value }}\"", alerts, "\"ok\"")
#define WAITS(alerts) \
	ALERT("pending", "Waits", "vector(0.125)", "\"duration\":3600,\"keepFiringFor\":120", \
		"\"team\":\"t\"", "", alerts, "\"ok\"")
#define RESTS \
	ALERT("inactive", "Rests", "vector(1) > 2", NO_TIMES, "\"team\":\"t\"", "", "", "\"ok\"")
#define A_B RECORD("a:b", "vector(2.5)", "\"labels\":{\"x\":\"y\"},")
#define A_C RECORD("a:c", "vector(3)", "")
#define BAD(msg) "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"" msg "\"}"

#define T0_TEXT "2023-11-14T22:13:20.000Z"
#define ELSEWHERE \
	",\"evaluatedBy\":\"node-1\",\"evaluatedAt\":\"" T0_TEXT "\"}" \
	",\"infos\":[\"rules are evaluated by node-1; written at " T0_TEXT "\"]}\n"

/* Takes out what only another node's rules have. */
static void take_elsewhere(struct buf *b)
{
	REQUIRE(str_has_suffix(buf_str(b), STR(ELSEWHERE)));
	b->len -= strlen(ELSEWHERE);
	buf_add_cstr(b, "}}\n");
}

TEST(rules)
{
	/* clang-format off */
	static const struct {
		const char *path;
		int status;
		const char *want;
	} table[] = {
		{ "/api/v1/rules?type=record", 200, GROUPS(SECOND(A_B "," A_C)) },
		{ "/api/v1/rules?type=record&rule_name[]=a:c", 200, GROUPS(SECOND(A_C)) },
		{ "/api/v1/rules?rule_name[]=a:c&rule_name[]=Rests", 200,
			GROUPS(FIRST(RESTS) "," SECOND(A_C)) },
		{ "/api/v1/rules?rule_group[]=first&rule_name[]=Rests", 200, GROUPS(FIRST(RESTS)) },
		{ "/api/v1/rules?rule_group[]=second&rule_name[]=Rests", 200, GROUPS("") },
		{ "/api/v1/rules?file[]=x.yml", 200, GROUPS("") },
		{ "/api/v1/rules?file[]=x.yml&file[]=r.yml&rule_name[]=a:c", 200,
			GROUPS(SECOND(A_C)) },
		{ "/api/v1/rules?type=alert&rule_name[]=Fires&rule_name[]=Waits", 200,
			GROUPS(FIRST(FIRES(FIRES_ALERT) "," WAITS(WAITS_ALERT))) },
		{ "/api/v1/rules?rule_name[]=Fires&rule_name[]=Waits&exclude_alerts=true", 200,
			GROUPS(FIRST(FIRES("") "," WAITS(""))) },
		{ "/api/v1/rules?match[]={x=\"y\"}", 200, GROUPS(SECOND(A_B)) },
		{ "/api/v1/rules?match[]={x=\"y\"}&match[]={team=\"t\",x=\"\"}&rule_name[]=Rests"
		  "&rule_name[]=a:b&rule_name[]=a:c",
			200, GROUPS(FIRST(RESTS) "," SECOND(A_B)) },
		{ "/api/v1/rules?match[]={severity=~\".*page.*\",team=\"t\"}&exclude_alerts=true",
			200, GROUPS(FIRST(FIRES(""))) },
		{ "/api/v1/rules?match[]={severity=\"page\"}", 200, GROUPS("") },
		{ "/api/v1/rules?match[]=Fires", 200, GROUPS("") },
		{ "/api/v1/rules?match[]={a", 400,
			BAD("invalid parameter \\\"match[]\\\": 1:3: unexpected end of query, "
			    "expected \\\"=\\\", \\\"!=\\\", \\\"=~\\\" or \\\"!~\\\"") },
		{ "/api/v1/rules?group_limit=2&rule_name[]=a:c&rule_name[]=Rests", 200,
			GROUPS(FIRST(RESTS) "," SECOND(A_C)) },
		{ "/api/v1/rules?group_limit=0", 400,
			BAD("invalid parameter \\\"group_limit\\\": group_limit needs to be greater "
			    "than 0") },
		{ "/api/v1/rules?group_limit=-1", 400,
			BAD("invalid parameter \\\"group_limit\\\": group_limit needs to be a valid "
			    "number") },
		{ "/api/v1/rules?group_next_token=a", 400,
			BAD("invalid parameter \\\"group_next_token\\\": group_limit needs to be "
			    "present in order to paginate over the groups") },
		{ "/api/v1/rules?group_limit=1&group_next_token=a", 400,
			BAD("invalid parameter \\\"group_next_token\\\": invalid group_next_token "
			    "\\\"a\\\". were rule groups changed?") },
		{ "/api/v1/rules?type=x", 400,
			BAD("invalid parameter \\\"type\\\": not supported value \\\"x\\\"") },
		{ "/api/v1/rules?exclude_alerts=x", 400,
			BAD("invalid parameter \\\"exclude_alerts\\\": \\\"x\\\" is not true or "
			    "false") },
		{ "/api/v1/alerts", 200, DATA("{\"alerts\":[" FIRES_ALERT "," WAITS_ALERT "]}") },
	};
	/* clang-format on */
	struct str body;

	grafana_start();
	open_rules();
	wait_for_evaluation();
	for (size_t i = 0; i < 2 * sizeof(table) / sizeof(table[0]); i++) {
		size_t k = i % (sizeof(table) / sizeof(table[0]));

		/* What another node evaluates is answered alike, and says so at its end. */
		grafana.rules_elsewhere = i != k;
		grafana_get(table[k].path);
		CHECK_INT(grafana.r.status, table[k].status);
		blot(&grafana.r.body);
		if (grafana.rules_elsewhere && table[k].status == 200)
			take_elsewhere(&grafana.r.body);
		CHECK_STR(buf_str(&grafana.r.body), table[k].want);
	}
	grafana.rules_elsewhere = false;
	body = grafana_get("/api/v1/rules?rule_name[]=Fails");
	CHECK(str_find(body, STR("\"health\":\"err\",\"lastError\":\"")) > 0);
	grafana_stop();
}

TEST(warnings_of_another_nodes_rules)
{
	static const char *const paths[] = { "/api/v1/rules", "/api/v1/alerts" };
	struct str body;

	grafana_start();
	open_rules();
	wait_for_evaluation();
	grafana.rules_elsewhere = true;
	grafana.rules_told[0] = STR("the state is 45s old");
	grafana.rules_told[1] = STR("and cut");
	grafana.rules_told_n = 2;
	for (size_t i = 0; i < 2; i++) {
		body = grafana_get(paths[i]);
		CHECK(str_find(
			body, STR("\"warnings\":[\"the state is 45s old\",\"and cut\"],\"infos\":[")) > 0);
	}
	grafana_stop();
}

/* Page after page: each has the token of the next one; the last has none. */
TEST(pages_of_groups)
{
	static const char key[] = "],\"groupNextToken\":\"";
	char path[128], token[17] = "";
	struct str body;
	ptrdiff_t at;

	grafana_start();
	open_rules();
	wait_for_evaluation();
	body = grafana_get("/api/v1/rules?group_limit=1");
	CHECK(str_find(body, STR("\"name\":\"first\"")) > 0);
	CHECK(str_find(body, STR("\"name\":\"second\"")) < 0);
	at = str_find(body, str_of(key));
	REQUIRE(at > 0 && (size_t)at + strlen(key) + 16 < body.len);
	memcpy(token, body.ptr + at + strlen(key), 16);
	snprintf(path, sizeof(path), "/api/v1/rules?group_limit=1&group_next_token=%s", token);
	body = grafana_get(path);
	CHECK(str_find(body, STR("\"name\":\"first\"")) < 0);
	CHECK(str_find(body, STR("\"name\":\"second\"")) > 0);
	CHECK(str_find(body, STR("groupNextToken")) < 0);
	/* A group that has nothing that is asked for is none of a page's. */
	body = grafana_get("/api/v1/rules?group_limit=1&type=record");
	CHECK(str_find(body, STR("\"name\":\"second\"")) > 0);
	CHECK(str_find(body, STR("groupNextToken")) < 0);
	grafana_stop();
}

TEST(recorded)
{
	static const char want[] = "# TYPE a:b untyped\n"
							   "a:b{x=\"y\",instance=\"\"} 2.5\n"
							   "# TYPE a:c untyped\n"
							   "a:c{instance=\"\"} 3\n";
	struct str body = STR("");

	grafana_start();
	CHECK_STR(grafana_get("/metrics/recorded"), "");
	open_rules();
	wait_for_evaluation();
	(void)!WAIT_FOR(str_is(body = grafana_get("/metrics/recorded"), want));
	CHECK_STR(body, want);
	grafana.rules_elsewhere = true;
	CHECK_STR(grafana_get("/metrics/recorded"), want);
	CHECK_STR(
		response_header(&grafana.r, "Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
	grafana_stop();
}
