#include "cmd/epimetheus/modes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/quote.h"
#include "cmd/epimetheus/rules/rules_lease.h"
#include "cmd/shared/bucket_options.h"
#include "scrape/config/config.h"
#include "scrape/targets/url.h"
#include "tsdb/cluster/lease.h"

#define NAME_BYTES_MAX 63 /* MANIFEST_SHARD_BYTES_MAX */
#define CACHE_BYTES_MIN (1u << 20)
#define INTERVAL_MIN_NS NS_PER_S
#define MIB (UINT64_C(1) << 20)
#define BODY_BYTES (16 * MIB) /* of one request */
#define CONNECTIONS_MAX (UINT64_C(1) << 20)
#define QUERIES_MAX 65536
#define THREADS_MAX 1024
#define WINDOW_MIN_NS (2 * NS_PER_S)
#define WINDOW_MAX_NS (31 * NS_PER_DAY)

/* ---- modes ---- */

#define SERVER (1u << MODE_SERVER)
#define QUERY (1u << MODE_QUERY)
#define COMPACT (1u << MODE_COMPACT)

#define NO_INTAKE "it takes no profiles in"
#define NO_SHARD "only servers that scrape are shards"
#define NO_DATA "it has no data of its own"
#define NO_FILES "it keeps no files"
#define NO_RETENTION "it deletes nothing"

/* Flags that make sense in some modes only, and why not in the others. */
static const struct {
	const char *flag;
	unsigned modes;
	const char *why;
} limits[] = {
	{ "web.enable-ingest", SERVER | QUERY, NO_INTAKE }, /* a query node takes symbols */
	{ "web.enable-files", SERVER | QUERY, NO_FILES },
	{ "web.enable-rules", SERVER, "rules are added to rule_files of each query node" },
	{ "storage.files.max-size", SERVER | QUERY, NO_FILES },
	{ "storage.files.max-time", SERVER | QUERY, NO_FILES },
	{ "web.otlp-grpc-listen-address", SERVER, NO_INTAKE },
	{ "storage.tsdb.window", SERVER, NO_INTAKE },
	{ "storage.tsdb.out-of-order-time-window", SERVER, NO_INTAKE },
	{ "storage.tsdb.retention.time", SERVER | COMPACT, NO_RETENTION },
	{ "storage.tsdb.retention.size", SERVER | COMPACT, NO_RETENTION },
	{ "storage.tsdb.retention.raw-time", SERVER | COMPACT, NO_RETENTION },
	{ "storage.tsdb.max-block-duration", SERVER | COMPACT, "it joins no blocks" },
	{ "storage.local-retention", SERVER, NO_DATA },
	{ "storage.bucket.segment-interval", SERVER, NO_DATA },
	{ "storage.bucket.delete-delay", SERVER | COMPACT, NO_RETENTION },
	{ "storage.bucket.poll-interval", QUERY | COMPACT, "it follows no shards" },
	{ "shard.name", SERVER, NO_SHARD },
	{ "shard.total", SERVER, NO_SHARD },
	{ "shard.join", SERVER, NO_SHARD },
	{ "shard.address", SERVER, NO_SHARD },
	{ "shard.lease", SERVER, NO_SHARD },
	{ "shard.ca-file", SERVER, NO_SHARD },
	{ "rules.alert.for-outage-tolerance", SERVER | QUERY, "it evaluates no rules" },
	{ "rules.alert.for-grace-period", SERVER | QUERY, "it evaluates no rules" },
	{ "rules.alert.resend-delay", SERVER | QUERY, "it evaluates no rules" },
	{ "rules.max-concurrency", SERVER | QUERY, "it evaluates no rules" },
};

/* A refused request is answered with these texts. `epitool` and the page show them. */
static const struct web_elsewhere elsewhere[] = {
	[MODE_QUERY] = { "ingest is disabled on a query node: send to a shard", NULL, NULL,
		"a query node changes no data: send the request to the shard" },
	[MODE_COMPACT] = { "ingest is disabled with --mode=compact: send to a shard",
		"symbols are not taken with --mode=compact: send to a shard",
		"a server with --mode=compact keeps no files: keep it on a shard or a query node",
		"a server with --mode=compact has no data of its own: send the request to the shard" },
};

static const char *const mode_names[] = {
	[MODE_SERVER] = "server", [MODE_QUERY] = "query", [MODE_COMPACT] = "compact"
};

static const struct flag *modes_find_flag(const struct options *o, const char *name)
{
	for (size_t i = 0; i < o->flags_n; i++)
		if (!strcmp(o->flags[i].name, name))
			return &o->flags[i];
	return NULL;
}

static bool modes_is_set(const struct options *o, const char *name)
{
	const struct flag *f = modes_find_flag(o, name);

	return f && f->set;
}

