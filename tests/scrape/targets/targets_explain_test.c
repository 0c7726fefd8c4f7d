/* Relabelling step by step: the labels after each rule, and the result for each profile. */
#include "scrape/targets/targets_explain.h"

#include "tests/check.h"

#define OFF \
	"profiling_config: {pprof_config: {process_cpu: {enabled: false}, " \
	"block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, " \
	"goroutineleak: {enabled: false}}}, "
#define CPU_MEM \
	"profiling_config: {pprof_config: {block: {enabled: false}, " \
	"mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}}, "
#define RULES(text) "relabel_configs: [" text "], "

/* clang-format off */
static const struct {
	const char *name, *job, *labels, *want; /* labels: a=b;c=d */
} rows[] = {
	{ "no rules", OFF, "__address__=a:1",
		"memory http://a:1/debug/pprof/allocs "
		"memory{instance=\"a:1\", job=\"j\"}\n" },
	{ "each step's set", OFF RULES("{source_labels: [x], target_label: y}, "
		"{regex: x, action: labeldrop}"), "__address__=a:1;x=1;__name__=memory",
		"replace memory{__address__=\"a:1\", x=\"1\", y=\"1\"}\n"
		"labeldrop memory{__address__=\"a:1\", y=\"1\"}\n"
		"memory http://a:1/debug/pprof/allocs "
		"memory{instance=\"a:1\", job=\"j\", y=\"1\"}\n" },
	{ "what comes after the drop is not run", OFF RULES("{source_labels: [x], regex: '2', "
		"action: keep}, {target_label: y, replacement: z}"), "__address__=a:1;x=1",
		"keep dropped\nreplace dropped\nmemory dropped by 0\n" },
	{ "profiles differ, and what is missing is filled in",
		CPU_MEM RULES("{target_label: a, replacement: b}, "
		"{source_labels: [__name__], regex: process_cpu, action: drop}"), "__address__=a:1;job=k",
		"replace {__address__=\"a:1\", a=\"b\", job=\"k\"}\n"
		"drop {__address__=\"a:1\", a=\"b\", job=\"k\"}\n"
		"memory http://a:1/debug/pprof/allocs "
		"memory{a=\"b\", instance=\"a:1\", job=\"k\"}\n"
		"process_cpu dropped by 1\n" },
	{ "the name chooses a profile; seconds that were chosen for it follow the interval",
		CPU_MEM RULES("{target_label: __scrape_interval__, replacement: 30s}"),
		"__name__=process_cpu;__address__=a:1;__param_seconds=9;__scrape_interval__=10s",
		"replace process_cpu{__address__=\"a:1\", __param_seconds=\"9\", "
		"__scrape_interval__=\"30s\"}\n"
		"process_cpu http://a:1/debug/pprof/profile?seconds=29 "
		"process_cpu{instance=\"a:1\", job=\"j\"}\n" },
	{ "seconds of one's own stay",
		CPU_MEM RULES("{target_label: __scrape_interval__, replacement: 30s}"),
		"__name__=process_cpu;__address__=a:1;__param_seconds=3;__scrape_interval__=10s",
		"replace process_cpu{__address__=\"a:1\", __param_seconds=\"3\", "
		"__scrape_interval__=\"30s\"}\n"
		"process_cpu http://a:1/debug/pprof/profile?seconds=3 "
		"process_cpu{instance=\"a:1\", job=\"j\"}\n" },
	{ "a name that no profile has", OFF, "__address__=a:1;__name__=own",
		"memory http://a:1/debug/pprof/allocs own{instance=\"a:1\", job=\"j\"}\n" },
	{ "through a socket", OFF, "__address__=a:1;__unix_socket__=/run/a.sock",
		"memory http://a:1/debug/pprof/allocs through /run/a.sock "
		"memory{instance=\"a:1\", job=\"j\"}\n" },
	{ "refused", OFF, "x=y", "memory refused: no address\n" },
};
/* clang-format on */

