/*
 * One profile being turned into ids. Private to
 * tsdb/symbols/symbols_intern.c (tables) and tsdb/symbols/symbols_samples.c.
 */
#ifndef TSDB_SYMBOLS_INTERN_H
#define TSDB_SYMBOLS_INTERN_H

#include "tsdb/symbols/partition.h"

struct look; /* private to symbols_samples.c, as is what struct intern has of it */
struct set_seen;

struct intern {
	struct partition *p;
	const struct pprof *f;
	struct arena *arena;
	struct err *err;
	uint32_t *strings, *mappings, *functions, *locations; /* SYM_NONE: not asked for yet */
	uint32_t *guess; /* what locations probably are, or MAP_NONE */
	struct look *looks;
	uint32_t looks_n;
	uint64_t *hashes; /* of the stack before, root first */
	uint32_t *path; /* its nodes */
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

/* The id of the profile's string or location at this index; in->locations keeps it. */
MUST_CHECK enum err_code intern_string(struct intern *in, uint32_t at, uint32_t *id);
MUST_CHECK enum err_code intern_location(struct intern *in, uint32_t at, uint32_t *id);
/* Samples that have a value, in the profile's order; out has room for all. */
MUST_CHECK enum err_code intern_samples(struct intern *in, struct interned *out);

#endif
