#include "tsdb/columns/coding.h"

/*
 * Sums in a range of rows, of four keys at a time: one of each stream, in vectors of AVX2. What is
 * read is the same as one by one. Keys that are not quick are refused before anything is changed,
 * and are then read one by one.
 */
#ifdef __x86_64__
#include <immintrin.h>

#define LANES 4u
#define LANES_LOADED 57 /* bits of a load that are there wherever it begins */
#define LANES_BELOW 17 /* bits of a last number, at most */
#define LANES_GAPS 4u /* of a load */

#define LANES_INLINE static inline __attribute__((always_inline, target("avx2,bmi,bmi2")))

/* Subsets of the keys in hand. */
struct chunk_lanes {
	__m256i n, coded, parameter; /* of each: places, numbers that are coded, Rice parameter */
	__m256i first, end; /* places before these are counted, or gaps added */
	uint32_t most; /* of coded */
};

/* Rows; stars, of which several can be in one place; bars, the gaps between which are counted. */
enum chunk_lanes_kind { LANES_ROWS, LANES_STARS, LANES_BARS };

LANES_INLINE __m256i chunk_lanes_load(const unsigned char *base, const size_t *at)
{
	uint64_t w[LANES];
	__m256i words;

	for (unsigned i = 0; i < LANES; i++)
		memcpy(&w[i], base + at[i] / 8, sizeof(w[i]));
	words = _mm256_set_epi64x((int64_t)w[3], (int64_t)w[2], (int64_t)w[1], (int64_t)w[0]);
	return _mm256_srlv_epi64(
		words, _mm256_and_si256(_mm256_loadu_si256((const void *)at), _mm256_set1_epi64x(7)));
}

/* The exponent of numbers above 0 and below 2^24, or of 2^31, which becomes more than 255. */
LANES_INLINE __m256i chunk_lanes_exponent(__m256i numbers)
{
	return _mm256_sub_epi64(_mm256_srli_epi64(_mm256_castps_si256(_mm256_cvtepi32_ps(numbers)), 23),
		_mm256_set1_epi64x(127));
}

/* What one place or gap, the i-th, adds to the count before a bound. */
LANES_INLINE __m256i chunk_lanes_counted(
	enum chunk_lanes_kind kind, __m256i bound, __m256i i, __m256i place, __m256i gap)
{
	return kind == LANES_BARS ? _mm256_and_si256(_mm256_cmpgt_epi64(bound, i), gap) :
								_mm256_srli_epi64(_mm256_cmpgt_epi64(bound, place), 63);
}

/* Bars: what is behind the last one counts where the bound is behind all cells. */
LANES_INLINE __m256i chunk_lanes_behind(
	enum chunk_lanes_kind kind, const struct chunk_lanes *l, __m256i bound, __m256i counted)
{
	const __m256i all = _mm256_sub_epi64(l->n, _mm256_set1_epi64x(1));

	return kind == LANES_BARS ?
		_mm256_blendv_epi8(counted, all, _mm256_cmpgt_epi64(bound, l->coded)) :
		counted;
}