static void print(struct buf *out, const struct explanation *e)
{
	const struct explained_profile *p;

	for (size_t i = 0; i < e->steps_n; i++) {
		buf_printf(out, "%s ", relabel_action_name(e->steps[i].rule->action));
		if (e->steps[i].keep)
			labels_print(out, e->steps[i].output);
		else
			buf_add_cstr(out, "dropped");
		buf_add_char(out, '\n');
	}
	for (size_t i = 0; i < e->profiles_n; i++) {
		p = &e->profiles[i];
		buf_printf(out, STR_FMT " ", STR_ARG(p->profile));
		if (p->end == EXPLAINED_DROPPED) {
			buf_printf(out, "dropped by %zu", p->dropped_by);
		} else if (p->end == EXPLAINED_REFUSED) {
			buf_printf(out, "refused: " STR_FMT, STR_ARG(p->error));
		} else {
			buf_printf(out, STR_FMT " ", STR_ARG(p->url));
			if (p->unix_path.len)
				buf_printf(out, "through " STR_FMT " ", STR_ARG(p->unix_path));
			labels_print(out, p->labels);
		}
		buf_add_char(out, '\n');
	}
}

static struct labels parse(struct arena *a, const char *text)
{
	struct labels_builder b;
	struct labels out = { 0 };
	size_t name, value;

	labels_builder_init(&b, a, out);
	while (*text) {
		name = strcspn(text, "=");
		value = strcspn(text + name + 1, ";");
		labels_builder_set(&b, (struct str){ text, name }, (struct str){ text + name + 1, value });
		text += name + 1 + value;
		text += *text == ';';
	}
	CHECK(!labels_builder_build(&b, &out, NULL));
	return out;
}

TEST(steps_and_ends)
{
	struct buf text = { 0 }, got = { 0 };
	struct explanation e;
	struct config *c;
	struct arena a;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&text);
		buf_clear(&got);
		arena_init(&a, 0);
		buf_printf(&text,
			"scrape_configs:\n- {job_name: j, scrape_interval: 10s, "
			"scrape_timeout: 5s, %s}\n",
			rows[i].job);
		REQUIRE_OK(config_load_text("c.yml", STR("."), buf_str(&text), &c, &err), &err);
		REQUIRE_OK(targets_explain(
					   &c->scrape[0], (struct shard){ 0 }, parse(&a, rows[i].labels), &a, &e, &err),
			&err);
		print(&got, &e);
		if (!str_eq(buf_str(&got), str_of(rows[i].want)))
			CHECK_FAIL(
				"%s:\n" STR_FMT "want\n%s", rows[i].name, STR_ARG(buf_str(&got)), rows[i].want);
		config_unref(c);
		arena_release(&a);
	}
	buf_release(&text);
	buf_release(&got);
}

TEST(profiles_of_other_shards)
{
	static const char text[] = "scrape_configs:\n"
							   "- job_name: j\n"
							   "  relabel_configs:\n"
							   "  - {target_label: job, replacement: k}\n"
							   "  - {source_labels: [__name__], regex: block, action: drop}\n";
	unsigned owner = shard_of(STR("k"), STR("x:1"), 5);
	struct explanation e;
	struct config *c;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(config_load_text("c.yml", STR("."), str_of(text), &c, &err), &err);
	for (unsigned k = 0; k < 5; k++) {
		REQUIRE_OK(targets_explain(&c->scrape[0], (struct shard){ k, 5 },
					   parse(&a, "__address__=x:1"), &a, &e, &err),
			&err);
		CHECK(e.profiles_n == 6);
		for (size_t i = 0; i < e.profiles_n; i++) {
			bool dropped = str_is(e.profiles[i].profile, "block");

			CHECK_INT(e.profiles[i].end,
				dropped        ? EXPLAINED_DROPPED :
					k == owner ? EXPLAINED_SCRAPED :
								 EXPLAINED_ELSEWHERE);
			if (!dropped && k != owner)
				CHECK_INT(e.profiles[i].shard, owner);
		}
	}
	config_unref(c);
	arena_release(&a);
}
