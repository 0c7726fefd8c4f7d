/* Flags about modes, shards and the bucket, and what is refused. */
#include "cmd/epimetheus/modes.h"

#include "base/clock.h"
#include "cmd/shared/bucket_options.h"
#include "tests/check.h"

#define ARGS_MAX 8

static struct options o;
static struct err err;

/* args: flags with one space between. */
static enum err_code parse(const char *args)
{
	static char text[1024];
	char *argv[ARGS_MAX] = { (char[]){ "epimetheus" } };
	int argc = 1;

	snprintf(text, sizeof(text), "%s", args);
	for (char *at = text, *next; at && *at; at = next) {
		next = strchr(at, ' ');
		if (next)
			*next++ = '\0';
		argv[argc++] = at;
	}
	return options_parse(&o, argc, argv, &err);
}

TEST(defaults)
{
	REQUIRE_OK(parse(""), &err);
	CHECK_INT(o.mode, MODE_SERVER);
	CHECK_INT(o.shard_total, 1);
	CHECK_INT(o.shard.ordinal, 0);
	CHECK_INT(o.shard.total, 1);
	CHECK_INT(o.segment_interval_ns, 30 * NS_PER_S);
	CHECK_INT(o.poll_interval_ns, 10 * NS_PER_S);
	CHECK_INT(o.delete_delay_ns, 15 * NS_PER_MIN);
	CHECK_INT(o.local_retention_ns, 0);
	CHECK_INT(o.lease_ns, 0); /* as lease.h says */
	CHECK_INT(o.bucket_cache_bytes, UINT64_C(10) << 30);
	CHECK_STR(str_of(o.bucket_cache_path), "data/bucket-cache");
	REQUIRE_OK(parse("--storage.tsdb.path=/d --mode=query"), &err);
	CHECK_STR(str_of(o.bucket_cache_path), "/d/bucket-cache");
	CHECK_INT(o.mode, MODE_QUERY);
	REQUIRE_OK(parse("--storage.bucket.cache-path=/c --mode=compact"), &err);
	CHECK_STR(str_of(o.bucket_cache_path), "/c");
	CHECK_INT(o.mode, MODE_COMPACT);
}

/* A short window shortens what was not asked for. */
TEST(short_windows)
{
	REQUIRE_OK(parse("--storage.tsdb.window=10s"), &err);
	CHECK_INT(o.segment_interval_ns, 10 * NS_PER_S);
}

TEST(leases)
{
	REQUIRE_OK(parse("--shard.lease=1m"), &err);
	CHECK_INT(o.lease_ns, NS_PER_MIN);
	REQUIRE_OK(parse("--shard.lease=4s --storage.bucket.segment-interval=2s"), &err);
	CHECK_INT(o.lease_ns, 4 * NS_PER_S);
}

TEST(shards)
{
	REQUIRE_OK(parse("--shard.name=epi-2 --shard.total=3"), &err);
	CHECK_STR(str_of(o.shard_name), "epi-2");
	CHECK_INT(o.shard.ordinal, 2);
	CHECK_INT(o.shard.total, 3);
	REQUIRE_OK(parse("--shard.name=alone"), &err);
	CHECK_INT(o.shard.ordinal, 0);
	REQUIRE_OK(
		parse("--shard.name=epi-9"), &err); /* one of one: the number is a part of the name */
	CHECK_INT(o.shard.ordinal, 0);
	CHECK_INT(o.shard.total, 1);
}

TEST(joins)
{
	REQUIRE_OK(parse("--shard.name=a --shard.join --shard.address=https://[::1]:1/x"), &err);
	CHECK(o.shard_join);
	CHECK_STR(str_of(o.shard_address), "https://[::1]:1/x");
	REQUIRE_OK(parse("--shard.name=a --shard.join"), &err);
	CHECK_STR(str_of(o.shard_address), "");
}

