/* Prints alerts, samples and times of `epitool test rules`, exactly as promtool does. */
#ifndef CMD_EPITOOL_TEST_RULES_PRINT_H
#define CMD_EPITOOL_TEST_RULES_PRINT_H

#include "cmd/epitool/test_rules/file.h"

/* {a="b", c="d"} in the order of names, __name__ among them. */
void test_print_labels(struct buf *out, struct labels ls);
/* "[\n 0:\n Labels:...\n Annotations:...\n]", lines but the first indented; "[]". */
void test_print_alerts(struct buf *out, const struct test_alert *t, size_t n);
/* {a="b"} 1E+00, {a="c"} 2.5E-01; "nil". */
void test_print_samples(struct buf *out, const struct test_sample *t, size_t n);
void test_print_span(struct buf *out, int64_t ns); /* 1h0m0s, 1.5s: as Go's time.Duration */

/* Sorts by labels, then annotations or as they came. */
void test_sort_alerts(struct test_alert *t, size_t n);
void test_sort_samples(struct test_sample *t, size_t n);
bool test_alerts_equal(const struct test_alert *a, const struct test_alert *b, size_t n);
/* NaN is equal to nothing, as in promtool. */
bool test_samples_equal(const struct test_sample *a, const struct test_sample *b, size_t n);

#endif
