#include <stdlib.h>

#include "tsdb/columns/chunk_internal.h"

/*
 * Finds the units of scaled columns (chunk_internal.h). The running sums of a key's cells (of
 * levels: its levels), over the number of events so far, lie on a line that was cut to integers:
 * sum <= phase + number x unit < sum + 1. The units that allow a phase are a range, as constraints
 * are linear; a slot's unit is the one of fewest bits in all ranges of its keys. Keys that do not
 * fit have a separate unit, or none.
 */

#define UNIT_ONE (UINT64_C(1) << UNIT_BITS)
#define SUM_MAX (INT64_C(1) << 60)
#define GUESS_MIN 8 /* smaller units cannot be distinguished from values by rounding */

bool scale_open(struct chunk_scale *s, uint32_t keys_n)
{
	size_t n = (size_t)keys_n + 1;

	s->units = malloc(n * sizeof(*s->units));
	s->low = malloc(n * sizeof(*s->low));
	s->high = malloc(n * sizeof(*s->high));
	s->guess = malloc(n * sizeof(*s->guess));
	return s->units && s->low && s->high && s->guess;
}

void scale_close(struct chunk_scale *s)
{
	free(s->units);
	free(s->low);
	free(s->high);
	free(s->guess);
	buf_release(&s->codes);
	buf_release(&s->phases.bytes);
}

/* ---- lines ---- */

/* What a point's sum is above its number times the unit. */
static inline __int128 chunk_scale_over_line(const struct chunk_scale *s, uint32_t i, uint64_t unit)
{
	return ((__int128)s->sums[i] << UNIT_BITS) - (__int128)s->numbers[i] * (__int128)unit;
}

/* How far a unit is from one that fits: that of the point, or of the two points, that it fits
 * least. */
struct chunk_scale_misfit {
	__int128 over; /* above what is allowed */
	int64_t slope; /* so much less for each unit more; 0: no unit will do */
};

static inline void chunk_scale_note_misfit(
	struct chunk_scale_misfit *m, __int128 over, int64_t slope)
{
	if (over > m->over)
		*m = (struct chunk_scale_misfit){ over, slope };
}

/* Phases that a unit allows. */
static bool chunk_scale_fits(const struct chunk_scale *s, uint64_t unit, uint64_t *low,
	uint64_t *high, struct chunk_scale_misfit *misfit)
{
	__int128 from = 0, to = (__int128)UNIT_ONE - 1;
	int64_t from_n = 0, to_n = 0;

	*misfit = (struct chunk_scale_misfit){ 0 };
	for (uint32_t i = s->anew; i < s->n; i++) { /* no phase */
		__int128 over = chunk_scale_over_line(s, i, unit);

		chunk_scale_note_misfit(misfit, over, s->numbers[i]);
		chunk_scale_note_misfit(misfit, 1 - (__int128)UNIT_ONE - over, -s->numbers[i]);
	}
	for (uint32_t i = 0; i < s->n && i < s->anew; i++) {
		__int128 over = chunk_scale_over_line(s, i, unit);

		if (over > from) {
			from = over;
			from_n = s->numbers[i];
		}
		over += (__int128)UNIT_ONE - 1;
		if (over < to) {
			to = over;
			to_n = s->numbers[i];
		}
	}
	chunk_scale_note_misfit(misfit, from - to, from_n - to_n);
	*low = (uint64_t)from;
	*high = (uint64_t)to;
	return misfit->over <= 0;
}

/*
 * The unit nearest to *unit that fits, up to `last`, which is above it or below it. Each step goes
 * to where the worst misfit ends. What is left of a misfit is convex in the unit, so no step goes
 * too far, and each makes the misfit or its slope half of what it was, at least. False: there is
 * none.
 */
static bool chunk_scale_nearest(const struct chunk_scale *s, uint64_t *unit, uint64_t last)
{
	const bool up = last >= *unit;
	struct chunk_scale_misfit m;
	uint64_t p, q;

	while (!chunk_scale_fits(s, *unit, &p, &q, &m)) {
		int64_t slope = up ? m.slope : -m.slope;
		__int128 by;

		if (slope <= 0)
			return false;
		by = (m.over + slope - 1) / slope;
		if (by > (up ? last - *unit : *unit - last))
			return false;
		*unit = up ? *unit + (uint64_t)by : *unit - (uint64_t)by;
	}
	return true;
}

/* The range [*low, *high] to the units in it that fit. */
static bool chunk_scale_narrow(const struct chunk_scale *s, uint64_t *low, uint64_t *high)
{
	uint64_t from = *low, to = *high;

	if (!chunk_scale_nearest(s, &from, to) || !chunk_scale_nearest(s, &to, from))
		return false;
	*low = from;
	*high = to;
	return true;
}

