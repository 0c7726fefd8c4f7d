/*
 * Discovery: keeps the target groups of every job up to date and delivers them when they change.
 *
 * A job has static targets, written in the configuration, and targets of its sources
 * (discovery/sources/source.h). Jobs with equal entries share a source, and a reload keeps it. A
 * source that fails keeps its last groups.
 *
 * Changes are batched: the first one is delivered within 50 ms; later ones of the same job when 20
 * times as long has passed as the delivery before took of a processor, or a second. So a job that
 * keeps changing takes a twentieth of a processor as long as its deliveries take less than 50 ms.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_INVALID at its place in the configuration file.
 * Ownership: discovery_apply copies what it needs of the jobs; `user` must stay valid until the
 *            next successful discovery_apply, or discovery_close.
 * Threads:   starts one, named "discovery", and calls `update` on it. open, apply and close are
 *            called from one other thread.
 */
#ifndef DISCOVERY_DISCOVERY_H
#define DISCOVERY_DISCOVERY_H

#include "discovery/apis/sd.h"
#include "discovery/kubernetes/sd.h"
#include "discovery/sources/dns_sd.h"
#include "discovery/sources/file_sd.h"
#include "discovery/sources/http_sd.h"
#include "discovery/sources/source.h"

/* By default a job keeps its last set this long while new sources have not answered. */
#define DISCOVERY_ANSWER_NS (10 * INT64_C(1000000000))

/* The sources of a job's targets. */
struct sd_configs {
	struct target_group *statics; /* static_configs */
	size_t statics_n;
	struct source_configs sources; /* all others */
};

/* clang-format off */
#define SD_SOURCE_FIELD(name, at, decode, schema, help) \
	{ name, YAML_CUSTOM, (at) + offsetof(struct sd_configs, sources), schema, decode, help, 0, \
		.takes = "list of", .home = &sd_configs_schema }
/*
 * The list of all mechanisms: a new one is a row here, below the #include of its header.
 * Rows of a yaml_field table for a schema that holds a struct sd_configs at offset `at`.
 */
#define SD_CONFIG_FIELDS(at) \
	{ "static_configs", YAML_CUSTOM, (at), &target_group_schema, sd_static_decode, \
		"Targets that are written here.", 0, .takes = "list of", .home = &sd_configs_schema }, \
	SD_SOURCE_FIELD("file_sd_configs", at, file_sd_decode, &file_sd_schema, \
		"Targets from files."), \
	SD_SOURCE_FIELD("dns_sd_configs", at, dns_sd_decode, &dns_sd_schema, \
		"Targets from DNS records."), \
	SD_SOURCE_FIELD("http_sd_configs", at, http_sd_decode, &http_sd_schema, \
		"Targets from HTTP servers."), \
	SD_SOURCE_FIELD("kubernetes_sd_configs", at, kubernetes_sd_decode, &kubernetes_sd_schema, \
		"Objects of a Kubernetes cluster."), \
	SD_SOURCE_FIELD("consul_sd_configs", at, consul_sd_decode, &consul_sd_schema, \
		"Services of Consul."), \
	SD_SOURCE_FIELD("docker_sd_configs", at, docker_sd_decode, &docker_sd_schema, \
		"Containers of Docker."), \
	SD_SOURCE_FIELD("ec2_sd_configs", at, ec2_sd_decode, &ec2_sd_schema, "Instances of AWS."), \
	SD_SOURCE_FIELD("nomad_sd_configs", at, nomad_sd_decode, &nomad_sd_schema, \
		"Services of Nomad.")
/* clang-format on */
extern const struct yaml_schema sd_configs_schema; /* these fields and nothing else */

enum err_code sd_static_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err);
/* For `check config`: every file that a source names can be read. */
MUST_CHECK enum err_code sd_check_files(const struct sd_configs *c, struct err *err);

struct sd_job {
	struct str name;
	const struct sd_configs *sd; /* read during discovery_apply only */
	void *user; /* handed to update */
};

/* A job's whole set, at each apply and after each change. The callee takes its own reference. */
typedef void (*discovery_update_fn)(void *ctx, void *user, struct groups *groups);

struct discovery;

struct discovery_options {
	discovery_update_fn update;
	void *ctx;
	const char *dns_servers; /* as source_env's; lives as long as the discovery */
	int64_t answer_ns; /* 0: DISCOVERY_ANSWER_NS */
};

MUST_CHECK enum err_code discovery_open(
	const struct discovery_options *o, struct discovery **out, struct err *err);
/*
 * Replaces all jobs. Each is delivered once before this returns: files were read by then, but the
 * network is not waited for. A job that also was in the former configuration (by name) keeps its
 * last set until all its new sources have answered, for at most answer_ns.
 * A file that was read before and is broken now keeps its last groups. An error leaves the jobs as
 * they were and delivers nothing.
 */
MUST_CHECK enum err_code discovery_apply(
	struct discovery *d, const struct sd_job *jobs, size_t n, struct err *err);
void discovery_close(struct discovery *d); /* no update after this; NULL is fine */

#endif
