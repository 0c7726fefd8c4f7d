/* consul_sd_configs: what is asked, the labels of the answers, changes and failures. */
#include "tests/discovery/apis/api_check.h"

#define INDEX "X-Consul-Index"
#define SELF "{\"Config\": {\"Datacenter\": \"dc1\", \"NodeName\": \"n\"}}"
#define URL "[{server: '@', refresh_interval: 100ms"

static struct world w;

/* An instance: address of the node, of the service, checks. */
#define ENTRY(node, service, checks) \
	"{\"Node\": {\"Node\": \"n1\", \"Address\": \"" node "\", \"Meta\": null}, " \
	"\"Service\": {\"ID\": \"s1\", \"Address\": \"" service "\", \"Port\": 80, \"Tags\": null}, " \
	"\"Checks\": " checks "}"

static void open_world(const char *services, const char *yaml)
{
	world_open(&w, NULL);
	world_rule(&w, (struct world_rule){ "GET /v1/agent/self", SELF });
	world_rule(&w, (struct world_rule){ "GET /v1/catalog/services", services, 0, INDEX });
	world_rule(&w,
		(struct world_rule){
			"GET /v1/health/service/web?", "[" ENTRY("10.0.0.1", "", "[]") "]", 0, INDEX });
	world_rule(&w, (struct world_rule){ "GET /v1/health/service/db?", "[]", 0, INDEX });
	world_source(&w, consul_sd_decode, yaml);
}

static void close_world(void)
{
	CHECK_INT(w.unexpected, 0);
	world_close(&w);
}

#define WEB \
	"web {__meta_consul_dc=\"dc1\", __meta_consul_service=\"web\"}\n" \
	"\t{__address__=\"10.0.0.1:80\", __meta_consul_address=\"10.0.0.1\", " \
	"__meta_consul_health=\"passing\", __meta_consul_node=\"n1\", " \
	"__meta_consul_service_id=\"s1\", __meta_consul_service_port=\"80\", " \
	"__meta_consul_tags=\",,\"}\n"
#define DB "db {__meta_consul_dc=\"dc1\", __meta_consul_service=\"db\"}\n"

