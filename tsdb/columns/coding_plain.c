#include "tsdb/columns/coding.h"

/* Plain: values as varints, for zstd to compress: negative ones, and repeating ones. Sums of the
 * keys may come before them: then all rows are added by the sums. */

/* Sums are stored if this part of all entries has cells in the column: fewer cells are added as
 * fast themselves. */
#define SUMS_WORTH 3u

/* ---- writing ---- */

static bool coding_plain_encode(struct column_try *t)
{
	size_t n = t->in->starts[t->in->keys_n];
	unsigned flags = t->negative ? COLUMN_SIGNED : 0;

	return column_encode_keys(
		t, &coding_plain, t->in, flags | (t->cells > n / SUMS_WORTH ? COLUMN_SUMS : 0));
}

static bool coding_plain_put_key(
	struct column_encoder *e, const struct key_cells *c, unsigned *flags, uint64_t *rest)
{
	__int128 sum = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		sum += c->values[i];
		column_put_value(&e->values, *flags, c->values[i]);
	}
	if (sum != (int64_t)sum)
		*flags &= ~COLUMN_SUMS;
	if (c->n && *flags & COLUMN_SUMS)
		column_put_value(&e->sums, *flags, (int64_t)sum);
	*rest = 0;
	return true;
}

/* ---- reading ---- */

static bool coding_plain_take_values(
	struct column_reader *r, uint32_t key, uint32_t *n, int64_t *values)
{
	(void)key;
	for (uint32_t i = 0; i < *n; i++)
		values[i] = column_reader_value(r);
	return true;
}

enum err_code plain_add_all(struct adding *a, uint32_t column, struct err *err)
{
	const struct chunk_column *col = &a->c->columns[column];
	const struct chunk_section *s = &col->sections[SECTION_SUMS];
	struct column_counts n;
	const unsigned char *bytes;
	struct cursor in;
	uint64_t v;
	enum err_code rc;

	if (!(col->flags & COLUMN_SUMS))
		return adding_some(a, column, 0, a->c->rows_n, err);
	if ((rc = chunk_counts(a->c, column, &n, err)) ||
		(rc = chunk_section(a->c, s, ROOM_SECTIONS + SECTION_SUMS, &bytes, err)))
		return rc;
	in = cursor_of((struct str){ (const char *)bytes, s->raw });
	for (uint32_t k = 0; !rc && k < a->c->keys_n; k++) {
		v = n.counts[k] ? cursor_varint(&in) : 0;
		/* A factor of 2^63 goes with 0 and -1 alone. */
		rc = adding_sum(a,
			(__int128)(col->flags & COLUMN_SIGNED ? str_unzigzag(v) : (int64_t)v) *
				(__int128)a->factor);
	}
	if (!rc && a->n)
		rc = adding_flush(a);
	if (!rc && (in.bad || in.at != in.end))
		rc = chunk_corrupt(err, "bad sums");
	return rc;
}

enum err_code plain_add_some(
	struct adding *a, struct column_reader *r, uint32_t from, uint32_t to, struct err *err)
{
	uint16_t places[CHUNK_ROWS_MAX];
	int64_t cells[CHUNK_ROWS_MAX];
	enum err_code rc = ERR_OK;

	for (uint32_t k = 0; !rc && k < a->c->keys_n; k++) {
		__int128 sum = 0, behind = 0;

		if (!column_reader_cells(r, k, places, cells))
			return chunk_corrupt(err, "bad cells");
		for (uint32_t i = 0; i < r->n.counts[k]; i++) {
			int64_t v = (int64_t)((uint64_t)cells[i] * a->factor);

			if (places[i] >= to)
				behind += v;
			else if (places[i] >= from)
				sum += v;
		}
		rc = adding_sum(a, sum);
		if (a->tail)
			adding_tail(a, k, behind);
	}
	return rc;
}

/* clang-format off */
const struct coding coding_plain = {
	.name = "plain",
	.byte = COLUMN_PLAIN,
	.flags = COLUMN_SIGNED | COLUMN_SUMS | COLUMN_SHARED,
	.sections = SECTION_BIT(SECTION_TOKENS) | SECTION_BIT(SECTION_EXTRA) |
		SECTION_BIT(SECTION_PLACES) | SECTION_BIT(SECTION_VALUES),
	.shared_sections = SECTION_BIT(SECTION_VALUES),
	.encode = coding_plain_encode,
	.put_key = coding_plain_put_key,
	.take_values = coding_plain_take_values,
	.add_all = plain_add_all,
	.add_some = plain_add_some,
};
/* clang-format on */
