/*
 * Profiles in the formats before protobuf, which gperftools, jemalloc and Go's ?debug=1 still
 * write, become a struct pprof.
 *
 * What is read, and what comes out, is what google/pprof reads and gives: CPU profiles (words of
 * 32 or 64 bits in either byte order), heap, growth and fragmentation texts, texts of counts
 * (goroutine, threadcreate), threads, contentions. Two more are read that google/pprof refuses:
 * - jemalloc's heap_v2, as jeprof reads it: the lines t* of all threads, unsampled by the same
 *   formula. Lines of single threads are checked and left out, since t* is their sum.
 * - contentions of brpc, whose first line is "--- contention" without more.
 *
 * Stacks are addresses in the mappings of the text's end; no location has a line. symbols.h has
 * names for them. Values that were sampled are scaled up as google/pprof does.
 *
 * Stricter than google/pprof, so that no sum is wrong in silence: a CPU profile without its end
 * marker, and a value that overflows, are refused. Lines may be longer than 64 KiB.
 *
 * Units:     as pprof.h.
 * Errors:    ERR_INVALID (format, line or sample, and what is wrong), ERR_UNSUPPORTED (Java's
 *            formats, a symbolized profile of gperftools, by name), ERR_LIMIT (names the limit),
 *            ERR_NOMEM.
 * Ownership: all in the arena given; nothing points into the body.
 * Threads:   any number, each with its own arena.
 * Source:    google/pprof, profile/legacy_profile.go; jemalloc(3) and jeprof for heap_v2.
 */
#ifndef PROTO_LEGACY_LEGACY_H
#define PROTO_LEGACY_LEGACY_H

#include "proto/kinds.h"

/*
 * raw: inflated.
 */
MUST_CHECK enum err_code legacy_decode(struct arena *a, struct str raw,
	const struct pprof_limits *limits, struct pprof **out, struct err *err);

struct legacy_any {
	const struct pprof *profile;
	bool is_legacy; /* also beside an error: that of the format it was taken for */
	/* Of a legacy CPU profile, which does not say for how long: both types count. Else NULL. */
	const enum value_kind *kinds;
};
/*
 * A body of either kind: pprof's protobuf, as google/pprof tries first, else a format before it,
 * with the names that its comments bring (symbols.h). Of a body that is neither the error is
 * pprof_decode's. The profile may point into raw.
 */
MUST_CHECK enum err_code legacy_decode_any(struct arena *a, struct str raw,
	const struct pprof_limits *limits, struct legacy_any *out, struct err *err);

#endif
