/*
 * Label sets that a fuzzed document gives are proper: valid names, values that are not empty,
 * sorted.
 */
#ifndef TESTS_FUZZ_LABELS_H
#define TESTS_FUZZ_LABELS_H

#include "base/labels.h"
#include "tests/fuzz/fuzz.h"

static inline void check_labels(struct labels ls)
{
	for (size_t i = 0; i < ls.n; i++) {
		require(label_name_valid(ls.v[i].name) && ls.v[i].value.len > 0);
		require(label_value_valid(ls.v[i].value));
		require(i == 0 || str_cmp(ls.v[i - 1].name, ls.v[i].name) < 0);
	}
}

#endif
