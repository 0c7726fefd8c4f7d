/*
 * Grafana Alloy: each pyroscope.scrape becomes a job, with the discovery, the relabelling and the
 * external labels that its targets and profiles pass. Targets that pass different rules become jobs
 * of their own.
 */
#include "base/clock.h"
#include "base/labels.h"
#include "base/quote.h"
#include "cmd/epitool/convert/alloy_parts.h"
#include "cmd/epitool/convert/convert.h"
#include "scrape/config/config.h"
#include "scrape/config/foreign.h"

#define DELTA_DEFAULT_S 14

/* ---- profiles ---- */

static const struct {
	const char *theirs, *ours;
	bool delta;
} profiles[] = {
	{ "profile.process_cpu", "process_cpu", true },
	{ "profile.memory", "memory", false },
	{ "profile.block", "block", false },
	{ "profile.mutex", "mutex", false },
	{ "profile.goroutine", "goroutine", false },
	{ "profile.fgprof", "fgprof", true },
};

/* godeltaprof's, which are differences since the last scrape. */
static const struct delta_profile {
	const char *theirs, *ours, *path;
} deltas[] = {
	{ "profile.godeltaprof_memory", "memory", "/debug/pprof/delta_heap" },
	{ "profile.godeltaprof_block", "block", "/debug/pprof/delta_block" },
	{ "profile.godeltaprof_mutex", "mutex", "/debug/pprof/delta_mutex" },
};

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

static bool convert_is_true(const struct alloy_statement *block, const char *name, bool by_default)
{
	const struct alloy_expr *e = alloy_attribute(block, name);

	return e && e->kind == ALLOY_BOOL ? str_is(e->text, "true") : by_default;
}

static struct item *convert_find_or_add(struct conversion *c, struct item *map, const char *key)
{
	struct item *i = item_find(map, key);

	return i ? i : item_mapping(c, map, key);
}

static void convert_set(
	struct conversion *c, struct item *map, const char *key, struct str text, bool plain)
{
	struct item *i = item_find(map, key);

	i = i ? i : item_string(c, map, key, text);
	i->text = text;
	i->plain = plain;
}

/*
 * The server makes the differences itself, of what the plain endpoint counts. Only where that one
 * is off and godeltaprof has a path of the user's own, that path is all that is known of the
 * program. The plain one's block is written already.
 */
static void convert_add_delta_profile(struct conversion *c, struct item *map,
	const struct alloy_statement *s, const struct delta_profile *d)
{
	const struct alloy_expr *e = alloy_attribute(s, "path");
	struct item *i, *enabled;
	struct str path = str_of(d->path);
	bool plain_is_on;

	if (!convert_is_true(s, "enabled", false))
		return;
	if (e && !alloy_string(c->arena, e, &path))
		path = str_of(d->path);
	i = convert_find_or_add(c, map, d->ours);
	enabled = item_find(i, "enabled");
	plain_is_on = !enabled || str_is(enabled->text, "true");
	if (enabled)
		enabled->text = STR("true");
	if (plain_is_on && !str_is(path, d->path)) {
		item_note(c, i, s->line, s->column,
			"%s is not needed, nor is its path " STR_FMT
			": the server stores the increase of what counts since the start",
			alloy_title(c, s), STR_ARG(str_printable(c->arena, path)));
	} else if (plain_is_on) {
		item_note(c, i, s->line, s->column,
			"%s is not needed: the server stores the increase of what counts since the start",
			alloy_title(c, s));
	} else if (str_is(path, d->path)) {
		item_note(c, i, s->line, s->column,
			"%s is on for %s: the server stores the increase of what counts since the start",
			d->ours, alloy_title(c, s));
	} else {
		convert_set(c, i, "path", path, false);
		if (!profile_path_since_last(path))
			convert_set(c, i, "delta", STR("true"), true);
		item_note(
			c, i, s->line, s->column, "%s is taken at the path of %s", d->ours, alloy_title(c, s));
	}
}

static const struct delta_profile *convert_find_delta(const struct alloy_statement *s)
{
	for (size_t k = 0; k < COUNT(deltas); k++)
		if (!s->value && str_is(s->name, deltas[k].theirs))
			return &deltas[k];
	return NULL;
}

static void convert_add_profile(
	struct conversion *c, struct item *map, const struct alloy_statement *s)
{
	struct item *i;

