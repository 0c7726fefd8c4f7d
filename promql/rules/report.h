/*
 * Rules report: what a rule manager knows, as the API shows it; as bytes, for servers that answer
 * what another one evaluates.
 *
 * A report that was read is the same snapshot as the one that was written, but for what its groups
 * do not need to be shown: places in files, parsed templates. So what prints one prints the other.
 * A report that would be too large has fewer alerts of each rule, those that fire first, and in the
 * end fewer groups; it says how many are left out.
 *
 * Units:     nanoseconds since 1970; bytes.
 * Errors:    ERR_CORRUPT: no report; ERR_UNSUPPORTED: of another version; ERR_LIMIT: the arena, or
 *            the bytes are too many.
 * Ownership: what was read is in the arena and has no rule set.
 * Threads:   none of its own.
 * Source:    report_format.h.
 */
#ifndef PROMQL_RULES_REPORT_H
#define PROMQL_RULES_REPORT_H

#include "promql/rules/manager.h"

#define RULES_REPORT_BYTES_MAX ((size_t)16 << 20)

struct rules_report {
	struct rules_snapshot rules;
	struct str host; /* who evaluates; "": this server */
	int64_t written_ns; /* by that host's clock */
	uint64_t alerts_cut, groups_cut; /* are left out, as there are too many */
	struct str *warnings; /* for the answer: what is wrong with it */
	size_t warnings_n;
};

/* bytes_max: RULES_REPORT_BYTES_MAX; less for tests. */
void rules_report_print(struct buf *out, const struct rules_snapshot *s, struct str host,
	int64_t now_ns, size_t bytes_max);
MUST_CHECK enum err_code rules_report_read(
	struct str bytes, struct arena *a, struct rules_report *out, struct err *err);

/* A hash of names, labels and phases of alerts and of the health of rules: not of times, durations,
 * values and annotations, which change with each evaluation. */
uint64_t rules_report_hash_states(const struct rules_snapshot *s);
/* A hash of the rules themselves, of their groups and of the names of files, not of folders. */
uint64_t rules_report_hash_rules(const struct rules_snapshot *s);
/* Groups of s that were not evaluated yet are those of `before`, where their rules are the same. */
void rules_report_fill(struct rules_snapshot *s, const struct rules_report *before);

#endif
