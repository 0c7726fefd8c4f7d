#include "tests/proto/profile_compare.h"

#include <inttypes.h>
#include <stdlib.h>

#include "proto/profile.pb-c.h"

#define DIFFERENCES_SHOWN 4

typedef Epimetheus__Pprof__Profile profile_message;

struct id_index {
	uint64_t id;
	size_t index;
};

struct line {
	char *text; /* labels and stack */
	size_t len;
	int64_t *values;
	size_t n;
	size_t main_mapping; /* lowest index of a mapping in the stack; n_mapping: none */
};

struct reader {
	const profile_message *m;
	struct id_index *mappings, *functions, *locations; /* sorted by id */
	struct buf *location_text; /* by index in m->location */
	size_t *location_mapping; /* index in m->mapping, or n_mapping */
};

static int id_cmp(const void *a, const void *b)
{
	const struct id_index *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* Index of the element with the id, or n. */
static size_t id_find(const struct id_index *ids, size_t n, uint64_t id)
{
	struct id_index key = { id, 0 };
	const struct id_index *found = n ? bsearch(&key, ids, n, sizeof(*ids), id_cmp) : NULL;

	return found ? found->index : n;
}

#define SORT_IDS(list, n, out) \
	do { \
		(out) = calloc((n) + 1, sizeof(*(out))); \
		for (size_t i_ = 0; i_ < (n); i_++) \
			(out)[i_] = (struct id_index){ (list)[i_]->id, i_ }; \
		qsort((out), (n), sizeof(*(out)), id_cmp); \
	} while (0)

static struct str text_of(const struct reader *r, int64_t index)
{
	if (index < 0 || (uint64_t)index >= r->m->n_string_table)
		return STR("<no such string>");
	return (
		struct str){ (const char *)r->m->string_table[index].data, r->m->string_table[index].len };
}

static void add_quoted(const struct reader *r, struct buf *out, int64_t index)
{
	struct str s = text_of(r, index);

	buf_add_char(out, '"');
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if (c < ' ' || c == '"' || c == '\\' || c == 0x7f)
			buf_printf(out, "\\x%02x", c);
		else
			buf_add_char(out, (char)c);
	}
	buf_add_char(out, '"');
}

static void add_mapping(const struct reader *r, struct buf *out, size_t index)
{
	const Epimetheus__Pprof__Mapping *m;

	if (index == r->m->n_mapping) {
		buf_add_cstr(out, "mapping{}");
		return;
	}
	m = r->m->mapping[index];
	buf_printf(out, "mapping{%" PRIx64 "-%" PRIx64 " offset %" PRIx64 " has %d%d%d%d ",
		m->memory_start, m->memory_limit, m->file_offset, !!m->has_functions, !!m->has_filenames,
		!!m->has_line_numbers, !!m->has_inline_frames);
	add_quoted(r, out, m->filename);
	buf_add_char(out, ' ');
	add_quoted(r, out, m->build_id);
	buf_add_char(out, '}');
}

static void add_line(const struct reader *r, struct buf *out, const Epimetheus__Pprof__Line *l)
{
	size_t index = id_find(r->functions, r->m->n_function, l->function_id);
	const Epimetheus__Pprof__Function *f;

	buf_printf(out, " line{%" PRId64 ":%" PRId64, l->line, l->column);
	if (index < r->m->n_function) {
		f = r->m->function[index];
		buf_printf(out, " function{%" PRId64 " ", f->start_line);
		add_quoted(r, out, f->name);
		buf_add_char(out, ' ');
		add_quoted(r, out, f->system_name);
		buf_add_char(out, ' ');
		add_quoted(r, out, f->filename);
		buf_add_char(out, '}');
	}
	buf_add_char(out, '}');
}

static void add_location(const struct reader *r, struct buf *out, size_t index)
{
	const Epimetheus__Pprof__Location *l = r->m->location[index];

	buf_printf(out, "location{%" PRIx64 "%s ", l->address, l->is_folded ? " folded" : "");
	add_mapping(r, out, r->location_mapping[index]);
	for (size_t i = 0; i < l->n_line; i++)
		add_line(r, out, l->line[i]);
	buf_add_cstr(out, "} ");
}

static int buf_cmp(const void *a, const void *b)
{
	return str_cmp(buf_str(a), buf_str(b));
}

