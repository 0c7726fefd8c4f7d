/* /api/v1/profile_types of a selection, which the page's menus offer. */
#include <stdio.h>

#include "base/fs.h"
#include "tests/check.h"
#include "tests/web/grafana.h"

static void profile_types_push(const char *params, struct str body)
{
	char request[128];

	snprintf(request, sizeof(request), "POST /api/v1/ingest?time=1700000000&%s", params);
	peer_ask(web_port(grafana.web), &grafana.r, request, "", body);
	CHECK_INT(grafana.r.status, 200);
}

static bool profile_types_has(struct str answer, const char *type)
{
	char text[96];

	snprintf(text, sizeof(text), "{\"type\":\"%s:", type);
	return str_find(answer, str_of(text)) >= 0;
}

TEST(types_of_a_selection)
{
	static const char *const types[] = { "batch", "memory:alloc_in_new_tlab_bytes", "memory:live",
		"process_cpu:cpu" };
	static const struct {
		const char *match;
		bool has[4];
	} rows[] = {
		{ "", { true, true, true, true } },
		{ "?match[]={job=\"java\"}", { false, true, true, true } },
		{ "?match[]={job=\"nightly\"}", { true, false, false, false } },
		{ "?match[]=heap{job=\"java\"}", { false, true, true, false } },
		{ "?match[]=heap:live", { false, false, true, false } },
		{ "?match[]=heap:live&match[]={job=\"nightly\"}", { true, false, true, false } },
		{ "?match[]={job=\"none\"}", { false, false, false, false } },
	};
	struct buf body = { 0 };
	struct err err;

	grafana_start();
	CHECK_OK(fs_read_file("tests/proto/jfr/recordings/async.jfr.gz", 16u << 20, &body, &err), &err);
	profile_types_push("job=java", buf_str(&body));
	profile_types_push("name=batch&job=nightly", STR("main;work 3\n"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str answer;
		char path[128];

		snprintf(path, sizeof(path), "/api/v1/profile_types%s", rows[i].match);
		answer = grafana_get(path);
		CHECK_INT(grafana.r.status, 200);
		for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++)
			if (profile_types_has(answer, types[k]) != rows[i].has[k])
				CHECK_FAIL("%s, %s: " STR_FMT, path, types[k], STR_ARG(answer));
	}
	grafana_get("/api/v1/profile_types?match[]=cpu{");
	CHECK_INT(grafana.r.status, 400);
	buf_release(&body);
	grafana_stop();
}
