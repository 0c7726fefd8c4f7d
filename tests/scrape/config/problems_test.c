/* All errors and warnings of a file at once; what is foreign, and what to write instead. */
#include "base/clock.h"
#include "base/yaml/problems.h"
#include "discovery/foreign_sd.h"
#include "scrape/config/foreign.h"
#include "tests/scrape/config/refused.h"

/* Reads a text; every problem is a line, "warning: " in front of what is none. */
static enum err_code read_all(
	const char *text, const struct config_reading *how, struct buf *out, struct err *err)
{
	struct yaml_problems p;
	struct config *c = NULL;
	enum err_code rc;

	yaml_problems_init(&p);
	rc = config_read_text("c.yml", STR("/etc/epimetheus"), str_of(text), how, &p, &c, err);
	CHECK((rc != ERR_OK) == (p.errors_n > 0) && (rc == ERR_OK) == (c != NULL));
	for (size_t i = 0; i < p.n; i++)
		buf_printf(out, "%s%s\n", p.v[i].code ? "" : "warning: ", p.v[i].text);
	config_unref(c);
	yaml_problems_release(&p);
	return rc;
}

#define JOB "scrape_configs:\n- job_name: a\n"

/* clang-format off */
static const struct row {
	const char *text, *want;
	bool ignore_foreign;
} rows[] = {
	{ "nope: 1\nglobal: {scrape_interval: 10}\nrule_files: ['']\nalerting: [a]\n"
	  "push_config: {a: b}\ndebuginfod: [{}]\nsource_links: [{}]\nbucket: {}\n"
	  "scrape_configs:\n- {}\n- ~\n- job_name: c\n  scheme: ftp\n  params: [a]\n  tls: {}\n",
	  "c.yml:1:1: field nope not found in type config\n"
	  "c.yml:2:27: not a valid duration string: \"10\"\n"
	  "c.yml:3:14: invalid rule file path \"\"\n"
	  "c.yml:4:11: cannot unmarshal !!seq into alerting_config\n"
	  "c.yml:5:15: field a not found in type push_config\n"
	  "c.yml:6:14: URL is missing\n"
	  "c.yml:7:16: template is missing\n"
	  "c.yml:8:9: endpoint: URL is missing\n"
	  "c.yml:11:3: empty or null scrape config section\n"
	  "c.yml:14:11: expected a map of names to lists of values\n"
	  "c.yml:15:3: field tls not found in type scrape_config\n" },
	/* what depends on a wrong `global` is not checked; without one it is */
	{ "scrape_configs:\n- {}\n- job_name: c\n  scheme: ftp\n- job_name: d\n- job_name: d\n",
	  "c.yml:2:3: job_name is empty\nc.yml:4:11: scheme \"ftp\" is not http or https\n"
	  "c.yml:6:3: found multiple scrape configs with job name \"d\"\n" },
	/* within lists */
	{ JOB "  relabel_configs:\n  - {target_label: a, regex: '('}\n  - {action: labeldrop}\n"
	  "  - {action: nope}\n  - {action: keep, modulo: 1}\n"
	  "  static_configs:\n  - {target: [a]}\n  - {targets: a}\n"
	  "  dns_sd_configs: [{names: []}, {type: A, names: [x]}, ~]\n"
	  "  profiling_config:\n    pprof_config:\n      cpu: {}\n      memory: {seconds: 3}\n"
	  "      block: {pth: /x, enabled: 5}\n",
	  "c.yml:4:30: error parsing regexp: missing ): (\n"
	  "c.yml:6:14: unknown relabel action \"nope\"\n"
	  "c.yml:7:20: field modulo not found in type relabel_config; did you mean \"modulus\"?\n"
	  "c.yml:9:6: field target not found in type target group; did you mean \"targets\"?\n"
	  "c.yml:10:15: expected a list of addresses\n"
	  "c.yml:11:20: DNS-SD config must contain at least one SRV record name\n"
	  "c.yml:11:33: a port is required in DNS-SD configs for all record types except SRV\n"
	  "c.yml:11:56: empty or null section in dns_sd_configs\n"
	  "c.yml:15:25: profile \"memory\" has seconds but is not delta: write delta: true\n"
	  "c.yml:16:15: field pth not found in type pprof_config; did you mean \"path\"?\n"
	  "c.yml:16:33: cannot unmarshal !!int `5` into bool\n" },
	{ "alerting:\n  alertmanagers: [~, {scheme: ftp}, {azure_sd_configs: []}]\n",
	  "c.yml:2:19: empty or null alertmanager config section\n"
	  "c.yml:2:31: scheme \"ftp\" is not http or https\n"
	  "c.yml:2:38: field azure_sd_configs not found in type alertmanager_config: write "
	  "http_sd_configs, with a server that lists the targets, or file_sd_configs\n" },
	/* keys that are there twice, with the rest */
	{ "a: 1\na: 2\nb: 1\nglobal: {}\nglobal: {x: 1}\n",
	  "c.yml:1:1: field a not found in type config\n"
	  "c.yml:2:1: mapping key \"a\" already defined at line 1\n"
	  "c.yml:3:1: field b not found in type config\n"
	  "c.yml:5:1: mapping key \"global\" already defined at line 4\n" },
	/* libyaml stops */
	{ "a: {b: 1, b: 2}\nb: [\n",
	  "c.yml:1:11: mapping key \"b\" already defined at line 1\n"
	  "c.yml:3:1: did not find expected node content (while parsing a flow node at 3:1)\n" },
	/* Prometheus's */
	{ JOB "  metrics_path: /m\n  honor_timestamps: false\n"
	  "  scrape_protocols: [PrometheusText0.0.4]\n"
	  "  metric_relabel_configs: []\n  enable_compression: true\n"
	  "  always_scrape_classic_histograms: 1\n",
	  "warning: c.yml:3:3: metrics_path is not used here: each profile has its own path, below "
	  "profiling_config\n"
	  "warning: c.yml:4:3: honor_timestamps is not used here: a profile stands at the end of its "
	  "scrape\n"
	  "warning: c.yml:5:3: scrape_protocols is not used here: profiles come in pprof's format\n"
	  "warning: c.yml:6:3: metric_relabel_configs is not used here: samples of metrics are not "
	  "relabelled; relabel_configs changes the labels of targets\n"
	  "warning: c.yml:7:3: enable_compression is not used here: profiles are compressed by nature\n"
	  "warning: c.yml:8:3: always_scrape_classic_histograms is not used here: profiles have no "
	  "histograms\n" },
	{ JOB "  metric_relabel_configs: [{action: labeldrop, regex: x}]\n",
	  "c.yml:3:3: field metric_relabel_configs not found in type scrape_config: samples of metrics "
	  "are not relabelled; relabel_configs changes the labels of targets\n" },
	{ "global: {query_log_file: x}\nremote_write: [{url: x}]\n",
	  "warning: c.yml:1:10: query_log_file is not used here: queries are not logged to a file\n"
	  "c.yml:2:1: field remote_write not found in type config: nothing is sent elsewhere; a "
	  "Prometheus can scrape recorded costs at /metrics/recorded; --config.ignore-foreign skips "
	"the field\n" },
	{ "remote_write: [{url: x}]\nstorage: {tsdb: {}}\n",
	  "warning: c.yml:1:1: remote_write is not used here: nothing is sent elsewhere; a Prometheus "
	  "can scrape recorded costs at /metrics/recorded\n"
	  "warning: c.yml:2:1: storage is not used here: the flags --storage.* say how profiles are "
	  "stored\n", true },
	{ JOB "  relabel_configs:\n  - {target_label: __metrics_path__, replacement: /x}\n"
	  "  - {source_labels: [a, __metrics_path__], target_label: path}\n",
	  "warning: c.yml:4:20: __metrics_path__ is not used here: the label with a profile's path is "
	  "__profile_path__\n"
	  "warning: c.yml:5:25: __metrics_path__ is empty here: the label with a profile's path is "
	  "__profile_path__\n" },
	/* Parca's */
	{ "object_storage: {}\n" JOB "  scrape_interval: 10s\n  scrape_timeout: 13s\n"
	  "  normalized_addresses: true\n"
	  "  profiling_config: {pprof_config: {memory: {keep_sample_type: []}}}\n",
	  "c.yml:1:1: field object_storage not found in type config: write `bucket` for an object "
	  "store; without it profiles are on the disk, in --storage.tsdb.path\n"
	  "warning: c.yml:5:19: scrape_timeout is cut to the scrape interval; a profile that is "
	  "measured over some seconds has so much longer\n"
	  "warning: c.yml:6:3: normalized_addresses is not used here: a profile's mappings say how its "
	  "addresses are meant\n"
	  "warning: c.yml:7:46: keep_sample_type is not used here: all sample types are kept, a query "
	  "chooses\n" },
	/* godeltaprof's */
	{ JOB "  profiling_config: {path_prefix: /x, pprof_config: {memory: {path: /p/delta_heap},\n"
	  "    mutex: {path: /p/delta_mutex, enabled: false}}}\n",
	  "warning: c.yml:3:54: \"/p/delta_heap\" gives what was added since anybody asked it, and is "
	  "stored so: a failed scrape, or another who asks, leaves a gap. allocs beside it has none: "
	  "there the server makes the differences\n" },
	{ JOB "  static_configs: [{targets: ['::1:25024', a]}, {targets: ['2001:db8::1']}]\n"
	  "  scheme: ftp\n",
	  "c.yml:4:11: scheme \"ftp\" is not http or https\n" },
	{ JOB "  static_configs: [{targets: ['::1:25024', a]}, {targets: ['2001:db8::1']}]\n",
	  "c.yml:3:31: \"::1:25024\" is IPv6 without brackets: write [::1]:25024\n"
	  "c.yml:3:60: \"2001:db8::1\" is IPv6 without brackets: write [2001:db8::1]\n" },
	/* Pyroscope's and Alloy's */
	{ JOB "  static_configs: [{application: a, spy-name: gospy, targets: [b]}]\n",
	  "c.yml:3:21: field application not found in type target group: write it as a label, "
	  "service_name\n"
	  "warning: c.yml:3:37: spy-name is not used here: profiles say themselves what made them\n" },
	{ "scrape-configs: []\n" JOB "  forward_to: []\n  profiling_config: {profile.memory: {}}\n",
	  "c.yml:1:1: field scrape-configs not found in type config: it is Pyroscope's; `epitool "
	  "convert pyroscope FILE` writes what fits here\n"
	  "c.yml:4:3: field forward_to not found in type scrape_config: profiles are stored by this "
	  "server\n"
	  "c.yml:5:22: field profile.memory not found in type profiling_config: write it without "
	  "\"profile.\" below pprof_config\n" },
};
/* clang-format on */

