#include "tsdb/columns/chunk_keys.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/map.h"
#include "tsdb/symbols/partition.h"

/*
 * Rows have far more entries than there are ids, so only ids are sorted. The entries are put in
 * place by counting, which needs no memory beside the result: sorting the entries themselves took
 * 32 bytes each, more than all columns.
 *
 * An id is found by its stack alone, in an array, where no entry has a label set and stacks are
 * near each other; they are in order then. Else it is looked up in a hash table, which costs twice
 * as much.
 */
struct chunk_keys_id_table {
	uint64_t *ids; /* in the order in which they came */
	uint32_t *most; /* of each: how often it is in one row */
	uint32_t *order; /* of each: its first key */
	size_t n, ids_cap, most_cap;
	uint32_t *slots; /* index + 1 */
	size_t slots_n;
};

#define SLOTS_FIRST 1024u
/* Stacks that the array may have for each entry: less memory than the columns need later. */
#define STACKS_PER_ENTRY 4u

/* ---- by stack and label set ---- */

static size_t chunk_keys_id_table_slot_of(const struct chunk_keys_id_table *t, uint64_t id)
{
	size_t at = map_hash_u64(id) & (t->slots_n - 1);

	while (t->slots[at] && t->ids[t->slots[at] - 1] != id)
		at = (at + 1) & (t->slots_n - 1);
	return at;
}

static bool chunk_keys_id_table_grow(struct chunk_keys_id_table *t)
{
	size_t n = t->slots_n ? t->slots_n * 2 : SLOTS_FIRST;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return false;
	free(t->slots);
	t->slots = slots;
	t->slots_n = n;
	for (size_t i = 0; i < t->n; i++)
		t->slots[chunk_keys_id_table_slot_of(t, t->ids[i])] = (uint32_t)i + 1;
	return true;
}

static bool chunk_keys_add_id(struct chunk_keys_id_table *t, uint64_t id, uint32_t *index)
{
	size_t at;

	if (t->n * 2 >= t->slots_n && !chunk_keys_id_table_grow(t))
		return false;
	at = chunk_keys_id_table_slot_of(t, id);
	if (!t->slots[at]) {
		if (!array_room(&t->ids, t->n, 1, &t->ids_cap) ||
			!array_room(&t->most, t->n, 1, &t->most_cap))
			return false;
		t->ids[t->n] = id;
		t->most[t->n] = 0;
		t->slots[at] = (uint32_t)++t->n;
	}
	*index = t->slots[at] - 1;
	return true;
}

/* Each entry's place is the index of its id until the ids are sorted. */
static bool chunk_keys_id_table_collect(struct chunk_keys_id_table *t, struct chunk_keys *k,
	const struct row *rows, uint32_t rows_n, uint64_t *ids)
{
	uint32_t *place = k->places;
	uint64_t any = 0;

	for (uint32_t r = 0; r < rows_n; r++) {
		uint32_t nth = 0;

		row_entry_ids(&rows[r], ids);
		for (uint32_t i = 0; i < rows[r].n; i++, place++) {
			uint64_t id = ids[i];

			any |= id;
			if (i && id == ids[i - 1]) {
				*place = place[-1];
				nth++;
			} else if (chunk_keys_add_id(t, id, place)) {
				nth = 0;
			} else {
				return false;
			}
			if (nth >= t->most[*place])
				t->most[*place] = nth + 1;
		}
	}
	k->labels = (uint32_t)any;
	return true;
}

/* Ids ascending, each as often as it is listed. */
static bool chunk_keys_id_table_sort_ids(struct chunk_keys_id_table *t, struct chunk_keys *k)
{
	size_t n = t->n, keys = 0;
	uint64_t *sorted = malloc((n * 2 + 1) * sizeof(*sorted));
	uint32_t *order = malloc((n * 2 + 1) * sizeof(*order));
	bool ok;

	for (size_t i = 0; i < n; i++)
		keys += t->most[i];
	k->ids = malloc((keys + 1) * sizeof(*k->ids));
	k->starts = calloc(keys + 1, sizeof(*k->starts));
	t->order = malloc((n + 1) * sizeof(*t->order));
	ok = sorted && order && k->ids && k->starts && t->order;
	for (size_t i = 0; i < n && ok; i++) {
		sorted[i] = t->ids[i];
		order[i] = (uint32_t)i;
	}
	if (ok)
		keys_sort(sorted, order, (uint32_t)n, sorted + n, order + n);
	for (size_t i = 0; i < n && ok; i++) {
		t->order[order[i]] = k->n;
		for (uint32_t nth = 0; nth < t->most[order[i]]; nth++)
			k->ids[k->n++] = sorted[i];
	}
	assert(!ok || k->n == keys);
	free(sorted);
	free(order);
	return ok;
}

/* ---- by stack ---- */

