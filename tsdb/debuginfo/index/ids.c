#include "tsdb/debuginfo/index/ids.h"

#include <assert.h>
#include <stdlib.h>

#define SLOTS_MIN 64u
#define SLOTS_MAX ((size_t)1 << 31)

/*
 * A search passes most slots by because these bits differ. It reads few keys, each of which is a
 * wait for memory.
 */
static uint32_t symindex_hash_bits(const struct ids *ids, uint64_t hash)
{
	return (uint32_t)(hash >> 32) & ~(uint32_t)ids->mask;
}

uint32_t ids_find(
	const struct ids *ids, uint64_t hash, ids_eq_fn eq, const void *ctx, const void *key)
{
	uint32_t bits = symindex_hash_bits(ids, hash), mask = (uint32_t)ids->mask;

	if (!ids->slots)
		return IDS_NONE;
	for (size_t i = hash & mask; ids->slots[i]; i = (i + 1) & mask)
		if ((ids->slots[i] & ~mask) == bits && eq(ctx, (ids->slots[i] & mask) - 1, key))
			return (ids->slots[i] & mask) - 1;
	return IDS_NONE;
}

static void symindex_put(struct ids *ids, uint64_t hash, uint32_t id)
{
	size_t i = hash & ids->mask;

	while (ids->slots[i])
		i = (i + 1) & ids->mask;
	ids->slots[i] = symindex_hash_bits(ids, hash) | (id + 1);
}

static bool symindex_grow(struct ids *ids, ids_hash_fn hash_of, const void *ctx)
{
	size_t n = ids->slots ? (ids->mask + 1) * 2 : SLOTS_MIN;
	struct ids wide = { .mask = n - 1, .n = ids->n };

	if (n > SLOTS_MAX || !(wide.slots = calloc(n, sizeof(*wide.slots))))
		return false;
	free(ids->slots);
	for (uint32_t id = 0; id < ids->n; id++)
		symindex_put(&wide, hash_of(ctx, id), id);
	*ids = wide;
	return true;
}

bool ids_add(struct ids *ids, uint64_t hash, ids_hash_fn hash_of, const void *ctx)
{
	assert(ids->n < IDS_NONE - 1);
	if ((!ids->slots || ((size_t)ids->n + 1) * 4 > (ids->mask + 1) * 3) &&
		!symindex_grow(ids, hash_of, ctx))
		return false;
	symindex_put(ids, hash, ids->n++);
	return true;
}

void ids_release(struct ids *ids)
{
	free(ids->slots);
	*ids = (struct ids){ 0 };
}
