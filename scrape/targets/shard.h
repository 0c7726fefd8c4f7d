/*
 * Shards: which of several servers scrapes a target.
 *
 * Every server knows all targets and decides alone, by a hash of the target's job and address. The
 * decision is the same on every machine and in every version. From n servers to n + 1 it moves only
 * targets to the new one: 1 of n + 1.
 *
 * Units:   ordinals from 0, as names of a StatefulSet's pods end.
 * Threads: values.
 */
#ifndef SCRAPE_TARGETS_SHARD_H
#define SCRAPE_TARGETS_SHARD_H

#include "base/str.h"

#define SHARDS_MAX 4096u

struct shard {
	unsigned ordinal, total; /* total 0, 1: this server scrapes all targets */
};

/* The ordinal of the shard that scrapes the target; both labels after relabelling. */
unsigned shard_of(struct str job, struct str address, unsigned total);
/* The number at the end of a name: "epi-12" is 12. False: there is none, or it is too large. */
bool shard_ordinal(struct str name, unsigned *out);

#endif
