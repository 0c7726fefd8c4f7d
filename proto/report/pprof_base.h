/*
 * A profile without another one, as `go tool pprof -base` and `-diff_base` make it of two files.
 *
 * -base adds the other's samples with their sign turned, so equal ones cancel out, and the total is
 * the sum of magnitudes of what is left. -diff_base keeps both sides apart by the label
 * pprof::base, and the total is the base's.
 *
 * Errors:    ERR_INVALID: the units do not convert; ERR_LIMIT: a cost exceeds 64 bits, or the
 *            arena's.
 * Ownership: the result lives in the arena and points into both profiles.
 * Threads:   any.
 * Source:    google/pprof, internal/driver/fetch.go, profile/merge.go; tests compare with the tool.
 */
#ifndef PROTO_REPORT_PPROF_BASE_H
#define PROTO_REPORT_PPROF_BASE_H

#include "proto/pprof.h"

struct pprof_side {
	const struct pprof *p;
	uint32_t type;
};

struct pprof_base_options {
	bool diff_base;
	bool normalize; /* the profile is scaled to the base's total first */
};

/* *out has one sample type. */
MUST_CHECK enum err_code pprof_without_base(struct pprof_side new_side, struct pprof_side base_side,
	const struct pprof_base_options *o, struct arena *a, struct pprof **out, struct err *err);

#endif
