#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "tests/scrape/config/refused.h"

/* Each is refused with exactly this message. */
/* clang-format off */
static const char *const refused_rows[][2] = {
	{ "nope: 1", "c.yml:1:1: field nope not found in type config" },
	{ "rule_files: [a/*/b.yml]", "c.yml:1:14: invalid rule file path \"a/*/b.yml\"" },
	{ "rule_files: ['']", "c.yml:1:14: invalid rule file path \"\"" },
	{ "rule_files: a.yml", "c.yml:1:13: expected a list" },
	{ "global: {evaluation_interval: x}",
	  "c.yml:1:31: not a valid duration string: \"x\"" },
	{ "alerting: {alertmanager: []}",
	  "c.yml:1:12: field alertmanager not found in type alerting_config; "
	  "did you mean \"alertmanagers\"?" },
	{ "alerting: [a]", "c.yml:1:11: cannot unmarshal !!seq into alerting_config" },
	{ "alerting: {alertmanagers: {}}", "c.yml:1:27: expected a list of alertmanagers" },
	{ "alerting: {alertmanagers: [~]}",
	  "c.yml:1:28: empty or null alertmanager config section" },
	{ "alerting: {alert_relabel_configs: [~]}",
	  "c.yml:1:36: empty or null alert relabeling rule" },
	{ "alerting: {alertmanagers: [{relabel_configs: [~]}]}",
	  "c.yml:1:47: empty or null Alertmanager target relabeling rule" },
	{ "alerting: {alertmanagers: [{alert_relabel_configs: [~]}]}",
	  "c.yml:1:53: empty or null Alertmanager alert relabeling rule" },
	{ "alerting: {alertmanagers: [{alert_relabel_configs: [{target_label: a, regex: '('}]}]}",
	  "c.yml:1:78: error parsing regexp: missing ): (" },
	{ "alerting: {alertmanagers: [{api_version: v1}]}",
	  "c.yml:1:42: expected Alertmanager api version to be one of [v2] but got v1" },
	{ "alerting: {alertmanagers: [{scheme: ftp}]}",
	  "c.yml:1:37: scheme \"ftp\" is not http or https" },
	{ "alerting: {alertmanagers: [{timeout: 0s}]}",
	  "c.yml:1:38: timeout of an Alertmanager cannot be 0" },
	{ "alerting: {alertmanagers: [{sigv4: {}}]}", "c.yml:1:29: sigv4 is not supported" },
	{ "alerting: {alertmanagers: [{static_configs: [{targets: ['a/b']}]}]}",
	  "c.yml:1:57: \"a/b\" is not a valid hostname" },
	{ "global: {scrape_intervall: 1s}",
	  "c.yml:1:10: field scrape_intervall not found in type global_config; "
	  "did you mean \"scrape_interval\"?" },
	{ "global: {scrape_interval: 10}", "c.yml:1:27: not a valid duration string: \"10\"" },
	{ "global: {scrape_interval: 5s, scrape_timeout: 6s}",
	  "c.yml:1:9: global scrape timeout greater than scrape interval" },
	{ "global: {external_labels: {a-b: c}}",
	  "c.yml:1:28: \"a-b\" is not a valid label name: " LABEL_NAME_RULE },
	{ "scrape_configs: {}", "c.yml:1:17: expected a list" },
	{ "scrape_configs:\n- ~\n", "c.yml:2:3: empty or null scrape config section" },
	{ "scrape_configs:\n- {}\n", "c.yml:2:3: job_name is empty" },
	{ "scrape_configs:\n- job_name: ''\n", "c.yml:2:3: job_name is empty" },
	{ "scrape_configs:\n- job_name: a\n- job_name: a\n",
	  "c.yml:3:3: found multiple scrape configs with job name \"a\"" },
	{ "scrape_configs:\n- job_name: a\n  jobname: b\n",
	  "c.yml:3:3: field jobname not found in type scrape_config; did you mean \"job_name\"?" },
	{ "scrape_configs:\n- job_name: a\n  job_name: b\n",
	  "c.yml:3:3: mapping key \"job_name\" already defined at line 2" },
	{ "scrape_configs:\n- job_name: a\n  scheme: ftp\n",
	  "c.yml:3:11: scheme \"ftp\" is not http or https" },
	{ "scrape_configs:\n- job_name: a\n  params: [a]\n",
	  "c.yml:3:11: expected a map of names to lists of values" },
	{ "scrape_configs:\n- job_name: a\n  params: {a: b}\n",
	  "c.yml:3:15: expected a list of strings" },
	{ "scrape_configs:\n- job_name: a\n  relabel_configs: [~]\n",
	  "c.yml:3:21: empty or null target relabeling rule in scrape config" },
	{ "scrape_configs:\n- job_name: a\n  relabel_configs: [{action: labeldrop}, {regex: "
	  "'('}]\n",
	  "c.yml:3:42: relabel configuration for replace action requires 'target_label' value" },
	{ "scrape_configs:\n- job_name: a\n  instance_labels: [a b]\n",
	  "c.yml:3:20: \"a b\" is not a valid label name: " LABEL_NAME_RULE },
	{ "scrape_configs:\n- job_name: a\n  static_configs: [{targets: ['http://x']}]\n",
	  "c.yml:3:31: \"http://x\" is not a valid hostname" },
	{ "scrape_configs:\n- job_name: a\n  static_configs: [{targets: ['[::1]:2', '::1:25024']}]\n",
	  "c.yml:3:42: \"::1:25024\" is IPv6 without brackets: write [::1]:25024" },
	{ "scrape_configs:\n- job_name: a\n  static_configs: [{targets: ['unix:/run/a.sock']}]\n",
	  "c.yml:3:31: \"unix:/run/a.sock\" is not a valid hostname: a job's target names a socket in "
	  "its label __unix_socket__" },
	{ "scrape_configs:\n- job_name: a\n  static_configs: [{targets: [a], labels: {"
	  "__unix_socket__: a}}]\n",
	  "c.yml:3:61: \"a\" is not the absolute path of a socket" },
	{ "scrape_configs:\n- job_name: a\n  profiling_config: {pprof_config: {process_cpu: {path: "
	  "'/p?seconds=3'}}}\n",
	  "c.yml:3:57: path has a query: write path: /p, seconds: 3" },
	{ "scrape_configs:\n- job_name: a\n  profiling_config: {pprof_config: {memory: {path: "
	  "'/p?seconds=3&gc=1&&token=hush&debug=x'}}}\n",
	  "c.yml:3:52: path has a query: write path: /p, delta: true, seconds: 3, "
	  "params: {gc: [1], token: [...], debug: [...]}" },
	{ "scrape_configs:\n- job_name: a\n  profiling_config: {pprof_config: {memory: {path: /p?}}}\n",
	  "c.yml:3:52: path has a query: write path: /p" },
	{ "scrape_configs:\n- job_name: a\n  profiling_config: {path_prefix: '/x?a=b'}\n",
	  "c.yml:3:35: path_prefix has a query: write params" },
	{ "scrape_configs:\n- job_name: a\n  file_sd_configs: [{files: [x.txt]}]\n",
	  "c.yml:3:30: path name \"x.txt\" is not valid for file discovery" },
	{ "scrape_configs:\n- job_name: a\n  dns_sd_configs: [{type: A, port: 80}]\n",
	  "c.yml:3:20: DNS-SD config must contain at least one SRV record name" },
	{ "scrape_configs:\n- job_name: a\n  dns_sd_configs: [{names: [x], type: TXT, port: 80}]\n",
	  "c.yml:3:20: invalid DNS-SD records type TXT" },
	{ "scrape_configs:\n- job_name: a\n  dns_sd_configs: [{names: [x], type: ''}]\n",
	  "c.yml:3:20: invalid DNS-SD records type " },
	{ "scrape_configs:\n- job_name: a\n  dns_sd_configs: [{names: [x]}, {names: [x], type: mx}]\n",
	  "c.yml:3:34: a port is required in DNS-SD configs for all record types except SRV" },
	{ "scrape_configs:\n- job_name: a\n  dns_sd_configs: [{names: [x], type: a, port: 65536}]\n",
	  "c.yml:3:20: port 65536 is not from 1 to 65535" },
	{ "scrape_configs:\n- job_name: a\n  dns_sd_configs: [{names: [x], refresh_interval: 0s}]\n",
	  "c.yml:3:20: refresh_interval of DNS discovery is under 1s" },
	{ "scrape_configs:\n- job_name: a\n  dns_sd_configs: [{names: [x], ports: 1}]\n",
	  "c.yml:3:33: field ports not found in type dns_sd_config; did you mean \"port\"?" },
	{ "scrape_configs:\n- job_name: a\n  dns_sd_configs: [~]\n",
	  "c.yml:3:20: empty or null section in dns_sd_configs" },
	{ "scrape_configs:\n- job_name: a\n  body_size_limit: 10\n",
	  "c.yml:3:20: units: \"10\" needs a unit: B, KB, MB, GB, TB, PB or EB" },
	{ "scrape_configs:\n- job_name: a\n  profiling_config: {pprof_config: {cpu: {enabled: "
	  "true}}}\n",
	  "c.yml:3:37: profile \"cpu\" has no path" },
	{ "scrape_configs:\n- job_name: a\n  profiling_config: {pprof_config: {'a:b': {path: "
	  "/x}}}\n",
	  "c.yml:3:37: \"a:b\" is not a valid profile name: " LABEL_NAME_RULE },
	{ "scrape_configs:\n- job_name: a\n  profiling_config: {pprof_config: {memory: {seconds: "
	  "3}}}\n",
	  "c.yml:3:55: profile \"memory\" has seconds but is not delta: write delta: true" },
	{ "scrape_configs:\n- job_name: a\n  profiling_config: {pprof_config: {process_cpu: "
	  "{seconds: "
	  "61}}}\n",
	  "c.yml:3:37: seconds greater than scrape interval for profile \"process_cpu\" of scrape "
	  "config "
	  "with job name \"a\"" },
	{ "scrape_configs:\n- job_name: a\n  profiling_config: {pprof_config: {memory: {interval: "
	  "1s, "
	  "timeout: 2s}}}\n",
	  "c.yml:3:37: scrape timeout greater than scrape interval for profile \"memory\" of "
	  "scrape "
	  "config with job name \"a\"" },
	{ "scrape_configs:\n- job_name: a\n  profiling_config: {pprof_config: {memory: {kind: {a: "
	  "sum}}}}\n",
	  "c.yml:3:56: kind of sample type \"a\" is not gauge, delta or cumulative" },
	{ "scrape_configs:\n- job_name: a\n  profiling_config: {pprof_config: {memory: {pth: "
	  "/x}}}\n",
	  "c.yml:3:46: field pth not found in type pprof_config; did you mean \"path\"?" },
	{ "scrape_config_files: ['a/*/b.yml']",
	"c.yml:1:23: invalid scrape config file path \"a/*/b.yml\"" },
	{ "scrape_configs:\n- job_name: a\n  basic_auth: {username: u, password: p}\n  "
	  "authorization: "
	  "{credentials: x}\n",
	  "c.yml:4:18: at most one of basic_auth, oauth2 & authorization must be configured" },
	{ "scrape_configs:\n- job_name: a\n  authorization: {type: Basic}\n",
	  "c.yml:3:25: authorization type cannot be set to \"basic\", use \"basic_auth\" instead" },
};
/* clang-format on */

