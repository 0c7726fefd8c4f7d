#include "tsdb/columns/coding.h"

#include "tsdb/symbols/segvec.h"
#include <assert.h>

/* Reads a chunk cell by cell: rows as they went in, and the check of a whole chunk. */

static void chunk_read_know_parameters(struct chunk *c, uint32_t n)
{
	if (c->parameters_of == n)
		return;
	for (uint32_t m = 1; m <= n / 2; m++)
		c->parameters[m] = (uint8_t)chunk_bits_subset_parameter(n, m);
	c->parameters_of = n;
}

static enum err_code chunk_read_open_varints(struct chunk *c, const struct chunk_section *s,
	unsigned room, struct cursor *out, struct err *err)
{
	const unsigned char *bytes;
	enum err_code rc = chunk_section(c, s, room, &bytes, err);

	if (!rc)
		*out = cursor_of((struct str){ (const char *)bytes, s->raw });
	return rc;
}

/* The places of count of n rows. */
static bool column_reader_take_subset(
	struct bit_in *in, uint32_t n, uint32_t count, unsigned parameter, uint16_t *out)
{
	uint32_t coded = count > n / 2 ? n - count : count, i = 0, next = 0;
	uint64_t at = 0;

	for (uint32_t j = 1; j <= coded; j++, at++) {
		if (at >= n)
			return false;
		at += j < coded ? bits_take_gap(in, parameter) : bits_take_below(in, n - at);
		if (at >= n)
			return false;
		if (coded == count) {
			out[i++] = (uint16_t)at;
		} else {
			while (next < at)
				out[i++] = (uint16_t)next++;
			next++;
		}
	}
	while (coded != count && next < n)
		out[i++] = (uint16_t)next++;
	return true;
}

static uint32_t column_reader_coded(const struct column_reader *r, uint32_t count)
{
	return count > r->rows_n / 2 ? r->rows_n - count : count;
}

bool column_reader_places(struct column_reader *r, uint32_t count, uint16_t *out)
{
	if (!r->streams)
		return column_reader_take_subset(
			&r->places, r->rows_n, count, r->parameters[column_reader_coded(r, count)], out);
	memcpy(out, r->taken_places, count * sizeof(*out));
	r->taken_places += count;
	return true;
}

/* ---- cells from streams ---- */

static bool column_reader_reserve(struct chunk *c)
{
	size_t n = (size_t)c->keys_n + 1;

	c->key_order.keys = chunk_room(c, ROOM_ORDER, 2 * n * sizeof(*c->key_order.keys));
	c->key_order.listed = c->key_order.keys ? c->key_order.keys + n : NULL;
	c->key_order.classes = chunk_room(c, ROOM_CLASSES, n * sizeof(*c->key_order.classes));
	return c->key_order.keys && c->key_order.classes;
}

static enum err_code column_reader_take_places(
	struct column_reader *r, const struct chunk_order *o, uint32_t *starts, struct err *err)
{
	struct chunk *c = r->streams;
	uint64_t total = 0, most = c->samples_n * (r->coding->levels ? 2 : 1);
	struct bit_in in[STREAMS];
	uint16_t *out;

	for (uint32_t k = 0; k < c->keys_n; k++) {
		starts[k] = (uint32_t)total;
		total += r->n.counts[k];
	}
	/* A level of one row is two differences. */
	if (total > most)
		return chunk_corrupt(err, "more cells than samples");
	if (!(out = chunk_room(c, ROOM_CELL_PLACES, (total + 1) * sizeof(*out))))
		return err_nomem(err, "chunk");
	for (uint32_t k = 0; k < c->keys_n; k++)
		for (uint32_t i = 0; r->n.counts[k] == r->rows_n && i < r->rows_n; i++)
			out[starts[k] + i] = (uint16_t)i;
	for (unsigned s = 0; s < STREAMS; s++)
		in[s] = chunk_streams_reader(&r->places_streams, s);
	for (uint32_t i = 0; i < o->n; i++) {
		uint32_t key = o->keys[i], count = r->n.counts[key];

		if (!column_reader_take_subset(&in[i % STREAMS], r->rows_n, count,
				r->parameters[column_reader_coded(r, count)], out + starts[key]))
			return chunk_corrupt(err, "bad cells");
	}
	for (unsigned s = 0; s < STREAMS; s++)
		if (!bits_at_end(&in[s]))
			return chunk_corrupt(err, "bad cells");
	r->taken_places = out;
	return ERR_OK;
}

static enum err_code column_reader_take_values(
	struct column_reader *r, const struct chunk_order *o, uint32_t *starts, struct err *err)
{
	struct chunk *c = r->streams;
	struct bit_in in[STREAMS];
	uint64_t total = 0;
	int64_t *out;

