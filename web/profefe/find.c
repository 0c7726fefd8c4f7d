/* GET: what is stored as a list, one profile by its id, several merged, the services. */
#include <stdlib.h>

#include "base/clock.h"
#include "web/profefe/read.h"
#include "web/render/notices.h"
#include "web/render/profile.h"
#include "web/router/strings.h"

#define IDS_PATH STR("/api/0/profiles/")
#define SERVICES_MAX 100000u
#define FILE_NAME_BYTES_MAX 128u

/* ---- lists ---- */

static void profefe_write_list(
	struct http_out *out, const struct profefe_params *p, const struct read_list *list)
{
	struct json j;

	profefe_begin(out, &j);
	json_array(&j);
	for (size_t i = 0; i < list->n; i++) {
		struct labels labels = list->v[i].series->labels;

		profefe_write(&j, labels, list->v[i].ts_ns, p->service,
			profefe_type_of(labels_get(labels, STR(LABEL_NAME))));
	}
	json_array_end(&j);
	profefe_end(&j);
}

static enum err_code profefe_find_rows(struct profefe_reading *r, const struct profefe_params *p,
	struct http_out *out, struct err *err)
{
	struct read_series series;
	struct read_list list;
	struct notices notices;
	enum err_code rc;

	if ((rc = read_open(r, r->w, r->in, p->from_ns, p->to_ns, err)) ||
		(rc = read_select(r, p, &series, err)) || (rc = read_list(r, p, &series, &list, err)))
		return rc;
	notices = notices_of_querier(r->q);
	if ((rc = notices_add_header(&notices, &r->in->arena, out, err)))
		return rc;
	profefe_write_list(out, p, &list);
	return ERR_OK;
}

void profefe_find(struct web *w, struct http_in *in, struct http_out *out)
{
	struct profefe_reading r = { .w = w, .in = in };
	struct profefe_params p;
	enum err_code rc;
	struct err err;

	if (!(rc = profefe_read_query(w, in, false, &p, &err))) {
		rc = profefe_find_rows(&r, &p, out, &err);
		read_close(&r);
	}
	if (rc)
		profefe_fail(out, rc, &err);
}

/* ---- profiles ---- */

/* missing: of the profiles that were asked for by id. */
static enum err_code profefe_send(struct profefe_reading *r, struct sum *sum, size_t missing,
	const char *name, struct http_out *out, struct err *err)
{
	struct notices notices = notices_of_querier(r->q);
	struct pprof *p;
	enum err_code rc;

	if (missing) {
		struct str *all = arena_array(&r->arena, struct str, notices.warnings_n + 1);
		char *text = arena_printf(
			&r->arena, "%zu of %zu profiles were not found", missing, missing + sum_rows(sum));

		if (!all || !text)
			return arena_fail(&r->arena, "profile", err);
		all[0] = str_of(text);
		for (size_t i = 0; i < notices.warnings_n; i++)
			all[i + 1] = notices.warnings[i];
		notices.warnings = all;
		notices.warnings_n++;
	}
	if ((rc = sum_profile(sum, &p, err)) ||
		(rc = notices_add_comments(&notices, &r->arena, p, err)) ||
		(rc = render_encode_gz(p, &out->body, err)) ||
		(rc = notices_add_header(&notices, &r->in->arena, out, err)))
		return rc;
	out->content_type = "application/octet-stream";
	out->encoded = true;
	name = arena_printf(&r->in->arena, "attachment; filename=\"%s\"", name);
	if (!name)
		return arena_fail(&r->in->arena, "answer", err);
	http_add_header(out, "Content-Disposition", str_of(name));
	return ERR_OK;
}

static enum err_code find_add_rows(struct profefe_reading *r, const struct db_series *s,
	int64_t from_ns, int64_t to_ns, struct sum *sum, struct err *err)
{
	db_querier_note_added(r->q, s, from_ns - 1, to_ns);
	return read_rows(r, s, from_ns, to_ns, sum_add, sum, err);
}

/* Of each series, the listed rows are its newest ones. */
static enum err_code sum_listed(struct profefe_reading *r, struct sum *sum,
	const struct profefe_params *p, const struct read_series *series, struct err *err)
{
	struct read_list list;
	enum err_code rc = read_list(r, p, series, &list, err);

	for (size_t i = 0; i < series->n && !rc; i++) {
		int64_t from_ns = INT64_MAX;

		for (size_t k = list.n; k-- > 0 && from_ns == INT64_MAX;)
			if (list.v[k].series == series->v[i])
				from_ns = list.v[k].ts_ns;
		if (from_ns != INT64_MAX)
			rc = find_add_rows(r, series->v[i], from_ns, p->to_ns, sum, err);
	}
	return rc;
}

static enum err_code profefe_find_merge(struct profefe_reading *r, const struct profefe_params *p,
	struct sum **sum, struct http_out *out, struct err *err)
{
	struct read_series series;
	enum err_code rc;

	if ((rc = read_open(r, r->w, r->in, p->from_ns, p->to_ns, err)) ||
		(rc = sum_open(&r->arena, sum, err)) || (rc = read_select(r, p, &series, err)))
		return rc;
	if (p->limit)
		rc = sum_listed(r, *sum, p, &series, err);
	for (size_t i = 0; i < series.n && !p->limit && !rc; i++)
		rc = find_add_rows(r, series.v[i], p->from_ns, p->to_ns, *sum, err);
	if (rc)
		return rc;
	if (!sum_rows(*sum))
		return err_set(err, ERR_NOT_FOUND, "nothing found");
	return profefe_send(r, *sum, 0, p->type, out, err);
}

