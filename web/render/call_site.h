/*
 * Call sites: the stacks of a profile that begin with given frames, root first, as a picture of it
 * shows them: inlined frames count, what the profile drops does not.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT from the arena; ERR_LIMIT where what is left has no sum.
 * Ownership: in the arena; labels and partitions are the profile's.
 * Threads:   values.
 */
#ifndef WEB_RENDER_CALL_SITE_H
#define WEB_RENDER_CALL_SITE_H

#include "promql/value.h"

/* *out: the profile with those cells alone; *n: 1, or 0 where no stack is left. */
MUST_CHECK enum err_code call_site_keep(const struct profile_value *p, const struct str *path,
	size_t path_n, struct arena *a, struct profile_value *out, size_t *n, struct err *err);

#endif
