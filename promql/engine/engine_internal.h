/*
 * Engine, the inside of engine.h: a query's life, and the line it waits in. Private to promql/.
 *
 * Threads: the line's lock guards the lists and counts; a query's other fields belong to its
 * thread, but for stop, which the watcher sets.
 */
#ifndef PROMQL_ENGINE_ENGINE_INTERNAL_H
#define PROMQL_ENGINE_ENGINE_INTERNAL_H

#include "base/thread.h"
#include "promql/engine/engine.h"
#include "promql/files/files.h"
#include "promql/plan.h"
#include "promql/workers.h"
#include "tsdb/debuginfo/names/naming.h"

struct eval; /* promql/eval.h */

struct query {
	struct engine *engine;
	struct query_options o;
	struct budget memory; /* of all that the query uses */
	struct arena arena;
	struct parsed *parsed;
	struct db_querier *querier;
	struct naming *naming;
	struct file_set *files; /* NULL: none came with it */
	struct query_plan plan;
	struct infos infos; /* that the evaluation adds to the answer's */
	struct result result;
	int64_t began_ns, deadline_ns; /* monotonic */
	int64_t in_line_ns; /* that it waited for its turn */
	int64_t lost_ns; /* that a first evaluation took which gave its memory to others */
	const atomic_bool *cancel;
	atomic_bool stop; /* asks the evaluation to end */
	struct query *next; /* of the open ones; the engine's lock */
	struct query **previous; /* what points to it */
};

/* How long it has waited for memory that others had. */
int64_t query_starved_ns(const struct query *q);

struct engine {
	struct engine_options o;
	struct workers *workers;
	struct memory_pool *memory; /* of all queries; NULL: no limit */
	struct mutex lock; /* guards all below */
	struct cond changed;
	struct query *open; /* between query_run and query_close */
	unsigned running;
	size_t untrimmed_bytes; /* what queries used that ended since the heap was trimmed */
	atomic_bool closing; /* set under the lock, read anywhere */
	atomic_int_least64_t subquery_step_ns;
	struct thread watcher;
};

static inline int64_t engine_subquery_step(const struct engine *e)
{
	return atomic_load_explicit(&e->subquery_step_ns, memory_order_relaxed);
}

/* ---- steps.c ---- */

/*
 * At each step of the range, into a matrix: ascending by metric, in ev->work.whole. ev is planned;
 * its arena is changed.
 */
MUST_CHECK enum err_code steps_evaluate(
	struct eval *ev, struct cost_series **out, size_t *n, struct err *err);

/* ---- scrape.c ---- */

/* e is a selector of one series: its last profile in the window, whole. */
MUST_CHECK enum err_code eval_scrape(
	struct eval *ev, const struct expr *e, struct pprof **out, struct err *err);

/* ---- result.c ---- */

/* Evaluates what is parsed, once or step by step, into q->result. */
MUST_CHECK enum err_code query_evaluate(struct query *q, struct err *err);

/* ---- hints.c ---- */

/* The answer is empty: infos name what the selectors ask for and is not stored. */
MUST_CHECK enum err_code hints_add(struct query *q, struct eval *ev, struct err *err);

#endif
