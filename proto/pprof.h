/*
 * A pprof profile in memory: columns over one inflated body.
 *
 * pprof_decode is the hot path of ingestion: each byte is read once or twice, no string is copied,
 * ids become indexes. What it accepts and refuses is what google/pprof accepts and refuses (Parse
 * and CheckValid); the formats before protobuf are read by proto/legacy. pprof_encode is its
 * inverse for what we send.
 *
 * Indexes:   strings, mappings, functions, locations, lines and labels are arrays; a field that
 *            refers to one holds its index. `mapping` uses PPROF_NONE for none.
 * Units:     times in nanoseconds; values in the unit of their sample type.
 * Errors:    ERR_INVALID (the message names the field), ERR_LIMIT (names the limit), ERR_NOMEM.
 * Ownership: all arrays live in the arena given; strings point into the body, which must outlive
 *            the profile. They may hold any byte.
 * Threads:   immutable once made.
 * Source:    the field numbers of pprof's profile.proto; proto/profile.proto.
 */
#ifndef PROTO_PPROF_H
#define PROTO_PPROF_H

#include <inttypes.h>

#include "base/arena.h"
#include "base/str.h"

#define PPROF_NONE UINT32_MAX
/*
 * Frames of a stack, by default. Of deeper ones the leaf and what is next to it are kept, those at
 * the root are left out, and the sample is counted in stacks_cut.
 */
#define PPROF_STACK_DEPTH_MAX 4096
/* With the samples, as uint64_t. */
#define PPROF_STACKS_CUT \
	"%" PRIu64 " samples have more than 4096 frames: those at the root are left out"

struct pprof_type {
	uint32_t type, unit; /* strings */
};

struct pprof_mapping {
	uint64_t start, limit, offset;
	uint32_t filename, build_id; /* strings */
	bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
};

struct pprof_function {
	uint32_t name, system_name, filename; /* strings */
	int64_t start_line;
};

struct pprof_line {
	uint32_t function;
	int64_t line, column;
};

struct pprof_location {
	uint64_t address;
	uint32_t mapping;
	uint32_t line_first, line_n; /* lines[line_first..]: innermost inlined frame first */
	bool is_folded;
};

/*
 * A string if str is not 0, else a number. Decoded labels are never both: num and num_unit are 0
 * beside a string, and a label with neither is dropped.
 */
struct pprof_label {
	uint32_t key, str, num_unit; /* strings; 0: none */
	int64_t num;
};

struct pprof_sample {
	uint32_t location_first, location_n; /* into location_ids, leaf first */
	uint32_t label_first, label_n;
};

/* A span that was running: OTLP's link. Zeros: none. */
struct pprof_link {
	unsigned char trace_id[16], span_id[8];
};

struct pprof {
	struct str *strings; /* strings[0] is empty */
	uint32_t strings_n;
	struct pprof_type *types; /* one per value of a sample */
	uint32_t types_n;
	struct pprof_mapping *mappings;
	uint32_t mappings_n;
	struct pprof_function *functions;
	uint32_t functions_n;
	struct pprof_line *lines;
	uint32_t lines_n;
	struct pprof_location *locations;
	uint32_t locations_n;
	struct pprof_sample *samples;
	uint32_t samples_n;
	uint32_t *location_ids; /* of all samples, one after the other: indexes into locations */
	uint32_t location_ids_n;
	struct pprof_label *labels; /* of all samples */
	uint32_t labels_n;
	int64_t *values; /* samples_n rows of types_n */
	uint32_t *comments; /* strings */
	uint32_t comments_n;
	uint32_t drop_frames, keep_frames, default_sample_type, doc_url; /* strings */
	struct pprof_type period_type;
	int64_t time_nanos, duration_nanos, period;
	/* What pprof has no field for; pprof_encode leaves it out. */
	uint32_t stacks_cut; /* samples with more frames than the limit */
	const struct pprof_link *links; /* links[0] is none */
	uint32_t links_n;
	const uint32_t *sample_links; /* of each sample: of links; NULL: no sample has one */
};

struct pprof_limits {
	size_t body_bytes_max; /* as received */
	size_t raw_bytes_max; /* inflated */
	uint32_t samples_max;
	uint32_t elements_max; /* of each other kind, and of all location ids together x 16 */
	uint32_t stack_depth_max; /* beyond it stacks are cut; all else is refused */
	size_t arena_bytes_max; /* for the caller's arena */
};

