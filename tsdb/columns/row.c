#include "tsdb/columns/row.h"

#include <assert.h>
#include <endian.h>
#include <inttypes.h>

#include "base/integer.h"
#include "tsdb/columns/varints.h"
#include "tsdb/symbols/partition.h"

/*
 * Layout: version, flags, then varints: epoch unless it is 0, header, interval, and in zigzag ts -
 * time_nanos, duration, period; n and the number of columns; per column its coding, factor, total
 * in zigzag and length; the length of the stacks and of the label sets; then the bytes of stacks,
 * label sets and columns; with its flag, links to the end (links.h).
 *
 * Stacks are gaps. Label sets are absolute after a new stack, gaps after the same one.
 * Values are divided by the column's greatest common divisor (CPU nanoseconds are multiples of the
 * period). A column with few values that are not 0 is a bitmap and those values: heap deltas are
 * mostly that. Columns that are multiples of each other share their bytes: CPU nanoseconds are
 * samples times the period.
 *
 * The bytes are plain, without a cleverer coding: the head is written once and read while it is
 * fresh. Measured, ids and a column decode and add at the speed of memory, and single rows hardly
 * compress.
 */
#define ROW_VERSION 1
#define ROW_LABELS 1u
#define ROW_EPOCH 2u /* follows the flags; else it is 0 */
#define ROW_LINKS 4u /* come last */
/* With a coding: the bytes are an earlier column's, whose number is in the length's place. */
#define ROW_SHARED 0x80u

enum row_coding {
	ROW_ZERO, /* all 0: no bytes */
	ROW_SAME, /* all equal to the factor: no bytes */
	ROW_PLAIN, /* varints */
	ROW_SIGNED, /* zigzag varints */
	ROW_SPARSE, /* bitmap, then varints of those not 0 */
	ROW_SPARSE_SIGNED,
	ROW_CODINGS
};

/* ---- encoding ---- */

struct row_column_facts {
	uint64_t factor;
	int64_t total;
	uint32_t zeros;
	bool negative, same, overflow;
};

static struct row_column_facts row_look(const int64_t *values, uint32_t n)
{
	struct row_column_facts f = { .same = true };
	__int128 total = 0;

	for (uint32_t i = 0; i < n; i++) {
		total += values[i];
		f.zeros += values[i] == 0;
		f.negative |= values[i] < 0;
		f.same &= values[i] == values[0];
		if (f.factor != 1 && (f.factor == 0 || integer_magnitude64(values[i]) % f.factor))
			f.factor = integer_gcd64(integer_magnitude64(values[i]), f.factor);
	}
	f.total = (int64_t)total;
	f.overflow = f.total != total;
	return f;
}

static uint64_t row_scaled(int64_t value, uint64_t factor, bool negative)
{
	uint64_t m = factor == 1 ? integer_magnitude64(value) : integer_magnitude64(value) / factor;

	if (!negative)
		return m;
	/* Zigzag by hand: with factor 1 the smallest int64_t has no magnitude among the signed. */
	return value < 0 ? (m << 1) - 1 : m << 1;
}

static enum row_coding row_encode_column(
	const int64_t *values, uint32_t n, const struct row_column_facts *f, struct buf *out)
{
	bool sparse = f->zeros > n / 4;
	size_t bitmap = sparse ? (n + 7) / 8 : 0;
	unsigned char *bits, *at;

	if (f->factor == 0)
		return ROW_ZERO;
	if (f->same && !f->negative)
		return ROW_SAME;
	/* A magnitude of 2^63 in zigzag takes the tenth byte, as any 64-bit values may. */
	if (!buf_reserve(out, bitmap + (size_t)(n - (sparse ? f->zeros : 0)) * 10))
		return ROW_PLAIN;
	bits = (unsigned char *)out->ptr + out->len;
	memset(bits, 0, bitmap);
	at = bits + bitmap;
	for (uint32_t i = 0; i < n; i++) {
		if (sparse && values[i] == 0)
			continue;
		if (sparse)
			bits[i / 8] |= (unsigned char)(1u << (i & 7));
		varints_put(&at, row_scaled(values[i], f->factor, f->negative));
	}
	out->len = (size_t)(at - (unsigned char *)out->ptr);
	if (sparse)
		return f->negative ? ROW_SPARSE_SIGNED : ROW_SPARSE;
	return f->negative ? ROW_SIGNED : ROW_PLAIN;
}

