/*
 * Names: profile types, labels, their values, series, and since when there is data.
 *
 * Labels are answered as they are stored, except for service_name, which is the job of series that
 * have none, and __profile_type__, which is not stored. That is answered when asked for by name.
 */
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/quote.h"
#include "tsdb/db.h"
#include "web/pyroscope/pyroscope.h"
#include "web/pyroscope/selector.h"
#include "web/render/notices.h"
#include "web/router/strings.h"

#define MATCHERS_MAX 64u
#define LABEL_NAMES_MAX 64u

typedef Epimetheus__Pyroscope__LabelPair pair_message;
typedef Epimetheus__Pyroscope__Labels labels_message;
typedef Epimetheus__Pyroscope__ProfileType type_message;

struct pyroscope_view {
	struct arena *arena;
	struct db_querier *q;
	struct pyroscope_selector *selectors; /* at least one: {} if none was given */
	size_t selectors_n;
};

/* Without times all that is stored, as in Pyroscope. */
static enum err_code pyroscope_view_open_querier(struct pyroscope_view *v, struct pyroscope_call *c,
	int64_t start_ms, int64_t end_ms, struct err *err)
{
	int64_t start_ns = 0, end_ns = TIME_MAX_NS;
	enum err_code rc;

	v->arena = &c->in->arena;
	if ((start_ms || end_ms) && (rc = pyroscope_times(start_ms, end_ms, &start_ns, &end_ns, err)))
		return rc;
	return db_querier_open_limited(
		c->w->o.db, c->in->user.limits, start_ns, end_ns, &c->in->canceled, &v->q, err);
}

static enum err_code pyroscope_view_read_selectors(
	struct pyroscope_view *v, char *const *matchers, size_t n, struct err *err)
{
	enum err_code rc;

	if (n > MATCHERS_MAX)
		return err_set(err, ERR_LIMIT, "%zu matchers, limit %u", n, MATCHERS_MAX);
	v->selectors = arena_array(v->arena, struct pyroscope_selector, n + 1);
	if (!v->selectors)
		return arena_fail(v->arena, "selectors", err);
	for (size_t i = 0; i < n; i++) {
		rc = pyroscope_selector_read(
			v->arena, (struct str){ 0 }, str_of(matchers[i]), &v->selectors[i], err);
		if (rc)
			return rc;
		v->selectors_n++;
	}
	v->selectors_n += n == 0;
	return ERR_OK;
}

static enum err_code pyroscope_view_open(struct pyroscope_view *v, struct pyroscope_call *c,
	char *const *matchers, size_t n, int64_t start_ms, int64_t end_ms, struct err *err)
{
	enum err_code rc = pyroscope_view_open_querier(v, c, start_ms, end_ms, err);

	return rc ? rc : pyroscope_view_read_selectors(v, matchers, n, err);
}

/* Adds a header with the warnings met while reading. */
static enum err_code pyroscope_view_end(
	struct pyroscope_view *v, struct pyroscope_call *c, enum err_code rc, struct err *err)
{
	struct notices notices;

	if (!rc) {
		notices = notices_of_querier(v->q);
		rc = notices_add_header(&notices, v->arena, c->out, err);
	}
	if (v->q)
		db_querier_close(v->q);
	for (size_t i = 0; i < v->selectors_n; i++)
		pyroscope_selector_release(&v->selectors[i]);
	return rc;
}

/* Matchers for the database: those of the selector and the profile's name of each type. */
static enum err_code pyroscope_view_matchers_of(struct pyroscope_view *v,
	const struct pyroscope_selector *s, struct matcher **out, size_t *n, struct err *err)
{
	struct matcher *m = arena_array(v->arena, struct matcher, s->matchers_n + s->types_n + 1);
	size_t k = 0;

	if (!m)
		return arena_fail(v->arena, "matchers", err);
	for (size_t i = 0; i < s->types_n; i++)
		m[k++] = (struct matcher){ .op = MATCH_EQ,
			.name = STR(LABEL_NAME), .value = s->types[i].name };
	for (size_t i = 0; i < s->matchers_n; i++)
		m[k++] = s->matchers[i];
	*out = m;
	*n = k;
	return ERR_OK;
}

