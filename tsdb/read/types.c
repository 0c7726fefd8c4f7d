#include <stdlib.h>

#include "base/array.h"
#include "tsdb/block/block.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/catalog/state.h"
#include "tsdb/catalog/window_epochs.h"
#include "tsdb/read/querier_internal.h"
#include "tsdb/symbols/profile_type.h"

/* Profile types of series. A series nearly always has one list of types in all its rows, which is
 * remembered; if it had several, its rows in the window are read. */
int header_column(const struct partition *p, uint32_t header, const struct profile_type *t)
{
	const struct sym_header *h = sym_header(p, header);

	if (!str_eq(sym_string(p, h->period_type), t->period_type) ||
		!str_eq(sym_string(p, h->period_unit), t->period_unit))
		return -1;
	for (uint32_t c = 0; c < h->types_n; c++)
		if ((h->types[c].kind == KIND_DELTA) == t->delta &&
			str_eq(sym_string(p, h->types[c].type), t->sample_type) &&
			str_eq(sym_string(p, h->types[c].unit), t->sample_unit))
			return (int)c;
	return -1;
}

struct type_list {
	struct profile_type *v;
	size_t n, cap;
	uint32_t header; /* a header that was added */
};

static bool read_types_same_type(const struct profile_type *a, const struct profile_type *b)
{
	return a->delta == b->delta && str_eq(a->name, b->name) &&
		str_eq(a->sample_type, b->sample_type) && str_eq(a->sample_unit, b->sample_unit) &&
		str_eq(a->period_type, b->period_type) && str_eq(a->period_unit, b->period_unit);
}

/* Appends the header's types that the list lacks; strings are not copied. */
static bool type_list_add_types(
	struct type_list *l, const struct partition *p, uint32_t header, struct str name)
{
	const struct sym_header *h = sym_header(p, header);

	l->header = header;
	for (uint32_t c = 0; c < h->types_n; c++) {
		struct profile_type t = { name, sym_string(p, h->types[c].type),
			sym_string(p, h->types[c].unit), sym_string(p, h->period_type),
			sym_string(p, h->period_unit), h->types[c].kind == KIND_DELTA };
		size_t i = 0;

		while (i < l->n && !read_types_same_type(&l->v[i], &t))
			i++;
		if (i < l->n)
			continue;
		if (!array_room(&l->v, l->n, 1, &l->cap))
			return false;
		l->v[l->n++] = t;
	}
	return true;
}

/* Reads the rows of one window whose index does not know the types. */
static enum err_code read_types_add_from_rows(struct db_querier *q, const struct db_series *s,
	const struct series_place *at, struct type_list *l, struct err *err)
{
	struct db_series there = *s;
	uint32_t seen = SYM_NONE;
	const struct db_row *row;
	struct db_rows *rows;
	enum err_code rc;

	there.places = at;
	there.places_n = 1;
	if ((rc = db_rows_open(q, &there, q->min_ns, q->max_ns, &rows, err)))
		return rc;
	while (!(rc = db_rows_next(rows, &row, err))) {
		if (row->header == seen)
			continue;
		seen = row->header;
		if (!type_list_add_types(l, s->partition, seen, labels_get(s->labels, STR(LABEL_NAME)))) {
			rc = err_nomem(err, "types");
			break;
		}
	}
	db_rows_close(rows);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static enum err_code read_types_add_header(
	const struct db_series *s, uint32_t header, struct type_list *l, struct err *err)
{
	if (!sym_exists(s->partition, SYM_HEADER, header)) /* lost; the querier has a warning */
		return ERR_OK;
	if (!type_list_add_types(l, s->partition, header, labels_get(s->labels, STR(LABEL_NAME))))
		return err_nomem(err, "types");
	return ERR_OK;
}

static enum err_code read_types_add_of_block(struct db_querier *q, const struct db_series *s,
	const struct series_place *at, struct type_list *l, struct err *err)
{
	struct querier_source *from = &q->sources[at->source];
	struct block_series of;
	struct arena a;
	enum err_code rc;
	struct err why;

	arena_init(&a, 0);
	rc = block_series(from->b->block, at->id, &a, &of, &why);
	if (rc == ERR_CORRUPT) {
		querier_warn(q, from, &why);
		rc = ERR_OK;
		of.headers_n = 0;
	} else if (rc) {
		err_copy(err, &why);
	}
	for (uint32_t i = 0; i < of.headers_n && !rc; i++)
		rc = read_types_add_header(s, of.headers[i], l, err);
	arena_release(&a);
	return rc;
}

static enum err_code read_types_add_series(
	struct db_querier *q, const struct db_series *s, struct type_list *l, struct err *err)
{
	uint32_t header, before = SYM_NONE;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < s->places_n && !rc; i++) {
		const struct series_place *at = &s->places[i];

		if (!q->sources[at->source].w) {
			rc = read_types_add_of_block(q, s, at, l, err);
			continue;
		}
		header = window_types(q->sources[at->source].db, q->sources[at->source].w,
			resident_of(s->partition)->job, s->partition->epoch, at->id);
		if (header == SERIES_TYPES_MANY)
			rc = read_types_add_from_rows(q, s, at, l, err);
		else if (header != SYM_NONE && header != before)
			rc = read_types_add_header(s, header, l, err);
		before = header;
	}
	return rc;
}

