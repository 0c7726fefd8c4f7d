/*
 * The rows of `go tool pprof -top`: which there are, in what order, and their percentages. top() of
 * the language and the text report share them, since both must agree with the tool.
 *
 * The order is |flat| descending, name, |cum| descending; by cum it is |cum|, name, |flat|. Then
 * what else tells two nodes apart: the tool of today leaves these in any order.
 *
 * Threads: pure functions.
 * Source:  tried with the tool; it compares first lines of functions as text.
 */
#ifndef PROTO_REPORT_TOP_ROWS_H
#define PROTO_REPORT_TOP_ROWS_H

#include "base/str.h"

struct top_key {
	int64_t flat, cum;
	struct str name, objfile;
	int64_t start_line;
};

/* Leaves out ids whose flat and cum are 0 and orders the others; returns how many there are. */
size_t top_rows(uint32_t *ids, size_t n, struct top_key (*key)(const void *ctx, uint32_t id),
	const void *ctx, bool by_cum);

/* |value / total| in percent; 0 of a total of 0. */
double top_percent(int64_t value, int64_t total);

#endif