/* clang-format off */
static const char *const refused[][2] = {
	{ "--mode=shard", "--mode is \"shard\"; it may be server, query or compact" },
	{ "--mode=compact --web.enable-ingest",
	  "--web.enable-ingest makes no sense with --mode=compact: it takes no profiles in" },
	{ "--mode=query --web.enable-rules",
	  "--web.enable-rules makes no sense with --mode=query: rules are added to rule_files of "
	  "each query node" },
	{ "--mode=compact --web.enable-files",
	  "--web.enable-files makes no sense with --mode=compact: it keeps no files" },
	{ "--mode=compact --storage.files.max-size=1GB",
	  "--storage.files.max-size makes no sense with --mode=compact: it keeps no files" },
	{ "--mode=query --web.otlp-grpc-listen-address=:1",
	  "--web.otlp-grpc-listen-address makes no sense with --mode=query: it takes no profiles in" },
	{ "--mode=query --shard.name=a",
	  "--shard.name makes no sense with --mode=query: only servers that scrape are shards" },
	{ "--mode=compact --shard.total=1",
	  "--shard.total makes no sense with --mode=compact: only servers that scrape are shards" },
	{ "--mode=query --storage.tsdb.retention.time=1d",
	  "--storage.tsdb.retention.time makes no sense with --mode=query: it deletes nothing" },
	{ "--mode=query --storage.local-retention=1d",
	  "--storage.local-retention makes no sense with --mode=query: it has no data of its own" },
	{ "--mode=compact --storage.bucket.segment-interval=1m",
	  "--storage.bucket.segment-interval makes no sense with --mode=compact: it has no data of "
	  "its own" },
	{ "--storage.bucket.poll-interval=1m",
	  "--storage.bucket.poll-interval makes no sense with --mode=server: it follows no shards" },
	{ "--mode=compact --rules.max-concurrency=1",
	  "--rules.max-concurrency makes no sense with --mode=compact: it evaluates no rules" },
	{ "--shard.total=0", "--shard.total is 0; it may be 1 to 4096" },
	{ "--shard.total=4097", "--shard.total is 4097; it may be 1 to 4096" },
	{ "--shard.name=", "--shard.name is empty" },
	{ "--shard.name=a/b",
	  "--shard.name is \"a/b\"; it may have letters and digits, and behind the first one \"-\", "
	  "\"_\" and \".\", 63 characters in all" },
	{ "--shard.name=..",
	  "--shard.name is \"..\"; it may have letters and digits, and behind the first one \"-\", "
	  "\"_\" and \".\", 63 characters in all" },
	{ "--shard.name=epi --shard.total=2",
	  "--shard.total is 2, but --shard.name \"epi\" has no shard's number at its end" },
	{ "--shard.name=epi-2 --shard.total=2",
	  "--shard.total is 2, but the number at the end of --shard.name \"epi-2\" is not 0 to 1" },
	{ "--mode=query --shard.join",
	  "--shard.join makes no sense with --mode=query: only servers that scrape are shards" },
	{ "--no-shard.join --shard.address=http://a:1", "--shard.address needs --shard.join" },
	{ "--shard.join --shard.address=a:1",
	  "--shard.address is \"a:1\"; it must be a URL as http://HOST:PORT" },
	{ "--shard.join --shard.address=http://",
	  "--shard.address is \"http://\"; it must be a URL as http://HOST:PORT" },
	{ "--shard.join --shard.address=https://a:1/x?y",
	  "--shard.address is \"https://a:1/x?y\"; it must be a URL as http://HOST:PORT" },
	{ "--shard.lease=59s",
	  "--shard.lease is less than two segment intervals, which are 1m" },
	{ "--shard.lease=0s",
	  "--shard.lease is less than two segment intervals, which are 1m" },
	{ "--shard.lease=31d", "--shard.lease is longer than 30d" },
	{ "--mode=query --shard.ca-file=/ca.pem",
	  "--shard.ca-file makes no sense with --mode=query: only servers that scrape are shards" },
	{ "--mode=query --shard.lease=2m",
	  "--shard.lease makes no sense with --mode=query: only servers that scrape are shards" },
	{ "--storage.bucket.segment-interval=500ms",
	  "--storage.bucket.segment-interval is less than 1s" },
	{ "--storage.bucket.segment-interval=3h",
	  "--storage.bucket.segment-interval is longer than --storage.tsdb.window" },
	{ "--mode=query --storage.bucket.poll-interval=0s",
	  "--storage.bucket.poll-interval is less than 1s" },
	{ "--mode=compact --storage.bucket.delete-delay=5s",
	  "--storage.bucket.poll-interval is longer than --storage.bucket.delete-delay" },
	{ "--mode=query --storage.bucket.poll-interval=16m",
	  "--storage.bucket.poll-interval is longer than 15m" },
	{ "--storage.bucket.cache-size=1KB",
	  "--storage.bucket.cache-size is less than 1048576 bytes" },
	{ "--storage.local-retention=30d",
	  "--storage.local-retention is longer than --storage.tsdb.retention.time" },
	{ "--storage.tsdb.retention.raw-time=30d",
	  "--storage.tsdb.retention.raw-time is longer than --storage.tsdb.retention.time" },
	{ "--storage.tsdb.max-block-duration=1h",
	  "--storage.tsdb.max-block-duration is shorter than --storage.tsdb.window" },
	{ "--storage.tsdb.window=1s", "--storage.tsdb.window is 1s; it may be 2s to 31d" },
	{ "--storage.tsdb.window=1y", "--storage.tsdb.window is 1y; it may be 2s to 31d" },
	{ "--storage.tsdb.window=2500ms",
	  "--storage.tsdb.window is not a whole number of seconds" },
	{ "--web.max-connections=0", "--web.max-connections is 0; it may be 1 to 1048576" },
	{ "--web.read-timeout=0s", "--web.read-timeout is 0s; it must be at least 1s" },
	{ "--web.body-timeout=10ms", "--web.body-timeout is 10ms; it must be at least 1s" },
	{ "--web.max-body-memory=0B", "--web.max-body-memory is 0B; it must be at least 16MiB" },
	{ "--web.max-body-memory-per-address=1KiB",
	  "--web.max-body-memory-per-address is 1KiB; it must be at least 16MiB" },
	{ "--web.max-password-checks-per-address=0",
	  "--web.max-password-checks-per-address is 0; it may be 1 to 1000" },
	{ "--storage.tsdb.symbol-memory=0B",
	  "--storage.tsdb.symbol-memory is 0B; it must be at least 1MiB" },
	{ "--storage.tsdb.page-cache=0B",
	  "--storage.tsdb.page-cache is 0B; it must be at least 1MiB" },
	{ "--storage.tsdb.max-series=0", "--storage.tsdb.max-series is 0; it must be at least 1" },
	{ "--storage.tsdb.max-job-stacks=0",
	  "--storage.tsdb.max-job-stacks is 0; it must be at least 1" },
	{ "--storage.tsdb.max-job-strings=0",
	  "--storage.tsdb.max-job-strings is 0; it must be at least 1" },
	{ "--storage.tsdb.max-job-label-sets=0",
	  "--storage.tsdb.max-job-label-sets is 0; it must be at least 1" },
	{ "--storage.tsdb.max-job-symbol-memory=0B",
	  "--storage.tsdb.max-job-symbol-memory is 0B; it must be at least 1MiB" },
	{ "--query.timeout=0s", "--query.timeout is 0s; it must be at least 1ms" },
	{ "--query.max-concurrency=0", "--query.max-concurrency is 0; it may be 1 to 65536" },
	{ "--query.max-concurrency=4294967296",
	  "--query.max-concurrency is 4294967296; it may be 1 to 65536" },
	{ "--query.max-threads=5000", "--query.max-threads is 5000; it may be 0 to 1024" },
	{ "--query.max-samples=0", "--query.max-samples is 0; it must be at least 1" },
	{ "--query.max-memory=1KiB", "--query.max-memory is 1KiB; it must be at least 1MiB" },
	{ "--query.lookback-delta=0s", "--query.lookback-delta is 0s; it must be at least 1s" },
	{ "--rules.alert.resend-delay=0s",
	  "--rules.alert.resend-delay is 0s; it must be at least 1s" },
	{ "--rules.max-concurrency=0", "--rules.max-concurrency is 0; it may be 1 to 1024" },
	{ "--alertmanager.notification-queue-capacity=0",
	  "--alertmanager.notification-queue-capacity is 0; it must be at least 1" },
};
/* clang-format on */

