/* The state of one decoding, shared by the files of the decoder. Private to proto/otlp. */
#ifndef PROTO_OTLP_DECODER_H
#define PROTO_OTLP_DECODER_H

#include "base/array.h"
#include "base/map.h"
#include "proto/otlp/otlp.h"
#include "proto/wire.h"

/* Indexes as they were sent are kept as they are, and checked when a profile uses them. */
#define OTLP_INDEX_BAD UINT32_MAX

static inline uint32_t otlp_index(uint64_t value)
{
	return value < OTLP_INDEX_BAD ? (uint32_t)value : OTLP_INDEX_BAD;
}

/* ---- the dictionary: one array per table, in the order sent ---- */

struct otlp_range {
	uint32_t first, n;
};

struct otlp_mapping {
	uint64_t start, limit, offset;
	uint32_t filename;
	struct otlp_range attributes; /* of indices */
	struct str build_id; /* found when it is first used */
	bool build_id_known;
};

struct otlp_function {
	uint32_t name, system_name, filename;
	int64_t start_line;
};

struct otlp_location {
	uint64_t address;
	uint32_t mapping;
	struct otlp_range lines;
};

/* What a sample's attribute becomes; found out when it is first used. */
enum otlp_use { OTLP_UNSEEN, OTLP_LABEL, OTLP_NO_LABEL };

struct otlp_entry {
	uint32_t key, unit;
	struct str value; /* an AnyValue's bytes */
	enum otlp_use use;
	uint32_t same; /* OTLP_LABEL: the first attribute that makes the same label */
	struct otlp_attribute a; /* OTLP_LABEL */
};

struct otlp_dictionary {
	struct str *strings;
	struct otlp_mapping *mappings;
	struct otlp_function *functions;
	struct otlp_location *locations;
	struct pprof_line *lines; /* function: an index of this dictionary */
	struct otlp_range *stacks; /* of indices */
	struct otlp_entry *attributes;
	uint32_t *indices; /* of stacks: locations; of mappings: attributes */
	uint32_t strings_n, mappings_n, functions_n, locations_n, lines_n, stacks_n, attributes_n;
	uint32_t indices_n, links_n;
	uint32_t strings_cap, mappings_cap, functions_cap, locations_cap, lines_cap, stacks_cap;
	uint32_t attributes_cap, indices_cap, links_cap;
};

struct otlp_builder;

/* How a request numbers the fields of its profiles and samples; layout.c. */
enum otlp_numbers { OTLP_AS_1_10, OTLP_AS_1_9, OTLP_AS_1_8 };

#define OTLP_ID_BYTES 16 /* of a profile */

struct otlp_decoder {
	struct arena *a;
	const struct otlp_options *options;
	const struct otlp_limits *limits;
	struct str raw;
	wire_pos safe; /* words may be read up to here */
	struct err *err;
	struct otlp_request *request;
	struct otlp_dictionary d;
	struct map labels; /* of attributes that are labels */
	uint64_t seed; /* of hashes */
	enum otlp_numbers numbers;
	uint64_t samples_n, frames_n, text_bytes; /* so far, of all profiles */
	uint32_t scopes_n;
	uint32_t *row_attributes; /* of the sample at hand */
	struct otlp_attribute *attributes; /* of the resource or profile at hand; attributes_max */
	bool json; /* was JSON: numbered as since 1.10 */
	uint32_t profiles_cap, resources_cap;
	struct otlp_builder *b;
	struct err why; /* of the profile at hand */
};

/* Errors of the whole request. */
enum err_code otlp_wire_fail(struct otlp_decoder *d);
enum err_code otlp_no_memory(struct otlp_decoder *d);
enum err_code otlp_too_many(struct otlp_decoder *d, uint32_t max, const char *what);
/* what: the field that tells. */
enum err_code otlp_too_old(struct err *err, const char *what);

