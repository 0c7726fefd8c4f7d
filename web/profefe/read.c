#include "web/profefe/read.h"

#include <stdlib.h>

#include "base/array.h"

#define LIST_SPARE 1024u /* rows above the limit, before the oldest go */

/* ---- whose turn it is ---- */

static bool profefe_enter(struct web *w)
{
	bool entered;

	mutex_lock(&w->lock);
	entered = w->reading < READS_MAX;
	w->reading += entered;
	mutex_unlock(&w->lock);
	return entered;
}

enum err_code read_open(struct profefe_reading *r, struct web *w, struct http_in *in,
	int64_t from_ns, int64_t to_ns, struct err *err)
{
	*r = (struct profefe_reading){ .w = w, .in = in };
	arena_init(&r->arena, READ_ARENA_BYTES_MAX);
	if (!(r->entered = profefe_enter(w)))
		return err_set(
			err, ERR_UNAVAILABLE, "%u requests read profiles already: try again later", READS_MAX);
	return db_querier_open_limited(
		w->o.db, in->user.limits, from_ns - 1, to_ns, &in->canceled, &r->q, err);
}

void read_close(struct profefe_reading *r)
{
	if (r->q)
		db_querier_close(r->q);
	arena_release(&r->arena);
	if (!r->entered)
		return;
	mutex_lock(&r->w->lock);
	r->w->reading--;
	mutex_unlock(&r->w->lock);
}

/* ---- series ---- */

/*
 * Matchers narrow by indexes. They test samples' labels where a series lacks the label, so the
 * series are checked again (profefe_is_wanted).
 */
static size_t profefe_add_matchers(
	struct matcher *m, const struct profefe_params *p, const char *by)
{
	const struct str name = STR(LABEL_NAME);
	size_t n = 0;

	m[n++] = (struct matcher){ .op = MATCH_EQ, .name = str_of(by), .value = p->service };
	if (p->profile && strcmp(p->profile, PROFEFE_OTHER) != 0)
		m[n++] = (struct matcher){ .op = MATCH_EQ, .name = name, .value = str_of(p->profile) };
	for (size_t i = 0; i < p->labels_n; i++)
		m[n++] = (struct matcher){
			.op = MATCH_EQ, .name = p->labels[i].name, .value = p->labels[i].value
		};
	return n;
}

static bool profefe_is_wanted(const struct profefe_params *p, struct labels labels, const char *by)
{
	struct str name = labels_get(labels, STR(LABEL_NAME));

	if (!str_eq(labels_get(labels, str_of(by)), p->service))
		return false;
	/* It came by service_name already. */
	if (strcmp(by, "job") == 0 && str_eq(labels_get(labels, STR("service_name")), p->service))
		return false;
	if (p->type && strcmp(profefe_type_of(name), p->type) != 0)
		return false;
	for (size_t i = 0; i < p->labels_n; i++)
		if (!str_eq(labels_get(labels, p->labels[i].name), p->labels[i].value))
			return false;
	return true;
}

static enum err_code profefe_select_by(struct profefe_reading *r, const struct profefe_params *p,
	const char *by, struct read_series *out, struct err *err)
{
	struct matcher *m = arena_array(&r->arena, struct matcher, p->labels_n + 2);
	struct db_series *v;
	size_t n, about;
	enum err_code rc;

	if (!m)
		return arena_fail(&r->arena, "series", err);
	rc = db_select_within(r->q, DB_PROFILES, m, profefe_add_matchers(m, p, by), READ_SERIES_MAX,
		&about, &r->arena, &v, &n, err);
	if (rc)
		return rc;
	for (size_t i = 0, cap = out->n; i < n; i++) {
		if (!profefe_is_wanted(p, v[i].labels, by))
			continue;
		if (!arena_array_room(&r->arena, &out->v, out->n, n, &cap))
			return arena_fail(&r->arena, "series", err);
		out->v[out->n++] = &v[i];
	}
	return ERR_OK;
}