static void row_encode_ids(const struct row *r, bool labels, struct buf *stacks, struct buf *sets)
{
	unsigned char *at;
	uint32_t before = 0, set = 0;

	if (!buf_reserve(stacks, (size_t)r->n * 5) || (labels && !buf_reserve(sets, (size_t)r->n * 5)))
		return;
	at = (unsigned char *)stacks->ptr;
	for (uint32_t i = 0; i < r->n; i++) {
		varints_put(&at, r->stacks[i] - before);
		before = r->stacks[i];
	}
	stacks->len = (size_t)(at - (unsigned char *)stacks->ptr);
	at = (unsigned char *)sets->ptr;
	for (uint32_t i = 0; labels && i < r->n; i++) {
		if (i == 0 || r->stacks[i] != r->stacks[i - 1])
			set = 0;
		varints_put(&at, r->label_sets[i] - set);
		set = r->label_sets[i];
	}
	if (labels)
		sets->len = (size_t)(at - (unsigned char *)sets->ptr);
}

static bool row_any_labels(const struct row *r)
{
	uint32_t any = 0;

	for (uint32_t i = 0; r->label_sets && i < r->n; i++)
		any |= r->label_sets[i];
	return any != 0;
}

/* Heads of the columns into out, their bytes into *columns. */
static enum err_code row_encode_columns(
	const struct row *r, struct buf *out, struct buf *columns, struct err *err)
{
	struct {
		enum row_coding coding;
		size_t at, len;
	} done[ROW_COLUMNS_MAX];
	enum err_code rc = ERR_OK;

	for (uint32_t c = 0, same = 0; c < r->columns_n; c++) {
		const int64_t *v = r->values + (size_t)c * r->n;
		struct row_column_facts f = row_look(v, r->n);

		done[c].at = columns->len;
		done[c].coding = row_encode_column(v, r->n, &f, columns);
		done[c].len = columns->len - done[c].at;
		for (same = 0; same < c; same++)
			if (done[c].len && done[same].len == done[c].len &&
				done[same].coding == done[c].coding &&
				!memcmp(columns->ptr + done[same].at, columns->ptr + done[c].at, done[c].len))
				break;
		if (same < c) {
			columns->len = done[c].at;
			done[c].len = 0;
		}
		if (f.overflow && !rc)
			rc = err_set(err, ERR_LIMIT, "total of column %" PRIu32 " exceeds 64 bits", c);
		buf_add_char(out, (char)(done[c].coding | (same < c ? ROW_SHARED : 0)));
		buf_add_varint(out, f.factor);
		buf_add_varint(out, str_zigzag(f.total));
		buf_add_varint(out, same < c ? same : done[c].len);
	}
	return rc;
}

enum err_code row_encode(const struct row *r, int64_t ts_ns, struct buf *out, struct err *err)
{
	struct buf stacks = { 0 }, sets = { 0 }, columns = { 0 };
	bool labels = row_any_labels(r);
	enum err_code rc;

	assert(r->columns_n <= ROW_COLUMNS_MAX);
	assert(r->n == 0 || (r->stacks && (r->values || r->columns_n == 0)));
	buf_add_char(out, ROW_VERSION);
	buf_add_char(out,
		(char)((labels ? ROW_LABELS : 0) | (r->epoch ? ROW_EPOCH : 0) |
			(r->links.len ? ROW_LINKS : 0)));
	if (r->epoch)
		buf_add_varint(out, r->epoch);
	buf_add_varint(out, r->header);
	buf_add_varint(out, (uint64_t)r->interval_ns);
	buf_add_varint(out, str_zigzag((int64_t)((uint64_t)ts_ns - (uint64_t)r->time_nanos)));
	buf_add_varint(out, str_zigzag(r->duration_nanos));
	buf_add_varint(out, str_zigzag(r->period));
	buf_add_varint(out, r->n);
	buf_add_varint(out, r->columns_n);
	rc = row_encode_columns(r, out, &columns, err);
	row_encode_ids(r, labels, &stacks, &sets);
	buf_add_varint(out, stacks.len);
	buf_add_varint(out, sets.len);
	buf_add_str(out, buf_str(&stacks));
	buf_add_str(out, buf_str(&sets));
	buf_add_str(out, buf_str(&columns));
	buf_add_str(out, r->links);
	if (!rc &&
		(buf_failed(out) || buf_failed(&stacks) || buf_failed(&sets) || buf_failed(&columns)))
		rc = err_nomem(err, "row");
	buf_release(&stacks);
	buf_release(&sets);
	buf_release(&columns);
	return rc;
}

/* ---- decoding ---- */

static enum err_code row_corrupt(struct err *err, const char *what)
{
	return err_set(err, ERR_CORRUPT, "row: %s", what);
}

