#include "tsdb/columns/chunk.h"

#include <assert.h>
#include <stdlib.h>

#include "tsdb/columns/coding.h"

/*
 * A chunk's frame and heads, and its sections into memory. What is claimed is compared with the
 * bytes there are before anything is allocated for it.
 */

enum err_code chunk_corrupt(struct err *err, const char *what)
{
	return err_set(err, ERR_CORRUPT, "chunk: %s", what);
}

struct chunk *chunk_open(void)
{
	struct chunk *c = calloc(1, sizeof(*c));

	if (c && !(c->zstd = ZSTD_createDCtx())) {
		free(c);
		return NULL;
	}
	return c;
}

void chunk_close(struct chunk *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < CHUNK_ROOMS; i++)
		free(c->rooms[i].at);
	ZSTD_freeDCtx(c->zstd);
	free(c);
}

void *chunk_room(struct chunk *c, unsigned room, size_t bytes)
{
	struct room *r = &c->rooms[room];

	if (bytes > r->cap || !r->at) {
		free(r->at);
		r->cap = bytes + bytes / 4 + 64;
		if (!(r->at = malloc(r->cap)))
			r->cap = 0;
	}
	return r->at;
}

enum err_code chunk_section(struct chunk *c, const struct chunk_section *s, unsigned room,
	const unsigned char **out, struct err *err)
{
	unsigned char *to = chunk_room(c, room, s->raw + BITS_PAD);

	if (!to)
		return err_nomem(err, "chunk");
	if (s->stored == s->raw) {
		if (s->raw)
			memcpy(to, s->at, s->raw);
	} else if (ZSTD_decompressDCtx(c->zstd, to, s->raw, s->at, s->stored) != s->raw) {
		return chunk_corrupt(err, "bad compression");
	}
	memset(to + s->raw, 0, BITS_PAD);
	*out = to;
	return ERR_OK;
}

static bool chunk_take_section(struct cursor *in, struct chunk_section *s)
{
	uint64_t raw = cursor_varint(in), stored = raw ? cursor_varint(in) : 0;

	if (stored > raw || stored > cursor_left(in) || raw > (uint64_t)stored * CHUNK_INFLATION_MAX)
		return false;
	s->at = in->at;
	s->stored = (size_t)stored;
	s->raw = (size_t)raw;
	in->at += stored;
	return !in->bad;
}

/* ---- columns ---- */

bool chunk_take_reference(const struct chunk *c, struct cursor *in, uint32_t *out)
{
	*out = cursor_u32(in);
	return !in->bad && *out <= c->columns_n && c->columns[*out].known &&
		c->columns[*out].base == *out && c->columns[*out].coding != &coding_zero;
}

/* The column whose places it has. */
static bool chunk_take_places(const struct chunk *c, struct chunk_column *to, struct cursor *in)
{
	const struct chunk_column *ref;

	if (!chunk_take_reference(c, in, &to->places))
		return false;
	ref = &c->columns[to->places];
	return !(ref->flags & COLUMN_SHARED) && ref->coding->sections & SECTION_BIT(SECTION_PLACES) &&
		ref->coding->levels == to->coding->levels;
}

static bool chunk_take_column(struct chunk *c, uint32_t column, struct cursor *in)
{
	struct chunk_column *to = &c->columns[column];
	struct str byte = cursor_bytes(in, 1);
	unsigned sections;

	if (!byte.len || to->known)
		return false;
	to->flags = (unsigned char)byte.ptr[0];
	to->coding = coding_of(to->flags);
	to->base = to->places = to->like = column;
	if (!to->coding)
		return false;
	if (to->coding == &coding_zero) {
		to->known = true;
		return true;
	}
	to->factor = cursor_varint(in);
	if (to->coding->take_reference && !to->coding->take_reference(c, to, in))
		return false;
	if (to->flags & COLUMN_SHARED && !chunk_take_places(c, to, in))
		return false;
	sections = coding_sections(to->coding, to->flags);
	for (unsigned s = 0; s < COLUMN_SECTIONS; s++)
		if (sections & SECTION_BIT(s) && !chunk_take_section(in, &to->sections[s]))
			return false;
	if (sections & SECTION_BIT(SECTION_TOKENS) && to->sections[SECTION_TOKENS].raw != c->keys_n)
		return false;
	to->known = true;
	return to->factor != 0 && !in->bad;
}

