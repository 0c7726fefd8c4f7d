/*
 * What the formats of one profile share: which profiles a result holds, and what tells them apart.
 *
 * Errors:    ERR_INVALID (no profiles in such a result; two units), ERR_NOT_FOUND (none at all).
 * Ownership: in the arena.
 */
#ifndef WEB_RENDER_PROFILE_H
#define WEB_RENDER_PROFILE_H

#include "promql/value.h"
#include "proto/pprof.h"

MUST_CHECK enum err_code render_profiles_of(const struct result *r, struct arena *a,
	const char *format, const struct profile_value ***out, size_t *n, struct err *err);

/* Names of the labels whose values are not the same in all; __name__ does not count. */
MUST_CHECK enum err_code render_differing_labels(const struct profile_value *const *v, size_t n,
	struct arena *a, struct str **out, size_t *out_n, struct err *err);

/* "job=api version=v2" of what tells an element from the others; "{}" where nothing does. */
MUST_CHECK enum err_code render_element_name(const struct profile_value *p,
	const struct str *labels, size_t n, struct arena *a, struct str *out, struct err *err);

/* Encoded and gzipped; ERR_LIMIT above RENDER_PPROF_BYTES_MAX. */
MUST_CHECK enum err_code render_encode_gz(const struct pprof *p, struct buf *out, struct err *err);

#endif
