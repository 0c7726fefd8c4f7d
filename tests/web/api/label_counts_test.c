/* Counts of labels' series and values: by hand, over the API, and within a memory limit. */
#include "web/api/label_counts.h"

#include "tests/check.h"
#include "tests/web/grafana.h"

/* ---- the counts themselves ---- */

#define SERIES 3000u
#define ZONES 7u

/* Zones are drawn, hosts are all different, one of three has no zone. */
static size_t series_of(unsigned i, char host[16], char zone[16], struct label out[3])
{
	size_t n = 0;

	snprintf(host, 16, "h%u", i);
	snprintf(zone, 16, "z%u", i * i % ZONES);
	out[n++] = (struct label){ STR(LABEL_NAME), STR("up") };
	out[n++] = (struct label){ STR("host"), str_of(host) };
	if (i % 3)
		out[n++] = (struct label){ STR("zone"), str_of(zone) };
	return n;
}

static void count_all(struct label_counts *c, const char *label, size_t bytes_max)
{
	struct label labels[3];
	char host[16], zone[16];
	struct labels series;
	struct err err;

	label_counts_init(c, str_of(label), bytes_max);
	for (unsigned i = 0; i < 3 * SERIES; i++) {
		series = (struct labels){ labels, series_of(i * 7 % SERIES, host, zone, labels) };
		CHECK_INT(label_counts_has(c, series), i >= SERIES);
		REQUIRE_OK(label_counts_add(c, series, &err), &err);
	}
	label_counts_end(c);
}

TEST(each_series_counts_once)
{
	uint64_t zones[ZONES] = { 0 }, sum = 0;
	struct label_counts c;

	count_all(&c, "", 64u << 20);
	REQUIRE(c.n == 3);
	CHECK_STR(c.v[0].text, LABEL_NAME);
	CHECK_STR(c.v[1].text, "host");
	CHECK_STR(c.v[2].text, "zone");
	CHECK_INT(c.v[0].values, 1);
	CHECK_INT(c.v[0].series, SERIES);
	CHECK_INT(c.v[1].values, SERIES);
	CHECK_INT(c.v[1].series, SERIES);
	CHECK_INT(c.v[2].values, 4); /* squares mod 7 */
	CHECK_INT(c.v[2].series, SERIES / 3 * 2);
	label_counts_release(&c);

	for (unsigned i = 0; i < SERIES; i++)
		zones[i * i % ZONES] += i % 3 != 0;
	count_all(&c, "zone", 64u << 20);
	CHECK_INT(c.n, 4);
	for (size_t i = 0; i < c.n; i++) {
		CHECK_INT(c.v[i].series, zones[c.v[i].text.ptr[1] - '0']);
		CHECK(i == 0 || c.v[i - 1].series > c.v[i].series ||
			(c.v[i - 1].series == c.v[i].series && str_cmp(c.v[i - 1].text, c.v[i].text) < 0));
		sum += c.v[i].series;
	}
	CHECK_INT(sum, SERIES / 3 * 2);
	label_counts_release(&c);

	count_all(&c, "nothing", 64u << 20);
	CHECK_INT(c.n, 0);
	label_counts_release(&c);
}

/* The memory stays below the limit, whichever part grows. */
TEST(counts_stay_within_their_memory)
{
	static const char *const labels_of_interest[] = { "", "host", "zone" };
	const char *want = "a list of counts needs more memory than its limit of 40000 bytes";

	for (size_t i = 0; i < 3; i++) {
		struct label labels[3];
		char host[16], zone[16];
		struct label_counts c;
		enum err_code rc = ERR_OK;
		struct err err;
		unsigned k;

		label_counts_init(&c, str_of(labels_of_interest[i]), 40000);
		for (k = 0; k < SERIES && !rc; k++) {
			size_t n = series_of(k, host, zone, labels);

			rc = label_counts_add(&c, (struct labels){ labels, n }, &err);
		}
		CHECK_ERR(rc, &err, ERR_LIMIT, want);
		CHECK(k > 200);
		label_counts_release(&c);
	}
}