/* Sorted, each once, as a message has them. */
static enum err_code pyroscope_strings_text(
	struct router_strings *s, struct arena *a, char ***out, struct err *err)
{
	char **text = arena_array(a, char *, s->n + 1);

	strings_unique(s);
	for (size_t i = 0; i < s->n && text; i++)
		if (!(text[i] = pyroscope_text(a, s->v[i])))
			text = NULL;
	*out = text;
	return text ? ERR_OK : arena_fail(a, "names", err);
}

/* ---- types ---- */

static int pyroscope_cmp_type(const void *a, const void *b)
{
	const struct profile_type *l = a, *r = b;
	const struct str x[] = { l->name, l->sample_type, l->sample_unit, l->period_type,
		l->period_unit };
	const struct str y[] = { r->name, r->sample_type, r->sample_unit, r->period_type,
		r->period_unit };
	int rc = 0;

	for (size_t i = 0; i < 5 && !rc; i++)
		rc = str_cmp(x[i], y[i]);
	return rc;
}

static enum err_code pyroscope_type_id(
	struct arena *a, const struct profile_type *t, struct str *out, struct err *err)
{
	struct buf text = { 0 };

	pyroscope_type_print(&text, t);
	*out = str_dup(a, buf_str(&text));
	buf_release(&text);
	return out->ptr ? ERR_OK : arena_fail(a, "profile types", err);
}

static enum err_code pyroscope_fill_type(
	struct arena *a, const struct profile_type *t, type_message *to, struct err *err)
{
	struct str id;
	enum err_code rc = pyroscope_type_id(a, t, &id, err);

	if (rc)
		return rc;
	epimetheus__pyroscope__profile_type__init(to);
	to->id = pyroscope_text(a, id);
	to->name = pyroscope_text(a, t->name);
	to->sample_type = pyroscope_text(a, t->sample_type);
	to->sample_unit = pyroscope_text(a, t->sample_unit);
	to->period_type = pyroscope_text(a, t->period_type);
	to->period_unit = pyroscope_text(a, t->period_unit);
	if (!to->id || !to->name || !to->sample_type || !to->sample_unit || !to->period_type ||
		!to->period_unit)
		return arena_fail(a, "profile types", err);
	return ERR_OK;
}

static enum err_code pyroscope_answer_types(
	struct pyroscope_call *c, struct profile_type *types, size_t n, struct err *err)
{
	struct arena *a = &c->in->arena;
	type_message *items = arena_array(a, type_message, n + 1);
	type_message **list = arena_array(a, type_message *, n + 1);
	Epimetheus__Pyroscope__ProfileTypesResponse m;
	enum err_code rc;

	if (!items || !list)
		return arena_fail(a, "profile types", err);
	epimetheus__pyroscope__profile_types_response__init(&m);
	m.profile_types = list;
	if (n)
		qsort(types, n, sizeof(*types), pyroscope_cmp_type);
	for (size_t i = 0; i < n; i++) {
		/* Our types of six and of five parts have one id. */
		if (i && !pyroscope_cmp_type(&types[i - 1], &types[i]))
			continue;
		list[m.n_profile_types] = &items[i];
		if ((rc = pyroscope_fill_type(a, &types[i], &items[i], err)))
			return rc;
		m.n_profile_types++;
	}
	return pyroscope_answer(c, &m.base, err);
}

enum err_code pyroscope_profile_types(
	struct pyroscope_call *c, const ProtobufCMessage *request, struct err *err)
{
	const Epimetheus__Pyroscope__ProfileTypesRequest *r = (const void *)request;
	struct profile_type *types = NULL;
	struct pyroscope_view v = { 0 };
	size_t n = 0;
	enum err_code rc = pyroscope_view_open_querier(&v, c, r->start, r->end, err);

