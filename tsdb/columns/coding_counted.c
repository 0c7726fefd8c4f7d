#include "tsdb/columns/coding.h"

/*
 * Counted: of a key with n cells of sum s, n and s - n are a token, which rows is a subset of n of
 * all rows, and how the sum falls into values is a subset too: s - n stars between n - 1 bars. So a
 * key whose cells are all 1 costs no value at all, and one of a single cell neither. All rows are
 * added by the tokens alone.
 */

/* ---- writing ---- */

static bool coding_counted_encode(struct column_try *t)
{
	return !t->negative && column_encode_keys(t, &coding_counted, t->in, 0);
}

/* n values, each at least 1, with this rest: sum - n. */
static void coding_counted_put_values(
	struct column_encoder *e, const struct key_cells *c, uint64_t rest)
{
	uint64_t places = c->n + rest - 1, sum = 0, n = 0;

	if (rest == 0 || c->n == 1)
		return;
	if (rest <= places / 2) {
		for (uint32_t i = 0; i < c->n; i++)
			for (int64_t k = 1; k < c->values[i]; k++, n++)
				e->subset[n] = i + n;
	} else {
		for (uint32_t i = 0; i + 1 < c->n; i++) {
			sum += (uint64_t)c->values[i] - 1;
			e->subset[n++] = sum + i;
		}
	}
	bits_put_places(&e->bits, places, e->subset, n);
}

bool counted_put_key(
	struct column_encoder *e, const struct key_cells *c, unsigned *flags, uint64_t *rest)
{
	__int128 sum = 0;

	(void)flags;
	for (uint32_t i = 0; i < c->n; i++)
		sum += c->values[i];
	if (sum != (int64_t)sum)
		return false;
	*rest = (uint64_t)sum - c->n;
	coding_counted_put_values(e, c, *rest);
	return true;
}

/* ---- reading ---- */

bool counted_counts_sound(const uint16_t *counts, const uint64_t *rests, uint32_t keys_n)
{
	uint64_t bad = 0;

	for (uint32_t k = 0; k < keys_n; k++)
		bad |= (counts[k] == 0 && rests[k] != 0) | (rests[k] + counts[k]) >> 63;
	return !bad;
}

bool counted_take_bits(struct bit_in *in, uint32_t n, uint64_t rest, int64_t *values)
{
	uint64_t places = n + rest - 1, at = 0, gap;
	bool stars = rest <= places / 2;
	uint64_t m = stars ? rest : n - 1;
	unsigned k = chunk_bits_subset_parameter(places, m);

	for (uint32_t i = 0; i < n; i++)
		values[i] = 1;
	for (uint64_t i = 0; i < m; i++) {
		/* at counts the other kind: cells passed, or stars given away. */
		uint64_t left = (stars ? n - 1 : rest) - at;

		gap = i + 1 < m ? bits_take_gap(in, k) : bits_take_below(in, left + 1);
		if (gap > left)
			return false;
		at += gap;
		values[stars ? at : i] += (int64_t)(stars ? 1 : gap);
	}
	if (!stars)
		values[n - 1] += (int64_t)(rest - at);
	return true;
}

bool counted_take_values(struct column_reader *r, uint32_t key, uint32_t *cells, int64_t *values)
{
	uint32_t n = *cells;
	uint64_t rest = r->n.rests[key];

	if (rest && n > 1 && !r->streams)
		return counted_take_bits(&r->bits, n, rest, values);
	if (rest && n > 1) {
		memcpy(values, r->taken_values, n * sizeof(*values));
		r->taken_values += n;
		return true;
	}
	for (uint32_t i = 0; i < n; i++)
		values[i] = 1;
	if (n == 1)
		values[0] += (int64_t)rest;
	return true;
}

/* ---- adding ---- */

