/*
 * Configuration: the server's file, decoded. Prometheus's format plus Parca's profiling_config per
 * job.
 *
 * A configuration is immutable once loaded, and counted. A user that needs it for longer than a
 * call takes a reference, so a reload frees the old one when its last scrape has ended.
 *
 * Units:     nanoseconds, bytes.
 * Errors:    ERR_INVALID "FILE:LINE:COLUMN: message", in Prometheus's words if it has any;
 *            ERR_NOT_FOUND and ERR_IO for files; ERR_LIMIT.
 * Ownership: config_load_* hands one reference to the caller; config_ref and config_unref pair.
 * Threads:   immutable; the count is atomic.
 * Source:    Prometheus's configuration reference; Parca's profiling_config.
 */
#ifndef SCRAPE_CONFIG_CONFIG_H
#define SCRAPE_CONFIG_CONFIG_H

#include "base/net/http_client.h"
#include "base/yaml/problems.h"
#include "discovery/alerting.h"
#include "discovery/discovery.h"
#include "discovery/relabel.h"
#include "proto/kinds.h"
#include "scrape/config/bucket_section.h"
#include "scrape/config/debuginfod_config.h"
#include "scrape/config/push_config.h"
#include "scrape/config/source_links.h"

#define CONFIG_INTERVAL_DEFAULT_NS (60 * INT64_C(1000000000))
#define CONFIG_TIMEOUT_DEFAULT_NS (10 * INT64_C(1000000000))
#define CONFIG_BODY_SIZE_DEFAULT (UINT64_C(16) << 20)
#define CONFIG_FILES_MAX 1000u /* of scrape_config_files; patterns of rule_files */
#define CONFIG_PROFILES_MAX 64u /* of one job */
#define CONFIG_JOBS_MAX 100000u
/* Labels that name a target's socket: as in Prometheus's code, and as in its pull request. */
#define JOB_UNIX_LABEL "__unix_socket__"
#define JOB_UNIX_LABEL_PROPOSED "__scrape_unix_socket__"
#define CONFIG_ARENA_BYTES_MAX (256u << 20)

struct global_config {
	int64_t scrape_interval_ns, scrape_timeout_ns;
	int64_t evaluation_interval_ns, rule_query_offset_ns; /* of rules; the offset's default is 0 */
	/* 0: none (body: CONFIG_BODY_SIZE_DEFAULT) */
	uint64_t body_size_limit, sample_limit, target_limit;
	uint64_t label_limit, label_name_length_limit, label_value_length_limit, keep_dropped_targets;
	struct labels external_labels; /* $v, ${v} expanded from the environment */
};

struct param_config { /* one name of `params`, with its values in order */
	struct str name;
	struct str *values;
	size_t values_n;
};

struct params_config {
	struct param_config *v; /* sorted by name */
	size_t n;
};

/* One profile of a job: defaults and the file merged field by field. */
struct profile_config {
	struct str name; /* becomes __name__ */
	bool enabled;
	struct str path; /* becomes __profile_path__, after path_prefix */
	bool delta; /* what it answers is differences; it is asked for `seconds` */
	int64_t seconds; /* 0: interval - 1 s */
	int64_t interval_ns, timeout_ns; /* 0: the job's */
	int64_t interval_least_ns; /* where interval_ns is 0: the job's, but no less; it is costly */
	bool optional; /* targets without this profile do not fail */
	struct str sample_type; /* that an answer has, or it is another profile; "": any */
	struct params_config params; /* replace the job's of the same name */
	struct kind_override *kinds;
	size_t kinds_n;
	const struct yaml_node *at; /* in the file, for messages; NULL: not in it */
};

/*
 * godeltaprof's endpoints, by the end of their path: each answer holds what was added since they
 * were asked before. Gives the name of the endpoint beside it that counts since the process began;
 * NULL: it is none of them.
 */
const char *profile_path_since_last(struct str path);

struct scrape_config {
	struct str job_name;
	const struct yaml_node *at; /* in the file, for messages */
	int64_t scrape_interval_ns, scrape_timeout_ns; /* the global ones filled in */
	struct str scheme;
	struct params_config params;
	bool honor_labels;
	uint64_t body_size_limit, sample_limit, target_limit;
	uint64_t label_limit, label_name_length_limit, label_value_length_limit, keep_dropped_targets;
	struct str path_prefix;
	struct str symbol_path; /* behind path_prefix; "": `symbol` beside each profile */
	struct profile_config *profiles; /* sorted by name; disabled ones too */
	size_t profiles_n;
	struct str *instance_labels; /* differ between replicas; rollups sum over them */
	size_t instance_labels_n;
	struct http_config http;
	struct sd_configs sd;
	struct relabel_rules relabel;
};

/* Between scrapes of a profile: its own, else the job's, but not less than it may cost. */
int64_t profile_interval_ns(const struct scrape_config *job, const struct profile_config *p);

struct config {
	atomic_uint refs;
	struct arena arena;
	struct str path; /* of the file; "" for the built-in one */
	struct str text; /* as read */
	struct yaml_node *root;
	struct global_config global;
	struct scrape_config *scrape; /* jobs of scrape_config_files come last */
	size_t scrape_n, scrape_cap;
	struct str *rule_files; /* patterns, with the directory of the file */
	size_t rule_files_n;
	struct alerting_config alerting;
	struct push_config push;
	struct debuginfod_config debuginfod;
	struct source_links source_links;
	struct bucket_section bucket;
};

struct config_reading {
	bool ignore_foreign; /* sections of Prometheus that are not ours are warnings */
	bool syntax_only; /* scrape_config_files are not read */
};
/*
 * Loads, with all errors and warnings, sorted by their places; *err is one of the errors. problems:
 * of the caller, initialized.
 */
MUST_CHECK enum err_code config_read_file(const char *path, const struct config_reading *how,
	struct yaml_problems *problems, struct config **out, struct err *err);
MUST_CHECK enum err_code config_read_text(const char *name, struct str dir, struct str text,
	const struct config_reading *how, struct yaml_problems *problems, struct config **out,
	struct err *err);
/* The first error in the file's order, in one message with the number of the others. Gives rc. */
enum err_code config_first_error(
	const struct yaml_problems *problems, enum err_code rc, struct err *err);

/* The same without warnings, and with that message. */
MUST_CHECK enum err_code config_load_file(const char *path, struct config **out, struct err *err);
/* name: of the file in messages; dir: what paths are relative to. */
MUST_CHECK enum err_code config_load_text(
	const char *name, struct str dir, struct str text, struct config **out, struct err *err);
struct config *config_ref(struct config *c);
void config_unref(struct config *c); /* NULL is fine */

/* As YAML, with secrets as <secret>. */
void config_print(struct buf *out, const struct config *c);

/*
 * The configuration without a file: the server scrapes itself. scheme: "http" or "https"; address:
 * its host:port as a client reaches it; path_prefix: its route prefix, or "".
 */
void config_builtin_text(
	struct buf *out, const char *scheme, const char *address, const char *path_prefix);

/*
 * For `check config`: every file that it names (credentials, certificates, targets) can be read.
 * What cannot be read is added to the problems (NULL: the first of all ends it), of each job the
 * first of its own and the first of its discovery. Rule files are checked by promql/rules.
 */
MUST_CHECK enum err_code config_check_files(
	const struct config *c, struct yaml_problems *problems, struct err *err);

#endif
