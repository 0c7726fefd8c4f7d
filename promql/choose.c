/*
 * From a selector to series and columns.
 *
 * A short name means all series that it can mean (syntax/type_names.h). The database tests matchers
 * of series' labels. Matchers of samples' labels are noted here per series, and gather.c tests them
 * when it reads cells.
 */
#include "promql/choose.h"

#include "promql/eval.h"
#include <assert.h>

#include "base/array.h"
#include "base/map.h"
#include "promql/costs/costs.h"
#include "promql/numeric.h"
#include "promql/plan.h"
#include "promql/reader.h"
#include "promql/syntax/type_names.h"

#define TYPE_LABEL "__type__"

/* ---- matchers of samples ---- */

/* Tested here and not by the database: it may be about a sample's label of another name. */
static bool choose_is_withheld(const struct matcher *m)
{
	return str_is(m->name, TYPE_LABEL) || str_has_prefix(m->name, STR(SAMPLE_LABEL_PREFIX));
}

/* One of all epochs of a series may pass the matchers that the database was not asked. */
static bool choose_is_selected(const struct selector *s, const struct db_series *series, size_t n)
{
	struct str key;

	for (size_t i = 0; i < s->matchers_n; i++) {
		const struct matcher *m = &s->matchers[i];
		bool passes = false;

		if (!choose_is_withheld(m) || str_is(m->name, TYPE_LABEL))
			continue;
		for (size_t k = 0; k < n && !passes; k++)
			passes = label_source(series[k].labels, series[k].partition, m->name, &key) ==
					LABEL_OF_SAMPLES ||
				matcher_test_labels(m, series[k].labels);
		if (!passes)
			return false;
	}
	return true;
}

/*
 * Notes what the matchers ask of samples of one epoch. If no sample has the label, it is "" for all
 * of them, so they all pass or none does. The answer is as if each sample was tested.
 */
static void choose_ask_samples(const struct selector *s, struct chosen *c)
{
	const struct db_series *series = c->series;
	struct str key;

	c->deferred = 0;
	c->asked = c->none = false;
	c->takes_empty = true;
	for (size_t i = 0; i < s->matchers_n; i++) {
		const struct matcher *m = &s->matchers[i];
		enum label_source source;

		if (str_is(m->name, LABEL_NAME) || str_is(m->name, TYPE_LABEL))
			continue;
		source = label_source(series->labels, series->partition, m->name, &key);
		if (source == LABEL_OF_SERIES)
			continue;
		c->asked = true;
		c->takes_empty &= matcher_test(m, STR(""));
		if (source == LABEL_OF_SAMPLES)
			c->deferred |= UINT64_C(1) << i;
		else if (!matcher_test(m, STR("")))
			c->none = true;
	}
	if (c->none)
		c->deferred = 0;
}

/* ---- which series ---- */

/* One series: the columns chosen of each of its epochs, the newest first. */
struct epochs {
	struct chosen *v; /* type, metric and group are not set yet */
	size_t n;
};

struct choosing {
	struct eval *ev;
	const struct expr *expr;
	const struct selector *s;
	const struct merging *m;
	struct type_pattern pattern;
	bool has_pattern; /* the name was read as a profile type; types must match it */
	struct chosen *chosen;
	size_t n, cap;
	struct arena scratch; /* of the series at hand */
	struct work each; /* with it */
	struct map groups;
	struct labels *group_metrics;
	size_t groups_n, groups_cap;
};

static enum err_code choose_find_named(
	struct choosing *c, struct str name, struct db_series **out, size_t *n, struct err *err)
{
	struct matcher *sent = arena_array(c->ev->work.arena, struct matcher, c->s->matchers_n + 1);
	struct asked_series asked = { .expr = c->expr, .m = c->m, .sent = sent };

	if (!sent)
		return work_nomem(&c->ev->work, err);
	if (name.len > 0)
		sent[asked.sent_n++] = (struct matcher){ .op = MATCH_EQ,
			.name = STR(LABEL_NAME), .value = name };
	for (size_t i = 0; i < c->s->matchers_n; i++) {
		asked.withheld |= choose_is_withheld(&c->s->matchers[i]);
		if (!choose_is_withheld(&c->s->matchers[i]))
			sent[asked.sent_n++] = c->s->matchers[i];
	}
	if (c->has_pattern && (c->pattern.parts > 1 || type_pattern_is_elsewhere(&c->pattern, name)))
		asked.pattern = &c->pattern;
	return choose_held(c->ev, &asked, out, n, err);
}