TEST(what_makes_no_sense_is_refused_by_name)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (parse(refused[i][0]) != ERR_INVALID || strcmp(err.msg, refused[i][1]))
			CHECK_FAIL("%s: \"%s\", want \"%s\"", refused[i][0], err.msg, refused[i][1]);
	CHECK_OK(parse("--storage.local-retention=30d --storage.tsdb.retention.time=0s"), &err);
	CHECK_OK(parse("--mode=nonsense --help"), &err);
}

/* ---- with a configuration ---- */

static enum err_code check(const char *args, const char *text)
{
	struct config *c = NULL;
	enum err_code rc;

	if ((rc = parse(args)))
		return rc;
	if (text && (rc = config_load_text("c.yml", STR("."), str_of(text), &c, &err)))
		return rc;
	rc = modes_check_config(&o, c, &err);
	config_unref(c);
	return rc;
}

#define BUCKET "bucket: {endpoint: 'http://s3', bucket: b}"

/* clang-format off */
static const struct {
	const char *args, *text, *msg; /* text NULL: no file; msg NULL: it is fine */
} with_config[] = {
	{ "", NULL, NULL },
	{ "", "{}", NULL },
	{ "--shard.name=a", BUCKET, NULL },
	{ "--mode=query", BUCKET, NULL },
	{ "--mode=compact --storage.bucket.delete-delay=1h", BUCKET, NULL },
	{ "--shard.name=a-1 --shard.total=2", BUCKET, NULL },
	{ "--mode=query", NULL, "--mode=query needs `bucket` in the configuration" },
	{ "--mode=compact", "{}", "--mode=compact needs `bucket` in the configuration" },
	{ "--shard.name=a-1 --shard.total=2", "{}",
	  "--shard.total=2 needs `bucket` in the configuration, from which query nodes answer for all "
	  "shards" },
	{ "--shard.name=a", "{}", "--shard.name needs `bucket` in the configuration" },
	{ "--shard.ca-file=/ca.pem", "{}", "--shard.ca-file needs `bucket` in the configuration" },
	{ "--storage.local-retention=1d", "{}",
	  "--storage.local-retention needs `bucket` in the configuration" },
	{ "--storage.bucket.cache-size=1GB", NULL,
	  "--storage.bucket.cache-size needs `bucket` in the configuration" },
	{ "--shard.name=a", "global: {}\nbucket:\n  endpoint: http://s3/?x\n  bucket: b",
	  "c.yml:3:3: endpoint: a query, a fragment or a \"%\" cannot be in it" },
	{ "--shard.name=a", "bucket: {endpoint: 'http://s3', bucket: b, prefix: a//b}",
	  "c.yml:1:9: prefix \"a//b\" has an empty part, or \".\" or \"..\"" },
	{ "--shard.name=a", "bucket: {endpoint: 'http://s3', bucket: b/c}",
	  "c.yml:1:9: bucket name with a \"/\"" },
};
/* clang-format on */

