#include <stdlib.h>

#include "tsdb/head/keys.h"
#include "tsdb/read/querier.h"
#include "tsdb/symbols/partition.h"

/* Turns a row back into a profile. Each id is looked up once: one array per kind has the
 * results. */
struct read_profile_rebuild {
	const struct partition *p;
	const struct sym_header *h;
	struct pprof_builder *b;
	struct arena *a;
	uint32_t *mappings, *functions, *locations; /* by id: index + 1; 0: not yet */
	uint32_t mappings_n, functions_n, locations_n;
	uint32_t *stack;
	struct pprof_line *lines;
	struct pprof_label *labels;
	size_t stack_cap, lines_cap, labels_cap;
};

static uint32_t read_profile_rebuild_text(struct read_profile_rebuild *r, uint32_t id)
{
	return pprof_builder_string(r->b, sym_string(r->p, id));
}

static bool read_profile_room(struct arena *a, void *array, size_t *cap, size_t n, size_t size)
{
	void **at = array, *wide;

	if (n <= *cap)
		return true;
	if (!(wide = arena_alloc_raw(a, n * 2, size)))
		return false;
	*at = wide;
	*cap = n * 2;
	return true;
}

static void read_profile_rebuild_add_header(struct read_profile_rebuild *r)
{
	const struct sym_header *h = r->h;
	struct pprof *f = pprof_builder_profile(r->b);

	for (uint32_t i = 0; i < h->types_n; i++)
		pprof_builder_type(
			r->b, sym_string(r->p, h->types[i].type), sym_string(r->p, h->types[i].unit));
	for (uint32_t i = 0; i < h->mappings_n; i++) {
		const struct sym_mapping *m = sym_mapping(r->p, h->mappings[i]);
		const struct pprof_mapping to = { .start = h->mapping_start[i],
			.limit = h->mapping_start[i] + m->size,
			.offset = m->offset,
			.filename = read_profile_rebuild_text(r, m->filename),
			.build_id = read_profile_rebuild_text(r, m->build_id),
			.has_functions = m->has_functions,
			.has_filenames = m->has_filenames,
			.has_line_numbers = m->has_line_numbers,
			.has_inline_frames = m->has_inline_frames };

		pprof_builder_mapping(r->b, &to);
		if (h->mappings[i] < r->mappings_n)
			r->mappings[h->mappings[i]] = i + 1;
	}
	for (uint32_t i = 0; i < h->comments_n; i++)
		pprof_builder_comment(r->b, sym_string(r->p, h->comments[i]));
	f->drop_frames = read_profile_rebuild_text(r, h->drop_frames);
	f->keep_frames = read_profile_rebuild_text(r, h->keep_frames);
	f->default_sample_type = read_profile_rebuild_text(r, h->default_sample_type);
	f->doc_url = read_profile_rebuild_text(r, h->doc_url);
	f->period_type.type = read_profile_rebuild_text(r, h->period_type);
	f->period_type.unit = read_profile_rebuild_text(r, h->period_unit);
}

static uint32_t function_index(struct read_profile_rebuild *r, uint32_t id)
{
	const struct sym_function *f = sym_function(r->p, id);

	if (!r->functions[id]) {
		const struct pprof_function to = { read_profile_rebuild_text(r, f->name),
			read_profile_rebuild_text(r, f->system_name), read_profile_rebuild_text(r, f->filename),
			f->start_line };

		r->functions[id] = pprof_builder_function(r->b, &to) + 1;
	}
	return r->functions[id] - 1;
}

static bool read_profile_rebuild_location_index(
	struct read_profile_rebuild *r, uint32_t id, uint32_t *out)
{
	const struct sym_location l = sym_location(r->p, id);
	struct pprof_location to = {
		.address = l.address, .mapping = PPROF_NONE, .is_folded = l.is_folded
	};