	for (uint32_t k = 0; k < c->keys_n; k++) {
		starts[k] = (uint32_t)total;
		total += r->n.counts[k] > 1 && r->n.rests[k] ? r->n.counts[k] : 0;
	}
	if (!(out = chunk_room(c, ROOM_CELL_VALUES, (total + 1) * sizeof(*out))))
		return err_nomem(err, "chunk");
	for (unsigned s = 0; s < STREAMS; s++)
		in[s] = chunk_streams_reader(&r->bits_streams, s);
	for (uint32_t i = 0; i < o->n; i++) {
		uint32_t key = o->keys[i];

		if (!counted_take_bits(
				&in[i % STREAMS], r->n.counts[key], r->n.rests[key], out + starts[key]))
			return chunk_corrupt(err, "bad cells");
	}
	for (unsigned s = 0; s < STREAMS; s++)
		if (!bits_at_end(&in[s]))
			return chunk_corrupt(err, "bad cells");
	r->taken_values = out;
	return ERR_OK;
}

static enum err_code column_reader_take_streams(struct column_reader *r, struct err *err)
{
	struct chunk *c = r->streams;
	struct chunk_order *o = &c->key_order;
	uint32_t *starts = chunk_room(c, ROOM_STARTS, ((size_t)c->keys_n + 1) * sizeof(*starts));
	enum err_code rc;

	if (!starts)
		return err_nomem(err, "chunk");
	chunk_order_places(o, r->n.counts, c->keys_n, r->rows_n);
	if ((rc = column_reader_take_places(r, o, starts, err)) || !r->coding->values_are_bits)
		return rc;
	chunk_order_values(o, r->n.counts, r->n.rests, c->keys_n, r->rows_n);
	return column_reader_take_values(r, o, starts, err);
}

enum err_code column_reader_open(
	struct chunk *c, uint32_t column, enum reading how, struct column_reader *out, struct err *err)
{
	const struct chunk_column *own = &c->columns[column], *col = own;
	const struct chunk_section *places = &c->columns[own->places].sections[SECTION_PLACES];
	const unsigned char *bytes;
	enum err_code rc;

	assert(own->known && own->base == column && own->coding != &coding_zero);
	out->like = own->like != column;
	if (out->like) {
		column = own->like;
		col = &c->columns[column];
		if ((rc = chunk_read_open_varints(c, &own->sections[SECTION_VALUES],
				 ROOM_SECTIONS + SECTION_VALUES, &out->raw, err)))
			return rc;
	}
	out->coding = col->coding;
	out->flags = col->flags;
	out->rows_n = c->rows_n - col->coding->levels;
	out->anew = col->coding->levels ? 0 : c->anew;
	chunk_read_know_parameters(c, out->rows_n);
	out->parameters = c->parameters;
	if ((rc = chunk_counts(c, column, &out->n, err)) ||
		(rc = chunk_section(c, places, ROOM_SECTIONS + SECTION_PLACES, &bytes, err)))
		return rc;
	out->places = bits_open(bytes, places->raw);
	out->units = NULL;
	if (own->flags & COLUMN_SCALED &&
		(rc = chunk_units(c, (uint32_t)(own - c->columns), &out->n, &out->units, err)))
		return rc;
	if ((rc = chunk_read_open_varints(c, &col->sections[SECTION_VALUES],
			 out->like ? ROOM_REF_VALUES : ROOM_SECTIONS + SECTION_VALUES, &out->values, err)))
		return rc;
	out->bits = bits_open(out->values.at, col->sections[SECTION_VALUES].raw);
	out->streams = c->streams ? c : NULL;
	if (!c->streams)
		return ERR_OK;
	if (!column_reader_reserve(c))
		return err_nomem(err, "chunk");
	if (!chunk_streams_open(bytes, places->raw, &out->places_streams) ||
		(out->coding->values_are_bits &&
			!chunk_streams_open(
				out->values.at, col->sections[SECTION_VALUES].raw, &out->bits_streams)))
		return chunk_corrupt(err, "bad streams");
	return how == READ_CELLS ? column_reader_take_streams(out, err) : ERR_OK;
}

bool column_reader_done(const struct column_reader *r)
{
	if (!r->streams && !bits_at_end(&r->places))
		return false;
	if (r->like && (r->raw.bad || r->raw.at != r->raw.end))
		return false;
	if (r->coding->values_are_bits)
		return r->streams || bits_at_end(&r->bits);
	return !r->values.bad && r->values.at == r->values.end;
}

