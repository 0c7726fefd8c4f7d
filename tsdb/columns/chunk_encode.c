#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/integer.h"
#include "tsdb/columns/chunk_keys.h"
#include "tsdb/columns/coding.h"

/*
 * Layout. (Numbers are varints, z zigzag; a section is its length, its length as stored, which is
 * smaller where it is compressed by zstd, and the stored bytes; an empty one is a 0.)
 *
 *   version (byte), flags (byte; 1: label sets, 2: a process began anew), interval, rows, columns,
 *   keys, largest stack id, largest label set id, with flag 2 the row at which it began,
 *   section heads, section stacks, section label sets (with its flag only),
 *   each column, and as one more the entries all of whose values are 0, with value 1.
 *
 * A key is a (stack, label set) of any row (chunk_keys.h). Stacks are gaps; label sets gaps to the
 * one before on the same stack, else absolute.
 *
 * Heads are arrays of all rows, one after the other: z of ts minus (the ts before + interval), the
 * first absolute; z ts - time_nanos; z difference to the row before of duration, of period, of
 * header, of the number of entries; then of each column that has cells of its own, in the order
 * of the columns, z difference of the total over the factor.
 *
 * A column: its number, coding (byte, coding.h); unless zero, factor; the number of the
 * column it refers to, if its coding refers to one, which comes before it; its sections.
 * Of two columns the larger comes first if that helps.
 * With many keys, places and counted values are dealt out to four streams (chunk_bits.h).
 *
 * Why. A scrape says which stacks were seen and how often. Turned by 90 degrees, a stack is named
 * once per chunk, and a sample costs few bits: the stack's rows by its frequency, its values by its
 * mean. Numbers and sums of a key come first, as bytes, so that zstd's Huffman code finds their
 * distribution and so that they are read fast: a chunk that is wholly inside a window is added by
 * them alone. FORMAT.md lists the other layouts that were tried.
 */

#define NO_COLUMN UINT32_MAX

struct chunk_encode_encoding {
	const int64_t *ts_ns;
	const struct row *rows;
	uint32_t rows_n, columns_n;
	struct chunk_keys keys;
	int64_t *values; /* of cells, of one column, divided by its factor */
	int64_t totals[CHUNK_ROWS_MAX]; /* of rows, of that column */
	unsigned char *seen; /* of cells: 1 where a column so far is not 0 */
	/* By which the cells are coded, of it and of the last column before it that stores cells. */
	int64_t *numbers, *others_numbers;
	uint32_t *slots; /* of keys: first of their label set */
	uint32_t anew; /* row at which the process began anew; 0: at none */
	uint32_t broken; /* where it may have, as seen from the columns */
	bool clear; /* it has; then nothing was written yet */
	uint32_t others_of;
	uint64_t others_factor;
	struct column_done done[ROW_COLUMNS_MAX + 1];
	int64_t *room, *other_room; /* for a column of one row */
	struct buf heads, columns;
};

/* ---- keys ---- */

static bool chunk_encode_list_slots(struct chunk_encode_encoding *e)
{
	uint32_t n = e->keys.n, *sets = malloc(((size_t)n + 1) * sizeof(*sets));
	uint32_t *by_set = malloc(slots_cap(n) * sizeof(*by_set));
	bool ok;

	e->slots = malloc(((size_t)n + 1) * sizeof(*e->slots));
	ok = e->slots && sets && by_set;
	for (uint32_t k = 0; ok && k < n; k++)
		sets[k] = (uint32_t)e->keys.ids[k];
	if (ok)
		chunk_slots_find(e->keys.labels ? sets : NULL, n, by_set, e->slots);
	free(sets);
	free(by_set);
	return ok;
}

static void chunk_encode_put_ids(
	const struct chunk_encode_encoding *e, struct buf *stacks, struct buf *sets)
{
	uint32_t before = 0, set = 0;

	for (uint32_t k = 0; k < e->keys.n; k++) {
		uint32_t stack = (uint32_t)(e->keys.ids[k] >> 32), label_set = (uint32_t)e->keys.ids[k];

		if (k == 0 || stack != before)
			set = 0;
		buf_add_varint(stacks, stack - before);
		if (e->keys.labels)
			buf_add_varint(sets, label_set - set);
		before = stack;
		set = label_set;
	}
}

/* ---- columns ---- */