TEST(refused)
{
	refuse_each(refused_rows, sizeof(refused_rows) / sizeof(refused_rows[0]));
}

TEST(alerting)
{
	const char *text = "global: {evaluation_interval: 5s, rule_query_offset: 1m}\n"
					   "rule_files: [rules/*.yml, /srv/a.yml]\n"
					   "alerting:\n"
					   "  alert_relabel_configs: [{regex: secret, action: labeldrop}]\n"
					   "  alertmanagers:\n"
					   "  - static_configs: [{targets: ['a:9093', b]}]\n"
					   "  - {scheme: https, path_prefix: /am, timeout: 3s, api_version: v2,\n"
					   "     basic_auth: {username: u, password_file: pw},\n"
					   "     dns_sd_configs: [{names: [x]}],\n"
					   "     alert_relabel_configs: [{action: labelkeep, regex: a}],\n"
					   "     relabel_configs: [{source_labels: [a], action: keep, regex: x}]}\n";
	const struct alertmanager_config *am;
	struct yaml_problems problems;
	struct config *c;
	struct err err;

	REQUIRE_OK(load(text, &c, &err), &err);
	CHECK_INT(c->global.evaluation_interval_ns, 5 * NS_PER_S);
	CHECK_INT(c->global.rule_query_offset_ns, NS_PER_MIN);
	REQUIRE(c->rule_files_n == 2);
	CHECK_STR(c->rule_files[0], "/etc/epimetheus/rules/*.yml");
	CHECK_STR(c->rule_files[1], "/srv/a.yml");
	CHECK_INT(c->alerting.alert_relabel.n, 1);
	REQUIRE(c->alerting.alertmanagers_n == 2);
	am = &c->alerting.alertmanagers[0];
	CHECK_STR(am->scheme, "http");
	CHECK_STR(am->path_prefix, "/");
	CHECK_INT(am->timeout_ns, 10 * NS_PER_S);
	CHECK(am->http.follow_redirects);
	REQUIRE(am->sd.statics_n == 1);
	CHECK_INT(am->sd.statics[0].targets_n, 2);
	am = &c->alerting.alertmanagers[1];
	CHECK_STR(am->scheme, "https");
	CHECK_STR(am->path_prefix, "/am");
	CHECK_INT(am->timeout_ns, 3 * NS_PER_S);
	CHECK_STR(am->http.password_file, "/etc/epimetheus/pw");
	CHECK_INT(am->sd.sources.n, 1);
	CHECK_INT(am->relabel.n, 1);
	CHECK_INT(am->alert_relabel.n, 1);
	yaml_problems_init(&problems);
	CHECK(config_check_files(c, &problems, &err) == ERR_NOT_FOUND);
	CHECK(strstr(err.msg, "alertmanagers, entry 2: ") == err.msg);
	yaml_problems_release(&problems);
	config_unref(c);

	REQUIRE_OK(load("{}", &c, &err), &err);
	CHECK_INT(c->global.evaluation_interval_ns, NS_PER_MIN);
	CHECK_INT(c->rule_files_n + c->alerting.alertmanagers_n, 0);
	config_unref(c);
}

