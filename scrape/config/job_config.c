#include "scrape/config/job_config.h"

#include <assert.h>
#include <stdlib.h>

#include "base/net/bare_ipv6.h"
#include "base/net/http_config.h"
#include "base/quote.h"
#include "base/yaml/problems.h"
#include "discovery/foreign_sd.h"
#include "scrape/config/foreign.h"

#define PARAMS_MAX 1000u
#define INSTANCE_LABELS_MAX 32u

/* ---- params ---- */

static int job_config_param_cmp(const void *a, const void *b)
{
	return str_cmp(((const struct param_config *)a)->name, ((const struct param_config *)b)->name);
}

static enum err_code job_config_decode_strings(struct yaml_ctx *ctx, const struct yaml_node *n,
	size_t max, struct str **out, size_t *out_n, struct err *err)
{
	const struct yaml_node *c;
	struct str *v;
	size_t i = 0;

	if (yaml_is_null(n)) {
		*out_n = 0;
		return ERR_OK;
	}
	if (n->kind != YAML_SEQUENCE)
		return yaml_err(n, err, ERR_INVALID, "expected a list of strings");
	if (n->n > max)
		return yaml_err(n, err, ERR_LIMIT, "more than %zu entries", max);
	v = arena_array(ctx->arena, struct str, n->n);
	if (!v)
		return arena_fail(ctx->arena, "configuration", err);
	for (c = n->child; c; c = c->next) {
		if (c->kind != YAML_SCALAR)
			return yaml_err(c, err, ERR_INVALID, "expected a string");
		v[i++] = c->text;
	}
	*out = v;
	*out_n = i;
	return ERR_OK;
}

enum err_code params_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	struct params_config *out = field;
	const struct yaml_node *c;
	struct param_config *p;
	enum err_code rc;

	if (n->kind != YAML_MAPPING)
		return yaml_err(n, err, ERR_INVALID, "expected a map of names to lists of values");
	if (n->n > PARAMS_MAX)
		return yaml_err(n, err, ERR_LIMIT, "more than %u params", PARAMS_MAX);
	out->v = arena_array(ctx->arena, struct param_config, n->n);
	if (!out->v)
		return arena_fail(ctx->arena, "configuration", err);
	out->n = 0;
	for (c = n->child; c; c = c->next) {
		p = &out->v[out->n++];
		p->name = c->key->text;
		rc = job_config_decode_strings(ctx, c, PARAMS_MAX, &p->values, &p->values_n, err);
		if (rc)
			return rc;
	}
	qsort(out->v, out->n, sizeof(*out->v), job_config_param_cmp);
	return ERR_OK;
}

/* ---- the job ---- */

static enum err_code job_config_decode_instance_labels(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	struct scrape_config *c = field;
	enum err_code rc;

	rc = job_config_decode_strings(
		ctx, n, INSTANCE_LABELS_MAX, &c->instance_labels, &c->instance_labels_n, err);
	for (size_t i = 0; !rc && i < c->instance_labels_n; i++)
		if (!label_name_valid(c->instance_labels[i]))
			rc = yaml_err(n, err, ERR_INVALID, "%s is not a valid label name: " LABEL_NAME_RULE,
				QUOTED(c->instance_labels[i]));
	return rc;
}

/* Prometheus's label of the one path that it scrapes. */
static bool job_config_is_metrics_path(const struct yaml_node *n)
{
	return n && n->kind == YAML_SCALAR && str_is(n->text, "__metrics_path__");
}

static void job_config_warn_of_metrics_path(struct yaml_ctx *ctx, const struct yaml_node *rule)
{
	const struct yaml_node *target = yaml_get(rule, "target_label");
	const struct yaml_node *sources = yaml_get(rule, "source_labels");

	if (job_config_is_metrics_path(target))
		yaml_warn(ctx, target,
			"__metrics_path__ is not used here: the label with a profile's path is "
			"__profile_path__");
	for (sources = sources ? sources->child : NULL; sources; sources = sources->next)
		if (job_config_is_metrics_path(sources))
			yaml_warn(ctx, sources,
				"__metrics_path__ is empty here: the label with a profile's path is "
				"__profile_path__");
}

static enum err_code job_config_decode_relabel(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	const struct yaml_node *c;

	for (c = n->kind == YAML_SEQUENCE ? n->child : NULL; c; c = c->next) {
		if (yaml_is_null(c))
			return yaml_err(
				c, err, ERR_INVALID, "empty or null target relabeling rule in scrape config");
		job_config_warn_of_metrics_path(ctx, c);
	}
	return relabel_rules_decode(ctx, n, field, err);
}

