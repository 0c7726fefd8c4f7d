/* Of a query: names of saved files, a part of a flame graph, and what a search finds. */
#include "tests/check.h"
#include "tests/web/grafana.h"

#define QUERY "/api/v1/query?"
#define AT "&time=1700000030"
#define DEMO "%7Bjob=%22demo%22%7D"

/* The service is that of the elements, else the one that the query selects. */
TEST(names_of_saved_files)
{
	/* clang-format off */
	static const struct {
		const char *query, *want;
	} rows[] = {
		{ "format=folded&query=cpu:samples%7Bversion=%22v1%22%7D[1m]" AT,
		  "inline; filename=\"demo-cpu-samples-2023-11-14T22-13-10Z-30s.folded.txt\"" },
		{ "format=pprof&query=merge(cpu[1m])" AT,
		  "attachment; filename=\"cpu-2023-11-14T22-13-10Z-30s.pb.gz\"" },
		{ "format=text&query=merge(cpu:samples" DEMO "[1m])" AT,
		  "inline; filename=\"demo-cpu-samples-2023-11-14T22-13-10Z-30s.txt\"" },
		{ "format=speedscope&query=merge(cpu:samples" DEMO ")&start=1700000000&end=1700000020",
		  "attachment; filename=\"demo-cpu-samples-2023-11-14T22-13-20Z-20s.speedscope.json\"" },
		/* Two jobs are asked for, so none is told. */
		{ "format=folded&query=merge(cpu:samples" DEMO "[1m])"
		  "-merge(cpu:samples%7Bjob=%22x%22%7D[1m])" AT,
		  "inline; filename=\"cpu-samples-2023-11-14T22-13-10Z-30s.folded.txt\"" },
		{ "format=text&query=sum(total(cpu:samples" DEMO "[1m]))" AT,
		  "inline; filename=\"demo-cpu_samples-2023-11-14T22-13-50Z.txt\"" },
		{ "format=json&query=merge(cpu:samples[1m])" AT, "" },
	};
	/* clang-format on */

	grafana_start();
	grafana_fill();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[512];

		snprintf(path, sizeof(path), QUERY "%s", rows[i].query);
		grafana_get(path);
		CHECK_INT(grafana.r.status, 200);
		CHECK_STR(response_header(&grafana.r, "Content-Disposition"), rows[i].want);
	}
	grafana_stop();
}

/* Of 42 samples 12 are in main.slow; all are in main.handle. */
TEST(a_part_of_a_flame_graph)
{
	static const struct {
		const char *path;
		const char *levels;
	} rows[] = {
		{ "&call_site[]=main.main&call_site[]=main.handle",
			"[[0,42,0,0],[0,42,0,1],[0,42,30,2],[30,12,12,3]]" },
		{ "&call_site[]=main.main&call_site[]=main.handle&call_site[]=main.slow",
			"[[0,12,0,0],[0,12,0,1],[0,12,0,2],[0,12,12,3]]" },
		{ "&call_site[]=main.main&call_site[]=main.handle&call_site_skip=1", "[[0,0,0,0]]" },
		{ "&call_site_skip=0", "[[0,42,0,0],[0,42,0,1],[0,42,30,2],[30,12,12,3]]" },
		{ "&call_site[]=main.main&call_site[]=main.handle&call_site_skip=0",
			"[[0,12,0,0],[0,12,0,1],[0,12,0,2],[0,12,12,3]]" },
		{ "&call_site[]=main.handle", "[[0,0,0,0]]" },
		/* What is cut, is named: main.slow is "other". */
		{ "&max_nodes=3",
			"[30,12,12,3]],\"names\":[\"total\",\"main.main\",\"main.handle\",\"other\"]" },
		{ "&max_nodes=3", "\"other\":3" },
	};

	grafana_start();
	grafana_fill();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[512];

		snprintf(path, sizeof(path), QUERY "query=merge(cpu:samples[1m])%s" AT, rows[i].path);
		grafana_get(path);
		CHECK_INT(grafana.r.status, 200);
		CHECK_INT(grafana_count("\"total\":42"), 1); /* of the whole */
		if (!grafana_count(rows[i].levels))
			CHECK_FAIL("%s: " STR_FMT, rows[i].path, STR_ARG(buf_str(&grafana.r.body)));
	}
	grafana_stop();
}

