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

static enum err_code pair_read_side(struct pair *p, unsigned i, struct err *err)
{
	const struct source_options o = { .question = p->questions[i],
		.profile = p->f->profile,
		.match = p->f->match,
		.type = p->f->type };
	struct source *s = &p->sides[i];
	enum err_code rc = source_read(&o, p->texts[i], &p->arena, s, err);

	return rc ? rc : costs_add(&p->costs, s->profile, s->type, i, err);
}

enum err_code pair_read(struct pair *p, const char **query, struct err *err)
{
	struct str units[2];
	enum err_code rc;

	arena_init(&p->arena, 0);
	costs_init(&p->costs, &p->arena, p->f->by);
	for (unsigned i = 0; i < 2; i++) {
		const struct source *s = &p->sides[i];
		const struct pprof_type *type;

		rc = pair_read_side(p, i, err);
		*query = s->query.ptr;
		if (rc)
			return rc;
		type = &s->profile->types[s->type];
		units[i] = s->profile->strings[type->unit];
		p->type = s->profile->strings[type->type];
		*query = NULL;
	}
	p->unit = units[0];
	if (!str_eq(units[0], units[1]))
		return err_set(err, ERR_INVALID, "the base is in " STR_FMT ", the new one in " STR_FMT,
			STR_ARG(units[0]), STR_ARG(units[1]));
	return ERR_OK;
}

void pair_release(struct pair *p)
{
	costs_release(&p->costs);
	source_release(&p->sides[0]);
	source_release(&p->sides[1]);
	arena_release(&p->arena);
}

size_t pair_rows(const struct pair *p)
{
	return p->f->limit && p->f->limit < p->costs.n ? p->f->limit : p->costs.n;
}

struct str pair_unit(const struct pair *p)
{
	int64_t total = p->costs.total[COSTS_BASE];

	total = total ? total : p->costs.total[COSTS_NEW];
	return number_unit(total / 1000 + 1, total, p->unit);
}

void pair_cell(
	const struct pair *p, struct text_table *t, int64_t value, bool sign, struct str unit)
{
	struct buf cell = { 0 };

	if (sign && value > 0)
		buf_add_char(&cell, '+');
	pprof_unit_print(&cell, value, p->unit, unit);
	table_cell(t, buf_str(&cell));
	buf_release(&cell);
}
