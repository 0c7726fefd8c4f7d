/*
 * Columns of a selector must fit together: one kind of unit, and all of them levels or none. Units
 * that convert become the finest of them; a name that every server knows has its usual unit. If
 * columns do not fit, a name still has an answer: what it is known for stays, else what most series
 * have, and an info says what was left out. Without a name it is an error.
 */
#include "base/array.h"
#include "base/quote.h"
#include "promql/choose.h"
#include "promql/syntax/type_names.h"
#include "proto/report/pprof_unit.h"

#define UNITS_SHOWN 8u /* in an error */
#define JOBS_SHOWN 3u
#define TYPES_SHOWN (CHOOSE_INFOS_MAX - 1) /* infos */

/* Columns that are of one type. */
struct choose_kind {
	struct profile_type type;
	size_t shape;
	size_t series;
	struct labels last; /* of the last series that was counted */
	struct str jobs[JOBS_SHOWN];
	size_t jobs_n; /* those not shown too, but perhaps twice */
	struct fit *fit;
};

/* Columns that fit together. */
struct choose_shape {
	struct str unit; /* the finest */
	bool delta;
	size_t series;
};

struct fitting {
	struct work *work;
	const struct expr *expr;
	struct chosen_set *set;
	struct choose_kind *kinds;
	size_t kinds_n, kinds_cap;
	struct choose_shape *shapes;
	size_t shapes_n, shapes_cap;
};

bool choose_is_same_type(const struct profile_type *a, const struct profile_type *b)
{
	return a->delta == b->delta && str_eq(a->name, b->name) &&
		str_eq(a->sample_type, b->sample_type) && pprof_unit_fits(a->sample_unit, b->sample_unit);
}

/* ---- what there is ---- */

static bool choose_shape_takes(const struct choose_shape *s, const struct profile_type *t)
{
	return s->delta == t->delta && pprof_unit_fits(s->unit, t->sample_unit);
}

static enum err_code choose_add_kind(
	struct fitting *f, const struct profile_type *type, struct err *err)
{
	struct arena *a = f->work->whole;
	size_t i = 0;

	while (i < f->shapes_n && !choose_shape_takes(&f->shapes[i], type))
		i++;
	if (i == f->shapes_n) {
		if (!arena_array_room(a, &f->shapes, f->shapes_n, 1, &f->shapes_cap))
			return work_nomem(f->work, err);
		f->shapes[f->shapes_n++] = (struct choose_shape){ .unit = type->sample_unit,
			.delta = type->delta };
	}
	f->shapes[i].unit = pprof_unit_finer(f->shapes[i].unit, type->sample_unit);
	if (!arena_array_room(a, &f->kinds, f->kinds_n, 1, &f->kinds_cap))
		return work_nomem(f->work, err);
	f->kinds[f->kinds_n++] = (struct choose_kind){ .type = *type, .shape = i };
	return ERR_OK;
}

static void choose_count_series(struct fitting *f, struct choose_kind *k, struct labels labels)
{
	struct str job = labels_get(labels, STR("job"));
	size_t shown = k->jobs_n < JOBS_SHOWN ? k->jobs_n : JOBS_SHOWN, i = 0;

	if (k->series && labels_eq(k->last, labels)) /* another epoch */
		return;
	k->last = labels;
	k->series++;
	f->shapes[k->shape].series++;
	while (i < shown && !str_eq(k->jobs[i], job))
		i++;
	if (i < shown)
		return;
	if (shown < JOBS_SHOWN)
		k->jobs[shown] = job;
	k->jobs_n++;
}

static struct choose_kind *choose_find_kind(struct fitting *f, const struct profile_type *type)
{
	for (size_t i = f->kinds_n; i-- > 0;)
		if (profile_type_eq(&f->kinds[i].type, type))
			return &f->kinds[i];
	return NULL;
}

static enum err_code choose_look(struct fitting *f, struct err *err)
{
	const struct choose_kind *k = NULL;
	enum err_code rc;

	for (size_t i = 0; i < f->set->n; i++) {
		const struct profile_type *type = &f->set->v[i].type;

		if (k && profile_type_eq(&k->type, type))
			continue;
		if (!(k = choose_find_kind(f, type))) {
			if ((rc = choose_add_kind(f, type, err)))
				return rc;
			k = &f->kinds[f->kinds_n - 1];
		}
	}
	return ERR_OK;
}

static void choose_count(struct fitting *f)
{
	for (size_t i = 0; i < f->set->n; i++) {
		const struct chosen *c = &f->set->v[i];

		choose_count_series(f, choose_find_kind(f, &c->type), c->series->labels);
	}
}

