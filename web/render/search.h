/*
 * Search: what a regular expression finds in a profile, however small a flame graph it is drawn as.
 *
 * Names are those of a flame graph: inlined frames count, pruned ones do not, a frame without a
 * name is "[libx.so+0x1f]". The expression matches any part of a name. It ignores case, unless it
 * has an upper case letter A-Z that no backslash precedes.
 *
 * Units:     costs as in the profile.
 * Errors:    ERR_INVALID with RE2's text, ERR_LIMIT (base/regex.h); ERR_LIMIT if a sum overflows;
 *            ERR_NOMEM, ERR_LIMIT from the arena; ERR_CANCELED.
 * Ownership: results are in the arena, names may point into symbols. search_compile hands *out to
 *            the caller; regex_free ends it.
 * Threads:   one at a time.
 */
#ifndef WEB_RENDER_SEARCH_H
#define WEB_RENDER_SEARCH_H

#include "base/regex.h"
#include "promql/value/value.h"

#define SEARCH_PATHS_MAX 100u
#define SEARCH_ROWS_MAX 1000u

/* A call path that ends in a frame that matches. */
struct search_path {
	uint32_t *frames; /* root first: indexes of search_found.names */
	size_t n;
	int64_t total[2]; /* 0 new, 1 base (diffs) */
};

struct search_found {
	int64_t total[2]; /* of the stacks that have a frame that matches; each counts once */
	size_t stacks; /* so many */
	const struct str *names; /* of the paths */
	size_t names_n;
	const struct search_path *paths; /* the heaviest first; of a diff both sides count */
	size_t paths_n;
};

MUST_CHECK enum err_code search_compile(struct str text, struct regex **out, struct err *err);
/* canceled as in struct render_options. */
MUST_CHECK enum err_code search_profile(const struct profile_value *p, const struct regex *re,
	const atomic_bool *canceled, struct arena *a, struct search_found *out, struct err *err);

#endif
