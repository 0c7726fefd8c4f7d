#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"

#include "tsdb/rollup/rollup_internal.h"

/*
 * The builder adds up rows and rollups. Every part of it is a sum, a minimum, a maximum or a set,
 * so the order of adding does not matter. Encoding sorts first, so equal content gives equal bytes.
 *
 * After an error the builder holds a part of the addition, and can only be cleared.
 */
enum err_code rollup_builder_open(struct partition *p, struct rollup_builder **out, struct err *err)
{
	struct rollup_builder *b = calloc(1, sizeof(*b));

	if (!b || !(b->scratch = rollup_view_open())) {
		free(b);
		return err_nomem(err, "rollup");
	}
	b->p = p;
	*out = b;
	return ERR_OK;
}

void rollup_builder_clear(struct rollup_builder *b)
{
	for (uint32_t i = 0; i < b->lists_n; i++) {
		for (uint32_t k = 0; k < b->lists[i].l.headers_n; k++)
			bits_clear(&b->headers, b->lists[i].l.headers[k]);
		free(b->lists[i].l.headers);
	}
	for (uint32_t i = 0; i < b->columns_n; i++)
		accum_close(b->columns[i].pending);
	b->lists_n = b->columns_n = 0;
	b->pending = b->pending_labels = b->missed = false;
	b->hour = (struct span_hour){ 0 };
	rollup_table_clear(&b->table);
}

void rollup_builder_close(struct rollup_builder *b)
{
	if (!b)
		return;
	rollup_builder_clear(b);
	bits_release(&b->headers);
	free(b->lists);
	free(b->columns);
	rollup_table_release(&b->table);
	cells_encoder_release(&b->encoder);
	rollup_view_close(b->scratch);
	free(b);
}

bool rollup_builder_empty(const struct rollup_builder *b)
{
	return b->lists_n == 0;
}

/* ---- lists and columns ---- */

static enum err_code rollup_build_column_of(struct rollup_builder *b, const struct sym_header *h,
	uint32_t at, uint16_t *out, struct err *err)
{
	const struct sym_type *type = &h->types[at];
	uint32_t i = 0;

	for (; i < b->columns_n; i++)
		if (b->columns[i].type.type == type->type && b->columns[i].type.unit == type->unit &&
			(b->columns[i].type.kind == KIND_DELTA) == (type->kind == KIND_DELTA) &&
			b->columns[i].period_type == h->period_type &&
			b->columns[i].period_unit == h->period_unit)
			break;
	*out = (uint16_t)i;
	if (i < b->columns_n)
		return ERR_OK;
	if (i == ROLLUP_COLUMNS_MAX)
		return err_set(err, ERR_LIMIT, "rollup: more than %u profile types", ROLLUP_COLUMNS_MAX);
	if (!array_room(&b->columns, i, 1, &b->columns_cap) || !rollup_table_column(&b->table))
		return err_nomem(err, "rollup");
	b->columns[b->columns_n++] = (struct builder_column){ .type = *type,
		.period_type = h->period_type,
		.period_unit = h->period_unit,
		.sums.gauge = type->kind != KIND_DELTA };
	assert(b->columns_n == b->table.columns_n);
	return ERR_OK;
}

/* The list of a header that is in the partition. If a header has a type twice, db_sum reads the
 * first. */
static enum err_code rollup_build_list_of(
	struct rollup_builder *b, uint32_t header, uint32_t *out, struct err *err)
{
	uint32_t typeset = sym_header_typeset(b->p, header), i = 0;
	const struct sym_header *h = sym_header(b->p, header);
	struct builder_list *l;
	enum err_code rc;

	while (i < b->lists_n && b->lists[i].typeset != typeset)
		i++;
	*out = i;
	if (i < b->lists_n)
		return ERR_OK;
	if (h->types_n > ROW_COLUMNS_MAX)
		return err_set(err, ERR_CORRUPT, "rollup: a header with %" PRIu32 " types", h->types_n);
	if (!array_room(&b->lists, i, 1, &b->lists_cap))
		return err_nomem(err, "rollup");
	l = &b->lists[i];
	*l = (struct builder_list){ .typeset = typeset, .l.columns_n = h->types_n };
	for (uint32_t k = 0; k < h->types_n; k++) {
		if ((rc = rollup_build_column_of(b, h, k, &l->l.column[k], err)))
			return rc;
		for (uint32_t before = 0; before < k; before++)
			if (l->l.column[before] == l->l.column[k]) {
				l->l.column[k] = ROLLUP_COLUMN_NONE;
				break;
			}
	}
	b->lists_n++;
	return ERR_OK;
}

