#include <assert.h>
#include <endian.h>

#include "tsdb/columns/coding.h"

/*
 * A counted column's cells in a range of rows. Bits of a key begin where those of the key before
 * end, so all must be walked through; what is outside is only counted. Most keys have few cells,
 * in no order, so what costs is what the processor cannot foretell: a place in the bits is a number
 * from which 57 of them are loaded at once, without asking whether they are there (behind a section
 * are BITS_PAD bytes of 0, which no gap is made of), and some gaps are taken of each load. A key
 * that has longer gaps, or larger numbers, is read again by the readers of chunk_bits.h.
 * In streams keys come in the order of how they are read: that can be foretold.
 */
#define LOADED 57u /* bits of a load that are there wherever it begins */
#define GAPS 4u /* of a load; more bits than it has are seldom */
#define TAKEN_UP (UINT64_C(1) << 63) /* as where nothing is left: more than LOADED then */
#define QUICK_PARAMETER 20u
#define QUICK_BELOW 17u /* bits */

#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t chunk_part_load(const unsigned char *base, size_t at)
{
	uint64_t w;

	memcpy(&w, base + at / 8, sizeof(w));
	return le64toh(w) >> (at & 7);
}

/* A Rice code from word; one that is not whole in word makes *taken more than LOADED. */
INLINE uint64_t chunk_part_take_gap(uint64_t *word, unsigned *taken, unsigned at)
{
	unsigned quotient = (unsigned)__builtin_ctzll(*word | TAKEN_UP), n = quotient + at + 1;
	uint64_t low = *word >> quotient >> 1 & ((UINT64_C(1) << at) - 1);

	*word >>= n & 63;
	*taken += n;
	return (uint64_t)quotient << at | low;
}

/* Below range, which is 1 to QUICK_REST. */
INLINE uint64_t chunk_part_take_below(uint64_t word, unsigned *taken, uint64_t range)
{
	unsigned n = bit_length(range) - 1;
	uint64_t few = (UINT64_C(2) << n) - range, v = word & ((UINT64_C(1) << n) - 1);
	uint64_t more = v >= few;

	*taken += n + (unsigned)more;
	return more ? v + v + (word >> n & 1) - few : v;
}

/*
 * A subset's places, the coded ones, ascending: how many are before each bound. step: 1, or 0 where
 * places may be equal. False: not a quick one, or corrupt; *at may have moved.
 */
INLINE bool chunk_part_count_coded(const struct bit_in *in, uint32_t n, uint32_t coded,
	unsigned key, unsigned step, struct bounds of, bool two, size_t *at, struct bounds *out)
{
	uint64_t place = 0, w = chunk_part_load(in->base, *at);
	uint32_t left = coded, first = 0, end = 0;
	unsigned taken = 0;

	for (; left > GAPS; left -= GAPS) {
		for (unsigned i = 0; i < GAPS; i++) {
			place += chunk_part_take_gap(&w, &taken, key);
			first += place < of.first;
			end += two && place < of.end;
			place += step;
		}
		if (__builtin_expect(taken > LOADED, 0))
			return false;
		*at += taken;
		taken = 0;
		w = chunk_part_load(in->base, *at);
	}
	for (; left > 1; left--) {
		place += chunk_part_take_gap(&w, &taken, key);
		first += place < of.first;
		end += two && place < of.end;
		place += step;
	}
	if (__builtin_expect(place >= n || taken > LOADED - QUICK_BELOW, 0))
		return false;
	place += chunk_part_take_below(w, &taken, n - place);
	*at += taken;
	out->first = first + (place < of.first);
	out->end = end + (two && place < of.end);
	return *at <= in->end;
}

/* Counts how many of count places among n rows are before each bound. */
INLINE bool chunk_part_count_places(const struct bit_in *in, const uint8_t *parameters, uint32_t n,
	uint32_t count, struct bounds rows, bool two, size_t *at, struct bounds *out)
{
	bool others = count > n / 2;
	uint32_t coded = others ? n - count : count;

	*out = (struct bounds){ 0, 0 };
	if (coded && !chunk_part_count_coded(in, n, coded, parameters[coded], 1, rows, two, at, out))
		return false;
	out->first = others ? rows.first - out->first : out->first;
	out->end = others ? rows.end - out->end : out->end;
	return true;
}

/* n > 1, rest > 0: what the cells before each bound are above 1 for each; so many numbers are
 * coded. */
