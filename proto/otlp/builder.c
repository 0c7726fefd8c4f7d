/* The pprof profile at hand: merges samples, and is finished. */
#include <assert.h>
#include <inttypes.h>

#include "proto/otlp/builder.h"

#define SLOTS_FIRST 256u
#define TAKE_PROFILES 8u /* that there is room for at once */
#define TAKE_MAX 1024u /* items of a profile; larger arrays grow by themselves */

enum err_code otlp_builder_open(struct otlp_decoder *d)
{
	const struct otlp_dictionary *t = &d->d;
	struct otlp_builder *b = arena_new(d->a, struct otlp_builder);

	if (!b)
		return otlp_no_memory(d);
	b->strings = arena_array(d->a, struct number, t->strings_n);
	b->functions = arena_array(d->a, struct number, t->functions_n);
	b->mappings = arena_array(d->a, struct number, t->mappings_n);
	b->locations = arena_array(d->a, struct number, t->locations_n);
	b->labels = arena_array(d->a, struct label_number, t->attributes_n);
	b->slots = arena_array(d->a, uint32_t, SLOTS_FIRST);
	b->slots_n = SLOTS_FIRST;
	if (!b->strings || !b->functions || !b->mappings || !b->locations || !b->labels || !b->slots)
		return otlp_no_memory(d);
	d->seed = hash_seed();
	d->b = b;
	return ERR_OK;
}

/*
 * A profile with many samples must not make all that follow it slow, so few samples are cleared
 * one by one: from where each belongs up to the next free slot.
 */
static void otlp_builder_clear_slots(struct otlp_builder *b)
{
	uint32_t mask = b->slots_n - 1, n = b->p.samples_n, at;

	if (n > b->slots_n / 16)
		memset(b->slots, 0, b->slots_n * sizeof(*b->slots));
	else
		for (uint32_t i = 0; i < n; i++)
			for (at = (uint32_t)b->rows[i].hash & mask; b->slots[at]; at = (at + 1) & mask)
				b->slots[at] = 0;
}

void otlp_builder_begin(struct otlp_decoder *d)
{
	struct otlp_builder *b = d->b;
	struct pprof *p = &b->p;

	b->epoch++;
	otlp_builder_clear_slots(b);
	p->strings_n = p->functions_n = p->mappings_n = p->locations_n = p->lines_n = 0;
	p->samples_n = p->location_ids_n = p->labels_n = p->stacks_cut = 0;
}

/* ------------------------------------------------------------------------------------------------
 * Samples. */

static enum err_code otlp_add_label(struct otlp_decoder *d, uint32_t index)
{
	const struct otlp_attribute *a = &d->d.attributes[index].a;
	struct otlp_builder *b = d->b;
	struct label_number *n = &b->labels[index];
	struct pprof *p = &b->p;
	bool is_number = a->kind == OTLP_INT;
	enum err_code rc;

	if (n->epoch != b->epoch) {
		if ((rc = otlp_use_string(d, d->d.attributes[index].key, "keyStrindex", &n->key)) ||
			(rc = otlp_add_string(d, is_number ? a->unit : STR(""), &n->unit)) ||
				(rc = otlp_add_string(d, is_number ? STR("") : a->text, &n->str)))
			return rc;
		n->epoch = b->epoch;
	}
	b->attributes[p->labels_n] = index;
	p->labels[p->labels_n++] = (struct pprof_label){
		.key = n->key, .str = n->str, .num_unit = n->unit, .num = is_number ? a->number : 0
	};
	return ERR_OK;
}

static __attribute__((noinline)) enum err_code otlp_add_frames(
	struct otlp_decoder *d, uint32_t stack)
{
	struct otlp_builder *b = d->b;
	struct pprof *p = &b->p;
	const struct number *numbers = b->locations;
	uint32_t n = d->d.locations_n, epoch = b->epoch, *to;
	struct otlp_range s = { 0 };
	const uint32_t *from;
	enum err_code rc;