static enum err_code rollup_build_add_header(
	struct rollup_builder *b, uint32_t header, uint32_t *list, struct err *err)
{
	struct builder_list *l;
	enum err_code rc;

	if (!sym_exists(b->p, SYM_HEADER, header))
		return err_set(err, ERR_CORRUPT, "rollup: header %" PRIu32 " is missing", header);
	if ((rc = rollup_build_list_of(b, header, list, err)))
		return rc;
	if (bits_get(&b->headers, header))
		return ERR_OK;
	l = &b->lists[*list];
	if (!array_room(&l->l.headers, l->l.headers_n, 1, &l->headers_cap) ||
		!bits_reserve(&b->headers, header))
		return err_nomem(err, "rollup");
	bits_set(&b->headers, header);
	l->l.headers[l->l.headers_n++] = header;
	return ERR_OK;
}

/* ---- rows ---- */

static int64_t rollup_build_start_of(const struct rollup_row *row)
{
	int64_t start;

	return __builtin_sub_overflow(row->ts_ns, row->interval_ns, &start) ? INT64_MIN : start;
}

enum err_code rollup_builder_note(
	struct rollup_builder *b, const struct rollup_row *row, uint32_t *list, struct err *err)
{
	enum err_code rc = rollup_build_add_header(b, row->header, list, err);

	if (!rc)
		rollup_list_join(&b->lists[*list].l,
			&(struct rollup_list){ .rows = 1,
				.samples = row->n,
				.start_ns = rollup_build_start_of(row),
				.end_ns = row->ts_ns,
				.time_nanos = row->time_nanos,
				.period = row->period > 0 ? row->period : 0, /* as db_sum */
				.duration = row->duration_nanos,
				.elapsed = row->interval_ns,
				.profiled = row->duration_nanos > 0 ? row->duration_nanos : row->interval_ns });
	return rc;
}

static void rollup_build_join_sums(
	struct builder_column *c, const struct rollup_sums *from, int64_t end_ns)
{
	uint32_t column = c->sums.column;

	if (c->rows) {
		rollup_sums_join(&c->sums, from, c->end_ns, end_ns);
	} else {
		c->sums = *from;
		c->end_ns = end_ns;
	}
	c->sums.column = column;
	c->rows = 1;
	if (end_ns > c->end_ns)
		c->end_ns = end_ns;
}

void rollup_builder_total(
	struct rollup_builder *b, uint32_t column, const struct rollup_row *row, int64_t total)
{
	struct builder_column *c = &b->columns[column];
	int128 weight = c->sums.gauge ? (int128)row->interval_ns + row->missed_ns : 1;
	struct rollup_point point = { total, row->ts_ns };

	rollup_build_join_sums(c,
		&(struct rollup_sums){ .gauge = c->sums.gauge,
			.total = total * weight,
			.missed = c->sums.gauge ? row->missed_ns : 0,
			.min = point,
			.max = point,
			.last = total },
		row->ts_ns);
}

/* Checks that ids are in range; if symbols were lost, looks up each one. */
static bool rollup_build_symbols_are_there(
	const struct partition *p, const uint32_t *stacks, const uint32_t *sets, uint32_t n)
{
	uint32_t nodes = sym_nodes_n(p), sets_n = sym_label_sets_n(p);
	bool damaged = atomic_load_explicit(&p->damaged, memory_order_relaxed), ok = true;

	for (uint32_t i = 0; i < n && ok; i++) {
		ok = (stacks[i] < nodes || stacks[i] == 0) && (!sets || sets[i] < sets_n || sets[i] == 0);
		if (damaged && ok)
			ok = sym_exists(p, SYM_NODE, stacks[i]) &&
				(!sets || sym_exists(p, SYM_LABEL_SET, sets[i]));
	}
	return ok;
}

enum err_code rollup_builder_find(struct rollup_builder *b, const uint32_t *stacks,
	const uint32_t *sets, uint32_t n, struct err *err)
{
	if (!rollup_build_symbols_are_there(b->p, stacks, sets, n))
		return err_set(err, ERR_CORRUPT,
			"rollup: rows of job \"" STR_FMT "\" use symbols that are missing",
			STR_ARG(b->p->name));
	assert(n <= CELLS_BATCH);
	return rollup_table_find(&b->table, stacks, sets, n, b->at) ? ERR_OK : err_nomem(err, "rollup");
}

static enum err_code rollup_build_too_large(struct err *err)
{
	return err_set(err, ERR_LIMIT, "sum exceeds 128 bits");
}

