/*
 * tagroot and tagleaf: values of labels as frames at the root or at the leaf of stacks.
 *
 * The keys are a list by comma; the first is the outermost frame. A label is the element's, else
 * that of its samples; several values are joined by comma, numbers have their units. A sample
 * without the label has a frame without a name there. The frame's file is the key.
 *
 * Stacks are copied per set of values, so the work is linear in the stacks that result.
 *
 * Errors:    ERR_LIMIT, the arena's.
 * Ownership: results in work.arena.
 * Threads:   one query, one thread.
 * Source:    google/pprof, internal/driver/tagroot.go.
 */
#ifndef PROMQL_PROFILES_TAG_FRAMES_H
#define PROMQL_PROFILES_TAG_FRAMES_H

#include "promql/value/work.h"

/* Of rounded profiles; replaces v->profiles. */
MUST_CHECK enum err_code tag_frames_add(
	struct work *work, struct value *v, struct str keys, bool leaf, struct err *err);

#endif
