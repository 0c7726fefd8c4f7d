/* Samples: events that are alike are one row. At the end the rows of each kind are a profile. */
#include <stdio.h>

#include "base/array.h"
#include "proto/jfr/decoder.h"

#define ONE(type, unit) type, unit, NULL, NULL
#define OBJECTS(name) name "_objects", "count", name "_bytes", "bytes"
#define DELAYS "contentions", "count", "delay", "nanoseconds"

/* As Pyroscope names them. */
/* clang-format off */
static const struct {
	const char *name, *period_type, *period_unit;
	enum jfr_cost first; /* of its costs */
} profiles[PROFILES] = {
	[PROFILE_CPU] =    { "process_cpu", "cpu", "nanoseconds", COST_EXECUTION },
	[PROFILE_WALL] =   { "wall", "wall", "nanoseconds", COST_WALL },
	[PROFILE_MEMORY] = { "memory", "space", "bytes", COST_IN_TLAB },
	[PROFILE_MUTEX] =  { "mutex", "mutex", "count", COST_MUTEX },
	[PROFILE_BLOCK] =  { "block", "block", "count", COST_BLOCK },
};

static const struct {
	enum jfr_kind_of_profile profile;
	const char *type, *unit;
	const char *second_type, *second_unit; /* NULL: one column */
	bool is_level;
} costs[COSTS] = {
	[COST_EXECUTION] =    { PROFILE_CPU, ONE("execution", "nanoseconds") },
	[COST_CPU] =          { PROFILE_CPU, ONE("cpu", "nanoseconds") },
	[COST_WALL] =         { PROFILE_WALL, ONE("wall", "nanoseconds") },
	[COST_IN_TLAB] =      { PROFILE_MEMORY, OBJECTS("alloc_in_new_tlab") },
	[COST_OUT_TLAB] =     { PROFILE_MEMORY, OBJECTS("alloc_outside_tlab") },
	[COST_ALLOC_SAMPLE] = { PROFILE_MEMORY, OBJECTS("alloc_sample") },
	[COST_MALLOC] =       { PROFILE_MEMORY, OBJECTS("malloc") },
	[COST_LIVE] =         { PROFILE_MEMORY, "live", "count", "live_bytes", "bytes", true },
	[COST_OLD] =          { PROFILE_MEMORY, OBJECTS("old"), true },
	[COST_MUTEX] =        { PROFILE_MUTEX, DELAYS },
	[COST_BLOCK] =        { PROFILE_BLOCK, DELAYS },
};
/* clang-format on */

enum jfr_kind_of_profile jfr_profile_of(enum jfr_cost cost)
{
	return costs[cost].profile;
}

/* The place of a cost's first column in a row. */
static unsigned jfr_column(enum jfr_cost cost)
{
	return 2 * (cost - profiles[costs[cost].profile].first);
}

static bool jfr_row_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct jfr_decoder *d = ctx;

	return !memcmp(&d->rows[id].key, key, sizeof(struct jfr_row_key));
}

static enum err_code jfr_sum(
	struct jfr_decoder *d, const struct jfr_row_key *key, int64_t *to, int64_t value)
{
	if (__builtin_add_overflow(*to, value, to))
		return err_set(d->err, ERR_INVALID, "the sum of a stack's %s values overflows",
			profiles[key->profile].name);
	return ERR_OK;
}

enum err_code jfr_row_add(struct jfr_decoder *d, struct jfr_row_key *key, enum jfr_cost cost,
	int64_t count, int64_t value)
{
	enum err_code rc;
	uint64_t hash;
	uint32_t i;

	key->profile = costs[cost].profile;
	hash = hash_bytes(key, sizeof(*key), d->seed);
	i = map_find(&d->rows_map, hash, jfr_row_eq, d, key);
	if (i == MAP_NONE) {
		if (d->rows_n >= d->limits->samples_max)
			return err_set(d->err, ERR_LIMIT, "more than %u samples", d->limits->samples_max);
		if (!arena_array_room(&d->work, &d->rows, d->rows_n, 1, &d->rows_cap))
			return arena_fail(&d->work, "samples", d->err);
		if (!map_add(&d->rows_map, hash, d->rows_n))
			return err_nomem(d->err, "samples");
		i = d->rows_n++;
		d->rows[i] = (struct jfr_row){ .key = *key };
	}
	d->events[cost]++;
	rc = jfr_sum(d, key, &d->rows[i].values[jfr_column(cost)], count);
	if (rc || value < 0)
		return rc;
	d->has_second[cost] = true;
	return jfr_sum(d, key, &d->rows[i].values[jfr_column(cost) + 1], value);
}

