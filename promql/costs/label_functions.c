/*
 * Functions of costs that use labels: label_replace, label_join, absent.
 *
 * Source: Prometheus 2.42, promql/functions.go.
 */
#include "promql/costs/costs.h"
#include "promql/syntax/functions.h"

#define LABEL_MADE_MAX (64u << 10) /* bytes of a value: chains of these double it at each turn */
#define LABEL_WORK_MAX (16u << 20)

static enum err_code label_functions_check_made(
	struct work *work, const struct expr *e, size_t bytes, size_t max, struct err *err)
{
	if (bytes <= max)
		return ERR_OK;
	return work_fault(work, e, err, ERR_LIMIT, "%s() makes a label longer than %u bytes",
		e->call.fn->name, LABEL_MADE_MAX);
}

/* The metric with the label as `text` has it, which ends here. */
static enum err_code label_functions_set_label(struct work *work, const struct expr *e,
	struct labels metric, struct str name, struct buf *text, struct labels *out, struct err *err)
{
	enum err_code rc = label_functions_check_made(work, e, text->len, LABEL_MADE_MAX, err);
	struct str value = rc ? (struct str){ 0 } : str_dup(work->arena, buf_str(text));
	bool failed = buf_failed(text);
	struct labels_builder b;

	buf_release(text);
	if (rc)
		return rc;
	if (failed || (!value.ptr && value.len))
		return work_nomem(work, err);
	labels_builder_init(&b, work->arena, metric);
	labels_builder_set(&b, name, value);
	return labels_builder_build(&b, out, err);
}

static enum err_code label_functions_replace_label(struct work *work, const struct expr *e,
	const struct regex *re, const struct value *args, struct labels metric, struct labels *out,
	struct err *err)
{
	struct str group[REGEX_GROUPS_MAX];
	struct buf text = { 0 };
	enum err_code rc;

	*out = metric;
	if (!regex_groups(re, labels_get(metric, args[3].string), group))
		return ERR_OK;
	if ((rc = label_functions_check_made(
			 work, e, group[0].len * args[2].string.len, LABEL_WORK_MAX, err)))
		return rc;
	regex_expand(re, args[2].string, group, &text);
	return label_functions_set_label(work, e, metric, args[1].string, &text, out, err);
}

static enum err_code label_functions_join_labels(struct work *work, const struct expr *e,
	const struct value *args, struct labels metric, struct labels *out, struct err *err)
{
	struct buf text = { 0 };

	for (size_t i = 3; i < e->call.args_n; i++) {
		if (i > 3)
			buf_add_str(&text, args[2].string);
		buf_add_str(&text, labels_get(metric, args[i].string));
	}
	return label_functions_set_label(work, e, metric, args[1].string, &text, out, err);
}

enum err_code costs_label_function(struct work *work, const struct expr *e,
	const struct value *args, struct value *out, struct err *err)
{
	const struct value *in = &args[0];
	bool replaces = e->call.fn->id == FN_LABEL_REPLACE;
	struct regex *re = NULL;
	enum err_code rc = ERR_OK;

	*out = (struct value){ .type = VALUE_COSTS };
	if (replaces && (rc = regex_compile(args[4].string, REGEX_ANCHORED | REGEX_GROUPS, &re, err)))
		return rc;
	if (!(out->costs = arena_array(work->arena, struct cost, in->n + 1)))
		rc = work_nomem(work, err);
	for (size_t i = 0; i < in->n && !rc; i++) {
		struct cost *c = &out->costs[out->n++];

		*c = in->costs[i];
		if (replaces)
			rc = label_functions_replace_label(
				work, e, re, args, in->costs[i].metric, &c->metric, err);
		else
			rc = label_functions_join_labels(work, e, args, in->costs[i].metric, &c->metric, err);
	}
	regex_free(re);
	return rc ? rc : costs_distinct(out->costs, out->n, err);
}

enum err_code absent_labels(
	struct work *work, const struct selector *s, struct labels *out, struct err *err)
{
	struct labels_builder b;

	labels_builder_init(&b, work->arena, (struct labels){ 0 });
	for (size_t i = 0; i < s->matchers_n; i++) {
		const struct matcher *m = &s->matchers[i];
		size_t same = 0;

		for (size_t k = 0; k < s->matchers_n; k++)
			same += str_eq(s->matchers[k].name, m->name);
		if (m->op == MATCH_EQ && same == 1 && !str_is(m->name, LABEL_NAME))
			labels_builder_set(&b, m->name, m->value);
	}
	return labels_builder_build(&b, out, err);
}
