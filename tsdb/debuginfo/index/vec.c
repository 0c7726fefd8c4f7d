#include "tsdb/debuginfo/index/vec.h"

#include <stdlib.h>

#include "base/array.h"

bool vec_grow(struct vec *v)
{
	unsigned char *chunk;

	if (!array_room(&v->chunk, v->chunks, 1, &v->chunks_cap))
		return false;
	chunk = malloc(VEC_CHUNK * v->item_bytes);
	if (!chunk)
		return false;
	v->chunk[v->chunks++] = chunk;
	return true;
}

void vec_release(struct vec *v)
{
	for (size_t i = 0; i < v->chunks; i++)
		free(v->chunk[i]);
	free(v->chunk);
	*v = (struct vec){ .item_bytes = v->item_bytes };
}
