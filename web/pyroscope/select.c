/*
 * SelectSeries: total(merge by (group_by) (selector)) at steps.
 *
 * A point is the sum over (t - step, t]; of gauges it is the mean over the step. As an average it
 * is the mean of the group's profiles in the step. A step without profiles has no point.
 */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/quote.h"
#include "web/pyroscope/pyroscope.h"
#include "web/pyroscope/selector.h"
#include "web/render/notices.h"

#define GROUP_BY_MAX 64u
#define STEP_SECONDS_MAX 1e9
#define AGGREGATION(name) \
	EPIMETHEUS__PYROSCOPE__TIME_SERIES_AGGREGATION_TYPE__TIME_SERIES_AGGREGATION_TYPE_##name

typedef Epimetheus__Pyroscope__Series series_message;
typedef Epimetheus__Pyroscope__Point point_message;

enum err_code pyroscope_run(struct pyroscope_call *c, const struct buf *text,
	struct query_options *o, struct query **out, struct err *err)
{
	struct notices notices;
	enum err_code rc;

	if (buf_failed(text))
		return err_nomem(err, "query");
	o->text = buf_str(text);
	o->timeout_ns = c->timeout_ns;
	o->limits = c->in->user.limits;
	rc = query_run_cancelable(c->w->o.engine, o, &c->in->canceled, out, err);
	if (rc)
		return rc;
	notices = notices_of(query_result(*out));
	if ((rc = notices_add_header(&notices, &c->in->arena, c->out, err))) {
		query_close(*out);
		*out = NULL;
	}
	return rc;
}

enum err_code pyroscope_no_pgo(
	const Epimetheus__Pyroscope__StackTraceSelector *selector, struct err *err)
{
	if (selector && selector->go_pgo)
		return err_set(
			err, ERR_UNSUPPORTED, "stack_trace_selector.go_pgo is supported for pprof only");
	return ERR_OK;
}

/* ---- what is asked ---- */

static enum err_code pyroscope_read_options(
	const Epimetheus__Pyroscope__SelectSeriesRequest *request, struct query_options *o,
	struct err *err)
{
	enum err_code rc = pyroscope_times(request->start, request->end, &o->start_ns, &o->end_ns, err);

	if (rc)
		return rc;
	if (!(request->step >= 0.001 && request->step <= STEP_SECONDS_MAX))
		return err_set(err, ERR_INVALID, "step must be seconds, at least 0.001");
	if (request->limit < 0)
		return err_set(err, ERR_INVALID, "limit is negative");
	o->step_ns = llround(request->step * 1000) * NS_PER_MS;
	o->t_ns = o->end_ns;
	if ((o->end_ns - o->start_ns) / o->step_ns > ENGINE_POINTS_MAX)
		return err_set(
			err, ERR_INVALID, "more than %u points: the step is too short", ENGINE_POINTS_MAX);
	return ERR_OK;
}

static enum err_code pyroscope_add_grouping(
	struct buf *text, char *const *names, size_t n, struct err *err)
{
	if (n > GROUP_BY_MAX)
		return err_set(err, ERR_LIMIT, "%zu labels in group_by, limit %u", n, GROUP_BY_MAX);
	for (size_t i = 0; i < n; i++) {
		if (!any_name_valid(str_of(names[i])))
			return err_set(err, ERR_INVALID, "group_by: %s is not the name of a label",
				QUOTED(str_of(names[i])));
		buf_add_cstr(text, i ? "," : " by (");
		buf_add_quoted(text, pyroscope_label(str_of(names[i])));
	}
	buf_add_cstr(text, n ? ") (" : "(");
	return ERR_OK;
}

static void pyroscope_add_window(
	struct buf *text, const struct pyroscope_selector *s, int64_t step_ns)
{
	pyroscope_selector_print(text, s);
	buf_add_char(text, '[');
	duration_print(text, step_ns);
	buf_add_char(text, ']');
}

static enum err_code pyroscope_add_sum(const Epimetheus__Pyroscope__SelectSeriesRequest *request,
	const struct pyroscope_selector *s, struct buf *text, struct err *err)
{
	enum err_code rc;

	buf_add_cstr(text, "total(merge");
	if ((rc = pyroscope_add_grouping(text, request->group_by, request->n_group_by, err)))
		return rc;
	pyroscope_selector_print(text, s);
	buf_add_cstr(text, "))");
	return ERR_OK;
}

/* The sum divided by the number of profiles. */
static enum err_code pyroscope_add_average(
	const Epimetheus__Pyroscope__SelectSeriesRequest *request, const struct pyroscope_selector *s,
	int64_t step_ns, struct buf *text, struct err *err)
{
	enum err_code rc;

	buf_add_cstr(text, "sum");
	if ((rc = pyroscope_add_grouping(text, request->group_by, request->n_group_by, err)))
		return rc;
	buf_add_cstr(text, "total(sum_over_time(");
	pyroscope_add_window(text, s, step_ns);
	buf_add_cstr(text, "))) / sum");
	if ((rc = pyroscope_add_grouping(text, request->group_by, request->n_group_by, err)))
		return rc;
	buf_add_cstr(text, "count_over_time(");
	pyroscope_add_window(text, s, step_ns);
	buf_add_cstr(text, "))");
	return ERR_OK;
}

