/*
 * Names: series, labels, their values, profile types; for completion and for Prometheus's clients.
 *
 * match[] takes the language's selectors. A name in one is that of a series, or else a way to name
 * a profile type: then the series of that profile are meant that have such a type.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "promql/names.h"
#include "promql/parse.h"
#include "tsdb/db.h"
#include "web/api.h"
#include "web/handlers.h"

#define MATCHES_MAX 64u
#define TRUNCATED "results truncated due to limit"

/* One request's view of the database. */
struct view {
	struct http_in *in;
	struct db_querier *q;
	struct parsed *matches[MATCHES_MAX];
	size_t matches_n;
	uint64_t limit; /* 0: none */
};

static enum err_code read_matches(struct view *v, struct err *err)
{
	for (size_t i = 0; i < v->in->params_n; i++) {
		const struct http_param *p = &v->in->params[i];
		enum err_code rc;

		if (!str_is(p->name, "match[]"))
			continue;
		if (v->matches_n == MATCHES_MAX)
			return err_set(
				err, ERR_INVALID, "more than %u match[] parameters", MATCHES_MAX);
		rc = parse_selector(&v->in->arena, p->value, &v->matches[v->matches_n], NULL, err);
		if (rc)
			return err_wrap(err, rc, "invalid parameter \"match[]\"");
		v->matches_n++;
	}
	return ERR_OK;
}

static enum err_code view_open(struct view *v, struct web *w, struct http_in *in, struct err *err)
{
	int64_t start_ns = -TIME_MAX_NS, end_ns = TIME_MAX_NS;
	enum err_code rc;

	*v = (struct view){ .in = in };
	if ((rc = api_time(in, "start", &start_ns, NULL, err)))
		return rc;
	if ((rc = api_time(in, "end", &end_ns, NULL, err)))
		return rc;
	if (end_ns < start_ns)
		return err_set(err, ERR_INVALID,
			"invalid parameter \"end\": end timestamp must not be before start time");
	if ((rc = api_uint(in, "limit", &v->limit, err)))
		return rc;
	if ((rc = read_matches(v, err)))
		return rc;
	return db_querier_open(w->o.db, start_ns - 1, end_ns, &in->canceled, &v->q, err);
}

static void view_close(struct view *v)
{
	if (v->q)
		db_querier_close(v->q);
	for (size_t i = 0; i < v->matches_n; i++)
		parsed_release(v->matches[i]);
}

/* The matchers of a selector and one on the name; `name` empty: theirs alone. */
static enum err_code name_matchers(struct view *v, const struct selector *s, struct str name,
	struct matcher **out, size_t *n, struct err *err)
{
	struct matcher *m = arena_array(&v->in->arena, struct matcher, s->matchers_n + 1);
	size_t k = 0;

	if (!m)
		return arena_fail(&v->in->arena, "matchers", err);
	if (name.len)
		m[k++] = (struct matcher){ .op = MATCH_EQ, .name = STR(LABEL_NAME), .value = name };
	for (size_t i = 0; i < s->matchers_n; i++)
		m[k++] = s->matchers[i];
	*out = m;
	*n = k;
	return ERR_OK;
}

/*
 * What a selector asks the database: its matchers, with the name resolved. *pattern->parts > 1
 * where a type within the profile is meant.
 */
static enum err_code resolve(struct view *v, const struct selector *s, struct matcher **m,
	size_t *n, struct type_pattern *pattern, struct err *err)
{
	const struct selector alone = { 0 };
	struct db_series *exact;
	size_t exact_n = 0;
	enum err_code rc;

	*pattern = (struct type_pattern){ 0 };
	if (!s->name.len || !type_pattern_parse(s->name, pattern) || str_eq(pattern->name, s->name))
		return name_matchers(v, s, s->name, m, n, err);
	if ((rc = name_matchers(v, &alone, s->name, m, n, err)))
		return rc;
	if ((rc = db_select(v->q, *m, *n, &v->in->arena, &exact, &exact_n, err)))
		return rc;
	if (!exact_n)
		return name_matchers(v, s, pattern->name, m, n, err);
	*pattern = (struct type_pattern){ 0 };
	return name_matchers(v, s, s->name, m, n, err);
}

