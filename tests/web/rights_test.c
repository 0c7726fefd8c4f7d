/*
 * Who may do what, over the whole table of routes: a user whose matchers admit one namespace asks
 * each route that he may ask, and no answer has a byte of the other one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gzip/gzip.h"
#include "tests/check.h"
#include "tests/tsdb/read/numbers.h"
#include "tests/web/grafana.h"
#include "web/routes.h"

#define ADMIN "Authorization: Bearer the-token-of-an-admin\r\n"
#define LIMITED "Authorization: Bearer the-token-of-the-shop\r\n"
#define PUSHER "Authorization: Bearer the-token-of-a-pusher\r\n"
#define HEALTH "Authorization: Bearer the-token-of-a-reader\r\n"

#define THEIRS "zzz" /* is in all that the limited user may not see, and in no request of his */

static char dir[64], config_file[128];

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	REQUIRE(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void store_numbers(void)
{
	const struct label ours[] = {
		{ STR(LABEL_NAME), STR("up") }, { STR("namespace"), STR("ours") } };
	const struct label theirs[] = { { STR(LABEL_NAME), STR("up") },
		{ STR("namespace"), STR("zzzns") }, { STR("zzzlabel"), STR("zzzvalue") } };
	const struct db_number v[] = { { { ours, 2 }, T0 * NS_PER_S, 1 },
		{ { theirs, 3 }, T0 * NS_PER_S, 1 } };
	struct err err;

	REQUIRE_OK(numbers_wait(grafana.storage.db, v, 2, &err), &err);
}

static void push(const char *labels, const struct pushed_profile *p)
{
	struct buf gz = { 0 };
	char request[256];

	profile_gz(&gz, p);
	snprintf(request, sizeof(request), "POST /api/v1/ingest?time=%lld&interval=10s&%s",
		(long long)T0, labels);
	peer_ask(web_port(grafana.web), &grafana.r, request, PUSHER, buf_str(&gz));
	CHECK_INT(grafana.r.status, 200);
	buf_release(&gz);
}

/* Both namespaces have a job of one name, whose symbols are stored together. */
static void start(void)
{
	snprintf(dir, sizeof(dir), "/tmp/epi-rights-XXXXXX");
	REQUIRE(mkdtemp(dir));
	snprintf(config_file, sizeof(config_file), "%s/web.yml", dir);
	write_file("admin", "the-token-of-an-admin\n");
	write_file("shop", "the-token-of-the-shop\n");
	write_file("pusher", "the-token-of-a-pusher");
	write_file("reader", "the-token-of-a-reader");
	write_file("web.yml",
		"users:\n"
		"  - {name: root, token_file: admin, roles: [admin]}\n"
		"  - {name: shop, token_file: shop, roles: [read], matchers: '{namespace=\"ours\"}'}\n"
		"  - {name: ci, token_file: pusher, roles: [ingest]}\n"
		"  - {name: dashboards, token_file: reader, roles: [read]}\n");
	grafana_start_users(config_file);
	push("name=cpu&job=demo&namespace=ours",
		&(struct pushed_profile){ .cpu = true,
			.slow = 1,
			.own = 2,
			.starts = true,
			.leaf = "main.ours",
			.handler = "/ours" });
	push("name=cpu&job=demo&namespace=zzzns&zzzlabel=zzzvalue",
		&(struct pushed_profile){
			.cpu = true, .slow = 100, .own = 100, .leaf = "main.zzz", .handler = "/zzz" });
	push("name=zzzheap&job=zzzjob&service_name=zzzjob&namespace=zzzns",
		&(struct pushed_profile){ .slow = 1, .own = 1, .leaf = "main.zzz" });
	peer_ask(web_port(grafana.web), &grafana.r,
		"POST /api/v1/annotations?time=1700000000&text=zzzmark&label[]=namespace=zzzns", PUSHER,
		STR(""));
	CHECK_INT(grafana.r.status, 200);
	store_numbers();
}

static void stop(void)
{
	static const char *const names[] = { "admin", "shop", "pusher", "reader", "web.yml" };
	char path[128];

	grafana_stop();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		CHECK(unlink(path) == 0);
	}
	CHECK(rmdir(dir) == 0);
}

/* ---- what is asked ---- */

#define AT "&time=1700000010"
#define WINDOW "&start=1699999990&end=1700000030"
#define QUERIER "/querier.v1.QuerierService/"
#define JOB "%7Bjob=%22demo%22%7D"
#define AROUND "&from=2023-11-14T22:00:00&to=2023-11-14T23:00:00"
#define TOOL(name, arguments) \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"" name \
	"\",\"arguments\":{" arguments "\"window\":\"40s\",\"end\":1700000030}}}"
