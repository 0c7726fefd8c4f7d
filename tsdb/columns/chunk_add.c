#include <assert.h>

#include "tsdb/columns/coding.h"

/*
 * Adds a column of a range of rows to an accumulator: what all codings need for it. How the cells
 * of a key are summed is in the codings' files; one number per key goes to the accumulator.
 */

const uint16_t token_base[TOKEN_CLASSES] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 20, 36, 68, 132, 260,
	0 };
const uint8_t token_bits[TOKEN_CLASSES] = { 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 4, 5, 6, 7, 8, 0 };

/* ---- numbers and sums of keys ---- */

/* Numbers into counts and rests, where these are not NULL. */
static enum err_code chunk_add_take_tokens(struct chunk *c, uint32_t column, unsigned room,
	uint16_t *counts, uint64_t *rests, struct err *err)
{
	const struct chunk_section *s = c->columns[column].sections;
	uint32_t most = c->rows_n - c->columns[column].coding->levels;
	const unsigned char *tokens, *bytes;
	struct bit_in extra;
	uint64_t w, v, bad = 0;
	uint32_t k = 0, end;
	enum err_code rc;

	if ((rc = chunk_section(c, &s[SECTION_TOKENS], room, &tokens, err)) ||
		(rc = chunk_section(c, &s[SECTION_EXTRA], room + 1, &bytes, err)))
		return rc;
	extra = bits_open(bytes, s[SECTION_EXTRA].raw);
	while (k < c->keys_n) {
		end = c->keys_n - k < 8 ? c->keys_n : k + 8;
		memcpy(&w, tokens + k, sizeof(w)); /* BITS_PAD bytes of 0 are behind them */
		if (!(w & TOKENS_OPEN)) {
			for (; k < end; k++) {
				if (counts)
					counts[k] = tokens[k] & 15;
				if (rests)
					rests[k] = tokens[k] >> 4;
			}
			continue;
		}
		for (; k < end; k++) {
			v = chunk_token_take(&extra, tokens[k] & 15);
			bad |= v > most;
			if (counts)
				counts[k] = (uint16_t)v;
			v = chunk_token_take(&extra, tokens[k] >> 4);
			if (rests)
				rests[k] = v;
		}
	}
	/* Numbers up to 7 were not compared above. */
	for (k = 0; counts && most < 8 && k < c->keys_n; k++)
		bad |= counts[k] > most;
	return bad || !bits_at_end(&extra) ? chunk_corrupt(err, "bad numbers") : ERR_OK;
}

enum err_code chunk_counts(
	struct chunk *c, uint32_t column, struct column_counts *out, struct err *err)
{
	const struct chunk_column *col = &c->columns[column];
	unsigned sections = coding_sections(col->coding, col->flags);
	bool shared = col->flags & COLUMN_SHARED, own = sections & SECTION_BIT(SECTION_TOKENS);
	uint16_t *counts = chunk_room(c, ROOM_COUNTS, ((size_t)c->keys_n + 1) * sizeof(*counts));
	uint64_t *rests = chunk_room(c, ROOM_REST, ((size_t)c->keys_n + 1) * sizeof(*rests));
	enum err_code rc;

	if (!counts || !rests)
		return err_nomem(err, "chunk");
	if (shared &&
		(rc = chunk_add_take_tokens(c, col->places, ROOM_REF, counts, own ? NULL : rests, err)))
		return rc;
	if (own &&
		(rc = chunk_add_take_tokens(c, column, ROOM_SECTIONS, shared ? NULL : counts, rests, err)))
		return rc;
	out->counts = counts;
	out->rests = rests;
	if (col->coding->counts_sound && !col->coding->counts_sound(counts, rests, c->keys_n))
		return chunk_corrupt(err, "bad sums");
	return ERR_OK;
}

/* ---- adding ---- */

enum err_code adding_flush(struct adding *a)
{
	const uint32_t *sets = a->c->key_sets ? a->c->key_sets + a->first : NULL;
	enum err_code rc = accum_add(
		a->acc, a->c->key_stacks + a->first, sets, a->values, a->n, a->weight, a->err);