/* Texts that come once, in two orders: the first ones are kept, however small the memory. */
TEST(the_first_of_many_are_kept)
{
	for (uint64_t step = 1; step < SERIES; step += 1776) /* no divisor of SERIES */
		for (size_t limit = 0; limit < 60; limit += 20) {
			struct label_counts c;
			char text[16];
			struct err err;

			label_counts_init(&c, STR("host"), limit ? 65536 : 1u << 20);
			c.limit = limit;
			for (uint64_t i = 0; i < SERIES; i++) {
				uint64_t k = i * step % SERIES;

				snprintf(text, sizeof(text), "h%05u", (unsigned)k);
				REQUIRE_OK(label_counts_add_last(&c, str_of(text), k / 10, 7, &err), &err);
			}
			label_counts_end(&c);
			CHECK_INT(c.total, SERIES);
			REQUIRE(limit ? c.n >= limit && c.n <= 2 * limit + 64 : c.n == SERIES);
			for (uint64_t i = 0; i < (limit ? limit : SERIES); i++) {
				/* Ten have each count, the highest first; of ten the lowest number. */
				snprintf(text, sizeof(text), "h%05u",
					(unsigned)((SERIES / 10 - 1 - i / 10) * 10 + i % 10));
				CHECK_STR(c.v[i].text, text);
				CHECK_INT(c.v[i].series, SERIES / 10 - 1 - i / 10);
				CHECK_INT(c.v[i].values, 7);
			}
			label_counts_release(&c);
		}
}

/* ---- over the API ---- */

static void check_get(const char *path, int status, const char *want)
{
	char request[256];

	snprintf(request, sizeof(request), "/api/v1/%s", path);
	CHECK_STR(grafana_get(request), want);
	CHECK_INT(grafana.r.status, status);
}

#define ALL "{\"status\":\"success\",\"data\":["
#define END "]}\n"
#define COUNT(name, values, series) \
	"{\"name\":\"" name "\",\"values\":" values ",\"series\":" series "}"
#define VALUE(value, series) "{\"value\":\"" value "\",\"series\":" series "}"
#define BAD(msg) "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"" msg "\"}"

/* CPU of two versions, goroutines of one. %5B%5D is []; %7B is {; %22 is ". */
TEST(counts_of_what_is_stored)
{
	static const struct {
		const char *path;
		int status;
		const char *want;
	} rows[] = {
		{ "label_counts", 200,
			ALL COUNT("__name__", "2", "3") "," COUNT("job", "1", "3") "," COUNT(
				"version", "2", "3") END },
		{ "label_counts?limit=1", 200,
			"{\"status\":\"success\",\"data\":[" COUNT(
				"__name__", "2", "3") "],\"warnings\":[\"results truncated due to limit\"]}\n" },
		{ "label_counts?label=version", 200, ALL VALUE("v1", "2") "," VALUE("v2", "1") END },
		{ "label_counts?label=version&match%5B%5D=goroutine", 200, ALL VALUE("v1", "1") END },
		{ "label_counts?label=version&match%5B%5D=cpu&match%5B%5D=cpu:samples", 200,
			ALL VALUE("v1", "1") "," VALUE("v2", "1") END },
		{ "label_counts?label=version&match%5B%5D=cpu:nothing", 200, ALL END },
		{ "label_counts?label=nothing", 200, ALL END },
		{ "label_counts?start=1400000000&end=1400000001", 200, ALL END },
		{ "label_counts?label=a-b", 200, ALL END },
		{ "label_counts?limit=x", 400,
			BAD("invalid parameter \\\"limit\\\": \\\"x\\\" is not a number from 0 on") },
		{ "label_counts?start=2&end=1", 400,
			BAD("invalid parameter \\\"end\\\": end timestamp must not be before start "
				"time") },
		{ "label_counts?match%5B%5D=cpu%7B", 400,
			BAD("invalid parameter \\\"match[]\\\": 1:5: unexpected end of query, "
				"expected string, \\\"}\\\" or label name") },
	};

	grafana_start();
	grafana_fill();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_get(rows[i].path, rows[i].status, rows[i].want);
	grafana_stop();
}