/* Bounds of the stacks; false: some entries have label sets. */
static bool chunk_keys_bounds(
	const struct row *rows, uint32_t rows_n, uint64_t *ids, uint32_t *least, uint32_t *most)
{
	uint64_t any = 0;

	*least = UINT32_MAX;
	*most = 0;
	for (uint32_t r = 0; r < rows_n; r++) {
		row_entry_ids(&rows[r], ids);
		for (uint32_t i = 0; i < rows[r].n; i++)
			any |= ids[i];
		if ((uint32_t)any)
			return false;
		/* Ids of a row ascend. */
		if (rows[r].n && ids[0] >> 32 < *least)
			*least = (uint32_t)(ids[0] >> 32);
		if (rows[r].n && ids[rows[r].n - 1] >> 32 > *most)
			*most = (uint32_t)(ids[rows[r].n - 1] >> 32);
	}
	return true;
}

/* As collecting and sorting do by the hash table; an id's index is its stack's distance. */
static bool chunk_keys_list_stacks(struct chunk_keys_id_table *t, struct chunk_keys *k,
	const struct row *rows, uint32_t rows_n, uint64_t *ids, uint32_t least, uint32_t most)
{
	size_t n = (size_t)most - least + 1, keys = 0;
	uint32_t *place = k->places;

	if (!(t->order = calloc(n, sizeof(*t->order)))) /* at first how often it is in one row */
		return false;
	for (uint32_t r = 0; r < rows_n; r++) {
		uint32_t before = UINT32_MAX, nth = 0;

		row_entry_ids(&rows[r], ids);
		for (uint32_t i = 0; i < rows[r].n; i++) {
			uint32_t at = (uint32_t)(ids[i] >> 32) - least;

			nth = at == before ? nth + 1 : 1;
			before = at;
			*place++ = at;
			if (nth > t->order[at]) {
				keys += nth - t->order[at];
				t->order[at] = nth;
			}
		}
	}
	k->ids = malloc((keys + 1) * sizeof(*k->ids));
	k->starts = calloc(keys + 1, sizeof(*k->starts));
	if (!k->ids || !k->starts)
		return false;
	for (size_t at = 0; at < n; at++) {
		uint32_t first = k->n;

		for (uint32_t nth = t->order[at]; nth; nth--)
			k->ids[k->n++] = (uint64_t)(least + at) << 32;
		t->order[at] = first;
	}
	assert(k->n == keys);
	return true;
}

/* ---- cells ---- */

/* Places from indexes of ids to keys; starts[key + 1] counts the key's cells. */
static void chunk_keys_find(const struct chunk_keys_id_table *t, struct chunk_keys *k,
	const struct row *rows, uint32_t rows_n)
{
	uint32_t *place = k->places;

	for (uint32_t r = 0; r < rows_n; r++) {
		uint32_t before = UINT32_MAX, nth = 0;

		for (uint32_t i = 0; i < rows[r].n; i++, place++) {
			nth = *place == before ? nth + 1 : 0;
			before = *place;
			*place = t->order[before] + nth;
			k->starts[*place + 1]++;
		}
	}
	for (uint32_t i = 0; i < k->n; i++)
		k->starts[i + 1] += k->starts[i];
}

/* Rows ascend, so the cells of a key come in their order. */
static void chunk_keys_place_cells(struct chunk_keys *k, const struct row *rows, uint32_t rows_n)
{
	size_t *next = k->starts;
	uint32_t *place = k->places;

	for (uint32_t r = 0; r < rows_n; r++)
		for (uint32_t i = 0; i < rows[r].n; i++, place++) {
			size_t at = next[*place]++;

			k->rows[at] = (uint16_t)r;
			*place = (uint32_t)at;
		}
	/* Each start is where the next key begins now. */
	memmove(next + 1, next, k->n * sizeof(*next));
	next[0] = 0;
}

bool chunk_keys_list(struct chunk_keys *k, const struct row *rows, uint32_t rows_n)
{
	struct chunk_keys_id_table t = { 0 };
	uint64_t *ids; /* of a row */
	uint32_t least_stack, most_stack;
	size_t most = 0;
	bool ok;

	*k = (struct chunk_keys){ 0 };
	for (uint32_t r = 0; r < rows_n; r++) {
		k->cells_n += rows[r].n;
		most = rows[r].n > most ? rows[r].n : most;
	}
	ids = malloc((most + 1) * sizeof(*ids));
	k->places = malloc((k->cells_n + 1) * sizeof(*k->places));
	k->rows = malloc((k->cells_n + 1) * sizeof(*k->rows));
	ok = ids && k->places && k->rows;
	if (ok && k->cells_n && chunk_keys_bounds(rows, rows_n, ids, &least_stack, &most_stack) &&
		most_stack - least_stack < k->cells_n * STACKS_PER_ENTRY)
		ok = chunk_keys_list_stacks(&t, k, rows, rows_n, ids, least_stack, most_stack);
	else
		ok = ok && chunk_keys_id_table_collect(&t, k, rows, rows_n, ids) &&
			chunk_keys_id_table_sort_ids(&t, k);
	if (ok) {
		chunk_keys_find(&t, k, rows, rows_n);
		chunk_keys_place_cells(k, rows, rows_n);
	}
	free(ids);
	free(t.ids);
	free(t.most);
	free(t.order);
	free(t.slots);
	return ok;
}

void chunk_keys_release(struct chunk_keys *k)
{
	free(k->ids);
	free(k->starts);
	free(k->places);
	free(k->rows);
	*k = (struct chunk_keys){ 0 };
}