TEST(flags_and_the_configuration)
{
	for (size_t i = 0; i < sizeof(with_config) / sizeof(with_config[0]); i++) {
		const char *want = with_config[i].msg;
		enum err_code rc = check(with_config[i].args, with_config[i].text);

		if (rc != (want ? ERR_INVALID : ERR_OK) || (want && strcmp(err.msg, want)))
			CHECK_FAIL("row %zu: \"%s\", want \"%s\"", i, rc ? err.msg : "", want ? want : "");
	}
}

TEST(options_of_the_client)
{
	struct bucket_config b;
	struct config *c;

	REQUIRE_OK(config_load_text("c.yml",
		STR("/etc"),
			STR("bucket: {endpoint: 'http://s3', bucket: b, prefix: p, region: r, "
					   "virtual_host: true, access_key: A, secret_key_file: S, session_token: T, "
					   "tls_config: {insecure_skip_verify: true}, prices: {put_per_million: 7}}"),
				&c, &err),
		&err);
	b = bucket_options(&c->bucket);
	CHECK_STR(b.endpoint, "http://s3");
	CHECK_STR(b.bucket, "b");
	CHECK_STR(b.prefix, "p");
	CHECK_STR(b.region, "r");
	CHECK(b.virtual_host);
	CHECK(b.http.tls_insecure_skip_verify);
	CHECK_INT(b.credentials.kind, BUCKET_STATIC);
	CHECK_STR(b.credentials.access_key, "A");
	CHECK_STR(b.credentials.secret_key_file, "/etc/S");
	CHECK_STR(b.credentials.session_token, "T");
	CHECK(bucket_option_prices(&c->bucket).put_per_million == 7);
	CHECK(bucket_option_prices(&c->bucket).storage_per_tb_month == 23);
	config_unref(c);
	REQUIRE_OK(config_load_text("c.yml",
		STR("/etc"),
			STR("bucket: {endpoint: 'http://s3', bucket: b, web_identity: {role_arn: R, "
					   "token_file: T}}"),
				&c, &err),
		&err);
	b = bucket_options(&c->bucket);
	CHECK_INT(b.credentials.kind, BUCKET_WEB_IDENTITY);
	CHECK_STR(b.credentials.role_arn, "R");
	CHECK_STR(b.credentials.token_file, "/etc/T");
	config_unref(c);
}
