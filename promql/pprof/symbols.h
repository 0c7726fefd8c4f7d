/*
 * Symbols of partitions as a pprof profile has them: each mapping, function and location once, also
 * where several partitions (jobs, or epochs of one) have it.
 *
 * Only what is asked for is added, with what it refers to.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT of the arena.
 * Ownership: everything is the builder's and the arena's; pprof_symbols_release ends the maps.
 * Threads:   one at a time.
 */
#ifndef PROMQL_PPROF_SYMBOLS_H
#define PROMQL_PPROF_SYMBOLS_H

#include "base/map.h"
#include "promql/value/value.h"

struct symbol_table;

struct pprof_symbols {
	struct arena *arena;
	struct pprof_builder *builder;
	struct symbol_table *tables; /* one per partition */
	struct map mappings, functions, locations; /* by content: indexes in the profile */
	uint32_t *ordinals; /* per mapping of the profile */
	uint32_t ordinals_cap;
};

void pprof_symbols_init(struct pprof_symbols *s, struct arena *a, struct pprof_builder *b);
void pprof_symbols_release(struct pprof_symbols *s);

/* A partition's ids; where its processes had their mappings is taken from the part's headers. */
MUST_CHECK enum err_code pprof_symbols_table(
	struct pprof_symbols *s, const struct part *part, struct symbol_table **out, struct err *err);
MUST_CHECK enum err_code pprof_symbols_mapping(
	struct pprof_symbols *s, struct symbol_table *t, uint32_t id, uint32_t *out, struct err *err);
MUST_CHECK enum err_code pprof_symbols_location(
	struct pprof_symbols *s, struct symbol_table *t, uint32_t id, uint32_t *out, struct err *err);

#endif
