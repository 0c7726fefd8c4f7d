#include "proto/report/top_order.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/integer.h"

int top_order(const struct top_key *a, const struct top_key *b)
{
	uint64_t am = magnitude64(a->flat), bm = magnitude64(b->flat);
	char at[24], bt[24];
	int c;

	if (am != bm)
		return am > bm ? -1 : 1;
	if ((c = str_cmp(a->name, b->name)))
		return c;
	am = magnitude64(a->cum);
	bm = magnitude64(b->cum);
	if (am != bm)
		return am > bm ? -1 : 1;
	if (a->start_line != b->start_line) {
		snprintf(at, sizeof(at), "%" PRId64, a->start_line);
		snprintf(bt, sizeof(bt), "%" PRId64, b->start_line);
		return strcmp(at, bt);
	}
	return str_cmp(a->objfile, b->objfile);
}
