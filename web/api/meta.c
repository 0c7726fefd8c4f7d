/*
 * Names: series, labels, their values, profile types; for completion and for Prometheus's clients.
 */
#include <ctype.h>
#include <stdlib.h>

#include "base/quote.h"
#include "web/api/first_series.h"
#include "web/api/handlers.h"
#include "web/api/label_counts.h"
#include "web/api/view.h"
#include "web/router/envelope.h"

/* name NULL: names of labels, else the values of this one. m has n matchers. */
static enum err_code api_ask(struct view *v, const struct str *name, const struct matcher *m,
	size_t n, struct router_strings *to, struct err *err)
{
	struct arena *a = &v->in->arena;
	struct str *found;
	size_t found_n = 0;
	enum err_code rc;

	if (name)
		rc = db_label_values(v->q, *name, m, n, v->limit, a, &found, &found_n, err);
	else
		rc = db_label_names(v->q, m, n, v->limit, a, &found, &found_n, err);
	if (rc || to->n)
		return rc ? rc : strings_add(to, a, found, found_n, err);
	*to = (struct router_strings){ found, found_n, found_n }; /* the first list needs no copy */
	return ERR_OK;
}

static enum err_code api_collect(
	struct view *v, const struct str *name, struct router_strings *to, struct err *err)
{
	struct type_pattern pattern;
	struct matcher *m;
	size_t n;
	enum err_code rc;

	if (!v->matches_n)
		return api_ask(v, name, NULL, 0, to, err);
	for (size_t i = 0; i < v->matches_n; i++) {
		if ((rc = view_resolve(v, &v->matches[i]->root->selector, &m, &n, &pattern, err)))
			return rc;
		if ((rc = api_ask(v, name, m, n, to, err)))
			return rc;
	}
	strings_unique(to);
	return ERR_OK;
}

/* ctx: as name of collect. */
static enum err_code api_write_strings(
	struct view *v, struct http_out *out, void *ctx, struct err *err)
{
	struct router_strings s = { 0 };
	enum err_code rc = api_collect(v, ctx, &s, err);

	if (!rc)
		view_strings_write(out, v, &s);
	return rc;
}

void api_label_names(struct web *w, struct http_in *in, struct http_out *out)
{
	view_answer(w, in, out, NULL, api_write_strings);
}

/* "2e_name" behind an underscore: the character of this number, in hexadecimal digits. */
static bool api_unescape_code(struct str s, size_t *at, struct buf *out)
{
	char digits[8] = "";
	size_t n = 0;
	unsigned long code;

	while (n < 6 && *at + n < s.len && isxdigit((unsigned char)s.ptr[*at + n])) {
		digits[n] = s.ptr[*at + n];
		n++;
	}
	code = strtoul(digits, NULL, 16);
	if (!n || *at + n >= s.len || s.ptr[*at + n] != '_' || code > 0x10ffff ||
		(code >= 0xd800 && code <= 0xdfff))
		return false;
	buf_add_utf8(out, (uint32_t)code);
	*at += n + 1;
	return true;
}

/* U__host_2e_name is host.name, as clients of Prometheus 3 write it; else the name as it is. */
static struct str api_unescaped(struct arena *a, struct str name)
{
	struct buf out = { 0 };
	struct str made;
	bool good = str_has_prefix(name, STR("U__"));

	for (size_t i = 3; good && i < name.len;) {
		char c = name.ptr[i++];

		if (c != '_')
			buf_add_char(&out, c);
		else if (i < name.len && name.ptr[i] == '_')
			buf_add_char(&out, name.ptr[i++]);
		else
			good = api_unescape_code(name, &i, &out);
	}
	made = good && !buf_failed(&out) ? str_dup(a, buf_str(&out)) : name;
	buf_release(&out);
	return made.ptr ? made : name;
}

void api_label_values(struct web *w, struct http_in *in, struct http_out *out)
{
	struct str prefix = STR("/api/v1/label/"), suffix = STR("/values");
	struct str name = { in->path.ptr + prefix.len, in->path.len - prefix.len - suffix.len };

	name = api_unescaped(&in->arena, name);
	if (any_name_valid(name))
		view_answer(w, in, out, &name, api_write_strings);
	else
		api_error(out, 400, "bad_data", "invalid label name: \"" STR_FMT "\"", STR_ARG(name));
}