#define AT(member) offsetof(struct scrape_config, member)
/* clang-format off */
static const struct yaml_field job_table[] = {
	{ "job_name", YAML_STRING, AT(job_name), NULL, NULL,
		"The name of the job, and the label `job` of its targets. Each job has its own.", 0,
		.unset = "required", .example = "api" },
	{ "scrape_interval", YAML_DURATION, AT(scrape_interval_ns), NULL, NULL,
		"How often each profile of a target is taken.", 0, .unset = "that of `global`" },
	{ "scrape_timeout", YAML_DURATION, AT(scrape_timeout_ns), NULL, NULL,
		"How long a scrape may take. A profile that is measured over some seconds has these on "
		"top. Longer than the interval, it is cut to the interval.", 0,
		.unset = "that of `global`" },
	{ "scheme", YAML_STRING, AT(scheme), NULL, NULL, "How targets are reached.", 0,
		.limits = "`http` or `https`" },
	{ "params", YAML_CUSTOM, AT(params), NULL, params_decode, "Parameters of the URL.", 0,
		.takes = "map of names to lists of strings", .example = "{tenant: [a]}" },
	{ "honor_labels", YAML_BOOL, AT(honor_labels), NULL, NULL,
		"If a sample and its target have a label of the same name, the sample's wins. Else it "
		"becomes `sample_NAME`.", 0 },
	{ "body_size_limit", YAML_BYTES, AT(body_size_limit), NULL, NULL,
		"The largest profile, as it is sent. A larger one makes the scrape fail.", 0,
		.unset = "that of `global`" },
	{ "sample_limit", YAML_UINT, AT(sample_limit), NULL, NULL,
		"The most samples of one profile; more make the scrape fail.", 0,
		.unset = "that of `global`" },
	{ "target_limit", YAML_UINT, AT(target_limit), NULL, NULL,
		"The most targets of the job; more make all of them fail.", 0,
		.unset = "that of `global`" },
	{ "label_limit", YAML_UINT, AT(label_limit), NULL, NULL,
		"The most labels of a series or a sample.", 0, .unset = "that of `global`" },
	{ "label_name_length_limit", YAML_UINT, AT(label_name_length_limit), NULL, NULL,
		"The longest name of a label, in bytes.", 0, .unset = "that of `global`" },
	{ "label_value_length_limit", YAML_UINT, AT(label_value_length_limit), NULL, NULL,
		"The longest value of a label, in bytes.", 0, .unset = "that of `global`" },
	{ "keep_dropped_targets", YAML_UINT, AT(keep_dropped_targets), NULL, NULL,
		"How many dropped targets are kept to be shown.", 0, .unset = "that of `global`" },
	{ "profiling_config", YAML_CUSTOM, 0, &profiling_config_schema, profiling_config_decode,
		"Which profiles are taken from each target.", 0 },
	{ "instance_labels", YAML_CUSTOM, 0, NULL, job_config_decode_instance_labels,
		"Labels that tell replicas of a service apart. Sums by hour and day leave them out.", 0,
		.takes = "list of label names", .unset = "`[instance, pod]`" },
	{ "relabel_configs", YAML_CUSTOM, AT(relabel), &relabel_rule_schema, job_config_decode_relabel,
		"Rules that rewrite the labels of targets, or drop targets.", 0, .takes = "list of" },
	SD_CONFIG_FIELDS(offsetof(struct scrape_config, sd)),
	HTTP_CONFIG_FIELDS(offsetof(struct scrape_config, http)),
};
/* clang-format on */
#undef AT

static void job_defaults(struct yaml_ctx *ctx, void *out)
{
	struct scrape_config *c = out;

	*c = (struct scrape_config){ .scheme = STR("http") };
	http_config_defaults(&c->http);
}

const struct yaml_schema config_job_schema = {
	.name = "scrape_config",
	.size = sizeof(struct scrape_config),
	.fields = job_table,
	.fields_n = sizeof(job_table) / sizeof(job_table[0]),
	.defaults = job_defaults,
	.foreign = (const struct yaml_foreign *const[]){ sd_foreign, job_foreign, NULL },
};

static uint64_t job_config_or_global(uint64_t own, uint64_t global)
{
	return own ? own : global;
}

static void job_config_fill_from_global(struct scrape_config *c, const struct global_config *g)
{
	if (!c->scrape_interval_ns)
		c->scrape_interval_ns = g->scrape_interval_ns;
	if (!c->scrape_timeout_ns)
		c->scrape_timeout_ns = g->scrape_timeout_ns < c->scrape_interval_ns ? g->scrape_timeout_ns :
																			  c->scrape_interval_ns;
	c->body_size_limit = job_config_or_global(c->body_size_limit, g->body_size_limit);
	c->sample_limit = job_config_or_global(c->sample_limit, g->sample_limit);
	c->target_limit = job_config_or_global(c->target_limit, g->target_limit);
	c->label_limit = job_config_or_global(c->label_limit, g->label_limit);
	c->label_name_length_limit = job_config_or_global(
		c->label_name_length_limit, g->label_name_length_limit);
	c->label_value_length_limit = job_config_or_global(
		c->label_value_length_limit, g->label_value_length_limit);
	c->keep_dropped_targets = job_config_or_global(
		c->keep_dropped_targets, g->keep_dropped_targets);
}