/* Each with its number in front. */
static bool chunk_take_columns(struct chunk *c, struct cursor *in)
{
	memset(c->columns, 0, sizeof(c->columns[0]) * (c->columns_n + 1));
	for (uint32_t i = 0; i <= c->columns_n; i++) {
		c->order[i] = cursor_u32(in);
		if (in->bad || c->order[i] > c->columns_n || !chunk_take_column(c, c->order[i], in))
			return false;
	}
	return true;
}

/* ---- heads ---- */

static bool chunk_take_rows(struct chunk *c, struct cursor *in)
{
	struct chunk_row *rows = c->rows;
	uint64_t before = -(uint64_t)c->interval_ns, v;

	for (uint32_t r = 0; r < c->rows_n; r++) {
		before += (uint64_t)c->interval_ns + (uint64_t)str_unzigzag(cursor_varint(in));
		rows[r].ts_ns = (int64_t)before;
		if (r && rows[r].ts_ns < rows[r - 1].ts_ns)
			return false;
	}
	for (uint32_t r = 0; r < c->rows_n; r++)
		rows[r].time_nanos = (int64_t)((uint64_t)rows[r].ts_ns -
			(uint64_t)str_unzigzag(cursor_varint(in)));
	v = 0;
	for (uint32_t r = 0; r < c->rows_n; r++)
		rows[r].duration_nanos = (int64_t)(v += (uint64_t)str_unzigzag(cursor_varint(in)));
	v = 0;
	for (uint32_t r = 0; r < c->rows_n; r++)
		rows[r].period = (int64_t)(v += (uint64_t)str_unzigzag(cursor_varint(in)));
	v = 0;
	for (uint32_t r = 0; r < c->rows_n; r++) {
		v += (uint64_t)str_unzigzag(cursor_varint(in));
		rows[r].header = (uint32_t)v;
		if (v > UINT32_MAX)
			return false;
	}
	v = 0;
	for (uint32_t r = 0; r < c->rows_n; r++) {
		v += (uint64_t)str_unzigzag(cursor_varint(in));
		rows[r].n = (uint32_t)v;
		if (v > CHUNK_SAMPLES_MAX)
			return false;
		c->samples_n += v;
	}
	return !in->bad;
}

static bool chunk_take_totals(struct chunk *c, int64_t *totals, struct cursor *in)
{
	for (uint32_t i = 0; i <= c->columns_n; i++) {
		uint32_t k = c->order[i];
		struct chunk_column *to = &c->columns[k];
		const int64_t *base;
		uint64_t v = 0, was = to->base == k ? 0 : c->columns[to->base].factor;

		if (k == c->columns_n)
			continue;
		if (to->base == c->columns_n)
			return false;
		to->totals = totals;
		totals += c->rows_n;
		base = c->columns[to->base].totals;
		for (uint32_t r = 0; r < c->rows_n; r++) {
			if (to->coding == &coding_zero) {
				to->totals[r] = 0;
			} else if (to->base == k) {
				v += (uint64_t)str_unzigzag(cursor_varint(in));
				to->totals[r] = (int64_t)(v * to->factor);
			} else {
				/* Exact for what chunk_encode made; bytes of others may say
				 * anything. */
				v = base[r] < 0 ? -(-(uint64_t)base[r] / was) : (uint64_t)base[r] / was;
				to->totals[r] = (int64_t)(v * to->factor);
			}
		}
	}
	return !in->bad && in->at == in->end;
}

static enum err_code chunk_parse_heads(struct chunk *c, struct err *err)
{
	const unsigned char *bytes;
	int64_t *totals;
	struct cursor in;
	enum err_code rc;

