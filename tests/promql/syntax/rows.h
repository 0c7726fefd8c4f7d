/*
 * Rows of queries and expected texts, for the tests of the parser and of the checker.
 */
#ifndef TESTS_PROMQL_SYNTAX_ROWS_H
#define TESTS_PROMQL_SYNTAX_ROWS_H

#include "promql/syntax/parse.h"
#include "tests/check.h"

struct row {
	const char *text;
	const char *want; /* the text of a good query, or the message */
};

/* Describes a good query; false, with the message in err, where it is refused. */
typedef bool (*describe_fn)(struct parsed *q, struct buf *out, struct err *err);

/* In the arena: the description, or the message. */
static inline struct str describe_query(
	struct arena *a, struct str text, describe_fn describe, struct err *err)
{
	struct parsed *q = NULL;
	struct buf b = { 0 };
	struct str s;

	err->msg[0] = '\0';
	if (parse_query(a, text, &q, NULL, err))
		return str_of(err->msg);
	if (!describe(q, &b, err))
		buf_add_cstr(&b, err->msg);
	s = str_dup(a, buf_str(&b));
	buf_release(&b);
	parsed_release(q);
	return s;
}

static inline void check_rows(const struct row *rows, size_t n, describe_fn describe)
{
	struct err err;

	for (size_t i = 0; i < n; i++) {
		struct arena a;
		struct str got;

		arena_init(&a, 0);
		got = describe_query(&a, str_of(rows[i].text), describe, &err);
		if (!str_is(got, rows[i].want))
			CHECK_FAIL(
				"`%s` gives `" STR_FMT "`, want `%s`", rows[i].text, STR_ARG(got), rows[i].want);
		arena_release(&a);
	}
}

#endif