	if (stack >= d->d.stacks_n && stack)
		return otlp_reject(
			d, ERR_INVALID, "no stack %" PRIu32 ", stackTable has %" PRIu32, stack, d->d.stacks_n);
	if (stack < d->d.stacks_n)
		s = d->d.stacks[stack];
	if (s.n > d->limits->stack_depth_max) {
		s.n = d->limits->stack_depth_max;
		p->stacks_cut++;
	}
	if (!s.n)
		return ERR_OK;
	if ((rc = otlp_count_frames(d, s.n)))
		return rc;
	if (!arena_array_room(d->a, &p->location_ids, p->location_ids_n, s.n, &b->location_ids_cap) ||
		!arena_array_room(d->a, &p->locations, p->locations_n, s.n, &b->locations_cap))
		return otlp_no_memory(d);
	from = d->d.indices + s.first;
	to = p->location_ids + p->location_ids_n;
	for (uint32_t i = 0; i < s.n; i++) {
		uint32_t index = from[i];

		if (index < n && numbers[index].epoch == epoch)
			to[i] = numbers[index].id;
		else if ((rc = otlp_use_location(d, index, &to[i])))
			return rc;
	}
	p->location_ids_n += s.n;
	return ERR_OK;
}

static enum err_code otlp_add_row(
	struct otlp_decoder *d, struct otlp_row row, const uint32_t *attributes, uint32_t n)
{
	struct otlp_builder *b = d->b;
	struct pprof *p = &b->p;
	struct pprof_sample s = { p->location_ids_n, 0, p->labels_n, n };
	enum err_code rc;

	if (!arena_array_room(d->a, &p->samples, p->samples_n, 1, &b->samples_cap) ||
		!arena_array_room(d->a, &b->rows, p->samples_n, 1, &b->rows_cap) ||
		!arena_array_room(d->a, &p->labels, p->labels_n, n, &b->labels_cap) ||
		!arena_array_room(d->a, &b->attributes, p->labels_n, n, &b->attributes_cap))
		return otlp_no_memory(d);
	if ((rc = otlp_add_frames(d, row.stack)))
		return rc;
	for (uint32_t i = 0; i < n; i++)
		if ((rc = otlp_add_label(d, attributes[i])))
			return rc;
	s.location_n = p->location_ids_n - s.location_first;
	p->samples[p->samples_n] = s;
	b->rows[p->samples_n++] = row;
	return ERR_OK;
}

static bool otlp_widen_slots(struct otlp_decoder *d)
{
	struct otlp_builder *b = d->b;
	uint32_t n = b->slots_n * 4, at;
	uint32_t *slots = arena_array(d->a, uint32_t, n);

	if (!slots)
		return false;
	for (uint32_t i = 0; i < b->p.samples_n; i++) {
		for (at = (uint32_t)b->rows[i].hash & (n - 1); slots[at]; at = (at + 1) & (n - 1))
			;
		slots[at] = i + 1;
	}
	b->slots = slots;
	b->slots_n = n;
	return true;
}

static uint64_t otlp_hash_row(const struct otlp_decoder *d, const struct otlp_row *row,
	const uint32_t *attributes, uint32_t n)
{
	uint64_t hash = map_hash_u64(d->seed ^ ((uint64_t)row->stack << 32 | row->link));

	for (uint32_t i = 0; i < n; i++)
		hash = map_hash_u64((hash + d->seed) ^ attributes[i]);
	return hash;
}

static bool otlp_builder_is_same_sample(const struct otlp_builder *b, uint32_t i,
	const struct otlp_row *row, const uint32_t *attributes, uint32_t n)
{
	const struct otlp_row *r = &b->rows[i];
	const struct pprof_sample *s = &b->p.samples[i];

	return r->hash == row->hash && r->stack == row->stack && r->link == row->link &&
		s->label_n == n &&
		(!n || !memcmp(&b->attributes[s->label_first], attributes, n * sizeof(*attributes)));
}