static const struct profile_config *profile(const struct config *c, const char *name)
{
	static const struct profile_config none;

	for (size_t i = 0; i < c->scrape[0].profiles_n; i++)
		if (str_is(c->scrape[0].profiles[i].name, name))
			return &c->scrape[0].profiles[i];
	return &none;
}

TEST(defaults)
{
	struct config *c;
	struct err err;

	REQUIRE_OK(load("scrape_configs: [{job_name: a}]", &c, &err), &err);
	CHECK_INT(c->global.scrape_interval_ns, 60 * NS_PER_S);
	CHECK_INT(c->global.scrape_timeout_ns, 10 * NS_PER_S);
	REQUIRE(c->scrape_n == 1);
	CHECK_STR(c->scrape[0].job_name, "a");
	CHECK_STR(c->scrape[0].scheme, "http");
	CHECK_INT(c->scrape[0].scrape_interval_ns, 60 * NS_PER_S);
	CHECK_INT(c->scrape[0].scrape_timeout_ns, 10 * NS_PER_S);
	CHECK_INT(c->scrape[0].body_size_limit, 16 << 20);
	CHECK(c->scrape[0].http.follow_redirects);
	CHECK_INT(c->scrape[0].profiles_n, 9);
	CHECK(profile(c, "process_cpu")->enabled && profile(c, "process_cpu")->delta);
	CHECK_STR(profile(c, "memory")->path, "/debug/pprof/allocs");
	CHECK(profile(c, "block")->enabled && profile(c, "mutex")->enabled &&
		profile(c, "goroutine")->enabled);
	CHECK(!profile(c, "threadcreate")->enabled && !profile(c, "fgprof")->enabled);
	CHECK(!profile(c, "wall")->enabled && profile(c, "wall")->delta);
	CHECK(profile(c, "goroutineleak")->enabled && profile(c, "goroutineleak")->optional);
	CHECK_STR(profile(c, "goroutineleak")->path, "/debug/pprof/goroutineleak");
	CHECK_INT(profile_interval_ns(&c->scrape[0], profile(c, "goroutineleak")), 120 * NS_PER_S);
	CHECK(!profile(c, "goroutine")->optional);
	CHECK_INT(profile_interval_ns(&c->scrape[0], profile(c, "goroutine")), 60 * NS_PER_S);
	CHECK_INT(c->scrape[0].instance_labels_n, 2);
	config_unref(c);

	REQUIRE_OK(load("", &c, &err), &err);
	CHECK_INT(c->scrape_n, 0);
	config_unref(c);

	/* a short interval pulls the timeout down with it */
	REQUIRE_OK(load("global: {scrape_interval: 4s}\nscrape_configs: [{job_name: a, "
					"scrape_interval: 2s}]",
				   &c, &err),
		&err);
	CHECK_INT(c->global.scrape_timeout_ns, 4 * NS_PER_S);
	CHECK_INT(c->scrape[0].scrape_timeout_ns, 2 * NS_PER_S);
	config_unref(c);
}

