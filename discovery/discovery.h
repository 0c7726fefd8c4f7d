/*
 * Discovery: keeps the target groups of every job up to date and hands over what changed.
 *
 * A job's targets are static ones (the configuration itself) and those of its sources
 * (discovery/sources/source.h), which jobs with equal entries share, and which a new configuration
 * that holds the same entry takes over as they are. A source that fails keeps its last groups.
 *
 * Changes are gathered: the first after a quiet second is delivered within 50 ms, a stream of them
 * at most once a second per job.
 *
 * Units:     nanoseconds.
 * Errors:    of the configuration: ERR_INVALID at its place in the file.
 * Ownership: discovery_apply copies what it needs of the jobs; `user` must stay valid until the
 *            next successful discovery_apply, or discovery_close.
 * Threads:   one thread of its own; `update` is called on it. open, apply and close from one other
 *            thread.
 */
#ifndef DISCOVERY_DISCOVERY_H
#define DISCOVERY_DISCOVERY_H

#include "discovery/kubernetes/sd.h"
#include "discovery/sources/dns_sd.h"
#include "discovery/sources/file_sd.h"
#include "discovery/sources/http_sd.h"
#include "discovery/sources/source.h"

/* How long a job of the former configuration waits for answers of new sources by default. */
#define DISCOVERY_ANSWER_NS (10 * INT64_C(1000000000))

/* What a job says about where its targets come from. */
struct sd_configs {
	struct target_group *statics; /* static_configs */
	size_t statics_n;
	struct source_configs sources; /* all others */
};

#define SD_SOURCE_FIELD(name, at, decode, help) \
	{ \
		name, YAML_CUSTOM, (at) + offsetof(struct sd_configs, sources), NULL, decode, help, 0 \
	}
/* Rows of a yaml_field table for a schema that holds a struct sd_configs at offset `at`. */
#define SD_CONFIG_FIELDS(at) \
	{ "static_configs", YAML_CUSTOM, (at), NULL, sd_static_decode, "targets written here", 0 }, \
		SD_SOURCE_FIELD("file_sd_configs", at, file_sd_decode, "targets from files"), \
		SD_SOURCE_FIELD("dns_sd_configs", at, dns_sd_decode, "targets from DNS records"), \
		SD_SOURCE_FIELD("http_sd_configs", at, http_sd_decode, "targets from HTTP servers"), \
		SD_SOURCE_FIELD("kubernetes_sd_configs", at, kubernetes_sd_decode, "targets of a cluster")

enum err_code sd_static_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err);
/* That the files which sources name are there and can be read; for `check config`. */
MUST_CHECK enum err_code sd_check_files(const struct sd_configs *c, struct err *err);

struct sd_job {
	struct str name;
	const struct sd_configs *sd; /* read during discovery_apply only */
	void *user; /* handed to update */
};

/* A job's whole set: at each apply, and whenever it changed. The callee takes its own reference. */
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
 * From now on these jobs. Each is delivered once before this returns, with what its sources know by
 * then: files were read, the network is not waited for. Where a new source has not answered, a job
 * that goes on (by its name) keeps the set it had until all have, at most answer_ns.
 * A file that is broken now, but was read before, gives what it gave. Any error leaves the jobs as
 * they were, and nothing was delivered.
 */
MUST_CHECK enum err_code discovery_apply(
	struct discovery *d, const struct sd_job *jobs, size_t n, struct err *err);
void discovery_close(struct discovery *d); /* no update after this; NULL is fine */

#endif