TEST(labels)
{
	static const struct {
		const char *entry, *want;
	} rows[] = {
		{ "{\"Node\": {\"ID\": \"x\", \"Node\": \"node 1\", \"Address\": \"10.0.0.1\", "
		  "\"Meta\": {\"rack-id\": \"r1\", \"empty\": \"\"}, "
		  "\"TaggedAddresses\": {\"lan\": \"10.0.0.1\", \"wan_ipv4\": \"1.2.3.4\"}}, "
		  "\"Service\": {\"ID\": \"web-1\", \"Service\": \"web\", \"Address\": \"10.1.0.1\", "
		  "\"Port\": 6060, \"Tags\": [\"go\", \"v2\"], \"Meta\": {\"ver/sion\": \"7\"}, "
		  "\"Namespace\": \"ns\", \"Partition\": \"p\"}, "
		  "\"Checks\": [{\"CheckID\": \"serfHealth\", \"Status\": \"passing\"}]}",
			"{__address__=\"10.1.0.1:6060\", __meta_consul_address=\"10.0.0.1\", "
			"__meta_consul_health=\"passing\", __meta_consul_metadata_rack_id=\"r1\", "
			"__meta_consul_namespace=\"ns\", __meta_consul_node=\"node 1\", "
			"__meta_consul_partition=\"p\", __meta_consul_service_address=\"10.1.0.1\", "
			"__meta_consul_service_id=\"web-1\", __meta_consul_service_metadata_ver_sion=\"7\", "
			"__meta_consul_service_port=\"6060\", __meta_consul_tagged_address_lan=\"10.0.0.1\", "
			"__meta_consul_tagged_address_wan_ipv4=\"1.2.3.4\", "
			"__meta_consul_tags=\",go,v2,\"}\n" },
		{ ENTRY("fd00::1", "", "null"),
			"{__address__=\"[fd00::1]:80\", __meta_consul_address=\"fd00::1\", "
			"__meta_consul_health=\"passing\", __meta_consul_node=\"n1\", "
			"__meta_consul_service_id=\"s1\", __meta_consul_service_port=\"80\", "
			"__meta_consul_tags=\",,\"}\n" },
		{ "{\"Node\": {\"Address\": \"10.0.0.1\"}, \"Service\": {\"ID\": \"s1\"}, \"Checks\": []}",
			"{__address__=\"10.0.0.1:0\", __meta_consul_address=\"10.0.0.1\", "
			"__meta_consul_health=\"passing\", __meta_consul_service_id=\"s1\", "
			"__meta_consul_service_port=\"0\", __meta_consul_tags=\",,\"}\n" },
	};
	static const struct {
		const char *checks, *want;
	} health[] = {
		{ "[]", "\"passing\"" },
		{ "[{\"Status\": \"passing\"}, {\"Status\": \"warning\"}]", "\"warning\"" },
		{ "[{\"Status\": \"critical\"}, {\"Status\": \"warning\"}]", "\"critical\"" },
		{ "[{\"Status\": \"critical\"}, {\"CheckID\": \"_node_maintenance\", \"Status\": \"x\"}]",
			"\"maintenance\"" },
		{ "[{\"CheckID\": \"_service_maintenance:web\", \"Status\": \"critical\"}]",
			"\"maintenance\"" },
		{ "[{\"Status\": \"critical\"}, {\"Status\": \"odd\"}]", NULL },
	};
	const char *entry, *shown;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		open_world("{\"web\": []}", URL "}]");
		world_change(
			&w, "GET /v1/health/service/web?", arena_printf(&w.arena, "[%s]", rows[i].entry), 0);
		(void)WORLD_UNTIL(&w, strcmp(world_labels(&w), rows[i].want) == 0);
		CHECK_STR(str_of(world_labels(&w)), rows[i].want);
		close_world();
	}
	for (size_t i = 0; i < sizeof(health) / sizeof(health[0]); i++) {
		open_world("{\"web\": []}", URL "}]");
		entry = arena_printf(&w.arena,
			"[{\"Node\": {\"Address\": \"a\"}, \"Service\": {\"Port\": 1}, \"Checks\": %s}]",
			health[i].checks);
		world_change(&w, "GET /v1/health/service/web?", entry, 0);
		CHECK(WORLD_UNTIL(&w, strchr(world_text(&w), '\t')));
		shown = strstr(world_text(&w), "__meta_consul_health=");
		if (health[i].want)
			CHECK(shown &&
				strncmp(shown + strlen("__meta_consul_health="), health[i].want,
					strlen(health[i].want)) == 0);
		else
			CHECK(!shown);
		close_world();
	}
}

TEST(changes_come_at_once)
{
	open_world("{\"web\": [], \"db\": [\"x\"]}", URL "}]");
	WORLD_EXPECT(&w, DB WEB);
	CHECK(WORLD_UNTIL(&w, w.held_n == 3));
	CHECK(world_saw(&w, "GET /v1/agent/self"));
	CHECK(world_saw(&w, "GET /v1/catalog/services?stale="));
	CHECK(world_saw(&w, "GET /v1/health/service/db?stale="));
	CHECK(world_saw(&w, "GET /v1/catalog/services?stale=&index=7&wait=120000ms"));
	CHECK(world_saw(&w, "GET /v1/health/service/web?stale=&index=7&wait=120000ms"));
	/* an instance goes, then a service, then another comes */
	world_change(&w, "GET /v1/health/service/web?", "[]", 0);
	world_bump(&w);
	WORLD_EXPECT(&w, DB "web {__meta_consul_dc=\"dc1\", __meta_consul_service=\"web\"}\n");
	CHECK(WORLD_UNTIL(&w, w.held_n == 3));
	world_change(&w, "GET /v1/catalog/services", "{\"db\": []}", 0);
	world_bump(&w);
	WORLD_EXPECT(&w, DB);
	CHECK(WORLD_UNTIL(&w, w.held_n >= 2));
	world_change(&w, "GET /v1/catalog/services", "{}", 0);
	world_bump(&w);
	WORLD_EXPECT(&w, "");
	/* the server begins anew with a lower index */
	CHECK(WORLD_UNTIL(&w, w.held_n >= 1));
	w.index = 1;
	world_change(&w, "GET /v1/catalog/services", "{\"db\": []}", 0);
	world_bump(&w);
	WORLD_EXPECT(&w, DB);
	CHECK(WORLD_UNTIL(&w, world_saw(&w, "GET /v1/catalog/services?stale=&index=2&wait=120000ms")));
	CHECK_INT(w.host.failures, 0);
	close_world();
}

