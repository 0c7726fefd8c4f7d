/* The state of one decoding, shared by the files of the decoder. Private to proto/pprof_*.c. */
#ifndef PROTO_DECODER_H
#define PROTO_DECODER_H

#include "proto/id_table.h"
#include "proto/pprof.h"
#include "proto/wire.h"

enum profile_field {
	F_SAMPLE_TYPE = 1,
	F_SAMPLE,
	F_MAPPING,
	F_LOCATION,
	F_FUNCTION, /* up to here: messages */
	F_STRING_TABLE,
	F_DROP_FRAMES,
	F_KEEP_FRAMES,
	F_TIME_NANOS,
	F_DURATION_NANOS,
	F_PERIOD_TYPE,
	F_PERIOD,
	F_COMMENT,
	F_DEFAULT_SAMPLE_TYPE,
	F_DOC_URL,
	F_END
};

#define QUICK_BYTES 24 /* that a quick way reads beyond a message's end */

/* The place of a message in the body. */
struct pprof_span {
	uint32_t at, len;
};

/* The growth of an array: its capacity now, at first, and at most. */
struct growth {
	const char *what; /* "lines", for the error at the limit */
	size_t size; /* of an item */
	uint32_t cap, first, max;
};

struct decoder {
	struct arena *a;
	const struct pprof_limits *limits;
	struct pprof *p;
	struct str raw;
	/*
	 * Quick ways are taken for messages that end before, since they read words, and bytes beyond
	 * a message's end. They give up at what is rare or wrong, and the careful way decides.
	 */
	wire_pos quick_end;
	bool quick_ids; /* of locations: in order, of at most two bytes */
	struct err *err;
	enum err_code rc; /* of a failed decoder_grow */
	struct pprof_span *spans[F_FUNCTION + 1]; /* by profile_field */
	uint32_t spans_n[F_FUNCTION + 1];
	struct growth spans_growth[F_FUNCTION + 1];
	struct growth strings, comments, lines, labels, location_ids;
	uint64_t sample_bytes; /* of all samples */
	struct id_table mappings, functions, locations;
	/*
	 * If one is given twice, only the last counts and is checked, so they are checked at the end.
	 */
	uint64_t drop_frames, keep_frames, default_sample_type, doc_url, period_type, period_unit;
};

/*
 * Errors that all files return: bad wire format, no memory, a string that does not exist. i is
 * PPROF_NONE for a field of the profile itself.
 */
enum err_code decoder_wire_fail(struct decoder *d);
enum err_code decoder_no_memory(struct decoder *d);
enum err_code decoder_bad_string(
	struct decoder *d, uint64_t index, const char *kind, uint32_t i, const char *field);

/*
 * Copies an array of n items to a larger one. Returns NULL and sets d->rc if memory is out or the
 * limit is reached. The old array stays in the arena.
 */
void *decoder_grow(struct decoder *d, const void *old, uint32_t n, struct growth *g);

/*
 * Skips a field that the message's decoder did not take. NULL if it is a known field of a wrong
 * type.
 */
static inline wire_pos decoder_skip(uint64_t tag, unsigned known_fields, wire_pos at, wire_pos end)
{
	uint64_t number = tag >> 3;

	return number && number <= known_fields ? NULL : wire_skip(tag, at, end);
}

/*
 * Reads a message whose known fields are all numbers, 1 to n: fields[number] becomes the last value
 * given. Returns false if it is not well-formed.
 */
static inline bool decoder_numbers(wire_pos at, wire_pos end, uint64_t *fields, unsigned n)
{
	while (at < end) {
		uint64_t tag;

		if (!(at = wire_varint(at, end, &tag)))
			return false;
		if ((tag & 7) == WIRE_VARINT && (tag >> 3) - 1 < n)
			at = wire_varint(at, end, &fields[tag >> 3]);
		else
			at = decoder_skip(tag, n, at, end);
		if (!at)
			return false;
	}
	return true;
}

/* Reads a ValueType's two strings; the caller checks them. */
MUST_CHECK enum err_code decoder_type(
	struct decoder *d, wire_pos at, wire_pos end, uint64_t *type, uint64_t *unit);
/* Decodes sample types, mappings, functions, locations. */
MUST_CHECK enum err_code decoder_tables(struct decoder *d);
/* Decodes samples; the tables they refer to are complete. */
MUST_CHECK enum err_code decoder_samples(struct decoder *d);

#endif
