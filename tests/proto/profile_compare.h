/*
 * Compares two profiles regardless of ids and order. protobuf-c, which has no code in common with
 * our decoder, reads both; they are written as text and compared.
 *
 * Compared: each field of the profile itself; the set of samples, each as its labels, its stack
 * (with all fields of its locations, mappings, lines and functions) and its values. Samples that
 * differ only in values are one sample with the sum; samples with only zeros do not count, nor
 * does anything that only they use. Of the order of mappings only the first one used counts: it
 * is the main binary. Labels are read as google/pprof reads them: a string (an empty one is
 * none), else a number.
 */
#ifndef TESTS_PROTO_PROFILE_COMPARE_H
#define TESTS_PROTO_PROFILE_COMPARE_H

#include "base/str.h"

/* raw: inflated. If false, `why` has the first differing lines of either side. */
bool profile_equal(struct str raw_a, struct str raw_b, struct buf *why);

/* The compared text: one line per fact, sorted. False if protobuf-c refuses the bytes. */
bool profile_text(struct str raw, struct buf *out);

#endif
