/*
 * Maps the ids of a profile's mappings, functions or locations to indexes.
 *
 * Most writers number from 1 in order (Go, google/pprof), and then nothing is stored. Ids that
 * are small get an array; others (addresses, hashes) get an open-addressing table. Its hash has a
 * random seed, so that no target can choose ids that collide.
 *
 * Errors:    ERR_INVALID: an id is 0 or used twice. ERR_NOMEM and ERR_LIMIT from the arena.
 * Ownership: tables live in the arena; `ids` must outlive them.
 */
#ifndef PROTO_ID_TABLE_H
#define PROTO_ID_TABLE_H

#include "base/arena.h"
#include "proto/pprof.h"

struct id_table {
	const uint64_t *ids;
	uint32_t n;
	bool in_order; /* ids[i] == i + 1 */
	uint32_t *direct; /* index + 1 by id; 0: none */
	uint64_t direct_n;
	uint32_t *slots; /* index + 1; 0: free */
	uint64_t mask, seed;
};

/* kind names the field in messages: "location". */
MUST_CHECK enum err_code id_table_init(struct id_table *t, struct arena *a, const char *kind,
	const uint64_t *ids, uint32_t n, struct err *err);

uint32_t id_table_find_hashed(const struct id_table *t, uint64_t id);

/* PPROF_NONE if no element has the id. */
static inline uint32_t id_table_find(const struct id_table *t, uint64_t id)
{
	if (t->in_order)
		return id - 1 < t->n ? (uint32_t)(id - 1) : PPROF_NONE;
	if (t->direct)
		return id < t->direct_n ? t->direct[id] - 1 : PPROF_NONE;
	return id_table_find_hashed(t, id);
}

#endif
