/*
 * fuzz: scrape
 * A configuration. What is accepted keeps its invariants, expands into targets that can be scraped,
 * and prints as YAML. Files named by it are not read here: inputs that would do so are passed over.
 */
#include "scrape/targets/targets.h"
#include "tests/fuzz/fuzz.h"

static void check_job(struct config *c, const struct scrape_config *job)
{
	struct groups *g = groups_new(0);
	const struct target *t;
	struct target_set *s;
	struct err err;

	require(g && job->job_name.len && job->scrape_interval_ns > 0);
	require(job->scrape_timeout_ns > 0 && job->scrape_timeout_ns <= job->scrape_interval_ns);
	require(job->body_size_limit > 0);
	for (size_t i = 0; i < job->profiles_n; i++)
		require(!job->profiles[i].enabled || job->profiles[i].path.len);
	g->v = job->sd.statics;
	g->n = job->sd.statics_n;
	if (!targets_expand(c, job, (struct shard){ 0 }, g, NULL, &s, &err)) {
		for (size_t i = 0; i < s->n; i++) {
			t = target_set_at(s, i);
			require(t->interval_ns > 0 && t->timeout_ns > 0);
			require(str_has_prefix(t->url, STR("http")) && t->name.len);
			require(i == 0 || target_cmp(target_set_at(s, i - 1), t) < 0);
		}
		target_set_unref(s);
	}
	groups_unref(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct buf printed = { 0 };
	struct yaml_node *root;
	struct config *c;
	struct arena a;
	struct err err;

	if (str_find(text, STR("config_files")) >= 0)
		return 0;
	if (config_load_text("f", STR("/nonexistent"), text, &c, &err))
		return 0;
	for (size_t i = 0; i < c->scrape_n; i++)
		check_job(c, &c->scrape[i]);
	config_print(&printed, c);
	arena_init(&a, 256u << 20);
	require(!yaml_parse(&a, "printed", buf_str(&printed), &root, &err));
	arena_release(&a);
	buf_release(&printed);
	config_unref(c);
	return 0;
}