static enum err_code modes_read_mode(struct options *o, struct err *err)
{
	for (size_t i = 0; i < sizeof(mode_names) / sizeof(mode_names[0]); i++)
		if (!strcmp(o->mode_name, mode_names[i])) {
			o->mode = (enum server_mode)i;
			return ERR_OK;
		}
	return err_set(err, ERR_INVALID, "--mode is %s; it may be server, query or compact",
		QUOTED(str_of(o->mode_name)));
}

static enum err_code modes_check_flags(const struct options *o, struct err *err)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (modes_is_set(o, limits[i].flag) && !(limits[i].modes & 1u << o->mode))
			return err_set(err, ERR_INVALID, "--%s makes no sense with --mode=%s: %s",
				limits[i].flag, o->mode_name, limits[i].why);
	return ERR_OK;
}

/* ---- shards ---- */

/* It is a part of keys, and of messages. */
static bool modes_is_name(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (!((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && !(c >= '0' && c <= '9') &&
			!(i && (c == '-' || c == '_' || c == '.')))
			return false;
	}
	return s.len && s.len <= NAME_BYTES_MAX;
}

/* The host's name, unless one is given. */
static enum err_code modes_read_name(struct options *o, struct err *err)
{
	static char host[NAME_BYTES_MAX + 2];

	if (!strcmp(o->shard_name, RULES_SHARD))
		return err_set(err, ERR_INVALID, "--shard.name=%s is the name of what query nodes record",
			RULES_SHARD);
	if (o->shard_name[0]) {
		if (!modes_is_name(str_of(o->shard_name)))
			return err_set(err, ERR_INVALID,
				"--shard.name is %s; it may have letters and digits, and behind the first one "
				"\"-\", \"_\" and \".\", %d characters in all",
				QUOTED(str_of(o->shard_name)), NAME_BYTES_MAX);
		return ERR_OK;
	}
	if (modes_is_set(o, "shard.name"))
		return err_set(err, ERR_INVALID, "--shard.name is empty");
	if (!gethostname(host, sizeof(host) - 1) && modes_is_name(str_of(host)))
		o->shard_name = host;
	return ERR_OK;
}

/* http://HOST:PORT, and perhaps a path that its routes begin with. */
static bool modes_is_address(struct str url)
{
	size_t from = str_has_prefix(
		url, STR("http://")) ? 7 : str_has_prefix(url, STR("https://")) ? 8 : 0;
	size_t end = from;

	while (end < url.len && url.ptr[end] != '/')
		end++;
	if (!from || url.len > MANIFEST_ADDRESS_BYTES_MAX ||
		!url_address_valid((struct str){ url.ptr + from, end - from }))
		return false;
	for (size_t i = end; i < url.len; i++)
		if (url.ptr[i] <= ' ' || url.ptr[i] > '~' || strchr("?#\"<>\\", url.ptr[i]))
			return false;
	return true;
}

static enum err_code modes_check_address(const struct options *o, struct err *err)
{
	if (!modes_is_set(o, "shard.address"))
		return ERR_OK;
	if (!o->shard_join)
		return err_set(err, ERR_INVALID, "--shard.address needs --shard.join");
	if (!modes_is_address(str_of(o->shard_address)))
		return err_set(err, ERR_INVALID,
			"--shard.address is %s; it must be a URL as http://HOST:PORT",
			QUOTED(str_of(o->shard_address)));
	return ERR_OK;
}

static enum err_code modes_read_shard(struct options *o, struct err *err)
{
	const char *from = modes_is_set(o, "shard.name") ? "--shard.name" : "the host's name";
	enum err_code rc;

	if (!o->shard_total || o->shard_total > SHARDS_MAX)
		return err_set(err, ERR_INVALID, "--shard.total is %" PRIu64 "; it may be 1 to %u",
			o->shard_total, SHARDS_MAX);
	if ((rc = modes_read_name(o, err)) || (rc = modes_check_address(o, err)))
		return rc;
	o->shard = (struct shard){ 0, (unsigned)o->shard_total, NULL };
	if (o->shard_total == 1)
		return ERR_OK;
	if (!shard_ordinal(str_of(o->shard_name), &o->shard.ordinal))
		return err_set(err, ERR_INVALID,
			"--shard.total is %" PRIu64 ", but %s \"%s\" has no shard's number at its end",
			o->shard_total, from, o->shard_name);
	if (o->shard.ordinal >= o->shard_total)
		return err_set(err, ERR_INVALID,
			"--shard.total is %" PRIu64 ", but the number at the end of %s \"%s\" is not 0 to "
			"%" PRIu64,
			o->shard_total, from, o->shard_name, o->shard_total - 1);
	return ERR_OK;
}

/* ---- times and sizes ---- */

static enum err_code modes_check_interval(
	const char *flag, int64_t ns, int64_t max_ns, const char *max, struct err *err)
{
	if (ns < INTERVAL_MIN_NS)
		return err_set(err, ERR_INVALID, "--%s is less than 1s", flag);
	if (ns > max_ns)
		return err_set(err, ERR_INVALID, "--%s is longer than %s", flag, max);
	return ERR_OK;
}

/* Values with which a server would start and be of no use. */
static const struct {
	const char *flag;
	uint64_t min, max; /* in the flag's unit; max 0: none */
} bounds[] = {
	{ "web.max-connections", 1, CONNECTIONS_MAX },
	{ "web.read-timeout", NS_PER_S, 0 },
	{ "web.body-timeout", NS_PER_S, 0 },
	{ "web.max-body-memory", BODY_BYTES, 0 },
	{ "web.max-body-memory-per-address", BODY_BYTES, 0 },
	{ "web.max-password-checks-per-address", 1, 1000 },
	{ "storage.tsdb.window", WINDOW_MIN_NS, WINDOW_MAX_NS },
	{ "storage.tsdb.symbol-memory", MIB, 0 },
	{ "storage.tsdb.page-cache", MIB, 0 },
	{ "storage.tsdb.max-series", 1, 0 },
	{ "storage.tsdb.max-job-stacks", 1, 0 },
	{ "storage.tsdb.max-job-strings", 1, 0 },
	{ "storage.tsdb.max-job-label-sets", 1, 0 },
	{ "storage.tsdb.max-job-symbol-memory", MIB, 0 },
	{ "query.timeout", NS_PER_MS, 0 },
	{ "query.max-concurrency", 1, QUERIES_MAX },
	{ "query.max-threads", 0, THREADS_MAX },
	{ "query.max-samples", 1, 0 },
	{ "query.max-memory", MIB, 0 },
	{ "query.lookback-delta", NS_PER_S, 0 },
	{ "rules.alert.resend-delay", NS_PER_S, 0 },
	{ "rules.max-concurrency", 1, THREADS_MAX },
	{ "alertmanager.notification-queue-capacity", 1, 0 },
};

/* A number of the flag's unit, as people write it. */
static void modes_print_number(struct buf *out, const struct flag *f, uint64_t number)
{
	struct flag one = *f;
	int64_t ns = (int64_t)number;

	one.value = f->kind == FLAG_DURATION ? (void *)&ns : (void *)&number;
	flag_print_value(out, &one);
}

static enum err_code modes_check_bounds(const struct options *o, struct err *err)
{
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		const struct flag *f = modes_find_flag(o, bounds[i].flag);
		struct buf text = { 0 };
		enum err_code rc;
		uint64_t value;

		assert(f && (f->kind == FLAG_UINT || f->kind == FLAG_BYTES || f->kind == FLAG_DURATION));
		memcpy(&value, f->value, sizeof(value));
		if (value >= bounds[i].min && (!bounds[i].max || value <= bounds[i].max))
			continue;
		buf_printf(&text, "--%s is ", f->name);
		flag_print_value(&text, f);
		buf_add_cstr(&text, bounds[i].max ? "; it may be " : "; it must be at least ");
		modes_print_number(&text, f, bounds[i].min);
		if (bounds[i].max) {
			buf_add_cstr(&text, " to ");
			modes_print_number(&text, f, bounds[i].max);
		}
		rc = err_set(err, ERR_INVALID, STR_FMT, STR_ARG(buf_str(&text)));
		buf_release(&text);
		return rc;
	}
	return ERR_OK;
}

