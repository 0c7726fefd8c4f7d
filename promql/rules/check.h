/*
 * Checks of rules: one rule as its file has it. Private to promql/rules/.
 *
 * Errors:    ERR_INVALID "FILE:LINE:COLUMN: message", without group and rule: rules.c adds them.
 * Ownership: the context's arena, which is the set's.
 * Threads:   none of its own.
 */
#ifndef PROMQL_RULES_CHECK_H
#define PROMQL_RULES_CHECK_H

#include "promql/rules/rules.h"

struct rule_fields {
	struct str record, alert, expr;
	int64_t for_ns, keep_firing_for_ns;
	struct labels labels, annotations;
};

/*
 * Checks a rule and fills in *out, with the group's labels. n: its node, for places in errors.
 * whole: all fields could be decoded; else only what does not depend on the others is checked. With
 * ctx->problems all errors are kept (base/yaml/problems.h).
 */
MUST_CHECK enum err_code rule_check(struct yaml_ctx *ctx, const struct yaml_node *n,
	const struct rule_fields *f, const struct rule_group *g, bool whole, struct rule *out,
	struct err *err);
/* Checks names and values of a group's labels. */
MUST_CHECK enum err_code rule_labels_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct labels ls, struct err *err);

#endif
