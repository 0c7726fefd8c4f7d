#include "cmd/epimetheus/options.h"

#include "base/clock.h"
#include "base/self/machine_memory.h"
#include "cmd/epimetheus/modes.h"

#define FILES_TIME_MAX_NS (365 * NS_PER_DAY)
#define QUERY_MEMORY_TOTAL_MIN (16u << 20) /* less answers nothing */
#define QUERY_MEMORY_TOTAL_FREE_MAX (1u << 30)

static struct options opt;

/* clang-format off */
static struct flag table[] = {
	{ "config.file", FLAG_STRING, &opt.config_file, "epimetheus.yml", "Configuration file." },
	{ "config.ignore-foreign", FLAG_BOOL, &opt.ignore_foreign, NULL,
		"Pass over sections of Prometheus's configuration that do nothing here (remote_write, "
		"storage ...), with a warning. Without it they are errors." },
	{ "mode", FLAG_STRING, &opt.mode_name, "server",
		"server; query: no data, answers for all shards of the bucket; compact: retention in the "
		"bucket for shards that are gone (blocks are joined by the shard that made them)." },
	{ "shard.name", FLAG_STRING, &opt.shard_name, "",
		"Name of this server in the bucket, the same after each start, ending with its number if "
		"there are several. Default: the host's name." },
	{ "shard.total", FLAG_UINT, &opt.shard_total, "1",
		"How many servers share the targets; this one scrapes those of its number, from 0 on." },
	{ "shard.join", FLAG_BOOL, &opt.shard_join, NULL,
		"Share the targets with all shards of the bucket that join, however many there are. With "
		"--shard.total=N, once, for N servers that shared them by fixed numbers before." },
	{ "shard.address", FLAG_STRING, &opt.shard_address, "",
		"URL under which other shards reach this one; with --shard.join. "
		"Default: the host's name and the port of --web.listen-address." },
	{ "shard.lease", FLAG_DURATION, &opt.lease_ns, NULL,
		"How long this server may be cut off from the bucket until another one may take its name, "
		"and until it acknowledges no pushes; at least two segment intervals, at most 30d. "
		"Default: three segment intervals, at least 1m." },
	{ "shard.ca-file", FLAG_STRING, &opt.shard_ca_file, "",
		"File with certificates of the authorities that other shards' https addresses are "
		"verified by. Default: the system's." },
	{ "web.listen-address", FLAG_STRING, &opt.listen_address, "0.0.0.0:7272",
		"Address to listen on for the page and the API." },
	{ "web.otlp-grpc-listen-address", FLAG_STRING, &opt.otlp_grpc_listen_address, "",
		"Address to listen on for OTLP profiles over gRPC, 4317 by convention; needs "
		"--web.enable-ingest. Default: off." },
	{ "web.external-url", FLAG_STRING, &opt.external_url, "",
		"URL under which this server is reached from outside, for links back to it." },
	{ "web.route-prefix", FLAG_STRING, &opt.route_prefix, NULL,
		"Prefix of all paths; default: the path of --web.external-url." },
	{ "web.config.file", FLAG_STRING, &opt.web_config_file, "",
		"File with TLS settings and users." },
	{ "web.enable-lifecycle", FLAG_BOOL, &opt.enable_lifecycle, NULL,
		"Serve /-/reload and /-/quit." },
	{ "web.enable-admin-api", FLAG_BOOL, &opt.enable_admin_api, NULL,
		"Serve /api/v1/admin and /api/v1/targets/profile." },
	{ "web.enable-ingest", FLAG_BOOL, &opt.enable_ingest, NULL,
		"Take what programs send: profiles (POST /api/v1/ingest, OTLP, the protocols of Pyroscope "
		"and profefe) and symbols. A query node takes symbols alone." },
	{ "web.enable-files", FLAG_BOOL, &opt.enable_files, NULL,
		"Keep files that people drop on the page, if they ask for it, until they expire. With a "
		"bucket all members show them." },
	{ "web.enable-rules", FLAG_BOOL, &opt.enable_rules, NULL,
		"Save rules of the page into a rule file below the data directory. Needs users in "
		"--web.config.file; not in a cluster." },
	{ "web.enable-mcp", FLAG_BOOL, &opt.enable_mcp, NULL,
		"Answer assistants at /mcp by the Model Context Protocol; they read what their user may." },
	{ "web.cors.origin", FLAG_STRING, &opt.cors_origin, "",
		"Regular expression for origins whose pages may read the API, anchored; default: none." },
	{ "web.allowed-host", FLAG_LIST, &opt.allowed_hosts, NULL,
		"A name of this server's, HOST or HOST:PORT; requests to other names are refused. "
		"Addresses, localhost and the external URL's host always count. Default: any name." },
	{ "web.max-connections", FLAG_UINT, &opt.connections_max, "512", "Connections at once." },
	{ "web.read-timeout", FLAG_DURATION, &opt.read_timeout_ns, "5m",
		"Time for the head of a request to come, and for an idle connection." },
	{ "web.body-timeout", FLAG_DURATION, &opt.body_timeout_ns, "1m",
		"Time for the body of a request to come whole; of an upload of symbols each 256 KiB." },
	{ "web.max-body-memory", FLAG_BYTES, &opt.bodies_bytes_max, "256MiB",
		"Memory for bodies that are being received, of all requests together." },
	{ "web.max-body-memory-per-address", FLAG_BYTES, &opt.address_bodies_bytes_max, "64MiB",
		"The same for one client address; more if many senders share one (NAT, a "
		"proxy)." },
	{ "web.max-password-checks-per-address", FLAG_UINT, &opt.address_checks_max, "4",
		"Passwords of one client address that may wait to be verified; more if many senders share "
		"one." },
	{ "storage.tsdb.path", FLAG_STRING, &opt.data_dir, "data/", "Directory of the database." },
	{ "storage.tsdb.retention.time", FLAG_DURATION, &opt.retention_ns, "15d",
		"How long profiles are kept; 0: for ever." },
	{ "storage.tsdb.retention.size", FLAG_BYTES, &opt.retention_bytes, NULL,
		"Bytes the database may take, a unit is required (10GB); default: no limit." },
	{ "storage.tsdb.retention.raw-time", FLAG_DURATION, &opt.raw_retention_ns, "0s",
		"How long single profiles are kept; 0: as long as their sums by hour and day." },
	{ "storage.tsdb.window", FLAG_DURATION, &opt.window_ns, "2h",
		"Length of one head window, and of the shortest block." },
	{ "storage.tsdb.max-block-duration", FLAG_DURATION, &opt.block_max_ns, "0s",
		"Length of the longest block; 0: a tenth of the retention, at most 31d." },
	{ "storage.tsdb.out-of-order-time-window", FLAG_DURATION, &opt.too_old_ns, "1h",
		"How long before the current head window a late profile may be." },
	{ "storage.tsdb.free-reserve", FLAG_BYTES, &opt.free_bytes_reserve, "256MiB",
		"Free disk space below which nothing more is taken in." },
	{ "storage.tsdb.symbol-memory", FLAG_BYTES, &opt.symbols_bytes, "128MiB",
		"Memory for symbols of all jobs; beyond it unused ones are dropped." },
	{ "storage.tsdb.page-cache", FLAG_BYTES, &opt.cache_bytes, "16MiB",
		"Memory for pages of stores and blocks." },
	{ "storage.tsdb.max-series", FLAG_UINT, &opt.series_max, "1000000", "Series in the head." },
	{ "storage.tsdb.max-series-per-job", FLAG_UINT, &opt.job_series_max, NULL,
		"Series in the head of one job, the numeric ones that each scrape writes too; more are "
		"refused, and others go on. 0: no limit by job. "
		"Default: half of --storage.tsdb.max-series." },
	{ "storage.tsdb.max-job-stacks", FLAG_UINT, &opt.nodes_max, "4194304",
		"Stack nodes, and locations, of one job." },
	{ "storage.tsdb.max-job-strings", FLAG_UINT, &opt.strings_max, "1048576",
		"Strings, and functions, of one job." },
	{ "storage.tsdb.max-job-label-sets", FLAG_UINT, &opt.label_sets_max, "65536",
		"Sets of sample labels of one job; more fold into __overflow__." },
	{ "storage.tsdb.max-job-symbol-memory", FLAG_BYTES, &opt.partition_bytes_max, "512MiB",
		"Memory for symbols of one job." },
	{ "storage.local-retention", FLAG_DURATION, &opt.local_retention_ns, "0s",
		"How long blocks that are in the bucket stay on the disk too; 0: until they are there." },
	{ "storage.bucket.segment-interval", FLAG_DURATION, &opt.segment_interval_ns, "30s",
		"How often the bucket gets the newest profiles." },
	{ "storage.bucket.poll-interval", FLAG_DURATION, &opt.poll_interval_ns, "10s",
		"How often the bucket is asked for news of shards." },
	{ "storage.bucket.delete-delay", FLAG_DURATION, &opt.delete_delay_ns, "15m",
		"How long objects stay in the bucket that nothing names any more, for those who read." },
	{ "storage.bucket.cache-size", FLAG_BYTES, &opt.bucket_cache_bytes, "10GB",
		"Bytes on the disk for parts of objects that were read." },
	{ "storage.bucket.cache-path", FLAG_STRING, &opt.bucket_cache_path, "",
		"Directory for them. Default: bucket-cache in the directory of the database." },
	{ "storage.symbols.max-size", FLAG_BYTES, &opt.debuginfo_bytes_max, "5GB",
		"Bytes that symbols of native code may take; the least recently used go. 0: no limit." },
	{ "storage.symbols.max-file-size", FLAG_BYTES, &opt.debuginfo_file_bytes_max, "1GiB",
		"Bytes of one binary or file of debug data that symbols are taken from." },
	{ "storage.files.max-size", FLAG_BYTES, &opt.files_bytes_max, "1GiB",
		"Bytes of all files that people keep, of all members of a cluster together; a file beyond "
		"it is refused." },
	{ "storage.files.max-time", FLAG_DURATION, &opt.files_time_max_ns, "30d",
		"How long such a file may be kept." },
	{ "query.timeout", FLAG_DURATION, &opt.query_timeout_ns, "2m", "Time a query may take." },
	{ "query.max-concurrency", FLAG_UINT, &opt.concurrency_max, "20", "Queries at once." },
	{ "query.max-threads", FLAG_UINT, &opt.query_threads_max, "0",
		"Threads that work on one query; 0: as many as cores." },
	{ "query.max-samples", FLAG_UINT, &opt.samples_max, "2000000000",
		"Samples one query may add up." },
	{ "query.max-memory", FLAG_BYTES, &opt.query_memory_max, "1GiB", "Memory one query may use." },
	{ "query.max-memory-total", FLAG_BYTES, &opt.query_memory_total, NULL,
		"Memory all queries may use together, rules' too; beyond it they wait, then fail. "
		"Default: a quarter of the cgroup's limit; without one a quarter of the machine's memory, "
		"at most 1GiB." },
	{ "query.lookback-delta", FLAG_DURATION, &opt.lookback_ns, "5m",
		"How far back the latest profile of a series is looked for." },
	{ "rules.alert.for-outage-tolerance", FLAG_DURATION, &opt.outage_tolerance_ns, "1h",
		"How long a stop of the server may be for pending alerts to go on." },
	{ "rules.alert.for-grace-period", FLAG_DURATION, &opt.grace_period_ns, "10m",
		"Least time between a start and the firing of an alert that was pending; those with a "
		"shorter `for` begin again." },
	{ "rules.alert.resend-delay", FLAG_DURATION, &opt.resend_delay_ns, "1m",
		"How often an alert that fires is sent again." },
	{ "rules.max-concurrency", FLAG_UINT, &opt.rule_workers, "4",
		"Groups of rules evaluated at once." },
	{ "alertmanager.notification-queue-capacity", FLAG_UINT, &opt.notification_queue_max, "10000",
		"Alerts that may wait for one Alertmanager." },
	{ "security.sandbox", FLAG_BOOL, &opt.sandbox, "true",
		"Give up rights after start: writing outside the data directory, unused system calls." },
	{ "log.level", FLAG_STRING, &opt.log_level, "info", "debug, info, warn or error." },
	{ "log.format", FLAG_STRING, &opt.log_format, "logfmt", "logfmt or json." },
	{ "licenses", FLAG_BOOL, &opt.licenses, NULL, "Show the licences of the libraries linked in." },
	{ "completion-script", FLAG_STRING, &opt.completion_script, "",
		"Print a script that completes flags in a shell: bash, zsh or fish." },
};
/* clang-format on */