/* The number in [low, high] with the most zeros at its end. */
static uint64_t chunk_scale_simplest(uint64_t low, uint64_t high)
{
	unsigned bits;

	if (low == 0 || low >= high)
		return low;
	/* Below the highest bit in which low - 1 and high differ, all can be 0. */
	bits = bit_length((low - 1) ^ high) - 1;
	return high >> bits << bits;
}

/* ---- points ---- */

/* The points of the cells [from, to) of a key, behind those that s has. True: numbers are too
 * large, or negative. Most cells have no number, or the level of the one before. */
static inline __attribute__((always_inline)) bool chunk_scale_take_run(struct chunk_scale *s,
	const struct column_in *in, const int64_t *numbers, size_t from, size_t to, bool levels)
{
	uint64_t sum = 0, number = 0, bad = 0;
	uint32_t at = s->n;

	for (size_t i = from; i < to; i++) {
		uint64_t v = (uint64_t)in->values[i], n = (uint64_t)numbers[i];

		if (n == 0 || (levels && v == sum && n == number))
			continue;
		sum = levels ? v : sum + v;
		number = levels ? n : number + n;
		bad |= (v > SUM_MAX) | (n > SUM_MAX) | (sum > SUM_MAX) | (number > SUM_MAX);
		s->rows[at] = in->rows[i];
		s->sums[at] = (int64_t)sum;
		s->numbers[at++] = (int64_t)number;
	}
	s->n = at;
	return bad;
}

/* Takes the points of a key's cells. False: no unit can be found from them. */
static bool chunk_scale_take_points(struct chunk_scale *s, const struct column_in *in,
	const int64_t *numbers, uint32_t key, bool levels)
{
	size_t from = in->starts[key], to = in->starts[key + 1], anew = to;
	bool bad;

	s->n = 0;
	s->anew = UINT32_MAX;
	if (levels)
		return !chunk_scale_take_run(s, in, numbers, from, to, true) && s->n;
	while (in->anew && anew > from && in->rows[anew - 1] >= in->anew)
		anew--;
	bad = chunk_scale_take_run(s, in, numbers, from, anew, false);
	if (anew < to) {
		s->anew = s->n;
		bad |= chunk_scale_take_run(s, in, numbers, anew, to, false);
	}
	return !bad && s->n;
}

static uint64_t chunk_scale_rounded(uint64_t value, uint64_t by)
{
	return (value + by / 2) / by;
}

/* The smallest cell, and of levels the smallest difference too, as 1 is the smallest number. */
static uint64_t chunk_scale_smallest(const struct column_in *in, uint32_t key, bool levels)
{
	uint64_t least = UINT64_MAX, was = 0, v, by;

	for (size_t i = in->starts[key]; i < in->starts[key + 1]; i++) {
		if (in->values[i] == 0)
			continue;
		if (in->values[i] < 0)
			return 0;
		v = (uint64_t)in->values[i];
		least = v < least ? v : least;
		by = v > was ? v - was : was - v;
		if (levels && was && by && by < least)
			least = by;
		was = v;
	}
	return least;
}

static void chunk_scale_number_cells(const struct column_in *in, uint32_t key, uint64_t guess)
{
	int64_t was = 0, number = 0; /* a level stays: its number is the one before */

	for (size_t i = in->starts[key]; i < in->starts[key + 1]; i++) {
		int64_t v = in->values[i];

		if (v != was)
			number = guess == 0 || v <= 0 || v > SUM_MAX ?
				v :
				(int64_t)chunk_scale_rounded((uint64_t)v, guess);
		in->numbers[i] = number;
		was = v;
	}
}

/* Numbers of all cells. Small ones are sure, and tell the unit well enough for the larger. */
static bool chunk_scale_guess_numbers(
	struct chunk_scale *s, const struct column_in *in, bool levels)
{
	uint64_t *numbers = s->low, *sums = s->high, v;
	bool any = false;

