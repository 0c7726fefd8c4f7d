#include "scrape/config/foreign.h"

#define HINT YAML_FOREIGN_HINT
#define HARMLESS YAML_FOREIGN_HARMLESS
#define EMPTY YAML_FOREIGN_EMPTY
#define SECTION YAML_FOREIGN_SECTION

#define FORMAT "profiles come in pprof's format"
#define HISTOGRAMS "profiles have no histograms"
#define NAMES "profiles have no metric names"
#define PYROSCOPE "it is Pyroscope's; `epitool convert pyroscope FILE` writes what fits here"
#define PROFILE "write it without \"profile.\" below pprof_config"

/* clang-format off */
const struct yaml_foreign config_foreign[] = {
	/* Prometheus */
	{ "remote_write", SECTION,
		"nothing is sent elsewhere; a Prometheus can scrape recorded costs at /metrics/recorded" },
	{ "remote_read", SECTION, "profiles are read from this server's own database" },
	{ "storage", SECTION, "the flags --storage.* say how profiles are stored" },
	{ "tracing", SECTION, "this server sends no traces" },
	{ "otlp", SECTION, "push_config says what becomes of attributes that are sent" },
	{ "runtime", SECTION, "there is no garbage collector to set" },
	/* Parca */
	{ "object_storage", HINT,
		"write `bucket` for an object store; without it profiles are on the disk, "
		"in --storage.tsdb.path" },
	/* Pyroscope: the old server, the new one */
	{ "scrape-configs", HINT, PYROSCOPE },
	{ "log-level", HINT, "write the flag --log.level" },
	{ "storage-path", HINT, "write the flag --storage.tsdb.path" },
	{ "api-bind-addr", HINT, "write the flag --web.listen-address" },
	{ "retention", HINT, "write the flag --storage.tsdb.retention.time" },
	{ "server", HINT, "write the flag --web.listen-address, and --web.config.file for TLS" },
	{ "pyroscopedb", HINT, "write the flag --storage.tsdb.path" },
	{ "limits", HINT, PYROSCOPE },
	{ "distributor", HINT, PYROSCOPE },
	{ "ingester", HINT, PYROSCOPE },
	{ "querier", HINT, PYROSCOPE },
	{ "memberlist", HINT, PYROSCOPE },
	{ "self_profiling", HINT, PYROSCOPE },
	{ NULL },
};

const struct yaml_foreign global_foreign[] = {
	{ "query_log_file", HARMLESS, "queries are not logged to a file" },
	{ "scrape_failure_log_file", HARMLESS, "the page Targets shows scrapes that failed, and why" },
	{ "scrape_protocols", HARMLESS, FORMAT },
	{ "scrape_classic_histograms", HARMLESS, HISTOGRAMS },
	{ "always_scrape_classic_histograms", HARMLESS, HISTOGRAMS },
	{ "scrape_native_histograms", HARMLESS, HISTOGRAMS },
	{ "convert_classic_histograms_to_nhcb", HARMLESS, HISTOGRAMS },
	{ "metric_name_validation_scheme", HARMLESS, NAMES },
	{ "metric_name_escaping_scheme", HARMLESS, NAMES },
	{ "extra_scrape_metrics", HARMLESS, "/api/v1/targets says how long each scrape took" },
	{ NULL },
};

const struct yaml_foreign job_foreign[] = {
	/* Prometheus */
	{ "metrics_path", HARMLESS, "each profile has its own path, below profiling_config" },
	{ "honor_timestamps", HARMLESS, "a profile stands at the end of its scrape" },
	{ "track_timestamps_staleness", HARMLESS, "profiles have no staleness markers" },
	{ "scrape_protocols", HARMLESS, FORMAT },
	{ "fallback_scrape_protocol", HARMLESS, FORMAT },
	{ "scrape_classic_histograms", HARMLESS, HISTOGRAMS },
	{ "always_scrape_classic_histograms", HARMLESS, HISTOGRAMS },
	{ "scrape_native_histograms", HARMLESS, HISTOGRAMS },
	{ "convert_classic_histograms_to_nhcb", HARMLESS, HISTOGRAMS },
	{ "native_histogram_bucket_limit", HARMLESS, HISTOGRAMS },
	{ "native_histogram_min_bucket_factor", HARMLESS, HISTOGRAMS },
	{ "metric_name_validation_scheme", HARMLESS, NAMES },
	{ "metric_name_escaping_scheme", HARMLESS, NAMES },
	{ "enable_compression", HARMLESS, "profiles are compressed by nature" },
	{ "scrape_failure_log_file", HARMLESS, "the page Targets shows scrapes that failed, and why" },
	{ "extra_scrape_metrics", HARMLESS, "/api/v1/targets says how long each scrape took" },
	{ "metric_relabel_configs", EMPTY,
		"samples of metrics are not relabelled; relabel_configs changes the labels of targets" },
	/* Parca */
	{ "normalized_addresses", HARMLESS, "a profile's mappings say how its addresses are meant" },
	/* Pyroscope */
	{ "job-name", HINT, PYROSCOPE },
	{ "enabled-profiles", HINT, PYROSCOPE },
	{ "scrape-interval", HINT, PYROSCOPE },
	{ "static-configs", HINT, PYROSCOPE },
	{ "relabel-configs", HINT, PYROSCOPE },
	/* Alloy */
	{ "forward_to", HINT, "profiles are stored by this server" },
	{ "targets", HINT, "write static_configs: [{targets: [...]}]" },
	{ "delta_profiling_duration", HINT,
		"write profiling_config: {pprof_config: {process_cpu: {seconds: N}}}" },
	{ NULL },
};

const struct yaml_foreign profiling_foreign[] = {
	{ "profile.process_cpu", HINT, PROFILE },
	{ "profile.memory", HINT, PROFILE },
	{ "profile.block", HINT, PROFILE },
	{ "profile.mutex", HINT, PROFILE },
	{ "profile.goroutine", HINT, PROFILE },
	{ "profile.fgprof", HINT, PROFILE },
	{ "profile.custom", HINT, "write it below pprof_config, under its name" },
	{ NULL },
};

const struct yaml_foreign profile_foreign[] = {
	{ "keep_sample_type", HARMLESS, "all sample types are kept, a query chooses" },
	{ NULL },
};
/* clang-format on */
