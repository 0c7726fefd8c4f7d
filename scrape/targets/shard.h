/*
 * Shards: which of several servers scrapes a target.
 *
 * Every server knows all targets and decides alone, by a hash of the target's job and address. With
 * a fixed total the decision is the same on every machine and in every version. From n servers to
 * n + 1 it moves only targets to the new one: 1 of n + 1. Where the number of servers changes while
 * they run, a rule decides, which another one replaces later (shard_gate.h).
 *
 * Units:     ordinals from 0, as names of a StatefulSet's pods end.
 * Ownership: a rule is counted. Who has a struct shard for longer than a call holds it by
 *            shard_ref.
 * Threads:   values; a rule is immutable, and its count is atomic.
 */
#ifndef SCRAPE_TARGETS_SHARD_H
#define SCRAPE_TARGETS_SHARD_H

#include <stdatomic.h>

#include "base/str.h"

#define SHARDS_MAX 4096u

enum shard_whose {
	SHARD_OWN, /* this server scrapes it */
	SHARD_ELSEWHERE,
	SHARD_WAITS, /* this server will, once another one surely does not any more */
};

struct shard_reason { /* why this server does not scrape a target */
	char text[192];
};

struct shard_rule {
	atomic_uint refs;
	/* why: NULL, or it is filled in unless the target is this server's. */
	enum shard_whose (*whose)(const struct shard_rule *r, uint64_t key, struct shard_reason *why);
	void (*release)(struct shard_rule *r); /* after the last reference */
};

struct shard {
	unsigned ordinal, total; /* total 0, 1: this server scrapes all targets */
	struct shard_rule *rule; /* NULL: ordinal and total decide; else it alone */
};

/* Of a target; both labels after relabelling. */
uint64_t shard_key(struct str job, struct str address);
/* Whose the target with this key is. why: as of a rule. */
enum shard_whose shard_whose(const struct shard *s, uint64_t key, struct shard_reason *why);
bool shard_has_all(const struct shard *s); /* nothing is anybody else's */
struct shard shard_ref(const struct shard *s);
void shard_unref(struct shard *s); /* empties it */
/* The ordinal of the shard that scrapes the target, with a fixed total. */
unsigned shard_of(struct str job, struct str address, unsigned total);
/* The number at the end of a name: "epi-12" is 12. False: there is none, or it is too large. */
bool shard_ordinal(struct str name, unsigned *out);

#endif
