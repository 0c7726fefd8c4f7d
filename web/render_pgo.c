/*
 * A CPU profile as `go build -pgo` reads it.
 *
 * The compiler weighs call edges: caller, callee, and the line of the call counted from the
 * caller's first line. So a frame is kept as (function, line) and nothing else, mappings, addresses
 * and labels go, and so does the line of a leaf, from which nothing is called. Of each stack the
 * innermost RENDER_PGO_FRAMES frames stay: what is hot is there, and outer edges (main calls serve)
 * only make the file long. Frames without a function end a stack: an edge over them would be one
 * that is not in the code.
 *
 * Source: Go's cmd/internal/pgo.
 */
#include "base/map.h"
#include "web/render.h"
#include "web/render_profile.h"

struct pgo_stack {
	uint32_t frames[RENDER_PGO_FRAMES]; /* leaf first */
	uint32_t n;
	int64_t value;
};

struct pgo_frame {
	uint32_t function; /* of the input */
	int64_t line;
	uint32_t location; /* of the output */
};

struct pgo {
	struct arena *arena;
	const struct pprof *in;
	struct pprof_builder *b;
	uint32_t *functions; /* per function of the input: its index in the output + 1 */
	struct pgo_frame *frames;
	uint32_t frames_n, frames_cap;
	struct pgo_stack *stacks;
	uint32_t stacks_n, stacks_cap;
	struct map frame_map, stack_map;
};

static enum err_code check_type(const struct profile_value *const *v, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct profile_type *t = &v[i]->type;
		bool samples = str_is(t->sample_type, "samples") && str_is(t->sample_unit, "count");
		bool cpu = str_is(t->sample_type, "cpu") && str_is(t->sample_unit, "nanoseconds");

		if (v[i]->is_diff)
			return err_set(err, ERR_INVALID,
				"format=pgo wants a profile, the query gives a difference");
		if (!samples && !cpu)
			return err_set(err, ERR_INVALID,
				"format=pgo wants a CPU profile (samples/count or "
				"cpu/nanoseconds), "
				"the query gives " STR_FMT "/" STR_FMT,
				STR_ARG(t->sample_type), STR_ARG(t->sample_unit));
	}
	return ERR_OK;
}

/* ---- frames ---- */

static bool frame_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct pgo_frame *a = key, *b = &((const struct pgo *)ctx)->frames[id];

	return a->function == b->function && a->line == b->line;
}

static uint32_t add_location(struct pgo *x, uint32_t function, int64_t line)
{
	const struct pprof_function *f = &x->in->functions[function];
	struct pprof_line l = { .line = line };
	/* A compiler knows functions by their symbols, not by what is shown of them. */
	uint32_t name = f->system_name ? f->system_name : f->name;

	if (!x->functions[function])
		x->functions[function] = 1 +
			pprof_builder_function(x->b,
				&(struct pprof_function){
					.name = pprof_builder_string(x->b, x->in->strings[name]),
					.system_name = pprof_builder_string(
						x->b, x->in->strings[f->system_name]),
					.filename = pprof_builder_string(
						x->b, x->in->strings[f->filename]),
					.start_line = f->start_line });
	l.function = x->functions[function] - 1;
	return pprof_builder_location(
		x->b, (struct pprof_location){ .mapping = PPROF_NONE }, &l, 1);
}

static enum err_code find_frame(
	struct pgo *x, uint32_t function, int64_t line, uint32_t *out, struct err *err)
{
	struct pgo_frame key = { .function = function, .line = line }, *grown;
	uint64_t hash = hash_u64((uint64_t)function << 32 ^ (uint64_t)line);

	*out = map_find(&x->frame_map, hash, frame_eq, x, &key);
	if (*out != MAP_NONE)
		return ERR_OK;
	if (x->frames_n == x->frames_cap) {
		x->frames_cap = x->frames_cap ? x->frames_cap * 2 : 256;
		if (!(grown = arena_alloc_raw(x->arena, x->frames_cap, sizeof(*grown))))
			return arena_fail(x->arena, "answer", err);
		if (x->frames_n)
			memcpy(grown, x->frames, x->frames_n * sizeof(*grown));
		x->frames = grown;
	}
	*out = x->frames_n;
	if (!map_add(&x->frame_map, hash, *out))
		return err_set(err, ERR_NOMEM, "answer: out of memory");
	key.location = add_location(x, function, line);
	x->frames[x->frames_n++] = key;
	return ERR_OK;
}

/* ---- stacks ---- */

static bool stack_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct pgo_stack *a = key, *b = &((const struct pgo *)ctx)->stacks[id];

	return a->n == b->n && !memcmp(a->frames, b->frames, a->n * sizeof(*a->frames));
}

static enum err_code add_stack(struct pgo *x, const struct pgo_stack *s, struct err *err)
{
	uint64_t hash = hash_bytes(s->frames, s->n * sizeof(*s->frames), 0);
	uint32_t id = map_find(&x->stack_map, hash, stack_eq, x, s);
	struct pgo_stack *grown;

