/*
 * The infos of changed(): changed, not changed by more than so much, or that it cannot tell yet,
 * and why.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT.
 * Threads:   one query, one thread.
 */
#ifndef PROMQL_CHANGED_WORDS_H
#define PROMQL_CHANGED_WORDS_H

#include "promql/changed/statistic.h"
#include "promql/profiles/frames.h"
#include "promql/value/work.h"

struct changed_slices { /* of a side */
	uint32_t all, present, first; /* the first that is present */
};

struct changed_words {
	struct work *work;
	const char *name; /* of the call */
	int64_t slice_ns;
	struct changed_slices side[2];
	const struct change_output *found;
	struct frames *frames; /* names of functions */
	const struct labels *alone; /* of each of found->alone */
};

/* "changed", "rises", "not changed", ...: the label verdict of changed_interval(). */
const char *change_word_name(enum change_word w);
struct str changed_function_name(struct frames *frames, const struct change *c);
/* Adds the query's infos. Steps of a range report only once that some cannot tell. */
MUST_CHECK enum err_code changed_explain(const struct changed_words *w, struct err *err);

#endif
