/* Decoding: tables of fields; texts are parsed once a whole section is read. */
#include "cmd/epitool/test_rules/file.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/quote.h"

#define TIMES_MAX 1000000u /* of one series of profiles */

/* yaml_decode fills it in; struct test_profiles is made of it. */
struct profiles_fields {
	struct test_profiles made;
	struct str series, type, folded, file;
	int64_t interval_ns, duration_ns, every_ns, from_ns, to_ns;
	bool has_duration, has_every, has_from, has_to;
	struct yaml_list at;
	const struct yaml_node *node;
};

struct series_fields {
	struct test_series made;
	struct str series, values;
};

struct sample_fields {
	struct test_sample made;
	struct str labels;
};

struct list_of_alerts {
	struct test_alert_case made;
	struct yaml_list exp;
};

struct list_of_samples {
	struct test_expr_case made;
	struct yaml_list exp;
};

struct test_group_fields {
	struct test_group made;
	struct yaml_list series, profiles, alerts, exprs;
};

struct test_file_fields {
	struct test_file made;
	struct yaml_list rule_files, order, tests;
};

/* A fault of the text of one field, at its place. */
static enum err_code test_at_field(const struct yaml_node *n, const char *name, enum err_code rc,
	const struct err *why, struct err *err)
{
	const struct yaml_node *at = yaml_get(n, name);

	return yaml_err(at ? at : n, err, rc, "%s: %s", name, why->msg);
}

/* ---- input_series ---- */

static enum err_code test_check_series(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct series_fields *f = out;
	struct err why = { 0 };
	enum err_code rc;

	if ((rc = test_metric_parse(ctx->arena, f->series, &f->made.labels, &why)))
		return test_at_field(n, "series", rc, &why, err);
	if (!labels_has(f->made.labels, STR(LABEL_NAME)))
		return yaml_err(n, err, ERR_INVALID, "series: a name is missing");
	if ((rc = test_values_parse(ctx->arena, f->values, &f->made.values, &why)))
		return test_at_field(n, "values", rc, &why, err);
	return ERR_OK;
}

static const struct yaml_field series_table[] = {
	{ "series", YAML_STRING, offsetof(struct series_fields, series), NULL, NULL, "", 0 },
	{ "values", YAML_STRING, offsetof(struct series_fields, values), NULL, NULL, "", 0 },
};
static const struct yaml_schema series_schema = { "series", sizeof(struct series_fields),
	series_table, 2, NULL, test_check_series };

/* ---- input_profiles ---- */

static const struct {
	const char *name, *type, *unit, *period_type, *period_unit;
	bool is_level;
} known[] = {
	{ "process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds", false },
	{ "memory", "inuse_space", "bytes", "space", "bytes", true },
	{ "block", "delay", "nanoseconds", "contentions", "count", false },
	{ "mutex", "delay", "nanoseconds", "contentions", "count", false },
	{ "goroutine", "goroutine", "count", "goroutine", "count", true },
	{ "goroutineleak", "goroutineleak", "count", "goroutineleak", "count", true },
	{ "threadcreate", "threadcreate", "count", "threadcreate", "count", true },
	{ "fgprof", "time", "nanoseconds", "wallclock", "nanoseconds", false },
	{ "wall", "wall", "nanoseconds", "wall", "nanoseconds", false },
};

static struct str test_cut_part(struct str *rest)
{
	ptrdiff_t at = str_find(*rest, STR(":"));
	struct str part = { rest->ptr, at < 0 ? rest->len : (size_t)at };

	*rest = at < 0 ? (struct str){ 0 } :
					 (struct str){ rest->ptr + at + 1, rest->len - (size_t)at - 1 };
	return part;
}

