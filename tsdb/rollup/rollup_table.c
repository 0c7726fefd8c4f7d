#include "tsdb/rollup/rollup_table.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"
#include "tsdb/symbols/partition.h"

/*
 * Why not an accumulator: a group's steps are open side by side while a block is written, and an
 * array by node id costs its pages wherever stacks lie scattered over a large partition. Here a
 * cell costs 12 to 24 bytes and 16 a column, and clearing costs the slots.
 */
#define TABLE_FIRST 256u
#define TABLE_KEEP (1u << 17) /* cells of memory kept by clearing */

void rollup_table_release(struct rollup_table *t)
{
	for (uint32_t c = 0; c < t->columns_n; c++)
		free(t->columns[c]);
	free(t->columns);
	free(t->keys);
	free(t->slots);
	*t = (struct rollup_table){ 0 };
}

void rollup_table_clear(struct rollup_table *t)
{
	if (t->cap > TABLE_KEEP) {
		rollup_table_release(t);
		return;
	}
	for (uint32_t c = 0; c < t->columns_n; c++)
		free(t->columns[c]);
	t->columns_n = 0;
	t->n = 0;
	if (t->slots_n)
		memset(t->slots, 0, t->slots_n * sizeof(*t->slots));
}

bool rollup_table_column(struct rollup_table *t)
{
	if (!array_room(&t->columns, t->columns_n, 1, &t->columns_cap))
		return false;
	if (!(t->columns[t->columns_n] = calloc((size_t)t->cap + 1, sizeof(int128))))
		return false;
	t->columns_n++;
	return true;
}

static bool rollup_table_grow(struct rollup_table *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : TABLE_FIRST;
	size_t slots_n = (size_t)cap * 2, at;
	uint32_t *slots;
	uint64_t *keys;
	int128 *v;

	if (cap > CELLS_MAX)
		return false;
	if (!(keys = realloc(t->keys, cap * sizeof(*keys))))
		return false;
	t->keys = keys;
	for (uint32_t c = 0; c < t->columns_n; c++) {
		if (!(v = realloc(t->columns[c], ((size_t)cap + 1) * sizeof(*v))))
			return false;
		t->columns[c] = v;
	}
	if (!(slots = calloc(slots_n, sizeof(*slots))))
		return false;
	for (uint32_t i = 0; i < t->n; i++) {
		for (at = map_hash_u64(keys[i]) & (slots_n - 1); slots[at];)
			at = (at + 1) & (slots_n - 1);
		slots[at] = i + 1;
	}
	free(t->slots);
	t->slots = slots;
	t->slots_n = slots_n;
	t->cap = cap;
	return true;
}

bool rollup_table_find(
	struct rollup_table *t, const uint32_t *stacks, const uint32_t *sets, uint32_t n, uint32_t *at)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t key = (uint64_t)stacks[i] << 32 | (sets ? sets[i] : 0);
		size_t slot;

		if (t->n == t->cap && !rollup_table_grow(t))
			return false;
		slot = map_hash_u64(key) & (t->slots_n - 1);
		while (t->slots[slot] && t->keys[t->slots[slot] - 1] != key)
			slot = (slot + 1) & (t->slots_n - 1);
		if (!t->slots[slot]) {
			t->keys[t->n] = key;
			for (uint32_t c = 0; c < t->columns_n; c++)
				t->columns[c][t->n] = 0;
			t->slots[slot] = ++t->n;
		}
		at[i] = t->slots[slot] - 1;
	}
	return true;
}

bool rollup_table_is_zero(const struct rollup_table *t, uint32_t i)
{
	for (uint32_t c = 0; c < t->columns_n; c++)
		if (t->columns[c][i])
			return false;
	return true;
}

bool rollup_table_sort(const struct rollup_table *t, uint64_t **keys, uint32_t **order, uint32_t *n)
{
	uint64_t *k = malloc(((size_t)t->n * 2 + 1) * sizeof(*k));
	uint32_t *o = malloc(((size_t)t->n * 2 + 1) * sizeof(*o));

	*n = 0;
	if (!k || !o) {
		free(k);
		free(o);
		return false;
	}
	for (uint32_t i = 0; i < t->n; i++)
		if (!rollup_table_is_zero(t, i)) {
			k[*n] = t->keys[i];
			o[(*n)++] = i;
		}
	keys_sort(k, o, *n, k + *n, o + *n);
	*keys = k;
	*order = o;
	return true;
}
