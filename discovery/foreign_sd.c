#include "discovery/foreign_sd.h"

#define ELSEWHERE(name) \
	{ \
		name, YAML_FOREIGN_HINT, \
			"write http_sd_configs, with a server that lists the targets, or file_sd_configs" \
	}

/* A mechanism that comes to SD_CONFIG_FIELDS leaves this table. */
const struct yaml_foreign sd_foreign[] = {
	ELSEWHERE("aws_sd_configs"),
	ELSEWHERE("azure_sd_configs"),
	ELSEWHERE("digitalocean_sd_configs"),
	ELSEWHERE("dockerswarm_sd_configs"),
	ELSEWHERE("eureka_sd_configs"),
	ELSEWHERE("gce_sd_configs"),
	ELSEWHERE("hetzner_sd_configs"),
	ELSEWHERE("ionos_sd_configs"),
	ELSEWHERE("kuma_sd_configs"),
	ELSEWHERE("lightsail_sd_configs"),
	ELSEWHERE("linode_sd_configs"),
	ELSEWHERE("marathon_sd_configs"),
	ELSEWHERE("nerve_sd_configs"),
	ELSEWHERE("openstack_sd_configs"),
	ELSEWHERE("ovhcloud_sd_configs"),
	ELSEWHERE("puppetdb_sd_configs"),
	ELSEWHERE("scaleway_sd_configs"),
	ELSEWHERE("serverset_sd_configs"),
	ELSEWHERE("stackit_sd_configs"),
	ELSEWHERE("triton_sd_configs"),
	ELSEWHERE("uyuni_sd_configs"),
	ELSEWHERE("vultr_sd_configs"),
	{ NULL },
};
