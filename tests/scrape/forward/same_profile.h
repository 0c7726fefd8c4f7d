/*
 * Compares two profiles field by field: each array in its order, each string by its bytes, links
 * and stacks_cut too.
 */
#ifndef TESTS_SCRAPE_FORWARD_SAME_PROFILE_H
#define TESTS_SCRAPE_FORWARD_SAME_PROFILE_H

#include "proto/sink.h"

/* The first field that differs; NULL: none does. */
const char *same_profile(const struct pprof *a, const struct pprof *b);
const char *same_sink_profile(const struct sink_profile *a, const struct sink_profile *b);

#endif
