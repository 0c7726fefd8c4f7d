/* Ids to items: an array if the ids are small, else a hash table with a random seed. */
#include "proto/jfr/decoder.h"

static uint64_t jfr_id_of(const struct jfr_index *j, uint32_t i)
{
	uint64_t id;

	memcpy(&id, j->items + i * j->size, sizeof(id));
	return id;
}

enum err_code jfr_index_init(struct jfr_index *j, struct jfr_decoder *d, struct arena *a,
	const void *items, size_t size, uint32_t n)
{
	uint64_t id_max = 0, slots_n = 8, at;

	*j = (struct jfr_index){ .items = items, .size = size, .seed = d->seed };
	if (!n)
		return ERR_OK;
	for (uint32_t i = 0; i < n; i++)
		if (jfr_id_of(j, i) > id_max)
			id_max = jfr_id_of(j, i);
	j->direct = id_max / 4 < n;
	if (j->direct)
		slots_n = id_max + 1;
	else
		while (slots_n < 2 * (uint64_t)n)
			slots_n *= 2;
	j->mask = slots_n - 1;
	if (!(j->slots = arena_array(a, uint32_t, slots_n)))
		return arena_fail(a, "ids", d->err);
	for (uint32_t i = n; i-- > 0;) {
		uint64_t id = jfr_id_of(j, i);

		if (j->direct) {
			j->slots[id] = i + 1;
			continue;
		}
		at = hash_bytes(&id, sizeof(id), j->seed) & j->mask;
		while (j->slots[at] && jfr_id_of(j, j->slots[at] - 1) != id)
			at = (at + 1) & j->mask;
		j->slots[at] = i + 1;
	}
	return ERR_OK;
}

uint32_t jfr_index_find(const struct jfr_index *j, uint64_t id)
{
	uint64_t at;

	if (!j->slots)
		return JFR_NONE;
	if (j->direct)
		return id <= j->mask ? j->slots[id] - 1 : JFR_NONE;
	at = hash_bytes(&id, sizeof(id), j->seed) & j->mask;
	while (j->slots[at] && jfr_id_of(j, j->slots[at] - 1) != id)
		at = (at + 1) & j->mask;
	return j->slots[at] - 1;
}
