/*
 * Call sites: the stacks of a profile that begin with given frames, root first, as a flame graph
 * shows them: with inlined frames, after pruning.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT from the arena; ERR_LIMIT if the sum of what is left overflows.
 * Ownership: in the arena; labels and partitions are the profile's.
 * Threads:   values.
 */
#ifndef WEB_RENDER_CALL_SITE_H
#define WEB_RENDER_CALL_SITE_H

#include "promql/value/value.h"

/* *out: the profile with these stacks only. *n: 1, or 0 if no stack is left. */
MUST_CHECK enum err_code call_site_keep(const struct profile_value *p, const struct str *path,
	size_t path_n, struct arena *a, struct profile_value *out, size_t *n, struct err *err);

#endif