/* Copies the list to the arena; strings are not copied. */
static enum err_code type_list_hand_out(const struct type_list *l, struct arena *a,
	struct profile_type **out, size_t *n, struct err *err)
{
	if (!(*out = arena_array(a, struct profile_type, l->n + 1)))
		return arena_fail(a, "types", err);
	if (l->n)
		memcpy(*out, l->v, l->n * sizeof(**out));
	*n = l->n;
	return ERR_OK;
}

static enum err_code type_list_hand_out_copies(
	struct type_list *l, struct arena *a, struct profile_type **out, size_t *n, struct err *err)
{
	enum err_code rc = type_list_hand_out(l, a, out, n, err);

	for (size_t i = 0; i < l->n && !rc; i++) {
		struct profile_type *t = &(*out)[i];
		struct str *parts[] = { &t->name, &t->sample_type, &t->sample_unit, &t->period_type,
			&t->period_unit };

		for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]) && !rc; k++)
			if (!(*parts[k] = str_dup(a, *parts[k])).ptr)
				rc = arena_fail(a, "types", err);
	}
	return rc;
}

enum err_code db_series_types(struct db_querier *q, const struct db_series *s, struct arena *a,
	struct profile_type **out, size_t *n, struct err *err)
{
	struct type_list l = { 0 };
	enum err_code rc = s->numeric ? ERR_OK :
									read_types_add_series(q, s, &l, err); /* numbers: no types */

	if (!rc)
		rc = type_list_hand_out(&l, a, out, n, err);
	free(l.v);
	return rc;
}

enum err_code db_series_header(
	struct db_querier *q, const struct db_series *s, uint32_t *header, struct err *err)
{
	struct type_list l = { .header = SYM_NONE };
	enum err_code rc = read_types_add_series(q, s, &l, err);

	*header = l.header;
	free(l.v);
	return rc;
}

static int type_cmp(const void *left, const void *right)
{
	const struct profile_type *a = left, *b = right;
	int c;

	if ((c = str_cmp(a->name, b->name)) || (c = str_cmp(a->sample_type, b->sample_type)) ||
		(c = str_cmp(a->sample_unit, b->sample_unit)) ||
		(c = str_cmp(a->period_type, b->period_type)) ||
		(c = str_cmp(a->period_unit, b->period_unit)))
		return c;
	return a->delta - b->delta;
}

enum err_code db_profile_types(struct db_querier *q, struct arena *a, struct profile_type **out,
	size_t *out_n, struct err *err)
{
	struct type_list l = { 0 };
	struct db_series *series;
	struct arena scratch;
	enum err_code rc;
	size_t n;

	arena_init(&scratch, 0);
	rc = db_select_kinds(q, DB_PROFILES, NULL, 0, &scratch, &series, &n, err);
	for (size_t i = 0; i < n && !rc; i++)
		rc = i % 64 == 0 && querier_canceled(q) ? err_set(err, ERR_CANCELED, "query canceled") :
												  read_types_add_series(q, &series[i], &l, err);
	if (!rc && l.n)
		qsort(l.v, l.n, sizeof(*l.v), type_cmp);
	if (!rc)
		rc = type_list_hand_out_copies(&l, a, out, out_n, err);
	free(l.v);
	arena_release(&scratch);
	return rc;
}
