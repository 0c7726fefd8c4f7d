#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <zstd.h>

#include "tsdb/columns/varints.h"
#include "tsdb/rollup/rollup_cells.h"

/* Reads the cells that rollup_cells.c writes: parsing, and readers of batches. */

static enum err_code rollup_read_corrupt(struct err *err, const char *what)
{
	return err_set(err, ERR_CORRUPT, "rollup: %s", what);
}

void cells_view_release(struct cells_view *v)
{
	for (uint32_t i = 0; i < v->frames_cap; i++)
		buf_release(&v->frames[i].raw);
	free(v->frames);
	free(v->columns);
	ZSTD_freeDCtx(v->zstd);
	*v = (struct cells_view){ 0 };
}

static bool rollup_read_reserve(struct cells_view *v, uint32_t columns_n)
{
	uint32_t cap = columns_n + 2;
	struct cells_frame *frames;
	struct cells_values_head *columns;

	if (cap > v->frames_cap) {
		if (!(frames = realloc(v->frames, cap * sizeof(*frames))))
			return false;
		memset(frames + v->frames_cap, 0, (cap - v->frames_cap) * sizeof(*frames));
		v->frames = frames;
		if (!(columns = realloc(v->columns, cap * sizeof(*columns))))
			return false;
		v->columns = columns;
		v->frames_cap = cap;
	}
	return true;
}

/* raw_min, raw_max: bounds of the bytes of so many cells before compression. */
static bool read_frame_head(
	struct cursor *in, struct cells_frame *f, uint64_t raw_min, uint64_t raw_max)
{
	uint64_t len = cursor_varint(in);

	f->compressed = len & 1;
	f->ready = false;
	f->stored = (struct str){ NULL, len >> 1 };
	f->raw_len = f->compressed ? cursor_varint(in) : len >> 1;
	return !in->bad && f->raw_len >= raw_min && f->raw_len <= raw_max &&
		f->stored.len <= cursor_left(in) &&
		(!f->compressed || f->raw_len / CELLS_RATIO_MAX <= f->stored.len);
}

static bool read_values_head(struct cells_view *v, uint32_t column, struct cursor *in)
{
	struct cells_values_head *h = &v->columns[column];
	struct str coding = cursor_bytes(in, 1);
	unsigned byte = coding.len ? (unsigned char)coding.ptr[0] : CELLS_CODINGS;
	uint64_t n = v->n, bitmap = (n + 7) / 8;

	v->frames[column + 2].stored.len = 0;
	if ((byte & ~CELLS_SHARED) >= CELLS_CODINGS)
		return false;
	*h = (struct cells_values_head){ byte & ~CELLS_SHARED, 0, column + 2 };
	if (h->coding != CELLS_ZERO)
		h->factor = cursor_varint128(in);
	if (h->coding != CELLS_WIDE && h->factor > INT64_MAX)
		return false;
	if (byte & CELLS_SHARED) {
		n = cursor_varint(in);
		if (n >= column || v->columns[n].coding != h->coding)
			return false;
		h->frame = v->columns[n].frame;
		return true;
	}
	switch (h->coding) {
	case CELLS_ZERO:
	case CELLS_SAME:
		return true;
	case CELLS_PLAIN:
	case CELLS_SIGNED:
		return read_frame_head(in, &v->frames[column + 2], n, n * 10);
	case CELLS_SPARSE:
	case CELLS_SPARSE_SIGNED:
		return read_frame_head(in, &v->frames[column + 2], bitmap, bitmap + n * 10);
	case CELLS_WIDE:
		return read_frame_head(in, &v->frames[column + 2], n, n * 19);
	case CELLS_CODINGS:
		break;
	}
	return false;
}

enum err_code cells_parse(
	struct cells_view *v, struct cursor *in, uint32_t columns_n, struct err *err)
{
	uint64_t n = cursor_varint(in);
	struct str flags;