TEST(profiles_merge_field_by_field)
{
	struct config *c;
	struct err err;

	REQUIRE_OK(load("scrape_configs:\n"
					"  - job_name: a\n"
					"    profiling_config:\n"
					"      path_prefix: /pre\n"
					"      pprof_config:\n"
					"        process_cpu: {path: /cpu}\n" /* delta stays */
					"        memory: {enabled: false}\n"
					"        block: {interval: 30s, params: {debug: ['0']}}\n"
					"        goroutine: ~\n"
					"        goroutineleak: {interval: 10s}\n"
					"        fgprof: {path: /fg}\n" /* a path switches it on */
					"        wall: {seconds: 3}\n" /* still off */
					"        mine: {path: /mine, kind: {hits: cumulative, level: gauge}}\n"
					"        off: {enabled: false, path: /off}\n",
				   &c, &err),
		&err);
	CHECK_STR(c->scrape[0].path_prefix, "/pre");
	CHECK_INT(c->scrape[0].profiles_n, 11);
	CHECK(profile(c, "process_cpu")->enabled && profile(c, "process_cpu")->delta);
	CHECK_STR(profile(c, "process_cpu")->path, "/cpu");
	CHECK(!profile(c, "memory")->enabled);
	CHECK_STR(profile(c, "memory")->path, "/debug/pprof/allocs");
	CHECK(profile(c, "block")->enabled);
	CHECK_INT(profile(c, "block")->interval_ns, 30 * NS_PER_S);
	CHECK_INT(profile(c, "block")->params.n, 1);
	CHECK(profile(c, "goroutine")->enabled);
	CHECK(profile(c, "goroutineleak")->enabled && profile(c, "goroutineleak")->optional);
	CHECK_INT(profile_interval_ns(&c->scrape[0], profile(c, "goroutineleak")), 10 * NS_PER_S);
	CHECK(profile(c, "fgprof")->enabled && profile(c, "fgprof")->delta);
	CHECK(!profile(c, "wall")->enabled);
	CHECK_INT(profile(c, "wall")->seconds, 3);
	CHECK(profile(c, "mine")->enabled && !profile(c, "mine")->delta);
	CHECK_INT(profile(c, "mine")->kinds_n, 2);
	CHECK_STR(profile(c, "mine")->kinds[0].sample_type, "hits");
	CHECK_INT(profile(c, "mine")->kinds[0].kind, KIND_CUMULATIVE);
	CHECK(!profile(c, "off")->enabled);
	config_unref(c);
}