/* A rule may put the brackets there, or another path. */
static bool job_config_sets(const struct scrape_config *c, const char *label)
{
	for (size_t i = 0; i < c->relabel.n; i++)
		if (str_is(c->relabel.v[i].target_label, label))
			return true;
	return false;
}

static enum err_code job_config_check_sockets(
	struct yaml_ctx *ctx, const struct yaml_node *n, const struct scrape_config *c, struct err *err)
{
	static const char *const names[] = { JOB_UNIX_LABEL, JOB_UNIX_LABEL_PROPOSED };
	const struct yaml_node *groups = yaml_get(n, "static_configs"), *labels, *path;
	size_t before = yaml_errors(ctx);
	enum err_code rc;
	struct err why;

	for (const struct yaml_node *g = groups ? groups->child : NULL; g; g = g->next)
		for (size_t i = 0; i < 2; i++) {
			labels = yaml_get(g, "labels");
			path = labels ? yaml_get(labels, names[i]) : NULL;
			if (!path || !path->text.len || job_config_sets(c, names[i]) ||
				!http_unix_path_check(path->text, &why))
				continue;
			rc = yaml_err(path, err, ERR_INVALID, "%s", why.msg);
			if (!yaml_goes_on(ctx, rc, err))
				return rc;
		}
	return yaml_end(ctx, before, err);
}

static enum err_code job_config_check_addresses(
	struct yaml_ctx *ctx, const struct yaml_node *n, const struct scrape_config *c, struct err *err)
{
	const struct yaml_node *groups = yaml_get(n, "static_configs"), *targets;
	size_t before = yaml_errors(ctx);
	struct buf write = { 0 };
	enum err_code rc;

	if (!groups || job_config_sets(c, "__address__"))
		return ERR_OK;
	for (const struct yaml_node *g = groups->child; g; g = g->next) {
		targets = yaml_get(g, "targets");
		for (const struct yaml_node *t = targets ? targets->child : NULL; t; t = t->next) {
			buf_clear(&write);
			if (!bare_ipv6(t->text, &write))
				continue;
			rc = yaml_err(t, err, ERR_INVALID, "%s is IPv6 without brackets: write " STR_FMT,
				QUOTED(t->text), STR_ARG(buf_str(&write)));
			if (yaml_goes_on(ctx, rc, err))
				continue;
			buf_release(&write);
			return rc;
		}
	}
	buf_release(&write);
	return yaml_end(ctx, before, err);
}

static enum err_code job_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct scrape_config *c, struct err *err)
{
	static const struct str instance_labels[] = { { "instance", 8 }, { "pod", 3 } };
	enum err_code rc;

	if (!c->job_name.len)
		return yaml_err(n, err, ERR_INVALID, "job_name is empty");
	if (c->scrape_timeout_ns > c->scrape_interval_ns) {
		yaml_warn(ctx, yaml_get(n, "scrape_timeout"),
			"scrape_timeout is cut to the scrape interval; a profile that is measured over some "
			"seconds has so much longer");
		c->scrape_timeout_ns = c->scrape_interval_ns;
	}
	if (!str_is(c->scheme, "http") && !str_is(c->scheme, "https"))
		return yaml_err(yaml_get(n, "scheme"), err, ERR_INVALID, "scheme %s is not http or https",
			QUOTED(c->scheme));
	if (!yaml_get(n, "instance_labels")) {
		c->instance_labels_n = sizeof(instance_labels) / sizeof(instance_labels[0]);
		c->instance_labels = arena_array(ctx->arena, struct str, c->instance_labels_n);
		if (!c->instance_labels)
			return arena_fail(ctx->arena, "configuration", err);
		memcpy(c->instance_labels, instance_labels, sizeof(instance_labels));
	}
	if ((rc = http_config_check(ctx, n, &c->http, err)) ||
		(rc = job_config_check_addresses(ctx, n, c, err)) ||
		(rc = job_config_check_sockets(ctx, n, c, err)) ||
		(rc = profiling_config_default(ctx, c, err)))
		return rc;
	return profiling_config_check(c, err);
}

enum err_code job_config_decode(struct yaml_ctx *ctx, const struct yaml_node *n,
	const struct global_config *global, struct scrape_config *out, struct err *err)
{
	enum err_code rc;

	if ((rc = yaml_decode(ctx, &config_job_schema, n, out, err)) || !global)
		return rc;
	out->at = n;
	job_config_fill_from_global(out, global);
	assert(out->scrape_interval_ns > 0 && out->scrape_timeout_ns > 0 && out->body_size_limit > 0);
	return job_check(ctx, n, out, err);
}

void job_config_release(struct scrape_config *c)
{
	relabel_rules_release(&c->relabel);
}
