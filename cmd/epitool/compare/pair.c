#include "cmd/epitool/compare/pair.h"

#include "proto/report/pprof_unit.h"

enum err_code pair_check(struct pair_flags *f, struct err *err)
{
	enum err_code rc = costs_check_flags(f->by_text, f->measure, &f->by, err);

	if (rc)
		return rc;
	f->compare.normalize = f->normalize;
	f->compare.cum = !strcmp(f->measure, "cum");
	f->q.format = "pprof";
	return ERR_OK;
}

static enum err_code pair_read_side(struct pair *x, unsigned i, struct err *err)
{
	const struct source_options o = { .question = x->questions[i],
		.profile = x->f->profile,
		.match = x->f->match,
		.type = x->f->type };
	struct source *s = &x->sides[i];
	enum err_code rc = source_read(&o, x->texts[i], &x->arena, s, err);

	return rc ? rc : costs_add(&x->costs, s->profile, s->type, i, err);
}

enum err_code pair_read(struct pair *x, const char **query, struct err *err)
{
	struct str units[2];
	enum err_code rc;

	arena_init(&x->arena, 0);
	costs_init(&x->costs, &x->arena, x->f->by);
	for (unsigned i = 0; i < 2; i++) {
		const struct source *s = &x->sides[i];
		const struct pprof_type *type;

		rc = pair_read_side(x, i, err);
		*query = s->query.ptr;
		if (rc)
			return rc;
		type = &s->profile->types[s->type];
		units[i] = s->profile->strings[type->unit];
		x->type = s->profile->strings[type->type];
		*query = NULL;
	}
	x->unit = units[0];
	if (!str_eq(units[0], units[1]))
		return err_set(err, ERR_INVALID, "the base is in " STR_FMT ", the new one in " STR_FMT,
			STR_ARG(units[0]), STR_ARG(units[1]));
	return ERR_OK;
}

void pair_release(struct pair *x)
{
	costs_release(&x->costs);
	source_release(&x->sides[0]);
	source_release(&x->sides[1]);
	arena_release(&x->arena);
}

size_t pair_rows(const struct pair *x)
{
	return x->f->limit && x->f->limit < x->costs.n ? x->f->limit : x->costs.n;
}

struct str pair_unit(const struct pair *x)
{
	int64_t total = x->costs.total[COSTS_BASE];

	total = total ? total : x->costs.total[COSTS_NEW];
	return number_unit(total / 1000 + 1, total, x->unit);
}

void pair_cell(const struct pair *x, struct text_table *t, int64_t v, bool sign, struct str unit)
{
	struct buf cell = { 0 };

	if (sign && v > 0)
		buf_add_char(&cell, '+');
	pprof_unit_print(&cell, v, x->unit, unit);
	table_cell(t, buf_str(&cell));
	buf_release(&cell);
}