	if (!rc)
		rc = db_profile_types(v.q, v.arena, &types, &n, err);
	if (!rc)
		rc = pyroscope_answer_types(c, types, n, err);
	return pyroscope_view_end(&v, c, rc, err);
}

/* The types of a series that a selector selects. */
static enum err_code pyroscope_view_types_of(struct pyroscope_view *v,
	const struct pyroscope_selector *s, const struct db_series *series, struct profile_type **out,
	size_t *n, struct err *err)
{
	size_t all = 0, kept = 0;
	enum err_code rc = db_series_types(v->q, series, v->arena, out, &all, err);

	for (size_t i = 0; i < all && !rc; i++)
		if (pyroscope_selector_fits(s, &(*out)[i]))
			(*out)[kept++] = (*out)[i];
	*n = kept;
	return rc;
}

/* ---- labels ---- */

static enum err_code pyroscope_view_add_ids(struct pyroscope_view *v,
	const struct pyroscope_selector *s, const struct profile_type *types, size_t n,
	struct router_strings *to, struct err *err)
{
	struct str id;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < n && !rc; i++)
		if (pyroscope_selector_fits(s, &types[i]) &&
			!(rc = pyroscope_type_id(v->arena, &types[i], &id, err)))
			rc = strings_add(to, v->arena, &id, 1, err);
	return rc;
}

