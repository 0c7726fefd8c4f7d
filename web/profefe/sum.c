/*
 * Rows of one table of symbols and one header (sample types, mappings) are added up by the numbers
 * of their stacks and labels; each such group is made a profile at the end, and several are joined.
 */
#include "base/array.h"
#include "base/map.h"
#include "web/profefe/read.h"

/* Each is made a profile. Processes that load libraries at random addresses have a header each. */
#define GROUPS_MAX 1024u

struct profefe_group {
	const struct db_series *series; /* of its first row */
	struct partition *partition;
	uint32_t header;
	size_t n, cap;
	uint32_t *stacks, *sets;
	int64_t *values; /* entry by entry: types_n each */
	size_t stacks_cap, sets_cap, values_cap, types_n;
	struct map map;
	int64_t time_nanos, duration_nanos, period;
};

struct sum {
	struct arena *arena;
	struct profefe_group **groups;
	size_t n, cap, rows, last; /* last: the group of the row before */
	struct str name; /* of the profiles */
};

enum err_code sum_open(struct arena *a, struct sum **out, struct err *err)
{
	return (*out = arena_calloc(a, 1, sizeof(**out))) ? ((*out)->arena = a, ERR_OK) :
														arena_fail(a, "profile", err);
}

void sum_close(struct sum *s)
{
	for (size_t i = 0; s && i < s->n; i++)
		map_release(&s->groups[i]->map);
}

size_t sum_rows(const struct sum *s)
{
	return s->rows;
}

static bool profefe_group_is_of(
	const struct profefe_group *g, const struct db_series *s, const struct db_row *row)
{
	return g->partition == s->partition && g->header == row->header;
}

static enum err_code profefe_group_of(struct sum *s, const struct db_series *series,
	const struct db_row *row, struct profefe_group **out, struct err *err)
{
	struct profefe_group *g;

	for (size_t i = 0; i < s->n; i++) {
		size_t at = (s->last + i) % s->n;

		if (profefe_group_is_of(s->groups[at], series, row)) {
			s->last = at;
			*out = s->groups[at];
			return ERR_OK;
		}
	}
	if (s->n == GROUPS_MAX)
		return err_set(err, ERR_LIMIT,
			"the profiles have more than %u sets of mappings: query a shorter time, or use labels",
			GROUPS_MAX);
	if (!(g = arena_calloc(s->arena, 1, sizeof(*g))) ||
		!arena_array_room(s->arena, &s->groups, s->n, 1, &s->cap))
		return arena_fail(s->arena, "profile", err);
	*g = (struct profefe_group){ .series = series,
		.partition = series->partition,
		.header = row->header,
		.types_n = sym_header(series->partition, row->header)->types_n };
	map_init(&g->map);
	s->last = s->n;
	s->groups[s->n++] = *out = g;
	return ERR_OK;
}

static bool profefe_same_cell(const void *ctx, const void *key, uint32_t id)
{
	const struct profefe_group *g = ctx;
	const uint32_t *want = key;

	return g->stacks[id] == want[0] && g->sets[id] == want[1];
}

static enum err_code profefe_add_cell(struct sum *s, struct profefe_group *g, uint32_t stack,
	uint32_t set, uint32_t *out, struct err *err)
{
	const uint32_t key[2] = { stack, set };
	uint64_t hash = map_hash_u64((uint64_t)stack << 32 | set);

	*out = map_find(&g->map, hash, profefe_same_cell, g, key);
	if (*out != MAP_NONE)
		return ERR_OK;
	if (!arena_array_room(s->arena, &g->stacks, g->n, 1, &g->stacks_cap) ||
		!arena_array_room(s->arena, &g->sets, g->n, 1, &g->sets_cap) ||
		!arena_array_room(s->arena, &g->values, g->n * g->types_n, g->types_n, &g->values_cap))
		return arena_fail(s->arena, "profile", err);
	*out = (uint32_t)g->n;
	if (!map_add(&g->map, hash, *out))
		return err_nomem(err, "profile");
	g->stacks[g->n] = stack;
	g->sets[g->n] = set;
	memset(&g->values[g->n * g->types_n], 0, g->types_n * sizeof(*g->values));
	g->n++;
	return ERR_OK;
}

