#include "tests/web/grafana.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "promql/rules/report.h"
#include "scrape/manager.h"
#include "web/pyroscope/json.h"

struct grafana grafana;

static enum err_code reload(void *ctx, struct err *err)
{
	(void)ctx;
	return err_set(err, ERR_INVALID, "not here");
}

static struct rule_manager *rules(void *ctx)
{
	(void)ctx;
	return grafana.rules;
}

/* What another node would answer: all goes through the bytes of a report. */
static enum err_code rules_report(
	void *ctx, struct arena *a, struct rules_report *out, struct err *err)
{
	struct buf bytes = { 0 };
	struct rules_snapshot own;
	enum err_code rc;

	(void)ctx;
	*out = (struct rules_report){ .written_ns = 0 };
	if (!grafana.rules)
		return ERR_OK;
	if (!grafana.rules_elsewhere)
		return rule_manager_snapshot(grafana.rules, a, &out->rules, err);
	if ((rc = rule_manager_snapshot(grafana.rules, a, &own, err)))
		return rc;
	rules_report_print(&bytes, &own, STR("node-1"), T0 * NS_PER_S, RULES_REPORT_BYTES_MAX);
	rules_snapshot_release(&own);
	rc = rules_report_read(buf_str(&bytes), a, out, err);
	out->warnings = grafana.rules_told;
	out->warnings_n = grafana.rules_told_n;
	buf_release(&bytes);
	return rc;
}

static struct config *config(void *ctx)
{
	(void)ctx;
	return config_ref(grafana.config);
}

static void quit(void *ctx)
{
	(void)ctx;
}

static void reload_state(void *ctx, bool *ok, int64_t *tried_ns, int64_t *at_ns)
{
	(void)ctx;
	*ok = !grafana.reload_failed;
	*tried_ns = (T0 + 60) * NS_PER_S;
	*at_ns = T0 * NS_PER_S;
}

/* Nothing answers at the targets of these tests, so only numbers are stored. */
static struct scrape_manager *scrape(void)
{
	struct scrape_manager_options o = { .sink = &grafana.storage.sink.sink, .workers = 1 };
	struct scrape_manager *m;
	struct err err;

	must(scrape_manager_open(&o, &m, &err), &err);
	must(scrape_manager_apply(m, grafana.config, &err), &err);
	return m;
}

static void start_with(const char *text, struct web_options w)
{
	const struct web_options all = w;
	struct err err;

	w.debuginfo = NULL;
	w.files = NULL;
	memset(&grafana, 0, sizeof(grafana));
	must(config_load_text("test.yml", STR("."), str_of(text), &grafana.config, &err), &err);
	must(web_open(&w, &grafana.web, &err), &err); /* as the server does: first without its parts */
	w = all;
	storage_open(&grafana.storage);
	w.db = grafana.storage.db;
	w.sink = &grafana.storage.sink.sink;
	w.engine = grafana.storage.engine;
	if (grafana.config->scrape_n)
		w.manager = grafana.manager = scrape();
	must(web_set_parts(grafana.web, &w, &err), &err);
	web_set_ready(grafana.web, true);
}

static void start(
	const char *text, const char *grpc_address, struct debuginfo *debuginfo, struct kept *files)
{
	struct web_options w = { .listen_address = "127.0.0.1:0",
		.otlp_grpc_listen_address = grpc_address,
		.debuginfo = debuginfo,
		.cors_origin = "http://grafana\\.example",
		.enable_ingest = true,
		.enable_mcp = true,
		.enable_admin_api = files,
		.enable_files = files,
		.files = files,
		.reload = reload,
		.rules = rules,
		.rules_report = rules_report,
		.config = config,
		.reload_state = reload_state,
		.quit = quit };

	start_with(text, w);
}

void grafana_start(void)
{
	start("{}", NULL, NULL, NULL);
}

void grafana_start_targets(const char *text)
{
	start(text, NULL, NULL, NULL);
}

