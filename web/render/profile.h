/*
 * Shared by formats that hold one profile: the profiles of a result, and the labels that tell
 * them apart.
 *
 * Errors:    ERR_INVALID (a result without profiles; two units), ERR_NOT_FOUND (no elements).
 * Ownership: in the arena.
 */
#ifndef WEB_RENDER_PROFILE_H
#define WEB_RENDER_PROFILE_H

#include "promql/value/value.h"
#include "proto/pprof.h"

MUST_CHECK enum err_code render_profiles_of(const struct result *r, struct arena *a,
	const char *format, const struct profile_value ***out, size_t *n, struct err *err);

/* The names of labels whose values differ among v[0..n), n above 0; without __name__. */
MUST_CHECK enum err_code render_differing_labels(const struct profile_value *const *v, size_t n,
	struct arena *a, struct str **out, size_t *out_n, struct err *err);

/* The labels that tell an element from the others, "job=api version=v2"; "{}" if it has none. */
MUST_CHECK enum err_code render_element_name(const struct profile_value *p,
	const struct str *labels, size_t n, struct arena *a, struct str *out, struct err *err);

/* Encodes and gzips; ERR_LIMIT above RENDER_PPROF_BYTES_MAX. */
MUST_CHECK enum err_code render_encode_gz(const struct pprof *p, struct buf *out, struct err *err);

#endif
