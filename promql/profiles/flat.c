/*
 * flat() and cum() and their shares: costs of functions, or of whatever `by` names.
 */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "promql/costs/costs.h"
#include "promql/profiles/filter.h"
#include "promql/profiles/flat.h"
#include "promql/profiles/frame.h"
#include "promql/profiles/frames.h"
#include "promql/profiles/profiles.h"

struct flat {
	struct work *work;
	const struct flat_options *o;
	struct frames *frames;
	unsigned fields;
	struct name_list labels; /* of `by`, without the frames' fields */
	struct value *out;
	size_t cap;
};

/* `by` names fields of frames and labels in one list. */
static enum err_code flat_split_list(struct flat *f, struct err *err)
{
	struct str *labels = arena_array(f->work->arena, struct str, f->o->labels.n + 1);
	enum frame_field field;

	if (!labels)
		return work_nomem(f->work, err);
	f->labels.v = labels;
	for (size_t i = 0; i < f->o->labels.n; i++) {
		field = frame_field_find(f->o->labels.v[i]);
		if (field == FRAME_FIELDS)
			labels[f->labels.n++] = f->o->labels.v[i];
		else
			f->fields |= FRAME_BIT(field);
	}
	if (f->o->grouping == GROUPING_NONE)
		f->fields = FRAME_BIT(FRAME_FUNCTION);
	return ERR_OK;
}

bool flat_by_name(const struct flat_options *o)
{
	bool by_function = o->grouping == GROUPING_NONE;

	for (size_t i = 0; i < o->labels.n && o->grouping == GROUPING_BY; i++) {
		enum frame_field field = frame_field_find(o->labels.v[i]);

		if (field != FRAME_FUNCTION && field != FRAME_FIELDS)
			return false;
		by_function |= field == FRAME_FUNCTION;
	}
	for (size_t i = 0; i < o->matchers_n; i++)
		if (frame_field_find(o->matchers[i].name) != FRAME_FUNCTION ||
			frame_means_symbol(o->matchers[i].value))
			return false;
	return by_function;
}

static enum err_code flat_add_cost(
	struct flat *f, struct labels base, uint32_t group, double value, struct err *err)
{
	const struct frame_group *g = frames_group(f->frames, group);
	struct labels_builder b;
	struct cost *c;
	enum err_code rc;

	if (!arena_array_room(f->work->arena, &f->out->costs, f->out->n, 1, &f->cap))
		return work_nomem(f->work, err);
	c = &f->out->costs[f->out->n];
	labels_builder_init(&b, f->work->arena, base);
	for (unsigned i = 0; i < FRAME_FIELDS; i++)
		if (f->fields & FRAME_BIT(i))
			labels_builder_set(&b, str_of(frame_field_name((enum frame_field)i)), g->v[i]);
	if ((rc = labels_builder_build(&b, &c->metric, err)))
		return rc;
	c->value = value;
	c->t_ns = f->work->t_ns;
	f->out->n++;
	return ERR_OK;
}

/* Ids decide in which order groups come, and differ with where profiles are stored. */
static int flat_metric_cmp(const void *a, const void *b)
{
	return labels_cmp(((const struct cost *)a)->metric, ((const struct cost *)b)->metric);
}

static enum err_code flat_add_profile(
	struct flat *f, const struct profile_value *p, struct err *err)
{
	size_t first = f->out->n;
	struct frame_sums sums;
	struct labels base;
	enum err_code rc;

	if ((rc = labels_without_name(f->work, p->metric, &base, err)))
		return rc;
	if ((rc = frames_sum(f->frames, p, f->o->cum, &sums, err)))
		return rc;
	if (f->o->share && p->total == 0)
		return ERR_OK;
	for (size_t i = 0; i < sums.n; i++) {
		uint32_t g = sums.groups[i];
		double v = (double)(f->o->cum ? sums.cum[g] : sums.flat[g]);

		if (f->o->share)
			v /= (double)p->total;
		else
			v = ldexp(v, -p->exponent);
		if (v != 0 && (rc = flat_add_cost(f, base, g, v, err)))
			return rc;
	}
	if (f->out->n > first)
		qsort(f->out->costs + first, f->out->n - first, sizeof(*f->out->costs), flat_metric_cmp);
	return ERR_OK;
}

enum err_code profiles_flat(struct work *work, const struct value *in, const struct flat_options *o,
	struct value *out, struct err *err)
{
	struct flat x = { .work = work, .o = o, .out = out };
	struct frames_options frames_options;
	struct value merged = *in;
	enum err_code rc;

	*out = (struct value){ .type = VALUE_COSTS };
	if (in->n == 0)
		return ERR_OK;
	if ((rc = flat_split_list(&x, err)))
		return rc;
	if (o->grouping == GROUPING_BY &&
		(rc = profiles_merge(work, in, GROUPING_BY, x.labels, &merged, err)))
		return rc;
	if ((rc = profiles_settle(work, &merged, err)) ||
		(o->filters && (rc = filters_apply(work, o->filters, &merged, err))))
		return rc;
	frames_options = (struct frames_options){
		.fields = x.fields, .matchers = o->matchers, .matchers_n = o->matchers_n
	};
	if ((rc = frames_open(work, &frames_options, &x.frames, err)))
		return rc;
	for (size_t i = 0; i < merged.n && !rc; i++)
		rc = flat_add_profile(&x, &merged.profiles[i], err);
	frames_close(x.frames);
	return rc;
}
