#include "tsdb/columns/coding.h"

/*
 * Levels: plain, of the differences to the row before: a gauge changes seldom. The token says
 * whether the first row has a value, so a level that stays costs that value and no place.
 */

/* ---- writing ---- */

/* Differences to the row before, wrapping; a row without the key is 0. */
void levels_take(
	const struct column_in *in, const int64_t *values, uint32_t key, struct key_cells *out)
{
	uint64_t level = 0;
	uint32_t n = 0, next = 0; /* the row that `level` would hold in */

	for (size_t i = in->starts[key]; i < in->starts[key + 1]; i++) {
		uint64_t v = (uint64_t)values[i];

		if (v == 0)
			continue;
		if (level && in->rows[i] > next) {
			out->places[n] = next;
			out->values[n++] = (int64_t)-level;
			level = 0;
		}
		if (v != level) {
			out->places[n] = in->rows[i];
			out->values[n++] = (int64_t)(v - level);
			level = v;
		}
		next = in->rows[i] + 1u;
	}
	if (level && next < in->rows_n) {
		out->places[n] = next;
		out->values[n++] = (int64_t)-level;
	}
	out->n = n;
	out->starts = n && out->places[0] == 0;
}

bool levels_put_key(
	struct column_encoder *e, const struct key_cells *c, unsigned *flags, uint64_t *rest)
{
	for (uint32_t i = 0; i < c->n; i++)
		column_put_value(&e->values, *flags, c->values[i]);
	*rest = c->starts;
	return true;
}

static bool coding_levels_encode(struct column_try *t)
{
	return t->levels && column_encode_keys(t, &coding_levels, t->in, 0);
}

/* ---- reading ---- */

bool levels_counts_sound(const uint16_t *counts, const uint64_t *rests, uint32_t keys_n)
{
	uint64_t bad = 0;

	(void)counts;
	for (uint32_t k = 0; k < keys_n; k++)
		bad |= rests[k] > 1;
	return !bad;
}

bool levels_take_values(struct column_reader *r, uint32_t key, uint32_t *n, int64_t *values)
{
	*n += r->n.rests[key] != 0;
	for (uint32_t i = 0; i < *n; i++)
		values[i] = column_reader_value(r);
	return true;
}

enum err_code levels_add_some(
	struct adding *a, struct column_reader *r, uint32_t from, uint32_t to, struct err *err)
{
	uint16_t places[CHUNK_ROWS_MAX];
	int64_t cells[CHUNK_ROWS_MAX];
	enum err_code rc = ERR_OK;

	for (uint32_t k = 0; !rc && k < a->c->keys_n; k++) {
		uint32_t at = from, until, rows_n = a->c->rows_n;
		const int64_t *cell = cells;
		uint64_t level = 0;
		__int128 sum = 0, behind = 0;

		if (!column_reader_cells(r, k, places, cells))
			return chunk_corrupt(err, "bad cells");
		if (r->n.rests[k])
			level = (uint64_t)*cell++;
		for (uint32_t i = 0; i < r->n.counts[k]; i++) {
			until = places[i] + 1u; /* the first row has none */
			if (until > to && a->tail)
				behind += (__int128)(int64_t)(level * a->factor) * (until - (at > to ? at : to));
			if (until > at && at < to)
				sum += (__int128)(int64_t)(level * a->factor) * ((until < to ? until : to) - at);
			at = until > at ? until : at;
			level += (uint64_t)cell[i];
		}
		if (at < to)
			sum += (__int128)(int64_t)(level * a->factor) * (to - at);
		rc = adding_sum(a, sum);
		if (a->tail)
			adding_tail(a, k,
				behind + (__int128)(int64_t)(level * a->factor) * (rows_n - (at > to ? at : to)));
	}
	return rc;
}

/* clang-format off */
const struct coding coding_levels = {
	.name = "levels",
	.byte = COLUMN_PLAIN | COLUMN_LEVELS | COLUMN_SIGNED,
	.flags = COLUMN_SUMS | COLUMN_SHARED,
	.sections = SECTION_BIT(SECTION_TOKENS) | SECTION_BIT(SECTION_EXTRA) |
		SECTION_BIT(SECTION_PLACES) | SECTION_BIT(SECTION_VALUES),
	.shared_sections = SECTION_BIT(SECTION_VALUES),
	.levels = true,
	.encode = coding_levels_encode,
	.put_key = levels_put_key,
	.counts_sound = levels_counts_sound,
	.take_values = levels_take_values,
	.add_all = plain_add_all,
	.add_some = levels_add_some,
};
/* clang-format on */
