#include <assert.h>

#include "tsdb/columns/chunk_internal.h"

/*
 * A column of a range of rows into an accumulator. All rows of a counted column: numbers and rests
 * of the keys' sums, which stand in front. A part of them: of each key, which of its cells are
 * inside follows from its places, and their sum from its values, in registers; one number per key.
 */

const uint16_t token_base[TOKEN_CLASSES] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 20, 36, 68, 132, 260,
	0 };
const uint8_t token_bits[TOKEN_CLASSES] = { 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 4, 5, 6, 7, 8, 0 };

/* ---- numbers and sums of keys ---- */

static uint64_t take_class(struct bit_in *extra, unsigned class)
{
	if (class < 8)
		return class;
	if (class < TOKEN_OPEN)
		return token_base[class] + bits_take(extra, token_bits[class]);
	return bits_take_long(extra, (unsigned)bits_take(extra, TOKEN_OPEN_BITS));
}

#define TOKENS_OPEN UINT64_C(0x8888888888888888) /* classes that have bits elsewhere */

/* Numbers into counts and rests, where these are not NULL. */
static enum err_code take_tokens(struct chunk *c, uint32_t column, unsigned room, uint16_t *counts,
	uint64_t *rests, struct err *err)
{
	const struct section *s = c->columns[column].sections;
	uint32_t most = c->rows_n - !!(c->columns[column].coding & COLUMN_LEVELS);
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
			v = take_class(&extra, tokens[k] & 15);
			bad |= v > most;
			if (counts)
				counts[k] = (uint16_t)v;
			v = take_class(&extra, tokens[k] >> 4);
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
	bool counted = (col->coding & COLUMN_CODING) == COLUMN_COUNTED;
	bool levels = col->coding & COLUMN_LEVELS, shared = col->coding & COLUMN_SHARED;
	uint16_t *counts = chunk_room(c, ROOM_COUNTS, ((size_t)c->keys_n + 1) * sizeof(*counts));
	uint64_t *rests = chunk_room(c, ROOM_REST, ((size_t)c->keys_n + 1) * sizeof(*rests));
	uint64_t bad = 0;
	enum err_code rc;

	if (!counts || !rests)
		return chunk_nomem(err);
	if (shared && (rc = take_tokens(c, col->places, ROOM_REF, counts, levels ? rests : NULL, err)))
		return rc;
	if ((!shared || counted) &&
		(rc = take_tokens(c, column, ROOM_SECTIONS, shared ? NULL : counts, rests, err)))
		return rc;
	for (uint32_t k = 0; counted && k < c->keys_n; k++)
		bad |= (counts[k] == 0 && rests[k] != 0) | (rests[k] + counts[k]) >> 63;
	for (uint32_t k = 0; levels && k < c->keys_n; k++)
		bad |= rests[k] > 1;
	out->counts = counts;
	out->rests = rests;
	return bad ? chunk_corrupt(err, "bad sums") : ERR_OK;
}

/* ---- adding ---- */

#define BATCH CHUNK_BATCH

struct adding {
	struct chunk *c;
	struct accum *acc;
	int64_t weight;
	uint64_t factor;
	uint32_t first, n; /* keys in hand: first and number */
	int64_t values[BATCH];
	struct chunk_tail *tail; /* what is behind the range goes there; NULL: nowhere */
	struct err *err;
};

static enum err_code add_batch(struct adding *a)
{
	const uint32_t *sets = a->c->key_sets ? a->c->key_sets + a->first : NULL;
	enum err_code rc = accum_add(
		a->acc, a->c->key_stacks + a->first, sets, a->values, a->n, a->weight, a->err);

	a->first += a->n;
	a->n = 0;
	return rc;
}

/* A sum that is longer than the accumulator's arrays take goes there in pieces. */
static enum err_code add_pieces(struct adding *a, uint32_t key, __int128 sum)
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

static enum err_code add_long(struct adding *a, __int128 sum)
{
	enum err_code rc = add_pieces(a, a->first + a->n, sum);

	a->values[a->n++] = 0;
	return !rc && a->n == BATCH ? add_batch(a) : rc;
}