/* ---- pending cells ---- */

static enum err_code rollup_build_settle_column(
	struct rollup_builder *b, uint32_t column, struct err *err)
{
	struct accum *a = b->columns[column].pending;
	struct rollup_view *s = b->scratch;
	int128 *sums;
	struct accum_cell cell;
	size_t at = 0;
	enum err_code rc;
	uint32_t n;
	bool bad = false;

	if ((rc = accum_seal(a, err)))
		return rc;
	do {
		for (n = 0; n < CELLS_BATCH && accum_next(a, &at, &cell); n++) {
			s->stacks[n] = cell.stack;
			s->sets[n] = cell.label_set;
			s->wide[n] = cell.value;
		}
		if ((rc = rollup_builder_find(b, s->stacks, s->sets, n, err)))
			return rc;
		sums = b->table.columns[column];
		for (uint32_t i = 0; i < n; i++)
			bad |= __builtin_add_overflow(sums[b->at[i]], s->wide[i], &sums[b->at[i]]);
	} while (n == CELLS_BATCH);
	accum_close(a);
	b->columns[column].pending = NULL;
	return bad ? rollup_build_too_large(err) : ERR_OK;
}

enum err_code rollup_builder_settle(struct rollup_builder *b, struct err *err)
{
	enum err_code rc;

	for (uint32_t c = 0; c < b->columns_n; c++)
		if (b->columns[c].pending && (rc = rollup_build_settle_column(b, c, err)))
			return rc;
	b->pending = b->pending_labels = false;
	return ERR_OK;
}

/* ---- other rollups ---- */

/* Joins the lists of a head; *map is the builder's column of each of its columns. */
static enum err_code rollup_build_join_head(struct rollup_builder *b, const struct rollup_head *h,
	uint16_t map[ROLLUP_COLUMNS_MAX], struct err *err)
{
	enum err_code rc;
	uint32_t list = 0;

	b->missed |= h->missed;
	memset(map, 0xff, ROLLUP_COLUMNS_MAX * sizeof(*map));
	for (uint32_t i = 0; i < h->lists_n; i++) {
		const struct rollup_list *from = &h->lists[i];
		uint32_t first = UINT32_MAX;

		for (uint32_t k = 0; k < from->headers_n; k++) {
			if ((rc = rollup_build_add_header(b, from->headers[k], &list, err)))
				return rc;
			if (k && list != first)
				return err_set(err, ERR_CORRUPT, "rollup: headers of several kinds");
			first = list;
		}
		if (b->lists[list].l.columns_n != from->columns_n)
			return err_set(err, ERR_CORRUPT, "rollup: columns of another header");
		rollup_list_join(&b->lists[list].l, from);
		for (uint32_t c = 0; c < from->columns_n; c++) {
			uint16_t to = b->lists[list].l.column[c], at = from->column[c];

			if (at == ROLLUP_COLUMN_NONE && to == ROLLUP_COLUMN_NONE)
				continue;
			if (at == ROLLUP_COLUMN_NONE || to == ROLLUP_COLUMN_NONE ||
				(map[at] != to && map[at] != UINT16_MAX) ||
				b->columns[to].sums.gauge != h->sums[at].gauge)
				return err_set(err, ERR_CORRUPT, "rollup: columns of another header");
			map[at] = to;
		}
	}
	for (uint32_t i = 0; i < h->columns_n; i++)
		rollup_build_join_sums(&b->columns[map[i]], &h->sums[i], h->columns[i].end_ns);
	return ERR_OK;
}

static enum err_code rollup_build_add_values(struct rollup_builder *b, struct rollup_view *v,
	struct cells_values *c, uint32_t column, uint32_t n, struct err *err)
{
	int128 *sums = b->table.columns[column];
	enum err_code rc = cells_values_next_wide(c, n, v->wide, err);
	bool bad = false;

	if (rc)
		return rc;
	for (uint32_t i = 0; i < n; i++)
		bad |= __builtin_add_overflow(sums[b->at[i]], v->wide[i], &sums[b->at[i]]);
	return bad ? rollup_build_too_large(err) : ERR_OK;
}

enum err_code rollup_builder_add(struct rollup_builder *b, struct rollup_view *v, struct err *err)
{
	uint32_t n = v->head.columns_n, got = CELLS_BATCH;
	uint16_t map[ROLLUP_COLUMNS_MAX];
	struct cells_values *values;
	struct cells_ids ids;
	enum err_code rc;

