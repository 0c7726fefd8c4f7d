/*
 * Pyroscope. The server before 1.0 scraped: `scrape-configs`, with keys-like-this, applications and
 * enabled profiles by names of its own. The one since has Prometheus's shape where it scrapes
 * (`scrape_configs` with profiling_config), among settings of a server.
 */
#include "base/quote.h"
#include "cmd/epitool/convert/comments.h"
#include "cmd/epitool/convert/convert.h"
#include "cmd/epitool/convert/yaml_copy.h"
#include "scrape/config/foreign.h"

static const struct {
	const char *theirs, *ours;
} profile_names[] = {
	{ "cpu", "process_cpu" },
	{ "mem", "memory" },
	{ "goroutines", "goroutine" },
	{ "mutex", "mutex" },
	{ "block", "block" },
};

#define PROFILES_N (sizeof(profile_names) / sizeof(profile_names[0]))

/* Their name of a profile that we know: its index; PROFILES_N: it is another. */
static size_t convert_find_profile(struct str theirs)
{
	size_t i = 0;

	while (i < PROFILES_N && !str_is(theirs, profile_names[i].theirs))
		i++;
	return i;
}

static bool convert_is_enabled(const struct yaml_node *enabled, struct str theirs)
{
	for (const struct yaml_node *m = enabled->child; m; m = m->next)
		if (str_eq(m->text, theirs))
			return true;
	return false;
}

/* ---- targets ---- */

static void convert_labels(const struct copying *c, struct item *group, const struct yaml_node *n)
{
	const struct yaml_node *application = copy_get(c, n, "application");
	const struct yaml_node *labels = copy_get(c, n, "labels");
	struct item *i, *name;

	if (!application && !labels)
		return;
	i = labels ? copy_open(c, group, labels) : item_mapping(c->x, group, "labels");
	if (application) {
		name = item_string(c->x, i, "service_name", application->text);
		item_comment(c->x, name, "it was `application`");
	}
	for (const struct yaml_node *m = copy_mapping(labels); m; m = m->next)
		copy_node(c, i, m)->key = m->key->text;
}

static void convert_static_configs(
	const struct copying *c, struct item *to, const struct yaml_node *n)
{
	struct item *list = copy_open(c, to, n), *group;

	for (const struct yaml_node *m = n->child; m; m = m->next) {
		const struct yaml_node *targets = copy_get(c, m, "targets");

		group = copy_open(c, list, m);
		if (targets)
			copy_node(c, group, targets);
		convert_labels(c, group, m);
	}
}

static void convert_file_configs(
	const struct copying *c, struct item *to, const struct yaml_node *n)
{
	struct item *i = copy_node(c, to, n);

	item_note(c->x, i, n->key->line, n->key->column,
		"in these files, write labels: {service_name: NAME} for `application` and `spy-name`");
}

static void convert_relabel_rules(
	const struct copying *c, struct item *to, const struct yaml_node *n)
{
	struct item *list = copy_open(c, to, n), *rule, *target;

	for (const struct yaml_node *m = n->child; m; m = m->next) {
		const struct yaml_node *label = copy_get(c, m, "target_label");

		if (label && str_is(label->text, "__spy_name__")) {
			copy_leave_out(c, list, m, true, "profiles say themselves what made them");
			continue;
		}
		rule = copy_node(c, list, m);
		target = label ? item_find(rule, "target_label") : NULL;
		if (target && str_is(label->text, "__name__")) {
			target->text = STR("service_name");
			item_note(c->x, target, label->line, label->column,
				"the application's name was __name__, which is the profile's name here");
		}
	}
}

/* ---- profiles ---- */

static void convert_enabled_profiles(
	const struct copying *c, struct item *to, const struct yaml_node *n)
{
	(void)c;
	(void)to;
	(void)n; /* with profiles, behind the other fields */
}

static void convert_one_profile(
	const struct copying *c, struct item *map, const struct yaml_node *n, bool enabled)
{
	static const struct copy_rule rules[] = {
		{ "sample_types", NULL, "the server knows of each type what it is; `kind` changes it" },
		{ "all_sample_types", NULL, "all sample types are kept" },
		{ NULL },
	};
	size_t known = convert_find_profile(n->key->text);
	struct item *i = copy_open(c, map, n);

	if (known < PROFILES_N)
		i->key = str_of(profile_names[known].ours);
	item_plain(c->x, i, "enabled", enabled ? STR("true") : STR("false"));
	if (n->kind == YAML_MAPPING)
		copy_members(c, i, n, &config_profile_schema, rules);
}

