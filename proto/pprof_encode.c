/*
 * Encoding: columns into protobuf-c's messages, which protobuf-c packs. The messages live in one
 * arena for the time of the call; they point to the strings.
 */
#include <assert.h>

#include "proto/pprof.h"
#include "proto/profile.pb-c.h"

typedef Epimetheus__Pprof__Profile profile_message;
typedef Epimetheus__Pprof__ValueType value_type_message;
typedef Epimetheus__Pprof__Sample sample_message;
typedef Epimetheus__Pprof__Label label_message;
typedef Epimetheus__Pprof__Mapping mapping_message;
typedef Epimetheus__Pprof__Location location_message;
typedef Epimetheus__Pprof__Line line_message;
typedef Epimetheus__Pprof__Function function_message;

/*
 * Makes n messages of a kind and the pointers to them that protobuf-c needs. False if the arena
 * fails.
 */
#define NEW_MESSAGES(a, type, n, list, items) \
	(((items) = arena_alloc_raw((a), (n), sizeof(type))) && \
		((list) = arena_array((a), type *, (n))))

static bool encode_types(struct arena *a, const struct pprof *p, profile_message *message)
{
	value_type_message *items;
	uint32_t i;

	message->n_sample_type = p->types_n;
	if (!NEW_MESSAGES(a, value_type_message, p->types_n, message->sample_type, items))
		return false;
	for (i = 0; i < p->types_n; i++) {
		message->sample_type[i] = &items[i];
		epimetheus__pprof__value_type__init(&items[i]);
		items[i].type = p->types[i].type;
		items[i].unit = p->types[i].unit;
	}
	if (!p->period_type.type && !p->period_type.unit)
		return true;
	if (!(message->period_type = arena_new(a, value_type_message)))
		return false;
	epimetheus__pprof__value_type__init(message->period_type);
	message->period_type->type = p->period_type.type;
	message->period_type->unit = p->period_type.unit;
	return true;
}

static bool encode_mappings(struct arena *a, const struct pprof *p, profile_message *message)
{
	mapping_message *items;
	uint32_t i;

	message->n_mapping = p->mappings_n;
	if (!NEW_MESSAGES(a, mapping_message, p->mappings_n, message->mapping, items))
		return false;
	for (i = 0; i < p->mappings_n; i++) {
		const struct pprof_mapping *from = &p->mappings[i];

		message->mapping[i] = &items[i];
		epimetheus__pprof__mapping__init(&items[i]);
		items[i].id = (uint64_t)i + 1;
		items[i].memory_start = from->start;
		items[i].memory_limit = from->limit;
		items[i].file_offset = from->offset;
		items[i].filename = from->filename;
		items[i].build_id = from->build_id;
		items[i].has_functions = from->has_functions;
		items[i].has_filenames = from->has_filenames;
		items[i].has_line_numbers = from->has_line_numbers;
		items[i].has_inline_frames = from->has_inline_frames;
	}
	return true;
}

static bool encode_functions(struct arena *a, const struct pprof *p, profile_message *message)
{
	function_message *items;
	uint32_t i;

	message->n_function = p->functions_n;
	if (!NEW_MESSAGES(a, function_message, p->functions_n, message->function, items))
		return false;
	for (i = 0; i < p->functions_n; i++) {
		message->function[i] = &items[i];
		epimetheus__pprof__function__init(&items[i]);
		items[i].id = (uint64_t)i + 1;
		items[i].name = p->functions[i].name;
		items[i].system_name = p->functions[i].system_name;
		items[i].filename = p->functions[i].filename;
		items[i].start_line = p->functions[i].start_line;
	}
	return true;
}

/* PPROF_NONE becomes 0, which means none. */
static uint64_t pprof_encode_id_of(uint32_t index)
{
	return index == PPROF_NONE ? 0 : (uint64_t)index + 1;
}