/* ---- errors ---- */

static enum err_code unit_fault(
	const struct fitting *f, const struct str *units, size_t n, struct err *err)
{
	static const char *const numbers[UNITS_SHOWN + 1] = { "", "", "two", "three", "four", "five",
		"six", "seven", "eight" };
	struct buf list = { 0 }, text = { 0 };
	enum err_code rc;

	for (size_t i = 0; i < n; i++)
		buf_printf(&list, "%s" STR_FMT,
			i == 0         ? "" :
				i + 1 == n ? " and " :
							 ", ",
			STR_ARG(units[i]));
	expr_print(&text, f->expr);
	rc = work_fault(f->work, f->expr, err, ERR_INVALID, STR_FMT " selects %s units: " STR_FMT,
		STR_ARG(buf_str(&text)), numbers[n], STR_ARG(buf_str(&list)));
	buf_release(&list);
	buf_release(&text);
	return rc;
}

static enum err_code choose_fault(const struct fitting *f, struct err *err)
{
	const struct choose_kind *a = &f->kinds[0], *b = a;
	struct str units[UNITS_SHOWN];
	struct buf x = { 0 }, y = { 0 };
	size_t units_n = 0, k;
	enum err_code rc;

	for (size_t i = 0; i < f->shapes_n && units_n < UNITS_SHOWN; i++) {
		for (k = 0; k < units_n && !str_eq(units[k], f->shapes[i].unit); k++)
			;
		if (k == units_n)
			units[units_n++] = f->shapes[i].unit;
	}
	if (units_n > 1)
		return unit_fault(f, units, units_n, err);
	while (b->type.delta == a->type.delta)
		b++;
	profile_type_print(&x, &a->type);
	profile_type_print(&y, &b->type);
	rc = work_fault(f->work, f->expr, err, ERR_INVALID,
		"selects levels and amounts: " STR_FMT " and " STR_FMT, STR_ARG(buf_str(&x)),
		STR_ARG(buf_str(&y)));
	buf_release(&x);
	buf_release(&y);
	return rc;
}

/* ---- what stays ---- */

static bool choose_shape_is_better(const struct choose_shape *a, const struct choose_shape *b)
{
	if (a->series != b->series)
		return a->series > b->series;
	if (a->delta != b->delta)
		return a->delta;
	return str_cmp(a->unit, b->unit) < 0;
}

/* known: NULL if nothing is known. */
static size_t choose_shape_of(const struct fitting *f, const struct type_meaning *known)
{
	size_t best = 0;

	for (size_t i = 0; known && i < f->shapes_n; i++)
		if (f->shapes[i].delta != known->is_level &&
			pprof_unit_fits(f->shapes[i].unit, known->unit))
			return i;
	for (size_t i = 1; i < f->shapes_n; i++)
		if (choose_shape_is_better(&f->shapes[i], &f->shapes[best]))
			best = i;
	return best;
}

static enum err_code choose_add_info(struct fitting *f, struct buf *text, struct err *err)
{
	struct str *info = &f->set->infos[f->set->infos_n++];
	bool failed = buf_failed(text);

	if (!failed)
		*info = str_dup(f->work->whole, buf_str(text));
	buf_release(text);
	return failed || !info->ptr ? work_nomem(f->work, err) : ERR_OK;
}

static enum err_code choose_tell(struct fitting *f, const struct choose_kind *k,
	const struct choose_shape *kept, struct err *err)
{
	struct buf text = { 0 };
	size_t shown = k->jobs_n < JOBS_SHOWN ? k->jobs_n : JOBS_SHOWN;

	buf_printf(
		&text, STR_FMT ": %zu series left out: ", STR_ARG(f->expr->selector.name), k->series);
	profile_type_print(&text, &k->type);
	buf_printf(&text, " of job%s", k->jobs_n > 1 ? "s" : "");
	for (size_t i = 0; i < shown; i++) {
		buf_add_cstr(&text, i ? ", " : " ");
		buf_add_quoted(&text, k->jobs[i]);
	}
	if (k->jobs_n > shown)
		buf_add_cstr(&text, ", ...");
	if (k->type.delta != kept->delta)
		buf_printf(&text, " holds %s, the result %s", kept->delta ? "levels" : "amounts",
			kept->delta ? "amounts" : "levels");
	else
		buf_printf(&text, " is in " STR_FMT ", the result in " STR_FMT,
			STR_ARG(k->type.sample_unit), STR_ARG(kept->unit));
	return choose_add_info(f, &text, err);
}