/* How many of each subset's coded places are before `first`, and with `two` before `end`. */
LANES_INLINE bool chunk_lanes_count(struct chunk_streams *s, unsigned stream,
	enum chunk_lanes_kind kind, const struct chunk_lanes *l, bool two, __m256i *first_out,
	__m256i *end_out)
{
	const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi64x(1);
	const __m256i none = _mm256_set1_epi64x(INT64_C(1) << 31); /* no 1 among 31 bits */
	const __m256i low_bits = _mm256_sub_epi64(_mm256_sllv_epi64(one, l->parameter), one);
	__m256i next = _mm256_loadu_si256((const void *)(s->at + stream)), taken = zero, place = zero;
	__m256i first = zero, end = zero, n, few, v, power, more, bad;
	__m256i w = chunk_lanes_load(s->base, s->at + stream);
	size_t at[LANES];

	for (uint32_t i = 1; i < l->most; i++) {
		__m256i on = _mm256_cmpgt_epi64(l->coded, _mm256_set1_epi64x(i));
		__m256i ones = _mm256_or_si256(w, none), quotient, gap, bits;

		quotient = chunk_lanes_exponent(_mm256_and_si256(ones, _mm256_sub_epi64(zero, ones)));
		bits = _mm256_add_epi64(_mm256_add_epi64(quotient, one), l->parameter);
		gap = _mm256_and_si256(_mm256_srli_epi64(_mm256_srlv_epi64(w, quotient), 1), low_bits);
		gap = _mm256_or_si256(gap, _mm256_sllv_epi64(quotient, l->parameter));
		bits = _mm256_and_si256(bits, on);
		w = _mm256_srlv_epi64(w, bits);
		taken = _mm256_add_epi64(taken, bits);
		gap = _mm256_and_si256(gap, on);
		place = _mm256_add_epi64(place, gap);
		first = _mm256_add_epi64(first,
			_mm256_and_si256(
				on, chunk_lanes_counted(kind, l->first, _mm256_set1_epi64x(i - 1), place, gap)));
		if (two)
			end = _mm256_add_epi64(end,
				_mm256_and_si256(
					on, chunk_lanes_counted(kind, l->end, _mm256_set1_epi64x(i - 1), place, gap)));
		if (kind == LANES_ROWS)
			place = _mm256_sub_epi64(place, on);
		if (i % LANES_GAPS)
			continue;
		bad = _mm256_cmpgt_epi64(taken, _mm256_set1_epi64x(LANES_LOADED));
		if (!_mm256_testz_si256(bad, bad))
			return false;
		next = _mm256_add_epi64(next, taken);
		taken = zero;
		_mm256_storeu_si256((void *)at, next);
		w = chunk_lanes_load(s->base, at);
	}
	/* The last one is below what is left. */
	v = _mm256_sub_epi64(l->n, place);
	bad = _mm256_or_si256(_mm256_cmpgt_epi64(one, v),
		_mm256_cmpgt_epi64(taken, _mm256_set1_epi64x(LANES_LOADED - LANES_BELOW)));
	n = chunk_lanes_exponent(v);
	power = _mm256_sllv_epi64(one, n);
	few = _mm256_sub_epi64(_mm256_add_epi64(power, power), v);
	v = _mm256_and_si256(w, _mm256_sub_epi64(power, one));
	more = _mm256_cmpgt_epi64(few, v);
	more = _mm256_andnot_si256(more, _mm256_set1_epi64x(-1));
	w = _mm256_and_si256(_mm256_srlv_epi64(w, n), one);
	w = _mm256_sub_epi64(_mm256_add_epi64(v, w), few);
	v = _mm256_add_epi64(v, _mm256_and_si256(w, more));
	place = _mm256_add_epi64(place, v);
	taken = _mm256_add_epi64(taken, _mm256_sub_epi64(n, more));
	next = _mm256_add_epi64(next, taken);
	bad = _mm256_or_si256(
		bad, _mm256_cmpgt_epi64(next, _mm256_loadu_si256((const void *)(s->end + stream))));
	if (!_mm256_testz_si256(bad, bad))
		return false;
	_mm256_storeu_si256((void *)(s->at + stream), next);
	n = _mm256_sub_epi64(l->coded, one);
	first = _mm256_add_epi64(first, chunk_lanes_counted(kind, l->first, n, place, v));
	*first_out = chunk_lanes_behind(kind, l, l->first, first);
	if (two) {
		end = _mm256_add_epi64(end, chunk_lanes_counted(kind, l->end, n, place, v));
		*end_out = chunk_lanes_behind(kind, l, l->end, end);
	}
	return true;
}

/* Of keys that all have the same number of cells, as most neighbours have. */
LANES_INLINE bool chunk_lanes_find(struct chunk_part *p, struct chunk_streams *s, uint32_t i,
	struct bounds asked, enum range range)
{
	const uint32_t *keys = p->r->streams->key_order.keys + i;
	uint32_t n = p->r->rows_n, count = p->r->n.counts[keys[0]];
	bool others = count > n / 2;
	uint32_t coded = others ? n - count : count;
	const struct chunk_lanes l = { .n = _mm256_set1_epi64x(n),
		.coded = _mm256_set1_epi64x(coded),
		.parameter = _mm256_set1_epi64x(p->r->parameters[coded]),
		.first = _mm256_set1_epi64x(asked.first),
		.end = _mm256_set1_epi64x(asked.end),
		.most = coded };
	const __m256i counts = _mm256_set1_epi64x(count);
	uint64_t inside[LANES], packed[LANES];
	__m256i first, end = _mm256_setzero_si256();