INLINE bool chunk_part_sum_coded(const struct bit_in *in, uint32_t n, uint32_t rest, uint32_t coded,
	bool stars, struct bounds cells, bool two, size_t *at, struct bounds *out)
{
	uint32_t i = 0, first = 0, end = 0;
	/* A single number is the last one, which needs none. */
	unsigned k = coded > 1 ? chunk_bits_subset_parameter(n + rest - 1, coded) : 0, taken = 0;
	uint64_t place = 0, gap, w;

	if (__builtin_expect(k > QUICK_PARAMETER, 0))
		return false;
	if (stars)
		return chunk_part_count_coded(in, n, coded, k, 0, cells, two, at, out);
	for (w = chunk_part_load(in->base, *at); i + 1 < coded; i++) {
		gap = chunk_part_take_gap(&w, &taken, k);
		place += gap;
		first += i < cells.first ? (uint32_t)gap : 0;
		end += two && i < cells.end ? (uint32_t)gap : 0;
		if (i % GAPS != GAPS - 1)
			continue;
		if (__builtin_expect(taken > LOADED, 0))
			return false;
		*at += taken;
		taken = 0;
		w = chunk_part_load(in->base, *at);
	}
	if (__builtin_expect(taken > LOADED - QUICK_BELOW, 0))
		return false;
	if (__builtin_expect(place > rest, 0))
		return false;
	gap = chunk_part_take_below(w, &taken, rest - place + 1);
	first += i < cells.first ? (uint32_t)gap : 0;
	end += two && i < cells.end ? (uint32_t)gap : 0;
	out->first = cells.first >= n ? rest : first;
	out->end = two && cells.end >= n ? rest : end;
	*at += taken;
	return *at <= in->end;
}

INLINE bool chunk_part_sum_rests(const struct bit_in *in, uint32_t n, uint32_t rest,
	struct bounds cells, bool two, size_t *at, struct bounds *out)
{
	bool stars = rest <= n - 1;

	return chunk_part_sum_coded(in, n, rest, stars ? rest : n - 1, stars, cells, two, at, out);
}

/* ---- any key ---- */

static struct bit_in chunk_part_reader_at(const struct bit_in *in, size_t at)
{
	return (struct bit_in){ .base = in->base, .next = at, .end = in->end };
}

static bool chunk_part_count_any_places(const struct bit_in *base, const uint8_t *parameters,
	uint32_t n, uint32_t count, struct bounds rows, size_t *at, struct bounds *out)
{
	struct bit_in in = chunk_part_reader_at(base, *at);
	bool others = count > n / 2;
	uint32_t coded = others ? n - count : count;
	unsigned k = parameters[coded];
	struct bounds before = { 0, 0 };
	uint64_t place = 0;

	for (uint32_t i = 1; i <= coded; i++, place++) {
		if (place >= n)
			return false;
		place += i < coded ? bits_take_gap(&in, k) : bits_take_below(&in, n - place);
		before.first += place < rows.first;
		before.end += place < rows.end;
	}
	out->first = others ? rows.first - before.first : before.first;
	out->end = others ? rows.end - before.end : before.end;
	*at = bits_at(&in);
	return bits_sound(&in);
}

static bool chunk_part_sum_any_rests(const struct bit_in *base, uint32_t n, uint64_t rest,
	struct bounds cells, size_t *at, uint64_t *inside)
{
	struct bit_in in = chunk_part_reader_at(base, *at);
	uint64_t places = n + rest - 1, place = 0, gap;
	bool stars = rest <= places / 2;
	uint64_t m = stars ? rest : n - 1;
	unsigned k = chunk_bits_subset_parameter(places, m);

	*inside = 0;
	for (uint64_t i = 0; i < m; i++) {
		uint64_t left = (stars ? n - 1 : rest) - place;

		gap = i + 1 < m ? bits_take_gap(&in, k) : bits_take_below(&in, left + 1);
		if (gap > left)
			return false;
		place += gap;
		if (stars)
			*inside += place >= cells.first && place < cells.end;
		else
			*inside += i >= cells.first && i < cells.end ? gap : 0;
	}
	if (!stars)
		*inside += n - 1 >= cells.first && n - 1 < cells.end ? rest - place : 0;
	*at = bits_at(&in);
	return bits_sound(&in);
}

/* ---- all keys ---- */

INLINE bool chunk_part_find_cells(struct column_reader *r, uint32_t key, uint32_t n,
	struct bounds rows, enum range range, struct bounds *out)
{
	const struct bit_in in = r->places;
	const uint16_t *counts = r->n.counts + key;
	const uint8_t *parameters = r->parameters;
	struct bounds asked = { range == RANGE_HEAD ? rows.end : rows.first, rows.end }, cells;
	uint32_t rows_n = r->rows_n;
	size_t at = bits_at(&in), was;

