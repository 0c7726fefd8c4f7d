/* Elements of the dictionary in the profile at hand: each is copied when it is first used. */
#include <inttypes.h>

#include "proto/otlp/builder.h"

enum err_code otlp_add_string(struct otlp_decoder *d, struct str s, uint32_t *out)
{
	struct otlp_builder *b = d->b;
	struct pprof *p = &b->p;

	if (!arena_array_room(d->a, &p->strings, p->strings_n, 2, &b->strings_cap))
		return otlp_no_memory(d);
	if (!p->strings_n)
		p->strings[p->strings_n++] = STR("");
	*out = 0;
	if (s.len) {
		p->strings[p->strings_n] = s;
		*out = p->strings_n++;
	}
	return ERR_OK;
}

static enum err_code otlp_new_string(
	struct otlp_decoder *d, uint32_t index, const char *what, uint32_t *out)
{
	struct otlp_builder *b = d->b;
	struct pprof *p = &b->p;
	enum err_code rc;
	struct str s;

	if (index < d->d.strings_n && p->strings_n && p->strings_n < b->strings_cap &&
		d->d.strings[index].len) { /* nearly always */
		p->strings[p->strings_n] = d->d.strings[index];
		*out = p->strings_n++;
	} else if ((rc = otlp_string(d, index, what, &s)) || (rc = otlp_add_string(d, s, out))) {
		return rc;
	}
	b->strings[index] = (struct number){ b->epoch, *out };
	return ERR_OK;
}

static inline enum err_code otlp_elements_use_string(
	struct otlp_decoder *d, uint32_t index, const char *what, uint32_t *out)
{
	const struct otlp_builder *b = d->b;

	*out = 0;
	if (!index)
		return ERR_OK;
	if (index >= d->d.strings_n || b->strings[index].epoch != b->epoch)
		return otlp_new_string(d, index, what, out);
	*out = b->strings[index].id;
	return ERR_OK;
}

enum err_code otlp_use_string(
	struct otlp_decoder *d, uint32_t index, const char *what, uint32_t *out)
{
	return otlp_elements_use_string(d, index, what, out);
}

/* The best of the ids that a mapping has: GNU's, Go's, else a hash of the file. */
static enum err_code otlp_find_build_id(struct otlp_decoder *d, struct otlp_mapping *m)
{
	static const char *const keys[] = { "process.executable.build_id.gnu",
		"process.executable.build_id.go", "process.executable.build_id.htlhash",
		"process.executable.build_id.profiling" };
	size_t best = sizeof(keys) / sizeof(keys[0]);
	struct otlp_attribute a;
	enum err_code rc;

	if (m->attributes.n > d->limits->attributes_max)
		return otlp_reject(d, ERR_LIMIT,
			"a mapping has more than %" PRIu32 " attributes, the limit", d->limits->attributes_max);
	for (uint32_t i = 0; i < m->attributes.n; i++) {
		if ((rc = otlp_entry_attribute(d, d->d.indices[m->attributes.first + i], &a)))
			return rc;
		for (size_t k = 0; k < best; k++)
			if (str_is(a.key, keys[k]) && a.text.len) {
				m->build_id = a.text;
				best = k;
			}
	}
	m->build_id_known = true;
	return ERR_OK;
}

static enum err_code otlp_new_mapping(struct otlp_decoder *d, uint32_t index, uint32_t *out)
{
	struct otlp_builder *b = d->b;
	struct pprof *p = &b->p;
	struct pprof_mapping *to;
	struct otlp_mapping *m;
	enum err_code rc;

	if (index >= d->d.mappings_n)
		return otlp_reject(d, ERR_INVALID, "no mapping %" PRIu32 ", mappingTable has %" PRIu32,
			index, d->d.mappings_n);
	m = &d->d.mappings[index];
	if (!m->build_id_known && (rc = otlp_find_build_id(d, m)))
		return rc;
	if (!arena_array_room(d->a, &p->mappings, p->mappings_n, 1, &b->mappings_cap))
		return otlp_no_memory(d);
	to = &p->mappings[p->mappings_n];
	*to = (struct pprof_mapping){
		.start = m->start, .limit = m->limit, .offset = m->offset, .has_functions = true
	};
	if ((rc = otlp_elements_use_string(
			 d, m->filename, "mapping.filenameStrindex", &to->filename)) ||
		(rc = otlp_add_string(d, m->build_id, &to->build_id)))
		return rc;
	*out = p->mappings_n++;
	b->mappings[index] = (struct number){ b->epoch, *out };
	return ERR_OK;
}