/* A profile that is made: what of the file is in it already, number + 1. */
struct jfr_making {
	struct jfr_decoder *d;
	struct pprof_builder *b;
	uint32_t *mappings; /* of names; the last one: the kernel's */
	uint32_t *functions, *locations;
	uint32_t *ids; /* of a stack */
	struct pprof_label *labels; /* of a sample */
	size_t frames_n;
	enum value_kind *kinds; /* of its columns */
	unsigned columns[JFR_COLUMNS_MAX]; /* each column's place in a row */
	unsigned columns_n;
};

static uint32_t jfr_rows_string(struct jfr_making *m, uint32_t name)
{
	return pprof_builder_string(m->b, m->d->names[name]);
}

static uint32_t jfr_mapping(struct jfr_making *m, const struct jfr_frame *f)
{
	struct pprof_mapping mapping = { .has_functions = true };
	uint32_t name = m->d->functions[f->function].library;

	if (f->origin == ORIGIN_JAVA)
		return PPROF_NONE;
	if (f->origin == ORIGIN_KERNEL)
		name = m->d->names_n;
	if (!m->mappings[name]) {
		mapping.filename = f->origin == ORIGIN_KERNEL ?
			pprof_builder_string(m->b, STR("[kernel.kallsyms]")) : jfr_rows_string(m, name);
		m->mappings[name] = pprof_builder_mapping(m->b, &mapping) + 1;
	}
	return m->mappings[name] - 1;
}

static uint32_t jfr_location(struct jfr_making *m, uint32_t frame)
{
	const struct jfr_frame *f = &m->d->frames[frame];
	struct pprof_location l = { 0 };
	struct pprof_line line = { .line = f->line };

	if (!m->locations[frame]) {
		if (!m->functions[f->function]) {
			struct pprof_function function = { .name = jfr_rows_string(
												   m, m->d->functions[f->function].name) };

			m->functions[f->function] = pprof_builder_function(m->b, &function) + 1;
		}
		line.function = m->functions[f->function] - 1;
		l.mapping = jfr_mapping(m, f);
		m->locations[frame] = pprof_builder_location(m->b, l, &line, 1) + 1;
	}
	return m->locations[frame] - 1;
}

static void jfr_rows_add_label(
	struct jfr_making *m, uint32_t *n, const char *key, const char *value)
{
	m->labels[(*n)++] = (struct pprof_label){ .key = pprof_builder_string(m->b, str_of(key)),
		.str = pprof_builder_string(m->b, str_of(value)) };
}

/* The labels of a row, and their number. */
static uint32_t jfr_rows_labels(struct jfr_making *m, const struct jfr_row_key *key)
{
	const struct jfr_label_set *set = &m->d->label_sets[key->labels];
	char hex[33];
	uint32_t n = 0;

	for (; n < set->n; n++) {
		const struct jfr_label *l = &m->d->labels[set->first + n];

		m->labels[n] = (struct pprof_label){ .key = jfr_rows_string(m, l->key),
			.str = jfr_rows_string(m, l->value) };
	}
	if (key->span) {
		snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)key->span);
		jfr_rows_add_label(m, &n, "profile_id", hex);
	}
	if (key->span_name)
		m->labels[n++] = (struct pprof_label){ .key = pprof_builder_string(m->b, STR("span_name")),
												   .str = jfr_rows_string(m, key->span_name) };
	if (key->trace_high || key->trace_low) {
		snprintf(hex, sizeof(hex), "%016llx%016llx", (unsigned long long)key->trace_high,
			(unsigned long long)key->trace_low);
		jfr_rows_add_label(m, &n, "trace_id", hex);
	}
	return n;
}

static enum err_code jfr_add_row(struct jfr_making *m, const struct jfr_row *row)
{
	const struct jfr_stack *stack = &m->d->stacks[row->key.stack];
	int64_t values[JFR_COLUMNS_MAX];

	m->frames_n += stack->n;
	if (m->frames_n > m->d->limits->frames_max)
		return err_set(m->d->err, ERR_LIMIT, "%s: samples of more than %u frames together",
			profiles[row->key.profile].name, m->d->limits->frames_max);
	for (uint32_t i = 0; i < stack->n; i++)
		m->ids[i] = jfr_location(m, m->d->stack_frames[stack->first + i]);
	for (unsigned i = 0; i < m->columns_n; i++)
		values[i] = row->values[m->columns[i]];
	pprof_builder_profile(m->b)->stacks_cut += stack->is_cut;
	pprof_builder_sample(m->b, m->ids, stack->n, m->labels, jfr_rows_labels(m, &row->key), values);
	return ERR_OK;
}

static void jfr_add_type(
	struct jfr_making *m, const char *type, const char *unit, unsigned place, enum value_kind kind)
{
	pprof_builder_type(m->b, str_of(type), str_of(unit));
	m->kinds[m->columns_n] = kind;
	m->columns[m->columns_n++] = place;
}