	if (in->bad || n > CELLS_MAX)
		return rollup_read_corrupt(err, "bad number of cells");
	if (!rollup_read_reserve(v, columns_n))
		return err_nomem(err, "rollup");
	v->n = (uint32_t)n;
	v->columns_n = columns_n;
	v->labels = false;
	for (uint32_t i = 0; i < columns_n + 2; i++)
		v->frames[i].stored.len = 0;
	for (uint32_t c = 0; c < columns_n; c++)
		v->columns[c] = (struct cells_values_head){ CELLS_ZERO, 0, c + 2 };
	if (n) {
		flags = cursor_bytes(in, 1);
		if (!flags.len || (unsigned char)flags.ptr[0] > CELLS_LABELS)
			return rollup_read_corrupt(err, "unknown flags");
		v->labels = flags.ptr[0] & CELLS_LABELS;
		if (!read_frame_head(in, &v->frames[0], n, n * 5) ||
			(v->labels && !read_frame_head(in, &v->frames[1], n, n * 5)))
			return rollup_read_corrupt(err, "bad keys");
		for (uint32_t c = 0; c < columns_n; c++)
			if (!read_values_head(v, c, in))
				return rollup_read_corrupt(err, "bad column");
	}
	for (uint32_t i = 0; i < columns_n + 2; i++) {
		size_t len = v->frames[i].stored.len;

		if (len > cursor_left(in))
			return rollup_read_corrupt(err, "cut short");
		v->frames[i].stored = cursor_bytes(in, len);
	}
	return cursor_left(in) || in->bad ? rollup_read_corrupt(err, "bytes left over") : ERR_OK;
}

/* A frame's bytes, decompressed once. */
static enum err_code rollup_read_open_frame(
	struct cells_view *v, struct cells_frame *f, struct cursor *out, struct err *err)
{
	size_t n;

	if (!f->compressed) {
		*out = cursor_of(f->stored);
		return ERR_OK;
	}
	if (!f->ready) {
		if (!v->zstd && !(v->zstd = ZSTD_createDCtx()))
			return err_nomem(err, "rollup");
		buf_clear(&f->raw);
		if (!buf_reserve(&f->raw, f->raw_len)) {
			buf_release(&f->raw); /* usable again */
			return err_nomem(err, "rollup");
		}
		n = ZSTD_decompressDCtx(v->zstd, f->raw.ptr, f->raw_len, f->stored.ptr, f->stored.len);
		if (ZSTD_isError(n) || n != f->raw_len)
			return rollup_read_corrupt(err, "bad frame");
		f->raw.len = n;
		f->ready = true;
	}
	*out = cursor_of(buf_str(&f->raw));
	return ERR_OK;
}

/* ---- keys ---- */

enum err_code cells_ids_open(struct cells_view *v, struct cells_ids *out, struct err *err)
{
	enum err_code rc;

	*out = (struct cells_ids){ .left = v->n, .labels = v->labels };
	if (!v->n)
		return ERR_OK;
	if ((rc = rollup_read_open_frame(v, &v->frames[0], &out->stacks, err)))
		return rc;
	return v->labels ? rollup_read_open_frame(v, &v->frames[1], &out->sets, err) : ERR_OK;
}

static bool rollup_read_take_sets(
	struct cells_ids *c, const uint32_t *stacks, uint32_t before, uint32_t *sets, uint32_t n)
{
	uint64_t any = 0, set = c->begun ? c->set : 0, gap, w;
	uint32_t i = 0;

	while (i < n) {
		if (n - i >= 8 && c->sets.end - c->sets.at >= 8 &&
			!((w = varints_load8(c->sets.at)) & VARINTS_HIGH_BITS)) {
			for (unsigned k = 0; k < 8; k++, i++) {
				set = (set & -(uint64_t)(stacks[i] == before)) + (w >> (8 * k) & 0x7f);
				before = stacks[i];
				sets[i] = (uint32_t)set;
			}
			c->sets.at += 8;
		} else {
			any |= gap = cursor_varint(&c->sets);
			set = (set & -(uint64_t)(stacks[i] == before)) + gap;
			before = stacks[i];
			sets[i++] = (uint32_t)set;
		}
		any |= set;
	}
	c->set = set;
	return !c->sets.bad && !(any >> 32);
}

enum err_code cells_ids_next(
	struct cells_ids *c, uint32_t *stacks, uint32_t *sets, uint32_t *n, struct err *err)
{
	uint32_t before = (uint32_t)c->stack;