TEST(settings)
{
	/* clang-format off */
	static const struct {
		const char *yaml, *want; /* a line of the log */
	} rows[] = {
		{ ", datacenter: d, namespace: n, partition: p, allow_stale: false}]",
			"GET /v1/catalog/services?dc=d&ns=n&partition=p" },
		{ ", filter: 'NodeMeta.os == \"linux\"'}]",
			"GET /v1/catalog/services?stale=&filter=NodeMeta.os%20%3D%3D%20%22linux%22" },
		{ ", health_filter: 'a==b', node_meta: {k: v, a: b}}]",
			"GET /v1/health/service/db?stale=&node-meta=a%3Ab&node-meta=k%3Av&filter=a%3D%3Db" },
		{ ", tags: [x]}]", "GET /v1/health/service/db?stale=&tag=x" },
		{ ", services: [db], tags: [x]}]", "GET /v1/catalog/services?stale=" },
		{ ", services: [db]}]", "GET /v1/health/service/db?stale=" },
		{ ", path_prefix: /gate/, scheme: http}]", "GET /gate/v1/catalog/services?stale=" },
	};
	/* clang-format on */
	char yaml[256];
	bool all;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(yaml, sizeof(yaml), "%s%s", URL, rows[i].yaml);
		world_open(&w, NULL);
		world_rule(&w, (struct world_rule){ "/v1/agent/self", SELF });
		world_rule(&w,
			(struct world_rule){
				"/v1/catalog/services", "{\"db\": [\"x\", \"y\"], \"web\": [\"y\"]}" });
		world_rule(&w, (struct world_rule){ "/v1/health/service/", "[]" });
		world_source(&w, consul_sd_decode, yaml);
		all = !strstr(rows[i].yaml, "services") && !strstr(rows[i].yaml, "tags");
		CHECK(WORLD_UNTIL(&w, strstr(world_text(&w), all ? "\"web\"" : "\"db\"")));
		if (!WORLD_UNTIL(&w, world_saw(&w, rows[i].want)))
			CHECK_FAIL("log is %.*s, want %s", (int)w.log.len, w.log.ptr, rows[i].want);
		/* only services that are wanted and have all tags */
		CHECK_INT(strstr(world_text(&w), "\"web\"") != NULL, all);
		CHECK_INT(str_find(buf_str(&w.log), STR("catalog")) >= 0,
			strcmp(rows[i].yaml, ", services: [db]}]") != 0);
		CHECK_INT(str_find(buf_str(&w.log), STR("agent")) >= 0, i > 0);
		close_world();
	}
	open_world("{}", "[{server: 'http://@', token: s3cret, username: u, password: p}]");
	WORLD_EXPECT(&w, "");
	CHECK(str_find(buf_str(&w.headers), STR("X-Consul-Token: s3cret\n")) >= 0);
	CHECK(str_find(buf_str(&w.headers), STR("Authorization: Basic dTpw\n")) >= 0);
	close_world();
}

