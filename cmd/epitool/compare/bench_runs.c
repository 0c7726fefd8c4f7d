/*
 * Stored profiles are found one by one through counts: how many profiles each series has in each
 * day, then in each hour of a day that has several, down to the millisecond. A run is then a
 * series, and a time in which it has one profile.
 */
#include <jansson.h>

#include "cmd/epitool/compare/bench_runs.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/quote.h"
#include "cmd/epitool/run_labels.h"

static enum err_code bench_add(const struct source_options *o, const char *text, struct arena *a,
	struct bench_runs *out, const char **query, struct err *err)
{
	struct source *s;
	enum err_code rc;

	if (out->n >= RUNS_MAX)
		return err_set(err, ERR_LIMIT, "%s: more than %u runs", text, RUNS_MAX);
	if (!arena_array_room(a, &out->v, out->n, 1, &out->cap))
		return arena_fail(a, "runs", err);
	out->v[out->n] = (struct bench_run){ 0 };
	s = &out->v[out->n++].source;
	rc = source_read(o, text, a, s, err);
	*query = rc ? s->query.ptr : NULL;
	return rc;
}

void bench_release(struct bench_runs *r)
{
	for (size_t i = 0; i < r->n; i++)
		source_release(&r->v[i].source);
}

/* ---- files ---- */

static bool bench_is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static enum err_code bench_add_directory(const struct source_options *o, const char *dir,
	struct arena *a, struct bench_runs *out, const char **query, struct err *err)
{
	size_t n, slash = strlen(dir) && dir[strlen(dir) - 1] == '/', before = out->n;
	struct str *names;
	enum err_code rc;

