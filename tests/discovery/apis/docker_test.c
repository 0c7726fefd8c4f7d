/* docker_sd_configs: what is asked, by TCP and through a socket, and the labels of the answers. */
#include <unistd.h>

#include "tests/discovery/apis/api_check.h"

static const char networks[] =
	"[{\"Id\": \"N1\", \"Name\": \"bridge\", \"Scope\": \"local\", \"Internal\": false, "
	"\"Ingress\": false, \"Labels\": {\"a.b\": \"c\"}}, "
	"{\"Id\": \"N2\", \"Name\": \"back\", \"Scope\": \"swarm\", \"Internal\": true, "
	"\"Ingress\": true, \"Labels\": null}]";

#define CONTAINER(id, mode, nets, ports) \
	"{\"Id\": \"" id "\", \"Names\": [\"/" id "\", \"/x\"], \"Image\": \"i:1\", " \
	"\"ImageID\": \"sha256:1\", \"HostConfig\": {\"NetworkMode\": \"" mode "\"}, " \
	"\"Labels\": {\"com.docker/x\": \"y\"}, \"NetworkSettings\": {\"Networks\": " nets "}, " \
	"\"Ports\": " ports "}"
#define BRIDGE "{\"bridge\": {\"NetworkID\": \"N1\", \"IPAddress\": \"172.17.0.2\"}}"
#define BOTH \
	"{\"bridge\": {\"NetworkID\": \"N1\", \"IPAddress\": \"172.17.0.2\"}, \"back\": " \
	"{\"NetworkID\": \"N2\", \"IPAddress\": \"10.5.0.2\"}, \"a\": null}"
#define PORTS \
	"[{\"IP\": \"0.0.0.0\", \"PrivatePort\": 6060, \"PublicPort\": 8080, \"Type\": \"tcp\"}, " \
	"{\"PrivatePort\": 53, \"Type\": \"udp\"}, {\"PrivatePort\": 7070, \"Type\": \"tcp\"}]"

#define OF(id, mode) \
	"__meta_docker_container_id=\"" id "\", __meta_docker_container_image=\"i:1\", " \
	"__meta_docker_container_image_id=\"sha256:1\", " \
	"__meta_docker_container_label_com_docker_x=\"y\", __meta_docker_container_name=\"/" id "\", " \
	"__meta_docker_container_network_mode=\"" mode "\", "
#define IN_BRIDGE \
	"__meta_docker_network_id=\"N1\", __meta_docker_network_ingress=\"false\", " \
	"__meta_docker_network_internal=\"false\", __meta_docker_network_ip=\"172.17.0.2\", " \
	"__meta_docker_network_label_a_b=\"c\", __meta_docker_network_name=\"bridge\", " \
	"__meta_docker_network_scope=\"local\""
#define IN_BACK \
	"__meta_docker_network_id=\"N2\", __meta_docker_network_ingress=\"true\", " \
	"__meta_docker_network_internal=\"true\", __meta_docker_network_ip=\"10.5.0.2\", " \
	"__meta_docker_network_name=\"back\", __meta_docker_network_scope=\"swarm\""

static struct world w;

static void open_world(const char *unix_path, const char *containers, const char *yaml)
{
	world_open(&w, unix_path);
	world_rule(&w, (struct world_rule){ "GET /networks", networks });
	world_rule(&w,
		(struct world_rule){ "GET /containers/json", arena_printf(&w.arena, "[%s]", containers) });
	world_source(&w, docker_sd_decode, yaml);
}

