/*
 * Matchers about labels of samples: the answer must not depend on which epochs of a job have the
 * label, so a database with one epoch and one with several are asked the same.
 */
#include "tests/promql/world.h"

/* More nodes than half of what the small one takes. */
#define FILLING "|main;a{n=#1} 1|main;b 1|main;c 1|main;d 1|main;e 1|main;h 1|main;i 1|main;j 1"

/* clang-format off */
static const struct {
	const char *labels;
	int at_s; /* each in a window of its own */
	const char *stacks;
} rows[] = {
	/* the newest epoch does not know the label */
	{ "__name__=process_cpu,job=old,pod=p", 40, "main;f{handler=/x} 3" FILLING },
	{ "__name__=process_cpu,job=old,pod=p", 150, "main;f 4" },
	{ "__name__=process_cpu,job=old,pod=p", 260, "main;f 5" },
	/* the oldest one does not */
	{ "__name__=process_cpu,job=new,pod=p", 40, "main;f 3" FILLING },
	{ "__name__=process_cpu,job=new,pod=p", 260, "main;f{handler=/x} 5" },
	/* some profiles have no samples at all */
	{ "__name__=process_cpu,job=empty,pod=p", 40, "main;f{handler=/x} 3|main;g{handler=/y} 3"
						      "|main;a{handler=/y} 1|main;b{handler=/y} 1"
						      "|main;c{handler=/y} 1|main;d{handler=/y} 1"
						      "|main;e{handler=/y} 1|main;h{handler=/y} 1" },
	{ "__name__=process_cpu,job=empty,pod=p", 260, "" },
	{ "__name__=goroutine,job=level,pod=p", 40, "main;f{handler=/x} 10" FILLING },
	{ "__name__=goroutine,job=level,pod=p", 150, "main;f 20" },
	{ "__name__=goroutine,job=level,pod=p", 260, "main;f 30" },
	/* this one has no row in the epoch that knows the label */
	{ "__name__=goroutine,job=level,pod=q", 260, "main;f 30" },
};
/* clang-format on */

static const struct {
	const char *query, *want; /* at 270 */
} cases[] = {
	{ "total(cpu:samples{job=\"old\",handler=\"/x\"}[10m])", "{job=\"old\", pod=\"p\"} 3" },
	{ "cpu:samples{job=\"old\",handler=\"/x\"}", "" },
	{ "total(cpu:samples{job=\"old\",sample_handler=\"/x\"})", "" },
	{ "total(cpu:samples{job=\"old\",handler!=\"/x\"})", "{job=\"old\", pod=\"p\"} 5" },
	{ "total(cpu:samples{job=\"old\",handler=\"\"})", "{job=\"old\", pod=\"p\"} 5" },
	{ "total(cpu:samples{job=\"old\",handler=\"\"}[10m])", "{job=\"old\", pod=\"p\"} 17" },
	{ "total(cpu:samples{job=\"old\",handler!=\"/x\",n!=\"1\"}[10m])",
		"{job=\"old\", pod=\"p\"} 16" },
	{ "total(cpu:samples{job=\"old\",nothing=\"\"}[10m])", "{job=\"old\", pod=\"p\"} 20" },
	{ "merge(cpu:samples{job=\"old\",handler=\"/x\"}[10m])", "{} count 3 of 3: main;f 3" },
	{ "merge(cpu:samples{job=\"old\",handler!=\"/x\"}[130s])", "{} count 9 of 2: main;f 9" },
	{ "merge(cpu:samples{job=\"new\",handler=\"/x\"}[10m])", "{} count 5 of 2: main;f 5" },
	{ "total(cpu:samples{job=\"new\",handler=\"/x\"})", "{job=\"new\", pod=\"p\"} 5" },
	{ "total(cpu:samples{job=\"new\",handler=\"\"})", "" },
	{ "total(cpu:samples{job=\"new\",handler=\"\"}[10m])", "{job=\"new\", pod=\"p\"} 11" },
	{ "total(cpu:samples{job=\"empty\",handler=\"\"})", "{job=\"empty\", pod=\"p\"} 0" },
	{ "total(cpu:samples{job=\"empty\",handler!=\"/x\"}[50s])", "{job=\"empty\", pod=\"p\"} 0" },
	{ "total(cpu:samples{job=\"empty\",handler=\"/x\"}[50s])", "" },
	{ "total(cpu:samples{job=\"empty\",handler=\"\"}[10m])", "" },
	/* a level is divided by the time that scrapes count: 10 s each, the last 10 s more */
	{ "total(goroutine{job=\"level\",handler=\"/x\"}[10m]) * 40",
		"{job=\"level\", pod=\"p\"} 100" },
	{ "total(goroutine{job=\"level\",handler!=\"/x\",n=\"\"}[10m]) * 40",
		"{job=\"level\", pod=\"p\"} 870\n{job=\"level\", pod=\"q\"} 600" },
	{ "total(goroutine{job=\"level\",handler=\"/x\"})", "" },
	{ "total(goroutine{job=\"level\",handler=\"\"})",
		"{job=\"level\", pod=\"p\"} 30\n{job=\"level\", pod=\"q\"} 30" },
};

static void check_all(uint32_t nodes_max, bool blocks, int old, int level)
{
	struct world w;
	struct err err;

	if (!world_open_epochs(&w, nodes_max))
		return;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		store(&w, rows[i].labels, rows[i].at_s, 10, rows[i].stacks);
	if (blocks)
		CHECK_OK(db_compact(w.db, &err), &err);
	CHECK_INT(world_entries(&w, STR("job"), "old"), old);
	CHECK_INT(world_entries(&w, STR("job"), "level"), level);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		at(&w, 270, cases[i].query, cases[i].want);
	world_close(&w);
}

TEST(labels_of_samples_in_one_epoch)
{
	check_all(1000, false, 1, 2);
	check_all(1000, true, 1, 2);
}

TEST(labels_of_samples_that_not_all_epochs_know)
{
	check_all(16, false, 2, 3);
	check_all(16, true, 2, 3);
}

/* ---- levels ---- */

#define SOME_STACKS(a) \
	"main;" a "0 2|main;" a "1 2|main;" a "2 1|main;" a "3 1|main;" a "4 1|main;" a "5 1|main;" a \
	"6 1|main;" a "7 1"

/* A scrape counts from the one before it and up to the next one, in whatever epoch these are. */
static void check_level(uint32_t nodes_max, bool blocks, int entries)
{
	struct world w;
	struct err err;

	REQUIRE(world_open_epochs(&w, nodes_max));
	for (int i = 10; i <= 300; i += 10)
		store(&w, "__name__=goroutine,job=level,pod=p", i, 10,
			i <= 200 ? SOME_STACKS("a") : SOME_STACKS("b"));
	if (blocks)
		CHECK_OK(db_compact(w.db, &err), &err);
	CHECK_INT(world_entries(&w, STR("job"), "level"), entries);
	for (int i = 151; i < 290; i++)
		at(&w, i, "total(goroutine[30s])", "{job=\"level\", pod=\"p\"} 10");
	at(&w, 210, "flat by (function) (goroutine[20s], {function=~'a1|b1'})",
		"{function=\"a1\"} 1\n{function=\"b1\"} 1");
	world_close(&w);
}

TEST(levels_do_not_show_where_epochs_begin)
{
	check_level(1000, false, 1);
	check_level(16, false, 3);
	check_level(16, true, 3);
}
