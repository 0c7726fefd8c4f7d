#include "tests/proto/otlp/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/gzip/gzip.h"

static bool keep(void *ctx, struct str *key)
{
	(void)ctx;
	return !str_is(*key, "thread.id") && !str_is(*key, "cpu.logical_number");
}

const struct otlp_options show_options = { .limits = &otlp_limits_default };
const struct otlp_options show_options_drop = { &otlp_limits_default, keep, NULL };

enum err_code show_read(struct arena *a, const char *name, struct str *out, struct err *err)
{
	struct buf file = { 0 };
	enum err_code rc;
	char path[128];

	snprintf(path, sizeof(path), "tests/proto/otlp/%s.gz", name);
	if (!(rc = fs_read_file(path, 1 << 20, &file, err)))
		rc = gzip_inflate(a, str_dup(a, buf_str(&file)), name, 16u << 20, out, err);
	buf_release(&file);
	return rc;
}

static int compare(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void add_hex(struct buf *out, const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%02x", bytes[i]);
}

static void add_attributes(
	struct arena *a, struct buf *out, const char *name, const struct otlp_attribute *v, uint32_t n)
{
	static const char *const kinds[] = { "empty", "string", "bool", "int", "double", "array", "map",
		"bytes" };
	struct str *lines = arena_array(a, struct str, n);

	for (uint32_t i = 0; i < n; i++)
		lines[i] = str_of(arena_printf(a, "%s " STR_FMT "=%s:" STR_FMT "%s" STR_FMT "\n", name,
			STR_ARG(v[i].key), kinds[v[i].kind], STR_ARG(v[i].text), v[i].unit.len ? " " : "",
			STR_ARG(v[i].unit)));
	qsort(lines, n, sizeof(*lines), compare);
	for (uint32_t i = 0; i < n; i++)
		buf_add_str(out, lines[i]);
}

static void add_frame(struct buf *out, const struct pprof *p, uint32_t location)
{
	const struct pprof_location *l = &p->locations[location];

	buf_printf(out, " | %" PRIx64, l->address);
	if (l->mapping != PPROF_NONE) {
		const struct pprof_mapping *m = &p->mappings[l->mapping];

		buf_printf(out, "@" STR_FMT "(" STR_FMT ") %" PRIx64 "-%" PRIx64 "+%" PRIx64,
			STR_ARG(p->strings[m->filename]), STR_ARG(p->strings[m->build_id]), m->start, m->limit,
			m->offset);
	}
	for (uint32_t i = 0; i < l->line_n; i++) {
		const struct pprof_line *line = &p->lines[l->line_first + i];
		const struct pprof_function *f = &p->functions[line->function];

		buf_printf(out, " < " STR_FMT "," STR_FMT "," STR_FMT ",%" PRId64 ":%" PRId64 ":%" PRId64,
			STR_ARG(p->strings[f->name]), STR_ARG(p->strings[f->system_name]),
			STR_ARG(p->strings[f->filename]), f->start_line, line->line, line->column);
	}
}

static void add_labels(
	struct arena *a, struct buf *out, const struct pprof *p, const struct pprof_sample *s)
{
	struct str *lines = arena_array(a, struct str, s->label_n);

	for (uint32_t i = 0; i < s->label_n; i++) {
		const struct pprof_label *l = &p->labels[s->label_first + i];
		struct str key = p->strings[l->key];

		if (l->str)
			lines[i] = str_of(arena_printf(
				a, STR_FMT "=\"" STR_FMT "\"", STR_ARG(key), STR_ARG(p->strings[l->str])));
		else
			lines[i] = str_of(arena_printf(a, STR_FMT "=%" PRId64 " " STR_FMT, STR_ARG(key), l->num,
				STR_ARG(p->strings[l->num_unit])));
	}
	qsort(lines, s->label_n, sizeof(*lines), compare);
	for (uint32_t i = 0; i < s->label_n; i++) {
		buf_add_cstr(out, i ? ", " : "");
		buf_add_str(out, lines[i]);
	}
}

static struct str sample_line(
	struct arena *a, const struct otlp_request *r, const struct otlp_profile *o, uint32_t i)
{
	const struct pprof_sample *s = &o->pprof->samples[i];
	const uint32_t of = o->pprof->sample_links ? o->pprof->sample_links[i] : 0;
	struct buf line = { 0 };
	struct str text;

	for (uint32_t k = 0; k < o->pprof->types_n; k++)
		buf_printf(&line, " %" PRId64, o->pprof->values[(size_t)i * o->pprof->types_n + k]);
	buf_add_cstr(&line, " {");
	add_labels(a, &line, o->pprof, s);
	buf_add_cstr(&line, "}");
	if (of) {
		buf_add_char(&line, ' ');
		add_hex(&line, r->links[of].trace_id, 16);
		buf_add_char(&line, '/');
		add_hex(&line, r->links[of].span_id, 8);
	}
	for (uint32_t k = 0; k < s->location_n; k++)
		add_frame(&line, o->pprof, o->pprof->location_ids[s->location_first + k]);
	buf_add_char(&line, '\n');
	text = str_dup(a, buf_str(&line));
	buf_release(&line);
	return text;
}

static void show_profile(
	struct arena *a, const struct otlp_request *r, const struct otlp_profile *o, struct buf *out)
{
	static const char *const temporalities[] = { "", " delta", " cumulative" };
	const struct pprof *p = o->pprof;
	struct str *lines = arena_array(a, struct str, p->samples_n);

	buf_printf(out, "profile of " STR_FMT " " STR_FMT "%s", STR_ARG(o->scope_name),
		STR_ARG(o->scope_version), temporalities[o->temporality]);
	for (uint32_t i = 0; i < p->types_n; i++)
		buf_printf(out, " " STR_FMT "/" STR_FMT, STR_ARG(p->strings[p->types[i].type]),
			STR_ARG(p->strings[p->types[i].unit]));
	buf_printf(out, " per %" PRId64 " " STR_FMT "/" STR_FMT, p->period,
		STR_ARG(p->strings[p->period_type.type]), STR_ARG(p->strings[p->period_type.unit]));
	buf_printf(out, " at %" PRId64 " for %" PRId64 " rows %" PRIu32 " times %" PRIu64,
		p->time_nanos, p->duration_nanos, o->rows, o->timestamps_n);
	buf_printf(out, " from %" PRId64 " to %" PRId64 " id ", o->first_ns, o->last_ns);
	add_hex(out, o->id, sizeof(o->id));
	buf_add_char(out, '\n');
	add_attributes(a, out, "resource", r->resources[o->resource].attributes,
		r->resources[o->resource].attributes_n);
	add_attributes(a, out, "attribute", o->attributes, o->attributes_n);
	for (uint32_t i = 0; i < p->samples_n; i++)
		lines[i] = sample_line(a, r, o, i);
	qsort(lines, p->samples_n, sizeof(*lines), compare);
	for (uint32_t i = 0; i < p->samples_n; i++)
		buf_add_str(out, lines[i]);
}

void show_request(struct arena *a, const struct otlp_request *r, struct buf *out)
{
	for (uint32_t i = 0; i < r->profiles_n; i++)
		show_profile(a, r, &r->profiles[i], out);
	if (r->rejected_n)
		buf_printf(out, "rejected %" PRIu32 ": %s\n", r->rejected_n, r->rejected.msg);
}

static void require_index(bool ok)
{
	if (!ok)
		abort();
}

static void check_tables(const struct pprof *p)
{
	uint32_t n = p->strings_n;

	require_index(n && !p->strings[0].len && p->types_n);
	require_index(p->period_type.type < n && p->period_type.unit < n);
	for (uint32_t i = 0; i < p->types_n; i++)
		require_index(p->types[i].type < n && p->types[i].unit < n);
	for (uint32_t i = 0; i < p->mappings_n; i++)
		require_index(p->mappings[i].filename < n && p->mappings[i].build_id < n);
	for (uint32_t i = 0; i < p->functions_n; i++)
		require_index(p->functions[i].name < n && p->functions[i].system_name < n &&
			p->functions[i].filename < n);
	for (uint32_t i = 0; i < p->lines_n; i++)
		require_index(p->lines[i].function < p->functions_n);
	for (uint32_t i = 0; i < p->locations_n; i++) {
		const struct pprof_location *l = &p->locations[i];

		require_index(l->mapping == PPROF_NONE || l->mapping < p->mappings_n);
		require_index(l->line_first <= p->lines_n && l->line_n <= p->lines_n - l->line_first);
	}
}

static void check_samples(const struct otlp_request *r, const struct otlp_profile *o)
{
	const struct pprof *p = o->pprof;
	uint32_t n = p->strings_n;

	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *s = &p->samples[i];

		require_index(s->location_first <= p->location_ids_n &&
			s->location_n <= p->location_ids_n - s->location_first);
		require_index(s->label_first <= p->labels_n && s->label_n <= p->labels_n - s->label_first);
		require_index(!p->sample_links || p->sample_links[i] < r->links_n);
		require_index(p->values[(size_t)i * p->types_n] != INT64_MIN || p->types_n);
	}
	for (uint32_t i = 0; i < p->location_ids_n; i++)
		require_index(p->location_ids[i] < p->locations_n);
	for (uint32_t i = 0; i < p->labels_n; i++) {
		const struct pprof_label *l = &p->labels[i];

		require_index(l->key && l->key < n && l->str < n && l->num_unit < n);
		require_index(l->str ? !l->num && !l->num_unit : l->num || l->num_unit);
	}
}

void check_request(const struct otlp_request *r)
{
	for (uint32_t i = 0; i < r->profiles_n; i++) {
		require_index(r->profiles[i].resource < r->resources_n);
		check_tables(r->profiles[i].pprof);
		check_samples(r, &r->profiles[i]);
	}
	require_index(r->rejected_n ? r->rejected.code && r->rejected.msg[0] : !r->rejected.code);
}