/* A sum beyond 64 bits wraps, as pprof's does. */
static int64_t profefe_plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void profefe_group_add_times(struct profefe_group *g, const struct db_row *row)
{
	if (row->time_nanos && (!g->time_nanos || row->time_nanos < g->time_nanos))
		g->time_nanos = row->time_nanos;
	g->duration_nanos = profefe_plus(g->duration_nanos, row->duration_nanos);
	if (row->period > g->period)
		g->period = row->period;
}

enum err_code sum_add(
	void *ctx, const struct db_series *series, const struct db_row *row, struct err *err)
{
	struct sum *s = ctx;
	struct str name = labels_get(series->labels, STR(LABEL_NAME));
	struct profefe_group *g;
	uint32_t at;
	enum err_code rc;

	if (s->rows && !str_eq(name, s->name))
		return err_set(err, ERR_INVALID,
			"profiles of different types cannot be merged: " STR_FMT " and " STR_FMT,
			STR_ARG(s->name), STR_ARG(name));
	if (s->rows == READ_ROWS_MAX)
		return err_set(err, ERR_LIMIT,
			"more than %u profiles: query a shorter time, or use labels or a limit", READ_ROWS_MAX);
	s->name = name;
	if ((rc = profefe_group_of(s, series, row, &g, err)))
		return rc;
	for (size_t i = 0; i < row->n; i++) {
		if ((rc = profefe_add_cell(s, g, row->stacks[i], row->label_sets[i], &at, err)))
			return rc;
		for (size_t c = 0; c < g->types_n; c++)
			g->values[at * g->types_n + c] = profefe_plus(
				g->values[at * g->types_n + c], row->values[c * row->n + i]);
	}
	profefe_group_add_times(g, row);
	s->rows++;
	return ERR_OK;
}

static enum err_code profefe_group_profile(
	struct sum *s, const struct profefe_group *g, struct pprof **out, struct err *err)
{
	struct db_row row = { .time_nanos = g->time_nanos,
		.duration_nanos = g->duration_nanos,
		.period = g->period,
		.header = g->header,
		.n = g->n,
		.stacks = g->stacks,
		.label_sets = g->sets };
	int64_t *values = arena_alloc_raw(s->arena, g->n * g->types_n + 1, sizeof(*values));

	if (!values)
		return arena_fail(s->arena, "profile", err);
	for (size_t i = 0; i < g->n; i++)
		for (size_t c = 0; c < g->types_n; c++)
			values[c * g->n + i] = g->values[i * g->types_n + c];
	row.values = values;
	return db_row_profile(g->series, &row, s->arena, out, err);
}

enum err_code sum_profile(struct sum *s, struct pprof **out, struct err *err)
{
	struct pprof **v = arena_array(s->arena, struct pprof *, s->n + 1);
	int64_t duration_nanos = 0, period = 0;
	enum err_code rc;

	if (!v)
		return arena_fail(s->arena, "profile", err);
	for (size_t i = 0; i < s->n; i++) {
		if ((rc = profefe_group_profile(s, s->groups[i], &v[i], err)))
			return rc;
		duration_nanos = profefe_plus(duration_nanos, v[i]->duration_nanos);
		if (v[i]->period > period)
			period = v[i]->period;
	}
	if (s->n == 1) {
		*out = v[0];
		return ERR_OK;
	}
	if ((rc = pprof_concat(s->arena, (const struct pprof *const *)v, s->n, out, err)))
		return rc;
	(*out)->duration_nanos = duration_nanos;
	(*out)->period = period;
	return ERR_OK;
}