enum err_code otlp_builder_sample(struct otlp_decoder *d, uint32_t stack, uint32_t link,
	const uint32_t *attributes, uint32_t n, int64_t value)
{
	struct otlp_row row = { .stack = stack, .link = link, .value = value };
	struct otlp_builder *b = d->b;
	uint32_t mask = b->slots_n - 1, at;
	enum err_code rc;

	row.hash = otlp_hash_row(d, &row, attributes, n);
	for (at = (uint32_t)row.hash & mask; b->slots[at]; at = (at + 1) & mask) {
		if (!otlp_builder_is_same_sample(b, b->slots[at] - 1, &row, attributes, n))
			continue;
		if (__builtin_add_overflow(
				b->rows[b->slots[at] - 1].value, value, &b->rows[b->slots[at] - 1].value))
			return otlp_reject(d, ERR_INVALID, "the sum of equal samples exceeds 64 bits");
		return ERR_OK;
	}
	if (link && link >= d->request->links_n)
		return otlp_reject(d, ERR_INVALID, "no link %" PRIu32 ", linkTable has %" PRIu32, link,
			d->request->links_n);
	if ((rc = otlp_add_row(d, row, attributes, n)))
		return rc;
	b->slots[at] = b->p.samples_n;
	return b->p.samples_n > b->slots_n / 2 && !otlp_widen_slots(d) ? otlp_no_memory(d) : ERR_OK;
}

/* ------------------------------------------------------------------------------------------------
 * The end of a profile. */

static enum err_code otlp_set_types(
	struct otlp_decoder *d, const struct otlp_types *types, struct pprof *p, bool *is_cpu)
{
	static const char *const names[] = { "samples", "count", "cpu", "nanoseconds" };
	const uint32_t indexes[] = { types->type, types->unit, types->period_type, types->period_unit };
	struct otlp_builder *b = d->b;
	uint32_t own[4];
	enum err_code rc;

	*is_cpu = types->period > 0;
	for (int i = 0; i < 4; i++) {
		if ((rc = otlp_use_string(d, indexes[i], i < 2 ? "sampleType" : "periodType", &own[i])) ||
			(!b->p.strings_n && (rc = otlp_add_string(d, STR(""), &own[i]))))
			return rc;
		*is_cpu = *is_cpu && str_is(b->p.strings[own[i]], names[i]);
	}
	if (!own[0])
		return otlp_reject(d, ERR_INVALID, "sampleType is missing");
	p->types_n = *is_cpu ? 2 : 1;
	if (!(p->types = arena_alloc_raw(d->a, p->types_n, sizeof(*p->types))))
		return otlp_no_memory(d);
	p->types[0] = (struct pprof_type){ own[0], own[1] };
	p->period_type = (struct pprof_type){ own[2], own[3] };
	if (*is_cpu)
		p->types[1] = p->period_type;
	return ERR_OK;
}

static enum err_code otlp_set_values(struct otlp_decoder *d, struct pprof *p, bool is_cpu)
{
	const struct otlp_row *rows = d->b->rows;

	for (uint32_t i = 0; i < p->samples_n; i++) {
		int64_t *v = p->values + (size_t)i * p->types_n;

		v[0] = rows[i].value;
		if (is_cpu && __builtin_mul_overflow(v[0], p->period, &v[1]))
			return otlp_reject(d, ERR_INVALID,
				"count x period of a sample exceeds 64 bits: %" PRId64 " x %" PRId64, v[0],
				p->period);
	}
	return ERR_OK;
}

/* False: no memory. */
static bool otlp_set_links(const struct otlp_decoder *d, struct pprof *p)
{
	const struct otlp_row *rows = d->b->rows;
	uint32_t *of, any = 0;

	for (uint32_t i = 0; i < p->samples_n; i++)
		any |= rows[i].link;
	if (!any)
		return true;
	if (!(of = arena_alloc_raw(d->a, p->samples_n, sizeof(*of))))
		return false;
	for (uint32_t i = 0; i < p->samples_n; i++)
		of[i] = rows[i].link;
	p->links = d->request->links;
	p->links_n = d->request->links_n;
	p->sample_links = of;
	return true;
}

