/*
 * Rule files of a configuration, as this server evaluates them.
 *
 * Errors:    of rule_set_load.
 * Ownership: *out is a reference for the caller.
 * Threads:   any.
 */
#ifndef CMD_EPIMETHEUS_RULES_RULE_FILES_H
#define CMD_EPIMETHEUS_RULES_RULE_FILES_H

#include "cmd/epimetheus/options.h"

struct config;
struct rule_set;

MUST_CHECK enum err_code rule_files_load(
	const struct config *c, struct rule_set **out, struct err *err);
/*
 * One of several shards sees its own targets only, and a caretaker sees nothing: there the rules
 * are read for their errors, and the set is empty.
 */
MUST_CHECK enum err_code rule_files_load_own(
	const struct options *o, const struct config *c, struct rule_set **out, struct err *err);
/* Why rules do not run on this server; NULL: they may. */
const char *rule_files_why_not(const struct options *o);

#endif
