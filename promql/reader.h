/*
 * Reader: how an evaluation gets the values of its selectors.
 *
 * There are two. reader_reads reads them from the database. reader_notes is what a query is planned
 * with: it finds series, notes in the plan what reading them would cost, and gives no elements. All
 * other code evaluates without knowing which one it has.
 *
 * Errors:  as eval.h.
 * Threads: constant tables.
 */
#ifndef PROMQL_READER_H
#define PROMQL_READER_H

#include "promql/value/work.h"

struct eval; /* promql/eval.h */

struct merging;
struct numeric_cache;
struct numeric_ranges;
struct plan_read;

struct reader {
	/* The read of e, a selector, merged like this. Series are selected on the first call. */
	enum err_code (*find)(struct eval *ev, const struct expr *e, const struct merging *m,
		struct plan_read **out, struct err *err);
	/* Values of a read that has series. */
	enum err_code (*profiles)(
		struct eval *ev, struct plan_read *r, struct value *out, struct err *err);
	/* Numbers of e: a range for each series of c, which has some. */
	enum err_code (*numbers)(struct eval *ev, const struct expr *e, struct numeric_cache *c,
		struct numeric_ranges *out, struct err *err);
	/* What a subquery evaluates to. */
	enum err_code (*subquery)(
		struct eval *ev, const struct expr *e, struct numeric_ranges *out, struct err *err);
	/* changed() and changed_interval() read their windows in slices. */
	enum err_code (*changed)(
		struct eval *ev, const struct expr *e, struct value *out, struct err *err);
	/* The value of scalar(): what a plan has no value for must not be NaN. */
	double (*scalar)(const struct value *costs);
};

extern const struct reader reader_reads, reader_notes;

#endif
