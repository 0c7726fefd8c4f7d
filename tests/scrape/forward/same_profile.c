#include "tests/scrape/forward/same_profile.h"

#define SAME(field) \
	do { \
		if (a->field != b->field) \
			return #field; \
	} while (0)
#define SAME_ALL(array, n) \
	do { \
		if (a->n != b->n) \
			return #n; \
		if (a->n && memcmp(a->array, b->array, a->n * sizeof(a->array[0])) != 0) \
			return #array; \
	} while (0)

static const char *same_strings(const struct pprof *a, const struct pprof *b)
{
	SAME(strings_n);
	for (uint32_t i = 0; i < a->strings_n; i++)
		if (!str_eq(a->strings[i], b->strings[i]))
			return "strings";
	return NULL;
}

/* Structs with padding: field by field. */
static const char *same_code(const struct pprof *left, const struct pprof *right)
{
	if (left->mappings_n != right->mappings_n || left->locations_n != right->locations_n)
		return "mappings_n, locations_n";
	for (uint32_t i = 0; i < left->mappings_n; i++) {
		const struct pprof_mapping *a = &left->mappings[i], *b = &right->mappings[i];

		SAME(start);
		SAME(limit);
		SAME(offset);
		SAME(filename);
		SAME(build_id);
		SAME(has_functions);
		SAME(has_filenames);
		SAME(has_line_numbers);
		SAME(has_inline_frames);
	}
	for (uint32_t i = 0; i < left->locations_n; i++) {
		const struct pprof_location *a = &left->locations[i], *b = &right->locations[i];

		SAME(address);
		SAME(mapping);
		SAME(line_n);
		SAME(is_folded);
		if (a->line_n)
			SAME(line_first);
	}
	return NULL;
}

/* functions and lines have padding too. */
static const char *same_lines(const struct pprof *left, const struct pprof *right)
{
	if (left->functions_n != right->functions_n || left->lines_n != right->lines_n)
		return "functions_n, lines_n";
	for (uint32_t i = 0; i < left->functions_n; i++) {
		const struct pprof_function *a = &left->functions[i], *b = &right->functions[i];

		SAME(name);
		SAME(system_name);
		SAME(filename);
		SAME(start_line);
	}
	for (uint32_t i = 0; i < left->lines_n; i++) {
		const struct pprof_line *a = &left->lines[i], *b = &right->lines[i];

		SAME(function);
		SAME(line);
		SAME(column);
	}
	return NULL;
}

static const char *same_label(const struct pprof_label *a, const struct pprof_label *b)
{
	SAME(key);
	SAME(str);
	SAME(num_unit);
	SAME(num);
	return NULL;
}

/* Samples may share their stacks and labels on one side, and have copies on the other. */
static const char *same_sample(const struct pprof *left, const struct pprof *right, uint32_t i)
{
	const struct pprof_sample *a = &left->samples[i], *b = &right->samples[i];
	const char *what = NULL;

	SAME(location_n);
	SAME(label_n);
	if (a->location_n &&
		memcmp(&left->location_ids[a->location_first], &right->location_ids[b->location_first],
			a->location_n * sizeof(uint32_t)) != 0)
		return "stack";
	for (uint32_t k = 0; k < a->label_n && !what; k++)
		what = same_label(&left->labels[a->label_first + k], &right->labels[b->label_first + k]);
	return what;
}

static const char *same_profile_samples(const struct pprof *left, const struct pprof *right)
{
	const char *what;

	if (left->samples_n != right->samples_n || left->types_n != right->types_n)
		return "samples_n, types_n";
	for (uint32_t i = 0; i < left->samples_n; i++)
		if ((what = same_sample(left, right, i)))
			return what;
	if (left->samples_n &&
		memcmp(left->values, right->values,
			(size_t)left->samples_n * left->types_n * sizeof(int64_t)) != 0)
		return "values";
	return NULL;
}

static const char *same_links(const struct pprof *a, const struct pprof *b)
{
	SAME(stacks_cut);
	if (!a->sample_links != !b->sample_links)
		return "sample_links";
	if (!a->sample_links)
		return NULL;
	SAME_ALL(links, links_n);
	return memcmp(a->sample_links, b->sample_links, a->samples_n * sizeof(uint32_t)) ?
		"sample_links" :
		NULL;
}

const char *same_profile(const struct pprof *a, const struct pprof *b)
{
	const char *what;

	if ((what = same_strings(a, b)) || (what = same_code(a, b)) || (what = same_lines(a, b)) ||
		(what = same_profile_samples(a, b)) || (what = same_links(a, b)))
		return what;
	SAME_ALL(types, types_n);
	SAME_ALL(comments, comments_n);
	SAME(drop_frames);
	SAME(keep_frames);
	SAME(default_sample_type);
	SAME(doc_url);
	SAME(period_type.type);
	SAME(period_type.unit);
	SAME(time_nanos);
	SAME(duration_nanos);
	SAME(period);
	return NULL;
}

const char *same_sink_profile(const struct sink_profile *a, const struct sink_profile *b)
{
	const char *what = same_profile(a->profile, b->profile);

	if (what)
		return what;
	if (!labels_eq(a->labels, b->labels))
		return "labels of the series";
	SAME(ts_ns);
	SAME(interval_ns);
	SAME(gap_max_ns);
	SAME(as_sent);
	for (uint32_t i = 0; i < a->profile->types_n; i++)
		SAME(kinds[i]);
	return NULL;
}