static enum err_code choose_join_series(struct choosing *c, struct db_series **series, size_t *n,
	const struct db_series *more, size_t more_n, struct err *err)
{
	struct db_series *joined;

	if (!(joined = arena_alloc_raw(c->ev->work.arena, *n + more_n, sizeof(*joined))))
		return work_nomem(&c->ev->work, err);
	memcpy(joined, *series, *n * sizeof(*joined));
	memcpy(joined + *n, more, more_n * sizeof(*joined));
	*series = joined;
	*n += more_n;
	return ERR_OK;
}

static enum err_code choose_find_series(
	struct choosing *c, struct db_series **out, size_t *n, struct err *err)
{
	struct str names[TYPE_PATTERN_NAMES_MAX] = { c->s->name };
	struct db_series *more;
	size_t names_n = 1, more_n;
	enum err_code rc;

	c->has_pattern = c->s->name.len && type_pattern_parse(c->s->name, &c->pattern);
	if (c->has_pattern)
		names_n = type_pattern_names(&c->pattern, names);
	if ((rc = choose_find_named(c, names[0], out, n, err)))
		return rc;
	for (size_t i = 1; i < names_n; i++) {
		if ((rc = choose_find_named(c, names[i], &more, &more_n, err)))
			return rc;
		if (*n == 0) {
			*out = more;
			*n = more_n;
		} else if (more_n && (rc = choose_join_series(c, out, n, more, more_n, err))) {
			return rc;
		}
	}
	return ERR_OK;
}

/* ---- which columns ---- */

/* The sample type, with its unit, or the whole type in full may be meant. */
static bool choose_test_type(const struct matcher *m, const struct profile_type *t)
{
	bool negative = m->op == MATCH_NE || m->op == MATCH_NRE;
	struct buf text = { 0 };
	bool hit;

	hit = matcher_test(m, t->sample_type) != negative;
	if (!hit) {
		buf_printf(&text, STR_FMT ":" STR_FMT, STR_ARG(t->sample_type), STR_ARG(t->sample_unit));
		hit = matcher_test(m, buf_str(&text)) != negative;
	}
	if (!hit) {
		buf_clear(&text);
		profile_type_print(&text, t);
		hit = matcher_test(m, buf_str(&text)) != negative;
	}
	buf_release(&text);
	return hit != negative;
}

/* The default of a profile that we do not know. Its rows share it, so any row will do. */
static enum err_code choose_default_sample_type(
	struct choosing *c, const struct epochs *e, struct str *out, struct err *err)
{
	uint32_t header = SYM_NONE;
	enum err_code rc;

	*out = (struct str){ 0 };
	for (size_t i = e->n; i-- > 0 && header == SYM_NONE;) {
		const struct db_series *s = e->v[i].series;

		if ((rc = db_series_header(c->ev->supply->querier, s, &header, err)))
			return rc;
		if (header != SYM_NONE)
			*out = sym_string(s->partition, sym_header(s->partition, header)->default_sample_type);
	}
	return ERR_OK;
}

/* An epoch may have the type in another unit: all of these stay. */
static enum err_code choose_keep_default(struct choosing *c, const struct epochs *e,
	struct profile_type *types, size_t *n, struct err *err)
{
	struct str wish = { 0 };
	struct profile_type kept;
	enum err_code rc;
	size_t all = *n;

	if (all <= 1)
		return ERR_OK;
	if (!type_default_known(types, all) && (rc = choose_default_sample_type(c, e, &wish, err)))
		return rc;
	kept = types[type_default(types, all, wish)];
	*n = 0;
	for (size_t i = 0; i < all; i++)
		if (choose_is_same_type(&types[i], &kept))
			types[(*n)++] = types[i];
	return ERR_OK;
}

/* Some of the types differ in more than their units. */
static bool choose_has_several(const struct profile_type *types, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (!choose_is_same_type(&types[i], &types[0]))
			return true;
	return false;
}

