/*
 * Very many values of a label: a request that lists them is answered, or refused before it takes
 * more memory than a request may. The bench `tsdb_bench series` has the million.
 */
#include "base/clock.h"
#include "tests/check.h"
#include "tests/tsdb/read/numbers.h"
#include "tests/web/grafana.h"

#define MANY 50000u
#define BATCH 10000u
#define PAIRS 3u
#define LONG 1300u /* values, which take more than a request may */
#define LONG_BYTES 52000u
#define LONG_BATCH 50u

/* Series of one value each: up{instance="host-000000.example.org:9100",job="a"} and so on. */
static void store_many(void)
{
	struct db_number *batch = calloc(BATCH, sizeof(*batch));
	struct label *labels = calloc((size_t)BATCH * PAIRS, sizeof(*labels));
	char(*names)[40] = calloc(BATCH, sizeof(*names));
	struct err err;

	REQUIRE(batch && labels && names);
	for (unsigned at = 0; at < MANY; at += BATCH) {
		for (unsigned i = 0; i < BATCH; i++) {
			struct label *l = &labels[(size_t)i * PAIRS];

			snprintf(names[i], sizeof(names[i]), "host-%06u.example.org:9100", at + i);
			l[0] = (struct label){ STR(LABEL_NAME), STR("up") };
			l[1] = (struct label){ STR("instance"), str_of(names[i]) };
			l[2] = (struct label){ STR("job"), i % 2 ? STR("a") : STR("b") };
			batch[i] = (struct db_number){ { l, PAIRS }, (T0 + 20) * NS_PER_S, 1 };
		}
		REQUIRE_OK(numbers_wait(grafana.storage.db, batch, BATCH, &err), &err);
	}
	free(batch);
	free(labels);
	free(names);
}

/* long{instance="000000.example.orgxxx..."} and so on. */
static void store_long(void)
{
	char(*names)[LONG_BYTES + 1] = malloc(LONG_BATCH * sizeof(*names));
	struct db_number batch[LONG_BATCH];
	struct label labels[LONG_BATCH][2];
	struct err err;

	REQUIRE(names != NULL);
	for (unsigned at = 0; at < LONG; at += LONG_BATCH) {
		for (unsigned i = 0; i < LONG_BATCH; i++) {
			memset(names[i], 'x', LONG_BYTES);
			names[i][LONG_BYTES] = '\0';
			names[i][snprintf(names[i], LONG_BYTES, "%06u.example.org", at + i)] = 'x';
			labels[i][0] = (struct label){ STR(LABEL_NAME), STR("long") };
			labels[i][1] = (struct label){ STR("instance"), str_of(names[i]) };
			batch[i] = (struct db_number){ { labels[i], 2 }, (T0 + 20) * NS_PER_S, 1 };
		}
		REQUIRE_OK(numbers_wait(grafana.storage.db, batch, LONG_BATCH, &err), &err);
	}
	free(names);
}

/* %5B%5D is [], %7B is {, %22 is ". */
#define UP "match%5B%5D=up"
#define OF(matcher) "match%5B%5D=up%7B" matcher "%7D"
#define LONGS "match%5B%5D=long"
#define UPS "up*up*up*up*up*up"
#define REFUSED(why) "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"" why "\"}"
#define ENDING "instance=~%22.*77.example.*%22"
#define AT "&time=1700000025"
#define OK(data) "{\"status\":\"success\",\"data\":" data "}\n"
#define ONE(n) \
	OK("{\"resultType\":\"vector\",\"result\":[{\"metric\":{},\"value\":[1700000025,\"" n "\"]}]" \
	   "}")
#define NAMES(series, hosts, jobs) \
	"{\"name\":\"__name__\",\"values\":1,\"series\":" series "}," \
	"{\"name\":\"instance\",\"values\":" hosts ",\"series\":" series "}," \
	"{\"name\":\"job\",\"values\":" jobs ",\"series\":" series "}"
#define TRUNCATED "\"warnings\":[\"results truncated due to limit\"]"

