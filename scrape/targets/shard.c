/*
 * Imagine that servers 0, 1, 2, ... are added one after the other, and that server k takes each
 * target over with the probability 1 / (k + 1), by a draw that depends on the target and on k
 * alone. After n servers each has an n-th of the targets, and another server takes its part evenly
 * from all. What counts is the last server that took the target over. If it was b, none of b + 1 to
 * j - 1 took it over with the probability (b + 1) / j, so one draw u from (0, 1] gives the next one
 * that does: floor((b + 1) / u). A target changes hands about ln(n) times.
 */
#include "scrape/targets/shard.h"

#include <assert.h>

#include "base/map.h"

#define DRAWS 9007199254740992.0 /* 2^53: a double holds each */

unsigned shard_of(struct str job, struct str address, unsigned total)
{
	uint64_t key = hash_bytes(address.ptr, address.len, hash_bytes(job.ptr, job.len, 0));
	uint32_t owner = 0;
	double u, next;

	assert(total > 0 && total <= SHARDS_MAX);
	for (;;) {
		u = (double)((hash_bytes(&owner, sizeof(owner), key) >> 11) + 1) / DRAWS;
		next = ((double)owner + 1) / u;
		if (next >= total)
			return owner;
		owner = (uint32_t)next;
	}
}

bool shard_ordinal(struct str name, unsigned *out)
{
	size_t from = name.len;
	uint64_t n;

	while (from && name.ptr[from - 1] >= '0' && name.ptr[from - 1] <= '9')
		from--;
	if (!str_to_u64((struct str){ name.ptr + from, name.len - from }, &n) || n >= SHARDS_MAX)
		return false;
	*out = (unsigned)n;
	return true;
}
