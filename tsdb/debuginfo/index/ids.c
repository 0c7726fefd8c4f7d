#include "tsdb/debuginfo/index/ids.h"

#include <assert.h>
#include <stdlib.h>

#define SLOTS_MIN 64u
#define SLOTS_MAX ((size_t)1 << 31)

/*
 * A search passes most slots by because these bits differ. It reads few keys, each of which is a
 * wait for memory.
 */
static uint32_t symindex_hash_bits(const struct ids *t, uint64_t hash)
{
	return (uint32_t)(hash >> 32) & ~(uint32_t)t->mask;
}

uint32_t ids_find(
	const struct ids *t, uint64_t hash, ids_eq_fn eq, const void *ctx, const void *key)
{
	uint32_t bits = symindex_hash_bits(t, hash), mask = (uint32_t)t->mask;

	if (!t->slots)
		return IDS_NONE;
	for (size_t i = hash & mask; t->slots[i]; i = (i + 1) & mask)
		if ((t->slots[i] & ~mask) == bits && eq(ctx, (t->slots[i] & mask) - 1, key))
			return (t->slots[i] & mask) - 1;
	return IDS_NONE;
}

static void symindex_put(struct ids *t, uint64_t hash, uint32_t id)
{
	size_t i = hash & t->mask;

	while (t->slots[i])
		i = (i + 1) & t->mask;
	t->slots[i] = symindex_hash_bits(t, hash) | (id + 1);
}

static bool symindex_grow(struct ids *t, ids_hash_fn hash_of, const void *ctx)
{
	size_t n = t->slots ? (t->mask + 1) * 2 : SLOTS_MIN;
	struct ids wide = { .mask = n - 1, .n = t->n };

	if (n > SLOTS_MAX || !(wide.slots = calloc(n, sizeof(*wide.slots))))
		return false;
	free(t->slots);
	for (uint32_t id = 0; id < t->n; id++)
		symindex_put(&wide, hash_of(ctx, id), id);
	*t = wide;
	return true;
}

bool ids_add(struct ids *t, uint64_t hash, ids_hash_fn hash_of, const void *ctx)
{
	assert(t->n < IDS_NONE - 1);
	if ((!t->slots || ((size_t)t->n + 1) * 4 > (t->mask + 1) * 3) &&
		!symindex_grow(t, hash_of, ctx))
		return false;
	symindex_put(t, hash, t->n++);
	return true;
}

void ids_release(struct ids *t)
{
	free(t->slots);
	*t = (struct ids){ 0 };
}
