#include "tsdb/symbols/intern.h"

#include <inttypes.h>

/* Turns a profile into ids. Only content that samples use is added, each looked up once: arrays of
 * ids lie beside the profile's indexes. */
uint32_t *intern_ids(struct arena *a, uint32_t n)
{
	uint32_t *v = arena_alloc_raw(a, n ? n : 1, sizeof(*v));

	if (v)
		memset(v, 0xff, n * sizeof(*v));
	return v;
}

enum err_code intern_string(struct intern *in, uint32_t at, uint32_t *id)
{
	if (in->strings[at] == SYM_NONE) {
		enum err_code rc = sym_intern_string(in->p, in->f->strings[at], &in->strings[at], in->err);

		if (rc) {
			in->strings[at] = SYM_NONE;
			return rc;
		}
	}
	*id = in->strings[at];
	return ERR_OK;
}

static enum err_code symbols_intern_function_id(struct intern *in, uint32_t at, uint32_t *id)
{
	const struct pprof_function *from = &in->f->functions[at];
	struct sym_function f = { .start_line = from->start_line };
	enum err_code rc;

	if (in->functions[at] == SYM_NONE) {
		if ((rc = intern_string(in, from->name, &f.name)) ||
			(rc = intern_string(in, from->system_name, &f.system_name)) ||
			(rc = intern_string(in, from->filename, &f.filename)) ||
			(rc = sym_intern_function(in->p, &f, id, in->err)))
			return rc;
		in->functions[at] = *id;
	}
	*id = in->functions[at];
	return ERR_OK;
}

enum err_code intern_location(struct intern *in, uint32_t at, uint32_t *id)
{
	const struct pprof_location *from = &in->f->locations[at];
	struct sym_location l = intern_location_key(in, from, NULL);
	enum err_code rc;

	if ((*id = known_location(in, at)) != SYM_NONE)
		return ERR_OK;
	if (from->line_n > in->lines_cap) {
		if (!(in->lines = arena_alloc_raw(in->arena, (size_t)from->line_n * 2, sizeof(*in->lines))))
			return intern_nomem(in);
		in->lines_cap = from->line_n * 2;
	}
	for (uint32_t i = 0; i < from->line_n; i++) {
		const struct pprof_line *line = &in->f->lines[from->line_first + i];

		if (line->column != (int32_t)line->column)
			return err_set(in->err, ERR_LIMIT, "a line's column is %" PRId64 ", limit %" PRId32,
				line->column, INT32_MAX);
		in->lines[i] = (struct sym_line){ .line = line->line, .column = (int32_t)line->column };
		if ((rc = symbols_intern_function_id(in, line->function, &in->lines[i].function)))
			return rc;
	}
	l.lines = in->lines;
	if ((rc = sym_intern_location(in->p, &l, id, in->err)))
		return rc;
	in->locations[at] = *id;
	return ERR_OK;
}

/* ---- mappings and the header ---- */

static bool symbols_intern_mapping_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct sym_mapping *a = (const struct sym_mapping *)ctx + id, *b = key;

	return a->size == b->size && a->offset == b->offset && a->filename == b->filename &&
		a->build_id == b->build_id && a->has_functions == b->has_functions &&
		a->has_filenames == b->has_filenames && a->has_line_numbers == b->has_line_numbers &&
		a->has_inline_frames == b->has_inline_frames;
}

/* A process may have equal mappings. They are numbered in the profile's order. */
static enum err_code symbols_intern_mapping_ids(struct intern *in)
{
	const struct pprof *f = in->f;
	struct sym_mapping *v = arena_array(in->arena, struct sym_mapping, f->mappings_n + 1);
	uint32_t *equal = arena_array(in->arena, uint32_t, f->mappings_n + 1), first;
	enum err_code rc = ERR_OK;
	struct map seen;
	uint64_t hash;

	if (!v || !equal)
		return intern_nomem(in);
	map_init(&seen);
	for (uint32_t i = 0; i < f->mappings_n && !rc; i++) {
		const struct pprof_mapping *m = &f->mappings[i];

		v[i] = (struct sym_mapping){ .size = m->limit - m->start,
			.offset = m->offset,
			.has_functions = m->has_functions,
			.has_filenames = m->has_filenames,
			.has_line_numbers = m->has_line_numbers,
			.has_inline_frames = m->has_inline_frames };
		if ((rc = intern_string(in, m->filename, &v[i].filename)) ||
			(rc = intern_string(in, m->build_id, &v[i].build_id)))
			break;
		hash = map_hash_u64(map_hash_u64(v[i].size ^ map_hash_u64(v[i].offset)) + v[i].filename) +
			v[i].build_id;
		hash = map_hash_u64(hash);
		first = map_find(&seen, hash, symbols_intern_mapping_eq, v, &v[i]);
		if (first != MAP_NONE)
			v[i].ordinal = ++equal[first];
		else if (!map_add(&seen, hash, i))
			rc = err_nomem(in->err, "storing a profile");
		if (!rc)
			rc = sym_intern_mapping(in->p, &v[i], &in->mappings[i], in->err);
	}
	map_release(&seen);
	return rc;
}

static enum err_code symbols_intern_header_arrays(
	struct intern *in, const enum value_kind *kinds, struct sym_header *h)
{
	const struct pprof *f = in->f;
	struct sym_type *types = arena_array(in->arena, struct sym_type, f->types_n);
	uint32_t *comments = arena_array(in->arena, uint32_t, f->comments_n + 1);
	uint64_t *start = arena_array(in->arena, uint64_t, f->mappings_n + 1);
	enum err_code rc;

