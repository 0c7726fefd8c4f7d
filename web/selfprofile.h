/*
 * The profile of this process: sampled stacks of its own threads as pprof.
 *
 * A timer interrupts each thread after a given CPU time of its own. The signal handler only copies
 * registers and a bounded piece of the stack. Unwinding by .eh_frame and naming by the symbol table
 * happen afterwards, outside the handler.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_UNAVAILABLE ("cpu profiling already in use": one capture at a time), ERR_CANCELED.
 * Threads:   any.
 */
#ifndef WEB_SELFPROFILE_H
#define WEB_SELFPROFILE_H

#include <stdatomic.h>

#include "base/str.h"

/* Before the first thread is started: installs the thread hooks. */
void selfprofile_init(void);

/*
 * Samples for duration_ns, hz times per second of a thread's CPU; appends gzipped pprof to *out.
 * cancel may be NULL.
 */
MUST_CHECK enum err_code selfprofile_capture(
	int64_t duration_ns, unsigned hz, const atomic_bool *cancel, struct buf *out, struct err *err);

#endif
