/*
 * flat(), cum() and their shares: costs of functions, or of whatever `by` names.
 *
 * Errors:  as promql/value/work.h.
 * Threads: one query, one thread.
 */
#ifndef PROMQL_PROFILES_FLAT_H
#define PROMQL_PROFILES_FLAT_H

#include "promql/value/work.h"

struct flat_options {
	bool cum, share;
	enum grouping grouping; /* _NONE: by function beside the input's labels; _BY */
	struct name_list labels;
	const struct matcher *matchers; /* on frames */
	size_t matchers_n;
	const struct expr
		*filters; /* promql/profiles/filter.h: filters that wait below it; may be NULL */
};
/* Only the names of functions, and labels of series, are asked for. */
bool flat_by_name(const struct flat_options *o);
MUST_CHECK enum err_code profiles_flat(struct work *work, const struct value *in,
	const struct flat_options *o, struct value *out, struct err *err);

#endif
