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

static enum err_code pair_read_side(struct pair *p, unsigned i, const char **query, struct err *err)
{
	const struct source_options o = { .question = p->questions[i],
		.profile = p->f->profile,
		.match = p->f->match,
		.type = p->f->type };

	return bench_read(&o, p->texts[i], p->f->runs, &p->arena, &p->sides[i], query, err);
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

static enum err_code pair_join_unit(struct pair *p, const struct source *s, struct err *err)
{
	struct str unit = pair_unit_of(s);

	if (!p->unit.ptr)
		p->unit = unit;
	else if (!str_eq(p->unit, unit) && !pprof_unit_fits(p->unit, unit))
		return err_set(err, ERR_INVALID, "the base is in " STR_FMT ", the new one in " STR_FMT,
			STR_ARG(p->unit), STR_ARG(unit));
	else if (!str_eq(p->unit, unit))
		p->unit = pprof_unit_finer(p->unit, unit);
	return ERR_OK;
}

/* All in the finest of their units. */
static enum err_code pair_join_units(struct pair *p, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (unsigned i = 0; i < 2; i++)
		for (size_t k = 0; k < p->sides[i].n && !rc; k++)
			rc = pair_join_unit(p, &p->sides[i].v[k].source, err);
	for (unsigned i = 0; i < 2; i++)
		for (size_t k = 0; k < p->sides[i].n && !rc; k++) {
			struct source *s = &p->sides[i].v[k].source;

			if (!str_eq(pair_unit_of(s), p->unit))
				rc = pair_convert(p, s, p->unit, err);
		}
	return rc;
}

static int64_t pair_cost(const struct pair *p, size_t row, unsigned side)
{
	const struct cost_row *r = &p->costs.rows[row];

	return p->f->compare.cum ? r->cum[side] : r->flat[side];
}

/* A run's costs are what its side grows by. */
static enum err_code pair_add_run_apart(
	struct pair *p, struct bench_run *run, unsigned side, struct err *err)
{
	size_t before_n = p->costs.n;
	int64_t *before = arena_array(&p->arena, int64_t, before_n + 1);
	enum err_code rc;

	if (!before)
		return arena_fail(&p->arena, "runs", err);
	for (size_t i = 0; i < before_n; i++)
		before[i] = pair_cost(p, i, side);
	run->total = -p->costs.total[side];
	if ((rc = costs_add(&p->costs, run->source.profile, run->source.type, side, err)))
		return rc;
	run->total += p->costs.total[side];
	run->costs_n = p->costs.n;
	if (!(run->costs = arena_array(&p->arena, int64_t, run->costs_n + 1)))
		return arena_fail(&p->arena, "runs", err);
	for (size_t i = 0; i < run->costs_n; i++)
		run->costs[i] = pair_cost(p, i, side) - (i < before_n ? before[i] : 0);
	return ERR_OK;
}

static enum err_code pair_add_runs(struct pair *p, unsigned side, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < p->sides[side].n && !rc; i++) {
		struct bench_run *r = &p->sides[side].v[i];
		const struct source *s = &r->source;

		p->type = s->profile->strings[s->profile->types[s->type].type];
		rc = p->f->runs == RUNS_APART ? pair_add_run_apart(p, r, side, err) :
										costs_add(&p->costs, s->profile, s->type, side, err);
	}
	return rc;
}

enum err_code pair_read(struct pair *p, const char **query, struct err *err)
{
	enum err_code rc = ERR_OK;

	arena_init(&p->arena, 0);
	costs_init(&p->costs, &p->arena, p->f->by);
	p->costs.no_preempts = p->f->runs == RUNS_APART;
	for (unsigned i = 0; i < 2; i++)
		if ((rc = pair_read_side(p, i, query, err)))
			return rc;
	if (!(rc = pair_join_units(p, err)) && !(rc = pair_add_runs(p, COSTS_BASE, err)))
		rc = pair_add_runs(p, COSTS_NEW, err);
	return rc;
}

void pair_release(struct pair *p)
{
	costs_release(&p->costs);
	bench_release(&p->sides[0]);
	bench_release(&p->sides[1]);
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
