/*
 * The pprof profile at hand, shared by builder.c and elements.c. Private to both.
 *
 * Arrays are in the arena. A finished profile keeps its items, and the next one goes on behind
 * them; one that is left out gives its room to the next.
 *
 * For each table of the dictionary there is an array of numbers, which says under which index an
 * element is in the profile. A number is valid if it has the epoch of the profile, so nothing is
 * cleared between profiles, and a profile costs what it uses.
 */
#ifndef PROTO_OTLP_BUILDER_H
#define PROTO_OTLP_BUILDER_H

#include "proto/otlp/decoder.h"

struct number {
	uint32_t epoch, id;
};

struct label_number {
	uint32_t epoch, key, str, unit;
};

struct otlp_row {
	uint64_t hash;
	uint32_t stack, link;
	int64_t value;
};

struct otlp_builder {
	uint32_t epoch; /* of the profile at hand; the first is 1 */
	struct number *strings, *functions, *mappings, *locations; /* by the dictionary's */
	struct label_number *labels; /* by the dictionary's attributes */
	struct pprof p; /* without values */
	struct otlp_row *rows; /* of p.samples */
	uint32_t *attributes; /* of p.labels */
	uint32_t *slots, slots_n; /* sample + 1 by hash; 0: free */
	uint32_t strings_cap, functions_cap, mappings_cap, locations_cap, lines_cap, samples_cap;
	uint32_t location_ids_cap, labels_cap, rows_cap, attributes_cap;
};

/* elements.c: what a profile uses of the dictionary. *out is an index of the profile. */
MUST_CHECK enum err_code otlp_add_string(struct otlp_decoder *d, struct str s, uint32_t *out);
MUST_CHECK enum err_code otlp_use_string(
	struct otlp_decoder *d, uint32_t index, const char *what, uint32_t *out);
/* There is room for the location in the profile. */
MUST_CHECK enum err_code otlp_use_location(struct otlp_decoder *d, uint32_t index, uint32_t *out);
/* Counts frames and lines against the limit on both. */
MUST_CHECK enum err_code otlp_count_frames(struct otlp_decoder *d, uint32_t n);

#endif
