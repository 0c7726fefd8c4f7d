/*
 * Work: what an operator works with: memory, the time of evaluation, the text for places in errors,
 * and infos on the answer. Private to promql/.
 *
 * An operator takes values and gives values. It knows no database, plan or reader: these belong to
 * rooms above.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_INVALID "1:6: ..." with the place in the query; ERR_LIMIT; ERR_CANCELED.
 * Ownership: values live in work.arena. A value's elements are the callee's to change only if it
 *            made them.
 * Threads:   one evaluation, one thread.
 */
#ifndef PROMQL_VALUE_WORK_H
#define PROMQL_VALUE_WORK_H

#include "promql/syntax/ast.h"
#include "promql/syntax/parse.h"
#include "promql/value/value.h"

struct value {
	unsigned type; /* one of VALUE_*; an empty selector has all that its name could mean */
	double scalar;
	struct str string;
	struct cost *costs;
	struct profile_value *profiles;
	struct top_table *tops;
	struct cost_series *series; /* VALUE_RANGE */
	size_t n; /* elements of whichever array the type names */
	bool is_split; /* profiles: by labels of samples */
};

#define INFOS_MAX 8u /* of one query; further ones are left out */

/* Notes on an answer, each once, in the order they were met. */
struct infos {
	struct str v[INFOS_MAX]; /* in work.whole */
	size_t n;
};

struct work {
	const struct parsed *query;
	struct arena *arena; /* of the step */
	struct arena *whole; /* of the query; it lives over all steps */
	struct budget *budget; /* of all memory of the query; may be NULL */
	struct infos *infos;
	const atomic_bool *stop; /* NULL: nobody cancels it */
	int64_t t_ns; /* of this evaluation */
	uint64_t steps; /* about so many, of which this is one; 0: the query is of one time */
};

/* An error at e's place in the query. */
enum err_code work_fault(const struct work *work, const struct expr *e, struct err *err,
	enum err_code code, const char *fmt, ...) PRINTF_LIKE(5, 6);
enum err_code work_nomem(const struct work *work, struct err *err);
/* Adds a line to the answer's infos, unless it is there. */
enum err_code work_info(const struct work *work, struct err *err, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/* ERR_CANCELED if the query was canceled. */
MUST_CHECK enum err_code work_check(const struct work *work, struct err *err);

#endif