	for (uint32_t k = 0; k < in->keys_n; k++) {
		s->guess[k] = UINT64_MAX;
		numbers[k] = sums[k] = 0;
	}
	for (uint32_t k = 0; k < in->keys_n; k++) {
		v = chunk_scale_smallest(in, k, levels);
		if (v < s->guess[in->slots[k]])
			s->guess[in->slots[k]] = v;
	}
	for (uint32_t k = 0; k < in->keys_n; k++) {
		uint32_t slot = in->slots[k];
		uint64_t guess = s->guess[slot];

		if (guess < GUESS_MIN || guess == UINT64_MAX)
			continue;
		for (size_t i = in->starts[k]; i < in->starts[k + 1]; i++) {
			if (in->values[i] == 0)
				continue;
			if (i == in->starts[k] || in->values[i] != in->values[i - 1])
				v = chunk_scale_rounded((uint64_t)in->values[i], guess);
			if (v <= guess / 8 && sums[slot] < (uint64_t)SUM_MAX) {
				numbers[slot] += v;
				sums[slot] += (uint64_t)in->values[i];
			}
		}
	}
	for (uint32_t k = 0; k < in->keys_n; k++) {
		uint32_t slot = in->slots[k];

		v = numbers[slot] ? chunk_scale_rounded(sums[slot], numbers[slot]) : 0;
		s->guess[k] = slot == k ? v : s->guess[slot];
		chunk_scale_number_cells(in, k, s->guess[k]);
		any |= v > 1;
	}
	return any;
}

/* ---- units ---- */

static bool chunk_scale_set_unit(struct chunk_scale *s, uint32_t key, uint64_t unit)
{
	struct chunk_scale_misfit misfit;
	uint64_t low, high;

	if (unit == 0 || unit > UNIT_MAX || !chunk_scale_fits(s, unit, &low, &high, &misfit))
		return false;
	s->units[key] = (struct key_unit){ unit, chunk_scale_simplest(low, high) };
	return true;
}

/* A key that its slot's unit does not fit. */
static bool chunk_scale_set_own(
	struct chunk_scale *s, const struct column_in *in, uint32_t key, bool levels)
{
	uint64_t low = 1, high = UNIT_MAX;
	const int64_t *numbers = in->others;

	if (!numbers) {
		uint64_t guess = chunk_scale_smallest(in, key, levels);

		if (guess < GUESS_MIN || guess == UINT64_MAX)
			return false;
		chunk_scale_number_cells(in, key, guess);
		numbers = in->numbers;
	}
	return chunk_scale_take_points(s, in, numbers, key, levels) &&
		chunk_scale_narrow(s, &low, &high) &&
		chunk_scale_set_unit(s, key, chunk_scale_simplest(low, high));
}

/* The ranges of the slots by all of their keys. */
static void chunk_scale_find_ranges(
	struct chunk_scale *s, const struct column_in *in, const int64_t *numbers, bool levels)
{
	for (uint32_t k = 0; k < in->keys_n; k++) {
		s->low[k] = 1;
		s->high[k] = UNIT_MAX;
	}
	for (uint32_t k = 0; k < in->keys_n; k++)
		if (chunk_scale_take_points(s, in, numbers, k, levels))
			(void)chunk_scale_narrow(s, &s->low[in->slots[k]], &s->high[in->slots[k]]);
}

/* ---- where a process began anew ---- */

/*
 * A key whose process began anew is soon off its line: at the row itself, or at one of its next
 * points. So each row at which keys leave their lines is tried, those of most keys first.
 */
#define BREAK_KEYS 64u /* that are asked, evenly spread */
#define BREAK_KEYS_MORE 256u /* once one of them is off its line */
#define BREAK_ROWS 16u
/* So many keys that were off their lines, and are on them with the break, leave no doubt. */
#define BREAK_CLEAR 8u

/* The row of the first point that is not on a line with those before; 0: all are. */
static uint32_t chunk_scale_break_of(struct chunk_scale *s)
{
	uint32_t n = s->n, few = 1, many = n;
	uint64_t low = 1, high = UNIT_MAX;

	while (many - few > 1) { /* few are on a line, many are not */
		low = 1;
		high = UNIT_MAX;
		s->n = few + (many - few) / 2;
		if (chunk_scale_narrow(s, &low, &high))
			few = s->n;
		else
			many = s->n;
	}
	s->n = n;
	return s->rows[few];
}

/* Keys that are on no line; votes, unless NULL, by the row at which each leaves its line. */
static uint32_t chunk_scale_count_broken(
	struct chunk_scale *s, const struct column_in *in, uint32_t keys, uint16_t *votes)
{
	uint32_t step = in->keys_n / keys + 1, broken = 0;

	for (uint32_t k = 0; k < in->keys_n; k += step) {
		uint64_t low = 1, high = UNIT_MAX;

		if (!chunk_scale_take_points(s, in, in->numbers, k, false) || s->n < 2 ||
			chunk_scale_narrow(s, &low, &high))
			continue;
		broken++;
		if (votes)
			votes[chunk_scale_break_of(s)]++;
	}
	return broken;
}

static uint32_t chunk_scale_take_most_voted(uint16_t *votes, uint32_t n)
{
	uint32_t most = 0;

	for (uint32_t row = 1; row < n; row++)
		if (votes[row] > votes[most])
			most = row;
	votes[most] = 0;
	return most;
}