	for (uint32_t i = 0; i < n; i++) {
		was = at;
		if (__builtin_expect(chunk_part_count_places(&in, parameters, rows_n, counts[i], asked,
								 range == RANGE_INSIDE, &at, &cells),
				1)) {
			out[i].first = range == RANGE_HEAD ? 0 : cells.first;
			out[i].end = range == RANGE_HEAD ? cells.first :
				range == RANGE_TAIL          ? counts[i] :
											   cells.end;
			continue;
		}
		at = was;
		if (!chunk_part_count_any_places(&in, parameters, rows_n, counts[i], rows, &at, &out[i]))
			return false;
	}
	r->places = chunk_part_reader_at(&in, at);
	return true;
}

INLINE bool chunk_part_sum_cells(struct column_reader *r, uint32_t key, uint32_t n,
	const struct bounds *cells, enum range range, uint64_t *out)
{
	const struct bit_in in = r->bits;
	const uint16_t *counts = r->n.counts + key;
	const uint64_t *rests = r->n.rests + key;
	size_t at = bits_at(&in), was;
	struct bounds asked, more;
	uint16_t coded[CHUNK_BATCH]; /* keys whose sum is in bits: which of them is not foretold */
	uint32_t coded_n = 0;

	for (uint32_t i = 0; i < n; i++) {
		bool bits = rests[i] && counts[i] > 1;

		out[i] = (cells[i].end - cells[i].first) * (bits ? 1 : rests[i] + 1);
		coded[coded_n] = (uint16_t)i;
		coded_n += bits;
	}
	for (uint32_t c = 0; c < coded_n; c++) {
		uint32_t i = coded[c];
		uint64_t rest = rests[i];

		was = at;
		asked = cells[i];
		if (range == RANGE_HEAD)
			asked.first = asked.end;
		if (__builtin_expect(rest < QUICK_REST &&
					chunk_part_sum_rests(
						&in, counts[i], (uint32_t)rest, asked, range == RANGE_INSIDE, &at, &more),
				1)) {
			out[i] += range == RANGE_HEAD ? more.first :
				range == RANGE_TAIL       ? (uint32_t)rest - more.first :
											more.end - more.first;
			continue;
		}
		at = was;
		if (!chunk_part_sum_any_rests(&in, counts[i], rest, cells[i], &at, &rest))
			return false;
		out[i] += rest;
	}
	r->bits = chunk_part_reader_at(&in, at);
	return true;
}

INLINE bool chunk_part_sums(
	struct column_reader *r, uint32_t key, uint32_t n, struct bounds rows, uint64_t *out)
{
	struct bounds cells[CHUNK_BATCH];

	if (rows.first == 0)
		return chunk_part_find_cells(r, key, n, rows, RANGE_HEAD, cells) &&
			chunk_part_sum_cells(r, key, n, cells, RANGE_HEAD, out);
	if (rows.end == r->rows_n)
		return chunk_part_find_cells(r, key, n, rows, RANGE_TAIL, cells) &&
			chunk_part_sum_cells(r, key, n, cells, RANGE_TAIL, out);
	return chunk_part_find_cells(r, key, n, rows, RANGE_INSIDE, cells) &&
		chunk_part_sum_cells(r, key, n, cells, RANGE_INSIDE, out);
}

/* ---- streams ---- */

/* And the cells of keys that are in all rows, or in none. */
void chunk_part_order_places(struct chunk_part *p)
{
	struct chunk *c = p->r->streams;
	const uint16_t *counts = p->r->n.counts;

	chunk_order_places(&c->key_order, counts, c->keys_n, p->r->rows_n);
	for (uint32_t i = c->key_order.n; i < c->keys_n; i++) {
		uint32_t key = c->key_order.listed[i];

		chunk_part_put_cells(
			p, key, counts[key], counts[key] ? p->rows : (struct bounds){ 0, 0 }, RANGE_INSIDE);
	}
}

void chunk_part_order_values(struct chunk_part *p)
{
	struct chunk *c = p->r->streams;

	chunk_order_values(&c->key_order, p->r->n.counts, p->r->n.rests, c->keys_n, p->r->rows_n);
}

INLINE bool chunk_part_find_one(struct chunk_part *p, struct chunk_streams *s, uint32_t i,
	struct bounds asked, enum range range)
{
	uint32_t key = p->r->streams->key_order.keys[i], count = p->r->n.counts[key];
	struct bit_in in = chunk_streams_reader(s, i % STREAMS);
	struct bounds cells;
	size_t at = in.next;

	if (__builtin_expect(!chunk_part_count_places(&in, p->r->parameters, p->r->rows_n, count, asked,
							 range == RANGE_INSIDE, &at, &cells),
			0)) {
		at = in.next;
		if (!chunk_part_count_any_places(
				&in, p->r->parameters, p->r->rows_n, count, asked, &at, &cells))
			return false;
	}
	s->at[i % STREAMS] = at;
	chunk_part_put_cells(p, key, count, cells, range);
	return true;
}