/* False: the sum does not fit. */
static bool chunk_encode_total(const int64_t *values, uint32_t n, int64_t *out)
{
	uint64_t sum = 0, bits = 0;
	__int128 exact = 0;

	for (uint32_t i = 0; i < n; i++) {
		sum += (uint64_t)values[i];
		bits |= (uint64_t)(values[i] ^ values[i] >> 63);
	}
	*out = (int64_t)sum;
	if (n == 0 || bits < (uint64_t)INT64_MAX / n)
		return true;
	for (uint32_t i = 0; i < n; i++)
		exact += values[i];
	return exact == (int64_t)exact;
}

/* Values of a column's cells, as they are, and its totals. False: a row's total does not fit. */
static bool chunk_encode_gather(struct chunk_encode_encoding *e, uint32_t column)
{
	const uint32_t *place = e->keys.places;

	for (uint32_t r = 0; r < e->rows_n; r++) {
		const uint32_t n = e->rows[r].n;
		const int64_t *v = row_column(&e->rows[r], column, e->room);

		if (!chunk_encode_total(v, n, &e->totals[r]))
			return false;
		for (uint32_t i = 0; i < n; i++)
			e->values[place[i]] = v[i];
		place += n;
	}
	return true;
}

/* 1 where all columns are 0. False: nowhere. */
static bool chunk_encode_gather_zeros(struct chunk_encode_encoding *e)
{
	bool any = false;

	for (size_t i = 0; i < e->keys.cells_n; i++) {
		e->values[i] = !e->seen[i];
		any |= !e->seen[i];
	}
	return any;
}

static uint64_t chunk_encode_factor_of(const int64_t *values, size_t n)
{
	uint64_t factor = 0;

	for (size_t i = 0; i < n && factor != 1; i++)
		if (factor == 0 || integer_magnitude64(values[i]) % factor)
			factor = integer_gcd64(integer_magnitude64(values[i]), factor);
	return factor;
}

static int64_t chunk_encode_divided(int64_t value, uint64_t factor)
{
	return value < 0 ? (int64_t) - (integer_magnitude64(value) / factor) :
					   (int64_t)((uint64_t)value / factor);
}

static void chunk_encode_divide(int64_t *values, size_t n, uint64_t factor)
{
	if (factor > 1 && factor <= UINT32_MAX) {
		/* Most are: a division of 32 bits where the values allows it costs half. */
		for (size_t i = 0; i < n; i++)
			values[i] = values[i] >= 0 && values[i] <= UINT32_MAX ?
				(int64_t)((uint32_t)values[i] / (uint32_t)factor) :
				chunk_encode_divided(values[i], factor);
	} else if (factor > 1) {
		for (size_t i = 0; i < n; i++)
			values[i] = chunk_encode_divided(values[i], factor);
	}
}

/* Whether these values are the other column's, divided by its factor, times *factor; it is found
 * from the first that is not 0. *bits: all of them, or'ed. */
static bool chunk_encode_is_multiple(const int64_t *values, const int64_t *others, uint32_t n,
	uint64_t others_factor, uint64_t *factor, uint64_t *bits)
{
	for (uint32_t i = 0; i < n; i++) {
		int64_t v = values[i], other = others[i];

		if (*factor == 0 && (v || other)) {
			if (!v || !other || (v < 0) != (other < 0))
				return false;
			*factor = integer_magnitude64(v) / (integer_magnitude64(other) / others_factor);
		}
		if ((__int128)other * *factor != (__int128)v * others_factor)
			return false;
		*bits |= (uint64_t)v;
	}
	return true;
}

/*
 * The factor that turns the other column into this one; 0: there is none, or a row's total does not
 * fit. Row by row, as most columns differ in the first one. Only columns whose first cell is
 * positive: others are seldom multiples.
 */
static uint64_t chunk_encode_factor_to_others(struct chunk_encode_encoding *e, uint32_t column)
{
	uint64_t factor = 0, bits = 0;
	size_t i = 0;

	for (uint32_t r = 0; r < e->rows_n; r++) {
		const int64_t *v = row_column(&e->rows[r], column, e->room);

		if (!chunk_encode_is_multiple(v, row_column(&e->rows[r], e->others_of, e->other_room),
				e->rows[r].n, e->others_factor, &factor, &bits) ||
			!chunk_encode_total(v, e->rows[r].n, &e->totals[r]))
			return 0;
	}
	if (bits >> 63 == 0)
		return factor;
	if (!chunk_encode_gather(e, column))
		return 0;
	while (i < e->keys.cells_n && e->values[i] == 0)
		i++;
	return i < e->keys.cells_n && e->values[i] > 0 ? factor : 0;
}