/* ---- series ---- */

struct finding {
	struct view *view;
	struct first_series first;
	struct type_pattern pattern; /* of the match[] at hand */
	struct arena scratch; /* types of one */
};

static bool api_wants_series(void *ctx, struct labels labels)
{
	return first_series_wants(&((struct finding *)ctx)->first, labels);
}

static enum err_code api_take_series(void *ctx, const struct db_series *s, struct err *err)
{
	struct finding *f = ctx;
	bool has;
	enum err_code rc = view_has_type(f->view, s, &f->pattern, &f->scratch, &has, err);

	arena_reset(&f->scratch);
	return rc || !has ? rc : first_series_add(&f->first, s->labels, err);
}

static enum err_code api_find_series(struct finding *f, const struct selector *s, struct err *err)
{
	const struct db_visitor visitor = {
		.wanted = api_wants_series, .take = api_take_series, .ctx = f
	};
	struct matcher *m;
	size_t n;
	enum err_code rc;

	if ((rc = view_resolve(f->view, s, &m, &n, &f->pattern, err)))
		return rc;
	return db_visit_series(f->view->q, DB_PROFILES | DB_NUMBERS, m, n, &visitor, err);
}

static void api_print_series(
	struct http_out *out, const struct view *v, const struct first_series *f)
{
	struct json j;

	api_begin(out, &j);
	json_array(&j);
	for (size_t i = 0; i < f->n && (!v->limit || i < v->limit); i++)
		labels_write_json(&j, f->v[i]);
	json_array_end(&j);
	view_end(&j, v, f->n);
}

static enum err_code api_meta_write_series(
	struct view *v, struct http_out *out, void *ctx, struct err *err)
{
	struct finding f = { .view = v };
	enum err_code rc = ERR_OK;

	(void)ctx;
	if (!v->matches_n)
		return err_set(err, ERR_INVALID, "no match[] parameter provided");
	first_series_init(&f.first, v->limit, v->in->arena.budget_bytes);
	arena_init(&f.scratch, v->in->arena.budget_bytes);
	for (size_t i = 0; !rc && i < v->matches_n; i++)
		rc = api_find_series(&f, &v->matches[i]->root->selector, err);
	if (!rc && !(rc = first_series_end(&f.first, err)))
		api_print_series(out, v, &f.first);
	first_series_release(&f.first);
	arena_release(&f.scratch);
	return rc;
}

void api_series(struct web *w, struct http_in *in, struct http_out *out)
{
	view_answer(w, in, out, NULL, api_meta_write_series);
}

/* ---- counts of labels ---- */

/* A match[] as the database takes it. */
struct counted_match {
	struct matcher *m;
	size_t n;
	struct type_pattern pattern;
};

struct api_counting {
	struct view *view;
	struct db_counts *windows; /* series of head windows that need no look at their types */
	bool windows_only; /* there are no others */
	struct label_counts counts;
	struct counted_match matches[VIEW_MATCHES_MAX];
	size_t n;
	const struct type_pattern *pattern; /* of the match[] at hand */
	struct arena scratch; /* types of one */
	enum err_code rc; /* why counting windows ended early */
	struct err err;
};

static bool api_is_not_counted(void *ctx, struct labels labels)
{
	struct api_counting *c = ctx;

	return !label_counts_has(&c->counts, labels) && !db_counts_has(c->windows, labels);
}

static bool api_is_known(void *ctx, struct label label)
{
	return db_counts_has_label(((struct api_counting *)ctx)->windows, label);
}

static bool api_add_many(void *ctx, struct str text, uint32_t series, uint32_t values)
{
	struct api_counting *c = ctx;

	c->rc = (c->windows_only ? label_counts_add_last : label_counts_add_many)(
		&c->counts, text, series, values, &c->err);
	return !c->rc;
}