static enum err_code has_type(struct view *v, const struct db_series *s,
	const struct type_pattern *p, bool *has, struct err *err)
{
	struct profile_type *types;
	size_t n = 0;
	enum err_code rc = ERR_OK;

	*has = p->parts <= 1;
	if (*has || (rc = db_series_types(v->q, s, &v->in->arena, &types, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !*has; i++)
		*has = type_pattern_match(p, &types[i]);
	return ERR_OK;
}

/* ---- lists of strings, from one question per match[] ---- */

struct strings {
	struct str *v;
	size_t n, cap;
};

static enum err_code strings_add(
	struct strings *s, struct arena *a, const struct str *v, size_t n, struct err *err)
{
	struct str *grown;

	if (s->n + n > s->cap) {
		s->cap = (s->n + n) * 2;
		grown = arena_array(a, struct str, s->cap);
		if (!grown)
			return arena_fail(a, "names", err);
		if (s->n)
			memcpy(grown, s->v, s->n * sizeof(*grown));
		s->v = grown;
	}
	if (n)
		memcpy(s->v + s->n, v, n * sizeof(*v));
	s->n += n;
	return ERR_OK;
}

static int cmp_str(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void strings_unique(struct strings *s)
{
	size_t k = 0;

	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), cmp_str);
	for (size_t i = 0; i < s->n; i++)
		if (!k || !str_eq(s->v[k - 1], s->v[i]))
			s->v[k++] = s->v[i];
	s->n = k;
}

static void end_with_warnings(struct json *j, const struct view *v, size_t n)
{
	struct str warnings[17];
	size_t total, infos_n, k = 0;
	const struct str *damage = db_querier_warnings(v->q, &total);
	const struct str *infos = db_querier_infos(v->q, &infos_n);

	while (k < total && k < 16) {
		warnings[k] = damage[k];
		k++;
	}
	if (v->limit && n > v->limit)
		warnings[k++] = STR(TRUNCATED);
	api_end(j, warnings, k, infos, infos_n);
}

static void write_strings(struct http_out *out, const struct view *v, const struct strings *s)
{
	struct json j;

	api_begin(out, &j);
	json_array(&j);
	for (size_t i = 0; i < s->n && (!v->limit || i < v->limit); i++)
		json_str(&j, s->v[i]);
	json_array_end(&j);
	end_with_warnings(&j, v, s->n);
}

/* name NULL: names of labels, else the values of this one. m has n matchers. */
static enum err_code ask(struct view *v, const struct str *name, const struct matcher *m, size_t n,
	struct strings *to, struct err *err)
{
	struct arena *a = &v->in->arena;
	struct str *found;
	size_t found_n = 0;
	enum err_code rc;

	if (name)
		rc = db_label_values(v->q, *name, m, n, a, &found, &found_n, err);
	else
		rc = db_label_names(v->q, m, n, a, &found, &found_n, err);
	return rc ? rc : strings_add(to, a, found, found_n, err);
}

static enum err_code collect(
	struct view *v, const struct str *name, struct strings *to, struct err *err)
{
	struct type_pattern pattern;
	struct matcher *m;
	size_t n;
	enum err_code rc;

	if (!v->matches_n)
		return ask(v, name, NULL, 0, to, err);
	for (size_t i = 0; i < v->matches_n; i++) {
		if ((rc = resolve(v, &v->matches[i]->root->selector, &m, &n, &pattern, err)))
			return rc;
		if ((rc = ask(v, name, m, n, to, err)))
			return rc;
	}
	strings_unique(to);
	return ERR_OK;
}

static void answer_strings(
	struct web *w, struct http_in *in, struct http_out *out, const struct str *name)
{
	struct strings s = { 0 };
	struct view v;
	struct err err;
	enum err_code rc = view_open(&v, w, in, &err);

	if (!rc)
		rc = collect(&v, name, &s, &err);
	if (rc)
		api_fail(out, rc, &err);
	else
		write_strings(out, &v, &s);
	view_close(&v);
}

void api_label_names(struct web *w, struct http_in *in, struct http_out *out)
{
	answer_strings(w, in, out, NULL);
}

void api_label_values(struct web *w, struct http_in *in, struct http_out *out)
{
	struct str prefix = STR("/api/v1/label/"), suffix = STR("/values");
	struct str name = { in->path.ptr + prefix.len, in->path.len - prefix.len - suffix.len };

	if (label_name_valid(name))
		answer_strings(w, in, out, &name);
	else
		api_error(
			out, 400, "bad_data", "invalid label name: \"" STR_FMT "\"", STR_ARG(name));
}

/* ---- series ---- */

struct found_series {
	struct labels *v;
	size_t n, cap;
};

static enum err_code found_add(
	struct found_series *f, struct arena *a, struct labels ls, struct err *err)
{
	struct labels *grown;

	if (f->n == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 64;
		grown = arena_array(a, struct labels, f->cap);
		if (!grown)
			return arena_fail(a, "series", err);
		if (f->n)
			memcpy(grown, f->v, f->n * sizeof(*grown));
		f->v = grown;
	}
	f->v[f->n++] = ls;
	return ERR_OK;
}

static enum err_code find_series(
	struct view *v, const struct selector *s, struct found_series *to, struct err *err)
{
	struct type_pattern pattern;
	struct db_series *series;
	struct matcher *m;
	size_t m_n, n;
	enum err_code rc;
	bool has;

	if ((rc = resolve(v, s, &m, &m_n, &pattern, err)))
		return rc;
	if ((rc = db_select(v->q, m, m_n, &v->in->arena, &series, &n, err)))
		return rc;
	for (size_t i = 0; i < n; i++) {
		/* An older epoch of one that is there already. */
		if (to->n && labels_eq(to->v[to->n - 1], series[i].labels))
			continue;
		if ((rc = has_type(v, &series[i], &pattern, &has, err)))
			return rc;
		if (has && (rc = found_add(to, &v->in->arena, series[i].labels, err)))
			return rc;
	}
	return ERR_OK;
}

static int cmp_labels(const void *a, const void *b)
{
	return labels_cmp(*(const struct labels *)a, *(const struct labels *)b);
}

static void write_series(struct http_out *out, const struct view *v, struct found_series *f)
{
	struct json j;
	size_t distinct = 0;

	if (f->n)
		qsort(f->v, f->n, sizeof(*f->v), cmp_labels);
	api_begin(out, &j);
	json_array(&j);
	for (size_t i = 0; i < f->n; i++) {
		if (i && labels_eq(f->v[i - 1], f->v[i]))
			continue;
		if (!v->limit || distinct < v->limit)
			api_labels(&j, f->v[i]);
		distinct++;
	}
	json_array_end(&j);
	end_with_warnings(&j, v, distinct);
}

void api_series(struct web *w, struct http_in *in, struct http_out *out)
{
	struct found_series f = { 0 };
	struct view v;
	struct err err;
	enum err_code rc = view_open(&v, w, in, &err);

	if (!rc && !v.matches_n)
		rc = err_set(&err, ERR_INVALID, "no match[] parameter provided");
	for (size_t i = 0; !rc && i < v.matches_n; i++)
		rc = find_series(&v, &v.matches[i]->root->selector, &f, &err);
	if (rc)
		api_fail(out, rc, &err);
	else
		write_series(out, &v, &f);
	view_close(&v);
}

/* ---- profile types ---- */

static void write_type(struct json *j, const struct profile_type *t)
{
	const struct {
		const char *key;
		struct str value;
	} fields[] = {
		{ "name", t->name },
		{ "sample_type", t->sample_type },
		{ "sample_unit", t->sample_unit },
		{ "period_type", t->period_type },
		{ "period_unit", t->period_unit },
	};
	struct buf text = { 0 };

	profile_type_print(&text, t);
	json_object(j);
	json_key(j, "type");
	json_str(j, buf_str(&text));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		json_key(j, fields[i].key);
		json_str(j, fields[i].value);
	}
	json_key(j, "delta");
	json_bool(j, t->delta);
	json_object_end(j);
	buf_release(&text);
}

void api_profile_types(struct web *w, struct http_in *in, struct http_out *out)
{
	struct profile_type *types = NULL;
	struct view v;
	struct json j;
	struct err err;
	size_t n = 0;
	enum err_code rc = view_open(&v, w, in, &err);

	if (!rc)
		rc = db_profile_types(v.q, &in->arena, &types, &n, &err);
	if (rc) {
		api_fail(out, rc, &err);
	} else {
		api_begin(out, &j);
		json_array(&j);
		for (size_t i = 0; i < n && (!v.limit || i < v.limit); i++)
			write_type(&j, &types[i]);
		json_array_end(&j);
		end_with_warnings(&j, &v, n);
	}
	view_close(&v);
}