	if (!(values = malloc((n + 1) * sizeof(*values))))
		return err_nomem(err, "rollup");
	if ((rc = rollup_build_join_head(b, &v->head, map, err)) ||
		(rc = cells_ids_open(&v->cells, &ids, err)))
		goto out;
	for (uint32_t c = 0; c < n; c++)
		if ((rc = cells_values_open(&v->cells, c, &values[c], err)))
			goto out;
	while (got == CELLS_BATCH) {
		if ((rc = cells_ids_next(&ids, v->stacks, v->sets, &got, err)) ||
			(rc = rollup_builder_find(b, v->stacks, v->cells.labels ? v->sets : NULL, got, err)))
			goto out;
		for (uint32_t c = 0; c < n; c++)
			if ((rc = rollup_build_add_values(b, v, &values[c], map[c], got, err)))
				goto out;
	}
out:
	free(values);
	return rc;
}

/* ---- encoding ---- */

static int rollup_build_list_cmp(const void *left, const void *right)
{
	const struct rollup_list *a = left, *b = right;

	return (a->headers[0] > b->headers[0]) - (a->headers[0] < b->headers[0]);
}

static int rollup_build_header_cmp(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

/* The head; order[i] is the builder's column that comes i-th. */
static enum err_code rollup_build_write_head(struct rollup_builder *b, enum rollup_record record,
	struct buf *out, uint16_t order[ROLLUP_COLUMNS_MAX], struct err *err)
{
	struct rollup_list *lists = malloc((b->lists_n + 1) * sizeof(*lists));
	struct rollup_sums *sums = malloc((b->columns_n + 1) * sizeof(*sums));
	uint16_t place[ROLLUP_COLUMNS_MAX];
	bool gauges = false;
	uint32_t n = 0;

	if (!lists || !sums) {
		free(lists);
		free(sums);
		return err_nomem(err, "rollup");
	}
	memset(place, 0xff, sizeof(place));
	for (uint32_t i = 0; i < b->lists_n; i++) {
		lists[i] = b->lists[i].l;
		qsort(lists[i].headers, lists[i].headers_n, sizeof(uint32_t), rollup_build_header_cmp);
	}
	qsort(lists, b->lists_n, sizeof(*lists), rollup_build_list_cmp);
	for (uint32_t i = 0; i < b->lists_n; i++)
		for (uint32_t c = 0; c < lists[i].columns_n; c++) {
			uint16_t at = lists[i].column[c];

			if (at == ROLLUP_COLUMN_NONE)
				continue;
			if (place[at] == UINT16_MAX) {
				place[at] = (uint16_t)n;
				order[n] = at;
				sums[n] = b->columns[at].sums;
				gauges |= sums[n].gauge;
				sums[n++].column = c;
			}
			lists[i].column[c] = place[at];
		}
	assert(n == b->columns_n); /* each is in some list */
	rollup_head_encode(out, record, b->missed && gauges, lists, b->lists_n, sums, n);
	free(lists);
	free(sums);
	return ERR_OK;
}

enum err_code rollup_builder_write(struct rollup_builder *b, enum rollup_record record,
	const struct rollup_table *t, struct buf *out, struct err *err)
{
	bool cells = record == ROLLUP_RECORD_CELLS;
	uint32_t each = cells ? 1 : 2; /* columns of the table for one of the builder's */
	uint16_t order[ROLLUP_COLUMNS_MAX];
	uint64_t *keys = NULL;
	uint32_t *places = NULL, n;
	int128 *column = NULL;
	enum err_code rc;

	assert(t->columns_n == b->columns_n * each);
	if ((rc = rollup_build_write_head(b, record, out, order, err)))
		return rc;
	if (!rollup_table_sort(t, &keys, &places, &n) ||
		!(column = malloc(((size_t)n + 1) * sizeof(*column)))) {
		rc = err_nomem(err, "rollup");
		goto out;
	}
	cells_begin(&b->encoder, keys, n);
	for (uint32_t c = 0; c < t->columns_n; c++) {
		uint32_t at = order[c / each];
		const int128 *from = t->columns[at * each + c % each];

		for (uint32_t i = 0; i < n; i++)
			column[i] = from[places[i]];
		cells_column(&b->encoder, column, cells && !b->columns[at].sums.gauge);
	}
	rc = cells_end(&b->encoder, out, err);
out:
	free(keys);
	free(places);
	free(column);
	return rc;
}

enum err_code rollup_builder_encode(struct rollup_builder *b, struct buf *out, struct err *err)
{
	enum err_code rc = rollup_builder_settle(b, err);

	return rc ? rc : rollup_builder_write(b, ROLLUP_RECORD_CELLS, &b->table, out, err);
}
