#include "base/self/heap.h"

#include <malloc.h>

/*
 * glibc raises its threshold for mappings to whatever was freed last, up to 32 MiB, so that buffers
 * of a compaction or a query are carved from an arena later on, and small pieces that stay hold all
 * of it. And it has eight arenas a core, each with holes of its own. Said once, both stay.
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
