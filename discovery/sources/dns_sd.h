/*
 * DNS discovery: targets from the records of names, asked again every refresh_interval.
 *
 * One group per name, its source the name. SRV records give host and port; A, AAAA, MX and NS give
 * hosts, and `port` is the configuration's. A name that exists nowhere along the search domains
 * gives an empty group; one about which no server has an answer of use keeps what it gave before,
 * while the others go on. Targets of a group are sorted: servers turn their answers round.
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

/* A YAML_CUSTOM decoder of dns_sd_configs into a struct source_configs. */
enum err_code dns_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err);

#endif
