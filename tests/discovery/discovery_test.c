/* Discovery on real files in a directory of its own: what is delivered, and when. */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/discovery/sd_fixture.h"
#include "tests/discovery/sources/dns_server.h"
#include "tests/wait.h"

TEST(statics_come_at_once_and_again_at_each_apply)
{
	struct fixture f;

	fixture_init(&f);
	apply(&f, "static_configs: [{targets: ['a:1', 'b:2'], labels: {x: y}}, {targets: [c]}]",
		"static_configs: []");
	CHECK_INT(f.updates, 2);
	CHECK_STR(buf_str(&f.last[0]), "0 {x=\"y\"} a:1 b:2\n1 {} c\n");
	CHECK_STR(buf_str(&f.last[1]), "");
	apply(&f, "static_configs: [{targets: [z]}]", NULL);
	CHECK_INT(f.updates, 3);
	CHECK_STR(buf_str(&f.last[0]), "0 {} z\n");
	fixture_release(&f);
}

TEST(files_are_noticed_as_they_change)
{
	struct fixture f;
	const char *one;

	fixture_init(&f);
	one = arena_printf(
		&f.arena, "%s/one.json:0 {__meta_filepath=\"%s/one.json\"} a:1\n", f.dir, f.dir);
	put(&f, "one.json", "[{\"targets\": [\"a:1\"]}]");
	put(&f, "other.txt", "not read");
	apply(&f, "file_sd_configs: [{files: ['*.json', two.yml, 'one.*.json', 'one.json']}]", NULL);
	expect(&f, 0, one);

	put(&f, "two.yml", "- targets: [b]\n  labels: {k: v, __meta_filepath: forged}\n");
	expect(&f, 0,
		arena_printf(&f.arena, "%s%s/two.yml:0 {__meta_filepath=\"%s/two.yml\", k=\"v\"} b\n", one,
			f.dir, f.dir));

	/* written elsewhere and moved over, as careful programs do */
	put(&f, "tmp", "- targets: [c]\n");
	CHECK_INT(rename(in_dir(&f, "tmp"), in_dir(&f, "two.yml")), 0);
	expect(&f, 0,
		arena_printf(
			&f.arena, "%s%s/two.yml:0 {__meta_filepath=\"%s/two.yml\"} c\n", one, f.dir, f.dir));

	CHECK_INT(unlink(in_dir(&f, "two.yml")), 0);
	expect(&f, 0, one);
	fixture_release(&f);
}

/*
 * A ConfigMap's volume: d/f.yml -> ..data/f.yml, ..data -> a versioned directory, swapped by a
 * rename.
 */
TEST(a_config_map_swap_is_noticed)
{
	struct fixture f;

	fixture_init(&f);
	mkdir(in_dir(&f, "..v1"), 0755);
	mkdir(in_dir(&f, "..v2"), 0755);
	put(&f, "..v1/f.yml", "- targets: [v1]\n");
	put(&f, "..v2/f.yml", "- targets: [v2]\n");
	CHECK_INT(symlink("..v1", in_dir(&f, "..data")), 0);
	CHECK_INT(symlink("..data/f.yml", in_dir(&f, "f.yml")), 0);
	apply(&f, "file_sd_configs: [{files: ['*.yml']}]", NULL);
	expect(&f, 0,
		arena_printf(&f.arena, "%s/f.yml:0 {__meta_filepath=\"%s/f.yml\"} v1\n", f.dir, f.dir));
	CHECK_INT(symlink("..v2", in_dir(&f, "..new")), 0);
	CHECK_INT(rename(in_dir(&f, "..new"), in_dir(&f, "..data")), 0);
	expect(&f, 0,
		arena_printf(&f.arena, "%s/f.yml:0 {__meta_filepath=\"%s/f.yml\"} v2\n", f.dir, f.dir));
	fixture_release(&f);
}

static double failures(void)
{
	return metric_shown("epimetheus_discovery_failures_total{provider=\"file\"}");
}

TEST(a_broken_file_keeps_its_last_targets_also_across_an_apply)
{
	struct fixture f;
	const char *good;
	double before = failures();

	fixture_init(&f);
	good = arena_printf(&f.arena, "%s/a.yml:0 {__meta_filepath=\"%s/a.yml\"} a\n", f.dir, f.dir);
	put(&f, "a.yml", "- targets: [a]\n");
	apply(&f, "file_sd_configs: [{files: [a.yml]}]", NULL);
	expect(&f, 0, good);
	put(&f, "a.yml", "- targets: [b\n");
	CHECK(WAIT_FOR(failures() > before));
	expect(&f, 0, good);
	apply(&f, "file_sd_configs: [{files: ['*.yml']}]", NULL);
	CHECK_STR(buf_str(&f.last[0]), good);
	put(&f, "a.yml", "[]");
	expect(&f, 0, "");
	fixture_release(&f);
}