static enum err_code modes_check_retention(const struct options *o, struct err *err)
{
	if (o->window_ns % NS_PER_S)
		return err_set(err, ERR_INVALID, "--storage.tsdb.window is not a whole number of seconds");
	if (o->block_max_ns && o->block_max_ns < o->window_ns)
		return err_set(err, ERR_INVALID,
			"--storage.tsdb.max-block-duration is shorter than --storage.tsdb.window");
	if (o->retention_ns && o->raw_retention_ns > o->retention_ns)
		return err_set(err, ERR_INVALID,
			"--storage.tsdb.retention.raw-time is longer than --storage.tsdb.retention.time");
	if (o->retention_ns && o->local_retention_ns > o->retention_ns)
		return err_set(err, ERR_INVALID,
			"--storage.local-retention is longer than --storage.tsdb.retention.time");
	return ERR_OK;
}

/* What a manifest named stays for the delay. A query node knows that of the shards by default. */
static enum err_code modes_check_poll(const struct options *o, struct err *err)
{
	if (o->mode == MODE_SERVER)
		return ERR_OK;
	return modes_check_interval("storage.bucket.poll-interval", o->poll_interval_ns,
		o->delete_delay_ns, o->mode == MODE_QUERY ? "15m" : "--storage.bucket.delete-delay", err);
}