#define MS "\"start\":\"1699999990000\",\"end\":\"1700000030000\""

enum shows {
	NOTHING, /* nobody's data: the same for all */
	DATA, /* an admin's answer has what is theirs */
	GONE, /* there is nothing of that for the limited user: another status than an admin's */
};

/* clang-format off */
static const struct asked {
	const char *route; /* as in web_routes */
	const char *request;
	const char *body; /* JSON; NULL: none */
	enum shows shows;
} asked[] = {
	{ "/api/v1/query", "GET /api/v1/query?query=cpu" AT, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=cpu" WINDOW, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=merge(cpu)" WINDOW, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=merge%20by%20(namespace)(cpu)" WINDOW, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=merge%20by%20(handler)(cpu)" WINDOW, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=merge(cpu)&format=folded" WINDOW, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=cpu&format=pprof" WINDOW, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=cpu&format=pgo" WINDOW, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=cpu&format=speedscope" WINDOW, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=merge(cpu)&format=text" WINDOW, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=top(10,cpu)" WINDOW, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=diff(merge(cpu),merge(cpu))" WINDOW, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=flat(cpu)" WINDOW, NULL, DATA },
	{ "/api/v1/annotations", "GET /api/v1/annotations?limit=10" WINDOW, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=total(cpu)" WINDOW, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=up" AT, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query="
		"%7B__name__=%22process_cpu%22,job=~%22.%2B%22%7D" AT, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=cpu%7Bnamespace!=%22ours%22%7D" AT, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=cpu%7Bnamespace=%22zzns%22%7D" AT, NULL, DATA },
	{ "/api/v1/query", "GET /api/v1/query?query=zzheap" AT, NULL, DATA },
	{ "/api/v1/query_range", "GET /api/v1/query_range?query=sum%20by%20(namespace)(total(cpu))"
		"&step=10" WINDOW, NULL, DATA },
	{ "/api/v1/query_range", "GET /api/v1/query_range?query=up&step=10" WINDOW, NULL, DATA },
	{ "/api/v1/format_query", "GET /api/v1/format_query?query=cpu", NULL, NOTHING },
	{ "/api/v1/parse_query", "GET /api/v1/parse_query?query=cpu", NULL, NOTHING },
	{ "/api/v1/language", "GET /api/v1/language", NULL, NOTHING },
	{ "/api/v1/query_exemplars", "GET /api/v1/query_exemplars?query=cpu", NULL, NOTHING },
	{ "/api/v1/metadata", "GET /api/v1/metadata", NULL, DATA },
	{ "/api/v1/explain_query", "GET /api/v1/explain_query?query=cpu&analyze=1" WINDOW, NULL,
		NOTHING },
	{ "/api/v1/series", "GET /api/v1/series?match%5B%5D=" JOB, NULL, DATA },
	{ "/api/v1/series", "GET /api/v1/series?limit=1&match%5B%5D="
		"%7Bjob=~%22.%2B%22,namespace!=%22ours%22%7D", NULL, DATA },
	{ "/api/v1/labels", "GET /api/v1/labels", NULL, DATA },
	{ "/api/v1/labels", "GET /api/v1/labels?match%5B%5D=" JOB, NULL, DATA },
	{ "/api/v1/label/*/values", "GET /api/v1/label/namespace/values", NULL, DATA },
	{ "/api/v1/label/*/values", "GET /api/v1/label/__name__/values", NULL, DATA },
	{ "/api/v1/label/*/values", "GET /api/v1/label/handler/values", NULL, DATA },
	{ "/api/v1/label/*/values", "GET /api/v1/label/handler/values?match%5B%5D=" JOB, NULL, DATA },
	{ "/api/v1/label/*/values", "GET /api/v1/label/namespace/values?limit=1&match%5B%5D="
		"%7Bjob=~%22.%2B%22,namespace!=%22ours%22%7D", NULL, DATA },
	{ "/api/v1/label_counts", "GET /api/v1/label_counts", NULL, DATA },
	{ "/api/v1/label_counts", "GET /api/v1/label_counts?label=namespace", NULL, DATA },
	{ "/api/v1/profile_types", "GET /api/v1/profile_types", NULL, DATA },
	{ "/api/v1/links", "GET /api/v1/links?match%5B%5D=" JOB, NULL, NOTHING },
	{ "/api/v1/source_links", "GET /api/v1/source_links", NULL, NOTHING },
	{ "/api/v1/files", "POST /api/v1/files?name=x", "{}", NOTHING },
	{ "/api/v1/files/*", "GET /api/v1/files/00000000000000000000000000000000", NULL, NOTHING },
	{ "/api/v1/files/*", "DELETE /api/v1/files/00000000000000000000000000000000", NULL, NOTHING },
	{ "/api/v1/status/buildinfo", "GET /api/v1/status/buildinfo", NULL, NOTHING },
	{ "/api/v1/status/runtimeinfo", "GET /api/v1/status/runtimeinfo", NULL, NOTHING },
	{ "/api/v1/status/walreplay", "GET /api/v1/status/walreplay", NULL, NOTHING },
	{ "/api/v1/notifications/live", "GET /api/v1/notifications/live", NULL, NOTHING },
	{ "/api/v1/features", "GET /api/v1/features", NULL, NOTHING },
	{ "/api/0/profiles", "GET /api/0/profiles?service=demo" AROUND, NULL, DATA },
	{ "/api/0/profiles/merge", "GET /api/0/profiles/merge?service=demo&type=cpu" AROUND, NULL,
		DATA },
	{ "/api/0/profiles/*", "GET /api/0/profiles/$ID", NULL, GONE },
	{ "/api/0/services", "GET /api/0/services", NULL, DATA },
	{ QUERIER "ProfileTypes", "POST " QUERIER "ProfileTypes", "{" MS "}", DATA },
	{ QUERIER "LabelNames", "POST " QUERIER "LabelNames", "{" MS "}", DATA },
	{ QUERIER "LabelNames", "POST " QUERIER "LabelNames",
		"{\"matchers\":[\"{job=\\\"demo\\\"}\"]," MS "}", DATA },
	{ QUERIER "LabelValues", "POST " QUERIER "LabelValues",
		"{\"name\":\"namespace\"," MS "}", DATA },
	{ QUERIER "LabelValues", "POST " QUERIER "LabelValues",
		"{\"name\":\"__profile_type__\"," MS "}", DATA },
	{ QUERIER "Series", "POST " QUERIER "Series", "{" MS "}", DATA },
	{ QUERIER "SelectSeries", "POST " QUERIER "SelectSeries",
		"{" OF_CPU "\"labelSelector\":\"{}\",\"groupBy\":[\"namespace\"],\"step\":10," MS "}",
		DATA },
	{ QUERIER "SelectMergeStacktraces", "POST " QUERIER "SelectMergeStacktraces",
		"{" OF_CPU "\"labelSelector\":\"{}\"," MS "}", DATA },
	{ QUERIER "SelectMergeProfile", "POST " QUERIER "SelectMergeProfile",
		"{" OF_CPU "\"labelSelector\":\"{}\"," MS "}", DATA },
	{ QUERIER "Diff", "POST " QUERIER "Diff",
		"{\"left\":{" OF_CPU "\"labelSelector\":\"{}\"," MS "},"
		"\"right\":{" OF_CPU "\"labelSelector\":\"{}\"," MS "}}", DATA },
	{ QUERIER "GetProfileStats", "POST " QUERIER "GetProfileStats", "{}", NOTHING },
	{ QUERIER "*", "POST " QUERIER "Other", "{}", NOTHING },
	{ "/mcp", "POST /mcp", TOOL("services", "\"by\":\"namespace\","), DATA },
	{ "/mcp", "POST /mcp", TOOL("top", "\"profiles\":\"cpu\","), DATA },
	{ "/mcp", "POST /mcp", TOOL("tree", "\"profiles\":\"cpu\","), DATA },
	{ "/mcp", "POST /mcp", TOOL("function", "\"profiles\":\"cpu\",\"function\":\"main\","), DATA },
	{ "/mcp", "POST /mcp", TOOL("compare", "\"profiles\":\"cpu\","), DATA },
	{ "/mcp", "POST /mcp", TOOL("query", "\"query\":\"merge by (namespace) (cpu)\","), DATA },
	{ "/mcp", "POST /mcp", TOOL("query", "\"query\":\"cpu{namespace=\\\"zzns\\\"}\","), DATA },
	{ "/mcp", "POST /mcp", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", NOTHING },
	{ "/federate", "GET /federate?match%5B%5D=up", NULL, DATA },
	{ "/metrics/recorded", "GET /metrics/recorded", NULL, NOTHING },
};
/* clang-format on */
#define ASKED (sizeof(asked) / sizeof(asked[0]))

/* An answer's text, inflated if it is pprof. */
static bool has_theirs(const struct response *r)
{
	struct str body = buf_str(&r->body);
	struct arena a;
	struct err err;
	bool has;

	arena_init(&a, 0);
	if (gzip_is(body) && gzip_inflate(&a, body, "answer", 1u << 20, &body, &err))
		CHECK_FAIL("%s", err.msg);
	has = str_find(body, STR(THEIRS)) >= 0;
	has |= str_find(buf_str(&r->head), STR(THEIRS)) >= 0;
	arena_release(&a);
	return has;
}

/* Of a profile that the limited user may not see. */
static void find_id(char id[256])
{
	static const char request[] = "GET /api/0/profiles?service=zzzjob" AROUND;
	struct str body;
	ptrdiff_t at;
	size_t n = 0;

	peer_ask(web_port(grafana.web), &grafana.r, request, ADMIN, STR(""));
	body = buf_str(&grafana.r.body);
	at = str_find(body, STR("\"id\":\""));
	REQUIRE(at >= 0);
	for (const char *p = body.ptr + at + 6; *p != '"' && n < 255; p++)
		id[n++] = *p;
	id[n] = '\0';
}

static int ask(const struct asked *a, const char *user, const char *id)
{
	const char *hole = strstr(a->request, "$ID");
	char request[1024], headers[256];

	snprintf(request, sizeof(request), "%.*s%s",
		(int)(hole ? (size_t)(hole - a->request) : strlen(a->request)), a->request, hole ? id : "");
	snprintf(headers, sizeof(headers), "%s%s", user, a->body ? AS_JSON : "");
	peer_ask(
		web_port(grafana.web), &grafana.r, request, headers, a->body ? str_of(a->body) : STR(""));
	return grafana.r.status;
}

TEST(no_answer_to_a_limited_user_has_what_is_others)
{
	char id[256] = "";
	int admin, limited;

	start();
	find_id(id);
	for (size_t i = 0; i < ASKED; i++) {
		const struct asked *a = &asked[i];

		admin = ask(a, ADMIN, id);
		if (has_theirs(&grafana.r) != (a->shows != NOTHING))
			CHECK_FAIL("%s: an admin gets %d " STR_FMT, a->request, admin,
				STR_ARG(buf_str(&grafana.r.body)));
		limited = ask(a, LIMITED, id);
		if (has_theirs(&grafana.r))
			CHECK_FAIL("%s: the limited user gets %d " STR_FMT, a->request, limited,
				STR_ARG(buf_str(&grafana.r.body)));
		if ((a->shows == GONE) != (limited != admin) || limited == 401 || limited == 403)
			CHECK_FAIL("%s: an admin gets %d, the limited user %d", a->request, admin, limited);
	}
	stop();
}

/* What his answers do have is ours. */
TEST(a_limited_user_reads_what_is_his)
{
	static const char *const rows[][2] = {
		{ "/api/v1/label/namespace/values", "{\"status\":\"success\",\"data\":[\"ours\"]}\n" },
		{ "/api/v1/labels",
			"{\"status\":\"success\",\"data\":[\"__name__\",\"job\",\"namespace\"]}\n" },
		{ "/api/v1/series?match%5B%5D=%7B__name__=~%22process_cpu%7Cup%22%7D",
			"{\"status\":\"success\",\"data\":[{\"__name__\":\"process_cpu\",\"job\":\"demo\","
			"\"namespace\":\"ours\"},{\"__name__\":\"up\",\"namespace\":\"ours\"}]}\n" },
		{ "/api/v1/query?query=merge(cpu)&format=folded" WINDOW,
			"main.main;main.handle 20000000\nmain.main;main.handle;main.ours 10000000\n" },
	};

	start();
	grafana.headers = LIMITED;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_STR(grafana_get(rows[i][0]), rows[i][1]);
	stop();
}

TEST(features_say_what_the_user_may)
{
	static const char *const rows[][2] = {
		{ ADMIN, "\"user\":{\"admin\":true,\"ingest\":true,\"read_all\":true}" },
		{ LIMITED, "\"user\":{\"admin\":false,\"ingest\":false,\"read_all\":false}" },
		{ HEALTH, "\"user\":{\"admin\":false,\"ingest\":false,\"read_all\":true}" },
	};

	start();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		grafana.headers = rows[i][0];
		grafana_get("/api/v1/features");
		if (!grafana_count(rows[i][1]))
			CHECK_FAIL("no %s in " STR_FMT, rows[i][1], STR_ARG(buf_str(&grafana.r.body)));
	}
	stop();
}