void grafana_start_users(const char *web_config_file)
{
	struct web_options w = { .listen_address = "127.0.0.1:0",
		.otlp_grpc_listen_address = "127.0.0.1:0",
		.config_file = web_config_file,
		.lookback_ns = 1000000 * NS_PER_HOUR,
		.enable_ingest = true,
		.enable_mcp = true,
		.enable_admin_api = true,
		.enable_lifecycle = true,
		.reload = reload,
		.rules = rules,
		.config = config,
		.reload_state = reload_state,
		.quit = quit };

	start_with("{}", w);
}

void grafana_start_grpc(void)
{
	start("{}", "127.0.0.1:0", NULL, NULL);
}

void grafana_start_debuginfo(struct debuginfo *debuginfo)
{
	start("{}", NULL, debuginfo, NULL);
}

void grafana_start_files(struct kept *files)
{
	start("{}", NULL, NULL, files);
}

void grafana_stop(void)
{
	web_close(grafana.web);
	scrape_manager_close(grafana.manager);
	rule_manager_close(grafana.rules);
	storage_close(&grafana.storage);
	config_unref(grafana.config);
	response_release(&grafana.r);
}

static void post(const char *path, const char *headers, struct str body)
{
	char request[1024];

	snprintf(request, sizeof(request), "POST %s", path);
	if (!headers[0] && grafana.headers)
		headers = grafana.headers;
	peer_ask(web_port(grafana.web), &grafana.r, request, headers, body);
}

/* ---- data ---- */

void grafana_ingest(
	const char *labels, int64_t at_s, bool cpu, int64_t slow, int64_t own, const char *leaf)
{
	struct err err = { .msg = "a profile is not taken" };
	struct buf gz = { 0 };
	char path[256];

	profile_gz(&gz, &(struct pushed_profile){ .cpu = cpu, .slow = slow, .own = own, .leaf = leaf });
	snprintf(path, sizeof(path), "/api/v1/ingest?name=%s&time=%lld&interval=10s&%s",
		cpu ? "cpu" : "goroutine", (long long)at_s, labels);
	post(path, "", buf_str(&gz));
	must(grafana.r.status == 200 ? ERR_OK : ERR_INVALID, &err);
	buf_release(&gz);
}

void grafana_fill(void)
{
	for (int64_t i = 0; i < 3; i++) {
		grafana_ingest("job=demo&version=v1", T0 + 10 * i, true, 1, 5, "main.slow");
		grafana_ingest("job=demo&version=v2", T0 + 10 * i, true, 3, 5, "main.slow");
		grafana_ingest("job=demo&version=v1", T0 + 10 * i, false, 3 * (i + 1), i + 1, "main.wait");
	}
}

/* ---- asking ---- */

struct str grafana_get(const char *path)
{
	char request[1024];

	snprintf(request, sizeof(request), "GET %s", path);
	peer_ask(web_port(grafana.web), &grafana.r, request, grafana.headers ? grafana.headers : "",
		STR(""));
	return buf_str(&grafana.r.body);
}

size_t grafana_count(const char *text)
{
	struct str body = buf_str(&grafana.r.body);
	size_t n = 0, len = strlen(text);

	/* Not by memmem(), of which a sanitizer looks at all that is left, each time. */
	for (size_t at = 0; at + len <= body.len; at++)
		n += body.ptr[at] == text[0] && memcmp(body.ptr + at, text, len) == 0;
	return n;
}

#define M(name) &epimetheus__pyroscope__##name##__descriptor

static const struct {
	const char *method;
	const ProtobufCMessageDescriptor *response;
} responses[] = {
	{ "ProfileTypes", M(profile_types_response) },
	{ "LabelNames", M(label_names_response) },
	{ "LabelValues", M(label_values_response) },
	{ "Series", M(series_response) },
	{ "SelectSeries", M(select_series_response) },
	{ "SelectMergeStacktraces", M(select_merge_stacktraces_response) },
	{ "SelectMergeProfile", &epimetheus__pprof__profile__descriptor },
	{ "Diff", M(diff_response) },
	{ "GetProfileStats", M(get_profile_stats_response) },
};

