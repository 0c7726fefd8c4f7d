#include "tsdb/symbols/idtable.h"

#include <assert.h>
#include <stdlib.h>

#define FIRST 16u
#define FIRST_MASK 255u

static void sym_idtable_place(struct idtable *idtable, uint64_t hash, uint32_t id)
{
	uint32_t at = idtable_place(idtable, hash);

	while (idtable->slots[at])
		if (++at == idtable->n)
			at = 0;
	idtable->slots[at] = ((uint32_t)hash & ~idtable->mask) | (id + 1);
	idtable->used++;
}

static bool idtable_grow(struct idtable *idtable, idtable_hash_fn hash_of, const void *ctx)
{
	uint64_t n = idtable->n ? (uint64_t)idtable->n + idtable->n / 2 : FIRST;
	struct idtable wide = { .n = (uint32_t)n, .mask = idtable->n ? idtable->mask : FIRST_MASK };

	if (n > UINT32_MAX || !(wide.slots = calloc(n, sizeof(*wide.slots))))
		return false;
	for (uint32_t i = 0; i < idtable->n; i++)
		if (idtable->slots[i]) {
			uint32_t id = (idtable->slots[i] & idtable->mask) - 1;

			sym_idtable_place(&wide, hash_of(ctx, &wide, id), id);
		}
	free(idtable->slots);
	*idtable = wide;
	return true;
}

/* The pieces of hashes become shorter. */
static void idtable_widen(struct idtable *idtable, uint32_t id)
{
	uint32_t mask = idtable->mask;

	while (id >= mask)
		mask = mask << 1 | 1;
	for (uint32_t i = 0; i < idtable->n; i++)
		idtable->slots[i] = (idtable->slots[i] & ~mask) | (idtable->slots[i] & idtable->mask);
	idtable->mask = mask;
}

bool idtable_add(
	struct idtable *idtable, uint64_t hash, uint32_t id, idtable_hash_fn hash_of, const void *ctx)
{
	assert(id < IDTABLE_NONE);
	/* Four fifths: 13 looks for what is not there. */
	if (((uint64_t)idtable->used + 1) * 5 > (uint64_t)idtable->n * 4 &&
		!idtable_grow(idtable, hash_of, ctx))
		return false;
	if (id >= idtable->mask)
		idtable_widen(idtable, id);
	sym_idtable_place(idtable, hash, id);
	return true;
}

void idtable_release(struct idtable *idtable)
{
	free(idtable->slots);
	*idtable = (struct idtable){ 0 };
}
