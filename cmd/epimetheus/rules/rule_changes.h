/*
 * Rule changes: a user saves a rule, deletes it or undoes a change, and the rules that run follow.
 *
 * Errors:    of saved_rules_prepare and saved_rules_commit; ERR_EXISTS: a rule file has the rule.
 *            After an error the old rules run.
 * Ownership: the group's name is in the arena.
 * Threads:   one at a time, and not while the configuration is read again.
 */
#ifndef CMD_EPIMETHEUS_RULES_RULE_CHANGES_H
#define CMD_EPIMETHEUS_RULES_RULE_CHANGES_H

#include "cmd/epimetheus/options.h"
#include "promql/rules/saved/saved_rules.h"

struct config;
struct rule_manager;

struct rule_changes {
	const struct config *config; /* in force */
	struct saved_rules *saved;
	struct rule_manager *manager;
};

/* The change is durable, and its rules run, once it returns. */
MUST_CHECK enum err_code rule_changes_make(
	const struct rule_changes *r, const struct saved_change *c, struct arena *a, struct err *err);
/* Why users cannot save rules on this server, whatever its flags are; NULL: they can. */
const char *rule_changes_why_not(const struct options *o, const struct config *c);

#endif
