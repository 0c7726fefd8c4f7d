/*
 * HTTP discovery: fetches a document of target groups at once, and then every refresh_interval.
 *
 * Only an answer 200 with Content-Type application/json counts. After any other the groups of the
 * last good answer stay.
 *
 * Threads:   discovery's.
 * Source:    Prometheus's http_sd; __meta_url, X-Prometheus-Refresh-Interval-Seconds.
 */
#ifndef DISCOVERY_SOURCES_HTTP_SD_H
#define DISCOVERY_SOURCES_HTTP_SD_H

#include "base/yaml/yaml.h"

#define HTTP_SD_BODY_BYTES_MAX (32u << 20)
#define HTTP_SD_REFRESH_DEFAULT_NS (60 * INT64_C(1000000000))
#define HTTP_SD_REFRESH_MIN_NS (INT64_C(100) * 1000000)

extern const struct yaml_schema http_sd_schema; /* of one entry */
/* A YAML_CUSTOM decoder of http_sd_configs into a struct source_configs. */
enum err_code http_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err);

#endif
