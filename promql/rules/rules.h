/*
 * Rules: rule files, decoded and checked: groups of alerting and recording rules.
 *
 * A set is immutable once loaded and is shared by reference, as a configuration is.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_INVALID "FILE:LINE:COLUMN: group "g", rule 2, "HighCost": message" for YAML,
 * fields, expressions and templates; ERR_NOT_FOUND and ERR_IO for files; ERR_LIMIT. Ownership:
 * rule_set_load hands one reference to the caller; rule_set_ref and rule_set_unref pair. Threads:
 * immutable; the count is atomic. Source:    Prometheus's rule files (model/rulefmt).
 */
#ifndef PROMQL_RULES_RULES_H
#define PROMQL_RULES_RULES_H

#include <stdatomic.h>

#include "base/labels.h"
#include "base/yaml/yaml.h"

#define RULES_FILE_BYTES_MAX YAML_FILE_BYTES_MAX
#define RULES_FILES_MAX 1000u
#define RULES_MAX 100000u /* of all files */

struct template; /* promql/rules/template/template.h */

enum rule_kind {
	RULE_ALERT,
	RULE_RECORD_COSTS, /* a numeric series */
	RULE_RECORD_PROFILES, /* the expression gives profiles: they are stored as profiles */
};

struct rule_text { /* a label's or an annotation's value: text or template */
	struct str name, text;
	const struct template *template; /* NULL: plain text, as are all labels of recording rules */
};

struct rule_group;

struct rule {
	/*
	 * A guess if only the data decides whether the expression gives profiles (a bare selector). The
	 * result decides what is written.
	 */
	enum rule_kind kind;
	const struct rule_group *group;
	struct str name; /* of the alert, or of the series recorded */
	struct str expr; /* as written */
	struct str expr_pretty; /* printed from its tree, as the API shows it */
	int64_t for_ns, keep_firing_for_ns;
	struct rule_text *labels, *annotations; /* sorted by name; labels with the group's */
	size_t labels_n, annotations_n;
	unsigned line, column; /* of the rule in its file */
};

struct rule_group {
	struct str file, name;
	int64_t interval_ns; /* or the global one */
	int64_t query_offset_ns; /* likewise */
	size_t limit; /* alerts or series of a rule; 0: none */
	struct labels labels; /* added to those of its rules, which win */
	unsigned line, column;
	struct rule *rules;
	size_t rules_n;
};

struct rule_set {
	atomic_uint refs;
	struct arena arena;
	struct rule_group *groups; /* by file, then in the order of the file */
	size_t groups_n, rules_n;
	struct str *files;
	size_t files_n;
};

extern const struct yaml_schema rules_file_schema; /* of a file of rules */

struct rules_load {
	const struct str *patterns; /* of rule_files, with the configuration's directory prepended */
	size_t patterns_n;
	const char *last_name; /* a file whose text is given, after all others; NULL: none */
	struct str last;
	int64_t interval_ns, query_offset_ns; /* for groups without one */
	/* all errors, each with its group and rule; NULL: only the first */
	struct yaml_problems *problems;
};

MUST_CHECK enum err_code rule_set_load(
	const struct rules_load *l, struct rule_set **out, struct err *err);
/* Loads one file's text, for tests, `check rules` and fuzzing. name is the file in messages. */
MUST_CHECK enum err_code rule_set_load_text(const char *name, struct str text,
	const struct rules_load *l, struct rule_set **out, struct err *err);
/*
 * Finds errors that the server would find only with data: the name of a recording rule of the set
 * means what that rule gives, a well-known name (cpu, memory:alloc_space, ...) means profiles.
 * ERR_INVALID 'FILE:LINE:COLUMN: group "g", rule 1, "x": if cpu is a profile: 1:5: sum() wants
 * costs, got profiles'. For `check rules` only: the server accepts such a file, since a numeric
 * series may have the name. problems: all errors; NULL: only the first.
 */
MUST_CHECK enum err_code rule_set_check_names(
	const struct rule_set *s, struct yaml_problems *problems, struct err *err);
/* A rule of the same kind, name and labels as one before it, which is no error. */
struct rule_duplicate {
	const struct rule *first, *again;
};
/* All of the set, in the order of the files; the array is in the arena. */
MUST_CHECK enum err_code rule_set_duplicates(const struct rule_set *s, struct arena *a,
	struct rule_duplicate **out, size_t *n, struct err *err);
/* 'FILE:9:5: group "g", "x": the rule at FILE:3:5 has the same name and labels' */
void rule_duplicate_print(struct buf *out, const struct rule_duplicate *d);
struct rule_set *rule_set_ref(struct rule_set *s);
void rule_set_unref(struct rule_set *s); /* NULL is fine */

#endif
