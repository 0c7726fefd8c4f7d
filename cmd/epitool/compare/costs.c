#include "cmd/epitool/compare/costs.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/integer.h"
#include "proto/report/frame_text.h"
#include "proto/report/pprof_top.h"
#include "proto/report/prune_pprof.h"

static bool compare_costs_by_parse(const char *text, enum costs_by *out)
{
	static const char *const names[] = { [BY_FUNCTION] = "function",
		[BY_SYSTEM_NAME] = "system_name",
		[BY_FILENAME] = "filename",
		[BY_LINE] = "line",
		[BY_MAPPING] = "mapping" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i])) {
			*out = (enum costs_by)i;
			return true;
		}
	return false;
}

enum err_code costs_check_flags(
	const char *by, const char *measure, enum costs_by *out, struct err *err)
{
	if (!compare_costs_by_parse(by, out))
		return err_set(err, ERR_INVALID,
			"unknown --by \"%s\"; known are function, system_name, filename, line, mapping", by);
	if (strcmp(measure, "flat") && strcmp(measure, "cum"))
		return err_set(err, ERR_INVALID, "--measure is flat or cum, not \"%s\"", measure);
	return ERR_OK;
}

void costs_init(struct costs *c, struct arena *a, enum costs_by by)
{
	*c = (struct costs){ .arena = a, .by = by, .factor = 1 };
	map_init(&c->map);
}

void costs_release(struct costs *c)
{
	map_release(&c->map);
}

static bool compare_costs_row_eq(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(*(const struct str *)key, ((const struct costs *)ctx)->rows[id].name);
}

static enum err_code costs_find_row(
	struct costs *c, struct str name, uint32_t *out, struct err *err)
{
	uint64_t hash = hash_bytes(name.ptr, name.len, 0);
	uint32_t id = map_find(&c->map, hash, compare_costs_row_eq, c, &name);

	*out = id;
	if (id != MAP_NONE)
		return ERR_OK;
	if (!arena_array_room(c->arena, &c->rows, c->n, 1, &c->cap))
		return arena_fail(c->arena, "diff", err);
	if (!map_add(&c->map, hash, (uint32_t)c->n))
		return err_nomem(err, "diff");
	c->rows[c->n] = (struct cost_row){ .name = name };
	*out = (uint32_t)c->n++;
	return ERR_OK;
}

/* The name under which a frame is counted. line PPROF_NONE: a location without lines. */
static struct str costs_row_name(
	struct costs *c, const struct pprof *p, const struct pprof_location *l, uint32_t line)
{
	struct str file = { 0 }, source;
	const struct pprof_function *f;
	char *text;

	if (l->mapping != PPROF_NONE)
		file = p->strings[p->mappings[l->mapping].filename];
	if (c->by == BY_MAPPING)
		return file.len ? file : STR("(unknown)");
	if (line == PPROF_NONE)
		return frame_binary_name(c->arena, file);
	f = &p->functions[p->lines[line].function];
	source = frame_file_cut(p->strings[f->filename], STR(""), STR(""));
	if ((c->by == BY_FILENAME || c->by == BY_LINE) && !frame_file_clean(c->arena, source, &source))
		return (struct str){ 0 };
	if (c->by == BY_FILENAME)
		return source.len ? source : STR("(unknown)");
	if (c->by == BY_SYSTEM_NAME)
		return p->strings[f->system_name];
	if (c->by == BY_FUNCTION)
		return f->name ? p->strings[f->name] : frame_binary_name(c->arena, file);
	text = arena_printf(c->arena, STR_FMT ":%lld", STR_ARG(source), (long long)p->lines[line].line);
	return text ? str_of(text) : (struct str){ 0 };
}

/* The row of each line, and of each location without lines. */
struct row_ids {
	uint32_t *lines, *bare;
};

static enum err_code name_frames(
	struct costs *c, const struct pprof *p, struct row_ids *ids, struct err *err)
{
	enum err_code rc;

	ids->lines = arena_array(c->arena, uint32_t, p->lines_n);
	ids->bare = arena_array(c->arena, uint32_t, p->locations_n);
	if (!ids->lines || !ids->bare)
		return arena_fail(c->arena, "diff", err);
	for (uint32_t i = 0; i < p->locations_n; i++) {
		const struct pprof_location *l = &p->locations[i];

		if (l->line_n == 0 &&
			(rc = costs_find_row(c, costs_row_name(c, p, l, PPROF_NONE), &ids->bare[i], err)))
			return rc;
		for (uint32_t k = l->line_first; k < l->line_first + l->line_n; k++)
			if ((rc = costs_find_row(c, costs_row_name(c, p, l, k), &ids->lines[k], err)))
				return rc;
	}
	return ERR_OK;
}