/* sample_type:sample_unit[:period_type:period_unit], or what the name is known for. */
static enum err_code test_take_type(
	struct profiles_fields *f, const struct yaml_node *n, struct err *err)
{
	struct str name = labels_get(f->made.labels, STR(LABEL_NAME)), rest = f->type;
	struct test_profiles *p = &f->made;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (str_is(name, known[i].name)) {
			p->sample_type = str_of(known[i].type);
			p->sample_unit = str_of(known[i].unit);
			p->period_type = str_of(known[i].period_type);
			p->period_unit = str_of(known[i].period_unit);
			p->is_level = known[i].is_level;
		}
	if (f->type.len) {
		p->sample_type = test_cut_part(&rest);
		p->sample_unit = test_cut_part(&rest);
		if (rest.len) {
			p->period_type = test_cut_part(&rest);
			p->period_unit = test_cut_part(&rest);
		}
		p->is_level = str_has_prefix(p->sample_type, STR("inuse_")) ||
			(p->is_level && !str_has_prefix(p->sample_type, STR("alloc_")));
	}
	if (!p->sample_type.len || !p->sample_unit.len || rest.len)
		return yaml_err(n, err, ERR_INVALID,
			"type: %s has no known type: sample_type:sample_unit[:period_type:period_unit]",
			QUOTED(name));
	return ERR_OK;
}

static enum err_code test_take_stacks(
	struct yaml_ctx *ctx, struct profiles_fields *f, const struct yaml_node *n, struct err *err)
{
	struct str rest = f->folded;
	size_t lines = 1, number = 0;
	struct err why = { 0 };
	enum err_code rc;

	for (size_t i = 0; i < rest.len; i++)
		lines += rest.ptr[i] == '\n';
	if (!(f->made.stacks = arena_array(ctx->arena, struct test_stack, lines)))
		return arena_fail(ctx->arena, n->file, err);
	while (rest.len > 0) {
		ptrdiff_t end = str_find(rest, STR("\n"));
		struct str line = { rest.ptr, end < 0 ? rest.len : (size_t)end };

		rest = end < 0 ? (struct str){ 0 } :
						 (struct str){ rest.ptr + end + 1, rest.len - (size_t)end - 1 };
		number++;
		if (str_trim(line).len == 0)
			continue;
		if ((rc = test_stack_parse(ctx->arena, line, &f->made.stacks[f->made.stacks_n++], &why)))
			return yaml_err(
				yaml_get(n, "folded"), err, rc, "folded: line %zu: %s", number, why.msg);
	}
	return ERR_OK;
}

static enum err_code test_check_profiles(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct profiles_fields *f = out;
	struct err why = { 0 };
	enum err_code rc;

	f->node = n;
	if ((rc = test_metric_parse(ctx->arena, f->series, &f->made.labels, &why)))
		return test_at_field(n, "series", rc, &why, err);
	if (!labels_has(f->made.labels, STR(LABEL_NAME)))
		return yaml_err(n, err, ERR_INVALID, "series: the name of a profile is missing");
	if (!f->folded.len == !f->file.len)
		return yaml_err(n, err, ERR_INVALID, "either folded or file must be set");
	if (f->at.n && (f->has_every || f->has_from || f->has_to))
		return yaml_err(yaml_get(n, "at"), err, ERR_INVALID,
			"at: times are listed, or come every so often from one to another");
	if (f->file.len) {
		f->made.file = str_of(path_join(ctx->arena, ctx->dir, f->file));
		return ERR_OK;
	}
	if ((rc = test_take_type(f, n, err)))
		return rc;
	return test_take_stacks(ctx, f, n, err);
}

#define AT(member) offsetof(struct profiles_fields, member)
/* clang-format off */
static const struct yaml_field profiles_table[] = {
	{ "series", YAML_STRING, AT(series), NULL, NULL, "name and labels", 0 },
	{ "type", YAML_STRING, AT(type), NULL, NULL, "of the values of folded stacks", 0 },
	{ "interval", YAML_DURATION, AT(interval_ns), NULL, NULL, "between scrapes", 0 },
	{ "duration", YAML_DURATION, AT(duration_ns), NULL, NULL, "that a profile lasted",
		AT(has_duration) + 1 },
	{ "at", YAML_LIST, AT(at), NULL, NULL, "times", 0 },
	{ "every", YAML_DURATION, AT(every_ns), NULL, NULL, "times", AT(has_every) + 1 },
	{ "from", YAML_DURATION, AT(from_ns), NULL, NULL, "the first time", AT(has_from) + 1 },
	{ "to", YAML_DURATION, AT(to_ns), NULL, NULL, "the last time", AT(has_to) + 1 },
	{ "folded", YAML_STRING, AT(folded), NULL, NULL, "stacks", 0 },
	{ "file", YAML_STRING, AT(file), NULL, NULL, "a pprof file", 0 },
};
/* clang-format on */
#undef AT
static const struct yaml_schema profiles_schema = { "profiles", sizeof(struct profiles_fields),
	profiles_table, sizeof(profiles_table) / sizeof(profiles_table[0]), NULL, test_check_profiles };

