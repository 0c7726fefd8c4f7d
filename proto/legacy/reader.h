/* The state of one decoding, shared by the files of proto/legacy. Private to them. */
#ifndef PROTO_LEGACY_READER_H
#define PROTO_LEGACY_READER_H

#include "base/map.h"
#include "proto/legacy/legacy.h"

struct legacy_reader {
	struct arena *a;
	const struct pprof_limits *limits;
	struct err *err;
	const char *name; /* of the format, for errors */
	struct pprof_builder *b;
	struct pprof *p; /* the builder's */
	struct map by_address; /* ids of locations */
	uint64_t seed; /* of its hashes */
	/* A text: the line at hand without its end, and what follows it. */
	struct str line, rest;
	uint64_t line_n; /* from 1; 0: none yet */
	bool ended; /* there was no line more */
	uint32_t *stack; /* of the sample at hand */
	uint32_t stack_n, stack_cap;
	bool stack_is_cut; /* the sample has more frames than the limit */
	/* Memory map, in the order of the text. */
	struct pprof_mapping *maps;
	uint32_t maps_n, maps_cap;
	uint32_t dollars_n; /* in it, after its first attribute */
};

/* The format of an inflated body, "heap profile (text)"; NULL if it is none. Reads little of it. */
const char *legacy_name(struct str raw);

/* Says what is wrong with the line at hand. */
enum err_code reader_bad_line(struct legacy_reader *r, const char *what);
enum err_code reader_limit(struct legacy_reader *r, const char *what, uint32_t max);

/* Goes to the next line. False at the end, where the line is empty. */
bool reader_next(struct legacy_reader *r);
bool line_is_blank(struct str line); /* or a comment */
bool line_is_maps(struct str line); /* the memory map follows */
bool line_has_prefix(struct str line, const char *prefix);

/* The length of the run of digits at s.ptr + i. */
size_t run_digits(struct str s, size_t i);
size_t run_hex(struct str s, size_t i); /* of either case */
size_t run_spaces(struct str s, size_t i); /* of ' ' only */
static inline char legacy_at(struct str s, size_t i)
{
	return i < s.len ? s.ptr[i] : '\0';
}
/* Decimal with a '-' or without. */
bool number_i64(struct str s, int64_t *out);
/* As Go's ParseInt with base 0, but for underscores: 10, -10, 0x1f, 0o17, 017, 0b11. */
bool number_any_base(struct str s, int64_t *out);
bool number_hex(struct str s, uint64_t *out);

/*
 * The sample at hand: its addresses from leaf to root, then its values. `back` is subtracted from
 * an address: 1 from that of a return, to be in the call.
 */
void sample_begin(struct legacy_reader *r);
MUST_CHECK enum err_code sample_address(struct legacy_reader *r, uint64_t address, unsigned back);
/* Adds each 0x... of a text; the first loses back_first. */
MUST_CHECK enum err_code sample_addresses(
	struct legacy_reader *r, struct str text, unsigned back_first, unsigned back);
/* bytes: of one object, a label; 0: none. */
MUST_CHECK enum err_code sample_end(struct legacy_reader *r, const int64_t *values, int64_t bytes);

/*
 * Reads the lines after the one at hand as a memory map, and finds the mapping of each location.
 * reader_sections first skips the lines until the map begins.
 */
MUST_CHECK enum err_code reader_maps(struct legacy_reader *r);
MUST_CHECK enum err_code reader_sections(struct legacy_reader *r);
/* Removes the second address of a stack where it repeats the first. */
void reader_drop_repeated_leaves(struct legacy_reader *r);

/*
 * The formats. Each is called with the reader at the body's start, after reader_next where it is a
 * text; *is tells whether the body is of the format. If not, the reader may be anywhere.
 */
MUST_CHECK enum err_code legacy_cpu(struct legacy_reader *r, struct str raw, bool *is);
MUST_CHECK enum err_code legacy_heap(struct legacy_reader *r, bool *is);
MUST_CHECK enum err_code legacy_jemalloc(struct legacy_reader *r, bool *is);
MUST_CHECK enum err_code legacy_counts(struct legacy_reader *r, bool *is);
MUST_CHECK enum err_code legacy_threads(struct legacy_reader *r, bool *is);
MUST_CHECK enum err_code legacy_contentions(struct legacy_reader *r, bool *is);

#endif