/* Rows of a sample's frames into c->stack, outermost first. */
static bool costs_stack_rows(struct costs *c, const struct pprof *p, const struct row_ids *ids,
	struct prune *prune, const struct pprof_sample *s, size_t *n)
{
	uint32_t first = prune_pprof_first(prune, p, s);

	*n = 0;
	for (uint32_t i = s->location_n; i-- > first;) {
		uint32_t id = p->location_ids[s->location_first + i];
		const struct pprof_location *l = &p->locations[id];
		uint32_t skip = prune_pprof_skip(prune, id);

		if (!arena_array_room(c->arena, &c->stack, *n, (size_t)l->line_n + 1, &c->stack_cap))
			return false;
		if (l->line_n == 0)
			c->stack[(*n)++] = ids->bare[id];
		for (uint32_t k = l->line_n; k-- > skip;)
			c->stack[(*n)++] = ids->lines[l->line_first + k];
	}
	return true;
}

enum err_code costs_walk(struct costs *c, const struct pprof *p, uint32_t type, costs_stack_fn fn,
	void *ctx, struct err *err)
{
	struct prune prune;
	struct row_ids ids;
	enum err_code rc;
	size_t n;

	assert(type < p->types_n);
	if ((rc = prune_pprof_init(&prune, p, c->arena, err)) || (rc = name_frames(c, p, &ids, err)))
		goto out;
	for (uint32_t i = 0; i < p->samples_n && !rc; i++) {
		int64_t value = p->values[(size_t)i * p->types_n + type];

		if (!value)
			continue;
		if (costs_stack_rows(c, p, &ids, &prune, &p->samples[i], &n))
			rc = fn(ctx, c->stack, n, value, err);
		else
			rc = arena_fail(c->arena, "stack", err);
	}
out:
	prune_release(&prune);
	return rc;
}

struct compare_costs_adding {
	struct costs *c;
	unsigned side;
};

static enum err_code compare_costs_add_stack(
	void *ctx, const uint32_t *rows, size_t n, int64_t value, struct err *err)
{
	const struct compare_costs_adding *x = ctx;
	struct costs *c = x->c;

	while (c->no_preempts && n > 1 && str_is(c->rows[rows[n - 1]].name, "runtime.asyncPreempt"))
		n--;
	c->samples++;
	for (size_t i = 0; i < n; i++) {
		struct cost_row *r = &c->rows[rows[i]];

		if (r->seen != c->samples)
			r->cum[x->side] += value;
		r->seen = c->samples;
	}
	if (n)
		c->rows[rows[n - 1]].flat[x->side] += value;
	c->total[x->side] += value;
	c->size[x->side] += integer_magnitude64(value);
	return ERR_OK;
}

enum err_code costs_add(
	struct costs *c, const struct pprof *p, uint32_t type, unsigned side, struct err *err)
{
	struct compare_costs_adding x = { c, side };

	enum err_code rc;

	assert(side <= COSTS_NEW);
	if ((rc = pprof_top_check_sums(p, type, err)))
		return rc;
	return costs_walk(c, p, type, compare_costs_add_stack, &x, err);
}

static int compare_costs_by_change(const void *a, const void *b)
{
	const struct cost_row *l = a, *r = b;
	uint64_t lc = integer_magnitude64(l->change), rc = integer_magnitude64(r->change);

	return lc != rc ? (lc < rc ? 1 : -1) : str_cmp(l->name, r->name);
}

void costs_compare(struct costs *c, const struct compare_options *o)
{
	double base = (double)c->size[COSTS_BASE];
	size_t kept = 0;

	c->factor = 1;
	if (o->normalize && c->total[COSTS_NEW])
		c->factor = (double)c->total[COSTS_BASE] / (double)c->total[COSTS_NEW];
	for (size_t i = 0; i < c->n; i++) {
		struct cost_row r = c->rows[i];
		const int64_t *v = o->cum ? r.cum : r.flat;

		if (!r.cum[0] && !r.cum[1] && !r.flat[0] && !r.flat[1])
			continue;
		if (o->normalize) {
			r.flat[1] = llround((double)r.flat[1] * c->factor);
			r.cum[1] = llround((double)r.cum[1] * c->factor);
		}
		r.change = v[1] - v[0];
		r.percent = base > 0 ? (double)r.change / base * 100 : r.change ? INFINITY : 0;
		r.exceeds = o->threshold >= 0 &&
			(o->both_ways ? fabs(r.percent) : r.percent) > o->threshold;
		c->exceeding += r.exceeds;
		c->rows[kept++] = r;
	}
	c->n = kept;
	if (kept)
		qsort(c->rows, kept, sizeof(*c->rows), compare_costs_by_change);
}