bool column_reader_cells(struct column_reader *r, uint32_t key, uint16_t *places, int64_t *values)
{
	uint32_t n = r->n.counts[key];
	struct key_unit u;
	uint64_t sum = 0, was = 0, is;
	bool anew = false;

	if (!column_reader_places(r, n, places) || !r->coding->take_values(r, key, &n, values))
		return false;
	if (!r->units || n == 0)
		return true;
	u = r->units[key];
	for (uint32_t i = 0; i < n && r->like && !u.unit; i++)
		values[i] = str_unzigzag(cursor_varint(&r->raw));
	for (uint32_t i = 0; i < n && u.unit; i++) {
		if (r->anew && places[i] >= r->anew && !anew) {
			anew = true;
			sum = was = u.phase = 0;
		}
		sum += (uint64_t)values[i];
		is = key_unit_times(&u, sum);
		values[i] = (int64_t)(is - was);
		was = is;
	}
	return true;
}

/* ---- rows ---- */

struct unpacking {
	struct chunk *c;
	uint64_t *present; /* per key a bit per row */
	size_t words; /* per key */
	uint32_t at[CHUNK_ROWS_MAX]; /* entries of each row so far */
	/* The current key: its rows with values that are not 0, ascending, and the values by row. */
	uint16_t places[CHUNK_ROWS_MAX];
	uint32_t n;
	int64_t values[CHUNK_ROWS_MAX];
	/* As read. Not on the stack: the compiler would clear them for each key. */
	uint16_t cell_places[CHUNK_ROWS_MAX];
	int64_t cells[CHUNK_ROWS_MAX];
	uint64_t *totals; /* of the rows of a column, its factor apart */
	struct cursor sums; /* as stored, of its keys */
	struct row *rows;
};

/* The cells of the next key into places and values; those of levels in each row until the next. */
static bool chunk_read_take_key(
	struct unpacking *u, struct column_reader *r, uint32_t key, uint64_t factor)
{
	const uint16_t *places = u->cell_places;
	const int64_t *cells = u->cells, *cell = cells;
	uint32_t n = r->n.counts[key], at = 0, until;
	uint64_t level = 0;

	if (!column_reader_cells(r, key, u->cell_places, u->cells))
		return false;
	u->n = 0;
	if (!r->coding->levels) {
		for (uint32_t i = 0; i < n; i++) {
			u->places[u->n] = places[i];
			u->values[places[i]] = (int64_t)((uint64_t)cells[i] * factor);
			u->n += cells[i] != 0; /* of one like another it may be */
		}
		return true;
	}
	if (r->n.rests[key])
		level = (uint64_t)*cell++;
	for (uint32_t i = 0; i <= n; i++) {
		until = i < n ? places[i] + 1u : u->c->rows_n;
		for (; at < until; at++) {
			u->places[u->n] = (uint16_t)at;
			u->values[at] = (int64_t)(level * factor);
			u->n += u->values[at] != 0;
		}
		level += i < n ? (uint64_t)cell[i] : 0;
	}
	return true;
}

/* Calls each for every key of a column, with its values times factor in u; they are 0 again
 * afterwards. */
static enum err_code chunk_read_each_key(struct unpacking *u, uint32_t column, uint64_t factor,
	bool (*each)(struct unpacking *u, uint32_t column, uint32_t key), struct err *err)
{
	struct chunk *c = u->c;
	uint32_t base = c->columns[column].base;
	struct column_reader r;
	enum err_code rc;

	if (c->columns[base].coding == &coding_zero)
		return ERR_OK;
	if ((rc = column_reader_open(c, base, READ_CELLS, &r, err)))
		return rc;
	for (uint32_t k = 0; k < c->keys_n; k++) {
		if (!chunk_read_take_key(u, &r, k, factor) || !each(u, column, k))
			return chunk_corrupt(err, "bad cells");
		for (uint32_t i = 0; i < u->n; i++)
			u->values[u->places[i]] = 0;
	}
	return column_reader_done(&r) ? ERR_OK : chunk_corrupt(err, "bad cells");
}

static bool chunk_read_mark_present(struct unpacking *u, uint32_t column, uint32_t key)
{
	uint64_t *present = u->present + key * u->words;

	for (uint32_t i = 0; i < u->n; i++) {
		uint64_t bit = UINT64_C(1) << (u->places[i] & 63);

		/* Entries that are all 0 are listed where nothing else is. */
		if (column == u->c->columns_n && present[u->places[i] / 64] & bit)
			return false;
		present[u->places[i] / 64] |= bit;
	}
	return true;
}

