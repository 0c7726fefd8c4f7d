/*
 * Siblings: slots of one job and factor in several partitions, which are epochs or members of a
 * union. A factor makes fractions, and these are rounded. So costs of siblings are added up before
 * they are multiplied, and the answer does not depend on where epochs begin and who has the
 * profiles.
 */
#include <stdlib.h>

#include "base/map.h"
#include "promql/gather.h"

/* next[i]: the next sibling of slot i, + 1; 0: it is the last. */
struct siblings {
	uint32_t *next;
	bool *is_later;
};

static void siblings_release(struct siblings *s)
{
	free(s->next);
	free(s->is_later);
}

static bool siblings_same(const void *ctx, const void *key, uint32_t id)
{
	const struct slot *a = key, *b = &((const struct gathering *)ctx)->of[id];

	return a->factor.multiplier == b->factor.multiplier && a->factor.divisor == b->factor.divisor &&
		str_eq(partition_name(a->partition), partition_name(b->partition)) &&
		profile_type_eq(a->type, b->type);
}

static uint64_t gather_siblings_hash_of(const struct slot *slot)
{
	const double f[] = { (double)slot->factor.multiplier, (double)slot->factor.divisor };
	struct str job = partition_name(slot->partition);

	return hash_bytes(f, sizeof(f), hash_bytes(job.ptr, job.len, 0));
}

static enum err_code siblings_find(struct gathering *g, struct siblings *out, struct err *err)
{
	uint32_t *last = calloc(g->of_n + 1, sizeof(*last));
	enum err_code rc = ERR_OK;
	struct map map;

	out->next = calloc(g->of_n + 1, sizeof(*out->next));
	out->is_later = calloc(g->of_n + 1, sizeof(*out->is_later));
	if (!last || !out->next || !out->is_later)
		rc = work_nomem(g->work, err);
	map_init(&map);
	for (uint32_t i = 0; i < g->of_n && !rc; i++) {
		const struct slot *slot = &g->of[i];
		uint32_t first;

		if (!slot_is_read(slot))
			continue;
		if ((first = map_find(&map, gather_siblings_hash_of(slot), siblings_same, g, slot)) ==
			MAP_NONE) {
			last[i] = i;
			rc = map_add(&map, gather_siblings_hash_of(slot), i) ? ERR_OK :
																   work_nomem(g->work, err);
			continue;
		}
		out->next[last[first]] = i + 1;
		out->is_later[i] = true;
		last[first] = i;
	}
	map_release(&map);
	free(last);
	return rc;
}

/* Their equal cells become one, that of the first. */
static enum err_code siblings_join_cells(struct gathering *g, const struct siblings *siblings,
	uint32_t first, const struct part *parts, struct err *err)
{
	struct profile_value p = { 0 };

	for (uint32_t i = first + 1; i; i = siblings->next[i - 1])
		p.parts_n++;
	if (p.parts_n < 2)
		return ERR_OK;
	if (!(p.parts = arena_array(g->work->arena, struct part, p.parts_n)))
		return work_nomem(g->work, err);
	p.parts_n = 0;
	for (uint32_t i = first + 1; i; i = siblings->next[i - 1])
		p.parts[p.parts_n++] = parts[i - 1];
	return profile_join_epochs(g->work, &p, err);
}

enum err_code siblings_widen(struct gathering *g, struct part *parts, struct err *err)
{
	struct siblings siblings;
	enum err_code rc = siblings_find(g, &siblings, err);

	for (uint32_t i = 0; i < g->of_n && g->of_n > 1 && !rc; i++)
		if (slot_is_read(&g->of[i]) && !siblings.is_later[i])
			rc = siblings_join_cells(g, &siblings, i, parts, err);
	for (size_t i = 0; i < g->of_n && !rc; i++)
		for (size_t k = 0; k < parts[i].n && !rc; k++)
			if (!fraction_of(g->of[i].factor, parts[i].wide[k], &parts[i].wide[k]))
				rc = gather_too_large(g, err);
	siblings_release(&siblings);
	return rc;
}

enum err_code siblings_total(struct gathering *g, __int128 *total, struct err *err)
{
	struct siblings siblings;
	enum err_code rc = siblings_find(g, &siblings, err);

	for (uint32_t first = 0; first < g->of_n && !rc; first++) {
		__int128 sum = 0, one;

		if (!slot_is_read(&g->of[first]) || siblings.is_later[first])
			continue;
		for (uint32_t i = first + 1; i && !rc; i = siblings.next[i - 1])
			if (!slot_convert(&g->of[i - 1], g->of[i - 1].sums.stats.total, &one) ||
				__builtin_add_overflow(sum, one, &sum))
				rc = gather_too_large(g, err);
		if (!rc && !fraction_of(g->of[first].factor, sum, &sum))
			rc = gather_too_large(g, err);
		*total += sum;
	}
	siblings_release(&siblings);
	return rc;
}
