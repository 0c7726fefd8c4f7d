/*
 * Names for completion: functions of the stored code, and metadata of profiles.
 *
 * Functions come from the symbols of the matching jobs. No stacks and no rows are read, so an
 * answer may name functions of other series of the job.
 */
#include <stdlib.h>

#include "proto/annotation.h"
#include "web/api/handlers.h"
#include "web/api/metadata.h"
#include "web/api/view.h"
#include "web/router/envelope.h"

#define LIST_MIN 1024u

/* ---- functions ---- */

/* With a limit at most about twice as many names are kept, the first in order. */
struct api_completion {
	struct view *view;
	struct str prefix, substring;
	struct router_strings found;
	struct str last; /* names after it are over the limit, and at least one was found */
	bool *seen; /* partitions by index: each is looked at once */
	uint32_t seen_n;
};

/* ASCII case does not count: who remembers whether it is ServeHTTP or ServeHttp? */
static bool api_contains(struct str s, struct str what)
{
	/* The case of an ASCII letter is one bit; this quick test fails at most places. */
	for (size_t i = 0; i + what.len <= s.len; i++)
		if (!((s.ptr[i] ^ what.ptr[0]) & ~0x20) &&
			str_eq_nocase((struct str){ s.ptr + i, what.len }, what))
			return true;
	return false;
}

static bool api_completion_is_asked_for(const struct api_completion *c, struct str name)
{
	return name.len > 0 && str_has_prefix(name, c->prefix) &&
		(!c->substring.len || api_contains(name, c->substring));
}

/* Keeps one more than the limit, to tell that there were more. */
static void api_completion_cut(struct api_completion *c)
{
	uint64_t limit = c->view->limit;

	strings_unique(&c->found);
	if (limit && c->found.n > 0 && c->found.n - 1 > limit)
		c->found.n = limit + 1;
	if (limit && c->found.n > 0 && c->found.n - 1 == limit)
		c->last = c->found.v[limit];
}

static enum err_code api_completion_add_function(
	struct api_completion *c, struct str name, struct err *err)
{
	uint64_t limit = c->view->limit;
	size_t room = limit && limit < SIZE_MAX / 4 ? 2 * limit + LIST_MIN : SIZE_MAX;

	if (c->last.ptr && str_cmp(name, c->last) >= 0)
		return ERR_OK;
	if (c->found.n == room)
		api_completion_cut(c);
	return strings_add(&c->found, &c->view->in->arena, &name, 1, err);
}

/* Many functions share a name (one per file and line); each name is looked at once. */
static enum err_code api_completion_add_functions(
	struct api_completion *c, const struct partition *p, struct err *err)
{
	uint32_t n = sym_functions_n(p), strings = sym_strings_n(p);
	const struct sym_function *f;
	enum err_code rc = ERR_OK;
	bool *seen = calloc((size_t)strings + 1, sizeof(*seen));

	if (!seen)
		return err_nomem(err, "functions");
	for (uint32_t i = 0; i < n && !rc; i++) {
		if (!sym_exists(p, SYM_FUNCTION, i))
			continue;
		f = sym_function(p, i);
		if (!f->shown && f->name < strings) {
			if (seen[f->name])
				continue;
			seen[f->name] = true;
		}
		if (api_completion_is_asked_for(c, sym_function_name(p, f)) &&
			!str_is(sym_string(p, f->filename), ANNOTATION_FILE))
			rc = api_completion_add_function(c, sym_function_name(p, f), err);
	}
	free(seen);
	return rc;
}

static enum err_code api_completion_note_partition(
	struct api_completion *c, const struct partition *p, bool *is_new, struct err *err)
{
	uint32_t at = partition_index(p);
	bool *grown;

	if (at >= c->seen_n) {
		if (!(grown = arena_array(&c->view->in->arena, bool, (size_t)at * 2 + 64)))
			return arena_fail(&c->view->in->arena, "functions", err);
		if (c->seen_n)
			memcpy(grown, c->seen, c->seen_n * sizeof(*grown));
		c->seen = grown;
		c->seen_n = at * 2 + 64;
	}
	*is_new = !c->seen[at];
	return ERR_OK;
}

static enum err_code api_completion_complete_match(
	struct api_completion *c, const struct selector *s, struct err *err)
{
	struct type_pattern pattern;
	struct db_series *series;
	struct matcher *m;
	size_t m_n, n;
	bool is_new = false, has = false;
	enum err_code rc;