static enum err_code api_count_one(void *ctx, const struct db_series *s, struct err *err)
{
	struct api_counting *c = ctx;
	bool has;
	enum err_code rc = view_has_type(c->view, s, c->pattern, &c->scratch, &has, err);

	arena_reset(&c->scratch);
	return rc || !has ? rc : label_counts_add(&c->counts, s->labels, err);
}

/* Types are known only when a series is looked at; else only blocks are visited. */
static bool api_is_typed(const struct counted_match *m)
{
	return m->pattern.parts > 1;
}

static enum err_code api_count_windows(struct api_counting *c, struct err *err)
{
	enum err_code rc = db_counts_open(c->view->q, &c->windows, err);

	for (size_t i = 0; i < c->n && !rc; i++)
		if (!api_is_typed(&c->matches[i]))
			rc = db_counts_add(c->windows, c->matches[i].m, c->matches[i].n, err);
	if (rc)
		return rc;
	c->windows_only = !db_querier_has_blocks(c->view->q);
	for (size_t i = 0; i < c->n; i++)
		c->windows_only &= !api_is_typed(&c->matches[i]);
	c->counts.limit = c->view->limit < UINT32_MAX ? c->view->limit : 0;
	if ((rc = db_counts_each(c->windows, c->counts.label, api_add_many, c, err)))
		return rc;
	c->counts.known = api_is_known;
	c->counts.known_ctx = c;
	return c->rc ? err_copy(err, &c->err) : ERR_OK;
}

static enum err_code api_visit_rest(
	struct api_counting *c, const struct counted_match *m, struct err *err)
{
	const struct db_visitor visitor = { .wanted = api_is_not_counted,
		.blocks_only = !api_is_typed(m),
		.take = api_count_one,
		.ctx = c };

	c->pattern = &m->pattern;
	return db_visit_series(c->view->q, DB_PROFILES | DB_NUMBERS, m->m, m->n, &visitor, err);
}

static enum err_code api_count_all(struct api_counting *c, struct err *err)
{
	const struct selector all = { 0 };
	struct view *v = c->view;
	enum err_code rc = ERR_OK;

	for (; !rc && c->n < (v->matches_n ? v->matches_n : 1); c->n++) {
		struct counted_match *m = &c->matches[c->n];

		rc = view_resolve(v, v->matches_n ? &v->matches[c->n]->root->selector : &all, &m->m, &m->n,
			&m->pattern, err);
	}
	if (!rc)
		rc = api_count_windows(c, err);
	for (size_t i = 0; i < c->n && !rc && !c->windows_only; i++)
		rc = api_visit_rest(c, &c->matches[i], err);
	return rc;
}

static void api_print_counts(
	struct http_out *out, const struct view *v, const struct label_counts *c)
{
	struct json j;

	api_begin(out, &j);
	json_array(&j);
	for (size_t i = 0; i < c->n && (!v->limit || i < v->limit); i++) {
		json_object(&j);
		json_key(&j, c->label.len ? "value" : "name");
		json_str(&j, c->v[i].text);
		if (!c->label.len) {
			json_key(&j, "values");
			json_u64(&j, c->v[i].values);
		}
		json_key(&j, "series");
		json_u64(&j, c->v[i].series);
		json_object_end(&j);
	}
	json_array_end(&j);
	view_end(&j, v, c->total);
}

static enum err_code api_write_counts(
	struct view *v, struct http_out *out, void *ctx, struct err *err)
{
	struct api_counting c = { .view = v };
	enum err_code rc;

	label_counts_init(&c.counts, *(const struct str *)ctx, v->in->arena.budget_bytes);
	arena_init(&c.scratch, v->in->arena.budget_bytes);
	if (!(rc = api_count_all(&c, err))) {
		label_counts_end(&c.counts);
		api_print_counts(out, v, &c.counts);
	}
	db_counts_close(c.windows);
	label_counts_release(&c.counts);
	arena_release(&c.scratch);
	return rc;
}

void api_label_counts(struct web *w, struct http_in *in, struct http_out *out)
{
	struct str label = http_param(in, "label");

	if (!label.len || any_name_valid(label))
		view_answer(w, in, out, &label, api_write_counts);
	else
		api_error(out, 400, "bad_data", "invalid label name: \"" STR_FMT "\"", STR_ARG(label));
}

