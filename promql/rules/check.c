/*
 * Checks of a rule, with the messages of Prometheus's rulefmt where it has them.
 */
#include "promql/rules/check.h"

#include "base/quote.h"
#include "base/yaml/problems.h"
#include "promql/rules/template/template.h"
#include "promql/syntax/check.h"

/* The value of a key, or the whole node if there is none. */
static const struct yaml_node *rule_check_at(const struct yaml_node *n, const char *key)
{
	const struct yaml_node *v = yaml_get(n, key);

	return v ? v : n;
}

static const struct yaml_node *rule_check_at_name(const struct yaml_node *n, struct str name)
{
	for (const struct yaml_node *c = n->kind == YAML_MAPPING ? n->child : NULL; c; c = c->next)
		if (str_eq(c->key->text, name))
			return c->key;
	return n;
}

static enum err_code rule_check_label(
	const struct yaml_node *n, const struct label *l, struct err *err)
{
	if (!any_name_valid(l->name) || str_is(l->name, LABEL_NAME))
		return yaml_err(rule_check_at_name(n, l->name), err, ERR_INVALID,
			"invalid label name: " STR_FMT, STR_ARG(l->name));
	if (!label_value_valid(l->value))
		return yaml_err(rule_check_at_name(n, l->name), err, ERR_INVALID, "invalid label value: %s",
			QUOTED(l->value));
	return ERR_OK;
}

enum err_code rule_labels_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct labels ls, struct err *err)
{
	size_t before = yaml_errors(ctx);
	enum err_code rc;

	for (size_t i = 0; i < ls.n; i++)
		if ((rc = rule_check_label(n, &ls.v[i], err)) && !yaml_goes_on(ctx, rc, err))
			return rc;
	return yaml_end(ctx, before, err);
}

static enum err_code rule_check_fields(
	const struct yaml_node *n, const struct rule_fields *f, struct err *err)
{
	if (f->record.len && f->alert.len)
		return yaml_err(n, err, ERR_INVALID, "only one of 'record' and 'alert' must be set");
	if (!f->record.len && !f->alert.len)
		return yaml_err(n, err, ERR_INVALID, "one of 'record' or 'alert' must be set");
	if (!f->expr.len)
		return yaml_err(n, err, ERR_INVALID, "field 'expr' must be set in rule");
	if (f->record.len) {
		if (f->annotations.n)
			return yaml_err(rule_check_at(n, "annotations"), err, ERR_INVALID,
				"invalid field 'annotations' in recording rule");
		if (f->for_ns)
			return yaml_err(
				rule_check_at(n, "for"), err, ERR_INVALID, "invalid field 'for' in recording rule");
		if (f->keep_firing_for_ns)
			return yaml_err(rule_check_at(n, "keep_firing_for"), err, ERR_INVALID,
				"invalid field 'keep_firing_for' in recording rule");
		if (!any_name_valid(f->record))
			return yaml_err(rule_check_at(n, "record"), err, ERR_INVALID,
				"invalid recording rule name: " STR_FMT, STR_ARG(f->record));
		if (memchr(f->record.ptr, '{', f->record.len) || memchr(f->record.ptr, '}', f->record.len))
			return yaml_err(rule_check_at(n, "record"), err, ERR_INVALID,
				"braces present in the recording rule name; should it be in expr?: " STR_FMT,
				STR_ARG(f->record));
	} else if (!label_value_valid(f->alert)) {
		return yaml_err(rule_check_at(n, "alert"), err, ERR_INVALID, "invalid alert name: %s",
			QUOTED(f->alert));
	}
	return ERR_OK;
}

static enum err_code rule_check_names(
	struct yaml_ctx *ctx, const struct yaml_node *n, const struct rule_fields *f, struct err *err)
{
	const struct yaml_node *at = rule_check_at(n, "annotations");
	size_t before = yaml_errors(ctx);
	enum err_code rc = rule_labels_check(ctx, rule_check_at(n, "labels"), f->labels, err);

	if (rc && !yaml_goes_on(ctx, rc, err))
		return rc;
	for (size_t i = 0; i < f->annotations.n; i++) {
		struct str name = f->annotations.v[i].name;

		if (any_name_valid(name))
			continue;
		rc = yaml_err(rule_check_at_name(at, name), err, ERR_INVALID,
			"invalid annotation name: " STR_FMT, STR_ARG(name));
		if (!yaml_goes_on(ctx, rc, err))
			return rc;
	}
	return yaml_end(ctx, before, err);
}

/* ---- the expression ---- */

static enum err_code check_types(
	const struct yaml_node *n, const struct expr *e, struct rule *r, struct err *err)
{
	unsigned good = r->kind == RULE_ALERT ? VALUE_COSTS :
											VALUE_COSTS | VALUE_SCALAR | VALUE_PROFILES;
	const struct expr *inner = expr_strip(e);
	struct buf got = { 0 };
	enum err_code rc = ERR_OK;

	if (!(e->types & good)) {
		value_types_print(&got, e->types);
		rc = yaml_err(n, err, ERR_INVALID,
			"could not parse expression: %s must give %s, got " STR_FMT,
			r->kind == RULE_ALERT ? "an alert's" : "a recording rule's",
			r->kind == RULE_ALERT ? "costs" : "costs, a scalar or profiles",
			STR_ARG(buf_str(&got)));
		buf_release(&got);
	} else if (r->kind != RULE_ALERT) {
		bool both = (e->types & VALUE_PROFILES) && (e->types & VALUE_COSTS);

		if ((e->types & VALUE_PROFILES) &&
			(!both || (inner->kind == EXPR_SELECTOR && inner->selector.window_ns)))
			r->kind = RULE_RECORD_PROFILES;
	}
	return rc;
}

