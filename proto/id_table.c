#include "proto/id_table.h"

#include <assert.h>
#include <inttypes.h>

#include "base/map.h"

static enum err_code id_table_used_twice(
	const char *kind, uint32_t index, uint64_t id, struct err *err)
{
	return err_set(
		err, ERR_INVALID, "%s[%" PRIu32 "].id: %" PRIu64 " is used twice", kind, index, id);
}

static uint64_t id_table_slot_of(const struct id_table *t, uint64_t id)
{
	return hash_bytes(&id, sizeof(id), t->seed) & t->mask;
}

uint32_t id_table_find_hashed(const struct id_table *t, uint64_t id)
{
	uint64_t at;

	for (at = id_table_slot_of(t, id); t->slots[at]; at = (at + 1) & t->mask)
		if (t->ids[t->slots[at] - 1] == id)
			return t->slots[at] - 1;
	return PPROF_NONE;
}

static enum err_code id_table_init_direct(
	struct id_table *t, struct arena *a, const char *kind, uint64_t max, struct err *err)
{
	uint32_t i;

	t->direct_n = max + 1;
	if (!(t->direct = arena_array(a, uint32_t, t->direct_n)))
		return arena_fail(a, "profile", err);
	for (i = 0; i < t->n; i++) {
		if (t->direct[t->ids[i]])
			return id_table_used_twice(kind, i, t->ids[i], err);
		t->direct[t->ids[i]] = i + 1;
	}
	return ERR_OK;
}

static enum err_code id_table_init_hashed(
	struct id_table *t, struct arena *a, const char *kind, struct err *err)
{
	uint64_t slots = 16, at;
	uint32_t i;

	while (slots < (uint64_t)t->n * 2)
		slots *= 2;
	if (!(t->slots = arena_array(a, uint32_t, slots)))
		return arena_fail(a, "profile", err);
	t->mask = slots - 1;
	t->seed = hash_seed();
	for (i = 0; i < t->n; i++) {
		for (at = id_table_slot_of(t, t->ids[i]); t->slots[at]; at = (at + 1) & t->mask)
			if (t->ids[t->slots[at] - 1] == t->ids[i])
				return id_table_used_twice(kind, i, t->ids[i], err);
		t->slots[at] = i + 1;
	}
	assert(t->n < slots); /* a look-up ends at a free slot */
	return ERR_OK;
}

enum err_code id_table_init(struct id_table *t, struct arena *a, const char *kind,
	const uint64_t *ids, uint32_t n, struct err *err)
{
	uint64_t max = 0, disorder = 0;
	uint32_t i;

	assert(n < PPROF_NONE && (ids || !n));
	*t = (struct id_table){ .ids = ids, .n = n };
	for (i = 0; i < n; i++) {
		disorder |= ids[i] ^ ((uint64_t)i + 1);
		max = ids[i] > max ? ids[i] : max;
	}
	t->in_order = !disorder;
	if (t->in_order)
		return ERR_OK;
	for (i = 0; i < n; i++)
		if (!ids[i])
			return err_set(err, ERR_INVALID, "%s[%" PRIu32 "].id: 0 is reserved", kind, i);
	if (max < (uint64_t)n * 4 + 1024)
		return id_table_init_direct(t, a, kind, max, err);
	return id_table_init_hashed(t, a, kind, err);
}