/* ---- profile types ---- */

static void api_write_type(struct json *j, const struct profile_type *t)
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

static int api_type_order(const void *a, const void *b)
{
	const struct profile_type *x = a, *y = b;
	int rc;

	if ((rc = str_cmp(x->name, y->name)) || (rc = str_cmp(x->sample_type, y->sample_type)) ||
		(rc = str_cmp(x->sample_unit, y->sample_unit)) ||
		(rc = str_cmp(x->period_type, y->period_type)) ||
		(rc = str_cmp(x->period_unit, y->period_unit)))
		return rc;
	return x->delta - y->delta;
}

/* Types of the window in the order above, and whether a series of match[] has each. */
struct api_types {
	struct profile_type *v;
	bool *is_there;
	size_t n;
	struct arena scratch; /* the types of one series */
};

/* Notes the types of a series that fit the name in its match[]. */
static enum err_code api_types_note(struct api_types *t, struct view *v, const struct db_series *s,
	const struct type_pattern *p, struct err *err)
{
	struct str name = labels_get(s->labels, STR(LABEL_NAME));
	bool is_whole = p->parts > 1 ? type_pattern_is_whole(p, name) :
								   !type_pattern_is_elsewhere(p, name);
	struct profile_type *own, *at;
	size_t n = 0;
	enum err_code rc;

	arena_reset(&t->scratch);
	if ((rc = db_series_types(v->q, s, &t->scratch, &own, &n, err)))
		return rc;
	for (size_t i = 0; i < n; i++) {
		at = bsearch(&own[i], t->v, t->n, sizeof(*t->v), api_type_order);
		if (at && (is_whole || type_pattern_match(p, at)))
			t->is_there[at - t->v] = true;
	}
	return ERR_OK;
}

/* Keeps the types that series of match[] have. */
static enum err_code api_types_choose(struct api_types *t, struct view *v, struct err *err)
{
	struct type_pattern pattern;
	struct db_series *series;
	struct matcher *m;
	size_t m_n, n, kept = 0;
	enum err_code rc = ERR_OK;

	if (!t->n)
		return ERR_OK;
	qsort(t->v, t->n, sizeof(*t->v), api_type_order);
	for (size_t i = 0; i < v->matches_n; i++) {
		if ((rc = view_resolve(v, &v->matches[i]->root->selector, &m, &m_n, &pattern, err)) ||
			(rc = db_select_kinds(v->q, DB_PROFILES, m, m_n, &v->in->arena, &series, &n, err)))
			return rc;
		for (size_t k = 0; k < n; k++)
			if ((rc = api_types_note(t, v, &series[k], &pattern, err)))
				return rc;
	}
	for (size_t i = 0; i < t->n; i++)
		if (t->is_there[i])
			t->v[kept++] = t->v[i];
	t->n = kept;
	return ERR_OK;
}

static enum err_code api_write_types(
	struct view *v, struct http_out *out, void *ctx, struct err *err)
{
	struct api_types t = { 0 };
	struct json j;
	enum err_code rc = db_profile_types(v->q, &v->in->arena, &t.v, &t.n, err);

	(void)ctx;
	if (rc)
		return rc;
	if (v->matches_n) {
		if (!(t.is_there = arena_array(&v->in->arena, bool, t.n + 1)))
			return arena_fail(&v->in->arena, "types", err);
		arena_init(&t.scratch, 0);
		rc = api_types_choose(&t, v, err);
		arena_release(&t.scratch);
		if (rc)
			return rc;
	}
	api_begin(out, &j);
	json_array(&j);
	for (size_t i = 0; i < t.n && (!v->limit || i < v->limit); i++)
		api_write_type(&j, &t.v[i]);
	json_array_end(&j);
	view_end(&j, v, t.n);
	return ERR_OK;
}

void api_profile_types(struct web *w, struct http_in *in, struct http_out *out)
{
	view_answer(w, in, out, NULL, api_write_types);
}
