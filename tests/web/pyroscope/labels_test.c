/* Labels in Grafana's calls: names of any characters, labels of samples, what names a service. */
#include "tests/check.h"
#include "tests/web/grafana.h"

#define CHECK_SAYS(method, json, want) CHECK(grafana_says(method, json, want))
#define ROOT "local root span id"
#define SIZE \
	"gr\xc3\xb6\xc3\x9f" \
	"e"

/* Costs `slow` and `own` samples of 10 ms, which all have the label key=value; key NULL: none. */
static void ingest(const char *labels, const char *key, const char *value, int64_t at_s)
{
	struct pushed_profile p = {
		.cpu = true, .slow = 3, .own = 1, .leaf = "main.f", .key = key, .handler = value
	};
	struct buf gz = { 0 }, path = { 0 };

	profile_gz(&gz, &p);
	buf_printf(&path, "POST /api/v1/ingest?name=process_cpu&time=%lld&%s", (long long)at_s, labels);
	buf_add_char(&path, '\0');
	peer_ask(web_port(grafana.web), &grafana.r, path.ptr, "", buf_str(&gz));
	CHECK_INT(grafana.r.status, 200);
	buf_release(&gz);
	buf_release(&path);
}

/* The answer to SelectSeries grouped by one label, as its values and the samples of each. */
static void check_groups(const char *selector, const char *by, const char *want)
{
	struct buf json = { 0 }, got = { 0 };
	const char *at;

	buf_printf(&json, "{" OF_CPU SPAN ",\"step\":40,\"labelSelector\":\"%s\",\"groupBy\":[\"%s\"]}",
		selector, by);
	grafana_call("SelectSeries", AS_JSON, buf_str(&json));
	CHECK_INT(grafana.r.status, 200);
	buf_add_char(&grafana.r.body, '\0');
	for (at = grafana.r.body.ptr; (at = strstr(at, "\"points\":[{\"value\":"));) {
		const char *name = at - 1, *value = at += strlen("\"points\":[{\"value\":");

		while (name > grafana.r.body.ptr && *name != '{')
			name--;
		name = name[1] == '"' ? strstr(name, "\"value\":\"") : NULL;
		if (name && name < value)
			buf_printf(&got, "%.*s", (int)strcspn(name + 9, "\""), name + 9);
		buf_printf(&got, "=%g ", strtod(value, NULL) / 1e7);
	}
	CHECK_STR(buf_str(&got), want);
	buf_release(&json);
	buf_release(&got);
}

TEST(labels_of_any_name_are_listed_matched_and_grouped)
{
	grafana_start();
	ingest("job=a", ROOT, "583", T0);
	ingest("job=b", ROOT, "7", T0);
	ingest("job=b", SIZE, "XL", T0 + 10);
	CHECK_SAYS(
		"LabelNames", "{" SPAN "}", "{\"names\":[\"__name__\",\"" SIZE "\",\"job\",\"" ROOT "\"]}");
	CHECK_SAYS("LabelValues", "{\"name\":\"" ROOT "\"," SPAN "}", "{\"names\":[\"583\",\"7\"]}");
	CHECK_SAYS("LabelValues", "{\"name\":\"" ROOT "\",\"matchers\":[\"{job=\\\"b\\\"}\"]," SPAN "}",
		"{\"names\":[\"7\"]}");
	CHECK_SAYS("Series",
		"{\"labelNames\":[\"job\",\"" ROOT "\"],\"matchers\":[\"{\\\"" ROOT
		"\\\"=\\\"583\\\"}\"]," SPAN "}",
		"{\"labelsSet\":[{\"labels\":[{\"name\":\"job\",\"value\":\"a\"}]},"
		"{\"labels\":[{\"name\":\"job\",\"value\":\"b\"}]}]}");
	check_groups("{}", ROOT, "=4 583=4 7=4 ");
	check_groups("{\\\"" ROOT "\\\"=\\\"583\\\"}", "job", "a=4 ");
	check_groups("{\\\"" ROOT "\\\"!=\\\"583\\\"}", SIZE, "=4 XL=4 ");
	grafana_call("SelectMergeStacktraces", AS_JSON,
		STR("{" OF_CPU SPAN ",\"labelSelector\":\"{\\\"" ROOT "\\\"=\\\"583\\\"}\"}"));
	CHECK_INT(grafana_count("\"total\":\"40000000\""), 1);
	grafana_stop();
}

/* A label of samples that their series has too is sample_<name>. */
TEST(what_can_be_grouped_by_is_listed)
{
	static const char *const where[] = { "", ",\"matchers\":[\"{__name__=\\\"process_cpu\\\"}\"]" };
	char json[256];

	grafana_start();
	ingest("job=a", "job", "j1", T0);
	ingest("job=a&pod=p", "pod", "s1", T0);
	ingest("job=a", "pod", "s2", T0 + 10);
	for (size_t i = 0; i < 2; i++) {
		snprintf(json, sizeof(json), "{" SPAN "%s}", where[i]);
		CHECK_SAYS("LabelNames", json,
			"{\"names\":[\"__name__\",\"job\",\"pod\",\"sample_job\",\"sample_pod\"]}");
		snprintf(json, sizeof(json), "{\"name\":\"sample_job\"," SPAN "%s}", where[i]);
		CHECK_SAYS("LabelValues", json, "{\"names\":[\"j1\"]}");
		snprintf(json, sizeof(json), "{\"name\":\"job\"," SPAN "%s}", where[i]);
		CHECK_SAYS("LabelValues", json, "{\"names\":[\"a\"]}");
	}
	check_groups("{}", "sample_job", "=8 j1=4 ");
	check_groups("{sample_job=\\\"j1\\\"}", "sample_job", "j1=4 ");
	grafana_stop();
}
