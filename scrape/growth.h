/*
 * Growth: whether counters grow as their kind says, seen by the totals of one column.
 *
 * Counters since the process began never fall while it lives. Amounts since the scrape before fall
 * about every other time. So an endpoint whose kind is mistaken shows itself:
 *
 *	cumulative, but it falls GROWTH_FALLS_MIN times in GROWTH_CHANGES changes: these are amounts,
 *	or several processes answer in turn
 *	amounts, but GROWTH_CHANGES changes only rise: these are counters
 *
 * A restart is a fall too. So of cumulative columns two scrapes are only compared if one connection
 * gave both, and no scrape between them failed: a process's connections end with it. Behind a proxy
 * that holds its connection over restarts, that many restarts must go by without a failed scrape.
 * Where connections are not kept nothing is compared, and there is no doubt.
 *
 * Equal totals say nothing, and are no changes.
 *
 * Units:     monotonic nanoseconds.
 * Ownership: a value; all zeros is a new one.
 * Threads:   the owner's.
 */
#ifndef SCRAPE_GROWTH_H
#define SCRAPE_GROWTH_H

#include "proto/kinds.h"

#define GROWTH_CHANGES 32
#define GROWTH_FALLS_MIN 6

struct growth_watch {
	double total; /* of the scrape before */
	int64_t answered_ns; /* likewise; 0: there is none to compare with */
	uint32_t falls; /* a bit for each change, the latest lowest */
	uint8_t n; /* changes so far, at most GROWTH_CHANGES */
	uint8_t kind; /* enum value_kind */
};

/* kind: KIND_CUMULATIVE, KIND_DELTA, or KIND_GAUGE for a profile without such a column. */
struct growth_scrape {
	enum value_kind kind;
	double total;
	int64_t connected_ns, answered_ns; /* when the connection was opened, when the answer came */
};

void growth_note(struct growth_watch *g, const struct growth_scrape *s);
void growth_lose(struct growth_watch *g); /* a scrape failed */
/* What is doubted, and what to write, for the target's user; NULL: nothing is. */
const char *growth_warning(const struct growth_watch *g);

#endif
