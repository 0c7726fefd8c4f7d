/*
 * Whether two profiles say the same, whatever ids and orders they use: both are read by protobuf-c,
 * which has no code in common with our decoder, written out as text and compared.
 *
 * Compared: each field of the profile itself; the set of samples, each as its labels, its stack
 * (with all fields of its locations, mappings, lines and functions) and its values. Samples that
 * differ in their values only are one sample with the sum; those whose values are all 0 do not
 * count. So nothing that only such samples use counts either. Of the order of mappings, which is
 * the main binary counts: the first one used. Labels are what google/pprof takes them for: a string
 * (an empty one is none), else a number.
 */
#ifndef TESTS_PROTO_PROFILE_COMPARE_H
#define TESTS_PROTO_PROFILE_COMPARE_H

#include "base/str.h"

/* raw: inflated. When false, why says what differs (the first few lines of either side). */
bool profile_equal(struct str raw_a, struct str raw_b, struct buf *why);

/* The text that is compared: one line per fact, sorted. False: protobuf-c refuses the bytes. */
bool profile_text(struct str raw, struct buf *out);

#endif