static bool row_view_plausible(const struct row_view *v, const struct row_column *c)
{
	size_t len = (size_t)(c->end - c->at);

	switch ((enum row_coding)c->coding) {
	case ROW_ZERO:
	case ROW_SAME:
		return len == 0;
	case ROW_PLAIN:
	case ROW_SIGNED:
		return len >= v->n;
	case ROW_SPARSE:
	case ROW_SPARSE_SIGNED:
		return len >= ((size_t)v->n + 7) / 8;
	case ROW_CODINGS:
		break;
	}
	return false;
}

/* Finds a column's bytes: the next ones, or those of an earlier column. */
static bool row_view_find_column(
	struct row_view *v, uint32_t column, uint64_t length, struct cursor *in)
{
	struct row_column *c = &v->columns[column];
	struct str bytes;

	if (c->coding & ROW_SHARED) {
		c->coding &= ~ROW_SHARED;
		if (length >= column || v->columns[length].coding != c->coding)
			return false;
		c->at = v->columns[length].at;
		c->end = v->columns[length].end;
		return true;
	}
	if (length > cursor_left(in))
		return false;
	bytes = cursor_bytes(in, length);
	c->at = (const unsigned char *)bytes.ptr;
	c->end = c->at + bytes.len;
	return row_view_plausible(v, c);
}

/* Version, flags, epoch. */
static bool row_parse_start(struct cursor *in, unsigned *flags, uint32_t *epoch)
{
	if (cursor_left(in) < 2 || in->at[0] != ROW_VERSION)
		return false;
	*flags = in->at[1];
	in->at += 2;
	*epoch = *flags & ROW_EPOCH ? cursor_u32(in) : 0;
	return !in->bad && *flags <= (ROW_LABELS | ROW_EPOCH | ROW_LINKS) && *epoch != UINT32_MAX &&
		(!(*flags & ROW_EPOCH) || *epoch);
}

bool row_epoch(struct str bytes, uint32_t *epoch)
{
	struct cursor in = cursor_of(bytes);
	unsigned flags;

	return row_parse_start(&in, &flags, epoch);
}

enum err_code row_parse(struct str bytes, int64_t ts_ns, struct row_view *out, struct err *err)
{
	struct cursor in = cursor_of(bytes);
	uint64_t n, lengths[ROW_COLUMNS_MAX], stacks, sets;
	unsigned flags;

	if (!row_parse_start(&in, &flags, &out->epoch))
		return row_corrupt(err, "unknown version");
	out->header = cursor_u32(&in);
	out->interval_ns = (int64_t)cursor_varint(&in);
	out->time_nanos = (int64_t)((uint64_t)ts_ns - (uint64_t)str_unzigzag(cursor_varint(&in)));
	out->duration_nanos = str_unzigzag(cursor_varint(&in));
	out->period = str_unzigzag(cursor_varint(&in));
	out->n = cursor_u32(&in);
	n = cursor_varint(&in);
	if (in.bad || n > ROW_COLUMNS_MAX)
		return row_corrupt(err, "too many columns");
	out->columns_n = (uint32_t)n;
	for (uint32_t c = 0; c < n; c++) {
		struct str coding = cursor_bytes(&in, 1);

		out->columns[c].coding = coding.len ? (uint8_t)coding.ptr[0] : ROW_CODINGS;
		out->columns[c].factor = cursor_varint(&in);
		out->columns[c].total = str_unzigzag(cursor_varint(&in));
		lengths[c] = cursor_varint(&in);
	}
	stacks = cursor_varint(&in);
	sets = cursor_varint(&in);
	if (in.bad || stacks > cursor_left(&in) || sets > cursor_left(&in) || stacks < out->n ||
		((flags & ROW_LABELS) ? sets < out->n : sets != 0))
		return row_corrupt(err, "cut short");
	out->stacks = cursor_bytes(&in, stacks);
	out->label_sets = cursor_bytes(&in, sets);
	for (uint32_t c = 0; c < n; c++)
		if (!row_view_find_column(out, c, lengths[c], &in))
			return row_corrupt(err, "bad column");
	out->links = flags & ROW_LINKS ? cursor_bytes(&in, cursor_left(&in)) : (struct str){ 0 };
	if (cursor_left(&in) || (flags & ROW_LINKS && !out->links.len))
		return row_corrupt(err, "a bad end");
	return ERR_OK;
}

/* GNU C's vectors, wherever they begin in an array. */
typedef uint32_t four_ids __attribute__((vector_size(16), aligned(4)));
typedef unsigned char four_bytes __attribute__((vector_size(4), aligned(1)));