enum err_code read_select(struct profefe_reading *r, const struct profefe_params *p,
	struct read_series *out, struct err *err)
{
	enum err_code rc;

	*out = (struct read_series){ 0 };
	if ((rc = profefe_select_by(r, p, "service_name", out, err)) ||
		(rc = profefe_select_by(r, p, "job", out, err)))
		return rc;
	return out->n ? ERR_OK : err_set(err, ERR_NOT_FOUND, "nothing found");
}

/* ---- rows ---- */

static enum err_code profefe_check_row(
	struct profefe_reading *r, const struct db_row *row, struct err *err)
{
	if (atomic_load_explicit(&r->in->canceled, memory_order_relaxed))
		return err_set(err, ERR_CANCELED, "the client closed the connection");
	if ((r->cells += row->n + 1) > READ_CELLS_MAX)
		return err_set(err, ERR_LIMIT,
			"more than %u samples in %zu profiles: query a shorter time, or use labels",
			READ_CELLS_MAX, r->rows);
	r->rows++;
	return ERR_OK;
}

enum err_code read_rows(struct profefe_reading *r, const struct db_series *s, int64_t from_ns,
	int64_t to_ns, read_row_fn *fn, void *ctx, struct err *err)
{
	const struct db_row *row;
	struct db_rows *rows;
	enum err_code rc;

	if ((rc = db_rows_open(r->q, s, from_ns - 1, to_ns, &rows, err)))
		return rc;
	while (!(rc = db_rows_next(rows, &row, err)))
		if ((rc = profefe_check_row(r, row, err)) || (rc = fn(ctx, s, row, err)))
			break;
	db_rows_close(rows);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

/* ---- lists ---- */

struct profefe_listing {
	struct profefe_reading *r;
	struct read_list *list;
	size_t limit;
};

static int profefe_newest_first(const void *a, const void *b)
{
	const struct read_found *l = a, *r = b;

	if (l->ts_ns != r->ts_ns)
		return l->ts_ns > r->ts_ns ? -1 : 1;
	return labels_cmp(l->series->labels, r->series->labels);
}

static void profefe_keep_newest(struct profefe_listing *p)
{
	struct read_list *list = p->list;

	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), profefe_newest_first);
	if (p->limit && list->n > p->limit)
		list->n = p->limit;
}

static enum err_code profefe_list_row(
	void *ctx, const struct db_series *s, const struct db_row *row, struct err *err)
{
	struct profefe_listing *x = ctx;
	struct read_list *list = x->list;

	if (x->limit && list->n >= x->limit + LIST_SPARE && list->n >= 2 * x->limit)
		profefe_keep_newest(x);
	if (list->n == READ_ROWS_MAX && !x->limit)
		return err_set(err, ERR_LIMIT,
			"more than %u profiles: query a shorter time, or use labels or a limit", READ_ROWS_MAX);
	if (!arena_array_room(&x->r->arena, &list->v, list->n, 1, &list->cap))
		return arena_fail(&x->r->arena, "profiles", err);
	list->v[list->n++] = (struct read_found){ s, row->ts_ns };
	return ERR_OK;
}

enum err_code read_list(struct profefe_reading *r, const struct profefe_params *p,
	const struct read_series *series, struct read_list *out, struct err *err)
{
	struct profefe_listing x = { r, out, p->limit <= READ_ROWS_MAX ? p->limit : 0 };
	enum err_code rc = ERR_OK;

	*out = (struct read_list){ 0 };
	for (size_t i = 0; i < series->n && !rc; i++)
		rc = read_rows(r, series->v[i], p->from_ns, p->to_ns, profefe_list_row, &x, err);
	if (rc)
		return rc;
	profefe_keep_newest(&x);
	return out->n ? ERR_OK : err_set(err, ERR_NOT_FOUND, "nothing found");
}