/* 16 MiB body, 128 MiB raw, 1 M samples, 4 M elements, 4096 frames, 1 GiB. */
extern const struct pprof_limits pprof_limits_default;

/*
 * Turns a body as received into wire bytes: gzip (of one or more members), zstd and lz4 (frames)
 * are inflated, other bytes are passed through. *out points into `a` or is `body` itself. Refuses
 * what is compressed twice, bytes after the last member, an empty body.
 */
MUST_CHECK enum err_code pprof_inflate(struct arena *a, struct str body,
	const struct pprof_limits *limits, struct str *out, struct err *err);

MUST_CHECK enum err_code pprof_decode(struct arena *a, struct str raw,
	const struct pprof_limits *limits, struct pprof **out, struct err *err);

/*
 * What bytes are that are no pprof, and what to do with them: formats of other profilers, web
 * pages, archives. proto/foreign.c has the table. pprof_decode says it, and others do where they
 * refuse bytes themselves.
 */
struct foreign {
	const char *what; /* "a Go execution trace" */
	const char *advice; /* "go tool trace reads it"; NULL: there is none */
	bool is_read; /* as a file, and where it is pushed: proto/any */
};
const struct foreign *foreign_recognize(struct str raw); /* inflated; NULL: not known */
/* Of what is known: sets *err, "this is a web page", and returns ERR_INVALID. Else ERR_OK. */
enum err_code foreign_explain(struct str raw, struct err *err);
bool foreign_is_text(struct str raw); /* no control characters in its first 512 bytes */

/*
 * Appends the message in wire format, packed by protobuf-c; ids are index + 1. Zero-valued samples
 * are kept.
 */
MUST_CHECK enum err_code pprof_encode(const struct pprof *p, struct buf *out, struct err *err);

/*
 * Builder: makes a struct pprof piece by piece, for query results and our own profiler. Strings
 * are interned and copied; nothing else is deduplicated. All types come before the first sample.
 * pprof_builder_finish reports a failed allocation; until then calls do nothing and return 0.
 */
struct pprof_builder;
MUST_CHECK enum err_code pprof_builder_open(
	struct arena *a, struct pprof_builder **out, struct err *err);
uint32_t pprof_builder_string(struct pprof_builder *b, struct str s);
uint32_t pprof_builder_type(struct pprof_builder *b, struct str type, struct str unit);
uint32_t pprof_builder_mapping(struct pprof_builder *b, const struct pprof_mapping *m);
uint32_t pprof_builder_function(struct pprof_builder *b, const struct pprof_function *f);
/* Sets line_first and line_n from lines[0..n). */
uint32_t pprof_builder_location(struct pprof_builder *b, struct pprof_location location,
	const struct pprof_line *lines, uint32_t n);
/*
 * For callers that add each location once: its hash, and the equality of base/map.h. `key` is a
 * struct pprof_location_key that is not in `profile` yet, a struct pprof; `id` is one of its
 * locations.
 */
struct pprof_location_key {
	struct pprof_location l; /* all but line_first */
	const struct pprof_line *lines; /* l.line_n of them */
};
uint64_t pprof_location_hash(const struct pprof_location_key *key);
bool pprof_location_eq(const void *profile, const void *key, uint32_t id);
/* values: one per type. */
void pprof_builder_sample(struct pprof_builder *b, const uint32_t *locations, uint32_t locations_n,
	const struct pprof_label *labels, uint32_t labels_n, const int64_t *values);
/* Access to the fields that callers set: times, period, drop_frames, default_sample_type... */
struct pprof *pprof_builder_profile(struct pprof_builder *b);
void pprof_builder_comment(struct pprof_builder *b, struct str s);
MUST_CHECK enum err_code pprof_builder_finish(
	struct pprof_builder *b, struct pprof **out, struct err *err);

/*
 * All samples of n profiles in one, with the sample types of all: a sample is 0 in those that its
 * profile does not have. Nothing is added up or deduplicated but strings and types; samples keep
 * their links, whose table all share. The period is the first's, the time the earliest, the
 * duration the longest; comments are left out. n > 0.
 */
MUST_CHECK enum err_code pprof_concat(
	struct arena *a, const struct pprof *const *p, size_t n, struct pprof **out, struct err *err);
/* The column of `p` with the type of column third of `of`; PPROF_NONE: it has none. */
uint32_t pprof_same_type(const struct pprof *p, const struct pprof *of, uint32_t third);

#endif