static int test_time_cmp(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static enum err_code test_listed_times(
	struct yaml_ctx *ctx, struct profiles_fields *f, struct err *err)
{
	const struct yaml_node *list = yaml_get(f->node, "at"), *item = list->child;
	const struct str *texts = f->at.v;
	struct test_profiles *p = &f->made;
	struct err why = { 0 };
	enum err_code rc;

	if (!(p->at_ns = arena_array(ctx->arena, int64_t, f->at.n)))
		return arena_fail(ctx->arena, list->file, err);
	for (size_t i = 0; i < f->at.n; i++, item = item->next)
		if ((rc = duration_parse(texts[i], &p->at_ns[p->at_n++], &why)))
			return yaml_err(item, err, rc, "at: %s", why.msg);
	qsort(p->at_ns, p->at_n, sizeof(*p->at_ns), test_time_cmp);
	return ERR_OK;
}

/* Runs when the test's own fields are known: the default times are each interval of the test. */
static enum err_code test_fill_profiles(
	struct yaml_ctx *ctx, struct profiles_fields *f, const struct test_group *g, struct err *err)
{
	struct test_profiles *p = &f->made;
	int64_t every = f->has_every ? f->every_ns : g->interval_ns;
	/* a profile's time is the end of its scrape */
	int64_t from = f->has_from ? f->from_ns : every, to = f->has_to ? f->to_ns : g->end_ns;
	uint64_t n;

	p->interval_ns = f->interval_ns ? f->interval_ns : every;
	if (p->interval_ns <= 0)
		return yaml_err(f->node, err, ERR_INVALID, "interval: must be positive");
	p->duration_ns = f->has_duration ? f->duration_ns : p->is_level ? 0 : p->interval_ns;
	if (f->at.n)
		return test_listed_times(ctx, f, err);
	if (every <= 0)
		return yaml_err(f->node, err, ERR_INVALID, "every: must be positive");
	n = to < from ? 0 : (uint64_t)((to - from) / every) + 1;
	if (n > TIMES_MAX)
		return yaml_err(f->node, err, ERR_LIMIT, "more than %u profiles", TIMES_MAX);
	if (!(p->at_ns = arena_array(ctx->arena, int64_t, n + 1)))
		return arena_fail(ctx->arena, f->node->file, err);
	for (uint64_t i = 0; i < n; i++)
		p->at_ns[p->at_n++] = from + (int64_t)i * every;
	return ERR_OK;
}

/* ---- alert_rule_test ---- */

static const struct yaml_field alert_table[] = {
	{ "exp_labels", YAML_STRING_MAP, offsetof(struct test_alert, labels), NULL, NULL, "", 0 },
	{ "exp_annotations", YAML_STRING_MAP, offsetof(struct test_alert, annotations), NULL, NULL, "",
		0 },
};
static const struct yaml_schema alert_schema = { "alert", sizeof(struct test_alert), alert_table, 2,
	NULL, NULL };

/* The alert's name is an expected label, which files leave out. */
static enum err_code test_file_check_alerts(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct list_of_alerts *f = out;
	struct labels_builder b;
	enum err_code rc;

	if (!f->made.alertname.len)
		return yaml_err(n, err, ERR_INVALID,
			"an item under alert_rule_test misses required attribute alertname");
	f->made.v = f->exp.v;
	f->made.n = f->exp.n;
	for (size_t i = 0; i < f->made.n; i++) {
		labels_builder_init(&b, ctx->arena, f->made.v[i].labels);
		labels_builder_set(&b, STR("alertname"), f->made.alertname);
		if ((rc = labels_builder_build(&b, &f->made.v[i].labels, err)))
			return rc;
	}
	return ERR_OK;
}

#define AT(member) offsetof(struct list_of_alerts, member)
static const struct yaml_field alerts_table[] = {
	{ "eval_time", YAML_DURATION, AT(made.eval_time_ns), NULL, NULL, "", 0 },
	{ "alertname", YAML_STRING, AT(made.alertname), NULL, NULL, "", 0 },
	{ "exp_alerts", YAML_LIST, AT(exp), &alert_schema, NULL, "", 0 },
};
#undef AT
static const struct yaml_schema alerts_schema = { "alertTestCase", sizeof(struct list_of_alerts),
	alerts_table, 3, NULL, test_file_check_alerts };

/* ---- promql_expr_test ---- */

static enum err_code test_check_sample(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct sample_fields *f = out;
	struct err why = { 0 };
	enum err_code rc = test_metric_parse(ctx->arena, f->labels, &f->made.labels, &why);

	return rc ? test_at_field(n, "labels", rc, &why, err) : ERR_OK;
}

static const struct yaml_field sample_table[] = {
	{ "labels", YAML_STRING, offsetof(struct sample_fields, labels), NULL, NULL, "", 0 },
	{ "value", YAML_FLOAT, offsetof(struct sample_fields, made.value), NULL, NULL, "", 0 },
};
static const struct yaml_schema sample_schema = { "sample", sizeof(struct sample_fields),
	sample_table, 2, NULL, test_check_sample };

static enum err_code test_check_exprs(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct list_of_samples *f = out;
	const struct sample_fields *samples = f->exp.v;

	if (!(f->made.v = arena_array(ctx->arena, struct test_sample, f->exp.n + 1)))
		return arena_fail(ctx->arena, n->file, err);
	for (; f->made.n < f->exp.n; f->made.n++)
		f->made.v[f->made.n] = samples[f->made.n].made;
	return ERR_OK;
}

#define AT(member) offsetof(struct list_of_samples, member)
static const struct yaml_field exprs_table[] = {
	{ "expr", YAML_STRING, AT(made.expr), NULL, NULL, "", 0 },
	{ "eval_time", YAML_DURATION, AT(made.eval_time_ns), NULL, NULL, "", 0 },
	{ "exp_samples", YAML_LIST, AT(exp), &sample_schema, NULL, "", 0 },
};
#undef AT
static const struct yaml_schema exprs_schema = { "promqlTestCase", sizeof(struct list_of_samples),
	exprs_table, 3, NULL, test_check_exprs };

/* ---- tests ---- */

#define AT(member) offsetof(struct test_group_fields, member)
/* clang-format off */
static const struct yaml_field group_table[] = {
	{ "name", YAML_STRING, AT(made.name), NULL, NULL, "", 0 },
	{ "interval", YAML_DURATION, AT(made.interval_ns), NULL, NULL, "between values", 0 },
	{ "input_series", YAML_LIST, AT(series), &series_schema, NULL, "numbers", 0 },
	{ "input_profiles", YAML_LIST, AT(profiles), &profiles_schema, NULL, "profiles", 0 },
	{ "alert_rule_test", YAML_LIST, AT(alerts), &alerts_schema, NULL, "", 0 },
	{ "promql_expr_test", YAML_LIST, AT(exprs), &exprs_schema, NULL, "", 0 },
	{ "external_labels", YAML_STRING_MAP, AT(made.external_labels), NULL, NULL, "", 0 },
	{ "external_url", YAML_STRING, AT(made.external_url), NULL, NULL, "", 0 },
};
/* clang-format on */
#undef AT
static const struct yaml_schema group_schema = { "testGroup", sizeof(struct test_group_fields),
	group_table, sizeof(group_table) / sizeof(group_table[0]), NULL, NULL };

static void test_later(int64_t *end_ns, int64_t when)
{
	if (when > *end_ns)
		*end_ns = when;
}

static enum err_code test_fill_group(
	struct yaml_ctx *ctx, struct test_group_fields *f, int64_t interval_ns, struct err *err)
{
	struct test_group *g = &f->made;
	struct series_fields *series = f->series.v;
	struct profiles_fields *profiles = f->profiles.v;
	struct list_of_alerts *alerts = f->alerts.v;
	struct list_of_samples *exprs = f->exprs.v;
	enum err_code rc;

	if (!g->interval_ns)
		g->interval_ns = interval_ns;
	g->series = arena_array(ctx->arena, struct test_series, f->series.n + 1);
	g->profiles = arena_array(ctx->arena, struct test_profiles, f->profiles.n + 1);
	g->alerts = arena_array(ctx->arena, struct test_alert_case, f->alerts.n + 1);
	g->exprs = arena_array(ctx->arena, struct test_expr_case, f->exprs.n + 1);
	if (!g->series || !g->profiles || !g->alerts || !g->exprs)
		return arena_fail(ctx->arena, "test file", err);
	for (; g->series_n < f->series.n; g->series_n++)
		g->series[g->series_n] = series[g->series_n].made;
	for (; g->alerts_n < f->alerts.n; g->alerts_n++) {
		g->alerts[g->alerts_n] = alerts[g->alerts_n].made;
		test_later(&g->end_ns, g->alerts[g->alerts_n].eval_time_ns);
	}
	for (; g->exprs_n < f->exprs.n; g->exprs_n++) {
		g->exprs[g->exprs_n] = exprs[g->exprs_n].made;
		test_later(&g->end_ns, g->exprs[g->exprs_n].eval_time_ns);
	}
	for (; g->profiles_n < f->profiles.n; g->profiles_n++) {
		if ((rc = test_fill_profiles(ctx, &profiles[g->profiles_n], g, err)))
			return rc;
		g->profiles[g->profiles_n] = profiles[g->profiles_n].made;
	}
	return ERR_OK;
}

static void test_file_defaults(struct yaml_ctx *ctx, void *out)
{
	*(struct test_file_fields *)out = (struct test_file_fields){ 0 };
}

static enum err_code test_check_file(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct test_file_fields *f = out;
	struct test_group_fields *groups = f->tests.v;
	struct str *names = f->order.v, *files = f->rule_files.v;
	struct test_file *made = &f->made;
	enum err_code rc;

	if (!made->evaluation_interval_ns)
		made->evaluation_interval_ns = NS_PER_MIN;
	for (size_t i = 0; i < f->order.n; i++)
		for (size_t k = 0; k < i; k++)
			if (str_eq(names[i], names[k]))
				return yaml_err(yaml_get(n, "group_eval_order"), err, ERR_INVALID,
					"group name repeated in evaluation order: " STR_FMT, STR_ARG(names[i]));
	for (size_t i = 0; i < f->rule_files.n; i++)
		if (files[i].len)
			files[i] = str_of(path_join(ctx->arena, ctx->dir, files[i]));
	made->order = names;
	made->order_n = f->order.n;
	made->rule_files = files;
	made->rule_files_n = f->rule_files.n;
	if (!(made->tests = arena_array(ctx->arena, struct test_group, f->tests.n + 1)))
		return arena_fail(ctx->arena, n->file, err);
	for (; made->tests_n < f->tests.n; made->tests_n++) {
		if ((rc = test_fill_group(ctx, &groups[made->tests_n], made->evaluation_interval_ns, err)))
			return rc;
		made->tests[made->tests_n] = groups[made->tests_n].made;
	}
	return ERR_OK;
}

#define AT(member) offsetof(struct test_file_fields, member)
/* clang-format off */
static const struct yaml_field file_table[] = {
	{ "rule_files", YAML_LIST, AT(rule_files), NULL, NULL, "patterns", 0 },
	{ "evaluation_interval", YAML_DURATION, AT(made.evaluation_interval_ns), NULL, NULL, "", 0 },
	{ "group_eval_order", YAML_LIST, AT(order), NULL, NULL, "names of groups", 0 },
	{ "tests", YAML_LIST, AT(tests), &group_schema, NULL, "", 0 },
};
/* clang-format on */
#undef AT
static const struct yaml_schema file_schema = { "unitTestFile", sizeof(struct test_file_fields),
	file_table, 4, test_file_defaults, test_check_file };

enum err_code test_file_parse(
	struct arena *a, const char *path, struct str text, struct test_file **out, struct err *err)
{
	struct yaml_ctx ctx = { .arena = a, .dir = path_dir(str_of(path)) };
	struct test_file_fields *f = arena_new(a, struct test_file_fields);
	struct yaml_node *root;
	enum err_code rc;

	if (!f)
		return arena_fail(a, path, err);
	if ((rc = yaml_parse(a, path, text, &root, err)) ||
		(rc = yaml_decode(&ctx, &file_schema, root, f, err)))
		return rc;
	if (!f->made.evaluation_interval_ns)
		f->made.evaluation_interval_ns = NS_PER_MIN;
	*out = &f->made;
	return ERR_OK;
}