/* The groups of the other documents are published, and the source counts as failing. */
TEST(a_file_that_is_broken_from_the_start_is_a_failure)
{
	static const char *const failing = "epimetheus_discovery_sources_failing{provider=\"file\"}";
	struct fixture f;

	fixture_init(&f);
	put(&f, "a.yml", "- targets: ['a:1']\n");
	put(&f, "b.yml", "- targets: [\n");
	apply(&f, "{file_sd_configs: [{files: ['*.yml']}]}", NULL);
	CHECK(strstr(buf_str(&f.last[0]).ptr, " a:1\n"));
	CHECK(metric_shown(failing) == 1);
	put(&f, "a.yml", "- targets: ['a:2']\n");
	expect(&f, 0,
		arena_printf(&f.arena, "%s:0 {__meta_filepath=\"%s\"} a:2\n", in_dir(&f, "a.yml"),
			in_dir(&f, "a.yml")));
	CHECK(metric_shown(failing) == 1);
	put(&f, "b.yml", "- targets: ['b:1']\n");
	expect(&f, 0,
		arena_printf(&f.arena,
			"%s:0 {__meta_filepath=\"%s\"} a:2\n%s:0 {__meta_filepath=\"%s\"} b:1\n",
			in_dir(&f, "a.yml"), in_dir(&f, "a.yml"), in_dir(&f, "b.yml"), in_dir(&f, "b.yml")));
	CHECK(metric_shown(failing) == 0);
	fixture_release(&f);
}

TEST(a_directory_that_appears_later_is_found)
{
	struct fixture f;

	fixture_init(&f);
	apply(&f, "file_sd_configs: [{files: ['later/*.yml'], refresh_interval: 1s}]", NULL);
	CHECK_STR(buf_str(&f.last[0]), "");
	mkdir(in_dir(&f, "later"), 0755);
	put(&f, "later/x.yml", "- targets: [x]\n");
	expect(&f, 0,
		arena_printf(
			&f.arena, "%s/later/x.yml:0 {__meta_filepath=\"%s/later/x.yml\"} x\n", f.dir, f.dir));
	fixture_release(&f);
}

TEST(configuration)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "static_configs: [{targets: [a, 'http://b']}]",
			"c.yml:1:32: \"http://b\" is not a valid hostname" },
		{ "static_configs: [~]", "c.yml:1:18: empty or null target group" },
		{ "file_sd_configs: [{files: [a.txt]}]",
			"c.yml:1:28: path name \"a.txt\" is not valid for file discovery" },
		{ "file_sd_configs: [{files: ['*/a.yml']}]",
			"c.yml:1:28: path name \"*/a.yml\" is not valid for file discovery" },
		{ "file_sd_configs: [{files: ['.yml']}]",
			"c.yml:1:28: path name \".yml\" is not valid for file discovery" },
		{ "file_sd_configs: [{}]",
			"c.yml:1:19: file service discovery config must contain at least one path name" },
		{ "file_sd_configs: [{files: [a.yml], refresh_interval: 1}]",
			"c.yml:1:54: not a valid duration string: \"1\"" },
		{ "file_sd_configs: [~]", "c.yml:1:19: empty or null section in file_sd_configs" },
		{ "file_sd_configs: [{file: [a.yml]}]",
			"c.yml:1:20: field file not found in type file_sd_config; did you mean \"files\"?" },
	};
	struct sd_configs sd;
	struct fixture f;
	struct err err;

	fixture_init(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_ERR(sd_of(&f, rows[i].text, &sd, &err), &err, ERR_INVALID, rows[i].want);
	REQUIRE_OK(sd_of(&f, "file_sd_configs: [{files: ['*.json', missing.yml]}]", &sd, &err), &err);
	CHECK_ERR(sd_check_files(&sd, &err), &err, ERR_NOT_FOUND,
		arena_printf(&f.arena, "open %s/missing.yml: No such file or directory", f.dir));
	put(&f, "missing.yml", "- targets: [x]");
	CHECK_OK(sd_check_files(&sd, &err), &err);
	fixture_release(&f);
}

