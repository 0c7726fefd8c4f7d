#include <assert.h>
#include <endian.h>
#include <string.h>

#include "tsdb/columns/row.h"

/*
 * Narrow: how many bytes a number of each list takes (0: all are 0), then the lists: stacks, label
 * sets, columns. Numbers are little-endian, the lowest bytes of each; behind the last list are
 * bytes that do not matter, so that each number is read and written as eight. Most are small: a row
 * takes about a third of its arrays, and both ways cost little more than copying.
 */
#define IDS 2u /* lists of ids, before the columns */
#define BEHIND 8u

/* Bytes that hold every one of them, sign included. */
static unsigned row_narrow_width_of(const int64_t *values, uint32_t n)
{
	uint64_t any = 0, bits = 0;

	for (uint32_t i = 0; i < n; i++) {
		any |= (uint64_t)values[i];
		bits |= (uint64_t)(values[i] ^ values[i] >> 63) << 1;
	}
	if (!any)
		return 0;
	return bits ? (71 - (unsigned)__builtin_clzll(bits)) / 8 : 1;
}

static unsigned row_narrow_width_of_ids(const uint32_t *values, uint32_t n)
{
	uint32_t any = 0;

	for (uint32_t i = 0; values && i < n; i++)
		any |= values[i];
	return any ? (39 - (unsigned)__builtin_clz(any)) / 8 : 0;
}

size_t row_narrow_bytes(const struct row *r, struct row_widths *widths)
{
	size_t each;

	assert(!r->narrow && r->columns_n <= ROW_COLUMNS_MAX);
	widths->of[0] = (unsigned char)row_narrow_width_of_ids(r->stacks, r->n);
	widths->of[1] = (unsigned char)row_narrow_width_of_ids(r->label_sets, r->n);
	each = widths->of[0] + widths->of[1];
	for (uint32_t c = 0; c < r->columns_n; c++) {
		widths->of[IDS + c] = (unsigned char)row_narrow_width_of(
			r->values + (size_t)c * r->n, r->n);
		each += widths->of[IDS + c];
	}
	return IDS + r->columns_n + each * r->n + BEHIND;
}

static unsigned char *row_narrow_put(unsigned char *at, uint64_t value, unsigned width)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
	return at + width;
}

static unsigned char *row_narrow_put_ids(
	unsigned char *at, const uint32_t *values, uint32_t n, unsigned width)
{
	for (uint32_t i = 0; i < n && width; i++)
		at = row_narrow_put(at, values[i], width);
	return at;
}

void row_narrow(const struct row *r, const struct row_widths *widths, unsigned char *to)
{
	unsigned char *at = to + IDS + r->columns_n;

	memcpy(to, widths->of, IDS + r->columns_n);
	at = row_narrow_put_ids(at, r->stacks, r->n, to[0]);
	at = row_narrow_put_ids(at, r->label_sets, r->n, to[1]);
	for (uint32_t c = 0; c < r->columns_n; c++) {
		const int64_t *v = r->values + (size_t)c * r->n;
		unsigned width = to[IDS + c];

		for (uint32_t i = 0; i < r->n && width; i++)
			at = row_narrow_put(at, (uint64_t)v[i], width);
	}
}

static const unsigned char *row_narrow_list_of(const struct row *r, uint32_t list)
{
	const unsigned char *at = r->narrow + IDS + r->columns_n;

	for (uint32_t i = 0; i < list; i++)
		at += (size_t)r->narrow[i] * r->n;
	return at;
}

/* The lowest `width` bytes, in the upper ones of the result. */
static inline uint64_t row_narrow_take(const unsigned char *at, unsigned width)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return le64toh(v) << (64 - 8 * width);
}

static inline __attribute__((always_inline)) void row_narrow_widen_by(
	const unsigned char *at, uint32_t n, unsigned width, int64_t *room)
{
	for (uint32_t i = 0; i < n; i++, at += width)
		room[i] = (int64_t)row_narrow_take(at, width) >> (64 - 8 * width);
}

/* Each usual width has a loop of its own, whose shifts are constants. */
static void row_narrow_widen(const unsigned char *at, uint32_t n, unsigned width, int64_t *room)
{
	switch (width) {
	case 0:
		memset(room, 0, n * sizeof(*room));
		return;
	case 1:
		row_narrow_widen_by(at, n, 1, room);
		return;
	case 2:
		row_narrow_widen_by(at, n, 2, room);
		return;
	case 3:
		row_narrow_widen_by(at, n, 3, room);
		return;
	case 4:
		row_narrow_widen_by(at, n, 4, room);
		return;
	default:
		row_narrow_widen_by(at, n, width, room);
	}
}

const int64_t *row_column(const struct row *r, uint32_t column, int64_t *room)
{
	assert(column < r->columns_n);
	if (!r->narrow)
		return r->values + (size_t)column * r->n;
	row_narrow_widen(row_narrow_list_of(r, IDS + column), r->n, r->narrow[IDS + column], room);
	return room;
}

int64_t row_value(const struct row *r, uint32_t column, uint32_t entry)
{
	unsigned width;

	assert(column < r->columns_n && entry < r->n);
	if (!r->narrow)
		return r->values[(size_t)column * r->n + entry];
	if (!(width = r->narrow[IDS + column]))
		return 0;
	return (int64_t)row_narrow_take(
			   row_narrow_list_of(r, IDS + column) + (size_t)entry * width, width) >>
		(64 - 8 * width);
}

void row_entry_ids(const struct row *r, uint64_t *room)
{
	const unsigned char *stacks, *sets;
	unsigned width, sets_width;

	if (!r->narrow) {
		for (uint32_t i = 0; i < r->n; i++)
			room[i] = (uint64_t)r->stacks[i] << 32 | (r->label_sets ? r->label_sets[i] : 0);
		return;
	}
	width = r->narrow[0];
	sets_width = r->narrow[1];
	stacks = row_narrow_list_of(r, 0);
	sets = row_narrow_list_of(r, 1);
	memset(room, 0, r->n * sizeof(*room));
	for (uint32_t i = 0; i < r->n && width; i++, stacks += width)
		room[i] = row_narrow_take(stacks, width) >> (64 - 8 * width) << 32;
	for (uint32_t i = 0; i < r->n && sets_width; i++, sets += sets_width)
		room[i] |= row_narrow_take(sets, sets_width) >> (64 - 8 * sets_width);
}
