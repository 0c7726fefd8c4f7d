/*
 * The command line of the server as a table, in Prometheus's names.
 */
#ifndef CMD_EPIMETHEUS_OPTIONS_H
#define CMD_EPIMETHEUS_OPTIONS_H

#include "base/log.h"
#include "base/self/flags.h"
#include "cmd/shared/completion_script.h"
#include "scrape/targets/shard.h"

enum server_mode { MODE_SERVER, MODE_QUERY, MODE_COMPACT };

struct options {
	const char *config_file;
	bool ignore_foreign; /* sections of the configuration that are Prometheus's alone */
	const char *listen_address, *otlp_grpc_listen_address, *external_url, *route_prefix,
		*web_config_file, *cors_origin;
	uint64_t connections_max;
	struct flag_list allowed_hosts;
	int64_t read_timeout_ns, body_timeout_ns;
	uint64_t bodies_bytes_max, address_bodies_bytes_max, address_checks_max;
	bool enable_lifecycle, enable_admin_api, enable_ingest, enable_files, enable_rules, enable_mcp;
	const char *data_dir;
	int64_t retention_ns, raw_retention_ns, window_ns, block_max_ns, too_old_ns;
	uint64_t retention_bytes, free_bytes_reserve, symbols_bytes, cache_bytes;
	uint64_t debuginfo_bytes_max, debuginfo_file_bytes_max;
	uint64_t files_bytes_max; /* of profiles in files that people keep */
	int64_t files_time_max_ns;
	uint64_t series_max, job_series_max, nodes_max, strings_max, label_sets_max,
		partition_bytes_max;
	int64_t query_timeout_ns, lookback_ns;
	uint64_t concurrency_max, query_threads_max, samples_max, query_memory_max, query_memory_total;
	int64_t outage_tolerance_ns, grace_period_ns, resend_delay_ns;
	uint64_t rule_workers, notification_queue_max;
	const char *mode_name;
	enum server_mode mode;
	const char *shard_name; /* "": the host's name, which is none for a shard */
	uint64_t shard_total;
	struct shard shard;
	bool shard_join; /* its targets follow the assignment of the bucket; `shard` counts for nothing
					  */
	const char *shard_address; /* where others reach it; "": server.c finds one */
	const char *shard_ca_file; /* of other shards' certificates; "": the system's */
	int64_t lease_ns; /* of the shard's name; 0: as tsdb/cluster/lease.h says */
	/* of the bucket, if the configuration has one */
	int64_t segment_interval_ns, delete_delay_ns, poll_interval_ns;
	int64_t local_retention_ns; /* 0: local blocks go when they are in the bucket */
	uint64_t bucket_cache_bytes;
	const char *bucket_cache_path;
	const char *log_level, *log_format;
	bool sandbox;
	bool licenses;
	const char *completion_script; /* "": none is asked for */
	enum completion_shell completion_shell; /* out */

	const struct ui_asset *book; /* set by main, which alone is linked with it; NULL: none */
	size_t book_n;

	struct flag *flags; /* the table, filled in */
	size_t flags_n;
	bool help, version;
};

MUST_CHECK enum err_code options_parse(struct options *o, int argc, char **argv, struct err *err);
void options_print_help(struct buf *out, const struct options *o);
void options_print_completion(struct buf *out, const struct options *o);
/* True if --config.file was given. */
bool options_has_config_file(const struct options *o);

#endif