TEST(labels)
{
	/* clang-format off */
	static const struct {
		const char *containers, *more, *want;
	} rows[] = {
		{ "", "", "docker {}\n" },
		{ CONTAINER("c", "default", BRIDGE, PORTS), "",
			"docker {}\n"
			"\t{__address__=\"172.17.0.2:6060\", " OF("c", "default") IN_BRIDGE
			", __meta_docker_port_private=\"6060\", __meta_docker_port_public=\"8080\", "
			"__meta_docker_port_public_ip=\"0.0.0.0\"}\n"
			"\t{__address__=\"172.17.0.2:7070\", " OF("c", "default") IN_BRIDGE
			", __meta_docker_port_private=\"7070\"}\n" },
		/* without a port of TCP: the configuration's */
		{ CONTAINER("c", "default", BRIDGE, "[{\"PrivatePort\": 53, \"Type\": \"udp\"}]"),
			", port: 99",
			"docker {}\n\t{__address__=\"172.17.0.2:99\", " OF("c", "default") IN_BRIDGE "}\n" },
		{ CONTAINER("c", "default", BRIDGE, "[]"), "",
			"docker {}\n\t{__address__=\"172.17.0.2:80\", " OF("c", "default") IN_BRIDGE "}\n" },
		/* the first network by name, or all of them */
		{ CONTAINER("c", "default", BOTH, "[]"), "",
			"docker {}\n\t{__address__=\"10.5.0.2:80\", " OF("c", "default") IN_BACK "}\n" },
		{ CONTAINER("c", "default", BOTH, "[]"), ", match_first_network: false",
			"docker {}\n\t{__address__=\"172.17.0.2:80\", " OF("c", "default") IN_BRIDGE "}\n"
			"\t{__address__=\"10.5.0.2:80\", " OF("c", "default") IN_BACK "}\n" },
		/* in the host's network */
		{ CONTAINER("c", "host", "{\"host\": {\"NetworkID\": \"gone\", \"IPAddress\": "
			"\"\"}}", "[]"),
			", host_networking_host: node-1",
			"docker {}\n\t{__address__=\"node-1\", __meta_docker_container_id=\"c\", "
			"__meta_docker_container_image=\"i:1\", __meta_docker_container_image_id=\"sha256:1\", "
			"__meta_docker_container_label_com_docker_x=\"y\", "
				"__meta_docker_container_name=\"/c\", "
			"__meta_docker_container_network_mode=\"host\"}\n" },
		/* in the network of another, which is in that of a third */
		{ CONTAINER("c", "container:b", "{}", "[{\"PrivatePort\": 1, \"Type\": \"tcp\"}]") ","
		  CONTAINER("b", "container:a", "{}", "[]") "," CONTAINER("a", "default", BRIDGE, "[]"), "",
			"docker {}\n"
			"\t{__address__=\"172.17.0.2:1\", " OF("c", "container:b") IN_BRIDGE
			", __meta_docker_port_private=\"1\"}\n"
			"\t{__address__=\"172.17.0.2:80\", " OF("b", "container:a") IN_BRIDGE "}\n"
			"\t{__address__=\"172.17.0.2:80\", " OF("a", "default") IN_BRIDGE "}\n" },
		/* in each other's; in one that is gone; without a name */
		{ CONTAINER("a", "container:b", "{}", "[]") "," CONTAINER("b", "container:a", "{}",
			"[]") ","
		  CONTAINER("c", "container:gone", "{}", "[]") ", {\"Id\": \"d\", \"Names\": [], "
		  "\"NetworkSettings\": {\"Networks\": " BRIDGE "}}", "", "docker {}\n" },
		{ CONTAINER("c", "default",
			"{\"six\": {\"IPAddress\": \"\", \"GlobalIPv6Address\": \"fd00::2\"}}", "[]"), "",
			"docker {}\n\t{__address__=\"[fd00::2]:80\", " OF("c", "default")
			"__meta_docker_network_ip=\"fd00::2\"}\n" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char yaml[256];

		snprintf(yaml, sizeof(yaml), "[{host: 'tcp://@'%s}]", rows[i].more);
		open_world(NULL, rows[i].containers, yaml);
		WORLD_EXPECT(&w, rows[i].want);
		CHECK_INT(w.unexpected + w.host.failures, 0);
		world_close(&w);
	}
}

TEST(through_a_socket_of_this_machine)
{
	char dir[] = "/tmp/epimetheus-docker-XXXXXX", path[64], yaml[512];

	REQUIRE(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/docker.sock", dir);
	snprintf(yaml, sizeof(yaml),
		"[{host: 'unix://%s', refresh_interval: 100ms, proxy_url: 'http://127.0.0.1:1', filters: "
		"[{name: label, values: [a=b, c]}, {name: status, values: [running]}, {name: label, "
		"values: "
		"[d]}, {name: empty}]}]",
		path);
	open_world(path, CONTAINER("c", "default", BRIDGE, "[]"), yaml);
	CHECK(WORLD_UNTIL(&w, w.host.set));
	CHECK(strstr(world_text(&w), "\t{__address__=\"172.17.0.2:80\""));
	CHECK(world_saw(&w, "GET /networks"));
	CHECK(world_saw(&w,
		"GET /containers/json?filters=%7B%22label%22%3A%7B%22a%3Db%22%3Atrue%2C%22c%22%3Atrue%2C"
		"%22d%22%3Atrue%7D%2C%22status%22%3A%7B%22running%22%3Atrue%7D%7D"));
	CHECK(str_find(buf_str(&w.headers), STR("Host: localhost\n")) >= 0);
	/* the daemon is asked again, and its failures keep the targets */
	world_change(&w, "GET /networks", "{\"message\": \"broken\"}", 500);
	snprintf(yaml, sizeof(yaml),
		"unix://%s: list networks: server returned HTTP status 500 Refused: broken", path);
	WORLD_EXPECT_FAILURE(&w, yaml);
	CHECK(strstr(world_text(&w), "\t{__address__=\"172.17.0.2:80\""));
	world_change(&w, "GET /networks", "[]", 0);
	CHECK(WORLD_UNTIL(&w, !w.host.failing));
	CHECK(!strstr(world_text(&w), "network_name"));
	world_close(&w);
	unlink(path);
	rmdir(dir);
}

TEST(configuration)
{
	/* clang-format off */
	static const struct config_row rows[] = {
		{ "[{}]", "c.yml:1:2: host missing" },
		{ "[{host: 'unix:///var/run/docker.sock'}]", NULL },
		{ "[{host: 'https://a:2376/x', tls_config: {insecure_skip_verify: true}}]", NULL },
		{ "[{host: 'ssh://a'}]", "c.yml:1:2: URL scheme must be 'http' or 'https'" },
		{ "[{host: 'a:1'}]", "c.yml:1:2: host is \"unix:///path\", \"tcp://host:port\", or a "
			"URL of "
			"http or https" },
		{ "[{host: 'tcp://'}]", "c.yml:1:2: host is missing in URL" },
		{ "[{host: 'tcp://a:1', filters: [{names: x}]}]",
			"c.yml:1:33: field names not found in type filter; did you mean \"name\"?" },
		{ "[{host: 'tcp://a:1', port: x}]", "c.yml:1:28: cannot unmarshal !!str `x` into int64" },
	};
	/* clang-format on */

	check_configs(docker_sd_decode, rows, sizeof(rows) / sizeof(rows[0]));
}
