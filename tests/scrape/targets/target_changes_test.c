/*
 * Sets that follow each other: after each change of groups, the set that took over what it could is
 * the same as one made anew, and takes over the parts of all groups that stayed.
 */
#include "scrape/targets/targets.h"
#include "tests/check.h"
#include "tests/draw.h"

#define PODS 400 /* some 1,500 targets: several chunks */
#define NAMES 900
#define PAGE 20
#define PAGES (PODS / 2 / PAGE)
#define STEPS (check_is_short() ? 40 : 200)

struct world {
	struct config *config;
	struct draw d;
	struct groups *pods[PODS]; /* NULL: it is not there */
	size_t order[PODS];
	struct groups *pages[PAGES];
};

static const char *const job =
	"scrape_configs:\n- job_name: j\n  %s\n"
	"  profiling_config: {pprof_config: {process_cpu: {enabled: false}, memory: {enabled: false}, "
	"block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: "
	"{enabled: false}, "
	"m: {path: /m, delta: true}, n: {path: /n}}}\n"
	"  relabel_configs:\n"
	"  - {source_labels: [pod], target_label: instance}\n"
	"  - {source_labels: [fate], regex: gone, action: drop}\n"
	"  - {source_labels: [fate], regex: wrong, target_label: __scrape_interval__, replacement: "
	"x}\n";

static void world_open(struct world *w, const char *settings)
{
	struct buf text = { 0 };
	struct err err;

	*w = (struct world){ .d = { .state = 5 } };
	buf_printf(&text, job, settings);
	CHECK_OK(config_load_text("c.yml", STR("."), buf_str(&text), &w->config, &err), &err);
	buf_release(&text);
	for (size_t i = 0; i < PODS; i++)
		w->order[i] = i;
}

static void world_close(struct world *w)
{
	for (size_t i = 0; i < PODS; i++)
		groups_unref(w->pods[i]);
	for (size_t i = 0; i < PAGES; i++)
		groups_unref(w->pages[i]);
	config_unref(w->config);
}

/* A pod with some targets. Few names, so that labels meet in several pods. */
static struct groups *make_pod(struct world *w)
{
	static const char *const fates[] = { "", "", "", "", "gone", "wrong" };
	struct label v[3][3];
	struct labels targets[3];
	struct target_group g = { .source = STR("pod"), .targets = targets };
	struct groups *out = NULL;
	char texts[3][2][32];
	struct err err;

	g.targets_n = 1 + draw(&w->d, 3);
	for (size_t i = 0; i < g.targets_n; i++) {
		snprintf(texts[i][0], sizeof(texts[i][0]), "10.0.0.%u:1", draw(&w->d, NAMES));
		snprintf(texts[i][1], sizeof(texts[i][1]), "p%u", draw(&w->d, NAMES));
		v[i][0] = (struct label){ STR("__address__"), str_of(texts[i][0]) };
		v[i][1] = (struct label){ STR("fate"), str_of(fates[draw(&w->d, 6)]) };
		v[i][2] = (struct label){ STR("pod"), str_of(texts[i][1]) };
		targets[i] = (struct labels){ v[i], 3 };
	}
	CHECK_OK(groups_pack(&g, 1, &out, &err), &err);
	return out;
}

static void change_some(struct world *w)
{
	uint32_t many = draw(&w->d, 16) == 0 ? PODS : 4;

	for (uint32_t n = draw(&w->d, many); n > 0; n--) {
		size_t i = draw(&w->d, PODS), k = draw(&w->d, PODS), was = w->order[i];

		switch (draw(&w->d, 4)) {
		case 0:
			groups_unref(w->pods[i]);
			w->pods[i] = NULL;
			break;
		case 1: /* discovery keeps no order */
			w->order[i] = w->order[k];
			w->order[k] = was;
			break;
		default:
			groups_unref(w->pods[i]);
			w->pods[i] = make_pod(w);
		}
	}
}

static bool is_same_page(const struct groups *a, const struct groups *b)
{
	return a->parts_n == b->parts_n &&
		(!a->parts_n || memcmp(a->parts, b->parts, a->parts_n * sizeof(struct groups *)) == 0);
}

/* As Kubernetes delivers them. A page in which nothing changed is the same object. */
static enum err_code bundle_pages(
	struct world *w, struct groups **pods, struct groups **out, struct err *err)
{
	struct groups *pages[PAGES];
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < PAGES && !rc; i++) {
		rc = groups_bundle(pods + i * PAGE, PAGE, &pages[i], err);
		if (!rc && w->pages[i] && is_same_page(w->pages[i], pages[i])) {
			groups_unref(pages[i]);
			pages[i] = w->pages[i];
		} else {
			groups_unref(w->pages[i]);
			w->pages[i] = pages[i];
		}
	}
	return rc ? rc : groups_bundle(pages, PAGES, out, err);
}