static enum err_code pyroscope_write_query(struct pyroscope_call *c,
	const Epimetheus__Pyroscope__SelectSeriesRequest *request, const struct query_options *o,
	struct buf *text, struct err *err)
{
	struct pyroscope_selector s;
	enum err_code rc;

	if (request->aggregation != AGGREGATION(SUM) && request->aggregation != AGGREGATION(AVERAGE))
		return err_set(
			err, ERR_UNSUPPORTED, "aggregation %d is not supported", (int)request->aggregation);
	rc = pyroscope_selector_read(
		&c->in->arena, str_of(request->profile_typeid), str_of(request->label_selector), &s, err);
	if (rc)
		return rc;
	if (!s.types_n)
		rc = err_set(err, ERR_INVALID, "profile_typeID is missing");
	else if (request->aggregation == AGGREGATION(SUM))
		rc = pyroscope_add_sum(request, &s, text, err);
	else
		rc = pyroscope_add_average(request, &s, o->step_ns, text, err);
	pyroscope_selector_release(&s);
	return rc;
}

/* ---- the answer ---- */

struct pyroscope_ranked {
	const struct cost_series *series;
	double sum;
	size_t at;
};

/* Greatest first; equal ones keep their order. */
static int pyroscope_by_sum(const void *a, const void *b)
{
	const struct pyroscope_ranked *l = a, *r = b;

	if (l->sum != r->sum)
		return l->sum > r->sum ? -1 : 1;
	return l->at < r->at ? -1 : l->at > r->at;
}

/* Groups as Pyroscope names them. */
static enum err_code pyroscope_shown(
	struct arena *a, struct labels metric, struct labels *out, struct err *err)
{
	struct labels_builder b;
	struct str service;

	labels_builder_init(&b, a, metric);
	service = labels_builder_get(&b, STR(LABEL_SERVICE));
	labels_builder_del(&b, STR(LABEL_SERVICE));
	if (service.len)
		labels_builder_set(&b, STR(LABEL_SERVICE_NAME), service);
	return labels_builder_build(&b, out, err);
}

static enum err_code pyroscope_fill_series(
	struct arena *a, const struct cost_series *from, series_message *to, struct err *err)
{
	point_message *items = arena_alloc_raw(a, from->n + 1, sizeof(*items));
	point_message **list = arena_array(a, point_message *, from->n + 1);
	struct labels labels;
	enum err_code rc;

	epimetheus__pyroscope__series__init(to);
	if (!items || !list)
		return arena_fail(a, "series", err);
	for (size_t i = 0; i < from->n; i++) {
		epimetheus__pyroscope__point__init(&items[i]);
		items[i].value = from->points[i].value;
		items[i].timestamp = from->points[i].t_ns / NS_PER_MS;
		list[i] = &items[i];
	}
	to->points = list;
	to->n_points = from->n;
	if ((rc = pyroscope_shown(a, from->metric, &labels, err)))
		return rc;
	to->n_labels = labels.n;
	return pyroscope_pairs(a, labels, &to->labels, err);
}

static enum err_code pyroscope_select_answer(struct pyroscope_call *c, const struct result *r,
	size_t limit, struct arena *a, struct err *err)
{
	struct pyroscope_ranked *ranked = arena_array(a, struct pyroscope_ranked, r->n + 1);
	series_message *items = arena_array(a, series_message, r->n + 1);
	series_message **list = arena_array(a, series_message *, r->n + 1);
	Epimetheus__Pyroscope__SelectSeriesResponse m;
	size_t n = limit && limit < r->n ? limit : r->n;
	enum err_code rc;

	if (!ranked || !items || !list)
		return arena_fail(a, "series", err);
	for (size_t i = 0; i < r->n; i++) {
		ranked[i] = (struct pyroscope_ranked){ .series = &r->matrix[i], .at = i };
		for (size_t k = 0; k < r->matrix[i].n; k++)
			ranked[i].sum += r->matrix[i].points[k].value;
	}
	if (n < r->n)
		qsort(ranked, r->n, sizeof(*ranked), pyroscope_by_sum);
	epimetheus__pyroscope__select_series_response__init(&m);
	m.series = list;
	for (; m.n_series < n; m.n_series++) {
		list[m.n_series] = &items[m.n_series];
		rc = pyroscope_fill_series(a, ranked[m.n_series].series, &items[m.n_series], err);
		if (rc)
			return rc;
	}
	return pyroscope_answer(c, &m.base, err);
}

enum err_code pyroscope_select_series(
	struct pyroscope_call *c, const ProtobufCMessage *request, struct err *err)
{
	const Epimetheus__Pyroscope__SelectSeriesRequest *r = (const void *)request;
	struct query_options o = { 0 };
	struct query *q = NULL;
	struct buf text = { 0 };
	enum err_code rc = pyroscope_no_pgo(r->stack_trace_selector, err);

	if (!rc && r->stack_trace_selector && r->stack_trace_selector->n_call_site)
		rc = err_set(
			err, ERR_UNSUPPORTED, "stack_trace_selector.call_site is supported for profiles only");
	if (!rc && !(rc = pyroscope_read_options(r, &o, err)) &&
		!(rc = pyroscope_write_query(c, r, &o, &text, err)))
		rc = pyroscope_run(c, &text, &o, &q, err);
	if (!rc) {
		rc = pyroscope_select_answer(c, query_result(q), (size_t)r->limit, query_arena(q), err);
		query_close(q);
	}
	buf_release(&text);
	return rc;
}
