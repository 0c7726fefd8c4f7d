#include "tsdb/row.h"

#include <assert.h>
#include <endian.h>
#include <inttypes.h>

/*
 * Layout: version, flags, then varints: header, interval, and in zigzag ts - time_nanos, duration,
 * period; n and the number of columns; per column its coding, factor, total in zigzag and length;
 * the length of the stacks and of the label sets; then the bytes of stacks, label sets and columns.
 *
 * Stacks are gaps. Label sets are absolute after a new stack, gaps after the same one.
 * Values are divided by the column's greatest common divisor (CPU nanoseconds are multiples of the
 * period). A column with few values that are not 0 is a bitmap and those values: heap deltas are
 * mostly that.
 *
 * Plain bytes and no cleverer coding: a head is written once and read while it is fresh; measured
 * on this, ids and a column decode and add at the speed of memory, and single rows hardly compress.
 */
#define ROW_VERSION 1
#define ROW_LABELS 1u

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

static uint64_t magnitude(int64_t v)
{
	return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

struct column_facts {
	uint64_t factor;
	int64_t total;
	uint32_t zeros;
	bool negative, same, overflow;
};

static struct column_facts look(const int64_t *v, uint32_t n)
{
	struct column_facts f = { .same = true };
	__int128 total = 0;

	for (uint32_t i = 0; i < n; i++) {
		total += v[i];
		f.zeros += v[i] == 0;
		f.negative |= v[i] < 0;
		f.same &= v[i] == v[0];
		if (f.factor != 1 && (f.factor == 0 || magnitude(v[i]) % f.factor))
			f.factor = gcd(magnitude(v[i]), f.factor);
	}
	f.total = (int64_t)total;
	f.overflow = f.total != total;
	return f;
}

static uint64_t scaled(int64_t v, uint64_t factor, bool negative)
{
	uint64_t m = factor == 1 ? magnitude(v) : magnitude(v) / factor;

	if (!negative)
		return m;
	/* Zigzag by hand: with factor 1 the smallest int64_t has no magnitude among the signed. */
	return v < 0 ? (m << 1) - 1 : m << 1;
}

static void put_varint(unsigned char **at, uint64_t v)
{
	unsigned char *p = *at;

	for (; v >= 0x80; v >>= 7)
		*p++ = (unsigned char)v | 0x80;
	*p++ = (unsigned char)v;
	*at = p;
}

static enum row_coding encode_column(
	const int64_t *v, uint32_t n, const struct column_facts *f, struct buf *out)
{
	bool sparse = f->zeros > n / 4;
	size_t bitmap = sparse ? (n + 7) / 8 : 0;
	unsigned char *bits, *at;

	if (f->factor == 0)
		return ROW_ZERO;
	if (f->same && !f->negative)
		return ROW_SAME;
	/* A magnitude of 2^63 in zigzag takes the tenth byte, as any 64-bit value may. */
	if (!buf_reserve(out, bitmap + (size_t)(n - (sparse ? f->zeros : 0)) * 10))
		return ROW_PLAIN;
	bits = (unsigned char *)out->ptr + out->len;
	memset(bits, 0, bitmap);
	at = bits + bitmap;
	for (uint32_t i = 0; i < n; i++) {
		if (sparse && v[i] == 0)
			continue;
		if (sparse)
			bits[i / 8] |= (unsigned char)(1u << (i & 7));
		put_varint(&at, scaled(v[i], f->factor, f->negative));
	}
	out->len = (size_t)(at - (unsigned char *)out->ptr);
	if (sparse)
		return f->negative ? ROW_SPARSE_SIGNED : ROW_SPARSE;
	return f->negative ? ROW_SIGNED : ROW_PLAIN;
}

static void encode_ids(const struct row *r, bool labels, struct buf *stacks, struct buf *sets)
{
	unsigned char *at;
	uint32_t before = 0, set = 0;

	if (!buf_reserve(stacks, (size_t)r->n * 5) ||
		(labels && !buf_reserve(sets, (size_t)r->n * 5)))
		return;
	at = (unsigned char *)stacks->ptr;
	for (uint32_t i = 0; i < r->n; i++) {
		put_varint(&at, r->stacks[i] - before);
		before = r->stacks[i];
	}
	stacks->len = (size_t)(at - (unsigned char *)stacks->ptr);
	at = (unsigned char *)sets->ptr;
	for (uint32_t i = 0; labels && i < r->n; i++) {
		if (i == 0 || r->stacks[i] != r->stacks[i - 1])
			set = 0;
		put_varint(&at, r->label_sets[i] - set);
		set = r->label_sets[i];
	}
	if (labels)
		sets->len = (size_t)(at - (unsigned char *)sets->ptr);
}

static bool any_labels(const struct row *r)
{
	uint32_t any = 0;

	for (uint32_t i = 0; r->label_sets && i < r->n; i++)
		any |= r->label_sets[i];
	return any != 0;
}

enum err_code row_encode(const struct row *r, int64_t ts_ns, struct buf *out, struct err *err)
{
	struct buf stacks = { 0 }, sets = { 0 }, columns = { 0 };
	bool labels = any_labels(r);
	enum err_code rc = ERR_OK;

	assert(r->columns_n <= ROW_COLUMNS_MAX);
	buf_add_char(out, ROW_VERSION);
	buf_add_char(out, labels ? ROW_LABELS : 0);
	buf_add_varint(out, r->header);
	buf_add_varint(out, (uint64_t)r->interval_ns);
	buf_add_varint(out, zigzag((int64_t)((uint64_t)ts_ns - (uint64_t)r->time_nanos)));
	buf_add_varint(out, zigzag(r->duration_nanos));
	buf_add_varint(out, zigzag(r->period));
	buf_add_varint(out, r->n);
	buf_add_varint(out, r->columns_n);
	for (uint32_t c = 0; c < r->columns_n; c++) {
		const int64_t *v = r->values + (size_t)c * r->n;
		struct column_facts f = look(v, r->n);
		size_t before = columns.len;
		enum row_coding coding = encode_column(v, r->n, &f, &columns);

		if (f.overflow && !rc)
			rc = err_set(
				err, ERR_LIMIT, "total of column %" PRIu32 " exceeds 64 bits", c);
		buf_add_char(out, (char)coding);
		buf_add_varint(out, f.factor);
		buf_add_varint(out, zigzag(f.total));
		buf_add_varint(out, columns.len - before);
	}
	encode_ids(r, labels, &stacks, &sets);
	buf_add_varint(out, stacks.len);
	buf_add_varint(out, sets.len);
	buf_add_str(out, buf_str(&stacks));
	buf_add_str(out, buf_str(&sets));
	buf_add_str(out, buf_str(&columns));
	if (!rc &&
		(buf_failed(out) || buf_failed(&stacks) || buf_failed(&sets) ||
			buf_failed(&columns)))
		rc = err_set(err, ERR_NOMEM, "row: out of memory");
	buf_release(&stacks);
	buf_release(&sets);
	buf_release(&columns);
	return rc;
}

/* ---- decoding ---- */

static enum err_code corrupt(struct err *err, const char *what)
{
	return err_set(err, ERR_CORRUPT, "row: %s", what);
}

static bool plausible(const struct row_view *v, const struct row_column *c)
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

enum err_code row_parse(struct str bytes, int64_t ts_ns, struct row_view *out, struct err *err)
{
	struct cursor in = cursor_of(bytes);
	uint64_t n, lengths[ROW_COLUMNS_MAX], stacks, sets;
	unsigned flags;

	if (bytes.len < 2 || in.at[0] != ROW_VERSION)
		return corrupt(err, "unknown version");
	flags = in.at[1];
	in.at += 2;
	out->header = cursor_u32(&in);
	out->interval_ns = (int64_t)cursor_varint(&in);
	out->time_nanos = (int64_t)((uint64_t)ts_ns - (uint64_t)unzigzag(cursor_varint(&in)));
	out->duration_nanos = unzigzag(cursor_varint(&in));
	out->period = unzigzag(cursor_varint(&in));
	out->n = cursor_u32(&in);
	n = cursor_varint(&in);
	if (in.bad || n > ROW_COLUMNS_MAX)
		return corrupt(err, "too many columns");
	out->columns_n = (uint32_t)n;
	for (uint32_t c = 0; c < n; c++) {
		struct str coding = cursor_bytes(&in, 1);

		out->columns[c].coding = coding.len ? (uint8_t)coding.ptr[0] : ROW_CODINGS;
		out->columns[c].factor = cursor_varint(&in);
		out->columns[c].total = unzigzag(cursor_varint(&in));
		lengths[c] = cursor_varint(&in);
	}
	stacks = cursor_varint(&in);
	sets = cursor_varint(&in);
	if (in.bad || stacks > cursor_left(&in) || sets > cursor_left(&in) || stacks < out->n ||
		((flags & ROW_LABELS) ? sets < out->n : sets != 0))
		return corrupt(err, "cut short");
	out->stacks = cursor_bytes(&in, stacks);
	out->label_sets = cursor_bytes(&in, sets);
	for (uint32_t c = 0; c < n; c++) {
		struct str column = lengths[c] > cursor_left(&in) ? (struct str){ 0 } :
								    cursor_bytes(&in, lengths[c]);

		if (in.bad || column.len != lengths[c])
			return corrupt(err, "cut short");
		out->columns[c].at = (const unsigned char *)column.ptr;
		out->columns[c].end = out->columns[c].at + column.len;
		if (!plausible(out, &out->columns[c]))
			return corrupt(err, "bad column");
	}
	return cursor_left(&in) ? corrupt(err, "bytes left over") : ERR_OK;
}

#define HIGH_BITS UINT64_C(0x8080808080808080)

static inline uint64_t load8(const unsigned char *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return le64toh(w);
}

#define BATCH 256u /* decoded at a time: the scratch stays in the first cache */

/*
 * Varints: eight of one byte at once, else four of one or two bytes without a branch on their
 * length; longer ones and the last bytes the slow way.
 */
static bool take(struct cursor *in, uint32_t n, uint64_t *out)
{
	uint32_t i = 0;

	while (n - i >= 8 && in->end - in->at >= 8) {
		uint64_t w = load8(in->at);

		if (!(w & HIGH_BITS)) {
			for (unsigned k = 0; k < 8; k++)
				out[i + k] = w >> (8 * k) & 0x7f;
			in->at += 8;
			i += 8;
			continue;
		}
		for (unsigned k = 0; k < 4; k++) {
			unsigned two = (unsigned)(w >> 7) & 1;

			if (__builtin_expect((w & 0x8080) == 0x8080, 0)) {
				out[i++] = cursor_varint_slow(in);
				break;
			}
			out[i++] = (w & 0x7f) | ((w >> 1 & 0x3f80) & -(uint64_t)two);
			in->at += 1 + two;
			w >>= 8u << two;
		}
	}
	while (i < n)
		out[i++] = cursor_varint(in);
	return !in->bad;
}

enum err_code row_ids(
	const struct row_view *v, uint32_t *stacks, uint32_t *label_sets, struct err *err)
{
	struct cursor in = cursor_of(v->stacks);
	uint64_t gaps[BATCH], sum = 0, any = 0;

	for (uint32_t i = 0, n; i < v->n; i += n) {
		n = v->n - i < BATCH ? v->n - i : BATCH;
		if (!take(&in, n, gaps))
			return corrupt(err, "stacks cut short");
		for (uint32_t k = 0; k < n; k++) {
			any |= gaps[k];
			sum += gaps[k];
			stacks[i + k] = (uint32_t)sum;
		}
	}
	if (any >> 32 || sum >> 32 || in.at != in.end)
		return corrupt(err, "bad stacks");
	if (!label_sets)
		return ERR_OK;
	if (!v->label_sets.len) {
		memset(label_sets, 0, (size_t)v->n * sizeof(*label_sets));
		return ERR_OK;
	}
	in = cursor_of(v->label_sets);
	for (uint32_t i = 0, n; i < v->n; i += n) {
		n = v->n - i < BATCH ? v->n - i : BATCH;
		if (!take(&in, n, gaps))
			return corrupt(err, "label sets cut short");
		for (uint32_t k = 0; k < n; k++) {
			if (i + k == 0 || stacks[i + k] != stacks[i + k - 1])
				sum = 0;
			sum += gaps[k];
			any |= gaps[k] | sum;
			label_sets[i + k] = (uint32_t)sum;
		}
	}
	return any >> 32 || in.at != in.end ? corrupt(err, "bad label sets") : ERR_OK;
}

/* Products wrap where the bytes are hostile; what row_encode made does not. */
static void scale(const uint64_t *from, uint32_t n, uint64_t factor, bool negative, int64_t *to)
{
	if (negative) {
		for (uint32_t k = 0; k < n; k++) {
			/* The magnitude first: -2^63 has one in 64 bits only. */
			uint64_t m = (from[k] >> 1) + (from[k] & 1);

			to[k] = (int64_t)(from[k] & 1 ? -(m * factor) : m * factor);
		}
	} else {
		for (uint32_t k = 0; k < n; k++)
			to[k] = (int64_t)(from[k] * factor);
	}
}

static enum err_code dense_values(struct cursor in, uint32_t n, uint64_t factor, bool negative,
	int64_t *values, struct err *err)
{
	uint64_t raw[BATCH];

	for (uint32_t i = 0, some; i < n; i += some) {
		some = n - i < BATCH ? n - i : BATCH;
		if (!take(&in, some, raw))
			return corrupt(err, "values cut short");
		scale(raw, some, factor, negative, values + i);
	}
	return in.at == in.end ? ERR_OK : corrupt(err, "bad values");
}

static enum err_code sparse_values(struct cursor in, uint32_t n, uint64_t factor, bool negative,
	int64_t *values, struct err *err)
{
	struct str bitmap = cursor_bytes(&in, ((size_t)n + 7) / 8);
	uint64_t raw[64];
	int64_t some[64];

	for (uint32_t i = 0; i < n; i += 64) {
		uint32_t most = n - i < 64 ? n - i : 64, k = 0;
		uint64_t set = 0, rest;

		memcpy(&set, bitmap.ptr + i / 8, (most + 7) / 8);
		set = le64toh(set);
		if (most < 64 && set >> most)
			return corrupt(err, "bad values");
		if (!take(&in, (uint32_t)__builtin_popcountll(set), raw))
			return corrupt(err, "values cut short");
		scale(raw, (uint32_t)__builtin_popcountll(set), factor, negative, some);
		memset(values + i, 0, most * sizeof(*values));
		for (rest = set; rest; rest &= rest - 1)
			values[i + (unsigned)__builtin_ctzll(rest)] = some[k++];
	}
	return in.at == in.end ? ERR_OK : corrupt(err, "bad values");
}

enum err_code row_values(
	const struct row_view *v, uint32_t column, int64_t *values, struct err *err)
{
	const struct row_column *c = &v->columns[column];
	struct cursor in = { c->at, c->end, false };

	switch ((enum row_coding)c->coding) {
	case ROW_ZERO:
	case ROW_SAME:
		for (uint32_t i = 0; i < v->n; i++)
			values[i] = c->coding == ROW_SAME ? (int64_t)c->factor : 0;
		return ERR_OK;
	case ROW_PLAIN:
	case ROW_SIGNED:
		return dense_values(in, v->n, c->factor, c->coding == ROW_SIGNED, values, err);
	case ROW_SPARSE:
	case ROW_SPARSE_SIGNED:
		return sparse_values(
			in, v->n, c->factor, c->coding == ROW_SPARSE_SIGNED, values, err);
	case ROW_CODINGS:
		break;
	}
	return corrupt(err, "bad column");
}
