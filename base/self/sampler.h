/*
 * Sampler: interrupts each thread of this process after every period of its CPU time, and hands
 * over the stack.
 *
 * A POSIX timer per thread counts that thread's CPU clock and sends it SIGPROF. The handler copies
 * the registers and at most SAMPLER_STACK_BYTES of stack into a slot, by a system call that stops
 * at the first unmapped page; it does not allocate, lock or unwind. sampler_run drains the slots,
 * unwinds and calls back. If no slot is free, the sample is counted as lost.
 *
 * Threads are found in /proc/self/task, again every SAMPLER_SCAN_NS so that new ones join in;
 * without /proc only those that called sampler_thread_enter are known.
 *
 * Units:   nanoseconds of CPU time between two samples of a thread.
 * Errors:  ERR_UNAVAILABLE "cpu profiling already in use", ERR_CANCELED, ERR_NOMEM.
 * Threads: one sampler_run at a time in the process.
 */
#ifndef BASE_SELF_SAMPLER_H
#define BASE_SELF_SAMPLER_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/self/unwind.h"

#define SAMPLER_STACK_BYTES (64u << 10)
#define SAMPLER_SLOTS 64
#define SAMPLER_THREADS_MAX 1024
#define SAMPLER_SCAN_NS (100 * INT64_C(1000000))

struct sampler_stats {
	uint64_t samples, lost;
	size_t threads;
};

/* pcs leaf first; tid is the system's thread id. Called on the thread that runs sampler_run. */
typedef void (*sampler_fn)(void *ctx, int tid, const uint64_t *pcs, size_t n);

/* Runs for duration_ns, or until *cancel (may be NULL) is true: then ERR_CANCELED. */
MUST_CHECK enum err_code sampler_run(int64_t duration_ns, int64_t period_ns,
	const atomic_bool *cancel, const struct unwind_tables *tables, sampler_fn fn, void *ctx,
	struct sampler_stats *stats, struct err *err);

/* Hooks for base/thread.h. */
void sampler_thread_enter(const char *name);
void sampler_thread_leave(void);
/* The name of a thread, "" when it is not known; out has 16 bytes. */
void sampler_thread_name(int tid, char out[16]);

#endif