/* ---- roles ---- */

/* "METHOD /path" of a route, with x for each "*". */
static void request_of(const struct route *r, char out[256])
{
	size_t n = 0;

	snprintf(out, 256, "%s ",
		r->methods & HTTP_GET      ? "GET" :
			r->methods & HTTP_POST ? "POST" :
									 "DELETE");
	n = strlen(out);
	for (const char *p = r->path; *p && n < 255; p++)
		out[n++] = *p == '*' ? 'x' : *p;
	out[n] = '\0';
}

static bool is_asked(const struct route *r)
{
	for (size_t i = 0; i < ASKED; i++)
		if (!strcmp(asked[i].route, r->path))
			return true;
	return false;
}

static bool may(const char *user, enum http_needs needs)
{
	return needs == NEEDS_USER || !strcmp(user, ADMIN) ||
		(!strcmp(user, HEALTH) && (needs == NEEDS_READ || needs == NEEDS_READ_ALL)) ||
		(!strcmp(user, LIMITED) && needs == NEEDS_READ) ||
		(!strcmp(user, PUSHER) && needs == NEEDS_INGEST);
}

/* All refusals; and of what is allowed all that does nothing and does not take long. */
TEST(each_route_is_refused_to_whom_lacks_its_role)
{
	static const char *const users[] = { LIMITED, PUSHER, HEALTH };
	char request[256];
	size_t refused = 0;

	start();
	for (size_t i = 0; i < web_routes_n; i++) {
		const struct route *r = &web_routes[i];

		if (r->flags & ROUTE_PEERS)
			continue; /* users do not count there: tests/web/push/shard_profiles_test.c */
		if (r->needs == NEEDS_READ && !is_asked(r))
			CHECK_FAIL("%s is read, and no limited user asks it", r->path);
		request_of(r, request);
		for (size_t u = 0; u < sizeof(users) / sizeof(users[0]); u++) {
			if (may(users[u], r->needs))
				continue;
			peer_ask(web_port(grafana.web), &grafana.r, request, users[u], STR(""));
			if (grafana.r.status != 403 ||
				str_find(buf_str(&grafana.r.body), STR(" lacks the role ")) < 0)
				CHECK_FAIL("%s: %s gets %d " STR_FMT, request, users[u], grafana.r.status,
					STR_ARG(buf_str(&grafana.r.body)));
			refused++;
		}
		peer_ask(web_port(grafana.web), &grafana.r, request, "", STR(""));
		if (grafana.r.status != (r->flags & ROUTE_OPEN ? 200 : 401))
			CHECK_FAIL("%s: nobody gets %d", request, grafana.r.status);
	}
	CHECK(refused > 100);
	stop();
}