static void chunk_encode_put_totals(struct chunk_encode_encoding *e, uint64_t factor)
{
	int64_t before = 0, total;

	for (uint32_t r = 0; r < e->rows_n; r++) {
		total = chunk_encode_divided(e->totals[r], factor);
		buf_add_varint(&e->heads, str_zigzag((int64_t)((uint64_t)total - (uint64_t)before)));
		before = total;
	}
}

static void chunk_encode_swap(int64_t **a, int64_t **b)
{
	int64_t *swap = *a;

	*a = *b;
	*b = swap;
}

/* What a later column may be like: numbers where the coding found them, else values. A third column
 * is compared with the values of a column that is coded like another. */
static void chunk_encode_keep_numbers(struct chunk_encode_encoding *e, const struct coding *made)
{
	if (!made || made == &coding_like || !(made->byte & COLUMN_SCALED))
		chunk_encode_swap(&e->values, &e->numbers);
	chunk_encode_swap(&e->numbers, &e->others_numbers);
}

static enum err_code chunk_encode_put_column(struct chunk_encode_encoding *e,
	struct column_encoder *encoder, uint32_t column, const enum value_kind *kinds, bool compress,
	struct err *err)
{
	struct column_in in = { .rows_n = e->rows_n,
		.keys_n = e->keys.n,
		.starts = e->keys.starts,
		.rows = e->keys.rows,
		.others = e->others_of != NO_COLUMN ? e->others_numbers : NULL,
		.others_of = e->others_of,
		.anew = e->anew,
		.slots = e->slots,
		.numbers = e->numbers,
		.levels_too = column == e->columns_n || kinds[column] == KIND_GAUGE };
	uint64_t factor = 0, multiple = 0;

	buf_add_varint(&e->columns, column);
	if (column == e->columns_n && !chunk_encode_gather_zeros(e))
		goto zero;
	if (e->others_of != NO_COLUMN && column < e->columns_n)
		multiple = chunk_encode_factor_to_others(e, column);
	if (multiple) {
		buf_add_char(&e->columns, (char)coding_multiple.byte);
		buf_add_varint(&e->columns, multiple);
		buf_add_varint(&e->columns, e->others_of);
		return ERR_OK;
	}
	if (column < e->columns_n && !chunk_encode_gather(e, column))
		return err_set(err, ERR_LIMIT, "total of column %" PRIu32 " exceeds 64 bits", column);
	factor = chunk_encode_factor_of(e->values, e->keys.cells_n);
	if (factor == 0)
		goto zero;
	if (column < e->columns_n) {
		chunk_encode_put_totals(e, factor);
		for (size_t i = 0; i < e->keys.cells_n; i++)
			e->seen[i] |= e->values[i] != 0;
	}
	chunk_encode_divide(e->values, e->keys.cells_n, factor);
	in.values = e->values;
	if (!column_encode(encoder, &in, compress, column, factor, e->done, &e->columns))
		return err_nomem(err, "chunk");
	chunk_encode_keep_numbers(e, e->done[column].coding);
	e->others_of = column;
	e->others_factor = factor;
	return ERR_OK;
zero:
	buf_add_char(&e->columns, (char)coding_zero.byte);
	return ERR_OK;
}

/* Looks a column larger than another? A multiple does not: it will cost nothing behind. */
static bool chunk_encode_is_larger(
	const struct chunk_encode_encoding *e, uint32_t column, uint32_t than)
{
	double sum = 0, than_sum = 0, x = 0, y = 0;
	bool multiple = true;

	for (uint32_t r = 0; r < e->rows_n; r++) {
		const struct row *row = &e->rows[r];

		for (uint32_t i = 0; i < row->n; i += 1 + row->n / 16) {
			double a = (double)row_value(row, column, i), b = (double)row_value(row, than, i);

			sum += a;
			than_sum += b;
			if (x == 0 && y == 0) {
				x = a;
				y = b;
			}
			multiple &= a * y == b * x;
		}
	}
	return sum > than_sum && !multiple;
}

