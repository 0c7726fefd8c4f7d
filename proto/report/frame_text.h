/*
 * The text of frames in pprof's reports: names of binaries, and names as expressions see them.
 *
 * Ownership: results point into what was given or into the arena.
 * Threads:   pure functions.
 * Source:    google/pprof: internal/graph (binaries), profile/prune.go (simplified names).
 */
#ifndef PROTO_REPORT_FRAME_TEXT_H
#define PROTO_REPORT_FRAME_TEXT_H

#include "base/str.h"

/* The last element of a path, as Go's filepath.Base; "." of an empty one. */
struct str frame_path_base(struct str path);
/* "[base]" of a binary, "<unknown>" of none; ptr is NULL when the arena fails. */
struct str frame_binary_name(struct arena *a, struct str objfile);
/* Without a leading dot and the argument list; "(anonymous namespace)" and "operator()" stay. */
struct str frame_simplified(struct str name);

#endif
