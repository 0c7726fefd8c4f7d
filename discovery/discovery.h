/*
 * Discovery: keeps the target groups of every job up to date and hands over what changed.
 *
 * Providers: static (the configuration itself) and file (JSON and YAML documents, noticed through
 * inotify and read again every refresh_interval). A provider that fails keeps its last groups, logs
 * why, and counts it in epimetheus_discovery_failures_total.
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

#include "discovery/groups.h"

#define FILE_SD_FILE_BYTES_MAX (32u << 20)
#define FILE_SD_FILES_MAX 4096u /* matched by one job */
#define FILE_SD_REFRESH_DEFAULT_NS (5 * INT64_C(60) * 1000000000)

struct file_sd_config {
	struct str *files; /* paths or patterns, with the configuration's directory in front */
	size_t files_n;
	int64_t refresh_interval_ns;
};

/* What a job says about where its targets come from. */
struct sd_configs {
	struct target_group *statics; /* static_configs */
	size_t statics_n;
	struct file_sd_config *files; /* file_sd_configs */
	size_t files_n;
};

/* Rows of a yaml_field table for a schema that holds a struct sd_configs at offset `at`. */
#define SD_CONFIG_FIELDS(at) \
	{ "static_configs", YAML_CUSTOM, (at), NULL, sd_static_decode, "targets written here", 0 }, \
	{ "file_sd_configs", YAML_CUSTOM, (at), NULL, sd_file_decode, "targets from files", 0 }

enum err_code sd_static_decode(struct yaml_ctx *ctx, const struct yaml_node *n, void *field,
	struct err *err);
enum err_code sd_file_decode(struct yaml_ctx *ctx, const struct yaml_node *n, void *field,
	struct err *err);
/* That files without a pattern exist and parse; for `check config`. */
MUST_CHECK enum err_code sd_check_files(const struct sd_configs *c, struct err *err);

struct sd_job {
	struct str name;
	const struct sd_configs *sd; /* read during discovery_apply only */
	void *user;                  /* handed to update */
};

/* A job's whole set: at each apply, and whenever it changed. The callee takes its own reference. */
typedef void (*discovery_update_fn)(void *ctx, void *user, struct groups *groups);

struct discovery;

struct discovery_options {
	discovery_update_fn update;
	void *ctx;
};

MUST_CHECK enum err_code discovery_open(const struct discovery_options *o, struct discovery **out,
	struct err *err);
/*
 * From now on these jobs. All of them are read and delivered once before this returns; a file that
 * is broken now, but was read by a job of the same name before, gives what it gave. Any error
 * leaves the jobs as they were, and nothing was delivered.
 */
MUST_CHECK enum err_code discovery_apply(struct discovery *d, const struct sd_job *jobs, size_t n,
	struct err *err);
void discovery_close(struct discovery *d); /* no update after this; NULL is fine */

#endif
