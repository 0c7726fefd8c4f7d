#include "scrape/targets/shard.h"

#include <assert.h>
#include <stdio.h>

#include "base/map.h"

uint64_t shard_key(struct str job, struct str address)
{
	return hash_bytes(address.ptr, address.len, hash_bytes(job.ptr, job.len, 0));
}

unsigned shard_of(struct str job, struct str address, unsigned total)
{
	assert(total > 0 && total <= SHARDS_MAX);
	return hash_owner(shard_key(job, address), total);
}

bool shard_ordinal(struct str name, unsigned *out)
{
	uint64_t n;

	if (!str_to_u64(str_ending_digits(name), &n) || n >= SHARDS_MAX)
		return false;
	*out = (unsigned)n;
	return true;
}

bool shard_has_all(const struct shard *s)
{
	return !s->rule && s->total <= 1;
}

enum shard_whose shard_whose(const struct shard *s, uint64_t key, struct shard_reason *why)
{
	unsigned owner;

	if (s->rule)
		return s->rule->whose(s->rule, key, why);
	if (s->total <= 1 || (owner = hash_owner(key, s->total)) == s->ordinal)
		return SHARD_OWN;
	if (why)
		snprintf(why->text, sizeof(why->text), "shard %u scrapes it (shards 0 to %u)", owner,
			s->total - 1);
	return SHARD_ELSEWHERE;
}

struct shard shard_ref(const struct shard *s)
{
	unsigned before;

	if (s->rule) {
		before = atomic_fetch_add(&s->rule->refs, 1);
		assert(before > 0);
	}
	return *s;
}

void shard_unref(struct shard *s)
{
	if (s->rule && atomic_fetch_sub(&s->rule->refs, 1) == 1)
		s->rule->release(s->rule);
	*s = (struct shard){ 0 };
}