static inline enum err_code otlp_use_mapping(struct otlp_decoder *d, uint32_t index, uint32_t *out)
{
	const struct otlp_builder *b = d->b;

	*out = PPROF_NONE;
	if (!index)
		return ERR_OK;
	if (index >= d->d.mappings_n || b->mappings[index].epoch != b->epoch)
		return otlp_new_mapping(d, index, out);
	*out = b->mappings[index].id;
	return ERR_OK;
}

static enum err_code otlp_new_function(struct otlp_decoder *d, uint32_t index, uint32_t *out)
{
	static const struct otlp_function none;
	struct otlp_builder *b = d->b;
	struct pprof *p = &b->p;
	const struct otlp_function *f = &none;
	struct pprof_function *to;
	enum err_code rc;

	if (index < d->d.functions_n)
		f = &d->d.functions[index];
	else if (index)
		return otlp_reject(d, ERR_INVALID, "no function %" PRIu32 ", functionTable has %" PRIu32,
			index, d->d.functions_n);
	if (!arena_array_room(d->a, &p->functions, p->functions_n, 1, &b->functions_cap))
		return otlp_no_memory(d);
	to = &p->functions[p->functions_n];
	to->start_line = f->start_line;
	if ((rc = otlp_elements_use_string(d, f->name, "function.nameStrindex", &to->name)) ||
		(rc = otlp_elements_use_string(
			 d, f->system_name, "function.systemNameStrindex", &to->system_name)) ||
		(rc = otlp_elements_use_string(d, f->filename, "function.filenameStrindex", &to->filename)))
		return rc;
	*out = p->functions_n++;
	if (index < d->d.functions_n)
		b->functions[index] = (struct number){ b->epoch, *out };
	return ERR_OK;
}

static inline enum err_code otlp_use_function(struct otlp_decoder *d, uint32_t index, uint32_t *out)
{
	const struct otlp_builder *b = d->b;

	if (index >= d->d.functions_n || b->functions[index].epoch != b->epoch)
		return otlp_new_function(d, index, out);
	*out = b->functions[index].id;
	return ERR_OK;
}

/* Few bytes may name a long stack, in every sample of every profile. */
enum err_code otlp_count_frames(struct otlp_decoder *d, uint32_t n)
{
	d->frames_n += n;
	return d->frames_n > d->limits->frames_max ?
		otlp_too_many(d, d->limits->frames_max, "frames and lines in its profiles") :
		ERR_OK;
}

static enum err_code otlp_use_lines(struct otlp_decoder *d, const struct otlp_location *l)
{
	struct otlp_builder *b = d->b;
	struct pprof *p = &b->p;
	enum err_code rc;

	if ((rc = otlp_count_frames(d, l->lines.n)))
		return rc;
	if (!arena_array_room(d->a, &p->lines, p->lines_n, l->lines.n, &b->lines_cap))
		return otlp_no_memory(d);
	for (uint32_t i = 0; i < l->lines.n; i++) {
		struct pprof_line line = d->d.lines[l->lines.first + i];

		if ((rc = otlp_use_function(d, line.function, &line.function)))
			return rc;
		p->lines[p->lines_n++] = line;
	}
	return ERR_OK;
}

/* A line whose function is in the profile, or will be now, as most locations have one of. */
static inline enum err_code otlp_use_line(struct otlp_decoder *d, const struct otlp_location *l)
{
	struct otlp_builder *b = d->b;
	struct pprof *p = &b->p;
	struct pprof_line *line;

	if (l->lines.n != 1 || p->lines_n == b->lines_cap || d->frames_n >= d->limits->frames_max)
		return l->lines.n ? otlp_use_lines(d, l) : ERR_OK;
	d->frames_n++;
	line = &p->lines[p->lines_n++];
	*line = d->d.lines[l->lines.first];
	return otlp_use_function(d, line->function, &line->function);
}

enum err_code otlp_use_location(struct otlp_decoder *d, uint32_t index, uint32_t *out)
{
	struct otlp_builder *b = d->b;
	struct pprof *p = &b->p;
	const struct otlp_location *l;
	struct pprof_location *to;
	enum err_code rc;

	if (index >= d->d.locations_n)
		return otlp_reject(d, ERR_INVALID, "no location %" PRIu32 ", locationTable has %" PRIu32,
			index, d->d.locations_n);
	l = &d->d.locations[index];
	to = &p->locations[p->locations_n];
	*to = (struct pprof_location){
		.address = l->address, .line_first = p->lines_n, .line_n = l->lines.n
	};
	if ((rc = otlp_use_mapping(d, l->mapping, &to->mapping)) || (rc = otlp_use_line(d, l)))
		return rc;
	*out = p->locations_n++;
	b->locations[index] = (struct number){ b->epoch, *out };
	return ERR_OK;
}