TEST(all_at_once)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config_reading how = { .ignore_foreign = rows[i].ignore_foreign };
		struct buf got = { 0 };
		struct err err;

		(void)read_all(rows[i].text, &how, &got, &err);
		if (!str_is(buf_str(&got), rows[i].want))
			CHECK_FAIL("row %zu:\n" STR_FMT "want\n%s", i, STR_ARG(buf_str(&got)), rows[i].want);
		buf_release(&got);
	}
}

TEST(one_message_has_the_first_and_the_number_of_the_others)
{
	static const char *const refused[][2] = {
		{ "b: 1\nglobal: {scrape_interval: x}\n",
			"c.yml:1:1: field b not found in type config (and 1 more error; `epitool check config` "
			"lists them)" },
		{ "scrape_configs: [~, ~, ~]\n",
			"c.yml:1:18: empty or null scrape config section (and 2 more errors; `epitool check "
			"config` lists them)" },
	};

	refuse_each(refused, 2);
}

TEST(a_hundred_errors_are_enough)
{
	struct yaml_problems p;
	struct buf text = { 0 };
	struct config *c;
	struct err err;

	for (int i = 0; i < 1000; i++)
		buf_printf(&text, "field%d: 1\n", i);
	yaml_problems_init(&p);
	CHECK(config_read_text("c.yml",
		STR("."), buf_str(&text), &(struct config_reading){ 0 }, &p, &c, &err) == ERR_INVALID);
	CHECK_INT(p.n, YAML_PROBLEMS_MAX);
	CHECK_INT(p.errors_n, YAML_PROBLEMS_MAX);
	CHECK_STR(str_of(p.v[0].text), "c.yml:1:1: field field0 not found in type config");
	yaml_problems_release(&p);
	buf_release(&text);
}

/* A row that became a field of ours would never be looked at. */
TEST(nothing_foreign_is_ours)
{
	static const struct {
		const struct yaml_schema *schema;
		const struct yaml_foreign *table;
	} tables[] = {
		{ &config_file_schema, config_foreign },
		{ &config_global_schema, global_foreign },
		{ &config_job_schema, job_foreign },
		{ &config_job_schema, sd_foreign },
		{ &config_profile_schema, profile_foreign },
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct yaml_foreign *f = tables[i].table; f->name; f++) {
			if (yaml_field_find(tables[i].schema, str_of(f->name)))
				CHECK_FAIL("%s is a field of %s", f->name, tables[i].schema->name);
			if (yaml_foreign_find(tables[i].schema, str_of(f->name)) != f)
				CHECK_FAIL("%s is there twice", f->name);
		}
}

TEST(a_timeout_longer_than_the_interval_is_cut)
{
	struct config *c;
	struct err err;

	REQUIRE_OK(load(JOB "  scrape_interval: 10s\n  scrape_timeout: 13s\n", &c, &err), &err);
	CHECK_INT(c->scrape[0].scrape_timeout_ns, 10 * NS_PER_S);
	config_unref(c);
}