void grafana_call(const char *method, const char *headers, struct str body)
{
	char path[128];

	snprintf(path, sizeof(path), "/querier.v1.QuerierService/%s", method);
	post(path, headers, body);
}

void grafana_pack(const char *method, const char *json, struct buf *out)
{
	ProtobufCMessage *m = NULL;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	for (size_t i = 0; i < pyroscope_methods_n; i++)
		if (!strcmp(pyroscope_methods[i].name, method))
			must(pyroscope_json_read(&a, pyroscope_methods[i].request, str_of(json), &m, &err),
				&err);
	if (m && buf_reserve(out, protobuf_c_message_get_packed_size(m) + 1))
		out->len += protobuf_c_message_pack(m, (uint8_t *)out->ptr);
	arena_release(&a);
}

static bool is(const char *method, const char *what, struct str got, const char *want)
{
	if (str_is(got, want))
		return true;
	printf("  %s in %s: \"" STR_FMT "\", want \"%s\"\n", method, what, STR_ARG(got), want);
	return false;
}

static bool is_status(const char *method, int status, const char *type)
{
	if (grafana.r.status == status && str_is(response_header(&grafana.r, "Content-Type"), type))
		return true;
	printf("  %s: %d " STR_FMT " \"" STR_FMT "\", want %d %s\n", method, grafana.r.status,
		STR_ARG(response_header(&grafana.r, "Content-Type")), STR_ARG(buf_str(&grafana.r.body)),
		status, type);
	return false;
}

static bool says_proto(const char *method, const char *json, const char *want)
{
	struct buf request = { 0 }, text = { 0 };
	ProtobufCMessage *m = NULL;
	struct json j;
	bool ok;

	grafana_pack(method, json, &request);
	grafana_call(method, AS_PROTO, buf_str(&request));
	ok = is_status(method, 200, "application/proto");
	for (size_t i = 0; i < sizeof(responses) / sizeof(responses[0]); i++)
		if (!strcmp(responses[i].method, method))
			m = protobuf_c_message_unpack(responses[i].response, NULL, grafana.r.body.len,
				(const uint8_t *)(grafana.r.body.ptr ? grafana.r.body.ptr : ""));
	if (m) {
		json_init(&j, &text);
		pyroscope_json_write(&j, m);
		protobuf_c_message_free_unpacked(m, NULL);
	}
	ok = is(method, "protobuf", buf_str(&text), want) && ok;
	buf_release(&request);
	buf_release(&text);
	return ok;
}

bool grafana_says(const char *method, const char *json, const char *want)
{
	bool ok;

	grafana_call(method, AS_JSON, str_of(json));
	ok = is_status(method, 200, "application/json") &&
		is(method, "JSON", buf_str(&grafana.r.body), want);
	return says_proto(method, json, want) && ok;
}

bool grafana_refuses(
	const char *method, const char *json, int status, const char *code, const char *message)
{
	struct buf want = { 0 }, request = { 0 };
	struct json j;
	bool ok;

	json_init(&j, &want);
	json_object(&j);
	json_key(&j, "code");
	json_cstr(&j, code);
	json_key(&j, "message");
	json_cstr(&j, message);
	json_object_end(&j);
	buf_add_char(&want, '\0');
	grafana_call(method, AS_JSON, str_of(json));
	ok = is_status(method, status, "application/json") &&
		is(method, "JSON", buf_str(&grafana.r.body), want.ptr);
	grafana_pack(method, json, &request);
	grafana_call(method, AS_PROTO, buf_str(&request));
	ok = is_status(method, status, "application/json") &&
		is(method, "protobuf", buf_str(&grafana.r.body), want.ptr) && ok;
	buf_release(&want);
	buf_release(&request);
	return ok;
}
