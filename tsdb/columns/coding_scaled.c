#include "tsdb/columns/coding.h"

/*
 * Scaled: counted and levels as numbers of sampled events instead of cells (chunk_scale.c finds
 * them, chunk_units.c reads the units).
 * Like: the same numbers as another column. Allocated bytes are events times the bytes that one
 * represents, cut to integers; so are objects. If a column can be coded so, no other coding is
 * shorter.
 */

/* ---- writing ---- */

static bool coding_scaled_encode_own(struct column_try *t, const struct coding *coding)
{
	struct column_in numbers = *t->in;

	if (t->negative || t->levels != coding->levels ||
		!scale_own(&t->e->scale, t->in, coding->levels))
		return false;
	numbers.values = t->in->numbers;
	return column_encode_keys(t, coding, &numbers, 0);
}

static bool coding_scaled_encode(struct column_try *t)
{
	return coding_scaled_encode_own(t, &coding_scaled);
}

static bool coding_scaled_encode_levels(struct column_try *t)
{
	return coding_scaled_encode_own(t, &coding_scaled_levels);
}

/* Cells of keys that have no unit, where the numbers are another column's. False: it has other
 * places. */
static bool coding_scaled_put_raw(struct column_encoder *e, const struct column_in *in, bool levels)
{
	struct key_cells *c = &e->cells, *o = &e->others;

	buf_clear(&e->values);
	for (uint32_t k = 0; k < in->keys_n; k++) {
		__int128 sum = 0;

		if (e->scale.units[k].unit)
			continue;
		key_cells_take(in, in->values, k, levels, c);
		key_cells_take(in, in->others, k, levels, o);
		if (c->n != o->n || memcmp(c->places, o->places, c->n * sizeof(*c->places)))
			return false;
		for (uint32_t i = 0; i < c->n; i++) {
			buf_add_varint(&e->values, str_zigzag(c->values[i]));
			sum += c->values[i];
		}
		if (sum != (int64_t)sum)
			return false;
	}
	return true;
}

static bool coding_scaled_encode_like(struct column_try *t)
{
	const enum packing how = t->compress ? PACK_REPEATED : PACK_NOT;
	const struct coding *other = t->in->others ? t->done[t->in->others_of].coding : NULL;
	struct column_encoder *e = t->e;

	if (t->negative || !other || other == &coding_like ||
		!scale_like(&e->scale, t->in, other->levels) ||
		!coding_scaled_put_raw(e, t->in, other->levels))
		return false;
	t->made = coding_like.byte;
	buf_clear(&e->packed);
	buf_add_char(&e->packed, (char)t->made);
	buf_add_varint(&e->packed, t->factor);
	buf_add_varint(&e->packed, t->in->others_of);
	section_put(e->zstd, &e->values, how, &e->packed);
	section_put(e->zstd, &e->scale.codes, how, &e->packed);
	section_put(e->zstd, &e->scale.phases.bytes, PACK_NOT, &e->packed);
	return true;
}

/* ---- reading ---- */

static bool coding_scaled_like_take(
	const struct chunk *c, struct chunk_column *to, struct cursor *in)
{
	if (!chunk_take_reference(c, in, &to->like))
		return false;
	to->places = c->columns[to->like].places;
	return c->columns[to->like].coding != &coding_like;
}

/* Units times the sums of numbers; of one like another, keys that have none are read. */
static enum err_code coding_scaled_add_all(struct adding *a, uint32_t column, struct err *err)
{
	const struct chunk_column *col = &a->c->columns[column];
	const struct chunk_section *s = &col->sections[SECTION_VALUES];
	bool like = col->like != column;
	const struct key_unit *units;
	const unsigned char *bytes;
	struct column_counts n;
	struct cursor raw = { 0 };
	enum err_code rc;

