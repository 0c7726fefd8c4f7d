/*
 * The text of frames in pprof's reports: names of binaries, and names as expressions see them.
 *
 * Ownership: results point into what was given or into the arena.
 * Threads:   pure functions.
 * Source:    google/pprof: internal/graph (binaries), internal/report/source.go (paths),
 *            profile/prune.go (simplified names).
 */
#ifndef PROTO_REPORT_FRAME_TEXT_H
#define PROTO_REPORT_FRAME_TEXT_H

#include "base/str.h"

/* The last element of a path, as Go's filepath.Base; "." of an empty one. */
struct str frame_path_base(struct str path);
/* "[base]" of a binary, "<unknown>" of none; ptr is NULL when the arena fails. */
struct str frame_binary_name(struct arena *a, struct str objfile);
/*
 * A source file's path without the beginning that trim_path names (by colon), or without what is
 * before and in the last folder of one of source_path, if there is no trim_path; and without
 * "/proc/self/cwd/", where Bazel's compilers run.
 */
struct str frame_file_cut(struct str path, struct str trim_path, struct str source_path);
/* As Go's filepath.Clean: "a//b/../c" is "a/c"; "" stays. False: the arena failed. */
bool frame_file_clean(struct arena *a, struct str path, struct str *out);
/* Without a leading dot and the argument list; "(anonymous namespace)" and "operator()" stay. */
struct str frame_simplified(struct str name);

#endif