	for (size_t k = 0; k < COUNT(profiles); k++)
		if (str_is(s->name, profiles[k].theirs)) {
			alloy_add_block(c, convert_find_or_add(c, map, profiles[k].ours), s);
			return;
		}
	if (str_is(s->name, "profile.custom") && label_name_valid(s->label)) {
		i = item_add(c, map, s->label, YAML_MAPPING);
		alloy_add_block(c, i, s);
		return;
	}
	i = item_mapping(c, map, "");
	i->reason_only = true;
	item_leave_out(c, i, s->line, s->column, alloy_title(c, s), "no profile here has that name");
}

static void convert_add_profiling(
	struct conversion *c, struct item *job, const struct alloy_statement *block)
{
	struct item *config = item_mapping(c, job, "profiling_config"), *map = NULL;

	if (block->comment.len)
		item_comment(c, config, STR_FMT, STR_ARG(block->comment));
	for (const struct alloy_statement *s = block->child; s; s = s->next) {
		if (s->value) {
			alloy_add_statement(c, config, s);
			continue;
		}
		map = map ? map : item_mapping(c, config, "pprof_config");
		if (!convert_find_delta(s))
			convert_add_profile(c, map, s);
	}
	for (const struct alloy_statement *s = block->child; s; s = s->next)
		if (convert_find_delta(s))
			convert_add_delta_profile(c, map, s, convert_find_delta(s));
}

/* What Alloy measures in each interval; ours is one second less than the interval. */
static void convert_add_seconds(
	struct conversion *c, struct item *job, const struct alloy_statement *scrape)
{
	const struct alloy_expr *duration = alloy_attribute(scrape, "delta_profiling_duration");
	const struct alloy_expr *interval = alloy_attribute(scrape, "scrape_interval");
	int64_t ns = DELTA_DEFAULT_S * NS_PER_S, interval_ns = 15 * NS_PER_S;
	struct item *map, *cpu;
	struct str text;
	char *seconds;

	if (duration && (!alloy_string(c->arena, duration, &text) || duration_parse(text, &ns, NULL)))
		return;
	if (interval &&
		(!alloy_string(c->arena, interval, &text) || duration_parse(text, &interval_ns, NULL)))
		return;
	if (ns < NS_PER_S || ns == interval_ns - NS_PER_S || ns > interval_ns)
		return;
	map = convert_find_or_add(c, convert_find_or_add(c, job, "profiling_config"), "pprof_config");
	cpu = convert_find_or_add(c, map, "process_cpu");
	seconds = arena_printf(c->arena, "%lld", (long long)(ns / NS_PER_S));
	c->failed |= !seconds;
	cpu = item_plain(c, cpu, "seconds", str_of(seconds ? seconds : "1"));
	item_comment(c, cpu,
		duration ? "it was delta_profiling_duration" :
				   "Alloy's default; here it is one second less than the interval");
}

/* ---- rules ---- */

/* '$' begins a group in a replacement. */
static struct str convert_escape(struct conversion *c, struct str s)
{
	struct buf b = { 0 };
	struct str made;

	for (size_t i = 0; i < s.len; i++)
		buf_printf(&b, s.ptr[i] == '$' ? "$$" : "%c", s.ptr[i]);
	made = str_dup(c->arena, buf_str(&b));
	c->failed |= buf_failed(&b) || !made.ptr;
	buf_release(&b);
	return made;
}

static struct item *convert_add_rule(
	struct conversion *c, struct item *rules, const char *label, struct str value)
{
	struct item *rule = item_mapping(c, rules, "");

	item_string(c, rule, "target_label", str_of(label));
	item_string(c, rule, "replacement", convert_escape(c, value));
	return rule;
}

static void convert_add_rules(
	struct conversion *c, struct item *rules, const struct alloy_statement *relabel)
{
	bool first = true;
	struct item *rule;

	for (const struct alloy_statement *s = relabel->child; s; s = s->next) {
		if (s->value || !str_is(s->name, "rule"))
			continue;
		rule = item_mapping(c, rules, "");
		if (first)
			item_comment(c, rule, "%s", alloy_title(c, relabel));
		if (s->comment.len)
			item_comment(c, rule, STR_FMT, STR_ARG(s->comment));
		alloy_add_block(c, rule, s);
		first = false;
	}
}

static void convert_add_external(
	struct conversion *conversion, struct item *rules, const struct alloy_statement *write)
{
	const struct alloy_expr *labels = alloy_attribute(write, "external_labels");
	bool first = true;
	struct item *rule;
	struct str value;