static inline four_ids row_load_ids(const uint32_t *ids)
{
	return *(const four_ids *)ids;
}

/* True if a stack comes twice. */
static bool row_any_twice(const uint32_t *stacks, uint32_t n)
{
	four_ids same = { 0 };
	uint32_t any = 0, i = 1;

	for (; i < n && n - i >= 4; i += 4)
		same |= (four_ids)(row_load_ids(&stacks[i]) == row_load_ids(&stacks[i - 1]));
	for (; i < n; i++)
		any |= stacks[i] == stacks[i - 1];
	return any | same[0] | same[1] | same[2] | same[3];
}

/* Gaps of one byte each. */
static void row_view_small_label_sets(
	const struct row_view *v, const uint32_t *stacks, uint32_t *label_sets)
{
	const unsigned char *gaps = (const unsigned char *)v->label_sets.ptr;
	uint32_t set = 0, i = 0;

	if (row_any_twice(stacks, v->n)) {
		/* No branch on whether a stack is new: that is hard to foresee. */
		label_sets[0] = set = gaps[0];
		for (i = 1; i < v->n; i++) {
			set &= -(uint32_t)(stacks[i] == stacks[i - 1]);
			label_sets[i] = set += gaps[i];
		}
		return;
	}
	for (; v->n - i >= 4; i += 4)
		*(four_ids *)&label_sets[i] = __builtin_convertvector(
			*(const four_bytes *)&gaps[i], four_ids);
	for (; i < v->n; i++)
		label_sets[i] = gaps[i];
}

static enum err_code row_view_label_sets_of(
	const struct row_view *v, const uint32_t *stacks, uint32_t *label_sets, struct err *err)
{
	struct cursor in = cursor_of(v->label_sets);
	uint64_t any = 0, set = 0, gap;

	if (!v->label_sets.len) {
		memset(label_sets, 0, (size_t)v->n * sizeof(*label_sets));
		return ERR_OK;
	}
	if (v->label_sets.len == v->n && v->n <= UINT32_MAX >> 7 && varints_are_bytes(in.at, v->n)) {
		row_view_small_label_sets(v, stacks, label_sets);
		return ERR_OK;
	}
	for (uint32_t i = 0; i < v->n; i++) {
		gap = cursor_varint(&in);
		set = i && stacks[i] == stacks[i - 1] ? set + gap : gap;
		any |= gap | set;
		label_sets[i] = (uint32_t)set;
	}
	return in.bad || any >> 32 || in.at != in.end ? row_corrupt(err, "bad label sets") : ERR_OK;
}

enum err_code row_ids(
	const struct row_view *v, uint32_t *stacks, uint32_t *label_sets, struct err *err)
{
	struct cursor in = cursor_of(v->stacks);
	uint64_t sum = 0;

	if (!varints_sums(&in, v->n, stacks, &sum) || in.at != in.end)
		return row_corrupt(err, "bad stacks");
	return label_sets ? row_view_label_sets_of(v, stacks, label_sets, err) : ERR_OK;
}

static enum err_code row_sparse_values(
	struct cursor in, uint32_t n, uint64_t factor, bool negative, int64_t *values, struct err *err)
{
	struct str bitmap = cursor_bytes(&in, ((size_t)n + 7) / 8);
	int64_t some[64];

	for (uint32_t i = 0; i < n; i += 64) {
		uint32_t most = n - i < 64 ? n - i : 64, k = 0;
		uint64_t set = 0, rest;

		memcpy(&set, bitmap.ptr + i / 8, (most + 7) / 8);
		set = le64toh(set);
		if ((most < 64 && set >> most) ||
			!varints_values(&in, (uint32_t)__builtin_popcountll(set), factor, negative, some))
			return row_corrupt(err, "bad values");
		memset(values + i, 0, most * sizeof(*values));
		for (rest = set; rest; rest &= rest - 1)
			values[i + (unsigned)__builtin_ctzll(rest)] = some[k++];
	}
	return in.at == in.end ? ERR_OK : row_corrupt(err, "bad values");
}

enum err_code row_values(
	const struct row_view *v, uint32_t column, int64_t *values, struct err *err)
{
	const struct row_column *c = &v->columns[column];
	struct cursor in = { c->at, c->end, false };

	assert(column < v->columns_n);
	switch ((enum row_coding)c->coding) {
	case ROW_ZERO:
	case ROW_SAME:
		for (uint32_t i = 0; i < v->n; i++)
			values[i] = c->coding == ROW_SAME ? (int64_t)c->factor : 0;
		return ERR_OK;
	case ROW_PLAIN:
	case ROW_SIGNED:
		if (varints_values(&in, v->n, c->factor, c->coding == ROW_SIGNED, values) &&
			in.at == in.end)
			return ERR_OK;
		break;
	case ROW_SPARSE:
	case ROW_SPARSE_SIGNED:
		return row_sparse_values(in, v->n, c->factor, c->coding == ROW_SPARSE_SIGNED, values, err);
	case ROW_CODINGS:
		break;
	}
	return row_corrupt(err, "bad column");
}

