#include "base/self/heap.h"

#include <malloc.h>

/*
 * glibc raises its threshold for mappings to the size of the last freed piece, up to 32 MiB. Then
 * it takes buffers of a compaction or a query from an arena, and small pieces that stay keep all of
 * it in use. And it has eight arenas per core, each with its own holes. Setting both values once
 * fixes them.
 */
#define ARENAS_MAX 2
#define MAPPED_BYTES (1 << 20)
#define TRIM_BYTES (1 << 20)

void heap_tune(void)
{
#ifdef M_ARENA_MAX /* glibc's */
	mallopt(M_ARENA_MAX, ARENAS_MAX);
	mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
	mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
#endif
}

void heap_trim(void)
{
#ifdef M_TRIM_THRESHOLD
	malloc_trim(0);
#endif
}
