/*
 * The name that a function is shown and found under. A mangled name is demangled, as `go tool
 * pprof` does when it reads a profile.
 *
 * A function has a name for people and one of its symbol. If they differ, the profiler made the
 * first from the second, and it is kept. If they are equal, or the first is missing, the name is
 * made here: C++'s and Rust's names without parameters and template arguments, also if they are
 * demangled already. Names that begin with "<" ("<module>", Rust's "<A as Debug>::fmt") are kept,
 * unlike in the tool.
 *
 * Threads: pure function.
 * Source:  google/pprof, internal/symbolizer.
 */
#ifndef PROTO_FUNCTION_NAME_H
#define PROTO_FUNCTION_NAME_H

#include "base/str.h"

/* Appends the name to out. Returns false and leaves out alone if `name` is shown as it is. */
bool function_name_shown(struct str name, struct str system_name, struct buf *out);

#endif