/* enabled and profiles of a job: either may be NULL. */
static void convert_profiles(const struct copying *c, struct item *job,
	const struct yaml_node *enabled, const struct yaml_node *profiles)
{
	struct item *map, *i;

	map = item_mapping(c->x, item_mapping(c->x, job, "profiling_config"), "pprof_config");
	if (enabled)
		comments_above(c->x, enabled->key->line, map);
	for (size_t k = 0; enabled && k < PROFILES_N; k++) {
		bool on = convert_is_enabled(enabled, str_of(profile_names[k].theirs));

		if (profiles && copy_get(c, profiles, profile_names[k].theirs))
			continue;
		i = item_mapping(c->x, map, profile_names[k].ours);
		item_plain(c->x, i, "enabled", on ? STR("true") : STR("false"));
	}
	for (const struct yaml_node *m = enabled ? enabled->child : NULL; m; m = m->next)
		if (convert_find_profile(m->text) == PROFILES_N &&
			!(profiles && yaml_get(profiles, m->text.ptr)))
			item_note(c->x, map, m->line, m->column, "profile %s is not known: write its path",
				QUOTED(m->text));
	for (const struct yaml_node *m = copy_mapping(profiles); m; m = m->next)
		if (!copy_is_missing(m))
			convert_one_profile(c, map, m, !enabled || convert_is_enabled(enabled, m->key->text));
}

/* ---- jobs of the old server ---- */

static const struct copy_rule old_job_rules[] = {
	{ "enabled_profiles", convert_enabled_profiles },
	{ "profiles", convert_enabled_profiles },
	{ "static_configs", convert_static_configs },
	{ "file_sd_configs", convert_file_configs },
	{ "http_sd_configs", convert_file_configs },
	{ "relabel_configs", convert_relabel_rules },
	{ "scrape_timeout", NULL,
		"it held a profile's seconds; here they are added, and 10s is the default" },
	{ NULL },
};

static void convert_old_jobs(const struct copying *c, struct item *to, const struct yaml_node *n)
{
	struct item *list = copy_open(c, to, n), *job;

	for (const struct yaml_node *m = n->child; m; m = m->next) {
		const struct yaml_node *enabled = copy_get(c, m, "enabled_profiles");
		const struct yaml_node *profiles = copy_get(c, m, "profiles");

		job = copy_open(c, list, m);
		if (m->kind != YAML_MAPPING)
			continue;
		copy_members(c, job, m, &config_job_schema, old_job_rules);
		if (enabled || profiles)
			convert_profiles(c, job, enabled, profiles);
		convert_note_targets(c->x, job, m->line, m->column);
	}
}

/* ---- both ---- */

static void convert_new_jobs(const struct copying *c, struct item *to, const struct yaml_node *n)
{
	static const struct copy_rule rules[] = { { NULL } };
	struct item *list = copy_open(c, to, n), *job;

	for (const struct yaml_node *m = n->child; m; m = m->next) {
		job = copy_open(c, list, m);
		if (m->kind != YAML_MAPPING)
			continue;
		copy_members(c, job, m, &config_job_schema, rules);
		convert_note_targets(c->x, job, m->line, m->column);
	}
}

#define FLAG(name) "write the flag " name
#define NOTHING "nothing here is like Pyroscope's setting"

static const struct copy_rule old_rules[] = {
	{ "scrape_configs", convert_old_jobs },
	{ "log_level", NULL, FLAG("--log.level") },
	{ "storage_path", NULL, FLAG("--storage.tsdb.path") },
	{ "api_bind_addr", NULL, FLAG("--web.listen-address") },
	{ "base_url", NULL, FLAG("--web.external-url") },
	{ "retention", NULL, FLAG("--storage.tsdb.retention.time") },
	{ NULL },
};

static const struct copy_rule new_rules[] = {
	{ "scrape_configs", convert_new_jobs },
	{ "server", NULL, FLAG("--web.listen-address, and --web.config.file for TLS") },
	{ "pyroscopedb", NULL, FLAG("--storage.tsdb.path") },
	{ "storage", NULL, "write `bucket` for an object store; Pyroscope's data are not taken over" },
	{ "limits", NULL, NOTHING },
	{ "distributor", NULL, NOTHING },
	{ "ingester", NULL, NOTHING },
	{ "querier", NULL, NOTHING },
	{ "memberlist", NULL, "servers do not talk to each other: see --shard.name" },
	{ "self_profiling", NULL, "write a job that scrapes this server" },
	{ NULL },
};

enum err_code convert_pyroscope(struct conversion *conversion, struct err *err)
{
	struct copying c = { .x = conversion, .program = "Pyroscope" };
	struct item *global;
	struct yaml_node *root;
	enum err_code rc = yaml_parse(
		conversion->arena, conversion->file, conversion->source, &root, err);

	if (rc)
		return rc;
	comments_read(conversion);
	if (root->kind != YAML_MAPPING)
		return yaml_err(root, err, ERR_INVALID, "expected a map");
	c.kebab = yaml_get(root, "scrape-configs") != NULL;
	if (!c.kebab && !yaml_get(root, "scrape_configs"))
		return yaml_err(root, err, ERR_INVALID,
			"it has neither scrape-configs nor scrape_configs: whatever sends profiles to "
			"Pyroscope "
			"can send them here, with --web.enable-ingest");
	global = item_mapping(conversion, conversion->root, "global");
	item_plain(conversion, global, "scrape_interval", c.kebab ? STR("10s") : STR("15s"));
	item_comment(conversion, global->child ? global->child : global,
		"Pyroscope's default, for jobs without one");
	copy_members(&c, conversion->root, root, &config_file_schema, c.kebab ? old_rules : new_rules);
	return conversion->failed ? arena_fail(conversion->arena, conversion->file, err) : ERR_OK;
}
