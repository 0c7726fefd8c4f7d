/*
 * Discovery by the APIs of other programs: consul_sd_configs, docker_sd_configs, ec2_sd_configs,
 * nomad_sd_configs. Each is a table (discovery/apis/api.h).
 *
 * Threads:   discovery's.
 * Source:    Prometheus's documentation of these sections, and the labels that its discovery sets.
 */
#ifndef DISCOVERY_APIS_SD_H
#define DISCOVERY_APIS_SD_H

#include "base/yaml/yaml.h"

/* Of one entry. */
extern const struct yaml_schema consul_sd_schema, docker_sd_schema, ec2_sd_schema, nomad_sd_schema;
/* YAML_CUSTOM decoders into a struct source_configs. */
enum err_code consul_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err);
enum err_code docker_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err);
enum err_code ec2_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err);
enum err_code nomad_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err);

#endif
