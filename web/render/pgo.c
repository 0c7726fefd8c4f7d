/*
 * A CPU profile as `go build -pgo` reads it.
 *
 * The compiler weighs call edges: caller, callee, and the line of the call counted from the
 * caller's first line. It takes them from the two innermost locations of a stack, with all lines
 * that were inlined there: a location is a return address, and only a call between the last two
 * is known to have been made while the sample was taken. So locations are kept whole, and of each
 * stack the innermost RENDER_PGO_LOCATIONS, or as many as are asked for. Mappings, labels, columns
 * and the line of a leaf are dropped, since no edge depends on them.
 *
 * To the compiler two frames are the same if function, line and address are. It makes no edge
 * between such frames, and the same edge only once per stack. The address itself does not matter,
 * only which locations of a stack share one: so a location gets as its address its place in the
 * stack, or the place of the first location with the same address. A leaf whose function is in
 * its stack again keeps its line. A location without a function is kept, since edges over it have
 * a weight.
 *
 * Source: Go's cmd/internal/pgo, internal/profile/graph.go.
 */
#include <assert.h>

#include "base/array.h"
#include "base/map.h"
#include "web/render/notices.h"
#include "web/render/profile.h"
#include "web/render/render.h"

struct pgo_stack {
	uint32_t *locations; /* of the output, leaf first */
	uint32_t n;
	int64_t value;
};

struct pgo {
	struct arena *arena;
	uint32_t locations_max; /* of a stack */
	bool leaf_lines; /* they stay */
	uint32_t *ids; /* locations of the current stack */
	uint32_t ids_cap;
	const struct pprof *in;
	struct pprof_builder *b;
	uint32_t *functions; /* per function of the input: its index in the output + 1 */
	struct pprof_line *lines; /* of the current location */
	uint32_t lines_cap;
	struct pgo_stack *stacks;
	uint32_t stacks_n, stacks_cap;
	struct map location_map, stack_map;
};

static enum err_code pgo_check_type(const struct profile_value *const *v, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct profile_type *t = &v[i]->type;
		bool samples = str_is(t->sample_type, "samples") && str_is(t->sample_unit, "count");
		bool cpu = str_is(t->sample_type, "cpu") && str_is(t->sample_unit, "nanoseconds");

		if (v[i]->is_diff)
			return err_set(err, ERR_INVALID, "-pgo needs a profile, not a difference");
		if (!samples && !cpu)
			return err_set(err, ERR_INVALID,
				"-pgo needs a CPU profile (samples/count or cpu/nanoseconds), got " STR_FMT
				"/" STR_FMT,
				STR_ARG(t->sample_type), STR_ARG(t->sample_unit));
	}
	return ERR_OK;
}

/* ---- locations ---- */

static uint32_t pgo_function_of(struct pgo *p, uint32_t function)
{
	const struct pprof_function *f = &p->in->functions[function];
	struct str *strings = p->in->strings;
	/* The compiler knows functions by their symbols, not by the names that are shown. */
	uint32_t name = f->system_name ? f->system_name : f->name;

	if (!p->functions[function])
		p->functions[function] = 1 +
			pprof_builder_function(p->b,
				&(struct pprof_function){ .name = pprof_builder_string(p->b, strings[name]),
					.system_name = pprof_builder_string(p->b, strings[f->system_name]),
					.filename = pprof_builder_string(p->b, strings[f->filename]),
					.start_line = f->start_line });
	return p->functions[function] - 1;
}

static enum err_code pgo_find_location(
	struct pgo *pgo, const struct pprof_location_key *key, uint32_t *out, struct err *err)
{
	const struct pprof *p = pprof_builder_profile(pgo->b);
	uint64_t hash = pprof_location_hash(key);

	*out = map_find(&pgo->location_map, hash, pprof_location_eq, p, key);
	if (*out != MAP_NONE)
		return ERR_OK;
	*out = pprof_builder_location(pgo->b, key->l, key->lines, key->l.line_n);
	if (*out >= p->locations_n)
		return arena_fail(pgo->arena, "answer", err);
	return map_add(&pgo->location_map, hash, *out) ? ERR_OK : err_nomem(err, "answer");
}

/* ---- stacks ---- */

static bool pgo_stack_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct pgo_stack *a = key, *b = &((const struct pgo *)ctx)->stacks[id];

	return a->n == b->n && !memcmp(a->locations, b->locations, a->n * sizeof(*a->locations));
}

static enum err_code pgo_add_stack(struct pgo *p, const struct pgo_stack *s, struct err *err)
{
	uint64_t hash = hash_bytes(s->locations, s->n * sizeof(*s->locations), 0);
	uint32_t id = map_find(&p->stack_map, hash, pgo_stack_eq, p, s);
	struct pgo_stack kept = *s;

	if (id != MAP_NONE) {
		p->stacks[id].value = value_duration_sum(p->stacks[id].value, s->value);
		return ERR_OK;
	}
	if (!arena_array_room(p->arena, &p->stacks, p->stacks_n, 1, &p->stacks_cap))
		return arena_fail(p->arena, "answer", err);
	if (!map_add(&p->stack_map, hash, p->stacks_n))
		return err_nomem(err, "answer");
	if (!(kept.locations = arena_array(p->arena, uint32_t, s->n)))
		return arena_fail(p->arena, "answer", err);
	memcpy(kept.locations, s->locations, s->n * sizeof(*s->locations));
	p->stacks[p->stacks_n++] = kept;
	return ERR_OK;
}