	for (const struct alloy_expr *c = labels ? labels->child : NULL; c; c = c->next) {
		if (labels->kind != ALLOY_OBJECT || !alloy_string(conversion->arena, c, &value)) {
			rule = item_mapping(conversion, rules, "");
			rule->reason_only = true;
			item_leave_out(conversion, rule, c->line, c->column, "an external label",
				"its value is not in this file");
			continue;
		}
		rule = item_mapping(conversion, rules, "");
		item_string(conversion, rule, "target_label", c->key);
		item_string(conversion, rule, "replacement", convert_escape(conversion, value));
		if (first)
			item_comment(conversion, rule, "external_labels of %s", alloy_title(conversion, write));
		first = false;
	}
}

/* What profiles pass on their way to storage. depth: pyroscope.relabel may lead to another. */
static void convert_add_receivers(
	const struct alloy_file *f, struct item *rules, const struct alloy_expr *list, unsigned depth)
{
	const struct alloy_statement *s;
	const struct alloy_expr *next;

	for (const struct alloy_expr *c = list && list->kind == ALLOY_LIST ? list->child : NULL;
		 c && alloy_step(f); c = c->next) {
		s = c->kind == ALLOY_NAME ? alloy_component(f, c->text) : NULL;
		if (s && str_is(s->name, "pyroscope.write")) {
			convert_add_external(f->x, rules, s);
		} else if (s && str_is(s->name, "pyroscope.relabel") && depth < 8) {
			convert_add_rules(f->x, rules, s);
			next = alloy_attribute(s, "forward_to");
			if (next)
				convert_add_receivers(f, rules, next, depth + 1);
		} else {
			struct str source = c->source;

			source.len = source.len < 80 ? source.len : 80;
			item_note(f->x, rules, c->line, c->column, "%s is not followed", QUOTED(source));
		}
	}
}

static bool convert_finds_pods(struct conversion *c, const struct alloy_origin *o)
{
	const struct alloy_expr *role = o->discovery ? alloy_attribute(o->discovery, "role") : NULL;
	struct str text;

	return o->discovery && str_is(o->discovery->name, "discovery.kubernetes") && role &&
		alloy_string(c->arena, role, &text) && !str_is(text, "node");
}

/* Alloy infers service_name where no rule sets it; a rule in front of all others does the same. */
static void convert_add_service_name(
	struct conversion *c, struct item *rules, const struct alloy_origin *o)
{
	struct item *rule, *sources;

	if (!convert_finds_pods(c, o))
		return;
	rule = item_mapping(c, rules, "");
	item_comment(c, rule, "service_name, as Alloy infers it");
	sources = item_sequence(c, rule, "source_labels");
	item_string(c, sources, "", STR("__meta_kubernetes_namespace"));
	item_string(c, sources, "", STR("__meta_kubernetes_pod_container_name"));
	item_string(c, rule, "separator", STR("/"));
	item_string(c, rule, "target_label", STR("service_name"));
}

/* ---- a job ---- */

static struct str convert_job_name(const struct alloy_file *f, const struct alloy_statement *scrape)
{
	const struct alloy_expr *e = alloy_attribute(scrape, "job_name");
	struct str name;
	char *made;

	if (e && alloy_string(f->x->arena, e, &name) && name.len)
		return name;
	made = arena_printf(
		f->x->arena, STR_FMT "." STR_FMT, STR_ARG(scrape->name), STR_ARG(scrape->label));
	f->x->failed |= !made;
	return str_of(made ? made : "");
}

static void convert_add_argument(
	struct conversion *c, struct item *job, const struct alloy_statement *s)
{
	static const char *const elsewhere[] = { "targets", "forward_to", "job_name",
		"delta_profiling_duration" };
	struct item *i;

	for (size_t k = 0; k < COUNT(elsewhere); k++)
		if (str_is(s->name, elsewhere[k]))
			return;
	if (str_is(s->name, "profiling_config")) {
		convert_add_profiling(c, job, s);
		return;
	}
	if (yaml_field_find(&config_job_schema, s->name)) {
		alloy_add_statement(c, job, s);
		return;
	}
	i = item_add(c, job, s->name, YAML_MAPPING);
	i->reason_only = true;
	item_leave_out(c, i, s->line, s->column, alloy_title(c, s), "%s",
		str_is(s->name, "clustering") ? "servers share targets by --shard.name and --shard.total" :
										"nothing here is like Alloy's setting");
}

