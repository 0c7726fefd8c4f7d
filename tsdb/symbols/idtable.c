#include "tsdb/symbols/idtable.h"

#include <assert.h>
#include <stdlib.h>

#define FIRST 16u
#define FIRST_MASK 255u

static void sym_idtable_place(struct idtable *t, uint64_t hash, uint32_t id)
{
	uint32_t at = idtable_place(t, hash);

	while (t->slots[at])
		if (++at == t->n)
			at = 0;
	t->slots[at] = ((uint32_t)hash & ~t->mask) | (id + 1);
	t->used++;
}

static bool idtable_grow(struct idtable *t, idtable_hash_fn hash_of, const void *ctx)
{
	uint64_t n = t->n ? (uint64_t)t->n + t->n / 2 : FIRST;
	struct idtable wide = { .n = (uint32_t)n, .mask = t->n ? t->mask : FIRST_MASK };

	if (n > UINT32_MAX || !(wide.slots = calloc(n, sizeof(*wide.slots))))
		return false;
	for (uint32_t i = 0; i < t->n; i++)
		if (t->slots[i]) {
			uint32_t id = (t->slots[i] & t->mask) - 1;

			sym_idtable_place(&wide, hash_of(ctx, &wide, id), id);
		}
	free(t->slots);
	*t = wide;
	return true;
}

/* The pieces of hashes become shorter. */
static void idtable_widen(struct idtable *t, uint32_t id)
{
	uint32_t mask = t->mask;

	while (id >= mask)
		mask = mask << 1 | 1;
	for (uint32_t i = 0; i < t->n; i++)
		t->slots[i] = (t->slots[i] & ~mask) | (t->slots[i] & t->mask);
	t->mask = mask;
}

bool idtable_add(
	struct idtable *t, uint64_t hash, uint32_t id, idtable_hash_fn hash_of, const void *ctx)
{
	assert(id < IDTABLE_NONE);
	/* Four fifths: 13 looks for what is not there. */
	if (((uint64_t)t->used + 1) * 5 > (uint64_t)t->n * 4 && !idtable_grow(t, hash_of, ctx))
		return false;
	if (id >= t->mask)
		idtable_widen(t, id);
	sym_idtable_place(t, hash, id);
	return true;
}

void idtable_release(struct idtable *t)
{
	free(t->slots);
	*t = (struct idtable){ 0 };
}
