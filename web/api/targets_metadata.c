/*
 * Metadata of targets: which types the profiles of each target have, by what is stored of it.
 *
 * The series of the last minutes are visited once, and each is looked up among the targets: asking
 * for the series of one target after another would take a millisecond or more for each.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "web/api/fleet_targets.h"
#include "web/api/handlers.h"
#include "web/api/metadata.h"
#include "web/api/view.h"
#include "web/router/envelope.h"

struct described {
	struct labels labels; /* with the profile's name */
	const struct target_info *target;
	struct profile_type *types;
	size_t types_n;
};

struct describing {
	struct view *view;
	struct parsed *match; /* match_target; NULL: all */
	struct type_pattern pattern; /* of `metric`; no parts: none */
	struct str metric;
	struct described *v; /* ascending by labels */
	size_t n;
};

static bool api_is_selected(const struct describing *d, const struct target_info *t)
{
	const struct selector *s = d->match ? &d->match->root->selector : NULL;

	for (size_t i = 0; s && i < s->matchers_n; i++)
		if (!matcher_test_labels(&s->matchers[i], t->labels))
			return false;
	if (s && s->name.len) /* a target's labels have no name */
		return false;
	return !d->metric.len || str_eq(t->profile, d->metric) ||
		(d->pattern.parts && str_eq(t->profile, d->pattern.name));
}

/*
 * A target of Prometheus is a process; here it has a line for each profile, which differ in the
 * name alone.
 */
static int api_by_process(const void *a, const void *b)
{
	const struct target_info *x = ((const struct described *)a)->target,
							 *y = ((const struct described *)b)->target;
	int order = str_cmp(x->pool, y->pool);

	return order ? order : labels_cmp(x->labels, y->labels);
}

static int api_by_process_and_profile(const void *a, const void *b)
{
	int order = api_by_process(a, b);

	return order ? order :
				   str_cmp(((const struct described *)a)->target->profile,
					   ((const struct described *)b)->target->profile);
}

static int api_by_labels(const void *a, const void *b)
{
	return labels_cmp(((const struct described *)a)->labels, ((const struct described *)b)->labels);
}

static void api_sort(struct describing *d, int (*cmp)(const void *a, const void *b))
{
	if (d->n)
		qsort(d->v, d->n, sizeof(*d->v), cmp);
}

/* `limit` counts processes. */
static void api_targets_metadata_cut(struct describing *d)
{
	uint64_t processes = 0;

	api_sort(d, api_by_process_and_profile);
	for (size_t i = 0; i < d->n && d->view->limit; i++)
		if ((!i || api_by_process(&d->v[i - 1], &d->v[i])) && ++processes > d->view->limit)
			d->n = i;
}

static enum err_code api_targets_metadata_add_name(
	struct described *of, struct arena *a, struct err *err)
{
	struct labels_builder b;

	labels_builder_init(&b, a, of->target->labels);
	labels_builder_set(&b, STR(LABEL_NAME), of->target->profile);
	return labels_builder_build(&b, &of->labels, err);
}

static enum err_code api_choose_targets(
	struct describing *d, const struct scrape_snapshot *s, struct err *err)
{
	struct arena *a = &d->view->in->arena;
	enum err_code rc = ERR_OK;

	if (!(d->v = arena_array(a, struct described, s->active_n + 1)))
		return arena_fail(a, "targets", err);
	for (size_t i = 0; i < s->active_n; i++)
		if (api_is_selected(d, &s->active[i]))
			d->v[d->n++].target = &s->active[i];
	api_targets_metadata_cut(d);
	for (size_t i = 0; i < d->n && !rc; i++)
		rc = api_targets_metadata_add_name(&d->v[i], a, err);
	api_sort(d, api_by_labels);
	return rc;
}

static struct described *api_find(const struct describing *d, struct labels labels)
{
	const struct described key = { .labels = labels };

	return d->n ? bsearch(&key, d->v, d->n, sizeof(*d->v), api_by_labels) : NULL;
}

static bool api_targets_metadata_wants_series(void *ctx, struct labels labels)
{
	const struct described *found = api_find(ctx, labels);

	return found && !found->types;
}