#define TABLE_N (sizeof(table) / sizeof(table[0]))

static bool options_is_set(const void *value)
{
	for (size_t i = 0; i < TABLE_N; i++)
		if (table[i].value == value)
			return table[i].set;
	return false;
}

enum err_code options_parse(struct options *o, int argc, char **argv, struct err *err)
{
	const char *args[1];
	size_t args_n;
	enum err_code rc;

	rc = flags_parse(table, TABLE_N, argc, argv, args, 1, &args_n, &opt.help, &opt.version, err);
	if (rc)
		return rc;
	if (args_n)
		return err_set(err, ERR_INVALID, "unexpected argument '%s'", args[0]);
	if (!opt.debuginfo_file_bytes_max)
		return err_set(err, ERR_INVALID, "--storage.symbols.max-file-size is 0");
	if (opt.files_time_max_ns < NS_PER_S || opt.files_time_max_ns > FILES_TIME_MAX_NS)
		return err_set(err, ERR_INVALID, "--storage.files.max-time is not 1s to 1y");
	/*
	 * Half: whatever one job does, all others together have the other half. A job of 10,000 targets
	 * with five profiles has 50,000 series of profiles and 200,000 of its scrapes, and still fits
	 * twice.
	 */
	if (!options_is_set(&opt.job_series_max))
		opt.job_series_max = opt.series_max - opt.series_max / 2;
	if (!opt.query_memory_total) {
		opt.query_memory_total = machine_memory_quarter("", QUERY_MEMORY_TOTAL_FREE_MAX);
		if (opt.query_memory_total < QUERY_MEMORY_TOTAL_MIN)
			opt.query_memory_total = QUERY_MEMORY_TOTAL_MIN;
	} else if (opt.query_memory_total < QUERY_MEMORY_TOTAL_MIN) {
		return err_set(err, ERR_INVALID, "--query.max-memory-total is less than %u bytes",
			QUERY_MEMORY_TOTAL_MIN);
	}
	if (opt.completion_script[0] &&
		(rc = completion_shell_parse(opt.completion_script, &opt.completion_shell, err)))
		return err_wrap(err, rc, "--completion-script");
	opt.flags = table;
	opt.flags_n = TABLE_N;
	if (!opt.help && !opt.version && (rc = modes_check(&opt, err)))
		return rc;
	*o = opt;
	return ERR_OK;
}

void options_print_help(struct buf *out, const struct options *o)
{
	(void)o;
	flags_print_help(out, "epimetheus",
		"Continuous profiling server: scrapes pprof targets, keeps every profile, answers "
		"queries.",
		table, TABLE_N);
}

void options_print_completion(struct buf *out, const struct options *o)
{
	struct completion c = { .out = out, .shell = o->completion_shell, .program = "epimetheus" };

	completion_begin(&c);
	completion_command(&c, "", "", table, TABLE_N);
	completion_end(&c);
}

bool options_has_config_file(const struct options *o)
{
	(void)o;
	return options_is_set(&opt.config_file);
}
