/*
 * Heap: what malloc keeps.
 *
 * Threads: heap_tune is called once, before others are started.
 */
#ifndef BASE_SELF_HEAP_H
#define BASE_SELF_HEAP_H

/* Large pieces go back to the system when they are freed, and threads share few arenas: else memory
 * that was needed once stays, in holes. */
void heap_tune(void);

/* What is free goes back to the system, now: after something large. Any thread, any time; others
 * that allocate wait for it. */
void heap_trim(void);

#endif