/* Sums of keys [first, first + n): both parts of a token at once. False: one needs the long way. */
static bool coding_counted_take_sums(
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

static enum err_code coding_counted_add_tokens(
	struct adding *a, const struct chunk_column *col, struct err *err)
{
	const struct chunk_section *s = col->sections;
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

		left = left < CHUNK_BATCH ? left : CHUNK_BATCH;
		if (coding_counted_take_sums(tokens + first, &extra, left, a->factor, a->values)) {
			a->n = left;
			rc = adding_flush(a);
			continue;
		}
		for (uint32_t i = 0; !rc && i < left; i++) {
			sum = chunk_token_take(&extra, tokens[first + i] & 15);
			more = chunk_token_take(&extra, tokens[first + i] >> 4);
			rc = adding_sum(a, ((__int128)sum + more) * a->factor);
		}
		if (!rc && a->n)
			rc = adding_flush(a);
	}
	return rc || bits_at_end(&extra) ? rc : chunk_corrupt(err, "bad sums");
}

static enum err_code coding_counted_add_all(struct adding *a, uint32_t column, struct err *err)
{
	const struct chunk_column *col = &a->c->columns[column];
	struct column_counts n;
	enum err_code rc;

	if (!(col->flags & COLUMN_SHARED))
		return coding_counted_add_tokens(a, col, err);
	if ((rc = chunk_counts(a->c, column, &n, err)))
		return rc;
	for (uint32_t k = 0; !rc && k < a->c->keys_n; k++)
		rc = adding_sum(a, ((__int128)n.counts[k] + n.rests[k]) * a->factor);
	return !rc && a->n ? adding_flush(a) : rc;
}

/* Keys without a cell inside are passed over: of a narrow range that is most of them. */
static enum err_code coding_counted_add_some(
	struct adding *a, struct column_reader *r, uint32_t from, uint32_t to, struct err *err)
{
	const uint32_t *stacks = a->c->key_stacks, *sets = a->c->key_sets;
	uint32_t kept_stacks[CHUNK_BATCH], kept_sets[CHUNK_BATCH], n, kept;
	uint64_t batch[CHUNK_BATCH];
	const uint64_t *all = NULL, *sums;
	enum err_code rc = ERR_OK;

	if (r->streams &&
		(rc = column_reader_sums_all(r, from, to, chunk_lanes_are_there(), &all, err)))
		return rc;
	for (uint32_t k = 0; !rc && k < a->c->keys_n; k += n) {
		n = a->c->keys_n - k < CHUNK_BATCH ? a->c->keys_n - k : CHUNK_BATCH;
		kept = 0;
		sums = all ? all + k : batch;
		if (!all && !column_reader_sums(r, k, n, from, to, batch))
			return chunk_corrupt(err, "bad cells");
		for (uint32_t i = 0; i < n; i++) {
			kept_stacks[kept] = stacks[k + i];
			kept_sets[kept] = sets ? sets[k + i] : 0;
			if (__builtin_expect(__builtin_mul_overflow(sums[i], a->factor, &a->values[kept]), 0)) {
				if ((rc = adding_pieces(a, k + i, (__int128)sums[i] * a->factor)))
					return rc;
				continue;
			}
			kept += sums[i] != 0;
		}
		for (uint32_t i = 0; a->tail && i < n; i++)
			adding_tail(
				a, k + i, ((__int128)r->n.counts[k + i] + r->n.rests[k + i] - sums[i]) * a->factor);
		rc = accum_add(
			a->acc, kept_stacks, sets ? kept_sets : NULL, a->values, kept, a->weight, err);
	}
	return rc;
}

/* clang-format off */
const struct coding coding_counted = {
	.name = "counted",
	.byte = COLUMN_COUNTED,
	.flags = COLUMN_SHARED,
	.sections = SECTION_BIT(SECTION_TOKENS) | SECTION_BIT(SECTION_EXTRA) |
		SECTION_BIT(SECTION_PLACES) | SECTION_BIT(SECTION_VALUES),
	.shared_sections = SECTION_BIT(SECTION_TOKENS) | SECTION_BIT(SECTION_EXTRA) |
		SECTION_BIT(SECTION_VALUES),
	.values_are_bits = true,
	.encode = coding_counted_encode,
	.put_key = counted_put_key,
	.counts_sound = counted_counts_sound,
	.take_values = counted_take_values,
	.add_all = coding_counted_add_all,
	.add_some = coding_counted_add_some,
};
/* clang-format on */
