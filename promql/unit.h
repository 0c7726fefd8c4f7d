/*
 * Units: what a query's numbers are counted in, as far as that is certain.
 *
 * While a query is evaluated each selector's unit is noted; afterwards the tree says what became of
 * it. A unit stays where costs are added, chosen or ordered; a share or a quotient of two costs of
 * one unit is "ratio". Multiplying and dividing by a plain number may be a conversion (ns to s), so
 * then, as wherever two units meet, nothing is said.
 *
 * Ownership: units live in the query's arena. Private to promql/.
 * Threads:   one evaluation, one thread.
 */
#ifndef PROMQL_UNIT_H
#define PROMQL_UNIT_H

#include "promql/eval.h"

#define UNIT_RATIO "ratio"

/* A selector, the unit that it was found to have, the next note. */
struct unit_note {
	const struct expr *selector;
	struct str unit; /* empty: several */
	struct unit_note *next;
};

/* What choose_profiles gave for e. */
MUST_CHECK enum err_code unit_note(
	struct eval *ev, const struct expr *e, const struct value *v, struct err *err);
/* What was noted by another thread of the same query. */
MUST_CHECK enum err_code unit_join(struct eval *ev, const struct unit_note *from, struct err *err);
/* Of what the query evaluated to; empty: not known, or none. */
struct str unit_of_query(const struct eval *ev);

#endif
