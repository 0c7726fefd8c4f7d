#include "tsdb/symbols/leafcache.h"

#include <stdlib.h>
#include <string.h>

#define CACHE_LINE 64u
#define STACKS_MAX (1u << 20)

bool leafcache_reserve(struct leafcache *c, uint32_t stacks)
{
	unsigned log2 = 1;
	uint64_t *slots;
	size_t bytes;

	if (stacks > STACKS_MAX)
		stacks = STACKS_MAX;
	while (((uint32_t)1 << log2) < stacks)
		log2++; /* a bucket for each: four times the stacks of the largest profile */
	if (c->slots && 64 - c->shift >= log2)
		return true;
	bytes = (LEAFCACHE_WAYS * sizeof(*slots)) << log2;
	if (!(slots = aligned_alloc(CACHE_LINE, bytes)))
		return c->slots != NULL;
	memset(slots, 0, bytes);
	free(c->slots);
	c->slots = slots;
	c->shift = 64 - log2;
	return true;
}

void leafcache_release(struct leafcache *c)
{
	free(c->slots);
	*c = (struct leafcache){ 0 };
}
