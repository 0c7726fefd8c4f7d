/*
 * One profile being turned into ids. Private to symbols_intern.c (tables), symbols_known.c (names
 * and locations that the partition has) and symbols_samples.c.
 */
#ifndef TSDB_SYMBOLS_INTERN_H
#define TSDB_SYMBOLS_INTERN_H

#include "tsdb/symbols/partition.h"

struct look; /* private to symbols_samples.c, as is what struct intern has of it */
struct upper;
struct set_seen;

struct intern {
	struct partition *p;
	const struct pprof *f;
	struct arena *arena;
	struct err *err;
	uint32_t *strings, *mappings, *functions, *locations; /* SYM_NONE: not asked for yet */
	uint32_t *guess; /* locations that may be these, or SYM_NONE */
	struct look *looks;
	uint32_t looks_n;
	uint64_t *weights; /* of frames in a stack's hash, by depth from the leaf */
	uint64_t *marks; /* of locations: see symbols_samples_marks_of; 0: not made yet */
	struct upper *uppers; /* by node's hash */
	unsigned uppers_shift;
	const struct pprof_sample *walked; /* the last one; its nodes, root first: */
	uint32_t *path;
	struct sym_line *lines;
	uint32_t lines_cap;
	struct sym_label *labels;
	uint32_t labels_cap;
	struct set_seen *seen; /* by hash */
};

static inline enum err_code intern_nomem(struct intern *in)
{
	return arena_fail(in->arena, "storing a profile", in->err);
}

/* Ids of n things, none known: SYM_NONE. NULL: no memory. */
uint32_t *intern_ids(struct arena *a, uint32_t n);
/* Address, mapping and lines: the key of a location. in->mappings are there. */
struct sym_location intern_location_key(
	const struct intern *in, const struct pprof_location *from, const struct sym_line *first);
/* Finds what the partition has already, and adds nothing. */
MUST_CHECK enum err_code known_find(struct intern *in);
/* The id of a location that the partition has, or SYM_NONE: it may have it all the same. */
uint32_t known_location(struct intern *in, uint32_t at);
/* The id of the profile's string or location at this index; in->locations keeps it. */
MUST_CHECK enum err_code intern_string(struct intern *in, uint32_t at, uint32_t *id);
MUST_CHECK enum err_code intern_location(struct intern *in, uint32_t at, uint32_t *id);
/* Samples that have a value, in the profile's order; out has room for all. */
MUST_CHECK enum err_code intern_samples(struct intern *in, struct interned *out);

#endif