	if ((rc = view_resolve(c->view, s, &m, &m_n, &pattern, err)) ||
		(rc = db_select_kinds(
			 c->view->q, DB_PROFILES, m, m_n, &c->view->in->arena, &series, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !rc; i++) {
		if ((rc = api_completion_note_partition(c, series[i].partition, &is_new, err)) || !is_new ||
			(rc = view_has_type(c->view, &series[i], &pattern, &c->view->in->arena, &has, err)) ||
			!has)
			continue;
		c->seen[partition_index(series[i].partition)] = true;
		rc = api_completion_add_functions(c, series[i].partition, err);
	}
	return rc;
}

static enum err_code api_names_write_functions(
	struct view *v, struct http_out *out, void *ctx, struct err *err)
{
	const struct selector all = { 0 };
	struct api_completion c = { .view = v,
		.prefix = http_param(v->in, "prefix"),
		.substring = http_param(v->in, "substring") };
	enum err_code rc = v->matches_n ? ERR_OK : api_completion_complete_match(&c, &all, err);

	(void)ctx;
	for (size_t i = 0; i < v->matches_n && !rc; i++)
		rc = api_completion_complete_match(&c, &v->matches[i]->root->selector, err);
	if (rc)
		return rc;
	api_completion_cut(&c);
	view_strings_write(out, v, &c.found);
	return ERR_OK;
}

void api_functions(struct web *w, struct http_in *in, struct http_out *out)
{
	view_answer(w, in, out, NULL, api_names_write_functions);
}

/* ---- metadata ---- */

static int api_by_name(const void *a, const void *b)
{
	return str_cmp(((const struct profile_type *)a)->name, ((const struct profile_type *)b)->name);
}

void metadata_write(struct json *j, const struct profile_type *t)
{
	struct buf text = { 0 };

	json_key(j, "type");
	json_cstr(j, t->delta ? "counter" : "gauge");
	json_key(j, "unit");
	json_str(j, t->sample_unit);
	buf_printf(&text, STR_FMT " of " STR_FMT " profiles, %s", STR_ARG(t->sample_type),
		STR_ARG(t->name), t->delta ? "counted over each scrape" : "the level at each scrape");
	json_key(j, "help");
	json_str(j, buf_str(&text));
	buf_clear(&text);
	profile_type_print(&text, t);
	json_key(j, "profile_type");
	json_str(j, buf_str(&text));
	buf_release(&text);
}

/*
 * Types of one name. The one that the name alone means is first, since some clients read only the
 * first.
 */
static void api_write_metric(struct json *j, struct str key, const struct profile_type *types,
	size_t n, const struct type_pattern *p, uint64_t limit)
{
	size_t first = type_default_known(types, n) ? type_default(types, n, STR("")) : 0;
	uint64_t written = 0;

	json_key_str(j, key);
	json_array(j);
	for (size_t i = 0; i <= n; i++) {
		size_t at = i ? i - 1 : first;

		if ((i && at == first) || (limit && written == limit) ||
			(p->parts > 1 && !type_pattern_match(p, &types[at])))
			continue;
		json_object(j);
		metadata_write(j, &types[at]);
		json_object_end(j);
		written++;
	}
	json_array_end(j);
}

struct api_metadata {
	uint64_t limit, limit_per_metric;
	struct str metric; /* empty: all */
	struct type_pattern pattern; /* of metric */
};

static void api_write_metrics(
	struct json *j, const struct api_metadata *m, struct profile_type *types, size_t n)
{
	uint64_t written = 0;
	size_t end;

	if (n)
		qsort(types, n, sizeof(*types), api_by_name);
	json_object(j);
	for (size_t i = 0; i < n && (!m->limit || written < m->limit); i = end) {
		for (end = i + 1; end < n && str_eq(types[end].name, types[i].name); end++)
			;
		if (m->metric.len && !str_eq(types[i].name, m->metric) &&
			!(m->pattern.parts && str_eq(types[i].name, m->pattern.name)))
			continue;
		api_write_metric(j, m->metric.len ? m->metric : types[i].name, types + i, end - i,
			&m->pattern, m->limit_per_metric);
		written++;
	}
	json_object_end(j);
}

static enum err_code api_write_metadata(
	struct view *v, struct http_out *out, void *ctx, struct err *err)
{
	struct api_metadata m = { .limit = v->limit, .metric = http_param(v->in, "metric") };
	struct profile_type *types;
	struct json j;
	size_t n;
	enum err_code rc;

	(void)ctx;
	if (m.metric.len && !type_pattern_parse(m.metric, &m.pattern))
		m.pattern = (struct type_pattern){ 0 };
	if ((rc = api_uint(v->in, "limit_per_metric", &m.limit_per_metric, err)) ||
		(rc = db_profile_types(v->q, &v->in->arena, &types, &n, err)))
		return rc;
	api_begin(out, &j);
	api_write_metrics(&j, &m, types, n);
	view_end(&j, v, 0);
	return ERR_OK;
}

void api_metadata(struct web *w, struct http_in *in, struct http_out *out)
{
	view_answer(w, in, out, NULL, api_write_metadata);
}
