/*
 * Recognizes the formats before pprof's protobuf, which gperftools, jemalloc, Java agents and
 * Go's ?debug=1 still write. They are refused by name.
 *
 * Threads: pure function.
 * Source:  google/pprof, profile/legacy_profile.go and legacy_java_profile.go.
 */
#ifndef PROTO_PPROF_LEGACY_H
#define PROTO_PPROF_LEGACY_H

#include "base/str.h"

/* The name of the legacy format of an inflated body, "heap profile (text)"; NULL if it is none. */
const char *pprof_legacy(struct str raw);

#endif