/* Puts the larger one of each two columns first: bytes predict the number of objects better than
 * objects predict bytes. */
static void chunk_encode_order_columns(const struct chunk_encode_encoding *e, uint32_t *order)
{
	for (uint32_t c = 0; c <= e->columns_n; c++)
		order[c] = c;
	for (uint32_t c = 0; c + 1 < e->columns_n; c += 2)
		if (chunk_encode_is_larger(e, c + 1, c)) {
			order[c] = c + 1;
			order[c + 1] = c;
		}
}

/* ---- all ---- */

static void chunk_encode_put_heads(struct chunk_encode_encoding *e)
{
	uint64_t interval = e->rows_n ? (uint64_t)e->rows[0].interval_ns : 0, before = -interval;

#define DIFFERENCES(type, field) \
	for (uint32_t r = 0; r < e->rows_n; r++) { \
		type was = r ? e->rows[r - 1].field : 0; \
		buf_add_varint( \
			&e->heads, str_zigzag((int64_t)((uint64_t)e->rows[r].field - (uint64_t)was))); \
	}
	for (uint32_t r = 0; r < e->rows_n; r++) {
		uint64_t ts = (uint64_t)e->ts_ns[r];

		buf_add_varint(&e->heads, str_zigzag((int64_t)(ts - (before + interval))));
		before = ts;
	}
	for (uint32_t r = 0; r < e->rows_n; r++)
		buf_add_varint(&e->heads,
			str_zigzag((int64_t)((uint64_t)e->ts_ns[r] - (uint64_t)e->rows[r].time_nanos)));
	DIFFERENCES(int64_t, duration_nanos)
	DIFFERENCES(int64_t, period)
	DIFFERENCES(uint32_t, header)
	DIFFERENCES(uint32_t, n)
#undef DIFFERENCES
}

static enum err_code chunk_encode_all(struct chunk_encode_encoding *e, const enum value_kind *kinds,
	bool compress, struct buf *out, struct err *err)
{
	struct column_encoder *encoder = column_encoder_open(e->rows_n, e->keys.n);
	struct buf stacks = { 0 }, sets = { 0 };
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	uint32_t set_max = 0, order[ROW_COLUMNS_MAX + 1];
	enum err_code rc = encoder && zstd ? ERR_OK : err_nomem(err, "chunk");

	buf_clear(&e->heads);
	buf_clear(&e->columns);
	memset(e->seen, 0, e->keys.cells_n);
	e->others_of = NO_COLUMN;
	chunk_encode_put_heads(e);
	chunk_encode_order_columns(e, order);
	for (uint32_t i = 0; !rc && !e->clear && i <= e->columns_n; i++) {
		rc = chunk_encode_put_column(e, encoder, order[i], kinds, compress, err);
		e->clear = !rc && !e->anew && column_encoder_broken_clearly(encoder);
	}
	if (rc)
		goto done;
	e->broken = column_encoder_broken(encoder);
	if (e->clear)
		goto done;
	for (uint32_t k = 0; k < e->keys.n; k++)
		set_max = (uint32_t)e->keys.ids[k] > set_max ? (uint32_t)e->keys.ids[k] : set_max;
	chunk_encode_put_ids(e, &stacks, &sets);
	buf_add_char(out, e->keys.n < CHUNK_STREAMS_KEYS ? CHUNK_VERSION_ONE_STREAM : CHUNK_VERSION);
	buf_add_char(out, (char)((e->keys.labels ? CHUNK_LABELS : 0) | (e->anew ? CHUNK_ANEW : 0)));
	buf_add_varint(out, e->rows_n ? (uint64_t)e->rows[0].interval_ns : 0);
	buf_add_varint(out, e->rows_n);
	buf_add_varint(out, e->columns_n);
	buf_add_varint(out, e->keys.n);
	buf_add_varint(out, e->keys.n ? e->keys.ids[e->keys.n - 1] >> 32 : 0);
	buf_add_varint(out, set_max);
	if (e->anew)
		buf_add_varint(out, e->anew);
	section_put(zstd, &e->heads, compress ? PACK_REPEATED : PACK_NOT, out);
	section_put(zstd, &stacks, compress ? PACK_SMALL : PACK_NOT, out);
	if (e->keys.labels)
		section_put(zstd, &sets, compress ? PACK_SMALL : PACK_NOT, out);
	buf_add_str(out, buf_str(&e->columns));
	if (stacks.failed || sets.failed || e->heads.failed || e->columns.failed || out->failed)
		rc = err_nomem(err, "chunk");
done:
	for (uint32_t c = 0; c <= e->columns_n; c++) {
		free(e->done[c].counts);
		free(e->done[c].starts);
		buf_release(&e->done[c].places);
		e->done[c] = (struct column_done){ 0 };
	}
	buf_release(&stacks);
	buf_release(&sets);
	column_encoder_close(encoder);
	ZSTD_freeCCtx(zstd);
	return rc;
}

