/* nomad_sd_configs: what is asked, and the labels of the answers. */
#include "tests/discovery/apis/api_check.h"

#define SERVICES \
	"[{\"Namespace\": \"default\", \"Services\": [{\"ServiceName\": \"web\", \"Tags\": []}, " \
	"{\"ServiceName\": \"a b\"}]}]"
#define WHERE "region=global&namespace=default&stale="

static const char web[] =
	"[{\"ID\": \"_nomad-task-1\", \"ServiceName\": \"web\", \"Namespace\": \"default\", "
	"\"NodeID\": \"n1\", \"Datacenter\": \"dc1\", \"Address\": \"10.0.0.1\", \"Port\": 6060, "
	"\"Tags\": [\"go\", \"v2\"]}, "
	"{\"ID\": \"2\", \"ServiceName\": \"web\", \"Address\": \"fd00::2\", \"Port\": 6061, "
	"\"Tags\": null}]";

TEST(services_and_their_labels)
{
	struct world w;

	world_open(&w, NULL);
	world_rule(&w, (struct world_rule){ "GET /v1/services?", SERVICES, 0, "X-Nomad-Index" });
	world_rule(&w, (struct world_rule){ "GET /v1/service/web?", web, 0, "X-Nomad-Index" });
	world_rule(&w, (struct world_rule){ "GET /v1/service/a%20b?", "[]", 0, "X-Nomad-Index" });
	world_source(&w, nomad_sd_decode, "[{server: 'http://@/', refresh_interval: 100ms}]");
	WORLD_EXPECT(&w,
		"a b {}\n"
		"web {}\n"
		"\t{__address__=\"10.0.0.1:6060\", __meta_nomad_address=\"10.0.0.1\", "
		"__meta_nomad_dc=\"dc1\", __meta_nomad_namespace=\"default\", __meta_nomad_node_id=\"n1\", "
		"__meta_nomad_service=\"web\", __meta_nomad_service_address=\"10.0.0.1\", "
		"__meta_nomad_service_id=\"_nomad-task-1\", __meta_nomad_service_port=\"6060\", "
		"__meta_nomad_tags=\",go,v2,\"}\n"
		"\t{__address__=\"[fd00::2]:6061\", __meta_nomad_address=\"fd00::2\", "
		"__meta_nomad_service=\"web\", __meta_nomad_service_address=\"fd00::2\", "
		"__meta_nomad_service_id=\"2\", __meta_nomad_service_port=\"6061\"}\n");
	CHECK(world_saw(&w, "GET /v1/services?" WHERE));
	CHECK(world_saw(&w, "GET /v1/service/a%20b?" WHERE));
	/* from then on the server holds answers back until something changes */
	CHECK(WORLD_UNTIL(&w, w.held_n == 3));
	CHECK(world_saw(&w, "GET /v1/services?" WHERE "&index=7&wait=120000ms"));
	world_change(&w, "GET /v1/services?",
		"[{\"Namespace\": \"default\", \"Services\": [{\"ServiceName\": \"web\"}]}]", 0);
	world_change(&w, "GET /v1/service/web?", "null", 0);
	world_bump(&w);
	WORLD_EXPECT(&w, "web {}\n");
	CHECK_INT(w.unexpected + w.host.failures, 0);
	world_close(&w);
}

TEST(settings)
{
	struct world w;

	world_open(&w, NULL);
	world_rule(&w, (struct world_rule){ "GET /v1/services?", SERVICES });
	world_rule(&w, (struct world_rule){ "GET /v1/service/web?", web });
	world_rule(&w, (struct world_rule){ "GET /v1/service/a%20b?", "[]" });
	world_source(&w, nomad_sd_decode,
		"[{server: 'http://@', region: r, namespace: '*', allow_stale: false, tag_separator: ';', "
		"http_headers: {X-Nomad-Token: {values: [t]}}}]");
	CHECK(WORLD_UNTIL(&w, w.host.set));
	CHECK(strstr(world_text(&w), "__meta_nomad_tags=\";go;v2;\""));
	CHECK(world_saw(&w, "GET /v1/services?region=r&namespace=%2A"));
	CHECK(str_find(buf_str(&w.headers), STR("X-Nomad-Token: t\n")) >= 0);
	world_close(&w);
}

TEST(configuration)
{
	static const struct config_row rows[] = {
		{ "[{}]", NULL },
		{ "[{server: ' '}]", "c.yml:1:2: nomad SD configuration requires a server address" },
		{ "[{server: 'ftp://x'}]", "c.yml:1:2: URL scheme must be 'http' or 'https'" },
		{ "[{refresh_interval: 10ms}]",
			"c.yml:1:21: refresh_interval of nomad discovery is under 100ms" },
		{ "[{token: x}]", "c.yml:1:3: field token not found in type nomad_sd_config" },
		{ "[~]", "c.yml:1:2: empty or null section in nomad_sd_configs" },
	};

	check_configs(nomad_sd_decode, rows, sizeof(rows) / sizeof(rows[0]));
}
