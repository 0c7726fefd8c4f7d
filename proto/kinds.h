/*
 * Kinds: whether a column of values adds up over time.
 *
 * The first rule that applies: the configuration's; delta if the profile has a duration;
 * cumulative for alloc_* and for every type of the block and mutex profiles; else gauge.
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

/* Fills kinds[0..p->types_n). name is the profile's name ("memory", "block", ...). */
void pprof_kinds(const struct pprof *p, struct str name, const struct kind_override *overrides,
	size_t n, enum value_kind *kinds);
const char *value_kind_name(enum value_kind kind); /* "gauge", "delta", "cumulative" */
bool value_kind_parse(struct str s, enum value_kind *out);

#endif
