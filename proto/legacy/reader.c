/* Samples: addresses to locations, each once; errors and limits. */
#include <inttypes.h>

#include "base/array.h"
#include "proto/legacy/reader.h"

enum err_code reader_bad_line(struct legacy_reader *r, const char *what)
{
	return err_set(r->err, ERR_INVALID, "%s: line %" PRIu64 ": %s", r->name, r->line_n, what);
}

enum err_code reader_limit(struct legacy_reader *r, const char *what, uint32_t max)
{
	return err_set(
		r->err, ERR_LIMIT, "%s: more than %" PRIu32 " %s, the limit", r->name, max, what);
}

void sample_begin(struct legacy_reader *r)
{
	r->stack_n = 0;
	r->stack_is_cut = false;
}

static bool legacy_address_eq(const void *profile, const void *key, uint32_t id)
{
	const struct pprof *p = profile;
	const uint64_t *address = key;

	return p->locations[id].address == *address;
}

static enum err_code legacy_reader_location(
	struct legacy_reader *r, uint64_t address, uint32_t *out)
{
	struct pprof_location l = { .address = address, .mapping = PPROF_NONE };
	uint64_t hash = map_hash_u64(address ^ r->seed);
	uint32_t id = map_find(&r->by_address, hash, legacy_address_eq, r->p, &address), before;

	if (id == MAP_NONE) {
		before = r->p->locations_n;
		if (before >= r->limits->elements_max)
			return reader_limit(r, "locations", r->limits->elements_max);
		id = pprof_builder_location(r->b, l, NULL, 0);
		if (r->p->locations_n == before)
			return arena_fail(r->a, "profile", r->err);
		if (!map_add(&r->by_address, hash, id))
			return err_nomem(r->err, "profile");
	}
	*out = id;
	return ERR_OK;
}

enum err_code sample_address(struct legacy_reader *r, uint64_t address, unsigned back)
{
	if (r->stack_n >= r->limits->stack_depth_max) {
		r->stack_is_cut = true;
		return ERR_OK;
	}
	if (!arena_array_room(r->a, &r->stack, r->stack_n, 1, &r->stack_cap))
		return arena_fail(r->a, "profile", r->err);
	return legacy_reader_location(r, address - back, &r->stack[r->stack_n++]);
}

static bool legacy_is_lower_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

enum err_code sample_addresses(
	struct legacy_reader *r, struct str text, unsigned back_first, unsigned back)
{
	bool first = true;
	enum err_code rc;

	for (size_t i = 0; i + 2 < text.len;) {
		size_t n = 0;
		uint64_t address;

		if (text.ptr[i] != '0' || text.ptr[i + 1] != 'x' || !legacy_is_lower_hex(text.ptr[i + 2])) {
			i++;
			continue;
		}
		while (i + 2 + n < text.len && legacy_is_lower_hex(text.ptr[i + 2 + n]))
			n++;
		if (!number_hex((struct str){ text.ptr + i + 2, n }, &address))
			return reader_bad_line(r, "an address has more than 64 bits");
		if ((rc = sample_address(r, address, first ? back_first : back)))
			return rc;
		first = false;
		i += 2 + n;
	}
	return ERR_OK;
}

enum err_code sample_end(struct legacy_reader *r, const int64_t *values, int64_t bytes)
{
	struct pprof_label label = { .num = bytes };

	if (r->p->samples_n >= r->limits->samples_max)
		return reader_limit(r, "samples", r->limits->samples_max);
	if ((uint64_t)r->p->location_ids_n + r->stack_n > (uint64_t)r->limits->elements_max * 16)
		return err_set(r->err, ERR_LIMIT, "%s: more than %" PRIu64 " frames in all, the limit",
			r->name, (uint64_t)r->limits->elements_max * 16);
	if (bytes)
		label.key = pprof_builder_string(r->b, STR("bytes"));
	r->p->stacks_cut += r->stack_is_cut;
	pprof_builder_sample(r->b, r->stack, r->stack_n, &label, bytes != 0, values);
	return ERR_OK;
}

/*
 * A handler may take the leaf both from the signal's context and from the unwinder; the latter's
 * was moved back by one, as a caller's.
 */
void reader_drop_repeated_leaves(struct legacy_reader *r)
{
	struct pprof *p = r->p;
	uint32_t to = 0;

	for (uint32_t i = 0; i < p->samples_n; i++) {
		struct pprof_sample *s = &p->samples[i];
		uint32_t n = s->location_n, first = to;
		const uint32_t *from = n ? &p->location_ids[s->location_first] : NULL;
		bool repeated = n > 1 && p->locations[from[0]].address == p->locations[from[1]].address + 1;

		for (uint32_t k = 0; k < n; k++)
			if (k != 1 || !repeated)
				p->location_ids[to++] = from[k];
		s->location_first = first;
		s->location_n = to - first;
	}
	p->location_ids_n = to;
}
