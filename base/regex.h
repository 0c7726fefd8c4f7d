/*
 * Regular expressions: RE2's syntax and its linear time, behind a C interface.
 *
 * A pattern of literals ("a|b") is a sorted list: it has no program of RE2's, and a match is a
 * look-up.
 *
 * Units:     bytes.
 * Errors:    ERR_INVALID with RE2's text, ERR_LIMIT when the pattern is longer than
 *            REGEX_BYTES_MAX or its program would pass RE2's memory budget.
 * Ownership: regex_compile hands *out to the caller; regex_free ends it (NULL is fine).
 * Threads:   a compiled regex may be used by any number of threads at once.
 * Source:    https://github.com/google/re2/wiki/Syntax
 */
#ifndef BASE_REGEX_H
#define BASE_REGEX_H

#include "base/str.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGEX_BYTES_MAX (64u << 10) /* of a pattern */
#define REGEX_GROUPS_MAX 32

struct regex;

enum regex_flags {
	REGEX_ANCHORED = 1, /* matches whole strings: ^(?s:PATTERN)$ */
	REGEX_GROUPS = 2, /* groups are asked for, so literals get a program too */
};

MUST_CHECK enum err_code regex_compile(
	struct str pattern, unsigned flags, struct regex **out, struct err *err);
void regex_free(struct regex *re);
bool regex_match(const struct regex *re, struct str text);
/* The i-th, ascending, of the texts that an anchored alternation of literals ("a|b") matches, and
 * nothing else; false: there are no more, or the pattern is another one. */
bool regex_literal(const struct regex *re, size_t i, struct str *out);

/*
 * Compiled with REGEX_GROUPS. Match with groups: group[0] is the whole match, group[i] the i-th
 * parenthesis (ptr NULL: took no part). At most REGEX_GROUPS_MAX - 1 groups are reported.
 */
bool regex_groups(const struct regex *re, struct str text, struct str group[REGEX_GROUPS_MAX]);
int regex_group_count(const struct regex *re);
/* Index of the group named so, or -1. */
int regex_group_index(const struct regex *re, struct str name);

/*
 * Appends `replacement` with $1, ${1}, $name, ${name} and $$ expanded from `group`, as Go's
 * Regexp.Expand: $name takes the longest run of word characters, an unknown group is empty.
 */
void regex_expand(const struct regex *re, struct str replacement,
	const struct str group[REGEX_GROUPS_MAX], struct buf *out);

#ifdef __cplusplus
}
#endif

#endif
