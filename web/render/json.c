#include <assert.h>

#include "base/clock.h"
#include "proto/report/top_rows.h"
#include "web/render/flame.h"
#include "web/render/render.h"
#include "web/render/search.h"

#define AT_ONCE 512u /* rows that are searched before the client is looked at */

/* Seconds with up to three digits behind the point, as Prometheus prints times. */
static void json_add_time(struct json *j, int64_t t_ns)
{
	json_double(j, (double)(t_ns / NS_PER_MS) / 1e3);
}

static void json_add_metric(struct json *j, struct labels metric)
{
	json_key(j, "metric");
	labels_write_json(j, metric);
}

static void json_add_point(struct json *j, int64_t t_ns, double value)
{
	json_array(j);
	json_add_time(j, t_ns);
	json_sample_value(j, value);
	json_array_end(j);
}

static void json_add_type(struct json *j, const struct profile_type *t)
{
	struct buf text = { 0 };

	if (t->name.len > 0)
		profile_type_print(&text, t);
	json_key(j, "type");
	json_str(j, buf_str(&text));
	json_key(j, "unit");
	json_str(j, t->sample_unit);
	buf_release(&text);
}

static void json_add_row(struct json *j, const struct top_row *row)
{
	json_object(j);
	json_key(j, "function");
	json_str(j, row->function);
	json_key(j, "flat");
	json_i64(j, row->flat);
	json_key(j, "flat_percent");
	json_double(j, row->flat_percent);
	json_key(j, "sum_percent");
	json_double(j, row->sum_percent);
	json_key(j, "cum");
	json_i64(j, row->cum);
	json_key(j, "cum_percent");
	json_double(j, row->cum_percent);
	json_object_end(j);
}

/* ---- what a search finds ---- */

/* sides: 0 new, 1 base. */
static void json_add_sides(struct json *j, const int64_t sides[2], bool is_diff)
{
	if (!is_diff) {
		json_key(j, "total");
		json_i64(j, sides[0]);
		return;
	}
	json_key(j, "left_total");
	json_i64(j, sides[1]);
	json_key(j, "right_total");
	json_i64(j, sides[0]);
}

static void json_add_percents(
	struct json *j, const struct search_found *found, const struct profile_value *p)
{
	if (p->is_diff) {
		json_key(j, "left_percent");
		json_double(j, top_percent(found->total[1], p->base_size));
	}
	json_key(j, p->is_diff ? "right_percent" : "percent");
	json_double(j, top_percent(found->total[0], p->is_diff ? p->value_size : p->total));
}

/* The first rows of functions that match, and how many functions do. */
static enum err_code json_add_found_rows(
	struct json *j, const struct top_table *t, const struct render_options *o, struct err *err)
{
	size_t n = 0;
	enum err_code rc;

	json_key(j, "rows");
	json_array(j);
	for (size_t i = 0; i < t->n; i++) {
		if (i % AT_ONCE == 0 && (rc = render_flush(o, j->out, err)))
			return rc;
		if (!regex_match(o->search, t->rows[i].function))
			continue;
		if (n++ < SEARCH_ROWS_MAX)
			json_add_row(j, &t->rows[i]);
	}
	json_array_end(j);
	json_key(j, "functions");
	json_u64(j, n);
	return ERR_OK;
}

static enum err_code json_add_found_paths(struct json *j, const struct search_found *found,
	bool is_diff, const struct render_options *o, struct err *err)
{
	enum err_code rc;

	json_key(j, "names");
	json_array(j);
	for (size_t i = 0; i < found->names_n; i++)
		json_str(j, found->names[i]);
	json_array_end(j);
	json_key(j, "paths");
	json_array(j);
	for (size_t i = 0; i < found->paths_n; i++) {
		const struct search_path *path = &found->paths[i];

		json_object(j);
		json_add_sides(j, path->total, is_diff);
		json_key(j, "frames");
		json_array(j);
		for (size_t k = 0; k < path->n; k++)
			json_u64(j, path->frames[k]);
		json_array_end(j);
		json_object_end(j);
		if ((rc = render_flush(o, j->out, err)))
			return rc;
	}
	json_array_end(j);
	return ERR_OK;
}

static enum err_code json_add_found(struct json *j, const struct profile_value *p,
	const struct top_table *t, const struct render_options *o, struct err *err)
{
	struct search_found found;
	enum err_code rc;

	if ((rc = search_profile(p, o->search, o->canceled, o->arena, &found, err)))
		return rc;
	json_key(j, "matched");
	json_object(j);
	json_add_sides(j, found.total, p->is_diff);
	json_add_percents(j, &found, p);
	json_key(j, "stacks");
	json_u64(j, found.stacks);
	if ((rc = json_add_found_rows(j, t, o, err)) ||
		(rc = json_add_found_paths(j, &found, p->is_diff, o, err)))
		return rc;
	json_object_end(j);
	return ERR_OK;
}

/* ---- elements ---- */