static bool chunk_encode_reserve_columns(struct chunk_encode_encoding *e)
{
	size_t n = e->keys.cells_n + 1, most = 0;

	for (uint32_t r = 0; r < e->rows_n; r++)
		most = e->rows[r].n > most ? e->rows[r].n : most;
	e->room = malloc((most + 1) * sizeof(*e->room));
	e->other_room = malloc((most + 1) * sizeof(*e->other_room));
	e->seen = malloc(n);
	e->values = malloc(n * sizeof(*e->values));
	e->numbers = malloc(n * sizeof(*e->numbers));
	e->others_numbers = malloc(n * sizeof(*e->others_numbers));
	return e->room && e->other_room && e->seen && e->values && e->numbers && e->others_numbers;
}

/* Once more, as of a process that began anew where lines break; the shorter one stays, if there is
 * one. */
static enum err_code encode_anew(struct chunk_encode_encoding *e, const enum value_kind *kinds,
	size_t start, struct buf *out, struct err *err)
{
	size_t len = out->len;
	enum err_code rc;

	e->anew = e->broken;
	e->clear = false;
	rc = chunk_encode_all(e, kinds, true, out, err);
	if (!rc && len > start && out->len - len < len - start) {
		memmove(out->ptr + start, out->ptr + len, out->len - len);
		out->len -= len - start;
		return ERR_OK;
	}
	if (rc || len == start)
		return rc;
	e->anew = 0;
	out->len = len;
	return ERR_OK;
}

enum err_code chunk_encode(const int64_t *ts_ns, const struct row *rows, uint32_t rows_n,
	const enum value_kind *kinds, struct buf *out, struct err *err)
{
	struct chunk_encode_encoding *e = calloc(1, sizeof(*e));
	size_t start = out->len, cells = 0;
	enum err_code rc = ERR_OK;

	if (!e)
		return err_nomem(err, "chunk");
	assert(rows_n <= CHUNK_ROWS_MAX);
	e->ts_ns = ts_ns;
	e->rows = rows;
	e->rows_n = rows_n;
	e->columns_n = rows_n ? rows[0].columns_n : 0;
	assert(e->columns_n <= ROW_COLUMNS_MAX);
	for (uint32_t r = 0; r < rows_n; r++) {
		assert(rows[r].columns_n == e->columns_n && rows[r].interval_ns == rows[0].interval_ns);
		cells += rows[r].n;
	}
	if (cells > CHUNK_SAMPLES_MAX || cells * e->columns_n > CHUNK_VALUES_MAX) {
		rc = err_set(err, ERR_LIMIT, "chunk of %zu samples of %" PRIu32 " types is too large",
			cells, e->columns_n);
		goto done;
	}
	if (!chunk_keys_list(&e->keys, rows, rows_n) || !chunk_encode_reserve_columns(e) ||
		!chunk_encode_list_slots(e)) {
		rc = err_nomem(err, "chunk");
		goto done;
	}
	rc = chunk_encode_all(e, kinds, true, out, err);
	if (!rc && e->broken)
		rc = encode_anew(e, kinds, start, out, err);
	/* So few bytes that a reader would not believe them: uncompressed there is one per key. */
	if (!rc && cells > (out->len - start) * CHUNK_SAMPLES_PER_BYTE) {
		out->len = start;
		rc = chunk_encode_all(e, kinds, false, out, err);
	}
	assert(rc || out->len > start);
done:
	if (rc)
		out->len = start;
	chunk_keys_release(&e->keys);
	free(e->seen);
	free(e->values);
	free(e->numbers);
	free(e->others_numbers);
	free(e->slots);
	free(e->room);
	free(e->other_room);
	buf_release(&e->heads);
	buf_release(&e->columns);
	free(e);
	return rc;
}
