/*
 * Names of functions: the package that one belongs to, and whether it is the program's own, as far
 * as the name tells. The same rules as the page's (web/ui/src/flame/names.ts, own.ts).
 *
 * Ownership: results point into the name.
 * Threads:   pure functions.
 */
#ifndef CMD_EPITOOL_COMPARE_NAMES_H
#define CMD_EPITOOL_COMPARE_NAMES_H

#include "base/str.h"

/* The package, module, crate or namespace: "encoding/json", "leveldb", "java.util", "[kernel]". */
struct str name_package(struct str name);
/* Not a function of a runtime or of a standard library. */
bool name_is_own(struct str name);
/* Without the directory of its package: "json.(*Decoder).Decode". */
struct str name_short(struct str name);

#endif
