/*
 * Set of ids: few of them in a sorted list, many of them in bits, whatever takes less memory.
 *
 * Up to two ids need no memory beside the struct: most values of labels have one series. The list
 * becomes bits when those are smaller, and bits become a list when an id far away comes. So a set
 * takes at most about 6 bytes an id, and at most twice the bits of all ids.
 *
 * Errors:    false: out of memory; the set is as before.
 * Ownership: id_set_release frees. A zeroed struct is the empty set.
 * Threads:   the user's lock guards it.
 */
#ifndef TSDB_SERIES_ID_SET_H
#define TSDB_SERIES_ID_SET_H

#include "base/err.h"
#include "tsdb/symbols/segvec.h"

#define ID_SET_NONE UINT32_MAX
#define ID_SET_INLINE 2u

struct id_set {
	union {
		uint32_t few[ID_SET_INLINE]; /* cap 0; ascending */
		uint32_t *list; /* ascending */
		uint64_t *words; /* bits by id */
	};
	uint32_t n;
	uint32_t cap : 31; /* of the list; words of the bits */
	uint32_t is_bits : 1;
};

/* The id is not in it yet. */
MUST_CHECK bool id_set_add(struct id_set *s, uint32_t id);
bool id_set_remove(struct id_set *s, uint32_t id); /* false: it was not there */
void id_set_release(struct id_set *s);
size_t id_set_bytes(const struct id_set *s); /* beside the struct */

bool id_set_has(const struct id_set *s, uint32_t id);
uint32_t id_set_first(const struct id_set *s); /* the lowest; ID_SET_NONE: it is empty */
/* True if one of them is in b. */
bool id_set_meets(const struct id_set *s, const struct bits *b);
/* How many of them are in b. */
uint32_t id_set_count(const struct id_set *s, const struct bits *b);

/* Adds those that b has room for. */
void id_set_into(const struct id_set *s, struct bits *b);
/* Takes them out of b. */
void id_set_out_of(const struct id_set *s, struct bits *b);
/* Leaves in b those that are in the set too. */
void id_set_keep(const struct id_set *s, struct bits *b);

#endif
