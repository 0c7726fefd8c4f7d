/*
 * The order in which `go tool pprof -top` lists nodes: |flat| descending, name, |cum| descending;
 * then what else tells two nodes apart. Shared by top() of the language and by the text report,
 * which must agree.
 *
 * Threads: pure functions.
 * Source:  tried with the tool; it compares first lines of functions as text.
 */
#ifndef PROTO_REPORT_TOP_ORDER_H
#define PROTO_REPORT_TOP_ORDER_H

#include "base/str.h"

struct top_key {
	int64_t flat, cum;
	struct str name, objfile;
	int64_t start_line;
};

int top_order(const struct top_key *a, const struct top_key *b);

#endif