static bool pgo_same_function(const struct pgo *p, uint32_t a, uint32_t b)
{
	const struct pprof_function *f = &p->in->functions[a], *g = &p->in->functions[b];

	return a == b || (f->name == g->name && f->start_line == g->start_line);
}

/* True if the function of the leaf's innermost line is in the stack again. */
static bool pgo_leaf_recurs(const struct pgo *p, const uint32_t *ids, uint32_t n)
{
	const struct pprof_location *leaf = &p->in->locations[ids[0]], *l;

	for (uint32_t k = 0; k < n; k++) {
		l = &p->in->locations[ids[k]];
		for (uint32_t i = k ? 0 : 1; i < l->line_n; i++)
			if (pgo_same_function(p, p->in->lines[leaf->line_first].function,
					p->in->lines[l->line_first + i].function))
				return true;
	}
	return false;
}

static enum err_code pgo_add_location(
	struct pgo *p, const uint32_t *ids, uint32_t n, uint32_t at, uint32_t *out, struct err *err)
{
	const struct pprof_location *l = &p->in->locations[ids[at]];
	struct pprof_location_key key = { .l = { .mapping = PPROF_NONE, .line_n = l->line_n } };

	assert(at < n);
	while (p->in->locations[ids[key.l.address]].address != l->address)
		key.l.address++;
	if (!arena_array_room(p->arena, &p->lines, 0, l->line_n, &p->lines_cap))
		return arena_fail(p->arena, "answer", err);
	for (uint32_t i = 0; i < l->line_n; i++) {
		const struct pprof_line *line = &p->in->lines[l->line_first + i];

		p->lines[i] = (struct pprof_line){ .line = line->line,
			.function = pgo_function_of(p, line->function) };
	}
	if (at == 0 && !p->leaf_lines && l->line_n && !pgo_leaf_recurs(p, ids, n))
		p->lines[0].line = p->in->functions[p->in->lines[l->line_first].function].start_line;
	key.lines = p->lines;
	return pgo_find_location(p, &key, out, err);
}

static enum err_code pgo_add_sample(struct pgo *p, uint32_t i, struct err *err)
{
	const struct pprof_sample *sample = &p->in->samples[i];
	struct pgo_stack s = { .value = p->in->values[i], .n = sample->location_n };
	enum err_code rc;

	if (s.value <= 0 || s.n == 0)
		return ERR_OK;
	if (s.n > p->locations_max)
		s.n = p->locations_max;
	if (!arena_array_room(p->arena, &p->ids, 0, s.n, &p->ids_cap))
		return arena_fail(p->arena, "answer", err);
	s.locations = p->ids;
	for (uint32_t k = 0; k < s.n; k++)
		if ((rc = pgo_add_location(
				 p, p->in->location_ids + sample->location_first, s.n, k, &s.locations[k], err)))
			return rc;
	return pgo_add_stack(p, &s, err);
}

/* ---- all of it ---- */

static void pgo_copy_header(const struct pgo *pgo)
{
	struct pprof *p = pprof_builder_profile(pgo->b);
	const struct pprof *in = pgo->in;

	p->period_type.type = pprof_builder_string(pgo->b, in->strings[in->period_type.type]);
	p->period_type.unit = pprof_builder_string(pgo->b, in->strings[in->period_type.unit]);
	p->period = in->period;
	p->time_nanos = in->time_nanos;
	p->duration_nanos = in->duration_nanos;
}

static enum err_code pgo_build(struct pgo *p, struct pprof **out, struct err *err)
{
	const struct pprof *in = p->in;
	bool any_start = in->functions_n == 0;
	enum err_code rc;

	for (uint32_t i = 0; i < in->functions_n && !any_start; i++)
		any_start = in->functions[i].start_line != 0;
	if (!any_start)
		return err_set(err, ERR_INVALID,
			"-pgo needs the start line of each function: build with Go 1.20 or later");
	if ((rc = pprof_builder_open(p->arena, &p->b, err)))
		return rc;
	if (!(p->functions = arena_array(p->arena, uint32_t, (size_t)in->functions_n + 1)))
		return arena_fail(p->arena, "answer", err);
	pprof_builder_type(p->b, in->strings[in->types[0].type], in->strings[in->types[0].unit]);
	pgo_copy_header(p);
	for (uint32_t i = 0; i < in->samples_n; i++)
		if ((rc = pgo_add_sample(p, i, err)))
			return rc;
	for (uint32_t i = 0; i < p->stacks_n; i++) {
		const struct pgo_stack *s = &p->stacks[i];

		pprof_builder_sample(p->b, s->locations, s->n, NULL, 0, &s->value);
	}
	return pprof_builder_finish(p->b, out, err);
}

enum err_code render_pgo(
	const struct result *r, const struct render_options *o, struct pprof **out, struct err *err)
{
	const struct notices notices = notices_of(r);
	struct pgo x = { .arena = o->arena,
		.locations_max = o->pgo_locations ? o->pgo_locations : RENDER_PGO_LOCATIONS,
		.leaf_lines = o->pgo_leaf_lines };
	const struct profile_value **v;
	struct pprof *in;
	enum err_code rc;
	size_t n;

	if ((rc = render_profiles_of(r, o->arena, "pgo", &v, &n, err)) ||
		(rc = pgo_check_type(v, n, err)) || (rc = render_pprof(r, o, &in, err)))
		return rc;
	assert(in->types_n == 1); /* values are one per sample */
	x.in = in;
	map_init(&x.location_map);
	map_init(&x.stack_map);
	if (!(rc = pgo_build(&x, out, err)))
		rc = notices_add_comments(&notices, o->arena, *out, err);
	map_release(&x.location_map);
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
