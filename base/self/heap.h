/*
 * Heap: returns freed memory to the system.
 *
 * Threads: heap_tune is called once, before other threads are started.
 */
#ifndef BASE_SELF_HEAP_H
#define BASE_SELF_HEAP_H

/*
 * Makes malloc return large pieces when they are freed, and share few arenas between threads; else
 * it keeps the memory of the highest need, in holes.
 */
void heap_tune(void);

/*
 * Returns all free memory now; called after large work. Any thread, any time; others that allocate
 * wait for it.
 */
void heap_trim(void);

#endif