static bool choose_is_wanted(const struct choosing *c, const struct profile_type *t)
{
	bool keep = !c->has_pattern || type_pattern_match(&c->pattern, t);

	for (size_t k = 0; k < c->s->matchers_n && keep; k++)
		if (str_is(c->s->matchers[k].name, TYPE_LABEL))
			keep = choose_test_type(&c->s->matchers[k], t);
	return keep;
}

/* Types of all epochs, the oldest's first, each once. */
static enum err_code choose_all_types(struct choosing *c, const struct epochs *e,
	struct profile_type **out, size_t *n, struct err *err)
{
	struct profile_type *types, *joined;
	size_t more, k;
	enum err_code rc;

	*out = NULL;
	*n = 0;
	for (size_t i = e->n; i-- > 0;) {
		rc = db_series_types(
			c->ev->supply->querier, e->v[i].series, &c->scratch, &types, &more, err);
		if (rc)
			return rc;
		if (*n == 0) {
			*out = types;
			*n = more;
			continue;
		}
		if (!(joined = arena_array(&c->scratch, struct profile_type, *n + more)))
			return arena_fail(&c->scratch, "query", err);
		memcpy(joined, *out, *n * sizeof(*joined));
		*out = joined;
		for (size_t t = 0; t < more; t++) {
			for (k = 0; k < *n && !profile_type_eq(&joined[k], &types[t]); k++)
				;
			if (k == *n)
				joined[(*n)++] = types[t];
		}
	}
	return ERR_OK;
}

static enum err_code choose_series_types(struct choosing *c, const struct epochs *e,
	struct profile_type **out, size_t *n, struct err *err)
{
	bool by_matcher = false;
	struct profile_type *types;
	size_t all, kept = 0;
	enum err_code rc;

	if ((rc = choose_all_types(c, e, &types, &all, err)))
		return rc;
	for (size_t k = 0; k < c->s->matchers_n; k++)
		by_matcher |= str_is(c->s->matchers[k].name, TYPE_LABEL);
	for (size_t i = 0; i < all; i++)
		if (choose_is_wanted(c, &types[i]))
			types[kept++] = types[i];
	*out = types;
	*n = kept;
	if (kept == 0 || by_matcher ||
		(c->has_pattern && c->pattern.parts > 1 &&
			!type_pattern_is_whole(&c->pattern, types[0].name)))
		return ERR_OK;
	return choose_keep_default(c, e, types, n, err);
}

/* ---- groups ---- */

static bool choose_group_eq(const void *ctx, const void *key, uint32_t id)
{
	return labels_eq(
		*(const struct labels *)key, ((const struct choosing *)ctx)->group_metrics[id]);
}

/* metric may be in the scratch memory; a new group gets a copy. */
static enum err_code choose_find_group(
	struct choosing *c, struct labels metric, uint32_t *out, struct err *err)
{
	uint64_t hash = labels_hash(metric);
	uint32_t id = map_find(&c->groups, hash, choose_group_eq, c, &metric);
	struct label *v;

	if (id == MAP_NONE) {
		if (!arena_array_room(c->ev->work.arena, &c->group_metrics, c->groups_n, 1, &c->groups_cap))
			return work_nomem(&c->ev->work, err);
		if (!c->m->each && metric.n) {
			if (!(v = arena_alloc_raw(c->ev->work.arena, metric.n, sizeof(*v))))
				return work_nomem(&c->ev->work, err);
			metric.v = memcpy(v, metric.v, metric.n * sizeof(*v));
		}
		id = (uint32_t)c->groups_n;
		if (!map_add(&c->groups, hash, id))
			return work_nomem(&c->ev->work, err);
		c->group_metrics[c->groups_n++] = metric;
	}
	*out = id;
	return ERR_OK;
}

static enum err_code choose_add_chosen(struct choosing *choosing, struct chosen c, struct err *err)
{
	enum err_code rc;

	if ((rc = choose_find_group(choosing, c.metric, &c.group, err)))
		return rc;
	c.metric = choosing->group_metrics[c.group];
	if (!arena_array_room(
			choosing->ev->work.arena, &choosing->chosen, choosing->n, 1, &choosing->cap))
		return work_nomem(&choosing->ev->work, err);
	choosing->chosen[choosing->n++] = c;
	return ERR_OK;
}

