/*
 * Profile types: what one column of a profile counts.
 *
 * Ownership: strings live as long as the querier or arena that they came from.
 * Source:    the six parts of Parca's names.
 */
#ifndef TSDB_SYMBOLS_PROFILE_TYPE_H
#define TSDB_SYMBOLS_PROFILE_TYPE_H

#include "base/str.h"

struct profile_type {
	struct str name, sample_type, sample_unit, period_type, period_unit;
	bool delta;
};

void profile_type_print(struct buf *out, const struct profile_type *t); /* a:b:c:d:e[:delta] */

#endif