	if (c->heads.raw < (size_t)c->rows_n * 6)
		return chunk_corrupt(err, "bad heads");
	if ((rc = chunk_section(c, &c->heads, ROOM_HEADS, &bytes, err)))
		return rc;
	c->rows = chunk_room(c, ROOM_ROWS, ((size_t)c->rows_n + 1) * sizeof(*c->rows));
	totals = chunk_room(c, ROOM_TOTALS, ((size_t)c->rows_n * c->columns_n + 1) * sizeof(*totals));
	if (!c->rows || !totals)
		return err_nomem(err, "chunk");
	in = cursor_of((struct str){ (const char *)bytes, c->heads.raw });
	if (!chunk_take_rows(c, &in) || !chunk_take_totals(c, totals, &in))
		return chunk_corrupt(err, "bad heads");
	if (c->samples_n > CHUNK_SAMPLES_MAX || c->samples_n * c->columns_n > CHUNK_VALUES_MAX ||
		c->keys_n > c->samples_n || c->samples_n > (uint64_t)c->bytes.len * CHUNK_SAMPLES_PER_BYTE)
		return chunk_corrupt(err, "more samples than its bytes can hold");
	return ERR_OK;
}

enum err_code chunk_parse(struct chunk *c, struct str bytes, struct err *err)
{
	struct cursor in = cursor_of(bytes);
	bool ok;

	c->bytes = bytes;
	c->ids_known = c->slots_known = false;
	c->samples_n = 0;
	if (bytes.len < 2 || in.at[0] < CHUNK_VERSION_ONE_STREAM || in.at[0] > CHUNK_VERSION ||
		in.at[1] & ~(CHUNK_LABELS | CHUNK_ANEW))
		return chunk_corrupt(err, "unknown version");
	c->streams = in.at[0] == CHUNK_VERSION;
	c->flags = in.at[1];
	in.at += 2;
	c->interval_ns = (int64_t)cursor_varint(&in);
	c->rows_n = cursor_u32(&in);
	c->columns_n = cursor_u32(&in);
	c->keys_n = cursor_u32(&in);
	c->stack_max = cursor_u32(&in);
	c->set_max = cursor_u32(&in);
	c->anew = c->flags & CHUNK_ANEW ? cursor_u32(&in) : 0;
	if (in.bad || c->rows_n > CHUNK_ROWS_MAX || c->columns_n > ROW_COLUMNS_MAX)
		return chunk_corrupt(err, "too many rows or columns");
	if (c->flags & CHUNK_ANEW && (c->anew == 0 || c->anew >= c->rows_n))
		return chunk_corrupt(err, "begins again at no row");
	ok = chunk_take_section(&in, &c->heads) && chunk_take_section(&in, &c->stacks) &&
		(!(c->flags & CHUNK_LABELS) || chunk_take_section(&in, &c->sets));
	if (!ok || c->stacks.raw < c->keys_n ||
		(c->flags & CHUNK_LABELS ? c->sets.raw < c->keys_n : c->set_max != 0))
		return chunk_corrupt(err, "cut short");
	if (!chunk_take_columns(c, &in))
		return chunk_corrupt(err, "bad column");
	if (in.at != in.end)
		return chunk_corrupt(err, "bytes left over");
	return chunk_parse_heads(c, err);
}

/* ---- ids ---- */

#define HIGH_BITS UINT64_C(0x8080808080808080)

/* Running sums of gaps, eight of one byte at once. */
static bool chunk_take_sums(struct cursor *in, uint32_t n, uint32_t *out)
{
	uint64_t sum = 0, any = 0, gap, w;
	uint32_t i = 0;

	while (n - i >= 8 && in->end - in->at >= 8) {
		memcpy(&w, in->at, sizeof(w));
		w = le64toh(w);
		if (!(w & HIGH_BITS)) {
			for (unsigned k = 0; k < 8; k++)
				out[i + k] = (uint32_t)(sum += w >> (8 * k) & 0x7f);
			in->at += 8;
			i += 8;
			continue;
		}
		for (unsigned k = (unsigned)__builtin_ctzll(w & HIGH_BITS) / 8; k; k--, i++)
			out[i] = (uint32_t)(sum += *in->at++);
		any |= gap = cursor_varint(in);
		out[i++] = (uint32_t)(sum += gap);
	}
	while (i < n) {
		any |= gap = cursor_varint(in);
		out[i++] = (uint32_t)(sum += gap);
	}
	return !in->bad && in->at == in->end && (any | sum) <= UINT32_MAX;
}