	if (!a->c->columns[col->like].coding->values_are_bits || a->c->anew)
		return adding_some(a, column, 0, a->c->rows_n, err);
	if ((rc = chunk_counts(a->c, col->like, &n, err)) ||
		(rc = chunk_units(a->c, column, &n, &units, err)))
		return rc;
	if (like) {
		if ((rc = chunk_section(a->c, s, ROOM_SECTIONS + SECTION_VALUES, &bytes, err)))
			return rc;
		raw = cursor_of((struct str){ (const char *)bytes, s->raw });
	}
	for (uint32_t k = 0; !rc && k < a->c->keys_n; k++) {
		uint64_t numbers = n.counts[k] + n.rests[k];
		__int128 sum = 0;

		if (n.counts[k] == 0)
			sum = 0;
		else if (units[k].unit)
			sum = (int64_t)key_unit_times(&units[k], numbers);
		else if (!like)
			sum = (int64_t)numbers;
		for (uint32_t i = 0; like && !units[k].unit && i < n.counts[k]; i++)
			sum += str_unzigzag(cursor_varint(&raw));
		if (sum != (int64_t)sum)
			return chunk_corrupt(err, "bad sums");
		rc = adding_sum(a, sum * a->factor);
	}
	if (!rc && a->n)
		rc = adding_flush(a);
	if (!rc && (raw.bad || raw.at != raw.end))
		rc = chunk_corrupt(err, "bad sums");
	return rc;
}

static enum err_code coding_scaled_like_add_some(
	struct adding *a, struct column_reader *r, uint32_t from, uint32_t to, struct err *err)
{
	return r->coding->levels ? levels_add_some(a, r, from, to, err) :
							   plain_add_some(a, r, from, to, err);
}

/* clang-format off */
#define UNITS (SECTION_BIT(SECTION_UNITS) | SECTION_BIT(SECTION_PHASES))

const struct coding coding_scaled = {
	.name = "scaled",
	.byte = COLUMN_COUNTED | COLUMN_SCALED,
	.flags = COLUMN_SHARED,
	.sections = SECTION_BIT(SECTION_TOKENS) | SECTION_BIT(SECTION_EXTRA) |
		SECTION_BIT(SECTION_PLACES) | SECTION_BIT(SECTION_VALUES) | UNITS,
	.shared_sections = SECTION_BIT(SECTION_TOKENS) | SECTION_BIT(SECTION_EXTRA) |
		SECTION_BIT(SECTION_VALUES) | UNITS,
	.values_are_bits = true,
	.encode = coding_scaled_encode,
	.put_key = counted_put_key,
	.settles = true,
	.counts_sound = counted_counts_sound,
	.take_values = counted_take_values,
	.add_all = coding_scaled_add_all,
	.add_some = plain_add_some,
};

const struct coding coding_scaled_levels = {
	.name = "scaled levels",
	.byte = COLUMN_PLAIN | COLUMN_LEVELS | COLUMN_SIGNED | COLUMN_SCALED,
	.flags = COLUMN_SHARED,
	.sections = SECTION_BIT(SECTION_TOKENS) | SECTION_BIT(SECTION_EXTRA) |
		SECTION_BIT(SECTION_PLACES) | SECTION_BIT(SECTION_VALUES) | UNITS,
	.shared_sections = SECTION_BIT(SECTION_VALUES) | UNITS,
	.levels = true,
	.encode = coding_scaled_encode_levels,
	.put_key = levels_put_key,
	.settles = true,
	.counts_sound = levels_counts_sound,
	.take_values = levels_take_values,
	.add_some = levels_add_some,
};

const struct coding coding_like = {
	.name = "like",
	.byte = COLUMN_LIKE | COLUMN_SCALED,
	.sections = SECTION_BIT(SECTION_VALUES) | UNITS,
	.encode = coding_scaled_encode_like,
	.settles = true,
	.take_reference = coding_scaled_like_take,
	.add_all = coding_scaled_add_all,
	.add_some = coding_scaled_like_add_some,
};
/* clang-format on */
