/*
 * What came before pprof's protobuf: formats that gperftools, jemalloc, Java agents and Go's
 * ?debug=1 still write. They are told by name, not read.
 *
 * Threads: pure function.
 * Source:  google/pprof, profile/legacy_profile.go and legacy_java_profile.go.
 */
#ifndef PROTO_PPROF_LEGACY_H
#define PROTO_PPROF_LEGACY_H

#include "base/str.h"

/* "heap profile (text)", of a body that is not protobuf, inflated; NULL: it is none of them. */
const char *pprof_legacy(struct str raw);

#endif