/* Strings of types are the series', which is gone after the visit. */
static bool api_copy_strings(struct arena *a, struct profile_type *t)
{
	struct str *const strings[] = { &t->name, &t->sample_type, &t->sample_unit, &t->period_type,
		&t->period_unit };

	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		struct str *s = strings[i];

		if (!(s->ptr = arena_strndup(a, s->len ? s->ptr : "", s->len)))
			return false;
	}
	return true;
}

static enum err_code api_targets_metadata_take_series(
	void *ctx, const struct db_series *s, struct err *err)
{
	struct describing *d = ctx;
	struct described *found = api_find(d, s->labels);
	struct arena *a = &d->view->in->arena;
	enum err_code rc = db_series_types(d->view->q, s, a, &found->types, &found->types_n, err);

	for (size_t i = 0; !rc && i < found->types_n; i++)
		if (!api_copy_strings(a, &found->types[i]))
			rc = arena_fail(a, "targets", err);
	return rc;
}

static void api_targets_metadata_print(struct http_out *out, const struct describing *d)
{
	struct json j;

	api_begin(out, &j);
	json_array(&j);
	for (size_t i = 0; i < d->n; i++)
		for (size_t k = 0; k < d->v[i].types_n; k++) {
			if (d->pattern.parts > 1 && !type_pattern_match(&d->pattern, &d->v[i].types[k]))
				continue;
			json_object(&j);
			json_key(&j, "target");
			labels_write_json(&j, d->v[i].target->labels);
			if (!d->metric.len) {
				json_key(&j, "metric");
				json_str(&j, d->v[i].target->profile);
			}
			metadata_write(&j, &d->v[i].types[k]);
			json_object_end(&j);
		}
	json_array_end(&j);
	view_end(&j, d->view, 0);
}

/* Slow ones have a profile in the window as well. */
static int64_t api_window_of(const struct scrape_snapshot *s, int64_t lookback_ns)
{
	int64_t longest_ns = 0;

	for (size_t i = 0; i < s->active_n; i++)
		if (s->active[i].interval_ns > longest_ns)
			longest_ns = s->active[i].interval_ns;
	return lookback_ns + longest_ns;
}

static enum err_code api_describe(struct describing *d, struct web *w, struct http_out *out,
	const struct fleet_targets *f, struct err *err)
{
	const struct db_visitor visitor = { .wanted = api_targets_metadata_wants_series,
		.take = api_targets_metadata_take_series,
		.ctx = d };
	int64_t now_ns = clock_now_ns();
	struct http_in *in = d->view->in;
	enum err_code rc = view_open_at(
		d->view, w, in, now_ns - api_window_of(&f->s, w->o.lookback_ns), now_ns, err);

	if (rc || (rc = api_choose_targets(d, &f->s, err)))
		return rc;
	if (d->n && (rc = db_visit_series(d->view->q, DB_PROFILES, NULL, 0, &visitor, err)))
		return rc;
	api_sort(d, api_by_process_and_profile);
	for (size_t i = 0; i < f->warnings_n; i++)
		view_warn(d->view, STR_FMT, STR_ARG(f->warnings[i]));
	api_targets_metadata_print(out, d);
	return ERR_OK;
}

static enum err_code api_read_match(struct describing *d, struct http_in *in, struct err *err)
{
	struct str match = http_param(in, "match_target");
	enum err_code rc = ERR_OK;

	if (match.len)
		rc = parse_selector(&in->arena, match, &d->match, NULL, err);
	return rc ? err_wrap(err, rc, "invalid parameter \"match_target\"") : ERR_OK;
}

void api_targets_metadata(struct web *w, struct http_in *in, struct http_out *out)
{
	struct view view = { .in = in };
	struct describing d = { .view = &view, .metric = http_param(in, "metric") };
	struct fleet_targets f = { 0 };
	struct err err, why;
	enum err_code rc = api_read_match(&d, in, &err);

	if (d.metric.len && !type_pattern_parse(d.metric, &d.pattern))
		d.pattern = (struct type_pattern){ 0 };
	if (!rc && !(rc = fleet_targets_open(w, STR(""), &in->arena, &f, &err))) {
		if ((rc = api_describe(&d, w, out, &f, &err)) == ERR_LIMIT) {
			why = err;
			err_set(&err, rc, "%s: set `limit` or `match_target`", why.msg);
		}
		fleet_targets_release(&f);
	}
	if (rc)
		api_fail(out, rc, &err);
	parsed_release(d.match);
	view_close(&view);
}