	if ((rc = fs_list(dir, a, &names, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !rc; i++) {
		char *path = arena_printf(a, "%s%s" STR_FMT, dir, slash ? "" : "/", STR_ARG(names[i]));

		if (!path)
			return arena_fail(a, "runs", err);
		if (names[i].ptr[0] != '.' && !bench_is_directory(path))
			rc = bench_add(o, path, a, out, query, err);
	}
	if (!rc && out->n == before)
		return err_set(err, ERR_NOT_FOUND, "%s: no file in this directory", dir);
	return rc;
}

/* Files and directories with commas between them: one is there, or is named like one. */
static bool bench_are_files(struct arena *a, const char *text)
{
	if (fs_exists(text) || !strchr(text, ','))
		return false;
	while (*text) {
		size_t n = strcspn(text, ",");
		const char *part = arena_printf(a, "%.*s", (int)n, text);

		if (part && (fs_exists(part) || source_is_like_file(part)))
			return true;
		text += n + (text[n] == ',');
	}
	return false;
}

static enum err_code bench_add_files(const struct source_options *o, const char *text,
	struct arena *a, struct bench_runs *out, const char **query, struct err *err)
{
	enum err_code rc = ERR_OK;

	while (*text && !rc) {
		size_t n = strcspn(text, ",");
		const char *part = arena_printf(a, "%.*s", (int)n, text);

		if (!part)
			return arena_fail(a, "runs", err);
		if (!fs_exists(part))
			return err_set(err, ERR_NOT_FOUND, "%s: there is no file of that name", part);
		rc = bench_is_directory(part) ? bench_add_directory(o, part, a, out, query, err) :
										bench_add(o, part, a, out, query, err);
		text += n + (text[n] == ',');
	}
	return rc;
}

/* ---- stored profiles ---- */

static const struct {
	int64_t ns;
	const char *text;
} bench_steps[] = {
	{ 86400 * NS_PER_S, "1d" },
	{ 3600 * NS_PER_S, "1h" },
	{ 60 * NS_PER_S, "1m" },
	{ NS_PER_S, "1s" },
	{ NS_PER_MS, "1ms" },
};
#define RUNS_STEPS (sizeof(bench_steps) / sizeof(bench_steps[0]))

/* A profile of a series: the only one in (start, end]. */
struct bench_found {
	json_t *metric;
	int64_t start_ns, end_ns;
};

struct bench_search {
	const struct source_options *o;
	const char *text, *selector;
	struct arena *arena;
	const char **query; /* as of bench_read */
	struct bench_found *found;
	size_t n, cap;
};

/* Steps of one size that cover a time; they end with it. */
struct bench_grid {
	int64_t start_ns, end_ns, first_ns, step_ns; /* first: the end of the first step */
	size_t n;
};

static struct bench_grid bench_grid_of(int64_t start_ns, int64_t end_ns, int64_t step_ns)
{
	struct bench_grid g = { .start_ns = start_ns, .end_ns = end_ns, .step_ns = step_ns };

	g.n = (size_t)((end_ns - start_ns + step_ns - 1) / step_ns);
	g.n = g.n ? g.n : 1;
	g.first_ns = end_ns - (int64_t)(g.n - 1) * step_ns;
	return g;
}

static int64_t bench_grid_start(const struct bench_grid *g, size_t step)
{
	int64_t start = g->first_ns + ((int64_t)step - 1) * g->step_ns;

	return start > g->start_ns ? start : g->start_ns;
}

/* Calls of fn: each series' count in each step that has any. */
typedef enum err_code (*bench_count_fn)(
	void *ctx, json_t *metric, size_t step, double count, struct err *err);

static enum err_code bench_grid_each(
	const struct bench_grid *g, json_t *answer, bench_count_fn fn, void *ctx, struct err *err)
{
	json_t *result = json_object_get(json_object_get(answer, "data"), "result"), *one, *point;
	size_t i, k;

	json_array_foreach (result, i, one)
		json_array_foreach (json_object_get(one, "values"), k, point) {
			double at = json_number_value(json_array_get(point, 0)) * NS_PER_S;
			const char *count = json_string_value(json_array_get(point, 1));
			double step = round((at - (double)g->first_ns) / (double)g->step_ns);
			enum err_code rc;

			if (!count || !(step >= 0) || step >= (double)g->n)
				return err_set(err, ERR_INVALID, "the answer has counts of other times");
			rc = fn(ctx, json_object_get(one, "metric"), (size_t)step, strtod(count, NULL), err);
			if (rc)
				return rc;
		}
	return ERR_OK;
}

static enum err_code bench_search_count(const struct bench_search *s, const struct bench_grid *g,
	size_t level, json_t **out, struct err *err)
{
	struct question q = *s->o->question;
	struct buf answer = { 0 };
	char *text;
	enum err_code rc;

	text = arena_printf(s->arena, "count_over_time(%s[%s])", s->selector, bench_steps[level].text);
	if (!text)
		return arena_fail(s->arena, "runs", err);
	q.format = "json";
	q.has_span = true;
	q.has_time = false;
	q.start_ns = g->first_ns;
	q.end_ns = g->end_ns;
	q.step_ns = g->step_ns;
	*s->query = text;
	if (!(rc = question_ask(&q, text, &answer, err))) {
		*out = json_loadb(answer.ptr ? answer.ptr : "", answer.len, 0, NULL);
		rc = *out ? ERR_OK : err_set(err, ERR_INVALID, "%s: the answer is no JSON", text);
		*s->query = NULL;
	}
	buf_release(&answer);
	return rc;
}

/* What is done about each step of a grid. */
struct bench_counting {
	struct bench_search *search;
	const struct bench_grid *grid;
	bool *is_deeper; /* by step: look at smaller steps */
	bool is_last;
};

static enum err_code bench_note_several(
	void *ctx, json_t *metric, size_t step, double count, struct err *err)
{
	struct bench_counting *c = ctx;

	/* The first step may begin before the time that is asked for. */
	c->is_deeper[step] = c->is_deeper[step] || (!c->is_last && (count > 1 || step == 0));
	return ERR_OK;
}

static enum err_code bench_note_found(
	void *ctx, json_t *metric, size_t step, double count, struct err *err)
{
	struct bench_counting *c = ctx;
	struct bench_search *s = c->search;

	if (c->is_deeper[step])
		return ERR_OK;
	if (s->n >= RUNS_MAX)
		return err_set(err, ERR_LIMIT, "%s: more than %u runs", s->text, RUNS_MAX);
	if (!arena_array_room(s->arena, &s->found, s->n, 1, &s->cap))
		return arena_fail(s->arena, "runs", err);
	s->found[s->n++] = (struct bench_found){ json_incref(metric), bench_grid_start(c->grid, step),
		c->grid->first_ns + (int64_t)step * c->grid->step_ns };
	return ERR_OK;
}

static enum err_code bench_search_at(
	struct bench_search *s, int64_t start_ns, int64_t end_ns, size_t level, struct err *err)
{
	struct bench_grid g = bench_grid_of(start_ns, end_ns, bench_steps[level].ns);
	struct bench_counting c = { .search = s, .grid = &g, .is_last = level + 1 == RUNS_STEPS };
	json_t *answer = NULL;
	enum err_code rc;

	if (!(c.is_deeper = arena_array(s->arena, bool, g.n)))
		return arena_fail(s->arena, "runs", err);
	if ((rc = bench_search_count(s, &g, level, &answer, err)))
		return rc;
	if (!(rc = bench_grid_each(&g, answer, bench_note_several, &c, err)))
		rc = bench_grid_each(&g, answer, bench_note_found, &c, err);
	json_decref(answer);
	for (size_t i = 0; i < g.n && !rc; i++)
		if (c.is_deeper[i])
			rc = bench_search_at(
				s, bench_grid_start(&g, i), g.first_ns + (int64_t)i * g.step_ns, level + 1, err);
	return rc;
}

/* Steps of whole milliseconds begin and end with one, as the API may round other times. */
static int64_t bench_whole_ms(int64_t ns, bool up)
{
	int64_t ms = ns / NS_PER_MS - (ns % NS_PER_MS < 0);

	return (ms + (up && ms * NS_PER_MS < ns)) * NS_PER_MS;
}

/* Matchers of one series alone: no label that another one has besides. */
static enum err_code bench_search_selector(const struct bench_search *s,
	const struct bench_found *f, json_t *names, struct buf *out, struct err *err)
{
	const char *name;
	json_t *unused;
	size_t before = 0;

	buf_printf(out, "merge(%s{", s->o->profile);
	json_object_foreach (names, name, unused) {
		json_t *value = json_object_get(f->metric, name);

		if (before++)
			buf_add_char(out, ',');
		buf_printf(out, "%s=", name);
		buf_add_quoted(out,
			(struct str){
				value ? json_string_value(value) : "", value ? json_string_length(value) : 0 });
	}
	buf_add_cstr(out, "})");
	buf_add_char(out, '\0');
	return buf_failed(out) ? err_nomem(err, "runs") : ERR_OK;
}

static enum err_code bench_search_read(
	struct bench_search *s, json_t *names, struct bench_runs *out, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < s->n && !rc; i++) {
		struct question q = *s->o->question;
		struct source_options o = *s->o;
		struct buf text = { 0 };
		char *query = NULL;

		q.has_span = true;
		q.start_ns = s->found[i].start_ns;
		q.end_ns = s->found[i].end_ns;
		o.question = &q;
		rc = bench_search_selector(s, &s->found[i], names, &text, err);
		if (!rc && !(query = arena_printf(s->arena, "%s", text.ptr)))
			rc = arena_fail(s->arena, "runs", err);
		buf_release(&text);
		if (!rc)
			rc = bench_add(&o, query, s->arena, out, s->query, err);
	}
	return rc;
}

/* Each value that is listed has a profile. */
static enum err_code bench_search_check(const struct bench_search *s, struct err *err)
{
	struct run_labels *labels = malloc(sizeof(*labels));
	enum err_code rc = labels ? run_labels_parse(s->text, labels, err) : err_nomem(err, "runs");

