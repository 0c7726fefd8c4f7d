/*
 * What the formats of one profile share: which profiles a result holds, and what tells them apart.
 *
 * Errors:    ERR_INVALID (no profiles in such a result; two units), ERR_NOT_FOUND (none at all).
 * Ownership: in the arena.
 */
#ifndef WEB_RENDER_PROFILE_H
#define WEB_RENDER_PROFILE_H

#include "promql/value.h"

MUST_CHECK enum err_code render_profiles_of(const struct result *r, struct arena *a,
	const char *format, const struct profile_value ***out, size_t *n, struct err *err);

/* Names of the labels whose values are not the same in all; __name__ does not count. */
MUST_CHECK enum err_code render_differing_labels(const struct profile_value *const *v, size_t n,
	struct arena *a, struct str **out, size_t *out_n, struct err *err);

#endif