static bool choose_wants_sample_labels(const struct eval *ev, const struct db_series *series)
{
	struct str key;

	if (sym_label_sets_n(series->partition) <= 1)
		return false;
	if (ev->all_sample_labels)
		return true;
	for (size_t i = 0; i < ev->label_names_n; i++)
		if (label_source(series->labels, series->partition, ev->label_names[i], &key) ==
			LABEL_OF_SAMPLES)
			return true;
	return false;
}

/*
 * A series' epochs, with what is asked of their samples; none if the matchers leave the series out.
 */
static enum err_code choose_find_epochs(struct choosing *choosing, const struct db_series *series,
	size_t n, struct epochs *out, struct err *err)
{
	struct chosen c = { 0 };

	*out = (struct epochs){ .v = arena_array(&choosing->scratch, struct chosen, n) };
	if (!out->v)
		return arena_fail(&choosing->scratch, "query", err);
	if (!choose_is_selected(choosing->s, series, n))
		return ERR_OK;
	for (size_t i = 0; i < n; i++) {
		c.series = &series[i];
		choose_ask_samples(choosing->s, &c);
		c.by_labels = !c.none &&
			(c.deferred || choose_wants_sample_labels(choosing->ev, &series[i]));
		out->v[out->n++] = c;
	}
	return ERR_OK;
}

/* Adds a series to the answer; all its epochs have equal labels. */
static enum err_code choose_add_series(
	struct choosing *c, const struct db_series *series, size_t n, struct err *err)
{
	struct labels metric = series->labels;
	struct labels_builder b;
	struct profile_type *types;
	struct epochs epochs;
	size_t types_n;
	enum err_code rc;

	if ((rc = choose_find_epochs(c, series, n, &epochs, err)) || epochs.n == 0)
		return rc;
	if ((rc = choose_series_types(c, &epochs, &types, &types_n, err)))
		return rc;
	for (size_t i = 0; i < types_n; i++) {
		if (c->m->each && choose_has_several(types, types_n)) {
			labels_builder_init(&b, c->ev->work.arena, series->labels);
			labels_builder_set(&b, STR(TYPE_LABEL), types[i].sample_type);
			rc = labels_builder_build(&b, &metric, err);
		} else if (!c->m->each) {
			rc = labels_group(&c->each, series->labels, c->m->grouping, c->m->labels, &metric, err);
		}
		for (size_t k = 0; k < epochs.n && !rc; k++) {
			epochs.v[k].type = types[i];
			epochs.v[k].metric = metric;
			rc = choose_add_chosen(c, epochs.v[k], err);
		}
		if (rc)
			return rc;
	}
	return ERR_OK;
}

/* The end of the epochs of the series at i, which are neighbours. */
static size_t choose_end_of_epochs(const struct db_series *series, size_t n, size_t i)
{
	size_t end = i + 1;

	while (end < n && labels_eq(series[end].labels, series[i].labels))
		end++;
	return end;
}

/* All series of a list, each with its epochs. */
static enum err_code choose_all(
	struct choosing *c, const struct db_series *series, size_t n, struct err *err)
{
	size_t end, done = 0;
	enum err_code rc;

	/* Most often as many as there are series: none is copied while they are found. */
	c->cap = n;
	if (!(c->chosen = arena_alloc_raw(c->ev->work.arena, n, sizeof(*c->chosen))))
		return work_nomem(&c->ev->work, err);
	for (size_t i = 0; i < n; i = end) {
		end = choose_end_of_epochs(series, n, i);
		if ((done++ % 1024 == 0 && (rc = work_check(&c->ev->work, err))) ||
			(rc = choose_add_series(c, &series[i], end - i, err)))
			return rc;
		arena_reset(&c->scratch);
	}
	return ERR_OK;
}

/* ---- all of them ---- */

/* Ascending by group, by counting; series keep their order within. */
static enum err_code choose_order_by_group(struct choosing *c, struct err *err)
{
	struct chosen *sorted;
	uint32_t *at;
	size_t i = 1;

