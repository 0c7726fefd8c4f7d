#include "tests/web/grafana.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gzip/gzip.h"
#include "base/json.h"
#include "promql/rules/manager.h"
#include "tsdb/db.h"
#include "web/pyroscope/json.h"

struct grafana grafana;

static void must(enum err_code rc, const struct err *err)
{
	if (!rc)
		return;
	printf("  cannot go on: %s\n", err->msg);
	exit(1);
}

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

static void quit(void *ctx)
{
	(void)ctx;
}

void grafana_start(void)
{
	struct engine_options e = { .timeout_ns = 20 * NS_PER_S,
		.lookback_ns = 5 * NS_PER_MIN,
		.concurrency_max = 4,
		.samples_max = 1000000,
		.memory_bytes_max = 256u << 20 };
	struct web_options w = { .listen_address = "127.0.0.1:0",
		.cors_origin = "http://grafana\\.example",
		.enable_ingest = true,
		.reload = reload,
		.rules = rules,
		.quit = quit };
	struct db_options d;
	struct err err;

	memset(&grafana, 0, sizeof(grafana));
	snprintf(grafana.dir, sizeof(grafana.dir), "/tmp/epi-pyroscope-XXXXXX");
	if (!mkdtemp(grafana.dir))
		exit(1);
	db_options_default(&d);
	d.dir = grafana.dir;
	d.too_old_ns = 100000 * NS_PER_HOUR;
	d.retention_ns = 0;
	must(db_open(&d, &grafana.db, &err), &err);
	e.db = grafana.db;
	must(engine_open(&e, &grafana.engine, &err), &err);
	w.db = grafana.db;
	w.engine = grafana.engine;
	must(web_open(&w, &grafana.web, &err), &err);
	web_set_ready(grafana.web, true);
}

void grafana_stop(void)
{
	struct err err;

	web_close(grafana.web);
	rule_manager_close(grafana.rules);
	engine_close(grafana.engine);
	db_close(grafana.db);
	response_release(&grafana.r);
	must(fs_remove_tree(&fs_posix, grafana.dir, &err), &err);
}

static void post(const char *path, const char *headers, struct str body)
{
	char request[1024];

	snprintf(request, sizeof(request), "POST %s", path);
	peer_ask(web_port(grafana.web), &grafana.r, request, headers, body);
}

/* ---- data ---- */

/* A profile of CPU has a duration of 9 s; one of goroutines has none, so it is a level. */
static void profile(struct buf *gz, bool cpu, int64_t slow, int64_t own, const char *leaf)
{
	const char *names[] = { leaf, "main.handle", "main.main" };
	uint32_t locations[3];
	struct pprof_builder *b;
	struct buf raw = { 0 };
	struct pprof *p;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	must(pprof_builder_open(&a, &b, &err), &err);
	pprof_builder_type(b, cpu ? STR("samples") : STR("goroutine"), STR("count"));
	if (cpu)
		pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	for (int i = 0; i < 3; i++) {
		struct pprof_function fn = { .name = pprof_builder_string(b, str_of(names[i])) };
		struct pprof_line line = { .function = pprof_builder_function(b, &fn), .line = i + 1 };
		struct pprof_location l = { .address = 4096u + (unsigned)i, .mapping = PPROF_NONE };

		locations[i] = pprof_builder_location(b, l, &line, 1);
	}
	for (int i = 0; i < 2; i++) {
		int64_t n = i ? own : slow, values[2] = { n, n * 10000000 };

		pprof_builder_sample(b, locations + i, 3 - (uint32_t)i, NULL, 0, values);
	}
	p = pprof_builder_profile(b);
	p->duration_nanos = cpu ? 9 * NS_PER_S : 0;
	p->period_type.type = pprof_builder_string(b, cpu ? STR("cpu") : STR("goroutine"));
	p->period_type.unit = pprof_builder_string(b, cpu ? STR("nanoseconds") : STR("count"));
	must(pprof_builder_finish(b, &p, &err), &err);
	must(pprof_encode(p, &raw, &err), &err);
	must(gzip_compress(buf_str(&raw), 1, gz, &err), &err);
	buf_release(&raw);
	arena_release(&a);
}

void grafana_ingest(
	const char *labels, int64_t at_s, bool cpu, int64_t slow, int64_t own, const char *leaf)
{
	struct err err = { .msg = "a profile is not taken" };
	struct buf gz = { 0 };
	char path[256];

	profile(&gz, cpu, slow, own, leaf);
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
