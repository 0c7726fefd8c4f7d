/*
 * Relabelling: rules that rewrite, keep or drop a label set, exactly as in Prometheus.
 *
 * Errors:    of a rule: ERR_INVALID at its place in the file, in Prometheus's words.
 * Ownership: rules are in the arena they were decoded in, compiled expressions outside of it:
 *            relabel_rules_release pairs with a decode.
 * Threads:   rules are immutable once decoded. Any number of threads may apply them, each with its
 *            own builder.
 * Source:    Prometheus's model/relabel: the anchored regex ^(?s:RE)$, Go's Regexp.Expand.
 */
#ifndef DISCOVERY_RELABEL_H
#define DISCOVERY_RELABEL_H

#include "base/labels.h"
#include "base/yaml/yaml.h"

enum relabel_action {
	RELABEL_REPLACE,
	RELABEL_KEEP,
	RELABEL_DROP,
	RELABEL_KEEPEQUAL,
	RELABEL_DROPEQUAL,
	RELABEL_HASHMOD,
	RELABEL_LABELMAP,
	RELABEL_LABELDROP,
	RELABEL_LABELKEEP,
	RELABEL_LOWERCASE,
	RELABEL_UPPERCASE,
	RELABEL_ACTIONS
};

struct relabel_rule {
	struct str *source_labels;
	size_t source_labels_n;
	struct str separator, target_label, replacement, regex_text;
	struct regex *regex;
	uint64_t modulus;
	enum relabel_action action;
};

struct relabel_rules {
	struct relabel_rule *v;
	size_t n;
};

extern const struct yaml_schema relabel_rule_schema;
/* A YAML_CUSTOM decoder of a list into a struct relabel_rules. On failure it leaves nothing. */
enum err_code relabel_rules_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *rules, struct err *err);
void relabel_rules_release(struct relabel_rules *r);

/* Called after each rule with the set as it is then. keep false: this rule dropped it. */
typedef enum err_code (*relabel_step_fn)(
	void *ctx, size_t rule, const struct labels_builder *b, bool keep, struct err *err);

/*
 * Applies one rule, or all in order, to the builder's set. *keep false: the rule *dropped_by (may
 * be NULL) dropped the set, and later rules did not run. New strings are in the builder's arena.
 * Errors: ERR_NOMEM, ERR_LIMIT (the arena's budget).
 */
MUST_CHECK enum err_code relabel_apply_rule(
	const struct relabel_rule *rule, struct labels_builder *b, bool *keep, struct err *err);
MUST_CHECK enum err_code relabel_apply(const struct relabel_rules *rules, struct labels_builder *b,
	bool *keep, size_t *dropped_by, struct err *err);
/* The same, with a call of step after each rule. An error of step ends it. */
MUST_CHECK enum err_code relabel_walk(const struct relabel_rules *rules, struct labels_builder *b,
	relabel_step_fn step, void *ctx, bool *keep, size_t *dropped_by, struct err *err);

const char *relabel_action_name(enum relabel_action a); /* "replace", ... */

#endif
