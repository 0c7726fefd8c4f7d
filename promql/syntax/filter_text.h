/*
 * Texts of filters: the second argument of focus(), tagfocus() and their like, compiled. The check
 * compiles them to see if they are valid, the evaluator (promql/profiles/filter.h) to use them.
 *
 * Texts of stack filters are regular expressions, not anchored. Texts of tag filters are
 * "key=VALUES" or "VALUES". VALUES is a range of numbers ("32kb", ":64kb", "4mb:", "12kb:64mb"); a
 * text that is none is a list of regular expressions by comma. An empty text filters nothing.
 *
 * Errors:    ERR_INVALID, ERR_LIMIT of an expression, without a place in the query.
 * Ownership: filter_release frees; text stays the caller's.
 * Threads:   immutable once compiled.
 * Source:    google/pprof: internal/driver/driver_focus.go.
 */
#ifndef PROMQL_SYNTAX_FILTER_TEXT_H
#define PROMQL_SYNTAX_FILTER_TEXT_H

#include "promql/syntax/functions.h"

struct regex;

/* The text of tagfocus and tagignore. */
struct tag_match {
	struct str key; /* len 0: any */
	bool is_range, has_min, has_max;
	double min, max;
	struct str unit; /* of both */
	struct regex **re; /* unless it is a range */
	size_t n;
};

/* One filter, compiled. */
struct filter {
	enum function_id id;
	struct str text;
	bool is_empty;
	struct regex *re; /* of frames */
	struct tag_match *tags; /* of tagfocus, tagignore */
};

bool filter_is(const struct expr *e); /* a call of one of them */
/* The second argument; NULL: the filter has none (noinlines). */
const struct expr *filter_text_of(const struct expr *e);
bool filter_is_tag(enum function_id id);
/* Counts the expressions of a filter's text. */
size_t filter_regexes(enum function_id id, struct str text);
/* Release with filter_release, also after an error. */
MUST_CHECK enum err_code filter_compile(
	struct filter *f, enum function_id id, struct str text, struct err *err);
void filter_release(struct filter *f);

#endif