TEST(a_refusal_says_which_role_whom_lacks)
{
	static const struct {
		const char *user, *request;
		const char *want;
	} rows[] = {
		{ PUSHER, "GET /api/v1/query?query=cpu",
			"{\"status\":\"error\",\"errorType\":\"forbidden\",\"error\":\"user \\\"ci\\\" lacks "
			"the role read; it has ingest\"}" },
		{ LIMITED, "GET /api/v1/targets",
			"{\"status\":\"error\",\"errorType\":\"forbidden\",\"error\":\"user \\\"shop\\\" lacks "
			"the role read without matchers; it has read, and matchers that limit what it "
			"reads\"}" },
		{ LIMITED, "POST /-/quit",
			"Forbidden: user \"shop\" lacks the role admin; it has read, and matchers that limit "
			"what it reads\n" },
		{ HEALTH, "POST /api/v1/ingest",
			"{\"status\":\"error\",\"errorType\":\"forbidden\",\"error\":\"user \\\"dashboards\\\" "
			"lacks the role ingest; it has read\"}" },
	};

	start();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		peer_ask(web_port(grafana.web), &grafana.r, rows[i].request, rows[i].user, STR(""));
		CHECK_INT(grafana.r.status, 403);
		CHECK_STR(buf_str(&grafana.r.body), rows[i].want);
	}
	peer_ask(web_port(grafana.web), &grafana.r, "GET /api/v1/labels", "", STR(""));
	CHECK_INT(grafana.r.status, 401);
	CHECK_STR(response_header(&grafana.r, "WWW-Authenticate"), "Bearer");
	stop();
}
