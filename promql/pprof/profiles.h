/*
 * Profiles that a query gave as one pprof profile: merged, with one value per sample.
 *
 * A diff's base becomes negative samples with the label pprof::base.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT of the arena.
 * Ownership: the profile lives in the arena.
 * Threads:   that of the query.
 */
#ifndef PROMQL_PPROF_PROFILES_H
#define PROMQL_PPROF_PROFILES_H

#include "promql/value/value.h"

/*
 * labels: of the elements, which their samples get; a sample's own of that name is sample_<name>.
 * canceled: asked now and then, ends it with ERR_CANCELED; may be NULL.
 */
MUST_CHECK enum err_code profiles_to_pprof(struct arena *a, const struct profile_value *const *v,
	size_t n, const struct str *labels, size_t labels_n, const atomic_bool *canceled,
	struct pprof **out, struct err *err);

#endif