	if (!types || !comments || !start)
		return intern_nomem(in);
	for (uint32_t i = 0; i < f->types_n; i++) {
		types[i].kind = kinds[i] == KIND_GAUGE ? KIND_GAUGE : KIND_DELTA;
		types[i].was_cumulative = kinds[i] == KIND_CUMULATIVE;
		if ((rc = intern_string(in, f->types[i].type, &types[i].type)) ||
			(rc = intern_string(in, f->types[i].unit, &types[i].unit)))
			return rc;
	}
	for (uint32_t i = 0; i < f->comments_n; i++)
		if ((rc = intern_string(in, f->comments[i], &comments[i])))
			return rc;
	for (uint32_t i = 0; i < f->mappings_n; i++)
		start[i] = f->mappings[i].start;
	h->types = types;
	h->types_n = f->types_n;
	h->comments = comments;
	h->comments_n = f->comments_n;
	h->mappings = in->mappings;
	h->mapping_start = start;
	h->mappings_n = f->mappings_n;
	return ERR_OK;
}

static enum err_code symbols_intern_header_id(
	struct intern *in, const enum value_kind *kinds, uint32_t *id)
{
	const struct pprof *f = in->f;
	struct sym_header h = { 0 };
	enum err_code rc;

	if ((rc = symbols_intern_header_arrays(in, kinds, &h)) ||
		(rc = intern_string(in, f->period_type.type, &h.period_type)) ||
		(rc = intern_string(in, f->period_type.unit, &h.period_unit)) ||
		(rc = intern_string(in, f->drop_frames, &h.drop_frames)) ||
		(rc = intern_string(in, f->keep_frames, &h.keep_frames)) ||
		(rc = intern_string(in, f->default_sample_type, &h.default_sample_type)) ||
		(rc = intern_string(in, f->doc_url, &h.doc_url)))
		return rc;
	return sym_intern_header(in->p, &h, id, in->err);
}

enum err_code sym_intern_profile(struct partition *p, const struct pprof *pprof,
	const enum value_kind *kinds, struct arena *a, struct interned *out, struct err *err)
{
	struct intern in = { .p = p, .f = pprof, .arena = a, .err = err };
	uint64_t *keys_tmp;
	uint32_t *samples_tmp;
	enum err_code rc;

	*out = (struct interned){ 0 };
	if (pprof->types_n == 0)
		return err_set(err, ERR_INVALID, "profile has no sample type");
	if (pprof->types_n > SYM_TYPES_MAX)
		return err_set(err, ERR_LIMIT, "profile has %" PRIu32 " sample types, limit %u",
			pprof->types_n, SYM_TYPES_MAX);
	in.strings = intern_ids(a, pprof->strings_n);
	in.mappings = intern_ids(a, pprof->mappings_n);
	in.functions = intern_ids(a, pprof->functions_n);
	in.locations = intern_ids(a, pprof->locations_n);
	out->keys = arena_alloc_raw(a, (size_t)pprof->samples_n + 1, sizeof(*out->keys));
	out->samples = arena_alloc_raw(a, (size_t)pprof->samples_n + 1, sizeof(*out->samples));
	keys_tmp = arena_alloc_raw(a, (size_t)pprof->samples_n + 1, sizeof(*keys_tmp));
	samples_tmp = arena_alloc_raw(a, (size_t)pprof->samples_n + 1, sizeof(*samples_tmp));
	if (!in.strings || !in.mappings || !in.functions || !in.locations || !out->keys ||
		!out->samples || !keys_tmp || !samples_tmp)
		return intern_nomem(&in);
	if ((rc = symbols_intern_mapping_ids(&in)) ||
		(rc = symbols_intern_header_id(&in, kinds, &out->header)) || (rc = known_find(&in)) ||
		(rc = intern_samples(&in, out)))
		return rc;
	keys_sort(out->keys, out->samples, out->n, keys_tmp, samples_tmp);
	return ERR_OK;
}

/*
 * By bytes from the lowest, passing over bytes that are the same in all keys: ids of one service
 * need three or four passes of the eight.
 */
void keys_sort(
	uint64_t *keys, uint32_t *values, uint32_t n, uint64_t *keys_tmp, uint32_t *values_tmp)
{
	uint64_t any = 0, *from = keys, *to = keys_tmp, *swap;
	uint32_t *values_from = values, *values_to = values_tmp, *values_swap, count[256], at;

	for (uint32_t i = 1; i < n; i++)
		any |= keys[i] ^ keys[0];
	for (unsigned shift = 0; shift < 64; shift += 8) {
		if (!(any >> shift & 255))
			continue;
		memset(count, 0, sizeof(count));
		for (uint32_t i = 0; i < n; i++)
			count[from[i] >> shift & 255]++;
		at = 0;
		for (size_t b = 0; b < 256; b++) {
			uint32_t c = count[b];

			count[b] = at;
			at += c;
		}
		for (uint32_t i = 0; i < n; i++) {
			at = count[from[i] >> shift & 255]++;
			to[at] = from[i];
			values_to[at] = values_from[i];
		}
		swap = from, from = to, to = swap;
		values_swap = values_from, values_from = values_to, values_to = values_swap;
	}
	if (from != keys) {
		memcpy(keys, from, n * sizeof(*keys));
		memcpy(values, values_from, n * sizeof(*values));
	}
}
