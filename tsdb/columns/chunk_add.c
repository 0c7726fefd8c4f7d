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
	const enum reading how = a->c->columns[column].coding == &coding_counted ? READ_SUMS :
																			   READ_CELLS;
	struct column_reader r;
	enum err_code rc = column_reader_open(a->c, column, how, &r, err);

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

/* ---- a weight per row ---- */

/*
 * Adds a column of a range of rows, each row with a weight of its own: once for all codings, cell
 * by cell. A level that stays holds over many rows; it is multiplied once, by all their weights. A
 * sum of weighted cells takes 128 bits, and so one number of that size per key goes to the
 * accumulator.
 */
struct spans_adding {
	struct chunk *c;
	uint64_t factor;
	uint32_t from, to;
	const int64_t *ends; /* between the rows; row i weighs ends[i + 1] - ends[i] */
	uint16_t places[CHUNK_ROWS_MAX]; /* of the key in hand */
	int64_t cells[CHUNK_ROWS_MAX];
	__int128 values[CHUNK_BATCH]; /* of the keys in hand */
};

/* A value in the rows [from, to). Cells times the factor wrap as they do everywhere. */
static __int128 chunk_spans_of(
	const struct spans_adding *a, uint64_t cell, uint32_t from, uint32_t to)
{
	return (__int128)(int64_t)(cell * a->factor) * (a->ends[to] - a->ends[from]);
}

/* Cells are differences to the row before, which wrap. */
static __int128 chunk_spans_of_level(
	const struct spans_adding *a, const struct column_reader *r, uint32_t key)
{
	const int64_t *cell = a->cells;
	uint32_t at = a->from, until;
	uint64_t level = r->n.rests[key] ? (uint64_t)*cell++ : 0;
	__int128 sum = 0;

	for (uint32_t i = 0; i < r->n.counts[key] && at < a->to; i++) {
		until = a->places[i] + 1u; /* the first row has none */
		until = until < a->to ? until : a->to;
		if (until > at) {
			sum += chunk_spans_of(a, level, at, until);
			at = until;
		}
		level += (uint64_t)cell[i];
	}
	return sum + chunk_spans_of(a, level, at, a->to);
}

static __int128 chunk_spans_of_cells(
	const struct spans_adding *a, const struct column_reader *r, uint32_t key)
{
	__int128 sum = 0;

	for (uint32_t i = 0; i < r->n.counts[key]; i++)
		if (a->places[i] >= a->from && a->places[i] < a->to)
			sum += chunk_spans_of(a, (uint64_t)a->cells[i], a->places[i], a->places[i] + 1u);
	return sum;
}

static enum err_code chunk_spans_add_keys(
	struct spans_adding *a, struct column_reader *r, struct accum *acc, struct err *err)
{
	const struct chunk *c = a->c;
	enum err_code rc = ERR_OK;
	uint32_t n;

	for (uint32_t first = 0; !rc && first < c->keys_n; first += n) {
		for (n = 0; n < CHUNK_BATCH && first + n < c->keys_n; n++) {
			uint32_t k = first + n;

			if (!column_reader_cells(r, k, a->places, a->cells))
				return chunk_corrupt(err, "bad cells");
			a->values[n] = r->coding->levels ? chunk_spans_of_level(a, r, k) :
											   chunk_spans_of_cells(a, r, k);
		}
		rc = accum_add_wide(acc, c->key_stacks + first, c->key_sets ? c->key_sets + first : NULL,
			a->values, n, err);
	}
	return rc;
}

enum err_code chunk_add_spans(struct chunk *c, uint32_t column, uint32_t from, uint32_t to,
	const int64_t *ends, struct accum *acc, struct err *err)
{
	uint32_t base = c->columns[column].base;
	struct column_reader r;
	struct spans_adding a;
	enum err_code rc;

	assert(column < c->columns_n && from <= to && to <= c->rows_n);
	if (from == to || c->columns[base].coding == &coding_zero)
		return ERR_OK;
	assert(ends[from] <= ends[to]);
	a.c = c;
	a.factor = c->columns[column].factor;
	a.from = from;
	a.to = to;
	a.ends = ends;
	if ((rc = chunk_ids(c, err)) || (rc = column_reader_open(c, base, READ_CELLS, &r, err)) ||
		(rc = chunk_spans_add_keys(&a, &r, acc, err)))
		return rc;
	return column_reader_done(&r) ? ERR_OK : chunk_corrupt(err, "bad cells");
}