/*
 * Both samplers of the JDK see the same threads, so their times are not added up. Where samples of
 * CPU time are recorded they are `cpu`, also in a file that has none since the process was idle.
 */
static bool jfr_has_cost(const struct jfr_decoder *d, enum jfr_cost cost)
{
	return d->events[cost] || (cost == COST_CPU && d->has_cpu_time);
}

/* The columns of all costs that the recording has. */
static void jfr_add_types(struct jfr_making *m, enum jfr_kind_of_profile profile)
{
	struct pprof *p = pprof_builder_profile(m->b);
	enum jfr_cost name;

	for (enum jfr_cost cost = 0; cost < COSTS; cost++) {
		enum value_kind kind = costs[cost].is_level ? KIND_GAUGE : KIND_DELTA;

		if (costs[cost].profile != profile || !jfr_has_cost(m->d, cost))
			continue;
		name = cost == COST_EXECUTION && !jfr_has_cost(m->d, COST_CPU) ? COST_CPU : cost;
		jfr_add_type(m, costs[name].type, costs[name].unit, jfr_column(cost), kind);
		if (m->d->periods[cost])
			p->period = m->d->periods[cost];
		if (costs[cost].second_type && m->d->has_second[cost])
			jfr_add_type(
				m, costs[cost].second_type, costs[cost].second_unit, jfr_column(cost) + 1, kind);
	}
	p->period_type.type = pprof_builder_string(m->b, str_of(profiles[profile].period_type));
	p->period_type.unit = pprof_builder_string(m->b, str_of(profiles[profile].period_unit));
	p->time_nanos = m->d->start_ns;
	p->duration_nanos = m->d->end_ns - m->d->start_ns;
}

static enum err_code jfr_make(
	struct jfr_decoder *d, enum jfr_kind_of_profile profile, struct jfr_profile *out)
{
	struct arena *a = &d->chunk_arena;
	struct jfr_making m = { .d = d };
	enum err_code rc;

	arena_reset(a);
	m.mappings = arena_array(a, uint32_t, d->names_n + 1);
	m.functions = arena_array(a, uint32_t, d->functions_n + 1);
	m.locations = arena_array(a, uint32_t, d->frames_n + 1);
	m.ids = arena_array(a, uint32_t, d->limits->stack_depth_max + 1);
	m.labels = arena_array(a, struct pprof_label, d->limits->labels_max + 3);
	m.kinds = arena_array(d->a, enum value_kind, JFR_COLUMNS_MAX);
	if (!m.kinds)
		return arena_fail(d->a, "profile", d->err);
	if (!m.mappings || !m.functions || !m.locations || !m.ids || !m.labels)
		return arena_fail(a, "profile", d->err);
	if ((rc = pprof_builder_open(d->a, &m.b, d->err)))
		return rc;
	jfr_add_types(&m, profile);
	out->kinds = m.kinds;
	for (uint32_t i = 0; i < d->rows_n; i++)
		if (d->rows[i].key.profile == profile && (rc = jfr_add_row(&m, &d->rows[i])))
			return rc;
	return pprof_builder_finish(m.b, &out->pprof, d->err);
}

/* The time is an estimate: lost samples do not say their period. */
static enum err_code jfr_warn_of_lost_samples(struct jfr_decoder *d, struct jfr_file *file)
{
	double ms = (double)file->samples_lost_n * (double)d->periods[COST_CPU] / 1e6;
	const char *text;

	file->warning = STR("");
	if (!file->samples_lost_n)
		return ERR_OK;
	text = ms > 0 ?
		arena_printf(d->a,
			"the recorder lost %llu samples of CPU time, about %.0f ms; process_cpu lacks them",
			(unsigned long long)file->samples_lost_n, ms) :
		arena_printf(d->a, "the recorder lost %llu samples of CPU time; process_cpu lacks them",
			(unsigned long long)file->samples_lost_n);
	if (!text)
		return arena_fail(d->a, "warning", d->err);
	file->warning = str_of(text);
	return ERR_OK;
}

enum err_code jfr_rows_finish(struct jfr_decoder *d, struct jfr_file *file)
{
	enum err_code rc;

	*file = d->file;
	if ((rc = jfr_warn_of_lost_samples(d, file)))
		return rc;
	if (!(file->profiles = arena_array(d->a, struct jfr_profile, PROFILES)))
		return arena_fail(d->a, "profiles", d->err);
	for (enum jfr_kind_of_profile i = 0; i < PROFILES; i++) {
		struct jfr_profile *to = &file->profiles[file->profiles_n];

		if (!d->counts[i].events)
			continue;
		*to = d->counts[i];
		to->name = profiles[i].name;
		if ((rc = jfr_make(d, i, to)))
			return rc;
		file->profiles_n++;
	}
	return ERR_OK;
}
