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
	CHECK_SAYS("LabelNames", "{" SPAN "}",
		"{\"names\":[\"__name__\",\"" SIZE "\",\"job\",\"" ROOT "\",\"service_name\"]}");
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
			"{\"names\":[\"__name__\",\"job\",\"pod\",\"sample_job\",\"sample_pod\",\"service_"
			"name\"]}");
		snprintf(json, sizeof(json), "{\"name\":\"sample_job\"," SPAN "%s}", where[i]);
		CHECK_SAYS("LabelValues", json, "{\"names\":[\"j1\"]}");
		snprintf(json, sizeof(json), "{\"name\":\"job\"," SPAN "%s}", where[i]);
		CHECK_SAYS("LabelValues", json, "{\"names\":[\"a\"]}");
	}
	check_groups("{}", "sample_job", "=8 j1=4 ");
	check_groups("{sample_job=\\\"j1\\\"}", "sample_job", "j1=4 ");
	grafana_stop();
}

/* Grafana lists services by service_name, which a scraped target does not have. */
TEST(the_job_names_the_service_where_nothing_else_does)
{
	static const struct {
		const char *matcher, *services, *jobs;
	} rows[] = {
		{ "", "=4 shop=8 vault=4 ", "=4 bank=8 shop=4 " },
		{ "service_name=\\\"shop\\\"", "shop=8 ", "bank=4 shop=4 " },
		{ "service_name=\\\"bank\\\"", "", "" },
		{ "service_name!=\\\"shop\\\"", "=4 vault=4 ", "=4 bank=4 " },
		{ "service_name=~\\\"sh.p|x\\\"", "shop=8 ", "bank=4 shop=4 " },
		{ "service_name=~\\\"shop|vault\\\"", "shop=8 vault=4 ", "bank=8 shop=4 " },
		{ "service_name!~\\\"shop|x\\\"", "=4 vault=4 ", "=4 bank=4 " },
		{ "service_name!~\\\".*a.*\\\"", "=4 shop=8 ", "=4 bank=4 shop=4 " },
		{ "service_name=\\\"\\\"", "=4 ", "=4 " },
		{ "service_name!=\\\"\\\",service_name!=\\\"vault\\\"", "shop=8 ", "bank=4 shop=4 " },
		{ "service_name=\\\"shop\\\",job=\\\"shop\\\"", "shop=4 ", "shop=4 " },
	};
	char selector[128];

	grafana_start();
	ingest("job=shop", NULL, NULL, T0);
	ingest("job=bank&service_name=shop", NULL, NULL, T0);
	ingest("job=bank&service_name=vault", NULL, NULL, T0);
	ingest("pod=p", NULL, NULL, T0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(selector, sizeof(selector), "{%s}", rows[i].matcher);
		check_groups(selector, "service_name", rows[i].services);
		check_groups(selector, "job", rows[i].jobs);
	}
	CHECK_SAYS(
		"LabelNames", "{" SPAN "}", "{\"names\":[\"__name__\",\"job\",\"pod\",\"service_name\"]}");
	CHECK_SAYS("LabelNames", "{\"matchers\":[\"{pod=\\\"p\\\"}\"]," SPAN "}",
		"{\"names\":[\"__name__\",\"pod\"]}");
	CHECK_SAYS(
		"LabelValues", "{\"name\":\"service_name\"," SPAN "}", "{\"names\":[\"shop\",\"vault\"]}");
	CHECK_SAYS("LabelValues",
		"{\"name\":\"service_name\",\"matchers\":[\"{job=\\\"shop\\\"}\"]," SPAN "}",
		"{\"names\":[\"shop\"]}");
	CHECK_SAYS("LabelValues",
		"{\"name\":\"job\",\"matchers\":[\"{service_name=\\\"shop\\\"}\"]," SPAN "}",
		"{\"names\":[\"bank\",\"shop\"]}");
	CHECK_SAYS("Series",
		"{\"labelNames\":[\"service_name\",\"pod\"],\"matchers\":[\"{service_name!=\\\"vault\\\"}"
		"\"]," SPAN "}",
		"{\"labelsSet\":[{\"labels\":[{\"name\":\"pod\",\"value\":\"p\"}]},"
		"{\"labels\":[{\"name\":\"service_name\",\"value\":\"shop\"}]}]}");
	CHECK_SAYS("Series", "{\"matchers\":[\"{job=\\\"shop\\\"}\"]," SPAN "}",
		"{\"labelsSet\":[{\"labels\":[{\"name\":\"__name__\",\"value\":\"process_cpu\"},"
		"{\"name\":\"job\",\"value\":\"shop\"},{\"name\":\"service_name\",\"value\":\"shop\"}]}]}");
	CHECK_SAYS("SelectSeries",
		"{" OF_CPU SPAN ",\"step\":40,\"groupBy\":[\"version\",\"service_name\"],\"labelSelector\":"
		"\"{service_name=\\\"shop\\\"}\",\"aggregation\":\"TIME_SERIES_AGGREGATION_TYPE_AVERAGE\"}",
		"{\"series\":[{\"labels\":[{\"name\":\"service_name\",\"value\":\"shop\"}],\"points\":["
		"{\"value\":40000000,\"timestamp\":\"1700000030000\"}]}]}");
	grafana_call("SelectMergeStacktraces", AS_JSON,
		STR("{" OF_CPU SPAN ",\"labelSelector\":\"{service_name=\\\"shop\\\"}\"}"));
	CHECK_INT(grafana_count("\"total\":\"80000000\""), 1);
	grafana_call("Diff", AS_JSON,
		STR("{\"left\":{" OF_CPU SPAN ",\"labelSelector\":\"{service_name=\\\"shop\\\"}\"},"
			"\"right\":{" OF_CPU SPAN ",\"labelSelector\":\"{service_name=\\\"vault\\\"}\"}}"));
	CHECK_INT(grafana_count("\"leftTicks\":\"80000000\",\"rightTicks\":\"40000000\""), 1);
	grafana_stop();
}
