/*
 * Checker: types every node of a parsed query, and refuses what can have no meaning.
 *
 * The evaluator decides what depends on stored data: whether a selector's name is one of
 * profiles or of numeric series, whether units agree, whether a set has one element.
 *
 * Errors:  ERR_INVALID "1:6: flat() needs profiles, got costs"; *where as with parse_query.
 * Threads: writes expr.types; call it once, before the query is shared.
 */
#ifndef PROMQL_SYNTAX_CHECK_H
#define PROMQL_SYNTAX_CHECK_H

#include "promql/syntax/parse.h"

MUST_CHECK enum err_code check_query(struct parsed *p, struct query_error *where, struct err *err);

/*
 * The same, under an assumption about names. kind gives VALUE_PROFILES or VALUE_COSTS for a name
 * that is known, else 0; *assumed is the first selector whose name was known, or NULL.
 */
struct check_names {
	unsigned (*kind)(const void *ctx, struct str name);
	const void *ctx;
	const struct expr *assumed;
};
MUST_CHECK enum err_code check_query_names(
	struct parsed *p, struct check_names *names, struct query_error *where, struct err *err);

/*
 * Errors that the evaluator has as well, since it knows whether a name is one of profiles:
 * "operator + does not take costs and profiles; use total(), flat() or cum() for costs" and
 * "sum() needs numbers: use sum(total(cpu))".
 */
void binary_fault_print(struct buf *out, const struct binary *b, unsigned lhs, unsigned rhs);
void check_print_numbers(struct buf *out, const struct function *fn, const struct expr *arg);

#endif