static struct item *convert_add_job(const struct alloy_file *f, struct item *jobs,
	const struct alloy_statement *scrape, struct alloy_origin *first, unsigned number)
{
	struct conversion *x = f->x;
	struct item *job = item_mapping(x, jobs, ""), *rules;
	struct str name = convert_job_name(f, scrape), own = name;
	char *numbered;

	if (scrape->comment.len && number == 1)
		item_comment(x, job, STR_FMT, STR_ARG(scrape->comment));
	if (number > 1) {
		numbered = arena_printf(x->arena, STR_FMT "-%u", STR_ARG(name), number);
		x->failed |= !numbered;
		own = str_of(numbered ? numbered : "");
		item_note(x, job, scrape->line, scrape->column,
			"targets of %s that pass other rules are a job of their own", alloy_title(x, scrape));
	}
	item_string(x, job, "job_name", own);
	for (const struct alloy_statement *s = scrape->child; s; s = s->next)
		convert_add_argument(x, job, s);
	convert_add_seconds(x, job, scrape);
	if (first)
		alloy_add_origins(f, job, first);
	rules = item_add(x, NULL, STR("relabel_configs"), YAML_SEQUENCE);
	if (number > 1)
		convert_add_rule(x, rules, "job", name);
	if (first)
		convert_add_service_name(x, rules, first);
	for (const struct alloy_chain *c = first ? first->chain : NULL; c; c = c->next)
		convert_add_rules(x, rules, c->relabel);
	convert_add_receivers(f, rules, alloy_attribute(scrape, "forward_to"), 0);
	if (rules->child || rules->above.len)
		item_append(job, rules);
	convert_note_targets(x, job, scrape->line, scrape->column);
	return job;
}

static void convert_add_jobs(
	const struct alloy_file *f, struct item *jobs, const struct alloy_statement *scrape)
{
	const struct alloy_expr *targets = alloy_attribute(scrape, "targets");
	struct item *notes = item_add(f->x, NULL, STR(""), YAML_MAPPING), *job = NULL, *one;
	struct alloy_origin *o = targets ? alloy_origins(f, notes, targets) : NULL;
	unsigned n = 0;

	if (!o)
		job = convert_add_job(f, jobs, scrape, NULL, 1);
	for (; o; o = o->next) {
		if (o->done)
			continue;
		one = convert_add_job(f, jobs, scrape, o, ++n);
		job = job ? job : one;
	}
	if (notes->above.len)
		item_comment(f->x, job, STR_FMT, STR_ARG(notes->above));
}

/* ---- the file ---- */

/* Components that have no place here, each with what becomes of it. */
static void convert_note_others(const struct alloy_file *f)
{
	for (const struct alloy_statement *s = f->statements; s; s = s->next) {
		if (str_is(s->name, "pyroscope.scrape") || str_is(s->name, "pyroscope.write") ||
			str_is(s->name, "pyroscope.relabel") || str_has_prefix(s->name, STR("discovery.")))
			continue;
		if (str_has_prefix(s->name, STR("pyroscope.")))
			item_note(f->x, f->x->root, s->line, s->column,
				"%s stays in Alloy: let its pyroscope.write send here, to a server with "
				"--web.enable-ingest",
				alloy_title(f->x, s));
		else if (str_is(s->name, "declare") || str_has_prefix(s->name, STR("import.")))
			item_note(f->x, f->x->root, s->line, s->column,
				"%s is not followed: convert the components of a module on their own",
				alloy_title(f->x, s));
		else
			item_note(f->x, f->x->root, s->line, s->column,
				"%s is left out: it is not about scraping profiles", alloy_title(f->x, s));
	}
}

enum err_code convert_alloy(struct conversion *c, struct err *err)
{
	size_t steps = 0;
	struct alloy_file f = { .x = c, .steps = &steps };
	struct item *global, *jobs;
	enum err_code rc = alloy_parse(c->arena, c->file, c->source, &f.statements, err);

	if (rc)
		return rc;
	convert_note_others(&f);
	global = item_mapping(c, c->root, "global");
	item_plain(c, global, "scrape_interval", STR("15s"));
	item_comment(
		c, global->child ? global->child : global, "Alloy's default, for jobs without one");
	jobs = item_sequence(c, c->root, "scrape_configs");
	for (const struct alloy_statement *s = f.statements; s; s = s->next)
		if (!s->value && str_is(s->name, "pyroscope.scrape"))
			convert_add_jobs(&f, jobs, s);
	if (steps > ALLOY_STEPS_MAX)
		return err_set(err, ERR_LIMIT,
			"%s:1:1: components refer to each other more often than %u "
			"steps can follow",
			c->file, ALLOY_STEPS_MAX);
	return c->failed ? arena_fail(c->arena, c->file, err) : ERR_OK;
}
