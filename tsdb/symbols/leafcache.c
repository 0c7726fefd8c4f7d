#include "tsdb/symbols/leafcache.h"

#include <stdlib.h>
#include <string.h>

#define CACHE_LINE 64u
#define STACKS_MAX (1u << 20)
#define FIRST_MASK 255u

/* A bucket for each: four times the stacks of the largest profile. In quarters of a doubling: it is
 * not emptied each time that a profile is a little larger. */
static uint32_t leafcache_buckets_for(uint32_t stacks)
{
	uint32_t step = CACHE_LINE / LEAFCACHE_WAYS / sizeof(uint32_t);

	while (step * 8 < stacks)
		step *= 2;
	return (stacks / step + 1) * step;
}

bool leafcache_reserve(struct leafcache *l, uint32_t stacks)
{
	uint32_t n = leafcache_buckets_for(stacks < STACKS_MAX ? stacks : STACKS_MAX), *slots;
	size_t bytes = (size_t)n * LEAFCACHE_WAYS * sizeof(*slots);

	if (l->slots && l->buckets >= n)
		return true;
	if (!(slots = aligned_alloc(CACHE_LINE, bytes)))
		return l->slots != NULL;
	memset(slots, 0, bytes);
	free(l->slots);
	*l = (struct leafcache){ slots, n, l->mask ? l->mask : FIRST_MASK };
	return true;
}

void leafcache_widen(struct leafcache *l, uint32_t node)
{
	uint32_t mask = l->mask;

	while (node > mask)
		mask = mask << 1 | 1;
	for (size_t i = 0; i < (size_t)l->buckets * LEAFCACHE_WAYS; i++)
		l->slots[i] = (l->slots[i] & ~mask) | (l->slots[i] & l->mask);
	l->mask = mask;
}

void leafcache_release(struct leafcache *l)
{
	free(l->slots);
	*l = (struct leafcache){ 0 };
}