TEST(limits_come_from_the_global_part_wherever_it_stands)
{
	struct config *c;
	struct err err;

	REQUIRE_OK(
		load("scrape_configs: [{job_name: a, sample_limit: 5}, {job_name: b, "
			 "body_size_limit: 1KB}]\n"
			 "global: {sample_limit: 9, body_size_limit: 2MB, label_limit: 3, scrape_interval: "
			 "15s}\n",
			&c, &err),
		&err);
	CHECK_INT(c->scrape[0].sample_limit, 5);
	CHECK_INT(c->scrape[1].sample_limit, 9);
	CHECK_INT(c->scrape[0].body_size_limit, 2 << 20);
	CHECK_INT(c->scrape[1].body_size_limit, 1024);
	CHECK_INT(c->scrape[1].label_limit, 3);
	CHECK_INT(c->scrape[1].scrape_interval_ns, 15 * NS_PER_S);
	config_unref(c);
}

TEST(external_labels_are_expanded)
{
	struct config *c;
	struct buf out = { 0 };
	struct err err;

	setenv("EPI_TEST_A", "one", 1);
	REQUIRE_OK(load("global: {external_labels: {a: '$EPI_TEST_A', b: 'x${EPI_TEST_A}y', c: "
					"'$$EPI', d: 'a$', "
					"e: '$EPI_TEST_UNSET', f: '${', g: '$-'}}",
				   &c, &err),
		&err);
	labels_print(&out, c->global.external_labels);
	CHECK_STR(buf_str(&out), "{a=\"one\", b=\"xoney\", c=\"$EPI\", d=\"a$\", f=\"${\", g=\"$-\"}");
	buf_release(&out);
	config_unref(c);
}