void profefe_merge(struct web *w, struct http_in *in, struct http_out *out)
{
	struct profefe_reading r = { .w = w, .in = in };
	struct profefe_params p;
	struct sum *sum = NULL;
	enum err_code rc;
	struct err err;

	if (!(rc = profefe_read_query(w, in, true, &p, &err))) {
		rc = profefe_find_merge(&r, &p, &sum, out, &err);
		sum_close(sum);
		read_close(&r);
	}
	if (rc)
		profefe_fail(out, rc, &err);
}

/* ---- by id ---- */

static int profefe_by_service(const void *a, const void *b)
{
	return str_cmp(
		((const struct profefe_id *)a)->service, ((const struct profefe_id *)b)->service);
}

/* Adds the row; nothing if there is none. series: of the id's service, or of that before. */
static enum err_code profefe_add_id(struct profefe_reading *r, const struct profefe_id *id,
	struct sum *sum, struct profefe_params *p, struct read_series *series, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (!id->service.len)
		return ERR_OK; /* relabelling took it: there is no index to find it by */
	if (!str_eq(p->service, id->service)) {
		p->service = id->service;
		rc = read_select(r, p, series, err);
		if (rc && rc != ERR_NOT_FOUND)
			return rc;
	}
	for (size_t i = 0; i < series->n; i++)
		if (labels_hash(series->v[i]->labels) == id->series &&
			(rc = find_add_rows(r, series->v[i], id->ts_ns, id->ts_ns, sum, err)))
			return rc;
	return ERR_OK;
}

static enum err_code profefe_find_get(struct profefe_reading *r, struct str text, struct sum **sum,
	struct http_out *out, struct err *err)
{
	int64_t from_ns = INT64_MAX, to_ns = INT64_MIN;
	struct profefe_params p = { 0 };
	struct read_series series = { 0 };
	struct profefe_id *ids;
	const char *name;
	enum err_code rc;
	size_t n;

	if ((rc = profefe_ids_parse(&r->in->arena, text, &ids, &n, err)))
		return rc;
	qsort(ids, n, sizeof(*ids), profefe_by_service); /* series are selected once for each */
	for (size_t i = 0; i < n; i++) {
		from_ns = ids[i].ts_ns < from_ns ? ids[i].ts_ns : from_ns;
		to_ns = ids[i].ts_ns > to_ns ? ids[i].ts_ns : to_ns;
	}
	if ((rc = read_open(r, r->w, r->in, from_ns, to_ns, err)) ||
		(rc = sum_open(&r->arena, sum, err)))
		return rc;
	for (size_t i = 0; i < n && !rc; i++)
		rc = profefe_add_id(r, &ids[i], *sum, &p, &series, err);
	if (rc)
		return rc;
	if (!sum_rows(*sum))
		return err_set(err, ERR_NOT_FOUND, "nothing found");
	name = n > 1 || text.len > FILE_NAME_BYTES_MAX ?
		"profiles" :
		arena_strndup(&r->in->arena, text.ptr, text.len);
	return name ? profefe_send(r, *sum, n - sum_rows(*sum), name, out, err) :
				  arena_fail(&r->in->arena, "answer", err);
}

void profefe_get(struct web *w, struct http_in *in, struct http_out *out)
{
	struct str ids = { in->path.ptr + IDS_PATH.len, in->path.len - IDS_PATH.len };
	struct profefe_reading r = { .w = w, .in = in };
	struct sum *sum = NULL;
	enum err_code rc;
	struct err err;

	rc = profefe_find_get(&r, ids, &sum, out, &err);
	sum_close(sum);
	read_close(&r);
	if (rc)
		profefe_fail(out, rc, &err);
}

/* ---- services ---- */

static enum err_code profefe_list_services(
	struct profefe_reading *r, struct router_strings *out, struct err *err)
{
	static const char *const names[] = { "service_name", "job" };
	struct str *v;
	size_t n;
	enum err_code rc;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if ((rc = db_label_values(
				 r->q, str_of(names[i]), NULL, 0, SERVICES_MAX, &r->arena, &v, &n, err)) ||
			(rc = strings_add(out, &r->arena, v, n, err)))
			return rc;
	strings_unique(out);
	if (out->n > SERVICES_MAX)
		return err_set(err, ERR_LIMIT, "more than %u services", SERVICES_MAX);
	return out->n ? ERR_OK : err_set(err, ERR_NOT_FOUND, "nothing found");
}

void profefe_services(struct web *w, struct http_in *in, struct http_out *out)
{
	struct profefe_reading r = { 0 };
	struct router_strings services = { 0 };
	enum err_code rc;
	struct err err;
	struct json j;

	if (!(rc = read_open(&r, w, in, 0, TIME_MAX_NS, &err)) &&
		!(rc = profefe_list_services(&r, &services, &err))) {
		profefe_begin(out, &j);
		json_array(&j);
		for (size_t i = 0; i < services.n; i++)
			json_str(&j, services.v[i]);
		json_array_end(&j);
		profefe_end(&j);
	}
	read_close(&r);
	if (rc)
		profefe_fail(out, rc, &err);
}
