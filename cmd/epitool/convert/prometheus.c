/* Prometheus and Parca: their configurations are ours but for some fields. */
#include "base/quote.h"
#include "cmd/epitool/convert/comments.h"
#include "cmd/epitool/convert/convert.h"
#include "cmd/epitool/convert/yaml_copy.h"
#include "scrape/config/foreign.h"

static enum err_code convert_parse(struct conversion *c, struct yaml_node **root, struct err *err)
{
	enum err_code rc = yaml_parse(c->arena, c->file, c->source, root, err);

	if (rc)
		return rc;
	comments_read(c);
	if ((*root)->kind != YAML_MAPPING && !yaml_is_null(*root))
		return yaml_err(*root, err, ERR_INVALID, "expected a map");
	return ERR_OK;
}

static enum err_code convert_finish(const struct conversion *c, struct err *err)
{
	return c->failed ? arena_fail(c->arena, c->file, err) : ERR_OK;
}

/* ---- jobs ---- */

static bool convert_sets_metrics_path(const struct copying *c, const struct yaml_node *rule)
{
	const struct yaml_node *target = copy_get(c, rule, "target_label");

	return target && str_is(target->text, "__metrics_path__");
}

static void convert_relabel(const struct copying *c, struct item *to, const struct yaml_node *n)
{
	struct item *list = copy_open(c, to, n);

	for (const struct yaml_node *m = n->child; m; m = m->next)
		if (convert_sets_metrics_path(c, m))
			copy_leave_out(c, list, m, true,
				"the label with a profile's path is __profile_path__, one per profile");
		else
			copy_node(c, list, m);
}

static struct item *convert_jobs_by(const struct copying *c, struct item *to,
	const struct yaml_node *n, const struct copy_rule *rules)
{
	struct item *list = copy_open(c, to, n), *job;

	for (const struct yaml_node *m = n->child; m; m = m->next) {
		job = copy_open(c, list, m);
		if (m->kind != YAML_MAPPING)
			continue;
		copy_members(c, job, m, &config_job_schema, rules);
		convert_note_targets(c->x, job, m->line, m->column);
	}
	return list;
}

/* ---- Prometheus ---- */

#define SAMPLES "it counts samples of metrics; here it would count those of one profile"
#define BODY "it is meant for pages of metrics; here it would limit a profile"

static const struct copy_rule prometheus_job_rules[] = {
	{ "params", NULL, "they go with the path of metrics; here they would go with each profile's" },
	{ "sample_limit", NULL, SAMPLES },
	{ "body_size_limit", NULL, BODY },
	{ "relabel_configs", convert_relabel },
	{ NULL },
};

static void prometheus_jobs(const struct copying *c, struct item *to, const struct yaml_node *n)
{
	struct item *list = convert_jobs_by(c, to, n, prometheus_job_rules);

	item_comment(c->x, list,
		"each job takes profiles at /debug/pprof/ now: drop those whose programs have none there");
}

static const struct copy_rule prometheus_global_rules[] = {
	{ "sample_limit", NULL, SAMPLES },
	{ "body_size_limit", NULL, BODY },
	{ NULL },
};

static void prometheus_global(const struct copying *c, struct item *to, const struct yaml_node *n)
{
	struct item *global = copy_open(c, to, n);

	copy_members(c, global, n, &config_global_schema, prometheus_global_rules);
}

static void prometheus_rules(const struct copying *c, struct item *to, const struct yaml_node *n)
{
	copy_leave_out(c, to, n, true,
		"their expressions are about metrics; rules about profiles have the same form");
}

static void prometheus_files(const struct copying *c, struct item *to, const struct yaml_node *n)
{
	copy_leave_out(c, to, n, true, "convert each of these files too, then name what comes out");
}

static const struct copy_rule prometheus_rules_table[] = {
	{ "global", prometheus_global },
	{ "scrape_configs", prometheus_jobs },
	{ "rule_files", prometheus_rules },
	{ "scrape_config_files", prometheus_files },
	{ NULL },
};

enum err_code convert_prometheus(struct conversion *conversion, struct err *err)
{
	const struct copying c = { .x = conversion, .program = "Prometheus" };
	struct yaml_node *root;
	enum err_code rc = convert_parse(conversion, &root, err);

	if (rc)
		return rc;
	copy_members(&c, conversion->root, root, &config_file_schema, prometheus_rules_table);
	return convert_finish(conversion, err);
}

/* ---- Parca ---- */

static bool convert_is_parca_default(struct str name)
{
	static const char *const names[] = { "memory", "block", "goroutine", "mutex", "process_cpu" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_is(name, names[i]))
			return true;
	return false;
}

static void convert_parca_profiles(
	const struct copying *c, struct item *to, const struct yaml_node *n)
{
	static const struct copy_rule none[] = { { NULL } };
	struct item *map = copy_open(c, to, n), *profile;

	for (const struct yaml_node *m = copy_mapping(n); m; m = m->next) {
		if (m->kind != YAML_MAPPING) {
			copy_node(c, map, m);
			continue;
		}
		profile = copy_open(c, map, m);
		copy_members(c, profile, m, &config_profile_schema, none);
		if (!convert_is_parca_default(m->key->text) && !yaml_get(m, "enabled"))
			item_note(c->x, profile, m->key->line, m->key->column,
				"Parca did not take %s, without `enabled: true`; here the path is enough",
				QUOTED(m->key->text));
	}
}

static void convert_parca_profiling(
	const struct copying *c, struct item *to, const struct yaml_node *n)
{
	static const struct copy_rule rules[] = { { "pprof_config", convert_parca_profiles },
		{ NULL } };
	struct item *i = copy_open(c, to, n);

	copy_members(c, i, n, NULL, rules);
}

static const struct copy_rule parca_job_rules[] = {
	{ "scrape_timeout", NULL,
		"Parca's is longer than the interval, as it holds a profile's seconds; here they are "
		"added, and 10s is the default" },
	{ "profiling_config", convert_parca_profiling },
	{ "relabel_configs", convert_relabel },
	{ NULL },
};

static void convert_parca_jobs(const struct copying *c, struct item *to, const struct yaml_node *n)
{
	convert_jobs_by(c, to, n, parca_job_rules);
}

static const struct copy_rule parca_rules[] = {
	{ "object_storage", NULL,
		"without `bucket` profiles are on the disk, in --storage.tsdb.path; Parca's data are not "
		"taken over" },
	{ "scrape_configs", convert_parca_jobs },
	{ NULL },
};

static void convert_default_interval(
	struct conversion *c, const char *interval, const char *program)
{
	struct item *global = item_mapping(c, c->root, "global");

	item_plain(c, global, "scrape_interval", str_of(interval));
	item_comment(
		c, global->child ? global->child : global, "%s's default, for jobs without one", program);
}

enum err_code convert_parca(struct conversion *conversion, struct err *err)
{
	const struct copying c = { .x = conversion, .program = "Parca" };
	struct yaml_node *root;
	enum err_code rc = convert_parse(conversion, &root, err);

	if (rc)
		return rc;
	convert_default_interval(conversion, "10s", "Parca");
	copy_members(&c, conversion->root, root, &config_file_schema, parca_rules);
	return convert_finish(conversion, err);
}