static inline enum err_code add_sum(struct adding *a, __int128 sum)
{
	if (__builtin_expect(sum != (int64_t)sum, 0))
		return add_long(a, sum);
	a->values[a->n++] = (int64_t)sum;
	return a->n == BATCH ? add_batch(a) : ERR_OK;
}

static inline void add_tail(struct adding *a, uint32_t key, __int128 sum)
{
	struct chunk_tail *t = a->tail;

	t->stacks[t->n] = a->c->key_stacks[key];
	if (t->label_sets)
		t->label_sets[t->n] = a->c->key_sets[key];
	t->values[t->n] = (int64_t)sum;
	t->is_known &= t->values[t->n] == sum;
	t->n += sum != 0;
}

/* Sums of keys [first, first + n): both parts of a token at once. False: one needs the long way. */
static bool take_sums(
	const unsigned char *tokens, struct bit_in *extra, uint32_t n, uint64_t factor, int64_t *out)
{
	struct bit_in in = *extra;
	bool fits = true;
	uint64_t w, v;
	uint32_t i = 0, end;

	while (i < n && fits) {
		end = n - i < 8 ? n : i + 8;
		memcpy(&w, tokens + i, sizeof(w));
		if (!(w & TOKENS_OPEN)) {
			for (; i < end; i++)
				fits &= !__builtin_mul_overflow(
					(tokens[i] & 15u) + (tokens[i] >> 4), factor, &out[i]);
			continue;
		}
		for (; i < end; i++) {
			unsigned count = tokens[i] & 15, rest = tokens[i] >> 4;
			unsigned bits = token_bits[count] + token_bits[rest];

			fits &= count < TOKEN_OPEN && rest < TOKEN_OPEN;
			v = bits_take(&in, bits);
			w = v & ((UINT64_C(1) << token_bits[count]) - 1);
			v >>= token_bits[count];
			fits &= !__builtin_mul_overflow(
				w + v + token_base[count] + token_base[rest], factor, &out[i]);
		}
	}
	if (fits)
		*extra = in;
	return fits;
}

static enum err_code add_counted_whole(
	struct adding *a, const struct chunk_column *col, struct err *err)
{
	const struct section *s = col->sections;
	const unsigned char *tokens, *bytes;
	struct bit_in extra;
	uint64_t sum, more;
	enum err_code rc;

	if ((rc = chunk_section(a->c, &s[SECTION_TOKENS], ROOM_SECTIONS, &tokens, err)) ||
		(rc = chunk_section(a->c, &s[SECTION_EXTRA], ROOM_SECTIONS + 1, &bytes, err)))
		return rc;
	extra = bits_open(bytes, s[SECTION_EXTRA].raw);
	while (!rc && a->first < a->c->keys_n) {
		uint32_t left = a->c->keys_n - a->first, first = a->first;

		left = left < BATCH ? left : BATCH;
		if (take_sums(tokens + first, &extra, left, a->factor, a->values)) {
			a->n = left;
			rc = add_batch(a);
			continue;
		}
		for (uint32_t i = 0; !rc && i < left; i++) {
			sum = take_class(&extra, tokens[first + i] & 15);
			more = take_class(&extra, tokens[first + i] >> 4);
			rc = add_sum(a, ((__int128)sum + more) * a->factor);
		}
		if (!rc && a->n)
			rc = add_batch(a);
	}
	return rc || bits_at_end(&extra) ? rc : chunk_corrupt(err, "bad sums");
}

/* The same where numbers of cells stand with another column. */
static enum err_code add_shared_whole(struct adding *a, const struct column_counts *n)
{
	enum err_code rc = ERR_OK;

	for (uint32_t k = 0; !rc && k < a->c->keys_n; k++)
		rc = add_sum(a, ((__int128)n->counts[k] + n->rests[k]) * a->factor);
	return !rc && a->n ? add_batch(a) : rc;
}

/* Units times the sums of numbers; of one like another, keys that have none are read. */
static enum err_code add_scaled_whole(
	struct adding *a, uint32_t column, const struct column_counts *n, struct err *err)
{
	const struct chunk_column *col = &a->c->columns[column];
	const struct section *s = &col->sections[SECTION_VALUES];
	bool like = col->like != column;
	const struct key_unit *units;
	const unsigned char *bytes;
	struct cursor raw = { 0 };
	enum err_code rc;

