/*
 * Patterns: a list of regular expressions in the configuration, as one that matches whole texts.
 *
 * Errors:    ERR_INVALID and ERR_LIMIT with the name of the list in front.
 * Ownership: *out is the caller's; regex_free ends it.
 */
#ifndef SCRAPE_CONFIG_PATTERNS_H
#define SCRAPE_CONFIG_PATTERNS_H

#include "base/regex.h"

#define PATTERNS_MAX 256u

/* *out NULL: the list is empty. */
MUST_CHECK enum err_code patterns_compile(
	const char *name, const struct str *s, size_t n, struct regex **out, struct err *err);

#endif
