/*
 * The process's own numbers, named as in Prometheus: process_cpu_seconds_total and so on.
 *
 * Numbers that the system does not give (no /proc in an empty root) are left out.
 */
#ifndef BASE_SELF_PROCESS_METRICS_H
#define BASE_SELF_PROCESS_METRICS_H

#include "base/str.h"

void process_metrics_print(struct buf *out);
/* The ith of them, whether the system gives it or not. False: there is none. */
bool process_metric_describe(size_t i, const char **name, const char **kind, const char **help);

#endif
