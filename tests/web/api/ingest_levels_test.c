/* Levels and counters that are pushed repeatedly, by senders who do not give their interval. */
#include <stdio.h>

#include "base/clock.h"
#include "tests/check.h"
#include "tests/web/grafana.h"
#include "web/web.h"

/* Pushes a heap with one value, without duration or interval. */
static void push_heap(const char *type, int64_t value, int64_t at_s, const char *params)
{
	struct pprof_builder *b;
	struct buf raw = { 0 };
	char path[128];
	struct pprof *p;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	must(pprof_builder_open(&a, &b, &err), &err);
	pprof_builder_type(b, str_of(type), STR("bytes"));
	pprof_builder_sample(b, NULL, 0, NULL, 0, &value);
	p = pprof_builder_profile(b);
	p->time_nanos = at_s * NS_PER_S;
	must(pprof_builder_finish(b, &p, &err), &err);
	must(pprof_encode(p, &raw, &err), &err);
	snprintf(path, sizeof(path), "POST /api/v1/ingest?name=memory&%s", params);
	peer_ask(web_port(grafana.web), &grafana.r, path, "", buf_str(&raw));
	buf_release(&raw);
	arena_release(&a);
}

/* A pushed level counts for the time since the push before. */
TEST(pushed_levels_weigh_as_long_as_they_stood)
{
	grafana_start();
	for (int64_t i = 1; i <= 6; i++) {
		push_heap("inuse_space", 100 << 20, T0 + 10 * i, "pod=a");
		CHECK_INT(grafana.r.status, 200);
		push_heap("inuse_space", 100 << 20, T0 + 10 * i, "pod=b");
		CHECK_INT(grafana.r.status, 200);
	}
	/* The first push of each counts a second, and the mean begins there. */
	CHECK_STR(
		grafana_get("/api/v1/query?query=total(merge(memory))&start=1700000000&end=1700000060"),
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"unit\":\"bytes\","
		"\"result\":[{\"metric\":{},\"value\":[1700000060,\"209715200\"]}]}}\n");
	grafana_stop();
}

/* Go's heap profile counts since its process began, and has no duration. */
TEST(pushed_counters_become_differences_if_it_is_said)
{
	static const int64_t values[] = { 100, 150, 230, 10 }; /* the last one of a new process */

	grafana_start();
	for (int64_t i = 0; i < 4; i++) {
		push_heap("alloc_space", values[i], T0 + 10 * (i + 1), "pod=a&cumulative=true");
		CHECK_INT(grafana.r.status, 200);
		CHECK_INT(grafana_count("warnings"), 0);
		push_heap("alloc_space", values[i], T0 + 10 * (i + 1), "pod=b");
		CHECK_INT(grafana.r.status, 200);
		CHECK_INT(grafana_count("push with cumulative=true"), 1);
	}
	CHECK_STR(grafana_get("/api/v1/query?query=total(merge%20by%20(pod)%20(memory:alloc_space"
						  "%5B1m%5D))&time=1700000060"),
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"unit\":\"bytes\","
		"\"result\":[{\"metric\":{\"pod\":\"a\"},\"value\":[1700000060,\"140\"]},"
		"{\"metric\":{\"pod\":\"b\"},\"value\":[1700000060,\"490\"]}]}}\n");
	push_heap("alloc_space", 1, T0 + 50, "pod=a&cumulative=yes");
	CHECK_INT(grafana.r.status, 400);
	CHECK_INT(grafana_count("cumulative"), 1);
	grafana_stop();
}
