/*
 * Names: series, labels, their values, profile types; for completion and for Prometheus's clients.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "web/api_view.h"
#include "web/handlers.h"

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
		if ((rc = view_resolve(v, &v->matches[i]->root->selector, &m, &n, &pattern, err)))
			return rc;
		if ((rc = ask(v, name, m, n, to, err)))
			return rc;
	}
	strings_unique(to);
	return ERR_OK;
}

/* ctx: as name of collect. */
static enum err_code write_strings(struct view *v, struct http_out *out, void *ctx, struct err *err)
{
	struct strings s = { 0 };
	enum err_code rc = collect(v, ctx, &s, err);

	if (!rc)
		view_strings_write(out, v, &s);
	return rc;
}

void api_label_names(struct web *w, struct http_in *in, struct http_out *out)
{
	view_answer(w, in, out, NULL, write_strings);
}

void api_label_values(struct web *w, struct http_in *in, struct http_out *out)
{
	struct str prefix = STR("/api/v1/label/"), suffix = STR("/values");
	struct str name = { in->path.ptr + prefix.len, in->path.len - prefix.len - suffix.len };

	if (label_name_valid(name))
		view_answer(w, in, out, &name, write_strings);
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

	if ((rc = view_resolve(v, s, &m, &m_n, &pattern, err)))
		return rc;
	if ((rc = db_select(v->q, m, m_n, &v->in->arena, &series, &n, err)))
		return rc;
	for (size_t i = 0; i < n; i++) {
		/* An older epoch of one that is there already. */
		if (to->n && labels_eq(to->v[to->n - 1], series[i].labels))
			continue;
		if ((rc = view_has_type(v, &series[i], &pattern, &has, err)))
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

static void print_series(struct http_out *out, const struct view *v, struct found_series *f)
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
	view_end(&j, v, distinct);
}

static enum err_code write_series(struct view *v, struct http_out *out, void *ctx, struct err *err)
{
	struct found_series f = { 0 };
	enum err_code rc = ERR_OK;

	(void)ctx;
	if (!v->matches_n)
		return err_set(err, ERR_INVALID, "no match[] parameter provided");
	for (size_t i = 0; !rc && i < v->matches_n; i++)
		rc = find_series(v, &v->matches[i]->root->selector, &f, err);
	if (!rc)
		print_series(out, v, &f);
	return rc;
}

void api_series(struct web *w, struct http_in *in, struct http_out *out)
{
	view_answer(w, in, out, NULL, write_series);
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

static enum err_code write_types(struct view *v, struct http_out *out, void *ctx, struct err *err)
{
	struct profile_type *types;
	struct json j;
	size_t n;
	enum err_code rc = db_profile_types(v->q, &v->in->arena, &types, &n, err);

	(void)ctx;
	if (rc)
		return rc;
	api_begin(out, &j);
	json_array(&j);
	for (size_t i = 0; i < n && (!v->limit || i < v->limit); i++)
		write_type(&j, &types[i]);
	json_array_end(&j);
	view_end(&j, v, n);
	return ERR_OK;
}

void api_profile_types(struct web *w, struct http_in *in, struct http_out *out)
{
	view_answer(w, in, out, NULL, write_types);
}