TEST(a_failure_keeps_the_last_targets)
{
	char want[256];

	open_world("{\"web\": [], \"db\": []}", URL "}]");
	WORLD_EXPECT(&w, DB WEB);
	CHECK(WORLD_UNTIL(&w, w.held_n == 3));
	/* one service fails, another changes */
	world_change(&w, "GET /v1/health/service/web?", "rpc error: No cluster leader\n", 500);
	world_change(&w, "GET /v1/health/service/db?", "[" ENTRY("10.0.0.9", "", "[]") "]", 0);
	world_bump(&w);
	CHECK(WORLD_UNTIL(&w, strstr(world_text(&w), "10.0.0.9:80")));
	CHECK(WORLD_UNTIL(&w, w.host.failing));
	CHECK(strstr(world_text(&w), "10.0.0.1:80"));
	snprintf(want, sizeof(want),
		"http://127.0.0.1:%u: list service \"web\": server returned HTTP status 500 Refused: rpc "
		"error: No cluster leader",
		w.port);
	CHECK_STR(str_of(w.host.why.msg), want);
	/* it goes well again */
	world_change(&w, "GET /v1/health/service/web?", "[]", 0);
	CHECK(WORLD_UNTIL(&w, !strstr(world_text(&w), "10.0.0.1:80") && !w.host.failing));
	close_world();
}

TEST(a_server_that_is_down_is_told_once_in_a_while)
{
	struct buf services = { 0 };
	unsigned before;
	size_t n = 50;

	for (size_t i = 0; i < n; i++)
		buf_printf(&services, "%c\"s%zu\": []", i ? ',' : '{', i);
	buf_add_cstr(&services, "}");
	buf_add_char(&services, '\0');
	world_open(&w, NULL);
	world_rule(&w, (struct world_rule){ "/v1/agent/self", SELF });
	world_rule(&w, (struct world_rule){ "/v1/catalog/services", services.ptr, 0, INDEX });
	world_rule(&w, (struct world_rule){ "/v1/health/service/", "[]", 0, INDEX });
	world_source(&w, consul_sd_decode, URL "}]");
	CHECK(WORLD_UNTIL(&w, w.held_n == n + 1));
	world_change(&w, "/v1/health/service/", "down", 500);
	world_bump(&w);
	CHECK(WORLD_UNTIL(&w, w.host.failing));
	before = w.requests;
	CHECK(WORLD_UNTIL(&w, w.requests > before + 4 * n));
	CHECK(w.host.failures < 10); /* of some two hundred */
	CHECK_INT(w.host.set->n, n);
	world_change(&w, "/v1/health/service/", "[]", 0);
	CHECK(WORLD_UNTIL(&w, !w.host.failing && w.held_n == n + 1));
	close_world();
	buf_release(&services);
}

TEST(a_failure_before_the_first_answer)
{
	/* clang-format off */
	static const struct {
		const char *match, *body, *want;
		int status;
	} rows[] = {
		{ "/v1/agent/self", "Permission denied: token with AccessorID 'x'",
			"read the agent's datacenter: server returned HTTP status 403 Refused: "
				"Permission denied: "
			"token with AccessorID 'x'", 403 },
		{ "/v1/catalog/services", "{\"web\": [",
			"list services: the answer is not JSON: 1:9: ']' expected near end of file", 200 },
		{ "/v1/catalog/services", "<html>gateway</html>",
			"list services: server returned HTTP status 502 Refused: <html>gateway</html>", 502 },
	};
	/* clang-format on */
	char want[512];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		world_open(&w, NULL);
		world_rule(&w, (struct world_rule){ rows[i].match, rows[i].body, rows[i].status });
		world_rule(&w, (struct world_rule){ "/v1/agent/self", SELF });
		world_source(&w, consul_sd_decode, URL "}]");
		snprintf(want, sizeof(want), "http://127.0.0.1:%u: %s", w.port, rows[i].want);
		WORLD_EXPECT_FAILURE(&w, want);
		CHECK(!w.host.set);
		close_world();
	}
	/* a service whose first answer fails does not keep the others back */
	open_world("{\"web\": [], \"db\": []}", URL "}]");
	world_change(&w, "GET /v1/health/service/db?", "{}", 0);
	WORLD_EXPECT(&w, WEB);
	snprintf(want, sizeof(want),
		"http://127.0.0.1:%u: list service \"db\": the answer is not a "
		"list",
		w.port);
	CHECK(WORLD_UNTIL(&w, w.host.failing));
	CHECK_STR(str_of(w.host.why.msg), want);
	close_world();
}

