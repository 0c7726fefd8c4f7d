#include "promql/engine/engine_internal.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory_pool.h"
#include "base/metrics.h"
#include "base/self/heap.h"
#include "promql/syntax/check.h"

#define WATCH_NS (20 * NS_PER_MS) /* how late a cancel may be seen */
#define TIMEOUT_DEFAULT_NS (2 * NS_PER_MIN)
#define LOOKBACK_DEFAULT_NS (5 * NS_PER_MIN)
#define CONCURRENCY_DEFAULT 20
#define THREADS_MAX 256u
#define SAMPLES_DEFAULT UINT64_C(2000000000)
#define MEMORY_DEFAULT ((size_t)1 << 30)
#define WAIT_TOLD_NS NS_PER_S
/* Free memory goes back to the system after one query of this size, or several together. */
#define LARGE_BYTES ((size_t)64 << 20)
#define UNTRIMMED_BYTES_MAX ((size_t)256 << 20)

METRIC_HISTOGRAM(
	query_seconds, "epimetheus_query_duration_seconds", "Time queries take to evaluate.", NULL);
METRIC_GAUGE(queries_running, "epimetheus_queries", "Queries being evaluated.", NULL);
METRIC_GAUGE(memory_used, "epimetheus_query_memory_bytes", "Memory that queries hold now.", NULL);
METRIC_GAUGE(memory_limit, "epimetheus_query_memory_limit_bytes",
	"Memory that all queries may hold together; 0: no limit.", NULL);
METRIC_COUNTER(memory_refused, "epimetheus_query_memory_refused_total",
	"Queries that ran out of memory beside others; again: retried alone.", "result");
METRIC_COUNTER(wait_seconds, "epimetheus_query_wait_seconds_total",
	"Time that queries waited for others: for their turn, for memory.", "for");
METRIC_COUNTER(queries_total, "epimetheus_queries_total", "Queries evaluated.", "result");

/* ---- watching ---- */

static bool engine_is_asked_to_stop(const struct query *q, int64_t now)
{
	return atomic_load(&q->engine->closing) || now >= q->deadline_ns ||
		(q->cancel && atomic_load_explicit(q->cancel, memory_order_relaxed));
}

/* Passes deadlines and the flags of others on to the one flag that long loops look at. */
static void engine_watch(void *ctx)
{
	struct engine *e = ctx;
	int64_t now;

	mutex_lock(&e->lock);
	while (!atomic_load(&e->closing) || e->open) {
		now = clock_monotonic_ns();
		for (struct query *q = e->open; q; q = q->next)
			if (engine_is_asked_to_stop(q, now))
				atomic_store(&q->stop, true);
		if (e->open)
			cond_wait_until(&e->changed, &e->lock, now + WATCH_NS);
		else
			cond_wait(&e->changed, &e->lock);
	}
	mutex_unlock(&e->lock);
}

void engine_set_subquery_step(struct engine *e, int64_t step_ns)
{
	if (step_ns > 0)
		atomic_store_explicit(&e->subquery_step_ns, step_ns, memory_order_relaxed);
}

void engine_memory(struct engine *e, size_t *used_bytes, size_t *max_bytes)
{
	struct memory_pool_state s = { 0 };

	if (e->memory)
		s = memory_pool_look(e->memory);
	*used_bytes = s.used_bytes;
	*max_bytes = s.max_bytes;
}

static void engine_collect(void *ctx)
{
	size_t used, max;

	engine_memory(ctx, &used, &max);
	metric_set(&memory_used, NULL, (double)used);
	metric_set(&memory_limit, NULL, (double)max);
}

enum err_code engine_open(const struct engine_options *o, struct engine **out, struct err *err)
{
	struct engine *e = calloc(1, sizeof(*e));
	enum err_code rc;

