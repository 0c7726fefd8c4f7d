/*
 * Evaluator: the tree of a query to a value, at one time. Private to promql/.
 *
 * The engine sets a struct eval up and calls eval_root once, or eval_totals once per step.
 * Operators get its work; each other part has an owner, whose header says what is in it.
 *
 * Errors:    those of promql/value/work.h; what the database returns.
 * Ownership: values live in work.arena and in the querier.
 * Threads:   one evaluation, one thread.
 */
#ifndef PROMQL_EVAL_H
#define PROMQL_EVAL_H

#include "promql/supply.h"
#include "promql/value/timeline.h"
#include "promql/value/work.h"

struct eval {
	struct work work; /* of this time; operators get it */
	struct timeline times;
	struct supply *supply;
	struct unit_note *units; /* promql/unit.h */
	struct numeric_cache *numbers; /* promql/numeric.h */
	struct file_set *files; /* promql/files/files.h; NULL: none came with the query */
	struct subquery_cache *subqueries; /* promql/subquery.h */
	struct query_plan *plan; /* promql/plan.h */
	const struct reader *reader; /* promql/reader.h */
	bool timed; /* the time of each expression goes into the plan */
	bool all_sample_labels; /* keep them even if the query does not name them */
	bool rows_only; /* only the rows of tables are looked at */
	bool with_tables; /* an answer of profiles has their tables too */
	struct top_table *tables; /* these, per element; NULL: there are none */
	struct str *label_names; /* that some `by` names: kept where samples have them */
	size_t label_names_n;
};

/* Collects the names of `by` lists in eval.label_names. */
MUST_CHECK enum err_code eval_prepare(struct eval *ev, struct err *err);
MUST_CHECK enum err_code eval_expr(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);
/* The whole query at one time; a window of numbers and a subquery have values then. */
MUST_CHECK enum err_code eval_root(struct eval *ev, struct value *out, struct err *err);
/* As eval_expr, but profiles that are fractions stay so: of one value all have one exponent. */
MUST_CHECK enum err_code eval_exact(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);
/*
 * Costs as eval_expr; of profiles their totals, labels and names kept, without reading samples
 * if that can be.
 */
MUST_CHECK enum err_code eval_totals(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);

#endif
