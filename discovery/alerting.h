/*
 * Alerting: the section `alerting` of a configuration: which Alertmanagers get alerts, and how
 * labels of alerts are rewritten.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_INVALID at its place in the file, in Prometheus's words.
 * Ownership: everything is in the arena it was decoded in, except compiled rules:
 *            alerting_config_release.
 * Threads:   immutable once decoded.
 * Source:    Prometheus's AlertingConfig, AlertmanagerConfig.
 */
#ifndef DISCOVERY_ALERTING_H
#define DISCOVERY_ALERTING_H

#include "base/net/http_client.h"
#include "discovery/discovery.h"
#include "discovery/relabel.h"

#define ALERTMANAGER_TIMEOUT_DEFAULT_NS (10 * INT64_C(1000000000))

struct alertmanager_config {
	struct str scheme; /* http */
	struct str path_prefix; /* / */
	int64_t timeout_ns;
	struct http_config http;
	struct sd_configs sd;
	struct relabel_rules relabel; /* of Alertmanagers */
	struct relabel_rules alert_relabel; /* of what is sent to these */
};

struct alerting_config {
	struct relabel_rules alert_relabel; /* of all alerts */
	struct alertmanager_config *alertmanagers;
	size_t alertmanagers_n;
};

extern const struct yaml_schema alerting_config_schema;
/* A YAML_CUSTOM decoder into a struct alerting_config. Release it even if this fails. */
enum err_code alerting_config_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err);
void alerting_config_release(struct alerting_config *c);
/* For `check config`: the files that it names can be read. */
MUST_CHECK enum err_code alerting_config_check_files(
	const struct alerting_config *c, struct err *err);

#endif