/* Room for a bit per key and row: none is there yet. */
static enum err_code chunk_read_clear_present(struct unpacking *u, struct err *err)
{
	struct chunk *c = u->c;

	u->words = (c->rows_n + 63) / 64;
	u->present = chunk_room(c, ROOM_PRESENT, (c->keys_n * u->words + 1) * sizeof(*u->present));
	if (!u->present)
		return err_nomem(err, "chunk");
	memset(u->present, 0, c->keys_n * u->words * sizeof(*u->present));
	return ERR_OK;
}

/* A row must have as many keys as its head says, and every key is in a row. */
static enum err_code chunk_read_count_present(struct unpacking *u, struct err *err)
{
	struct chunk *c = u->c;

	memset(u->at, 0, sizeof(u->at));
	for (uint32_t k = 0; k < c->keys_n; k++) {
		uint64_t any = 0;

		for (size_t w = 0; w < u->words; w++) {
			uint64_t set = u->present[k * u->words + w];

			any |= set;
			for (; set; set &= set - 1)
				u->at[w * 64 + (unsigned)__builtin_ctzll(set)]++;
		}
		if (!any)
			return chunk_corrupt(err, "an entry of no row");
	}
	for (uint32_t r = 0; r < c->rows_n; r++)
		if (u->at[r] != c->rows[r].n)
			return chunk_corrupt(err, "wrong number of entries");
	return ERR_OK;
}

/* Collects the keys of each row. */
static enum err_code chunk_read_find_present(struct unpacking *u, struct err *err)
{
	struct chunk *c = u->c;
	enum err_code rc = chunk_read_clear_present(u, err);

	for (uint32_t k = 0; !rc && k <= c->columns_n; k++)
		if (c->columns[k].base == k)
			rc = chunk_read_each_key(u, k, 1, chunk_read_mark_present, err);
	return rc ? rc : chunk_read_count_present(u, err);
}

/* Rows with room for their arrays. */
static enum err_code chunk_read_lay_out(struct unpacking *u, struct err *err)
{
	struct chunk *c = u->c;
	size_t n = (size_t)c->samples_n, at = 0;
	bool labels = c->key_sets;
	uint32_t *ids;
	int64_t *values;

	u->rows = chunk_room(c, ROOM_UNPACKED, ((size_t)c->rows_n + 1) * sizeof(*u->rows));
	ids = chunk_room(c, ROOM_UNPACKED_IDS, (n + 1) * (labels ? 2 : 1) * sizeof(*ids));
	values = chunk_room(c, ROOM_UNPACKED_VALUES, (n * c->columns_n + 1) * sizeof(*values));
	if (!u->rows || !ids || !values)
		return err_nomem(err, "chunk");
	memset(values, 0, n * c->columns_n * sizeof(*values));
	for (uint32_t r = 0; r < c->rows_n; at += c->rows[r++].n)
		u->rows[r] = (struct row){ .header = c->rows[r].header,
			.interval_ns = c->interval_ns,
			.time_nanos = c->rows[r].time_nanos,
			.duration_nanos = c->rows[r].duration_nanos,
			.period = c->rows[r].period,
			.n = c->rows[r].n,
			.columns_n = c->columns_n,
			.stacks = ids + at,
			.label_sets = labels ? ids + n + at : NULL,
			.values = values + at * c->columns_n };
	memset(u->at, 0, sizeof(u->at));
	for (uint32_t k = 0; k < c->keys_n; k++)
		for (size_t w = 0; w < u->words; w++)
			for (uint64_t set = u->present[k * u->words + w]; set; set &= set - 1) {
				uint32_t r = (uint32_t)(w * 64 + (unsigned)__builtin_ctzll(set));
				size_t i = (size_t)(u->rows[r].stacks - ids) + u->at[r]++;

				ids[i] = c->key_stacks[k];
				if (labels)
					ids[n + i] = c->key_sets[k];
			}
	return ERR_OK;
}

static bool chunk_read_put_values(struct unpacking *u, uint32_t column, uint32_t key)
{
	int64_t *all = u->c->rooms[ROOM_UNPACKED_VALUES].at;

	for (size_t w = 0; w < u->words; w++)
		for (uint64_t set = u->present[key * u->words + w]; set; set &= set - 1) {
			uint32_t r = (uint32_t)(w * 64 + (unsigned)__builtin_ctzll(set));
			const struct row *row = &u->rows[r];

			all[row->values - all + (ptrdiff_t)((size_t)column * row->n + u->at[r]++)] =
				u->values[r];
		}
	return true;
}

enum err_code chunk_unpack(struct chunk *c, const struct row **rows, struct err *err)
{
	struct unpacking u = { .c = c };
	enum err_code rc;

