/*
 * What Prometheus's clients ask about a server: status, notifications, features, metadata of
 * targets.
 */

#include "base/clock.h"
#include "tests/check.h"
#include "tests/clock_steps.h"
#include "tests/web/grafana.h"

#define DATA(data) "{\"status\":\"success\",\"data\":" data "}\n"

TEST(nothing_is_left_to_replay)
{
	grafana_start();
	CHECK_STR(grafana_get("/api/v1/status/walreplay"), DATA("{\"min\":0,\"max\":0,\"current\":0}"));
	web_set_ready(grafana.web, false); /* Prometheus's page asks while the server starts */
	CHECK_STR(grafana_get("/api/v1/status/walreplay"), DATA("{\"min\":0,\"max\":0,\"current\":0}"));
	grafana_stop();
}

/* tests/e2e/storage.test.mjs has some. */
TEST(windows_of_the_head_are_no_blocks)
{
	grafana_start();
	grafana_fill();
	CHECK_STR(grafana_get("/api/v1/status/tsdb/blocks"), DATA("{\"blocks\":[]}"));
	grafana_stop();
}

TEST(notifications_say_what_is_wrong)
{
	grafana_start();
	CHECK_STR(grafana_get("/api/v1/notifications"), DATA("[]"));
	grafana.reload_failed = true;
	CHECK_STR(grafana_get("/api/v1/notifications"),
		DATA("[{\"text\":\"Configuration reload has failed.\","
			 "\"date\":\"2023-11-14T22:14:20.000Z\",\"active\":true}]"));
	CHECK_STR(grafana_get("/api/v1/notifications/live"), "");
	CHECK_INT(grafana.r.status, 204);
	CHECK_STR(response_header(&grafana.r, "Content-Type"), "");
	grafana_stop();
}

TEST(notifications_say_since_when_the_clock_is_wrong)
{
	clock_begin((T0 + 100) * NS_PER_S);
	grafana_start();
	clock_pass(10 * NS_PER_S, NULL, NULL);
	CHECK_STR(grafana_get("/api/v1/notifications"), DATA("[]"));
	clock_step(-2 * NS_PER_HOUR + 3 * NS_PER_MS);
	clock_pass(2 * NS_PER_MIN, NULL, NULL);
	CHECK_STR(grafana_get("/api/v1/notifications"),
		DATA("[{\"text\":\"The system's clock is 2h behind this server's own time.\","
			 "\"date\":\"2023-11-14T22:15:11.000Z\",\"active\":true}]"));
	grafana_stop();
	clock_use(NULL);
}

/* The categories, and of each what tells that it is the right one. */
TEST(features_by_prometheus_names)
{
	static const char *const parts[] = {
		"{\"status\":\"success\",\"data\":{\"api\":{\"admin\":false,\"exclude_alerts\":true,",
		"\"lifecycle\":false,\"otlp_write_receiver\":false,",
		"\"epimetheus\":{\"files\":false,\"ingest\":true,\"otlp_grpc\":false,\"saved_rules\":false,"
		"\"totals\":true}",
		"\"prometheus\":{\"agent_mode\":false,\"auto_reload_config\":false,\"server_mode\":true}",
		"\"promql\":{\"at_modifier\":true,\"bool\":true,\"by\":true,",
		"\"negative_offset\":true,\"offset\":true,\"on\":true,",
		"\"promql_functions\":{\"merge\":true,",
		"\"abs\":true,",
		"\"promql_operators\":{\"=~\":true,\"!~\":true,\"@\":true,\"+\":true,",
		"\"unless\":true,",
		"\"topk\":true,",
		"\"rules\":{\"concurrent_rule_eval\":false,\"keep_firing_for\":true,\"query_offset\":true}",
		"\"service_discovery_providers\":{\"static\":true,\"file\":true,\"dns\":true,\"http\":true,"
		"\"kubernetes\":true",
		"\"templating_functions\":{\"args\":true,\"externalURL\":true,",
		"\"tsdb\":{\"delayed_compaction\":false,\"exemplar_storage\":false,"
		"\"native_histograms\":false}",
		"\"user\":{\"admin\":true,\"ingest\":true,\"read_all\":true}}}\n",
	};

	grafana_start();
	grafana_get("/api/v1/features");
	CHECK_INT(grafana.r.status, 200);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!grafana_count(parts[i]))
			CHECK_FAIL("no %s in " STR_FMT, parts[i], STR_ARG(buf_str(&grafana.r.body)));
	grafana_stop();
}