	a->first += a->n;
	a->n = 0;
	return rc;
}

enum err_code adding_pieces(struct adding *a, uint32_t key, __int128 sum)
{
	const uint32_t *sets = a->c->key_sets ? a->c->key_sets + key : NULL;
	enum err_code rc = ERR_OK;
	int64_t piece;

	if (sum / INT64_MAX > CHUNK_ROWS_MAX + 1 || sum / INT64_MAX < -(int)(CHUNK_ROWS_MAX + 1))
		return chunk_corrupt(a->err, "bad sums");
	for (; !rc && sum; sum -= piece) {
		piece = sum > INT64_MAX ? INT64_MAX : sum < INT64_MIN ? INT64_MIN : (int64_t)sum;
		rc = accum_add(a->acc, a->c->key_stacks + key, sets, &piece, 1, a->weight, a->err);
	}
	return rc;
}

enum err_code adding_long(struct adding *a, __int128 sum)
{
	enum err_code rc = adding_pieces(a, a->first + a->n, sum);

	a->values[a->n++] = 0;
	return !rc && a->n == CHUNK_BATCH ? adding_flush(a) : rc;
}

enum err_code adding_some(
	struct adding *a, uint32_t column, uint32_t from, uint32_t to, struct err *err)
{
	struct column_reader r;
	enum err_code rc = column_reader_open(a->c, column, &r, err);

	if (!rc)
		rc = a->c->columns[column].coding->add_some(a, &r, from, to, err);
	if (!rc && a->n)
		rc = adding_flush(a);
	if (!rc && !column_reader_done(&r))
		rc = chunk_corrupt(err, "bad cells");
	return rc;
}

static enum err_code chunk_add_column(
	struct adding *a, uint32_t column, uint32_t from, uint32_t to, struct err *err)
{
	const struct chunk *c = a->c;
	uint32_t base = c->columns[column].base;
	const struct coding *coding = c->columns[base].coding;

	a->factor = c->columns[column].factor;
	a->err = err;
	if (from == 0 && to == c->rows_n && coding->add_all)
		return coding->add_all(a, base, err);
	return adding_some(a, base, from, to, err);
}

static bool chunk_add_is_zero(const struct chunk *c, uint32_t column)
{
	return c->columns[c->columns[column].base].coding == &coding_zero;
}

enum err_code chunk_add(struct chunk *c, uint32_t column, uint32_t from, uint32_t to,
	int64_t weight, struct accum *acc, struct err *err)
{
	struct adding a;
	enum err_code rc;

	assert(column < c->columns_n && from <= to && to <= c->rows_n);
	if (from == to || chunk_add_is_zero(c, column))
		return ERR_OK;
	a.c = c;
	a.acc = acc;
	a.weight = weight;
	a.first = a.n = 0;
	a.tail = NULL;
	if ((rc = chunk_ids(c, err)))
		return rc;
	return chunk_add_column(&a, column, from, to, err);
}

enum err_code chunk_add_head(struct chunk *c, uint32_t column, uint32_t to, int64_t weight,
	struct accum *acc, struct chunk_tail *tail, struct err *err)
{
	size_t bytes = ((size_t)c->keys_n + 1) * sizeof(uint32_t);
	struct adding a;
	enum err_code rc;

	assert(column < c->columns_n && to > 0 && to < c->rows_n);
	*tail = (struct chunk_tail){ .is_known = true };
	if (chunk_add_is_zero(c, column))
		return ERR_OK;
	if ((rc = chunk_ids(c, err)))
		return rc;
	tail->stacks = chunk_room(c, ROOM_TAIL_STACKS, bytes);
	tail->values = chunk_room(c, ROOM_TAIL_VALUES, 2 * bytes);
	if (c->key_sets)
		tail->label_sets = chunk_room(c, ROOM_TAIL_SETS, bytes);
	if (!tail->stacks || !tail->values || (c->key_sets && !tail->label_sets))
		return err_nomem(err, "chunk");
	a.c = c;
	a.acc = acc;
	a.weight = weight;
	a.first = a.n = 0;
	a.tail = tail;
	return chunk_add_column(&a, column, 0, to, err);
}
