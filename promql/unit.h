/*
 * Units of a query's numbers, if they are certain.
 *
 * While a query is evaluated each selector's unit is noted; afterwards the tree tells the answer's
 * unit. A unit stays where costs are added, chosen or ordered; a share or a quotient of two costs
 * of one unit is "ratio". Multiplying and dividing by a plain number may be a conversion (ns to s),
 * so then, and if two units meet, the unit is not known.
 *
 * Ownership: units live in the query's arena. Private to promql/.
 * Threads:   one evaluation, one thread.
 */
#ifndef PROMQL_UNIT_H
#define PROMQL_UNIT_H

#include "promql/value/work.h"

struct eval; /* promql/eval.h */

#define UNIT_RATIO "ratio"

/* The unit that the profiles of a selector, or of file(), were found to have. */
struct unit_note {
	const struct expr *selector;
	struct str unit; /* empty: several */
	struct unit_note *next;
};

/* Notes the unit of e's profiles. */
MUST_CHECK enum err_code unit_note(
	struct eval *ev, const struct expr *e, const struct value *v, struct err *err);
/* Adds the notes of another thread of the same query. */
MUST_CHECK enum err_code unit_join(struct eval *ev, const struct unit_note *from, struct err *err);
/* The unit of the query's answer; empty: not known, or none. */
struct str unit_of_query(const struct eval *ev);

#endif