	if (!e)
		return err_nomem(err, "query engine");
	e->o = *o;
	if (e->o.timeout_ns <= 0)
		e->o.timeout_ns = TIMEOUT_DEFAULT_NS;
	if (e->o.lookback_ns <= 0)
		e->o.lookback_ns = LOOKBACK_DEFAULT_NS;
	if (e->o.concurrency_max == 0)
		e->o.concurrency_max = CONCURRENCY_DEFAULT;
	if (e->o.samples_max == 0)
		e->o.samples_max = SAMPLES_DEFAULT;
	if (e->o.memory_bytes_max == 0)
		e->o.memory_bytes_max = MEMORY_DEFAULT;
	if (e->o.wait_told_ns == 0)
		e->o.wait_told_ns = WAIT_TOLD_NS;
	engine_set_subquery_step(e, o->subquery_step_ns ? o->subquery_step_ns : NS_PER_MIN);
	mutex_init(&e->lock);
	cond_init(&e->changed);
	if (e->o.threads_max == 0)
		e->o.threads_max = cpu_count();
	if (e->o.threads_max > THREADS_MAX)
		e->o.threads_max = THREADS_MAX;
	if (e->o.memory_total_max &&
		(rc = memory_pool_open(
			 e->o.memory_total_max, "--query.max-memory-total", &e->memory, err))) {
		engine_close(e);
		return rc;
	}
	if ((rc = workers_open(e->o.threads_max, &e->workers, err)) ||
		(rc = thread_start(&e->watcher, "query-watch", engine_watch, e, err))) {
		engine_close(e);
		return rc;
	}
	metric_collector_add(engine_collect, e);
	*out = e;
	return ERR_OK;
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	metric_collector_remove(engine_collect, e);
	mutex_lock(&e->lock);
	atomic_store(&e->closing, true);
	cond_broadcast(&e->changed);
	mutex_unlock(&e->lock);
	thread_join(&e->watcher); /* ends when the last query is closed */
	workers_close(e->workers);
	memory_pool_close(e->memory);
	cond_destroy(&e->changed);
	mutex_destroy(&e->lock);
	free(e);
}

/* ---- the line ---- */

enum err_code query_stopped(const struct query *q, const char *where, struct err *err)
{
	if (clock_monotonic_ns() >= q->deadline_ns)
		return err_set(err, ERR_TIMEOUT, "query timed out in %s", where);
	if (atomic_load(&q->engine->closing))
		return err_set(err, ERR_UNAVAILABLE, "the server is shutting down");
	return err_set(err, ERR_CANCELED, "query was canceled in %s", where);
}

static enum err_code engine_enter(struct query *q, struct err *err)
{
	int64_t start = clock_monotonic_ns();
	struct engine *e = q->engine;
	enum err_code rc = ERR_OK;

	memory_pool_idle(&q->memory, true);
	mutex_lock(&e->lock);
	while (e->running >= e->o.concurrency_max && !engine_is_asked_to_stop(q, clock_monotonic_ns()))
		cond_wait_until(&e->changed, &e->lock, clock_monotonic_ns() + WATCH_NS);
	if (engine_is_asked_to_stop(q, clock_monotonic_ns()))
		rc = query_stopped(q, "query queue", err);
	else
		metric_set(&queries_running, NULL, ++e->running);
	mutex_unlock(&e->lock);
	memory_pool_idle(&q->memory, false);
	q->in_line_ns += clock_monotonic_ns() - start;
	return rc;
}

static void engine_leave(struct query *q)
{
	struct engine *e = q->engine;

	mutex_lock(&e->lock);
	metric_set(&queries_running, NULL, --e->running);
	cond_broadcast(&e->changed);
	mutex_unlock(&e->lock);
}

void query_close(struct query *q)
{
	struct engine *e;
	bool trim;

	if (!q)
		return;
	e = q->engine;
	naming_close(q->naming);
	db_querier_close(q->querier);
	file_set_close(q->files);
	parsed_release(q->parsed);
	arena_release(&q->arena);
	memory_pool_leave(&q->memory);
	mutex_lock(&e->lock);
	e->untrimmed_bytes += q->memory.peak_bytes;
	trim = q->memory.peak_bytes >= LARGE_BYTES || e->untrimmed_bytes >= UNTRIMMED_BYTES_MAX;
	if (trim)
		e->untrimmed_bytes = 0;
	*q->previous = q->next;
	if (q->next)
		q->next->previous = q->previous;
	cond_broadcast(&e->changed);
	mutex_unlock(&e->lock);
	free(q);
	if (trim)
		heap_trim();
}

/* ---- running ---- */

static enum err_code query_options_check_range(const struct query_options *o, struct err *err)
{
	if (o->step_ns < 0)
		return err_set(err, ERR_INVALID,
			"zero or negative query resolution step widths are not "
			"accepted. Try a positive integer");
	if ((o->step_ns > 0 || o->has_span) && o->end_ns < o->start_ns)
		return err_set(err, ERR_INVALID, "end timestamp must not be before start time");
	if (o->step_ns > 0 && (o->end_ns - o->start_ns) / o->step_ns > ENGINE_POINTS_MAX)
		return err_set(err, ERR_LIMIT,
			"exceeded maximum resolution of %d points per "
			"timeseries. Try decreasing the query resolution (?step=XX)",
			ENGINE_POINTS_MAX);
	return ERR_OK;
}