	/* A group each, as they came. */
	while (i < c->n && c->chosen[i - 1].group <= c->chosen[i].group)
		i++;
	if (i == c->n)
		return ERR_OK;
	at = arena_array(c->ev->work.arena, uint32_t, c->groups_n + 1);
	sorted = arena_array(c->ev->work.arena, struct chosen, c->n);
	if (!at || !sorted)
		return work_nomem(&c->ev->work, err);
	for (i = 0; i < c->n; i++)
		at[c->chosen[i].group + 1]++;
	for (size_t g = 0; g < c->groups_n; g++)
		at[g + 1] += at[g];
	for (i = 0; i < c->n; i++)
		sorted[at[c->chosen[i].group]++] = c->chosen[i];
	c->chosen = sorted;
	return ERR_OK;
}

/* Some of what was chosen is gone, and so perhaps groups. */
static enum err_code choose_renumber_groups(struct choosing *c, struct err *err)
{
	uint32_t *number = arena_array(&c->scratch, uint32_t, c->groups_n), n = 0;

	if (!number)
		return arena_fail(&c->scratch, "query", err);
	for (size_t i = 0; i < c->n; i++)
		number[c->chosen[i].group] = 1;
	for (size_t g = 0; g < c->groups_n; g++)
		if (number[g])
			number[g] = n++;
	for (size_t i = 0; i < c->n; i++)
		c->chosen[i].group = number[c->chosen[i].group];
	c->groups_n = n;
	return ERR_OK;
}

enum err_code choose_series(
	struct eval *ev, const struct expr *e, struct db_series **out, size_t *n, struct err *err)
{
	struct choosing x = { .ev = ev, .expr = e, .s = &e->selector };
	size_t kept = 0, end;
	enum err_code rc;

	if ((rc = choose_find_series(&x, out, n, err)))
		return rc;
	for (size_t i = 0; i < *n; i = end) {
		end = choose_end_of_epochs(*out, *n, i);
		if (!choose_is_selected(x.s, &(*out)[i], end - i))
			continue;
		for (size_t k = i; k < end; k++)
			(*out)[kept++] = (*out)[k];
	}
	*n = kept;
	return ERR_OK;
}

enum err_code choose_set(struct eval *ev, const struct expr *e, const struct merging *m,
	struct chosen_set *out, struct err *err)
{
	struct eval whole = *ev;
	struct choosing x = { .ev = &whole, .expr = e, .s = &e->selector, .m = m };
	struct db_series *series;
	enum err_code rc;

	whole.work.arena = ev->work.whole;
	arena_init_shared(&x.scratch, ev->work.budget);
	x.each = whole.work;
	x.each.arena = &x.scratch;
	map_init(&x.groups);
	if ((rc = choose_find_series(&x, &series, &out->series_n, err)) || out->series_n == 0)
		goto out;
	if ((rc = choose_all(&x, series, out->series_n, err)) || x.n == 0)
		goto out;
	out->v = x.chosen;
	out->n = x.n;
	if (!m->any_unit &&
		(rc = choose_fit(&ev->work, e, x.has_pattern ? &x.pattern : NULL, out, err)))
		goto out;
	if (out->n < x.n) {
		x.n = out->n;
		if ((rc = choose_renumber_groups(&x, err)))
			goto out;
	}
	if ((rc = choose_order_by_group(&x, err)))
		goto out;
	out->v = x.chosen;
	out->groups_n = (uint32_t)x.groups_n;
	for (size_t i = 0; i < x.n; i++)
		out->by_labels |= x.chosen[i].by_labels;
out:
	map_release(&x.groups);
	arena_release(&x.scratch);
	return rc;
}

enum err_code choose_profiles(struct eval *ev, const struct expr *e, const struct merging *m,
	struct value *out, struct err *err)
{
	const struct selector *s = &e->selector;
	bool windowed = s->window_ns != 0, numeric = false;
	struct plan_read *read;
	enum err_code rc;

	assert(e->kind == EXPR_SELECTOR && e->types);
	if (s->name.len && !windowed && ((rc = numeric_latest(ev, e, out, &numeric, err)) || numeric))
		return rc;
	*out = (struct value){ .type = e->types };
	if ((rc = ev->reader->find(ev, e, m, &read, err)))
		return rc;
	if (read->series_n == 0 && windowed)
		return numeric_refuse_window(ev, e, err);
	if (read->series_n == 0)
		return s->name.len ? ERR_OK : numeric_latest(ev, e, out, &numeric, err);
	if (read->set->n == 0)
		return ERR_OK;
	return ev->reader->profiles(ev, read, out, err);
}