/* Moves the ids of entries whose bits are set to the front; *n of them. False: a bit behind the
 * entries. */
static bool row_move_to_front(
	const unsigned char *bitmap, uint32_t *stacks, uint32_t *label_sets, uint32_t *n)
{
	const uint32_t all = *n;
	uint32_t k = 0;

	for (uint32_t i = 0; i < all; i += 64) {
		const uint32_t most = all - i < 64 ? all - i : 64;
		uint64_t set = 0;

		memcpy(&set, bitmap + i / 8, (most + 7) / 8);
		set = le64toh(set);
		if (most < 64 && set >> most)
			return false;
		for (; set; set &= set - 1, k++) {
			const uint32_t at = i + (uint32_t)__builtin_ctzll(set);

			stacks[k] = stacks[at];
			if (label_sets)
				label_sets[k] = label_sets[at];
		}
	}
	*n = k;
	return true;
}

enum err_code row_cells(const struct row_view *v, uint32_t column, uint32_t *stacks,
	uint32_t *label_sets, int64_t *values, uint32_t *n, struct err *err)
{
	const struct row_column *c = &v->columns[column];
	struct cursor in = { c->at, c->end, false };
	struct str bitmap;

	assert(column < v->columns_n);
	*n = c->coding == ROW_ZERO ? 0 : v->n;
	if (c->coding == ROW_ZERO)
		return ERR_OK;
	if (c->coding != ROW_SPARSE && c->coding != ROW_SPARSE_SIGNED)
		return row_values(v, column, values, err);
	bitmap = cursor_bytes(&in, ((size_t)v->n + 7) / 8);
	if (row_move_to_front((const unsigned char *)bitmap.ptr, stacks, label_sets, n) &&
		varints_values(&in, *n, c->factor, c->coding == ROW_SPARSE_SIGNED, values) &&
		in.at == in.end)
		return ERR_OK;
	return row_corrupt(err, "bad values");
}

const unsigned char *row_small_values(const struct row_view *v, uint32_t column)
{
	const struct row_column *c = &v->columns[column];
	bool small = c->coding == ROW_PLAIN && c->factor <= UINT64_C(1) << 56 &&
		(size_t)(c->end - c->at) == v->n && varints_are_bytes(c->at, v->n);

	assert(column < v->columns_n);
	return small ? c->at : NULL;
}

static bool row_all_below(const uint32_t *ids, uint32_t n, uint32_t end)
{
	/* The highest bit: of an id, or of what it lacks to the last one. */
	const uint32_t last = end - 1;
	four_ids beyond = { 0 };
	uint32_t any = 0, i = 0;

	if (last >> 31) {
		for (; i < n && ids[i] < end; i++)
			;
		return i == n;
	}
	for (; n - i >= 4; i += 4)
		beyond |= (last - row_load_ids(&ids[i])) | row_load_ids(&ids[i]);
	for (; i < n; i++)
		any |= (last - ids[i]) | ids[i];
	return !((any | beyond[0] | beyond[1] | beyond[2] | beyond[3]) >> 31);
}

enum err_code row_check_ids(const struct partition *p, const struct row_view *v,
	const uint32_t *stacks, const uint32_t *sets, struct err *err)
{
	bool ok = sym_exists(p, SYM_HEADER, v->header) &&
		sym_header(p, v->header)->types_n == v->columns_n;

	if (ok && v->n && stacks)
		ok = stacks[v->n - 1] < sym_nodes_n(p) &&
			row_all_below(sets, sets ? v->n : 0, sym_label_sets_n(p));
	/* If symbols were lost each one is looked up: a row without its names would be a wrong
	 * answer. */
	if (ok && stacks && atomic_load_explicit(&p->damaged, memory_order_relaxed))
		for (uint32_t i = 0; i < v->n && ok; i++)
			ok = sym_exists(p, SYM_NODE, stacks[i]) &&
				sym_exists(p, SYM_LABEL_SET, sets ? sets[i] : 0);
	if (ok)
		return ERR_OK;
	return err_set(err, ERR_CORRUPT, "a row of job \"" STR_FMT "\" uses symbols that are missing",
		STR_ARG(p->name));
}
