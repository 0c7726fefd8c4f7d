/* A profile of names as text: "a;b 3" for each sample, sorted. */
#ifndef TESTS_PROTO_FOLDED_STACKS_H
#define TESTS_PROTO_FOLDED_STACKS_H

#include "proto/pprof.h"

/* Each line, `end` after it. */
void print_stacks(const struct pprof *p, const char *end, struct buf *out);

#endif