	if (!r->locations[id]) {
		if (l.mapping != SYM_NONE && l.mapping < r->mappings_n && r->mappings[l.mapping]) {
			to.mapping = r->mappings[l.mapping] - 1;
			to.address += r->h->mapping_start[to.mapping];
		}
		if (l.mapping != SYM_NONE && l.address == SYM_NO_ADDRESS)
			to.address = 0;
		if (!read_profile_room(r->a, &r->lines, &r->lines_cap, l.lines_n, sizeof(*r->lines)))
			return false;
		for (uint32_t i = 0; i < l.lines_n; i++)
			r->lines[i] = (struct pprof_line){ function_index(r, l.lines[i].function),
				l.lines[i].line, l.lines[i].column };
		r->locations[id] = pprof_builder_location(r->b, to, r->lines, l.lines_n) + 1;
	}
	*out = r->locations[id] - 1;
	return true;
}

static bool read_profile_rebuild_add_sample(
	struct read_profile_rebuild *r, uint32_t node, uint32_t set, const int64_t *values)
{
	struct sym_label_set labels = sym_label_set(r->p, set);
	size_t depth = 0;
	struct sym_node n;

	for (; node; node = n.parent) {
		n = sym_node(r->p, node);
		if (depth == r->stack_cap) {
			uint32_t *wide = arena_alloc_raw(r->a, r->stack_cap * 2, sizeof(*wide));

			if (!wide)
				return false;
			memcpy(wide, r->stack, depth * sizeof(*wide));
			r->stack = wide;
			r->stack_cap *= 2;
		}
		if (!read_profile_rebuild_location_index(r, n.location, &r->stack[depth++]))
			return false;
	}
	if (!read_profile_room(r->a, &r->labels, &r->labels_cap, labels.n, sizeof(*r->labels)))
		return false;
	for (uint32_t i = 0; i < labels.n; i++)
		r->labels[i] = (struct pprof_label){ read_profile_rebuild_text(r, labels.v[i].key),
			read_profile_rebuild_text(r, labels.v[i].str),
			read_profile_rebuild_text(r, labels.v[i].num_unit), labels.v[i].num };
	pprof_builder_sample(r->b, r->stack, (uint32_t)depth, r->labels, labels.n, values);
	return true;
}

static bool read_profile_rebuild_add_samples(
	struct read_profile_rebuild *r, const struct db_row *row)
{
	int64_t values[SYM_TYPES_MAX];

	for (size_t i = 0; i < row->n; i++) {
		for (uint32_t c = 0; c < r->h->types_n; c++)
			values[c] = row->values[c * row->n + i];
		if (!read_profile_rebuild_add_sample(r, row->stacks[i], row->label_sets[i], values))
			return false;
	}
	return true;
}

enum err_code db_row_profile(const struct db_series *s, const struct db_row *row, struct arena *a,
	struct pprof **out, struct err *err)
{
	struct read_profile_rebuild r = { .p = s->partition,
		.a = a,
		.h = sym_header(s->partition, row->header),
		.mappings_n = segvec_n(&s->partition->vec[SYM_MAPPING]),
		.functions_n = sym_functions_n(s->partition),
		.locations_n = sym_locations_n(s->partition),
		.stack_cap = 64 };
	struct pprof *f;
	enum err_code rc;

	if ((rc = pprof_builder_open(a, &r.b, err)))
		return rc;
	r.mappings = calloc((size_t)r.mappings_n + 1, sizeof(*r.mappings));
	r.functions = calloc((size_t)r.functions_n + 1, sizeof(*r.functions));
	r.locations = calloc((size_t)r.locations_n + 1, sizeof(*r.locations));
	r.stack = arena_alloc_raw(a, r.stack_cap, sizeof(*r.stack));
	if (!r.mappings || !r.functions || !r.locations || !r.stack) {
		rc = err_nomem(err, "profile");
		goto out;
	}
	read_profile_rebuild_add_header(&r);
	f = pprof_builder_profile(r.b);
	f->time_nanos = row->time_nanos;
	f->duration_nanos = row->duration_nanos;
	f->period = row->period;
	rc = read_profile_rebuild_add_samples(&r, row) ? pprof_builder_finish(r.b, out, err) :
													 arena_fail(a, "profile", err);
out:
	free(r.mappings);
	free(r.functions);
	free(r.locations);
	return rc;
}