/* The same entry in two jobs and in two configurations is asked for once per interval. */
TEST(jobs_share_dns_names)
{
	static const char yaml[] = "dns_sd_configs: [{names: [_a._tcp.test.], refresh_interval: 1h}]";
	static const char often[] = "dns_sd_configs: [{names: [_a._tcp.test.], refresh_interval: 1s}]";
	struct dns_server server;
	struct fixture f;

	REQUIRE(dns_server_start(&server, "_a._tcp.test SRV 81 b.test\n_a._tcp.test SRV 80 a.test\n"));
	fixture_open(&f, server.address, NS_PER_HOUR);
	apply(&f, yaml, yaml);
	expect(&f, 0, "_a._tcp.test. {} a.test:80 b.test:81\n");
	expect(&f, 1, "_a._tcp.test. {} a.test:80 b.test:81\n");
	apply(&f, yaml, NULL);
	CHECK_INT(dns_server_asked(&server, ""), 1);
	apply(&f, often, NULL);
	expect(&f, 0, "_a._tcp.test. {} a.test:80 b.test:81\n");
	dns_server_zone(&server, "_a._tcp.test SRV 82 c.test\n");
	expect(&f, 0, "_a._tcp.test. {} c.test:82\n");
	fixture_release(&f);
	dns_server_stop(&server);
}

/* A source in both configurations goes on: its file is not read again. */
TEST(a_source_in_both_configurations_goes_on)
{
	static const char reads[] = "epimetheus_discovery_file_reads_total";
	static const char at_work[] = "epimetheus_discovery_sources{provider=\"file\"}";
	struct fixture f;
	const char *want;
	double before;

	fixture_init(&f);
	want = arena_printf(&f.arena, "%s/a.yml:0 {__meta_filepath=\"%s/a.yml\"} a\n", f.dir, f.dir);
	put(&f, "a.yml", "- targets: [a]\n");
	before = metric_shown(reads);
	apply(&f, "file_sd_configs: [{files: [a.yml]}]", "file_sd_configs: [{files: [a.yml]}]");
	CHECK_STR(buf_str(&f.last[0]), want);
	CHECK_STR(buf_str(&f.last[1]), want);
	CHECK(metric_shown(at_work) == 1);
	apply(&f, "{static_configs: [{targets: [s]}], file_sd_configs: [{files: ['a.yml']}]}", NULL);
	CHECK_STR(buf_str(&f.last[0]), arena_printf(&f.arena, "0 {} s\n%s", want));
	CHECK(metric_shown(reads) == before + 1);
	CHECK(metric_shown("epimetheus_discovery_targets{provider=\"file\"}") == 1);
	put(&f, "a.yml", "[]");
	expect(&f, 0, "0 {} s\n");
	apply(&f, NULL, NULL);
	CHECK(metric_shown(at_work) == 0);
	fixture_release(&f);
}

/* Twenty times as long apart as a delivery takes, at most a second. */
static void check_stream(int costs_us, int64_t apart_ns)
{
	struct fixture f;
	int64_t began, took;
	int before, n;

	fixture_init(&f);
	f.costs_us = costs_us;
	began = clock_monotonic_ns();
	apply(&f, "file_sd_configs: [{files: [a.yml]}]", NULL);
	before = updates(&f);
	for (int i = 0;; i++) {
		put(&f, "a.yml", arena_printf(&f.arena, "- targets: [a%d]\n", i));
		usleep(10000);
		n = updates(&f) - before;
		took = clock_monotonic_ns() - began;
		if ((took >= 3 * NS_PER_S && n >= 2) || took >= WAIT_NS)
			break;
	}
	if (n < 2 || n > 1 + took / apart_ns)
		CHECK_FAIL("%d deliveries in %d ms", n, (int)(took / NS_PER_MS));
	put(&f, "a.yml", "- targets: [last]\n");
	expect(&f, 0,
		arena_printf(&f.arena, "%s/a.yml:0 {__meta_filepath=\"%s/a.yml\"} last\n", f.dir, f.dir));
	fixture_release(&f);
}

TEST(a_stream_of_changes_is_delivered_as_often_as_that_is_cheap)
{
	check_stream(100000, NS_PER_S);
	check_stream(15000, 300 * NS_PER_MS);
	check_stream(0, 50 * NS_PER_MS);
}

TEST(two_jobs_with_a_directory_each_lose_only_their_own_watch)
{
	struct fixture f;

	fixture_init(&f);
	apply(&f, "file_sd_configs: [{files: [a.yml]}]", "file_sd_configs: [{files: ['./b.yml']}]");
	apply(&f, "file_sd_configs: [{files: [a.yml]}]", NULL);
	put(&f, "a.yml", "- targets: [x]\n");
	expect(&f, 0,
		arena_printf(&f.arena, "%s/a.yml:0 {__meta_filepath=\"%s/a.yml\"} x\n", f.dir, f.dir));
	CHECK(metric_shown("epimetheus_discovery_file_unwatched_directories") == 0);
	fixture_release(&f);
}
