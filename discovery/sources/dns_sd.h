/*
 * DNS discovery: targets from the records of names, looked up every refresh_interval.
 *
 * Each name is a group, with the name as its source. SRV records have host and port; for A, AAAA,
 * MX and NS `port` is in the configuration. A name that exists in no search domain has an empty
 * group. A name whose lookup fails keeps its last targets. Targets of a group are sorted, because
 * servers rotate their answers.
 *
 * Threads:   discovery's.
 * Source:    Prometheus's dns_sd: __meta_dns_name, __meta_dns_srv_record_target and _port,
 *            __meta_dns_mx_record_target, __meta_dns_ns_record_target.
 */
#ifndef DISCOVERY_SOURCES_DNS_SD_H
#define DISCOVERY_SOURCES_DNS_SD_H

#include "discovery/sources/source.h"

#define DNS_SD_NAMES_MAX 10000u
#define DNS_SD_REFRESH_DEFAULT_NS (30 * INT64_C(1000000000))

struct dns_sd_config {
	struct yaml_list names; /* struct str */
	struct str type; /* SRV, A, AAAA, MX, NS, in any case */
	int64_t port; /* of no use with SRV */
	int64_t refresh_interval_ns;
};

extern const struct source_ops dns_sd_ops; /* of a struct dns_sd_config */

extern const struct yaml_schema dns_sd_schema; /* of one entry */
/* A YAML_CUSTOM decoder of dns_sd_configs into a struct source_configs. */
enum err_code dns_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err);

#endif
