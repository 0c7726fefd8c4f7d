#include "tsdb/columns/coding.h"

/*
 * Units of the keys of scaled columns. One sampled event counts for many: for how many follows
 * from its size, and profiles that tell sizes apart do so by labels. So keys of one label set
 * nearly always have one unit, which is stored once.
 */

size_t slots_cap(uint32_t n)
{
	return (size_t)2 << bit_length(n);
}

void chunk_slots_find(const uint32_t *sets, uint32_t n, uint32_t *by_set, uint32_t *slots)
{
	unsigned bits = bit_length(n) + 1;
	size_t mask = slots_cap(n) - 1, at;

	if (sets)
		memset(by_set, 0, (mask + 1) * sizeof(*by_set)); /* key + 1 */
	for (uint32_t k = 0; k < n; k++) {
		slots[k] = k;
		if (!sets)
			continue;
		at = (size_t)((sets[k] * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - bits));
		while (by_set[at] && sets[by_set[at] - 1] != sets[k])
			at = (at + 1) & mask;
		if (!by_set[at])
			by_set[at] = k + 1;
		slots[k] = by_set[at] - 1;
	}
}

static enum err_code chunk_units_know_slots(struct chunk *c, struct err *err)
{
	enum err_code rc = chunk_ids(c, err);
	uint32_t *slots, *by_set;

	if (rc || c->slots_known)
		return rc;
	slots = chunk_room(c, ROOM_SLOTS, ((size_t)c->keys_n + 1) * sizeof(*slots));
	by_set = chunk_room(c, ROOM_SLOTS_BY_SET, slots_cap(c->keys_n) * sizeof(*by_set));
	if (!slots || !by_set)
		return err_nomem(err, "chunk");
	chunk_slots_find(c->key_sets, c->keys_n, by_set, slots);
	c->slots_known = true;
	return ERR_OK;
}

/* The lowest bit that is written is the lowest that is set. */
static bool chunk_units_take_phase(struct bit_in *in, uint64_t *out)
{
	uint64_t bits = bits_take_gap(in, 0);

	*out = 0;
	if (bits > UNIT_BITS)
		return false;
	if (bits)
		*out = (bits_take(in, (unsigned)bits - 1) << 1 | 1) << (UNIT_BITS - bits);
	return true;
}

static bool chunk_units_take_unit(struct cursor *in, uint64_t *last, uint64_t *out)
{
	uint64_t code = cursor_varint(in), v;

	*out = 0;
	if (code == UNIT_NONE)
		return true;
	if (code >= UNIT_SHIFTED) {
		v = cursor_varint(in);
		code -= UNIT_SHIFTED;
		if (code >= 62 || v > UNIT_MAX >> code)
			return false;
		*last = v << code;
	}
	*out = *last;
	return *out != 0;
}

enum err_code chunk_units(struct chunk *c, uint32_t column, const struct column_counts *n,
	const struct key_unit **out, struct err *err)
{
	const struct chunk_column *col = &c->columns[column];
	const struct chunk_section *s = col->sections;
	bool levels = c->columns[col->like].coding->levels;
	const unsigned char *codes, *bits;
	const uint32_t *slots;
	struct key_unit *units;
	uint64_t *last;
	struct bit_in phases;
	struct cursor in;
	enum err_code rc;

	if ((rc = chunk_units_know_slots(c, err)) ||
		(rc = chunk_section(c, &s[SECTION_UNITS], ROOM_SECTIONS + SECTION_UNITS, &codes, err)) ||
		(rc = chunk_section(c, &s[SECTION_PHASES], ROOM_SECTIONS + SECTION_PHASES, &bits, err)))
		return rc;
	units = chunk_room(c, ROOM_UNITS, ((size_t)c->keys_n + 1) * sizeof(*units));
	last = chunk_room(c, ROOM_UNITS_LAST, ((size_t)c->keys_n + 1) * sizeof(*last));
	if (!units || !last)
		return err_nomem(err, "chunk");
	memset(last, 0, c->keys_n * sizeof(*last));
	in = cursor_of((struct str){ (const char *)codes, s[SECTION_UNITS].raw });
	phases = bits_open(bits, s[SECTION_PHASES].raw);
	slots = c->rooms[ROOM_SLOTS].at;
	for (uint32_t k = 0; k < c->keys_n; k++) {
		units[k] = (struct key_unit){ 0 };
		if (n->counts[k] == 0 && !(levels && n->rests[k]))
			continue;
		if (!chunk_units_take_unit(&in, &last[slots[k]], &units[k].unit) ||
			(units[k].unit && !chunk_units_take_phase(&phases, &units[k].phase)))
			return chunk_corrupt(err, "bad units");
	}
	*out = units;
	return in.bad || in.at != in.end || !bits_at_end(&phases) ? chunk_corrupt(err, "bad units") :
																ERR_OK;
}