/* ---- metadata of targets ---- */

#define CONFIG \
	"scrape_configs:\n" \
	"- job_name: quiet\n" \
	"  scrape_interval: 1h\n" \
	"  profiling_config:\n" \
	"    pprof_config:\n" \
	"      memory: {enabled: false}\n" \
	"      block: {enabled: false}\n" \
	"      mutex: {enabled: false}\n" \
	"  static_configs:\n" \
	"  - targets: ['127.0.0.1:1', '127.0.0.2:1', '127.0.0.3:1']\n"

#define TARGET(n) "{\"target\":{\"instance\":\"127.0.0." #n ":1\",\"job\":\"quiet\"},"
#define SAMPLES \
	"\"type\":\"counter\",\"unit\":\"count\",\"help\":\"samples of process_cpu profiles, counted " \
	"over each " \
	"scrape\",\"profile_type\":\"process_cpu:samples:count:cpu:nanoseconds:delta\"}"
#define CPU_TIME \
	"\"type\":\"counter\",\"unit\":\"nanoseconds\",\"help\":\"cpu of process_cpu profiles, " \
	"counted over " \
	"each scrape\",\"profile_type\":\"process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta\"}"
#define GOROUTINES \
	"\"type\":\"gauge\",\"unit\":\"count\",\"help\":\"goroutine of goroutine profiles, the level " \
	"at " \
	"each scrape\",\"profile_type\":\"goroutine:goroutine:count:goroutine:count\"}"
#define BAD(msg) "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"" msg "\"}"

TEST(targets_have_the_types_that_are_stored_of_them)
{
	static const struct {
		const char *params;
		int status;
		const char *want;
	} table[] = {
		{ "", 200,
			DATA("[" TARGET(1) "\"metric\":\"process_cpu\"," SAMPLES
							   "," TARGET(1) "\"metric\":\"process_cpu\"," CPU_TIME "," TARGET(
								   2) "\"metric\":\"goroutine\"," GOROUTINES "]") },
		{ "?metric=cpu", 200, DATA("[" TARGET(1) SAMPLES "," TARGET(1) CPU_TIME "]") },
		{ "?metric=process_cpu", 200, DATA("[" TARGET(1) SAMPLES "," TARGET(1) CPU_TIME "]") },
		{ "?metric=cpu:samples", 200, DATA("[" TARGET(1) SAMPLES "]") },
		{ "?metric=goroutine:goroutine", 200, DATA("[" TARGET(2) GOROUTINES "]") },
		{ "?metric=heap", 200, DATA("[]") },
		{ "?match_target={instance=~%22.*2:1%22}", 200,
			DATA("[" TARGET(2) "\"metric\":\"goroutine\"," GOROUTINES "]") },
		{ "?match_target={job=%22other%22}", 200, DATA("[]") },
		{ "?match_target=up", 200, DATA("[]") },
		{ "?limit=1&metric=goroutine", 200, DATA("[]") },
		{ "?limit=1", 200,
			DATA("[" TARGET(1) "\"metric\":\"process_cpu\"," SAMPLES
							   "," TARGET(1) "\"metric\":\"process_cpu\"," CPU_TIME "]") },
		{ "?limit=2&metric=goroutine", 200, DATA("[" TARGET(2) GOROUTINES "]") },
		{ "?match_target=x(", 400,
			BAD("invalid parameter \\\"match_target\\\": 1:3: unexpected end of query") },
		{ "?limit=x", 400,
			BAD("invalid parameter \\\"limit\\\": \\\"x\\\" is not a number from 0 on") },
	};
	int64_t now_s = clock_now_ns() / NS_PER_S;
	char path[256];

	grafana_start_targets(CONFIG);
	CHECK_STR(grafana_get("/api/v1/targets/metadata"), DATA("[]"));
	grafana_ingest("job=quiet&instance=127.0.0.1:1", now_s, true, 1, 1, "main.a");
	grafana_ingest("job=quiet&instance=127.0.0.2:1", now_s, false, 1, 1, "main.a");
	grafana_ingest("job=quiet&instance=127.0.0.3:1", T0, false, 1, 1, "main.a"); /* long ago */
	grafana_ingest("job=quiet&instance=127.0.0.4:1", now_s, true, 1, 1, "main.a"); /* no target */
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		snprintf(path, sizeof(path), "/api/v1/targets/metadata%s", table[i].params);
		CHECK_STR(grafana_get(path), table[i].want);
		CHECK_INT(grafana.r.status, table[i].status);
	}
	grafana_stop();
}