static enum err_code choose_tell_all(struct fitting *f, size_t kept, struct err *err)
{
	size_t told = 0, others = 0;
	struct buf text = { 0 };
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < f->kinds_n && !rc; i++) {
		if (f->kinds[i].shape == kept)
			continue;
		if (told++ < TYPES_SHOWN)
			rc = choose_tell(f, &f->kinds[i], &f->shapes[kept], err);
		else
			others += f->kinds[i].series;
	}
	if (rc || !others)
		return rc;
	buf_printf(&text, STR_FMT ": %zu series of %zu other types left out",
		STR_ARG(f->expr->selector.name), others, told - TYPES_SHOWN);
	return choose_add_info(f, &text, err);
}

/* ---- conversion ---- */

/* Of the kinds that stay; empty: periods are of several types. */
static struct str choose_period_unit(const struct fitting *f, size_t kept)
{
	const struct profile_type *first = NULL;
	struct str unit = { 0 };

	for (size_t i = 0; i < f->kinds_n; i++) {
		const struct profile_type *t = &f->kinds[i].type;

		if (f->kinds[i].shape != kept)
			continue;
		if (first &&
			(!str_eq(t->period_type, first->period_type) || !pprof_unit_fits(t->period_unit, unit)))
			return (struct str){ 0 };
		unit = first ? pprof_unit_finer(unit, t->period_unit) : t->period_unit;
		first = first ? first : t;
	}
	return unit;
}

static enum err_code choose_convert(struct fitting *f, size_t kept, struct err *err)
{
	struct str unit = f->shapes[kept].unit, period = choose_period_unit(f, kept);

	for (size_t i = 0; i < f->kinds_n; i++) {
		struct choose_kind *k = &f->kinds[i];
		const struct profile_type *t = &k->type;
		struct str own = period.len ? period : t->period_unit;

		if (k->shape != kept || (str_eq(t->sample_unit, unit) && str_eq(t->period_unit, own)))
			continue;
		if (!(k->fit = arena_new(f->work->whole, struct fit)))
			return work_nomem(f->work, err);
		*k->fit = (struct fit){ .scale = pprof_unit_ratio(t->sample_unit, unit),
			.period_scale = pprof_unit_ratio(t->period_unit, own),
			.unit = unit,
			.period_unit = own };
	}
	return ERR_OK;
}

enum err_code choose_fit(struct work *work, const struct expr *e,
	const struct type_pattern *pattern, struct chosen_set *set, struct err *err)
{
	struct fitting f = { .work = work, .expr = e, .set = set };
	struct choose_kind *k = NULL;
	struct type_meaning known;
	bool is_known = pattern && !pattern->sample_unit.len && type_pattern_meaning(pattern, &known);
	size_t kept = 0, left = 0;
	enum err_code rc;

	if ((rc = choose_look(&f, err)) || f.kinds_n == 0)
		return rc;
	if (f.shapes_n > 1) {
		if (!pattern)
			return choose_fault(&f, err);
		choose_count(&f);
		kept = choose_shape_of(&f, is_known ? &known : NULL);
		if ((rc = choose_tell_all(&f, kept, err)))
			return rc;
	}
	/* cpu is in nanoseconds, whatever is selected: rules divide it by 1e9. */
	if (is_known && pprof_unit_fits(known.unit, f.shapes[kept].unit))
		f.shapes[kept].unit = pprof_unit_finer(known.unit, f.shapes[kept].unit);
	if ((rc = choose_convert(&f, kept, err)))
		return rc;
	for (size_t i = 0; i < set->n; i++) {
		struct chosen *c = &set->v[i];

		if (!k || !profile_type_eq(&k->type, &c->type))
			k = choose_find_kind(&f, &c->type);
		if (k->shape != kept)
			continue;
		set->v[left] = *c;
		set->v[left++].fit = k->fit;
	}
	set->n = left;
	return ERR_OK;
}

bool choose_is_same_series(const struct db_series *a, const struct profile_type *a_type,
	const struct db_series *b, const struct profile_type *b_type)
{
	return labels_eq(a->labels, b->labels) && choose_is_same_type(a_type, b_type) &&
		str_eq(a_type->period_type, b_type->period_type);
}

struct profile_type chosen_type(const struct chosen *c)
{
	struct profile_type t = c->type;

	if (c->fit) {
		t.sample_unit = c->fit->unit;
		t.period_unit = c->fit->period_unit;
	}
	return t;
}
