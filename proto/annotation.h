/*
 * Annotation: a mark on time lines, as a profile. "deploy v41" is a profile named `annotation` of
 * one stack of one frame, whose function has the text as its name. So marks are stored, forwarded
 * and removed as profiles are. Lists of names that people choose from leave them out.
 *
 * Units:     nanoseconds since 1970; the text in bytes of UTF-8.
 * Errors:    ERR_NOMEM.
 * Ownership: the profile is in the arena.
 * Threads:   pure functions.
 */
#ifndef PROTO_ANNOTATION_H
#define PROTO_ANNOTATION_H

#include "base/labels.h"
#include "proto/kinds.h"

#define ANNOTATION_NAME "annotation" /* of the profile */
#define ANNOTATION_FILE "annotation" /* of the function, to tell it from functions of code */

extern const enum value_kind annotation_kinds[1]; /* of its one type */

bool annotation_is(struct labels labels);
/* end_ns: not before time_ns; equal: the mark is of an instant. */
MUST_CHECK enum err_code annotation_profile(struct arena *a, struct str text, int64_t time_ns,
	int64_t end_ns, struct pprof **out, struct err *err);

#endif