TEST(secrets_are_hidden_and_the_rest_is_shown)
{
	struct config *c, *again;
	struct buf out = { 0 };
	struct err err;

	REQUIRE_OK(load("scrape_configs:\n- job_name: a\n  basic_auth:\n    username: u\n    password: "
					"geheim\n"
					"- job_name: b\n  authorization: {credentials: geheim}\n"
					"  http_sd_configs:\n  - url: http://sd/\n    basic_auth: {username: u, "
					"password: geheim}\n"
					"  - {url: 'https://sd/', tls_config: {cert: c, key: geheim}, "
					"http_headers: {X: {secrets: [geheim]}}}\n"
					"- job_name: c\n  proxy_url: http://geheim:geheim@p\n"
					"  proxy_connect_header: {X: [geheim, geheim]}\n"
					"  oauth2: {client_id: me, client_secret: geheim, token_url: "
					"'http://t/?k=geheim', endpoint_params: {x: geheim}, proxy_url: "
					"'http://geheim@q', tls_config: {cert: c, key: geheim}, "
					"proxy_connect_header: {Y: [geheim]}}\n",
				   &c, &err),
		&err);
	config_print(&out, c);
	CHECK(str_find(buf_str(&out), STR("geheim")) < 0);
	CHECK(str_find(buf_str(&out), STR("<secret>")) > 0);
	CHECK_OK(config_load_text("again", STR("."), buf_str(&out), &again, &err), &err);
	if (again)
		CHECK_INT(again->scrape_n, 3);
	if (again)
		CHECK_INT(again->scrape[1].sd.sources.n, 2);
	config_unref(again);
	config_unref(c);
	buf_release(&out);
}

