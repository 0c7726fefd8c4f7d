/*
 * Supply: what one thread of a query reads from: the database, the count of what it read, the
 * threads that help, and names of addresses.
 *
 * Several evaluations of a query share one, so what each reads counts at once: subqueries, slices
 * of changed(), and what is read for all steps.
 *
 * Units:     samples; nanoseconds.
 * Ownership: the engine's, as all that it points to.
 * Threads:   one thread; a helping thread has a fork, or a supply of its own (engine/steps.c).
 */
#ifndef PROMQL_SUPPLY_H
#define PROMQL_SUPPLY_H

#include "base/arena.h"

/* The querier and memory of a helping thread. */
struct supply_fork {
	struct db_querier *querier; /* NULL: not needed yet */
	struct arena arena; /* what it read; handed to the evaluation's */
};

struct supply {
	struct db_querier *querier; /* NULL: the query has no selector */
	uint64_t samples_max, samples; /* read so far, over all steps */
	struct naming *naming; /* tsdb/debuginfo/names/naming.h; NULL: addresses stay */
	struct workers *workers; /* promql/workers.h; NULL: none */
	struct supply_fork *forks; /* one per thread; NULL: one thread does all */
	uint64_t parallel_samples; /* fewer are not split; 0: the default */
	int64_t rate_groups_ns; /* promql/engine/engine.h */
};

#endif