	if ((rc = chunk_ids(c, err)) || (rc = chunk_read_find_present(&u, err)) ||
		(rc = chunk_read_lay_out(&u, err)))
		return rc;
	for (uint32_t k = 0; !rc && k < c->columns_n; k++) {
		memset(u.at, 0, sizeof(u.at));
		rc = chunk_read_each_key(&u, k, c->columns[k].factor, chunk_read_put_values, err);
	}
	if (!rc)
		*rows = u.rows;
	return rc;
}

/* ---- checks and marks ---- */

/* A column that has cells of its own: which rows have the key, what they add up to. */
static bool chunk_read_check_key(struct unpacking *u, uint32_t column, uint32_t key)
{
	const struct chunk_column *col = &u->c->columns[column];
	__int128 sum = 0, said;
	uint64_t v;

	if (!chunk_read_mark_present(u, column, key))
		return false;
	for (uint32_t i = 0; i < u->n; i++) {
		v = (uint64_t)u->values[u->places[i]];
		u->totals[u->places[i]] += v;
		sum += (int64_t)(v * col->factor);
	}
	if (!(col->flags & COLUMN_SUMS) || !u->n)
		return true;
	v = cursor_varint(&u->sums);
	said = col->flags & COLUMN_SIGNED ? str_unzigzag(v) : (int64_t)v;
	return said * (__int128)col->factor == sum;
}

static enum err_code chunk_read_check_column(struct unpacking *u, uint32_t column, struct err *err)
{
	struct chunk *c = u->c;
	const struct chunk_column *col = &c->columns[column];
	const struct chunk_section *s = &col->sections[SECTION_SUMS];
	const unsigned char *bytes;
	enum err_code rc;

	u->sums = (struct cursor){ 0 };
	if (col->flags & COLUMN_SUMS) {
		if ((rc = chunk_section(c, s, ROOM_SECTIONS + SECTION_SUMS, &bytes, err)))
			return rc;
		u->sums = cursor_of((struct str){ (const char *)bytes, s->raw });
	}
	if ((rc = chunk_read_each_key(u, column, 1, chunk_read_check_key, err)))
		return rc;
	return u->sums.bad || u->sums.at != u->sums.end ? chunk_corrupt(err, "bad sums") : ERR_OK;
}

/* The totals in front are those of the cells; a multiple's are its base's by its factor. */
static enum err_code chunk_read_check_totals(
	const struct chunk *c, const uint64_t *totals, struct err *err)
{
	for (uint32_t k = 0; k < c->columns_n; k++) {
		const struct chunk_column *col = &c->columns[k];
		const uint64_t *of_base = totals + (size_t)col->base * c->rows_n;

		for (uint32_t r = 0; r < c->rows_n; r++)
			if (of_base[r] * col->factor != (uint64_t)col->totals[r])
				return chunk_corrupt(err, "wrong total");
	}
	return ERR_OK;
}

enum err_code chunk_check(struct chunk *c, struct err *err)
{
	struct unpacking u = { .c = c };
	size_t n = ((size_t)c->columns_n + 1) * c->rows_n;
	uint64_t *totals = chunk_room(c, ROOM_CHECKED, (n + 1) * sizeof(*totals));
	enum err_code rc;

	if (!totals)
		return err_nomem(err, "chunk");
	memset(totals, 0, n * sizeof(*totals));
	if ((rc = chunk_ids(c, err)) || (rc = chunk_read_clear_present(&u, err)))
		return rc;
	for (uint32_t k = 0; !rc && k <= c->columns_n; k++) {
		u.totals = totals + (size_t)k * c->rows_n;
		if (c->columns[k].base == k)
			rc = chunk_read_check_column(&u, k, err);
	}
	if (rc || (rc = chunk_read_count_present(&u, err)))
		return rc;
	return chunk_read_check_totals(c, totals, err);
}

enum err_code chunk_mark_ids(
	struct chunk *c, struct bits *stacks, struct bits *label_sets, struct err *err)
{
	enum err_code rc = chunk_ids(c, err);

	if (rc || c->keys_n == 0)
		return rc;
	if ((stacks && !bits_reserve(stacks, c->stack_max)) ||
		(label_sets && !bits_reserve(label_sets, c->set_max)))
		return err_nomem(err, "chunk");
	for (uint32_t k = 0; stacks && k < c->keys_n; k++)
		bits_set(stacks, c->key_stacks[k]);
	for (uint32_t k = 0; label_sets && k < c->keys_n; k++)
		bits_set(label_sets, c->key_sets ? c->key_sets[k] : 0);
	return ERR_OK;
}
