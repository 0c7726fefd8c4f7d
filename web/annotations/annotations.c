/*
 * GET /api/v1/annotations: marks of a window. Posted ones are read as the profiles that they are;
 * versions come from indexes (version_marks.h).
 */
#include "web/annotations/annotations.h"

#include "proto/annotation.h"
#include "scrape/receive/receive.h"
#include "web/annotations/version_marks.h"
#include "web/api/view.h"
#include "web/router/envelope.h"

#define TWINS_NS ((int64_t)RECEIVE_TWINS_MAX) /* marks of one time have rows so far behind it */

struct annotations {
	struct view *v;
	int64_t end_ns;
	struct annotation_marks marks;
};

/* One of match[] accepts the labels; without any, all are wanted. */
static bool annotations_wanted(void *ctx, struct labels labels)
{
	const struct view *v = ((const struct annotations *)ctx)->v;

	for (size_t i = 0; i < v->matches_n; i++) {
		const struct selector *s = &v->matches[i]->root->selector;

		if (annotation_labels_fit(labels, s->matchers, s->matchers_n))
			return true;
	}
	return !v->matches_n;
}

/* ---- posted marks ---- */

/* The text: the name of the innermost function. Others than us may push such profiles, too. */
static struct str annotations_text(const struct partition *p, const struct db_row *row)
{
	struct sym_location l;

	if (!row->n || !row->stacks[0])
		return STR("");
	l = sym_location(p, sym_node(p, row->stacks[0]).location);
	return l.lines_n ? sym_string(p, sym_function(p, l.lines[0].function)->name) : STR("");
}

static enum err_code annotations_add_row(struct annotations *to, const struct db_series *s,
	struct labels labels, const struct db_row *row, struct err *err)
{
	struct str text = annotations_text(s->partition, row);
	struct annotation_mark m = { .time_ns = row->ts_ns, .labels = labels };

	if (!text.len)
		return ERR_OK;
	/* Marks of one time have rows a nanosecond apart. */
	if (row->time_nanos > 0 && row->time_nanos <= row->ts_ns)
		m.time_ns = row->time_nanos;
	if (m.time_ns > to->end_ns)
		return ERR_OK;
	if (row->duration_nanos > 0 && row->duration_nanos <= INT64_MAX - m.time_ns)
		m.end_ns = m.time_ns + row->duration_nanos;
	if (!(m.text = str_dup(&to->v->in->arena, text)).ptr)
		return arena_fail(&to->v->in->arena, "annotations", err);
	return annotation_marks_add(&to->marks, m, err);
}

static enum err_code annotations_add_series(
	struct annotations *to, const struct db_series *s, struct err *err)
{
	const struct db_row *row;
	struct db_rows *rows;
	struct labels labels;
	enum err_code rc;

	if (!annotation_mark_labels(&to->v->in->arena, s->labels, &labels))
		return arena_fail(&to->v->in->arena, "annotations", err);
	if (!annotations_wanted(to, labels))
		return ERR_OK;
	if ((rc = db_rows_open(to->v->q, s, INT64_MIN, INT64_MAX, &rows, err)))
		return rc;
	while (!(rc = db_rows_next(rows, &row, err)) &&
		!(rc = annotations_add_row(to, s, labels, row, err)))
		;
	db_rows_close(rows);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static enum err_code annotations_add_posted(struct annotations *to, struct err *err)
{
	const struct matcher named = {
		.op = MATCH_EQ, .name = STR(LABEL_NAME), .value = STR(ANNOTATION_NAME) };
	struct db_series *series;
	enum err_code rc;
	size_t n = 0;

	rc = db_select_kinds(to->v->q, DB_PROFILES, &named, 1, &to->v->in->arena, &series, &n, err);
	for (size_t i = 0; i < n && !rc; i++)
		rc = annotations_add_series(to, &series[i], err);
	return rc;
}

/* ---- versions ---- */

static bool annotations_has_warning(const struct view *v, struct str text)
{
	size_t n;
	const struct str *warnings = db_querier_warnings(v->q, &n);

	for (size_t i = 0; i < n; i++)
		if (str_eq(warnings[i], text))
			return true;
	return false;
}

/* Data before the window count, too. */
static enum err_code annotations_add_versions(
	struct web *w, struct annotations *to, struct err *err)
{
	struct http_in *in = to->v->in;
	struct version_marks_options o = {
		.start_ns = -TIME_MAX_NS, .end_ns = to->end_ns, .wanted = annotations_wanted, .ctx = to
	};
	const struct str *warnings;
	enum err_code rc;
	size_t n;

	if ((rc = api_time(in, "start", &o.start_ns, NULL, err)) ||
		(rc = db_querier_open_limited(
			 w->o.db, in->user.limits, -TIME_MAX_NS, o.end_ns, &in->canceled, &o.q, err)))
		return rc;
	if (!(rc = version_marks_add(&o, &in->arena, &to->marks, err))) {
		warnings = db_querier_warnings(o.q, &n);
		for (size_t i = 0; i < n && to->v->said_n < VIEW_WARNINGS_MAX; i++)
			if (!annotations_has_warning(to->v, warnings[i]))
				view_warn(to->v, STR_FMT, STR_ARG(warnings[i]));
	}
	db_querier_close(o.q);
	return rc;
}

/* Opens the view's querier anew, with a window that ends behind the twins of its last time. */
static enum err_code annotations_reach_twins(
	struct web *w, const struct annotations *to, struct err *err)
{
	struct http_in *in = to->v->in;
	int64_t start_ns = -TIME_MAX_NS;
	enum err_code rc = api_time(in, "start", &start_ns, NULL, err);

	if (rc || to->end_ns >= TIME_MAX_NS - TWINS_NS)
		return rc;
	db_querier_close(to->v->q);
	to->v->q = NULL;
	return db_querier_open_limited(w->o.db, in->user.limits, start_ns - 1, to->end_ns + TWINS_NS,
		&in->canceled, &to->v->q, err);
}

/* ctx: the struct web. */
static enum err_code annotations_write(
	struct view *v, struct http_out *out, void *ctx, struct err *err)
{
	struct annotations to = { .v = v, .end_ns = TIME_MAX_NS };
	struct json j;
	enum err_code rc;

	if ((rc = api_time(v->in, "end", &to.end_ns, NULL, err)) ||
		(rc = annotations_reach_twins(ctx, &to, err)))
		return rc;
	if (!(rc = annotations_add_posted(&to, err)) &&
		!(rc = annotations_add_versions(ctx, &to, err))) {
		annotation_marks_sort(&to.marks);
		api_begin(out, &j);
		json_array(&j);
		for (size_t i = 0; i < to.marks.n && (!v->limit || i < v->limit); i++)
			annotation_mark_write(&j, &to.marks.v[i]);
		json_array_end(&j);
		view_end(&j, v, to.marks.n);
	}
	annotation_marks_release(&to.marks);
	return rc;
}

void annotations_get(struct web *w, struct http_in *in, struct http_out *out)
{
	view_answer(w, in, out, w, annotations_write);
}