/* Of two sources, as a job has them; now and then one of them is there twice. */
static struct groups *all_pods(struct world *w)
{
	struct groups *halves[3] = { NULL }, *in_order[PODS], *all = NULL;
	struct err err;

	for (size_t i = 0; i < PODS; i++)
		in_order[i] = w->pods[w->order[i]];
	CHECK_OK(groups_join(in_order, PODS / 2, &halves[0], &err), &err);
	CHECK_OK(bundle_pages(w, in_order + PODS / 2, &halves[1], &err), &err);
	if (draw(&w->d, 8) == 0)
		halves[2] = groups_ref(halves[0]);
	CHECK_OK(groups_bundle(halves, 3, &all, &err), &err);
	for (int i = 0; i < 3; i++)
		groups_unref(halves[i]);
	return all;
}

static void print_part(void *ctx, struct target_part *p)
{
	buf_printf(ctx, "%zu targets, %zu dropped, " STR_FMT "; " STR_FMT "\n", p->n, p->dropped_n,
		STR_ARG(p->error), STR_ARG(p->refused));
}

static void print(struct buf *out, const struct target_set *s)
{
	buf_clear(out);
	for (size_t i = 0; i < s->n; i++) {
		labels_print(out, target_set_at(s, i)->labels);
		buf_printf(out, " " STR_FMT "\n", STR_ARG(target_set_at(s, i)->url));
	}
	buf_printf(out, "dropped %zu elsewhere %zu error %s limit %d\n", s->dropped_total, s->elsewhere,
		s->error ? s->error : "", s->limit_exceeded);
	target_node_each_part(s->tree, print_part, out);
}

/* Targets of pods that stayed are the same objects. */
static size_t taken_over(const struct target_set *a, const struct target_set *b)
{
	size_t n = 0;

	for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
		const struct target *x = target_set_at(a, i), *y = target_set_at(b, k);
		int c = target_cmp(x, y);

		n += x == y;
		i += c <= 0;
		k += c >= 0;
	}
	return n;
}

static void check_changes(const char *settings, struct shard shard, bool all_anew)
{
	struct target_set *before = NULL, *next, *anew;
	struct buf got = { 0 }, want = { 0 };
	size_t same = 0, of = 0, limited = 0;
	struct world w;
	struct err err;

	world_open(&w, settings);
	for (int step = 0; step < STEPS && !check_failures; step++) {
		struct groups *g;

		change_some(&w);
		g = all_pods(&w);
		REQUIRE_OK(targets_expand(w.config, w.config->scrape, shard, g, before, &next, &err), &err);
		REQUIRE_OK(targets_expand(w.config, w.config->scrape, shard, g, NULL, &anew, &err), &err);
		print(&got, next);
		print(&want, anew);
		buf_add_char(&want, '\0');
		CHECK_STR(buf_str(&got), want.ptr);
		if (before) {
			same += taken_over(before, next);
			of += next->n;
		}
		limited += next->limit_exceeded;
		target_set_unref(before);
		target_set_unref(anew);
		before = next;
		groups_unref(g);
	}
	CHECK(all_anew ? limited > 0 : same > of / 10 * 8);
	target_set_unref(before);
	buf_release(&got);
	buf_release(&want);
	world_close(&w);
}

TEST(a_set_that_follows_another_is_as_one_made_anew)
{
	check_changes("honor_labels: false", (struct shard){ 0 }, false);
}

TEST(of_a_shard)
{
	check_changes("honor_labels: false", (struct shard){ 1, 3 }, false);
}

TEST(limits_are_of_the_whole_set)
{
	check_changes("target_limit: 200", (struct shard){ 0 }, true);
}

/* What is shared by all parts does not grow for ever. */
TEST(years_of_changes_keep_no_memory)
{
	struct target_set *before = NULL, *next;
	unsigned anew = 0;
	struct world w;
	struct err err;

	world_open(&w, "honor_labels: false");
	for (int step = 0; step < 6000; step++) {
		char interval[32];
		struct label v[2] = { { STR("__address__"), STR("a:1") }, { STR("pod"), STR("p") } };
		struct labels targets[1] = { { v, 2 } };
		struct label common = { STR("__scrape_interval__"), { interval, 0 } };
		struct target_group group = { .source = STR("s"), .labels = { &common, 1 },
										  .targets = targets, .targets_n = 1 };
		struct groups *g;

		common.value.len = (size_t)snprintf(interval, sizeof(interval), "%ds", 10 + step);
		REQUIRE_OK(groups_pack(&group, 1, &g, &err), &err);
		REQUIRE_OK(
			targets_expand(w.config, w.config->scrape, (struct shard){ 0 }, g, before, &next, &err),
			&err);
		anew += before && next->shared != before->shared;
		target_set_unref(before);
		before = next;
		groups_unref(g);
	}
	CHECK(anew > 0 && anew < 10);
	target_set_unref(before);
	world_close(&w);
}