static enum err_code engine_run(struct query *q, struct err *err)
{
	enum err_code rc;

	if ((rc = query_options_check_range(&q->o, err)))
		return rc;
	if ((rc = parse_query(&q->arena, q->o.text, &q->parsed, NULL, err)))
		return rc;
	if ((rc = check_query(q->parsed, NULL, err)))
		return rc;
	if ((rc = engine_enter(q, err)))
		return rc;
	rc = query_evaluate(q, err);
	engine_leave(q);
	if (rc == ERR_CANCELED)
		rc = query_stopped(q, "expression evaluation", err);
	return rc;
}

static bool engine_gives_up(const void *ctx)
{
	return engine_is_asked_to_stop(ctx, clock_monotonic_ns());
}

int64_t query_starved_ns(const struct query *q)
{
	return q->lost_ns + memory_pool_waited_ns(&q->memory);
}

static struct query *query_new(
	struct engine *e, const struct query_options *o, const atomic_bool *cancel, int64_t deadline_ns)
{
	struct query *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->engine = e;
	q->o = *o;
	q->cancel = cancel;
	q->began_ns = clock_monotonic_ns();
	q->deadline_ns = deadline_ns;
	q->memory = (struct budget){ .max_bytes = e->o.memory_bytes_max, .flag = "--query.max-memory" };
	if (e->memory)
		memory_pool_join(e->memory, &q->memory, engine_gives_up, q);
	arena_init_shared(&q->arena, &q->memory);
	mutex_lock(&e->lock);
	q->next = e->open;
	q->previous = &e->open;
	if (e->open)
		e->open->previous = &q->next;
	e->open = q;
	cond_broadcast(&e->changed);
	mutex_unlock(&e->lock);
	return q;
}

/*
 * A query that had to free its memory for others begins again, once, and then others free theirs
 * for it. Evaluating changes nothing, so the second time is as good as the first.
 */
static enum err_code engine_run_again(struct query **q, struct err *err)
{
	int64_t began = (*q)->began_ns, in_line = (*q)->in_line_ns;
	struct query *again;

	if (engine_gives_up(*q))
		return err->code;
	again = query_new((*q)->engine, &(*q)->o, (*q)->cancel, (*q)->deadline_ns);
	if (!again)
		return err_nomem(err, "query");
	query_close(*q);
	*q = again;
	if (!memory_pool_become_elder(&again->memory))
		return err->code;
	metric_add(&memory_refused, "again", 1);
	again->in_line_ns = in_line;
	again->lost_ns = clock_monotonic_ns() - began - in_line;
	return engine_run(again, err);
}

enum err_code query_run_cancelable(struct engine *e, const struct query_options *o,
	const atomic_bool *cancel, struct query **out, struct err *err)
{
	int64_t start = clock_monotonic_ns(), timeout = e->o.timeout_ns;
	struct query *q;
	struct err why;
	enum err_code rc;

	if (o->timeout_ns > 0 && o->timeout_ns < timeout)
		timeout = o->timeout_ns;
	if (!(q = query_new(e, o, cancel, start + timeout)))
		return err_nomem(err, "query");
	rc = engine_run(q, &why);
	if (rc && memory_pool_was_short(&q->memory))
		rc = engine_run_again(&q, &why);
	if (rc && q->memory.place.refusal != BUDGET_NOT_REFUSED)
		metric_add(&memory_refused, "failed", 1);
	metric_add(&wait_seconds, "turn", (double)q->in_line_ns / 1e9);
	metric_add(&wait_seconds, "memory", (double)query_starved_ns(q) / 1e9);
	metric_observe(&query_seconds, NULL, (double)(clock_monotonic_ns() - start) / 1e9);
	metric_add(&queries_total, rc ? err_code_name(rc) : "ok", 1);
	if (rc) {
		query_close(q);
		err_copy(err, &why);
		return rc;
	}
	*out = q;
	return ERR_OK;
}

enum err_code query_run(
	struct engine *e, const struct query_options *o, struct query **out, struct err *err)
{
	return query_run_cancelable(e, o, NULL, out, err);
}

const struct result *query_result(const struct query *q)
{
	return &q->result;
}

const atomic_bool *query_stop_flag(const struct query *q)
{
	return &q->stop;
}

struct arena *query_arena(struct query *q)
{
	return &q->arena;
}

void query_explain_json(const struct query *q, struct json *j)
{
	plan_json(j, q->parsed, &q->plan);
}

void query_explain_print(const struct query *q, struct buf *out)
{
	plan_print(out, q->parsed, &q->plan);
}