static enum err_code pyroscope_view_type_ids(struct pyroscope_view *v,
	const struct pyroscope_selector *s, struct router_strings *to, struct err *err)
{
	struct profile_type *types = NULL;
	struct db_series *series;
	struct matcher *m;
	size_t m_n, n = 0, types_n = 0;
	enum err_code rc;

	if (s->matchers_n == 0) { /* no need to look at series */
		rc = db_profile_types(v->q, v->arena, &types, &types_n, err);
		return rc ? rc : pyroscope_view_add_ids(v, s, types, types_n, to, err);
	}
	if ((rc = pyroscope_view_matchers_of(v, s, &m, &m_n, err)) ||
		(rc = db_select_kinds(v->q, DB_PROFILES, m, m_n, v->arena, &series, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !rc; i++)
		if (!(rc = pyroscope_view_types_of(v, s, &series[i], &types, &types_n, err)))
			rc = pyroscope_view_add_ids(v, s, types, types_n, to, err);
	return rc;
}

/* name NULL: names of labels, else the values of this one. */
static enum err_code pyroscope_view_collect(
	struct pyroscope_view *v, const struct str *name, struct router_strings *to, struct err *err)
{
	const struct str service = STR(LABEL_SERVICE_NAME);
	struct matcher *m;
	struct str *found;
	size_t m_n, n = 0;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < v->selectors_n && !rc; i++) {
		if (name && str_is(*name, PYROSCOPE_TYPE_LABEL)) {
			rc = pyroscope_view_type_ids(v, &v->selectors[i], to, err);
			continue;
		}
		if ((rc = pyroscope_view_matchers_of(v, &v->selectors[i], &m, &m_n, err)))
			return rc;
		if (name)
			rc = db_label_values(
				v->q, pyroscope_label(*name), m, m_n, 0, v->arena, &found, &n, err);
		else
			rc = db_label_names(v->q, m, m_n, 0, v->arena, &found, &n, err);
		if (!rc)
			rc = strings_add(to, v->arena, found, n, err);
		for (size_t k = 0; k < n && !rc && !name; k++)
			if (str_is(found[k], LABEL_SERVICE_ELSE))
				rc = strings_add(to, v->arena, &service, 1, err);
	}
	return rc;
}

enum err_code pyroscope_label_names(
	struct pyroscope_call *c, const ProtobufCMessage *request, struct err *err)
{
	const Epimetheus__Pyroscope__LabelNamesRequest *r = (const void *)request;
	Epimetheus__Pyroscope__LabelNamesResponse m;
	struct router_strings names = { 0 };
	struct pyroscope_view v = { 0 };
	enum err_code rc = pyroscope_view_open(
		&v, c, r->matchers, r->n_matchers, r->start, r->end, err);

	epimetheus__pyroscope__label_names_response__init(&m);
	if (!rc && !(rc = pyroscope_view_collect(&v, NULL, &names, err)) &&
		!(rc = pyroscope_strings_text(&names, v.arena, &m.names, err))) {
		m.n_names = names.n;
		rc = pyroscope_answer(c, &m.base, err);
	}
	return pyroscope_view_end(&v, c, rc, err);
}

enum err_code pyroscope_label_values(
	struct pyroscope_call *c, const ProtobufCMessage *request, struct err *err)
{
	const Epimetheus__Pyroscope__LabelValuesRequest *r = (const void *)request;
	Epimetheus__Pyroscope__LabelValuesResponse m;
	struct str name = str_of(r->name);
	struct router_strings values = { 0 };
	struct pyroscope_view v = { 0 };
	enum err_code rc;

	if (!any_name_valid(name))
		return err_set(err, ERR_INVALID, "name %s is not the name of a label", QUOTED(name));
	rc = pyroscope_view_open(&v, c, r->matchers, r->n_matchers, r->start, r->end, err);
	epimetheus__pyroscope__label_values_response__init(&m);
	if (!rc && !(rc = pyroscope_view_collect(&v, &name, &values, err)) &&
		!(rc = pyroscope_strings_text(&values, v.arena, &m.names, err))) {
		m.n_names = values.n;
		rc = pyroscope_answer(c, &m.base, err);
	}
	return pyroscope_view_end(&v, c, rc, err);
}

/* ---- series ---- */

struct pyroscope_found {
	struct labels *v;
	size_t n, cap;
	char *const *names; /* which labels are asked for; none: all */
	size_t names_n;
	bool with_type; /* __profile_type__ is among them */
};

static enum err_code pyroscope_found_add(
	struct pyroscope_found *f, struct arena *a, struct labels all, struct str id, struct err *err)
{
	struct labels_builder b;

	labels_builder_init(&b, a, f->names_n ? (struct labels){ 0 } : all);
	if (!f->names_n)
		labels_builder_set(&b, STR(LABEL_SERVICE_NAME), labels_get(all, STR(LABEL_SERVICE)));
	for (size_t i = 0; i < f->names_n; i++)
		labels_builder_set(
			&b, str_of(f->names[i]), labels_get(all, pyroscope_label(str_of(f->names[i]))));
	if (f->with_type)
		labels_builder_set(&b, STR(PYROSCOPE_TYPE_LABEL), id);
	if (!arena_array_room(a, &f->v, f->n, 1, &f->cap))
		return arena_fail(a, "series", err);
	return labels_builder_build(&b, &f->v[f->n++], err);
}

static enum err_code pyroscope_view_find_series(struct pyroscope_view *v,
	const struct pyroscope_selector *s, struct pyroscope_found *to, struct err *err)
{
	bool by_type = s->types_n || to->with_type;
	struct profile_type *types = NULL;
	struct db_series *series;
	struct matcher *m;
	struct str id = { 0 };
	size_t m_n, n, types_n;
	enum err_code rc;

	if ((rc = pyroscope_view_matchers_of(v, s, &m, &m_n, err)) ||
		(rc = db_select_kinds(v->q, DB_PROFILES, m, m_n, v->arena, &series, &n, err)))
		return rc;
	for (size_t i = 0; i < n; i++) {
		types_n = 1;
		if (by_type && (rc = pyroscope_view_types_of(v, s, &series[i], &types, &types_n, err)))
			return rc;
		if (!to->with_type && types_n > 1)
			types_n = 1;
		for (size_t t = 0; t < types_n; t++)
			if ((to->with_type && (rc = pyroscope_type_id(v->arena, &types[t], &id, err))) ||
				(rc = pyroscope_found_add(to, v->arena, series[i].labels, id, err)))
				return rc;
	}
	return ERR_OK;
}

static int pyroscope_cmp_labels(const void *a, const void *b)
{
	return labels_cmp(*(const struct labels *)a, *(const struct labels *)b);
}

enum err_code pyroscope_pairs(
	struct arena *a, struct labels ls, pair_message ***out, struct err *err)
{
	pair_message *items = arena_array(a, pair_message, ls.n + 1);
	pair_message **list = arena_array(a, pair_message *, ls.n + 1);

	if (!items || !list)
		return arena_fail(a, "labels", err);
	for (size_t i = 0; i < ls.n; i++) {
		epimetheus__pyroscope__label_pair__init(&items[i]);
		items[i].name = pyroscope_text(a, ls.v[i].name);
		items[i].value = pyroscope_text(a, ls.v[i].value);
		if (!items[i].name || !items[i].value)
			return arena_fail(a, "labels", err);
		list[i] = &items[i];
	}
	*out = list;
	return ERR_OK;
}

static enum err_code pyroscope_answer_series(
	struct pyroscope_call *c, struct pyroscope_found *f, struct err *err)
{
	struct arena *a = &c->in->arena;
	labels_message *items = arena_array(a, labels_message, f->n + 1);
	labels_message **list = arena_array(a, labels_message *, f->n + 1);
	Epimetheus__Pyroscope__SeriesResponse m;
	enum err_code rc;

	if (!items || !list)
		return arena_fail(a, "series", err);
	epimetheus__pyroscope__series_response__init(&m);
	m.labels_set = list;
	if (f->n)
		qsort(f->v, f->n, sizeof(*f->v), pyroscope_cmp_labels);
	for (size_t i = 0; i < f->n; i++) {
		if (i && labels_eq(f->v[i - 1], f->v[i]))
			continue;
		epimetheus__pyroscope__labels__init(&items[i]);
		if ((rc = pyroscope_pairs(a, f->v[i], &items[i].labels, err)))
			return rc;
		items[i].n_labels = f->v[i].n;
		list[m.n_labels_set++] = &items[i];
	}
	return pyroscope_answer(c, &m.base, err);
}

enum err_code pyroscope_series(
	struct pyroscope_call *c, const ProtobufCMessage *request, struct err *err)
{
	const Epimetheus__Pyroscope__SeriesRequest *r = (const void *)request;
	struct pyroscope_found f = { .names = r->label_names, .names_n = r->n_label_names };
	struct pyroscope_view v = { 0 };
	enum err_code rc;

	if (f.names_n > LABEL_NAMES_MAX)
		return err_set(err, ERR_LIMIT, "%zu label names, limit %u", f.names_n, LABEL_NAMES_MAX);
	for (size_t i = 0; i < f.names_n; i++)
		f.with_type |= !strcmp(f.names[i], PYROSCOPE_TYPE_LABEL);
	rc = pyroscope_view_open(&v, c, r->matchers, r->n_matchers, r->start, r->end, err);
	for (size_t i = 0; i < v.selectors_n && !rc; i++)
		rc = pyroscope_view_find_series(&v, &v.selectors[i], &f, err);
	if (!rc)
		rc = pyroscope_answer_series(c, &f, err);
	return pyroscope_view_end(&v, c, rc, err);
}

/* ---- what there is at all ---- */

enum err_code pyroscope_stats(
	struct pyroscope_call *c, const ProtobufCMessage *request, struct err *err)
{
	Epimetheus__Pyroscope__GetProfileStatsResponse m;
	struct db_status status;

	(void)request;
	db_status(c->w->o.db, &status);
	epimetheus__pyroscope__get_profile_stats_response__init(&m);
	m.data_ingested = status.max_ns != 0;
	m.oldest_profile_time = status.min_ns / NS_PER_MS;
	m.newest_profile_time = status.max_ns / NS_PER_MS;
	return pyroscope_answer(c, &m.base, err);
}