/* A mapping has functions if all its locations have a name. */
static void otlp_set_has(struct pprof *p)
{
	for (uint32_t i = 0; i < p->locations_n; i++) {
		const struct pprof_location *l = &p->locations[i];
		struct pprof_mapping *m;

		if (l->mapping == PPROF_NONE)
			continue;
		m = &p->mappings[l->mapping];
		m->has_functions &= l->line_n > 0;
		m->has_inline_frames |= l->line_n > 1;
		for (uint32_t k = 0; k < l->line_n; k++) {
			const struct pprof_line *line = &p->lines[l->line_first + k];
			const struct pprof_function *f = &p->functions[line->function];

			m->has_functions &= (f->name | f->system_name) != 0;
			m->has_filenames |= f->filename != 0;
			m->has_line_numbers |= line->line != 0;
		}
	}
}

/*
 * The profile keeps the items of an array, and the next one gets the room behind them. Where that
 * is likely too little there is room for some more profiles, so that few arrays grow.
 */
static bool otlp_take(struct arena *a, void *array, uint32_t n, uint32_t *cap, size_t size)
{
	char *v;

	memcpy(&v, array, sizeof(v));
	if (!v)
		return true;
	v += n * size;
	*cap -= n;
	if (*cap < n && n <= TAKE_MAX) {
		*cap = n * TAKE_PROFILES;
		if (!(v = arena_alloc_raw(a, *cap, size)))
			return false;
	}
	memcpy(array, &v, sizeof(v));
	return true;
}

#define TAKE(a, items, n, cap) otlp_take((a), &(items), (n), &(cap), sizeof(*(items)))

static bool otlp_take_all(struct arena *a, struct otlp_builder *b)
{
	struct pprof *p = &b->p;

	return TAKE(a, p->strings, p->strings_n, b->strings_cap) &&
		TAKE(a, p->functions, p->functions_n, b->functions_cap) &&
		TAKE(a, p->mappings, p->mappings_n, b->mappings_cap) &&
		TAKE(a, p->locations, p->locations_n, b->locations_cap) &&
		TAKE(a, p->lines, p->lines_n, b->lines_cap) &&
		TAKE(a, p->samples, p->samples_n, b->samples_cap) &&
		TAKE(a, p->location_ids, p->location_ids_n, b->location_ids_cap) &&
		TAKE(a, p->labels, p->labels_n, b->labels_cap);
}

enum err_code otlp_builder_finish(
	struct otlp_decoder *d, const struct otlp_types *types, struct otlp_profile *out)
{
	struct pprof *p = arena_new(d->a, struct pprof);
	bool is_cpu;
	enum err_code rc;

	if (!p)
		return otlp_no_memory(d);
	if (types->time > INT64_MAX || types->duration > INT64_MAX)
		return otlp_reject(d, ERR_INVALID, "%s exceeds 63 bits",
			types->time > INT64_MAX ? "timeUnixNano" : "durationNano");
	if ((rc = otlp_set_types(d, types, p, &is_cpu)))
		return rc;
	d->b->p.types = p->types;
	d->b->p.types_n = p->types_n;
	d->b->p.period_type = p->period_type;
	otlp_set_has(&d->b->p);
	*p = d->b->p;
	p->time_nanos = (int64_t)types->time;
	p->duration_nanos = (int64_t)types->duration;
	p->period = types->period;
	p->values = arena_alloc_raw(d->a, p->samples_n, p->types_n * sizeof(*p->values));
	if (!p->values)
		return otlp_no_memory(d);
	if ((rc = otlp_set_values(d, p, is_cpu)))
		return rc;
	if (!otlp_set_links(d, p) || !otlp_take_all(d->a, d->b))
		return otlp_no_memory(d);
	assert(p->strings_n && !p->strings[0].len);
	out->pprof = p;
	return ERR_OK;
}
