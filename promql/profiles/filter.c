#include "promql/profiles/filter.h"
#include "promql/profiles/profiles.h"

static enum err_code filter_parts(struct work *work, struct arena *scratch, const struct filter *f,
	struct profile_value *p, struct err *err)
{
	struct part *parts = arena_array(work->arena, struct part, p->parts_n + 1);
	struct active_filter *active;
	enum err_code rc = ERR_OK;

	if (!parts)
		return work_nomem(work, err);
	if (filter_is_tag(f->id)) {
		rc = tag_match_cells(work, scratch, f->tags, f->id == FN_TAGIGNORE, p, parts, err);
	} else {
		for (size_t i = 0; i < p->parts_n && !rc; i++)
			rc = filter_stacks(work, scratch, f, p, &p->parts[i], &parts[i], err);
	}
	if (rc)
		return rc;
	if (!(active = arena_new(work->arena, struct active_filter)))
		return work_nomem(work, err);
	*active = (struct active_filter){ p->filters, functions[f->id].name, f->text };
	p->filters = active;
	p->parts = parts;
	p->filtered = true;
	return profile_totals(p, err);
}

static enum err_code filter_value(
	struct work *work, const struct filter *f, struct value *v, struct err *err)
{
	struct profile_value *profiles = arena_array(work->arena, struct profile_value, v->n + 1);
	enum err_code rc = ERR_OK;

	if (!profiles)
		return work_nomem(work, err);
	for (size_t i = 0; i < v->n && !rc; i++) {
		struct arena scratch;

		if ((rc = work_check(work, err)))
			break;
		arena_init_shared(&scratch, work->budget);
		profiles[i] = v->profiles[i];
		rc = filter_parts(work, &scratch, f, &profiles[i], err);
		arena_release(&scratch);
	}
	v->profiles = profiles;
	return rc;
}

bool filters_wait(const struct expr *e)
{
	e = expr_strip(e);
	while (e->kind == EXPR_CALL && e->call.fn->id == FN_MERGE)
		e = expr_strip(e->call.args[0]);
	return filter_is(e);
}

static enum err_code filter_apply(
	struct work *work, const struct expr *e, struct value *v, struct err *err)
{
	const struct expr *arg;
	struct filter f;
	enum err_code rc;

	e = expr_strip(e);
	if (e->kind != EXPR_CALL || (e->call.fn->id != FN_MERGE && !filter_is(e)))
		return ERR_OK;
	if ((rc = filter_apply(work, e->call.args[0], v, err)) || !filter_is(e))
		return rc;
	arg = filter_text_of(e);
	if ((rc = filter_compile(&f, e->call.fn->id, arg ? arg->string : STR(""), err)))
		rc = work_fault(work, arg ? arg : e, err, rc, "%s", err->msg);
	else if (!f.is_empty)
		rc = filter_value(work, &f, v, err);
	filter_release(&f);
	return rc;
}

/*
 * Samples were split by their labels before the filter, so an element that loses all its samples is
 * left out.
 */
static void filter_drop_empty(struct value *v)
{
	size_t n = 0, cells;

	for (size_t i = 0; i < v->n; i++) {
		cells = 0;
		for (size_t k = 0; k < v->profiles[i].parts_n; k++)
			cells += v->profiles[i].parts[k].n;
		if (cells > 0)
			v->profiles[n++] = v->profiles[i];
	}
	v->n = n;
}

enum err_code filters_apply(
	struct work *work, const struct expr *e, struct value *v, struct err *err)
{
	enum err_code rc;

	if (v->type != VALUE_PROFILES || v->n == 0 || !filters_wait(e))
		return ERR_OK;
	if ((rc = filter_apply(work, e, v, err)))
		return rc;
	if (v->is_split)
		filter_drop_empty(v);
	return ERR_OK;
}