static void chunk_scale_find_break(struct chunk_scale *s, const struct column_in *in)
{
	uint32_t without = chunk_scale_count_broken(s, in, BREAK_KEYS, NULL), least = without, broken;
	uint32_t row;
	uint16_t votes[CHUNK_ROWS_MAX] = { 0 };
	struct column_in tried = *in;

	if (!least)
		return;
	(void)chunk_scale_count_broken(s, in, BREAK_KEYS_MORE, votes);
	for (uint32_t i = 0; i < BREAK_ROWS && (row = chunk_scale_take_most_voted(votes, in->rows_n));
		 i++) {
		tried.anew = row;
		broken = chunk_scale_count_broken(s, &tried, BREAK_KEYS, NULL);
		if (broken < least) {
			least = broken;
			s->broken = row;
		}
	}
	s->clear = least == 0 && without >= BREAK_CLEAR;
}

static void chunk_scale_put_phase(struct bit_out *o, uint64_t phase)
{
	unsigned bits = phase ? UNIT_BITS - (unsigned)__builtin_ctzll(phase) : 0;

	bits_put(o, UINT64_C(1) << bits, bits + 1);
	if (bits)
		bits_put(o, phase >> (UNIT_BITS - bits) >> 1, bits - 1);
}

/* Units of keys as bytes; last by slot is s->low. */
static void chunk_scale_put_units(
	struct chunk_scale *s, const struct column_in *in, const int64_t *numbers)
{
	buf_clear(&s->codes);
	bits_clear_out(&s->phases);
	memset(s->low, 0, in->keys_n * sizeof(*s->low));
	for (uint32_t k = 0; k < in->keys_n; k++) {
		uint64_t unit = s->units[k].unit, *last = &s->low[in->slots[k]];
		bool any = false;
		unsigned shift;

		for (size_t i = in->starts[k]; i < in->starts[k + 1] && !any; i++)
			any = numbers[i] != 0;
		if (!any)
			continue;
		if (unit == 0) {
			buf_add_varint(&s->codes, UNIT_NONE);
			continue;
		}
		if (unit == *last) {
			buf_add_varint(&s->codes, UNIT_AS_BEFORE);
		} else {
			shift = (unsigned)__builtin_ctzll(unit);
			buf_add_varint(&s->codes, UNIT_SHIFTED + shift);
			buf_add_varint(&s->codes, unit >> shift);
			*last = unit;
		}
		chunk_scale_put_phase(&s->phases, s->units[k].phase);
	}
	bits_finish(&s->phases);
}

bool scale_own(struct chunk_scale *s, const struct column_in *in, bool levels)
{
	uint32_t scaled = 0;
	struct column_in own = *in;

	own.others = NULL;
	if (!chunk_scale_guess_numbers(s, in, levels))
		return false;
	if (!levels && !in->anew)
		chunk_scale_find_break(s, in);
	chunk_scale_find_ranges(s, in, in->numbers, levels);
	for (uint32_t k = 0; k < in->keys_n; k++) {
		uint64_t unit = chunk_scale_simplest(s->low[in->slots[k]], s->high[in->slots[k]]);

		s->units[k] = (struct key_unit){ 0 };
		if (!(chunk_scale_take_points(s, in, in->numbers, k, levels) &&
				chunk_scale_set_unit(s, k, unit)) &&
			!chunk_scale_set_own(s, &own, k, levels))
			chunk_scale_number_cells(in, k, 0);
		/* Every cell has a number other than 0, or the key has none. */
		for (size_t i = in->starts[k]; i < in->starts[k + 1]; i++)
			if (in->values[i] && !in->numbers[i]) {
				s->units[k].unit = 0;
				chunk_scale_number_cells(in, k, 0);
				break;
			}
		scaled += s->units[k].unit != 0;
	}
	chunk_scale_put_units(s, in, in->numbers);
	return scaled > in->keys_n / 4;
}

bool scale_like(struct chunk_scale *s, const struct column_in *in, bool levels)
{
	for (size_t i = 0; i < in->starts[in->keys_n]; i++)
		if (in->values[i] && !in->others[i])
			return false;
	chunk_scale_find_ranges(s, in, in->others, levels);
	for (uint32_t k = 0; k < in->keys_n; k++) {
		uint64_t unit = chunk_scale_simplest(s->low[in->slots[k]], s->high[in->slots[k]]);

		s->units[k] = (struct key_unit){ 0 };
		if (!(chunk_scale_take_points(s, in, in->others, k, levels) &&
				chunk_scale_set_unit(s, k, unit)))
			(void)chunk_scale_set_own(s, in, k, levels);
	}
	chunk_scale_put_units(s, in, in->others);
	return true;
}