/* Labels are sorted, and read as google/pprof reads them. */
static void add_labels(const struct reader *r, struct buf *out, const Epimetheus__Pprof__Sample *s)
{
	struct buf *texts = calloc(s->n_label + 1, sizeof(*texts));
	size_t n = 0;

	for (size_t i = 0; i < s->n_label; i++) {
		const Epimetheus__Pprof__Label *l = s->label[i];

		if (l->str ? !text_of(r, l->str).len : !l->num && !text_of(r, l->num_unit).len)
			continue;
		add_quoted(r, &texts[n], l->key);
		buf_add_char(&texts[n], '=');
		if (l->str) {
			add_quoted(r, &texts[n], l->str);
		} else {
			buf_printf(&texts[n], "%" PRId64, l->num);
			add_quoted(r, &texts[n], l->num_unit);
		}
		buf_add_char(&texts[n++], ' ');
	}
	qsort(texts, n, sizeof(*texts), buf_cmp);
	for (size_t i = 0; i < n; i++) {
		buf_add_str(out, buf_str(&texts[i]));
		buf_release(&texts[i]);
	}
	free(texts);
}

static int line_cmp(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return str_cmp((struct str){ x->text, x->len }, (struct str){ y->text, y->len });
}

static struct line sample_line(const struct reader *r, const Epimetheus__Pprof__Sample *s)
{
	struct line line = { .n = s->n_value, .main_mapping = r->m->n_mapping };
	struct buf text = { 0 };

	buf_add_cstr(&text, "sample ");
	add_labels(r, &text, s);
	for (size_t i = 0; i < s->n_location_id; i++) {
		size_t index = id_find(r->locations, r->m->n_location, s->location_id[i]);

		if (index == r->m->n_location) {
			buf_add_cstr(&text, "location{?} ");
			continue;
		}
		buf_add_str(&text, buf_str(&r->location_text[index]));
		if (r->location_mapping[index] < line.main_mapping)
			line.main_mapping = r->location_mapping[index];
	}
	line.text = text.ptr;
	line.len = text.len;
	line.values = calloc(line.n + 1, sizeof(*line.values));
	for (size_t i = 0; i < line.n; i++)
		line.values[i] = s->value[i];
	return line;
}

/* Adds up samples that differ only in values; returns whether a value is not 0. */
static bool fold(struct line *lines, size_t n)
{
	bool any = false;

	for (size_t i = 1; i < n; i++)
		for (size_t k = 0; k < lines[0].n && k < lines[i].n; k++)
			lines[0].values[k] = (int64_t)((uint64_t)lines[0].values[k] +
				(uint64_t)lines[i].values[k]);
	for (size_t k = 0; k < lines[0].n; k++)
		any |= lines[0].values[k] != 0;
	return any;
}

static void add_field(const struct reader *r, struct buf *out, const char *name, int64_t index)
{
	buf_printf(out, "%s ", name);
	add_quoted(r, out, index);
	buf_add_char(out, '\n');
}

/* The first mapping used, the period, and the samples. */
static void add_samples(const struct reader *r, struct buf *out)
{
	struct line *lines = calloc(r->m->n_sample + 1, sizeof(*lines));
	size_t n = r->m->n_sample, main_mapping = r->m->n_mapping, i, k;
	struct buf text = { 0 };

	for (i = 0; i < n; i++)
		lines[i] = sample_line(r, r->m->sample[i]);
	qsort(lines, n, sizeof(*lines), line_cmp);
	for (i = 0; i < n; i = k) {
		for (k = i + 1; k < n && !line_cmp(&lines[i], &lines[k]); k++)
			;
		if (!fold(&lines[i], k - i))
			continue;
		buf_add(&text, lines[i].text, lines[i].len);
		buf_add_cstr(&text, "values");
		for (size_t v = 0; v < lines[i].n; v++)
			buf_printf(&text, " %" PRId64, lines[i].values[v]);
		buf_add_char(&text, '\n');
		for (size_t s = i; s < k; s++)
			if (lines[s].main_mapping < main_mapping)
				main_mapping = lines[s].main_mapping;
	}
	buf_add_cstr(out, "main ");
	add_mapping(r, out, main_mapping);
	buf_printf(out, "\nperiod %" PRId64 "\n", r->m->period);
	add_field(r, out, "period_type.type", r->m->period_type ? r->m->period_type->type : 0);
	add_field(r, out, "period_type.unit", r->m->period_type ? r->m->period_type->unit : 0);
	buf_add_str(out, buf_str(&text));
	buf_release(&text);
	for (i = 0; i < n; i++) {
		free(lines[i].text);
		free(lines[i].values);
	}
	free(lines);
}

