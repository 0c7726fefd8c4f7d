/*
 * The name that a function is shown and found under: a mangled one demangled, as `go tool pprof`
 * does when it reads a profile.
 *
 * A function has a name for people and one of its symbol. Where they differ, somebody has made the
 * first of the second, and it stays. Where they are equal, or there is none for people, it is made
 * here: C++'s and Rust's names without parameters and template arguments, also of those that are
 * demangled already. Names that begin with "<" ("<module>", Rust's "<A as Debug>::fmt") stay as
 * they are, other than in the tool.
 *
 * Threads: pure function.
 * Source:  google/pprof, internal/symbolizer.
 */
#ifndef PROTO_FUNCTION_NAME_H
#define PROTO_FUNCTION_NAME_H

#include "base/str.h"

/* Appends it to out; false: it is `name` as it stands, and out is as it was. */
bool function_name_shown(struct str name, struct str system_name, struct buf *out);

#endif
