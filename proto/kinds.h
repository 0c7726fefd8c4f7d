/*
 * Kinds: whether a column of values adds up over time.
 *
 * The first rule that applies: the configuration's; gauge for what is a level by its name
 * (value_is_level), unless the profile was asked for as a difference over some seconds; delta if
 * each answer holds what was added since the answer before; delta if the profile has a duration, or
 * its period is one of CPU time; cumulative for alloc_* and for every type of the block and mutex
 * profiles; else gauge.
 *
 * Some programs give levels a duration: that of the whole file, or one nanosecond, because they
 * build all profiles alike. A duration below KIND_DURATION_MIN_NS is none.
 */
#ifndef PROTO_KINDS_H
#define PROTO_KINDS_H

#include "proto/pprof.h"

enum value_kind {
	KIND_GAUGE, /* a level at an instant */
	KIND_DELTA, /* counts over the scrape */
	KIND_CUMULATIVE, /* counts since the process began; stored as deltas */
};

/* A kind set by configuration: sample type name -> kind. */
struct kind_override {
	struct str sample_type;
	enum value_kind kind;
};

#define KIND_DURATION_MIN_NS 1000000 /* nobody samples for less */

struct kind_rules {
	const struct kind_override *overrides;
	size_t overrides_n;
	bool measured; /* it was asked for with `seconds`: its levels are differences */
	/* Each answer holds what was added since the one before. Levels stay levels; `measured` and the
	 * duration do not count. */
	bool since_last;
};

/*
 * Fills kinds[0..p->types_n). name is the profile's name ("memory", "block", ...). rules: NULL is
 * none.
 */
void pprof_kinds(
	const struct pprof *p, struct str name, const struct kind_rules *rules, enum value_kind *kinds);
/*
 * Levels by name: inuse_*, goroutines, Java's live and old objects; all types of profiles of
 * goroutines and threads.
 */
bool value_is_level(struct str profile, struct str type);
const char *value_kind_name(enum value_kind kind); /* "gauge", "delta", "cumulative" */
bool value_kind_parse(struct str s, enum value_kind *out);

#endif