/* In alphabetical order, as show_differences expects. */
static void add_profile(const struct reader *r, struct buf *out)
{
	const profile_message *m = r->m;

	for (size_t i = 0; i < m->n_comment; i++)
		add_field(r, out, "comment", m->comment[i]);
	add_field(r, out, "default_sample_type", m->default_sample_type);
	add_field(r, out, "doc_url", m->doc_url);
	add_field(r, out, "drop_frames", m->drop_frames);
	buf_printf(out, "duration_nanos %" PRId64 "\n", m->duration_nanos);
	add_field(r, out, "keep_frames", m->keep_frames);
	add_samples(r, out);
	for (size_t i = 0; i < m->n_sample_type; i++) {
		buf_printf(out, "sample_type[%zu].", i);
		add_field(r, out, "type", m->sample_type[i]->type);
		buf_printf(out, "sample_type[%zu].", i);
		add_field(r, out, "unit", m->sample_type[i]->unit);
	}
	buf_printf(out, "time_nanos %" PRId64 "\n", m->time_nanos);
}

bool profile_text(struct str raw, struct buf *out)
{
	profile_message *m = epimetheus__pprof__profile__unpack(
		NULL, raw.len, (const uint8_t *)raw.ptr);
	struct reader r = { .m = m };

	if (!m)
		return false;
	SORT_IDS(m->mapping, m->n_mapping, r.mappings);
	SORT_IDS(m->function, m->n_function, r.functions);
	SORT_IDS(m->location, m->n_location, r.locations);
	r.location_text = calloc(m->n_location + 1, sizeof(*r.location_text));
	r.location_mapping = calloc(m->n_location + 1, sizeof(*r.location_mapping));
	for (size_t i = 0; i < m->n_location; i++) {
		r.location_mapping[i] = id_find(r.mappings, m->n_mapping, m->location[i]->mapping_id);
		add_location(&r, &r.location_text[i], i);
	}
	add_profile(&r, out);
	for (size_t i = 0; i < m->n_location; i++)
		buf_release(&r.location_text[i]);
	free(r.location_text);
	free(r.location_mapping);
	free(r.mappings);
	free(r.functions);
	free(r.locations);
	epimetheus__pprof__profile__free_unpacked(m, NULL);
	return true;
}

static struct str next_line(struct str *text)
{
	const char *newline = text->len ? memchr(text->ptr, '\n', text->len) : NULL;
	size_t n = newline ? (size_t)(newline - text->ptr) : text->len;
	struct str line = { text->ptr, n };

	n += newline ? 1 : 0;
	text->ptr += n;
	text->len -= n;
	return line;
}

/*
 * Shows lines that only one side has. Both are sorted, so the walk advances the side that is
 * behind.
 */
static void show_differences(struct str a, struct str b, struct buf *why)
{
	struct str x = next_line(&a), y = next_line(&b);
	int shown = 0;

	while ((x.len || y.len) && shown < DIFFERENCES_SHOWN) {
		int c = str_cmp(x, y);

		if (!c) {
			x = next_line(&a);
			y = next_line(&b);
		} else if (y.len == 0 || (x.len && c < 0)) {
			buf_printf(why, "only in a: " STR_FMT "\n", (int)(x.len < 4000 ? x.len : 4000), x.ptr);
			x = next_line(&a);
			shown++;
		} else {
			buf_printf(why, "only in b: " STR_FMT "\n", (int)(y.len < 4000 ? y.len : 4000), y.ptr);
			y = next_line(&b);
			shown++;
		}
	}
}

bool profile_equal(struct str raw_a, struct str raw_b, struct buf *why)
{
	struct buf a = { 0 }, b = { 0 };
	bool equal = false;

	if (!profile_text(raw_a, &a))
		buf_add_cstr(why, "a: protobuf-c refuses it\n");
	else if (!profile_text(raw_b, &b))
		buf_add_cstr(why, "b: protobuf-c refuses it\n");
	else if (!(equal = str_eq(buf_str(&a), buf_str(&b))))
		show_differences(buf_str(&a), buf_str(&b), why);
	buf_release(&a);
	buf_release(&b);
	return equal;
}