	if ((rc = chunk_units(a->c, column, n, &units, err)))
		return rc;
	if (like) {
		if ((rc = chunk_section(a->c, s, ROOM_SECTIONS + SECTION_VALUES, &bytes, err)))
			return rc;
		raw = cursor_of((struct str){ (const char *)bytes, s->raw });
	}
	for (uint32_t k = 0; !rc && k < a->c->keys_n; k++) {
		uint64_t numbers = n->counts[k] + n->rests[k];
		__int128 sum = 0;

		if (n->counts[k] == 0)
			sum = 0;
		else if (units[k].unit)
			sum = (int64_t)unit_times(&units[k], numbers);
		else if (!like)
			sum = (int64_t)numbers;
		for (uint32_t i = 0; like && !units[k].unit && i < n->counts[k]; i++)
			sum += unzigzag(cursor_varint(&raw));
		if (sum != (int64_t)sum)
			return chunk_corrupt(err, "bad sums");
		rc = add_sum(a, sum * a->factor);
	}
	if (!rc && a->n)
		rc = add_batch(a);
	if (!rc && (raw.bad || raw.at != raw.end))
		rc = chunk_corrupt(err, "bad sums");
	return rc;
}

static enum err_code add_plain_whole(struct adding *a, const struct chunk_column *col,
	const struct column_counts *n, struct err *err)
{
	const struct section *s = &col->sections[SECTION_SUMS];
	const unsigned char *bytes;
	struct cursor in;
	uint64_t v;
	enum err_code rc = chunk_section(a->c, s, ROOM_SECTIONS + SECTION_SUMS, &bytes, err);

	if (rc)
		return rc;
	in = cursor_of((struct str){ (const char *)bytes, s->raw });
	for (uint32_t k = 0; !rc && k < a->c->keys_n; k++) {
		v = n->counts[k] ? cursor_varint(&in) : 0;
		/* A factor of 2^63 goes with 0 and -1 alone. */
		rc = add_sum(a,
			(__int128)(col->coding & COLUMN_SIGNED ? unzigzag(v) : (int64_t)v) *
				(__int128)a->factor);
	}
	if (!rc && a->n)
		rc = add_batch(a);
	if (!rc && (in.bad || in.at != in.end))
		rc = chunk_corrupt(err, "bad sums");
	return rc;
}

/* Keys without a cell inside are passed over: of a narrow range that is most of them. */
static enum err_code add_counted(
	struct adding *a, struct column_reader *r, uint32_t from, uint32_t to, struct err *err)
{
	const uint32_t *stacks = a->c->key_stacks, *sets = a->c->key_sets;
	uint32_t kept_stacks[BATCH], kept_sets[BATCH], n, kept;
	enum err_code rc = ERR_OK;
	uint64_t sums[BATCH];

	for (uint32_t k = 0; !rc && k < a->c->keys_n; k += n) {
		n = a->c->keys_n - k < BATCH ? a->c->keys_n - k : BATCH;
		kept = 0;
		if (!column_reader_sums(r, k, n, from, to, sums))
			return chunk_corrupt(err, "bad cells");
		for (uint32_t i = 0; i < n; i++) {
			kept_stacks[kept] = stacks[k + i];
			kept_sets[kept] = sets ? sets[k + i] : 0;
			if (__builtin_expect(__builtin_mul_overflow(sums[i], a->factor, &a->values[kept]), 0)) {
				if ((rc = add_pieces(a, k + i, (__int128)sums[i] * a->factor)))
					return rc;
				continue;
			}
			kept += sums[i] != 0;
		}
		for (uint32_t i = 0; a->tail && i < n; i++)
			add_tail(
				a, k + i, ((__int128)r->n.counts[k + i] + r->n.rests[k + i] - sums[i]) * a->factor);
		rc = accum_add(
			a->acc, kept_stacks, sets ? kept_sets : NULL, a->values, kept, a->weight, err);
	}
	return rc;
}

