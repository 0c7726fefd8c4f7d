/*
 * Evaluation: the state of one evaluation of a query, which every operator gets. Private to
 * promql/.
 *
 * promql/engine sets one up; nothing is shared between steps but the querier. The plan, the reader
 * and the caches belong to rooms above: here they are pointers.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_INVALID "1:6: ..." with the place in the query; ERR_LIMIT; ERR_CANCELED.
 * Ownership: values live in eval.arena and in the querier. A value's elements are the callee's to
 *            change only if it made them.
 * Threads:   one evaluation, one thread.
 */
#ifndef PROMQL_VALUE_EVALUATION_H
#define PROMQL_VALUE_EVALUATION_H

#include "promql/syntax/ast.h"
#include "promql/syntax/parse.h"
#include "promql/value/value.h"

struct value {
	unsigned type; /* one of VALUE_*; an empty selector has all that its name could mean */
	double scalar;
	struct str string;
	struct cost *costs;
	struct profile_value *profiles;
	struct top_table *tops;
	struct cost_series *series; /* VALUE_RANGE */
	size_t n; /* elements of whichever array the type names */
	bool is_split; /* profiles: by labels of samples */
};

enum eval_mode {
	EVAL_INSTANT, /* bare selectors: the latest profile within the lookback */
	EVAL_SPAN, /* all in (start, end] */
	EVAL_RANGE, /* all in (t - step, t] */
};

/* The querier and memory of a helping thread. */
struct eval_fork {
	struct db_querier *querier; /* NULL: not needed yet */
	struct arena arena; /* what it read; handed to the evaluation's */
};

struct eval {
	struct db_querier *querier;
	const struct parsed *query;
	struct arena *arena;
	struct arena *whole; /* of the query; it lives over all steps */
	struct unit_note *units; /* promql/unit.h */
	struct numeric_cache *numbers; /* promql/numeric.h */
	struct file_set *files; /* promql/files/files.h; NULL: none came with the query */
	struct naming *naming; /* tsdb/debuginfo/names/naming.h; NULL: addresses stay */
	enum eval_mode mode;
	int64_t t_ns; /* of this evaluation */
	int64_t start_ns, end_ns, query_step_ns; /* of the query */
	/*
	 * A scope is the query, or a subquery of it, whose expression is evaluated at steps of its own:
	 * about `steps` of them, from the first to the last.
	 */
	const struct expr *scope; /* NULL: the query */
	int64_t step_ns, first_ns, last_ns;
	uint64_t steps;
	struct subquery_cache *subqueries; /* promql/subquery.h */
	int64_t subquery_step_ns; /* of those that say none */
	int64_t lookback_ns;
	uint64_t samples_max, samples; /* read so far, over all steps */
	struct budget *budget; /* of all memory of the query; may be NULL */
	struct query_plan *plan; /* promql/plan.h */
	const struct reader *reader; /* promql/reader.h */
	bool timed; /* the time of each expression goes into the plan */
	struct workers *workers; /* promql/workers.h; NULL: none */
	struct eval_fork *forks; /* one per thread; NULL: one thread does all */
	int64_t rate_groups_ns; /* promql/engine/engine.h */
	uint64_t parallel_samples; /* fewer are not split; 0: the default */
	const atomic_bool *stop;
	bool all_sample_labels; /* keep them even if the query does not name them */
	bool rows_only; /* only the rows of tables are looked at */
	bool with_tables; /* an answer of profiles has their tables too */
	struct top_table *tables; /* these, per element; NULL: there are none */
	struct str *label_names; /* that some `by` names: kept where samples have them */
	size_t label_names_n;
	struct str *infos; /* notes on the answer: eval_info */
	size_t infos_n;
};

#define EVAL_INFOS_MAX 8 /* of one query; further ones are left out */

/* A time of evaluation, as offset and @ move it. */
int64_t eval_shifted(const struct eval *ev, const struct time_shift *s, int64_t t_ns);
/* An error at e's place in the query. */
enum err_code eval_fault(struct eval *ev, const struct expr *e, struct err *err, enum err_code code,
	const char *fmt, ...) PRINTF_LIKE(5, 6);
enum err_code eval_nomem(struct eval *ev, struct err *err);
/* Adds a line to the answer's infos, unless it is there. */
enum err_code eval_info(struct eval *ev, struct err *err, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* ERR_CANCELED if the query was canceled. */
MUST_CHECK enum err_code eval_check(struct eval *ev, struct err *err);

#endif