	if (!chunk_lanes_count(s, i % STREAMS, LANES_ROWS, &l, range == RANGE_INSIDE, &first, &end))
		return false;
	if (others) {
		first = _mm256_sub_epi64(l.first, first);
		end = _mm256_sub_epi64(l.end, end);
	}
	if (range == RANGE_HEAD) {
		end = first;
		first = _mm256_setzero_si256();
	} else if (range == RANGE_TAIL) {
		end = counts;
	}
	_mm256_storeu_si256((void *)inside, _mm256_sub_epi64(end, first));
	if (count == 1) { /* its value is the sum, and nothing more is read of it */
		for (unsigned k = 0; k < LANES; k++)
			p->sums[keys[k]] = (p->r->n.rests[keys[k]] + 1) & -inside[k];
		return true;
	}
	_mm256_storeu_si256((void *)packed, _mm256_or_si256(first, _mm256_slli_epi64(end, 16)));
	for (unsigned k = 0; k < LANES; k++) {
		p->cells[keys[k]] = (struct part_cells){ (uint16_t)packed[k], (uint16_t)(packed[k] >> 16) };
		p->sums[keys[k]] = inside[k];
	}
	return true;
}

/* Of keys with different numbers. */
LANES_INLINE bool chunk_lanes_find_mixed(struct chunk_part *p, struct chunk_streams *s, uint32_t i,
	struct bounds asked, enum range range)
{
	const uint32_t *keys = p->r->streams->key_order.keys + i, n = p->r->rows_n;
	struct chunk_lanes l = { .n = _mm256_set1_epi64x(n),
		.first = _mm256_set1_epi64x(asked.first),
		.end = _mm256_set1_epi64x(asked.end) };
	int64_t first[LANES], end[LANES], coded[LANES], parameter[LANES];
	__m256i firsts, ends = _mm256_setzero_si256();

	for (unsigned k = 0; k < LANES; k++) {
		uint32_t count = p->r->n.counts[keys[k]], few = count > n / 2 ? n - count : count;

		coded[k] = few;
		parameter[k] = p->r->parameters[few];
		l.most = few > l.most ? few : l.most;
	}
	l.coded = _mm256_loadu_si256((const void *)coded);
	l.parameter = _mm256_loadu_si256((const void *)parameter);
	if (!chunk_lanes_count(s, i % STREAMS, LANES_ROWS, &l, range == RANGE_INSIDE, &firsts, &ends))
		return false;
	_mm256_storeu_si256((void *)first, firsts);
	_mm256_storeu_si256((void *)end, ends);
	for (unsigned k = 0; k < LANES; k++) {
		uint32_t count = p->r->n.counts[keys[k]];
		struct bounds cells = { (uint32_t)first[k], (uint32_t)end[k] };

		if (count > n / 2)
			cells = (struct bounds){ asked.first - cells.first, asked.end - cells.end };
		chunk_part_put_cells(p, keys[k], count, cells, range);
	}
	return true;
}

/* Values of keys that are all coded as stars, or all as bars. */
LANES_INLINE bool chunk_lanes_sum_kind(struct chunk_part *p, struct chunk_streams *s, uint32_t i,
	enum chunk_lanes_kind kind, enum range range)
{
	const uint32_t *keys = p->r->streams->key_order.keys + i;
	struct chunk_lanes l = { 0 };
	int64_t n[LANES], coded[LANES], parameter[LANES], first[LANES], end[LANES], rest[LANES];
	__m256i firsts, ends = _mm256_setzero_si256();

