/*
 * Engine: evaluates queries against a database.
 *
 * Units:     nanoseconds since 1970.
 * Errors:    ERR_INVALID (the query's text or types: "1:6: flat() needs profiles, got costs"),
 *            ERR_LIMIT (samples, memory, points; the message names the flag), ERR_TIMEOUT,
 *            ERR_CANCELED, ERR_UNAVAILABLE (no memory is left beside other queries), what the
 *            database returns.
 * Ownership: the result lives in the arena and in the query; query_close ends both halves after
 *            rendering.
 * Threads:   any number of queries at once; one query belongs to one thread; the flag of
 *            query_run_cancelable is set by any.
 */
#ifndef PROMQL_ENGINE_ENGINE_H
#define PROMQL_ENGINE_ENGINE_H

#include "promql/value/value.h"

struct index_cache;
struct file_finder;
struct engine;
struct query;

struct engine_options {
	struct db *db;
	struct index_cache *indexes; /* names of addresses; NULL: there are none */
	int64_t timeout_ns; /* --query.timeout, default 2m */
	int64_t lookback_ns; /* --query.lookback-delta, default 5m */
	unsigned concurrency_max; /* --query.max-concurrency, default 20; more wait in line */
	uint64_t samples_max; /* --query.max-samples added per query, default 2,000,000,000 */
	unsigned threads_max; /* --query.max-threads that work on one query; 0: as many as cores */
	uint64_t parallel_samples; /* fewer are not split; 0: the default; for tests */
	/* 0: an hour; windows from which on rates look for sums over many series; for tests */
	int64_t rate_groups_ns;
	size_t memory_bytes_max; /* --query.max-memory: per query, default 1 GiB */
	size_t memory_total_max; /* --query.max-memory-total: all together; 0: no limit */
	int64_t subquery_step_ns; /* of [1h:]; 0: a minute */
	int64_t wait_told_ns; /* infos tell longer waits for others; 0: a second; for tests */
};

MUST_CHECK enum err_code engine_open(
	const struct engine_options *o, struct engine **out, struct err *err);
void engine_close(struct engine *e); /* cancels what runs, waits for it */

/* Queries that begin from now on: global.evaluation_interval changes at a reload. Any thread. */
void engine_set_subquery_step(struct engine *e, int64_t step_ns);

/* Memory that all queries use now, and may use together (0: no limit). */
void engine_memory(struct engine *e, size_t *used_bytes, size_t *max_bytes);

#define ENGINE_POINTS_MAX 11000

struct query_options {
	struct str text;
	/*
	 * Instant: t_ns alone. Span (query with start and end): bare selectors take (start, end],
	 * evaluated at end. Range: step_ns > 0, evaluated at start, start + step, .., end; bare
	 * selectors take (t-step, t].
	 */
	int64_t t_ns;
	bool has_span;
	int64_t start_ns, end_ns, step_ns;
	int64_t timeout_ns; /* 0: the engine's; never longer than it */
	size_t limit; /* elements of a vector or matrix; 0: no limit */
	bool keep_sample_labels; /* also if the query needs none: for format=pprof */
	bool totals; /* profiles are answered as costs, their totals; at steps they always are */
	bool tables; /* profiles are answered with their tables, of all functions: result.tops */
	bool rows_only; /* top_table.source may lack its stacks: rows are all that is shown */
	/*
	 * At one time, the query is a selector of one series: its latest profile with all its types, as
	 * it was scraped.
	 */
	bool whole_scrape;
	/*
	 * Explain: the query is planned and nothing is read. Its limits are shown, not enforced. With
	 * analyze it is also evaluated, under its limits, and its parts are timed.
	 */
	bool explain, analyze;
	/* Of series that the query may see, whatever it selects; NULL: all. They outlive the query. */
	const struct label_limits *limits;
	const struct file_finder *files; /* of file(): promql/files/files.h; NULL: there are none */
	bool hints; /* an empty answer tells a name of the query that is not stored, and what is near */
};

/* Parses, checks, evaluates. *out must be closed after use, result included. */
MUST_CHECK enum err_code query_run(
	struct engine *e, const struct query_options *o, struct query **out, struct err *err);
const struct result *query_result(const struct query *q);
struct arena *query_arena(struct query *q); /* for rendering */
/*
 * The plan, and how the query was evaluated: a tree of JSON objects (web/api/README.md), or text.
 */
struct json;
void query_explain_json(const struct query *q, struct json *j);
void query_explain_print(const struct query *q, struct buf *out);
void query_close(struct query *q);
/*
 * A flag that is set if the query must end: at its deadline, if it is canceled, or if the engine
 * closes. It is valid until query_close, for those that render the result. They get the error from
 * query_stopped and name the place ("rendering").
 */
const atomic_bool *query_stop_flag(const struct query *q);
enum err_code query_stopped(const struct query *q, const char *where, struct err *err);

/*
 * cancel: a flag that another thread may set to end the query early, if somebody watches the
 * client.
 */
MUST_CHECK enum err_code query_run_cancelable(struct engine *e, const struct query_options *o,
	const atomic_bool *cancel, struct query **out, struct err *err);

#endif