	if (!rc && !s->n)
		rc = err_set(err, ERR_NOT_FOUND, "%s: no profiles", s->text);
	for (size_t i = 0; !rc && i < labels->n; i++) {
		const struct run_value *v = &labels->v[i];
		size_t k = 0;

		while (!v->is_regex && v->value.len && k < s->n) {
			char name[256];
			json_t *value;

			snprintf(name, sizeof(name), STR_FMT, STR_ARG(v->name));
			value = json_object_get(s->found[k].metric, name);
			if (value && str_eq(v->value, str_of(json_string_value(value))))
				break;
			k++;
		}
		if (k == s->n)
			rc = err_set(err, ERR_NOT_FOUND, STR_FMT "=" STR_FMT ": no profiles", STR_ARG(v->name),
				STR_ARG(v->value));
	}
	free(labels);
	return rc;
}

static enum err_code bench_search_all(
	struct bench_search *s, struct bench_runs *out, struct err *err)
{
	const struct question *q = s->o->question;
	json_t *names = json_object();
	enum err_code rc = bench_search_at(
		s, bench_whole_ms(q->start_ns, false), bench_whole_ms(q->end_ns, true), 0, err);

	if (!rc)
		rc = bench_search_check(s, err);
	for (size_t i = 0; i < s->n && !rc; i++)
		json_object_update(names, s->found[i].metric);
	if (!rc)
		rc = bench_search_read(s, names, out, err);
	json_decref(names);
	for (size_t i = 0; i < s->n; i++)
		json_decref(s->found[i].metric);
	return rc;
}

static enum err_code bench_add_stored(const struct source_options *o, const char *text,
	struct arena *a, struct bench_runs *out, const char **query, struct err *err)
{
	struct bench_search s = { .o = o, .text = text, .arena = a, .query = query };
	struct buf selector = { 0 };
	enum err_code rc = source_add_selector(o, text, &selector, err);

	if (!rc && !(s.selector = arena_printf(a, STR_FMT, STR_ARG(buf_str(&selector)))))
		rc = arena_fail(a, "runs", err);
	buf_release(&selector);
	return rc ? rc : bench_search_all(&s, out, err);
}

/* ---- all ---- */

static enum err_code bench_are_several(const char *text, bool *out, struct err *err)
{
	struct run_labels *labels = malloc(sizeof(*labels));
	enum err_code rc = labels ? run_labels_parse(text, labels, err) : err_nomem(err, "runs");

	*out = !rc && labels->several;
	free(labels);
	return rc;
}

enum err_code bench_read(const struct source_options *o, const char *text, enum bench_kind kind,
	struct arena *a, struct bench_runs *out, const char **query, struct err *err)
{
	bool several = kind == RUNS_APART;
	enum err_code rc;

	*out = (struct bench_runs){ 0 };
	*query = NULL;
	if (kind != RUNS_ONE && bench_is_directory(text))
		return bench_add_directory(o, text, a, out, query, err);
	if (kind != RUNS_ONE && bench_are_files(a, text))
		return bench_add_files(o, text, a, out, query, err);
	if (kind == RUNS_ONE || fs_exists(text) || !run_labels_are(text))
		return bench_add(o, text, a, out, query, err);
	if (!several && (rc = bench_are_several(text, &several, err)))
		return rc;
	return several ? bench_add_stored(o, text, a, out, query, err) :
					 bench_add(o, text, a, out, query, err);
}