	for (unsigned k = 0; k < LANES; k++) {
		int64_t cells = p->r->n.counts[keys[k]];

		rest[k] = (int64_t)p->r->n.rests[keys[k]];
		n[k] = kind == LANES_STARS ? cells : rest[k] + 1;
		coded[k] = kind == LANES_STARS ? rest[k] : cells - 1;
		if (rest[k] >= QUICK_REST || (kind == LANES_STARS) != (rest[k] < cells))
			return false;
		parameter[k] = chunk_bits_subset_parameter(
			(uint64_t)(cells + rest[k] - 1), (uint64_t)coded[k]);
		end[k] = p->cells[keys[k]].end;
		first[k] = range == RANGE_HEAD ? end[k] : p->cells[keys[k]].first;
	}
	l.n = _mm256_loadu_si256((const void *)n);
	l.coded = _mm256_loadu_si256((const void *)coded);
	l.parameter = _mm256_loadu_si256((const void *)parameter);
	l.first = _mm256_loadu_si256((const void *)first);
	l.end = _mm256_loadu_si256((const void *)end);
	l.most = (uint32_t)coded[LANES - 1];
	if (!chunk_lanes_count(s, i % STREAMS, kind, &l, range == RANGE_INSIDE, &firsts, &ends))
		return false;
	if (range == RANGE_TAIL)
		firsts = _mm256_sub_epi64(_mm256_loadu_si256((const void *)rest), firsts);
	if (range == RANGE_INSIDE)
		firsts = _mm256_sub_epi64(ends, firsts);
	_mm256_storeu_si256((void *)first, firsts);
	for (unsigned k = 0; k < LANES; k++)
		p->sums[keys[k]] += (uint64_t)first[k];
	return true;
}

LANES_INLINE bool chunk_lanes_sum_keys(
	struct chunk_part *p, struct chunk_streams *s, uint32_t i, enum range range)
{
	uint32_t key = p->r->streams->key_order.keys[i];

	return p->r->n.rests[key] < p->r->n.counts[key] ?
		chunk_lanes_sum_kind(p, s, i, LANES_STARS, range) :
		chunk_lanes_sum_kind(p, s, i, LANES_BARS, range);
}

/* Keys that do not fit lanes are read one by one. */
LANES_INLINE bool chunk_lanes_sum_range(struct chunk_part *p, enum range range)
{
	struct chunk_streams places = p->r->places_streams, values = p->r->bits_streams;
	struct chunk_order *o = &p->r->streams->key_order;
	struct bounds asked = chunk_part_asked(p->rows, range);
	const uint16_t *counts = p->r->n.counts;
	uint32_t i, until;

	chunk_part_order_places(p);
	for (i = 0; i < o->n; i = until) {
		until = o->n - i < LANES ? o->n : i + LANES;
		if (o->n - i >= LANES &&
			(counts[o->keys[i]] == counts[o->keys[i + LANES - 1]] ?
					chunk_lanes_find(p, &places, i, asked, range) :
					chunk_lanes_find_mixed(p, &places, i, asked, range)))
			continue;
		for (uint32_t k = i; k < until; k++)
			if (!chunk_part_find_key(p, &places, k, asked, range))
				return false;
	}
	chunk_part_order_values(p);
	for (i = 0; i < o->n; i = until) {
		until = o->n - i < LANES ? o->n : i + LANES;
		if (o->n - i >= LANES && chunk_lanes_sum_keys(p, &values, i, range))
			continue;
		for (uint32_t k = i; k < until; k++)
			if (!chunk_part_sum_key(p, &values, k, range))
				return false;
	}
	return chunk_streams_done(&places) && chunk_streams_done(&values);
}

__attribute__((target("avx2,bmi,bmi2"))) static bool chunk_lanes_sum_all(struct chunk_part *p)
{
	return p->rows.first == 0       ? chunk_lanes_sum_range(p, RANGE_HEAD) :
		p->rows.end == p->r->rows_n ? chunk_lanes_sum_range(p, RANGE_TAIL) :
									  chunk_lanes_sum_range(p, RANGE_INSIDE);
}

bool chunk_lanes_are_there(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
		__builtin_cpu_supports("bmi2");
}

bool chunk_lanes_sum(struct chunk_part *p)
{
	return chunk_lanes_sum_all(p);
}
#else
bool chunk_lanes_are_there(void)
{
	return false;
}

bool chunk_lanes_sum(struct chunk_part *p)
{
	(void)p;
	return false;
}
#endif