static enum err_code add_cells(
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
		rc = add_sum(a, sum);
		if (a->tail)
			add_tail(a, k, behind);
	}
	return rc;
}

static enum err_code add_levels(
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
		rc = add_sum(a, sum);
		if (a->tail)
			add_tail(a, k,
				behind + (__int128)(int64_t)(level * a->factor) * (rows_n - (at > to ? at : to)));
	}
	return rc;
}

static enum err_code add_part(
	struct adding *a, uint32_t column, uint32_t from, uint32_t to, struct err *err)
{
	struct column_reader r;
	enum err_code rc = column_reader_open(a->c, column, &r, err);

	if (rc)
		return rc;
	if ((r.coding & COLUMN_CODING) == COLUMN_COUNTED && !r.units)
		rc = add_counted(a, &r, from, to, err);
	else if (r.coding & COLUMN_LEVELS)
		rc = add_levels(a, &r, from, to, err);
	else
		rc = add_cells(a, &r, from, to, err);
	if (!rc && a->n)
		rc = add_batch(a);
	if (!rc && !column_reader_done(&r))
		rc = chunk_corrupt(err, "bad cells");
	return rc;
}

static enum err_code add_column(
	struct adding *a, uint32_t column, uint32_t from, uint32_t to, struct err *err)
{
	struct chunk *c = a->c;
	uint32_t base = c->columns[column].base;
	const struct chunk_column *col = &c->columns[base];
	bool counted = (c->columns[col->like].coding & COLUMN_CODING) == COLUMN_COUNTED;
	struct column_counts n;
	enum err_code rc;

	a->factor = c->columns[column].factor;
	a->err = err;
	if (from > 0 || to < c->rows_n || !(counted || col->coding & COLUMN_SUMS))
		return add_part(a, base, from, to, err);
	if (counted && !(col->coding & (COLUMN_SHARED | COLUMN_SCALED)))
		return add_counted_whole(a, col, err);
	if ((rc = chunk_counts(c, col->like, &n, err)))
		return rc;
	if (col->coding & COLUMN_SCALED)
		return add_scaled_whole(a, base, &n, err);
	return counted ? add_shared_whole(a, &n) : add_plain_whole(a, col, &n, err);
}

static bool is_zero(const struct chunk *c, uint32_t column)
{
	return c->columns[c->columns[column].base].coding == COLUMN_ZERO;
}

enum err_code chunk_add(struct chunk *c, uint32_t column, uint32_t from, uint32_t to,
	int64_t weight, struct accum *acc, struct err *err)
{
	struct adding a;
	enum err_code rc;

	assert(column < c->columns_n && from <= to && to <= c->rows_n);
	if (from == to || is_zero(c, column))
		return ERR_OK;
	a.c = c;
	a.acc = acc;
	a.weight = weight;
	a.first = a.n = 0;
	a.tail = NULL;
	if ((rc = chunk_ids(c, err)))
		return rc;
	return add_column(&a, column, from, to, err);
}

enum err_code chunk_add_head(struct chunk *c, uint32_t column, uint32_t to, int64_t weight,
	struct accum *acc, struct chunk_tail *tail, struct err *err)
{
	size_t bytes = ((size_t)c->keys_n + 1) * sizeof(uint32_t);
	struct adding a;
	enum err_code rc;

	assert(column < c->columns_n && to > 0 && to < c->rows_n);
	*tail = (struct chunk_tail){ .is_known = true };
	if (is_zero(c, column))
		return ERR_OK;
	if ((rc = chunk_ids(c, err)))
		return rc;
	tail->stacks = chunk_room(c, ROOM_TAIL_STACKS, bytes);
	tail->values = chunk_room(c, ROOM_TAIL_VALUES, 2 * bytes);
	if (c->key_sets)
		tail->label_sets = chunk_room(c, ROOM_TAIL_SETS, bytes);
	if (!tail->stacks || !tail->values || (c->key_sets && !tail->label_sets))
		return chunk_nomem(err);
	a.c = c;
	a.acc = acc;
	a.weight = weight;
	a.first = a.n = 0;
	a.tail = tail;
	return add_column(&a, column, 0, to, err);
}