/* No thread and, beyond some, no connection for each. */
TEST(many_services)
{
	struct buf services = { 0 };
	size_t n = 300;

	for (size_t i = 0; i < n; i++)
		buf_printf(&services, "%c\"s%zu\": []", i ? ',' : '{', i);
	buf_add_cstr(&services, "}");
	buf_add_char(&services, '\0');
	world_open(&w, NULL);
	world_rule(&w, (struct world_rule){ "/v1/agent/self", SELF });
	world_rule(&w, (struct world_rule){ "/v1/catalog/services", services.ptr, 0, INDEX });
	world_rule(&w,
		(struct world_rule){
			"/v1/health/service/", "[" ENTRY("10.0.0.1", "", "[]") "]", 0, INDEX });
	world_source(&w, consul_sd_decode, URL "}]");
	CHECK(WORLD_UNTIL(&w, w.host.set && w.host.set->n == n));
	CHECK(WORLD_UNTIL(&w, w.held_n == 64));
	CHECK(WORLD_UNTIL(&w, w.requests > 4 * n)); /* the others are asked without blocking */
	CHECK_INT(w.held_max, 64); /* the list of services, and 63 services */
	/* a change of one that is not watched is seen as well */
	world_change(&w, "/v1/health/service/", "[]", 0);
	w.index++;
	CHECK(WORLD_UNTIL(&w, groups_targets(w.host.set) == 63));
	world_bump(&w);
	CHECK(WORLD_UNTIL(&w, groups_targets(w.host.set) == 0));
	CHECK_INT(w.unexpected + w.host.failures, 0);
	world_close(&w);
	buf_release(&services);
}

TEST(configuration)
{
	/* clang-format off */
	static const struct config_row rows[] = {
		{ "[{}]", NULL },
		{ "[{server: ''}]", "c.yml:1:2: consul SD configuration requires a server address" },
		{ "[{server: 'a:1', scheme: ftp}]", "c.yml:1:2: URL scheme must be 'http' or 'https'" },
		{ "[{server: 'unix:///run/consul.sock'}]", NULL },
		{ "[{server: 'unix://'}]", "c.yml:1:2: a socket's path has 1 to 107 bytes" },
		{ "[{username: u, basic_auth: {username: v}}]",
			"c.yml:1:28: at most one of consul SD configuration username and password and "
				"basic auth "
			"can be configured" },
		{ "[{token: t, authorization: {credentials: c}}]",
			"c.yml:1:10: at most one of consul SD token, authorization, or oauth2 can be "
				"configured" },
		{ "[{bearer_token: t, basic_auth: {username: v}}]",
			"c.yml:1:32: at most one of basic_auth, oauth2, bearer_token & bearer_token_file "
				"must be "
			"configured" },
		{ "[{services: x}]", "c.yml:1:13: cannot unmarshal !!str `x` into []string" },
		{ "[{tag: x}]",
			"c.yml:1:3: field tag not found in type consul_sd_config; did you mean \"tags\"?" },
	};
	/* clang-format on */

	check_configs(consul_sd_decode, rows, sizeof(rows) / sizeof(rows[0]));
}