	*n = c->left < CELLS_BATCH ? c->left : CELLS_BATCH;
	if (!varints_sums(&c->stacks, *n, stacks, &c->stack))
		return rollup_read_corrupt(err, "bad stacks");
	if (c->labels && sets && !rollup_read_take_sets(c, stacks, before, sets, *n))
		return rollup_read_corrupt(err, "bad label sets");
	c->begun |= *n != 0;
	c->left -= *n;
	if (c->left == 0 && (cursor_left(&c->stacks) || (c->labels && sets && cursor_left(&c->sets))))
		return rollup_read_corrupt(err, "bytes left over");
	return ERR_OK;
}

/* ---- values ---- */

enum err_code cells_values_open(
	struct cells_view *v, uint32_t column, struct cells_values *out, struct err *err)
{
	const struct cells_values_head *h = &v->columns[column];
	size_t bitmap = ((size_t)v->n + 7) / 8;
	enum err_code rc;

	assert(column < v->columns_n);
	*out = (struct cells_values){ .coding = h->coding, .factor = h->factor, .left = v->n };
	if (h->coding == CELLS_ZERO || h->coding == CELLS_SAME)
		return ERR_OK;
	if ((rc = rollup_read_open_frame(v, &v->frames[h->frame], &out->in, err)))
		return rc;
	if (h->coding == CELLS_SPARSE || h->coding == CELLS_SPARSE_SIGNED)
		out->bitmap = (const unsigned char *)cursor_bytes(&out->in, bitmap).ptr;
	return ERR_OK;
}

static bool rollup_read_take_sparse(
	struct cells_values *c, uint32_t n, uint64_t factor, int64_t *values)
{
	bool negative = c->coding == CELLS_SPARSE_SIGNED;
	int64_t some[64];

	for (uint32_t i = 0; i < n; i += 64) {
		uint32_t most = n - i < 64 ? n - i : 64, k = 0;
		uint64_t set = 0, rest;

		memcpy(&set, c->bitmap, (most + 7) / 8);
		c->bitmap += (most + 7) / 8;
		set = le64toh(set);
		if ((most < 64 && set >> most) ||
			!varints_values(&c->in, (uint32_t)__builtin_popcountll(set), factor, negative, some))
			return false;
		memset(values + i, 0, most * sizeof(*values));
		for (rest = set; rest; rest &= rest - 1)
			values[i + (unsigned)__builtin_ctzll(rest)] = some[k++];
	}
	return true;
}

static bool rollup_read_take_next(struct cells_values *c, uint32_t n, uint64_t factor, int64_t *out)
{
	switch (c->coding) {
	case CELLS_ZERO:
	case CELLS_SAME:
		for (uint32_t i = 0; i < n; i++)
			out[i] = c->coding == CELLS_SAME ? (int64_t)factor : 0;
		return true;
	case CELLS_PLAIN:
	case CELLS_SIGNED:
		return varints_values(&c->in, n, factor, c->coding == CELLS_SIGNED, out);
	case CELLS_SPARSE:
	case CELLS_SPARSE_SIGNED:
		return rollup_read_take_sparse(c, n, factor, out);
	case CELLS_WIDE:
	case CELLS_CODINGS:
		break;
	}
	return false;
}

static enum err_code rollup_read_done(struct cells_values *c, uint32_t n, bool ok, struct err *err)
{
	c->left -= n;
	return ok && (c->left || !cursor_left(&c->in)) ? ERR_OK :
													 rollup_read_corrupt(err, "bad values");
}

enum err_code cells_values_next(
	struct cells_values *c, uint32_t n, uint64_t times, int64_t *out, struct err *err)
{
	assert(n <= CELLS_BATCH && c->coding != CELLS_WIDE);
	return rollup_read_done(c, n, rollup_read_take_next(c, n, times, out), err);
}

enum err_code cells_values_next_wide(
	struct cells_values *c, uint32_t n, int128 *out, struct err *err)
{
	int64_t some[CELLS_BATCH];
	bool ok = true;

	assert(n <= CELLS_BATCH);
	if (c->coding == CELLS_WIDE) {
		for (uint32_t i = 0; i < n; i++) {
			uint128 v = cursor_varint128(&c->in), m = (v >> 1) + (v & 1);

			out[i] = (int128)(v & 1 ? -(m * c->factor) : m * c->factor);
		}
		ok = !c->in.bad;
	} else if ((ok = rollup_read_take_next(c, n, 1, some))) {
		for (uint32_t i = 0; i < n; i++)
			out[i] = (int128)((uint128)(int128)some[i] * c->factor);
	}
	return rollup_read_done(c, n, ok, err);
}
