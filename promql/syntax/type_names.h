/*
 * Names: what a selector's name says about profile types.
 *
 *	cpu                        the default type of process_cpu
 *	cpu:samples                name and sample type
 *	memory:inuse_space:bytes   and unit
 *	process_cpu:cpu:nanoseconds:cpu:nanoseconds[:delta]   in full, Parca's and Pyroscope's
 *
 * A name means all series that it can mean: `cpu` is process_cpu and what is called cpu, and
 * `cpu:samples` their type samples and a series that is called so. `cpu` is also the CPU time that
 * profilers send under names of their own: the type cpu of `wall` (Node), and the counts of the
 * timers of async-profiler, which are left out beside a time, with an info. One that is none of
 * these (four parts, an empty part) can still be that of a series.
 *
 * Ownership: patterns point into the name they were read from, or at constants.
 * Threads:   values.
 */
#ifndef PROMQL_SYNTAX_TYPE_NAMES_H
#define PROMQL_SYNTAX_TYPE_NAMES_H

#include "base/str.h"

struct profile_type; /* tsdb/symbols/profile_type.h */

struct type_pattern {
	struct str name; /* aliases resolved: cpu -> process_cpu, heap -> memory */
	struct str written, text; /* the first part, and all of them, as they were written */
	struct str sample_type, sample_unit; /* empty: not said, anything matches; as are these: */
	struct str period_type, period_unit;
	bool delta_only; /* six parts; five match delta and other types alike */
	unsigned parts; /* 1, 2, 3, 5 or 6 */
};

/* False: not a way to name a profile type; then only a series named exactly so can be meant. */
bool type_pattern_parse(struct str name, struct type_pattern *out);
/*
 * True if a name can be taken for a profile type before anything is stored: in full, or short with
 * a profile that every server knows (process_cpu, memory, ...) and one of its sample types.
 */
bool type_pattern_known(const struct type_pattern *p);
/*
 * All that the pattern says holds, or the profile has the whole text as its name. With parts == 1
 * this is true of every type of the profile, unless it is known elsewhere.
 */
bool type_pattern_match(const struct type_pattern *p, const struct profile_type *t);
/* The name of a profile is the pattern's whole text, of several parts: it says nothing of types. */
bool type_pattern_is_whole(const struct type_pattern *p, struct str name);
/* A profile of this name is meant for one of its types alone: of `wall`, `cpu` means wall:cpu. */
bool type_pattern_is_elsewhere(const struct type_pattern *p, struct str name);
/* The names of the profiles that it can match. */
#define TYPE_PATTERN_NAMES_MAX 6u
size_t type_pattern_names(const struct type_pattern *p, struct str out[TYPE_PATTERN_NAMES_MAX]);

/* What the pattern's type is known to be in every fleet. */
struct type_meaning {
	struct str unit;
	bool is_level; /* else amounts */
};
/* False: the profile, or its type of this name, is none that every server knows. */
bool type_pattern_meaning(const struct type_pattern *p, struct type_meaning *out);

/*
 * The type for people: *name with its usual alias (cpu), *sample_type empty if it is the one that
 * the name alone means, or the same word (goroutine). Both are empty where t->name is.
 */
void type_short_name(const struct profile_type *t, struct str *name, struct str *sample_type);

/*
 * The default type of a profile among types[0..n), which are all of one name and in the profile's
 * own order: cpu of process_cpu (a time), inuse_space of memory, delay of block and mutex, also
 * under an alias as name; where that is missing, or for other profiles, default_sample_type (may be
 * empty), else the last. Returns its index; n > 0.
 */
size_t type_default(const struct profile_type *types, size_t n, struct str default_sample_type);
/* It does not depend on default_sample_type. */
bool type_default_known(const struct profile_type *types, size_t n);

#endif