TEST(the_built_in_configuration_scrapes_its_own_cpu)
{
	struct config *c;
	struct buf out = { 0 };
	struct err err;
	size_t on = 0;

	config_builtin_text(&out, "https", "127.0.0.1:7272", "/x \"y");
	REQUIRE_OK(config_load_text("built-in", STR("."), buf_str(&out), &c, &err), &err);
	CHECK_STR(c->path, "");
	CHECK_STR(c->scrape[0].job_name, "epimetheus");
	CHECK_STR(c->scrape[0].scheme, "https");
	CHECK_STR(c->scrape[0].path_prefix, "/x \"y");
	CHECK(c->scrape[0].http.tls_insecure_skip_verify);
	for (size_t i = 0; i < c->scrape[0].profiles_n; i++)
		on += c->scrape[0].profiles[i].enabled;
	CHECK_INT(on, 1);
	CHECK(profile(c, "process_cpu")->enabled);
	CHECK_STR(
		labels_get(c->scrape[0].sd.statics[0].targets[0], STR("__address__")), "127.0.0.1:7272");
	config_unref(c);
	buf_release(&out);
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		CHECK_FAIL("cannot write %s", path);
}

TEST(files_of_jobs)
{
	char dir[] = "/tmp/epimetheus-config-XXXXXX", path[256], want[512];
	struct yaml_problems problems;
	struct config *c;
	struct err err;

	REQUIRE(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/main.yml", dir);
	put(dir, "main.yml",
		"scrape_configs: [{job_name: a, tls_config: {ca_file: ca.pem}}]\n"
		"scrape_config_files: ['job-*.yml', extra.yml]\n"
		"global: {scrape_interval: 7s}\n");
	put(dir, "job-1.yml", "scrape_configs: [{job_name: b}]\n");
	put(dir, "job-2.yml",
		"scrape_configs: [{job_name: c, file_sd_configs: [{files: [t.json]}]}]\n");
	put(dir, "extra.yml", "scrape_configs: [{job_name: d}]\n");
	REQUIRE_OK(config_load_file(path, &c, &err), &err);
	CHECK_INT(c->scrape_n, 4);
	CHECK_STR(c->scrape[2].job_name, "c");
	CHECK_INT(c->scrape[2].scrape_interval_ns, 7 * NS_PER_S);
	CHECK_INT(c->scrape[2].sd.sources.n, 1);
	CHECK_STR(c->path, path);
	snprintf(want, sizeof(want),
		"%s/job-2.yml:1:18: job \"c\": open %s/t.json: No such file or directory", dir, dir);
	yaml_problems_init(&problems);
	CHECK(config_check_files(c, &problems, &err) == ERR_NOT_FOUND);
	REQUIRE(problems.n == 2); /* and job a's certificate */
	CHECK_STR(str_of(problems.v[1].text), want);
	yaml_problems_release(&problems);
	yaml_problems_init(&problems);
	put(dir, "t.json", "[]");
	put(dir, "ca.pem", "");
	CHECK_OK(config_check_files(c, &problems, &err), &err);
	yaml_problems_release(&problems);
	config_unref(c);

	put(dir, "extra.yml", "scrape_configs: [{job_name: b}]\n");
	snprintf(want, sizeof(want),
		"%s/extra.yml:1:18: found multiple scrape configs with job name \"b\"", dir);
	CHECK_ERR(config_load_file(path, &c, &err), &err, ERR_INVALID, want);
	put(dir, "extra.yml", "global: {}\n");
	snprintf(want, sizeof(want),
		"%s/extra.yml:1:1: field global not found in type scrape_config_file", dir);
	CHECK_ERR(config_load_file(path, &c, &err), &err, ERR_INVALID, want);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	snprintf(want, sizeof(want), "open %s: No such file or directory", path);
	CHECK_ERR(config_load_file(path, &c, &err), &err, ERR_NOT_FOUND, want);
}