/* Also of what is drawn as one box; the rows are those of top(). */
TEST(what_a_search_finds)
{
	static const struct {
		const char *path, *want;
	} rows[] = {
		{ "query=merge(cpu:samples[1m])&max_nodes=1&search=SLOW", "\"matched\":{\"total\":0," },
		{ "query=merge(cpu:samples[1m])&max_nodes=1&search=slow",
			"\"matched\":{\"total\":12,\"percent\":28.57142857142857,\"stacks\":1,\"rows\":["
			"{\"function\":\"main.slow\",\"flat\":12,\"flat_percent\":28.57142857142857,"
			"\"sum_percent\":100,\"cum\":12,\"cum_percent\":28.57142857142857}],"
			"\"functions\":1,\"names\":[\"main.main\",\"main.handle\",\"main.slow\"],"
			"\"paths\":[{\"total\":12,\"frames\":[0,1,2]}]},"
			"\"flamebearer\":{\"format\":\"single\",\"levels\":[[0,42,0,0],[0,42,42,1]]" },
		/* The divisor is the total before the filter. */
		{ "query=focus(merge(cpu:samples[1m]),%22slow%22)&search=^main[.]main",
			"\"matched\":{\"total\":12,\"percent\":28.57142857142857,\"stacks\":1," },
		/* Both sides of a difference. */
		{ "query=diff(merge(cpu:samples[1m]),ignore(merge(cpu:samples[1m]),%22slow%22))&search="
		  "slow",
			"\"matched\":{\"left_total\":0,\"right_total\":12,"
			"\"left_percent\":0,\"right_percent\":28.57142857142857,\"stacks\":1," },
		/* Costs have no functions. */
		{ "query=total(merge(cpu:samples[1m]))&search=slow", "\"resultType\":\"vector\"" },
	};

	grafana_start();
	grafana_fill();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[512];

		snprintf(path, sizeof(path), QUERY "%s" AT, rows[i].path);
		grafana_get(path);
		CHECK_INT(grafana.r.status, 200);
		if (!grafana_count(rows[i].want))
			CHECK_FAIL("%s: " STR_FMT, rows[i].path, STR_ARG(buf_str(&grafana.r.body)));
	}
	grafana_stop();
}

#define ONLY_FLAMES \
	"call_site[] and call_site_skip need format=json and a query of profiles at one time " \
	"or from start to end"
#define ONLY_PROFILES \
	"search needs format=json and a query of profiles at one time or from start to end"
#define BAD(msg) "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"" msg "\"}"

TEST(parts_that_cannot_be)
{
	static const struct {
		const char *path, *want;
	} rows[] = {
		{ QUERY "query=cpu&call_site_skip=-1",
			BAD("invalid parameter \\\"call_site_skip\\\": \\\"-1\\\" is not a number from 0 on") },
		{ QUERY "query=cpu&format=folded&call_site[]=a", ONLY_FLAMES "\n" },
		{ "/api/v1/query_range?query=total(cpu)&start=1&end=2&step=1&call_site[]=a",
			BAD(ONLY_FLAMES) },
		{ QUERY "query=cpu&format=folded&search=a", ONLY_PROFILES "\n" },
		{ "/api/v1/query_range?query=total(cpu)&start=1&end=2&step=1&search=a",
			BAD(ONLY_PROFILES) },
		{ QUERY "query=cpu&search=a(",
			BAD("invalid parameter \\\"search\\\": error parsing regexp: missing ): a(") },
	};

	grafana_start();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_STR(grafana_get(rows[i].path), rows[i].want);
		CHECK_INT(grafana.r.status, 400);
	}
	grafana_stop();
}
