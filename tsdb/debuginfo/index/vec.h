/*
 * Vec: an array in chunks. It grows without moving its items, so it never needs twice its memory.
 *
 * Errors:    false: out of memory, nothing changed.
 * Ownership: vec_release frees; the vec is empty then.
 * Threads:   one.
 */
#ifndef TSDB_DEBUGINFO_INDEX_VEC_H
#define TSDB_DEBUGINFO_INDEX_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VEC_CHUNK_LOG2 13
#define VEC_CHUNK (1u << VEC_CHUNK_LOG2) /* items */

struct vec {
	unsigned char **chunk;
	size_t chunks, chunks_cap;
	size_t n, item_bytes;
};

static inline void *vec_at(const struct vec *v, size_t i)
{
	return v->chunk[i >> VEC_CHUNK_LOG2] + (i & (VEC_CHUNK - 1)) * v->item_bytes;
}

bool vec_grow(struct vec *v);

/* Room for an item at index n. */
static inline bool vec_room(struct vec *v)
{
	return v->n < v->chunks << VEC_CHUNK_LOG2 || vec_grow(v);
}

void vec_release(struct vec *v); /* item_bytes stays */

#endif
