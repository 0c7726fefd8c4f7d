/*
 * HTTP discovery: a document of target groups that a server answers with, asked for at once and
 * then every refresh_interval.
 *
 * Only 200 and Content-Type application/json count; whatever else happens, the groups of the last
 * good answer stay.
 *
 * Threads:   discovery's.
 * Source:    Prometheus's http_sd; __meta_url, X-Prometheus-Refresh-Interval-Seconds.
 */
#ifndef DISCOVERY_SOURCES_HTTP_SD_H
#define DISCOVERY_SOURCES_HTTP_SD_H

#include "discovery/sources/source.h"

#define HTTP_SD_BODY_BYTES_MAX (32u << 20)
#define HTTP_SD_REFRESH_DEFAULT_NS (60 * INT64_C(1000000000))
#define HTTP_SD_REFRESH_MIN_NS (INT64_C(100) * 1000000)

/* A YAML_CUSTOM decoder of http_sd_configs into a struct source_configs. */
enum err_code http_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err);

#endif