/* clang-format off */
static const struct {
	const char *path;
	int status;
	size_t hosts; /* named in the answer */
	const char *body; /* where it is short */
} lists[] = {
	{ "series?" UP, 200, MANY, NULL },
	{ "series?limit=10&" UP, 200, 10, NULL },
	{ "series?" OF(ENDING), 200, MANY / 100, NULL },
	{ "label/instance/values?" UP, 200, MANY, NULL },
	{ "label/instance/values?limit=3", 200, 3, NULL },
	{ "label/instance/values?limit=50000&" UP, 200, MANY, NULL },
	{ "label/instance/values?limit=2&" OF("job=%22a%22"), 200, 2,
		"{\"status\":\"success\",\"data\":[\"host-000001.example.org:9100\","
		"\"host-000003.example.org:9100\"]," TRUNCATED "}\n" },
	{ "label/instance/values?" OF("job=%22a%22"), 200, MANY / 2, NULL },
	{ "label/instance/values?" OF(ENDING), 200, MANY / 100, NULL },
	{ "label/instance/values?limit=1&" OF(ENDING), 200, 1,
		"{\"status\":\"success\",\"data\":[\"host-000077.example.org:9100\"]," TRUNCATED
		"}\n" },
	{ "labels?limit=2", 200, 0,
		"{\"status\":\"success\",\"data\":[\"__name__\",\"instance\"]," TRUNCATED "}\n" },
	{ "labels?limit=3", 200, 0, OK("[\"__name__\",\"instance\",\"job\"]") },
	{ "labels?" OF("job!=%22a%22"), 200, 0, OK("[\"__name__\",\"instance\",\"job\"]") },
	{ "label_counts?" UP, 200, 0, OK("[" NAMES("50000", "50000", "2") "]") },
	{ "label_counts?" OF("job=%22a%22") "&" OF("job=%22a%22") "&" OF(ENDING), 200, 0,
		OK("[" NAMES("25000", "25000", "1") "]") },
	{ "label_counts?label=instance&" OF(ENDING), 200, MANY / 100, NULL },
	{ "label_counts", 200, 0,
		OK("[{\"name\":\"__name__\",\"values\":2,\"series\":51300},"
		   "{\"name\":\"instance\",\"values\":51300,\"series\":51300},"
		   "{\"name\":\"job\",\"values\":2,\"series\":50000}]") },
	{ "label_counts?label=instance", 422, 0,
		REFUSED("a list of counts needs more memory than its limit of 67108864 bytes: set "
			"`limit` or `match[]`") },
	{ "query?query=count(up)" AT, 200, 0, ONE("50000") },
	{ "query?query=count(up%7B" ENDING "%7D)" AT, 200, 0, ONE("500") },
	{ "query?limit=3&query=up" AT, 200, 3, NULL },
	{ "series?limit=1&" OF(ENDING), 200, 1,
		"{\"status\":\"success\",\"data\":[{\"__name__\":\"up\",\"instance\":"
		"\"host-000077.example.org:9100\",\"job\":\"a\"}]," TRUNCATED "}\n" },
	{ "series?" UP "&" UP, 200, MANY, NULL },
	{ "label/instance/values", 422, 0,
		REFUSED("a list of names needs more memory than its limit of 67108864 bytes: set "
			"`limit` or `match[]`") },
	{ "label/instance/values?limit=2&" LONGS, 200, 2, NULL },
	{ "series?" LONGS, 422, 0,
		REFUSED("a list of series needs more memory than its limit of 67108864 bytes: set "
			"`limit` or `match[]`") },
	{ "series?limit=2&" LONGS, 200, 2, NULL },
	{ "query?query=count(" UPS "*" UPS "*" UPS "*" UPS ")" AT, 422, 0,
		REFUSED("query needs more memory than its limit of 268435456 bytes "
			"(--query.max-memory)") },
	{ "query_range?query=up&start=1700000000&end=1700000020&step=1", 422, 0,
		REFUSED("the query would read about 1,050,000 series in its steps, counted as 5,250,000 "
			"samples, limit 1,000,000 (--query.max-samples)") },
};
/* clang-format on */

TEST(lists_of_many_are_answered_or_refused)
{
	char request[256];

	grafana_start();
	store_many();
	grafana_call("LabelValues", AS_JSON, STR("{\"name\":\"instance\"," SPAN "}"));
	CHECK_INT(grafana.r.status, 200);
	CHECK_INT(grafana_count(".example.org"), MANY);
	store_long();
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		snprintf(request, sizeof(request), "/api/v1/%s", lists[i].path);
		grafana_get(request);
		if (grafana.r.status != lists[i].status || grafana_count(".example.org") != lists[i].hosts)
			CHECK_FAIL("%s: %d, %zu hosts", lists[i].path, grafana.r.status,
				grafana_count(".example.org"));
		if (lists[i].body)
			CHECK_STR(buf_str(&grafana.r.body), lists[i].body);
	}
	grafana_stop();
}
