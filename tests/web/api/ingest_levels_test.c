/* Levels that are pushed repeatedly, by senders who do not give their interval. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/check.h"
#include "tests/web/grafana.h"
#include "web/web.h"

static void must(enum err_code rc, const struct err *err)
{
	if (!rc)
		return;
	printf("  cannot make a profile: %s\n", err->msg);
	exit(1);
}

/* Pushes 100 MiB in use for a pod, without duration and interval. */
static void push_level(const char *pod, int64_t at_s)
{
	const int64_t values[1] = { 100 << 20 };
	struct pprof_builder *b;
	struct buf raw = { 0 };
	char path[128];
	struct pprof *p;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	must(pprof_builder_open(&a, &b, &err), &err);
	pprof_builder_type(b, STR("inuse_space"), STR("bytes"));
	pprof_builder_sample(b, NULL, 0, NULL, 0, values);
	p = pprof_builder_profile(b);
	p->time_nanos = at_s * NS_PER_S;
	must(pprof_builder_finish(b, &p, &err), &err);
	must(pprof_encode(p, &raw, &err), &err);
	snprintf(path, sizeof(path), "POST /api/v1/ingest?name=memory&pod=%s", pod);
	peer_ask(web_port(grafana.web), &grafana.r, path, "", buf_str(&raw));
	CHECK_INT(grafana.r.status, 200);
	buf_release(&raw);
	arena_release(&a);
}

/* A pushed level counts for the time since the push before. */
TEST(pushed_levels_weigh_as_long_as_they_stood)
{
	grafana_start();
	for (int64_t i = 1; i <= 6; i++) {
		push_level("a", T0 + 10 * i);
		push_level("b", T0 + 10 * i);
	}
	/* The first push of each counts a second, and the mean begins there. */
	peer_ask(web_port(grafana.web), &grafana.r,
		"GET /api/v1/query?query=total(merge(memory))&start=1700000000&end=1700000060", "",
		(struct str){ 0 });
	CHECK_STR(buf_str(&grafana.r.body),
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"unit\":\"bytes\","
		"\"result\":[{\"metric\":{},\"value\":[1700000060,\"209715200\"]}]}}\n");
	grafana_stop();
}