/* What the cells inside are above 1 for each. */
INLINE bool chunk_part_sum_one(
	struct chunk_part *p, struct chunk_streams *s, uint32_t i, enum range range)
{
	uint32_t key = p->r->streams->key_order.keys[i], n = p->r->n.counts[key];
	uint64_t rest = p->r->n.rests[key];
	struct bit_in in = chunk_streams_reader(s, i % STREAMS);
	struct bounds cells = { p->cells[key].first, p->cells[key].end }, asked = cells, more;
	size_t at = in.next;

	if (range == RANGE_HEAD)
		asked.first = asked.end;
	if (__builtin_expect(rest < QUICK_REST &&
				chunk_part_sum_rests(
					&in, n, (uint32_t)rest, asked, range == RANGE_INSIDE, &at, &more),
			1)) {
		rest = range == RANGE_HEAD ? more.first :
			range == RANGE_TAIL    ? (uint32_t)rest - more.first :
									 more.end - more.first;
	} else {
		at = in.next;
		if (!chunk_part_sum_any_rests(&in, n, rest, cells, &at, &rest))
			return false;
	}
	s->at[i % STREAMS] = at;
	p->sums[key] += rest;
	return true;
}

bool chunk_part_find_key(struct chunk_part *p, struct chunk_streams *s, uint32_t i,
	struct bounds asked, enum range range)
{
	return chunk_part_find_one(p, s, i, asked, range);
}

bool chunk_part_sum_key(struct chunk_part *p, struct chunk_streams *s, uint32_t i, enum range range)
{
	return chunk_part_sum_one(p, s, i, range);
}

INLINE bool chunk_part_sums_in(struct chunk_part *p, enum range range)
{
	struct chunk_streams places = p->r->places_streams, values = p->r->bits_streams;
	struct chunk_order *o = &p->r->streams->key_order;
	struct bounds asked = chunk_part_asked(p->rows, range);

	chunk_part_order_places(p);
	for (uint32_t i = 0; i < o->n; i++)
		if (!chunk_part_find_one(p, &places, i, asked, range))
			return false;
	chunk_part_order_values(p);
	for (uint32_t i = 0; i < o->n; i++)
		if (!chunk_part_sum_one(p, &values, i, range))
			return false;
	return chunk_streams_done(&places) && chunk_streams_done(&values);
}

static bool chunk_part_sum_streams(struct chunk_part *p)
{
	return p->rows.first == 0       ? chunk_part_sums_in(p, RANGE_HEAD) :
		p->rows.end == p->r->rows_n ? chunk_part_sums_in(p, RANGE_TAIL) :
									  chunk_part_sums_in(p, RANGE_INSIDE);
}

#ifdef __x86_64__
/* Shifts by what is in any register. */
__attribute__((target("bmi,bmi2"))) static bool chunk_part_sums_bmi2(
	struct column_reader *r, uint32_t key, uint32_t n, struct bounds rows, uint64_t *out)
{
	return chunk_part_sums(r, key, n, rows, out);
}
#endif

static bool chunk_part_has_bmi2(void)
{
#ifdef __x86_64__
	return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
#else
	return false;
#endif
}

bool column_reader_sums(
	struct column_reader *r, uint32_t key, uint32_t n, uint32_t from, uint32_t to, uint64_t *out)
{
	const struct bounds rows = { from, to };

	assert(r->coding == &coding_counted && !r->units && !r->streams);
	assert(n <= CHUNK_BATCH && from <= to && to <= r->rows_n);
#ifdef __x86_64__
	if (chunk_part_has_bmi2())
		return chunk_part_sums_bmi2(r, key, n, rows, out);
#endif
	return chunk_part_sums(r, key, n, rows, out);
}

enum err_code column_reader_sums_all(struct column_reader *r, uint32_t from, uint32_t to,
	bool lanes, const uint64_t **out, struct err *err)
{
	struct chunk *c = r->streams;
	size_t n = (size_t)c->keys_n + 1;
	struct chunk_part p = { .r = r, .rows = { from, to } };
	bool ok;

	assert(r->coding == &coding_counted && !r->units && from <= to && to <= r->rows_n);
	assert(!lanes || chunk_lanes_are_there());
	p.cells = chunk_room(c, ROOM_BOUNDS, n * sizeof(*p.cells));
	p.sums = chunk_room(c, ROOM_SUMS, n * sizeof(*p.sums));
	if (!p.cells || !p.sums)
		return err_nomem(err, "chunk");
	ok = lanes ? chunk_lanes_sum(&p) : chunk_part_sum_streams(&p);
	*out = p.sums;
	return ok ? ERR_OK : chunk_corrupt(err, "bad cells");
}
