#include "tests/damage/damage.h"

#define H 60
#define END (47 * H + 30)

const char *const formats[] = { "json", "pprof", "pgo", "folded", "text", "speedscope" };
const size_t formats_n = sizeof(formats) / sizeof(formats[0]);

/* One row holds one question; minutes as data.c has them. RPC: %s is "start" and "end" in ms. */
/* clang-format off */
const struct question questions[] = {
	/* profiles over the whole, over blocks, over the head, of one scrape */
	{ SPAN, true, false, "merge by (job) (cpu)", 0, END },
	{ SPAN, true, false, "merge(process_cpu:samples{job=\"api\"})", 20 * H + 25, 47 * H },
	{ SPAN, false, false, "merge(cpu)", 24 * H, 48 * H },
	{ SPAN, false, false, "merge(cpu)", 0, 24 * H },
	{ SPAN, true, false, "cpu{job=\"api\"}", 44 * H, END },
	{ AT, false, false, "cpu", 47 * H + 20 },
	{ AT, true, false, "cpu{instance=\"a\"}", 30 * H },
	{ SPAN, false, false, "merge by (handler) (cpu)", 18 * H, END },
	{ SPAN, false, false, "cpu{handler=\"/cart\"}", 25 * H, END },
	{ SPAN, true, false, "merge(memory:inuse_space)", 20 * H, END },
	{ SPAN, false, false, "merge(memory:alloc_space)", 0, END },
	{ SPAN, false, false, "goroutine", 40 * H, END },
	{ SPAN, false, false, "goroutine{job=\"web\"}", 10 * H, 41 * H + 7 },
	{ SPAN, false, false, "merge(cpu{job=\"old\"})", 0, END },
	/* differences, filters */
	{ AT, true, false, "diff(merge(cpu[2h]), merge(cpu[2h] offset 23h))", 47 * H + 20 },
	{ AT, false, false, "merge(cpu{job=\"web\"}[3h]) - merge(cpu{job=\"api\"}[3h])", 46 * H },
	{ AT, false, false, "focus(merge(cpu[26h]), \"storage|order\")", 47 * H },
	{ AT, false, false, "callers(merge(cpu[40h]), \".*[aeiou]$\")", 47 * H },
	{ AT, false, false, "changed(cpu{job=\"api\"}[4h], cpu{job=\"web\"}[4h])", 47 * H },
	/* tables and costs */
	{ AT, false, false, "top(10, merge(cpu[47h]))", 47 * H + 20 },
	{ AT, false, false, "top(5, cpu[3h])", 47 * H + 20 },
	{ AT, false, false, "flat(merge(cpu[47h]))", 47 * H + 20 },
	{ AT, false, false, "cum by (job, filename) (cpu[30h])", 47 * H + 20 },
	{ AT, false, false, "flat_share by (function) (merge(cpu[2h]))", 47 * H + 20 },
	{ AT, false, false, "total(memory:inuse_space[9h])", 47 * H + 20 },
	{ AT, false, false, "total(max_over_time(memory:inuse_space[47h]))", 47 * H + 20 },
	{ AT, false, false, "total(last_over_time(goroutine[13h]))", 45 * H },
	{ AT, false, false, "count_over_time(cpu[48h])", 47 * H + 20 },
	{ AT, false, false, "count_over_time(cpu[3h])", 47 * H + 20 },
	{ AT, false, false, "total(rate(cpu[17h]))", 46 * H },
	{ STEPS, false, false, "total(merge by (job) (cpu))", 0, 47 * H, 60 },
	{ STEPS, false, false, "total(cpu{instance=~\"a|b\"})", 43 * H, END, 40 },
	{ STEPS, false, false, "sum(flat(cpu{job=\"web\"}))", 24 * H, END, 120 },
	{ STEPS, false, false, "total(goroutine)", 36 * H, END, 40 },
	/* numbers */
	{ AT, false, false, "up", 47 * H + 20 },
	{ AT, false, false, "sum_over_time(up[47h])", 47 * H + 20 },
	{ AT, false, false, "avg_over_time(job:cost[4h])", 47 * H + 20 },
	{ AT, false, false, "count_over_time(up[3h])", 47 * H },
	{ STEPS, false, false, "up", 0, END, 60 },
	{ STEPS, false, false, "job:cost", 30 * H, END, 20 },
	/* names */
	{ GET, false, false, "/api/v1/series?match[]=cpu" },
	{ GET, false, false, "/api/v1/series?match[]=up" },
	{ GET, false, false, "/api/v1/series?match[]={job=\"api\"}", 44 * H, END },
	{ GET, false, false, "/api/v1/labels" },
	{ GET, false, false, "/api/v1/labels", 45 * H, END },
	{ GET, false, false, "/api/v1/label/instance/values" },
	{ GET, false, false, "/api/v1/label/handler/values", 41 * H, END },
	{ GET, false, false, "/api/v1/label/job/values?match[]=cpu", 0, 20 * H },
	{ GET, false, false, "/api/v1/profile_types" },
	{ GET, false, false, "/api/v1/functions?limit=2000" },
	{ GET, false, false, "/api/v1/functions?match[]=cpu{job=\"web\"}", 44 * H, END },
	{ GET, false, false, "/api/v1/label_counts" },
	{ GET, false, false, "/api/v1/label_counts?label=job&match[]=cpu", 20 * H, END },
	{ GET, false, false, "/api/v1/metadata" },
	{ GET, false, false, "/api/v1/links?match[]=cpu{job=\"web\"}", 0, END },
	{ GET, false, false, "/api/v1/links?span_id=0200000000000000", 40 * H, END },
	/* Grafana's */
	{ RPC, false, false, "SelectMergeStacktraces {\"profileTypeID\":"
		"\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\",\"labelSelector\":\"{}\",%s}",
		20 * H, END },
	{ RPC, false, false, "SelectSeries {\"profileTypeID\":"
		"\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\",\"labelSelector\":\"{}\","
		"\"step\":3600,\"groupBy\":[\"job\"],%s}", 0, END },
	{ RPC, false, false, "LabelValues {\"name\":\"instance\",%s}", 0, END },
	{ RPC, false, false, "Series {\"labelNames\":[\"job\",\"instance\"],%s}", 24 * H, END },
	{ RPC, false, false, "ProfileTypes {%s}", 40 * H, END },
	/* appended after the damage */
	{ SPAN, false, true, "merge by (job) (cpu)", 47 * H + 59, 50 * H },
	{ AT, false, true, "count_over_time(up[110m])", 49 * H + 40 },
	{ AT, false, true, "cpu{instance=\"a\"}", 49 * H + 20 },
};
/* clang-format on */
const size_t questions_n = sizeof(questions) / sizeof(questions[0]);
