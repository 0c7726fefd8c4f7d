/*
 * Workers: threads that queries share for work that splits into independent pieces.
 *
 * The thread that has such work does it itself, and idle workers help. So work ends even if none is
 * idle, and with more queries than cores each is as fast as without workers.
 *
 * Threads: any number call workers_run at once; a piece must not call it again.
 */
#ifndef PROMQL_WORKERS_H
#define PROMQL_WORKERS_H

#include "base/thread.h"

struct workers;

/* threads: that work on one query, the caller's too; 1: no others. */
MUST_CHECK enum err_code workers_open(unsigned threads, struct workers **out, struct err *err);
void workers_close(struct workers *w); /* NULL is fine */
unsigned workers_threads(const struct workers *w); /* NULL: 1 */

/*
 * fn(ctx, thread, i) for each i in [0, n), each once, in any order; `thread` is below
 * workers_threads, and no two pieces of one call run under the same at once. What the pieces did is
 * seen by the caller afterwards.
 */
typedef void (*work_fn)(void *ctx, unsigned thread, size_t i);
void workers_run(struct workers *w, size_t n, work_fn fn, void *ctx);

#endif
