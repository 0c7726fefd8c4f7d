#include <assert.h>

#include "proto/pprof.h"

/* Numbers of one profile in the whole. */
struct renumbering {
	struct pprof_builder *b;
	const struct pprof *from;
	uint32_t *strings, *mappings, *functions, *locations;
	uint32_t *columns; /* of its types */
};

uint32_t pprof_same_type(const struct pprof *p, const struct pprof *of, uint32_t third)
{
	for (uint32_t i = 0; i < p->types_n; i++)
		if (str_eq(p->strings[p->types[i].type], of->strings[of->types[third].type]) &&
			str_eq(p->strings[p->types[i].unit], of->strings[of->types[third].unit]))
			return i;
	return PPROF_NONE;
}

static void pprof_concat_add_tables(const struct renumbering *r)
{
	const struct pprof *p = r->from;

	for (uint32_t i = 0; i < p->strings_n; i++)
		r->strings[i] = pprof_builder_string(r->b, p->strings[i]);
	for (uint32_t i = 0; i < p->mappings_n; i++) {
		struct pprof_mapping m = p->mappings[i];

		m.filename = r->strings[m.filename];
		m.build_id = r->strings[m.build_id];
		r->mappings[i] = pprof_builder_mapping(r->b, &m);
	}
	for (uint32_t i = 0; i < p->functions_n; i++) {
		struct pprof_function f = p->functions[i];

		f.name = r->strings[f.name];
		f.system_name = r->strings[f.system_name];
		f.filename = r->strings[f.filename];
		r->functions[i] = pprof_builder_function(r->b, &f);
	}
}

/* False: no memory. */
static bool pprof_concat_add_locations(const struct renumbering *r, struct arena *a)
{
	const struct pprof *p = r->from;

	for (uint32_t i = 0; i < p->locations_n; i++) {
		struct pprof_location l = p->locations[i];
		struct pprof_line *lines = arena_array(a, struct pprof_line, l.line_n + 1);

		if (!lines)
			return false;
		for (uint32_t k = 0; k < l.line_n; k++) {
			lines[k] = p->lines[l.line_first + k];
			lines[k].function = r->functions[lines[k].function];
		}
		if (l.mapping != PPROF_NONE)
			l.mapping = r->mappings[l.mapping];
		r->locations[i] = pprof_builder_location(r->b, l, lines, l.line_n);
	}
	return true;
}

static bool pprof_concat_add_samples(const struct renumbering *r, struct arena *a)
{
	const struct pprof *p = r->from;
	uint32_t *stack = arena_array(a, uint32_t, p->location_ids_n + 1);
	struct pprof_label *labels = arena_array(a, struct pprof_label, p->labels_n + 1);
	int64_t *values = arena_array(a, int64_t, pprof_builder_profile(r->b)->types_n);

	if (!stack || !labels || !values)
		return false;
	for (uint32_t i = 0; i < p->location_ids_n; i++)
		stack[i] = r->locations[p->location_ids[i]];
	for (uint32_t i = 0; i < p->labels_n; i++) {
		labels[i] = p->labels[i];
		labels[i].key = r->strings[labels[i].key];
		labels[i].str = r->strings[labels[i].str];
		labels[i].num_unit = r->strings[labels[i].num_unit];
	}
	pprof_builder_profile(r->b)->stacks_cut += p->stacks_cut;
	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *s = &p->samples[i];

		for (uint32_t c = 0; c < p->types_n; c++)
			values[r->columns[c]] = p->values[(size_t)i * p->types_n + c];
		pprof_builder_sample(r->b, stack + s->location_first, s->location_n,
			labels + s->label_first, s->label_n, values);
	}
	return true;
}

/* False: no memory. */
static bool pprof_add_links(
	struct pprof *all, const struct pprof *const *p, size_t n, struct arena *a)
{
	uint32_t samples = 0, *of = NULL;

	for (size_t i = 0; i < n; samples += p[i++]->samples_n) {
		if (!p[i]->sample_links)
			continue;
		assert(!all->links || all->links == p[i]->links); /* one request's */
		all->links = p[i]->links;
		all->links_n = p[i]->links_n;
		if (!of && !(of = arena_array(a, uint32_t, all->samples_n + 1)))
			return false;
		memcpy(of + samples, p[i]->sample_links, p[i]->samples_n * sizeof(*of));
	}
	all->sample_links = of;
	return true;
}

static bool pprof_concat_add(struct pprof_builder *b, const struct pprof *p, struct arena *a)
{
	struct renumbering r = { b, p, arena_array(a, uint32_t, p->strings_n + 1),
		arena_array(a, uint32_t, p->mappings_n + 1), arena_array(a, uint32_t, p->functions_n + 1),
		arena_array(a, uint32_t, p->locations_n + 1), arena_array(a, uint32_t, p->types_n + 1) };

	if (!r.strings || !r.mappings || !r.functions || !r.locations || !r.columns)
		return false;
	for (uint32_t c = 0; c < p->types_n; c++)
		r.columns[c] = pprof_same_type(pprof_builder_profile(b), p, c);
	pprof_concat_add_tables(&r);
	return pprof_concat_add_locations(&r, a) && pprof_concat_add_samples(&r, a);
}

/* False: no memory. */
static bool pprof_concat_add_types(struct pprof_builder *b, const struct pprof *const *p, size_t n)
{
	struct pprof *all = pprof_builder_profile(b);

	for (size_t i = 0; i < n; i++)
		for (uint32_t c = 0; c < p[i]->types_n; c++)
			if (pprof_same_type(all, p[i], c) == PPROF_NONE) {
				pprof_builder_type(
					b, p[i]->strings[p[i]->types[c].type], p[i]->strings[p[i]->types[c].unit]);
				if (pprof_same_type(all, p[i], c) == PPROF_NONE)
					return false;
			}
	return true;
}

static void pprof_concat_set_head(struct pprof_builder *b, const struct pprof *first)
{
	struct pprof *all = pprof_builder_profile(b);

	all->period_type = (struct pprof_type){ pprof_builder_string(
												b, first->strings[first->period_type.type]),
		pprof_builder_string(b, first->strings[first->period_type.unit]) };
	all->period = first->period;
	all->default_sample_type = pprof_builder_string(b, first->strings[first->default_sample_type]);
	all->drop_frames = pprof_builder_string(b, first->strings[first->drop_frames]);
	all->keep_frames = pprof_builder_string(b, first->strings[first->keep_frames]);
	all->doc_url = pprof_builder_string(b, first->strings[first->doc_url]);
}

enum err_code pprof_concat(
	struct arena *a, const struct pprof *const *p, size_t n, struct pprof **out, struct err *err)
{
	struct pprof_builder *b;
	enum err_code rc;

	assert(n);
	if ((rc = pprof_builder_open(a, &b, err)))
		return rc;
	pprof_concat_set_head(b, p[0]);
	if (!pprof_concat_add_types(b, p, n))
		return arena_fail(a, "profiles", err);
	for (size_t i = 0; i < n; i++) {
		struct pprof *all = pprof_builder_profile(b);

		if (!pprof_concat_add(b, p[i], a))
			return arena_fail(a, "profiles", err);
		if (p[i]->time_nanos && (!all->time_nanos || p[i]->time_nanos < all->time_nanos))
			all->time_nanos = p[i]->time_nanos;
		if (p[i]->duration_nanos > all->duration_nanos)
			all->duration_nanos = p[i]->duration_nanos;
	}
	if ((rc = pprof_builder_finish(b, out, err)))
		return rc;
	return pprof_add_links(*out, p, n, a) ? ERR_OK : arena_fail(a, "profiles", err);
}