static enum err_code rule_check_expr(
	struct arena *a, const struct yaml_node *n, struct rule *r, struct err *err)
{
	struct parsed *q = NULL;
	struct buf text = { 0 };
	struct err why;
	struct arena scratch;
	enum err_code rc;

	arena_init(&scratch, 0);
	rc = parse_query(&scratch, r->expr, &q, NULL, &why);
	if (!rc)
		rc = check_query(q, NULL, &why);
	if (rc) {
		rc = yaml_err(n, err, rc, "could not parse expression: %s", why.msg);
		goto out;
	}
	if ((rc = check_types(n, q->root, r, err)))
		goto out;
	expr_print_pretty(&text, q->root);
	r->expr_pretty = str_dup(a, buf_str(&text));
	if (buf_failed(&text) || !r->expr_pretty.ptr)
		rc = arena_fail(a, "rules", err);
out:
	buf_release(&text);
	parsed_release(q);
	arena_release(&scratch);
	return rc;
}

/* ---- labels and annotations ---- */

static enum err_code rule_check_make_texts(struct yaml_ctx *ctx, const struct yaml_node *n,
	const char *what, bool templates, struct labels ls, struct rule_text **out, size_t *out_n,
	struct err *err)
{
	struct rule_text *v = arena_array(ctx->arena, struct rule_text, ls.n + 1);
	size_t before = yaml_errors(ctx);
	struct err why;
	enum err_code rc;

	if (!v)
		return arena_fail(ctx->arena, "rules", err);
	for (size_t i = 0; i < ls.n; i++) {
		v[i] = (struct rule_text){ .name = ls.v[i].name, .text = ls.v[i].value };
		if (!templates || str_find(v[i].text, STR("{{")) < 0)
			continue;
		if (!(rc = template_parse(ctx->arena, v[i].text, &v[i].template, &why)))
			continue;
		rc = yaml_err(rule_check_at_name(n, v[i].name), err, rc, "%s %s: %s", what,
			QUOTED(v[i].name), why.msg);
		if (!yaml_goes_on(ctx, rc, err))
			return rc;
	}
	*out = v;
	*out_n = ls.n;
	return yaml_end(ctx, before, err);
}

static enum err_code rule_check_texts(struct yaml_ctx *ctx, const struct yaml_node *n,
	const struct rule_fields *f, const struct rule_group *g, struct rule *out, struct err *err)
{
	bool alert = f->alert.len != 0;
	size_t before = yaml_errors(ctx);
	struct labels_builder b;
	struct labels all;
	enum err_code rc;

	labels_builder_init(&b, ctx->arena, g->labels);
	for (size_t i = 0; i < f->labels.n; i++)
		labels_builder_set(&b, f->labels.v[i].name, f->labels.v[i].value);
	if ((rc = labels_builder_build(&b, &all, err)))
		return rc;
	rc = rule_check_make_texts(
		ctx, rule_check_at(n, "labels"), "label", alert, all, &out->labels, &out->labels_n, err);
	if (rc && !yaml_goes_on(ctx, rc, err))
		return rc;
	rc = rule_check_make_texts(ctx, rule_check_at(n, "annotations"), "annotation", alert,
		f->annotations, &out->annotations, &out->annotations_n, err);
	if (rc && !yaml_goes_on(ctx, rc, err))
		return rc;
	return yaml_end(ctx, before, err);
}

enum err_code rule_check(struct yaml_ctx *ctx, const struct yaml_node *n,
	const struct rule_fields *f, const struct rule_group *g, bool whole, struct rule *out,
	struct err *err)
{
	bool alert = f->alert.len != 0, is_one = alert != (f->record.len != 0);
	size_t before = yaml_errors(ctx);
	enum err_code rc;

	*out = (struct rule){
		.kind = alert ? RULE_ALERT : RULE_RECORD_COSTS,
		.group = g,
		.name = alert ? f->alert : f->record,
		.expr = f->expr,
		.for_ns = f->for_ns,
		.keep_firing_for_ns = f->keep_firing_for_ns,
		.line = n->line,
		.column = n->column,
	};
	if (whole && (rc = rule_check_fields(n, f, err)) && !yaml_goes_on(ctx, rc, err))
		return rc;
	if ((rc = rule_check_names(ctx, n, f, err)) && !yaml_goes_on(ctx, rc, err))
		return rc;
	if (is_one && f->expr.len &&
		(rc = rule_check_expr(ctx->arena, rule_check_at(n, "expr"), out, err)) &&
		!yaml_goes_on(ctx, rc, err))
		return rc;
	if ((rc = rule_check_texts(ctx, n, f, g, out, err)) && !yaml_goes_on(ctx, rc, err))
		return rc;
	return yaml_end(ctx, before, err);
}
