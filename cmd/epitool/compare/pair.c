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

	return source_read(&o, p->texts[i], &p->arena, &p->sides[i], err);
}

static struct str pair_unit_of(const struct source *s)
{
	return s->profile->strings[s->profile->types[s->type].unit];
}

/* The compared type of a side in another unit; the profile becomes a copy. */
static enum err_code pair_convert(
	struct pair *p, struct source *s, struct str unit, struct err *err)
{
	const struct pprof *from = s->profile;
	int64_t ratio = pprof_unit_ratio(pair_unit_of(s), unit), *values;
	struct pprof *to = arena_new(&p->arena, struct pprof);
	struct pprof_type *types = arena_array(&p->arena, struct pprof_type, from->types_n);
	struct str *strings = arena_array(&p->arena, struct str, (size_t)from->strings_n + 1);
	size_t n = (size_t)from->samples_n * from->types_n;

	values = arena_array(&p->arena, int64_t, n + 1);
	if (!to || !types || !strings || !values)
		return arena_fail(&p->arena, "diff", err);
	memcpy(strings, from->strings, from->strings_n * sizeof(*strings));
	memcpy(types, from->types, from->types_n * sizeof(*types));
	memcpy(values, from->values, n * sizeof(*values));
	strings[from->strings_n] = unit;
	types[s->type].unit = from->strings_n;
	for (size_t i = s->type; i < n; i += from->types_n)
		if (__builtin_mul_overflow(values[i], ratio, &values[i]))
			return err_set(err, ERR_LIMIT, "a cost exceeds 64 bits in " STR_FMT, STR_ARG(unit));
	*to = *from;
	to->strings = strings;
	to->strings_n++;
	to->types = types;
	to->values = values;
	s->profile = to;
	return ERR_OK;
}

/* Both in the finer one of their units. */
static enum err_code pair_join_units(struct pair *p, struct err *err)
{
	struct str base = pair_unit_of(&p->sides[COSTS_BASE]), new = pair_unit_of(&p->sides[COSTS_NEW]);
	enum err_code rc = ERR_OK;

	p->unit = base;
	if (str_eq(base, new))
		return ERR_OK;
	if (!pprof_unit_fits(base, new))
		return err_set(err, ERR_INVALID, "the base is in " STR_FMT ", the new one in " STR_FMT,
			STR_ARG(base), STR_ARG(new));
	p->unit = pprof_unit_finer(base, new);
	for (unsigned i = 0; i < 2 && !rc; i++)
		if (!str_eq(pair_unit_of(&p->sides[i]), p->unit))
			rc = pair_convert(p, &p->sides[i], p->unit, err);
	return rc;
}

enum err_code pair_read(struct pair *p, const char **query, struct err *err)
{
	enum err_code rc = ERR_OK;

	arena_init(&p->arena, 0);
	costs_init(&p->costs, &p->arena, p->f->by);
	for (unsigned i = 0; i < 2; i++) {
		rc = pair_read_side(p, i, err);
		*query = p->sides[i].query.ptr;
		if (rc)
			return rc;
		*query = NULL;
	}
	if ((rc = pair_join_units(p, err)))
		return rc;
	for (unsigned i = 0; i < 2 && !rc; i++) {
		const struct source *s = &p->sides[i];

		p->type = s->profile->strings[s->profile->types[s->type].type];
		rc = costs_add(&p->costs, s->profile, s->type, i, err);
	}
	return rc;
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
