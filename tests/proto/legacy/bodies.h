/*
 * Bodies of each format, small, with the parts that are read in a way of their own. Tests compare
 * them with google/pprof, cut and change them.
 */
#ifndef TESTS_PROTO_LEGACY_BODIES_H
#define TESTS_PROTO_LEGACY_BODIES_H

#include "base/str.h"

struct legacy_body {
	const char *name;
	struct str body;
};

extern const struct legacy_body legacy_bodies[];
extern const size_t legacy_bodies_n;

/*
 * A CPU profile of two stacks more than `similar`, which all but one have the same second frame.
 * form: bit 0: highest byte first; bit 1: 64 bits.
 */
void legacy_cpu_body(struct buf *out, unsigned form, unsigned similar);

#endif