/* One interval that is late, or one attempt that failed, must not end it. */
static enum err_code modes_check_lease(const struct options *o, struct err *err)
{
	struct buf least = { 0 };
	enum err_code rc;

	if (!modes_is_set(o, "shard.lease"))
		return ERR_OK;
	if (o->lease_ns > LEASE_MAX_NS)
		return err_set(err, ERR_INVALID, "--shard.lease is longer than 30d");
	if (o->lease_ns >= 2 * o->segment_interval_ns)
		return ERR_OK;
	duration_print(&least, 2 * o->segment_interval_ns);
	rc = err_set(err, ERR_INVALID,
		"--shard.lease is less than two segment intervals, which are " STR_FMT,
		STR_ARG(buf_str(&least)));
	buf_release(&least);
	return rc;
}

static enum err_code modes_check_values(struct options *o, struct err *err)
{
	enum err_code rc;

	if ((rc = modes_check_bounds(o, err)))
		return rc;
	/* Nobody has asked for segments that are longer than the window. */
	if (!modes_is_set(o, "storage.bucket.segment-interval") &&
		o->segment_interval_ns > o->window_ns)
		o->segment_interval_ns = o->window_ns;
	if ((rc = modes_check_interval("storage.bucket.segment-interval", o->segment_interval_ns,
			 o->window_ns, "--storage.tsdb.window", err)) ||
		(rc = modes_check_poll(o, err)) || (rc = modes_check_lease(o, err)))
		return rc;
	if (o->bucket_cache_bytes < CACHE_BYTES_MIN)
		return err_set(
			err, ERR_INVALID, "--storage.bucket.cache-size is less than %u bytes", CACHE_BYTES_MIN);
	return modes_check_retention(o, err);
}

static enum err_code modes_set_cache_path(struct options *o, struct err *err)
{
	static char path[4096];

	if (o->bucket_cache_path[0])
		return ERR_OK;
	if ((size_t)snprintf(path, sizeof(path), "%s%sbucket-cache", o->data_dir,
			o->data_dir[0] && o->data_dir[strlen(o->data_dir) - 1] == '/' ? "" : "/") >=
		sizeof(path))
		return err_set(err, ERR_INVALID, "--storage.tsdb.path is too long");
	o->bucket_cache_path = path;
	return ERR_OK;
}

enum err_code modes_check(struct options *o, struct err *err)
{
	enum err_code rc;

	if ((rc = modes_read_mode(o, err)) || (rc = modes_check_flags(o, err)) ||
		(rc = modes_read_shard(o, err)) || (rc = modes_check_values(o, err)))
		return rc;
	return modes_set_cache_path(o, err);
}

/* ---- with the configuration ---- */

/* Flags that mean nothing without a bucket. */
static const char *const bucket_flags[] = { "shard.name", "shard.join", "shard.lease",
	"shard.ca-file", "storage.local-retention", "storage.bucket.segment-interval",
	"storage.bucket.delete-delay", "storage.bucket.poll-interval", "storage.bucket.cache-size",
	"storage.bucket.cache-path" };

static enum err_code modes_check_without_bucket(const struct options *o, struct err *err)
{
	if (o->mode != MODE_SERVER)
		return err_set(
			err, ERR_INVALID, "--mode=%s needs `bucket` in the configuration", o->mode_name);
	if (o->shard_total > 1) /* and rules would run nowhere */
		return err_set(err, ERR_INVALID,
			"--shard.total=%" PRIu64 " needs `bucket` in the configuration, from which query "
			"nodes answer for all shards",
			o->shard_total);
	for (size_t i = 0; i < sizeof(bucket_flags) / sizeof(bucket_flags[0]); i++)
		if (modes_is_set(o, bucket_flags[i]))
			return err_set(
				err, ERR_INVALID, "--%s needs `bucket` in the configuration", bucket_flags[i]);
	return ERR_OK;
}

struct web_elsewhere modes_elsewhere(const struct options *o)
{
	return o->mode < sizeof(elsewhere) / sizeof(elsewhere[0]) ? elsewhere[o->mode] :
																(struct web_elsewhere){ 0 };
}

enum err_code modes_check_config(const struct options *o, const struct config *c, struct err *err)
{
	if (!c || !c->bucket.present)
		return modes_check_without_bucket(o, err);
	if (!o->shard_name[0] && o->mode == MODE_SERVER)
		return err_set(
			err, ERR_INVALID, "the host's name cannot be the name of a shard: set --shard.name");
	return bucket_options_check(&c->bucket, err);
}