static bool encode_locations(struct arena *a, const struct pprof *p, profile_message *message)
{
	location_message *items;
	line_message *lines, **line_list;
	uint32_t i;

	message->n_location = p->locations_n;
	if (!NEW_MESSAGES(a, location_message, p->locations_n, message->location, items) ||
		!NEW_MESSAGES(a, line_message, p->lines_n, line_list, lines))
		return false;
	for (i = 0; i < p->lines_n; i++) {
		line_list[i] = &lines[i];
		epimetheus__pprof__line__init(&lines[i]);
		lines[i].function_id = pprof_encode_id_of(p->lines[i].function);
		lines[i].line = p->lines[i].line;
		lines[i].column = p->lines[i].column;
	}
	for (i = 0; i < p->locations_n; i++) {
		const struct pprof_location *from = &p->locations[i];

		assert(from->line_n <= p->lines_n && from->line_first <= p->lines_n - from->line_n);
		message->location[i] = &items[i];
		epimetheus__pprof__location__init(&items[i]);
		items[i].id = (uint64_t)i + 1;
		items[i].mapping_id = pprof_encode_id_of(from->mapping);
		items[i].address = from->address;
		items[i].n_line = from->line_n;
		items[i].line = line_list + from->line_first;
		items[i].is_folded = from->is_folded;
	}
	return true;
}

static bool encode_samples(struct arena *a, const struct pprof *p, profile_message *message)
{
	sample_message *items;
	label_message *labels, **label_list;
	uint64_t *ids = arena_array(a, uint64_t, p->location_ids_n);
	uint32_t i;

	message->n_sample = p->samples_n;
	if (!ids || !NEW_MESSAGES(a, sample_message, p->samples_n, message->sample, items) ||
		!NEW_MESSAGES(a, label_message, p->labels_n, label_list, labels))
		return false;
	for (i = 0; i < p->location_ids_n; i++)
		ids[i] = (uint64_t)p->location_ids[i] + 1;
	for (i = 0; i < p->labels_n; i++) {
		label_list[i] = &labels[i];
		epimetheus__pprof__label__init(&labels[i]);
		labels[i].key = p->labels[i].key;
		labels[i].str = p->labels[i].str;
		labels[i].num = p->labels[i].num;
		labels[i].num_unit = p->labels[i].num_unit;
	}
	for (i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *from = &p->samples[i];

		message->sample[i] = &items[i];
		epimetheus__pprof__sample__init(&items[i]);
		items[i].n_location_id = from->location_n;
		items[i].location_id = ids + from->location_first;
		items[i].n_value = p->types_n;
		items[i].value = p->values + (size_t)i * p->types_n;
		items[i].n_label = from->label_n;
		items[i].label = label_list + from->label_first;
	}
	return true;
}

static bool encode_strings(struct arena *a, const struct pprof *p, profile_message *message)
{
	uint32_t i;

	message->n_string_table = p->strings_n;
	message->n_comment = p->comments_n;
	if (!(message->string_table = arena_array(a, ProtobufCBinaryData, p->strings_n)) ||
		!(message->comment = arena_array(a, int64_t, p->comments_n)))
		return false;
	for (i = 0; i < p->strings_n; i++) {
		message->string_table[i].len = p->strings[i].len;
		message->string_table[i].data = (uint8_t *)(uintptr_t)p->strings[i].ptr;
	}
	for (i = 0; i < p->comments_n; i++)
		message->comment[i] = p->comments[i];
	message->drop_frames = p->drop_frames;
	message->keep_frames = p->keep_frames;
	message->default_sample_type = p->default_sample_type;
	message->doc_url = p->doc_url;
	return true;
}

enum err_code pprof_encode(const struct pprof *p, struct buf *out, struct err *err)
{
	profile_message m = EPIMETHEUS__PPROF__PROFILE__INIT;
	enum err_code rc = ERR_OK;
	struct arena a;
	size_t n;

	assert(p->strings_n > 0 && p->strings[0].len == 0);
	assert(p->types_n > 0 || p->samples_n == 0);
	arena_init(&a, 0);
	m.time_nanos = p->time_nanos;
	m.duration_nanos = p->duration_nanos;
	m.period = p->period;
	if (!encode_types(&a, p, &m) || !encode_mappings(&a, p, &m) || !encode_functions(&a, p, &m) ||
		!encode_locations(&a, p, &m) || !encode_samples(&a, p, &m) || !encode_strings(&a, p, &m)) {
		rc = arena_fail(&a, "encoded profile", err);
		goto done;
	}
	n = epimetheus__pprof__profile__get_packed_size(&m);
	if (!buf_reserve(out, n)) {
		rc = err_nomem(err, "encoded profile");
		goto done;
	}
	out->len += epimetheus__pprof__profile__pack(&m, (uint8_t *)out->ptr + out->len);
done:
	arena_release(&a);
	return rc;
}