/* One of a profile, which is then left out: sets d->why. ERR_NOMEM and arena limits are not. */
enum err_code otlp_reject(struct otlp_decoder *d, enum err_code code, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/* Whether the decoding goes on with the next profile after this code. */
bool otlp_is_reject(const struct otlp_decoder *d, enum err_code rc);

/* A tag, its number and its value's bounds: one step over a message, at < end. NULL: bad. */
struct otlp_field {
	uint64_t tag, number; /* the value of a varint, or the bytes of a fixed64 */
	wire_pos begin, end; /* of the value */
};

static inline __attribute__((always_inline)) wire_pos otlp_next(
	wire_pos at, wire_pos end, struct otlp_field *f)
{
	size_t len;

	if (__builtin_expect(*at < 0x80, 1))
		f->tag = *at++;
	else if (!(at = wire_varint(at, end, &f->tag)))
		return NULL;
	f->begin = at;
	switch (f->tag & 7) {
	case WIRE_VARINT:
		return f->end = wire_varint(at, end, &f->number);
	case WIRE_BYTES:
		if (!(f->begin = wire_bytes(at, end, &len)))
			return NULL;
		f->number = 0;
		return f->end = f->begin + len;
	case WIRE_FIXED64:
		if (end - at < 8)
			return NULL;
		f->number = wire_word(at);
		return f->end = at + 8;
	default:
		f->number = 0;
		return f->end = wire_skip(f->tag, at, end);
	}
}

/*
 * A varint, without a branch on its length where it has up to 8 bytes; `safe` is 8 bytes before
 * the end of the request.
 */
static inline __attribute__((always_inline)) wire_pos otlp_varint(
	wire_pos at, wire_pos end, wire_pos safe, uint64_t *value)
{
	wire_pos next;

	if (__builtin_expect(at < end && *at < 0x80, 1)) {
		*value = *at;
		return at + 1;
	}
	if (at <= safe && (next = wire_quick_varint(at, value)))
		return next <= end ? next : NULL;
	return wire_varint(at, end, value);
}

static inline struct str otlp_bytes(const struct otlp_field *f)
{
	return (struct str){ (const char *)f->begin, (size_t)(f->end - f->begin) };
}

/* True for a field of these numbers whose wire type is not the one that it should have. */
static inline bool otlp_is_known(const struct otlp_field *f, unsigned known)
{
	return f->tag >> 3 && f->tag >> 3 <= known;
}

/* Copies d->attributes[0..n). NULL: no memory. */
struct otlp_attribute *otlp_keep_attributes(struct otlp_decoder *d, uint32_t n);

/* request.c */
MUST_CHECK enum err_code otlp_decode_wire(struct arena *a, struct str raw, bool json,
	const struct otlp_options *options, struct otlp_request **out, struct err *err);

/* dictionary.c */
MUST_CHECK enum err_code otlp_dictionary_add(struct otlp_decoder *d, struct str message);

/* attributes.c: KeyValue and KeyValueAndUnit. */
MUST_CHECK enum err_code otlp_string(
	struct otlp_decoder *d, uint32_t index, const char *what, struct str *out);
MUST_CHECK enum err_code otlp_value(
	struct otlp_decoder *d, struct str any, struct otlp_attribute *out);
MUST_CHECK enum err_code otlp_key_value(
	struct otlp_decoder *d, struct str message, struct otlp_attribute *out);
/* The attribute of the dictionary, whatever its use. */
MUST_CHECK enum err_code otlp_entry_attribute(
	struct otlp_decoder *d, uint32_t index, struct otlp_attribute *out);
/* Finds out the use of an attribute of a sample, and what label it makes. */
MUST_CHECK enum err_code otlp_entry_use(
	struct otlp_decoder *d, uint32_t index, struct otlp_entry **out);

/* profile.c: one profile, to out. The dictionary is complete. */
MUST_CHECK enum err_code otlp_profile_decode(
	struct otlp_decoder *d, struct str message, struct otlp_profile *out);

/* layout.c: finds the numbering; all profiles of a request are looked at in turn. */
struct otlp_numbering {
	uint64_t right, shaped; /* samples */
};
struct otlp_layout {
	struct otlp_numbering old, new; /* before 1.10, and since */
	bool is_18; /* a profile is numbered as in 1.8 */
};
MUST_CHECK enum err_code otlp_layout_look(
	struct otlp_decoder *d, struct otlp_layout *l, struct str profile);
enum otlp_numbers otlp_layout_decide(const struct otlp_layout *l);

/* builder.c: the pprof profile at hand. */
MUST_CHECK enum err_code otlp_builder_open(struct otlp_decoder *d);
void otlp_builder_begin(struct otlp_decoder *d);
/* attributes: the labels' entries, ascending, each once. */
MUST_CHECK enum err_code otlp_builder_sample(struct otlp_decoder *d, uint32_t stack, uint32_t link,
	const uint32_t *attributes, uint32_t n, int64_t value);
struct otlp_types {
	uint32_t type, unit, period_type, period_unit; /* strings of the dictionary */
	uint64_t time, duration;
	int64_t period;
};
MUST_CHECK enum err_code otlp_builder_finish(
	struct otlp_decoder *d, const struct otlp_types *types, struct otlp_profile *out);

#endif