static bool chunk_take_sets(
	struct cursor *in, uint32_t n, const uint32_t *stacks, uint32_t max, uint32_t *out)
{
	uint64_t set = 0, gap, most = 0;

	for (uint32_t i = 0; i < n; i++) {
		gap = cursor_varint(in);
		set = i && stacks[i] == stacks[i - 1] ? set + gap : gap;
		if (gap > UINT32_MAX || set > UINT32_MAX)
			return false;
		most = set > most ? set : most;
		out[i] = (uint32_t)set;
	}
	return !in->bad && in->at == in->end && most == max;
}

enum err_code chunk_ids(struct chunk *c, struct err *err)
{
	uint32_t *stacks, *sets = NULL;
	const unsigned char *bytes;
	struct cursor in;
	enum err_code rc;

	if (c->ids_known)
		return ERR_OK;
	if ((rc = chunk_section(c, &c->stacks, ROOM_IDS, &bytes, err)))
		return rc;
	if (!(stacks = chunk_room(c, ROOM_STACKS, ((size_t)c->keys_n + 1) * sizeof(*stacks))))
		return err_nomem(err, "chunk");
	in = cursor_of((struct str){ (const char *)bytes, c->stacks.raw });
	if (!chunk_take_sums(&in, c->keys_n, stacks) ||
		c->stack_max != (c->keys_n ? stacks[c->keys_n - 1] : 0))
		return chunk_corrupt(err, "bad stacks");
	if (c->flags & CHUNK_LABELS) {
		if ((rc = chunk_section(c, &c->sets, ROOM_IDS, &bytes, err)))
			return rc;
		if (!(sets = chunk_room(c, ROOM_SETS, ((size_t)c->keys_n + 1) * sizeof(*sets))))
			return err_nomem(err, "chunk");
		in = cursor_of((struct str){ (const char *)bytes, c->sets.raw });
		if (!chunk_take_sets(&in, c->keys_n, stacks, c->set_max, sets))
			return chunk_corrupt(err, "bad label sets");
	}
	c->key_stacks = stacks;
	c->key_sets = sets;
	c->ids_known = true;
	return ERR_OK;
}

/* ---- what a chunk says of itself ---- */

bool chunk_has_streams(const struct chunk *c)
{
	return c->streams;
}

uint32_t chunk_rows_n(const struct chunk *c)
{
	return c->rows_n;
}

uint32_t chunk_columns_n(const struct chunk *c)
{
	return c->columns_n;
}

int64_t chunk_interval_ns(const struct chunk *c)
{
	return c->interval_ns;
}

const struct chunk_row *chunk_rows(const struct chunk *c)
{
	return c->rows;
}

const int64_t *chunk_totals(const struct chunk *c, uint32_t column)
{
	assert(column < c->columns_n);
	return c->columns[column].totals;
}

uint32_t chunk_stack_max(const struct chunk *c)
{
	return c->stack_max;
}

uint32_t chunk_label_set_max(const struct chunk *c)
{
	return c->set_max;
}

enum err_code chunk_measure(struct chunk *c, struct chunk_sizes *out, struct err *err)
{
	*out = (struct chunk_sizes){ .ids = c->stacks.stored,
		.total = c->bytes.len,
		.rows = c->rows_n,
		.entries = c->keys_n,
		.samples = c->samples_n };
	if (c->flags & CHUNK_LABELS)
		out->ids += c->sets.stored;
	for (uint32_t k = 0; k <= c->columns_n; k++) {
		const struct chunk_section *s = c->columns[k].sections;

		out->sums += s[SECTION_TOKENS].stored + s[SECTION_EXTRA].stored;
		out->sums += s[SECTION_SUMS].stored;
		out->positions += s[SECTION_PLACES].stored;
		out->values += s[SECTION_VALUES].stored + s[SECTION_UNITS].stored +
			s[SECTION_PHASES].stored;
	}
	out->heads = out->total - out->ids - out->sums - out->positions - out->values;
	return ERR_OK;
}
