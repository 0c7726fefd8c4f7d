/*
 * Heap: what malloc keeps.
 *
 * Threads: called once, before others are started.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

/* Large pieces go back to the system when they are freed, and threads share few arenas: else memory
 * that was needed once stays, in holes. */
void heap_tune(void);

#endif