/* t: its table, if something is searched for. */
static enum err_code json_add_profile(struct json *j, const struct profile_value *p,
	const struct top_table *t, const struct render_options *o, struct err *err)
{
	enum err_code rc;

	json_object(j);
	json_add_metric(j, p->metric);
	json_add_type(j, &p->type);
	json_key(j, "total");
	json_i64(j, p->total);
	json_key(j, "cost");
	json_i64(j, p->value_total - p->base_total);
	if (p->is_diff) {
		json_key(j, "left_total");
		json_i64(j, p->base_total);
		json_key(j, "right_total");
		json_i64(j, p->value_total);
	}
	json_key(j, "profiles");
	json_u64(j, p->profiles);
	if (o->search && (rc = json_add_found(j, p, t, o, err)))
		return rc;
	json_key(j, "flamebearer");
	if ((rc = render_flame(j, p, o, err)))
		return rc;
	json_object_end(j);
	return ERR_OK;
}

static void json_add_top(struct json *j, const struct top_table *t)
{
	json_object(j);
	json_add_metric(j, t->metric);
	json_add_type(j, &t->type);
	json_key(j, "total");
	json_i64(j, t->total);
	json_key(j, "profiles");
	json_u64(j, t->profiles);
	json_key(j, "functions");
	json_u64(j, t->functions_n);
	json_key(j, "rows");
	json_array(j);
	for (size_t i = 0; i < t->n; i++)
		json_add_row(j, &t->rows[i]);
	json_array_end(j);
	json_object_end(j);
}

static void json_add_cost(struct json *j, const struct cost *c)
{
	json_object(j);
	json_add_metric(j, c->metric);
	json_key(j, "value");
	json_add_point(j, c->t_ns, c->value);
	json_object_end(j);
}

static enum err_code json_add_series(
	struct json *j, const struct cost_series *s, const struct render_options *o, struct err *err)
{
	enum err_code rc;

	json_object(j);
	json_add_metric(j, s->metric);
	json_key(j, "values");
	json_array(j);
	for (size_t i = 0; i < s->n; i++) {
		json_add_point(j, s->points[i].t_ns, s->points[i].value);
		if ((rc = render_flush(o, j->out, err)))
			return rc;
	}
	json_array_end(j);
	json_object_end(j);
	return ERR_OK;
}

/*
 * A table for clients that know only vectors: the function of a row is a label, its flat cost the
 * value.
 */
static void json_add_rows(struct json *j, const struct top_table *t, int64_t t_ns)
{
	for (size_t i = 0; i < t->n; i++) {
		json_object(j);
		json_key(j, "metric");
		json_object(j);
		for (size_t k = 0; k < t->metric.n; k++) {
			if (str_is(t->metric.v[k].name, "function"))
				continue;
			json_key_str(j, t->metric.v[k].name);
			json_str(j, t->metric.v[k].value);
		}
		json_key(j, "function");
		json_str(j, t->rows[i].function);
		json_object_end(j);
		json_key(j, "value");
		json_add_point(j, t_ns, (double)t->rows[i].flat);
		json_object_end(j);
	}
}

static const char *const type_names[] = {
	[RESULT_PROFILES] = "profiles",
	[RESULT_TOP] = "top",
	[RESULT_VECTOR] = "vector",
	[RESULT_MATRIX] = "matrix",
	[RESULT_SCALAR] = "scalar",
	[RESULT_STRING] = "string",
};

static enum err_code json_add_elements(
	struct json *j, const struct result *r, const struct render_options *o, struct err *err)
{
	enum err_code rc = ERR_OK;

	json_array(j);
	for (size_t i = 0; i < r->n && !rc; i++) {
		if (r->type == RESULT_PROFILES)
			rc = json_add_profile(j, &r->profiles[i], o->search ? &r->tops[i] : NULL, o, err);
		else if (r->type == RESULT_TOP && o->numbers_only)
			json_add_rows(j, &r->tops[i], r->t_ns);
		else if (r->type == RESULT_TOP)
			json_add_top(j, &r->tops[i]);
		else if (r->type == RESULT_VECTOR)
			json_add_cost(j, &r->vector[i]);
		else
			rc = json_add_series(j, &r->matrix[i], o, err);
		if (!rc)
			rc = render_flush(o, j->out, err);
	}
	if (!rc)
		json_array_end(j);
	return rc;
}

enum err_code render_json(
	struct json *j, const struct result *r, const struct render_options *o, struct err *err)
{
	enum err_code rc = ERR_OK;

	assert(r->type != RESULT_SCRAPE); /* only pprof holds one */
	assert(r->type != RESULT_PROFILES || !o->search || r->tops || r->n == 0);
	json_object(j);
	json_key(j, "resultType");
	json_cstr(j, type_names[r->type == RESULT_TOP && o->numbers_only ? RESULT_VECTOR : r->type]);
	if (r->unit.len > 0) {
		json_key(j, "unit");
		json_str(j, r->unit);
	}
	json_key(j, "result");
	if (r->type == RESULT_SCALAR) {
		json_add_point(j, r->t_ns, r->scalar);
	} else if (r->type == RESULT_STRING) {
		json_array(j);
		json_add_time(j, r->t_ns);
		json_str(j, r->string);
		json_array_end(j);
	} else {
		rc = json_add_elements(j, r, o, err);
	}
	if (rc)
		return rc;
	json_object_end(j);
	if (buf_failed(j->out))
		return err_nomem(err, "answer");
	return ERR_OK;
}
