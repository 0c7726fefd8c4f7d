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
struct saved_rules;

/* saved: the text of a file behind those of the configuration; saved_path NULL: there is none. */
MUST_CHECK enum err_code rule_files_load(const struct config *c, const char *saved_path,
	struct str saved, struct rule_set **out, struct err *err);
/*
 * With the rules that users saved; NULL: there are none. If these alone are wrong, the others run.
 *
 * One of several shards sees its own targets only, and a caretaker sees nothing: there the rules
 * are read for their errors, and the set is empty.
 */
MUST_CHECK enum err_code rule_files_load_own(const struct options *o, const struct config *c,
	struct saved_rules *saved, struct rule_set **out, struct err *err);
/* Why rules do not run on this server; NULL: they may. */
const char *rule_files_why_not(const struct options *o);

#endif