	if (id != MAP_NONE) {
		x->stacks[id].value = duration_sum(x->stacks[id].value, s->value);
		return ERR_OK;
	}
	if (x->stacks_n == x->stacks_cap) {
		x->stacks_cap = x->stacks_cap ? x->stacks_cap * 2 : 256;
		if (!(grown = arena_alloc_raw(x->arena, x->stacks_cap, sizeof(*grown))))
			return arena_fail(x->arena, "answer", err);
		if (x->stacks_n)
			memcpy(grown, x->stacks, x->stacks_n * sizeof(*grown));
		x->stacks = grown;
	}
	if (!map_add(&x->stack_map, hash, x->stacks_n))
		return err_set(err, ERR_NOMEM, "answer: out of memory");
	x->stacks[x->stacks_n++] = *s;
	return ERR_OK;
}

/* False: no more of this stack. */
static bool add_frames(
	struct pgo *x, struct pgo_stack *s, uint32_t location, enum err_code *rc, struct err *err)
{
	const struct pprof_location *l = &x->in->locations[location];

	if (l->line_n == 0)
		return s->n == 0;
	for (uint32_t i = 0; i < l->line_n && s->n < RENDER_PGO_FRAMES; i++) {
		const struct pprof_line *line = &x->in->lines[l->line_first + i];
		const struct pprof_function *f = &x->in->functions[line->function];

		*rc = find_frame(x, line->function, s->n ? line->line : f->start_line,
			&s->frames[s->n], err);
		if (*rc)
			return false;
		s->n++;
	}
	return s->n < RENDER_PGO_FRAMES;
}

static enum err_code add_sample(struct pgo *x, uint32_t i, struct err *err)
{
	const struct pprof_sample *sample = &x->in->samples[i];
	struct pgo_stack s = { .value = x->in->values[i] };
	enum err_code rc = ERR_OK;

	if (s.value <= 0)
		return ERR_OK;
	for (uint32_t k = 0; k < sample->location_n; k++)
		if (!add_frames(x, &s, x->in->location_ids[sample->location_first + k], &rc, err))
			break;
	if (rc || s.n == 0)
		return rc;
	return add_stack(x, &s, err);
}

/* ---- all of it ---- */

static void copy_header(const struct pgo *x)
{
	struct pprof *p = pprof_builder_profile(x->b);
	const struct pprof *in = x->in;

	p->period_type.type = pprof_builder_string(x->b, in->strings[in->period_type.type]);
	p->period_type.unit = pprof_builder_string(x->b, in->strings[in->period_type.unit]);
	p->period = in->period;
	p->time_nanos = in->time_nanos;
	p->duration_nanos = in->duration_nanos;
}

static enum err_code build(struct pgo *x, struct pprof **out, struct err *err)
{
	const struct pprof *in = x->in;
	uint32_t locations[RENDER_PGO_FRAMES];
	bool any_start = in->functions_n == 0;
	enum err_code rc;

	for (uint32_t i = 0; i < in->functions_n && !any_start; i++)
		any_start = in->functions[i].start_line != 0;
	if (!any_start)
		return err_set(err, ERR_INVALID,
			"format=pgo wants functions that say on which line they start: programs "
			"built with Go 1.20 or later say so");
	if ((rc = pprof_builder_open(x->arena, &x->b, err)))
		return rc;
	if (!(x->functions = arena_array(x->arena, uint32_t, (size_t)in->functions_n + 1)))
		return arena_fail(x->arena, "answer", err);
	pprof_builder_type(x->b, in->strings[in->types[0].type], in->strings[in->types[0].unit]);
	copy_header(x);
	for (uint32_t i = 0; i < in->samples_n; i++)
		if ((rc = add_sample(x, i, err)))
			return rc;
	for (uint32_t i = 0; i < x->stacks_n; i++) {
		const struct pgo_stack *s = &x->stacks[i];

		for (uint32_t k = 0; k < s->n; k++)
			locations[k] = x->frames[s->frames[k]].location;
		pprof_builder_sample(x->b, locations, s->n, NULL, 0, &s->value);
	}
	return pprof_builder_finish(x->b, out, err);
}

enum err_code render_pgo(
	const struct result *r, const struct render_options *o, struct pprof **out, struct err *err)
{
	struct pgo x = { .arena = o->arena };
	const struct profile_value **v;
	struct pprof *in;
	enum err_code rc;
	size_t n;

	if ((rc = render_profiles_of(r, o->arena, "pgo", &v, &n, err)) ||
		(rc = check_type(v, n, err)) || (rc = render_pprof(r, o, &in, err)))
		return rc;
	x.in = in;
	map_init(&x.frame_map);
	map_init(&x.stack_map);
	rc = build(&x, out, err);
	map_release(&x.frame_map);
	map_release(&x.stack_map);
	return rc;
}

enum err_code render_pgo_gz(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err)
{
	struct pprof *p;
	enum err_code rc = render_pgo(r, o, &p, err);

	return rc ? rc : render_encode_gz(p, out, err);
}
